package projection

// This file holds what callers name: the kinds of projections, sizes, factors and the
// interface.

import (
	"strconv"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// Kind is the way in which a matrix is projected. The zero value is none. Files of models
// hold these numbers.
type Kind uint8

const (
	KL        Kind = 1 + iota // updates under the Kullback-Leibler divergence
	Frobenius                 // updates under the Frobenius norm
	SVD                       // the truncated singular value decomposition
)

// Size is the size of a projection: d × n matrices Y onto those of rank k, all at least 1.
type Size struct{ D, N, K int }

// Factors are U and V.
type Factors struct {
	U []float64 // d × k
	V []float64 // k × np, np = kernel.Pad(n), the padding zero
}

// Seen fills row i of Ω, n numbers: 1 where a cell is visible and 0 where it is hidden.
// Several goroutines call it at once. It is nil where all cells are visible.
type Seen func(omega []float64, i int)

// Projector is Π_k for matrices of one size, with its workspace. Matrices are d rows of
// np = kernel.Pad(n) numbers, the padding zero.
type Projector interface {
	// Forward projects y, 0 in hidden cells. Updates go out from the factors in start,
	// which stay as they are; an SVD does without. Forward keeps y, which must not change
	// until the last Backward. It returns an [*EqualError] where Π_k has no derivative at y,
	// though the factors are good, and the pool's error where that has ended.
	Forward(y []float64, start Factors) error
	// Result returns the factors that the last Forward made. The next overwrites them.
	Result() Factors
	// Backward fills ybar, 0 in hidden cells, with the gradient at y for the gradient wbar
	// at UV. It may be called several times after a Forward.
	Backward(wbar, ybar []float64)
}

// New returns a projector of the given kind, with that number of updates, at least 1,
// which an SVD does without. An SVD needs every cell: it does not call seen.
func New(kind Kind, updates int, size Size, seen Seen, workers *pool.Pool) Projector {
	if kind == SVD {
		return newTruncated(size, workers)
	}
	return newUnrolled(kind, updates, spacing(updates, size.stateSize(seen != nil)), size, seen, workers)
}

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
