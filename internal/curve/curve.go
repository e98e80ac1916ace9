// Package curve has the monotone scales of BQMF: g_i takes row i of x to the scale
// on which the model is linear, T_i takes what the model says back.
//
//	g_i(x) = standardise(z(√x) + z(score x)),  score = Φ⁻¹((rank - 1/2)/n_i), ties averaged,
//
// z to mean 0 and deviation 1 over the visible cells of the row; no root where x
// has negative values. The root is the scale on which KL is nearly a square, the
// score that of the ranks. g_i is a table at the row's values, its inverse linear
// between them and flat beyond.
//
// What the model says of a cell is N(w, s²), of which the mean in the units of x is
//
//	p(w) = E g_i⁻¹(w + s e),  e ~ N(0,1), by nine nodes,
//
// and T_i is the mean of three functions of p: p itself, an affine correction a + b p, and a rising
// correction that is linear between knots. The affine correction is by least squares. Its weights under KL
// are 1/p, because KL is to second order a square over what is predicted. The rising correction is the
// isotonic regression of x on p: every block of equal values makes a knot in its middle, drawn towards p by
// stepCells pseudo-cells. Beyond the outer knots it goes on to the row's least and largest value, in lines of
// slope 1 at most. Both corrections are learnt from what the model says of each visible cell without it
// (leave-one-out), so no cell corrects its own prediction. Every operation is non-decreasing in w; therefore
// T_i is non-decreasing at every pair of representable numbers.
//
// A value that comes more than once has, for quantiles and probabilities, the mass of all places between the
// scores of its first and its last rank. For the mean the line between values is better.
//
// A [Scaler] makes g_i and its inverse of a row, a [Learner] makes the corrections, and a [Table] evaluates a
// curve many times.
package curve

import (
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/order"
)

// Curve is T_i, for a cell about which the model is as sure as it is on average of the row. X and Y rise; a
// constant row has one of each. MassY rises and MassX does not fall; they are Y and X where no value comes
// more than once. A Curve is made by [Scaler.Scale] and [Learner.Learn], and not changed by its methods.
type Curve struct {
	Y, X         []float64              // g_i at the row's distinct values, both rising
	MassY, MassX []float64              // g_i⁻¹ with mass: MassX stays where a value has mass
	Levels       [len(LevelsAt)]float64 // deviations from the mean at LevelsAt
	Spread       float64                // s of At
	// what T_i is not let fall below; 0 is no floor: values may be negative
	Floor float64
	// over the visible cells, by the weights of the affine correction: x, and leave-one-out p
	MeanX, MeanP float64
	Slope        float64 // b
	// the monotone correction's knots, the first rising, the second non-decreasing
	StepAt, StepTo []float64
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

// Correct takes p to T.
func (c *Curve) Correct(p float64) float64 {
	lo, hi := c.X[0], c.X[len(c.X)-1]
	affine := min(max(c.MeanX+float64(c.Slope*(p-c.MeanP)), lo), hi)
	steps := p
	if last := len(c.StepAt) - 1; last >= 0 {
		switch {
		case !(p > c.StepAt[0]):
			steps = c.StepTo[0]
		case p >= c.StepAt[last]:
			steps = c.StepTo[last]
		default:
			k, _ := slices.BinarySearch(c.StepAt, p)
			for c.StepAt[k] <= p { // the last of equal ones
				k++
			}
			steps = between(p, c.StepAt[k-1], c.StepAt[k], c.StepTo[k-1], c.StepTo[k])
		}
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

// Forward is g_i, linear between the row's values and flat beyond.
func (c *Curve) Forward(x float64) float64 { return along(x, c.X, c.Y) }

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
	return c.Correct(min(max(sum, c.X[0]), c.X[len(c.X)-1]))
}

// Invert returns a w with T(w) = v, or the least representable one where T
// reaches v, and otherwise why there is none.
func (c *Curve) Invert(v float64) (w float64, problem string) {
	fail := func(problem string) (float64, string) { return 0, problem }
	if v != v {
		return fail("the value to invert must be a number")
	}
	last := len(c.Y) - 1
	far := float64(5 * c.Spread)
	lo, hi := c.Y[0]-far-1, c.Y[last]+far+1 // T is flat beyond
	if c.At(lo) == c.At(hi) {
		return fail("the map is flat")
	}
	if v < c.At(lo) || v > c.At(hi) {
		return fail("the map takes values from " + strconv.FormatFloat(c.At(lo), 'g', -1, 64) + " to " +
			strconv.FormatFloat(c.At(hi), 'g', -1, 64))
	}
	if c.At(lo) >= v {
		return lo, ""
	}
	for range 2000 { // T(lo) < v <= T(hi)
		mid := float64(lo*0.5) + float64(hi*0.5)
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

// Scaler makes the scale of a row.
type Scaler struct {
	sorted []float64
	count  []int // how often each distinct value comes
}

// UnitOf returns a power of four that brings v into [1,4), 1 for 0: rows are scaled
// by it, which changes no digit, so that no magnitude overflows and the unit of x
// does not matter.
func UnitOf(v float64) float64 {
	if v == 0 {
		return 1
	}
	_, e := math.Frexp(v)
	return math.Ldexp(1, (e-1)&^1)
}

// Scale fills c with the scale of a row, of which NaN cells are hidden, and y with
// the row on it, hidden cells at 0.
func (s *Scaler) Scale(c *Curve, y, x []float64, signed bool) {
	top := s.distinct(c, x)
	n := float64(len(s.sorted))
	unit := UnitOf(top)
	k := len(c.X)
	root, score := make([]float64, k), make([]float64, k)
	below := 0.0
	for h, v := range c.X {
		root[h] = v / unit
		if !signed {
			root[h] = math.Sqrt(root[h])
		}
		m := float64(s.count[h])
		score[h] = elem.NormalQuantile((below + float64(m/2)) / n)
		below += m
	}
	s.standardise(root, n)
	scoreMean, scoreDev := s.standardise(score, n)
	for h := range root {
		root[h] += score[h]
	}
	plain := slices.Clone(root)
	mean, dev := s.standardise(root, n)
	// Where the lowest and the highest of equal values would lie.
	c.MassY, c.MassX = make([]float64, 0, k), make([]float64, 0, k)
	put := func(y, x float64) {
		if last := len(c.MassY) - 1; last < 0 || y > c.MassY[last] {
			c.MassY, c.MassX = append(c.MassY, y), append(c.MassX, x)
		}
	}
	below = 0
	for h, v := range c.X {
		m := float64(s.count[h])
		if m == 1 {
			put(root[h], v)
		} else {
			for _, edge := range [2]float64{below + 0.5, below + m - 0.5} {
				e := (elem.NormalQuantile(edge/n) - scoreMean) / scoreDev
				put((plain[h]-score[h]+e-mean)/dev, v)
			}
		}
		below += m
	}
	if len(c.MassY) == k {
		c.MassY, c.MassX = nil, nil // no value comes twice: they are y and x
	}
	c.tell(root)
	if c.MassY == nil {
		c.MassY, c.MassX = c.Y, c.X
	}
	for j, v := range x {
		y[j] = 0
		if v == v {
			y[j] = c.Forward(v)
		}
	}
}

// distinct fills X of c with the distinct values of x, rising, and count. It returns the largest magnitude.
func (s *Scaler) distinct(c *Curve, x []float64) (top float64) {
	s.sorted = s.sorted[:0]
	for _, v := range x {
		if v == v {
			s.sorted = append(s.sorted, v+0) // no negative zero
			top = max(top, math.Abs(v))
		}
	}
	slices.Sort(s.sorted)
	c.X, s.count = make([]float64, 0, 16), s.count[:0]
	for _, v := range s.sorted {
		if k := len(c.X); k > 0 && c.X[k-1] == v {
			s.count[k-1]++
			continue
		}
		c.X, s.count = append(c.X, v), append(s.count, 1)
	}
	c.X = slices.Clip(c.X)
	return top
}

// tell makes Y of y, the scale at X, in its room: values so close that the scale does not tell them apart
// become one.
func (c *Curve) tell(y []float64) {
	c.Y = y[:0]
	for h, v := range y {
		if kept := len(c.Y); kept == 0 || v > c.Y[kept-1] {
			c.X[kept] = c.X[h]
			c.Y = append(c.Y, v)
		}
	}
	c.X = c.X[:len(c.Y)]
}

// standardise brings v, where value h comes count[h] times, to mean 0 and deviation 1. It returns the mean
// and the deviation that v had; a deviation of 0 counts as 1.
func (s *Scaler) standardise(v []float64, n float64) (mean, dev float64) {
	sq := 0.0
	for h, t := range v {
		mean += float64(float64(s.count[h])*t) / n
	}
	for h, t := range v {
		v[h] = t - mean
		sq += float64(float64(s.count[h])*float64(v[h]*v[h])) / n
	}
	dev = 1
	if sq > 0 {
		dev = math.Sqrt(sq)
	}
	for h := range v {
		v[h] /= dev
	}
	return mean, dev
}

// LevelsAt are the normal quantiles of 1/200, 1/40, 1/20, 1/10, 7/40, 1/4, 3/8, 1/2 and so on. A row keeps,
// at the same probabilities, the quantiles of its leave-one-out residuals over their deviation.
var LevelsAt = [...]float64{-2.5758293035489004, -1.9599639845400545, -1.6448536269514722,
	-1.2815515655446004, -0.9345892910734801, -0.6744897501960817, -0.31863936396437514, 0,
	0.31863936396437514, 0.6744897501960817, 0.9345892910734801, 1.2815515655446004, 1.6448536269514722,
	1.9599639845400545, 2.5758293035489004}

// Bend takes a quantile of the normal distribution to the same quantile of the row's residuals. It is linear
// between the levels and of slope 1 beyond them.
func (c *Curve) Bend(z float64) float64 {
	last := len(LevelsAt) - 1
	if z <= LevelsAt[0] {
		return c.Levels[0] + (z - LevelsAt[0])
	}
	if z >= LevelsAt[last] {
		return c.Levels[last] + (z - LevelsAt[last])
	}
	k := 1
	for LevelsAt[k] <= z {
		k++
	}
	return between(z, LevelsAt[k-1], LevelsAt[k], c.Levels[k-1], c.Levels[k])
}

// Unbend is the inverse of Bend.
func (c *Curve) Unbend(r float64) float64 {
	last := len(LevelsAt) - 1
	if r <= c.Levels[0] {
		return LevelsAt[0] + (r - c.Levels[0])
	}
	if r >= c.Levels[last] {
		return LevelsAt[last] + (r - c.Levels[last])
	}
	k := 1
	for c.Levels[k] <= r {
		k++
	}
	return between(r, c.Levels[k-1], c.Levels[k], LevelsAt[k-1], LevelsAt[k])
}

// Places returns the lowest and the highest w that g_i⁻¹ takes to x.
func (c *Curve) Places(x float64) (lo, hi float64) {
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

// Learner makes the corrections of a row from leave-one-out predictions.
type Learner struct {
	Z       []float64 // residuals, parts of each
	P, X    []float64
	weights []float64
	order   []int32 // places in P, or in Z, by what stands there, equal ones as they come
	sorter  order.Sorter
	blocks  []block
	phi     [len(LevelsAt)]float64 // Φ of LevelsAt, or zeros before the first quantiles
}

// sort fills order by v.
func (l *Learner) sort(v []float64) {
	l.sorter.Resize(len(v))
	l.order = slices.Grow(l.order[:0], len(v))[:len(v)]
	l.sorter.Sort(l.order, v)
}

// block is a block of the isotonic regression: count cells of order, from the from-th on, and the mean to of
// their x.
type block struct {
	from      int
	count, to float64
}

// Sums are what Pool takes of a row: weighted sums of products and squares of x and leave-one-out p, in the
// unit of the row.
type Sums struct {
	xp, pp, xx  float64 // Σ w dx dp, Σ w dp², and the mean of w dx², dx and dp being from the means
	cells, unit float64 // the number of visible cells; the unit
}

// Residual adds what a visible cell of the row, x and y = g(x), says of the levels, given the mean and
// the deviation that the model has of it without it. A value that has mass is
// spread over it.
func (l *Learner) Residual(c *Curve, x, y, mean, dev float64) {
	if &c.MassY[0] == &c.Y[0] { // no value has mass
		l.Z = append(l.Z, (y-mean)/dev)
		return
	}
	lo, hi := c.Places(x)
	lo, hi = (lo-mean)/dev, (hi-mean)/dev
	if lo == hi {
		for range c.Parts() {
			l.Z = append(l.Z, lo)
		}
		return
	}
	below, upTo := Phi(lo), Phi(hi)
	if x == c.MassX[0] {
		below = 0
	}
	if x == c.MassX[len(c.MassX)-1] {
		upTo = 1
	}
	for k := range residualParts {
		p := below + float64((upTo-below)*((float64(k)+0.5)/residualParts))
		l.Z = append(l.Z, elem.NormalQuantile(min(max(p, 1e-12), 1-1e-12)))
	}
}

// Parts is into how many a residual counts: one where no value has mass.
func (c *Curve) Parts() int {
	if len(c.MassY) == len(c.Y) {
		return 1
	}
	return residualParts
}

const (
	residualParts = 4
	levelCells    = 10  // pseudo-cells that hold the median of a row's residuals at the pooled one
	slopeCells    = 20  // pseudo-cells that hold the slope of a row at the pooled one
	stepCells     = 2   // pseudo-cells that hold a knot of the rising correction at p
	leastLevel    = 0.2 // of the mean, below which the weight 1/p does not grow
)

// Quantiles fills the levels of c with the quantiles of Z.
func (l *Learner) Quantiles(c *Curve) {
	z, parts := l.Z, float64(c.Parts())
	l.sort(z)
	n := float64(float64(len(z)) / parts)
	middle := float64(parts/2) + 0.5
	if l.phi[0] == 0 {
		for k, at := range LevelsAt {
			l.phi[k] = Phi(at)
		}
	}
	for k, p := range l.phi {
		place := float64(p*(n+1)*parts) - middle
		place = min(max(place, 0), float64(len(z)-1))
		h := int(place)
		low := z[l.order[h]]
		c.Levels[k] = low
		if h+1 < len(z) {
			c.Levels[k] += float64((z[l.order[h+1]] - low) * (place - float64(h)))
		}
	}
}

// Learn makes the corrections from X, the visible values of a row, and P, the leave-one-out p of each.
// relative tells that errors count over what is predicted, as under KL, whose values are not negative. The
// slope and the levels are left to Pool.
func (l *Learner) Learn(c *Curve, unit float64, relative bool) Sums {
	sums := l.affine(c, unit, relative)
	l.isotonic()
	l.knots(c)
	return sums
}

// affine makes the means of the affine correction, and returns the sums that its slope follows from.
func (l *Learner) affine(c *Curve, unit float64, relative bool) Sums {
	n, mean, total := float64(len(l.X)), 0.0, 0.0
	for _, x := range l.X {
		mean += x / unit / n // so that a mean of the least numbers is not 0
	}
	l.weights = l.weights[:0]
	for _, p := range l.P {
		w := 1.0
		if relative {
			w = mean / max(p/unit, leastLevel*mean)
		}
		l.weights = append(l.weights, w)
		total += w / n
	}
	c.MeanX, c.MeanP = 0, 0
	for j, x := range l.X {
		l.weights[j] /= total
		c.MeanX += float64(x / n * l.weights[j])
		c.MeanP += float64(l.P[j] / n * l.weights[j])
	}
	sums := Sums{cells: n, unit: unit}
	for j, x := range l.X {
		dx, dp := (x-c.MeanX)/unit, (l.P[j]-c.MeanP)/unit
		sums.xp += float64(l.weights[j] * float64(dx*dp))
		sums.pp += float64(l.weights[j] * float64(dp*dp))
		sums.xx += float64(l.weights[j]*float64(dx*dx)) / n
	}
	return sums
}

// isotonic fills blocks with the isotonic regression of x on p: it pools adjacent violators, equal p
// together.
func (l *Learner) isotonic() {
	l.sort(l.P)
	l.blocks = l.blocks[:0]
	for at := 0; at < len(l.order); {
		end, sum := at, 0.0
		for p := l.P[l.order[at]]; end < len(l.order) && l.P[l.order[end]] == p; end++ {
			sum += l.X[l.order[end]]
		}
		b := block{at, float64(end - at), sum / float64(end-at)}
		for k := len(l.blocks) - 1; k >= 0 && l.blocks[k].to >= b.to; k-- {
			before := l.blocks[k]
			b.to += float64((before.to - b.to) * (before.count / (b.count + before.count)))
			b.count += before.count
			b.from = before.from
			l.blocks = l.blocks[:k]
		}
		l.blocks = append(l.blocks, b)
		at = end
	}
}

// knots makes the knots of the rising correction: one in the middle of each block, and the lines to the row's
// least and largest value.
func (l *Learner) knots(c *Curve) {
	c.StepAt, c.StepTo = make([]float64, 0, len(l.blocks)+2), make([]float64, 0, len(l.blocks)+2)
	lo, hi := c.X[0], c.X[len(c.X)-1]
	put := func(at, to float64) {
		to = min(max(to, lo), hi)
		if last := len(c.StepAt) - 1; last < 0 {
			c.StepAt, c.StepTo = append(c.StepAt, at), append(c.StepTo, to)
		} else if at > c.StepAt[last] {
			c.StepAt, c.StepTo = append(c.StepAt, at), append(c.StepTo, max(to, c.StepTo[last]))
		}
	}
	for k, b := range l.blocks {
		end := len(l.order)
		if k+1 < len(l.blocks) {
			end = l.blocks[k+1].from
		}
		middle := 0.0
		for _, j := range l.order[b.from:end] {
			middle += l.P[j] / float64(end-b.from)
		}
		drawn := b.to + float64((middle-b.to)*(stepCells/(b.count+stepCells)))
		if k == 0 && middle > lo {
			put(lo, drawn+(lo-middle))
		}
		put(middle, drawn)
	}
	if last := len(c.StepAt) - 1; c.StepAt[last] < hi {
		put(hi, c.StepTo[last]+(hi-c.StepAt[last]))
	}
}

// Pool ends the learning of all curves: it draws the slope and the levels of each row to those of all rows.
func Pool(curves []*Curve, rows []Sums) {
	cov, variance, cells := 0.0, 0.0, 0.0
	for _, s := range rows {
		if s.xx > 0 {
			cov += s.xp / s.xx
			variance += s.pp / s.xx
		}
		cells += s.cells
	}
	pooled := 1.0
	if variance > 0 {
		pooled = max(cov/variance, 0)
	}
	var levels [len(LevelsAt)]float64 // means over the rows
	for k, c := range curves {
		for h, l := range c.Levels {
			levels[h] += float64(l*rows[k].cells) / cells
		}
	}
	for k, c := range curves {
		s := rows[k]
		for h, l := range levels {
			p := Phi(LevelsAt[h])
			hold := levelCells / (4 * float64(p*(1-p))) // as a quantile's variance grows outwards
			c.Levels[h] = (float64(s.cells*c.Levels[h]) + float64(hold*l)) / (s.cells + hold)
			if h > 0 {
				c.Levels[h] = max(c.Levels[h], c.Levels[h-1]+1e-6)
			}
		}
		mean := c.MeanP / s.unit
		c.Slope = pooled
		if s.pp > 1e-9*max(float64(mean*mean), 1e-12) {
			c.Slope = max((float64(s.xp/s.pp*s.cells)+float64(slopeCells*pooled))/(s.cells+slopeCells), 0)
		}
	}
}
