package shards

// This file holds an NMF by multiplicative updates whose rows are split, and the first epochs of one by
// Newton's method (newton.go). Round 0 is the first sweep over the rows, then each round is an epoch: a step
// finishes the update of its rows of U for the V of the round, and sums what the next update of V takes. The
// sums of each run of rows are a piece of nmf.Updates of their own, and are added in the order of the pieces.
// Where an epoch went too far, the round phaseBack makes it again, without steps ahead. The state of a shard
// is its rows of U, of z before the step ahead and, where cells are held out, those at the best epoch.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// beginNMF fills the state of an NMF for the factors of its start, and says which round is the first.
func (p *plan) beginNMF(first *qmf.SplitStart) (phase, []float64) {
	first.State = func(from, to int) ([]section.Part, []uint64) {
		u := first.U[from*p.K : to*p.K]
		none := make([]float64, len(u))
		return p.statesU(u, none, u, none), nil
	}
	main := p.newMain()
	copy(main.seen, first.Seen)
	copy(main.z, first.V)
	first.Main = main.parts()
	if p.warm() == 0 {
		return phaseOpen, first.V
	}
	return phaseStart, nil
}

// warm is the number of multiplicative updates that a fit begins with.
func (p *plan) warm() int {
	if p.newton() {
		return nmf.First(p.Loss, p.Partial, p.Penalties)
	}
	return math.MaxInt
}

// statesU is U, the best U, and U at z and, of Newton's method, at the next y in the state of a shard.
func (p *plan) statesU(u, best, z, next []float64) []section.Part {
	parts := []section.Part{section.Positive(u)}
	if p.Holds {
		parts = append(parts, section.Positive(best))
	}
	parts = append(parts, section.Positive(z))
	if p.newton() {
		parts = append(parts, section.Positive(next))
	}
	return parts
}

// factors reads U, z and, where cells are held out, the best U. ahead says that U is at the next y.
func (p *plan) factors(state *blob, d int, ahead bool) (u, best, z []float64, err error) {
	v := func() []float64 { return make([]float64, d*p.K) }
	u, best, z = v(), v(), v()
	next := v()
	_, err = state.restore(p.statesU(u, best, z, next), 0)
	if ahead {
		u = next
	}
	return u, best, z, err
}

// padded copies V, k × n, into rows of np numbers.
func (p *plan) padded(to, v []float64, np int) {
	for c := range p.K {
		copy(to[c*np:], v[c*p.N:(c+1)*p.N])
	}
}

// dense returns the k × n numbers of v, whose rows have np places.
func (p *plan) dense(v []float64, np int) []float64 {
	to := make([]float64, 0, p.K*p.N)
	for c := range p.K {
		to = append(to, v[c*np:c*np+p.N]...)
	}
	return to
}

// runsOf makes m the problem of the runs first to end-1.
func (p *plan) runsOf(m *nmf.Problem, first, end int) {
	m.Of, m.Runs = p.D, make([]int, 0, end-first+1)
	for _, row := range p.runs[first : end+1] {
		m.Runs = append(m.Runs, row-p.runs[first])
	}
}

// stepNMF makes the step of a shard. m is the problem of its rows, but for the runs; its factors are filled
// here.
func (f *Fit) stepNMF(r *stage, shard int, state *blob, v []float64, m nmf.Problem) (*made, error) {
	p, cut := f.plan, f.plan.cut(shard)
	if r.Phase > phaseOver {
		p.runsOf(&m, cut.From, cut.To)
		return f.stepNewton(r, state, v, m, cut.To-cut.From)
	}
	u, best, z, err := p.factors(state, m.D, false)
	if err != nil {
		return nil, err
	}
	c, err := r.course(p)
	if err != nil {
		return nil, err
	}
	if r.Fresh {
		copy(best, u)
	}
	if r.Phase == phaseBack {
		copy(u, z)
	}
	copy(m.U, u)
	p.padded(m.V, v, m.NP)
	p.runsOf(&m, cut.From, cut.To)
	method := nmf.NewUpdates(m)
	if err := method.Sweep(r.Phase == phaseStart, z, c.by); err != nil {
		return nil, err
	}
	var of qmf.ShardPart
	for run := range cut.To - cut.From {
		num, den, losses := method.Sums(run)
		of.Num, of.Den, of.Losses = append(of.Num, num...), append(of.Den, den...),
			append(of.Losses, losses...)
	}
	if p.Penalties.Any() {
		of.U = m.U
	}
	return &made{p.statesU(m.U, best, z, z), nil, of}, nil
}

// reduceNMF sums the parts of a round, judges its factors, and makes the next V unless the fit is over.
func (f *Fit) reduceNMF(r *stage, v []float64, workers *pool.Pool) ([]float64, []section.Part, error) {
	p := f.plan
	m := p.problem(workers)
	if r.Phase > phaseOver {
		return f.reduceNewton(r, v, m)
	}
	np := m.NP
	p.padded(m.V, v, np)
	main := p.newMain()
	if err := f.main(r.Number, main.parts()); err != nil {
		return nil, nil, err
	}
	method := nmf.NewUpdates(m)
	if err := f.sum(r.Number, m.U, func(run int) (num, den, losses []section.Part) {
		a, b, c := method.Sums(run)
		return []section.Part{section.Positive(a)}, []section.Part{section.Positive(b)},
			[]section.Part{section.Positive(c)}
	}); err != nil {
		return nil, nil, err
	}
	c, err := r.course(p)
	if err != nil {
		return nil, nil, err
	}
	l := method.Losses()
	if r.Phase == phaseVisit && c.by > 0 && l.Above(c.last) {
		r.Phase, r.Fresh = phaseBack, false
		c.tau, c.by = 1, 0
		r.Numbers = c.numbers()
		return slices.Clone(main.z), main.parts(), nil
	}
	if r.Phase != phaseStart {
		r.Done++
	}
	r.enter(fit.Losses{Of: r.Done, Visible: l.Visible, Held: l.Held, Penalty: l.Penalty}, p.Epochs,
		phaseVisit, phaseOver)
	if r.Fresh {
		copy(main.best, v)
	}
	switch {
	case r.Phase == phaseOver:
	case r.Done == p.warm():
		r.Phase, r.Beside, r.Numbers = phaseOpen, v, nil
	default:
		z := make([]float64, p.K*np)
		p.padded(z, main.z, np)
		if c.last = l; p.newton() {
			c.tau = 1 // its first epochs make no steps ahead
		}
		c.by = method.StepV(z, &c.tau)
		copy(main.z, p.dense(z, np))
		r.Numbers = c.numbers()
		v = p.dense(m.V, np)
	}
	return v, main.parts(), nil
}

// sum takes the sums of all shards' runs into the parts that of has of each, and their rows of U into u.
func (f *Fit) sum(round int, u []float64, of func(run int) (num, den, losses []section.Part)) error {
	p := f.plan
	for shard := range p.Shards {
		b, err := f.part(round, shard)
		if err != nil {
			return err
		}
		var num, den, losses, us []section.Part
		cut := p.cut(shard)
		for run := cut.From; run < cut.To; run++ {
			n, d, l := of(run)
			num, den, losses = append(num, n...), append(den, d...), append(losses, l...)
		}
		if from, to := cut.Rows(); p.Penalties.Any() {
			us = append(us, section.Positive(u[from*p.K:to*p.K]))
		}
		if err := b.fault(cmp.Or(b.Fill("NUMS", num), b.Fill("DENS", den), b.Fill("LOSS", losses),
			b.Fill("UFAC", us))); err != nil {
			return err
		}
	}
	return nil
}

// finishNMF reads the factors of a fit that is over, U (d × k) and V (k × n).
func (f *Fit) finishNMF(r *stage) (u, v []float64, err error) {
	p := f.plan
	if v, err = f.readV(r.Number); err != nil {
		return nil, nil, err
	}
	if r.Kept {
		main := p.newMain()
		if err := f.main(r.Number, main.parts()); err != nil {
			return nil, nil, err
		}
		v = main.best
	}
	ahead := false
	if p.newton() && len(r.Numbers) > 0 {
		c, err := r.course(p)
		if err != nil {
			return nil, nil, err
		}
		ahead = c.ahead
	}
	u = make([]float64, p.D*p.K)
	for shard := range p.Shards {
		from, to := p.cut(shard).Rows()
		state, err := f.state(r.Number, shard)
		if err != nil {
			if damaged(err) {
				err = &StepError{r.Number - 1, shard, err}
			}
			return nil, nil, err
		}
		last, best, _, err := p.factors(state, to-from, ahead)
		if err != nil {
			return nil, nil, &StepError{r.Number - 1, shard, err}
		}
		if r.Kept && !r.Fresh {
			last = best
		}
		copy(u[from*p.K:], last)
	}
	return u, v, nil
}
