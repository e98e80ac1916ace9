package quantmf

// Tests of the operators: gradients by central differences, order and range on
// adversarial input, the reference iterations, the limit ε = 0.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/transport"
)

// operator is one of T, R, S as a function of all its arguments.
type operator struct {
	name string
	eval func(p point) []float64
	vjp  func(p point, z []float64) *Gradient
	out  func(p point) int
}

// point is a set of arguments.
type point struct {
	x, a, b, y, q []float64
	eps           float64
	squash        Squash
	extra         []Option
}

func (p point) solve(t testing.TB) *Transport {
	opts := append([]Option{WithEpsilon(p.eps), WithWeights(p.a), WithTargetWeights(p.b), WithTargets(p.y), WithSquash(p.squash), WithTolerance(1e-14)}, p.extra...)
	tr, err := Solve(p.x, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func operators(t testing.TB) []operator {
	must := func(g *Gradient, err error) *Gradient {
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return []operator{
		{"T", func(p point) []float64 {
			v, err := p.solve(t).Quantile(p.q)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}, func(p point, z []float64) *Gradient { return must(p.solve(t).QuantileVJP(p.q, z)) }, func(p point) int { return len(p.x) }},
		{"R", func(p point) []float64 { return p.solve(t).Rank() },
			func(p point, z []float64) *Gradient { return must(p.solve(t).RankVJP(z)) }, func(p point) int { return len(p.x) }},
		{"S", func(p point) []float64 { return p.solve(t).Sort() },
			func(p point, z []float64) *Gradient { return must(p.solve(t).SortVJP(z)) }, func(p point) int { return len(p.y) }},
	}
}

// derivative is the central difference of fourth order of f at 0.
func derivative(f func(d float64) float64, h float64) float64 {
	return (8*(f(h)-f(-h)) - (f(2*h) - f(-2*h))) / (12 * h)
}

func randomPoint(seed int, regular bool, s Squash, eps float64) point {
	r := random.Split(11, seed)
	n, m := 5+r.IntN(20), 2+r.IntN(8)
	p := point{squash: s, eps: eps, x: make([]float64, n), a: make([]float64, n), b: make([]float64, m), y: make([]float64, m), q: make([]float64, m)}
	for i := range p.x {
		p.x[i], p.a[i] = r.Float64(), 0.2+r.Float64()
	}
	last := r.Float64()
	for j := range p.y {
		p.y[j], p.b[j] = transport.Grid(j, m), 0.2+r.Float64()
		if !regular {
			p.y[j] += 0.4 * (r.Float64() - 0.5) / float64(m)
		}
		last += r.Float64()
		p.q[j] = last
	}
	return p
}

// TestCentralDifferences compares every derivative with (f(+h)-f(-h))/2h of the
// whole operator, squash included.
func TestCentralDifferences(t *testing.T) {
	worst := 0.0
	for seed, c := range []struct {
		regular bool
		s       Squash
		extra   []Option
	}{{true, SquashLogistic, nil}, {true, SquashLogisticUnit, nil}, {false, SquashArctan, nil}, {false, SquashLogistic, nil}, {true, SquashNone, nil}, {false, SquashNone, []Option{WithMidpointRanks()}}, {true, SquashLogistic, []Option{WithMidpointRanks()}}} {
		for _, eps := range []float64{0.3, 0.1, 0.03, 0.01} {
			p := randomPoint(seed, c.regular, c.s, eps)
			p.extra = c.extra
			r := random.Split(5, seed)
			for _, op := range operators(t) {
				z := make([]float64, op.out(p))
				for i := range z {
					z[i] = normal(&r)
				}
				g := op.vjp(p, z)
				dot := func(p point) (s float64) {
					for i, v := range op.eval(p) {
						s += z[i] * v
					}
					return s
				}
				args := []struct {
					name string
					get  func(p *point) *[]float64
					grad []float64
					w    []float64 // the argument lives on the simplex
				}{
					{"x", func(p *point) *[]float64 { return &p.x }, g.X, nil},
					{"y", func(p *point) *[]float64 { return &p.y }, g.Y, nil},
					{"a", func(p *point) *[]float64 { return &p.a }, g.A, p.a},
					{"b", func(p *point) *[]float64 { return &p.b }, g.B, p.b},
				}
				if g.Q != nil {
					args = append(args, struct {
						name string
						get  func(p *point) *[]float64
						grad []float64
						w    []float64
					}{"q", func(p *point) *[]float64 { return &p.q }, g.Q, nil})
				}
				for _, arg := range args {
					got, want := make([]float64, len(arg.grad)), make([]float64, len(arg.grad))
					copy(got, arg.grad)
					sum := 0.0
					for _, v := range arg.w {
						sum += v
					}
					for i := range want {
						h := 2e-4 * eps
						at := func(d float64) float64 {
							p := p
							v := append([]float64(nil), *arg.get(&p)...)
							v[i] += d
							*arg.get(&p) = v
							return dot(p)
						}
						want[i] = derivative(at, h)
						if arg.w != nil { // given before normalising: d(a/Σa) = (da - a Σda/Σa)/Σa
							got[i] = arg.grad[i] / sum
						}
					}
					scale := largest(want) + 1e-3*largest(z)
					for i := range want {
						e := math.Abs(got[i]-want[i]) / scale
						worst = max(worst, e)
						if !(e <= 1e-6) {
							t.Errorf("case %d, ε=%g, %s: ∂%s[%d] = %v, differences say %v (relative %.1e)", seed, eps, op.name, arg.name, i, got[i], want[i], e)
						}
					}
				}
				h := 1e-4 * eps
				at := func(d float64) float64 { p := p; p.eps += d; return dot(p) }
				want := derivative(at, h)
				if e := math.Abs(g.Epsilon-want) / (math.Abs(want) + 1e-3*largest(z)*largest(op.eval(p))); !(e <= 1e-6) {
					t.Errorf("case %d, ε=%g, %s: ∂ε = %v, differences say %v", seed, eps, op.name, g.Epsilon, want)
				}
			}
		}
	}
	t.Logf("worst relative difference %.1e", worst)
}

// TestForwardReverse checks <z, J d> = <Jᵀz, d> in all arguments at once.
func TestForwardReverse(t *testing.T) {
	for seed := range 40 {
		p := randomPoint(seed, seed%2 == 0, Squash(seed%2), []float64{0.3, 0.1, 0.01, 0.003}[seed%4])
		r := random.Split(6, seed)
		vec := func(n int) []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = normal(&r)
			}
			return v
		}
		n, m := len(p.x), len(p.y)
		z := vec(n)
		d := Gradient{X: vec(n), A: vec(n), B: vec(m), Y: vec(m), Q: vec(m), Epsilon: normal(&r)}
		for _, w := range [][]float64{d.A, d.B} { // along the simplex
			mean := 0.0
			for _, v := range w {
				mean += v / float64(len(w))
			}
			for i := range w {
				w[i] -= mean
			}
		}
		tr := p.solve(t)
		jd, err := tr.QuantileJVP(p.q, d)
		if err != nil {
			t.Fatal(err)
		}
		g, err := tr.QuantileVJP(p.q, z)
		if err != nil {
			t.Fatal(err)
		}
		left, right, scale := 0.0, g.Epsilon*d.Epsilon, math.Abs(g.Epsilon*d.Epsilon)
		for i := range z {
			left += z[i] * jd[i]
		}
		for _, c := range [][2][]float64{{g.X, d.X}, {g.A, d.A}, {g.B, d.B}, {g.Y, d.Y}, {g.Q, d.Q}} {
			for i := range c[0] {
				right += c[0][i] * c[1][i]
				scale += math.Abs(c[0][i] * c[1][i])
			}
		}
		if math.Abs(left-right) > 1e-12*scale {
			t.Errorf("seed %d: %v forward, %v backward", seed, left, right)
		}
	}
}

// TestOrderAndRange tries rows full of ties and neighbours one unit in the last
// place apart: order and range must hold without a single exception, at any
// number of iterations.
func TestOrderAndRange(t *testing.T) {
	problems := 14000
	if testing.Short() {
		problems = 500
	}
	pairs := 0
	for seed := range problems {
		r := random.Split(9, seed)
		n, m := 2+r.IntN(150), 1+r.IntN(20)
		x := make([]float64, n)
		offset := []float64{0, 1, 1e9, -1e-3}[r.IntN(4)]
		for i := range x {
			switch {
			case i > 0 && r.IntN(2) == 0:
				x[i] = math.Nextafter(x[i-1], x[i-1]+float64(r.IntN(2)*2-1))
			case i > 0 && r.IntN(4) == 0:
				x[i] = x[r.IntN(i)]
			default:
				x[i] = offset + r.Float64()
			}
		}
		eps := []float64{10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 0}[r.IntN(8)]
		opts := []Option{WithEpsilon(eps), WithSquash(Squash(r.IntN(2))), WithLevels(m)}
		if l := r.IntN(12); l > 0 && l <= 10 && eps > 0 {
			opts = append(opts, WithIterations(l))
		}
		if r.IntN(2) == 0 {
			b := make([]float64, m)
			for j := range b {
				b[j] = math.Exp(3 * normal(&r))
			}
			opts = append(opts, WithTargetWeights(b))
		}
		q := make([]float64, m)
		last := normal(&r)
		for j := range q {
			q[j] = last
			if r.IntN(3) > 0 {
				last += math.Exp(5 * normal(&r))
			}
		}
		tr, err := Solve(x, opts...)
		if err != nil {
			t.Fatal(err)
		}
		T, err := tr.Quantile(q)
		if err != nil {
			t.Fatal(err)
		}
		R, S := tr.Rank(), tr.Sort()
		perm := make([]int, n)
		for i := range perm {
			perm[i] = i
		}
		slices.SortFunc(perm, func(i, j int) int {
			switch {
			case x[i] < x[j]:
				return -1
			case x[i] > x[j]:
				return 1
			}
			return 0
		})
		for k, i := range perm {
			if !(T[i] >= q[0] && T[i] <= q[m-1]) {
				t.Fatalf("problem %d: T = %v outside [%v,%v]", seed, T[i], q[0], q[m-1])
			}
			if !(R[i] >= 0 && R[i] <= float64(n)) {
				t.Fatalf("problem %d: rank %v of %d", seed, R[i], n)
			}
			if k == 0 {
				continue
			}
			p := perm[k-1]
			pairs++
			if T[p] > T[i] || R[p] > R[i] || x[p] == x[i] && (T[p] != T[i] || R[p] != R[i]) {
				t.Fatalf("problem %d (ε=%g): x %v, %v but T %v, %v and R %v, %v", seed, eps, x[p], x[i], T[p], T[i], R[p], R[i])
			}
		}
		for j, v := range S {
			if !(v >= x[perm[0]] && v <= x[perm[n-1]]) || j > 0 && v < S[j-1] {
				t.Fatalf("problem %d (ε=%g): S[%d] = %v of %v, min %v, max %v", seed, eps, j, v, S, x[perm[0]], x[perm[n-1]])
			}
		}
		f, err := tr.Map(q)
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range perm[1:] {
			if f.At(x[perm[k]]) > f.At(x[i]) {
				t.Fatalf("problem %d (ε=%g): the map falls from %v to %v between %v and %v", seed, eps, f.At(x[perm[k]]), f.At(x[i]), x[perm[k]], x[i])
			}
		}
	}
	t.Logf("%d pairs", pairs)
	if !testing.Short() && pairs < 1e6 {
		t.Errorf("only %d pairs", pairs)
	}
}

// FuzzOrder keeps looking: bytes become a row, its weights and the options.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{1, 2, 3, 3, 2, 1}, uint8(4), uint8(2), uint8(0))
	f.Add([]byte{0, 0, 0, 255, 7}, uint8(16), uint8(5), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, m, scale, l uint8) {
		if len(data) == 0 || len(data) > 300 || m == 0 || m > 40 {
			t.Skip()
		}
		x, q := make([]float64, len(data)), make([]float64, m)
		at := 0.0
		for i, b := range data { // small steps are single units in the last place
			if b < 200 {
				for range b % 4 {
					at = math.Nextafter(at, 2)
				}
			} else {
				at += math.Ldexp(float64(b), -10)
			}
			x[i] = at
			if b%2 == 1 {
				x[i] = -at
			}
		}
		for j := range q {
			q[j] = math.Floor(float64(j) / float64(1+scale%3))
		}
		opts := []Option{WithEpsilon(math.Ldexp(1, -int(scale%24))), WithSquash(Squash(scale % 4)), WithLevels(int(m))}
		if l > 0 {
			opts = append(opts, WithIterations(1+int(l%10)))
		}
		tr, err := Solve(x, opts...)
		if err != nil {
			t.Fatal(err)
		}
		T, err := tr.Quantile(q)
		if err != nil {
			t.Fatal(err)
		}
		R, S := tr.Rank(), tr.Sort()
		mp, _ := tr.Map(q)
		for i := range x {
			for k := range x {
				if x[i] <= x[k] && (T[i] > T[k] || R[i] > R[k] || mp.At(x[i]) > mp.At(x[k])) {
					t.Fatalf("x %v <= %v, but T %v, %v, R %v, %v, map %v, %v", x[i], x[k], T[i], T[k], R[i], R[k], mp.At(x[i]), mp.At(x[k]))
				}
			}
			if !(T[i] >= q[0] && T[i] <= q[m-1]) {
				t.Fatalf("T = %v out of range", T[i])
			}
		}
		if !slices.IsSorted(S) || S[0] < slices.Min(x) || S[m-1] > slices.Max(x) {
			t.Fatalf("S = %v", S)
		}
	})
}

// TestReferenceIterations compares the solver with Algorithm 1 run long.
func TestReferenceIterations(t *testing.T) {
	for seed := range 20 {
		p := randomPoint(seed, seed%2 == 0, SquashLogistic, 0.1)
		tr := p.solve(t)
		ref, err := Solve(p.x, WithEpsilon(p.eps), WithWeights(p.a), WithTargetWeights(p.b), WithTargets(p.y), WithIterations(3000))
		if err != nil {
			t.Fatal(err)
		}
		if ref.Iterations != 3000 {
			t.Errorf("%d iterations", ref.Iterations)
		}
		a, _ := tr.Quantile(p.q)
		b, _ := ref.Quantile(p.q)
		closeTo(t, "T", a, b, 1e-11*largest(b))
		closeTo(t, "R", tr.Rank(), ref.Rank(), 1e-11*float64(len(p.x)))
		closeTo(t, "S", tr.Sort(), ref.Sort(), 1e-11)
	}
}

// TestUnrolled compares the gradient through l iterations with central
// differences of exactly these iterations, and its limit with the implicit one.
func TestUnrolled(t *testing.T) {
	for seed, squash := range []Squash{SquashNone, SquashLogistic, SquashArctan} {
		for _, l := range []int{1, 2, 7} {
			p := randomPoint(seed, seed == 0, squash, 0.1)
			p.a[1] = 0
			solve := func(p point, l int) *Transport {
				tr, err := Solve(p.x, WithEpsilon(p.eps), WithWeights(p.a), WithTargetWeights(p.b), WithTargets(p.y), WithSquash(p.squash), WithIterations(l))
				if err != nil {
					t.Fatal(err)
				}
				return tr
			}
			src := random.Split(1, seed)
			z := make([]float64, len(p.x))
			for i := range z {
				z[i] = normal(&src)
			}
			loss := func(p point) (s float64) {
				v, _ := solve(p, l).Quantile(p.q)
				for i := range v {
					s += z[i] * v[i]
				}
				return s
			}
			g, err := solve(p, l).UnrolledQuantileVJP(p.q, z)
			if err != nil {
				t.Fatal(err)
			}
			for name, arg := range map[string]struct {
				get  func(p *point) []float64
				grad []float64
				sum  float64
			}{
				"x": {func(p *point) []float64 { return p.x }, g.X, 1}, "y": {func(p *point) []float64 { return p.y }, g.Y, 1}, "q": {func(p *point) []float64 { return p.q }, g.Q, 1},
				"a": {func(p *point) []float64 { return p.a }, g.A, total(p.a)}, "b": {func(p *point) []float64 { return p.b }, g.B, total(p.b)},
				"ε": {nil, []float64{g.Epsilon}, 1},
			} {
				for i, got := range arg.grad {
					if name == "a" && i == 1 {
						continue // a weight of zero cannot fall
					}
					h := 1e-4
					at := func(d float64) float64 {
						p := p
						if name == "ε" {
							p.eps += d
							return loss(p)
						}
						v := arg.get(&p)
						old := v[i]
						defer func() { v[i] = old }()
						v[i] += d
						return loss(p)
					}
					want := derivative(at, h)
					if math.Abs(got/arg.sum-want) > 1e-7*(1+largest(arg.grad)) {
						t.Errorf("seed %d, %d iterations: ∂%s[%d] = %v, differences say %v", seed, l, name, i, got/arg.sum, want)
					}
				}
			}
			if l > 1 {
				continue
			}
			unrolled, err := solve(p, 2000).UnrolledQuantileVJP(p.q, z)
			if err != nil {
				t.Fatal(err)
			}
			implicit, err := p.solve(t).QuantileVJP(p.q, z)
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, "x", unrolled.X, implicit.X, 1e-9*largest(implicit.X))
			closeTo(t, "b", unrolled.B, implicit.B, 1e-9*largest(implicit.B))
			closeTo(t, "y", unrolled.Y, implicit.Y, 1e-9*largest(implicit.Y))
			closeTo(t, "ε", []float64{unrolled.Epsilon}, []float64{implicit.Epsilon}, 1e-8*math.Abs(implicit.Epsilon))
		}
	}
	tr, _ := Solve([]float64{1, 2})
	if _, err := tr.UnrolledQuantileVJP([]float64{0, 1}, []float64{1, 1}); err == nil {
		t.Error("a converged transport was unrolled")
	}
}

func total(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// TestEpsilonMeaning measures what the documentation says of ε: with many levels
// a sample is spread with standard deviation √(ε/2), and between two levels the
// odds grow by e every ε(m-1)/2.
func TestEpsilonMeaning(t *testing.T) {
	for _, n := range []int{100, 400} {
		x := make([]float64, n)
		for i := range x {
			x[i] = (float64(i) + 0.5) / float64(n)
		}
		for _, eps := range []float64{0.003, 0.01, 0.03} {
			tr, err := Solve(x, WithEpsilon(eps), WithLevels(200), WithSquash(SquashNone))
			if err != nil {
				t.Fatal(err)
			}
			i := n / 2
			mean, sq := 0.0, 0.0
			for j, p := range tr.Plan().Row(i) {
				p, y := p*float64(n), transport.Grid(j, 200)
				mean += p * y
				sq += p * y * y
			}
			if std := math.Sqrt(sq - mean*mean); math.Abs(std/math.Sqrt(eps/2)-1) > 0.1 {
				t.Errorf("n=%d, ε=%g: spread %v, √(ε/2) = %v", n, eps, std, math.Sqrt(eps/2))
			}
		}
		tr, err := Solve(x, WithEpsilon(0.01), WithLevels(8), WithSquash(SquashNone))
		if err != nil {
			t.Fatal(err)
		}
		step := 0.01 * 7 / 2
		plan := tr.Plan()
		odds := func(i int) float64 { return plan.At(i, 4) / plan.At(i, 3) }
		i, k := n/2-n/20, n/2+n/20
		if r, want := odds(k)/odds(i), math.Exp((x[k]-x[i])/step); math.Abs(r/want-1) > 1e-9 {
			t.Errorf("n=%d: the odds grow by %v over %v, want %v", n, r, x[k]-x[i], want)
		}
	}
}

// TestFirstIterations writes Algorithm 1 out in the plain domain.
func TestFirstIterations(t *testing.T) {
	p := randomPoint(1, true, SquashNone, 0.1)
	n, m := len(p.x), len(p.y)
	transport.Normalise(p.a, append([]float64(nil), p.a...))
	transport.Normalise(p.b, append([]float64(nil), p.b...))
	u := make([]float64, n)
	for i := range u {
		u[i] = 1
	}
	v := make([]float64, m)
	K := func(i, j int) float64 { return math.Exp(-(p.x[i] - p.y[j]) * (p.x[i] - p.y[j]) / p.eps) }
	for l := 1; l <= 7; l++ {
		for j := range v {
			s := 0.0
			for i := range u {
				s += K(i, j) * u[i]
			}
			v[j] = p.b[j] / s
		}
		for i := range u {
			s := 0.0
			for j := range v {
				s += K(i, j) * v[j]
			}
			u[i] = p.a[i] / s
		}
		want, sorted, col := make([]float64, n), make([]float64, m), make([]float64, m)
		for i := range u {
			for j := range v {
				P := u[i] * K(i, j) * v[j]
				want[i] += P * p.q[j] / p.a[i]
				sorted[j] += P * p.x[i]
				col[j] += P
			}
		}
		for j := range sorted {
			sorted[j] /= col[j]
		}
		tr, err := Solve(p.x, WithEpsilon(p.eps), WithWeights(p.a), WithTargetWeights(p.b), WithTargets(p.y), WithSquash(SquashNone), WithIterations(l))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := tr.Quantile(p.q)
		closeTo(t, "T", got, want, 1e-12*largest(want))
		closeTo(t, "S", tr.Sort(), sorted, 1e-12)
	}
}

func TestMap(t *testing.T) {
	for seed := range 60 {
		p := randomPoint(seed, seed%3 > 0, Squash(seed%2), []float64{0.3, 0.03, 0.001, 0}[seed%4])
		tr := p.solve0(t)
		f, err := tr.Map(p.q)
		if err != nil {
			t.Fatal(err)
		}
		T, _ := tr.Quantile(p.q)
		for i, x := range p.x {
			if math.Abs(f.At(x)-T[i]) > 1e-12*largest(p.q) {
				t.Errorf("seed %d: map %v, fitted %v", seed, f.At(x), T[i])
			}
			if p.eps == 0 {
				continue
			}
			h := 1e-6
			slope := (f.At(x+h) - f.At(x-h)) / (2 * h)
			if math.Abs(f.Slope(x)-slope) > 1e-4*(1+math.Abs(slope)) {
				t.Errorf("seed %d: slope %v, differences say %v", seed, f.Slope(x), slope)
			}
			back, err := f.Invert(T[i])
			if err != nil {
				if _, ok := err.(*DataError); !ok {
					t.Errorf("seed %d: %v", seed, err)
				}
				continue
			}
			if math.Abs(f.At(back)-T[i]) > 1e-12*largest(p.q) {
				t.Errorf("seed %d: inverse of %v is %v, which maps to %v", seed, T[i], back, f.At(back))
			}
		}
		if _, err := f.Invert(p.q[0] - 1); err == nil {
			t.Error("a value below the range was inverted")
		}
		x := p.x[0]
		last := f.At(x)
		for range 20000 {
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

func (p point) solve0(t testing.TB) *Transport {
	if p.eps > 0 {
		return p.solve(t)
	}
	tr, err := Solve(p.x, WithEpsilon(0), WithWeights(p.a), WithTargetWeights(p.b), WithTargets(p.y), WithSquash(p.squash))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestHardLimit checks ε = 0 on small rows by hand.
func TestHardLimit(t *testing.T) {
	x := []float64{3, 1, 2, 3, 5}
	hard := WithEpsilon(0)
	r, err := SoftRank(x, hard)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "rank", r, []float64{3.5, 1, 2, 3.5, 5}, 0)
	r, _ = SoftRank([]float64{0, 1, 1, 1, 1, 5, 6}, hard)
	closeTo(t, "rank of four ties", r, []float64{1, 3.5, 3.5, 3.5, 3.5, 6, 7}, 0)
	s, _ := SoftSort(x, hard)
	closeTo(t, "sort", s, []float64{1, 2, 3, 3, 5}, 0)
	q, _ := SoftQuantile(x, []float64{10, 20, 30, 40, 50}, hard)
	closeTo(t, "quantile", q, []float64{35, 10, 20, 35, 50}, 0)
	q, _ = SoftQuantile(x, []float64{0, 1}, hard)
	closeTo(t, "two levels", q, []float64{0.75, 0, 0, 0.75, 1}, 1e-15)
	tr, _ := Solve(x, hard)
	if !tr.Converged || tr.Iterations != 0 || tr.MarginalError != 0 {
		t.Errorf("converged %v, %d iterations, error %v", tr.Converged, tr.Iterations, tr.MarginalError)
	}
	g, err := tr.SortVJP([]float64{1, 2, 3, 4, 5})
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "sort gradient", g.X, []float64{3.5, 1, 2, 3.5, 5}, 1e-14)
	// Close to the limit the soft operators agree with it.
	for seed := range 30 {
		p := randomPoint(seed, true, SquashLogistic, 1e-6)
		soft := p.solve(t)
		p.eps = 0
		lim := p.solve0(t)
		a, _ := soft.Quantile(p.q)
		b, _ := lim.Quantile(p.q)
		closeTo(t, "T", a, b, 1e-6*largest(b))
		closeTo(t, "R", soft.Rank(), lim.Rank(), 1e-6*float64(len(p.x)))
		closeTo(t, "S", soft.Sort(), lim.Sort(), 1e-6)
		closeTo(t, "P", soft.Plan().Data, lim.Plan().Data, 1e-7)
		closeTo(t, "G", soft.G, lim.G, 1e-4)
		closeTo(t, "F", soft.F, lim.F, 1e-4)
	}
}

// TestFinite: no value and no gradient is NaN or infinite for finite input,
// however extreme.
func TestFinite(t *testing.T) {
	const top = maxMagnitude
	rows := [][]float64{
		{5}, {1, 1, 1}, {0, 0, 1}, {-top, 0, top}, {top, top}, {top, math.Nextafter(top, 0), top / 2}, {1e-320, 2e-320, 0},
		{1e300, 1, 1e-300}, {1, 1 + 0x1p-52, 1 - 0x1p-53}, {1e9, 1e9 + 1e-6, 1e9 - 1e-6, 1e9}, {0, 0, 0, 0, 0, 0, 0, 0, 1},
	}
	levels := [][]float64{{0, 1}, {-top, 0, top}, {top, top, top}, {1e-320, 2e-320, 3e-320}, {0, 0, 1e299, 1e300}}
	check := func(what string, p point, v ...float64) {
		t.Helper()
		if i := notFinite(v); i >= 0 {
			t.Errorf("x %v, q %v, ε %g, %v, %d options: %s is %v", p.x, p.q, p.eps, p.squash, len(p.extra), what, v)
		}
	}
	for _, x := range rows {
		for _, q := range levels {
			for _, eps := range []float64{1e12, 100, 1, 0.01, 1e-4, 1e-6, 1e-12, 0} {
				for s := range Squash(len(squashNames)) {
					for _, l := range []int{0, 1, 3} {
						p := point{x: x, q: q, eps: eps, squash: s}
						opts := []Option{WithEpsilon(eps), WithSquash(s), WithLevels(len(q))}
						if l > 0 {
							p.extra = []Option{WithIterations(l)}
							opts = append(opts, p.extra...)
						}
						tr, err := Solve(x, opts...)
						if err != nil {
							if s == SquashNone && largest(x) > maxPlace || eps == 0 && l > 0 {
								continue
							}
							t.Fatal(err)
						}
						T, _ := tr.Quantile(q)
						check("T", p, T...)
						check("R", p, tr.Rank()...)
						check("S", p, tr.Sort()...)
						check("F", p, tr.F...)
						check("G", p, tr.G...)
						check("P", p, tr.Plan().Data...)
						f, _ := tr.Map(q)
						for _, v := range x {
							check("Map", p, f.At(v), f.Slope(v))
						}
						for _, zs := range []float64{1, -math.MaxFloat64, 1e-320} {
							z, zm := make([]float64, len(x)), make([]float64, len(q))
							for i := range z {
								z[i] = zs * float64(1-i%2*2)
							}
							for j := range zm {
								zm[j] = zs * float64(1-j%2*2)
							}
							a, err := tr.QuantileVJP(q, z)
							if err != nil {
								t.Fatal(err)
							}
							b, _ := tr.RankVJP(z)
							c, _ := tr.SortVJP(zm)
							for _, g := range []*Gradient{a, b, c} {
								check("gradient", p, g.X...)
								check("gradient", p, g.A...)
								check("gradient", p, g.B...)
								check("gradient", p, g.Y...)
								check("gradient", p, g.Q...)
								check("gradient", p, g.Epsilon)
							}
							if l > 0 {
								u, err := tr.UnrolledQuantileVJP(q, z)
								if err != nil {
									t.Fatal(err)
								}
								check("unrolled", p, u.X...)
								check("unrolled", p, u.B...)
							}
							d, err := tr.QuantileJVP(q, Gradient{X: z, Q: zm, B: zm})
							if err != nil {
								t.Fatal(err)
							}
							check("JVP", p, d...)
						}
						if t.Failed() {
							return
						}
					}
				}
			}
		}
	}
}
