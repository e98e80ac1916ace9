package cli

import (
	"os"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// A blob that another process removes, replaces or cuts short while it is read is missing, whole or damaged,
// and no error of the folder.
func TestFolderOfOthers(t *testing.T) {
	in := NewInput()
	d := &Folder{Dir: t.TempDir(), In: &in}
	blob := make([]byte, 1<<16)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := d.Put("blob", blob); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				os.Truncate(d.Dir+"/blob", 30)
			}
			if err := d.Remove("blob"); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 3000 {
		Must(d.Get("blob"))(t)
	}
	close(stop)
	<-stopped
}
