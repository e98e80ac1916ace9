package quantmf

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quantmf/quantmf/internal/bqmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestBQMFMissingUnlike: a table whose values are missing because they are low or high says so, and one whose
// values are missing at random, by samples, by blocks or not at all does not.
func TestBQMFMissingUnlike(t *testing.T) {
	Slow(t)
	t.Parallel()
	const d, n = 30, 50
	r := rand.New(rand.NewPCG(8, 1))
	x, u, v := NewMat(d, n), make([]float64, d), make([]float64, n)
	for i := range u {
		u[i] = 0.5 + r.Float64()
	}
	for j := range v {
		v[j] = r.NormFloat64()
	}
	for i := range u {
		for j := range v {
			x.Set(i, j, math.Exp(u[i]*v[j]+0.6*r.NormFloat64()))
		}
	}
	for _, of := range []struct {
		name string
		sign float64 // of the warning
		gone func(i, j int, x float64) bool
	}{
		{"whole", 0, func(int, int, float64) bool { return false }},
		{"at random", 0, func(int, int, float64) bool { return r.Float64() < 0.15 }},
		{"by samples", 0, func(i, j int, x float64) bool { return j%5 == 0 && r.Float64() < 0.6 }},
		{"a block", 0, func(i, j int, x float64) bool { return i < 9 && j >= 38 }},
		{"low", -1, func(i, j int, x float64) bool { return x < 0.4 }},
		{"high", 1, func(i, j int, x float64) bool { return x > 2.5 }},
		{"low ones more often", -1, func(i, j int, x float64) bool { return x < 1 && r.Float64() < 0.4 }},
	} {
		t.Run(of.name, func(t *testing.T) {
			given := x.Clone()
			for i := range d {
				for j := range n {
					if i > 0 && of.gone(i, j, x.At(i, j)) {
						given.Set(i, j, math.NaN())
					}
				}
			}
			m, sign := Fitted(t, FitBQMF, given, 0, WithMissingValues()), 0.0
			for _, w := range m.Warnings {
				if u, is := w.(*bqmf.MissingUnlike); is {
					sign = math.Copysign(1, u.MissingShift())
				}
			}
			if sign != of.sign {
				t.Errorf("warnings %v", m.Warnings)
			}
		})
	}
}
