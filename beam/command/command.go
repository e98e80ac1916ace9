// Package command is the program quantmf-beam, which makes fits of quantmf over shards and places new samples
// in blocks on Apache Beam. It is a package so that programs can import more runners or file systems than
// quantmf-beam itself; the documentation of package beam shows one.
package command

// This file holds the list of commands, and the flags that say where pipelines run.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/cli"
)

// Run is the whole program. args are the arguments after its name; it returns the exit code, which is that of
// quantmf. Where a runner has started the program as a worker, with flags and no command, Run works for that
// runner and does not return.
func Run(args []string, out, errOut io.Writer) int {
	app := &cli.App{Name: "quantmf-beam", Lines: true,
		Introduction: "quantmf-beam fits matrices with quantmf by pipelines of Apache Beam.",
		Commands: []cli.Command{
			{Name: "fit", Does: "fit a matrix over shards of its rows",
				New: fitProgram},
			{Name: "transform", Does: "place new samples in a model's components, by the block",
				New: transformProgram},
			{Name: "rank", Does: "choose a number of components by hidden cells",
				New: rankProgram},
			{Name: "workers", Does: "wait for runners that want workers (-environment_type EXTERNAL)",
				New: workersProgram},
		}}
	help := []string{"-h", "-help", "--help"}
	switch {
	case len(args) > 0 && args[0] == "help":
		args = help[:1]
	case len(args) > 0 && strings.HasPrefix(args[0], "-") && !slices.Contains(help, args[0]):
		if err := flag.CommandLine.Parse(args); err != nil {
			return cli.Usage
		}
		beam.Init()
		fmt.Fprintln(errOut, "quantmf-beam: no command, and no worker's flags")
		return cli.Usage
	}
	return app.Run(args, cli.Streams{In: os.Stdin, Out: out, Err: errOut})
}

const matrixHelp = `MATRIX is what quantmf takes ("quantmf fit -h"); features are in rows, samples in
	columns. The driver reads it whole.`

// runnerFlags are the flags that say how pipelines are run.
type runnerFlags struct {
	beam.Run
	store, log string
	given      map[string]bool // the flags of Beam that were given
}

func newRunnerFlags() runnerFlags {
	f := runnerFlags{log: "none", given: map[string]bool{}}
	f.Runner, f.Retries = "prism", 3
	return f
}

// passed is a flag of Beam that is passed on.
func (f *runnerFlags) passed(name, value, help string) *cli.Flag {
	return cli.Func(name, value, help, func(text string) error {
		f.given[name] = true
		return flag.CommandLine.Set(name, text)
	})
}

const asBeam = "as Beam has it"

func (f *runnerFlags) group() cli.Group {
	return cli.Group{Heading: "Where it runs", Flags: []*cli.Flag{
		cli.Text(&f.Runner, "runner", "NAME", `prism: within this process; universal: by the job server at
			-endpoint, of Flink, Spark or a Prism elsewhere; or another runner that the program was built
			with (default prism)`),
		f.passed("endpoint", "HOST:PORT", "the job server"),
		cli.Text(&f.store, "store", "FOLDER", `where matrix, state and results lie, as all workers see it: a
			path on a file system that they share, or gs://bucket/folder (default: a temporary folder,
			removed at the end; workers in other processes of this machine see it, too)`),
		f.passed("environment_type", "DOCKER|EXTERNAL|PROCESS|LOOPBACK",
			"where workers come from, in Beam's words (default: with -runner prism this process)"),
		f.passed("environment_config", "TEXT", `of that, an image, the HOST:PORT of "quantmf-beam workers",
			or a command`),
		f.passed("worker_binary", "FILE", "what workers in containers run (default: this program)"),
		f.passed("job_name", "TEXT", asBeam), f.passed("parallelism", "N", asBeam),
		f.passed("experiments", "TEXT", asBeam),
		cli.Whole(&f.Retries, 0, "retries", "N",
			"how often in a row a pipeline may fail with nothing done (default 3)"),
		cli.Func("stall", "DURATION", `how long a round may take, such as 30m, before its pipeline is given
			up and tried again; -1ns: any time (default 0: a minute, and ten times the longest round so far)`,
			func(text string) (err error) {
				if f.Stall, err = time.ParseDuration(text); err != nil {
					err = errors.New("not a time such as 30m")
				}
				return err
			}),
		f.logFlag(),
	}}
}

func (f *runnerFlags) logFlag() *cli.Flag {
	return cli.Choice(&f.log, "log", "debug|info|warn|error|none",
		"the least of what is shown of Beam's own log (default none)")
}

// with checks the flags, prepares this process to submit pipelines, and calls do with the store and a context
// that ends at an interruption.
func (f *runnerFlags) with(do func(ctx context.Context, store *beam.Store) error) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	if f.Retries == 0 {
		f.Retries = -1
	}
	if f.Runner == "universal" && !f.given["endpoint"] {
		return cli.UsageError("-runner " + f.Runner + ": give the -endpoint of its job server, too")
	}
	if !builtIn(f.Runner) {
		return cli.UsageError("-runner " + f.Runner + ": this program has no such runner")
	}
	initialise(f.log)
	folder := f.store
	if folder == "" {
		temporary, err := os.MkdirTemp("", "quantmf-beam-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		folder = temporary
	}
	store, err := beam.OpenStore(ctx, folder)
	if err != nil {
		return err
	}
	defer store.Close()
	return do(ctx, store)
}

// again tells of a pipeline that failed and is tried again.
func again(in *cli.Input, s cli.Streams) func(error) {
	return func(err error) { cli.NewProgress(in.Progress, s.Err).Remark("trying again: " + cause(err)) }
}

// builtIn tells whether the program has a runner of this name. Beam has no list of them, and ends the process
// where a pipeline is to be run by one that it does not know; but it panics where a name is registered twice.
func builtIn(runner string) (known bool) {
	defer func() { known = recover() != nil }()
	sdk.RegisterRunner(runner, func(context.Context, *sdk.Pipeline) (sdk.PipelineResult, error) {
		return nil, errors.New("there is no runner " + runner)
	})
	return
}

// initialise prepares this process to submit pipelines or to work for a runner. The log of Beam goes to
// standard error.
func initialise(level string) {
	if level != "none" {
		log.LogLevel = level
	}
	beam.Init()
	if level == "none" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
}

// cause returns the last line of an error. Runners put the stages of a pipeline before the error itself.
func cause(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return lines[len(lines)-1]
}
