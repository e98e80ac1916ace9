package order

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/random"
)

// Bulk returns the lowest and the highest of v, at least one value, but for far ones: those beyond the
// shortest interval that holds 49 in 50 of the values by more than three times its length. So at most one in
// fifty is far, and the others would take less than a quarter of an axis that shows all. Where that interval
// is a point none is.
func Bulk(v []float64) (low, high float64) {
	without := (len(v) + 49) / 50 // that many the interval leaves out
	s := outer(v, without+1)
	last := len(s) - 1
	if len(v)-without < 2 {
		return s[0], s[last]
	}
	for a := range without + 1 {
		if from, to := s[a], s[last-without+a]; a == 0 || to-from < high-low {
			low, high = from, to
		}
	}
	reach := float64(3 * (high - low))
	if reach == 0 {
		return s[0], s[last]
	}
	first, _ := slices.BinarySearch(s, low-reach)
	for s[last] > high+reach {
		last--
	}
	return s[first], s[last]
}

// outer returns values of v in order: at least the count lowest and the count highest, about one in fifty of
// each, and where v is long not many of the others, which saves most of the sorting. The bounds of what is
// left out are those of a sample without one in twenty, and two more, at each end. Where a sample misleads,
// so that too few lie beyond its bounds, all are sorted.
func outer(v []float64, count int) []float64 {
	s := make([]float64, 0, len(v))
	if len(v) >= 50 {
		var r random.Source
		for range int(2 * math.Sqrt(float64(len(v)))) {
			s = append(s, v[r.IntN(len(v))])
		}
		slices.Sort(s)
		rank := 2 + len(s)/20
		low, high := s[rank], s[len(s)-1-rank]
		s = s[:0]
		for _, a := range v {
			if !(a > low && a < high) {
				s = append(s, a)
			}
		}
		slices.Sort(s)
		if s[count-1] <= low && s[len(s)-count] >= high {
			return s
		}
	}
	s = append(s[:0], v...)
	slices.Sort(s)
	return s
}

// Bend returns 1-R² of the best straight line through t as a function of w, but for far w (Bulk); 0 where
// either is constant. It changes both.
func Bend(w, t []float64) float64 {
	low, high := Bulk(w)
	bulk := 0
	for j := range w {
		if w[j] >= low && w[j] <= high {
			w[bulk], t[bulk] = w[j], t[j]
			bulk++
		}
	}
	w, t = w[:bulk], t[:bulk]
	n := float64(len(w))
	var mw, mt float64
	for j := range w {
		mw += w[j] / n
		mt += t[j] / n
	}
	var ww, wt, tt, scale float64
	for j := range w {
		scale = max(scale, math.Abs(t[j]-mt))
	}
	for j := range w {
		dw, dt := w[j]-mw, (t[j]-mt)/scale
		ww += float64(dw * dw)
		wt += float64(dw * dt)
		tt += float64(dt * dt)
	}
	if ww > 0 && tt > 0 && slices.Min(t) < slices.Max(t) {
		return min(max(1-float64(wt/ww*(wt/tt)), 0), 1)
	}
	return 0
}
