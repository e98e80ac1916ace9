package bqmf

// This file holds components turned for reading. UV = (U T)(T⁻¹V) for any T. With L Lᵀ = Σ_j v_j v_jᵀ/n, axes
// L⁻¹V have the second moments of independent ones of variance 1, as have all rotations R of them; a row of
// U L R is then how the scale of a feature, of variance 1, correlates with each axis. R is that of varimax
// (Kaiser 1958): the squares of a column of U L R vary most among features, so that each axis goes with few
// features, and plainly. It is made of rotations of two axes at a time, of angle φ,
//
//	tan 4φ = (Σ 2ab - 2 Σa Σb/d) / (Σ (a² - b²) - ((Σa)² - (Σb)²)/d),  a = x² - y², b = 2xy,
//
// x and y being the two columns. A component is alive where the mean of its part of UV has at least half of
// its relevance; what others have is what is not known of them. The deviation of a loading is that of u_i·t,
// T = L R being held.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/svd"
)

const (
	aliveShare   = 0.5 // of a component's relevance, that is of its mean
	varimaxTurns = 50  // over all pairs of axes
	varimaxLeast = 1e-8
)

// Alive returns the components that are alive.
func (p *Posterior) Alive() (alive []int) {
	np, present := kernel.Pad(p.N), p.present()
	for c, all := range p.Relevance() {
		u, v := 0.0, 0.0
		for i := range p.D {
			u += squareOf(p.U[i*p.K+c])
		}
		for _, j := range present {
			v += squareOf(p.V[c*np+j])
		}
		if u/float64(p.D)*(v/float64(len(present))) >= aliveShare*all && u > 0 {
			alive = append(alive, c)
		}
	}
	return alive
}

// Loadings returns how each row goes with each of the axes of the components that are alive, and the
// deviation of that, D × r numbers each. Axes fall by the squares of their loadings, and the largest of each
// in magnitude is positive.
func (p *Posterior) Loadings() (mean, deviation []float64, r int) {
	alive := p.Alive()
	r = len(alive)
	axes := p.unitAxes(alive) // T, row by row
	mean = make([]float64, p.D*r)
	for i := range p.D {
		for g, c := range alive {
			for h := range r {
				mean[i*r+h] += float64(p.U[i*p.K+c] * axes[g*r+h])
			}
		}
	}
	varimax(mean, axes, p.D, r)
	column, squares, sign := make([]float64, p.D), make([]float64, r), make([]float64, r)
	for h := range r {
		for i := range column {
			column[i] = mean[i*r+h]
			squares[h] += squareOf(column[i])
		}
		sign[h] = svd.Sign(column)
	}
	order, turned := falling(squares), slices.Clone(mean)
	deviation = make([]float64, p.D*r)
	for i := range p.D {
		for h, from := range order {
			mean[i*r+h] = sign[from] * turned[i*r+from]
			deviation[i*r+h] = math.Sqrt(p.variance(i, alive, axes, from))
		}
	}
	return mean, deviation, r
}

// unitAxes returns L of the components given, which takes them to axes of variance 1.
func (p *Posterior) unitAxes(alive []int) []float64 {
	np, r, present := kernel.Pad(p.N), len(alive), p.present()
	kp := kernel.Pad(r)
	a := make([]float64, r*kp)
	for g, c := range alive {
		for h, b := range alive[:g+1] {
			for _, j := range present {
				a[g*kp+h] += float64(p.V[c*np+j]*p.V[b*np+j]) / float64(len(present))
			}
		}
	}
	cholesky(a, r, kp)
	return tight(a, r, kp)
}

// variance returns that of u_i·t, t being a column of axes.
func (p *Posterior) variance(i int, alive []int, axes []float64, column int) (sum float64) {
	b, u, r := p.packU(i), p.rowU(i), len(alive)
	for g, c := range alive {
		for h, e := range alive[:g+1] { // c >= e
			s := b[c*(c+1)/2+e]
			if c != e {
				s = float64(s * root2) // kept times √2, and there are two of it
			}
			twice := 1.0
			if c != e {
				twice = 2
			}
			s -= float64(twice * float64(u[c]*u[e]))
			sum += float64(float64(axes[g*r+column]*axes[h*r+column]) * s)
		}
	}
	return max(sum, 0)
}

// varimax turns the columns of x, d × r, and those of axes, r × r, along.
func varimax(x, axes []float64, d, r int) {
	for range varimaxTurns {
		moved := false
		for p := range r {
			for q := p + 1; q < r; q++ {
				cos, sin := varimaxAngle(x, d, r, p, q)
				if math.Abs(sin) < varimaxLeast {
					continue
				}
				moved = true
				turn(x, d, r, p, q, cos, sin)
				turn(axes, r, r, p, q, cos, sin)
			}
		}
		if !moved {
			return
		}
	}
}

// varimaxAngle returns the cosine and the sine of φ, from -45 to 45 degrees.
func varimaxAngle(x []float64, d, r, p, q int) (cos, sin float64) {
	var sa, sb, num, den float64
	for i := range d {
		y, z := x[i*r+p], x[i*r+q]
		a, b := float64(y*y)-float64(z*z), float64(2*float64(y*z))
		sa += a
		sb += b
		num += float64(2 * float64(a*b))
		den += float64(a*a) - float64(b*b)
	}
	num -= float64(2*float64(sa*sb)) / float64(d)
	den -= (float64(sa*sa) - float64(sb*sb)) / float64(d)
	length := math.Hypot(num, den)
	if !(length > 0) || length > math.MaxFloat64 {
		return 1, 0
	}
	cos = math.Sqrt(max((1+math.Sqrt(max((1+den/length)/2, 0)))/2, 0)) // twice half of the angle
	sin = math.Sqrt(max(1-float64(cos*cos), 0))
	if num < 0 {
		sin = -sin
	}
	return cos, sin
}

// turn turns columns p and q.
func turn(x []float64, rows, r, p, q int, cos, sin float64) {
	for i := range rows {
		y, z := x[i*r+p], x[i*r+q]
		x[i*r+p] = float64(cos*y) + float64(sin*z)
		x[i*r+q] = float64(cos*z) - float64(sin*y)
	}
}
