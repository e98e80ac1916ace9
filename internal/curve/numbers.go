package curve

// This file holds curves as numbers, for files: three counts a curve (of the knots of g_i, of
// those of g_i⁻¹ with mass, 0 where they are the same, and of the steps), RowNumbers numbers, and
// the knots one after another.

import (
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/limit"
)

// RowNumbers is spread, floor, mean of x, mean of p, slope and the levels.
const RowNumbers = 5 + len(LevelsAt)

// Encode returns curves as numbers. Knots are those of the curves themselves, a part after another.
func Encode(curves []Curve) (counts []uint64, rows []float64, knots [][]float64) {
	for i := range curves {
		c := &curves[i]
		at, to := c.MassY, c.MassX
		if &at[0] == &c.Y[0] {
			at, to = nil, nil
		}
		counts = append(counts, uint64(len(c.X)), uint64(len(at)), uint64(len(c.StepAt)))
		rows = append(append(rows, c.Spread, c.Floor, c.MeanX, c.MeanP, c.Slope), c.Levels[:]...)
		knots = append(knots, c.Y, c.X, at, to, c.StepAt, c.StepTo)
	}
	return counts, rows, knots
}

// Decode is the inverse of Encode, for numbers that need not come from it; of as many
// curves as counts and rows are for. Numbers on the scale of x are not negative unless signed. What is wrong
// is a problem, with part 0, 1 or 2 of the three.
func Decode(counts []uint64, rows, knots []float64, signed bool) (curves []Curve, part int, problem string) {
	curves = make([]Curve, len(counts)/3)
	for i := range curves {
		c, r := &curves[i], rows[i*RowNumbers:(i+1)*RowNumbers]
		n, mass, steps, left := counts[3*i], counts[3*i+1], counts[3*i+2], uint64(len(knots))/2
		if n < 1 || n > left || mass > left || steps > left || n+mass+steps > left {
			return nil, 0, "a number of knots is out of range"
		}
		take := func(n uint64) []float64 {
			v := knots[:n:n]
			knots = knots[n:]
			return v
		}
		c.Y, c.X, c.MassY, c.MassX, c.StepAt, c.StepTo = take(n), take(n), take(mass), take(mass),
			take(steps), take(steps)
		if mass == 0 {
			c.MassY, c.MassX = c.Y, c.X
		}
		copy(c.Levels[:], r[5:])
		c.Spread, c.Floor, c.MeanX, c.MeanP, c.Slope = r[0], r[1], r[2], r[3], r[4]
		if !(c.Spread >= 0 && c.Spread <= limit.Moment) || !(c.Floor >= 0 && c.Floor <= limit.Value) ||
			!(c.Slope >= 0 && c.Slope <= limit.Moment) ||
			!(math.Abs(c.MeanX) <= limit.Value) || !(math.Abs(c.MeanP) <= limit.Value) {
			return nil, 1, "a number of row " + strconv.Itoa(i) + " is out of range"
		}
		for k := range c.X {
			if !(math.Abs(c.Y[k]) <= limit.Moment && math.Abs(c.X[k]) <= limit.Value) || k > 0 &&
				!(c.Y[k] > c.Y[k-1] && c.X[k] > c.X[k-1]) ||
				!signed && c.X[k] < 0 {
				return nil, 2, "the scale of row " + strconv.Itoa(i) + " does not rise"
			}
		}
		for k := range c.MassY {
			if !(math.Abs(c.MassY[k]) <= limit.Moment && math.Abs(c.MassX[k]) <= limit.Value) || k > 0 &&
				!(c.MassY[k] > c.MassY[k-1] && c.MassX[k] >= c.MassX[k-1]) ||
				!signed && c.MassX[k] < 0 {
				return nil, 2, "the masses of row " + strconv.Itoa(i) + " fall"
			}
		}
		for k, l := range c.Levels {
			if !(math.Abs(l) <= limit.Moment) || k > 0 && !(l > c.Levels[k-1]) {
				return nil, 1, "the levels of row " + strconv.Itoa(i) + " do not rise"
			}
		}
		for k := range c.StepAt {
			if !(math.Abs(c.StepAt[k]) <= limit.Value && math.Abs(c.StepTo[k]) <= limit.Value) || k > 0 &&
				!(c.StepAt[k] > c.StepAt[k-1] && c.StepTo[k] >= c.StepTo[k-1]) ||
				!signed && c.StepTo[k] < 0 {
				return nil, 2, "the steps of row " + strconv.Itoa(i) + " fall"
			}
		}
	}
	if len(knots) > 0 {
		return nil, 2, "wrong length"
	}
	return curves, 0, ""
}
