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
// The vectors come of subspace iteration (Halko, Martinsson and Tropp 2011): from
// l = k+8 random directions P, and as often as svdPasses says,
//
//	G = XPᵀ,  Q an orthonormal basis of its columns,  QᵀX = Σ s_h r_h p_hᵀ,  P = (p_h);
//
// then v_h = p_h and u_h = Qr_h. Where l is min(d,n) that is the decomposition
// itself. 8dnl flops a pass, about twice those of an epoch of NMF of rank l, and
// 7(d+n)l² for the bases.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

const (
	svdPasses = 4
	svdMore   = 8     // directions beside the k that are wanted
	svdNoise  = 1e-10 // of the first singular value: what lies below has no direction
	svdFill   = 0.3   // least entry, in units of the mean of its column of U or row of V

)

// subspace is X ≈ Σ_h s_h u_h v_hᵀ, h < l.
type subspace struct {
	*cells
	l, np, dp int
	pool      *pool.Pool
	q, r      *kernel.SVD // of G, d × l, and of (QᵀX)ᵀ, n × l
	acc       [][]float64 // l × np of each chunk of rows
	work      []subspaceWork
}

type subspaceWork struct {
	x, g     []float64 // np, l
	observed []bool
}

// newSubspace goes over X until the vectors are found, or the course ends.
func newSubspace(way *course, visible *cells, k int, p *pool.Pool) (*subspace, error) {
	d, n := visible.x.Rows, visible.x.Cols
	l := min(k+svdMore, d, n)
	s := &subspace{cells: visible, l: l, np: kernel.Pad(n), dp: kernel.Pad(d), pool: p, q: kernel.NewSVD(d, l), r: kernel.NewSVD(n, l),
		acc: make([][]float64, min(nmfChunks, d)), work: make([]subspaceWork, p.Workers())}
	stop := func() bool { return p.Err() != nil }
	s.q.Stop, s.r.Stop = stop, stop
	for i := range s.acc {
		s.acc[i] = make([]float64, l*s.np)
	}
	for i := range s.work {
		s.work[i] = subspaceWork{make([]float64, s.np), make([]float64, l), make([]bool, n)}
	}
	directions := make([]float64, l*s.np)
	src := random.Split(0, 3)
	for h := range l {
		for j := range n {
			directions[h*s.np+j] = src.Float64() - 0.5
		}
	}
	for pass := range svdPasses {
		if err := s.pass(directions); err != nil {
			return nil, err
		}
		if err := way.reach(float64(pass+1) / svdPasses); err != nil {
			return nil, err
		}
		directions = s.r.Lefts()
	}
	return s, nil
}

// row returns row i of X, hidden cells at the mean of the others.
func (s *subspace) row(ws *subspaceWork, i int) []float64 {
	observed := s.cells.load(ws.x, ws.observed, i)
	if observed == nil {
		return ws.x
	}
	mean := 0.0
	for _, x := range ws.x[:s.x.Cols] {
		mean += x / float64(s.rows[i])
	}
	for j, o := range observed {
		if !o {
			ws.x[j] = mean
		}
	}
	return ws.x
}

// pass goes from directions, l × np, to those in r.
func (s *subspace) pass(directions []float64) error {
	d, n, l := s.x.Rows, s.x.Cols, s.l
	chunk := func(c int) (from, to int) { return c * d / len(s.acc), (c + 1) * d / len(s.acc) }
	s.pool.Do(len(s.acc), func(worker, c int) {
		ws := &s.work[worker]
		from, to := chunk(c)
		for i := from; i < to; i++ {
			kernel.Dots(ws.g, directions, s.row(ws, i))
			for h, v := range ws.g {
				s.q.Column(h)[i] = v
			}
		}
	})
	if !s.q.Factor() {
		return s.pool.Err()
	}
	s.pool.Do(l, func(_, h int) { s.q.Left(h) })
	s.pool.Do(len(s.acc), func(worker, c int) {
		ws := &s.work[worker]
		clear(s.acc[c])
		from, to := chunk(c)
		for i := from; i < to; i++ {
			for h := range ws.g {
				ws.g[h] = s.q.Lefts()[h*s.dp+i]
			}
			kernel.Accumulate(s.acc[c], ws.g, s.row(ws, i))
		}
	})
	for _, more := range s.acc[1:] {
		add(s.acc[0], more)
	}
	for h := range l {
		copy(s.r.Column(h), s.acc[0][h*s.np:h*s.np+n])
	}
	if !s.r.Factor() {
		return s.pool.Err()
	}
	s.pool.Do(l, func(_, h int) { s.r.Left(h) })
	return s.pool.Err()
}

// vectors fills u, d numbers, and v, n numbers, with the vectors h, the entry of v
// that is largest in magnitude positive, and returns s_h.
func (s *subspace) vectors(u, v []float64, h int) float64 {
	cp := kernel.Pad(s.l)
	clear(u)
	for e, share := range s.r.Right[h*cp : h*cp+s.l] {
		for i, q := range s.q.Lefts()[e*s.dp : e*s.dp+len(u)] {
			u[i] += float64(share * q)
		}
	}
	copy(v, s.r.Lefts()[h*s.np:])
	top := 0.0
	for _, x := range v {
		if math.Abs(x) > math.Abs(top) {
			top = x
		}
	}
	if top < 0 {
		for i := range u {
			u[i] = -u[i]
		}
		for j := range v {
			v[j] = -v[j]
		}
	}
	return s.r.S[h]
}

// decompose fills the factors from the singular vectors of the visible cells;
// components beyond the rank of X stay as they are, and all where the course ends.
func (f *factors) decompose(way *course, visible *cells, p *pool.Pool) error {
	s, err := newSubspace(way, visible, f.k, p)
	if err != nil {
		return err
	}
	u, v := make([]float64, f.d), make([]float64, f.n)
	for c := range min(f.k, s.l) {
		size := s.vectors(u, v, c)
		if !(size > svdNoise*s.r.S[0]) {
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
