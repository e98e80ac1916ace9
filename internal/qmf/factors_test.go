package qmf

// Tests of the starts of U and V that need no other fit.

import (
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestSubspace: the vectors are orthonormal and signed by their largest part, and X v = s u where the
// subspace is all there is. The squares of all s sum to those of X.
func TestSubspace(t *testing.T) {
	x := toy(2, 40)
	x.Cols = 12
	x = x.clone()
	s := Settings{Loss: 1}
	sub := subspace(Must(cellsOf(x, &s))(t), 5, Workers(t, 1))
	dot := func(a, b []float64) (sum float64) {
		for j, v := range a {
			sum += v * b[j]
		}
		return sum
	}
	left, right, largest, squares := make([]float64, x.Rows), make([]float64, x.Cols), 0.0, 0.0
	for h := range 12 {
		size := sub.Vectors(left, right, h)
		largest = max(largest, size)
		squares += size * size
		for i := range x.Rows {
			Near(t, dot(x.Row(i), right), size*left[i], 1e-11*largest, "vectors %d, row %d: Xv, by su", h, i)
		}
		if norm := dot(right, right); math.Abs(norm-1) > 1e-12 || slices.Max(right) < -slices.Min(right) {
			t.Errorf("vector %d: norm² %v, from %v to %v", h, norm, slices.Min(right), slices.Max(right))
		}
		Near(t, sub.Values()[h], size, 1e-9*largest, "singular value %d", h)
	}
	Near(t, squares, dot(x.Data, x.Data), 1e-9*squares, "the sum of the squares")
}
