package bench

// This file times one row through the public calls, on the problems that the other software gets.

import (
	"encoding/json"
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/quantmf/quantmf"
)

var rowsFile = flag.String("rows", "",
	"a JSON object of named settings, each a list of rows {x, b, q, zt, eps}; without it rows like those "+
		"of speed.py are drawn")

// problem is a row that is squashed already, with targets on a regular grid.
type problem struct {
	X, B, Q []float64
	ZT      []float64 // cotangent of T
	Eps     float64
}

func problems(tb testing.TB) map[string][]problem {
	if *rowsFile == "" {
		all := map[string][]problem{}
		src := rand.New(rand.NewPCG(1, 1))
		for _, eps := range []float64{1e-1, 1e-2, 1e-3} {
			name := "256x16,eps=" + strconv.FormatFloat(eps, 'g', -1, 64)
			for range 64 {
				p := problem{Eps: eps}
				for range 256 {
					p.X, p.ZT = append(p.X, 1/(1+math.Exp(-math.Pi/math.Sqrt(3)*src.NormFloat64()))),
						append(p.ZT, src.NormFloat64())
				}
				for j := range 16 {
					p.B, p.Q = append(p.B, math.Exp(0.5*src.NormFloat64())), append(p.Q, float64(j))
				}
				all[name] = append(all[name], p)
			}
		}
		return all
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

// BenchmarkCold times a row that is solved to 1e-9 from nothing, with T and its gradients in x, b and
// q, by Solve, Quantile and QuantileVJP. QuantileVJP computes the gradients in a, y and ε as well. The
// metric "level" says which assembly ran (internal/cpu).
func BenchmarkCold(b *testing.B) {
	all := problems(b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rows := all[name]
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				p := &rows[i%len(rows)]
				t, err := quantmf.Solve(p.X, quantmf.WithEpsilon(p.Eps), quantmf.WithTargetWeights(p.B),
					quantmf.WithSquash(quantmf.SquashNone))
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
