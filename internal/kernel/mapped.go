package kernel

import "github.com/quantmf/quantmf/internal/elem"

// The loop of cells x under T(w) in Go: what T, a ratio of polynomials in one exponential of the squashed w,
// says of the divergence of Kullback and Leibler about w.

// KLMap is what [MappedKL] reads of a row, apart from the coefficients.
type KLMap struct {
	Ref, Shift   float64 // of the squash, see [Score]
	Fall         float64 // the rate of the squash over its deviation, with a minus sign
	Center, Step float64 // the powers are those of e^{Step (x̃-Center)}
	Most         float64 // the largest 1/T that the derivatives take
	Line         float64 // the slope of the line in T
}

const (
	farTail   = 700   // |log| of an exponential of the squash, beyond which it stays
	mostRatio = 1e300 // range of x/T in a logarithm
)

func mappedKL_g(loss, slope, curvature, w, x, levels, slopes []float64, p *KLMap) {
	slope, curvature, w, x = slope[:len(loss)], curvature[:len(loss)], w[:len(loss)], x[:len(loss)]
	for i, v := range w {
		e := elem.Exp(max(min(float64(((v-p.Ref)-p.Shift)*p.Fall), farTail), -farTail))
		s := 1 / (1 + e)
		along := float64(float64(e*s) * s)
		r := elem.Exp(float64((s - p.Center) * p.Step))
		d, n := levels[0], levels[1]
		for c := levels[2:]; len(c) >= 2; c = c[2:] {
			d = float64(d*r) + c[0]
			n = float64(n*r) + c[1]
		}
		g := slopes[0]
		for _, c := range slopes[1:] {
			g = float64(g*r) + c
		}
		under := 1 / d
		g = float64(float64(float64(float64(g*r)*under)*under)*along) + p.Line
		y, t := x[i], float64(n*under)+float64(p.Line*v)
		ratio := 1 / t
		over := min(ratio, p.Most)
		slope[i] = (1 - float64(y*over)) * g
		curvature[i] = float64(g*g) * over
		ratio = max(min(float64(y*ratio), mostRatio), 1/mostRatio)
		loss[i] = max(float64(float64(elem.RoughLog2(ratio)*ln2)*y)+(t-y), 0) + (v - v)
	}
}
