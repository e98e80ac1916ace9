package transport

// This file holds the few levels that stand for many: a grid in place of as many levels as samples, and
// weights that gather samples about single quantiles.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/order"
)

// The default number of levels is n, but at most finest/√ε, or leastLevels where that is larger. A sample is
// spread over targets with a deviation of √(ε/2), of which a level is then a quarter at most (a third for
// ranks), and less in the tails: more levels change ranks by less than 1e-3 of n, heavy tails included, and
// sorted values by as much of their range, but in heavy tails and beside jumps (levels_test.go).
const (
	finest      = 6
	finestRanks = 4.5 // where nothing but ranks is asked for
	leastLevels = 4   // a cubic has four
)

// FewLevels returns how many levels stand for n of them at ε > 0; n where as many are needed. ranks tells
// that nothing but ranks is asked for.
func FewLevels(n int, epsilon float64, ranks bool) int {
	fine := float64(finest)
	if ranks {
		fine = finestRanks
	}
	if most := max(leastLevels, math.Ceil(fine/math.Sqrt(epsilon))); most < float64(n) {
		return int(most)
	}
	return n
}

// FewTargets fills targets with a regular grid of [0,1], and weights with those by which a sum over its
// levels is that over n targets of equal weight, for every function that is a cubic between neighbours:
// b = Lᵀ1/n, L the interpolation of [ToPlaces].
func FewTargets(targets, weights []float64, n int) {
	for j := range targets {
		targets[j] = Grid(j, len(targets))
	}
	clear(weights)
	for k := range n {
		AddLevels(weights, k, n, 1/float64(n))
	}
}

// sharesOf returns where place k of n lies among m levels, both regular in [0,1]: the first of the four
// levels about it, and the shares of these in the cubic through them (Lagrange's), whose sum is 1.
func sharesOf(k, n, m int) (first int, shares [4]float64) {
	t := float64(k) * float64(m-1) / float64(n-1)
	first = max(min(int(t)-1, m-4), 0)
	t -= float64(first)
	a, b, c := t-1, t-2, t-3
	return first, [4]float64{-a * b * c / 6, t * b * c / 2, -t * a * c / 2, t * a * b / 6}
}

// ToPlaces fills to with the values at all places, from those of chosen levels.
func ToPlaces(to, levels []float64) {
	for k := range to {
		first, shares := sharesOf(k, len(to), len(levels))
		sum := 0.0
		for j, s := range shares {
			sum += float64(levels[first+j] * s)
		}
		to[k] = Saturate(sum)
	}
}

// SortedPlaces fills to with the sorted values of x at all places, from those of chosen levels: as ToPlaces
// does, in the range of x and without the falls that a cubic may have beside a jump.
func SortedPlaces(to, levels, x []float64) {
	ToPlaces(to, levels)
	last, high := slices.Min(x), slices.Max(x)
	for k, v := range to {
		last = min(max(last, v), high)
		to[k] = last
	}
}

// AddLevels adds to levels the transposed Jacobian of ToPlaces applied to z at place k of n.
func AddLevels(levels []float64, k, n int, z float64) {
	first, shares := sharesOf(k, n, len(levels))
	for j, s := range shares {
		levels[first+j] += float64(z * s)
	}
}

// QuantileWeights returns target weights of which those of the targets at[i] gather the samples about
// levels[i], each a share width of them or, where these would overlap, less.
func QuantileWeights(levels []float64, width float64) (b []float64, at []int) {
	perm := make([]int32, len(levels))
	var sorter order.Sorter
	sorter.Resize(nil, len(levels))
	sorter.Sort(perm, levels)
	// The centres, equal levels once.
	var centers []float64
	slot, near := make([]int, len(levels)), 1e-6*width
	for _, i := range perm {
		if k := len(centers); k == 0 || levels[i]-centers[k-1] > near {
			if k > 0 {
				width = min(width, levels[i]-centers[k-1])
			}
			centers = append(centers, levels[i])
		}
		slot[i] = len(centers) - 1
	}
	if k := len(centers); k > 1 { // the outer shares may have been moved inwards by half a width
		low, high := centers[0] < width/2, 1-centers[k-1] < width/2
		if low {
			width = min(width, centers[1]/1.5)
		}
		if high {
			width = min(width, (1-centers[k-2])/1.5)
		}
		if k == 2 && low && high { // both shares are moved inwards, towards each other
			width = min(width, 0.5)
		}
	}
	end, index := 0.0, make([]int, len(centers))
	for c, l := range centers {
		from := min(max(l-float64(width*0.5), end), 1-width)
		if from-end > Snap { // the samples between
			b = append(b, from-end)
		} else {
			from = end
		}
		index[c] = len(b)
		b = append(b, width)
		end = from + width
	}
	if 1-end > Snap {
		b = append(b, 1-end)
	}
	at = make([]int, len(levels))
	for i := range at {
		at[i] = index[slot[i]]
	}
	return b, at
}
