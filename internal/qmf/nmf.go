package qmf

// This file holds the fit of an NMF as the driver calls it. internal/nmf has the two ways to lower the
// divergence, Newton's method and multiplicative updates.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// FewSeen tells whether so many visible cells of a d × n matrix are few: of a sample or of a feature, on
// average, fewer than leastRows a component. If others are missing, these leave room for factors that say
// anything of them, where Newton's method is within a few epochs, but not multiplicative updates. More than
// TrialCells are not few: updates would take many times as long.
func FewSeen(visible float64, d, n, rank int) bool {
	return visible <= TrialCells && visible < leastRows*float64(rank)*float64(max(d, n))
}

// StartsFrom returns how many of n samples a FitNMF begins with an NMF of, 0 where it begins with none.
func (s *Settings) StartsFrom(d, n int) float64 {
	if s.Start != StartAuto || s.Init {
		return 0
	}
	return someSamples(s.Loss, float64(d), float64(n))
}

// Fitted are the factors that a fit has made, of x'.
type Fitted struct {
	U, V                fit.Dense
	History, Validation []float64
	Best                int // the epoch of the factors
}

// NMF is what a fit has made, of x'.
type NMF struct {
	Fitted
	Prior place.Prior // of a sample, by the penalties
}

// nmfFit is an NMF during its fit.
type nmfFit struct {
	*factors
	*Settings
	fit.Run
	cells  *fit.Cells
	method nmf.Method
}

// FitNMF returns the fit of an NMF of the visible cells.
func FitNMF(visible *fit.Cells, rank int, s *Settings, run fit.Run) fit.Algorithm {
	f := &nmfFit{factors: newFactors(run.Pool.Memory, visible.D, visible.N, rank), Settings: s, Run: run,
		cells: visible}
	f.given, f.fixed = s.FixedU, s.Fixed
	f.method = s.newMethod(newProblem(f.factors, visible, s.Loss, run.Pool))
	return f
}

// newMethod returns the method of the settings that lowers the loss of a problem, with their penalties, from
// its factors, which it steps in place.
func (s *Settings) newMethod(problem nmf.Problem) nmf.Method {
	problem.Penalties = s.Penalties
	if s.Updates == UpdatesNewton {
		return nmf.NewNewton(problem)
	}
	return nmf.NewUpdates(problem)
}

// newProblem describes factors, cells and loss as internal/nmf takes them.
func newProblem(f *factors, s *fit.Cells, loss divergence.Loss, p *pool.Pool) nmf.Problem {
	problem := nmf.Problem{
		D: f.d, N: f.n, K: f.k, NP: f.np, U: f.u, V: f.v,
		Full: s.About.Full, Partial: s.Partial, Whole: s.Whole(),
		Rows: s.InRow, Visible: s.Visible, HeldOut: s.HeldOut,
		Read: s.ReadMarked, Held: s.HeldLoss, NonZeros: s.NonZeros(),
		Loss: loss, Fixed: f.fixed, Pool: p,
	}
	if s.Guess > 0 {
		problem.Guess = s.Guesses
	}
	if s.Held == nil {
		problem.X, problem.Stride = s.X.Data, s.X.Stride
	}
	return problem
}

// startFactors fills U and V with the given factors or with those of the start.
func (f *nmfFit) startFactors() error {
	defer func() {
		f.hold()
		f.leaveOut(f.cells.LeftOut())
	}()
	if f.Init {
		f.factors.copyFrom(f.InitU, f.InitV)
		if f.cells.Units.All != 0 {
			f.multiply(1 / f.cells.Units.Root())
		}
		f.drop(limit.LeastInit)
		return f.Progress.Enter(fit.PhaseFactors)
	}
	err, begun := f.Progress.Enter(fit.PhaseFactors), false
	some := f.StartsFrom(f.d, f.n)
	if err == nil && some > 0 {
		run := f.Run
		run.Progress = f.Progress.Within(0, 1)
		f.lead, err = f.ofSome(f.cells, f.Loss, some, 1, run)
		begun = f.follow()
	}
	switch {
	case begun:
		f.raise(limit.LogFactor)
	case err != nil && some > 0: // a fit that ends here has factors, too, which take no pass over x
		f.uniform(f.Run.Seed)
	default:
		f.random(f.cells, f.Run.Seed)
	}
	if err == nil && f.Start == StartSVD {
		err = f.decompose(f.cells, f.Pool)
	}
	return err
}

// Begin makes the first sweep over the factors of the start.
func (f *nmfFit) Begin() (fit.Losses, error) {
	if err := f.startFactors(); err != nil {
		return fit.Losses{}, err
	}
	l, err := f.method.Begin()
	return lossesOf(0, l), err
}

// Epoch makes epoch e. Where it is interrupted the factors stay those of the last losses.
func (f *nmfFit) Epoch(e int) (fit.Losses, error) {
	l, err := f.method.Epoch(e)
	return lossesOf(e+1, l), err
}

func lossesOf(epoch int, l nmf.Losses) fit.Losses {
	return fit.Losses{Of: epoch, Visible: l.Visible, Held: l.Held, Penalty: l.Penalty}
}

// Made hands the factors over. Every entry of the journal is exact.
func (f *nmfFit) Made(t *fit.Attempt) (any, error) {
	j := t.Journal
	if len(j.History) == 0 { // stopped before the first sweep, which gives the losses of the start
		_, done := f.Progress.Finish(f.Pool)
		l, err := f.method.Begin()
		done()
		if err == nil {
			t.Note(lossesOf(0, l))
		}
	}
	best := max(len(j.History)-1, 0)
	if t.Restore() {
		best = j.BestEpoch
	}
	return &NMF{Fitted{U: f.matU(), V: f.matV(), History: j.History, Validation: j.Validation, Best: best},
		f.prior(f.cells.Visible, f.n)}, nil
}

func (f *nmfFit) Walk(visit func(array section.Part, best []float64)) {
	visit(section.Positive(f.u), f.u)
	visit(section.Positive(f.v), f.v)
	for _, p := range f.method.State() {
		visit(p, nil)
	}
}

func (f *nmfFit) Index() []uint64 { return nil }

// Resume takes the factors and the state of the method from a checkpoint.
func (f *nmfFit) Resume(t *fit.Attempt, c *fit.Checkpoint) error {
	f.method.Prepare(c.Epoch)
	if _, err := c.Fill(t, 0); err != nil {
		return err
	}
	f.method.Resume(c.Epoch)
	return nil
}
