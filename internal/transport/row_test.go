package transport

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// randomRow is a problem of any form: weights given, even or of a mask, targets regular or
// not, b or its logits, every squash.
func randomRow(src *random.Source) Problem {
	n, m := 1+src.IntN(40), 2+src.IntN(9)
	if src.IntN(8) == 0 {
		n += 1100 // enough for a start from the means of groups
	}
	p := Problem{X: make([]float64, n), Squash: Kind(src.IntN(int(Kinds))),
		Epsilon: math.Pow(10, -4*src.Float64())}
	for i := range p.X {
		p.X[i] = Normal(src)
	}
	positive := func(k int) []float64 {
		v := make([]float64, k)
		for i := range v {
			v[i] = 0.1 + src.Float64()
		}
		return v
	}
	switch src.IntN(3) {
	case 0:
		p.A = positive(n)
	case 1:
		p.Observed = make([]bool, n)
		for i := range p.Observed {
			p.Observed[i] = i == 0 || src.IntN(4) > 0
		}
	}
	switch src.IntN(3) {
	case 0:
		p.B = positive(m)
	case 1:
		p.Logits = positive(m)
	}
	if src.IntN(2) == 0 {
		p.Y = positive(m)
		for j := 1; j < m; j++ {
			p.Y[j] += p.Y[j-1]
		}
	}
	return p
}

// TestReuse: a workspace that has been through other problems of all forms and sizes, with
// adjoints, forward derivatives and restored solutions between them, gives the bits of a new
// one.
func TestReuse(t *testing.T) {
	src := random.Split(81, 0)
	var used Row
	var earlier []Solution
	for trial := range 600 {
		p := randomRow(&src)
		if trial%3 > 0 { // of the size before, as rows of a fit are
			for len(p.X) != used.n || p.levels() != used.m {
				if p = randomRow(&src); used.n > 1000 {
					break
				}
				p.X = append(p.X, make([]float64, used.n)...)[:used.n]
				for i := range p.X {
					p.X[i] = Normal(&src)
				}
				p.A, p.Observed = nil, nil
			}
		}
		n, m := len(p.X), p.levels()
		q, back := rising(&src, m), Cotangent{Z: make([]float64, kernel.Pad(n)), Q: make([]float64, m)}
		for j := range q {
			back.Q[j] = Normal(&src)
		}
		for i := range n {
			back.Z[i] = Normal(&src)
		}
		dir := Gradient{X: back.Z[:n], Y: back.Q, Q: q, Epsilon: 0.1}
		calls := func(r *Row) [][]float64 {
			if n != r.n || m != r.m {
				r.Resize(n, m)
			}
			r.Load(p)
			out := r.Solve(1e-9, 300, nil)
			v := [][]float64{{float64(out.Passes), out.Error}}
			take := func(k int) []float64 { v = append(v, make([]float64, k)); return v[len(v)-1] }
			r.Quantile(take(n), q)
			r.Adjoint(back)
			r.GradX(take(n))
			r.Sort(take(m)) // an average in between
			r.GradQ(take(m))
			r.GradB(take(m))
			r.GradLogits(take(m))
			r.QuantileForward(take(kernel.Pad(n))[:n], q, &dir)
			r.Duals(take(n), take(m))
			g := NewGradient(n, m)
			r.QuantileAdjoint(&g, q, back.Z[:n])
			v = append(v, g.X, g.A, g.B, g.Y, g.Q)
			at := r.Potentials()
			at.H = slices.Clone(at.H)
			if p.Y == nil {
				r.Evaluate(p.X, at, p.Epsilon)
				r.Quantile(take(n), q)
				r.Load(p)
				r.Return(at.H)
				r.Quantile(take(n), q)
			}
			return v
		}
		got, want := calls(&used), calls(new(Row))
		for k := range want {
			Same(t, got[k], want[k], "trial %d, result %d, against a new workspace", trial, k)
		}
		used.Load(p)
		used.Solve(1e-9, 300, nil)
		earlier = append(earlier, used.Keep(make([]float64, used.Room(true)), true))
		if trial%5 == 0 {
			s := &earlier[len(earlier)-1-src.IntN(min(2, len(earlier)))]
			p.X = slices.Clone(p.X)
			p.X[0]++
			used.Load(p)
			used.Solve(1e-9, 300, nil)
			var fresh Row
			used.Restore(s)
			fresh.Restore(s)
			Same(t, used.c, fresh.c, "trial %d: c of a restored solution, against a new workspace", trial)
		}
	}
}

// TestWanted: T that a solve makes in passing has the bits of one made afterwards, and most solves make it in
// passing, cold and from where they stood, easy and hard.
func TestWanted(t *testing.T) {
	src := random.Split(41, 0)
	taken, all, large, zero := 0, 0, 0, 0
	trials := 300
	if testing.Short() {
		trials = 60
	}
	for trial := range trials {
		n, m := 1+int(60*src.Float64()), 2+int(20*src.Float64())
		r, after := NewRow(nil, n, m), NewRow(nil, n, m)
		states := [2]Warm{NewWarm(nil, 1, m)[0], NewWarm(nil, 1, m)[0]}
		got, want, q := make([]float64, r.np), make([]float64, r.np), rising(&src, m)
		for visit := range 3 {
			x, b := make([]float64, n), make([]float64, m)
			spread, skew := math.Exp(2*Normal(&src)), 3.0
			for i := range x {
				x[i] = spread * Normal(&src)
			}
			if trial%5 == 0 { // columns that are flushed to 0
				skew = 100
			}
			for j := range b {
				b[j] = math.Exp(min(max(skew*Normal(&src), -500), 100))
			}
			p := Problem{X: x, B: b, Squash: None, Epsilon: math.Pow(10, -4*src.Float64())}
			after.Load(p)
			end := after.Solve(1e-9, 300, &states[0])
			after.Average(want, q)
			r.Load(p)
			r.fast(1e-9, max(1e-9, r.roundingFloor()), 300,
				&Warm{slices.Clone(states[1].Offset), states[1].Valid})
			if all++; r.want.had {
				t.Fatal("T was made though nobody wanted it")
			}
			r.Load(p)
			r.Want(got, q)
			r.fast(1e-9, max(1e-9, r.roundingFloor()), 300,
				&Warm{slices.Clone(states[1].Offset), states[1].Valid})
			if r.want.had {
				taken++
			}
			r.Load(p)
			r.Want(got, q)
			if out := r.Solve(1e-9, 300, &states[1]); out != end {
				t.Fatalf("trial %d, visit %d: ended as %v, without T as %v", trial, visit, out, end)
			}
			Same(t, got[:n], want[:n], "trial %d, visit %d: T in passing, against afterwards", trial, visit)
			// A row that is taken back to where it was solved has an adjoint.
			h, zeta := slices.Clone(r.h), make([]float64, r.np)
			for i := range n {
				zeta[i] = Normal(&src)
			}
			r.Load(p)
			r.Return(h)
			r.Adjoint(Cotangent{Z: zeta, Q: q})
			for j, v := range r.lam {
				if v-v != 0 {
					t.Fatalf("trial %d, visit %d: taken back, λ_%d is %v", trial, visit, j, v)
				}
			}
			// The constant up to which λ is known is chosen where λ is large: the elimination leaves λ_0 = 0.
			if lo, hi := bounds(r.lam); hi-lo > 1e3 {
				large++
				if r.lam[0] == 0 {
					zero++
				}
			}
		}
	}
	if taken < all/2 || taken == all {
		t.Errorf("T was made in the last pass of %d rows of %d", taken, all)
	}
	if large == 0 || zero > large/2 {
		t.Errorf("λ_0 is 0 in %d of the %d rows whose λ is large", zero, large)
	}
}

// TestRestoredForgetsPoints: a workspace that points have solved has the bits of a new one once another
// solution is restored in it.
func TestRestoredForgetsPoints(t *testing.T) {
	src := random.Split(41, 0)
	p, _, q := condensedCase(&src, 8, false)
	few := p
	few.X = p.X[:40]
	var r, fresh Row
	r.Resize(len(few.X), len(q))
	r.Load(few)
	r.Solve(1e-9, 300, nil)
	s := r.Keep(make([]float64, r.Room(false)), false)
	state := NewWarm(nil, 1, len(q))[0]
	r.Resize(len(p.X), len(q))
	r.Load(p)
	if r.Solve(3e-5, 100, &state); !r.condensed.ready {
		t.Fatal("not solved by points")
	}
	r.Restore(&s)
	fresh.Restore(&s)
	got, want := make([]float64, r.np), make([]float64, r.np)
	r.Average(got, q)
	fresh.Average(want, q)
	Same(t, got, want, "T of a restored solution, against a new workspace")
}

// levels is m.
func (p *Problem) levels() int {
	for _, v := range [][]float64{p.B, p.Logits, p.Y} {
		if v != nil {
			return len(v)
		}
	}
	return 5
}

// TestStates: what needs a row to have come further panics, and a Load takes everything away.
func TestStates(t *testing.T) {
	x, b, q, z := benchRow(16, 4)
	p := Problem{X: x, B: b, Squash: None, Epsilon: 0.01}
	back := Cotangent{Z: z, Q: q}
	n, m := make([]float64, 16), make([]float64, 4)
	calls := []struct {
		name  string
		needs phase
		call  func(r *Row)
	}{
		{"Solve", loaded, func(r *Row) { r.Solve(1e-9, 100, nil) }},
		{"Return", loaded, func(r *Row) { r.Return(m) }},
		{"Average", placed, func(r *Row) { r.Average(n, q) }},
		{"Columns", placed, func(r *Row) { r.Columns(m, n) }},
		{"RatioColumns", placed, func(r *Row) { r.Gather(n, false); r.RatioColumns(m, q, 0, 0.1) }},
		{"Sort", solved, func(r *Row) { r.Sort(m) }},
		{"Adjoint", solved, func(r *Row) { r.Adjoint(back) }},
		{"Keep", solved, func(r *Row) { r.Keep(make([]float64, r.Room(false)), false) }},
		{"GradX", pulled, func(r *Row) { r.GradX(n) }},
		{"GradQ", pulled, func(r *Row) { r.GradQ(m) }},
		{"GradLogits", pulled, func(r *Row) { r.GradLogits(m) }},
	}
	for have := empty; have <= pulled; have++ {
		for _, c := range calls {
			t.Run(fmt.Sprint(c.name, " of a row that is ", phases[have]), func(t *testing.T) {
				var r, other Row
				r.Resize(16, 4)
				other.Resize(16, 4)
				r.Load(p) // it has been through all once
				r.Solve(1e-9, 100, nil)
				r.Adjoint(back)
				other.Load(p)
				other.Solve(1e-9, 100, nil)
				switch have {
				case empty:
					r.Resize(16, 4)
				case loaded:
					r.Load(p)
				case placed:
					r.Evaluate(x, other.Potentials(), 0.01)
				case solved:
					r.Load(p)
					r.Solve(1e-9, 100, nil)
				}
				defer func() { Equal(t, recover() != nil, have < c.needs, "panics") }()
				c.call(&r)
			})
		}
	}
}

// TestSlopes: beside the gradient a_i ∂T_i/∂x_i at the potentials and the squash of the row is what
// differences of T there say, for every squash, weights and hidden samples; of a row that the squash makes
// constant it is 0.
func TestSlopes(t *testing.T) {
	src := random.Split(83, 0)
	for trial := range 200 {
		p := randomRow(&src)
		p.Y = nil
		p.Epsilon = max(p.Epsilon, 1e-3)
		n, m := len(p.X), p.levels()
		if trial%20 == 0 {
			for i := range p.X {
				p.X[i] = p.X[0]
			}
		}
		var r, other Row
		r.Resize(n, m)
		other.Resize(n, m)
		r.Load(p)
		r.Solve(1e-9, 1000, nil)
		q := rising(&src, m)
		got := make([]float64, kernel.Pad(n))
		zeta, gx, alone := make([]float64, kernel.Pad(n)), make([]float64, n), make([]float64, n)
		for i := range zeta[:n] {
			zeta[i] = src.Float64() - 0.5
		}
		r.Adjoint(Cotangent{Z: zeta, Q: q})
		r.GradXSlopes(gx, got)
		r.GradX(alone)
		size := 0.0 // of the terms that the gradient is left of
		weights, _ := r.Weights()
		for i, a := range weights {
			size = max(size, math.Abs(zeta[i]*got[i]/max(a, 1e-300)))
		}
		for i, v := range gx {
			Near(t, v, alone[i], 1e-11*size, "trial %d: the gradient %d with slopes beside it", trial, i)
		}
		at := func(d float64) []float64 {
			x := slices.Clone(p.X)
			for i := range x {
				x[i] += d
			}
			other.Evaluate(x, r.Potentials(), p.Epsilon)
			out := make([]float64, kernel.Pad(n))
			other.Average(out, q)
			return out
		}
		const h = 1e-4
		far, back, halfway, before := at(h), at(-h), at(h/2), at(-h/2)
		a, _ := r.Weights()
		for i := range n {
			want := a[i] * (4*(halfway[i]-before[i])/h - (far[i]-back[i])/(2*h)) / 3
			if r.squash.Constant() {
				want = 0
			}
			Near(t, got[i], want, 1e-5*a[i]*(1+math.Abs(want/max(a[i], 1e-300))),
				"trial %d: slope %d (%+v, ε %v)",
				trial, i, r.squash, p.Epsilon)
		}
	}
}

// ratioColumns is what RatioColumns says of x, in the unit 1, by the plan that EachSample tells.
func ratioColumns(r *Row, x, q []float64, s, low float64) (sums []float64, along float64) {
	sums = make([]float64, len(q))
	r.EachSample(func(i int, plan []float64) {
		mean := s * r.x[i]
		for j, share := range plan {
			mean += share * q[j]
		}
		for j, share := range plan {
			sums[j] += x[i] / max(mean, low) * share
		}
		along += r.x[i] * x[i] / max(mean, low)
	})
	return sums, along
}

// checkRatios holds RatioColumns of x to the plan, without a line.
func checkRatios(t *testing.T, r *Row, x, q []float64, by float64) {
	const low = 1e-9
	got := make([]float64, len(q))
	want, _ := ratioColumns(r, x, q, 0, low)
	r.Gather(x, false)
	r.RatioColumns(got, q, 0, low)
	for j := range got {
		Near(t, got[j]*r.w[j], want[j], by*want[j], "level %d", j)
	}
}

// TestRatioColumns: Σ_i x_i/max(T_i, low) M_ij by the averages and the plan that EachSample tells, T with and
// without a line, and Σ_i w_i x_i/max(T_i, low) of a line.
func TestRatioColumns(t *testing.T) {
	src := random.Split(84, 0)
	for trial := range 200 {
		p, s := randomRow(&src), []float64{0, 0.4}[trial/2%2]
		for i, w := range p.X {
			if s > 0 {
				p.X[i] = math.Abs(w)
			}
		}
		n, m := len(p.X), p.levels()
		var r Row
		r.Resize(n, m)
		r.Load(p)
		r.Solve(1e-9, 1000, nil)
		q, x := make([]float64, m), make([]float64, kernel.Pad(n))
		last := src.Float64() * float64(trial%2)
		for j := range q {
			q[j] = last
			last += src.Float64()
		}
		for i := range x[:n] {
			x[i] = max(src.Float64()-0.2, 0)
		}
		low, got := 0.3*src.Float64(), make([]float64, m)
		want, along := ratioColumns(&r, x, q, s, low)
		r.Gather(x, s > 0)
		if got := r.RatioColumns(got, q, s, low); s > 0 {
			Near(t, got, along, 1e-12*along, "trial %d: along the line", trial)
		}
		for j := range got {
			Near(t, got[j]*r.w[j], want[j], 1e-12*want[j]+1e-100, "trial %d: level %d", trial, j)
		}
	}
}
