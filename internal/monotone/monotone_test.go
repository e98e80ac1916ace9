package monotone

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
)

// TestPinned: the step keeps the sum of the increments and never divides by
// nothing, however little weight a level has.
func TestPinned(t *testing.T) {
	r := random.Split(61, 0)
	for range 2000 {
		m := 1 + r.IntN(8)
		d, num, den := make([]float64, m), make([]float64, m), make([]float64, m)
		for l := range d {
			d[l], num[l], den[l] = math.Exp(10*normal(&r)), math.Exp(20*normal(&r)), math.Exp(5*normal(&r))
			if r.IntN(3) == 0 {
				num[l] = 0
			}
		}
		all := total(num)
		span := math.Exp(5 * normal(&r))
		before := total(d)
		pinned(d, num, den, span, 0)
		if total(d)-total(d) != 0 || all > 0 && math.Abs(total(d)-span) > 1e-9*span || all == 0 && total(d) != before {
			t.Fatalf("num %v, den %v, span %v: %v", num, den, span, d)
		}
	}
}

func normal(r *random.Source) float64 { return elem.NormalQuantile((r.Float64() + 0x1p-54)) }

func total(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}
