package quantmf

// This file holds Algorithm 1 of the paper (Sinkhorn's, in the logarithmic domain). It is the slow and
// obviously correct reference that the solver in internal/transport is tested against, and what
// [WithIterations] runs.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/transport"
)

// sinkhorn makes l iterations from f = 0,
//
//	g_j ← ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε),
//	f_i ← ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε),   c_ij = (x_i-y_j)²,
//
// and returns the last g. A sample without weight takes no part: its f is -Inf.
// It gives up once done says so, which it asks for every target. Cost: 2l·nm exponentials; memory n+m.
func sinkhorn(x, a, y, b []float64, eps float64, l int, done func() bool) (g []float64) {
	f, g := make([]float64, len(x)), make([]float64, len(y))
	for i, w := range a {
		if w == 0 {
			f[i] = math.Inf(-1)
		}
	}
	terms := make([]float64, max(len(x), len(y)))
	cost := func(i, j int) float64 { d := x[i] - y[j]; return float64(d * d) }
	for range l {
		for j := range y {
			if done() {
				return g
			}
			t := terms[:len(x)]
			for i := range x {
				t[i] = (f[i] - cost(i, j)) / eps
			}
			g[j] = float64(eps * (elem.Log(b[j]) - transport.LogSum(t)))
		}
		for i := range x {
			if a[i] == 0 {
				continue
			}
			t := terms[:len(y)]
			for j := range y {
				t[j] = (g[j] - cost(i, j)) / eps
			}
			f[i] = float64(eps * (elem.Log(a[i]) - transport.LogSum(t)))
		}
	}
	return g
}

// iterate puts the row at the potentials after l iterations of Algorithm 1.
func (c *config) iterate(r *transport.Row) transport.Outcome {
	a, b := r.Weights()
	done := func() bool { return c.ctx != nil && c.ctx.Err() != nil }
	g := sinkhorn(r.Squashed(), a, r.Targets(), b, r.Epsilon(), c.iterations, done)
	out := r.Stand(g, c.Tolerance)
	out.Passes = c.iterations
	return out
}
