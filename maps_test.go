package quantmf

// Tests of the maps of a model and of their steps on q: EM under shrinkage, pinned ends,
// values of either sign, and the schedule of the rate.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestPinnedEnds: pinned, the ends of every map are the least and the greatest value
// of its row, from whatever start; in between, quantiles rise.
func TestPinnedEnds(t *testing.T) {
	x := first(toy(3), 12)
	for i := range x.Rows {
		for j := range x.Row(i) {
			x.Row(i)[j] += 3
		}
	}
	for _, start := range []Start{StartScores, StartNMF, StartUniform} {
		q := Fitted(t, FitQMF, x, 2, WithStart(start), WithEnds(EndsPinned),
			WithEpochs(3))
		for i := range x.Rows {
			lo, hi := math.Inf(1), 0.0
			for _, v := range x.Row(i) {
				lo, hi = min(lo, v), max(hi, v)
			}
			row := q.Quantiles.Row(i)
			if row[0] != lo || row[len(row)-1] != hi || !(row[1] > lo) {
				t.Errorf("%v, row %d: quantiles %v of values from %v to %v", start, i, row, lo, hi)
			}
		}
	}
}

// TestSchedule: the rate of a cosine begins at what was given; internal/qmf has how it falls.
func TestSchedule(t *testing.T) {
	x := first(toy(3), 12)
	r := random.Split(1, 1)
	draw := func() float64 { return 0.5 + r.Float64() }
	u, v := Drawn(12, 2, draw), Drawn(2, x.Cols, draw)
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		fit := func(s Schedule) Model {
			return Fitted(t, By(method), x, 2, WithInit(u, v), WithEpochs(1), WithSchedule(s))
		}
		NearAll(t, fit(ScheduleCosine).Reconstruct().Data, fit(ScheduleConstant).Reconstruct().Data, 0,
			"one epoch")
	}
}
