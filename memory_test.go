package quantmf

// Tests of the memory that fits are said to take.

import (
	"math"
	"runtime"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestMemoryOf: more of anything takes no less, options count, and what no fit can
// have is an error. What is told is held against what fits take by the command's
// tests.
func TestMemoryOf(t *testing.T) {
	need := func(m Method, d, n, rank int, opts ...FitOption) Memory {
		t.Helper()
		got := Must(MemoryOf(m, d, n, rank, opts...))(t)
		if got.Model < 8*int64(d+n)*int64(rank) || got.Fit < got.Model ||
			got.State < got.Model/2 && m != MethodBQMF {
			t.Errorf("%v, %d×%d of rank %d: %+v", m, d, n, rank, got)
		}
		return got
	}
	for m := range MethodBQMF + 1 {
		one := WithWorkers(1)
		base := need(m, 500, 100, 10, one)
		for what, more := range map[string]Memory{"d": need(m, 1000, 100, 10, one),
			"n": need(m, 500, 200, 10, one), "rank": need(m, 500, 100, 20, one)} {
			if more.Fit <= base.Fit || more.Model <= base.Model || more.State <= base.State {
				t.Errorf("%v: twice the %s takes %+v, once %+v", m, what, more, base)
			}
		}
		opts := []FitOption{one}
		// that takes room for rows that are mostly zero, unless cells are held out
		if m == MethodNMF {
			opts = append(opts, WithLoss(Beta(1.5)))
		}
		if held, base := need(m, 500, 100, 10, append(opts, WithValidation(0.1))...),
			need(m, 500, 100, 10, opts...); held.Fit <= base.Fit {
			t.Errorf("%v: with cells held out %+v, without %+v", m, held, base)
		}
		if need(m, 1<<30, 1<<30, 1<<30, one).Fit < 1<<60 {
			t.Errorf("%v: a fit beyond reason is told to be small", m)
		}
		few, many := need(m, 20, 20, 2, WithEpochs(10)), need(m, 20, 20, 2, WithEpochs(1<<20))
		if more := many.Fit - few.Fit; more < 8<<20 || more > 12<<20 || many.State-few.State < 8<<20-88 {
			t.Errorf("%v: the losses of 2^20 epochs take %d", m, more)
		}
	}
	if a, b := need(MethodQMF, 500, 100, 10), need(MethodQMF, 500, 100, 10,
		WithRestarts(2)); 2*(b.State-a.State) < a.Model {
		t.Errorf("a state beside the best of the restarts before takes %+v, alone %+v", b, a)
	}
	// Signed data are held again, less their lowest values.
	if a, b := need(MethodQMF, 500, 100, 10), need(MethodQMF, 500, 100, 10,
		WithLoss(Frobenius)); a.Fit != a.Rows || b.Fit-b.Rows < 8*500*100 {
		t.Errorf("in memory KL takes %+v, Frobenius %+v", a, b)
	}
	if a, b := need(MethodQMFQ, 500, 100, 10),
		need(MethodQMFQ, 500, 100, 10, WithProjection(KLUpdates(500))); b.Fit <= a.Fit {
		t.Errorf("500 updates take %+v, 20 %+v", b, a)
	}
	if m, err := MemoryOf(MethodBQMF, 5, 5, 0); err != nil || m.Fit <= 0 {
		t.Errorf("rank 0 of BQMF: %v %v", m, err)
	}
}

// TestMemoryOfState: the size told of a checkpoint is that of the states of a fit.
func TestMemoryOfState(t *testing.T) {
	Slow(t)
	x := Lognormal(80, 40)
	check := func(method Method, opts ...FitOption) {
		opts = append(opts, WithEpochs(4))
		told := Must(MemoryOf(method, x.Rows, x.Cols, 4, opts...))(t)
		most := 0
		keep := func(state []byte) error { most = max(most, len(state)); return nil }
		Fitted(t, By(method), x, 4, append(opts, WithCheckpoint(1, keep))...)
		t.Logf("%v: %d bytes told, %d at most", method, told.State, most)
		// Names, counts and losses are another two thousand; second moments of a BQMF are counted in whole
		// blocks.
		if got := float64(told.State) + 2000; got < float64(most) || got > 1.2*float64(most) &&
			(method != MethodBQMF || got > 1.4*float64(most)) {
			t.Errorf("%v, %d options: %d bytes told, %d at most", method, len(opts), told.State, most)
		}
	}
	updates, uniform, held := WithUpdates(UpdatesMultiplicative), WithStart(StartUniform), WithValidation(0.1)
	check(MethodNMF)
	check(MethodNMF, updates)
	check(MethodNMF, held)
	check(MethodQMF)
	check(MethodQMF, uniform)
	check(MethodQMF, WithLevels(32), held)
	check(MethodQMFQ, uniform)
	check(MethodQMFQ, uniform, WithLevels(32), held)
	check(MethodNMF, updates, WithRestarts(2))
	check(MethodQMF, WithRestarts(2))
	check(MethodBQMF)
	check(MethodBQMF, held)
}

// TestMemoryOfNMF: what is told of an NMF is what is alive of one whose rows are mostly zero, whatever is
// large, the model that it ends with included. Other rows take less. Sums of pieces count where
// there are as many rows.
func TestMemoryOfNMF(t *testing.T) {
	Slow(t)
	type shape struct{ d, n, k int }
	shapes := []shape{{6, 6000, 2}, {6000, 6, 4}, {17, 1500, 30}, {40, 2000, 5}, {60, 240, 150},
		{60, 40, 150}}
	for at, s := range shapes {
		dense := Lognormal(s.d, s.n)
		thin := dense.Clone()
		for i := range thin.Data {
			if j := i % s.n; j != 0 && i/s.n != j%s.d {
				thin.Data[i] = 0
			}
		}
		for o, opts := range [][]FitOption{nil, {WithUpdates(UpdatesMultiplicative)}, {WithLoss(Frobenius)},
			{WithLoss(Frobenius), WithUpdates(UpdatesMultiplicative)},
			{WithLoss(Frobenius), WithPenalties(Penalties{L1U: 0.1, L2V: 1})}, {WithMissingValues()},
			{WithValidation(0.1)},
			{WithLoss(Beta(1.5)), WithValidation(0.1)}, {WithCellWeights(dense)}} {
			if o == 5 && at > 2 && !Long { // whose end is open: many epochs
				continue
			}
			x, workers := thin, WithWorkers(1+2*(o%2))
			if o > 4 {
				x = dense
			}
			x.Data[1] = 1
			if o == 5 {
				x.Data[1] = math.NaN()
			}
			if opts = append(opts, workers); o != 5 {
				opts = append(opts, WithEpochs(3))
			}
			told := Must(MemoryOf(MethodNMF, s.d, s.n, s.k, opts...))(t)
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // of what a first one leaves to finalizers and pools
			runtime.ReadMemStats(&m)
			before, most := m.HeapAlloc, uint64(0)
			alive := WithProgress(func(Progress) error {
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
				return nil
			})
			Fitted(t, FitNMF, x, s.k, append(opts, alive)...)
			got := float64(most) - float64(before) + float64(told.Model)
			ratio := float64(told.Fit) / got
			if ratio < 1 || float64(told.Fit) > 1.15*got+small {
				t.Errorf("%v, options %d: %.0f bytes were alive, %d told: %.3f", s, o, got, told.Fit, ratio)
			}
		}
	}
	for _, loss := range []Loss{KL, Frobenius} {
		few := Must(MemoryOf(MethodNMF, 16, 20000, 20, WithLoss(loss), WithWorkers(1)))(t)
		many := Must(MemoryOf(MethodNMF, 256, 20000, 20, WithLoss(loss), WithWorkers(1)))(t)
		if few.Fit > many.Fit/2 {
			t.Errorf("%v: one piece takes %d bytes, all take %d", loss, few.Fit, many.Fit)
		}
	}
}

// TestMemoryOfLargeRanks: the memory of a fit whose rank is far above both sizes is linear in the rank, as
// its model is.
func TestMemoryOfLargeRanks(t *testing.T) {
	for method := range MethodBQMF {
		for _, loss := range []Loss{KL, Frobenius, Beta(1.5)} {
			few := Must(MemoryOf(method, 60, 40, 1000, WithLoss(loss), WithWorkers(2)))(t)
			many := Must(MemoryOf(method, 60, 40, 16000, WithLoss(loss), WithWorkers(2)))(t)
			if many.Fit > 17*few.Fit {
				t.Errorf("%v under %v: %d bytes of rank 1000, %d of rank 16000", method, loss, few.Fit,
					many.Fit)
			}
		}
	}
	x := Lognormal(6, 5)
	bound := func(method Method, opts ...FitOption) {
		t.Helper()
		// a matrix of 2000 × 2000 numbers is 32 MB
		if got := allocated(func() { Fitted(t, By(method), x, 2000, opts...) }); got > 16<<20 {
			t.Errorf("%v: %d bytes", method, got)
		}
	}
	bound(MethodNMF, WithEpochs(1))
	bound(MethodNMF, WithEpochs(1), WithLoss(Frobenius))
	bound(MethodQMF, WithEpochs(0), WithStart(StartScores), WithShrinkage(0), WithLine(0))
}

// TestMemoryOfAbsurd: what no fit could hold is counted, too.
func TestMemoryOfAbsurd(t *testing.T) {
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		small := Must(MemoryOf(method, 10, 10, 2))(t)
		for _, m := range []int{1 << 20, 1 << 29, math.MaxInt/2 + 1, math.MaxInt} {
			if got, err := MemoryOf(method, 10, 10, 2, WithLevels(m)); err != nil || got.Fit <= small.Fit {
				t.Errorf("%v of %d levels: %v, %v", method, m, got, err)
			}
			if got, err := MemoryOf(method, 10, m, 2); err != nil || got.Fit <= small.Fit {
				t.Errorf("%v of %d samples: %v, %v", method, m, got, err)
			}
		}
	}
}
