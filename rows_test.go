package quantmf

// Tests of many rows at once: each has the bits that it has alone, for any number of
// workers, and more of them cost no more allocations.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestRows: the batched operators give the bits of the single ones, for any
// number of workers, whatever the strides.
func TestRows(t *testing.T) {
	r := random.Split(12, 0)
	big := NewMat(9, 30)
	for i := range big.Data {
		big.Data[i] = normal(&r)
	}
	x := Mat{Rows: 9, Cols: 21, Data: big.Data, Stride: 30}
	z := NewMat(9, 21)
	for i := range z.Data {
		z.Data[i] = normal(&r)
	}
	for j := range z.Cols { // in other units, even beyond the roots of the range
		z.Row(2)[j] *= 0x1p-900
		z.Row(5)[j] *= 0x1p900
	}
	q := NewMat(9, 5)
	for i := range q.Rows {
		last := normal(&r)
		for j := range q.Cols {
			last += r.Float64()
			q.Set(i, j, last)
		}
	}
	one := Mat{Rows: 1, Cols: 5, Data: q.Data[:5], Stride: 5}
	for _, eps := range []float64{0.1, 0.001, 0} {
		for _, workers := range []int{1, 4} {
			opts := []Option{WithEpsilon(eps), WithTargetWeights([]float64{1, 2, 3, 2, 1})}
			for _, levels := range []Mat{q, one} {
				batch := append(opts, WithWorkers(workers))
				got := must(SoftQuantileRows(x, levels, batch...))(t)
				dx, dq, db, err := SoftQuantileRowsVJP(x, levels, z, batch...)
				if err != nil {
					t.Fatal(err)
				}
				sum := make([]float64, 5)
				for i := range x.Rows {
					tr := must(Solve(x.Row(i), append(opts, WithLevels(5))...))(t)
					l := levels.Row(min(i, levels.Rows-1))
					want, _ := tr.Quantile(l)
					g := must(tr.QuantileVJP(l, z.Row(i)))(t)
					closeTo(t, "T", got.Row(i), want, 0)
					closeTo(t, "dx", dx.Row(i), g.X, 0)
					closeTo(t, "db", db.Row(i), g.B, 0)
					kernel.Accumulate(sum, []float64{1}, g.Q)
					if levels.Rows > 1 {
						closeTo(t, "dq", dq.Row(i), g.Q, 0)
					}
				}
				if levels.Rows == 1 {
					closeTo(t, "shared dq", dq.Row(0), sum, 0)
				}
			}
		}
	}
}

// TestRowsAlone: a row has the bits that it has alone, T and gradients, whichever rows
// it is with, for options of every kind.
func TestRowsAlone(t *testing.T) {
	src := random.Split(43, 0)
	trials := draws(400, 80, 40)
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
				w[i] = math.Exp(4 * normal(&src))
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
		x, z, q := NewMat(d, n), NewMat(d, n), NewMat(d, m)
		for i := range d {
			spread, kind := math.Exp(3*normal(&src)), src.IntN(4)
			for j := range n {
				v := normal(&src)
				switch kind {
				case 0:
					v = math.Round(v)
				case 1:
					v = 1
				}
				x.Row(i)[j], z.Row(i)[j] = spread*v, normal(&src)
			}
			copy(q.Row(i), positive(m))
			for j := 1; j < m; j++ {
				q.Row(i)[j] += q.Row(i)[j-1]
			}
		}
		workers := append(opts[:len(opts):len(opts)], WithWorkers(1+src.IntN(4)))
		got := must(SoftQuantileRows(x, q, workers...))(t)
		dx, dq, db, err := SoftQuantileRowsVJP(x, q, z, workers...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range d {
			want := must(SoftQuantile(x.Row(i), q.Row(i), opts...))(t)
			tr := must(Solve(x.Row(i), append(opts[:len(opts):len(opts)], WithLevels(m))...))(t)
			g := must(tr.QuantileVJP(q.Row(i), z.Row(i)))(t)
			for _, v := range []struct {
				what      string
				got, want []float64
			}{{"T", got.Row(i), want}, {"∂x", dx.Row(i), g.X}, {"∂q", dq.Row(i), g.Q},
				{"∂b", db.Row(i), g.B}} {
				for j := range v.want {
					if math.Float64bits(v.got[j]) != math.Float64bits(v.want[j]) || v.got[j]-v.got[j] != 0 {
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
	slow(t)
	src := random.Split(44, 0)
	flushed, problems := 0, draws(1000, 60, 50)
	for range problems {
		n, m := 1+src.IntN(60), 2+src.IntN(20)
		b, q, x, z := make([]float64, m), make([]float64, m), make([]float64, n), make([]float64, n)
		for j := range b {
			b[j] = math.Exp(min(max(100*normal(&src), -500), 100))
			q[j] = float64(j) + src.Float64()
		}
		scale := 0.0
		for i := range x {
			x[i], z[i] = normal(&src), normal(&src)
			scale += math.Abs(z[i])
		}
		tr := must(Solve(x, WithTargetWeights(b), WithEpsilon(math.Pow(10, -4*src.Float64()))))(t)
		g := must(tr.QuantileVJP(q, z))(t)
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
		closeTo(t, "∂q", g.Q, want, 1e-12*scale)
		forward := must(tr.QuantileJVP(q, Gradient{X: z, A: z, B: b, Y: q, Epsilon: 1}))(t)
		for _, v := range [][]float64{g.X, g.A, g.B, g.Y, forward} {
			for _, w := range v {
				if w-w != 0 {
					t.Fatal("not finite")
				}
			}
		}
	}
	if flushed < problems/3 {
		t.Errorf("only %d plans have a flushed column", flushed)
	}
}

// TestRowsAllocations: more rows cost no more allocations.
func TestRowsAllocations(t *testing.T) {
	if transport.Invariants {
		t.Skip("the checks allocate")
	}
	count := func(d int) float64 {
		x, q := NewMat(d, 40), NewMat(1, 8)
		for i := range x.Data {
			x.Data[i] = float64(i * 7 % 101)
		}
		for j := range q.Data {
			q.Data[j] = float64(j)
		}
		return allocations(5, func() {
			must(SoftQuantileRows(x, q, WithWorkers(1)))(t)
			if _, _, _, err := SoftQuantileRowsVJP(x, q, x, WithWorkers(1)); err != nil {
				t.Fatal(err)
			}
		})
	}
	// Eight are solved at once, in workspaces that the pool may have forgotten: at most
	// eight allocations each, in two calls. One a row would be 292 more.
	if a, b := count(8), count(300); b > a+128 {
		t.Errorf("%v allocations for 8 rows, %v for 300", a, b)
	}
}
