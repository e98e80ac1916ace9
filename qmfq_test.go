package quantmf

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/random"
)

// TestQMFQGradient compares what an epoch hands to Adam with central differences
// of the whole loss, in F, R, F' and R', through each projection; the same with
// hidden cells.
func TestQMFQGradient(t *testing.T) {
	whole := toy(1)
	whole.Rows, whole.Cols = 7, 12
	for _, of := range []struct {
		x          Mat
		projection Projection
	}{{whole, KLUpdates(100)}, {whole, FrobeniusUpdates(100)}, {whole, TruncatedSVD()}, {holed(whole, 0.2), KLUpdates(100)}, {holed(whole, 0.2), FrobeniusUpdates(100)}} {
		x, projection := of.x, of.projection
		c := qmfDefaults()
		c.missing = true
		c.levels, c.epsilon, c.start, c.batchRows, c.tolerance, c.learningRate, c.projection = 4, 0.05, StartUniform, 7, 1e-13, 1e-300, projection
		visible, err := newCells(x, &c.settings)
		if err != nil {
			t.Fatal(err)
		}
		p := pool.New(1, 1)
		defer p.Close()
		f := newQMFQFit(visible, 3, &c.settings, p, c.seed, newCourse(context.Background(), &c, visible.x.Rows))
		if _, err := f.begin(); err != nil {
			t.Fatal(err)
		}
		up, down, d := f.inflation, f.deflation, x.Rows
		src := random.Split(2, 2)
		for _, v := range [][]float64{up.f, up.r, down.f, down.r} {
			for i := range v {
				v[i] += normal(&src) / 2
			}
		}
		loss := func() float64 {
			for i := range d {
				up.warm[i].Valid, down.warm[i].Valid = false, false
				up.fromR(i)
				down.fromR(i)
			}
			if err := f.project(); err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			up.evaluateAll(f.all)
			for i := range d {
				sum += up.rowLosses[i] / float64(f.rows[i]) / up.scale
			}
			return sum
		}
		loss()
		up.at, down.at = pace{f.learningRate, 1}, pace{f.learningRate, 1}
		for piece := range up.pieces(d) {
			f.visit(0, piece)
		}
		f.projector.Backward(up.wbar, down.ybar)
		for piece := range up.pieces(d) {
			down.deflateBack(0, piece)
		}
		for _, p := range []struct {
			name  string
			x, mu []float64
			own   bool // in units of the row's loss
		}{{"F", up.f, up.momF.mu, true}, {"R", up.r, up.momR.mu, true}, {"F'", down.f, down.momF.mu, false}, {"R'", down.r, down.momR.mu, false}} {
			top := 0.0
			for i, v := range p.mu {
				if p.own {
					v *= up.part(i / up.m)
				}
				top = max(top, math.Abs(v)/0.1)
			}
			for i := range p.x {
				const h = 1e-4
				at := func(d float64) float64 {
					old := p.x[i]
					defer func() { p.x[i] = old }()
					p.x[i] += d
					return loss()
				}
				want := derivative(at, h)
				got := p.mu[i] / 0.1
				if p.own {
					got *= up.part(i / up.m)
				}
				if math.Abs(got-want) > 1e-6*top {
					t.Errorf("%v: ∂%s[%d] = %v, differences say %v (largest %v)", projection, p.name, i, got, want, top)
				}
			}
		}
	}
}

func TestQMFQWorkers(t *testing.T) {
	x := toy(3)
	x.Rows = 40
	for _, o := range [][]FitOption{{WithLevels(6)}, {WithStart(StartUniform), WithProjection(FrobeniusUpdates(7)), WithEnds(EndsPinned)}, {WithProjection(TruncatedSVD())}} {
		var want *QMFQ
		for _, workers := range []int{1, 2, 7} {
			m, err := FitQMFQ(context.Background(), x, 4, append(o, WithEpochs(3), WithWorkers(workers))...)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.History) != 4 {
				t.Errorf("history %v", m.History)
			}
			if want == nil {
				want = m
				continue
			}
			closeTo(t, "V", m.V.Data, want.V.Data, 0)
			closeTo(t, "History", m.History, want.History, 0)
			closeTo(t, "T(UV)", m.Reconstruct().Data, want.Reconstruct().Data, 0)
		}
		y, err := want.Normalize(x)
		if err != nil || notFinite(y.Data) >= 0 {
			t.Fatal(err)
		}
		f, _ := want.Deflate(3)
		if y.At(3, 5) != f.At(x.At(3, 5)) {
			t.Error("Normalize is not Deflate")
		}
	}
}

// TestQMFQScore: training columns score at their loss or below, no column above
// what its projection gives, and unseen ones near those that were fitted. What a
// column is placed at does not depend on the columns beside it.
func TestQMFQScore(t *testing.T) {
	ctx := context.Background()
	x := first(toy(1), 40)
	for _, o := range [][]FitOption{nil, {WithProjection(KLUpdates(100))}, {WithProjection(FrobeniusUpdates(100))}, {WithProjection(TruncatedSVD())}} {
		q, err := FitQMFQ(ctx, x, 8, append(o, WithLevels(8), WithEpochs(20))...)
		if err != nil {
			t.Fatal(err)
		}
		loss, _ := q.Loss(x)
		score, err := q.Score(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		most := loss * (1 + 1e-9)
		if q.projection == TruncatedSVD() {
			most = 1.01 * loss
		}
		t.Logf("%v: loss %.4f, score of the training columns %.4f", q.projection, loss, score)
		if !(score <= most) {
			t.Errorf("%v: training columns score %v, their loss is %v", q.projection, score, loss)
		}
		one := NewMat(x.Rows, 1)
		for i := range x.Rows {
			one.Set(i, 0, x.At(i, 5))
		}
		a, err := q.Transform(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := q.Transform(ctx, x)
		if q.projection == TruncatedSVD() {
			y, err := q.Normalize(x)
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, "least squares", b.Data, leastSquares(q.U, y).Data, 0)
		}
		for c := range 8 {
			if a.At(c, 0) != b.At(c, 5) {
				t.Errorf("component %d: %v alone, %v among others", c, a.At(c, 0), b.At(c, 5))
			}
		}
	}
}

// TestQMFQScoreData holds Score to 1.01 of Loss on data that were not made for the
// model, and columns that a fit did not see to their loss after projection alone.
func TestQMFQScoreData(t *testing.T) {
	if testing.Short() {
		t.Skip("several fits")
	}
	ctx := context.Background()
	for _, c := range []struct {
		path    string
		rows, k int
		most    float64 // of the unseen columns' score over the loss of the others
	}{{"testdata/laml-exp.tsv.gz", 40, 8, 2}, {"../shared/data/toy/toy-std2.tsv.gz", 80, 8, 5}, {"../shared/data/pbmc3k-small/counts.tsv.gz", 30, 5, 2}} {
		x := first(load(t, c.path), c.rows)
		seen := columnsOf(x, func(j int) bool { return j%4 != 3 })
		unseen := columnsOf(x, func(j int) bool { return j%4 == 3 })
		for _, p := range []Projection{KLUpdates(20), KLUpdates(100), FrobeniusUpdates(100), TruncatedSVD()} {
			q, err := FitQMFQ(ctx, seen, c.k, WithProjection(p), WithEpochs(10))
			if err != nil {
				t.Fatal(err)
			}
			loss, err := q.Loss(seen)
			if err != nil {
				t.Fatal(err)
			}
			score, err := q.Score(ctx, seen)
			if err != nil || !(score <= 1.01*loss) {
				t.Errorf("%s, %v: score %v (%v), loss %v", c.path, p, score, err, loss)
			}
			other, err := q.Score(ctx, unseen)
			if err != nil {
				t.Fatal(err)
			}
			projected := q.projectedScore(t, unseen)
			t.Logf("%s, %v: loss %.4g; score of its columns %.4g, of unseen ones %.4g, projected alone %.4g", c.path, p, loss, score, other, projected)
			if !(other <= projected*(1+1e-12)) || !(other <= c.most*loss) {
				t.Errorf("%s, %v: unseen columns score %v, projected alone %v; loss %v", c.path, p, other, projected, loss)
			}
		}
	}
}

// projectedScore is the mean divergence of x from T(U V'), V' the projection of
// T'(x) on U by itself.
func (q *QMFQ) projectedScore(t *testing.T, x Mat) float64 {
	y, err := q.Normalize(x)
	if err != nil {
		t.Fatal(err)
	}
	v := leastSquares(q.U, y)
	if q.projection != TruncatedSVD() {
		loss := KL
		if q.projection.kind == projection.Frobenius {
			loss = Frobenius
		}
		if v, err = (&NMF{Factorisation{U: q.U, V: q.V, loss: loss}}).Transform(context.Background(), y); err != nil {
			t.Fatal(err)
		}
	}
	fit := NewMat(x.Rows, x.Cols)
	for i := range fit.Rows {
		product(fit.Row(i), q.U.Row(i), v)
		for j, w := range fit.Row(i) {
			fit.Set(i, j, q.inflate[i].At(w))
		}
	}
	score, err := q.bounds().meanLoss(x, fit)
	if err != nil {
		t.Fatal(err)
	}
	return score
}

// leastSquares returns v of least |y - Uv|² for U of orthogonal columns: a
// component without weight has none.
func leastSquares(u, y Mat) Mat {
	v := NewMat(u.Cols, y.Cols)
	for c := range u.Cols {
		norm := 0.0
		to := v.Row(c)
		for i := range u.Rows {
			w := u.At(i, c)
			norm += float64(w * w)
			for j, x := range y.Row(i) {
				to[j] += float64(w * x)
			}
		}
		for j := range to {
			if norm > 0 {
				to[j] /= norm
			}
		}
	}
	return v
}

// TestQMFQMissing: what a hidden cell holds is not asked for, and it is filled
// better than by the mean of its row.
func TestQMFQMissing(t *testing.T) {
	ctx := context.Background()
	x := first(toy(5), 50)
	y := holed(x, 0.1)
	if _, err := FitQMFQ(ctx, y, 5); err == nil {
		t.Error("NaN was taken without being told so")
	}
	for _, o := range [][]FitOption{nil, {WithProjection(FrobeniusUpdates(30))}, {WithStart(StartUniform)}} {
		q, err := FitQMFQ(ctx, y, 5, append(o, WithMissingValues(), WithEpochs(30), WithLevels(8))...)
		if err != nil {
			t.Fatal(err)
		}
		fit := q.Reconstruct()
		for _, v := range [][]float64{fit.Data, q.U.Data, q.V.Data, q.History} {
			if i := notFinite(v); i >= 0 {
				t.Fatalf("%v in the model", v[i])
			}
		}
		ours, means := 0.0, 0.0
		for i := range y.Rows {
			mean, k := 0.0, 0.0
			for _, v := range y.Row(i) {
				if v == v {
					mean += v
					k++
				}
			}
			for j, v := range y.Row(i) {
				if v != v {
					ours += KL.value(x.At(i, j), fit.At(i, j), 1e-9)
					means += KL.value(x.At(i, j), mean/k, 1e-9)
				}
			}
		}
		t.Logf("%v: loss %.3g, hidden cells %.3g of the divergence from row means", q.projection, q.History[q.Best], ours/means)
		if len(o) == 0 && ours > 0.6*means {
			t.Errorf("hidden cells at %v of the row means", ours/means)
		}
		if l, err := q.Loss(y); err != nil || math.Abs(l-q.History[q.Best]) > 1e-9*l {
			t.Errorf("Loss %v, %v; History %v", l, err, q.History[q.Best])
		}
		n, err := q.Normalize(y)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range y.Data {
			if (v != v) != (n.Data[i] != n.Data[i]) {
				t.Fatalf("cell %d, %v, is normalised to %v", i, v, n.Data[i])
			}
		}
		if v, err := q.Transform(ctx, y); err != nil || notFinite(v.Data) >= 0 {
			t.Errorf("new samples with missing cells: %v", err)
		}
	}
	// A full matrix gives the same model with and without the option, to rounding.
	a, err := FitQMFQ(ctx, x, 5, WithEpochs(3))
	if err != nil {
		t.Fatal(err)
	}
	b, err := FitQMFQ(ctx, x, 5, WithEpochs(3), WithMissingValues())
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "V", a.V.Data, b.V.Data, 0)
	var data *DataError
	var option *OptionError
	row, col := x.Clone(), x.Clone()
	for j := range x.Cols {
		row.Set(7, j, math.NaN())
	}
	for i := range x.Rows {
		col.Set(i, 9, math.NaN())
	}
	if _, err := FitQMFQ(ctx, row, 2, WithMissingValues()); !errors.As(err, &data) || data.Row != 7 {
		t.Errorf("an empty row: %v", err)
	}
	if _, err := FitQMFQ(ctx, col, 2, WithMissingValues()); !errors.As(err, &data) || data.Col != 9 {
		t.Errorf("an empty column: %v", err)
	}
	for _, o := range []FitOption{WithMissingValues(), WithValidation(0.1)} {
		if _, err := FitQMFQ(ctx, x, 2, WithProjection(TruncatedSVD()), o); !errors.As(err, &option) || option.Option != "WithProjection" {
			t.Errorf("a truncated SVD with hidden cells: %v", err)
		}
	}
}

// TestQMFQValidation: the epoch returned is the best on cells that the fit never
// saw; what they hold makes no difference to it. From a start that is not chosen
// by them it is the fit of the matrix that lacks them.
func TestQMFQValidation(t *testing.T) {
	ctx := context.Background()
	x := first(load(t, "testdata/laml-exp.tsv.gz"), 24)
	c := qmfDefaults()
	c.validation, c.seed = 0.1, 3
	hidden, err := newCells(x, &c.settings)
	if err != nil {
		t.Fatal(err)
	}
	interior := 0
	for _, o := range [][]FitOption{nil, {WithLoss(Frobenius), WithProjection(FrobeniusUpdates(10))}, {WithStart(StartUniform)}, {WithPatience(3)}} {
		o = append(o, WithEpochs(15), WithSeed(3), WithLevels(8), WithLearningRate(0.2), WithSchedule(ScheduleConstant))
		q, err := FitQMFQ(ctx, x, 6, append(o, WithValidation(0.1))...)
		if err != nil {
			t.Fatal(err)
		}
		if len(q.Validation) != len(q.History) || len(q.History) != 16 && len(o) != 6 {
			t.Fatalf("%d, %d entries", len(q.History), len(q.Validation))
		}
		if q.Validation[q.Best] != slices.Min(q.Validation) {
			t.Errorf("best %d of %v", q.Best, q.Validation)
		}
		if q.Best > 0 && q.Best < len(q.History)-1 {
			interior++
		}
		fit, l := q.Reconstruct(), q.inflated.loss
		seen, held := 0.0, 0.0
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				if d := l.value(v, fit.At(i, j), leastT); hidden.held[i*x.Cols+j] {
					held += d / float64(hidden.heldOut)
				} else {
					seen += d / float64(hidden.visible)
				}
			}
		}
		t.Logf("best epoch %d of %d: %.4g of the held-out cells, %.4g of the others; at the end %.4g, %.4g", q.Best, len(q.History)-1, held, seen, q.Validation[len(q.Validation)-1], q.History[len(q.History)-1])
		if math.Abs(held-q.Validation[q.Best]) > 1e-6*held || math.Abs(seen-q.History[q.Best]) > 1e-6*seen {
			t.Errorf("the model returned has %v, %v; History %v, Validation %v", seen, held, q.History[q.Best], q.Validation[q.Best])
		}
		y := x.Clone()
		for i, h := range hidden.held {
			if h {
				y.Data[i] *= 1 + 1e-9 // so little that the best epoch stays
			}
		}
		again, err := FitQMFQ(ctx, y, 6, append(o, WithValidation(0.1))...)
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "V", again.V.Data, q.V.Data, 0)
		if o[0].setting().kind != kStart {
			continue
		}
		m, err := FitQMFQ(ctx, hidden.x, 6, append(o, WithMissingValues())...)
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "History", q.History[:15], m.History[:15], 1e-9*m.History[0])
	}
	if interior == 0 {
		t.Error("the best epoch was never but the first or last: nothing is tested")
	}
}

// TestQMFQRestarts: the seed returned is the one whose model predicts the
// held-out cells best.
func TestQMFQRestarts(t *testing.T) {
	x := toy(5)
	x.Rows = 40
	c := qmfDefaults()
	c.validation, c.seed = 0.15, 3
	hidden, err := newCells(x, &c.settings)
	if err != nil {
		t.Fatal(err)
	}
	m, err := FitQMFQ(context.Background(), x, 3, WithEpochs(4), WithLevels(5), WithSeed(3), WithValidation(0.15), WithRestarts(3))
	if err != nil {
		t.Fatal(err)
	}
	best := math.Inf(1)
	for seed := range 3 {
		one, err := FitQMFQ(context.Background(), hidden.x, 3, WithEpochs(4), WithLevels(5), WithSeed(uint64(3+seed)), WithMissingValues())
		if err != nil {
			t.Fatal(err)
		}
		fit, held := one.Reconstruct(), 0.0
		for i := range x.Rows {
			held += hidden.heldLoss(KL, fit.Row(i), i, leastT) / float64(hidden.heldOut)
		}
		t.Logf("seed %d: %v held out", 3+seed, held)
		best = min(best, held)
	}
	if got := m.Validation[m.Best]; got > best*(1+1e-6) {
		t.Errorf("the best of three seeds has %v, one of them %v", got, best)
	}
}

// TestQMFQAwkward: constant and zero rows, ties, few samples, missing cells, more
// components than rows or columns, values of every magnitude; and new samples of
// such models.
func TestQMFQAwkward(t *testing.T) {
	ctx := context.Background()
	nan := math.NaN()
	for _, rows := range [][][]float64{
		{{0, 0, 0}, {1, 1, 1}, {1, 2, 3}},
		{{0, 0, 0}},
		{{5}},
		{{1}, {2}},
		{{0, 0, 0, 0, 1e60}, {1e-300, 0, 1e-300, 0, 0}},
		{{1, 1, 2, 2, 1, 1}, {0, 1, 0, 1, 0, 1}, {3, 1, 4, 1, 5, 9}},
		{{nan, 1, 1}, {2, nan, 3}, {3, 1, nan}},
		{{nan, 7, 0, 2}, {4, nan, nan, nan}, {4, 0, 0, nan}},
	} {
		x, err := MatOf(rows...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range [][]FitOption{nil, {WithEnds(EndsPinned), WithProjection(FrobeniusUpdates(5))}, {WithStart(StartUniform)}, {WithEpochs(0)}, {WithProjection(TruncatedSVD())}} {
			o = append([]FitOption{WithEpochs(4), WithLevels(4), WithMissingValues()}, o...)
			if len(o) == 4 && o[3].setting().kind == kProjection {
				if notFinite(x.Data) >= 0 {
					continue
				}
				o = append(o[:2], o[3])
			}
			q, err := FitQMFQ(ctx, x, 4, o...)
			var data *DataError
			if err != nil && !errors.As(err, &data) {
				t.Fatal(err)
			}
			fit := q.Reconstruct()
			v, err := q.Transform(ctx, x)
			if err != nil {
				t.Fatal(rows, err)
			}
			score, err := q.Score(ctx, x)
			if err != nil {
				t.Fatal(rows, err)
			}
			for _, v := range [][]float64{fit.Data, q.U.Data, q.V.Data, q.History, v.Data, {score}} {
				if i := notFinite(v); i >= 0 {
					t.Fatalf("%v, %d options: %v", rows, len(o), v)
				}
			}
			if loss, _ := q.Loss(x); q.projection != TruncatedSVD() && score > loss*(1+1e-9)+1e-12*largest(fit.Data)+leastT {
				t.Errorf("%v, %d options: score %v, loss %v", rows, len(o), score, loss)
			}
		}
	}
	x := first(toy(3), 15)
	q, err := FitQMFQ(ctx, x, 3, WithEpochs(0), WithValidation(0.1))
	if err != nil || len(q.History) != 1 || len(q.Validation) != 1 || q.Best != 0 {
		t.Errorf("no epochs: %v, %v, %v", err, q.History, q.Validation)
	}
	for _, bad := range []float64{nan, math.Inf(1), -1, 2 * maxValue} {
		y := x.Clone()
		y.Set(7, 3, bad)
		var e *DataError
		if _, err := q.Transform(ctx, y); !errors.As(err, &e) || e.Row != 7 || e.Col != 3 {
			t.Errorf("%v gives %v", bad, err)
		}
	}
	var shape *ShapeError
	if _, err := q.Score(ctx, first(x, 9)); !errors.As(err, &shape) {
		t.Errorf("too few rows: %v", err)
	}
	for _, n := range []int{0, 1, 10, 40} {
		if v, err := q.Transform(&endsAfter{Context: ctx, n: n}, x); !errors.Is(err, context.Canceled) || v.Data != nil {
			t.Errorf("ended after %d: %s, %v", n, v.size(), err)
		}
	}
}

// BenchmarkQMFQEpoch measures an epoch and the shares of its time: T' and its
// way back, the projection forward and back, T with its way back.
func BenchmarkQMFQEpoch(b *testing.B) {
	for _, size := range [][3]int{{160, 80, 8}, {300, 148, 10}, {600, 38, 5}, {500, 256, 10}} {
		x := NewMat(size[0], size[1])
		r := random.Split(12, size[0])
		for i := range x.Data {
			x.Data[i] = math.Exp(normal(&r))
		}
		for _, updates := range []int{20, 100} {
			b.Run(x.size()+"/"+KLUpdates(updates).String(), func(b *testing.B) {
				c := qmfDefaults()
				c.projection, c.batchRows, c.start = KLUpdates(updates), x.Rows, StartUniform
				visible, err := newCells(x, &c.settings)
				if err != nil {
					b.Fatal(err)
				}
				one := pool.New(1, 1)
				defer one.Close()
				f := newQMFQFit(visible, size[2], &c.settings, one, c.seed, newCourse(context.Background(), &c, visible.x.Rows))
				if _, err := f.begin(); err != nil {
					b.Fatal(err)
				}
				up, down := f.inflation, f.deflation
				var spent [5]time.Duration
				for epoch := 1; b.Loop(); epoch++ {
					up.at, down.at = pace{qmfqRate, epoch}, pace{qmfqRate, epoch}
					for i, step := range []func(){
						func() { down.run(down.forth) },
						func() {
							if err := f.projector.Forward(down.y, projection.Factors{U: f.from.u, V: f.from.v}); err != nil {
								b.Fatal(err)
							}
							copy(f.whole.u, f.projector.Result().U)
							copy(f.whole.v, f.projector.Result().V)
						},
						func() { f.pool.Do(up.pieces(len(f.all)), f.visits) },
						func() { f.projector.Backward(up.wbar, down.ybar) },
						func() { down.run(down.backward) },
					} {
						began := time.Now()
						step()
						spent[i] += time.Since(began)
					}
				}
				for i, name := range []string{"T'", "forward", "T", "back", "T'back"} {
					b.ReportMetric(100*spent[i].Seconds()/b.Elapsed().Seconds(), "%"+name)
				}
			})
		}
	}
}

// TestEqualSingularValues: a row of ones is deflated to a constant, so that two such rows
// have one singular value above 0, and the truncation to two of three has no derivative.
func TestEqualSingularValues(t *testing.T) {
	x := NewMat(5, 6)
	for i := range x.Data {
		x.Data[i] = 1
	}
	q, err := FitQMFQ(context.Background(), x, 2, WithProjection(TruncatedSVD()), WithStart(StartUniform), WithEpochs(3))
	var data *DataError
	if !errors.As(err, &data) || data.Row != -1 || data.Col != -1 || !strings.Contains(err.Error(), "singular values 2 and 3") {
		t.Errorf("equal singular values: %v", err)
	}
	if q == nil || q.U.Rows != 5 {
		t.Error("no model so far")
	}
}
