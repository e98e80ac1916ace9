package transport

// This file holds where a solve starts, and what it leaves for the next one. Potentials are
// given as thresholds, the places where a sample would be shared evenly between two
// neighbouring targets:
//
//	M_i,J+1 = M_iJ  at  X = τ_J = -ε (h_J+1 - h_J) / 2(y_J+1 - y_J).
//
// As ε → 0 they are those of the monotone (north-west corner) transport, which gives
// the samples in their order to the targets in theirs: the quantiles of x at the
// cumulated b. With ε > 0 the thresholds differ from these by an offset, which changes little
// from one visit of a row to the next. A fit adds the offset of the last visit, so that a step
// that moves all samples of a row moves its start along. The potentials of the last visit by
// themselves would be a worse start than none.
//
// Where the blur between two targets, ε/2Δy, is wide, quantiles are read off a
// histogram, which needs no order of the samples. Rows of many samples are first solved for points in
// their place (condense.go).

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// Warm is what a row keeps from one solve to the next: how far its solution lay from
// its start, in thresholds.
type Warm struct {
	Offset []float64 // m-1
	Valid  bool      // there was such a solve, and it ended well
}

// NewWarm makes the states of d rows of m levels that were not solved yet.
func NewWarm(a *pool.Arena, d, m int) []Warm {
	k := max(m-1, 0)
	states, offsets := pool.Make[Warm](a, d), a.Floats(d, k)
	for i := range states {
		states[i].Offset = offsets[i*k : (i+1)*k : (i+1)*k]
	}
	return states
}

// solve maximises the semi-dual to a relative column error of tol. The row then
// stands at the last pass: h, M and its sums belong together. ws may be nil.
func (r *dual) solve(tol float64, maxPasses int, ws *Warm) Outcome {
	goal := max(tol, r.roundingFloor())
	out := r.fast(tol, goal, maxPasses, ws)
	start := r.start[:r.m-1]
	if !out.Converged && out.Passes < maxPasses {
		r.fromThresholds(r.h, start)
		out = r.safe(goal, maxPasses, out)
	}
	r.grant()
	if Invariants && !r.ended() {
		r.checkPlan(out)
	}
	if ws != nil {
		tau := r.tau[:r.m-1]
		ws.Valid = out.Converged && out.Passes <= 12
		if ws.Valid {
			r.thresholds(tau, r.h)
			for J := range tau {
				ws.Offset[J] = tau[J] - start[J]
				if ws.Offset[J]-ws.Offset[J] != 0 {
					ws.Valid = false
				}
			}
		}
	}
	return out
}

// fast is the solve by the fast method, from its start on, which start keeps.
func (r *dual) fast(tol, goal float64, maxPasses int, ws *Warm) Outcome {
	m := r.m
	tau, start := r.tau[:m-1], r.start[:m-1]
	// start has the thresholds of the monotone transport in centred x.
	condensed := r.condense()
	switch {
	case condensed:
		r.quantiles(start)
	case r.blurred():
		r.histogram()
		r.quantiles(start)
	default:
		r.corner(start)
	}
	copy(tau, start)
	if ws != nil && ws.Valid {
		add(tau, ws.Offset)
	}
	r.fromThresholds(r.h, tau)
	if condensed && r.solveQuadrature() && ws != nil && r.quadratureError() <= tol && r.takeQuadrature() {
		return Outcome{Passes: 1, Error: r.quadratureError(), Converged: true}
	}
	return r.descend(tol, goal, min(maxPasses, 16), maxPasses, condensed)
}

// blurred tells whether a histogram serves for a start (limits.go).
func (r *dual) blurred() bool {
	widest := 0.0
	for _, d := range r.dy[:r.m-1] {
		widest = max(widest, d)
	}
	spread, bins := r.extent[1]-r.extent[0], float64(len(r.mass))
	return spread > 1e-300 && float64(2*widest*spread)/r.eps <= min(bins/blurBins, float64(r.n)/blurSamples)
}

// histogram fills mass with the share of the samples in each bin.
func (r *dual) histogram() {
	mass := r.mass
	clear(mass)
	first, scale, last := r.extent[0]-r.xc, float64(len(mass))/(r.extent[1]-r.extent[0]), uint(len(mass)-1)
	a := r.a[:r.n]
	for i, x := range r.cx[:len(a)] {
		mass[min(uint((x-first)*scale), last)] += a[i]
	}
}

// quantiles fills tau with the thresholds of the histogram, on lines through its bins.
func (r *dual) quantiles(tau []float64) {
	const block = 8 // bins that are passed over at once where no threshold lies
	first, width := r.extent[0]-r.xc, (r.extent[1]-r.extent[0])/float64(len(r.mass))
	J, below, goal := 0, 0.0, r.b[0]
	for p := 0; p < len(r.mass) && J < len(tau); p += block {
		m := (*[block]float64)(r.mass[p:])
		if all := ((m[0] + m[1]) + (m[2] + m[3])) + ((m[4] + m[5]) + (m[6] + m[7])); below+all < goal {
			below += all
			continue
		}
		for k, mass := range m {
			for ; J < len(tau) && mass > 0 && below+mass >= goal; J++ {
				at := float64(p+k) + max(goal-below, 0)/mass
				tau[J] = first + float64(at*width)
				goal += r.b[J+1]
			}
			below += mass
		}
	}
	for ; J < len(tau); J++ {
		tau[J] = r.extent[1] - r.xc
	}
}

// corner fills tau with the thresholds of the monotone transport exactly. A sample
// that is shared between the two columns in shares l and r puts the threshold
// where the softmax at it splits the same way; a boundary between two samples
// goes half way. It uses logs, dir and try.
func (r *dual) corner(tau []float64) {
	r.arrange()
	const tiny = 1e-10
	m, n := r.m, r.n
	shares, least, most := r.logs[:m-1], r.dir, r.try // r/l, and between what tau_J lies
	at := func(p int) float64 { return r.cx[r.perm[p]] }
	cumB := 0.0
	p, below := 0, 0.0 // sample p in order, mass below it
	a, perm := r.a, r.perm[:n]
	ap := a[perm[0]]
	upTo := ap
	for J := 0; J < m-1; J++ {
		prevB := cumB
		cumB += r.b[J]
		nextB := cumB + r.b[J+1]
		if J == m-2 {
			nextB = 1
		}
		for p < n-1 && upTo < cumB {
			p++
			below, ap = upTo, a[perm[p]]
			upTo += ap
		}
		above := upTo
		if p == n-1 {
			above = 1
		}
		width := r.eps / (2 * r.dy[J])
		left, right := at(p)-float64(30*width), at(p)+float64(30*width)
		// The neighbours are those of some weight: a sample without any bounds nothing.
		before, after := p-1, p+1
		for before >= 0 && a[perm[before]] == 0 {
			before--
		}
		for after < n && a[perm[after]] == 0 {
			after++
		}
		bounded := [2]bool{before >= 0, after < n}
		if bounded[0] {
			left = elem.Middle(at(p), at(before))
		}
		if bounded[1] {
			right = elem.Middle(at(p), at(after))
		}
		sl := cumB - max(below, prevB)
		sr := min(above, nextB) - cumB
		tau[J], shares[J] = at(p), 1
		switch {
		case sr <= tiny*ap:
			least[J], most[J] = right, right
		case sl <= tiny*ap:
			least[J], most[J] = left, left
		default:
			shares[J], least[J], most[J] = sr/sl, math.Inf(-1), math.Inf(1)
			if bounded[0] {
				least[J] = left
			}
			if bounded[1] {
				most[J] = right
			}
		}
	}
	kernel.Log(shares, shares)
	for J, l := range shares {
		width := r.eps / (2 * r.dy[J])
		tau[J] = min(max(tau[J]-float64(width*l), least[J]), most[J])
	}
}

// fromThresholds sets h_{J+1}-h_J = -2 dy_J tau_J/ε, and grounds h.
func (r *dual) fromThresholds(h, tau []float64) {
	first := max(r.anchor, 0)
	h[first] = 0
	for J := first; J < r.m-1; J++ {
		h[J+1] = h[J] - float64(2*r.dy[J]*tau[J])/r.eps
	}
	for J := first - 1; J >= 0; J-- {
		h[J] = h[J+1] + float64(2*r.dy[J]*tau[J])/r.eps
	}
	r.ground(h)
}

// thresholds is the inverse of fromThresholds.
func (r *dual) thresholds(tau, h []float64) {
	for J, d := range r.dy[:r.m-1] {
		tau[J] = -(h[J+1] - h[J]) * r.eps / (2 * d)
	}
}
