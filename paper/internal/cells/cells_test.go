package cells

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
)

// A tenth of the cells is hidden, which depends on the seed alone. Nothing else is changed, and rows and
// columns keep two cells.
func TestHide(t *testing.T) {
	for _, size := range [][2]int{{200, 150}, {3, 400}, {400, 3}} {
		x := quantmf.NewMat(size[0], size[1])
		for i := range x.Data {
			x.Data[i] = float64(i)
		}
		holes, again, other := Hide(x, 5), Hide(x, 5), Hide(x, 6)
		hidden, differ := 0, 0
		inCol := make([]int, x.Cols)
		for i := range x.Rows {
			inRow := 0
			for j := range x.Cols {
				v := holes.At(i, j)
				if math.Float64bits(v) != math.Float64bits(again.At(i, j)) {
					t.Fatal("the same seed hides other cells")
				}
				if math.Float64bits(v) != math.Float64bits(other.At(i, j)) {
					differ++
				}
				if x.At(i, j) != float64(i*x.Cols+j) || v == v && v != x.At(i, j) {
					t.Fatal("a value was changed")
				}
				if v != v {
					hidden++
				} else {
					inRow++
					inCol[j]++
				}
			}
			if inRow < 2 {
				t.Errorf("row %d keeps %d cells", i, inRow)
			}
		}
		for j, n := range inCol {
			if n < 2 {
				t.Errorf("column %d keeps %d cells", j, n)
			}
		}
		if share := float64(hidden) / float64(len(x.Data)); x.Rows > 3 && x.Cols > 3 &&
			math.Abs(share-0.1) > 0.01 {
			t.Errorf("a share of %g is hidden", share)
		}
		if differ == 0 {
			t.Error("another seed hides the same cells")
		}
	}
}

func TestDivergences(t *testing.T) {
	x, _ := quantmf.MatOf([]float64{2, 0}, []float64{3, 1})
	holes, _ := quantmf.MatOf([]float64{math.NaN(), 0}, []float64{3, math.NaN()})
	fit, _ := quantmf.MatOf([]float64{1, 0.5}, []float64{3, 0})
	hidden, seen := Divergences(x, holes, fit)
	// 2 log 2 - 1 and, at the floor, 30 log 10 - 1; 1/2 and 0.
	if want := (2*math.Ln2 - 1 + 30*math.Ln10 - 1) / 2; math.Abs(hidden-want) > 1e-13 || seen != 0.25 {
		t.Errorf("%g and %g, want %g and 0.25", hidden, seen, want)
	}
}

func TestRanks(t *testing.T) {
	if got := Ranks([]float64{3, 1, 3, 2, 3}); !slices.Equal(got, []float64{3, 0, 3, 1, 3}) {
		t.Errorf("%v", got)
	}
	if got := Ranks([]float64{2, 1, 2}); !slices.Equal(got, []float64{1.5, 0, 1.5}) {
		t.Errorf("%v", got)
	}
}
