package qmf

// This file holds the step rule of Kingma and Ba (2015) over slices, the state that goes from step to step,
// and the cosine schedule of the rate,
//
//	lr_e = lr (1+cos(π e/E))/2   in epoch e = 0, ..., E-1.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	beta1 = 0.9
	beta2 = 0.999
)

func power(b float64, t int) float64 {
	r := 1.0
	for ; t > 0; t >>= 1 {
		if t&1 == 1 {
			r *= b
		}
		b *= b
	}
	return r
}

// moment holds the two moments of some parameters.
type moment struct{ Mu, Nu []float64 }

// newMoment returns the moments, before their first step, of as many parameters as the product of some sizes.
func newMoment(a *pool.Arena, sizes ...int) moment {
	return moment{a.Floats(sizes...), a.Floats(sizes...)}
}

// Step moves parameters x_lo to x_hi-1 against their gradient g:
//
//	μ ← β1 μ + (1-β1) g,  ν ← β2 ν + (1-β2) g²,
//	x ← x - lr · (μ/(1-β1^t)) / (√(ν/(1-β2^t)) + 1e-8)
//
// with β1 = 0.9, β2 = 0.999. t counts the steps of x, this one included.
func (m moment) Step(param, grad []float64, lo, hi int, at pace) {
	c1, c2 := 1-power(beta1, at.Count), 1-power(beta2, at.Count)
	kernel.AdamStep(param[lo:hi], grad, m.Mu[lo:hi], m.Nu[lo:hi], at.Rate/c1, c2)
}

// pace is the learning rate of a step, and the number of the step, from 1.
type pace struct {
	Rate  float64
	Count int
}

// cosine returns (1+cos πt)/2 = cos²(πt/2) for t in [0,1], from the series of
// cos on [0,π/4]: the same bits everywhere.
func cosine(t float64) float64 {
	if t > 0.5 {
		return 1 - cosine(1-t)
	}
	a := t * (math.Pi / 2) // in [0, π/4]
	c := 1.0
	for i := 16; i > 0; i -= 2 { // cos a = 1 - a²/2(1 - a²/12(...))
		c = 1 - float64(float64(a*a)*c)/float64(i*(i-1))
	}
	return c * c
}
