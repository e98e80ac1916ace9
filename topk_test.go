package quantmf

// Tests of soft order statistics of few targets: single quantiles, the k largest, and the
// weights of levels that collect them.

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestSoftQuantiles(t *testing.T) {
	x := []float64{9, 1, 5, 3, 7}
	hard := WithEpsilon(0)
	got := Must(SoftQuantiles(x, []float64{0.5, 0, 1, 0.5, 0.25}, hard))(t)
	// The shares at 0 and 0.25 must not overlap: a sixth of the samples each. That
	// at 0.25 is from 1/6 to 1/3, of which the first sample ends at 1/5.
	NearAll(t, got, []float64{5, 1, 9, 5, 0.2*1 + 0.8*3}, 1e-12, "quantiles")
	even, _ := SoftQuantiles([]float64{4, 1, 3, 2}, []float64{0.5}, hard)
	NearAll(t, even, []float64{2.5}, 1e-12, "median of four")
	// In any order the same, soft as well, and between their neighbours.
	r := random.Split(31, 0)
	row := make([]float64, 101)
	for i := range row {
		row[i] = Normal(&r)
	}
	a := Must(SoftQuantiles(row, []float64{0.1, 0.5, 0.9}, WithEpsilon(0.001)))(t)
	b, _ := SoftQuantiles(row, []float64{0.9, 0.1, 0.5}, WithEpsilon(0.001))
	NearAll(t, b, []float64{a[2], a[0], a[1]}, 0, "order")
	sorted := slices.Clone(row)
	slices.Sort(sorted)
	for i, l := range []int{10, 50, 90} {
		Near(t, a[i], sorted[l], 0.3, "soft quantile")
	}
	// Levels closer than 1/n, and at the ends.
	if v, err := SoftQuantiles(x, []float64{0.5, 0.5001, 0, 0.0001, 1}, WithEpsilon(0.01)); err != nil ||
		notFinite(v) >= 0 {
		t.Errorf("%v, %v", v, err)
	}
}

func TestSoftTopK(t *testing.T) {
	for k, want := range map[int][]float64{1: {2, 1}, 2: {1, 1, 1}, 3: {1, 1, 1}} {
		NearAll(t, Must(TopKWeights(3, k))(t), want, 0, "weights of the %v largest of 3", k)
	}
	x := []float64{3, 8, 1, 9, 4}
	got := Must(SoftTopK(x, 2, WithEpsilon(0)))(t)
	NearAll(t, got, []float64{9, 8}, 1e-12, "top 2")
	all, _ := SoftTopK(x, 5, WithEpsilon(0))
	NearAll(t, all, []float64{9, 8, 4, 3, 1}, 1e-12, "all")
	soft, _ := SoftTopK(x, 3)
	if !slices.IsSortedFunc(soft, func(a, b float64) int { return cmp.Compare(b, a) }) {
		t.Errorf("not falling: %v", soft)
	}
	mask, _ := SoftQuantile(x, []float64{0, 1}, WithTargetWeights([]float64{3, 2}))
	Near(t, TotalOf(mask), 2, 1e-8, "the mask sums to")
}

// TestQuantileWeightsSum: shares do not overlap, at the walls and for levels that differ by
// rounding.
func TestQuantileWeightsSum(t *testing.T) {
	third := 0.1 + 0.2
	for _, c := range []struct {
		levels []float64
		width  float64
		want   []float64
	}{
		{[]float64{0, 1}, 1, []float64{0.5, 0.5}},
		{[]float64{0.2, 0.9}, 1, []float64{0.5, 0.5}},
		{[]float64{1, 0}, 0.6, []float64{0.5, 0.5}},
		{[]float64{0.3, third, 0.8}, 0.2, []float64{0.2, 0.2, 0.3, 0.2, 0.1}},
		{[]float64{0, 5e-17, 1 - 0x1p-53, 1}, 0.25, []float64{0.25, 0.5, 0.25}},
	} {
		b, at, err := QuantileWeights(c.levels, c.width)
		OK(t, err)
		if len(b) != len(c.want) {
			t.Errorf("levels %v, width %v: weights %v, want %v", c.levels, c.width, b, c.want)
			continue
		}
		NearAll(t, b, c.want, 1e-15, "weights")
		for i, j := range at {
			if l := min(max(c.levels[i], b[j]/2),
				1-b[j]/2); math.Abs(TotalOf(b[:j])+b[j]/2-l) > 1e-6*c.width &&
				len(b) > 2 {
				t.Errorf("levels %v, width %v: level %v is at %v", c.levels, c.width, c.levels[i],
					TotalOf(b[:j])+b[j]/2)
			}
		}
	}
	// The median of four is that of the usual rule, also where it is asked for twice.
	s := Must(SoftQuantiles([]float64{4, 1, 3, 2}, []float64{0.5, 0.5 + 1e-15}, WithEpsilon(0)))(t)
	NearAll(t, s, []float64{2.5, 2.5}, 1e-12, "medians")
}

// TestQuantileWeights: the shares are those of the definition: centred on the levels, within [0,1], and as
// wide as is asked for or as they can be without overlap, which is found here by halving.
func TestQuantileWeights(t *testing.T) {
	r := random.Split(77, 0)
	for trial := range 400 {
		levels := make([]float64, 1+r.IntN(5))
		for i := range levels {
			switch r.IntN(6) {
			case 0:
				levels[i] = 0
			case 1:
				levels[i] = 1
			case 2:
				levels[i] = r.Float64() / 20
			case 3:
				levels[i] = 1 - r.Float64()/20
			case 4:
				levels[i] = levels[r.IntN(i+1)]
			default:
				levels[i] = r.Float64()
			}
		}
		asked := []float64{1, 0.5, 0.1, r.Float64()*0.99 + 0.01}[trial%4]
		centers := slices.Compact(slices.Sorted(slices.Values(levels)))
		from := func(l, w float64) float64 { return min(max(l-w/2, 0), 1-w) }
		apart := func(w float64) bool {
			for c := 1; c < len(centers); c++ {
				if from(centers[c-1], w)+w > from(centers[c], w) {
					return false
				}
			}
			return true
		}
		low, high := 0.0, asked
		if apart(asked) {
			low = asked
		}
		for range 60 {
			if middle := (low + high) / 2; apart(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		b, at, err := QuantileWeights(levels, asked)
		OK(t, err)
		if math.Abs(TotalOf(b)-1) > 1e-12 || slices.Min(b) <= 0 || len(b) > 2*len(centers)+1 {
			t.Errorf("%v, %v: weights %v", levels, asked, b)
		}
		for i, l := range levels {
			if start, width := TotalOf(b[:at[i]]), b[at[i]]; math.Abs(width-low) > 1e-9 ||
				math.Abs(start-from(l, low)) > 1e-9 {
				t.Errorf("%v, %v: the share at %v is from %v of width %v, want from %v of width %v", levels,
					asked, l, start, width, from(l, low), low)
			}
		}
		if t.Failed() {
			return
		}
	}
}
