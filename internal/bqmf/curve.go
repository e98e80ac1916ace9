package bqmf

// This file holds the monotone scales: g_i takes row i of x to the scale on which the model is linear, T_i
// takes what the model says back.
//
//	g_i(x) = standardise(z(√x) + z(score x)),  score = Φ⁻¹((rank - 1/2)/n_i), ties averaged,
//
// z to mean 0 and deviation 1 over the observed cells of the row; no root where x
// has negative values. The root is the scale on which KL is nearly a square, the
// score that of the ranks. g_i is a table at the row's values, its inverse linear
// between them, with tails beyond (tails.go) and flat beyond these.
//
// What the model says of a cell is N(w, s²), of which the mean in the units of x is
//
//	p(w) = E g_i⁻¹(w + s e),  e ~ N(0,1), by nine nodes,
//
// and T_i is the mean of three functions of p: p itself, an affine correction a + b p, and a rising
// correction that is linear between knots. The affine correction is by least squares. Its weights under KL
// are 1/p, because KL is to second order a square over what is predicted. The rising correction is the
// isotonic regression of x on p: every block of equal values makes a knot in its middle, drawn towards p by
// stepCells pseudo-cells. Beyond the outer knots it goes on to the ends of the scale's tails, in lines of
// slope 1 at most. Both corrections are learnt from what the model says of each observed cell without it
// (leave-one-out), so no cell corrects its own prediction. Every operation is non-decreasing in w; therefore
// T_i is non-decreasing at every pair of representable numbers.
//
// A value that comes more than once has, for quantiles and probabilities, the mass of all places between the
// scores of its first and its last rank. For the mean the line between values is better.

import (
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/elem"
)

// Curve is T_i, for a cell about which the model is as sure as it is on average of the row. X and Y rise; a
// constant row has one of each. MassY rises and MassX does not fall; they are Y and X where no value comes
// more than once. A Curve is made by scaler.scale and
// mapLearner.fitMap, and not changed by its methods but plain.
type Curve struct {
	Seen         [2]float64             // the least and the largest observed value
	Y, X         []float64              // g_i at the row's distinct values and on its tails, both rising
	MassY, MassX []float64              // g_i⁻¹ with mass: MassX stays where a value has mass
	Levels       [len(LevelsAt)]float64 // deviations from the mean at LevelsAt
	Spread       float64                // s of At
	// what T_i is not let fall below; 0 is no floor: values may be negative
	Floor float64
	// over the observed cells, by the weights of the affine correction: x, and leave-one-out p
	MeanX, MeanP float64
	Slope        float64 // b
	// the monotone correction's knots, the first rising, the second non-decreasing
	StepAt, StepTo []float64
}

// plain takes from a curve what was learnt.
func (c *Curve) plain() {
	c.Slope, c.MeanX, c.MeanP, c.StepAt, c.StepTo, c.Levels = 1, 0, 0, nil, nil, LevelsAt
}

// Nodes and NodeWeights are the nine nodes and weights of E f(e), e ~ N(0,1), exact up to degree 17.
var (
	Nodes = [9]float64{-4.512745863399783, -3.20542900285647, -2.07684797867783, -1.0232556637891326, 0,
		1.0232556637891326, 2.07684797867783, 3.20542900285647, 4.512745863399783}
	NodeWeights = [9]float64{2.2345844007746588e-05, 0.0027891413212317692, 0.04991640676521788,
		0.24409750289493923, 0.4063492063492063, 0.24409750289493923, 0.04991640676521788,
		0.0027891413212317692, 2.2345844007746588e-05}
)

// Table evaluates a curve many times: it finds the place of a w in the table of
// g_i by the bucket that w falls into.
type Table struct {
	C     *Curve
	y, x  []float64
	low   float64
	rate  float64              // buckets for each unit of w
	start [tableSize + 1]int32 // the last knot of the buckets before
}

const tableSize = 256

// Load takes g_i⁻¹ as Y and X have it or, with mass, as MassY and MassX.
func (t *Table) Load(c *Curve, mass bool) {
	t.C, t.y, t.x = c, c.Y, c.X
	if mass {
		t.y, t.x = c.MassY, c.MassX
	}
	k := len(t.y)
	t.low, t.rate = t.y[0], 0
	if k > 1 {
		t.rate = tableSize / (t.y[k-1] - t.y[0])
	}
	at := 0
	for b := range t.start {
		for at < k && t.bucket(t.y[at]) < b {
			at++
		}
		t.start[b] = int32(max(at-1, 0))
	}
}

// bucket is non-decreasing in w.
func (t *Table) bucket(w float64) int {
	b := (w - t.low) * t.rate
	if !(b > 0) {
		return 0
	}
	if b >= tableSize {
		return tableSize
	}
	return int(b)
}

// Back is g_i⁻¹.
func (t *Table) Back(w float64) float64 {
	y, x := t.y, t.x
	last := len(y) - 1
	if !(w > y[0]) {
		return x[0]
	}
	if w >= y[last] {
		return x[last]
	}
	k := int(t.start[t.bucket(w)])
	for y[k+1] <= w {
		k++
	}
	return between(w, y[k], y[k+1], x[k], x[k+1])
}

// between is linear from (a, from) to (b, to), non-decreasing in w.
func between(w, a, b, from, to float64) float64 {
	return min(from+float64((to-from)*((w-a)/(b-a))), to)
}

// Mean is p(w) for the deviation s.
func (t *Table) Mean(w, s float64) float64 {
	if len(t.C.X) == 1 {
		return t.C.X[0]
	}
	sum := 0.0
	for k, e := range Nodes {
		sum += float64(NodeWeights[k] * t.Back(w+float64(s*e)))
	}
	return min(max(sum, t.C.X[0]), t.C.X[len(t.C.X)-1])
}

// Conditional is the conditional mean of a cell N(w, s²): T of p.
func (t *Table) Conditional(w, s float64) float64 {
	if len(t.C.X) == 1 {
		return t.C.X[0]
	}
	return t.C.correct(t.Mean(w, s))
}

// Quantile is the quantile of a cell N(w, s²) at the probability of which z is the normal quantile.
func (t *Table) Quantile(w, s, z float64) float64 { return t.Back(w + float64(s*t.C.bend(z))) }

// Deviation is the standard deviation of a cell N(w, s²).
func (t *Table) Deviation(w, s float64) float64 {
	if len(t.C.X) == 1 {
		return 0
	}
	about := t.Back(w)
	unit := max(math.Abs(t.C.X[0]), math.Abs(t.C.X[len(t.C.X)-1]))
	first, second := 0.0, 0.0
	for k, e := range Nodes {
		v := (t.Quantile(w, s, e) - about) / unit
		first += float64(NodeWeights[k] * v)
		second += float64(NodeWeights[k] * float64(v*v))
	}
	return unit * math.Sqrt(max(second-float64(first*first), 0))
}

// Probability returns the probabilities of a value below x and of one that is at most x, of a cell N(w, s²);
// NaN where x is.
func (t *Table) Probability(x, w, s float64) (below, upTo float64) {
	if x != x {
		return x, x
	}
	lo, hi := t.C.places(x)
	if x == t.C.MassX[0] {
		lo = math.Inf(-1)
	}
	if x == t.C.MassX[len(t.C.MassX)-1] {
		hi = math.Inf(1)
	}
	if len(t.C.X) > 1 {
		lo, hi = t.C.unbend((lo-w)/s), t.C.unbend((hi-w)/s)
	}
	return Phi(lo), Phi(hi)
}

// correct takes p to T.
func (c *Curve) correct(p float64) float64 {
	lo, hi := c.X[0], c.X[len(c.X)-1]
	affine := min(max(c.MeanX+float64(c.Slope*(p-c.MeanP)), lo), hi)
	steps := p
	if len(c.StepAt) > 0 {
		steps = along(p, c.StepAt, c.StepTo)
	}
	return c.raised(p/3 + affine/3 + steps/3)
}

// raised is a value of T_i, or the floor.
func (c *Curve) raised(t float64) float64 {
	if c.Floor > 0 {
		return max(t, c.Floor)
	}
	return t
}

// forward is g_i. A value beyond those of the row counts as at most one deviation beyond them, as one cell of
// a new sample is not to say where the sample lies.
func (c *Curve) forward(x float64) float64 {
	y := along(x, c.X, c.Y)
	if x < c.Seen[lower] {
		return max(y, along(c.Seen[lower], c.X, c.Y)-1)
	}
	if x > c.Seen[upper] {
		return min(y, along(c.Seen[upper], c.X, c.Y)+1)
	}
	return y
}

// along is the function that is linear between the points (from_k, to_k), from rising, and flat beyond them.
func along(v float64, from, to []float64) float64 {
	last := len(from) - 1
	if !(v > from[0]) {
		return to[0]
	}
	if v >= from[last] {
		return to[last]
	}
	k, exact := slices.BinarySearch(from, v)
	if exact {
		return to[k]
	}
	return between(v, from[k-1], from[k], to[k-1], to[k])
}

// At returns T(w), non-decreasing in w; NaN for NaN, and the limits at ±Inf. Cost:
// ten searches of the row's distinct values.
func (c *Curve) At(w float64) float64 {
	if w != w {
		return w
	}
	if len(c.X) == 1 {
		return c.raised(c.X[0])
	}
	sum := 0.0
	for k, e := range Nodes {
		sum += float64(NodeWeights[k] * along(w+float64(c.Spread*e), c.Y, c.X))
	}
	return c.correct(min(max(sum, c.X[0]), c.X[len(c.X)-1]))
}

// Invert returns a w with T(w) = v, or the least representable one where T
// reaches v, and otherwise why there is none.
func (c *Curve) Invert(v float64) (w float64, problem string) {
	if v != v {
		return 0, "the value to invert must be a number"
	}
	last := len(c.Y) - 1
	far := float64(5 * c.Spread)
	lo, hi := c.Y[0]-far-1, c.Y[last]+far+1 // T is flat beyond
	if c.At(lo) == c.At(hi) {
		return 0, "the map is flat"
	}
	if v < c.At(lo) || v > c.At(hi) {
		return 0, "the map takes values from " + strconv.FormatFloat(c.At(lo), 'g', -1, 64) + " to " +
			strconv.FormatFloat(c.At(hi), 'g', -1, 64)
	}
	if c.At(lo) >= v {
		return lo, ""
	}
	for range 2000 { // T(lo) < v <= T(hi)
		mid := elem.Middle(lo, hi)
		if mid <= lo || mid >= hi {
			break
		}
		if c.At(mid) < v {
			lo = mid
		} else {
			hi = mid
		}
	}
	if v-c.At(lo) < c.At(hi)-v {
		return lo, ""
	}
	return hi, ""
}

// LevelsAt are the normal quantiles of 1/200, 1/40, 1/20, 1/10, 7/40, 1/4, 3/8, 1/2 and so on. A row keeps,
// at the same probabilities, the quantiles of its leave-one-out residuals over their deviation.
var LevelsAt = [...]float64{-2.5758293035489004, -1.9599639845400545, -1.6448536269514722,
	-1.2815515655446004, -0.9345892910734801, -0.6744897501960817, -0.31863936396437514, 0,
	0.31863936396437514, 0.6744897501960817, 0.9345892910734801, 1.2815515655446004, 1.6448536269514722,
	1.9599639845400545, 2.5758293035489004}

// bend takes a quantile of the normal distribution to the same quantile of the row's residuals.
func (c *Curve) bend(z float64) float64 { return acrossLevels(z, &LevelsAt, &c.Levels) }

// unbend is the inverse of bend.
func (c *Curve) unbend(r float64) float64 { return acrossLevels(r, &c.Levels, &LevelsAt) }

// acrossLevels is the function that takes some levels to others: linear between them, and of slope 1 beyond.
func acrossLevels(v float64, from, to *[len(LevelsAt)]float64) float64 {
	last := len(from) - 1
	if v <= from[0] {
		return to[0] + (v - from[0])
	}
	if v >= from[last] {
		return to[last] + (v - from[last])
	}
	k := 1
	for from[k] <= v {
		k++
	}
	return between(v, from[k-1], from[k], to[k-1], to[k])
}

// places returns the lowest and the highest w that g_i⁻¹ takes to x.
func (c *Curve) places(x float64) (lo, hi float64) {
	last := len(c.MassX) - 1
	k, exact := slices.BinarySearch(c.MassX, x)
	switch {
	case exact:
		lo, hi = c.MassY[k], c.MassY[k]
		if k < last && c.MassX[k+1] == x {
			hi = c.MassY[k+1]
		}
		return lo, hi
	case k == 0:
		return math.Inf(-1), math.Inf(-1)
	case k > last:
		return math.Inf(1), math.Inf(1)
	}
	lo = between(x, c.MassX[k-1], c.MassX[k], c.MassY[k-1], c.MassY[k])
	return lo, lo
}

// Phi returns the standard normal distribution function, within 1e-15, by the series
// φ(z)(z + z³/3 + z⁵/15 + ...).
func Phi(z float64) float64 {
	if z <= -8 {
		return 0
	}
	if z >= 8 {
		return 1
	}
	sum, term, sq := z, z, float64(z*z)
	for k := 3.0; k < 300; k += 2 {
		term = float64(term * (sq / k))
		next := sum + term
		if next == sum {
			break
		}
		sum = next
	}
	return min(max(0.5+float64(sum*float64(elem.Exp(-sq/2)*0.3989422804014327)), 0), 1)
}
