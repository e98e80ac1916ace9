package monotone

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
)

// TestPinned: the step keeps the sum of the increments and never divides by
// nothing, however little weight a level has.
func TestPinned(t *testing.T) {
	r := random.Split(61, 0)
	for range 2000 {
		m := 1 + r.IntN(8)
		d, num, den := make([]float64, m), make([]float64, m), make([]float64, m)
		for l := range d {
			d[l], num[l], den[l] = math.Exp(10*normal(&r)), math.Exp(20*normal(&r)), math.Exp(5*normal(&r))
			if r.IntN(3) == 0 {
				num[l] = 0
			}
		}
		all := total(num)
		span := math.Exp(5 * normal(&r))
		before := total(d)
		pinned(d, num, den, span, 0)
		if total(d)-total(d) != 0 || all > 0 && math.Abs(total(d)-span) > 1e-9*span || all == 0 &&
			total(d) != before {
			t.Fatalf("num %v, den %v, span %v: %v", num, den, span, d)
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
			d[l], num[l], den[l] = math.Exp(2*normal(&r)), math.Exp(2*normal(&r)), math.Exp(2*normal(&r))
			if den[l] < den[least] {
				least = l
			}
		}
		was, span := slices.Clone(d), math.Exp(4*normal(&r))
		pinned(d, num, den, span, 0)
		for l, got := range d {
			want := was[l] * num[l] / (den[l] - den[least] + was[least]*num[least]/d[least])
			if math.Abs(got-want) > 1e-10*want {
				t.Fatalf("num %v, den %v, span %v: level %d has %v, want %v", num, den, span, l, got, want)
			}
		}
	}
}

// TestSignedStart: the step leaves a signed map at the q_1 that is best with its new increments, by squares
// and by λ (q_1 - prior)².
func TestSignedStart(t *testing.T) {
	r := random.Split(63, 0)
	for trial := range 100 {
		n, m, lambda := 5+r.IntN(20), 2+r.IntN(6), float64(trial%3)*4
		of := NewSpans(nil, 1, true)
		x := make([]float64, n)
		for j := range x {
			x[j] = normal(&r)
		}
		of.Read(x, 0, n, nil)
		p := New(nil, 1, m, false, false, of)
		s := Sums{Num: make([]float64, m), Den: make([]float64, m), Shares: make([]float64, m),
			Prior: make([]float64, m)}
		inc := p.Increments(0)
		inc[0], s.Prior[0] = of.Low[0], normal(&r)
		for l := 1; l < m; l++ {
			inc[l], s.Prior[l] = r.Float64(), r.Float64()
		}
		tails := make([][]float64, n) // of each sample, Σ_{j>=l} M_j
		for j := range tails {
			tail, at := make([]float64, m), 1.0
			for l := range tail {
				tail[l] = at
				at *= r.Float64()
			}
			tails[j] = tail
			fitted := 0.0
			for l, v := range tail {
				fitted += v * inc[l]
			}
			for l, v := range tail {
				s.Num[l] += v * x[j]
				s.Den[l] += v * fitted
				s.Shares[l] += v
			}
		}
		p.EM(0, s, divergence.Frobenius, lambda)
		rest := 0.0
		for j, tail := range tails {
			rest += x[j]
			for l, v := range tail {
				rest -= v * inc[l]
			}
		}
		if want := lambda * (inc[0] - s.Prior[0]); math.Abs(rest-want) > 1e-12*float64(n)*(1+lambda) {
			t.Fatalf("λ %v: residuals sum to %v, want %v", lambda, rest, want)
		}
	}
}

func normal(r *random.Source) float64 { return elem.NormalQuantile((r.Float64() + 0x1p-54)) }

func total(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}
