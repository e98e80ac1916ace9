package quantmf_test

// This file tests draws of categories: rows of 0 and 1 of which one is 1.

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
)

// TestSampleCategories: of the rows of a category exactly one is drawn for each sample, as often as its
// probability says; other rows are drawn as without categories, which may name rows that there are not.
func TestSampleCategories(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a fit and hundreds of draws")
	}
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
	}
	m := must(FitBQMF(t.Context(), x, 0, WithMissingValues()))(t)
	category := []int{0, -1, 1, 2, d}
	ones := NewMat(d, n)
	for k := range ones.Data {
		ones.Data[k] = 1
	}
	p, _, err := m.Probability(ones)
	if err != nil {
		t.Fatal(err)
	}
	for k, below := range p.Data {
		p.Data[k] = 1 - below
	}
	share := NewMat(3, n)
	for seed := range uint64(draws) {
		got := m.SampleCategories(seed, category)
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
			for i := 3; i < d && seed == 0; i++ {
				if got.At(i, j) != plain.At(i, j) {
					t.Fatal("another row is drawn otherwise")
				}
			}
		}
	}
	worst, off := 0.0, 0.0 // by chance .025 and .11
	for j := 0; j < n; j += 4 {
		sum := p.At(0, j) + p.At(1, j) + p.At(2, j)
		for i := range 3 {
			gap := math.Abs(share.At(i, j) - p.At(i, j)/sum)
			worst, off = max(worst, gap), off+gap/(3*n/4)
		}
	}
	if t.Logf("shares of draws are off by %.3f on average, %.3f at most", off, worst); off > 0.03 ||
		worst > 0.13 {
		t.Error("draws are not as probable as the model says")
	}
}
