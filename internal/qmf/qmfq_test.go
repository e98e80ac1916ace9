package qmf

// Tests of the gradient of a QMFQ through its projection.

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// by is a projection by so many updates.
func by(kind projection.Kind, updates int) projection.Choice {
	return projection.Choice{Kind: kind, Updates: updates}
}

// TestQMFQGradient compares what an epoch hands to Adam with central differences
// of the whole loss, in F, R, F' and R', through each projection; the same with
// hidden cells.
func TestQMFQGradient(t *testing.T) {
	Slow(t)
	whole := toy(1, 7)
	whole.Cols = 12
	for _, of := range []struct {
		x  matrix
		by projection.Choice
	}{{whole, by(projection.KL, 30)}, {whole, by(projection.Frobenius, 30)}, {whole, by(projection.SVD, 0)},
		{holed(whole, 0.2), by(projection.KL, 30)}, {holed(whole, 0.2), by(projection.Frobenius, 30)}} {
		x := of.x
		c := Defaults()
		c.Missing = true
		c.Levels, c.Epsilon, c.Start, c.BatchRows, c.Tolerance, c.LearningRate, c.Projection = 4, 0.05,
			StartUniform, 7, 1e-13, 1e-300, of.by
		visible := Must(cellsOf(x, &c))(t)
		f := newQMFQFit(visible, 3, &c, silent(t, 1, c.Seed))
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
		up.at = pace{Rate: f.LearningRate, Count: 1}
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
					t.Errorf("%v: ∂%s[%d] = %v, differences say %v (largest %v)", of.by, p.name, i, got,
						want, top)
				}
			}
		}
	}
}

// BenchmarkQMFQEpoch measures an epoch and the shares of its time: T' and its
// way back, the projection forward and back, T with its way back.
func BenchmarkQMFQEpoch(b *testing.B) {
	for _, size := range [][3]int{{160, 80, 8}, {300, 148, 10}, {600, 38, 5}, {500, 256, 10}} {
		r := random.Split(12, size[0])
		x := drawn(size[0], size[1], func() float64 { return math.Exp(Normal(&r)) })
		for _, updates := range []int{20, 100} {
			b.Run(fmt.Sprintf("%v/%d", size, updates), func(b *testing.B) {
				c := Defaults()
				c.Projection, c.BatchRows, c.Start = by(projection.KL, updates), x.Rows, StartUniform
				visible := Must(cellsOf(x, &c))(b)
				f := newQMFQFit(visible, size[2], &c, silent(b, 1, c.Seed))
				Must(f.Begin())(b)
				up, down := f.inflation, f.deflation
				var spent [5]time.Duration
				for epoch := 1; b.Loop(); epoch++ {
					up.at = pace{Rate: 0.1, Count: epoch}
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
