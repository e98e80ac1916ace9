package bqmf

// This file holds how a scale g_i goes on beyond the values that its row has shown. Of a row with few
// observed cells many others lie beyond: of n normal values 2/(n+1).
//
// With y_1 < ... < y_k the places of the distinct values x_1 < ... < x_k of a row, its upper tail is
//
//	g⁻¹(y_k + t) = r⁻¹(r(x_k) + b t),  b = Σ_{h<m} (r(x_{k-h}) - r(x_{k-m})) / Σ_{h<m} (y_{k-h} - y_{k-m}),
//
// as far as tailLength deviations, and flat after that; the lower one likewise. b is the ratio of the mean
// excesses over the m-th value, on either scale. It is exact where g is a line, and one outlier has a weight
// of 1/m in it: m = 2√n_i + 1, rounded up, as far as there are so many values.
//
// r is x, √x or log x, one of them for all lower tails of a table and one for all upper ones, since twelve
// cells of one row would choose the steepest. It is the one with the least
//
//	Σ_i log(1.01 - R_i²),
//
// R_i the correlation of r(x) with the normal scores over the outer half of the row's distinct values. Rows
// where log x is not defined there are left out; they have √x where log x has the least sum. A table with
// negative values has x. A tail of log x goes on in a straight line of x after one deviation, so that no mean
// over it is without bounds.
//
// A tail ends at the bound of the table, if there is one: 0 where no value is negative; the least value of
// all where it is that of several rows (boundShare), as in percentages and ratings; likewise the largest. And
// there is none at an end whose value comes often (tied).

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/limit"
)

// tailAt are the places of a tail's knots, in deviations of the row beyond its end.
var tailAt = [...]float64{0.5, 1, 2, tailLength}

const (
	tailLength = 4
	boundShare = 0.05 // of the rows, and at least two, that have the value of a bound as their own end
)

// tied tells whether the value of an end comes so often among the observed cells of a row that it is likely
// that no value lies beyond.
func tied(count, observed float64) bool { return count > max(2, observed/10) }

// The sides of a row.
const (
	lower = iota
	upper
)

// tailKind is r.
type tailKind int

const (
	plainTail tailKind = iota
	rootTail
	logTail
	tailKinds = iota
)

// to and back are r and its inverse.
func (r tailKind) to(x float64) float64 {
	switch r {
	case rootTail:
		return math.Sqrt(x)
	case logTail:
		return elem.Log(x)
	}
	return x
}

func (r tailKind) back(t float64) float64 {
	switch r {
	case rootTail:
		return squareOf(max(t, 0))
	case logTail:
		return elem.Exp(t)
	}
	return t
}

// tails is what all rows of a table share of their tails.
type tails struct {
	kinds  [2]tailKind
	bounds [2]float64
}

// outward is the place of the h-th distinct value from the end of a side.
func outward(side, h, distinct int) int {
	if side == lower {
		return h
	}
	return distinct - 1 - h
}

// tailVotes are, of a row and of each side, log(1.01 - R²) for each r; zeros where the row is left out.
type tailVotes [2][tailKinds]float64

// votes returns the votes of a row, given its distinct values over a unit and their normal scores.
func votes(x, scores []float64) (v tailVotes) {
	k := len(x)
	half := min(max(k/2, 3), k-1)
	for side := range v {
		if k < 2 || !(min(x[outward(side, 0, k)], x[outward(side, half, k)]) > 0) {
			continue
		}
		for r := range v[side] {
			var sx, sy, xx, xy, yy float64
			for h := range half + 1 {
				at := outward(side, h, k)
				a, b := tailKind(r).to(x[at]), scores[at]
				sx += a
				sy += b
				xx += float64(a * a)
				xy += float64(a * b)
				yy += float64(b * b)
			}
			count := float64(half + 1)
			xx -= float64(sx / count * sx)
			xy -= float64(sx / count * sy)
			yy -= float64(sy / count * sy)
			square := min(xy/max(xx, 1e-300)*xy/max(yy, 1e-300), 1)
			v[side][r] = elem.Log(1.01 - square)
		}
	}
	return v
}

// newTails returns the tails of a table, given the votes of its rows and their scales, which have no tails
// yet.
func newTails(scales []Curve, all []tailVotes, signed bool) (t tails) {
	t.bounds = [2]float64{math.Inf(-1), math.Inf(1)}
	ends, rows, active := [2]float64{math.Inf(1), math.Inf(-1)}, [2]float64{}, 0.0
	for i := range scales {
		c := &scales[i]
		if len(c.X) < 2 {
			continue
		}
		active++
		for side, v := range [2]float64{c.X[0], c.X[len(c.X)-1]} {
			if v == ends[side] {
				rows[side]++
			} else if (v < ends[side]) == (side == lower) {
				ends[side], rows[side] = v, 1
			}
		}
	}
	for side, count := range rows {
		if count > 1 && count >= boundShare*active {
			t.bounds[side] = ends[side]
		}
	}
	if signed {
		return t
	}
	t.bounds[lower] = max(t.bounds[lower], 0)
	for side := range t.kinds {
		var sums [tailKinds]float64
		for _, v := range all {
			for r, l := range v[side] {
				sums[r] += l
			}
		}
		t.kinds[side] = rootTail // where no row has a vote
		for r, s := range sums {
			if s < sums[t.kinds[side]] {
				t.kinds[side] = tailKind(r)
			}
		}
	}
	return t
}

// grow adds the tails to the scale of a row, given its cells, and rounds it to the values that the row can
// take.
func (c *Curve) grow(t *tails, cells []float64, as takes) {
	if len(c.X) < 2 {
		return
	}
	observed, atEnds := 0.0, [2]float64{}
	for _, v := range cells {
		if v == v {
			observed++
		}
		for side, end := range c.Seen {
			if v == end {
				atEnds[side]++
			}
		}
	}
	mass, seen := c.mass(), c.X
	var y, x [2][]float64
	for side := range y {
		if !tied(atEnds[side], observed) {
			y[side], x[side] = c.tail(t, side, observed)
		}
	}
	slices.Reverse(y[lower])
	slices.Reverse(x[lower])
	c.Y, c.X = slices.Concat(y[lower], c.Y, y[upper]), slices.Concat(x[lower], c.X, x[upper])
	if mass { // which may go beyond a tail that soon ends at a bound
		lo, _ := slices.BinarySearch(y[lower], c.MassY[0])
		hi, met := slices.BinarySearch(y[upper], c.MassY[len(c.MassY)-1])
		if met {
			hi++
		}
		c.MassY = slices.Concat(y[lower][:lo], c.MassY, y[upper][hi:])
		c.MassX = slices.Concat(x[lower][:lo], c.MassX, x[upper][hi:])
	} else {
		c.MassY, c.MassX = c.Y, c.X
	}
	if can := c.values(seen, observed, as); can != nil {
		c.round(can)
	}
}

// tail returns the knots of a tail, from the end of the row outwards.
func (c *Curve) tail(t *tails, side int, observed float64) (ys, xs []float64) {
	k := len(c.X)
	unit := unitOf(max(math.Abs(c.X[0]), math.Abs(c.X[k-1])))
	m := min(int(math.Ceil(2*math.Sqrt(observed)))+1, k-1)
	end, from, r := outward(side, 0, k), outward(side, m, k), t.kinds[side]
	if r == logTail && !(min(c.X[end], c.X[from]) > 0) {
		r = rootTail
	}
	rise, run := 0.0, 0.0
	for h := range m {
		at := outward(side, h, k)
		rise += r.to(c.X[at]/unit) - r.to(c.X[from]/unit)
		run += c.Y[at] - c.Y[from]
	}
	b, sign := rise/run, 1.0
	if side == lower {
		sign = -1
	}
	last := r.to(c.X[end] / unit)
	for _, far := range tailAt {
		step := float64(sign * far)
		y, x := c.Y[end]+step, r.back(last+float64(b*step))
		switch {
		case r == logTail && step > 1:
			x = float64(r.back(last+b) * (1 + float64(b*(step-1))))
		case r == rootTail && last+float64(b*step) < 0:
			y = c.Y[end] - last/b // where x is 0
		}
		x = min(max(float64(x*unit), t.bounds[lower]), t.bounds[upper])
		beforeY, beforeX := c.Y[end], c.X[end]
		if len(xs) > 0 {
			beforeY, beforeX = ys[len(ys)-1], xs[len(xs)-1]
		}
		if !(math.Abs(x) <= limit.Value && float64(sign*x) > float64(sign*beforeX) &&
			float64(sign*y) > float64(sign*beforeY)) {
			break
		}
		ys, xs = append(ys, y), append(xs, x)
	}
	return ys, xs
}
