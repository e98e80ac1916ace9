package quantmf

// Tests of T as a function: its values at the samples, range, slope, inverse and order, at
// tiny weights too, and the numbers of a wide range that it is computed in.

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

func TestMap(t *testing.T) {
	for seed := range 36 {
		p := randomPoint(seed, seed%3 > 0, Squash(seed%2), []float64{0.3, 0.03, 0.001, 0}[seed%4])
		tr := p.solve(t)
		f := Must(tr.Map(p.q))(t)
		T, _ := tr.Quantile(p.q)
		for i, x := range p.x {
			Near(t, f.At(x), T[i], 1e-12*LargestOf(p.q), "seed %d: the map at a sample", seed)
			if p.eps == 0 {
				continue
			}
			h := 1e-6
			slope := (f.At(x+h) - f.At(x-h)) / (2 * h)
			Close(t, f.Slope(x), slope, 1e-4, "seed %d: slope", seed)
			back, err := f.Invert(T[i])
			if err != nil {
				if _, ok := err.(*DataError); !ok {
					t.Errorf("seed %d: %v", seed, err)
				}
				continue
			}
			Near(t, f.At(back), T[i], 1e-12*LargestOf(p.q), "seed %d: inverse of %v is %v, which maps to",
				seed, T[i], back)
		}
		if _, err := f.Invert(p.q[0] - 1); err == nil {
			t.Error("a value below the range was inverted")
		}
		x := p.x[0]
		last := f.At(x)
		for range 5000 {
			x = math.Nextafter(x, 1e300)
			if v := f.At(x); v < last {
				t.Fatalf("seed %d: the map falls at %v", seed, x)
			} else {
				last = v
			}
		}
		if !math.IsNaN(f.At(math.NaN())) || f.At(math.Inf(-1)) > f.At(math.Inf(1)) {
			t.Error("ends")
		}
	}
}

// TestMapTinyWeights: levels of weights down to 1e-300, which no ratio of neighbours can be
// clamped for: a map still agrees with Quantile at the samples, and with a plain softmax
// of logits elsewhere, and does not fall.
func TestMapTinyWeights(t *testing.T) {
	x := []float64{-1, 0, 0.3, 2, 2.5}
	for _, b := range [][]float64{{1, 1e-140, 1}, {1, 1e-200, 1}, {1, 1e-160, 1e-280, 1},
		{1e-200, 1, 1e-200, 1, 1e-200}, {1, 1e-250, 1e-120, 1e-250, 1, 1}} {
		for _, eps := range []float64{1, 0.1, 0.01} {
			q := make([]float64, len(b))
			for j := range q {
				q[j] = float64(j*j) - 3
			}
			tr := Solved(t, x, WithTargetWeights(b), WithEpsilon(eps))
			f, _ := tr.Map(q)
			T, _ := tr.Quantile(q)
			for i, v := range x {
				if math.Abs(f.At(v)-T[i]) > 1e-10*LargestOf(q) {
					t.Errorf("b %v, ε %v: map %v at %v, quantile %v", b, eps, f.At(v), v, T[i])
				}
			}
			last := math.Inf(-1)
			for v := -60.0; v < 60; v += 1.0 / 64 {
				s := f.of.Squash.At(v)
				logits := make([]float64, len(b))
				for j := range logits { // up to what depends on s alone
					y := float64(j) / float64(len(b)-1)
					logits[j] = (tr.G[j] + float64(2*s*y) - float64(y*y)) / eps
				}
				norm, want := transport.LogSum(logits), 0.0
				for j, l := range logits {
					want += q[j] * math.Exp(l-norm)
				}
				got := f.At(v)
				if math.Abs(got-want) > 1e-9*LargestOf(q) {
					t.Errorf("b %v, ε %v: map %v at %v, softmax %v", b, eps, got, v, want)
				}
				if got < last {
					t.Errorf("b %v, ε %v: the map falls at %v", b, eps, v)
				}
				last = got
				if t.Failed() {
					return
				}
			}
		}
	}
}

// TestSlopeBothSides: the slope keeps its digits on either side of a step, however far. Of
// two levels it is Δq·rate/(4 cosh²(rate·(x-t)/2)).
func TestSlopeBothSides(t *testing.T) {
	tr := Solved(t, []float64{0, 1}, WithTargets([]float64{0, 1}), WithSquash(SquashNone),
		WithEpsilon(0.01))
	f, _ := tr.Map([]float64{0, 3})
	for _, d := range []float64{0, 0.01, 0.1, 0.2, 0.5, 1, 1.7} {
		c := math.Cosh(100 * d)
		want := 3 * 200 / (4 * c * c)
		for _, x := range []float64{0.5 - d, 0.5 + d} {
			if got := f.Slope(x); math.Abs(got-want) > 1e-11*want {
				t.Errorf("slope %v at %v, want %v", got, x, want)
			}
		}
	}
}
