// Package cli is what the commands quantmf and quantmf-beam share. A [Program] declares what a command takes:
// from one declaration of a flag come its parsing, the help, the manual page, Markdown and the completion of
// shells. Beside that the package has the reading of matrices, outputs that are written whole or not at all,
// progress, interrupts, exit codes, and the words in which errors of the package are told.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// Streams are the standard input, output and error of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// App is a program of several commands.
type App struct {
	Name         string
	Introduction string // one line
	Lines        bool   // errors may have several lines
	Version      string
	Commands     []Command
}

// Command is one of them.
type Command struct {
	Name, Does string
	New        func() *Program // for one run: its flags set variables of its own
}

// Program is what a command takes, and does.
type Program struct {
	Usage    []string // lines of what stands behind the name of the command
	About    string   // paragraphs before the flags
	Groups   []Group
	Short    [][2]string // names of the flags that -h explains, each in a few words; none: it explains all
	After    string      // paragraphs after them
	Examples [][2]string // command lines, and what each is for; "" where that is clear
	Words    []string    // the arguments that are no flags; one in brackets may be left out
	Complete []string    // what a shell completes arguments to, nil for files
	Run      func(words []string, s Streams) error
}

// Exit codes.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2
	BadInput    = 3
	Unconverged = 4
	Interrupted = 130
)

// UsageError is an error in the command line.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// Usagef is fmt.Errorf of a UsageError.
func Usagef(format string, args ...any) error { return UsageError(fmt.Sprintf(format, args...)) }

// StoppedError is a run that was told to stop.
type StoppedError string

func (e StoppedError) Error() string { return string(e) }

// InputError is an input that cannot be read.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// errHelp asks for the help of a command, errHelpAll for all of it.
var errHelp, errHelpAll = errors.New("help"), errors.New("all of the help")

// ExitCode returns the code of an error.
func ExitCode(err error) int {
	is := func(target any) bool { return errors.As(err, target) }
	switch {
	case err == nil:
		return Done
	case is(new(StoppedError)), errors.Is(err, context.Canceled):
		return Interrupted
	case is(new(UsageError)), is(new(*quantmf.OptionError)):
		return Usage
	case is(new(*table.Error)), is(new(*InputError)), is(new(*quantmf.FormatError)):
		return BadInput
	case is(new(*quantmf.ConvergenceError)):
		return Unconverged
	}
	return Failed
}

// Run runs the command that args name, and returns the exit code.
func (a *App) Run(args []string, s Streams) int {
	switch {
	case len(args) == 0:
		fmt.Fprint(s.Err, a.overview())
		return Usage
	case isHelp(args[0]):
		fmt.Fprint(s.Out, a.overview())
		return Done
	case args[0] == "--version" || args[0] == "-version":
		args = []string{"version"}
	}
	c, is := a.lookUp(args[0])
	if !is {
		fmt.Fprintf(s.Err, "%s: there is no command %q: \"%s -h\" lists them\n", a.Name, args[0], a.Name)
		return Usage
	}
	s.Out = wholeWriter{s.Out}
	p := c.New()
	words, err := p.Parse(c.Name, args[1:])
	if err == nil {
		err = p.Run(words, s)
	}
	switch {
	case errors.Is(err, errHelp) && len(p.Short) > 0:
		fmt.Fprint(s.Out, a.short(c.Name, p))
		return Done
	case errors.Is(err, errHelp), errors.Is(err, errHelpAll):
		fmt.Fprint(s.Out, a.text(c))
		return Done
	}
	if err != nil {
		lines := []string{err.Error()}
		if a.Lines {
			lines = strings.Split(lines[0], "\n")
		}
		for i, line := range lines {
			lines[i] = table.Shown(line) // no name in it may speak to the terminal
		}
		fmt.Fprintf(s.Err, "%s %s: %s\n", a.Name, c.Name, strings.Join(lines, "\n"))
	}
	code := ExitCode(err)
	if code == Usage {
		fmt.Fprintf(s.Err, "\"%s %s -h\" says how to use it.\n", a.Name, c.Name)
	}
	return code
}

func isHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

// lookUp returns the command of a name.
func (a *App) lookUp(name string) (Command, bool) {
	i := slices.IndexFunc(a.Commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return a.Commands[i], true
}

// wholeWriter returns an error if a write takes less than it was given without saying so.
type wholeWriter struct{ io.Writer }

func (w wholeWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// oneMachineCells is the number of cells below which one machine is sooner: an epoch of a QMF takes two
// seconds of one core there, and its start, which is not split, longer than its epochs.
const oneMachineCells = 2e7

// OneMachine says that a fit of d × n by a method, nmf or qmf, over shards is made sooner on one machine; ""
// where it need not be. docs/scale.md has the measurements.
func OneMachine(method string, d, n, rank int) string {
	if float64(d)*float64(n) >= oneMachineCells {
		return ""
	}
	return fmt.Sprintf("%d × %d cells are few: one machine is sooner (quantmf fit -method %s -k %d)", d, n,
		method, rank)
}
