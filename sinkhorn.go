package quantmf

// This file holds Algorithm 1 of the paper (Sinkhorn's, in the logarithmic domain) and the
// way back through its iterations. It is the slow and obviously correct reference that the
// solver in internal/transport is tested against, and what [WithIterations] runs.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/transport"
)

// sinkhorn makes l iterations from f = 0,
//
//	g_j ← ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε),
//	f_i ← ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε),   c_ij = (x_i-y_j)²,
//
// and calls each with the f and g of the start, where g is 0, and of every iteration. The next
// iteration overwrites them. A sample without weight takes no part: its f is -Inf.
// Cost: 2l·nm exponentials; memory n+m.
func sinkhorn(x, a, y, b []float64, eps float64, l int, each func(f, g []float64)) {
	f, g := make([]float64, len(x)), make([]float64, len(y))
	for i, w := range a {
		if w == 0 {
			f[i] = math.Inf(-1)
		}
	}
	terms := make([]float64, max(len(x), len(y)))
	cost := func(i, j int) float64 { d := x[i] - y[j]; return float64(d * d) }
	each(f, g)
	for range l {
		for j := range y {
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
		each(f, g)
	}
}

// iterate puts the row at the potentials after l iterations of Algorithm 1.
func (c *config) iterate(r *transport.Row) transport.Outcome {
	a, b := r.Weights()
	var last []float64
	sinkhorn(r.Squashed(), a, r.Targets(), b, r.Epsilon(), c.iterations, func(_, g []float64) { last = g })
	out := r.Stand(last, c.tolerance)
	out.Passes = c.iterations
	return out
}

// UnrolledQuantileVJP returns the transposed Jacobian of [Transport.Quantile] at q
// applied to z, n numbers, differentiated back through the l iterations of
// [WithIterations], as automatic differentiation does: the exact gradient of what l
// iterations compute, which the paper's §2.4 compares with the implicit one of
// QuantileVJP. Without WithIterations it is an [*OptionError].
//
// Cost: 4l·nm exponentials. Memory: the potentials of all iterations, l(n+m+6) numbers;
// more than 2^31 of them (2^27 where addresses have 32 bits) are an [*OptionError].
func (t *Transport) UnrolledQuantileVJP(q, z []float64) (*Gradient, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	if t.iterations == 0 {
		return nil, &OptionError{Option: "UnrolledQuantileVJP", Bound: "needs a transport solved WithIterations"}
	}
	n, w := t.size()
	sz, err := checkCotangent(z, n)
	if err != nil {
		return nil, err
	}
	// Two vectors an iteration, each of three words and its numbers.
	if below := limit.Cells / uint64(n+len(w)+6); uint64(t.iterations) >= below {
		return nil, &OptionError{Option: option.Iterations.String(), Value: itoa(t.iterations), Bound: "must be below " + utoa(below) +
			" here: the potentials of more need too much memory"}
	}
	r := t.row()
	defer workspaces.Put(r)
	m, eps, x, y := len(w), r.Epsilon(), r.Squashed(), r.Targets()
	a, b := r.Weights()
	sq := transport.ScaleOf(q)
	z, q = transport.Scaled(z, sz), transport.Scaled(q, sq)
	cost := func(i, j int) float64 { d := x[i] - y[j]; return float64(d * d) }
	// fs[l], gs[l]: the potentials after l iterations.
	fs, gs := make([][]float64, 0, t.iterations+1), make([][]float64, 0, t.iterations+1)
	sinkhorn(x, a, y, b, eps, t.iterations, func(f, g []float64) {
		fs, gs = append(fs, slices.Clone(f)), append(gs, slices.Clone(g))
	})
	terms := make([]float64, max(n, m))
	sumOver := func(count int, term func(i int) float64) float64 { // log Σ exp term(i)
		for i := range count {
			terms[i] = term(i)
		}
		return transport.LogSum(terms[:count])
	}
	grad := newGradient(n, m)
	move := func(i, j int, c float64) { // dℓ/dc_ij = c
		d := float64(2 * c * (x[i] - y[j]))
		grad.X[i] += d
		grad.Y[j] -= d
	}
	// The output: M = softmax_j((g_j-c_ij)/ε), T = Mq.
	fbar, gbar := make([]float64, n), make([]float64, m)
	p := make([]float64, max(n, m))
	g := gs[t.iterations]
	for i := range x {
		norm := sumOver(m, func(j int) float64 { return (g[j] - cost(i, j)) / eps })
		mean := 0.0
		for j := range y {
			p[j] = elem.Exp((g[j]-cost(i, j))/eps - norm)
			mean += float64(p[j] * q[j])
		}
		for j := range y {
			grad.Q[j] += float64(z[i] * p[j])
			e := float64(z[i]*p[j]) * (q[j] - mean) / eps // dℓ/d(g_j-c_ij)
			gbar[j] += e
			grad.Epsilon -= e * (g[j] - cost(i, j)) / eps
			move(i, j, -e)
		}
	}
	for l := t.iterations; l >= 1; l-- {
		// g_j = ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε).
		clear(fbar)
		f := fs[l-1]
		for j, gb := range gbar {
			norm := sumOver(n, func(i int) float64 { return (f[i] - cost(i, j)) / eps })
			grad.B[j] += gb * eps / b[j]
			grad.Epsilon += float64(gb * (elem.Log(b[j]) - norm))
			for i := range x {
				if a[i] == 0 {
					continue
				}
				s := (f[i] - cost(i, j)) / eps
				w := float64(gb * elem.Exp(s-norm))
				fbar[i] -= w
				grad.Epsilon += float64(w * s)
				move(i, j, w)
			}
		}
		if l == 1 {
			break // f = 0 does not depend on anything
		}
		// f_i = ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε).
		clear(gbar)
		g := gs[l-1]
		for i, fb := range fbar {
			if a[i] == 0 {
				continue
			}
			norm := sumOver(m, func(j int) float64 { return (g[j] - cost(i, j)) / eps })
			grad.A[i] += fb * eps / a[i]
			grad.Epsilon += float64(fb * (elem.Log(a[i]) - norm))
			for j := range y {
				s := (g[j] - cost(i, j)) / eps
				w := float64(fb * elem.Exp(s-norm))
				gbar[j] -= w
				grad.Epsilon += float64(w * s)
				move(i, j, w)
			}
		}
	}
	transport.Tangent(grad.A, a)
	transport.Tangent(grad.B, b)
	r.SquashBack(grad.X)
	grad.inner().Rescale(sz, sq)
	return grad, nil
}
