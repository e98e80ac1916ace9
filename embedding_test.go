package quantmf_test

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestEmbedding: distances between its columns are those between columns of UV, also where components are
// alike, and it has no more rows than components are alive.
func TestEmbedding(t *testing.T) {
	t.Parallel()
	x := bentTable(25, 40, 1)
	for _, rank := range []int{1, 3, 12} {
		m := Fitted(t, FitBQMF, x, rank)
		e := m.Embedding()
		if e.Rows < 1 || e.Rows > m.Rank() || e.Cols != 40 {
			t.Fatalf("rank %d: %d × %d", rank, e.Rows, e.Cols)
		}
		u, v := m.Factors()
		distance := func(rows int, at func(i, j int) float64, j, l int) float64 {
			sum := 0.0
			for i := range rows {
				off := at(i, j) - at(i, l)
				sum += off * off
			}
			return math.Sqrt(sum)
		}
		product := func(i, j int) float64 {
			w := 0.0
			for c := range u.Cols {
				w += u.At(i, c) * v.At(c, j)
			}
			return w
		}
		for j := range 40 {
			got, want := distance(e.Rows, e.At, j, (7*j+3)%40), distance(25, product, j, (7*j+3)%40)
			Close(t, got, want, 1e-6, "rank %d: from sample %d to %d", rank, j, (7*j+3)%40)
		}
		m.U.Set(0, 0, 99)
		if e := m.Embedding(); e.Rows != 0 {
			t.Error("a changed model has an embedding")
		}
	}
	if e := new(BQMF).Embedding(); e.Rows != 0 {
		t.Error("the zero model has an embedding")
	}
}
