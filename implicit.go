package quantmf

// This file holds the derivatives of the operators (paper §2, Algorithm 2, with
// its errata mended), each beside the forward they belong to in quantile.go.
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
// and what v and the output owe to b and x directly. N^{w} is N with row
// weights w; X are the centred x̃. Differences of levels are summed, never
// ρ = Σ z M (q-T), so that a plan that falls apart into blocks keeps its digits;
// on a regular grid each N is 2m-1 sums. A gradient in a or b is given on the
// simplex: Σ a_i A_i = 0, Σ b_j B_j = 0.
//
// After WithIterations these are the same formulas at the plan that is there.
// The pivots of L are not let fall below 1e-15 of their column: between levels
// that no sample shares the potential, and with it A and B, is not determined
// in double precision; they are finite, and X and Q do not feel it.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/laplacian"
)

// Gradient holds derivatives with respect to the arguments of an operator: x,
// a, b, y, q (nil where it has none) and ε. As the direction of a forward
// derivative, nil stands for zeros.
type Gradient struct {
	X, A, B, Y, Q []float64
	Epsilon       float64
}

// RankVJP returns the transposed Jacobian of [Transport.Rank] applied to z, n
// numbers. Cost: a pass over the plan and the moments of three sets of
// weights, 50nm flops, m³/3 once; memory 8(2n+3m) bytes, the result. At ε = 0 all are zero.
func (t *Transport) RankVJP(z []float64) (*Gradient, error) {
	n, b := t.size()
	q := make([]float64, len(b))
	t.rankLevels(q, n, b)
	sz := scaleOf(z)
	g, err := t.QuantileVJP(q, scaled(z, sz))
	if err != nil {
		return nil, err
	}
	if t.hard != nil {
		g.Q = nil
		return g, nil
	}
	// q = n cumsum(b), or n(cumsum(b)-b/2)+1/2.
	tail := 0.0
	for j := len(b) - 1; j >= 0; j-- {
		d := g.Q[j]
		tail += d
		if t.midpoint {
			d = tail - float64(d*0.5)
		} else {
			d = tail
		}
		g.B[j] += float64(float64(n) * d)
	}
	tangent(g.B, b)
	g.Q = nil
	g.scale(sz, 1)
	return g, nil
}

// QuantileVJP returns the transposed Jacobian of [Transport.Quantile] at q
// applied to z, n numbers. Cost and memory as RankVJP. At ε = 0, Q is exact and
// the others are zero.
func (t *Transport) QuantileVJP(q, z []float64) (*Gradient, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	n, b := t.size()
	sz, err := checkCotangent(z, n)
	if err != nil {
		return nil, err
	}
	g := newGradient(n, len(b))
	sq := scaleOf(q)
	if t.hard != nil {
		for i, v := range scaled(z, sz) {
			t.hard.shares(i, func(j int, s float64) { g.Q[j] += float64(v * s) })
		}
		g.scale(sz, sq)
		return g, nil
	}
	r := t.row()
	defer rows.Put(r)
	zeta, levels := r.zeta, r.cum
	divide(zeta[:n], z, sz)
	clear(zeta[n:])
	divide(levels, q, sq)
	r.fullAdjoint(g, zeta, levels)
	tangent(g.B, r.b)
	means := g.A[:r.np]
	kernel.Shift(g.A, g.A, inner(means, r.a))
	kernel.Scale(means, means, -1)
	r.squash.backward(g.X, r.xs, r.x)
	g.scale(sz, sq)
	return g, nil
}

// inner returns Σ v_i w_i over whole blocks.
func inner(v, w []float64) float64 {
	var s [1]float64
	kernel.Dots(s[:], v, w)
	return s[0]
}

// scaleOf returns the power of two by which v is divided lest sums overflow: the
// bits of ordinary numbers do not feel it. It is 1 for magnitudes near that.
func scaleOf(v []float64) float64 { return scaleFor(largestOf(v)) }

// largestOf returns the largest magnitude of v, NaN where one is not finite.
func largestOf(v []float64) float64 {
	var ends [2]float64
	kernel.Spread(&ends, v, 0)
	return ends[1]
}

// scaleFor is scaleOf for numbers of at most that magnitude.
func scaleFor(top float64) float64 {
	if top == 0 {
		return 1
	}
	_, e := math.Frexp(top)
	if e >= -8 && e <= 8 {
		return 1
	}
	return math.Ldexp(1, min(max(e, -1000), 1000))
}

// scaled returns v/s, v itself where s is 1.
func scaled(v []float64, s float64) []float64 {
	if s == 1 {
		return v
	}
	to := make([]float64, len(v))
	divide(to, v, s)
	return to
}

// divide fills to with v/s, s a power of two whose inverse is one.
func divide(to, v []float64, s float64) {
	if s == 1 {
		copy(to, v)
		return
	}
	kernel.Scale(to[:len(v)], v, 1/s)
}

// scale multiplies Q by s and the rest by s and t. What exceeds the largest
// number is given as that.
func (g *Gradient) scale(s, t float64) {
	rescale(g.Q, s, 1)
	rescale(g.X, s, t)
	rescale(g.A, s, t)
	rescale(g.B, s, t)
	rescale(g.Y, s, t)
	g.Epsilon = saturate(g.Epsilon * s * t)
}

// rescale multiplies v by s and t.
func rescale(v []float64, s, t float64) {
	if !(largestOf(v)*s*t <= math.MaxFloat64) {
		for i, x := range v {
			v[i] = saturate(x * s * t)
		}
		return
	}
	for _, by := range [...]float64{s, t} {
		if by != 1 {
			kernel.Scale(v, v, by)
		}
	}
}

func saturate(v float64) float64 {
	if v > math.MaxFloat64 {
		return math.MaxFloat64
	}
	if v < -math.MaxFloat64 {
		return -math.MaxFloat64
	}
	return v
}

// SortVJP returns the transposed Jacobian of [Transport.Sort] applied to z, m
// numbers. Cost and memory as RankVJP. At ε = 0, X is that of the exact sort,
// P z/b, and the others are zero.
func (t *Transport) SortVJP(z []float64) (*Gradient, error) {
	n, b := t.size()
	sz, err := checkCotangent(z, len(b))
	if err != nil {
		return nil, err
	}
	g := newGradient(n, len(b))
	g.Q = nil
	if t.hard != nil {
		for i, a := range t.hard.a {
			t.hard.shares(i, func(j int, s float64) { g.X[i] += float64(float64(a*s) * (z[j] / sz / b[j])) })
		}
		g.scale(sz, 1)
		return g, nil
	}
	r := t.row()
	defer rows.Put(r)
	v, heavy := r.cum, 0
	for j, zj := range z {
		v[j] = zj / sz / b[j]
		if math.Abs(v[j]) > math.Abs(v[heavy]) {
			heavy = j
		}
	}
	// x enters about a constant, which moves S and no gradient: the S_j of the
	// level with the largest z_j/b_j, where λ_j ≈ x z_j/b_j would cancel most.
	s := r.tau // S less the smallest sample
	r.sorted(s)
	low, high := r.ends()
	sx := scaleOf([]float64{low, high})
	mid := s[heavy] / sx
	xi := r.gx
	for i, x := range r.x {
		xi[i] = (x/sx - low/sx) - mid
	}
	kernel.Multiply(r.zeta, r.a, xi)
	r.fullAdjoint(g, r.zeta, v)
	r.mean(v)
	direct, toA := r.v[:n], g.A[:r.np]
	for i, d := range direct {
		toA[i] = float64(xi[i]*d) - toA[i]
	}
	kernel.Shift(toA, toA, inner(toA, r.a))
	for j := range s {
		g.B[j] -= float64(v[j] * (s[j]/sx - mid))
	}
	tangent(g.B, r.b)
	r.squash.backward(g.X, r.xs, r.x)
	g.scale(sz, sx)
	for i := range g.X {
		g.X[i] = saturate(g.X[i] + float64(float64(r.a[i]*direct[i])*sz))
	}
	return g, nil
}

// newGradient makes zeros, X and A with a capacity of whole blocks.
func newGradient(n, m int) *Gradient {
	np := kernel.Pad(n)
	all := make([]float64, 2*np+3*m)
	take := func(k, room int) (v []float64) { v, all = all[:k:room], all[room:]; return v }
	return &Gradient{X: take(n, np), A: take(n, np), B: take(m, m), Y: take(m, m), Q: take(m, m)}
}

// checkCotangent returns the scale of z, n finite numbers.
func checkCotangent(z []float64, n int) (scale float64, err error) {
	if len(z) != n {
		return 0, &ShapeError{What: "z", Got: itoa(len(z)) + " values", Want: itoa(n)}
	}
	top := largestOf(z)
	if top != top {
		i := notFinite(z)
		return 0, &DataError{Row: -1, Col: i, Value: z[i], Problem: "z must be finite"}
	}
	return scaleFor(top), nil
}

// tangent projects g onto the simplex tangent at the weights w.
func tangent(g, w []float64) {
	s := 0.0
	for i := range g {
		s += float64(w[i] * g[i])
	}
	for i := range g {
		g[i] -= s
	}
}

// pairs fills sums with N of the weights over Z² that [row.moments] is to have, and
// out_j with Σ_k (v_j-v_k) N_jk.
func (r *row) pairs(out []float64, weights func(lo, hi int, e []float64), v []float64) {
	if r.regular && !r.lost {
		r.moments(r.nu, weights)
		kernel.Hankel(r.sums, r.total[:r.mp], r.nu, r.ratio, r.w[:r.mp], r.m)
	} else {
		r.triangles(r.sums, r.total, weights)
	}
	r.differences(out, r.sums, v)
}

// differences fills out_j = Σ_k (v_j-v_k) g_jk for a symmetric g. It uses inc and work.
func (r *row) differences(out, g, v []float64) {
	copy(r.inc, v)
	kernel.Differences(r.work[:r.mp], g, r.inc[:r.mp], r.m)
	copy(out, r.work)
}

// adjoint fills lam with λ, up to a constant, and gx with the gradient at x̃; sums then holds N.
// zeta has np numbers, v has m.
func (r *row) adjoint(zeta, v []float64) {
	r.weightAdjoint(zeta, v)
	r.sampleAdjoint(zeta, v)
}

// sampleAdjoint is the part of adjoint that comes after λ.
func (r *row) sampleAdjoint(zeta, v []float64) {
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Covariance(&kernel.Cov{Out: r.gx[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: zeta[lo:hi], A: r.a[lo:hi], V: v, Lam: r.lam, Y: r.cy})
	})
	kernel.Scale(r.gx, r.gx, 2/r.eps)
}

// fullAdjoint is adjoint, and fills X, A (with M λ), B (up to a constant), Y, Q and Epsilon.
func (r *row) fullAdjoint(g *Gradient, zeta, v []float64) {
	r.weightAdjoint(zeta, v)
	copy(g.B, r.lam)
	if g.Q != nil {
		r.rowTotals(g.Q, r.sums)
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
		r.pairs(out, func(lo, hi int, _ []float64) {
			kernel.Multiply(r.v[lo:hi], by[lo:hi], r.cx[lo:hi])
			kernel.Weigh(r.v[lo:hi], r.v[lo:hi], r.z[lo:hi])
		}, v)
	}
	moved(g.Y, zeta, v)
	moved(r.rho, r.a, r.lam)
	for j := range g.Y {
		g.Y[j] = scale * (g.Y[j] - r.rho[j])
	}
}

// weightAdjoint is the part of adjoint that the gradients in b and q need: λ and N.
func (r *row) weightAdjoint(zeta, v []float64) {
	r.load(zeta, v)
	r.newton(r.lam)
	r.gauge()
}

// load fills sums with N, and lam and rho with ρ.
func (r *row) load(zeta, v []float64) {
	r.pairs(r.lam, func(lo, hi int, _ []float64) { kernel.Weigh(r.v[lo:hi], zeta[lo:hi], r.z[lo:hi]) }, v)
	copy(r.rho, r.lam)
}

// gauge sees to it that λ, which is known up to a constant, keeps its digits.
func (r *row) gauge() {
	if lo, hi := bounds(r.lam); hi-lo > 1e3 {
		r.factor()
		r.regauge()
	}
}

// regauge takes from λ the value about which most of b lies, and then adds what
// the residual ρ - Lλ says is missing: levels of little weight may have a λ so
// large that the differences between the others are lost in its last place.
func (r *row) regauge() {
	res := r.rho
	r.differences(r.work, r.gram, r.lam)
	for j, t := range r.work {
		res[j] -= t
	}
	center(res, r.b)
	laplacian.Solve(r.fac, r.piv, res)
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

// rowTotals fills out_j = Σ_k N_jk of a symmetric matrix.
func (r *row) rowTotals(out, sums []float64) {
	out = out[:r.m]
	clear(out)
	for j := range r.m {
		for k, s := range sums[j*r.mp : j*r.mp+r.m] {
			out[k] += s
		}
	}
}

// mean fills r.v with M v for any v.
func (r *row) mean(v []float64) {
	r.increments(v)
	r.tiles(func(lo, hi int, e []float64) { kernel.Average(r.v[lo:hi], e, r.w, r.z[lo:hi], v[0], r.inc) })
}

// QuantileJVP returns the forward derivative of [Transport.Quantile] at q along
// dir, whose weights count by their part on the simplex. Where levels are coupled weakly
// (small ε) it loses digits that the gradients of QuantileVJP keep. Cost: 30nm flops and
// m³/3; memory 8n bytes. At ε = 0 only the direction of q counts.
func (t *Transport) QuantileJVP(q []float64, dir Gradient) ([]float64, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	n, b := t.size()
	m := len(b)
	top := math.Abs(dir.Epsilon)
	for _, d := range []struct {
		name string
		v    []float64
		want int
	}{{"dir.X", dir.X, n}, {"dir.A", dir.A, n}, {"dir.B", dir.B, m}, {"dir.Y", dir.Y, m}, {"dir.Q", dir.Q, m}} {
		if d.v == nil {
			continue
		}
		if len(d.v) != d.want {
			return nil, &ShapeError{What: d.name, Got: itoa(len(d.v)) + " values", Want: itoa(d.want)}
		}
		l := largestOf(d.v)
		if l != l {
			i := notFinite(d.v)
			return nil, &DataError{Row: -1, Col: i, Value: d.v[i], Problem: d.name + " must be finite"}
		}
		top = max(top, l)
	}
	if dir.Epsilon-dir.Epsilon != 0 {
		return nil, &DataError{Row: -1, Col: -1, Value: dir.Epsilon, Problem: "dir.Epsilon must be finite"}
	}
	out := make([]float64, kernel.Pad(n))
	if t.hard != nil {
		for i := range out[:n] {
			if dir.Q != nil {
				t.hard.shares(i, func(j int, s float64) { out[i] += float64(s * dir.Q[j]) })
			}
		}
		return out[:n:n], nil
	}
	r := t.row()
	defer rows.Put(r)
	// Everything in units of powers of two, so that nothing overflows on the way.
	sd, sq := scaleFor(top), scaleOf(q)
	r.forward(out, scaled(q, sq), sd, &dir)
	for i, v := range r.v[:n] {
		out[i] = saturate(float64(v*sd) + float64(out[i]*sq*sd))
	}
	return out[:n:n], nil
}

// forward fills out (np numbers) and v with the two parts of the derivative along dir/s,
//
//	dT_i = Cov_{M_i}(q, dh + κ_i) + M_i·dq,   κ_ij = α_i Y_j + s_i dY_j,   α_i = 2 dX_i/ε - s_i dε/ε:
//
// the logits h_j + 2X_i Y_j/ε move by dh_j + κ_ij, M by M(κ - M·κ) and the like of dh, which
// keeps the column sums:
//
//	L dh = dc,   dc_j = db_j - Σ_i da_i M_ij - Σ_k (Y_j-Y_k) N^{aα}_jk - Σ_k (dY_j-dY_k) N^{as}_jk.
func (r *row) forward(out, q []float64, s float64, dir *Gradient) {
	m := r.m
	alpha, by, dc, dy := r.zeta, r.gx, r.dir, r.cum
	clear(alpha)
	if dir.X != nil {
		divide(alpha, dir.X, s)
		r.squash.forward(alpha[:r.n], r.xs, r.x)
	}
	deps := dir.Epsilon / s
	for i, d := range alpha[:r.n] {
		alpha[i] = 2*d/r.eps - r.s[i]*deps/r.eps
	}
	clear(dc)
	if dir.B != nil {
		divide(dc, dir.B, s)
		total := 0.0
		for _, d := range dc {
			total += d
		}
		for j, b := range r.b {
			dc[j] -= float64(b * total)
		}
	}
	if dir.A != nil {
		clear(by)
		divide(by, dir.A, s)
		total := kernel.Sum(by)
		for i, a := range r.a {
			by[i] -= float64(a * total)
		}
		r.columns(r.rho, by)
		for j, c := range r.rho {
			dc[j] -= float64(c * r.w[j])
		}
	}
	moved := func(by, rate, v []float64) { // by the level values v, of which a sample takes its rate
		kernel.Multiply(by, r.a, rate)
		r.pairs(r.rho, func(lo, hi int, _ []float64) { kernel.Weigh(r.v[lo:hi], by[lo:hi], r.z[lo:hi]) }, v)
		for j, c := range r.rho {
			dc[j] -= c
		}
	}
	moved(by, alpha, r.cy)
	if dir.Y != nil {
		divide(dy, dir.Y, s)
		moved(by, r.s, dy)
	}
	center(dc, r.b)
	r.newton(dc)
	kernel.Scale(alpha, alpha, -1)
	for i := range by {
		by[i] = 1
	}
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Covariance(&kernel.Cov{Out: out[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: by[lo:hi], A: alpha[lo:hi], V: dc, Lam: r.cy, Y: q})
	})
	if dir.Y != nil {
		clear(by)
		r.tiles(func(lo, hi int, e []float64) {
			kernel.Covariance(&kernel.Cov{Out: r.v[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: r.s[lo:hi], A: by[lo:hi], V: dy, Lam: dy, Y: q})
		})
		add(out, r.v)
	}
	if dir.Q == nil {
		clear(r.v)
		return
	}
	divide(r.rho, dir.Q, s)
	r.mean(r.rho[:m])
}
