package kernel

import "math"

// The loops of an NMF by Newton's method in Go: what a product W = UV says of the
// divergence of Kullback and Leibler about it, what a direction D does to W, and small
// quadratic problems with bounds, eight abreast.

func curve_g(r, q, w, x []float64, low float64) float64 {
	q, w, x = q[:len(r)], w[:len(r)], x[:len(r)]
	var s [Lanes]float64
	for j, v := range w {
		y := x[j]
		s[j%Lanes] += v - y
		v = 1 / atLeast(v, low)
		w[j] = v
		y *= v
		r[j] = y
		q[j] = y * v
	}
	return Reduce(&s)
}

// curve4_g adds the differences of a sample's rows first, as quotient4_g does.
func curve4_g(r, q, w, u, v, x []float64, stride int, low float64) float64 {
	var s [Lanes]float64
	combine4_g(w, u, v)
	np := len(w) / 4
	for j := 0; j < np; j += Lanes {
		var d [Lanes]float64
		for i := range 4 {
			at := i*np + j
			r, q, w := (*[Lanes]float64)(r[at:]), (*[Lanes]float64)(q[at:]), (*[Lanes]float64)(w[at:])
			x := (*[Lanes]float64)(x[i*stride+j:])
			for l := range d {
				v, y := w[l], x[l]
				d[l] += v - y
				v = 1 / atLeast(v, low)
				y *= v
				w[l], r[l], q[l] = v, y, y*v
			}
		}
		for l, v := range d {
			s[l] += v
		}
	}
	return Reduce(&s)
}

func stretch_g(c2, c3, rho, w, d, x []float64, low float64) {
	c3, rho, w, d, x = c3[:len(c2)], rho[:len(c2)], w[:len(c2)], d[:len(c2)], x[:len(c2)]
	for j, v := range w {
		z := d[j] / atLeast(v, low)
		y := float64(float64(x[j]*z) * z)
		c2[j] += y
		z = max(-z, 0)
		c3[j] += float64(y * z)
		if x[j] > 0 {
			rho[j] = max(rho[j], z)
		}
	}
}

func stretchRow_g(to, v, d, x []float64) {
	var second, third [Lanes]float64
	farthest := 0.0
	d, x = d[:len(v)], x[:len(v)]
	for j, z := range v {
		z *= d[j]
		y := float64(float64(x[j]*z) * z)
		second[j%Lanes] += y
		z = max(-z, 0)
		third[j%Lanes] += float64(y * z)
		at := 0.0
		if x[j] > 0 {
			at = z
		}
		farthest = max(farthest, at)
	}
	to[0], to[1], to[2] = Reduce(&second), Reduce(&third), farthest
}

// bounded_g goes half a block at a time, so that its sums stay in registers.
func bounded_g(x, low, q, c, inverse []float64, n, sweeps int) {
	k := len(inverse)
	for j := 0; j+4 <= n; j += 4 {
		for range sweeps {
			for a, by := range inverse {
				at := a*n + j
				qa, xa, la := (*[4]float64)(q[at:]), (*[4]float64)(x[at:]), (*[4]float64)(low[at:])
				s0, s1, s2, s3 := qa[0], qa[1], qa[2], qa[3]
				var t0, t1, t2, t3 float64
				at = j
				row := c[a*k : (a+1)*k]
				for ; len(row) >= 2; row = row[2:] {
					e, o := row[0], row[1]
					y, z := (*[4]float64)(x[at:]), (*[4]float64)(x[at+n:])
					s0 += float64(e * y[0])
					s1 += float64(e * y[1])
					s2 += float64(e * y[2])
					s3 += float64(e * y[3])
					t0 += float64(o * z[0])
					t1 += float64(o * z[1])
					t2 += float64(o * z[2])
					t3 += float64(o * z[3])
					at += 2 * n
				}
				for _, e := range row {
					y := (*[4]float64)(x[at:])
					s0 += float64(e * y[0])
					s1 += float64(e * y[1])
					s2 += float64(e * y[2])
					s3 += float64(e * y[3])
				}
				xa[0] = max(xa[0]-float64((s0+t0)*by), la[0])
				xa[1] = max(xa[1]-float64((s1+t1)*by), la[1])
				xa[2] = max(xa[2]-float64((s2+t2)*by), la[2])
				xa[3] = max(xa[3]-float64((s3+t3)*by), la[3])
			}
		}
	}
}

// Metric fills s with the root of q, not let fall below low, to with -v s and r with g/s.
func Metric(to, r, s, v, g, q []float64, low float64) {
	r, s, v, g, q = r[:len(to)], s[:len(to)], v[:len(to)], g[:len(to)], q[:len(to)]
	for i := range to {
		root := math.Sqrt(atLeast(q[i], low))
		s[i] = root
		to[i] = -v[i] * root
		r[i] = g[i] / root
	}
}

func direction_g(p, slope, most, b, g, root []float64, k int, longest float64) {
	for i := range slope {
		sum, limit := 0.0, longest
		for c := 0; c < k; c++ {
			bound := b[c*len(slope)+i]
			unit := root[c*len(slope)+i]
			to := p[c*len(slope)+i]
			v := -bound
			if to > v*unit {
				v = to / unit
			}
			p[c*len(slope)+i] = v
			sum += float64(g[c*len(slope)+i] * v)
			if v < 0 {
				limit = min(limit, bound/-v)
			}
		}
		slope[i] = sum
		most[i] = limit
	}
}

// Residual replaces W in w, rows of padded samples, by X - W. Rows of X lie stride numbers apart.
func Residual(w, x []float64, stride, rows int) {
	np := len(w) / rows
	for i := range rows {
		residual(w[i*np:(i+1)*np], x[i*stride:])
	}
}

func residual(w, x []float64) {
	x = x[:len(w)]
	for j, v := range w {
		w[j] = x[j] - v
	}
}
