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
// A shard has some runs of the rows, with their rows of U and their maps. A step reads V, goes over
// the rows, and writes the state of the shard, which no one else reads, and its part: sums over the runs
// for the step of V, and losses. Sums are joined in the tree in which a fit on one machine joins
// them (internal/runs, and nmf.Runs), so the model has that fit's bits.
//
// The start of the factors, and the choice of start and shrinkage, are made by the plan, as the fit
// makes them. shardfiles.go has the layout of the blobs, shardnmf.go and shardqmf.go what is done in a round.

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Store keeps named blobs. Names are of the letters a to z, digits and hyphens. A name is only ever given
// the same bytes, so it does not matter which of two writers comes last.
type Store interface {
	// Get returns the blob of a name; no bytes and no error where there is none.
	Get(name string) ([]byte, error)
	// Put keeps a blob, whole or not at all: nobody ever gets a part of it. It does not keep data itself.
	Put(name string, data []byte) error
}

// Remover is a [Store] that can also forget. [Sharded.Reduce] then removes the blobs of the round before, which
// no later step reads; in other stores they stay.
type Remover interface {
	Store
	// Remove forgets the blob of a name. It is no error where there is none.
	Remove(name string) error
}

// Sharded is a fit whose rows are split, as a store has it. It may be used by several goroutines at once,
// where the store may.
type Sharded struct {
	store Store
	plan  *shardPlan
	rows  atomic.Pointer[shardRows] // read last: a process that goes on with its shard reads them once
}

// shardRows are the rows of a shard.
type shardRows struct {
	shard int
	*cells
}

// Round is where a fit stands.
type Round struct {
	Number int     // of the round whose steps come next, from 0
	Epoch  int     // epochs done,
	Epochs int     // of so many at most
	Loss   float64 // the newest mean divergence of the visible cells that is known; NaN before the first
	Over   bool    // there is nothing left but Finish
}

// ShardError names a step that is missing, or whose blobs are damaged: Step(ctx, Round, Shard) makes them
// again.
type ShardError struct {
	Round, Shard int
	Err          error // what is wrong
}

func (e *ShardError) Error() string {
	return "quantmf: shard " + itoa(e.Shard) + ", round " + itoa(e.Round) + ": " + e.Err.Error()
}
func (e *ShardError) Unwrap() error { return e.Err }

// PlanNMF begins an NMF whose rows are split into so many shards, by [UpdatesMultiplicative], and leaves
// it in a store: the model has the bits of [FitNMF] with these options and WithUpdates(UpdatesMultiplicative), which is
// the default here. x is read during the plan alone.
//
// There are at most as many shards as runs that the rows are summed in: one for each 16 rows, at most 16
// (fewer than that for a small matrix).
//
// Errors are those of [FitNMF]; an [*OptionError] for options that a fit in shards does not have: WithUpdates of
// another kind, WithRestarts, WithCheckpoint and WithResume; and those of the store. Begun again with the same arguments it writes
// the same bytes. A store that has another fit is an [*OptionError].
func PlanNMF(ctx context.Context, store Store, shards int, x Rows, rank int, opts ...FitOption) error {
	c := nmfDefaults()
	c.updates = UpdatesMultiplicative
	t, err := open(kindNMF, option.FitNMF, &c, x, rank, opts)
	if err != nil {
		return err
	}
	if err := c.settleNMF(); err != nil {
		return err
	}
	if c.updates != UpdatesMultiplicative {
		return &OptionError{Option: option.Updates.String(), Value: c.updates.String(), Bound: "a fit in shards has UpdatesMultiplicative alone"}
	}
	return t.planShards(ctx, store, shards, planNMF)
}

// PlanQMF begins a QMF whose rows are split into so many shards, all rows being one batch, and leaves it in a
// store: the model has the bits of [FitQMF] with these options and WithBatch of at least as many rows as x has, which is
// the default here. The start is made in the plan, and the choice of start and shrinkage where they are left to the data; x
// is read during the plan alone.
//
// There are at most as many shards as runs that the rows are summed in: one for each 16 rows, at most 64.
//
// Errors are those of [FitQMF]; an [*OptionError] for options that a fit in shards does not have: WithBatch of
// fewer rows, WithRestarts, WithCheckpoint and WithResume; and those of the store. Begun again with the same arguments it writes
// the same bytes. A store that has another fit is an [*OptionError].
func PlanQMF(ctx context.Context, store Store, shards int, x Rows, rank int, opts ...FitOption) error {
	c := qmfDefaults()
	t, err := open(kindQMF, option.FitQMF, &c, x, rank, opts)
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
	if c.batchRows < d {
		return &OptionError{Option: option.Batch.String(), Value: itoa(c.batchRows), Bound: "a fit in shards has one batch of all " + itoa(d) + " rows"}
	}
	return t.planShards(ctx, store, shards, planQMF)
}

// planShards writes a plan: the rows and the first state of every shard, the first round, and last the plan
// itself. start makes what the kind of fit begins with.
func (t *task) planShards(ctx context.Context, store Store, shards int, start func(ctx context.Context, t *task, p *shardPlan) (*shardStart, error)) error {
	for _, o := range []struct {
		given bool
		kind  option.Kind
		value string
	}{{t.restarts > 1, option.Restarts, itoa(t.restarts)}, {t.save != nil, option.Checkpoint, itoa(t.every)}, {t.resume != nil, option.Resume, ""}} {
		if o.given {
			return &OptionError{Option: o.kind.String(), Value: o.value, Bound: "a fit in shards has no use for it"}
		}
	}
	p := &shardPlan{settings: t.settings, kind: t.kind, strict: t.strict, d: t.cells.d, n: t.cells.n, k: t.rank, shards: shards,
		visible: t.cells.visible, heldOut: t.cells.heldOut, partial: t.cells.partial, holds: t.cells.held != nil, units: t.cells.units}
	p.setRuns()
	if most := len(p.runs) - 1; shards < 1 || shards > most {
		return &OptionError{Option: "shards", Value: itoa(shards), Bound: "must be from 1 to " + itoa(most) + ", the number of runs in which the rows are summed"}
	}
	if uint64(p.batchRows) > 1<<31-1 {
		p.batchRows = 1<<31 - 1
	}
	var err error
	if p.id, err = p.fingerprint(t); err != nil {
		return err
	}
	s := &Sharded{store: store, plan: p}
	if old, err := readPlan(store); err == nil && old.id != p.id {
		return &OptionError{Option: "store", Value: planBlob, Bound: "it has another fit"}
	} else if err != nil && !isDamaged(err) {
		return err
	}
	t.pool = pool.New(t.workers, p.d)
	defer t.pool.Close()
	ctx = t.cells.trouble.over(ctx)
	t.pool.Bind(ctx)
	first, err := start(ctx, t, p)
	if err != nil {
		return err
	}
	for shard := range shards {
		rows, err := p.encodeRows(t.cells, shard)
		if err == nil {
			err = store.Put(rowsBlob(shard), rows)
		}
		if err != nil {
			return err
		}
		real, index := first.shard(p.cut(shard).Rows())
		if err := s.putState(0, shard, real, index); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	r := &shardRound{journal: newJournal(&p.settings, p.holds), numbers: first.numbers}
	if err := s.putRound(r, first.v, first.main); err != nil {
		return err
	}
	return store.Put(planBlob, p.encode())
}

// shardStart is what a fit begins with: the first state of each shard, V, and what putRound takes.
type shardStart struct {
	shard   func(from, to int) ([]section.Part, []uint64)
	v       Mat
	main    []section.Part
	numbers []float64
}

// fingerprint hashes all that the fit depends on.
func (p *shardPlan) fingerprint(t *task) (uint64, error) {
	h, err := fingerprintRows(t.x, t.initU, t.initV)
	put := func(text string) {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
		h *= 1099511628211
	}
	put(itoa(int(p.kind)))
	put(itoa(p.shards))
	for _, o := range t.described(p.k) {
		put(o[0])
		put(o[1])
	}
	return h, err
}

// OpenSharded opens the fit that [PlanNMF] or [PlanQMF] has left in a store. Errors are those of the store, and a
// [*FormatError] within another where the plan is damaged.
func OpenSharded(store Store) (*Sharded, error) {
	p, err := readPlan(store)
	if err != nil {
		return nil, err
	}
	return &Sharded{store: store, plan: p}, nil
}

// Shards returns the number of shards.
func (s *Sharded) Shards() int { return s.plan.shards }

// Round returns where the fit stands: the round whose steps are to be made. It looks at some blobs, not at
// all.
func (s *Sharded) Round() (Round, error) {
	r, err := s.current()
	if err != nil {
		return Round{}, err
	}
	return s.tell(r), nil
}

// tell is a round as callers see it.
func (s *Sharded) tell(r *shardRound) Round {
	of := Round{Number: r.number, Epoch: r.done, Epochs: s.plan.epochs, Loss: math.NaN(), Over: r.phase == phaseOver}
	if n := len(r.history); n > 0 {
		last := []float64{r.history[n-1]}
		s.plan.units.losses(s.plan.loss, last)
		of.Loss = last[0]
	}
	return of
}

// current reads the newest round. Rounds are written one after the other and stay, so the newest is found by
// doubling and halving. One that is damaged counts as not written yet, so that it is written again.
func (s *Sharded) current() (*shardRound, error) {
	r, err := s.readRound(0)
	if err != nil {
		return nil, err
	}
	// Round low is there, and round high is not.
	low, high := 0, 0
	for step := 1; high == 0; step *= 2 {
		next, err := s.readRound(low + step)
		switch {
		case err == nil:
			r, low = next, low+step
		case isDamaged(err):
			high = low + step
		default:
			return nil, err
		}
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		next, err := s.readRound(middle)
		switch {
		case err == nil:
			r, low = next, middle
		case isDamaged(err):
			high = middle
		default:
			return nil, err
		}
	}
	return r, nil
}

// errNotReduced is of a step of a round that does not exist yet.
var errNotReduced = errors.New("the round before is not reduced yet")

// Step makes the step of one shard in a round: it reads the shard's rows and state and the round's V, and writes the
// shard's next state and its part of V's step and of the losses. Done again it writes the same bytes; it does nothing where
// they are whole already, or the fit needs them no more. The state that it reads is made again where it is
// damaged. It uses GOMAXPROCS workers.
//
// Errors: a [*ShapeError] for a shard that does not exist; a [*ShardError] where the round is not to be made yet;
// those of the store, of ctx, and of damaged blobs, with their names.
func (s *Sharded) Step(ctx context.Context, round, shard int) error {
	if shard < 0 || shard >= s.plan.shards {
		return &ShapeError{What: "shard", Got: itoa(shard), Want: "0 to " + itoa(s.plan.shards-1)}
	}
	err := s.step(ctx, round, shard)
	if err != nil && isDamaged(err) { // removed meanwhile
		if _, late := s.readRound(round + 2); late == nil {
			return nil
		}
	}
	return err
}

func (s *Sharded) step(ctx context.Context, round, shard int) error {
	r, err := s.readRound(round)
	if err != nil {
		if !isDamaged(err) {
			return err
		}
		if now, err := s.current(); err != nil || now.phase == phaseOver && round > now.number {
			return err
		}
		return &ShardError{round, shard, errNotReduced}
	}
	if r.phase == phaseOver {
		return nil
	}
	if done, err := s.stepped(round, shard); done || err != nil {
		return err
	}
	state, err := s.read(stateBlob(round, shard), kindState, s.plan.whom(round, shard), "REAL", "IDX0")
	if err != nil && isDamaged(err) && round > 0 {
		if err = s.step(ctx, round-1, shard); err == nil {
			state, err = s.read(stateBlob(round, shard), kindState, s.plan.whom(round, shard), "REAL", "IDX0")
		}
	}
	if err != nil {
		return err
	}
	v, err := s.readV(round)
	if err != nil {
		return err
	}
	rows, err := s.readCells(shard)
	if err != nil {
		return err
	}
	workers := pool.New(0, rows.d)
	defer workers.Close()
	workers.Bind(ctx)
	var real []section.Part
	var index []uint64
	var part []section.Section
	if s.plan.kind == kindNMF {
		real, part, err = s.stepNMF(r, state, v, rows, shard, workers)
	} else {
		real, index, part, err = s.stepQMF(ctx, r, state, v, rows, shard, workers)
	}
	if err == nil {
		err = workers.Err()
	}
	if err != nil {
		return err
	}
	if err := s.putState(round+1, shard, real, index); err != nil {
		return err
	}
	return s.store.Put(partBlob(round, shard), s.plan.whom(round, shard).encode(kindPart, part...))
}

// stepped tells whether what a step writes is there, as far as it is still needed.
func (s *Sharded) stepped(round, shard int) (bool, error) {
	needed := func(name string, kind uint32, of whom) (bool, error) {
		data, err := s.store.Get(name)
		if err != nil || data == nil {
			return true, err
		}
		f, err := section.Decode(data, kind, kindName, []string{"WHOM"}, partTags)
		if err != nil {
			return true, nil
		}
		w, err := f.Words("WHOM", 3)
		return err != nil || w[0] != of.id || w[1] != uint64(of.round) || w[2] != uint64(of.shard), nil
	}
	if _, err := s.readRound(round + 2); err == nil {
		return true, nil
	}
	again, err := needed(stateBlob(round+1, shard), kindState, s.plan.whom(round+1, shard))
	if again || err != nil {
		return false, err
	}
	if _, err := s.readRound(round + 1); err == nil {
		return true, nil
	}
	again, err = needed(partBlob(round, shard), kindPart, s.plan.whom(round, shard))
	return !again && err == nil, err
}

// partTags are the sections of states and parts.
var partTags = []string{"REAL", "IDX0", "NUMS", "DENS", "LOSS", "HELD", "UFAC", "FILE"}

func (s *Sharded) putState(round, shard int, real []section.Part, index []uint64) error {
	return s.store.Put(stateBlob(round, shard), s.plan.whom(round, shard).encode(kindState, section.Parts("REAL", real), section.Words("IDX0", index...)))
}

// Reduce sums the parts of all shards in a round in their fixed order, makes the next V, and returns the
// round that comes next; that is the same round where the fit is over. Done again it writes the same bytes. Where the next
// round is there already it does nothing else.
//
// Errors: a [*ShardError] for the first part that is missing or damaged; those of the store, of ctx, and of damaged
// blobs, with their names.
func (s *Sharded) Reduce(ctx context.Context, round int) (Round, error) {
	if next, err := s.readRound(round + 1); err == nil {
		if _, late := s.readRound(round + 2); late == nil { // V of the next is not needed any more
			return s.tell(next), nil
		}
		if _, err = s.readV(round + 1); err == nil || !isDamaged(err) {
			return s.tell(next), err
		}
	} else if !isDamaged(err) {
		return Round{}, err
	}
	r, err := s.readRound(round)
	if err != nil {
		if isDamaged(err) {
			now, late := s.current()
			if late != nil {
				return Round{}, late
			}
			if now.phase == phaseOver && round > now.number {
				return s.tell(now), nil
			}
		}
		return Round{}, err
	}
	if r.phase == phaseOver {
		return s.tell(r), nil
	}
	v, err := s.readV(round)
	if err != nil {
		return Round{}, err
	}
	workers := pool.New(0, s.plan.n)
	defer workers.Close()
	workers.Bind(ctx)
	var main []section.Part
	if s.plan.kind == kindNMF {
		v, main, err = s.reduceNMF(r, v, workers)
	} else {
		v, main, err = s.reduceQMF(r, v, workers)
	}
	if err == nil {
		err = workers.Err()
	}
	if err != nil {
		return Round{}, err
	}
	r.number++
	if err := s.putRound(r, v, main); err != nil {
		return Round{}, err
	}
	return s.tell(r), s.forget(round - 1)
}

// forget removes what the steps of a round have read and written, but not the round itself.
func (s *Sharded) forget(round int) error {
	store, can := s.store.(Remover)
	if !can || round < 0 {
		return nil
	}
	names := []string{vBlob(round), mainBlob(round)}
	for shard := range s.plan.shards {
		names = append(names, stateBlob(round, shard), partBlob(round, shard))
	}
	for _, name := range names {
		if err := store.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// readPart reads what a shard adds in a round.
func (s *Sharded) readPart(round, shard int, tags ...string) (*file, error) {
	f, err := s.read(partBlob(round, shard), kindPart, s.plan.whom(round, shard), tags...)
	if err != nil && isDamaged(err) {
		err = &ShardError{round, shard, err}
	}
	return f, err
}

// damagedPart is the error of a part that was read whole, but of which a number is wrong.
func damagedPart(round, shard int, err error) error {
	if err == nil {
		return nil
	}
	return &ShardError{round, shard, &blobError{partBlob(round, shard), err}}
}

// Finish returns the model, [*NMF] or [*QMF], of a fit that is over. Under [WithStrict] a transport that has not
// converged is a [*ConvergenceError], with the model. A fit that is not over is an [*OptionError].
func (s *Sharded) Finish(ctx context.Context) (Model, error) {
	r, err := s.current()
	if err != nil {
		return nil, err
	}
	if r.phase != phaseOver {
		return nil, &OptionError{Option: "Finish", Value: "round " + itoa(r.number), Bound: "the fit is not over"}
	}
	v, err := s.readV(r.number)
	if err != nil {
		return nil, err
	}
	var m fitted
	if s.plan.kind == kindNMF {
		m, err = s.finishNMF(r, v)
	} else {
		m, err = s.finishQMF(r, v)
	}
	if err != nil {
		return nil, err
	}
	m.outward(&s.plan.units)
	if f := m.common(); s.plan.strict && len(f.Warnings) > 0 {
		err = f.Warnings[0]
	}
	return m, err
}

// phase is what the steps of a round do.
type phase uint64

const (
	phaseStart phase = iota // what comes before the first epoch
	phaseVisit              // an epoch
	phaseJudge              // the losses after an epoch, where they are not those of its visits
	phaseHand               // the model's rows
	phaseOver               // nothing
)

// shardRound is where a fit stands before the steps of a round.
type shardRound struct {
	number int
	phase  phase
	fresh  bool // the states that are read now are the best so far, and to be kept
	steps  int  // of V
	*journal
	numbers []float64 // gauss.Steps
}

// note enters losses into the journal, and sets what comes next: again, where there is another epoch, or else end.
func (r *shardRound) note(l losses, epochs int, again, end phase) {
	better, stop := r.journal.note(l)
	r.fresh = better
	r.phase = again
	if stop || r.done >= epochs {
		r.phase = end
	}
}

func (s *Sharded) putRound(r *shardRound, v Mat, main []section.Part) error {
	of := s.plan.whom(r.number, 0)
	if len(main) > 0 {
		if err := s.store.Put(mainBlob(r.number), of.encode(kindMain, section.Parts("REAL", main))); err != nil {
			return err
		}
	}
	if err := s.store.Put(vBlob(r.number), of.encode(kindV, section.Floats("VFAC", flat(v)))); err != nil {
		return err
	}
	data := of.encode(kindRound,
		section.Words("STAT", uint64(r.phase), bit(r.fresh), uint64(r.steps), uint64(r.done), bit(r.kept), uint64(r.bestEpoch), uint64(r.last), math.Float64bits(r.best), math.Float64bits(r.mark)),
		section.Floats("HIST", r.history), section.Floats("VALI", r.validation), section.Floats("NUMB", r.numbers))
	// What nobody could read would be made again and again.
	f, err := decodeSections(data, kindRound, roundTags)
	if err == nil {
		_, err = f.round(s.plan, r.number)
	}
	if err != nil {
		return &blobError{roundBlob(r.number - 1), err}
	}
	return s.store.Put(roundBlob(r.number), data)
}

var roundTags = []string{"STAT", "HIST", "VALI", "NUMB", "WHOM"}

func (s *Sharded) readRound(round int) (*shardRound, error) {
	if round < 0 {
		return nil, &blobError{roundBlob(round), errMissing}
	}
	f, err := s.read(roundBlob(round), kindRound, s.plan.whom(round, 0), roundTags[:4]...)
	if err != nil {
		return nil, err
	}
	r, err := f.round(s.plan, round)
	if err != nil {
		return nil, &blobError{roundBlob(round), err}
	}
	return r, nil
}

func (f *file) round(p *shardPlan, number int) (*shardRound, error) {
	st, err := f.words("STAT", 9)
	if err != nil {
		return nil, err
	}
	epochs := uint64(p.epochs)
	for i, most := range []uint64{uint64(phaseOver), 1, epochs, epochs, 1, epochs, epochs} {
		if st[i] > most {
			return nil, f.failAt("STAT", i, "a number is out of range")
		}
	}
	r := &shardRound{number: number, phase: phase(st[0]), fresh: st[1] == 1, steps: int(st[2]), journal: newJournal(&p.settings, p.holds)}
	r.done, r.kept, r.bestEpoch, r.last, r.best, r.mark = int(st[3]), st[4] == 1, int(st[5]), int(st[6]), math.Float64frombits(st[7]), math.Float64frombits(st[8])
	for i, v := range []float64{r.best, r.mark} {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return nil, f.failAt("STAT", 7+i, "a loss is "+ftoa(v))
		}
	}
	if r.history, err = f.vectorIn("HIST", -1, 0, math.MaxFloat64); err != nil {
		return nil, err
	}
	if r.validation, err = f.vectorIn("VALI", -1, 0, math.MaxFloat64); err != nil {
		return nil, err
	}
	if !p.holds {
		r.validation = nil
	}
	if len(r.history) > r.done+1 || p.holds && len(r.validation) != len(r.history) || r.bestEpoch >= max(len(r.history), 1) || (r.fresh || r.kept) && !p.holds {
		return nil, f.fail("STAT", "the journal is not of so many epochs")
	}
	r.numbers, err = f.vectorIn("NUMB", -1, 0, math.MaxFloat64)
	return r, err
}

func (s *Sharded) readV(round int) (Mat, error) {
	f, err := s.read(vBlob(round), kindV, s.plan.whom(round, 0), "VFAC")
	if err != nil {
		return Mat{}, err
	}
	v, err := f.matrixIn("VFAC", s.plan.k, s.plan.n, 0, math.MaxFloat64)
	if err != nil {
		return Mat{}, &blobError{vBlob(round), err}
	}
	return v, nil
}

// readMain fills what only Reduce goes on from.
func (s *Sharded) readMain(round int, parts []section.Part) error {
	if len(parts) == 0 {
		return nil
	}
	f, err := s.read(mainBlob(round), kindMain, s.plan.whom(round, 0), "REAL")
	if err != nil {
		return err
	}
	if err := formatError(f.Fill("REAL", parts)); err != nil {
		return &blobError{mainBlob(round), err}
	}
	return nil
}
