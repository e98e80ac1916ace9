package quantmf

// Tests of the coordinates of new samples.

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// scorer is what NMF and QMF have in common for new samples.
type scorer interface {
	Loss(x Mat) (float64, error)
	Transform(ctx context.Context, x Mat) (Mat, error)
	Score(ctx context.Context, x Mat) (float64, error)
}

// bothModels fits NMF and QMF to x.
func bothModels(t *testing.T, x Mat, k int, opts ...FitOption) map[string]scorer {
	t.Helper()
	nmf, err := FitNMF(context.Background(), x, k)
	if err != nil {
		t.Fatal(err)
	}
	qmf, err := FitQMF(context.Background(), x, k, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]scorer{"NMF": nmf, "QMF": qmf}
}

// allPlacers is bothModels and a QMFQ under TruncatedSVD, which has a placer of
// its own.
func allPlacers(t *testing.T, x Mat, k int, opts ...FitOption) map[string]scorer {
	t.Helper()
	models := bothModels(t, x, k, opts...)
	svd, err := FitQMFQ(context.Background(), x, k, append(opts, WithProjection(TruncatedSVD()))...)
	if err != nil {
		t.Fatal(err)
	}
	models["TruncatedSVD"] = svd
	return models
}

// columnsOf copies the columns of x that keep says.
func columnsOf(x Mat, keep func(j int) bool) Mat {
	var columns []int
	for j := range x.Cols {
		if keep(j) {
			columns = append(columns, j)
		}
	}
	out := NewMat(x.Rows, len(columns))
	for i := range x.Rows {
		for to, j := range columns {
			out.Set(i, to, x.At(i, j))
		}
	}
	return out
}

func first(x Mat, rows int) Mat {
	x.Rows = min(x.Rows, rows)
	return x
}

// counts draws a matrix of small counts, most of them zero, with a row and a
// column of zeros and a constant row.
func counts(d, n int) Mat {
	r := random.Split(5, 6)
	x := NewMat(d, n)
	for i := range d {
		for j := range n {
			rate := 3 * r.Float64() * r.Float64() * r.Float64()
			for p := r.Float64(); p > math.Exp(-rate); p *= r.Float64() {
				x.Row(i)[j]++
			}
		}
	}
	clear(x.Row(1))
	for j := range n {
		x.Set(2, j, 4)
	}
	for i := range d {
		x.Set(i, n/2, 0)
	}
	return x
}

// TestScoreSeen places the training columns: no worse than where training left
// them.
func TestScoreSeen(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		x    Mat
		k    int
		opts []FitOption
	}{
		{"toy", first(toy(1), 50), 8, []FitOption{WithLevels(8), WithEpochs(40)}},
		{"laml", first(load(t, "testdata/laml-exp.tsv.gz"), 30), 5, []FitOption{WithEpochs(40)}},
		{"counts", counts(60, 50), 4, []FitOption{WithLevels(8)}},
		{"rough", counts(60, 50), 4, []FitOption{WithEpsilon(1e-4), WithEpochs(10)}},
		{"pinned", counts(60, 50), 4, []FitOption{WithEpochs(10), WithEnds(EndsPinned)}},
		{"bare", first(toy(2), 60), 3, []FitOption{WithSquash(SquashNone), WithEpochs(10), WithStart(StartUniform)}},
	} {
		for name, m := range bothModels(t, c.x, c.k, c.opts...) {
			loss, err := m.Loss(c.x)
			if err != nil {
				t.Fatal(err)
			}
			score, err := m.Score(ctx, c.x)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s, k=%d: loss %.6g, score %.4f of it", name, c.name, c.k, loss, score/loss)
			if !(score <= loss*(1+1e-9)) {
				t.Errorf("%s %s: score %v, loss %v", name, c.name, score, loss)
			}
		}
	}
}

// TestScoreUnseen places a quarter of the columns by what the others have taught.
func TestScoreUnseen(t *testing.T) {
	const path = "../shared/data/tcga-brca/mirna.tsv.gz"
	if _, err := os.Stat(path); err != nil {
		t.Skip(path + " is not here")
	}
	x := first(load(t, path), 60)
	seen := columnsOf(x, func(j int) bool { return j%4 != 3 })
	unseen := columnsOf(x, func(j int) bool { return j%4 == 3 })
	for name, m := range bothModels(t, seen, 5, WithEpochs(40)) {
		loss, err := m.Loss(seen)
		if err != nil {
			t.Fatal(err)
		}
		score, err := m.Score(context.Background(), unseen)
		t.Logf("%s: seen %.4g, unseen %.4g", name, loss, score)
		if err != nil || !(score <= 2*loss) {
			t.Errorf("%s: score %v of unseen columns (%v), loss %v of seen ones", name, score, err, loss)
		}
	}
}

// TestScoreIsLoss compares Score with the divergence from U V', and from T(U V')
// by the maps.
func TestScoreIsLoss(t *testing.T) {
	x := counts(40, 30)
	for name, m := range bothModels(t, x, 3, WithEpochs(20)) {
		v, err := m.Transform(context.Background(), x)
		if err != nil {
			t.Fatal(err)
		}
		fit := NewMat(x.Rows, x.Cols)
		u := Mat{}
		if n, ok := m.(*NMF); ok {
			u = n.U
		} else {
			u = m.(*QMF).U
		}
		for i := range fit.Rows {
			product(fit.Row(i), u.Row(i), v)
			if q, ok := m.(*QMF); ok {
				f, err := q.Map(i)
				if err != nil {
					t.Fatal(err)
				}
				for j, w := range fit.Row(i) {
					fit.Set(i, j, f.At(w))
				}
			}
		}
		want, err := (&config{settings: settings{loss: KL}}).meanLoss(x, fit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Score(context.Background(), x); err != nil || !(math.Abs(got-want) <= 1e-11*want) {
			t.Errorf("%s: score %v (%v), want %v", name, got, err, want)
		}
	}
}

// TestTransformOptimal bounds how far NMF's columns are from their minimum. With
// g the gradient at v, convexity gives f(v) - f(v*) <= g·v - g·v*, and since
// Σ_c v*_c ΣU_c = Σx, at most g·v + Σx max_c(-g_c/ΣU_c): a bound that is linear
// in the distance where the loss itself is quadratic.
func TestTransformOptimal(t *testing.T) {
	for name, x := range map[string]Mat{"toy": toy(3), "laml": first(load(t, "testdata/laml-exp.tsv.gz"), 200), "counts": counts(80, 60)} {
		for _, k := range []int{1, 6, 15} {
			m, err := FitNMF(context.Background(), x, k, WithEpochs(30))
			if err != nil {
				t.Fatal(err)
			}
			v, err := m.Transform(context.Background(), x)
			if err != nil {
				t.Fatal(err)
			}
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
						loss += xi*math.Log(xi/max(w, leastT)) - xi
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

// TestSweep compares T and its slope with At and Slope.
func TestSweep(t *testing.T) {
	r := random.Split(8, 1)
	x := make([]float64, 60)
	for i := range x {
		x[i] = math.Exp(2 * normal(&r))
	}
	for _, squash := range []Squash{SquashLogistic, SquashNone, SquashLogisticUnit, SquashArctan} {
		for _, eps := range []float64{10, 0.1, 0.01, 1e-4, 1e-7} {
			for _, m := range []int{1, 2, 16, 100} {
				q, b := make([]float64, m), make([]float64, m)
				at := 5.0
				for j := range q {
					at += math.Exp(2 * normal(&r))
					q[j], b[j] = at, math.Exp(normal(&r))
				}
				tr, err := Solve(x, WithEpsilon(eps), WithSquash(squash), WithLevels(m), WithTargetWeights(b))
				if err != nil {
					t.Fatal(err)
				}
				f, err := tr.Map(q)
				if err != nil {
					t.Fatal(err)
				}
				var values, wantValues, slopes, wantSlopes []float64
				arg := make([]float64, m)
				for i := -50; i < 350; i++ {
					at := float64(i) / 10
					if i == 349 {
						at = 1e12
					}
					v, s := f.sweep(at, arg)
					values, slopes = append(values, v), append(slopes, s)
					wantValues, wantSlopes = append(wantValues, f.At(at)), append(wantSlopes, f.Slope(at))
				}
				closeTo(t, "T", values, wantValues, 1e-12*largest(q))
				// Slope rounds the share 1-t of what is below a level near its top.
				closeTo(t, "slope", slopes, wantSlopes, 1e-10*largest(wantSlopes)+1e-14/eps*largest(q))
				if allocs := testing.AllocsPerRun(10, func() { f.sweep(2, arg) }); allocs > 0 {
					t.Errorf("%v allocations", allocs)
				}
			}
		}
	}
}

// TestDifferentiate compares derivatives with central differences.
func TestDifferentiate(t *testing.T) {
	for _, l := range []Loss{KL, Frobenius, Beta(1.5), Beta(0), Beta(-1), Beta(3)} {
		for _, x := range []float64{0, 0.3, 2, 50} {
			if x == 0 && l <= 0 {
				continue
			}
			for _, at := range []float64{0.1, 1, 2, 40} {
				h := 1e-4 * at
				up, slopeUp, _, _ := differentiate(l, x, at+h, l.least())
				down, slopeDown, _, _ := differentiate(l, x, at-h, l.least())
				_, slope, curvature, expected := differentiate(l, x, at, l.least())
				_, up0, _, _ := differentiate(l, at, at+h, l.least())
				_, down0, _, _ := differentiate(l, at, at-h, l.least())
				scale := expected * (1 + x/at)
				closeTo(t, "slope", []float64{slope}, []float64{(up - down) / (2 * h)}, 1e-6*scale*at)
				closeTo(t, "expected", []float64{expected}, []float64{(up0 - down0) / (2 * h)}, 1e-6*scale)
				if l >= 1 && l <= 2 {
					closeTo(t, "curvature", []float64{curvature}, []float64{(slopeUp - slopeDown) / (2 * h)}, 1e-6*scale)
				}
			}
		}
	}
}

// TestScoreLosses places training columns under other divergences, and with
// missing cells, whose values do not matter.
func TestScoreLosses(t *testing.T) {
	ctx := context.Background()
	x := first(toy(6), 20)
	holes := x.Clone()
	r := random.Split(9, 9)
	for i := range holes.Data {
		if r.Float64() < 0.2 {
			holes.Data[i] = math.NaN()
		}
	}
	for _, l := range []Loss{KL, Frobenius, Beta(1.5), Beta(0.5), Beta(0), Beta(3)} {
		for _, x := range []Mat{x, holes} {
			opts := []FitOption{WithLoss(l), WithEpochs(8), WithMissingValues()}
			nmf, err := FitNMF(ctx, x, 4, opts...)
			if err != nil {
				t.Fatal(err)
			}
			qmf, err := FitQMF(ctx, x, 4, opts...)
			if err != nil {
				t.Fatal(err)
			}
			for name, m := range map[string]scorer{"NMF": nmf, "QMF": qmf} {
				loss, err := m.Loss(x)
				if err != nil {
					t.Fatal(err)
				}
				score, err := m.Score(ctx, x)
				if err != nil || !(score <= loss*(1+1e-9)) {
					t.Errorf("%s, β=%v: score %v (%v), loss %v", name, float64(l), score, err, loss)
				}
				t.Logf("%s, β=%v: loss %.5g, score %.4f of it", name, float64(l), loss, score/loss)
			}
		}
	}
	m, err := FitNMF(ctx, holes, 4, WithEpochs(5), WithMissingValues())
	if err != nil {
		t.Fatal(err)
	}
	none := NewMat(x.Rows, 3)
	for i := range none.Rows {
		none.Set(i, 1, math.NaN())
	}
	var e *DataError
	if _, err := m.Transform(ctx, none); !errors.As(err, &e) || e.Row != -1 || e.Col != 1 {
		t.Errorf("a column without a cell gives %v", err)
	}
}

// TestTransformGradient compares the gradient of QMF's problem in log v with
// central differences, and sees to it that no step raises the loss.
func TestTransformGradient(t *testing.T) {
	x := toy(4)
	m, err := FitQMF(context.Background(), x, 5, WithEpsilon(0.05), WithLevels(8), WithEpochs(20))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := newQMFBase(context.Background(), m, x)
	if err != nil {
		t.Fatal(err)
	}
	p := newQMFPlacer(b)
	p.x = make([]float64, x.Rows)
	r := random.Split(3, 3)
	for j := range 5 {
		for i := range p.x {
			p.x[i] = x.At(i, j)
		}
		z := make([]float64, 5)
		for c := range z {
			z[c] = math.Log(p.mean[c]) + normal(&r)/2
		}
		p.load(z)
		want := make([]float64, 5)
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
			want[c] = (up - p.next.loss) / (2 * h)
			z[c] = at
		}
		closeTo(t, "gradient", p.at.G, want, 1e-6*largest(want))
		last := p.at.loss
		for range 20 {
			p.minimise(context.Background(), 1)
			if p.at.loss > last {
				t.Errorf("the loss rises from %v to %v", last, p.at.loss)
			}
			last = p.at.loss
		}
	}
}

// TestTransformBits asks for the same bits from any number of workers, from one
// column at a time, and from 8 goroutines at once.
func TestTransformBits(t *testing.T) {
	ctx := context.Background()
	x := counts(40, 20)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, m := range allPlacers(t, x, 4, WithEpochs(20)) {
		runtime.GOMAXPROCS(1)
		one, err := m.Transform(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		score, err := m.Score(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GOMAXPROCS(4)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				v, err := m.Transform(ctx, x)
				if err != nil || !slices.Equal(v.Data, one.Data) {
					t.Errorf("%s: other bits with 4 workers (%v)", name, err)
				}
				if s, err := m.Score(ctx, x); err != nil || s != score {
					t.Errorf("%s: score %v (%v) with 4 workers, %v with 1", name, s, err, score)
				}
			})
		}
		wait.Wait()
		for j := range x.Cols {
			v, err := m.Transform(ctx, columnsOf(x, func(c int) bool { return c == j }))
			if err != nil || v.Rows != 4 || v.Cols != 1 {
				t.Fatal(err, v.size())
			}
			for c := range 4 {
				if v.At(c, 0) != one.At(c, j) {
					t.Errorf("%s: column %d alone has %v, among others %v", name, j, v.At(c, 0), one.At(c, j))
				}
			}
		}
	}
}

// TestTransformCorners: more components than features, one sample, zeros, dead
// components, values of every magnitude.
func TestTransformCorners(t *testing.T) {
	ctx := context.Background()
	check := func(name string, m scorer, x Mat) Mat {
		t.Helper()
		v, err := m.Transform(ctx, x)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, c := range v.Data {
			if !(c >= 0) || math.IsInf(c, 0) {
				t.Errorf("%s: coordinate %v", name, c)
			}
		}
		if s, err := m.Score(ctx, x); err != nil || !(s >= 0) || math.IsInf(s, 0) {
			t.Errorf("%s: score %v, %v", name, s, err)
		}
		return v
	}
	for _, c := range []struct {
		name string
		x    Mat
		k    int
	}{
		{"k > d", first(toy(5), 4), 9},
		{"one sample", columnsOf(toy(5), func(j int) bool { return j == 0 }), 3},
		{"one feature", first(toy(5), 1), 2},
		{"zeros", NewMat(6, 5), 2},
	} {
		for name, m := range bothModels(t, c.x, c.k, WithEpochs(5)) {
			check(name+" "+c.name, m, c.x)
			zero := check(name+" of zeros, "+c.name, m, NewMat(c.x.Rows, 2))
			if name == "NMF" && largest(zero.Data) != 0 {
				t.Errorf("%s: zeros are at %v", c.name, zero.Data)
			}
			for _, scale := range []float64{1e-150, 1e-9, 1e9, 1e50} {
				x := c.x.Clone()
				for i := range x.Data {
					x.Data[i] *= scale
				}
				check(name+" "+c.name+" times "+ftoa(scale), m, x)
			}
		}
	}
	u, v := NewMat(6, 3), NewMat(3, 5)
	for i := range u.Data {
		u.Data[i] = float64(i%3) + 0.5
	}
	for i := range u.Rows {
		u.Set(i, 1, 0)
	}
	got := check("dead component", &NMF{Factorisation{U: u, V: v, loss: KL}}, first(toy(5), 6))
	if largest(got.Row(1)) != 0 || largest(got.Row(0)) == 0 {
		t.Errorf("a component without features has coordinates %v, one with them %v", got.Row(1), got.Row(0))
	}
	check("nothing alive", &NMF{Factorisation{U: NewMat(6, 3), V: v, loss: KL}}, first(toy(5), 6))
}

// TestTransformErrors: what is wrong is typed and says where.
func TestTransformErrors(t *testing.T) {
	ctx := context.Background()
	x := counts(20, 10)
	for name, m := range bothModels(t, x, 2, WithEpochs(3)) {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 2 * maxValue} {
			y := x.Clone()
			y.Set(7, 3, bad)
			var e *DataError
			if _, err := m.Transform(ctx, y); !errors.As(err, &e) || e.Row != 7 || e.Col != 3 {
				t.Errorf("%s: %v gives %v", name, bad, err)
			}
			if s, err := m.Score(ctx, y); !errors.As(err, &e) || s != 0 {
				t.Errorf("%s: %v gives %v, %v", name, bad, s, err)
			}
		}
		for _, y := range []Mat{{}, NewMat(19, 10), NewMat(21, 3), {Rows: 20, Cols: 4, Stride: 4, Data: make([]float64, 79)}} {
			var e *ShapeError
			if _, err := m.Transform(ctx, y); !errors.As(err, &e) {
				t.Errorf("%s: %s gives %v", name, y.size(), err)
			}
		}
	}
}

// endsAfter is a context that ends at the n-th question.
type endsAfter struct {
	context.Context
	mu sync.Mutex
	n  int
}

func (c *endsAfter) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestTransformCancel(t *testing.T) {
	x := counts(30, 20)
	before := runtime.NumGoroutine()
	for name, m := range allPlacers(t, x, 3, WithEpochs(5)) {
		for _, n := range []int{0, 1, 10, 100} {
			if n > x.Cols && name == "TruncatedSVD" { // which looks once a column
				continue
			}
			v, err := m.Transform(&endsAfter{Context: context.Background(), n: n}, x)
			if !errors.Is(err, context.Canceled) || v.Data != nil {
				t.Errorf("%s, ended after %d: %s, %v", name, n, v.size(), err)
			}
			if s, err := m.Score(&endsAfter{Context: context.Background(), n: n}, x); !errors.Is(err, context.Canceled) || s != 0 {
				t.Errorf("%s, ended after %d: %v, %v", name, n, s, err)
			}
		}
	}
	for i := 0; runtime.NumGoroutine() > before && i < 1e6; i++ {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// TestTransformAllocs: a column takes no memory once its worker has it.
func TestTransformAllocs(t *testing.T) {
	x := counts(30, 20)
	ctx := context.Background()
	models := bothModels(t, x, 3, WithEpochs(5))
	b, _, err := newQMFBase(ctx, models["QMF"].(*QMF), x)
	if err != nil {
		t.Fatal(err)
	}
	column, v := make([]float64, 30), make([]float64, 3)
	for name, p := range map[string]placer{"NMF": newNMFPlacer(newNMFBase(models["NMF"].(*NMF))), "QMF": newQMFPlacer(b)} {
		j := 0
		if allocs := testing.AllocsPerRun(15, func() {
			for i := range column {
				column[i] = x.At(i, j%x.Cols)
			}
			p.place(ctx, v, column)
			j++
		}); allocs > 0 {
			t.Errorf("%s: %v allocations a column", name, allocs)
		}
	}
}

func BenchmarkTransform(b *testing.B) {
	x := first(load(b, "testdata/laml-exp.tsv.gz"), 200)
	nmf, err := FitNMF(context.Background(), x, 5)
	if err != nil {
		b.Fatal(err)
	}
	qmf, err := FitQMF(context.Background(), x, 5)
	if err != nil {
		b.Fatal(err)
	}
	for name, m := range map[string]scorer{"NMF": nmf, "QMF": qmf} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := m.Transform(context.Background(), x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*x.Cols), "us/column")
		})
	}
}
