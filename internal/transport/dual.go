package transport

// This file holds the semi-dual of entropic transport onto m targets and the linear system
// of Newton's method on it.
//
// # The problem (paper §2.1, Eq. (P-RegOT), and §2.4, Eq. (D-RegOT))
//
// Samples x_i of weight a_i go to targets y_j of weight b_j at cost (x_i-y_j)²;
// the plan is P_ij = exp((f_i+g_j-(x_i-y_j)²)/ε). For given g the best f makes
// the row sums exact, which leaves m unknowns. With X, Y the centred x, y,
//
//	M_ij = P_ij/a_i = exp(h_j + s_i Y_j)/Z_i,   s_i = 2X_i/ε,
//	g_j = ε h_j + Y_j² - 2δY_j,                 δ = x̄ - ȳ,
//
// and the concave D(h) = Σ b_j h_j - Σ a_i log Z_i is maximised:
//
//	∇D = b - c,  c = Mᵀa;   -∇²D = L = diag(c) - Mᵀ diag(a) M.
//
// L is the Laplacian of a weighted graph, solved without subtractions by
// kernel.FactorLaplacian; it is also the matrix of the implicit gradients.
//
// # Why it converges
//
// Along a direction d of range R, V(t) = -∂²D = Σ a_i Var_{M_i}(d) satisfies
// |V'| <= R V, so V(t) <= V(0)e^{Rt}. So the step t = log(1+R)/R along the Newton
// direction raises D by at least λ²((1+R)log(1+R)-R)/R², λ² = dᵀLd, and no line
// search is needed. A Sinkhorn step h += log(b/c) raises D by at least KL(b|c). D is
// bounded, so both kinds of steps converge; for small R the full Newton step is taken,
// and convergence is quadratic. The fast method (descent.go) uses a residual in
// logarithms and clips the step boundary by boundary. The slope at the new point, by
// the concavity of D, tells whether D rose.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// dual is a plan with its sums, on the way to the maximum of D.
type dual struct {
	gram
	piv, floor []float64 // the pivots of the Laplacian, whose factors are in fac, and their lower bounds
	elim       []float64 // scratch of the factorisation
	work       []float64 // scratch of the gradients
	dir, try   []float64 // the direction of a step, and the potentials after it
	logs       []float64 // log(b/c)
	best       []float64 // the best potentials so far
	tau, start []float64 // thresholds: scratch, and those of the start of the solve
	mass       []float64 // of the bins of a histogram
	condensed  condensed // the samples of a long row as points

	ofSamples, ofLevels []float64 // the memory of the vectors here and in the embedded types
}

// forget sets all that is derived from a problem back, for another one.
func (r *dual) forget() {
	r.stands, r.knows, r.want, r.condensed.ready = stale, nothing, want{}, false
}

// relative returns max_j |c_j-b_j|/b_j.
func (r *dual) relative() float64 {
	e, c := 0.0, r.c[:len(r.b)]
	for j, b := range r.b {
		if v := math.Abs(c[j]-b) / b; !(v <= e) {
			if v != v {
				return v
			}
			e = v
		}
	}
	return e
}

// logResidual fills logs_j = log(b_j/c_j), c that of the plan at h, and returns the largest
// magnitude. Where c_j was flushed it is taken anew in logarithms: one Sinkhorn step then
// brings the level back.
func (r *dual) logResidual(h []float64, rel float64) float64 {
	if rel < 1e-3 {
		for j, b := range r.b {
			c := max(r.c[j], 1e-300)
			e := (b - c) / c
			r.logs[j] = e - float64(float64(e*e)*0.5) + float64(e*e*e)/3
		}
	} else {
		for j, b := range r.b {
			r.logs[j] = b / max(r.c[j], 1e-300)
		}
		kernel.Log(r.logs, r.logs)
		const flushed = 1e-150
		for j, c := range r.c {
			if c < flushed {
				r.logs[j] = elem.Log(r.b[j]) - LogSum(r.logColumn(h, j))
			}
		}
	}
	top := 0.0
	for _, l := range r.logs {
		top = max(top, math.Abs(l))
	}
	return top
}

// newton solves L d = res for the direction d in place: res sums to 0.
func (r *dual) newton(res []float64) {
	r.factor()
	kernel.SolveLaplacian(r.fac, r.piv, res)
}

// factor eliminates the Laplacian of the last pass.
func (r *dual) factor() {
	r.expand()
	stride := kernel.LaplacianStride(r.m)
	for j := range r.m {
		copy(r.fac[j*stride:], r.g[j*r.mp:(j+1)*r.mp])
	}
	r.setFloor()
	kernel.FactorLaplacian(r.fac, r.piv, r.floor, r.elim, r.done)
}

// setFloor fills floor with the lower bounds of the pivots.
func (r *dual) setFloor() {
	for j, c := range r.c {
		r.floor[j] = max(1e-15*max(c, r.b[j]), 1e-290)
	}
}

// slope returns d·(b-c), the derivative of D along d.
func (r *dual) slope(d []float64) float64 {
	s := 0.0
	for j, v := range d {
		s += float64(v * (r.b[j] - r.c[j]))
	}
	return s
}

// balance subtracts from v a multiple of c, so that v sums to 0.
func balance(v, c []float64) {
	s, sc := 0.0, 0.0
	for j := range v {
		s += v[j]
		sc += c[j]
	}
	for j := range v {
		v[j] -= float64(s / sc * c[j])
	}
}

// clip shortens each difference v of successive entries beyond 2 to 2+log(1+v-2), so that a boundary
// far from its place does not shorten the steps of the others.
func clip(d []float64) {
	prev := d[0]
	for j := 1; j < len(d); j++ {
		v := d[j] - prev
		prev = d[j]
		if v > 2 {
			v = 2 + elem.Log1p(v-2)
		} else if v < -2 {
			v = -2 - elem.Log1p(-v-2)
		}
		d[j] = d[j-1] + v
	}
}

// damped returns the length of a step along d that always raises D: log(1+R)/R, at most 1.
func damped(d []float64) float64 {
	lo, hi := bounds(d)
	if R := hi - lo; R > 1 {
		return elem.Log1p(R) / R
	}
	return 1
}

// resize makes room for n samples and m targets; the problem that was loaded is lost. Vectors
// over levels have a capacity of whole blocks, with zeros beyond their length.
func (r *dual) resize(n, m int) {
	np, mp := kernel.Pad(n), kernel.Pad(m)
	if n != r.n {
		bins := 256 // of a histogram: about as many as there are samples
		for bins < n && bins < 1024 {
			bins *= 2
		}
		if n >= condensedFrom {
			bins = condensedBins
		}
		free := room(r.memory, &r.ofSamples, 7*np+bins)
		for _, p := range []*[]float64{&r.x, &r.xs, &r.a, &r.cx, &r.s, &r.z, &r.v} {
			*p = free.take(np, np)
		}
		r.mass = free.take(bins, bins)
		clear(r.a)
		r.perm = pool.Again(r.memory, r.perm, n)
		r.sorter.Resize(r.memory, n)
	}
	if m != r.m {
		factors, scratch := m*kernel.LaplacianStride(m), kernel.LaplacianRoom(m)
		free := room(r.memory, &r.ofLevels, 25*mp+2*m+2*m*mp+factors+scratch)
		clear(free)
		for _, p := range []*[]float64{&r.b, &r.y, &r.cy, &r.dy, &r.h, &r.href, &r.w, &r.c, &r.piv, &r.floor,
			&r.dir,
			&r.try, &r.logs, &r.best, &r.tau, &r.start, &r.inc, &r.one, &r.total, &r.work, &r.boost} {
			*p = free.take(m, mp)
		}
		for _, p := range []struct {
			v    *[]float64
			size int
		}{{&r.mu, m + mp}, {&r.nu, m + mp}, {&r.part, 2 * mp}, {&r.ratio, m * mp}, {&r.g, m * mp},
			{&r.fac, factors}, {&r.elim, scratch}} {
			*p.v = free.take(p.size, p.size)
		}
	}
	r.even, r.grid, r.flat = r.even && n == r.n, r.grid && m == r.m, r.flat && m == r.m
	r.ordered = false
	r.forget()
	r.n, r.np, r.m, r.mp = n, np, m, mp
	r.setTiles()
}
