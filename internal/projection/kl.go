package projection

// This file holds the update under the Kullback-Leibler divergence, all cells visible:
//
//	V ← V ∘ UᵀR/Uᵀ1,   then   U ← U ∘ RVᵀ/1Vᵀ,   R = Y/UV.
//
// sumU is Uᵀ1, sumV is V1. Rows go several abreast.

import "github.com/quantmf/quantmf/internal/kernel"

// kl is the update under the Kullback-Leibler divergence.
type kl struct {
	*updates
	work              []klScratch // of each worker
	rowV, backwardRow func(worker, c int)
}

// klScratch is for rows that go abreast.
type klScratch struct {
	w, r []float64 // abreast × np: W, then W̄; R
	g, h []float64 // abreast × k
}

func newKL(u *updates) *kl {
	p := &kl{updates: u, work: make([]klScratch, u.pool.Workers())}
	a := u.pool.Memory
	for i := range p.work {
		p.work[i] = klScratch{a.Floats(abreast, u.np), a.Floats(abreast, u.np), a.Floats(abreast, u.K),
			a.Floats(abreast, u.K)}
	}
	p.rowV, p.backwardRow = p.forwardRowV, p.backwardRowV
	return p
}

func (p *kl) forwardU(worker, piece int) {
	k, np, t := p.K, p.np, p.step.t
	s, ws := p.states.at(t), &p.work[worker]
	from, to, own := p.rows(piece)
	for i := from; i < to; i += abreast {
		rows := min(abreast, to-i)
		y, u := p.y[i*np:(i+rows)*np], s.u[i*k:(i+rows)*k]
		r, g := ws.r[:rows*np], ws.g[:rows*k]
		if p.step.moves {
			old := p.states.at(t - 1).u[i*k : (i+rows)*k]
			kernel.QuotientRows(r, old, s.v, y, np, rows, least)
			kernel.DotsRows(g, s.v, r, rows)
			for at := 0; at < len(u); at += k {
				for c, sum := range s.sumV {
					u[at+c] = old[at+c] * (g[at+c] / max(sum, least))
				}
			}
		}
		if p.step.joins {
			kernel.QuotientRows(r, u, s.v, y, np, rows, least)
			kernel.AccumulateRows(own.v, u, r, rows)
			for at := 0; at < len(u); at += k {
				for c := range own.below {
					own.below[c] += u[at+c]
				}
			}
		}
	}
}

func (p *kl) backwardU(worker, piece int) {
	k, np, t := p.K, p.np, p.step.t
	s, ws := p.states.at(t), &p.work[worker]
	from, to, own := p.rows(piece)
	for i := from; i < to; i += abreast {
		rows := min(abreast, to-i)
		y, u := p.y[i*np:(i+rows)*np], s.u[i*k:(i+rows)*k]
		ybar, ubar := p.grad.ybar[i*np:(i+rows)*np], p.grad.u[i*k:(i+rows)*k]
		w, r, g, h := ws.w[:rows*np], ws.r[:rows*np], ws.g[:rows*k], ws.h[:rows*k]
		if t == p.states.updates {
			wbar := p.grad.wbar[i*np : (i+rows)*np]
			clear(ybar)
			kernel.DotsRows(ubar, s.v, wbar, rows)
			kernel.AccumulateRows(own.v, u, wbar, rows)
		} else {
			kernel.CombineRows(w, u, s.v, rows)
			kernel.CombineRows(r, u, p.grad.num, rows)
			kernel.RatioBack(w, r, ybar, y, least)
			if t == 0 { // the start is a constant
				continue
			}
			kernel.DotsRows(g, p.grad.num, r, rows)
			kernel.DotsRows(h, s.v, w, rows)
			for at := 0; at < len(u); at += k {
				for c, sum := range p.grad.sums {
					ubar[at+c] += g[at+c] + h[at+c] + sum
				}
			}
			kernel.AccumulateRows(own.v, u, w, rows)
		}
		old := p.states.at(t - 1).u[i*k : (i+rows)*k]
		for at := 0; at < len(u); at += k {
			for c, sum := range s.sumV {
				b, before := ubar[at+c], old[at+c]
				over := b / max(sum, least)
				if sum > least {
					own.below[c] -= float64(over * u[at+c])
				}
				g[at+c] = float64(over * before)
				ubar[at+c] = float64(b * quotient(u[at+c], before))
			}
		}
		kernel.CombineRows(w, old, s.v, rows)
		kernel.CombineRows(r, g, s.v, rows)
		kernel.RatioBack(w, r, ybar, y, least)
		kernel.AccumulateRows(own.v, g, r, rows)
		kernel.AccumulateRows(own.v, old, w, rows)
		kernel.DotsRows(h, s.v, w, rows)
		add(ubar, h)
	}
}

func (p *kl) forwardV() {
	copy(p.states.at(p.step.t).sumU, p.joinBelow(0, p.K))
	p.pool.Do(p.K, p.rowV)
}

// forwardRowV makes row c of V_t+1, and its sum.
func (p *kl) forwardRowV(_, c int) {
	lo, hi := p.row(c)
	s, to, num := p.states.at(p.step.t), p.states.at(p.step.t+1), p.joinV(c)
	v, next := s.v[lo:hi], to.v[lo:hi]
	inverse := 1 / max(s.sumU[c], least)
	for j := range next {
		next[j] = v[j] * float64(num[j]*inverse)
	}
	to.sumV[c] = kernel.Sum(next)
}

func (p *kl) backwardV() {
	p.joinBelow(0, p.K)
	p.pool.Do(p.K, p.backwardRow)
}

// backwardRowV takes row c of V̄_t back. D̄_cj = -V̄_cj V_cj / D_c is summed at once, to
// s̄_c, the gradient at (Uᵀ1)_c.
func (p *kl) backwardRowV(_, c int) {
	lo, hi := p.row(c)
	before, s := p.states.at(p.step.t-1), p.states.at(p.step.t)
	vbar, v, next := p.newest(c), before.v[lo:hi], s.v[lo:hi]
	num, den, sum := p.grad.num[lo:hi], p.grad.den[lo:hi], p.shares[0].below[c]
	inverse := 1 / max(before.sumU[c], least)
	for j, b := range vbar {
		b += sum
		num[j] = float64(b*v[j]) * inverse
		den[j] = float64(b * next[j])
		vbar[j] = float64(b * quotient(next[j], v[j]))
	}
	p.grad.sums[c] = 0
	if before.sumU[c] > least {
		p.grad.sums[c] = -kernel.Sum(den) * inverse
	}
}
