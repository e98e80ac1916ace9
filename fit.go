package quantmf

// This file holds what every fit shares while it is under way: what it tells of its
// progress, when it looks whether to stop, and how a stop is reported.
//
// # Stops
//
// A fit looks at its context before every piece of work that workers share
// (pool.Until), some rows or a chunk of them, and between the columns of a
// decomposition: on 6000 × 300 at rank 10 there is a look every millisecond or two.
// What it began for an epoch that is not done is dropped or kept row by row; the model
// is then made of what is there, at the cost of Reconstruct and one solve a row.

import (
	"context"

	"github.com/quantmf/quantmf/internal/pool"
)

// Phase says what a fit is at.
type Phase uint8

const (
	// PhaseChoice is the choice of start and shrinkage by short fits of some rows, where
	// they are left to the data. FitNMF has none.
	PhaseChoice Phase = iota
	// PhaseFactors makes the factors that a fit starts from: an NMF of up to 200 updates,
	// or singular vectors.
	PhaseFactors
	// PhaseMaps fits the first maps of all rows to those factors, of FitQMFQ twice: T to
	// the QMF that it starts from, T' at its end. FitNMF has none.
	PhaseMaps
	// PhaseQMF is the epochs of the QMF that a FitQMFQ starts from.
	PhaseQMF
	// PhaseEpochs is the epochs of the fit itself.
	PhaseEpochs
)

var phaseNames = []string{"PhaseChoice", "PhaseFactors", "PhaseMaps", "PhaseQMF", "PhaseEpochs"}

// String returns the name of the constant.
func (p Phase) String() string { return name(phaseNames, int(p)) }

// Progress is what a fit tells while it works. The phases come in the order of the
// constants, and again for every restart; a fit has those that its start needs. Within
// a phase Done rises from 0 to 1. In [PhaseEpochs] a report is made after every epoch,
// before it several in every phase, the first when options and data have been checked.
type Progress struct {
	Phase  Phase
	Done   float64 // the share of the phase that is done, from 0 to 1; Epoch/Epochs in PhaseEpochs
	Epoch  int     // epochs done, 0 before PhaseEpochs
	Epochs int     // epochs in all
	Rows   int     // rows visited in an epoch
	Loss   float64 // the newest entry of History; 0 before PhaseEpochs
}

// WithProgress calls f while a fit works, on the goroutine of the caller: in every
// phase of its start, and after every epoch. Its error stops the fit and comes back
// wrapped, with the model so far. A fit that was stopped before its first epoch, by f
// or by its context, returns the best model of the restarts before; in the first of
// them, what its start had come to: factors that need not fit x, and T_i the mean of
// row i wherever it has not been fitted yet.
func WithProgress(f func(Progress) error) FitOption {
	return fitOption(kProgress, "func", func(c *config) string {
		if f == nil {
			return "must not be nil"
		}
		c.progress = f
		return ""
	})
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
}

func newCourse(ctx context.Context, c *config, rows int) course {
	return course{ctx: ctx, tell: c.progress, now: Progress{Epochs: c.epochs, Rows: rows}, to: 1}
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
