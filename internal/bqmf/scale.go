package bqmf

// This file holds the making of g_i (curve.go) from the observed values of a row.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/pool"
)

// scaler makes the scale of a row.
type scaler struct {
	sorted  []float64
	weights []float64 // of each of sorted, nil where all are 1
	count   []int     // how often each distinct value comes
	mass    []float64 // the weight of each of them
	score   []float64 // the normal score of each of them
	order   order.Room
}

// newScaler makes one with room for rows of n values.
func newScaler(a *pool.Arena, n int) scaler {
	return scaler{sorted: a.Floats(n), count: pool.Make[int](a, n), mass: a.Floats(n), score: a.Floats(n)}
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
// the row on it, hidden cells at 0. Cells have weights, nil where all are 1. The scale has no tails.
func (s *scaler) scale(c *Curve, y, x, weights []float64, signed bool) {
	s.sort(x, weights)
	s.fill(c, s.sorted, s.weights, signed)
	for j, v := range x {
		y[j] = 0
		if v == v {
			y[j] = c.forward(v)
		}
	}
}

// sort takes the observed values of a row, with their weights.
func (s *scaler) sort(x, weights []float64) {
	s.sorted, s.weights = s.sorted[:0], nil
	for _, v := range x {
		if v == v {
			s.sorted = append(s.sorted, v+0) // no negative zero
		}
	}
	if weights == nil {
		slices.Sort(s.sorted)
		return
	}
	var of []float64
	for j, v := range x {
		if v == v {
			of = append(of, weights[j])
		}
	}
	own := slices.Clone(s.sorted)
	s.order.Resize(nil, len(own))
	for h, j := range s.order.Sort(own) {
		s.sorted[h], s.weights = own[j], append(s.weights, of[j])
	}
}

// fill fills c with the scale of sorted values of such weights.
func (s *scaler) fill(c *Curve, sorted, weights []float64, signed bool) {
	top, n := s.distinct(c, sorted, weights)
	unit := unitOf(top)
	k := len(c.X)
	root, score := make([]float64, k), make([]float64, k)
	below := 0.0
	for h, v := range c.X {
		root[h] = v / unit
		if !signed {
			root[h] = math.Sqrt(root[h])
		}
		m := s.mass[h]
		score[h] = elem.NormalQuantile(inside((below + float64(m/2)) / n))
		below += m
	}
	s.score = append(s.score[:0], score...)
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
		m := s.mass[h]
		if s.count[h] == 1 {
			put(root[h], v)
		} else {
			half := m / float64(2*s.count[h]) // of the weight of a cell of them
			for _, edge := range [2]float64{below + half, below + m - half} {
				e := (elem.NormalQuantile(inside(edge/n)) - scoreMean) / scoreDev
				put((plain[h]-score[h]+e-mean)/dev, v)
			}
		}
		below += m
	}
	if len(c.MassY) == k {
		c.MassY, c.MassX = nil, nil // no value comes twice: they are y and x
	}
	c.tellApart(root)
	if c.MassY == nil {
		c.MassY, c.MassX = c.Y, c.X
	}
	c.Seen = [2]float64{c.X[0], c.X[len(c.X)-1]}
}

// inside is a probability, kept from 0 and 1, to which weights of very different sizes may round it.
func inside(p float64) float64 { return min(max(p, math.SmallestNonzeroFloat64), 1-0x1p-53) }

// votes returns the votes of the row of the last fill, of which c is the scale, in the room of its sorted
// values.
func (s *scaler) votes(c *Curve) (v tailVotes) {
	if len(c.X) != len(s.score) { // some values are too close for the scale
		return v
	}
	over, unit := s.sorted[:0], unitOf(max(math.Abs(c.X[0]), math.Abs(c.X[len(c.X)-1])))
	for _, x := range c.X {
		over = append(over, x/unit)
	}
	return votes(over, s.score)
}

// distinct fills X of c with the distinct values of sorted ones, count and mass. It returns the largest
// magnitude, and the sum of the weights.
func (s *scaler) distinct(c *Curve, sorted, weights []float64) (top, sum float64) {
	c.X, s.count, s.mass = make([]float64, 0, 16), s.count[:0], s.mass[:0]
	for h, v := range sorted {
		w := 1.0
		if weights != nil {
			w = weights[h]
		}
		top = max(top, math.Abs(v))
		sum += w
		if k := len(c.X); k > 0 && c.X[k-1] == v {
			s.count[k-1]++
			s.mass[k-1] += w
			continue
		}
		c.X, s.count, s.mass = append(c.X, v), append(s.count, 1), append(s.mass, w)
	}
	c.X = slices.Clip(c.X)
	return top, sum
}

// tellApart makes Y of y, the scale at X, in its room: values so close that the scale does not tell them
// apart become one.
func (c *Curve) tellApart(y []float64) {
	c.Y = y[:0]
	for h, v := range y {
		if kept := len(c.Y); kept == 0 || v > c.Y[kept-1] {
			c.X[kept] = c.X[h]
			c.Y = append(c.Y, v)
		}
	}
	c.X = c.X[:len(c.Y)]
}

// standardise brings v, where value h has mass[h] of n, to mean 0 and deviation 1. It returns the mean
// and the deviation that v had; a deviation of 0 counts as 1.
func (s *scaler) standardise(v []float64, n float64) (mean, dev float64) {
	sq := 0.0
	for h, t := range v {
		mean += float64(s.mass[h]*t) / n
	}
	for h, t := range v {
		v[h] = t - mean
		sq += float64(s.mass[h]*squareOf(v[h])) / n
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
