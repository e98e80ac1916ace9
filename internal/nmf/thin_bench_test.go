//go:build unix

package nmf

import (
	"syscall"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// BenchmarkThin times an epoch over rows of which 5 % is not zero, held sparse and dense, against one that
// visits all cells.
func BenchmarkThin(b *testing.B) {
	const d, n, k = 8000, 20000, 10
	r := random.Split(1, 1)
	p := &Problem{D: d, N: n, K: k, NP: kernel.Pad(n), U: make([]float64, d*k),
		V: make([]float64, k*kernel.Pad(n)), X: make([]float64, d*n), Stride: n,
		Rows: make([]int, d), Visible: d * n, Loss: divergence.KL, Pool: pool.New(1, Pieces)}
	for i := range p.X {
		if r.Float64() < 0.05 {
			p.X[i] = float64(1 + r.IntN(5))
		}
	}
	for i := range p.U {
		p.U[i] = 0.5 + r.Float64()
	}
	for c := range k {
		for j := range n {
			p.V[c*p.NP+j] = 0.5 + r.Float64()
		}
	}
	held := map[string]*Problem{"sparse": sparse(p, true, func(i, j int) bool { return false }), "dense": p}
	for what, p := range held {
		b.Run("updates/"+what, func(b *testing.B) {
			f, all := NewUpdates(*again(p, 1, b)), NewUpdates(*again(held["dense"], 1, b))
			f.Begin()
			all.Begin()
			all.thin.forget()
			var mine, other time.Duration
			for e := range b.N {
				start := cpuTime()
				f.Epoch(e)
				mine += cpuTime() - start
				start = cpuTime()
				all.Epoch(e)
				other += cpuTime() - start
			}
			b.ReportMetric(float64(other)/float64(mine), "x/all")
			b.ReportMetric(float64(mine.Nanoseconds())/float64(b.N)/(0.05*d*n), "ns/cell")
			b.ReportMetric(float64(other.Nanoseconds())/float64(b.N)/(d*n), "ns/cell-all")
		})
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
