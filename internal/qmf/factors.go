package qmf

// This file holds the factors U and V during a fit, and the starts of them that need no other
// fit: random numbers, and singular vectors. Singular vectors are found by subspace iteration with
// k+8 directions (internal/svd), of which a pass costs about twice an epoch of NMF of that rank.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/svd"
)

// factors are U, d × k, and V, k × np: rows of V are padded to whole blocks of samples.
type factors struct {
	d, n, np, k int
	u, v        []float64
	fixed       int       // the first so many columns of U stay
	given       fit.Dense // these columns, where they are at hand
	lead        *factors  // an NMF of some samples, which the NMF of a start follows; nil: none
	few         bool      // cells are missing, and few are seen (FewSeen): no NMF by Newton's method
}

func newFactors(a *pool.Arena, d, n, k int) *factors {
	np := kernel.Pad(n)
	return &factors{d: d, n: n, np: np, k: k, u: a.Floats(d, k), v: a.Floats(k, np)}
}

// twin returns factors of the same numbers.
func (f *factors) twin() *factors {
	g := newFactors(nil, f.d, f.n, f.k)
	g.take(f)
	return g
}

// take takes the numbers of other factors.
func (f *factors) take(g *factors) {
	copy(f.u, g.u)
	copy(f.v, g.v)
}

func (f *factors) rowU(i int) []float64 { return f.u[i*f.k : (i+1)*f.k] }

func (f *factors) rowV(c int) []float64 { return f.v[c*f.np : c*f.np+f.n] }

func (f *factors) matU() fit.Dense {
	return fit.Dense{Rows: f.d, Cols: f.k, Data: append([]float64(nil), f.u...), Stride: f.k}
}

func (f *factors) matV() fit.Dense {
	m := fit.NewDense(f.k, f.n)
	for c := range f.k {
		copy(m.Row(c), f.rowV(c))
	}
	return m
}

// leaveOut gives some samples a V of 0, so that they do not count in what the components of an NMF sum to.
func (f *factors) leaveOut(samples []int) {
	for c := range f.k {
		for _, j := range samples {
			f.rowV(c)[j] = 0
		}
	}
}

// setAside gives some samples, in increasing order, the mean of the others as V.
func (f *factors) setAside(samples []int) {
	if len(samples) == 0 {
		return
	}
	for c := range f.k {
		row, mean, left := f.rowV(c), 0.0, samples
		for j, v := range row {
			if len(left) > 0 && left[0] == j {
				left = left[1:]
				continue
			}
			mean += v / float64(f.n-len(samples))
		}
		for _, j := range samples {
			row[j] = mean
		}
	}
}

func (f *factors) copyFrom(u, v fit.Dense) {
	for i := range f.d {
		copy(f.rowU(i), u.Row(i))
	}
	for c := range f.k {
		copy(f.rowV(c), v.Row(c))
	}
}

// hold sets the columns of U that are given.
func (f *factors) hold() {
	for i := range f.given.Rows {
		copy(f.rowU(i), f.given.Row(i))
	}
}

// multiply multiplies both factors by a number.
func (f *factors) multiply(by float64) {
	for _, v := range [][]float64{f.u, f.v} {
		for i := range v {
			v[i] *= by
		}
	}
}

// drop sets entries below least to 0.
func (f *factors) drop(least float64) {
	for _, v := range [][]float64{f.u, f.v} {
		for i, x := range v {
			if x < least {
				v[i] = 0
			}
		}
	}
}

// reconstruct fills w, np numbers, with row i of UV.
func (f *factors) reconstruct(w []float64, i int) {
	kernel.Combine(w, f.u[i*f.k:(i+1)*f.k], f.v)
}

// uniform fills the factors with exp of uniform numbers on [-1/2,1/2], the start of the paper.
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

// random fills the factors with sqrt(mean/k) times uniform numbers on [1/2,3/2), where mean is
// that of the visible cells: then UV has about the mean of X.
func (f *factors) random(visible *fit.Cells, seed uint64) {
	mean, count := 0.0, 0
	all, room := float64(f.d*f.n), make([]float64, f.n)
	for i := range f.d {
		s := 0.0
		for _, v := range visible.Row(room, i) {
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

// decompose fills the factors from the singular vectors of the visible cells (NNDSVD,
// internal/svd). It leaves components beyond the rank of X as they are, and all of them where the
// context that p is bound to has ended.
func (f *factors) decompose(visible *fit.Cells, p *pool.Pool) error {
	defer p.Part()()
	s := subspace(visible, f.k, p)
	if err := p.Err(); err != nil || p.Memory.Dry() {
		return err
	}
	u, v := make([]float64, f.d), make([]float64, f.n)
	for c := range f.k {
		if !s.NonNegative(u, v, c) {
			return nil
		}
		for i, x := range u {
			f.u[i*f.k+c] = x
		}
		copy(f.rowV(c), v)
	}
	return nil
}

// subspace computes the first k+svd.More singular vectors of x', with hidden cells set to the mean
// of their row.
func subspace(s *fit.Cells, k int, p *pool.Pool) *svd.Subspace {
	d, n := s.D, s.N
	type space struct {
		x        []float64
		observed []bool
	}
	work := make([]space, p.Workers())
	for i := range work {
		work[i] = space{p.Memory.Floats(kernel.Pad(n)), pool.Make[bool](p.Memory, n)}
	}
	return svd.NewSubspace(d, n, k+svd.More, func(worker, i int) []float64 {
		ws := &work[worker]
		s.ReadFilled(ws.x, ws.observed, i)
		return ws.x
	}, p)
}
