//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package adam

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/cpu"
	"github.com/quantmf/quantmf/internal/random"
)

// TestVector compares assembly with the loop in Go bit for bit at every length,
// with a number after each slice that must stay.
func TestVector(t *testing.T) {
	defer func(l int) { level = l }(level)
	for l := cpu.Portable + 1; l <= cpu.Level; l++ {
		for n := 0; n < 100; n++ {
			src := random.Split(5, n)
			var want, got [4][]float64
			for i := range want {
				for range n + 1 {
					want[i] = append(want[i], src.Float64())
				}
				got[i] = append([]float64{}, want[i]...)
			}
			for i, v := range [2]*[4][]float64{&want, &got} {
				level = i * l
				for step := 1; step < 4; step++ {
					Step(v[0][:n], v[1][:n], v[2][:n], v[3][:n], 0.1, step)
				}
			}
			for i := range want {
				for j := range want[i] {
					if math.Float64bits(want[i][j]) != math.Float64bits(got[i][j]) {
						t.Fatalf("level %d: slice %d, entry %d of %d is %v, want %v", l, i, j, n, got[i][j],
							want[i][j])
					}
				}
			}
		}
	}
}
