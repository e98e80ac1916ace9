package transport

// This file holds the row-exact plan at potentials h,
//
//	M_ij = P_ij/a_i = exp(h_j + s_i Y_j)/Z_i = E_ij W_j / Z_i,   W_j = exp(h_j - href_j - mid),
//
// and the averages over it: T = M q, the column sums Σ_i ζ_i M_ij, and M itself, a row at
// a time.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// plan is M at the potentials that aim or sweep was last called with.
type plan struct {
	matrix
	h    []float64 // the potentials of the solver; those of M once a solve has ended
	w    []float64 // W, m
	mid  float64   // log of what W is divided by
	z    []float64 // Z, np
	sums bool      // z is that of M
	v    []float64 // scratch: row weights of a sum, np
	inc  []float64 // scratch: increments of levels
	part []float64 // scratch: a tile's share of a sum, 2m
	one  []float64 // scratch: M_i, m
	want want
}

// want is a request, made before a solve, for T = M q. The sweep that is probably the last computes T
// too, so that E is read once less.
type want struct {
	t, q []float64 // np and m numbers; t nil: nothing is asked for
	had  bool      // t is M q for the current M
}

// aim fills the level weights w of the potentials h. Where h is too far from href it sets href anew.
func (r *plan) aim(h []float64) {
	r.want.had, r.sums = false, false
	lo, hi := math.Inf(1), math.Inf(-1)
	if r.stands != stale {
		for j, v := range h {
			lo, hi = min(lo, v-r.href[j]), max(hi, v-r.href[j])
		}
		if !(hi-lo <= maxRange) {
			r.stands = stale
		}
	}
	if r.stands == stale {
		r.reference(h)
		lo, hi = 0, 0
		if r.form == powers {
			lo, hi = bounds(h)
		}
	}
	r.mid = elem.Middle(lo, hi)
	for j, v := range h {
		r.w[j] = v - r.href[j] - r.mid
	}
	kernel.Exp(r.w, r.w)
}

// evaluate makes M that of the potentials h: kernel, level weights, row sums.
func (r *plan) evaluate(h []float64) {
	r.aim(h)
	r.rows()
}

// rows fills z where no sweep has.
func (r *plan) rows() {
	if !r.sums {
		r.tiles(func(lo, hi int, e []float64) { kernel.RowSums(r.z[lo:hi], e, r.w) })
		r.sums = true
	}
}

// average fills t (np numbers) with M q.
func (r *plan) average(t, q []float64) {
	r.increments(q)
	r.tiles(func(lo, hi int, e []float64) { kernel.Average(t[lo:hi], e, r.w, r.z[lo:hi], q[0], r.inc) })
	r.sums = true
}

// increments fills inc with the increments of v, m levels.
func (r *plan) increments(v []float64) {
	for j := range v[1:] {
		r.inc[j] = v[j+1] - v[j]
	}
}

// grant computes the T that want asks for, where no sweep has.
func (r *plan) grant() {
	if r.want.t != nil && !r.want.had {
		r.average(r.want.t, r.want.q)
		r.want.had = true
	}
}

// columns fills out_j = Σ_i ζ_i E_ij/Z_i: the column sums of diag(ζ) M over W. ζ has np
// numbers, 0 in the padding. It uses v.
func (r *plan) columns(out, zeta []float64) {
	r.rows()
	r.columnsOf(out, func(lo, hi int, _ []float64) { kernel.Divide(r.v[lo:hi], zeta[lo:hi], r.z[lo:hi]) })
}

// columnsOf fills out_j = Σ_i v_i E_ij. weights fills v, a tile at a time.
func (r *plan) columnsOf(out []float64, weights func(lo, hi int, e []float64)) {
	part := r.part[:r.m]
	r.tiles(func(lo, hi int, e []float64) {
		weights(lo, hi, e)
		if lo == 0 {
			kernel.ColSums(out, e, r.v[:hi])
			return
		}
		kernel.ColSums(part, e, r.v[lo:hi])
		add(out, part)
	})
}

// eachSample calls f with every sample and its M_i, which is lost after it.
func (r *plan) eachSample(f func(i int, plan []float64)) {
	const lanes = kernel.Lanes
	r.rows()
	r.tiles(func(lo, hi int, e []float64) {
		for i := lo; i < min(hi, r.n); i++ {
			from := e[(i-lo)/lanes*lanes*r.m+i%lanes:]
			for j, w := range r.w {
				r.one[j] = float64(from[j*lanes]*w) / r.z[i]
			}
			f(i, r.one)
		}
	})
}

// logColumn returns log a_i M_ij at h for all i.
func (r *plan) logColumn(h []float64, j int) []float64 {
	terms, logs := make([]float64, r.m), make([]float64, r.n)
	for i := range logs {
		if r.a[i] == 0 {
			logs[i] = math.Inf(-1)
			continue
		}
		for k, y := range r.cy {
			terms[k] = h[k] + float64(r.s[i]*y)
		}
		logs[i] = terms[j] - LogSum(terms) + elem.Log(r.a[i])
	}
	return logs
}

// LogSum returns log Σ exp t.
func LogSum(t []float64) float64 {
	top := slices.Max(t)
	if math.IsInf(top, 0) {
		return top
	}
	s := 0.0
	for _, v := range t {
		s += elem.Exp(v - top)
	}
	return top + elem.Log(s)
}
