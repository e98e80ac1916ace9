package main

// This file tests what is said first of values that fits have not seen.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/settings"
)

// drawn is a table of k components and noise, of noise alone for k = 0.
func drawn(d, n, k int) quantmf.Mat {
	src := rand.New(rand.NewPCG(uint64(d), uint64(n)))
	v, x := make([]float64, k*n), quantmf.NewMat(d, n)
	for i := range v {
		v[i] = src.ExpFloat64()
	}
	for i := range d {
		row := x.Row(i)
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
		}
	}
	return x
}

// TestUnseen: noise is said to be noise and structure structure, by every method, in the summary, in the
// model and on the page; the numbers are those of Choose.
func TestUnseen(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	x := drawn(40, 40, 3)
	writeTable(t, "noise.tsv", drawn(40, 40, 0))
	writeTable(t, "three.tsv", x)
	for i, v := range x.Data {
		if v < 1 {
			x.Data[i] = -v
		}
	}
	writeTable(t, "signed.tsv", x)
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
	choice := Must(quantmf.Choose(t.Context(), in.X, []quantmf.Candidate{{Method: quantmf.MethodQMF, Rank: 3,
		Options: []quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithStart(quantmf.StartScores),
			quantmf.WithShrinkage(0), quantmf.WithLine(0.5)}}, {Method: quantmf.MethodNMF, Rank: 3}}, nil))(t)
	own, nmf, beside := choice.Trials[0], choice.Trials[1], account.Other{Method: "NMF"}
	got := keptModel(t, "m.qmf").Unseen
	want := account.Unseen{Fitted: got.Fitted}
	for _, row := range own.Rows {
		want.Values += row.Cells
	}
	want.Predicted, want.StdErr = own.Explained()
	beside.Predicted, _ = nmf.Explained()
	beside.Worse, beside.StdErr = nmf.Worse(own)
	want.Others = []account.Other{beside}
	if !reflect.DeepEqual(got, want) || want.Values == 0 || want.StdErr == 0 {
		t.Errorf("%+v, want %+v", got, want)
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
