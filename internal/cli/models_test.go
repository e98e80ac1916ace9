package cli

import (
	"fmt"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestBeside: two matrices side by side.
func TestBeside(t *testing.T) {
	a, b := quantmf.Mat{Rows: 2, Cols: 1, Stride: 1, Data: []float64{1, 2}},
		quantmf.Mat{Rows: 2, Cols: 2, Stride: 2, Data: []float64{3, 4, 5, 6}}
	if m := beside(a, b); m.Rows != 2 || m.Cols != 3 || fmt.Sprint(m.Row(0), m.Row(1)) != "[1 3 4] [2 5 6]" {
		t.Errorf("%v", m)
	}
}
