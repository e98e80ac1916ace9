package quantmf_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// watch is a context that a fit asks at every piece of its work whether it has ended. Whenever some bytes
// more were allocated it collects, and sees what is alive. Other workers come to rest at their next question:
// what they allocate before counts as alive to a collection that it falls into, and not to the next one.
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
	alive := math.Inf(1)
	for { // a first collection leaves some to finalizers and pools
		runtime.GC()
		now := read("/gc/heap/live:bytes")
		if now >= alive {
			break
		}
		alive = now
	}
	w.most = max(w.most, alive-w.before)
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

// TestToldIsAlive: what MemoryFor tells of a fit is what is alive during it, or up to half as much again, and
// MemoryOf tells no less.
func TestToldIsAlive(t *testing.T) {
	Slow(t)
	const nmf, qmf, qmfq, bqmf = MethodNMF, MethodQMF, MethodQMFQ, MethodBQMF
	held, one, missing := WithValidation(0.1), WithEpochs(1), WithMissingValues()
	scores, paper, frobenius := WithStart(StartScores), WithStart(StartUniform), WithLoss(Frobenius)
	type change func(x Mat) Rows
	whole := func(x Mat) Rows { return x }
	zeros := func(x Mat) Rows { return some(x, 0.9, 0) }
	few := func(x Mat) Rows { return SparseOf[float64](t, some(x, 0.97, 0)) }
	holes := func(share float64) change {
		return func(x Mat) Rows { return some(x, share, math.NaN()) }
	}
	each := func(f func(v float64) float64) change {
		return func(x Mat) Rows {
			for i, v := range x.Data {
				x.Data[i] = f(v)
			}
			return x
		}
	}
	products := func(x Mat) Rows {
		of := x.Clone()
		for i := range x.Rows {
			for j := range x.Cols {
				x.Set(i, j, of.At(i, 0)*of.At(0, j)+of.At(i, 1)*of.At(1, j))
			}
		}
		return x
	}
	weights := Lognormal(300, 4000)
	large, counts := each(func(v float64) float64 { return 1e45 * v }), each(math.Floor)
	ties := func(x Mat) Rows {
		for i := range x.Rows {
			x.Set(i, 1, x.At(i, 0))
		}
		return x
	}
	type kind struct {
		name    string
		method  Method
		d, n, k int
		of      change
		opts    []FitOption
	}
	of := func(name string, method Method, d, n, k int, of change, opts ...FitOption) kind {
		return kind{name, method, d, n, k, of, append(opts, WithWorkers(2))}
	}
	for _, c := range []kind{
		of("NMF of many epochs", nmf, 3, 4, 1, whole, WithEpochs(50000)),
		of("NMF of no epochs", nmf, 20, 20000, 10, whole, WithEpochs(0), frobenius),
		of("NMF tall", nmf, 20000, 6, 3, whole, WithEpochs(2), frobenius),
		of("NMF of few rows", nmf, 2, 60000, 1, whole, WithEpochs(4)),
		of("NMF wide, full rows under KL", nmf, 20, 20000, 10, whole, WithEpochs(4)),
		of("NMF, full rows under KL", nmf, 400, 400, 30, whole, WithEpochs(4)),
		of("NMF of few cells", nmf, 64, 20000, 10, zeros, WithEpochs(4)),
		of("NMF of few listed cells", nmf, 2000, 9000, 5, few, one),
		of("NMF, few components of full rows", nmf, 20, 20000, 1, whole, WithEpochs(4)),
		of("NMF, few components of few cells", nmf, 20, 20000, 1, zeros, WithEpochs(4)),
		of("NMF in another unit", nmf, 200, 2000, 2, large, frobenius),
		of("QMF in another unit", qmf, 30, 20000, 1, large, one),
		of("QMF, few missing", qmf, 520, 12000, 5, holes(0.02), one, missing, scores),
		of("QMF, half missing", qmf, 520, 12000, 5, holes(0.5), one, missing, scores),
		of("QMF, most missing", qmf, 700, 12000, 5, holes(0.95), one, missing, scores),
		of("QMF held out, half missing", qmf, 520, 12000, 5, holes(0.5), one, missing, held, scores),
		of("QMF under Frobenius", qmf, 30, 20000, 2, whole, one, frobenius),
		of("QMF listed", qmf, 200, 9000, 2, few, one),
		of("BQMF, half missing", bqmf, 200, 300, 0, holes(0.5), one, missing),
		of("BQMF of counts", bqmf, 200, 1000, 0, counts, one),
		of("BQMF, listed", bqmf, 100, 1000, 0, few, one),
		of("QMF", qmf, 150, 400, 8, whole, one),
		of("QMF that takes StartNMF", qmf, 1000, 600, 2, products),
		of("QMF of weighed samples that takes StartNMF", qmf, 300, 4000, 2, products,
			WithSampleWeights(weights.Row(0))),
		of("QMF of weighed cells that takes StartNMF", qmf, 300, 4000, 2, products, WithCellWeights(weights)),
		of("QMF wide", qmf, 12, 9000, 4, whole, one),
		of("QMF tall", qmf, 4000, 12, 4, whole, one),
		of("QMF of few rows", qmf, 2, 40000, 1, whole, one),
		of("QMF of many levels", qmf, 40, 150, 3, whole, one, WithLevels(100)),
		of("QMF by Adam", qmf, 150, 200, 40, whole, one),
		of("QMF held out", qmf, 150, 300, 5, whole, one, held, WithRestarts(2)),
		of("QMF, one batch", qmf, 200, 300, 10, whole, one, WithBatch(200), WithStart(StartNMF)),
		of("QMF of the paper", qmf, 200, 300, 5, whole, one, paper),
		of("QMF signed", qmf, 60, 1500, 5, whole, one, frobenius),
		of("QMF of many epochs", qmf, 3, 4, 1, whole, WithEpochs(1500)),
		of("QMFQ", qmfq, 150, 200, 6, whole, one),
		of("QMFQ wide", qmfq, 6, 5000, 3, whole, one),
		of("QMFQ tall", qmfq, 3000, 12, 3, whole, one),
		of("QMFQ of many updates", qmfq, 150, 100, 8, whole, one, WithProjection(KLUpdates(100))),
		of("QMFQ held out", qmfq, 100, 120, 5, whole, one, held),
		of("QMFQ of the paper", qmfq, 80, 300, 5, whole, one, paper),
		of("QMFQ by singular vectors", qmfq, 80, 150, 5, whole, one, WithProjection(TruncatedSVD())),
		of("BQMF", bqmf, 150, 150, 0, whole, one),
		of("BQMF of values that come twice", bqmf, 1000, 2000, 10, ties, one),
		of("BQMF of counts that are mostly 0", bqmf, 3000, 5000, 0, few, one),
		of("BQMF with missing values", bqmf, 100, 120, 60, whole, one, missing),
		of("BQMF of weighed cells", bqmf, 120, 120, 4, whole, one, WithCellWeights(Lognormal(120, 120))),
		of("BQMF wide", bqmf, 40, 3000, 0, whole, one),
		of("BQMF tall", bqmf, 4000, 10, 0, whole, one),
		of("BQMF of few rows", bqmf, 2, 20000, 0, whole, one),
		of("BQMF of two samples", bqmf, 20000, 2, 0, whole, one),
		of("BQMF of a sample", bqmf, 20000, 1, 0, whole, one),
		of("BQMF held out", bqmf, 60, 800, 20, whole, one, held),
		of("BQMF of many epochs", bqmf, 3, 4, 1, whole, WithEpochs(100000)),
	} {
		t.Run(c.name, func(t *testing.T) {
			if (c.method != bqmf || c.d*c.n > 15000 || c.n >= 800) && !Long {
				t.Skip("QUANTMF_LONG is not set: what its constructors draw is held by TestCounted")
			}
			r := rand.New(rand.NewPCG(1, 1))
			x := c.of(Drawn(c.d, c.n, func() float64 { return 1 + r.ExpFloat64() }))
			told := Must(MemoryFor(t.Context(), c.method, x, c.k, c.opts...))(t)
			if most, err := MemoryOf(c.method, c.d, c.n, c.k, c.opts...); err != nil ||
				max(most.Fit, most.Rows) < told.Fit && !strings.HasSuffix(c.name, "in another unit") {
				t.Errorf("told %d of x, %v of its sizes, %v", told.Fit, most, err)
			}
			most, ratio := 0.0, math.Inf(1)
			const apart = 1 << 20 // what nobody feels
			for tries := 0; tries < 3 && float64(told.Fit) > max(1.5*most, most+apart); tries++ {
				// a moment may pass between two questions
				w := &watch{Context: t.Context(), every: float64(told.Fit) / 30}
				w.collect()
				w.before, w.most = w.most, 0
				m := Must(Fit(w, c.method, x, c.k, c.opts...))(t)
				w.collect()
				if q, is := m.(*QMF); strings.HasSuffix(c.name, "StartNMF") && is && q.Start != StartNMF {
					t.Errorf("took %v", q.Start)
				}
				runtime.KeepAlive(m)
				most = max(most, w.most)
				ratio = float64(told.Fit) / most
			}
			t.Logf("told %.2f, %.2f MB were alive: %.2f", float64(told.Fit)/1e6, most/1e6, ratio)
			if ratio < 1 || float64(told.Fit) > max(1.5*most, most+apart) {
				t.Errorf("told %d bytes, %.0f were alive: %.2f", told.Fit, most, ratio)
			}
			runtime.KeepAlive(x)
		})
	}
}
