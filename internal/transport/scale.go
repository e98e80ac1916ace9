package transport

// This file holds the powers of two by which vectors are divided, lest their sums overflow,
// and the gradient, whose entries are multiplied by such powers in the end. Every result is linear
// in such a vector, so the bits of ordinary numbers do not depend on the power.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// Gradient holds derivatives with respect to the arguments of an operator: x, a, b, y,
// q (nil where it has none) and ε. As the direction of a forward derivative, nil stands
// for zeros.
type Gradient struct {
	X, A, B, Y, Q []float64
	Epsilon       float64
}

// NewGradient makes zeros for n samples and m levels. X and A have a capacity of whole
// blocks, which the adjoints need.
func NewGradient(n, m int) Gradient {
	np := kernel.Pad(n)
	all := slab(make([]float64, 2*np+3*m))
	return Gradient{X: all.take(n, np), A: all.take(n, np), B: all.take(m, m), Y: all.take(m, m),
		Q: all.take(m, m)}
}

// Rescale multiplies Q by s and the other derivatives by s and t. A product beyond the largest
// number becomes the largest number of its sign.
func (g *Gradient) Rescale(s, t float64) {
	rescale(g.Q, s, 1)
	rescale(g.X, s, t)
	rescale(g.A, s, t)
	rescale(g.B, s, t)
	rescale(g.Y, s, t)
	g.Epsilon = Saturate(g.Epsilon * s * t)
}

// rescale multiplies v by s and t.
func rescale(v []float64, s, t float64) {
	if !(Largest(v)*s*t <= math.MaxFloat64) {
		for i, x := range v {
			v[i] = Saturate(x * s * t)
		}
		return
	}
	for _, by := range [...]float64{s, t} {
		if by != 1 {
			kernel.Scale(v, v, by)
		}
	}
}

// Saturate returns v, or the largest number of its sign where it is infinite.
func Saturate(v float64) float64 {
	if v > math.MaxFloat64 {
		return math.MaxFloat64
	}
	if v < -math.MaxFloat64 {
		return -math.MaxFloat64
	}
	return v
}

// Largest returns the largest magnitude of v, NaN where a number is not finite.
func Largest(v []float64) float64 {
	var ends [2]float64
	kernel.Spread(&ends, v, 0)
	return ends[1]
}

// ScaleOf returns the power of two by which v is divided; 1 for magnitudes near 1.
func ScaleOf(v []float64) float64 { return ScaleFor(Largest(v)) }

// ScaleFor is [ScaleOf] for numbers of at most the magnitude top.
func ScaleFor(top float64) float64 {
	if top == 0 {
		return 1
	}
	_, e := math.Frexp(top)
	if e >= -8 && e <= 8 {
		return 1
	}
	return math.Ldexp(1, min(max(e, -1000), 1000))
}

// Scaled returns v/s, v itself where s is 1.
func Scaled(v []float64, s float64) []float64 {
	if s == 1 {
		return v
	}
	to := make([]float64, len(v))
	divide(to, v, s)
	return to
}

// divide fills to with v/s, s a power of two whose inverse is one.
func divide(to, v []float64, s float64) {
	if s == 1 {
		copy(to, v)
		return
	}
	kernel.Scale(to[:len(v)], v, 1/s)
}

// add adds v to to.
func add(to, v []float64) { kernel.Accumulate(to[:len(v)], []float64{1}, v) }

// room returns k numbers of held, which grows where it is too small.
func room(a *pool.Arena, held *[]float64, k int) slab {
	*held = pool.Again(a, *held, k)
	return *held
}

// slab is numbers that vectors are cut from: none, where they were only counted.
type slab []float64

// take cuts a vector of k numbers off, with a capacity of room.
func (s *slab) take(k, room int) []float64 {
	if *s == nil {
		return nil
	}
	v := (*s)[:k:room]
	*s = (*s)[room:]
	return v
}
