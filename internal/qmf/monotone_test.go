package qmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestPinned: the step keeps the sum of the increments and never divides by
// nothing, however little weight a level has.
func TestPinned(t *testing.T) {
	r := random.Split(61, 0)
	for range 2000 {
		m := 1 + r.IntN(8)
		d, num, den := make([]float64, m), make([]float64, m), make([]float64, m)
		for l := range d {
			d[l], num[l], den[l] = math.Exp(10*Normal(&r)), math.Exp(20*Normal(&r)), math.Exp(5*Normal(&r))
			if r.IntN(3) == 0 {
				num[l] = 0
			}
		}
		all := TotalOf(num)
		span := math.Exp(5 * Normal(&r))
		before := TotalOf(d)
		pinned(d, num, den, span, 0)
		if TotalOf(d)-TotalOf(d) != 0 || all > 0 && math.Abs(TotalOf(d)-span) > 1e-9*span || all == 0 &&
			TotalOf(d) != before {
			t.Fatalf("num %v, den %v, span %v: %v", num, den, span, d)
		}
	}
}

// TestPinnedEnds: a level that nothing asks for divides nothing by nothing, whatever its den; and where the
// sum is right already nothing moves, however small a den is.
func TestPinnedEnds(t *testing.T) {
	d := []float64{1, 1}
	pinned(d, []float64{5e-41, 1}, []float64{1e-40, 1}, 1.5, 0)
	NearAll(t, d, []float64{0.5, 1}, 1e-12, "increments")
	for k := 0.0; k < 200; k++ {
		d := []float64{1, 1}
		pinned(d, []float64{1, 0}, []float64{2, 1 + 0x1p-52*k}, 1, 0)
		if d[0] != 1 || d[1] != 0 {
			t.Fatalf("%v", d)
		}
	}
}

// TestPinnedStep: the step is D num/(den+μ) for one μ, which the level of the least den tells.
func TestPinnedStep(t *testing.T) {
	r := random.Split(62, 0)
	for range 500 {
		m := 1 + r.IntN(8)
		d, num, den := make([]float64, m), make([]float64, m), make([]float64, m)
		least := 0
		for l := range d {
			d[l], num[l], den[l] = math.Exp(2*Normal(&r)), math.Exp(2*Normal(&r)), math.Exp(2*Normal(&r))
			if den[l] < den[least] {
				least = l
			}
		}
		was, span := slices.Clone(d), math.Exp(4*Normal(&r))
		pinned(d, num, den, span, 0)
		for l, got := range d {
			want := was[l] * num[l] / (den[l] - den[least] + was[least]*num[least]/d[least])
			Near(t, got, want, 1e-10*want, "num %v, den %v, span %v: level %d", num, den, span, l)
		}
	}
}

// TestEM: the step of increments and slope is that of the package comment. (Without shrinkage q_1 is pulled
// by 0 times a finite number: whether it is pulled then is the same.)
func TestEM(t *testing.T) {
	for _, c := range []struct {
		x, want             []float64
		first, lambda, line float64
	}{
		{[]float64{1, 2, 3, 6}, []float64{4, 5e-12, 10}, 2, 0, 0.75},
		{[]float64{3, 3, 3, 3}, []float64{4, 3e-15, 10}, 2, 0, 0.75},
		{[]float64{1, 2, 3, 6}, []float64{3, 2. / 3, 23. / 3}, 2, 2, 2.5 / 3},
		{[]float64{-2, 0, 3, 3}, []float64{-49. / 18, 4. / 3, 8}, -1, 0, 19. / 36},
		{[]float64{-2, 0, 3, 3}, []float64{(1.5 - 37./27 - 7./9 - 19./12) / 1.5, 14. / 9, 19. / 3}, -1, 2,
			37. / 54},
	} {
		of := newSpans(nil, 1, c.x[0] < 0)
		of.Read(c.x, 0, len(c.x), nil)
		p, loss := newMaps(nil, 1, 3, false, false, of), divergence.KL
		if of.Signed {
			loss = divergence.Frobenius
		}
		copy(p.Inc, []float64{c.first, 3, 5})
		p.S[0] = 0.5
		p.EM(0, emSums{Num: []float64{4, 0, 6}, Den: []float64{2, 5, 3}, Shares: []float64{4, 2, 1},
			Prior: []float64{1, 2, 3}, Line: lineSums{Num: 3, Den: 2, Share: 8, Prior: 1}}, loss, c.lambda)
		for l, want := range c.want {
			Near(t, p.Inc[l], want, 1e-14*math.Abs(want), "%v, λ %v: increment %d", c.x, c.lambda, l)
		}
		Near(t, p.S[0], c.line, 1e-15, "%v, λ %v: slope", c.x, c.lambda)
	}
}

// TestCeilings: where almost no share of the row is left, increments and slopes of signed data stay below
// 1e12 times the row's range.
func TestCeilings(t *testing.T) {
	of := newSpans(nil, 1, true)
	of.Read([]float64{-2, 0, 3, 3}, 0, 4, nil)
	p := newMaps(nil, 1, 2, false, false, of)
	p.Inc[1], p.S[0] = 3, 0.5
	p.EM(0, emSums{Num: []float64{0, 6}, Den: []float64{0, 1e-30}, Shares: []float64{4, 0}, Prior: p.Inc,
		Line: lineSums{Num: 1e20, Den: 0, Share: 1}}, divergence.Frobenius, 0)
	if p.Inc[1] != 5e12 || p.S[0] != 2e13 {
		t.Errorf("an increment of %v, a slope of %v", p.Inc[1], p.S[0])
	}
}

// TestStepR: Adam gets the gradient along R, here of Σ g_l q_l, as differences have it.
func TestStepR(t *testing.T) {
	const m, unit = 4, 3
	for _, c := range []struct{ spans, signed, pinned bool }{{}, {spans: true}, {true, true, false},
		{true, false, true}, {true, true, true}} {
		var of *Spans
		if c.spans {
			of = newSpans(nil, 1, c.signed)
			of.Read([]float64{-1, 4, 6}, 0, 3, nil)
		}
		p := newMaps(nil, 1, m, true, c.pinned, of)
		if p.S != nil {
			t.Error("a line beside Adam")
		}
		copy(p.R, []float64{0.5, -0.7, 0.2, 0.9})
		g, q := []float64{1, -2, 5, 0.5}, make([]float64, m)
		value := func() (s float64) {
			p.FromR(0)
			p.Quantiles(q, 0)
			for j, v := range q {
				s += unit * g[j] * v
			}
			return s
		}
		want := make([]float64, m)
		for l := range want {
			want[l] = Derivative(&p.R[l], 1e-5, value)
		}
		p.FromR(0)
		p.Quantiles(q, 0)
		if c.pinned && (q[0] != -1 || math.Abs(q[m-1]-6) > 1e-14) {
			t.Errorf("pinned quantiles %v", q)
		}
		if !c.pinned && math.Abs(q[m-1]-q[m-2]-math.Exp(p.R[m-1])) > 1e-14 {
			t.Errorf("quantiles %v of logarithms %v", q, p.R)
		}
		p.StepR(0, slices.Clone(g), unit, pace{Rate: 0, Count: 1})
		for l, v := range want {
			Close(t, p.MomR.Mu[l]/(1-beta1), v, 1e-8, "%+v: gradient %d", c, l)
		}
	}
}

// TestSpans: extremes, mean and mass are of the visible cells, by their weights.
func TestSpans(t *testing.T) {
	of := newSpans(nil, 3, false)
	of.Read([]float64{4, math.NaN(), 1, 4}, 0, 3, nil)
	of.Read([]float64{4, math.NaN(), 1, 4}, 1, 3, []float64{1, 9, 2, 3})
	of.Read([]float64{2, 2, math.NaN()}, 2, 2, nil)
	for i, want := range [][4]float64{{1, 4, 3, 3}, {1, 4, 3, 6}, {2, 2, 2, 2}} {
		got := [4]float64{of.Low[i], of.High[i], of.Average[i], of.Mass[i]}
		if got != want || of.Constant(i) != (i == 2) {
			t.Errorf("row %d: %v, want %v; constant %v", i, got, want, of.Constant(i))
		}
	}
	if a, b := LeastAtStart(0), LeastAtStart(2); a != 1 || b != 2*FloorStart {
		t.Errorf("least at the start: %v of 0, %v of 2", a, b)
	}
	for _, line := range []bool{false, true} {
		if p := newMaps(nil, 1, 2, false, !line, of); (p.S != nil) != line || p.R != nil {
			t.Errorf("without Adam, pinned %v: a line %v, logarithms %v", !line, p.S, p.R)
		}
	}
}

// TestWarmIndex: what is said of warm starts is read back, and what is neither 0 nor 1 is refused.
func TestWarmIndex(t *testing.T) {
	f := Must(section.Decode(section.Encode(section.QMF, nil), section.QMF, section.KindName, nil, nil))(t)
	states, back := []transport.Warm{{Valid: true}, {}}, []transport.Warm{{}, {Valid: true}}
	index := appendWarm([]uint64{7}, states)
	if err := TakeWarm(f, back, index, 1); err != nil || !back[0].Valid || back[1].Valid {
		t.Errorf("%v of %v: %v", back, index, err)
	}
	if TakeWarm(f, back, index, 0) == nil {
		t.Error("7 is read")
	}
}
