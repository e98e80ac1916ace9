package quantmf

// Tests that every number of a model is finite: under constant and zero rows, ties, units
// far out, all losses, and rates and penalties beyond reason.

import (
	"errors"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/qmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestRowBelowHeldOut: the visible cells of a row may lie any factor below the one that is
// held out, whose magnitude is then the row's unit: their mean underflows.
func TestRowBelowHeldOut(t *testing.T) {
	x := NewMat(3, 7)
	for j := range x.Cols {
		x.Set(0, j, -16)
	}
	x.Set(1, 0, 5e-324)
	x.Set(1, 1, 5e-324)
	x.Set(1, 2, -16)
	c, err := newCells(x, &qmf.Settings{Validation: 0.3, Seed: 1, Loss: divergence.Frobenius, Mapped: true})
	if err != nil || !c.IsHeld(1, 2) || c.IsHeld(1, 0) {
		t.Fatalf("another cell than the large one is held out: %v, %v", c, err)
	}
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		for _, ends := range []Ends{EndsFree, EndsPinned} {
			m := Fitted(t, By(method), x, 1, WithLoss(Frobenius), WithEpochs(3),
				WithValidation(0.3), WithStart(StartUniform), WithEnds(ends))
			allFinite(t, method.String()+" "+ends.String(), m, x)
		}
	}
}

// TestReckless: rates and penalties beyond reason give bad fits, no overflow.
func TestReckless(t *testing.T) {
	Slow(t)
	x := toy(3)
	x.Rows, x.Cols = 15, 12
	finite := func(name string, history []float64, ms ...Mat) {
		t.Helper()
		for _, m := range append(ms, Mat{Data: history}) {
			if i := notFinite(m.Data); i >= 0 {
				t.Errorf("%s: %v", name, m.Data[i])
				return
			}
		}
	}
	epochs := Draws(12, 3, 3)
	for name, opts := range map[string][]FitOption{
		"rate 100":           {WithLearningRate(100)},
		"rate 100, uniform":  {WithLearningRate(100), WithStart(StartUniform)},
		"rate 100, pinned":   {WithLearningRate(100), WithStart(StartUniform), WithEnds(EndsPinned)},
		"rate 100, raw":      {WithLearningRate(100), WithSquash(SquashNone)},
		"rate 100, beta 4":   {WithLearningRate(100), WithLoss(Beta(4))},
		"rate 100, beta -2":  {WithLearningRate(100), WithLoss(Beta(-2)), WithStart(StartUniform)},
		"rate 100, constant": {WithLearningRate(100), WithSchedule(ScheduleConstant), WithEpochs(5 * epochs)},
		"penalty 1e30":       {WithPenalty(1e30)},
		"shrinkage 1e30":     {WithShrinkage(1e30)},
	} {
		opts = append(opts, WithMaxIterations(40))
		q := Fitted(t, FitQMF, x, 4, append([]FitOption{WithEpochs(epochs)}, opts...)...)
		finite(name, q.History, q.U, q.V, q.Quantiles, q.Weights, q.Reconstruct())
		OK(t, new(QMF).UnmarshalBinary(FileOf(t, q)))
		var taken []FitOption
		for _, o := range opts {
			if option.FitQMFQ.Takes.Has(o.setting().kind) {
				taken = append(taken, o)
			}
		}
		if len(taken) < len(opts) {
			continue
		}
		for at, p := range []Projection{KLUpdates(5), FrobeniusUpdates(5), TruncatedSVD()} {
			if !Long && at != len(name)%3 { // one of the three
				continue
			}
			two, err := FitQMFQ(t.Context(), x, 4,
				append([]FitOption{WithEpochs(epochs), WithProjection(p)}, taken...)...)
			var data *DataError
			if err != nil && !(p == TruncatedSVD() && errors.As(err, &data)) { // singular values may meet
				t.Errorf("QMFQ, %s, %v: %v", name, p, err)
				continue
			}
			finite("QMFQ, "+name+", "+p.String(), two.History, two.U, two.V, two.Reconstruct())
		}
	}
}
