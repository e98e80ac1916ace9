package transport

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
)

// TestAbreast solves rows of every kind, hard and easy ones together, abreast and
// alone: the same bits, with T taken in passing or afterwards.
func TestAbreast(t *testing.T) {
	src := random.Split(41, 0)
	taken, all, trials := 0, 0, 300
	if testing.Short() {
		trials = 80
	}
	for trial := range trials {
		n, m := 1+int(60*src.Float64()), 2+int(20*src.Float64())
		count := 1 + trial%kernel.Lanes
		spaces := NewRows(count, n, m)
		group := NewGroup(spaces)
		alone, passing := NewRows(count, n, m), NewRows(1, n, m)[0]
		states, back := make([]Warm, 2*count), make([]Cotangent, count)
		t0, t1 := make([][]float64, count), make([][]float64, count)
		q, zeta := make([]float64, m), make([][]float64, count)
		for j := range q {
			q[j] = float64(j) + src.Float64()
		}
		for i := range count {
			states[i], states[count+i] = NewWarm(m), NewWarm(m)
			zeta[i] = make([]float64, kernel.Pad(n))
			for j := range zeta[i][:n] {
				zeta[i][j] = normal(&src)
			}
			back[i] = Cotangent{Z: zeta[i], Q: q}
		}
		for round := range 3 { // cold, then from where they stood
			group.Clear()
			var ends []Outcome
			var problems []Problem
			for i := range count {
				x, b := make([]float64, n), make([]float64, m)
				spread := math.Exp(2 * normal(&src))
				for j := range x {
					x[j] = spread * normal(&src)
				}
				skew := 3.0
				if (trial+i)%5 == 0 { // columns that are flushed to 0
					skew = 100
				}
				for j := range b {
					b[j] = math.Exp(min(max(skew*normal(&src), -500), 100))
				}
				eps := math.Pow(10, -4*src.Float64())
				p := Problem{X: x, B: b, Squash: None, Epsilon: eps}
				problems = append(problems, p)
				alone[i].Load(p)
				ends = append(ends, alone[i].Solve(1e-9, 300, &states[i]))
				t0[i], t1[i] = make([]float64, alone[i].np), make([]float64, alone[i].np)
				alone[i].Average(t0[i], q)
				alone[i].Adjoint(back[i])
				group.Add(p, &states[count+i], t1[i], q)
				// Whether the last sweep took T, or what ends a solve.
				state := Warm{append([]float64(nil), states[count+i].Offset...), states[count+i].Valid}
				passing.Load(p)
				passing.want.t, passing.want.q = make([]float64, passing.np), q
				s := passing.begin(1e-9, 300, &state)
				s.run(&passing.dual)
				all++
				if passing.want.had {
					taken++
				}
				passing.finish(s, &state)
				for j, v := range passing.want.t[:n] {
					if math.Float64bits(v) != math.Float64bits(t0[i][j]) {
						t.Fatalf("trial %d, round %d, row %d: T_%d is %v in passing, %v afterwards", trial,
							round, i, j, v, t0[i][j])
					}
				}
			}
			group.Solve(1e-9, 300)
			group.Adjoint(back)
			for i, r := range group.Rows {
				x0, x1, q0, q1, f0, f1 := make([]float64, n), make([]float64, n), make([]float64, m),
					make([]float64, m), make([]float64, m), make([]float64, m)
				alone[i].GradX(x0)
				alone[i].GradQ(q0)
				alone[i].GradLogits(f0)
				r.GradX(x1)
				r.GradQ(q1)
				r.GradLogits(f1)
				if group.End(i) != ends[i] {
					t.Fatalf("trial %d, round %d: ended as %v, alone as %v", trial, round, group.End(i),
						ends[i])
				}
				for _, v := range []struct {
					what      string
					got, want []float64
				}{{"h", r.h, alone[i].h}, {"c", r.c, alone[i].c}, {"Z", r.z, alone[i].z},
					{"T", t1[i][:n], t0[i][:n]},
					{"λ", r.lam, alone[i].lam}, {"x̄", x1, x0}, {"q̄", q1, q0}, {"F̄", f1, f0},
					{"offset", states[count+i].Offset, states[i].Offset}} {
					for j := range v.want {
						if math.Float64bits(v.got[j]) != math.Float64bits(v.want[j]) {
							t.Fatalf("trial %d, round %d, row %d of %d: %s_%d is %v abreast, %v alone", trial,
								round, i, count, v.what, j, v.got[j], v.want[j])
						}
					}
				}
			}
			// From a sweep, as a map is taken back that was solved before.
			group.Clear()
			for i, p := range problems {
				h := append([]float64(nil), alone[i].h...)
				alone[i].Load(p)
				alone[i].Return(h)
				alone[i].Adjoint(back[i])
				group.Add(p, nil, nil, nil).Return(h)
			}
			group.Adjoint(back)
			for i, r := range group.Rows {
				for j, v := range alone[i].lam {
					if v-v != 0 || math.Float64bits(r.lam[j]) != math.Float64bits(v) {
						t.Fatalf("trial %d, round %d, row %d of %d, from a sweep: λ_%d is %v abreast, "+
							"%v alone", trial, round, i, count, j, r.lam[j], v)
					}
				}
			}
		}
	}
	t.Logf("T was taken in the last sweep of %d rows of %d", taken, all)
	if taken < all/2 || taken == all {
		t.Errorf("T was taken in the last sweep of %d rows of %d", taken, all)
	}
}
