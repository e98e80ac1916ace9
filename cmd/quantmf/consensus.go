package main

// This file holds "quantmf consensus": which components come back whatever the seed, and the NMF of those
// that do.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

func consensusProgram() *cli.Program {
	f := &consensusFlags{fitFlags: *newFitFlags(), seeds: 20}
	f.method = "nmf"
	p := &cli.Program{
		Usage: []string{"[flags] MATRIX"},
		About: `Fits an NMF from many seeds, and says which components come back: a fit from one seed alone
			has some that another seed would not find. Components of all fits that are near no other are left
			out, the others are clustered, and the medians of the clusters are the components of the
			consensus, to which the samples are fitted once more (Kotliar et al., eLife 2019).` + "\n\n" +
			cli.MatrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Heading: "What is fitted", Flags: append([]*cli.Flag{
				cli.Wholes(&f.ks, "k", "numbers of components, such as 3,5,8 (default 10)"),
				cli.Whole(&f.seeds, 2, "seeds", "N", "fits for each number of components (default 20)"),
				f.options.Flag(option.Loss), f.options.Flag(option.Missing)}, f.in.Changes()...)},
			{Heading: "How it is fitted", Elsewhere: asInFit,
				Flags: f.options.Flags(option.Epochs, option.Updates,
					option.Patience, option.Seed, option.Workers)},
			{Heading: "What is written", Flags: append(f.files.Flags(),
				cli.File(&f.page, "report", "of one -k: a page of figures in one HTML file"),
				cli.File(&f.plot, "plot", "stability, and the share predicted of unseen values, over k as a "+
					"picture, in SVG"),
				cli.Switch(&f.asJSON, "json", "the results as one JSON object instead of the table"))},
			f.in.Limits(),
		},
		After: `Standard output gets a tab-separated line for each k: which share of what differs between
			samples an NMF predicts in values that it has not seen; the stability, the mean silhouette of the
			clusters (1: all fits have the same components; below .5 few come back); the least stability of a
			component; the loss of the consensus, and that of the best single fit; and how many components of
			the fits were left out.

			Take a k of high stability, of several the one that predicts most. -o, -u, -v and -report write
			the consensus of the last k, of which standard error says more.` + "\n\n" + cli.ExitHelp,
		Examples: [][2]string{
			{"quantmf consensus -k 3,4,5,6,8 -plot stability.svg counts.mtx", ""},
			{"quantmf consensus -k 5 -seeds 50 -u programs.tsv -v usage.tsv counts.mtx", ""}},
		Words: []string{"MATRIX"},
	}
	p.Run = func(words []string, s cli.Streams) error {
		f.took(p, words[0])
		if err := f.check(); err != nil {
			return err
		}
		return f.run(s)
	}
	return p
}

// consensusFlags are the flags of consensus. fitFlags has what it shares with fit.
type consensusFlags struct {
	fitFlags
	ks     []int
	seeds  int
	plot   string // "" for none
	asJSON bool
}

// check reports flags that exclude each other.
func (f *consensusFlags) check() error {
	if len(f.ks) == 0 {
		f.ks = []int{10}
	}
	f.rank = f.ks[len(f.ks)-1]
	if err := f.files.Check(&f.in, f.method); err != nil {
		return err
	}
	for _, k := range f.ks {
		if err := cli.Takes(f.method, k, f.options.List()); err != nil {
			return err
		}
	}
	for _, path := range append(f.files.Paths(), f.page, f.plot) {
		if path == "-" {
			return cli.UsageError("standard output has the table: give a file")
		}
	}
	return cli.Apart(append(f.files.Paths(), f.page, f.plot)...)
}

// agreement is the consensus of one number of components.
type agreement struct {
	K           int       `json:"k"`
	Predicted   *float64  `json:"predicted"` // account.Unseen has it; nil where nothing was tried
	Stability   float64   `json:"stability"`
	Least       float64   `json:"least"`
	Loss        float64   `json:"loss"`
	Best        float64   `json:"best_fit"`
	Left        int       `json:"left_out"`
	Of          int       `json:"components"`
	EachOf      []float64 `json:"stability_of"` // each component
	LossesOfAll []float64 `json:"losses"`       // of each fit
}

func (f *consensusFlags) run(s cli.Streams) error {
	defer f.in.Hold()()
	t, input, err := f.read(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.affords(t); err != nil {
		return cli.Explain(err, t)
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	out := &cli.Outputs{Stdout: s.Out}
	defer out.Discard()
	if err := out.Open(append(f.look.inputs, input), append(f.files.Paths(), f.page, f.plot)...); err != nil {
		return err
	}
	made, err := f.made()
	if err != nil {
		return err
	}
	tell := cli.NewProgress(f.in.Progress, s.Err)
	var all []agreement
	var r *result
	for i, k := range f.ks {
		tell.At(fmt.Sprintf("fitting %d components from %d seeds (%d of %d)", k, f.seeds, i+1, len(f.ks)))
		last, err := quantmf.FitConsensus(ctx, t.Rows(), k, f.seeds, f.options.List()...)
		if err == nil {
			f.rank = k
			r = &result{fitFlags: &f.fitFlags, table: t, m: modelOf(last.NMF)}
			r.m.Names, r.m.Made, r.m.Stability = cli.NamesOf(t), made, last.Stability
			r.m.Made.Warnings = account.Remarks(last.NMF)
			r.goodness, err = last.Goodness(t.Rows())
		}
		if err == nil {
			err = r.unseen(ctx, tell)
		}
		if err != nil {
			tell.End()
			return ended(ctx, err, t)
		}
		a := agreement{K: k, Stability: last.Overall, Least: slices.Min(last.Stability),
			Loss: last.History[last.Best], Best: slices.Min(last.Losses), Left: last.Left, Of: f.seeds * k,
			EachOf: last.Stability, LossesOfAll: last.Losses}
		if r.m.Unseen.Values > 0 {
			a.Predicted = &r.m.Unseen.Predicted
		}
		all = append(all, a)
	}
	tell.End()
	if err := f.write(out, r, all); err != nil {
		return err
	}
	if err := commit(ctx, out); err != nil {
		return err
	}
	var first strings.Builder
	line := linesOf(&first)
	r.m.tellUnseen(line)
	for _, w := range r.m.Made.Warnings {
		line("Warning", "%s", w)
	}
	if err := tell.Summary(first.String()); err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(s.Out).Encode(all)
	}
	text := "k\tpredicted\tstability\tleast\tloss\tbest fit\tleft out\n"
	for _, a := range all {
		predicted := "unknown"
		if a.Predicted != nil {
			predicted = fmt.Sprintf("%.3f", *a.Predicted)
		}
		text += fmt.Sprintf("%d\t%s\t%.3f\t%.3f\t%.5g\t%.5g\t%d of %d\n", a.K, predicted, a.Stability,
			a.Least, a.Loss, a.Best, a.Left, a.Of)
	}
	_, err = io.WriteString(s.Out, text)
	return err
}

// affords reports a consensus that would take more memory than is allowed: what one fit and its files take,
// the fits beside it, and the components of all fits with their distances.
func (f *consensusFlags) affords(t *table.Table) error {
	d, _ := t.Dims()
	beside := float64(min(runtime.GOMAXPROCS(0), f.seeds) - 1)
	for _, f.rank = range f.ks {
		need, err := f.footprint(t.Rows(), t.HeldBytes())
		if err != nil {
			return err
		}
		fit, err := quantmf.MemoryFor(context.Background(), quantmf.MethodNMF, t.Rows(), f.rank,
			f.options.List()...)
		if err != nil {
			return err
		}
		points := float64(f.seeds) * float64(f.rank)
		need += margin * (beside*float64(fit.Fit) + 8*points*(float64(d)+points))
		if need > float64(f.in.MaxMemory) && f.compare != "none" {
			f.compare = "none" // without the further fits
			return f.affords(t)
		}
		if err := f.in.Allows(need, "this",
			"use fewer features (-top), components or seeds, or allow more"); err != nil {
			return err
		}
	}
	return nil
}

// write writes every file: the model of the last number of components, and the picture.
func (f *consensusFlags) write(out *cli.Outputs, r *result, all []agreement) error {
	m := r.m
	m.Command = strings.Replace(f.repeated("-k", strconv.Itoa(f.rank), "-seeds", strconv.Itoa(f.seeds)),
		"quantmf fit", "quantmf consensus", 1)
	if err := f.files.Write(out, &f.in, m.Model, m.Names, m.Made); err != nil {
		return err
	}
	if err := out.Write(f.page, r.report); err != nil {
		return err
	}
	return out.Write(f.plot, func(w io.Writer) error { return stabilityChart(all).Write(w) })
}

// stabilityChart draws, over k, stability and the share predicted of unseen values.
func stabilityChart(all []agreement) report.Chart {
	c := report.Chart{Title: "Stability and prediction", XLabel: "components, k", YLabel: "share",
		Lines: []report.Line{{Name: "stability"}, {Name: "predicted"}}}
	for _, a := range all {
		label := strconv.Itoa(a.K)
		c.Lines[0].Points = append(c.Lines[0].Points, report.Point{Label: label, Y: a.Stability})
		if a.Predicted != nil {
			c.Lines[1].Points = append(c.Lines[1].Points, report.Point{Label: label, Y: *a.Predicted})
		}
	}
	if len(c.Lines[1].Points) < len(all) { // nothing was tried
		c.Lines = c.Lines[:1]
	}
	return c
}
