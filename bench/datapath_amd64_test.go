//go:build !purego

package bench

import (
	"math"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/cpu"
)

// BenchmarkDatapath reports how many numbers a processor multiplies and adds in a cycle, with registers of
// 512 bits and of 256 bits. It measures products that are rounded before they are added, as in the kernels of
// this package, products fused with sums, as in other software, and divisions. A cycle is the time of an
// addition of integers in a chain of additions that wait for each other. The metrics "…512/256" are the most
// that AVX-512 can gain over AVX2: 2 with datapaths of 512 bits for both multiplication and addition, 1 where
// 512 bits run in two halves.
func BenchmarkDatapath(b *testing.B) {
	if level < cpu.AVX512 {
		b.Skip("this processor has no AVX-512")
	}
	const turns = 4000
	kinds := []struct {
		name    string
		run     func(int)
		numbers float64 // that an instruction computes
	}{
		{"pairs512", pairs512, 8}, {"pairs256", pairs256, 4}, {"fused512", fused512, 8},
		{"fused256", fused256, 4},
		{"divisions512", divisions512, 8}, {"divisions256", divisions256, 4},
	}
	least := make([]float64, len(kinds)+1)
	for i := range least {
		least[i] = math.Inf(1)
	}
	measure := func(i int, run func(int)) {
		start := time.Now()
		run(turns)
		least[i] = min(least[i], float64(time.Since(start).Nanoseconds()))
	}
	for range max(b.N, 200) {
		measure(len(kinds), chain)
		for i, k := range kinds {
			measure(i, k.run)
		}
	}
	rate := func(i int) float64 { return kinds[i].numbers * least[len(kinds)] / least[i] }
	for i, k := range kinds {
		b.ReportMetric(rate(i), k.name+"/cycle")
		if i%2 == 0 {
			b.ReportMetric(rate(i)/rate(i+1), k.name+"/256")
		}
	}
	b.ReportMetric(0, "ns/op")
}
