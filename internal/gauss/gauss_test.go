package gauss

// Tests of the models and their steps: gradients and Hessians against differences of the
// function that a row stands for, steps against textbook sweeps and the least of the model,
// and numbers that no step may be led astray by.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// rowOf is a row's w, w̄ and a, np numbers of which n are not padding.
type rowOf struct{ u, w, wbar, a []float64 }

func (r *rowOf) model(w []float64) (s float64) {
	for j, y := range w {
		d := y - r.w[j]
		s += r.wbar[j]*d + r.a[j]*d*d/2
	}
	return s
}

// problem is V, k × np, and rows.
func problem(src *random.Source, k, n, rows int) (v []float64, all []rowOf) {
	np := kernel.Pad(n)
	v = make([]float64, k*np)
	for c := range k {
		for j := range n {
			v[c*np+j] = 0.2 + src.Float64()
		}
	}
	for range rows {
		r := rowOf{make([]float64, k), make([]float64, np), make([]float64, np), make([]float64, np)}
		for c := range r.u {
			r.u[c] = 0.2 + src.Float64()
		}
		for j := range n {
			for c, x := range r.u {
				r.w[j] += x * v[c*np+j]
			}
			r.wbar[j], r.a[j] = src.Float64()-0.5, src.Float64()
		}
		all = append(all, r)
	}
	return v, all
}

// rowFor is a row that reads V.
func rowFor(k int, v []float64) (*row, *tiles) {
	l := newTiles(nil, k, len(v)/k)
	l.ToTiles(v, 0, len(v)/k)
	return newRow(nil, l), l
}

func times(u, v []float64) []float64 {
	np := len(v) / len(u)
	w := make([]float64, np)
	for c, x := range u {
		for j := range w {
			w[j] += x * v[c*np+j]
		}
	}
	return w
}

// differences returns the gradient of f at x and its second differences, which of a quadratic
// are exact but for rounding.
func differences(f func(x []float64) float64, x []float64) (g, h []float64) {
	k, d := len(x), 0.1
	at := func(a, b int, da, db float64) float64 {
		y := slices.Clone(x)
		y[a] += da
		y[b] += db
		return f(y)
	}
	for a := range k {
		g = append(g, (at(a, a, d, 0)-at(a, a, -d, 0))/(2*d))
		for b := range k {
			h = append(h, (at(a, b, d, d)-at(a, b, d, -d)-at(a, b, -d, d)+at(a, b, -d, -d))/(4*d*d))
		}
	}
	return g, h
}

func compare(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	NearAll(t, got, want, tolerance*LargestOf(want), "%s", what)
}

// TestRow: gradient and Hessian of a row are those of its model, sample by sample; also of more samples than
// the nearest cache has V of, which lie in tiles.
func TestRow(t *testing.T) {
	src := random.Split(2, 0)
	for _, size := range [][2]int{{1, 1}, {3, 10}, {7, 40}, {12, 65}, {3, nearWhole/3 + 700},
		{20, nearWhole/20 + 1}} {
		k, n := size[0], size[1]
		v, all := problem(&src, k, n, 1)
		np, r := kernel.Pad(n), all[0]
		room := make([]float64, k*np)
		row, tiles := rowFor(k, room)
		Equal(t, tiles.samples == np, n <= 65, "one tile has all samples")
		copy(room, v)                             // which one tile holds
		for from := 0; from < np; from += width { // several take them as steps of V do
			tiles.ToTiles(v, from, min(from+width, np))
		}
		row.Model(tiles, r.wbar, r.a)
		g, h := make([]float64, k), make([]float64, k*k)
		for j := range n {
			for c := range k {
				g[c] += v[c*np+j] * r.wbar[j]
				for b := range k {
					h[c*k+b] += v[c*np+j] * r.a[j] * v[b*np+j]
				}
			}
		}
		compare(t, "gradient", row.gradient, g, 1e-11)
		compare(t, "Hessian", row.hessian, h, 1e-12)
	}
}

// TestPenalty: the barrier has the gradient of weight/2 log²x, and a curvature that is its
// second derivative below 1 and not below 1/x² of the weight beyond.
func TestPenalty(t *testing.T) {
	for _, x := range []float64{1e-3, 0.3, 1, 2.5, 700} {
		f := func(x float64) float64 { return 1.7 / 2 * math.Log(x) * math.Log(x) }
		d := 1e-4 * x
		g, h := barrier(1.7, x, math.Log(x))
		Near(t, g, (f(x+d)-f(x-d))/(2*d), 1e-6*1.7/x, "gradient at %v", x)
		want := max((f(x+d)-2*f(x)+f(x-d))/(d*d), 1.7/x/x)
		Near(t, h, want, 1e-5*want, "curvature at %v", x)
	}
	c := kernel.Column{X: []float64{0, 0.3, 2}, G: make([]float64, 3), H: make([]float64, 3)}
	penalise(c, make([]float64, 3), 1.7)
	for j, x := range c.X {
		g, h := 0.0, 0.0
		if x > 0 { // where it is 0 there is no barrier
			g, h = barrier(1.7, x, elem.Log(x))
		}
		Equal(t, [2]float64{c.G[j], c.H[j]}, [2]float64{g, h}, "at %v", x)
	}
}

// TestBounds: where a sweep moves an entry. (A bound that is where the entry goes is the same number.)
func TestBounds(t *testing.T) {
	s := step{Low: 0.5, High: 3, Rise: 0.25}
	for _, c := range [][3]float64{{1, 2, 1.5}, {100, 2, 1}, {-100, 2, 7}, {1, tiny, 2}, {0, math.Inf(1), 2},
		{math.Inf(1), math.Inf(1), 2}} {
		Equal(t, s.to(2, c[0], c[1], 2, 4), c[2], "by %v and %v to", c[0], c[1])
	}
	for k, want := range []int{0, 1, 3, 6, 10} {
		Equal(t, pairsOf(k), want, "pairs of %d", k)
	}
}

// TestJudge: V is trusted less where the loss rose, and slowly more again.
func TestJudge(t *testing.T) {
	s := NewSteps(pool.New(1, 1), 2, 1, 8, 1)
	for _, c := range [][2]float64{{5, 1}, {5, 1}, {6, 0.5}, {6, 0.625}, {7, 0.3125}, {1, 0.390625},
		{0, 0.48828125}, {1, 0.6103515625}} {
		s.Judge(c[0])
		Equal(t, s.numbers[trust], c[1], "after a loss of %v", c[0])
	}
	for loss := range 99 {
		s.Judge(float64(loss))
	}
	Equal(t, s.numbers[trust], leastTrust, "the least")
}

// textbook makes a step with plain loops.
func textbook(x0, g, h []float64, s step) []float64 {
	k := len(x0)
	x, mean := slices.Clone(x0), 0.0
	for _, v := range x0 {
		mean += v / float64(k)
	}
	for range s.Sweeps {
		for c := range k {
			slope := g[c]
			for b := range k {
				slope += h[c*k+b] * (x[b] - x0[b])
			}
			slope += s.Damp * h[c*k+c] * (x[c] - x0[c])
			x[c] = min(max(x[c]-slope/(h[c*k+c]*(1+s.Damp)), s.Low*x0[c]), s.High*x0[c]+s.Rise*mean)
		}
	}
	for c := range x {
		x[c] = x0[c] + s.Share*(x[c]-x0[c])
	}
	return x
}

var steps = []step{{Sweeps: 1, Low: 0.1, High: 4, Share: 1},
	{Sweeps: 4, Damp: 0.3, Low: 0.5, High: 1.5, Rise: 0.05, Share: 0.5},
	{Sweeps: 4000, Low: -1e9, High: 1e9, Share: 1}}

// TestSteps: steps of rows and of columns are the textbook's, of the model that batches have left
// with a forgetting of the rows before, and where there are no bounds lead to its least.
func TestSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	src := random.Split(2, 0)
	for _, size := range [][2]int{{1, 1}, {3, 10}, {5, 33}, {9, 72}} {
		k, n := size[0], size[1]
		np := kernel.Pad(n)
		for _, s := range steps {
			for _, penalty := range []float64{0, 0.3} {
				v, all := problem(&src, k, n, 7)
				row, tiles := rowFor(k, v)
				row.Model(tiles, all[0].wbar, all[0].a)
				if penalty > 0 {
					row.Penalise(all[0].u, penalty)
				}
				want := textbook(all[0].u, slices.Clone(row.gradient),
					slices.Clone(row.hessian), s)
				u := slices.Clone(all[0].u)
				row.Step(u, s)
				compare(t, "u", u, want, 1e-9)
				if s.Sweeps > 1000 && penalty == 0 && k < 6 {
					g, _ := differences(func(u []float64) float64 { return all[0].model(times(u, v)) }, u)
					Near(t, LargestOf(g), 0, 1e-6, "the gradient where %v sweeps end", s.Sweeps)
				}

				// Two batches, of four and of three rows, one of them left out.
				m, room, batch := newColumns(nil, k, np), newRoom(nil, k, 4), newBatch(nil, 4, k, np)
				weights := []float64{1, 2, 0.5, 1, 1, 3, 1}
				const keep = 0.75
				for from := 0; from < 7; from += 4 {
					batch.Rows, batch.Keep = min(4, 7-from), keep
					for slot := range batch.Rows {
						r := all[from+slot]
						if from+slot == 5 {
							batch.Skip(slot)
							continue
						}
						copy(batch.Curvature(slot), r.a)
						batch.Put(slot, r.u, r.w, r.wbar, weights[from+slot])
					}
					for tile := range m.Tiles() {
						m.take(tile, &batch, room)
					}
				}
				got := slices.Clone(v)
				for tile := range m.Tiles() {
					m.step(tile, got, penalty, s, room)
				}
				for j := range np {
					column := make([]float64, k)
					for c := range k {
						column[c] = v[c*np+j]
					}
					if j >= n {
						for c := range k {
							if got[c*np+j] != 0 {
								t.Fatalf("padding became %v", got[c*np+j])
							}
						}
						continue
					}
					g, h := differences(func(y []float64) (sum float64) {
						for i, r := range all {
							if i == 5 {
								continue
							}
							d := -r.w[j]
							for c, x := range r.u {
								d += x * y[c]
							}
							old := 1.0
							if i < 4 {
								old = keep
							}
							sum += old * weights[i] * (r.wbar[j]*d + r.a[j]*d*d/2)
						}
						return sum
					}, column)
					if penalty > 0 {
						for c, x := range column {
							slope, curvature := barrier(penalty, x, math.Log(x))
							g[c] += slope
							h[c*k+c] += curvature
						}
					}
					want := textbook(column, g, h, s)
					for c := range k {
						if s.Sweeps > 1000 && k > 6 {
							continue // seven rows do not determine so many
						}
						Close(t, got[c*np+j], want[c], 1e-6, "k=%d n=%d %+v: v[%d][%d]", k, n, s, c, j)
					}
				}
			}
		}
	}
}

// TestUnseen: in the first epoch V's model has seen some rows only, and what those few want is not
// what all want. The rows that are missing are taken for as many more of the same curvature that want V
// to stay where it is: each raises the diagonal of the Hessian, and adds nothing to the gradient. So
// the first quarter of the rows moves V by a quarter, or less, of what it would else; from the last
// batch of the epoch on nothing is held back. Here those rows are counted one by one.
func TestUnseen(t *testing.T) {
	src := random.Split(4, 0)
	const k, n, d, size = 3, 10, 12, 3
	np := kernel.Pad(n)
	v, all := problem(&src, k, n, d)
	s := NewSteps(pool.New(1, 1), d, k, np, size)
	a, b := make([]float64, k*k*n), make([]float64, k*n) // of the rows that were seen
	mass := 0.0
	for count := 1; count <= 7; count++ {
		for i := range a {
			a[i] *= 1 - float64(size)/d
		}
		for i := range b {
			b[i] *= 1 - float64(size)/d
		}
		for slot := range size {
			r := all[(count-1)*size%d+slot]
			copy(s.Curvature(slot), r.a)
			s.Put(slot, r.u, r.w, r.wbar, 1)
			for j := range n {
				for c, x := range r.u {
					b[j*k+c] += x * (r.a[j]*r.w[j] - r.wbar[j])
					for e, y := range r.u {
						a[(j*k+c)*k+e] += r.a[j] * x * y
					}
				}
			}
		}
		before := slices.Clone(v)
		s.Mix(size, count)
		mass = mass*(1-float64(size)/d) + size
		Near(t, s.Weight(), mass, 1e-12, "the rows weigh")
		for tile := range s.Tiles() {
			s.StepTile(0, tile, v, 0)
		}
		step := stepV
		step.Share *= float64(size) / wholeBatch
		for unseen := d - count*size; unseen > 0; unseen-- {
			step.Damp += 1 / float64(count*size)
		}
		got, want := make([]float64, 0, k*n), make([]float64, 0, k*n) // how far V goes
		for j := range n {
			h := a[j*k*k : (j+1)*k*k]
			column, g := make([]float64, k), make([]float64, k)
			for c := range k {
				column[c] = before[c*np+j]
			}
			for c := range k {
				g[c] = -b[j*k+c]
				for e, x := range column {
					g[c] += h[c*k+e] * x
				}
			}
			for c, x := range textbook(column, g, h, step) {
				got, want = append(got, v[c*np+j]-column[c]), append(want, x-column[c])
			}
		}
		compare(t, "V", got, want, 1e-9)
	}
}

// TestHostile: whatever the model says, a step changes no entry by more than its bounds, and
// leaves numbers.
func TestHostile(t *testing.T) {
	const k, n = 4, 24
	src := random.Split(3, 0)
	values := []float64{0, 1, -1, 1e-300, 1e300, -1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1),
		math.NaN()}
	pick := func() float64 { return values[src.IntN(len(values))] }
	s := step{Sweeps: 4, Damp: 0.1, Low: 0.3, High: 3, Rise: 0.02, Share: 0.5}
	within := func(what string, before, after, mean float64) {
		if !(after >= 0.3*before && after <= 3*before+0.02*mean) {
			t.Fatalf("%s went from %v to %v", what, before, after)
		}
	}
	for range 300 {
		v, all := problem(&src, k, n, 1)
		r := all[0]
		for j := range n {
			r.wbar[j], r.a[j] = pick(), math.Abs(pick())
		}
		row, tiles := rowFor(k, v)
		row.Model(tiles, r.wbar, r.a)
		u := slices.Clone(r.u)
		row.Step(u, s)
		mean := (r.u[0] + r.u[1] + r.u[2] + r.u[3]) / k
		for c := range u {
			within("u", r.u[c], u[c], mean)
		}
		m, room := newColumns(nil, k, n), newRoom(nil, k, 1)
		for i := range m.A {
			m.A[i] = pick()
		}
		for i := range m.B {
			m.B[i] = pick()
		}
		after := slices.Clone(v)
		m.step(0, after, 0, s, room)
		for j := range n {
			mean := (v[j] + v[n+j] + v[2*n+j] + v[3*n+j]) / k
			for c := range k {
				within("v", v[c*n+j], after[c*n+j], mean)
			}
		}
	}
}

// TestWhole: one batch of all rows, some of them in slots at a time, makes the step of V that a batch of all
// slots makes, but for rounding; and to the bit whatever rows go together and however the rows are split.
func TestWhole(t *testing.T) {
	src := random.Split(5, 0)
	const k, n, d = 4, 43, 150
	np := kernel.Pad(n)
	v, all := problem(&src, k, n, d)
	put := func(s *Steps, slot, i int) {
		copy(s.Curvature(slot), all[i].a)
		s.Put(slot, all[i].u, all[i].w, all[i].wbar, float64(i%5))
	}
	step := func(s *Steps) []float64 {
		s.Judge(1)
		s.Mix(d, 1)
		to := slices.Clone(v)
		for tile := range s.Tiles() {
			s.StepTile(0, tile, to, 0.1)
		}
		return to
	}
	one := pool.New(1, 1)
	batch := NewSteps(one, d, k, np, d)
	for i := range d {
		put(batch, i, i)
	}
	want := step(batch)
	sum := func(s *Steps, cut pool.Runs, together int) {
		from, to := cut.Rows()
		for at := from; at < to; at += together {
			for slot := range min(together, to-at) {
				put(s, slot, at+slot)
			}
			for tile := range s.Tiles() {
				s.Accumulate(0, tile, at, min(together, to-at))
			}
		}
	}
	whole := NewWhole(one, pool.AllRuns(d), k, np, 64, d)
	sum(whole, pool.AllRuns(d), 64)
	first := step(whole)
	compare(t, "V", first, want, 1e-13)
	for _, shards := range []int{1, 2, 3} {
		to := NewWhole(one, pool.AllRuns(d), k, np, 1, d)
		a, b := to.Sums()
		for shard := range shards {
			cut := pool.AllRuns(d)
			cut.From, cut.To = shard*cut.To/shards, (shard+1)*cut.To/shards
			s := NewWhole(one, cut, k, np, 7, d)
			sum(s, cut, 7)
			fromA, fromB := s.Sums()
			for i, node := range cut.Nodes() {
				a.Add(node, 0, fromA.Parts[i])
				b.Add(node, 0, fromB.Parts[i])
			}
		}
		Same(t, step(to), first, "V of %d shards", shards)
	}
}
