package monotone

import (
	"math"
	"slices"
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

// TestPinnedStep: the step is D num/(den+μ) for one μ, which the level of the least den tells.
func TestPinnedStep(t *testing.T) {
	r := random.Split(62, 0)
	for range 500 {
		m := 1 + r.IntN(8)
		d, num, den := make([]float64, m), make([]float64, m), make([]float64, m)
		least := 0
		for l := range d {
			d[l], num[l], den[l] = math.Exp(2*normal(&r)), math.Exp(2*normal(&r)), math.Exp(2*normal(&r))
			if den[l] < den[least] {
				least = l
			}
		}
		was, span := slices.Clone(d), math.Exp(4*normal(&r))
		pinned(d, num, den, span, 0)
		for l, got := range d {
			want := was[l] * num[l] / (den[l] - den[least] + was[least]*num[least]/d[least])
			if math.Abs(got-want) > 1e-10*want {
				t.Fatalf("num %v, den %v, span %v: level %d has %v, want %v", num, den, span, l, got, want)
			}
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
