package transport

// This file holds the transposed Jacobians of T and S (paper §2.4, Algorithm 2, with its
// errata mended).
//
// Let H_ij = ∂ℓ/∂P_ij, the rest fixed, be of the form a_i H_ij = ζ_i v_j:
//
//	T = M q:   ζ = z, v = q;    S:   ζ_i = a_i x_i, v_j = z_j/b_j;    R is T with q = n cumsum(b).
//
// With N_jk = Σ_i ζ_i M_ij M_ik and the Laplacian L of the solver,
//
//	ρ_j = Σ_k (v_j-v_k) N_jk,   L λ = ρ,   Σ b_j λ_j = 0,
//	∂x̃_i = (2/ε)(ζ_i Cov_{M_i}(v,y) - a_i Cov_{M_i}(λ,y)),
//	∂b = λ,   ∂a_i = (ζ_i/a_i) M_i·v - M_i·λ,
//	∂y_j = (2/ε)(Σ_k (v_j-v_k) N^{ζX}_jk - Σ_k (λ_j-λ_k) N^{aX}_jk),
//	∂ε = -(1/ε) Σ_i (ζ_i Cov_{M_i}(v, log M_i) - a_i Cov_{M_i}(λ, log M_i)),   ∂q_j = Σ_k N_jk,
//
// to which the direct dependence of v and of the output on a, b and x is added. That of T on a, as M =
// diag(1/a)P, is -(ζ_i/a_i) M_i·v, so that ∂a_i = -M_i·λ is left of it. N^{w} is N with row weights w; X are
// the centred x̃. Differences of levels are summed, never ρ = Σ z M (q-T), so that a plan that falls apart
// into blocks keeps its digits; on a regular grid each N is 2m-1 sums. A gradient in a or b is given on the
// simplex: Σ a_i A_i = 0, Σ b_j B_j = 0.
//
// The pivots of L are not let fall below 1e-15 of their column: between levels
// that no sample shares the potential, and with it A and B, is not determined
// in double precision; they are finite, and X and Q do not feel it.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
)

// Cotangent is dℓ/dT at q, to which an adjoint is applied. Its slices are read until the last call of a
// Grad method after the adjoint.
type Cotangent struct {
	Z []float64 // ζ, whole blocks of numbers, 0 in the padding
	Q []float64 // v, m
}

// Adjoint solves for λ, after which the Grad methods give the gradients of Σ z_i T_i.
func (r *Row) Adjoint(back Cotangent) {
	r.need(solved)
	r.expand()
	r.back = back
	r.rows()
	r.differentiate(r.lam, back.Z, back.Q)
	copy(r.rho, r.lam)
	r.newton(r.lam)
	r.gauge()
	r.phase = pulled
}

// GradX fills to with the gradient in the n samples, squash included.
func (r *Row) GradX(to []float64) { r.GradXSlopes(to, nil) }

// GradXSlopes is GradX, and fills own, where it is not nil (whole blocks of numbers), with a_i ∂T_i/∂x_i at
// fixed potentials and fixed moments of the squash, T being the average of the cotangent's q: the part of
// the derivative that flows through the sample's own row of M.
func (r *Row) GradXSlopes(to, own []float64) {
	r.need(pulled)
	zeta, v := r.back.Z, r.back.Q
	r.rows()
	r.tiles(func(lo, hi int, e []float64) {
		c := kernel.Cov{Out: r.gx[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: zeta[lo:hi], A: r.a[lo:hi], V: v,
			Lam: r.lam, Y: r.cy}
		if own == nil {
			kernel.Covariance(&c)
			return
		}
		c.Own = own[lo:hi]
		kernel.CovarianceOwn(&c)
	})
	kernel.Scale(to, r.gx[:len(to)], 2/r.eps)
	r.SquashBack(to)
	if own != nil {
		r.squash.Slopes(own[:r.n], r.xs, r.x, 2/r.eps)
	}
}

// SquashBack turns the gradient g at x̃ into that at x, in place.
func (r *Row) SquashBack(g []float64) {
	r.need(loaded)
	weights := r.a
	if !r.weighed {
		weights = nil
	}
	r.squash.backward(g, r.xs, r.x, r.observed, weights)
}

// GradB fills to with the gradient in b, on the simplex.
func (r *Row) GradB(to []float64) {
	r.need(pulled)
	copy(to, r.lam)
	Tangent(to, r.b)
}

// GradLogits fills to with the gradient in the logits of b = softmax F: b∘∂b.
func (r *Row) GradLogits(to []float64) {
	r.GradB(to)
	for j, b := range r.b {
		to[j] = float64(b * to[j])
	}
}

// GradQ fills to with the gradient in q.
func (r *Row) GradQ(to []float64) {
	r.need(pulled)
	r.totals(to, r.pairs)
}

// QuantileAdjoint fills g, made by [NewGradient], with all gradients of Σ z_i T_i at q.
func (r *Row) QuantileAdjoint(g *Gradient, q, z []float64) {
	r.need(solved)
	sz, sq := ScaleOf(z), ScaleOf(q)
	divide(r.zeta[:r.n], z, sz)
	clear(r.zeta[r.n:])
	divide(r.levels, q, sq)
	r.Adjoint(Cotangent{Z: r.zeta, Q: r.levels})
	copy(g.B, r.lam)
	Tangent(g.B, r.b)
	r.gradients(g)
	means := g.A[:r.np]
	kernel.Shift(g.A, g.A, inner(means, r.a))
	kernel.Scale(means, means, -1)
	r.SquashBack(g.X)
	g.Rescale(sz, sq)
}

// SortAdjoint fills g, made by [NewGradient] and with nil for Q, with all gradients of
// Σ z_j S_j.
func (r *Row) SortAdjoint(g *Gradient, z []float64) {
	r.need(solved)
	sz := ScaleOf(z)
	v := r.levels
	for j, zj := range z {
		v[j] = zj / sz / r.b[j]
	}
	sv := 1.0
	if top := Largest(v); top > 1e150 { // its products would overflow
		sv = ScaleFor(top)
		divide(v, v, sv)
	}
	// A constant taken from x moves S but no gradient. It is a value that S takes.
	s := r.sorted // S less the smallest sample
	r.sort(s)
	low, high := r.ends()
	sx := ScaleOf([]float64{low, high})
	mid := s[len(s)/2] / sx
	xi := r.gx
	for i, x := range r.x {
		xi[i] = (x/sx - low/sx) - mid
	}
	kernel.Multiply(r.zeta, r.a, xi)
	r.Adjoint(Cotangent{Z: r.zeta, Q: v})
	for j := range s {
		s[j] = s[j]/sx - mid
	}
	r.sortB(g.B, s)
	r.gradients(g)
	r.mean(v)
	direct, toA := r.v[:r.n], g.A[:r.np]
	for i, d := range direct {
		toA[i] = float64(xi[i]*d) - toA[i]
	}
	kernel.Shift(toA, toA, inner(toA, r.a))
	r.SquashBack(g.X)
	g.Rescale(sv, sx)
	g.Rescale(sz, 1)
	for i := range g.X {
		g.X[i] = Saturate(g.X[i] + Saturate(float64(float64(r.a[i]*direct[i])*sv)*sz))
	}
}

// sortB fills to with the gradient λ_j - v_j S_j of Σ z_j S_j in b, v_j = z_j/b_j, s being S less the
// constant that was taken from x. Where the two terms cancel, as they do in levels of little weight, the
// gradient is computed as the solution μ of
//
//	Σ_k L_jk μ_k = -Σ_k v_k (N_jk - S_k G_jk),
//
// which follows from Σ_k N_jk = S_j c_j: G_jk and N_jk are as small as b_j b_k, so that v_k is
// large in no term. The right side sums to 0 over a block of levels, but for rounding: where blocks
// are coupled by a share κ of their mass, μ has an error of u/κ, and the difference is kept.
func (r *Row) sortB(to, s []float64) {
	v := r.back.Q
	size := 0.0
	for j, l := range r.lam {
		to[j] = l - float64(v[j]*s[j])
	}
	Tangent(to, r.b)
	for _, l := range to {
		size = max(size, math.Abs(l))
	}
	// One form has an error of u max|v| (S_m-S_1), the other one of u/κ.
	lost, apart := Largest(v)*(s[len(s)-1]-s[0]), 1e-4
	if size >= apart*lost || size >= r.blocks()*lost {
		return
	}
	mu := r.rho
	for j := range mu {
		to[j] = 0
		n, g := r.pairs[j*r.mp:], r.g[j*r.mp:]
		for k, vk := range v {
			to[j] -= float64(vk * (n[k] - float64(s[k]*g[k])))
		}
	}
	copy(mu, to)
	balance(mu, r.b)
	kernel.SolveLaplacian(r.fac, r.piv, mu)
	// The elimination ends at the first levels. Where these have little weight, the rounding errors of
	// heavy levels are large beside it. So each level but the heaviest takes its potential from its own
	// equation.
	most := slices.Max(r.b)
	for j, b := range r.b {
		if b == most {
			continue
		}
		sum, at := 0.0, to[j]
		for k, w := range r.g[j*r.mp : j*r.mp+r.m] {
			if k != j {
				sum += w
				at += float64(w * mu[k])
			}
		}
		if sum > r.floor[j] {
			mu[j] = at / sum
		}
	}
	copy(to, mu)
	Tangent(to, r.b)
}

// blocks returns the least share κ of their mass that the levels on the lighter side of a
// boundary have in common with those on the other. It uses total.
func (r *Row) blocks() float64 {
	across := r.across()
	least, below, above := 1.0, 0.0, 0.0
	for J, sum := range across {
		if below += r.b[J]; below <= 0.5 {
			least = min(least, sum/below)
		}
	}
	for J := r.m - 1; J > 0; J-- {
		if above += r.b[J]; above < 0.5 {
			least = min(least, across[J-1]/above)
		}
	}
	return least
}

// gradients fills X (at x̃), A (with M λ), Y, Q and Epsilon after an adjoint.
func (r *Row) gradients(g *Gradient) {
	zeta, v := r.back.Z, r.back.Q
	if g.Q != nil {
		r.totals(g.Q, r.pairs)
	}
	gx, means, scale := g.X[:r.np], g.A[:r.np], 2/r.eps
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Covariances(&kernel.Cov{
			Out: gx[lo:hi], Mean: means[lo:hi], Logs: r.v[lo:hi], E: e, W: r.w, Z: r.z[lo:hi],
			Zeta: zeta[lo:hi], A: r.a[lo:hi], S: r.s[lo:hi], V: v, Lam: r.lam, Y: r.cy, H: r.h,
		})
	})
	g.Epsilon = -kernel.Sum(r.v) / r.eps
	kernel.Scale(gx, gx, scale)
	moved := func(out, by, v []float64) { // with the row weights by X
		kernel.Multiply(r.v, by, r.cx)
		r.differentiate(out, r.v, v)
	}
	moved(g.Y, zeta, v)
	moved(r.rho, r.a, r.lam)
	for j := range g.Y {
		g.Y[j] = scale * (g.Y[j] - r.rho[j])
	}
	r.phase = solved // pairs is that of other row weights now
}

// differentiate fills pairs with N of the row weights ζ, np numbers, and out_j with Σ_k (v_j-v_k) N_jk.
func (r *Row) differentiate(out, zeta, v []float64) {
	weights := func(lo, hi int, _ []float64) { kernel.Weigh(r.v[lo:hi], zeta[lo:hi], r.z[lo:hi]) }
	if r.regular && r.knows != triangled {
		r.moments(r.nu, weights)
		kernel.Hankel(r.pairs, r.total[:r.mp], r.nu, r.ratio, r.w[:r.mp], r.m)
	} else {
		r.triangles(r.pairs, r.total, weights)
	}
	r.differences(out, r.pairs, v)
}

// differences fills out_j = Σ_k (v_j-v_k) g_jk for a symmetric g. It uses inc and work.
func (r *Row) differences(out, g, v []float64) {
	copy(r.inc, v)
	kernel.Differences(r.work[:r.mp], g, r.inc[:r.mp], r.m)
	copy(out, r.work)
}

// mean fills r.v with M v for any v, as a sum of terms: in a sum of increments, as plan.average takes
// it, one large v_j of little weight would cancel. It uses inc.
func (r *Row) mean(v []float64) {
	const lanes = kernel.Lanes
	u := r.inc
	for j, w := range r.w {
		u[j] = float64(w * v[j])
	}
	r.tiles(func(lo, hi int, e []float64) {
		for i := lo; i < hi; i += lanes {
			kernel.Combine(r.v[i:i+lanes], u, e[(i-lo)*r.m:(i-lo+lanes)*r.m])
		}
	})
	kernel.Divide(r.v, r.v, r.z)
}

// gauge chooses the constant up to which λ is known, so that λ keeps its digits. It needs the factors that
// found λ.
func (r *Row) gauge() {
	if lo, hi := bounds(r.lam); hi-lo > 1e3 {
		r.regauge()
	}
}

// regauge subtracts from λ its median under the weights b, and adds a correction that is solved for
// from the residual ρ - Lλ: levels of little weight may have a λ so large that the differences
// between other levels are lost in its last place.
func (r *Row) regauge() {
	res := r.rho
	r.differences(r.work, r.g, r.lam)
	for j, t := range r.work {
		res[j] -= t
	}
	balance(res, r.b)
	kernel.SolveLaplacian(r.fac, r.piv, res)
	// The weighted median, by counting: m is small.
	mid := r.lam[0]
	for _, c := range r.lam {
		below, at := 0.0, 0.0
		for j, l := range r.lam {
			if l < c {
				below += r.b[j]
			} else if l == c {
				at += r.b[j]
			}
		}
		if below <= 0.5 && below+at >= 0.5 {
			mid = c
			break
		}
	}
	for j, d := range res {
		r.lam[j] = (r.lam[j] - mid) + d
	}
}

// inner returns Σ v_i w_i over whole blocks.
func inner(v, w []float64) float64 {
	var s [1]float64
	kernel.Dots(s[:], v, w)
	return s[0]
}
