// Package command is the program quantmf-beam, which makes fits of quantmf over shards and places new samples
// in blocks on Apache Beam. It is a package so that programs can import more runners or file systems than
// quantmf-beam itself; the documentation of package beam shows one.
package command

// This file holds the list of subcommands, the flags that they share, and the function that turns an error
// into a message and an exit code.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
)

// The exit codes are those of quantmf.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBadInput    = 3
	exitUnconverged = 4
	exitInterrupted = 130
)

type subcommand struct {
	name, does, usage string
	run               func(ctx context.Context, args []string, s streams) error
}

// streams are the outputs of a subcommand.
type streams struct{ out, err io.Writer }

var subcommands []subcommand

func init() {
	subcommands = []subcommand{
		{"fit", "fit a matrix over shards of its rows", fitUsage, fit},
		{"transform", "place new samples in a model's components, by the block", transformUsage, transform},
		{"rank", "choose a number of components by hidden cells", rankUsage, rank},
		{"workers", "wait for runners that want workers (-environment_type EXTERNAL)", workersUsage, workers},
	}
}

func overview() string {
	s := "quantmf-beam fits matrices with quantmf by pipelines of Apache Beam.\n\nusage:\n"
	for _, c := range subcommands {
		s += fmt.Sprintf("  quantmf-beam %-9s  %s\n", c.name, c.does)
	}
	return s + "\n\"quantmf-beam COMMAND -h\" prints the help of a command.\n"
}

// Run is the whole program. args are the arguments after its name; it returns the exit code. Where a runner
// has started the program as a worker, with flags and no command, Run works for that runner and does not
// return.
func Run(args []string, out, errOut io.Writer) int {
	asked := len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0])
	switch {
	case asked:
		fmt.Fprint(out, overview())
		return exitDone
	case len(args) == 0:
		fmt.Fprint(errOut, overview())
		return exitUsage
	case strings.HasPrefix(args[0], "-"):
		if err := flag.CommandLine.Parse(args); err != nil {
			return exitUsage
		}
		beam.Init()
		fmt.Fprintln(errOut, "quantmf-beam: no command, and no worker's flags")
		return exitUsage
	}
	for _, c := range subcommands {
		if c.name != args[0] {
			continue
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err := c.run(ctx, args[1:], streams{out, errOut})
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, c.usage)
			return exitDone
		}
		if err != nil {
			fmt.Fprintf(errOut, "quantmf-beam %s: %s\n", c.name, shown(err))
		}
		code := exitCode(err)
		if code == exitUsage {
			fmt.Fprintf(errOut, "\"quantmf-beam %s -h\" says how to use it.\n", c.name)
		}
		return code
	}
	fmt.Fprintf(errOut, "quantmf-beam: there is no command %q: \"quantmf-beam -h\" lists them\n", args[0])
	return exitUsage
}

// usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// inputError is an input that cannot be read.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	var option *quantmf.OptionError
	var fault *table.Error
	var unread inputError
	var damaged *quantmf.FormatError
	var unconverged *quantmf.ConvergenceError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &option):
		return exitUsage
	case errors.As(err, &fault), errors.As(err, &unread), errors.As(err, &damaged):
		return exitBadInput
	case errors.As(err, &unconverged):
		return exitUnconverged
	}
	return exitFailed
}

// runnerFlags are the flags that say how pipelines are run.
type runnerFlags struct {
	beam.Run
	store, log string
	given      map[string]bool // the flags of Beam that were given
}

const runnerHelp = `Where it runs
  -runner NAME      prism: within this process; universal: by the job server at
                    -endpoint, of Flink, Spark or a Prism elsewhere; or another
                    runner that the program was built with (default prism)
  -endpoint HOST:PORT
                    the job server
  -store FOLDER     where matrix, state and results lie, as all workers see it: a
                    path on a file system that they share, or gs://bucket/folder
                    (default: a temporary folder, removed at the end; workers in
                    other processes of this machine see it, too)
  -environment_type DOCKER|EXTERNAL|PROCESS|LOOPBACK
  -environment_config TEXT
                    where workers come from, in Beam's words: an image, the
                    HOST:PORT of "quantmf-beam workers", or a command
                    (default: with -runner prism this process)
  -worker_binary FILE
                    what workers in containers run (default: this program)
  -job_name, -parallelism, -experiments
                    as Beam has them
  -retries N        how often in a row a pipeline may fail with nothing done (default 3)
  -stall DURATION   how long a round may take, such as 30m, before its pipeline is
                    given up and tried again; -1ns: any time (default 0: a minute,
                    and ten times the longest round so far)
  -log debug|info|warn|error|none
                    the least of what is shown of Beam's own log (default none)
`

// passed are the flags of Beam that a command passes on.
var passed = []string{"endpoint", "environment_type", "environment_config", "worker_binary", "job_name",
	"parallelism", "experiments"}

func (f *runnerFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.Runner, "runner", "prism", "")
	set.StringVar(&f.store, "store", "", "")
	set.IntVar(&f.Retries, "retries", 3, "")
	set.DurationVar(&f.Stall, "stall", 0, "")
	set.StringVar(&f.log, "log", "none", "")
	f.given = map[string]bool{}
	for _, name := range passed {
		set.Func(name, "", func(value string) error {
			if value == "" {
				return errors.New("the value is empty")
			}
			f.given[name] = true
			return flag.CommandLine.Set(name, value)
		})
	}
}

// begin checks the flags, and prepares this process to submit pipelines. It returns the store, and a function
// to call at the end.
func (f *runnerFlags) begin(ctx context.Context) (*beam.Store, func(), error) {
	if err := checkLevel(f.log); err != nil {
		return nil, nil, err
	}
	if f.Retries < 0 {
		return nil, nil, usageError(fmt.Sprintf("-retries %d: must be at least 0", f.Retries))
	}
	if f.Retries == 0 {
		f.Retries = -1
	}
	if f.Runner == "universal" && !f.given["endpoint"] {
		return nil, nil, usageError("-runner " + f.Runner + ": give the -endpoint of its job server, too")
	}
	if !builtIn(f.Runner) {
		return nil, nil, usageError("-runner " + f.Runner + ": this program has no such runner")
	}
	initialise(f.log)
	folder, clean := f.store, func() {}
	if folder == "" {
		temporary, err := os.MkdirTemp("", "quantmf-beam-*")
		if err != nil {
			return nil, nil, err
		}
		folder, clean = temporary, func() { os.RemoveAll(temporary) }
	}
	store, err := beam.OpenStore(ctx, folder)
	if err != nil {
		clean()
		return nil, nil, err
	}
	return store, func() { store.Close(); clean() }, nil
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

func checkLevel(level string) error {
	if !slices.Contains([]string{"debug", "info", "warn", "error", "none"}, level) {
		return usageError("-log " + level + ": must be one of debug, info, warn, error, none")
	}
	return nil
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

// shown is an error as it is printed: of runners, with its lines, and no name in it may control the terminal.
func shown(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = table.Shown(line)
	}
	return strings.Join(lines, "\n")
}

// arguments parses args. Flags may stand before, between and after the words, of which there must be one for
// each of wanted.
func arguments(set *flag.FlagSet, args []string, wanted ...string) ([]string, error) {
	set.SetOutput(io.Discard)
	var words []string
	for len(args) > 0 {
		if err := set.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError(err.Error())
		}
		args = set.Args()
		if len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	if err := flags.Empty(set); err != nil {
		return nil, usageError(err.Error())
	}
	switch {
	case len(words) > len(wanted):
		return nil, usageError(fmt.Sprintf("%s is too much: wanted %s", words[len(wanted)],
			strings.Join(wanted, " ")))
	case len(words) < len(wanted):
		return nil, usageError("no " + wanted[len(words)] + " given")
	}
	return words, nil
}
