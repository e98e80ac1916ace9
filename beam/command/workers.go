package command

// This file holds "quantmf-beam workers": a pool of workers in one process, for runners that get their
// workers from a pool.

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
	"github.com/quantmf/quantmf/internal/cli"
)

func workersProgram() *cli.Program {
	f, port := newRunnerFlags(), 50000
	return &cli.Program{
		Usage: []string{"[-port N] [-log LEVEL]"},
		About: `Waits on a port of localhost for runners that want workers, and works for them in this
			process until it is interrupted: one beside every task manager of Flink, say, for fits with
			-environment_type EXTERNAL -environment_config localhost:N. It must be the same program as that
			which fits.`,
		Groups: []cli.Group{{Flags: []*cli.Flag{cli.Whole(&port, 0, "port", "N", "the port (default 50000)"),
			f.logFlag()}}},
		After: "What workers log goes to the runner as well.",
		Run: func(_ []string, s cli.Streams) error {
			ctx, stop := cli.Interruptible()
			defer stop()
			initialise(f.log)
			pool, err := extworker.StartLoopback(ctx, port)
			if err != nil {
				return err
			}
			fmt.Fprintln(s.Err, "workers wait at", pool.EnvironmentConfig(ctx))
			<-ctx.Done()
			return pool.Stop(context.Background())
		},
	}
}
