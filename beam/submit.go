package beam

// This file holds how a pipeline is run: by Prism, the runner of Beam's Go SDK, within this
// process, or by a job server elsewhere.

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
)

// Init is called before all else, after flag.Parse: it makes a program that a runner has started as
// a worker one that does not return from here.
func Init() { sdk.Init() }

// embedded is the worker pool in this process, which every pipeline run by Prism within it uses.
var embedded = sync.OnceValues(func() (*extworker.Loopback, error) {
	return extworker.StartLoopback(context.Background(), 0)
})

// submit runs a pipeline to its end.
func submit(ctx context.Context, runner string, p *sdk.Pipeline) error {
	if runner == "" {
		runner = "prism"
	}
	if runner == "prism" && *jobopts.EnvironmentType == "" {
		// Beam's own way, LOOPBACK, leaves a temporary file behind for every pipeline.
		pool, err := embedded()
		if err != nil {
			return err
		}
		*jobopts.EnvironmentType, *jobopts.EnvironmentConfig = "EXTERNAL", pool.EnvironmentConfig(ctx)
	}
	if *jobopts.WorkerBinary == "" {
		// What is staged for workers: nothing for those that are there, this program for others.
		*jobopts.WorkerBinary = os.DevNull
		if !strings.EqualFold(*jobopts.EnvironmentType, "EXTERNAL") {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			*jobopts.WorkerBinary = self
		}
	}
	_, err := sdk.Run(ctx, runner, p)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return err
}
