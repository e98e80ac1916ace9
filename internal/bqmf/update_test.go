package bqmf

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// Rounds of learning from new samples are the equations in dense matrices, the precision of each row by the
// cells of the fit; a constant row and the model before stay as they were; and blocks make no difference.
func TestUpdateIsTheSlowForm(t *testing.T) {
	q, src := bends(12, 90, 3), random.Split(3, 22)
	m := q.learned(t, 3, 12, 1)
	const n, rounds = 70, 2
	d, k := m.D, m.K
	columns := make([][]float64, n)
	for j := range columns {
		columns[j] = make([]float64, d)
		for i := range columns[j] {
			columns[j][i] = q.x[i*q.n+j] * math.Exp(0.1*normal(&src))
			if i != 1 && src.Float64() < 0.2 {
				columns[j][i] = math.NaN()
			}
		}
	}
	before := append(append([]float64{}, m.U...), m.BU...)
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
	for c, u := range got.U {
		if u != again.U[c] {
			t.Fatal("in blocks another U")
		}
	}
	for c, u := range append(append([]float64{}, m.U...), m.BU...) {
		if u != before[c] {
			t.Fatal("the model of before has changed")
		}
	}
	square := func(moments []float64, mean []float64) [][]float64 { // covariance of packed second moments
		a, at := make([][]float64, k), 0
		for r := range a {
			a[r] = make([]float64, k)
			for c := range r + 1 {
				v := moments[at]
				if c < r {
					v /= math.Sqrt2
				}
				a[r][c] = v - mean[r]*mean[c]
				a[c][r] = a[r][c]
				at++
			}
		}
		return a
	}
	zero := make([]float64, k)
	now := &Model{Posterior: new(Posterior), Curves: m.Curves}
	*now.Posterior = *m.Posterior
	now.U, now.BU = append([]float64{}, m.U...), append([]float64{}, m.BU...)
	for range rounds {
		sample, pp := now.Sample(false, false).Share(), Packed(k)
		right, more := make([][]float64, d), make([][][]float64, d)
		for i := range d {
			right[i], more[i] = make([]float64, k), make([][]float64, k)
			for r := range k {
				more[i][r] = make([]float64, k)
			}
		}
		for _, x := range columns {
			v := sample.Place(x)
			b := square(sample.placer.back, zero)
			for i, y := range sample.y {
				if y == y {
					for r := range k {
						right[i][r] += m.Tau[i] * sample.rho * y * v[r]
						for c := range k {
							more[i][r][c] += m.Tau[i] * sample.rho * b[r][c]
						}
					}
				}
			}
		}
		u, bu := append([]float64{}, m.U...), append([]float64{}, m.BU...)
		for i, tau := range m.Tau {
			if !(tau > 0) {
				continue
			}
			p, _ := solve(square(m.BU[i*pp:], m.U[i*k:(i+1)*k]))
			all := make([]float64, k)
			for r := range k {
				all[r] = dotted(p[r], m.U[i*k:(i+1)*k]) + right[i][r]
				for c := range k {
					p[r][c] += more[i][r][c]
				}
			}
			s, _ := solve(p)
			at := i * pp
			for r := range k {
				u[i*k+r] = dotted(s[r], all)
			}
			for r := range k {
				for c := range r + 1 {
					bu[at] = s[r][c] + u[i*k+r]*u[i*k+c]
					if c < r {
						bu[at] *= math.Sqrt2
					}
					at++
				}
			}
		}
		now.U, now.BU = u, bu
	}
	for c, want := range now.U {
		closeTo(t, "an entry of U", got.U[c], want, 1e-8)
	}
	for c, want := range now.BU {
		closeTo(t, "a second moment", got.BU[c], want, 1e-8)
	}
}
