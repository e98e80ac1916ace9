package shards

// This file holds the rounds: what is read and written by a step and by a reduce, and what is made again
// where blobs are missing or damaged.

import (
	"context"
	"errors"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// begin writes the rows and the first state of every shard, the first round, and last the plan itself.
func (f *Fit) begin(ctx context.Context, first *qmf.SplitStart) error {
	p := f.plan
	r := &stage{Journal: fit.NewJournal(p.Patience, p.Epochs, p.Holds), Numbers: first.Numbers}
	if p.Kind == section.NMF {
		r.Phase, r.Beside = p.beginNMF(first)
	} else if p.Holds {
		first.Main = append(first.Main, section.Positive(make([]float64, p.K*p.N)))
	}
	for shard := range p.Shards {
		rows := p.encodeRows(shard, first)
		err := first.Read()
		if err == nil {
			err = f.store.Put(p.whom(kindRows, 0, shard).name(), rows)
		}
		if err != nil {
			return err
		}
		real, index := first.State(p.cut(shard).Rows())
		if err := f.putState(0, shard, real, index); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := f.putRound(r, first.V, first.Main); err != nil {
		return err
	}
	return f.store.Put(planName, p.encode())
}

// ErrNotReduced is the error, in a [*StepError], of a step of a round that does not exist yet.
var ErrNotReduced = errors.New("the round before is not reduced yet")

// made is what a step makes: the next state, REAL and IDX0, and the part.
type made struct {
	real  []section.Part
	index []uint64
	part  qmf.ShardPart
}

// step makes the step of one shard in a round from its state and V. It does nothing if its blobs are whole
// already, or if the fit no longer needs them. It first makes a damaged state again.
func (f *Fit) step(ctx context.Context, round, shard int) error {
	r, err := f.readRound(round)
	if err != nil {
		if !damaged(err) {
			return err
		}
		if now, err := f.current(); err != nil || now.Phase == phaseOver && round > now.Number {
			return err
		}
		return &StepError{round, shard, ErrNotReduced}
	}
	if r.Phase == phaseOver {
		return nil
	}
	if done, err := f.stepped(round, shard); done || err != nil {
		return err
	}
	state, err := f.state(round, shard)
	if err != nil && damaged(err) && round > 0 {
		if err = f.step(ctx, round-1, shard); err == nil {
			state, err = f.state(round, shard)
		}
	}
	if err != nil {
		return err
	}
	v, err := f.readV(round)
	if err != nil {
		return err
	}
	made, err := f.compute(ctx, r, shard, state, v)
	if err != nil {
		return err
	}
	if err := f.putState(round+1, shard, made.real, made.index); err != nil {
		return err
	}
	return f.put(kindPart, round, shard, sections(f.plan.Kind, &made.part)...)
}

// stepped tells whether what a step writes is there, as far as it is still needed.
func (f *Fit) stepped(round, shard int) (bool, error) {
	there := func(_ *blob, err error) (bool, error) {
		if err != nil && damaged(err) {
			return false, nil
		}
		return err == nil, err
	}
	if _, err := f.readRound(round + 2); err == nil {
		return true, nil
	}
	if is, err := there(f.state(round+1, shard)); !is {
		return false, err
	}
	if _, err := f.readRound(round + 1); err == nil {
		return true, nil
	}
	return there(f.part(round, shard))
}

func (f *Fit) state(round, shard int) (*blob, error) {
	return f.read(kindState, round, shard, "REAL", "IDX0")
}

func (f *Fit) putState(round, shard int, real []section.Part, index []uint64) error {
	return f.put(kindState, round, shard, section.Parts("REAL", real), section.Words("IDX0", index...))
}

// reduce makes the next V, and what only a reduce goes on from, of a round's V and parts, and returns the
// round that comes next; that is the same round where the fit is over. Where the next round is there already
// nothing else is done. A store that can forget loses the round before.
func (f *Fit) reduce(ctx context.Context, round int) (*stage, error) {
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
			now, late := f.current()
			if late != nil {
				return nil, late
			}
			if now.Phase == phaseOver && round > now.Number {
				return now, nil
			}
		}
		return nil, err
	}
	if r.Phase == phaseOver {
		return r, nil
	}
	v, err := f.readV(round)
	if err != nil {
		return nil, err
	}
	v, main, err := f.next(ctx, r, v)
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
	_, err := f.readV(round)
	if err != nil {
		return err
	}
	if _, before := f.mainBlob(round - 1); before == nil {
		_, err = f.mainBlob(round)
	}
	return err
}

// forget removes what the steps of a round have read and written, but not the round itself.
func (f *Fit) forget(round int) error {
	store, can := f.store.(Remover)
	if !can || round < 0 {
		return nil
	}
	p := f.plan
	blobs := []whom{p.whom(kindV, round, 0), p.whom(kindMain, round, 0)}
	for shard := range p.Shards {
		blobs = append(blobs, p.whom(kindState, round, shard), p.whom(kindPart, round, shard))
	}
	for _, b := range blobs {
		if err := store.Remove(b.name()); err != nil {
			return err
		}
	}
	return nil
}
