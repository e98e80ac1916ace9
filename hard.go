package quantmf

// This file holds the limit ε → 0: the monotone plan of sorted samples, mass by
// mass (the north-west corner rule). Equal samples share their joint mass
// equally, which averages tied ranks and tied quantiles.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/transport"
)

// hardPlan is the plan: sample i holds the mass between lo_i and hi_i, that of
// all samples equal to it, and level j the mass between cum_j and cum_{j+1}.
// Masses are in units of 1/(nm), and so integers, where a and b are uniform:
// then ranks and shares are exact.
type hardPlan struct {
	x       []float64
	xs      []float64 // squashed
	y, a, b []float64
	perm    []int32
	lo, hi  []float64
	cum     []float64 // m+1 numbers from 0 on
	cuts    []float64 // m-1 thresholds between levels, in squashed x
	squash  transport.Squash
}

// snap is the difference of mass below which two boundaries count as one.
const snap = 1e-13

func newHardPlan(x []float64, c *config, m int) *hardPlan {
	n := len(x)
	h := &hardPlan{x: append([]float64(nil), x...), xs: make([]float64, n), y: make([]float64, m), a: make([]float64, n), b: make([]float64, m), perm: make([]int32, n),
		lo: make([]float64, n), hi: make([]float64, n), cum: make([]float64, m+1), cuts: make([]float64, m-1)}
	transport.Normalise(h.a, c.weights)
	transport.Normalise(h.b, c.targetWeights)
	if copy(h.y, c.targets) == 0 {
		for j := range h.y {
			h.y[j] = transport.Grid(j, m)
		}
	}
	h.squash = transport.NewSquash(transport.Kind(c.squash), x, nil, nil)
	h.squash.Apply(h.xs, x)
	var sorter order.Sorter
	sorter.Resize(n)
	sorter.Sort(h.perm, x)
	whole := 1.0
	uniform := c.weights == nil && c.targetWeights == nil
	if uniform {
		whole = float64(n) * float64(m)
	}
	for j, b := range h.b {
		h.cum[j+1] = h.cum[j] + b
		if uniform {
			h.cum[j+1] = float64(j+1) * float64(n)
		}
	}
	h.cum[m] = whole
	mass, level := 0.0, 0
	count := 0
	for p := 0; p < n; {
		end := p
		from := mass
		for ; end < n && h.x[h.perm[end]] == h.x[h.perm[p]]; end++ {
			mass += h.a[h.perm[end]]
			count++
		}
		if uniform {
			mass = float64(count) * float64(m)
		}
		if end == n {
			mass = whole
		}
		for h.cum[level] < mass-snap {
			level++
		}
		if math.Abs(h.cum[level]-mass) <= snap {
			mass = h.cum[level]
		}
		for _, i := range h.perm[p:end] {
			h.lo[i], h.hi[i] = from, mass
		}
		p = end
	}
	h.thresholds()
	return h
}

// thresholds fills cuts: the sample that two levels share, otherwise the middle between
// the last sample of one and the first of the next.
func (h *hardPlan) thresholds() {
	h.eachBoundary(func(J, left, right int) {
		h.cuts[J] = h.xs[left]
		if right != left {
			h.cuts[J] = elem.Middle(h.xs[left], h.xs[right])
		}
	})
}

// eachBoundary calls f for every J with the last sample of level J and the first of level
// J+1, the same one twice where the levels share it. Samples without mass do not count.
func (h *hardPlan) eachBoundary(f func(J, left, right int)) {
	p := 0
	n := len(h.x)
	for J := range h.cuts {
		for p < n-1 && h.hi[h.perm[p]] < h.cum[J+1] {
			p++
		}
		left := int(h.perm[p])
		right := left
		if h.hi[left] == h.cum[J+1] {
			for next := p + 1; next < n; next++ {
				if i := h.perm[next]; h.hi[i] > h.lo[i] && h.x[i] > h.x[left] {
					right = int(i)
					break
				}
			}
		}
		f(J, left, right)
	}
}

// eachShare calls f for every level that sample i shares mass with, in order, with
// the share.
func (h *hardPlan) eachShare(i int, f func(j int, share float64)) {
	whole := h.eachMass(i, func(int, float64) {})
	h.eachMass(i, func(j int, mass float64) { f(j, mass/whole) })
}

// eachMass calls f for every level that sample i and its equals share mass with, with that
// mass, and returns the sum. A sample without mass belongs to the level whose thresholds it
// lies between, with a mass of 1.
func (h *hardPlan) eachMass(i int, f func(j int, mass float64)) (whole float64) {
	lo, hi := h.lo[i], h.hi[i]
	if !(hi > lo) {
		j := 0
		for j < len(h.cuts) && h.cuts[j] < h.xs[i] {
			j++
		}
		f(j, 1)
		return 1
	}
	// first level that ends above lo
	a, z := 0, len(h.b)-1
	for a < z {
		if mid := (a + z) / 2; h.cum[mid+1] > lo {
			z = mid
		} else {
			a = mid + 1
		}
	}
	for j := a; j < len(h.b) && h.cum[j] < hi; j++ {
		if s := min(hi, h.cum[j+1]) - max(lo, h.cum[j]); s > 0 {
			f(j, s)
		}
	}
	return hi - lo
}

// average fills out with each sample's mean of q over its mass.
func (h *hardPlan) average(out, q []float64) {
	for i := range out {
		out[i] = h.at(i, q)
	}
	run := q[0]
	for _, i := range h.perm {
		run = max(run, min(out[i], q[len(q)-1]))
		out[i] = run
	}
}

// at returns sample i's mean of q over its mass.
func (h *hardPlan) at(i int, q []float64) float64 {
	first, sum := -1, 0.0
	whole := h.eachMass(i, func(j int, s float64) {
		if first < 0 {
			first = j
		}
		sum += float64(s * (q[j] - q[first]))
	})
	return q[first] + sum/whole
}

// sorted returns each level's mean of x over its mass.
func (h *hardPlan) sorted() []float64 {
	m := len(h.b)
	sum, mass, first := make([]float64, m), make([]float64, m), make([]float64, m)
	for _, i := range h.perm {
		if h.a[i] == 0 {
			continue
		}
		h.eachShare(int(i), func(j int, s float64) {
			w := float64(s * h.a[i])
			if mass[j] == 0 {
				first[j] = h.x[i]
			}
			mass[j] += w
			sum[j] += float64(w * (h.x[i] - first[j]))
		})
	}
	run := h.x[h.perm[0]]
	for j := range sum {
		if mass[j] > 0 {
			run = max(run, min(first[j]+sum[j]/mass[j], h.x[h.perm[len(h.perm)-1]]))
		}
		sum[j] = run
	}
	return sum
}

func (h *hardPlan) plan() Mat {
	p := NewMat(len(h.x), len(h.b))
	for i, a := range h.a {
		h.eachShare(i, func(j int, s float64) { p.Set(i, j, float64(a*s)) })
	}
	return p
}

// potentials returns f, g of the unregularised dual: g from the thresholds,
// f_i = min_j c_ij - g_j, with Σ b_j g_j = 0.
func (h *hardPlan) potentials() (f, g []float64) {
	g = make([]float64, len(h.b))
	mean := 0.0
	for j := 1; j < len(g); j++ {
		y0, y1, t := h.y[j-1], h.y[j], h.cuts[j-1]
		g[j] = g[j-1] + float64((y1-y0)*((y0-t)+(y1-t)))
		mean += float64(h.b[j] * g[j])
	}
	for j := range g {
		g[j] -= mean
	}
	f = make([]float64, len(h.x))
	for i, x := range h.xs {
		best := math.Inf(1)
		for j, y := range h.y {
			best = min(best, float64((x-y)*(x-y))-g[j])
		}
		f[i] = best
	}
	return f, g
}
