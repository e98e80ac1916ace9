package qmf

// Tests of the line in the maps: its steps and its gradients.

import (
	"fmt"
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// linedFits are fits that have begun with a line, one a loss, of rows with and without hidden cells.
func linedFits(t *testing.T, do func(name string, f *qmfFit)) {
	for _, l := range []divergence.Loss{divergence.KL, divergence.Frobenius, 0.5, 1.5, 3} {
		for _, hidden := range []float64{0, 0.2} {
			x := toy(2, 9)
			for i := range x.Rows {
				for j, v := range x.Row(i) {
					x.set(i, j, v+0.1)
					if l == divergence.Frobenius {
						x.set(i, j, v-1)
					}
				}
			}
			if hidden > 0 {
				x = holed(x, hidden)
			}
			f := gaussFitOf(t, x, 3, func(c *Settings) { c.Loss, c.Missing, c.Line = l, hidden > 0, 0.5 })
			name := fmt.Sprintf("β %v", float64(l))
			if hidden > 0 {
				name += ", hidden"
			}
			do(name, f)
		}
	}
}

// TestLineGradient: w̄ of a map with a line is the derivative of the row's loss, the transport solved anew,
// and 0 in hidden cells.
func TestLineGradient(t *testing.T) {
	t.Parallel()
	linedFits(t, func(name string, f *qmfFit) {
		f.batch, f.inflation.whole = []int{4}, true
		i, v, wbar := 4, &f.spaces[0], make([]float64, f.np)
		f.Tolerance = 1e-13
		logits := append([]float64(nil), f.Logits(i)...)
		f.visitMap(v, i, wbar, nil)
		copy(f.Logits(i), logits)
		if !(f.S[i] > 0) {
			t.Errorf("%s: no line", name)
		}
		most := LargestOf(wbar)
		loss := func(j int, by float64) float64 {
			f.v[j] += by // V of the first component
			f.solveMap(v, i, f.Tolerance, true)
			f.v[j] -= by
			return f.rowLoss(v, i) / f.unit(i) / float64(f.cells.InRow[i])
		}
		for j := 0; j < f.n; j += 3 {
			h := 1e-5 * (1 + f.v[j])
			want := (loss(j, h) - loss(j, -h)) / (2 * h) / f.rowU(i)[0]
			Near(t, wbar[j], want, 1e-5*(most+math.Abs(want)), "%s: w̄ of sample %d", name, j)
			if v.observed != nil && !v.observed[j] && wbar[j] != 0 {
				t.Errorf("%s: w̄ of hidden cell %d is %v", name, j, wbar[j])
			}
		}
	})
}

// TestLineSteps: a step on q and s never raises the loss of the row, and moves s. Shrinkage pulls the row to
// the target, s to its share of the slope of the least-squares line.
func TestLineSteps(t *testing.T) {
	t.Parallel()
	linedFits(t, func(name string, f *qmfFit) {
		for i := range f.d {
			v, before := &f.spaces[0], f.S[i]
			f.solveMap(v, i, f.Tolerance, true)
			last := f.rowLoss(v, i)
			for range 20 {
				f.stepQ(v, i, 1)
				f.fitted(v, i)
				loss := f.rowLoss(v, i)
				if !(loss <= last*(1+1e-12)) {
					t.Fatalf("%s, row %d: the loss rises from %v to %v", name, i, last, loss)
				}
				last = loss
			}
			if f.S[i] == before {
				t.Errorf("%s, row %d: the line stays", name, i)
			}
			f.lambda = 1e12
			f.stepQ(v, i, 3)
			f.lambda = 0
			var seen, mw, mx, ww, wx float64
			for j, w := range v.w[:f.n] {
				if v.observed == nil || v.observed[j] {
					seen++
					mw += w
					mx += v.x[j]
				}
			}
			mw, mx = mw/seen, mx/seen
			for j, w := range v.w[:f.n] {
				if v.observed == nil || v.observed[j] {
					ww += (w - mw) * (w - mw)
					wx += (w - mw) * (v.x[j] - mx)
				}
			}
			slope := max(wx/ww, 0)
			if mx < slope*mw && !f.Spans.Signed {
				slope = mx / mw
			}
			want := f.line * slope
			Near(t, f.S[i], want, 1e-6*(want+1e-6), "%s, row %d is pulled to", name, i)
		}
	})
}
