package main

// This file holds the page of figures and its flags.

import (
	"errors"
	"io"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

// pageFlags are the flags of the page of figures.
type pageFlags struct {
	known
	order string
}

func (p *pageFlags) flags() []*cli.Flag {
	return append(p.known.flags(), cli.Aside(cli.Func("order", "table|tree|cN", `the order of samples on the
		page: as in the table, by the tree of their likeness, or by their amount of component N, as c2. But by
		the tree, members of a group stand together (default table)`, func(text string) error {
		if text != "table" && text != "tree" && report.Component(text) == 0 {
			return errors.New("must be table, tree or a component such as c2")
		}
		p.order = text
		return nil
	})))
}

func reportProgram() *cli.Program {
	a, look := newApplied(), pageFlags{order: "table"}
	a.page = true
	return a.program("report", &cli.Program{
		Usage: []string{"[flags] MODEL MATRIX -o FILE"},
		About: `Draws MODEL, a file that "quantmf fit -o" wrote, and MATRIX, the matrix that was fitted, as a
			page of figures in one HTML file, like -report of fit. The page has heatmaps of the data, the fit
			and the residuals, the curves of all features, the components, what is odd in the data, a
			paragraph for a methods section, and tables to save. It fetches nothing, runs no script and takes
			at most 2 MB. "quantmf fit -h" says what MATRIX may be.`,
		Groups:   own(append([]*cli.Flag{a.outFlag(), a.in.Allow()}, look.flags()...)...),
		After:    cli.ExitHelp,
		Examples: [][2]string{{"quantmf report model.qmf table.tsv -o page.html", ""}},
	}, func(s cli.Streams) error { return a.report(s, &look) })
}

func (a *applied) report(s cli.Streams, look *pageFlags) error {
	if err := look.check(a.words...); err != nil {
		return err
	}
	m, t, inputs, err := a.readBoth(s)
	if err != nil {
		return err
	}
	if t, err = m.fitted(t, &a.in, s.Err); err != nil {
		return err
	}
	if err := look.read(t.Features, t.Samples, s, &a.in); err != nil {
		return err
	}
	// seven of d × n, and the curves
	if err := a.allowsMatrices(1, t.X.Rows, 7*t.X.Cols+account.Steps+1); err != nil {
		return err
	}
	a.tell.At("drawing")
	return cli.WriteOnly(s.Out, a.out, append(inputs, look.inputs...),
		func(w io.Writer) error { return m.report(w, t, nil, look) })
}

// report draws the model and the matrix that was fitted. goodness is that of the model, nil where nobody has
// asked for it yet.
func (m *model) report(w io.Writer, t *table.Table, goodness []quantmf.Goodness, p *pageFlags) error {
	a, err := account.Of(m.Model, t.X, goodness)
	if err != nil {
		return cli.Explain(err, t)
	}
	f := report.Of(a, m.Features, m.Samples, t.X, m.Made)
	f.Version, f.Order = version(), p.order
	if report.Component(p.order) > m.of.V.Rows {
		f.Warnings = append(slices.Clone(f.Warnings),
			"there is no component "+p.order+": samples stand as in the "+
				"table")
	}
	f.FeatureGroups, f.SampleGroups, f.Tracks, f.Sets = p.Features, p.Samples, p.Tracks, p.members
	return report.Write(w, f)
}
