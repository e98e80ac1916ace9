package qmf

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestStep follows the rule as the paper prints it, with math.Pow.
func TestStep(t *testing.T) {
	x, moment := []float64{1, -2}, newMoment(nil, 2)
	want, m, v := []float64{1, -2}, make([]float64, 2), make([]float64, 2)
	for step := 1; step <= 300; step++ {
		g := make([]float64, 2)
		for i := range g {
			g[i] = math.Sin(float64(step*(i+1))) + x[i]
			m[i] = 0.9*m[i] + 0.1*g[i]
			v[i] = 0.999*v[i] + 0.001*g[i]*g[i]
			mh := m[i] / (1 - math.Pow(0.9, float64(step)))
			vh := v[i] / (1 - math.Pow(0.999, float64(step)))
			want[i] -= 0.05 * mh / (math.Sqrt(vh) + 1e-8)
		}
		moment.Step(x, g, 0, 2, pace{0.05, step})
		NearAll(t, x, want, 1e-12, "step %d", step)
	}
}

// TestCosine: the rate begins at what was given and falls as (1+cos πt)/2.
func TestCosine(t *testing.T) {
	for i := range 101 {
		p := float64(i) / 100
		Near(t, cosine(p), (1+math.Cos(math.Pi*p))/2, 1e-15, "cosine(%v)", p)
	}
}
