package quantmf_test

// This file tests that a fit has the same bits in every way in which the package makes it. cmd/quantmf and
// beam/ hold theirs against the same hashes.

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/samebits"
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
// without QUANTMF_LONG half of the ways for each.
func TestSame(t *testing.T) {
	for a, f := range samebits.Fits() {
		if testing.Short() && a%2 == 0 {
			continue
		}
		x := f.X
		holders := Holders(t, x)
		holders["in full"] = x
		for _, name := range []string{"x.npy", "x.mtx"} {
			path := filepath.Join(t.TempDir(), name)
			file := must(os.Create(path))(t)
			ok(t, table.Write(file, path, "", nil, nil, x))
			ok(t, file.Close())
			rows := must(rowfile.Open(path, rowfile.Options{}))(t)
			defer rows.Close()
			holders[name] = rows.Rows
		}
		options := append(f.Options[:len(f.Options):len(f.Options)], f.OneMachine...)
		for i, holder := range slices.Sorted(maps.Keys(holders)) {
			// each fit is held in a third of the ways, and split into half of the numbers of shards
			if os.Getenv("QUANTMF_LONG") == "" && (a/2+a+i)%3 > 0 {
				continue
			}
			x := holders[holder]
			m, err := Fit(t.Context(), f.Method, x, f.Rank, options...)
			if err != nil {
				t.Fatal(f.Name, holder, err)
			}
			f.Check(t, holder, m)
		}
		for i, shards := range []int{1, 3, 2, 8} {
			if os.Getenv("QUANTMF_LONG") == "" && (a/2+a+i/2)%2 > 0 {
				continue
			}
			m, err := overShards(t.Context(), f,
				map[bool]Rows{true: holders["sparse"], false: x}[shards%2 == 0],
				shards)
			if err != nil {
				t.Fatal(f.Name, shards, err)
			}
			f.Check(t, fmt.Sprintf("%d shards", shards), m)
		}
	}
}
