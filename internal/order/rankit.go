package order

// This file holds the normal scores of the rows of a matrix,
//
//	Φ⁻¹((rank-1/2)/n) + lift,
//
// ranks among the n visible values of the row, ties averaged, lifted to be positive and times a factor of the
// row. They are made whenever a row is read, at the cost of sorting what is not 0 in it.
//
// Where values have weights, rank-1/2 is the weight of the values below and half of that of the value itself
// and its ties, and n is the sum: with whole numbers, the score of a row that has each value as often. Of a
// weight far below 1/n the quantile may lie below -lift; the score is then the least.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
)

// Scores makes the normal scores of rows. Several goroutines may read them at once.
type Scores struct {
	n      int
	of     Rows
	by     []float64
	lift   float64
	spaces chan *space // those that nobody is in
}

// Rows are what scores are made of.
type Rows interface {
	// Row returns row i, in space or where it lies, NaN where a cell is not visible.
	Row(space []float64, i int) []float64
	// Weights returns the weights of its cells, in space; nil: all are 1.
	Weights(space []float64, i int) []float64
}

// leastScore is what a score is at least, in units of a deviation.
const leastScore = 0.1

// NewScores returns the scores of rows of n numbers; by is the factor of each row. So many goroutines, or
// some more, read them; a dry arena counts what they take.
func NewScores(a *pool.Arena, n int, of Rows, by []float64, readers int) *Scores {
	for range readers {
		if a.Dry() {
			newSpace(a, n)
		}
	}
	return &Scores{n: n, of: of, by: by, lift: max(3, leastScore-elem.NormalQuantile(0.5/float64(n))),
		spaces: make(chan *space, readers)}
}

// space is what the scores of a row are made in.
type space struct {
	Room
	values  []float64
	at      []int
	weights []float64
}

func newSpace(a *pool.Arena, n int) *space {
	w := &space{values: a.Floats(n), weights: a.Floats(n), at: pool.Make[int](a, n)}
	w.Resize(a, n)
	return w
}

// Dims returns the sizes.
func (s *Scores) Dims() (rows, cols int) { return len(s.by), s.n }

// ReadRow fills x with the scores of row i, NaN where a cell is not visible. It has no error.
func (s *Scores) ReadRow(x []float64, i int) error {
	var w *space
	select {
	case w = <-s.spaces:
	default:
		w = newSpace(nil, s.n)
	}
	row, weights := s.of.Row(x, i), s.of.Weights(w.weights, i)
	weight := func(j int) float64 {
		if weights == nil {
			return 1
		}
		return weights[j]
	}
	by := max(s.by[i], divergence.Tiny)
	// The values that are not 0, and the weights of those that are below 0, 0, and above.
	k, below, zeros, above := 0, 0.0, 0.0, 0.0
	for j, v := range row {
		switch {
		case v > 0:
			above += weight(j)
		case v < 0:
			below += weight(j)
		case v == 0:
			zeros += weight(j)
		}
		if v == v && v != 0 {
			w.values[k], w.at[k] = v, j
			k++
		}
	}
	seen := below + zeros + above
	// score is that of values with ranks above p, up to end.
	score := func(p, end float64) float64 {
		rank := (p + end) / 2 // the mean of p+1/2, ..., end-1/2
		if weights == nil {
			return (elem.NormalQuantile(rank/seen) + s.lift) * by
		}
		at := elem.NormalQuantile(rank/seen) + s.lift
		return min(max(at, leastScore), 2*s.lift-leastScore) * by
	}
	zero := score(below, below+zeros) // of values that are 0
	for j, v := range row {
		if v == 0 {
			v = zero
		}
		x[j] = v
	}
	values, rank := w.values[:k], 0.0
	perm := w.Sort(values)
	for p := 0; p < k; {
		end := p
		if values[perm[p]] > 0 && (p == 0 || values[perm[p-1]] < 0) {
			rank += zeros
		}
		first := rank
		for end < k && values[perm[end]] == values[perm[p]] {
			rank += weight(w.at[perm[end]])
			end++
		}
		v := score(first, rank)
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
