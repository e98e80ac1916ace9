package quantmf_test

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf"
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

// TestToldIsAlive: what MemoryOf tells of a fit is what is alive during it, or up to half as much again.
func TestToldIsAlive(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	type options = []quantmf.FitOption
	nmf, qmf, qmfq, bqmf := quantmf.MethodNMF, quantmf.MethodQMF, quantmf.MethodQMFQ, quantmf.MethodBQMF
	held, one := quantmf.WithValidation(0.1), quantmf.WithEpochs(1)
	for _, of := range []struct {
		name    string
		method  quantmf.Method
		d, n, k int
		opts    options
	}{
		{"NMF of many epochs", nmf, 3, 4, 1, options{quantmf.WithEpochs(50000)}},
		{"NMF tall", nmf, 20000, 6, 3, options{quantmf.WithEpochs(2), quantmf.WithLoss(quantmf.Frobenius)}},
		{"NMF of few rows", nmf, 2, 60000, 1, options{quantmf.WithEpochs(4)}},
		{"NMF wide, full rows under KL", nmf, 20, 20000, 10, options{quantmf.WithEpochs(4)}},
		{"NMF, full rows under KL", nmf, 400, 400, 30, options{quantmf.WithEpochs(4)}},
		{"QMF", qmf, 150, 400, 8, options{one}},
		{"QMF wide", qmf, 12, 9000, 4, options{one}},
		{"QMF tall", qmf, 4000, 12, 4, options{one}},
		{"QMF of few rows", qmf, 2, 40000, 1, options{one}},
		{"QMF of many levels", qmf, 40, 150, 3, options{one, quantmf.WithLevels(100)}},
		{"QMF by Adam", qmf, 150, 200, 40, options{one}},
		{"QMF held out", qmf, 150, 300, 5, options{one, held, quantmf.WithRestarts(2)}},
		{"QMF, one batch", qmf, 200, 300, 10,
			options{one, quantmf.WithBatch(200), quantmf.WithStart(quantmf.StartNMF)}},
		{"QMF of the paper", qmf, 200, 300, 5, options{one, quantmf.WithStart(quantmf.StartUniform)}},
		{"QMF signed", qmf, 60, 1500, 5, options{one, quantmf.WithLoss(quantmf.Frobenius)}},
		{"QMF of many epochs", qmf, 3, 4, 1, options{quantmf.WithEpochs(1500)}},
		{"QMFQ", qmfq, 150, 200, 6, options{one}},
		{"QMFQ wide", qmfq, 6, 5000, 3, options{one}},
		{"QMFQ tall", qmfq, 3000, 12, 3, options{one}},
		{"QMFQ of many updates", qmfq, 150, 100, 8,
			options{one, quantmf.WithProjection(quantmf.KLUpdates(100))}},
		{"QMFQ held out", qmfq, 100, 120, 5, options{one, held}},
		{"QMFQ of the paper", qmfq, 80, 300, 5, options{one, quantmf.WithStart(quantmf.StartUniform)}},
		{"QMFQ by singular vectors", qmfq, 80, 150, 5,
			options{one, quantmf.WithProjection(quantmf.TruncatedSVD())}},
		{"BQMF", bqmf, 150, 150, 0, options{one}},
		{"BQMF with missing values", bqmf, 100, 120, 60, options{one, quantmf.WithMissingValues()}},
		{"BQMF wide", bqmf, 40, 3000, 0, options{one}},
		{"BQMF tall", bqmf, 4000, 10, 0, options{one}},
		{"BQMF of few rows", bqmf, 2, 20000, 0, options{one}},
		{"BQMF of two samples", bqmf, 20000, 2, 0, options{one}},
		{"BQMF of a sample", bqmf, 20000, 1, 0, options{one}},
		{"BQMF held out", bqmf, 60, 800, 20, options{one, held}},
		{"BQMF of many epochs", bqmf, 3, 4, 1, options{quantmf.WithEpochs(100000)}},
	} {
		t.Run(of.name, func(t *testing.T) {
			if of.method != bqmf && os.Getenv("QUANTMF_LONG") == "" {
				t.Skip("QUANTMF_LONG is not set: what its constructors draw is held by TestCounted")
			}
			x, r := quantmf.NewMat(of.d, of.n), rand.New(rand.NewPCG(1, 1))
			for i := range x.Data {
				x.Data[i] = 1 + r.ExpFloat64()
			}
			opts := append(options{quantmf.WithWorkers(2)}, of.opts...)
			told, err := quantmf.MemoryOf(of.method, of.d, of.n, of.k, opts...)
			if err != nil {
				t.Fatal(err)
			}
			w := &watch{Context: t.Context(), every: float64(told.Fit) / 30}
			w.collect()
			w.before, w.most = w.most, 0
			m, err := quantmf.Fit(w, of.method, x, of.k, opts...)
			if err != nil {
				t.Fatal(err)
			}
			w.collect()
			most := w.most
			const apart = 1 << 20 // what nobody feels
			bound := 1.5
			// which MemoryOf cannot tell from sparse ones
			if strings.HasSuffix(of.name, "full rows under KL") {
				bound = 2
			}
			ratio := float64(told.Fit) / most
			t.Logf("told %.2f, %.2f MB were alive: %.2f; of the model %.2f", float64(told.Fit)/1e6, most/1e6,
				ratio,
				float64(told.Model)/1e6)
			if ratio < 1 || float64(told.Fit) > max(bound*most, most+apart) {
				t.Errorf("told %d bytes, %.0f were alive: %.2f", told.Fit, most, ratio)
			}
			runtime.KeepAlive(m)
			runtime.KeepAlive(x)
		})
	}
}
