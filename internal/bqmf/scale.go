package bqmf

// This file holds the making of g_i (curve.go) from the observed values of a row.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
)

// scaler makes the scale of a row.
type scaler struct {
	sorted []float64
	count  []int     // how often each distinct value comes
	score  []float64 // the normal score of each of them
}

// newScaler makes one with room for rows of n values.
func newScaler(a *pool.Arena, n int) scaler {
	return scaler{sorted: a.Floats(n), count: pool.Make[int](a, n), score: a.Floats(n)}
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
// the row on it, hidden cells at 0. The scale has no tails.
func (s *scaler) scale(c *Curve, y, x []float64, signed bool) {
	s.sort(x)
	s.fill(c, s.sorted, signed)
	for j, v := range x {
		y[j] = 0
		if v == v {
			y[j] = c.forward(v)
		}
	}
}

// sort takes the observed values of a row.
func (s *scaler) sort(x []float64) {
	s.sorted = s.sorted[:0]
	for _, v := range x {
		if v == v {
			s.sorted = append(s.sorted, v+0) // no negative zero
		}
	}
	slices.Sort(s.sorted)
}

// fill fills c with the scale of sorted values.
func (s *scaler) fill(c *Curve, sorted []float64, signed bool) {
	top := s.distinct(c, sorted)
	n := float64(len(sorted))
	unit := unitOf(top)
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
	c.tellApart(root)
	if c.MassY == nil {
		c.MassY, c.MassX = c.Y, c.X
	}
	c.Seen = [2]float64{c.X[0], c.X[len(c.X)-1]}
}

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

// distinct fills X of c with the distinct values of sorted ones, and count. It returns the largest magnitude.
func (s *scaler) distinct(c *Curve, sorted []float64) (top float64) {
	c.X, s.count = make([]float64, 0, 16), s.count[:0]
	for _, v := range sorted {
		top = max(top, math.Abs(v))
		if k := len(c.X); k > 0 && c.X[k-1] == v {
			s.count[k-1]++
			continue
		}
		c.X, s.count = append(c.X, v), append(s.count, 1)
	}
	c.X = slices.Clip(c.X)
	return top
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

// standardise brings v, where value h comes count[h] times, to mean 0 and deviation 1. It returns the mean
// and the deviation that v had; a deviation of 0 counts as 1.
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
