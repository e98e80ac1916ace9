package order

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// table is a row with the weights of its cells.
type table struct{ row, weights []float64 }

func (m table) Row([]float64, int) []float64     { return m.row }
func (m table) Weights([]float64, int) []float64 { return m.weights }

// TestScores: the score of a value is by the weight of the values below and half of that of its own.
func TestScores(t *testing.T) {
	nan := math.NaN()
	for _, m := range []table{
		{row: []float64{3, nan, 0, -1, 3, 0, 0, -1, -4, 7, nan}},
		{row: []float64{3, 1, 2, 2}}, {row: []float64{-3, -1, 0}}, {row: []float64{nan, nan}},
		{[]float64{3, nan, 0, -1, 3, 0}, []float64{2, 5, 1, 0.5, 1, 3}},
		{[]float64{0, 1, 2, 3}, []float64{1e-9, 1, 1, 1e-9}}, // beyond what a row of four has
	} {
		const by = 1.5
		n, x := len(m.row), make([]float64, len(m.row))
		OK(t, NewScores(nil, n, m, []float64{by}, 1).ReadRow(x, 0))
		lift := max(3, leastScore-elem.NormalQuantile(0.5/float64(n)))
		for j, v := range m.row {
			below, same, all := 0.0, 0.0, 0.0
			for i, u := range m.row {
				weight := 1.0
				if m.weights != nil {
					weight = m.weights[i]
				}
				if u == u {
					all += weight
				}
				if u < v {
					below += weight
				}
				if u == v {
					same += weight
				}
			}
			at := elem.NormalQuantile((below+same/2)/all) + lift
			if want := min(max(at, leastScore), 2*lift-leastScore) * by; !(math.Abs(x[j]-want) < 1e-12) &&
				!(v != v && x[j] != x[j]) {
				t.Errorf("%v, weights %v: score %d is %v, want %v", m.row, m.weights, j, x[j], want)
			}
		}
	}
}
