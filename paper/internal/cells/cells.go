// Package cells hides cells of a matrix from fits and measures how well they are predicted. It also has
// correlations, orders and ranks of numbers.
package cells

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quantmf/quantmf"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Hide returns x with NaN in a tenth of its cells, drawn by the seed. A row or a column keeps two
// cells at least.
func Hide(x quantmf.Mat, seed uint64) quantmf.Mat {
	r := rand.New(rand.NewPCG(seed, 7))
	holes := x.Clone()
	left := make([]int, x.Cols)
	for j := range left {
		left[j] = x.Rows
	}
	for i := range x.Rows {
		kept := x.Cols
		for j := range x.Cols {
			if r.Float64() < 0.1 && kept > 2 && left[j] > 2 {
				holes.Set(i, j, math.NaN())
				kept--
				left[j]--
			}
		}
	}
	return holes
}

// floor is the least that a fitted value counts as.
const floor = 1e-30

// Divergences returns the mean generalised Kullback-Leibler divergences of x from fit, over
// the cells that are NaN in holes and over the others.
func Divergences(x, holes, fit quantmf.Mat) (hidden, seen float64) {
	var h, s float64
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			t := max(fit.At(i, j), floor)
			d := t - v
			if v > 0 {
				d += v * math.Log(v/t)
			}
			if w := holes.At(i, j); w != w {
				hidden += d
				h++
			} else {
				seen += d
				s++
			}
		}
	}
	return hidden / h, seen / s
}

// Correlation returns Pearson's correlation, 0 where a or b does not vary.
func Correlation(a, b []float64) float64 {
	r := stat.Correlation(a, b, nil)
	if math.IsNaN(r) {
		return 0
	}
	return r
}

// Order returns the places of the numbers of v from the least to the largest, of equal ones as they stand.
func Order(v []float64) []int {
	order := make([]int, len(v))
	floats.ArgsortStable(slices.Clone(v), order)
	return order
}

// Ranks returns the ranks of v from 0, ties averaged.
func Ranks(v []float64) []float64 {
	order := Order(v)
	r := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			r[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return r
}
