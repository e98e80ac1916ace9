package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func fill(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// writeOne writes s to path the way a command does.
func writeOne(t *testing.T, path, s string) {
	t.Helper()
	o := &Outputs{}
	defer o.Discard()
	for _, err := range []error{o.Open(nil, path), o.Write(path, fill(s)), o.Commit()} {
		OK(t, err)
	}
}

func TestOutputs(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(path, s string) { writeOne(t, path, s) }
	content := func(path string) string {
		b, _ := os.ReadFile(path)
		return string(b)
	}

	write("a", "1")
	write("a", "2")
	if got := content("a"); got != "2" {
		t.Errorf("written twice: %q", got)
	}
	if info, _ := os.Stat("a"); runtime.GOOS != "windows" && info.Mode().Perm()&0o400 == 0 {
		t.Errorf("permissions %v", info.Mode())
	}

	if runtime.GOOS != "windows" && runtime.GOOS != "js" {
		// Permissions are kept and a link stays one.
		os.Chmod("a", 0o600)
		os.Symlink("a", "link")
		write("link", "3")
		if info, _ := os.Lstat("link"); info.Mode()&os.ModeSymlink == 0 || content("a") != "3" {
			t.Errorf("link: %v, %q", info.Mode(), content("a"))
		}
		if info, _ := os.Stat("a"); info.Mode().Perm() != 0o600 {
			t.Errorf("permissions became %v", info.Mode())
		}
	}

	// A failure while writing leaves all as it was.
	o := &Outputs{}
	OK(t, o.Open(nil, "a", "b"))
	before := content("a")
	OK(t, o.Write("a", fill("5")))
	if err := o.Write("b", func(io.Writer) error { return errors.New("full") }); err == nil ||
		err.Error() != "cannot write b: full" {
		t.Error(err)
	}
	o.Discard()
	if got := content("a"); got != before {
		t.Errorf("a became %q", got)
	}
	if left, _ := filepath.Glob(".*.tmp"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
