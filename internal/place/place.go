// Package place has the coordinates of new columns on what a fit has learnt of the rows: a column x
// of d values, NaN where a cell is missing, is projected on
//
//	[Linear]  min over v >= 0 of  Σ_i Δ(x_i, (Uv)_i)
//	[Mapped]  min over v > 0  of  Σ_i Δ(x_i, T_i((Uv)_i)),   T_i increasing and given.
//
// Columns are independent and each is located by one worker, so the bits do not depend on the number
// of workers. A Linear and a Mapped are what all workers share, not changed once made; a [Locator] of them
// is one worker's.
package place

import (
	"context"

	"github.com/quantmf/quantmf/internal/pool"
)

const (
	mostSteps = 200
	smallFall = 1e-10 // relative fall of the loss at which a search ends
)

// Locator finds the coordinates of one column after another.
type Locator interface {
	// Locate fills v, k numbers, with the coordinates of the column x, NaN where a cell
	// is missing, and returns the sum of divergences at v. It may stop early where ctx
	// has ended.
	Locate(ctx context.Context, v, x []float64) float64
}

// Columns locates the n columns of x, d rows that lie stride apart, and returns the coordinates, k × n,
// and the sum of divergences. fresh makes the locator of a worker.
func Columns(ctx context.Context, x []float64, d, n, stride, k int, fresh func() Locator) (out []float64, sum float64, err error) {
	p := pool.New(0, n)
	defer p.Close()
	type space struct {
		Locator
		x, v []float64
	}
	work := make([]space, p.Workers())
	out = make([]float64, k*n)
	loss := make([]float64, n)
	p.Do(n, func(worker, j int) {
		if ctx.Err() != nil {
			return
		}
		ws := &work[worker]
		if ws.Locator == nil {
			*ws = space{fresh(), make([]float64, d), make([]float64, k)}
		}
		for i := range ws.x {
			ws.x[i] = x[i*stride+j]
		}
		loss[j] = ws.Locate(ctx, ws.v, ws.x)
		for c, v := range ws.v {
			out[c*n+j] = v
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	for _, l := range loss {
		sum += l
	}
	return out, sum, nil
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
