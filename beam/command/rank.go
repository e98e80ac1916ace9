package command

// This file holds "quantmf-beam rank".

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/ranking"
	"github.com/quantmf/quantmf/internal/table"
)

const rankUsage = `usage: quantmf-beam rank [flags] MATRIX

Compares numbers of components as "quantmf rank" does, with its results: hides a
share of the cells, fits the rest with each number, and measures how well the
hidden cells are predicted. Each fit is made by one of the workers of a Beam runner;
nothing is split over shards, and each holds the matrix in full.

` + matrixHelp + `
` + readHelp + `
What is compared, as in "quantmf rank -h"
  -k N,N,...        the numbers of components (default 2,4,8)
  -m N,N,...        the numbers of levels, each tried with every -k (default: the
                    default of fit)
  -repeats N        how many times cells are hidden (default 5)
  -share X          the share of the cells hidden each time, at most 0.5 (default 0.1)
  -seed N           seed of the hidden cells and of the fits (default 1)
  -method qmf|nmf|qmfq|bqmf
                    what is fitted (default qmf)
  -loss, -missing, -log1p, -top, -eps, -epochs, -lr, -schedule, -batch, -start,
  -ends, -penalty, -shrinkage, -projection, -updates, -tolerance, -validation,
  -patience, -restarts, -strict
                    as in "quantmf fit -h"

` + runnerHelp + `
Standard output gets the table of "quantmf rank", standard error which number is
best and which to take. What was fitted is taken from the -store if the same command is
given with the same one.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 not converged where
-strict wants it, 130 interrupted.
`

// fitSpec tells a worker how to fit, apart from the rank.
type fitSpec struct {
	Method string
	Flags  [][2]string // names and values
}

func init() { beam.RegisterFit("command", fitBySpec) }

// fitBySpec makes the fit of a worker.
func fitBySpec(ctx context.Context, x quantmf.Rows, rank int, spec string,
	opts ...quantmf.FitOption) (quantmf.Model, error) {
	var s fitSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return nil, err
	}
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	options = append(options, opts...)
	return flags.Fit(ctx, s.Method, x, rank, options)
}

// options returns the options of the flags.
func (s *fitSpec) options() (options []quantmf.FitOption, err error) {
	all := flags.Options()
	for _, f := range s.Flags {
		i := slices.IndexFunc(all, func(o flags.Option) bool { return o.Name == f[0] })
		if i < 0 {
			return nil, errors.New("there is no flag -" + f[0])
		}
		o, err := all[i].Parse(f[1])
		if err != nil {
			return nil, err
		}
		if o != nil { // nil: the data choose
			options = append(options, o)
		}
	}
	return options, nil
}

var methods = map[string]quantmf.Method{"nmf": quantmf.MethodNMF, "qmf": quantmf.MethodQMF,
	"qmfq": quantmf.MethodQMFQ, "bqmf": quantmf.MethodBQMF}

// rankFlags are the flags of rank.
type rankFlags struct {
	optionFlags
	matrixFlags
	runnerFlags
	spec     fitSpec
	share    float64
	fileName string
	ranking.Comparison
}

func parseRank(args []string) (*rankFlags, error) {
	f := &rankFlags{spec: fitSpec{Method: "qmf"},
		Comparison: ranking.Comparison{Ks: []int{2, 4, 8}, Repeats: 5, Seed: 1}}
	f.names = map[string]string{"rank": "k", "repeats": "repeats", "share": "share"}
	set := flag.NewFlagSet("rank", flag.ContinueOnError)
	f.matrixFlags.register(set)
	f.registerTop(set)
	f.runnerFlags.register(set)
	list := func(to *[]int) func(string) error {
		return func(text string) error {
			*to = nil
			for _, word := range flags.Words(text) {
				v, err := strconv.Atoi(word)
				if err != nil {
					return errors.New("not whole numbers with commas between, such as 2,4,8")
				}
				*to = append(*to, v)
			}
			return nil
		}
	}
	set.Func("k", "", list(&f.Ks))
	set.Func("m", "", list(&f.Ms))
	set.StringVar(&f.spec.Method, "method", f.spec.Method, "")
	set.IntVar(&f.Repeats, "repeats", f.Repeats, "")
	set.Float64Var(&f.share, "share", 0.1, "")
	for _, o := range flags.Options() {
		if o.Name == "m" || o.Name == "workers" {
			continue
		}
		f.names[o.Option] = o.Name
		take := func(text string) error { return f.take(o, text) }
		if o.Boolean {
			set.BoolFunc(o.Name, "", take)
		} else {
			set.Func(o.Name, "", take)
		}
	}
	words, err := arguments(set, args, "MATRIX")
	if err != nil {
		return nil, err
	}
	f.fileName = words[0]
	switch {
	case !slices.Contains(slices.Collect(maps.Keys(methods)), f.spec.Method):
		return nil, usageError("-method " + f.spec.Method + ": must be one of qmf, nmf, qmfq, bqmf")
	case !(f.share > 0 && f.share <= 0.5):
		return nil, usageError(fmt.Sprintf("-share %g: must be above 0 and at most 0.5", f.share))
	case f.Repeats < 1:
		return nil, usageError(fmt.Sprintf("-repeats %d: must be at least 1", f.Repeats))
	}
	return f, nil
}

// take takes the value of the flag of an option.
func (f *rankFlags) take(o flags.Option, text string) error {
	_, err := o.Parse(text)
	switch {
	case err != nil:
		return err
	case o.Name == "missing": // HeldOut sets it
		f.missing = text == "true"
		return nil
	case o.Name == "loss":
		f.loss = text != "auto"
	case o.Name == "seed":
		f.Seed, _ = flags.Seed(text)
	}
	f.spec.Flags = append(f.spec.Flags, [2]string{o.Name, text})
	return nil
}

// trials are the pairs of -k and -m that are tried. An option that the method does not have is reported here,
// before any fit.
func (f *rankFlags) trials(t *table.Table) (trials []beam.Trial, err error) {
	for _, k := range f.Ks {
		for _, m := range f.Levels() {
			of := f.spec
			if len(f.Ms) > 0 {
				of.Flags = append(slices.Clip(of.Flags), [2]string{"m", strconv.Itoa(m)})
			}
			options, err := of.options()
			if err == nil {
				_, err = quantmf.MemoryOf(methods[of.Method], t.X.Rows, t.X.Cols, k, options...)
			}
			if err != nil {
				return nil, f.explain(err, t)
			}
			text, err := json.Marshal(of)
			if err != nil {
				return nil, err
			}
			trials = append(trials, beam.Trial{Rank: k, Spec: string(text)})
		}
	}
	return trials, nil
}

func rank(ctx context.Context, args []string, s streams) error {
	f, err := parseRank(args)
	if err != nil {
		return err
	}
	store, end, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	t, err := f.matrix(f.fileName, f.missing, f.spec.Method != "nmf")
	if err != nil {
		return err
	}
	if !f.loss {
		if err := f.takeLoss(t); err != nil {
			return err
		}
		if f.loss {
			f.spec.Flags = append(f.spec.Flags, [2]string{"loss", "frobenius"})
		}
	}
	trials, err := f.trials(t)
	if err != nil {
		return err
	}
	f.Failed = func(err error) { fmt.Fprintln(s.err, "trying again:", table.Shown(cause(err))) }
	if f.Got, err = beam.HeldOut(ctx, store, t.X, "command", trials,
		quantmf.Masks{Repeats: f.Repeats, Share: f.share, Seed: f.Seed}, f.Run); err != nil {
		return f.explain(err, t)
	}
	f.Choose()
	if _, err := io.WriteString(s.out, f.Table()); err != nil {
		return err
	}
	_, err = io.WriteString(s.err, f.Verdict())
	return err
}
