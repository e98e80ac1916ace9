package bqmf

// This file counts the memory of a fit: its constructors draw from a dry arena, in the order of the fit.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// Size is that of a fit of a d × n matrix by k components.
type Size struct {
	d, n, np, k int
	knots       int // of the knots of a curve g_i, x and y, but for its tails
}

// SizeOf returns that of a matrix of which such a share is not 0; 0 where it is not known. A curve has at
// most as many knots as distinct values, where some come more than once as many again with mass, and one more
// for each of these: four numbers for each of n values, or for each that is not 0 and for 0 itself.
func SizeOf(d, n, k int, nonzero float64) *Size {
	s := &Size{d, n, kernel.Pad(n), k, 4 * n}
	if nonzero > 0 {
		s.knots = min(s.knots, 4*int(nonzero*float64(n))+6)
	}
	return s
}

// Count draws what a fit takes beside the matrix, its model included, for the workers of a pool that does
// nothing. hidden tells that there are hidden cells, held that the best state on some of them is kept, cells
// that cells have weights.
func (s *Size) Count(p *pool.Pool, hidden, held, cells bool) {
	a, d, n, k := p.Memory, s.d, s.n, s.k
	NewProblem(nil, d, n, n, divergence.KL, p)
	s.scales(p, hidden)
	x := &Data{D: d, N: n, Of: d}
	if cells { // as they are read, those of rows that are not constant, and what Weigh makes
		a.Floats(3, d, s.np)
		x.Cells = a.Floats(n, kernel.Pad(d))
		pool.Make[uint32](a, 2, d, n)
	}
	if n == 1 { // all rows are constant
		s.ignorant(a)
		return
	}
	fitted := p.Part()
	New(x, k, p)
	done := p.Part()
	svd.NewSubspace(d, n, k, nil, p)
	done()
	s.epoch(p, hidden)
	if held {
		s.CountState(a)
	}
	s.posterior(a)
	if !held { // second moments alone are left of a fit whose epochs are over
		fitted()
		a.Floats(d+n, Packed(k))
	}
	s.learn(p, hidden, cells)
	if held { // the means by which the held-out cells are judged
		done := p.Part()
		p.Memory.Floats(d, n)
		p.Memory.Floats(k, k, s.np)
		for range p.Workers() {
			s.reader().room(p.Memory, false)
		}
		done()
	}
}

// CountModel draws what a model takes.
func (s *Size) CountModel(a *pool.Arena) {
	s.curves(a)
	if s.ignorant(a); s.n > 1 {
		s.learnt(a)
	}
}

// ignorant draws a model of which nothing is learnt.
func (s *Size) ignorant(a *pool.Arena) {
	s.posterior(a)
	a.Floats(s.d+s.n, Packed(s.k))
}

// CountState draws what [State.Copy] takes: the numbers that a checkpoint has.
func (s *Size) CountState(a *pool.Arena) {
	a.Floats(s.d, s.k)
	a.Floats(s.k, s.np)
	a.Floats(s.d+s.n, Packed(s.k))
	a.Floats(s.d + s.n + s.k)
}

// scales draws the scales, and the lists of what is hidden or observed, whichever is less.
func (s *Size) scales(p *pool.Pool, hidden bool) {
	a := p.Memory
	s.curves(a)
	pool.Make[int](a, s.d)
	pool.Make[List](a, s.d+s.n)
	if hidden {
		pool.Make[uint32](a, s.d, s.n)
	}
	for range p.Workers() {
		newScaler(a, s.n)
	}
}

// curves draws the knots of the curves g_i: the values of the row, and its tails.
func (s *Size) curves(a *pool.Arena) { a.Floats(s.d, s.knots+4*len(tailAt)) }

// epoch draws what an epoch makes.
func (s *Size) epoch(p *pool.Pool, hidden bool) {
	a, k := p.Memory, s.k
	a.Floats(s.d + s.n + 2*Packed(k)) // weights
	pool.Make[uint32](a, s.d+s.n)
	if hidden { // panels
		for range p.Workers() {
			a.Floats(max(panelCache, panelWidth*max(s.d, s.n)))
		}
	}
	defer p.Part()() // a change of coordinates
	a = p.Memory
	a.Floats(k, s.np)
	a.Floats(16, k, k)
	for range p.Workers() {
		a.Floats(3, k, kernel.Pad(k))
	}
}

// posterior draws a posterior but for its second moments, and the fields that are filled from it.
func (s *Size) posterior(a *pool.Arena) {
	pool.Make[Curve](a, s.d)
	a.Floats(2, s.d, s.k)
	a.Floats(2, s.k, s.np)
	a.Floats(4, s.d+s.n)
}

// learnt draws what Learn leaves in a model. Every row has both corrections.
func (s *Size) learnt(a *pool.Arena) {
	alike := newAlike(a, s.d, s.n, s.k)
	a.Floats(s.d, alike.compared())
	a.Floats(s.d) // Together
	a.Floats(s.d, 2*min(s.n, fewBlocks))
	pool.Make[StageRow](a, s.d)
	pool.Make[[]float64](a, s.d)
	pool.Make[uint64](a, s.d, (s.n+63)/64)
	if !s.staged() {
		return
	}
	a.Floats(s.d, s.np)
	pool.Make[int32](a, s.d, min(stageMost, s.d))
	a.Floats(s.d, min(stageMost, s.d))
	q := &Problem{n: s.n}
	if refs := len(q.newStager(pool.Idle(1, 1), nil, s.d, s.k).refs); refs > 0 {
		pool.Make[[]float64](a, s.d)
		a.Floats(s.d, 2*refs+s.d)
	}
}

// staged tells whether rows may have a second stage.
func (s *Size) staged() bool { return s.n >= stageLeast && s.d >= 2 }

// fewBlocks is about how many blocks the isotonic regression of a long row has.
const fewBlocks = 32

// learn draws what Learn takes: first to leave cells out, then for the second stage and the maps.
func (s *Size) learn(p *pool.Pool, hidden, cells bool) {
	s.learnt(p.Memory)
	defer p.Part()()
	q, a := &Problem{d: s.d, n: s.n}, p.Memory
	a.Floats(s.d)
	if cells {
		a.Floats(s.d, s.np)
	}
	if !s.staged() { // the means, in the room of which a stage is made
		a.Floats(s.d, s.np)
	}
	a.Floats(s.k, s.k, s.np) // the planes of readers
	done := p.Part()
	a = p.Memory
	alike := newAlike(pool.DryArena(), s.d, s.n, s.k)
	alike.makeLearning(a)
	for range p.Workers() {
		s.reader().room(a, true)
		newAlikeRoom(a, alike, s.np)
		newLeaver(a, q, nil, nil, nil)
	}
	done()
	a = p.Memory
	st := q.newStager(p, nil, s.d, s.k)
	pool.Make[innerErrors](a, s.d)
	a.Floats(20, s.d) // of each row its losses, its sums and its mean
	if hidden {       // the rehearsals, and for each worker a U and the room of a rehearser
		new(rehearsal).makeRoom(a, s.d, min(rehearsals, s.n))
		done := p.Part()
		newAwayRoom(p.Memory, s.k, s.d, 0)
		for range p.Workers() {
			p.Memory.Floats(s.d, s.k+2)
			p.Memory.Floats(rehearsedAtOne+2*s.k, kernel.Pad(s.k))
		}
		done()
	}
	for range p.Workers() {
		s.reader().room(a, false)
		newLeaver(a, q, nil, nil, nil)
		st.newRoom(a)
		newRowLearner(a, q, nil, nil)
		a.Floats(8, s.n) // the scales of the row without its ends
	}
}

// reader returns one that has sizes alone.
func (s *Size) reader() *reader { return &reader{p: &Posterior{N: s.n, K: s.k}, np: s.np} }
