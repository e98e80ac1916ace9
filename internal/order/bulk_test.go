package order_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quantmf/quantmf/internal/order"
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
