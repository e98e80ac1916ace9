package transport

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// hardByOverlaps is the plan of x onto targets of weights b by the overlap of intervals of mass; samples of
// one value share the overlaps of all of them.
func hardByOverlaps(x, a, b []float64) [][]float64 {
	p := make([][]float64, len(x))
	for i := range x {
		p[i] = make([]float64, len(b))
		from, equal := 0.0, 0.0
		for k, v := range x {
			switch {
			case v < x[i]:
				from += a[k]
			case v == x[i]:
				equal += a[k]
			}
		}
		at := 0.0
		for j, w := range b {
			if over := math.Min(from+equal, at+w) - math.Max(from, at); over > 0 {
				p[i][j] = over * a[i] / equal
			}
			at += w
		}
	}
	return p
}

// TestHard: the plan, what is read off it, and its potentials against their definitions.
func TestHard(t *testing.T) {
	r := random.Split(11, 3)
	for trial := range 300 {
		n, m := 1+r.IntN(12), 1+r.IntN(7)
		x, q := make([]float64, n), rising(&r, m)
		for i := range x {
			x[i] = float64(r.IntN(8))
		}
		a, b := make([]float64, n), make([]float64, m)
		w := Problem{X: x, Squash: Logistic}
		if trial%2 > 0 {
			w.A, w.B = make([]float64, n), make([]float64, m)
			for i := range w.A {
				w.A[i] = 0.1 + r.Float64()
			}
			for j := range w.B {
				w.B[j] = 0.1 + r.Float64()
			}
		}
		Normalise(a, w.A)
		Normalise(b, w.B)
		want, h := hardByOverlaps(x, a, b), NewHard(w, m)
		f, g := h.Potentials()
		mapped, sum := make([]float64, n), 0.0
		h.Average(mapped, q)
		for i := range x {
			row, mean := make([]float64, m), 0.0
			h.EachShare(i, func(j int, share float64) { row[j] += a[i] * share })
			for j, v := range row {
				Near(t, v, want[i][j], 1e-12, "x %v, a %v, b %v: P_%d%d", x, a, b, i, j)
				mean += want[i][j] * q[j] / a[i]
				cost := (h.xs[i] - h.y[j]) * (h.xs[i] - h.y[j])
				if slack := cost - f[i] - g[j]; slack < -1e-12 || v > 1e-9 && slack > 1e-12 {
					t.Fatalf("x %v: the potentials of %d and %d leave %v, the plan has %v there", x, i, j,
						slack, v)
				}
			}
			Near(t, mapped[i], mean, 1e-12*q[m-1], "x %v: T(x_%d)", x, i)
		}
		for j, v := range h.Sorted() {
			mean := 0.0
			for i := range x {
				mean += want[i][j] * x[i] / b[j]
			}
			Near(t, v, mean, 1e-11, "x %v: S_%d", x, j)
			sum += b[j] * g[j]
		}
		Near(t, sum, 0, 1e-12, "Σ b g")
	}
}
