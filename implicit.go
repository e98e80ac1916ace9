package quantmf

// This file holds the derivatives of the operators (paper §2.4, Algorithm 2, with
// its errata mended), each beside the forward they belong to in quantile.go.
//
// Let H_ij = ∂ℓ/∂P_ij, the rest fixed, be of the form a_i H_ij = ζ_i v_j:
//
//	T = M q:   ζ = z, v = q;    S:   ζ_i = a_i x_i, v_j = z_j/b_j;    R is T with q = n cumsum(b).
//
// With N_jk = Σ_i ζ_i M_ij M_ik and the Laplacian L of the solver,
//
//	ρ_j = Σ_k (v_j-v_k) N_jk,   L λ = ρ,   Σ b_j λ_j = 0,
//	∂x̃_i = (2/ε)(ζ_i Cov_{M_i}(v,y) - a_i Cov_{M_i}(λ,y)),   ∂b = λ,   ∂q_j = Σ_k N_jk,
//
// to which the direct dependence of v and of the output on b and x is added. adjoint.go and
// forward.go of internal/transport have the formulas for a, y and ε too, and the accuracy of
// all. A gradient in a or b is given on the simplex: Σ a_i A_i = 0, Σ b_j B_j = 0.
//
// After WithIterations the same formulas are evaluated at the plan of these iterations.

import (
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/transport"
)

// Gradient holds derivatives with respect to the arguments of an operator: X and A (n
// numbers), B, Y and Q (m numbers, Q nil where the operator has no q) and Epsilon. In the
// direction of a JVP nil stands for zeros.
type Gradient struct {
	X, A, B, Y, Q []float64
	Epsilon       float64
}

// RankVJP returns the transposed Jacobian of [Transport.Rank] applied to z, n
// numbers. Errors: a [*ShapeError] for another number, a [*DataError] for a z that is not
// finite. Cost: a pass over the plan and the moments of three sets of
// weights, 50nm flops, m³/3 once; memory 8(2n+3m) bytes, the result. At ε = 0 all are zero.
func (t *Transport) RankVJP(z []float64) (*Gradient, error) {
	if err := t.unsolved(); err != nil {
		return nil, err
	}
	n, b := t.size()
	q := make([]float64, len(b))
	t.ranks.levels(q, n, b)
	sz := transport.ScaleOf(z)
	g, err := t.QuantileVJP(q, transport.Scaled(z, sz))
	if err != nil {
		return nil, err
	}
	if t.hard != nil {
		g.Q = nil
		return g, nil
	}
	if !t.ranks.chosen { // q = n cumsum(b), or n(cumsum(b)-b/2)+1/2, moves with b
		tail := 0.0
		for j := len(b) - 1; j >= 0; j-- {
			d := g.Q[j]
			tail += d
			if t.ranks.midpoint {
				d = tail - float64(d*0.5)
			} else {
				d = tail
			}
			g.B[j] += float64(float64(n) * d)
		}
		transport.Tangent(g.B, b)
	}
	g.Q = nil
	g.inner().Rescale(sz, 1)
	return g, nil
}

// QuantileVJP returns the transposed Jacobian of [Transport.Quantile] at q
// applied to z, n numbers. Where only a share κ of the mass crosses a boundary between two
// levels, X of the samples near the boundary, A, B and Y have errors of up to 1e-16/κ times
// their largest entries; QuantileJVP has no such error along X and Y. Errors are those of
// Quantile and, for z, of RankVJP; cost and memory as RankVJP. At ε = 0, Q is exact and the
// others are zero.
func (t *Transport) QuantileVJP(q, z []float64) (*Gradient, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	n, b := t.size()
	sz, err := checkCotangent(z, n)
	if err != nil {
		return nil, err
	}
	g := newGradient(n, len(b))
	if t.hard != nil {
		for i, v := range transport.Scaled(z, sz) {
			t.hard.EachShare(i, func(j int, s float64) { g.Q[j] += float64(v * s) })
		}
		g.inner().Rescale(sz, transport.ScaleOf(q))
		return g, nil
	}
	r := t.row()
	defer workspaces.Put(r)
	r.QuantileAdjoint(g.inner(), q, z)
	return g, nil
}

// SortVJP returns the transposed Jacobian of [Transport.Sort] applied to z, m
// numbers. Errors, cost and memory as RankVJP. At ε = 0, X is that of the exact sort,
// P z/b, and the others are zero.
func (t *Transport) SortVJP(z []float64) (*Gradient, error) {
	if err := t.unsolved(); err != nil {
		return nil, err
	}
	n, b := t.size()
	_, err := checkCotangent(z, len(b))
	if err != nil {
		return nil, err
	}
	g := newGradient(n, len(b))
	g.Q = nil
	if t.hard != nil {
		sortShares(g.inner(), t.hard, z)
		return g, nil
	}
	r := t.row()
	defer workspaces.Put(r)
	r.SortAdjoint(g.inner(), z)
	return g, nil
}

// newGradient returns a gradient of zeros.
func newGradient(n, m int) *Gradient {
	g := Gradient(transport.NewGradient(n, m))
	return &g
}

// inner is g as internal/transport has it.
func (g *Gradient) inner() *transport.Gradient { return (*transport.Gradient)(g) }

// checkCotangent returns the scale of z, n finite numbers.
func checkCotangent(z []float64, n int) (scale float64, err error) {
	if len(z) != n {
		return 0, &ShapeError{What: "z", Got: itoa(len(z)) + " values", Want: itoa(n)}
	}
	top := transport.Largest(z)
	if top != top {
		i := notFinite(z)
		return 0, &DataError{Row: -1, Col: i, Value: z[i], Problem: "z must be finite"}
	}
	return transport.ScaleFor(top), nil
}

// QuantileJVP returns the derivative of [Transport.Quantile] at q along dir, n numbers.
// Of dir.A and dir.B only the part along the simplex counts. Errors are those of Quantile,
// and a [*ShapeError] or [*DataError] for dir. Cost: 30nm flops and m³; memory 8n bytes, the result, and a
// workspace of 8m² bytes more than Solve's, which later calls reuse. At ε = 0 only dir.Q counts.
//
// The error along X, Y and Epsilon is about 1e-15 times the largest move of a logit,
// (2/ε) max|dX| max|y-ȳ| and the like, times q_m-q_1. Along A and B it is that divided by
// κ, where κ is the least share of the mass that crosses a boundary between levels.
func (t *Transport) QuantileJVP(q []float64, dir Gradient) ([]float64, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	if err := t.checkDirection(&dir); err != nil {
		return nil, err
	}
	n, _ := t.size()
	out := make([]float64, kernel.Pad(n))
	if t.hard != nil {
		if dir.Q == nil {
			return out[:n:n], nil
		}
		least, most := slices.Min(dir.Q), slices.Max(dir.Q) // as shares sum to 1 but for rounding
		for i := range out[:n] {
			t.hard.EachShare(i, func(j int, s float64) { out[i] += float64(s * dir.Q[j]) })
			out[i] = min(max(out[i], least), most)
		}
		return out[:n:n], nil
	}
	r := t.row()
	defer workspaces.Put(r)
	r.QuantileForward(out, q, dir.inner())
	return out[:n:n], nil
}

// RankJVP returns the derivative of [Transport.Rank] along dir, n numbers. dir.Q has no part in it. Errors,
// cost and accuracy are those of QuantileJVP. At ε = 0 it is 0.
func (t *Transport) RankJVP(dir Gradient) ([]float64, error) {
	if err := t.unsolved(); err != nil {
		return nil, err
	}
	dir.Q = nil
	if err := t.checkDirection(&dir); err != nil {
		return nil, err
	}
	n, b := t.size()
	if t.hard != nil {
		return make([]float64, n), nil
	}
	q := make([]float64, len(b))
	t.ranks.levels(q, n, b)
	if dir.B != nil && !t.ranks.chosen { // the levels move: dq = n cumsum(db), or n(cumsum(db)-db/2)
		total, sum := 0.0, 0.0
		for _, d := range dir.B {
			total += d
		}
		dir.Q = make([]float64, len(b))
		for j, d := range dir.B {
			d -= float64(b[j] * total)
			sum += d
			dir.Q[j] = sum
			if t.ranks.midpoint {
				dir.Q[j] -= float64(d * 0.5)
			}
			dir.Q[j] = transport.Saturate(float64(n) * dir.Q[j])
		}
	}
	return t.QuantileJVP(q, dir)
}

// SortJVP returns the derivative of [Transport.Sort] along dir, m numbers. dir.Q has no part in it. Errors
// and cost are those of QuantileJVP; the accuracy is that times the range of x, and along B less in levels of
// little weight: 1e-16/b_j of it. At ε = 0 it is that of the exact sort along dir.X.
func (t *Transport) SortJVP(dir Gradient) ([]float64, error) {
	if err := t.unsolved(); err != nil {
		return nil, err
	}
	dir.Q = nil
	if err := t.checkDirection(&dir); err != nil {
		return nil, err
	}
	_, b := t.size()
	out := make([]float64, len(b))
	if t.hard != nil {
		if dir.X != nil {
			sortAlong(out, t.hard, dir.X)
		}
		return out, nil
	}
	r := t.row()
	defer workspaces.Put(r)
	r.SortForward(out, dir.inner())
	return out, nil
}

// sortAlong fills out with the derivative of the sorted values of a plan at ε = 0 along dx, Pᵀdx/b.
func sortAlong(out []float64, h *transport.Hard, dx []float64) {
	scale := transport.ScaleOf(dx)
	clear(out)
	for i, a := range h.A {
		h.EachShare(i, func(j int, s float64) {
			out[j] += float64(float64(a*s) * (dx[i] / scale / h.B[j]))
		})
	}
	for j, v := range out {
		out[j] = transport.Saturate(v * scale)
	}
}

// checkDirection reports a direction of another size, or one that is not finite.
func (t *Transport) checkDirection(dir *Gradient) error {
	n, b := t.size()
	m := len(b)
	for _, d := range []struct {
		name string
		v    []float64
		want int
	}{{"dir.X", dir.X, n}, {"dir.A", dir.A, n}, {"dir.B", dir.B, m}, {"dir.Y", dir.Y, m},
		{"dir.Q", dir.Q, m}} {
		if d.v == nil {
			continue
		}
		if len(d.v) != d.want {
			return &ShapeError{What: d.name, Got: itoa(len(d.v)) + " values", Want: itoa(d.want)}
		}
		if l := transport.Largest(d.v); l != l {
			i := notFinite(d.v)
			return &DataError{Row: -1, Col: i, Value: d.v[i], Problem: d.name + " must be finite"}
		}
	}
	if dir.Epsilon-dir.Epsilon != 0 {
		return &DataError{Row: -1, Col: -1, Value: dir.Epsilon, Problem: "dir.Epsilon must be finite"}
	}
	return nil
}
