package transport

// This file holds the forward derivative of T along a direction of all arguments,
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
// weak ones.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

// QuantileForward fills out, n numbers with a capacity of whole blocks, with the derivative
// of T at q along dir.
func (r *Row) QuantileForward(out, q []float64, dir *Gradient) {
	r.need(solved)
	// Everything in units of powers of two, so that nothing overflows on the way.
	top := math.Abs(dir.Epsilon)
	for _, d := range [...][]float64{dir.X, dir.A, dir.B, dir.Y, dir.Q} {
		top = max(top, Largest(d))
	}
	sd, sq := ScaleFor(top), ScaleOf(q)
	r.forward(out[:r.np], Scaled(q, sq), sd, dir)
	for i, v := range r.v[:r.n] {
		out[i] = Saturate((v + float64(out[i]*sq)) * sd) // two infinities would have no sum
	}
}

// forward fills out (np numbers) and v with the two parts of the derivative along dir/s.
func (r *Row) forward(out, q []float64, s float64, dir *Gradient) {
	m := r.m
	r.phase = solved // λ and N are overwritten below
	r.rows()
	alpha, by, dc, dy := r.zeta, r.gx, r.dir, r.levels
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
		divide(dc, dir.B, s)
		total := 0.0
		for _, d := range dc {
			total += d
		}
		for j, b := range r.b {
			dc[j] -= float64(b * total)
		}
	}
	if dir.A != nil {
		clear(by)
		divide(by, dir.A, s)
		total := kernel.Sum(by)
		for i, a := range r.a {
			by[i] -= float64(a * total)
		}
		r.columns(r.rho, by)
		for j, c := range r.rho {
			dc[j] -= float64(c * r.w[j])
		}
	}
	flow := make([]float64, m*r.mp)
	moved := func(by, rate, v []float64) { // by the level values v, of which a sample takes its rate
		kernel.Multiply(by, r.a, rate)
		r.differentiate(r.rho, func(lo, hi int,
			_ []float64) {
			kernel.Weigh(r.v[lo:hi], by[lo:hi], r.z[lo:hi])
		}, v)
		for j := range m {
			for k := range m {
				flow[j*r.mp+k] += float64((v[j] - v[k]) * r.pairs[j*r.mp+k])
			}
		}
	}
	moved(by, alpha, r.cy)
	if dir.Y != nil {
		divide(dy, dir.Y, s)
		moved(by, r.s, dy)
	}
	balance(dc, r.b)
	r.carry(dc, flow)
	kernel.Scale(alpha, alpha, -1)
	for i := range by {
		by[i] = 1
	}
	r.tiles(func(lo, hi int, e []float64) {
		kernel.Covariance(&kernel.Cov{Out: out[lo:hi], E: e, W: r.w, Z: r.z[lo:hi], Zeta: by[lo:hi],
			A: alpha[lo:hi], V: dc, Lam: r.cy, Y: q})
	})
	if dir.Y != nil {
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
	r.mean(r.rho[:m])
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
