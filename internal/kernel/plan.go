package kernel

// The loops over a plan in Go: the reference for every other form, and the form
// where there is no other.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

func build_g(e, s, h, y []float64) {
	h = h[:len(y)]
	for i := range s {
		row, top := levelsOf(e, i, len(y)), math.Inf(-1)
		for j := 0; j < len(y); j++ {
			v := h[j] + float64(s[i]*y[j])
			if v > top {
				top = v
			}
		}
		for j := 0; j < len(y); j++ {
			t := h[j] + float64(s[i]*y[j]) - top
			power := expNear(t)
			if t < flush {
				power = 0
			}
			row[Lanes*j] = power
		}
	}
}

func tops_g(t, s, h, y []float64) {
	h = h[:len(y)]
	for i := range t {
		slope, top := s[i], math.Inf(-1)
		for j := 0; j < len(y); j++ {
			v := h[j] + float64(slope*y[j])
			if v > top {
				top = v
			}
		}
		t[i] = top
	}
}

func buildPower_g(e, s []float64, y0, step float64, m int) {
	for i := range s {
		row, p, r := levelsOf(e, i, m), expNear(s[i]*y0), expNear(s[i]*step)
		for j := 0; j < m; j++ {
			row[Lanes*j] = p
			p *= r
		}
	}
}

func powersOf_g(e, base, rate []float64, m int) {
	for i := range base {
		row, p, r := levelsOf(e, i, m), base[i], rate[i]
		for j := 0; j < m; j++ {
			row[Lanes*j] = p
			p *= r
		}
	}
}

func lift_g(e, h []float64, n int) {
	for i := range n {
		row, top := levelsOf(e, i, len(h)), 0.0
		for j := 0; j < len(h); j++ {
			raised := row[Lanes*j] * h[j]
			row[Lanes*j] = raised
			if raised > top {
				top = raised
			}
		}
		least, inverse := top*flushed, 1/top
		for j := 0; j < len(h); j++ {
			p := row[Lanes*j]
			if p < least {
				p = 0
			}
			row[Lanes*j] = p * inverse
		}
	}
}

// PowerMean fills t_i with the mean of m values under weights of the levels that are powers, and slope_i with
// its derivative in z_i, the covariance of the values with their index,
//
//	t = Σ_J b_J r^J / Σ_J a_J r^J,   r = e^z,   |z| <= 700,
//
// c being a_0, b_0, a_1, b_1 and so on of two levels at least, whole blocks of z. Sums are of powers of
// e^{-|z|}, from the last level where z > 0: the slope keeps its digits where the first level has all the
// weight, and where the last one has, as far as b_J/a_J tells it from the one before.
func PowerMean(t, slope, z, c []float64) {
	_ = c[3]
	slope, z = slope[:len(t)], z[:len(t)]
	last := len(c)&^1 - 2
	for i, z := range z {
		at, by := last, -2
		if z > 0 {
			at, by = 0, 2
		}
		r := elem.Exp(-math.Abs(z))
		d, n, e, s := c[at], c[at+1], 0.0, 0.0
		for range last / 2 {
			at += by
			e = float64(e*r) + d
			s = float64(s*r) + n
			d = float64(d*r) + c[at]
			n = float64(n*r) + c[at+1]
		}
		v := 1 / d
		n *= v
		s = (float64(s*v) - float64(float64(e*v)*n)) * r
		if z > 0 {
			s = -s
		}
		t[i], slope[i] = n, s
	}
}

func rowSums_g(z, e, w []float64) {
	for i := range z {
		row, sum := levelsOf(e, i, len(w)), 0.0
		for j := len(w) - 1; j >= 0; j-- {
			sum += float64(row[Lanes*j] * w[j])
		}
		z[i] = sum
	}
}

func rowRatios_g(u, e, c, z, x []float64, low float64) {
	for i := range u {
		row, sum := levelsOf(e, i, len(c)), u[i]
		for j := len(c) - 1; j >= 0; j-- {
			sum += float64(row[Lanes*j] * c[j])
		}
		u[i] = x[i] / max(sum, float64(z[i]*low))
	}
}

func moments_g(mu, e, v []float64) {
	m := len(mu) / 2
	for j := range m {
		next := j + 1
		if next == m {
			next = j // there is none: the last sum is dg again
		}
		var d, o [Lanes]float64
		for half := 0; half < Lanes; half += 4 {
			d[half], d[half+1], d[half+2], d[half+3], o[half], o[half+1], o[half+2], o[half+3] =
				moments4(e[Lanes*j+half:], e[Lanes*next+half:], v[half:], Lanes*m)
		}
		mu[2*j], mu[2*j+1] = Reduce(&d), Reduce(&o)
	}
	mu[2*m-1] = 0
}

// moments4 sums v a a and v a b over blocks, four lanes at a time.
func moments4(a, b, v []float64, stride int) (d0, d1, d2, d3, o0, o1, o2, o3 float64) {
	k := 0
	for i := 0; i < len(v); i += Lanes {
		x, y, u := a[k:k+4:k+4], b[k:k+4:k+4], v[i:i+4:i+4]
		t := float64(u[0] * x[0])
		d0 += float64(t * x[0])
		o0 += float64(t * y[0])
		t = float64(u[1] * x[1])
		d1 += float64(t * x[1])
		o1 += float64(t * y[1])
		t = float64(u[2] * x[2])
		d2 += float64(t * x[2])
		o2 += float64(t * y[2])
		t = float64(u[3] * x[3])
		d3 += float64(t * x[3])
		o3 += float64(t * y[3])
		k += stride
	}
	return
}

func gram_g(g, e, v []float64, m int) {
	stride := Pad(m)
	for j := range m {
		for k := range j + 1 {
			var d [Lanes]float64
			for half := 0; half < Lanes; half += 4 {
				_, _, _, _, d[half], d[half+1], d[half+2], d[half+3] =
					moments4(e[Lanes*j+half:], e[Lanes*k+half:], v[half:], Lanes*m)
			}
			g[j*stride+k] = Reduce(&d)
		}
	}
}

func hankel_g(g, c, mu, ratio, w []float64, m int) {
	stride := len(w)
	clear(c)
	c, w = c[:m], w[:m]
	for j, wj := range w {
		to, by, s := g[j*stride:j*stride+m], ratio[j*stride:j*stride+m], mu[j:j+m]
		by, s, c := by[:len(to)], s[:len(to)], c[:len(to)]
		for k := range to {
			t := float64(s[k]*by[k]) * float64(wj*w[k])
			if math.Abs(t) < decouple {
				t = 0
			}
			to[k] = t
			c[k] += t
		}
	}
}

func differences_g(out, g, v []float64, m int) {
	stride := len(out)
	clear(out)
	out, v = out[:m], v[:m]
	for k, vk := range v {
		row := g[k*stride : k*stride+m]
		for j, s := range row {
			out[j] += float64((v[j] - vk) * s)
		}
	}
}

func colSums_g(c, e, v []float64) {
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
		c[j] = Reduce(&[Lanes]float64{s0, s1, s2, s3, s4, s5, s6, s7})
	}
}

func average_g(t, e, w, z []float64, first float64, d []float64) {
	for i := range t {
		row, beyond, sum := levelsOf(e, i, len(w)), 0.0, 0.0
		for j := len(w) - 1; j > 0; j-- {
			beyond += float64(row[Lanes*j] * w[j])
			sum += float64(beyond * d[j-1])
		}
		beyond += float64(row[0] * w[0])
		z[i] = beyond
		t[i] = first + sum/beyond
	}
}

// covariance_g fills
//
//	out_i = ζ_i Cov_{M_i}(v, y) - a_i Cov_{M_i}(λ, y) = Cov_{M_i}(u_i, y),  u_ij = ζ_i v_j - a_i λ_j.
//
// It and the next two begin with the level of the largest share, about which differences are taken. That
// share has a condition of its own, since the next level waits for it.
func covariance_g(out, e, w, z, zeta, a, v, lam, y []float64) {
	v, lam, y = v[:len(w)], lam[:len(w)], y[:len(w)]
	for i := range out {
		row, top, vt, lt, yt := levelsOf(e, i, len(w)), 0.0, v[0], lam[0], y[0]
		for j := 0; j < len(w); j++ {
			share := row[Lanes*j] * w[j]
			if share > top {
				vt = v[j]
				lt = lam[j]
				yt = y[j]
			}
			if share > top {
				top = share
			}
		}
		zl, al, mu, my, muy := zeta[i], a[i], 0.0, 0.0, 0.0
		for j := 0; j < len(w); j++ {
			p := float64(row[Lanes*j] * w[j])
			pu := float64(p * (float64(zl*(v[j]-vt)) - float64(al*(lam[j]-lt))))
			dy := y[j] - yt
			mu += pu
			my += float64(p * dy)
			muy += float64(pu * dy)
		}
		out[i] = muy/z[i] - float64(mu/z[i]*(my/z[i]))
	}
}

func covarianceOwn_g(out, own, e, w, z, zeta, a, v, lam, y []float64) {
	v, lam, y = v[:len(w)], lam[:len(w)], y[:len(w)]
	for i := range out {
		row, top, vt, lt, yt := levelsOf(e, i, len(w)), 0.0, v[0], lam[0], y[0]
		for j := 0; j < len(w); j++ {
			share := row[Lanes*j] * w[j]
			if share > top {
				vt = v[j]
				lt = lam[j]
				yt = y[j]
			}
			if share > top {
				top = share
			}
		}
		my, mv, mvy, ml, mly := 0.0, 0.0, 0.0, 0.0, 0.0
		for j := 0; j < len(w); j++ {
			p := float64(row[Lanes*j] * w[j])
			dy := y[j] - yt
			pv := float64(p * (v[j] - vt))
			mv += pv
			mvy += float64(pv * dy)
			pl := float64(p * (lam[j] - lt))
			ml += pl
			mly += float64(pl * dy)
			my += float64(p * dy)
		}
		inverse := 1 / z[i]
		mean := float64(my * inverse)
		ofV := float64(mvy*inverse) - float64(float64(mv*inverse)*mean)
		ofLam := float64(mly*inverse) - float64(float64(ml*inverse)*mean)
		own[i] = a[i] * ofV
		out[i] = float64(zeta[i]*ofV) - float64(a[i]*ofLam)
	}
}

// covariances_g takes all differences the other way round.
func covariances_g(out, mean, logs, e, w, z, zeta, a, s, v, lam, h, y []float64) {
	v, lam, h, y = v[:len(w)], lam[:len(w)], h[:len(w)], y[:len(w)]
	for i := range out {
		row, top, vt, lt, ht, yt := levelsOf(e, i, len(w)), 0.0, v[0], lam[0], h[0], y[0]
		for j := 0; j < len(w); j++ {
			share := row[Lanes*j] * w[j]
			if share > top {
				vt = v[j]
				lt = lam[j]
				ht = h[j]
				yt = y[j]
			}
			if share > top {
				top = share
			}
		}
		zl, al, mu, mlam, my, muy, ml, mul := zeta[i], a[i], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
		for j := 0; j < len(w); j++ {
			p := float64(row[Lanes*j] * w[j])
			dl := lt - lam[j]
			mlam += float64(p * dl)
			pu := float64(p * (float64(zl*(vt-v[j])) - float64(al*dl)))
			mu += pu
			dy := yt - y[j]
			my += float64(p * dy)
			muy += float64(pu * dy)
			t := (ht - h[j]) + float64(dy*s[i])
			ml += float64(p * t)
			mul += float64(pu * t)
		}
		meanU := mu / z[i]
		out[i] = muy/z[i] - float64(meanU*(my/z[i]))
		mean[i] = lt - mlam/z[i]
		logs[i] = mul/z[i] - float64(meanU*(ml/z[i]))
	}
}
