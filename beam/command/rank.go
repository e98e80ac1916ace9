package command

// This file holds "quantmf-beam rank".

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

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
	options := cli.NewOptions()
	for _, f := range s.Flags {
		if err := options.SetFlag(f[0], f[1]); err != nil {
			return nil, err
		}
	}
	return settings.Fit(ctx, s.Method, x, rank, append(options.List(), opts...)...)
}

// rankFlags are the flags of rank.
type rankFlags struct {
	runnerFlags
	cli.Comparison
	options cli.Options
	in      cli.Input
	share   float64
}

func rankProgram() *cli.Program {
	f := &rankFlags{runnerFlags: newRunnerFlags(), Comparison: cli.NewComparison(), options: cli.NewOptions(),
		in: cli.NewInput(), share: 0.1}
	return &cli.Program{
		Usage: []string{"[flags] MATRIX"},
		About: `Compares numbers of components as "quantmf rank" does, with its results: hides a share of the
			cells, fits the rest with each number, and measures how well the hidden cells are predicted. Each
			fit is made by one of the workers of a Beam runner; nothing is split over shards, and each holds
			the matrix in full.` + "\n\n" + matrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Heading: "What is compared", Flags: append(f.Flags(&f.share), f.options.Flag(option.Seed))},
			{Heading: "What is fitted", Elsewhere: `as in "quantmf fit -h"`, Flags: append(append([]*cli.Flag{
				f.MethodFlag(),
				f.options.Flag(option.Loss), f.options.Flag(option.Missing)}, f.in.Changes()...),
				f.options.Flags(cli.Compared...)...)},
			f.group(),
			f.in.Limits(),
		},
		After: `Standard output gets the table of "quantmf rank", standard error which number is best and
			which to take. What was fitted is taken from the -store if the same command is given with the
			same one.` +
			"\n\n" + cli.ExitHelp,
		Words: []string{"MATRIX"},
		Run: func(words []string, s cli.Streams) error {
			return f.with(func(ctx context.Context, store *beam.Store) error {
				return f.run(ctx, store, words[0], s)
			})
		},
	}
}

// trials are the pairs of -k and -m that are tried. An option that the method does not have is reported here,
// before any fit. -missing is left out, which HeldOut sets.
func (f *rankFlags) trials(t *table.Table) (trials []beam.Trial, err error) {
	for trial := range f.Trials() {
		options := f.options
		if len(f.Ms) > 0 {
			options.Set(option.Levels, strconv.Itoa(f.M(trial)))
		}
		if _, err := quantmf.MemoryOf(settings.Method(f.Method(trial)), t.X.Rows, t.X.Cols, f.K(trial),
			options.List()...); err != nil {
			return nil, cli.Explain(err, t)
		}
		text, err := json.Marshal(fitSpec{f.Method(trial), options.Texts(option.Missing)})
		if err != nil {
			return nil, err
		}
		trials = append(trials, beam.Trial{Rank: f.K(trial), Spec: string(text)})
	}
	return trials, nil
}

func (f *rankFlags) run(ctx context.Context, store *beam.Store, matrix string, s cli.Streams) error {
	t, _, err := f.in.Read(matrix, s, cli.NewProgress(f.in.Progress, s.Err), f.options.Missing,
		f.Signed() && !f.in.Log1p)
	if err != nil {
		return err
	}
	losses, err := f.options.SettleLoss(t, &f.in, s.Err)
	if err != nil {
		return err
	}
	trials, err := f.trials(t)
	if err != nil {
		return err
	}
	f.Seed, f.Failed = f.options.Seed, again(&f.in, s)
	err = f.Comparison.Run(t.X.Rows*t.X.Cols, func(first, masks int) ([]quantmf.Prediction, error) {
		return beam.HeldOut(ctx, store, t.X, "command", trials,
			quantmf.Masks{First: first, Repeats: masks, Share: f.share, Seed: f.Seed}, f.runnerFlags.Run)
	})
	if err != nil {
		return cli.Explain(err, t)
	}
	if _, err := io.WriteString(s.Out, f.Table()); err != nil {
		return err
	}
	verdict := f.Verdict()
	if losses != "" {
		verdict = losses + "\n" + verdict
	}
	_, err = io.WriteString(s.Err, verdict)
	return err
}
