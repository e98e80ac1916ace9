package quantmf

// Tests that every number of a model is finite: under constant and zero rows, ties, units
// far out, all losses, and rates and penalties beyond reason.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
)

// TestAwkwardData: constant and zero rows, ties, few samples, more components
// than rows or columns.
func TestAwkwardData(t *testing.T) {
	for _, rows := range [][][]float64{
		{{0, 0, 0}, {1, 1, 1}, {1, 2, 3}},
		{{0, 0, 0}},
		{{5}},
		{{1}, {2}},
		{{0, 0, 0, 0, 1e60}, {1e31, 0, 1e31, 0, 0}},
		{{1, 1, 2, 2, 1, 1}, {0, 1, 0, 1, 0, 1}, {3, 1, 4, 1, 5, 9}},
	} {
		x, err := MatOf(rows...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range [][]FitOption{nil, {WithEnds(EndsPinned)}, {WithStart(StartUniform)},
			{WithStart(StartUniform), WithEnds(EndsPinned)}, {WithStart(StartNMF), WithShrinkage(5)},
			{WithEpsilon(1e-4)}} {
			q, err := FitQMF(context.Background(), x, 4,
				append([]FitOption{WithEpochs(5), WithLevels(4)}, o...)...)
			if err != nil {
				t.Fatal(err)
			}
			fit := q.Reconstruct()
			for _, v := range [][]float64{fit.Data, q.U.Data, q.V.Data, q.Quantiles.Data, q.Weights.Data,
				q.History, q.Bend()} {
				if i := notFinite(v); i >= 0 {
					t.Fatalf("%v, %d options: %v", rows, len(o), v)
				}
			}
			for i, row := range rows {
				m, err := q.Map(i)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Min(row) == slices.Max(row) {
					closeTo(t, "constant row", fit.Row(i), row, 1e-12*largest(row))
					if m.At(1) != m.At(2) || m.Slope(1) != 0 {
						t.Errorf("the map of a constant row moves: %v, %v", m.At(1), m.At(2))
					}
				}
			}
		}
	}
}

// TestAwkwardLosses: the same, all zeros, units far out, of the whole and of a row, and
// signed data, under every loss, of every model: every number that a model has, also of
// new samples and after a file, is finite, and rows without a spread are met exactly.
func TestAwkwardLosses(t *testing.T) {
	ctx := context.Background()
	sets := map[string][][]float64{
		"zeros":            {{0, 0, 0}, {0, 0, 0}},
		"constant":         {{3, 3, 3}, {3, 3, 3}},
		"constant rows":    {{0, 0, 0}, {1, 1, 1}, {1, 2, 3}},
		"a row":            {{1, 2, 0, 4, 0.5}},
		"a column":         {{1}, {2}, {0}},
		"a cell":           {{5}},
		"ties":             {{1, 1, 2, 2, 1, 1}, {0, 1, 0, 1, 0, 1}, {3, 1, 4, 1, 5, 9}},
		"tiny":             {{1e-300, 2e-300, 4e-300}, {3e-300, 1e-300, 0}},
		"least":            {{5e-324, 0, 1e-323}, {0, 5e-324, 5e-324}},
		"huge":             {{1e60, 2e59, 0}, {3e58, 1e60, 1e57}},
		"both":             {{0, 0, 0, 0, 1e60}, {1e31, 0, 1e31, 0, 0}},
		"rows apart":       {{1e-170, 3e-170, 2e-170, 1e-170}, {1, 2, 3, 5}, {2, 1, 2, 1}},
		"rows apart, 1e80": {{1e-80, 3e-80, 2e-80, 1e-80}, {1, 2, 3, 5}, {2, 1, 2, 1}},
		"columns apart":    {{1, 1e-200, 2, 3}, {2, 3e-200, 1, 1}},
		"positive":         {{1, 2, 3, 5}, {2, 1, 2, 1}, {7, 7, 7, 7}},
		"signed":           {{-1, 2, 0.5, -3}, {0, 1, -1, 4}, {-2, -2, -2, -2}},
		"negative":         {{-1, -2, -0.5, -3}, {-5, -4, -4, -4.5}},
		"signed, tiny":     {{-1e-170, 2e-170, 1e-171}, {1, -1, 3}},
		"signed, huge":     {{-1e60, 1e60, 0}, {1, -1, 3}},
		"signed, offset":   {{1e15, 1e15 + 1, 1e15 + 2}, {-1e15, -1e15 - 3, -1e15}},
	}
	farBelow := map[string]bool{"rows apart": true, "rows apart, 1e80": true,
		"signed, tiny": true, "signed, huge": true}
	refused := 0
	for set, rows := range sets {
		x, err := MatOf(rows...)
		if err != nil {
			t.Fatal(err)
		}
		low := slices.Min(x.Data)
		for turn, l := range some([]Loss{KL, Frobenius, 0, -1, -2, 0.5, 1.5, 3, 4, 1 - 0x1p-53, 1 + 1e-10,
			1e-7, -1e-10}, 0, 1, 4, 6, 8, 9, 12) {
			for name, fit := range fits(ctx, 2) {
				for k, o := range [][]FitOption{nil, {WithStart(StartUniform)},
					{WithMissingValues(), WithEpochs(0)}} {
					// each loss with one of the two
					if k > 0 && (testing.Short() || !long && (turn+k)%2 > 0) {
						continue
					}
					m, err := fit(x, append([]FitOption{WithLoss(l), WithEpochs(3)}, o...)...)
					if low < 0 && (l != Frobenius || name == "NMF") || low >= 0 && low < 1e-60 && l <= 0 ||
						farBelow[set] && name != "NMF" {
						var data *DataError
						if refused++; !errors.As(err, &data) {
							t.Errorf("%s, β %v, %s: %v", set, l, name, err)
						}
						continue
					}
					if err != nil {
						t.Errorf("%s, β %v, %s: %v", set, l, name, err)
						continue
					}
					allFinite(t, set+", β "+ftoa(float64(l))+", "+name+", options "+itoa(k), m, x)
					if name == "NMF" {
						continue
					}
					fitted := m.Reconstruct()
					for i, row := range rows {
						if slices.Min(row) == slices.Max(row) {
							closeTo(t, "constant row", fitted.Row(i), row, 1e-12*largest(row))
						}
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestQMFQAwkward: constant and zero rows, ties, few samples, missing cells, more
// components than rows or columns, values of every magnitude; and new samples of
// such models.
func TestQMFQAwkward(t *testing.T) {
	ctx := context.Background()
	nan := math.NaN()
	for _, rows := range [][][]float64{
		{{0, 0, 0}, {1, 1, 1}, {1, 2, 3}},
		{{0, 0, 0}},
		{{5}},
		{{1}, {2}},
		{{0, 0, 0, 0, 1e60}, {1e31, 0, 1e31, 0, 0}},
		{{1, 1, 2, 2, 1, 1}, {0, 1, 0, 1, 0, 1}, {3, 1, 4, 1, 5, 9}},
		{{nan, 1, 1}, {2, nan, 3}, {3, 1, nan}},
		{{nan, 7, 0, 2}, {4, nan, nan, nan}, {4, 0, 0, nan}},
	} {
		x, err := MatOf(rows...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range [][]FitOption{nil, {WithEnds(EndsPinned), WithProjection(FrobeniusUpdates(5))},
			{WithStart(StartUniform)}, {WithEpochs(0)}, {WithProjection(TruncatedSVD())}} {
			o = append([]FitOption{WithEpochs(4), WithLevels(4), WithMissingValues()}, o...)
			if len(o) == 4 && o[3].setting().kind == option.Projection {
				if notFinite(x.Data) >= 0 {
					continue
				}
				o = append(o[:2], o[3])
			}
			q, err := FitQMFQ(ctx, x, 4, o...)
			var data *DataError
			if err != nil && !errors.As(err, &data) {
				t.Fatal(err)
			}
			fit := q.Reconstruct()
			v, err := q.Transform(ctx, x)
			if err != nil {
				t.Fatal(rows, err)
			}
			score, err := q.Score(ctx, x)
			if err != nil {
				t.Fatal(rows, err)
			}
			for _, v := range [][]float64{fit.Data, q.U.Data, q.V.Data, q.History, v.Data, {score}} {
				if i := notFinite(v); i >= 0 {
					t.Fatalf("%v, %d options: %v", rows, len(o), v)
				}
			}
			if loss, _ := q.Loss(x); q.projection != TruncatedSVD() &&
				score > loss*(1+1e-9)+1e-12*largest(fit.Data)+divergence.LeastT {
				t.Errorf("%v, %d options: score %v, loss %v", rows, len(o), score, loss)
			}
		}
	}
	x := first(toy(3), 15)
	q, err := FitQMFQ(ctx, x, 3, WithEpochs(0), WithValidation(0.1))
	if err != nil || len(q.History) != 1 || len(q.Validation) != 1 || q.Best != 0 {
		t.Errorf("no epochs: %v, %v, %v", err, q.History, q.Validation)
	}
	for _, bad := range []float64{math.Inf(1), -1, 2 * limit.Value} {
		y := x.Clone()
		y.Set(7, 3, bad)
		var e *DataError
		if _, err := q.Transform(ctx, y); !errors.As(err, &e) || e.Row != 7 || e.Col != 3 {
			t.Errorf("%v gives %v", bad, err)
		}
	}
	var shape *ShapeError
	if _, err := q.Score(ctx, first(x, 9)); !errors.As(err, &shape) {
		t.Errorf("too few rows: %v", err)
	}
	for _, n := range []int{0, 1, 10, 40} {
		if v, err := q.Transform(&endsAfter{Context: ctx, n: n}, x); !errors.Is(err, context.Canceled) ||
			v.Data != nil {
			t.Errorf("ended after %d: %s, %v", n, v.size(), err)
		}
	}
}

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
	c, err := newCells(x, &settings{validation: 0.3, seed: 1, loss: divergence.Frobenius, mapped: true})
	if err != nil || !c.IsHeld(1, 2) || c.IsHeld(1, 0) {
		t.Fatalf("another cell than the large one is held out: %v, %v", c, err)
	}
	for _, model := range []string{"QMF", "QMFQ"} {
		for _, ends := range []Ends{EndsFree, EndsPinned} {
			m, _, _, _, _, err := fitAny(t.Context(), model, x, 1, WithLoss(Frobenius), WithEpochs(3),
				WithValidation(0.3), WithStart(StartUniform), WithEnds(ends))
			if err != nil {
				t.Fatal(err)
			}
			allFinite(t, model+" "+ends.String(), m, x)
		}
	}
}

// TestReckless: rates and penalties beyond reason give bad fits, no overflow.
func TestReckless(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	x := toy(3)
	x.Rows, x.Cols = 15, 12
	ctx := context.Background()
	finite := func(name string, history []float64, ms ...Mat) {
		t.Helper()
		for _, m := range append(ms, Mat{Rows: 1, Cols: len(history), Stride: len(history), Data: history}) {
			if i := notFinite(m.Data); i >= 0 {
				t.Errorf("%s: %v", name, m.Data[i])
				return
			}
		}
	}
	epochs := draws(12, 3, 3)
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
		if testing.Short() && (strings.HasSuffix(name, "constant") || strings.HasSuffix(name, "raw") ||
			strings.HasSuffix(name, "uniform")) {
			continue
		}
		q, err := FitQMF(ctx, x, 4, append([]FitOption{WithEpochs(epochs)}, opts...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		finite(name, q.History, q.U, q.V, q.Quantiles, q.Weights, q.Reconstruct())
		b, _ := q.MarshalBinary()
		if err := new(QMF).UnmarshalBinary(b); err != nil {
			t.Errorf("%s: the file cannot be read: %v", name, err)
		}
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
			if !long && at != len(name)%3 { // one of the three
				continue
			}
			two, err := FitQMFQ(ctx, x, 4,
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

// TestEmptyLevels: where a plan is far from its weights, a level may have no sample at all, so
// that an EM step for it has nothing to divide by. T' of a QMFQ starts from such steps.
func TestEmptyLevels(t *testing.T) {
	x, err := MatOf([]float64{1e12, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	m, err := FitQMFQ(t.Context(), x, 1, WithEpochs(3), WithSquash(SquashNone),
		WithEpsilon(2.9331204132176936e-11), WithMaxIterations(100), WithLoss(Beta(4)))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Warnings) == 0 {
		t.Error("the plan converged: no level is empty")
	}
	for _, v := range [][]float64{m.U.Data, m.V.Data, m.History, m.inflated.Quantiles.Data,
		m.inflated.Weights.Data} {
		if i := notFinite(v); i >= 0 {
			t.Fatalf("entry %d is %v", i, v[i])
		}
	}
}
