package transport

// This file holds the two methods that maximise the semi-dual of dual.go. descent is fast, and
// replaces a step after which the dual is not higher. safe is the damped method of the proof in
// dual.go, for problems on which descent did not converge.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Outcome says how a solve ended.
type Outcome struct {
	Passes    int     // over the samples
	Error     float64 // max_j |c_j-b_j|/b_j
	Converged bool    // Error is at most the tolerance, or what rounding leaves where that is larger
}

// descent is where Newton's method with the logarithmic residual and clipped steps
// stands. It begins no step after limit passes, and makes no more than most.
type descent struct {
	Outcome
	// the error that was asked for; the error at which it ends, which rounding may raise
	tol, goal       float64
	limit, most     int     // see above
	stalled         int     // sweeps since the error was lowest
	lowest          float64 // the lowest error so far
	farthest, slope float64 // before the last step: max|log b/c|, and d·(b-c)
	moved           bool    // the last step, to r.try, has not been judged yet
	refined         bool    // the pass for the last digits was made
}

// descend makes a descent from h; last says that h is probably the solution.
func (r *dual) descend(tol, goal float64, limit, most int, last bool) Outcome {
	r.sweep(r.h, last)
	s := descent{Outcome: Outcome{Passes: 1}, tol: tol, goal: goal, limit: limit, most: most,
		lowest: math.Inf(1)}
	for s.ahead(r) {
		r.newton(r.dir)
		s.move(r)
	}
	return s.Outcome
}

// ahead judges the last sweep, and fills dir with the right side of the equations of
// the next step, or returns false at the end.
func (s *descent) ahead(r *dual) bool {
	r.expand()
	if r.ended() {
		return false
	}
	if s.moved {
		s.judge(r)
	}
	for {
		s.Error = r.relative()
		if s.Converged = s.Error <= s.goal; s.Converged {
			// Where the tolerance is below what rounding leaves, one pass more is made: it costs
			// little and gains the last digits.
			if s.Error <= s.tol || s.refined || s.Passes >= s.limit {
				return false
			}
			s.refined = true
		}
		if s.Error < s.lowest {
			s.lowest, s.stalled = s.Error, 0
		} else if s.stalled++; s.stalled >= 3 && s.Error <= 100*s.goal {
			return false
		}
		if s.Passes >= s.limit {
			return false
		}
		s.farthest = r.logResidual(r.h, s.Error)
		if s.farthest > sinkhornFirst { // a Sinkhorn step always ascends, and lifts tiny b_j at once
			add(r.h, r.logs)
			r.pass(r.h)
			s.Passes++
			if s.Passes >= s.limit {
				continue
			}
			s.Error = r.relative()
			if s.Error <= s.goal {
				continue
			}
			s.farthest = r.logResidual(r.h, s.Error)
		}
		for j, c := range r.c {
			r.dir[j] = float64(c * r.logs[j])
		}
		balance(r.dir, r.c)
		return true
	}
}

// move makes a step along dir, which is now the solution of the equations that ahead has set up, and
// the sweep at the new potentials.
func (s *descent) move(r *dual) {
	d := r.dir
	clip(d)
	if s.slope = r.slope(d); !(s.slope > 0) {
		copy(d, r.logs)
		s.slope = r.slope(d)
	}
	r.step(1)
	// The next error is about the square of this one: the sweep is the last where that is below the goal.
	r.sweep(r.try, s.Error*s.Error <= s.goal)
	s.Passes++
	s.moved = true
}

// judge keeps the last step, or goes back and makes the damped step of the proof in dual.go.
func (s *descent) judge(r *dual) {
	s.moved = false
	d := r.dir
	if r.slope(d) >= -0.3*s.slope || r.logResidual(r.try, 1) < max(s.farthest/2, 1e-6) ||
		s.Passes+2 > s.most {
		copy(r.h, r.try)
		return
	}
	r.pass(r.h)
	s.Passes++
	slope := r.aimUp()
	t := damped(d)
	for tries := 0; ; tries++ {
		r.step(t)
		r.pass(r.try)
		s.Passes++
		s1 := r.slope(d)
		if s1 >= -0.3*slope || tries == 5 || s.Passes >= s.most {
			break
		}
		t *= min(max(slope/(slope-s1), 0.1), 0.5)
	}
	copy(r.h, r.try)
}

// stall is the number of steps of the damped method without a gain at which it ends, and
// far the relative error that ascend mends.
const (
	stall = 300
	far   = 0.01
)

// safe is the damped method of the proof in dual.go, for problems on which descent did not converge.
// Where a column sum is far from its weight a Sinkhorn step comes first. Sinkhorn steps alone would be
// slow; Newton's step moves levels of little weight against each other. One pass of limit is kept for
// going back to the best potentials.
func (r *dual) safe(goal float64, limit int, out Outcome) Outcome {
	r.stands = stale
	r.pass(r.h)
	out.Passes++
	lowest := math.Inf(1)
	stalled := 0
	for {
		out.Error = r.relative()
		if out.Error < lowest {
			lowest, stalled = out.Error, 0
			copy(r.best, r.h)
		} else {
			stalled++
		}
		if out.Converged = out.Error <= goal; out.Converged {
			return out
		}
		if r.ended() {
			return out
		}
		lost := out.Error != out.Error // a step that was not finite: nothing follows from it
		if lost || out.Passes >= limit-1 || (stalled >= 30 && lowest <= 100*goal) || stalled >= stall {
			break
		}
		if stuck := stalled%8 == 7; stuck || out.Error > 0.5 {
			if stuck && out.Error > far {
				out.Passes += r.ascend(limit - 2 - out.Passes)
			} else {
				r.logResidual(r.h, 1)
				add(r.h, r.logs)
			}
			r.ground(r.h)
			r.pass(r.h)
			out.Passes++
			if out.Passes >= limit-1 || r.relative() <= goal {
				continue
			}
		}
		out.Passes += r.dampedStep(limit - 1 - out.Passes)
	}
	if !(out.Error <= lowest) && lowest < math.Inf(1) { // hand back the best
		copy(r.h, r.best)
		r.pass(r.h)
		out.Passes++
		out.Error = r.relative()
	}
	return out
}

// aimUp fills dir with the direction of Newton's method of the proof in dual.go, and returns the slope of D
// along it.
func (r *dual) aimUp() (slope float64) {
	for j, b := range r.b {
		r.dir[j] = b - r.c[j]
	}
	balance(r.dir, r.c)
	r.newton(r.dir)
	return r.slope(r.dir)
}

// step fills try with the potentials t times dir from h.
func (r *dual) step(t float64) {
	for j, d := range r.dir {
		r.try[j] = r.h[j] + float64(t*d)
	}
}

// dampedStep takes h along the direction of Newton's method. It begins with the length that always raises D,
// doubles it while D rises steeply there, and halves it once where D falls. It returns how many passes it
// made: more than one only while they are fewer than most.
func (r *dual) dampedStep(most int) (passes int) {
	before, t := r.aimUp(), damped(r.dir)
	slopeAt := func(t float64) float64 {
		r.step(t)
		r.ground(r.try)
		r.pass(r.try)
		passes++
		return r.slope(r.dir)
	}
	slope := slopeAt(t)
	for t < 1 && slope > before/2 && passes < most {
		t = min(1, 2*t)
		slope = slopeAt(t)
	}
	if slope < 0 && t > 1e-3 && slope < -0.3*before && passes < most {
		slopeAt(t / 2)
	}
	copy(r.h, r.try)
	return passes
}

// ascend maximises D along one direction after the other: along each single potential, and along the
// potentials of all levels below a boundary, or above it, where the error in the direction is large. It
// returns how many passes its work amounts to, at most most. Where every sample belongs wholly to one
// level, the plan does not tell how far the potentials across a gap are from the maximum, and Newton's
// step may have any length; ascend finds the place by bisection.
func (r *dual) ascend(most int) (passes int) {
	n, m := r.n, r.m
	odds, logA, terms := make([]float64, n), make([]float64, n), make([]float64, m)
	kernel.Log(logA, r.a[:n])
	evaluations := 0
	// move shifts the potentials lo, ..., hi-1 so that these levels have the weight b together.
	move := func(lo, hi int, b float64) {
		if evaluations+m+bisections > most*m || r.ended() {
			return
		}
		for i, s := range r.s[:n] {
			for j, y := range r.cy {
				terms[j] = r.h[j] + float64(s*y)
			}
			in, out := LogSum(terms[lo:hi]), math.Inf(-1)
			for _, rest := range [...][]float64{terms[:lo], terms[hi:]} {
				if len(rest) > 0 {
					out = logAdd(out, LogSum(rest))
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
	r.logResidual(r.h, 1)
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

// shift returns the t at which Σ a_i σ(odds_i+t) = b < Σ a_i, and how often it evaluated the sum. A
// sample whose logA is -Inf has no weight.
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
	lo, hi := goal-LogSum(logs), goal-elem.Log1p(-b)-least
	for t = lo; count < bisections; count++ {
		for i, o := range odds {
			logs[i] = logA[i] - logAdd(0, -(o+t))
		}
		f := LogSum(logs) - goal
		if math.Abs(f) < 1e-12 {
			break
		}
		if f < 0 {
			lo = t
		} else {
			hi = t
		}
		next := elem.Middle(lo, hi)
		if !(next > lo && next < hi) {
			break
		}
		t = next
	}
	return t, count
}
