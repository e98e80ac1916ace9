// Package rowfile opens matrices in files as [quantmf.Rows], without a copy of all numbers in memory:
//
//	npy                  an array of two dimensions that is not compressed, in C order and of any plain
//	                     type of numbers, stays in its file and is read a row at a time, through a map
//	                     of the file where the system has one
//	Matrix Market        a matrix of which at most a third is listed becomes a [quantmf.Sparse], in
//	                     single precision where that holds every number exactly
//	npz by SciPy         the same, of all formats of scipy.sparse.save_npz
//	a folder of 10x      the same, with the names of its features and barcodes
//
// Whatever else the command quantmf reads (text, GCT, other npy, npz and Matrix Market files) becomes a
// [quantmf.Mat].
package rowfile

import (
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// File is a matrix, features in rows, and what its rows and columns are called: f1, f2, ... and s1, s2, ...
// where its file does not say. A fit is given Rows, the matrix itself.
type File struct {
	Rows              quantmf.Rows
	Features, Samples []string

	table *table.Table
}

// Open opens the file or the folder at path. NaN and what text says is missing become NaN, and numbers may be
// negative; a fit says whether it takes them. A file must not change before Close: what becomes shorter is
// an error of ReadRow, other changes go unnoticed. Errors: those of the system, and errors that say where
// in the file a fault is.
//
// Cost: one pass over an npy array, which is checked; two over a file that lists entries. Memory: 8 bytes
// a listed entry in single precision, 12 in double, and 48 a row and column.
func Open(path string) (*File, error) {
	o := table.Options{Missing: true, Negative: true, Memory: math.MaxInt64 / 4, Rows: true, InFile: true}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var t *table.Table
	if info.IsDir() {
		t, err = table.ReadFolder(os.DirFS(path), path, o)
	} else {
		var f fs.File
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		if t, err = table.Read(f, path, o); err != nil || !t.InFile() {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return &File{Rows: t.Rows(), Features: t.Features, Samples: t.Samples, table: t}, nil
}

// Close closes the file. The matrix cannot be read afterwards, where it stayed in its file.
func (f *File) Close() error { return f.table.Close() }
