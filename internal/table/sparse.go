package table

// This file makes a matrix of a file that lists entries: all numbers (quantmf.Mat), or sparse rows
// (quantmf.Sparse) where at most a third of the cells is listed. Cells that are not listed are 0; entries of
// a cell that is listed more than once are added up in the order of the file.
//
// Files list entries in any order; 10x folders list them column by column. So sparse rows take two passes
// over the entries. The first pass counts those of each row, and sees whether single precision holds all of
// them exactly. The second pass puts each entry into its place. Memory then holds the sparse matrix alone, 8
// or 12 bytes an entry. A pipe cannot be read twice: its entries are held as they come, 16 bytes an entry.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quantmf/quantmf"
)

// sparseShare is the least number of cells for each listed cell at which a matrix stays sparse. The sparse
// matrix then takes at most half of the memory of all numbers.
const sparseShare = 3

// A matrix may take spare bytes and packing bytes an entry that is listed: of all numbers at least one in
// 2048 is. So the size in the header of a short file cannot claim much memory.
const (
	spare   = 64 << 20
	packing = 8 * 2048
)

// mostSparseRows is the largest number of rows for which a header alone may claim memory.
const mostSparseRows = spare / 8

// sink takes an entry of a matrix.
type sink = func(i, j int, v float64) error

// pass calls put for every entry, in the order of the file.
type pass = func(put sink) error

// entries are those that a file lists of a matrix.
type entries struct {
	*source
	rows, cols int
	first      pass // to the end of the file
	again      pass // once more; nil for a pipe
	held       list[entry]
}

type entry struct {
	i, j uint32
	v    float64
}

func (s *source) entries(rows, cols int, first, again pass) *entries {
	return &entries{source: s, rows: rows, cols: cols, first: first, again: again,
		held: list[entry]{s: s, bytes: 16, what: "entries"}}
}

// matrix returns the matrix of so many listed entries.
func (e *entries) matrix(listed uint64) (quantmf.Rows, error) {
	most := uint64(e.rows) * uint64(e.cols) / sparseShare
	e.turn()
	if !e.Rows || e.rows > mostSparseRows || listed > most {
		return e.full()
	}
	x, err := e.sparse()
	if err == nil {
		err = e.notEmpty(64*float64(e.rows+e.cols), x.Listed()) // starts and names
	}
	return x, err
}

// turn makes the entries those of the transposed matrix where that is what is to be read: at no cost, as they
// are put into rows while they come.
func (e *entries) turn() {
	if !e.Transpose {
		return
	}
	turned := func(all pass) pass {
		if all == nil {
			return nil
		}
		return func(put sink) error {
			return all(func(i, j int, v float64) error { return put(j, i, v) })
		}
	}
	e.rows, e.cols, e.first, e.again = e.cols, e.rows, turned(e.first), turned(e.again)
	e.turned = true
}

// hold keeps an entry.
func (e *entries) hold(i, j int, v float64) error {
	to, err := e.held.next(1)
	if err == nil {
		to[0] = entry{uint32(i), uint32(j), v}
	}
	return err
}

// full returns the matrix of all numbers. It holds entries as they come until there is one for every 16
// numbers, or all are known.
func (e *entries) full() (quantmf.Rows, error) {
	var x quantmf.Mat
	add := func(i, j int, v float64) {
		if cell := &x.Data[i*e.cols+j]; *cell == 0 {
			*cell = v // so that -0 stays what it is
		} else {
			*cell += v
		}
	}
	fill := func() error {
		if err := e.takeMatrix(uint64(e.rows), uint64(e.cols)); err != nil {
			return err
		}
		x = quantmf.NewMat(e.rows, e.cols)
		for k, piece := range e.held.pieces {
			for _, c := range piece {
				add(int(c.i), int(c.j), c.v)
			}
			e.give(16 * int64(cap(piece)))
			e.held.pieces[k] = nil
		}
		return nil
	}
	err := e.mayTakeMatrix(uint64(e.rows), uint64(e.cols))
	if err != nil {
		return nil, err
	}
	most := e.rows * e.cols / 16
	err = e.first(func(i, j int, v float64) error {
		if x.Data != nil {
			add(i, j, v)
			return nil
		}
		if err := e.hold(i, j, v); err != nil || e.held.count <= most {
			return err
		}
		return fill()
	})
	if err == nil && x.Data == nil {
		if err = e.notEmpty(8*float64(e.rows)*float64(e.cols), e.held.count); err == nil {
			err = fill()
		}
	}
	return x, err
}

// notEmpty returns an error for a matrix of so many bytes with so few entries that its header must be wrong.
func (e *entries) notEmpty(bytes float64, count int) error {
	if bytes <= spare+packing*float64(count) {
		return nil
	}
	return &Error{File: e.file, Err: ErrMemory,
		Problem: fmt.Sprintf("%d × %d numbers with only %d of them in the file would take %s: leave out "+
			"the rows and columns that hold nothing", e.rows, e.cols, count,
			Size(8*float64(e.rows)*float64(e.cols)))}
}

// sparse returns the matrix in sparse rows.
func (e *entries) sparse() (*quantmf.Sparse, error) {
	first := e.first
	if e.again == nil {
		first = func(put sink) error {
			return e.first(func(i, j int, v float64) error {
				if err := e.hold(i, j, v); err != nil {
					return err
				}
				return put(i, j, v)
			})
		}
		e.again = func(put sink) error {
			for _, piece := range e.held.pieces {
				for _, c := range piece {
					if err := put(int(c.i), int(c.j), c.v); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	if err := e.take(16*int64(e.rows), "so many rows"); err != nil {
		return nil, err
	}
	start := make([]int, e.rows+1)
	single := true
	err := first(func(i, j int, v float64) error {
		start[i+1]++
		single = single && (float64(float32(v)) == v || v != v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range e.rows {
		start[i+1] += start[i]
	}
	if single {
		if x, err := inRows[float32](e, start); x != nil || err != nil {
			return x, err
		}
	}
	return inRows[float64](e, start)
}

func (s *source) changed() error {
	return s.fault(0, "the file changed while it was read: wait until it is written")
}

// inRows puts the entries into rows, row i from start[i] on. It sorts rows that are not in order, and adds up
// entries of one cell. It returns nil if a sum is not exact in the precision of F.
func inRows[F float32 | float64](e *entries, start []int) (*quantmf.Sparse, error) {
	count, bytes := start[e.rows], int64(12)
	if _, single := any(F(0)).(float32); single {
		bytes = 8
	}
	if err := e.take(bytes*int64(count), fmt.Sprintf("%d entries", count)); err != nil {
		return nil, err
	}
	index, values := make([]uint32, count), make([]F, count)
	next := slices.Clone(start)
	err := e.again(func(i, j int, v float64) error {
		at := next[i]
		if at == start[i+1] || float64(F(v)) != v && v == v {
			return e.changed()
		}
		index[at], values[at] = uint32(j), F(v)
		next[i]++
		return nil
	})
	if err != nil {
		return nil, err
	}
	var row []entry
	begin := next[:1] // of the rows as they will lie: no row grows
	to := 0
	for i := range e.rows {
		from, end := start[i], start[i+1]
		if next[i] != end {
			return nil, e.changed()
		}
		begin = append(begin[:i], to)
		if increasing(index[from:end]) {
			to += copy(values[to:], values[from:end])
			copy(index[to-(end-from):], index[from:end])
			continue
		}
		row = row[:0]
		for k := from; k < end; k++ {
			row = append(row, entry{j: index[k], v: float64(values[k])})
		}
		slices.SortStableFunc(row, func(a, b entry) int { return cmp.Compare(a.j, b.j) })
		for k := 0; k < len(row); to++ {
			j, sum := row[k].j, 0.0
			for ; k < len(row) && row[k].j == j; k++ {
				sum += row[k].v
			}
			if float64(F(sum)) != sum && sum == sum {
				e.give(bytes * int64(count))
				return nil, nil
			}
			index[to], values[to] = j, F(sum)
		}
	}
	return quantmf.NewSparse(e.cols, append(begin, to), index[:to], values[:to])
}

func increasing(v []uint32) bool {
	for k := 1; k < len(v); k++ {
		if v[k-1] >= v[k] {
			return false
		}
	}
	return true
}

// rebuilt returns rows and columns of x, nil for all, with f, which keeps 0, applied to every listed number;
// in single precision if that holds all of them exactly.
func rebuilt(x *quantmf.Sparse, rows, columns []int, f func(float64) float64) *quantmf.Sparse {
	d, n := x.Dims()
	all := make([]int, max(d, n))
	for i := range all {
		all[i] = i
	}
	if rows == nil {
		rows = all[:d]
	}
	place := all[:n]
	if columns != nil {
		place = slices.Repeat([]int{-1}, n)
		for to, j := range columns {
			place[j] = to
		}
		n = len(columns)
	}
	var cols []uint32
	var values []float64
	each := func(put sink) error {
		for to, i := range rows {
			cols, values = x.NonZeros(i, cols, values)
			for k, v := range values {
				if j := place[cols[k]]; j >= 0 {
					put(to, j, f(v)) // of a matrix that is one: there is no error
				}
			}
		}
		return nil
	}
	unbounded := &source{budget: &budget{math.MaxInt64, math.MaxInt64}}
	y, _ := unbounded.entries(len(rows), n, each, each).sparse()
	return y
}
