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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

const fitUsage = `usage: quantmf fit [flags] MATRIX

Learns factors U and V of low rank together with an increasing map T for every
feature (a row of MATRIX), so that MATRIX is close to T(UV). The map takes its
feature from the scale of UV to the feature's own scale.

` + matrixHelp + `
` + readHelp + `
What is fitted
  -method qmf|qmfq|nmf|bqmf
                    qmf: X = T(UV); qmfq: X = T(P(T'(X))), a map on either side
                    of a projection P onto the components; nmf: X = UV, without
                    maps; bqmf: X = T(UV) with U and V of either sign, the best
                    predictor of missing values (default qmf)
  -k N              rank, the number of components (default 10); of bqmf the most
                    there may be: components that the data do not need fade
                    (default 0: 50, or one fewer than features or samples)
  -loss auto|kl|frobenius|BETA
                    what is minimised: the Kullback-Leibler divergence, half the
                    squared differences, or the β-divergence of a β from -2 to 4
                    (bqmf: kl or frobenius). Under frobenius all methods but nmf
                    take values of any sign, such as log ratios and z-scores.
                    auto is frobenius where a value is negative and kl elsewhere;
                    the summary says which (default auto)
  -missing          empty cells, NA and NaN are missing values: the fit leaves them
                    out, and "quantmf reconstruct" fills them in (default: they are
                    errors)
  -log1p            take log(1+x) of every value first (natural logarithm); no
                    value may be negative
  -top N            keep the N features of largest standard deviation, after
                    -log1p (default: all)

How it is fitted (defaults are those of the package)
  -m N              levels, the quantiles learned per feature, at least 2
                    (qmf, qmfq; default 8)
  -eps X            entropic regularisation of the maps, above 0; larger is
                    smoother (qmf, qmfq; default 0.02)
  -epochs N         visits of every feature (default 4 for qmf, 100 for qmfq,
                    20 for nmf, under kl 10 from 8192 samples on; at most 60
                    for each of the two fits of bqmf; 20 for qmf where Adam steps
                    U and V, which it does with -start uniform, with -k above 32
                    and with a -loss below -0.5)
  -lr X             learning rate of Adam, above 0 (default 0.2 for qmf, 0.1 for
                    qmfq; 0.06 for qmf where Adam steps U and V)
  -schedule cosine|constant
                    how the learning rate falls (qmf, qmfq; default cosine)
  -batch N          features visited between two steps of V (qmf; default 32)
  -start auto|scores|nmf|uniform|svd
                    where the fit starts: scores: an NMF of the ranks of each
                    feature, as normal scores; nmf: an NMF of the matrix; auto: the
                    one of these two that predicts hidden cells better (the three
                    are for qmf and qmfq); uniform: at random; svd: singular vectors
                    (nmf). auto of nmf: uniform, but under kl from 8192 samples
                    on an NMF of 2048 of them (default auto)
  -ends free|pinned free: learn each feature's lowest and highest quantile; pinned:
                    keep them at its minimum and maximum (qmf, qmfq; default free)
  -penalty X        weight of the penalty on the factors (qmf, nmf; default 0)
  -shrinkage X      how strongly every map is pulled towards a straight line, in
                    pseudo-samples (qmf, qmfq; default: of 0, 20 and 100 the one
                    that predicts hidden cells best; 0 with -ends pinned or -start
                    uniform)
  -projection kl:N|frobenius:N|svd
                    the projection P: N updates under the named divergence, or
                    singular vectors, which take no missing values (qmfq; default
                    kl:5, with -start uniform kl:100)
  -updates newton|multiplicative
                    newton: Newton's method, under kl and frobenius;
                    multiplicative: the updates of the textbooks, 200 of them unless
                    -epochs is given (nmf; default newton under kl and frobenius,
                    multiplicative under other losses and where -k is above the
                    number of features and samples together)
  -tolerance X      where a map counts as converged, above 0 (qmf, qmfq; default
                    1e-9); of bqmf the share of UV that the last epoch may still
                    change (default 0.003)
  -validation X     hide this share of the values, up to 0.5, from the fit, and take
                    the epoch that predicts them best (default: hide none)
  -patience N       end when the loss has not fallen for N epochs (not bqmf;
                    default: never)
  -restarts N       the number of fits, each with the next seed, of which the best
                    is taken (not bqmf; default 1)
  -strict           fail, with exit code 4, where a map has not converged
                    (qmf, qmfq; default: warn)
  -seed N           seed of everything random (default 1)
  -workers N        threads that work on features, 0 for one per
                    processor; the result does not depend on it (default 0)
  -max-memory SIZE  refuse a matrix or a fit that needs more, such as 500MB, with
                    exit code 3 (default 8GiB)

What is written ("-" is standard output; the ending of a name says the format)
  -o FILE           the model, for the other commands
  -u FILE           U, features × components
  -v FILE           V, components × samples
  -q FILE           per feature the quantiles q1, q2, ... and their weights
                    w1, w2, ... (qmf)
  -report FILE      a page of figures in one HTML file
` + pageHelp + `  -progress auto|plain|json|none
                    what is told on standard error: auto: one line rewritten on a
                    terminal, elsewhere as plain; plain: up to ten lines a fit;
                    json: an object per epoch; none: only warnings and the summary
                    (default auto)

A fit that can stop and go on
  -checkpoint FILE  keep the state of the fit here: about every ten seconds, at an
                    interrupt, and at the end. An existing file is refused without
                    -resume or -force
  -resume           go on from the state in the -checkpoint file, if there is one,
                    with the same matrix and flags. The result has the bits of a fit
                    that never stopped. With -method nmf or -schedule constant
                    -epochs may be larger than before, also after the end of a fit
  -force            start anew over an existing -checkpoint file

At the end a summary in words goes to standard error; with -progress json it is an
object like the others. For qmf and qmfq the summary compares the loss, which is
the mean divergence per entry, with that of an NMF of the same rank after 1000
updates, unless values are negative.

Either all files are written or none. An interrupt (Ctrl-C, SIGTERM) stops the
fit and writes the checkpoint alone.

` + exitHelp

// Parts of the help of several commands.
const (
	matrixHelp = `MATRIX is a file of tab-, comma-, semicolon- or blank-separated text, GCT, a series
matrix of GEO, Matrix Market, npy or npz (SciPy's sparse matrices, too), plain or
compressed by gzip or bzip2; or a folder of 10x with matrix.mtx, features.tsv and
barcodes.tsv; or "-", standard input. The content tells the format. Features are in
rows, samples in columns. A line on standard error says what was taken for names,
and warnings say what may be wrong with that. Features without names are f1, f2,
..., samples s1, s2, ... Values must be finite; negative ones need -loss frobenius,
which auto takes for them.
`
	writeHelp = `The ending of FILE says its format: .tsv, .txt, .tab, .csv, .gct, .mtx, .npy or
.npz. A further .gz compresses it. "-" is standard output, tab-separated without
-format.
`
	exitHelp = `Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input or model file, 4 not
converged under -strict, 130 interrupted.
`
)

// comparisonUpdates is the number of updates of the NMF with which a fit is compared.
const comparisonUpdates = 1000

// fitFlags are the flags of a fit.
type fitFlags struct {
	method    string
	rank, top int
	log1p     bool
	missing   bool
	loss      quantmf.Loss
	autoLoss  bool   // no loss was given: the signs of the matrix choose it
	losses    string // which loss was taken, and why
	limits
	matrix string

	modelFile, uFile, vFile, qFile, page string // to write, "" for none
	look                                 pageFlags

	checkpoint    string
	resume, force bool

	in inputFlags // how the matrix is read

	options []quantmf.FitOption // of the flags that were given; the package has the defaults
	shared  []quantmf.FitOption // those of options that also hold for the NMF of the comparison
	flagOf  map[string]string   // the flag of each option of the package
	given   []string            // the flags given that the result depends on, as words of a command line
}

var methods = []string{"qmf", "qmfq", "nmf", "bqmf"}

func parseFit(args []string) (*fitFlags, error) {
	options := optionFlags()
	f := &fitFlags{flagOf: flagOf(options), loss: quantmf.KL, autoLoss: true}
	set := newFlags("fit")
	set.StringVar(&f.method, "method", "qmf", "")
	set.IntVar(&f.rank, "k", 10, "")
	set.BoolVar(&f.log1p, "log1p", false, "")
	set.IntVar(&f.top, "top", 0, "")
	f.limits.flags(set)
	set.StringVar(&f.modelFile, "o", "", "")
	set.StringVar(&f.uFile, "u", "", "")
	set.StringVar(&f.vFile, "v", "", "")
	set.StringVar(&f.qFile, "q", "", "")
	set.StringVar(&f.page, "report", "", "")
	f.look.register(set)
	f.in.register(set, false)
	set.StringVar(&f.checkpoint, "checkpoint", "", "")
	set.BoolVar(&f.resume, "resume", false, "")
	set.BoolVar(&f.force, "force", false, "")
	for _, o := range options {
		set.Var(o, o.Name, "")
	}
	words, err := arguments(set, args, "MATRIX")
	if err != nil {
		return nil, err
	}
	f.matrix = words[0]
	given := f.take(set, options)
	if f.method == "bqmf" && !given["k"] {
		f.rank = 0 // the data choose
	}
	switch {
	case !slices.Contains(methods, f.method):
		return nil, usageError(fmt.Sprintf("-method %s: %v", f.method, flags.OneOf(methods)))
	case given["top"] && f.top < 1:
		return nil, usageError(fmt.Sprintf("-top %d: must be at least 1", f.top))
	case f.qFile != "" && f.method != "qmf":
		return nil, usageError("-q: only a QMF has quantiles to write")
	}
	if err := f.in.writable(f.uFile, f.vFile, f.qFile); err != nil {
		return nil, err
	}
	if err := f.limits.check(); err != nil {
		return nil, err
	}
	if err := f.look.check(f.matrix); err != nil {
		return nil, err
	}
	for _, name := range []string{"groups", "order", "rank"} {
		if given[name] && f.page == "" {
			return nil, usageError("-" + name + ": it says how the page looks: give -report, too")
		}
	}
	if err := f.takes(f.method, f.options); err != nil {
		return nil, err
	}
	if err := apart(f.modelFile, f.uFile, f.vFile, f.qFile, f.page, f.checkpoint); err != nil {
		return nil, err
	}
	return f, checkpointFlags(f.checkpoint, f.resume, f.force)
}

// take enters the flags that were given into options, shared and given, and returns the names of all flags
// that were given.
func (f *fitFlags) take(set *flag.FlagSet, options []*optionFlag) map[string]bool {
	given := map[string]bool{}
	set.Visit(func(g *flag.Flag) {
		given[g.Name] = true
		switch g.Name {
		case "o", "u", "v", "q", "report", "progress", "workers", "checkpoint", "resume", "force",
			"max-memory", "format", "groups", "order", "rank", "shards":
		case "log1p", "missing", "strict", "transpose":
			f.given = append(f.given, "-"+g.Name+"="+g.Value.String())
		default:
			f.given = append(f.given, "-"+g.Name, g.Value.String())
		}
	})
	for _, o := range options {
		if !given[o.Name] || o.value == nil {
			continue
		}
		f.options = append(f.options, o.value)
		if o.Shared {
			f.shared = append(f.shared, o.value)
		}
		f.missing = f.missing || o.Name == "missing"
		if o.Name == "loss" {
			f.loss, _ = account.ParseLoss(o.text)
			f.autoLoss = false
		}
	}
	return given
}

// signed tells whether values may be negative.
func (f *fitFlags) signed() bool {
	return (f.loss == quantmf.Frobenius || f.autoLoss) && f.method != "nmf" && !f.log1p
}

// takeLoss takes frobenius if x has negative values, else kl, if no loss was given.
func (f *fitFlags) takeLoss(t *table.Table) error {
	if !f.autoLoss {
		return nil
	}
	count, err := negatives(t)
	if err != nil {
		return err
	}
	if count == 0 {
		f.losses = "-loss auto took kl: no value is negative"
		return nil
	}
	f.loss, f.losses = quantmf.Frobenius,
		fmt.Sprintf("-loss auto took frobenius: %s", are(count, "value", "negative"))
	f.options = append(f.options, quantmf.WithLoss(f.loss))
	f.shared = append(f.shared, quantmf.WithLoss(f.loss))
	return nil
}

// read reads the matrix, and applies -log1p and -top.
func (f *fitFlags) read(s streams) (*table.Table, os.FileInfo, error) {
	t, input, err := f.in.read(f.matrix, s, &f.limits, newProgress(f.progress, s.err), f.missing, f.signed())
	if err != nil {
		return nil, nil, err
	}
	if f.log1p {
		t.Log1p()
	}
	if f.top > 0 {
		if t, err = t.MostVariable(f.top); err != nil {
			return nil, nil, err
		}
	}
	return t, input, f.takeLoss(t)
}

func fit(args []string, s streams) error {
	began := time.Now()
	f, err := parseFit(args)
	if err != nil {
		return err
	}
	defer f.hold()()
	f.in.rows = f.page == "" // the page needs the matrix in full
	t, input, err := f.read(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.affordable(t); err != nil {
		return explain(err, t, f.flagOf)
	}
	if err := f.look.read(t, s, &f.limits); err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	out := &outputs{stdout: s.out}
	defer out.discard()
	for _, path := range []string{f.modelFile, f.uFile, f.vFile, f.qFile, f.page} {
		if path == "" {
			continue
		}
		if err := out.open(path, append(f.look.inputs, input)...); err != nil {
			return err
		}
	}

	tell := newProgress(f.progress, s.err)
	r := &result{fitFlags: f, table: t}
	err = r.prepareCheckpoint(input, s.err)
	if r.keep != nil {
		defer r.keep.lock.release()
	}
	if err != nil {
		return err
	}
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
	if err := r.nameless(s.err); err != nil {
		return err
	}
	text, err := r.summary(time.Since(began).Seconds())
	if err != nil {
		return explain(err, t, f.flagOf)
	}
	return tell.summary(text)
}

// open opens an input. It also returns the identity of the file, nil for standard input.
func open(path string, stdin io.Reader, what string) (io.ReadCloser, os.FileInfo, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, &inputError{err}
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New(path + ": is a folder, not a " + what)
	}
	if err != nil {
		file.Close()
		return nil, nil, &inputError{err}
	}
	size := int64(-1)
	// a file that the system makes up while it is read, as in /proc, has none
	if info.Mode().IsRegular() && info.Size() > 0 {
		size = info.Size()
	}
	return &wholeFile{File: file, name: path, size: size}, info, nil
}

// result is a finished fit, and what the summary tells.
type result struct {
	*fitFlags
	table *table.Table
	keep  *checkpoint // nil for none
	m     *model

	goodness []quantmf.Goodness // of each feature
}

func (r *result) fit(ctx context.Context, tell *progress) error {
	x, observe := r.table.Rows(), quantmf.WithProgress(tell.report)
	stopped := func(err error) error {
		var bad *quantmf.FormatError
		switch {
		case ctx.Err() != nil:
			return r.interrupted(tell)
		case errors.As(err, &bad):
			return fmt.Errorf("%s: %w", r.checkpoint, err)
		}
		return explain(err, r.table, r.flagOf)
	}
	tell.begin(strings.ToUpper(r.method))
	fitted, err := flags.Fit(ctx, r.method, x, r.rank, append(r.options, observe))
	if err != nil {
		return stopped(err)
	}
	if r.keep != nil {
		if err := r.keep.flush(); err != nil {
			return err
		}
	}
	m := modelOf(fitted)
	m.named(r.table)
	below, err := negatives(r.table)
	if err != nil {
		return stopped(err)
	}
	if m.transported() && below == 0 {
		tell.begin("NMF to compare with")
		nmf, err := quantmf.FitNMF(ctx, x, r.rank,
			append(r.shared, quantmf.WithUpdates(quantmf.UpdatesMultiplicative),
				quantmf.WithEpochs(comparisonUpdates), observe)...)
		if err != nil {
			return stopped(err)
		}
		goodness, err := nmf.Goodness(x)
		if err != nil {
			return stopped(err)
		}
		m.NMF, m.NMFUpdates, m.NMFExplained = last(nmf.History), comparisonUpdates, report.Average(goodness)
	}
	m.Matrix, m.Log1p, m.Top, m.Losses = r.name(), r.log1p, r.top > 0, r.losses
	m.Warnings, m.Unconverged = warningsInWords(m.warnings, m.features)
	if r.goodness, err = m.Goodness(x); err != nil {
		return stopped(err)
	}
	r.m = m
	m.Command = r.commandLine()
	return nil
}

// negatives counts the negative values.
func negatives(t *table.Table) (n int, err error) {
	err = t.EachRow(func(_ int, row []float64) {
		for _, v := range row {
			if v < 0 {
				n++
			}
		}
	})
	return n, err
}

// interrupted says how far the fit came, and which files hold what was done.
func (r *result) interrupted(tell *progress) error {
	left := "no file was written"
	if r.keep != nil && r.keep.state != nil {
		if err := r.keep.flush(); err != nil {
			return err
		}
		left = "the state is in " + r.checkpoint + ": the same command with -resume goes on"
	}
	if tell.last.Epoch == 0 {
		return interrupted("interrupted at the start of the " + tell.model + "; " + left)
	}
	return interrupted(fmt.Sprintf("interrupted after %d of %d epochs of the %s, at a %s of %.4g; %s",
		tell.last.Epoch, tell.last.Epochs, tell.model, tell.measure(), tell.last.Loss, left))
}

// write writes every output.
func (r *result) write(out *outputs) error {
	m, components := r.m, numbered("c", r.m.u.Cols)
	for _, f := range []struct {
		path string
		fill func(w io.Writer) error
	}{
		{r.modelFile, func(w io.Writer) error {
			data, err := m.marshal()
			if err == nil {
				_, err = w.Write(data)
			}
			return err
		}},
		{r.uFile, func(w io.Writer) error {
			return table.Write(w, r.in.place(r.uFile), "feature", m.features, components, m.u)
		}},
		{r.vFile, func(w io.Writer) error {
			return table.Write(w, r.in.place(r.vFile), "component", components, m.samples, m.v)
		}},
		{r.qFile, func(w io.Writer) error {
			q := m.Model.(*quantmf.QMF)
			levels := q.Quantiles.Cols
			return table.Write(w, r.in.place(r.qFile), "feature", m.features,
				append(numbered("q", levels), numbered("w", levels)...), beside(q.Quantiles, q.Weights))
		}},
		{r.page, func(w io.Writer) error { return m.report(w, r.table, &r.look) }},
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

// nameless says which outputs cannot hold the names of the model.
func (r *result) nameless(w io.Writer) error {
	features, samples := r.m.namedFeatures, r.m.namedSamples
	return errors.Join(r.in.nameless(w, r.uFile, features, false), r.in.nameless(w, r.vFile, false, samples),
		r.in.nameless(w, r.qFile, features, false))
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

func last(v []float64) float64 { return v[len(v)-1] }

// name is the name of the matrix without its folder.
func (f *fitFlags) name() string {
	if f.matrix == "-" {
		return "standard input"
	}
	return filepath.Base(f.matrix)
}

// word is that name as a word of a command line.
func (f *fitFlags) word() string {
	name := filepath.Base(f.matrix)
	if strings.HasPrefix(name, "-") && f.matrix != "-" {
		name = "./" + name // no flag
	}
	return name
}

// commandLine returns a command line that repeats the fit. It has the flags that the user gave, and the
// defaults on which the result depends most.
func (r *result) commandLine() string {
	words := append([]string{"quantmf", "fit"}, r.given...)
	say := func(name, value string) {
		if !slices.Contains(r.given, name) {
			words = append(words, name, value)
		}
	}
	say("-method", r.method)
	say("-k", strconv.Itoa(r.rank))
	if q, is := r.m.Model.(*quantmf.QMF); is {
		say("-m", strconv.Itoa(q.Quantiles.Cols))
	}
	// -patience may end the fit before that number of epochs
	if r.method != "bqmf" && !slices.Contains(r.given, "-patience") {
		say("-epochs", strconv.Itoa(len(r.m.history)-1))
	}
	say("-seed", "1")
	return shellLine(append(words, r.word()))
}

// shellLine is a command line of these words.
func shellLine(words []string) string {
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, needsQuotes) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// needsQuotes reports a character that might mean something to a shell.
func needsQuotes(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.ContainsRune("-_./+:=,@", c))
}
