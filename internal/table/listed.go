package table

// This file holds matrices whose files list their entries, as Matrix Market files do, where they stay
// sparse: quantmf.Sparse, its rows one after another with their columns increasing.
//
// Files list entries in any order, those of 10x column by column. So the entries are gone through
// twice: once to count those of each row and to see whether single precision holds them all exactly,
// once to put each where it belongs. Then only the sparse matrix itself is ever held, 8 or 12 bytes an
// entry. What comes through a pipe cannot be read twice, and is held as it comes meanwhile, 16 bytes an
// entry.

import (
	"cmp"
	"io"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/say"
)

// sparseShare is the number of cells for each that is listed from which on a matrix stays sparse: it
// takes at most half of what all numbers would take.
const sparseShare = 3

// mostSparseRows is the most rows that a sparse matrix may have by its header alone.
const mostSparseRows = spare / 8

// staysSparse tells whether a matrix of so many listed entries is to stay sparse.
func (r *mtxReader) staysSparse(rows, cols, entries uint64) bool {
	if r.mirror {
		entries *= 2
	}
	return r.Rows && !r.Transpose && rows <= mostSparseRows && entries <= rows*cols/sparseShare
}

// listed are the entries of a file, which can be gone through more than once.
type listed struct {
	*mtxReader
	rows, cols, entries uint64
	header              int       // lines before the first entry
	held                [][]entry // of a pipe
}

// sparse reads the entries into sparse rows.
func (r *mtxReader) sparse(rows, cols, entries uint64) (*quantmf.Sparse, error) {
	l := &listed{mtxReader: r, rows: rows, cols: cols, entries: entries, header: r.line}
	if err := r.take(16*int64(rows), "so many rows"); err != nil {
		return nil, err
	}
	start := make([]int, rows+1)
	single, count := true, 0
	note := func(i, j uint32, v float64) error {
		start[i+1]++
		count++
		single = single && (float64(float32(v)) == v || v != v)
		return nil
	}
	if r.again == nil {
		if err := l.hold(note); err != nil {
			return nil, err
		}
	} else if err := l.each(r.source, note); err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if frame := 64 * (rows + cols); frame > spare+packing*uint64(count) { // starts and names
		return nil, r.tooEmpty(int64(frame), rows, cols, count)
	}
	for i := range rows {
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

// each calls put for every entry that follows in the file, and for its mirror image.
func (l *listed) each(s *source, put func(i, j uint32, v float64) error) error {
	r := *l.mtxReader
	r.source = s
	f := make([][]byte, 3)
	if r.pattern {
		f = f[:2]
	}
	for e := range l.entries {
		i, j, v, ok := r.plainEntry(l.rows, l.cols)
		if !ok {
			var err error
			if i, j, v, err = r.entry(f, e, l.rows, l.cols, l.entries); err != nil {
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

// plainEntry reads an entry that is written plainly: two indices and a decimal number, a blank between
// them and a line's end behind. ok is false, and nothing is read, where it is not.
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

// hold goes through the entries of a pipe, and keeps them.
func (l *listed) hold(note func(i, j uint32, v float64) error) error {
	count := 0
	return l.each(l.source, func(i, j uint32, v float64) error {
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

// repeat goes through the entries once more.
func (l *listed) repeat(put func(i, j uint32, v float64) error) error {
	if l.again == nil {
		for _, piece := range l.held {
			for _, e := range piece {
				if err := put(e.i, e.j, e.v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return l.again(func(content io.Reader) error {
		s := &source{Options: l.Options, budget: l.budget, file: l.file, r: content, buf: make([]byte, buffered)}
		for range l.header {
			if _, err := s.nextLine(); err != nil {
				return s.changed()
			}
		}
		return l.each(s, put)
	})
}

func (s *source) changed() error {
	return &Error{File: s.file, Line: s.line, Problem: "the file changed while it was read: wait until it is written"}
}

// inRows puts count entries into rows, row i from start[i] on, sorts those that are not in order, and
// adds up what is listed twice, in the order of the file. It returns nil where a sum is not exact in
// the precision of F.
func inRows[F float32 | float64](l *listed, start []int, count int) (*quantmf.Sparse, error) {
	bytes := int64(12)
	if _, single := any(F(0)).(float32); single {
		bytes = 8
	}
	if err := l.take(bytes*int64(count), say.Sprintf("%d entries", count)); err != nil {
		return nil, err
	}
	index, values := make([]uint32, count), make([]F, count)
	next := slices.Clone(start)
	err := l.repeat(func(i, j uint32, v float64) error {
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

// sparseTable is tableOf for a matrix that stays sparse.
func (s *source) sparseTable(x *quantmf.Sparse) (*Table, error) {
	d, n := x.Dims()
	if err := s.take(40*int64(d+n), "names"); err != nil {
		return nil, err
	}
	t := &Table{File: s.file, Features: numbered("f", d), Samples: numbered("s", n), Held: x, Taken: "no names in the file"}
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

// rebuilt returns rows of x with f of every number that is listed, where f(0) is 0: in single precision
// where that holds them all.
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
