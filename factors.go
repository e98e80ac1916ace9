package quantmf

// This file holds the factors U and V during a fit, and those starts of them that need no
// other fit: uniform numbers, and singular vectors (NNDSVD; Boutsidis
// and Gallopoulos 2008). In X ≈ Σ_c s_c u_c v_cᵀ split every vector into its
// positive and negative part. The non-negative matrix of rank one nearest to
// s u vᵀ is s u⁺v⁺ᵀ or s u⁻v⁻ᵀ, of the larger |u±||v±|, and
//
//	U_·c = √(s|u±||v±|) u±/|u±|,   V_c· = √(s|u±||v±|) v±/|v±|.
//
// Multiplicative updates never leave a zero, so no entry is left below a share of
// the mean of its column of U or row of V. The vectors come of subspace iteration with
// k+8 directions (internal/svd). A pass costs about twice an epoch of NMF of that rank.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/svd"
)

// factors are U, d × k, and V, k × np: its rows padded to whole blocks of samples.
type factors struct {
	d, n, np, k int
	u, v        []float64
}

func newFactors(d, n, k int) *factors {
	np := kernel.Pad(n)
	return &factors{d: d, n: n, np: np, k: k, u: make([]float64, d*k), v: make([]float64, k*np)}
}

func (f *factors) rowU(i int) []float64 { return f.u[i*f.k : (i+1)*f.k] }

func (f *factors) rowV(c int) []float64 { return f.v[c*f.np : c*f.np+f.n] }

func (f *factors) matU() Mat {
	return Mat{Rows: f.d, Cols: f.k, Data: append([]float64(nil), f.u...), Stride: f.k}
}

func (f *factors) matV() Mat {
	m := NewMat(f.k, f.n)
	for c := range f.k {
		copy(m.Row(c), f.rowV(c))
	}
	return m
}

func (f *factors) copyFrom(u, v Mat) {
	for i := range f.d {
		copy(f.rowU(i), u.Row(i))
	}
	for c := range f.k {
		copy(f.rowV(c), v.Row(c))
	}
}

// multiply multiplies both factors.
func (f *factors) multiply(by float64) {
	for _, v := range [][]float64{f.u, f.v} {
		for i := range v {
			v[i] *= by
		}
	}
}

// reconstruct fills w, np numbers, with row i of UV.
func (f *factors) reconstruct(w []float64, i int) {
	kernel.Combine(w, f.u[i*f.k:(i+1)*f.k], f.v)
}

// uniform fills the factors with exp of uniform numbers on [-1/2,1/2], as the paper does.
func (f *factors) uniform(seed uint64) {
	src := random.Split(seed, 0)
	for i := range f.u {
		f.u[i] = elem.Exp(src.Float64() - 0.5)
	}
	for t := range f.k {
		row := f.rowV(t)
		for j := range row {
			row[j] = elem.Exp(src.Float64() - 0.5)
		}
	}
}

// random fills the factors with sqrt(mean/k) times uniform numbers on [1/2,3/2).
func (f *factors) random(visible *cells, seed uint64) {
	mean, count := 0.0, 0
	all, room := float64(f.d*f.n), make([]float64, f.n)
	for i := range f.d {
		s := 0.0
		for _, v := range visible.row(room, i) {
			if v == v {
				s += v / all
				count++
			}
		}
		mean += s
	}
	mean *= all / float64(count)
	scale := math.Sqrt(mean / float64(f.k))
	if scale == 0 {
		scale = 1
	}
	src := random.Split(seed, 0)
	for i := range f.u {
		f.u[i] = scale * (0.5 + src.Float64())
	}
	for c := range f.k {
		row := f.rowV(c)
		for j := range row {
			row[j] = scale * (0.5 + src.Float64())
		}
	}
}

const (
	svdPasses = 4
	svdMore   = 8     // directions beyond k
	svdNoise  = 1e-10 // singular values below this share of the first are rounding
	svdFill   = 0.3   // least entry, in units of the mean of its column of U or row of V

)

// decompose fills the factors from the singular vectors of the visible cells. Components
// beyond the rank of X are not written, and none is where the context that p is bound to
// has ended.
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

// raise brings n entries, step apart, up to svdFill of their mean.
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

// subspace computes the first k+svdMore singular vectors of x, hidden cells at the mean of
// their row.
func (s *cells) subspace(k int, p *pool.Pool) *svd.Subspace {
	d, n := s.d, s.n
	type space struct {
		x        []float64
		observed []bool
	}
	work := make([]space, p.Workers())
	for i := range work {
		work[i] = space{make([]float64, kernel.Pad(n)), make([]bool, n)}
	}
	return svd.NewSubspace(d, n, k+svdMore, svdPasses, nmf.Chunks, func(worker, i int) []float64 {
		ws := &work[worker]
		s.readRowFilled(ws.x, ws.observed, i)
		return ws.x
	}, p)
}

// readRowFilled is readRow with hidden cells at the mean of the visible ones of the row.
func (s *cells) readRowFilled(x []float64, observed []bool, i int) {
	seen := s.readRow(x, observed, i)
	if seen == nil {
		return
	}
	mean := 0.0
	for _, v := range x[:s.n] {
		mean += v / float64(s.rows[i])
	}
	for j, o := range seen {
		if !o {
			x[j] = mean
		}
	}
}

// add adds from to to.
func add(to, from []float64) { kernel.Accumulate(to[:len(from)], []float64{1}, from) }
