// This file holds Algorithm 1 of the paper and the exact gradient through its iterations, as automatic
// differentiation has it, with which the paper's §2.4 compares the implicit one. It keeps the potentials of
// all iterations and computes their plans again on the way back.
package main

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// unrolling is the transport of n samples of weight 1/n to m levels of weights b. c_ij = (x_i-y_j)².
type unrolling struct {
	x, y, b []float64
	eps     float64
	l       int // the number of iterations

	gradX, gradB, gradQ []float64 // gradients of Σ z_i T_i
	row, column         []float64 // scratch: m and n numbers
}

// solve returns the potentials after each of l iterations from f = 0, and before the first:
// g_j ← ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε), f_i ← ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε).
func (u *unrolling) solve() (fs, gs [][]float64) {
	f, g := make([]float64, len(u.x)), make([]float64, len(u.y))
	for range u.l {
		fs, gs = append(fs, slices.Clone(f)), append(gs, slices.Clone(g))
		for j := range g {
			g[j] = u.eps * (math.Log(u.b[j]) - u.softColumn(f, j))
		}
		for i := range f {
			f[i] = u.eps * (-math.Log(float64(len(f))) - u.softRow(g, i))
		}
	}
	return append(fs, f), append(gs, g)
}

// softRow fills u.row with the softmax of (g_j-c_ij)/ε over j, and returns the logarithm of its sum.
func (u *unrolling) softRow(g []float64, i int) float64 {
	for j := range u.row {
		d := u.x[i] - u.y[j]
		u.row[j] = (g[j] - d*d) / u.eps
	}
	return softmax(u.row)
}

// softColumn does the same with (f_i-c_ij)/ε over i in u.column.
func (u *unrolling) softColumn(f []float64, j int) float64 {
	for i := range u.column {
		d := u.x[i] - u.y[j]
		u.column[i] = (f[i] - d*d) / u.eps
	}
	return softmax(u.column)
}

func softmax(v []float64) float64 {
	sum := floats.LogSumExp(v)
	for i := range v {
		v[i] = math.Exp(v[i] - sum)
	}
	return sum
}

// gradient takes z = dℓ/dT back through T_i = Σ_j softmax_j((g_j-c_ij)/ε) q_j and the iterations. The
// gradient in b is along the simplex,
// for weights times a factor have the same plan.
func (u *unrolling) gradient(q, z []float64) {
	n, m := len(u.x), len(u.y)
	u.row, u.column = make([]float64, m), make([]float64, n)
	u.gradX, u.gradB, u.gradQ = make([]float64, n), make([]float64, m), make([]float64, m)
	fs, gs := u.solve()
	fBar, gBar := make([]float64, n), make([]float64, m) // dℓ/df and dℓ/dg
	for i, zi := range z {
		u.softRow(gs[u.l], i)
		mean := floats.Dot(u.row, q)
		for j, p := range u.row {
			u.gradQ[j] += zi * p
			e := zi * p * (q[j] - mean) / u.eps
			gBar[j] += e
			u.gradX[i] -= 2 * e * (u.x[i] - u.y[j])
		}
	}
	for l := u.l; l >= 1; l-- {
		clear(fBar)
		for j, gb := range gBar { // back through g of iteration l
			u.softColumn(fs[l-1], j)
			u.gradB[j] += gb * u.eps / u.b[j]
			for i, p := range u.column {
				fBar[i] -= gb * p
				u.gradX[i] += 2 * gb * p * (u.x[i] - u.y[j])
			}
		}
		if l == 1 { // the first f, 0, does not depend on anything
			break
		}
		clear(gBar)
		for i, fb := range fBar { // back through f of iteration l-1
			u.softRow(gs[l-1], i)
			for j, p := range u.row {
				gBar[j] -= fb * p
				u.gradX[i] += 2 * fb * p * (u.x[i] - u.y[j])
			}
		}
	}
}
