package qmf

// This file holds fits whose rows are split over machines (package shards): their start, what a step of some
// rows computes, and what a reduce makes of the sums of all steps.
//
// A step of a QMF is made by a qmfFit that has the rows of a shard alone. Its sums for V are those of its
// runs of rows (internal/pool), joined as far as whole groups of runs go. A reduce is made by a qmfFit
// without rows. It joins the sums of all shards in the tree in which a fit on one machine joins them, so the
// model has the bits of that fit. The state of a shard holds the numbers that a checkpoint has of the shard's
// rows, in the order of the checkpoint.

import (
	"context"
	"slices"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// Door is what the root package asks of a caller of its Split. No package outside this module can make one.
type Door struct{ _ [0]func() }

// Plan is what every step of a fit whose rows are split knows.
type Plan struct {
	// of the model (internal/section): an NMF, or a QMF with all rows in one batch
	Kind                   uint32
	D, N, K                int
	Visible, HeldOut       int  // cells
	Partial, Holds, Strict bool // cells are hidden, held out; what has not converged is an error
	fit.Units
	Settings         // of a QMF with the shrinkage and the line that the start has chosen
	Origin   Start   // where a QMF started
	Scale    float64 // the unit of its whole loss
}

// JudgesPenalty tells whether a reduce of a QMF needs the rows of U, for the penalty.
func (p *Plan) JudgesPenalty() bool { return p.Penalty > 0 && p.Patience > 0 }

// SplitStart is what a fit begins with.
type SplitStart struct {
	// Row returns row i of x', NaN where nothing was observed, in room or where it lies.
	Row  func(room []float64, i int) []float64
	Held []uint64     // of each row a bit for each cell, 1 where it is held out; nil where none is
	Read func() error // the error of reading rows, if any
	U, V []float64    // d × k of an NMF; k × n
	// of an NMF by Newton's method where cells are hidden: the rows in which each column is seen
	Seen []float64
	// State returns the first state of some rows of a QMF: numbers, and whether each row has a warm start.
	State   func(from, to int) ([]section.Part, []uint64)
	Main    []section.Part // of a QMF: what a reduce goes on from beside V,
	Numbers []float64      // and the numbers that the steps of V go on from
}

// Shard is the rows of a shard.
type Shard struct {
	X       fit.Rows  // NaN where nothing was observed
	Held    []uint64  // as in SplitStart
	Visible []int     // visible cells of each row
	Units   fit.Units // of these rows
	Cut     pool.Runs // the runs of the whole matrix that they are
}

// Pass is what a step of a QMF does with its rows.
type Pass int

const (
	PassStart  Pass = iota // makes q and F at the start of U and V, and the losses there
	PassEpoch              // makes the steps of an epoch, the losses being those before it
	PassLosses             // takes the losses
	PassModel              // makes the model
)

// ShardStep is a step of some rows of a QMF.
type ShardStep struct {
	Pass  Pass
	Epoch int
	// Fresh: the state is the best so far, and to be kept. Best: the model is that of the best state.
	Fresh, Best bool
	V           []float64 // k × n
	// Restore fills the numbers and the warm starts of the state, in the order in which Real and Index have
	// them after the step.
	Restore func(parts []section.Part, warm []transport.Warm) error
	Real    []section.Part
	Index   []uint64
	Made    ShardPart
}

// ShardPart is what a shard adds in a round.
type ShardPart struct {
	Num, Den     []float64 // sums for the step of V
	Losses, Held []float64 // of a QMF, of each row
	U            []float64 // the rows of U where the penalty is judged
	File         []byte    // of PassModel: a QMF of the rows, in the units of x
}

// Reduce is what a reduce of a QMF makes of the parts of all shards.
type Reduce struct {
	Epoch   int
	Steps   int       // that V has made
	V       []float64 // k × n
	Numbers []float64 // that the steps of V go on from
	StepV   bool      // make the step of V
	// Restore fills what a reduce goes on from beside V, in the order in which Main has it afterwards.
	Restore func(parts []section.Part) error
	Main    []section.Part
	Take    func(to *Total) error // adds up the parts
	Losses  fit.Losses            // Of is not set
}

// Total is what the parts of a round of a QMF come to.
type Total struct {
	A, B         *pool.Sums // of the models of V, all runs; A nil: B is the gradient
	Losses, Held []float64  // of each row
	U            []float64  // d × k; nil: not asked for
}

// Split is a fit whose rows are split.
type Split struct {
	Plan
	Task *fit.Task // nil but in a fit that is planned
}

// Begin makes the start of the fit that is planned.
func (s *Split) Begin(ctx context.Context) (*SplitStart, error) {
	t := s.Task
	t.Open(ctx)
	defer t.Pool.Close()
	first := &SplitStart{Row: t.Cells.Observed, Held: t.Cells.Held}
	start := s.startNMF
	if s.Kind == section.QMF {
		start = s.startQMF
	}
	if err := start(ctx, first); err != nil {
		return nil, fit.StoppedAt(0, err)
	}
	return first, nil
}

// startNMF fills the factors of the start, and counts what is seen of the columns.
func (s *Split) startNMF(ctx context.Context, first *SplitStart) error {
	t := s.Task
	f := &nmfFit{factors: newFactors(nil, s.D, s.N, s.K), Settings: &s.Settings, cells: t.Cells,
		Run: fit.Run{Pool: t.Pool, Seed: t.Seed, Progress: t.Progress(ctx)}}
	f.given, f.fixed = s.FixedU, s.Fixed
	if err := f.startFactors(); err != nil {
		return err
	}
	first.U, first.V = f.u, f.matV().Data
	if s.Partial && s.Updates == UpdatesNewton {
		first.Seen = make([]float64, s.N)
		x, observed := make([]float64, s.N), make([]bool, s.N)
		for i := range s.D {
			for j, o := range t.Cells.ReadRow(x, observed, i) {
				if o {
					first.Seen[j]++
				}
			}
		}
	}
	return nil
}

// startQMF chooses start and shrinkage, and fills the factors and the first states.
func (s *Split) startQMF(ctx context.Context, first *SplitStart) error {
	t := s.Task
	f := newQMFFit(t.Cells, s.K, &s.Settings, fit.Run{Pool: t.Pool, Seed: t.Seed, Progress: t.Progress(ctx)})
	err := f.choose()
	if err == nil {
		err = f.startFactors()
	}
	if err != nil {
		return err
	}
	f.beginSteps()
	s.Origin, s.Shrinkage, s.Line, s.Scale = f.origin, f.lambda, f.line, f.scale
	if f.rests {
		s.Epochs = 0
	}
	first.V = f.matV().Data
	first.State = func(from, to int) ([]section.Part, []uint64) {
		rows := make([]int, to-from)
		part := &qmfFit{steps: f.steps, maxLogFactor: f.maxLogFactor, inflation: &inflation{
			mapRows: mapRows{cells: &fit.Cells{Held: f.cells.Held},
				Maps: newMaps(nil, len(rows), s.Levels, s.Start == StartUniform, s.Ends == EndsPinned,
					f.Spans)},
			factors:   &factors{u: f.u[from*s.K : to*s.K]},
			rowLosses: make([]float64, len(rows)), rowHeld: make([]float64, len(rows)),
		}}
		if all, is := f.steps.(*adamSteps); is {
			part.steps = &adamSteps{fit: part, logU: all.logU[from*s.K : to*s.K],
				momU: newMoment(nil, len(rows), s.K)}
		}
		return s.shard(part).Arrays(), appendWarm(nil, part.Warm)
	}
	if of, is := f.steps.(*gaussSteps); is {
		_, _, first.Numbers = of.models.State()
	}
	first.Main = f.mainParts()
	return nil
}

// shardRows is the fit of a shard: what its steps go on from is what walkRows shows.
type shardRows struct{ *qmfFit }

func (f shardRows) Walk(visit func(array section.Part, best []float64)) { f.walkRows(visit) }

// shard returns the fit of a shard, with room for its best state where cells are held out.
func (s *Split) shard(f *qmfFit) *fit.Attempt {
	a := &fit.Attempt{Fit: shardRows{f}}
	if s.Holds {
		a.Room()
	}
	return a
}

// mainParts are the numbers, beside V and the numbers of Gauss and Newton's method, that a reduce goes on
// from.
func (f *qmfFit) mainParts() (p []section.Part) {
	if of, is := f.steps.(*adamSteps); is {
		of.walkV(func(array section.Part, _ []float64) { p = append(p, array) })
	}
	return p
}

// setV fills V from k × n numbers.
func (f *factors) setV(v []float64) {
	for c := range f.k {
		copy(f.rowV(c), v[c*f.n:])
	}
}

// Cells returns the rows of a shard as cells. The counts of visible and held-out cells are those of the
// whole matrix, by which losses are divided.
func (s *Split) cellsOf(r *Shard, rows fit.Source) *fit.Cells {
	c := fit.NewCells(rows)
	c.Missing, c.Partial, c.Visible, c.HeldOut = s.Missing, s.Partial, s.Visible, s.HeldOut
	c.InRow, c.Held, c.Units = r.Visible, r.Held, r.Units
	return c
}

// Problem returns the problem of the rows of a shard of an NMF, but for the runs.
func (s *Split) Problem(r *Shard, rows fit.Source, workers *pool.Pool) nmf.Problem {
	c := s.cellsOf(r, rows)
	problem := newProblem(newFactors(nil, c.D, c.N, s.K), c, s.Loss, workers)
	problem.Penalties, problem.Fixed = s.Penalties, s.Fixed
	return problem
}

// NMF returns the model of these factors and of a fit's journal. They are those at the best epoch where that
// is known to be another than the last.
func (s *Split) NMF(u, v []float64, j *fit.Journal) (*NMF, error) {
	f := newFactors(nil, s.D, s.N, s.K)
	f.copyFrom(fit.Dense{Rows: s.D, Cols: s.K, Data: u, Stride: s.K},
		fit.Dense{Rows: s.K, Cols: s.N, Data: v, Stride: s.N})
	a := &fit.Attempt{Journal: j, Fit: &nmfFit{factors: f, Settings: &s.Settings, method: new(nmf.Updates),
		cells: &fit.Cells{Missing: s.Missing, Visible: s.Visible}}}
	if j.Kept {
		a.Keep()
	}
	m, err := a.Fit.Made(a)
	return m.(*NMF), err
}

// StepQMF restores a fit of the rows of a shard from its state and V, and makes the step. It returns the
// model where the step is to make it.
func (s *Split) StepQMF(ctx context.Context, step *ShardStep, r *Shard, rows fit.Source,
	workers *pool.Pool) (made *QMF, err error) {
	f := newQMFPart(s.cellsOf(r, rows), s.K, &s.Settings,
		fit.Run{Pool: workers, Seed: s.Seed, Progress: fit.Silent(ctx)}, r.Cut)
	f.scale = s.Scale
	a := s.shard(f)
	if err := step.Restore(a.Arrays(), f.Warm); err != nil {
		return nil, err
	}
	f.setV(step.V)
	if step.Fresh {
		a.Keep()
	}
	part := ShardPart{Losses: f.rowLosses, Held: f.rowHeld}
	if s.JudgesPenalty() {
		part.U = append(part.U, f.u...)
		if of, is := f.steps.(*adamSteps); is {
			part.U = append(part.U[:0], of.logU...)
		}
	}
	switch step.Pass {
	case PassStart:
		err = f.startMaps(&f.progress)
	case PassEpoch:
		f.at = f.pace(step.Epoch)
		if err = f.visitAll(); err != nil {
			break
		}
		switch of := f.steps.(type) {
		case *adamSteps:
			part.Num = slices.Concat(of.sums.Parts...)
		case *gaussSteps:
			a, b := of.models.Sums()
			part.Num, part.Den = slices.Concat(b.Parts...), slices.Concat(a.Parts...)
		}
	case PassLosses:
		f.run(evaluateRows, f.d)
	case PassModel:
		if step.Best {
			a.Restore()
		}
		made = f.buildModel(func() bool { return false })
		made.Start, made.History = s.Origin, []float64{0}
	}
	step.Real, step.Index, step.Made = a.Arrays(), appendWarm(nil, f.Warm), part
	return made, err
}

// ReduceQMF sums the parts of a round, and makes the step of V where the round was an epoch. The losses are
// those before the step.
func (s *Split) ReduceQMF(r *Reduce, workers *pool.Pool) error {
	set, all := &s.Settings, newFactors(nil, 0, s.N, s.K)
	all.d = s.D
	f := &qmfFit{
		maxLogFactor: set.FactorBound(s.K), cut: pool.AllRuns(s.D), stepsV: r.Steps,
		inflation: &inflation{
			mapRows: mapRows{Settings: set, pool: workers, at: set.pace(r.Epoch),
				cells: &fit.Cells{Units: s.Units, Visible: s.Visible, HeldOut: s.HeldOut}},
			factors: all, lambda: s.Shrinkage, scale: s.Scale, whole: true,
			rowLosses: make([]float64, s.D), rowHeld: make([]float64, s.D),
		},
	}
	f.do = f.piece
	f.setV(r.V)
	total := &Total{Losses: f.rowLosses, Held: f.rowHeld}
	if set.Gaussian(s.K) {
		models := gauss.NewWhole(workers, f.cut, s.K, f.np, 1, s.BatchRows)
		f.steps = newGaussSteps(f, models)
		_, _, numbers := models.State()
		if len(r.Numbers) != len(numbers) {
			return &section.Error{Problem: "section NUMB: wrong length"}
		}
		copy(numbers, r.Numbers)
		r.Numbers = numbers
		total.A, total.B = models.Sums()
	} else {
		steps := &adamSteps{fit: f}
		steps.makeColumns()
		f.steps, total.B = steps, steps.sums
	}
	if s.JudgesPenalty() {
		total.U = make([]float64, s.D*s.K)
	}
	r.Main = f.mainParts()
	if err := r.Restore(r.Main); err != nil {
		return err
	}
	if err := r.Take(total); err != nil {
		return err
	}
	f.u = total.U
	if of, is := f.steps.(*adamSteps); is {
		of.logU = total.U
	}
	r.Losses = fit.Losses{Visible: f.meanLoss(), Held: f.meanHeld(), Penalty: f.regularity()}
	if r.StepV {
		f.stepV(f.d, true)
		r.Steps, r.V = f.stepsV, f.matV().Data
	}
	return nil
}
