package quantmf_test

// This file holds the examples of data: missing values, rows of a program's own, and what a progress may do.

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/quantmf/quantmf"
)

// NaN cells are unobserved: the model is fitted to the others, and says what they would be.
func ExampleWithMissingValues() {
	x := loads()
	hidden := x.At(2, 5)
	x.Set(2, 5, math.NaN())
	m, err := quantmf.FitNMF(context.Background(), x, 2, quantmf.WithMissingValues())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(math.Abs(m.Reconstruct().At(2, 5)-hidden) < 0.1*hidden)
	// Output: true
}

// counter is a matrix that is computed when it is read: nothing of it is held.
type counter struct{}

func (counter) Dims() (rows, cols int) { return 6, 1000 }

func (counter) ReadRow(x []float64, i int) error {
	for j := range x {
		x[j] = float64((i+1)*(j%7+1) + i%2*(j%5))
	}
	return nil
}

// A type of the program's own may be fitted: it is read a row at a time.
func ExampleRows() {
	m, err := quantmf.FitNMF(context.Background(), counter{}, 2)
	if err != nil {
		log.Fatal(err)
	}
	loss, err := m.Loss(counter{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(loss < 1e-3)
	// Output: true
}

// A direction in which the samples move has a derivative of their ranks, without a backward pass.
func ExampleTransport_RankJVP() {
	t, err := quantmf.Solve([]float64{1, 2, 4, 8}, quantmf.WithEpsilon(0.1))
	if err != nil {
		log.Fatal(err)
	}
	d, err := t.RankJVP(quantmf.Gradient{X: []float64{0, 1, 0, 0}}) // the second grows
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d[1] > 0, d[2] < 0)
	// Output: true true
}
