package shards

import (
	"errors"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestNoWeights: a plan refuses weights by a typed error that names the option.
func TestNoWeights(t *testing.T) {
	x := tabled(40, 12)
	samples := slices.Repeat([]float64{1}, 12)
	for want, o := range map[string]quantmf.FitOption{"WithSampleWeights": quantmf.WithSampleWeights(samples),
		"WithCellWeights": quantmf.WithCellWeights(x)} {
		for _, plan := range plans {
			var bad *quantmf.OptionError
			err := plan(t.Context(), newShelf(t), 2, x, 2, o)
			if !errors.As(err, &bad) || bad.Option != want {
				t.Errorf("%s: %v", want, err)
			}
		}
	}
}
