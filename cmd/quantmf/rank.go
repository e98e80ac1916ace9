package main

// This file holds "quantmf rank": the choice of the number of components and of
// levels.

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc64"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/ranking"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

const rankUsage = `usage: quantmf rank [flags] MATRIX

Compares numbers of components. Several times it hides a share of the cells, fits
the rest with each number, and measures how well the hidden cells are predicted. A
low loss on cells that were fitted says little, because more components always fit
them better.

` + matrixHelp + `
` + readHelp + `
  -k N,N,...        the numbers of components (default 2,4,8)
  -m N,N,...        the numbers of levels, each tried with every -k (default: the
                    default of fit)
  -repeats N        how many times cells are hidden (default 5)
  -share X          the share of the cells hidden each time, at most 0.5 (default
                    0.1)
  -seed N           seed of the hidden cells and of the fits (default 1)
  -method, -loss, -missing, -log1p, -top, -eps, -epochs, -lr, -schedule, -batch,
  -start, -ends, -penalty, -shrinkage, -projection, -updates, -tolerance,
  -validation, -patience, -restarts, -strict
                    as in "quantmf fit -h"

  -json             the results as one JSON object instead of the table
  -plot FILE        write the results as a picture, in SVG
  -checkpoint FILE  keep finished fits here until all are finished. An existing file
                    is refused without -resume or -force
  -resume           take the fits in the -checkpoint file as finished
  -force            start anew over an existing -checkpoint file
` + limitsHelp + `
Standard output gets a tab-separated line for each number: k; m where it was given;
the mean over the repeats of the mean divergence of the hidden cells; its standard
error; by how much this mean is worse than the best; and the standard error of that
difference. All numbers see the same hidden cells, so the difference is surer than
the two standard errors say.

Standard error gets three things, whatever -progress is: the best k and the one to
take, which is the smallest k (with the smallest m) within one standard error of the
best; how sure this choice is, as the share of a thousand resamplings of the repeats
that make it; and a warning where either lies at the edge of what was tried. Fits
run side by side, one a processor.

` + exitHelp

// rankFlags are the flags of rank.
type rankFlags struct {
	fitFlags
	ks, ms  wholeList
	repeats int
	share   float64
	seed    uint64
	asJSON  bool
	plot    string
}

// trials are the pairs of k and m that are tried: every -m with the first -k, then with the next.
func (f *rankFlags) trials() (trials []quantmf.Trial) {
	for _, k := range f.ks {
		for _, m := range (&ranking.Comparison{Ms: f.ms}).Levels() {
			options := slices.Clip(f.options)
			if m != 0 || len(f.ms) > 0 {
				options = append(options, quantmf.WithLevels(m))
			}
			trials = append(trials, quantmf.Trial{Rank: k, Options: options})
		}
	}
	return trials
}

func parseRank(args []string) (*rankFlags, error) {
	options := optionFlags()
	f := &rankFlags{ks: wholeList{2, 4, 8}, seed: 1}
	f.flagOf, f.loss, f.autoLoss = flagOf(options), quantmf.KL, true
	f.flagOf["repeats"], f.flagOf["share"] = "repeats", "share"
	f.rank = 1 // a rank that every method takes; the trials have their own
	set := newFlags("rank")
	f.limits.flags(set)
	set.StringVar(&f.method, "method", "qmf", "")
	set.Var(&f.ks, "k", "")
	set.Var(&f.ms, "m", "")
	set.BoolVar(&f.log1p, "log1p", false, "")
	set.IntVar(&f.top, "top", 0, "")
	set.IntVar(&f.repeats, "repeats", 5, "")
	set.Float64Var(&f.share, "share", 0.1, "")
	f.in.register(set, false)
	set.BoolVar(&f.asJSON, "json", false, "")
	set.StringVar(&f.plot, "plot", "", "")
	set.StringVar(&f.checkpoint, "checkpoint", "", "")
	set.BoolVar(&f.resume, "resume", false, "")
	set.BoolVar(&f.force, "force", false, "")
	for _, o := range options {
		if o.Name != "m" && o.Name != "workers" {
			set.Var(o, o.Name, "")
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
		case o.Name == "missing": // HeldOut sets it
			f.missing = true
		default:
			f.given = append(f.given, o.Name+" "+o.text)
			f.options = append(f.options, o.value)
		}
		switch g.Name {
		case "seed":
			f.seed, _ = flags.Seed(o.text)
		case "loss":
			if o.value != nil {
				f.loss, _ = account.ParseLoss(o.text)
				f.autoLoss = false
			}
		}
	})
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// check reports flags whose values cannot be, and those that exclude each other.
func (f *rankFlags) check() error {
	switch {
	case !slices.Contains(methods, f.method):
		return usageError(fmt.Sprintf("-method %s: %v", f.method, flags.OneOf(methods)))
	case f.repeats < 1:
		return usageError(fmt.Sprintf("-repeats %d: must be at least 1", f.repeats))
	case f.top < 0:
		return usageError(fmt.Sprintf("-top %d: must be at least 1", f.top))
	case !(f.share > 0 && f.share <= 0.5):
		return usageError(fmt.Sprintf("-share %g: must be above 0 and at most 0.5", f.share))
	}
	if err := f.limits.check(); err != nil {
		return err
	}
	if err := checkpointFlags(f.checkpoint, f.resume, f.force); err != nil {
		return err
	}
	if err := apart(f.plot, f.checkpoint); err != nil {
		return err
	}
	if f.plot == "-" {
		return usageError("-plot -: standard output has the results: give a file")
	}
	for _, t := range f.trials() {
		f.rank = t.Rank
		if err := f.takes(f.method, t.Options); err != nil {
			return err
		}
	}
	return nil
}

func rank(args []string, s streams) error {
	f, err := parseRank(args)
	if err != nil {
		return err
	}
	defer f.hold()()
	t, input, err := f.read(s)
	if err != nil {
		return err
	}
	if err := f.affordable(t.X.Rows, t.X.Cols); err != nil {
		return explain(err, t, f.flagOf)
	}
	ctx, stop := interruptible()
	defer stop()
	out := &outputs{stdout: s.out}
	defer out.discard()
	if f.plot != "" {
		if err := out.open(f.plot, input); err != nil {
			return err
		}
	}
	c := newComparison(f, newProgress(f.progress, s.err))
	c.of = markOf(t)
	if f.checkpoint != "" {
		if c.done, err = openFits(f.checkpoint, f.resume, input, f.identity()); err != nil {
			return err
		}
		defer c.done.close()
	}
	err = c.run(ctx, t.X)
	c.told.end()
	if err != nil {
		if ctx.Err() != nil {
			return interrupted("interrupted before all fits were done" + c.left())
		}
		return explain(err, t, f.flagOf)
	}
	if f.plot != "" {
		if err := out.write(f.plot,
			func(w io.Writer) error { return c.object().chart().Write(w) }); err != nil {
			return err
		}
	}
	if err := out.commit(); err != nil {
		return err
	}
	if f.asJSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", " ")
		err = e.Encode(c.object())
	} else {
		_, err = io.WriteString(s.out, c.Table())
	}
	if err != nil {
		return err
	}
	if c.done != nil {
		c.done.remove()
	}
	verdict := c.Verdict()
	if c.losses != "" {
		verdict = c.losses + "\n" + verdict
	}
	return c.told.summary(verdict)
}

// affordable returns an error for a comparison that would take more memory than -max-memory: the matrix, a
// copy for every repeat, and a fit with its reconstruction for every processor.
func (f *rankFlags) affordable(d, n int) error {
	most := 0.0
	for _, t := range f.trials() {
		need, err := quantmf.MemoryOf(methodOf[f.method], d, n, t.Rank,
			append(t.Options, quantmf.WithMissingValues(), quantmf.WithWorkers(1))...)
		if err != nil {
			return err
		}
		most = max(most, float64(need.Fit))
	}
	numbers := 8 * float64(d) * float64(n)
	fits := float64(min(runtime.GOMAXPROCS(0), f.repeats*len(f.trials())))
	// reading takes less
	need := margin*((1.25+1.125*float64(f.repeats))*numbers+fits*(most+numbers)) + buffers + programSize
	return f.allows(need, "this", "use fewer features (-top), components, levels or repeats, or allow more")
}

// identity is a text of all on which the fits depend, beside the matrix and the sizes tried.
func (f *rankFlags) identity() string {
	return f.method + "\n" + f.losses + "\n" + strings.Join(f.given, "\n")
}

// comparison is a comparison under way, and its results.
type comparison struct {
	*rankFlags
	of   tableMark
	told *progress
	done *fitsDone // nil without -checkpoint

	ranking.Comparison
}

func newComparison(f *rankFlags, told *progress) *comparison {
	return &comparison{rankFlags: f, told: told,
		Comparison: ranking.Comparison{Ks: f.ks, Ms: f.ms, Repeats: f.repeats, Seed: f.seed}}
}

// run makes the fits. It gives HeldOut the number of the trial in place of a rank, from which the fit finds
// its k and m.
func (c *comparison) run(ctx context.Context, x quantmf.Mat) error {
	trials := c.trials()
	numbered := make([]quantmf.Trial, len(trials))
	for i, t := range trials {
		numbered[i] = quantmf.Trial{Rank: i, Options: t.Options}
	}
	all := len(trials) * c.repeats
	var mutex sync.Mutex
	done := 0
	c.told.begin("rank")
	err := c.told.count(0, all, "fits")
	if err != nil {
		return err
	}
	c.Got, err = quantmf.HeldOut(ctx, x,
		func(ctx context.Context, x quantmf.Rows, trial int, options ...quantmf.FitOption) (quantmf.Model,
			error) {
			m, key := quantmf.Model(nil), uint64(0)
			if c.done != nil {
				key = hashOf(x.(quantmf.Mat), trials[trial].Rank, c.M(trial))
				m = c.done.get(key)
			}
			if m == nil {
				var err error
				if m, err = flags.Fit(ctx, c.method, x, trials[trial].Rank, options); err != nil {
					return nil, err
				}
				if c.done != nil {
					if err := c.done.put(key, m); err != nil {
						return nil, err
					}
				}
			}
			mutex.Lock()
			defer mutex.Unlock()
			done++
			return m, c.told.count(done, all, "fits")
		}, numbered, quantmf.Masks{Repeats: c.repeats, Share: c.share, Seed: c.seed})
	if err == nil {
		c.Choose()
	}
	return err
}

// left says how many fits an interrupt leaves, and where.
func (c *comparison) left() string {
	if c.done == nil {
		return ""
	}
	return "; those that are done are in " + c.checkpoint + ": the same command with -resume goes on"
}

// The object of rank -json.
type (
	rankObject struct {
		Table    *tableMark    `json:"table"`
		Method   string        `json:"method"`
		Loss     string        `json:"loss_reason,omitempty"`
		Repeats  int           `json:"repeats"`
		Share    float64       `json:"share"`
		Trials   []trialObject `json:"trials"`
		Best     int           `json:"best"`   // an index into trials
		Chosen   int           `json:"chosen"` // the smallest within a standard error of the best
		Sure     *float64      `json:"sure,omitempty"`
		Warnings []string      `json:"warnings"`
	}
	// tableMark tells tables apart. Values is a hash of the names and the values of all features, in
	// hexadecimal digits. It does not depend on the order of the features.
	tableMark struct {
		Features int    `json:"features"`
		Samples  int    `json:"samples"`
		Values   string `json:"values"`
	}
	trialObject struct {
		K           int       `json:"k"`
		M           int       `json:"m,omitempty"`
		Mean        float64   `json:"mean"`
		StdErr      float64   `json:"stderr"`
		Worse       float64   `json:"worse"`
		WorseStdErr float64   `json:"worse_stderr"`
		Losses      []float64 `json:"losses"`
	}
)

func (c *comparison) object() rankObject {
	o := rankObject{Table: &c.of, Method: c.method, Loss: c.losses, Repeats: c.repeats, Share: c.share,
		Best: c.Best, Chosen: c.Chosen, Warnings: append([]string{}, c.Edges()...)}
	if c.repeats > 1 {
		o.Sure = &c.Sure
	}
	for i, p := range c.Got {
		worse, stdErr := c.Worse(i)
		o.Trials = append(o.Trials, trialObject{c.K(i), c.M(i), p.Mean, p.StdErr, worse, stdErr, p.Losses})
	}
	return o
}

func markOf(t *table.Table) tableMark {
	sum := uint64(0)
	row := make([]byte, 0, 8*t.X.Cols)
	for i := range t.X.Rows {
		row = row[:0]
		for _, v := range t.X.Row(i) {
			if v != v {
				v = math.NaN() // a NaN may have any bits: the hash takes one
			}
			row = binary.LittleEndian.AppendUint64(row, math.Float64bits(v))
		}
		sum += crc64.Checksum(append(row, t.Features[i]...), crc)
	}
	return tableMark{t.X.Rows, t.X.Cols, fmt.Sprintf("%016x", sum)}
}

// of returns an error if the results are not those of table t.
func (o rankObject) of(t *table.Table) error {
	const give = `: give what "quantmf rank -json" writes of this one`
	switch here := markOf(t); {
	case o.Table == nil:
		return errors.New("does not say which table it is of" + give)
	case o.Table.Features != here.Features || o.Table.Samples != here.Samples:
		return fmt.Errorf("is of a table of %s and %s, this one has %d and %d%s",
			counted(o.Table.Features, "feature"), counted(o.Table.Samples, "sample"), here.Features,
			here.Samples, give)
	case o.Table.Values != here.Values:
		return errors.New("is of a table of the same size with other values or names of features (-log1p " +
			"changes values, too)" + give)
	}
	return nil
}

// chart draws the losses over k, a line for every m.
func (o rankObject) chart() report.Chart {
	chart := report.Chart{Title: "Loss of hidden cells", XLabel: "components, k", YLabel: "mean divergence"}
	order := make([]int, len(o.Trials))
	for i := range order {
		order[i] = i
	}
	asMany := func(k int) int { // 0 stands for as many as possible
		if k == 0 {
			return math.MaxInt
		}
		return k
	}
	slices.SortStableFunc(order,
		func(a, b int) int { return cmp.Compare(asMany(o.Trials[a].K), asMany(o.Trials[b].K)) })
	var levels []int // the values of m, in the order of trials
	for _, t := range o.Trials {
		if !slices.Contains(levels, t.M) {
			levels = append(levels, t.M)
		}
	}
	for _, m := range levels {
		line := report.Line{}
		if m > 0 {
			line.Name = fmt.Sprintf("m = %d", m)
		}
		for _, i := range order {
			if t := o.Trials[i]; t.M == m {
				label := strconv.Itoa(t.K)
				if t.K == 0 {
					label = "all"
				}
				line.Points = append(line.Points,
					report.Point{Label: label, Y: t.Mean, Error: t.StdErr, Marked: i == o.Chosen,
						Best: i == o.Best})
			}
		}
		chart.Lines = append(chart.Lines, line)
	}
	return chart
}

// words says which trial is best and which to take, for the page.
func (o rankObject) words() string {
	name := func(i int) string {
		t := o.Trials[i]
		text := fmt.Sprintf("k = %d", t.K)
		if t.K == 0 {
			text = "as many components as there can be"
		}
		if t.M > 0 {
			text += fmt.Sprintf(" with m = %d", t.M)
		}
		return text
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%g %% of the cells were hidden, %s, from fits by %s. They are predicted best with %s",
		100*o.Share, counted(o.Repeats, "time"), strings.ToUpper(o.Method), name(o.Best))
	if o.Chosen != o.Best {
		fmt.Fprintf(&s, "; %s is the smallest within one standard error of it", name(o.Chosen))
	}
	if o.Sure != nil {
		fmt.Fprintf(&s, "; %.0f %% of resamplings of the repeats choose %s", 100**o.Sure, name(o.Chosen))
	}
	s.WriteString(".")
	for _, w := range o.Warnings {
		s.WriteString(" Beware: " + w + ".")
	}
	return s.String()
}

// readRank reads the object of rank -json.
func readRank(data []byte) (o rankObject, err error) {
	if json.Unmarshal(data, &o) != nil || len(o.Trials) == 0 || min(o.Best, o.Chosen) < 0 ||
		max(o.Best, o.Chosen) >= len(o.Trials) {
		return o, errors.New("is not what quantmf rank -json writes")
	}
	if len(o.Trials) > 200 {
		return o, errors.New("has more than 200 trials: the page cannot draw so many")
	}
	return o, nil
}
