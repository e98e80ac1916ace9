package main

// This file holds the check of an imputation. A tenth of the known values is hidden as others are missing
// (manner.go), several times, and a further fit is made of the rest. Its predictions of the hidden values are
// compared with them, and so is the mean of the feature's other values: by feature, and over all features.
// kept.go has the check of a model that was kept.

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
)

// feature tells how well the hidden values of one feature, or of all, were predicted. Sums are over the
// hidden values.
type feature struct {
	hidden      int
	loss, own   float64 // the divergence from the model's mean, and from that of the feature's visible values
	abs, ownAbs float64 // the absolute error of the model's median, and of that of the visible values
	square      float64 // of own - loss, with -value median of ownAbs - abs
	held        float64 // within the interval

	words, right, frequent int // hidden words, those that are predicted, and those that are the most frequent
}

// add adds the values of b.
func (c *feature) add(b feature) {
	c.hidden += b.hidden
	c.loss += b.loss
	c.own += b.own
	c.abs += b.abs
	c.ownAbs += b.ownAbs
	c.square += b.square
	c.held += b.held
	c.words += b.words
	c.right += b.right
	c.frequent += b.frequent
}

// sums are the errors of the model and of the feature's own mean or median, and errors their means.
func (c *feature) sums(median bool) (model, own float64) {
	if median {
		return c.abs, c.ownAbs
	}
	return c.loss, c.own
}

func (c *feature) errors(median bool) (model, own float64) {
	model, own = c.sums(median)
	return model / float64(c.hidden), own / float64(c.hidden)
}

// less is the share by which the error of the model is less, and its standard error, as
// that of a mean of differences.
func (c *feature) less(median bool) (share, stdErr float64) {
	model, own := c.errors(median)
	if own == 0 {
		return 0, 0
	}
	n := float64(c.hidden)
	gain := own - model
	if n > 1 {
		stdErr = math.Sqrt(max(c.square/n-gain*gain, 0)/(n-1)) / own
	}
	return gain / own, stdErr
}

// unsure is the difference in standard errors within which a feature may or may not be
// better predicted than by its mean: one in twenty is beyond by chance.
const unsure = 1.64

func (c *feature) verdict(median bool) string {
	if c.hidden == 0 {
		return "unchecked"
	}
	switch share, stdErr := c.less(median); {
	case share <= 0:
		return "mean"
	case share < unsure*stdErr || c.hidden < 3:
		return "unsure"
	}
	return "better"
}

// check makes the fits without hidden values, side by side, and adds up the errors of their predictions. A
// matrix of which no value can be hidden is not checked. Warnings are those of the fit to all values.
func (r *imputation) check(ctx context.Context, warnings []error) error {
	if r.checks == 0 {
		return nil
	}
	x := r.table.X
	r.of = make([]feature, x.Rows)
	// as many fits at a time; 0 leaves it as it is
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.options.Workers()))
	var mutex sync.Mutex
	var parts [][]feature
	r.tell.Begin("BQMF")
	err := r.tell.Count(0, r.checks, "checks")
	if err != nil {
		return err
	}
	fit := func(ctx context.Context, given quantmf.Rows, rank int,
		options ...quantmf.FitOption) (*quantmf.BQMF, error) {
		m, err := quantmf.FitBQMF(ctx, given, rank, options...)
		if err != nil {
			return nil, err
		}
		part, err := r.compare(m, given)
		if err != nil {
			return nil, err
		}
		mutex.Lock()
		defer mutex.Unlock()
		parts = append(parts, part)
		return m, r.tell.Count(len(parts), r.checks, "checks")
	}
	masks := quantmf.Masks{Repeats: r.checks, Share: hiddenShare(x), Seed: r.options.Seed}
	options := append(r.options.List(option.Missing, option.Workers), r.more...)
	if r.manner = mannerOf(r.asRead().X, warnings); r.categories != nil && r.manner != together {
		r.manner = atRandom // a word is neither low nor high
	}
	if r.manner != atRandom {
		if _, count := r.hidden(masks, 0); count < fewHidden {
			r.manner = atRandom
		}
	}
	if r.manner == atRandom && r.categories == nil {
		_, err = quantmf.HeldOut(ctx, x, fit, []quantmf.Trial{{Rank: r.rank, Options: options}}, masks)
	} else {
		err = sideBySide(r.checks, func(check int) error {
			given, _ := r.hidden(masks, check)
			_, err := fit(ctx, given, r.rank, append(slices.Clone(options), quantmf.WithMissingValues(),
				quantmf.WithWorkers(1))...)
			return err
		})
	}
	if bad := new(quantmf.OptionError); errors.As(err, &bad) && bad.Option == "share" { // too small a matrix
		return nil
	}
	if err != nil {
		return err
	}
	r.sum(parts)
	return nil
}

// hidden is the matrix of a check whose values are not hidden at random, and how many are.
func (r *imputation) hidden(masks quantmf.Masks, check int) (given quantmf.Mat, count int) {
	src := rand.New(rand.NewPCG(masks.Seed, uint64(check)))
	if r.categories != nil {
		return r.categories.hide(r.manner, src, masks.Share)
	}
	return r.manner.hide(r.table.X, src, masks.Share)
}

// sideBySide makes count calls, GOMAXPROCS of them at a time, and returns the error of the first that has
// one.
func sideBySide(count int, call func(k int) error) error {
	errs := make([]error, count)
	p := pool.New(0, count)
	defer p.Close()
	p.Do(count, func(_, k int) { errs[k] = call(k) })
	return cmp.Or(errs...)
}

// sum adds up the errors of several fits by feature, and over all features. The sums do not depend on the
// order in which the fits ended.
func (r *imputation) sum(parts [][]feature) {
	slices.SortFunc(parts, func(a, b []feature) int {
		return slices.CompareFunc(a, b, func(a, b feature) int { return cmp.Compare(a.loss, b.loss) })
	})
	r.of = make([]feature, len(parts[0]))
	for _, part := range parts {
		for i, c := range part {
			r.of[i].add(c)
		}
	}
	for _, c := range r.of {
		r.all.add(c)
	}
}

// hiddenShare is that of the known values that a mask hides: a tenth, and in a small table as many as twenty
// are.
func hiddenShare(x quantmf.Mat) float64 {
	known := float64(len(x.Data) - missing(x))
	return max(0.1, min(0.5, 20/known))
}

// compare returns the errors of a model's predictions of the values that were hidden from it, by feature.
// given is the matrix without them.
func (r *imputation) compare(m *quantmf.BQMF, given quantmf.Rows) ([]feature, error) {
	x := r.table.X
	hidden := quantmf.NewMat(x.Rows, x.Cols)
	visible := make([][]float64, x.Rows)
	row := make([]float64, x.Cols)
	for i := range x.Rows {
		if err := given.ReadRow(row, i); err != nil {
			return nil, err
		}
		for j, v := range x.Row(i) {
			if row[j] == row[j] { // not hidden
				visible[i], v = append(visible[i], v), math.NaN()
			}
			hidden.Set(i, j, v)
		}
	}
	below, upTo, err := m.Probability(hidden)
	if err != nil {
		return nil, err
	}
	own, middle := make([]float64, x.Rows), make([]float64, x.Rows)
	for i, seen := range visible {
		own[i], middle[i] = meanOf(seen), medianOf(seen)
	}
	mean := m.Reconstruct()
	of := r.errorsOf(hidden, own, middle, forecast{mean, m.Median(),
		func(i, j int) float64 { return within(below.At(i, j), upTo.At(i, j), r.inside) }})
	if r.categories != nil {
		err = r.categories.right(mean, given, of)
	}
	return of, err
}

// forecast is what a model says of hidden values.
type forecast struct {
	mean, median quantmf.Mat
	held         func(i, j int) float64 // the share of the value that lies in its interval
}

// errorsOf returns the errors of predictions of hidden values, the numbers in hidden, by feature. own and
// middle are what the mean and the median of a feature would have said.
func (r *imputation) errorsOf(hidden quantmf.Mat, own, middle []float64, p forecast) []feature {
	out := make([]feature, hidden.Rows)
	for i := range out {
		c := &out[i]
		for j, v := range hidden.Row(i) {
			if v != v {
				continue
			}
			loss, ownLoss := r.options.Loss.At(v, p.mean.At(i, j)), r.options.Loss.At(v, own[i])
			abs, ownAbs := math.Abs(v-p.median.At(i, j)), math.Abs(v-middle[i])
			gain := ownLoss - loss
			if r.median() {
				gain = ownAbs - abs
			}
			c.add(feature{hidden: 1, loss: loss, own: ownLoss, abs: abs, ownAbs: ownAbs,
				square: float64(gain * gain), held: p.held(i, j)})
		}
	}
	return out
}

// meanOf returns the mean of v, without a sum that could overflow.
func meanOf(v []float64) (mean float64) {
	for n, x := range v {
		mean += (x - mean) / float64(n+1)
	}
	return mean
}

// medianOf sorts v.
func medianOf(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return v[(n-1)/2]/2 + v[n/2]/2
}

// within returns which share of a value lies in the central interval of probability p. The value takes the
// probabilities from below to upTo: a value with a mass of its own, such as 0 in counts, may lie in the
// interval in part.
func within(below, upTo, p float64) float64 {
	low, high := (1-p)/2, (1+p)/2
	if upTo > below {
		return max(min(upTo, high)-max(below, low), 0) / (upTo - below)
	}
	if below >= low && below <= high {
		return 1
	}
	return 0
}

// overall returns the share by which the error over all features is less than that of the features' means, 0
// where that is 0, and the standard error of the share: of a ratio of sums over features, because values of
// one feature are not independent.
func overall(features []feature, median bool) (share, stdErr float64) {
	sum, sumOwn := 0.0, 0.0
	for i := range features {
		model, own := features[i].sums(median)
		sum += model
		sumOwn += own
	}
	if sumOwn == 0 {
		return 0, 0
	}
	ratio, square := sum/sumOwn, 0.0
	for i := range features {
		model, own := features[i].sums(median)
		off := model - float64(ratio*own)
		square += float64(off * off)
	}
	if d := float64(len(features)); d > 1 {
		stdErr = math.Sqrt(square*d/(d-1)) / sumOwn
	}
	return 1 - ratio, stdErr
}
