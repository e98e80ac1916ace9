package qmf

// This file holds what a line adds to the maps T while they are fitted,
//
//	T_i(w) = s_i w + M_i(w) q_i,   s_i >= 0.
//
// The paper's map is M_i(w) q_i alone (§2.2). It cannot contain the straight line of a row with a few far
// samples: the squash presses the other samples into a tenth of its range, and T does not exceed q_m. With
// the line a QMF contains the NMF, T_i(w) = w.
//
// T is linear in s as in the increments of q, so one EM step moves both (monotone.go). It moves how T
// is shared between the two only slowly. So the share τ of WithLine, which the start gives to the line and
// towards which shrinkage pulls, is a prior. With α + βw the least-squares line of x on w, α >= 0 unless data
// are signed, the target of shrinkage is
//
//	s⁰ = τ β,   D⁰ = (1-τ) (the increments of inflation.prior) + τ α [the first].
//
// The paper's form (StartUniform, EndsPinned) has no line.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/transport"
)

// addLine adds s_i w to T_i in v.t.
func (f *inflation) addLine(v *rowSpace, i int) {
	if f.Slope(i) > 0 {
		kernel.Accumulate(v.t, f.S[i:i+1], v.w)
	}
}

// startLine gives the line its share of the first map of row i, and leaves the rest to the quantiles.
func (f *inflation) startLine(v *rowSpace, i int) {
	if f.line == 0 {
		return
	}
	if sum := blockDot(v.w, f.visibleCells(v)); sum > divergence.LeastSum {
		kernel.Scale(f.Increments(i), f.Increments(i), 1-f.line)
		f.S[i] = f.line * f.Average[i] * f.Mass[i] / sum
	}
}

// visibleCells returns the weights of visible cells, 1 where there are none, and 0 in others: v.s, which read
// fills under KL, or v.z.
func (f *inflation) visibleCells(v *rowSpace) []float64 {
	if v.weights != nil {
		return v.weights
	}
	if f.Loss == divergence.KL {
		return v.s
	}
	clear(v.z)
	for j := range v.z[:f.n] {
		if v.observed == nil || v.observed[j] {
			v.z[j] = 1
		}
	}
	return v.z
}

// lineTarget is the line α + βw towards which shrinkage pulls: the least-squares line, which has the slope
// beta at these moments of w, or, where its α is below 0 and data are not signed, the line through 0 and the
// means.
func (f *inflation) lineTarget(at *transport.Squash, i int, beta float64) (alpha, slope float64) {
	if at.Std == 0 {
		return f.Average[i], 0
	}
	mean := at.Ref + at.Shift
	slope = beta / at.Std
	if alpha = f.Average[i] - float64(slope*mean); alpha < 0 && !f.Spans.Signed {
		return 0, f.Average[i] / mean
	}
	return alpha, slope
}

// mixLine makes of the increments of the affine map in the sums, averaged over levels, the target of a map
// with a line.
func (f *inflation) mixLine(s *emSums, alpha, slope float64) {
	s.Line.Prior = f.line * slope
	kernel.Scale(s.Prior, s.Prior, 1-f.line)
	s.Prior[0] += float64(f.line * alpha)
}

// backLine adds to w̄, and where it is wanted to the slopes, what goes through the line: z is the cotangent,
// and unit brings T to its units. Slopes are those of GradXSlopes, over the visible cells.
func (f *inflation) backLine(v *rowSpace, i int, wbar, slopes []float64) {
	s := f.Slope(i)
	if s == 0 {
		return
	}
	by := [...]float64{s * f.cellUnit(i)}
	kernel.Accumulate(wbar, by[:], v.g)
	if slopes != nil {
		by[0] /= f.Mass[i]
		kernel.Accumulate(slopes, by[:], f.visibleCells(v))
	}
}

// blockDot returns Σ v_j w_j over whole blocks.
func blockDot(v, w []float64) float64 {
	var s [1]float64
	kernel.Dots(s[:], v, w)
	return s[0]
}
