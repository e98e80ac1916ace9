package quantmf_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
)

// newTable is n new samples of the features of smallModels, some cells missing.
func newTable(n int) quantmf.Mat {
	x := quantmf.NewMat(6, n)
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

// viaRows is a matrix of a caller's own type.
type viaRows struct{ m quantmf.Mat }

func (v viaRows) Dims() (int, int)                 { return v.m.Dims() }
func (v viaRows) ReadRow(x []float64, i int) error { return v.m.ReadRow(x, i) }
func held(x quantmf.Mat) (holders []quantmf.Rows) {
	narrow := quantmf.Mat32{Rows: x.Rows, Cols: x.Cols, Stride: x.Cols, Data: make([]float32, x.Rows*x.Cols)}
	start, index, values := []int{0}, []uint32(nil), []float64(nil)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			narrow.Data[i*x.Cols+j] = float32(v)
			if v != 0 {
				index, values = append(index, uint32(j)), append(values, v)
			}
		}
		start = append(start, len(index))
	}
	sparse, _ := quantmf.NewSparse(x.Cols, start, index, values)
	return []quantmf.Rows{x, viaRows{x}, sparse, narrow}
}

// TestScoresAndPredictions: Scores and Score are the divergences of the observed cells from Predict, one
// sample alone has the number it has among others, and neither holder nor workers make a difference.
func TestScoresAndPredictions(t *testing.T) {
	t.Parallel()
	_, models := smallModels(t)
	x, ctx := newTable(13), context.Background()
	for i, v := range x.Data { // numbers that single precision has
		x.Data[i] = float64(float32(v))
	}
	for method, m := range models {
		data, _ := m.MarshalBinary()
		p, err := m.Predict(ctx, x)
		if err != nil || p.Rows != x.Rows || p.Cols != x.Cols {
			t.Fatal(method, err, p.Rows, p.Cols)
		}
		scores, err := m.Scores(ctx, x)
		if err != nil || len(scores) != x.Cols {
			t.Fatal(method, err)
		}
		total, cells := 0.0, 0.0
		for j := range x.Cols {
			sum, n := 0.0, 0.0
			for i := range x.Rows {
				if v := p.At(i, j); !(v >= 0) || math.IsInf(v, 0) {
					t.Errorf("%v: cell %d, %d is predicted as %v", method, i, j, v)
				}
				if v := x.At(i, j); v == v {
					sum += quantmf.KL.At(v, p.At(i, j))
					n++
				}
			}
			total, cells = total+sum, cells+n
			if want := sum / n; !(math.Abs(scores[j]-want) <= 1e-12*(1+want)) {
				t.Errorf("%v: sample %d scores %v, its prediction says %v", method, j, scores[j], want)
			}
			one := quantmf.Mat{Rows: x.Rows, Cols: 1, Stride: x.Stride, Data: x.Data[j:]}
			if alone, err := m.Scores(ctx, one); err != nil || alone[0] != scores[j] {
				t.Errorf("%v: sample %d alone scores %v, %v", method, j, alone, err)
			}
		}
		score, err := m.Score(ctx, x)
		if want := total / cells; err != nil || !(math.Abs(score-want) <= 1e-12*(1+want)) {
			t.Errorf("%v: Score is %v, the mean of Scores over the observed cells %v, %v", method, score,
				want, err)
		}
		for workers := range 3 {
			again := must(quantmf.UnmarshalModel(data, quantmf.WithWorkers(workers)))(t)
			for _, rows := range held(x) {
				s, err1 := again.Scores(ctx, rows)
				q, err2 := again.Predict(ctx, rows)
				if errors.Join(err1, err2) != nil || !slices.Equal(s, scores) ||
					!slices.Equal(q.Data, p.Data) {
					t.Errorf("%v by %T, %d workers: other numbers, %v", method, rows, workers,
						errors.Join(err1, err2))
				}
			}
		}
		placeable, is := m.(interface {
			quantmf.Model
			Transform(context.Context, quantmf.Rows) (quantmf.Mat, error)
		})
		v, _ := placeable.Transform(ctx, x)
		var moved quantmf.Model
		switch m := m.(type) {
		case *quantmf.NMF:
			moved, err = m.Placed(v)
		case *quantmf.QMF:
			moved, err = m.Placed(v)
		default:
			is = false
		}
		if is {
			if r := moved.Reconstruct(); err != nil || !slices.Equal(r.Data, p.Data) {
				t.Errorf("%v: the model placed at Transform is not Predict: %v", method, err)
			}
		}
	}
}

// TestPredictErrors: what no model takes is a typed error, and so is a context that has ended.
func TestPredictErrors(t *testing.T) {
	t.Parallel()
	_, models := smallModels(t)
	ended, stop := context.WithCancel(context.Background())
	stop()
	empty := newTable(4)
	for i := range empty.Rows {
		empty.Set(i, 2, math.NaN())
	}
	infinite := newTable(4)
	infinite.Set(1, 1, math.Inf(1))
	for method, m := range models {
		for what, x := range map[string]quantmf.Rows{"no matrix": nil, "other features": quantmf.NewMat(5, 3),
			"a sample without a cell": empty, "an infinite cell": infinite} {
			_, err1 := m.Scores(t.Context(), x)
			_, err2 := m.Predict(t.Context(), x)
			errs := []error{err1, err2}
			if b, is := m.(*quantmf.BQMF); is {
				_, _, err := b.PredictInterval(t.Context(), x, 0.9)
				errs = append(errs, err)
			}
			for _, err := range errs {
				if !typed(err) {
					t.Errorf("%v of %s: %v", method, what, err)
				}
			}
		}
		_, err1 := m.Scores(ended, newTable(40))
		_, err2 := m.Predict(ended, newTable(40))
		if !errors.Is(err1, context.Canceled) || !errors.Is(err2, context.Canceled) {
			t.Errorf("%v after the end of its context: %v, %v", method, err1, err2)
		}
		if b, is := m.(*quantmf.BQMF); is {
			for _, p := range []float64{0, 1, math.NaN(), -1} {
				if _, _, err := b.PredictInterval(t.Context(), newTable(3), p); !typed(err) {
					t.Errorf("an interval of probability %v: %v", p, err)
				}
			}
		}
	}
	if _, err := quantmf.UnmarshalModel(nil, quantmf.WithEpsilon(1)); !typed(err) {
		t.Errorf("an option that UnmarshalModel has no use for: %v", err)
	}
}

// TestPredictIntervals: intervals of new samples hold the medians, widen with p, and hold their share of
// hidden cells of samples that the fit has not seen.
func TestPredictIntervals(t *testing.T) {
	t.Parallel()
	const d, n, seen = 30, 160, 100
	x := quantmf.NewMat(d, n)
	wave := func(i, j int) float64 { return math.Sin(float64(i*7+j*13) + math.Sin(float64(i*j))*40) }
	for i := range d {
		for j := range n {
			w := math.Sin(float64(i))*math.Cos(float64(3*j)) + math.Cos(float64(2*i))*math.Sin(float64(j)/5)
			x.Set(i, j, math.Exp(w+0.3*wave(i, j)))
		}
	}
	train := quantmf.Mat{Rows: d, Cols: seen, Stride: n, Data: x.Data}
	m := must(quantmf.FitBQMF(t.Context(), train, 6))(t)
	fresh := quantmf.Mat{Rows: d, Cols: n - seen, Stride: n, Data: x.Data[seen:]}.Clone()
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
		if err != nil {
			t.Fatal(err)
		}
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
