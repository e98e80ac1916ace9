package account_test

// This file tests the coordinates of samples.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestCoordinates: distances are those of UV for a BQMF and those of the rows of V in standard deviations
// otherwise, the axes are orthogonal and fall, and their shares sum to 1.
func TestCoordinates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method  string
		d, k, n int
		axes    int
	}{{"BQMF", 9, 3, 12, 2}, {"BQMF", 6, 4, 5, 3}, {"NMF", 9, 4, 12, 3}, {"QMF", 9, 5, 4, 3},
		{"NMF", 5, 1, 6, 1}} {
		u, v := quantmf.NewMat(c.d, c.k), quantmf.NewMat(c.k, c.n)
		for i := range u.Data {
			u.Data[i] = math.Sin(float64(3*i*i + i))
		}
		for i := range v.Data {
			v.Data[i] = math.Cos(float64(i * i % 23))
		}
		if c.k > 1 { // a component that is another, or the same in all samples
			for i := range c.d {
				u.Set(i, 1, 2*u.At(i, 0))
			}
			for j := range c.n {
				if v.Set(0, j, 3); c.method == "BQMF" {
					v.Set(0, j, v.At(1, j))
				}
			}
		}
		of := v
		if c.method == "BQMF" {
			of = quantmf.NewMat(c.d, c.n)
			for i := range c.d {
				account.Mixture(of.Row(i), u, v, i)
			}
		}
		scale := func(row []float64) float64 {
			if c.method == "BQMF" {
				return 1
			}
			mean, square := 0.0, 0.0
			for _, a := range row {
				mean += a / float64(len(row))
			}
			for _, a := range row {
				square += (a - mean) * (a - mean) / float64(len(row))
			}
			return math.Sqrt(square)
		}
		axes, shares := account.Coordinates(c.method, u, v)
		if axes.Rows != c.axes || axes.Cols != c.n || len(shares) != c.axes {
			t.Errorf("%s, k = %d: %d axes of %d samples, shares %v", c.method, c.k, axes.Rows, axes.Cols,
				shares)
			continue
		}
		for i := range c.n {
			for j := range i {
				got, want := 0.0, 0.0
				for a := range axes.Rows {
					got += math.Pow(axes.At(a, i)-axes.At(a, j), 2)
				}
				for r := range of.Rows {
					if s := scale(of.Row(r)); s > 1e-9 {
						want += math.Pow((of.At(r, i)-of.At(r, j))/s, 2)
					}
				}
				Close(t, got, want, 1e-9, "%s: from sample %d to %d", c.method, i, j)
			}
		}
		sum, last := 0.0, math.Inf(1)
		for a, s := range shares {
			if sum += s; s > last {
				t.Errorf("%s: shares %v", c.method, shares)
			}
			last = s
			for b := range a {
				dot := 0.0
				for j := range c.n {
					dot += axes.At(a, j) * axes.At(b, j)
				}
				if math.Abs(dot) > 1e-9 {
					t.Errorf("%s: axes %d and %d are not orthogonal: %v", c.method, a, b, dot)
				}
			}
		}
		Near(t, sum, 1, 1e-12, "%s: shares sum to", c.method)
	}
	if axes, _ := account.Coordinates("NMF", quantmf.NewMat(3, 2), quantmf.NewMat(2, 4)); axes.Rows != 0 {
		t.Error("axes of samples that are all alike")
	}
}
