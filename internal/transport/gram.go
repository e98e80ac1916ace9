package transport

// This file holds the sums over a plan that a step of Newton's method and an adjoint need:
// the Gram matrix G = Mᵀ diag(a) M and the column sums c = Mᵀ a, and matrices of the same
// form with other row weights.
//
// On a regular grid E_ij E_ik depends on j+k only, up to a factor that does not depend on
// i: the whole matrix is known from 2m-1 sums (its Hankel form), and a sweep costs 8nm
// flops. Otherwise the whole triangle is summed, 3/2 nm² flops more. The triangle is also summed
// where all entries of a column were flushed to 0, since the Hankel form then loses its
// neighbours' sums too.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

// known says which sums of the last sweep are valid. Each state includes those before it.
type known uint8

const (
	nothing   known = iota // no sweep since the problem was loaded, or M has moved without one
	swept                  // mu
	expanded               // and c, g
	triangled              // and g, c do not come from mu: the Hankel form does not hold
)

// gram is a plan with its sums.
type gram struct {
	plan
	knows known
	mu    []float64 // the 2m-1 sums that hold G on a regular grid, m+mp
	g     []float64 // G, m × mp, symmetric
	c     []float64 // column sums, m
	nu    []float64 // scratch: mu of other row weights
	total []float64 // scratch: c of other row weights
	fac   []float64 // scratch: a tile's triangle; the factors of the Laplacian, m × kernel.LaplacianStride(m)
}

// sweep takes the plan to the potentials h, and takes the sums that hold the Gram matrix. last says that
// this is probably the last sweep: then it also computes T where want asks for it.
func (r *gram) sweep(h []float64, last bool) {
	r.aim(h)
	r.want.had, r.sums = last && r.want.t != nil, true
	weights := func(lo, hi int, e []float64) {
		z := r.z[lo:hi]
		if r.want.had {
			kernel.Average(r.want.t[lo:hi], e, r.w, z, r.want.q[0], r.inc)
		} else {
			kernel.RowSums(z, e, r.w)
		}
		kernel.Weigh(r.v[lo:hi], r.a[lo:hi], z)
	}
	if r.want.had {
		r.increments(r.want.q)
	}
	if !r.regular {
		r.triangles(r.g, r.c, weights)
		r.knows = triangled
		r.settle()
		return
	}
	r.moments(r.mu, weights)
	r.knows = swept
}

// expand makes the Gram matrix and the column sums of the last sweep.
func (r *gram) expand() {
	if r.knows < expanded {
		kernel.Hankel(r.g, r.c[:r.mp], r.mu, r.ratio, r.w[:r.mp], r.m)
		r.knows = expanded
		r.settle()
	}
}

// pass is a sweep with the Gram matrix.
func (r *gram) pass(h []float64) {
	r.sweep(h, false)
	r.expand()
}

// settle sums the triangle of the Gram matrix in two cases in which the Hankel form is wrong: where a
// column was flushed to 0, and where the potentials are so large that the rounding of their differences
// leaves no digit.
func (r *gram) settle() {
	lost := r.lostLogits()
	for _, s := range r.c {
		lost = lost || s < 1e-100
	}
	if lost {
		r.direct()
	}
}

// direct computes Gram matrix and column sums without the Hankel form.
func (r *gram) direct() {
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Weigh(r.v[lo:hi], r.a[lo:hi], r.z[lo:hi])
		r.triangle(r.g, lo, hi, e)
	})
	r.weigh(r.g)
	r.columns(r.c, r.a)
	for j := range r.c {
		r.c[j] *= r.w[j]
	}
	r.knows = triangled
}

// moments fills mu with the 2m-1 sums that hold Σ_i v_i Z_i² M_ij M_ik. weights fills
// v, a tile at a time.
func (r *gram) moments(mu []float64, weights func(lo, hi int, e []float64)) {
	mu = mu[:2*r.m]
	r.tiles(func(lo, hi int, e []float64) {
		weights(lo, hi, e)
		if lo == 0 {
			kernel.Moments(mu, e, r.v[:hi])
			return
		}
		part := r.part[:2*r.m]
		kernel.Moments(part, e, r.v[lo:hi])
		add(mu, part)
	})
}

// triangles fills g with Σ_i v_i Z_i² M_ij M_ik by its triangle, and total with its column sums.
// weights fills v, a tile at a time.
func (r *gram) triangles(g, total []float64, weights func(lo, hi int, e []float64)) {
	r.tiles(func(lo, hi int, e []float64) {
		weights(lo, hi, e)
		r.triangle(g, lo, hi, e)
	})
	r.weigh(g)
	r.totals(total, g)
}

// totals fills to_k = Σ_j g_jk.
func (r *gram) totals(to, g []float64) {
	clear(to)
	for j := range r.m {
		add(to, g[j*r.mp:j*r.mp+r.m])
	}
}

// triangle adds a tile to the lower triangle of g_jk = Σ_i v_i E_ij E_ik. It uses fac.
func (r *gram) triangle(g []float64, lo, hi int, e []float64) {
	if lo == 0 {
		kernel.Gram(g, e, r.v[:hi], r.m)
		return
	}
	kernel.Gram(r.fac, e, r.v[lo:hi], r.m)
	for j := range r.m {
		add(g[j*r.mp:], r.fac[j*r.mp:j*r.mp+j+1])
	}
}

// weigh turns the lower triangle of sums over E into sums over E W, both triangles.
func (r *gram) weigh(g []float64) {
	const decouple = 1e-200 // below it two levels share nothing
	for j := range r.m {
		for k := range j + 1 {
			t := g[j*r.mp+k] * r.w[j] * r.w[k]
			if math.Abs(t) < decouple {
				t = 0
			}
			g[j*r.mp+k], g[k*r.mp+j] = t, t
		}
	}
}

// coupling returns the least Σ_{j<=J<k} G_jk over the boundaries J: what the
// levels below a boundary share with those above, κ. A rounding u in the column
// sums moves the potential across the boundary by u/κ. The shares of neighbouring levels
// are a part of κ: where none of them is weak, their least is returned. It uses total.
func (r *gram) coupling() float64 {
	r.expand()
	near := 1.0
	for j := range r.m - 1 {
		near = min(near, r.g[j*r.mp+j+1])
	}
	if near >= weakCoupling {
		return near
	}
	least := 1.0
	for _, s := range r.across() {
		least = min(least, s)
	}
	return least
}

// across returns Σ_{j<=J<k} G_jk of each boundary J. It uses total.
func (r *gram) across() []float64 {
	m := r.m
	across := r.total[:m-1]
	clear(across)
	for j := range m {
		s, g := 0.0, r.g[j*r.mp:j*r.mp+m]
		for k := m - 1; k > j; k-- { // what level j shares with those above k-1
			s += g[k]
			across[k-1] += s
		}
	}
	return across
}
