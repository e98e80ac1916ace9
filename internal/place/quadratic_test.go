package place

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// fillForm adds rows of random numbers to a form and returns it with its dense copy.
func fillForm(k, rows int, src *random.Source) (quadratic, [][]float64) {
	f, h := newQuadratic(k), make([][]float64, k)
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

// slopeAt is the slope of the form in unknown c where the unknowns have moved by s, and the size of its
// terms.
func slopeAt(g []float64, h [][]float64, s []float64, c int) (slope, size float64) {
	slope, size = g[c], math.Abs(g[c])
	for b, x := range s {
		slope += h[c][b] * x
		size += math.Abs(h[c][b] * x)
	}
	return slope, size
}

// without solves for the unknowns out of set, those in it being at -v.
func without(g []float64, h [][]float64, v []float64, set int) []float64 {
	a, to := make([][]float64, len(g)), make([]float64, len(g))
	for c := range a {
		a[c], to[c] = slices.Clone(h[c]), -g[c]
		if set>>c&1 == 1 {
			clear(a[c])
			a[c][c], to[c] = 1, -v[c]
		}
	}
	inverse, _ := Inverse(a)
	s := make([]float64, len(g))
	for c, row := range inverse {
		s[c] = dot(row, to)
	}
	return s
}

// TestFactor: the solution of the damped equations, by their residual; and a form
// that is not positive is told.
func TestFactor(t *testing.T) {
	src := random.Split(8, 0)
	for round := range 100 {
		k := 1 + round%7
		f, h := fillForm(k, 2*k, &src)
		lambda := src.Float64()
		if !f.Factor(lambda, 0) {
			t.Fatalf("round %d: no factor", round)
		}
		x := slices.Clone(f.G)
		f.Solve(x)
		for c := range x {
			sum := dot(h[c], x)
			Close(t, f.Times(c, x), sum, 1e-12, "round %d: Times(%d)", round, c)
			Near(t, sum+lambda*h[c][c]*x[c], f.G[c], 1e-10, "round %d: equation %d", round, c)
		}
	}
	f := newQuadratic(2)
	f.Add(0, 1, []float64{1, 2})
	if f.Factor(0, 0) {
		t.Error("a singular form has a factor")
	}
}

// TestBoundedFar: an unknown takes its whole step beside one of a far larger curvature, to which the ridge is
// set, also where a third one stays at its bound.
func TestBoundedFar(t *testing.T) {
	f := newQuadratic(3)
	copy(f.G, []float64{1, -3, -5e20})
	for c, h := range []float64{1e24, 1, 1e20} {
		f.H[c*3+c] = h
	}
	f.Bounded([]float64{0, 1, 1}, 1e-12)
	for c, want := range []float64{0, 3, 5} {
		Near(t, f.S[c], want, 1e-6*want, "unknown %d", c)
	}
}

// TestDescend: three sweeps over the unknowns are those of a loop that takes each to its minimum under its
// bound, the others as they are. One unknown is not curved, and stays.
func TestDescend(t *testing.T) {
	src := random.Split(9, 0)
	for round := range 100 {
		k := 2 + round%5
		f, h := fillForm(k, 2*k, &src)
		flat := round % k
		for c := range k {
			f.H[flat*k+c], f.H[c*k+flat], h[flat][c], h[c][flat] = 0, 0, 0, 0
		}
		v, want := make([]float64, k), make([]float64, k)
		for c := range v {
			v[c], f.S[c] = max(src.Float64()-0.3, 0), 7
		}
		for range 3 {
			for c := range want {
				if c == flat {
					continue
				}
				slope, _ := slopeAt(f.G, h, want, c)
				want[c] = max(want[c]-slope/h[c][c], -v[c])
			}
		}
		f.descend(v)
		for c, s := range f.S {
			Close(t, s, want[c], 1e-9, "round %d: unknown %d", round, c)
		}
	}
}

// TestStays: the set of the unknowns at their bound that g holds there is taken where there are some, and the
// minimum of the others is within their bounds and lets those of the set stay; then it is that minimum. It is
// not where another is curved too little.
func TestStays(t *testing.T) {
	src := random.Split(10, 0)
	taken := 0
	for round := range 600 {
		k := 2 + round%4
		f, h := fillForm(k, 3*k, &src)
		v, set := make([]float64, k), 0
		for c := range v {
			f.G[c] += 0.2 * float64(k)
			if v[c] = max(9*src.Float64()-3, 0); v[c] == 0 && f.G[c] > 0 {
				set |= 1 << c
			}
		}
		s, want := without(f.G, h, v, set), set != 0
		for c := range s {
			slope, _ := slopeAt(f.G, h, s, c)
			if set>>c&1 == 1 {
				want = want && slope >= 0
			} else {
				want = want && v[c]+s[c] >= 0
			}
		}
		if got := f.stays(v, 1e-12, 0); got != want {
			t.Fatalf("round %d: v = %v, g = %v: stays is %v", round, v, f.G, got)
		}
		if !want {
			continue
		}
		taken++
		for c, x := range f.S {
			Close(t, x, s[c], 1e-8, "round %d: unknown %d", round, c)
		}
		least := math.Inf(1)
		for c := range k {
			if set>>c&1 == 0 {
				least = min(least, h[c][c])
			}
		}
		if least < math.Inf(1) && (!f.stays(v, 1e-12, 0.999*least) || f.stays(v, 1e-12, 1.001*least)) {
			t.Fatalf("round %d: the least curvature of those that move is not what decides", round)
		}
	}
	if taken < 60 {
		t.Errorf("the set was that of the minimum %d times", taken)
	}
}

// TestBounded: the conditions of Karush, Kuhn and Tucker hold: no unknown ends below its bound, and the slope
// at the end is 0 in those above it and not below 0 in the others. So it is with fewer unknowns than rows,
// and with more, where many sets have the minimum.
func TestBounded(t *testing.T) {
	src := random.Split(11, 0)
	for round := range 500 {
		k, wide := 1+round%25, round%2 == 0
		rows, ridge := 3*k, 1e-12
		if wide { // without a ridge H has no factor, and the ridge grows
			rows, ridge = max(k/2, 3), []float64{1e-9, 0}[round/2%2]
		}
		f, h := fillForm(k, rows, &src)
		v := make([]float64, k)
		for c := range v {
			v[c] = max(src.Float64()-0.4, 0)
			if wide { // some may have no minimum but for the ridge
				f.G[c] += []float64{1.1, 0.1}[round/4%2]
			}
		}
		f.Bounded(v, ridge)
		for c, s := range f.S {
			slope, size := slopeAt(f.G, h, f.S, c)
			if v[c]+s < 0 || slope < -1e-6*size || v[c]+s > 0 && slope > 1e-6*size {
				t.Fatalf("round %d: unknown %d of %d ends at %v with the slope %v of %v", round, c, k, v[c]+s,
					slope, size)
			}
		}
	}
}

// TestQuadratic: what Add adds, the largest diagonal entry, and the floor of what damps.
func TestQuadratic(t *testing.T) {
	f := newQuadratic(2)
	if f.Top() != 0 {
		t.Error("the form that is 0 has the top", f.Top())
	}
	f.Add(3, 2, []float64{1, -4})
	f.Add(-1, 1, []float64{2, 0})
	Same(t, f.G, []float64{1, -12}, "g")
	Same(t, f.H, []float64{6, -8, -8, 32}, "H")
	if f.Top() != 32 {
		t.Error("the top is", f.Top())
	}
	for _, of := range []float64{math.NaN(), math.Inf(1), -1, 0} {
		f = newQuadratic(2)
		f.H[0], f.H[3] = 1, of
		if f.Factor(1, 0) {
			t.Errorf("a form with %v on its diagonal has a factor", of)
		}
		f.Bounded([]float64{1, 1}, 1e-12)
	}
	// Entries of the diagonal below floor are damped by λ floor.
	f = newQuadratic(1)
	f.Add(0, 1, []float64{1})
	x := []float64{14}
	if !f.Factor(2, 3) {
		t.Fatal("no factor")
	}
	f.Solve(x)
	Near(t, x[0], 2, 1e-15, "the solution of (1 + 2·3) x = 14")
}
