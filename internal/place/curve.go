package place

// This file holds T as a function (paper §2.2, Definition 2.1): a solved transport maps every x,
// not only the samples that it was solved for.
//
// With thresholds t_J, where the plan weighs levels J and J+1 alike, and
// ρ_J(x) = exp((2Δy_J/ε)(x̃-t_J)), the ratio of the two weights,
//
//	T(x) = q_1 + Σ_J Δq_J / (1 + A_J/B_J),
//
// A_J and B_J being the sums of the weights up to level J and above it. With A'_J = A_J divided
// by the weight of level J, and B'_J = B_J divided by the weight of level J+1,
//
//	A'_J = 1 + A'_{J-1}/ρ_{J-1},   B'_J = 1 + ρ_{J+1} B'_{J+1}.
//
// All operations are on positive numbers and increase with x or 1/x, so T is
// non-decreasing at every pair of floating-point numbers, not merely to rounding. So is the T of a
// QMF, to which a line s x, s >= 0, is added: rounding keeps the order of products and of sums.
//
// At ε = 0 the map is a staircase, which at a sample takes the value that the plan gives the
// sample. The cuts between steps are kept in units of x, since no squash is monotone to the
// last bit.

import (
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/transport"
)

// Curve is an increasing function T. The zero Curve is constant, at 0.
type Curve struct {
	Squash transport.Squash
	Cut    []float64 // t_J in squashed x; at ε = 0 in x
	Rate   []float64 // 2Δy_J/ε
	Q      []float64
	Line   float64   // s >= 0 of the line s x in T
	points []float64 // at ε = 0 the samples in order; else nil
	values []float64 // T at points
}

// NewCurve returns the curve of potentials onto q. y nil stands for the grid on [0,1].
func NewCurve(p transport.Potentials, q, y []float64, eps float64) Curve {
	m := len(q)
	f := Curve{Q: append([]float64(nil), q...), Squash: p.Squash, Cut: make([]float64, m-1),
		Rate: make([]float64, m-1)}
	p.Curve(f.Cut, f.Rate, y, eps)
	return f
}

// Staircase returns the staircase of a plan at ε = 0.
func Staircase(h *transport.Hard, q []float64) Curve {
	n := len(h.X)
	f := Curve{Q: append([]float64(nil), q...), Squash: h.Squash, Cut: make([]float64, len(h.Cuts)),
		points: make([]float64, n), values: make([]float64, n)}
	t := make([]float64, n)
	h.Average(t, q)
	for k, i := range h.Perm {
		f.points[k], f.values[k] = h.X[i], t[i]
	}
	if f.Squash.Kind != transport.None && f.points[0] == f.points[n-1] {
		f.Q, f.Cut = []float64{t[0]}, nil
		return f
	}
	h.EachBoundary(func(J, left, right int) {
		f.Cut[J] = f.crossing(h.X[left], h.X[right], h.Cuts[J])
		if J > 0 {
			f.Cut[J] = max(f.Cut[J], f.Cut[J-1])
		}
	})
	return f
}

// crossing returns the x between the samples lo and hi whose squashed value is s; their
// middle where both have the same squashed value.
func (f *Curve) crossing(lo, hi, s float64) float64 {
	if f.Squash.At(lo) == f.Squash.At(hi) {
		return elem.Middle(lo, hi)
	}
	for range 100 {
		x := elem.Middle(lo, hi)
		if x <= lo || x >= hi {
			break
		}
		if f.Squash.At(x) <= s {
			lo = x
		} else {
			hi = x
		}
	}
	return lo
}

// At returns T(x).
func (f *Curve) At(x float64) float64 {
	if x != x {
		return x
	}
	if len(f.Q) == 0 {
		return 0
	}
	if f.points != nil {
		return f.staircase(x)
	}
	t := f.Odds(f.Squash.At(x), nil)
	switch {
	case f.Line == 0:
		return t
	case x-x != 0:
		return x
	}
	return transport.Saturate(t + float64(f.Line*x))
}

// staircase is T at ε = 0.
func (f *Curve) staircase(x float64) float64 {
	p, sample := slices.BinarySearch(f.points, x)
	if sample {
		return f.values[p]
	}
	j, _ := slices.BinarySearch(f.Cut, x)
	v := f.Q[j]
	if p < len(f.points) {
		v = min(v, f.values[p])
	}
	if p > 0 {
		v = max(v, f.values[p-1])
	}
	return v
}

// Odds evaluates T, but for its line, at the squashed s. Where odds is not nil it is filled with A_J/B_J.
func (f *Curve) Odds(s float64, odds []float64) float64 {
	const narrow = 600 // up to this Σ_J |log ρ_J| no ratio of two weights leaves the range of float64
	var local [64]float64
	logs := local[:]
	m := len(f.Q)
	if m > len(logs) {
		logs = make([]float64, m)
	}
	logs = logs[:m-1]
	sum := 0.0
	for J := range logs {
		logs[J] = f.Rate[J] * (s - f.Cut[J])
		sum += math.Abs(logs[J])
	}
	if !(sum <= narrow) {
		return f.atFar(logs, odds)
	}
	for J, l := range logs {
		logs[J] = elem.Exp(l)
	}
	var localUp [64]float64
	up := localUp[:]
	if m > len(up) {
		up = make([]float64, m)
	}
	b := 1.0
	for J := m - 2; J >= 0; J-- {
		up[J] = b
		b = 1 + float64(b*logs[J])
	}
	t, a := f.Q[0], 1.0
	for J, r := range logs {
		o := a / up[J] / r
		if odds != nil {
			odds[J] = o
		}
		t += float64((f.Q[J+1] - f.Q[J]) * (1 / (1 + o)))
		a = 1 + a/r
	}
	return min(t, f.Q[m-1])
}

// atFar is Odds for weights of any ratio, given by their logarithms: the same operations,
// with the same rounding where both apply, so that T does not fall from one to the other.
func (f *Curve) atFar(logs, odds []float64) float64 {
	m := len(f.Q)
	var localRatio, localUp [64]transport.Wide
	ratio, up := localRatio[:], localUp[:]
	if m > len(up) {
		ratio, up = make([]transport.Wide, m), make([]transport.Wide, m)
	}
	ratio = ratio[:m-1]
	one := transport.WideOf(1)
	b := one
	for J := m - 2; J >= 0; J-- {
		ratio[J] = transport.WideExp(logs[J])
		up[J] = b
		b = one.Plus(b.Times(ratio[J]))
	}
	t, a := f.Q[0], one
	for J, r := range ratio {
		o := a.Over(up[J]).Over(r)
		if odds != nil {
			odds[J] = o.Float()
		}
		t += float64((f.Q[J+1] - f.Q[J]) * one.Over(one.Plus(o)).Float())
		a = one.Plus(a.Over(r))
	}
	return min(t, f.Q[m-1])
}

// Slope returns dT/dx: (2/ε) Cov_M(q, y) dx̃/dx, and the slope of the line.
func (f *Curve) Slope(x float64) float64 {
	if x != x {
		return x
	}
	return f.Line + f.slope(x)
}

// slope is the slope of T less its line.
func (f *Curve) slope(x float64) float64 {
	if f.points != nil || len(f.Q) <= 1 {
		return 0
	}
	s := f.Squash.At(x)
	slope := f.Squash.Slope(x, s)
	if slope == 0 {
		return 0
	}
	odds := make([]float64, len(f.Q)-1)
	f.Odds(s, odds)
	// Σ_J Σ_K Δq_J rate_K tail_max(J,K) head_min(J,K), rate = 2Δy/ε. tail_J and head_J are
	// the shares of the weight above level J and up to it. Both come from the odds: 1-tail_J
	// would lose digits.
	tail := func(J int) float64 { return 1 / (1 + odds[J]) }
	head := func(J int) float64 { return 1 / (1 + 1/odds[J]) }
	sum, below := 0.0, 0.0
	for J := range odds {
		above := 0.0
		for K := J + 1; K < len(odds); K++ {
			above += float64(f.Rate[K] * tail(K))
		}
		below += float64(f.Rate[J] * head(J))
		sum += float64((f.Q[J+1] - f.Q[J]) * (float64(tail(J)*below) + float64(head(J)*above)))
	}
	if sum == 0 { // the slope of a squash of the smallest numbers is infinite
		return 0
	}
	return transport.Saturate(sum * slope)
}

// Invert returns an x with T(x) = v, or what is wrong with v.
func (f *Curve) Invert(v float64) (x float64, problem string) {
	if v != v {
		return 0, "the value to invert must be a number"
	}
	if f.Line > 0 && v-v != 0 {
		return 0, "the value to invert must be finite"
	}
	low, high := f.At(math.Inf(-1)), f.At(math.Inf(1))
	if low == high {
		return 0, "the map is flat"
	}
	if v < low || v > high {
		return 0, "the map takes values from " + text(low) + " to " + text(high)
	}
	if f.points != nil {
		x := f.invertStaircase(v)
		if f.At(x) != v {
			return x, "the map jumps over it at " + text(x)
		}
		return x, ""
	}
	// Bracket between finite numbers, doubling from the middle of the row.
	center, width := f.Squash.Span(f.Cut)
	lo, hi := center-width, center+width
	for f.At(lo) > v && !math.IsInf(lo, 0) {
		lo -= hi - lo
	}
	for f.At(hi) < v && !math.IsInf(hi, 0) {
		hi += hi - lo
	}
	lo, hi = max(lo, -math.MaxFloat64), min(hi, math.MaxFloat64)
	// Newton where it stays inside and helps, else halving: at most 200 steps.
	x = elem.Middle(lo, hi)
	for range 200 {
		t := f.At(x)
		if t == v {
			return x, ""
		}
		if t < v {
			lo = x
		} else {
			hi = x
		}
		next := elem.Middle(lo, hi)
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
	return best, ""
}

// invertStaircase returns an x with T(x) = v, for v within the range of T; where T takes v
// nowhere, an end of the jump over v.
func (f *Curve) invertStaircase(v float64) float64 {
	p, sample := slices.BinarySearch(f.values, v)
	if sample {
		return f.points[p]
	}
	// Between samples p-1 and p, or beyond the ends, T is q_j from one cut to the next.
	lo, hi := math.Inf(-1), math.Inf(1)
	if p > 0 {
		lo = f.points[p-1]
	}
	if p < len(f.points) {
		hi = f.points[p]
	}
	first, _ := slices.BinarySearch(f.Q, v)
	last := first
	for last < len(f.Q)-1 && f.Q[last+1] == v {
		last++
	}
	if first > 0 {
		lo = max(lo, f.Cut[first-1])
	}
	if last < len(f.Cut) {
		hi = min(hi, f.Cut[last])
	}
	spread := f.points[len(f.points)-1] - f.points[0]
	for _, x := range [...]float64{
		elem.Middle(lo, hi), hi - spread, lo + spread,
		math.Nextafter(lo, math.Inf(1)), math.Nextafter(hi, math.Inf(-1)), hi,
	} {
		if x-x == 0 && f.At(x) == v {
			return x
		}
	}
	return min(lo, hi)
}

// Sheet returns T for many points side by side, for ε > 0.
func (f *Curve) Sheet() Sheet {
	return NewSheet(f.Squash, f.Q, f.Cut, f.Rate).WithLine(f.Line)
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
