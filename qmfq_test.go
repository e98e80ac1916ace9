package quantmf

import (
	"context"
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// TestQMFQToy holds the fit to what the authors' code reaches on the toy problem:
// 1.15, 0.69, 0.30 and 0.136 after 10, 30, 100 and 300 epochs, 0.092 after 1000.
func TestQMFQToy(t *testing.T) {
	x := load(t, "../shared/data/toy/toy-std1.tsv.gz")
	for _, c := range []struct {
		epochs int
		most   float64
	}{{10, 1}, {30, 0.4}, {100, 0.12}, {300, 0.1}} {
		m, err := FitQMFQ(context.Background(), x, 8, WithEpsilon(0.01), WithLevels(8), WithEpochs(c.epochs))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d epochs: %.4f at the start, %.4f at the end", c.epochs, m.History[0], m.History[c.epochs])
		if got := m.History[c.epochs]; got > c.most {
			t.Errorf("%v after %d epochs, want at most %v", got, c.epochs, c.most)
		}
		if l, err := m.Loss(x); err != nil || l != m.History[c.epochs] {
			t.Errorf("Loss %v, %v; History ends at %v", l, err, m.History[c.epochs])
		}
	}
}

// TestQMFQGradient compares what an epoch hands to Adam with central differences
// of the whole loss, in F, R, F' and R', through each projection.
func TestQMFQGradient(t *testing.T) {
	x := toy(1)
	x.Rows, x.Cols = 7, 12
	for _, projection := range []Projection{KLUpdates(100), FrobeniusUpdates(100), TruncatedSVD()} {
		c := qmfDefaults()
		c.levels, c.epsilon, c.start, c.batchRows, c.tolerance, c.learningRate, c.projection = 4, 0.05, StartUniform, 7, 1e-13, 1e-300, projection
		visible, err := newCells(x, &c)
		if err != nil {
			t.Fatal(err)
		}
		p := pool.New(1, 1)
		defer p.Close()
		f := newQMFQFit(visible, 3, &c, p, 0)
		if err := f.start(context.Background()); err != nil {
			t.Fatal(err)
		}
		src := random.Split(2, 2)
		for _, v := range [][]float64{f.f, f.r, f.f1, f.r1} {
			for i := range v {
				v[i] += normal(&src) / 2
			}
		}
		loss := func() float64 {
			for i := range f.d {
				f.state[i].valid, f.state1[i].valid = false, false
				f.incrementsFromR(i)
			}
			if err := f.project(); err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for i := range f.d {
				f.evaluate(0, i)
				sum += f.rowLosses[i] / float64(f.n) / f.scale
			}
			return sum
		}
		loss()
		f.batch.rate, f.batch.epoch = f.learningRate, 1
		for i := range f.d {
			f.visitRow(0, i)
		}
		f.projector.backward(f.wbar, f.ybar)
		for i := range f.d {
			f.backRow(0, i)
		}
		for _, p := range []struct {
			name  string
			x, mu []float64
			own   bool // in units of the row's loss
		}{{"F", f.f, f.momF.mu, true}, {"R", f.r, f.momR.mu, true}, {"F'", f.f1, f.momF1.mu, false}, {"R'", f.r1, f.momR1.mu, false}} {
			top := 0.0
			for i, v := range p.mu {
				if p.own {
					v *= f.part(i / f.m)
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
					got *= f.part(i / f.m)
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

// TestQMFQScore: training columns score near their loss (at it where the
// projection has an end), and what a column is placed at does not depend on the
// columns beside it.
func TestQMFQScore(t *testing.T) {
	ctx := context.Background()
	x := toy(1)
	for _, o := range [][]FitOption{nil, {WithProjection(KLUpdates(100))}, {WithProjection(FrobeniusUpdates(100))}, {WithProjection(TruncatedSVD())}} {
		q, err := FitQMFQ(ctx, x, 8, append(o, WithLevels(8), WithEpochs(40))...)
		if err != nil {
			t.Fatal(err)
		}
		loss, _ := q.Loss(x)
		score, err := q.Score(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: loss %.4f, score of the training columns %.4f", q.projection, loss, score)
		if most := map[projectionKind]float64{projectionKL: 1.3, projectionFrobenius: 1.2, projectionSVD: 1.001}[q.projection.kind]; score > most*loss {
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
		for c := range 8 {
			if a.At(c, 0) != b.At(c, 5) {
				t.Errorf("component %d: %v alone, %v among others", c, a.At(c, 0), b.At(c, 5))
			}
		}
	}
}
