package quantmf_test

import (
	"context"
	"errors"
	"math"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// newTable is n new samples of the features of smallModels, some cells missing.
func newTable(n int) Mat {
	x := NewMat(6, n)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, 1+math.Abs(math.Cos(float64(i+1))*float64(j%7+1))+float64((i+j)%2))
			if (3*i+5*j)%11 == 0 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	return x
}

// TestPredictWorkers: a model that is read for other workers says the same.
func TestPredictWorkers(t *testing.T) {
	t.Parallel()
	_, models := smallModels(t)
	x := newTable(13)
	for method, m := range models {
		want := Answer(t, m.Predict, x)
		for workers := range 3 {
			again := Must(UnmarshalModel(FileOf(t, m), WithWorkers(workers)))(t)
			EqualAll(t, Answer(t, again.Predict, x).Data, want.Data, "%v by %d workers: other numbers",
				method, workers)
		}
	}
	if err := ErrorOf(UnmarshalModel(nil, WithEpsilon(1))); !Typed(err) {
		t.Errorf("an option that UnmarshalModel has no use for: %v", err)
	}
}

// TestPredictErrors: a context that has ended, and a probability that is none, are errors.
func TestPredictErrors(t *testing.T) {
	t.Parallel()
	_, models := smallModels(t)
	ended, stop := context.WithCancel(context.Background())
	stop()
	for method, m := range models {
		for _, err := range []error{ErrorOf(m.Scores(ended, newTable(40))),
			ErrorOf(m.Predict(ended, newTable(40)))} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v after the end of its context: %v", method, err)
			}
		}
	}
	for _, p := range []float64{0, 1, math.NaN(), -1} {
		if _, _, err := models[MethodBQMF].(*BQMF).PredictInterval(t.Context(), newTable(3), p); !Typed(err) {
			t.Errorf("an interval of probability %v: %v", p, err)
		}
	}
}

// TestPredictIntervals: intervals of new samples hold the medians, widen with p, and hold their share of
// hidden cells of samples that the fit has not seen.
func TestPredictIntervals(t *testing.T) {
	Slow(t)
	t.Parallel()
	const d, n, seen = 30, 160, 100
	x := NewMat(d, n)
	wave := func(i, j int) float64 { return math.Sin(float64(i*7+j*13) + math.Sin(float64(i*j))*40) }
	for i := range d {
		for j := range n {
			w := math.Sin(float64(i))*math.Cos(float64(3*j)) + math.Cos(float64(2*i))*math.Sin(float64(j)/5)
			x.Set(i, j, math.Exp(w+0.3*wave(i, j)))
		}
	}
	train := Mat{Rows: d, Cols: seen, Stride: n, Data: x.Data}
	m := Fitted(t, FitBQMF, train, 6)
	fresh := Mat{Rows: d, Cols: n - seen, Stride: n, Data: x.Data[seen:]}.Clone()
	truth := fresh.Clone()
	for i := range fresh.Rows {
		for j := range fresh.Cols {
			if (i+3*j)%4 == 0 {
				fresh.Set(i, j, math.NaN())
			}
		}
	}
	var widths [2]float64
	for k, p := range []float64{0.5, 0.9} {
		lo, hi, err := m.PredictInterval(t.Context(), fresh, p)
		OK(t, err)
		in, all := 0.0, 0.0
		for i := range lo.Rows {
			for j := range lo.Cols {
				if !(lo.At(i, j) <= hi.At(i, j)) {
					t.Fatalf("cell %d, %d: from %v to %v", i, j, lo.At(i, j), hi.At(i, j))
				}
				widths[k] += hi.At(i, j) - lo.At(i, j)
				if v := truth.At(i, j); fresh.At(i, j) != fresh.At(i, j) {
					all++
					if v >= lo.At(i, j) && v <= hi.At(i, j) {
						in++
					}
				}
			}
		}
		if share := in / all; math.Abs(share-p) > 0.12 {
			t.Errorf("%v intervals hold %v of %v hidden cells", p, share, all)
		}
	}
	if !(widths[0] < widths[1]) {
		t.Errorf("widths %v", widths)
	}
}
