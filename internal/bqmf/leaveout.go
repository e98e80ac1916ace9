package bqmf

// This file holds leave-one-out: what a posterior would say of an observed cell had the cell not been
// observed. Such a cell pulls its own mean m; without it, to first order in what the two posteriors hold of
// it, with A = τ_i ρ_j,
//
//	m⁻ = m - A ((Y-m)h - g) / max(0.4, 1 - Ah),
//	h = Σ_k (l_k v_k (Sv)_k + r_k u_k (Cu)_k),  g = Σ_k (l_k + r_k) (Sv)_k (Cu)_k.
//
// The first order says too much where a cell weighs nearly as much as all others of its row and column
// together: hence the bound. Fits without single cells show it: where Ah is .4 to .8, the true movement m -
// m⁻ is some .8 of this one. If the cell leaves the row's posterior first, and the column's after that, then
//
//	m⁻ = m - ((Y-m)(1-w) - Ag) / w,  w = max(0.2, (1-r)(1-c)),
//	r = A Σ_k l_k v_k (Sv)_k,  c = A Σ_k r_k u_k (Cu)_k,  r + c = Ah,
//
// and the true movement is 1.0 to 1.1 of this one from Ah = .2 on. The levels of intervals are learnt from
// these predictions (withoutInTurn). Maps are learnt from the first ones (without).
//
// l_k and r_k would be 1 if a cell moved u_i and v_j alone. But what it adds to v_j moves all other u, and so
// on (loops). With s_k and c_k the means of τ_i S_i,kk and ρ_j C_j,kk, such a loop multiplies by s_k c_k λ a
// movement of column k of U, each row times √τ_i, along a left singular vector of the noise of Y whose
// squared singular value is λ. The sum over all loops is 1/(1 - λ/z_k), z_k = 1/(s_k c_k), and its mean over
// all d or n directions is
//
//	l_k = 1 + Σ λ/(z_k - λ) / d,  r_k = 1 + Σ λ/(z_k - λ) / n.
//
// This matters where a component is not much stronger than the noise: fits with many such components
// otherwise look better than they are. The sums are over min(d,n) - K squared singular values λ, which have
// the law of Marchenko and Pastur: of d × n noise of variance 1 in a share p of the cells the density is
// √((b-λ)(λ-a))/λ between a and b, p(√d ∓ √n)². z_k is the squared singular value of Y that belongs to
// component k. Where z_k < b the component is noise itself, and the largest of the λ is left out for it. The
// noise beside the other K' components has d-K' by n-K' directions, and these are the sizes in a and b of its
// law.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

// leaveOneOut prepares the reader, and those that share returns from then on, for without and withoutInTurn.
func (c *reader) leaveOneOut(x *Data) {
	observed := 0.0
	for j, l := range x.Cols {
		observed += float64(x.Time(j) * float64(l.Count))
	}
	c.left, c.right = c.p.loops(observed, x)
}

const (
	loopGrid = 256 // places at which the law of the noise is added up
	loopMost = 0.9 // of λ/z_k
)

// loops returns l_k and r_k, given the number of observed cells of the data.
func (p *Posterior) loops(observed float64, x *Data) (left, right []float64) {
	k, np := p.K, kernel.Pad(p.N)
	d, n := 0.0, x.Samples()
	for _, t := range p.Tau {
		if t > 0 {
			d++
		}
	}
	share := observed / float64(d*n)
	rootD, rootN := math.Sqrt(d), math.Sqrt(n)
	high := float64(share * squareOf(rootD+rootN))
	z, noisy := make([]float64, k), 0.0 // the number of components that are noise
	for a := range z {
		s, c := 0.0, 0.0
		for i, t := range p.Tau {
			u := p.U[i*k+a]
			s += float64(t / d * max(diagonal(p.packU(i), a)-float64(u*u), 0))
		}
		for j, t := range p.Rho {
			v := p.V[a*np+j]
			c += float64(x.Time(j) * float64(t/n*max(diagonal(p.packV(j), a)-float64(v*v), 0)))
		}
		z[a] = 1 / max(s*c, 1e-300)
		if z[a] < high {
			noisy++
		}
	}
	above := float64(k) - noisy // K'
	rootD, rootN = math.Sqrt(max(d-above, 1)), math.Sqrt(max(n-above, 1))
	low := float64(share * squareOf(rootD-rootN))
	high = float64(share * squareOf(rootD+rootN))
	var at, count [loopGrid]float64 // falling places, and how many λ are there
	all, spare := 0.0, noisy
	for g := range at {
		at[g] = high - float64((high-low)*((float64(g)+0.5)/loopGrid))
		count[g] = math.Sqrt((high-at[g])*(at[g]-low)) / at[g]
		all += count[g]
	}
	for g := range count {
		count[g] = float64(count[g] * (max(min(d, n)-float64(k)+noisy, 0) / all))
		taken := min(spare, count[g])
		count[g] -= taken
		spare -= taken
	}
	left, right = make([]float64, k), make([]float64, k)
	for a, t := range z {
		sum := 0.0
		for g, c := range count {
			ratio := min(at[g]/t, loopMost)
			sum += float64(c * (ratio / (1 - ratio)))
		}
		left[a], right[a] = 1+sum/d, 1+sum/n
	}
	return left, right
}

// The least of the denominators of without and of withoutInTurn.
const (
	slack       = 0.4
	slackInTurn = 0.2
)

// without returns the mean of a cell of row r of the last load, whose value is y
// and whose weight τρ is a, had it not been observed.
func (c *reader) without(r, j int, y, a float64) float64 {
	at := r*c.np + j
	m, own := c.cells.mean[at], c.cells.own[at]
	return m - float64(a*(float64((y-m)*own)-2*c.cells.both[at]))/max(slack, 1-float64(a*own))
}

// withoutInTurn returns what without does, by the second of the formulas above.
func (c *reader) withoutInTurn(r, j int, y, a float64) float64 {
	at := r*c.np + j
	m := c.cells.mean[at]
	row := min(max(float64(a*c.cells.byRow[at]), 0), 1)
	column := min(max(float64(a*c.cells.own[at])-row, 0), 1)
	left := max(float64((1-row)*(1-column)), slackInTurn)
	return m - (float64((y-m)*(1-left))-float64(2*float64(a*c.cells.both[at])))/left
}

// varianceWithout returns what leaving out the cell, which counts so many times, adds to the variance of u·v:
// vᵀSv and uᵀCu are what they are over 1 less A times them.
func (c *reader) varianceWithout(r, j int, a, times float64) float64 {
	at := r*c.np + j
	row := max(c.cells.byRow[at], 0)
	column := max(c.cells.own[at]-row, 0)
	return (row/max(slack, 1-float64(a*row))-row)/times + column/max(slack, 1-float64(a*column)) - column
}

// count makes a cell of row r of the last load one that counts so many times in the posterior of its row.
// Left out are all of them: no twin of the cell tells of it.
func (c *reader) count(r, j int, times float64) {
	if times != 1 {
		at, of := r*c.np+j, &c.cells
		of.own[at] += float64((times - 1) * of.byRow[at])
		of.byRow[at] *= times
		of.both[at] *= (1 + times) / 2
	}
}
