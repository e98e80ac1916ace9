package beam

// This file holds the driver of a fit: it submits a pipeline of some rounds, looks in the store how
// far the fit has come, and submits the next, until the fit is over. The store alone knows where a
// fit stands, so a driver that was killed, too, goes on where it was.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/quantmf/quantmf"
)

// Run says how pipelines are run. The zero value runs them by Prism within this process.
type Run struct {
	// Runner is the name of a runner that the program imports: "prism", the default, or "universal", any
	// job server at Beam's -endpoint.
	Runner string
	// Rounds are unrolled into one pipeline, 0 for 20. A runner holds the graph of all of them, some 10 kB
	// a round; every pipeline costs its submission, on Prism some milliseconds, on a cluster seconds.
	Rounds int
	// Retries is how often in a row a pipeline may fail with no round done before the fit fails, 0 for 3, -1
	// for never. Runners such as Flink's repeat what failed by themselves first; Prism does not.
	Retries int
	// Memory is how many bytes of rows a worker's process may keep from round to round, 0 for 4 GiB, -1 for none.
	// Rows that do not fit are read from the store in every round.
	Memory int64
	// Stall is how long a round may take before its pipeline is given up and tried again, -1 for any time. 0 is a minute
	// and at least ten times what the longest round has taken, with no limit before a first one is done. It is there for
	// runners that do not see every failure: Prism waits for ever for a worker that was lost between two stages.
	Stall time.Duration
	// Progress is called, where it is not nil, with every round that is seen to begin. It is called on one
	// goroutine at a time.
	Progress func(quantmf.Round)
	// Failed is called, where it is not nil, when a pipeline has failed and is tried again.
	Failed func(error)
}

const (
	defaultRounds  = 20
	defaultRetries = 3
	defaultMemory  = 4 << 30
	firstPause     = time.Second // before a failed pipeline is tried again; then twice as long each time
	stallLeast     = time.Minute
	stallTimes     = 10
)

// Fit brings the fit that [quantmf.PlanNMF] or [quantmf.PlanQMF] has left in a store to its end, and
// returns the model. What was done before stays done. Errors: those of the steps, in the words of
// the runner; where ctx ends, one that wraps its error, and the same call goes on later.
func Fit(ctx context.Context, store *Store, run Run) (quantmf.Model, error) {
	if err := run.settle(); err != nil {
		return nil, err
	}
	fit, err := quantmf.OpenSharded(store)
	if err != nil {
		return nil, err
	}
	at, err := fit.Round()
	if err != nil {
		return nil, err
	}
	in := task{Store: store.folder, Call: fmt.Sprintf("%016x", rand.Uint64()), Room: run.Memory}
	defer forget(fitKey{in.Store, in.Call}, nil) // where workers are in this process
	var longest time.Duration
	for failures := 0; !at.Over; {
		run.tell(at)
		from := at.Number
		failed := run.pipeline(ctx, fit, func(p *sdk.Pipeline) {
			unroll(p, in, fit.Shards(), from, run.Rounds)
		}, &at, &longest)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("beam: stopped in round %d: %w", at.Number, ctx.Err())
		}
		if at, err = fit.Round(); err != nil {
			return nil, errors.Join(failed, err)
		}
		if failed == nil && at.Number == from && !at.Over {
			failed = errors.New("beam: the runner says that the pipeline is done, and the store that no round is")
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

// settle checks the run and puts in its defaults.
func (r *Run) settle() error {
	if r.Rounds < 0 || r.Retries < -1 || r.Stall < -1 || r.Memory < -1 {
		return fmt.Errorf("beam: Run{Rounds: %d, Retries: %d, Memory: %d, Stall: %d}: must not be negative, but for -1 of the last three", r.Rounds, r.Retries, r.Memory, r.Stall)
	}
	if r.Rounds == 0 {
		r.Rounds = defaultRounds
	}
	if r.Retries == 0 {
		r.Retries = defaultRetries
	}
	if r.Memory == 0 {
		r.Memory = defaultMemory
	}
	return nil
}

// again waits until a pipeline that has failed, so often in a row, is to be tried again, or returns what
// it failed of.
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

func (r *Run) tell(at quantmf.Round) {
	if r.Progress != nil {
		r.Progress(at)
	}
}

// pipeline runs one pipeline and tells meanwhile of the rounds that begin. at is the round told last, and longest the
// time that a round has taken. It gives the pipeline up where a round takes too long.
func (r *Run) pipeline(ctx context.Context, fit *quantmf.Sharded, build func(*sdk.Pipeline), at *quantmf.Round, longest *time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		p := sdk.NewPipeline()
		build(p)
		done <- submit(ctx, r.Runner, p)
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	began, from := time.Now(), at.Number
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
