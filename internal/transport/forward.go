package transport

// This file holds the forward derivatives of T and S along a direction of all arguments,
//
//	dT_i = Cov_{M_i}(q, dh + κ_i) + M_i·dq,   κ_ij = α_i Y_j + s_i dY_j,   α_i = 2 dX_i/ε - s_i dε/ε:
//
// the logits h_j + 2X_i Y_j/ε move by dh_j + κ_ij, M by M(κ - M·κ) and the like of dh, which
// keeps the column sums:
//
//	L dh = dc - Σ_k F_jk,   dc_j = db_j - Σ_i da_i M_ij,
//	F_jk = (Y_j-Y_k) N^{aα}_jk + (dY_j-dY_k) N^{as}_jk.
//
// F_jk is the mass that moves between two levels, and is as small as their coupling. It is eliminated
// pair by pair (carry): in its sums over k the rounding errors of strong couplings would cover the
// weak ones. With the same dh,
//
//	b_j dS_j = Σ_i (da_i x_i + a_i dx_i) M_ij - S_j db_j
//	         + Σ_k ((Y_j-Y_k) N^{axα}_jk + (dY_j-dY_k) N^{axs}_jk + (dh_j-dh_k) N^{ax}_jk).

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

// QuantileForward fills out, n numbers with a capacity of whole blocks, with the derivative
// of T at q along dir.
func (r *Row) QuantileForward(out, q []float64, dir *Gradient) {
	r.need(solved)
	sd, sq := dir.scale(), ScaleOf(q)
	divide(r.sorted, q, sq)
	r.forward(out[:r.np], r.sorted, sd, dir)
	for i, v := range r.v[:r.n] {
		out[i] = Saturate((v + float64(out[i]*sq)) * sd) // two infinities would have no sum
	}
}

// scale is the power of two by which a direction is divided, so that nothing overflows on the way.
func (g *Gradient) scale() float64 {
	top := math.Abs(g.Epsilon)
	for _, d := range [...][]float64{g.X, g.A, g.B, g.Y, g.Q} {
		top = max(top, Largest(d))
	}
	return ScaleFor(top)
}

// SortForward fills out, m numbers, with the derivative of S along dir.
func (r *Row) SortForward(out []float64, dir *Gradient) {
	r.need(solved)
	sd, s := dir.scale(), r.sorted
	r.sort(s)
	low, high := r.ends()
	sx := ScaleOf([]float64{low, high})
	// A constant taken from x moves S but no derivative. It is a value that S takes.
	mid := s[len(s)/2] / sx
	dh, dy := r.move(sd, dir)
	// What moves M, in units of sd and sx.
	alpha, by := r.zeta, r.gx
	clear(out)
	moved := func(rate, v []float64) {
		for i, x := range r.x[:r.n] {
			by[i] = float64(r.a[i] * ((x/sx - low/sx) - mid))
		}
		clear(by[r.n:])
		if rate != nil {
			kernel.Multiply(by, by, rate)
		}
		r.differentiate(r.rho, by, v)
		add(out, r.rho)
	}
	moved(alpha, r.cy)
	if dy != nil {
		moved(r.s, dy)
	}
	moved(nil, dh)
	columns := func(to []float64) {
		r.columns(r.rho, by)
		for j, c := range r.rho {
			to[j] += float64(c * r.w[j])
		}
	}
	if dir.A != nil {
		r.onSimplexA(by, sd, dir)
		for i, x := range r.x[:r.n] {
			by[i] *= (x/sx - low/sx) - mid
		}
		columns(out)
	}
	if dir.B != nil {
		r.onSimplexB(r.dir, sd, dir)
		for j, d := range r.dir {
			out[j] -= float64((s[j]/sx - mid) * d)
		}
	}
	own := r.lam // what moves with x itself, in units of sd
	clear(own)
	if dir.X != nil {
		clear(by)
		divide(by, dir.X, sd)
		kernel.Multiply(by, by, r.a)
		columns(own)
	}
	for j, b := range r.b {
		out[j] = Saturate((Saturate(float64(out[j]/b*sx)) + own[j]/b) * sd)
	}
}

// onSimplexA fills to, np numbers, with the part of dir.A/s along the simplex, onSimplexB the m numbers of dc
// with that of dir.B/s.
func (r *Row) onSimplexA(to []float64, s float64, dir *Gradient) {
	clear(to)
	divide(to, dir.A, s)
	total := kernel.Sum(to)
	for i, a := range r.a {
		to[i] -= float64(a * total)
	}
}

func (r *Row) onSimplexB(dc []float64, s float64, dir *Gradient) {
	divide(dc, dir.B, s)
	total := 0.0
	for _, d := range dc {
		total += d
	}
	for j, b := range r.b {
		dc[j] -= float64(b * total)
	}
}

// forward fills out (np numbers) and v with the two parts of the derivative of T along dir/s.
func (r *Row) forward(out, q []float64, s float64, dir *Gradient) {
	dh, dy := r.move(s, dir)
	alpha, by := r.zeta, r.gx
	kernel.Scale(alpha, alpha, -1)
	for i := range by {
		by[i] = 1
	}
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Covariance(&kernel.Cov{Out: out[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: by[lo:hi],
			A: alpha[lo:hi], V: dh, Lam: r.cy, Y: q})
	})
	if dy != nil {
		clear(by)
		r.tiles(func(lo, hi int, e []float64) {
			kernel.Covariance(&kernel.Cov{Out: r.v[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: r.s[lo:hi],
				A: by[lo:hi], V: dy, Lam: dy, Y: q})
		})
		add(out, r.v)
	}
	if dir.Q == nil {
		clear(r.v)
		return
	}
	divide(r.rho, dir.Q, s)
	r.mean(r.rho[:r.m])
}

// move finds how the logits move along dir/s: it fills zeta with α, and returns dh and, where dir has Y, dY.
func (r *Row) move(s float64, dir *Gradient) (dh, dy []float64) {
	m := r.m
	r.phase = solved // λ and N are overwritten below
	r.rows()
	alpha, by, dc := r.zeta, r.gx, r.dir
	clear(alpha)
	if dir.X != nil {
		divide(alpha, dir.X, s)
		r.squash.forward(alpha[:r.n], r.xs, r.x)
	}
	deps := dir.Epsilon / s
	for i, d := range alpha[:r.n] {
		alpha[i] = 2*d/r.eps - r.s[i]*deps/r.eps
	}
	clear(dc)
	if dir.B != nil {
		r.onSimplexB(dc, s, dir)
	}
	if dir.A != nil {
		r.onSimplexA(by, s, dir)
		r.columns(r.rho, by)
		for j, c := range r.rho {
			dc[j] -= float64(c * r.w[j])
		}
	}
	if r.flow == nil {
		r.flow = make([]float64, m*r.mp)
	}
	flow := r.flow
	clear(flow)
	moved := func(by, rate, v []float64) { // by the level values v, of which a sample takes its rate
		kernel.Multiply(by, r.a, rate)
		r.differentiate(r.rho, by, v)
		for j := range m {
			for k := range m {
				flow[j*r.mp+k] += float64((v[j] - v[k]) * r.pairs[j*r.mp+k])
			}
		}
	}
	moved(by, alpha, r.cy)
	if dir.Y != nil {
		dy = r.levels
		divide(dy, dir.Y, s)
		moved(by, r.s, dy)
	}
	balance(dc, r.b)
	r.carry(dc, flow)
	return dc, dy
}

// carry overwrites d, which sums to zero, with a solution of Σ_k L_jk d_k = d_j - Σ_k f_jk for
// antisymmetric f, whose entries are small where those of L are. A level k is eliminated by
//
//	W_ij += W_ik W_kj/p_k,   f_ij += (W_ik f_kj + W_kj f_ik)/p_k,
//	d_j += W_kj d_k/p_k,   p_k = Σ_{j<k} W_kj,
//
// so that only what passes through k is added to what passes between i and j. f is
// lost. Cost: m³.
func (r *Row) carry(d, f []float64) {
	m, mp, w := r.m, r.mp, r.fac
	copy(w, r.g)
	r.setFloor()
	for k := m - 1; k > 0; k-- {
		row, from := w[k*mp:k*mp+k], f[k*mp:k*mp+k]
		p := 0.0
		for j, v := range row {
			p += v
			if v == 0 {
				from[j] = 0
			}
		}
		p = max(p, r.floor[k])
		for j := range row {
			row[j] /= p
			from[j] /= p
			d[j] += float64(row[j] * d[k])
		}
		d[k] /= p
		for i := range k {
			l, g := row[i], -float64(from[i]*p) // W_ik/p_k, f_ik
			for j := range i {
				w[i*mp+j] += float64(l * float64(row[j]*p))
				f[i*mp+j] += float64(l*float64(from[j]*p)) + float64(row[j]*g)
			}
		}
	}
	d[0] = 0
	for k := 1; k < m; k++ {
		for j, l := range w[k*mp : k*mp+k] {
			d[k] += float64(l*d[j]) - f[k*mp+j]
		}
	}
}
