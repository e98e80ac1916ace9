//go:build !purego

package bench

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/cpu"
)

var level = cpu.Level

const fusedSamples, fusedRank = 256, 10

func fusedProblem(tb testing.TB) (acc, v, x, u []float64) {
	if level < cpu.AVX512 {
		tb.Skip("this processor has no AVX-512")
	}
	fill := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = 0.5 + rand.Float64()
		}
		return s
	}
	return make([]float64, fusedSamples*fusedRank), fill(fusedSamples * fusedRank), fill(fusedSamples),
		fill(fusedRank)
}

// TestFused compares both forms with a loop in Go: the rounded form bit for bit, the fused one within 1e-14.
func TestFused(t *testing.T) {
	acc, v, x, u := fusedProblem(t)
	fused := make([]float64, len(acc))
	updateRounded(acc, v, x, u)
	updateFused(fused, v, x, u)
	for j, xj := range x {
		w := 0.0
		for c, uc := range u {
			w += float64(uc * v[c*fusedSamples+j])
		}
		for c, uc := range u {
			want := float64(uc * (xj / w))
			if got := acc[c*fusedSamples+j]; got != want {
				t.Fatalf("rounded: %v, want %v", got, want)
			}
			if got := fused[c*fusedSamples+j]; math.Abs(got-want) > 1e-14*want {
				t.Fatalf("fused: %v, want %v", got, want)
			}
		}
	}
}

// BenchmarkFused times the rounded and the fused form in turn. The metric "rounded/fused" is the
// price of equal bits.
func BenchmarkFused(b *testing.B) {
	acc, v, x, u := fusedProblem(b)
	var rounded, fused time.Duration
	const times = 1000
	for range b.N {
		start := time.Now()
		for range times {
			updateRounded(acc, v, x, u)
		}
		middle := time.Now()
		for range times {
			updateFused(acc, v, x, u)
		}
		rounded += middle.Sub(start)
		fused += time.Since(middle)
	}
	b.ReportMetric(float64(rounded)/float64(b.N)/times, "rounded-ns")
	b.ReportMetric(float64(fused)/float64(b.N)/times, "fused-ns")
	b.ReportMetric(rounded.Seconds()/fused.Seconds(), "rounded/fused")
}
