package main

// This file holds the page of figures: its flags, and what a model says there.

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

// pageHelp is the help of pageFlags.
const pageHelp = `  -groups FILE      a table of two columns, names of samples, features or both, and
                    their groups: the page colours them and puts groups together
  -order table|fit  samples of the page stand as in the table, or like beside like
                    in the fit (default table)
  -rank FILE        what "quantmf rank -json" wrote of the same table, with the same
                    -log1p and -top: the page draws how the number of components
                    was chosen
`

// pageFlags say how the page looks.
type pageFlags struct {
	groups, order, rank string

	features, samples report.Groups // what was read from groups
	ranks             *report.Chart // and from rank
	said              string        // of it
}

func (p *pageFlags) register(set *flag.FlagSet) {
	p.order = "table"
	set.StringVar(&p.groups, "groups", "", "")
	set.StringVar(&p.order, "order", p.order, "")
	set.StringVar(&p.rank, "rank", "", "")
}

// check reports values that the flags do not have; inputs are the files that are read, too.
func (p *pageFlags) check(inputs ...string) error {
	orders := []string{"table", "fit"}
	switch {
	case !slices.Contains(orders, p.order):
		return usageError(fmt.Sprintf("-order %s: %v", p.order, mustBeOneOf(orders)))
	case slices.Contains(append(inputs, p.groups), "-") && p.rank == "-", slices.Contains(inputs, "-") && p.groups == "-":
		return usageError("standard input can be read only once")
	}
	return nil
}

// text reads a file of the page; kind says what it is.
func (p *pageFlags) text(path, kind string, s streams, l *limits) ([]byte, error) {
	in, _, err := open(path, s.in, kind)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	most := int64(l.maxMemory) / 8 // the text and what it says
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if int64(len(data)) > most {
		return nil, l.allows(8*float64(len(data)), path, "allow more")
	}
	return data, nil
}

// read reads the files of the page of t.
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
		if _, err := fmt.Fprintf(s.err, "warning: %s: %s\n", shown(p.groups), w); err != nil {
			return err
		}
	}
	return nil
}

const reportUsage = `usage: quantmf report MODEL MATRIX -o FILE

Draws MODEL, a file of "quantmf fit -o", and MATRIX, the matrix that was fitted, as
a page of figures in one HTML file, as fit does with -report: heatmaps of the data,
of the fit and of what it leaves, the curves of all features, components, what is
odd in the data, a paragraph for a methods section, and tables to save. The page
fetches nothing, runs no script and takes at most 2 MB. What is read as MATRIX
"quantmf fit -h" says.

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
	if err := a.allowsMatrices(7, t.X.Rows, t.X.Cols); err != nil {
		return err
	}
	a.tell.at("drawing")
	return writeOnly(s, a.out, inputs, func(w io.Writer) error { return m.report(w, t, &p) })
}

// report draws the model and the matrix that was fitted.
func (m *model) report(w io.Writer, t *table.Table, p *pageFlags) error {
	r, err := m.readings(t)
	if err != nil {
		return err
	}
	name, _ := m.title()
	f := report.Fit{
		Matrix:        m.matrix,
		Method:        name,
		Command:       m.command,
		Version:       version(),
		Settings:      m.settings(),
		Features:      m.features,
		Samples:       m.samples,
		X:             t.X,
		U:             m.u,
		V:             m.v,
		Fitted:        m.Reconstruct(),
		Loss:          m.history[:m.best+1],
		Warnings:      m.words,
		FeatureGroups: p.features,
		SampleGroups:  p.samples,
		Ranks:         p.ranks,
		RanksSay:      p.said,
		ByFit:         p.order == "fit",
		Goodness:      r.goodness,
		Shares:        m.Shares(),
		TopFeatures:   r.features,
		TopSamples:    m.TopSamples(topShown),
		Unconverged:   m.unconverged,
		Compared:      m.nmf, ComparedUpdates: m.nmfUpdates, ComparedExplained: m.nmfExplained,
	}
	if f.Matrix == "" {
		f.Matrix = "A matrix"
	}
	if q, is := m.Model.(*quantmf.QMFQ); is {
		if f.Normalized, err = q.Normalize(t.X); err != nil {
			return explain(err, t, nil)
		}
	}
	if m.bend != nil {
		f.Bend = m.bend()
		f.Maps = make([]func(float64) float64, len(f.Features))
		for i := range f.Maps {
			scale, err := m.scale(i)
			if err != nil {
				return err
			}
			f.Maps[i] = scale
		}
	}
	return report.Write(w, f)
}

// settings says in words how the model was fitted, as far as that is known.
func (m *model) settings() (words []string) {
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	given := map[string]string{} // of the command line
	line := strings.Fields(m.command)
	for i, w := range line[:max(len(line)-1, 0)] {
		if strings.HasPrefix(w, "-") {
			given[w] = line[i+1]
		}
	}
	if m.log1p {
		say("log(1+x) of every value")
	}
	if m.top {
		say("the features of largest standard deviation alone")
	}
	if q, is := m.Model.(*quantmf.QMF); is {
		say("%d levels", q.Quantiles.Cols)
	}
	if eps := given["-eps"]; eps != "" {
		say("ε = %s", eps)
	}
	loss := given["-loss"]
	if _, auto, is := strings.Cut(m.losses, "-loss auto took "); is {
		loss, _, _ = strings.Cut(auto, ":")
	}
	if l, err := parseLoss(loss); err == nil {
		say("the %s as loss", lossName(l))
	}
	if q, is := m.Model.(*quantmf.QMF); is {
		say("started %s, %s", strings.ReplaceAll(begun(q), "; ", ", "), counted(m.best, "epoch"))
	} else if m.method != "bqmf" {
		say("%s", counted(m.best, "epoch"))
	} else {
		say("%s of variational Bayes", counted(len(m.history)-1, "epoch"))
	}
	if share := given["-validation"]; share != "" {
		say("a share of %s of the values held out to choose the epoch", share)
	}
	if restarts := given["-restarts"]; restarts != "" {
		say("the best of %s restarts", restarts)
	}
	if seed := given["-seed"]; seed != "" {
		say("seed %s", seed)
	}
	return words
}
