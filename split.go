package quantmf

// This file is the door of package shards, whose fits split the rows over machines: what a step of some rows
// computes, and what a reduce makes of the sums of all steps. Package shards has the rounds, the store, and
// all that internal/nmf computes.
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
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Split is for package shards of this module, and nobody else can call it: it takes a value of an internal
// type. It would go if the rows of a QMF were computed in an internal package.
func Split(fit.Door) splitting { return splitting{} }

// splitting is what Split opens.
type splitting struct{}

// The constants of internal/fit are those of this package.
var (
	_ = [1]struct{}{}[fit.LastSquash-SquashArctan]
	_ = [1]struct{}{}[fit.LastSchedule-ScheduleConstant]
	_ = [1]struct{}{}[fit.LastStart-StartSVD]
	_ = [1]struct{}{}[fit.LastEnds-EndsPinned]
	_ = [1]struct{}{}[fit.LastUpdates-UpdatesMultiplicative]
	_ = [1]struct{}{}[fit.ByNewton-UpdatesNewton]
)

// planned returns the settings as a plan holds them.
func (s *settings) planned() fit.Settings {
	return fit.Settings{
		Epsilon: s.epsilon, Tolerance: s.tolerance, LearningRate: s.learningRate, Penalty: s.penalty,
		Penalties: nmf.Penalties(s.penalties), Fixed: s.fixed,
		Validation: s.validation, Loss: s.loss, MaxIterations: s.maxIterations, Levels: s.levels,
		Epochs: s.epochs, BatchRows: int(min(uint64(s.batchRows), 1<<31-1)), Patience: s.patience,
		Seed: s.seed, Missing: s.missing, Mapped: s.mapped,
		Choices: fit.Choices{Squash: uint64(s.squash), Schedule: uint64(s.schedule),
			Start: uint64(s.start), Ends: uint64(s.ends), Updates: uint64(s.updates)},
	}
}

// settingsOf returns the settings of a plan: the inverse of planned.
func settingsOf(p *fit.Settings) settings {
	return settings{
		epsilon: p.Epsilon, tolerance: p.Tolerance, learningRate: p.LearningRate, penalty: p.Penalty,
		penalties: Penalties(p.Penalties), fixed: p.Fixed,
		validation: p.Validation, loss: p.Loss, maxIterations: p.MaxIterations, levels: p.Levels,
		epochs: p.Epochs, batchRows: p.BatchRows, patience: p.Patience, seed: p.Seed,
		missing: p.Missing, mapped: p.Mapped,
		squash: Squash(p.Squash), schedule: Schedule(p.Schedule), start: Start(p.Start),
		ends: Ends(p.Ends), updates: Updates(p.Updates), shrinkage: p.Lambda, line: p.Line,
	}
}

// inShards reports options of a fit of d rows that a fit whose rows are split does not take.
func (c *config) inShards(kind uint32, d int) error {
	if kind == section.QMF && c.batchRows < d {
		return &OptionError{Option: option.Batch.String(), Value: itoa(c.batchRows),
			Bound: "a fit in shards has one batch of all " + itoa(d) + " rows"}
	}
	for _, o := range []struct {
		given bool
		kind  option.Kind
		value string
	}{
		{c.restarts > 1, option.Restarts, itoa(c.restarts)},
		{c.save != nil, option.Checkpoint, itoa(c.every)},
		{c.resume != nil, option.Resume, ""},
		{c.sampleWeights != nil, option.SampleWeights, "len " + itoa(len(c.sampleWeights))},
		{c.cellWeights != nil, option.CellWeights, "Rows"},
	} {
		if o.given {
			return &OptionError{Option: o.kind.String(), Value: o.value,
				Bound: "a fit in shards has no use for it"}
		}
	}
	return nil
}

// Plan checks the options and the data of a fit, and returns it and a hash of all that it depends on.
func (splitting) Plan(kind uint32, x Rows, rank int, opts []FitOption) (*splitFit, uint64, error) {
	c, function := nmfDefaults(), option.FitNMF
	if c.updates = UpdatesMultiplicative; kind == section.QMF {
		c, function = qmfDefaults(), option.FitQMF
	}
	c.hash = true
	function.Takes &^= option.Of(option.Model)
	t, err := open(context.Background(), kind, function, &c, x, rank, opts)
	if err != nil {
		return nil, 0, err
	}
	d, n := t.Cells.D, t.Cells.N
	if kind == section.NMF {
		err = c.settleNMF(d, n, rank)
	} else if err = c.checkQMF(d, n); err == nil {
		c.settleQMF(rank)
		if !c.given.Has(option.Batch) {
			c.batchRows = d
		}
	}
	if err == nil {
		err = c.inShards(kind, d)
	}
	if err != nil {
		return nil, 0, err
	}
	of := t.Cells
	f := &splitFit{task: t, Split: fit.Split{
		Kind: kind, Strict: c.strict, D: d, N: n, K: rank, Visible: of.Visible, HeldOut: of.HeldOut,
		Partial: of.Partial, Holds: of.Held != nil, Units: of.Units, Settings: c.planned(),
	}}
	hash := of.Fingerprint
	hashMat(&hash, c.initU)
	hashMat(&hash, c.initV)
	h := uint64(hash)
	put := func(text string) {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
		h *= 1099511628211
	}
	put(itoa(int(kind)))
	for _, o := range c.described(rank, t.Cells.WeightHash) {
		put(o[0])
		put(o[1])
	}
	return f, h, nil
}

// Open returns the fit of a plan.
func (splitting) Open(f *fit.Split) *splitFit { return &splitFit{Split: *f} }

// splitFit is a fit whose rows are split.
type splitFit struct {
	fit.Split
	task *task // of Plan
}

// Of returns what every step knows. Start adds to it what the start has chosen.
func (s *splitFit) Of() *fit.Split { return &s.Split }

// Start makes the start of the fit.
func (s *splitFit) Start(ctx context.Context) (*fit.SplitStart, error) {
	t := s.task
	t.settle()
	t.Pieces = s.D
	t.Open(ctx)
	defer t.Pool.Close()
	first := &fit.SplitStart{Row: t.Cells.Observed, Held: t.Cells.Held, Read: s.failed}
	start := s.startNMF
	if s.Kind == section.QMF {
		start = s.startQMF
	}
	if err := start(ctx, first); err != nil {
		return nil, public(fit.StoppedAt(0, err))
	}
	return first, nil
}

// failed returns the error of reading rows, if any.
func (s *splitFit) failed() error { return public(s.task.Pool.Failed()) }

// startNMF fills the factors of the start, and counts what is seen of the columns.
func (s *splitFit) startNMF(ctx context.Context, first *fit.SplitStart) error {
	t := s.task
	f := &nmfFit{factors: newFactors(nil, s.D, s.N, s.K), cells: t.Cells, loss: t.loss,
		progress: t.Progress(ctx)}
	f.given, f.fixed = t.fixedU, t.fixed
	if err := f.startFactors(t.config,
		fit.Run{Pool: t.Pool, Seed: t.seed, Progress: f.progress}); err != nil {
		return err
	}
	first.U, first.V = f.u, f.matV().Data
	if s.Partial && t.updates == UpdatesNewton {
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
func (s *splitFit) startQMF(ctx context.Context, first *fit.SplitStart) error {
	t := s.task
	f := newQMFFit(t.Cells, s.K, &t.settings, fit.Run{Pool: t.Pool, Seed: t.seed, Progress: t.Progress(ctx)})
	err := f.choose()
	if err == nil {
		err = f.startFactors()
	}
	if err != nil {
		return err
	}
	f.beginSteps()
	s.Origin, s.Lambda, s.Line, s.Scale = uint64(f.origin), f.lambda, f.line, f.scale
	if f.rests {
		s.Epochs = 0
	}
	first.V = f.matV().Data
	first.State = func(from, to int) ([]section.Part, []uint64) {
		rows := make([]int, to-from)
		part := &qmfFit{steps: f.steps, maxLogFactor: f.maxLogFactor, inflation: &inflation{
			mapRows: mapRows{cells: &fit.Cells{Held: f.cells.Held},
				Maps: monotone.New(nil, len(rows), s.Levels, t.start == StartUniform, t.ends == EndsPinned,
					f.Spans)},
			factors:   &factors{u: f.u[from*s.K : to*s.K]},
			rowLosses: make([]float64, len(rows)), rowHeld: make([]float64, len(rows)),
		}}
		if all, is := f.steps.(*adamSteps); is {
			part.steps = &adamSteps{fit: part, logU: all.logU[from*s.K : to*s.K],
				momU: monotone.NewMoment(nil, len(rows), s.K)}
		}
		return s.shard(part).Arrays(), monotone.AppendWarm(nil, part.Warm)
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
func (s *splitFit) shard(f *qmfFit) *fit.Attempt {
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

// cellsOf returns the rows of a shard as cells. The counts of visible and held-out cells are those of the
// whole matrix, by which losses are divided.
func (s *splitFit) cellsOf(r *fit.Shard) *fit.Cells {
	c := fit.NewCells(sourceOf(r.X))
	c.Missing, c.Partial, c.Visible, c.HeldOut = s.Missing, s.Partial, s.Visible, s.HeldOut
	c.InRow, c.Held, c.Units = r.Visible, r.Held, r.Units
	return c
}

// Problem returns the problem of the rows of a shard of an NMF, but for the runs.
func (s *splitFit) Problem(r *fit.Shard, workers *pool.Pool) nmf.Problem {
	c := s.cellsOf(r)
	problem := newProblem(newFactors(nil, c.D, c.N, s.K), c, s.Loss, workers)
	problem.Penalties, problem.Fixed = s.Penalties, s.Fixed
	return problem
}

// NMF returns the model of these factors and of a fit's journal. They are those at the best epoch where that
// is known to be another than the last.
func (s *splitFit) NMF(u, v []float64, j *fit.Journal) (Model, error) {
	f := newFactors(nil, s.D, s.N, s.K)
	f.copyFrom(Mat{s.D, s.K, u, s.K}, Mat{s.K, s.N, v, s.N})
	of := &nmfFit{factors: f, cells: &fit.Cells{Missing: s.Missing}, loss: s.Loss, method: new(nmf.Updates)}
	set := settingsOf(&s.Settings)
	of.prior = set.prior(s.Visible, s.N)
	a := &fit.Attempt{Fit: of, Journal: j}
	if j.Kept {
		a.Keep()
	}
	m, err := of.Model(a)
	q := m.(fitted)
	q.toUserUnits(&s.Units)
	sealFields(q)
	return q, err
}

// StepQMF restores a fit of the rows of a shard from its state and V, and makes the step.
func (s *splitFit) StepQMF(ctx context.Context, step *fit.ShardStep, r *fit.Shard, workers *pool.Pool) error {
	set := settingsOf(&s.Settings)
	f := newQMFPart(s.cellsOf(r), s.K, &set,
		fit.Run{Pool: workers, Seed: s.Seed, Progress: fit.Silent(ctx)}, r.Cut)
	f.lambda, f.scale = s.Lambda, s.Scale
	a := s.shard(f)
	err := step.Restore(a.Arrays(), f.Warm)
	if err != nil {
		return err
	}
	f.setV(step.V)
	if step.Fresh {
		a.Keep()
	}
	made := fit.ShardPart{Losses: f.rowLosses, Held: f.rowHeld}
	if s.JudgesPenalty() {
		made.U = append(made.U, f.u...)
		if of, is := f.steps.(*adamSteps); is {
			made.U = append(made.U[:0], of.logU...)
		}
	}
	switch step.Pass {
	case fit.PassStart:
		err = f.startMaps(&f.progress)
	case fit.PassEpoch:
		f.at = f.pace(step.Epoch)
		if err = f.visitAll(); err != nil {
			break
		}
		switch of := f.steps.(type) {
		case *adamSteps:
			made.Num = slices.Concat(of.sums.Parts...)
		case *gaussSteps:
			a, b := of.models.Sums()
			made.Num, made.Den = slices.Concat(b.Parts...), slices.Concat(a.Parts...)
		}
	case fit.PassLosses:
		f.run(evaluateRows, f.d)
	case fit.PassModel:
		if step.Best {
			a.Restore()
		}
		q := f.buildModel(func() bool { return false })
		q.Start, q.History = Start(s.Origin), []float64{0}
		q.toUserUnits(&f.cells.Units)
		made.File, err = q.readable()
	}
	step.Real, step.Index, step.Made = a.Arrays(), monotone.AppendWarm(nil, f.Warm), made
	return err
}

// ReduceQMF sums the parts of a round, and makes the step of V where the round was an epoch. The losses are
// those before the step.
func (s *splitFit) ReduceQMF(r *fit.Reduce, workers *pool.Pool) error {
	set, all := settingsOf(&s.Settings), newFactors(nil, 0, s.N, s.K)
	all.d = s.D
	f := &qmfFit{
		maxLogFactor: factorBound(set.squash, s.K), cut: pool.AllRuns(s.D), stepsV: r.Steps,
		inflation: &inflation{
			mapRows: mapRows{settings: &set, pool: workers, at: set.pace(r.Epoch),
				cells: &fit.Cells{Units: s.Units, Visible: s.Visible, HeldOut: s.HeldOut}},
			factors: all, lambda: s.Lambda, scale: s.Scale, whole: true,
			rowLosses: make([]float64, s.D), rowHeld: make([]float64, s.D),
		},
	}
	f.do = f.piece
	f.setV(r.V)
	total := &fit.Total{Losses: f.rowLosses, Held: f.rowHeld}
	if set.gaussian(s.K) {
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
