package projection

// This file holds the update under the Frobenius norm, all cells visible:
//
//	V ← V ∘ UᵀY/(UᵀU)V,   then   U ← U ∘ YVᵀ/U(VVᵀ).
//
// sumU is UᵀU, sumV is VVᵀ, k × k both.

import "github.com/quantmf/quantmf/internal/kernel"

// frobenius is the update under the Frobenius norm.
type frobenius struct {
	*updates
	work []frobeniusScratch // of each worker

	rowV, gramV, backwardRow, backwardGram func(worker, c int)
}

// frobeniusScratch is for a row.
type frobeniusScratch struct {
	w    []float64 // np
	g, h []float64 // k: N and D of a row of U, and their gradients
}

func newFrobenius(u *updates) *frobenius {
	a := u.pool.Memory
	p := &frobenius{updates: u, work: make([]frobeniusScratch, u.pool.Workers())}
	for i := range p.work {
		p.work[i] = frobeniusScratch{a.Floats(u.np), a.Floats(u.K), a.Floats(u.K)}
	}
	p.rowV, p.gramV, p.backwardRow, p.backwardGram = p.forwardRowV, p.forwardGramV, p.backwardRowV,
		p.backwardGramU
	return p
}

func (p *frobenius) forwardU(worker, piece int) {
	k, np, t := p.K, p.np, p.step.t
	s, ws := p.states.at(t), &p.work[worker]
	from, to, own := p.rows(piece)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		if p.step.moves {
			old := p.states.at(t - 1).u[i*k : (i+1)*k]
			kernel.Dots(ws.g, s.v, y)
			kernel.Combine(ws.h, old, s.sumV)
			multiply(u, old, ws.g, ws.h)
		}
		if p.step.joins {
			kernel.Accumulate(own.v, u, y)
			kernel.Accumulate(own.below, u, u)
		}
	}
}

func (p *frobenius) backwardU(worker, piece int) {
	k, np, t := p.K, p.np, p.step.t
	s, ws := p.states.at(t), &p.work[worker]
	from, to, own := p.rows(piece)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		ybar, ubar := p.grad.ybar[i*np:(i+1)*np], p.grad.u[i*k:(i+1)*k]
		if t == p.states.updates {
			wbar := p.grad.wbar[i*np : (i+1)*np]
			clear(ybar)
			kernel.Dots(ubar, s.v, wbar)
			kernel.Accumulate(own.v, u, wbar)
		} else {
			kernel.Combine(ws.w, u, p.grad.num)
			add(ybar, ws.w)
			if t == 0 { // the start is a constant
				continue
			}
			kernel.Dots(ws.g, p.grad.num, y)
			kernel.Combine(ws.h, u, p.grad.sums)
			for c := range ubar {
				ubar[c] += ws.g[c] + ws.h[c]
			}
		}
		// U'_i = U_i ∘ g/h with g = VY_i and h = U_i G, G = VVᵀ.
		old := p.states.at(t - 1).u[i*k : (i+1)*k]
		kernel.Combine(ws.h, old, s.sumV)
		multiplyBackU(ubar, ws.g, ws.h, old, u)
		kernel.Combine(ws.w, ws.g, s.v)
		add(ybar, ws.w)
		kernel.Accumulate(own.v, ws.g, y)
		for c, b := range ws.h {
			row := s.sumV[c*k : (c+1)*k]
			sums := own.below[c*k : (c+1)*k]
			for e := range row {
				ubar[e] += float64(b * row[e])
				sums[e] += float64(b * old[e])
			}
		}
	}
}

func (p *frobenius) forwardV() {
	copy(p.states.at(p.step.t).sumU, p.joinBelow(0, p.K*p.K))
	p.pool.Do(p.K, p.rowV)
	p.pool.Do(p.K, p.gramV)
}

// forwardRowV makes row c of V_t+1.
func (p *frobenius) forwardRowV(_, c int) {
	lo, hi := p.row(c)
	s, num := p.states.at(p.step.t), p.joinV(c)
	multiply(p.states.at(p.step.t + 1).v[lo:hi], s.v[lo:hi], num, p.denominator(s, c))
}

// forwardGramV makes row c of VVᵀ of state t+1.
func (p *frobenius) forwardGramV(_, c int) {
	s := p.states.at(p.step.t + 1)
	lo, hi := p.row(c)
	kernel.Dots(s.sumV[c*p.K:(c+1)*p.K], s.v, s.v[lo:hi])
}

// denominator fills row c of den with that of (UᵀU)V.
func (p *frobenius) denominator(s *state, c int) []float64 {
	lo, hi := p.row(c)
	den := p.grad.den[lo:hi]
	kernel.Combine(den, s.sumU[c*p.K:(c+1)*p.K], s.v)
	return den
}

func (p *frobenius) backwardV() {
	symmetrise(p.joinBelow(0, p.K*p.K), p.K)
	p.pool.Do(p.K, p.backwardRow)
	p.pool.Do(p.K, p.backwardGram)
	symmetrise(p.grad.sums, p.K)
}

// backwardRowV takes row c of V̄_t back, to which the gradient at VVᵀ adds.
func (p *frobenius) backwardRowV(_, c int) {
	lo, hi := p.row(c)
	before, s := p.states.at(p.step.t-1), p.states.at(p.step.t)
	vbar, num, den := p.newest(c), p.grad.num[lo:hi], p.denominator(before, c)
	kernel.Combine(num, p.shares[0].below[c*p.K:(c+1)*p.K], s.v)
	add(vbar, num)
	multiplyBack(vbar, num, den, den, before.v[lo:hi], s.v[lo:hi])
}

// backwardGramU makes row c of H̄ = D̄Vᵀ, and adds that of HD̄ to V̄, H = UᵀU symmetric.
func (p *frobenius) backwardGramU(_, c int) {
	k := p.K
	lo, hi := p.row(c)
	before := p.states.at(p.step.t - 1)
	kernel.Dots(p.grad.sums[c*k:(c+1)*k], before.v, p.grad.den[lo:hi])
	for e := range k {
		kernel.Accumulate(p.grad.v[lo:hi], before.sumU[e*k+c:e*k+c+1], p.grad.den[e*p.np:(e+1)*p.np])
	}
}

// symmetrise makes A + Aᵀ of the k × k matrix a.
func symmetrise(a []float64, k int) {
	for i := range k {
		for j := range i + 1 {
			s := a[i*k+j] + a[j*k+i]
			a[i*k+j], a[j*k+i] = s, s
		}
	}
}
