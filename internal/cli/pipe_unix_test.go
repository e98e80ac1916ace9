//go:build unix

package cli

// This file tests an output that is a pipe: it is written to, not replaced.

import (
	"os"
	"syscall"
	"testing"
)

func TestOutputToPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Skip(err)
	}
	end, err := os.OpenFile("pipe", os.O_RDWR, 0) // opened for both, so that neither side waits
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	writeOne(t, "pipe", "through")
	if info, err := os.Lstat("pipe"); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("the pipe was replaced: %v, %v", info.Mode(), err)
	}
	b := make([]byte, 20)
	if n, err := end.Read(b); string(b[:n]) != "through" {
		t.Errorf("got %q, %v", b[:n], err)
	}
}
