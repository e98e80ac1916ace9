package beam

// This file holds the driver of a fit. It submits a pipeline of some rounds, reads from the store how far the
// fit has come, and submits the next pipeline, until the fit is over. Only the store holds the state of a
// fit, so a driver that was killed and is started again continues from there.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/shards"
)

// Run says how pipelines are run. The zero value runs them by Prism within this process.
type Run struct {
	// Runner is the name of a runner that the program imports: "prism", the default, or "universal", any
	// job server at Beam's -endpoint.
	Runner string
	// Rounds is how many rounds are unrolled into one pipeline, 0 for 20. A runner holds the graph of all of
	// them, some 10 kB a round. Submitting a pipeline takes some milliseconds on Prism, and seconds on a
	// cluster.
	Rounds int
	// Retries is how often in a row a pipeline may fail without a finished round before the fit fails, 0 for
	// 3, -1 for none. Runners such as Flink's first repeat a failed stage by themselves; Prism does not.
	Retries int
	// Memory is how many bytes of rows a worker process may keep from round to round, 0 for 4 GiB, -1 for
	// none. Rows that are not kept are read from the store in every round.
	Memory int64
	// Stall is how long a round may take before its pipeline is cancelled and tried again, -1 for any time. 0
	// stands for a minute, or ten times the longest round so far if that is more; before the first round is
	// done there is then no limit. Some runners do not notice every failure: Prism waits for ever for a
	// worker that was lost between two stages.
	Stall time.Duration
	// Progress, if not nil, is called with each round that the driver sees begin. It is called on one
	// goroutine at a time.
	Progress func(shards.Round)
	// Failed, if not nil, is called when a pipeline has failed and is tried again.
	Failed func(error)
}

const (
	defaultRounds  = 20
	defaultRetries = 3
	defaultMemory  = 4 << 30
	firstPause     = time.Second // the pause before a failed pipeline is tried again; it doubles each time
	stallLeast     = time.Minute
	stallTimes     = 10
)

// Fit finishes the fit that [shards.PlanNMF] or [shards.PlanQMF] has planned in a store, and returns the
// model. Rounds that are done are not repeated. Errors: those of the steps, in the words of the runner. When
// ctx ends, the error wraps that of ctx, and a later call with the same store continues the fit.
func Fit(ctx context.Context, store *Store, run Run) (quantmf.Model, error) {
	if err := run.settle(); err != nil {
		return nil, err
	}
	fit, err := shards.Open(store)
	if err != nil {
		return nil, err
	}
	at, err := fit.Round()
	if err != nil {
		return nil, err
	}
	in := task{Store: store.folder, Call: fmt.Sprintf("%016x", rand.Uint64()), Room: run.Memory}
	defer forget(fitKey{in.Store, in.Call}) // for workers in this process
	var longest time.Duration
	for failures := 0; !at.Over; {
		run.tell(at)
		from := at.Number
		failed := run.pipeline(ctx, fit, in, &at, &longest)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("beam: stopped in round %d: %w", at.Number, ctx.Err())
		}
		if at, err = fit.Round(); err != nil {
			return nil, errors.Join(failed, err)
		}
		if failed == nil && at.Number == from && !at.Over {
			failed = errors.New("beam: the runner says that the pipeline is done, and the store that no " +
				"round is")
		}
		if at.Number > from {
			failures = 0
		}
		if failed != nil && !at.Over {
			failures++
			if err := run.again(ctx, failures, failed); err != nil {
				return nil, fmt.Errorf("beam: round %d: %w", at.Number, err)
			}
		}
	}
	run.tell(at)
	return fit.Finish(ctx)
}

// settle checks the run and sets its defaults.
func (r *Run) settle() error {
	if r.Rounds < 0 || r.Retries < -1 || r.Stall < -1 || r.Memory < -1 {
		return fmt.Errorf("beam: Run{Rounds: %d, Retries: %d, Memory: %d, Stall: %d}: must not be "+
			"negative, but for -1 of the last three", r.Rounds, r.Retries, r.Memory, r.Stall)
	}
	r.Rounds, r.Retries = cmp.Or(r.Rounds, defaultRounds), cmp.Or(r.Retries, defaultRetries)
	r.Memory = cmp.Or(r.Memory, defaultMemory)
	return nil
}

// again waits before a failed pipeline is tried again. It returns the error if the pipeline has failed too
// often in a row.
func (r *Run) again(ctx context.Context, failures int, failed error) error {
	if failures > r.Retries {
		return failed
	}
	if r.Failed != nil {
		r.Failed(failed)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(firstPause << (failures - 1)):
		return nil
	}
}

func (r *Run) tell(at shards.Round) {
	if r.Progress != nil {
		r.Progress(at)
	}
}

// pipeline runs one pipeline, and meanwhile reports the rounds that begin. at is the round reported last, and
// longest the longest time of a round. It cancels the pipeline where a round takes too long.
func (r *Run) pipeline(ctx context.Context, fit *shards.Fit, in task, at *shards.Round,
	longest *time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began, from := time.Now(), at.Number
	done, p := make(chan error, 1), unroll(in, fit.Shards(), from, r.Rounds)
	go func() { done <- submit(ctx, r.Runner, p) }()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-look.C:
		}
		now, err := fit.Round()
		took := time.Since(began)
		if err == nil && now.Number > from {
			*longest = max(*longest, took/time.Duration(now.Number-from))
			began, from = time.Now(), now.Number
			if !now.Over {
				*at = now
				r.tell(now)
			}
			continue
		}
		limit := r.Stall
		if limit == 0 && *longest > 0 {
			limit = max(stallLeast, stallTimes**longest)
		}
		if limit > 0 && took > limit {
			stop()
			<-done
			return fmt.Errorf("no round was done for %v: the pipeline was given up", took.Round(time.Second))
		}
	}
}
