package kernel

import "github.com/quantmf/quantmf/internal/elem"

// The loops of a low-rank product in Go: a row u of U (k numbers) and V, k rows of np
// padded numbers one after another. Four or eight components at a time, so that a
// row of samples is loaded and stored less often; each sum keeps its order.

func combine_g(w, u, v []float64) {
	np := len(w)
	clear(w)
	for ; len(u) >= 8; u = u[8:] {
		u0, u1, u2, u3, u4, u5, u6, u7 := u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7]
		a, b, c, d := v[:np], v[np:2*np], v[2*np:3*np], v[3*np:4*np]
		e, f, g, h := v[4*np:5*np], v[5*np:6*np], v[6*np:7*np], v[7*np:8*np]
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		e, f, g, h = e[:len(a)], f[:len(a)], g[:len(a)], h[:len(a)]
		w := w[:len(a)]
		for j := range w {
			w[j] = w[j] + float64(u0*a[j]) + float64(u1*b[j]) + float64(u2*c[j]) + float64(u3*d[j]) +
				float64(u4*e[j]) + float64(u5*f[j]) + float64(u6*g[j]) + float64(u7*h[j])
		}
		v = v[8*np:]
	}
	for ; len(u) >= 4; u = u[4:] {
		u0, u1, u2, u3 := u[0], u[1], u[2], u[3]
		a, b, c, d := v[:np], v[np:2*np], v[2*np:3*np], v[3*np:4*np]
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		w := w[:len(a)]
		for j := range w {
			w[j] = w[j] + float64(u0*a[j]) + float64(u1*b[j]) + float64(u2*c[j]) + float64(u3*d[j])
		}
		v = v[4*np:]
	}
	for _, uc := range u {
		a := v[:len(w)]
		for j := range w {
			w[j] += float64(uc * a[j])
		}
		v = v[np:]
	}
}

func dots_g(g, v, r []float64) {
	np := len(r)
	for c := range g {
		a := v[c*np : c*np+np]
		r := r[:len(a)]
		var s0, s1, s2, s3, s4, s5, s6, s7 float64
		for j := 0; j+7 < len(a); j += Lanes {
			s0 += float64(a[j] * r[j])
			s1 += float64(a[j+1] * r[j+1])
			s2 += float64(a[j+2] * r[j+2])
			s3 += float64(a[j+3] * r[j+3])
			s4 += float64(a[j+4] * r[j+4])
			s5 += float64(a[j+5] * r[j+5])
			s6 += float64(a[j+6] * r[j+6])
			s7 += float64(a[j+7] * r[j+7])
		}
		g[c] = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)) // as Reduce does, kept in registers
	}
}

func sum_g(r []float64) float64 {
	var s [Lanes]float64
	for ; len(r) >= Lanes; r = r[Lanes:] {
		b := r[:8:8]
		for l := range s {
			s[l] += b[l]
		}
	}
	return Reduce(&s)
}

func accumulate_g(acc, u, r []float64) {
	np := len(r)
	for ; len(u) >= 4; u = u[4:] {
		u0, u1, u2, u3 := u[0], u[1], u[2], u[3]
		a, b, c, d := acc[:np], acc[np:2*np], acc[2*np:3*np], acc[3*np:4*np]
		r := r[:len(a)]
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		for j, x := range r {
			a[j] += float64(u0 * x)
			b[j] += float64(u1 * x)
			c[j] += float64(u2 * x)
			d[j] += float64(u3 * x)
		}
		acc = acc[4*np:]
	}
	for _, uc := range u {
		a := acc[:len(r)]
		for j, x := range r {
			a[j] += float64(uc * x)
		}
		acc = acc[np:]
	}
}

// Four rows of U and of samples.

func combine4_g(w, u, v []float64) {
	k, np := len(u)/4, len(w)/4
	for i := range 4 {
		combine_g(w[i*np:(i+1)*np], u[i*k:(i+1)*k], v)
	}
}

func dots4_g(g, v, r []float64) {
	k, np := len(g)/4, len(r)/4
	for i := range 4 {
		dots_g(g[i*k:(i+1)*k], v, r[i*np:(i+1)*np])
	}
}

func accumulate4_g(acc, u, r []float64) {
	k, np := len(u)/4, len(r)/4
	for i := range 4 {
		accumulate_g(acc, u[i*k:(i+1)*k], r[i*np:(i+1)*np])
	}
}

// The ratio of x to a product, and their divergence, see [QuotientRows]. Sums go block
// by block, and row by row in each.

func quotient_g(r, u, v, x []float64, stride int, low float64) float64 {
	var s [Lanes]float64
	combine_g(r, u, v)
	for ; len(r) > 0; r, x = r[Lanes:], x[Lanes:] {
		divideBlock(&s, r, x, low)
	}
	return Reduce(&s)
}

func quotient4_g(r, u, v, x []float64, stride int, low float64) float64 {
	var s [Lanes]float64
	combine4_g(r, u, v)
	np := len(r) / 4
	for j := 0; j < np; j += Lanes {
		for i := range 4 {
			divideBlock(&s, r[i*np+j:], x[i*stride+j:], low)
		}
	}
	return Reduce(&s)
}

// divideBlock makes ratios of a block of products r, and adds these less x to s.
func divideBlock(s *[Lanes]float64, r, x []float64, low float64) {
	r, x = r[:Lanes:Lanes], x[:Lanes:Lanes]
	for l := range s {
		w := r[l]
		r[l] = x[l] / max(w, low)
		s[l] += w - x[l]
	}
}

func logSum_g(r, x []float64, stride int) float64 {
	var s [Lanes]float64
	for ; len(r) > 0; r, x = r[Lanes:], x[Lanes:] {
		logBlock(&s, r, x)
	}
	return Reduce(&s)
}

func logSum4_g(r, x []float64, stride int) float64 {
	var s [Lanes]float64
	np := len(r) / 4
	for j := 0; j < np; j += Lanes {
		for i := range 4 {
			logBlock(&s, r[i*np+j:], x[i*stride+j:])
		}
	}
	return Reduce(&s)
}

// logBlock adds x log r of a block to s.
func logBlock(s *[Lanes]float64, r, x []float64) {
	r, x = r[:Lanes:Lanes], x[:Lanes:Lanes]
	for l := range s {
		s[l] += float64(x[l] * elem.RoughLog(r[l]))
	}
}
