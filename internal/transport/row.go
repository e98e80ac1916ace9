package transport

// This file holds the workspace of one row and its way: what may be called when.
//
//	any ──Load──▶ loaded ──Solve, Stand, Return──▶ solved ──Adjoint──▶ pulled
//	any ──Evaluate──▶ placed
//	any ──Restore──▶ solved
//
// Averages need M, which a row has from placed on; any number of them may be taken, also after an adjoint.
// Adjoints need the sums over M, which a row has from solved on. Grad methods need an adjoint. Methods that
// differentiate for all arguments at once (QuantileAdjoint, SortAdjoint, QuantileForward, SortForward) leave
// the row solved. A method that is called too early panics: the cause is a fault of the package, never of the
// data.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// phase is how far a row has come.
type phase uint8

const (
	empty  phase = iota
	loaded       // samples, weights, targets, ε
	placed       // and M, at the potentials that were given
	solved       // and the sums over M
	pulled       // and λ, N of the cotangent back
)

var phases = [...]string{"empty", "loaded", "placed", "solved", "pulled"}

// Row is the workspace of one row: allocated once by Resize, used for many rows. The zero
// value is ready for Resize.
type Row struct {
	dual
	phase    phase
	of       uint64       // the Solution that M is of; 0: none
	back     Cotangent    // of the last adjoint
	lam, rho []float64    // λ; ρ, and scratch before and after an adjoint
	pairs    []float64    // N, m × mp, symmetric
	levels   []float64    // scratch: values of levels, m
	sorted   []float64    // scratch: S, m
	flow     []float64    // scratch of forward derivatives, m × mp; nil until the first
	gx, zeta []float64    // scratch: a gradient at x̃, or T; sample weights, np
	gathered *dual        // what RatioColumns sums over: the samples, or points of them
	weights  []float64    // and their x
	own      [2][]float64 // the memory of these vectors
}

// NewRow returns a workspace for n samples and m targets with all the memory that it will need, from an
// arena: without [Row.Resize] it never allocates.
func NewRow(a *pool.Arena, n, m int) *Row {
	r := new(Row)
	r.memory = a
	r.Resize(n, m)
	r.form = powers
	r.reserve() // otherwise the first solve does
	if n >= condensedFrom {
		r.makePoints()
	}
	return r
}

// Resize makes room for n samples and m targets, and empties the row.
func (r *Row) Resize(n, m int) {
	np, mp := kernel.Pad(n), kernel.Pad(m)
	if n != r.n {
		free := room(r.memory, &r.own[0], 2*np)
		r.gx, r.zeta = free.take(np, np), free.take(np, np)
	}
	if m != r.m {
		free := room(r.memory, &r.own[1], 4*mp+m*mp)
		clear(free)
		for _, p := range []*[]float64{&r.lam, &r.rho, &r.levels, &r.sorted} {
			*p = free.take(m, mp)
		}
		r.pairs, r.flow = free.take(m*mp, m*mp), nil
	}
	r.dual.resize(n, m)
	r.phase, r.of, r.back = empty, 0, Cotangent{}
}

// need panics where the row has not come as far as p.
func (r *Row) need(p phase) {
	if r.phase < p {
		panic("transport: the row is " + phases[r.phase] + ", not yet " + phases[p])
	}
}

// Load takes a problem of n samples and m targets.
func (r *Row) Load(p Problem) {
	r.load(&p)
	r.forget()
	r.phase, r.of = loaded, 0
}

// Want asks the next Solve for T = M q too, which is left in t, whole blocks of numbers: its last pass makes
// T at less cost than Average would after it. t and q are used until the next Load.
func (r *Row) Want(t, q []float64) {
	r.need(loaded)
	r.want = want{t: t, q: q}
}

// Solve finds the potentials to a relative column error of tol, in at most maxPasses passes. It starts
// from state where that is valid, and leaves the state of this solve in it. state may be nil.
func (r *Row) Solve(tol float64, maxPasses int, state *Warm) Outcome {
	r.need(loaded)
	out := r.solve(tol, maxPasses, state)
	r.phase = solved
	return out
}

// Polish ends a solve whose levels are coupled weakly: see polish.go. a and b are the
// weights as the problem has them.
func (r *Row) Polish(a, b []float64, out Outcome, maxPasses int) Outcome {
	r.need(solved)
	if out.Converged && r.coupling() < weakCoupling {
		out = r.polish(a, b, out, maxPasses)
		r.grant()
	}
	return out
}

// Stand takes the row to the potentials g of Algorithm 1, in one pass, and tells how far
// it has converged by tol.
func (r *Row) Stand(g []float64, tol float64) Outcome {
	r.need(loaded)
	delta := r.xc - r.yc
	for j, y := range r.cy {
		r.h[j] = (g[j] - float64(y*y) + float64(float64(2*delta)*y)) / r.eps
	}
	r.ground(r.h)
	r.pass(r.h)
	r.grant()
	r.phase = solved
	e := r.relative()
	return Outcome{Passes: 1, Error: e, Converged: e <= max(tol, r.roundingFloor())}
}

// Return takes the row back to the potentials of an earlier solve of the same problem, in
// one sweep.
func (r *Row) Return(h []float64) {
	r.need(loaded)
	copy(r.h, h)
	r.sweep(r.h, false)
	r.phase = solved
}

// Potentials are the result of a solve: all that T, for any samples, depends on beside q, the targets
// and ε.
type Potentials struct {
	H      []float64 // h
	Center float64   // x̄: h belongs to x̃ - x̄
	Squash Squash
}

// Potentials returns those of the row. H is the row's own until the next Load.
func (r *Row) Potentials() Potentials {
	r.need(loaded)
	return Potentials{H: r.h, Center: r.xc, Squash: r.squash}
}

// Curve fills cut with the thresholds, in squashed x, between which T climbs, and rate
// with 2Δy/ε, m-1 numbers each: level J+1 outweighs level J by exp(rate_J (x̃-cut_J)). y nil
// stands for the grid on [0,1].
func (p Potentials) Curve(cut, rate, y []float64, eps float64) {
	at := func(j int) float64 {
		if y == nil {
			return Grid(j, len(p.H))
		}
		return y[j]
	}
	for J := range cut {
		d := at(J+1) - at(J)
		cut[J] = -(p.H[J+1]-p.H[J])*eps/(2*d) + p.Center
		rate[J] = 2 * d / eps
	}
}

// Evaluate makes M of n new samples at the potentials of an earlier solve onto the grid on [0,1].
// Averages can be taken after it, but no adjoints.
func (r *Row) Evaluate(x []float64, p Potentials, eps float64) {
	r.setTargets(nil)
	r.squash, r.observed = p.Squash, nil
	r.squashSamples(x)
	r.center(p.Center)
	r.setEpsilon(eps)
	r.forget()
	copy(r.h, p.H)
	r.evaluate(r.h)
	r.phase, r.of = placed, 0
}

// Samples returns the n samples as they were given. The slices that Samples and the methods below return
// are views, which hold until the next Load; the caller must not write to them.
func (r *Row) Samples() []float64 { return r.x[:r.n] }

// Squashed returns x̃.
func (r *Row) Squashed() []float64 { return r.xs[:r.n] }

// Weights returns a and b, of sum 1.
func (r *Row) Weights() (a, b []float64) { return r.a[:r.n], r.b }

// Squash returns the squash of the samples.
func (r *Row) Squash() Squash { return r.squash }

// Epsilon returns ε.
func (r *Row) Epsilon() float64 { return r.eps }

// Targets returns y.
func (r *Row) Targets() []float64 { return r.y }
