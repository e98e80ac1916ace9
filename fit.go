package quantmf

// This file holds the driver of the fits of NMF, QMF and QMFQ. They are algorithms that know
// how to begin, to make an epoch, and to hand over a model; the driver restarts them,
// keeps the journal of their losses, ends them by patience, writes and reads their
// checkpoints, reports their progress, and chooses the best model. BQMF, which fits two strengths
// in place of restarts, has a driver of its own (bqmf.go).
//
//	check → for each restart: begin or resume → epoch, journal, progress, checkpoint, ... → model → the best of them
//
// # Losses and states
//
// An epoch may return the losses of the state that its steps started from, because its
// forward pass computes them anyway and no further pass is needed. So journal.Losses name the
// epoch after which the fit was in the state that they belong to, and the journal writes them
// to the entry of that epoch.
//
// # Stops
//
// A fit checks its context before every piece of work that workers share (pool.Bind; a piece is
// some rows), and between the columns of a decomposition: on 6000 × 300 at rank 10 every
// millisecond or two. An interrupted epoch leaves every row either wholly stepped or as it was.
// The model of a stopped fit is that of the current state, or of the best epoch on held-out
// cells. It costs one solve a row, whatever stopped the fit: no projection is made for it, and
// no losses are computed but those that the solve gives.

import (
	"context"

	"github.com/quantmf/quantmf/internal/journal"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/unit"
)

// algorithm is a fit under way, of one seed.
type algorithm interface {
	// begin makes the start, and returns its losses: those after epoch 0.
	begin() (journal.Losses, error)
	// epoch makes epoch e, counted from 0, and returns the newest losses that it knows
	// of. An epoch that returns an error was stopped, and is not counted.
	epoch(e int) (journal.Losses, error)
	// keep copies the state that the losses last returned belong to, as the best so far
	// on held-out cells.
	keep()
	// model returns the model at the state that was kept, otherwise at the current one,
	// and makes the journal's entry for it exact.
	model(j *journal.Journal) (fitted, error)
	// snapshot returns all that the rest of the fit depends on but the journal. resume
	// fills the same from a checkpoint.
	snapshot() snapshot
	resume(f *file, s *saved) error
}

// snapshot is an algorithm's part of a checkpoint.
type snapshot struct {
	real   []section.Part
	index  []uint64
	source uint64 // the state of the random numbers
	steps  int    // how many steps V has made
}

// fitted is a model as the driver takes it from an algorithm.
type fitted interface {
	Model
	UnmarshalBinary([]byte) error
	objective(penalty float64) float64 // the loss by which the best of several fits is chosen
	outward(u *unit.Units)             // brings a model of x' to the units of x
	common() *Factorisation
}

// task is what a fit is asked for: the options and the data, checked.
type task struct {
	*config
	kind  uint32
	x     Rows // the caller's
	rank  int
	cells *cells
	pool  *pool.Pool
}

// open checks options and data of a fit.
func open[O FitOption](fileKind uint32, t option.Function, c *config, x Rows, rank int, opts []O) (*task,
	error) {
	if err := parse(t, c, opts); err != nil {
		return nil, err
	}
	visible, err := checkFit(x, rank, c)
	if err != nil {
		return nil, err
	}
	return &task{config: c, kind: fileKind, x: x, rank: rank, cells: visible}, nil
}

// drive fits from every seed and returns the best model. pieces is the largest number of pieces that
// the fit cuts its work into. fresh makes an algorithm with its course; none is an empty model, into
// which the best model of a checkpoint is read.
func (t *task) drive(ctx context.Context, pieces int, none fitted,
	fresh func(seed uint64, way course) algorithm) (best fitted, err error) {
	ctx = t.cells.trouble.over(ctx)
	t.pool = pool.New(t.workers, pieces)
	defer t.pool.Close()
	t.pool.Bind(ctx)
	var before past
	if t.states != nil {
		if before, err = t.states.reopen(t, none); err != nil {
			return nil, err
		}
	}
	if len(before.best) > 0 {
		best = none
	}
	for restart := range t.restarts {
		if before.from != nil && restart < before.from.restart {
			continue
		}
		way := newCourse(ctx, t.config, t.cells.d)
		a, j := fresh(t.seed+uint64(restart), way), journal.New(t.patience, t.epochs, t.cells.held != nil)
		if before.from != nil && restart == before.from.restart {
			if err := t.states.resume(&before, a, j); err != nil {
				return nil, err
			}
		} else {
			err = begin(a, j)
		}
		if err == nil {
			err = way.advance(a, j, t.epochs, func(last bool) error {
				if t.save == nil || !last && j.Done%t.every != 0 {
					return nil
				}
				return t.states.save(t, a, j, restart, &before)
			})
		}
		if t.cells.trouble.get() != nil {
			break
		}
		if err != nil && (t.discard || best != nil && len(j.History) == 0) {
			break // there is a model of an earlier restart, or none is wanted
		}
		if err != nil { // the model is made as after the end of the context, whatever stopped the fit
			t.pool.Bind(ended{ctx})
		}
		m, late := a.model(j)
		if err == nil && late != nil {
			if err = stoppedAt(j.Done, late); t.discard {
				break
			}
		}
		if best == nil || m.objective(t.penalty) < best.objective(t.penalty) {
			best = m
			if t.save != nil && t.restarts > 1 {
				before.best, _ = t.states.file(m) // its fields are those of the fit: a file can hold them
			}
		}
		if err != nil {
			break
		}
	}
	if late := t.cells.trouble.get(); late != nil && err == nil {
		err = stoppedAt(0, late)
	}
	if err != nil && (t.discard || t.cells.trouble.get() != nil) {
		return nil, err
	}
	best.outward(&t.cells.Units)
	if before.from != nil {
		if _, wrong := t.states.file(best); wrong != nil {
			return nil, before.state.fail("REAL",
				"the fit that goes on from these numbers ends in no model: "+wrong.Error())
		}
	}
	if f := best.common(); err == nil && t.strict && len(f.Warnings) > 0 {
		err = f.Warnings[0]
	}
	return best, err
}

// begin makes the start of an algorithm, and enters its losses.
func begin(a algorithm, j *journal.Journal) error {
	l, err := a.begin()
	if err != nil {
		return stoppedAt(0, err)
	}
	if better, _ := j.Note(l); better {
		a.keep()
	}
	return nil
}

// advance makes epochs of an algorithm until it has made the given number, patience has run out or an
// error stops it. After each epoch it calls after, which may be nil.
func (c *course) advance(a algorithm, j *journal.Journal, epochs int, after func(last bool) error) error {
	stop := len(j.History) > 0 && j.Over(len(j.History)-1)
	for !stop && j.Done < epochs {
		l, err := a.epoch(j.Done)
		if err != nil {
			return stoppedAt(j.Done, err)
		}
		j.Done++
		better, over := j.Note(l)
		if better {
			a.keep()
		}
		stop = over
		err = c.reportEpoch(j.Done, epochs, j.History[len(j.History)-1])
		if err == nil && after != nil {
			err = after(stop || j.Done == epochs)
		}
		if err != nil {
			return stoppedAt(j.Done, err)
		}
	}
	return nil
}

// ended is a context that has ended.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// course is the context and the progress function of a fit. A fit within another fit, such
// as a trial of a start, has a part of the outer course: it reports its progress as a share of
// the outer fit's phase.
type course struct {
	ctx      context.Context
	tell     func(Progress) error // nil: there is no progress function
	now      Progress
	from, to float64 // the share of the phase that this course goes through
	part     bool    // the phase is that of an outer fit
	discard  bool    // no model is wanted of a fit that was stopped
}

func newCourse(ctx context.Context, c *config, rows int) course {
	return course{ctx: ctx, tell: c.progress, now: Progress{Epochs: c.epochs, Rows: rows}, to: 1,
		discard: c.discard}
}

// enter begins a phase and reports it. A part of a course stays in the phase it is in.
func (c *course) enter(p Phase) error {
	if !c.part {
		c.now.Phase = p
	}
	return c.report(0)
}

// report reports that a share of this course's part of the phase is done, and returns the
// error that stops the fit, if any.
func (c *course) report(done float64) error {
	if err := c.ctx.Err(); err != nil || c.tell == nil {
		return err
	}
	p := c.now
	p.Done = c.from + float64((c.to-c.from)*done)
	return c.tell(p)
}

// reportEpoch reports that an epoch is done. It does not check the context: after the last epoch
// the fit is complete.
func (c *course) reportEpoch(epoch, of int, loss float64) error {
	switch {
	case c.tell == nil:
		return nil
	case c.part:
		return c.report(float64(epoch) / float64(of))
	}
	p := c.now
	p.Phase, p.Done, p.Epoch, p.Loss = PhaseEpochs, float64(epoch)/float64(of), epoch, loss
	return c.tell(p)
}

// rows calls f for each of d rows and reports progress after every 256 rows, which take some
// dozen milliseconds.
func (c *course) rows(p *pool.Pool, d int, f func(worker, i int)) error {
	const some = 256
	for from := 0; from < d; from += some {
		to := min(from+some, d)
		p.Do(to-from, func(worker, i int) { f(worker, from+i) })
		if err := p.Err(); err != nil {
			return err
		}
		if err := c.report(float64(to) / float64(d)); err != nil {
			return err
		}
	}
	return nil
}

// finish lets workers go on after the context has ended, to make the model of a stopped fit,
// unless no model is wanted. stopped tells whether the fit was stopped before this call or has
// been since. done binds the workers to the context again.
func (c *course) finish(p *pool.Pool) (stopped func() bool, done func()) {
	before := p.Err() != nil
	stopped = func() bool { return before || c.ctx.Err() != nil }
	if c.discard {
		return stopped, func() {}
	}
	p.Bind(nil)
	return stopped, func() { p.Bind(c.ctx) }
}

// within returns the part of the course for a fit within this one, which takes the phase
// from one share to another.
func (c *course) within(from, to float64) course {
	w := *c
	w.from, w.to, w.part = c.from+float64((c.to-c.from)*from), c.from+float64((c.to-c.from)*to), true
	return w
}

// stopped wraps the error that ended a fit early.
type stopped struct {
	epoch int
	err   error
}

func (s *stopped) Error() string {
	return "quantmf: stopped after epoch " + itoa(s.epoch) + ": " + s.err.Error()
}
func (s *stopped) Unwrap() error { return s.err }

// stoppedAt wraps an error with the number of epochs after which it stopped a fit, in place
// of the number that a fit within it has given.
func stoppedAt(epoch int, err error) error {
	if s, ok := err.(*stopped); ok {
		err = s.err
	}
	return &stopped{epoch, err}
}

// lagging tells whether an epoch of a QMF of d rows returns the losses of the state that it started
// from: it does where all rows are one batch and there is no validation.
func (c *settings) lagging(d int) bool { return c.batchRows >= d && c.validation == 0 }
