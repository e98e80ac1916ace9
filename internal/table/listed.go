package table

// This file holds matrices that stay sparse (quantmf.Sparse), from files that list entries: Matrix Market and
// SciPy's archives.
//
// Files list entries in any order; 10x folders list them column by column. So reading goes through the
// entries twice. The first pass counts the entries of each row, and sees whether single precision holds all
// of them exactly. The second pass puts each entry into its place. Memory then holds the sparse matrix alone,
// 8 or 12 bytes an entry. A pipe cannot be read twice: its entries are held as they come, 16 bytes an entry.

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/quantmf/quantmf"
)

// sparseShare is the least number of cells for each listed cell at which a matrix stays sparse. The sparse
// matrix then takes at most half of the memory of all numbers.
const sparseShare = 3

// mostSparseRows is the largest number of rows for which a header alone may claim memory.
const mostSparseRows = spare / 8

// staysSparse tells whether a matrix with this number of listed entries stays sparse.
func (s *source) staysSparse(rows, cols, entries uint64) bool {
	return s.Rows && !s.Transpose && rows <= mostSparseRows && entries <= rows*cols/sparseShare
}

// listed are the entries of a file. A file allows a second pass, a pipe does not.
type listed struct {
	*source
	rows, cols uint64
	// calls put for every entry and ends at the end of the file
	each  func(put func(i, j uint32, v float64) error) error
	again func(put func(i, j uint32, v float64) error) error // the same once more; nil for a pipe
	held  [][]entry                                          // of a pipe
}

// sparse reads the entries into sparse rows.
func (l *listed) sparse() (*quantmf.Sparse, error) {
	if err := l.take(16*int64(l.rows), "so many rows"); err != nil {
		return nil, err
	}
	start := make([]int, l.rows+1)
	single, count := true, 0
	note := func(i, j uint32, v float64) error {
		start[i+1]++
		count++
		single = single && (float64(float32(v)) == v || v != v)
		return nil
	}
	if l.again == nil {
		if err := l.hold(note); err != nil {
			return nil, err
		}
	} else if err := l.each(note); err != nil {
		return nil, err
	}
	if frame := 64 * (l.rows + l.cols); frame > spare+packing*uint64(count) { // starts and names
		return nil, l.tooEmpty(int64(frame), l.rows, l.cols, count)
	}
	for i := range l.rows {
		start[i+1] += start[i]
	}
	if single {
		x, err := inRows[float32](l, start, count)
		if x != nil || err != nil {
			return x, err
		}
	}
	return inRows[float64](l, start, count)
}

// listed returns the entries of a Matrix Market file, whose header gives their number.
func (r *mtxReader) listed(rows, cols, entries uint64) *listed {
	header := r.line // lines before the first entry
	l := &listed{source: r.source, rows: rows, cols: cols,
		each: func(put func(i, j uint32, v float64) error) error {
			err := r.each(rows, cols, entries, put)
			if err == nil {
				err = r.end()
			}
			return err
		}}
	if r.source.again != nil {
		l.again = func(put func(i, j uint32, v float64) error) error {
			return r.source.again(func(content io.Reader) error {
				second := *r
				second.source = &source{Options: r.Options, budget: r.budget, file: r.file, r: content,
					buf: make([]byte, buffered)}
				for range header {
					if _, err := second.nextLine(); err != nil {
						return second.changed()
					}
				}
				return second.each(rows, cols, entries, put)
			})
		}
	}
	return l
}

// each calls put for every entry that follows in the file, and for its mirror image.
func (r *mtxReader) each(rows, cols, entries uint64, put func(i, j uint32, v float64) error) error {
	f := make([][]byte, 3)
	if r.pattern {
		f = f[:2]
	}
	for e := range entries {
		i, j, v, ok := r.plainEntry(rows, cols)
		if !ok {
			var err error
			if i, j, v, err = r.entry(f, e, rows, cols, entries); err != nil {
				return err
			}
		}
		if err := put(i, j, v); err != nil {
			return err
		}
		if r.mirror && i != j {
			if err := put(j, i, float64(r.sign*v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainEntry reads an entry in its plainest form: two indices and a decimal number, one blank between each,
// and the end of the line. For any other form ok is false and nothing is read.
func (r *mtxReader) plainEntry(rows, cols uint64) (i, j uint32, v float64, ok bool) {
	b := r.buf[r.source.from:r.to]
	at := 0
	index := func() (uint64, bool) {
		n, from := uint64(0), at
		for ; at < len(b) && at < from+10 && b[at]-'0' <= 9; at++ {
			n = 10*n + uint64(b[at]-'0')
		}
		return n, at > from && at < len(b)
	}
	row, ok := index()
	if !ok || b[at] != ' ' {
		return 0, 0, 0, false
	}
	at++
	col, ok := index()
	if !ok || row-1 >= rows || col-1 >= cols {
		return 0, 0, 0, false
	}
	v = 1
	if !r.pattern {
		if b[at] != ' ' {
			return 0, 0, 0, false
		}
		at++
		from := at
		if n, whole := index(); whole && b[at] == '\n' {
			v = float64(n)
		} else {
			var length int
			if v, length, ok = decimal(b[from:], '\n'); !ok {
				return 0, 0, 0, false
			}
			at = from + length
		}
	}
	if at == len(b) || b[at] != '\n' {
		return 0, 0, 0, false
	}
	r.skip(at + 1)
	r.line++
	return uint32(row - 1), uint32(col - 1), v, true
}

// hold reads the entries of a pipe and keeps them.
func (l *listed) hold(note func(i, j uint32, v float64) error) error {
	count := 0
	l.again = func(put func(i, j uint32, v float64) error) error {
		for _, piece := range l.held {
			for _, e := range piece {
				if err := put(e.i, e.j, e.v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return l.each(func(i, j uint32, v float64) error {
		last := len(l.held) - 1
		if last < 0 || len(l.held[last]) == cap(l.held[last]) {
			room := min(max(256, count), piece)
			if err := l.take(16*int64(room), "so many entries"); err != nil {
				return err
			}
			l.held = append(l.held, make([]entry, 0, room))
			last++
		}
		l.held[last] = append(l.held[last], entry{i, j, v})
		count++
		return note(i, j, v)
	})
}

func (s *source) changed() error {
	return &Error{File: s.file, Line: s.line,
		Problem: "the file changed while it was read: wait until it is written"}
}

// inRows puts count entries into rows, row i from start[i] on. It sorts rows that are not in order, and adds
// up entries that are listed twice, in the order of the file. It returns nil if a sum is not exact in the
// precision of F.
func inRows[F float32 | float64](l *listed, start []int, count int) (*quantmf.Sparse, error) {
	bytes := int64(12)
	if _, single := any(F(0)).(float32); single {
		bytes = 8
	}
	if err := l.take(bytes*int64(count), fmt.Sprintf("%d entries", count)); err != nil {
		return nil, err
	}
	index, values := make([]uint32, count), make([]F, count)
	next := slices.Clone(start)
	err := l.again(func(i, j uint32, v float64) error {
		at := next[i]
		if at == start[i+1] || float64(F(v)) != v && v == v {
			return l.changed()
		}
		index[at], values[at] = j, F(v)
		next[i]++
		return nil
	})
	if err != nil {
		return nil, err
	}
	var row []listedCell
	begin := next[:1] // of the rows as they will lie: no row grows
	to := 0
	for i := range len(start) - 1 {
		from, end := start[i], start[i+1]
		if next[i] != end {
			return nil, l.changed()
		}
		begin = append(begin[:i], to)
		if increasing(index[from:end]) {
			to += copy(values[to:], values[from:end])
			copy(index[to-(end-from):], index[from:end])
			continue
		}
		row = row[:0]
		for k := from; k < end; k++ {
			row = append(row, listedCell{index[k], float64(values[k])})
		}
		slices.SortStableFunc(row, func(a, b listedCell) int { return cmp.Compare(a.j, b.j) })
		for k := 0; k < len(row); to++ {
			j, sum := row[k].j, 0.0
			for ; k < len(row) && row[k].j == j; k++ {
				sum += row[k].v
			}
			if float64(F(sum)) != sum && sum == sum {
				l.give(bytes * int64(count))
				return nil, nil
			}
			index[to], values[to] = j, F(sum)
		}
	}
	return quantmf.NewSparse(int(l.cols), append(begin, to), index[:to], values[:to])
}

// listedCell is an entry of a row.
type listedCell struct {
	j uint32
	v float64
}

func increasing(v []uint32) bool {
	for k := 1; k < len(v); k++ {
		if v[k-1] >= v[k] {
			return false
		}
	}
	return true
}

// sparseTable does for a matrix that stays sparse what tableOf does for others.
func (s *source) sparseTable(x *quantmf.Sparse) (*Table, error) {
	d, n := x.Dims()
	if err := s.take(40*int64(d+n), "names"); err != nil {
		return nil, err
	}
	t := &Table{File: s.file, Features: numbered("f", d), Samples: numbered("s", n), Held: x,
		Taken: "no names in the file"}
	var cols []uint32
	var values []float64
	for i := range d {
		cols, values = x.NonZeros(i, cols, values)
		for k, v := range values {
			if s.fine(v) {
				continue
			}
			if problem := s.check(v); problem != "" {
				return nil, t.Error(i, int(cols[k]), problem)
			}
		}
	}
	return t, nil
}

// rebuilt returns rows of x with f, which keeps 0, applied to every listed number; in single precision if
// that holds all of them exactly.
func rebuilt(x *quantmf.Sparse, rows []int, f func(float64) float64) *quantmf.Sparse {
	_, n := x.Dims()
	var cols []uint32
	var values []float64
	start, single := []int{0}, true
	for _, i := range rows {
		cols, values = x.NonZeros(i, cols, values)
		start = append(start, start[len(start)-1]+len(cols))
		for _, v := range values {
			v = f(v)
			single = single && (float64(float32(v)) == v || v != v)
		}
	}
	index := make([]uint32, 0, start[len(rows)])
	var narrow []float32
	var wide []float64
	if single {
		narrow = make([]float32, 0, cap(index))
	} else {
		wide = make([]float64, 0, cap(index))
	}
	for _, i := range rows {
		cols, values = x.NonZeros(i, cols, values)
		index = append(index, cols...)
		for _, v := range values {
			if single {
				narrow = append(narrow, float32(f(v)))
			} else {
				wide = append(wide, f(v))
			}
		}
	}
	var y *quantmf.Sparse // of rows of a matrix that is one: there is no error
	if single {
		y, _ = quantmf.NewSparse(n, start, index, narrow)
	} else {
		y, _ = quantmf.NewSparse(n, start, index, wide)
	}
	return y
}
