package command

// This file holds "quantmf-beam workers": a pool of workers in one process, for runners that get their
// workers from a pool.

import (
	"context"
	"flag"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
)

const workersUsage = `usage: quantmf-beam workers [-port N] [-log LEVEL]

Waits on a port of localhost for runners that want workers, and works for them
in this process until it is interrupted: one beside every task manager of Flink,
say, for fits with -environment_type EXTERNAL -environment_config localhost:N. It
must be the same program as that which fits.

  -port N           the port (default 50000)
  -log LEVEL        as in fit, on standard error (default none); what workers log
                    goes to the runner as well
`

func workers(ctx context.Context, args []string, s streams) error {
	set := flag.NewFlagSet("workers", flag.ContinueOnError)
	port := set.Int("port", 50000, "")
	level := set.String("log", "none", "")
	if _, err := arguments(set, args); err != nil {
		return err
	}
	if err := checkLevel(*level); err != nil {
		return err
	}
	initialise(*level)
	pool, err := extworker.StartLoopback(ctx, *port)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.err, "workers wait at", pool.EnvironmentConfig(ctx))
	<-ctx.Done()
	return pool.Stop(context.Background())
}
