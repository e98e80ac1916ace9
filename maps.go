package quantmf

// This file holds the d increasing maps of a model while they are learnt,
//
//	T_i = T_{ε,b_i,q_i},   b_i = softmax F_i,   q_i = cumsum D_i,
//
// and their steps: Adam on F, and on q either the EM step or Adam on R, the logarithms
// of D. A QMF has one set of them (T), a QMFQ two (T and T').
//
// # The EM step on q
//
// With the plan fixed the model of a row is linear in the increments D of q:
// T_j = Σ_l tail_jl D_l, tail_jl = Σ_{l'>=l} M_jl' >= 0. So the EM (or MM) step
//
//	D_l ← (D_l num_l + c_l D⁰_l)/(den_l + c_l + μ),  num_l = Σ_j tail_jl x_j/T_j,  den_l = Σ_j tail_jl
//
// lowers the divergence at once and takes the place of gradient steps on q. That is KL;
// under other divergences num and den are those of [Loss.parts], and with free ends
// and λ = 0 their ratio is raised to the power γ (internal/divergence).
// Free ends: l = 0, ..., m-1 with D_0 = q_1 and μ = 0. Pinned ends: D_0 = min x
// stays, and μ keeps Σ_{l>0} D_l = max x - min x. c_l = λ den_l/n is the
// shrinkage towards the increments D⁰ of an affine map of w (WithShrinkage).
// Under StartUniform q takes Adam steps on the logarithms instead, as in the
// paper.
//
// # Signed data
//
// Data of either sign, which Frobenius alone takes, have each row shifted by its lowest
// value (cells.go), and q_1 may be of either sign. With c = min(q_1, min x) all of x - c,
// T - c and D_l, l > 0, are non-negative, so D_l, l > 0, take the step above for x - c and
// T - c. Then q_1 takes its least-squares value, the mean of x_j - Σ_{l>0} tail_jl D_l;
// with shrinkage, the mean of it and, with the weight λ/n, of the affine map's q_1. Without
// shrinkage neither step raises the loss, and both are invariant to a constant added to the
// row. Where Adam steps q, it steps q_1 itself and the logarithms of the other increments.

import (
	"math"

	"github.com/quantmf/quantmf/internal/adam"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// maps are d increasing maps during a fit. Slices have d rows of m numbers.
type maps struct {
	m    int
	f    []float64 // F
	inc  []float64 // D, the first of a row q_1; where r is not nil, computed from it (fromR)
	r    []float64 // R: the logarithms of D, where Adam makes the steps on q; nil: EM does
	momF moment
	momR moment
	warm []transport.Warm // the warm starts of the transports

	ends              Ends
	of                *spans  // of the rows of x that T_i maps to; nil: ends are free and positive
	shortest, longest float64 // bounds of R
}

// spans are the extremes and the mean of the visible cells of every row.
type spans struct {
	low, high, average []float64
	seen               []int // visible cells
	signed             bool  // rows may be of either sign
}

func newSpans(s *cells) *spans {
	d, room := s.d, make([]float64, s.n)
	p := &spans{low: make([]float64, d), high: make([]float64, d), average: make([]float64, d), seen: s.rows, signed: s.signed}
	for i := range d {
		lo, hi, sum, count := math.Inf(1), math.Inf(-1), 0.0, float64(s.rows[i])
		for _, v := range s.row(room, i) {
			if v < lo { // not NaN
				lo = v
			}
			if v > hi {
				hi = v
			}
			if v == v {
				sum += v / count
			}
		}
		p.low[i], p.high[i], p.average[i] = lo, hi, sum
	}
	return p
}

func (p *spans) constant(i int) bool { return p.low[i] == p.high[i] }

// moment holds Adam's two moments of some parameters.
type moment struct{ mu, nu []float64 }

func newMoment(n int) moment { return moment{make([]float64, n), make([]float64, n)} }

// step makes Adam's step of parameters lo to hi-1 along their gradient.
func (m moment) step(param, grad []float64, lo, hi int, at pace) {
	adam.Step(param[lo:hi], grad, m.mu[lo:hi], m.nu[lo:hi], at.rate, at.count)
}

// pace is the learning rate of a step of Adam, and the number of the step, from 1.
type pace struct {
	rate  float64
	count int
}

// Floors, in units of the row: floorT of T in x/T, floorIncrement of increments,
// floorStart of increments and factors at the start. mostIncrement is a ceiling for signed
// data: least squares do not bound the increment of a level that has almost no share of
// the row.
const (
	floorT         = 1e-12
	floorIncrement = 1e-12
	floorStart     = 1e-3
	mostIncrement  = 1e12
)

// shortest and longest bound the logarithms of increments, so that a learning rate too large
// gives a bad fit and no overflow.
const shortest, longest = -690, 138

// newMaps makes d maps of m levels, flat and of uniform weights. byAdam: their q is
// stepped by Adam on R.
func newMaps(d, m int, byAdam bool, ends Ends, of *spans) maps {
	p := maps{m: m, f: make([]float64, d*m), inc: make([]float64, d*m), momF: newMoment(d * m), warm: make([]transport.Warm, d),
		ends: ends, of: of, shortest: shortest, longest: longest}
	for i := range p.warm {
		p.warm[i] = transport.NewWarm(m)
	}
	if byAdam {
		p.r, p.momR = make([]float64, d*m), newMoment(d*m)
	}
	return p
}

func (p *maps) logits(i int) []float64     { return p.f[i*p.m : (i+1)*p.m] }
func (p *maps) increments(i int) []float64 { return p.inc[i*p.m : (i+1)*p.m] }

// quantiles fills q with q_i.
func (p *maps) quantiles(q []float64, i int) { cumulate(q, p.increments(i)) }

func cumulate(q, inc []float64) {
	s := 0.0
	for j, d := range inc {
		s += d
		q[j] = s
	}
}

// signedEnds tells whether q_1 may be negative.
func (p *maps) signedEnds() bool { return p.of != nil && p.of.signed }

// stepF makes Adam's step of F_i along its gradient.
func (p *maps) stepF(i int, grad []float64, at pace) { p.momF.step(p.f, grad, i*p.m, (i+1)*p.m, at) }

// stepR makes the paper's step on q: Adam on R, the logarithms of the increments (of
// signed data R_1 is q_1 over the row's mean; pinned: of their shares of the row's range,
// by softmax). grad is the gradient in unit·q_i, and is overwritten.
func (p *maps) stepR(i int, grad []float64, unit float64, at pace) {
	m, inc := p.m, p.increments(i)
	tail := 0.0
	for l := m - 1; l >= 0; l-- { // backward of the cumulative sum
		tail += grad[l]
		grad[l] = tail
	}
	if p.ends == EndsFree {
		for l := range inc {
			d := inc[l]
			if l == 0 && p.signedEnds() {
				d = p.of.average[i]
			}
			grad[l] *= d * unit
		}
	} else {
		span := p.of.high[i] - p.of.low[i]
		mean := 0.0
		for l := 1; l < m; l++ {
			mean += float64(inc[l] / span * grad[l])
		}
		grad[0] = 0
		for l := 1; l < m; l++ {
			grad[l] = float64(inc[l] * unit * (grad[l] - mean))
		}
	}
	p.momR.step(p.r, grad, i*m, (i+1)*m, at)
	confine(p.r[i*m:(i+1)*m], p.shortest, p.longest)
	p.fromR(i)
}

// confine clamps l to [low,high].
func confine(l []float64, low, high float64) {
	for i, v := range l {
		l[i] = min(max(v, low), high)
	}
}

// fromR makes the increments of row i from their logarithms.
func (p *maps) fromR(i int) {
	inc, r := p.increments(i), p.r[i*p.m:(i+1)*p.m]
	if p.ends == EndsFree {
		kernel.Exp(inc, r)
		if p.signedEnds() {
			inc[0] = r[0] * p.of.average[i]
		}
		return
	}
	transport.Softmax(inc[1:], r[1:])
	for l := 1; l < len(inc); l++ {
		inc[l] *= p.of.high[i] - p.of.low[i]
	}
	inc[0] = p.of.low[i]
}

// emSums are what the EM step of a row takes: of tail_jl over its visible samples, with
// weights x T^{β-2} (num), T^{β-1} (den) and 1 (shares, wanted of signed data alone), and
// the increments of the map that shrinkage pulls to (prior).
type emSums struct{ num, den, shares, prior []float64 }

// em makes one multiplicative step on the increments of row i. num and den are
// overwritten of signed data.
func (p *maps) em(i int, s emSums, loss divergence.Loss, lambda float64) {
	inc, low, high := p.increments(i), p.of.low[i], p.of.high[i]
	seen, first := float64(p.of.seen[i]), 0
	if p.of.signed && p.ends == EndsFree {
		first = 1
		c := min(inc[0], low)
		for l, tail := range s.shares {
			s.num[l], s.den[l] = max(s.num[l]-float64(c*tail), 0), max(s.den[l]-float64(c*tail), 0)
		}
	}
	least := floorIncrement * max(high-low, p.of.average[i]*1e-3)
	if p.ends == EndsPinned {
		pinned(inc[1:], s.num[1:], s.den[1:], high-low, least)
		return
	}
	for l := first; l < len(inc); l++ {
		if lambda == 0 {
			inc[l] = max(inc[l]*loss.Step(s.num[l], s.den[l]), least)
			continue
		}
		c := lambda * s.den[l] / seen
		inc[l] = max((float64(inc[l]*s.num[l])+float64(c*s.prior[l]))/max(s.den[l]+c, divergence.LeastSum), least)
	}
	if first == 1 {
		q, most := p.of.average[i], mostIncrement*(high-low)
		for l := 1; l < len(inc); l++ {
			inc[l] = min(inc[l], most)
			q -= float64(inc[l] * (s.shares[l] / seen))
		}
		if lambda > 0 {
			more := lambda / seen
			q = (q + float64(more*s.prior[0])) / (1 + more)
		}
		inc[0] = q
	}
}

// pinned makes the step D ← D num/(den+μ) with μ such that ΣD = span. With
// ν = μ + min den the sum falls in ν from +Inf at 0 to below span at Σ D num/span,
// so the root is unique. It is found in ν, which keeps its digits near 0, where μ would
// cancel.
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

// parts are the numbers of the maps in a checkpoint: parameters, moments and warm starts.
func (p *maps) parts() []section.Part {
	all := append([]section.Part{section.Finite(p.f)}, p.rising(p.inc)...)
	all = append(all, p.momF.parts()...)
	if p.r != nil {
		all = append(append(all, section.Within(p.r, p.shortest, p.longest)), p.momR.parts()...)
	}
	for i := range p.warm {
		all = append(all, section.Finite(p.warm[i].Offset))
	}
	return all
}

// rising are increments as parts of a checkpoint: only the first of a row, q_1, may be
// negative.
func (p *maps) rising(inc []float64) (all []section.Part) {
	for lo := 0; lo < len(inc); lo += p.m {
		all = append(all, section.Finite(inc[lo:lo+1]), section.Positive(inc[lo+1:lo+p.m]))
	}
	return all
}

func (m moment) parts() []section.Part {
	// The square of a large gradient overflows: ν is +Inf from then on, and its parameter stands still.
	return []section.Part{section.Finite(m.mu), section.Within(m.nu, 0, math.Inf(1))}
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

// takeWarm reads what appendWarm appended, from the given index on.
func (f *file) takeWarm(states []transport.Warm, index []uint64, from int) error {
	for i := range states {
		if index[from+i] > 1 {
			return f.failAt("IDX0", from+i, "is neither 0 nor 1")
		}
		states[i].Valid = index[from+i] == 1
	}
	return nil
}

// pace returns the pace of Adam in epoch e, counted from 0.
func (s *settings) pace(e int) pace {
	rate := s.learningRate
	if s.schedule == ScheduleCosine {
		rate *= cosine(float64(e) / float64(s.epochs))
	}
	return pace{rate, e + 1}
}

// cosine returns (1+cos πt)/2 = cos²(πt/2) for t in [0,1], from the series of
// cos on [0,π/4]: the same bits everywhere.
func cosine(t float64) float64 {
	if t > 0.5 {
		return 1 - cosine(1-t)
	}
	a := t * (math.Pi / 2) // in [0, π/4]
	c := 1.0
	for i := 16; i > 0; i -= 2 { // cos a = 1 - a²/2(1 - a²/12(...))
		c = 1 - float64(float64(a*a)*c)/float64(i*(i-1))
	}
	return c * c
}
