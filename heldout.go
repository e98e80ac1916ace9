package quantmf

// This file holds the choice of rank, levels and other options by cells that the fits do
// not see. A low training loss says little: more components always fit the seen cells
// better. Here a share of the cells, spread over the whole matrix (a speckled mask), is
// hidden from every fit and its start, and models are compared by how well they predict
// these cells.

import (
	"cmp"
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
)

// Trial is one way to fit, for [HeldOut].
type Trial struct {
	Rank    int
	Options []FitOption // without WithMissingValues and WithWorkers, which HeldOut sets
}

// Prediction is how well the models of a trial predict cells that they have not seen. The baseline is the
// mean of the row's visible cells in the place of what the model predicts: what a model of no components
// would say.
type Prediction struct {
	Mean   float64 // the mean of Losses
	StdErr float64 // the standard error of Mean: sample deviation (by repeats-1)/√repeats; 0 for one repeat

	// One value a repeat.
	Losses []float64 // the mean divergence of the hidden cells
	// the same, where the divergences of each row are divided by the row's own spread
	Relative                   []float64
	Baseline, BaselineRelative []float64 // both, of the baseline; the same in all trials

	Rows []HiddenRow // of all repeats, one a row
}

// HiddenRow sums over the cells of a row that were hidden, of all repeats. It leaves out the repeats in which
// all visible cells of the row were 0: their mean is no prediction under most losses.
type HiddenRow struct {
	Cells          int
	Loss, Baseline float64 // the divergences from what the model, and the baseline, predict
}

// Masks says which cells [HeldOut] hides.
type Masks struct {
	Repeats int     // the number of masks, at least 1; 0 is taken as 5
	Share   float64 // the share of the observed cells that a mask hides, at most 1/2; 0 is taken as 0.1
	Seed    uint64  // of the random choice of cells
	First   int     // the number of the first mask, from 0: more masks after others, or one by itself
}

// HeldOut fits every trial masks.Repeats times, each time with another share of the
// observed cells of x hidden, and returns for each trial how well its models predict the
// hidden cells. All trials see the same masks, so a difference between two trials is more
// certain than their standard errors suggest. fit is FitNMF, FitQMF, FitBQMF or FitQMFQ, the last
// not with [TruncatedSVD], which needs every cell; or a function that calls one of them with the
// matrix and the options that it is given. GOMAXPROCS fits run at a time, one
// worker each; the result does not depend on their number.
//
// NaN cells of x are unobserved. Every row and column keeps at least two visible cells. The weights of cells
// that the first trial has, by [WithSampleWeights] and [WithCellWeights], are those by which all trials are
// judged; those of weight 0 are not hidden.
// All trials must have the same loss. A progress function among their options is called
// by several goroutines at once.
//
// Errors: those of fit, of the first trial that has one; [*DataError] for a cell that no fit takes, hidden or
// not, and for an x so small that its losses have no number; [*OptionError]; when ctx ends, an error that
// wraps its error. Cost: repeats × trials fits. Memory: a bit for every cell and repeat, and GOMAXPROCS fits,
// each with a copy of x where x is a Mat; three numbers for each trial, repeat and row.
//
//	trials := []quantmf.Trial{{Rank: 2}, {Rank: 4}, {Rank: 8}}
//	p, err := quantmf.HeldOut(ctx, x, quantmf.FitQMF, trials, quantmf.Masks{Seed: 1})
func HeldOut[M Model](ctx context.Context, x Rows,
	fit func(context.Context, Rows, int, ...FitOption) (M, error), trials []Trial,
	masks Masks) ([]Prediction, error) {
	return heldOut(ctx, x, func(ctx context.Context, x Rows, trial int, opts ...FitOption) (Model, error) {
		return fit(ctx, x, trials[trial].Rank, opts...)
	}, trials, masks, 0)
}

// trialFit makes the fit of a trial of a matrix with hidden cells.
type trialFit func(ctx context.Context, x Rows, trial int, opts ...FitOption) (Model, error)

// heldOut is HeldOut by so many workers, 0 for GOMAXPROCS.
func heldOut(ctx context.Context, x Rows, fit trialFit, trials []Trial, masks Masks,
	workers int) ([]Prediction, error) {
	masks, err := masks.settled()
	if err != nil {
		return nil, err
	}
	repeats := masks.Repeats
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, n := x.Dims()
	if each := uint64(d) * uint64((n+63)/64+1+3*len(trials)); uint64(repeats) > 8*limit.Cells/each {
		return nil, &OptionError{Option: "repeats", Value: itoa(repeats),
			Bound: "the masks of a " + sizeOf(d, n) + " matrix would need too much memory"}
	}
	// Hidden cells are checked too: here for values that no fit takes, and after each fit, when its loss is
	// known, for values that this fit does not take.
	if err := (&config{Settings: qmf.Settings{Missing: true, Loss: divergence.Frobenius,
		Mapped: true}}).checkCells(x); err != nil {
		return nil, err
	}
	weights, err := weightsAmong(trials, d, n)
	if err != nil {
		return nil, err
	}
	hidden, err := masks.hide(ctx, x, weights)
	if err != nil {
		return nil, err
	}
	made := make([]hiddenLosses, len(trials)*repeats)
	errs := make([]error, len(made))
	p := pool.New(workers, len(errs))
	defer p.Close()
	p.Do(len(errs), func(_, job int) {
		trial, r := job/repeats, job%repeats
		made[job], errs[job] = lossOfHidden(ctx, x, fit, trial, trials[trial].Options, hidden[r])
		if mean := made[job].mean; errs[job] == nil && mean-mean != 0 {
			errs[job] = &DataError{Row: -1, Col: -1, Value: mean,
				Problem: "the loss of the hidden cells under trial " + itoa(trial) + " is not finite"}
		}
	})
	for job, err := range errs {
		if err != nil {
			return nil, err
		}
		if of := made[job].of; of != made[0].of {
			return nil, &OptionError{Option: option.Loss.String(), Value: ftoa(float64(of)),
				Bound: "trial 0 has " + ftoa(float64(made[0].of)) + ", and no two losses can be compared"}
		}
	}
	out := make([]Prediction, len(trials))
	for i := range out {
		for _, h := range made[i*repeats : (i+1)*repeats] {
			out[i].add(h.Prediction)
		}
		out[i].settle()
	}
	return out, nil
}

// Join returns the prediction of a trial over the masks of p and then those of q.
func (p Prediction) Join(q Prediction) Prediction {
	var both Prediction
	both.add(p)
	both.add(q)
	both.settle()
	return both
}

// add adds the masks of q to those of p.
func (p *Prediction) add(q Prediction) {
	p.Losses = append(p.Losses, q.Losses...)
	p.Relative = append(p.Relative, q.Relative...)
	p.Baseline = append(p.Baseline, q.Baseline...)
	p.BaselineRelative = append(p.BaselineRelative, q.BaselineRelative...)
	if more := len(q.Rows) - len(p.Rows); more > 0 {
		p.Rows = append(p.Rows, make([]HiddenRow, more)...)
	}
	for i, row := range q.Rows {
		p.Rows[i].Cells += row.Cells
		p.Rows[i].Loss += row.Loss
		p.Rows[i].Baseline += row.Baseline
	}
}

// settle finds mean and standard error of the losses.
func (p *Prediction) settle() {
	repeats := float64(len(p.Losses))
	sq, unit := 0.0, 1.0
	p.Mean, p.StdErr = 0, 0
	for _, l := range p.Losses {
		p.Mean += l / repeats
	}
	for _, l := range p.Losses {
		if most := math.Abs(l - p.Mean); most > 1e150 { // whose square has no number
			unit = max(unit, most)
		}
	}
	for _, l := range p.Losses {
		off := (l - p.Mean) / unit
		sq += float64(off * off)
	}
	if len(p.Losses) > 1 {
		p.StdErr = unit * math.Sqrt(sq/(repeats-1)/repeats)
	}
}

// Explained is the share of the differences between samples that is predicted: by how much nearer to the
// hidden cells the predictions are than the baseline. StdErr is its standard error, of a ratio of sums over
// rows.
func (p Prediction) Explained() (share, stdErr float64) {
	return ofSums(p.Rows, func(i int) (of, in float64) {
		return p.Rows[i].Baseline - p.Rows[i].Loss, p.Rows[i].Baseline
	})
}

// Worse is the share by which the loss of p exceeds that of q, a prediction of the same cells, and its
// standard error, of a ratio of sums over rows. The share is below 0 where p is better.
func (p Prediction) Worse(q Prediction) (share, stdErr float64) {
	return ofSums(p.Rows, func(i int) (of, in float64) {
		return p.Rows[i].Loss - q.Rows[i].Loss, q.Rows[i].Loss
	})
}

// betterForMost tells whether p predicts significantly more rows better than q.
func (p Prediction) betterForMost(q Prediction) bool {
	return order.MoreAbove(len(p.Rows),
		func(i int) int { return cmp.Compare(q.Rows[i].Loss, p.Rows[i].Loss) })
}

// ofSums returns the ratio of two sums over rows, 0 where the lower one is 0, and its standard error.
func ofSums(rows []HiddenRow, of func(i int) (of, in float64)) (ratio, stdErr float64) {
	upper, lower, square := 0.0, 0.0, 0.0
	for i := range rows {
		u, l := of(i)
		upper += u
		lower += l
	}
	if lower == 0 {
		return 0, 0
	}
	ratio = upper / lower
	for i := range rows {
		u, l := of(i)
		off := (u - float64(ratio*l)) / lower
		square += float64(off * off)
	}
	if d := float64(len(rows)); d > 1 {
		stdErr = math.Sqrt(square * d / (d - 1))
	}
	return ratio, stdErr
}

// hiddenLosses are the losses of the cells that one mask hides, and what loss that is.
type hiddenLosses struct {
	Prediction
	mean float64 // its only loss
	mass float64 // the weight of the hidden cells: their number, where they have none
	of   divergence.Loss
}

// hiding is WithMissingValues for a fit that is made to judge one without the hidden cells; whole tells
// whether that fit misses none.
func hiding(whole bool) FitOption {
	return fitOption(option.Missing, "", func(c *config) string {
		c.Missing, c.Whole = true, whole
		return ""
	})
}

// lossOfHidden makes the fit of a trial without the cells that a mask hides, and returns the losses of these
// cells.
func lossOfHidden(ctx context.Context, x Rows, method trialFit, trial int, opts []FitOption,
	mask *fit.Cells) (h hiddenLosses, err error) {
	if err := ctx.Err(); err != nil {
		return h, fit.StoppedAt(0, err)
	}
	var visible Rows = maskedRows{x, mask}
	if _, inMemory := x.(Mat); inMemory {
		visible = Mat(mask.Matrix())
	}
	m, err := method(ctx, visible, trial, append(append([]FitOption{}, opts...),
		hiding(mask.Visible+mask.HeldOut == mask.D*mask.N), oneWorker())...)
	if err != nil {
		return h, err
	}
	if d, n := m.Dims(); d != mask.D || n != mask.N {
		return h, &ShapeError{What: "x", Got: sizeOf(d, n),
			Want: sizeOf(mask.D, mask.N) + ", as HeldOut has it"}
	}
	is := m.bounds()
	if err := is.checkCells(x); err != nil {
		return h, err
	}
	unit := mask.Scale()
	if err := h.predict(ctx, mask, m, &unit); err != nil {
		return h, err
	}
	h.of = is.Loss
	sum := h.mean
	losses := []float64{sum / h.mass, h.Baseline[0] / h.mass}
	unit.Losses(h.of, losses)
	h.mean, h.Losses, h.Baseline = losses[0], losses[:1:1], losses[1:]
	for i := range h.Rows {
		both := []float64{h.Rows[i].Loss, h.Rows[i].Baseline}
		unit.Losses(h.of, both)
		h.Rows[i].Loss, h.Rows[i].Baseline = both[0], both[1]
	}
	if sum > 0 && h.mean < 0x1p-1022 {
		err = &DataError{Row: -1, Col: -1, Value: math.Ldexp(1, unit.All),
			Problem: "x is so small that its losses have no number: multiply it by a constant"}
	}
	return h, err
}

// oneWorker lets a fit beside others run on one worker and end without a model where the context ends.
func oneWorker() FitOption {
	return fitOption(option.Workers, "1", func(c *config) string {
		c.workers, c.discard = 1, true
		return ""
	})
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
	if m.First < 0 {
		return m, &OptionError{Option: "first", Value: itoa(m.First), Bound: "must be at least 0"}
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

// weightsAmong returns the weights of d × n cells that the first trial asks for, nil for none.
func weightsAmong(trials []Trial, d, n int) (*fit.Weights, error) {
	var c config
	if len(trials) > 0 {
		for _, o := range trials[0].Options {
			if o == nil {
				continue // an error of the fit
			}
			if s := o.setting(); s.kind == option.SampleWeights || s.kind == option.CellWeights {
				s.check(&c)
			}
		}
	}
	return c.weightsOf(d, n)
}

// hide returns the cells of x under the masks, with weights, if any.
func (m Masks) hide(ctx context.Context, x Rows, weights *fit.Weights) ([]*fit.Cells, error) {
	hidden := make([]*fit.Cells, m.Repeats)
	for r := range hidden {
		if err := ctx.Err(); err != nil {
			return nil, fit.StoppedAt(0, err)
		}
		s := qmf.Settings{Validation: m.Share, Seed: uint64(random.Split(m.Seed, m.First+r)), Missing: true,
			Mapped: true, Loss: divergence.Frobenius}
		var err error
		rules := s.Rules()
		rules.Weights = weights
		if hidden[r], err = readCells(x, rules); err != nil {
			if o, ok := err.(*OptionError); ok {
				o.Option = "share"
			}
			return nil, err
		}
	}
	return hidden, nil
}

// predict adds up the divergences of the held-out cells from what a model, and the baseline, predict of them,
// in the units of x'. The spread of a row is the divergence of its visible cells from their mean, of which it
// takes the term of second order, half the variance over w^(2-β), so that it costs no logarithm a cell.
func (h *hiddenLosses) predict(ctx context.Context, s *fit.Cells, m Model, unit *fit.Units) error {
	fill, err := m.filler(ctx)
	if err != nil {
		return err
	}
	loss, room, t := m.bounds().Loss, make([]float64, s.N), make([]float64, s.N)
	weights := make([]float64, s.N)
	h.Rows = make([]HiddenRow, s.D)
	baseline, relative, baseRelative, counted := 0.0, 0.0, 0.0, 0.0
	for i := range s.D {
		if err := ctx.Err(); err != nil {
			return fit.StoppedAt(0, err)
		}
		fill(t, i)
		row, err := s.ObservedRow(room, i)
		if err != nil {
			return public(err)
		}
		if err := s.AllWeights(weights, i); err != nil {
			return public(err)
		}
		mean, square, visible := 0.0, 0.0, 0.0
		for j, v := range row {
			if v == v && !s.IsHeld(i, j) {
				if unit.All != 0 {
					v = math.Ldexp(v, -unit.All)
				}
				visible += weights[j]
				off := v - mean
				mean += off * weights[j] / visible
				square += float64(weights[j] * float64(off*(v-mean)))
			}
		}
		of := &h.Rows[i]
		own, mass := math.Ldexp(mean, unit.All), 0.0 // the weight of the row's hidden cells
		for j, v := range row {
			if s.IsHeld(i, j) {
				of.Cells++
				mass += weights[j]
				of.Loss += float64(weights[j] * unit.Divergence(loss, v, t[j]))
				of.Baseline += float64(weights[j] * unit.Divergence(loss, v, own))
			}
		}
		h.mass += mass
		h.mean += of.Loss
		baseline += of.Baseline
		if mean == 0 && square == 0 {
			*of = HiddenRow{}
			continue
		}
		if spread := square / visible / 2 / loss.Stiffness(mean); spread > 0 && of.Cells > 0 {
			relative += of.Loss / spread
			baseRelative += of.Baseline / spread
			counted += mass
		}
	}
	n := max(counted, divergence.Tiny)
	h.Baseline = []float64{baseline}
	h.Relative, h.BaselineRelative = []float64{relative / n}, []float64{baseRelative / n}
	return nil
}
