package quantmf_test

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestLoadings: features that are made of one of three factors each load on one axis each, and their
// correlations with it lie within what the deviations say.
func TestLoadings(t *testing.T) {
	Slow(t)
	t.Parallel()
	const d, n, r = 24, 120, 3
	within, all := 0.0, 0.0
	for seed := range uint64(2) {
		next := normal(seed + 31)
		x, truth := NewMat(d, n), make([]float64, d)
		for j := range n {
			var f [r]float64
			for k := range f {
				f[k] = next()
			}
			for i := range d {
				u := 0.5 + 0.02*float64(i)
				truth[i] = u / math.Hypot(u, 0.7)
				x.Set(i, j, u*f[i%r]+0.7*next())
			}
		}
		m := fitted(t, x)
		mean, dev := m.Loadings()
		if mean.Rows != d || mean.Cols != r || dev.Rows != d || dev.Cols != r {
			t.Fatalf("%d × %d loadings, want %d × %d", mean.Rows, mean.Cols, d, r)
		}
		var axis [r]int
		for i := range d {
			best := 0
			for h := range r {
				if math.Abs(mean.At(i, h)) > math.Abs(mean.At(i, best)) {
					best = h
				}
			}
			if i < r {
				axis[i] = best
			}
			for h := range r {
				want := 0.0
				if h == axis[i%r] {
					want = truth[i]
				}
				if off := math.Abs(mean.At(i, h)) - want; h == best && math.Abs(off) < 1.645*dev.At(i, h) ||
					h != best && math.Abs(mean.At(i, h)) < 1.645*dev.At(i, h) {
					within++
				}
				all++
			}
			if best != axis[i%r] {
				t.Errorf("seed %d: feature %d loads on axis %d, its factor on %d", seed, i, best, axis[i%r])
			}
		}
		m.U.Set(0, 0, 99)
		if mean, _ := m.Loadings(); mean.Rows != 0 {
			t.Error("a changed model has loadings")
		}
	}
	if share := within / all; !(share > 0.75 && share < 0.98) {
		t.Errorf("loadings lie within 1.645 deviations in %.3f of %v", share, all)
	}
	flat := NewMat(3, 9)
	if mean, dev := fitted(t, flat).Loadings(); mean.Rows != 3 || mean.Cols != 0 || dev.Cols != 0 {
		t.Errorf("%d × %d loadings of constant features", mean.Rows, mean.Cols)
	}
	if mean, _ := new(BQMF).Loadings(); mean.Rows != 0 {
		t.Error("the zero model has loadings")
	}
}
