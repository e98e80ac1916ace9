package quantmf

// This file holds what a fit is asked for, as internal/fit takes it: options and data, checked. That package
// has the driver: restarts, epochs and their losses, ends, checkpoints, progress. A model's fit is a
// fit.Algorithm, which knows how to begin, to make an epoch, and what a model is made of.

import (
	"context"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// fitted is a model as an algorithm makes it.
type fitted interface {
	Model
	UnmarshalBinary([]byte) error
	readable() ([]byte, error) // a file that can be read
	sealed
	objective(c *qmf.Settings) float64       // the loss by which the best of several fits is chosen
	toUserUnits(u *fit.Units)                // brings a model of x' to the units of x
	fitted(made any, s *qmf.Settings) fitted // the model of what a fit has made
}

// settler is a model that a fit can go on from: it settles what the options leave open.
type settler interface {
	settle(ctx context.Context, c *config, kind uint32, x Rows, rank int) error
}

// task is what a fit is asked for.
type task struct {
	*config
	fit.Task
	x       Rows
	rank    int
	decoded fitted // which knows the model of what a fit has made, and takes the best one of a checkpoint
}

// open checks options and data of a fit.
func open[O FitOption](ctx context.Context, kind uint32, f option.Function, c *config, x Rows, rank int,
	opts []O) (*task, error) {
	if err := parse(f, c, opts); err != nil {
		return nil, err
	}
	if c.from != nil {
		if err := c.from.settle(ctx, c, kind, x, rank); err != nil {
			return nil, err
		}
	}
	cells, err := c.readFit(x, rank)
	if err != nil {
		return nil, err
	}
	return &task{config: c, Task: fit.Task{Kind: kind, Cells: cells}, x: x, rank: rank}, nil
}

// readFit returns the cells that a fit sees, or the error of its data.
func (c *config) readFit(x Rows, rank int) (cells *fit.Cells, err error) {
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, n := x.Dims()
	if rank < 1 {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 1"}
	}
	if uint64(rank) > limit.Cells/uint64(d+n) {
		return nil, &OptionError{Option: "rank", Value: itoa(rank),
			Bound: "the factors of a " + sizeOf(d, n) + " matrix would need too much memory"}
	}
	rules := c.Rules()
	if rules.Weights, err = c.weightsOf(d, n); err != nil {
		return nil, err
	}
	rules.Hash = c.checkpoints != nil || c.hash
	if cells, err = readCells(x, rules); err != nil {
		return nil, err
	}
	if err := cells.SetUnits(c.Mapped); err != nil {
		return nil, public(err)
	}
	c.toFitUnits(&cells.Units)
	if c.given.Has(option.FixedU) {
		if err := c.checkFixed(d, rank, cells.Units.Root()); err != nil {
			return nil, err
		}
	}
	if !c.given.Has(option.Init) {
		return cells, nil
	}
	return cells, c.checkInit(d, n, rank, cells.Units.Root())
}

// identity tells matrices of options apart.
func identity(m Mat) string {
	if m.Rows == 0 {
		return "not given"
	}
	h := fit.NewHash()
	hashMat(&h, fit.Dense(m))
	return m.size() + " (" + utoa(uint64(h)) + ")"
}

// settle fills what the driver takes of the options, once they are settled.
func (t *task) settle() {
	c := t.config
	t.Task.Loss, t.Models = c.Loss, t
	t.Seed, t.Epochs, t.Patience, t.Restarts, t.Discard = c.Seed, c.Epochs, c.Patience, c.restarts, c.discard
	t.Workers = c.workers
	if tell := c.progress; tell != nil {
		t.Tell = func(r fit.Report) error {
			return tell(Progress{Phase: Phase(r.Phase), Done: r.Done, Epoch: r.Epoch, Epochs: r.Epochs,
				Rows: r.Rows, Loss: r.Loss})
		}
	}
	if c.checkpoints == nil {
		return
	}
	t.States = fit.States{Every: c.every, Save: c.save, ResumeAt: c.resume, Files: c.checkpoints,
		Options: c.described(t.rank, t.Cells.WeightHash), Init: fit.NewHash(),
		EpochsFixed: section.Mapped(t.Kind) && c.Schedule != qmf.ScheduleConstant}
	for _, m := range []fit.Dense{c.InitU, c.InitV} {
		hashMat(&t.States.Init, m)
	}
	if c.Begun != nil {
		hashMat(&t.States.Init, c.Begun.Quantiles)
		hashMat(&t.States.Init, c.Begun.Weights)
	}
	if t.Kind == section.QMFQ || t.Kind == section.QMF && c.Lagging(t.Cells.D) {
		t.Lag = 1
	}
}

// hashMat adds a matrix to a fingerprint.
func hashMat(h *fit.Hash, m fit.Dense) {
	h.Sizes(m.Rows, m.Cols)
	for i := range m.Rows {
		h.Put(m.Row(i))
	}
}

// drive fits from every seed and returns the best model. pieces is the largest number of pieces that
// the fit cuts its work into. fresh makes an algorithm; decoded is an empty model.
func (t *task) drive(ctx context.Context, pieces int, decoded fitted,
	fresh func(fit.Run) fit.Algorithm) (best fitted, err error) {
	t.settle()
	t.Pieces, t.decoded = pieces, decoded
	m, err := t.Drive(ctx, fresh)
	best, _ = m.(fitted)
	if left := t.Cells.LeftOut(); len(left) > 0 && best != nil {
		if wrong := placeSamples(ctx, best, t.x, left); err == nil {
			err = wrong
		}
	}
	if err == nil && t.strict {
		if warnings := best.common().Warnings; len(warnings) > 0 {
			err = warnings[0]
		}
	}
	if d, is := err.(*fit.Differs); is {
		return nil, t.differs(d)
	}
	return best, public(err)
}

// Model returns the model of what a fit has made.
func (t *task) Model(made any) fit.Model { return t.decoded.fitted(made, &t.Settings) }

func (t *task) Objective(m fit.Model) float64    { return m.(fitted).objective(&t.Settings) }
func (t *task) File(m fit.Model) ([]byte, error) { return m.(fitted).readable() }

func (t *task) Finish(m fit.Model) {
	m.(fitted).toUserUnits(&t.Cells.Units)
	sealFields(m.(fitted))
	m.(fitted).common().workers = t.workers
}

// Decode reads the best model of the restarts before, and checks that it is of this fit.
func (t *task) Decode(data []byte) (fit.Model, error) {
	f, err := decode(data, t.Kind)
	if err == nil {
		err = t.decoded.UnmarshalBinary(data)
	}
	if err != nil {
		if e, is := err.(*FormatError); is {
			err = (*section.Error)(e)
		}
		return nil, err
	}
	levels, eps := t.Levels, t.Epsilon
	if t.Kind == section.NMF {
		levels, eps = 0, 0
	}
	switch {
	case f.d != t.Cells.D || f.n != t.Cells.N || f.k != t.rank || f.m != levels ||
		f.loss != t.Loss || f.missing != t.Missing || f.epsilon != eps:
		return nil, &section.Error{Problem: "the best model is not of this fit"}
	case (t.Validation > 0) != (len(f.Payload("VALI")) > 0):
		return nil, &section.Error{Problem: "the best model has other histories than this fit"}
	}
	return t.decoded, nil
}

// described lists the options that a result depends on, with their values.
func (c *config) described(rank int, weightHash fit.Hash) [][2]string {
	given := func(b bool) string {
		if b {
			return "given"
		}
		return "not given"
	}
	weights := "not given"
	if c.cellWeights != nil {
		weights = utoa(uint64(weightHash))
	}
	discrete := "not given"
	if c.given.Has(option.Discrete) {
		discrete = rowsInWords(c.discrete)
	}
	return [][2]string{
		{"rank", itoa(rank)},
		{option.Model.String(), given(c.from != nil)},
		{option.Start.String(), Start(c.Start).String()},
		{option.Epsilon.String(), ftoa(c.Epsilon)},
		{option.Squash.String(), Squash(c.Squash).String()},
		{option.Tolerance.String(), ftoa(c.Tolerance)},
		{option.MaxIterations.String(), itoa(c.MaxIterations)},
		{option.Levels.String(), itoa(c.Levels)},
		{option.Epochs.String(), itoa(c.Epochs)},
		{option.Seed.String(), utoa(c.Seed)},
		{option.LearningRate.String(), ftoa(c.LearningRate)},
		{option.Schedule.String(), Schedule(c.Schedule).String()},
		{option.Batch.String(), itoa(c.BatchRows)},
		{option.Ends.String(), Ends(c.Ends).String()},
		{option.Penalty.String(), ftoa(c.Penalty)},
		{option.Penalties.String(), Penalties(c.Penalties).String()},
		{option.FixedU.String(), identity(Mat(c.FixedU))},
		{option.SampleWeights.String(), identity(Mat{Rows: len(c.sampleWeights), Cols: 1, Stride: 1,
			Data: c.sampleWeights})},
		{option.CellWeights.String(), weights},
		{option.Shrinkage.String(), ftoa(c.Shrinkage)},
		{option.Line.String(), ftoa(c.Line)},
		{option.Loss.String(), ftoa(float64(c.Loss))},
		{option.Patience.String(), itoa(c.Patience)},
		{option.Restarts.String(), itoa(c.restarts)},
		{option.Validation.String(), ftoa(c.Validation)},
		{option.Missing.String(), given(c.Missing)},
		{option.Init.String(), given(c.given.Has(option.Init))},
		{option.Projection.String(), Projection{c.Projection}.String()},
		{option.Updates.String(), Updates(c.Updates).String()},
		{option.Discrete.String(), discrete},
	}
}

// differs words the error of an option that has another value than in the state. The values are those of
// described, where an option that was not given has one that none can be given.
func (c *config) differs(d *fit.Differs) *OptionError {
	if d.Now == "" {
		return &OptionError{Option: d.Name, Value: Mat(c.InitU).size() + ", " + Mat(c.InitV).size(),
			Bound: "the state was saved with " + d.Then}
	}
	unset := map[string]string{option.Shrinkage.String(): "-1", option.Line.String(): "-1",
		option.Validation.String(): "0", option.Patience.String(): "0",
		option.FixedU.String(): "not given", option.SampleWeights.String(): "not given",
		option.CellWeights.String(): "not given", option.Missing.String(): "not given",
		option.Model.String(): "not given", option.Discrete.String(): "not given",
		option.Init.String(): "not given"}[d.Name]
	e := &OptionError{Option: d.Name, Value: d.Now, Bound: "the state was saved with " + d.Then}
	switch {
	case unset == "":
	case d.Now == unset:
		e.Value = "not given"
		if d.Then == "given" {
			e.Bound = "the state was saved with it"
		}
	case d.Then == unset:
		e.Bound = "the state was saved without it"
	}
	return e
}
