package main

import (
	"io"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestGonum: a matrix goes in and out without a copy, and the coordinates predict an outcome that the
// principal components of the same metrics do not.
func TestGonum(t *testing.T) {
	d := mat.NewDense(2, 3, nil)
	m := Of(d.Slice(0, 2, 1, 3).(*mat.Dense))
	m.Set(1, 1, 7)
	if d.At(1, 2) != 7 || m.Stride != 3 {
		t.Error("Of makes a copy")
	}
	Dense(m).Set(0, 0, 5)
	if m.At(0, 0) != 5 || d.At(0, 1) != 5 {
		t.Error("Dense makes a copy")
	}
	byBQMF, byPCA, err := run(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if byBQMF < 0.9 || byPCA > byBQMF-0.25 {
		t.Errorf("R² %.3f by a BQMF, %.3f by principal components", byBQMF, byPCA)
	}
}
