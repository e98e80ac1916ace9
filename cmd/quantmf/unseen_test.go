package main

// This file tests what is said first of values that fits have not seen.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/settings"
)

// drawn is a table of k components and noise, of noise alone for k = 0.
func drawn(d, n, k int) string {
	src := rand.New(rand.NewPCG(uint64(d), uint64(n)))
	v := make([]float64, k*n)
	for i := range v {
		v[i] = src.ExpFloat64()
	}
	var s strings.Builder
	for range d {
		row := make([]float64, n)
		for c := range k {
			u := src.ExpFloat64()
			for j := range row {
				row[j] += u * v[c*n+j]
			}
		}
		for j := range row {
			if row[j] *= math.Exp(0.2 * src.NormFloat64()); k == 0 {
				row[j] = src.ExpFloat64()
			}
			fmt.Fprintf(&s, "%.4f%s", row[j], map[bool]string{true: "\n", false: "\t"}[j == n-1])
		}
	}
	return s.String()
}

// TestUnseen: noise is said to be noise and structure structure, by every method, in the summary, in the
// model and on the page; the numbers are those of HeldOut.
func TestUnseen(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	writeText(t, "noise.tsv", drawn(40, 40, 0))
	writeText(t, "three.tsv", drawn(40, 40, 3))
	writeText(t, "signed.tsv", strings.ReplaceAll(drawn(40, 40, 3), "\t0.", "\t-0."))
	const none, some, page = "Warning       no structure was found at this k: values that the model has " +
		"not seen are " +
		"predicted",
		"% of what differs between samples is predicted, in values that the model has not seen (",
		"<b>No structure was found at this k:</b>"
	for _, method := range settings.Methods {
		for file, noise := range map[string]bool{"noise.tsv": true, "three.tsv": false, "signed.tsv": false} {
			if file == "signed.tsv" && method != "qmf" {
				continue
			}
			line := "fit -progress none -k 3 -o m.qmf -method " + method + " " + file
			if method == "qmf" || method == "qmfq" { // quick ones
				line += " -epochs 4 -start nmf -shrinkage 0 -line 0"
			}
			_, said := quiet(t, 0, line)
			told, _ := quiet(t, 0, "inspect m.qmf")
			drawn, _ := quiet(t, 0, "report m.qmf "+file+" -o -")
			for what, text := range map[string]string{"summary": said, "inspect": told} {
				if strings.Contains(text, none) != noise || strings.Contains(text, some) == noise ||
					strings.Contains(text, "NMF predicts ") !=
						(file != "signed.tsv" && (method == "qmf" || method == "qmfq")) {
					t.Errorf("%s, %s, %s: %s", method, file, what, text)
				}
			}
			if strings.Contains(drawn, page) != noise {
				t.Errorf("%s, %s: the page", method, file)
			}
		}
	}
	in := read(t, "three.tsv")
	quiet(t, 0, "fit -method qmf -k 3 -epochs 2 -start scores -shrinkage 0 -line 0.5 -o m.qmf three.tsv")
	text, _ := quiet(t, 0, "inspect -json m.qmf")
	o := decoded[modelObject](t, text)
	var shares []float64
	for _, method := range []string{"qmf", "nmf"} {
		own, hidden, trial := 0.0, 0, quantmf.Trial{Rank: 3}
		if method == "qmf" {
			trial.Options = []quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithStart(quantmf.StartScores),
				quantmf.WithShrinkage(0), quantmf.WithLine(0.5)}
		}
		add := func(given quantmf.Mat) { // of one mask
			for i := range in.X.Rows {
				mean, n := 0.0, 0.0
				for _, v := range given.Row(i) {
					if v == v {
						mean, n = mean+v, n+1
					}
				}
				for j, v := range in.X.Row(i) {
					if given.At(i, j) != given.At(i, j) {
						own += quantmf.KL.At(v, mean/n)
						hidden++
					}
				}
			}
		}
		left := 0.0
		for r := range 10 { // no more for a small table
			p := must(quantmf.HeldOut(t.Context(), in.X,
				func(ctx context.Context, x quantmf.Rows, k int,
					o ...quantmf.FitOption) (quantmf.Model, error) {
					add(x.(quantmf.Mat))
					return settings.Fit(ctx, method, x, k, o...)
				}, []quantmf.Trial{trial}, quantmf.Masks{Repeats: 1, First: r, Seed: 1}))(t)
			count := hidden
			left += p[0].Mean * float64(count)
			hidden = 0
			if method == "qmf" {
				o.Unseen.Values -= count
			}
		}
		shares = append(shares, 1-left/own)
	}
	u := o.Unseen
	if u.Values != 0 || math.Abs(u.Predicted-shares[0]) > 1e-9 || len(u.Others) != 1 {
		t.Fatalf("%+v, want %v", u, shares)
	}
	nmf := u.Others[0]
	if nmf.Method != "nmf" || math.Abs(nmf.Predicted-shares[1]) > 1e-9 ||
		math.Abs(nmf.Worse-((1-shares[1])/(1-shares[0])-1)) > 1e-9 || !(u.StdErr > 0 && u.StdErr < 0.1) ||
		!(nmf.StdErr > 0 && nmf.StdErr < 0.3) || u.Auto {
		t.Errorf("%+v, want %v", u, shares)
	}
}

// TestUntried: where no values can be hidden, or memory does not allow it, the fit is made, and says so.
func TestUntried(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "matrix.tsv", small())
	f := newFitFlags()
	f.method, f.rank = "qmf", 2
	with, err := f.footprint(quantmf.NewMat(14, 9), 0)
	f.compare = "none"
	without, wrong := f.footprint(quantmf.NewMat(14, 9), 0)
	if err != nil || wrong != nil || with < without+10 {
		t.Fatal(with, without, err, wrong)
	}
	for args, why := range map[string]string{
		"-method qmfq -projection svd matrix.tsv": "no values can be hidden from such a fit of this matrix",
		fmt.Sprintf("-max-memory %.0f matrix.tsv", (with+without)/2): "-max-memory allows too little for " +
			"further fits",
	} {
		says(t, 0, "fit -k 2 -method qmf -epochs 2 -progress none "+args,
			"Unseen values not predicted: "+why+"\n")
	}
}
