package quantmf_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestToldIsAlive: what MemoryOf tells of a fit is what is alive during it, or up to half as much again.
func TestToldIsAlive(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	type options = []quantmf.FitOption
	nmf, qmf, qmfq := quantmf.MethodNMF, quantmf.MethodQMF, quantmf.MethodQMFQ
	held, one := quantmf.WithValidation(0.1), quantmf.WithEpochs(1)
	for _, of := range []struct {
		name    string
		method  quantmf.Method
		d, n, k int
		opts    options
	}{
		{"NMF of many epochs", nmf, 3, 4, 1, options{quantmf.WithEpochs(200000)}},
		{"NMF tall", nmf, 20000, 6, 3, options{quantmf.WithEpochs(2)}},
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
		{"QMF of many epochs", qmf, 3, 4, 1, options{quantmf.WithEpochs(30000)}},
		{"QMFQ", qmfq, 150, 200, 6, options{one}},
		{"QMFQ wide", qmfq, 6, 5000, 3, options{one}},
		{"QMFQ tall", qmfq, 3000, 12, 3, options{one}},
		{"QMFQ of many updates", qmfq, 150, 100, 8,
			options{one, quantmf.WithProjection(quantmf.KLUpdates(100))}},
		{"QMFQ held out", qmfq, 100, 120, 5, options{one, held}},
		{"QMFQ of the paper", qmfq, 80, 300, 5, options{one, quantmf.WithStart(quantmf.StartUniform)}},
		{"QMFQ by singular vectors", qmfq, 80, 150, 5,
			options{one, quantmf.WithProjection(quantmf.TruncatedSVD())}},
	} {
		t.Run(of.name, func(t *testing.T) {
			x, r := quantmf.NewMat(of.d, of.n), rand.New(rand.NewPCG(1, 1))
			for i := range x.Data {
				x.Data[i] = 1 + r.ExpFloat64()
			}
			opts := append(options{quantmf.WithWorkers(2)}, of.opts...)
			told, err := quantmf.MemoryOf(of.method, of.d, of.n, of.k, opts...)
			if err != nil {
				t.Fatal(err)
			}
			alive := func() float64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC() // of what a first one leaves to finalizers and pools
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc)
			}
			before, most, next := alive(), 0.0, 0
			m, err := quantmf.Fit(t.Context(), of.method, x, of.k, append(opts,
				quantmf.WithProgress(func(p quantmf.Progress) error {
					if p.Epoch < next { // a collection takes longer than many epochs
						return nil
					}
					if next = 0; p.Epoch > 20 {
						next = p.Epoch + p.Epochs/20
					}
					most = max(most, alive())
					return nil
				}))...)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, alive()) - before
			const apart = 1 << 20 // what nobody feels
			ratio := float64(told.Fit) / most
			t.Logf("told %.2f, %.2f MB were alive: %.2f; of the model %.2f", float64(told.Fit)/1e6, most/1e6,
				ratio,
				float64(told.Model)/1e6)
			if ratio < 1 || float64(told.Fit) > math.Max(1.5*most, most+apart) {
				t.Errorf("told %d bytes, %.0f were alive: %.2f", told.Fit, most, ratio)
			}
			runtime.KeepAlive(m)
			runtime.KeepAlive(x)
		})
	}
}
