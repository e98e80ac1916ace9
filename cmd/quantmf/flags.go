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
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/saved"
)

// newFlags returns an empty set of flags.
func newFlags(command string) *flag.FlagSet {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// madeFlags sees every set of flags, for the test that holds the manual against them.
var madeFlags = func(*flag.FlagSet) {}

// arguments parses args and returns what is no flag: one word for each of
// wanted. Flags may stand before, between and behind them. What stands in
// brackets may be left out.
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
		args = set.Args()
		if len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	if len(words) > len(wanted) {
		return nil, usageError(fmt.Sprintf("%s is too much: wanted %s", words[len(wanted)], strings.Join(wanted, " ")))
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
			problem = mustBeOneOf([]string{"true", "false"}).Error()
		case strings.ContainsAny(f.DefValue, ".") || f.Name == "interval" || f.Name == "share":
			problem = "not a number"
		default:
			problem = "not a whole number"
		}
		return "-" + m[3] + " " + m[2] + ": " + problem
	}
	return text
}

// faulty is what the flag package says of a value.
var faulty = regexp.MustCompile(`(?s)^invalid (boolean )?value "(.*)" for (?:flag )?-([\w-]+): (.*)$`)

func isBool(f *flag.Flag) bool {
	b, is := f.Value.(interface{ IsBoolFlag() bool })
	return is && b.IsBoolFlag()
}

// optionFlag is a flag that becomes an option of the package.
type optionFlag struct {
	name, option string
	parse        func(s string) (quantmf.FitOption, error)
	text         string
	value        quantmf.FitOption
	shared       bool // it holds for an NMF to compare with, too
	boolean      bool
}

func (o *optionFlag) String() string { return o.text }

func (o *optionFlag) IsBoolFlag() bool { return o.boolean }

func (o *optionFlag) Set(s string) (err error) {
	o.text, o.value = s, nil
	if o.boolean && s == "false" {
		return nil
	}
	o.value, err = o.parse(s)
	return err
}

// optionFlags returns the flags of a fit that become options, by their order in
// the help.
func optionFlags() []*optionFlag {
	return []*optionFlag{
		{name: "loss", option: "WithLoss", parse: loss, shared: true},
		{name: "missing", option: "WithMissingValues", parse: on(quantmf.WithMissingValues), shared: true, boolean: true},
		{name: "m", option: "WithLevels", parse: whole(quantmf.WithLevels)},
		{name: "eps", option: "WithEpsilon", parse: decimal(quantmf.WithEpsilon)},
		{name: "epochs", option: "WithEpochs", parse: whole(quantmf.WithEpochs)},
		{name: "lr", option: "WithLearningRate", parse: decimal(quantmf.WithLearningRate)},
		{name: "schedule", option: "WithSchedule", parse: choice(quantmf.WithSchedule,
			[]string{"cosine", "constant"}, quantmf.ScheduleCosine, quantmf.ScheduleConstant)},
		{name: "batch", option: "WithBatch", parse: whole(quantmf.WithBatch)},
		{name: "start", option: "WithStart", parse: choice(quantmf.WithStart,
			[]string{"auto", "scores", "nmf", "uniform", "svd"}, quantmf.StartAuto, quantmf.StartScores, quantmf.StartNMF, quantmf.StartUniform, quantmf.StartSVD)},
		{name: "ends", option: "WithEnds", parse: choice(quantmf.WithEnds,
			[]string{"free", "pinned"}, quantmf.EndsFree, quantmf.EndsPinned)},
		{name: "penalty", option: "WithPenalty", parse: decimal(quantmf.WithPenalty)},
		{name: "shrinkage", option: "WithShrinkage", parse: decimal(quantmf.WithShrinkage)},
		{name: "projection", option: "WithProjection", parse: projection},
		{name: "updates", option: "WithUpdates", parse: choice(quantmf.WithUpdates,
			[]string{"newton", "multiplicative"}, quantmf.UpdatesNewton, quantmf.UpdatesMultiplicative)},
		{name: "tolerance", option: "WithTolerance", parse: decimal(quantmf.WithTolerance)},
		{name: "validation", option: "WithValidation", parse: decimal(quantmf.WithValidation)},
		{name: "patience", option: "WithPatience", parse: whole(quantmf.WithPatience)},
		{name: "restarts", option: "WithRestarts", parse: whole(quantmf.WithRestarts)},
		{name: "strict", option: "WithStrict", parse: on(quantmf.WithStrict), boolean: true},
		{name: "seed", option: "WithSeed", parse: seed, shared: true},
		{name: "workers", option: "WithWorkers", parse: whole(quantmf.WithWorkers), shared: true},
	}
}

// flagOf names the flag of every option of the package.
func flagOf(options []*optionFlag) map[string]string {
	names := map[string]string{"rank": "k", "WithCheckpoint": "checkpoint", "WithResume": "resume"}
	for _, o := range options {
		names[o.option] = o.name
	}
	return names
}

func on[O quantmf.FitOption](with func() O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		if s != "true" {
			return nil, mustBeOneOf([]string{"true", "false"})
		}
		return with(), nil
	}
}

func whole[O quantmf.FitOption](with func(int) O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return nil, errors.New("not a whole number")
		}
		return with(v), nil
	}
}

func decimal[O quantmf.FitOption](with func(float64) O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, errors.New("not a number")
		}
		return with(v), nil
	}
}

func choice[T any](with func(T) quantmf.FitOption, words []string, values ...T) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		i := slices.Index(words, s)
		if i < 0 {
			return nil, mustBeOneOf(words)
		}
		return with(values[i]), nil
	}
}

func mustBeOneOf(words []string) error {
	return errors.New("must be one of " + strings.Join(words, ", "))
}

// projection reads kl:N, frobenius:N or svd.
func projection(s string) (quantmf.FitOption, error) {
	kind, count, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(count)
	switch {
	case s == "svd":
		return quantmf.WithProjection(quantmf.TruncatedSVD()), nil
	case err == nil && kind == "kl":
		return quantmf.WithProjection(quantmf.KLUpdates(n)), nil
	case err == nil && kind == "frobenius":
		return quantmf.WithProjection(quantmf.FrobeniusUpdates(n)), nil
	}
	return nil, errors.New("must be kl:N, frobenius:N or svd")
}

func seed(s string) (quantmf.FitOption, error) {
	v, err := parseSeed(s)
	if err != nil {
		return nil, err
	}
	return quantmf.WithSeed(v), nil
}

func loss(s string) (quantmf.FitOption, error) {
	if s == "auto" {
		return nil, nil
	}
	l, err := saved.ParseLoss(s)
	if err != nil {
		return nil, err
	}
	return quantmf.WithLoss(l), nil
}

func parseSeed(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New("not a whole number from 0 to 2^64-1")
	}
	return v, nil
}

// wholeList is a flag of whole numbers between commas.
type wholeList []int

func (l *wholeList) String() string { return "" }

func (l *wholeList) Set(s string) error {
	*l = nil
	for _, part := range strings.Split(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return errors.New("not whole numbers between commas")
		}
		*l = append(*l, v)
	}
	return nil
}

// memory is a flag of bytes.
type memory int64

func (m *memory) String() string { return "" }

func (m *memory) Set(s string) error {
	number := strings.TrimRight(s, "kKMGTiB")
	unit, ok := map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[s[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v*unit >= 1 && v*unit <= 1<<60) {
		return errors.New("not a size such as 8GiB or 500MB")
	}
	*m = memory(v * unit)
	return nil
}

// heard is called when an interrupt has ended the context. Tests wait for it.
var heard = func() {}

// interruptible returns a context that an interrupt ends, instead of the process; a second
// one does end it, and takes temporary files away first. From here on there are such.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
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
