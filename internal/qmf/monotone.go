package qmf

// This file holds the d increasing maps of a model while they are learnt (paper §3.3, and the line
// s_i w, which the paper does not have),
//
//	T_i(w) = s_i w + T_{ε,b_i,q_i}(w),   b_i = softmax F_i,   q_i = cumsum D_i,   s_i >= 0,
//
// and their steps: Adam on F (adam.go), on q either the EM step or Adam on R, the logarithms
// of D, and on s the EM step. A QMF has one set of them (T), a QMFQ two (T and T').
//
// # The EM step on q and s
//
// With the plan fixed the model of a row is linear in the increments D of q and in s:
// T_j = s w_j + Σ_l tail_jl D_l, tail_jl = Σ_{l'>=l} M_jl' >= 0. So the EM (or MM) step
//
//	D_l ← (D_l num_l + c_l D⁰_l)/(den_l + c_l + μ),  num_l = Σ_j tail_jl x_j/T_j,  den_l = Σ_j tail_jl,
//
// and that of s with w_j in the place of tail_jl, both at the same T,
// never raises the divergence and takes the place of gradient steps on q. This is the step
// under KL. Under other divergences num_l and den_l are the sums of tail_jl x_j T_j^{β-2} and
// tail_jl T_j^{β-1} (divergence.Loss.Terms), and with free ends and λ = 0 their ratio is raised
// to the power γ (internal/divergence).
//
// With free ends l = 0, ..., m-1, D_0 = q_1 and μ = 0. With pinned ends D_0 = min x stays,
// μ keeps Σ_{l>0} D_l = max x - min x, and s = 0. c_l = λ den_l/n is the shrinkage towards the
// increments D⁰ and the slope s⁰ of an affine map of w (WithShrinkage, WithLine).
//
// Under StartUniform q takes Adam steps on the logarithms of D instead, as in the paper.
//
// # Signed data
//
// Data of either sign, which Frobenius alone takes, have each row shifted by its lowest
// value (internal/fit), and q_1 may be of either sign. With c = min(q_1, min x) all of x - c,
// T - c, s w and D_l, l > 0, are non-negative, so s and D_l, l > 0, take the step above for x - c and
// T - c. Then q_1 takes its least-squares value, the mean of x_j - s w_j - Σ_{l>0} tail_jl D_l;
// with shrinkage, the mean of it and, with the weight λ/n, of the affine map's q_1. Without
// shrinkage neither step raises the loss, and both are invariant to a constant added to the
// row. Where Adam steps q, it steps q_1 itself and the logarithms of the other increments.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// Maps are d increasing maps during a fit. Slices have d rows of M numbers.
type Maps struct {
	M    int
	F    []float64 // F
	Inc  []float64 // D, the first of a row q_1; where R is not nil, computed from it (FromR)
	R    []float64 // R: the logarithms of D, where Adam makes the steps on q; nil: EM does
	S    []float64 // s, d numbers; nil where maps have no line
	MomF moment
	MomR moment
	Warm []transport.Warm // the warm starts of the transports

	Pinned            bool    // q_1 and q_m are the extremes of the row of x
	Shortest, Longest float64 // bounds of R

	of *Spans // those of the rows of x that T_i maps to; nil: ends are free and positive
}

// Spans are the extremes and the mean of the visible cells of every row.
type Spans struct {
	Low, High, Average []float64
	// Mass is the sum of the weights of the visible cells: their number where none has a weight.
	Mass   []float64
	Signed bool // rows may be of either sign
}

// newSpans makes room for d rows, of which each is to be read.
func newSpans(a *pool.Arena, d int, signed bool) *Spans {
	return &Spans{Low: a.Floats(d), High: a.Floats(d), Average: a.Floats(d), Mass: a.Floats(d),
		Signed: signed}
}

// Read reads row i, NaN where a cell is not visible, of so many visible cells or, where weights is not nil,
// the weights of its cells.
func (p *Spans) Read(row []float64, i, seen int, weights []float64) {
	lo, hi, sum, count := math.Inf(1), math.Inf(-1), 0.0, float64(seen)
	if weights != nil {
		count = 0
		for j, v := range row {
			if v == v {
				count += weights[j]
			}
		}
	}
	for j, v := range row {
		if v < lo { // not NaN
			lo = v
		}
		if v > hi {
			hi = v
		}
		switch {
		case v != v:
		case weights == nil:
			sum += v / count
		default:
			sum += float64(v * (weights[j] / count))
		}
	}
	p.Low[i], p.High[i], p.Average[i], p.Mass[i] = lo, hi, sum, count
}

// Constant tells whether all visible cells of row i are equal.
func (p *Spans) Constant(i int) bool { return p.Low[i] == p.High[i] }

// Floors and a ceiling, in units of the row.
const (
	FloorT         = 1e-12 // floor of T in x/T
	floorIncrement = 1e-12 // floor of increments
	FloorStart     = 1e-3  // floor of increments and of entries of factors at the start
	// mostIncrement is the ceiling of increments of signed data: least squares do not bound the
	// increment of a level that has almost no share of the row.
	mostIncrement = 1e12
)

// shortest and longest bound the logarithms of increments, so that a learning rate that is too large
// gives a bad fit but no overflow.
const shortest, longest = -690, 138

// LeastAtStart returns the bound to which a fit raises smaller entries of a factor, given the mean of the
// entries: FloorStart times the mean, 1 where that is 0.
func LeastAtStart(mean float64) float64 {
	if low := FloorStart * mean; low > 0 {
		return low
	}
	return 1
}

// New makes d maps of m levels, with increments 0 and uniform weights. byAdam says that Adam steps their
// q, on R. Only maps to rows whose ends are free, stepped by EM, may have a line.
func newMaps(a *pool.Arena, d, m int, byAdam, pinned bool, of *Spans) Maps {
	p := Maps{M: m, F: a.Floats(d, m), Inc: a.Floats(d, m), MomF: newMoment(a, d, m),
		Warm: transport.NewWarm(a, d, m), Pinned: pinned, of: of, Shortest: shortest, Longest: longest}
	if of != nil && !byAdam && !pinned {
		p.S = a.Floats(d)
	}
	if byAdam {
		p.R, p.MomR = a.Floats(d, m), newMoment(a, d, m)
	}
	return p
}

// Logits returns F_i.
func (p *Maps) Logits(i int) []float64 { return p.F[i*p.M : (i+1)*p.M] }

// Increments returns D_i.
func (p *Maps) Increments(i int) []float64 { return p.Inc[i*p.M : (i+1)*p.M] }

// Slope returns s_i.
func (p *Maps) Slope(i int) float64 {
	if p.S == nil {
		return 0
	}
	return p.S[i]
}

// Quantiles fills q with q_i.
func (p *Maps) Quantiles(q []float64, i int) {
	s := 0.0
	for j, d := range p.Increments(i) {
		s += d
		q[j] = s
	}
}

// signedEnds tells whether q_1 may be negative.
func (p *Maps) signedEnds() bool { return p.of != nil && p.of.Signed }

// StepF makes Adam's step of F_i along its gradient.
func (p *Maps) StepF(i int, grad []float64, at pace) {
	p.MomF.Step(p.F, grad, i*p.M, (i+1)*p.M, at)
}

// StepR makes the paper's step on q: Adam on R, the logarithms of the increments (of
// signed data R_1 is q_1 over the row's mean; pinned: of their shares of the row's range,
// by softmax). grad is the gradient in unit·q_i, and is overwritten.
func (p *Maps) StepR(i int, grad []float64, unit float64, at pace) {
	m, inc := p.M, p.Increments(i)
	tail := 0.0
	for l := m - 1; l >= 0; l-- { // backward of the cumulative sum
		tail += grad[l]
		grad[l] = tail
	}
	if !p.Pinned {
		for l := range inc {
			d := inc[l]
			if l == 0 && p.signedEnds() {
				d = p.of.Average[i]
			}
			grad[l] *= d * unit
		}
	} else {
		span := p.of.High[i] - p.of.Low[i]
		mean := 0.0
		for l := 1; l < m; l++ {
			mean += float64(inc[l] / span * grad[l])
		}
		grad[0] = 0
		for l := 1; l < m; l++ {
			grad[l] = float64(inc[l] * unit * (grad[l] - mean))
		}
	}
	p.MomR.Step(p.R, grad, i*m, (i+1)*m, at)
	kernel.Confine(p.R[i*m:(i+1)*m], p.Shortest, p.Longest)
	p.FromR(i)
}

// FromR makes the increments of row i from their logarithms.
func (p *Maps) FromR(i int) {
	inc, r := p.Increments(i), p.R[i*p.M:(i+1)*p.M]
	if !p.Pinned {
		kernel.Exp(inc, r)
		if p.signedEnds() {
			inc[0] = r[0] * p.of.Average[i]
		}
		return
	}
	transport.Softmax(inc[1:], r[1:])
	for l := 1; l < len(inc); l++ {
		inc[l] *= p.of.High[i] - p.of.Low[i]
	}
	inc[0] = p.of.Low[i]
}

// emSums are the sums from which the EM step of a row is made: over the row's visible samples j, by their
// weights, of tail_jl times x T^{β-2} (Num), T^{β-1} (Den) and 1 (Shares, for signed data alone). Prior are
// the increments of the map towards which shrinkage pulls.
//
// Line has the same sums with w_j for tail_jl, and the slope towards which shrinkage pulls.
type emSums struct {
	Num, Den, Shares, Prior []float64
	Line                    lineSums
}

// lineSums are what emSums has of the slope s of a row.
type lineSums struct{ Num, Den, Share, Prior float64 }

// EM makes one EM step on the increments and the slope of row i. For signed data it overwrites Num and Den.
func (p *Maps) EM(i int, s emSums, loss divergence.Loss, lambda float64) {
	inc, low, high := p.Increments(i), p.of.Low[i], p.of.High[i]
	mass, first := p.of.Mass[i], 0
	if p.of.Signed && !p.Pinned {
		first = 1
		c := min(inc[0], low)
		for l, tail := range s.Shares {
			s.Num[l], s.Den[l] = max(s.Num[l]-float64(c*tail), 0), max(s.Den[l]-float64(c*tail), 0)
		}
		at, line := float64(c*s.Line.Share), &s.Line
		line.Num, line.Den = max(line.Num-at, 0), max(line.Den-at, 0)
	}
	least := floorIncrement * max(high-low, p.of.Average[i]*1e-3)
	if p.Pinned {
		pinned(inc[1:], s.Num[1:], s.Den[1:], high-low, least)
		return
	}
	step := func(d, num, den, prior float64) float64 {
		if lambda == 0 {
			return d * loss.Step(num, den)
		}
		c := lambda * den / mass
		return (float64(d*num) + float64(c*prior)) / max(den+c, divergence.LeastSum)
	}
	if line := &s.Line; p.Slope(i) > 0 { // a slope that is 0 stays so
		p.S[i] = step(p.S[i], line.Num, line.Den, line.Prior)
	}
	for l := first; l < len(inc); l++ {
		inc[l] = max(step(inc[l], s.Num[l], s.Den[l], s.Prior[l]), least)
	}
	if first == 1 {
		most, mean := mostIncrement*(high-low), s.Line.Share/mass
		if far := most / mean; p.Slope(i) > far { // a denominator whose digits have gone says nothing of s
			p.S[i] = far
		}
		q := p.of.Average[i] - float64(p.Slope(i)*mean)
		for l := 1; l < len(inc); l++ {
			inc[l] = min(inc[l], most)
			q -= float64(inc[l] * (s.Shares[l] / mass))
		}
		if lambda > 0 {
			more := lambda / mass
			q = (q + float64(more*s.Prior[0])) / (1 + more)
		}
		inc[0] = q
	}
}

// pinned makes the step D ← D num/(den+μ) with μ such that ΣD = span. As a function of
// ν = μ + min den the sum falls from +Inf at 0 to below span at Σ D num/span, so the root is
// unique. The root is found in ν, which keeps its digits near 0, where μ would lose them.
func pinned(d, num, den []float64, span, low float64) {
	lowest, width := math.Inf(1), 0.0
	for l := range d {
		if t := float64(d[l] * num[l]); t > 0 {
			lowest = min(lowest, den[l])
			width += t
		}
	}
	if !(width/span > 0) {
		return
	}
	sum := func(nu float64) (s, slope float64) {
		for l := range d {
			if t := float64(d[l] * num[l]); t > 0 {
				v := (den[l] - lowest) + nu
				s += t / v
				slope -= t / v / v
			}
		}
		return s - span, slope
	}
	a, z := 0.0, width/span
	nu := min(lowest, z)
	if nu == 0 {
		nu = z
	}
	for range 100 {
		s, slope := sum(nu)
		if s > 0 {
			a = nu
		} else {
			z = nu
		}
		next := nu - s/slope
		if !(next > a && next < z) {
			next = elem.Middle(a, z)
		}
		if math.Abs(next-nu) <= 1e-14*nu {
			break
		}
		nu = next
	}
	total := 0.0
	for l := range d {
		t := float64(d[l] * num[l])
		if t > 0 {
			t /= (den[l] - lowest) + nu
		}
		d[l] = max(min(t, span), low)
		total += d[l]
	}
	for l := range d {
		d[l] *= span / total
	}
}

// kept are the parameters that a best state has of maps, at the state that the losses last returned belong
// to; nil: it does not have them.
type kept struct{ F, Inc, R, S []float64 }

// Walk calls visit for the numbers of the maps in a checkpoint, which are parameters, moments and warm
// starts, and for what the best state has of each.
func (p *Maps) Walk(visit func(numbers section.Part, best []float64), best kept) {
	visit(section.Finite(p.F), best.F)
	for lo := 0; lo < len(p.Inc); lo += p.M {
		var first, others []float64
		if best.Inc != nil {
			first, others = best.Inc[lo:lo+1], best.Inc[lo+1:lo+p.M]
		}
		visit(section.Finite(p.Inc[lo:lo+1]), first) // only q_1 may be negative
		visit(section.Positive(p.Inc[lo+1:lo+p.M]), others)
	}
	visit(section.Positive(p.S), best.S)
	walkMoments(visit, p.MomF)
	if p.R != nil {
		visit(section.Within(p.R, p.Shortest, p.Longest), best.R)
		walkMoments(visit, p.MomR)
	}
	for i := range p.Warm {
		visit(section.Finite(p.Warm[i].Offset), nil)
	}
}

// walkMoments calls visit for Adam's moments.
func walkMoments(visit func(numbers section.Part, best []float64), m moment) {
	visit(section.Finite(m.Mu), nil)
	// The square of a large gradient overflows: ν is +Inf from then on, and its parameter stands still.
	visit(section.Within(m.Nu, 0, math.Inf(1)), nil)
}

// appendWarm appends, for each row, 1 where its warm start is valid, else 0.
func appendWarm(index []uint64, states []transport.Warm) []uint64 {
	for i := range states {
		valid := uint64(0)
		if states[i].Valid {
			valid = 1
		}
		index = append(index, valid)
	}
	return index
}

// TakeWarm reads from section IDX0 of a checkpoint what AppendWarm appended, from the given index on.
func TakeWarm(f *section.File, states []transport.Warm, index []uint64, from int) error {
	for i := range states {
		if index[from+i] > 1 {
			return f.FailAt("IDX0", from+i, "is neither 0 nor 1")
		}
		states[i].Valid = index[from+i] == 1
	}
	return nil
}
