package bench

// This file makes the data that benchmarks of sparse matrices fit.

import (
	"math"
	"math/rand/v2"

	"github.com/quantmf/quantmf"
)

// Counts makes d × n counts of features whose rates differ by orders of magnitude; about the share density of
// them is not zero.
func Counts(d, n int, density float64) (*quantmf.Sparse, error) {
	r := rand.New(rand.NewPCG(1, 2))
	room := int(1.1 * density * float64(d) * float64(n))
	start, index, values := make([]int, 1, d+1), make([]uint32, 0, room), make([]float32, 0, room)
	for range d {
		// its mean is density: exp of a normal number has mean √e
		share := min(0.9, 0.6*density*math.Exp(r.NormFloat64()))
		mean := 0.3 * math.Exp(1.5*r.NormFloat64())
		for j := 0; ; j++ {
			if j += int(math.Log(1-r.Float64()) / math.Log(1-share)); j >= n {
				break
			}
			index = append(index, uint32(j))
			values = append(values, float32(1+math.Floor(mean*r.ExpFloat64())))
		}
		start = append(start, len(index))
	}
	return quantmf.NewSparse(n, start, index, values)
}
