package quantmf

// This file tests matrices that are no Mat: the same numbers lead to the same bits, and what cannot be
// read is an error.

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// rowsOf hides what a matrix is, so that it is read row by row.
type rowsOf struct{ Rows }

// SparseOf lists the numbers of x other than 0.
func SparseOf[F float32 | float64](t testing.TB, x Mat) *Sparse {
	t.Helper()
	start, index, values := []int{0}, []uint32{}, []F{}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v != 0 {
				index, values = append(index, uint32(j)), append(values, F(v))
			}
		}
		start = append(start, len(index))
	}
	return Must(NewSparse(x.Cols, start, index, values))(t)
}

// Holders are other ways to hold the numbers of x, which are exact in single precision.
func Holders(t testing.TB, x Mat) map[string]Rows {
	single := Mat32{Rows: x.Rows, Cols: x.Cols, Stride: x.Cols + 3, Data: make([]float32, x.Rows*(x.Cols+3))}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			single.Data[i*single.Stride+j] = float32(v)
		}
	}
	return map[string]Rows{"rows": rowsOf{x}, "sparse": SparseOf[float64](t, x),
		"sparse, single": SparseOf[float32](t, x), "single": single}
}

// SparseCounts is a sparse matrix of whole numbers, of which no row and no column is empty.
func SparseCounts(d, n int, seed uint64) Mat {
	x, src := NewMat(d, n), random.Split(seed, 0)
	for i := range d {
		for j := range n {
			if src.Float64() < 0.3 || i%n == j || j%d == i {
				x.Set(i, j, math.Floor(1+float64(4/(0.1+src.Float64())*float64(1+i%3))))
			}
		}
	}
	return x
}

// TestHeldOutHolders: HeldOut hides the same cells whatever holds x.
func TestHeldOutHolders(t *testing.T) {
	x := SparseCounts(16, 20, 3)
	trials, masks := []Trial{{Rank: 2, Options: []FitOption{WithEpochs(2)}},
		{Rank: 3, Options: []FitOption{WithEpochs(2)}}}, Masks{Repeats: 2, Seed: 7}
	for _, method := range []Method{MethodNMF, MethodQMF} {
		held := func(x Rows) []Prediction {
			return Hidden(t, x, By(method), trials, masks)
		}
		want := held(x)
		for holder, h := range Holders(t, x) {
			if testing.Short() && holder != "sparse" {
				continue
			}
			if got := held(h); !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %s: %v, want %v", method, holder, got, want)
			}
		}
	}
}

// TestBadSparse: what is no matrix is an error.
func TestBadSparse(t *testing.T) {
	var shape *ShapeError
	var data *DataError
	for _, start := range [][]int{nil, {0}, {1, 2}, {0, 1}, {0, 2, 1, 2}, {0, 3, 2}, {0, -1, 2}} {
		if s, err := NewSparse(3, start, []uint32{0, 1}, []float64{1, 2}); s != nil ||
			!errors.As(err, &shape) {
			t.Errorf("start %v: %v, %v", start, s, err)
		}
	}
	for _, index := range [][]uint32{{0, 0}, {1, 0}, {0, 3}, {math.MaxUint32, 0}} {
		if s, err := NewSparse(3, []int{0, 2}, index, []float32{1, 2}); s != nil || !errors.As(err, &data) ||
			data.Row != 0 {
			t.Errorf("index %v: %v, %v", index, s, err)
		}
	}
	if s, err := NewSparse(3, []int{0, 1}, []uint32{0}, []float32{1, 2}); s != nil ||
		!errors.As(err, &shape) {
		t.Errorf("values: %v, %v", s, err)
	}
	if s, err := NewSparse(0, []int{0, 0}, nil, []float32{}); s != nil || !errors.As(err, &shape) {
		t.Errorf("no columns: %v, %v", s, err)
	}
}

// TestRowsMemory: no fit of rows holds d × n numbers, but where its doc says so.
func TestRowsMemory(t *testing.T) {
	if !Long {
		t.Skip("QUANTMF_LONG is not set: some seconds of sorting")
	}
	cells := qmf.MostHeld
	defer func() { qmf.MostHeld = cells }()
	qmf.MostHeld = 0
	x := SparseCounts(2000, 1000, 1) // room for samples is larger than that for rows
	for i := range x.Data {
		if i%7 == 3 {
			x.Data[i] = -x.Data[i]
		}
	}
	all := uint64(8 * len(x.Data))
	signed := []FitOption{WithLoss(Frobenius), WithStart(StartScores), WithShrinkage(0), WithLine(0)}
	y := x.Clone()
	for i, v := range y.Data {
		y.Data[i] = math.Abs(v)
	}
	bound := func(name string, method Method, x Mat, opts ...FitOption) {
		got := allocated(func() {
			Fitted(t, By(method), rowsOf{x}, 2, append(opts, WithEpochs(1), WithWorkers(1))...)
		})
		t.Logf("%s: %d bytes allocated in all, %d of numbers", name, got, all)
		if got > all/2 {
			t.Errorf("%s: %d bytes allocated, x has %d", name, got, all)
		}
	}
	bound("NMF", MethodNMF, y, WithValidation(0.1))
	bound("QMF", MethodQMF, x, signed...)
	bound("QMF, held out", MethodQMF, x, append(signed, WithValidation(0.1))...)
	for m := range MethodBQMF + 1 {
		got := Must(MemoryOf(m, 20000, 100000, 10))(t)
		numbers := int64(8 * 20000 * 100000)
		if most := got.Rows > numbers; most != (m == MethodQMFQ || m == MethodBQMF) {
			t.Errorf("%v: %+v", m, got)
		}
		t.Logf("%v of 20000 × 100000: %.3g GiB of rows, %.3g of a Mat", m, float64(got.Rows)/(1<<30),
			float64(got.Fit)/(1<<30))
	}
}
