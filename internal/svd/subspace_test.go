package svd

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestSubspace takes a matrix of known vectors and a falling spectrum back apart.
func TestSubspace(t *testing.T) {
	source := random.Split(3, 0)
	const d, n, rank = 40, 30, 12
	u, v := orthonormal(&source, d, rank), orthonormal(&source, n, rank)
	x := make([][]float64, d)
	for i := range x {
		x[i] = make([]float64, kernel.Pad(n))
		for h := range rank {
			for j := range n {
				x[i][j] += math.Pow(0.3, float64(h)) * u[h][i] * v[h][j]
			}
		}
	}
	for _, workers := range []int{1, 3} {
		p := pool.New(workers, d)
		s := NewSubspace(d, n, rank, func(_, i int) []float64 { return x[i] }, p)
		p.Close()
		left, right := make([]float64, d), make([]float64, n)
		for h := range 6 {
			size := s.Vectors(left, right, h)
			Near(t, size, math.Pow(0.3, float64(h)), 1e-12, "value")
			sign := 1.0
			if left[0]*u[h][0] < 0 {
				sign = -1
			}
			for i := range left {
				Near(t, left[i], sign*u[h][i], 1e-11, "left")
			}
			for j := range right {
				Near(t, right[j], sign*v[h][j], 1e-11, "right")
			}
		}
	}
}

// TestNonNegative: of a pair of vectors the larger of the positive and the negative parts is taken, as long
// as each other, and filled.
func TestNonNegative(t *testing.T) {
	for _, c := range []struct{ u, v, wantU, wantV []float64 }{
		{[]float64{3, 0, 4, -2}, []float64{-1, 2, 2}, []float64{3, 0, 4, 0}, []float64{0, 2, 2}},
		{[]float64{1, -3, -4, 0}, []float64{2, -1.5, -1.5}, []float64{0, 3, 4, 0}, []float64{0, 1.5, 1.5}},
	} {
		p := pool.New(1, len(c.u))
		s := NewSubspace(len(c.u), len(c.v), 1, func(_, i int) []float64 {
			row := make([]float64, kernel.Pad(len(c.v)))
			for j, y := range c.v {
				row[j] = c.u[i] * y
			}
			return row
		}, p)
		p.Close()
		u, v := make([]float64, len(c.u)), make([]float64, len(c.v))
		if s.NonNegative(u, v, 1) || s.NonNegative(u, v, 3) || !s.NonNegative(u, v, 0) {
			t.Error("the rank is not 1")
		}
		uu, vv := 0.0, 0.0
		for _, x := range c.wantU {
			uu += x * x
		}
		for _, y := range c.wantV {
			vv += y * y
		}
		by := math.Pow(vv/uu, 0.25)
		fill(c.wantU)
		fill(c.wantV)
		for i, x := range c.wantU {
			Near(t, u[i], by*x, 1e-12, "U")
		}
		for j, y := range c.wantV {
			Near(t, v[j], y/by, 1e-12, "V")
		}
	}
}
