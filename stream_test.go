package quantmf_test

// This file tests a stream: a nightly fit goes on from the model of the night before.

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/rowfile"
)

// TestStream: a model of 90 samples gets more each night, or is fitted to others alone. A fifth of the epochs
// comes each time to the loss of a fit from nothing, and new samples have the scores that they have by that
// fit. When features trade places, the scores rise.
func TestStream(t *testing.T) {
	Slow(t)
	t.Parallel()
	const n = 120
	x, missing := bentTable(24, n, 1), WithMissingValues()
	for j := range n / 5 {
		x.Set(7*j%24, 5*j, math.NaN())
	}
	for method, epochs := range map[Method]int{
		MethodNMF: 20, MethodQMF: 20, MethodQMFQ: 60, MethodBQMF: 12,
	} {
		model := Fitted(t, By(method), Part(x, 0, 90), 3, missing, WithEpochs(epochs))
		for _, c := range [][2]int{{90, n}, {0, 100}} {
			days, fresh := Part(x, c[0], c[1]), Part(x, c[1], n)
			refit := Fitted(t, By(method), days, 3, missing, WithEpochs(epochs))
			on := Fitted(t, By(method), days, 3, missing, WithEpochs(epochs/5), WithModel(model))
			want, got := Must(refit.Loss(days))(t), Must(on.Loss(days))(t)
			if !(got <= 1.05*want) {
				t.Errorf("%v, samples %v: %d epochs from the model come to %v, %d from nothing to %v", method,
					c, epochs/5, got, epochs, want)
			}
			if fresh.Cols == 0 {
				continue
			}
			model = on
			theirs, ours := Answer(t, refit.Score, fresh), Answer(t, on.Score, fresh)
			if method != MethodQMFQ && !(ours <= 1.05*theirs) {
				t.Errorf("%v, samples %v: new samples score %v, by a fit from nothing %v", method, c, ours,
					theirs)
			}
		}
		before, moved := Part(x, 90, n), Part(x, 90, n).Clone()
		for j := range moved.Cols {
			a, b := moved.At(0, j), moved.At(1, j)
			moved.Set(0, j, 3*b)
			moved.Set(1, j, a/3)
		}
		was, is := Answer(t, model.Score, before), Answer(t, model.Score, moved)
		if !(is > 1.5*was) {
			t.Errorf("%v: new samples score %v, and after features have moved %v", method, was, is)
		}
	}
}

// TestStreamOfPatients: on real assays 50 more patients of the same kind take a fifth of the epochs of a
// refit.
func TestStreamOfPatients(t *testing.T) {
	if !Long {
		t.Skip("QUANTMF_LONG is not set: six fits of a whole table")
	}
	t.Parallel()
	f := Must(rowfile.Open("testdata/laml-assays.tsv.gz", rowfile.Options{}))(t)
	whole, missing := f.Rows.(Mat), WithMissingValues()
	x := whole.Clone()
	for to, from := range rand.New(rand.NewPCG(1, 1)).Perm(x.Cols) { // patients stand in groups
		for i := range x.Rows {
			x.Set(i, to, whole.At(i, from))
		}
	}
	for _, method := range []Method{MethodNMF, MethodQMF} {
		first := Fitted(t, By(method), Part(x, 0, x.Cols-50), 8, WithEpochs(20), missing)
		refit := Fitted(t, By(method), x, 8, WithEpochs(20), missing)
		on := Fitted(t, By(method), x, 8, WithEpochs(4), WithModel(first), missing)
		if want, got := Must(refit.Loss(x))(t), Must(on.Loss(x))(t); !(got <= want) {
			t.Errorf("%v: four epochs from the model come to %v, twenty from nothing to %v", method, got,
				want)
		}
	}
}
