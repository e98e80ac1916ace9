package quantmf

// The operators as functions of all their arguments, and points to take their derivatives at, for the tests
// of derivatives (jvp_test.go) and of the limit ε = 0.

import (
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// operator is one of T, R, S as a function of all its arguments.
type operator struct {
	name string
	eval func(p point) []float64
	vjp  func(p point, z []float64) *Gradient
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
	return Solved(t, p.x, opts...)
}

func operators(t testing.TB) []operator {
	return []operator{
		{"T", func(p point) []float64 { return Must(p.solve(t).Quantile(p.q))(t) },
			func(p point, z []float64) *Gradient { return Must(p.solve(t).QuantileVJP(p.q, z))(t) }},
		{"R", func(p point) []float64 { return p.solve(t).Rank() },
			func(p point, z []float64) *Gradient { return Must(p.solve(t).RankVJP(z))(t) }},
		{"S", func(p point) []float64 { return p.solve(t).Sort() },
			func(p point, z []float64) *Gradient { return Must(p.solve(t).SortVJP(z))(t) }},
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
