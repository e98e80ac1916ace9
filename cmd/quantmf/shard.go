package main

// This file holds "quantmf shard": a fit whose rows are split, in a folder that all machines see. Package
// shards makes the steps. This file has the command line, and waiting.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/shards"
)

func shardProgram() *cli.Program {
	f := &shardFlags{fitFlags: *newFitFlags(), shards: 1, shard: -1, round: -1}
	f.method = "qmf"
	f.compare = "none"
	workers := f.options.Flag(option.Workers)
	workers.Help = "threads, 0 for one per processor (default 0)"
	updates, how := f.options.InShards()
	p := &cli.Program{
		Usage: []string{"plan [flags] -shards N -o DIR MATRIX", "step [flags] -shard I DIR",
			"reduce [flags] DIR", "finish [flags] DIR"},
		About: `Fits a matrix whose features are split over N shards, by commands that a scheduler starts: on
			one machine or on many that share the folder DIR. For any N the model has the bits of "quantmf
			fit" on one machine, with the same -updates for -method nmf, and with a -batch of all features
			for -method qmf.

			plan reads MATRIX, chooses the start and fills DIR, which must be new, empty, or hold this very
			plan. Then the fit goes in rounds. In every round each shard makes a step, in any order and
			anywhere, and one reduce sums the steps. reduce prints the number of the next round, or "over";
			then finish writes the model. Every command may be repeated with the same -round: it writes the
			same bytes, or finds its work done. Files that are missing or damaged are named, or made again.` +
			"\n\n" + cli.MatrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Heading: "Of plan", Flags: append([]*cli.Flag{
				cli.File(&f.files.Model, "o", "a folder; of finish: the file of the model"),
				cli.Aside(cli.Whole(&f.shards, cli.AnyWhole, "shards", "N", `the number of shards: at most
					one for each 16 features, and at most 64 (qmf) or 16, fewer for a small matrix (nmf)
					(default 1)`)),
				cli.Choice(&f.method, "method", "qmf|nmf", "what is fitted (default qmf)"),
				cli.Whole(&f.rank, cli.AnyWhole, "k", "N", "rank, the number of components (default 10)"),
				updates},
				f.in.Changes()...)},
			{Elsewhere: asInFit + ", but with 100 epochs of multiplicative -updates", Flags: how},
			{Heading: "Of step and reduce", Flags: []*cli.Flag{
				cli.Whole(&f.shard, 0, "shard", "I", "the shard of the step, from 0"),
				cli.Whole(&f.round, 0, "round", "N", "the round, from 0 (default: the one under way)"),
				cli.Switch(&f.wait, "wait", `go on until the fit is over: a step waits for the next round, a
					reduce for all parts of its round`)}},
			{Heading: `Of finish ("-" is standard output; the ending of a name says the format)`,
				Flags: f.files.Flags()[1:]},
			{Heading: "Of plan, step and reduce", Flags: []*cli.Flag{workers}},
			f.in.Limits(),
		},
		After: cli.ExitHelp,
		Examples: [][2]string{
			{"quantmf shard plan -method nmf -k 10 -shards 8 -o fit counts.mtx.gz", ""},
			{"seq 0 7 | xargs -P 4 -I{} quantmf shard step -round 0 -shard {} fit", ""},
			{"quantmf shard reduce -round 0 fit", "one round; reduce prints the number of the next"},
			{"quantmf shard step -wait -shard 3 fit", "on one of eight machines; a ninth runs reduce -wait"},
			{"quantmf shard finish -o model.nmf fit", ""},
		},
		Words: []string{"[plan|step|reduce|finish]", "[MATRIX|DIR]"},
	}
	p.Run = func(words []string, s cli.Streams) error {
		i := slices.IndexFunc(shardActions, func(a shardAction) bool { return a.name == words[0] })
		if i < 0 {
			return cli.UsageError("give one of plan, step, reduce, finish first")
		}
		action := shardActions[i]
		if words[1] == "" {
			return cli.UsageError("no " + action.word + " given")
		}
		f.took(p, words[1])
		if err := f.check(action, p); err != nil {
			return err
		}
		f.dir = words[1]
		defer f.in.Hold()()
		return action.run(f, s)
	}
	return p
}

// shardFlags are the flags of plan, step, reduce and finish.
type shardFlags struct {
	fitFlags
	shards, shard, round int
	wait                 bool
	dir                  string
}

// shardAction is one of the commands of shard.
type shardAction struct {
	name, word string
	takes      []string // its flags; nil: all but those of the other three alone
	run        func(*shardFlags, cli.Streams) error
}

var shardActions = []shardAction{
	{"plan", "MATRIX", nil, planShards},
	{"step", "DIR", []string{"shard", "round", "wait", "workers", "max-memory", "progress"}, stepShard},
	{"reduce", "DIR", []string{"round", "wait", "workers", "max-memory", "progress"}, reduceShards},
	{"finish", "DIR", []string{"o", "u", "v", "q", "format", "max-memory", "progress"}, finishShards},
}

// check reports given flags that the action has no use for.
func (f *shardFlags) check(action shardAction, p *cli.Program) error {
	others := []string{"shard", "round", "wait", "u", "v", "q"}
	for _, g := range p.Given() {
		if action.takes == nil && slices.Contains(others, g.Name) || action.takes != nil &&
			!slices.Contains(action.takes, g.Name) {
			return cli.UsageError("-" + g.Name + ": " + action.name + " has no use for it")
		}
	}
	if f.options.Workers() < 0 {
		return cli.UsageError("-workers: must be at least 0")
	}
	if f.round >= 0 && f.wait {
		return cli.UsageError("-wait goes through all rounds: leave -round out")
	}
	return nil
}

func planShards(f *shardFlags, s cli.Streams) error {
	if f.files.Model == "" {
		return cli.UsageError("say where to write: -o DIR")
	}
	if err := cli.Takes(f.method, f.rank, f.options.List()); err != nil {
		return err
	}
	f.in.Rows = true
	t, _, err := f.read(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.affordable(t); err != nil {
		return cli.Explain(err, t)
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	if err := os.MkdirAll(f.files.Model, 0o777); err != nil {
		return err
	}
	store := &cli.Folder{Dir: f.files.Model, In: &f.in}
	tell := cli.NewProgress(f.in.Progress, s.Err)
	tell.Begin(strings.ToUpper(f.method))
	d, n := t.Dims()
	if err := tell.Remark(cli.OneMachine(f.method, d, n, f.rank)); err != nil {
		return err
	}
	plan := shards.PlanQMF
	if f.method == "nmf" {
		plan = shards.PlanNMF
	}
	err = plan(ctx, store, f.shards, t.Rows(), f.rank,
		append(f.options.List(), quantmf.WithProgress(tell.Report))...)
	tell.End()
	if err == nil { // the folder has no plan of another fit
		about, err := f.about(t)
		if err == nil {
			err = store.Put("names", about)
		}
		return err
	}
	if ctx.Err() != nil {
		return cli.StoppedError("interrupted; the same command again goes on")
	}
	if option := new(quantmf.OptionError); errors.As(err, &option) && option.Option == "store" {
		return cli.UsageError("-o " + f.files.Model + ": the folder has another fit")
	}
	return cli.Explain(err, t)
}

// about is what finish needs beside the plan: names of the matrix, and the settings of the fit.
func (f *shardFlags) about(t *table.Table) ([]byte, error) {
	more := []string{"-method", f.method, "-k", strconv.Itoa(f.rank)}
	if f.method == "nmf" {
		more = append(more, "-updates", "multiplicative")
	} else {
		d, _ := t.Dims()
		more = append(more, "-batch", strconv.Itoa(d))
	}
	made, err := f.made()
	if err != nil {
		return nil, err
	}
	made.Command = f.repeated(append(more, "-seed", "1")...)
	one := quantmf.NMF{Factorisation: quantmf.Factorisation{U: quantmf.NewMat(1, 1), V: quantmf.NewMat(1, 1)}}
	none, err := one.MarshalBinary() // a model file to which the sections are appended
	if err != nil {
		return nil, err
	}
	return account.Append(none, cli.NamesOf(t).Saved(), made)
}

// openFolder opens the fit in a folder.
func (f *shardFlags) openFolder() (*cli.Folder, *shards.Fit, error) {
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		if err == nil {
			err = errors.New(f.dir + ": is no folder")
		}
		return nil, nil, &cli.InputError{Err: err}
	}
	runtime.GOMAXPROCS(f.options.Workers()) // which 0 leaves as it is
	store := &cli.Folder{Dir: f.dir, In: &f.in}
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
	return fmt.Errorf("%s: %w", f.dir, cli.Explain(err, &table.Table{}))
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

func stepShard(f *shardFlags, s cli.Streams) error {
	_, fit, err := f.openFolder()
	if err != nil {
		return err
	}
	if f.shard < 0 || f.shard >= fit.Shards() {
		return cli.Usagef("-shard: must be from 0 to %d", fit.Shards()-1)
	}
	ctx, stop := cli.Interruptible()
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
			return cli.StoppedError("interrupted; the same command again goes on")
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

func reduceShards(f *shardFlags, s cli.Streams) error {
	_, fit, err := f.openFolder()
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible()
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
			return cli.StoppedError("interrupted; the same command again goes on")
		}
		var waits *shards.StepError
		if f.wait && errors.As(err, &waits) {
			pause(ctx)
			continue
		}
		if err != nil {
			return f.inFolder(err)
		}
		if f.in.Progress != "none" {
			fmt.Fprintf(s.Err, "%s: epoch %d of %d, loss %.6g\n", table.Shown(f.dir), at.Epoch, at.Epochs,
				at.Loss)
		}
		if at.Over {
			_, err = fmt.Fprintln(s.Out, "over")
			return err
		}
		if !f.wait {
			_, err = fmt.Fprintln(s.Out, at.Number)
			return err
		}
	}
}

func finishShards(f *shardFlags, s cli.Streams) error {
	if slices.Max(f.files.Paths()) == "" {
		return cli.UsageError(`say where to write: -o FILE, "-" is standard output`)
	}
	if err := f.files.Check(&f.in, "qmf"); err != nil {
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
	ctx, stop := cli.Interruptible()
	defer stop()
	fitted, err := fit.Finish(ctx)
	if err != nil {
		return f.inFolder(err)
	}
	m := modelOf(fitted)
	if err := f.files.Check(&f.in, m.method); err != nil {
		return err
	}
	about, err := store.Get("names")
	if err != nil {
		return f.inFolder(err)
	}
	names, how, _, err := account.Read(about, m.of.U.Rows, m.of.V.Cols)
	if err != nil {
		return f.inFolder(fmt.Errorf("names: %w (\"quantmf shard plan\" makes them again)", err))
	}
	m.setNames(names, how)
	m.warn()
	out := &cli.Outputs{Stdout: s.Out}
	defer out.Discard()
	if err := out.Open(store.Files(), f.files.Paths()...); err != nil {
		return err
	}
	if err := f.files.Write(out, &f.in, m.Model, m.Names, m.Made); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return f.files.Nameless(s.Err, &f.in, m.Names)
}
