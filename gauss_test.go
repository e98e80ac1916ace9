package quantmf

// Tests of the steps of U and V by the method of Gauss and Newton: curvatures against second
// differences, hostile data, and the penalty. TestAuthorsCurves holds how far few epochs lead.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// fitOf is a fit with the defaults of FitQMF, as far as change leaves them, that has not begun. One worker
// makes it, until the test ends.
func fitOf(t *testing.T, x Mat, k int, change func(c *config)) *qmfFit {
	t.Helper()
	c := qmfDefaults()
	change(&c)
	p := pool.New(1, 1)
	t.Cleanup(p.Close)
	rules := c.rules()
	rules.Weights = Must(c.weightsOf(x.Dims()))(t)
	visible := Must(readCells(x, rules))(t)
	visible.SetUnits(true)
	return newQMFFit(visible, k, &c.settings,
		fit.Run{Pool: p, Seed: c.seed, Progress: fit.Silent(t.Context())})
}

// gaussFitOf is a fit before its first epoch.
func gaussFitOf(t *testing.T, x Mat, k int, change func(c *config)) *qmfFit {
	t.Helper()
	f := fitOf(t, x, k, func(c *config) {
		c.shrinkage, c.start = 0, StartScores
		change(c)
	})
	Must(f.Begin())(t)
	return f
}

// TestGaussCurvature: a_j is the second difference in w_j of the mean divergence of a row that the model fits
// exactly, potentials and squash held; 0 for hidden cells, as their gradient is. The loss of the row is that
// of its map, also where points have solved a row of many samples.
func TestGaussCurvature(t *testing.T) {
	few := first(toy(2), 9)
	check := func(l divergence.Loss, samples int, hidden float64) {
		x := NewMat(9, samples)
		for i := range x.Rows {
			for j := range x.Cols {
				x.Set(i, j, few.At(i, j%few.Cols)*(1+float64(j/few.Cols%17)/50)+0.1)
			}
		}
		checkCurvature(t, gaussFitOf(t, holed(x, hidden), 3, func(c *config) {
			c.loss, c.missing, c.batchRows = l, hidden > 0, 3
		}))
	}
	for _, l := range []divergence.Loss{divergence.KL, divergence.Frobenius, 0.5, 1.5, 3} {
		check(l, few.Cols, 0)
		check(l, few.Cols, 0.2)
	}
	if !testing.Short() {
		check(divergence.KL, 4200, 0.2)
	}
}

// checkCurvature checks every ninth cell of some rows, or all of few.
func checkCurvature(t *testing.T, f *qmfFit) {
	f.batch = []int{0, 4, 7}
	for slot, i := range f.batch {
		v, a, wbar := &f.spaces[0], f.steps.curvature(slot), f.rowWbar(slot)
		f.visitMap(v, i, wbar, a)
		q := make([]float64, f.M)
		f.Quantiles(q, i)
		m := newMap(v.row.Potentials(), q, nil, f.epsilon)
		m.line = f.Slope(i)
		h, loss := 1e-4*(1+LargestOf(v.w)), 0.0
		for j := range f.n {
			if v.observed != nil && !v.observed[j] {
				if a[j] != 0 || wbar[j] != 0 {
					t.Fatalf("β %v: hidden cell %d has the curvature %v and the gradient %v", f.loss, j, a[j],
						wbar[j])
				}
				continue
			}
			mid := m.At(v.w[j])
			loss += f.loss.Value(v.x[j], mid, f.lowest(i))
			if f.n > 100 && j%9 > 0 {
				continue
			}
			second := f.loss.Value(mid, m.At(v.w[j]+h), 0) + f.loss.Value(mid, m.At(v.w[j]-h), 0)
			want := second / (h * h) / float64(f.cells.InRow[i]) / f.unit(i)
			Near(t, a[j], want, 1e-3*(want+1e-3*LargestOf(a)), "β %v: a[%d]", f.loss, j)
		}
		Near(t, f.rowLosses[i], loss, 1e-6*loss, "β %v: the loss of row %d", f.loss, i)
	}
}

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
			m := Fitted(t, FitQMF, c.x, c.k, append([]FitOption{WithStart(StartScores),
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

// TestRegularity: what patience judges has λ/2 (mean log²U + mean log²V) beside the loss, whichever way the
// factors are stepped; without patience nobody reads it.
func TestRegularity(t *testing.T) {
	x := first(toy(5), 21)
	for name, change := range map[string]func(c *config){
		"Gauss": func(c *config) { c.penalty, c.patience = 3, 2 },
		"Adam":  func(c *config) { c.penalty, c.patience, c.start = 3, 2, StartUniform },
	} {
		f := gaussFitOf(t, x, 4, change)
		if _, is := f.steps.(*gaussSteps); is != (name == "Gauss") {
			t.Fatalf("%s: another step", name)
		}
		squares := func(v []float64) (mean float64) {
			for _, t := range v {
				mean += math.Log(t) * math.Log(t) / float64(len(v))
			}
			return mean
		}
		want := squares(f.u)
		for c := range f.k {
			want += squares(f.rowV(c)) / float64(f.k)
		}
		Near(t, f.regularity(), 1.5*want, 1e-12*want, "%s: the penalty", name)
		if f.patience = 0; f.regularity() != 0 {
			t.Errorf("%s: a penalty without patience", name)
		}
	}
}
