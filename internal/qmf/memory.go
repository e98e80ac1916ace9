package qmf

// This file counts what fits draw from the arena of their pool, where that only counts (internal/pool). What
// is kept of the best epoch on held-out cells, and what a checkpoint has, is what Walk of the fit shows.

import (
	"github.com/quantmf/quantmf/internal/fit"
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
	uv, maps := size(d+n, k), s.mapState(d)
	switch kind {
	case section.QMF:
		best = uv + size(2, d, s.Levels)
		if s.Gaussian(k) {
			return uv + size(k*(k+1)/2+k+1, n) + maps, best
		}
		return float64(4*uv) + maps, best
	case section.QMFQ:
		return 2*uv + 2*maps + size(d, s.Levels), uv + size(5, d, s.Levels)
	}
	return 2 * uv, uv // the factors, and z of either method
}

// mapState is how many numbers a checkpoint has of d maps: parameters, Adam's moments, warm starts, losses.
func (s *Settings) mapState(d int) float64 {
	perRow := 5*s.Levels + 4
	if s.Start == StartUniform {
		perRow += 3 * s.Levels
	}
	return size(d, perRow)
}

// size is the product of some sizes, rounded before it meets a sum.
func size(of ...int) float64 {
	p := 1.0
	for _, v := range of {
		p = float64(p * float64(v))
	}
	return p
}
