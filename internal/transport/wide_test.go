package transport

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestWide: numbers of the wide range against float64 where both can be used, and order at
// the seams of the exponential.
func TestWide(t *testing.T) {
	r := random.Split(72, 0)
	for range 100000 {
		a, b := math.Exp(200*Normal(&r)/3), math.Exp(200*Normal(&r)/3)
		v, w := WideOf(a), WideOf(b)
		if got, want := v.Times(w).Float(), a*b; got != want {
			t.Fatalf("%v·%v = %v, want %v", a, b, got, want)
		}
		if got, want := v.Over(w).Float(), a/b; got != want {
			t.Fatalf("%v/%v = %v, want %v", a, b, got, want)
		}
		if got, want := v.Plus(w).Float(), a+b; got != want {
			t.Fatalf("%v+%v = %v, want %v", a, b, got, want)
		}
	}
	less := func(v, w Wide) bool { return v.e < w.e || v.e == w.e && v.f < w.f }
	for k := -20; k <= 20; k++ {
		v := 512 * float64(k)
		for range 50 {
			v = math.Nextafter(v, math.Inf(-1))
		}
		last := WideExp(v)
		for range 100 {
			v = math.Nextafter(v, math.Inf(1))
			w := WideExp(v)
			if less(w, last) {
				t.Fatalf("e^%v falls", v)
			}
			last = w
		}
	}
}
