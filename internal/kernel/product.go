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
	for ; len(u) >= 2; u = u[2:] {
		u0, u1 := u[0], u[1]
		a, b := v[:np], v[np:2*np]
		b = b[:len(a)]
		w := w[:len(a)]
		for j := range w {
			w[j] = w[j] + float64(u0*a[j]) + float64(u1*b[j])
		}
		v = v[2*np:]
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
	for j, v := range r {
		s[j%Lanes] += v
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
	for c := range k {
		fourRows(acc[c*np:(c+1)*np], r, np, u[c], u[k+c], u[2*k+c], u[3*k+c])
	}
}

func accumulateLower_g(acc, u, r []float64, first, rows int) {
	np := len(r) / 4
	for c := range rows {
		fourRows(acc[c*np:][:(first+c)&^(Lanes-1)+Lanes], r, np, u[c], u[np+c], u[2*np+c], u[3*np+c])
	}
}

// fourRows adds to a the four rows of r, np numbers each, times numbers of their own.
func fourRows(a, r []float64, np int, u0, u1, u2, u3 float64) {
	n := len(a)
	x, y, z, w := r[:n], r[np:][:n], r[2*np:][:n], r[3*np:][:n]
	for j := range a {
		a[j] = a[j] + float64(u0*x[j]) + float64(u1*y[j]) + float64(u2*z[j]) + float64(u3*w[j])
	}
}

func sweep_g(acc, lines, minus []float64, before, after, rows int) {
	np := len(lines) / 4
	for j := 0; j < np; j += Lanes {
		var x [4][Lanes]float64
		for r := range x {
			for c := range 4 {
				m := minus[4*r+c]
				for h, l := range lines[c*np+j:][:Lanes] {
					x[r][h] += float64(m * l)
				}
			}
		}
		for c := j; c < rows; c++ {
			if c >= before && c < after {
				continue
			}
			a := (*[Lanes]float64)(acc[c*np+j:])
			u0, u1, u2, u3 := lines[c], lines[np+c], lines[2*np+c], lines[3*np+c]
			for h, t := range a {
				a[h] = t + float64(u0*x[0][h]) + float64(u1*x[1][h]) + float64(u2*x[2][h]) +
					float64(u3*x[3][h])
			}
		}
		for r := range x {
			for h, t := range x[r] {
				lines[r*np+j+h] = -t
			}
		}
	}
}

// WeightedGram adds V diag(a) Vᵀ to the lower triangle of the k × k h: to h_cb, b <= c, Σ_j V_bj (a_j V_cj)
// over the samples, whole blocks, at least one. room has len(a)+k numbers of scratch.
func WeightedGram(h, v, a, room []float64, k int) {
	n := len(a)
	weighted, sums := room[:n], room[n:]
	for c := range k {
		Multiply(weighted, a, v[c*n:(c+1)*n])
		sums := sums[:c+1]
		Dots(sums, v[:(c+1)*n], weighted)
		row := h[c*k:][:len(sums)]
		for b, s := range sums {
			row[b] += s
		}
	}
}

func accumulateFrom_g(to, from, w, r []float64, at []uint32, stride int) {
	copy(to, from)
	for _, l := range at {
		t, x := w[l], r[int(l)*stride:][:len(to)]
		for c, v := range x {
			to[c] += float64(t * v)
		}
	}
}

// Rows of a packed lower triangle begin one after another, of a matrix stride numbers apart; whole blocks are
// read and written.

func unpack_g(to, from []float64, rows, stride int, c float64) {
	for r := range rows {
		n := r&^(Lanes-1) + Lanes
		row := to[r*stride:][:n]
		for i, v := range from[r*(r+1)/2:][:n] {
			row[i] = v * c
		}
	}
}

// PackOuter fills a packed lower triangle with (z zᵀ - A) c, A and z being as [Unpack] has a matrix and one
// of its rows.
func PackOuter(to, a, z []float64, rows, stride int, c float64) {
	for r, x := range z[:rows] {
		row, packed := a[r*stride:][:r+1], to[r*(r+1)/2:][:r+1]
		for i, y := range z[:r+1] {
			packed[i] = (float64(x*y) - row[i]) * c
		}
	}
}

// The ratio of x to a product and their divergence, see [QuotientRows]. Differences of
// a sample's rows are added first, then these block by block.

func quotient_g(r, x []float64, low float64) float64 {
	x = x[:len(r)]
	var s [Lanes]float64
	for j, w := range r {
		y := x[j]
		s[j%Lanes] += w - y
		r[j] = y / atLeast(w, low)
	}
	return Reduce(&s)
}

func quotient4_g(r, u, v, x []float64, stride int, low float64) float64 {
	var s [Lanes]float64
	combine4_g(r, u, v)
	np := len(r) / 4
	for j := 0; j < np; j += Lanes {
		var d [Lanes]float64
		for i := range 4 {
			w, y := (*[Lanes]float64)(r[i*np+j:]), (*[Lanes]float64)(x[i*stride+j:])
			for l := range d {
				d[l] += w[l] - y[l]
				w[l] = y[l] / atLeast(w[l], low)
			}
		}
		for l, v := range d {
			s[l] += v
		}
	}
	return Reduce(&s)
}

// atLeast is max for numbers, NaN being kept.
func atLeast(w, low float64) float64 {
	if w < low {
		return low
	}
	return w
}

// The sum of logarithms of a divergence, see [LogSumRows].

func logSum_g(r, x []float64) float64 {
	x = x[:len(r)]
	var s [Lanes]float64
	for j, v := range r {
		s[j%Lanes] += float64(x[j] * elem.RoughLog2(v))
	}
	return Reduce(&s)
}
