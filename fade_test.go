package quantmf

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quantmf/quantmf/internal/bqmf"
)

// TestBQMFWithoutStructure: where a table has no structure all components fade, and the fit comes to rest
// soon and says that it found none; a weak component is not taken for none.
func TestBQMFWithoutStructure(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name          string
		d, n, epochs  int
		share, orders float64 // of the squares that one component has; of magnitude that the values go over
		found         bool
	}{
		{"noise", 30, 25, 20, 0, 1, false},
		{"few rows", 5, 40, 25, 0, 1, false},
		{"few samples", 60, 8, 60, 0, 1, false},
		{"far values", 40, 40, 25, 0, 8, false},
		{"a weak component", 100, 60, 60, 0.12, 1, true},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(2, 4))
			x, u, v := NewMat(of.d, of.n), make([]float64, of.d), make([]float64, of.n)
			for i := range u {
				u[i] = r.NormFloat64()
			}
			for j := range v {
				v[j] = r.NormFloat64()
			}
			for i := range u {
				for j := range v {
					z := math.Sqrt(of.share)*u[i]*v[j] + math.Sqrt(1-of.share)*r.NormFloat64()
					x.Set(i, j, math.Exp(of.orders*z))
				}
			}
			done := 0.0
			m := Fitted(t, FitBQMF, x, 0, WithProgress(func(p Progress) error { done = p.Done; return nil }))
			none := false
			for _, w := range m.Warnings {
				_, is := w.(bqmf.NoComponent)
				none = none || is
			}
			if epochs := len(m.History) - 1; epochs > of.epochs || none == of.found || len(m.Warnings) > 1 {
				t.Errorf("%d epochs, warnings %v", epochs, m.Warnings)
			}
			if done != 1 {
				t.Errorf("the last report says that %v of the work is done", done)
			}
		})
	}
}
