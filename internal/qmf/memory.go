package qmf

// This file counts what fits draw from the arena of their pool, where that only counts (internal/pool), and
// reads what of a matrix that depends on. What is kept of the best epoch on held-out cells, and what a
// checkpoint has, is what Walk of the fit shows.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Count counts a fit of k components of cells that are not read, without its model.
func Count(kind uint32, cells *fit.Cells, k int, s *Settings, run fit.Run) {
	switch kind {
	case section.NMF:
		countNMF(cells, k, s, run.Pool)
	case section.QMF:
		newQMFFit(cells, k, s, run).reserve()
	case section.QMFQ:
		newQMFQFit(cells, k, s, run).reserve()
	}
	if s.Validation == 0 {
		return
	}
	a := run.Pool.Memory
	CountFactors(a, cells.D, cells.N, k)
	switch kind {
	case section.QMF:
		a.Floats(2, cells.D, s.Levels)
		a.Floats(cells.D)
	case section.QMFQ:
		a.Floats(5, cells.D, s.Levels)
		a.Floats(cells.D)
	}
}

// countNMF counts a fit of an NMF.
func countNMF(cells *fit.Cells, k int, s *Settings, p *pool.Pool) {
	u := newFactors(p.Memory, cells.D, cells.N, k)
	method := s.newMethod(newProblem(u, cells, s.Loss, p))
	u.reserveSome(cells, s.Loss, s.StartsFrom(cells.D, cells.N), p)
	if s.Start == StartSVD {
		u.decompose(cells, p)
	}
	method.Reserve(s.Epochs)
}

// CountFactors counts the factors of k components.
func CountFactors(a *pool.Arena, d, n, k int) { newFactors(a, d, n, k) }

// CountState returns how many numbers a checkpoint has of the state of a fit, and of its best state.
func CountState(kind uint32, d, n, k int, s *Settings) (state, best float64) {
	uv, maps := Size(d+n, k), s.mapState(d)
	switch kind {
	case section.QMF:
		best = uv + Size(2, d, s.Levels)
		if s.Gaussian(k) {
			return uv + Size(k*(k+1)/2+k+1, n) + maps, best
		}
		return float64(4*uv) + maps, best
	case section.QMFQ:
		return 2*uv + 2*maps + Size(d, s.Levels), uv + Size(5, d, s.Levels)
	}
	return 2 * uv, uv // the factors, and z of either method
}

// Look reads a d × n matrix for what the memory of a fit depends on.
func Look(ctx context.Context, d, n int, read func(i int) ([]float64, error)) (fit.About, error) {
	of := fit.About{Full: true, Plain: true}
	inGroup, top, mean, square, nonzero := 0, 0.0, 0.0, 0.0, 0.0
	for i := range d {
		if i%nmf.Group == 0 {
			inGroup = 0
			if err := ctx.Err(); err != nil {
				return of, err
			}
		}
		row, err := read(i)
		if err != nil {
			return of, err
		}
		seen := 0
		for _, v := range row {
			if v == v {
				seen++
				top = max(top, math.Abs(v))
			}
			if v != 0 {
				inGroup++
				nonzero++
			}
			of.Plain = of.Plain && !(v < 0)
		}
		share := float64(seen) / float64(n)
		mean += share / float64(d)
		square += float64(share*share) / float64(d)
		if i%nmf.Group == nmf.Group-1 || i == d-1 {
			of.Full = of.Full && inGroup > nmf.MostOfThin(i%nmf.Group+1, n)
		}
	}
	// The rows of a trial are some of all: the mean over them is in five deviations of that over all.
	spread := math.Sqrt(max(square-float64(mean*mean), 0) / TrialRows)
	if d <= TrialRows {
		spread = 0
	}
	of.Nonzero = nonzero / Size(d, n)
	of.Visible = max(mean-float64(5*spread), 0)
	units := fit.UnitsOf(top)
	of.Rescale = units.All != 0
	return of, nil
}

// mapState is how many numbers a checkpoint has of d maps: parameters, Adam's moments, warm starts, losses.
func (s *Settings) mapState(d int) float64 {
	perRow := 5*s.Levels + 4
	if s.Start == StartUniform {
		perRow += 3 * s.Levels
	}
	return Size(d, perRow)
}

// Size is the product of some sizes, rounded before it meets a sum.
func Size(of ...int) float64 {
	p := 1.0
	for _, v := range of {
		p = float64(p * float64(v))
	}
	return p
}
