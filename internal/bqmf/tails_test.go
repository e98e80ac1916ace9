package bqmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// problemOf returns the problem of rows, its scales made.
func problemOf(rows ...[]float64) *Problem {
	q := NewProblem(slices.Concat(rows...), len(rows), len(rows[0]), len(rows[0]), divergence.Frobenius,
		pool.New(1, 1))
	for i := range rows {
		q.Scale(0, i)
	}
	q.Scaled()
	return q
}

// slowTail is the place in x of t deviations beyond an end of a row, by the formula of tails.go.
func slowTail(y, x []float64, r, back func(float64) float64, t float64) float64 {
	k, sign := len(x), 1.0
	if t < 0 {
		y, x, sign = slices.Clone(y), slices.Clone(x), -1
		slices.Reverse(y)
		slices.Reverse(x)
	}
	m := min(int(math.Ceil(2*math.Sqrt(float64(k))))+1, k-1)
	up, along := 0.0, 0.0
	for h := range m {
		up += r(x[k-1-h]) - r(x[k-1-m])
		along += y[k-1-h] - y[k-1-m]
	}
	return back(r(x[k-1]) + sign*up/along*math.Abs(t))
}

// TestTails holds tails to their formula, under each r that a table can have, and to the bounds of a table.
func TestTails(t *testing.T) {
	same := func(v float64) float64 { return v }
	square := func(v float64) float64 { return max(v, 0) * max(v, 0) }
	src := random.Split(5, 5)
	for _, of := range []struct {
		name    string
		value   func(z float64) float64
		r, back func(float64) float64
		kind    tailKind
	}{
		{"lines", func(z float64) float64 { return 3 * z }, same, same, plainTail},
		{"squares", func(z float64) float64 { return square(3 + z) }, math.Sqrt, square, rootTail},
		{"powers", func(z float64) float64 { return math.Exp(2 * z) }, math.Log, math.Exp, logTail},
	} {
		rows := matrix(30, 60, func(int, int) float64 { return of.value(normal(&src)) })
		q := problemOf(rows...)
		if q.tails.kinds != [2]tailKind{of.kind, of.kind} {
			t.Errorf("%s: tails %v", of.name, q.tails.kinds)
			continue
		}
		for i, row := range rows {
			c := &q.scales[i]
			from, _ := slices.BinarySearch(c.X, slices.Min(row))
			to, _ := slices.BinarySearch(c.X, slices.Max(row))
			y, x := c.Y[from:to+1], c.X[from:to+1]
			if len(x) != len(row) || c.Seen != [2]float64{x[0], x[len(x)-1]} {
				t.Fatalf("%s: row %d has the values %v, seen %v", of.name, i, x, c.Seen)
			}
			for h, v := range c.X {
				step := c.Y[h] - y[0]
				if h > to {
					step = c.Y[h] - y[len(y)-1]
				} else if h >= from {
					continue
				}
				if of.kind == logTail && step > 1 {
					one := slowTail(y, x, of.r, of.back, 1)
					b := math.Log(one / x[len(x)-1])
					Close(t, v, one*(1+b*(step-1)), 1e-9*v, "%s", of.name)
				} else if v != q.tails.bounds[lower] {
					Close(t, v, slowTail(y, x, of.r, of.back, step), 1e-9*math.Abs(v), "%s", of.name)
				}
			}
			Near(t, c.Y[len(c.Y)-1]-y[len(y)-1], tailLength, 1e-12, "%s: deviations of a tail", of.name)
		}
	}
}

// TestTailEnds: tails end at the value that several rows have as their end, and at 0 where no value is
// negative; there is none at an end that comes often.
func TestTailEnds(t *testing.T) {
	src := random.Split(6, 5)
	percent := matrix(20, 30, func(i, _ int) float64 {
		return min(max(50+float64(10+2*i)*normal(&src), 0), 100)
	})
	rated := matrix(20, 30, func(int, int) float64 { return 1 + math.Floor(5*src.Float64()) })
	q := problemOf(percent...)
	Equal(t, q.tails.bounds, [2]float64{0, 100}, "the bounds of percentages")
	for i := range q.scales {
		if c := &q.scales[i]; c.X[0] < 0 || c.X[len(c.X)-1] > 100 {
			t.Errorf("row %d of percentages goes from %v to %v", i, c.X[0], c.X[len(c.X)-1])
		}
	}
	q = problemOf(rated...)
	for i := range q.scales {
		if c := &q.scales[i]; c.X[0] != 1 || c.X[len(c.X)-1] != 5 {
			t.Errorf("row %d of ratings goes from %v to %v", i, c.X[0], c.X[len(c.X)-1])
		}
	}
	q = problemOf([]float64{0, 0, 0, 0, 1, 2, 3, 9}, []float64{4, 5, 6, 7, 8, 9, 10, 11})
	if c := &q.scales[0]; c.X[0] != 0 || !(c.X[len(c.X)-1] > 9) {
		t.Errorf("a row whose least value comes four times goes from %v to %v", c.X[0], c.X[len(c.X)-1])
	}
	if c := &q.scales[1]; !(c.X[0] >= 0 && c.X[0] < 4) {
		t.Errorf("a row of no negative value goes from %v", c.X[0])
	}
}

// TestLeaveOutEnds: the cell at an end of a row is judged by the scale of the other cells, as if the cell had
// never been there.
func TestLeaveOutEnds(t *testing.T) {
	row := []float64{3, 1, 4, 1.5, 9, 2.6, 5.3, 5.8, 9.7, 9.3}
	other := []float64{2, 7, 1, 8, 2.8, 1.8, 2.9, 4, 5, 9}
	q := problemOf(row, other)
	p := Workers(t, 1)
	m := q.fitted(1, 1, p)
	of := q.leaveOut(m, p)
	l := &rowLearner{q: q, m: m, read: newLeaver(nil, q, m, of, q.reader.share())}
	l.read.each(0, 1, l.read.whole)
	l.take(0)
	l.spread()
	for side, at := range []int{1, 8} {
		rest := slices.Delete(slices.Clone(row), at, at+1)
		var s scaler
		var c Curve
		s.scale(&c, make([]float64, len(rest)), rest, nil, q.signed)
		c.grow(&q.tails, rest, found)
		e := l.end(row[at])
		if e == nil || e != &l.ends[side] || !slices.Equal(e.c.X, c.X) || !slices.Equal(e.c.Y, c.Y) {
			t.Errorf("the end at %v is judged by %v", row[at], e)
			continue
		}
		deviation := l.deviationWithout(at, l.y[at])
		Close(t, l.predict(at), e.table.Mean(l.without[at]/deviation, l.deviations[at]/deviation), 1e-12,
			"its prediction")
	}
	if l.end(row[0]) != nil {
		t.Error("a cell between the ends is judged as one of them")
	}
	sum, squares := 0.0, 0.0
	for h, y := range l.y[:len(row)] {
		if h != 4 {
			sum += y / 9
			squares += y * y / 9
		}
	}
	Close(t, l.deviationWithout(4, l.y[4]), math.Sqrt(squares-sum*sum), 1e-12, "the deviation of the others")
}

// TestMassBeyondTail: where the mass of an end that comes often goes beyond the first knots of its tail, the
// scale with mass rises all the same, on either side.
func TestMassBeyondTail(t *testing.T) {
	for side, sign := range []float64{1, -1} {
		x := make([]float64, 200)
		for j := range x {
			x[j] = sign * float64(max(j-19, 0)) / 1e6
		}
		x[199] = sign // far from the others, which lie by the tied end
		s, c := newScaler(nil, len(x)), Curve{}
		s.scale(&c, make([]float64, len(x)), x, nil, true)
		c.grow(&tails{bounds: [2]float64{math.Inf(-1), math.Inf(1)}}, x, found)
		for k := 1; k < len(c.MassY); k++ {
			if !(c.MassY[k] > c.MassY[k-1] && c.MassX[k] >= c.MassX[k-1]) {
				t.Fatalf("side %d: %v does not rise, or %v falls", side, c.MassY[:k+1], c.MassX[:k+1])
			}
		}
	}
}
