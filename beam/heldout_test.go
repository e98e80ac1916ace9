package beam

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam/internal/kit"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func init() {
	RegisterFit("test", func(ctx context.Context, x quantmf.Rows, rank int, spec string,
		opts ...quantmf.FitOption) (quantmf.Model, error) {
		switch spec {
		case "nmf":
			return quantmf.FitNMF(ctx, x, rank, opts...)
		case "qmf":
			return quantmf.FitQMF(ctx, x, rank,
				append(opts, quantmf.WithEpochs(1), quantmf.WithStart(quantmf.StartNMF),
					quantmf.WithShrinkage(1))...)
		}
		return nil, errors.New("a fit of no kind")
	})
}

// TestHeldOut checks that the losses of hidden cells have the same bits as those of HeldOut on one machine.
// Losses in the store are not computed again, unless they are damaged.
func TestHeldOut(t *testing.T) {
	x := kit.LowRank(40, 30)
	x.Data[77] = math.NaN()
	masks := quantmf.Masks{Repeats: 3, Share: 0.2, Seed: 5}
	for _, spec := range []string{"nmf", "qmf"} {
		want := Must(quantmf.HeldOut(t.Context(), x,
			func(ctx context.Context, x quantmf.Rows, rank int, opts ...quantmf.FitOption) (quantmf.Model,
				error) {
				return fitFuncs["test"](ctx, x, rank, spec, opts...)
			}, []quantmf.Trial{{Rank: 1}, {Rank: 3}}, masks))(t)
		folder := t.TempDir()
		store := Must(OpenStore(t.Context(), folder))(t)
		trials := []Trial{{1, spec}, {3, spec}}
		check := func(run Run) {
			t.Helper()
			got := Must(HeldOut(t.Context(), store, x, "test", trials, masks, run))(t)
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("%s, trial %d: %+v, want %+v", spec, i, got[i], want[i])
				}
			}
		}
		check(Run{Retries: -1})
		check(Run{Runner: "there is none of this name"}) // no fit is left to make
		losses, err := filepath.Glob(filepath.Join(folder, "loss-*"))
		if err != nil || len(losses) != 6 {
			t.Fatal(losses, err)
		}
		OK(t, os.Truncate(losses[2], 20))
		OK(t, os.Remove(losses[4]))
		check(Run{Retries: -1})
	}
	store := Must(OpenStore(t.Context(), t.TempDir()))(t)
	for _, c := range []struct {
		fit, spec string
		masks     quantmf.Masks
		says      string
	}{
		{"test", "none", masks, "a fit of no kind"},
		{"none", "nmf", masks, `no function is registered as "none"`},
		{"test", "nmf", quantmf.Masks{Share: 0.9}, "share"},
		{"test", "nmf", quantmf.Masks{Repeats: -1}, "repeats"},
	} {
		if _, err := HeldOut(t.Context(), store, x, c.fit, []Trial{{2, c.spec}}, c.masks,
			Run{Retries: -1}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %s", c, err, c.says)
		}
	}
}
