package quantmf

// This file tests matrices that are no Mat: the same numbers lead to the same bits, and what cannot be
// read is an error.

import (
	"bytes"
	"context"
	"errors"
	stdmaps "maps"
	"math"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/random"
)

// rowsOf hides what a matrix is, so that it is read row by row.
type rowsOf struct{ Rows }

// sparseOf lists the numbers of x other than 0.
func sparseOf[F float32 | float64](t testing.TB, x Mat) *Sparse {
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
	s, err := NewSparse(x.Cols, start, index, values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// holders are other ways to hold the numbers of x, which are exact in single precision.
func holders(t testing.TB, x Mat) map[string]Rows {
	single := Mat32{Rows: x.Rows, Cols: x.Cols, Stride: x.Cols + 3, Data: make([]float32, x.Rows*(x.Cols+3))}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			single.Data[i*single.Stride+j] = float32(v)
		}
	}
	return map[string]Rows{"rows": rowsOf{x}, "sparse": sparseOf[float64](t, x),
		"sparse, single": sparseOf[float32](t, x), "single": single}
}

// sparseCounts is a sparse matrix of whole numbers, of which no row and no column is empty.
func sparseCounts(d, n int, seed uint64) Mat { return countsOf(d, n, seed, 0.3) }

// countsOf has about that share of numbers other than 0.
func countsOf(d, n int, seed uint64, share float64) Mat {
	x, src := NewMat(d, n), random.Split(seed, 0)
	for i := range d {
		for j := range n {
			if src.Float64() < share || i%n == j || j%d == i {
				x.Set(i, j, math.Floor(1+4/(0.1+src.Float64())*float64(1+i%3)))
			}
		}
	}
	return x
}

// TestHolders: a fit has the same bits whatever holds its numbers, its checkpoints too.
func TestHolders(t *testing.T) {
	missing := func(x Mat) Mat {
		src := random.Split(5, 0)
		for i := range x.Data {
			if src.Float64() < 0.1 {
				x.Data[i] = math.NaN()
			}
		}
		return x
	}
	times := func(x Mat, by float64) Mat {
		for i := range x.Data {
			x.Data[i] *= by
		}
		return x
	}
	signed := func(x Mat) Mat {
		for i := range x.Data {
			if i%7 == 3 {
				x.Data[i] = -x.Data[i]
			}
		}
		return x
	}
	tall := sparseCounts(300, 11, 4) // whose scores are not held
	cells, samples := mostHeld, startSamples
	t.Cleanup(func() { mostHeld, startSamples = cells, samples })
	mostHeld, startSamples = 3000, 14 // the starts of 56 columns or more are those of some of them
	cases := map[string]struct {
		x      Mat
		opts   []FitOption
		models []string
	}{
		"counts":       {sparseCounts(40, 53, 1), nil, []string{"NMF", "QMF", "QMFQ", "BQMF"}},
		"whole blocks": {sparseCounts(40, 64, 2), nil, nil},
		"missing":      {missing(sparseCounts(40, 53, 1)), []FitOption{WithMissingValues()}, nil},
		"validation": {missing(sparseCounts(40, 64, 2)),
			[]FitOption{WithMissingValues(), WithValidation(0.1)}, []string{"NMF", "QMF", "QMFQ", "BQMF"}},
		"large": {times(sparseCounts(40, 53, 1), 0x1p110), []FitOption{WithValidation(0.1)},
			nil},
		"signed": {signed(sparseCounts(40, 53, 1)), []FitOption{WithLoss(Frobenius)},
			[]string{"QMF", "QMFQ"}},
		"signed, validation": {missing(signed(sparseCounts(40, 53, 1))),
			[]FitOption{WithLoss(Frobenius), WithMissingValues(), WithValidation(0.1)},
			[]string{"QMF", "QMFQ"}},
		"Frobenius": {sparseCounts(40, 64, 1), []FitOption{WithLoss(Frobenius)}, nil},
		"beta":      {sparseCounts(40, 53, 1), []FitOption{WithLoss(Beta(0.5))}, nil},
		"updates": {sparseCounts(40, 53, 1), []FitOption{WithUpdates(UpdatesMultiplicative)},
			[]string{"NMF"}},
		"thin": {countsOf(40, 153, 3, 0.05), nil, []string{"NMF", "QMF", "QMFQ"}},
		"thin, updates": {countsOf(40, 64, 3, 0.1),
			[]FitOption{WithUpdates(UpdatesMultiplicative), WithPenalty(0.1)}, []string{"NMF"}},
		"thin, large": {times(countsOf(40, 53, 3, 0.05), 0x1p110), []FitOption{WithStart(StartSVD)},
			[]string{"NMF"}},
		"updates, missing": {missing(sparseCounts(40, 64, 1)),
			[]FitOption{WithUpdates(UpdatesMultiplicative), WithMissingValues(), WithValidation(0.1)},
			[]string{"NMF"}},
		"singular vectors": {missing(sparseCounts(40, 53, 1)),
			[]FitOption{WithStart(StartSVD), WithMissingValues()}, []string{"NMF"}},
		"uniform": {sparseCounts(40, 53, 1), []FitOption{WithStart(StartUniform)},
			[]string{"QMF", "QMFQ"}},
		"own NMF": {sparseCounts(40, 53, 1), []FitOption{WithStart(StartNMF)}, []string{"QMF"}},
		"one batch": {sparseCounts(40, 53, 1), []FitOption{WithBatch(1000), WithRestarts(2)},
			[]string{"QMF"}},
		"tall": {tall, []FitOption{WithStart(StartScores)}, []string{"QMF"}},
		"tall, missing": {missing(tall.Clone()), []FitOption{WithMissingValues(), WithValidation(0.1)},
			[]string{"QMF"}},
		"tall, signed": {signed(tall.Clone()), []FitOption{WithStart(StartScores), WithLoss(Frobenius)},
			[]string{"QMF"}},
	}
	for turn, name := range slices.Sorted(stdmaps.Keys(cases)) {
		c := cases[name]
		if c.models == nil {
			c.models = []string{"NMF", "QMF", "QMFQ"}
		}
		for k, model := range c.models {
			if testing.Short() && k != turn%len(c.models) && model != "BQMF" { // a model for each
				continue
			}
			// Each is held in two of the four ways, one of them sparse; a QMFQ, and all under -short, in one
			// of them.
			ways := [][]string{{"sparse", "single"}, {"rows", "sparse, single"}, {"single", "sparse"},
				{"sparse, single", "rows"}}[(turn+k)%4]
			if testing.Short() || !long && model == "QMFQ" {
				ways = ways[:1]
			} else if long {
				ways = []string{"rows", "sparse", "sparse, single", "single"}
			}
			t.Run(model+"/"+name, func(t *testing.T) {
				t.Parallel()
				fit := func(x Rows, workers int) (file, state []byte) {
					opts := append([]FitOption{WithEpochs(3), WithWorkers(workers),
						WithCheckpoint(2, func(s []byte) error { state = s; return nil })}, c.opts...)
					var m Model
					var err error
					switch model {
					case "NMF":
						m, err = FitNMF(t.Context(), x, 3, opts...)
					case "QMF":
						m, err = FitQMF(t.Context(), x, 3, opts...)
					case "QMFQ":
						m, err = FitQMFQ(t.Context(), x, 3, opts...)
					case "BQMF":
						m, err = FitBQMF(t.Context(), x, 3, opts...)
					}
					if err != nil {
						t.Fatal(err)
					}
					if file, err = m.MarshalBinary(); err != nil {
						t.Fatal(err)
					}
					return file, state
				}
				file, state := fit(c.x, 1)
				all := holders(t, c.x)
				for _, holder := range ways {
					f, s := fit(all[holder], 2)
					if !bytes.Equal(f, file) {
						t.Errorf("%s: another model", holder)
					}
					if !bytes.Equal(s, state) {
						t.Errorf("%s: another state", holder)
					}
				}
			})
		}
	}
}

// TestHeldOutHolders: HeldOut hides the same cells whatever holds x.
func TestHeldOutHolders(t *testing.T) {
	x := sparseCounts(30, 40, 3)
	trials, masks := []Trial{{Rank: 2, Options: []FitOption{WithEpochs(2)}},
		{Rank: 3, Options: []FitOption{WithEpochs(2)}}}, Masks{Repeats: 2, Seed: 7}
	for name, fit := range map[string]func(x Rows) ([]Prediction, error){
		"NMF": func(x Rows) ([]Prediction, error) { return HeldOut(t.Context(), x, FitNMF, trials, masks) },
		"QMF": func(x Rows) ([]Prediction, error) { return HeldOut(t.Context(), x, FitQMF, trials, masks) },
	} {
		var want []Prediction
		var err error
		if name == "NMF" {
			want, err = HeldOut(t.Context(), x, FitNMF, trials, masks)
		} else {
			want, err = HeldOut(t.Context(), x, FitQMF, trials, masks)
		}
		if err != nil {
			t.Fatal(err)
		}
		for holder, h := range holders(t, x) {
			if testing.Short() && holder != "sparse" {
				continue
			}
			got, err := fit(h)
			if err != nil {
				t.Fatal(holder, err)
			}
			for k := range want {
				for r, l := range want[k].Losses {
					if got[k].Losses[r] != l {
						t.Errorf("%s, %s: trial %d, repeat %d: %v, want %v", name, holder, k, r,
							got[k].Losses[r], l)
					}
				}
			}
		}
	}
}

// failing fails to read a row from some call on.
type failing struct {
	Rows
	row, after int
	calls      *int
	err        error
}

func (f failing) ReadRow(x []float64, i int) error {
	if i == f.row {
		if *f.calls++; *f.calls > f.after {
			return f.err
		}
	}
	return f.Rows.ReadRow(x, i)
}

// TestReadErrors: a row that cannot be read ends a fit whenever that is, with an error that names the
// row and wraps the cause, and without a model.
func TestReadErrors(t *testing.T) {
	x, cause := sparseCounts(20, 24, 1), errors.New("the disk is gone")
	for name, fit := range map[string]func(Rows) (Model, error){
		"NMF": func(x Rows) (Model, error) {
			m, err := FitNMF(t.Context(), x, 2, WithEpochs(4), WithWorkers(1))
			if m == nil {
				return nil, err
			}
			return m, err
		},
		"QMF": func(x Rows) (Model, error) {
			m, err := FitQMF(t.Context(), x, 2, WithEpochs(2), WithWorkers(1), WithValidation(0.1))
			if m == nil {
				return nil, err
			}
			return m, err
		},
		"BQMF": func(x Rows) (Model, error) {
			m, err := FitBQMF(t.Context(), x, 2, WithEpochs(2), WithWorkers(1), WithValidation(0.1))
			if m == nil {
				return nil, err
			}
			return m, err
		},
		"QMFQ": func(x Rows) (Model, error) {
			m, err := FitQMFQ(t.Context(), x, 2, WithEpochs(2), WithWorkers(1))
			if m == nil {
				return nil, err
			}
			return m, err
		},
	} {
		for after := 0; ; after = after*5/4 + 1 {
			calls := 0
			m, err := fit(failing{x, 7, after, &calls, cause})
			if calls <= after {
				if err != nil || after < 5 {
					t.Errorf("%s: %d calls, %v", name, calls, err)
				}
				break
			}
			var read *ReadError
			if m != nil || !errors.Is(err, cause) || !errors.As(err, &read) || read.Row != 7 {
				t.Errorf("%s, after %d calls: %v, %v", name, after, m, err)
			}
			if calls > after+20 {
				t.Errorf("%s, after %d calls: %d more calls until the fit has ended", name, after,
					calls-after)
			}
		}
	}
}

// TestBadHolders: what is no matrix is an error.
func TestBadHolders(t *testing.T) {
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
	y := sparseCounts(3, 4, 1)
	m, err := FitNMF(context.Background(), y, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]Rows{"nil": nil, "no sparse": (*Sparse)(nil), "sparse": &Sparse{},
		"empty": Mat32{},
		"short": Mat32{Rows: 2, Cols: 3, Stride: 3, Data: make([]float32, 5)},
		"huge":  sized{math.MaxInt, math.MaxInt}, "negative": sized{-1, 2}} {
		if m, err := FitNMF(context.Background(), x, 2); m != nil || !errors.As(err, &shape) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
		if _, err := HeldOut(context.Background(), x, FitQMF, []Trial{{Rank: 1}}, Masks{}); !errors.As(err,
			&shape) {
			t.Errorf("%s: %v", name, err)
		}
		_, loss := m.Loss(x)
		_, transform := m.Transform(context.Background(), x)
		_, score := m.Score(context.Background(), x)
		_, goodness := m.Goodness(x)
		_, top := m.TopFeatures(x, 1)
		for k, err := range []error{loss, transform, score, goodness, top} {
			if !errors.As(err, &shape) {
				t.Errorf("%s: method %d: %v", name, k, err)
			}
		}
	}
}

// panicky panics in the reading of its last row, at one of the times that it is read. Rows take a while to
// read, so that all workers get some.
type panicky struct {
	Rows
	left *atomic.Int64
}

func (p panicky) ReadRow(x []float64, i int) error {
	time.Sleep(20 * time.Microsecond)
	if rows, _ := p.Dims(); i == rows-1 && p.left.Add(-1) == 0 {
		panic(errPanicky)
	}
	return p.Rows.ReadRow(x, i)
}

var errPanicky = errors.New("this row panics")

// TestPanickyRows: whoever calls a function that reads a matrix can recover from a panic of ReadRow, on
// whatever goroutine the row was read, and no goroutine is left.
func TestPanickyRows(t *testing.T) {
	x := sparseCounts(32, 20, 1)
	before := runtime.NumGoroutine()
	for name, read := range map[string]func(x Rows){
		"FitNMF":  func(x Rows) { FitNMF(t.Context(), x, 2, WithWorkers(4)) },
		"FitQMF":  func(x Rows) { FitQMF(t.Context(), x, 2, WithWorkers(4)) },
		"HeldOut": func(x Rows) { HeldOut(t.Context(), x, FitNMF, []Trial{{Rank: 2}}, Masks{Repeats: 2}) },
	} {
		for _, at := range []int64{1, 2, 3} {
			left := new(atomic.Int64)
			left.Store(at)
			func() {
				defer func() {
					if err, _ := recover().(error); left.Load() <= 0 && !errors.Is(err, errPanicky) {
						t.Errorf("%s, reading %d: recovered %v", name, at, err)
					}
				}()
				read(panicky{x, left})
			}()
		}
	}
	allEnd(t, before)
}

// sized has sizes and nothing else.
type sized struct{ rows, cols int }

func (s sized) Dims() (rows, cols int)           { return s.rows, s.cols }
func (s sized) ReadRow(x []float64, i int) error { return errors.New("nothing") }

// TestNewRows: new samples have the same coordinates and scores whatever holds them, in blocks of
// columns too.
func TestNewRows(t *testing.T) {
	x := sparseCounts(30, 40, 1)
	y := sparseCounts(30, 25, 2)
	defer func(numbers, columns int) { blockNumbers, blockColumns = numbers, columns }(blockNumbers,
		blockColumns)
	blockNumbers, blockColumns = 90, 7 // three whole blocks and a part of one
	for name, c := range map[string]struct {
		fit  func(opts ...FitOption) (Model, error)
		opts []FitOption
	}{
		"NMF": {func(o ...FitOption) (Model, error) { return FitNMF(t.Context(), x, 3, o...) },
			nil},
		"QMF": {func(o ...FitOption) (Model, error) { return FitQMF(t.Context(), x, 3, o...) },
			nil},
		"QMF, large": {func(o ...FitOption) (Model, error) { return FitQMF(t.Context(), x, 3, o...) },
			nil},
		"QMFQ": {func(o ...FitOption) (Model, error) { return FitQMFQ(t.Context(), x, 3, o...) },
			nil},
		"QMFQ, vectors": {func(o ...FitOption) (Model, error) { return FitQMFQ(t.Context(), x, 3, o...) },
			[]FitOption{WithProjection(TruncatedSVD())}},
		"BQMF": {func(o ...FitOption) (Model, error) { return FitBQMF(t.Context(), x, 3, o...) },
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := c.fit(append(c.opts, WithEpochs(3))...)
			if err != nil {
				t.Fatal(err)
			}
			y := y.Clone()
			if name == "QMF, large" {
				for j := range y.Cols {
					y.Set(3, j, y.At(3, j)*0x1p110)
				}
			}
			v, err := m.Transform(t.Context(), y)
			if err != nil {
				t.Fatal(err)
			}
			score, err := m.Score(t.Context(), y)
			if err != nil {
				t.Fatal(err)
			}
			loss, err := m.Loss(x)
			if err != nil {
				t.Fatal(err)
			}
			good, err := m.Goodness(x)
			if err != nil {
				t.Fatal(err)
			}
			for holder, h := range holders(t, y) {
				if testing.Short() && holder == "sparse" { // as in single precision
					continue
				}
				got, err := m.Transform(t.Context(), h)
				if err != nil || fingerprint(got) != fingerprint(v) {
					t.Errorf("%s: other coordinates, %v", holder, err)
				}
				if s, err := m.Score(t.Context(), h); err != nil || s != score {
					t.Errorf("%s: score %v, want %v, %v", holder, s, score, err)
				}
			}
			for holder, h := range holders(t, x) {
				if l, err := m.Loss(h); err != nil || l != loss {
					t.Errorf("%s: loss %v, want %v, %v", holder, l, loss, err)
				}
				g, err := m.Goodness(h)
				if err != nil {
					t.Fatal(err)
				}
				for i := range g {
					if g[i] != good[i] {
						t.Errorf("%s: feature %d: %v, want %v", holder, i, g[i], good[i])
					}
				}
			}
			cause, calls := errors.New("the disk is gone"), 0
			var read *ReadError
			for after := range 2 {
				if v, err := m.Transform(t.Context(),
					failing{rowsOf{y}, 7, after, &calls, cause}); !errors.Is(err, cause) ||
					!errors.As(err, &read) || read.Row != 7 || v.Data != nil {
					t.Errorf("after %d: %v, %v", after, v, err)
				}
				calls = 0
			}
		})
	}
}

// TestRowsMemory: no fit of rows holds d × n numbers, but where its doc says so.
func TestRowsMemory(t *testing.T) {
	if os.Getenv("QUANTMF_LONG") == "" {
		t.Skip("QUANTMF_LONG is not set: some seconds of sorting")
	}
	cells := mostHeld
	defer func() { mostHeld = cells }()
	mostHeld = 0
	x := sparseCounts(900, 1500, 1)
	for i := range x.Data {
		if i%7 == 3 {
			x.Data[i] = -x.Data[i]
		}
	}
	all := uint64(8 * len(x.Data))
	signed := []FitOption{WithLoss(Frobenius), WithStart(StartScores), WithShrinkage(0)}
	y := x.Clone()
	for i, v := range y.Data {
		y.Data[i] = math.Abs(v)
	}
	for name, fit := range map[string]func() error{
		"NMF": func() error {
			_, err := FitNMF(t.Context(), rowsOf{y}, 2, WithEpochs(1), WithWorkers(1), WithValidation(0.1))
			return err
		},
		"QMF": func() error {
			_, err := FitQMF(t.Context(), rowsOf{x}, 2, append(signed, WithEpochs(1), WithWorkers(1))...)
			return err
		},
		"QMF, held out": func() error {
			_, err := FitQMF(t.Context(), rowsOf{x}, 2,
				append(signed, WithEpochs(1), WithWorkers(1), WithValidation(0.1))...)
			return err
		},
	} {
		if !long && name == "QMF" { // less than with hidden cells
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := fit(); err != nil {
			t.Fatal(name, err)
		}
		runtime.ReadMemStats(&after)
		t.Logf("%s: %d bytes allocated in all, %d of numbers", name, after.TotalAlloc-before.TotalAlloc, all)
		if got := after.TotalAlloc - before.TotalAlloc; got > all/2 {
			t.Errorf("%s: %d bytes allocated, x has %d", name, got, all)
		}
	}
	for _, m := range []Method{MethodNMF, MethodQMF, MethodQMFQ, MethodBQMF} {
		got, err := MemoryOf(m, 20000, 100000, 10)
		if err != nil {
			t.Fatal(err)
		}
		numbers := int64(8 * 20000 * 100000)
		if most := got.Rows > numbers; most != (m == MethodQMFQ || m == MethodBQMF) {
			t.Errorf("%v: %+v", m, got)
		}
		t.Logf("%v of 20000 × 100000: %.3g GiB of rows, %.3g of a Mat", m, float64(got.Rows)/(1<<30),
			float64(got.Fit)/(1<<30))
	}
}

// TestNegativeZero: 0 and -0 are the same number to a fit, which a Sparse cannot list apart.
func TestNegativeZero(t *testing.T) {
	plain := lognormal(12, 40)
	for i := range plain.Data {
		if i%5 < 3 {
			plain.Data[i] = 0
		}
	}
	minus := plain.Clone()
	for i, x := range minus.Data {
		if x == 0 && i%2 == 0 {
			minus.Data[i] = math.Copysign(0, -1)
		}
	}
	for _, model := range []string{"NMF", "QMF", "QMFQ", "BQMF"} {
		for _, loss := range []Loss{KL, Frobenius} {
			var files [2][]byte
			for i, x := range []Mat{plain, minus} {
				m, _, _, _, _, err := fitAny(t.Context(), model, x, 3, WithLoss(loss), WithEpochs(2))
				if model == "BQMF" {
					m, err = FitBQMF(t.Context(), x, 3, WithLoss(loss), WithEpochs(2))
				}
				if err != nil {
					t.Fatal(err)
				}
				files[i] = marshalled(t, m)
			}
			if !bytes.Equal(files[0], files[1]) {
				t.Errorf("%s, loss %v: -0 makes another model", model, loss)
			}
		}
	}
}
