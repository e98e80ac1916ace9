package main

// This file holds what "quantmf fit" says first: how well values that were hidden are predicted. A tenth of
// the values is hidden from a further fit of the same method, and from an NMF of as many components, and the
// predictions of both are compared with the mean of the feature's other values. A BQMF predicts each of its
// values without itself, so it needs no further fit.

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
)

// hiddenCells is how many values the matrix has at most from which values are hidden. Of a larger one some
// features are taken, and of one with very many samples some samples, so that the further fits cost little.
const hiddenCells = 1 << 20

// hiddenValues is how many values are hidden at least, by at most ten masks.
const hiddenValues = 2000

// hiddenSize is the size of the matrix from which values are hidden.
func hiddenSize(d, n int) (rows, columns int) {
	rows = min(d, max(hiddenCells/n, 500))
	return rows, min(n, max(hiddenCells/rows, 1))
}

// hiddenTrials are the further fits: of the method, and of NMF unless that is the method or values are
// negative. A BQMF has more components than an NMF could have.
func (f *fitFlags) hiddenTrials(negative bool) (methods []string, trials []quantmf.Trial) {
	methods, trials = []string{f.method}, []quantmf.Trial{{Rank: f.rank,
		Options: f.options.List(option.Missing, option.Workers, option.Strict, option.Restarts)}}
	if (f.method == "qmf" || f.method == "qmfq") && !negative {
		methods = append(methods, "nmf")
		trials = append(trials, quantmf.Trial{Rank: f.rank, Options: f.options.Shared()})
	}
	return methods, trials
}

// hiddenFootprint is the most that is alive in the further fits, in bytes.
func (f *fitFlags) hiddenFootprint(d, n int) (float64, error) {
	if f.compare == "none" {
		return 0, nil
	}
	rows, columns := hiddenSize(d, n)
	methods, trials := f.hiddenTrials(false)
	most := 0.0
	for i, t := range trials {
		need, err := quantmf.MemoryOf(settings.Method(methods[i]), rows, columns, t.Rank,
			append(t.Options, quantmf.WithMissingValues(), quantmf.WithWorkers(1))...)
		if bad := new(quantmf.OptionError); errors.As(err, &bad) {
			return 0, nil // such a fit takes no hidden values
		}
		if err != nil {
			return 0, err
		}
		most = max(most, float64(need.Fit))
	}
	numbers := 8 * float64(rows) * float64(columns)
	return float64(runtime.GOMAXPROCS(0))*(most+2*numbers) + 2*numbers, nil
}

// unseen finds out how well the model predicts values that it has not seen. An interrupt, or a matrix or a
// method of which no value can be hidden, leaves that out.
func (r *result) unseen(ctx context.Context, tell *cli.Progress) error {
	visible := make([]float64, 0, len(r.goodness))
	negative := false
	err := r.table.EachRow(func(_ int, row []float64) {
		n := 0.0
		for _, v := range row {
			if v == v {
				n++
			}
			negative = negative || v < 0
		}
		visible = append(visible, n)
	})
	if err != nil || r.compare == "none" {
		return cli.Explain(err, r.table)
	}
	u := account.Unseen{NMF: math.NaN(), Fitted: explained(r.goodness, visible)}
	x, err := r.part()
	if err != nil {
		return cli.Explain(err, r.table)
	}
	methods, trials := r.hiddenTrials(negative)
	all, err := r.hide(ctx, tell, x, methods, trials)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, new(*quantmf.OptionError)), errors.As(err, new(*quantmf.DataError)):
		r.untried = "no values can be hidden from such a fit of this matrix"
		return nil
	case err != nil:
		return err
	}
	own := all[0]
	for _, c := range own {
		u.Values += c.hidden
	}
	loss := func(trial int) func(i int) float64 { return func(i int) float64 { return all[trial][i].loss } }
	worse, stdErr := ofMeans(own, loss(0))
	u.Predicted, u.StdErr = 1-worse, stdErr
	if len(all) > 1 {
		behind, _ := ofMeans(own, loss(1))
		u.NMF = 1 - behind
		u.Ahead, u.AheadErr = ofMeans(own, func(i int) float64 { return all[1][i].loss - all[0][i].loss })
	}
	if u.Predicted-u.Predicted == 0 {
		r.m.Unseen = u
	}
	return nil
}

// explained is the share of the differences between samples that the model explains of the values that it was
// fitted to.
func explained(goodness []quantmf.Goodness, visible []float64) float64 {
	left, spread := 0.0, 0.0
	for i, g := range goodness {
		left += g.Divergence * visible[i]
		spread += g.Spread * visible[i]
	}
	if spread == 0 {
		return 1
	}
	return 1 - left/spread
}

// part is the matrix, or what hiddenSize leaves of it: features and samples at equal distances.
func (r *result) part() (quantmf.Mat, error) {
	d, n := r.table.Dims()
	rows, columns := hiddenSize(d, n)
	if rows == d && columns == n && r.table.Held == nil {
		return r.table.X, nil
	}
	x, to := quantmf.NewMat(rows, columns), 0
	err := r.table.EachRow(func(i int, row []float64) {
		if to < rows && i == int(int64(to)*int64(d)/int64(rows)) {
			for j := range columns {
				x.Set(to, j, row[int64(j)*int64(n)/int64(columns)])
			}
			to++
		}
	})
	return x, err
}

// hide makes the further fits, and returns the errors of their predictions by trial and feature.
func (r *result) hide(ctx context.Context, tell *cli.Progress, x quantmf.Mat, methods []string,
	trials []quantmf.Trial) ([][]feature, error) {
	if workers := r.fitFlags.options.Workers(); workers > 0 { // as many fits at a time
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	}
	ranks := make([]int, len(trials))
	for i := range trials { // HeldOut gets the number of the trial in place of a rank
		ranks[i], trials[i].Rank = trials[i].Rank, i
	}
	share := hiddenShare(x)
	known := float64(len(x.Data) - missing(x))
	masks := max(1, min(10, int(math.Ceil(hiddenValues/(share*known)))))
	var mutex sync.Mutex
	parts, done := make([][][]feature, len(trials)), 0
	tell.Begin(strings.ToUpper(r.method) + " without hidden values")
	if err := tell.Count(0, masks*len(trials), "fits"); err != nil {
		return nil, err
	}
	_, err := quantmf.HeldOut(ctx, x, func(ctx context.Context, given quantmf.Rows, trial int,
		options ...quantmf.FitOption) (quantmf.Model, error) {
		m, err := settings.Fit(ctx, methods[trial], given, ranks[trial], options...)
		if err != nil {
			return nil, err
		}
		part, err := r.predicted(m, x, given)
		if err != nil {
			return nil, err
		}
		mutex.Lock()
		defer mutex.Unlock()
		parts[trial] = append(parts[trial], part)
		done++
		return m, tell.Count(done, masks*len(trials), "fits")
	}, trials, quantmf.Masks{Repeats: masks, Share: share, Seed: r.fitFlags.options.Seed})
	if err != nil {
		return nil, err
	}
	all := make([][]feature, len(trials))
	for trial := range all {
		all[trial] = summed(parts[trial])
	}
	return all, nil
}

// predicted returns the errors of a model's predictions of the values of x that given has not, by feature. A
// feature of which it has zeros alone is left out: its mean, 0, is no prediction under most losses.
func (r *result) predicted(m quantmf.Model, x quantmf.Mat, given quantmf.Rows) ([]feature, error) {
	of, out, row := m.Reconstruct(), make([]feature, x.Rows), make([]float64, x.Cols)
	for i := range out {
		if err := given.ReadRow(row, i); err != nil {
			return nil, err
		}
		mean, n, some := 0.0, 0.0, false
		for _, v := range row {
			if v == v {
				n++
				mean += (v - mean) / n
				some = some || v != 0
			}
		}
		for j, v := range x.Row(i) {
			if some && v == v && row[j] != row[j] {
				l := r.fitFlags.options.Loss
				out[i].add(feature{hidden: 1, loss: l.At(v, of.At(i, j)), own: l.At(v, mean)})
			}
		}
	}
	return out, nil
}
