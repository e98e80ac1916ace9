package quantmf

// Tests of which cells a fit looks at and in which units: hidden cells, units of the matrix
// and of a row, values of either sign.

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestValidationOfConstants: a row that is constant but for hidden cells counts
// among the held-out cells before the first epoch as after it.
func TestValidationOfConstants(t *testing.T) {
	x := first(toy(4), 32)
	for i := range 20 {
		clear(x.Row(i))
		x.Set(i, i, 3)
	}
	m := Fitted(t, FitQMF, x, 2, WithValidation(0.3), WithEpochs(0))
	c := qmfDefaults()
	c.Validation = 0.3
	hidden := Must(newCells(x, &c.Settings))(t)
	want, alone := 0.0, 0
	fit := m.Reconstruct()
	for i := range x.Rows {
		want += hidden.HeldLoss(divergence.KL, fit.Row(i), i, divergence.LeastT, nil)
		if i < 20 && hidden.IsHeld(i, i) {
			alone++
		}
	}
	if want /= float64(hidden.HeldOut); alone == 0 || math.Abs(m.Validation[0]-want) > 1e-9*want {
		t.Errorf("%d such rows; Validation %v, the model's own loss %v", alone, m.Validation[0], want)
	}
}

func TimesPower(x Mat, e int) Mat {
	y := x.Clone()
	for i, v := range y.Data {
		y.Data[i] = math.Ldexp(v, e)
	}
	return y
}

// TestRowsApart: maps take a row up to 2^100 below the largest, and say of a smaller one that it should be
// rescaled; an NMF takes any.
func TestRowsApart(t *testing.T) {
	x := near1(5, 14, 40)
	largest := slices.Max(x.Data)
	for _, below := range []float64{0x1p-99, 0x1p-101, 0x1p-700} {
		y := x.Clone()
		by := below * largest / slices.Max(x.Row(3))
		for j, v := range y.Row(3) {
			y.Set(3, j, v*by)
		}
		for method := range MethodBQMF {
			t.Run(method.String()+" "+ftoa(below), func(t *testing.T) {
				m, err := Fit(t.Context(), method, y, 3, append(quick(method), WithEpochs(3))...)
				if method == MethodNMF || below > 0x1p-100 {
					OK(t, err)
					allFinite(t, method.String(), m, y)
					return
				}
				var bad *DataError
				if !errors.As(err, &bad) || bad.Row != 3 || !strings.Contains(bad.Problem, "rescale") {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// TestRatioBesideMissing: a missing cell does not lift the bound on ratios under β <= 0.
func TestRatioBesideMissing(t *testing.T) {
	x := NewMat(4, 5)
	for i := range x.Data {
		x.Data[i] = float64(1 + i)
	}
	x.Set(1, 2, 1e-40)
	for _, hole := range []int{0, 19} { // before the largest and after it
		y := x.Clone()
		y.Data[hole] = math.NaN()
		_, err := FitNMF(t.Context(), y, 2, WithLoss(Beta(0)), WithMissingValues())
		if !DataAt(err, 1, 2) {
			t.Errorf("a missing cell at %d: %v", hole, err)
		}
	}
}

// TestNearlyZero: under a β a little above 0 a value that vanishes beside the others is refused as
// 0 is: its divergence would be 1/β.
func TestNearlyZero(t *testing.T) {
	for _, v := range []float64{0, 5e-324, 1e-61, 1e-40} {
		x, _ := MatOf([]float64{1, 1, v, 1}, []float64{1, 1, 1, 24})
		for _, beta := range []float64{6.9e-322, 1e-300, 1e-10} {
			m, err := FitNMF(t.Context(), x, 1, WithLoss(Beta(beta)), WithEpochs(3))
			if !DataAt(err, 0, 2) {
				t.Errorf("%g under β = %g: %v, %+v", v, beta, err, m)
			}
		}
	}
}
