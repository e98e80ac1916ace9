package main

// This file holds checks of readers and writers: a file must have the same size at the end of its reading as
// at the start, and a writer must take all that it is given.

import (
	"fmt"
	"io"
	"os"
)

// wholeFile reads a file. At the end it returns an error if the file has become shorter or longer meanwhile,
// because a part of a table may look like a whole table.
type wholeFile struct {
	*os.File
	name string
	size int64 // at the start; -1 if the file is no regular file
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
		return n, &inputError{fmt.Errorf("%s became shorter while it was read, by %d bytes: wait until it "+
			"is written", f.name, f.size-f.read)}
	}
	return n, err
}

// Seek goes to another place, for readers that read a file twice.
func (f *wholeFile) Seek(offset int64, whence int) (int64, error) {
	at, err := f.File.Seek(offset, whence)
	if err == nil {
		f.read = at
	}
	return at, err
}

// wholeWriter returns an error if a write takes less than it was given without saying so.
type wholeWriter struct{ io.Writer }

func (w wholeWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}
