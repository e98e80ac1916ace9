package beam

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/samebits"
	"github.com/quantmf/quantmf/shards"
)

func TestMain(m *testing.M) {
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	Init()
	os.Exit(m.Run())
}

// lowRank returns a d × n matrix of rank 3 with noise, each row raised to another power.
func lowRank(d, n int) quantmf.Mat {
	r := rand.New(rand.NewPCG(1, 2))
	v := quantmf.NewMat(3, n)
	for i := range v.Data {
		v.Data[i] = r.ExpFloat64()
	}
	x := quantmf.NewMat(d, n)
	for i := range d {
		u := []float64{r.ExpFloat64(), r.ExpFloat64(), r.ExpFloat64()}
		for j := range n {
			w := u[0]*v.At(0, j) + u[1]*v.At(1, j) + u[2]*v.At(2, j) + .05*r.Float64()
			x.Set(i, j, math.Pow(w, .5+float64(i%4)/3))
		}
	}
	return x
}

// cases are fits over shards, each with the fit on one machine that it must equal.
func cases() []struct {
	name string
	x    quantmf.Mat
	rank int
	nmf  bool
	opts []quantmf.FitOption
} {
	holes := lowRank(150, 40)
	for c := 0; c < len(holes.Data); c += 7 {
		holes.Data[c] = math.NaN()
	}
	return []struct {
		name string
		x    quantmf.Mat
		rank int
		nmf  bool
		opts []quantmf.FitOption
	}{
		{"NMF", lowRank(330, 700), 10, true, []quantmf.FitOption{quantmf.WithEpochs(12)}},
		{"NMF by Newton's method", lowRank(330, 700), 10, true,
			[]quantmf.FitOption{quantmf.WithEpochs(8), quantmf.WithUpdates(quantmf.UpdatesNewton)}},
		{"QMF", lowRank(150, 40), 3, false,
			[]quantmf.FitOption{quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0)}},
		{"QMF with missing and held-out cells", holes, 2, false,
			[]quantmf.FitOption{quantmf.WithMissingValues(), quantmf.WithValidation(.1),
				quantmf.WithEpochs(3)}},
	}
}

func marshal(t *testing.T, m quantmf.Model) string {
	t.Helper()
	data := must(m.MarshalBinary())(t)
	return string(data)
}

// TestBits checks that models by Beam's embedded runner have the same file, byte for byte, as those of one
// machine: over 1, 2, 3 and 8 shards, in pipelines of few rounds and of more rounds than the fit has.
func TestBits(t *testing.T) {
	ctx := t.Context()
	for _, c := range cases() {
		var want quantmf.Model
		var err error
		plan := shards.PlanQMF
		if c.nmf {
			plan = shards.PlanNMF
			want, err = quantmf.FitNMF(ctx, c.x, c.rank,
				append([]quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}, c.opts...)...)
		} else {
			want, err = quantmf.FitQMF(ctx, c.x, c.rank, append(c.opts, quantmf.WithBatch(c.x.Rows))...)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, count := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("%s, %d shards", c.name, count), func(t *testing.T) {
				folder := t.TempDir()
				store := must(OpenStore(ctx, folder))(t)
				defer store.Close()
				ok(t, plan(ctx, store, count, c.x, c.rank, c.opts...))
				last := shards.Round{Number: -1}
				got := must(Fit(ctx, store,
					Run{Rounds: 1 + 5*(count-1), Retries: -1, Progress: func(r shards.Round) {
						if r.Number < last.Number {
							t.Errorf("round %d is told after %d", r.Number, last.Number)
						}
						last = r
					}}))(t)
				if !last.Over {
					t.Error("the last round told is not the end")
				}
				if marshal(t, got) != marshal(t, want) {
					t.Error("the model differs from that of one machine")
				}
				if len(kept.fits) > 0 {
					t.Errorf("%d fits are kept after the end", len(kept.fits))
				}
				left, err := filepath.Glob(filepath.Join(folder, "*.tmp"))
				if err != nil || len(left) > 0 {
					t.Errorf("left in the store: %v, %v", left, err)
				}
			})
		}
	}
}

// TestSame checks that fits by Beam's embedded runner have the same hashes as those of the package.
func TestSame(t *testing.T) {
	for i, f := range samebits.Fits() {
		store := must(OpenStore(t.Context(), t.TempDir()))(t)
		plan := shards.PlanQMF
		if f.Method == quantmf.MethodNMF {
			plan = shards.PlanNMF
		}
		count := []int{1, 2, 3, 8, 3}[i]
		ok(t, plan(t.Context(), store, count, f.X, f.Rank, f.Options...))
		m := must(Fit(t.Context(), store, Run{Retries: -1}))(t)
		f.Check(t, fmt.Sprintf("%d shards by Beam", count), m)
		ok(t, store.Close())
	}
}

// TestGoesOn checks that a fit whose driver was stopped continues from the store.
func TestGoesOn(t *testing.T) {
	c := cases()[0]
	want, err := quantmf.FitNMF(t.Context(), c.x, c.rank,
		append(c.opts, quantmf.WithUpdates(quantmf.UpdatesMultiplicative))...)
	if err != nil {
		t.Fatal(err)
	}
	store := must(OpenStore(t.Context(), t.TempDir()))(t)
	ok(t, shards.PlanNMF(t.Context(), store, 3, c.x, c.rank, c.opts...))
	ctx, stop := context.WithCancel(t.Context())
	seen := 0
	_, err = Fit(ctx, store, Run{Rounds: 2, Progress: func(shards.Round) {
		if seen++; seen == 3 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	first := -1
	got := must(Fit(t.Context(), store, Run{Progress: func(r shards.Round) {
		if first < 0 {
			first = r.Number
		}
	}}))(t)
	if first < 2 || first > 6 {
		t.Errorf("went on in round %d", first)
	}
	if marshal(t, got) != marshal(t, want) {
		t.Error("the model differs from that of one machine")
	}
}

// TestFailedStep checks that a step that cannot be made fails the pipeline, that the pipeline is tried again
// as often as Run says, and that the error names the blob.
func TestFailedStep(t *testing.T) {
	c := cases()[0]
	folder := t.TempDir()
	store, err := OpenStore(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ok(t, shards.PlanNMF(t.Context(), store, 2, c.x, c.rank, c.opts...))
	rows := filepath.Join(folder, "rows-0001")
	data := must(os.ReadFile(rows))(t)
	data[len(data)/2] ^= 1
	ok(t, os.WriteFile(rows, data, 0o666))
	retried := 0
	_, err = Fit(t.Context(), store, Run{Retries: 1, Failed: func(error) { retried++ }})
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
	x := lowRank(60, 50)
	x.Data[77] = math.NaN()
	m, err := quantmf.FitQMF(t.Context(), x, 3, quantmf.WithEpochs(2), quantmf.WithMissingValues(),
		quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0))
	if err != nil {
		t.Fatal(err)
	}
	want := must(m.Transform(t.Context(), x))(t)
	for _, blocks := range []int{1, 3, 50} {
		store := must(OpenStore(t.Context(), t.TempDir()))(t)
		got := must(Transform(t.Context(), store, m, x, blocks, Run{}))(t)
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

// must is the value of a call that succeeds: must(f())(t).
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

// ok is for a call that succeeds.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
