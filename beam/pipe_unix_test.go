//go:build unix

package beam

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// A pipe in the place of a blob is refused at once.
func TestPipeInStore(t *testing.T) {
	dir := t.TempDir()
	store := Must(OpenStore(t.Context(), dir))(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "blob"), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := store.Get("blob"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}
