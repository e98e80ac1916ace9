package bqmf

// This file holds the making of T_i (curve.go) from leave-one-out predictions.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/order"
)

// mapLearner makes the corrections of a row from leave-one-out predictions.
type mapLearner struct {
	parts   int       // into how many a residual counts
	z       []float64 // residuals, parts of each
	p, x    []float64
	cells   []float64 // the weight of each cell
	weights []float64
	order   []int32 // places in p, or in z, by what stands there, equal ones as they come
	sorter  order.Sorter
	blocks  []block
	phi     [len(LevelsAt)]float64 // Φ of LevelsAt, or zeros before the first quantiles
}

// sort fills order by v.
func (l *mapLearner) sort(v []float64) {
	l.sorter.Resize(nil, len(v))
	l.order = slices.Grow(l.order[:0], len(v))[:len(v)]
	l.sorter.Sort(l.order, v)
}

// block is a block of the isotonic regression: count cells of order, from the from-th on, and the mean to of
// their x.
type block struct {
	from      int
	count, to float64
}

// rowSums is what poolMaps takes of a row: weighted sums of products and squares of x and leave-one-out p, in
// the unit of the row.
type rowSums struct {
	xp, pp, xx  float64 // Σ w dx dp, Σ w dp², and the mean of w dx², dx and dp being from the means
	cells, unit float64 // the number of observed cells, by their weights; the unit
}

// addResidual adds what a observed cell of the row, x and y = g(x), says of the levels, given the mean and
// the deviation that the model has of it without it. A value that has mass is
// spread over it.
func (l *mapLearner) addResidual(c *Curve, x, y, mean, dev float64) {
	if !c.mass() {
		for range l.parts {
			l.z = append(l.z, (y-mean)/dev)
		}
		return
	}
	// the scale without a cell at an end may end before it
	x = min(max(x, c.MassX[0]), c.MassX[len(c.MassX)-1])
	lo, hi := c.places(x)
	lo, hi = (lo-mean)/dev, (hi-mean)/dev
	if lo == hi {
		for range l.parts {
			l.z = append(l.z, lo)
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
	for k := range l.parts {
		p := below + float64((upTo-below)*((float64(k)+0.5)/float64(l.parts)))
		l.z = append(l.z, elem.NormalQuantile(min(max(p, 1e-12), 1-1e-12)))
	}
}

// parts is into how many a residual counts: one where no value has mass.
func (c *Curve) parts() int {
	if c.mass() {
		return residualParts
	}
	return 1
}

// mass tells whether some value has mass.
func (c *Curve) mass() bool { return &c.MassY[0] != &c.Y[0] }

const (
	residualParts = 4
	levelCells    = 10  // pseudo-cells that hold the median of a row's residuals at the pooled one
	slopeCells    = 20  // pseudo-cells that hold the slope of a row at the pooled one
	stepCells     = 2   // pseudo-cells that hold a knot of the rising correction at p
	leastLevel    = 0.2 // of the mean, below which the weight 1/p does not grow
)

// quantiles fills the levels of c with the quantiles of z.
func (l *mapLearner) quantiles(c *Curve) {
	z, parts, least, n := l.z, float64(l.parts), 1.0, 0.0
	l.sort(z)
	for _, w := range l.cells {
		least = min(least, w)
		n += w
	}
	middle := float64(parts/2) + float64(least/2)
	// z at order[h] stands for the places from next - least less than its weight to end, and over least more
	// places quantiles go to the next z in a straight line
	h, end := 0, l.weightAt(0)-least
	if l.phi[0] == 0 {
		for k, at := range LevelsAt {
			l.phi[k] = Phi(at)
		}
	}
	for k, p := range l.phi {
		place := float64(p*(n+1)*parts) - middle
		place = min(max(place, 0), float64(parts*n)-least)
		for ; h+1 < len(z) && place >= end+least; h++ {
			end += l.weightAt(h + 1)
		}
		low := z[l.order[h]]
		c.Levels[k] = low
		if h+1 < len(z) {
			c.Levels[k] += float64((z[l.order[h+1]] - low) * (max(place-end, 0) / least))
		}
	}
}

// weightAt is the weight of z at order[h].
func (l *mapLearner) weightAt(h int) float64 { return l.cells[int(l.order[h])/l.parts] }

// fitMap makes the corrections from x, the observed values of a row, and p, the leave-one-out p of each.
// relative tells that errors count over what is predicted, as under KL, whose values are not negative. The
// slope and the levels are left to poolMaps.
func (l *mapLearner) fitMap(c *Curve, unit float64, relative bool) rowSums {
	sums := l.affine(c, unit, relative)
	l.isotonic()
	l.knots(c)
	return sums
}

// affine makes the means of the affine correction, and returns the sums that its slope follows from.
func (l *mapLearner) affine(c *Curve, unit float64, relative bool) rowSums {
	n, mean, total := 0.0, 0.0, 0.0
	for _, w := range l.cells {
		n += w
	}
	for j, x := range l.x {
		mean += float64(l.cells[j] * (x / unit / n)) // so that a mean of the least numbers is not 0
	}
	l.weights = l.weights[:0]
	for j, p := range l.p {
		w := l.cells[j]
		if relative {
			w *= mean / max(p/unit, leastLevel*mean)
		}
		l.weights = append(l.weights, w)
		total += w / n
	}
	c.MeanX, c.MeanP = 0, 0
	for j, x := range l.x {
		l.weights[j] /= total
		c.MeanX += float64(x / n * l.weights[j])
		c.MeanP += float64(l.p[j] / n * l.weights[j])
	}
	sums := rowSums{cells: n, unit: unit}
	for j, x := range l.x {
		dx, dp := (x-c.MeanX)/unit, (l.p[j]-c.MeanP)/unit
		sums.xp += float64(l.weights[j] * float64(dx*dp))
		sums.pp += float64(l.weights[j] * float64(dp*dp))
		sums.xx += float64(l.weights[j]*float64(dx*dx)) / n
	}
	return sums
}

// isotonic fills blocks with the isotonic regression of x on p: it pools adjacent violators, equal p
// together.
func (l *mapLearner) isotonic() {
	l.sort(l.p)
	l.blocks = l.blocks[:0]
	for at := 0; at < len(l.order); {
		end, sum, count := at, 0.0, 0.0
		for p := l.p[l.order[at]]; end < len(l.order) && l.p[l.order[end]] == p; end++ {
			w := l.cells[l.order[end]]
			sum += float64(w * l.x[l.order[end]])
			count += w
		}
		b := block{at, count, sum / count}
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
func (l *mapLearner) knots(c *Curve) {
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
			middle += float64(l.cells[j] * (l.p[j] / b.count))
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

// outerLevels gives the levels that so few cells say nothing of the distance that the pooled ones have from
// the next inner level, and makes all levels rise.
func (c *Curve) outerLevels(pooled *[len(LevelsAt)]float64, cells float64) {
	const middle = len(LevelsAt) / 2
	for h := middle - 1; h >= 0; h-- {
		if Phi(LevelsAt[h])*(cells+1) < 1 {
			c.Levels[h] = c.Levels[h+1] + (pooled[h] - pooled[h+1])
		}
	}
	for h := middle + 1; h < len(LevelsAt); h++ {
		if Phi(-LevelsAt[h])*(cells+1) < 1 {
			c.Levels[h] = c.Levels[h-1] + (pooled[h] - pooled[h-1])
		}
	}
	for h := 1; h < len(LevelsAt); h++ {
		c.Levels[h] = max(c.Levels[h], c.Levels[h-1]+1e-6)
	}
}

// histogram counts residuals of all rows in bins of 1/binsPerUnit from -farResidual to farResidual, what lies
// beyond in the outer ones. A cell counts residualParts times its weight over a power of two, so that counts
// are whole numbers and the order of rows does not matter.
type histogram [2 * farResidual * binsPerUnit]uint64

// countUnit is the power of two for cells of such a weight in all: beside it rounding is small.
func countUnit(weight float64) float64 {
	_, e := math.Frexp(weight)
	return math.Ldexp(1, e-48)
}

const (
	binsPerUnit = 64
	farResidual = 40
)

// take counts the residuals of a row.
func (g *histogram) take(l *mapLearner, unit float64) {
	for h, t := range l.z {
		g[int(min(max((t+farResidual)*binsPerUnit, 0), float64(len(g)-1)))] +=
			uint64(residualParts/l.parts) * uint64(math.Round(l.cells[h/l.parts]/unit))
	}
}

func (g *histogram) add(of *histogram) {
	for b, c := range of {
		g[b] += c
	}
}

// levels returns the quantiles of the residuals of cells of such a weight in all at LevelsAt. Those that even
// all cells say nothing of have the distance of normal ones from the outermost that they do.
func (g *histogram) levels(cells, unit float64) (levels [len(LevelsAt)]float64) {
	bin, below := 0, 0.0
	for h, at := range LevelsAt {
		share := min(max(Phi(at), 1/(cells+1)), cells/(cells+1))
		place := float64(share*(cells+1)*residualParts) / unit
		for bin < len(g)-1 && below+float64(g[bin]) < place {
			below += float64(g[bin])
			bin++
		}
		inside := min((place-below)/max(float64(g[bin]), 1/unit), 1)
		levels[h] = float64((float64(bin)+inside)/binsPerUnit) - farResidual +
			(at - elem.NormalQuantile(share))
	}
	return levels
}

// poolMaps ends the learning of all curves: it draws the slope and the levels of each row to those of all
// rows, of whose residuals all has the counts, in a unit of countUnit.
func poolMaps(curves []*Curve, rows []rowSums, all *histogram, unit float64) {
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
	levels := all.levels(cells, unit)
	for k, c := range curves {
		s := rows[k]
		for h, l := range levels {
			p := Phi(LevelsAt[h])
			hold := levelCells / (4 * float64(p*(1-p))) // as a quantile's variance grows outwards
			c.Levels[h] = (float64(s.cells*c.Levels[h]) + float64(hold*l)) / (s.cells + hold)
		}
		c.outerLevels(&levels, s.cells)
		mean := c.MeanP / s.unit
		c.Slope = pooled
		if s.pp > 1e-9*max(float64(mean*mean), 1e-12) {
			c.Slope = max((float64(s.xp/s.pp*s.cells)+float64(slopeCells*pooled))/(s.cells+slopeCells), 0)
		}
	}
}
