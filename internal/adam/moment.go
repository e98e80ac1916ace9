package adam

// This file holds the state that goes from step to step, and the cosine schedule of the rate,
//
//	lr_e = lr (1+cos(π e/E))/2   in epoch e = 0, ..., E-1.

import "math"

// Moment holds the two moments of some parameters.
type Moment struct{ Mu, Nu []float64 }

// NewMoment returns the moments of n parameters before their first step.
func NewMoment(n int) Moment { return Moment{make([]float64, n), make([]float64, n)} }

// Step makes the step of parameters lo to hi-1 along their gradient.
func (m Moment) Step(param, grad []float64, lo, hi int, at Pace) {
	Step(param[lo:hi], grad, m.Mu[lo:hi], m.Nu[lo:hi], at.Rate, at.Count)
}

// Pace is the learning rate of a step, and the number of the step, from 1.
type Pace struct {
	Rate  float64
	Count int
}

// Cosine returns (1+cos πt)/2 = cos²(πt/2) for t in [0,1], from the series of
// cos on [0,π/4]: the same bits everywhere.
func Cosine(t float64) float64 {
	if t > 0.5 {
		return 1 - Cosine(1-t)
	}
	a := t * (math.Pi / 2) // in [0, π/4]
	c := 1.0
	for i := 16; i > 0; i -= 2 { // cos a = 1 - a²/2(1 - a²/12(...))
		c = 1 - float64(float64(a*a)*c)/float64(i*(i-1))
	}
	return c * c
}
