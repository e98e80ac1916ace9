package transport

// This file holds T = M q and the covariances of a gradient over the samples of a row that its points have
// solved (condense.go). At given potentials each is a function f of x̃ alone, which is smooth over a bin of
// width δ. There it is replaced by the cubic that has the values and the slopes of f at the two edges of the
// bin (Hermite's), in the place t of a sample in its bin, from 0 to 1:
//
//	f(x̃) = c_0 + c_1 t + c_2 t² + c_3 t³ + E,   |E| <= max|f⁗| δ⁴/384.
//
// For T with q >= 0 the bound on the relative error is 3.3 u⁴/384 < u⁴/100, but for a factor e^u at most (u
// and 3.3 as in condense.go). That is three times the bound for sums over the points. In practice the error
// is some thousand times smaller, as theirs is. With the covariance under the row of M at an edge, T has
// there the slope
//
//	T' = (2/ε) Cov_M(q,y).
//
// The slopes of covariances are differences of their values at four neighbouring edges, off by δ⁴
// max|f⁽⁵⁾|/30.

import "github.com/quantmf/quantmf/internal/kernel"

// cubic is c_0, ..., c_3.
type cubic [4]float64

// hermite returns the cubic from f0 to f1 with the slopes d0 and d1.
func hermite(f0, f1, d0, d1 float64) cubic {
	rise := f1 - f0
	return cubic{f0, d0, (float64(3*rise) - float64(2*d0)) - d1, (d0 + d1) - float64(2*rise)}
}

// at returns the value at t.
func (c *cubic) at(t float64) float64 {
	return (c[0] + float64(t*c[1])) + float64(float64(t*t)*(c[2]+float64(t*c[3])))
}

// Of each bin there are three cubics: of T, and of Cov_M(v,y) and Cov_M(λ,y) times (2/ε) dx̃/dz.
const (
	ofT = iota
	ofV
	ofLam
	cubics
)

// cubic returns one of those of a bin.
func (k *condensed) cubic(bin, which int) *cubic { return (*cubic)(k.curves[4*(cubics*bin+which):]) }

const (
	beyond = 2 // edges before the first bin, for differences
	// with them, the condensedBins+1 of the bins, and more than two behind: whole blocks
	edges = condensedBins + 8
)

// atEdges returns the edges of the bins as samples at the potentials of the row, in the room of the points,
// which a solve has left.
func (r *dual) atEdges() *dual {
	f := r.condensed.points
	if r.condensed.stands == byEdges {
		return f
	}
	f.cut(edges)
	bins := r.bins()
	for p := range f.cx {
		f.cx[p], f.a[p] = bins.First+float64(p-beyond)/bins.Scale, 1
	}
	f.setEpsilon(r.eps)
	f.stands, f.knows = stale, nothing
	f.evaluate(r.h)
	r.condensed.stands = byEdges
	return f
}

// covary fills own with Cov_M(v,y) and shared with Cov_M(v,y) - Cov_M(λ,y) of the samples.
func (r *dual) covary(own, shared, v, lam []float64) {
	r.tiles(func(lo, hi int, e []float64) {
		one := r.a[lo:hi]
		kernel.CovarianceOwn(&kernel.Cov{Out: shared[lo:hi], Own: own[lo:hi], E: e, W: r.w, Z: r.z[lo:hi],
			Zeta: one, A: one, V: v, Lam: lam, Y: r.cy})
	})
}

// averageByCubics fills t (np numbers) with T = M q.
func (r *dual) averageByCubics(t, q []float64) {
	f := r.atEdges()
	f.average(f.v, q)
	f.covary(f.x, f.xs, q, q)
	r.curveOfT(1)
	const last = condensedBins - 1
	bins := r.bins()
	t = t[:len(r.cx)]
	for i, x := range r.cx {
		at := float64((x - bins.First) * bins.Scale)
		p := min(int32(at), last)
		t[i] = r.condensed.cubic(int(p), ofT).at(at - float64(p))
	}
}

// curveOfT fills the cubics of T/unit. At the edges f, v has T = M q and x has Cov_M(q,y).
func (r *dual) curveOfT(unit float64) {
	f := r.condensed.points
	rise := 2 / (r.eps * r.bins().Scale)
	for p := range condensedBins {
		e := p + beyond
		*r.condensed.cubic(p, ofT) = hermite(f.v[e]/unit, f.v[e+1]/unit, float64(f.x[e]*rise)/unit,
			float64(f.x[e+1]*rise)/unit)
	}
}

// curvesOfSlopes fills the cubics of the covariances, of which x has Cov_M(v,y) of the edges f and xs the
// difference Cov_M(v,y) - Cov_M(λ,y). The squash is logistic: its slope is a function of x̃, and the cubics
// are those of the products with it.
func (r *dual) curvesOfSlopes() {
	f := r.condensed.points
	own, shared := f.x, f.xs
	rate := r.squash.Kind.rate() * 2 / r.eps
	for e, c := range own {
		at := f.cx[e] + r.xc
		slope := float64(at*(1-at)) * rate
		own[e], shared[e] = float64(slope*c), float64(slope*(c-shared[e]))
	}
	slope := func(f []float64, e int) float64 {
		return (float64(8*(f[e+1]-f[e-1])) - (f[e+2] - f[e-2])) / 12
	}
	before, less := slope(own, beyond), slope(shared, beyond)
	for p := range condensedBins {
		e := p + beyond
		d, l := slope(own, e+1), slope(shared, e+1)
		*r.condensed.cubic(p, ofV) = hermite(own[e], own[e+1], before, d)
		*r.condensed.cubic(p, ofLam) = hermite(shared[e], shared[e+1], less, l)
		before, less = d, l
	}
}

// gradByCubics fills w with the gradient in the samples by way of z,
//
//	w_i = (2/ε) dx̃_i/dz_i (ζ_i Cov_{M_i}(v,y) - a_i Cov_{M_i}(λ,y)),
//
// which is 0 where ζ and a are, own, if it is not nil, with a_i (2/ε) dx̃_i/dx_i Cov_{M_i}(v,y), and sums
// with Σ w_i and Σ w_i z_i.
func (r *dual) gradByCubics(sums *[2]float64, w, own, zeta, v, lam []float64) {
	f := r.atEdges()
	f.covary(f.x, f.xs, v, lam)
	r.curvesOfSlopes()
	const last = condensedBins - 1
	bins := r.bins()
	n := len(w)
	cx, x, zeta, a := r.cx[:n], r.x[:n], zeta[:n], r.a[:n]
	if own == nil {
		own = w // overwritten by w
	}
	own = own[:n]
	ref, shift, per := r.squash.Ref, r.squash.Shift, 1/r.squash.Std
	sum, dot := 0.0, 0.0
	for i, c := range cx {
		at := float64((c - bins.First) * bins.Scale)
		p := min(int32(at), last)
		t := at - float64(p)
		v, shared := r.condensed.cubic(int(p), ofV).at(t), r.condensed.cubic(int(p), ofLam).at(t)
		own[i] = float64(a[i]*v) * per
		g := float64(zeta[i]*v) - float64(a[i]*shared)
		w[i] = g
		sum += g
		dot += float64(g * (float64((x[i]-ref)-shift) * per))
	}
	sums[0], sums[1] = sum, dot
}

// pullKL is gradByCubics for the ζ of back's residuals of cells x, which are 0 where a is: T and ζ are made
// sample by sample on the way. It fills w, np numbers, and what else [KL] names.
func (r *dual) pullKL(sums *[2]float64, w []float64, to *KL, back *Cotangent, lam []float64) {
	f := r.atEdges()
	f.average(f.v, back.Q)
	f.covary(f.x, f.xs, back.Q, lam)
	r.curveOfT(back.Unit)
	r.curvesOfSlopes()
	c := kernel.KLCubics{
		Bins: r.bins(),
		Ref:  r.squash.Ref, Shift: r.squash.Shift, Per: 1 / r.squash.Std,
		Whole: back.By * float64(back.Count), By: back.By, Low: back.Low / back.Unit, Fisher: to.By,
	}
	kernel.BackKL(w, to.Curvature, to.T, to.Ratio, r.cx, r.x, r.a, to.X, r.condensed.curves, &c)
	sums[0], sums[1] = kernel.Reduce(&c.Sum), kernel.Reduce(&c.Dot)
}
