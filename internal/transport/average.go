package transport

// This file holds the averages over a solved row, the operators of the paper's §2.1 and §2.2,
//
//	T = M q                    soft quantile map; R is T of n cumsum(b)
//	S = diag(1/c) Mᵀ diag(a) x soft sort
//	f, g                       the potentials of P_ij = exp((f_i+g_j-(x̃_i-y_j)²)/ε)
//
// and the column sums that steps on q need. In floating point order and range of T and
// S are made exact by one code path for every sample, a clamp, and a running maximum along
// the sorted samples.

import (
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Average fills t (whole blocks of numbers) with T = M q.
func (r *Row) Average(t, q []float64) {
	r.need(placed)
	r.average(t, q)
}

// Order brings t, an average of q, into order and range to the last bit.
func (r *Row) Order(t, q []float64) {
	r.need(placed)
	r.arrange()
	run, top := q[0], q[len(q)-1]
	for _, i := range r.perm[:r.n] {
		switch v := t[i]; {
		case v < run:
			t[i] = run
		case v > top:
			t[i], run = top, top
		default:
			run = v
		}
	}
	if Invariants {
		r.checkOrder(t, q)
	}
}

// Quantile fills out (n numbers) with T = M q, in order and in range.
func (r *Row) Quantile(out, q []float64) {
	r.Average(r.gx, q)
	r.Order(r.gx, q)
	copy(out, r.gx)
}

// Columns fills out_j with Σ_i ζ_i M_ij / W_j: the column sums of diag(ζ)M, each in a unit
// W_j of its level, which cancels where two of them are divided. ζ has whole blocks of numbers,
// 0 in the padding.
func (r *Row) Columns(out, zeta []float64) {
	r.need(placed)
	r.columns(out, zeta)
}

// ObservedColumns is Columns of ζ_i = a_i mass, the weights of the observed samples before they were brought
// to sum 1: without weights 1, and mass their number. A condensed row has these sums from its solve.
func (r *Row) ObservedColumns(out, zeta []float64, mass float64) {
	r.need(placed)
	if !r.condensed.ready || r.knows < expanded {
		r.columns(out, zeta)
		return
	}
	for j, c := range r.c {
		out[j] = float64(c*mass) / r.w[j]
	}
}

// Gather takes x >= 0 for RatioColumns: whole blocks of numbers, 0 in the padding. It is read until the
// next Load. Of a condensed row RatioColumns sums over points then, unless T is to have a line, lined being
// true: within a bin of x̃ a sample may be so far that the line is not smooth there.
func (r *Row) Gather(x []float64, lined bool) {
	r.need(placed)
	r.gathered = &r.dual
	if lined || !r.condensed.ready {
		r.weights = x
		r.rows()
		if lined {
			kernel.Multiply(r.gx, r.x, r.z)
		}
		return
	}
	f := r.condensed.weighed
	r.bin(x[:r.n])
	r.setQuadrature(f, 1)
	f.evaluate(r.h)
	r.gathered, r.weights = f, f.a
}

// RatioColumns is Columns of ζ_i = x_i / max(T_i, low), x gathered and T = s w + M q, w being the samples of
// the row, for q >= 0: then T is a sum of positive numbers, and is computed without increments of q. Where x
// was gathered for a T with a line it returns Σ_i ζ_i w_i too; elsewhere s is 0.
func (r *Row) RatioColumns(out, q []float64, s, low float64) (along float64) {
	r.need(placed)
	f, x, c := r.gathered, r.weights, r.inc
	for j, w := range f.w {
		c[j] = float64(w * q[j])
	}
	f.columnsOf(out, func(lo, hi int, e []float64) {
		v := f.v[lo:hi]
		if s == 0 {
			clear(v)
		} else {
			kernel.Scale(v, r.gx[lo:hi], s)
		}
		kernel.RowRatios(v, e, c, f.z[lo:hi], x[lo:hi], low)
		if s > 0 {
			along += inner(v, r.gx[lo:hi])
		}
	})
	if f != &r.dual { // the points may have other reference potentials than the samples, and so other units W
		for j, w := range f.w {
			out[j] *= w / r.w[j]
		}
	}
	return along
}

// Tails turns what Columns filled into tail_l = Σ_i ζ_i Σ_{j>=l} M_ij.
func (r *Row) Tails(v []float64) {
	tail := 0.0
	for l := len(v) - 1; l >= 0; l-- {
		tail += float64(v[l] * r.w[l])
		v[l] = tail
	}
}

// EachSample calls f with every sample and its M_i, which is lost after it.
func (r *Row) EachSample(f func(i int, plan []float64)) {
	r.need(placed)
	r.eachSample(f)
}

// Sort fills out (m numbers) with S, non-decreasing and within the range of x.
func (r *Row) Sort(out []float64) {
	r.need(solved)
	r.sort(out)
	low, high := r.ends()
	run := low
	for j, s := range out {
		run = max(run, min(low+s, high))
		out[j] = run
	}
}

// sort fills S_j - min x = Σ_i a_i M_ij (x_i - min x) / c_j: only positive
// numbers are added, and an offset of x costs no digits. It uses total, rho and gx.
func (r *Row) sort(out []float64) {
	low, high := r.ends()
	unit := ScaleOf([]float64{low, high})
	sums, dots := r.total, r.rho
	r.columns(sums, r.a)
	for i, a := range r.a {
		r.gx[i] = float64(a * (r.x[i]/unit - low/unit))
	}
	r.columns(dots, r.gx)
	for j := range out {
		if sums[j]*r.w[j] > 1e-100 {
			out[j] = dots[j] / sums[j] * unit
		} else {
			out[j] = r.farColumn(j, low)
		}
	}
}

// farColumn averages x-low over a column whose entries are all flushed: only
// their ratios count, taken in logarithms.
func (r *Row) farColumn(j int, low float64) float64 {
	logs := r.logColumn(r.h, j)
	top, sum, dot := slices.Max(logs), 0.0, 0.0
	for i, l := range logs {
		w := elem.Exp(l - top)
		sum += w
		dot += float64(w * (r.x[i] - low))
	}
	return dot / sum
}

// Duals fills f (n) and g (m) from h: g_j = ε h_j + Y_j² - 2δY_j and
// f_i = ε(log a_i - log Z_i) + (X_i+δ)², δ = x̄ - ȳ, with the gauge Σ b_j g_j = 0. A
// sample of weight 0 has its f without the term ε log a_i.
func (r *Row) Duals(f, g []float64) {
	r.need(solved)
	r.rows()
	delta := r.xc - r.yc
	mean := 0.0
	for j, y := range r.cy {
		g[j] = float64(r.eps*r.h[j]) + float64(y*(y-2*delta))
		mean += float64(r.b[j] * g[j])
	}
	for j := range g {
		g[j] -= mean
	}
	// log Z_i is that of Σ_j exp(h_j+s_i Y_j): the factors that e and w are divided by are put back.
	rest := r.v
	if r.form == powers {
		clear(rest)
	} else {
		kernel.Tops(rest, r.s, r.href, r.cy)
	}
	kernel.Log(r.gx, r.a)
	for i, top := range rest {
		logA := r.gx[i]
		if r.a[i] == 0 {
			logA = 0
		}
		rest[i] = logA - top - r.mid
	}
	kernel.Log(f, r.z)
	kernel.Potential(f, rest, r.cx, r.eps, delta, mean)
}
