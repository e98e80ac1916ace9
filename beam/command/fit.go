package command

// This file holds "quantmf-beam fit".

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/advice"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/shards"
)

const fitUsage = `usage: quantmf-beam fit [flags] MATRIX

Fits a matrix as "quantmf fit" does, with all its rows as one batch and the rows
split over shards, which the workers of a Beam runner fit side by side. The model
has the same bits for any number of shards and workers, those of one process included.

` + matrixHelp + `
` + readHelp + `
What is fitted
  -method qmf|nmf   X = T(UV), or X = UV (default qmf)
  -k N              rank, the number of components (default 10)
  -log1p            take log(1+x) of every value first (natural logarithm)
  -top N            keep the N features of largest standard deviation, after
                    -log1p (default: all)
` + optionHelp + `
How it is split
  -shards N         shards of rows, each a unit of work; from 1 to one for each 16
                    rows, at most 64 (nmf: 16) (default 4)
  -rounds N         rounds, one or two an epoch, in a pipeline (default 20)
  -keep SIZE        rows that a worker's process keeps in memory from round to round,
                    such as 16GiB, 0 for none (default 4GiB)
  -workers N        processors that workers in this process use, 0 for all (default 0)

` + runnerHelp + `
What is written ("-" is standard output; the ending of a name says the format)
  -o FILE           the model, for the commands of quantmf
  -u FILE           U, features × components
  -v FILE           V, components × samples
  -q FILE           quantiles and weights of each feature's map (qmf)
  -progress plain|json|none
                    on standard error: a line or an object a second at most (default plain)

A fit that was stopped goes on where it was if the same command is given with the same
-store.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 not converged where
-strict wants it, 130 interrupted.
`

// fitFlags are the flags of a fit.
type fitFlags struct {
	optionFlags
	matrixFlags
	runnerFlags
	method                    string
	rank, shards, workers     int
	modelFile, uFile, vFile   string
	qFile, progress, fileName string
}

func parseFit(args []string) (*fitFlags, error) {
	f := &fitFlags{}
	set := flag.NewFlagSet("fit", flag.ContinueOnError)
	f.optionFlags.register(set)
	f.matrixFlags.register(set)
	f.registerTop(set)
	f.runnerFlags.register(set)
	set.StringVar(&f.method, "method", "qmf", "")
	set.IntVar(&f.rank, "k", 10, "")
	set.IntVar(&f.shards, "shards", 4, "")
	set.IntVar(&f.Rounds, "rounds", 20, "")
	set.IntVar(&f.workers, "workers", 0, "")
	set.Func("keep", "", func(s string) (err error) {
		f.Run.Memory = -1
		if s != "0" {
			f.Run.Memory, err = flags.Size(s)
		}
		return err
	})
	set.StringVar(&f.modelFile, "o", "", "")
	set.StringVar(&f.uFile, "u", "", "")
	set.StringVar(&f.vFile, "v", "", "")
	set.StringVar(&f.qFile, "q", "", "")
	set.StringVar(&f.progress, "progress", "plain", "")
	words, err := arguments(set, args, "MATRIX")
	if err != nil {
		return nil, err
	}
	f.fileName = words[0]
	switch {
	case !slices.Contains([]string{"qmf", "nmf"}, f.method):
		return nil, usageError("-method " + f.method +
			": must be one of qmf, nmf; the others are not split into shards")
	case f.Rounds < 1:
		return nil, usageError(fmt.Sprintf("-rounds %d: must be at least 1", f.Rounds))
	case f.workers < 0:
		return nil, usageError(fmt.Sprintf("-workers %d: must be at least 0", f.workers))
	case f.qFile != "" && f.method != "qmf":
		return nil, usageError("-q: only a QMF has quantiles to write")
	case !slices.Contains([]string{"plain", "json", "none"}, f.progress):
		return nil, usageError("-progress " + f.progress + ": must be one of plain, json, none")
	}
	return f, writable(words, f.modelFile, f.uFile, f.vFile, f.qFile)
}

func fit(ctx context.Context, args []string, s streams) error {
	began := time.Now()
	f, err := parseFit(args)
	if err != nil {
		return err
	}
	if f.workers > 0 {
		runtime.GOMAXPROCS(f.workers)
	}
	store, end, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	f.Options.Rows = true
	t, err := f.matrix(f.fileName, f.missing, f.method != "nmf")
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.takeLoss(t); err != nil {
		return err
	}
	features, samples := t.Dims()
	f.say(s, record{Read: t.File, Features: features, Samples: samples}, "%s: %d features × %d samples; %s",
		t.File, features, samples, t.Taken)
	for _, w := range t.Warnings {
		f.say(s, record{Warning: w}, "warning: %s", w)
	}
	if text := advice.OneMachine(f.method, features, samples, "-k", strconv.Itoa(f.rank)); text != "" {
		f.say(s, record{Warning: text}, "%s", text)
	}
	plan := shards.PlanQMF
	if f.method == "nmf" {
		plan = shards.PlanNMF
	}
	if err := plan(ctx, store, f.shards, t.Rows(), f.rank, f.options...); err != nil {
		return f.explain(err, t)
	}
	shown := time.Now()
	f.Progress = func(r shards.Round) {
		if r.Epoch == 0 || !r.Over && time.Since(shown) < time.Second {
			return
		}
		shown = time.Now()
		f.say(s, record{Epoch: r.Epoch, Epochs: r.Epochs, Loss: r.Loss}, "epoch %d of %d, loss %.4g", r.Epoch,
			r.Epochs, r.Loss)
	}
	f.Failed = func(err error) { f.say(s, record{Warning: cause(err)}, "trying again: %s", cause(err)) }
	m, err := beam.Fit(ctx, store, f.Run)
	if err != nil {
		if ctx.Err() != nil && f.store != "" {
			return fmt.Errorf("interrupted; the same command goes on with what is in %s: %w", f.store, err)
		}
		return err
	}
	if err := f.write(m, t, s.out); err != nil {
		return err
	}
	for _, text := range []string{nameless(f.uFile, "features", t.NamedFeatures),
		nameless(f.vFile, "samples", t.NamedSamples), nameless(f.qFile, "features", t.NamedFeatures)} {
		if text != "" {
			f.say(s, record{Warning: text}, "warning: %s", text)
		}
	}
	f.say(s, record{Done: true, Seconds: time.Since(began).Seconds()}, "done in %.1f s",
		time.Since(began).Seconds())
	return nil
}

// record is a line of -progress json.
type record struct {
	Read     string  `json:"read,omitempty"`
	Features int     `json:"features,omitempty"`
	Samples  int     `json:"samples,omitempty"`
	Warning  string  `json:"warning,omitempty"`
	Epoch    int     `json:"epoch,omitempty"`
	Epochs   int     `json:"epochs,omitempty"`
	Loss     float64 `json:"loss,omitempty"`
	Done     bool    `json:"done,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
}

func (f *fitFlags) say(s streams, r record, format string, args ...any) {
	switch f.progress {
	case "plain":
		fmt.Fprintln(s.err, table.Shown(fmt.Sprintf(format, args...)))
	case "json":
		json.NewEncoder(s.err).Encode(r)
	}
}

// write writes the outputs.
func (f *fitFlags) write(m quantmf.Model, t *table.Table, stdout io.Writer) error {
	files := []output{{f.modelFile, func(w io.Writer) error {
		data, err := f.marshal(m, t)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}}}
	var u, v quantmf.Mat
	switch m := m.(type) {
	case *quantmf.NMF:
		u, v = m.U, m.V
	case *quantmf.QMF:
		u, v = m.U, m.V
		if f.qFile != "" {
			levels := m.Quantiles.Cols
			both := quantmf.NewMat(u.Rows, 2*levels)
			for i := range u.Rows {
				copy(both.Row(i), m.Quantiles.Row(i))
				copy(both.Row(i)[levels:], m.Weights.Row(i))
			}
			files = append(files, tableOutput(f.qFile, "feature", t.Features,
				append(numbered("q", levels), numbered("w", levels)...), both))
		}
	default:
		return errors.New("the store has a model of another kind")
	}
	components := numbered("c", u.Cols)
	return write(stdout, append(files, tableOutput(f.uFile, "feature", t.Features, components, u),
		tableOutput(f.vFile, "component", components, t.Samples, v))...)
}

// marshal returns the model as a file of quantmf, with the names of features and samples, and with the
// changes that were made to the matrix before the fit.
func (f *fitFlags) marshal(m quantmf.Model, t *table.Table) ([]byte, error) {
	data, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	var names account.Names
	if t.NamedFeatures {
		names.Features = t.Features
	}
	if t.NamedSamples {
		names.Samples = t.Samples
	}
	return account.Append(data, names,
		account.Made{Matrix: filepath.Base(f.fileName), Log1p: f.log1p, Top: f.top > 0})
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}
