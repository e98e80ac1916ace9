package main

// This file holds the page of figures and its flags.

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

// pageHelp is the help of pageFlags.
const pageHelp = `  -groups FILE      a table of two columns: names of samples, features or both, and
                    their groups. The page colours the groups and puts their members
                    together
  -order table|fit  the order of samples on the page: as in the table, or by
                    likeness in the fit (default table)
  -rank FILE        the output of "quantmf rank -json" for the same table, -log1p
                    and -top: the page draws how the number of components was chosen
`

// pageFlags are the flags of the page of figures.
type pageFlags struct {
	groups, order, rank string

	// the files of groups and rank, once they are read; nil where one is standard input
	inputs            []os.FileInfo
	features, samples report.Groups // what was read from groups
	ranks             *report.Chart // what was read from rank
	said              string        // what the page says of ranks
}

func (p *pageFlags) register(set *flag.FlagSet) {
	p.order = "table"
	set.StringVar(&p.groups, "groups", "", "")
	set.StringVar(&p.order, "order", p.order, "")
	set.StringVar(&p.rank, "rank", "", "")
}

// check returns an error for a value that -order does not take, and for standard input that would be read
// twice; inputs are the other files that are read.
func (p *pageFlags) check(inputs ...string) error {
	orders := []string{"table", "fit"}
	switch {
	case !slices.Contains(orders, p.order):
		return usageError(fmt.Sprintf("-order %s: %v", p.order, flags.OneOf(orders)))
	case slices.Contains(append(inputs, p.groups), "-") && p.rank == "-", slices.Contains(inputs, "-") &&
		p.groups == "-":
		return usageError("standard input can be read only once")
	}
	return nil
}

// text reads a text file; kind names its content in errors.
func (p *pageFlags) text(path, kind string, s streams, l *limits) ([]byte, error) {
	in, info, err := open(path, s.in, kind)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p.inputs = append(p.inputs, info)
	most := int64(l.maxMemory) / 8 // the text, and what is read from it
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if int64(len(data)) > most {
		return nil, l.allows(8*float64(len(data)), path, "allow more")
	}
	return data, nil
}

// read reads the files of -groups and -rank, for the page of t.
func (p *pageFlags) read(t *table.Table, s streams, l *limits) error {
	if p.rank != "" {
		data, err := p.text(p.rank, "file of quantmf rank -json", s, l)
		if err != nil {
			return err
		}
		o, err := readRank(data)
		if err == nil {
			err = o.of(t)
		}
		if err != nil {
			return &inputError{fmt.Errorf("%s: %w", p.rank, err)}
		}
		chart := o.chart()
		p.ranks, p.said = &chart, o.words()
	}
	if p.groups == "" {
		return nil
	}
	data, err := p.text(p.groups, "table of groups", s, l)
	if err != nil {
		return err
	}
	features, samples, warnings, err := report.ReadGroups(string(data), t.Features, t.Samples)
	if err != nil {
		return &inputError{fmt.Errorf("%s: %w", p.groups, err)}
	}
	p.features, p.samples = features, samples
	if l.progress == "none" {
		return nil
	}
	for _, w := range warnings {
		if err := warn(s.err, l.progress, p.groups, w); err != nil {
			return err
		}
	}
	return nil
}

const reportUsage = `usage: quantmf report [flags] MODEL MATRIX -o FILE

Draws MODEL, a file that "quantmf fit -o" wrote, and MATRIX, the matrix that was
fitted, as a page of figures in one HTML file, like -report of fit. The page has
heatmaps of the data, the fit and the residuals, the curves of all features, the
components, what is odd in the data, a paragraph for a methods section, and tables
to save. It fetches nothing, runs no script and takes at most 2 MB. "quantmf fit -h"
says what MATRIX may be.

  -o FILE           where to write (required; "-" is standard output)
` + pageHelp + matchHelp + `
` + readHelp + `
` + limitsHelp + `
` + exitHelp

func writeReport(args []string, s streams) error {
	var p pageFlags
	a, err := parseApplied("report", args, s, &p, "MODEL", "MATRIX")
	if err != nil {
		return err
	}
	defer a.hold()()
	defer a.tell.end()
	m, t, inputs, err := readBoth(a, s)
	if err != nil {
		return err
	}
	if t, err = m.fitted(t, &a.in, s.err); err != nil {
		return err
	}
	if err := p.read(t, s, &a.limits); err != nil {
		return err
	}
	// seven of d × n, and the curves
	if err := a.allowsMatrices(1, t.X.Rows, 7*t.X.Cols+account.Steps+1); err != nil {
		return err
	}
	a.tell.at("drawing")
	return writeOnly(s, a.out, append(inputs, p.inputs...),
		func(w io.Writer) error { return m.report(w, t, &p) })
}

// report draws the model and the matrix that was fitted.
func (m *model) report(w io.Writer, t *table.Table, p *pageFlags) error {
	a, err := account.Of(m.Model, t.X)
	if err != nil {
		return explain(err, t, nil)
	}
	f := report.Of(a, m.features, m.samples, t.X, m.Made)
	f.Version, f.ByFit = version(), p.order == "fit"
	f.FeatureGroups, f.SampleGroups = p.features, p.samples
	f.Ranks, f.RanksSay = p.ranks, p.said
	return report.Write(w, f)
}
