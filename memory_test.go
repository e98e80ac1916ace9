package quantmf

// Tests of the memory that fits are said to take.

import (
	"context"
	"errors"
	"math"
	"testing"
)

// TestMemoryOf: more of anything takes no less, options count, and what no fit can
// have is an error. What is told is held against what fits take by the command's
// tests.
func TestMemoryOf(t *testing.T) {
	need := func(m Method, d, n, rank int, opts ...FitOption) Memory {
		t.Helper()
		got, err := MemoryOf(m, d, n, rank, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if got.Model < 8*int64(d+n)*int64(rank) || got.Fit < got.Model || got.State < got.Model/2 {
			t.Errorf("%v, %d×%d of rank %d: %+v", m, d, n, rank, got)
		}
		return got
	}
	for _, m := range []Method{MethodNMF, MethodQMF, MethodQMFQ, MethodBQMF} {
		one := WithWorkers(1)
		base := need(m, 500, 100, 10, one)
		for what, more := range map[string]Memory{"d": need(m, 1000, 100, 10, one), "n": need(m, 500, 200, 10, one), "rank": need(m, 500, 100, 20, one)} {
			if more.Fit <= base.Fit || more.Model <= base.Model || more.State <= base.State {
				t.Errorf("%v: twice the %s takes %+v, once %+v", m, what, more, base)
			}
		}
		if held := need(m, 500, 100, 10, one, WithValidation(0.1)); held.Fit <= base.Fit {
			t.Errorf("%v: with cells held out %+v, without %+v", m, held, base)
		}
		if need(m, 1<<30, 1<<30, 1<<30, one).Fit < 1<<60 {
			t.Errorf("%v: a fit beyond reason is told to be small", m)
		}
	}
	if a, b := need(MethodQMFQ, 500, 100, 10), need(MethodQMFQ, 500, 100, 10, WithProjection(KLUpdates(500))); b.Fit <= a.Fit {
		t.Errorf("500 updates take %+v, 20 %+v", b, a)
	}
	var option *OptionError
	var shape *ShapeError
	if _, err := MemoryOf(MethodNMF, 5, 5, 0); !errors.As(err, &option) {
		t.Errorf("rank 0: %v", err)
	}
	for m, opts := range map[Method][]FitOption{MethodNMF: {WithStart(StartNMF)}, MethodQMF: {WithShrinkage(1), WithEnds(EndsPinned)}, MethodQMFQ: {WithStart(StartSVD)}, MethodBQMF: {WithLoss(Beta(1.5))}} {
		if _, err := MemoryOf(m, 5, 5, 1, opts...); !errors.As(err, &option) {
			t.Errorf("%v: options that no fit takes: %v", m, err)
		}
	}
	if m, err := MemoryOf(MethodBQMF, 5, 5, 0); err != nil || m.Fit <= 0 {
		t.Errorf("rank 0 of BQMF: %v %v", m, err)
	}
	if _, err := MemoryOf(MethodBQMF, 5, 5, -1); !errors.As(err, &option) {
		t.Errorf("rank -1: %v", err)
	}
	if _, err := MemoryOf(MethodNMF, 5, 5, 1, WithLevels(8)); !errors.As(err, &option) {
		t.Errorf("levels of NMF: %v", err)
	}
	if _, err := MemoryOf(Method(9), 5, 5, 1); !errors.As(err, &option) {
		t.Errorf("no such method: %v", err)
	}
	if _, err := MemoryOf(MethodQMF, 0, 5, 1); !errors.As(err, &shape) {
		t.Errorf("no rows: %v", err)
	}
}

// TestMemoryOfState: the size told of a checkpoint is that of the states of a fit.
func TestMemoryOfState(t *testing.T) {
	x := lognormal(150, 40)
	type kind struct {
		model  string
		method Method
		opts   []FitOption
	}
	for _, c := range some([]kind{
		{"NMF", MethodNMF, nil},
		{"NMF", MethodNMF, []FitOption{WithUpdates(UpdatesMultiplicative)}},
		{"NMF", MethodNMF, []FitOption{WithValidation(0.1)}},
		{"QMF", MethodQMF, nil},
		{"QMF", MethodQMF, []FitOption{WithStart(StartUniform)}},
		{"QMF", MethodQMF, []FitOption{WithLevels(32), WithValidation(0.1)}},
		{"QMFQ", MethodQMFQ, []FitOption{WithStart(StartUniform)}},
		{"QMFQ", MethodQMFQ, []FitOption{WithStart(StartUniform), WithLevels(32), WithValidation(0.1)}},
		{"NMF", MethodNMF, []FitOption{WithUpdates(UpdatesMultiplicative), WithRestarts(2)}},
		{"QMF", MethodQMF, []FitOption{WithRestarts(2)}},
		{"BQMF", MethodBQMF, nil},
	}, 0, 2, 4, 5, 7, 8, 10) {
		opts := append([]FitOption{WithEpochs(4)}, c.opts...)
		told, err := MemoryOf(c.method, x.Rows, x.Cols, 6, opts...)
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		keep := func(state []byte) error { most = max(most, len(state)); return nil }
		if _, _, _, _, _, err := fitAny(context.Background(), c.model, x, 6, append(opts, WithCheckpoint(1, keep))...); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes told, %d at most", c.model, told.State, most)
		// Names, counts and losses are another two thousand; components of a BQMF fade, and none of these rows has neighbours or samples that are alike,
		// whose places and weights are in no file.
		neighbours := float64(8 * (x.Rows*(2*x.Cols+20) + (37+6+8)*x.Cols))
		if got := float64(told.State) + 2000; got < float64(most) || got > 1.2*float64(most) && (c.method != MethodBQMF || got-neighbours > 1.8*float64(most)) {
			t.Errorf("%s, %d options: %d bytes told, %d at most", c.model, len(c.opts), told.State, most)
		}
	}
}

// TestMemoryOfAbsurd: what no fit could hold is counted, too.
func TestMemoryOfAbsurd(t *testing.T) {
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		small, err := MemoryOf(method, 10, 10, 2)
		if err != nil {
			t.Fatal(err)
		}
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
