package main

// This file holds "quantmf impute": missing values filled in by a BQMF, or by a model that was kept
// (kept.go), and what is said of how well it predicts known values (checks.go).

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
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
)

func imputeProgram() *cli.Program { return newImputeFlags().program() }

func (f *imputeFlags) program() *cli.Program {
	p := &cli.Program{
		Usage: []string{"[flags] MATRIX -o FILE"},
		About: `Fills in the missing values of MATRIX (empty cells, NA, NaN) by a Bayesian quantile matrix
			factorisation, the method of quantmf that predicts unseen values best. It then hides known values
			from further fits, and says how well these are predicted. Nothing needs to be chosen. Values that
			are not missing stay as they are. FILE has features in rows, also where -transpose reads samples
			in rows.

			With -model nothing is fitted: MATRIX has samples that the model need not have seen, even a
			single one. Each is filled in by itself, but for a model of -method bqmf, which learns from all
			of MATRIX first, the model file staying as it is.` + "\n\n" + cli.MatrixHelp,
		Groups: []cli.Group{
			{Heading: "What is filled in", Flags: append(f.filling(), f.categoryFlags()...)},
			{Heading: "New samples of a model", Flags: []*cli.Flag{cli.Text(&f.kept, "model", "FILE", `fill in
				from this model, a file that "quantmf fit -o" wrote, without a fit; with -interval and -value
				median one of -method bqmf. FILE gets the model's features in its order; where fit had -log1p,
				all values are those of log(1+x)`), f.in.Allow()}},
			{Heading: "How well", Flags: f.checking()},
			{Heading: "What is written", Flags: []*cli.Flag{cli.File(&f.out, "o",
				`where to write (required; "-" is standard output)`), f.options.Flag(option.Workers)}},
			f.in.Reading(),
			f.in.Limits(),
		},
		After: cli.WriteHelp + `

			When to use it: where features hang together, there are some forty samples or more, and values
			are missing here and there. Samples or features without any value cannot be filled in. The model
			assumes that a value is not missing because of its size: values below a detection limit are
			filled in too high. The summary has the share by which the error is less than that of the
			features' means: near 0, means do as well. A filled table looks more certain than it is: carry
			the intervals along, or leave the values missing for methods that can take that ("quantmf fit
			-missing").

			Either all files are written or none.` + "\n\n" + cli.ExitHelp,
		Examples: [][2]string{
			{"quantmf impute holes.csv -o filled.csv", ""},
			{"quantmf impute holes.csv -o filled.csv -interval 0.9 -features errors.csv",
				"also writes filled.lower.csv, filled.upper.csv, and how well each feature is predicted"},
			{"quantmf impute counts.tsv -o filled.tsv -value median -json", "medians, and the check as JSON"},
			{"quantmf impute -model model.bqmf today.csv -o filled.csv -interval 0.9",
				"new samples, from a model that \"quantmf fit -method bqmf -missing\" has kept"},
		},
		Words: []string{"MATRIX"},
	}
	p.Run = func(words []string, s cli.Streams) error {
		f.matrix = words[0]
		if err := f.check(p); err != nil {
			return err
		}
		return f.run(s)
	}
	return p
}

// filling are the flags of what is filled in, checking those of how well.
func (f *imputeFlags) filling() []*cli.Flag {
	loss, epochs := f.options.Flag(option.Loss), f.options.Flag(option.Epochs)
	loss.Value, loss.Help = "auto|kl|frobenius", `the loss by which the model is chosen: the Kullback-Leibler
		divergence, for positive amounts and counts, or half the squared differences, for values of any sign.
		auto is frobenius where a value is negative and kl elsewhere; the summary says which (default auto)`
	epochs.Help = `the most epochs of a fit (default 60)`
	return []*cli.Flag{
		cli.Choice(&f.value, "value", "mean|median", `what to fill in: the mean of a value's distribution,
			for sums and squared errors, or its median, for absolute errors (default mean)`),
		cli.Number(&f.interval, probability, "interval", "P", `also write the ends of the intervals that hold
			a missing value with probability P, above 0 and below 1: with -o FILE.csv to FILE.lower.csv and
			FILE.upper.csv. Both have a value that is not missing as it is`),
		cli.Whole(&f.draws, 0, "draws", "M", `also write M filled matrices for multiple imputation: with -o
			FILE.csv to FILE.draw1.csv and so on. Each has missing values as the model draws them, together
			and with their noise, so that what M analyses differ by is how uncertain they are for what is
			missing. Twenty are enough for most; at most 1000 (default 0)`),
		loss,
		cli.Text(&f.discrete, "discrete", "auto|none|FEATURE,...", `features whose values are single ones,
			such as counts and ratings: medians, intervals and draws take only these. auto: those whose known
			values show it; none; or by name, and no others (default auto)`),
		cli.Whole(&f.rank, cli.AnyWhole, "k", "N", `the most components there may be: components that the
			data do not need fade (default 0: 50, or one fewer than features or samples)`),
		epochs,
	}
}

// probability says what that of an interval must be, "" where it is.
func probability(p float64) string {
	if p > 0 && p < 1 {
		return ""
	}
	return "must be above 0 and below 1"
}

func (f *imputeFlags) checking() []*cli.Flag {
	seed := f.options.Flag(option.Seed)
	seed.Help = "seed of the choice of hidden values (default 1)"
	return []*cli.Flag{
		cli.Whole(&f.checks, 0, "checks", "N", `the number of checks, each of which hides a tenth of the
			known values, of a small table about twenty: at random, several features of a sample together, or
			the ends of features, as values are missing; at most 10, 0 for none (default 5)`),
		cli.File(&f.features, "features", `a line for each feature: missing values, values checked, the mean
			error of the model and that of the feature's own mean, the share by which the first is less, the
			standard error of this share, and a verdict. better: the model predicts better; unsure: the
			difference is within 1.64 standard errors; mean: the feature's mean predicts as well; unchecked:
			no value was hidden. With -value median the errors are absolute, and medians take the place of
			means. Between columns stand commas where FILE ends in .csv, tabs elsewhere`),
		cli.Switch(&f.asJSON, "json", `the summary and the lines of all features as one JSON object on
			standard output`),
		seed,
	}
}

// imputeFlags are the flags of impute. fitFlags has what it shares with fit.
type imputeFlags struct {
	fitFlags
	kept          string // the file of a model, "" for a fit
	out, features string
	probabilities string  // a file
	interval      float64 // 0 for none
	draws         int     // matrices for multiple imputation
	value         string  // mean or median
	discrete      string  // auto, none or names
	checks        int
	asJSON        bool
}

func newImputeFlags() *imputeFlags {
	f := &imputeFlags{fitFlags: *newFitFlags(), value: "mean", discrete: "auto", checks: 5}
	f.method, f.rank = "bqmf", 0
	f.options.Set(option.Missing, "true")
	return f
}

func (f *imputeFlags) median() bool { return f.value == "median" }

const (
	mostChecks = 10
	mostDraws  = 1000
)

// check reports flags that exclude each other.
func (f *imputeFlags) check(p *cli.Program) error {
	for _, name := range []string{"k", "epochs", "loss", "discrete"} {
		if f.kept != "" && p.Flag(name).Given != "" {
			return cli.UsageError("-" + name + ": it says how a model is fitted, and that of -model is")
		}
	}
	if f.kept == "" && p.Flag("allow").Given != "" {
		return cli.UsageError("-allow: it says which features may differ from those of a -model")
	}
	if err := cmp.Or(cli.OnceStdin(f.kept, f.matrix), f.checkCategories()); err != nil {
		return err
	}
	switch {
	case f.checks > mostChecks:
		return cli.Usagef("-checks %d: must be at most %d", f.checks, mostChecks)
	case f.options.Loss != quantmf.KL && f.options.Loss != quantmf.Frobenius:
		return cli.UsageError("-loss: must be auto, kl or frobenius")
	case f.checks == 0 && f.features != "":
		return cli.UsageError("-features: there is nothing to say with -checks 0")
	case f.interval > 0 && f.out == "-":
		return cli.UsageError("-interval: needs an -o FILE, beside which its ends are written")
	case f.draws > mostDraws:
		return cli.Usagef("-draws %d: must be at most %d", f.draws, mostDraws)
	case f.draws > 0 && f.out == "-":
		return cli.UsageError("-draws: needs an -o FILE, beside which they are written")
	case f.draws > 0 && f.kept != "":
		return cli.UsageError("-draws: they are of the samples of a fit, and -model fills in other ones")
	case f.asJSON && (f.out == "-" || f.features == "-"):
		return cli.UsageError("-json: standard output is taken: give a file to -o and -features")
	}
	if err := cli.Takes("bqmf", f.rank, f.options.List()); err != nil {
		return err
	}
	if f.out == "" {
		return cli.UsageError(`say where to write: -o FILE, "-" is standard output`)
	}
	return cmp.Or(f.in.Writable(f.out), cli.Apart(f.files()...))
}

// matrices are the names of the outputs that are matrices: the filled one, the lower and the upper ends of
// intervals, the draws. files are those of all.
func (f *imputeFlags) matrices() []string {
	files := []string{f.out}
	if f.interval > 0 {
		files = append(files, besides(f.out, "lower"), besides(f.out, "upper"))
	}
	for draw := range f.draws {
		files = append(files, f.drawFile(draw))
	}
	return files
}

func (f *imputeFlags) files() []string { return append(f.matrices(), f.features, f.probabilities) }

// drawFile is the name of the file of a draw.
func (f *imputeFlags) drawFile(draw int) string { return besides(f.out, "draw"+strconv.Itoa(draw+1)) }

// besides returns the name of a file beside another: a.lower.csv.gz beside a.csv.gz.
func besides(file, what string) string {
	plain, packed := file, ""
	if strings.HasSuffix(strings.ToLower(file), ".gz") {
		plain, packed = file[:len(file)-3], file[len(file)-3:]
	}
	end := filepath.Ext(plain)
	return strings.TrimSuffix(plain, end) + "." + what + end + packed
}

// footprint is the most that is alive at once, in bytes, without -model: the matrix, and either the fit, or
// the model with the predictions and intervals that it gives; while checks are made one of each for every
// processor, and a copy of the matrix with hidden cells.
func (f *imputeFlags) footprint(d, n int) (float64, error) {
	need, err := quantmf.MemoryOf(quantmf.MethodBQMF, d, n, f.rank, f.options.List()...)
	if err != nil {
		return 0, err
	}
	numbers := float64(d) * float64(n)
	asked := float64(need.Model) + 8*6*numbers
	side := float64(max(1, min(runtime.GOMAXPROCS(0), f.checks)))
	return margin*max(8*1.25*numbers+float64(need.Model)+side*(8*numbers+max(float64(need.Fit), asked)),
		readShare*numbers) +
		64*float64(d+n) + buffers + programSize, nil
}

func (f *imputeFlags) run(s cli.Streams) error {
	began := time.Now()
	defer f.in.Hold()()
	tell := cli.NewProgress(f.in.Progress, s.Err)
	r := &imputation{imputeFlags: f, tell: tell}
	inputs, err := r.take(s)
	if err != nil {
		return err
	}
	t := r.table
	need, err := 0.0, error(nil)
	if f.kept == "" {
		need, err = f.footprint(t.X.Rows, t.X.Cols)
	} else {
		need = r.keptFootprint(t.X.Rows, t.X.Cols)
	}
	if err == nil {
		err = f.in.Allows(need, "this", "use fewer features or components (-k), or allow more")
	}
	if err != nil {
		return cli.Explain(err, t)
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	out := &cli.Outputs{Stdout: s.Out}
	defer out.Discard()
	if err := out.Open(inputs, f.files()...); err != nil {
		return err
	}
	r.inside = cmp.Or(f.interval, 0.9)
	if f.kept == "" {
		err = r.work(ctx)
	} else {
		err = r.workKept(ctx)
	}
	tell.End()
	if err != nil {
		return ended(ctx, err, t)
	}
	if err := r.write(out); err != nil {
		return err
	}
	if err := commit(ctx, out); err != nil {
		return err
	}
	for _, path := range f.matrices() {
		if err := f.in.Nameless(s.Err, path, t.NamedFeatures, t.NamedSamples); err != nil {
			return err
		}
	}
	if f.asJSON {
		if err := writeJSON(s.Out, r.object()); err != nil {
			return err
		}
	}
	return tell.Summary(r.summary(time.Since(began).Seconds()))
}

// imputation is an imputation under way.
type imputation struct {
	*imputeFlags
	table *table.Table
	tell  *cli.Progress

	model        *model
	filled       quantmf.Mat
	lower, upper quantmf.Mat // with -interval
	of           []feature   // how well each is predicted, nil without checks
	manner       manner      // how the values of the checks were hidden
	all          feature
	words        []string            // warnings
	inside       float64             // the probability of the intervals that are checked
	categories   *categories         // nil without words
	more         []quantmf.FitOption // that no text gives
}

// take reads the matrix, with -model after the model. It returns the identities of the files.
func (r *imputation) take(s cli.Streams) ([]os.FileInfo, error) {
	if r.kept != "" {
		return r.takeKept(s)
	}
	t, input, err := r.read(s)
	r.table = t
	if err == nil {
		err = r.numbered()
	}
	if err == nil {
		err = r.overrule()
	}
	return []os.FileInfo{input}, err
}

// overrule makes the option of -discrete.
func (r *imputation) overrule() error {
	if r.discrete == "auto" {
		return nil
	}
	rows, whole := []int{}, r.asRead()
	for name := range strings.SplitSeq(r.discrete, ",") {
		i := slices.Index(whole.Features, strings.TrimSpace(name))
		switch {
		case i >= 0 && r.categories != nil:
			rows = append(rows, r.categories.first[i])
		case i >= 0:
			rows = append(rows, i)
		case r.discrete != "none":
			return cli.Usagef("-discrete %q: there is no such feature", name)
		}
	}
	for i := range r.table.Features {
		if r.categories.has(i) {
			rows = append(rows, i)
		}
	}
	r.more = []quantmf.FitOption{quantmf.WithDiscrete(rows...)}
	return nil
}

// work makes the checks and the fit.
func (r *imputation) work(ctx context.Context) error {
	x := r.table.X
	r.tell.Begin("BQMF")
	m, err := quantmf.FitBQMF(ctx, x, r.rank,
		append(slices.Concat(r.options.List(), r.more), quantmf.WithProgress(r.tell.Report))...)
	if err != nil {
		return err
	}
	r.model = modelOf(m)
	r.words = warningsInWords(m.Warnings, r.table.Features)
	if err := r.check(ctx, m.Warnings); err != nil {
		return err
	}
	r.filled = m.Reconstruct()
	if r.median() {
		middle := m.Median()
		for i := range x.Rows {
			if !r.categories.has(i) {
				copy(r.filled.Row(i), middle.Row(i))
			}
		}
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

// write writes the files.
func (r *imputation) write(out *cli.Outputs) error {
	t := r.asRead()
	matrix := func(path string, m quantmf.Mat, ends bool) error {
		return out.Write(path, func(w io.Writer) error {
			if c := r.categories; c != nil {
				m = c.worded(m, ends)
			}
			return table.WriteWords(w, r.in.Place(path), "feature", t.Features, t.Samples, m, t.Words)
		})
	}
	err := matrix(r.out, r.filled, false)
	if err == nil && r.interval > 0 {
		err = cmp.Or(matrix(besides(r.out, "lower"), r.lower, true),
			matrix(besides(r.out, "upper"), r.upper, true))
	}
	seed := uint64(r.options.Seed) << 10 // draws of another -seed have nothing in common with these
	for draw := 0; err == nil && draw < r.draws; draw++ {
		m := r.model.Model.(*quantmf.BQMF).SampleCategories(seed+uint64(draw), r.categories.groups()...)
		keep(m, r.table.X)
		err = matrix(r.drawFile(draw), m, false)
	}
	if err != nil {
		return err
	}
	if r.probabilities != "" {
		r.categories.sumToOne(r.filled)
		names, p := r.categories.probable(r.filled)
		if err := out.Write(r.probabilities, func(w io.Writer) error {
			return table.Write(w, r.in.Place(r.probabilities), "feature", names, t.Samples, p)
		}); err != nil {
			return err
		}
	}
	if r.features == "" {
		return nil
	}
	return out.Write(r.features, func(w io.Writer) error {
		c := csv.NewWriter(w)
		if !strings.HasSuffix(strings.ToLower(r.features), ".csv") {
			c.Comma = '\t'
		}
		c.Write([]string{"feature", "missing", "checked", "error", "error_of_" + r.value, "less", "stderr",
			"verdict"})
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
		Matrix       string           `json:"matrix"`
		Model        string           `json:"model,omitempty"`
		Missing      int              `json:"missing"`
		Loss         string           `json:"loss"`
		LossReason   string           `json:"loss_reason,omitempty"`
		Components   int              `json:"components"`
		Value        string           `json:"value"`
		Checked      int              `json:"checked"`
		Hidden       string           `json:"hidden"`
		Error        *float64         `json:"error,omitempty"`
		Own          *float64         `json:"error_of_own,omitempty"`
		Less         *float64         `json:"less,omitempty"`
		StdErr       *float64         `json:"stderr,omitempty"`
		Absolute     *float64         `json:"absolute_error,omitempty"`
		AbsoluteOwn  *float64         `json:"absolute_error_of_own,omitempty"`
		Interval     float64          `json:"interval"`
		IntervalHeld *float64         `json:"interval_held,omitempty"`
		Warnings     []string         `json:"warnings"`
		Categories   []categoryErrors `json:"categories,omitempty"`
		Features     []featureErrors  `json:"features"`
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
	loss, _ := r.fitFlags.options.Loss.MarshalText() // which has no error
	o := imputeObject{Matrix: r.name(), Model: r.kept, Missing: missing(x), Loss: string(loss),
		LossReason: r.losses, Components: r.model.Rank(), Value: r.value, Checked: r.all.hidden,
		Hidden:   r.manner.String(),
		Interval: r.inside, Categories: r.categories.object(r.of),
		Warnings: append([]string{}, r.words...)}
	if r.all.hidden > 0 {
		model, own := r.all.errors(r.median())
		share, stdErr := overall(r.of, r.median())
		n := float64(r.all.hidden)
		o.Error, o.Own, o.Less, o.StdErr = &model, &own, &share, &stdErr
		if r.spread() {
			abs, ownAbs, held := r.all.abs/n, r.all.ownAbs/n, r.all.held/n
			o.Absolute, o.AbsoluteOwn, o.IntervalHeld = &abs, &ownAbs, &held
		}
	}
	for i, name := range r.table.Features {
		e := featureErrors{Name: name, Missing: missingIn(x.Row(i)), Verdict: "unchecked"}
		if r.of != nil && r.of[i].hidden > 0 {
			c := &r.of[i]
			model, own := c.errors(r.median())
			share, stdErr := c.less(r.median())
			e.Checked, e.Error, e.Own, e.Less, e.StdErr, e.Verdict = c.hidden, &model, &own, &share, &stdErr,
				c.verdict(r.median())
		}
		o.Features = append(o.Features, e)
	}
	return o
}

// strayed says what to make of intervals of a nominal percent, when the share of hidden values that they held
// is far from it. tried is the number of hidden values.
func strayed(percent, share float64, tried int) string {
	values := table.Counted(tried, "value")
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
func (r *imputation) summary(seconds float64) string {
	var s strings.Builder
	line := linesOf(&s)
	x := r.table.X
	whole := r.asRead()
	line("Matrix", "%s: %s × %s%s", r.name(), table.Counted(whole.X.Rows, "feature"),
		table.Counted(x.Cols, "sample"), r.naming(r.table, missing(whole.X)))
	if r.categories != nil {
		line("Categories", "%s", r.categories)
	}
	if r.losses != "" {
		line("Loss", "%s", r.losses)
	}
	from := ""
	if r.kept != "" {
		from = ", kept in " + r.kept
	}
	line("Model", "%s of %s%s", r.model.kind(), table.Counted(r.model.Rank(), "component"), from)
	what, by := r.value, "what the model says of it"
	if r.spread() {
		by = "the " + what + " of its distribution"
	}
	line("Filled", "%s, each by %s", table.Counted(missing(whole.X), "value"), by)
	switch {
	case r.checks == 0:
	case r.all.hidden == 0 && r.kept != "":
		line("Check", "no value could be hidden: every sample must keep one")
	case r.all.hidden == 0:
		line("Check", "no value could be hidden: every row and column must keep two values")
	default:
		n := float64(r.all.hidden)
		share, stdErr := overall(r.of, r.median())
		if r.kept == "" {
			line("Check", "predictions of %s that %s did not see%s",
				table.Counted(r.all.hidden, "known value"), table.Counted(r.checks, "further fit"),
				r.manner.words())
		} else {
			line("Check", "predictions of %s that were hidden; the features' own %ss are those of the "+
				"samples of the fit", table.Counted(r.all.hidden, "known value"), what)
		}
		line("", "mean %s %.4g; of the features' own means %.4g", account.LossName(r.fitFlags.options.Loss),
			r.all.loss/n,
			r.all.own/n)
		if r.spread() {
			line("", "mean absolute error of medians %.4g; of the features' own medians %.4g", r.all.abs/n,
				r.all.ownAbs/n)
		}
		line("", "predictions have %s", lessError(share, stdErr, what))
		if r.spread() {
			line("Intervals", "%.1f %% of the hidden values lie in their %g %% intervals", 100*r.all.held/n,
				100*r.inside)
		}
		r.wordsRight(line)
		line("Features", "%s", r.told(what))
		if share <= 0 {
			line("Warning", "the features' own %ss predict as well: this table has nothing that a model of "+
				"few components can use", what)
		}
		if off := r.all.held/n - r.inside; r.spread() && math.Abs(off) > 0.05+
			2*math.Sqrt(r.inside*(1-r.inside)/n) {
			line("Warning", "%s", strayed(100*r.inside, 100*r.all.held/n, r.all.hidden))
		}
	}
	for _, w := range r.words {
		line("Warning", "%s", w)
	}
	line("Time", "%s", cli.Duration(seconds))
	matrix := "the matrix, filled in"
	if r.in.Transpose {
		matrix += ", features in rows"
	}
	written(line, r.out, matrix)
	if r.interval > 0 {
		for _, end := range []string{"lower", "upper"} {
			written(line, besides(r.out, end), fmt.Sprintf("the %s ends of the %g %% intervals", end,
				100*r.interval))
		}
	}
	if r.draws > 0 { // one line for all
		written(line, besides(r.out, "draw*"), table.Counted(r.draws, "draw")+" of what is missing")
	}
	written(line, r.features, "how well each feature is predicted")
	written(line, r.probabilities, "the probability of each word")
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
		v := r.of[i].verdict(r.median())
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
