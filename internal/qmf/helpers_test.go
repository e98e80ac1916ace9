package qmf

// This file holds what the tests of fits share.

import (
	"testing"

	"github.com/quantmf/quantmf/internal/fit"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// matrix is a matrix that tests make cell by cell.
type matrix struct{ fit.Dense }

func newMatrix(rows, cols int) matrix    { return matrix{fit.NewDense(rows, cols)} }
func (x matrix) at(i, j int) float64     { return x.Row(i)[j] }
func (x matrix) set(i, j int, v float64) { x.Row(i)[j] = v }
func matrixOf(rows, cols int, v []float64) matrix {
	return matrix{fit.Dense{Rows: rows, Cols: cols, Data: v, Stride: cols}}
}

func (x matrix) clone() matrix {
	y := newMatrix(x.Dims())
	for i := range x.Rows {
		copy(y.Row(i), x.Row(i))
	}
	return y
}

// toy is the first rows of the paper's synthetic problem.
func toy(seed, rows int) matrix { return matrixOf(rows, 80, Toy(seed)[:rows*80]) }

// scores returns d × n log ratios of mixed sign; the last row is constant.
func scores(seed uint64, d, n int) matrix { return matrixOf(d, n, Curves(seed, d, n)) }

// drawn is a d × n matrix of numbers that are drawn row by row.
func drawn(d, n int, draw func() float64) matrix {
	x := newMatrix(d, n)
	for i := range x.Data {
		x.Data[i] = draw()
	}
	return x
}

// times is UV.
func times(u, v matrix) matrix {
	x := newMatrix(u.Rows, v.Cols)
	for i := range x.Rows {
		for c, a := range u.Row(i) {
			for j, b := range v.Row(c) {
				x.Row(i)[j] += float64(a * b)
			}
		}
	}
	return x
}

// holed returns x with about a share of its cells NaN.
func holed(x matrix, share float64) matrix {
	y := x.clone()
	Hole(y.Data, share)
	return y
}

// cellsOf reads x, and returns the cells that a fit with these settings sees.
func cellsOf(x matrix, s *Settings) (*fit.Cells, error) {
	return fit.Read(fit.Source{Dense: x.Dense}, s.Rules())
}

// silent is a run of a fit on so many workers that reports nothing, until the test ends.
func silent(t testing.TB, workers int, seed uint64) fit.Run {
	return fit.Run{Pool: Workers(t, workers), Seed: seed, Progress: fit.Silent(t.Context())}
}
