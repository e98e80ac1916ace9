package bqmf

// This file holds the fit as the driver calls it (internal/fit): scales, start, epochs, the best state, and
// what the model is made of.

import (
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Settings are what a fit depends on beside its data.
type Settings struct {
	Loss      divergence.Loss
	Tolerance float64
	Epochs    int
	Discrete  []bool     // rows that take single values; nil: the data say which
	From      *Posterior // which the fit goes on from; nil: none
}

// Made is what a fit has made.
type Made struct {
	Model
	LeaveOneOut         float64
	History, Validation []float64
	Best                int // the epoch of the model
	Warnings            []error
}

// NewAlgorithm returns the fit of so many components at most.
func NewAlgorithm(cells *fit.Cells, rank int, s Settings, run fit.Run) fit.Algorithm {
	return &algorithm{Settings: s, cells: cells, progress: run.Progress, pool: run.Pool, rank: rank}
}

// algorithm is a fit under way.
type algorithm struct {
	Settings
	cells    *fit.Cells
	progress fit.Progress
	pool     *pool.Pool
	rank     int
	problem  *Problem
	fit      *Fit  // nil where the start is not made, or all rows are constant
	stopped  error // what stopped the start
	// the best state on held-out cells, nil where there are none, and its loss there
	best     *State
	bestHeld float64
}

// scale makes the scales of the rows.
func (f *algorithm) scale() error {
	err := f.progress.Enter(fit.PhaseFactors)
	x := f.cells.Matrix()
	f.problem = NewProblem(x.Data, x.Rows, x.Cols, x.Stride, f.Loss, f.pool)
	if f.cells.Weighted() {
		f.problem.Weigh(f.cells.SampleWeights(), f.cells.CellWeights())
	}
	f.problem.Discrete = f.Discrete
	if err == nil {
		half := f.progress.Within(0, 0.5)
		err = half.Rows(f.pool, x.Rows, f.problem.Scale)
	}
	if err == nil {
		f.problem.Scaled()
	}
	return err
}

// Begin makes the scales, and the state that the epochs start from.
func (f *algorithm) Begin() (l fit.Losses, err error) {
	if f.stopped = f.scale(); f.stopped != nil {
		return l, f.stopped
	}
	if len(f.problem.Active) == 0 {
		l.Held, l.Rested = f.heldMean(f.problem.Ignorant(f.rank)), true
		return l, nil
	}
	f.fit = f.problem.Fit(f.rank, f.pool)
	if f.From != nil {
		f.problem.GoOn(f.fit, f.From)
	} else {
		f.problem.Start(f.fit, f.rank)
	}
	err = f.progress.Report(1)
	if err == nil { // the first epoch may take seconds
		err = f.progress.ReportEpoch(0, max(f.Epochs, 1), f.fit.Nothing())
	}
	if err == nil {
		l, err = f.losses(0, f.fit.Nothing())
	}
	if err != nil {
		f.fit, f.stopped = nil, err
	}
	return l, err
}

// Epoch makes epoch e.
func (f *algorithm) Epoch(e int) (fit.Losses, error) {
	f.fit.Epoch(e)
	if err := f.pool.Err(); err != nil {
		return fit.Losses{}, err
	}
	return f.losses(e+1, f.fit.Bound)
}

// losses returns those of the state after some epochs: its bound and, under validation, the loss of the
// held-out cells by a model whose maps are learnt for it. The best state is kept here and not by the driver,
// since states lose components as a fit goes on.
func (f *algorithm) losses(epochs int, bound float64) (fit.Losses, error) {
	l := fit.Losses{Of: epochs, Visible: bound, Rested: f.fit.Rests(epochs, f.Tolerance)}
	if f.cells.Held == nil {
		return l, nil
	}
	m := f.problem.Model(f.fit)
	f.problem.Learn(m, f.pool)
	l.Held = f.heldMean(m)
	if err := f.pool.Err(); err != nil {
		return l, err
	}
	if epochs == 0 || l.Held < f.bestHeld {
		f.best, f.bestHeld = f.fit.State.Copy(f.best), l.Held
	}
	return l, nil
}

// heldMean is the mean divergence of the held-out cells, 0 where there are none, in the unit in which losses
// are compared (Cells.Scale).
func (f *algorithm) heldMean(m *Model) (mean float64) {
	if f.cells.Held == nil {
		return 0
	}
	t, room, unit := m.Conditional(f.pool), make([]float64, f.cells.N), f.cells.Scale()
	own, mass := make([]float64, f.cells.N), 0.0
	for i := range t.Rows {
		weights := f.cells.Weights(own, i)
		for j, v := range f.cells.Observed(room, i) {
			if f.cells.IsHeld(i, j) {
				w := 1.0
				if weights != nil {
					w = weights[j]
				}
				count := float64(f.cells.HeldOut)
				mass += w / count
				mean += float64(w * (unit.Divergence(f.Loss, v, t.Row(i)[j]) / count))
			}
		}
	}
	if f.cells.Weighted() {
		mean /= mass
	}
	return mean
}

// Made returns the model at the best epoch on held-out cells, otherwise at the current state. When the
// context ends its maps are without corrections.
func (f *algorithm) Made(t *fit.Attempt) (any, error) {
	stopped, bind := f.progress.Finish(f.pool)
	j := t.Journal
	m := &Made{LeaveOneOut: math.MaxFloat64, History: j.History, Validation: slices.Clone(j.Validation),
		Best: max(len(j.History)-1, 0)}
	unit := f.cells.Scale()
	unit.Losses(f.Loss, m.Validation)
	if f.fit != nil && f.best != nil {
		f.fit.Set(f.best)
		m.Best = j.BestEpoch
	}
	switch {
	case f.stopped != nil:
		m.Model = *f.problem.Ignorant(f.rank)
		m.History, m.Validation, m.Best = []float64{0}, nil, 0
	case f.fit == nil:
		m.Model, m.LeaveOneOut = *f.problem.Ignorant(f.rank), 0
	default:
		m.Model = *f.problem.Model(f.fit)
	}
	bind()
	fitted, of := f.fit != nil, []error(nil)
	switch {
	case !fitted || j.Done == 0: // the fit was stopped before its first epoch, or there is none to make
	case !f.fit.Found():
		of = []error{NoComponent{}}
	case j.Done == f.Epochs && !j.Rested:
		of = []error{&Unsettled{j.Done, f.fit.Moved, f.Tolerance}}
	}
	f.fit, f.best = nil, nil // what follows needs the room
	if fitted && !stopped() {
		m.LeaveOneOut = f.problem.Learn(&m.Model, f.pool)
		if shift := f.problem.Missing(&m.Model); shift != 0 {
			m.Warnings = append(m.Warnings, &MissingUnlike{shift})
		}
	}
	m.Warnings = append(m.Warnings, of...)
	if f.stopped != nil {
		return m, f.stopped
	}
	return m, f.progress.Ctx.Err()
}

// Walk shows the current state and the best one.
func (f *algorithm) Walk(visit func(array section.Part, best []float64)) {
	for _, s := range f.states() {
		for _, p := range s.Parts() {
			visit(p, nil)
		}
	}
}

// states are the current state and, where cells are held out, the best one.
func (f *algorithm) states() []*State {
	switch {
	case f.fit == nil: // all rows are constant
		return nil
	case f.best == nil:
		return []*State{&f.fit.State}
	}
	return []*State{&f.fit.State, f.best}
}

func (f *algorithm) Index() (index []uint64) {
	for _, s := range f.states() {
		index = append(index, uint64(s.K), math.Float64bits(s.Unit))
	}
	return append(index, math.Float64bits(f.fit.Moved))
}

// Resume takes the state of a checkpoint. Where the context or a progress function ends the making of the
// scales, there is no fit, and model says so.
func (f *algorithm) Resume(t *fit.Attempt, c *fit.Checkpoint) error {
	if f.stopped = f.scale(); f.stopped != nil {
		t.Journal.Rested = true // no epoch follows
		return nil
	}
	if len(f.problem.Active) == 0 {
		return c.Fail("STAT", "a fit of constant rows has no epochs")
	}
	f.fit = f.problem.Fit(f.rank, f.pool)
	if f.From != nil {
		f.fit.GoesOn()
	}
	most, count := uint64(f.fit.K), 3
	if t.Journal.Holds {
		f.best, f.bestHeld, count = new(State), c.Watch.Best, 5
	}
	index, err := c.Words("IDX0", count)
	if err != nil {
		return err
	}
	states := f.states()
	for k := len(states) - 1; k >= 0; k-- { // the current one is the last that the fit has room for
		components, unit := index[2*k], math.Float64frombits(index[2*k+1])
		if components < 1 || components > most || !(unit >= 1/limit.Moment && unit <= limit.Moment) {
			return c.FailAt("IDX0", 2*k, "a number of components or a unit is out of range")
		}
		f.fit.Resize(int(components))
		if k > 0 {
			f.fit.State.Copy(states[k])
		}
		states[k].Unit = unit
	}
	f.fit.Moved = math.Float64frombits(index[count-1])
	if !(f.fit.Moved >= 0 && f.fit.Moved <= limit.Moment) {
		return c.FailAt("IDX0", count-1, "the last movement is out of range")
	}
	t.Journal.Rested = f.fit.Rests(c.Epoch, f.Tolerance)
	_, err = c.Fill(t, count)
	return err
}

// Unsettled is the warning of a fit that has not come to rest.
type Unsettled struct {
	epochs           int
	moved, tolerance float64
}

func (u *Unsettled) Error() string {
	return "quantmf: UV moved by " + text(u.moved) + " of itself in the last of " + strconv.Itoa(u.epochs) +
		" epochs, wanted " + text(u.tolerance)
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// NoComponent is the warning of a fit whose components have all faded.
type NoComponent struct{}

func (NoComponent) Error() string {
	return "quantmf: no component was found: the model predicts each feature's own distribution"
}

// MissingUnlike is the warning of a table whose missing cells are predicted unlike its observed ones: by so
// many deviations of their rows higher.
type MissingUnlike struct{ shift float64 }

// MissingShift is by how many deviations missing cells are predicted higher.
func (u *MissingUnlike) MissingShift() float64 { return u.shift }

func (u *MissingUnlike) Error() string {
	where, which, what := "higher", "high", "low"
	if u.shift < 0 {
		where, which, what = "lower", "low", "high"
	}
	by := strconv.FormatFloat(math.Abs(u.shift), 'f', 1, 64)
	return "quantmf: missing cells look " + where + " than observed ones by " + by +
		" deviations of their features: if values are missing because they are " + which +
		", predictions of them are too " + what + " and their intervals hold too few"
}
