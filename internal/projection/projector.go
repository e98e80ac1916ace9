package projection

// This file holds the interface of all projections, and what makes them.

import "github.com/quantmf/quantmf/internal/pool"

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

// New returns a projector of the chosen kind, with that number of updates, at least 1,
// which an SVD does without. An SVD needs every cell: it does not call seen.
func New(by Choice, size Size, seen Seen, workers *pool.Pool) Projector {
	if by.Kind == SVD {
		return newTruncated(size, workers)
	}
	between := spacing(by.Updates, size.stateSize(seen != nil))
	return newUnrolled(by.Kind, by.Updates, between, size, seen, workers)
}
