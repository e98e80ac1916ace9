package place

// This file holds the maps of the rows at the points of a tile: T and T' for many points side by
// side, in the terms of the package's map (map.go of the root), whose values they are to rounding.
// Level J weighs exp(h_J + y_J (x̃-c)) at a point x that the squash brings to x̃, where
//
//	h_{J+1} = h_J - ρ_J (t_J - c),   y_{J+1} = y_J + ρ_J,
//
// t_J is the threshold between levels J and J+1, ρ_J its rate, and c one of the thresholds.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/transport"
)

// A Sheet is the map T of a row, for ε > 0. It is not changed once made.
type Sheet struct {
	squash       transport.Squash
	center       float64
	q, h, y, inc []float64
}

// NewSheet makes the map onto the rising q of m levels by the m-1 thresholds cut, in squashed x,
// and their rates.
func NewSheet(squash transport.Squash, q, cut, rate []float64) Sheet {
	m := len(q)
	s := Sheet{squash: squash, q: q, h: make([]float64, m), y: make([]float64, m), inc: make([]float64, m-1)}
	if m > 1 {
		s.center = cut[(m-1)/2]
	}
	for J, r := range rate {
		s.y[J+1] = s.y[J] + r
		s.h[J+1] = s.h[J] - float64(r*(cut[J]-s.center))
		s.inc[J] = q[J+1] - q[J]
	}
	return s
}

// Low and High are the least and the largest value, and Constant tells whether T takes one alone.
func (f *Sheet) Low() float64   { return f.q[0] }
func (f *Sheet) High() float64  { return f.q[len(f.q)-1] }
func (f *Sheet) Constant() bool { return f.squash.Constant() }

// SheetRoom is one worker's room for n points and m levels.
type SheetRoom struct{ e, s, z, ones, zeros, weights, none []float64 }

// NewSheetRoom makes a room for n points and m levels.
func NewSheetRoom(n, m int) *SheetRoom {
	n = kernel.Pad(n)
	v := func(n int) []float64 { return make([]float64, n) }
	r := &SheetRoom{e: v(n * m), s: v(n), z: v(n), ones: v(n), zeros: v(n), weights: v(m), none: v(m)}
	for i := range r.ones {
		r.ones[i] = 1
	}
	for j := range r.weights {
		r.weights[j] = 1
	}
	return r
}

// At fills t and slope with T and T' for the points w, whole blocks.
func (f *Sheet) At(t, slope, w []float64, r *SheetRoom) {
	n, m := len(w), len(f.q)
	if m == 1 {
		for i := range t {
			t[i], slope[i] = f.q[0], 0
		}
		return
	}
	e, s, z := r.e[:n*m], r.s[:n], r.z[:n]
	f.squash.Apply(s, w)
	kernel.Shift(z, s, f.center)
	kernel.Build(e, z, f.h, f.y)
	kernel.Average(t, e, r.weights, z, f.q[0], f.inc)
	kernel.Covariance(&kernel.Cov{Out: slope, E: e, W: r.weights, Z: z, Zeta: r.ones[:n], A: r.zeros[:n], V: f.q, Lam: r.none, Y: f.y})
	copy(z, slope)
	f.squash.Slopes(slope, s, w)
	for i, v := range slope {
		t[i] = min(t[i], f.High())
		if s[i] > 1-0x1p-10 { // 1-x̃ has lost its digits
			v = z[i] * f.squash.Slope(w[i], s[i])
		}
		slope[i] = transport.Saturate(max(v, 0))
	}
}
