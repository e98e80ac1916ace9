package bqmf

// This file holds rows that take single values only: 0 and 1, ratings, counts, ages in years. What is said of
// such a cell is one of them: its median, the ends of its interval, its draws; each has a probability.
//
// A row takes values on a lattice x_1 + r h, r a whole number, where all its values lie on one that they
// could not by chance: h is the largest number that divides all their differences, and the range has at most
// latticeMost h. Numbers that were measured, or rounded to decimals, have an h of the last bits that they are
// written in. Any other row takes the values that it has shown, where each has come stageRepeats times on
// average. Rows with fewer than discreteLeast observed cells, and all others, take any value; one that comes
// often, as 0 among measured amounts, has its mass. Problem.Discrete overrules what the cells show.
//
// Of a lattice a row keeps the values that it has shown, and at most latticeBetween between two that follow
// one another, so that it has no more knots than some times its values. The tails (tails.go) have their knots
// moved to the lattice.
//
// g_i⁻¹ with mass is rounded to these values: it is a step from a value to the next where it was halfway.
// Its means (Table.Mean) are as they are for any row.

import (
	"math"
	"slices"
)

const (
	discreteLeast  = 10      // observed cells
	discreteRepeat = 3       // how often each value comes, on average, where it is on no lattice
	latticeMost    = 1 << 20 // steps of the range
	latticeBetween = 3
)

// takes says what a row takes.
type takes uint8

const (
	found  takes = iota // what its cells show
	every               // any value
	single              // single values only
)

// takes says what row i takes.
func (q *Problem) takes(i int) takes {
	switch {
	case q.Discrete == nil:
		return found
	case q.Discrete[i]:
		return single
	}
	return every
}

// lattice returns h for rising numbers, 0 where there is no such lattice. It is exact, so powers of two in
// the unit of x make no difference.
func lattice(x []float64) (h float64) {
	spread := x[len(x)-1] - x[0]
	for k := 1; k < len(x); k++ {
		for t := x[k] - x[k-1]; t > 0; {
			h, t = t, math.Mod(h, t)
		}
		if !(spread <= h*latticeMost) {
			return 0
		}
	}
	return h
}

// values returns what a row can take, rising, nil for any value. seen are the distinct values of so many
// observed cells; X has tails beyond them.
func (c *Curve) values(seen []float64, observed float64, as takes) (can []float64) {
	if as == every || as == found && observed < discreteLeast || len(seen) < 2 {
		return nil
	}
	h := lattice(seen)
	if h == 0 {
		if as == single || observed >= float64(discreteRepeat*len(seen)) {
			return slices.Clone(seen)
		}
		return nil
	}
	first := seen[0]
	for _, x := range c.X {
		r := math.Round((x - first) / h)
		if x < seen[0] || x > seen[len(seen)-1] {
			x = first + float64(r*h)
		}
		if x < c.X[0] || x > c.X[len(c.X)-1] { // beyond a bound
			continue
		}
		if len(can) == 0 {
			can = append(can, x)
			continue
		}
		last := math.Round((can[len(can)-1] - first) / h)
		between := min(r-last-1, latticeBetween)
		for k := 1.0; k <= between; k++ {
			can = append(can, first+float64(h*(last+math.Round(float64(k*(r-last))/(between+1)))))
		}
		if r > last {
			can = append(can, x)
		}
	}
	return can
}

// round rounds g_i⁻¹ with mass to the values that the row can take.
func (c *Curve) round(can []float64) {
	var y, x []float64
	for k, v := range can[1:] {
		below, above := c.places(can[k] + float64((v-can[k])/2))
		at := below + float64((above-below)/2)
		if last := len(y) - 1; at-at == 0 && (last < 0 || at > y[last]) {
			y, x = append(y, at, math.Nextafter(at, math.Inf(1))), append(x, can[k], v)
		} else if last >= 0 { // no place is left for can[k]
			x[last] = v
		}
	}
	if len(y) > 0 { // the outer values have mass, too: from their step outwards
		last := len(y) - 1
		c.MassY = slices.Concat([]float64{y[0] - 1}, y, []float64{y[last] + 1})
		c.MassX = slices.Concat(x[:1], x, x[last:])
	}
}
