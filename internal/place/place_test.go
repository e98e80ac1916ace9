package place

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
)

const d, n, k = 20, 30, 3

// learnt is a problem of smooth maps T_i(w) = h_i w²/(1+w²), and the values T(UV).
func learnt(loss divergence.Loss) (p Problem, x []float64) {
	r := random.Split(3, 3)
	u, v, high := make([]float64, d*k), make([]float64, k*n), make([]float64, d)
	for _, m := range [][]float64{u, v, high} {
		for i := range m {
			m[i] = 0.2 + r.Float64()
		}
	}
	p = Problem{Loss: loss, D: d, N: n, K: k, Levels: 4,
		RowU: func(i int) []float64 { return u[i*k : (i+1)*k] },
		RowV: func(c int) []float64 { return v[c*n : (c+1)*n] },
		Map: func(i int, w float64, arg []float64) (t, slope float64) {
			if len(arg) != 4 {
				panic("scratch of another size")
			}
			return high[i] * w * w / (1 + w*w), high[i] * 2 * w / ((1 + w*w) * (1 + w*w))
		},
		Low: func(int) float64 { return 0 }, High: func(i int) float64 { return high[i] },
		Constant: func(i int) bool { return i == 7 }, Weight: func(i int) float64 { return 1 + float64(i%3) }, Floor: 1e-12}
	x = make([]float64, d*n)
	for i := range d {
		for j := range n {
			w := 0.0
			for c := range k {
				w += u[i*k+c] * v[c*n+j]
			}
			x[i*n+j], _ = p.Map(i, w, make([]float64, 4))
		}
	}
	return p, x
}

func mapped(t *testing.T, p Problem) *Mapped {
	b, err := NewMapped(context.Background(), p, func(row []float64, i int) {
		for j := range row {
			row[j] = 0
			for c, u := range p.RowU(i) {
				row[j] += u * p.RowV(c)[j]
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGradient compares the gradient in log v with central differences, and sees to it that no
// step raises the loss.
func TestGradient(t *testing.T) {
	for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius, 1.5} {
		of, x := learnt(loss)
		p := mapped(t, of).Locator()
		r := random.Split(5, 5)
		for j := range 5 {
			p.x = make([]float64, d)
			for i := range p.x {
				p.x[i] = x[i*n+j] * (0.5 + r.Float64())
			}
			z := make([]float64, k)
			for c := range z {
				z[c] = math.Log(p.mean[c]) + r.Float64() - 0.5
			}
			p.moveTo(z)
			for c := range z {
				const h = 1e-5
				at := z[c]
				z[c] = at + h
				copy(p.next.z, z)
				p.evaluate(&p.next)
				up := p.next.loss
				z[c] = at - h
				copy(p.next.z, z)
				p.evaluate(&p.next)
				z[c] = at
				if want := (up - p.next.loss) / (2 * h); !(math.Abs(p.at.G[c]-want) <= 1e-7*(1+math.Abs(want))) {
					t.Errorf("loss %v: gradient in log v_%d is %v, by differences %v", loss, c, p.at.G[c], want)
				}
			}
			last := p.at.loss
			for range 30 {
				p.minimise(context.Background(), 1)
				if p.at.loss > last {
					t.Fatalf("loss %v: a step raises the loss from %v to %v", loss, last, p.at.loss)
				}
				last = p.at.loss
			}
		}
	}
}

// TestColumns: columns that the problem fits are found, with their coordinates where those are
// determined and with a loss of 0, missing cells or not; a column takes no memory.
func TestColumns(t *testing.T) {
	of, x := learnt(divergence.KL)
	b := mapped(t, of)
	holed := append([]float64(nil), x...)
	for i := 0; i < len(holed); i += 7 {
		holed[i] = math.NaN()
	}
	for _, x := range [][]float64{x, holed} {
		v, sum, err := Columns(context.Background(), x, d, n, n, k, func() Locator { return b.Locator() })
		if err != nil || !(sum <= 1e-8) {
			t.Fatal(sum, err)
		}
		for c := range k {
			for j := range n {
				if want := of.RowV(c)[j]; math.Abs(v[c*n+j]-want) > 1e-3*want {
					t.Errorf("coordinate %d of column %d is %v, want %v", c, j, v[c*n+j], want)
				}
			}
		}
	}
	plain := make([]float64, d*n)
	for i := range d {
		for j := range n {
			for c, u := range of.RowU(i) {
				plain[i*n+j] += u * of.RowV(c)[j]
			}
		}
	}
	linear := NewLinear(divergence.KL, d, k, of.RowU)
	v, sum, err := Columns(context.Background(), plain, d, n, n, k, linear.Locator)
	if err != nil || !(sum <= 1e-12) {
		t.Fatal(sum, err)
	}
	for c := range k {
		for j := range n {
			if want := of.RowV(c)[j]; math.Abs(v[c*n+j]-want) > 1e-7*want {
				t.Errorf("linear coordinate %d of column %d is %v, want %v", c, j, v[c*n+j], want)
			}
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if v, _, err := Columns(ended, x, d, n, n, k, linear.Locator); v != nil || !errors.Is(err, context.Canceled) {
		t.Error("after the end:", v, err)
	}
	column, at := make([]float64, d), make([]float64, k)
	for name, l := range map[string]Locator{"linear": linear.Locator(), "mapped": b.Locator()} {
		j := 0
		if allocs := testing.AllocsPerRun(10, func() {
			for i := range column {
				column[i] = x[i*n+j%n]
			}
			l.Locate(context.Background(), at, column)
			j++
		}); allocs > 0 {
			t.Errorf("%s: %v allocations a column", name, allocs)
		}
	}
}
