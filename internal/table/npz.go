package table

// This file holds npz, a zip archive of npy files that are named by their variables. Its matrix is the only
// array of two dimensions and of numbers; of several the one called x, else X, else data. An archive with two
// arrays of one name is refused. Arrays of as many strings as it has rows, called features, and as it has
// columns, called samples, are its names: what Write puts there.
//
// SciPy's save_npz writes a sparse matrix as such an archive. The array called format has the format, shape
// the size, and further arrays have the entries:
//
//	csr  data, indices: the entries of row i are those from indptr[i] to indptr[i+1], indices their columns
//	csc  the same by columns
//	coo  data, row, col
//
// SciPy writes blocks and diagonals (bsr, dia), too, in which no table of data is held.

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
)

const zipMagic = "PK\x03\x04"

// npz is an archive.
type npz struct {
	*source
	bytes  zipBytes
	length int64 // bytes in all
	arrays map[string]*zip.File
	names  []string             // in the order of the archive
	parts  map[string]*zip.File // of a workbook of Excel
}

// mostPacked is the largest number of bytes that deflate makes of one.
const mostPacked = 1032

// broken is the error of an archive that cannot be read.
func (z *npz) broken(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return z.wrong("the archive is damaged or cut short (%v): copy or download the file again",
		err)
}

// zipBytes is what package archive/zip reads an archive from. While it reads the directory, it asks for the
// memory that is made of it by the bytes that are read: an archive may say of its directory's size and place
// what it likes.
type zipBytes struct {
	io.ReaderAt
	of      *source
	listing bool // the directory is read
}

// listedBytes is the memory for a byte of the directory. An entry has 46 bytes and its name; a zip.File of
// 176 bytes is made of it, pointers, and where it is an array a key of a map: 3.6 to 4.2 bytes a byte stay,
// and while lists grow, twice that.
const listedBytes = 8

func (z *zipBytes) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 { // a directory may say any
		return 0, zip.ErrFormat
	}
	n, err := z.ReaderAt.ReadAt(b, at)
	if z.listing {
		if err := z.of.take(listedBytes*int64(n), "the directory of the archive"); err != nil {
			return 0, err
		}
	}
	return n, err
}

// openZip opens an archive: in its place, where it is a file, else in memory.
func openZip(s *source) (*npz, error) {
	z := &npz{source: s, bytes: zipBytes{of: s, listing: true}, arrays: map[string]*zip.File{},
		parts: map[string]*zip.File{}}
	if s.place != nil && s.packed == "" {
		if end, err := s.seekable.Seek(0, io.SeekEnd); err == nil {
			z.bytes.ReaderAt, z.length = s.place, end
		}
	}
	if z.bytes.ReaderAt == nil {
		b, err := s.archive()
		if err != nil {
			return nil, err
		}
		z.bytes.ReaderAt, z.length = bytes.NewReader(b), int64(len(b))
	}
	// At once archive/zip makes room for pointers to as many files as the archive says it has, if that is at
	// most one for each 30 bytes.
	pointers := z.length / 30 * 8
	if err := s.take(pointers, "the directory of the archive"); err != nil {
		return nil, err
	}
	files, err := zip.NewReader(&z.bytes, z.length)
	if err != nil {
		return nil, z.broken(err)
	}
	s.give(pointers)
	z.bytes.listing = false
	for _, f := range files.File {
		name, isArray := strings.CutSuffix(f.Name, ".npy")
		if !isArray {
			z.parts[f.Name] = f
			continue
		}
		if z.arrays[name] != nil {
			return nil, z.wrong("there are two arrays %s in the archive: save it anew with one",
				quote(name))
		}
		z.arrays[name] = f
		z.names = append(z.names, name)
	}
	return z, nil
}

// archive reads the rest of a file.
func (s *source) archive() ([]byte, error) {
	const block = 4 * buffered
	all := list[byte]{s: s, bytes: 1, what: "bytes of the archive"}
	for {
		b, err := all.next(block)
		if err != nil {
			return nil, err
		}
		n, err := io.ReadFull(s, b)
		all.shorten(block - n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return all.all()
		}
		if err != nil {
			return nil, s.failed(err)
		}
	}
}

// encrypted is a flag of a file in an archive, which archive/zip leaves to its caller.
const encrypted = 1

// opened opens a file of the archive. The error of one that cannot be unpacked says what it is, and how it
// is saved anew.
func (z *npz) opened(f *zip.File, what, anew string) (io.ReadCloser, error) {
	r, err := f.Open()
	switch {
	case err == zip.ErrAlgorithm, err == nil && f.Flags&encrypted != 0:
		return nil, z.wrong("%s is encrypted, or packed by another method than deflate: save it anew%s", what,
			anew)
	case err != nil:
		return nil, z.broken(err)
	}
	return r, nil
}

// open opens an array. The caller closes it.
func (z *npz) open(name string) (*npy, error) {
	f := z.arrays[name]
	if f == nil {
		return nil, z.wrong("there is no array %s in the archive", quote(name))
	}
	r, err := z.opened(f, "the array "+quote(name), " by numpy.savez or savez_compressed")
	if err != nil {
		return nil, err
	}
	a, err := z.openNPY(&packedReader{r, "zip"}, z.file+"("+short(name)+".npy)")
	if err != nil {
		r.Close()
		return nil, err
	}
	a.close = r.Close
	return a, nil
}

// readZip reads what an archive is: a workbook of Excel, or an npz.
func readZip(s *source) (*Table, error) {
	z, err := openZip(s)
	if err != nil {
		return nil, err
	}
	switch {
	case z.parts[workbookPart] != nil:
		return readXLSX(z)
	case z.parts["xl/workbook.bin"] != nil, z.parts["content.xml"] != nil:
		return nil, s.wrong("this is a binary workbook of Excel (xlsb), or one of LibreOffice (ods): save " +
			"it as xlsx, or the sheet as CSV")
	case len(z.arrays) == 0:
		return nil, s.wrong("this is a zip archive with no array of NumPy in it: unpack it")
	}
	if err := s.mustBe("npz"); err != nil {
		return nil, err
	}
	return readNPZ(z)
}

func readNPZ(z *npz) (*Table, error) {
	s := z.source
	if z.arrays["format"] != nil && z.arrays["shape"] != nil {
		x, kind, err := z.sparse()
		if err != nil {
			return nil, err
		}
		t, err := s.tableOf(x)
		if err == nil {
			t.Taken = "SciPy " + kind + ", no names in the file"
		}
		return t, err
	}
	chosen, of, err := z.choose()
	if err != nil {
		return nil, err
	}
	a, err := z.open(chosen)
	if err != nil {
		return nil, err
	}
	defer a.close()
	x, err := a.matrix(mostPacked * z.length)
	if err != nil {
		return nil, err
	}
	t, err := s.tableOf(x)
	if err != nil {
		return nil, err
	}
	t.Taken = "the array " + quote(chosen)
	if of > 1 {
		t.Taken += fmt.Sprintf(", one of %d matrices", of)
	}
	for _, n := range []struct {
		what  string
		to    *[]string
		named *bool
	}{{"features", &t.Features, &t.NamedFeatures}, {"samples", &t.Samples, &t.NamedSamples}} {
		names, err := z.namesIn(n.what, len(*n.to))
		if err != nil {
			return nil, err
		}
		if names == nil {
			t.Taken += ", no names of " + n.what
			continue
		}
		*n.to, *n.named = names, true
		t.Taken += fmt.Sprintf(", %s named by the array %q", n.what, n.what)
	}
	return t, nil
}

// choose returns the name of the array that is the matrix, and how many matrices there are.
func (z *npz) choose() (name string, of int, err error) {
	var matrices []string
	for _, name := range z.names {
		a, err := z.open(name)
		if err != nil {
			return "", 0, err
		}
		a.close()
		if len(a.shape) == 2 && a.decoder() != nil {
			matrices = append(matrices, name)
		}
	}
	switch len(matrices) {
	case 0:
		return "", 0, z.wrong("none of the arrays of this archive is a matrix of numbers")
	case 1:
		return matrices[0], 1, nil
	}
	for _, want := range []string{"x", "X", "data"} {
		if slices.Contains(matrices, want) {
			return want, len(matrices), nil
		}
	}
	var shown []string
	for _, name := range matrices[:min(len(matrices), 8)] {
		shown = append(shown, short(name))
	}
	return "", 0, z.wrong("there are several matrices, %s: call the one that is meant x",
		strings.Join(shown, ", "))
}

// namesIn returns the names that an array has, so many; nil where there is no such array of as many.
func (z *npz) namesIn(array string, count int) ([]string, error) {
	if z.arrays[array] == nil {
		return nil, nil
	}
	a, err := z.open(array)
	if err != nil {
		return nil, err
	}
	defer a.close()
	return a.strings(count)
}

// stream opens an array of one dimension.
func (z *npz) stream(name string) (*stream, error) {
	a, err := z.open(name)
	if err != nil {
		return nil, err
	}
	if len(a.shape) != 1 || a.decoder() == nil {
		a.close()
		return nil, a.fault("this array of a sparse matrix must have one dimension and hold numbers; its "+
			"shape is %v", a.shape)
	}
	return &stream{values: a.values(a.shape[0])}, nil
}

// sparse reads a matrix that SciPy wrote.
func (z *npz) sparse() (x quantmf.Rows, kind string, err error) {
	if kind, err = z.format(); err != nil {
		return nil, kind, err
	}
	shape, err := z.stream("shape")
	if err != nil {
		return nil, kind, err
	}
	defer shape.close()
	if shape.count != 2 {
		return nil, kind, z.wrong("the sparse array has %d dimensions: a matrix has rows and columns",
			shape.count)
	}
	m := &scipy{npz: z, kind: kind}
	for _, size := range []*int{&m.rows, &m.cols} {
		if *size, err = shape.index(1, math.MaxInt32); err != nil {
			return nil, kind, err
		}
	}
	if err := shape.end(); err != nil {
		return nil, kind, err
	}
	if len(arrays[kind]) == 0 {
		return nil, kind, z.wrong("a sparse matrix of the format %s is not known here: save it as csr, "+
			"csc or coo", quote(kind))
	}
	data, err := m.array(0)
	if err != nil {
		return nil, kind, err
	}
	data.close()
	x, err = z.entries(m.rows, m.cols, m.each, m.each).matrix(uint64(data.count))
	return x, kind, err
}

// arrays are the arrays that the entries of each format are in, the numbers first.
var arrays = map[string][]string{"csr": {"data", "indptr", "indices"}, "csc": {"data", "indptr", "indices"},
	"coo": {"data", "row", "col"}}

// scipy is a sparse matrix in an archive.
type scipy struct {
	*npz
	kind       string
	rows, cols int
}

// array opens one of the arrays of entries.
func (m *scipy) array(k int) (*stream, error) { return m.stream(arrays[m.kind][k]) }

// each calls put for every entry. The end of an array compares its checksum.
func (m *scipy) each(put sink) error {
	var of []*stream
	for k := range arrays[m.kind] {
		a, err := m.array(k)
		if err != nil {
			return err
		}
		defer a.close()
		of = append(of, a)
	}
	var err error
	if m.kind == "coo" {
		err = m.coo(of[0], of[1], of[2], put)
	} else {
		err = m.compressed(of[0], of[1], of[2], put)
	}
	for _, a := range of {
		if err == nil {
			err = a.end()
		}
	}
	return err
}

// format reads the name of a sparse matrix's format, an array of no dimensions.
func (z *npz) format() (string, error) {
	a, err := z.open("format")
	if err != nil {
		return "", err
	}
	defer a.close()
	if len(a.shape) == 0 {
		a.shape = []int{1}
		if words, err := a.strings(1); words != nil || err != nil {
			return strings.Join(words, ""), err
		}
	}
	return "", a.fault("the format of a sparse matrix must be a word")
}

func (m *scipy) coo(data, rows, cols *stream, put sink) error {
	if rows.count != data.count || cols.count != data.count {
		return m.wrong("the arrays data, row and col have %d, %d and %d numbers: they must have as many",
			data.count, rows.count, cols.count)
	}
	for range data.count {
		i, err := rows.index(0, m.rows)
		if err != nil {
			return err
		}
		j, err := cols.index(0, m.cols)
		if err != nil {
			return err
		}
		v, err := data.number()
		if err == nil {
			err = put(i, j, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compressed reads rows or columns of entries.
func (m *scipy) compressed(data, pointers, indices *stream, put sink) error {
	outer, inner := m.rows, m.cols
	if m.kind == "csc" {
		outer, inner = inner, outer
	}
	if pointers.count != outer+1 || indices.count != data.count {
		return m.wrong("the arrays data, indices and indptr have %d, %d and %d entries, which do not fit "+
			"each other and %d × %d", data.count, indices.count, pointers.count, m.rows, m.cols)
	}
	from, err := pointers.index(0, 1)
	if err != nil {
		return err
	}
	for o := range outer {
		to, err := pointers.index(from, indices.count+1)
		if err != nil {
			return err
		}
		for range to - from {
			k, err := indices.index(0, inner)
			if err != nil {
				return err
			}
			i, j := o, k
			if m.kind == "csc" {
				i, j = k, o
			}
			v, err := data.number()
			if err == nil {
				err = put(i, j, v)
			}
			if err != nil {
				return err
			}
		}
		from = to
	}
	if from != indices.count {
		return m.wrong("indptr ends at %d, and there are %d entries", from, indices.count)
	}
	return nil
}

func writeNPZ(out io.Writer, rows, columns []string, m quantmf.Mat) error {
	z := zip.NewWriter(out)
	for _, part := range []struct {
		name  string
		write func(out *bufio.Writer)
	}{
		{"x", func(out *bufio.Writer) { writeNPY(out, m) }},
		{"features", func(out *bufio.Writer) { writeNames(out, rows) }},
		{"samples", func(out *bufio.Writer) { writeNames(out, columns) }},
	} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: part.name + ".npy", Method: zip.Deflate})
		if err != nil {
			return err
		}
		buffered := bufio.NewWriter(w)
		part.write(buffered)
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeNames(out *bufio.Writer, names []string) {
	longest := 1
	for _, n := range names {
		longest = max(longest, len([]rune(n)))
	}
	writeNPYHeader(out, fmt.Sprintf("<U%d", longest), fmt.Sprintf("%d,", len(names)))
	for _, n := range names {
		b := make([]byte, 0, 4*longest)
		for _, r := range n {
			b = littleEndian.AppendUint32(b, uint32(r))
		}
		out.Write(b[:4*longest])
	}
}
