package main

// This file tests "quantmf score", and "quantmf transform -block" over a matrix that is held by rows: the
// bits of the package over all of the matrix in memory.

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// scoreOf is what "quantmf score" prints.
func scoreOf(t *testing.T, args string) float64 {
	t.Helper()
	out, _ := quiet(t, 0, "score "+args)
	v := Must(strconv.ParseFloat(strings.TrimSuffix(out, "\n"), 64))(t)
	return v
}

// TestScore: the score of new samples is that of the package, placed by one command or by several.
func TestScore(t *testing.T) {
	workshop(t)
	src := rand.New(rand.NewPCG(5, 6))
	in := read(t, "matrix.tsv")
	y := quantmf.NewMat(in.X.Rows, 7)
	for i := range y.Rows {
		for j := range y.Cols {
			if y.Set(i, j, 0); src.IntN(4) == 0 {
				y.Set(i, j, float64(1+src.IntN(9)))
			}
		}
	}
	for j := range y.Cols {
		y.Set(j%y.Rows, j, 3)
	}
	names := table.Numbered("new", y.Cols)
	for _, path := range []string{"y.tsv", "y.npy", "y.mtx"} {
		var b bytes.Buffer
		OK(t, table.Write(&b, path, "feature", in.Features, names, y))
		writeText(t, path, b.String())
	}
	quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 2 -missing -log1p matrix.tsv -o holes.qmf")
	for _, model := range []string{"nmf.qmf", "qmf.qmf", "qmfq.qmf", "bqmf.qmf", "holes.qmf"} {
		m := keptModel(t, model)
		want := Must(m.Score(t.Context(), m.asFitted(y)))(t)
		parts := ""
		for i, c := range []struct{ from, end string }{{"y.tsv", ".tsv"}, {"y.mtx", ".npy"},
			{"y.tsv", ".csv.gz"}} {
			part := fmt.Sprint(model, i, c.end)
			quiet(t, 0, fmt.Sprintf("transform %s %s -o %s -block %d/3", model, c.from, part, i))
			parts += " -v " + part
		}
		for _, path := range []string{"y.tsv", "y.npy", "y.mtx"} {
			if got := scoreOf(t, model+" "+path); got != want {
				t.Errorf("%s, %s: %v, want %v", model, path, got, want)
			}
			if m.method != "nmf" && m.method != "qmf" {
				says(t, cli.Usage, "score"+parts+" "+model+" "+path, "this is one of "+m.method)
			} else if got := scoreOf(t, parts+" "+model+" "+path); got != want {
				t.Errorf("%s, %s by blocks: %v, want %v", model, path, got, want)
			}
		}
	}
	quiet(t, 0, "fit -compare none -method nmf -k 3 -epochs 1 matrix.tsv -o three.nmf")
	for _, c := range []saying{
		{"nmf.qmf", cli.Usage, "no MATRIX given"},
		{"-v nmf.qmf2.csv.gz -v nmf.qmf1.npy -v nmf.qmf0.tsv nmf.qmf y.tsv", cli.BadInput,
			`the matrix has "new1" in this place: give the files in the order of their blocks`},
		{"-v nmf.qmf0.tsv nmf.qmf y.tsv", cli.Usage, "-v: the files have 2 samples, and the matrix 7"},
		{"-v nmf.qmf1.npy -v nmf.qmf1.npy -v nmf.qmf1.npy -v nmf.qmf1.npy nmf.qmf y.tsv", cli.BadInput,
			"one more than the 7"},
		{"-v nmf.qmf0.tsv three.nmf y.tsv", cli.BadInput, "the model has 3 components, and this 2"},
		{"-v none.tsv nmf.qmf y.tsv", cli.BadInput, "none.tsv"},
		{"-max-memory 1MB nmf.qmf y.tsv", cli.BadInput, "-max-memory allows"},
	} {
		says(t, c.code, "score "+c.args, c.says)
	}
}

// TestFitByRows: of an npy file ten times as large as may be held beside the program, a feature without any
// value is left out, with the bits of a fit without it.
func TestFitByRows(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a file of 12 MB again and again")
	}
	t.Chdir(t.TempDir())
	x := quantmf.NewMat(1500, 1000)
	for i := range x.Data {
		x.Data[i] = float64(1 + i%7*(i%11))
	}
	last := x
	last.Data, last.Rows = x.Data[x.Cols:], 1499
	writeTable(t, "last.npy", last)
	for j := range x.Cols {
		x.Data[j] = math.NaN()
	}
	writeTable(t, "x.npy", x)
	const args = "fit -compare none -missing -method nmf -k 1 -epochs 1 -v "
	quiet(t, 0, args+"want.tsv last.npy")
	says(t, 0, args+"got.tsv -max-memory 16.8MB x.npy",
		`1 feature without any value left out: "f1"`)
	if textOf(t, "got.tsv") != textOf(t, "want.tsv") {
		t.Error("another V")
	}
}

// TestScoreByRows: an npy file that is larger than may be held is placed by blocks and scored, with the bits
// of all of it in memory.
func TestScoreByRows(t *testing.T) {
	t.Chdir(t.TempDir())
	src := rand.New(rand.NewPCG(1, 9))
	x := quantmf.NewMat(20, 28000)
	for i := range x.Data {
		x.Data[i] = float64(src.IntN(5))
	}
	writeTable(t, "x.npy", x)
	few := x
	few.Cols = 50
	writeTable(t, "few.npy", few)
	quiet(t, 0, "fit -compare none -method nmf -k 2 -epochs 3 few.npy -o m")
	want := Must(keptModel(t, "m").Score(t.Context(), x))(t)
	parts := ""
	for i := range 8 {
		quiet(t, 0, fmt.Sprintf("transform -max-memory 16MB -block %d/8 m x.npy -o V%d.npy", i,
			i))
		parts += fmt.Sprintf(" -v V%d.npy", i)
	}
	if got := scoreOf(t, "-max-memory 16MB"+parts+" m x.npy"); got != want {
		t.Errorf("by blocks: %v, want %v", got, want)
	}
	if got := scoreOf(t, "-max-memory 64MB m x.npy"); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, args := range []string{"transform m x.npy -o V.npy", "score m x.npy"} {
		says(t, cli.BadInput, args+" -max-memory 16MB", "-max-memory allows")
	}
}
