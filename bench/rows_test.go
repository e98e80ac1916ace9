package bench

// One row through the public calls: the problems that the peers are given.

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/quantmf/quantmf"
)

var rowsFile = flag.String("rows", "", "a JSON object of named settings, each a list of rows {x, b, q, zt, eps}; without it a few are made up")

// problem is a row that stands where its squash has put it, on a regular grid of targets.
type problem struct {
	X, B, Q []float64
	ZT      []float64 // cotangent of T
	Eps     float64
}

func problems(tb testing.TB) map[string][]problem {
	if *rowsFile == "" {
		var p problem
		for range 256 {
			p.X, p.ZT = append(p.X, rand.Float64()), append(p.ZT, rand.NormFloat64())
		}
		for j := range 16 {
			p.B, p.Q = append(p.B, 0.5+rand.Float64()), append(p.Q, float64(j))
		}
		p.Eps = 0.01
		return map[string][]problem{"made up": {p}}
	}
	text, err := os.ReadFile(*rowsFile)
	if err != nil {
		tb.Fatal(err)
	}
	var all map[string][]problem
	if err := json.Unmarshal(text, &all); err != nil {
		tb.Fatal(err)
	}
	return all
}

// BenchmarkCold times a row to 1e-9 from nothing, T and its gradients in x, b and
// q (and a, y, ε, which come with them): Solve, Quantile and QuantileVJP. The
// metric "level" tells which assembly ran (internal/cpu).
func BenchmarkCold(b *testing.B) {
	for name, rows := range problems(b) {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				p := &rows[i%len(rows)]
				t, err := quantmf.Solve(p.X, quantmf.WithEpsilon(p.Eps), quantmf.WithTargetWeights(p.B), quantmf.WithSquash(quantmf.SquashNone))
				if err != nil {
					b.Fatal(err)
				}
				if !t.Converged {
					b.Fatal("not converged")
				}
				if _, err = t.Quantile(p.Q); err != nil {
					b.Fatal(err)
				}
				if _, err = t.QuantileVJP(p.Q, p.ZT); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(level), "level")
		})
	}
}
