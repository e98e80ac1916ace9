package shards

import (
	"errors"
	"math"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestShardLastIsBest: a fit whose last epoch is the best on held-out cells ends with the factors of that
// epoch, which no step has kept any more.
func TestShardLastIsBest(t *testing.T) {
	x := quantmf.NewMat(40, 30)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, float64((1+i%5)*(1+j%7)+(1+i%3)*(j%2)*9)+0.1*float64((i*j)%3))
		}
	}
	for name, updates := range map[string]quantmf.Updates{"Newton": quantmf.UpdatesNewton,
		"multiplicative": quantmf.UpdatesMultiplicative} {
		opts := []quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithValidation(0.2),
			quantmf.WithUpdates(updates)}
		one, err := quantmf.FitNMF(t.Context(), x, 2, opts...)
		if err != nil || one.Best != 2 {
			t.Fatalf("%s: epoch %d of 2 is the best: %v", name, one.Best, err)
		}
		s := newShelf(t)
		OK(t, PlanNMF(t.Context(), s, 2, x, 2, opts...))
		EqualAll(t, marshalled(t, finish(t, s)), marshalled(t, one),
			"%s: the model is not that of one machine", name)
	}
}

// TestShardBestBeyondHistory: a round whose best epoch has no loss in the journal is damaged.
func TestShardBestBeyondHistory(t *testing.T) {
	s := newShelf(t)
	OK(t, PlanNMF(t.Context(), s, 2, tabled(40, 20), 2, quantmf.WithEpochs(9),
		quantmf.WithValidation(0.2)))
	fit := Must(Open(s))(t)
	rounds(t, fit, 3)
	const best = 5 // of the numbers of STAT
	const name = "round-000003"
	s.blobs[name] = altered(s.blobs[name], "STAT", best, 8)
	var format *quantmf.FormatError
	if _, err := fit.readRound(3); !errors.As(ofBlobs(err), &format) {
		t.Errorf("the best of 3 epochs is the eighth: %v", err)
	}
}

// TestShardMinusZero: a matrix in which some zeros are -0 is the same plan as one in which they are 0, listed
// or not, and has the model of one machine.
func TestShardMinusZero(t *testing.T) {
	for name, zeros := range map[string]int{"listed": 3, "in full": 9} {
		x := tabled(33, 12)
		for i := range x.Rows {
			for j := range x.Cols {
				if zeros == 3 && (i+j)%3 > 0 || (i+j)%zeros == 0 {
					x.Set(i, j, 0)
				}
			}
		}
		clear(x.Row(4)) // its level is 0
		y := x.Clone()
		for i, v := range y.Data {
			if v == 0 {
				y.Data[i] = math.Copysign(0, -1)
			}
		}
		opts := []quantmf.FitOption{quantmf.WithEpochs(1), quantmf.WithStart(quantmf.StartNMF),
			quantmf.WithShrinkage(0), quantmf.WithBatch(100)}
		one := Must(quantmf.FitQMF(t.Context(), y, 2, opts...))(t)
		s := newShelf(t)
		for _, z := range []quantmf.Mat{x, y} { // the shelf wants the same bytes
			OK(t, PlanQMF(t.Context(), s, 2, z, 2, opts...))
		}
		EqualAll(t, marshalled(t, finish(t, s)), marshalled(t, one),
			"%s: the model is not that of one machine", name)
	}
}
