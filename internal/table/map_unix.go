//go:build unix

package table

import (
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"syscall"
)

// mapFile maps the first bytes of a file into memory for reading; it returns nil if the system refuses.
func mapFile(file uintptr, bytes int64) (b []byte, unmap func() error) {
	if bytes <= 0 || bytes > math.MaxInt {
		return nil, nil
	}
	b, err := syscall.Mmap(int(file), 0, int(bytes), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil
	}
	return b, func() error { return syscall.Munmap(b) }
}

// decodeMapped decodes a row from the map. If the file has become shorter than its map, the memory fault at
// the row becomes an error.
func (x *npyRows) decodeMapped(to []float64, at int64, width int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
		}
	}()
	x.decode(to, x.mapped[at:at+int64(width)])
	return nil
}
