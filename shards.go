package quantmf

// This file holds fits whose rows are split over shards. Every process that takes part works on one
// store of named blobs, and no two of them need to run at the same time:
//
//	PlanNMF or PlanQMF              once: the rows of every shard, the start
//	for round := 0; ; round++ {
//	    Step(ctx, round, shard)     once for every shard, in any order, anywhere, as often as one likes
//	    Reduce(ctx, round)          once all of them are there: sums their parts, makes the next V
//	}                               until Reduce says Over
//	Finish                          the model
//
// The plan makes the start of the factors, and the choice of start and shrinkage, as a fit on one
// machine makes them. internal/shard has the plan, the rounds, the blobs, and what an NMF computes in a
// round. This file has what a QMF computes, all rows being one batch. The rounds of a QMF are
//
//	start   q and F of every row at the start of U and V, and its losses
//	visit   an epoch: the visits of all rows; Reduce makes the step of V
//	judge   the losses after the epoch, where cells are held out
//	hand    the rows of the model: U, T_i, losses
//
// A step of a shard is made by a qmfFit that has the rows of the shard alone. Its sums for V are those
// of its runs of rows (internal/runs), joined as far as whole groups of runs go. Reduce is made by a
// qmfFit without rows. It joins the sums of all shards in the tree in which a fit on one machine joins
// them, so the model has the bits of that fit. The state of a shard holds the numbers that a checkpoint
// has of the shard's rows, in the order of the checkpoint.

import (
	"context"
	"errors"
	"math"
	"math/bits"

	"github.com/quantmf/quantmf/internal/adam"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/journal"
	"github.com/quantmf/quantmf/internal/kinds"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/runs"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/shard"
)

// Store keeps named blobs. Names consist of the letters a to z, digits and hyphens. All writers of a
// name write the same bytes, so it does not matter which of two writers comes last.
type Store interface {
	// Get returns the blob of a name; no bytes and no error where there is none.
	Get(name string) ([]byte, error)
	// Put keeps a blob whole or not at all: no Get returns a part of it. It copies data.
	Put(name string, data []byte) error
}

// Remover is a [Store] that can also remove blobs. [Sharded.Reduce] then removes the blobs of the round
// before, which no later step reads; in other stores they stay.
type Remover interface {
	Store
	// Remove removes the blob of a name. That there is none is no error.
	Remove(name string) error
}

// Sharded is a fit whose rows are split over shards, with all its state in a store. Several goroutines
// may use it at once, where they may use the store.
type Sharded struct {
	fit      *shard.Fit
	settings settings
	kept     shard.Kept[*cells]
}

// KeepRows lets Step keep the rows of several shards in memory, up to the given number of bytes, for the
// steps of later rounds by the same Sharded; 0 keeps none. Without KeepRows the rows of one shard are kept.
// Rows for which there is no more room are read in every round: since a round goes through all shards, no
// shard's rows are worth more than another's.
func (s *Sharded) KeepRows(bytes int64) { s.kept.Keep(bytes) }

// Round tells how far a fit over shards has come.
type Round struct {
	Number int     // the number of the round whose steps come next, from 0
	Epoch  int     // epochs done
	Epochs int     // epochs in all, at most
	Loss   float64 // the newest mean divergence of the visible cells that is known; NaN before the first
	Over   bool    // there is nothing left but Finish
}

// ShardError names a step that has not been made, or whose blobs are damaged: Step(ctx, Round, Shard)
// makes the blobs again.
type ShardError struct {
	Round, Shard int
	Err          error // what is wrong
}

func (e *ShardError) Error() string {
	return "quantmf: shard " + itoa(e.Shard) + ", round " + itoa(e.Round) + ": " + e.Err.Error()
}
func (e *ShardError) Unwrap() error { return e.Err }

// PlanNMF begins an NMF whose rows are split into the given number of shards, and writes the plan to a
// store. The model has the bits of [FitNMF] with these options, except that the default of WithUpdates is
// [UpdatesMultiplicative] here. Only PlanNMF reads x; later steps read its rows from the store.
//
// An epoch of multiplicative updates takes one round. An epoch of [UpdatesNewton] takes two, under
// Frobenius without hidden cells one; some epochs take one more, such as the first where it begins with
// epochs over few rows ([FitNMF]).
//
// There can be as many shards as there are runs in which the rows are summed: one run for each 16 rows, at
// most 16 runs, and, where there would be more than 4, at most one run for each 2^18 of the d n k products of
// UV.
//
// Errors are those of [FitNMF]; an [*OptionError] for options that a fit in shards does not take:
// WithRestarts, WithCheckpoint and WithResume; an [*OptionError] for a store that has another fit; and
// errors of the store. A second call with the same arguments writes the same bytes.
func PlanNMF(ctx context.Context, store Store, shards int, x Rows, rank int, opts ...FitOption) error {
	c := nmfDefaults()
	c.updates = UpdatesMultiplicative
	t, err := open(kinds.NMF, option.FitNMF, &c, x, rank, opts)
	if err != nil {
		return err
	}
	if err := c.settleNMF(t.cells.d, t.cells.n, rank); err != nil {
		return err
	}
	if err := c.inShards(kinds.NMF, t.cells.d); err != nil {
		return err
	}
	return t.planShards(ctx, store, shards, t.startNMF)
}

// PlanQMF begins a QMF whose rows are split into the given number of shards, all rows being one batch, and
// writes the plan to a store. The model has the bits of [FitQMF] with these options and with WithBatch of at
// least as many rows as x has, which is the default here. PlanQMF makes the start, and chooses start and
// shrinkage where they are left to the data. Only PlanQMF reads x; later steps read its rows from the
// store.
//
// There can be as many shards as there are runs in which the rows are summed: one run for each 16 rows, at
// most 64 runs.
//
// Errors are those of [FitQMF]; an [*OptionError] for options that a fit in shards does not take:
// WithBatch of fewer rows, WithRestarts, WithCheckpoint and WithResume; an [*OptionError] for a store that
// has another fit; and errors of the store. A second call with the same arguments writes the same bytes.
func PlanQMF(ctx context.Context, store Store, shards int, x Rows, rank int, opts ...FitOption) error {
	c := qmfDefaults()
	t, err := open(kinds.QMF, option.FitQMF, &c, x, rank, opts)
	if err != nil {
		return err
	}
	d := t.cells.d
	if err := c.checkQMF(d, t.cells.n); err != nil {
		return err
	}
	c.settleQMF(rank)
	if !c.given.Has(option.Batch) {
		c.batchRows = d
	}
	if err := c.inShards(kinds.QMF, d); err != nil {
		return err
	}
	return t.planShards(ctx, store, shards, t.startQMF)
}

// ofBlobs turns an error of internal/shard into one of this package's types.
func ofBlobs(err error) error {
	var blob *shard.BlobError
	if errors.As(err, &blob) {
		blob.Err = formatError(blob.Err)
	}
	if step, is := err.(*shard.StepError); is {
		return (*ShardError)(step)
	}
	return err
}

// choices returns the numbers of the settings that are enumerated constants.
func (s *settings) choices() shard.Choices {
	return shard.Choices{
		Squash: uint64(s.squash), Schedule: uint64(s.schedule), Start: uint64(s.start),
		Ends: uint64(s.ends), Updates: uint64(s.updates),
	}
}

// lastChoices returns the last constant of every enumeration.
func lastChoices() shard.Choices {
	return (&settings{
		squash: SquashArctan, schedule: ScheduleConstant, start: StartSVD,
		ends: EndsPinned, updates: UpdatesMultiplicative,
	}).choices()
}

// planned returns the settings as a plan holds them.
func (s *settings) planned() shard.Settings {
	return shard.Settings{
		Epsilon: s.epsilon, Tolerance: s.tolerance, LearningRate: s.learningRate, Penalty: s.penalty,
		Validation: s.validation, Loss: s.loss, MaxIterations: s.maxIterations, Levels: s.levels,
		Epochs: s.epochs, BatchRows: int(min(uint64(s.batchRows), 1<<31-1)), Patience: s.patience,
		Seed:    s.seed,
		Missing: s.missing, Mapped: s.mapped, Choices: s.choices(),
	}
}

// settingsOf returns the settings of a plan: the inverse of planned.
func settingsOf(p *shard.Plan) settings {
	return settings{
		epsilon: p.Epsilon, tolerance: p.Tolerance, learningRate: p.LearningRate, penalty: p.Penalty,
		validation: p.Validation, loss: p.Loss, maxIterations: p.MaxIterations, levels: p.Levels,
		epochs: p.Epochs, batchRows: p.BatchRows, patience: p.Patience, seed: p.Seed,
		missing: p.Missing, mapped: p.Mapped,
		squash: Squash(p.Squash), schedule: Schedule(p.Schedule), start: Start(p.Start),
		ends: Ends(p.Ends), updates: Updates(p.Updates), shrinkage: p.Lambda,
	}
}

// inShards reports options of an NMF, or of a QMF of d rows, that a fit in shards does not take.
func (c *config) inShards(kind uint32, d int) error {
	if kind == kinds.QMF && c.batchRows < d {
		return &OptionError{Option: option.Batch.String(), Value: itoa(c.batchRows),
			Bound: "a fit in shards has one batch of all " + itoa(d) + " rows"}
	}
	return nil
}

// shardsError is the error of a number of shards, for rows that are summed in count runs.
func shardsError(shards, count int) error {
	return &OptionError{Option: "shards", Value: itoa(shards),
		Bound: "must be from 1 to " + itoa(count) + ", the number of runs in which the rows are summed"}
}

// planShards writes a plan. start makes the start of the kind of fit.
func (t *task) planShards(ctx context.Context, store Store, shards int,
	start func(ctx context.Context, p *shard.Plan, first *shard.Start) error) error {
	for _, o := range []struct {
		given bool
		kind  option.Kind
		value string
	}{
		{t.restarts > 1, option.Restarts, itoa(t.restarts)},
		{t.save != nil, option.Checkpoint, itoa(t.every)},
		{t.resume != nil, option.Resume, ""},
	} {
		if o.given {
			return &OptionError{Option: o.kind.String(), Value: o.value,
				Bound: "a fit in shards has no use for it"}
		}
	}
	c := t.cells
	p := &shard.Plan{
		Kind: t.kind, Strict: t.strict, D: c.d, N: c.n, K: t.rank, Shards: shards,
		Visible: c.visible, HeldOut: c.heldOut, Partial: c.partial, Holds: c.held != nil,
		Units: c.Units, Settings: t.settings.planned(),
	}
	p.SetRuns()
	if most := p.Runs(); shards < 1 || shards > most {
		return shardsError(shards, most)
	}
	var err error
	if p.ID, err = t.fingerprint(shards); err != nil {
		return err
	}
	f := &shard.Fit{Store: store, Plan: p}
	if another, err := f.Another(lastChoices()); another {
		return &OptionError{Option: "store", Value: shard.PlanName, Bound: "it has another fit"}
	} else if err != nil {
		return ofBlobs(err)
	}
	t.pool = pool.New(t.workers, p.D)
	defer t.pool.Close()
	ctx = c.trouble.over(ctx)
	t.pool.Bind(ctx)
	first := &shard.Start{Row: c.observedRow, Held: c.held, Read: c.trouble.get}
	if err := start(ctx, p, first); err != nil {
		return err
	}
	return ofBlobs(f.Begin(ctx, first))
}

// fingerprint hashes all that a fit in the given number of shards depends on: x, given factors, kind
// and options.
func (t *task) fingerprint(shards int) (uint64, error) {
	h, err := fingerprintRows(t.x, t.initU, t.initV)
	put := func(text string) {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
		h *= 1099511628211
	}
	put(itoa(int(t.kind)))
	put(itoa(shards))
	for _, o := range t.described(t.rank) {
		put(o[0])
		put(o[1])
	}
	return h, err
}

// OpenSharded opens the fit that [PlanNMF] or [PlanQMF] has left in a store. Errors are those of the store,
// and a [*FormatError] within another where the plan is damaged.
func OpenSharded(store Store) (*Sharded, error) {
	f, err := shard.Open(store, lastChoices())
	if err != nil {
		return nil, ofBlobs(err)
	}
	return &Sharded{fit: f, settings: settingsOf(f.Plan)}, nil
}

// Shards returns the number of shards.
func (s *Sharded) Shards() int { return s.fit.Plan.Shards }

// Round tells how far the fit has come: it returns the round whose steps are to be made. It reads some
// blobs, not all. Errors: those of the store, and of damaged blobs, with their names.
func (s *Sharded) Round() (Round, error) {
	r, err := s.fit.Current()
	if err != nil {
		return Round{}, ofBlobs(err)
	}
	return s.tell(r), nil
}

// tell returns a round as callers see it.
func (s *Sharded) tell(r *shard.Round) Round {
	of := Round{Number: r.Number, Epoch: r.Done, Epochs: s.fit.Plan.Epochs, Loss: math.NaN(),
		Over: r.Phase == shard.PhaseOver}
	if n := len(r.History); n > 0 {
		last := []float64{r.History[n-1]}
		s.fit.Plan.Losses(s.fit.Plan.Loss, last)
		of.Loss = last[0]
	}
	return of
}

// Step makes the step of one shard in a round: it reads the shard's rows and state and the round's V, and
// writes the shard's next state and its part of V's step and of the losses. A second call writes the same
// bytes; it does nothing where they are whole already, or the fit no longer needs them. A damaged state is
// made again before it is read. Step uses GOMAXPROCS workers.
//
// Errors: a [*ShapeError] for a shard that does not exist; a [*ShardError] where a round before has not
// been reduced; errors of the store, of ctx, and of damaged blobs, with their names.
func (s *Sharded) Step(ctx context.Context, round, shard int) error {
	if shard < 0 || shard >= s.Shards() {
		return &ShapeError{What: "shard", Got: itoa(shard), Want: "0 to " + itoa(s.Shards()-1)}
	}
	return ofBlobs(s.fit.Step(round, shard, s.stepOf(ctx, shard)))
}

// stepOf returns the function that makes a step of a shard from its state and V.
func (s *Sharded) stepOf(ctx context.Context, of int) func(r *shard.Round, state *shard.Blob,
	v []float64) (*shard.Made, error) {
	return func(r *shard.Round, state *shard.Blob, v []float64) (made *shard.Made, err error) {
		rows, err := s.rowsOf(of)
		if err != nil {
			return nil, err
		}
		workers := pool.New(0, rows.d)
		defer workers.Close()
		workers.Bind(ctx)
		if p := s.fit.Plan; p.Kind == kinds.NMF {
			made, err = s.fit.StepNMF(r, of, state, v,
				newProblem(newFactors(rows.d, p.N, p.K), rows, p.Loss, p.Penalty, workers))
		} else {
			made, err = s.stepQMF(ctx, r, of, state, v, rows, workers)
		}
		if err == nil {
			err = workers.Err()
		}
		return made, err
	}
}

// Reduce sums the parts of all shards in a round in their fixed order, makes the next V, and returns the
// round that comes next; where the fit is over it returns the same round. A second call writes the same
// bytes, or nothing where the next round is there already.
//
// Errors: a [*ShardError] for the first part that is missing or damaged; errors of the store, of ctx, and
// of damaged blobs, with their names.
func (s *Sharded) Reduce(ctx context.Context, round int) (Round, error) {
	r, err := s.fit.Reduce(round,
		func(r *shard.Round, v []float64) (next []float64, main []section.Part, err error) {
			workers := pool.New(0, s.fit.Plan.N)
			defer workers.Close()
			workers.Bind(ctx)
			if s.fit.Plan.Kind == kinds.NMF {
				next, main, err = s.fit.ReduceNMF(r, v, workers)
			} else {
				next, main, err = s.reduceQMF(r, v, workers)
			}
			if err == nil {
				err = workers.Err()
			}
			return next, main, err
		})
	if r == nil {
		return Round{}, ofBlobs(err)
	}
	return s.tell(r), ofBlobs(err)
}

// Finish returns the model, [*NMF] or [*QMF], of a fit that is over. Under [WithStrict] a transport that
// has not converged is a [*ConvergenceError], returned with the model. A fit that is not over is an
// [*OptionError].
func (s *Sharded) Finish(ctx context.Context) (Model, error) {
	r, err := s.fit.Current()
	if err != nil {
		return nil, ofBlobs(err)
	}
	if r.Phase != shard.PhaseOver {
		return nil, &OptionError{Option: "Finish", Value: "round " + itoa(r.Number),
			Bound: "the fit is not over"}
	}
	var m fitted
	if s.fit.Plan.Kind == kinds.NMF {
		m, err = s.finishNMF(r)
	} else {
		m, err = s.finishQMF(r)
	}
	if err != nil {
		return nil, ofBlobs(err)
	}
	m.outward(&s.fit.Plan.Units)
	if f := m.common(); s.fit.Plan.Strict && len(f.Warnings) > 0 {
		err = f.Warnings[0]
	}
	return m, err
}

// rowsOf returns the rows of a shard, from memory where KeepRows keeps them.
func (s *Sharded) rowsOf(shard int) (*cells, error) {
	c, err := s.kept.Rows(shard, func() (*cells, error) { return s.readCells(shard) }, (*cells).size)
	if err != nil {
		return nil, err
	}
	own := *c
	own.trouble = new(trouble) // each step notes errors of its own
	return &own, nil
}

// size is the memory, in bytes, of the numbers that the cells hold.
func (c *cells) size() int64 {
	size := 8 * len(c.held)
	switch x := c.source.(type) {
	case *Sparse:
		size += 4*len(x.index) + 8*len(x.wide) + 4*len(x.narrow)
	case Mat32:
		size += 4 * len(x.Data)
	case Mat:
		size += 8 * len(x.Data)
	}
	return int64(size)
}

// readCells reads the rows of a shard. The counts of visible and held-out cells are those of the whole
// matrix, by which losses are divided; all else is that of a fit of these rows alone.
func (s *Sharded) readCells(shard int) (*cells, error) {
	p := s.fit.Plan
	rows, err := s.fit.Rows(shard)
	if err != nil {
		return nil, err
	}
	from, to := p.Cut(shard).Rows()
	d, n := to-from, p.N
	var x Rows
	switch {
	case rows.Listed && rows.Narrow != nil:
		x, err = NewSparse(n, rows.Start, rows.Columns, rows.Narrow)
	case rows.Listed:
		x, err = NewSparse(n, rows.Start, rows.Columns, rows.Wide)
	case rows.Narrow != nil:
		x = Mat32{d, n, rows.Narrow, n}
	default:
		x = Mat{d, n, rows.Wide, n}
	}
	if err != nil {
		return nil, rows.Fault(rows.Fail("STRT", "the rows are no matrix"))
	}
	order := make([]int, d)
	for i := range order {
		order[i] = from + i
	}
	c := &cells{
		sizes: sizes{d, n}, source: x, trouble: new(trouble), missing: p.Missing, partial: p.Partial,
		visible: p.Visible, heldOut: p.HeldOut, rows: make([]int, d), held: rows.Held, Units: p.Pick(order),
	}
	c.mat, _ = x.(Mat)
	room := make([]float64, n)
	for i := range d {
		for _, v := range c.observedRow(room, i) {
			if v == v {
				c.rows[i]++
			} else if !p.Partial {
				return nil, rows.Fault(rows.Fail("CELL", "a number is missing in a matrix of which none is"))
			}
		}
		for _, set := range c.heldOf(i) {
			c.rows[i] -= bits.OnesCount64(set)
		}
		if c.rows[i] < 1 {
			return nil, rows.Fault(rows.Fail("CELL", "row "+itoa(i)+" has no visible cell"))
		}
	}
	return c, nil
}

// internal/shard has a constant of its own for UpdatesNewton: the two must be equal.
var _ = [1]struct{}{}[shard.Newton-UpdatesNewton]

// startNMF makes the start of an NMF.
func (t *task) startNMF(ctx context.Context, p *shard.Plan, first *shard.Start) error {
	f := &nmfFit{factors: newFactors(p.D, p.N, p.K), cells: t.cells, loss: t.loss,
		course: newCourse(ctx, t.config, p.D)}
	if err := f.startFactors(t.config, t.pool, t.seed); err != nil {
		return stoppedAt(0, err)
	}
	first.V = f.matV().Data
	var seen []float64
	if p.Partial && t.updates == UpdatesNewton {
		seen = make([]float64, p.N)
		x, observed := make([]float64, p.N), make([]bool, p.N)
		for i := range p.D {
			for j, o := range t.cells.readRow(x, observed, i) {
				if o {
					seen[j]++
				}
			}
		}
	}
	p.BeginNMF(first, f.u, seen)
	return nil
}

// finishNMF makes the model of the last states.
func (s *Sharded) finishNMF(r *shard.Round) (fitted, error) {
	p := s.fit.Plan
	u, v, err := s.fit.FinishNMF(r)
	if err != nil {
		return nil, err
	}
	f := newFactors(p.D, p.N, p.K)
	f.copyFrom(Mat{p.D, p.K, u, p.K}, Mat{p.K, p.N, v, p.N})
	fit := &nmfFit{factors: f, cells: &cells{missing: p.Missing}, loss: p.Loss}
	if r.Kept {
		fit.best = f
	}
	return fit.model(r.Journal)
}

// startQMF makes the start of a QMF: the choice of start and shrinkage, and the factors.
func (t *task) startQMF(ctx context.Context, p *shard.Plan, first *shard.Start) error {
	f := newQMFFit(t.cells, p.K, &t.settings, t.pool, t.seed, newCourse(ctx, t.config, p.D))
	err := f.choose()
	if err == nil {
		err = f.startFactors()
	}
	if err != nil {
		return stoppedAt(0, err)
	}
	f.startLogarithms()
	p.Origin, p.Lambda, p.Scale = uint64(f.origin), f.lambda, f.scale
	first.V = f.matV().Data
	first.State = func(from, to int) ([]section.Part, []uint64) {
		rows := make([]int, to-from)
		part := &qmfFit{settings: f.settings, gauss: f.gauss, farthest: f.farthest, inflation: &inflation{
			mapRows: mapRows{cells: &cells{held: f.held},
				Maps: monotone.New(len(rows), p.Levels, t.start == StartUniform, t.ends == EndsPinned, f.Spans)},
			factors:   &factors{u: f.u[from*p.K : to*p.K]},
			rowLosses: make([]float64, len(rows)), rowHeld: make([]float64, len(rows)),
		}}
		if f.gauss == nil {
			part.logU, part.momU = f.logU[from*p.K:to*p.K], adam.NewMoment(len(rows)*p.K)
		}
		if p.Holds {
			part.best = part.newState()
		}
		return part.rowParts(), monotone.AppendWarm(nil, part.Warm)
	}
	if f.gauss != nil {
		_, _, first.Numbers = f.gauss.State()
	}
	m := &qmfFit{settings: f.settings, gauss: f.gauss, farthest: f.farthest,
		inflation: &inflation{mapRows: mapRows{cells: f.cells}, factors: f.factors}, logV: f.logV, momV: f.momV}
	if p.Holds {
		m.best = &qmfState{v: make([]float64, len(f.v))}
	}
	first.Main = m.mainParts()
	return nil
}

// rowParts are the numbers of the rows of a fit in the state of a shard.
func (f *qmfFit) rowParts() []section.Part {
	p := []section.Part{section.Positive(f.u), section.Positive(f.rowLosses), section.Positive(f.rowHeld)}
	if f.gauss == nil {
		p = append(append(p, section.Within(f.logU, -f.farthest, f.farthest)), monotone.Moments(f.momU)...)
	}
	p = append(p, f.Maps.Parts()...)
	if f.held != nil {
		p = append(append(p, section.Positive(f.best.u), section.Finite(f.best.f)), f.Rising(f.best.inc)...)
	}
	return p
}

// mainParts are the numbers, beside V, that Reduce needs from the round before and Step does not.
func (f *qmfFit) mainParts() (p []section.Part) {
	if f.gauss == nil {
		p = append(append(p, section.Within(f.logV, -f.farthest, f.farthest)), monotone.Moments(f.momV)...)
	}
	if f.best != nil {
		p = append(p, section.Positive(f.best.v))
	}
	return p
}

// setV fills V from k × n numbers.
func (f *factors) setV(v []float64) {
	for c := range f.k {
		copy(f.rowV(c), v[c*f.n:])
	}
}

// stepQMF makes the step of shard number of in a round: it restores a fit of the shard's rows from state
// and V, does what the phase of the round asks for, and returns the next state and the shard's part.
func (s *Sharded) stepQMF(ctx context.Context, r *shard.Round, of int, state *shard.Blob, v []float64,
	rows *cells, workers *pool.Pool) (*shard.Made, error) {
	p := s.fit.Plan
	f := newQMFPart(rows, p.K, &s.settings, workers, p.Seed, course{ctx: ctx, to: 1}, p.Cut(of))
	f.lambda, f.scale = p.Lambda, p.Scale
	if p.Holds {
		f.best = f.newState()
	}
	words, err := state.Restore(f.rowParts(), f.d)
	if err == nil {
		err = state.Fault(monotone.TakeWarm(state.File, f.Warm, words, 0))
	}
	if err != nil {
		return nil, err
	}
	f.setV(v)
	if r.Fresh {
		copy(f.best.u, f.u)
		copy(f.best.f, f.F)
		copy(f.best.inc, f.Inc)
	}
	part := shard.Part{Losses: f.rowLosses, Held: f.rowHeld}
	if p.JudgesPenalty() {
		part.U = append(part.U, f.u...)
		if f.gauss == nil {
			part.U = append(part.U[:0], f.logU...)
		}
	}
	switch r.Phase {
	case shard.PhaseStart:
		err = f.startMaps(&f.course)
	case shard.PhaseVisit:
		f.at = f.pace(r.Done)
		if err = f.visitAll(); err != nil {
			break
		}
		if f.gauss == nil {
			part.Num = shard.Joined(f.sumsV)
			break
		}
		a, b := f.gauss.Sums()
		part.Num, part.Den = shard.Joined(b), shard.Joined(a)
	case shard.PhaseJudge:
		f.run(evaluateRows, f.d)
	case shard.PhaseHand:
		if r.Kept {
			copy(f.u, f.best.u)
			copy(f.F, f.best.f)
			copy(f.Inc, f.best.inc)
		}
		q := f.hand(func() bool { return false })
		q.History = []float64{0}
		part.File, err = q.MarshalBinary()
	}
	return shard.MadeQMF(f.rowParts(), monotone.AppendWarm(nil, f.Warm), part), err
}

// reducer makes the fit without rows with which a round is reduced.
func (s *Sharded) reducer(r *shard.Round, v []float64, workers *pool.Pool) (*qmfFit, error) {
	p := s.fit.Plan
	all := newFactors(0, p.N, p.K)
	all.d = p.D
	f := &qmfFit{
		settings: &s.settings, farthest: factorBound(s.settings.squash, p.K), cut: runs.All(p.D),
		stepsV: r.Steps,
		inflation: &inflation{
			mapRows: mapRows{settings: &s.settings, pool: workers, at: s.settings.pace(r.Done),
				cells: &cells{Units: p.Units, visible: p.Visible, heldOut: p.HeldOut}},
			factors: all, lambda: p.Lambda, scale: p.Scale, whole: true,
			rowLosses: make([]float64, p.D), rowHeld: make([]float64, p.D),
		},
	}
	f.most = elem.Exp(f.farthest)
	f.least, f.piece = 1/f.most, f.doPiece
	f.setV(v)
	if p.Holds {
		f.best = &qmfState{v: make([]float64, len(f.v))}
	}
	if s.settings.gaussian(p.K) {
		f.gauss = gauss.NewWhole(f.cut, p.K, f.np, 1, p.BatchRows, workers.Workers())
		_, _, numbers := f.gauss.State()
		if len(r.Numbers) != len(numbers) {
			return nil, r.Fault(&section.Error{Problem: "section NUMB: wrong length"})
		}
		copy(numbers, r.Numbers)
		r.Numbers = numbers
	} else {
		f.sumsV = runs.NewSums(f.cut, p.K*f.np)
		f.gradV = f.sumsV.Parts[0]
		f.logV, f.momV = make([]float64, len(f.v)), adam.NewMoment(len(f.v))
	}
	return f, s.fit.Main(r.Number, f.mainParts())
}

// reduceQMF sums the parts of a round, makes the step of V after a round of visits, and enters the losses
// into the journal, which decides on the phase of the next round.
func (s *Sharded) reduceQMF(r *shard.Round, v []float64, workers *pool.Pool) ([]float64, []section.Part,
	error) {
	p := s.fit.Plan
	f, err := s.reducer(r, v, workers)
	if err != nil {
		return nil, nil, err
	}
	total := &shard.Total{B: f.sumsV, Losses: f.rowLosses, Held: f.rowHeld, U: make([]float64, 0)}
	if f.gauss != nil {
		total.A, total.B = f.gauss.Sums()
	}
	if p.JudgesPenalty() {
		total.U = make([]float64, p.D*p.K)
	}
	for i := range p.Shards {
		part, err := s.fit.TakeQMF(r, i, total)
		if err == nil && r.Phase == shard.PhaseHand {
			_, err = s.handed(part, i)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if f.u = total.U; f.gauss == nil {
		f.logU = total.U
	}
	now := journal.Losses{Visible: f.meanLoss(), Held: f.meanHeld(), Penalty: f.regularity()}
	judged := true
	switch r.Phase {
	case shard.PhaseVisit:
		f.stepV()
		r.Steps = f.stepsV
		if judged = !p.Holds; !judged {
			r.Phase, r.Fresh = shard.PhaseJudge, false
			break
		}
		now.Of = r.Done // the losses are those that the epoch started from
		r.Done++
	case shard.PhaseJudge:
		r.Done++
		now.Of = r.Done
	case shard.PhaseHand:
		r.Phase, r.Fresh, judged = shard.PhaseOver, false, false
		r.BestEpoch = r.Exact(now.Visible, now.Held)
	}
	if judged {
		r.Enter(now, p.Epochs, shard.PhaseVisit, shard.PhaseHand)
	}
	if r.Fresh {
		copy(f.best.v, f.v)
	}
	if r.Phase == shard.PhaseHand && r.Kept {
		copy(f.v, f.best.v)
	}
	return f.matV().Data, f.mainParts(), nil
}

// handed reads the model of the rows of a shard from its part of the last round.
func (s *Sharded) handed(part *shard.Blob, shard int) (*QMF, error) {
	p := s.fit.Plan
	from, to := p.Cut(shard).Rows()
	q := new(QMF)
	err := q.UnmarshalBinary(part.Payload("FILE"))
	if err == nil && (q.U.Rows != to-from || q.V.Cols != p.N || q.U.Cols != p.K ||
		q.Quantiles.Cols != p.Levels) {
		err = part.Fail("FILE", "the model is not of this shard")
	}
	return q, part.Fault(err)
}

// finishQMF joins the models of the rows of all shards.
func (s *Sharded) finishQMF(r *shard.Round) (fitted, error) {
	p := s.fit.Plan
	v, err := s.fit.V(r.Number)
	if err != nil {
		return nil, err
	}
	m := &QMF{
		Factorisation: Factorisation{
			U: NewMat(p.D, p.K), V: Mat{p.K, p.N, v, p.N}, loss: p.Loss, missing: p.Missing,
			History: r.History, Validation: r.Validation, Best: r.BestEpoch,
		},
		Quantiles: NewMat(p.D, p.Levels), Weights: NewMat(p.D, p.Levels), potentials: NewMat(p.D, p.Levels),
		Start: Start(p.Origin), Shrinkage: p.Lambda, epsilon: p.Epsilon,
	}
	for i := range p.Shards {
		part, err := s.fit.Handed(r, i)
		if err != nil {
			return nil, err
		}
		q, err := s.handed(part, i)
		if err != nil {
			return nil, err
		}
		from, to := p.Cut(i).Rows()
		for i := from; i < to; i++ {
			copy(m.U.Row(i), q.U.Row(i-from))
			copy(m.Quantiles.Row(i), q.Quantiles.Row(i-from))
			copy(m.Weights.Row(i), q.Weights.Row(i-from))
			copy(m.potentials.Row(i), q.potentials.Row(i-from))
		}
		m.center = append(m.center, q.center...)
		m.squash = append(m.squash, q.squash...)
		m.marginal = append(m.marginal, q.marginal...)
		for _, w := range q.Warnings {
			if c, ok := w.(*ConvergenceError); ok {
				at := *c
				at.Row += from
				w = &at
			}
			m.Warnings = append(m.Warnings, w)
		}
	}
	return m, nil
}
