package beam

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam/internal/kit"
	"github.com/quantmf/quantmf/internal/samebits"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/shards"
)

func TestMain(m *testing.M) {
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	Init()
	os.Exit(m.Run())
}

// planned returns a store with a fit over some shards.
func planned(t *testing.T, f samebits.Fit, count int) *Store {
	t.Helper()
	store := Must(OpenStore(t.Context(), t.TempDir()))(t)
	plan := shards.PlanQMF
	if f.Method == quantmf.MethodNMF {
		plan = shards.PlanNMF
	}
	OK(t, plan(t.Context(), store, count, f.X, f.Rank, f.Options...))
	return store
}

// TestBits checks that models by Beam's embedded runner have the same bits as those of one machine: over 1,
// 2, 3 and 8 shards, in pipelines of few rounds and of more rounds than the fit has.
func TestBits(t *testing.T) {
	for _, f := range samebits.Fits() {
		for _, count := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("%s, %d shards", f.Name, count), func(t *testing.T) {
				store := planned(t, f, count)
				defer store.Close()
				last := shards.Round{Number: -1}
				got := Must(Fit(t.Context(), store,
					Run{Rounds: 1 + 5*(count-1), Retries: -1, Progress: func(r shards.Round) {
						if r.Number < last.Number {
							t.Errorf("round %d is told after %d", r.Number, last.Number)
						}
						last = r
					}}))(t)
				if !last.Over {
					t.Error("the last round told is not the end")
				}
				f.Check(t, fmt.Sprintf("%d shards by Beam", count), got)
				if len(kept.fits) > 0 {
					t.Errorf("%d fits are kept after the end", len(kept.fits))
				}
				left, err := filepath.Glob(filepath.Join(store.Folder(), "*.tmp"))
				if err != nil || len(left) > 0 {
					t.Errorf("left in the store: %v, %v", left, err)
				}
			})
		}
	}
}

// TestGoesOn checks that a fit whose driver was stopped continues from the store.
func TestGoesOn(t *testing.T) {
	f := samebits.Fits()[0]
	store := planned(t, f, 3)
	ctx, stop := context.WithCancel(t.Context())
	seen := 0
	_, err := Fit(ctx, store, Run{Rounds: 2, Progress: func(shards.Round) {
		if seen++; seen == 3 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	first := -1
	got := Must(Fit(t.Context(), store, Run{Progress: func(r shards.Round) {
		if first < 0 {
			first = r.Number
		}
	}}))(t)
	if first < 2 || first > 6 {
		t.Errorf("went on in round %d", first)
	}
	f.Check(t, "by Beam, stopped", got)
}

// TestFailedStep checks that a step that cannot be made fails the pipeline, that the pipeline is tried again
// as often as Run says, and that the error names the blob.
func TestFailedStep(t *testing.T) {
	store := planned(t, samebits.Fits()[0], 2)
	rows := filepath.Join(store.Folder(), "rows-0001")
	data := Must(os.ReadFile(rows))(t)
	data[len(data)/2] ^= 1
	OK(t, os.WriteFile(rows, data, 0o666))
	retried := 0
	_, err := Fit(t.Context(), store, Run{Retries: 1, Failed: func(error) { retried++ }})
	if err == nil || !strings.Contains(err.Error(), "rows-0001") || retried != 1 {
		t.Errorf("after %d retries: %v", retried, err)
	}
	data[len(data)/2] ^= 1
	_, err = Fit(t.Context(), store, Run{Retries: 1, Failed: func(error) {
		if err := os.WriteFile(rows, data, 0o666); err != nil { // the file is repaired meanwhile
			t.Error(err)
		}
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestTransform checks that new samples have the same bits as by Transform, for any number of blocks, missing
// values included.
func TestTransform(t *testing.T) {
	x := kit.LowRank(60, 50)
	x.Data[77] = math.NaN()
	m := Must(quantmf.FitQMF(t.Context(), x, 3, quantmf.WithEpochs(2), quantmf.WithMissingValues(),
		quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0)))(t)
	want := Must(m.Transform(t.Context(), x))(t)
	for _, blocks := range []int{1, 3, 50} {
		store := Must(OpenStore(t.Context(), t.TempDir()))(t)
		got := Must(Transform(t.Context(), store, m, x, blocks, Run{}))(t)
		for i, v := range want.Data {
			if math.Float64bits(got.Data[i]) != math.Float64bits(v) {
				t.Fatalf("%d blocks: number %d is %v, not %v", blocks, i, got.Data[i], v)
			}
		}
		// no block is left to place
		again, err := Transform(t.Context(), store, m, x, blocks, Run{Runner: "there is none of this name"})
		if err != nil || again.Data[3] != want.Data[3] {
			t.Errorf("%d blocks, once more: %v", blocks, err)
		}
	}
}
