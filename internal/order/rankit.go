package order

// This file holds the normal scores of the rows of a matrix,
//
//	Φ⁻¹((rank-1/2)/n) + lift,
//
// ranks among the n visible values of the row, ties averaged, lifted to be positive and times a factor of the
// row. They are made whenever a row is read, at the cost of sorting what is not 0 in it.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
)

// Scores makes the normal scores of rows. Several goroutines may read them at once.
type Scores struct {
	n      int
	seen   []int
	by     []float64
	row    func(space []float64, i int) []float64
	lift   float64
	spaces chan *space // those that nobody is in
}

// NewScores returns the scores of rows of n numbers: row i is by row, in space or where it lies, NaN where a
// cell is not visible; seen counts those that are, and by is the factor of each row. So many goroutines, or
// some more, read them; a dry arena counts what they take.
func NewScores(a *pool.Arena, n int, seen []int, by []float64, row func(space []float64, i int) []float64,
	readers int) *Scores {
	for range readers {
		if a.Dry() {
			newSpace(a, n)
		}
	}
	return &Scores{n: n, seen: seen, by: by, row: row, lift: max(3, 0.1-elem.NormalQuantile(0.5/float64(n))),
		spaces: make(chan *space, readers)}
}

// space is what the scores of a row are made in.
type space struct {
	Room
	values []float64
	at     []int
}

func newSpace(a *pool.Arena, n int) *space {
	w := &space{values: a.Floats(n), at: pool.Make[int](a, n)}
	w.Resize(a, n)
	return w
}

// Dims returns the sizes.
func (s *Scores) Dims() (rows, cols int) { return len(s.seen), s.n }

// ReadRow fills x with the scores of row i, NaN where a cell is not visible. It has no error.
func (s *Scores) ReadRow(x []float64, i int) error {
	var w *space
	select {
	case w = <-s.spaces:
	default:
		w = newSpace(nil, s.n)
	}
	seen, k, below, by := s.seen[i], 0, 0, max(s.by[i], divergence.Tiny)
	row := s.row(x, i)
	for j, v := range row {
		if v == v && v != 0 {
			w.values[k], w.at[k] = v, j
			k++
			if v < 0 {
				below++
			}
		}
	}
	// score is that of values whose ranks are from p+1 to end.
	score := func(p, end int) float64 {
		rank := float64(p+end) / 2 // the mean of p+1/2, ..., end-1/2
		return (elem.NormalQuantile(rank/float64(seen)) + s.lift) * by
	}
	values, zeros := w.values, seen-k
	zero := 0.0 // the score of values that are 0
	if zeros > 0 {
		zero = score(below, below+zeros)
	}
	for j, v := range row {
		if v == 0 {
			v = zero
		}
		x[j] = v
	}
	perm := w.Sort(values[:k])
	for p := 0; p < k; {
		end := p
		for end < k && values[perm[end]] == values[perm[p]] {
			end++
		}
		rank := p
		if p >= below {
			rank += zeros
		}
		v := score(rank, rank+end-p)
		for _, j := range perm[p:end] {
			x[w.at[j]] = v
		}
		p = end
	}
	select {
	case s.spaces <- w:
	default:
	}
	return nil
}
