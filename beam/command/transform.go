package command

// This file holds "quantmf-beam transform".

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/table"
)

// placing are the flags of transform.
type placing struct {
	runnerFlags
	options cli.Options
	in      cli.Input
	blocks  int
	out     string
}

func transformProgram() *cli.Program {
	f := &placing{runnerFlags: newRunnerFlags(), options: cli.NewOptions(), in: cli.NewInput(), blocks: 4,
		out: "-"}
	return &cli.Program{
		Usage: []string{"[flags] MODEL MATRIX"},
		About: `Places new samples in the components of a model as "quantmf transform" does, by blocks of
			samples that the workers of a Beam runner place side by side. The features of MATRIX must be
			those of the model, in its order.` + "\n\n" + matrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Flags: []*cli.Flag{
				f.options.Flag(option.Missing), f.in.Changes()[0],
				cli.Whole(&f.blocks, 1, "blocks", "N", "blocks of samples, each a unit of work (default 4)"),
				cli.File(&f.out, "o", `where the coordinates go, components × samples (default "-")`)}},
			f.group(),
			f.in.Limits(),
		},
		After: cli.ExitHelp,
		Words: []string{"MODEL", "MATRIX"},
		Run: func(words []string, s cli.Streams) error {
			if err := cmp.Or(f.in.Writable(f.out), unread(words, f.out)); err != nil {
				return err
			}
			return f.with(func(ctx context.Context, store *beam.Store) error {
				return f.run(ctx, store, words[0], words[1], s)
			})
		},
	}
}

func (f *placing) run(ctx context.Context, store *beam.Store, model, matrix string, s cli.Streams) error {
	data, _, err := f.in.ReadAll(model, s.In, "model", 3)
	if err != nil {
		return err
	}
	m, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return fmt.Errorf("%s: %w", model, err)
	}
	t, info, err := f.in.Read(matrix, s, cli.NewProgress(f.in.Progress, s.Err), f.options.Missing,
		!f.in.Log1p)
	if err != nil {
		return err
	}
	if f.blocks > t.X.Cols {
		return cli.Usagef("-blocks %d: must be from 1 to the %d samples", f.blocks, t.X.Cols)
	}
	f.Failed = again(&f.in, s)
	v, err := beam.Transform(ctx, store, m, t.X, f.blocks, f.Run)
	if err != nil {
		return err
	}
	err = cli.WriteOnly(s.Out, f.out, []os.FileInfo{info}, func(w io.Writer) error {
		return table.Write(w, f.in.Place(f.out), "component", table.Numbered("c", v.Rows), t.Samples, v)
	})
	if err != nil {
		return err
	}
	return f.in.Nameless(s.Err, f.out, false, t.NamedSamples)
}
