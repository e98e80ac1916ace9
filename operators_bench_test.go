package quantmf

// This file times the operators by the number of samples, for bench/operators.py.

import (
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// BenchmarkSoftRank times soft ranks of n samples as they are by default, forward, and with the gradient of
// one loss, by one worker.
func BenchmarkSoftRank(b *testing.B) {
	for _, n := range []int{80, 256, 1000, 5000, 100000, 1000000} {
		src := rand.New(rand.NewPCG(1, uint64(n)))
		x, z := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], z[i] = src.NormFloat64(), src.NormFloat64()
		}
		rows, back := Must(MatOf(x))(b), Must(MatOf(z))(b)
		b.Run(fmt.Sprintf("forward,%d", n), func(b *testing.B) {
			for range b.N {
				OK(b, ErrorOf(SoftRankRows(rows, WithWorkers(1))))
			}
		})
		b.Run(fmt.Sprintf("gradient,%d", n), func(b *testing.B) {
			for range b.N {
				OK(b, ErrorOf(SoftRankRowsVJP(rows, back, WithWorkers(1))))
			}
		})
	}
}
