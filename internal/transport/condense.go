package transport

// This file holds the samples of a row of many samples condensed. A function f of x̃ that a solve sums over
// the samples, such as M_j, is smooth: it hardly changes while the logits s Y_j move against each other by a
// fraction of 1. The range of x̃ is cut into bins. The samples of a bin, with weights v_i >= 0, are replaced
// by the two points of Gauss' quadrature, whose weights ω are positive too and which have the moments up to
// the third of the samples:
//
//	Σ_i v_i f(x̃_i) = Σ_g ω_g f(ξ_g) + E,   |E| <= max|f⁗|/24 · (δ⁴/64) Σ_i v_i,   δ the width of a bin.
//
// Let u = 2δ(y_m-y_1)/ε be how far the logits of the outer levels move against each other over a bin. For f =
// M_j, and for M_j/T with q >= 0, f⁗ consists of moments of levels under a tilted M times f: |f⁗| δ⁴ <= 3.3 f
// u⁴, and f is at most e^u times as large elsewhere in the bin. So such a sum has a relative error of at most
// u⁴/300 ([condensed.bound]). In practice it is some thousand times smaller, because a sample is shared by
// few neighbouring levels. A sum of M_j M_k, whose logarithm changes twice as fast, has a bound 16 times as
// large; no condition that a solution meets depends on such a sum. A sum of x/max(T, low) has no such bound
// where T meets the floor low within a bin: the ratio has a kink there.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

// condensed is the samples of a row in bins.
type condensed struct {
	// ready says that the points are those of the samples that are loaded. Loading a problem, or another
	// change of samples, targets or ε, makes it false.
	ready bool
	bound float64   // of the relative error of sums of positive terms
	sums  []float64 // of each bin four numbers Σ v t^p, t being the place in the bin from -1/2 to 1/2
	// The points, as samples of problems of their own, X being centred as that of the row.
	quadrature *dual // with the weights a
	weighed    *dual // with other weights: see Row.Gather
}

// Condenses tells whether rows of n samples are solved by points, where these are good enough.
func Condenses(n int) bool { return n >= condensedFrom }

// makePoints makes the room for points.
func (r *dual) makePoints() {
	k := &r.condensed
	k.sums = r.memory.Floats(4, condensedBins)
	for _, p := range []**dual{&k.quadrature, &k.weighed} {
		*p = new(dual)
		(*p).memory = r.memory
		(*p).resize(2*condensedBins, r.m)
		(*p).form = powers
		(*p).reserve()
	}
}

// condense makes points of the samples, where these are many and the points are good enough, and fills mass
// with the weights of the bins.
func (r *dual) condense() bool {
	k := &r.condensed
	k.ready = false
	if r.n < condensedFrom || !r.blurred() {
		return false
	}
	u := 4 * r.steep * r.edge / condensedBins
	k.bound = float64(u*u) * float64(u*u) / 300
	if !(k.bound <= condensedError) {
		return false
	}
	if k.quadrature == nil {
		r.makePoints()
	}
	by, weight := r.a[:r.n], 1.0
	if r.even {
		by, weight = nil, r.a[0]
	}
	r.bin(by)
	for p := range r.mass {
		r.mass[p] = k.sums[4*p] * weight
	}
	r.setQuadrature(k.quadrature, weight)
	k.ready = true
	return true
}

// bin fills sums with the moments of the samples of each bin under weights >= 0; nil: 1.
func (r *dual) bin(weights []float64) {
	sums, bins := r.condensed.sums, r.bins()
	clear(sums)
	if weights == nil {
		kernel.BinMoments(sums, r.cx[:r.n], &bins)
		return
	}
	kernel.BinWeights(sums, r.cx[:r.n], weights, &bins)
}

// bins returns where the bins lie in X.
func (r *dual) bins() kernel.Bins {
	return kernel.Bins{First: r.extent[0] - r.xc, Scale: condensedBins / (r.extent[1] - r.extent[0]),
		Last: condensedBins - 1}
}

// setQuadrature makes f the points of sums, times a weight.
func (r *dual) setQuadrature(f *dual, weight float64) {
	const (
		flat = 1e-10 // the variance, in squared widths of a bin, up to which one point stands for a bin
		half = 0.5
	)
	bins := r.bins()
	// f gets room for all points, and is cut to those there are.
	f.resize(2*condensedBins, r.m)
	n := 0
	put := func(bin int, t, w float64) {
		f.cx[n], f.a[n] = bins.First+(float64(bin)+half+min(max(t, -half), half))/bins.Scale, w*weight
		n++
	}
	for p := range condensedBins {
		s := (*[4]float64)(r.condensed.sums[4*p:])
		if !(s[0] > 0) {
			continue
		}
		mean := s[1] / s[0]
		variance := s[2]/s[0] - float64(mean*mean)
		first, last := -half-mean, half-mean // the edges, seen from the mean
		if !(variance > flat) || first >= 0 || last <= 0 {
			put(p, mean, s[0])
			continue
		}
		third := s[3]/s[0] - float64(mean*(float64(3*variance)+float64(mean*mean)))
		skew := third / (2 * variance)
		root := math.Sqrt(variance + float64(skew*skew))
		low, high := skew-root, skew+root // low·high = -variance
		// Of samples that lie near each other at an edge the third moment has lost its digits, and a point
		// may come to lie beyond the edge. The points then are the edge and another that leaves mean and
		// variance as they are.
		if low < first {
			low, high = first, -variance/first
		}
		if high > last {
			low, high = -variance/last, last
		}
		put(p, mean+low, s[0]*(high/(high-low)))
		put(p, mean+high, s[0]*(-low/(high-low)))
	}
	if n == 0 { // all weights are 0
		put(0, 0, 0)
	}
	np := kernel.Pad(n)
	for i := n; i < np; i++ {
		f.cx[i], f.a[i] = f.cx[0], 0
	}
	f.cut(n)
	f.done = r.done
	f.setTargets(r.y)
	f.even = false
	f.setEpsilon(r.eps)
}

// cut leaves the first n samples of more.
func (r *dual) cut(n int) {
	r.n, r.np = n, kernel.Pad(n)
	for _, p := range []*[]float64{&r.x, &r.xs, &r.a, &r.cx, &r.s, &r.z, &r.v} {
		*p = (*p)[:r.np]
	}
	r.setTiles()
}

// solveQuadrature brings h to the solution of the problem of the points, where a solve of it converges.
func (r *dual) solveQuadrature() (converged bool) {
	f := r.condensed.quadrature
	copy(f.h, r.h)
	copy(f.b, r.b)
	goal := max(condensedTo, f.roundingFloor())
	converged = f.descend(goal, goal, 16, 16, false).Converged
	if converged {
		copy(r.h, f.h)
	}
	return converged
}

// quadratureError bounds the relative error of column sums over the points at their solution.
func (r *dual) quadratureError() float64 {
	return r.condensed.quadrature.relative() + r.condensed.bound
}

// takeQuadrature takes the sums over the points, at their solution, as those of the samples. It returns
// false, and takes none, where the forms of the two matrices do not allow it.
func (r *dual) takeQuadrature() bool {
	f := r.condensed.quadrature
	if f.form != powers { // targets that are not regular have no powers
		return false
	}
	r.aim(r.h)
	if r.form != powers || f.knows == triangled {
		r.stands = stale
		return false
	}
	f.expand()
	copy(r.mu, f.mu)
	copy(r.g, f.g)
	copy(r.c, f.c)
	r.knows = expanded
	return true
}
