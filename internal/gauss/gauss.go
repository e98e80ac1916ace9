// Package gauss holds steps on the factors of W = UV by the method of Gauss and Newton, of
// which the rows are seen one after the other (incremental: Bertsekas 1996). A row comes with
// w, the gradient w̄ at it and a curvature a >= 0 of each cell, and stands for the model
//
//	Σ_j w̄_j (w'_j - w_j) + a_j (w'_j - w_j)²/2 = Σ_j a_j w'_j²/2 - b_j w'_j + const,   b_j = a_j w_j - w̄_j.
//
// # A row of U
//
// With V held, w' = u'V, and that is a problem in the k entries of u', with the gradient V w̄ and
// the Hessian V diag(a) Vᵀ (row.go).
//
// # V
//
// A column of V has the sum of the models of the rows, those seen long ago weighing less
// (columns.go):
//
//	vᵀA_j v/2 - B_j·v,   A_j = Σ_i a_ij U_iᵀU_i,   B_j = Σ_i b_ij U_iᵀ.
//
// # A step
//
// Both go by sweeps of coordinate descent, the diagonal raised by a share, within bounds about
// where they start, and then only a share of the way: one step changes no entry by more than a
// factor, whatever the model says.
package gauss

import "github.com/quantmf/quantmf/internal/elem"

// Step says how far a step goes.
type Step struct {
	Sweeps    int
	Damp      float64 // the share by which the diagonal of the Hessian is raised
	Low, High float64 // of what an entry is, the least and the most that the sweeps may make of it,
	Rise      float64 // the most raised by this share of the mean of the entries
	Share     float64 // of the way to where the sweeps lead
}

// to is where an entry that was from goes from x, by a gradient and a curvature, within the
// bounds; x where the two tell nothing.
func (s *Step) to(x, gradient, curvature, from, mean float64) float64 {
	if !(curvature > tiny) {
		return x
	}
	to := x - gradient/curvature
	if to != to {
		return x
	}
	return min(max(to, s.Low*from), float64(s.High*from)+float64(s.Rise*mean))
}

// tiny is a curvature that counts as none.
const tiny = 1e-250

// MeanLogSquare returns the mean of log²x over v: twice the penalty of a factor by its weight.
func MeanLogSquare(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		l := elem.Log(x)
		s += float64(l*l) / float64(len(v))
	}
	return s
}

// barrier returns gradient and curvature of weight/2 log²x, for x > 0 of the given logarithm; the
// curvature is not below that at 1/x².
func barrier(weight, x, log float64) (gradient, curvature float64) {
	by := weight / x
	return float64(by * log), float64(by / x * max(1-log, 1))
}
