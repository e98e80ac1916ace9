// Package shard has fits whose rows are split over shards, as one store of named blobs has them (blobs.go). A
// shard has some runs of the rows, with their rows of U and their maps. In a round
//
//	a step of each shard   reads V (k × n), goes over the rows, and writes the state of the shard, which no one else
//	                       reads, and its part: sums over the runs for the step of V, and losses
//	a reduce               sums the parts in one fixed tree (internal/runs, nmf.Runs), and makes the next V and round
//
// Every blob is only ever given the same bytes, so steps and reduces may be made in any order that their
// inputs allow, anywhere, and again. Here are the rounds, and what is done about blobs that are missing or
// damaged; and all of an NMF (nmf.go, newton.go). What the steps of a QMF compute is the caller's; parts.go
// has its part.
//
// An error is of the store, of what the caller computes, or a [BlobError] of a [section.Error] or [Missing],
// which may stand in a [StepError].
package shard

import (
	"context"
	"errors"
	"slices"

	"github.com/quantmf/quantmf/internal/journal"
	"github.com/quantmf/quantmf/internal/section"
)

// Fit is a fit whose rows are split.
type Fit struct {
	Store Store
	Plan  *Plan
}

// Open reads the plan of a store. most has the largest number of each choice.
func Open(store Store, most Choices) (*Fit, error) {
	p, err := readPlan(store, most)
	return &Fit{store, p}, err
}

// Another tells whether the store has the plan of another fit. A damaged plan does not count.
func (f *Fit) Another(most Choices) (bool, error) {
	old, err := readPlan(f.Store, most)
	if err != nil && damaged(err) {
		return false, nil
	}
	return err == nil && old.ID != f.Plan.ID, err
}

// Start is what a fit begins with.
type Start struct {
	// row i of x', NaN where nothing was observed, in room or where it lies
	Row func(room []float64, i int) []float64
	// of each row of x' a bit for each cell, 1 where it is held out; nil where none is
	Held    []uint64
	Read    func() error                                  // the error of reading rows, if any
	State   func(from, to int) ([]section.Part, []uint64) // the first state of some rows: REAL and IDX0
	V       []float64                                     // k × n
	Main    []section.Part
	Numbers []float64
	Phase   Phase     // of the first round,
	Beside  []float64 // and what its steps read beside V
}

// Begin writes the rows and the first state of every shard, the first round, and last the plan itself.
func (f *Fit) Begin(ctx context.Context, first *Start) error {
	p := f.Plan
	for shard := range p.Shards {
		rows := p.encodeRows(shard, first)
		err := first.Read()
		if err == nil {
			err = f.Store.Put(RowsName(shard), rows)
		}
		if err != nil {
			return err
		}
		real, index := first.State(p.Cut(shard).Rows())
		if err := f.putState(0, shard, real, index); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	r := &Round{Journal: journal.New(p.Patience, p.Epochs, p.Holds), Numbers: first.Numbers,
		Phase: first.Phase, Beside: first.Beside}
	if err := f.putRound(r, first.V, first.Main); err != nil {
		return err
	}
	return f.Store.Put(PlanName, p.encode())
}

// NotReduced is the error of a step of a round that does not exist yet.
var NotReduced = errors.New("the round before is not reduced yet")

// Made is what a step makes: the next state, REAL and IDX0, and the part.
type Made struct {
	Real  []section.Part
	Index []uint64
	Part  []section.Section
}

// Step makes the step of one shard in a round from its state and V. It does nothing if its blobs are whole
// already, or if the fit no longer needs them. It first makes a damaged state again.
func (f *Fit) Step(round, shard int, compute func(r *Round, state *Blob, v []float64) (*Made, error)) error {
	err := f.step(round, shard, compute)
	if err != nil && damaged(err) { // removed meanwhile
		if _, late := f.readRound(round + 2); late == nil {
			return nil
		}
	}
	return err
}

func (f *Fit) step(round, shard int, compute func(r *Round, state *Blob, v []float64) (*Made, error)) error {
	r, err := f.readRound(round)
	if err != nil {
		if !damaged(err) {
			return err
		}
		if now, err := f.Current(); err != nil || now.Phase == PhaseOver && round > now.Number {
			return err
		}
		return &StepError{round, shard, NotReduced}
	}
	if r.Phase == PhaseOver {
		return nil
	}
	if done, err := f.stepped(round, shard); done || err != nil {
		return err
	}
	state, err := f.state(round, shard)
	if err != nil && damaged(err) && round > 0 {
		if err = f.step(round-1, shard, compute); err == nil {
			state, err = f.state(round, shard)
		}
	}
	if err != nil {
		return err
	}
	v, err := f.V(round)
	if err != nil {
		return err
	}
	made, err := compute(r, state, v)
	if err != nil {
		return err
	}
	if err := f.putState(round+1, shard, made.Real, made.Index); err != nil {
		return err
	}
	return f.Store.Put(partName(round, shard), f.Plan.whom(round, shard).encode(kindPart, made.Part...))
}

// stepped tells whether what a step writes is there, as far as it is still needed.
func (f *Fit) stepped(round, shard int) (bool, error) {
	needed := func(name string, kind uint32, of whom) (bool, error) {
		data, err := f.Store.Get(name)
		if err != nil || data == nil {
			return true, err
		}
		file, err := section.Decode(data, kind, kindName, []string{"WHOM"},
			slices.Concat(partTags, stateTags))
		if err != nil {
			return true, nil
		}
		is, _ := of.is(file)
		return !is, nil
	}
	if _, err := f.readRound(round + 2); err == nil {
		return true, nil
	}
	again, err := needed(stateName(round+1, shard), kindState, f.Plan.whom(round+1, shard))
	if again || err != nil {
		return false, err
	}
	if _, err := f.readRound(round + 1); err == nil {
		return true, nil
	}
	again, err = needed(partName(round, shard), kindPart, f.Plan.whom(round, shard))
	return !again && err == nil, err
}

var stateTags = []string{"REAL", "IDX0"}

func (f *Fit) state(round, shard int) (*Blob, error) {
	return f.read(stateName(round, shard), kindState, f.Plan.whom(round, shard), stateTags...)
}

func (f *Fit) putState(round, shard int, real []section.Part, index []uint64) error {
	return f.Store.Put(stateName(round, shard),
		f.Plan.whom(round, shard).encode(kindState, section.Parts("REAL", real),
			section.Words("IDX0", index...)))
}

// Reduce makes the next V, and what only Reduce goes on from, of a round's V and parts, and returns the round
// that comes next; that is the same round where the fit is over. compute changes the round to the next but
// for its number. Where the next round is there already nothing else is done. A store that can forget loses
// the round before.
func (f *Fit) Reduce(round int,
	compute func(r *Round, v []float64) (next []float64, main []section.Part, err error)) (*Round, error) {
	if next, err := f.readRound(round + 1); err == nil {
		// what the next was read from is not needed any more
		if _, late := f.readRound(round + 2); late == nil {
			return next, nil
		}
		if err = f.reduced(round + 1); err == nil || !damaged(err) {
			return next, err
		}
	} else if !damaged(err) {
		return nil, err
	}
	r, err := f.readRound(round)
	if err != nil {
		if damaged(err) {
			now, late := f.Current()
			if late != nil {
				return nil, late
			}
			if now.Phase == PhaseOver && round > now.Number {
				return now, nil
			}
		}
		return nil, err
	}
	if r.Phase == PhaseOver {
		return r, nil
	}
	v, err := f.V(round)
	if err != nil {
		return nil, err
	}
	v, main, err := compute(r, v)
	if err != nil {
		return nil, err
	}
	r.Number++
	if err := f.putRound(r, v, main); err != nil {
		return nil, err
	}
	return r, f.forget(round - 1)
}

// reduced returns an error where V or main before a round, which Reduce writes, is missing or damaged. Some
// fits have no main: it has to be there where the round before has one.
func (f *Fit) reduced(round int) error {
	_, err := f.V(round)
	if err != nil {
		return err
	}
	if _, before := f.main(round - 1); before == nil {
		_, err = f.main(round)
	}
	return err
}

// forget removes what the steps of a round have read and written, but not the round itself.
func (f *Fit) forget(round int) error {
	store, can := f.Store.(remover)
	if !can || round < 0 {
		return nil
	}
	names := []string{vName(round), mainName(round)}
	for shard := range f.Plan.Shards {
		names = append(names, stateName(round, shard), partName(round, shard))
	}
	for _, name := range names {
		if err := store.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
