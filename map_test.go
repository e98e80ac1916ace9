package quantmf

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestMapRange: a map stays within its quantiles to the last bit, however their
// differences round, and inverts nothing beyond the values that it takes.
func TestMapRange(t *testing.T) {
	r := random.Split(71, 0)
	for trial := range 300 {
		m := 2 + r.IntN(20)
		x, q := make([]float64, 3+r.IntN(20)), make([]float64, m)
		for i := range x {
			x[i] = normal(&r)
		}
		for j := range q {
			q[j] = normal(&r) * math.Exp(3*normal(&r))
		}
		slices.Sort(q)
		tr, err := Solve(x, WithLevels(m), WithSquash(Squash(trial%2)), WithEpsilon([]float64{0.1, 0.01, 1e-3}[r.IntN(3)]))
		if err != nil {
			t.Fatal(err)
		}
		f, err := tr.Map(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []float64{math.Inf(-1), -1e300, -3, 0, 3, 1e300, math.Inf(1)} {
			if v := f.At(x); !(v >= q[0] && v <= q[m-1]) {
				t.Fatalf("T(%v) = %v, not from %v to %v", x, v, q[0], q[m-1])
			}
		}
		var data *DataError
		for _, v := range []float64{q[0] - 1e-9, q[m-1] + 1e-9, math.NaN(), math.Inf(1), math.Inf(-1)} {
			if at, err := f.Invert(v); !errors.As(err, &data) || data.Row != -1 || data.Col != -1 {
				t.Fatalf("%v, which the map does not take, is inverted to %v, %v", v, at, err)
			}
		}
	}
}

// TestStepsAtZero: at ε = 0, away from the samples, the map steps half way between the
// two that a boundary divides.
func TestStepsAtZero(t *testing.T) {
	tr, err := Solve([]float64{5, 0, 1, 3}, WithEpsilon(0), WithLevels(2), WithSquash(SquashNone))
	if err != nil {
		t.Fatal(err)
	}
	f, err := tr.Map([]float64{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float64]float64{-1: 10, 0.5: 10, 1.99: 10, 2.01: 20, 4: 20, 9: 20} {
		if got := f.At(x); got != want {
			t.Errorf("T(%v) = %v, want %v", x, got, want)
		}
	}
}
