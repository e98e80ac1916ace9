package quantmf

// This file holds T as a function: a solved transport says where every x goes,
// not only the samples it was solved for.
//
// With thresholds t_J, where the plan weighs levels J and J+1 alike, and
// ρ_J(x) = exp((2Δy_J/ε)(x̃-t_J)), the ratio of the two weights,
//
//	T(x) = q_1 + Σ_J Δq_J / (1 + A_J/B_J),
//
// A_J and B_J the weights up to J and above it. A_J over the weight of level J
// is 1 + (A_{J-1} likewise)/ρ_{J-1}, B_J over that of level J+1 is 1 + ρ_{J+1}·(B_{J+1}
// likewise): nothing but increasing operations on positive numbers, so T is
// non-decreasing at every representable pair, not merely to rounding.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

// Map is a fitted increasing function, from the units of x to those of q. It is
// constant, with slope 0, for a constant row. It is not changed by its methods.
type Map struct {
	squash squashed
	cut    []float64 // t_J in squashed x
	rate   []float64 // 2Δy_J/ε
	q      []float64
	hard   *hardPlan // ε = 0: a staircase that takes the samples' own values at the samples
}

// Map returns the function that [Transport.Quantile] takes at the samples, for
// any x. It agrees with Quantile to rounding.
func (t *Transport) Map(q []float64) (*Map, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	if t.hard != nil {
		return &Map{q: append([]float64(nil), q...), squash: t.hard.squash, hard: t.hard, cut: t.hard.cuts}, nil
	}
	r := t.row()
	defer rows.Put(r)
	return r.asMap(q), nil
}

// asMap returns the map of the row's potentials and squash.
func (r *row) asMap(q []float64) *Map {
	f := &Map{q: append([]float64(nil), q...), squash: r.squash, cut: make([]float64, r.m-1), rate: make([]float64, r.m-1)}
	f.squash.observed = nil
	r.thresholds(f.cut, r.h)
	for J := range f.cut {
		f.cut[J] += r.xc
		f.rate[J] = 2 * r.dy[J] / r.eps
	}
	return f
}

// clampLog bounds the logarithm of a ratio of weights: beyond it the ratio
// decides alone. clampSum keeps running sums of such ratios finite.
const (
	clampLog = 300
	clampSum = 1e250
)

// At returns T(x), in [q_1,q_m] and non-decreasing in x; NaN for NaN, and the
// limits at ±Inf. Cost: m exponentials, 2m divisions.
func (f *Map) At(x float64) float64 {
	if x != x {
		return x
	}
	if f.hard != nil {
		return f.staircase(x)
	}
	return f.at(f.squash.point(x), nil, nil)
}

// at evaluates T at the squashed s. Where tails is not nil it takes 1/(1+A_J/B_J), and
// heads 1/(1+B_J/A_J).
func (f *Map) at(s float64, tails, heads []float64) float64 {
	var local [64]float64
	up := local[:]
	m := len(f.q)
	if m > len(up) {
		up = make([]float64, m)
	}
	ratio := func(J int) float64 {
		return elem.Exp(min(max(f.rate[J]*(s-f.cut[J]), -clampLog), clampLog))
	}
	b := 1.0
	for J := m - 2; J >= 0; J-- {
		up[J] = b
		b = min(1+float64(b*ratio(J)), clampSum)
	}
	t, a := f.q[0], 1.0
	for J := range m - 1 {
		r := ratio(J)
		share := 1 / (1 + a/up[J]/r)
		if tails != nil {
			tails[J], heads[J] = share, 1/(1+up[J]/a*r)
		}
		t += float64((f.q[J+1] - f.q[J]) * share)
		a = min(1+a/r, clampSum)
	}
	return min(t, f.q[m-1])
}

// staircase is T at ε = 0.
func (f *Map) staircase(x float64) float64 {
	h := f.hard
	lo, hi := 0, len(h.perm)
	for lo < hi {
		if mid := (lo + hi) / 2; h.x[h.perm[mid]] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(h.perm) && h.x[h.perm[lo]] == x {
		return h.at(int(h.perm[lo]), f.q)
	}
	s := f.squash.point(x)
	j := 0
	for j < len(f.cut) && f.cut[j] < s {
		j++
	}
	return f.q[j]
}

// Slope returns dT/dx >= 0: (2/ε) Cov_M(q, y) dx̃/dx; 0 at ε = 0 and at ±Inf.
func (f *Map) Slope(x float64) float64 {
	if x != x {
		return x
	}
	if f.hard != nil || len(f.q) == 1 {
		return 0
	}
	s := f.squash.point(x)
	slope := f.squash.slope(x, s)
	if k := f.squash.kind; s > 1-0x1p-10 && (k == SquashLogistic || k == SquashLogisticUnit) && f.squash.std > 0 {
		slope = f.squash.farSlope(x, s)
	}
	if slope == 0 {
		return 0
	}
	tail, head := make([]float64, len(f.q)-1), make([]float64, len(f.q)-1)
	f.at(s, tail, head)
	// Σ_J Σ_K Δq_J rate_K tail_max(J,K) head_min(J,K), rate = 2Δy/ε.
	sum, below := 0.0, 0.0
	for J, t := range tail {
		above := 0.0
		for K := J + 1; K < len(tail); K++ {
			above += float64(f.rate[K] * tail[K])
		}
		below += float64(f.rate[J] * head[J])
		sum += float64((f.q[J+1] - f.q[J]) * (float64(t*below) + float64(head[J]*above)))
	}
	return saturate(sum * slope)
}

// Invert returns an x with T(x) = v to rounding. A v outside the values that T
// takes, or a flat T, is a [*DataError] with Row = Col = -1. Where T has a
// plateau at v, an x on it is returned.
func (f *Map) Invert(v float64) (float64, error) {
	fail := func(problem string) (float64, error) {
		return 0, &DataError{Row: -1, Col: -1, Value: v, Problem: problem}
	}
	if v != v {
		return fail("the value to invert must be a number")
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	if f.At(lo) == f.At(hi) {
		return fail("the map is flat")
	}
	if v < f.At(lo) || v > f.At(hi) {
		return fail("the map takes values from " + ftoa(f.At(lo)) + " to " + ftoa(f.At(hi)))
	}
	// Bracket between finite numbers, doubling from the middle of the row.
	center, width := f.squash.center(f.cut)
	lo, hi = center-width, center+width
	for f.At(lo) > v && !math.IsInf(lo, 0) {
		lo -= hi - lo
	}
	for f.At(hi) < v && !math.IsInf(hi, 0) {
		hi += hi - lo
	}
	lo, hi = max(lo, -math.MaxFloat64), min(hi, math.MaxFloat64)
	// Newton where it stays inside and helps, else halving: at most 200 steps.
	x := middle(lo, hi)
	for range 200 {
		t := f.At(x)
		if t == v {
			return x, nil
		}
		if t < v {
			lo = x
		} else {
			hi = x
		}
		next := middle(lo, hi)
		if s := f.Slope(x); s > 0 {
			if n := x - (t-v)/s; n > lo && n < hi && math.Abs(n-x) < (hi-lo)/4 {
				next = n
			}
		}
		if next == x || next <= lo || next >= hi {
			break
		}
		x = next
	}
	best := lo
	for _, c := range []float64{x, hi} {
		if math.Abs(f.At(c)-v) < math.Abs(f.At(best)-v) {
			best = c
		}
	}
	return best, nil
}
