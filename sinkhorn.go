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
		return nil, &OptionError{Option: "UnrolledQuantileVJP",
			Bound: "needs a transport solved WithIterations"}
	}
	n, w := t.size()
	sz, err := checkCotangent(z, n)
	if err != nil {
		return nil, err
	}
	// Two vectors an iteration, each of three words and its numbers.
	if below := limit.Cells / uint64(n+len(w)+6); uint64(t.iterations) >= below {
		return nil, &OptionError{Option: option.Iterations.String(), Value: itoa(t.iterations),
			Bound: "must be below " + utoa(below) +
				" here: the potentials of more need too much memory"}
	}
	r := t.row()
	defer workspaces.Put(r)
	a, b := r.Weights()
	m := len(w)
	u := &unrolling{
		Gradient: newGradient(n, m), x: r.Squashed(), a: a, y: r.Targets(), b: b, eps: r.Epsilon(),
		fbar: make([]float64, n), gbar: make([]float64, m), terms: make([]float64, max(n, m)),
	}
	// fs[l], gs[l]: the potentials after l iterations.
	fs, gs := make([][]float64, 0, t.iterations+1), make([][]float64, 0, t.iterations+1)
	sinkhorn(u.x, u.a, u.y, u.b, u.eps, t.iterations, func(f, g []float64) {
		fs, gs = append(fs, slices.Clone(f)), append(gs, slices.Clone(g))
	})
	sq := transport.ScaleOf(q)
	u.output(transport.Scaled(z, sz), transport.Scaled(q, sq), gs[t.iterations])
	for l := t.iterations; l >= 1; l-- {
		u.stepG(fs[l-1])
		if l > 1 { // the first f, 0, does not depend on anything
			u.stepF(gs[l-1])
		}
	}
	transport.Tangent(u.A, a)
	transport.Tangent(u.B, b)
	r.SquashBack(u.X)
	u.inner().Rescale(sz, sq)
	return u.Gradient, nil
}

// unrolling is the way back through Algorithm 1. It adds to the gradient what each half of an iteration adds.
type unrolling struct {
	*Gradient
	x, a, y, b []float64
	eps        float64
	fbar, gbar []float64 // dℓ/df and dℓ/dg
	terms      []float64 // scratch of logSum
}

func (u *unrolling) cost(i, j int) float64 { d := u.x[i] - u.y[j]; return float64(d * d) }

// logSum returns log Σ exp term(i) over i < count.
func (u *unrolling) logSum(count int, term func(i int) float64) float64 {
	for i := range count {
		u.terms[i] = term(i)
	}
	return transport.LogSum(u.terms[:count])
}

// move adds the part of dℓ/dc_ij = c to the gradients in x_i and y_j.
func (u *unrolling) move(i, j int, c float64) {
	d := float64(2 * c * (u.x[i] - u.y[j]))
	u.X[i] += d
	u.Y[j] -= d
}

// output takes z = dℓ/dT back through T = M q, M_ij = softmax_j((g_j-c_ij)/ε), to q and g.
func (u *unrolling) output(z, q, g []float64) {
	p := make([]float64, len(u.y))
	for i := range u.x {
		norm := u.logSum(len(u.y), func(j int) float64 { return (g[j] - u.cost(i, j)) / u.eps })
		mean := 0.0
		for j := range u.y {
			p[j] = elem.Exp((g[j]-u.cost(i, j))/u.eps - norm)
			mean += float64(p[j] * q[j])
		}
		for j := range u.y {
			u.Q[j] += float64(z[i] * p[j])
			e := float64(z[i]*p[j]) * (q[j] - mean) / u.eps // dℓ/d(g_j-c_ij)
			u.gbar[j] += e
			u.Epsilon -= e * (g[j] - u.cost(i, j)) / u.eps
			u.move(i, j, -e)
		}
	}
}

// stepG takes gbar back through g_j = ε log b_j - ε log Σ_i exp((f_i-c_ij)/ε), to fbar.
func (u *unrolling) stepG(f []float64) {
	clear(u.fbar)
	for j, gb := range u.gbar {
		norm := u.logSum(len(u.x), func(i int) float64 { return (f[i] - u.cost(i, j)) / u.eps })
		u.B[j] += gb * u.eps / u.b[j]
		u.Epsilon += float64(gb * (elem.Log(u.b[j]) - norm))
		for i := range u.x {
			if u.a[i] == 0 {
				continue
			}
			s := (f[i] - u.cost(i, j)) / u.eps
			w := float64(gb * elem.Exp(s-norm))
			u.fbar[i] -= w
			u.Epsilon += float64(w * s)
			u.move(i, j, w)
		}
	}
}

// stepF takes fbar back through f_i = ε log a_i - ε log Σ_j exp((g_j-c_ij)/ε), to gbar.
func (u *unrolling) stepF(g []float64) {
	clear(u.gbar)
	for i, fb := range u.fbar {
		if u.a[i] == 0 {
			continue
		}
		norm := u.logSum(len(u.y), func(j int) float64 { return (g[j] - u.cost(i, j)) / u.eps })
		u.A[i] += fb * u.eps / u.a[i]
		u.Epsilon += float64(fb * (elem.Log(u.a[i]) - norm))
		for j := range u.y {
			s := (g[j] - u.cost(i, j)) / u.eps
			w := float64(fb * elem.Exp(s-norm))
			u.gbar[j] -= w
			u.Epsilon += float64(w * s)
			u.move(i, j, w)
		}
	}
}
