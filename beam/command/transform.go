package command

// This file holds "quantmf-beam transform".

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/table"
)

const transformUsage = `usage: quantmf-beam transform [flags] MODEL MATRIX

Places new samples in the components of a model as "quantmf transform" does, by
blocks of samples that the workers of a Beam runner place side by side. The
features of MATRIX must be those of the model, in its order.

` + matrixHelp + `
` + readHelp + `  -missing          empty cells, NA and NaN are missing
  -log1p            take log(1+x) of every value first

  -blocks N         blocks of samples, each a unit of work (default 4)

` + runnerHelp + `
  -o FILE           where the coordinates go, components × samples (default "-")
`

func transform(ctx context.Context, args []string, s streams) error {
	var in matrixFlags
	var on runnerFlags
	set := flag.NewFlagSet("transform", flag.ContinueOnError)
	in.register(set)
	on.register(set)
	missing := set.Bool("missing", false, "")
	blocks := set.Int("blocks", 4, "")
	out := set.String("o", "-", "")
	words, err := arguments(set, args, "MODEL", "MATRIX")
	if err != nil {
		return err
	}
	if err := writable(words, "", *out); err != nil {
		return err
	}
	store, end, err := on.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	data, err := os.ReadFile(words[0])
	if err != nil {
		return inputError{err}
	}
	m, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return fmt.Errorf("%s: %w", words[0], err)
	}
	t, err := in.matrix(words[1], *missing, true)
	if err != nil {
		return err
	}
	if *blocks < 1 || *blocks > t.X.Cols {
		return usageError(fmt.Sprintf("-blocks %d: must be from 1 to the %d samples", *blocks, t.X.Cols))
	}
	on.Failed = func(err error) { fmt.Fprintln(s.err, "trying again:", table.Shown(cause(err))) }
	v, err := beam.Transform(ctx, store, m, t.X, *blocks, on.Run)
	if err != nil {
		return err
	}
	if text := nameless(*out, "samples", t.NamedSamples); text != "" {
		fmt.Fprintln(s.err, "warning:", table.Shown(text))
	}
	return write(s.out, tableOutput(*out, "component", numbered("c", v.Rows), t.Samples, v))
}
