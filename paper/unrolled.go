// This file holds Algorithm 1 of the paper and the exact gradient through its iterations, as automatic
// differentiation has it, with which the paper's §2.4 compares the implicit one. It keeps the potentials of
// all iterations and computes their plans again on the way back.
package main

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf"
	"gonum.org/v1/gonum/floats"
)

// unrolling is the transport of n samples of weight 1/n to m levels of weights b. c_ij = (x_i-y_j)².
type unrolling struct {
	x, y, b []float64
	eps     float64
	l       int // the number of iterations

	row, column []float64 // scratch: m and n numbers
}

// solve returns the potentials after each of l iterations from f = 0, and before the first:
// g_j ← ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε), f_i ← ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε).
func (u *unrolling) solve() (fs, gs [][]float64) {
	f, g := make([]float64, len(u.x)), make([]float64, len(u.y))
	for range u.l {
		fs, gs = append(fs, slices.Clone(f)), append(gs, slices.Clone(g))
		for j := range g {
			g[j] = u.eps * (math.Log(u.b[j]) - u.soften(u.column, f, u.x, u.y[j]))
		}
		for i := range f {
			f[i] = u.eps * (-math.Log(float64(len(f))) - u.soften(u.row, g, u.y, u.x[i]))
		}
	}
	return append(fs, f), append(gs, g)
}

// soften fills v, a row or a column of the plan, with the softmax of (p_j-(at-to_j)²)/ε over j, and returns
// the logarithm of its sum.
func (u *unrolling) soften(v, p, to []float64, at float64) float64 {
	for j := range v {
		d := at - to[j]
		v[j] = (p[j] - d*d) / u.eps
	}
	sum := floats.LogSumExp(v)
	for j := range v {
		v[j] = math.Exp(v[j] - sum)
	}
	return sum
}

// gradient is that of Σ z_i T_i: it goes back through T_i = Σ_j softmax_j((g_j-c_ij)/ε) q_j and the
// iterations. The gradient in b is along the simplex, for weights times a factor have the same plan.
func (u *unrolling) gradient(q, z []float64) *quantmf.Gradient {
	n, m := len(u.x), len(u.y)
	u.row, u.column = make([]float64, m), make([]float64, n)
	of := &quantmf.Gradient{X: make([]float64, n), B: make([]float64, m), Q: make([]float64, m)}
	fs, gs := u.solve()
	fBar, gBar := make([]float64, n), make([]float64, m) // dℓ/df and dℓ/dg
	for i, zi := range z {
		u.soften(u.row, gs[u.l], u.y, u.x[i])
		mean := floats.Dot(u.row, q)
		for j, p := range u.row {
			of.Q[j] += zi * p
			e := zi * p * (q[j] - mean) / u.eps
			gBar[j] += e
			of.X[i] -= 2 * e * (u.x[i] - u.y[j])
		}
	}
	for l := u.l; l >= 1; l-- {
		clear(fBar)
		for j, gb := range gBar { // back through g of iteration l
			u.soften(u.column, fs[l-1], u.x, u.y[j])
			of.B[j] += gb * u.eps / u.b[j]
			for i, p := range u.column {
				fBar[i] -= gb * p
				of.X[i] += 2 * gb * p * (u.x[i] - u.y[j])
			}
		}
		if l == 1 { // the first f, 0, does not depend on anything
			break
		}
		clear(gBar)
		for i, fb := range fBar { // back through f of iteration l-1
			u.soften(u.row, gs[l-1], u.y, u.x[i])
			for j, p := range u.row {
				gBar[j] -= fb * p
				of.X[i] += 2 * fb * p * (u.x[i] - u.y[j])
			}
		}
	}
	return of
}
