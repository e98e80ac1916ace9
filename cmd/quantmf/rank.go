package main

// This file holds "quantmf rank": the choice of the number of components and of levels.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/settings"
)

func rankProgram() *cli.Program { return newRankFlags().program() }

func newRankFlags() *rankFlags {
	return &rankFlags{fitFlags: *newFitFlags(), Comparison: cli.NewComparison(), share: 0.1}
}

func (f *rankFlags) program() *cli.Program {
	p := &cli.Program{
		Usage: []string{"[flags] MATRIX"},
		About: `Compares numbers of components. Several times it hides a share of the values, fits the rest
			with each number, and measures how well the hidden values are predicted. A low loss on values
			that were fitted says little, because more components always fit them better.` +
			"\n\n" + cli.MatrixHelp,
		Groups: []cli.Group{
			f.in.Reading(),
			{Heading: "What is compared", Flags: append(f.Flags(&f.share), f.options.Flag(option.Seed))},
			{Heading: "What is fitted", Elsewhere: asInFit, Flags: append(append([]*cli.Flag{
				f.MethodFlag(),
				f.options.Flag(option.Loss), f.options.Flag(option.Missing)}, f.in.Changes()...),
				f.options.Flags(cli.Compared...)...)},
			{Heading: "What is written", Flags: []*cli.Flag{
				cli.Switch(&f.asJSON, "json", "the results as one JSON object instead of the table"),
				cli.File(&f.plot, "plot", "write the results as a picture, in SVG"),
			}},
			f.keep.group("DIR", "keep finished fits in this folder until all are finished", ""),
			f.in.Limits(),
		},
		After: `Standard output gets a tab-separated line for each number: the method where several are
			compared; k; m where it was given; the loss of the hidden values (mean), over the repeats; its
			standard error; by how much it is worse than the best; and the standard error of that
			difference. The first line, of no components (k = 0), is of the mean of each feature alone. All
			see the same hidden values, so the difference is surer than the two standard errors say.

			Standard error gets, whatever -progress is: the best; the one to take, which is the smallest k
			(with the smallest m) that is as good, within one standard error of the difference both in loss
			and where every feature counts the same; how sure both are: how often as many repeats with other
			hidden values of this table would find the same (other tables like it differ by more); and a
			warning where either lies at the edge of what was tried. Fits run side by side, one a
			processor.` + "\n\n" + cli.ExitHelp,
		Examples: [][2]string{
			{"quantmf rank -k 2,3,5,8,12 -plot ranks.svg table.tsv", ""},
			{"quantmf rank -method nmf,qmf,bqmf -k 2,4,8 -repeats 30 -json table.tsv", ""},
			{"quantmf rank -k 5,10,20 -m 8,16 -checkpoint done -resume big.npz",
				"finished fits outlive an interrupt"},
		},
		Words: []string{"MATRIX"},
	}
	p.Run = func(words []string, s cli.Streams) error {
		f.matrix, f.Seed = words[0], f.options.Seed
		if err := f.check(); err != nil {
			return err
		}
		return f.run(s)
	}
	return p
}

// rankFlags are the flags of rank.
type rankFlags struct {
	fitFlags
	cli.Comparison
	share  float64
	asJSON bool
	plot   string
}

// trials are the pairs of k and m that are tried. -missing is left out, which HeldOut sets.
func (f *rankFlags) trials() (trials []quantmf.Trial) {
	for trial := range f.Comparison.Trials() {
		options := f.options.List(option.Missing)
		if len(f.Ms) > 0 {
			options = append(options, quantmf.WithLevels(f.M(trial)))
		}
		trials = append(trials, quantmf.Trial{Rank: f.K(trial), Options: options})
	}
	return trials
}

// check reports flags that exclude each other.
func (f *rankFlags) check() error {
	if err := cmp.Or(f.keep.check(), cli.Apart(f.plot, f.keep.path)); err != nil {
		return err
	}
	if f.plot == "-" {
		return cli.UsageError("-plot -: standard output has the results: give a file")
	}
	f.method = "nmf"
	if f.Signed() {
		f.method = "qmf" // which takes values of any sign, as do those that are compared
	}
	for i, t := range f.trials() {
		if err := cli.Takes(f.Method(i), t.Rank, t.Options); err != nil {
			return err
		}
	}
	return nil
}

func (f *rankFlags) run(s cli.Streams) error {
	defer f.in.Hold()()
	t, input, err := f.read(s)
	if err != nil {
		return err
	}
	if err := f.affordable(t.X); err != nil {
		return cli.Explain(err, t)
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	out := &cli.Outputs{Stdout: s.Out}
	defer out.Discard()
	if err := out.Open([]os.FileInfo{input}, f.plot); err != nil {
		return err
	}
	c := &comparison{rankFlags: f, told: cli.NewProgress(f.in.Progress, s.Err)}
	if f.keep.path != "" {
		if c.done, err = openFits(f); err != nil {
			return err
		}
	}
	err = c.fits(ctx, t.X)
	c.told.End()
	switch {
	case err != nil && ctx.Err() != nil && c.done != nil:
		return cli.StoppedError("interrupted before all fits were done; those that are done are in " +
			f.keep.path + ": the same command with -resume goes on")
	case err != nil && ctx.Err() != nil:
		return cli.StoppedError("interrupted before all fits were done")
	case err != nil:
		return cli.Explain(err, t)
	}
	if err := out.Write(f.plot, func(w io.Writer) error { return c.chart().Write(w) }); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if f.asJSON {
		err = writeJSON(s.Out, c.object())
	} else {
		_, err = io.WriteString(s.Out, c.Table())
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
	return c.told.Summary(verdict)
}

// affordable returns an error for a comparison that would take more memory than -max-memory.
func (f *rankFlags) affordable(x quantmf.Rows) error {
	need, err := f.footprint(x)
	if err != nil {
		return err
	}
	return f.in.Allows(need, "this",
		"use fewer features (-top), components, levels or repeats, or allow more")
}

// footprint is the most that is alive at once, in bytes: the matrix, a copy for every repeat, and a fit with
// its reconstruction for every processor.
func (f *rankFlags) footprint(x quantmf.Rows) (float64, error) {
	most := 0.0
	for i, t := range f.trials() {
		need, err := quantmf.MemoryFor(context.Background(), settings.Method(f.Method(i)), x, t.Rank,
			append(t.Options, quantmf.WithMissingValues(), quantmf.WithWorkers(1))...)
		if err != nil {
			return 0, err
		}
		most = max(most, float64(need.Fit))
	}
	d, n := x.Dims()
	numbers := 8 * float64(d) * float64(n)
	masks := f.AtOnce()
	fits := float64(min(runtime.GOMAXPROCS(0), masks*len(f.trials())))
	// reading takes less
	return margin*((1.25+1.125*float64(masks))*numbers+fits*(most+numbers)) + buffers + programSize, nil
}

// identity is a text of all on which the fits depend, beside the matrix and the sizes tried.
func (f *rankFlags) identity() string {
	text := f.losses + "\n"
	for _, o := range f.options.Texts(option.Missing) {
		text += o[0] + " " + o[1] + "\n"
	}
	return text
}

// comparison is a comparison under way, and its results.
type comparison struct {
	*rankFlags
	told *cli.Progress
	done *fitsDone // nil without -checkpoint
}

// fits makes the fits. It gives HeldOut the number of the trial in place of a rank, from which the fit finds
// its k and m.
func (c *comparison) fits(ctx context.Context, x quantmf.Mat) (err error) {
	trials := c.trials()
	ranks := make([]int, len(trials))
	for i := range trials {
		ranks[i], trials[i].Rank = trials[i].Rank, i
	}
	all, done := 0, 0
	var mutex sync.Mutex
	c.told.Begin("rank")
	fit := func(ctx context.Context, x quantmf.Rows, trial int,
		options ...quantmf.FitOption) (m quantmf.Model,
		err error) {
		fit := func() (quantmf.Model, error) {
			return settings.Fit(ctx, c.Method(trial), x, ranks[trial], options...)
		}
		if c.done == nil {
			m, err = fit()
		} else {
			m, err = c.done.made(x, fmt.Sprint(c.Method(trial), ranks[trial], c.M(trial)), fit)
		}
		if err != nil {
			return nil, err
		}
		mutex.Lock()
		defer mutex.Unlock()
		done++
		return m, c.told.Count(done, all, "fits")
	}
	return c.Run(x.Rows*x.Cols, func(first, masks int) ([]quantmf.Prediction, error) {
		all += masks * len(trials)
		if err := c.told.Count(done, all, "fits"); err != nil {
			return nil, err
		}
		return quantmf.HeldOut(ctx, x, fit, trials,
			quantmf.Masks{First: first, Repeats: masks, Share: c.share, Seed: c.Seed})
	})
}

// fitsDone are the models of a comparison, in a folder: a blob for each, and "flags", the text of all that
// they depend on beside their names.
type fitsDone struct{ cli.Folder }

// openFits opens the folder, and removes what is there unless it is to be resumed.
func openFits(f *rankFlags) (*fitsDone, error) {
	keep, identity := &f.keep, f.identity()
	d := &fitsDone{cli.Folder{Dir: keep.path, In: &f.in}}
	if info, err := os.Stat(keep.path); err == nil && !info.IsDir() {
		return nil, cli.UsageError("-checkpoint " + keep.path + ": must be a folder")
	}
	if err := os.MkdirAll(keep.path, 0o777); err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", keep.path, err)
	}
	before, err := d.Get("flags")
	switch {
	case err != nil:
		return nil, &cli.InputError{Err: err}
	case !keep.resume:
		for _, name := range d.blobs() {
			if err := d.Remove(name); err != nil {
				return nil, err
			}
		}
	case before == nil && len(d.Files()) > 0:
		return nil, &cli.InputError{
			Err: errors.New(keep.path + ": this is no folder of -checkpoint of quantmf rank")}
	case before != nil && string(before) != identity:
		return nil, cli.UsageError("-resume: " + keep.path +
			" was made with other flags: give those, or -force to start anew")
	}
	d.Sweep()
	return d, d.Put("flags", []byte(identity))
}

// blobs are the names of what the folder has of a comparison.
func (d *fitsDone) blobs() (names []string) {
	for _, info := range d.Files() {
		if name := info.Name(); name == "flags" || strings.HasPrefix(name, "fit-") {
			names = append(names, name)
		}
	}
	return names
}

// made returns the model of a trial, told by its method and sizes, of x: that of the folder, or what fit
// makes. The name of its blob is a hash of both, hidden cells included.
func (d *fitsDone) made(x quantmf.Rows, trial string, fit func() (quantmf.Model, error)) (quantmf.Model,
	error) {
	rows, columns := x.Dims()
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	row, bytes := make([]float64, columns), []byte(nil)
	fmt.Fprintln(sum, trial, rows, columns)
	for i := range rows {
		if err := x.ReadRow(row, i); err != nil {
			return nil, err
		}
		bytes, _ = binary.Append(bytes[:0], binary.LittleEndian, row) // numbers have no error
		sum.Write(bytes)
	}
	name := fmt.Sprintf("fit-%016x", sum.Sum64())
	data, err := d.Get(name)
	if err != nil {
		return nil, err
	}
	if model, err := quantmf.UnmarshalModel(data); err == nil {
		return model, nil
	}
	model, err := fit() // there is none, or it is damaged
	if err == nil {
		data, err = model.MarshalBinary()
	}
	if err == nil {
		err = d.Put(name, data)
	}
	return model, err
}

// remove removes the folder when all fits are done.
func (d *fitsDone) remove() {
	for _, name := range d.blobs() {
		d.Remove(name)
	}
	os.Remove(filepath.Clean(d.Dir))
}

// The object of rank -json.
type (
	rankObject struct {
		Method  string        `json:"method"` // several with commas between
		Loss    string        `json:"loss_reason,omitempty"`
		Repeats int           `json:"repeats"`
		Share   float64       `json:"share"`
		Trials  []trialObject `json:"trials"` // the last is the mean of each feature alone
		Best    int           `json:"best"`   // an index into trials
		Chosen  int           `json:"chosen"` // the smallest that is as good as the best
		// the share of other sets of masks that choose the same
		Sure     *float64 `json:"sure,omitempty"`
		SureBest *float64 `json:"sure_best,omitempty"`
		Warnings []string `json:"warnings"`
	}
	trialObject struct {
		Method      string    `json:"method"`
		K           int       `json:"k"`
		M           int       `json:"m,omitempty"`
		Mean        float64   `json:"mean"`
		StdErr      float64   `json:"stderr"`
		Worse       float64   `json:"worse"`
		WorseStdErr float64   `json:"worse_stderr"`
		Losses      []float64 `json:"losses"`
		Relative    []float64 `json:"relative_losses"` // where every feature counts the same
	}
)

func (c *comparison) object() rankObject {
	o := rankObject{Method: strings.Join(c.Methods, ","), Loss: c.losses, Repeats: c.Masks(), Share: c.share,
		Best: c.Best, Chosen: c.Chosen, Warnings: append([]string{}, c.Edges()...)}
	if c.Masks() > 1 {
		o.Sure, o.SureBest = &c.SureChosen.Mean, &c.SureBest.Mean
	}
	for i, p := range c.Got {
		worse, stdErr := c.Worse(i)
		o.Trials = append(o.Trials, trialObject{c.Method(i), c.K(i), c.M(i), p.Mean, p.StdErr, worse, stdErr,
			p.Losses, p.Relative})
	}
	return o
}

// chart draws the losses over k, a line for every method and m. All lines begin at the mean alone.
func (c *comparison) chart() report.Chart {
	chart := report.Chart{Title: "Loss of hidden values", XLabel: "components, k", YLabel: "mean divergence"}
	point := func(i int) report.Point {
		return report.Point{Label: c.KName(i), Y: c.Got[i].Mean, Error: c.Got[i].StdErr,
			Marked: i == c.Chosen,
			Best:   i == c.Best}
	}
	order := make([]int, c.Comparison.Trials())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, c.Size)
	for _, method := range c.Methods {
		for _, m := range c.Levels() {
			var name []string
			if len(c.Methods) > 1 {
				name = append(name, strings.ToUpper(method))
			}
			if m > 0 {
				name = append(name, fmt.Sprintf("m = %d", m))
			}
			line := report.Line{Name: strings.Join(name, ", "),
				Points: []report.Point{point(len(c.Got) - 1)}}
			for _, i := range order {
				if c.Method(i) == method && c.M(i) == m {
					line.Points = append(line.Points, point(i))
				}
			}
			chart.Lines = append(chart.Lines, line)
		}
	}
	return chart
}
