// Package rowfile reads matrices as [quantmf.Rows], from files, file systems and whatever else is an
// io.Reader, such as the body of a request, and writes them; and models with the names of their features. Of
// files it makes no copy of all numbers in memory:
//
//	npy                  an array of two dimensions that is not compressed, in C order (in Fortran order
//	                     where samples are in rows) and of any plain type of numbers, stays in its file and
//	                     is read a row at a time, through a map of the file where the system has one
//	Matrix Market        a matrix of which at most a third is listed becomes a [quantmf.Sparse], in
//	                     single precision where that holds every number exactly
//	npz by SciPy         the same, of all formats of scipy.sparse.save_npz
//	a folder of 10x      the same, with the names of its features and barcodes
//
// Whatever else the command quantmf reads (text, xlsx, GCT, other npy, npz and Matrix Market files) becomes a
// [quantmf.Mat], and so does an array of records in JSON, which the command does not read:
//
//	[{"host": "h1", "cpu": 0.5, "disk": 7}, {"host": "h2", "cpu": null}]
//
// A record is a row. The key whose value is a string names it; null, and a key that a record lacks, are
// missing.
package rowfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// File is a matrix, features in rows, and what its rows and columns are called: f1, f2, ... and s1, s2, ...
// where its file does not say. A fit is given Rows, the matrix itself.
type File struct {
	Rows              quantmf.Rows
	Features, Samples []string

	table *table.Table // nil of records
}

// Open opens the file or the folder at path. NaN and what text says is missing become NaN, and numbers may be
// negative; a fit says whether it takes them. A file must not change before Close: what becomes shorter is
// an error of ReadRow, other changes go unnoticed. Errors: those of the system, errors that say where
// in the file a fault is, or that the memory is not enough.
//
// Cost: one pass over an npy array, which is checked; two over a file that lists entries. Memory: 8 bytes
// a listed entry in single precision, 12 in double, and 48 a row and column.
func Open(path string, options Options) (*File, error) {
	o := options.table()
	o.InFile = true
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return fileOf(table.ReadFolder(os.DirFS(path), path, o))
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := read(in, path, o)
	if err != nil || f.table == nil || !f.table.InFile() {
		err = errors.Join(err, in.Close())
	}
	return f, err
}

// Options say how a matrix is read.
type Options struct {
	// Memory is the most bytes that reading may take at once, of what is decompressed. A matrix that asks for
	// more is an error before the memory is taken. 0 stands for 8 GiB.
	Memory int64
	// SamplesInRows says that rows are samples; File.Rows has features in rows all the same. It costs no
	// second copy of the numbers where they are listed (Matrix Market, npz by SciPy) or an npy array, and an
	// npy array in Fortran order, which has the samples of a feature side by side, stays in its file. It
	// costs one while they are read, 8 bytes a number, of text, GCT, npz of NumPy, and a folder of 10x.
	SamplesInRows bool
}

func (o Options) table() table.Options {
	return table.Options{Missing: true, Negative: true, Memory: o.Memory, Rows: true,
		Transpose: o.SamplesInRows}
}

// Read reads a matrix from r, in any format that [Open] knows but a folder: which it is shows in its content.
// name is what errors call it. NaN and what text says is missing become NaN. The matrix is in memory, and
// needs no Close, but one: an npy array whose numbers would take more than a quarter of the memory that
// reading may take stays where it is if r is an io.ReadSeeker and an io.ReaderAt, as a file is, and at its
// start. Then r must stay as it is until Close, which closes it. Errors: those of r, and errors that say
// where in the content a fault is, or that the memory is not enough.
func Read(r io.Reader, name string, o Options) (*File, error) { return read(r, name, o.table()) }

func read(r io.Reader, name string, o table.Options) (*File, error) {
	is, r, err := hasRecords(r)
	if err != nil {
		return nil, err
	}
	if is {
		return readRecords(r, name, o)
	}
	return fileOf(table.Read(r, name, o))
}

// OpenFS reads the matrix in a file, or in a folder of 10x, of a file system. It is in memory, and needs no
// Close. Errors are those of the file system and of [Read].
func OpenFS(fsys fs.FS, path string, o Options) (*File, error) {
	info, err := fs.Stat(fsys, path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		folder, err := fs.Sub(fsys, path)
		if err != nil {
			return nil, err
		}
		return fileOf(table.ReadFolder(folder, path, o.table()))
	}
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	// what can be sought may stay in its file, which is closed here
	read, err := Read(struct{ io.Reader }{f}, path, o)
	return read, errors.Join(err, f.Close())
}

// Write writes a matrix, features in rows, with its names, in the format that the ending of name says: .tsv,
// .txt, .tab, .csv, .gct, .mtx, .npy or .npz, with .gz behind it compressed. Matrix Market and npy have no
// names. Read reads it back. Errors: those of w, [*quantmf.ShapeError] for another number of names, and an
// error for another ending.
func Write(w io.Writer, name string, x quantmf.Mat, features, samples []string) error {
	if len(features) != x.Rows {
		return numberOf("features", len(features), x.Rows)
	}
	if len(samples) != x.Cols {
		return numberOf("samples", len(samples), x.Cols)
	}
	return table.Write(w, name, "feature", features, samples, x)
}

// numberOf is the error of another number of names.
func numberOf(what string, got, want int) error {
	return &quantmf.ShapeError{What: "names of " + what, Got: strconv.Itoa(got), Want: strconv.Itoa(want)}
}

// fileOf is the file of what was read.
func fileOf(t *table.Table, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{Rows: t.Rows(), Features: t.Features, Samples: t.Samples, table: t}, nil
}

// Close closes the file. The matrix cannot be read afterwards, where it stayed in its file.
func (f *File) Close() error {
	if f.table == nil {
		return nil
	}
	return f.table.Close()
}
