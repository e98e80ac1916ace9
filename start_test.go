package quantmf

// Tests of where fits start and of how they go on from there, against formulas
// written down here once more.

import (
	"context"
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestStartScores: before the first epoch the factors of a fit from scores are those
// of an NMF of the normal scores of the rows, ties averaged, lifted above 0 and
// multiplied by the row's mean; entries far below a factor's mean are raised.
func TestStartScores(t *testing.T) {
	ctx := context.Background()
	const d, n, k = 9, 17, 2
	r := random.Split(6, 1)
	x, scores := NewMat(d, n), NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Set(i, j, math.Exp(float64(i))*float64(1+r.IntN(6)))
			if r.Float64() < 0.1 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	quantile := func(p float64) float64 { // Φ⁻¹ by halving
		lo, hi := -10.0, 10.0
		for range 200 {
			if mid := (lo + hi) / 2; math.Erfc(-mid/math.Sqrt2)/2 < p {
				lo = mid
			} else {
				hi = mid
			}
		}
		return lo
	}
	lift := max(3, 0.1-quantile(0.5/n))
	for i := range d {
		seen, mean := 0.0, 0.0
		for _, v := range x.Row(i) {
			if v == v {
				seen++
				mean += v
			}
		}
		mean /= seen
		for j, v := range x.Row(i) {
			below, equal := 0.0, 0.0
			for _, o := range x.Row(i) {
				if o < v {
					below++
				} else if o == v {
					equal++
				}
			}
			scores.Set(i, j, v)
			if v == v {
				scores.Set(i, j, mean*(quantile((below+equal/2)/seen)+lift))
			}
		}
	}
	q, err := FitQMF(ctx, x, k, WithStart(StartScores), WithShrinkage(0), WithMissingValues(), WithEpochs(0))
	if err != nil {
		t.Fatal(err)
	}
	want, err := FitNMF(ctx, scores, k, WithMissingValues(), WithUpdates(UpdatesMultiplicative), WithEpochs(200))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Mat{want.U, want.V} {
		low := 1e-3 * mean(m.Data)
		for i := range m.Data {
			m.Data[i] = max(m.Data[i], low)
		}
	}
	closeTo(t, "U", q.U.Data, want.U.Data, 1e-9*largest(want.U.Data))
	closeTo(t, "V", q.V.Data, want.V.Data, 1e-9*largest(want.V.Data))
}

// TestChoiceByPrediction: start and shrinkage that are left to the data are those
// under which a fit of six epochs predicts a hidden tenth of the cells best.
func TestChoiceByPrediction(t *testing.T) {
	ctx := context.Background()
	late := 0
	for seed := range uint64(3) {
		x := first(toy(int(seed)), 24)
		src := random.Split(seed, 3)
		trial := src.Uint64()
		best, before := math.Inf(1), math.Inf(1)
		var start, startBefore Start
		var shrinkage, shrinkageBefore float64
		for _, s := range []Start{StartScores, StartNMF} {
			for _, lambda := range []float64{0, 20, 100} {
				m, err := FitQMF(ctx, x, 3, WithStart(s), WithShrinkage(lambda), WithEpochs(6), WithValidation(0.1), WithSeed(trial))
				if err != nil {
					t.Fatal(err)
				}
				if l := m.Validation[6]; l < best {
					best, start, shrinkage = l, s, lambda
				}
				if l := m.Validation[0]; l < before {
					before, startBefore, shrinkageBefore = l, s, lambda
				}
			}
		}
		m, err := FitQMF(ctx, x, 3, WithEpochs(0), WithSeed(seed))
		if err != nil {
			t.Fatal(err)
		}
		if m.Start != start || m.Shrinkage != shrinkage {
			t.Errorf("seed %d: took %v and %v, the trials say %v and %v", seed, m.Start, m.Shrinkage, start, shrinkage)
		}
		if start != startBefore || shrinkage != shrinkageBefore {
			late++
		}
	}
	if late == 0 {
		t.Error("the epochs of the trials never decided: nothing is tested")
	}
}

// TestSchedule: the rate of a cosine begins at what was given and falls as (1+cos πt)/2.
func TestSchedule(t *testing.T) {
	for i := range 101 {
		p := float64(i) / 100
		if want := (1 + math.Cos(math.Pi*p)) / 2; math.Abs(cosine(p)-want) > 1e-15 {
			t.Errorf("cosine(%v) = %v, want %v", p, cosine(p), want)
		}
	}
	ctx := context.Background()
	x := first(toy(3), 12)
	u, v := NewMat(12, 2), NewMat(2, x.Cols)
	r := random.Split(1, 1)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = 0.5 + r.Float64()
		}
	}
	for name, fit := range map[string]func(o ...FitOption) (Model, error){
		"QMF":  func(o ...FitOption) (Model, error) { return FitQMF(ctx, x, 2, append(o, WithInit(u, v))...) },
		"QMFQ": func(o ...FitOption) (Model, error) { return FitQMFQ(ctx, x, 2, append(o, WithInit(u, v))...) },
	} {
		a, err := fit(WithEpochs(1), WithSchedule(ScheduleCosine))
		if err != nil {
			t.Fatal(err)
		}
		b, err := fit(WithEpochs(1), WithSchedule(ScheduleConstant))
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, name+": one epoch", a.Reconstruct().Data, b.Reconstruct().Data, 0)
	}
}

// TestPinnedEnds: pinned, the ends of every map are the least and the greatest value
// of its row, from whatever start; in between, quantiles rise.
func TestPinnedEnds(t *testing.T) {
	x := first(toy(3), 12)
	for i := range x.Rows {
		for j := range x.Row(i) {
			x.Row(i)[j] += 3
		}
	}
	for _, start := range []Start{StartScores, StartNMF, StartUniform} {
		q, err := FitQMF(context.Background(), x, 2, WithStart(start), WithEnds(EndsPinned), WithEpochs(3))
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Rows {
			lo, hi := math.Inf(1), 0.0
			for _, v := range x.Row(i) {
				lo, hi = min(lo, v), max(hi, v)
			}
			row := q.Quantiles.Row(i)
			if row[0] != lo || row[len(row)-1] != hi || !(row[1] > lo) {
				t.Errorf("%v, row %d: quantiles %v of values from %v to %v", start, i, row, lo, hi)
			}
		}
	}
}
