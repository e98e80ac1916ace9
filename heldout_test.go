package quantmf

// Tests of the losses of hidden cells: against the formula, for the choice of a rank, and
// on real data against the means of rows.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestHeldOut: on a matrix of rank 3 with Poisson-like noise, three components
// predict hidden cells best, fewer miss structure and many more fit noise.
func TestHeldOut(t *testing.T) {
	Slow(t)
	r := random.Split(51, 0)
	draw := func() float64 { return math.Exp(Normal(&r)) }
	x := Times(Drawn(40, 3, draw), Drawn(3, 36, draw))
	for i, w := range x.Data {
		x.Data[i] = max(w+math.Sqrt(w)*Normal(&r), 0.01)
	}
	x.Set(2, 2, math.NaN())
	ctx := context.Background()
	trials := []Trial{{Rank: 1}, {Rank: 3}, {Rank: 12, Options: []FitOption{WithEpochs(Draws(300, 60, 0))}}}
	p := Hidden(t, x, FitNMF, trials, Masks{4, 0.1, 1, 0})
	if p[1].Mean > p[0].Mean || p[1].Mean > p[2].Mean {
		t.Errorf("three components are not the best: %v", p)
	}
	for i, q := range p { // each of the fits by itself
		at, squares := Mean(q.Losses), 0.0
		for _, l := range q.Losses {
			squares += (l - at) * (l - at)
		}
		if len(q.Losses) != 4 || math.Abs(q.Mean-at) > 1e-12*at ||
			math.Abs(q.StdErr-math.Sqrt(squares/3/4)) > 1e-12*at {
			t.Errorf("mean %v ± %v of %v", q.Mean, q.StdErr, q.Losses)
		}
		for r, want := range q.Losses[:2] {
			if got := Hidden(t, x, FitNMF, trials[i:i+1],
				Masks{1, 0.1, 1, r}); got[0].Losses[0] != want {
				t.Errorf("trial %d, repeat %d alone: %v, want %v", i, r, got, want)
			}
		}
	}
	if p = Hidden(t, x, FitQMFQ,
		[]Trial{{1, []FitOption{WithEpochs(3)}}, {3, []FitOption{WithEpochs(3)}}},
		Masks{1, 0.1, 1, 0}); p[1].Mean > p[0].Mean {
		t.Errorf("QMFQ of one component predicts better than of three: %v", p)
	}
	usual := Hidden(t, x, FitNMF, trials[:1], Masks{})
	same := Hidden(t, x, FitNMF, trials[:1], Masks{Repeats: 5, Share: 0.1})
	if len(usual[0].Losses) != 5 || !slices.Equal(usual[0].Losses, same[0].Losses) {
		t.Errorf("the masks that nobody chose: %v, %v", usual, same)
	}
	for bad, loss := range map[float64]Loss{math.Inf(1): KL, -1: KL, 0: Beta(0)} { // hidden or not
		y := x.Clone()
		y.Set(3, 4, bad)
		trial := []Trial{{1, []FitOption{WithLoss(loss), WithEpochs(1)}}}
		for seed := range uint64(10) {
			if _, err := HeldOut(ctx, y, FitNMF, trial, Masks{1, 0.5, seed, 0}); !DataAt(err, 3, 4) {
				t.Errorf("%v under a mask: %v", bad, err)
			}
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := ErrorOf(HeldOut(gone, x, FitNMF, trials, Masks{1, 0.1, 1, 0})); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestMasks: every row and column of what a fit gets has two visible cells, or all that x has there, and each
// seed and repeat hides others. TestHiddenRows has the losses of what is hidden.
func TestMasks(t *testing.T) {
	x := first(toy(3), 9)
	x.Cols = 7
	x = x.Clone()
	for i := range x.Data {
		x.Data[i] += 0.1
	}
	for j := 1; j < 7; j++ { // a row of one observed cell, and one of two
		x.Set(4, j, math.NaN())
		if j > 1 {
			x.Set(5, j, math.NaN())
		}
	}
	observed := func(v []float64) (count int) {
		for _, v := range v {
			if v == v {
				count++
			}
		}
		return count
	}
	masks := map[string]bool{}
	for seed := range uint64(20) {
		var mu sync.Mutex
		var all []Mat
		fit := func(ctx context.Context, y Rows, rank int, opts ...FitOption) (*NMF, error) {
			mu.Lock()
			all = append(all, y.(Mat).Clone())
			mu.Unlock()
			return FitNMF(ctx, y, rank, append(opts, WithEpochs(3))...)
		}
		const repeats = 2
		Hidden(t, x, fit, []Trial{{Rank: 2}}, Masks{Repeats: repeats, Share: 0.5, Seed: seed})
		if len(all) != repeats {
			t.Fatalf("%d fits", len(all))
		}
		for _, seen := range all {
			masks[fmt.Sprint(seen.Data)] = true
			for _, of := range [][2]Mat{{seen, x}, {seen.T(), x.T()}} {
				for line := range of[0].Rows {
					visible, had := observed(of[0].Row(line)), observed(of[1].Row(line))
					if visible < min(had, 2) {
						t.Errorf("seed %d: %d of %d cells of a row or column %d are visible", seed, visible,
							had, line)
					}
				}
			}
		}
	}
	Equal(t, len(masks), 40, "masks of 20 seeds, 2 repeats each")
}

// TestHeldOutIsFinite: HeldOut has a number or an error.
func TestHeldOutIsFinite(t *testing.T) {
	ctx := context.Background()
	for _, l := range []Loss{KL, Frobenius, 1.5, 4} {
		for _, x := range []Mat{NewMat(6, 9), TimesPower(near1(2, 6, 9), -560)} {
			trials := []Trial{{Rank: 2, Options: []FitOption{WithLoss(l), WithEpochs(3)}}}
			for method := range MethodBQMF {
				p, err := HeldOut(ctx, x, By(method), trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
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

// TestUnseenCells: NMF and QMF as they come predict a hidden tenth of the cells better than the mean of the
// row does, on logarithms and on counts; QMF far better on protein arrays and log ratios, whose rows are
// standardised, so that none counts for more than another. Without QUANTMF_LONG, of some features.
func TestUnseenCells(t *testing.T) {
	Slow(t)
	for _, c := range []struct {
		path   string
		few    int
		signed bool
		most   float64 // of the loss of the means
	}{
		{"tcga-kirc/mirna", 200, false, 1},
		{"sotu-wordcounts/counts", 80, false, 1},
		{"tcga-kirc/rppa", 80, true, 0.9},
		{"tcga-brca/exp", 80, true, 0.9},
	} {
		t.Run(c.path, func(t *testing.T) {
			x := loadRows(t, "../shared/data/"+c.path+".tsv.gz", Draws(math.MaxInt, c.few, 0))
			methods, loss := []Method{MethodNMF, MethodQMF}, KL
			if c.signed {
				methods, loss, x.Cols = methods[1:], Frobenius, min(x.Cols, 100)
				for i := range x.Rows {
					row := x.Row(i)
					at, squares := Mean(row), 0.0
					for j := range row {
						row[j] -= at
						squares += row[j] * row[j]
					}
					for j := range row {
						row[j] /= math.Sqrt(squares / float64(len(row)))
					}
				}
			}
			for _, method := range methods {
				trial := Trial{Rank: 3, Options: []FitOption{WithLoss(loss)}}
				masks := Masks{Repeats: 1, Seed: 1}
				p := Hidden(t, x, By(method), []Trial{trial}, masks)[0]
				t.Logf("%v %.4g, row means %.4g", method, p.Mean, p.Baseline[0])
				if !(p.Mean < c.most*p.Baseline[0]) {
					t.Errorf("%v: unseen cells lose %v, the means of rows %v", method, p.Mean, p.Baseline[0])
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
	NearAll(t, []float64{p.Mean, p.StdErr}, []float64{3, math.Sqrt(7.0 / 3)}, 1e-15,
		"mean and standard error of 1, 2, 6")
	p = joined(1, 2)
	NearAll(t, []float64{p.Mean, p.StdErr}, []float64{1.5, 0.5}, 1e-15, "mean and standard error of 1, 2")
	p = joined(4)
	NearAll(t, []float64{p.Mean, p.StdErr}, []float64{4, 0}, 0, "mean and standard error of 4")
}
