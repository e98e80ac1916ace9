package quantmf

// This file holds the one driver of fits. NMF, QMF and QMFQ are algorithms that know
// how to begin, to make an epoch, and to hand over a model; the driver restarts them,
// keeps the journal of their losses, ends them by patience, writes and reads their
// checkpoints, tells of their progress, and chooses the best:
//
//	check → for each restart: begin or resume → epoch, journal, progress, checkpoint, ... → model → the best of them
//
// # Losses and states
//
// An epoch may return the losses of the state that its steps started from, because its
// forward pass computes them anyway and no further pass is needed. So losses name the
// epoch after which the fit was in their state ([losses.of]), and the journal enters them
// there.
//
// # Stops
//
// A fit checks its context before every piece of work that workers share (pool.Bind),
// some rows or a chunk of them, and between the columns of a decomposition: on 6000 × 300
// at rank 10 every millisecond or two. Of an interrupted epoch
// whole rows are kept or dropped. The model is then made of the current state, or that of the
// best epoch on held-out cells, at the cost of one solve a row, however the fit was stopped:
// no projection and no losses but those of that solve are made for it.

import (
	"context"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// algorithm is a fit under way, of one seed.
type algorithm interface {
	// begin makes the start, and returns its losses: those after epoch 0.
	begin() (losses, error)
	// epoch makes epoch e, counted from 0, and returns the newest losses that it knows
	// of. An epoch that returns an error was stopped, and is not counted.
	epoch(e int) (losses, error)
	// keep copies the state that the losses last returned belong to, as the best so far
	// on held-out cells.
	keep()
	// model returns the model at the state that was kept, otherwise at the current one,
	// and makes the journal's entry for it exact.
	model(j *journal) (fitted, error)
	// snapshot returns all that the rest of the fit depends on but the journal. resume
	// fills the same from a checkpoint.
	snapshot() snapshot
	resume(f *file, s *saved) error
}

// snapshot is an algorithm's part of a checkpoint.
type snapshot struct {
	real   []section.Part
	index  []uint64
	source uint64 // of random numbers
	steps  int    // of V
}

// fitted is a model as the driver takes it from an algorithm.
type fitted interface {
	Model
	UnmarshalBinary([]byte) error
	objective(penalty float64) float64 // what fits are chosen by
	outward(u *units)                  // brings a model of x' to the units of x
	common() *Factorisation
}

// losses are mean divergences of one state of a fit.
type losses struct {
	of            int // the number of epochs that led to the state, 0: the start
	visible, held float64
	penalty       float64 // what the penalty adds to visible for patience; 0 without patience
}

// journal is the losses of a fit after each epoch, and which of them is the best.
type journal struct {
	history, validation []float64 // of visible and of held-out cells, the latter nil without
	done                int       // epochs made
	kept                bool      // a state was kept
	watch
	holds bool // there are held-out cells
}

func newJournal(c *settings, holds bool) *journal {
	j := &journal{watch: watch{patience: c.patience}, holds: holds, history: make([]float64, 0, min(c.epochs, 1000)+2)}
	if holds {
		j.validation = make([]float64, 0, min(c.epochs, 1000)+2)
	}
	return j
}

// note enters losses, unless the journal has those of their state already, and tells
// whether their state is to be kept and whether patience has run out.
func (j *journal) note(l losses) (better, stop bool) {
	if l.of < len(j.history) {
		return false, false
	}
	j.history = append(j.history, l.visible)
	judged := l.visible + l.penalty
	if j.holds {
		j.validation = append(j.validation, l.held)
		judged = l.held
	}
	better, stop = j.see(l.of, judged)
	better = better && j.holds
	j.kept = j.kept || better
	return better, stop
}

// exact enters the exact losses of the model, for the state that was kept, otherwise for
// the state after the last epoch, and returns the index of the entry.
func (j *journal) exact(visible, held float64) (best int) {
	if j.kept {
		j.history[j.bestEpoch] = visible
		return j.bestEpoch
	}
	if j.holds { // stopped before its first epoch
		j.validation = append(j.validation, held)
	}
	j.history = append(j.history[:min(len(j.history), j.done)], visible)
	return len(j.history) - 1
}

// advance makes epochs until the fit has made as many as given, patience has run out or
// something stops it. After each it calls after, which may be nil.
func (j *journal) advance(a algorithm, epochs int, way *course, after func(last bool) error) error {
	stop := len(j.history) > 0 && j.over(len(j.history)-1)
	for !stop && j.done < epochs {
		l, err := a.epoch(j.done)
		if err != nil {
			return stoppedAt(j.done, err)
		}
		j.done++
		better, over := j.note(l)
		if better {
			a.keep()
		}
		stop = over
		err = way.reportEpoch(j.done, epochs, j.history[len(j.history)-1])
		if err == nil && after != nil {
			err = after(stop || j.done == epochs)
		}
		if err != nil {
			return stoppedAt(j.done, err)
		}
	}
	return nil
}

// start makes the start of an algorithm, and enters its losses.
func (j *journal) start(a algorithm) error {
	l, err := a.begin()
	if err != nil {
		return stoppedAt(0, err)
	}
	if better, _ := j.note(l); better {
		a.keep()
	}
	return nil
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
func open[O FitOption](fileKind uint32, t option.Function, c *config, x Rows, rank int, opts []O) (*task, error) {
	if err := parse(t, c, opts); err != nil {
		return nil, err
	}
	x, err := c.masked(x)
	if err != nil {
		return nil, err
	}
	visible, err := checkFit(x, rank, c)
	if err != nil {
		return nil, err
	}
	return &task{config: c, kind: fileKind, x: x, rank: rank, cells: visible}, nil
}

// drive fits from every seed and returns the best model. fresh makes an algorithm with
// its course; none is an empty model, for reading a model from a checkpoint.
func (t *task) drive(ctx context.Context, pieces int, none fitted, fresh func(seed uint64, way course) algorithm) (best fitted, err error) {
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
		a, j := fresh(t.seed+uint64(restart), way), newJournal(&t.settings, t.cells.held != nil)
		if before.from != nil && restart == before.from.restart {
			if err := t.states.resume(&before, a, j); err != nil {
				return nil, err
			}
		} else {
			err = j.start(a)
		}
		if err == nil {
			err = j.advance(a, t.epochs, &way, func(last bool) error {
				if t.save == nil || !last && j.done%t.every != 0 {
					return nil
				}
				return t.states.save(t, a, j, restart, &before)
			})
		}
		if t.cells.trouble.get() != nil {
			break
		}
		if err != nil && (t.discard || best != nil && len(j.history) == 0) {
			break // there is a model of an earlier restart, or none is wanted
		}
		if err != nil { // the model is made as after the end of the context, whatever stopped the fit
			t.pool.Bind(ended{ctx})
		}
		m, late := a.model(j)
		if err == nil && late != nil {
			if err = stoppedAt(j.done, late); t.discard {
				break
			}
		}
		if best == nil || m.objective(t.penalty) < best.objective(t.penalty) {
			best = m
			if t.save != nil && t.restarts > 1 {
				before.best = t.states.file(m)
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
	best.outward(&t.cells.units)
	if f := best.common(); err == nil && t.strict && len(f.Warnings) > 0 {
		err = f.Warnings[0]
	}
	return best, err
}

// ended is a context that has ended.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// watch follows the loss that a fit is judged by, from epoch to epoch: that of
// the held-out cells where there are any, else that of the visible ones.
type watch struct {
	patience  int // 0: none
	best      float64
	bestEpoch int
	last      int     // the epoch of the last worthwhile fall
	mark      float64 // the loss at that epoch
}

// worthwhile is the least relative fall of the loss that renews the patience.
const worthwhile = 1e-4

// over tells whether patience had run out by an epoch.
func (w *watch) over(epoch int) bool { return w.patience > 0 && epoch-w.last >= w.patience }

// see takes the loss after an epoch and tells whether it is the best so far and
// whether to end.
func (w *watch) see(epoch int, loss float64) (better, stop bool) {
	if epoch == 0 || loss < w.best {
		w.best, w.bestEpoch, better = loss, epoch, true
	}
	if epoch == 0 || loss < w.mark*(1-worthwhile) {
		w.mark, w.last = loss, epoch
	}
	return better, w.over(epoch)
}

// course is the context and the progress function of a fit. A fit within another, such
// as a trial of a start, has a part of the course of the other: it reports its progress
// as a share of the other's phase.
type course struct {
	ctx      context.Context
	tell     func(Progress) error // nil: there is no progress function
	now      Progress
	from, to float64 // the share of the phase that this course goes through
	part     bool    // the phase is that of an outer fit
	discard  bool    // no model is wanted of a fit that was stopped
}

func newCourse(ctx context.Context, c *config, rows int) course {
	return course{ctx: ctx, tell: c.progress, now: Progress{Epochs: c.epochs, Rows: rows}, to: 1, discard: c.discard}
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

// rows calls f for each of d rows and reports after every 256 of them, some dozen
// milliseconds.
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

// finish lets workers go on after the context has ended, to make the model of a fit that
// was stopped, unless none is wanted. stopped tells whether it was, or is by now. done binds
// them to the context again.
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

// lagging tells whether an epoch returns the losses of the state that it started from: all
// rows are one batch, and there is no validation.
func (c *settings) lagging(d int) bool { return c.batchRows >= d && c.validation == 0 }
