package fit

// This file holds the driver of fits. A model's fit is an Algorithm that knows how to begin, to make an
// epoch, and to make a model of its state; the driver restarts it, keeps the journal of its losses, ends it
// by patience, writes and reads its checkpoints, reports its progress, and chooses the best model.
//
//	read → for each restart: begin or resume → epochs, each with its journal, progress and
//	checkpoint → model → the best of them
//
// # Losses and states
//
// An epoch may return the losses of the state that its steps started from, because its
// forward pass computes them anyway and no further pass is needed. So Losses name the
// epoch after which the fit was in the state that they belong to, and the journal writes them
// to the entry of that epoch. All of them are losses of x': they are compared before they are brought to the
// unit of x, in which they may have no number.
//
// # Arrays
//
// What the rest of a fit depends on is the arrays that its Walk shows, and a few integers. A checkpoint is
// written from them and read into them, and the best epoch on held-out cells is a copy of some of them.
//
// # Stops
//
// A fit checks its context before every piece of work that workers share (pool.Bind; a piece is
// some rows), and between the columns of a decomposition: on 6000 × 300 at rank 10 every
// millisecond or two. An interrupted epoch leaves every row either wholly stepped or as it was.
// The model of a stopped fit is that of the current state, or of the best epoch on held-out
// cells. It costs one solve a row, whatever stopped the fit: no projection is made for it, and
// no losses are computed but those that the solve gives. A fit whose context had ended before it began, and
// one that could not read a row, have no model.

import (
	"context"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Algorithm is a fit under way, of one seed.
type Algorithm interface {
	// Begin makes the start, and returns its losses: those after epoch 0.
	Begin() (Losses, error)
	// Epoch makes epoch e, counted from 0, and returns the newest losses that it knows
	// of. An epoch that returns an error was stopped, and is not counted.
	Epoch(e int) (Losses, error)
	// Walk calls visit for every array that the rest of the fit depends on, with the range that its numbers
	// have. The model of the best epoch is made of those that have a best: the numbers at the state that the
	// losses last returned belong to, which are the array itself where these losses are of the current state.
	Walk(visit func(array section.Part, best []float64))
	// Index returns the integers that the rest of the fit depends on, beside the number of the epoch.
	Index() []uint64
	// Resume brings the fit to the state of a checkpoint, from which c.Fill reads the arrays and the
	// integers.
	Resume(a *Attempt, c *Checkpoint) error
	// Made returns what a model is made of, at the state that a has kept, otherwise at the current one,
	// and makes the journal's entry for it exact.
	Made(a *Attempt) (any, error)
}

// Model is a model of x', which the Models of a task know.
type Model any

// Models is what the driver asks of the models of a task.
type Models interface {
	// Model returns the model of what a fit has made.
	Model(made any) Model
	// Objective is the loss by which the best of several fits is chosen.
	Objective(m Model) float64
	// File returns a model as a file. A fit that resumed from numbers that no fit has, each of them in its
	// range, may end in a model that no file can hold: this is the error.
	File(m Model) ([]byte, error)
	// Decode reads the best model of the restarts before a checkpoint.
	Decode(file []byte) (Model, error)
	// Finish brings the best model to the units of x.
	Finish(m Model)
}

// Task is what a fit is asked for.
type Task struct {
	Kind   uint32 // of the models (internal/section)
	Loss   divergence.Loss
	Cells  *Cells
	Models Models

	// how far it goes
	Seed             uint64
	Epochs, Patience int
	Restarts         int
	Discard          bool // no model is wanted of a fit that was stopped

	// how it runs
	Workers, Pieces int // Pieces is the largest number of pieces that the fit cuts its work into
	Pool            *pool.Pool
	Tell            func(Report) error

	States
}

// Run is what a fit of one seed runs with, or a part of one.
type Run struct {
	Pool     *pool.Pool
	Seed     uint64 // of everything random
	Progress Progress
}

// Attempt is the fit of one seed: its algorithm, the losses after its epochs, and its best state.
type Attempt struct {
	Fit     Algorithm
	Journal *Journal
	best    []float64 // what Walk shows of the best epoch on held-out cells; nil: none yet
}

// Progress returns the progress of the task's next attempt.
func (t *Task) Progress(ctx context.Context) Progress {
	return Progress{Ctx: ctx, tell: t.Tell, now: Report{Epochs: t.Epochs, Rows: t.Cells.D},
		unit: t.Loss.Unit(t.Cells.Units.All), to: 1, discard: t.Discard}
}

// Open starts the workers of the task, until Pool.Close.
func (t *Task) Open(ctx context.Context) {
	t.Pool = pool.New(t.Workers, t.Pieces)
	t.Cells.Pool = t.Pool
	t.Pool.Bind(ctx)
}

// Drive fits from every seed and returns the best model, of x'. fresh makes an algorithm.
func (t *Task) Drive(ctx context.Context, fresh func(Run) Algorithm) (best Model, err error) {
	if err := ctx.Err(); err != nil {
		return nil, StoppedAt(0, err)
	}
	t.Open(ctx)
	defer t.Pool.Close()
	var from *Checkpoint
	if t.Files != nil {
		if from, err = t.Files.reopen(t); err != nil {
			return nil, err
		}
	}
	first, file := 0, []byte(nil) // the restart to begin with, and the best model of those before
	if from != nil {
		first, file, best = from.restart, from.best, from.model
	}
	for restart := first; restart < t.Restarts; restart++ {
		progress := t.Progress(ctx)
		a := &Attempt{Fit: fresh(Run{t.Pool, t.Seed + uint64(restart), progress}),
			Journal: NewJournal(t.Patience, t.Epochs, t.Cells.Held != nil)}
		if from != nil && restart == first {
			if err := t.Files.resume(a, from); err != nil {
				return nil, err
			}
		} else {
			err = a.Begin()
		}
		if err == nil {
			err = a.Advance(&progress, t.Epochs, func(last bool) error {
				if t.Save == nil || !last && a.Journal.Done%t.Every != 0 {
					return nil
				}
				return t.Files.save(t, a, restart, file)
			})
		}
		if t.Pool.Failed() != nil {
			break
		}
		if err != nil && (t.Discard || best != nil && len(a.Journal.History) == 0) {
			// There is a model of an earlier restart, or none is wanted. This saves work alone: without
			// losses the objective of a model is +Inf, and a fit that discards its model returns none.
			break
		}
		if err != nil { // the model is made as after the end of the context, whatever stopped the fit
			t.Pool.Bind(ended{ctx})
		}
		a.Journal.Cut()
		made, late := a.Fit.Made(a)
		if err == nil && late != nil {
			if err = StoppedAt(a.Journal.Done, late); t.Discard {
				break
			}
		}
		m := t.Models.Model(made)
		if best == nil || t.Models.Objective(m) < t.Models.Objective(best) {
			best = m
			if t.Save != nil && t.Restarts > 1 {
				file, _ = t.Files.file(t, m) // its fields are those of the fit: a file can hold them
			}
		}
		if err != nil {
			break
		}
	}
	if failed := t.Pool.Failed(); failed != nil {
		if err == nil {
			err = StoppedAt(0, failed)
		}
		return nil, err
	}
	if err != nil && t.Discard {
		return nil, err
	}
	t.Models.Finish(best)
	if from != nil {
		if _, wrong := t.Files.file(t, best); wrong != nil {
			return nil, from.Fail("REAL",
				"the fit that goes on from these numbers ends in no model: "+wrong.Error())
		}
	}
	return best, err
}

// Begin makes the start, and enters its losses.
func (a *Attempt) Begin() error {
	l, err := a.Fit.Begin()
	if err != nil {
		return StoppedAt(0, err)
	}
	a.Note(l)
	return nil
}

// Note enters losses, and keeps their state where it is the best. It tells whether no epoch follows.
func (a *Attempt) Note(l Losses) (stop bool) {
	better, stop := a.Journal.Note(l)
	if better {
		a.Keep()
	}
	return stop
}

// Keep copies the state that the losses last returned belong to.
func (a *Attempt) Keep() {
	a.Room()
	at := 0
	a.Fit.Walk(func(_ section.Part, best []float64) { at += copy(a.best[at:], best) })
}

// Room makes room for the best state.
func (a *Attempt) Room() {
	if a.best != nil {
		return
	}
	size := 0
	a.Fit.Walk(func(_ section.Part, best []float64) { size += len(best) })
	a.best = make([]float64, size)
}

// Restore goes back to the state that was kept, and tells whether one was.
func (a *Attempt) Restore() bool {
	if a.best == nil {
		return false
	}
	at := 0
	a.Fit.Walk(func(array section.Part, best []float64) {
		if best != nil {
			at += copy(array.V, a.best[at:])
		}
	})
	return true
}

// Arrays lists what a checkpoint has of the fit: what Walk shows, and then the best state.
func (a *Attempt) Arrays() []section.Part {
	var all, kept []section.Part
	at := 0
	a.Fit.Walk(func(array section.Part, best []float64) {
		all = append(all, array)
		if best != nil && a.best != nil {
			kept = append(kept, section.Within(a.best[at:at+len(best)], array.Low, array.High))
			at += len(best)
		}
	})
	return append(all, kept...)
}

// Advance makes epochs until the given number is made, the fit has come to rest, patience has run out or an
// error stops it. After each epoch it calls after, which may be nil.
func (a *Attempt) Advance(p *Progress, epochs int, after func(last bool) error) error {
	j := a.Journal
	stop := j.Rested || len(j.History) > 0 && j.Over(len(j.History)-1)
	for !stop && j.Done < epochs {
		l, err := a.Fit.Epoch(j.Done)
		if err != nil {
			return StoppedAt(j.Done, err)
		}
		j.Done++
		stop = a.Note(l)
		of := epochs
		if stop {
			of = j.Done
		}
		err = p.ReportEpoch(j.Done, of, j.History[len(j.History)-1])
		if err == nil && after != nil {
			err = after(stop || j.Done == epochs)
		}
		if err != nil {
			return StoppedAt(j.Done, err)
		}
	}
	return nil
}
