package order_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/order"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestBulk(t *testing.T) {
	even := func(n int, more ...float64) []float64 { // 0 to 1 in steps
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(i) / float64(n-1)
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(a, b int) { v[a], v[b] = v[b], v[a] })
		return append(more, v...)
	}
	zerosAndOnes := func(more float64) []float64 {
		return append(slices.Repeat([]float64{0, 1}, 49), 1, more)
	}
	for _, c := range []struct {
		name      string
		v         []float64
		low, high float64
	}{
		{"one", []float64{3}, 3, 3},
		{"two", []float64{3, -1}, -1, 3},
		{"three", []float64{9, 0, 1}, 0, 1},
		{"three, the lowest far", []float64{0, 10, 11}, 10, 11},
		{"all near", even(100), 0, 1},
		{"one far above", even(99, 50), 0, 1},
		{"one far below", even(99, -50), 0, 1},
		{"one at each end", even(98, -50, 50), 0, 1},
		{"as far as is not far", even(99, 3.9), 0, 3.9},
		{"a little farther", even(99, 4), 0, 1},
		{"three in a hundred are no far ones", even(97, 50, 51, 52), 0, 52},
		{"one in ten", even(9, 30), 0, 1},
		{"zeros but for some", append(make([]float64, 98), 1, 2), 0, 2},
		{"as far above as is not far", zerosAndOnes(4), 0, 4},
		{"as far below as is not far", zerosAndOnes(-3), -3, 1},
		{"the first of two shortest intervals", append(slices.Repeat([]float64{1}, 97), 4.5, 2, 0), 0, 2},
		{"ends of float64", []float64{-math.MaxFloat64, 0, math.MaxFloat64}, -math.MaxFloat64,
			math.MaxFloat64},
	} {
		t.Run(c.name, func(t *testing.T) {
			if low, high := order.Bulk(c.v); low != c.low || high != c.high {
				t.Errorf("from %v to %v, want from %v to %v", low, high, c.low, c.high)
			}
		})
	}
}

// TestBulkOfSorted compares with what the whole order of the values says: of many, few and long rows, with
// ties, far values and a trend, and of their negatives. Among thousands of short ones there are some whose
// sample misleads.
func TestBulkOfSorted(t *testing.T) {
	bulk := func(v []float64) (low, high float64) {
		s := slices.Sorted(slices.Values(v))
		n := len(s)
		count := max(n-(n+49)/50, 1)
		low, high = s[0], s[count-1]
		for a := range n - count + 1 {
			if s[a+count-1]-s[a] < high-low {
				low, high = s[a], s[a+count-1]
			}
		}
		reach := float64(3 * (high - low))
		if reach == 0 {
			return s[0], s[n-1]
		}
		s = slices.DeleteFunc(s, func(a float64) bool { return a < low-reach || a > high+reach })
		return s[0], s[len(s)-1]
	}
	// Each draws of a normal z and a place in the row, from 0 to 1.
	for name, draw := range map[string]func(z, place float64) float64{
		"normal":               func(z, _ float64) float64 { return z },
		"heavy tails":          func(z, _ float64) float64 { return math.Sinh(3 * z) },
		"far above":            func(z, _ float64) float64 { return math.Exp(5 * z) },
		"many zeros":           func(z, _ float64) float64 { return max(z, 0) },
		"hardly any but zeros": func(z, _ float64) float64 { return max(z-2.3, 0) },
		"two values":           func(z, _ float64) float64 { return math.Copysign(1, z) },
		"rounded":              func(z, _ float64) float64 { return math.Round(z) + 0 }, // no -0 beside 0
		"in order":             func(_, place float64) float64 { return place },
		"trend":                func(z, place float64) float64 { return place + 0.1*z },
	} {
		r := rand.New(rand.NewPCG(3, 4))
		for trial := range 3000 {
			v := make([]float64, 1+r.IntN(300))
			if trial == 0 {
				v = make([]float64, 20_000)
			}
			for j := range v {
				v[j] = draw(r.NormFloat64(), float64(j)/float64(len(v)))
			}
			for range 2 {
				wantLow, wantHigh := bulk(v)
				low, high := order.Bulk(v)
				Same(t, []float64{low, high}, []float64{wantLow, wantHigh}, "%s, %d values", name, len(v))
				for j := range v {
					v[j] = -v[j]
				}
			}
		}
	}
}

// TestBend: a line has no bend, whatever far samples do; a curve has 1-R² of its best line; constants have 0.
func TestBend(t *testing.T) {
	const n = 100
	for name, c := range map[string]struct {
		at   func(w float64) float64
		far  float64 // T of a sample at 1e6
		want float64
	}{
		"line":     {func(w float64) float64 { return 2*w + 1 }, -5, 0},
		"constant": {func(float64) float64 { return 3 }, 3, 0},
		// of w² at whole w from 0 to n-1, R² = 15(n-1)²/((2n-1)(8n-11)) by the moments of whole numbers
		"square": {func(w float64) float64 { return w * w }, 0, 1 - 15*99.*99/(199*789)},
	} {
		w, v := []float64{1e6}, []float64{c.far}
		for j := range n {
			w, v = append(w, float64(j)), append(v, c.at(float64(j)))
		}
		if got := order.Bend(w, v); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: a bend of %v, want %v", name, got, c.want)
		}
	}
}
