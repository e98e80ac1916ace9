package quantmf

// This file holds the start of an NMF from singular vectors (NNDSVD; Boutsidis
// and Gallopoulos 2008). In X ≈ Σ_c s_c u_c v_cᵀ split every vector into its
// positive and negative part. The non-negative matrix of rank one nearest to
// s u vᵀ is s u⁺v⁺ᵀ or s u⁻v⁻ᵀ, of the larger |u±||v±|, and
//
//	U_·c = √(s|u±||v±|) u±/|u±|,   V_c· = √(s|u±||v±|) v±/|v±|.
//
// Multiplicative updates never leave a zero, so no entry is left below a share of
// the mean of its column of U or row of V.
//
// The vectors come of subspace iteration with l = k+8 directions
// (internal/svd), at about twice the cost of an epoch of NMF of rank l a pass.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

const (
	svdPasses = 4
	svdMore   = 8     // directions beside the k that are wanted
	svdNoise  = 1e-10 // of the first singular value: what lies below has no direction
	svdFill   = 0.3   // least entry, in units of the mean of its column of U or row of V

)

// decompose fills the factors from the singular vectors of the visible cells;
// components beyond the rank of X stay as they are, and all where the context ends that p
// is bound to.
func (f *factors) decompose(visible *cells, p *pool.Pool) error {
	s := visible.subspace(f.k, p)
	if err := p.Err(); err != nil {
		return err
	}
	u, v := make([]float64, f.d), make([]float64, f.n)
	for c := range min(f.k, s.L) {
		size := s.Vectors(u, v, c)
		if !(size > svdNoise*s.Values()[0]) {
			return nil
		}
		var up, un, vp, vn float64 // the squared norms of the parts
		for _, x := range u {
			if x > 0 {
				up += float64(x * x)
			} else {
				un += float64(x * x)
			}
		}
		for _, x := range v {
			if x > 0 {
				vp += float64(x * x)
			} else {
				vn += float64(x * x)
			}
		}
		sign, nu, nv := 1.0, math.Sqrt(up), math.Sqrt(vp)
		if float64(un*vn) > float64(up*vp) {
			sign, nu, nv = -1, math.Sqrt(un), math.Sqrt(vn)
		}
		scale := math.Sqrt(size) * math.Sqrt(float64(nu*nv))
		for i, x := range u {
			f.u[i*f.k+c] = scale * max(sign*x/nu, 0)
		}
		row := f.rowV(c)
		for j, x := range v {
			row[j] = scale * max(sign*x/nv, 0)
		}
		raise(f.u[c:], f.k, f.d)
		raise(row, 1, f.n)
	}
	return nil
}

// raise lets none of n entries, step apart, be below a share of their mean.
func raise(v []float64, step, n int) {
	mean := 0.0
	for i := range n {
		mean += v[i*step] / float64(n)
	}
	low := svdFill * mean
	for i := range n {
		v[i*step] = max(v[i*step], low)
	}
}

// subspace takes the first k singular vectors, and some more, of the visible cells,
// hidden ones at the mean of their row.
func (s *cells) subspace(k int, p *pool.Pool) *svd.Subspace {
	d, n := s.x.Rows, s.x.Cols
	type space struct {
		x        []float64
		observed []bool
	}
	work := make([]space, p.Workers())
	for i := range work {
		work[i] = space{make([]float64, kernel.Pad(n)), make([]bool, n)}
	}
	return svd.NewSubspace(d, n, k+svdMore, svdPasses, nmfChunks, func(worker, i int) []float64 {
		ws := &work[worker]
		s.loadFilled(ws.x, ws.observed, i)
		return ws.x
	}, p)
}

// loadFilled is load with hidden cells at the mean of the others.
func (s *cells) loadFilled(x []float64, observed []bool, i int) {
	seen := s.load(x, observed, i)
	if seen == nil {
		return
	}
	mean := 0.0
	for _, v := range x[:s.x.Cols] {
		mean += v / float64(s.rows[i])
	}
	for j, o := range seen {
		if !o {
			x[j] = mean
		}
	}
}
