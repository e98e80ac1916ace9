package quantmf

// This file holds the choice of rank, levels and other options by cells that the fits do
// not see. A low training loss says little: more components always fit the seen cells
// better. Here a share of the cells, spread over the whole matrix (a speckled mask), is
// hidden from every fit and its start, and models are compared by how well they predict
// these cells.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// Trial is one way to fit, for [HeldOut].
type Trial struct {
	Rank    int
	Options []FitOption // without WithMissingValues and WithWorkers, which HeldOut sets
}

// Prediction is how well the models of a trial predict cells that they have not seen.
type Prediction struct {
	Mean   float64   // the mean of Losses
	StdErr float64   // the standard error of Mean: sample deviation (by repeats-1)/√repeats; 0 for one repeat
	Losses []float64 // the mean divergence of the hidden cells, one value a repeat
}

// Masks says which cells [HeldOut] hides.
type Masks struct {
	Repeats int     // the number of masks, at least 1; 0 is taken as 5
	Share   float64 // the share of the observed cells that a mask hides, at most 1/2; 0 is taken as 0.1
	Seed    uint64  // of the random choice of cells
}

// HeldOut fits every trial masks.Repeats times, each time with another share of the
// observed cells of x hidden, and returns for each trial how well its models predict the
// hidden cells. All trials see the same masks, so a difference between two trials is more
// certain than their standard errors suggest. fit is FitNMF, FitQMF, FitBQMF or FitQMFQ, the last
// not with [TruncatedSVD], which needs every cell; or a function that calls one of them with the
// matrix and the options that it is given. GOMAXPROCS fits run at a time, one
// worker each; the result does not depend on their number.
//
// NaN cells of x are unobserved. Every row and column keeps at least two visible cells.
// All trials must have the same loss. A progress function among their options is called
// by several goroutines at once.
//
// Errors: those of fit, of the first trial that has one; [*DataError] for a cell that no fit takes, hidden or
// not, and for an x so small that its losses have no number; [*OptionError]; when ctx ends, an error that
// wraps its error. Cost: repeats × trials fits. Memory: a bit for every cell and repeat, and GOMAXPROCS fits,
// each with a copy of x where x is a Mat.
//
//	trials := []quantmf.Trial{{Rank: 2}, {Rank: 4}, {Rank: 8}}
//	p, err := quantmf.HeldOut(ctx, x, quantmf.FitQMF, trials, quantmf.Masks{Seed: 1})
func HeldOut[M Model](ctx context.Context, x Rows,
	fit func(context.Context, Rows, int, ...FitOption) (M, error), trials []Trial,
	masks Masks) ([]Prediction, error) {
	all, err := heldOut(ctx, x, fit, trials, masks, -1)
	if err != nil {
		return nil, err
	}
	out := make([]Prediction, len(all))
	for i, losses := range all {
		out[i] = PredictionOf(losses)
	}
	return out, nil
}

// HeldOutLoss returns the loss of one trial in one repeat of [HeldOut], from 0 to masks.Repeats-1, with the
// same bits. So independent processes can make the fits of one comparison. The caller must see to it that
// all trials have the same loss. Errors are those of HeldOut. Cost: one fit, by one worker.
func HeldOutLoss[M Model](ctx context.Context, x Rows,
	fit func(context.Context, Rows, int, ...FitOption) (M, error), trial Trial, masks Masks,
	repeat int) (float64, error) {
	if repeat < 0 {
		return 0, &OptionError{Option: "repeat", Value: itoa(repeat), Bound: "must be at least 0"}
	}
	all, err := heldOut(ctx, x, fit, []Trial{trial}, masks, repeat)
	if err != nil {
		return 0, err
	}
	return all[0][0], nil
}

// PredictionOf returns the prediction of a trial from its losses, one a repeat. It keeps the slice.
func PredictionOf(losses []float64) Prediction {
	p, repeats := Prediction{Losses: losses}, float64(len(losses))
	sq, unit := 0.0, 1.0
	for _, l := range losses {
		p.Mean += l / repeats
	}
	for _, l := range losses {
		if most := math.Abs(l - p.Mean); most > 1e150 { // whose square has no number
			unit = max(unit, most)
		}
	}
	for _, l := range losses {
		off := (l - p.Mean) / unit
		sq += float64(off * off)
	}
	if len(losses) > 1 {
		p.StdErr = unit * math.Sqrt(sq/(repeats-1)/repeats)
	}
	return p
}

// heldOut returns the losses of each trial in each repeat; where only is not negative, in that repeat
// alone.
func heldOut[M Model](ctx context.Context, x Rows,
	fit func(context.Context, Rows, int, ...FitOption) (M, error), trials []Trial, masks Masks,
	only int) ([][]float64, error) {
	masks, err := masks.settled()
	if err != nil {
		return nil, err
	}
	first, repeats := 0, masks.Repeats
	if only >= 0 {
		if only >= repeats {
			return nil, &OptionError{Option: "repeat", Value: itoa(only), Bound: "there are " + itoa(repeats)}
		}
		first, repeats = only, 1
	}
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, n := x.Dims()
	if each := uint64(d)*uint64((n+63)/64) + uint64(d) +
		uint64(len(trials)); uint64(repeats) > 8*limit.Cells/each {
		return nil, &OptionError{Option: "repeats", Value: itoa(repeats),
			Bound: "the masks of a " + sizeOf(d, n) + " matrix would need too much memory"}
	}
	// Hidden cells are checked too: here for values that no fit takes, and after each fit, when its loss is
	// known, for values that this fit does not take.
	if err := (&config{settings: settings{missing: true, loss: divergence.Frobenius,
		mapped: true}}).checkCells(x); err != nil {
		return nil, err
	}
	hidden, err := masks.hide(ctx, x, first, repeats)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(trials))
	for i := range out {
		out[i] = make([]float64, repeats)
	}
	errs, lossOf := make([]error, len(trials)*repeats), make([]divergence.Loss, len(trials)*repeats)
	p := pool.New(0, len(errs))
	defer p.Close()
	p.Do(len(errs), func(_, job int) {
		trial, r := job/repeats, job%repeats
		mean, of, err := lossOfHidden(ctx, x, fit, trials[trial], hidden[r])
		if err == nil && mean-mean != 0 {
			err = &DataError{Row: -1, Col: -1, Value: mean,
				Problem: "the loss of the hidden cells under trial " + itoa(trial) + " is not finite"}
		}
		out[trial][r], lossOf[job], errs[job] = mean, of, err
	})
	for job, err := range errs {
		if err != nil {
			return nil, err
		}
		if lossOf[job] != lossOf[0] {
			return nil, &OptionError{Option: option.Loss.String(), Value: ftoa(float64(lossOf[job])),
				Bound: "trial 0 has " + ftoa(float64(lossOf[0])) + ", and no two losses can be compared"}
		}
	}
	return out, nil
}

// lossOfHidden makes the fit of a trial without the cells that a mask hides. It returns the mean divergence
// of these cells from what the model predicts of them, and under which loss the model was fitted.
func lossOfHidden[M Model](ctx context.Context, x Rows,
	method func(context.Context, Rows, int, ...FitOption) (M, error), trial Trial,
	mask *fit.Cells) (mean float64, of divergence.Loss, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, fit.StoppedAt(0, err)
	}
	alone := fitOption(option.Workers, "1", func(c *config) string {
		c.workers, c.discard = 1, true
		return ""
	})
	var visible Rows = maskedRows{x, mask}
	if _, inMemory := x.(Mat); inMemory {
		visible = Mat(mask.Matrix())
	}
	m, err := method(ctx, visible, trial.Rank, append(append([]FitOption{}, trial.Options...),
		WithMissingValues(), alone)...)
	if err != nil {
		return 0, 0, err
	}
	if d, n := m.Dims(); d != mask.D || n != mask.N {
		return 0, 0, &ShapeError{What: "x", Got: sizeOf(d, n),
			Want: sizeOf(mask.D, mask.N) + ", as HeldOut has it"}
	}
	is := m.bounds()
	if err := is.checkCells(x); err != nil {
		return 0, 0, err
	}
	unit := mask.Scale()
	sum, err := predicted(ctx, mask, m, &unit)
	losses := []float64{sum / float64(mask.HeldOut)}
	unit.Losses(is.loss, losses)
	if mean = losses[0]; err == nil && sum > 0 && mean < 0x1p-1022 {
		err = &DataError{Row: -1, Col: -1, Value: math.Ldexp(1, unit.All),
			Problem: "x is so small that its losses have no number: multiply it by a constant"}
	}
	return mean, is.loss, err
}

// maskedRows are rows with NaN where a mask holds a cell out.
type maskedRows struct {
	Rows
	mask *fit.Cells
}

func (m maskedRows) ReadRow(x []float64, i int) error {
	err := m.Rows.ReadRow(x, i)
	m.mask.Hide(x, i)
	return err
}

// settled returns the masks with their defaults filled in, or the error of a field that is out of range.
func (m Masks) settled() (Masks, error) {
	if m.Repeats == 0 {
		m.Repeats = 5
	}
	if m.Share == 0 {
		m.Share = 0.1
	}
	if m.Repeats < 1 {
		return m, &OptionError{Option: "repeats", Value: itoa(m.Repeats), Bound: "must be at least 1"}
	}
	if !(m.Share > 0 && m.Share <= 0.5) {
		return m, &OptionError{Option: "share", Value: ftoa(m.Share),
			Bound: "must be above 0 and at most 0.5"}
	}
	return m, nil
}

// hide returns the cells of x under the masks first, ..., first+count-1.
func (m Masks) hide(ctx context.Context, x Rows, first, count int) ([]*fit.Cells, error) {
	hidden := make([]*fit.Cells, count)
	for r := range hidden {
		if err := ctx.Err(); err != nil {
			return nil, fit.StoppedAt(0, err)
		}
		s := settings{validation: m.Share, seed: uint64(random.Split(m.Seed, first+r)), missing: true,
			mapped: true, loss: divergence.Frobenius}
		var err error
		if hidden[r], err = newCells(x, &s); err != nil {
			if o, ok := err.(*OptionError); ok {
				o.Option = "share"
			}
			return nil, err
		}
	}
	return hidden, nil
}

// predicted returns the sum of the divergences of the held-out cells from what a model predicts of them,
// under the loss of the model.
func predicted(ctx context.Context, s *fit.Cells, m Model, unit *fit.Units) (sum float64, err error) {
	fill, err := m.filler(ctx)
	if err != nil {
		return 0, err
	}
	loss, room, t := m.bounds().loss, make([]float64, s.N), make([]float64, s.N)
	for i := range s.D {
		if err := ctx.Err(); err != nil {
			return 0, fit.StoppedAt(0, err)
		}
		fill(t, i)
		row, err := s.ObservedRow(room, i)
		if err != nil {
			return 0, public(err)
		}
		for j, v := range row {
			if s.IsHeld(i, j) {
				sum += unit.Divergence(loss, v, t[j])
			}
		}
	}
	return sum, nil
}
