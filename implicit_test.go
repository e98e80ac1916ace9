package quantmf

// Tests of the derivatives of the operators: central differences, forward against reverse,
// and the gradient through a number of iterations.

import (
	"math"
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
	opts := append([]Option{WithEpsilon(p.eps), WithWeights(p.a), WithTargetWeights(p.b), WithTargets(p.y),
		WithSquash(p.squash)}, p.extra...)
	if p.eps > 0 {
		opts = append(opts, WithTolerance(1e-14))
	}
	return must(Solve(p.x, opts...))(t)
}

func operators(t testing.TB) []operator {
	return []operator{
		{"T", func(p point) []float64 {
			v := must(p.solve(t).Quantile(p.q))(t)
			return v
		}, func(p point, z []float64) *Gradient { return must(p.solve(t).QuantileVJP(p.q, z))(t) },
			func(p point) int { return len(p.x) }},
		{"R", func(p point) []float64 { return p.solve(t).Rank() },
			func(p point, z []float64) *Gradient { return must(p.solve(t).RankVJP(z))(t) },
			func(p point) int { return len(p.x) }},
		{"S", func(p point) []float64 { return p.solve(t).Sort() },
			func(p point, z []float64) *Gradient { return must(p.solve(t).SortVJP(z))(t) },
			func(p point) int { return len(p.y) }},
	}
}

func randomPoint(seed int, regular bool, s Squash, eps float64) point {
	r := random.Split(11, seed)
	n, m := 5+r.IntN(20), 2+r.IntN(8)
	p := point{squash: s, eps: eps, x: make([]float64, n), a: make([]float64, n), b: make([]float64, m),
		y: make([]float64, m), q: make([]float64, m)}
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
	}{{true, SquashLogistic, nil}, {true, SquashLogisticUnit, nil}, {false, SquashArctan, nil},
		{false, SquashLogistic, nil}, {true, SquashNone, nil},
		{false, SquashNone, []Option{WithMidpointRanks()}},
		{true, SquashLogistic, []Option{WithMidpointRanks()}}} {
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
							t.Errorf("case %d, ε=%g, %s: ∂%s[%d] = %v, differences say %v (relative %.1e)",
								seed, eps, op.name, arg.name, i, got[i], want[i], e)
						}
					}
				}
				h := 1e-4 * eps
				at := func(d float64) float64 { p := p; p.eps += d; return dot(p) }
				want := derivative(at, h)
				if e := math.Abs(g.Epsilon-want) / (math.Abs(want) +
					1e-3*largest(z)*largest(op.eval(p))); !(e <= 1e-6) {
					t.Errorf("case %d, ε=%g, %s: ∂ε = %v, differences say %v", seed, eps, op.name, g.Epsilon,
						want)
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
		jd := must(tr.QuantileJVP(p.q, d))(t)
		g := must(tr.QuantileVJP(p.q, z))(t)
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
