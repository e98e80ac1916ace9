package fit

// This file holds the progress of a fit: what it reports, and the ends of its context.

import (
	"context"

	"github.com/quantmf/quantmf/internal/pool"
)

// Phase is the part of a fit that is under way: the Phase of the root package.
type Phase uint8

// The phases, in their order.
const (
	PhaseChoice Phase = iota
	PhaseFactors
	PhaseMaps
	PhaseQMF
	PhaseEpochs
)

// Report is what a fit reports: the Progress of the root package.
type Report struct {
	Phase  Phase
	Done   float64 // the share of the phase that is done
	Epoch  int
	Epochs int
	Rows   int
	Loss   float64
}

// Progress is the context and the progress function of a fit. A fit within another fit, such
// as a trial of a start, has a part of the outer progress: it reports its own as a share of
// the outer fit's phase.
type Progress struct {
	Ctx      context.Context
	tell     func(Report) error // nil: there is no progress function
	now      Report
	unit     float64 // of losses: what they are multiplied by
	from, to float64 // the share of the phase that this part goes through
	part     bool    // the phase is that of an outer fit
	discard  bool    // no model is wanted of a fit that was stopped
}

// Silent is the progress of a fit that reports nothing.
func Silent(ctx context.Context) Progress { return Progress{Ctx: ctx, to: 1} }

// Enter begins a phase and reports it. A part stays in the phase it is in.
func (r *Progress) Enter(p Phase) error {
	if !r.part {
		r.now.Phase = p
	}
	return r.Report(0)
}

// Report reports that a share of this part of the phase is done, and returns the
// error that stops the fit, if any.
func (r *Progress) Report(done float64) error {
	if err := r.Ctx.Err(); err != nil || r.tell == nil {
		return err
	}
	p := r.now
	p.Done = r.from + float64((r.to-r.from)*done)
	return r.tell(p)
}

// ReportEpoch reports that an epoch is done, of so many. It does not check the context: after the last epoch
// the fit is complete.
func (r *Progress) ReportEpoch(epoch, of int, loss float64) error {
	switch {
	case r.tell == nil:
		return nil
	case r.part:
		return r.Report(float64(epoch) / float64(of))
	}
	p := r.now
	p.Phase, p.Done, p.Epoch, p.Loss = PhaseEpochs, float64(epoch)/float64(of), epoch, loss*r.unit
	return r.tell(p)
}

// Rows calls f for each of d rows and reports progress after every 256 rows, which take some
// dozen milliseconds.
func (r *Progress) Rows(p *pool.Pool, d int, f func(worker, i int)) error {
	const some = 256
	for from := 0; from < d; from += some {
		to := min(from+some, d)
		p.Do(to-from, func(worker, i int) { f(worker, from+i) })
		if err := p.Err(); err != nil {
			return err
		}
		if err := r.Report(float64(to) / float64(d)); err != nil {
			return err
		}
	}
	return nil
}

// Finish lets workers go on after the context has ended, to make the model of a stopped fit,
// unless no model is wanted. stopped tells whether the fit was stopped before this call or has
// been since. done binds the workers to the context again.
func (r *Progress) Finish(p *pool.Pool) (stopped func() bool, done func()) {
	before := p.Err() != nil
	stopped = func() bool { return before || r.Ctx.Err() != nil }
	if r.discard {
		return stopped, func() {}
	}
	p.Bind(context.Background())
	return stopped, func() { p.Bind(r.Ctx) }
}

// Within returns the part for a fit within this one, which takes the phase
// from one share to another.
func (r *Progress) Within(from, to float64) Progress {
	w := *r
	w.from, w.to, w.part = r.from+float64((r.to-r.from)*from), r.from+float64((r.to-r.from)*to), true
	return w
}

// ended is a context that has ended.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }
