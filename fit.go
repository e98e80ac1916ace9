package quantmf

// This file holds the driver of fits. A model's fit is an algorithm that knows how to begin, to make an
// epoch, and to make a model of its state; the driver restarts it, keeps the journal of its losses, ends it
// by patience, writes and reads its checkpoints, reports its progress, and chooses the best model.
//
//	check → for each restart: begin or resume → epochs, each with its journal, progress and
//	checkpoint → model → the best of them
//
// # Losses and states
//
// An epoch may return the losses of the state that its steps started from, because its
// forward pass computes them anyway and no further pass is needed. So fit.Losses name the
// epoch after which the fit was in the state that they belong to, and the journal writes them
// to the entry of that epoch.
//
// # Arrays
//
// What the rest of a fit depends on is the arrays that its walk shows, and a few integers. A checkpoint is
// written from them and read into them, and the best epoch on held-out cells is a copy of some of them.
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
	"github.com/quantmf/quantmf/internal/fit"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// algorithm is a fit under way, of one seed.
type algorithm interface {
	// begin makes the start, and returns its losses: those after epoch 0.
	begin() (fit.Losses, error)
	// epoch makes epoch e, counted from 0, and returns the newest losses that it knows
	// of. An epoch that returns an error was stopped, and is not counted.
	epoch(e int) (fit.Losses, error)
	// walk calls visit for every array that the rest of the fit depends on, with the range that its numbers
	// have. The model of the best epoch is made of those that have a best: the numbers at the state that the
	// losses last returned belong to, which are the array itself where these losses are of the current state.
	walk(visit func(array section.Part, best []float64))
	// index returns the integers that the rest of the fit depends on, beside the number of the epoch.
	index() []uint64
	// resume brings the fit to the state of a checkpoint, from which c.fill reads the arrays and the
	// integers.
	resume(t *attempt, c *checkpoint) error
	// model returns the model at the state that t has kept, otherwise at the current one,
	// and makes the journal's entry for it exact.
	model(t *attempt) (fitted, error)
}

// fitted is a model as the driver takes it from an algorithm.
type fitted interface {
	Model
	UnmarshalBinary([]byte) error
	objective(penalty float64) float64 // the loss by which the best of several fits is chosen
	toUserUnits(u *fit.Units)          // brings a model of x' to the units of x
	common() *Factorisation
}

// task is what a fit is asked for: the options and the data, checked.
type task struct {
	*config
	kind         uint32
	x            Rows // the caller's
	rank         int
	cells        *cells
	pool         *pool.Pool
	fingerprints [2]uint64 // of x and of given factors, where states are saved or resumed
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

// attempt is the fit of one seed: its algorithm, the losses after its epochs, and its best state.
type attempt struct {
	fit     algorithm
	journal *fit.Journal
	best    []float64 // what walk shows of the best epoch on held-out cells; nil: none yet
}

// drive fits from every seed and returns the best model. pieces is the largest number of pieces that
// the fit cuts its work into. fresh makes an algorithm with its progress; decoded is an empty model, into
// which the best model of a checkpoint is read.
func (t *task) drive(ctx context.Context, pieces int, decoded fitted,
	fresh func(seed uint64, progress progress) algorithm) (best fitted, err error) {
	ctx = t.cells.fault.withFault(ctx)
	t.pool = pool.New(t.workers, pieces)
	defer t.pool.Close()
	t.pool.Bind(ctx)
	var from *checkpoint
	if t.checkpoints != nil {
		if from, err = t.checkpoints.reopen(t, decoded); err != nil {
			return nil, err
		}
	}
	first, file := 0, []byte(nil) // the restart to begin with, and the best model of those before
	if from != nil {
		first, file = from.restart, from.best
	}
	if len(file) > 0 {
		best = decoded
	}
	for restart := first; restart < t.restarts; restart++ {
		progress := newProgress(ctx, t.config, t.cells.d)
		a := &attempt{fit: fresh(t.seed+uint64(restart), progress),
			journal: fit.NewJournal(t.patience, t.epochs, t.cells.held != nil)}
		j := a.journal
		if from != nil && restart == first {
			if err := t.checkpoints.resume(a, from); err != nil {
				return nil, err
			}
		} else {
			err = a.begin()
		}
		if err == nil {
			err = a.advance(&progress, t.epochs, func(last bool) error {
				if t.save == nil || !last && j.Done%t.every != 0 {
					return nil
				}
				return t.checkpoints.save(t, a, restart, file)
			})
		}
		if t.cells.fault.get() != nil {
			break
		}
		if err != nil && (t.discard || best != nil && len(j.History) == 0) {
			break // there is a model of an earlier restart, or none is wanted
		}
		if err != nil { // the model is made as after the end of the context, whatever stopped the fit
			t.pool.Bind(ended{ctx})
		}
		m, late := a.fit.model(a)
		if err == nil && late != nil {
			if err = stoppedAt(j.Done, late); t.discard {
				break
			}
		}
		if best == nil || m.objective(t.penalty) < best.objective(t.penalty) {
			best = m
			if t.save != nil && t.restarts > 1 {
				file, _ = t.checkpoints.file(m) // its fields are those of the fit: a file can hold them
			}
		}
		if err != nil {
			break
		}
	}
	if late := t.cells.fault.get(); late != nil && err == nil {
		err = stoppedAt(0, late)
	}
	if err != nil && (t.discard || t.cells.fault.get() != nil) {
		return nil, err
	}
	best.toUserUnits(&t.cells.Units)
	if from != nil {
		if _, wrong := t.checkpoints.file(best); wrong != nil {
			return nil, from.file.fail("REAL",
				"the fit that goes on from these numbers ends in no model: "+wrong.Error())
		}
	}
	if f := best.common(); err == nil && t.strict && len(f.Warnings) > 0 {
		err = f.Warnings[0]
	}
	return best, err
}

// begin makes the start, and enters its losses.
func (t *attempt) begin() error {
	l, err := t.fit.begin()
	if err != nil {
		return stoppedAt(0, err)
	}
	t.note(l)
	return nil
}

// note enters losses, and keeps their state where it is the best. It tells whether no epoch follows.
func (t *attempt) note(l fit.Losses) (stop bool) {
	better, stop := t.journal.Note(l)
	if better {
		t.keep()
	}
	return stop
}

// keep copies the state that the losses last returned belong to.
func (t *attempt) keep() {
	t.room()
	at := 0
	t.fit.walk(func(_ section.Part, best []float64) { at += copy(t.best[at:], best) })
}

// room makes room for the best state.
func (t *attempt) room() {
	if t.best != nil {
		return
	}
	size := 0
	t.fit.walk(func(_ section.Part, best []float64) { size += len(best) })
	t.best = make([]float64, size)
}

// restore goes back to the state that was kept.
func (t *attempt) restore() {
	at := 0
	t.fit.walk(func(array section.Part, best []float64) {
		if best != nil {
			at += copy(array.V, t.best[at:])
		}
	})
}

// arrays lists what a checkpoint has of the fit: what walk shows, and then the best state.
func (t *attempt) arrays() []section.Part {
	var all, kept []section.Part
	at := 0
	t.fit.walk(func(array section.Part, best []float64) {
		all = append(all, array)
		if best != nil && t.best != nil {
			kept = append(kept, section.Within(t.best[at:at+len(best)], array.Low, array.High))
			at += len(best)
		}
	})
	return append(all, kept...)
}

// advance makes epochs until the given number is made, the fit has come to rest, patience has run out or an
// error stops it. After each epoch it calls after, which may be nil.
func (t *attempt) advance(p *progress, epochs int, after func(last bool) error) error {
	j := t.journal
	stop := j.Rested || len(j.History) > 0 && j.Over(len(j.History)-1)
	for !stop && j.Done < epochs {
		l, err := t.fit.epoch(j.Done)
		if err != nil {
			return stoppedAt(j.Done, err)
		}
		j.Done++
		stop = t.note(l)
		of := epochs
		if stop {
			of = j.Done
		}
		err = p.reportEpoch(j.Done, of, j.History[len(j.History)-1])
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

// progress is the context and the progress function of a fit. A fit within another fit, such
// as a trial of a start, has a part of the outer progress: it reports its own as a share of
// the outer fit's phase.
type progress struct {
	ctx      context.Context
	tell     func(Progress) error // nil: there is no progress function
	now      Progress
	from, to float64 // the share of the phase that this part goes through
	part     bool    // the phase is that of an outer fit
	discard  bool    // no model is wanted of a fit that was stopped
}

func newProgress(ctx context.Context, c *config, rows int) progress {
	return progress{ctx: ctx, tell: c.progress, now: Progress{Epochs: c.epochs, Rows: rows}, to: 1,
		discard: c.discard}
}

// enter begins a phase and reports it. A part stays in the phase it is in.
func (r *progress) enter(p Phase) error {
	if !r.part {
		r.now.Phase = p
	}
	return r.report(0)
}

// report reports that a share of this part of the phase is done, and returns the
// error that stops the fit, if any.
func (r *progress) report(done float64) error {
	if err := r.ctx.Err(); err != nil || r.tell == nil {
		return err
	}
	p := r.now
	p.Done = r.from + float64((r.to-r.from)*done)
	return r.tell(p)
}

// reportEpoch reports that an epoch is done, of so many. It does not check the context: after the last epoch
// the fit is complete.
func (r *progress) reportEpoch(epoch, of int, loss float64) error {
	switch {
	case r.tell == nil:
		return nil
	case r.part:
		return r.report(float64(epoch) / float64(of))
	}
	p := r.now
	p.Phase, p.Done, p.Epoch, p.Loss = PhaseEpochs, float64(epoch)/float64(of), epoch, loss
	return r.tell(p)
}

// rows calls f for each of d rows and reports progress after every 256 rows, which take some
// dozen milliseconds.
func (r *progress) rows(p *pool.Pool, d int, f func(worker, i int)) error {
	const some = 256
	for from := 0; from < d; from += some {
		to := min(from+some, d)
		p.Do(to-from, func(worker, i int) { f(worker, from+i) })
		if err := p.Err(); err != nil {
			return err
		}
		if err := r.report(float64(to) / float64(d)); err != nil {
			return err
		}
	}
	return nil
}

// finish lets workers go on after the context has ended, to make the model of a stopped fit,
// unless no model is wanted. stopped tells whether the fit was stopped before this call or has
// been since. done binds the workers to the context again.
func (r *progress) finish(p *pool.Pool) (stopped func() bool, done func()) {
	before := p.Err() != nil
	stopped = func() bool { return before || r.ctx.Err() != nil }
	if r.discard {
		return stopped, func() {}
	}
	p.Bind(context.Background())
	return stopped, func() { p.Bind(r.ctx) }
}

// within returns the part for a fit within this one, which takes the phase
// from one share to another.
func (r *progress) within(from, to float64) progress {
	w := *r
	w.from, w.to, w.part = r.from+float64((r.to-r.from)*from), r.from+float64((r.to-r.from)*to), true
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
