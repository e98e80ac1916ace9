package projection

// This file holds the update where cells are hidden, under either divergence:
//
//	V ← V ∘ Uᵀ(Ω∘R)/Uᵀ(Ω∘S),   then   U ← U ∘ (Ω∘R)Vᵀ/(Ω∘S)Vᵀ,
//
// R = Y/W and S = 1 under Kullback and Leibler, R = Y and S = W under Frobenius. Where visible cells have
// weights Ω holds these. sumU is
// the denominator of V, k × np; a row makes its own of U.

import "github.com/quantmf/quantmf/internal/kernel"

// hidden is the update where cells are hidden.
type hidden struct {
	*updates
	frobenius         bool
	seen              Seen
	work              []hiddenScratch // of each worker
	rowV, backwardRow func(worker, c int)
}

// hiddenScratch is for a row.
type hiddenScratch struct {
	omega      []float64 // np: the row of Ω, the padding 0
	w, r, s    []float64 // np: W, then W̄; Ω∘R; Ω∘S
	rbar, sbar []float64 // np: R̄ and S̄
	g, h       []float64 // k: N and D of a row of U, and their gradients
}

func newHidden(frobenius bool, seen Seen, u *updates) *hidden {
	p := &hidden{updates: u, frobenius: frobenius, seen: seen, work: make([]hiddenScratch, u.pool.Workers())}
	f := u.pool.Memory.Floats
	for i := range p.work {
		p.work[i] = hiddenScratch{omega: f(u.np), w: f(u.np), r: f(u.np), s: f(u.np), rbar: f(u.np),
			sbar: f(u.np), g: f(u.K), h: f(u.K)}
	}
	p.rowV, p.backwardRow = p.forwardRowV, p.backwardRowV
	return p
}

// divide fills ws.w with a row of W = UV, u the row of U, and ws.r and ws.s with those of
// Ω∘R and Ω∘S. The row of Ω is in ws.omega.
func (p *hidden) divide(ws *hiddenScratch, u, v, y []float64) {
	kernel.Combine(ws.w, u, v)
	if !p.frobenius {
		kernel.Ratio(ws.r, y, ws.w, least)
		kernel.Multiply(ws.r, ws.r, ws.omega)
		copy(ws.s, ws.omega)
		return
	}
	kernel.Multiply(ws.r, y, ws.omega)
	kernel.Multiply(ws.s, ws.omega, ws.w)
}

// divideBack takes R̄ and S̄ of a row, in ws.rbar and ws.sbar, back through what divide
// made: it adds to ybar and leaves W̄ in ws.w.
func (p *hidden) divideBack(ws *hiddenScratch, ybar []float64) {
	for j, o := range ws.omega {
		switch {
		case o == 0:
			ws.w[j] = 0
		case p.frobenius:
			ybar[j] += float64(o * ws.rbar[j])
			ws.w[j] = float64(o * ws.sbar[j])
		default:
			w := ws.w[j]
			over := ws.rbar[j] / max(w, least)
			ybar[j] += float64(o * over)
			ws.w[j] = 0
			if w > least {
				ws.w[j] = -float64(over * ws.r[j])
			}
		}
	}
}

func (p *hidden) forwardU(worker, piece int) {
	k, np, t := p.K, p.np, p.step.t
	s, ws := p.states.at(t), &p.work[worker]
	from, to, own := p.rows(piece)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		p.seen(ws.omega[:p.N], i)
		if p.step.moves {
			old := p.states.at(t - 1).u[i*k : (i+1)*k]
			p.divide(ws, old, s.v, y)
			kernel.Dots(ws.g, s.v, ws.r)
			kernel.Dots(ws.h, s.v, ws.s)
			multiply(u, old, ws.g, ws.h)
		}
		if p.step.joins {
			p.divide(ws, u, s.v, y)
			kernel.Accumulate(own.v, u, ws.r)
			kernel.Accumulate(own.below, u, ws.s)
		}
	}
}

func (p *hidden) backwardU(worker, piece int) {
	k, np, t := p.K, p.np, p.step.t
	s, ws := p.states.at(t), &p.work[worker]
	from, to, own := p.rows(piece)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		ybar, ubar := p.grad.ybar[i*np:(i+1)*np], p.grad.u[i*k:(i+1)*k]
		p.seen(ws.omega[:p.N], i)
		if t == p.states.updates {
			wbar := p.grad.wbar[i*np : (i+1)*np]
			clear(ybar)
			kernel.Dots(ubar, s.v, wbar)
			kernel.Accumulate(own.v, u, wbar)
		} else {
			p.divide(ws, u, s.v, y)
			kernel.Dots(ws.g, p.grad.num, ws.r)
			kernel.Dots(ws.h, p.grad.den, ws.s)
			add(ubar, ws.g)
			add(ubar, ws.h)
			kernel.Combine(ws.rbar, u, p.grad.num)
			kernel.Combine(ws.sbar, u, p.grad.den)
			p.divideBack(ws, ybar)
			if t == 0 { // the start is a constant
				continue
			}
			kernel.Dots(ws.h, s.v, ws.w)
			add(ubar, ws.h)
			kernel.Accumulate(own.v, u, ws.w)
		}
		old := p.states.at(t - 1).u[i*k : (i+1)*k]
		p.divide(ws, old, s.v, y)
		kernel.Dots(ws.h, s.v, ws.s)
		multiplyBackU(ubar, ws.g, ws.h, old, u)
		kernel.Accumulate(own.v, ws.g, ws.r)
		kernel.Accumulate(own.v, ws.h, ws.s)
		kernel.Combine(ws.rbar, ws.g, s.v)
		kernel.Combine(ws.sbar, ws.h, s.v)
		p.divideBack(ws, ybar)
		kernel.Accumulate(own.v, old, ws.w)
		kernel.Dots(ws.h, s.v, ws.w)
		add(ubar, ws.h)
	}
}

func (p *hidden) forwardV() { p.pool.Do(p.K, p.rowV) }

// forwardRowV makes row c of V_t+1, and of the denominator that state t keeps for it.
func (p *hidden) forwardRowV(_, c int) {
	lo, hi := p.row(c)
	s, num := p.states.at(p.step.t), p.joinV(c)
	copy(s.sumU[lo:hi], p.joinBelow(lo, hi))
	multiply(p.states.at(p.step.t + 1).v[lo:hi], s.v[lo:hi], num, s.sumU[lo:hi])
}

func (p *hidden) backwardV() { p.pool.Do(p.K, p.backwardRow) }

// backwardRowV takes row c of V̄_t back.
func (p *hidden) backwardRowV(_, c int) {
	lo, hi := p.row(c)
	before, s := p.states.at(p.step.t-1), p.states.at(p.step.t)
	multiplyBack(p.newest(c), p.grad.num[lo:hi], p.grad.den[lo:hi], before.sumU[lo:hi], before.v[lo:hi],
		s.v[lo:hi])
}
