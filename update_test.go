package quantmf

// Tests of a BQMF that learns from new samples.

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

// TestUpdatedAsGoodAsARefit: hidden cells of new samples, a quarter of all, are predicted within 5 % of the
// loss of a refit with them, and where the fit alone lacks much of it, more than half of that is learnt.
func TestUpdatedAsGoodAsARefit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("two fits a table")
	}
	for path, lacks := range map[string]float64{ // of the fit alone, of which half is learnt
		"testdata/laml-exp.tsv.gz":                     0.04,
		"../shared/data/tcga-cesc/mirna.tsv.gz":        0,
		"../shared/data/sotu-wordcounts/counts.tsv.gz": 0,
		"../shared/data/tcga-coadread/mirna.tsv.gz":    0,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			x := columnsOf(loadRows(t, path, 120), func(j int) bool { return j < 130 })
			given := x.Clone()
			isNew := func(j int) bool { return j%4 == 1 }
			hidden := func(i, j int) bool { return isNew(j) && (7*i+3*j)%10 < 2 }
			for i := range x.Rows {
				for j := range x.Cols {
					if hidden(i, j) {
						given.Set(i, j, math.NaN())
					}
				}
			}
			ctx := t.Context()
			fresh := columnsOf(given, isNew)
			m := must(FitBQMF(ctx, columnsOf(given, func(j int) bool { return !isNew(j) }), 0))(t)
			refit := must(FitBQMF(ctx, given, 0, WithMissingValues()))(t).Reconstruct()
			alone := must(m.Predict(ctx, fresh))(t)
			learnt := must(must(m.Updated(ctx, fresh))(t).Predict(ctx, fresh))(t)
			var losses [3]float64
			at := -1
			for j := range x.Cols {
				if !isNew(j) {
					continue
				}
				at++
				for i := range x.Rows {
					if hidden(i, j) {
						for k, p := range [3]float64{alone.At(i, at), learnt.At(i, at), refit.At(i, j)} {
							losses[k] += KL.At(x.At(i, j), p)
						}
					}
				}
			}
			most := 1.05
			if lacks > 0 {
				if !(losses[0] > (1+lacks)*losses[2]) {
					t.Errorf("the fit alone comes to %v of a refit's loss", losses[0]/losses[2])
				}
				most = 1 + lacks/2
			}
			if !(losses[1] <= most*losses[2]) {
				t.Errorf("losses alone, updated, refitted: %v", losses)
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
	old, fresh := columnsOf(x, func(j int) bool { return j < 60 }), columnsOf(x, func(j int) bool {
		return j >= 60 && j < 90
	})
	fresh.Set(2, 5, math.NaN())
	m := must(FitBQMF(ctx, old, 5))(t)
	before := must(m.Predict(ctx, fresh))(t)
	updated := must(m.Updated(ctx, fresh))(t)
	want := must(updated.Predict(ctx, fresh))(t)
	if again := must(m.Predict(ctx, fresh))(t); !slices.Equal(again.Data, before.Data) {
		t.Error("the model has changed")
	}
	if slices.Equal(want.Data, before.Data) || !slices.Equal(updated.V.Data, m.V.Data) {
		t.Error("nothing is learnt, or V is another one")
	}
	for workers := range 3 {
		again := new(BQMF)
		ok(t, again.UnmarshalBinary(must(m.MarshalBinary())(t)))
		again.workers = workers
		got := must(again.Updated(ctx, onlyRows{fresh}))(t)
		if p := must(got.Predict(ctx, fresh))(t); !slices.Equal(p.Data, want.Data) {
			t.Errorf("%d workers, rows: another model", workers)
		}
		read := new(BQMF)
		ok(t, read.UnmarshalBinary(must(got.MarshalBinary())(t)))
		if p := must(read.Predict(ctx, fresh))(t); !slices.Equal(p.Data, want.Data) {
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

// onlyRows hides that rows are a Mat.
type onlyRows struct{ m Mat }

func (r onlyRows) Dims() (int, int)                  { return r.m.Dims() }
func (r onlyRows) ReadRow(to []float64, i int) error { return r.m.ReadRow(to, i) }
