package main

// This file holds what readers and writers must keep to: a file that is read is the same at
// its end as at its start, and a writer takes all that it is given.

import (
	"fmt"
	"io"
	"os"
)

// wholeFile reads a file and reports, at its end, one that has become shorter or longer
// meanwhile: a part of a table is a table, too.
type wholeFile struct {
	*os.File
	name string
	size int64 // at the start, -1 for what is no regular file
	read int64
}

func (f *wholeFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.read += int64(n)
	if f.size < 0 {
		return n, err
	}
	if f.read > f.size {
		return n, &inputError{fmt.Errorf("%s grew while it was read: wait until it is written", f.name)}
	}
	if err == io.EOF && f.read < f.size {
		return n, &inputError{fmt.Errorf("%s became shorter while it was read, by %d bytes: wait until it is written", f.name, f.size-f.read)}
	}
	return n, err
}

// Seek goes to another place, as a reader does that looks at a file twice.
func (f *wholeFile) Seek(offset int64, whence int) (int64, error) {
	at, err := f.File.Seek(offset, whence)
	if err == nil {
		f.read = at
	}
	return at, err
}

// wholeWriter makes an error of a write that takes less than it was given and says nothing.
type wholeWriter struct{ io.Writer }

func (w wholeWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}
