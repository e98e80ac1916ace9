// Package shards fits an NMF or a QMF whose rows are split over shards. Every process that takes part works
// on one store of named blobs, and no two of them need to run at the same time:
//
//	PlanNMF or PlanQMF              once: the rows of every shard, the start
//	for round := 0; ; round++ {
//	    Step(ctx, round, shard)     once for every shard, in any order, anywhere, as often as one likes
//	    Reduce(ctx, round)          once all of them are there: sums their parts, makes the next V
//	}                               until Reduce says Over
//	Finish                          the model
//
// The model has the bits of a fit on one machine, for any number of shards. A shard has some runs of the
// rows, with their rows of U and their maps. In a round
//
//	a step of each shard   reads V (k × n), goes over the rows, and writes the state of the shard, which no
//	                       other step reads, and its part: sums for the step of V, and losses
//	a reduce               sums the parts in one fixed tree (internal/pool, nmf.Runs), and makes the next V
//
// Every blob is only ever given the same bytes, so steps and reduces may be made in any order that their
// inputs allow, anywhere, and again. A blob that is missing or damaged is made again or named in an error.
package shards

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// Store keeps named blobs. Names consist of the letters a to z, digits and hyphens. All writers of a
// name write the same bytes, so it does not matter which of two writers comes last.
type Store interface {
	// Get returns the blob of a name; no bytes and no error where there is none.
	Get(name string) ([]byte, error)
	// Put keeps a blob whole or not at all: no Get returns a part of it. It copies data.
	Put(name string, data []byte) error
}

// Remover is a [Store] that can also remove blobs. [Fit.Reduce] then removes the blobs of the round
// before, which no later step reads; in other stores they stay.
type Remover interface {
	Store
	// Remove removes the blob of a name. That there is none is no error.
	Remove(name string) error
}

// Fit is a fit whose rows are split over shards, with all its state in a store. Several goroutines
// may use it at once, where they may use the store.
type Fit struct {
	store Store
	plan  *plan
	of    computation
	kept  kept
}

// computation is what internal/qmf computes, with the models and the errors of the root package.
type computation interface {
	Problem(r *qmf.Shard, workers *pool.Pool) nmf.Problem
	NMF(u, v []float64, j *fit.Journal) (quantmf.Model, error)
	StepQMF(ctx context.Context, step *qmf.ShardStep, r *qmf.Shard, workers *pool.Pool) error
	ReduceQMF(r *qmf.Reduce, workers *pool.Pool) error
}

// Round tells how far a fit over shards has come.
type Round struct {
	Number int     // the number of the round whose steps come next, from 0
	Epoch  int     // epochs done
	Epochs int     // epochs in all, at most
	Loss   float64 // the newest mean divergence of the visible cells that is known; NaN before the first
	Over   bool    // there is nothing left but Finish
}

// StepError names a step that has not been made, or whose blobs are damaged: Step(ctx, Round, Shard)
// makes the blobs again.
type StepError struct {
	Round, Shard int
	Err          error // what is wrong
}

func (e *StepError) Error() string {
	return "quantmf: shard " + strconv.Itoa(e.Shard) + ", round " + strconv.Itoa(e.Round) + ": " +
		e.Err.Error()
}
func (e *StepError) Unwrap() error { return e.Err }

// PlanNMF begins an NMF whose rows are split into the given number of shards, and writes the plan to a store.
// The model has the bits of [quantmf.FitNMF] with these options, except that the default of WithUpdates is
// [quantmf.UpdatesMultiplicative] here, and that no hidden cells end it where cells are missing: WithEpochs
// has a FitNMF make all, too. Only PlanNMF reads x; later steps read its rows from the store.
//
// An epoch of multiplicative updates takes one round. An epoch of [quantmf.UpdatesNewton] takes two, under
// Frobenius without hidden cells one; some epochs take one more.
//
// There can be as many shards as there are runs in which the rows are summed: one run for each 16 rows, at
// most 16 runs, and, where there would be more than 4, at most one run for each 2^18 of the d n k products of
// UV.
//
// Errors are those of FitNMF; a [*quantmf.OptionError] for options that a fit in shards does not take,
// WithRestarts, WithCheckpoint and WithResume, and for a store that has another fit; and errors of the store.
// A second call with the same arguments writes the same bytes.
func PlanNMF(ctx context.Context, store Store, shards int, x quantmf.Rows, rank int,
	opts ...quantmf.FitOption) error {
	return begin(ctx, section.NMF, store, shards, x, rank, opts)
}

// PlanQMF begins a QMF whose rows are split into the given number of shards, all rows being one batch, and
// writes the plan to a store. The model has the bits of [quantmf.FitQMF] with these options and with
// WithBatch of at least as many rows as x has, which is the default here. PlanQMF makes the start, and
// chooses start and shrinkage where they are left to the data. Only PlanQMF reads x; later steps read its
// rows from the store.
//
// There can be as many shards as there are runs in which the rows are summed: one run for each 16 rows, at
// most 64 runs.
//
// Errors are those of [PlanNMF], with those of FitQMF in place of FitNMF's; WithBatch of fewer rows is one
// more.
func PlanQMF(ctx context.Context, store Store, shards int, x quantmf.Rows, rank int,
	opts ...quantmf.FitOption) error {
	return begin(ctx, section.QMF, store, shards, x, rank, opts)
}

// begin writes the plan of a fit of the kind.
func begin(ctx context.Context, kind uint32, store Store, shards int, x quantmf.Rows, rank int,
	opts []quantmf.FitOption) error {
	of, hash, err := quantmf.Split(qmf.Door{}).Plan(kind, x, rank, opts)
	if err != nil {
		return err
	}
	p := &plan{Plan: *of.Of(), Shards: shards, ID: (hash ^ uint64(shards)) * 1099511628211}
	p.setRuns()
	if err := p.checkShards(); err != nil {
		return err
	}
	old, err := readPlan(store)
	if err != nil && !damaged(err) {
		return ofBlobs(err)
	}
	if err == nil && old.ID != p.ID {
		return &quantmf.OptionError{Option: "store", Value: planName, Bound: "it has another fit"}
	}
	first, err := of.Start(ctx)
	if err != nil {
		return err
	}
	p.Plan = *of.Of() // with what the start has chosen
	return ofBlobs((&Fit{store: store, plan: p}).begin(ctx, first))
}

// checkShards reports a number of shards that the rows cannot be split into.
func (p *plan) checkShards() error {
	if most := p.count(); p.Shards < 1 || p.Shards > most {
		return &quantmf.OptionError{Option: "shards", Value: strconv.Itoa(p.Shards),
			Bound: "must be from 1 to " + strconv.Itoa(most) +
				", the number of runs in which the rows are summed"}
	}
	return nil
}

// ofBlobs gives the error of a damaged blob the type that the root package has for it.
func ofBlobs(err error) error {
	var blob *blobError
	var format *section.Error
	if errors.As(err, &blob) && errors.As(blob.Err, &format) {
		blob.Err = (*quantmf.FormatError)(format)
	}
	return err
}

// Open opens the fit that [PlanNMF] or [PlanQMF] has left in a store. Errors are those of the store,
// and a [*quantmf.FormatError] within another where the plan is damaged.
func Open(store Store) (*Fit, error) {
	p, err := readPlan(store)
	if err != nil {
		return nil, ofBlobs(err)
	}
	return &Fit{store: store, plan: p, of: quantmf.Split(qmf.Door{}).Open(&p.Plan)}, nil
}

// Shards returns the number of shards.
func (f *Fit) Shards() int { return f.plan.Shards }

// KeepRows lets Step keep the rows of several shards in memory, up to the given number of bytes, for the
// steps of later rounds by the same Fit; 0 keeps none. Without KeepRows the rows of one shard are kept.
// Rows for which there is no more room are read in every round: since a round goes through all shards, no
// shard's rows are worth more than another's.
func (f *Fit) KeepRows(bytes int64) { f.kept.keep(bytes) }

// Round tells how far the fit has come: it returns the round whose steps are to be made. It reads some
// blobs, not all. Errors: those of the store, and of damaged blobs, with their names.
func (f *Fit) Round() (Round, error) {
	r, err := f.current()
	if err != nil {
		return Round{}, ofBlobs(err)
	}
	return f.tell(r), nil
}

// tell returns a round as callers see it.
func (f *Fit) tell(r *stage) Round {
	of := Round{Number: r.Number, Epoch: r.Done, Epochs: f.plan.Epochs, Loss: math.NaN(),
		Over: r.Phase == phaseOver}
	if n := len(r.History); n > 0 {
		last := []float64{r.History[n-1]}
		f.plan.Losses(f.plan.Loss, last)
		of.Loss = last[0]
	}
	return of
}

// Step makes the step of one shard in a round: it reads the shard's rows and state and the round's V, and
// writes the shard's next state and its part of V's step and of the losses. A second call writes the same
// bytes; it does nothing where they are whole already, or the fit no longer needs them. A damaged state is
// made again before it is read. Step uses GOMAXPROCS workers.
//
// Errors: a [*quantmf.ShapeError] for a shard that does not exist; a [*StepError] where a round before has
// not been reduced; errors of the store, of ctx, and of damaged blobs, with their names.
func (f *Fit) Step(ctx context.Context, round, shard int) error {
	if shard < 0 || shard >= f.Shards() {
		return &quantmf.ShapeError{What: "shard", Got: strconv.Itoa(shard),
			Want: "0 to " + strconv.Itoa(f.Shards()-1)}
	}
	err := f.step(ctx, round, shard)
	if err != nil && damaged(err) { // removed meanwhile
		if _, late := f.readRound(round + 2); late == nil {
			return nil
		}
	}
	return ofBlobs(err)
}

// compute makes what a step of a shard makes from its state and V.
func (f *Fit) compute(ctx context.Context, r *stage, shard int, state *blob, v []float64) (m *made,
	err error) {
	rows, err := f.rowsOf(shard)
	if err != nil {
		return nil, err
	}
	workers := pool.New(0, len(rows.Visible))
	defer workers.Close()
	workers.Bind(ctx)
	if f.plan.Kind == section.NMF {
		m, err = f.stepNMF(r, shard, state, v, f.of.Problem(rows, workers))
	} else {
		m, err = f.stepQMF(ctx, r, state, v, rows, workers)
	}
	return m, cmp.Or(err, workers.Err())
}

// Reduce sums the parts of all shards in a round in their fixed order, makes the next V, and returns the
// round that comes next; where the fit is over it returns the same round. A second call writes the same
// bytes, or nothing where the next round is there already.
//
// Errors: a [*StepError] for the first part that is missing or damaged; errors of the store, of ctx, and
// of damaged blobs, with their names.
func (f *Fit) Reduce(ctx context.Context, round int) (Round, error) {
	r, err := f.reduce(ctx, round)
	if r == nil {
		return Round{}, ofBlobs(err)
	}
	return f.tell(r), ofBlobs(err)
}

// next makes the next V, and what only a reduce goes on from, and turns r into the next round but for its
// number.
func (f *Fit) next(ctx context.Context, r *stage, v []float64) (next []float64, main []section.Part,
	err error) {
	workers := pool.New(0, f.plan.N)
	defer workers.Close()
	workers.Bind(ctx)
	if f.plan.Kind == section.NMF {
		next, main, err = f.reduceNMF(r, v, workers)
	} else {
		next, main, err = f.reduceQMF(r, v, workers)
	}
	return next, main, cmp.Or(err, workers.Err())
}

// Finish returns the model, a [*quantmf.NMF] or [*quantmf.QMF], of a fit that is over. Under WithStrict a
// transport that has not converged is a [*quantmf.ConvergenceError], returned with the model. A fit that is
// not over is a [*quantmf.OptionError].
func (f *Fit) Finish(ctx context.Context) (quantmf.Model, error) {
	r, err := f.current()
	if err != nil {
		return nil, ofBlobs(err)
	}
	if r.Phase != phaseOver {
		return nil, &quantmf.OptionError{Option: "Finish", Value: "round " + strconv.Itoa(r.Number),
			Bound: "the fit is not over"}
	}
	if f.plan.Kind == section.NMF {
		u, v, err := f.finishNMF(r)
		if err != nil {
			return nil, ofBlobs(err)
		}
		return f.of.NMF(u, v, r.Journal)
	}
	m, err := f.finishQMF(r)
	if err == nil && f.plan.Strict && len(m.Warnings) > 0 {
		return m, m.Warnings[0]
	}
	if err != nil {
		return nil, ofBlobs(err)
	}
	return m, nil
}
