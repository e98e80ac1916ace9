package transport

// This file holds the transport in the limit ε → 0: the monotone plan of sorted samples, mass by
// mass (the north-west corner rule). Equal samples share their joint mass
// equally, which averages tied ranks and tied quantiles.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/order"
)

// Hard is the plan at ε = 0: sample i holds the mass between lo_i and hi_i, that of
// all samples equal to it, and level j the mass between cum_j and cum_{j+1}.
// Masses are in units of 1/(nm), and so integers, where a and b are uniform:
// then ranks and shares are exact.
type Hard struct {
	X       []float64
	xs      []float64 // squashed
	y, A, B []float64 // targets; weights of samples and of targets, each of sum 1
	Perm    []int32   // the samples in rising order
	lo, hi  []float64
	cum     []float64 // m+1 numbers from 0 on
	Cuts    []float64 // m-1 thresholds between levels, in squashed x
	Squash  Squash
}

// Snap is the difference of mass below which two boundaries count as one.
const Snap = 1e-13

// NewHard makes the plan of a problem of m targets, whose levels are not given by logits and whose samples
// are all observed.
func NewHard(p Problem, m int) *Hard {
	x, n := p.X, len(p.X)
	h := &Hard{X: append([]float64(nil), x...), xs: make([]float64, n), y: make([]float64, m),
		A: make([]float64, n), B: make([]float64, m), Perm: make([]int32, n),
		lo: make([]float64, n), hi: make([]float64, n), cum: make([]float64, m+1), Cuts: make([]float64, m-1)}
	Normalise(h.A, p.A)
	Normalise(h.B, p.B)
	if copy(h.y, p.Y) == 0 {
		for j := range h.y {
			h.y[j] = Grid(j, m)
		}
	}
	h.Squash = NewSquash(p.Squash, x, nil, nil)
	h.Squash.Apply(h.xs, x)
	var sorter order.Sorter
	sorter.Resize(nil, n)
	sorter.Sort(h.Perm, x)
	whole := 1.0
	uniform := p.A == nil && p.B == nil
	if uniform {
		whole = float64(n) * float64(m)
	}
	for j, b := range h.B {
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
		for ; end < n && h.X[h.Perm[end]] == h.X[h.Perm[p]]; end++ {
			mass += h.A[h.Perm[end]]
			count++
		}
		if uniform {
			mass = float64(count) * float64(m)
		}
		if end == n {
			mass = whole
		}
		for h.cum[level] < mass-Snap {
			level++
		}
		if math.Abs(h.cum[level]-mass) <= Snap {
			mass = h.cum[level]
		}
		for _, i := range h.Perm[p:end] {
			h.lo[i], h.hi[i] = from, mass
		}
		p = end
	}
	h.thresholds()
	return h
}

// thresholds fills cuts: the sample that two levels share, otherwise the middle between
// the last sample of one and the first of the next.
func (h *Hard) thresholds() {
	h.EachBoundary(func(J, left, right int) {
		h.Cuts[J] = h.xs[left]
		if right != left {
			h.Cuts[J] = elem.Middle(h.xs[left], h.xs[right])
		}
	})
}

// EachBoundary calls f for every J with the last sample of level J and the first of level
// J+1, the same one twice where the levels share it. Samples without mass do not count.
func (h *Hard) EachBoundary(f func(J, left, right int)) {
	p := 0
	n := len(h.X)
	for J := range h.Cuts {
		for p < n-1 && h.hi[h.Perm[p]] < h.cum[J+1] {
			p++
		}
		left := int(h.Perm[p])
		right := left
		if h.hi[left] == h.cum[J+1] {
			for next := p + 1; next < n; next++ {
				if i := h.Perm[next]; h.hi[i] > h.lo[i] && h.X[i] > h.X[left] {
					right = int(i)
					break
				}
			}
		}
		f(J, left, right)
	}
}

// EachShare calls f for every level that sample i shares mass with, in order, with
// the share.
func (h *Hard) EachShare(i int, f func(j int, share float64)) {
	whole := h.eachMass(i, func(int, float64) {})
	h.eachMass(i, func(j int, mass float64) { f(j, mass/whole) })
}

// eachMass calls f for every level that sample i and its equals share mass with, with that
// mass, and returns the sum. A sample without mass belongs to the level whose thresholds it
// lies between, with a mass of 1.
func (h *Hard) eachMass(i int, f func(j int, mass float64)) (whole float64) {
	lo, hi := h.lo[i], h.hi[i]
	if !(hi > lo) {
		j := 0
		for j < len(h.Cuts) && h.Cuts[j] < h.xs[i] {
			j++
		}
		f(j, 1)
		return 1
	}
	// first level that ends above lo
	a, z := 0, len(h.B)-1
	for a < z {
		if mid := (a + z) / 2; h.cum[mid+1] > lo {
			z = mid
		} else {
			a = mid + 1
		}
	}
	for j := a; j < len(h.B) && h.cum[j] < hi; j++ {
		if s := min(hi, h.cum[j+1]) - max(lo, h.cum[j]); s > 0 {
			f(j, s)
		}
	}
	return hi - lo
}

// Average fills out with each sample's mean of q over its mass.
func (h *Hard) Average(out, q []float64) {
	for i := range out {
		out[i] = h.at(i, q)
	}
	run := q[0]
	for _, i := range h.Perm {
		run = max(run, min(out[i], q[len(q)-1]))
		out[i] = run
	}
}

// at returns sample i's mean of q over its mass.
func (h *Hard) at(i int, q []float64) float64 {
	first, sum := -1, 0.0
	whole := h.eachMass(i, func(j int, s float64) {
		if first < 0 {
			first = j
		}
		sum += float64(s * (q[j] - q[first]))
	})
	return q[first] + sum/whole
}

// Sorted returns each level's mean of x over its mass.
func (h *Hard) Sorted() []float64 {
	m := len(h.B)
	sum, mass, first := make([]float64, m), make([]float64, m), make([]float64, m)
	for _, i := range h.Perm {
		if h.A[i] == 0 {
			continue
		}
		h.EachShare(int(i), func(j int, s float64) {
			w := float64(s * h.A[i])
			if mass[j] == 0 {
				first[j] = h.X[i]
			}
			mass[j] += w
			sum[j] += float64(w * (h.X[i] - first[j]))
		})
	}
	run := h.X[h.Perm[0]]
	for j := range sum {
		if mass[j] > 0 {
			run = max(run, min(first[j]+sum[j]/mass[j], h.X[h.Perm[len(h.Perm)-1]]))
		}
		sum[j] = run
	}
	return sum
}

// Potentials returns f, g of the unregularised dual: g from the thresholds,
// f_i = min_j c_ij - g_j, with Σ b_j g_j = 0.
func (h *Hard) Potentials() (f, g []float64) {
	g = make([]float64, len(h.B))
	mean := 0.0
	for j := 1; j < len(g); j++ {
		y0, y1, t := h.y[j-1], h.y[j], h.Cuts[j-1]
		g[j] = g[j-1] + float64((y1-y0)*((y0-t)+(y1-t)))
		mean += float64(h.B[j] * g[j])
	}
	for j := range g {
		g[j] -= mean
	}
	f = make([]float64, len(h.X))
	for i, x := range h.xs {
		best := math.Inf(1)
		for j, y := range h.y {
			best = min(best, float64((x-y)*(x-y))-g[j])
		}
		f[i] = best
	}
	return f, g
}
