package check

// This file holds data that several packages are tested on, matrices row by row.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/random"
)

// product is row i of UV, V being k × n.
func product(u, v []float64, n int) []float64 {
	w := make([]float64, n)
	for c, x := range u {
		for j, y := range v[c*n : (c+1)*n] {
			w[j] += float64(x * y)
		}
	}
	return w
}

// Toy draws the paper's synthetic problem, 160 × 80: rows of U*V*, U* Poisson(2), columns
// of V* Dirichlet(1/2), mapped rank by rank onto cumsum(exp(N(0,1))).
func Toy(seed int) []float64 {
	const d, n, k = 160, 80, 8
	r := random.Split(77, seed)
	u, v, x := make([]float64, d*k), make([]float64, k*n), make([]float64, 0, d*n)
	for i := range u {
		p, l := 1.0, math.Exp(-2)
		for p *= r.Float64(); p > l; p *= r.Float64() {
			u[i]++
		}
	}
	for j := range n {
		sum := 0.0
		for c := range k { // Gamma(1/2) is half a squared normal
			z := Normal(&r)
			v[c*n+j] = z * z
			sum += z * z
		}
		for c := range k {
			v[c*n+j] /= sum
		}
	}
	for i := range d {
		row := product(u[i*k:(i+1)*k], v, n)
		perm := make([]int, n)
		for j := range perm {
			perm[j] = j
		}
		slices.SortStableFunc(perm, func(a, b int) int { return cmp.Compare(row[a], row[b]) })
		q := 0.0
		for _, j := range perm {
			q += math.Exp(Normal(&r))
			row[j] = q
		}
		x = append(x, row...)
	}
	return x
}

// Hole makes about a share of the numbers NaN, in place.
func Hole(v []float64, share float64) {
	r := random.Split(41, 0)
	for i := range v {
		if r.Float64() < share {
			v[i] = math.NaN()
		}
	}
}

// NoisyProduct draws a product of rank 2 with noise, 60 × 40.
func NoisyProduct() []float64 {
	const d, n, k = 60, 40, 2
	r := random.Split(8, 8)
	u, v, x := make([]float64, d*k), make([]float64, k*n), make([]float64, 0, d*n)
	for _, f := range [][]float64{u, v} {
		for i := range f {
			f[i] = 5 * r.Float64()
		}
	}
	for i := range d {
		x = append(x, product(u[i*k:(i+1)*k], v, n)...)
	}
	for i, w := range x {
		x[i] = max(w+5*Normal(&r), 0)
	}
	return x
}

// Curves draws curves of either sign of two common factors, d × n; the last row is constant.
func Curves(seed uint64, d, n int) []float64 {
	r := random.Split(seed, 78)
	f := [2][]float64{make([]float64, n), make([]float64, n)}
	for c := range f {
		for j := range f[c] {
			f[c][j] = Normal(&r)
		}
	}
	x := make([]float64, d*n)
	for i := range d {
		a, b, bend, offset := Normal(&r), Normal(&r), r.Float64(), 2*Normal(&r)
		for j := range n {
			w := a*f[0][j] + b*f[1][j]
			x[i*n+j] = w + bend*w*math.Abs(w) + offset + 0.2*Normal(&r)
			if i == d-1 {
				x[i*n+j] = -3
			}
		}
	}
	return x
}
