package quantmf

// This file holds soft order statistics that take few targets: single quantiles
// and the k largest values. A target whose weight is that of the wanted samples
// collects them; the samples between are collected by targets of their own, and
// forgotten. So the cost is that of two or three targets, not of n.
//
// The weights are what matters: with WithTargetWeights they give the same values
// through [Solve] and [Transport.Sort], and their gradients through
// [Transport.SortVJP].

import (
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/order"
)

// QuantileWeights returns target weights b with which [SoftSort] gives quantiles of a
// row: the quantile at levels[i] is SoftSort(x, WithTargetWeights(b))[at[i]]. Levels are
// in [0,1], in any order. Each quantile is the average over a share width of the samples,
// 0 < width <= 1, centred on its level and kept within [0,1]; where these shares would
// overlap, width is narrowed for all of them until they do not. Levels nearer to each
// other than a millionth of width count as the lowest of them.
//
// Errors: [*ShapeError] for no levels, [*OptionError] for the width, [*DataError] for a
// level.
func QuantileWeights(levels []float64, width float64) (b []float64, at []int, err error) {
	if len(levels) == 0 {
		return nil, nil, &ShapeError{What: "levels", Got: "none", Want: "at least one"}
	}
	if !(width > 0 && width <= 1) {
		return nil, nil, &OptionError{Option: "width", Value: ftoa(width), Bound: "must be above 0 and at most 1"}
	}
	for i, l := range levels {
		if !(l >= 0 && l <= 1) {
			return nil, nil, &DataError{Row: -1, Col: i, Value: l, Problem: "a level must be in [0,1]"}
		}
	}
	perm := make([]int32, len(levels))
	var sorter order.Sorter
	sorter.Resize(len(levels))
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
		if k == 2 && low && high { // each is moved by the other's wall
			width = min(width, 0.5)
		}
	}
	end, index := 0.0, make([]int, len(centers))
	for c, l := range centers {
		from := min(max(l-float64(width*0.5), end), 1-width)
		if from-end > snap { // the samples between
			b = append(b, from-end)
		} else {
			from = end
		}
		index[c] = len(b)
		b = append(b, width)
		end = from + width
	}
	if 1-end > snap {
		b = append(b, 1-end)
	}
	at = make([]int, len(levels))
	for i := range at {
		at[i] = index[slot[i]]
	}
	return b, at, nil
}

// SoftQuantiles reads quantiles off x: it returns one value for each of the given levels,
// in their order and in the units of x. Levels are in [0,1], 0.5 for the median, in any
// order. To map samples onto given quantile values instead, see [SoftQuantile].
//
// The quantile at a level is the average of x over a share 1/n of the samples about the
// level; see [QuantileWeights] for another share. At ε = 0 it is sorted x at the position
// pn - 1/2 for the level p, counted from 0 and linearly interpolated between neighbours
// (Hazen's rule), so the median is the usual one. For the rule that is the default of
// numpy and R, the position p(n-1), ask for the level (p(n-1) + 1/2)/n. Where levels are
// nearer to each other than 1/n all shares are narrowed until none overlap; to avoid
// that, ask for such levels in separate calls.
//
// Errors are those of [SoftSort], and a [*DataError] for a level outside [0,1]; cost that
// of 2p+1 targets for p levels.
func SoftQuantiles(x, levels []float64, opts ...Option) ([]float64, error) {
	b, at, err := QuantileWeights(levels, 1/float64(max(len(x), 1)))
	if err != nil {
		return nil, err
	}
	s, err := sortOnto(option.SoftQuantiles, x, b, opts)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(at))
	for i, j := range at {
		out[i] = s[j]
	}
	return out, nil
}

// TopKWeights returns the target weights that separate the k largest of n samples from
// the rest: n-k for the rest, then k ones (k ones alone where k = n). Any other k than 1
// <= k <= n is an [*OptionError].
func TopKWeights(n, k int) ([]float64, error) {
	if k < 1 || k > n {
		return nil, &OptionError{Option: "k", Value: itoa(k), Bound: "must be from 1 to the number of samples, " + itoa(n)}
	}
	if uint64(k) > maxCells {
		return nil, &OptionError{Option: "k", Value: itoa(k), Bound: "as many targets need too much memory"}
	}
	var b []float64
	if n > k {
		b = append(b, float64(n-k))
	}
	for range k {
		b = append(b, 1)
	}
	return b, nil
}

// SoftTopK returns soft versions of the k largest values of x, k numbers, the largest
// first, in the units of x; 1 <= k <= n. A soft mask of the samples they come from, n
// values in [0,1] of sum k, is SoftQuantile(x, {0, 1}, WithTargetWeights({n-k, k})).
// Errors are those of [SoftSort] and [TopKWeights]; cost that of k+1 targets.
func SoftTopK(x []float64, k int, opts ...Option) ([]float64, error) {
	b, err := TopKWeights(len(x), k)
	if err != nil {
		return nil, err
	}
	s, err := sortOnto(option.SoftTopK, x, b, opts)
	if err != nil {
		return nil, err
	}
	out := make([]float64, k)
	for i := range out {
		out[i] = s[len(s)-1-i]
	}
	return out, nil
}

func sortOnto(t option.Function, x, b []float64, opts []Option) ([]float64, error) {
	tr, err := solve(t, x, 0, b, opts, false)
	if err != nil {
		return nil, err
	}
	return tr.Sort(), nil
}
