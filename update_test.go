package quantmf

// Tests of a BQMF that learns from new samples.

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestUpdatedAsGoodAsARefit: a tenth and half of the cells of new samples, a quarter of all, are predicted on
// average within 5 % of the divergence of a refit with them, and better than without learning from them:
// without QUANTMF_LONG of one table.
func TestUpdatedAsGoodAsARefit(t *testing.T) {
	Slow(t)
	t.Parallel()
	paths := []string{"testdata/laml-exp.tsv.gz"}
	if Long {
		paths = append(paths, "../shared/data/tcga-coadread/mirna.tsv.gz",
			"../shared/data/sotu-wordcounts/counts.tsv.gz")
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			x := Part(loadRows(t, path, 120), 0, 130)
			alone, updated := 0.0, 0.0 // logarithms of ratios
			for split, tenths := range []int{1, 5} {
				isNew := func(j int) bool { return j%4 == split }
				given := x.Clone()
				for i := range x.Rows {
					for j := range x.Cols {
						if isNew(j) && (7*i+3*j)%10 < tenths {
							given.Set(i, j, math.NaN())
						}
					}
				}
				whole, fresh := columnsOf(x, isNew), columnsOf(given, isNew)
				m := Fitted(t, FitBQMF, columnsOf(given, func(j int) bool { return !isNew(j) }), 0)
				loss := func(p Mat) float64 { return MeanOver(1, whole, p, Missing(fresh)) }
				refit := Fitted(t, FitBQMF, given, 0, WithMissingValues()).Reconstruct()
				least := loss(columnsOf(refit, isNew))
				alone += math.Log(loss(Answer(t, m.Predict, fresh))/least) / 2
				learnt := Answer(t, Answer(t, m.Updated, fresh).Predict, fresh)
				updated += math.Log(loss(learnt)/least) / 2
			}
			t.Logf("of a refit's loss: by Predict %.3f, by Updated %.3f", math.Exp(alone), math.Exp(updated))
			if !(updated <= math.Log(1.05) && updated < alone) {
				t.Error("Updated is not as good as a refit")
			}
		})
	}
}

// TestUpdated: the bits depend on no holder, worker or file; what is not placeable is an error; the model of
// before, and what an updated one says that it was fitted to, stay.
func TestUpdated(t *testing.T) {
	Slow(t)
	t.Parallel()
	x := loadRows(t, "testdata/laml-exp.tsv.gz", 30)
	ctx := t.Context()
	old, fresh := Part(x, 0, 60), Part(x, 60, 90)
	fresh.Set(2, 5, math.NaN())
	m := Fitted(t, FitBQMF, old, 5)
	before := Answer(t, m.Predict, fresh)
	updated := Answer(t, m.Updated, fresh)
	want := Answer(t, updated.Predict, fresh)
	if again := Answer(t, m.Predict, fresh); !slices.Equal(again.Data, before.Data) {
		t.Error("the model has changed")
	}
	if slices.Equal(want.Data, before.Data) || !slices.Equal(updated.V.Data, m.V.Data) {
		t.Error("nothing is learnt, or V is another one")
	}
	for workers := range 3 {
		again := new(BQMF)
		OK(t, again.UnmarshalBinary(FileOf(t, m)))
		again.workers = workers
		got := Answer(t, again.Updated, rowsOf{fresh})
		EqualAll(t, Answer(t, got.Predict, fresh).Data, want.Data, "%d workers, rows: another model", workers)
		read := new(BQMF)
		OK(t, read.UnmarshalBinary(FileOf(t, got)))
		if p := Answer(t, read.Predict, fresh); !slices.Equal(p.Data, want.Data) {
			t.Error("a file says something else")
		}
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	if got, err := m.Updated(ended, fresh); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	empty := fresh.Clone()
	for i := range empty.Rows {
		empty.Set(i, 3, math.NaN())
	}
	for _, bad := range []Rows{nil, NewMat(3, 2), empty} {
		if got, err := m.Updated(ctx, bad); got != nil || err == nil {
			t.Errorf("updated with %v: %v", bad, err)
		}
	}
	if got, err := new(BQMF).Updated(ctx, fresh); got != nil || err == nil {
		t.Error("the zero value has learnt")
	}
}
