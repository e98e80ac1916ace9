package quantmf_test

// This file tests draws of categories: rows of 0 and 1 of which one is 1.

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestSampleCategories: of the rows of a category exactly one is drawn for each sample, as often as its
// probability says; other rows are drawn as without categories, which may name rows that there are not.
func TestSampleCategories(t *testing.T) {
	Slow(t)
	t.Parallel()
	const d, n, draws = 9, 80, 200
	src := rand.New(rand.NewPCG(1, 2))
	x := NewMat(d, n)
	for j := range n {
		latent := src.NormFloat64()
		for i := 3; i < d; i++ {
			x.Set(i, j, latent+src.NormFloat64()/2)
		}
		word := min(max(int(math.Floor(latent+1.5+src.NormFloat64()/2)), 0), 2)
		for i := range 3 {
			x.Set(i, j, 0)
			if x.Set(word, j, 1); j%4 == 0 {
				x.Set(i, j, math.NaN())
			}
		}
		if j%4 == 0 {
			for i := range 3 {
				x.Set(i, j, math.NaN())
			}
		}
		if x.Set(3, j, 0); latent > 0.3 { // of two words
			x.Set(3, j, 1)
		}
		if j%4 == 1 {
			x.Set(3, j, math.NaN())
		}
	}
	m := Fitted(t, FitBQMF, x, 0, WithMissingValues())
	p := m.Reconstruct()
	share := NewMat(4, n)
	for seed := range uint64(draws) {
		got := m.SampleCategories(seed, []int{0, -1, 1, 2, d}, []int{3})
		plain := Mat{}
		if seed == 0 {
			plain = m.Sample(seed)
		}
		for j := range n {
			drawn := 0.0
			for i := range 3 {
				v := got.At(i, j)
				if v != 0 && v != 1 {
					t.Fatalf("%v was drawn", v)
				}
				drawn += v
				share.Set(i, j, share.At(i, j)+v/draws)
			}
			if drawn != 1 {
				t.Fatalf("%v of three were drawn", drawn)
			}
			if v := got.At(3, j); v == 1 {
				share.Set(3, j, share.At(3, j)+1./draws)
			} else if v != 0 {
				t.Fatalf("%v was drawn", v)
			}
			for i := 4; i < d && seed == 0; i++ {
				if got.At(i, j) != plain.At(i, j) {
					t.Fatal("another row is drawn otherwise")
				}
			}
		}
	}
	worst, off := 0.0, 0.0 // by chance .025 and .11
	for j := 0; j < n; j += 4 {
		sum := p.At(0, j) + p.At(1, j) + p.At(2, j)
		gaps := []float64{share.At(3, j+1) - p.At(3, j+1)}
		for i := range 3 {
			gaps = append(gaps, share.At(i, j)-p.At(i, j)/sum)
		}
		for _, gap := range gaps {
			worst, off = max(worst, math.Abs(gap)), off+math.Abs(gap)/n
		}
	}
	if t.Logf("shares of draws are off by %.3f on average, %.3f at most", off, worst); off > 0.03 ||
		worst > 0.13 {
		t.Error("draws are not as probable as the model says")
	}
}
