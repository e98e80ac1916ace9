package order

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// ends returns the least and the largest of x.
func ends(x []float64) [2]float64 { return [2]float64{slices.Min(x), slices.Max(x)} }

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
		got := make([]int32, n)
		var work Sorter
		work.Resize(nil, n)
		work.Sort(got, x)
		EqualAll(t, got, want, "n = %d: from nothing", n)
		if n > 0 {
			work.Buckets(got, x, x, ends(x))
			EqualAll(t, got, want, "n = %d: from buckets", n)
		}
		for range min(n, 20) { // a few swaps away
			a, b := r.IntN(n), r.IntN(n)
			got[a], got[b] = got[b], got[a]
		}
		work.Mend(got, x)
		EqualAll(t, got, want, "n = %d: kept", n)
	}
}

func BenchmarkOrder(b *testing.B) {
	r := random.Split(9, 9)
	const n, sets = 256, 1024 // more than a processor remembers the branches of
	x := make([][]float64, sets)
	for i := range x {
		x[i] = make([]float64, n)
	}
	perm := make([]int32, n)
	var work Sorter
	work.Resize(nil, n)
	for _, c := range []struct {
		name string
		move float64
	}{{"sorted", 0}, {"moved 0.003", 0.003}, {"moved 0.03", 0.03}, {"anew", 1}} {
		for j := range n {
			v := r.Float64()
			for i := range x {
				x[i][j] = v + c.move*elem.NormalQuantile(r.Float64()+0x1p-54)
			}
		}
		b.Run(c.name+"/buckets", func(b *testing.B) {
			for k := range b.N {
				work.Buckets(perm, x[k%sets], x[k%sets], ends(x[k%sets]))
			}
		})
		b.Run(c.name+"/merged", func(b *testing.B) {
			for k := range b.N {
				work.Sort(perm, x[k%sets])
			}
		})
	}
}
