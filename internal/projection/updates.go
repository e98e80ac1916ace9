package projection

// This file holds what updates of all kinds share: the sums over rows, the gradients on the
// way back, and the arithmetic of V' = V ∘ N/D.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// update is one update, forward and back. Its methods work on the update that updates.step names.
type update interface {
	// forwardU takes the rows of a piece through the update to U_t where step.moves, and sums
	// their share of the numerator of V_t+1 where step.joins.
	forwardU(worker, piece int)
	// forwardV makes V_t+1 from the shares of all pieces.
	forwardV()
	// backwardU takes the rows of a piece back through the update to V_t+1, or from the
	// gradient at UV where t is the last state: that completes Ū_t. It goes on through the
	// update to U_t, and takes the rows' share of V̄_t. At t = 0, the start, it stops at Y.
	backwardU(worker, piece int)
	// backwardV adds the shares of all pieces to V̄_t, which completes it, and takes it back
	// through the update to V_t.
	backwardV()
}

// updates is what updates of all kinds share.
type updates struct {
	Size
	np     int // kernel.Pad(n)
	pool   *pool.Pool
	y      []float64 // d × np: Y of the last Forward
	states states
	shares []share // of the pieces
	grad   gradients
	step   step
}

// step says where an update is.
type step struct {
	t     int
	moves bool // forward: U_t is to be made; else it is there
	joins bool // forward: V_t+1 comes next
}

// share is what a piece adds to sums over all rows. Each has partial sums of its own.
type share struct {
	v     []float64 // k × np: forward the numerator of V_t+1, backward V̄_t
	below []float64 // as state.sumU: forward that, backward the gradient at state.sumV
}

// gradients are those on the way back.
type gradients struct {
	wbar, ybar []float64 // d × np: at UV and at Y, the caller's
	u          []float64 // d × k: the part of Ū_t that does not flow through V_t+1
	v          []float64 // k × np: V̄_t, then the part of V̄_t-1 that is no sum over rows
	num        []float64 // k × np: N̄ of the update to V_t
	den        []float64 // k × np: D̄ of it; forward scratch
	sums       []float64 // at state.sumU: s̄, or H̄+H̄ᵀ; empty where cells are hidden
}

// stateSize returns how many numbers a state takes, but for sums over a factor alone.
func (s Size) stateSize(hidden bool) float64 {
	lines := s.D + s.N
	if hidden {
		lines += s.N
	}
	return float64(lines) * float64(s.K)
}

// newUpdates makes the room for updates whose states hold sums of the given widths for each component.
func newUpdates(count, spacing int, size Size, sumU, sumV int, hidden bool, workers *pool.Pool) *updates {
	a, d, k, np := workers.Memory, size.D, size.K, kernel.Pad(size.N)
	p := &updates{Size: size, np: np, pool: workers, shares: make([]share, min(pieces, size.groups()))}
	p.states = newStates(count, spacing, func() state {
		return state{u: a.Floats(d, k), v: a.Floats(k, np), sumU: a.Floats(k, sumU), sumV: a.Floats(k, sumV)}
	})
	for i := range p.shares {
		p.shares[i] = share{a.Floats(k, np), a.Floats(k, sumU)}
	}
	p.grad = gradients{u: a.Floats(d, k), v: a.Floats(k, np), num: a.Floats(k, np), den: a.Floats(k, np)}
	if !hidden {
		p.grad.sums = a.Floats(k, sumU)
	}
	return p
}

// groups returns the number of groups of rows that go abreast.
func (s Size) groups() int { return (s.D + abreast - 1) / abreast }

// rows returns the rows of a piece, whole groups of those that go abreast, and clears its
// share.
func (p *updates) rows(piece int) (from, to int, own *share) {
	own = &p.shares[piece]
	clear(own.v)
	clear(own.below)
	from, to = pool.Cut(p.groups(), len(p.shares), piece)
	return from * abreast, min(to*abreast, p.D), own
}

// row returns the bounds of row c of a k × np matrix.
func (p *updates) row(c int) (lo, hi int) { return c * p.np, (c + 1) * p.np }

// joinV adds row c of all shares up, in order, and returns the sum.
func (p *updates) joinV(c int) []float64 {
	lo, hi := p.row(c)
	sum := p.shares[0].v[lo:hi]
	for i := range p.shares[1:] {
		add(sum, p.shares[i+1].v[lo:hi])
	}
	return sum
}

// joinBelow adds the numbers from lo to hi of below of all shares up, in order, and returns the sums.
func (p *updates) joinBelow(lo, hi int) []float64 {
	sum := p.shares[0].below[lo:hi]
	for i := range p.shares[1:] {
		add(sum, p.shares[i+1].below[lo:hi])
	}
	return sum
}

// newest returns V̄_t, row c, with the shares of all pieces.
func (p *updates) newest(c int) []float64 {
	lo, hi := p.row(c)
	vbar, sum := p.grad.v[lo:hi], p.joinV(c)
	if p.step.t == p.states.updates { // nothing is in vbar yet
		clear(vbar)
	}
	add(vbar, sum)
	return vbar
}

// multiply fills to with v ∘ num/den.
func multiply(to, v, num, den []float64) {
	for j := range to {
		to[j] = v[j] * (num[j] / max(den[j], least))
	}
}

// multiplyBack takes the gradient bar at next = v ∘ N/D, in V, back: N̄ to num, D̄ to dbar,
// and the part of the gradient at v that does not flow through N and D to bar. dbar may be
// den.
func multiplyBack(bar, num, dbar, den, v, next []float64) {
	for j, b := range bar {
		d, over := den[j], 0.0
		if d > least {
			over = -b * next[j] / d
		}
		num[j] = b * v[j] / max(d, least)
		dbar[j] = over
		bar[j] = float64(b * quotient(next[j], v[j]))
	}
}

// multiplyBackU is multiplyBack for a row of U: den holds D and takes D̄.
func multiplyBackU(bar, num, den, u, next []float64) {
	for c, b := range bar {
		d := den[c]
		over := b / max(d, least)
		num[c] = float64(over * u[c])
		den[c] = 0
		if d > least {
			den[c] = -float64(over * next[c])
		}
		bar[c] = float64(b * quotient(next[c], u[c]))
	}
}

// quotient returns the factor a/b of an update, 0 for a zero that stays one.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
