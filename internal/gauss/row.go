package gauss

// This file holds the step of a row u of U: with V held fixed, on the model of the row in u',
//
//	g·(u'-u) + (u'-u) H (u'-u)ᵀ/2,   g = V w̄,   H = V diag(a) Vᵀ.

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Row is the problem of one row of U, and the room for it.
type Row struct {
	weighted              []float64 // a row of V diag(a), of a tile
	tile                  []float64 // V of a tile; nil where one tile has all samples
	part                  []float64 // k: sums of a tile
	hessian, gradient, to []float64 // k × k, k, k
}

// Where V has more numbers than nearWhole, the sums of a row go over V in tiles of tileSamples samples, so
// that all sums of a tile find it in the nearest cache.
const (
	tileSamples = 512
	nearWhole   = 1 << 16
)

// NewRow makes room for rows of k entries, V being k × np.
func NewRow(k, np int) *Row {
	r := &Row{part: make([]float64, k), hessian: make([]float64, k*k), gradient: make([]float64, k), to: make([]float64, k)}
	samples := np
	if k*np > nearWhole {
		samples = tileSamples
		r.tile = make([]float64, k*samples)
	}
	r.weighted = make([]float64, samples)
	return r
}

// Model computes gradient and Hessian from V, w̄ and a, whole blocks of numbers, 0 in the padding.
func (r *Row) Model(v, wbar, a []float64) {
	k, np, h := len(r.gradient), len(wbar), r.hessian
	clear(r.gradient)
	clear(h)
	if r.tile == nil {
		r.add(v, wbar, a)
	} else {
		for from := 0; from < np; from += tileSamples {
			to := min(from+tileSamples, np)
			tile := r.tile[:k*(to-from)]
			for c := range k {
				copy(tile[c*(to-from):], v[c*np+from:c*np+to])
			}
			r.add(tile, wbar[from:to], a[from:to])
		}
	}
	for c := range k {
		for b := range c {
			h[b*k+c] = h[c*k+b]
		}
	}
}

// add adds the samples of a tile to the gradient and to the lower triangle of the Hessian.
func (r *Row) add(v, wbar, a []float64) {
	k, n := len(r.gradient), len(wbar)
	dots := func(to, by []float64) {
		part := r.part[:len(to)]
		kernel.Dots(part, v[:len(to)*n], by)
		for c, s := range part {
			to[c] += s
		}
	}
	dots(r.gradient, wbar)
	weighted := r.weighted[:n]
	for c := range k {
		kernel.Multiply(weighted, a, v[c*n:(c+1)*n])
		dots(r.hessian[c*k:c*k+c+1], weighted)
	}
}

// Penalise adds weight/2 Σ log²u to the model.
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
