package fit

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// mapped is a matrix whose rows change once they have been read as often as says.
type changing struct {
	Dense
	row   int
	often *int
}

func (c changing) ReadRow(x []float64, i int) error {
	c.Dense.ReadRow(x, i)
	if i == c.row {
		if *c.often--; *c.often < 0 {
			x[0] = math.NaN()
			if *c.often == -2 {
				x[0] = 77
			}
		}
	}
	return nil
}

// weighed returns a matrix of d × n and weights of cells and samples.
func weighed(d, n int) (x, w Dense, samples []float64) {
	x, w, samples = NewDense(d, n), NewDense(d, n), make([]float64, n)
	for i := range x.Data {
		x.Data[i] = 1 + float64(i*7%13)
		w.Data[i] = float64(i*5%11) / 3
		samples[i%n] = float64(1 + i%n%4)
	}
	x.Data[n] = math.NaN() // row 1, whose weight is 0
	w.Data[n] = 0
	return x, w, samples
}

// TestWeigh: weights are those of cells by those of samples, of mean 1 over the visible cells and over the
// held-out ones, and 0 in hidden cells; what is held out is judged by them.
func TestWeigh(t *testing.T) {
	const d, n = 17, 230
	x, w, samples := weighed(d, n)
	for name, weights := range map[string]*Weights{
		"cells": {Cells: w}, "samples": {Samples: samples}, "both": {Cells: w, Samples: samples},
	} {
		for _, share := range []float64{0, 0.3} {
			c := Must(Read(Source{Dense: x}, Rules{Loss: divergence.KL, Validation: share, Seed: 3,
				Hash: true, Weights: weights, Missing: name == "samples"}))(t)
			c.Pool = Workers(t, 1)
			OK(t, c.SetUnits(false))
			row, own, observed, ones := make([]float64, n), make([]float64, n), make([]bool, n),
				make([]float64, n)
			for j := range ones {
				ones[j] = 1 + float64(j)/n
			}
			visible, held, total, judged := 0.0, 0.0, 0.0, 0.0
			for i := range d {
				seen := c.ReadRow(row, observed, i)
				c.Weigh(own, seen, i)
				judged += c.HeldLoss(divergence.KL, ones, i, 1e-9, make([]float64, n))
				for j, v := range x.Row(i) {
					want := 1.0
					if weights.Cells != nil {
						want = w.Row(i)[j]
					}
					if weights.Samples != nil {
						want *= samples[j]
					}
					hidden := want == 0 || v != v
					switch {
					case hidden || c.IsHeld(i, j):
						if own[j] != 0 || seen[j] {
							t.Fatalf("%s: a hidden cell has %v", name, own[j])
						}
						if !hidden {
							held += want
							total += want * divergence.KL.Value(v, ones[j], 1e-9)
						}
					default:
						visible += own[j]
						Near(t, own[j]/want, c.weightUnit, 1e-12*c.weightUnit, "%s: the unit of a weight",
							name)
					}
				}
			}
			Near(t, visible, float64(c.Visible), 1e-9*visible, "%s: the weight of the visible cells", name)
			if share > 0 {
				Near(t, judged/float64(c.HeldOut), total/held, 1e-12*total/held,
					"%s: the loss of held-out cells", name)
			}
		}
	}
}

// TestBadWeights: what is no weight is an error that says where, as are a NaN where a weight is not 0, and
// weights that change while they are read again.
func TestBadWeights(t *testing.T) {
	const d, n = 9, 12
	for says, change := range map[string]func(x, w Dense){
		"row 3, column 4, value -1: a cell weight must be at least 0": func(_, w Dense) { w.Row(3)[4] = -1 },
		"row 2, column 1, value NaN: a cell weight must be at least 0": func(_,
			w Dense) {
			w.Row(2)[1] = math.NaN()
		},
		"row 8, column 0, value +Inf: a cell weight must": func(_,
			w Dense) {
			w.Row(8)[0] = math.Inf(1)
		},
		"row 5, value NaN: the row has no observed cell": func(_, w Dense) { clear(w.Row(5)) },
		"column 6, value NaN: the column has no observed cell": func(_, w Dense) {
			for i := range d {
				w.Row(i)[6] = 0
			}
		},
		"row 4, column 7, value NaN: x must be finite": func(x, w Dense) {
			x.Row(4)[7],
				w.Row(4)[7] = math.NaN(), 1
		},
		"row 4, column 7, value -3: x must not be negative": func(x, w Dense) {
			x.Row(4)[7], w.Row(4)[7] = -3,
				1
		},
	} {
		x, w, _ := weighed(d, n)
		change(x, w)
		_, err := Read(Source{Dense: x}, Rules{Loss: divergence.KL, Weights: &Weights{Cells: w}})
		var data *DataError
		if !errors.As(err, &data) || !strings.HasPrefix(err.Error(), "quantmf: "+says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	for often := range 8 {
		x, w, _ := weighed(d, n)
		count := often
		weights := &Weights{Cells: changing{w, 5, &count}}
		c, err := Read(Source{Dense: x}, Rules{Loss: divergence.KL, Weights: weights})
		if err == nil {
			c.Pool = Workers(t, 1)
			row, own, observed := make([]float64, n), make([]float64, n), make([]bool, n)
			for range 4 {
				c.Weigh(own, c.ReadRow(row, observed, 5), 5)
			}
			for _, v := range own {
				if !(v >= 0) {
					t.Errorf("a weight of %v", v)
				}
			}
			err = c.Pool.Failed()
		}
		var data *DataError
		if !errors.As(err, &data) || data.Row != 5 {
			t.Errorf("%d: %v", often, err)
		}
	}
}
