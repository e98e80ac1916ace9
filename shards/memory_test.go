package shards

import (
	"errors"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestMemoryOf: more of anything takes no less, more shards take less each, and what is no plan is an
// error. What is told is held against what steps take by the command's tests.
func TestMemoryOf(t *testing.T) {
	one := quantmf.WithWorkers(1)
	need := func(m quantmf.Method, d, n, rank, shards int, opts ...quantmf.FitOption) Memory {
		t.Helper()
		got := must(MemoryOf(m, d, n, rank, shards, append(opts, one)...))(t)
		if min(got.Plan, got.Rows, got.Step, got.Reduce, got.Finish, got.Round) <= 0 {
			t.Errorf("%v: %+v", m, got)
		}
		return got
	}
	if updates, newton := need(quantmf.MethodNMF, 2000, 4000, 10, 2),
		need(quantmf.MethodNMF, 2000, 4000, 10, 2,
			quantmf.WithUpdates(quantmf.UpdatesNewton)); newton.Step <= updates.Step ||
		newton.Reduce <= updates.Reduce || newton.Round <= updates.Round {
		t.Errorf("Newton's method takes %+v, updates %+v", newton, updates)
	}
	for _, m := range []quantmf.Method{quantmf.MethodNMF, quantmf.MethodQMF} {
		base := need(m, 2000, 4000, 10, 2)
		for what, more := range map[string]Memory{"d": need(m, 4000, 4000, 10, 2),
			"n": need(m, 2000, 8000, 10, 2), "rank": need(m, 2000, 4000, 20, 2),
			"cells held out": need(m, 2000, 4000, 10, 2, quantmf.WithValidation(0.1))} {
			// where cells are held out a start takes no room for rows that are mostly zero
			if more.Plan < base.Plan*99/100 || more.Step <= base.Step || more.Reduce < base.Reduce ||
				more.Finish < base.Finish || more.Round <= base.Round {
				t.Errorf("%v: more of %s takes %+v, less %+v", m, what, more, base)
			}
		}
		if more := need(m, 2000, 4000, 10, 8); more.Rows > base.Rows*26/100 || more.Step >= base.Step {
			t.Errorf("%v: over 8 shards %+v, over 2 %+v", m, more, base)
		}
		if base.Rows < 8*1000*4000 || base.Rows > 8*1016*4000 {
			t.Errorf("%v: rows take %d", m, base.Rows)
		}
		if need(m, 1<<30, 1<<30, 1<<30, 2).Step < 1<<60 {
			t.Errorf("%v: a step beyond reason is told to be small", m)
		}
	}
	var option *quantmf.OptionError
	for name, err := range map[string]error{
		"method": second(MemoryOf(quantmf.MethodQMFQ, 100, 100, 2, 1)),
		"shards": second(MemoryOf(quantmf.MethodQMF, 100, 100, 2, 8)),
		"WithUpdates": second(MemoryOf(quantmf.MethodNMF, 100, 100, 2, 1,
			quantmf.WithUpdates(quantmf.UpdatesNewton),
			quantmf.WithLoss(quantmf.Beta(3)))),
		"WithBatch": second(MemoryOf(quantmf.MethodQMF, 100, 100, 2, 1, quantmf.WithBatch(99))),
		"rank":      second(MemoryOf(quantmf.MethodNMF, 100, 100, 0, 1)),
	} {
		if !errors.As(err, &option) || option.Option != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ Memory, err error) error { return err }
