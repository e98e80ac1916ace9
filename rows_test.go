package quantmf

import (
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// TestRows: the batched operators give the bits of the single ones, for any
// number of workers, whatever the strides.
func TestRows(t *testing.T) {
	r := random.Split(12, 0)
	big := NewMat(9, 30)
	for i := range big.Data {
		big.Data[i] = normal(&r)
	}
	x := Mat{Rows: 9, Cols: 21, Data: big.Data, Stride: 30}
	z := NewMat(9, 21)
	for i := range z.Data {
		z.Data[i] = normal(&r)
	}
	q := NewMat(9, 5)
	for i := range q.Rows {
		last := normal(&r)
		for j := range q.Cols {
			last += r.Float64()
			q.Set(i, j, last)
		}
	}
	one := Mat{Rows: 1, Cols: 5, Data: q.Data[:5], Stride: 5}
	for _, eps := range []float64{0.1, 0.001, 0} {
		for _, workers := range []int{1, 4} {
			opts := []Option{WithEpsilon(eps), WithTargetWeights([]float64{1, 2, 3, 2, 1})}
			for _, levels := range []Mat{q, one} {
				batch := append(opts, WithWorkers(workers))
				got, err := SoftQuantileRows(x, levels, batch...)
				if err != nil {
					t.Fatal(err)
				}
				dx, dq, db, err := SoftQuantileRowsVJP(x, levels, z, batch...)
				if err != nil {
					t.Fatal(err)
				}
				sum := make([]float64, 5)
				for i := range x.Rows {
					tr, err := Solve(x.Row(i), append(opts, WithLevels(5))...)
					if err != nil {
						t.Fatal(err)
					}
					l := levels.Row(min(i, levels.Rows-1))
					want, _ := tr.Quantile(l)
					g, err := tr.QuantileVJP(l, z.Row(i))
					if err != nil {
						t.Fatal(err)
					}
					closeTo(t, "T", got.Row(i), want, 0)
					closeTo(t, "dx", dx.Row(i), g.X, 0)
					closeTo(t, "db", db.Row(i), g.B, 0)
					add(sum, g.Q)
					if levels.Rows > 1 {
						closeTo(t, "dq", dq.Row(i), g.Q, 0)
					}
				}
				if levels.Rows == 1 {
					closeTo(t, "shared dq", dq.Row(0), sum, 0)
				}
			}
		}
	}
}

// TestRowsAllocations: more rows cost no more allocations.
func TestRowsAllocations(t *testing.T) {
	if invariants {
		t.Skip("the checks allocate")
	}
	count := func(d int) float64 {
		x, q := NewMat(d, 40), NewMat(1, 8)
		for i := range x.Data {
			x.Data[i] = float64(i * 7 % 101)
		}
		for j := range q.Data {
			q.Data[j] = float64(j)
		}
		return testing.AllocsPerRun(5, func() {
			if _, err := SoftQuantileRows(x, q, WithWorkers(1)); err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := SoftQuantileRowsVJP(x, q, x, WithWorkers(1)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := count(8), count(300); a != b { // eight are solved at once
		t.Errorf("%v allocations for 8 rows, %v for 300", a, b)
	}
}

// TestFitAllocations: an epoch allocates nothing once the fit is under way.
func TestFitAllocations(t *testing.T) {
	if invariants {
		t.Skip("the checks allocate")
	}
	x := first(toy(0), 40)
	for _, f := range []func(epochs, workers int){
		func(e, w int) { FitQMF(t.Context(), x, 4, WithEpochs(e), WithWorkers(w)) },
		func(e, w int) { FitNMF(t.Context(), x, 4, WithEpochs(e), WithWorkers(w), WithValidation(0.1)) },
		func(e, w int) { FitQMFQ(t.Context(), x, 4, WithEpochs(e), WithWorkers(w), WithValidation(0.1)) },
	} {
		for workers := 1; workers <= 2; workers++ {
			few, many := testing.AllocsPerRun(2, func() { f(2, workers) }), testing.AllocsPerRun(2, func() { f(22, workers) })
			// AllocsPerRun leaves one processor to all, so what it counts of two workers is
			// theirs; a stack that grows later is none of an epoch's.
			if many > few+float64(workers-1)*2 {
				t.Errorf("%d workers: %v allocations for 2 epochs, %v for 22", workers, few, many)
			}
		}
	}
}
