package nmf

import (
	"os"
	"strconv"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

func BenchmarkTmp(b *testing.B) {
	const d, n, k = 8000, 20000, 10
	r := random.Split(1, 1)
	p := &Problem{D: d, N: n, K: k, NP: kernel.Pad(n), U: make([]float64, d*k), V: make([]float64, k*kernel.Pad(n)),
		Rows: make([]int, d), Visible: d * n, Loss: divergence.KL, Pool: pool.New(1, Chunks)}
	cols, vals := make([][]uint32, d), make([][]float64, d)
	nnz := 0
	for i := range d {
		for j := range n {
			if r.Float64() < 0.05 {
				cols[i] = append(cols[i], uint32(j))
				vals[i] = append(vals[i], float64(1+r.IntN(5)))
				nnz++
			}
		}
	}
	p.NonZeros = func(i int, c []uint32, v []float64) ([]uint32, []float64) { return cols[i], vals[i] }
	for i := range p.U {
		p.U[i] = 0.5 + r.Float64()
	}
	for c := range k {
		for j := range n {
			p.V[c*p.NP+j] = 0.5 + r.Float64()
		}
	}
	for _, w := range []int{1 << 16} {
		b.Run(strconv.Itoa(w), func(b *testing.B) {
			f := NewUpdates(again(p, 1, b))
			f.thin.width = w / 16; f.thin.tiles = (n+f.thin.width-1)/f.thin.width
			f.Begin()
			_ = os.Args
			f.Epoch(0)
			start := cpuTime()
			best := 1e18
			for e := range b.N {
				s := cpuTime()
				f.Epoch(e)
				best = min(best, float64(cpuTime()-s))
			}
			b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N)/float64(nnz), "ns/cell")
			b.ReportMetric(best/float64(nnz), "best/cell")
		})
	}
}
