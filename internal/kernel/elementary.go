package kernel

// What is done number by number, in Go.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

func exp_g(to, x []float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = elem.Exp(v)
	}
}

func log_g(to, x []float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = elem.Log(v)
	}
}

func logistic_g(to, x []float64, z *Score, rate float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = elem.Logistic(((v - z.Ref) - z.Shift) / z.Std * rate)
	}
}

// What [AdamStep] keeps of the moments, and adds to the root.
const (
	beta1   = 0.9
	beta2   = 0.999
	adamEps = 1e-8
)

func adamStep_g(x, g, mu, nu []float64, rate, c2 float64) {
	g, mu, nu = g[:len(x)], mu[:len(x)], nu[:len(x)]
	for i := range x {
		m := float64(beta1*mu[i]) + float64((1-beta1)*g[i])
		v := float64(beta2*nu[i]) + float64((1-beta2)*float64(g[i]*g[i]))
		mu[i], nu[i] = m, v
		x[i] -= float64(rate*m) / (math.Sqrt(v/c2) + adamEps)
	}
}

func divide_g(to, a, z []float64) {
	a, z = a[:len(to)], z[:len(to)]
	for i := range to {
		to[i] = a[i] / z[i]
	}
}

func scale_g(to, x []float64, c float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = v * c
	}
}

func multiply_g(to, a, b []float64) {
	a, b = a[:len(to)], b[:len(to)]
	for i := range to {
		to[i] = a[i] * b[i]
	}
}

func multiplyLess_g(to, a, b, c []float64) {
	a, b, c = a[:len(to)], b[:len(to)], c[:len(to)]
	for i := range to {
		to[i] = float64(a[i]*b[i]) - c[i]
	}
}

// Forms adds a component to three forms of each cell of a row: l x_j v_j + t z_j to own_j, l x_j v_j to row_j
// and h x_j z_j to both_j.
func Forms(own, row, both, x, z, v []float64, l, t, h float64) {
	row, both, x, z, v = row[:len(own)], both[:len(own)], x[:len(own)], z[:len(own)], v[:len(own)]
	for j, o := range own {
		lxv := float64(float64(l*x[j]) * v[j])
		own[j] = o + lxv + float64(t*z[j])
		row[j] += lxv
		both[j] += float64(h * float64(x[j]*z[j]))
	}
}

func rotate_g(p, q []float64, cos, sin float64) {
	q = q[:len(p)]
	for i, a := range p {
		b := q[i]
		p[i] = float64(cos*a) - float64(sin*b)
		q[i] = float64(sin*a) + float64(cos*b)
	}
}

func weigh_g(to, a, z []float64) {
	a, z = a[:len(to)], z[:len(to)]
	for i := range to {
		to[i] = a[i] / float64(z[i]*z[i])
	}
}

func ratio_g(num, x, t []float64, low float64) {
	x, t = x[:len(num)], t[:len(num)]
	for i := range num {
		num[i] = x[i] / max(t[i], low)
	}
}

func fisher_g(a, t []float64, by, low float64) {
	t = t[:len(a)]
	for i, v := range a {
		a[i] = by / max(t[i], low) * v * v
	}
}

func ratioBack_g(w, r, ybar, y []float64, low float64) {
	r, ybar, y = r[:len(w)], ybar[:len(w)], y[:len(w)]
	for i, v := range w {
		inverse := 1 / max(v, low)
		over := float64(r[i] * inverse)
		ratio := float64(y[i] * inverse)
		ybar[i] += over
		r[i] = ratio
		back := 0.0
		if v > low {
			back = -float64(over * ratio)
		}
		w[i] = back
	}
}

func lossKL_g(x, t, r []float64, low float64) float64 {
	t, r = t[:len(x)], r[:len(x)]
	var s [Lanes]float64
	for i, v := range x {
		loss := t[i]
		if v > 0 {
			loss = float64(v*elem.Log(max(r[i], tiny))) + (max(loss, low) - v)
		}
		s[i%Lanes] += loss
	}
	return Reduce(&s)
}

func extent_g(to, x []float64) {
	lo, hi := x[0], x[0]
	for _, v := range x {
		lo = min(lo, v)
		hi = max(hi, v)
	}
	to[0], to[1] = lo, hi
}

// Confine brings what of x lies outside [low,high] to its ends, of which none is 0.
func Confine(x []float64, low, high float64) {
	for i, v := range x {
		x[i] = min(max(v, low), high)
	}
}

func shift_g(to, x []float64, c float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = v - c
	}
}

func slopes_g(s, x []float64, eps float64) float64 {
	x = x[:len(s)]
	top := 0.0
	for i, v := range x {
		slope := 2 * v / eps
		s[i] = slope
		top = max(top, math.Abs(slope))
	}
	return top
}

func spread_g(to, x []float64, ref float64) {
	scale, top := 0.0, 0.0
	var nan [Lanes]float64
	for i, v := range x {
		nan[i%Lanes] += v - v
		scale = max(scale, math.Abs(v-ref))
		top = max(top, math.Abs(v))
	}
	to[0], to[1], to[2] = scale, top, Reduce(&nan)
}

func deviation_g(x []float64, ref, scale float64) float64 {
	var s [Lanes]float64
	for i, v := range x {
		s[i%Lanes] += (v - ref) / scale
	}
	return Reduce(&s)
}

func squares_g(x []float64, ref, scale, mean float64) float64 {
	var s [Lanes]float64
	for i, v := range x {
		d := (v-ref)/scale - mean
		s[i%Lanes] += float64(d * d)
	}
	return Reduce(&s)
}

// Potential turns the logarithms l into ε(u_i - l_i) + (x_i+δ)² + mean.
func Potential(l, u, x []float64, eps, delta, mean float64) {
	u, x = u[:len(l)], x[:len(l)]
	for i := range l {
		d := x[i] + delta
		l[i] = float64(eps*(u[i]-l[i])) + float64(d*d) + mean
	}
}

func logisticBack_g(to, g, s, x []float64, z *Score, rate float64) {
	s, x = s[:len(g)], x[:len(g)]
	var sum, dot [Lanes]float64
	for i, v := range g {
		w := float64(v * float64(float64(s[i]*(1-s[i]))*rate))
		g[i] = w
		sum[i%Lanes] += w
		dot[i%Lanes] += float64(w * (((x[i] - z.Ref) - z.Shift) / z.Std))
	}
	to[0], to[1] = Reduce(&sum), Reduce(&dot)
}

func logisticSlope_g(g, s []float64, c float64) {
	s = s[:len(g)]
	for i, v := range g {
		g[i] = v * float64(float64(s[i]*(1-s[i]))*c)
	}
}

func scoreBack_g(g, x []float64, z *Score, mean, dot float64) {
	x = x[:len(g)]
	for i, v := range g {
		g[i] = (v - mean - float64(((x[i]-z.Ref)-z.Shift)/z.Std*dot)) / z.Std
	}
}
