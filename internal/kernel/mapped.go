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
	for i := range loss {
		e := expNear(max(min(float64(((w[i]-p.Ref)-p.Shift)*p.Fall), farTail), -farTail))
		s := 1 / (1 + e)
		slope[i] = float64(float64(e*s) * s)
		r := expNear(float64((s - p.Center) * p.Step))
		d, n := levels[0], levels[1]
		for j := 2; j < len(levels); j += 2 {
			d = float64(d*r) + levels[j]
			n = float64(n*r) + levels[j+1]
		}
		g := slopes[0]
		for j := 1; j < len(slopes); j++ {
			g = float64(g*r) + slopes[j]
		}
		under := 1 / d
		g = float64(float64(float64(float64(g*r)*under)*under)*slope[i]) + p.Line
		t := float64(n*under) + float64(p.Line*w[i])
		ratio := 1 / t
		over := min(ratio, p.Most)
		slope[i] = (1 - float64(x[i]*over)) * g
		curvature[i] = float64(g*g) * over
		ratio = max(min(float64(x[i]*ratio), mostRatio), 1/mostRatio)
		loss[i] = max(float64(float64(elem.RoughLog2(ratio)*ln2)*x[i])+(t-x[i]), 0) + (w[i] - w[i])
	}
}

// expNear is elem.Exp of numbers that are not beyond ±700.
func expNear(x float64) float64 { return elem.Exp(x) }
