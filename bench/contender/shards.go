package main

// This file makes fits over shards, one step after the other.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/shards"
)

// split is what an epoch over shards has taken: its longest steps, one a round, its reduces, and the bytes
// that went through the store, rows left out. It is that of the shortest epoch.
type split struct{ Longest, Reduce, Moved float64 }

// overShards keeps all rows between steps. The start is that of one machine: of QMF U and V are given.
func (f *fit) overShards(method quantmf.Method, x quantmf.Rows, opts []quantmf.FitOption) (*split, error) {
	dir, err := os.MkdirTemp("", "contender-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store := &folder{dir: dir}
	ctx := context.Background()
	plan := shards.PlanNMF
	if method == quantmf.MethodQMF {
		plan = shards.PlanQMF
		ones := func(rows, cols int) quantmf.Mat {
			m := quantmf.NewMat(rows, cols)
			for i := range m.Data {
				m.Data[i] = 0.5 + float64(i*7%11)/11
			}
			return m
		}
		opts = append(opts, quantmf.WithInit(ones(f.D, f.K), ones(f.K, f.N)), quantmf.WithShrinkage(0))
	}
	if err := plan(ctx, store, f.Shards, x, f.K, opts...); err != nil {
		return nil, err
	}
	sharded, err := shards.Open(store)
	if err != nil {
		return nil, err
	}
	sharded.KeepRows(1 << 40)
	var best *split
	epoch := 0
	var now split
	for round := 0; ; round++ {
		longest := 0.0
		for shard := range f.Shards {
			began := worked()
			if err := sharded.Step(ctx, round, shard); err != nil {
				return nil, err
			}
			longest = max(longest, worked()-began)
		}
		began := worked()
		at, err := sharded.Reduce(ctx, round)
		if err != nil {
			return nil, err
		}
		if at.Over { // the last round does other work
			return best, nil
		}
		now.Longest, now.Reduce = now.Longest+longest, now.Reduce+worked()-began
		if at.Epoch == epoch {
			continue
		}
		epoch = at.Epoch
		now.Moved = float64(store.moved)
		// the first epochs of Newton's method are multiplicative updates, and the first reads the rows
		if first := map[bool]int{true: 5, false: 2}[f.Method == "NMF" &&
			f.Updates != "multiplicative"]; best == nil ||
			epoch <= first || now.Longest+now.Reduce < best.Longest+best.Reduce {
			kept := now
			best = &kept
		}
		now, store.moved = split{}, 0
	}
}

// folder is a store of blobs in files, which counts the bytes that go through it.
type folder struct {
	dir   string
	moved int
}

func (f *folder) count(name string, data []byte) {
	if ok, _ := filepath.Match("rows-*", name); !ok {
		f.moved += len(data)
	}
}

func (f *folder) Get(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f.count(name, b)
	return b, err
}

func (f *folder) Put(name string, data []byte) error {
	f.count(name, data)
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path+".tmp", data, 0o666); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func (f *folder) Remove(name string) error {
	if err := os.Remove(filepath.Join(f.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
