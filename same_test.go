package quantmf_test

// This file tests that a fit has the same bits in every way in which the package makes it. cmd/quantmf and
// beam/ hold theirs against the same hashes.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/samebits"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/rowfile"
	"github.com/quantmf/quantmf/shards"
)

// overShards fits over shards.
func overShards(ctx context.Context, f samebits.Fit, x Rows, count int) (Model, error) {
	store := &blobs{of: map[string][]byte{}}
	plan := shards.PlanQMF
	if f.Method == MethodNMF {
		plan = shards.PlanNMF
	}
	if err := plan(ctx, store, count, x, f.Rank, f.Options...); err != nil {
		return nil, err
	}
	fit, err := shards.Open(store)
	if err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		for shard := range count {
			if err := fit.Step(ctx, round, count-1-shard); err != nil {
				return nil, err
			}
		}
		if at, err := fit.Reduce(ctx, round); err != nil {
			return nil, err
		} else if at.Over {
			return fit.Finish(ctx)
		}
	}
}

// TestSame: one hash for each fit, whatever holds its matrix, on one machine and over 1, 2, 3 and 8 shards:
// without QUANTMF_LONG each fit is made in one or two of the ways, and over one number of shards.
func TestSame(t *testing.T) {
	for a, f := range samebits.Fits() {
		if testing.Short() && a > 1 { // an NMF and a QMF
			break
		}
		holders := Holders(t, f.X)
		holders["in full"] = f.X
		options := slices.Concat(f.Options, f.OneMachine)
		for i, holder := range []string{"in full", "rows", "single", "sparse", "sparse, single", "x.mtx",
			"x.npy"} {
			if !Long && (a+i)%4 > 0 {
				continue
			}
			x := holders[holder]
			if x == nil {
				path := filepath.Join(t.TempDir(), holder)
				file := Must(os.Create(path))(t)
				OK(t, table.Write(file, path, "", nil, nil, f.X))
				OK(t, file.Close())
				rows := Must(rowfile.Open(path, rowfile.Options{}))(t)
				defer rows.Close()
				x = rows.Rows
			}
			f.Check(t, holder, Fitted(t, By(f.Method), x, f.Rank, options...))
		}
		for i, shards := range []int{2, 8, 3, 1} {
			if !Long && i != a%4 {
				continue
			}
			x := holders[either(shards%2 == 0, "sparse", "in full")]
			f.Check(t, fmt.Sprintf("%d shards", shards), Must(overShards(t.Context(), f, x, shards))(t))
		}
	}
}
