package svd

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
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
		s := NewSubspace(d, n, rank, 4, 16, func(_, i int) []float64 { return x[i] }, p)
		p.Close()
		left, right := make([]float64, d), make([]float64, n)
		for h := range 6 {
			size := s.Vectors(left, right, h)
			near(t, "value", size, math.Pow(0.3, float64(h)), 10)
			sign := 1.0
			if left[0]*u[h][0] < 0 {
				sign = -1
			}
			for i := range left {
				near(t, "left", left[i], sign*u[h][i], 100)
			}
			for j := range right {
				near(t, "right", right[j], sign*v[h][j], 100)
			}
		}
	}
}
