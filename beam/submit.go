package beam

// This file runs a pipeline, by Prism, the runner of Beam's Go SDK, within this
// process, or by a job server.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
)

// Init must be called first, after flag.Parse. In a program that a runner has started as a worker, it works
// for the runner and does not return.
func Init() { sdk.Init() }

// embedded is the worker pool in this process. All pipelines that Prism runs within the process use it.
var embedded = sync.OnceValues(func() (*extworker.Loopback, error) {
	return extworker.StartLoopback(context.Background(), 0)
})

// submitting is held while a pipeline runs, because Beam reads its settings from flags.
var submitting sync.Mutex

// submit runs a pipeline to its end. If ctx ends first, it cancels the job.
func submit(ctx context.Context, runner string, p *sdk.Pipeline) error {
	submitting.Lock()
	defer submitting.Unlock()
	runner = cmp.Or(runner, "prism")
	if runner == "prism" && *jobopts.EnvironmentType == "" {
		// LOOPBACK, Beam's own environment for this, leaves a temporary file behind for every pipeline.
		pool, err := embedded()
		if err != nil {
			return err
		}
		*jobopts.EnvironmentType, *jobopts.EnvironmentConfig = "EXTERNAL", pool.EnvironmentConfig(ctx)
	}
	if *jobopts.WorkerBinary == "" {
		// The file that is staged for workers: none for workers that run already, this program for others.
		*jobopts.WorkerBinary = os.DevNull
		if kind := strings.ToUpper(*jobopts.EnvironmentType); kind != "EXTERNAL" && kind != "LOOPBACK" {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			*jobopts.WorkerBinary = self
		}
	}
	// The job has a unique name, by which it can be cancelled.
	given := *jobopts.JobName
	defer func() { *jobopts.JobName = given }()
	*jobopts.JobName = fmt.Sprintf("%s-%016x", cmp.Or(given, "quantmf"), rand.Uint64())
	_, err := sdk.Run(ctx, runner, p)
	if ctx.Err() == nil {
		return err
	}
	return errors.Join(ctx.Err(), err, cancel(context.WithoutCancel(ctx), *jobopts.JobName))
}

// cancel cancels the job with this name, if the job server has it.
func cancel(ctx context.Context, name string) error {
	if *jobopts.Endpoint == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	conn, err := grpcx.Dial(ctx, *jobopts.Endpoint, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	jobs := jobpb.NewJobServiceClient(conn)
	all, err := jobs.GetJobs(ctx, &jobpb.GetJobsRequest{})
	if err != nil {
		return err
	}
	for _, job := range all.GetJobInfo() {
		if job.GetJobName() == name {
			_, err := jobs.Cancel(ctx, &jobpb.CancelJobRequest{JobId: job.GetJobId()})
			return err
		}
	}
	return nil
}

// untilThere runs pipelines of those of n pieces of work that are missing in the store, until none is, or as
// many in a row as run allows have brought nothing. do, a DoFn, gets the number of each, a key of its own.
func untilThere(ctx context.Context, run Run, n int, there func(piece int) error, do any) error {
	missing := func() (left []int, err error) {
		for piece := range n {
			if err := there(piece); errors.Is(err, errAbsent) {
				left = append(left, piece)
			} else if err != nil {
				return nil, err
			}
		}
		return left, nil
	}
	left, err := missing()
	for failures := 0; err == nil && len(left) > 0; {
		before := len(left)
		p, s := sdk.NewPipelineWithRoot()
		sdk.ParDo0(s, do, sdk.GroupByKey(s, keys(s, left)))
		failed := submit(ctx, run.Runner, p)
		if ctx.Err() != nil {
			return fmt.Errorf("beam: stopped: %w", ctx.Err())
		}
		if left, err = missing(); err == nil && len(left) > 0 {
			if failures++; len(left) < before {
				failures = 1
			}
			if failed == nil {
				failed = errors.New("beam: the runner says that the pipeline is done, and the store that " +
					"not all of it is")
			}
			err = run.again(ctx, failures, failed)
		}
	}
	return err
}

// keys are numbers, those of shards or of pieces of work, as keys of a pipeline.
func keys(s sdk.Scope, of []int) sdk.PCollection { return sdk.ParDo(s, &eachKey{of}, sdk.Impulse(s)) }

// eachKey emits the numbers, each with a 0.
type eachKey struct{ Keys []int }

func (f *eachKey) ProcessElement(_ []byte, emit func(key, _ int)) {
	for _, key := range f.Keys {
		emit(key, 0)
	}
}

// numbers are those from 0 to n-1.
func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
