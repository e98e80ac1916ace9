package fit

// This file holds samples of the cells of a matrix, for the short fits with which a fit begins.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// MostSampled is how many cells a sample has at most, visible or not.
const MostSampled = 1 << 26

// some returns count random numbers below n in increasing order, or all where there are no more.
func some(n, count int, src *random.Source) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if n <= count {
		return all
	}
	src.Shuffle(all)
	slices.Sort(all[:count])
	return all[:count]
}

// NotSampled returns the cells, by some rules, of the largest sample that Sample may return of cells that are
// not read, but would be by the rules of. A dry arena counts the sample, its weights and its cells.
func (c *Cells) NotSampled(a *pool.Arena, rows, cells int, of, rules Rules) *Cells {
	rows = min(c.D, rows)
	most := float64(cells) / (1 - of.Validation)
	if of.Missing {
		most = min(most/c.About.Visible, MostSampled)
	}
	n := int(min(math.Ceil(most/float64(rows)), float64(c.N)))
	if c.CountSample(a, rows, n); c.weights != nil {
		rules.Weights = &Weights{Cells: Dense{}}
	}
	return NotRead(a, rows, n, About{}, rules)
}

// CountSample counts the numbers of a sample of cells that are not read, and its weights. Listed ones take a
// number and a column; the columns of a sample may list somewhat more than others.
func (c *Cells) CountSample(a *pool.Arena, rows, columns int) {
	if of := c.About.Listed; of > 0 && !c.Partial {
		a.Count(float64(12 * 1.1 * of * float64(rows) * float64(columns)))
		return
	}
	a.Floats(rows, columns)
	if c.weights != nil {
		a.Floats(rows, columns)
	}
}

// Sample returns up to so many random rows of x', and of their columns as many random ones as make up the
// given number of visible cells, or all. Both are in their order, NaN where a cell is hidden. Rows and
// columns of which the sample has no visible cell are left out. numbers are those of the rows in x', and
// weights those of the sample, nil for none. Where the pool has stopped the sample means nothing. The sample
// of listed cells, all visible, lists them as well.
func (c *Cells) Sample(rows, cells int, src *random.Source, p *pool.Pool) (sampled Source, weights *Weights,
	numbers []int) {
	numbers = some(c.D, rows, src)
	seen := 0.0
	for _, i := range numbers {
		seen += float64(c.InRow[i]) / float64(c.N)
	}
	cols := some(c.N, int(min(math.Ceil(float64(cells)/seen), MostSampled/float64(len(numbers)),
		float64(c.N))), src)
	if list := c.NonZeros(); list != nil {
		return Source{Sparse: sampleListed(list, c.N, numbers, cols, p)}, nil, numbers
	}
	x := NewDense(len(numbers), len(cols))
	rooms := make([][]float64, p.Workers())
	p.Do(x.Rows, func(worker, r int) {
		if rooms[worker] == nil {
			rooms[worker] = make([]float64, c.N)
		}
		row := c.Row(rooms[worker], numbers[r])
		for k, j := range cols {
			x.Row(r)[k] = row[j]
		}
	})
	if c.Partial {
		x, numbers, cols = x.seen(numbers, cols)
	}
	return Source{Dense: x}, c.sampleWeights(numbers, cols, p), numbers
}

// sampleWeights returns the weights of some rows and columns, nil for none.
func (c *Cells) sampleWeights(rows, cols []int, p *pool.Pool) *Weights {
	if c.weights == nil {
		return nil
	}
	w, room := NewDense(len(rows), len(cols)), make([][]float64, p.Workers())
	p.Do(w.Rows, func(worker, r int) {
		if room[worker] == nil {
			room[worker] = make([]float64, c.N)
		}
		c.Weigh(room[worker], nil, rows[r])
		for k, j := range cols {
			w.Row(r)[k] = room[worker][j]
		}
	})
	return &Weights{Cells: w}
}

// seen returns m without the rows and columns that have NaN alone, in the same memory, and of the numbers of
// its rows and columns those that are left.
func (m Dense) seen(numbers, columns []int) (x Dense, rows, cols []int) {
	seenRow, seenCol := make([]bool, m.Rows), make([]bool, m.Cols)
	for r := range m.Rows {
		for c, v := range m.Row(r) {
			if v == v {
				seenRow[r], seenCol[c] = true, true
			}
		}
	}
	for c, j := range columns {
		if seenCol[c] {
			cols = append(cols, j)
		}
	}
	width := 0
	for r, i := range numbers {
		if !seenRow[r] {
			continue
		}
		to := m.Row(len(rows))
		width = 0
		for c, v := range m.Row(r) {
			if seenCol[c] {
				to[width] = v
				width++
			}
		}
		rows = append(rows, i)
	}
	m.Rows, m.Cols = len(rows), width
	return m, rows, cols
}

// sampleListed returns the given rows and columns of a matrix of n columns whose cells list returns.
func sampleListed(list func(i int, cols []uint32, values []float64) ([]uint32, []float64), n int, rows,
	cols []int, p *pool.Pool) *Sparse {
	const out = math.MaxUint32
	x := &Sparse{Cols: len(cols), Start: make([]int, len(rows)+1)}
	places := make([]uint32, n) // of the columns of the matrix in x, or out
	for j := range places {
		places[j] = out
	}
	for c, j := range cols {
		places[j] = uint32(c)
	}
	rooms := make([][]float64, p.Workers())
	each := func(visit func(r int, cols []uint32, values []float64)) {
		p.Do(len(rows), func(worker, r int) {
			if rooms[worker] == nil {
				rooms[worker] = make([]float64, 0, n)
			}
			cols, values := list(rows[r], nil, rooms[worker])
			visit(r, cols, values)
		})
	}
	each(func(r int, cols []uint32, _ []float64) {
		for _, j := range cols {
			if places[j] != out {
				x.Start[r+1]++
			}
		}
	})
	if p.Err() != nil {
		return x
	}
	for r := range rows {
		x.Start[r+1] += x.Start[r]
	}
	x.Index, x.Wide = make([]uint32, x.Start[len(rows)]), make([]float64, x.Start[len(rows)])
	each(func(r int, cols []uint32, values []float64) {
		to := x.Start[r]
		for k, j := range cols {
			if places[j] != out {
				x.Index[to], x.Wide[to] = places[j], values[k]
				to++
			}
		}
	})
	return x
}
