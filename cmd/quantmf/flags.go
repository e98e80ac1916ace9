package main

// This file holds what the command lines of all subcommands share.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/flags"
)

// newFlags returns an empty set of flags.
func newFlags(command string) *flag.FlagSet {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// madeFlags sees every set of flags, for the test that holds the manual against them.
var madeFlags = func(*flag.FlagSet) {}

// arguments parses args and returns the words that are no flags: one for each of wanted. Flags may stand
// before, between and behind these words. Behind -- there are words alone. A wanted word in brackets may be
// left out.
func arguments(set *flag.FlagSet, args []string, wanted ...string) ([]string, error) {
	madeFlags(set)
	var words []string
	for len(args) > 0 {
		if err := set.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError(misread(set, err))
		}
		flagged := args[:len(args)-set.NArg()]
		args = set.Args()
		if endsFlags(set, flagged) {
			words = append(words, args...)
			break
		}
		if len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	if err := flags.Empty(set); err != nil {
		return nil, usageError(err.Error())
	}
	if len(words) > len(wanted) {
		return nil, usageError(fmt.Sprintf("%s is too much: wanted %s", words[len(wanted)],
			strings.Join(wanted, " ")))
	}
	for _, w := range wanted[len(words):] {
		if !strings.HasPrefix(w, "[") {
			return nil, usageError("no " + w + " given")
		}
		words = append(words, "")
	}
	inputs := 0
	for _, w := range words {
		if w == "-" {
			inputs++
		}
	}
	if inputs > 1 && set.Name() != "convert" {
		return nil, usageError("standard input can be read only once")
	}
	return words, nil
}

// endsFlags tells whether parsed arguments end in --, which is no value of a flag.
func endsFlags(set *flag.FlagSet, args []string) bool {
	last := len(args) - 1
	if last < 0 || args[last] != "--" {
		return false
	}
	if last == 0 {
		return true
	}
	f := set.Lookup(strings.TrimLeft(args[last-1], "-"))
	return f == nil || isBool(f) || !strings.HasPrefix(args[last-1], "-")
}

// misread says in plain words what the flag package found wrong.
func misread(set *flag.FlagSet, err error) string {
	text := err.Error()
	if name, is := strings.CutPrefix(text, "flag provided but not defined: "); is {
		return "there is no flag " + name + " of " + set.Name()
	}
	if name, is := strings.CutPrefix(text, "flag needs an argument: "); is {
		return name + " needs a value"
	}
	if m := faulty.FindStringSubmatch(text); m != nil {
		problem := m[4]
		switch f := set.Lookup(m[3]); {
		case problem != "parse error" && problem != "value out of range":
		case isBool(f):
			problem = flags.OneOf([]string{"true", "false"}).Error()
		case strings.ContainsAny(f.DefValue, ".") || f.Name == "interval" || f.Name == "share":
			problem = "not a number"
		default:
			problem = "not a whole number"
		}
		return "-" + m[3] + " " + m[2] + ": " + problem
	}
	return text
}

// faulty matches the error of the flag package for a value.
var faulty = regexp.MustCompile(`(?s)^invalid (boolean )?value "(.*)" for (?:flag )?-([\w-]+): (.*)$`)

func isBool(f *flag.Flag) bool {
	b, is := f.Value.(interface{ IsBoolFlag() bool })
	return is && b.IsBoolFlag()
}

// optionFlag is a flag that becomes an option of the package, and the value that was given.
type optionFlag struct {
	flags.Option
	text  string
	value quantmf.FitOption
}

func (o *optionFlag) String() string { return o.text }

func (o *optionFlag) IsBoolFlag() bool { return o.Boolean }

func (o *optionFlag) Set(s string) (err error) {
	o.text, o.value = s, nil
	if o.Boolean && s == "false" {
		return nil
	}
	o.value, err = o.Parse(s)
	return err
}

// optionFlags returns the flags of a fit that become options, by their order in
// the help.
func optionFlags() (all []*optionFlag) {
	for _, o := range flags.Options() {
		all = append(all, &optionFlag{Option: o})
	}
	return all
}

// flagOf names the flag of every option of the package.
func flagOf(options []*optionFlag) map[string]string {
	names := map[string]string{"rank": "k", "WithCheckpoint": "checkpoint", "WithResume": "resume"}
	for _, o := range options {
		names[o.Option.Option] = o.Name
	}
	return names
}

// wholeList is a flag of whole numbers between commas.
type wholeList []int

func (l *wholeList) String() string { return "" }

func (l *wholeList) Set(s string) error {
	*l = nil
	for _, part := range strings.Split(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return errors.New("not whole numbers with commas between, such as 2,4,8")
		}
		*l = append(*l, v)
	}
	return nil
}

// memory is a flag whose value is a number of bytes.
type memory int64

func (m *memory) String() string { return "" }

func (m *memory) Set(s string) error {
	bytes, err := flags.Size(s)
	if err == nil {
		*m = memory(bytes)
	}
	return err
}

// heard is called when an interrupt has ended the context. Tests wait for it.
var heard = func() {}

// listening is the number of contexts of interruptible that are in use.
var listening atomic.Int32

// endCleanly makes an interrupt remove the temporary files before it ends the process, while no context of
// interruptible is in use.
func endCleanly() {
	told := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(told, s)
		}
	}
	go func() {
		for range told {
			if listening.Load() == 0 {
				temporary.clean()
				os.Exit(exitInterrupted)
			}
		}
	}()
}

// interruptible returns a context. The first interrupt ends the context and not the process; the second
// removes the temporary files and ends the process.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	listening.Add(1)
	over := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-told:
			case <-over:
				return
			}
			if ctx.Err() != nil {
				temporary.clean()
				os.Exit(exitInterrupted)
			}
			cancel()
			heard()
		}
	}()
	outlivePipes()
	return ctx, func() {
		listening.Add(-1)
		signal.Stop(told)
		close(over)
		cancel()
	}
}

// needsOut reports an -o that was not given.
func needsOut(path string) error {
	if path == "" {
		return usageError(`say where to write: -o FILE, "-" is standard output`)
	}
	return nil
}
