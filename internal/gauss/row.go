package gauss

// This file holds the step of a row of U.

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Row is the problem of one row of U, and the room for it.
type Row struct {
	weighted              []float64 // np
	hessian, gradient, to []float64 // k × k, k, k
}

// NewRow makes room for rows of k entries, V being k × np.
func NewRow(k, np int) *Row {
	return &Row{weighted: make([]float64, np), hessian: make([]float64, k*k), gradient: make([]float64, k), to: make([]float64, k)}
}

// Model takes the gradient and the Hessian from V, w̄ and a, whole blocks of numbers, 0 in the
// padding.
func (r *Row) Model(v, wbar, a []float64) {
	k, np, h := len(r.gradient), len(wbar), r.hessian
	kernel.Dots(r.gradient, v, wbar)
	for c := range k {
		kernel.Multiply(r.weighted, a, v[c*np:(c+1)*np])
		kernel.Dots(h[c*k:c*k+c+1], v[:(c+1)*np], r.weighted)
		for b := range c {
			h[b*k+c] = h[c*k+b]
		}
	}
}

// Penalise adds weight/2 Σ log²u.
func (r *Row) Penalise(u []float64, weight float64) {
	for c, x := range u {
		gradient, curvature := barrier(weight, x, elem.Log(x))
		r.gradient[c] += gradient
		r.hessian[c*len(u)+c] += curvature
	}
}

// Step makes the step of the model from u, in place.
func (r *Row) Step(u []float64, s Step) {
	k, h, g, x := len(u), r.hessian, r.gradient, r.to
	mean := 0.0
	for c, v := range u {
		mean += v / float64(k)
		h[c*k+c] += float64(h[c*k+c] * s.Damp)
	}
	copy(x, u)
	for range s.Sweeps {
		for c, from := range u {
			row := h[c*k : (c+1)*k]
			to := s.to(x[c], g[c], row[c], from, mean)
			step := to - x[c]
			x[c] = to
			for b, v := range row {
				g[b] += float64(v * step)
			}
		}
	}
	for c, v := range u {
		u[c] = v + float64(s.Share*(x[c]-v))
	}
}
