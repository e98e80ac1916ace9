package curve

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
)

// The normal distribution function against its quantile, and at its ends.
func TestPhi(t *testing.T) {
	for k := 1; k < 2000; k++ {
		p := float64(k) / 2000
		if got := Phi(elem.NormalQuantile(p)); math.Abs(got-p) > 1e-14 {
			t.Errorf("phi of the quantile of %g is %.17g", p, got)
		}
	}
	for _, z := range []float64{-8, -7.5, 7.5, 8, math.Inf(1), math.Inf(-1)} {
		if got, want := Phi(z), math.Erfc(-z/math.Sqrt2)/2; math.Abs(got-want) > 1e-14 {
			t.Errorf("phi(%g) = %g, want %g", z, got, want)
		}
	}
}
