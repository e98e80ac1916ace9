package svd

// This file holds the first singular vectors of a matrix that is read row by
// row, by subspace iteration (Halko, Martinsson and Tropp 2011): from random
// directions P, l × n, and several times over,
//
//	G = XPᵀ,  Q an orthonormal basis of its columns,  QᵀX = Σ s_h r_h p_hᵀ,  P = (p_h);
//
// then v_h = p_h and u_h = Qr_h. Where l is min(d,n) that is the decomposition
// itself. 8dnl flops a pass, and 7(d+n)l² for the bases.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// Subspace is X ≈ Σ_h s_h u_h v_hᵀ, h < L.
type Subspace struct {
	L            int
	d, n, dp, np int
	row          func(worker, i int) []float64
	pool         *pool.Pool
	q, r         *Decomposition // of G, d × L, and of (QᵀX)ᵀ, n × L
	acc          [][]float64    // of each piece of rows, its part of QᵀX, L × np
	g            [][]float64    // of each worker, L
}

const (
	// Passes is the number of passes over the matrix: the first vectors are good enough then to start a fit
	// from.
	Passes = 4

	// pieces is the most pieces that sums over rows are cut into, on which their bits depend.
	pieces = 16
)

// NewSubspace makes the passes for a d × n matrix and l directions, at most
// min(d,n) of them. row returns row i, padded with zeros to whole blocks; it is
// called by several workers at once, and what it returns is read before the same
// worker calls it again. Where the context that p is bound to ends, the passes stop and
// the result has no meaning.
func NewSubspace(d, n, l int, row func(worker, i int) []float64, p *pool.Pool) *Subspace {
	l = min(l, d, n)
	s := &Subspace{L: l, d: d, n: n, dp: kernel.Pad(d), np: kernel.Pad(n), row: row, pool: p,
		q:   New(p.Memory, d, l),
		r:   New(p.Memory, n, l),
		acc: make([][]float64, min(pieces, d)), g: make([][]float64, p.Workers())}
	for i := range s.acc {
		s.acc[i] = p.Memory.Floats(l, s.np)
	}
	for i := range s.g {
		s.g[i] = p.Memory.Floats(l)
	}
	stop := func() bool { return p.Err() != nil }
	s.q.Stop, s.r.Stop = stop, stop
	directions := p.Memory.Floats(l, s.np)
	if p.Memory.Dry() {
		return s
	}
	src := random.Split(0, 3)
	for h := range l {
		for j := range n {
			directions[h*s.np+j] = src.Float64() - 0.5
		}
	}
	for range Passes {
		if !s.pass(directions) {
			break
		}
		directions = s.r.Lefts()
	}
	return s
}

// pass makes one pass from the given directions, L × np, to those in r. It returns false
// where the context has ended.
func (s *Subspace) pass(directions []float64) bool {
	l := s.L
	s.pool.Do(len(s.acc), func(worker, c int) {
		g := s.g[worker]
		from, to := pool.Cut(s.d, len(s.acc), c)
		for i := from; i < to; i++ {
			kernel.Dots(g, directions, s.row(worker, i))
			for h, v := range g {
				s.q.Column(h)[i] = v
			}
		}
	})
	if !s.q.Factor() {
		return false
	}
	s.pool.Do(l, func(_, h int) { s.q.Left(h) })
	s.pool.Do(len(s.acc), func(worker, c int) {
		g := s.g[worker]
		clear(s.acc[c])
		from, to := pool.Cut(s.d, len(s.acc), c)
		for i := from; i < to; i++ {
			for h := range g {
				g[h] = s.q.Lefts()[h*s.dp+i]
			}
			kernel.Accumulate(s.acc[c], g, s.row(worker, i))
		}
	})
	for _, more := range s.acc[1:] {
		axpy(s.acc[0], more, 1)
	}
	for h := range l {
		copy(s.r.Column(h), s.acc[0][h*s.np:h*s.np+s.n])
	}
	if !s.r.Factor() {
		return false
	}
	s.pool.Do(l, func(_, h int) { s.r.Left(h) })
	return s.pool.Err() == nil
}

// Values returns s, falling.
func (s *Subspace) Values() []float64 { return s.r.S }

// Vectors fills u, d numbers, and v, n numbers, with the vectors h, the entry of v
// that is largest in magnitude positive, and returns s_h.
func (s *Subspace) Vectors(u, v []float64, h int) float64 {
	cp := kernel.Pad(s.L)
	clear(u)
	for e, share := range s.r.Right[h*cp : h*cp+s.L] {
		for i, q := range s.q.Lefts()[e*s.dp : e*s.dp+len(u)] {
			u[i] += float64(share * q)
		}
	}
	copy(v, s.r.Lefts()[h*s.np:])
	sign := Sign(v)
	kernel.Scale(u, u, sign)
	kernel.Scale(v, v, sign)
	return s.r.S[h]
}
