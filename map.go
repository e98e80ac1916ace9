package quantmf

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

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/transport"
)

// Map is a fitted increasing function T, from the units of x to those of q. For a row of equal samples it is
// constant, with slope 0, unless [SquashNone] was given or it has a line
// ([WithLine]); so is the zero Map, at 0. It is not changed by its
// methods and may be used by several goroutines at once.
type Map struct {
	squash transport.Squash
	cut    []float64 // t_J in squashed x; at ε = 0 in x
	rate   []float64 // 2Δy_J/ε
	q      []float64
	line   float64   // s >= 0 of the line s x in T
	points []float64 // at ε = 0 the samples in order; else nil
	values []float64 // T at points
}

// Map returns the function that [Transport.Quantile] takes at the samples, for
// any x. It agrees with Quantile to rounding, at ε = 0 to the bit. Errors are those of
// Quantile. Cost: m divisions, at ε = 0 those of Quantile.
func (t *Transport) Map(q []float64) (*Map, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	if t.hard != nil {
		return staircaseOf(t.hard, q), nil
	}
	r := t.row()
	defer workspaces.Put(r)
	return newMap(r.Potentials(), q, r.Targets(), r.Epsilon()), nil
}

// newMap returns the map of potentials onto q. y nil stands for the grid on [0,1].
func newMap(p transport.Potentials, q, y []float64, eps float64) *Map {
	m := len(q)
	f := &Map{q: append([]float64(nil), q...), squash: p.Squash, cut: make([]float64, m-1),
		rate: make([]float64, m-1)}
	p.Curve(f.cut, f.rate, y, eps)
	return f
}

// staircaseOf returns the staircase of a plan at ε = 0.
func staircaseOf(h *transport.Hard, q []float64) *Map {
	n := len(h.X)
	f := &Map{q: append([]float64(nil), q...), squash: h.Squash, cut: make([]float64, len(h.Cuts)),
		points: make([]float64, n), values: make([]float64, n)}
	t := make([]float64, n)
	h.Average(t, q)
	for k, i := range h.Perm {
		f.points[k], f.values[k] = h.X[i], t[i]
	}
	if f.squash.Kind != transport.None && f.points[0] == f.points[n-1] {
		f.q, f.cut = []float64{t[0]}, nil
		return f
	}
	h.EachBoundary(func(J, left, right int) {
		f.cut[J] = f.crossing(h.X[left], h.X[right], h.Cuts[J])
		if J > 0 {
			f.cut[J] = max(f.cut[J], f.cut[J-1])
		}
	})
	return f
}

// crossing returns the x between the samples lo and hi whose squashed value is s; their
// middle where both have the same squashed value.
func (f *Map) crossing(lo, hi, s float64) float64 {
	if f.squash.At(lo) == f.squash.At(hi) {
		return elem.Middle(lo, hi)
	}
	for range 100 {
		x := elem.Middle(lo, hi)
		if x <= lo || x >= hi {
			break
		}
		if f.squash.At(x) <= s {
			lo = x
		} else {
			hi = x
		}
	}
	return lo
}

// At returns T(x), non-decreasing in x and, but for the line of a model, in [q_1,q_m]; NaN at NaN,
// and the limits of T at ±Inf, which are infinite where there is a line. A value beyond the range of
// float64 is the largest of its sign. Cost: m exponentials and 2m divisions; at ε = 0 two binary
// searches.
func (f *Map) At(x float64) float64 {
	if x != x {
		return x
	}
	if len(f.q) == 0 {
		return 0
	}
	if f.points != nil {
		return f.staircase(x)
	}
	t := f.at(f.squash.At(x), nil)
	switch {
	case f.line == 0:
		return t
	case x-x != 0:
		return x
	}
	return transport.Saturate(t + float64(f.line*x))
}

// staircase is T at ε = 0.
func (f *Map) staircase(x float64) float64 {
	p, sample := slices.BinarySearch(f.points, x)
	if sample {
		return f.values[p]
	}
	j, _ := slices.BinarySearch(f.cut, x)
	v := f.q[j]
	if p < len(f.points) {
		v = min(v, f.values[p])
	}
	if p > 0 {
		v = max(v, f.values[p-1])
	}
	return v
}

// at evaluates T at the squashed s. Where odds is not nil it is filled with A_J/B_J.
func (f *Map) at(s float64, odds []float64) float64 {
	const narrow = 600 // up to this Σ_J |log ρ_J| no ratio of two weights leaves the range of float64
	var local [64]float64
	logs := local[:]
	m := len(f.q)
	if m > len(logs) {
		logs = make([]float64, m)
	}
	logs = logs[:m-1]
	sum := 0.0
	for J := range logs {
		logs[J] = f.rate[J] * (s - f.cut[J])
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
	t, a := f.q[0], 1.0
	for J, r := range logs {
		o := a / up[J] / r
		if odds != nil {
			odds[J] = o
		}
		t += float64((f.q[J+1] - f.q[J]) * (1 / (1 + o)))
		a = 1 + a/r
	}
	return min(t, f.q[m-1])
}

// atFar is at for weights of any ratio, given by their logarithms: the same operations,
// with the same rounding where both apply, so that T does not fall from one to the other.
func (f *Map) atFar(logs, odds []float64) float64 {
	m := len(f.q)
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
	t, a := f.q[0], one
	for J, r := range ratio {
		o := a.Over(up[J]).Over(r)
		if odds != nil {
			odds[J] = o.Float()
		}
		t += float64((f.q[J+1] - f.q[J]) * one.Over(one.Plus(o)).Float())
		a = one.Plus(a.Over(r))
	}
	return min(t, f.q[m-1])
}

// Slope returns dT/dx >= 0: (2/ε) Cov_M(q, y) dx̃/dx, and the slope of the line of a model; 0 at ε = 0,
// and at ±Inf that of the line. Cost: that of At, and m²/2 divisions.
func (f *Map) Slope(x float64) float64 {
	if x != x {
		return x
	}
	return f.line + f.slope(x)
}

// slope is the slope of T less its line.
func (f *Map) slope(x float64) float64 {
	if f.points != nil || len(f.q) <= 1 {
		return 0
	}
	s := f.squash.At(x)
	slope := f.squash.Slope(x, s)
	if slope == 0 {
		return 0
	}
	odds := make([]float64, len(f.q)-1)
	f.at(s, odds)
	// Σ_J Σ_K Δq_J rate_K tail_max(J,K) head_min(J,K), rate = 2Δy/ε. tail_J and head_J are
	// the shares of the weight above level J and up to it. Both come from the odds: 1-tail_J
	// would lose digits.
	tail := func(J int) float64 { return 1 / (1 + odds[J]) }
	head := func(J int) float64 { return 1 / (1 + 1/odds[J]) }
	sum, below := 0.0, 0.0
	for J := range odds {
		above := 0.0
		for K := J + 1; K < len(odds); K++ {
			above += float64(f.rate[K] * tail(K))
		}
		below += float64(f.rate[J] * head(J))
		sum += float64((f.q[J+1] - f.q[J]) * (float64(tail(J)*below) + float64(head(J)*above)))
	}
	if sum == 0 { // the slope of a squash of the smallest numbers is infinite
		return 0
	}
	return transport.Saturate(sum * slope)
}

// Invert returns an x with T(x) = v, to the rounding of either; where T has a plateau at
// v, some x on it. A v outside the values that T takes, or a T of a single value, is a
// [*DataError] with Row = Col = -1. At ε = 0 so is a v that T jumps over; the x returned
// with that error is where T jumps. Cost: at most 200 times that of At and Slope, beside
// the search of a range that has v; at ε = 0 some ten binary searches.
func (f *Map) Invert(v float64) (float64, error) {
	fail := func(x float64, problem string) (float64, error) {
		return x, &DataError{Row: -1, Col: -1, Value: v, Problem: problem}
	}
	if v != v {
		return fail(0, "the value to invert must be a number")
	}
	if f.line > 0 && v-v != 0 {
		return fail(0, "the value to invert must be finite")
	}
	low, high := f.At(math.Inf(-1)), f.At(math.Inf(1))
	if low == high {
		return fail(0, "the map is flat")
	}
	if v < low || v > high {
		return fail(0, "the map takes values from "+ftoa(low)+" to "+ftoa(high))
	}
	if f.points != nil {
		x := f.invertStaircase(v)
		if f.At(x) != v {
			return fail(x, "the map jumps over it at "+ftoa(x))
		}
		return x, nil
	}
	// Bracket between finite numbers, doubling from the middle of the row.
	center, width := f.squash.Span(f.cut)
	lo, hi := center-width, center+width
	for f.At(lo) > v && !math.IsInf(lo, 0) {
		lo -= hi - lo
	}
	for f.At(hi) < v && !math.IsInf(hi, 0) {
		hi += hi - lo
	}
	lo, hi = max(lo, -math.MaxFloat64), min(hi, math.MaxFloat64)
	// Newton where it stays inside and helps, else halving: at most 200 steps.
	x := elem.Middle(lo, hi)
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
	return best, nil
}

// invertStaircase returns an x with T(x) = v, for v within the range of T; where T takes v
// nowhere, an end of the jump over v.
func (f *Map) invertStaircase(v float64) float64 {
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
	first, _ := slices.BinarySearch(f.q, v)
	last := first
	for last < len(f.q)-1 && f.q[last+1] == v {
		last++
	}
	if first > 0 {
		lo = max(lo, f.cut[first-1])
	}
	if last < len(f.cut) {
		hi = min(hi, f.cut[last])
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

// sheet returns T for many points side by side, for ε > 0.
func (f *Map) sheet() place.Sheet {
	return place.NewSheet(f.squash, f.q, f.cut, f.rate).WithLine(f.line)
}
