package transport

// This file holds the squash: a row is brought onto [0,1] before it is
// transported, so that ε has one meaning for every row.
//
//	z = (x - mean x)/std x,   x̃ = σ(z π/√3)   Logistic
//	                          x̃ = σ(z)        LogisticUnit
//	                          x̃ = atan z      Arctan, onto (-π/2, π/2)
//
// with the population standard deviation and σ the logistic function. Mean and deviation
// are plain ones, and the weights a act in the transport alone, unless a problem says that they weigh the
// moments too (Problem.Weighed). T, R are then invariant under
// x → αx+β, α > 0. Sorting and order go by x itself, since no exp is monotone
// to the last bit. The paper's text has no squash; its code has this one.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Kind says which function a squash is.
type Kind uint8

const (
	Logistic     Kind = iota // of slope π/√3: the logistic distribution of this scale has variance 1
	None                     // x itself
	LogisticUnit             // of slope 1
	Arctan
	Kinds // how many there are
)

// leastDeviation is the deviation below which a row counts as constant, in any unit.
const leastDeviation = 1e-290

const logisticSlope = 1.8137993642342178 // π/√3

// rate is the slope of the logistic kinds in z.
func (k Kind) rate() float64 {
	if k == LogisticUnit {
		return 1
	}
	return logisticSlope
}

// Squash is the squash of one row: all that the function x → x̃ depends on.
type Squash struct {
	Kind Kind
	// The mean is Ref+Shift, Ref one of the samples: at an offset of 1e9 the sum
	// would have lost what Shift holds. Std is 0 for a row that is constant to rounding (its
	// range at most 8u of its largest magnitude, four units in the last place), or without
	// observed entries, and all are 0 for None.
	Ref, Shift, Std float64
}

// NewSquash returns the squash of x for a kind: the moments are those of the observed entries
// (observed nil: of all). scratch is as long as x, or nil where all are observed.
func NewSquash(kind Kind, x []float64, observed []bool, scratch []float64) Squash {
	q := Squash{Kind: kind}
	if kind == None {
		return q
	}
	if observed != nil {
		seen := scratch[:0]
		for i, v := range x {
			if observed[i] {
				seen = append(seen, v)
			}
		}
		x = seen
	}
	if len(x) == 0 {
		return q
	}
	// About the first of them, and scaled, so that no offset or magnitude spoils them.
	q.Ref = x[0] + 0 // of equal samples, 0 and -0, the model has the same bits
	n := float64(len(x))
	var ends [2]float64
	kernel.Spread(&ends, x, q.Ref)
	scale, top := ends[0], ends[1]
	if scale <= 8*unit*top {
		// The range, which no order of the samples changes, is up to twice that.
		if lo, hi := bounds(x); hi-lo <= 8*unit*top {
			return q
		}
	}
	m := kernel.Deviation(x, q.Ref, scale) / n
	q.take(m, kernel.Squares(x, q.Ref, scale, m)/n, scale) // a second sweep: no cancellation
	return q
}

// take takes the mean about Ref and the variance of samples in units of scale.
func (q *Squash) take(mean, variance, scale float64) {
	if std := math.Sqrt(variance) * scale; !(std < leastDeviation) { // 1/std would overflow what it meets
		q.Shift, q.Std = mean*scale, std
	}
}

// WeightedSquash is NewSquash of samples with weights, 0 where they are not observed.
func WeightedSquash(kind Kind, x, weights []float64) Squash {
	q := Squash{Kind: kind}
	if kind == None {
		return q
	}
	lo, hi, total := math.Inf(1), math.Inf(-1), 0.0
	for i, w := range weights {
		if w > 0 {
			if lo > hi {
				q.Ref = x[i] + 0
			}
			lo, hi = min(lo, x[i]), max(hi, x[i])
			total += w
		}
	}
	if !(hi-lo > 8*unit*max(math.Abs(lo), math.Abs(hi))) {
		return q
	}
	scale, mean, variance := max(hi-q.Ref, q.Ref-lo), 0.0, 0.0
	for i, w := range weights {
		mean += float64(w / total * ((x[i] - q.Ref) / scale))
	}
	for i, w := range weights {
		if off := (x[i]-q.Ref)/scale - mean; w > 0 {
			variance += float64(w / total * float64(off*off))
		}
	}
	q.take(mean, variance, scale)
	return q
}

// score is how x is standardised, for loops.
func (q *Squash) score() *kernel.Score { return &kernel.Score{Ref: q.Ref, Shift: q.Shift, Std: q.Std} }

// z returns the z-score of x.
func (q *Squash) z(x float64) float64 { return ((x - q.Ref) - q.Shift) / q.Std }

// Apply fills to with the squashed x.
func (q *Squash) Apply(to, x []float64) {
	if q.Kind == None {
		copy(to, x)
		return
	}
	if q.Std == 0 {
		mid := 0.5
		if q.Kind == Arctan {
			mid = 0
		}
		for i := range to {
			to[i] = mid
		}
		return
	}
	switch q.Kind {
	case Arctan:
		for i, v := range x {
			to[i] = elem.Atan(q.z(v))
		}
	default:
		kernel.Logistic(to, x, q.score(), q.Kind.rate())
	}
}

// At returns the squashed x.
func (q *Squash) At(x float64) float64 {
	to := [1]float64{x}
	q.Apply(to[:], to[:])
	return to[0]
}

// derivative returns dx̃/dz at z, where the squashed value is s.
func (q *Squash) derivative(z, s float64) float64 {
	if q.Kind == Arctan {
		return 1 / (1 + float64(z*z))
	}
	return float64(s*(1-s)) * q.Kind.rate()
}

// Slope returns dx̃/dx at x, where the squashed value is s; 0 at ±Inf. Where s is near 1, so
// that 1-s has lost its digits, it takes them from x.
func (q *Squash) Slope(x, s float64) float64 {
	switch {
	case q.Kind == None:
		return 1
	case q.Std == 0 || x-x != 0:
		return 0
	}
	z := q.z(x)
	if s > 1-0x1p-10 && q.Kind != Arctan {
		rate := q.Kind.rate()
		return float64(s*elem.Logistic(-z*rate)) * rate / q.Std
	}
	return q.derivative(z, s) / q.Std
}

// Constant tells whether the squash maps every x to one value.
func (q *Squash) Constant() bool { return q.Kind != None && q.Std == 0 }

// Logistic returns the largest slope of a logistic squash times 4: the rate of the function over the
// deviation. It is 0 for other kinds and for a row that is constant.
func (q *Squash) Logistic() float64 {
	if (q.Kind != Logistic && q.Kind != LogisticUnit) || q.Std == 0 {
		return 0
	}
	return q.Kind.rate() / q.Std
}

// Farthest is how far a squashed value can be from c; +Inf where the squash has no bound.
func (q *Squash) Farthest(c float64) float64 {
	lo, hi := 0.0, 1.0
	switch {
	case q.Kind == None:
		return math.Inf(1)
	case q.Kind == Arctan:
		lo, hi = -math.Pi/2, math.Pi/2
	}
	return max(hi-c, c-lo)
}

// Span returns the middle and the width, in x, of the range in which a map with the given thresholds
// (squashed, at least one) rises.
func (q *Squash) Span(cut []float64) (mid, width float64) {
	if q.Kind != None {
		return q.Ref + q.Shift, q.Std
	}
	lo, hi := bounds(cut)
	return elem.Middle(lo, hi), max(hi-lo, 1e-3*(math.Abs(lo)+math.Abs(hi)), 1e-300)
}

// backward turns the gradient g at x̃ into the gradient at x, in place:
//
//	w = g dx̃/dz,   x̄ = (w - mean w - z mean(w z))/std.
//
// sq is x̃. A constant row has gradient 0, and so has an entry that is not observed, since
// nothing depends on where it goes. The means are those by weights of sum 1, if any: the gradient is then
//
//	x̄ = (w - a (Σ w + z Σ w z))/std.
func (q *Squash) backward(g, sq, x []float64, observed []bool, weights []float64) {
	if q.Kind == None {
		return
	}
	if q.Std == 0 {
		clear(g)
		return
	}
	for i, o := range observed {
		if !o {
			g[i] = 0
		}
	}
	var sums [2]float64
	if q.Kind == Arctan {
		for i := range g {
			z := q.z(x[i])
			w := float64(g[i] * q.derivative(z, sq[i]))
			g[i] = w
			sums[0] += w
			sums[1] += float64(w * z)
		}
	} else {
		kernel.LogisticBack(&sums, g, sq, x, q.score(),
			q.Kind.rate())
	}
	if weights != nil {
		for i, a := range weights[:len(g)] {
			g[i] = (g[i] - float64(a*(sums[0]+float64(q.z(x[i])*sums[1])))) / q.Std
		}
		return
	}
	n := len(g)
	for _, o := range observed {
		if !o {
			n--
		}
	}
	kernel.ScoreBack(g, x, q.score(), sums[0]/float64(n),
		sums[1]/float64(n))
	for i, o := range observed {
		if !o {
			g[i] = 0
		}
	}
}

// Slopes multiplies each g_i by c dx̃_i/dx_i at fixed moments. sq is x̃.
func (q *Squash) Slopes(g, sq, x []float64, c float64) {
	switch {
	case q.Kind == None:
		kernel.Scale(g, g, c)
	case q.Std == 0:
		clear(g)
	case q.Kind == Arctan:
		for i := range g {
			g[i] = float64(g[i]*q.derivative(q.z(x[i]), sq[i])) * c
		}
		kernel.Scale(g, g, 1/q.Std)
	default:
		kernel.LogisticSlope(g, sq, c*q.Kind.rate())
		kernel.Scale(g, g, 1/q.Std)
	}
}

// forward turns the direction dx at x into the direction at x̃, in place:
// dz = (dx - mean dx - z mean(z dx))/std, dx̃ = (dx̃/dz) dz.
func (q *Squash) forward(dx, sq, x []float64) {
	if q.Kind == None {
		return
	}
	if q.Std == 0 {
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
		dz := (d - sum - float64(z*dot)) / q.Std
		dx[i] = q.derivative(z, sq[i]) * dz
	}
}
