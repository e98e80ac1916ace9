package bqmf

import (
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// The metric of a row is that of its definition: the mean squares over its observed cells of the derivatives,
// taken by differences here, of a regression made anew; and a row that is the square of another one finds
// that one out among rows that say nothing of it. It does not depend on inner cells.
func TestMetric(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	q, s, p := stages(t, 5, 300, 0.1)
	const k, length = 3, 0.3
	s.fill(p, -1)
	view := slowView(s, k)
	r := s.room(0)
	s.take(r, k, 2)
	s.about(r, length)
	got := slices.Clone(r.metric.weights)
	if top := slices.Index(got, slices.Max(got)); top != 0 || got[1] > got[0]/3 || got[k] != 0 {
		t.Errorf("the metric of the square of row 0 is %v", got)
	}
	slow, few := []float64{1, 1, 1, 1, 1}, make([]int, radialLeast)
	slow[k] = 0
	for h := range few {
		few[h] = s.refs[h*len(s.refs)/radialLeast]
	}
	var over []int32
	for j, is := range r.on {
		if is > 0 {
			over = append(over, int32(j))
		}
	}
	y := s.line(s.filled, k)
	for range metricTurns {
		scaled(s, view, slow, few, length)
		var lines [][]float64
		for _, ref := range few {
			lines = append(lines, radialLine(s, view, slow, ref))
		}
		says := slowBeta(lines, y, over, metricRidge*float64(len(over)))
		next := make([]float64, len(slow))
		for l := range slow {
			const step = 1e-5
			for _, j := range over {
				at := func(by float64) float64 { // the regression where row l is moved
					moved := make([]float64, len(few))
					for h, ref := range few {
						square := 0.0
						for of, g := range slow {
							off := view[of][j] - s.line(s.filled, of)[ref]
							if of == l {
								off += by
							}
							square += g * off * off
						}
						moved[h] = math.Exp(-square)
					}
					return dot(says, moved)
				}
				next[l] += math.Pow((at(step)-at(-step))/(2*step), 2)
			}
		}
		most := slices.Max(next)
		for l := range slow {
			slow[l] = math.Max(next[l]/most, leastMetric)
		}
		slow[k] = 0
	}
	scaled(s, view, slow, s.refs, length)
	for l, want := range slow {
		Close(t, got[l]/want, 1, 1e-4, "a weight of the metric")
		if l == k-1 {
			break
		}
	}
	q.data.Rows[k].Each(q.n, func(j int) {
		if inner(k, j, 2) && q.data.Cols[j].Count == q.d { // what the factors say of others is as it was
			s.line(q.data.Y, k)[j] += 5
		}
	})
	s.take(r, k, 2)
	s.about(r, length)
	if !slices.Equal(got, r.metric.weights) {
		t.Error("inner cells touch the metric")
	}
}

// scaled divides a metric by 2cδ.
func scaled(s *stager, view [][]float64, metric []float64, refs []int, length float64) {
	mean := 0.0
	for _, ref := range refs {
		for j := range s.q.n {
			for l, g := range metric {
				mean += g * squareOf(view[l][j]-s.line(s.filled, l)[ref]) / float64(s.q.n*len(refs))
			}
		}
	}
	for l := range metric {
		metric[l] /= 2 * length * mean
	}
}
