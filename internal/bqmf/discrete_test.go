package bqmf

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestLattice: what divides all differences, in any unit; nothing for numbers that were measured or rounded
// to decimals, and for ranges of too many steps.
func TestLattice(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{0, 1}, 1}, {[]float64{3, 9, 15, 27}, 6}, {[]float64{-2, -0.5, 0, 4}, 0.5},
		{[]float64{0.1, 0.2, 0.3, 0.4, 0.7}, 0}, {[]float64{0.17, 0.9, math.Pi, 4.1}, 0},
		{[]float64{0, 1, 3e6}, 0}, {[]float64{1e15, 1e15 + 2, 1e15 + 8}, 2},
	} {
		for _, unit := range []float64{1, 0x1p-300, 0x1p40} {
			x := make([]float64, len(c.x))
			for k, v := range c.x {
				x[k] = v * unit
			}
			Equal(t, lattice(x), c.want*unit, "%v in units of %v", c.x, unit)
		}
	}
}
