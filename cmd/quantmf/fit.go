package main

// This file holds "quantmf fit": its flags, and the way from a matrix to the
// files asked for.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/cmd/quantmf/internal/report"
	"github.com/quantmf/quantmf/cmd/quantmf/internal/table"
)

const fitUsage = `usage: quantmf fit [flags] MATRIX

Learns an increasing map T for every feature (a row of MATRIX) together with
factors U and V, so that MATRIX is close to T(UV): UV is of low rank, and T
takes each feature from the scale of UV to its own.

MATRIX is a file of tab-, comma- or semicolon-separated text, plain or gzipped;
what it is is known by its content, and "-" is standard input. Features are in
rows, samples in columns; the first row and the first column are names. Without
names it is s1, s2, ... and f1, f2, ... instead. Values are finite and at least
0. There is no way to leave out missing ones.

What is fitted
  -method qmf|nmf   qmf: X = T(UV); nmf: X = UV, no scales (default qmf)
  -k N              rank, the number of components (default 10)
  -log1p            take log(1+x) of every value first (natural logarithm)
  -top N            keep the N features of largest standard deviation, after
                    -log1p (default: all)

How (defaults are those of the package)
  -m N              levels, the quantiles learned per feature, at least 2
                    (qmf; default 16)
  -eps X            entropic regularisation of the scales, above 0; larger is
                    smoother (qmf; default 0.01)
  -epochs N         visits of every feature (default 100 for qmf, 200 for nmf)
  -lr X             learning rate of Adam, above 0 (qmf; default 0.1)
  -schedule cosine|constant
                    how the learning rate falls (qmf; default cosine)
  -batch N          features visited between two steps of V (qmf; default 32)
  -start scores|nmf|uniform
                    start from an NMF of normal scores, from an NMF of the
                    matrix, or at random as in the paper (qmf; default scores)
  -ends free|pinned learn each feature's lowest and highest quantile, or keep
                    them at its minimum and maximum (qmf; default free)
  -penalty X        weight of the penalty on the factors (default 0)
  -shrinkage X      pull of every map towards a straight line, in pseudo-samples
                    (qmf; default 0)
  -seed N           seed of everything random (default 1)
  -workers N        features worked on at the same time, 0 for one per
                    processor; the result does not depend on it (default 0)

What is written ("-" is standard output; a name that ends in .csv gets commas,
others tabs; .gz behind it compresses)
  -u FILE           U, features × components
  -v FILE           V, components × samples
  -q FILE           per feature the quantiles q1, q2, ... and their weights
                    w1, w2, ... (qmf)
  -report FILE      a page of figures in one HTML file
  -progress auto|plain|json|none
                    on standard error: auto: one line rewritten on a terminal,
                    plain elsewhere; plain: up to ten lines a fit; json: an
                    object per epoch; none: nothing (default auto)

At the end standard error has a summary in words. For qmf it compares the loss,
the mean Kullback-Leibler divergence per entry, with that of an NMF of the same
rank after 1000 updates. With -progress json it is an object like the others.

Either all files are written or none. An interrupt (Ctrl-C, SIGTERM) stops the
fit and writes none.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 130 interrupted.
`

// comparisonUpdates is how long the NMF runs that a QMF is compared with.
const comparisonUpdates = 1000

// fitFlags are the flags of a fit.
type fitFlags struct {
	method    string
	rank, top int
	log1p     bool
	matrix    string
	progress  string

	uFile, vFile, qFile, page string // to write, "" for none

	options []quantmf.FitOption // of flags that were given alone: the defaults are the package's
	shared  []quantmf.FitOption // those of them that hold for the NMF to compare with
	flagOf  map[string]string   // the flag of each option of the package
	given   []string            // the flags given that the result depends on, as words of a command line
}

// optionFlag is a flag that becomes an option of the package.
type optionFlag struct {
	name, option string
	parse        func(s string) (quantmf.FitOption, error)
	text         string
	value        quantmf.FitOption
}

func (o *optionFlag) String() string { return o.text }

func (o *optionFlag) Set(s string) (err error) {
	o.text = s
	o.value, err = o.parse(s)
	return err
}

func optionFlags() []*optionFlag {
	return []*optionFlag{
		{name: "m", option: "WithLevels", parse: whole(quantmf.WithLevels)},
		{name: "eps", option: "WithEpsilon", parse: decimal(quantmf.WithEpsilon)},
		{name: "epochs", option: "WithEpochs", parse: whole(quantmf.WithEpochs)},
		{name: "lr", option: "WithLearningRate", parse: decimal(quantmf.WithLearningRate)},
		{name: "schedule", option: "WithSchedule", parse: choice(quantmf.WithSchedule,
			[]string{"cosine", "constant"}, quantmf.ScheduleCosine, quantmf.ScheduleConstant)},
		{name: "batch", option: "WithBatch", parse: whole(quantmf.WithBatch)},
		{name: "start", option: "WithStart", parse: choice(quantmf.WithStart,
			[]string{"scores", "nmf", "uniform"}, quantmf.StartScores, quantmf.StartNMF, quantmf.StartUniform)},
		{name: "ends", option: "WithEnds", parse: choice(quantmf.WithEnds,
			[]string{"free", "pinned"}, quantmf.EndsFree, quantmf.EndsPinned)},
		{name: "penalty", option: "WithPenalty", parse: decimal(quantmf.WithPenalty)},
		{name: "shrinkage", option: "WithShrinkage", parse: decimal(quantmf.WithShrinkage)},
		{name: "seed", option: "WithSeed", parse: seed},
		{name: "workers", option: "WithWorkers", parse: whole(quantmf.WithWorkers)},
	}
}

func whole[O quantmf.FitOption](with func(int) O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return nil, errors.New("not a whole number")
		}
		return with(v), nil
	}
}

func decimal[O quantmf.FitOption](with func(float64) O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, errors.New("not a number")
		}
		return with(v), nil
	}
}

func choice[T any](with func(T) quantmf.FitOption, words []string, values ...T) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		i := slices.Index(words, s)
		if i < 0 {
			return nil, mustBeOneOf(words)
		}
		return with(values[i]), nil
	}
}

func mustBeOneOf(words []string) error {
	return errors.New("must be one of " + strings.Join(words, ", "))
}

func seed(s string) (quantmf.FitOption, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return nil, errors.New("not a whole number from 0 to 2^64-1")
	}
	return quantmf.WithSeed(v), nil
}

func parseFit(args []string) (*fitFlags, error) {
	f := &fitFlags{flagOf: map[string]string{"rank": "k"}}
	set := flag.NewFlagSet("fit", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.method, "method", "qmf", "")
	set.IntVar(&f.rank, "k", 10, "")
	set.BoolVar(&f.log1p, "log1p", false, "")
	set.IntVar(&f.top, "top", 0, "")
	set.StringVar(&f.uFile, "u", "", "")
	set.StringVar(&f.vFile, "v", "", "")
	set.StringVar(&f.qFile, "q", "", "")
	set.StringVar(&f.page, "report", "", "")
	set.StringVar(&f.progress, "progress", "auto", "")
	options := optionFlags()
	for _, o := range options {
		f.flagOf[o.option] = o.name
		set.Var(o, o.name, "")
	}

	// Flags may stand behind the matrix, too.
	var matrices []string
	for len(args) > 0 {
		if err := set.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError(err.Error())
		}
		args = set.Args()
		if len(args) > 0 {
			matrices, args = append(matrices, args[0]), args[1:]
		}
	}
	switch {
	case len(matrices) == 0:
		return nil, usageError("no matrix given")
	case len(matrices) > 1:
		return nil, usageError("more than one matrix given: " + strings.Join(matrices, ", "))
	}
	f.matrix = matrices[0]
	given := map[string]bool{}
	set.Visit(func(g *flag.Flag) {
		given[g.Name] = true
		switch g.Name {
		case "u", "v", "q", "report", "progress", "workers":
		case "log1p":
			f.given = append(f.given, "-log1p="+g.Value.String())
		default:
			f.given = append(f.given, "-"+g.Name, g.Value.String())
		}
	})
	for _, o := range options {
		if !given[o.name] {
			continue
		}
		f.options = append(f.options, o.value)
		if o.name == "seed" || o.name == "workers" {
			f.shared = append(f.shared, o.value)
		}
	}
	methods, modes := []string{"qmf", "nmf"}, []string{"auto", "plain", "json", "none"}
	switch {
	case !slices.Contains(methods, f.method):
		return nil, usageError(fmt.Sprintf("-method %s: %v", f.method, mustBeOneOf(methods)))
	case !slices.Contains(modes, f.progress):
		return nil, usageError(fmt.Sprintf("-progress %s: %v", f.progress, mustBeOneOf(modes)))
	case given["top"] && f.top < 1:
		return nil, usageError(fmt.Sprintf("-top %d: must be at least 1", f.top))
	case f.qFile != "" && f.method == "nmf":
		return nil, usageError("-q: an NMF has no scales to write")
	}
	return f, nil
}

func fit(args []string, s streams) error {
	began := time.Now()
	f, err := parseFit(args)
	if err != nil {
		return err
	}
	t, input, err := readTable(f.matrix, s.in)
	if err != nil {
		return err
	}
	if f.log1p {
		t.Log1p()
	}
	if f.top > 0 {
		t = t.MostVariable(f.top)
	}

	// From here on there are files to be cleaned up: an interrupt ends the fit,
	// not the process; a second one does end it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	outlivePipes()
	out := &outputs{stdout: s.out}
	defer out.discard()
	for _, path := range []string{f.uFile, f.vFile, f.qFile, f.page} {
		if path == "" {
			continue
		}
		if err := out.open(path, input); err != nil {
			return err
		}
	}

	tell := newProgress(f.progress, s.err)
	r := &result{fitFlags: f, table: t}
	err = r.fit(ctx, tell)
	tell.end()
	if err != nil {
		return err
	}
	if err := r.write(out); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted before the files were in place; no file was written")
	}
	if err := out.commit(); err != nil {
		return err
	}
	return tell.summary(r.summary(time.Since(began).Seconds()))
}

// readTable also says which file it read, nil for standard input.
func readTable(path string, stdin io.Reader) (*table.Table, os.FileInfo, error) {
	if path == "-" {
		t, err := table.Read(stdin, "stdin")
		return t, nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, &inputError{err}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, &inputError{err}
	}
	if info.IsDir() {
		return nil, nil, &inputError{errors.New(path + ": is a folder, not a matrix")}
	}
	t, err := table.Read(file, path)
	return t, info, err
}

// result is a fit done, with what is told of it.
type result struct {
	*fitFlags
	table *table.Table

	u, v     quantmf.Mat
	history  []float64
	warnings []error
	qmf      *quantmf.QMF // nil where the method is nmf
	nmf      *quantmf.NMF // the fit, or what the QMF is compared with
}

func (r *result) fit(ctx context.Context, tell *progress) error {
	x, observe := r.table.X, quantmf.WithProgress(tell.report)
	stopped := func(err error) error {
		if ctx.Err() != nil && tell.last.Epoch == 0 {
			return interrupted("interrupted at the start of the " + tell.model + "; no file was written")
		}
		if ctx.Err() != nil {
			return interrupted(fmt.Sprintf("interrupted after %d of %d epochs of the %s, at a loss of %.4g; no file was written",
				tell.last.Epoch, tell.last.Epochs, tell.model, tell.last.Loss))
		}
		return explain(err, r.table, r.flagOf)
	}
	var err error
	if r.method == "nmf" {
		tell.begin("NMF")
		if r.nmf, err = quantmf.FitNMF(ctx, x, r.rank, append(r.options, observe)...); err != nil {
			return stopped(err)
		}
		r.u, r.v, r.history, r.warnings = r.nmf.U, r.nmf.V, r.nmf.History, r.nmf.Warnings
		return nil
	}
	tell.begin("QMF")
	if r.qmf, err = quantmf.FitQMF(ctx, x, r.rank, append(r.options, observe)...); err != nil {
		return stopped(err)
	}
	r.u, r.v, r.history, r.warnings = r.qmf.U, r.qmf.V, r.qmf.History, r.qmf.Warnings
	tell.begin("NMF to compare with")
	if r.nmf, err = quantmf.FitNMF(ctx, x, r.rank, append(r.shared, quantmf.WithEpochs(comparisonUpdates), observe)...); err != nil {
		return stopped(err)
	}
	return nil
}

// write fills every output.
func (r *result) write(out *outputs) error {
	t, components := r.table, numbered("c", r.rank)
	for _, f := range []struct {
		path string
		fill func(w io.Writer) error
	}{
		{r.uFile, func(w io.Writer) error {
			return table.Write(w, r.uFile, "feature", t.Features, components, r.u)
		}},
		{r.vFile, func(w io.Writer) error {
			return table.Write(w, r.vFile, "component", components, t.Samples, r.v)
		}},
		{r.qFile, func(w io.Writer) error {
			m := r.qmf.Quantiles.Cols
			return table.Write(w, r.qFile, "feature", t.Features, append(numbered("q", m), numbered("w", m)...), beside(r.qmf.Quantiles, r.qmf.Weights))
		}},
		{r.page, r.report},
	} {
		if f.path == "" {
			continue
		}
		if err := out.write(f.path, f.fill); err != nil {
			return err
		}
	}
	return nil
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}

// beside returns [a b].
func beside(a, b quantmf.Mat) quantmf.Mat {
	m := quantmf.NewMat(a.Rows, a.Cols+b.Cols)
	for i := range m.Rows {
		copy(m.Row(i), a.Row(i))
		copy(m.Row(i)[a.Cols:], b.Row(i))
	}
	return m
}

func (r *result) report(w io.Writer) error {
	f := report.Fit{
		Matrix:   r.name(),
		Method:   strings.ToUpper(r.method),
		Command:  r.commandLine(),
		Version:  version(),
		Features: r.table.Features,
		Samples:  r.table.Samples,
		X:        r.table.X,
		U:        r.u,
		V:        r.v,
		Loss:     r.history,
		Warnings: r.warningsInWords(),
	}
	if r.qmf == nil {
		f.Fitted = r.nmf.Reconstruct()
		return report.Write(w, f)
	}
	f.Fitted, f.Bend, f.Unconverged = r.qmf.Reconstruct(), r.qmf.Bend(), r.unconverged()
	f.Compared, f.ComparedUpdates = last(r.nmf.History), comparisonUpdates
	f.Maps = make([]func(float64) float64, len(f.Features))
	for i := range f.Maps {
		m, err := r.qmf.Map(i)
		if err != nil {
			return err
		}
		f.Maps[i] = m.At
	}
	return report.Write(w, f)
}

func last(v []float64) float64 { return v[len(v)-1] }

// name is what the matrix is called where only its name matters.
func (r *result) name() string {
	if r.matrix == "-" {
		return "standard input"
	}
	return filepath.Base(r.matrix)
}

// commandLine repeats the fit, as a shell would take it. It says more than the
// user did: what most decides the result.
func (r *result) commandLine() string {
	words := append([]string{"quantmf", "fit"}, r.given...)
	say := func(name, value string) {
		if !slices.Contains(r.given, name) {
			words = append(words, name, value)
		}
	}
	say("-method", r.method)
	say("-k", strconv.Itoa(r.rank))
	if r.qmf != nil {
		say("-m", strconv.Itoa(r.qmf.Quantiles.Cols))
	}
	say("-epochs", strconv.Itoa(len(r.history)-1))
	say("-seed", "1")
	if r.matrix == "-" {
		words = append(words, "-")
	} else {
		words = append(words, filepath.Base(r.matrix))
	}
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, needsQuotes) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// needsQuotes reports a character that might mean something to a shell.
func needsQuotes(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_./+:=,@", c))
}
