package main

// This file tests what is said first of values that fits have not seen.

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestUnseen: what a model says of values that it has not seen has the numbers of Choose. TestMatrices has
// the words of structure and of noise.
func TestUnseen(t *testing.T) {
	t.Chdir(t.TempDir())
	x, _ := bent(40, 40)
	writeTable(t, "x.tsv", x)
	quiet(t, 0, "fit -method qmf -k 3 -epochs 2 -start scores -shrinkage 0 -line 0.5 -o m.qmf x.tsv")
	choice := Must(quantmf.Choose(t.Context(), x, []quantmf.Candidate{{Method: quantmf.MethodQMF, Rank: 3,
		Options: []quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithStart(quantmf.StartScores),
			quantmf.WithShrinkage(0), quantmf.WithLine(0.5)}}, {Method: quantmf.MethodNMF, Rank: 3}}, nil))(t)
	own, nmf, beside := choice.Trials[0], choice.Trials[1], account.Other{Method: "NMF"}
	got := keptModel(t, "m.qmf")
	want := account.Unseen{Fitted: account.Explained(Must(got.Goodness(x))(t), account.Visible(x))}
	for _, row := range own.Rows {
		want.Values += row.Cells
	}
	want.Predicted, want.StdErr = own.Explained()
	beside.Predicted, _ = nmf.Explained()
	beside.Worse, beside.StdErr = nmf.Worse(own)
	want.Others = []account.Other{beside}
	if !reflect.DeepEqual(got.Unseen, want) || want.Values == 0 || want.StdErr == 0 {
		t.Errorf("%+v, want %+v", got.Unseen, want)
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
