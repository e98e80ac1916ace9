package quantmf

// Tests of the coordinates of new samples: how near they are to the least loss, gradients,
// bits, corners, errors, cancellation and memory.

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestTransformOptimal bounds how far NMF's columns are from their minimum. With
// g the gradient at v, convexity gives f(v) - f(v*) <= g·v - g·v*, and since
// Σ_c v*_c ΣU_c = Σx, at most g·v + Σx max_c(-g_c/ΣU_c): a bound that is linear
// in the distance where the loss itself is quadratic.
func TestTransformOptimal(t *testing.T) {
	for name, x := range map[string]Mat{"toy": toy(3), "laml": loadRows(t, "testdata/laml-exp.tsv.gz", 200),
		"counts": counts(80, 60)} {
		for _, k := range []int{1, 6, 15} {
			if testing.Short() && k == 15 {
				continue
			}
			m := Fitted(t, FitNMF, x, k, WithEpochs(30))
			v := Answer(t, m.Transform, x)
			worst := 0.0
			for j := range x.Cols {
				loss, total, gv, least := 0.0, 0.0, 0.0, 0.0
				g, sum := make([]float64, k), make([]float64, k)
				for i := range x.Rows {
					w := 0.0
					for c := range k {
						w += m.U.At(i, c) * v.At(c, j)
					}
					xi := x.At(i, j)
					total += xi
					loss += w
					if xi > 0 {
						loss += xi*math.Log(xi/max(w, divergence.LeastT)) - xi
					}
					for c, u := range m.U.Row(i) {
						sum[c] += u
						if u > 0 && xi > 0 {
							g[c] += u * (1 - xi/w)
						} else {
							g[c] += u
						}
					}
				}
				for c := range g {
					gv += g[c] * v.At(c, j)
					if sum[c] > 0 {
						least = max(least, -g[c]/sum[c])
					}
				}
				if total > 0 {
					worst = max(worst, (gv+total*least)/max(loss, 1e-9*total))
				}
			}
			if !(worst <= 1e-4) {
				t.Errorf("%s, k=%d: a column may be %.2g of its loss above the least", name, k, worst)
			}
		}
	}
}

// mapped is T_i(U_i v), what a model with such maps says of feature i at v.
func mapped(t *testing.T, u Mat, of func(i int) (*Map, error)) func(i int, v []float64) float64 {
	var maps []*Map
	for i := range u.Rows {
		maps = append(maps, Must(of(i))(t))
	}
	return func(i int, v []float64) float64 { return maps[i].At(Dot(u.Row(i), v)) }
}

// TestTransformFromProjection: no new sample is placed worse than where its own
// projection lies, found here by Lee and Seung's updates of v alone. Without that start
// some of these, which are like no training sample under maps of steep steps, are.
func TestTransformFromProjection(t *testing.T) {
	Slow(t)
	const d, columns = 30, 40
	for _, c := range some([]struct{ n, k int }{{5, 4}, {5, 8}}, 1) {
		x := Part(first(toy(1), d), 0, c.n)
		q := Fitted(t, FitQMFQ, x, c.k, WithEpochs(5), WithEpsilon(0.0005))
		r := random.Split(3, 3)
		v, fresh := make([]float64, c.k), NewMat(d, columns)
		inflated := mapped(t, q.U, q.Inflate)
		for j := range columns {
			for l := range v {
				v[l] = math.Exp(1.5*Normal(&r)) * Mean(q.V.Row(l))
			}
			for i := range d {
				fresh.Set(i, j, inflated(i, v))
			}
		}
		got := Answer(t, q.Transform, fresh)
		y := Must(q.Normalize(fresh))(t)
		for j := range columns {
			loss := func(v []float64) float64 {
				sum := 0.0
				for i := range d {
					sum += Textbook(1, fresh.At(i, j), inflated(i, v))
				}
				return sum
			}
			placed, projected := make([]float64, c.k), make([]float64, c.k)
			for l := range placed {
				placed[l], projected[l] = got.At(l, j), 1
			}
			num, den := make([]float64, c.k), make([]float64, c.k)
			for range Draws(3000, 1000, 1000) {
				clear(num)
				clear(den)
				for i := range d {
					w := 0.0
					for l, u := range q.U.Row(i) {
						w += u * projected[l]
					}
					for l, u := range q.U.Row(i) {
						num[l] += u * y.At(i, j) / w
						den[l] += u
					}
				}
				for l := range projected {
					projected[l] *= num[l] / den[l]
				}
			}
			if a, b := loss(placed), loss(projected); !(a <= b*(1+1e-6)) {
				t.Errorf("n=%d, k=%d, sample %d: placed at a loss of %v, its projection has %v", c.n, c.k, j,
					a, b)
			}
		}
	}
}

// TestTransformAtItsLeast: where the divergence is smooth, no coordinate of a new
// sample moves by a thousandth and lowers its loss; and the sample that a model makes of
// the mean of its training columns is found again, however steep its maps.
func TestTransformAtItsLeast(t *testing.T) {
	ctx := context.Background()
	const d, columns = 30, 20
	for _, c := range []struct {
		n, k   int
		eps    float64
		smooth bool
	}{{20, 2, 0.02, true}, {20, 4, 0.02, true}, {40, 4, 0.02, true}, {5, 8, 0.0005, false}} {
		q := Fitted(t, FitQMF, Part(first(toy(1), d), 0, c.n), c.k,
			WithEpochs(5), WithEpsilon(c.eps), WithShrinkage(0), WithStart(StartScores))
		fit := mapped(t, q.U, q.Map)
		v, own := make([]float64, c.k), NewMat(d, 1)
		for l := range v {
			v[l] = Mean(q.V.Row(l))
		}
		for i := range d {
			own.Set(i, 0, fit(i, v))
		}
		if score, err := q.Score(ctx, own); err != nil || !(score < 1e-9) {
			t.Errorf("%v: the mean of the columns scores %v, %v", c, score, err)
		}
		if !c.smooth {
			continue
		}
		x := Part(first(toy(1), d), 40, 40+columns)
		placed := Answer(t, q.Transform, x)
		for j := range columns {
			for l := range v {
				v[l] = placed.At(l, j)
			}
			loss := func() float64 {
				sum := 0.0
				for i := range d {
					sum += Textbook(1, x.At(i, j), fit(i, v))
				}
				return sum
			}
			least := loss()
			for l, at := range v {
				for _, by := range []float64{0.999, 1.001} {
					v[l] = at * by
					if moved := loss(); moved < least*(1-1e-8) {
						t.Errorf("%v, sample %d: coordinate %d times %v lowers the loss from %v to %v", c, j,
							l, by, least, moved)
					}
				}
				v[l] = at
			}
		}
	}
}

// TestTransformSearch: no sample ends higher than where a plain search leads, written here without tiles and
// sheets: from the mean of the training columns and from the seven whose fitted values are nearest, ten steps
// each by Levenberg and Marquardt, of which the best goes on. Searches that leave starts sooner by their
// loss, by what their models promise or by how near they come to each other end higher for some.
func TestTransformSearch(t *testing.T) {
	Slow(t)
	some := []struct {
		name string
		x    Mat
		k    int
		eps  float64
	}{{"toy", first(toy(1), 30), 4, 0.02}}
	if Long {
		wide, _ := Bent(60, 60, 4, 0, 9)
		some = append(some, []struct {
			name string
			x    Mat
			k    int
			eps  float64
		}{{"bent", wide, 8, 0.02}, {"counts", counts(60, 60), 5, 0.02},
			{"assays", loadRows(t, "testdata/laml-assays.tsv.gz", 60), 6, 0.02},
			{"steep", first(toy(3), 60), 6, 0.004}}...)
	}
	for _, c := range some {
		q := Fitted(t, FitQMF, columnsOf(c.x, func(j int) bool { return j%2 == 0 }), c.k,
			WithEpsilon(c.eps))
		placed := Answer(t, q.Transform, c.x)
		p, v := newPlainSearch(t, q), make([]float64, c.k)
		better := 0
		for j := 0; j < c.x.Cols; j += 3 {
			x := make([]float64, c.x.Rows)
			c.x.column(x, j)
			for l := range v {
				v[l] = math.Log(placed.At(l, j))
			}
			got, want := p.loss(x, v), p.search(x)
			if !(got <= want*(1+1e-6)+1e-12*TotalOf(x)) {
				t.Errorf("%s, sample %d: placed at a loss of %v, a plain search finds %v", c.name, j, got,
					want)
			}
			if got < want*(1-1e-6) {
				better++
			}
		}
		t.Logf("%s: %d samples, %d lower than the plain search", c.name, (c.x.Cols+2)/3, better)
	}
}

// plainSearch places one sample after another, under KL, by loops as in a textbook.
type plainSearch struct {
	q         *QMF
	maps      []*Map
	fitted    Mat
	low, high []float64 // of z = log v
}

func newPlainSearch(t *testing.T, q *QMF) *plainSearch {
	p := &plainSearch{q: q, fitted: q.Reconstruct()}
	for i := range q.U.Rows {
		f := Must(q.Map(i))(t)
		p.maps = append(p.maps, f)
	}
	for c := range q.V.Rows {
		p.low, p.high = append(p.low, math.Log(max(slices.Min(q.V.Row(c)), divergence.Tiny))-23),
			append(p.high, math.Log(max(slices.Max(q.V.Row(c)), divergence.Tiny))+23)
	}
	return p
}

// at returns w, T and T' of feature i.
func (p *plainSearch) at(i int, z []float64) (w, t, slope float64) {
	for c, u := range p.q.U.Row(i) {
		w += u * math.Exp(z[c])
	}
	return w, p.maps[i].At(w), p.maps[i].Slope(w)
}

func (p *plainSearch) loss(x, z []float64) (sum float64) {
	for i, x := range x {
		_, t, _ := p.at(i, z)
		sum += Textbook(1, x, t)
	}
	return sum
}

// model returns gradient and matrix of Gauss and Newton in z.
func (p *plainSearch) model(x, z []float64) (g []float64, h [][]float64) {
	g = make([]float64, len(z))
	for range z {
		h = append(h, make([]float64, len(z)))
	}
	for i, x := range x {
		_, t, slope := p.at(i, z)
		if slope == 0 {
			continue
		}
		t = max(t, 1e-12*slices.Max(p.q.Quantiles.Row(i)))
		for c, u := range p.q.U.Row(i) {
			a := slope * u * math.Exp(z[c])
			g[c] += (1 - x/t) * a
			for b, u := range p.q.U.Row(i) {
				h[c][b] += a * slope * u * math.Exp(z[b]) / t
			}
		}
	}
	return g, h
}

// follow makes so many steps from z, and returns where they end.
func (p *plainSearch) follow(x, z []float64, steps int) ([]float64, float64) {
	lambda, raise, idle := 1e-3, 2.0, 0
	loss := p.loss(x, z)
	g, h := p.model(x, z)
	for range steps {
		top := 0.0
		for c := range z {
			top = max(top, h[c][c])
		}
		damped := make([][]float64, len(z))
		s := make([]float64, len(z))
		for c := range z {
			damped[c] = slices.Clone(h[c])
			damped[c][c] += lambda * max(h[c][c], 1e-6*top)
			s[c] = -g[c]
		}
		eliminate(damped, s)
		longest := 0.0
		for _, v := range s {
			longest = max(longest, math.Abs(v))
		}
		next, promise := make([]float64, len(z)), 0.0
		for c := range z {
			next[c] = min(max(z[c]+min(1, 2/longest)*s[c], p.low[c]), p.high[c])
			s[c] = next[c] - z[c]
		}
		for c := range z {
			promise -= s[c] * g[c]
			for b := range z {
				promise -= s[c] * h[c][b] * s[b] / 2
			}
		}
		now := p.loss(x, next)
		if !(now < loss) {
			if lambda, raise = lambda*raise, 2*raise; lambda > 1e10 {
				break
			}
			continue
		}
		agree := 2*(loss-now)/promise - 1
		lambda, raise = max(lambda*max(1.0/3, 1-agree*agree*agree), 1e-12), 2
		if idle++; loss-now > 1e-10*loss {
			idle = 0
		}
		z, loss = next, now
		if idle == 2 {
			break
		}
		g, h = p.model(x, z)
	}
	return z, loss
}

// search returns the loss at which the plain search ends.
func (p *plainSearch) search(x []float64) float64 {
	v := p.q.V
	start := func(of func(c int) float64) []float64 {
		z := make([]float64, v.Rows)
		for c := range z {
			z[c] = math.Log(max(of(c), divergence.Tiny))
		}
		return z
	}
	starts := [][]float64{start(func(c int) float64 { return Mean(v.Row(c)) })}
	near, order := make([]float64, v.Cols), make([]int, v.Cols)
	for j := range near {
		order[j] = j
		for i, x := range x {
			near[j] += Textbook(1, x, p.fitted.At(i, j))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(near[a], near[b]) })
	for _, j := range order[:7] {
		starts = append(starts, start(func(c int) float64 { return v.At(c, j) }))
	}
	best, from := math.Inf(1), []float64(nil)
	for _, z := range starts {
		if z, loss := p.follow(x, z, 10); loss < best {
			best, from = loss, z
		}
	}
	_, best = p.follow(x, from, 200)
	return best
}

// eliminate solves a x = b by Gauss and Jordan; b becomes x.
func eliminate(a [][]float64, b []float64) {
	for c := range a {
		pivot := c
		for r := c; r < len(a); r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		a[c], a[pivot], b[c], b[pivot] = a[pivot], a[c], b[pivot], b[c]
		for r := range a {
			if r != c {
				f := a[r][c] / a[c][c]
				for j := range a[r] {
					a[r][j] -= f * a[c][j]
				}
				b[r] -= f * b[c]
			}
		}
	}
	for c := range a {
		b[c] /= a[c][c]
	}
}
