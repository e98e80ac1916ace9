package quantmf

// This file holds the monotone scales of a BQMF: g_i takes row i of x to the scale
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
// and T_i the mean of p, of its affine correction a + b p and of a monotone step
// function of it, linear between steps. Where a value comes more than once, quantiles
// and probabilities take it to have the mass of all places between the scores of its
// first and its last rank; for the mean the line between values is better. Both corrections are learnt from what
// the model says of each visible cell without it (leave-one-out), so that no
// cell corrects its own prediction. Every operation is non-decreasing in w, so T_i
// is at every pair of representable numbers.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
)

// Curve is T_i of a [BQMF], an increasing function from the scale of UV to the
// units of x, for a cell about which the model is as sure as it is on average of
// the row. It is constant for a constant row. It is not changed by its methods.
type Curve struct {
	y, x           []float64              // g_i at the row's distinct values, both rising
	at, to         []float64              // g_i⁻¹: at rises, to does not fall and stays where a value has mass
	levels         [len(levelsAt)]float64 // deviations from the mean at levelsAt
	spread         float64                // s of At
	floor          float64                // what T_i is not let fall below
	meanX, meanP   float64                // over the visible cells: x, and leave-one-out p
	slope          float64                // b
	stepAt, stepTo []float64              // the monotone correction, both non-decreasing
}

// hermite are nodes and weights of E f(e), e ~ N(0,1), exact up to degree 17.
var (
	hermiteNodes   = [9]float64{-4.512745863399783, -3.20542900285647, -2.07684797867783, -1.0232556637891326, 0, 1.0232556637891326, 2.07684797867783, 3.20542900285647, 4.512745863399783}
	hermiteWeights = [9]float64{2.2345844007746588e-05, 0.0027891413212317692, 0.04991640676521788, 0.24409750289493923, 0.4063492063492063, 0.24409750289493923, 0.04991640676521788, 0.0027891413212317692, 2.2345844007746588e-05}
)

// table evaluates a curve many times: it finds the place of a w in the table of
// g_i by the bucket that w falls into.
type table struct {
	c     *Curve
	y, x  []float64
	low   float64
	scale float64
	start [tableSize + 1]int32 // the last knot of the buckets before
}

const tableSize = 256

// load takes g_i⁻¹ as y and x have it, or as at and to.
func (t *table) load(c *Curve, mass bool) {
	t.c, t.y, t.x = c, c.y, c.x
	if mass {
		t.y, t.x = c.at, c.to
	}
	k := len(t.y)
	t.low, t.scale = t.y[0], 0
	if k > 1 {
		t.scale = tableSize / (t.y[k-1] - t.y[0])
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
func (t *table) bucket(w float64) int {
	b := (w - t.low) * t.scale
	if !(b > 0) {
		return 0
	}
	if b >= tableSize {
		return tableSize
	}
	return int(b)
}

// back is g_i⁻¹.
func (t *table) back(w float64) float64 {
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

// mean is p(w) for the deviation s.
func (t *table) mean(w, s float64) float64 {
	if len(t.c.x) == 1 {
		return t.c.x[0]
	}
	sum := 0.0
	for k, e := range hermiteNodes {
		sum += float64(hermiteWeights[k] * t.back(w+float64(s*e)))
	}
	return min(max(sum, t.c.x[0]), t.c.x[len(t.c.x)-1])
}

// correct takes p to T.
func (c *Curve) correct(p float64) float64 {
	lo, hi := c.x[0], c.x[len(c.x)-1]
	affine := min(max(c.meanX+float64(c.slope*(p-c.meanP)), lo), hi)
	steps := p
	if last := len(c.stepAt) - 1; last >= 0 {
		switch {
		case !(p > c.stepAt[0]):
			steps = c.stepTo[0]
		case p >= c.stepAt[last]:
			steps = c.stepTo[last]
		default:
			k, _ := slices.BinarySearch(c.stepAt, p)
			for c.stepAt[k] <= p { // the last of equal ones
				k++
			}
			steps = between(p, c.stepAt[k-1], c.stepAt[k], c.stepTo[k-1], c.stepTo[k])
		}
	}
	return max(p/3+affine/3+steps/3, c.floor)
}

// forward is g_i, linear between the row's values and flat beyond.
func (c *Curve) forward(x float64) float64 {
	last := len(c.x) - 1
	if !(x > c.x[0]) {
		return c.y[0]
	}
	if x >= c.x[last] {
		return c.y[last]
	}
	k, exact := slices.BinarySearch(c.x, x)
	if exact {
		return c.y[k]
	}
	return between(x, c.x[k-1], c.x[k], c.y[k-1], c.y[k])
}

// At returns T(w), non-decreasing in w; NaN for NaN, and the limits at ±Inf. Cost:
// ten searches of the row's distinct values.
func (c *Curve) At(w float64) float64 {
	if w != w {
		return w
	}
	if len(c.x) == 1 {
		return max(c.x[0], c.floor)
	}
	sum := 0.0
	for k, e := range hermiteNodes {
		sum += float64(hermiteWeights[k] * c.inverse(w+float64(c.spread*e)))
	}
	return c.correct(min(max(sum, c.x[0]), c.x[len(c.x)-1]))
}

// inverse is g_i⁻¹ without a table.
func (c *Curve) inverse(w float64) float64 {
	last := len(c.y) - 1
	if !(w > c.y[0]) {
		return c.x[0]
	}
	if w >= c.y[last] {
		return c.x[last]
	}
	k, exact := slices.BinarySearch(c.y, w)
	if exact {
		return c.x[k]
	}
	return between(w, c.y[k-1], c.y[k], c.x[k-1], c.x[k])
}

// Invert returns a w with T(w) = v, or the least representable one where T
// reaches v. A v outside the values that T takes, or a flat T, is a
// [*DataError] with Row = Col = -1.
func (c *Curve) Invert(v float64) (float64, error) {
	fail := func(problem string) (float64, error) {
		return 0, &DataError{Row: -1, Col: -1, Value: v, Problem: problem}
	}
	if v != v {
		return fail("the value to invert must be a number")
	}
	last := len(c.y) - 1
	far := float64(5 * c.spread)
	lo, hi := c.y[0]-far-1, c.y[last]+far+1 // T is flat beyond
	if c.At(lo) == c.At(hi) {
		return fail("the map is flat")
	}
	if v < c.At(lo) || v > c.At(hi) {
		return fail("the map takes values from " + ftoa(c.At(lo)) + " to " + ftoa(c.At(hi)))
	}
	if c.At(lo) >= v {
		return lo, nil
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
		return lo, nil
	}
	return hi, nil
}

// scaler makes the scale of a row.
type scaler struct {
	sorted []float64
	count  []int
	y      []float64
}

// unitOf returns a power of four that brings v into [1,4), 1 for 0: rows are scaled
// by it, which changes no digit, so that no magnitude overflows and the unit of x
// does not matter.
func unitOf(v float64) float64 {
	if v == 0 {
		return 1
	}
	_, e := math.Frexp(v)
	return math.Ldexp(1, (e-1)&^1)
}

// scale fills c with the scale of a row, of which NaN cells are hidden, and y with
// the row on it, hidden cells at 0.
func (s *scaler) scale(c *Curve, y, x []float64, signed bool) {
	s.sorted = s.sorted[:0]
	top := 0.0
	for _, v := range x {
		if v == v {
			s.sorted = append(s.sorted, v+0) // no negative zero
			top = max(top, math.Abs(v))
		}
	}
	slices.Sort(s.sorted)
	n := float64(len(s.sorted))
	unit := unitOf(top)
	c.x, s.count = make([]float64, 0, 16), s.count[:0]
	for _, v := range s.sorted {
		if k := len(c.x); k > 0 && c.x[k-1] == v {
			s.count[k-1]++
			continue
		}
		c.x, s.count = append(c.x, v), append(s.count, 1)
	}
	c.x = slices.Clip(c.x)
	k := len(c.x)
	root, score := make([]float64, k), make([]float64, k)
	below := 0.0
	for h, v := range c.x {
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
	c.at, c.to = make([]float64, 0, k), make([]float64, 0, k)
	put := func(y, x float64) {
		if last := len(c.at) - 1; last < 0 || y > c.at[last] {
			c.at, c.to = append(c.at, y), append(c.to, x)
		}
	}
	below = 0
	for h, v := range c.x {
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
	if len(c.at) == k {
		c.at, c.to = nil, nil // no value comes twice: they are y and x
	}
	// Values so close that the scale does not tell them apart become one.
	c.y = root[:0]
	kept := 0
	for h, v := range root {
		if h > 0 && !(v > c.y[kept-1]) {
			continue
		}
		c.y = append(c.y, v)
		c.x[kept] = c.x[h]
		kept++
	}
	c.x = c.x[:kept]
	if c.at == nil {
		c.at, c.to = c.y, c.x
	}
	for j, v := range x {
		y[j] = 0
		if v == v {
			y[j] = c.forward(v)
		}
	}
}

// standardise brings v, each of its count, to mean 0 and deviation 1, and returns what
// those were; a deviation of 0 counts as 1.
func (s *scaler) standardise(v []float64, n float64) (mean, dev float64) {
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

// levelsAt are the normal quantiles at which a row keeps its own, of leave-one-out
// residuals over their deviation: those of 1/200, 1/40, 1/20, 1/10, 7/40, 1/4, 3/8, 1/2 and so on.
var levelsAt = [...]float64{-2.5758293035489004, -1.9599639845400545, -1.6448536269514722, -1.2815515655446004, -0.9345892910734801, -0.6744897501960817, -0.31863936396437514, 0,
	0.31863936396437514, 0.6744897501960817, 0.9345892910734801, 1.2815515655446004, 1.6448536269514722, 1.9599639845400545, 2.5758293035489004}

// bend takes a quantile of the normal distribution to that of the row's residuals: it
// is linear between the levels, of slope 1 beyond them.
func (c *Curve) bend(z float64) float64 {
	last := len(levelsAt) - 1
	if z <= levelsAt[0] {
		return c.levels[0] + (z - levelsAt[0])
	}
	if z >= levelsAt[last] {
		return c.levels[last] + (z - levelsAt[last])
	}
	k := 1
	for levelsAt[k] <= z {
		k++
	}
	return between(z, levelsAt[k-1], levelsAt[k], c.levels[k-1], c.levels[k])
}

// unbend is the inverse of bend.
func (c *Curve) unbend(r float64) float64 {
	last := len(levelsAt) - 1
	if r <= c.levels[0] {
		return levelsAt[0] + (r - c.levels[0])
	}
	if r >= c.levels[last] {
		return levelsAt[last] + (r - c.levels[last])
	}
	k := 1
	for c.levels[k] <= r {
		k++
	}
	return between(r, c.levels[k-1], c.levels[k], levelsAt[k-1], levelsAt[k])
}

// places returns the lowest and the highest w that g_i⁻¹ takes to x.
func (c *Curve) places(x float64) (lo, hi float64) {
	last := len(c.to) - 1
	k, exact := slices.BinarySearch(c.to, x)
	switch {
	case exact:
		lo, hi = c.at[k], c.at[k]
		if k < last && c.to[k+1] == x {
			hi = c.at[k+1]
		}
		return lo, hi
	case k == 0:
		return math.Inf(-1), math.Inf(-1)
	case k > last:
		return math.Inf(1), math.Inf(1)
	}
	lo = between(x, c.to[k-1], c.to[k], c.at[k-1], c.at[k])
	return lo, lo
}

// phi returns the standard normal distribution function, within 1e-15, by the series
// φ(z)(z + z³/3 + z⁵/15 + ...).
func phi(z float64) float64 {
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

// learner makes the corrections of a row from leave-one-out predictions.
type learner struct {
	z        []float64 // residuals, parts of each
	p, x     []float64
	order    []int
	cov, vr  float64
	spreadX  float64
	mass, to []float64
	from     []int
}

// residual adds what a visible cell of the row says of the levels, given the mean and
// the deviation that the model has of it without it. A value that has mass is
// spread over it.
func (l *learner) residual(c *Curve, x, mean, dev float64) {
	lo, hi := c.places(x)
	lo, hi = (lo-mean)/dev, (hi-mean)/dev
	if lo == hi {
		for range c.parts() {
			l.z = append(l.z, lo)
		}
		return
	}
	below, upTo := phi(lo), phi(hi)
	if x == c.to[0] {
		below = 0
	}
	if x == c.to[len(c.to)-1] {
		upTo = 1
	}
	for k := range residualParts {
		p := below + float64((upTo-below)*((float64(k)+0.5)/residualParts))
		l.z = append(l.z, elem.NormalQuantile(min(max(p, 1e-12), 1-1e-12)))
	}
}

// parts is into how many a residual counts: one where no value has mass.
func (c *Curve) parts() int {
	if len(c.at) == len(c.y) {
		return 1
	}
	return residualParts
}

const (
	residualParts = 4
	// Leave-one-out residuals are narrower than those of cells that no part of the fit has
	// seen, by 3 % in the middle of twelve tables.
	residualWiden = 1.03
	levelCells    = 10 // pseudo-cells that hold the median of a row's residuals at the pooled one
)

// quantiles fills to with the quantiles of z, which it sorts, at levelsAt; z has so many
// parts of each residual.
func quantiles(to *[len(levelsAt)]float64, z []float64, parts float64) {
	slices.Sort(z)
	n := float64(float64(len(z)) / parts)
	middle := float64(parts/2) + 0.5
	for k, at := range levelsAt {
		place := float64(phi(at)*(n+1)*parts) - middle
		place = min(max(place, 0), float64(len(z)-1))
		h := int(place)
		to[k] = z[h]
		if h+1 < len(z) {
			to[k] += float64((z[h+1] - z[h]) * (place - float64(h)))
		}
	}
}

// learn takes the visible x of a row and the leave-one-out p of each.
func (l *learner) learn(c *Curve, unit float64) {
	n := float64(len(l.x))
	c.meanX, c.meanP = 0, 0
	for j, x := range l.x {
		c.meanX += x / n
		c.meanP += l.p[j] / n
	}
	l.cov, l.vr, l.spreadX = 0, 0, 0
	for j, x := range l.x {
		dx, dp := (x-c.meanX)/unit, (l.p[j]-c.meanP)/unit
		l.cov += float64(dx * dp)
		l.vr += float64(dp * dp)
		l.spreadX += float64(dx*dx) / n
	}
	// The step function: pool adjacent violators, equal p together.
	l.order = l.order[:0]
	for j := range l.x {
		l.order = append(l.order, j)
	}
	slices.SortStableFunc(l.order, func(a, b int) int {
		switch {
		case l.p[a] < l.p[b]:
			return -1
		case l.p[a] > l.p[b]:
			return 1
		}
		return 0
	})
	l.mass, l.to, l.from = l.mass[:0], l.to[:0], l.from[:0]
	for at := 0; at < len(l.order); {
		end, sum := at, 0.0
		for ; end < len(l.order) && l.p[l.order[end]] == l.p[l.order[at]]; end++ {
			sum += l.x[l.order[end]]
		}
		mass, mean := float64(end-at), sum/float64(end-at)
		from := at
		for k := len(l.to) - 1; k >= 0 && l.to[k] >= mean; k-- {
			mean += float64((l.to[k] - mean) * (l.mass[k] / (mass + l.mass[k])))
			mass += l.mass[k]
			from = l.from[k]
			l.to, l.mass, l.from = l.to[:k], l.mass[:k], l.from[:k]
		}
		l.to, l.mass, l.from = append(l.to, mean), append(l.mass, mass), append(l.from, from)
		at = end
	}
	c.stepAt, c.stepTo = make([]float64, 0, 2*len(l.to)), make([]float64, 0, 2*len(l.to))
	lo, hi := c.x[0], c.x[len(c.x)-1]
	for k, v := range l.to {
		end := len(l.order)
		if k+1 < len(l.from) {
			end = l.from[k+1]
		}
		v = min(max(v, lo), hi)
		first, last := l.p[l.order[l.from[k]]], l.p[l.order[end-1]]
		c.stepAt, c.stepTo = append(c.stepAt, first), append(c.stepTo, v)
		if last > first {
			c.stepAt, c.stepTo = append(c.stepAt, last), append(c.stepTo, v)
		}
	}
}
