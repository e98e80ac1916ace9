package main

// This file holds "quantmf fit": its flags, and the way from a matrix to the files asked for.

import (
	"context"
	"errors"
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
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

const asInFit = `as in "quantmf fit -h"`

func fitProgram() *cli.Program { return newFitFlags().program() }

func (f *fitFlags) program() *cli.Program {
	p := &cli.Program{
		Usage: []string{"[flags] MATRIX"},
		About: `Describes every sample (a column of MATRIX) as a mixture of k components: V has their amounts,
			U what each has of every feature (a row). A QMF also learns an increasing map T for every
			feature, from the mixture to the feature's own scale, so that MATRIX is close to T(UV); an NMF
			does without.` + "\n\n" + cli.MatrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Heading: "What is fitted", Flags: f.what()},
			{Heading: "How it is fitted (defaults are those of the package)",
				Flags: f.options.Flags(cli.How...)},
			{Heading: `What is written ("-" is standard output; the ending of a name says the format)`,
				Flags: append(append(f.files.Flags(),
					cli.File(&f.page, "report", "a page of figures in one HTML file")), f.look.flags()...)},
			f.keep.group("FILE", "keep the state of the fit here: about every ten seconds, at an "+
				"interrupt, and at the end",
				`, with the same matrix and flags. The result has the bits of a fit that never stopped. With
					-method nmf or bqmf or -schedule constant -epochs may be larger than before, also after
					the end of a fit`),
			f.in.Limits(),
		},
		After: `At the end a summary in words goes to standard error; with -progress json it is an object
			like the others.

			Either all files are written or none. An interrupt (Ctrl-C, SIGTERM) stops the fit and writes the
			checkpoint alone. One that comes in the further fits of -compare leaves these out: the files are
			written, and the exit code is 130.` + "\n\n" + cli.ExitHelp,
		Examples: [][2]string{
			{"quantmf fit -k 8 -o model.qmf -report page.html table.tsv",
				"a QMF of 8 components, kept for the other commands, and a page to look at"},
			{"quantmf fit -method bqmf -missing -o model.qmf holes.csv",
				"the model that predicts best, for a table with missing values"},
			{"quantmf fit -loss frobenius -k 5 -u U.tsv -v V.tsv ratios.gct.gz", "the factors of log ratios"},
			{"quantmf fit -k 50 -epochs 200 -checkpoint state -resume -o big.qmf big.npz",
				"a long fit; the same line again goes on after an interrupt"},
		},
		Words: []string{"MATRIX"},
		Short: [][2]string{
			{"k", "how many components (default 10); 0 asks for the best prediction"},
			{"method", "auto takes what predicts hidden values best (default auto)"},
			{"missing", "empty cells, NA and NaN are missing values"},
			{"log1p", "take log(1+x) of every value first"},
			{"loss", "what is minimised (default: frobenius where a value is negative, else kl)"},
			{"transpose", "samples are in rows"},
			{"report", "write a page of figures to look at"},
			{"groups", "groups of samples, for the page"},
			{"o", "write the model, for the other commands"},
			{"u", "write U, features × components"},
			{"v", "write V, components × samples"},
			{"seed", "of everything random (default 1)"},
			{"workers", "threads, 0 for one per processor (default 0)"},
		},
	}
	p.Run = func(words []string, s cli.Streams) error {
		f.took(p, words[0])
		if err := f.check(p); err != nil {
			return err
		}
		return f.run(s)
	}
	return p
}

// fitFlags are the flags of a fit, some of which other commands have as well.
type fitFlags struct {
	method  string
	rank    int
	matrix  string
	compare string      // whether values are hidden from further fits: unseen or none
	options cli.Options // of the flags that were given; the package has the defaults
	in      cli.Input
	files   cli.ModelFiles
	page    string // "" for none
	look    pageFlags
	keep    checkpoint

	losses  string   // which loss was taken, and why
	untried string   // why no values are hidden, "" where they are or need not be
	given   []string // the flags given that the result depends on, as words of a command line
}

func newFitFlags() *fitFlags {
	return &fitFlags{method: "auto", rank: 10, compare: "unseen", options: cli.NewOptions(),
		in:   cli.NewInput(),
		look: pageFlags{order: "table"}}
}

// what are the flags of what is fitted.
func (f *fitFlags) what() []*cli.Flag {
	return append([]*cli.Flag{
		cli.Choice(&f.method, "method", "auto|"+strings.Join(settings.Methods, "|"), `nmf: X = UV; qmf: X =
			T(UV), with an increasing map T for every feature; qmfq: X = T(P(T'(X))), a map on either side of
			a projection P onto the components; bqmf: X = T(UV) with U and V of either sign, the best
			predictor of missing values. auto: of nmf and qmf, with -k 0 also bqmf, the one that predicts
			hidden values best (default auto)`),
		cli.Whole(&f.rank, cli.AnyWhole, "k", "N", `rank, the number of components (default 10). 0 asks auto
			for the best prediction, whatever the components are. Of bqmf it is the most there may be:
			components that the data do not need fade (default 0: 50, or one fewer than features or
			samples)`),
		f.options.Flag(option.Loss), f.options.Flag(option.Missing),
		cli.Aside(cli.Choice(&f.compare, "compare", "unseen|none", `unseen: hide a tenth of the values from
			further fits, of the method and of an NMF of as many components (qmf and qmfq) or of all that
			auto tries, and say first how much of what differs between samples they predict there; of a
			matrix of more than a million values by a part of it (default unseen)`)),
	}, f.in.Changes()...)
}

// took takes the name of the matrix, and what a repetition of the command needs.
func (f *fitFlags) took(p *cli.Program, matrix string) {
	f.matrix = matrix
	for _, g := range p.Given() {
		switch {
		case g.Aside:
		case g.Value == "":
			f.given = append(f.given, "-"+g.Name+"="+g.Given)
		default:
			f.given = append(f.given, "-"+g.Name, g.Given)
		}
	}
}

// check reports flags that exclude each other.
func (f *fitFlags) check(p *cli.Program) error {
	if f.method == "bqmf" && p.Flag("k").Given == "" {
		f.rank = 0 // the data choose
	}
	if f.method == "auto" && f.files.Q != "" {
		f.method = "qmf" // which alone has quantiles
	}
	if f.method == "auto" && f.compare == "none" {
		return cli.UsageError("-compare none: -method auto compares fits: name the method")
	}
	if err := f.files.Check(&f.in, f.method); err != nil {
		return err
	}
	if err := f.look.check(f.matrix); err != nil {
		return err
	}
	for _, name := range []string{"groups", "sets", "order"} {
		if p.Flag(name).Given != "" && f.page == "" {
			return cli.UsageError("-" + name + ": it says how the page looks: give -report, too")
		}
	}
	if err := cli.Takes(f.method, f.rank, f.options.List()); err != nil {
		return err
	}
	if err := cli.Apart(append(f.files.Paths(), f.page, f.keep.path)...); err != nil {
		return err
	}
	return f.keep.check()
}

// signed tells whether values may be negative.
func (f *fitFlags) signed() bool {
	return (f.options.Loss == quantmf.Frobenius || f.options.Auto) && f.method != "nmf" && !f.in.Log1p
}

// read reads the matrix, and settles the loss.
func (f *fitFlags) read(s cli.Streams) (*table.Table, os.FileInfo, error) {
	f.in.Full = true
	t, input, err := f.in.Read(f.matrix, s, cli.NewProgress(f.in.Progress, s.Err), f.options.Missing,
		f.signed())
	if err != nil {
		return nil, nil, err
	}
	f.losses, err = f.options.SettleLoss(t, &f.in, s.Err)
	return t, input, err
}

func (f *fitFlags) run(s cli.Streams) error {
	began := time.Now()
	defer f.in.Hold()()
	f.in.Rows = f.page == "" // the page needs the matrix in full
	t, input, err := f.read(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.affordable(t); err != nil {
		return cli.Explain(err, t)
	}
	if err := f.look.read(t.Features, t.Samples, s, &f.in); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible()
	defer func() { stop() }()
	out := &cli.Outputs{Stdout: s.Out}
	defer out.Discard()
	if err := out.Open(append(f.look.inputs, input), append(f.files.Paths(), f.page)...); err != nil {
		return err
	}
	tell := cli.NewProgress(f.in.Progress, s.Err)
	r := &result{fitFlags: f, table: t, options: f.options.List()}
	if err := r.prepareCheckpoint(input, s.Err); err != nil {
		return err
	}
	if f.method == "auto" {
		err = r.chooseMethod(ctx, tell)
	}
	if err == nil {
		err = r.fit(ctx, tell)
	}
	if err == nil {
		err = r.unseen(ctx, tell)
	}
	tell.End()
	if err != nil {
		return err
	}
	alone := ctx.Err() != nil // what was fitted is written all the same
	if alone {
		stop()
		ctx, stop = cli.Interruptible()
	}
	if err := r.write(out); err != nil {
		return err
	}
	if err := commit(ctx, out); err != nil {
		return err
	}
	if err := f.files.Nameless(s.Err, &f.in, r.m.Names); err != nil {
		return err
	}
	text, err := r.summary(time.Since(began).Seconds())
	if err != nil {
		return cli.Explain(err, t)
	}
	if err := tell.Summary(text); err != nil || !alone {
		return err
	}
	return cli.StoppedError("interrupted in the further fits, without hidden values: these are left " +
		"out, all " +
		"else is done")
}

// result is a finished fit, and what the summary tells.
type result struct {
	*fitFlags
	table   *table.Table
	options []quantmf.FitOption
	choice  *quantmf.Choice // what the further fits say; nil where there are none
	m       *model

	goodness []quantmf.Goodness // of each feature
}

func (r *result) fit(ctx context.Context, tell *cli.Progress) error {
	x, observe := r.table.Rows(), quantmf.WithProgress(tell.Report)
	stopped := func(err error) error {
		var bad *quantmf.FormatError
		switch {
		case ctx.Err() != nil:
			return r.interrupted(tell)
		case errors.As(err, &bad):
			return fmt.Errorf("%s: %w", r.keep.path, err)
		}
		return cli.Explain(err, r.table)
	}
	tell.Begin(strings.ToUpper(r.method))
	var fitted quantmf.Model
	var err error
	switch {
	case ctx.Err() != nil:
		return r.interrupted(tell)
	case r.choice != nil:
		fitted, err = r.choice.Fit(ctx, x, append(r.options, observe)...)
	default:
		fitted, err = settings.Fit(ctx, r.method, x, r.rank, append(r.options, observe)...)
	}
	if err != nil {
		return stopped(err)
	}
	if err := r.keep.flush(); err != nil {
		return err
	}
	m := modelOf(fitted)
	m.Names = cli.NamesOf(r.table)
	if m.Made, err = r.made(); err != nil {
		return err
	}
	m.warn()
	if r.goodness, err = m.Goodness(x); err != nil {
		return stopped(err)
	}
	r.m = m
	m.Command = r.commandLine()
	return nil
}

// made is what the flags and the matrix say of how a model came about.
func (f *fitFlags) made() (account.Made, error) {
	sum, err := cli.Sum(f.matrix)
	return account.Made{Matrix: f.name(), SHA256: sum, Log1p: f.in.Log1p, Top: f.in.Top > 0,
		Losses: f.losses}, err
}

// interrupted says how far the fit came, and which files hold what was done.
func (r *result) interrupted(tell *cli.Progress) error {
	left := "no file was written"
	if r.keep.state != nil {
		if err := r.keep.flush(); err != nil {
			return err
		}
		left = "the state is in " + r.keep.path + ": the same command with -resume goes on"
	}
	if tell.Last.Epoch == 0 {
		return cli.StoppedError("interrupted at the start of the " + tell.Model + "; " + left)
	}
	return cli.StoppedError(fmt.Sprintf("interrupted after %d of %d epochs of the %s, at a %s of %.4g; %s",
		tell.Last.Epoch, tell.Last.Epochs, tell.Model, tell.Measure(), tell.Last.Loss, left))
}

// write writes every output.
func (r *result) write(out *cli.Outputs) error {
	if err := r.files.Write(out, &r.in, r.m.Model, r.m.Names, r.m.Made); err != nil {
		return err
	}
	return out.Write(r.page, r.report)
}

// report draws the fit.
func (r *result) report(w io.Writer) error { return r.m.report(w, r.table, r.goodness, &r.look) }

// commit puts the outputs into their places, unless an interrupt came first.
func commit(ctx context.Context, out *cli.Outputs) error {
	if ctx.Err() != nil {
		return cli.StoppedError("interrupted before the files were in place; no file was written")
	}
	return out.Commit()
}

// name is the name of the matrix without its folder.
func (f *fitFlags) name() string {
	if f.matrix == "-" {
		return "standard input"
	}
	return filepath.Base(f.matrix)
}

// commandLine returns a command line that repeats the fit. It has the flags that the user gave, and the
// defaults on which the result depends most.
func (r *result) commandLine() string {
	if r.choice != nil { // -method auto
		return r.repeated("-method", "auto", "-k", strconv.Itoa(r.rank), "-seed", "1")
	}
	more := []string{"-method", r.method, "-k", strconv.Itoa(r.rank)}
	if q, is := r.m.Model.(*quantmf.QMF); is {
		more = append(more, "-m", strconv.Itoa(q.Quantiles.Cols))
	}
	// -patience may end the fit before that number of epochs
	if r.method != "bqmf" && !slices.Contains(r.given, "-patience") {
		more = append(more, "-epochs", strconv.Itoa(len(r.m.of.History)-1))
	}
	return r.repeated(append(more, "-seed", "1")...)
}

// repeated is a command line of fit with the flags that were given, and of more, pairs of a flag and its
// value, those that were not.
func (f *fitFlags) repeated(more ...string) string {
	words := append([]string{"quantmf", "fit"}, f.given...)
	for pair := range slices.Chunk(more, 2) {
		if !slices.Contains(f.given, pair[0]) {
			words = append(words, pair...)
		}
	}
	name := filepath.Base(f.matrix)
	if strings.HasPrefix(name, "-") && f.matrix != "-" {
		name = "./" + name // no flag
	}
	words = append(words, name)
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
