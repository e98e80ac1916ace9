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
	at := func(i int, w float64) (t, slope float64) {
		return high[i] * w * w / (1 + w*w), high[i] * 2 * w / ((1 + w*w) * (1 + w*w))
	}
	p = Problem{Loss: loss, D: d, N: n, K: k,
		RowU: func(i int) []float64 { return u[i*k : (i+1)*k] },
		RowV: func(c int) []float64 { return v[c*n : (c+1)*n] },
		Maps: func() func(i int, t, slope, w []float64) {
			return func(i int, t, slope, w []float64) {
				for j, w := range w {
					t[j], slope[j] = at(i, w)
				}
			}
		},
		Ratio: func(int, float64) *Ratio { return nil },
		Low:   func(int) float64 { return 0 }, High: func(i int) float64 { return high[i] },
		Constant: func(i int) bool { return i == 7 }, Weight: func(i int) float64 { return 1 + float64(i%3) }, Floor: 1e-12}
	x = make([]float64, d*n)
	for i := range d {
		for j := range n {
			w := 0.0
			for c := range k {
				w += u[i*k+c] * v[c*n+j]
			}
			x[i*n+j], _ = at(i, w)
		}
	}
	return p, x
}

func newMapped(t *testing.T, p Problem) *Mapped {
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

// alone is a tile with one column in its first lane, unless that needs no search.
func alone(m Method, column []float64) *tile {
	tile := newTile(m, 1, allPairs(m))
	if loaded, _ := tile.load(0, func(to []float64) (int, bool) { return 0, copy(to, column) > 0 }, func(int, []float64) {}, make([]float64, d), make([]float64, k)); loaded {
		tile.busy = 1
	}
	return tile
}

// look makes a pass, and returns the loss at the point; the model is gathered.
func (t *tile) look() float64 {
	t.pass(context.Background())
	t.gather(t.lanes[0].model(), 0, 8)
	return t.sum[0]
}

// TestGradient compares the gradient in log v with central differences, and sees to it that no
// step raises the loss.
func TestGradient(t *testing.T) {
	for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius, 1.5, 0.5} {
		of, x := learnt(loss)
		b := newMapped(t, of)
		r := random.Split(5, 5)
		for j := range 5 {
			column := make([]float64, d)
			for i := range column {
				column[i] = x[i*n+j] * (0.5 + r.Float64())
			}
			column[3] = math.NaN()
			tile := alone(b, column)
			p := tile.lanes[0].search.(*mapped)
			z, g := p.there.z, make([]float64, k)
			for c := range z {
				z[c] = math.Log(p.mean[c]) + r.Float64() - 0.5
			}
			p.look()
			tile.look()
			for c, v := range p.there.v {
				g[c] = p.there.G[c] * v
			}
			for c := range z {
				const h = 1e-5
				at := z[c]
				z[c] = at + h
				p.look()
				up := tile.look()
				z[c] = at - h
				p.look()
				down := tile.look()
				z[c] = at
				if want := (up - down) / (2 * h); !(math.Abs(g[c]-want) <= 1e-7*(1+math.Abs(want))) {
					t.Errorf("loss %v: gradient in log v_%d is %v, by differences %v", loss, c, g[c], want)
				}
			}
			p.look()
			last, now := math.Inf(1), -1
			for more := true; more; {
				more = p.next(tile.look())
				if p.now != now || p.stands {
					last, now = math.Inf(1), p.now
					continue
				}
				if p.at.loss > last {
					t.Fatalf("loss %v: a step raises the loss from %v to %v", loss, last, p.at.loss)
				}
				last = p.at.loss
			}
		}
	}
}

// TestLinearFalls: without a look at the loss, where it is convex, no step raises it, and no
// column takes many; cells of 0, missing ones, and cells that only one component can reach.
func TestLinearFalls(t *testing.T) {
	r := random.Split(6, 6)
	for _, loss := range []divergence.Loss{divergence.KL, 1.2, 1.9, divergence.Frobenius, 0.5} {
		for trial := range 200 {
			u, column := make([]float64, d*k), make([]float64, d)
			for i := range u {
				if u[i] = math.Exp(6 * (r.Float64() - 0.5)); r.Float64() < 0.5 {
					u[i] = 0
				}
			}
			for i := range column {
				switch column[i] = math.Exp(10 * (r.Float64() - 0.5)); {
				case r.Float64() < 0.3 && loss > 1:
					column[i] = 0
				case r.Float64() < 0.1:
					column[i] = math.NaN()
				}
			}
			column[0] = 1
			b := NewLinear(loss, d, k, func(i int) []float64 { return u[i*k : (i+1)*k] })
			at := func(v []float64) float64 {
				sum := 0.0
				for i, x := range column {
					if x == x {
						sum += loss.Divergence(x, dot(u[i*k:(i+1)*k], v))
					}
				}
				return sum
			}
			tile := alone(b, column)
			if tile.busy == 0 { // Frobenius' loss of all cells, or none can be reached
				continue
			}
			p := tile.lanes[0].search.(*linear)
			v := make([]float64, k)
			last, passes := math.Inf(1), 0
			for more := true; more; passes++ {
				more = p.next(tile.look())
				p.end(v)
				now := at(v)
				if !(now <= last*(1+1e-12)) {
					t.Errorf("loss %v, trial %d: pass %d raises the loss from %v to %v", loss, trial, passes, last, now)
				}
				last = now
			}
			if passes > 60 && loss >= 1 {
				t.Errorf("loss %v, trial %d: %d passes", loss, trial, passes)
			}
		}
	}
}

// TestColumns: columns that the problem fits are found, with their coordinates where those are
// determined and with a loss of 0, missing cells or not; a pass takes no memory.
func TestColumns(t *testing.T) {
	ctx := context.Background()
	of, x := learnt(divergence.KL)
	b := newMapped(t, of)
	columns := func(x []float64) func(to []float64, j int) {
		return func(to []float64, j int) {
			for i := range to {
				to[i] = x[i*n+j]
			}
		}
	}
	check := func(v []float64, err error, by float64) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for c := range k {
			for j := range n {
				if want := of.RowV(c)[j]; math.Abs(v[c*n+j]-want) > by*want {
					t.Errorf("coordinate %d of column %d is %v, want %v", c, j, v[c*n+j], want)
				}
			}
		}
	}
	holed := append([]float64(nil), x...)
	for i := 0; i < len(holed); i += 7 {
		holed[i] = math.NaN()
	}
	for _, x := range [][]float64{x, holed} {
		v, err := Columns(ctx, b, d, n, k, columns(x))
		check(v, err, 1e-3)
	}
	plain := make([]float64, d*n)
	for i := range d {
		for j := range n {
			for c, u := range of.RowU(i) {
				plain[i*n+j] += u * of.RowV(c)[j]
			}
		}
	}
	holedPlain := append([]float64(nil), plain...)
	for i := 0; i < len(plain); i += 7 {
		holedPlain[i] = math.NaN()
	}
	for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius, 1.5, 0.5, 3} {
		linear := NewLinear(loss, d, k, of.RowU)
		for _, x := range [][]float64{plain, holedPlain} {
			v, err := Columns(ctx, linear, d, n, k, columns(x))
			by := 1e-7
			if loss == 1.5 {
				by = 1e-6
			}
			if loss < 1 || loss > 2 { // whose steps are as long as expected curvatures say
				by = 1e-3
			}
			check(v, err, by)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	linear := NewLinear(divergence.KL, d, k, of.RowU)
	if v, err := Columns(ended, linear, d, n, k, columns(x)); v != nil || !errors.Is(err, context.Canceled) {
		t.Error("after the end:", v, err)
	}
	column, at := make([]float64, d), make([]float64, k)
	for name, m := range map[string]Method{"linear": linear, "mapped": b} {
		tile := newTile(m, 16, nil)
		if allocs := testing.AllocsPerRun(10, func() {
			j := 0
			tile.locate(ctx, func(to []float64) (int, bool) {
				columns(holed)(to, j%n)
				j++
				return j, j <= 20
			}, func(int, []float64) {}, column, at)
		}); allocs > 4 { // the functions themselves
			t.Errorf("%s: %v allocations for 20 columns", name, allocs)
		}
	}
}

// TestLanes: a column has the same bits in any lane, among any others and alone.
func TestLanes(t *testing.T) {
	ctx := context.Background()
	of, x := learnt(divergence.KL)
	r := random.Split(7, 7)
	for i := range x {
		if x[i] *= 0.5 + r.Float64(); i%11 == 0 && i%3 > 0 {
			x[i] = math.NaN()
		}
	}
	for name, m := range map[string]Method{"linear": NewLinear(divergence.KL, d, k, of.RowU), "mapped": newMapped(t, of)} {
		many := 3*n + 1
		all, err := Columns(ctx, m, d, many, k, func(to []float64, j int) {
			for i := range to {
				to[i] = x[i*n+j%n]
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for j := range many {
			one, err := Columns(ctx, m, d, 1, k, func(to []float64, _ int) {
				for i := range to {
					to[i] = x[i*n+j%n]
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			for c, v := range one {
				if all[c*many+j] != v {
					t.Fatalf("%s: coordinate %d of column %d is %v among others, %v alone", name, c, j, all[c*many+j], v)
				}
			}
		}
	}
}
