package main

// This file holds "quantmf shard": a fit whose rows are split, in a folder that all machines see. The package
// shards makes the steps. This file has the folder, the command line, and waiting.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/advice"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/shards"
)

const shardUsage = `usage: quantmf shard plan [flags] -shards N -o DIR MATRIX
usage: quantmf shard step [flags] -shard I DIR
usage: quantmf shard reduce [flags] DIR
usage: quantmf shard finish [flags] DIR

Fits a matrix whose features are split over N shards, by commands that a scheduler
starts: on one machine or on many that share the folder DIR. For any N the model has
the bits of "quantmf fit" on one machine, with the same -updates for -method nmf,
and with a -batch of all features for -method qmf.

plan reads MATRIX, chooses the start and fills DIR, which must be new, empty, or
hold this very plan. Then the fit goes in rounds. In every round each shard makes a
step, in any order and anywhere, and one reduce sums the steps. reduce prints the
number of the next round, or "over"; then finish writes the model. Every command may
be repeated with the same -round: it writes the same bytes, or finds its work done.
Files that are missing or damaged are named, or made again.

` + matrixHelp + `
` + readHelp + `
Of plan ("quantmf fit -h" says more about each)
  -o DIR            the folder; of finish: the file of the model
  -shards N         the number of shards: at most one for each 16 features, and at
                    most 64 (qmf) or 16, fewer for a small matrix (nmf) (default 1)
  -method qmf|nmf   what is fitted (default qmf)
  -k N              rank, the number of components (default 10)
  -loss auto|kl|frobenius|BETA
                    what is minimised (default auto)
  -missing          empty cells, NA and NaN are missing
  -log1p            take log(1+x) of every value first
  -top N            keep the N features of largest standard deviation
  -m N              levels (qmf; default 8)
  -eps X            entropic regularisation (qmf; default 0.02)
  -epochs N         visits of every feature (default 4 for qmf, 20 where Adam
                    steps U and V; 200 for nmf, 20 with -updates newton, half
                    of these under kl from 8192 samples on)
  -lr X             learning rate of Adam (qmf)
  -schedule cosine|constant
                    how the learning rate falls (qmf; default cosine)
  -start auto|scores|nmf|uniform|svd
                    where it starts
  -ends free|pinned learn the lowest and highest quantile, or keep them (qmf)
  -updates multiplicative|newton
                    multiplicative: one round an epoch; newton: two rounds an epoch,
                    each epoch worth ten of the former or more (nmf; default
                    multiplicative)
  -penalty X        weight of the penalty on the factors (default 0)
  -shrinkage X      how strongly every map is pulled towards a straight line (qmf)
  -tolerance X      where a map counts as converged (qmf)
  -validation X     hide this share of the values, and take the epoch that
                    predicts them best (default: none)
  -patience N       end when the loss has not fallen for N epochs
  -strict           fail at the end, with exit code 4, where a map has not
                    converged (qmf)
  -seed N           seed of everything random (default 1)
  -workers N        threads, 0 for one per processor (default 0); also of step and
                    reduce

Of step and reduce
  -shard I          the shard of the step, from 0
  -round N          the round, from 0 (default: the one under way)
  -wait             go on until the fit is over: a step waits for the next round, a
                    reduce for all parts of its round

Of finish ("-" is standard output; the ending of a name says the format)
  -u FILE           U, features × components
  -v FILE           V, components × samples
  -q FILE           per feature the quantiles and their weights (qmf)

All
` + limitsHelp + `
` + exitHelp

// shardFlags are the flags of plan, step, reduce and finish.
type shardFlags struct {
	fitFlags
	shards, shard, round, workers int
	wait                          bool
	dir                           string
}

// shardAction is one of the commands of shard.
type shardAction struct {
	name, word string
	takes      []string // its flags; nil: all but those of the other three alone
	run        func(*shardFlags, streams) error
}

func shardActions() []shardAction {
	return []shardAction{
		{"plan", "MATRIX", nil, planShards},
		{"step", "DIR", []string{"shard", "round", "wait", "workers", "max-memory", "progress"}, stepShard},
		{"reduce", "DIR", []string{"round", "wait", "workers", "max-memory", "progress"}, reduceShards},
		{"finish", "DIR", []string{"o", "u", "v", "q", "format", "max-memory", "progress"}, finishShards},
	}
}

func shard(args []string, s streams) error {
	actions := shardActions()
	action, known := actions[0], false
	var names []string
	for _, a := range actions {
		names = append(names, a.name)
		if len(args) > 0 && args[0] == a.name {
			action, known = a, true
		}
	}
	if known {
		args = args[1:]
	}
	options := slices.DeleteFunc(optionFlags(), func(o *optionFlag) bool {
		return slices.Contains([]string{"batch", "projection", "restarts"}, o.Name)
	})
	f := &shardFlags{fitFlags: fitFlags{flagOf: flagOf(options), loss: quantmf.KL, autoLoss: true}}
	f.flagOf["shards"] = "shards"
	set := newFlags("shard")
	f.register(set, options)
	words, err := arguments(set, args, action.word)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if !known {
		return usageError("give one of " + strings.Join(names, ", ") + " first")
	}
	if err != nil {
		return err
	}
	if err := f.check(action, set, f.take(set, options)); err != nil {
		return err
	}
	f.matrix, f.dir = words[0], words[0]
	defer f.hold()()
	return action.run(f, s)
}

// register makes the flags known.
func (f *shardFlags) register(set *flag.FlagSet, options []*optionFlag) {
	set.StringVar(&f.method, "method", "qmf", "")
	set.IntVar(&f.rank, "k", 10, "")
	set.BoolVar(&f.log1p, "log1p", false, "")
	set.IntVar(&f.top, "top", 0, "")
	set.IntVar(&f.shards, "shards", 1, "")
	set.IntVar(&f.shard, "shard", -1, "")
	set.IntVar(&f.round, "round", -1, "")
	set.BoolVar(&f.wait, "wait", false, "")
	set.StringVar(&f.modelFile, "o", "", "")
	set.StringVar(&f.uFile, "u", "", "")
	set.StringVar(&f.vFile, "v", "", "")
	set.StringVar(&f.qFile, "q", "", "")
	f.limits.flags(set)
	f.in.register(set, false)
	for _, o := range options {
		set.Var(o, o.Name, "")
	}
}

// check reports given flags that the action has no use for, and values that cannot be.
func (f *shardFlags) check(action shardAction, set *flag.FlagSet, given map[string]bool) error {
	others := []string{"shard", "round", "wait", "u", "v", "q"}
	for name := range given {
		if action.takes == nil && slices.Contains(others, name) || action.takes != nil &&
			!slices.Contains(action.takes, name) {
			return usageError("-" + name + ": " + action.name + " has no use for it")
		}
	}
	if given["workers"] {
		f.workers, _ = strconv.Atoi(set.Lookup("workers").Value.String())
		if f.workers < 0 {
			return usageError("-workers: must be at least 0")
		}
	}
	switch {
	case !slices.Contains([]string{"qmf", "nmf"}, f.method):
		return usageError(fmt.Sprintf("-method %s: %v", f.method, flags.OneOf([]string{"qmf", "nmf"})))
	case given["top"] && f.top < 1:
		return usageError(fmt.Sprintf("-top %d: must be at least 1", f.top))
	case given["round"] && f.round < 0:
		return usageError(fmt.Sprintf("-round %d: must be at least 0", f.round))
	case given["round"] && f.wait:
		return usageError("-wait goes through all rounds: leave -round out")
	}
	return f.limits.check()
}

func planShards(f *shardFlags, s streams) error {
	if err := needsOut(f.modelFile); err != nil {
		return err
	}
	if err := f.takes(f.method, f.options); err != nil {
		return err
	}
	f.in.rows = true
	t, _, err := f.read(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.affordable(t); err != nil {
		return explain(err, t, f.flagOf)
	}
	ctx, stop := interruptible()
	defer stop()
	if err := os.MkdirAll(f.modelFile, 0o777); err != nil {
		return err
	}
	store := &folder{dir: f.modelFile}
	tell := newProgress(f.progress, s.err)
	tell.begin(strings.ToUpper(f.method))
	d, n := t.Dims()
	if err := tell.remark(advice.OneMachine(f.method, d, n, "-k", strconv.Itoa(f.rank))); err != nil {
		return err
	}
	plan := shards.PlanQMF
	if f.method == "nmf" {
		plan = shards.PlanNMF
	}
	err = plan(ctx, store, f.shards, t.Rows(), f.rank,
		append(f.options, quantmf.WithProgress(tell.report))...)
	tell.end()
	if err == nil { // the folder has no plan of another fit
		about, err := f.about(t)
		if err == nil {
			err = store.Put("names", about)
		}
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted; the same command again goes on")
	}
	if option := new(quantmf.OptionError); errors.As(err, &option) && option.Option == "store" {
		return usageError("-o " + f.modelFile + ": the folder has another fit")
	}
	return explain(err, t, f.flagOf)
}

// about is what finish needs beside the plan: names of the matrix, and the settings of the fit.
func (f *shardFlags) about(t *table.Table) ([]byte, error) {
	m := &model{Made: account.Made{Matrix: f.name(), Log1p: f.log1p, Top: f.top > 0, Losses: f.losses}}
	m.named(t)
	words := append([]string{"quantmf", "fit"}, f.given...)
	say := func(name, value string) {
		if !slices.Contains(f.given, name) {
			words = append(words, name, value)
		}
	}
	say("-method", f.method)
	say("-k", strconv.Itoa(f.rank))
	if f.method == "nmf" {
		say("-updates", "multiplicative")
	} else {
		d, _ := t.Dims()
		say("-batch", strconv.Itoa(d))
	}
	say("-seed", "1")
	m.Command = shellLine(append(words, f.word()))
	one := quantmf.NMF{Factorisation: quantmf.Factorisation{U: quantmf.NewMat(1, 1), V: quantmf.NewMat(1, 1)}}
	none, err := one.MarshalBinary() // a model file to which the sections are appended
	if err != nil {
		return nil, err
	}
	return account.Append(none, m.names(), m.Made)
}

// openFolder opens the fit in a folder.
func (f *shardFlags) openFolder() (*folder, *shards.Fit, error) {
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		if err == nil {
			err = errors.New(f.dir + ": is no folder")
		}
		return nil, nil, &inputError{err}
	}
	if f.workers > 0 {
		runtime.GOMAXPROCS(f.workers)
	}
	store := &folder{dir: f.dir}
	fit, err := shards.Open(store)
	return store, fit, f.inFolder(err)
}

// inFolder adds to an error the folder, and the command that mends it.
func (f *shardFlags) inFolder(err error) error {
	var of *shards.StepError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &of) && errors.Is(err, shards.ErrNotReduced):
		return fmt.Errorf("%s: %w (\"quantmf shard reduce -round %d\" comes first)", f.dir, err, of.Round-1)
	case errors.As(err, &of):
		return fmt.Errorf("%s: %w (\"quantmf shard step -round %d -shard %d\" makes it)", f.dir, err,
			of.Round, of.Shard)
	}
	return fmt.Errorf("%s: %w", f.dir, explain(err, &table.Table{}, map[string]string{}))
}

// patienceOfFolder is the time between two looks at the folder while a command waits.
var patienceOfFolder = time.Second

// pause waits for patienceOfFolder, or until the context ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(patienceOfFolder):
	}
}

func stepShard(f *shardFlags, s streams) error {
	_, fit, err := f.openFolder()
	if err != nil {
		return err
	}
	if f.shard < 0 || f.shard >= fit.Shards() {
		return usageError(fmt.Sprintf("-shard: must be from 0 to %d", fit.Shards()-1))
	}
	ctx, stop := interruptible()
	defer stop()
	for {
		at, err := fit.Round()
		if err != nil {
			return f.inFolder(err)
		}
		if f.round < 0 && at.Over {
			return nil
		}
		round := at.Number
		if f.round >= 0 {
			round = f.round
		}
		err = fit.Step(ctx, round, f.shard)
		if ctx.Err() != nil {
			return interrupted("interrupted; the same command again goes on")
		}
		if err != nil || !f.wait {
			return f.inFolder(err)
		}
		// If a part was damaged meanwhile, a repeated step of this round makes it again.
		if now, err := fit.Round(); err == nil && now.Number == round {
			pause(ctx)
		}
	}
}

func reduceShards(f *shardFlags, s streams) error {
	_, fit, err := f.openFolder()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	for {
		round := f.round
		if round < 0 {
			at, err := fit.Round()
			if err != nil {
				return f.inFolder(err)
			}
			round = at.Number
		}
		at, err := fit.Reduce(ctx, round)
		if ctx.Err() != nil {
			return interrupted("interrupted; the same command again goes on")
		}
		var waits *shards.StepError
		if f.wait && errors.As(err, &waits) {
			pause(ctx)
			continue
		}
		if err != nil {
			return f.inFolder(err)
		}
		if f.progress != "none" {
			fmt.Fprintf(s.err, "%s: epoch %d of %d, loss %.6g\n", table.Shown(f.dir), at.Epoch, at.Epochs,
				at.Loss)
		}
		if at.Over {
			_, err = fmt.Fprintln(s.out, "over")
			return err
		}
		if !f.wait {
			_, err = fmt.Fprintln(s.out, at.Number)
			return err
		}
	}
}

func finishShards(f *shardFlags, s streams) error {
	if f.modelFile == "" && f.uFile == "" && f.vFile == "" && f.qFile == "" {
		return needsOut("")
	}
	if err := apart(f.modelFile, f.uFile, f.vFile, f.qFile); err != nil {
		return err
	}
	if err := f.in.writable(f.uFile, f.vFile, f.qFile); err != nil {
		return err
	}
	store, fit, err := f.openFolder()
	if err != nil {
		return err
	}
	if at, err := fit.Round(); err != nil {
		return f.inFolder(err)
	} else if !at.Over {
		return fmt.Errorf("%s: the fit is not over: the steps of round %d come next", f.dir, at.Number)
	}
	ctx, stop := interruptible()
	defer stop()
	fitted, err := fit.Finish(ctx)
	if err != nil {
		return f.inFolder(err)
	}
	m := modelOf(fitted)
	if f.qFile != "" && m.method != "qmf" {
		return usageError("-q: only a QMF has quantiles to write")
	}
	about, err := store.Get("names")
	if err != nil {
		return f.inFolder(err)
	}
	names, how, _, err := account.Read(about, m.u.Rows, m.v.Cols)
	if err != nil {
		return f.inFolder(fmt.Errorf("names: %w (\"quantmf shard plan\" makes them again)", err))
	}
	m.setNames(names, how)
	m.Warnings, m.Unconverged = warningsInWords(m.warnings, m.features)
	out := &outputs{stdout: s.out}
	defer out.discard()
	for _, path := range []string{f.modelFile, f.uFile, f.vFile, f.qFile} {
		if path == "" {
			continue
		}
		if err := out.open(path, store.files()...); err != nil {
			return err
		}
	}
	r := &result{fitFlags: &f.fitFlags, m: m}
	if err := r.write(out); err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	f.in.progress = f.progress
	return r.nameless(s.err)
}

// folder is a shards.Remover: a file for each blob.
type folder struct{ dir string }

func (d *folder) Get(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// files are those that are there: the blobs that can be seen.
func (d *folder) files() (all []os.FileInfo) {
	there, _ := os.ReadDir(d.dir) // what cannot be seen is not protected
	for _, e := range there {
		if info, err := e.Info(); err == nil {
			all = append(all, info)
		}
	}
	return all
}

// Put writes a temporary file and renames it, so that a file is whole or not there.
func (d *folder) Put(name string, data []byte) error {
	out := &outputs{stdout: io.Discard}
	defer out.discard()
	path := filepath.Join(d.dir, name)
	err := out.open(path)
	if err == nil {
		err = out.write(path, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	if err == nil {
		err = out.commit()
	}
	return err
}

func (d *folder) Remove(name string) error {
	err := os.Remove(filepath.Join(d.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
