//go:build ignore

// A small program of someone else: it fits a QMF, without fmt and os. .ci/run holds its size as
// js/wasm, and .ci/vendor vendors and builds it.
package main

import (
	"context"

	"github.com/quantmf/quantmf"
)

func main() {
	const d, n = 12, 20
	x := quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Set(i, j, float64(1+(3*i+7*j+i*j)%11)*float64(1+j%4))
		}
	}
	m, err := quantmf.FitQMF(context.Background(), x, 2, quantmf.WithEpochs(20))
	if err != nil {
		panic(err)
	}
	println("loss", m.History[len(m.History)-1], "of U", m.U.At(0, 0), "and V", m.V.At(0, 0))
}
