package quantmf

// Tests of the steps of U and V by the method of Gauss and Newton: curvatures against second
// differences, hostile data, and the penalty. TestAuthorsCurves holds how far few epochs lead.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestGaussHostile: on data that leave steps without a scale of their own the loss ends below where
// it began, and no epoch raises it far; all stays finite. The maps are not shrunk: shrinkage
// itself raises the loss.
func TestGaussHostile(t *testing.T) {
	Slow(t)
	src := random.Split(4, 4)
	base := first(toy(1), 40)
	change := func(f func(i, j int, v float64) float64) Mat {
		y := base.Clone()
		for i := range y.Rows {
			for j, v := range y.Row(i) {
				y.Set(i, j, f(i, j, v))
			}
		}
		return y
	}
	type kind struct {
		name string
		opts []FitOption
	}
	options := []kind{{"", nil}, {"Frobenius", []FitOption{WithLoss(Frobenius)}},
		{"1.5", []FitOption{WithLoss(1.5)}},
		{"all rows", []FitOption{WithBatch(1000)}}, {"one row", []FitOption{WithBatch(1)}},
		{"pinned", []FitOption{WithEnds(EndsPinned)}}}
	base = first(base, Draws(40, 16, 14))
	base.Cols = Draws(80, 40, 40)
	for turn, c := range []struct {
		name string
		x    Mat
		k    int
	}{
		{"rows from 1e-6 to 1e6",
			change(func(i, j int, v float64) float64 { return v * math.Pow(10, float64(i%13)-6) }), 5},
		{"zeros", change(func(i, j int, v float64) float64 {
			if src.Float64() < 0.8 {
				return 0
			}
			return v
		}), 5},
		{"constant rows", change(func(i, j int, v float64) float64 {
			if i%3 > 0 {
				return float64(i % 2)
			}
			return v
		}), 5},
		{"rank above the samples", first(base, 12), 30},
		{"1e-30", change(func(i, j int, v float64) float64 { return v * 1e-30 }), 5},
		{"outliers", change(func(i, j int, v float64) float64 {
			if j == i%base.Cols {
				return v * 1e8
			}
			return v
		}), 5},
	} {
		for at, o := range options {
			// without QUANTMF_LONG half of the options
			if testing.Short() && at != turn%2 || !Long && at > 0 && (turn+at)%2 > 0 {
				continue
			}
			name := o.name
			// Patience has every loss evaluated at the end of its epoch.
			m := Fitted(t, FitQMF, c.x, c.k, append([]FitOption{WithStart(StartScores), WithSeed(3),
				WithShrinkage(0), WithEpochs(15), WithPatience(1000)}, o.opts...)...)
			worst, h := 0.0, m.History
			if notFinite(m.Reconstruct().Data) >= 0 {
				t.Errorf("%s, %s: a cell that is not finite", c.name, name)
			}
			for e, l := range h[1:] {
				worst = max(worst, l/h[e])
			}
			if worst > 3 || !(h[len(h)-1] < h[0]*(1+1e-9)) {
				t.Errorf("%s, %s: an epoch raised the loss to %v times the one before: %v", c.name, name,
					worst, h)
			}
		}
	}
}
