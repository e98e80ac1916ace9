// Package gauss makes Gauss–Newton steps on the factors of W = UV, in the method's
// incremental form, which sees one row after the other (Bertsekas 1996). A row comes with w, the
// gradient w̄ at w and a curvature a_j >= 0 of each cell. It is taken by its quadratic model
//
//	Σ_j w̄_j (w'_j - w_j) + a_j (w'_j - w_j)²/2 = Σ_j a_j w'_j²/2 - b_j w'_j + const,
//	b_j = a_j w_j - w̄_j.
//
// # A row of U
//
// With V held fixed, w' = u'V makes the model a quadratic problem in the k entries of u', with the
// gradient V w̄ and the Hessian V diag(a) Vᵀ (row.go).
//
// # V
//
// The model of a column v of V is the sum of the models of the rows, in which rows that were seen longer
// ago have less weight (columns.go):
//
//	vᵀA_j v/2 - B_j·v,   A_j = Σ_i a_ij U_iᵀU_i,   B_j = Σ_i b_ij U_iᵀ.
//
// # A step
//
// Steps of U and V make sweeps of coordinate descent on the model. The diagonal of the Hessian is raised
// by a share, and each entry stays within bounds about its start. The step then goes a share of the way
// to where the sweeps lead. So one step changes no entry by more than a factor, whatever the model is.
package gauss

import "github.com/quantmf/quantmf/internal/elem"

// step says how far a step goes.
type step struct {
	Sweeps    int
	Damp      float64 // the share by which the diagonal of the Hessian is raised
	Low, High float64 // the sweeps keep an entry from Low to High times its start,
	Rise      float64 // the upper bound raised by this share of the mean of the entries
	Share     float64 // the share of the way, to where the sweeps lead, that the step goes
}

// to returns the value to which a sweep moves an entry, now x and from at the start, by its gradient and
// curvature and within the bounds; x where the curvature is 0 or the quotient is NaN.
func (s *step) to(x, gradient, curvature, from, mean float64) float64 {
	if !(curvature > tiny) {
		return x
	}
	to := x - gradient/curvature
	if to != to {
		return x
	}
	if low := s.Low * from; to < low { // no max or min, which take longer as they see to NaN
		to = low
	}
	if high := float64(s.High*from) + float64(s.Rise*mean); to > high {
		to = high
	}
	return to
}

// tiny is the curvature up to which a curvature counts as 0.
const tiny = 1e-250

// MeanLogSquare returns the mean of log²x over the numbers x of v. The penalty of a factor is its weight
// times half of this mean.
func MeanLogSquare(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		l := elem.Log(x)
		s += float64(l*l) / float64(len(v))
	}
	return s
}

// barrier returns the gradient and the curvature of weight/2 log²x at an x > 0 whose logarithm is log.
// The curvature returned is at least weight/x².
func barrier(weight, x, log float64) (gradient, curvature float64) {
	by := weight / x
	return float64(by * log), float64(by / x * max(1-log, 1))
}
