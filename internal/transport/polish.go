package transport

// This file finds the last digits of a transport whose levels are coupled weakly.
// Where only a share κ of the mass crosses a boundary between levels, the column
// sums c_j, which hold whole levels, determine the potential across the boundary to
// u/κ only. The error does not affect ranks and maps, but it affects the shares of
// samples that straddle the boundary, and with them soft sorts and the gradients in
// a and b.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// polish takes Newton steps on residuals that are free of cancellation, where
// levels are coupled weakly. The residual of the cut at boundary J is
//
//	R_J = Σ_{j>J} (b_j-c_j) = (A_k-B_J) - a_k G_kJ - Σ_{p<k} a_p G_pJ + Σ_{p>k} a_p F_pJ,
//
// samples p in order, k the one that holds the boundary's mass B_J, A_k the mass
// up to and with it, G_pJ and F_pJ = 1-G_pJ the shares of sample p above and up
// to the boundary. All terms are of the size of the mass that crosses the boundary,
// and A_k-B_J is taken from sums of the weights as given, in twice the precision. A
// c_j, in contrast, sums a whole column, and loses all that is below u of it.
func (r *dual) polish(given, targets []float64, out Outcome, most int) Outcome {
	m := r.m
	cut, excess, d := r.start[:m-1], r.tau[:m-1], r.dir
	r.arrange()
	holder := r.holders(excess, given, targets)
	position := make([]int, r.n)
	for p, i := range r.perm[:r.n] {
		position[i] = p
	}
	before := math.Inf(1)
	for range 4 {
		if r.ended() {
			return out
		}
		copy(cut, excess)
		r.cuts(cut, holder, position)
		worst := 0.0
		last := 0.0
		for J, c := range cut {
			d[J] = last - c
			last = c
			worst = max(worst, math.Abs(c))
		}
		d[m-1] = last
		if !(worst < before/2) || out.Passes+2 > most {
			break
		}
		before = worst
		r.newton(d)
		clip(d)
		copy(r.best, r.h)
		add(r.h, d)
		r.pass(r.h)
		out.Passes++
		if rel := r.relative(); rel > max(2*out.Error, r.roundingFloor()) { // no better: as it was
			copy(r.h, r.best)
			r.pass(r.h)
			out.Passes++
			break
		}
	}
	out.Error = r.relative()
	return out
}

// holders returns the place k, in order, of the sample that holds the mass of each boundary, and fills excess
// with A_k-B_J. Both are sums of the weights as given; nil: all are 1.
func (r *dual) holders(excess, given, targets []float64) []int {
	weight := func(w []float64, i int) float64 {
		if w == nil {
			return 1
		}
		return w[i]
	}
	var totalA, totalB, sumA, sumB elem.Double
	for i := range r.n {
		totalA = totalA.Plus(weight(given, i))
	}
	for j := range r.m {
		totalB = totalB.Plus(weight(targets, j))
	}
	holder := make([]int, len(excess))
	p := -1
	for J := range holder {
		sumB = sumB.Plus(weight(targets, J))
		edge := sumB.Times(totalA)
		for p < 0 || p < r.n-1 && sumA.Times(totalB).Minus(edge) < 0 {
			p++
			sumA = sumA.Plus(weight(given, int(r.perm[p])))
		}
		holder[J] = p
		excess[J] = sumA.Times(totalB).Minus(edge) / totalA.Times(totalB).Float64()
	}
	return holder
}

// cuts takes cut from A_k-B_J to R_J. position is the place of each sample in order.
func (r *dual) cuts(cut []float64, holder, position []int) {
	const lanes = kernel.Lanes
	n, m := r.n, r.m
	r.tiles(func(lo, hi int, tile []float64) {
		for i := lo; i < min(hi, n); i++ {
			a := r.a[i]
			if a == 0 {
				continue
			}
			a /= r.z[i]
			e := tile[(i-lo)/lanes*lanes*m+i%lanes:]
			p := position[i]
			up, down := 0.0, 0.0
			for J := m - 2; J >= 0 && holder[J] >= p; J-- {
				up += float64(e[(J+1)*lanes] * r.w[J+1])
				cut[J] -= float64(a * up)
			}
			for J := 0; J < m-1 && holder[J] < p; J++ {
				down += float64(e[J*lanes] * r.w[J])
				cut[J] += float64(a * down)
			}
		}
	})
}
