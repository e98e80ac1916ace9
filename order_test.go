package quantmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestOrder compares with the library's stable sort, from any order before, with
// ties, both zeros and infinities.
func TestOrder(t *testing.T) {
	r := random.Split(9, 9)
	for n := 0; n < 300; n++ {
		x := make([]float64, n)
		for i := range x {
			switch x[i] = r.Float64() - 0.5; n % 3 {
			case 1:
				x[i] = math.Round(8 * x[i])
			case 2:
				if r.Float64() < 0.1 {
					x[i] = math.Inf(1 - 2*(i&1))
				}
			}
		}
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int {
			switch {
			case x[a] < x[b]:
				return -1
			case x[a] > x[b]:
				return 1
			}
			return 0
		})
		got, work := make([]int32, n), make([]pair, 2*n)
		order(got, x, work, false)
		if !slices.Equal(got, want) {
			t.Fatalf("n = %d: from nothing %v, want %v", n, got, want)
		}
		if n > 0 {
			lo, hi := bounds(x)
			bucket(got, x, [2]float64{lo, hi}, make([]int32, 2*n))
			order(got, x, work, true)
			if !slices.Equal(got, want) {
				t.Fatalf("n = %d: from buckets %v, want %v", n, got, want)
			}
		}
		for range min(n, 20) { // a few swaps away
			a, b := r.IntN(n), r.IntN(n)
			got[a], got[b] = got[b], got[a]
		}
		order(got, x, work, true)
		if !slices.Equal(got, want) {
			t.Fatalf("n = %d: kept %v, want %v", n, got, want)
		}
	}
}

func BenchmarkOrder(b *testing.B) {
	r := random.Split(9, 9)
	const n, sets = 256, 1024 // more than a processor remembers the branches of
	x := make([][]float64, sets)
	for i := range x {
		x[i] = make([]float64, n)
	}
	perm, work, bins := make([]int32, n), make([]pair, 2*n), make([]int32, 2*n)
	for _, c := range []struct {
		name string
		move float64
	}{{"sorted", 0}, {"moved 0.003", 0.003}, {"moved 0.03", 0.03}, {"anew", 1}} {
		for j := range n {
			v := r.Float64()
			for i := range x {
				x[i][j] = v + c.move*normal(&r)
			}
		}
		b.Run(c.name+"/buckets", func(b *testing.B) {
			for k := range b.N {
				lo, hi := bounds(x[k%sets])
				bucket(perm, x[k%sets], [2]float64{lo, hi}, bins)
				order(perm, x[k%sets], work, true)
			}
		})
		b.Run(c.name+"/merged", func(b *testing.B) {
			for k := range b.N {
				order(perm, x[k%sets], work, false)
			}
		})
	}
}
