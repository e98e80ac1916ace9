package qmf

// Tests of the steps of U and V by the method of Gauss and Newton: curvatures against second differences, and
// the penalty.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// fitOf is a fit with the defaults, as far as change leaves them, that has not begun. One worker makes it.
func fitOf(t *testing.T, x matrix, k int, change func(s *Settings)) *qmfFit {
	t.Helper()
	s := Defaults()
	change(&s)
	visible := Must(cellsOf(x, &s))(t)
	visible.SetUnits(true)
	return newQMFFit(visible, k, &s, silent(t, 1, s.Seed))
}

// gaussFitOf is a fit before its first epoch.
func gaussFitOf(t *testing.T, x matrix, k int, change func(c *Settings)) *qmfFit {
	t.Helper()
	f := fitOf(t, x, k, func(c *Settings) {
		c.Shrinkage, c.Start = 0, StartScores
		change(c)
	})
	Must(f.Begin())(t)
	return f
}

// TestGaussCurvature: a_j is the second difference in w_j of the mean divergence of a row that the model fits
// exactly, potentials and squash held; 0 for hidden cells, as their gradient is. The loss of the row is that
// of its map, also where points have solved a row of many samples.
func TestGaussCurvature(t *testing.T) {
	few := toy(2, 9)
	check := func(l divergence.Loss, samples int, hidden float64) {
		x := newMatrix(9, samples)
		for i := range x.Rows {
			for j := range x.Cols {
				x.set(i, j, few.at(i, j%few.Cols)*(1+float64(j/few.Cols%17)/50)+0.1)
			}
		}
		checkCurvature(t, gaussFitOf(t, holed(x, hidden), 3, func(c *Settings) {
			c.Loss, c.Missing, c.BatchRows = l, hidden > 0, 3
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
		h, loss := 1e-4*(1+LargestOf(v.w)), 0.0
		moved := func(by float64) []float64 { // T_i with potentials and squash held
			w, at := make([]float64, f.n), make([]float64, f.np)
			for j := range w {
				w[j] = v.w[j] + by
			}
			var r transport.Row
			r.Resize(f.n, f.M)
			Fill(&r, at, w, q, f.Slope(i), v.row.Potentials(), f.Epsilon)
			return at
		}
		mid, above, below := moved(0), moved(h), moved(-h)
		for j := range f.n {
			if v.observed != nil && !v.observed[j] {
				if a[j] != 0 || wbar[j] != 0 {
					t.Fatalf("β %v: hidden cell %d has the curvature %v and the gradient %v", f.Loss, j, a[j],
						wbar[j])
				}
				continue
			}
			loss += f.Loss.Value(v.x[j], mid[j], f.lowest(i))
			if f.n > 100 && j%9 > 0 {
				continue
			}
			second := f.Loss.Value(mid[j], above[j], 0) + f.Loss.Value(mid[j], below[j], 0)
			want := second / (h * h) / float64(f.cells.InRow[i]) / f.unit(i)
			Near(t, a[j], want, 1e-3*(want+1e-3*LargestOf(a)), "β %v: a[%d]", f.Loss, j)
		}
		Near(t, f.rowLosses[i], loss, 1e-6*loss, "β %v: the loss of row %d", f.Loss, i)
	}
}

// TestRegularity: what patience judges has λ/2 (mean log²U + mean log²V) beside the loss, whichever way the
// factors are stepped; without patience nobody reads it.
func TestRegularity(t *testing.T) {
	x := toy(5, 21)
	for name, change := range map[string]func(c *Settings){
		"Gauss": func(c *Settings) { c.Penalty, c.Patience = 3, 2 },
		"Adam":  func(c *Settings) { c.Penalty, c.Patience, c.Start = 3, 2, StartUniform },
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
		if f.Patience = 0; f.regularity() != 0 {
			t.Errorf("%s: a penalty without patience", name)
		}
	}
}
