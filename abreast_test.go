package quantmf

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
	taken, all := 0, 0
	for trial := range 300 {
		n, m := 1+int(60*src.Float64()), 2+int(20*src.Float64())
		count := 1 + trial%kernel.Lanes
		group := newAbreast(count, m)
		alone := make([]row, count)
		together := make([]row, count)
		states := make([]warm, 2*count)
		t0, t1 := make([][]float64, count), make([][]float64, count)
		q, zeta := make([]float64, m), make([][]float64, count)
		for j := range q {
			q[j] = float64(j) + src.Float64()
		}
		for i := range count {
			states[i], states[count+i] = newWarm(m), newWarm(m)
			zeta[i] = make([]float64, kernel.Pad(n))
			for j := range zeta[i][:n] {
				zeta[i][j] = normal(&src)
			}
		}
		for round := range 3 { // cold, then from where they stood
			group.clear()
			var ends []outcome
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
				for _, r := range []*row{&alone[i], &together[i]} {
					r.resize(n, m)
					r.setTargets(nil)
					r.setWeights(nil, b)
					r.setSamples(x, SquashNone)
					r.setEpsilon(eps)
				}
				ends = append(ends, alone[i].solve(1e-9, 300, &states[i]))
				t0[i], t1[i] = make([]float64, alone[i].np), make([]float64, alone[i].np)
				alone[i].quantile(t0[i], q)
				alone[i].adjoint(zeta[i], q)
				together[i].ask(t1[i], q)
				group.take(&together[i], &states[count+i])
			}
			group.solve(1e-9, 300)
			group.hold()
			for i := range count {
				r := &together[i]
				all++
				if r.averaged {
					taken++
				}
				r.quantile(t1[i], q)
				r.load(zeta[i], q)
			}
			group.adjoint()
			for i := range count {
				r := &together[i]
				r.sampleAdjoint(zeta[i], q)
				if group.ends[i] != ends[i] {
					t.Fatalf("trial %d, round %d: ended as %v, alone as %v", trial, round, group.ends[i], ends[i])
				}
				for _, v := range []struct {
					what      string
					got, want []float64
				}{{"h", r.h, alone[i].h}, {"c", r.c, alone[i].c}, {"Z", r.z, alone[i].z}, {"T", t1[i][:n], t0[i][:n]},
					{"λ", r.lam, alone[i].lam}, {"x̄", r.gx, alone[i].gx}, {"offset", states[count+i].offset, states[i].offset}} {
					for j := range v.want {
						if math.Float64bits(v.got[j]) != math.Float64bits(v.want[j]) {
							t.Fatalf("trial %d, round %d, row %d of %d: %s_%d is %v abreast, %v alone", trial, round, i, count, v.what, j, v.got[j], v.want[j])
						}
					}
				}
			}
			// From a sweep, as a map is taken back that was solved before.
			for i := range count {
				alone[i].pass(alone[i].h)
				alone[i].adjoint(zeta[i], q)
				together[i].sweep(together[i].h, false)
			}
			group.hold()
			for i := range count {
				together[i].load(zeta[i], q)
			}
			group.adjoint()
			for i := range count {
				for j, v := range alone[i].lam {
					if v-v != 0 || math.Float64bits(together[i].lam[j]) != math.Float64bits(v) {
						t.Fatalf("trial %d, round %d, row %d of %d, from a sweep: λ_%d is %v abreast, %v alone", trial, round, i, count, j, together[i].lam[j], v)
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
