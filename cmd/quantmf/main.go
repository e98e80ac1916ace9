// Command quantmf learns one increasing map per feature jointly with a low-rank
// factorisation of a matrix. "quantmf -h" says what it can do.
package main

// This file holds the list of subcommands and the one place where an error
// becomes a message and an exit code.

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

func main() {
	endCleanly()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBadInput    = 3
	exitUnconverged = 4
	exitInterrupted = 130
)

// streams are the standard input, output and error of a subcommand.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is a subcommand. Its run returns flag.ErrHelp where help was asked for.
type command struct {
	name, does, usage string
	run               func(args []string, s streams) error
}

var commands = []command{
	{"fit", "fit a matrix; write the model, its factors and scales, and a report", fitUsage, fit},
	{"transform", "place new samples in a model's components", transformUsage, transform},
	{"score", "print how well a model fits samples", scoreUsage, score},
	{"reconstruct", "write the fitted matrix T(UV), missing values filled in", reconstructUsage, reconstruct},
	{"impute", "fill in missing values, and say how well they are predicted", imputeUsage, impute},
	{"normalize", "bring samples to the scales of a qmfq model", normalizeUsage, normalize},
	{"inspect", "print what is in a model: scales, features and samples of components", inspectUsage,
		inspect},
	{"report", "draw a model and its matrix as a page of figures", reportUsage, writeReport},
	{"rank", "compare numbers of components on hidden cells", rankUsage, rank},
	{"shard", "fit a matrix in steps that many machines share", shardUsage, shard},
	{"convert", "rewrite a matrix in another format", convertUsage, convert},
	{"version", "print the version", versionUsage, printVersion},
}

const versionUsage = `usage: quantmf version

Prints the version of quantmf, the version of Go it was built with, and the
platform.
`

func printVersion(args []string, s streams) error {
	if len(args) > 0 {
		if isHelp(args[0]) || args[0] == "help" {
			return flag.ErrHelp
		}
		return usageError("version takes no arguments")
	}
	_, err := fmt.Fprintln(s.out, "quantmf", version(), runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	return err
}

// released is the version of a program that .ci/release made.
var released string

// version returns the version of the release, or that of the module, which the Go tool stamps.
func version() string {
	if released != "" {
		return released
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

// introduction is the first line of the help.
const introduction = "quantmf learns how to bend the scale of every feature of a matrix so that few " +
	"components explain it."

func overview() string {
	s := introduction + "\n\nusage:\n"
	for _, c := range manual() {
		s += fmt.Sprintf("  quantmf %-11s  %s\n", c.name, c.does)
	}
	return s + "\n\"quantmf COMMAND -h\" prints the help of a command, \"quantmf help -markdown\" the " +
		"whole manual.\n"
}

func isHelp(arg string) bool {
	switch arg {
	case "-h", "-help", "--help":
		return true
	}
	return false
}

// run is the whole program: it returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errOut, overview())
		return exitUsage
	}
	if isHelp(args[0]) {
		fmt.Fprint(out, overview())
		return exitDone
	}
	if args[0] == "--version" || args[0] == "-version" {
		args = []string{"version"}
	}
	if c, is := lookUp(args[0]); is {
		err := c.run(args[1:], streams{in, wholeWriter{out}, errOut})
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, c.help())
			return exitDone
		}
		if err != nil {
			fmt.Fprintf(errOut, "quantmf %s: %s\n", c.name, table.Shown(err.Error()))
		}
		code := exitCode(err)
		if code == exitUsage {
			fmt.Fprintf(errOut, "\"quantmf %s -h\" says how to use it.\n", c.name)
		}
		return code
	}
	fmt.Fprintf(errOut, "quantmf: there is no command %q: \"quantmf -h\" lists them\n", args[0])
	return exitUsage
}

// usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// interrupted is a run that was told to stop.
type interrupted string

func (e interrupted) Error() string { return string(e) }

func exitCode(err error) int {
	var usage usageError
	var stopped interrupted
	var fault *table.Error
	var unread *inputError
	var damaged *quantmf.FormatError
	var unconverged *quantmf.ConvergenceError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &stopped):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &fault), errors.As(err, &unread), errors.As(err, &damaged):
		return exitBadInput
	case errors.As(err, &unconverged):
		return exitUnconverged
	}
	return exitFailed
}

// inputError is an input that cannot be opened.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// inFlags replaces names of the package in a message by names of flags.
var inFlags = strings.NewReplacer("WithMissingValues", "-missing of fit", "WithLoss(Frobenius)",
	"-loss frobenius of fit", "another x", "another matrix",
	"the row has no observed cell", "all its values are missing: remove the feature",
	"the column has no observed cell", "all its values are missing: remove the sample")

// explain puts an error of the package into the words of the command: its
// options are flags, its rows and columns are features and samples of t.
func explain(err error, t *table.Table, flags map[string]string) error {
	var option *quantmf.OptionError
	var data *quantmf.DataError
	var unconverged *quantmf.ConvergenceError
	switch {
	case errors.As(err, &option):
		name, ok := flags[option.Option]
		switch {
		case !ok:
			return usageError(spoken.Replace(err.Error()))
		// which have no value to speak of
		case slices.Contains([]string{"missing", "strict", "checkpoint", "resume"}, name):
			return usageError(fmt.Sprintf("-%s: %s", name, spoken.Replace(option.Bound)))
		}
		return usageError(fmt.Sprintf("-%s %s: %s", name, spokenValue(option.Value),
			spoken.Replace(option.Bound)))
	case errors.As(err, &data):
		problem := inFlags.Replace(data.Problem)
		if data.Value == data.Value {
			problem = fmt.Sprintf("%g: %s", data.Value, problem)
		}
		if data.Row >= 0 && t.Absent(data.Row) {
			return t.Error(data.Row, -1,
				"the matrix lacks this feature, and the model takes none for missing: -allow missing is "+
					"for models that were fitted with -missing")
		}
		return t.Error(data.Row, data.Col, problem)
	case errors.As(err, &unconverged) && unconverged.Row >= 0:
		return fmt.Errorf("feature %q: %w", t.Features[unconverged.Row], err)
	}
	return err
}
