// Package adam is the step rule of Kingma and Ba (2015) over slices.
package adam

import "github.com/quantmf/quantmf/internal/kernel"

const (
	beta1 = 0.9
	beta2 = 0.999
)

// Step moves x against its gradient g:
//
//	μ ← β1 μ + (1-β1) g,  ν ← β2 ν + (1-β2) g²,
//	x ← x - lr · (μ/(1-β1^t)) / (√(ν/(1-β2^t)) + 1e-8)
//
// with β1 = 0.9, β2 = 0.999. t counts the steps of x, this one included. All
// slices have the length of x.
func Step(x, g, mu, nu []float64, lr float64, t int) {
	c1, c2 := correction(t)
	kernel.AdamStep(x, g, mu, nu, lr/c1, c2)
}

// correction returns 1-β1^t and 1-β2^t.
func correction(t int) (c1, c2 float64) {
	return 1 - power(beta1, t), 1 - power(beta2, t)
}

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
