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
// What an epoch says of the loss may be that of a state before its last steps, because
// an epoch meets it on its way and needs no further pass then. So losses say after
// which epoch the state stood that they are of ([losses.of]), and the journal puts
// them there.
//
// # Stops
//
// A fit looks at its context before every piece of work that workers share
// (pool.Bind), some rows or a chunk of them, and between the columns of a
// decomposition: on 6000 × 300 at rank 10 there is a look every millisecond or two.
// What it began for an epoch that is not done is dropped or kept row by row; the model
// is then made of what is there, at the cost of Reconstruct and one solve a row.

import (
	"context"

	"github.com/quantmf/quantmf/internal/pool"
)

// algorithm is a fit under way, of one seed.
type algorithm interface {
	// begin makes the start, and returns its losses: those after epoch 0.
	begin() (losses, error)
	// epoch makes an epoch, those before it counted by e, and returns the newest losses
	// that it knows of. It returns an error where it was stopped, and is not counted then.
	epoch(e int) (losses, error)
	// keep copies the state that the losses last returned are of, as the best so far on
	// held-out cells.
	keep()
	// model hands the fit over, at the state that was kept, where there is one, and
	// closes the journal: its entry of the model is exact.
	model(j *journal) (fitted, error)
	// snapshot is what the rest of the fit depends on, beside the journal; resume fills it from
	// a checkpoint, of which the numbers have been read into the parts.
	snapshot() snapshot
	resume(f *file, s *saved) error
}

// snapshot is an algorithm's part of a checkpoint.
type snapshot struct {
	real   []part
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
	of            int // the epoch after which the state stood, 0: the start
	visible, held float64
	penalty       float64 // what the penalty adds, where it is judged
}

// journal is the losses of a fit after each epoch, and which of them is the best.
type journal struct {
	history, validation []float64 // of visible and of held-out cells, the latter nil without
	done                int       // epochs made
	kept                bool      // a state was kept
	watch
	holds bool // cells are held out
}

func newJournal(c *settings, holds bool) *journal {
	j := &journal{watch: watch{patience: c.patience}, holds: holds, history: make([]float64, 0, min(c.epochs, 1000)+2)}
	if holds {
		j.validation = make([]float64, 0, min(c.epochs, 1000)+2)
	}
	return j
}

// note takes losses that are new, and tells whether their state is to be kept and
// whether patience has run out.
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

// exact replaces the loss of the model by what it is exactly: the entry of the best
// state on held-out cells, else the last, after as many epochs as were made.
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

// run makes epochs until there are so many, patience has run out or something stops it;
// after each it calls after, which may be nil.
func (j *journal) run(a algorithm, epochs int, way *course, after func(last bool) error) error {
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
		err = way.epoch(j.done, epochs, j.history[len(j.history)-1])
		if err == nil && after != nil {
			err = after(stop || j.done == epochs)
		}
		if err != nil {
			return stoppedAt(j.done, err)
		}
	}
	return nil
}

// start makes the start of an algorithm, and takes its losses.
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

// task is what is fitted: the options and the data, checked.
type task struct {
	*config
	kind  uint32
	x     Mat // the caller's
	rank  int
	cells *cells
	pool  *pool.Pool
}

// open checks options and data of a fit.
func open[O FitOption](kind uint32, t target, c *config, x Mat, rank int, opts []O) (*task, error) {
	if err := parse(t, c, opts); err != nil {
		return nil, err
	}
	visible, err := checkFit(x, rank, c)
	if err != nil {
		return nil, err
	}
	return &task{config: c, kind: kind, x: x, rank: rank, cells: visible}, nil
}

// drive fits from every seed that is asked for and returns the best model. fresh makes an
// algorithm with its course; none is an empty model, to read one into.
func (t *task) drive(ctx context.Context, pieces int, none fitted, fresh func(seed uint64, way course) algorithm) (best fitted, err error) {
	t.pool = pool.New(t.workers, pieces)
	defer t.pool.Close()
	t.pool.Bind(ctx)
	past, err := t.reopen()
	if err != nil {
		return nil, err
	}
	if len(past.best) > 0 {
		if err := past.bestModel(none, t); err != nil {
			return nil, err
		}
		best = none
	}
	for restart := range t.restarts {
		if past.from != nil && restart < past.from.restart {
			continue
		}
		way := newCourse(ctx, t.config, t.x.Rows)
		a, j := fresh(t.seed+uint64(restart), way), newJournal(&t.settings, t.cells.held != nil)
		if past.from != nil && restart == past.from.restart {
			if err := past.resume(a, j); err != nil {
				return nil, err
			}
		} else {
			err = j.start(a)
		}
		if err == nil {
			err = j.run(a, t.epochs, &way, func(last bool) error {
				if t.save == nil || !last && j.done%t.every != 0 {
					return nil
				}
				return t.save(t.checkpoint(a, j, restart, &past))
			})
		}
		if err != nil && (t.discard || best != nil && len(j.history) == 0) {
			break // of a start nothing is wanted, where there is a model
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
				past.best, _ = m.MarshalBinary()
			}
		}
		if err != nil {
			break
		}
	}
	if err != nil && t.discard {
		return nil, err
	}
	best.outward(&t.cells.units)
	if f := best.common(); err == nil && t.strict && len(f.Warnings) > 0 {
		err = f.Warnings[0]
	}
	return best, err
}

// watch follows the loss that a fit is judged by, from epoch to epoch: that of
// the held-out cells where there are any, else that of the visible ones.
type watch struct {
	patience  int // 0: none
	best      float64
	bestEpoch int
	last      int // the epoch of the last fall worth the name
	mark      float64
}

// worthwhile is the relative fall within the patience below which a fit ends.
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

// course is where a fit looks whether to go on, and what it reports to. A fit within
// another, such as a trial of a start, has a part of the other's course: all that it
// tells is a share of the phase that the other is in.
type course struct {
	ctx      context.Context
	tell     func(Progress) error // nil: nobody listens
	now      Progress
	from, to float64 // the share of the phase that this course goes through
	part     bool    // the phase is the other's
	discard  bool    // nobody wants the model of a fit that was stopped
}

func newCourse(ctx context.Context, c *config, rows int) course {
	return course{ctx: ctx, tell: c.progress, now: Progress{Epochs: c.epochs, Rows: rows}, to: 1, discard: c.discard}
}

// enter begins a phase, unless this course is within one, and reports that.
func (c *course) enter(p Phase) error {
	if !c.part {
		c.now.Phase = p
	}
	return c.reach(0)
}

// reach reports a share of the phase, of this course's part of it, and returns why the
// fit must stop, if it must.
func (c *course) reach(done float64) error {
	if err := c.ctx.Err(); err != nil || c.tell == nil {
		return err
	}
	p := c.now
	p.Done = c.from + float64((c.to-c.from)*done)
	return c.tell(p)
}

// epoch reports an epoch done. That the context has ended is for the next one to see:
// there may be none.
func (c *course) epoch(epoch, of int, loss float64) error {
	switch {
	case c.tell == nil:
		return nil
	case c.part:
		return c.reach(float64(epoch) / float64(of))
	}
	p := c.now
	p.Phase, p.Done, p.Epoch, p.Loss = PhaseEpochs, float64(epoch)/float64(of), epoch, loss
	return c.tell(p)
}

// rows calls f for every row of d, some dozen milliseconds' worth of them between two
// reports.
func (c *course) rows(p *pool.Pool, d int, f func(worker, i int)) error {
	const some = 256
	for from := 0; from < d; from += some {
		to := min(from+some, d)
		p.Do(to-from, func(worker, i int) { f(worker, from+i) })
		if err := p.Err(); err != nil {
			return err
		}
		if err := c.reach(float64(to) / float64(d)); err != nil {
			return err
		}
	}
	return nil
}

// finish lets workers go on after the context has ended, for the model of a fit that was
// stopped, where one is wanted; what it returns ends that.
func (c *course) finish(p *pool.Pool) (done func()) {
	if c.discard {
		return func() {}
	}
	p.Bind(nil)
	return func() { p.Bind(c.ctx) }
}

// within returns the course of a fit within this one's phase, which it takes from one
// share of it to another.
func (c *course) within(from, to float64) course {
	w := *c
	w.from, w.to, w.part = c.from+float64((c.to-c.from)*from), c.from+float64((c.to-c.from)*to), true
	return w
}

// stopped wraps what ended a fit early.
type stopped struct {
	epoch int
	err   error
}

func (s *stopped) Error() string {
	return "quantmf: stopped after epoch " + itoa(s.epoch) + ": " + s.err.Error()
}
func (s *stopped) Unwrap() error { return s.err }

// stoppedAt says after how many epochs of a fit it was stopped. What a fit within it
// said of its own epochs does not count.
func stoppedAt(epoch int, err error) error {
	if s, ok := err.(*stopped); ok {
		err = s.err
	}
	return &stopped{epoch, err}
}

// lagging tells whether all rows are one batch and nothing else asks for the losses
// after an epoch: then they are those that the next one starts from.
func (c *settings) lagging(d int) bool { return c.batchRows >= d && c.validation == 0 }
