package table

// This file reads folders as 10x Genomics' Cell Ranger and other programs write them:
//
//	matrix.mtx      features × barcodes, Matrix Market
//	features.tsv    a line a row: identifier, name, type ...; called genes.tsv in older folders
//	barcodes.tsv    a line a column
//
// Each file is plain or compressed (matrix.mtx.gz), perhaps with a prefix (GSM1_matrix.mtx.gz).

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// folderReader is the state of the reading of a folder.
type folderReader struct {
	Options // of the three files: the table of all three is transposed, none of them
	dir     fs.FS
	folder  string
	s       *source // of the file that was read last, whose account of memory the next one goes on with

	matrix, features, barcodes string // the files
}

// ReadFolder reads the matrix of a 10x folder with its names. Features are named by the
// second column of features.tsv, the names of genes, or by the column o.Names.
func ReadFolder(dir fs.FS, folder string, o Options) (*Table, error) {
	r := &folderReader{Options: o, dir: dir, folder: folder}
	if err := r.files(); err != nil {
		return nil, err
	}
	column := 2
	if o.Names != "" {
		var err error
		if column, err = strconv.Atoi(o.Names); err != nil || column < 1 {
			return nil, r.wrong("-names %s: must be the number of a column of %s", quote(o.Names), r.features)
		}
	}
	if o.Format != "" && o.Format != "mtx" {
		return nil, r.wrong("this is a folder with a Matrix Market file, not %s", o.Format)
	}
	r.Rows = o.Rows && !o.Transpose
	r.Transpose = false
	var t *Table
	if err := r.read(r.matrix, func() (err error) { t, err = r.s.read(); return err }); err != nil {
		return nil, err
	}
	kinds := map[string]int{}
	if err := r.read(r.features, func() (err error) {
		t.Features, column, err = r.s.list(column, len(t.Features), kinds)
		return err
	}); err != nil {
		return nil, err
	}
	if err := r.read(r.barcodes, func() (err error) {
		t.Samples, _, err = r.s.list(1, len(t.Samples), nil)
		return err
	}); err != nil {
		return nil, err
	}
	t.File, t.NamedFeatures, t.NamedSamples = folder, true, true
	t.Taken = fmt.Sprintf("a 10x folder, features named by column %d of %s, samples by %s", column,
		r.features, r.barcodes)
	if len(kinds) > 1 {
		var all []string
		for kind, n := range kinds {
			all = append(all, fmt.Sprintf("%d %s", n, short(kind)))
		}
		slices.Sort(all)
		t.Warnings = append(t.Warnings, "the features are of several types: "+strings.Join(all, ", "))
	}
	if err := r.s.finish(t, o); err != nil {
		return nil, err
	}
	return t, nil
}

// wrong returns an error of the folder as a whole.
func (r *folderReader) wrong(format string, args ...any) *Error {
	return &Error{File: r.folder, Problem: fmt.Sprintf(format, args...)}
}

// files finds the three files.
func (r *folderReader) files() (err error) {
	if r.matrix, err = r.find("matrix.mtx", ""); err != nil {
		return err
	}
	prefix, _, _ := strings.Cut(r.matrix, "matrix.mtx")
	if r.features, err = r.find("features.tsv", prefix); err != nil {
		var older error
		if r.features, older = r.find("genes.tsv", prefix); older != nil {
			return err
		}
	}
	r.barcodes, err = r.find("barcodes.tsv", prefix)
	return err
}

// read opens a file of the folder, of which do then reads what it wants.
func (r *folderReader) read(name string, do func() error) error {
	f, err := r.dir.Open(name)
	if p := new(fs.PathError); errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: r.folder + "/" + name, Err: p.Err} // dir knows the name alone
	}
	if err != nil {
		return err
	}
	defer f.Close()
	o := r.Options
	if r.s != nil {
		o.Memory = r.s.left
	}
	if r.s, err = newSource(f, r.folder+"/"+name, o); err != nil {
		return err
	}
	return do()
}

// find returns the file of a folder that is called prefix and name, perhaps compressed; if prefix is "", with
// any prefix.
func (r *folderReader) find(name, prefix string) (string, error) {
	entries, err := fs.ReadDir(r.dir, ".")
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		before, after, is := strings.Cut(e.Name(), name)
		if is && (after == "" || after == ".gz" || after == ".bz2") && (prefix == "" || before == prefix) &&
			!e.IsDir() {
			found = append(found, e.Name())
		}
	}
	switch {
	case len(found) == 0:
		return "", r.wrong("this folder has no %s%s or %[1]s%[2]s.gz: a folder is read as those of 10x are, "+
			"with matrix.mtx, features.tsv and barcodes.tsv", short(prefix), name)
	case len(found) > 1:
		return "", r.wrong("this folder has several files of this kind, such as %s and %s: leave one in it",
			quote(found[0]), quote(found[1]))
	}
	return found[0], nil
}

// list reads one column of a file without header that has a line for each of count names. kinds counts the
// values of the third column. from is the column that was read: 1 for 2 where no line has a second, because
// the file has identifiers alone.
func (s *source) list(column, count int, kinds map[string]int) (names []string, from int, err error) {
	from = column
	if column == 2 && kinds != nil {
		from = 1
	}
	for {
		line, err := s.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if len(line) == 0 {
			continue
		}
		if len(names) == count {
			return nil, 0, s.fault(0, "there are more names than the %d of the matrix%s", count,
				transposedHint)
		}
		row := strings.Split(string(line[:min(len(line), 1<<16)]), "\t")
		if column == 2 && len(row) == 1 && kinds != nil {
			row = append(row, row[0])
		} else {
			from = column
		}
		if len(row) < column {
			return nil, 0, s.fault(0, "this line has %d cells, and column %d holds the names", len(row),
				column)
		}
		if err := s.take(int64(len(row[column-1]))+48, "so many names"); err != nil {
			return nil, 0, err
		}
		names = append(names, strings.Clone(row[column-1]))
		if kinds != nil && len(row) > 2 && (len(kinds) < 100 || kinds[row[2]] > 0) {
			kinds[strings.Clone(row[2])]++
		}
	}
	if len(names) < count {
		return nil, 0, s.fault(0, "there are %d names, and %d of the matrix%s", len(names), count,
			transposedHint)
	}
	return names, from, nil
}

const transposedHint = ": the matrix must have features in rows and barcodes in columns"
