package shards

import (
	"errors"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestNoWeights: a plan refuses weights by a typed error that names the option.
func TestNoWeights(t *testing.T) {
	x := tabled(40, 12)
	samples := make([]float64, 12)
	for j := range samples {
		samples[j] = 1
	}
	for want, o := range map[string]quantmf.FitOption{"WithSampleWeights": quantmf.WithSampleWeights(samples),
		"WithCellWeights": quantmf.WithCellWeights(x)} {
		var bad *quantmf.OptionError
		if err := PlanNMF(t.Context(), newShelf(t), 2, x, 2, o); !errors.As(err, &bad) || bad.Option != want {
			t.Errorf("%s: %v", want, err)
		}
		if err := PlanQMF(t.Context(), newShelf(t), 2, x, 2, o); !errors.As(err, &bad) || bad.Option != want {
			t.Errorf("%s: %v", want, err)
		}
	}
}
