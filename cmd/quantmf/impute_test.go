package main

// This file tests "quantmf impute": what is filled in, that hidden values are hidden, what
// is said of errors against sums made here, and how many values intervals hold.

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// bent returns d × n values of rank 2 with noise, every row on a power of its own, the last
// two of them nothing but noise; and a copy with a tenth missing.
func bent(d, n int) (whole, given quantmf.Mat) {
	src := rand.New(rand.NewPCG(3, uint64(d)))
	v := quantmf.NewMat(2, n)
	for i := range v.Data {
		v.Data[i] = src.NormFloat64()
	}
	whole = quantmf.NewMat(d, n)
	for i := range d {
		a, b := src.NormFloat64(), src.NormFloat64()
		if i >= d-2 {
			a, b = 0, 0
		}
		for j := range n {
			w := a*v.At(0, j) + b*v.At(1, j) + 0.3*src.NormFloat64()
			whole.Set(i, j, math.Exp(w*float64(1+i%3)/2))
		}
	}
	return whole, lacking(whole, func(_, _ int) bool { return src.Float64() < 0.1 })
}

// lacking is a copy of x that lacks some values.
func lacking(x quantmf.Mat, lacks func(i, j int) bool) quantmf.Mat {
	x = x.Clone()
	for i := range x.Rows {
		for j := range x.Cols {
			if lacks(i, j) {
				x.Set(i, j, math.NaN())
			}
		}
	}
	return x
}

// heldIn is the share of the values that given lacks of whole which lie in intervals, and how many there are.
func heldIn(whole, given, lower, upper quantmf.Mat) (share, count float64) {
	for k, v := range given.Data {
		if v != v {
			count++
			if truth := whole.Data[k]; truth >= lower.Data[k] && truth <= upper.Data[k] {
				share++
			}
		}
	}
	return share / count, count
}

func writeTable(t *testing.T, path string, m quantmf.Mat) {
	t.Helper()
	var b bytes.Buffer
	OK(t, table.Write(&b, path, "feature", table.Numbered("f", m.Rows), table.Numbered("p", m.Cols),
		m))
	OK(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// TestImpute: what is there stays to the bit, what is missing is what the package says of
// it, near the truth, and within the ends as often as was asked.
func TestImpute(t *testing.T) {
	t.Chdir(t.TempDir())
	whole, given := bent(40, 60)
	writeTable(t, "holes.csv", given)
	m := Must(quantmf.FitBQMF(t.Context(), given, 0, quantmf.WithMissingValues()))(t)
	lo, hi, err := m.Interval(0.8)
	OK(t, err)
	_, said := quiet(t, 0, "impute holes.csv -o full.csv.gz -interval 0.8 -checks 0")
	full, lower, upper := read(t, "full.csv.gz"), read(t, "full.lower.csv.gz"), read(t, "full.upper.csv.gz")
	mean := m.Reconstruct()
	off, own := 0.0, 0.0
	for i := range given.Rows {
		average, seen := 0.0, 0.0
		for _, v := range given.Row(i) {
			if v == v {
				average += v
				seen++
			}
		}
		for j, v := range given.Row(i) {
			a, b, c := full.X.At(i, j), lower.X.At(i, j), upper.X.At(i, j)
			if v == v {
				if a != v || b != v || c != v {
					t.Fatalf("%d, %d: %g became %g, %g, %g", i, j, v, a, b, c)
				}
				continue
			}
			if a != mean.At(i, j) || b != lo.At(i, j) || c != hi.At(i, j) {
				t.Fatalf("%d, %d: filled with %g, %g, %g, not what the package says", i, j, a, b, c)
			}
			truth := whole.At(i, j)
			off += math.Abs(math.Log(truth / a))
			own += math.Abs(math.Log(truth / (average / seen)))
		}
	}
	if off > 0.55*own {
		t.Errorf("filled values are off by %g, means by %g", off, own)
	}
	share, count := heldIn(whole, given, lower.X, upper.X)
	if math.Abs(share-0.8) > 0.08 { // three standard errors
		t.Errorf("80 %% intervals hold %.3f of %g", share, count)
	}
	Has(t, said, fmt.Sprintf("Filled        %.0f values", count),
		"Written       full.lower.csv.gz (the lower ends of the 80 % intervals)")
	Lacks(t, said, "Check ")
	quiet(t, 0, "impute holes.csv -value median -o middle.npy -checks 0")
	middle, median := read(t, "middle.npy"), m.Median()
	keep(median, given)
	if !same(middle.X, median) {
		t.Error("not the package's median")
	}
}

// masked are copies of x, each without the cells that one of the repeats of HeldOut hides.
func masked(t *testing.T, x quantmf.Mat, repeats int, seed uint64) (all []quantmf.Mat) {
	t.Helper()
	var mutex sync.Mutex
	Must(quantmf.HeldOut(t.Context(), x,
		func(ctx context.Context, x quantmf.Rows, _ int, options ...quantmf.FitOption) (*quantmf.BQMF,
			error) {
			d, n := x.Dims()
			given := quantmf.NewMat(d, n)
			for i := range d {
				if err := x.ReadRow(given.Row(i), i); err != nil {
					return nil, err
				}
			}
			mutex.Lock()
			all = append(all, given)
			mutex.Unlock()
			return quantmf.FitBQMF(ctx, x, 1, append(options, quantmf.WithEpochs(1))...)
		}, []quantmf.Trial{{Rank: 1}}, quantmf.Masks{Repeats: repeats, Seed: seed}))(t)
	return all
}

// errorsOf are the errors of one feature, made here: a pair for each hidden value, of the model and of the
// feature's own mean or median.
type errorsOf struct{ loss, abs [][2]float64 }

// predicted adds the errors of a model that was fitted to given, and the number of hidden values that lie in
// the 90 % intervals.
func predicted(t *testing.T, m *quantmf.BQMF, x, given quantmf.Mat, frobenius bool,
	of []errorsOf) (held float64) {
	t.Helper()
	mean, median := m.Reconstruct(), m.Median()
	lo, hi, err := m.Interval(0.9)
	OK(t, err)
	far := func(x, t float64) float64 {
		if frobenius {
			return (x - t) * (x - t) / 2
		}
		return x*(math.Log(x)-math.Log(t)) - (x - t)
	}
	for i := range x.Rows {
		var seen []float64
		sum := 0.0
		for _, v := range given.Row(i) {
			if !math.IsNaN(v) {
				seen = append(seen, v)
				sum += v
			}
		}
		slices.Sort(seen)
		average, middle := sum/float64(len(seen)), (seen[(len(seen)-1)/2]+seen[len(seen)/2])/2
		for j, v := range x.Row(i) {
			if math.IsNaN(v) || !math.IsNaN(given.At(i, j)) {
				continue
			}
			of[i].loss = append(of[i].loss, [2]float64{far(v, mean.At(i, j)), far(v, average)})
			of[i].abs = append(of[i].abs, [2]float64{math.Abs(v - median.At(i, j)), math.Abs(v - middle)})
			if lo.At(i, j) <= v && v <= hi.At(i, j) {
				held++
			}
		}
	}
	return held
}

// TestImputeErrors: what is said of the errors of features is what a loop over the same hidden values makes
// of the package's models, with every feature's mean and median taken here; and the flags of the fit reach
// it. TestImputeSays has what is made of these errors.
func TestImputeErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	_, x := bent(30, 40)
	writeTable(t, "holes.tsv", x)
	for _, c := range []struct {
		args    string
		seed    uint64
		options []quantmf.FitOption
		better  int // of the 28 features that are not noise, at least
	}{
		{"-seed 5", 5, []quantmf.FitOption{quantmf.WithSeed(5), quantmf.WithLoss(quantmf.KL)}, 18},
		{"-seed 9 -epochs 3 -loss frobenius -workers 1", 9, []quantmf.FitOption{quantmf.WithSeed(9),
			quantmf.WithEpochs(3), quantmf.WithLoss(quantmf.Frobenius)}, 0},
	} {
		of, held := make([]errorsOf, x.Rows), 0.0
		for _, given := range masked(t, x, 3, c.seed) {
			m := Must(quantmf.FitBQMF(t.Context(), given, 0,
				append(c.options, quantmf.WithMissingValues())...))(t)
			held += predicted(t, m, x, given, c.better == 0, of)
		}
		for _, value := range []string{"mean", "median"} {
			text, _ := quiet(t, 0, "impute holes.tsv -o full.tsv -checks 3 -json -features "+
				"features.tsv -value "+value+" "+c.args)
			o := decoded[imputeObject](t, text)
			better, all := 0, 0.0
			for i, f := range o.Features {
				pairs := map[string][][2]float64{"mean": of[i].loss, "median": of[i].abs}[value]
				n, model, own := float64(len(pairs)), 0.0, 0.0
				for _, p := range pairs {
					model, own = model+p[0]/n, own+p[1]/n
				}
				spread := 0.0
				for _, p := range pairs {
					off := p[1] - p[0] - (own - model)
					spread += off * off
				}
				all += n
				if f.Checked != len(pairs) || !near(f.Error, model) || !near(f.Own, own) ||
					!near(f.StdErr, math.Sqrt(spread/(n-1)/n)/own) {
					t.Errorf("%s, %s, feature %d: %v", c.args, value, i, f)
				}
				if f.Verdict == "better" && i < 28 {
					better++
				} else if f.Verdict == "better" && c.better > 0 {
					t.Errorf("%s: feature %d is noise, and better predicted: %g ± %g", value, i, *f.Less,
						*f.StdErr)
				}
			}
			if better < c.better {
				t.Errorf("%s, %s: %d are better", c.args, value, better)
			}
			// An interval's end may lie on a value, which then counts by a part.
			Near(t, *o.IntervalHeld, held/all, 0.01, "what intervals hold")
		}
	}
}

func near(a *float64, b float64) bool { return a != nil && math.Abs(*a-b) <= 1e-9*math.Abs(b) }

// TestImputeSays: from sums made by hand the verdicts, the table of features, of which the first gains half
// of the error ± √(0.02/3/4), the share of all by Cochran's formula (1977, 2.39), and the lines of the
// summary.
func TestImputeSays(t *testing.T) {
	t.Chdir(t.TempDir())
	gains := [][]float64{ // of own - loss, by feature; own is 1 a value
		{0.5, 0.4, 0.6, 0.5}, {0.9, -0.7, 0.3, -0.2}, {-0.5, -0.1, -0.2}, {}, {0.5, 0.6}, {-1, -1}, {-1, -1},
		{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1},
	}
	verdicts := []string{"better", "unsure", "mean", "unchecked", "unsure", "mean", "mean", "mean", "mean",
		"mean", "mean", "mean", "mean", "mean"}
	for value, listed := range map[string]string{"mean": "features.CSV", "median": "features.txt"} {
		f := newImputeFlags()
		Must(f.program().Parse("impute",
			[]string{"x", "-o", "y.tsv", "-value", value, "-features", listed,
				"-interval", ".8"}))(t)
		r := &imputation{imputeFlags: f,
			table: &table.Table{X: quantmf.NewMat(len(gains), 4), Features: table.Numbered("f", len(gains)),
				Samples: table.Numbered("p", 4)}, of: make([]feature, len(gains)), inside: 0.8}
		r.table.X.Set(1, 2, math.NaN())
		r.filled, r.lower, r.upper = quantmf.NewMat(len(gains), 4), quantmf.NewMat(len(gains), 4),
			quantmf.NewMat(len(gains), 4)
		r.lower.Set(1, 2, -1)
		r.upper.Set(1, 2, 1)
		r.model = modelOf(&quantmf.BQMF{Factorisation: quantmf.Factorisation{U: quantmf.NewMat(len(gains),
			3)}})
		for i, all := range gains {
			c := &r.of[i]
			for _, g := range all {
				c.hidden++
				c.square += g * g
				c.held += 0.75
				a, b := &c.loss, &c.own
				if value == "median" {
					a, b = &c.abs, &c.ownAbs
				}
				*a += 1 - g
				*b++
			}
			r.all.add(*c)
		}
		n := float64(r.all.hidden)
		o := r.object()
		for i, all := range gains {
			e := o.Features[i]
			if e.Name != "f"+strconv.Itoa(i+1) || e.Checked != len(all) || e.Verdict != verdicts[i] ||
				(e.Missing == 1) != (i == 1) || (e.Less == nil) != (len(all) == 0) {
				t.Errorf("-value %s: %+v", value, e)
			}
		}
		if o.Value != value || o.Checked != int(n) || o.Missing != 1 || o.Components != 3 ||
			o.Interval != 0.8 || *o.IntervalHeld != 0.75 ||
			fmt.Sprintf("%.4f, %.4f ± %.4f", *o.Error, *o.Less, *o.StdErr) != "1.4968, -0.4968 ± 0.1983" ||
			*o.AbsoluteOwn != map[string]float64{"mean": 0, "median": 1}[value] {
			t.Errorf("%+v", o)
		}
		said := r.summary(75)
		names := "f3, f6, f7, f8, f9, f10, f11, f12 and 2 more (-features FILE lists them)"
		Has(t, said, "Model         BQMF of 3 components", "Filled        1 value, each by the "+value+
			" of its distribution",
			"Check         predictions of "+strconv.Itoa(int(n))+
				" known values that 5 further fits did not see",
			"predictions have 50 ± 20 % more error than the features' own "+value+"s\n",
			"Intervals     75.0 % of the hidden values lie in their 80 % intervals",
			"Features      1 of 14 features are predicted better than by their own "+value+
				"; 2 are unsure; 1 could not be checked; not better: "+names,
			"Warning       the features' own "+value+"s predict as well", "Time          1 min 15 s",
			"Written       y.tsv (the matrix, filled in)",
			"Written       y.upper.tsv (the upper ends of the 80 % intervals)", "Written       "+listed+
				" (how well each feature is predicted)")
		Lacks(t, said, "too small to check") // 0.05 off, and chance alone may be 0.13
		r.all.held = n * (0.8 - 0.06 - 2*math.Sqrt(0.8*0.2/n))
		Has(t, r.summary(75), "the table is too small to check its intervals")
		out := &cli.Outputs{}
		OK(t, out.Open(nil, f.files()...))
		OK(t, r.write(out))
		OK(t, out.Commit())
		if lower, upper := read(t, "y.lower.tsv"), read(t, "y.upper.tsv"); lower.X.At(1, 2) != -1 ||
			upper.X.At(1, 2) != 1 {
			t.Errorf("from %v to %v", lower.X.At(1, 2), upper.X.At(1, 2))
		}
		lines := csv.NewReader(strings.NewReader(textOf(t, listed)))
		if value == "median" {
			lines.Comma = '\t'
		}
		rows, err := lines.ReadAll()
		if err != nil || len(rows) != 15 ||
			strings.Join(rows[0], " ") != "feature missing checked error error_of_"+value+
				" less stderr verdict" ||
			strings.Join(rows[1], " ") != "f1 0 4 0.5 1 0.5 0.0408248 better" ||
			strings.Join(rows[4], " ") != "f4 0 0     unchecked" ||
			strings.Join(rows[6], " ") != "f6 0 2 2 1 -1 0 mean" {
			t.Errorf("%v: %v", err, rows)
		}
		r.of = r.of[:1]
		if got, want := r.told(value), "1 of 1 features are predicted better than by their own "+
			value; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		r.kept = "m.bqmf"
		Has(t, r.summary(75), "Model         BQMF of 3 components, kept in m.bqmf")
		r.kept = ""
		r.all = feature{}
		Has(t, r.summary(75),
			"Check         no value could be hidden: every row and column must keep two values\nTime ")
	}
}

// TestWithin: a value that takes the probabilities from below to upTo counts by the part of them that an
// interval has; one that takes none counts where its probability lies in it.
func TestWithin(t *testing.T) {
	for _, c := range []struct{ below, upTo, p, want float64 }{
		{0.05, 0.05, 0.9, 1}, {0.95, 0.95, 0.9, 1}, {0.04, 0.04, 0.9, 0}, {0.96, 0.96, 0.9, 0},
		{0.5, 0.5, 0.1, 1},
		{0, 0.1, 0.5, 0}, {0, 0.5, 0.5, 0.5}, {0.5, 1, 0.5, 0.5}, {0, 1, 0.5, 0.5}, {0.3, 0.6, 0.5, 1},
		{0.2, 0.3, 0.5, 0.5}, {0.8, 1, 0.5, 0},
	} {
		Near(t, within(c.below, c.upTo, c.p), c.want, 1e-12, "%v", c)
	}
}

// TestImputeIntervals: on expression data, rows of values that come once, intervals hold as
// many hidden values as they say.
func TestImputeIntervals(t *testing.T) {
	if testing.Short() {
		t.Skip("fits whole data sets")
	}
	whole := read(t, filepath.Join("..", "..", "testdata", "laml-exp.tsv.gz"))
	t.Chdir(t.TempDir())
	var rows []int
	for i := 0; i < whole.X.Rows && len(rows) < 100; i += 4 {
		row := slices.Clone(whole.X.Row(i))
		slices.Sort(row)
		if len(slices.Compact(row)) > whole.X.Cols*9/10 {
			rows = append(rows, i)
		}
	}
	if len(rows) < 60 {
		t.Fatalf("%d rows", len(rows))
	}
	x := whole.SelectOr(rows, nil).X
	src := rand.New(rand.NewPCG(8, 8))
	given := lacking(x, func(_, _ int) bool { return src.Float64() < 0.1 })
	writeTable(t, "holes.npz", given)
	shares := []float64{0.5, 0.95}
	if os.Getenv("QUANTMF_LONG") != "" {
		shares = append(shares, 0.8)
	}
	for _, p := range shares {
		quiet(t, 0, "impute holes.npz -o full.npz -interval "+fmt.Sprint(p)+" -checks 0")
		held, count := heldIn(x, given, read(t, "full.lower.npz").X, read(t, "full.upper.npz").X)
		t.Logf("%g %% intervals hold %.1f %% of %g", 100*p, 100*held, count)
		if math.Abs(held-p) > 0.04 {
			t.Errorf("%g %% intervals hold %.1f %%", 100*p, 100*held)
		}
	}
}

func TestImputeUsage(t *testing.T) {
	folder(t)
	for _, c := range []saying{
		{"impute matrix.tsv", 2, "say where to write"},
		{"impute none.tsv -o f.tsv -interval 1", 2, "-interval 1: must be above 0 and below 1"},
		{"impute none.tsv -o - -interval .9", 2, "-interval: needs an -o FILE"},
		{"impute none.tsv -o f.tsv -checks 11", 2, "-checks 11: must be at most 10"},
		{"impute none.tsv -o f.tsv -checks 0 -features g.tsv", 2, "-features: there is nothing to say"},
		{"impute none.tsv -o f.tsv -value mode", 2, "-value mode: must be one of mean, median"},
		{"impute none.tsv -o f.tsv -loss 1.5", 2, "-loss: must be auto, kl or frobenius"},
		{"impute none.tsv -o - -json", 2, "-json: standard output is taken"},
		{"impute none.tsv -o f.tsv -features - -json", 2, "-json: standard output is taken"},
		{"impute none.tsv -o f.tsv", 3, "none.tsv"},
		{"impute matrix.tsv -o f.tsv -k -1", 2, "-k -1: must be at least 0"},
		{"impute matrix.tsv -o f.tsv -features ./f.tsv", 2, "two outputs to the same place"},
		{"impute matrix.tsv -o matrix.tsv", 2, "is read itself"},
		{"impute matrix.tsv -o f.tsv -max-memory 1MB", 3, "-max-memory allows"},
	} {
		says(t, c.code, c.args, c.says)
		if _, err := os.Stat("f.tsv"); err == nil {
			t.Errorf("%s: a file was written", c.args)
		}
	}
	for of, want := range map[string]string{"a.csv": "a.lower.csv", "b.tsv.gz": "b.lower.tsv.gz",
		"d/c": "d/c.lower", "x.y/z.NPZ": "x.y/z.lower.NPZ"} {
		Equal(t, besides(of, "lower"), want, "%s", of)
	}
	// A table of no structure, and one that is whole.
	src := rand.New(rand.NewPCG(1, 1))
	noise := quantmf.NewMat(12, 40)
	for i := range noise.Data {
		noise.Data[i] = 1 + src.Float64()
	}
	writeTable(t, "noise.tsv", noise)
	text, said := quiet(t, 0, "impute noise.tsv -o f.tsv -json")
	Has(t, said, "Filled        0 values")
	Lacks(t, said, "unsure; not better: ;")
	if o := decoded[imputeObject](t, text); math.Abs(*o.Less) > 0.1 {
		t.Errorf("noise is predicted: %v", *o.Less)
	}
	Equal(t, run("impute noise.tsv -checks 0 -o f.tsv -json", nil, broken{}, io.Discard), cli.Failed,
		"exit code")
}

// TestLessError: no share of error is said to be 0 ± 0, nor less than none.
func TestLessError(t *testing.T) {
	for _, c := range []struct {
		share, stdErr float64
		want          string
	}{
		{0.4, 0.05, "40 ± 5 % less error than the features' own means"},
		{0, 0, "as much error as the features' own means"},
		{-0.004, 0.001, "as much error as the features' own means"},
		{0.004, 0.021, "0 ± 2 % less error than the features' own means"},
		{-0.46, 0.26, "46 ± 26 % more error than the features' own means"},
	} {
		Equal(t, lessError(c.share, c.stdErr, "mean"), c.want, "%g ± %g", c.share, c.stdErr)
	}
}

// TestImputeLittle: what is said of a table of nine cells has no number of sixteen digits, and
// no name that speaks to the terminal.
func TestImputeLittle(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "little.tsv", "f\ta\tb\tc\nx\x1b[2J\t1\t2\tNA\ny\x1b[2J\t2\t4\t6\nz\x1b[2J\t3\t6\t9\n")
	_, said := quiet(t, 0, "impute little.tsv -o full.tsv")
	if m := regexp.MustCompile(`\d\.\d{7,}|0 ± 0 %|\x1b`).FindString(said); m != "" ||
		!strings.Contains(said, "no component was found") {
		t.Errorf("%q in %s", m, said)
	}
}

// TestStrayedIntervals: intervals that hold too few or too many values say what to make of them, and of a
// table that is too small to tell that is said. TestImputeSays has when.
func TestStrayedIntervals(t *testing.T) {
	for _, c := range []struct {
		percent, share float64
		tried          int
		want           string
	}{
		{90, 29, 12, "the table is too small to check its intervals: of no more than 12 values 29 % lay in " +
			"their 90 % intervals. Take the intervals for a rough guess"},
		{90, 71.23, 5000, "the 90 % intervals are too narrow on this table: they held 71.2 % of 5000 " +
			"values. Take them for 71 % intervals"},
		{50, 61.5, 400, "the 50 % intervals are wider than they need be on this table: they held 61.5 % of " +
			"400 values"},
	} {
		if got := strayed(c.percent, c.share, c.tried); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
