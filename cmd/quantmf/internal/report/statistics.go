package report

// This file holds what the page says of features and components in numbers.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf"
)

// product returns UV.
func product(u, v quantmf.Mat) quantmf.Mat {
	w := quantmf.NewMat(u.Rows, v.Cols)
	for i := range w.Rows {
		row := w.Row(i)
		for c, a := range u.Row(i) {
			for j, b := range v.Row(c) {
				row[j] += a * b
			}
		}
	}
	return w
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

// deviation returns the standard deviation.
func deviation(x []float64) float64 {
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m) / float64(len(x))
	}
	return math.Sqrt(sum)
}

// divergence is the sum of x log(x/y) - x + y. A y of next to nothing counts as
// the floor, as in the fit itself.
func divergence(x []float64, y func(j int) float64, floor float64) float64 {
	sum := 0.0
	for j, v := range x {
		w := max(y(j), floor)
		if v > 0 {
			sum += v*math.Log(v/w) - v
		}
		sum += w
	}
	return max(sum, 0)
}

// deviance returns, per feature, the divergence from its own mean over the
// samples, and from the fit.
func deviance(x, fit quantmf.Mat) (total, left []float64) {
	total, left = make([]float64, x.Rows), make([]float64, x.Rows)
	for i := range x.Rows {
		row, fitted := x.Row(i), fit.Row(i)
		if slices.Min(row) < slices.Max(row) { // else what is left is rounding
			m := mean(row)
			total[i] = divergence(row, func(int) float64 { return m }, 0)
			left[i] = divergence(row, func(j int) float64 { return fitted[j] }, 1e-12*m)
		}
	}
	return total, left
}

// explained is the part of total that is not left; all of nothing.
func explained(total, left float64) float64 {
	if total == 0 {
		return 1
	}
	return 1 - left/total
}

// shares returns, per feature, how much of what differs in (UV)_i between
// samples each component brings: U_ic times the deviation of V_c, of sum 1.
func shares(u, v quantmf.Mat) quantmf.Mat {
	s := u.Clone()
	for i := range s.Rows {
		row, sum := s.Row(i), 0.0
		for c := range row {
			row[c] *= deviation(v.Row(c))
			sum += row[c]
		}
		for c := range row {
			if sum > 0 {
				row[c] /= sum
			}
		}
	}
	return s
}

// largest returns the indices of the count largest of v, the largest first.
func largest(v []float64, count int) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	return order[:min(count, len(order))]
}

// at returns v at the indices.
func at[T any](v []T, indices []int) []T {
	out := make([]T, len(indices))
	for t, i := range indices {
		out[t] = v[i]
	}
	return out
}
