package place

// This file holds the maps of the rows at the points of a tile: T and T' for many points side by side, in the
// terms of the package's map (map.go of the root), whose values they are to rounding. A [Sheet] has values
// and slopes under any divergence, a [Ratio] what cells under the map say of that of Kullback and Leibler.
// Level J weighs exp(h_J + y_J (x̃-c)) at a point x that the squash brings to x̃, where
//
//	h_{J+1} = h_J - ρ_J (t_J - c),   y_{J+1} = y_J + ρ_J,
//
// t_J is the threshold between levels J and J+1, ρ_J its rate, and c one of the thresholds. Where all rates
// are one ρ, as on a regular grid, the weights are e^{h_J} e^{ρ(J-(m-1)/2)(x̃-c)}, h_J taken from the middle
// of their range, and the second factors are powers: one exponential a point instead of m, and T and T' are
// ratios of polynomials in it. To these a line s x may be added.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/transport"
)

// A Sheet is the map T of a row, for ε > 0. It is not changed once made.
type Sheet struct {
	squash transport.Squash
	center float64
	step   float64   // ρ where the weights are powers
	line   float64   // s
	form   form      // how the weights are made
	q, y   []float64 // m
	h      []float64 // m: e^{h_J} where the weights are powers
	inc    []float64 // m-1
	pairs  []float64 // 2m: e^{h_J} and e^{h_J} (q_J-q_0), where the form is powers
}

// form says how the weights of the levels at a point are made. It depends on the row alone, so that a point
// has the same bits beside any others.
type form uint8

const (
	exact  form = iota // by an exponential each, over the largest
	lifted             // by powers times e^{h_J}, over the largest
	powers             // by powers, of which [kernel.PowerMean] makes T and T' at once
)

const (
	mostPower = 300 // largest |log| of a weight that sums take as it is: no product of two overflows
	mostLift  = 680 // likewise of one that is divided by the largest first
	// mostGap is the largest ρ times the distance of two thresholds for which slopes are differences of
	// moments: half-way the nearest levels have e^-14 of the weight, and 10 of the slope's digits are left.
	mostGap = 28
)

// NewSheet makes the map onto the rising q of m levels by the m-1 thresholds cut, in squashed x,
// and their rates.
func NewSheet(squash transport.Squash, q, cut, rate []float64) Sheet {
	m := len(q)
	s := Sheet{squash: squash, q: q, h: make([]float64, m), y: make([]float64, m), inc: make([]float64, m-1)}
	if m == 1 {
		return s
	}
	s.center = cut[(m-1)/2]
	for J, r := range rate {
		s.y[J+1] = s.y[J] + r
		s.h[J+1] = s.h[J] - float64(r*(cut[J]-s.center))
		s.inc[J] = q[J+1] - q[J]
	}
	s.step = s.y[m-1] / float64(m-1)
	for _, r := range rate {
		if !(math.Abs(r-s.step) <= 1e-15*float64(m)*s.step) {
			return s
		}
	}
	farthest := squash.Farthest(s.center)
	edge := float64(s.y[m-1] / 2)
	lo, hi := s.h[0], s.h[0]
	for _, h := range s.h {
		lo, hi = min(lo, h), max(hi, h)
	}
	gap := 0.0
	for J, c := range cut[1:] {
		gap = max(gap, c-cut[J])
	}
	switch most := float64(farthest*max(edge, s.step)) + float64((hi-lo)/2); {
	case most <= mostPower && float64(gap*s.step) <= mostGap:
		s.form = powers
	case most <= mostLift:
		s.form = lifted
	default:
		return s
	}
	for J := range s.h {
		s.y[J] = float64(float64(J)*s.step) - edge
		s.h[J] = elem.Exp(s.h[J] - elem.Middle(lo, hi))
	}
	if s.form == powers {
		for J, h := range s.h {
			s.pairs = append(s.pairs, h, float64(h*(q[J]-q[0])))
		}
	}
	return s
}

// WithLine returns the map with a line of slope s added to it.
func (f Sheet) WithLine(s float64) Sheet {
	f.line = s
	return f
}

// Low is the least value that T takes at points that are not negative. High is the largest, or, where there
// is a line, the one at two deviations above the mean of the row that was fitted, with which it is of a size.
// Constant tells whether T takes one value alone.
func (f *Sheet) Low() float64 { return f.q[0] }
func (f *Sheet) High() float64 {
	high := f.q[len(f.q)-1]
	if f.line > 0 {
		high += float64(f.line * (f.squash.Ref + f.squash.Shift + 2*f.squash.Std))
	}
	return high
}
func (f *Sheet) Constant() bool { return f.squash.Constant() && f.line == 0 }

// SheetRoom is one worker's room for n points and m levels.
type SheetRoom struct{ e, s, z, ones, zeros, weights, none []float64 }

// NewSheetRoom makes a room for n points and m levels.
func NewSheetRoom(n, m int) *SheetRoom {
	n = kernel.Pad(n)
	v := func(n int) []float64 { return make([]float64, n) }
	r := &SheetRoom{e: v(n * m), s: v(n), z: v(n), ones: v(n), zeros: v(n), weights: v(m), none: v(m)}
	for i := range r.ones {
		r.ones[i] = 1
	}
	for j := range r.weights {
		r.weights[j] = 1
	}
	return r
}

// At fills t and slope with T and T' for the points w, whole blocks.
func (f *Sheet) At(t, slope, w []float64, r *SheetRoom) {
	f.curve(t, slope, w, r)
	if f.line > 0 {
		by := [...]float64{f.line}
		kernel.Accumulate(t, by[:], w)
		kernel.Shift(slope, slope, -f.line)
	}
}

// curve is At without the line.
func (f *Sheet) curve(t, slope, w []float64, r *SheetRoom) {
	n, m := len(w), len(f.q)

	if m == 1 {
		for i := range t {
			t[i], slope[i] = f.q[0], 0
		}
		return
	}
	e, s, z := r.e[:n*m], r.s[:n], r.z[:n]
	f.squash.Apply(s, w)
	kernel.Shift(z, s, f.center)
	if f.form == powers {
		kernel.Scale(z, z, f.step)
		kernel.PowerMean(t, slope, z, f.pairs)
		kernel.Shift(t, t, -f.q[0])
		kernel.Scale(slope, slope, f.step)
	} else {
		if f.form == lifted {
			kernel.BuildPower(e, z, f.y[0], f.step, m)
			kernel.Lift(e, f.h, n)
		} else {
			kernel.Build(e, z, f.h, f.y)
		}
		kernel.Average(t, e, r.weights, z, f.q[0], f.inc)
		kernel.Covariance(&kernel.Cov{Out: slope, E: e, W: r.weights, Z: z, Zeta: r.ones[:n], A: r.zeros[:n],
			V: f.q, Lam: r.none, Y: f.y})
	}
	var ends [2]float64
	if kernel.Extent(&ends, s); ends[1] > mostSquashed {
		copy(z, slope)
	}
	f.squash.Slopes(slope, s, w, 1)
	if ends[1] > mostSquashed {
		for i, v := range s {
			if v > mostSquashed { // 1-x̃ has lost its digits
				slope[i] = z[i] * f.squash.Slope(w[i], v)
			}
		}
	}
	var size [2]float64
	kernel.Extent(&ends, slope)
	if kernel.Spread(&size, slope, 0); !(ends[0] >= 0 && size[1] <= math.MaxFloat64) {
		for i, v := range slope {
			if !(v >= 0 && v <= math.MaxFloat64) {
				slope[i] = transport.Saturate(max(v, 0))
			}
		}
	}
	high := f.q[m-1]
	if kernel.Extent(&ends, t); ends[1] > high {
		kernel.Confine(t, f.q[0], high)
	}
}

// mostSquashed is the largest x̃ whose slope is taken from x̃.
const mostSquashed = 1 - 0x1p-10

// A Ratio is a T that [kernel.MappedKL] has by a ratio of polynomials.
type Ratio struct {
	levels, slopes []float64
	row            kernel.KLMap
}

const (
	mostLevels = 64  // of a Ratio: its slopes are made in m² steps
	mostLog    = 200 // largest |log| of its sums, without the values
	mostValue  = 1e30
	mostSteep  = 1e60
)

// Ratio returns T as a ratio of polynomials, nil where all weights are not powers, the squash is not
// logistic, T is not above 0 or a product might overflow. Derivatives of divergences divide by T, or by low
// where T is less.
//
// With weights p_J = e^{h_J} r^J and r = e^{ρ(x̃-c)}, T is N/D and the line, N = Σ_J p_J q_J and D = Σ_J p_J.
// The slope in log r is
//
//	Σ_{J>K} (J-K) (q_J-q_K) p_J p_K / D²,
//
// a polynomial without a negative coefficient: no digits cancel, however far levels are apart.
func (f *Sheet) Ratio(low float64) *Ratio {
	m := len(f.q)
	rate, most := f.squash.Logistic(), f.q[m-1]
	if m > mostLevels || f.form == exact || !(f.q[0] >= 0 && most >= 1/mostValue && most <= mostValue) {
		return nil
	}
	steep := rate * f.step
	if !(steep >= 1/mostSteep && steep <= mostSteep) {
		return nil
	}
	lo, hi := float64(-f.center*f.step), float64((1-f.center)*f.step) // of log r
	for J, h := range f.h {
		l, j := elem.Log(h), float64(J)
		if !(l >= -mostLog && l+float64(j*hi) <= mostLog && l+float64(j*lo) <= mostLog) {
			return nil
		}
		if J == m-1 && !(l+float64(j*lo) >= -mostLog) {
			return nil
		}
	}
	r := &Ratio{levels: make([]float64, 2*m), slopes: make([]float64, 2*m-3)}
	r.row = kernel.KLMap{Ref: f.squash.Ref, Shift: f.squash.Shift, Fall: -rate, Center: f.center,
		Step: f.step, Most: 1 / low, Line: f.line}
	for J, h := range f.h {
		at := 2 * (m - 1 - J)
		r.levels[at], r.levels[at+1] = h, h*f.q[J]
		for K, g := range f.h[:J] {
			rise := float64(float64(J-K)*(f.q[J]-f.q[K])) * h
			r.slopes[2*m-3-J-K] += float64(rise * float64(g*steep))
		}
	}
	return r
}
