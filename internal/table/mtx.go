package table

// This file holds the Matrix Market exchange format:
//
//	%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
//	% comments
//	d n entries        or d n, of an array
//	i j value ...      or the values, column by column
//
// Indices count from 1; what is not listed is 0, and what is listed twice is
// added up. There are no names.

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

const mtxMagic = "%%MatrixMarket"

func readMTX(s source) (*Table, error) {
	l := &lines{source: s}
	text, err := l.next()
	if err != nil {
		return nil, err
	}
	kind := strings.Fields(strings.ToLower(text))
	if len(kind) != 5 || kind[1] != "matrix" || !slices.Contains([]string{"coordinate", "array"}, kind[2]) ||
		!slices.Contains([]string{"real", "double", "integer", "pattern"}, kind[3]) || !slices.Contains([]string{"general", "symmetric", "skew-symmetric"}, kind[4]) ||
		kind[2] == "array" && kind[3] == "pattern" {
		return nil, l.fault(0, "%q is no kind of matrix known here: it must be a coordinate or array of real, integer or pattern, general, symmetric or skew-symmetric", text)
	}
	r := &mtxReader{lines: l, coordinate: kind[2] == "coordinate", pattern: kind[3] == "pattern", mirror: kind[4] != "general"}
	r.sign = 1
	if kind[4] == "skew-symmetric" {
		r.sign = -1
	}
	x, err := r.matrix()
	if err != nil {
		return nil, err
	}
	return s.tableOf(x) // with what was added up or mirrored
}

type mtxReader struct {
	*lines
	coordinate, pattern, mirror bool
	sign                        float64
}

// fields returns those of the next line that is no comment.
func (r *mtxReader) fields(what string) ([]string, error) {
	for {
		text, err := r.nextFull()
		if err == io.EOF {
			return nil, r.fault(0, "the file ends here, where %s should follow: copy or download it again", what)
		}
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(text, "%") {
			return strings.Fields(text), nil
		}
	}
}

func (r *mtxReader) matrix() (x quantmf.Mat, err error) {
	want := 2
	if r.coordinate {
		want = 3
	}
	f, err := r.fields("the size of the matrix")
	if err != nil {
		return x, err
	}
	sizes := make([]uint64, want)
	ok := len(f) == want
	for k := 0; ok && k < want; k++ {
		if k == 2 { // entries may be more than 2^31
			sizes[k], err = strconv.ParseUint(f[k], 10, 62)
			ok = err == nil
		} else {
			sizes[k], ok = count(f[k])
		}
	}
	d, n := sizes[0], sizes[1]
	switch {
	case !ok:
		return x, r.fault(0, "here must be %d whole numbers: rows, columns%s", want, map[int]string{2: "", 3: ", entries"}[want])
	case d == 0 || n == 0:
		return x, r.fault(0, "the file says that it has %d rows and %d columns", d, n)
	case r.mirror && d != n:
		return x, r.fault(0, "a symmetric matrix has as many rows as columns")
	}
	if problem := r.tooMany(d, n); problem != "" {
		return x, r.fault(0, "%s", problem)
	}
	rows, cols := int(d), int(n)
	if r.coordinate {
		return r.entries(rows, cols, sizes[2])
	}
	return r.array(rows, cols)
}

// entries reads a matrix of listed entries.
func (r *mtxReader) entries(rows, cols int, entries uint64) (quantmf.Mat, error) {
	x := quantmf.NewMat(rows, cols)
	want := 3
	if r.pattern {
		want = 2
	}
	for e := range entries {
		f, err := r.fields(fmt.Sprintf("entry %d of %d", e+1, entries))
		if err != nil {
			return x, err
		}
		if len(f) != want {
			return x, r.fault(0, "this entry has %d numbers, it should have %d", len(f), want)
		}
		var at [2]int
		for k, most := range [2]int{rows, cols} {
			v, ok := count(f[k])
			if !ok || v < 1 || v > uint64(most) {
				return x, r.fault(k+1, "%q is no index from 1 to %d", f[k], most)
			}
			at[k] = int(v) - 1
		}
		v := 1.0
		if !r.pattern {
			if v, err = r.value(f[2], 3); err != nil {
				return x, err
			}
		}
		i, j := at[0], at[1]
		x.Set(i, j, x.At(i, j)+v)
		if r.mirror && i != j {
			x.Set(j, i, x.At(j, i)+float64(r.sign*v))
		}
	}
	return x, r.end()
}

// array reads a matrix of all values; those above the diagonal are not listed
// where they follow, nor is the diagonal itself of a skew-symmetric one.
func (r *mtxReader) array(rows, cols int) (quantmf.Mat, error) {
	var values []float64 // column by column
	listed := rows * cols
	if r.mirror {
		listed = rows * (rows + 1) / 2
		if r.sign < 0 {
			listed -= rows
		}
	}
	for len(values) < listed {
		f, err := r.fields(fmt.Sprintf("value %d of %d", len(values)+1, listed))
		if err != nil {
			return quantmf.Mat{}, err
		}
		for k, text := range f {
			v, err := r.value(text, k+1)
			if err != nil {
				return quantmf.Mat{}, err
			}
			if len(values) == listed {
				return quantmf.Mat{}, r.fault(k+1, "there are more than the %d values that the size makes", listed)
			}
			values = append(values, v)
		}
	}
	x := quantmf.NewMat(rows, cols)
	at := 0
	for j := range cols {
		from := 0
		if r.mirror {
			from = j
			if r.sign < 0 {
				from++
			}
		}
		for i := from; i < rows; i++ {
			x.Set(i, j, values[at])
			if r.mirror && i != j {
				x.Set(j, i, r.sign*values[at])
			}
			at++
		}
	}
	return x, r.end()
}

// value parses a number; its sign is judged when all entries are known.
func (r *mtxReader) value(text string, column int) (float64, error) {
	o := r.Options
	o.Negative = true
	v, problem := o.number(text)
	if problem != "" {
		return 0, r.fault(column, "%s", problem)
	}
	return v, nil
}

// end reports what is left behind the last value.
func (r *mtxReader) end() error {
	for {
		switch text, err := r.nextFull(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !strings.HasPrefix(text, "%"):
			return r.fault(0, "there are more lines than the size makes")
		}
	}
}

// writeMTX lists entries where fewer than half are other than 0, else all.
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
