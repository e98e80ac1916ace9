// Package kernel holds the loops over samples: lengths and slices, no models. The
// row's sums are in kernel.go, low-rank products in product.go, the singular
// value decomposition in svd.go.
//
// # Layout
//
// Samples come in blocks of eight lanes. A vector over n samples is padded to
// np = Pad(n) numbers; a matrix over n samples and m levels is stored block by
// block, level by level, lane by lane: entry (i, j) lies at
// (i/8·m + j)·8 + i%8. Padding lanes hold ordinary numbers and count for
// nothing since their weight is zero.
//
// # Bits
//
// A sum over samples has eight partial sums, one a lane, each in the order of
// the blocks, joined by [reduce]; a sum over levels or components runs in their
// order. Products are never fused with sums. So vector code of eight lanes has
// the bits of these loops by construction.
//
// # Notation
//
// e is the stored kernel E_ij, w the weights W_j of the levels, z the row sums
// Z_i = Σ_j E_ij W_j; M_ij = E_ij W_j / Z_i is the row-stochastic plan.
package kernel

import "github.com/quantmf/quantmf/internal/elem"

// Lanes is the number of samples in a block.
const Lanes = 8

// Pad returns n rounded up to whole blocks.
func Pad(n int) int { return (n + Lanes - 1) &^ (Lanes - 1) }

// reduce joins the eight partial sums of a reduction.
func reduce(a *[Lanes]float64) float64 {
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

// flush is the exponent below which an entry of E is zero: its square would
// come near the denormals, which are many times slower.
const flush = -300

// Build fills E_ij = exp(h_j + s_i y_j - max_j), each row's largest entry 1.
// One exp an entry.
func Build(e, s, h, y []float64) {
	m := len(y)
	h = h[:m]
	for len(s) >= Lanes {
		top := [Lanes]float64{}
		for l := range top {
			t := h[0] + float64(s[l]*y[0])
			for j := 1; j < m; j++ {
				t = max(t, h[j]+float64(s[l]*y[j]))
			}
			top[l] = t
		}
		for j, yj := range y {
			r := e[Lanes*j : Lanes*j+Lanes : Lanes*j+Lanes]
			for l := range r {
				v := h[j] + float64(s[l]*yj) - top[l]
				if v < flush {
					r[l] = 0
				} else {
					r[l] = elem.Exp(v)
				}
			}
		}
		s, e = s[Lanes:], e[Lanes*m:]
	}
}

// BuildPower fills E_ij = exp(s_i y_j) for the grid y_j = y0 + j·step of m
// levels by repeated multiplication: two exps a row. The caller keeps |s_i y_j|
// small enough for squares not to overflow.
func BuildPower(e, s []float64, y0, step float64, m int) {
	for len(s) >= Lanes {
		var p, r [Lanes]float64
		for l := range p {
			p[l] = elem.Exp(float64(s[l] * y0))
			r[l] = elem.Exp(float64(s[l] * step))
		}
		to := e[:Lanes*m]
		for len(to) >= Lanes {
			for l := range p {
				to[l] = p[l]
				p[l] *= r[l]
			}
			to = to[Lanes:]
		}
		s, e = s[Lanes:], e[Lanes*m:]
	}
}

// RowSums fills z_i = Σ_j E_ij w_j.
func RowSums(z, e, w []float64) {
	m := len(w)
	for len(z) >= Lanes {
		row := e[:Lanes*m]
		var z0, z1, z2, z3, z4, z5, z6, z7 float64
		for _, wj := range w {
			r := row[:8:8]
			z0 += float64(r[0] * wj)
			z1 += float64(r[1] * wj)
			z2 += float64(r[2] * wj)
			z3 += float64(r[3] * wj)
			z4 += float64(r[4] * wj)
			z5 += float64(r[5] * wj)
			z6 += float64(r[6] * wj)
			z7 += float64(r[7] * wj)
			row = row[8:]
		}
		to := z[:8:8]
		to[0], to[1], to[2], to[3], to[4], to[5], to[6], to[7] = z0, z1, z2, z3, z4, z5, z6, z7
		z, e = z[Lanes:], e[Lanes*m:]
	}
}

// Moments fills dg_j = Σ_i v_i E_ij² and, for j < m-1, od_j = Σ_i v_i E_ij E_i,j+1,
// m = len(dg) = len(od). On a regular grid these 2m-1 sums hold the whole Gram
// matrix.
func Moments(dg, od, e, v []float64) {
	m := len(dg)
	od = od[:m]
	for j := range m {
		next := j + 1
		if next == m {
			next = j // the last sum is dg again, and not used
		}
		var d, o [Lanes]float64
		for half := 0; half < Lanes; half += 4 {
			d[half], d[half+1], d[half+2], d[half+3], o[half], o[half+1], o[half+2], o[half+3] =
				moments4(e[Lanes*j+half:], e[Lanes*next+half:], v[half:], Lanes*m)
		}
		dg[j], od[j] = reduce(&d), reduce(&o)
	}
}

// moments4 sums v a a and v a b over blocks, four lanes at a time.
func moments4(a, b, v []float64, stride int) (d0, d1, d2, d3, o0, o1, o2, o3 float64) {
	for {
		x, y, u := a[:4:4], b[:4:4], v[:4:4]
		t0, t1, t2, t3 := float64(u[0]*x[0]), float64(u[1]*x[1]), float64(u[2]*x[2]), float64(u[3]*x[3])
		d0 += float64(t0 * x[0])
		d1 += float64(t1 * x[1])
		d2 += float64(t2 * x[2])
		d3 += float64(t3 * x[3])
		o0 += float64(t0 * y[0])
		o1 += float64(t1 * y[1])
		o2 += float64(t2 * y[2])
		o3 += float64(t3 * y[3])
		if len(v) <= Lanes {
			return
		}
		a, b, v = a[stride:], b[stride:], v[Lanes:]
	}
}

// Gram fills the lower triangle, diagonal included, of the m×m row-major
// g_jk = Σ_i v_i E_ij E_ik: the general form, m/4 times the cost of [Moments].
func Gram(g, e, v []float64, m int) {
	for j := range m {
		for k := range j + 1 {
			var d [Lanes]float64
			for half := 0; half < Lanes; half += 4 {
				_, _, _, _, d[half], d[half+1], d[half+2], d[half+3] =
					moments4(e[Lanes*j+half:], e[Lanes*k+half:], v[half:], Lanes*m)
			}
			g[j*m+k] = reduce(&d)
		}
	}
}

// ColSums fills c_j = Σ_i v_i E_ij for the m = len(c) levels.
func ColSums(c, e, v []float64) {
	m := len(c)
	for j := range c {
		a, u := e[Lanes*j:], v
		var s0, s1, s2, s3, s4, s5, s6, s7 float64
		for {
			x, y := a[:8:8], u[:8:8]
			s0 += float64(x[0] * y[0])
			s1 += float64(x[1] * y[1])
			s2 += float64(x[2] * y[2])
			s3 += float64(x[3] * y[3])
			s4 += float64(x[4] * y[4])
			s5 += float64(x[5] * y[5])
			s6 += float64(x[6] * y[6])
			s7 += float64(x[7] * y[7])
			if len(u) <= Lanes {
				break
			}
			a, u = a[Lanes*m:], u[Lanes:]
		}
		c[j] = reduce(&[Lanes]float64{s0, s1, s2, s3, s4, s5, s6, s7})
	}
}

// Average fills t_i = first + Σ_J d_J G_iJ / z_i, with G_iJ = Σ_{j>J} E_ij w_j:
// the mean under M_i of the levels whose first value is first and whose m-1
// increments are d. Where d >= 0 only positive numbers are added.
func Average(t, e, w, z []float64, first float64, d []float64) {
	m := len(w)
	d = d[:m-1]
	for len(t) >= Lanes {
		for half := 0; half < Lanes; half += 4 {
			var g0, g1, g2, g3, s0, s1, s2, s3 float64
			row := e[half : Lanes*m]
			for j := m - 1; j > 0; j-- {
				r, wj, dj := row[Lanes*j:Lanes*j+4:Lanes*j+4], w[j], d[j-1]
				g0 += float64(r[0] * wj)
				g1 += float64(r[1] * wj)
				g2 += float64(r[2] * wj)
				g3 += float64(r[3] * wj)
				s0 += float64(dj * g0)
				s1 += float64(dj * g1)
				s2 += float64(dj * g2)
				s3 += float64(dj * g3)
			}
			to, by := t[half:half+4:half+4], z[half:half+4:half+4]
			to[0] = first + s0/by[0]
			to[1] = first + s1/by[1]
			to[2] = first + s2/by[2]
			to[3] = first + s3/by[3]
		}
		t, z, e = t[Lanes:], z[Lanes:], e[Lanes*m:]
	}
}

// Covariance fills
//
//	out_i = ζ_i Cov_{M_i}(v, y) - a_i Cov_{M_i}(λ, y) = Cov_{M_i}(u_i, y),  u_ij = ζ_i v_j - a_i λ_j.
//
// Levels are taken about the likeliest one of the sample: a plan on one level
// gives 0 without cancellation, and a level of little weight adds little
// however large its v. Eight lanes keep their own.
func Covariance(out, e, w, z, zeta, a, v, lam, y []float64) {
	m := len(w)
	v, lam, y = v[:m], lam[:m], y[:m]
	for len(out) >= Lanes {
		row := e[:Lanes*m]
		var best [Lanes]float64
		var top [Lanes]int
		for j, wj := range w {
			r := row[Lanes*j : Lanes*j+Lanes : Lanes*j+Lanes]
			for l := range best {
				if p := float64(r[l] * wj); p > best[l] {
					best[l], top[l] = p, j
				}
			}
		}
		for l := range top {
			t := top[l]
			vt, lt, yt := v[t], lam[t], y[t]
			zl, al := zeta[l], a[l]
			var mu, my, muy float64
			for j, wj := range w {
				p := float64(row[Lanes*j+l] * wj)
				u := float64(zl*(v[j]-vt)) - float64(al*(lam[j]-lt))
				dy := y[j] - yt
				pu := float64(p * u)
				mu += pu
				my += float64(p * dy)
				muy += float64(pu * dy)
			}
			out[l] = muy/z[l] - float64(mu/z[l]*(my/z[l]))
		}
		out, z, zeta, a, e = out[Lanes:], z[Lanes:], zeta[Lanes:], a[Lanes:], e[Lanes*m:]
	}
}
