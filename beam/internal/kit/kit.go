// Package kit has what the tests of both packages of this module share.
package kit

import (
	"math"
	"math/rand/v2"

	"github.com/quantmf/quantmf"
)

// LowRank returns a d × n matrix of rank 3 with noise, each row raised to another power.
func LowRank(d, n int) quantmf.Mat {
	r := rand.New(rand.NewPCG(1, 2))
	v := quantmf.NewMat(3, n)
	for i := range v.Data {
		v.Data[i] = r.ExpFloat64()
	}
	x := quantmf.NewMat(d, n)
	for i := range d {
		u := []float64{r.ExpFloat64(), r.ExpFloat64(), r.ExpFloat64()}
		for j := range n {
			w := u[0]*v.At(0, j) + u[1]*v.At(1, j) + u[2]*v.At(2, j) + .05*r.Float64()
			x.Set(i, j, math.Pow(w, .5+float64(i%4)/3))
		}
	}
	return x
}
