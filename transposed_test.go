package quantmf_test

// This file tests transposed matrices.

import (
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
)

// TestTransposed: entry (i, j) is entry (j, i) of the transposed matrix, of a Mat and of a Sparse in either
// precision, with empty rows and columns; twice transposed is the same matrix.
func TestTransposed(t *testing.T) {
	t.Parallel()
	const d, n = 37, 19
	x := NewMat(d, n)
	for i := range d {
		for j := range n {
			if (i*7+j*5)%6 == 0 && i != 3 && j != 18 {
				x.Set(i, j, either(j == 4, math.Inf(1), float64(i-2*j)))
			}
		}
	}
	row, back := make([]float64, d), make([]float64, n)
	for what, s := range map[string]*Sparse{"double": SparseOf[float64](t, x),
		"single": SparseOf[float32](t, x)} {
		turned := s.T()
		if rows, cols := turned.Dims(); rows != n || cols != d || turned.Listed() != s.Listed() {
			t.Fatalf("%s: %d × %d with %d listed", what, rows, cols, turned.Listed())
		}
		for j := range n {
			if err := turned.ReadRow(row, j); err != nil || !slices.Equal(row, x.T().Row(j)) {
				t.Errorf("%s, row %d: %v", what, j, row)
			}
			if cols, _ := turned.NonZeros(j, nil, nil); !slices.IsSorted(cols) {
				t.Errorf("%s, row %d: columns %v", what, j, cols)
			}
		}
		for i := range d {
			if err := turned.T().ReadRow(back, i); err != nil || !slices.Equal(back, x.Row(i)) {
				t.Errorf("%s, row %d of twice transposed: %v", what, i, back)
			}
		}
	}
	if (*Sparse)(nil).T() != nil {
		t.Error("a nil Sparse")
	}
	if d, n := new(Sparse).T().Dims(); d != 0 || n != 0 {
		t.Errorf("the zero Sparse: %d × %d", d, n)
	}
}
