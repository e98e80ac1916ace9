package quantmf_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestToldOfFullRows: of matrices without zeros a fit is told to take what is alive, too: an NMF at most 1.8
// times as much, and of so few rows that none is ever taken for mostly zero, 1.15 times.
func TestToldOfFullRows(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	for _, of := range []struct {
		method  quantmf.Method
		d, n, k int
		most    float64
	}{
		{quantmf.MethodNMF, 2, 60000, 1, 1.15}, {quantmf.MethodNMF, 6, 6000, 2, 1.15},
		{quantmf.MethodNMF, 20, 20000, 10, 1.85}, {quantmf.MethodNMF, 400, 400, 30, 1.85},
		{quantmf.MethodQMF, 2, 20000, 1, 1.5}, // none can be hidden from a trial, so there is none
	} {
		x, r := quantmf.NewMat(of.d, of.n), rand.New(rand.NewPCG(1, 1))
		for i := range x.Data {
			x.Data[i] = 1 + r.ExpFloat64()
		}
		opts := []quantmf.FitOption{quantmf.WithWorkers(2), quantmf.WithEpochs(4)}
		told := must(quantmf.MemoryOf(of.method, of.d, of.n, of.k, opts...))(t)
		alive := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		before, most := alive(), 0.0
		m := must(quantmf.Fit(t.Context(), of.method, x, of.k, append(opts,
			quantmf.WithProgress(func(quantmf.Progress) error {
				most = max(most,
					alive())
				return nil
			}))...))(t)
		if ratio := float64(told.Fit) / (most - before + float64(told.Model)); ratio < 1 || ratio > of.most {
			t.Errorf("%d × %d: told %.2f times what was alive", of.d, of.n, ratio)
		}
		runtime.KeepAlive(m)
		runtime.KeepAlive(x)
	}
}
