package main

// This file holds "quantmf impute -model": missing values of samples that a kept model has not seen, and the
// check of it. A tenth of the known values is hidden at random, several times, and predicted from the others.
// A single sample says nothing of the mean of a feature, so the predictions are compared with the means of
// what the model says of its own samples.

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
)

// keptFootprint is the most that is alive at once beside the model, in bytes: the matrix with and without
// hidden values, means, and the two ends of intervals twice; and of a BQMF that learns from the samples the
// moments of U, as precisions, and what the samples add to them.
func (r *imputation) keptFootprint(d, n int) float64 {
	numbers := 8 * float64(n)
	if k := float64(r.model.Rank()); r.spread() && n > 1 {
		numbers += 2*k*(k+3) + 64
	}
	return margin*8*float64(d)*numbers + 64*float64(d+n) + buffers + programSize
}

// takeKept reads the model, and the matrix, which gets the model's features in its order.
func (r *imputation) takeKept(s cli.Streams) ([]os.FileInfo, error) {
	m, from, err := readModel(r.kept, s.In, &r.in)
	if err != nil {
		return nil, err
	}
	r.model = m
	if !r.spread() && (r.interval > 0 || r.median()) {
		flag := "-interval"
		if r.median() {
			flag = "-value median"
		}
		return nil, cli.UsageError(flag + ": only a model of -method bqmf has the distribution of a value, " +
			"and this is one of " + m.method)
	}
	r.method, r.fitFlags.options.Loss, r.in.Log1p = m.method, m.Divergence(), false
	t, also, err := r.in.Read(r.matrix, s, r.tell, true, m.signed())
	if err != nil {
		return nil, err
	}
	r.table, err = m.fitting(t, &r.in, s.Err)
	r.in.Log1p = m.Log1p // taken by now: the summary says so
	return []os.FileInfo{from, also}, err
}

// spread tells whether the model has the distribution of a value, and not its mean alone.
func (r *imputation) spread() bool {
	_, is := r.model.Model.(*quantmf.BQMF)
	return is
}

// workKept makes the check, and fills the matrix in.
func (r *imputation) workKept(ctx context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.options.Workers())) // which 0 leaves as it is
	r.tell.Begin(r.model.kind())
	if err := r.checkKept(ctx); err != nil {
		return err
	}
	x := r.table.X
	r.tell.At("filling in")
	p, lower, upper, err := r.predict(ctx, x, r.interval)
	if err != nil {
		return err
	}
	if r.filled = p.mean; r.median() {
		r.filled = p.median
	}
	keep(r.filled, x)
	if r.interval > 0 {
		r.lower, r.upper = lower, upper
		keep(lower, x)
		keep(upper, x)
	}
	return ctx.Err()
}

// predict returns what the model says of the cells of x, and with an interval its ends. A BQMF learns from
// several samples first: it then predicts them nearly as well as one that was fitted with them.
func (r *imputation) predict(ctx context.Context, x quantmf.Mat, interval float64) (p forecast,
	lower, upper quantmf.Mat, err error) {
	b, is := r.model.Model.(*quantmf.BQMF)
	if !is {
		p.mean, err = r.model.Predict(ctx, x)
		p.median = p.mean
		return p, lower, upper, err
	}
	if x.Cols > 1 {
		b, err = b.Updated(ctx, x)
	}
	if err == nil {
		p.mean, err = b.Predict(ctx, x)
	}
	if err == nil { // the median is either end of an interval without width
		p.median, _, err = b.PredictInterval(ctx, x, 1e-12)
	}
	if err == nil && interval > 0 {
		lower, upper, err = b.PredictInterval(ctx, x, interval)
	}
	return p, lower, upper, err
}

// checkKept hides known values, each time others, and adds up the errors of their predictions.
func (r *imputation) checkKept(ctx context.Context) error {
	if r.checks == 0 {
		return nil
	}
	x, fitted := r.table.X, r.model.Reconstruct()
	own, middle := make([]float64, x.Rows), make([]float64, x.Rows)
	for i := range own {
		own[i], middle[i] = meanOf(fitted.Row(i)), medianOf(fitted.Row(i)) // which sorts the row
	}
	interval := 0.0
	if r.spread() {
		interval = r.inside
	}
	var parts [][]feature
	for check := range r.checks {
		if err := r.tell.Count(check, r.checks, "checks"); err != nil {
			return err
		}
		given, hidden := hide(x, rand.New(rand.NewPCG(r.options.Seed, uint64(check))), hiddenShare(x))
		p, lower, upper, err := r.predict(ctx, given, interval)
		if err != nil {
			return err
		}
		p.held = func(i, j int) float64 {
			if v := x.At(i, j); interval > 0 && v >= lower.At(i, j) && v <= upper.At(i, j) {
				return 1
			}
			return 0
		}
		parts = append(parts, r.errorsOf(hidden, own, middle, p))
	}
	r.sum(parts)
	return r.tell.Count(r.checks, r.checks, "checks")
}

// hide returns a copy of x without a share of its known values, chosen at random, and these values, NaN
// elsewhere. Every sample keeps a value.
func hide(x quantmf.Mat, src *rand.Rand, share float64) (given, hidden quantmf.Mat) {
	given, hidden = x.Clone(), x.Clone()
	known := make([]int, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v {
				known[j]++
			}
		}
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v && known[j] > 1 && src.Float64() < share {
				known[j]--
				given.Set(i, j, math.NaN())
			} else {
				hidden.Set(i, j, math.NaN())
			}
		}
	}
	return given, hidden
}
