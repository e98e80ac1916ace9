package table

// This file holds the Matrix Market exchange format:
//
//	%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
//	% comments
//	d n entries        or d n, of an array
//	i j value ...      or the values, column by column
//
// Indices count from 1. Cells that are not listed are 0; entries of a cell that is listed twice are added up.
// There are no names.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

const mtxMagic = "%%MatrixMarket"

func readMTX(s *source) (*Table, error) {
	text, err := s.nextLine()
	if err != nil {
		return nil, err
	}
	kind := strings.Fields(strings.ToLower(short(string(text))))
	if len(kind) != 5 || kind[1] != "matrix" || !slices.Contains([]string{"coordinate", "array"}, kind[2]) ||
		!slices.Contains([]string{"real", "double", "integer", "pattern"}, kind[3]) ||
		!slices.Contains([]string{"general", "symmetric", "skew-symmetric"}, kind[4]) ||
		kind[2] == "array" && kind[3] == "pattern" {
		return nil, s.fault(0, "%s is no kind of matrix known here: it must be a coordinate or array of "+
			"real, integer or pattern, general, symmetric or skew-symmetric", quote(string(text)))
	}
	r := &mtxReader{source: s, coordinate: kind[2] == "coordinate", pattern: kind[3] == "pattern",
		mirror: kind[4] != "general"}
	r.sign = 1
	if kind[4] == "skew-symmetric" {
		r.sign = -1
	}
	x, err := r.matrix()
	if err != nil {
		return nil, err
	}
	if held, is := x.(*quantmf.Sparse); is {
		return s.sparseTable(held)
	}
	return s.tableOf(x.(quantmf.Mat)) // checks sums and mirror images, too
}

type mtxReader struct {
	*source
	coordinate, pattern, mirror bool
	sign                        float64
}

// fields fills f with the fields of the next line that is no comment. It returns their number, which may be
// more than f holds.
func (r *mtxReader) fields(f [][]byte, what string, a ...any) (n int, err error) {
	for {
		text, err := r.nextFull()
		if err == io.EOF {
			return 0, r.fault(0, "the file ends here, where %s should follow: copy or download it again",
				fmt.Sprintf(what, a...))
		}
		if err != nil {
			return 0, err
		}
		if text[0] == '%' {
			continue
		}
		for {
			text = bytes.TrimLeft(text, " \t\r")
			if len(text) == 0 {
				return n, nil
			}
			end := bytes.IndexAny(text, " \t\r")
			if end < 0 {
				end = len(text)
			}
			if n < len(f) {
				f[n] = text[:end]
			}
			n++
			text = text[end:]
		}
	}
}

// matrix returns a Mat, or a Sparse where the matrix is to stay sparse.
func (r *mtxReader) matrix() (x quantmf.Rows, err error) {
	want := 2
	if r.coordinate {
		want = 3
	}
	f := make([][]byte, want)
	got, err := r.fields(f, "the size of the matrix")
	if err != nil {
		return x, err
	}
	sizes := make([]uint64, want)
	ok := got == want
	for k := 0; ok && k < want; k++ {
		if k == 2 { // entries may be more than 2^31
			sizes[k], err = strconv.ParseUint(string(f[k]), 10, 62)
			ok = err == nil
		} else {
			sizes[k], ok = count(string(f[k]))
		}
	}
	d, n := sizes[0], sizes[1]
	switch {
	case !ok:
		return x, r.fault(0, "here must be %d whole numbers: rows, columns%s", want,
			map[int]string{2: "", 3: ", entries"}[want])
	case d == 0 || n == 0:
		return x, r.fault(0, "the file says that it has %d rows and %d columns", d, n)
	case r.coordinate && sizes[2] > d*n:
		return x, r.fault(0, "the file says that it has %d entries, and a matrix of %d × %d has only %d",
			sizes[2], d, n, d*n)
	case r.mirror && d != n:
		return x, r.fault(0, "a symmetric matrix has as many rows as columns")
	}
	entries := sizes[want-1]
	if r.mirror {
		entries *= 2
	}
	if r.coordinate && r.staysSparse(d, n, entries) {
		return r.listed(d, n, sizes[2]).sparse()
	}
	if r.coordinate {
		return r.entries(d, n, sizes[2])
	}
	return r.array(d, n)
}

// entries reads a matrix of listed entries.
func (r *mtxReader) entries(rows, cols, entries uint64) (x quantmf.Mat, err error) {
	p, err := newSparse(r.source, rows, cols)
	if err != nil {
		return x, err
	}
	if err := r.listed(rows, cols,
		entries).each(func(i, j uint32, v float64) error { return p.add(int(i), int(j), v) }); err != nil {
		return x, err
	}
	return p.matrix()
}

// entry reads entry e of count, from 0. f has room for its fields.
func (r *mtxReader) entry(f [][]byte, e, rows, cols, entries uint64) (i, j uint32, v float64, err error) {
	n, err := r.fields(f, "entry %d of %d", e+1, entries)
	if err != nil {
		return 0, 0, 0, err
	}
	if n != len(f) {
		return 0, 0, 0, r.fault(0, "this entry has %d numbers, it should have %d", n, len(f))
	}
	var at [2]uint32
	for k, most := range [2]uint64{rows, cols} {
		v, ok := count(string(f[k]))
		if !ok || v < 1 || v > most {
			return 0, 0, 0, r.fault(k+1, "%s is no index from 1 to %d", quote(string(f[k])), most)
		}
		at[k] = uint32(v - 1)
	}
	v = 1
	if !r.pattern {
		if v, err = r.value(f[2], 3); err != nil {
			return 0, 0, 0, err
		}
	}
	return at[0], at[1], v, nil
}

// array reads a matrix of all values. A symmetric matrix does not list the values above the diagonal, a
// skew-symmetric matrix not the diagonal either.
func (r *mtxReader) array(d, n uint64) (x quantmf.Mat, err error) {
	if err := r.takeMatrix(d, n); err != nil { // in the end; pieces may be fewer
		return x, err
	}
	r.give(8 * int64(d*n))
	rows, cols := int(d), int(n)
	values := numberList{s: r.source} // column by column
	listed := rows * cols
	if r.mirror {
		listed = rows * (rows + 1) / 2
		if r.sign < 0 {
			listed -= rows
		}
	}
	f := make([][]byte, 64)
	for values.count < listed {
		n, err := r.fields(f, "value %d of %d", values.count+1, listed)
		if err != nil {
			return x, err
		}
		if n > len(f) {
			return x, r.fault(len(f)+1, "there are more than %d numbers in a line", len(f))
		}
		for k, text := range f[:n] {
			v, err := r.value(text, k+1)
			if err != nil {
				return x, err
			}
			if values.count == listed {
				return x, r.fault(k+1, "there are more than the %d values that the size makes", listed)
			}
			next, err := values.next(1)
			if err != nil {
				return x, err
			}
			next[0] = v
		}
	}
	if err := r.end(); err != nil {
		return x, err
	}
	if err := r.takeMatrix(d, n); err != nil {
		return x, err
	}
	x = quantmf.NewMat(rows, cols)
	i, j := r.from(0), 0
	for _, p := range values.pieces {
		for _, v := range p {
			for i == rows {
				j++
				i = r.from(j)
			}
			x.Data[i*cols+j] = v
			if r.mirror && i != j {
				x.Data[j*cols+i] = float64(r.sign * v)
			}
			i++
		}
		r.give(8 * int64(cap(p)))
	}
	return x, nil
}

// from is the first row that an array lists of column j.
func (r *mtxReader) from(j int) int {
	switch {
	case !r.mirror:
		return 0
	case r.sign < 0:
		return j + 1
	}
	return j
}

// value parses a number. Its sign is checked when all entries are known.
func (r *mtxReader) value(text []byte, column int) (float64, error) {
	if v, n, ok := decimal(text, 0); ok && n == len(text) {
		return v, nil
	}
	o := r.Options
	o.Negative, o.NA, o.na = true, nil, nil
	v, problem := o.number(string(text))
	if problem != "" {
		return 0, r.fault(column, "%s", problem)
	}
	return v, nil
}

// end returns an error for anything behind the last value.
func (r *mtxReader) end() error {
	for {
		switch text, err := r.nextFull(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case text[0] != '%':
			return r.fault(0, "there are more lines than the size makes")
		}
	}
}

// writeMTX writes coordinates if fewer than half of the cells are not 0, else an array.
func writeMTX(out *bufio.Writer, m quantmf.Mat) {
	entries := 0
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			if math.Float64bits(v) != 0 {
				entries++
			}
		}
	}
	var line []byte
	sparse := entries < m.Rows*m.Cols/2
	if sparse {
		fmt.Fprintf(out, "%s matrix coordinate real general\n%d %d %d\n", mtxMagic, m.Rows, m.Cols, entries)
	} else {
		fmt.Fprintf(out, "%s matrix array real general\n%d %d\n", mtxMagic, m.Rows, m.Cols)
	}
	for j := range m.Cols {
		for i := range m.Rows {
			v := m.At(i, j)
			if sparse && math.Float64bits(v) == 0 {
				continue
			}
			line = line[:0]
			if sparse {
				line = append(strconv.AppendInt(line, int64(i+1), 10), ' ')
				line = append(strconv.AppendInt(line, int64(j+1), 10), ' ')
			}
			out.Write(append(strconv.AppendFloat(line, v, 'g', -1, 64), '\n'))
		}
	}
}
