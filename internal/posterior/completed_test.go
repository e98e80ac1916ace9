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
	f.Begin()
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
		for what, pair := range map[string][2][]float64{"means": {meanA, meanB},
			"squares": {squareA, squareB}, "τ": {a.Tau, b.Tau}, "ρ": {a.Rho, b.Rho}, "α": {a.Alpha, b.Alpha},
			"the unit": {{a.Unit}, {b.Unit}}} {
			if off := apart(pair[0], pair[1]); !(off < 1e-9) {
				t.Errorf("γ = %v: %s of both kinds of epochs differ by %.2g", gamma, what, off)
			}
		}
	}
}

// An epoch on the completed matrix where cells are hidden, of some lines most, is that of the equations
// written out: Ỹ cell by cell and an inverse for each line. It is the first without a change of coordinates.
func TestCompletedCellByCell(t *testing.T) {
	for _, gamma := range []float64{1, 0.5} {
		q := drawn(24, 30, 3, 0.15, 11)
		for at := range q.seen {
			if i, j := at/q.n, at%q.n; (i == 3 || j == 4) && (i+j)%4 > 0 {
				q.seen[at] = false
			}
		}
		before, f := q.bare(t, 3, gamma), q.bare(t, 3, gamma)
		before.complete(turns+1, 1e-14)
		f.complete(turns+2, 1e-14)
		if before.K != 3 || f.K != 3 {
			t.Fatalf("%d and %d components", before.K, f.K)
		}
		s := q.slow(before)
		unit := s.completed(gamma)
		s.compare(t, f)
		near(t, "the unit", f.Unit, unit, 1e-9)
	}
}

// Epochs on the completed matrix end with the first from the eighth on in which UV moves by less than a
// hundredth of itself, and after so many as they are let.
func TestCompletedEnd(t *testing.T) {
	for seed, noise := range []float64{-0.95, -0.5, 0, 3} {
		q := drawn(40, 45, 4, 0.1, uint64(20+seed))
		for at := range q.y {
			q.y[at] += noise * (q.y[at] - q.truth[at])
		}
		after := func(most int) *Fit {
			f := q.bare(t, 5, 0.5)
			f.complete(most, 1e-6)
			return f
		}
		last, _ := after(7).said()
		end := 8
		for ; end < completedMost; end++ {
			now, _ := after(end).said()
			moved, all := 0.0, 0.0
			for i, v := range now {
				moved, all = moved+(v-last[i])*(v-last[i]), all+v*v
			}
			if last = now; moved < 1e-4*all {
				break
			}
		}
		last, _ = after(end).said()
		if got, _ := after(completedMost).said(); !slices.Equal(got, last) {
			t.Errorf("noise %v: the last epoch is not the %dth", noise, end)
		}
		if got, _ := after(end - 1).said(); slices.Equal(got, last) {
			t.Errorf("noise %v: epoch %d is not made", noise, end)
		}
	}
}

// completed makes an epoch on the completed matrix, and returns the unit of ρ.
func (s *slow) completed(gamma float64) (unit float64) {
	d, n, k := s.d, s.n, s.k
	inner := func(a, b []float64) (sum float64) {
		for c, x := range a {
			sum += x * b[c]
		}
		return sum
	}
	outer := func(to [][]float64, by float64, a, b []float64) {
		for r := range to {
			for c := range to[r] {
				to[r][c] += by * a[r] * b[c]
			}
		}
	}
	zero := func() [][]float64 {
		m := make([][]float64, k)
		for r := range m {
			m[r] = make([]float64, k)
		}
		return m
	}
	add := func(to [][]float64, by float64, a [][]float64) {
		for r := range to {
			for c := range to[r] {
				to[r][c] += by * a[r][c]
			}
		}
	}
	times := func(a [][]float64, v []float64) []float64 {
		to := make([]float64, k)
		for r := range a {
			to[r] = inner(a[r], v)
		}
		return to
	}
	trace := func(a, b [][]float64) (sum float64) {
		for r := range a {
			sum += inner(a[r], b[r])
		}
		return sum
	}
	y := make([]float64, d*n)
	rows, cols, seen := make([]float64, d), make([]float64, n), 0.0
	for i := range d {
		for j := range n {
			if y[i*n+j] = inner(s.u[i], s.v[j]); s.seen[i*n+j] {
				y[i*n+j] = s.y[i*n+j]
				rows[i], cols[j], seen = rows[i]+1, cols[j]+1, seen+1
			}
		}
	}
	// ρ, v and C.
	ofU, ofS, both := zero(), zero(), zero() // G°, Σ τ S and G
	for i, t := range s.tau {
		outer(ofU, t, s.u[i], s.u[i])
		add(ofS, t, s.s[i])
	}
	add(both, 1, ofU)
	add(both, 1, ofS)
	unit = 1
	for j, v := range s.v {
		off, variance := float64(rhoCells), inner(v, times(ofS, v))+trace(both, s.c[j])
		for i, t := range s.tau {
			e := y[i*n+j] - inner(s.u[i], v)
			off += t * e * e
		}
		s.rho[j] = (cols[j] + rhoCells) / (off + cols[j]/float64(d)*variance)
		unit *= math.Pow(s.rho[j], 1/float64(n))
	}
	lastV := s.v
	s.v = make([][]float64, n)
	for j, old := range lastV {
		s.rho[j] = min(max(s.rho[j]/unit, 1.0/20), 20)
		share, rho := max(cols[j]/float64(d), 0.5), s.rho[j]
		a, right := zero(), times(ofU, old)
		add(a, share*rho, both)
		for c := range k {
			a[c][c]++
			right[c] *= -(1 - share) * rho
			for i, t := range s.tau {
				right[c] += rho * t * y[i*n+j] * s.u[i][c]
			}
		}
		s.c[j], _ = solve(a)
		s.v[j] = times(s.c[j], right)
	}
	// u, S and the residuals.
	ofV, ofC, all, cross := zero(), zero(), zero(), zero()
	for j, r := range s.rho {
		outer(ofV, r, s.v[j], s.v[j])
		outer(cross, r, s.v[j], lastV[j])
		add(ofC, r, s.c[j])
	}
	add(all, 1, ofV)
	add(all, 1, ofC)
	resid, sizes, total, size := make([]float64, d), make([]float64, k), 0.0, 0.0
	for i, old := range s.u {
		share, tau := max(rows[i]/float64(n), 0.5), s.tau[i]
		a, right := zero(), times(cross, old)
		add(a, share*tau, all)
		for c := range k {
			a[c][c] += s.alpha[c]
			right[c] *= -(1 - share) * tau
			for j, r := range s.rho {
				right[c] += tau * r * y[i*n+j] * s.v[j][c]
			}
		}
		s.s[i], _ = solve(a)
		s.u[i] = times(s.s[i], right)
		for j, r := range s.rho {
			e := y[i*n+j] - inner(s.u[i], s.v[j])
			resid[i] += r * e * e
		}
		resid[i] += rows[i] / float64(n) * (inner(s.u[i], times(ofC, s.u[i])) + trace(all, s.s[i]))
		total += resid[i]
		for c, u := range s.u[i] {
			sizes[c] += u*u + s.s[i][c][c]
			size += u*u + s.s[i][c][c]
		}
	}
	held := 30 * (1/gamma - 1)
	for c := range s.alpha {
		s.alpha[c] = (float64(d) + held) / (sizes[c] + held*size/float64(d*k))
	}
	for i := range s.tau {
		s.tau[i] = (rows[i] + 2) / (resid[i] + 2*total/seen)
	}
	return unit
}

// Where cells are hidden, also most of some lines, the epochs after those on the completed matrix come to
// rest where epochs alone do, and from a better place.
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
			t.Errorf("%s: the bound after those on the completed matrix and an epoch is %v, after epochs "+
				"alone %v", name, a.Bound, b.Bound)
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
	if values, vectors := jacobi(make([]float64, 16), 2, 8, 1e-3); values[0] != 0 || values[1] != 0 ||
		vectors[0] != 1 || vectors[9] != 1 {
		t.Errorf("a matrix of zeros has %v and %v", values, vectors)
	}
}
