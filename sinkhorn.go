package quantmf

// This file holds Algorithm 1 of the paper in the logarithmic domain: the slow
// and obviously correct reference that the solver in newton.go is tested
// against, and what [WithIterations] runs.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

// sinkhorn makes l iterations from f = 0,
//
//	g_j ← ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε),
//	f_i ← ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε),   c_ij = (x_i-y_j)²,
//
// and returns both. A sample without weight takes no part: its f is -Inf.
// Cost: 2l·nm exponentials; memory n+m.
func sinkhorn(x, a, y, b []float64, eps float64, l int) (f, g []float64) {
	f, g = make([]float64, len(x)), make([]float64, len(y))
	for i, w := range a {
		if w == 0 {
			f[i] = math.Inf(-1)
		}
	}
	terms := make([]float64, max(len(x), len(y)))
	cost := func(i, j int) float64 { d := x[i] - y[j]; return float64(d * d) }
	for range l {
		for j := range y {
			t := terms[:len(x)]
			for i := range x {
				t[i] = (f[i] - cost(i, j)) / eps
			}
			g[j] = float64(eps * (elem.Log(b[j]) - logSum(t)))
		}
		for i := range x {
			if a[i] == 0 {
				continue
			}
			t := terms[:len(y)]
			for j := range y {
				t[j] = (g[j] - cost(i, j)) / eps
			}
			f[i] = float64(eps * (elem.Log(a[i]) - logSum(t)))
		}
	}
	return f, g
}

// logSum returns log Σ exp t.
func logSum(t []float64) float64 {
	top := t[0]
	for _, v := range t {
		top = max(top, v)
	}
	if math.IsInf(top, 0) {
		return top
	}
	s := 0.0
	for _, v := range t {
		s += elem.Exp(v - top)
	}
	return top + elem.Log(s)
}

// iterate puts the row at the potentials after l iterations of Algorithm 1.
func (r *row) iterate(l int) outcome {
	n := r.n
	_, g := sinkhorn(r.xs[:n], r.a[:n], r.y, r.b, r.eps, l)
	delta := r.xc - r.yc
	for j, y := range r.cy {
		r.h[j] = (g[j] - float64(y*y) + float64(float64(2*delta)*y)) / r.eps
	}
	lo, hi := bounds(r.h)
	mid := middle(lo, hi)
	for j := range r.h {
		r.h[j] -= mid
	}
	r.pass(r.h)
	return outcome{passes: l, rel: r.relative()}
}
