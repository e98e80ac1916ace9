package quantmf

// Tests of the losses of hidden cells: against the formula, for the choice of a rank, and
// on real data against the means of rows.

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestHeldOut: on a matrix of rank 3 with Poisson-like noise, three components
// predict hidden cells best, fewer miss structure and many more fit noise.
func TestHeldOut(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
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
	trials := []Trial{{Rank: 1}, {Rank: 3}, {Rank: 12, Options: []FitOption{WithEpochs(draws(300, 100, 60))}}}
	p := must(HeldOut(ctx, x, FitNMF, trials, Masks{4, 0.1, 1, 0}))(t)
	if p[1].Mean > p[0].Mean || p[1].Mean > p[2].Mean {
		t.Errorf("three components are not the best: %v", p)
	}
	for i, q := range p { // each of the fits by itself
		at, squares := mean(q.Losses), 0.0
		for _, l := range q.Losses {
			squares += (l - at) * (l - at)
		}
		if len(q.Losses) != 4 || math.Abs(q.Mean-at) > 1e-12*at ||
			math.Abs(q.StdErr-math.Sqrt(squares/3/4)) > 1e-12*at {
			t.Errorf("mean %v ± %v of %v", q.Mean, q.StdErr, q.Losses)
		}
		for r, want := range q.Losses {
			if got := must(HeldOut(ctx, x, FitNMF, trials[i:i+1],
				Masks{1, 0.1, 1, r}))(t); got[0].Losses[0] != want {
				t.Errorf("trial %d, repeat %d alone: %v, want %v", i, r, got, want)
			}
		}
	}
	again := must(HeldOut(ctx, x, FitNMF, trials[1:2], Masks{Repeats: 4, Share: 0.1, Seed: 1}))(t)
	closeTo(t, "again, alone", again[0].Losses, p[1].Losses, 0)
	if p = must(HeldOut(ctx, x, FitQMFQ,
		[]Trial{{1, []FitOption{WithEpochs(10)}}, {3, []FitOption{WithEpochs(5)}}},
		Masks{2, 0.1, 1, 0}))(t); p[1].Mean > p[0].Mean {
		t.Errorf("QMFQ of one component predicts better than of three: %v", p)
	}
	usual := must(HeldOut(ctx, x, FitNMF, trials[:1], Masks{}))(t)
	same := must(HeldOut(ctx, x, FitNMF, trials[:1], Masks{Repeats: 5, Share: 0.1}))(t)
	if len(usual[0].Losses) != 5 || !slices.Equal(usual[0].Losses, same[0].Losses) {
		t.Errorf("the masks that nobody chose: %v, %v", usual, same)
	}
	for bad, loss := range map[float64]Loss{math.Inf(1): KL, -1: KL, 0: Beta(0)} { // hidden or not
		y := x.Clone()
		y.Set(3, 4, bad)
		trial := []Trial{{1, []FitOption{WithLoss(loss), WithEpochs(1)}}}
		for seed := range uint64(10) {
			var data *DataError
			if _, err := HeldOut(ctx, y, FitNMF, trial, Masks{1, 0.5, seed, 0}); !errors.As(err, &data) ||
				data.Row != 3 || data.Col != 4 {
				t.Errorf("%v under a mask: %v", bad, err)
			}
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := errorOf(HeldOut(gone, x, FitNMF, trials, Masks{1, 0.1, 1, 0})); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestMasks: under the largest share every row and column keeps two visible cells, or what it has, and every
// repeat of every seed hides other cells. hidden_test.go has the losses by their formulas.
func TestMasks(t *testing.T) {
	x := first(toy(3), 9)
	x.Cols = 7
	x = x.Clone()
	for j := 1; j < 7; j++ { // a row of one observed cell, and one of two
		x.Set(4, j, math.NaN())
		if j > 1 {
			x.Set(5, j, math.NaN())
		}
	}
	visible := func(row []float64) (count int) {
		for _, v := range row {
			if v == v {
				count++
			}
		}
		return count
	}
	var lock sync.Mutex
	masks := map[uint64]bool{}
	fit := func(ctx context.Context, y Rows, rank int, opts ...FitOption) (*NMF, error) {
		lock.Lock()
		defer lock.Unlock()
		given := y.(Mat)
		masks[fingerprint(given)] = true
		for _, of := range [][2]Mat{{x, given}, {x.T(), given.T()}} {
			for i := range of[0].Rows {
				if had, seen := visible(of[0].Row(i)), visible(of[1].Row(i)); seen < min(had, 2) {
					t.Errorf("%d of %d cells of a row or column %d are visible", seen, had, i)
				}
			}
		}
		return FitNMF(ctx, y, rank, append(opts, WithEpochs(1))...)
	}
	for seed := range uint64(20) {
		must(HeldOut(t.Context(), x, fit, []Trial{{Rank: 2}}, Masks{Repeats: 2, Share: 0.5, Seed: seed}))(t)
	}
	if len(masks) != 40 {
		t.Errorf("%d masks of 20 seeds, 2 repeats each", len(masks))
	}
}

// TestHeldOutIsFinite: HeldOut has a number or an error.
func TestHeldOutIsFinite(t *testing.T) {
	ctx := context.Background()
	for _, l := range []Loss{KL, Frobenius, 1.5, 4} {
		for _, x := range []Mat{NewMat(6, 9), timesPower(near1(2, 6, 9), -560)} {
			trials := []Trial{{Rank: 2, Options: []FitOption{WithLoss(l), WithEpochs(3)}}}
			for method := range MethodBQMF {
				p, err := HeldOut(ctx, x, by(method), trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				if _, small := err.(*DataError); small && p == nil && x.At(0, 0) > 0 && l >= 2 {
					continue // the losses have no number
				}
				if err != nil || p[0].Mean-p[0].Mean != 0 || notFinite(p[0].Losses) >= 0 {
					t.Errorf("β %v, %v: %v, %v", l, method, p, err)
				}
			}
		}
	}
}

// TestUnseenCells: on real data NMF and QMF as they come predict a hidden tenth of the cells better than the
// means of their rows do, and QMF so of protein arrays and log ratios.
func TestUnseenCells(t *testing.T) {
	slow(t)
	for _, c := range []struct {
		path    string
		rows    int
		methods []Method
		loss    Loss
		most    float64 // of the loss of the means
	}{
		{"tcga-kirc/mirna", 300, []Method{MethodNMF, MethodQMF}, KL, 1},
		{"sotu-wordcounts/counts", 100, []Method{MethodNMF, MethodQMF}, KL, 1},
		{"tcga-kirc/rppa", 120, []Method{MethodQMF}, Frobenius, 0.9},
		{"tcga-ov/rppa", 120, []Method{MethodQMF}, Frobenius, 0.9},
		{"tcga-brca/exp", 120, []Method{MethodQMF}, Frobenius, 0.9},
	} {
		t.Run(c.path, func(t *testing.T) {
			x := loadRows(t, "../shared/data/"+c.path+".tsv.gz", draws(math.MaxInt, c.rows, c.rows))
			if !long {
				x.Cols = min(x.Cols, 120)
			}
			for _, method := range c.methods {
				trials := []Trial{{Rank: 5, Options: []FitOption{WithLoss(c.loss)}}}
				p := must(HeldOut(t.Context(), x, by(method), trials, Masks{Repeats: 1, Seed: 1}))(t)[0]
				share := p.Mean / p.Baseline[0]
				t.Logf("%v: %.3f of the loss of the means of rows", method, share)
				if !(share < c.most) {
					t.Errorf("%v: %.3f of the loss of the means of rows, want less than %v", method, share,
						c.most)
				}
			}
		})
	}
}

// TestPredictionFar: the standard error of losses whose squares are beyond the range of numbers is a number.
func TestPredictionFar(t *testing.T) {
	near, far := joined(1, 4, 2), joined(1e200, 4e200, 2e200)
	if ratio := far.StdErr / near.StdErr; math.Abs(ratio/1e200-1) > 1e-15 {
		t.Errorf("%v, of losses 1e200 times as large %v", near, far)
	}
}

// joined is a prediction of some losses.
func joined(losses ...float64) (p Prediction) {
	for _, l := range losses {
		p = p.Join(Prediction{Losses: []float64{l}})
	}
	return p
}

// TestJoin: the mean of the losses, and its standard error, 0 of one loss.
func TestJoin(t *testing.T) {
	p := joined(1, 2, 6)
	closeTo(t, "mean and standard error of 1, 2, 6", []float64{p.Mean, p.StdErr},
		[]float64{3, math.Sqrt(7.0 / 3)}, 1e-15)
	p = joined(1, 2)
	closeTo(t, "mean and standard error of 1, 2", []float64{p.Mean, p.StdErr}, []float64{1.5, 0.5}, 1e-15)
	p = joined(4)
	closeTo(t, "mean and standard error of 4", []float64{p.Mean, p.StdErr}, []float64{4, 0}, 0)
}
