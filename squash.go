package quantmf

// This file holds the squash: a row is brought onto [0,1] before it is
// transported, so that ε has one meaning for every row.
//
//	z = (x - mean x)/std x,   x̃ = σ(z π/√3)            (SquashLogistic)
//
// with the population standard deviation. Mean and deviation are plain ones:
// the weights a act in the transport alone. T, R are then invariant under
// x → αx+β, α > 0. Sorting and order go by x itself, since no exp is monotone
// to the last bit. The paper's text has no squash; its code has this one.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

// Squash says how a row is brought onto [0,1].
type Squash uint8

const (
	SquashLogistic Squash = iota // the logistic function with the slope of matched variance, π/√3: the authors' default
	SquashNone                   // x itself; the targets must then fit its range
)

var squashNames = []string{"SquashLogistic", "SquashNone"}

// String returns the name of the constant.
func (s Squash) String() string { return name(squashNames, int(s)) }

// logisticSlope is π/√3: the logistic distribution of this scale has variance 1.
const logisticSlope = 1.8137993642342178

// squashed keeps what the way back needs.
type squashed struct {
	kind      Squash
	mean, std float64 // std is 0 for a constant row
}

// apply fills to[i] with the squashed from[i].
func (q *squashed) apply(to, from []float64) {
	if q.kind != SquashNone {
		q.mean, q.std = moments(from)
	}
	q.map1(to, from)
}

// map1 squashes by the stored mean and deviation.
func (q *squashed) map1(to, from []float64) {
	if q.kind == SquashNone {
		copy(to, from)
		return
	}
	if q.std == 0 {
		for i := range to {
			to[i] = 0.5
		}
		return
	}
	for i, v := range from {
		to[i] = elem.Logistic((v - q.mean) / q.std * logisticSlope)
	}
}

// point squashes one value by the stored mean and deviation.
func (q *squashed) point(x float64) float64 {
	to := [1]float64{x}
	q.map1(to[:], to[:])
	return to[0]
}

// slope returns dx̃/dx where the squashed value is s.
func (q *squashed) slope(s float64) float64 {
	switch {
	case q.kind == SquashNone:
		return 1
	case q.std == 0:
		return 0
	}
	return s * (1 - s) * logisticSlope / q.std
}

// center returns the middle and the width, in x, of where a map with the given
// thresholds moves.
func (q *squashed) center(cut []float64) (mid, width float64) {
	if q.kind != SquashNone {
		return q.mean, q.std
	}
	lo, hi := cut[0], cut[0]
	for _, t := range cut {
		lo, hi = min(lo, t), max(hi, t)
	}
	return middle(lo, hi), max(hi-lo, 1e-3*(math.Abs(lo)+math.Abs(hi)), 1e-300)
}

// moments returns mean and population deviation, the latter 0 for a row
// constant to rounding. The values are taken about
// the first one, and scaled, so that no offset or magnitude spoils them.
func moments(x []float64) (mean, std float64) {
	ref, scale, top := x[0], 0.0, 0.0
	for _, v := range x {
		scale = max(scale, math.Abs(v-ref))
		top = max(top, math.Abs(v))
	}
	if scale <= 1e-12*top {
		return ref, 0
	}
	if scale > math.MaxFloat64 { // the range itself overflows: half the numbers, twice the result
		h := make([]float64, len(x))
		for i, v := range x {
			h[i] = v / 4
		}
		mean, std = moments(h)
		return mean * 4, min(std*4, math.MaxFloat64)
	}
	sum, sq := 0.0, 0.0
	for _, v := range x {
		sum += (v - ref) / scale
	}
	m := sum / float64(len(x))
	for _, v := range x { // a second sweep: no cancellation
		d := (v-ref)/scale - m
		sq += float64(d * d)
	}
	std = math.Sqrt(sq/float64(len(x))) * scale
	if std <= 1e-12*top {
		std = 0
	}
	return ref + float64(m*scale), std
}

// backward turns the gradient g at x̃ into the gradient at x, in place:
//
//	w = g x̃(1-x̃) π/√3,   x̄ = (w - mean w - z mean(w z))/std.
//
// x̃ is squash(x) as apply returned it. A constant row has gradient 0.
func (q *squashed) backward(g, sq, x []float64) {
	if q.kind == SquashNone {
		return
	}
	if q.std == 0 {
		clear(g)
		return
	}
	sum, dot := 0.0, 0.0
	for i := range g {
		w := float64(g[i] * float64(sq[i]*(1-sq[i])) * logisticSlope)
		g[i] = w
		sum += w
		dot += float64(w * ((x[i] - q.mean) / q.std))
	}
	sum /= float64(len(g))
	dot /= float64(len(g))
	for i := range g {
		z := (x[i] - q.mean) / q.std
		g[i] = (g[i] - sum - float64(z*dot)) / q.std
	}
}

// forward turns the direction dx at x into the direction at x̃, in place:
// dz = (dx - mean dx - z mean(z dx))/std, dx̃ = x̃(1-x̃) π/√3 dz.
func (q *squashed) forward(dx, sq, x []float64) {
	if q.kind == SquashNone {
		return
	}
	if q.std == 0 {
		clear(dx)
		return
	}
	sum, dot := 0.0, 0.0
	for i, d := range dx {
		sum += d
		dot += float64(d * ((x[i] - q.mean) / q.std))
	}
	sum /= float64(len(dx))
	dot /= float64(len(dx))
	for i, d := range dx {
		z := (x[i] - q.mean) / q.std
		dz := (d - sum - float64(z*dot)) / q.std
		dx[i] = float64(float64(sq[i]*(1-sq[i]))*logisticSlope) * dz
	}
}
