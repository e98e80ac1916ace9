package place

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

const d, n, k = 20, 30, 3

// learnt is a problem of maps by values and slopes, that of feature 7 constant, and the values T(UV).
func learnt(loss divergence.Loss) (p Problem, x []float64) {
	r := random.Split(3, 3)
	p = Problem{Loss: loss, Floor: 1e-12}
	row := func(n int) (v []float64) {
		for range n {
			v = append(v, 0.2+r.Float64())
		}
		return v
	}
	for range k {
		p.V = append(p.V, row(n))
	}
	for i := range d {
		high, squash := 0.2+r.Float64(), transport.Squash{Kind: transport.Arctan, Ref: 0.8, Std: 0.7}
		if i == 7 {
			squash.Std = 0
		}
		p.U = append(p.U, row(k))
		p.Maps = append(p.Maps, NewSheet(squash, []float64{0, 0.2 * high, 0.6 * high, 2 * high},
			[]float64{0.2, 0.5, 0.8}, []float64{6, 6, 6}))
	}
	x = make([]float64, d*n)
	room, np := NewSheetRoom(n, 4), kernel.Pad(n)
	w, t, slope := make([]float64, np), make([]float64, np), make([]float64, np)
	for i := range d {
		clear(w)
		for j := range n {
			w[j] = p.product(i, j)
		}
		p.Maps[i].At(t, slope, w, room)
		copy(x[i*n:(i+1)*n], t)
	}
	return p, x
}

// product is entry i, j of UV.
func (b *Problem) product(i, j int) (w float64) {
	for c, u := range b.U[i] {
		w += u * b.V[c][j]
	}
	return w
}

// columns are those of a matrix of n, and again from the first.
func columns(x []float64) func(to []float64, j int) {
	return func(to []float64, j int) {
		for i := range to {
			to[i] = x[i*n+j%n]
		}
	}
}

// rowU is row i of U.
func (b *Problem) rowU(i int) []float64 { return b.U[i] }

func newMapped(t *testing.T, p Problem) *Mapped {
	return Must(NewMapped(context.Background(), p))(t)
}

// alone is a tile with one column in its first lane, unless that needs no search.
func alone(m Method, column []float64) *tile {
	tile := newTile(m, 1, allPairs(m))
	if loaded, _ := tile.load(0, func(to []float64) (int, bool) { return 0, copy(to, column) > 0 },
		func(int, []float64) {}, make([]float64, d), make([]float64, k)); loaded {
		tile.busy = 1
	}
	return tile
}

// look makes a pass, and returns the loss at the point; the model is gathered.
func (t *tile) look() float64 {
	t.pass(context.Background())
	t.gather(t.lanes[0].model(), 0, 8)
	return t.sums.loss[0]
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
				want := Derivative(&z[c], 1e-5, func() float64 { p.look(); return tile.look() })
				Close(t, g[c], want, 1e-7, "loss %v: gradient in log v_%d", loss, c)
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
// column takes many; cells of 0, missing ones, and cells that only one component can reach. No other value
// of a coordinate lowers the loss of the end.
func TestLinearFalls(t *testing.T) {
	r := random.Split(6, 6)
	for _, loss := range []divergence.Loss{divergence.KL, 1.2, 1.9, divergence.Frobenius, 0.5} {
		columns, all := 0, 0
		for trial := range 200 {
			u, column := make([]float64, d*k), make([]float64, d)
			for i := range u {
				if u[i] = math.Exp(6 * (r.Float64() - 0.5)); r.Float64() < 0.5 {
					u[i] = 0
				}
			}
			for i := range column {
				switch column[i] = math.Exp(10 * (r.Float64() - 0.5)); {
				case r.Float64() < 0.3 && loss >= 1:
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
			p := tile.lanes[0].search.(*linear)
			v := make([]float64, k)
			holes := slices.ContainsFunc(column, func(x float64) bool { return x != x })
			if p.end(v); slices.Max(v) == 0 { // nothing can be reached
				continue
			}
			if one := loss == divergence.Frobenius && !holes; one != (tile.busy == 0) {
				t.Fatalf("loss %v, trial %d, missing cells %v: %d searches", loss, trial, holes, tile.busy)
			}
			last, passes := math.Inf(1), 0
			for more := tile.busy > 0; more; passes++ {
				more = p.next(tile.look())
				p.end(v)
				now := at(v)
				if !(now <= last*(1+1e-12)) {
					t.Errorf("loss %v, trial %d: pass %d raises the loss from %v to %v", loss, trial, passes,
						last, now)
				}
				last = now
			}
			if passes > 60 && loss >= 1 {
				t.Errorf("loss %v, trial %d: %d passes", loss, trial, passes)
			}
			columns, all = columns+1, all+passes
			last = at(v)
			for c, was := range v {
				for _, by := range []float64{-1e-3, 1e-3} {
					v[c] = max(was+by*slices.Max(v), 0)
					if now := at(v); !(now >= last*(1-1e-9)) {
						t.Errorf("loss %v, trial %d: the loss is %v at the end, but %v with another "+
							"coordinate %d", loss, trial, last, now, c)
					}
				}
				v[c] = was
			}
		}
		if all > 8*columns {
			t.Errorf("loss %v: %d passes for %d columns", loss, all, columns)
		}
	}
}

// TestColumns: columns that the problem fits are found, with their coordinates where those are
// determined and with a loss of 0, missing cells or not; a pass takes no memory.
func TestColumns(t *testing.T) {
	ctx := context.Background()
	of, x := learnt(divergence.KL)
	b := newMapped(t, of)
	check := func(m Method, x []float64, by float64) {
		t.Helper()
		v := Must(Columns(ctx, m, Sizes{D: d, N: n, K: k}, columns(x)))(t)
		for c := range k {
			for j := range n {
				want := of.V[c][j]
				Near(t, v[c*n+j], want, by*want, "coordinate %d of column %d", c, j)
			}
		}
	}
	withHoles := func(x []float64) []float64 {
		x = slices.Clone(x)
		for i := 0; i < len(x); i += 7 {
			x[i] = math.NaN()
		}
		return x
	}
	holed := withHoles(x)
	check(b, x, 1e-3)
	check(b, holed, 1e-3)
	plain := make([]float64, d*n)
	for at := range plain {
		plain[at] = of.product(at/n, at%n)
	}
	for loss, by := range map[divergence.Loss]float64{divergence.KL: 1e-7, divergence.Frobenius: 1e-7,
		1.5: 1e-6, 0.5: 1e-3, 3: 1e-3} { // below 1 and above 2 steps are as long as expected curvatures say
		linear := NewLinear(loss, d, k, of.rowU)
		check(linear, plain, by)
		check(linear, withHoles(plain), by)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	linear := NewLinear(divergence.KL, d, k, of.rowU)
	if v, err := Columns(ended, linear, Sizes{D: d, N: n, K: k}, columns(x)); v != nil ||
		!errors.Is(err, context.Canceled) {
		t.Error("after the end:", v, err)
	}
	column, at := make([]float64, d), make([]float64, k)
	for name, m := range map[string]Method{"linear": linear, "mapped": b} {
		tile := newTile(m, 16, nil)
		if allocs := testing.AllocsPerRun(10, func() {
			j := 0
			tile.locate(ctx, func(to []float64) (int, bool) {
				columns(holed)(to, j)
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
	for name, m := range map[string]Method{"linear": NewLinear(divergence.KL, d, k, of.rowU),
		"Frobenius": NewLinear(divergence.Frobenius, d, k, of.rowU), "mapped": newMapped(t, of)} {
		many := 3*n + 1
		all := Must(Columns(ctx, m, Sizes{D: d, N: many, K: k}, columns(x)))(t)
		same := func(v []float64, j int, what string) {
			for c, v := range v {
				if all[c*many+j] != v {
					t.Fatalf("%s: coordinate %d of column %d is %v among others, %v %s", name, c, j,
						all[c*many+j], v, what)
				}
			}
		}
		for j := range many {
			same(Must(Columns(ctx, m, Sizes{D: d, N: 1, K: k},
				func(to []float64, _ int) { columns(x)(to, j) }))(t), j, "alone")
		}
		next := 0 // products of rows of U that are made anew in every pass
		newTile(m, 16, nil).locate(ctx, func(to []float64) (int, bool) {
			columns(x)(to, next)
			next++
			return next - 1, next <= n
		}, func(j int, v []float64) { same(v, j, "where products are not kept") },
			make([]float64, d), make([]float64, k))
	}
}

// TestNothing: a column of zeros has coordinates 0, and so has a component of which U is zero or so small
// that the coordinate would overflow; the others are those without it.
func TestNothing(t *testing.T) {
	of, x := learnt(divergence.KL)
	for _, loss := range []divergence.Loss{divergence.KL, 1.5, divergence.Frobenius, 3} {
		for _, small := range []float64{0, 1e-250} {
			with := func(i int) []float64 { u := of.U[i]; return []float64{u[0], small, u[1]} }
			without := func(i int) []float64 { u := of.U[i]; return u[:2] }
			zero := func(int) []float64 { return []float64{small, small, small} }
			column := func(to []float64, j int) {
				for i := range to {
					if to[i] = x[i*n+j]; j%3 == 0 || j%3 == 1 && i%4 == 0 {
						to[i] = 0
					}
				}
			}
			find := func(k int, u func(int) []float64) []float64 {
				return Must(Columns(context.Background(), NewLinear(loss, d, k, u), Sizes{D: d, N: n, K: k},
					column))(t)
			}
			a, b, c := find(3, with), find(2, without), find(3, zero)
			for j := range n {
				if a[j] != b[j] || a[n+j] != 0 || a[2*n+j] != b[n+j] || (a[j]+a[2*n+j] > 0) != (j%3 > 0) {
					t.Fatalf("loss %v: column %d is at %v, %v, %v, without the second component at %v, %v",
						loss, j, a[j], a[n+j], a[2*n+j], b[j], b[n+j])
				}
				if c[j] != 0 || c[n+j] != 0 || c[2*n+j] != 0 {
					t.Fatalf("loss %v: column %d is at %v, %v, %v where U is 0", loss, j, c[j], c[n+j],
						c[2*n+j])
				}
			}
		}
	}
}

// TestNear: the divergences from the fitted values of the training columns, by which the nearest are found,
// are those cell by cell, but for one constant a column: with and without missing cells, and under Frobenius
// below 0. The starts are the mean, the column's own, and the seven nearest: of fewer some columns of steep
// maps end at a higher loss.
func TestNear(t *testing.T) {
	for _, c := range []struct {
		loss  divergence.Loss
		below float64 // T begins so far below 0
	}{{divergence.KL, 0}, {divergence.Frobenius, 0}, {divergence.Frobenius, 0.7}, {1.5, 0}, {0, 0}, {3, 0}} {
		of, x := learnt(c.loss)
		for i := range of.Maps {
			for l := range of.Maps[i].q {
				of.Maps[i].q[l] -= c.below
			}
		}
		b := newMapped(t, of)
		b.Own = func(v []float64, j int) { v[0], v[1], v[2] = 2, 3, float64(j) }
		p := b.searches()().(*mapped)
		r := random.Split(8, 8)
		for round := range 6 {
			column := make([]float64, d)
			for i := range column {
				column[i] = x[i*n+round]*(0.5+r.Float64()) - c.below
				if round%2 == 1 && i%5 == round%3 {
					column[i] = math.NaN()
				}
			}
			want := make([]float64, n)
			for i, y := range column {
				if y == y && i != 7 {
					for j := range want {
						want[j] += c.loss.Value(y, x[i*n+j]-c.below, b.lowest(i))
					}
				}
			}
			p.measure(column)
			size := slices.Max(want)
			for j, v := range want {
				Near(t, p.distance[j]-p.distance[0], v-want[0], 1e-12*size,
					"%+v: how much further than the first column %d is", c, j)
			}
			if _, more := p.begin(round, column); !more || len(p.starts) != 9 {
				t.Fatalf("%d starts", len(p.starts))
			}
			order := make([]int, n)
			for j := range order {
				order[j] = j
			}
			slices.SortFunc(order, func(i, j int) int { return cmp.Compare(want[i], want[j]) })
			for s, start := range p.starts {
				for c, z := range start.z {
					v := 0.0
					switch {
					case s == 0:
						for _, x := range of.V[c] {
							v += x / n
						}
					case s == 1:
						v = []float64{2, 3, max(float64(round), divergence.Tiny)}[c]
					default:
						v = of.V[c][order[s-2]]
					}
					Close(t, z, math.Log(v), 1e-13, "start %d in coordinate %d", s, c)
				}
			}
		}
		for c := range k {
			lo, hi := slices.Min(of.V[c]), slices.Max(of.V[c])
			Near(t, b.low[c], math.Log(lo)-reach, 1e-12, "the low end of coordinate %d", c)
			Near(t, b.high[c], math.Log(hi)+reach, 1e-12, "the high end of coordinate %d", c)
		}
	}
}

// TestNearRows: of a matrix of too many cells the features on which maps climb most are kept for the nearest,
// in their order, and features whose map is constant do not count.
func TestNearRows(t *testing.T) {
	const d, n = nearRows + 9, 4200
	v := make([]float64, n)
	for j := range v {
		v[j] = 1 + float64(j)/n
	}
	high := func(i int) float64 { return float64((i*29)%d) + 1 } // each once, from 1 to d
	of := Problem{Loss: divergence.Frobenius, V: [][]float64{v}, Floor: 1e-12}
	for i := range d {
		squash, low := transport.Squash{Kind: transport.Arctan, Ref: 1.5, Std: 1}, float64(i%2)
		if i == 3 {
			squash.Std = 0
		}
		of.U = append(of.U, []float64{1})
		of.Maps = append(of.Maps,
			NewSheet(squash, []float64{low, high(i) + low}, []float64{0.5}, []float64{3}))
	}
	b := newMapped(t, of)
	type climb struct {
		by float64
		of int
	}
	var all []climb
	for i := range d {
		if i != 3 {
			all = append(all, climb{high(i) * high(i) / 2, i})
		}
	}
	slices.SortStableFunc(all, func(a, b climb) int { return cmp.Compare(b.by, a.by) })
	var want []int
	for _, c := range all[:nearRows] {
		want = append(want, c.of)
	}
	slices.Sort(want)
	EqualAll(t, b.near, want, "the nearest are looked for on")
	if len(b.rows) != d-1 || len(b.phi) != nearRows*kernel.Pad(n) {
		t.Errorf("%d features and %d values of φ", len(b.rows), len(b.phi))
	}
	small := of
	small.V = [][]float64{v[:100]}
	if b = newMapped(t, small); !slices.Equal(b.near, b.rows) {
		t.Errorf("of few columns not all features are taken: %v", b.near)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if b, err := NewMapped(ended, small); b != nil || !errors.Is(err, context.Canceled) {
		t.Error("after the end:", b, err)
	}
}

// TestFloors: what T is divided by.
func TestFloors(t *testing.T) {
	for _, c := range []struct {
		loss                     divergence.Loss
		low, high, lowest, floor float64
	}{
		{divergence.KL, 0, 5, 1e-100, 5e-12},
		{divergence.KL, 0, 1e-95, 1e-100, 1e-100},
		{-1, 0, 1e-30, 1e-50, 1e-42},
		{divergence.Frobenius, 0, 2, 1e-100, 2e-12},
		{divergence.Frobenius, -1e-9, 2, math.Inf(-1), math.Inf(-1)},
		{1.5, 0, 2, 1e-100, 2e-12},
	} {
		p := Problem{Loss: c.loss, Floor: 1e-12, Maps: []Sheet{NewSheet(transport.Squash{},
			[]float64{c.low, c.high}, []float64{0}, []float64{1})}}
		if lowest, floor := p.lowest(0), p.floor(0); lowest != c.lowest || floor != c.floor {
			t.Errorf("%+v: %v and %v", c, lowest, floor)
		}
	}
}

// TestCells: losses, slopes and curvatures of cells under maps that are ratios of polynomials are those under
// the same maps by values and slopes, in any lanes; both are what the divergence says.
func TestCells(t *testing.T) {
	squash := transport.Squash{Kind: transport.Logistic, Ref: 0.9, Std: 0.5}
	sheet := NewSheet(squash, []float64{0, 0.4, 0.5, 2}, []float64{0.2, 0.4, 0.7}, []float64{12, 12, 12})
	of, x := learnt(divergence.KL)
	for i := range of.Maps {
		of.Maps[i] = sheet
	}
	plain, ratio := newMapped(t, of), newMapped(t, of)
	clear(plain.ratios)
	ratio.ratios[slices.Index(ratio.rows, 4)] = nil
	for r, of := range ratio.ratios {
		if (of == nil) != (ratio.rows[r] == 4) || plain.ratios[r] != nil {
			t.Fatal("not all maps but one are ratios")
		}
	}
	tiles := [2]*tile{newTile(plain, 24, nil), newTile(ratio, 24, nil)}
	const from, rows, np = 1, 16, 16
	src := random.Split(9, 9)
	for i := range tiles[0].columns {
		tiles[0].columns[i] = x[i%len(x)] * []float64{0, 1, 3}[i%3]
	}
	copy(tiles[1].columns, tiles[0].columns)
	for i := range tiles[0].group.w[:rows*np] {
		tiles[0].group.w[i] = 2 * src.Float64()
	}
	copy(tiles[1].group.w, tiles[0].group.w)
	for _, t := range tiles {
		t.cells(t, from, rows, np)
	}
	for at := range rows * np {
		row := plain.rows[from+at/np]
		y, w := tiles[0].columns[(from+at/np)*tiles[0].wide+at%np], tiles[0].group.w[at]
		v, s := softmaxOf(squash, sheet.q, []float64{0.2, 0.4, 0.7}, []float64{12, 12, 12}, w)
		for which, of := range tiles {
			for what, pair := range map[string][3]float64{
				"loss":      {of.group.loss[at], divergence.KL.Value(y, v, divergence.LeastT), y + v},
				"slope":     {of.group.slope[at], s * (1 - y/v), s * (1 + y/v)},
				"curvature": {of.group.curvature[at], s * s / v, s * s / v},
			} {
				Near(t, pair[0], pair[1], 1e-12*pair[2], "row %d, w=%v, x=%v, ratios %v: the %s", row, w, y,
					which == 1, what)
			}
		}
	}
}
