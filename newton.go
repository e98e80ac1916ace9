package quantmf

// This file holds the solver of one row: the semi-dual of entropic transport
// onto m targets and Newton's method on it.
//
// # The problem (paper §2, Eq. RegOT)
//
// Samples x_i of weight a_i go to targets y_j of weight b_j at cost (x_i-y_j)²;
// the plan is P_ij = exp((f_i+g_j-(x_i-y_j)²)/ε). For given g the best f makes
// the row sums exact, which leaves m unknowns. With X, Y the centred x, y,
//
//	M_ij = P_ij/a_i = exp(h_j + s_i Y_j)/Z_i,   s_i = 2X_i/ε,
//	g_j = ε h_j + Y_j² - 2δY_j,                 δ = x̄ - ȳ,
//
// and the concave D(h) = Σ b_j h_j - Σ a_i log Z_i is maximised:
//
//	∇D = b - c,  c = Mᵀa;   -∇²D = L = diag(c) - Mᵀ diag(a) M.
//
// L is the Laplacian of a weighted graph, solved without subtractions by
// package laplacian; it is also the matrix of the implicit gradients.
//
// # A pass
//
// On a regular grid E_ij E_ik depends on j+k only, up to a factor that does not
// depend on i: the Gram matrix Mᵀdiag(a)M is known from 2m-1 sums, and a pass
// costs 8nm flops plus m³/3 for the elimination. It goes over the samples once, tile
// by tile: what is built or read of E is summed over rows and columns while it is in
// the cache. Otherwise the whole triangle is summed, 3/2 nm² more.
//
// # Why it converges
//
// Along a direction d of range R, V(t) = -∂²D = Σ a_i Var_{M_i}(d) satisfies
// |V'| <= R V, so V(t) <= V(0)e^{Rt} and the step t = log(1+R)/R of the Newton
// direction raises D by at least λ²((1+R)log(1+R)-R)/R², λ² = dᵀLd, without
// looking. A Sinkhorn step h += log(b/c) raises D by at least KL(b|c). D is
// bounded, so either way converges, and for small R the full step is taken:
// quadratically. The fast path uses a residual in logarithms and clips the
// step boundary by boundary; it is guarded by the slope at the new point, which
// by concavity tells whether D rose.
//
// Where it starts is in thresholds.go. The last sweep takes T as well for those who ask
// before (row.ask): the step before tells that it will be the last.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/laplacian"
)

// rounding is the relative error of c that rounding in the logits leaves.
func (r *row) rounding() float64 {
	return 8 * unit * (1 + float64(2*r.reach*r.edge))
}

// lostLogits tells whether rounding in the logits has left no digit of c.
func (r *row) lostLogits() bool { return !(r.rounding() < 0.1) }

// roundingFloor is the error at which a plan is called converged whatever the
// tolerance: that of rounding, but never above 1e-6.
func (r *row) roundingFloor() float64 { return min(r.rounding(), 1e-6) }

const (
	maxPower = 150 // largest |s Y| of a kernel built by multiplication
	maxLift  = 680 // largest max|s Y| and half the range of h, together, of one that is lifted: its entries reach e to that
	maxRange = 60  // of h-href: beyond it the kernel is built anew
	decouple = 1e-200
	flushed  = 1e-150 // column sums below it are taken in logarithms
	stall    = 300    // steps of the damped method without a gain
	far      = 0.01   // relative errors that ascend mends
)

// tile is the number of entries of E that go through all sums of a sweep before the
// next do, so that they are in the cache from when they are built or read.
const tile = 1 << 15

// whole is the number of entries up to which E is kept. Longer rows have a tile of it
// at a time, built anew in each sweep, with the same bits: their memory is O(n+m²).
const whole = 1 << 19

// tiles calls f with the bounds of each tile of samples and its part of E.
func (r *row) tiles(f func(lo, hi int, e []float64)) {
	m, keep := r.m, r.room > r.size*r.m
	r.reserve()
	for lo := 0; lo < r.np; lo += r.size {
		hi := min(lo+r.size, r.np)
		e := r.e[:(hi-lo)*m]
		if keep {
			e = r.e[lo*m : hi*m]
		}
		if !r.built {
			r.build(e, lo, hi)
		}
		f(lo, hi, e)
	}
	r.built = keep || r.size == r.np
}

// reserve makes the room for E.
func (r *row) reserve() {
	if cap(r.e) < r.room {
		r.e = make([]float64, r.room)
	}
}

// setTiles finds how many samples are in a tile, and what room E takes.
func (r *row) setTiles() {
	r.size = min(max(tile/r.m&^(kernel.Lanes-1), kernel.Lanes), r.np)
	r.room = r.size * r.m
	if all := r.np * r.m; all <= whole {
		r.room = all
	}
}

// reference decides on the form of E and on href for the potentials h.
func (r *row) reference(h []float64) {
	r.power = false
	if r.regular {
		lo, hi := bounds(h)
		r.power = r.steep*r.edge <= maxPower && hi-lo <= maxRange
	}
	if r.power {
		clear(r.href)
	} else {
		copy(r.href, h)
	}
	r.refer()
}

// refer makes what the form of E and href entail.
func (r *row) refer() {
	r.lifted = false
	if r.power || !r.regular {
		r.expansion()
		return
	}
	lo, hi := bounds(r.href)
	if r.lifted = float64(r.steep*max(r.edge, r.step))+float64((hi-lo)*0.5) <= maxLift; r.lifted {
		mid := middle(lo, hi)
		for j, h := range r.href {
			r.boost[j] = h - mid
		}
		kernel.Exp(r.boost, r.boost)
	}
	r.expansion()
}

// build fills e with a tile of E.
func (r *row) build(e []float64, lo, hi int) {
	if !r.power && !r.lifted {
		kernel.Build(e, r.s[lo:hi], r.href, r.cy)
		return
	}
	kernel.BuildPower(e, r.s[lo:hi], r.cy[0], r.step, r.m)
	if r.lifted {
		kernel.Lift(e, r.boost, hi-lo)
	}
}

// expansion fills ratio_jk with E_j E_k over the square (or the product of
// neighbours) in the middle between j and k: exp(href_j+href_k-...).
func (r *row) expansion() {
	m, mp := r.m, r.mp
	if !r.regular || r.power && r.flat {
		return
	}
	clear(r.ratio)
	if !r.power {
		for j := range m {
			for k := range j - 1 {
				mid := (j + k) / 2
				up := (j + k + 1) / 2
				r.ratio[j*mp+k] = min((r.href[j]-r.href[up])+(r.href[k]-r.href[mid]), 700)
			}
		}
	}
	kernel.Exp(r.ratio, r.ratio)
	for j := range m {
		for k, v := range r.ratio[j*mp : j*mp+j] {
			r.ratio[k*mp+j] = v
		}
	}
	r.flat = r.power
}

// middle returns (a+b)/2 without overflow.
func middle(a, b float64) float64 { return float64(a*0.5) + float64(b*0.5) }

func bounds(h []float64) (lo, hi float64) {
	lo, hi = h[0], h[0]
	for _, v := range h {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// aim fills the level weights of the potentials h, and href anew where e does not
// serve them.
func (r *row) aim(h []float64) {
	r.averaged = false
	lo, hi := math.Inf(1), math.Inf(-1)
	if r.aimed {
		for j, v := range h {
			lo, hi = min(lo, v-r.href[j]), max(hi, v-r.href[j])
		}
		r.aimed = hi-lo <= maxRange
	}
	if !r.aimed {
		r.reference(h)
		r.aimed, r.built = true, false
		lo, hi = 0, 0
		if r.power {
			lo, hi = bounds(h)
		}
	}
	r.mid = middle(lo, hi)
	for j, v := range h {
		r.w[j] = v - r.href[j] - r.mid
	}
	kernel.Exp(r.w, r.w)
}

// evaluate makes M that of the potentials h: kernel, level weights, row sums.
func (r *row) evaluate(h []float64) {
	r.aim(h)
	r.tiles(func(lo, hi int, e []float64) { kernel.RowSums(r.z[lo:hi], e, r.w) })
}

// sweep evaluates the row at h, up to the sums that hold the Gram matrix; where the
// targets are not regular, up to that. Of what it asks for it takes T as well, when
// that is thought to be wanted at this h.
func (r *row) sweep(h []float64, last bool) {
	r.aim(h)
	r.averaged = last && r.goal != nil
	weights := func(lo, hi int, e []float64) {
		if r.averaged {
			kernel.Average(r.goal[lo:hi], e, r.w, r.z[lo:hi], r.first, r.inc)
		} else {
			kernel.RowSums(r.z[lo:hi], e, r.w)
		}
		kernel.Weigh(r.v[lo:hi], r.a[lo:hi], r.z[lo:hi])
	}
	r.expanded, r.summed, r.lost = !r.regular, !r.regular, false
	if !r.regular {
		r.triangles(r.gram, r.c, weights)
		r.settle()
		return
	}
	r.moments(r.mu, weights)
}

// expand makes the Gram matrix and the column sums c of the last sweep.
func (r *row) expand() {
	if !r.expanded {
		kernel.Hankel(r.gram, r.c[:r.mp], r.mu, r.ratio, r.w[:r.mp], r.m)
		r.expanded, r.summed = true, true
		r.settle()
	}
}

// pass is a sweep with the Gram matrix.
func (r *row) pass(h []float64) {
	r.sweep(h, false)
	r.expand()
}

// settle makes the Gram matrix anew without the Hankel form where that has lost
// what lies beside a column that was flushed to 0, and remembers it for other sums.
// So it does where the potentials are so large that their rounding decides: the
// differences of them in the Hankel form would be anything.
func (r *row) settle() {
	lost := r.lostLogits()
	for _, s := range r.c {
		lost = lost || s < 1e-100
	}
	if lost {
		r.direct()
	}
}

// direct evaluates Gram matrix and column sums without the Hankel form.
func (r *row) direct() {
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Weigh(r.v[lo:hi], r.a[lo:hi], r.z[lo:hi])
		r.triangle(r.gram, lo, hi, e)
	})
	r.weigh(r.gram)
	r.columns(r.c, r.a)
	for j := range r.c {
		r.c[j] *= r.w[j]
	}
	r.expanded, r.summed, r.lost = true, true, true
}

// columns fills out_j = Σ_i ζ_i E_ij/Z_i: the column sums of diag(ζ) M over w. ζ has np
// numbers, 0 in the padding. It uses v.
func (r *row) columns(out, zeta []float64) {
	part := r.part[:r.m]
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Divide(r.v[lo:hi], zeta[lo:hi], r.z[lo:hi])
		if lo == 0 {
			kernel.ColSums(out, e, r.v[:hi])
			return
		}
		kernel.ColSums(part, e, r.v[lo:hi])
		add(out, part)
	})
}

// moments fills mu with the 2m-1 sums that hold Σ_i v_i Z_i² M_ij M_ik. weights fills
// v, a tile at a time.
func (r *row) moments(mu []float64, weights func(lo, hi int, e []float64)) {
	mu = mu[:2*r.m]
	r.tiles(func(lo, hi int, e []float64) {
		weights(lo, hi, e)
		if lo == 0 {
			kernel.Moments(mu, e, r.v[:hi])
			return
		}
		part := r.part[:2*r.m]
		kernel.Moments(part, e, r.v[lo:hi])
		add(mu, part)
	})
}

// triangles fills g with that Gram matrix where the targets are not regular, and
// total with its column sums.
func (r *row) triangles(g, total []float64, weights func(lo, hi int, e []float64)) {
	m, mp := r.m, r.mp
	r.tiles(func(lo, hi int, e []float64) {
		weights(lo, hi, e)
		r.triangle(g, lo, hi, e)
	})
	r.weigh(g)
	clear(total)
	for j := range m {
		for k, t := range g[j*mp : j*mp+m] {
			total[k] += t
		}
	}
}

// triangle adds a tile to the lower triangle of g_jk = Σ_i v_i E_ij E_ik. It uses fac.
func (r *row) triangle(g []float64, lo, hi int, e []float64) {
	if lo == 0 {
		kernel.Gram(g, e, r.v[:hi], r.m)
		return
	}
	kernel.Gram(r.fac, e, r.v[lo:hi], r.m)
	for j := range r.m {
		add(g[j*r.mp:], r.fac[j*r.mp:j*r.mp+j+1])
	}
}

// weigh turns the lower triangle of sums over E into sums over E W, both triangles.
func (r *row) weigh(g []float64) {
	for j := range r.m {
		for k := range j + 1 {
			t := g[j*r.mp+k] * r.w[j] * r.w[k]
			if math.Abs(t) < decouple {
				t = 0
			}
			g[j*r.mp+k], g[k*r.mp+j] = t, t
		}
	}
}

// relative returns max_j |c_j-b_j|/b_j.
func (r *row) relative() float64 {
	e, c := 0.0, r.c[:len(r.b)]
	for j, b := range r.b {
		if v := math.Abs(c[j]-b) / b; !(v <= e) {
			if v != v {
				return v
			}
			e = v
		}
	}
	return e
}

// logResidual fills logs_j = log(b_j/c_j) and returns the largest magnitude. Where c_j was
// flushed it is taken anew in logarithms: one Sinkhorn step then brings the level back.
func (r *row) logResidual(rel float64) float64 {
	if rel < 1e-3 {
		for j, b := range r.b {
			c := max(r.c[j], 1e-300)
			e := (b - c) / c
			r.logs[j] = e - float64(float64(e*e)*0.5) + float64(e*e*e)/3
		}
	} else {
		for j, b := range r.b {
			r.logs[j] = b / max(r.c[j], 1e-300)
		}
		kernel.Log(r.logs, r.logs)
		for j, c := range r.c {
			if c < flushed {
				logs, _ := r.logColumn(j)
				r.logs[j] = elem.Log(r.b[j]) - logSum(logs)
			}
		}
	}
	top := 0.0
	for _, l := range r.logs {
		top = max(top, math.Abs(l))
	}
	return top
}

// newton solves L d = res for the direction d in place.
func (r *row) newton(res []float64) {
	r.factor()
	laplacian.Solve(r.fac, r.piv, res)
}

// factor eliminates the Laplacian of the pass last made.
func (r *row) factor() {
	r.expand()
	copy(r.fac, r.gram)
	r.setFloor()
	laplacian.Factor(r.fac, r.piv, r.floor, r.work[:r.mp])
}

// setFloor fills floor with what pivots are not let fall below.
func (r *row) setFloor() {
	for j, c := range r.c {
		r.floor[j] = max(1e-15*max(c, r.b[j]), 1e-290)
	}
}

// slope returns d·(b-c), the derivative of D along d.
func (r *row) slope(d []float64) float64 {
	s := 0.0
	for j, v := range d {
		s += float64(v * (r.b[j] - r.c[j]))
	}
	return s
}

// outcome says how a solve ended.
type outcome struct {
	passes    int
	rel       float64 // max_j |c_j-b_j|/b_j
	converged bool
}

// solve maximises the semi-dual to a relative column error of tol. The row then
// stands at the last pass: h, e, w, z, gram and c belong together. ws may be nil.
func (r *row) solve(tol float64, maxPasses int, ws *warm) outcome {
	s := r.begin(tol, maxPasses, ws)
	s.run(r)
	return r.finish(s, ws)
}

// begin sets the start of a solve and makes its first sweep.
func (r *row) begin(tol float64, maxPasses int, ws *warm) descent {
	m := r.m
	tau, start := r.tau[:m-1], r.cum[:m-1]
	r.initial(start)
	copy(tau, start)
	if ws != nil && ws.valid {
		for J := range tau {
			tau[J] += ws.offset[J]
		}
	}
	if ws == nil || !ws.valid {
		r.coarse(tau)
	}
	r.fromThresholds(r.h, tau)
	return r.descend(tol, max(tol, r.roundingFloor()), min(maxPasses, 16), maxPasses)
}

// finish ends a solve, by the damped method where s did not get there.
func (r *row) finish(s descent, ws *warm) outcome {
	out, start := s.outcome, r.cum[:r.m-1]
	if !out.converged && out.passes < s.most {
		r.fromThresholds(r.h, start)
		out = r.safe(s.want, s.most, out)
	}
	r.goal = nil
	if invariants {
		r.checkPlan(out)
	}
	if ws != nil {
		tau := r.tau[:r.m-1]
		ws.valid = out.converged && out.passes <= 12
		if ws.valid {
			r.thresholds(tau, r.h)
			for J := range tau {
				ws.offset[J] = tau[J] - start[J]
				if ws.offset[J]-ws.offset[J] != 0 {
					ws.valid = false
				}
			}
		}
	}
	return out
}

// descent is where Newton's method with the logarithmic residual and clipped steps
// stands. It begins no step after limit passes, and makes no more than most.
type descent struct {
	outcome
	tol, want    float64
	limit, most  int
	stalled      int
	lowest       float64
	error, slope float64 // before the step that was made last: max|log b/c|, and d·(b-c)
	moved        bool    // there is such a step, to try, not judged yet
	refined      bool
}

// descend begins at h.
func (r *row) descend(tol, want float64, limit, most int) descent {
	r.sweep(r.h, false)
	return descent{outcome: outcome{passes: 1}, tol: tol, want: want, limit: limit, most: most, lowest: math.Inf(1)}
}

// run goes on to the end.
func (s *descent) run(r *row) {
	for s.ahead(r) {
		r.newton(r.dir)
		s.move(r)
	}
}

// ahead judges the last sweep, and fills dir with the right side of the equations of
// the next step, or returns false at the end.
func (s *descent) ahead(r *row) bool {
	if !r.summed {
		r.expand()
	}
	if s.moved {
		s.judge(r)
	}
	for {
		s.rel = r.relative()
		if s.converged = s.rel <= s.want; s.converged {
			// Where less than rounding allows was asked for, one pass more: it costs
			// little and gains the digits that are there.
			if s.rel <= s.tol || s.refined || s.passes >= s.limit {
				return false
			}
			s.refined = true
		}
		if s.rel < s.lowest {
			s.lowest, s.stalled = s.rel, 0
		} else if s.stalled++; s.stalled >= 3 && s.rel <= 100*s.want {
			return false
		}
		if s.passes >= s.limit {
			return false
		}
		s.error = r.logResidual(s.rel)
		if s.error > 1.5 { // a Sinkhorn step always ascends, and lifts tiny b_j at once
			for j := range r.h {
				r.h[j] += r.logs[j]
			}
			r.pass(r.h)
			s.passes++
			if s.passes >= s.limit {
				continue
			}
			s.rel = r.relative()
			if s.rel <= s.want {
				continue
			}
			s.error = r.logResidual(s.rel)
		}
		d, sumC, sumR := r.dir, 0.0, 0.0
		for j, c := range r.c {
			d[j] = float64(c * r.logs[j])
			sumR += d[j]
			sumC += c
		}
		for j, c := range r.c {
			d[j] -= float64(sumR / sumC * c)
		}
		return true
	}
}

// move makes a step along dir, the solution of those equations, and the sweep there.
func (s *descent) move(r *row) {
	d := r.dir
	clip(d)
	if s.slope = r.slope(d); !(s.slope > 0) {
		copy(d, r.logs)
		s.slope = r.slope(d)
	}
	for j, v := range r.h {
		r.try[j] = v + d[j]
	}
	// The error falls with its square: what comes next is likely to be the last sweep.
	r.sweep(r.try, s.rel*s.rel <= s.want)
	s.passes++
	s.moved = true
}

// judge keeps the step, or goes back and makes a damped one, that of the proof above.
func (s *descent) judge(r *row) {
	s.moved = false
	d := r.dir
	if r.slope(d) >= -0.3*s.slope || r.logResidual(1) < max(s.error/2, 1e-6) || s.passes+2 > s.most {
		copy(r.h, r.try)
		return
	}
	r.pass(r.h)
	s.passes++
	for j := range d {
		d[j] = r.b[j] - r.c[j]
	}
	center(d, r.c)
	r.newton(d)
	slope := r.slope(d)
	lo, hi := bounds(d)
	t := 1.0
	if R := hi - lo; R > 1 {
		t = elem.Log1p(R) / R
	}
	for tries := 0; ; tries++ {
		for j, v := range r.h {
			r.try[j] = v + float64(t*d[j])
		}
		r.pass(r.try)
		s.passes++
		s1 := r.slope(d)
		if s1 >= -0.3*slope || tries == 5 || s.passes >= s.most {
			break
		}
		t *= min(max(slope/(slope-s1), 0.1), 0.5)
	}
	copy(r.h, r.try)
}

// center takes from v its sum in proportion to c, so that it sums to 0.
func center(v, c []float64) {
	s, sc := 0.0, 0.0
	for j := range v {
		s += v[j]
		sc += c[j]
	}
	for j := range v {
		v[j] -= float64(s / sc * c[j])
	}
}

// clip shortens each difference of successive entries beyond 2 to 2+log(1+v-2):
// a boundary that is far off does not hold the others back.
func clip(d []float64) {
	prev := d[0]
	for j := 1; j < len(d); j++ {
		v := d[j] - prev
		prev = d[j]
		if v > 2 {
			v = 2 + elem.Log1p(v-2)
		} else if v < -2 {
			v = -2 - elem.Log1p(-v-2)
		}
		d[j] = d[j-1] + v
	}
}

// safe is the damped method of the proof, for what the fast path did not reach. Where a
// column is far from its weight a Sinkhorn step comes first, which alone would be
// slow: it is Newton's step that moves levels of little weight against each other.
// One pass of limit is kept for handing back the best.
// balance brings the middle of potentials, which are known up to a constant, to 0, or
// that of the anchor: there they have the most digits.
func (r *row) balance(h []float64) {
	at := 0.0
	if r.anchor >= 0 {
		at = h[r.anchor]
	} else {
		lo, hi := bounds(h)
		at = middle(lo, hi)
	}
	for j := range h {
		h[j] -= at
	}
}

// ascend maximises D over one potential after the other, and over the sum of those up
// to a boundary or from it on, where that is far from its maximum, and returns the passes
// that this is worth, at most most. A sample that wholly belongs to a level says nothing of how far the next
// is off, so that Newton's step across such a gap is of any length; this one finds
// the place by halving.
func (r *row) ascend(most int) (passes int) {
	n, m := r.n, r.m
	odds, logA, terms := make([]float64, n), make([]float64, n), make([]float64, m)
	kernel.Log(logA, r.a[:n])
	evaluations := 0
	// move shifts the potentials from lo up to hi so that these levels have the weight b.
	move := func(lo, hi int, b float64) {
		if evaluations+m+bisections > most*m {
			return
		}
		for i, s := range r.s[:n] {
			for j, y := range r.cy {
				terms[j] = r.h[j] + float64(s*y)
			}
			in, out := logSum(terms[lo:hi]), math.Inf(-1)
			for _, rest := range [...][]float64{terms[:lo], terms[hi:]} {
				if len(rest) > 0 {
					out = logAdd(out, logSum(rest))
				}
			}
			odds[i] = in - out
		}
		t, count := shift(odds, logA, b)
		for j := lo; j < hi; j++ {
			r.h[j] += t
		}
		evaluations += m + count
	}
	r.logResidual(1)
	copy(r.try, r.logs)
	below, has, above := 0.0, 0.0, 0.0
	for j, l := range r.try {
		if math.Abs(l) > far {
			move(j, j+1, r.b[j])
		}
		below += r.b[j]
		has += r.c[j]
		if below <= 0.5 && j < m-1 && math.Abs(has-below) > far*below {
			move(0, j+1, below)
		}
	}
	has = 0
	for j := m - 1; j > 0; j-- {
		above += r.b[j]
		has += r.c[j]
		if above < 0.5 && math.Abs(has-above) > far*above {
			move(j, m, above)
		}
	}
	return (evaluations + m - 1) / m
}

// logAdd returns log(exp a + exp b), a or b above -Inf.
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + elem.Log1p(elem.Exp(b-a))
}

// bisections bounds the evaluations of shift.
const bisections = 200

// shift returns the t at which Σ a_i σ(odds_i+t) = b < Σ a_i, and how often it evaluated
// that. Where samples have the weight -Inf in logarithms they count for nothing.
func shift(odds, logA []float64, b float64) (t float64, count int) {
	logs := make([]float64, len(odds))
	least, goal := math.Inf(1), elem.Log(b)
	for i, o := range odds {
		logs[i] = logA[i] + o
		if logA[i] > math.Inf(-1) {
			least = min(least, o)
		}
	}
	// σ(u) <= exp u, so the root is not below lo; at hi every sample has a share of b.
	lo, hi := goal-logSum(logs), goal-elem.Log1p(-b)-least
	for t = lo; count < bisections; count++ {
		for i, o := range odds {
			logs[i] = logA[i] - logAdd(0, -(o+t))
		}
		f := logSum(logs) - goal
		if math.Abs(f) < 1e-12 {
			break
		}
		if f < 0 {
			lo = t
		} else {
			hi = t
		}
		next := middle(lo, hi)
		if !(next > lo && next < hi) {
			break
		}
		t = next
	}
	return t, count
}

func (r *row) safe(want float64, limit int, out outcome) outcome {
	r.aimed = false
	r.pass(r.h)
	out.passes++
	lowest := math.Inf(1)
	stalled := 0
	for {
		out.rel = r.relative()
		if out.rel < lowest {
			lowest, stalled = out.rel, 0
			copy(r.best, r.h)
		} else {
			stalled++
		}
		if out.converged = out.rel <= want; out.converged {
			return out
		}
		if out.passes >= limit-1 || (stalled >= 30 && lowest <= 100*want) || stalled >= stall {
			break
		}
		if stuck := stalled%8 == 7; stuck || out.rel > 0.5 {
			if stuck && out.rel > far {
				out.passes += r.ascend(limit - 2 - out.passes)
			} else {
				r.logResidual(1)
				for j := range r.h {
					r.h[j] += r.logs[j]
				}
			}
			r.balance(r.h)
			r.pass(r.h)
			out.passes++
			if out.passes >= limit-1 || r.relative() <= want {
				continue
			}
		}
		d := r.dir
		for j := range d {
			d[j] = r.b[j] - r.c[j]
		}
		center(d, r.c)
		r.newton(d)
		s0 := r.slope(d)
		lo, hi := bounds(d)
		t := 1.0
		if R := hi - lo; R > 1 {
			t = elem.Log1p(R) / R
		}
		for {
			for j, v := range r.h {
				r.try[j] = v + float64(t*d[j])
			}
			r.balance(r.try)
			r.pass(r.try)
			out.passes++
			s1 := r.slope(d)
			if t < 1 && s1 > s0/2 && out.passes < limit-1 {
				t = min(1, 2*t)
				continue
			}
			if s1 < 0 && t > 1e-3 && s1 < -0.3*s0 && out.passes < limit-1 {
				t /= 2
				for j, v := range r.h {
					r.try[j] = v + float64(t*d[j])
				}
				r.balance(r.try)
				r.pass(r.try)
				out.passes++
			}
			break
		}
		copy(r.h, r.try)
	}
	if out.rel > lowest { // hand back the best
		copy(r.h, r.best)
		r.pass(r.h)
		out.passes++
		out.rel = r.relative()
	}
	return out
}
