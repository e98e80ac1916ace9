package table

// This file holds npy arrays that stay in their file and are read a row at a time: through a map of the
// file into memory where the system has it (map_unix.go), else by reads at a place.

import (
	"fmt"
	"io"
	"runtime/debug"
	"sync"
)

// npyRows is a matrix in a file, row after row.
type npyRows struct {
	rows, cols int
	file       io.ReaderAt
	at         int64 // of the first value
	size       int   // bytes of a value
	decode     func(to []float64, b []byte)
	mapped     []byte    // the file, nil where it is not mapped
	rooms      sync.Pool // of rows of bytes, where it is not
}

func (x *npyRows) Dims() (rows, cols int) { return x.rows, x.cols }

func (x *npyRows) ReadRow(to []float64, i int) error {
	width := x.cols * x.size
	at := x.at + int64(i)*int64(width)
	if x.mapped != nil {
		return x.decodeMapped(to, at, width)
	}
	b := x.rooms.Get().(*[]byte)
	defer x.rooms.Put(b)
	if n, err := x.file.ReadAt(*b, at); n < width {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	x.decode(to, *b)
	return nil
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

// stays tells whether the array can stay in its file, and whether the options ask for it.
func (a *npy) stays(there int64) bool {
	if !a.Rows || a.fortran || a.decoder() == nil || len(a.shape) != 2 || a.packed != "" ||
		a.place == nil {
		return false
	}
	d, n := int64(a.shape[0]), int64(a.shape[1])
	return d > 0 && n > 0 && n < 1<<40 && d <= (there-a.at)/int64(a.size)/n && (a.InFile || d >= a.all/4/8/n)
}

// table returns the array as a table that is read by rows.
func (a *npy) table() (*Table, error) {
	x := &npyRows{rows: a.shape[0], cols: a.shape[1], file: a.place, at: a.at, size: a.size,
		decode: a.decoder()}
	x.rooms.New = func() any { b := make([]byte, x.cols*x.size); return &b }
	end := x.at + int64(x.rows)*int64(x.cols)*int64(x.size)
	if _, err := a.place.ReadAt(make([]byte, 1), end); err == nil {
		a.at = end
		return nil, a.fault("there is more behind the last value")
	}
	var unmap func() error
	if f, is := a.place.(interface{ Fd() uintptr }); is {
		x.mapped, unmap = mapFile(f.Fd(), end)
	}
	t, err := a.tableOf(x)
	if err != nil {
		if unmap != nil {
			unmap()
		}
		return nil, err
	}
	t.close = func() error {
		if unmap != nil {
			x.mapped = nil
			if err := unmap(); err != nil {
				return err
			}
		}
		if c, is := a.place.(io.Closer); is {
			return c.Close()
		}
		return nil
	}
	return t, nil
}
