package drawn

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
)

// A drawn problem has the ranks of U*V* in every row and q as its sorted values. A fit that is
// the truth has full recovery.
func TestProblem(t *testing.T) {
	p := New(20, 30, 4, 1, 0, 3)
	for i := range p.X.Rows {
		if !slices.Equal(slices.Sorted(slices.Values(p.X.Row(i))), p.Q.Row(i)) {
			t.Errorf("row %d: its sorted values are not q", i)
		}
		for a, w := range p.W.Row(i) {
			for b, v := range p.W.Row(i) {
				if w < v && p.X.At(i, a) >= p.X.At(i, b) {
					t.Errorf("row %d: samples %d and %d are in another order in X", i, a, b)
				}
			}
		}
	}
	// Components may be permuted and scaled, with the rows of V. Only the order of samples that rounding
	// decides may differ: a row of equal numbers in U* makes a constant row.
	u, v := quantmf.NewMat(20, 4), quantmf.NewMat(4, 30)
	for c := range 4 {
		for i := range 20 {
			u.Set(i, (c+1)%4, p.U.At(i, c)*float64(c+1))
		}
		for j := range 30 {
			v.Set((c+1)%4, j, p.V.At(c, j)/float64(c+1))
		}
	}
	r := p.Recovered(p.X, u, v)
	if r.Quantile < 1-1e-9 || r.Order < 0.95 || r.Components < 1-1e-9 {
		t.Errorf("of the truth: %+v", r)
	}
}

// The best assignment is compared with all permutations.
func TestAssign(t *testing.T) {
	score := [][]float64{{0.1, 0.9, 0.3}, {0.8, 0.85, 0.2}, {0.4, 0.7, 0.1}}
	best := math.Inf(-1)
	for _, p := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		best = max(best, score[0][p[0]]+score[1][p[1]]+score[2][p[2]])
	}
	if got := assign(score); math.Abs(got-best) > 1e-15 {
		t.Errorf("%v, not %v", got, best)
	}
}
