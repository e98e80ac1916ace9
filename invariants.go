//go:build invariants

package quantmf

// This file holds the checks that a build with -tags invariants makes after
// every solve and every map. They panic, since what they find is a fault of the
// package, never of the data.

import "math"

const invariants = true

// checkPlan: M >= 0, its rows sum to 1, and its columns are as far from b as the
// outcome says.
func (r *row) checkPlan(out outcome) {
	c := make([]float64, r.m)
	r.eachSample(func(i int, plan []float64) {
		sum := 0.0
		for j, p := range plan {
			if !(p >= 0) {
				panic("quantmf: invariant: plan entry " + ftoa(p))
			}
			sum += p
			c[j] += r.a[i] * p
		}
		if math.Abs(sum-1) > 1e-12 {
			panic("quantmf: invariant: a row of M sums to " + ftoa(sum))
		}
	})
	rel := 0.0
	for j, b := range r.b {
		rel = max(rel, math.Abs(c[j]-b)/b)
	}
	if out.converged && rel > 2*out.rel+1e-11+r.rounding() {
		panic("quantmf: invariant: columns are off by " + ftoa(rel) + ", not " + ftoa(out.rel))
	}
}

// checkOrder: t is ordered as the samples, equal where they are, and in the range of q.
func (r *row) checkOrder(t, q []float64) {
	for k, i := range r.perm[:r.n] {
		if !(t[i] >= q[0] && t[i] <= q[len(q)-1]) {
			panic("quantmf: invariant: " + ftoa(t[i]) + " is out of range")
		}
		if k == 0 {
			continue
		}
		if p := r.perm[k-1]; t[p] > t[i] || r.x[p] == r.x[i] && t[p] != t[i] {
			panic("quantmf: invariant: T is out of order")
		}
	}
}
