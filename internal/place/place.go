// Package place has the coordinates of new columns on what a fit has learnt of the rows: a column x
// of d values, NaN where a cell is missing, is projected on
//
//	[Linear]  min over v >= 0 of  Σ_i Δ(x_i, (Uv)_i)
//	[Mapped]  min over v > 0  of  Σ_i Δ(x_i, T_i((Uv)_i)),   T_i increasing and given.
//
// Columns lie side by side in tiles (tile.go), each with a search of its own, and their sums do not
// mix: the bits of a column depend neither on those beside it nor on the number of workers. A Linear and
// a Mapped are what all workers share, not changed once made.
package place

import (
	"context"
	"sync/atomic"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	mostSteps = 200
	smallFall = 1e-10 // relative fall of the loss at which a search ends
)

// Sizes are those of a search: n columns of d features, k coordinates each, how many workers at most, 0 for
// GOMAXPROCS, and how many columns of a worker lie side by side at most, 0 for Widest.
type Sizes struct{ D, N, K, Workers, Wide int }

// wide is how many columns of each of so many workers lie side by side.
func (s *Sizes) wide(workers int) int {
	most := s.Wide
	if most == 0 {
		most = Widest
	}
	return min((s.N+workers-1)/workers, most)
}

// Columns returns the coordinates of n columns, k × n. column fills x with column j; it may be
// called by several goroutines at once.
func Columns(ctx context.Context, m Method, of Sizes, column func(x []float64, j int)) ([]float64, error) {
	d, n, k := of.D, of.N, of.K
	out := make([]float64, k*n)
	p := pool.New(of.Workers, (n+kernel.Lanes-1)/kernel.Lanes)
	defer p.Close()
	var next atomic.Int64
	all := allPairs(m)
	p.Do(p.Workers(), func(worker, piece int) {
		t := newTile(m, of.wide(p.Workers()), all)
		t.locate(ctx, func(x []float64) (int, bool) {
			j := int(next.Add(1)) - 1
			if j < n {
				column(x, j)
			}
			return j, j < n
		}, func(j int, v []float64) {
			for c, x := range v {
				out[c*n+j] = x
			}
		}, make([]float64, d), make([]float64, k))
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// Count counts what NewLinear and Columns take of complete columns, or of columns that lack cells.
func Count(a *pool.Arena, of Sizes, partial bool) {
	d, k, workers := of.D, of.K, pool.Count(of.Workers, (of.N+kernel.Lanes-1)/kernel.Lanes)
	pairs := k * (k + 1) / 2
	a.Floats(2, d, k)
	a.Floats(d, k) // room that U grew through
	a.Floats(d)
	if float64(d)*float64(pairs) <= kept {
		a.Floats(d, pairs)
	}
	wide := min(kernel.Pad(of.wide(workers)), Widest)
	columns := wide + 3
	if partial {
		columns += wide
	}
	a.Floats(workers, d, columns)
	a.Floats(workers, max(together, wide), 5+(pairs+kernel.Lanes-1)/kernel.Lanes)
	a.Floats(workers, wide, k+pairs)
}

// dot returns Σ a_c b_c.
func dot(a, b []float64) float64 {
	s := 0.0
	b = b[:len(a)]
	for c, v := range a {
		s += float64(v * b[c])
	}
	return s
}
