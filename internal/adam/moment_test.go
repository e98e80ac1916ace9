package adam

import (
	"math"
	"testing"
)

// TestCosine: the rate begins at what was given and falls as (1+cos πt)/2.
func TestCosine(t *testing.T) {
	for i := range 101 {
		p := float64(i) / 100
		if want := (1 + math.Cos(math.Pi*p)) / 2; math.Abs(Cosine(p)-want) > 1e-15 {
			t.Errorf("cosine(%v) = %v, want %v", p, Cosine(p), want)
		}
	}
}
