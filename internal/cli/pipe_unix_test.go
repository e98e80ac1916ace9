//go:build unix

package cli

// This file tests an output that is a pipe, which is written to, not replaced, and an input that the system
// makes up.

import (
	"io"
	"os"
	"syscall"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestOutputToPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Skip(err)
	}
	end, err := os.OpenFile("pipe", os.O_RDWR, 0) // opened for both, so that neither side waits
	OK(t, err)
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

// TestMadeUp: a file that the system makes up is read, though its size is said to be 0.
func TestMadeUp(t *testing.T) {
	in, _, err := Open("/proc/self/status", nil, "matrix")
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	if b, err := io.ReadAll(in); err != nil || len(b) == 0 {
		t.Errorf("%d bytes: %v", len(b), err)
	}
}
