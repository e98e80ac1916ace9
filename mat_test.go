package quantmf

// Tests of Mat: views, clones, indices, and matrices of rows.

import (
	"errors"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestMat(t *testing.T) {
	m := Must(MatOf([]float64{1, 2, 3}, []float64{4, 5, 6}))(t)
	view := Mat{Rows: 2, Cols: 2, Data: m.Data[1:], Stride: 3}
	if view.At(1, 1) != 6 || view.check("view") != nil {
		t.Errorf("view: %v", view)
	}
	c := view.Clone()
	view.Set(0, 0, 9)
	if c.At(0, 0) != 2 || m.At(0, 1) != 9 || c.Stride != 2 {
		t.Errorf("clone %v, matrix %v", c, m)
	}
	if r, k := m.Dims(); r != 2 || k != 3 {
		t.Errorf("dims %d, %d", r, k)
	}
	for _, f := range []func(){func() { m.At(2, 0) }, func() { m.At(0, 3) }, func() { view.At(0, 2) },
		func() { m.Row(-1) }, func() { m.At(0, -1) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("an index out of range does not panic")
				}
			}()
			f()
		}()
	}
}

// TestEmptyRows: rows without numbers make the empty matrix.
func TestEmptyRows(t *testing.T) {
	for _, rows := range [][][]float64{nil, {{}}, {{}, {}}, {nil, {}}} {
		if m, err := MatOf(rows...); err != nil || m.Rows != 0 || m.Cols != 0 {
			t.Errorf("%v: %v, %v", rows, m, err)
		}
	}
	var shape *ShapeError
	for _, rows := range [][][]float64{{{}, {1}}, {{1}, {}}} {
		if _, err := MatOf(rows...); !errors.As(err, &shape) {
			t.Errorf("%v: %v", rows, err)
		}
	}
}
