package quadratic

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// fill adds rows of random numbers to a form and returns it with its dense copy.
func fill(k, rows int, src *random.Source) (Form, [][]float64) {
	f, h := New(k), make([][]float64, k)
	for c := range h {
		h[c] = make([]float64, k)
	}
	u := make([]float64, k)
	for range rows {
		for c := range u {
			u[c] = src.Float64()
		}
		slope, curvature := src.Float64()-0.7, src.Float64()
		f.Add(slope, curvature, u)
		for c := range u {
			for b := range u {
				h[c][b] += curvature * u[c] * u[b]
			}
		}
	}
	return f, h
}

func value(g []float64, h [][]float64, s []float64) float64 {
	v := 0.0
	for c := range s {
		v += g[c] * s[c]
		for b := range s {
			v += h[c][b] * s[c] * s[b] / 2
		}
	}
	return v
}

// TestBounded holds the bounded minimum against the best of all sets of unknowns
// at their bound, each solved by Gauss-Jordan elimination.
func TestBounded(t *testing.T) {
	src := random.Split(7, 0)
	for round := range 400 {
		k := 1 + round%5
		f, h := fill(k, 3*k, &src)
		v := make([]float64, k)
		for c := range v {
			v[c] = max(src.Float64()-0.3, 0)
		}
		f.Bounded(v, 1e-12)
		best := math.Inf(1)
		for set := range 1 << k {
			s, ok := eliminate(f.G, h, v, set)
			for c := range s {
				ok = ok && v[c]+s[c] >= -1e-12
			}
			if ok {
				best = min(best, value(f.G, h, s))
			}
		}
		for c, s := range f.S {
			if v[c]+s < 0 {
				t.Fatalf("round %d: unknown %d ends at %v", round, c, v[c]+s)
			}
		}
		if got := value(f.G, h, f.S); !(got <= best+1e-9*(1+math.Abs(best))) {
			t.Fatalf("round %d, %d unknowns: %v, the best of all sets has %v", round, k, got, best)
		}
	}
}

// eliminate solves for the unknowns out of set, those in it being at -v.
func eliminate(g []float64, h [][]float64, v []float64, set int) (s []float64, ok bool) {
	k := len(g)
	a := make([][]float64, k)
	for c := range a {
		a[c] = make([]float64, k+1)
		if set>>c&1 == 1 {
			a[c][c], a[c][k] = 1, -v[c]
			continue
		}
		copy(a[c], h[c])
		a[c][k] = -g[c]
	}
	for c := range a {
		pivot := c
		for b := c; b < k; b++ {
			if math.Abs(a[b][c]) > math.Abs(a[pivot][c]) {
				pivot = b
			}
		}
		a[c], a[pivot] = a[pivot], a[c]
		if math.Abs(a[c][c]) < 1e-12 {
			return nil, false
		}
		for b := range a {
			if b != c {
				f := a[b][c] / a[c][c]
				for j := range a[b] {
					a[b][j] -= f * a[c][j]
				}
			}
		}
	}
	s = make([]float64, k)
	for c := range s {
		s[c] = a[c][k] / a[c][c]
	}
	return s, true
}

// TestFactor: the solution of the damped equations, by their residual; and a form
// that is not positive is told.
func TestFactor(t *testing.T) {
	src := random.Split(8, 0)
	for round := range 100 {
		k := 1 + round%7
		f, h := fill(k, 2*k, &src)
		lambda := src.Float64()
		if !f.Factor(lambda, 0) {
			t.Fatalf("round %d: no factor", round)
		}
		x := append([]float64(nil), f.G...)
		f.Solve(x)
		for c := range x {
			sum := lambda * h[c][c] * x[c]
			for b := range x {
				sum += h[c][b] * x[b]
			}
			if times := f.Times(c, x) + lambda*h[c][c]*x[c]; math.Abs(sum-times) > 1e-12*(1+math.Abs(sum)) {
				t.Errorf("round %d: Times(%d) = %v, want %v", round, c, times, sum)
			}
			if math.Abs(sum-f.G[c]) > 1e-10 {
				t.Errorf("round %d: equation %d has %v, want %v", round, c, sum, f.G[c])
			}
		}
	}
	f := New(2)
	f.Add(0, 1, []float64{1, 2})
	if f.Factor(0, 0) {
		t.Error("a singular form has a factor")
	}
}

// TestBoundedFar: an unknown takes its whole step beside one of a far larger curvature, to which the ridge is set, also where a
// third one stays at its bound.
func TestBoundedFar(t *testing.T) {
	f := New(3)
	copy(f.G, []float64{1, -3, -5e20})
	for c, h := range []float64{1e24, 1, 1e20} {
		f.H[c*3+c] = h
	}
	f.Bounded([]float64{0, 1, 1}, 1e-12)
	for c, want := range []float64{0, 3, 5} {
		if !(math.Abs(f.S[c]-want) <= 1e-6*want) {
			t.Errorf("unknown %d moves by %v, want %v", c, f.S[c], want)
		}
	}
}
