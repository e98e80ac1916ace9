// Package adam is the step rule of Kingma and Ba (2015) over slices.
package adam

import "math"

const (
	beta1 = 0.9
	beta2 = 0.999
	eps   = 1e-8
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
	rate := lr / c1
	step(x, g[:len(x)], mu[:len(x)], nu[:len(x)], rate, c2)
}

func step_g(x, g, mu, nu []float64, rate, c2 float64) {
	g, mu, nu = g[:len(x)], mu[:len(x)], nu[:len(x)]
	for i := range x {
		m := float64(beta1*mu[i]) + float64((1-beta1)*g[i])
		v := float64(beta2*nu[i]) + float64((1-beta2)*float64(g[i]*g[i]))
		mu[i], nu[i] = m, v
		x[i] -= float64(rate*m) / (math.Sqrt(v/c2) + eps)
	}
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
