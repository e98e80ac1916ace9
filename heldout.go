package quantmf

// This file holds the choice of rank, levels and whatever else a fit is told, by
// cells that the fits do not see. A low training loss says little: more
// components always fit better what is there. Here a share of the cells, spread
// over the whole matrix (a speckled mask), is hidden from every fit alike, start
// included, and what counts is how well a model predicts them.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// Model is what fits return: [*NMF], [*QMF], [*QMFQ] or [*BQMF].
type Model interface {
	Reconstruct() Mat
	Loss(x Mat) (float64, error)
	Transform(ctx context.Context, x Mat) (Mat, error)
	Score(ctx context.Context, x Mat) (float64, error)
	Shares() Mat
	Goodness(x Mat) ([]Goodness, error)
	TopFeatures(x Mat, count int) ([][]Top, error)
	TopSamples(count int) [][]Top
	MarshalBinary() ([]byte, error)
	divergence() Loss
}

func (m *NMF) divergence() Loss  { return m.loss }
func (q *QMF) divergence() Loss  { return q.loss }
func (q *QMFQ) divergence() Loss { return q.inflated.loss }
func (m *BQMF) divergence() Loss { return m.loss }

// Trial is one way to fit.
type Trial struct {
	Rank    int
	Options []FitOption // beside the missing cells and the workers, which [HeldOut] sets
}

// Prediction is how well the models of a trial predict cells they have not seen.
type Prediction struct {
	Mean   float64   // of the losses
	StdErr float64   // of the mean: deviation/√repeats, with repeats-1 in the deviation; 0 for one repeat
	Losses []float64 // mean divergence of the hidden cells, one a repeat
}

// HeldOut fits every trial repeats times, each time with another share of the
// observed cells hidden, and returns what each trial's models make of them. All
// trials see the same masks, fixed by seed, and differences between them mean
// more than their standard errors say. fit is FitNMF, FitQMF, FitBQMF or FitQMFQ,
// the last not with TruncatedSVD, which needs every cell. Fits run side by side, GOMAXPROCS
// at a time, one worker each; the result does not depend on it.
//
// NaN cells of x are unobserved. 0 < share <= 1/2, repeats >= 1. A row or column
// keeps two visible cells. All trials have one loss. A progress function among their
// options is called by several goroutines at once. Errors: those of fit, of the
// first trial that has one; [*DataError] for a cell that no fit could have, hidden
// or not; [*OptionError]; when ctx ends, an error that wraps its own. Cost: repeats ×
// trials fits; memory repeats copies of x, and one fit a processor.
//
//	trials := []quantmf.Trial{{Rank: 2}, {Rank: 4}, {Rank: 8}}
//	p, err := quantmf.HeldOut(ctx, x, quantmf.FitQMF, trials, 5, 0.1, 1)
func HeldOut[M Model](ctx context.Context, x Mat, fit func(context.Context, Mat, int, ...FitOption) (M, error), trials []Trial, repeats int, share float64, seed uint64) ([]Prediction, error) {
	if repeats < 1 {
		return nil, &OptionError{Option: "repeats", Value: itoa(repeats), Bound: "must be at least 1"}
	}
	if !(share > 0 && share <= 0.5) {
		return nil, &OptionError{Option: "share", Value: ftoa(share), Bound: "must be above 0 and at most 0.5"}
	}
	if err := x.check("x"); err != nil {
		return nil, err
	}
	// What a mask hides is checked too, under the loss as soon as that is known.
	check := func(l Loss) error {
		c := config{missing: true, loss: l, signed: l == Frobenius}
		return c.checkCells(x)
	}
	if err := check(Frobenius); err != nil {
		return nil, err
	}
	masks := make([]*cells, repeats)
	for r := range masks {
		c := config{validation: share, seed: uint64(random.Split(seed, r)), missing: true}
		var err error
		if masks[r], err = newCells(x, &c); err != nil {
			if o, ok := err.(*OptionError); ok {
				o.Option = "share"
			}
			return nil, err
		}
	}
	out := make([]Prediction, len(trials))
	for i := range out {
		out[i].Losses = make([]float64, repeats)
	}
	errs, losses := make([]error, len(trials)*repeats), make([]Loss, len(trials)*repeats)
	p := pool.New(0, len(errs))
	defer p.Close()
	p.Do(len(errs), func(_, job int) {
		trial, r := job/repeats, job%repeats
		if errs[job] = ctx.Err(); errs[job] != nil {
			errs[job] = stoppedAt(0, errs[job])
			return
		}
		opts := append(append([]FitOption{}, trials[trial].Options...), WithMissingValues(), WithWorkers(1))
		m, err := fit(ctx, masks[r].x, trials[trial].Rank, opts...)
		if errs[job] = err; err != nil {
			return
		}
		losses[job] = m.divergence()
		if errs[job] = check(losses[job]); errs[job] != nil {
			return
		}
		t, sum := m.Reconstruct(), 0.0
		for i := range t.Rows {
			sum += masks[r].heldLoss(m.divergence(), t.Row(i), i, losses[job].least())
		}
		out[trial].Losses[r] = sum / float64(masks[r].heldOut)
	})
	for job, err := range errs {
		if err != nil {
			return nil, err
		}
		if losses[job] != losses[0] {
			return nil, &OptionError{Option: kLoss.String(), Value: ftoa(float64(losses[job])), Bound: "trial 0 has " + ftoa(float64(losses[0])) + ", and no two losses can be compared"}
		}
	}
	for i := range out {
		mean, sq := 0.0, 0.0
		for _, l := range out[i].Losses {
			mean += l / float64(repeats)
		}
		for _, l := range out[i].Losses {
			sq += float64((l - mean) * (l - mean))
		}
		out[i].Mean = mean
		if repeats > 1 {
			out[i].StdErr = math.Sqrt(sq / float64(repeats-1) / float64(repeats))
		}
	}
	return out, nil
}
