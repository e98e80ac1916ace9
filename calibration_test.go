package quantmf

// Benchmarks of what thresholds decide, for bench/calibrate, which runs them with each
// threshold at several values.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// BenchmarkPasses solves random rows of every kind: sizes, ε, spread, clusters and
// ties of samples, and weights far from even.
func BenchmarkPasses(b *testing.B) {
	const problems = 1000
	src := random.Split(31, 0)
	type problem struct {
		row  transport.Row
		x, w []float64
		eps  float64
	}
	all := make([]problem, problems)
	for k := range all {
		p := &all[k]
		p.x, p.w = make([]float64, 1+src.IntN(256)), make([]float64, 2<<src.IntN(5))
		p.eps = []float64{1e-1, 1e-2, 1e-3, 1e-4}[src.IntN(4)]
		kind, uneven := src.IntN(5), []float64{0, 0.5, 2, 4}[src.IntN(4)]
		for i := range p.x {
			switch z := Normal(&src); kind {
			case 0:
				p.x[i] = src.Float64()
			case 1:
				p.x[i] = 1 / (1 + math.Exp(-1.8*z))
			case 2:
				p.x[i] = float64(src.IntN(4)) / 4
			case 3:
				p.x[i] = float64(src.IntN(2)) + 1e-3*z
			case 4:
				p.x[i] = math.Exp(3 * z)
			}
		}
		for j := range p.w {
			p.w[j] = math.Exp(uneven * Normal(&src))
		}
		p.row.Resize(len(p.x), len(p.w))
	}
	b.ResetTimer()
	passes, worst := 0, 0
	for range b.N {
		passes, worst = 0, 0
		for k := range all {
			p := &all[k]
			r := &p.row
			r.Load(transport.Problem{X: p.x, B: p.w, Squash: transport.None, Epsilon: p.eps})
			out := r.Solve(1e-9, 3000, nil)
			if !out.Converged {
				b.Fatalf("problem %d: not converged", k)
			}
			passes += out.Passes
			worst = max(worst, out.Passes)
		}
	}
	b.ReportMetric(float64(passes)/problems, "passes")
	b.ReportMetric(float64(worst), "most")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/problems, "ns/row")
}
