package main

// This file holds "quantmf impute": missing values filled in by a BQMF, and a check of how well it predicts
// known values. For the check the known values of every feature are dealt out to ten parts at random. One
// part at a time is hidden and a further fit is made of the rest. Its predictions of the hidden values are
// compared with them, and so is the mean of the feature's visible values.

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
)

const imputeUsage = `usage: quantmf impute [flags] MATRIX -o FILE

Fills in the missing values of MATRIX (empty cells, NA, NaN) by a Bayesian quantile
matrix factorisation, the method of quantmf that predicts unseen values best. It
then hides known values from further fits, and says how well these are predicted.
Nothing needs to be chosen. Values that are not missing stay as they are. FILE has
features in rows, also where -transpose reads samples in rows.

` + matrixHelp + `
What is filled in
  -value mean|median
                    what to fill in: the mean of a value's distribution, for sums
                    and squared errors, or its median, for absolute errors (default
                    mean)
  -interval P       also write the ends of the intervals that hold a missing value
                    with probability P, above 0 and below 1: with -o FILE.csv to
                    FILE.lower.csv and FILE.upper.csv. Both have a value that is not
                    missing as it is
  -loss auto|kl|frobenius
                    the loss by which the model is chosen: the Kullback-Leibler
                    divergence, for positive amounts and counts, or half the squared
                    differences, for values of any sign. auto is frobenius where a
                    value is negative and kl elsewhere; the summary says which
                    (default auto)
  -k N              the most components there may be: components that the data do
                    not need fade (default 0: 50, or one fewer than features or
                    samples)
  -epochs N         the most epochs of each of the model's two fits (default 60)

How well
  -checks N         the number of checks, each of which hides another tenth of the
                    known values; at most 10, 0 for none (default 5)
  -features FILE    a line for each feature: missing values, values checked, the
                    mean error of the model and that of the feature's own mean, the
                    share by which the first is less, the standard error of this
                    share, and a verdict. better: the model predicts better; unsure:
                    the difference is within 1.64 standard errors; mean: the
                    feature's mean predicts as well; unchecked: no value was hidden.
                    With -value median the errors are absolute, and medians take the
                    place of means. Between columns stand commas where FILE ends in
                    .csv, tabs elsewhere
  -json             the summary and the lines of all features as one JSON object on
                    standard output
  -seed N           seed of the choice of hidden values (default 1)

  -o FILE           where to write (required)
  -workers N        threads, 0 for one per processor; the result does not depend
                    on it (default 0)
  -max-memory SIZE  refuse a matrix or a fit that needs more, such as 500MB, with
                    exit code 3 (default 8GiB)
  -progress auto|plain|json|none
                    as in "quantmf fit -h" (default auto)

` + readHelp + `
` + writeHelp + `
When to use it: where features hang together, there are some forty samples or more,
and values are missing here and there. Samples or features without any value cannot
be filled in. The model assumes that a value is not missing because of its size:
values below a detection limit are filled in too high. The summary has the share by
which the error is less than that of the features' means: near 0, means do as well.
A filled table looks more certain than it is: carry the intervals along, or leave
the values missing for methods that can take that ("quantmf fit -missing").

Either all files are written or none.

` + exitHelp

// imputeFlags are the flags of impute. fitFlags has what it shares with fit.
type imputeFlags struct {
	fitFlags
	out, features string
	interval      float64 // 0 for none
	median        bool
	checks        int
	asJSON        bool
	seed          uint64
}

// parts is the number of parts to which the known values are dealt out.
const parts = 10

func parseImpute(args []string) (*imputeFlags, error) {
	options := optionFlags()
	f := &imputeFlags{seed: 1}
	f.fitFlags = fitFlags{method: "bqmf", missing: true, flagOf: flagOf(options), loss: quantmf.KL,
		autoLoss: true,
		options:  []quantmf.FitOption{quantmf.WithMissingValues()}}
	set := newFlags("impute")
	value := "mean"
	set.StringVar(&f.out, "o", "", "")
	set.StringVar(&f.features, "features", "", "")
	set.Float64Var(&f.interval, "interval", 0, "")
	set.StringVar(&value, "value", value, "")
	set.IntVar(&f.checks, "checks", 5, "")
	set.BoolVar(&f.asJSON, "json", false, "")
	set.IntVar(&f.rank, "k", 0, "")
	f.limits.flags(set)
	f.in.register(set, false)
	for _, o := range options {
		if slices.Contains([]string{"loss", "epochs", "seed", "workers"}, o.Name) {
			set.Var(o, o.Name, "")
		}
	}
	words, err := arguments(set, args, "MATRIX")
	if err != nil {
		return nil, err
	}
	f.matrix = words[0]
	given := map[string]bool{}
	set.Visit(func(g *flag.Flag) {
		given[g.Name] = true
		o, is := g.Value.(*optionFlag)
		if !is || o.value == nil {
			return
		}
		f.options = append(f.options, o.value)
		switch o.Name {
		case "loss":
			f.loss, _ = account.ParseLoss(o.text)
			f.autoLoss = false
		case "seed":
			f.seed, _ = flags.Seed(o.text)
		}
	})
	f.median = value == "median"
	switch {
	case value != "mean" && value != "median":
		return nil, usageError(fmt.Sprintf("-value %s: %v", value, flags.OneOf([]string{"mean", "median"})))
	case given["interval"] && !(f.interval > 0 && f.interval < 1):
		return nil, usageError(fmt.Sprintf("-interval %g: must be above 0 and below 1", f.interval))
	case f.checks < 0 || f.checks > parts:
		return nil, usageError(fmt.Sprintf("-checks %d: must be from 0 to %d", f.checks, parts))
	case f.loss != quantmf.KL && f.loss != quantmf.Frobenius:
		return nil, usageError("-loss: must be auto, kl or frobenius")
	case f.checks == 0 && f.features != "":
		return nil, usageError("-features: there is nothing to say with -checks 0")
	case f.interval > 0 && f.out == "-":
		return nil, usageError("-interval: needs an -o FILE, beside which its ends are written")
	case f.asJSON && (f.out == "-" || f.features == "-"):
		return nil, usageError("-json: standard output is taken: give a file to -o and -features")
	}
	if err := f.limits.check(); err != nil {
		return nil, err
	}
	if err := f.takes("bqmf", f.options); err != nil {
		return nil, err
	}
	if err := needsOut(f.out); err != nil {
		return nil, err
	}
	if err := f.in.writable(f.out); err != nil {
		return nil, err
	}
	return f, apart(f.files()...)
}

// files are the names of the outputs: the matrix, the lower and the upper ends of intervals, the features.
func (f *imputeFlags) files() []string {
	files := []string{f.out}
	if f.interval > 0 {
		files = append(files, besides(f.out, "lower"), besides(f.out, "upper"))
	}
	if f.features != "" {
		files = append(files, f.features)
	}
	return files
}

// besides returns the name of a file beside another: a.lower.csv.gz beside a.csv.gz.
func besides(file, what string) string {
	plain, packed := file, ""
	if strings.HasSuffix(strings.ToLower(file), ".gz") {
		plain, packed = file[:len(file)-3], file[len(file)-3:]
	}
	end := filepath.Ext(plain)
	return strings.TrimSuffix(plain, end) + "." + what + end + packed
}

// footprint is the most that is alive at once, in bytes: the matrix and its copy with hidden cells, and
// either the fit, or the model with the predictions and intervals that it gives.
func (f *imputeFlags) footprint(d, n int) (float64, error) {
	need, err := quantmf.MemoryOf(quantmf.MethodBQMF, d, n, f.rank, f.options...)
	if err != nil {
		return 0, err
	}
	numbers := float64(d) * float64(n)
	asked := float64(need.Model) + 8*6*numbers
	return margin*max(8*2.25*numbers+max(float64(need.Fit), asked), readShare*numbers) + 64*float64(d+n) +
		buffers + programSize, nil
}

func impute(args []string, s streams) error {
	began := time.Now()
	f, err := parseImpute(args)
	if err != nil {
		return err
	}
	defer f.hold()()
	t, input, err := f.read(s)
	if err != nil {
		return err
	}
	need, err := f.footprint(t.X.Rows, t.X.Cols)
	if err == nil {
		err = f.allows(need, "this", "use fewer features or components (-k), or allow more")
	}
	if err != nil {
		return explain(err, t, f.flagOf)
	}
	ctx, stop := interruptible()
	defer stop()
	out := &outputs{stdout: s.out}
	defer out.discard()
	files := f.files()
	for _, path := range files {
		if err := out.open(path, input); err != nil {
			return err
		}
	}
	tell := newProgress(f.progress, s.err)
	r := &imputation{imputeFlags: f, table: t, tell: tell}
	err = r.run(ctx)
	tell.end()
	if err != nil {
		if ctx.Err() != nil {
			return interrupted("interrupted; no file was written")
		}
		return explain(err, t, f.flagOf)
	}
	if err := r.write(out, files); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted before the files were in place; no file was written")
	}
	if err := out.commit(); err != nil {
		return err
	}
	for _, path := range files {
		if path == f.features { // no matrix
			continue
		}
		if err := f.in.nameless(s.err, path, t.NamedFeatures, t.NamedSamples); err != nil {
			return err
		}
	}
	if f.asJSON {
		e := json.NewEncoder(s.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(r.object()); err != nil {
			return err
		}
	}
	return tell.summary(r.summary(files, time.Since(began).Seconds()))
}

// imputation is an imputation under way.
type imputation struct {
	*imputeFlags
	table *table.Table
	tell  *progress

	model         *quantmf.BQMF
	filled        quantmf.Mat
	lower, upper  quantmf.Mat // with -interval
	of            []feature   // how well each is predicted, nil without checks
	all           feature
	words         []string // warnings
	probabilities float64  // of the intervals that are checked
}

// feature tells how well the hidden values of one feature, or of all, were predicted. Sums are over the
// hidden values.
type feature struct {
	hidden      int
	loss, own   float64 // the divergence from the model's mean, and from that of the feature's visible values
	abs, ownAbs float64 // the absolute error of the model's median, and of that of the visible values
	square      float64 // of own - loss, with -value median of ownAbs - abs
	held        float64 // within the interval
}

// errors are the mean error of the model and of the feature's own mean or median.
func (c *feature) errors(median bool) (model, own float64) {
	model, own = c.loss, c.own
	if median {
		model, own = c.abs, c.ownAbs
	}
	return model / float64(c.hidden), own / float64(c.hidden)
}

// less is the share by which the error of the model is less, and its standard error, as
// that of a mean of differences.
func (c *feature) less(median bool) (share, stdErr float64) {
	model, own := c.errors(median)
	if own == 0 {
		return 0, 0
	}
	n := float64(c.hidden)
	gain := own - model
	if n > 1 {
		stdErr = math.Sqrt(max(c.square/n-gain*gain, 0)/(n-1)) / own
	}
	return gain / own, stdErr
}

// unsure is the difference in standard errors within which a feature may or may not be
// better predicted than by its mean: one in twenty is beyond by chance.
const unsure = 1.64

func (c *feature) verdict(median bool) string {
	if c.hidden == 0 {
		return "unchecked"
	}
	switch share, stdErr := c.less(median); {
	case share <= 0:
		return "mean"
	case share < unsure*stdErr || c.hidden < 3:
		return "unsure"
	}
	return "better"
}

// run makes the checks and the fit.
func (r *imputation) run(ctx context.Context) error {
	x := r.table.X
	observe := quantmf.WithProgress(r.tell.report)
	options := append(slices.Clip(r.options), observe)
	r.probabilities = r.interval
	if r.interval == 0 {
		r.probabilities = 0.9
	}
	if r.checks > 0 {
		r.of = make([]feature, x.Rows)
	}
	dealt := deal(x, r.seed)
	for check := range r.checks {
		r.tell.begin(fmt.Sprintf("BQMF, check %d of %d", check+1, r.checks))
		if err := r.hide(ctx, dealt, check, options); err != nil {
			return err
		}
	}
	for i := range r.of {
		c := &r.of[i]
		r.all.hidden += c.hidden
		r.all.loss += c.loss
		r.all.own += c.own
		r.all.abs += c.abs
		r.all.ownAbs += c.ownAbs
		r.all.held += c.held
	}
	r.tell.begin("BQMF")
	m, err := quantmf.FitBQMF(ctx, x, r.rank, options...)
	if err != nil {
		return err
	}
	r.model = m
	r.words, _ = warningsInWords(m.Warnings, r.table.Features)
	if r.median {
		r.filled = m.Median()
	} else {
		r.filled = m.Reconstruct()
	}
	keep(r.filled, x)
	if r.interval > 0 {
		if r.lower, r.upper, err = m.Interval(r.interval); err != nil {
			return err
		}
		keep(r.lower, x)
		keep(r.upper, x)
	}
	return ctx.Err()
}

// keep puts into m the values of x that are not missing.
func keep(m, x quantmf.Mat) {
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v {
				m.Set(i, j, v)
			}
		}
	}
}

// deal returns the part of every cell, -1 for a missing one. The known cells of every row are dealt out in
// random order, as evenly as possible. With any one part hidden, every row and column keeps at least two
// known cells.
func deal(x quantmf.Mat, seed uint64) []int8 {
	src := rand.New(rand.NewPCG(seed, 17))
	known := make([]int, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v {
				known[j]++
			}
		}
	}
	out := make([]int8, x.Rows*x.Cols)
	taken := make([][parts]int, x.Cols) // of each column, from each part
	var cells []int
	for i := range x.Rows {
		cells = cells[:0]
		for j, v := range x.Row(i) {
			out[i*x.Cols+j] = -1
			if v == v {
				cells = append(cells, j)
			}
		}
		src.Shuffle(len(cells), func(a, b int) { cells[a], cells[b] = cells[b], cells[a] })
		var row [parts]int
		part := src.IntN(parts)
		for _, j := range cells {
			if row[part]+2 < len(cells) && taken[j][part]+2 < known[j] {
				out[i*x.Cols+j] = int8(part)
				row[part]++
				taken[j][part]++
			}
			part = (part + 1) % parts
		}
	}
	return out
}

// hide hides one part from a fit, and adds the errors of its predictions.
func (r *imputation) hide(ctx context.Context, dealt []int8, part int, options []quantmf.FitOption) error {
	x := r.table.X
	given, hidden := x.Clone(), quantmf.NewMat(x.Rows, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if dealt[i*x.Cols+j] == int8(part) {
				given.Set(i, j, math.NaN())
				hidden.Set(i, j, v)
			} else {
				hidden.Set(i, j, math.NaN())
			}
		}
	}
	m, err := quantmf.FitBQMF(ctx, given, r.rank, options...)
	if err != nil {
		return err
	}
	below, upTo, err := m.Probability(hidden)
	if err != nil {
		return err
	}
	mean, median := m.Reconstruct(), m.Median()
	var visible []float64
	for i := range x.Rows {
		visible = visible[:0]
		own := 0.0
		for _, v := range given.Row(i) {
			if v == v {
				visible = append(visible, v)
				own += (v - own) / float64(len(visible))
			}
		}
		middle := medianOf(visible)
		c := &r.of[i]
		for j, v := range hidden.Row(i) {
			if v != v {
				continue
			}
			loss, ownLoss := divergence(r.loss, v, mean.At(i, j)), divergence(r.loss, v, own)
			abs, ownAbs := math.Abs(v-median.At(i, j)), math.Abs(v-middle)
			gain := ownLoss - loss
			if r.median {
				gain = ownAbs - abs
			}
			c.hidden++
			c.loss += loss
			c.own += ownLoss
			c.abs += abs
			c.ownAbs += ownAbs
			c.square += gain * gain
			c.held += within(below.At(i, j), upTo.At(i, j), r.probabilities)
		}
	}
	return ctx.Err()
}

// divergence is that of the loss, t held above 0 under the Kullback-Leibler one as the
// package does.
func divergence(of quantmf.Loss, x, t float64) float64 {
	if of == quantmf.Frobenius {
		return (x - t) * (x - t) / 2
	}
	if t = max(t, 1e-100); x > 0 {
		return max(x*math.Log(x/t)-x+t, 0)
	}
	return t
}

// medianOf sorts v.
func medianOf(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return v[(n-1)/2]/2 + v[n/2]/2
}

// within returns which share of a value lies in the central interval of probability p. The value takes the
// probabilities from below to upTo: a value with a mass of its own, such as 0 in counts, may lie in the
// interval in part.
func within(below, upTo, p float64) float64 {
	low, high := (1-p)/2, (1+p)/2
	if upTo > below {
		return max(min(upTo, high)-max(below, low), 0) / (upTo - below)
	}
	if below >= low && below <= high {
		return 1
	}
	return 0
}

// write writes the files, in the order in which they were opened.
func (r *imputation) write(out *outputs, files []string) error {
	t := r.table
	matrix := func(path string, m quantmf.Mat) error {
		return out.write(path, func(w io.Writer) error {
			return table.Write(w, r.in.place(path), "feature",
				t.Features, t.Samples, m)
		})
	}
	if err := matrix(files[0], r.filled); err != nil {
		return err
	}
	if r.interval > 0 {
		if err := matrix(files[1], r.lower); err != nil {
			return err
		}
		if err := matrix(files[2], r.upper); err != nil {
			return err
		}
	}
	if r.features == "" {
		return nil
	}
	return out.write(r.features, func(w io.Writer) error {
		c := csv.NewWriter(w)
		if !strings.HasSuffix(strings.ToLower(r.features), ".csv") {
			c.Comma = '\t'
		}
		own := "error_of_mean"
		if r.median {
			own = "error_of_median"
		}
		c.Write([]string{"feature", "missing", "checked", "error", own, "less", "stderr", "verdict"})
		for _, o := range r.object().Features {
			c.Write([]string{o.Name, strconv.Itoa(o.Missing), strconv.Itoa(o.Checked), digits(o.Error),
				digits(o.Own), digits(o.Less), digits(o.StdErr), o.Verdict})
		}
		c.Flush()
		return c.Error()
	})
}

// digits writes a number of the table of features, "" for nil.
func digits(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', 6, 64)
}

// The object of impute -json. Errors are left out where nothing was checked.
type (
	imputeObject struct {
		Matrix       string          `json:"matrix"`
		Missing      int             `json:"missing"`
		Loss         string          `json:"loss"`
		LossReason   string          `json:"loss_reason,omitempty"`
		Components   int             `json:"components"`
		Value        string          `json:"value"`
		Checked      int             `json:"checked"`
		Error        *float64        `json:"error,omitempty"`
		Own          *float64        `json:"error_of_own,omitempty"`
		Less         *float64        `json:"less,omitempty"`
		StdErr       *float64        `json:"stderr,omitempty"`
		Absolute     *float64        `json:"absolute_error,omitempty"`
		AbsoluteOwn  *float64        `json:"absolute_error_of_own,omitempty"`
		Interval     float64         `json:"interval"`
		IntervalHeld *float64        `json:"interval_held,omitempty"`
		Warnings     []string        `json:"warnings"`
		Features     []featureErrors `json:"features"`
	}
	featureErrors struct {
		Name    string   `json:"name"`
		Missing int      `json:"missing"`
		Checked int      `json:"checked"`
		Error   *float64 `json:"error,omitempty"`
		Own     *float64 `json:"error_of_own,omitempty"`
		Less    *float64 `json:"less,omitempty"`
		StdErr  *float64 `json:"stderr,omitempty"`
		Verdict string   `json:"verdict"`
	}
)

func (r *imputation) object() imputeObject {
	x := r.table.X
	o := imputeObject{Matrix: r.name(), Missing: missing(x),
		Loss:       map[quantmf.Loss]string{quantmf.KL: "kl", quantmf.Frobenius: "frobenius"}[r.loss],
		LossReason: r.losses,
		Components: r.model.U.Cols, Value: "mean", Checked: r.all.hidden, Interval: r.probabilities,
		Warnings: append([]string{}, r.words...)}
	if r.median {
		o.Value = "median"
	}
	if r.all.hidden > 0 {
		model, own := r.all.errors(r.median)
		share, stdErr := r.overall()
		n := float64(r.all.hidden)
		abs, ownAbs, held := r.all.abs/n, r.all.ownAbs/n, r.all.held/n
		o.Error, o.Own, o.Less, o.StdErr, o.Absolute, o.AbsoluteOwn, o.IntervalHeld = &model, &own, &share,
			&stdErr, &abs, &ownAbs, &held
	}
	for i, name := range r.table.Features {
		e := featureErrors{Name: name, Verdict: "unchecked"}
		for _, v := range x.Row(i) {
			if v != v {
				e.Missing++
			}
		}
		if r.of != nil && r.of[i].hidden > 0 {
			c := &r.of[i]
			model, own := c.errors(r.median)
			share, stdErr := c.less(r.median)
			e.Checked, e.Error, e.Own, e.Less, e.StdErr, e.Verdict = c.hidden, &model, &own, &share, &stdErr,
				c.verdict(r.median)
		}
		o.Features = append(o.Features, e)
	}
	return o
}

// overall returns the share by which the error over all features is less than that of the features' means,
// and the standard error of this share. It is the standard error of a ratio of sums over features, because
// values of one feature are not independent.
func (r *imputation) overall() (share, stdErr float64) {
	model, own := r.all.loss, r.all.own
	if r.median {
		model, own = r.all.abs, r.all.ownAbs
	}
	if own == 0 {
		return 0, 0
	}
	ratio, square := model/own, 0.0
	for i := range r.of {
		m, o := r.of[i].loss, r.of[i].own
		if r.median {
			m, o = r.of[i].abs, r.of[i].ownAbs
		}
		square += (m - ratio*o) * (m - ratio*o)
	}
	if d := float64(len(r.of)); d > 1 {
		stdErr = math.Sqrt(square*d/(d-1)) / own
	}
	return 1 - ratio, stdErr
}

// strayed says what to make of intervals of a nominal percent, when the share of hidden values that they held
// is far from it. tried is the number of hidden values.
func strayed(percent, share float64, tried int) string {
	values := counted(tried, "value")
	switch {
	case tried < 100:
		return fmt.Sprintf("the table is too small to check its intervals: of no more than %s %.0f %% lay "+
			"in their %g %% intervals. Take the intervals for a rough guess", values, share, percent)
	case share > percent:
		return fmt.Sprintf("the %g %% intervals are wider than they need be on this table: they held %.1f "+
			"%% of %s", percent, share, values)
	}
	return fmt.Sprintf("the %g %% intervals are too narrow on this table: they held %.1f %% of %s. Take "+
		"them for %.0f %% intervals", percent, share, values, share)
}

// summary says the result in a few lines of words.
func (r *imputation) summary(files []string, seconds float64) string {
	var s strings.Builder
	line := linesOf(&s)
	x := r.table.X
	read := &result{fitFlags: &r.fitFlags, table: r.table}
	line("Matrix", "%s: %s × %s%s", r.name(), counted(x.Rows, "feature"), counted(x.Cols, "sample"),
		read.naming(missing(r.table.X)))
	if r.losses != "" {
		line("Loss", "%s", r.losses)
	}
	line("Model", "BQMF of %s", counted(r.model.U.Cols, "component"))
	what := "mean"
	if r.median {
		what = "median"
	}
	line("Filled", "%s, each by the %s of its distribution", counted(missing(x), "value"), what)
	switch {
	case r.checks == 0:
	case r.all.hidden == 0:
		line("Check", "no value could be hidden: every row and column must keep two values")
	default:
		n := float64(r.all.hidden)
		share, stdErr := r.overall()
		line("Check", "%s, each hidden from one of %s and predicted by it",
			counted(r.all.hidden, "known value"), counted(r.checks, "further fit"))
		line("", "mean %s %.4g; of the features' own means %.4g", account.LossName(r.loss), r.all.loss/n,
			r.all.own/n)
		line("", "mean absolute error of medians %.4g; of the features' own medians %.4g", r.all.abs/n,
			r.all.ownAbs/n)
		line("", "predictions have %s", lessError(share, stdErr, what))
		line("Intervals", "%.1f %% of the hidden values lie in their %g %% intervals", 100*r.all.held/n,
			100*r.probabilities)
		line("Features", "%s", r.told(what))
		if share <= 0 {
			line("Warning", "the features' own %ss predict as well: this table has nothing that a model of "+
				"few components can use", what)
		}
		if off := r.all.held/n - r.probabilities; math.Abs(off) > 0.05+
			2*math.Sqrt(r.probabilities*(1-r.probabilities)/n) {
			line("Warning", "%s", strayed(100*r.probabilities, 100*r.all.held/n, r.all.hidden))
		}
	}
	for _, w := range r.words {
		line("Warning", "%s", w)
	}
	line("Time", "%s", duration(seconds))
	for i, f := range files {
		if f != "-" {
			what := "the matrix, filled in"
			if r.in.Transpose {
				what += ", features in rows"
			}
			switch {
			case f == r.features:
				what = "how well each feature is predicted"
			case i > 0:
				what = fmt.Sprintf("the %s ends of the %g %% intervals", []string{"lower", "upper"}[i-1],
					100*r.interval)
			}
			line("Written", "%s (%s)", f, what)
		}
	}
	return s.String()
}

// lessError says how much less error predictions have than the features' own means or medians.
func lessError(share, stdErr float64, own string) string {
	percent, about := math.Round(100*math.Abs(share)), math.Round(100*stdErr)
	how := "less"
	switch {
	case percent == 0 && about == 0:
		return "as much error as the features' own " + own + "s"
	case percent > 0 && share < 0:
		how = "more"
	}
	return fmt.Sprintf("%.0f ± %.0f %% %s error than the features' own %ss", percent, about, how, own)
}

// told counts features by verdict, and names the features that their mean predicts as well.
func (r *imputation) told(own string) string {
	count := map[string]int{}
	var names []string
	for i := range r.of {
		v := r.of[i].verdict(r.median)
		count[v]++
		if v == "mean" {
			names = append(names, table.Shown(r.table.Features[i]))
		}
	}
	text := fmt.Sprintf("%d of %d features are predicted better than by their own %s", count["better"],
		len(r.of), own)
	if n := count["unsure"]; n > 0 {
		text += fmt.Sprintf("; %d are unsure", n)
	}
	if n := count["unchecked"]; n > 0 {
		text += fmt.Sprintf("; %d could not be checked", n)
	}
	if len(names) == 0 {
		return text
	}
	more := ""
	if len(names) > 8 {
		more = fmt.Sprintf(" and %d more (-features FILE lists them)", len(names)-8)
		names = names[:8]
	}
	return text + "; not better: " + strings.Join(names, ", ") + more
}
