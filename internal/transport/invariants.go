//go:build invariants

package transport

// This file holds the checks that a build with -tags invariants makes after
// every solve and every map. They panic, since what they find is a fault of the
// package, never of the data.

import (
	"math"
	"strconv"
)

// Invariants tells whether the checks are made.
const Invariants = true

func fault(what string, v float64) {
	panic("transport: invariant: " + what + " " + strconv.FormatFloat(v, 'g', -1, 64))
}

// checkPlan: M >= 0, its rows sum to 1, and its columns are as far from b as the
// outcome says.
func (r *dual) checkPlan(out Outcome) {
	c := make([]float64, r.m)
	r.eachSample(func(i int, plan []float64) {
		sum := 0.0
		for j, p := range plan {
			if !(p >= 0) {
				fault("an entry of M is", p)
			}
			sum += p
			c[j] += r.a[i] * p
		}
		if math.Abs(sum-1) > 1e-12 {
			fault("a row of M sums to", sum)
		}
	})
	rel := 0.0
	for j, b := range r.b {
		rel = max(rel, math.Abs(c[j]-b)/b)
	}
	if out.Converged && rel > 2*out.Error+1e-11+r.rounding() {
		fault("columns are off by more than the outcome says:", rel)
	}
}

// checkOrder: t is ordered as the samples, equal where they are, and in the range of q.
func (r *samples) checkOrder(t, q []float64) {
	for k, i := range r.perm[:r.n] {
		if !(t[i] >= q[0] && t[i] <= q[len(q)-1]) {
			fault("out of range:", t[i])
		}
		if k == 0 {
			continue
		}
		if p := r.perm[k-1]; t[p] > t[i] || r.x[p] == r.x[i] && t[p] != t[i] {
			fault("T is out of order:", t[i])
		}
	}
}
