package projection

// This file holds a number of updates, unrolled: the way forward through all states, and
// the way back through the ones that are kept and those made anew.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// unrolled is Π_k as a number of multiplicative updates.
type unrolled struct {
	*updates
	update update
	final  Factors // those of the last state

	forth, back func(worker, piece int) // update.forwardU and backwardU, made once
}

func newUnrolled(kind Kind, count, spacing int, size Size, seen Seen, workers *pool.Pool) *unrolled {
	p := new(unrolled)
	switch {
	case seen != nil:
		u := newHidden(kind == Frobenius, seen,
			newUpdates(count, spacing, size, kernel.Pad(size.N), 0, true, workers))
		p.updates, p.update = u.updates, u
	case kind == Frobenius:
		u := newFrobenius(newUpdates(count, spacing, size, size.K, size.K, false, workers))
		p.updates, p.update = u.updates, u
	default:
		u := newKL(newUpdates(count, spacing, size, 1, 1, false, workers))
		p.updates, p.update = u.updates, u
	}
	p.final = Factors{p.states.last.u, p.states.last.v}
	p.forth, p.back = p.update.forwardU, p.update.backwardU
	return p
}

func (p *unrolled) Result() Factors { return p.final }

func (p *unrolled) Forward(y []float64, start Factors) error {
	p.y = y
	s := &p.states
	copy(s.kept[0].u, start.U)
	copy(s.kept[0].v, start.V)
	p.run(0, s.updates)
	p.step = step{t: s.updates, moves: true}
	p.pool.Do(len(p.shares), p.forth)
	s.stretch = (s.updates - 1) / s.spacing
	return p.pool.Err()
}

// run makes the states after from, up to V of to.
func (p *unrolled) run(from, to int) {
	for t := from; t < to; t++ {
		p.step = step{t: t, moves: t > from, joins: true}
		p.pool.Do(len(p.shares), p.forth)
		p.update.forwardV()
	}
}

// provide makes sure that states t and t-1 are there, t > 0.
func (p *unrolled) provide(t int) {
	s := &p.states
	if stretch := (t - 1) / s.spacing; stretch != s.stretch {
		p.run(stretch*s.spacing, min((stretch+1)*s.spacing, s.updates))
		s.stretch = stretch
	}
}

func (p *unrolled) Backward(wbar, ybar []float64) {
	p.grad.wbar, p.grad.ybar = wbar, ybar
	for t := p.states.updates; t >= 0; t-- {
		if t > 0 {
			p.provide(t)
		}
		p.step.t = t
		p.pool.Do(len(p.shares), p.back)
		if t > 0 {
			p.update.backwardV()
		}
	}
	p.grad.wbar, p.grad.ybar = nil, nil
}
