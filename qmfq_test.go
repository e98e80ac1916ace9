package quantmf

// Tests of QMFQ: the gradient of the whole loss through the projection, and its scores of
// new samples, and places that are out of reach.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestQMFQGradient compares what an epoch hands to Adam with central differences
// of the whole loss, in F, R, F' and R', through each projection; the same with
// hidden cells.
func TestQMFQGradient(t *testing.T) {
	Slow(t)
	whole := toy(1)
	whole.Rows, whole.Cols = 7, 12
	for _, of := range []struct {
		x          Mat
		projection Projection
	}{{whole, KLUpdates(30)}, {whole, FrobeniusUpdates(30)}, {whole, TruncatedSVD()},
		{holed(whole, 0.2), KLUpdates(30)}, {holed(whole, 0.2), FrobeniusUpdates(30)}} {
		x, projection := of.x, of.projection
		c := qmfDefaults()
		c.missing = true
		c.levels, c.epsilon, c.start, c.batchRows, c.tolerance, c.learningRate, c.projection = 4, 0.05,
			StartUniform, 7, 1e-13, 1e-300, projection
		visible := Must(newCells(x, &c.settings))(t)
		p := pool.New(1, 1)
		defer p.Close()
		f := newQMFQFit(visible, 3, &c.settings,
			fit.Run{Pool: p, Seed: c.seed, Progress: fit.Silent(context.Background())})
		Must(f.Begin())(t)
		up, down, d := f.inflation, f.deflation, x.Rows
		src := random.Split(2, 2)
		for _, v := range [][]float64{up.F, up.R, down.F, down.R} {
			for i := range v {
				v[i] += Normal(&src) / 2
			}
		}
		loss := func() float64 {
			for i := range d {
				up.Warm[i].Valid, down.Warm[i].Valid = false, false
				up.FromR(i)
				down.FromR(i)
			}
			OK(t, f.project())
			sum := 0.0
			f.run(evaluateRows)
			for i := range d {
				sum += up.rowLosses[i] / float64(f.cells.InRow[i]) / up.scale
			}
			return sum
		}
		loss()
		up.at = monotone.Pace{Rate: f.learningRate, Count: 1}
		down.at = up.at
		f.run(visitRows)
		f.projector.Backward(f.wbar, down.ybar)
		f.run(deflateBack)
		for _, p := range []struct {
			name  string
			x, mu []float64
			own   bool // in units of the row's loss
		}{{"F", up.F, up.MomF.Mu, true}, {"R", up.R, up.MomR.Mu, true}, {"F'", down.F, down.MomF.Mu, false},
			{"R'", down.R, down.MomR.Mu, false}} {
			top := 0.0
			for i, v := range p.mu {
				if p.own {
					v *= up.relativeUnit(i / up.M)
				}
				top = max(top, math.Abs(v)/0.1)
			}
			for i := 0; i < len(p.x); i += 2 {
				want := Derivative(&p.x[i], 1e-5, loss)
				got := p.mu[i] / 0.1
				if p.own {
					got *= up.relativeUnit(i / up.M)
				}
				if math.Abs(got-want) > 1e-6*top {
					t.Errorf("%v: ∂%s[%d] = %v, differences say %v (largest %v)", projection, p.name, i, got,
						want, top)
				}
			}
		}
	}
}

// TestQMFQShrinkage: T is shrunk as FitQMF would shrink it, by a choice that a resumed fit and one that
// is told it share, and straighter the more it is.
func TestQMFQShrinkage(t *testing.T) {
	Slow(t)
	ctx := context.Background()
	x, k := noisyProduct()
	fit := func(o ...FitOption) *QMFQ {
		t.Helper()
		m := Fitted(t, FitQMFQ, x, k, append(o, WithEpochs(6))...)
		return m
	}
	var states [][]byte
	chosen := fit(Keep(&states))
	lambda := chosen.inflated.Shrinkage
	q := Fitted(t, FitQMF, x, k, WithEpochs(0))
	if lambda != 20 || q.Shrinkage != 100 { // the most that either may choose
		t.Errorf("shrunk by %v, FitQMF by %v", lambda, q.Shrinkage)
	}
	line := WithLine(chosen.inflated.Line)
	if !bytes.Equal(FileOf(t, fit(WithShrinkage(lambda), line)), FileOf(t, chosen)) {
		t.Error("a fit that is told shrinkage and line differs from the one that chose them")
	}
	if !bytes.Equal(FileOf(t, fit(WithResume(states[2]))), FileOf(t, chosen)) {
		t.Error("a resumed fit differs")
	}
	before := math.Inf(1)
	for _, lambda := range []float64{0, lambda} {
		m := fit(WithShrinkage(lambda))
		Equal(t, m.inflated.Shrinkage, lambda, "shrinkage")
		bend := TotalOf(m.Bend())
		t.Logf("λ %v: bend %.3f, loss %.4f", lambda, bend/float64(x.Rows), m.History[6])
		if !(bend < 0.9*before) {
			t.Errorf("λ %v: the rows bend by %v in all, less shrunk by %v", lambda, bend, before)
		}
		before = bend
	}
	for _, o := range []FitOption{WithEnds(EndsPinned), WithStart(StartUniform)} {
		m := fit(o)
		Equal(t, m.inflated.Shrinkage, 0, "%v: shrunk by", o.setting().value)
		if _, err := FitQMFQ(ctx, x, k, o, WithShrinkage(1)); OptionOf(err) != "WithShrinkage" {
			t.Errorf("%v: %v", o.setting().value, err)
		}
	}
}

// BenchmarkQMFQEpoch measures an epoch and the shares of its time: T' and its
// way back, the projection forward and back, T with its way back.
func BenchmarkQMFQEpoch(b *testing.B) {
	for _, size := range [][3]int{{160, 80, 8}, {300, 148, 10}, {600, 38, 5}, {500, 256, 10}} {
		r := random.Split(12, size[0])
		x := Drawn(size[0], size[1], func() float64 { return math.Exp(Normal(&r)) })
		for _, updates := range []int{20, 100} {
			b.Run(x.size()+"/"+KLUpdates(updates).String(), func(b *testing.B) {
				c := qmfDefaults()
				c.projection, c.batchRows, c.start = KLUpdates(updates), x.Rows, StartUniform
				visible := Must(newCells(x, &c.settings))(b)
				one := pool.New(1, 1)
				defer one.Close()
				f := newQMFQFit(visible, size[2], &c.settings,
					fit.Run{Pool: one, Seed: c.seed, Progress: fit.Silent(context.Background())})
				Must(f.Begin())(b)
				up, down := f.inflation, f.deflation
				var spent [5]time.Duration
				for epoch := 1; b.Loop(); epoch++ {
					up.at = monotone.Pace{Rate: qmfqDefaults().learningRate, Count: epoch}
					down.at = up.at
					for i, step := range []func(){
						func() { f.run(deflateRows) },
						func() {
							OK(b, f.projector.Forward(down.y,
								projection.Factors{U: f.from.u, V: f.from.v}))
							copy(f.projected.u, f.projector.Result().U)
							copy(f.projected.v, f.projector.Result().V)
						},
						func() { f.run(visitRows) },
						func() { f.projector.Backward(f.wbar, down.ybar) },
						func() { f.run(deflateBack) },
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

// TestRawPlaces: what SquashNone transports as it is must be in reach.
func TestRawPlaces(t *testing.T) {
	ctx := context.Background()
	for _, v := range []float64{1e20, 1e13, 1e-170} {
		x := near1(8, 6, 7)
		x.Set(4, 5, v)
		for j := range x.Cols {
			if v < 1 {
				x.Set(4, j, v*float64(j+1))
			}
		}
		_, err := FitQMFQ(ctx, x, 2, WithSquash(SquashNone), WithEpochs(3))
		var data *DataError
		if !errors.As(err, &data) || data.Row != 4 {
			t.Errorf("x of %v: %v", v, err)
		}
	}
	x := near1(8, 6, 7)
	x.Set(4, 5, 1e11)
	m := Fitted(t, FitQMFQ, x, 2, WithSquash(SquashNone), WithEpochs(3))
	allFinite(t, "QMFQ", m, x)
}

// TestRowsOfProjection: where most of x is 0, no row of UV rules the projection, and a unit that is no power
// of 4, in which everything is rounded anew, has the same fit.
func TestRowsOfProjection(t *testing.T) {
	Slow(t)
	src := random.Split(7, 0)
	draw := func() float64 { return -math.Log(src.Float64()) }
	x := Times(Drawn(70, 3, draw), Drawn(3, 66, draw))
	for i, uv := range x.Data {
		if x.Data[i] = 0; src.IntN(10) == 0 {
			x.Data[i] = math.Ceil(uv * math.Exp(src.Float64()))
		}
	}
	fits := [2]*QMFQ{}
	for e := range fits {
		fits[e] = Fitted(t, FitQMFQ, TimesPower(x, e), 2, WithEpochs(0))
	}
	want, got := fits[0].Reconstruct().Data, fits[1].Reconstruct().Data
	for i, v := range want {
		Near(t, got[i]/2, v, 1e-6*slices.Max(want), "cell %d in another unit", i)
	}
	uv := Times(fits[0].U, fits[0].V)
	for i := range x.Rows {
		if ofX, ofUV := TotalOf(x.Row(i)), TotalOf(uv.Row(i)); !(ofUV <= 2*ofX) {
			t.Errorf("row %d of UV has the sum %v, of x %v", i, ofUV, ofX)
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
	q, err := FitQMFQ(context.Background(), x, 2, WithProjection(TruncatedSVD()), WithStart(StartUniform),
		WithEpochs(3))
	if !DataAt(err, -1, -1) || !strings.Contains(err.Error(), "singular values 2 and 3") {
		t.Errorf("equal singular values: %v", err)
	}
	if q == nil || q.U.Rows != 5 {
		t.Error("no model so far")
	}
}

// TestSubnormalMaps: maps of rows of subnormal numbers have values and slopes everywhere. Their squash is
// steeper than numbers are large.
func TestSubnormalMaps(t *testing.T) {
	x := Lognormal(8, 6)
	for i := range x.Data {
		x.Data[i] *= 1e-311
	}
	m := Fitted(t, FitQMFQ, x, 2, WithEpochs(1), WithStart(StartUniform), WithEpsilon(1e-8))
	for i := range x.Rows {
		for _, of := range []func(int) (*Map, error){m.Inflate, m.Deflate} {
			f := Must(of(i))(t)
			for _, v := range append(x.Row(i), 0, 1e-312, 1e-310, 1e-300, 1, -1, 1e60) {
				if at, slope := f.At(v), f.Slope(v); at-at != 0 || slope-slope != 0 || slope < 0 {
					t.Errorf("row %d: at %v it is %v, of slope %v", i, v, at, slope)
				}
			}
		}
	}
}
