package qmf

// Tests of the steps on q, by EM under shrinkage and of values of either sign, against formulas written down
// here once more.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestStepOnQ holds the EM step on q, its shrinkage and the first weights of levels
// to their formulas, on a row with hidden cells whose x falls where w rises and on one
// where it does not. The plan is that of Solve of the visible cells by themselves.
func TestStepOnQ(t *testing.T) {
	const d, n, k, m, lambda = 4, 31, 2, 5, 7.0
	r := random.Split(8, 1)
	draw := func() float64 { return 0.2 + r.Float64() }
	x, u, v := newMatrix(d, n), drawn(d, k, draw), drawn(k, n, draw)
	w := times(u, v)
	for i := range d {
		for j := range n {
			up := w.at(i, j)
			if i%2 == 1 {
				up = 4 - up
			}
			x.set(i, j, up+0.3*r.Float64())
			if i > 1 && r.Float64() < 0.3 {
				x.set(i, j, math.NaN())
			}
		}
	}
	for _, l := range []divergence.Loss{divergence.KL, 1.5} {
		c := Defaults()
		c.Levels, c.Epsilon, c.Start, c.Loss, c.Missing, c.Shrinkage, c.Tolerance = m, 0.05, StartNMF,
			l, true, lambda, 1e-12
		visible := Must(cellsOf(x, &c))(t)
		f := newQMFFit(visible, k, &c, silent(t, 1, c.Seed))
		f.factors.copyFrom(u.Dense, v.Dense)
		for i := range d {
			vis := &f.spaces[0]
			var seenX, seenW []float64
			for j, xj := range x.Row(i) {
				if xj == xj {
					seenX, seenW = append(seenX, xj), append(seenW, w.at(i, j))
				}
			}
			count := float64(len(seenX))
			f.solveRow(vis, i)
			// Weights of levels: half even, half by where the squashed samples lie.
			mean, variance := 0.0, 0.0
			for _, v := range seenW {
				mean += v / count
			}
			for _, v := range seenW {
				variance += (v - mean) * (v - mean) / count
			}
			want := make([]float64, m)
			for l := range want {
				want[l] = 0.5 / m
			}
			for _, v := range seenW {
				at := (m - 1) / (1 + math.Exp(-(v-mean)/math.Sqrt(variance)))
				for l := range want { // a hat over each target
					want[l] += 0.5 / count * max(0, 1-math.Abs(at-float64(l)))
				}
			}
			f.shareLevels(vis, i)
			got := make([]float64, m)
			for l, v := range f.Logits(i) {
				got[l] = math.Exp(v)
			}
			NearAll(t, got, want, 1e-12, "weights of levels")

			f.solveRow(vis, i)
			inc := f.Increments(i)
			for l := range inc {
				inc[l] = 0.2 + r.Float64()
			}
			before := slices.Clone(inc)
			share := sinkhorn(seenW, got, mean, math.Sqrt(variance), c.Epsilon)
			// M, T and the least squares of x on w, β >= 0.
			meanX, cov := 0.0, 0.0
			for _, v := range seenX {
				meanX += v / count
			}
			for j := range seenX {
				cov += (seenW[j] - mean) * (seenX[j] - meanX) / count
			}
			beta := max(cov/variance, 0)
			if falls := i%2 == 1; falls != (cov < 0) {
				t.Fatalf("row %d: covariance %v: nothing is tested", i, cov)
			}
			num, den, wbar, mass := make([]float64, m), make([]float64, m), make([]float64, m),
				make([]float64, m)
			for j := range seenX {
				fit, tail := 0.0, make([]float64, m+1)
				for l := m - 1; l >= 0; l-- {
					tail[l] = tail[l+1] + share[j][l]*count
					fit += tail[l] * before[l]
				}
				for l := range m {
					num[l] += tail[l] * seenX[j] * math.Pow(fit, float64(c.Loss)-2)
					den[l] += tail[l] * math.Pow(fit, float64(c.Loss)-1)
					wbar[l] += share[j][l] * count * seenW[j]
					mass[l] += share[j][l] * count
				}
			}
			last := 0.0
			want = make([]float64, m)
			for l := range want {
				q := max(meanX+beta*(wbar[l]/mass[l]-mean), 0)
				prior := q - last
				last = q
				weight := lambda * den[l] / count
				want[l] = (before[l]*num[l] + weight*prior) / (den[l] + weight)
			}
			f.stepQ(vis, i, 1)
			NearAll(t, inc, want, 1e-8, "increments")
		}
	}
}

// sinkhorn is the plan of samples w, of even weights, squashed by their moments, onto levels of weights b.
func sinkhorn(w, b []float64, mean, deviation, epsilon float64) [][]float64 {
	p := make([][]float64, len(w))
	for j, x := range w {
		for l := range b {
			off := 1/(1+math.Exp(-(x-mean)/deviation)) - float64(l)/float64(len(b)-1)
			p[j] = append(p[j], math.Exp(-off*off/epsilon))
		}
	}
	for range 3000 {
		for l, want := range b {
			sum := 0.0
			for j := range p {
				sum += p[j][l]
			}
			for j := range p {
				p[j][l] *= want / sum
			}
		}
		for _, row := range p {
			for sum, l := TotalOf(row), 0; l < len(row); l++ {
				row[l] /= sum * float64(len(w))
			}
		}
	}
	return p
}

// TestSignedStep: with the plan fixed no step on q raises the squares, they end at the
// least that increments D >= 0 can reach, and q_1 is free in sign. The least is found
// apart, by coordinates in turn.
func TestSignedStep(t *testing.T) {
	Slow(t)
	x := scores(3, 4, 25)
	for _, hidden := range []float64{0, 0.2} {
		y := x
		if hidden > 0 {
			y = holed(x, hidden)
			for j := range y.Cols {
				y.set(3, j, x.at(3, j))
			}
		}
		f := gaussFitOf(t, y, 2, func(c *Settings) {
			c.Levels, c.Epsilon, c.Loss, c.Missing = 5, 0.1, divergence.Frobenius, hidden > 0
		})
		negative := false
		for i := range 3 { // the last is constant
			v := &f.spaces[0]
			f.solveRow(v, i)
			f.fitted(v, i)
			last := f.rowLoss(v, i)
			for range 20000 {
				f.stepQ(v, i, 1)
				f.fitted(v, i)
				loss := f.rowLoss(v, i)
				if loss > last*(1+1e-12) {
					t.Fatalf("row %d: the loss rises from %v to %v", i, last, loss)
				}
				last = loss
			}
			negative = negative || f.Increments(i)[0] < 0
			// tail_jl, from the map at unit increments.
			m := f.M
			tail := make([][]float64, m)
			for l := range tail {
				q := make([]float64, m)
				for k := l; k < m; k++ {
					q[k] = 1
				}
				tail[l] = make([]float64, f.np)
				v.row.Average(tail[l], q)
			}
			tail = append(tail, v.w) // of the line
			d := make([]float64, len(tail))
			rest := append([]float64(nil), v.x[:f.n]...)
			for range 20000 {
				for l := range d {
					num, den := 0.0, 0.0
					for j := range rest {
						if v.observed == nil || v.observed[j] {
							num += tail[l][j] * rest[j]
							den += tail[l][j] * tail[l][j]
						}
					}
					step := num / den
					if l > 0 {
						step = max(step, -d[l])
					}
					d[l] += step
					for j := range rest {
						rest[j] -= step * tail[l][j]
					}
				}
			}
			want := 0.0
			for j, r := range rest {
				if v.observed == nil || v.observed[j] {
					want += r * r / 2
				}
			}
			if last > want*(1+2e-3) || last < want*(1-1e-9) {
				t.Errorf("row %d: steps end at %v, the least is %v", i, last, want)
			}
		}
		if !negative {
			t.Error("no q_1 below the least of its row")
		}
	}
}

// TestSignedPrior: under an endless shrinkage the map is the least-squares line of x on (UV)_i, taken at the
// levels' means, also where that begins below the least x of the row.
func TestSignedPrior(t *testing.T) {
	below := false
	for seed := range uint64(3) {
		y := scores(seed, 3, 30)
		for i, v := range y.Data {
			y.Data[i] = math.Exp(min(v, 3)) - 4
		}
		f := gaussFitOf(t, y, 2, func(c *Settings) {
			c.Levels, c.Loss, c.Shrinkage, c.Epsilon, c.Line = 6, divergence.Frobenius, 1e30, 0.05, 0
		})
		for i := range 2 {
			v := &f.spaces[0]
			f.solveRow(v, i)
			f.stepQ(v, i, 1)
			w, x, n := v.w[:f.n], v.x[:f.n], float64(f.n)
			mw, mx := TotalOf(w)/n, TotalOf(x)/n
			cov, vw := 0.0, 0.0
			for j, wj := range w {
				cov += (wj - mw) * (x[j] - mx)
				vw += (wj - mw) * (wj - mw)
			}
			beta := max(cov/vw, 0)
			q := make([]float64, f.M)
			f.Quantiles(q, i)
			for l := range q {
				// The mean of w in level l under the plan: the average of an indicator.
				one, mass, sum := make([]float64, f.M), 0.0, 0.0
				one[l] = 1
				shares := make([]float64, f.np)
				v.row.Average(shares, one)
				for j := range w {
					mass += shares[j]
					sum += shares[j] * w[j]
				}
				want := mx + beta*(sum/mass-mw)
				Near(t, q[l], want, 1e-9, "row %d, level %d, by the line", i, l)
				below = below || want < 0
			}
		}
	}
	if !below {
		t.Error("no line begins below its row")
	}
}
