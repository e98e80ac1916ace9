package quantmf

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestHeldOut: on a matrix of rank 3 with Poisson-like noise, three components
// predict hidden cells best, fewer miss structure and many more fit noise.
func TestHeldOut(t *testing.T) {
	r := random.Split(51, 0)
	u, v := NewMat(60, 3), NewMat(3, 50)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = math.Exp(normal(&r))
		}
	}
	x := NewMat(60, 50)
	for i := range x.Rows {
		product(x.Row(i), u.Row(i), v)
		for j, w := range x.Row(i) {
			x.Set(i, j, max(w+math.Sqrt(w)*normal(&r), 0.01))
		}
	}
	x.Set(2, 2, math.NaN())
	ctx := context.Background()
	trials := []Trial{{Rank: 1}, {Rank: 3}, {Rank: 12, Options: []FitOption{WithEpochs(300)}}}
	p, err := HeldOut(ctx, x, FitNMF, trials, Masks{4, 0.1, 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("rank 1: %.3f±%.3f, 3: %.3f±%.3f, 12: %.3f±%.3f", p[0].Mean, p[0].StdErr, p[1].Mean, p[1].StdErr, p[2].Mean, p[2].StdErr)
	if p[1].Mean > p[0].Mean || p[1].Mean > p[2].Mean {
		t.Error("three components are not the best")
	}
	for _, q := range p {
		mean, sq := total(q.Losses)/4, 0.0
		for _, l := range q.Losses {
			sq += (l - mean) * (l - mean)
		}
		if math.Abs(q.Mean-mean) > 1e-12*mean || math.Abs(q.StdErr-math.Sqrt(sq/3/4)) > 1e-12*mean {
			t.Errorf("mean %v ± %v of %v", q.Mean, q.StdErr, q.Losses)
		}
	}
	again, err := HeldOut(ctx, x, FitNMF, trials[1:2], Masks{4, 0.1, 1})
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "again, alone", again[0].Losses, p[1].Losses, 0)
	if _, err := HeldOut(ctx, x, FitQMF, []Trial{{Rank: 2, Options: []FitOption{WithEpochs(3)}}}, Masks{2, 0.2, 1}); err != nil {
		t.Error(err)
	}
	few, err := HeldOut(ctx, x, FitQMFQ, []Trial{{Rank: 1}, {Rank: 3, Options: []FitOption{WithEpochs(5)}}}, Masks{2, 0.1, 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("QMFQ, rank 1: %.3f±%.3f, 3: %.3f±%.3f", few[0].Mean, few[0].StdErr, few[1].Mean, few[1].StdErr)
	if few[1].Mean > few[0].Mean {
		t.Error("QMFQ of one component predicts better than of three")
	}
	var option *OptionError
	if _, err := HeldOut(ctx, x, FitQMFQ, []Trial{{Rank: 2, Options: []FitOption{WithProjection(TruncatedSVD())}}}, Masks{1, 0.1, 1}); !errors.As(err, &option) || option.Option != "WithProjection" {
		t.Errorf("a truncated SVD without some cells: %v", err)
	}
	if _, err := HeldOut(ctx, x, FitNMF, []Trial{{Rank: 0}}, Masks{1, 0.1, 1}); !errors.As(err, &option) {
		t.Errorf("rank 0: %v", err)
	}
	if _, err := HeldOut(ctx, x, FitNMF, trials, Masks{-1, 0.1, 1}); !errors.As(err, &option) {
		t.Errorf("fewer than no repeats: %v", err)
	}
	usual, err := HeldOut(ctx, x, FitNMF, trials[:1], Masks{})
	if err != nil {
		t.Fatal(err)
	}
	same, err := HeldOut(ctx, x, FitNMF, trials[:1], Masks{Repeats: 5, Share: 0.1})
	if err != nil || len(usual[0].Losses) != 5 || !slices.Equal(usual[0].Losses, same[0].Losses) {
		t.Errorf("the masks that nobody chose: %v, %v, %v", usual, same, err)
	}
	if _, err := HeldOut(ctx, x, FitNMF, trials, Masks{1, 0.9, 1}); !errors.As(err, &option) {
		t.Errorf("share 0.9: %v", err)
	}
	for _, bad := range []float64{math.Inf(1), -1} { // hidden or not
		y := x.Clone()
		y.Set(3, 4, bad)
		var data *DataError
		for seed := range uint64(10) {
			if _, err := HeldOut(ctx, y, FitNMF, trials[:1], Masks{1, 0.5, seed}); !errors.As(err, &data) || data.Row != 3 || data.Col != 4 {
				t.Errorf("%v under a mask: %v", bad, err)
			}
		}
		y.Set(3, 4, 0)
		itakura := []Trial{{Rank: 1, Options: []FitOption{WithLoss(Beta(0)), WithEpochs(1)}}}
		for seed := range uint64(10) {
			if _, err := HeldOut(ctx, y, FitNMF, itakura, Masks{1, 0.5, seed}); !errors.As(err, &data) || data.Row != 3 || data.Col != 4 {
				t.Errorf("0 under a mask, where the loss has none: %v", err)
			}
		}
	}
	mixed := []Trial{{Rank: 1, Options: []FitOption{WithEpochs(1)}}, {Rank: 1, Options: []FitOption{WithEpochs(1), WithLoss(Frobenius)}}}
	if _, err := HeldOut(ctx, x, FitNMF, mixed, Masks{1, 0.1, 1}); !errors.As(err, &option) || option.Option != "WithLoss" {
		t.Errorf("two losses: %v", err)
	}
	tiny, _ := MatOf([]float64{1, 2}, []float64{3, 4})
	if _, err := HeldOut(ctx, tiny, FitNMF, trials[:1], Masks{1, 0.1, 1}); !errors.As(err, &option) || option.Option != "share" {
		t.Errorf("two by two: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := HeldOut(gone, x, FitNMF, trials, Masks{1, 0.1, 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
