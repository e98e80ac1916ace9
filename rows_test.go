package quantmf

// Tests of many rows at once: each has the bits that it has alone, for any number of workers.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestRowsAlone: a row has the bits that it has alone, T and gradients, whichever rows it is with, whatever
// the stride, for options of every kind and cotangents of any size; the gradient of levels that all rows
// share is the sum of theirs.
func TestRowsAlone(t *testing.T) {
	src := random.Split(43, 0)
	trials := Draws(400, 80, 40)
	for trial := range trials {
		d, n, m := 1+src.IntN(20), 1+src.IntN(60), 1+src.IntN(20)
		switch trial % 20 {
		case 0:
			n = 1 + src.IntN(3)
		case 1:
			m = 1 + src.IntN(2)
		case 2:
			n, m = 1000+src.IntN(2000), 1+src.IntN(16)
		case 3:
			n, m = 100, 40+src.IntN(40)
		}
		eps := []float64{0.01, 0.1, 1, 1e-3, 1e-5, 1e-9, 0}[src.IntN(7)]
		opts := []Option{WithEpsilon(eps)}
		positive := func(n int) []float64 {
			w := make([]float64, n)
			for i := range w {
				w[i] = math.Exp(4 * Normal(&src))
			}
			return w
		}
		if src.IntN(3) == 0 {
			a := positive(n)
			for i := 1; i < n; i += 3 {
				a[i] = 0
			}
			opts = append(opts, WithWeights(a))
		}
		if src.IntN(3) == 0 {
			opts = append(opts, WithTargetWeights(positive(m)))
		}
		if src.IntN(3) == 0 {
			y := positive(m)
			for j := 1; j < m; j++ {
				y[j] += y[j-1]
			}
			opts = append(opts, WithTargets(y))
		}
		if eps > 0 && src.IntN(4) == 0 {
			opts = append(opts, WithIterations(1+src.IntN(5)))
		}
		if src.IntN(3) == 0 {
			opts = append(opts, WithSquash(SquashNone))
		}
		x, z, q := NewMat(d, n+trial%3), NewMat(d, n), NewMat(d, m)
		x.Cols = n
		for i := range d {
			spread, kind := math.Exp(3*Normal(&src)), src.IntN(4)
			for j := range n {
				v := Normal(&src)
				switch kind {
				case 0:
					v = math.Round(v)
				case 1:
					v = 1
				}
				x.Row(i)[j], z.Row(i)[j] = spread*v, Normal(&src)
			}
			copy(q.Row(i), positive(m))
			for j := 1; j < m; j++ {
				q.Row(i)[j] += q.Row(i)[j-1]
			}
		}
		far := trial%4 == 1 // units beyond the roots of the range, in which gradients may overflow
		for j := range n {
			if far {
				z.Row(0)[j] *= 0x1p-900
				z.Row(d - 1)[j] *= 0x1p900
			}
		}
		if trial%5 == 2 {
			q = first(q, 1)
		}
		workers := append(opts[:len(opts):len(opts)], WithWorkers(1+src.IntN(4)))
		got := Must(SoftQuantileRows(x, q, workers...))(t)
		dx, dq, db, err := SoftQuantileRowsVJP(x, q, z, workers...)
		OK(t, err)
		sum := make([]float64, m)
		for i := range d {
			levels, own := q.Row(min(i, q.Rows-1)), dq.Row(min(i, q.Rows-1))
			want := Must(SoftQuantile(x.Row(i), levels, opts...))(t)
			tr := Solved(t, x.Row(i), append(opts[:len(opts):len(opts)], WithLevels(m))...)
			g := Must(tr.QuantileVJP(levels, z.Row(i)))(t)
			ofQ := g.Q
			if q.Rows < d {
				kernel.Accumulate(sum, []float64{1}, g.Q)
				if ofQ = sum; i < d-1 {
					own = ofQ
				}
			}
			for _, v := range []struct {
				what      string
				got, want []float64
			}{{"T", got.Row(i), want}, {"∂x", dx.Row(i), g.X}, {"∂q", own, ofQ}, {"∂b", db.Row(i), g.B}} {
				for j := range v.want {
					if got := v.got[j]; math.Float64bits(got) != math.Float64bits(v.want[j]) ||
						got-got != 0 && !far {
						t.Fatalf("trial %d, ε %g, %d×%d, %d levels, row %d: %s_%d is %v, alone %v", trial,
							eps, d, n, m, i, v.what, j, v.got[j], v.want[j])
					}
				}
			}
		}
	}
}

// TestFlushedColumns: what a plan of levels of next to no weight gives back for q is its
// transpose, to the digits of its largest entries.
func TestFlushedColumns(t *testing.T) {
	Slow(t)
	src := random.Split(44, 0)
	flushed, problems := 0, Draws(1000, 30, 30)
	for range problems {
		n, m := 1+src.IntN(60), 2+src.IntN(20)
		b, q, x, z := make([]float64, m), make([]float64, m), make([]float64, n), make([]float64, n)
		for j := range b {
			b[j] = math.Exp(min(max(100*Normal(&src), -500), 100))
			q[j] = float64(j) + src.Float64()
		}
		scale := 0.0
		for i := range x {
			x[i], z[i] = Normal(&src), Normal(&src)
			scale += math.Abs(z[i])
		}
		tr := Solved(t, x, WithTargetWeights(b), WithEpsilon(math.Pow(10, -4*src.Float64())))
		g := Must(tr.QuantileVJP(q, z))(t)
		want, mass := make([]float64, m), make([]float64, m)
		r := tr.row()
		r.EachSample(func(i int, plan []float64) {
			for j, p := range plan {
				want[j] += z[i] * p
				mass[j] += p / float64(n)
			}
		})
		workspaces.Put(r)
		if slices.Min(mass) < 1e-100 {
			flushed++
		}
		NearAll(t, g.Q, want, 1e-12*scale, "∂q")
		forward := Must(tr.QuantileJVP(q, Gradient{X: z, A: z, B: b, Y: q, Epsilon: 1}))(t)
		if notFinite(slices.Concat(g.X, g.A, g.B, g.Y, forward)) >= 0 {
			t.Fatal("not finite")
		}
	}
	if flushed < problems/3 {
		t.Errorf("only %d plans have a flushed column", flushed)
	}
}
