package kernel

import "math"

// The loops of an NMF by Newton's method in Go: what a product W = UV says of the
// divergence of Kullback and Leibler about it, what a direction D does to W, and small
// quadratic problems with bounds, eight abreast.

func curve_g(r, q, w, x []float64, low float64) float64 {
	var s [Lanes]float64
	q, w, x = q[:len(r)], w[:len(r)], x[:len(r)]
	for j := 0; j+Lanes <= len(r); j += Lanes {
		r, q, w, x := r[j:j+8:j+8], q[j:j+8:j+8], w[j:j+8:j+8], x[j:j+8:j+8]
		for l := range s {
			v, y := w[l], x[l]
			s[l] += v - y
			v = 1 / atLeast(v, low)
			w[l] = v
			v1 := y * v
			r[l] = v1
			q[l] = v1 * v
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
		if x[j] > 0 && z > rho[j] {
			rho[j] = z
		}
	}
}

func stretchRow_g(to, v, d, x []float64) {
	var a, b, c [Lanes]float64
	d, x = d[:len(v)], x[:len(v)]
	for j := 0; j+Lanes <= len(v); j += Lanes {
		v, d, x := v[j:j+8:j+8], d[j:j+8:j+8], x[j:j+8:j+8]
		for l := range a {
			z := d[l] * v[l]
			y := float64(float64(x[l]*z) * z)
			a[l] += y
			z = max(-z, 0)
			b[l] += float64(y * z)
			if x[l] > 0 && z > c[l] {
				c[l] = z
			}
		}
	}
	to[0], to[1] = Reduce(&a), Reduce(&b)
	to[2] = max(max(max(c[0], c[4]), max(c[2], c[6])), max(max(c[1], c[5]), max(c[3], c[7])))
}

func bounded_g(x, r, c, inverse []float64, n, sweeps int) {
	k := len(inverse)
	for j := 0; j+Lanes <= n; j += Lanes {
		for range sweeps {
			for a, by := range inverse {
				var step [Lanes]float64
				xa, ra := x[a*n+j:a*n+j+8:a*n+j+8], r[a*n+j:a*n+j+8:a*n+j+8]
				for l := range step {
					to := max(xa[l]-float64(ra[l]*by), 0)
					step[l] = to - xa[l]
					xa[l] = to
				}
				for b, cb := range c[a*k : (a+1)*k] {
					rb := r[b*n+j : b*n+j+8 : b*n+j+8]
					for l, s := range step {
						rb[l] += float64(cb * s)
					}
				}
			}
		}
	}
}

func metric_g(x, r, s, v, g, q []float64, low float64) {
	r, s, v, g, q = r[:len(x)], s[:len(x)], v[:len(x)], g[:len(x)], q[:len(x)]
	for i := range x {
		root := math.Sqrt(atLeast(q[i], low))
		s[i] = root
		x[i] = v[i] * root
		r[i] = g[i] / root
	}
}

func direction_g(p, slope, most, b, g, root []float64, k int, longest float64) {
	n := len(slope)
	most = most[:n]
	for j := range slope {
		slope[j], most[j] = 0, longest
	}
	for a := range k {
		p, b, g, root := p[a*n:(a+1)*n], b[a*n:(a+1)*n], g[a*n:(a+1)*n], root[a*n:(a+1)*n]
		for j, to := range p {
			v := -b[j]
			if to > 0 {
				v = (to - float64(b[j]*root[j])) / root[j]
			}
			p[j] = v
			slope[j] += float64(g[j] * v)
			if v < 0 {
				most[j] = min(most[j], b[j]/-v)
			}
		}
	}
}

func residual_g(w, x []float64) {
	x = x[:len(w)]
	for j, v := range w {
		w[j] = x[j] - v
	}
}
