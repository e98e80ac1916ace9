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
	"sync"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/samebits"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/rowfile"
	"github.com/quantmf/quantmf/shards"
)

// shelves is a store in memory.
type shelves struct {
	mu    sync.Mutex
	blobs map[string][]byte
}

func (s *shelves) Get(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[name], nil
}

func (s *shelves) Put(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[name] = append([]byte(nil), data...)
	return nil
}

// overShards fits over shards.
func overShards(ctx context.Context, f samebits.Fit, x quantmf.Rows, count int) (quantmf.Model, error) {
	store := &shelves{blobs: map[string][]byte{}}
	plan := shards.PlanQMF
	if f.Method == quantmf.MethodNMF {
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
		start, index, wide, narrow, single := []int{0}, []uint32(nil), []float64(nil), []float32(nil),
			make([]float32, 0, len(x.Data))
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				single = append(single, float32(v))
				if v != 0 {
					index, wide, narrow = append(index, uint32(j)), append(wide, v),
						append(narrow, float32(v))
				}
			}
			start = append(start, len(index))
		}
		sparse, err := quantmf.NewSparse(x.Cols, start, index, wide)
		if err != nil {
			t.Fatal(err)
		}
		sparse32 := must(quantmf.NewSparse(x.Cols, start, index, narrow))(t)
		holders := map[string]quantmf.Rows{"in full": x,
			"in full, single": quantmf.Mat32{Rows: x.Rows, Cols: x.Cols, Stride: x.Cols, Data: single},
			"sparse":          sparse, "sparse, single": sparse32}
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
			// each fit is held in half of the ways, and split into half of the numbers of shards
			if os.Getenv("QUANTMF_LONG") == "" && (a/2+a+i)%2 > 0 {
				continue
			}
			x := holders[holder]
			var m quantmf.Model
			if f.Method == quantmf.MethodNMF {
				m, err = quantmf.FitNMF(t.Context(), x, f.Rank, options...)
			} else {
				m, err = quantmf.FitQMF(t.Context(), x, f.Rank, options...)
			}
			if err != nil {
				t.Fatal(f.Name, holder, err)
			}
			f.Check(t, holder, m)
		}
		for i, shards := range []int{1, 3, 2, 8} {
			if os.Getenv("QUANTMF_LONG") == "" && (a/2+a+i/2)%2 > 0 {
				continue
			}
			m, err := overShards(t.Context(), f, map[bool]quantmf.Rows{true: sparse, false: x}[shards%2 == 0],
				shards)
			if err != nil {
				t.Fatal(f.Name, shards, err)
			}
			f.Check(t, fmt.Sprintf("%d shards", shards), m)
		}
	}
}
