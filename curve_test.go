package quantmf

// Tests of the maps and the intervals of BQMF.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
)

func TestBQMFCurve(t *testing.T) {
	_, given := bent(12, 40, 2, 0.1, 7)
	for i := range given.Data {
		if i%5 != 0 {
			given.Data[i] = math.Round(given.Data[i])
		}
	}
	m := fitBQMF(t, given, 0, WithMissingValues())
	for i := range 12 {
		c, err := m.Map(i)
		if err != nil {
			t.Fatal(err)
		}
		places := append([]float64{-1e9, -9, 9, 1e9}, c.y...)
		for k := -60; k <= 60; k++ {
			places = append(places, float64(k)/13)
		}
		for _, e := range hermiteNodes { // the seams of the tables under every node
			for _, y := range c.y {
				places = append(places, y-e*c.spread)
			}
		}
		for _, w := range places {
			at := w
			for range 40 {
				next := math.Nextafter(at, math.Inf(1))
				if c.At(next) < c.At(at) {
					t.Fatalf("row %d: T falls from %v to %v", i, at, next)
				}
				at = next
			}
		}
		for k := -20; k <= 20; k++ {
			v := c.At(float64(k) / 10)
			w, err := c.Invert(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.At(w); math.Abs(got-v) > 1e-12*math.Abs(v) {
				t.Errorf("row %d: T(%g) = %g, want %g", i, w, got, v)
			}
		}
		if _, err := c.Invert(-1); err == nil {
			t.Error("no error below the range")
		}
	}
}

// A tenth of the cells is hidden; the central intervals hold what they say, values that
// have mass counted by the part of it that lies within (in a closed interval they would
// count whole).
func TestBQMFIntervalsHold(t *testing.T) {
	for name, change := range map[string]func(v float64) float64{
		"continuous": func(v float64) float64 { return v },
		"counts":     func(v float64) float64 { return math.Floor(2 * v) },
	} {
		if testing.Short() && name == "continuous" {
			continue
		}
		hold, cells := [3]float64{}, 0.0
		for seed := range uint64(2) {
			x, _ := bent(100, 90, 3, 0, 20+seed)
			src := random.Split(seed, 3)
			given := x.Clone()
			for i, v := range x.Data {
				x.Data[i] = change(v)
				given.Data[i] = x.Data[i]
				if src.Float64() < 0.1 {
					given.Data[i] = math.NaN()
				}
			}
			m := fitBQMF(t, given, 0, WithMissingValues())
			below, upTo, err := m.Probability(x)
			if err != nil {
				t.Fatal(err)
			}
			for k, p := range []float64{0.5, 0.8, 0.95} {
				lo, hi, err := m.Interval(p)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range given.Data {
					if v == v {
						continue
					}
					if k == 0 {
						cells++
					}
					a, b, from, to := below.Data[i], upTo.Data[i], 0.5-p/2, 0.5+p/2
					switch {
					case b > a:
						hold[k] += max(min(b, to)-max(a, from), 0) / (b - a)
					case a >= from && a <= to:
						hold[k]++
					}
					if inside := x.Data[i] >= lo.Data[i] && x.Data[i] <= hi.Data[i]; !inside && a > from+1e-9 && b < to-1e-9 {
						t.Fatalf("%s: %g has probabilities %g to %g and is not in [%g,%g] of %g", name, x.Data[i], a, b, lo.Data[i], hi.Data[i], p)
					}
				}
			}
		}
		for k, p := range []float64{0.5, 0.8, 0.95} {
			if got := hold[k] / cells; math.Abs(got-p) > 0.03 {
				t.Errorf("%s: %g intervals hold %.3f of %g hidden cells", name, p, got, cells)
			}
		}
	}
}

// The normal distribution function against its quantile, and at its ends.
func TestPhi(t *testing.T) {
	for k := 1; k < 2000; k++ {
		p := float64(k) / 2000
		if got := phi(elem.NormalQuantile(p)); math.Abs(got-p) > 1e-14 {
			t.Errorf("phi of the quantile of %g is %.17g", p, got)
		}
	}
	for _, z := range []float64{-8, -7.5, 7.5, 8, math.Inf(1), math.Inf(-1)} {
		if got, want := phi(z), math.Erfc(-z/math.Sqrt2)/2; math.Abs(got-want) > 1e-14 {
			t.Errorf("phi(%g) = %g, want %g", z, got, want)
		}
	}
}
