package bqmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// Rounds of learning from new samples are the equations in dense matrices, the precision of each row by the
// cells of the fit; a constant row and the model before stay as they were; and blocks make no difference.
func TestUpdateIsTheSlowForm(t *testing.T) {
	q, src := bends(12, 90, 3), random.Split(3, 22)
	m := q.learned(t, 3, 12, 1)
	const n, rounds = 70, 2
	d, k := m.D, m.K
	columns := matrix(n, d, func(j, i int) float64 {
		if i != 1 && src.Float64() < 0.2 {
			return math.NaN()
		}
		return q.x[i*q.n+j] * math.Exp(0.1*normal(&src))
	})
	before := slices.Concat(m.U, m.BU)
	learn := func(block int) *Model {
		s := m.Update(pool.New(3, d))
		for range rounds {
			s.Begin()
			for from := 0; from < n; from += block {
				s.Add(min(block, n-from), func(x []float64, j int) { copy(x, columns[from+j]) })
			}
			s.End()
		}
		return s.Model()
	}
	got, again := learn(n), learn(11)
	if !slices.Equal(got.U, again.U) {
		t.Fatal("in blocks another U")
	}
	if !slices.Equal(slices.Concat(m.U, m.BU), before) {
		t.Fatal("the model of before has changed")
	}
	now := &Model{Posterior: new(Posterior), Curves: m.Curves}
	*now.Posterior = *m.Posterior
	for range rounds {
		sample, pp := now.Sample(false, false).Share(), Packed(k)
		rows := make([]*equations, d)
		for i := range rows {
			if u := m.rowU(i); m.Tau[i] > 0 {
				p, _ := Inverse(full(m.packU(i), k, u))
				rows[i] = &equations{times(p, u), p}
			}
		}
		for _, x := range columns {
			v := sample.Place(x)
			spread := full(sample.placer.back, k, v)
			for i, y := range sample.y {
				if y == y && rows[i] != nil {
					rows[i].add(m.Tau[i]*sample.rho, y, v, spread)
				}
			}
		}
		u, bu := slices.Clone(m.U), slices.Clone(m.BU)
		for i, e := range rows {
			if e == nil {
				continue
			}
			mean, spread := e.solve()
			copy(u[i*k:], mean)
			moments(bu[i*pp:], mean, spread)
		}
		now.U, now.BU = u, bu
	}
	for c, want := range now.U {
		Close(t, got.U[c], want, 1e-8, "an entry of U")
	}
	for c, want := range now.BU {
		Close(t, got.BU[c], want, 1e-8, "a second moment")
	}
}
