package bqmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// smooth returns a table of rows that go over into one another, as spectra do; the first
// third of its rows is hidden together at the first third of the samples.
func smooth(d, n int) (given *table, whole []float64) {
	src := random.Split(9, 4)
	parts := make([][2]float64, 9)
	for c := range parts {
		parts[c] = [2]float64{src.Float64(), 0.05 + 0.15*src.Float64()}
	}
	given = &table{d, n, make([]float64, d*n)}
	for j := range n {
		sizes := make([]float64, len(parts))
		for c := range sizes {
			sizes[c] = math.Exp(0.6 * normal(&src))
		}
		for i := range d {
			sum := 0.02
			for c, p := range parts {
				at := (float64(i)/float64(d) - p[0]) / p[1]
				sum += sizes[c] * math.Exp(-at*at)
			}
			given.x[i*n+j] = sum * (1 + 0.001*normal(&src))
		}
	}
	whole = slices.Clone(given.x)
	for i := range d / 3 {
		for j := range n / 3 {
			given.x[i*n+j] = math.NaN()
		}
	}
	return given, whole
}

// Intervals of cells that are hidden together hold what they promise, where those of independent noise are
// far too narrow; those of cells that are hidden alone are as they were.
func TestHiddenTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	q, whole := smooth(45, 75)
	m := q.learned(t, 40, 20, 2)
	if m.Together == nil || !(m.Together.Factor > 1.5) {
		t.Fatalf("together %v", m.Together)
	}
	p := Workers(t, 1)
	held := func() (share float64) {
		m.Each(p, false, func(_ *Table, i, j int, mean, deviation float64) {
			if x := q.x[i*q.n+j]; x != x {
				c := &m.Curves[i]
				off := (c.forward(whole[i*q.n+j]) - mean) / deviation
				if off > c.bend(-1.2815515655446004) && off < c.bend(1.2815515655446004) {
					share += 1 / float64(q.d/3*(q.n/3))
				}
			}
		})
		return share
	}
	with := held()
	m.Together = nil
	if without := held(); with < 0.7 || with > 0.95 || without > 0.6 {
		t.Errorf("80 %% hold %v, %v by independent noise", with, without)
	}
}

// The factors' part of a rehearsal is that of equations solved anew: u of each row without its cell, v by
// these, and v without a cell.
func TestRehearsalIsTheEquations(t *testing.T) {
	q, s, p := stages(t, 9, 40, 0.15)
	m := &Model{Posterior: q.reader.p}
	s.fill(p, -1)
	of := s.rehearse(m, p)
	k, some := m.K, 0
	for c, j := range of.samples {
		v := make([]float64, k)
		m.column(v, j)
		away, spread := make([][]float64, q.d), make([][][]float64, q.d)
		observed := make([]bool, q.d)
		for a, i := range q.Active {
			u := m.rowU(i)
			spread[i], away[i] = full(m.packU(i), k, u), slices.Clone(u)
			if observed[i] = q.row(i)[j] == q.row(i)[j]; observed[i] {
				sv := times(spread[i], v)
				w := m.Tau[i] * m.Rho[j]
				pull := w * (s.line(q.data.Y, a)[j] - dot(u, v)) / math.Max(slack, 1-w*dot(v, sv))
				for h := range sv {
					away[i][h] -= pull * sv[h]
				}
			}
		}
		place := func(is func(i int) bool, apart int) []float64 { // of row apart only S counts
			e := prior(ones(v))
			for at, i := range q.Active {
				mean := away[i]
				if i == apart {
					mean = make([]float64, k)
				}
				if is(i) {
					e.add(m.precision(i, j), s.line(q.data.Y, at)[j], mean, spread[i])
				}
			}
			mean, _ := e.solve()
			return mean
		}
		for a, i := range q.Active {
			got := of.line(of.together, a)[c]
			if got != got {
				continue
			}
			some++
			hidden := func(i int) bool {
				t := of.line(of.together, s.active[i])[c]
				return t == t
			}
			Close(t, got, dot(away[i], place(func(i int) bool { return observed[i] && !hidden(i) },
				-1)), 1e-9, "together")
			alone := place(func(i int) bool { return observed[i] }, i)
			all := place(func(i int) bool { return observed[i] }, -1)
			y := s.line(q.data.Y, a)[j]
			if share := 1 - (y-dot(away[i], all))/(y-dot(away[i], alone)); share < 1-slack {
				Close(t, of.line(of.alone, a)[c], dot(away[i], alone), 1e-9, "alone")
			}
		}
	}
	if some < 20 {
		t.Errorf("%d cells were hidden in rehearsals", some)
	}
}

func times(a [][]float64, v []float64) (out []float64) {
	for _, row := range a {
		out = append(out, dot(row, v))
	}
	return out
}

// The second stage's part of a rehearsal is a regression made anew without the sample, of regressors as they
// are when others are hidden, too.
func TestRehearsalIsTheRegression(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	q, s, p := bothKinds(t)
	s.rehearsal = s.rehearse(&Model{Posterior: q.reader.p}, p)
	of, some := s.rehearsal, 0
	for k, w := range kindWeights {
		s.weights[k] = w
		view := slowView(s, k)
		r, places, without := compared(s, k)
		s.row(r, s.newStage(q.d), k, places, without)
		for c, j := range of.samples {
			hidden := of.line(of.together, k)[c]
			if hidden != hidden {
				continue
			}
			some++
			rehearsed := matrix(q.d, q.n, func(a, l int) float64 { // A in the rehearsal
				if t := of.line(of.together, a)[c]; l == j && t == t {
					return t
				}
				return view[a][l]
			})
			rest := slices.DeleteFunc(slices.Clone(places), func(l int32) bool { return int(l) == j })
			Close(t, r.together[c],
				slowStage(s, rehearsed, k, r.metric.weights, rest, len(places), hidden, j), 1e-8,
				"a regression in a rehearsal")
		}
	}
	if some < 5 {
		t.Errorf("%d cells were hidden in rehearsals", some)
	}
}

// One factor is made of all cells, drawn to 1 by its error, and never below it.
func TestFactorOfTheTogether(t *testing.T) {
	q := problemOf([]float64{1, 2, 3, 4}, []float64{4, 2, 3, 1})
	for _, c := range []struct {
		name       string
		more, said []float64
		want       float64
	}{
		{"as said", []float64{1, 1}, []float64{1, 1}, 1},
		{"less", []float64{0.5, 0.5}, []float64{1, 1}, 1},
		{"three times, surely", []float64{3, 3}, []float64{1, 1}, 3},
		{"three times, unsurely", []float64{4, 2}, []float64{1, 1}, 3 - 0.5/2},
		{"no sign of it", []float64{9, -3}, []float64{1, 1}, 1},
		{"nothing said", []float64{3, 3}, []float64{0, 0}, 1},
		{"exact", []float64{math.NaN(), math.Inf(1)}, []float64{1, 1}, 1},
	} {
		s := q.newStager(pool.New(1, 1), &factorCells{usual: []float64{0.5, 0.25}}, len(q.Active), 1)
		none := []float64{math.NaN(), math.NaN()}
		s.rehearsal = &rehearsal{samples: []int{0, 2}, alone: append(c.more, none...),
			variance: append(c.said, none...)}
		got := s.learnt(2)
		Close(t, got.Factor, c.want, 1e-12, "%s", c.name)
		if got.Usual[0] != 0.5 || got.Usual[1] != 0.25 {
			t.Errorf("usual %v", got.Usual)
		}
	}
}
