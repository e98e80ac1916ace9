package command

// This file holds "quantmf-beam fit".

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/shards"
)

// fitFlags are the flags of a fit.
type fitFlags struct {
	runnerFlags
	options               cli.Options
	in                    cli.Input
	files                 cli.ModelFiles
	method                string
	rank, shards, workers int
}

func fitProgram() *cli.Program {
	f := &fitFlags{runnerFlags: newRunnerFlags(), options: cli.NewOptions(), in: cli.NewInput(),
		method: "qmf",
		rank:   10, shards: 4}
	f.Rounds = 20
	updates, how := f.options.InShards()
	return &cli.Program{
		Usage: []string{"[flags] MATRIX"},
		About: `Fits a matrix as "quantmf fit" does, with all its rows as one batch and the rows split over
			shards, which the workers of a Beam runner fit side by side. The model has the same bits for any
			number of shards and workers, those of one process included.` + "\n\n" + matrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Heading: "What is fitted", Flags: append([]*cli.Flag{
				cli.Choice(&f.method, "method", "qmf|nmf", "X = T(UV), or X = UV (default qmf)"),
				cli.Whole(&f.rank, cli.AnyWhole, "k", "N", "rank, the number of components (default 10)"),
				updates}, f.in.Changes()...)},
			{Elsewhere: `as in "quantmf fit -h"`, Flags: how},
			{Heading: "How it is split", Flags: []*cli.Flag{
				cli.Whole(&f.shards, cli.AnyWhole, "shards", "N", `shards of rows, each a unit of work; from
					1 to one for each 16 rows, at most 64 (nmf: 16) (default 4)`),
				cli.Whole(&f.Rounds, 1, "rounds", "N",
					"rounds, one or two an epoch, in a pipeline (default 20)"),
				f.keep(),
				cli.Whole(&f.workers, 0, "workers", "N",
					"processors that workers in this process use, 0 for all (default 0)")}},
			f.group(),
			{Heading: `What is written ("-" is standard output; the ending of a name says the format)`,
				Flags: f.files.Flags()},
			f.in.Limits(),
		},
		After: `A fit that was stopped goes on where it was if the same command is given with the same ` +
			`-store.` +
			"\n\n" + cli.ExitHelp,
		Words: []string{"MATRIX"},
		Run: func(words []string, s cli.Streams) error {
			if err := cmp.Or(f.files.Check(&f.in, f.method), unread(words, f.files.Paths()...)); err != nil {
				return err
			}
			return f.with(func(ctx context.Context, store *beam.Store) error {
				return f.run(ctx, store, words[0], s)
			})
		},
	}
}

// keep is -keep.
func (f *fitFlags) keep() *cli.Flag {
	return cli.Func("keep", "SIZE", `rows that a worker's process keeps in memory from round to round, such
		as 16GiB, 0 for none (default 4GiB)`, func(text string) (err error) {
		f.Run.Memory = -1
		if text != "0" {
			f.Run.Memory, err = cli.ParseSize(text)
		}
		return err
	})
}

// unread reports outputs over a file that is read, before any work is done.
func unread(inputs []string, outputs ...string) error {
	var read []os.FileInfo
	for _, path := range inputs {
		if info, err := os.Stat(path); err == nil {
			read = append(read, info)
		}
	}
	out := &cli.Outputs{}
	defer out.Discard()
	return out.Open(read, outputs...)
}

func (f *fitFlags) run(ctx context.Context, store *beam.Store, matrix string, s cli.Streams) error {
	began := time.Now()
	if f.workers > 0 {
		runtime.GOMAXPROCS(f.workers)
	}
	tell := cli.NewProgress(f.in.Progress, s.Err)
	f.in.Rows = true
	t, info, err := f.in.Read(matrix, s, tell, f.options.Missing, f.method != "nmf" && !f.in.Log1p)
	if err != nil {
		return err
	}
	defer t.Close()
	if _, err := f.options.SettleLoss(t, &f.in, s.Err); err != nil {
		return err
	}
	d, n := t.Dims()
	tell.Begin(strings.ToUpper(f.method))
	if err := tell.Remark(cli.OneMachine(f.method, d, n, f.rank)); err != nil {
		return err
	}
	plan := shards.PlanQMF
	if f.method == "nmf" {
		plan = shards.PlanNMF
	}
	if err := plan(ctx, store, f.shards, t.Rows(), f.rank, f.options.List()...); err != nil {
		return cli.Explain(err, t)
	}
	f.Progress = func(r shards.Round) {
		if r.Epoch > 0 {
			tell.Report(quantmf.Progress{Phase: quantmf.PhaseEpochs, Epoch: r.Epoch, Epochs: r.Epochs,
				Rows: d,
				Loss: r.Loss, Done: float64(r.Epoch) / float64(r.Epochs)})
		}
	}
	f.Failed = again(&f.in, s)
	m, err := beam.Fit(ctx, store, f.Run)
	tell.End()
	if err != nil {
		if ctx.Err() != nil && f.store != "" {
			return fmt.Errorf("interrupted; the same command goes on with what is in %s: %w", f.store, err)
		}
		return err
	}
	out := &cli.Outputs{Stdout: s.Out}
	defer out.Discard()
	if err := out.Open([]os.FileInfo{info}, f.files.Paths()...); err != nil {
		return err
	}
	names := cli.NamesOf(t)
	if err := f.files.Write(out, &f.in, m, names,
		account.Made{Matrix: filepath.Base(matrix), Log1p: f.in.Log1p,
			Top: f.in.Top > 0}); err != nil {
		return err
	}
	if err := cmp.Or(out.Commit(), f.files.Nameless(s.Err, &f.in, names)); err != nil {
		return err
	}
	return tell.Summary(fmt.Sprintf("done in %.1f s\n", time.Since(began).Seconds()))
}
