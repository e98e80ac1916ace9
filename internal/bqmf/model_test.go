package bqmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// table is a matrix in the units of x, with NaN in hidden cells.
type table struct {
	d, n int
	x    []float64
}

// bends has samples on a circle, of which most rows are one wave and every third has a length of its own;
// rows 2i and 2i+1 have common noise, and a row is constant. Both corrections are of use.
func bends(d, n int, seed uint64) *table {
	src := random.Split(seed, 12)
	q := &table{d, n, make([]float64, d*n)}
	angle, noise := make([]float64, n), make([]float64, n)
	for j := range angle {
		angle[j] = 2 * math.Pi * src.Float64()
	}
	for i := range d {
		waves, phase := 1.0, 2*math.Pi*src.Float64()
		if i%3 == 0 {
			waves = 1.5 + 0.4*float64(i/3)
		}
		for j, a := range angle {
			if i%2 == 0 {
				noise[j] = normal(&src)
			}
			q.x[i*n+j] = elem.Exp(math.Sin(waves*a+phase) + 0.2*noise[j] + 0.05*normal(&src))
			switch {
			case i == 4:
				q.x[i*n+j] = 7
			case src.Float64() < 0.1:
				q.x[i*n+j] = math.NaN()
			}
		}
	}
	return q
}

// learned returns the model of the table after some epochs.
func (q *table) learned(t *testing.T, rank, epochs, workers int) *Model {
	p := Workers(t, workers)
	problem := NewProblem(q.x, q.d, q.n, q.n, divergence.KL, p)
	for i := range q.d {
		problem.Scale(0, i)
	}
	problem.Scaled()
	m := problem.fitted(rank, epochs, p)
	problem.Learn(m, p)
	return m
}

// fitted returns the model of a fit after some epochs.
func (q *Problem) fitted(rank, epochs int, p *pool.Pool) *Model {
	f := q.Fit(rank, p)
	q.Start(f, rank)
	for e := range epochs {
		f.Epoch(e)
	}
	return q.Model(f)
}

// slowPredict is Sample.Place and Predict cell by cell: the equations of an epoch for a new column, with all
// else as it was fitted, in dense matrices; what samples that are alike and the second stage say
// of the cell; and T_i averaged over its normal distribution.
func slowPredict(m *Model, x []float64) (fit []float64) {
	p, k := m.Posterior, m.K
	y, observed := make([]float64, p.D), 0.0
	for i := range y {
		if y[i] = x[i]; y[i] == y[i] {
			c := &m.Curves[i]
			least, most := slowLine(c.Seen[0], c.X, c.Y)-1, slowLine(c.Seen[1], c.X, c.Y)+1
			y[i] = min(max(slowLine(y[i], c.X, c.Y), least), most)
			observed++
		}
	}
	spread := make([][][]float64, p.D) // S
	for i := range spread {
		spread[i] = full(p.packU(i), k, p.rowU(i))
	}
	moment := func(i, a, b int) float64 { return spread[i][a][b] + p.rowU(i)[a]*p.rowU(i)[b] }
	rho, v, cov := 1.0, []float64(nil), [][]float64(nil)
	for step := range 3 {
		e := prior(ones(make([]float64, k)))
		for i, y := range y {
			if y == y {
				e.add(rho*p.Tau[i], y, p.rowU(i), spread[i])
			}
		}
		if v, cov = e.solve(); step == 2 {
			break
		}
		off := 60.0 // with the pseudo-cells of ρ
		for i, y := range y {
			if y == y {
				off += p.Tau[i] * y * (y - 2*dot(p.rowU(i), v))
				for a := range k {
					for b := range k {
						off += p.Tau[i] * moment(i, a, b) * (v[a]*v[b] + cov[a][b])
					}
				}
			}
		}
		rho = min(max((observed+60)/off/p.Unit, 1.0/20), 20)
	}
	mean, filled := make([]float64, p.D), make([]float64, p.D)
	for i, y := range y {
		mean[i] = dot(p.rowU(i), v)
		if p.Alike != nil && p.Alike.Z[i] != nil {
			finder := p.Alike.Finder()
			for h, b := range finder.Find(v, -1) {
				mean[i] += b * p.Alike.Z[i][finder.Of[h]] / math.Sqrt(p.Tau[i]*rho)
			}
		}
		if filled[i] = y; y != y {
			filled[i] = mean[i]
		}
	}
	fit = slices.Clone(x)
	for i := range y {
		c := &m.Curves[i]
		if len(c.X) == 1 {
			continue
		}
		factors, variance, shrink, says := dot(p.rowU(i), v), 1/(p.Tau[i]*rho), 1.0, mean[i]
		variance -= factors * factors
		for a := range k {
			for b := range k {
				variance += moment(i, a, b) * (v[a]*v[b] + cov[a][b])
			}
		}
		if p.Stage != nil && p.Stage.part[i] != nil {
			of := &p.Stage.Rows[i]
			says = of.Keep*mean[i] + of.Constant
			seen, all := 0.0, 0.0
			for h, l := range of.Of {
				says += of.Weights[h] * filled[l]
				all += of.Weights[h] * of.Weights[h]
				if y := x[l]; y == y {
					seen += of.Weights[h] * of.Weights[h]
				}
			}
			for h, b := range of.About {
				square := 0.0
				for l, g := range of.Metric {
					if about := p.Stage.about[l]; about != nil {
						square += g * (filled[l] - about[h]) * (filled[l] - about[h])
					}
				}
				says += b * math.Exp(-square)
			}
			shrink = of.Shrink
			if all > 0 {
				shrink = math.Sqrt(1 - (1-shrink*shrink)*seen/all)
			}
		}
		if p.Alike != nil {
			shrink *= p.Alike.DeviationShrink[i]
		}
		variance *= shrink * shrink
		if p.Together != nil {
			usual := p.Together.Usual[i] + 1/(p.Tau[i]*rho)
			if p.Stage != nil {
				usual *= p.Stage.Rows[i].Shrink * p.Stage.Rows[i].Shrink
			}
			if p.Alike != nil {
				usual *= p.Alike.DeviationShrink[i] * p.Alike.DeviationShrink[i]
			}
			if wide := usual + p.Together.Factor*(variance-usual); variance > usual {
				variance = max(variance, min(wide, 1))
			}
		}
		t := 0.0
		for h, e := range Nodes {
			t += NodeWeights[h] * slowLine(says+math.Sqrt(variance)*e, c.Y, c.X)
		}
		fit[i] = c.correct(t)
	}
	return fit
}

// slowLine is linear between the points of from and to, and constant beyond.
func slowLine(v float64, from, to []float64) float64 {
	last := len(from) - 1
	if v <= from[0] {
		return to[0]
	}
	for k := range last {
		if v <= from[k+1] {
			return to[k] + (v-from[k])/(from[k+1]-from[k])*(to[k+1]-to[k])
		}
	}
	return to[last]
}

// What is said of new samples is what the equations say cell by cell: with and without corrections, of
// samples with few cells hidden and with most, hidden cells included, and beyond the rows' values.
func TestNewSamplesAreTheSlowForm(t *testing.T) {
	q, src := bends(24, 160, 3), random.Split(3, 21)
	for name, m := range map[string]*Model{"both corrections": q.learned(t, 3, 12, 1),
		"neither": bends(9, 12, 3).learned(t, 2, 12, 1)} {
		if is := m.Stage != nil && m.Alike != nil; is != (name == "both corrections") {
			t.Fatalf("%s: second stage %v, alike %v", name, m.Stage != nil, m.Alike != nil)
		}
		sample := m.Sample(true, false).Share()
		got := make([]float64, m.D)
		for j := range 9 {
			x := make([]float64, m.D)
			for i := range x {
				x[i] = q.x[i*q.n+j] * elem.Exp(float64(j%3)*normal(&src))
				if share := [3]float64{0, 0.2, 0.8}[j%3]; i != 1 && src.Float64() < share {
					x[i] = math.NaN()
				}
			}
			x[1] = 2
			sample.Place(x)
			sample.Cells(func(t *Table, i int, mean, dev float64) { got[i] = t.Conditional(mean, dev) })
			for i, want := range slowPredict(m, x) {
				if want == want && i != 4 {
					Close(t, got[i], want, 1e-9, "%s: a cell", name)
				}
			}
			if x[4] == x[4] && got[4] != 7 {
				t.Errorf("%s: %v of a constant row of 7", name, got[4])
			}
		}
	}
}
