package quantmf

// Tests of a fit that is cancelled: how soon it ends, that its goroutines end with it, and
// the phases that it tells of.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/svd"
)

// Lognormal returns a d × n matrix of independent values, some rows constant.
func Lognormal(d, n int) Mat {
	r := random.Split(5, d)
	x := NewMat(d, n)
	for i := range x.Data {
		x.Data[i] = math.Exp(Normal(&r))
		if i/n%500 == 7 {
			x.Data[i] = 3
		}
	}
	return x
}

// TestLooks: how far a fit goes between two looks at its context is bound by rows, not
// by the matrix: in each phase there are as many looks as its work has pieces. Nothing
// here depends on the machine's speed.
func TestLooks(t *testing.T) {
	Slow(t)
	x := Lognormal(600, 24)
	type want struct {
		phase Phase
		least int64
	}
	const groups = 600 / nmf.Group
	for _, c := range []struct {
		name   string
		method Method
		opts   []FitOption
		want   []want
	}{
		{"NMF", MethodNMF, []FitOption{WithEpochs(10)}, []want{{PhaseEpochs, 10 * groups}}},
		{"NMF missing", MethodNMF, []FitOption{WithEpochs(10), WithMissingValues(), WithLoss(Beta(1.5))},
			[]want{{PhaseEpochs, 10 * 600 / nmf.Group}}},
		{"NMF from vectors", MethodNMF, []FitOption{WithStart(StartSVD), WithEpochs(1)},
			[]want{{PhaseFactors, svd.Passes * (2*nmf.Pieces + 2*11)}}},
		{"QMF", MethodQMF, []FitOption{WithEpochs(3)},
			[]want{{PhaseChoice, 20*512/nmf.Group + 3*512 + 3*2*512/8},
				{PhaseFactors, groups}, {PhaseMaps, 600}, {PhaseEpochs, 3 * 600 / 8}}},
		{"QMF validation", MethodQMF,
			[]FitOption{WithEpochs(3), WithValidation(0.1), WithStart(StartScores), WithShrinkage(0)},
			[]want{{PhaseFactors, 600 + 20*600/nmf.Group}, {PhaseMaps, 600},
				{PhaseEpochs, 3 * 2 * 600 / 8}}},
		{"QMFQ", MethodQMFQ, []FitOption{WithEpochs(3), WithStart(StartNMF), WithShrinkage(0)},
			[]want{{PhaseFactors, groups}, {PhaseMaps, 2 * 600},
				{PhaseQMF, 20 * 600 / 8}, {PhaseEpochs, 3 * (3*600/8 + 2*projectOften*16)}}},
		{"QMFQ by singular vectors", MethodQMFQ,
			[]FitOption{WithEpochs(2), WithStart(StartUniform), WithProjection(TruncatedSVD())},
			[]want{{PhaseMaps, 600}, {PhaseEpochs, 2 * (3*600/8 + 3*24)}}},
		{"BQMF", MethodBQMF, []FitOption{WithEpochs(3), WithMissingValues()},
			[]want{{PhaseFactors, 600}, {PhaseEpochs, 3 * 2 * 600}}},
	} {
		ctx := &Ending{Context: t.Context()}
		got, at, phase := map[Phase]int64{}, int64(0), Phase(99)
		enter := func(p Phase) {
			if p != phase {
				got[phase] += ctx.Asked - at
				at, phase = ctx.Asked, p
			}
		}
		watch := WithProgress(func(p Progress) error {
			enter(p.Phase)
			return nil
		})
		opts := append(c.opts, watch, WithWorkers(1))
		if c.method == MethodQMF || c.method == MethodQMFQ {
			opts = append(opts, WithLevels(4))
		}
		m := Must(Fit(ctx, c.method, x, 3, opts...))(t)
		epochs := len(Common(m).History) - 1
		enter(99)
		for _, w := range c.want {
			least := w.least
			if w.phase == PhaseEpochs { // told after an epoch: those of the first are not in it
				least = least * int64(epochs-1) / int64(epochs)
			}
			if got[w.phase] < least {
				t.Errorf("%s: %d looks in %v, want %d at least", c.name, got[w.phase], w.phase, least)
			}
		}
	}
}
