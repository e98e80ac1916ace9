package quantmf_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"

	. "github.com/quantmf/quantmf"
)

// watch is a context that a fit asks at every piece of its work whether it has ended. Whenever some bytes
// more were allocated it collects, and sees what is alive.
type watch struct {
	context.Context
	every, last, before, most float64
	lock                      sync.Mutex
}

// read returns what was allocated so far, or what is alive.
func read(name string) float64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64())
}

func (w *watch) Err() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if read("/gc/heap/allocs:bytes")-w.last > w.every {
		w.collect()
	}
	return nil
}

func (w *watch) collect() {
	runtime.GC()
	runtime.GC() // of what a first one leaves to finalizers and pools
	w.most = max(w.most, read("/gc/heap/live:bytes")-w.before)
	w.last = read("/gc/heap/allocs:bytes")
}

// some returns x with a share of its cells replaced by v; the first row and column stay.
func some(x Mat, share, v float64) Mat {
	r := rand.New(rand.NewPCG(2, 2))
	for i := 1; i < x.Rows; i++ {
		for j := 1; j < x.Cols; j++ {
			if r.Float64() < share {
				x.Set(i, j, v)
			}
		}
	}
	return x
}

// listed returns x as a Sparse.
func listed(x Mat) *Sparse {
	start, index, values := []int{0}, []uint32(nil), []float64(nil)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v != 0 {
				index, values = append(index, uint32(j)), append(values, v)
			}
		}
		start = append(start, len(index))
	}
	s, err := NewSparse(x.Cols, start, index, values)
	if err != nil {
		panic(err)
	}
	return s
}

// TestToldIsAlive: what MemoryFor tells of a fit is what is alive during it, or up to half as much again, and
// MemoryOf tells no less.
func TestToldIsAlive(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	type options = []FitOption
	nmf, qmf, qmfq, bqmf := MethodNMF, MethodQMF, MethodQMFQ, MethodBQMF
	held, one, missing := WithValidation(0.1), WithEpochs(1), WithMissingValues()
	scores := WithStart(StartScores)
	zeros := func(x Mat) Rows { return some(x, 0.9, 0) }
	holes := func(share float64) func(x Mat) Rows {
		return func(x Mat) Rows { return some(x, share, math.NaN()) }
	}
	each := func(f func(v float64) float64) func(x Mat) Rows {
		return func(x Mat) Rows {
			for i, v := range x.Data {
				x.Data[i] = f(v)
			}
			return x
		}
	}
	large, counts := each(func(v float64) float64 { return 1e45 * v }), each(math.Floor)
	for _, of := range []struct {
		name    string
		method  Method
		d, n, k int
		opts    options
		change  func(x Mat) Rows
		x       Rows
	}{
		{"NMF of many epochs", nmf, 3, 4, 1, options{WithEpochs(50000)}, nil, nil},
		{"NMF tall", nmf, 20000, 6, 3, options{WithEpochs(2), WithLoss(Frobenius)},
			nil, nil},
		{"NMF of few rows", nmf, 2, 60000, 1, options{WithEpochs(4)}, nil, nil},
		{"NMF wide, full rows under KL", nmf, 20, 20000, 10, options{WithEpochs(4)}, nil, nil},
		{"NMF, full rows under KL", nmf, 400, 400, 30, options{WithEpochs(4)}, nil, nil},
		{"NMF of few cells", nmf, 64, 20000, 10, options{WithEpochs(4)}, zeros, nil},
		{"NMF of few listed cells", nmf, 2000, 9000, 5, options{one}, func(x Mat) Rows {
			return listed(some(x, 0.97, 0))
		}, nil},
		{"NMF, few components of full rows", nmf, 20, 20000, 1, options{WithEpochs(4)}, nil, nil},
		{"NMF, few components of few cells", nmf, 20, 20000, 1, options{WithEpochs(4)}, zeros, nil},
		{"NMF in another unit", nmf, 200, 2000, 2, options{WithLoss(Frobenius)}, large, nil},
		{"QMF in another unit", qmf, 30, 20000, 1, options{one}, large, nil},
		{"QMF, few missing", qmf, 520, 12000, 5, options{one, missing, scores}, holes(0.02), nil},
		{"QMF, half missing", qmf, 520, 12000, 5, options{one, missing, scores}, holes(0.5), nil},
		{"QMF, most missing", qmf, 700, 12000, 5, options{one, missing}, holes(0.95), nil},
		{"QMF held out, half missing", qmf, 520, 12000, 5, options{one, missing, held, scores},
			holes(0.5), nil},
		{"QMF under Frobenius", qmf, 30, 20000, 2, options{one, WithLoss(Frobenius)}, nil,
			nil},
		{"QMF listed", qmf, 200, 9000, 2, options{one}, func(x Mat) Rows {
			return listed(some(x, 0.97, 0))
		}, nil},
		{"BQMF, half missing", bqmf, 200, 300, 0, options{one, missing}, holes(0.5), nil},
		{"BQMF of counts", bqmf, 200, 1000, 0, options{one}, counts, nil},
		{"BQMF, listed", bqmf, 100, 1000, 0, options{one}, func(x Mat) Rows {
			return listed(some(x, 0.97, 0))
		}, nil},
		{"QMF", qmf, 150, 400, 8, options{one}, nil, nil},
		{"QMF wide", qmf, 12, 9000, 4, options{one}, nil, nil},
		{"QMF tall", qmf, 4000, 12, 4, options{one}, nil, nil},
		{"QMF of few rows", qmf, 2, 40000, 1, options{one}, nil, nil},
		{"QMF of many levels", qmf, 40, 150, 3, options{one, WithLevels(100)}, nil, nil},
		{"QMF by Adam", qmf, 150, 200, 40, options{one}, nil, nil},
		{"QMF held out", qmf, 150, 300, 5, options{one, held, WithRestarts(2)}, nil, nil},
		{"QMF, one batch", qmf, 200, 300, 10,
			options{one, WithBatch(200), WithStart(StartNMF)}, nil, nil},
		{"QMF of the paper", qmf, 200, 300, 5, options{one, WithStart(StartUniform)}, nil,
			nil},
		{"QMF signed", qmf, 60, 1500, 5, options{one, WithLoss(Frobenius)}, nil, nil},
		{"QMF of many epochs", qmf, 3, 4, 1, options{WithEpochs(1500)}, nil, nil},
		{"QMFQ", qmfq, 150, 200, 6, options{one}, nil, nil},
		{"QMFQ wide", qmfq, 6, 5000, 3, options{one}, nil, nil},
		{"QMFQ tall", qmfq, 3000, 12, 3, options{one}, nil, nil},
		{"QMFQ of many updates", qmfq, 150, 100, 8,
			options{one, WithProjection(KLUpdates(100))}, nil, nil},
		{"QMFQ held out", qmfq, 100, 120, 5, options{one, held}, nil, nil},
		{"QMFQ of the paper", qmfq, 80, 300, 5, options{one, WithStart(StartUniform)}, nil,
			nil},
		{"QMFQ by singular vectors", qmfq, 80, 150, 5,
			options{one, WithProjection(TruncatedSVD())}, nil, nil},
		{"BQMF", bqmf, 150, 150, 0, options{one}, nil, nil},
		{"BQMF with missing values", bqmf, 100, 120, 60, options{one, WithMissingValues()}, nil, nil},
		{"BQMF wide", bqmf, 40, 3000, 0, options{one}, nil, nil},
		{"BQMF tall", bqmf, 4000, 10, 0, options{one}, nil, nil},
		{"BQMF of few rows", bqmf, 2, 20000, 0, options{one}, nil, nil},
		{"BQMF of two samples", bqmf, 20000, 2, 0, options{one}, nil, nil},
		{"BQMF of a sample", bqmf, 20000, 1, 0, options{one}, nil, nil},
		{"BQMF held out", bqmf, 60, 800, 20, options{one, held}, nil, nil},
		{"BQMF of many epochs", bqmf, 3, 4, 1, options{WithEpochs(100000)}, nil, nil},
	} {
		t.Run(of.name, func(t *testing.T) {
			if (of.method != bqmf || of.d*of.n > 15000 || of.n >= 800) && os.Getenv("QUANTMF_LONG") == "" {
				t.Skip("QUANTMF_LONG is not set: what its constructors draw is held by TestCounted")
			}
			x, r := NewMat(of.d, of.n), rand.New(rand.NewPCG(1, 1))
			for i := range x.Data {
				x.Data[i] = 1 + r.ExpFloat64()
			}
			opts := append(options{WithWorkers(2)}, of.opts...)
			of.x = x
			if of.change != nil {
				of.x = of.change(x)
			}
			told, err := MemoryFor(t.Context(), of.method, of.x, of.k, opts...)
			if err != nil {
				t.Fatal(err)
			}
			if most, err := MemoryOf(of.method, of.d, of.n, of.k, opts...); err != nil ||
				max(most.Fit, most.Rows) < told.Fit && !strings.HasSuffix(of.name, "in another unit") {
				t.Errorf("told %d of x, %v of its sizes, %v", told.Fit, most, err)
			}
			w := &watch{Context: t.Context(), every: float64(told.Fit) / 30}
			w.collect()
			w.before, w.most = w.most, 0
			m := must(Fit(w, of.method, of.x, of.k, opts...))(t)
			w.collect()
			most := w.most
			const apart = 1 << 20 // what nobody feels
			ratio := float64(told.Fit) / most
			t.Logf("told %.2f, %.2f MB were alive: %.2f", float64(told.Fit)/1e6, most/1e6, ratio)
			if ratio < 1 || float64(told.Fit) > max(1.5*most, most+apart) {
				t.Errorf("told %d bytes, %.0f were alive: %.2f", told.Fit, most, ratio)
			}
			runtime.KeepAlive(m)
			runtime.KeepAlive(of)
		})
	}
}
