package projection

// This file holds the truncated singular value decomposition, Π_k(Y) = Σ_{i<=k} s_i u_i v_iᵀ,
// and its differential, which is its own adjoint.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// truncated is Π_k as a truncated singular value decomposition.
type truncated struct {
	Size
	np      int // kernel.Pad(n)
	pool    *pool.Pool
	pieces  int // of the rows
	vectors vectors
	left    []float64 // d × k: the first k left vectors, 0 where s_i = 0
	final   Factors
	diff    differential

	vector, shares, component, row func(worker, piece int) // made once
}

// differential is what H = w̄ goes through on its way to ȳ.
type differential struct {
	wbar, ybar []float64   // d × np, the caller's: H and the result
	a          []float64   // k × np: A, then what U_i is combined with
	b          []float64   // k × dp: Bᵀ, then what V is combined with
	shares     [][]float64 // k × np of A, of each piece
	inner      []float64   // k × k: AVᵀ
	work       []differentialScratch
}

// differentialScratch is a worker's, for a row.
type differentialScratch struct{ w, g []float64 } // np, k

// vectors are the singular values and vectors of a d × n matrix. The decomposition is that
// of its transpose where d < n.
type vectors struct {
	svd    *svd.Decomposition
	rank   int  // min(d, n), the number of singular values
	tall   bool // d >= n: the decomposition is not of the transpose
	dp, np int  // numbers of a padded left and right vector
}

func newTruncated(size Size, workers *pool.Pool) *truncated {
	d, n, k := size.D, size.N, size.K
	f := workers.Memory.Floats
	dp, np := kernel.Pad(d), kernel.Pad(n)
	p := &truncated{Size: size, np: np, pool: workers, pieces: min(pieces, d), left: f(d, k),
		final: Factors{f(d, k), f(k, np)}}
	p.vectors = vectors{svd: svd.New(workers.Memory, max(d, n), min(d, n)), rank: min(d, n), tall: d >= n,
		dp: dp, np: np}
	p.vectors.svd.Stop = func() bool { return workers.Err() != nil }
	p.diff = differential{a: f(k, np), b: f(k, dp), inner: f(k, k), shares: make([][]float64, p.pieces),
		work: make([]differentialScratch, workers.Workers())}
	for i := range p.diff.shares {
		p.diff.shares[i] = f(k, np)
	}
	for i := range p.diff.work {
		p.diff.work[i] = differentialScratch{f(np), f(k)}
	}
	p.vector = func(_, h int) { p.vectors.svd.Left(h) }
	p.shares, p.component, p.row = p.backwardShares, p.backwardComponent, p.backwardRow
	return p
}

// take hands the matrix y over to the decomposition.
func (v *vectors) take(y []float64) {
	for h := range v.rank {
		col := v.svd.Column(h)
		if v.tall {
			for i := range col {
				col[i] = y[i*v.np+h]
			}
		} else {
			copy(col, y[h*v.np:])
		}
	}
}

// u and v return the left and right singular vector c, padded.
func (v *vectors) u(c int) []float64 {
	if v.tall {
		return v.svd.Lefts()[c*v.dp : (c+1)*v.dp]
	}
	return v.svd.Right[c*v.dp : (c+1)*v.dp]
}

func (v *vectors) v(c int) []float64 {
	if v.tall {
		return v.svd.Right[c*v.np : (c+1)*v.np]
	}
	return v.svd.Lefts()[c*v.np : (c+1)*v.np]
}

// turn gives u_c and v_c the signs under which the largest entry of v_c in magnitude, the first of several,
// is positive.
func (v *vectors) turn(c int) {
	left, right := v.u(c), v.v(c)
	sign := svd.Sign(right)
	kernel.Scale(left, left, sign)
	kernel.Scale(right, right, sign)
}

func (p *truncated) Result() Factors { return p.final }

// Forward leaves U = (s_1 u_1, ...), V = (v_1, ...)ᵀ, the entry of each v_i that is largest
// in magnitude positive. Components of s_i = 0, those beyond min(d,n) among them, are zero.
func (p *truncated) Forward(y []float64, _ Factors) error {
	p.vectors.take(y)
	if !p.vectors.svd.Factor() {
		return p.pool.Err()
	}
	p.pool.Do(p.vectors.rank, p.vector)
	s := p.vectors.svd.S
	clear(p.final.U)
	clear(p.final.V)
	clear(p.left)
	for c := range min(p.K, p.vectors.rank) {
		if s[c] == 0 {
			break
		}
		p.vectors.turn(c)
		copy(p.final.V[c*p.np:], p.vectors.v(c))
		for i, x := range p.vectors.u(c)[:p.D] {
			p.left[i*p.K+c] = x
			p.final.U[i*p.K+c] = x * s[c]
		}
	}
	k := p.K
	if k >= p.vectors.rank {
		return nil // Π_k is the identity
	}
	// Rounding alone sets values apart by max(d,n) units of the largest's last place.
	rounding := float64(0x1p-52 * float64(max(p.D, p.N)) * s[0])
	if s[k-1]-s[k] <= max(minGap*s[k-1], rounding) {
		return &EqualError{K: k, Value: s[k-1]}
	}
	return nil
}

// Backward applies the differential to wbar.
func (p *truncated) Backward(wbar, ybar []float64) {
	if p.K >= p.vectors.rank {
		copy(ybar, wbar[:p.D*p.np])
		return
	}
	to := &p.diff
	to.wbar, to.ybar = wbar, ybar
	p.pool.Do(p.pieces, p.shares)
	copy(to.a, to.shares[0])
	for _, share := range to.shares[1:] {
		add(to.a, share)
	}
	for c := range p.K {
		kernel.Dots(to.inner[c*p.K:(c+1)*p.K], p.final.V, to.a[c*p.np:(c+1)*p.np])
	}
	p.pool.Do(p.K, p.component)
	p.pool.Do(p.pieces, p.row)
	to.wbar, to.ybar = nil, nil
}

// backwardShares takes a piece's share of A = UᵀH and its rows of B = HVᵀ.
func (p *truncated) backwardShares(worker, piece int) {
	g, own := p.diff.work[worker].g, p.diff.shares[piece]
	clear(own)
	from, to := pool.Cut(p.D, p.pieces, piece)
	for i := from; i < to; i++ {
		h := p.diff.wbar[i*p.np : (i+1)*p.np]
		kernel.Dots(g, p.final.V, h)
		for c, b := range g {
			p.diff.b[c*p.vectors.dp+i] = b
		}
		kernel.Accumulate(own, p.left[i*p.K:(i+1)*p.K], h)
	}
}

// backwardComponent makes rows c of A - (AVᵀ)V + C V₊ and (B + E U₊)ᵀ of those of A and Bᵀ.
func (p *truncated) backwardComponent(_, c int) {
	s := p.vectors.svd.S
	a, b := p.diff.a[c*p.np:(c+1)*p.np], p.diff.b[c*p.vectors.dp:(c+1)*p.vectors.dp]
	// All α and β come first in the formula, as they are of A and B themselves. They need
	// no memory: vectors are orthonormal, so that what was added along one of them does not
	// change α and β of the next.
	for j := p.K; j < p.vectors.rank && s[j] > 0; j++ {
		u, v := p.vectors.u(j), p.vectors.v(j)
		var alpha, beta [1]float64
		kernel.Dots(alpha[:], v, a)
		kernel.Dots(beta[:], u, b)
		// In units of s_i, so that no square leaves the range.
		q := s[j] / s[c]
		f := q / float64((1-q)*(1+q))
		along := [1]float64{f * (float64(q*alpha[0]) + beta[0])}
		across := [1]float64{f * (alpha[0] + float64(q*beta[0]))}
		kernel.Accumulate(a, along[:], v)
		kernel.Accumulate(b, across[:], u)
	}
	for e, m := range p.diff.inner[c*p.K : (c+1)*p.K] {
		kernel.Accumulate(a, []float64{-m}, p.final.V[e*p.np:(e+1)*p.np])
	}
}

// backwardRow makes the rows of a piece of Ȳ.
func (p *truncated) backwardRow(worker, piece int) {
	ws := &p.diff.work[worker]
	from, to := pool.Cut(p.D, p.pieces, piece)
	for i := from; i < to; i++ {
		ybar := p.diff.ybar[i*p.np : (i+1)*p.np]
		for c := range ws.g {
			ws.g[c] = p.diff.b[c*p.vectors.dp+i]
		}
		kernel.Combine(ybar, p.left[i*p.K:(i+1)*p.K], p.diff.a)
		kernel.Combine(ws.w, ws.g, p.final.V)
		add(ybar, ws.w)
	}
}
