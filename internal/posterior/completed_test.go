package posterior

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/svd"
)

// bare returns a fit at its singular vectors, all of whose epochs are its own.
func (q *problem) bare(t *testing.T, k int, gamma float64) *Fit {
	p := pool.New(1, 1)
	t.Cleanup(p.Close)
	x, np := q.data(), kernel.Pad(q.n)
	s := svd.NewSubspace(q.d, q.n, k, 6, 4, func(_, i int) []float64 { return x.Y[i*np : (i+1)*np] }, p)
	f := New(context.Background(), x, k, gamma, s, p)
	f.Ahead = 0
	return f
}

// said returns the mean and E (u·v)² of every cell, which no change of coordinates moves.
func (f *Fit) said() (mean, square []float64) {
	for i := range f.D {
		line, squares := make([]float64, f.np), make([]float64, f.N)
		kernel.Combine(line, f.rowU(i), f.V)
		kernel.DotsRows(squares, f.BV, f.packU(i), 1)
		mean, square = append(mean, line[:f.N]...), append(square, squares...)
	}
	return mean, square
}

// apart is the largest difference, over the largest magnitude of b.
func apart(a, b []float64) float64 {
	most, unit := 0.0, 0.0
	for i, x := range a {
		most, unit = max(most, math.Abs(x-b[i])), max(unit, math.Abs(b[i]))
	}
	return most / unit
}

// Where nothing is hidden, epochs on the completed matrix are epochs.
func TestCompletedAreEpochs(t *testing.T) {
	for _, gamma := range []float64{1, 0.5} {
		q := drawn(70, 83, 3, 0, 5)
		a, b := q.bare(t, 7, gamma), q.bare(t, 7, gamma)
		a.complete(completedLeast, 1e-14)
		for e := range completedLeast {
			b.Epoch(e, 0)
		}
		if a.K != b.K || gamma == 1 && a.K == 7 {
			t.Fatalf("γ = %v: %d and %d components", gamma, a.K, b.K)
		}
		meanA, squareA := a.said()
		meanB, squareB := b.said()
		slices.Sort(a.Alpha)
		slices.Sort(b.Alpha)
		for what, pair := range map[string][2][]float64{"means": {meanA, meanB}, "squares": {squareA, squareB}, "τ": {a.Tau, b.Tau}, "ρ": {a.Rho, b.Rho}, "α": {a.Alpha, b.Alpha}, "the unit": {{a.Unit}, {b.Unit}}} {
			if off := apart(pair[0], pair[1]); !(off < 1e-9) {
				t.Errorf("γ = %v: %s of both kinds of epochs differ by %.2g", gamma, what, off)
			}
		}
	}
}

// Where cells are hidden, also most of some lines, the epochs after those on the completed matrix come to rest where epochs alone
// do, and from a better place.
func TestCompletedLead(t *testing.T) {
	for name, hide := range map[string]func(i, j int) bool{
		"some":         func(i, j int) bool { return false },
		"most of some": func(i, j int) bool { return i%9 == 0 && j%10 != i%10 || j%14 == 0 && (i+j)%4 != 0 },
		"a block":      func(i, j int) bool { return i < 20 && j < 50 },
	} {
		q := drawn(90, 80, 4, 0.05, 7)
		for at := range q.seen {
			q.seen[at] = q.seen[at] && (!hide(at/q.n, at%q.n) || at/q.n == at%q.n)
		}
		a, b := q.start(t, 8, 0.5), q.bare(t, 8, 0.5)
		if a.Ahead != turns || b.Ahead != 0 {
			t.Fatalf("%s: %d epochs and %d were made on the completed matrix", name, a.Ahead, b.Ahead)
		}
		for e := range turns + 1 {
			b.Epoch(e, 0)
		}
		if a.Epoch(0, 0); !(a.Bound < b.Bound+1e-3) {
			t.Errorf("%s: the bound after those on the completed matrix and an epoch is %v, after epochs alone %v", name, a.Bound, b.Bound)
		}
		for e := range 200 { // a component that fades does so slowly
			a.Epoch(e+1, 0)
			b.Epoch(e+turns+1, 0)
		}
		meanA, _ := a.said()
		meanB, _ := b.said()
		if off := apart(meanA, meanB); !(off < 0.02) || math.Abs(a.Bound-b.Bound) > 1e-3 {
			t.Errorf("%s: at rest means differ by %.2g, bounds are %v and %v", name, off, a.Bound, b.Bound)
		}
	}
}

// Fits begin on the completed matrix where most cells are seen and lines are long.
func TestWhereCompleted(t *testing.T) {
	for _, c := range []struct {
		d, n   int
		hidden float64
		want   int
	}{{80, 70, 0.1, turns}, {80, 60, 0.1, 0}, {60, 80, 0.1, 0}, {80, 70, 0.3, 0}} {
		if got := drawn(c.d, c.n, 2, c.hidden, 3).start(t, 3, 1).Ahead; got != c.want {
			t.Errorf("%+v: %d epochs were made on the completed matrix", c, got)
		}
	}
}

// Epochs on the completed matrix that the context ends, at whichever look, come to their end soon.
func TestStoppedCompleted(t *testing.T) {
	q := drawn(70, 66, 3, 0.1, 9)
	whole := &ending{Context: context.Background()}
	f := q.bare(t, 5, 1)
	f.ctx = whole
	f.complete(completedMost, completedOff)
	for look := 1; look <= whole.count; look += 1 + whole.count/97 {
		c := &ending{Context: context.Background(), last: look}
		f := q.bare(t, 5, 1)
		f.ctx = c
		f.complete(completedMost, completedOff)
		if late := c.count - look; late > q.d+q.n+9 {
			t.Fatalf("ended at look %d of %d: %d looks follow", look, whole.count, late)
		}
	}
}

// jacobi against the matrix itself.
func TestJacobi(t *testing.T) {
	src := random.Split(4, 1)
	for _, k := range []int{1, 2, 5, 17} {
		kp := kernel.Pad(k)
		root, a := make([]float64, k*kp), make([]float64, k*kp)
		for r := range k {
			for c := range k {
				root[r*kp+c] = normal(&src) * math.Exp(-float64(c)/2)
			}
		}
		kernel.CombineRows(a, square(root, k, kp), transposed(root, k, kp), k)
		values, vectors := jacobi(slices.Clone(a), k, kp, 1e-13)
		for r := range k {
			for c := range k {
				sum, one := 0.0, 0.0
				for h, v := range values {
					sum += vectors[h*kp+r] * v * vectors[h*kp+c]
					one += vectors[r*kp+h] * vectors[c*kp+h]
				}
				near(t, "a matrix from its eigenvectors", sum, a[r*kp+c], 1e-12*a[0])
				if r == c {
					one--
				}
				near(t, "eigenvectors", 1+one, 1, 1e-12)
			}
		}
	}
	if values, vectors := jacobi(make([]float64, 16), 2, 8, 1e-3); values[0] != 0 || values[1] != 0 || vectors[0] != 1 || vectors[9] != 1 {
		t.Errorf("a matrix of zeros has %v and %v", values, vectors)
	}
}
