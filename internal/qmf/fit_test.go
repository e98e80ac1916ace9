package qmf

// Tests of the gradients of an epoch, against differences of the whole loss.

import (
	"math"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestQMFGradient compares what the visits of an epoch hand to Adam with central
// differences of the whole loss, in Ũ, Ṽ, F and R,
//
//	L = 1/d Σ_i 1/n_i Σ_j Δ(x_ij, T_i((UV)_ij)) + λ/2 (mean Ũ² + mean Ṽ²),
//
// n_i the visible cells of row i, with a penalty and without, with hidden cells and
// without, in one batch and in several.
func TestQMFGradient(t *testing.T) {
	for _, c := range []struct {
		name    string
		hidden  float64
		loss    divergence.Loss
		penalty float64
		ends    Ends
		batch   int
	}{
		{"plain", 0, divergence.KL, 0, EndsFree, 6},
		{"pinned", 0, divergence.KL, 0, EndsPinned, 6},
		{"penalty", 0, divergence.KL, 3, EndsFree, 6},
		{"penalty, batches", 0, divergence.KL, 3, EndsFree, 2},
		{"hidden", 0.2, divergence.KL, 0, EndsFree, 6},
		{"hidden, pinned, batches", 0.2, divergence.KL, 0, EndsPinned, 4},
		{"hidden, penalty, batches, squares", 0.2, divergence.Frobenius, 3, EndsFree, 4},
		{"hidden, penalty, β = 0.5", 0.2, 0.5, 3, EndsFree, 6},
		{"β nearly 1", 0, 1 - 0x1p-50, 0, EndsFree, 6},
		{"signed", 0, divergence.Frobenius, 0, EndsFree, 6},
		{"signed, hidden, penalty, batches", 0.2, divergence.Frobenius, 3, EndsFree, 4},
		{"signed, pinned", 0, divergence.Frobenius, 0, EndsPinned, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkQMFGradient(t, c.hidden, c.loss, c.penalty, c.ends, c.batch,
				strings.HasPrefix(c.name, "signed"))
		})
	}
}

func checkQMFGradient(t *testing.T, hidden float64, l divergence.Loss, penalty float64, ends Ends, batch int,
	signed bool) {
	x := toy(1, 6)
	x.Cols = 45
	x = x.clone()
	if signed {
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				x.set(i, j, v-7*float64(i%3))
			}
		}
	}
	if hidden > 0 {
		x = holed(x, hidden)
	}
	f := gaussFitOf(t, x, 3, func(c *Settings) {
		c.Levels, c.Epsilon, c.Start, c.Ends, c.BatchRows, c.Tolerance, c.LearningRate = 5, 0.05,
			StartUniform,
			ends, batch, 1e-13, 1e-300
		c.Loss, c.Penalty = l, penalty
		c.Missing, c.Shrinkage = hidden > 0, Defaults().Shrinkage
	})
	if f.cells.Units.Signed != signed {
		t.Fatalf("signed: %v", f.cells.Units.Signed)
	}
	src := random.Split(2, 2)
	for i := range f.F {
		f.F[i] = Normal(&src) / 2
	}
	for i := range f.R {
		f.R[i] += Normal(&src) / 2
	}
	steps := f.steps.(*adamSteps)
	loss := func() float64 {
		total, squaresU, squaresV := 0.0, 0.0, 0.0
		for i, l := range steps.logU {
			f.u[i] = math.Exp(l)
			squaresU += l * l
		}
		for c := range f.k {
			for j := range f.n {
				l := steps.logV[c*f.np+j]
				f.v[c*f.np+j] = math.Exp(l)
				squaresV += l * l
			}
		}
		for i := range f.d {
			v := &f.spaces[0]
			f.FromR(i)
			f.Warm[i].Valid = false
			f.solveRow(v, i)
			f.fitted(v, i)
			total += f.rowLoss(v, i) / float64(f.cells.InRow[i])
		}
		return total/float64(f.d) + penalty/2*(squaresU/float64(f.d*f.k)+squaresV/float64(f.k*f.n))
	}
	loss()
	// With Adam's first moment at zero before, the gradient is μ/(1-β1) after. Of Ṽ
	// the batches are to add up to it.
	f.at, f.stepsV = pace{Rate: f.LearningRate, Count: 1}, 1
	gradV := make([]float64, len(steps.gradV))
	for from := 0; from < f.d; from += batch {
		f.batch = f.order[from:min(from+batch, f.d)]
		for slot := range f.batch {
			f.visit(0, slot)
		}
		for t := range f.k {
			if f.inflation.whole {
				steps.accumulate(0, t)
			}
			steps.stepColumns(0, t)
		}
		for i, g := range steps.gradV {
			gradV[i] += g
		}
	}
	byMoment := func(mu []float64) []float64 {
		g := make([]float64, len(mu))
		for i, v := range mu {
			g[i] = v / 0.1 * f.unit(i/(len(mu)/f.d)) / float64(f.d)
		}
		return g
	}
	for i := range gradV {
		gradV[i] *= f.scale / float64(f.d)
	}
	for _, p := range []struct {
		name string
		x, g []float64
	}{{"U", steps.logU, byMoment(steps.momU.Mu)}, {"V", steps.logV, gradV}, {"F", f.F, byMoment(f.MomF.Mu)},
		{"R", f.R, byMoment(f.MomR.Mu)}} {
		scale := LargestOf(p.g)
		if !(scale > 0) {
			t.Fatalf("no gradient in %s", p.name)
		}
		step := 3
		if p.name == "V" {
			step = 11
		}
		for i := 0; i < len(p.x); i += step {
			if p.name == "V" && i%f.np >= f.n || p.name == "R" && ends == EndsPinned && i%f.M == 0 {
				continue
			}
			want := Derivative(&p.x[i], 1e-5, loss)
			if got := p.g[i]; math.Abs(got-want) > 1e-6*scale {
				t.Errorf("∂%s[%d] = %v, differences say %v (scale %v)", p.name, i, got, want, scale)
			}
		}
	}
}
