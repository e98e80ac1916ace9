package main

// This file tests what is said of new samples by a model that was kept: "quantmf impute -model" and "quantmf
// score -by-sample", against the package.

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// keptModels writes models of the first samples of a table, and the others with holes: new.csv has features
// in another order than the fit. It returns these, in the order of the fit, and whole.
func keptModels(t *testing.T) (whole, given quantmf.Mat) {
	t.Helper()
	t.Chdir(t.TempDir())
	all, holes := bent(20, 60)
	first := all
	first.Cols = 45
	writeTable(t, "old.csv", first)
	whole, given = quantmf.NewMat(20, 15), quantmf.NewMat(20, 15)
	for i := range 20 {
		copy(whole.Row(i), all.Row(i)[45:])
		copy(given.Row(i), holes.Row(i)[45:])
	}
	writeTable(t, "straight.csv", given)
	lines := strings.Split(strings.TrimSpace(textOf(t, "straight.csv")), "\n")
	slices.Reverse(lines[1:])
	writeText(t, "new.csv", strings.Join(lines, "\n")+"\n")
	for _, method := range []string{"bqmf", "nmf", "qmf", "qmfq"} {
		quiet(t, 0, "fit -compare none -k 3 -epochs 4 -method "+method+" old.csv -o m."+
			method)
	}
	quiet(t, 0, "fit -compare none -k 3 -epochs 4 -method bqmf -log1p old.csv -o m.log")
	return whole, given
}

// TestImputeKept: what is there stays to the bit, what is missing is what the package predicts, with its
// intervals, for every model, in the order of the model's features: of a BQMF one that has learnt from the
// samples, which predicts them better, but for a sample alone.
func TestImputeKept(t *testing.T) {
	if testing.Short() {
		t.Skip("fits five models")
	}
	whole, given := keptModels(t)
	for _, path := range []string{"m.bqmf", "m.nmf", "m.qmf", "m.qmfq", "m.log"} {
		m := keptModel(t, path)
		x := m.asFitted(given)
		b, is := m.Model.(*quantmf.BQMF)
		if is {
			b = Must(b.Updated(t.Context(), x))(t)
			m.Model = b
		}
		want := Must(m.Predict(t.Context(), x))(t)
		keep(want, x)
		quiet(t, 0, "impute -model "+path+" new.csv -o full.csv")
		full := read(t, "full.csv")
		if !same(full.X, want) || full.Features[0] != "f1" {
			t.Errorf("%s: filled with other values than the package predicts", path)
		}
		if !is {
			for _, flag := range []string{"-interval 0.9", "-value median"} {
				says(t, cli.Usage, "impute -model "+path+" new.csv -o x.csv "+
					flag, "only a model of -method bqmf")
			}
			continue
		}
		lo, hi, err := b.PredictInterval(t.Context(), x, 0.8)
		OK(t, err)
		keep(lo, x)
		keep(hi, x)
		quiet(t, 0, "impute -workers 1 -value median -checks 0 -interval 0.8 -model "+path+
			" new.csv -o full.csv")
		middle, lower, upper := read(t, "full.csv"), read(t, "full.lower.csv"), read(t, "full.upper.csv")
		if !same(lower.X, lo) || !same(upper.X, hi) {
			t.Errorf("%s: other intervals than those of the package", path)
		}
		for i, v := range middle.X.Data {
			if !(v >= lo.Data[i] && v <= hi.Data[i]) {
				t.Errorf("%s: the median %g is not from %g to %g", path, v, lo.Data[i], hi.Data[i])
			}
		}
	}
	alone := given.Clone()
	alone.Cols = 1
	writeTable(t, "alone.csv", alone)
	_, said := quiet(t, 0, "impute -model m.bqmf alone.csv -o one.csv")
	quiet(t, 0, "impute -model m.bqmf new.csv -o full.csv")
	one, full := read(t, "one.csv").X, read(t, "full.csv").X
	before := Must(keptModel(t, "m.bqmf").Predict(t.Context(), given))(t)
	for i := range one.Rows {
		if v := alone.At(i, 0); v != v && one.At(i, 0) != before.At(i, 0) {
			t.Errorf("alone %g, by the model as it is %g", one.At(i, 0), before.At(i, 0))
		}
	}
	Has(t, said, "kept in m.bqmf")
	off, unlearnt, own := 0.0, 0.0, 0.0
	for i := range given.Rows {
		for j, v := range given.Row(i) {
			if v != v {
				off += math.Abs(math.Log(full.At(i, j) / whole.At(i, j)))
				unlearnt += math.Abs(math.Log(before.At(i, j) / whole.At(i, j)))
				own += math.Abs(math.Log(meanOf(whole.Row(i)) / whole.At(i, j)))
			}
		}
	}
	if off > 0.6*own || off > unlearnt {
		t.Errorf("off by %g, without learning by %g, means by %g", off, unlearnt, own)
	}
}

// TestImputeKeptChecks: the check hides values and says how well they are predicted: a model of the same kind
// of samples better than means, intervals as often as they say; one value a sample is not hidden.
func TestImputeKeptChecks(t *testing.T) {
	keptModels(t)
	said, _ := quiet(t, 0, "impute -json -checks 10 -model m.bqmf new.csv -o full.csv")
	o := decoded[imputeObject](t, said)
	if o.Model != "m.bqmf" || o.Checked < 150 || o.Checked > 400 || *o.Less < 0.3 ||
		math.Abs(*o.IntervalHeld-0.9) > 0.07 || len(o.Features) != 20 {
		t.Errorf("%s", said)
	}
	said, _ = quiet(t, 0, "impute -json -model m.nmf new.csv -o full.csv")
	Lacks(t, said, "interval_held", "absolute_error") // an NMF has no intervals
	writeText(t, "thin.csv", "feature,a\nf1,2\n")
	_, words := quiet(t, 0, "impute -model m.bqmf -allow missing thin.csv -o thin.out.csv")
	if !strings.Contains(words, "every sample must keep one") || len(read(t, "thin.out.csv").Features) != 20 {
		t.Error(words)
	}
	for args, want := range map[string]string{
		"-k 3 -model m.bqmf new.csv":         "-k: it says how a model is fitted",
		"-epochs 3 -model m.bqmf new.csv":    "-epochs: it says how a model is fitted",
		"-loss kl -model m.bqmf new.csv":     "-loss: it says how a model is fitted",
		"-allow missing new.csv":             "-allow: it says which features",
		"-model - -":                         "standard input",
		"-model m.bqmf -interval 2 new.csv":  "must be above 0 and below 1",
		"-model m.bqmf -features f new.csv ": "",
	} {
		code := cli.Usage
		if want == "" {
			code = 0
		}
		says(t, code, "impute -o x.csv "+args, want)
	}
	writeText(t, "hole.csv", "feature,a,b\n"+strings.Join(lineOf(20, "%d,1,"), "\n")+"\n")
	if _, told := quiet(t, cli.BadInput,
		"impute -model m.bqmf hole.csv -o x.csv"); !strings.
		Contains(told, `"b"`) && !strings.Contains(told, "sample b") {
		t.Error(told)
	}
}

// lineOf are lines for features f1, f2, ...
func lineOf(d int, format string) (lines []string) {
	for i := range d {
		lines = append(lines, fmt.Sprintf("f"+format, i+1))
	}
	return lines
}

// TestScoreBySample: the scores are those of the package, falling; a value that was spoilt is named first,
// with what was expected of it; samples that are placed already have the same lines, as has a matrix that is
// read by rows.
func TestScoreBySample(t *testing.T) {
	if testing.Short() {
		t.Skip("fits five models")
	}
	_, given := keptModels(t)
	given.Set(4, 7, 1e4)
	writeTable(t, "odd.csv", given)
	for _, path := range []string{"m.bqmf", "m.nmf", "m.qmf", "m.qmfq", "m.log"} {
		m := keptModel(t, path)
		x := m.asFitted(given)
		scores := Must(m.Scores(t.Context(), x))(t)
		out, _ := quiet(t, 0, "score -by-sample "+path+" odd.csv")
		c := csv.NewReader(strings.NewReader(out))
		c.Comma = '\t'
		lines, err := c.ReadAll()
		if err != nil || len(lines) != 16 || strings.Join(lines[0], " ") != "sample score times_median why" {
			t.Fatal(err, out)
		}
		for l, line := range lines[1:] {
			j, _ := strconv.Atoi(line[0][1:])
			got, _ := strconv.ParseFloat(line[1], 64)
			if got != scores[j-1] {
				t.Errorf("%s, %s: %s, want %v", path, line[0], line[1], scores[j-1])
			}
			if l > 0 {
				before, _ := strconv.ParseFloat(lines[l][1], 64)
				if got > before {
					t.Errorf("%s: %v stands behind %v", path, got, before)
				}
			}
		}
		if first := lines[1]; first[0] != "p8" || !strings.HasPrefix(first[3], "f5 ") {
			t.Errorf("%s: first is %q, for %q", path, first[0], first[3])
		}
		told, _ := quiet(t, 0, "score -by-sample -json "+path+" odd.csv")
		o := decoded[oddObject](t, told)
		predicted, _ := m.Predict(t.Context(), x)
		why := o.Samples[0].Causes[0]
		if why.Expected != predicted.At(4, 7) || why.Value != x.At(4, 7) ||
			!(why.Share > 0.5 && why.Share <= 1) ||
			len(o.Samples) != 15 {
			t.Errorf("%s: %s", path, told)
		}
		if m.method == "nmf" || m.method == "qmf" {
			quiet(t, 0, "transform "+path+" odd.csv -o V.csv")
			if again, _ := quiet(t, 0, "score -by-sample -v V.csv "+path+" odd.csv"); again != out {
				t.Errorf("%s: placed already: %s", path, again)
			}
		}
	}
	says(t, cli.Usage, "score -json m.nmf odd.csv", "-by-sample")
	writeText(t, "same.csv", "feature,a,b\n"+strings.Join(lineOf(20, "%d,0,0"), "\n")+"\n")
	out, _ := quiet(t, 0, "score -by-sample m.nmf same.csv")
	if out != "sample\tscore\ttimes_median\twhy\na\t0\t\t\nb\t0\t\t\n" {
		t.Errorf("samples of which all is explained: %q", out)
	}
	src := rand.New(rand.NewPCG(1, 2))
	large := quantmf.NewMat(20, 3000)
	for i := range large.Data {
		large.Data[i] = float64(1 + src.IntN(9))
	}
	writeTable(t, "large.npy", large)
	held, _ := quiet(t, 0, "score -by-sample -max-memory 16MB m.nmf large.npy")
	if all, _ := quiet(t, 0, "score -by-sample m.nmf large.npy"); all != held ||
		strings.Count(all, "\n") != 3001 {
		t.Error("blocks of a matrix in its file have other scores")
	}
}
