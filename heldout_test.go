package quantmf

// Tests of the losses of hidden cells: against the formula, for the choice of a rank, and
// on real data against the means of rows.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
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
	trials := []Trial{{Rank: 1}, {Rank: 3}, {Rank: 12, Options: []FitOption{WithEpochs(draws(300, 100, 60))}}}
	p := must(HeldOut(ctx, x, FitNMF, trials, Masks{Repeats: 4, Share: 0.1, Seed: 1}))(t)
	t.Logf("rank 1: %.3f±%.3f, 3: %.3f±%.3f, 12: %.3f±%.3f", p[0].Mean, p[0].StdErr, p[1].Mean, p[1].StdErr,
		p[2].Mean, p[2].StdErr)
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
	for i, q := range p { // each of the fits by itself
		for r, want := range q.Losses {
			got, err := HeldOut(ctx, x, FitNMF, trials[i:i+1],
				Masks{Repeats: 1, Share: 0.1, Seed: 1, First: r})
			if err != nil || got[0].Losses[0] != want {
				t.Errorf("trial %d, repeat %d alone: %v, %v, want %v", i, r, got, err, want)
			}
		}
	}
	var option *OptionError
	if _, err := HeldOut(ctx, x, FitNMF, trials, Masks{First: -1}); !errors.As(err, &option) ||
		option.Option != "first" {
		t.Errorf("masks from -1 on: %v", err)
	}
	again := must(HeldOut(ctx, x, FitNMF, trials[1:2], Masks{Repeats: 4, Share: 0.1, Seed: 1}))(t)
	closeTo(t, "again, alone", again[0].Losses, p[1].Losses, 0)
	if _, err := HeldOut(ctx, x, FitQMF, []Trial{{Rank: 2, Options: []FitOption{WithEpochs(3)}}},
		Masks{Repeats: 2, Share: 0.2, Seed: 1}); err != nil {
		t.Error(err)
	}
	few := must(HeldOut(ctx, x, FitQMFQ,
		[]Trial{{Rank: 1, Options: []FitOption{WithEpochs(10)}},
			{Rank: 3, Options: []FitOption{WithEpochs(5)}}}, Masks{Repeats: 2, Share: 0.1, Seed: 1}))(t)
	t.Logf("QMFQ, rank 1: %.3f±%.3f, 3: %.3f±%.3f", few[0].Mean, few[0].StdErr, few[1].Mean, few[1].StdErr)
	if few[1].Mean > few[0].Mean {
		t.Error("QMFQ of one component predicts better than of three")
	}

	if _, err := HeldOut(ctx, x, FitQMFQ,
		[]Trial{{Rank: 2, Options: []FitOption{WithProjection(TruncatedSVD())}}},
		Masks{Repeats: 1, Share: 0.1, Seed: 1}); !errors.As(err, &option) ||
		option.Option != "WithProjection" {
		t.Errorf("a truncated SVD without some cells: %v", err)
	}
	if _, err := HeldOut(ctx, x, FitNMF, []Trial{{Rank: 0}},
		Masks{Repeats: 1, Share: 0.1, Seed: 1}); !errors.As(err, &option) {
		t.Errorf("rank 0: %v", err)
	}
	if _, err := HeldOut(ctx, x, FitNMF, trials, Masks{Repeats: -1, Share: 0.1, Seed: 1}); !errors.As(err,
		&option) {
		t.Errorf("fewer than no repeats: %v", err)
	}
	usual := must(HeldOut(ctx, x, FitNMF, trials[:1], Masks{}))(t)
	same, err := HeldOut(ctx, x, FitNMF, trials[:1], Masks{Repeats: 5, Share: 0.1})
	if err != nil || len(usual[0].Losses) != 5 || !slices.Equal(usual[0].Losses, same[0].Losses) {
		t.Errorf("the masks that nobody chose: %v, %v, %v", usual, same, err)
	}
	if _, err := HeldOut(ctx, x, FitNMF, trials, Masks{Repeats: 1, Share: 0.9, Seed: 1}); !errors.As(err,
		&option) {
		t.Errorf("share 0.9: %v", err)
	}
	for _, repeats := range []int{-1, math.MaxInt, math.MaxInt / 1000} {
		if _, err := HeldOut(ctx, x, FitNMF, trials,
			Masks{Repeats: repeats, Share: 0.1, Seed: 1}); !errors.As(err, &option) ||
			option.Option != "repeats" {
			t.Errorf("%d repeats: %v", repeats, err)
		}
	}
	for _, bad := range []float64{math.Inf(1), -1} { // hidden or not
		y := x.Clone()
		y.Set(3, 4, bad)
		var data *DataError
		for seed := range uint64(10) {
			if _, err := HeldOut(ctx, y, FitNMF, trials[:1],
				Masks{Repeats: 1, Share: 0.5, Seed: seed}); !errors.As(err, &data) ||
				data.Row != 3 || data.Col != 4 {
				t.Errorf("%v under a mask: %v", bad, err)
			}
		}
		y.Set(3, 4, 0)
		itakura := []Trial{{Rank: 1, Options: []FitOption{WithLoss(Beta(0)), WithEpochs(1)}}}
		for seed := range uint64(10) {
			if _, err := HeldOut(ctx, y, FitNMF, itakura,
				Masks{Repeats: 1, Share: 0.5, Seed: seed}); !errors.As(err, &data) ||
				data.Row != 3 || data.Col != 4 {
				t.Errorf("0 under a mask, where the loss has none: %v", err)
			}
		}
	}
	mixed := []Trial{{Rank: 1, Options: []FitOption{WithEpochs(1)}},
		{Rank: 1, Options: []FitOption{WithEpochs(1), WithLoss(Frobenius)}}}
	if _, err := HeldOut(ctx, x, FitNMF, mixed, Masks{Repeats: 1, Share: 0.1, Seed: 1}); !errors.As(err,
		&option) ||
		option.Option != "WithLoss" {
		t.Errorf("two losses: %v", err)
	}
	tiny, _ := MatOf([]float64{1, 2}, []float64{3, 4})
	if _, err := HeldOut(ctx, tiny, FitNMF, trials[:1],
		Masks{Repeats: 1, Share: 0.1, Seed: 1}); !errors.As(err, &option) ||
		option.Option != "share" {
		t.Errorf("two by two: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := HeldOut(gone, x, FitNMF, trials, Masks{Repeats: 1, Share: 0.1, Seed: 1}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestHeldOutFormula holds the losses of HeldOut to the mean divergence of the cells
// that were observed and that the fit did not get, and every row and column to two
// visible cells, or to what it has.
func TestHeldOutFormula(t *testing.T) {
	ctx := context.Background()
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
	type fitted struct{ seen, fit Mat }
	masks := map[string]int{} // how often
	for seed := range uint64(20) {
		var mu sync.Mutex
		var all []fitted
		fit := func(ctx context.Context, y Rows, rank int, opts ...FitOption) (*NMF, error) {
			m, err := FitNMF(ctx, y, rank, append(opts, WithEpochs(3))...)
			if err == nil {
				mu.Lock()
				all = append(all, fitted{y.(Mat).Clone(), m.Reconstruct()})
				mu.Unlock()
			}
			return m, err
		}
		const repeats = 2
		p := must(HeldOut(ctx, x, fit, []Trial{{Rank: 2}},
			Masks{Repeats: repeats, Share: 0.5, Seed: seed}))(t)
		if len(all) != repeats {
			t.Fatalf("%d fits", len(all))
		}
		var want []float64
		for _, f := range all {
			var hidden strings.Builder
			for i, v := range f.seen.Data {
				if v != v {
					hidden.WriteString(itoa(i) + " ")
				}
			}
			masks[hidden.String()]++
			want = append(want, meanOver(1, x, f.fit,
				func(i, j int) bool {
					return x.At(i, j) == x.At(i, j) &&
						f.seen.At(i, j) != f.seen.At(i, j)
				}))
			count := func(line, length int, at func(m Mat, line, k int) float64) {
				seen, had := 0, 0
				for k := range length {
					if v := at(f.seen, line, k); v == v {
						seen++
					}
					if v := at(x, line, k); v == v {
						had++
					}
				}
				if seen < min(had, 2) {
					t.Errorf("seed %d: %d of %d cells of a row or column %d are visible", seed, seen, had,
						line)
				}
			}
			for i := range x.Rows {
				count(i, x.Cols, func(m Mat, i, j int) float64 { return m.At(i, j) })
			}
			for j := range x.Cols {
				count(j, x.Rows, func(m Mat, j, i int) float64 { return m.At(i, j) })
			}
		}
		got := slices.Clone(p[0].Losses) // fits end in any order
		slices.Sort(got)
		slices.Sort(want)
		closeTo(t, "losses", got, want, 1e-12*want[1])
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
			for name, held := range map[string]func() ([]Prediction, error){
				"NMF": func() ([]Prediction, error) {
					return HeldOut(ctx, x, FitNMF, trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				},
				"QMF": func() ([]Prediction, error) {
					return HeldOut(ctx, x, FitQMF, trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				},
				"QMFQ": func() ([]Prediction, error) {
					return HeldOut(ctx, x, FitQMFQ, trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				},
			} {
				p, err := held()
				if _, small := err.(*DataError); small && p == nil && x.At(0, 0) > 0 && l >= 2 {
					continue // the losses have no number
				}
				if err != nil || p[0].Mean-p[0].Mean != 0 || notFinite(p[0].Losses) >= 0 {
					t.Errorf("β %v, %s: %v, %v", l, name, p, err)
				}
			}
		}
	}
}

// TestUnseenCells: NMF and QMF as they come predict a hidden tenth of the cells
// better than the mean of the row does, on logarithms and on counts.
// Without QUANTMF_LONG, those of 300 and 100 features.
func TestUnseenCells(t *testing.T) {
	if testing.Short() {
		t.Skip("fits whole data sets")
	}
	ctx := context.Background()
	for path, few := range map[string]int{"../shared/data/tcga-kirc/mirna.tsv.gz": 300,
		"../shared/data/sotu-wordcounts/counts.tsv.gz": 100} {
		t.Run(path, func(t *testing.T) {
			x := loadRows(t, path, draws(math.MaxInt, few, few))
			seen := holed(x, 0.1)
			unseen := func(fit Mat) float64 {
				sum, count := 0.0, 0
				for i := range x.Rows {
					for j, v := range seen.Row(i) {
						if v != v {
							sum += divergence.KL.Value(x.At(i, j), fit.At(i, j), divergence.LeastT)
							count++
						}
					}
				}
				return sum / float64(count)
			}
			means := NewMat(x.Rows, x.Cols)
			for i := range x.Rows {
				sum, count := 0.0, 0.0
				for _, v := range seen.Row(i) {
					if v == v {
						sum += v
						count++
					}
				}
				for j := range x.Cols {
					means.Set(i, j, sum/count)
				}
			}
			nmf := must(FitNMF(ctx, seen, 5, WithMissingValues()))(t)
			qmf := must(FitQMF(ctx, seen, 5, WithMissingValues()))(t)
			base, a, b := unseen(means), unseen(nmf.Reconstruct()), unseen(qmf.Reconstruct())
			t.Logf("row means %.4g, NMF %.4g, QMF %.4g", base, a, b)
			if !(a < base) || !(b < base) {
				t.Errorf("unseen cells: row means %v, NMF %v, QMF %v", base, a, b)
			}
		})
	}
}

// TestSignedUnseenCells: on protein arrays and log ratios hidden cells are predicted
// better than by the means of their rows.
func TestSignedUnseenCells(t *testing.T) {
	for _, path := range some([]string{"../shared/data/tcga-kirc/rppa.tsv.gz",
		"../shared/data/tcga-ov/rppa.tsv.gz", "../shared/data/tcga-brca/exp.tsv.gz"}, 0) {
		t.Run(path, func(t *testing.T) {
			x := load(t, path)
			x.Rows, x.Cols = min(x.Rows, 120), min(x.Cols, 120)
			// The standardised rows: none counts for more than another.
			for i := range x.Rows {
				row := x.Row(i)
				mean := total(row) / float64(len(row))
				sd := 0.0
				for _, v := range row {
					sd += (v - mean) * (v - mean) / float64(len(row))
				}
				for j, v := range row {
					row[j] = (v - mean) / math.Sqrt(sd)
				}
			}
			ctx := context.Background()
			trials := []Trial{{Rank: 5, Options: []FitOption{WithLoss(Frobenius)}}}
			p := must(HeldOut(ctx, x, FitQMF, trials, Masks{Repeats: 1, Share: 0.1, Seed: 1}))(t)
			// The same cells by the means of what is visible of their rows.
			mask := must(newCells(x,
				&settings{validation: 0.1, seed: uint64(random.Split(1, 0)), missing: true,
					loss: divergence.Frobenius, mapped: true}))(t)
			means := 0.0
			for i := range x.Rows {
				mean := 0.0
				for _, v := range Mat(mask.Matrix()).Row(i) {
					if v == v {
						mean += v / float64(mask.InRow[i])
					}
				}
				for j, v := range x.Row(i) {
					if mask.IsHeld(i, j) {
						means += (v - mean) * (v - mean) / 2 / float64(mask.HeldOut)
					}
				}
			}
			t.Logf("held-out squares/2: QMF %.3f, means of rows %.3f", p[0].Mean, means)
			if p[0].Mean > 0.9*means {
				t.Errorf("%v is hardly better than the means of the rows, %v", p[0].Mean, means)
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

// TestMasks: fields out of range are named.
func TestMasks(t *testing.T) {
	for option, m := range map[string]Masks{"repeats": {Repeats: -1, Share: 0.1},
		"share": {Repeats: 1, Share: 0.6}} {
		var o *OptionError
		if _, err := HeldOut(context.Background(), toy(1), FitNMF, []Trial{{Rank: 1}}, m); !errors.As(err,
			&o) || o.Option != option {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
