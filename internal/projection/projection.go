package projection

// This file holds what a projection is given and gives: kind, size, factors, the cells that
// it sees, and its error.

import (
	"strconv"

	"github.com/quantmf/quantmf/internal/kernel"
)

// Kind is the way in which a matrix is projected. The zero value is none. Files of models
// hold these numbers.
type Kind uint8

const (
	KL        Kind = 1 + iota // updates under the Kullback-Leibler divergence
	Frobenius                 // updates under the Frobenius norm
	SVD                       // the truncated singular value decomposition
)

// Choice is a kind and, of one by updates, their number.
type Choice struct {
	Kind    Kind
	Updates int
}

// Size is the size of a projection: d × n matrices Y onto those of rank k, all at least 1.
type Size struct{ D, N, K int }

// Factors are U and V.
type Factors struct {
	U []float64 // d × k
	V []float64 // k × np, np = kernel.Pad(n), the padding zero
}

// Seen fills row i of Ω, n numbers: 1 where a cell is visible, or its weight, and 0 where it is hidden.
// Several goroutines call it at once. It is nil where all cells are visible.
type Seen func(omega []float64, i int)

// EqualError says that the singular values K and K+1 of a matrix are equal to rounding:
// its truncated SVD has no derivative.
type EqualError struct {
	K     int     // from 1
	Value float64 // singular value K
}

func (e *EqualError) Error() string {
	return "the singular values " + strconv.Itoa(e.K) + " and " + strconv.Itoa(e.K+1) +
		" of the matrix to be projected are equal to rounding; the truncated SVD has no derivative there"
}

// add adds a vector to another.
func add(to, from []float64) { kernel.Accumulate(to[:len(from)], []float64{1}, from) }
