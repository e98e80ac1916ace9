package beam

// This file holds the graph of a fit. R rounds of a fit over S shards are unrolled into one
// pipeline. A round is
//
//	shards, a key each → GroupByKey → step → GroupByKey on one key → reduce → shards of the next.
//
// The elements are the numbers of shards, a few bytes each. Rows, state, V and its parts stay in the store,
// where a step finds them by the numbers of its round and shard. The first GroupByKey lets a runner give
// shards to different workers; the second is the barrier of the round. There are no side inputs, because not
// every runner has them for a stage in Go. There is no Combine, because the runner would choose the order of
// its sums, and with it their bits; reduce adds the parts in a fixed order.
//
// A runner may repeat a step or a reduction, after a failure or because a worker seemed slow. It
// then writes the same bytes again.

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/quantmf/quantmf/shards"
)

func init() {
	// Beam's generic registrations would save reflection for each element. There are few elements, and the
	// registrations take a minute to compile.
	sdk.RegisterDoFn(&eachKey{})
	sdk.RegisterDoFn(&step{})
	sdk.RegisterDoFn(&reduce{})
}

// unroll returns a pipeline of count rounds from first on. When the fit is over, the further rounds have no
// shards and pass nothing on.
func unroll(in task, shards, first, count int) *sdk.Pipeline {
	p, s := sdk.NewPipelineWithRoot()
	next := keys(s, numbers(shards))
	for round := first; round < first+count; round++ {
		s := s.Scope(fmt.Sprintf("round %d", round))
		done := sdk.ParDo(s, &step{Task: in, Round: round}, sdk.GroupByKey(s, next))
		next = sdk.ParDo(s, &reduce{Task: in, Round: round, Shards: shards}, sdk.GroupByKey(s, done))
	}
	return p
}

// task tells a worker which fit it works for, and how many bytes of rows it may keep.
type task struct {
	Store, Call string
	Room        int64
}

func (t task) acquire() (*shards.Fit, func(), error) {
	return acquire(fitKey{t.Store, t.Call}, t.Room)
}

// step makes the steps of a bundle's shards. The runner decides how many shards are in a
// bundle: Prism puts all of them into one. So the shards of a bundle are collected and worked on
// side by side, as many at a time as there are processors.
type step struct {
	Task  task
	Round int

	shards []int
}

func (f *step) StartBundle(func(int, int)) { f.shards = f.shards[:0] }

func (f *step) ProcessElement(shard int, _ func(*int) bool, _ func(int, int)) {
	f.shards = append(f.shards, shard)
}

func (f *step) FinishBundle(ctx context.Context, emit func(int, int)) error {
	if len(f.shards) == 0 {
		return nil
	}
	fit, release, err := f.Task.acquire()
	if err != nil {
		return err
	}
	defer release()
	err = sideBySide(f.shards, func(shard int) error {
		if err := fit.Step(ctx, f.Round, shard); err != nil {
			return fmt.Errorf("round %d, shard %d: %w", f.Round, shard, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, shard := range f.shards {
		emit(0, shard)
	}
	return nil
}

// sideBySide does all of a bundle, as many at a time as there are processors, and returns the first error.
func sideBySide(bundle []int, do func(int) error) error {
	errs := make([]error, len(bundle))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, of := range bundle {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			errs[i] = do(of)
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// reduce makes the next V from the parts, and emits the shards of the next round unless the fit is over.
type reduce struct {
	Task          task
	Round, Shards int
}

func (f *reduce) ProcessElement(ctx context.Context, _ int, parts func(*int) bool,
	emit func(int, int)) error {
	var got []int
	for shard := 0; parts(&shard); {
		got = append(got, shard)
	}
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != f.Shards {
		return fmt.Errorf("round %d: the runner brought the parts of %d shards, not %d", f.Round, len(got),
			f.Shards)
	}
	fit, release, err := f.Task.acquire()
	if err != nil {
		return err
	}
	defer release()
	next, err := fit.Reduce(ctx, f.Round)
	if err != nil {
		return fmt.Errorf("round %d: %w", f.Round, err)
	}
	if !next.Over {
		for shard := range f.Shards {
			emit(shard, 0)
		}
	}
	return nil
}
