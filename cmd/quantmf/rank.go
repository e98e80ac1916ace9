package main

// This file holds "quantmf rank": the choice of the number of components and of
// levels.

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

const rankUsage = `usage: quantmf rank [flags] MATRIX

Compares numbers of components: hides a share of the cells, fits the rest with
each number, and measures how well the hidden cells are predicted; all of it
several times. A low loss on cells that were seen says little: more components
always fit better what is there.

` + matrixHelp + `
` + readHelp + `
  -k N,N,...        the numbers of components (default 2,4,8)
  -m N,N,...        numbers of levels, each tried with every -k (default: that of
                    fit)
  -repeats N        times that cells are hidden (default 5)
  -share X          of the cells hidden each time, at most 0.5 (default 0.1)
  -seed N           seed of the hidden cells and of the fits (default 1)
  -method, -loss, -missing, -log1p, -top, -eps, -epochs, -lr, -schedule, -batch,
  -start, -ends, -penalty, -shrinkage, -strict
                    as in "quantmf fit -h"

Standard output gets a line for each: k, m where it was given, the mean over the
repeats of the mean divergence of the hidden cells, and its standard error, tabs
between them. All numbers see the same hidden cells, so differences mean more than
standard errors say. Standard error says which is best, and which is the smallest
that is hardly worse. Fits run side by side, one a processor.

` + exitHelp

// rankFlags are the flags of rank.
type rankFlags struct {
	fitFlags
	ks, ms  wholeList
	repeats int
	share   float64
	seed    uint64
}

func parseRank(args []string) (*rankFlags, error) {
	options := optionFlags()
	f := &rankFlags{ks: wholeList{2, 4, 8}, seed: 1}
	f.flagOf, f.loss = flagOf(options), quantmf.KL
	f.flagOf["repeats"], f.flagOf["share"] = "repeats", "share"
	f.maxMemory = 8 << 30
	set := newFlags("rank")
	set.StringVar(&f.method, "method", "qmf", "")
	set.Var(&f.ks, "k", "")
	set.Var(&f.ms, "m", "")
	set.BoolVar(&f.log1p, "log1p", false, "")
	set.IntVar(&f.top, "top", 0, "")
	set.IntVar(&f.repeats, "repeats", 5, "")
	set.Float64Var(&f.share, "share", 0.1, "")
	f.in.register(set, false)
	for _, o := range options {
		if o.name != "m" && o.name != "workers" {
			set.Var(o, o.name, "")
		}
	}
	words, err := arguments(set, args, "MATRIX")
	if err != nil {
		return nil, err
	}
	f.matrix = words[0]
	set.Visit(func(g *flag.Flag) {
		o, is := g.Value.(*optionFlag)
		switch {
		case !is || o.value == nil:
		case o.name == "missing": // HeldOut sees to it
			f.missing = true
		default:
			f.options = append(f.options, o.value)
		}
		switch g.Name {
		case "seed":
			f.seed, _ = parseSeed(o.text)
		case "loss":
			f.loss, _ = parseLoss(o.text)
		}
	})
	switch {
	case !slices.Contains(methods, f.method):
		return nil, usageError(fmt.Sprintf("-method %s: %v", f.method, mustBeOneOf(methods)))
	case f.repeats < 1:
		return nil, usageError(fmt.Sprintf("-repeats %d: must be at least 1", f.repeats))
	case f.share == 0:
		return nil, usageError("-share 0: must be above 0 and at most 0.5")
	case f.top < 0:
		return nil, usageError(fmt.Sprintf("-top %d: must be at least 1", f.top))
	}
	return f, nil
}

func rank(args []string, s streams) error {
	f, err := parseRank(args)
	if err != nil {
		return err
	}
	t, _, err := f.read(s)
	if err != nil {
		return err
	}
	levels := f.ms
	if len(levels) == 0 {
		levels = wholeList{0}
	}
	var trials []quantmf.Trial
	var names []string
	for _, k := range f.ks {
		for _, m := range levels {
			trial, name := quantmf.Trial{Rank: k, Options: f.options}, fmt.Sprintf("k=%d", k)
			if len(f.ms) > 0 {
				trial.Options = append(slices.Clone(f.options), quantmf.WithLevels(m))
				name += fmt.Sprintf(", m=%d", m)
			}
			trials, names = append(trials, trial), append(names, name)
		}
	}
	ctx, stop := interruptible()
	defer stop()
	got, err := heldOut(ctx, t, f, trials)
	if err != nil {
		if ctx.Err() != nil {
			return interrupted("interrupted before all fits were done")
		}
		return explain(err, t, f.flagOf)
	}
	if err := f.table(s.out, trials, levels, got); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.err, verdict(names, got))
	return err
}

func heldOut(ctx context.Context, t *table.Table, f *rankFlags, trials []quantmf.Trial) ([]quantmf.Prediction, error) {
	return quantmf.HeldOut(ctx, t.X, func(ctx context.Context, x quantmf.Mat, rank int, options ...quantmf.FitOption) (quantmf.Model, error) {
		return fitWith(ctx, f.method, x, rank, options)
	}, trials, quantmf.Masks{Repeats: f.repeats, Share: f.share, Seed: f.seed})
}

// table prints the results, a line a trial.
func (f *rankFlags) table(w io.Writer, trials []quantmf.Trial, levels wholeList, got []quantmf.Prediction) error {
	var s strings.Builder
	column := ""
	if len(f.ms) > 0 {
		column = "m\t"
	}
	fmt.Fprintf(&s, "k\t%smean\tstderr\n", column)
	for i, p := range got {
		if len(f.ms) > 0 {
			column = fmt.Sprintf("%d\t", levels[i%len(levels)])
		}
		fmt.Fprintf(&s, "%d\t%s%.6g\t%.3g\n", trials[i].Rank, column, p.Mean, p.StdErr)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// verdict says which trial is best, and which first one is within a standard
// error of it.
func verdict(names []string, got []quantmf.Prediction) string {
	best := 0
	for i, p := range got {
		if p.Mean < got[best].Mean {
			best = i
		}
	}
	first := slices.IndexFunc(got, func(p quantmf.Prediction) bool { return p.Mean <= got[best].Mean+got[best].StdErr })
	text := names[best] + " predicts hidden cells best"
	if first != best {
		text += "; " + names[first] + " is within a standard error of it"
	}
	return text
}
