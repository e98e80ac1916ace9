package quantmf

// This file holds the squash: a row is brought onto [0,1] before it is
// transported, so that ε has one meaning for every row.
//
//	z = (x - mean x)/std x,   x̃ = σ(z π/√3)   SquashLogistic
//	                          x̃ = σ(z)        SquashLogisticUnit
//	                          x̃ = atan z      SquashArctan, onto (-π/2, π/2)
//
// with the population standard deviation and σ the logistic function. Mean and deviation are plain ones:
// the weights a act in the transport alone. T, R are then invariant under
// x → αx+β, α > 0. Sorting and order go by x itself, since no exp is monotone
// to the last bit. The paper's text has no squash; its code has this one.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Squash says how a row is brought onto [0,1].
type Squash uint8

const (
	SquashLogistic Squash = iota // the logistic function with the slope of matched variance, π/√3: the authors' default
	SquashNone                   // x itself; the targets must then fit its range
	// SquashLogisticUnit is the logistic function with slope 1: the default of ott-jax.
	SquashLogisticUnit
	// SquashArctan is the arc tangent, the other choice of the authors' code. Its
	// values lie in (-π/2,π/2) while targets default to [0,1], as they do there.
	SquashArctan
)

var squashNames = []string{"SquashLogistic", "SquashNone", "SquashLogisticUnit", "SquashArctan"}

// String returns the name of the constant.
func (s Squash) String() string { return name(squashNames, int(s)) }

// leastDeviation is below what a row counts as constant in any unit.
const leastDeviation = 1e-290

// logisticSlope is π/√3: the logistic distribution of this scale has variance 1.
const logisticSlope = 1.8137993642342178

// squashed keeps what the way back needs.
type squashed struct {
	kind Squash
	// The mean is ref+shift, ref one of the samples: at an offset of 1e9 the sum
	// would have lost what the shift holds.
	ref, shift, std float64 // std is 0 for a constant row
	// observed marks the entries that count for mean and deviation; nil: all.
	observed []bool
}

// z returns the z-score of x.
func (q *squashed) z(x float64) float64 { return ((x - q.ref) - q.shift) / q.std }

// map1 squashes by the stored mean and deviation.
func (q *squashed) map1(to, from []float64) {
	if q.kind == SquashNone {
		copy(to, from)
		return
	}
	if q.std == 0 {
		mid := 0.5
		if q.kind == SquashArctan {
			mid = 0
		}
		for i := range to {
			to[i] = mid
		}
		return
	}
	switch q.kind {
	case SquashArctan:
		for i, v := range from {
			to[i] = elem.Atan(q.z(v))
		}
	default:
		kernel.Logistic(to, from, &kernel.Score{Ref: q.ref, Shift: q.shift, Std: q.std}, q.kind.rate())
	}
}

// rate is the slope of the logistic kinds in z.
func (s Squash) rate() float64 {
	if s == SquashLogisticUnit {
		return 1
	}
	return logisticSlope
}

// derivative returns dx̃/dz at z, where the squashed value is s.
func (q *squashed) derivative(z, s float64) float64 {
	if q.kind == SquashArctan {
		return 1 / (1 + float64(z*z))
	}
	return float64(s*(1-s)) * q.kind.rate()
}

// point squashes one value by the stored mean and deviation.
func (q *squashed) point(x float64) float64 {
	to := [1]float64{x}
	q.map1(to[:], to[:])
	return to[0]
}

// slope returns dx̃/dx at x, where the squashed value is s.
func (q *squashed) slope(x, s float64) float64 {
	switch {
	case q.kind == SquashNone:
		return 1
	case q.std == 0:
		return 0
	}
	if x-x != 0 {
		return 0
	}
	return q.derivative(q.z(x), s) / q.std
}

// center returns the middle and the width, in x, of where a map with the given
// thresholds moves.
func (q *squashed) center(cut []float64) (mid, width float64) {
	if q.kind != SquashNone {
		return q.ref + q.shift, q.std
	}
	lo, hi := cut[0], cut[0]
	for _, t := range cut {
		lo, hi = min(lo, t), max(hi, t)
	}
	return middle(lo, hi), max(hi-lo, 1e-3*(math.Abs(lo)+math.Abs(hi)), 1e-300)
}

// moments takes mean and population deviation of the entries that count; the
// latter is 0 for a row constant to rounding. The values are taken about the
// first of them, and scaled, so that no offset or magnitude spoils them. scratch is
// as long as x.
func (q *squashed) moments(x, scratch []float64) {
	if q.observed != nil {
		seen := scratch[:0]
		for i, v := range x {
			if q.observed[i] {
				seen = append(seen, v)
			}
		}
		x = seen
	}
	q.ref, q.shift, q.std = 0, 0, 0
	if len(x) == 0 {
		return
	}
	q.ref = x[0]
	n := float64(len(x))
	var ends [2]float64
	kernel.Spread(&ends, x, q.ref)
	scale, top := ends[0], ends[1]
	if scale <= 1e-12*top {
		return
	}
	m := kernel.Deviation(x, q.ref, scale) / n
	std := math.Sqrt(kernel.Squares(x, q.ref, scale, m)/n) * scale // a second sweep: no cancellation
	if std <= 1e-12*top || std < leastDeviation {                  // the latter: 1/std would overflow what it meets
		return
	}
	q.shift, q.std = m*scale, std
}

// backward turns the gradient g at x̃ into the gradient at x, in place:
//
//	w = g dx̃/dz,   x̄ = (w - mean w - z mean(w z))/std.
//
// x̃ is squash(x) as apply returned it. A constant row has gradient 0, and so has
// an entry that does not count, since nothing depends on where it goes.
func (q *squashed) backward(g, sq, x []float64) {
	if q.kind == SquashNone {
		return
	}
	if q.std == 0 {
		clear(g)
		return
	}
	n := len(g)
	for i, o := range q.observed {
		if !o {
			g[i] = 0
			n--
		}
	}
	var sums [2]float64
	score := kernel.Score{Ref: q.ref, Shift: q.shift, Std: q.std}
	if q.kind == SquashArctan {
		for i := range g {
			z := q.z(x[i])
			w := float64(g[i] * q.derivative(z, sq[i]))
			g[i] = w
			sums[0] += w
			sums[1] += float64(w * z)
		}
	} else {
		kernel.LogisticBack(&sums, g, sq, x, &score, q.kind.rate())
	}
	kernel.ScoreBack(g, x, &score, sums[0]/float64(n), sums[1]/float64(n))
	for i, o := range q.observed {
		if !o {
			g[i] = 0
		}
	}
}

// forward turns the direction dx at x into the direction at x̃, in place:
// dz = (dx - mean dx - z mean(z dx))/std, dx̃ = (dx̃/dz) dz.
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
		dot += float64(d * q.z(x[i]))
	}
	sum /= float64(len(dx))
	dot /= float64(len(dx))
	for i, d := range dx {
		z := q.z(x[i])
		dz := (d - sum - float64(z*dot)) / q.std
		dx[i] = q.derivative(z, sq[i]) * dz
	}
}
