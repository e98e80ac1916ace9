package transport

// Tests of the two methods that maximise the semi-dual.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestJudgeAtTheStep: whether a step is kept is told by the residual behind it, also in
// columns whose entries are all flushed. ε is so large that c_j = exp h_j/Σ exp h; the step
// brings a level of 1e-250 from e^200 times its weight to it, and leaves 0.1 in another, so
// that D falls behind it.
func TestJudgeAtTheStep(t *testing.T) {
	r := NewRow(nil, 8, 3)
	x := make([]float64, 8)
	for i := range x {
		x[i] = float64(i) / 7
	}
	r.Load(Problem{X: x, B: []float64{1, 1, 1e-250}, Squash: None, Epsilon: 1e6})
	for j, b := range r.b {
		r.try[j] = math.Log(b)
		r.h[j] = r.try[j]
	}
	r.try[1] += 0.1
	r.h[1] -= 0.05
	r.h[2] += 200
	for j := range r.dir {
		r.dir[j] = r.try[j] - r.h[j]
	}
	r.pass(r.h)
	s := descent{Outcome: Outcome{Passes: 2}, most: 100, farthest: r.logResidual(r.h, 1),
		slope: r.slope(r.dir), moved: true}
	if !(s.slope > 0 && math.Abs(s.farthest-200) < 1) {
		t.Fatalf("the step begins with a slope of %g at a residual of %g", s.slope, s.farthest)
	}
	r.pass(r.try)
	if behind := r.slope(r.dir); !(behind < -0.3*s.slope && r.c[2] < 1e-150) {
		t.Fatalf("behind the step the slope is %g after %g, and the last column holds %g", behind, s.slope,
			r.c[2])
	}
	s.judge(&r.dual)
	if s.Passes != 2 || r.h[1] != r.try[1] {
		t.Errorf("a step from a residual of 200 to one of a tenth was taken back; %d passes", s.Passes)
	}
}

// TestFlushedResidual: log(b/c) of columns that are flushed, at any potentials.
func TestFlushedResidual(t *testing.T) {
	src := random.Split(41, 0)
	for range 100 {
		n, m := 2+src.IntN(10), 2+src.IntN(5)
		x, b, at := make([]float64, n), make([]float64, m), make([]float64, m)
		for i := range x {
			x[i] = src.Float64()
		}
		for j := range b {
			b[j] = math.Pow(10, -280*src.Float64())
			at[j] = math.Log(b[j]) + Normal(&src)
		}
		b[0], at[0] = 1, 0
		r := NewRow(nil, n, m)
		r.Load(Problem{X: x, B: b, Squash: None, Epsilon: 0.5})
		r.pass(at)
		r.logResidual(at, 1)
		for j, b := range r.b {
			c := 0.0 // over b
			for i := range n {
				z := 0.0
				for k, h := range at {
					z += math.Exp(h + r.s[i]*r.cy[k])
				}
				c += math.Exp(at[j]-math.Log(b)+r.s[i]*r.cy[j]) / z / float64(n)
			}
			Near(t, r.logs[j], -math.Log(c), 1e-12*(1+math.Abs(at[j])), "log(b/c) at b = %g", b)
		}
	}
}

// TestSafeKeepsTheBest: the damped method hands back no worse a plan than the one that it
// began with, however few passes it is given, and the row stands at that plan.
func TestSafeKeepsTheBest(t *testing.T) {
	src := random.Split(42, 0)
	for trial := range 600 {
		n, m := 2+src.IntN(20), 2+src.IntN(10)
		x, b := make([]float64, n), make([]float64, m)
		for i := range x {
			x[i] = Normal(&src)
		}
		for j := range b {
			b[j] = math.Pow(10, -12*src.Float64())
		}
		r := NewRow(nil, n, m)
		r.Load(Problem{X: x, B: b, Squash: Logistic, Epsilon: math.Pow(10, -2-6*src.Float64())})
		for j := range r.h {
			r.h[j] = Normal(&src) / r.eps
		}
		r.pass(r.h)
		first, limit := r.relative(), 4+src.IntN(40)
		out := r.safe(1e-9, limit, Outcome{})
		if !(out.Error <= first) || out.Passes > limit {
			t.Errorf("trial %d, ε=%g: error %g after %d passes of %d, %g before", trial, r.eps, out.Error,
				out.Passes, limit, first)
		}
		Equal(t, r.relative(), out.Error, "trial %d: the error", trial)
		r.pass(r.h)
		Equal(t, r.relative(), out.Error, "trial %d: the error at h", trial)
	}
}
