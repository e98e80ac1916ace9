package report

// This file holds what the page says of features and components in numbers.

import (
	"math"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
)

// product returns UV.
func product(u, v quantmf.Mat) quantmf.Mat {
	w := quantmf.NewMat(u.Rows, v.Cols)
	for i := range w.Rows {
		account.Mixture(w.Row(i), u, v, i)
	}
	return w
}

// mean returns that of what is not missing.
func mean(x []float64) float64 {
	m, seen := 0.0, 0.0
	for _, v := range x {
		if v == v {
			seen++
			m += (v - m) / seen
		}
	}
	return m
}

// deviation returns the standard deviation of what is not missing. Squares are those of numbers
// of at most 1, which neither overflow nor vanish.
func deviation(x []float64) float64 {
	m, top := mean(x), 0.0
	for _, v := range x {
		if v == v {
			top = max(top, math.Abs(v-m))
		}
	}
	if top == 0 {
		return 0
	}
	sum, seen := 0.0, 0.0
	for _, v := range x {
		if v == v {
			z := (v - m) / top
			seen++
			sum += (z*z - sum) / seen
		}
	}
	return top * math.Sqrt(sum)
}

// left is the mean divergence of all values from the fit.
func (f *Fit) left() float64 {
	left, cells := 0.0, 0.0
	for i, seen := range account.Visible(f.X) {
		cells += seen
		left += f.Goodness[i].Divergence * seen
	}
	return left / max(cells, 1)
}

// explained returns the share of all differences between samples that the model reproduces.
func (f *Fit) explained() float64 { return account.Explained(f.Goodness, account.Visible(f.X)) }

// explainedOfEach is that share of each feature.
func (f *Fit) explainedOfEach() (shares []float64) {
	for _, g := range f.Goodness {
		shares = append(shares, g.Explained)
	}
	return shares
}

// Average is the mean of what is explained of the features that vary, 1 where none does. A
// feature whose own mean is better than the fit counts as 0.
func Average(goodness []quantmf.Goodness) float64 {
	sum, count := 0.0, 0.0
	for _, g := range goodness {
		if g.Spread > 0 {
			sum += max(g.Explained, 0)
			count++
		}
	}
	if count == 0 {
		return 1
	}
	return sum / count
}

// at returns v at the indices.
func at[T any](v []T, indices []int) []T {
	out := make([]T, len(indices))
	for t, i := range indices {
		out[t] = v[i]
	}
	return out
}
