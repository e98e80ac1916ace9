package quantmf_test

import (
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
)

// TestBendOfBulk: features that are lines among all samples but a far one are straight, though a limit of the
// measurement keeps that one below the line of some of them.
func TestBendOfBulk(t *testing.T) {
	t.Parallel()
	const d, n, limited = 60, 80, 5
	r := rand.New(rand.NewPCG(5, 6))
	v := make([]float64, n)
	for j := range v {
		v[j] = 1 + r.Float64()
	}
	v[7] = 60
	x := NewMat(d, n)
	for i := range d {
		u := 1 + r.Float64()
		for j, value := range v {
			if i < limited {
				value = min(value, 2.5)
			}
			x.Set(i, j, u*value*(1+0.01*r.Float64()))
		}
	}
	q := Fitted(t, FitQMF, x, 1)
	for i, bend := range q.Bend() {
		if bend > 0.05 {
			t.Errorf("feature %d: bend %.3f", i, bend)
		}
	}
}
