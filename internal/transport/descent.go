package transport

// This file holds the two methods that maximise the semi-dual of dual.go: descent, which is
// fast and leaves a step that does not ascend, and safe, the damped method of the proof
// there, for what the first did not reach. A descent is a state that goes on between two
// sweeps, so that several rows can share the systems of a step (group.go).

import "math"

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
	tol, goal       float64 // the error that was asked for, and the one at which rounding lets it end
	limit, most     int
	stalled         int     // sweeps since the error was lowest
	lowest          float64 // error so far
	farthest, slope float64 // before the step that was made last: max|log b/c|, and d·(b-c)
	moved           bool    // there is such a step, to try, which is not judged yet
	refined         bool    // the pass for the last digits was made
}

// descend begins at h.
func (r *dual) descend(tol, goal float64, limit, most int) descent {
	r.sweep(r.h, false)
	return descent{Outcome: Outcome{Passes: 1}, tol: tol, goal: goal, limit: limit, most: most, lowest: math.Inf(1)}
}

// run goes on to the end.
func (s *descent) run(r *dual) {
	for s.ahead(r) {
		r.newton(r.dir)
		s.move(r)
	}
}

// ahead judges the last sweep, and fills dir with the right side of the equations of
// the next step, or returns false at the end.
func (s *descent) ahead(r *dual) bool {
	if r.knows < summed {
		r.expand()
	}
	if s.moved {
		s.judge(r)
	}
	for {
		s.Error = r.relative()
		if s.Converged = s.Error <= s.goal; s.Converged {
			// Where less than rounding allows was asked for, one pass more: it costs
			// little and gains the digits that are there.
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
		s.farthest = r.logResidual(s.Error)
		if s.farthest > sinkhornFirst { // a Sinkhorn step always ascends, and lifts tiny b_j at once
			for j := range r.h {
				r.h[j] += r.logs[j]
			}
			r.pass(r.h)
			s.Passes++
			if s.Passes >= s.limit {
				continue
			}
			s.Error = r.relative()
			if s.Error <= s.goal {
				continue
			}
			s.farthest = r.logResidual(s.Error)
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
func (s *descent) move(r *dual) {
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
	r.sweep(r.try, s.Error*s.Error <= s.goal)
	s.Passes++
	s.moved = true
}

// judge keeps the step, or goes back and makes a damped one, that of the proof above.
func (s *descent) judge(r *dual) {
	s.moved = false
	d := r.dir
	if r.slope(d) >= -0.3*s.slope || r.logResidual(1) < max(s.farthest/2, 1e-6) || s.Passes+2 > s.most {
		copy(r.h, r.try)
		return
	}
	r.pass(r.h)
	s.Passes++
	for j := range d {
		d[j] = r.b[j] - r.c[j]
	}
	balance(d, r.c)
	r.newton(d)
	slope := r.slope(d)
	t := damped(d)
	for tries := 0; ; tries++ {
		for j, v := range r.h {
			r.try[j] = v + float64(t*d[j])
		}
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

// safe is the damped method of the proof, for what the fast path did not reach.
// It keeps one pass of limit for handing back the best.
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
		if out.Passes >= limit-1 || (stalled >= 3 && lowest <= 100*goal) || stalled >= 50 {
			break
		}
		if out.Error > 0.5 {
			r.logResidual(1)
			for j := range r.h {
				r.h[j] += r.logs[j]
			}
			r.pass(r.h)
			out.Passes++
			continue
		}
		d := r.dir
		for j := range d {
			d[j] = r.b[j] - r.c[j]
		}
		balance(d, r.c)
		r.newton(d)
		s0 := r.slope(d)
		t := damped(d)
		for {
			for j, v := range r.h {
				r.try[j] = v + float64(t*d[j])
			}
			r.pass(r.try)
			out.Passes++
			s1 := r.slope(d)
			if t < 1 && s1 > s0/2 && out.Passes < limit-1 {
				t = min(1, 2*t)
				continue
			}
			if s1 < 0 && t > 1e-3 && s1 < -0.3*s0 && out.Passes < limit-1 {
				t /= 2
				for j, v := range r.h {
					r.try[j] = v + float64(t*d[j])
				}
				r.pass(r.try)
				out.Passes++
			}
			break
		}
		copy(r.h, r.try)
	}
	if out.Error > lowest { // hand back the best
		copy(r.h, r.best)
		r.pass(r.h)
		out.Passes++
		out.Error = r.relative()
	}
	return out
}
