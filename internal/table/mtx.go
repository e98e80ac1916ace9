package table

// This file holds the Matrix Market exchange format:
//
//	%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric
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

// mtxReader is the state of the reading of a Matrix Market file.
type mtxReader struct {
	*source
	coordinate, pattern, mirror bool

	rows, cols, listed int // listed entries or values

	cells [][]byte // of a line
}

func readMTX(s *source) (*Table, error) {
	r := &mtxReader{source: s}
	if err := r.kind(); err != nil {
		return nil, err
	}
	if err := r.size(); err != nil {
		return nil, err
	}
	x, err := r.matrix()
	if err != nil {
		return nil, err
	}
	return s.tableOf(x) // checks sums and mirror images, too
}

// kind reads the first line.
func (r *mtxReader) kind() error {
	text, err := r.nextLine()
	if err != nil {
		return err
	}
	kind := strings.Fields(strings.ToLower(short(string(text))))
	if len(kind) != 5 || kind[1] != "matrix" || !slices.Contains([]string{"coordinate", "array"}, kind[2]) ||
		!slices.Contains([]string{"real", "double", "integer", "pattern"}, kind[3]) ||
		!slices.Contains([]string{"general", "symmetric"}, kind[4]) ||
		kind[2] == "array" && (kind[3] == "pattern" || kind[4] == "symmetric") {
		return r.fault(0, "%s is no kind of matrix known here: it must be a coordinate real, integer or "+
			"pattern, general or symmetric, or an array real or integer general", quote(string(text)))
	}
	r.coordinate, r.pattern, r.mirror = kind[2] == "coordinate", kind[3] == "pattern", kind[4] == "symmetric"
	return nil
}

// size reads the line of sizes.
func (r *mtxReader) size() error {
	want, names := 2, "rows, columns"
	if r.coordinate {
		want, names = 3, "rows, columns, entries"
	}
	if err := r.split("the size of the matrix"); err != nil {
		return err
	}
	var sizes [3]uint64
	ok := len(r.cells) == want
	bits := [...]int{31, 31, 62} // entries may be more than 2^31
	for k := 0; ok && k < want; k++ {
		v, err := strconv.ParseUint(string(r.cells[k]), 10, bits[k])
		sizes[k], ok = v, err == nil
	}
	d, n, listed := sizes[0], sizes[1], sizes[2]
	switch {
	case !ok:
		return r.fault(0, "here must be %d whole numbers: %s", want, names)
	case d == 0 || n == 0:
		return r.fault(0, "the file says that it has %d rows and %d columns", d, n)
	case r.coordinate && listed > d*n:
		return r.fault(0, "the file says that it has %d entries, and a matrix of %d × %d has only %d",
			listed, d, n, d*n)
	case r.mirror && d != n:
		return r.fault(0, "a symmetric matrix has as many rows as columns")
	}
	r.rows, r.cols, r.listed = int(d), int(n), int(listed)
	return nil
}

// mostCells is how many cells a line is cut into at most, and one more.
const mostCells = 64

// split cuts the next line that is neither blank nor a comment into cells. what names what it holds in the
// error where there is none.
func (r *mtxReader) split(what string, a ...any) error {
	for {
		line, err := r.nextLine()
		if err == io.EOF {
			return r.fault(0, "the file ends here, where %s should follow: copy or download it again",
				fmt.Sprintf(what, a...))
		}
		if err != nil {
			return err
		}
		r.cells = r.cells[:0]
		for cell := range bytes.FieldsSeq(line) {
			if r.cells = append(r.cells, cell); len(r.cells) > mostCells {
				break
			}
		}
		if len(r.cells) > 0 && line[0] != '%' {
			return nil
		}
	}
}

// matrix returns the matrix. A file may be read a second time from its first entry on.
func (r *mtxReader) matrix() (quantmf.Rows, error) {
	header := r.line
	e := r.source.entries(r.rows, r.cols, func(put sink) error {
		if err := r.each(put); err != nil {
			return err
		}
		return r.end()
	}, nil)
	if r.seekable != nil {
		e.again = func(put sink) error {
			return r.source.again(func(content io.Reader) error {
				second := *r
				second.source = r.beside(content)
				for range header {
					if _, err := second.nextLine(); err != nil {
						return second.changed()
					}
				}
				return second.each(put)
			})
		}
	}
	if !r.coordinate {
		e.turn()
		return e.full()
	}
	listed := uint64(r.listed)
	if r.mirror {
		listed *= 2
	}
	return e.matrix(listed)
}

// each calls put for everything that follows in the file, and for its mirror image.
func (r *mtxReader) each(put sink) error {
	if r.mirror {
		plain := put
		put = func(i, j int, v float64) error {
			err := plain(i, j, v)
			if err == nil && i != j {
				err = plain(j, i, v)
			}
			return err
		}
	}
	if !r.coordinate {
		return r.array(put)
	}
	for k := range r.listed {
		i, j, v, err := r.entry(k)
		if err == nil {
			err = put(i, j, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry reads entry k, from 0.
func (r *mtxReader) entry(k int) (i, j int, v float64, err error) {
	if i, j, v, ok := r.plainEntry(); ok {
		return i, j, v, nil
	}
	if err := r.split("entry %d of %d", k+1, r.listed); err != nil {
		return 0, 0, 0, err
	}
	want := 3
	if r.pattern {
		want = 2
	}
	if n := len(r.cells); n != want {
		return 0, 0, 0, r.fault(0, "this entry has %d numbers, it should have %d", n, want)
	}
	var at [2]int
	for k, most := range [2]int{r.rows, r.cols} {
		v, ok := count(string(r.cells[k]))
		if !ok || v < 1 || v > uint64(most) {
			return 0, 0, 0, r.fault(k+1, "%s is no index from 1 to %d", quote(string(r.cells[k])), most)
		}
		at[k] = int(v) - 1
	}
	if v = 1; !r.pattern {
		v, err = r.value(2)
	}
	return at[0], at[1], v, err
}

// plainEntry reads an entry in its plainest form: decimal numbers, one blank between each, and the end of the
// line. For any other form, and for what is not in the buffer in full, ok is false and nothing is read.
func (r *mtxReader) plainEntry() (i, j int, v float64, ok bool) {
	b := r.buf[r.source.from:r.to]
	row, at := digits(b, 0)
	if at == len(b) || at > mostDigits || b[at] != ' ' || row-1 >= uint64(r.rows) {
		return 0, 0, 0, false
	}
	at++
	column, n := digits(b[at:], 0)
	at += n
	if at == len(b) || n > mostDigits || column-1 >= uint64(r.cols) || (b[at] == '\n') != r.pattern {
		return 0, 0, 0, false
	}
	if v = 1; !r.pattern {
		if b[at] != ' ' {
			return 0, 0, 0, false
		}
		at++
		v, n, ok = decimal(b[at:], '\n', '.')
		if at += n; !ok || at == len(b) {
			return 0, 0, 0, false
		}
	}
	r.skip(at + 1)
	r.line++
	return int(row) - 1, int(column) - 1, v, true
}

// array reads all values, column by column.
func (r *mtxReader) array(put sink) error {
	listed := r.rows * r.cols
	for k := 0; k < listed; {
		if err := r.split("value %d of %d", k+1, listed); err != nil {
			return err
		}
		if len(r.cells) > mostCells {
			return r.fault(mostCells+1, "there are more than %d numbers in a line", mostCells)
		}
		for c := range r.cells {
			v, err := r.value(c)
			if err != nil {
				return err
			}
			if k == listed {
				return r.fault(c+1, "there are more than the %d values that the size makes", listed)
			}
			if err := put(k%r.rows, k/r.rows, v); err != nil {
				return err
			}
			k++
		}
	}
	return nil
}

// value parses the number in a cell. Its sign is checked when all entries are known.
func (r *mtxReader) value(cell int) (float64, error) {
	text := r.cells[cell]
	if v, n, ok := decimal(text, ' ', '.'); ok && n == len(text) {
		return v, nil
	}
	o := r.Options
	o.Negative, o.NA, o.na = true, nil, nil
	v, problem := o.number(string(text))
	if problem != "" {
		return 0, r.fault(cell+1, "%s", problem)
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
