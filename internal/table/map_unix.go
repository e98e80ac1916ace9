//go:build unix

package table

import (
	"math"
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
