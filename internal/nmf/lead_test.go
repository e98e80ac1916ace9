package nmf

import (
	"cmp"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestHeavy: the rows that lead are the largest, of equal ones the first, in their order; none where they are
// too few for the components, have too little, or have nothing.
func TestHeavy(t *testing.T) {
	r := random.Split(6, 1)
	found := 0
	for trial := range 600 {
		k, d := 1+trial%3, 8+int(r.Uint64()%300)
		kinds := uint64(2 + trial%9) // so few sizes that many are equal
		sizes, all := make([]float64, d), 0.0
		for i := range sizes {
			s := float64(r.Uint64() % kinds)
			sizes[i] = s * s * s * s
			if trial%2 == 0 && i%16 == 0 {
				sizes[i] *= 100
			}
			all += sizes[i]
		}
		order := make([]int, d)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
		var want []int
		some, most := 0.0, min(16*k, d/8)
		for _, i := range order[:most] {
			if sizes[i] > 0 {
				want = append(want, i)
				some += sizes[i]
			}
		}
		slices.Sort(want)
		if most < 4*k || some < 0.6*all {
			want = nil
		}
		if got := Heavy(sizes, k); !slices.Equal(got, want) {
			t.Fatalf("rank %d: of %v rows %v lead, want %v", k, sizes, got, want)
		}
		if len(want) > 0 {
			found++
		}
	}
	if found < 100 || found > 500 {
		t.Errorf("in %d of 600 cases rows lead", found)
	}
	if got := Heavy(make([]float64, 100), 2); len(got) != 0 {
		t.Errorf("of zeros %v lead", got)
	}
}
