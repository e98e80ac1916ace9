package place

// This file holds columns under Uv. A step s minimises the quadratic model
// g·s + sᵀHs/2 under v+s >= 0 exactly, by an active set in k unknowns, so that
// zeros of v are found, not approached. H = Uᵀ diag(ω) U, ω = ∂²Δ/∂t² as in
// Newton's method; in the first steps ω is at least the curvature at x = t, since
// from afar a cell with x below t is flatter than it will be on the way. Columns of U are
// brought to sum 1 and so is x.
//
// For β from 1 to 2 the problem is convex, and no value of the loss is needed. Along a step
// let φ(t) be the loss at v + ts, φ'(0) = g·s = -a. The minimum under bounds has sᵀHs <= a, so
// φ"(0) <= a; and φ" is convex, a sum of powers of w + tUs below 0. Among convex φ" of
// φ"(0) <= a and ∫φ" = φ'(1) + a the line leaves the least fall,
//
//	φ(0) - φ(1) >= a/2 - φ'(1)/3.
//
// So a step is taken where φ'(1) <= a, and the loss falls by a/6 at least. Else it is shortened: where the
// slope is far above, a cell came to w = 0 that is not 0, and a little less than all of the step shows how
// stiff it is; otherwise to the root of -a + at/(1-ρt), which has the slopes at 0 and 1.
//
// Other losses may have many minima. There ω is the curvature at x = t, which is positive, and a
// step is halved until the loss falls by a share of a.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
)

const (
	expectedAt  = 1      // steps by at least the expected curvature, after the first
	leastFirst  = 0.03   // of 1/k, below which no entry falls in the first step
	settled     = 1e-10  // a over vᵀHv at which a step is the last: the convergence is quadratic
	settledRoot = 1e-12  // the same where the loss has powers, whose derivatives are not smooth at 0
	still       = 1e-16  // a over vᵀHv at which nothing but rounding is left
	retreat     = 0.95   // of a step that made a cell 0 which is not
	smallest    = 1e-9   // share of a step
	ridge       = 1e-12  // of the diagonal of H
	floorShare  = 1e-16  // of t in derivatives, x having sum 1
	leastColumn = 1e-230 // sum of a column of U below which its coordinates could overflow: it counts as 0
)

// Linear is U without its zero columns, each brought to sum 1.
type Linear struct {
	loss    divergence.Loss
	convex  bool
	settled float64
	d, k    int
	u       []float64 // d × len(alive)
	alive   []int     // the columns of U that are left
	sum     []float64 // what each of them summed to
	prior   Prior
	// The model where all v_c are 1/k, by the expected curvature: its H, its g but for x, and what
	// x is multiplied by in it, len(alive) × Pad(d).
	first quadratic
	byX   []float64
	mean  []float64 // d: t where all v_c are 1/k
}

// Prior are the weights of a penalty L1 Σ v + L2/2 Σ v² that is added to the sum of divergences of a column.
type Prior struct{ L1, L2 float64 }

// WithPrior adds a penalty, before any column is placed.
func (b *Linear) WithPrior(p Prior) *Linear {
	b.prior = p
	return b
}

// NewLinear makes a Linear of the d rows of U, of k numbers each.
func NewLinear(loss divergence.Loss, d, k int, row func(i int) []float64) *Linear {
	b := &Linear{loss: loss, convex: loss >= divergence.KL && loss <= divergence.Frobenius,
		settled: settledRoot, d: d, k: k}
	if loss == divergence.KL {
		b.settled = settled
	}
	for c := range k {
		s := 0.0
		for i := range d {
			s += row(i)[c]
		}
		if s > leastColumn {
			b.alive, b.sum = append(b.alive, c), append(b.sum, s)
		}
	}
	for i := range d {
		row := row(i)
		for a, c := range b.alive {
			b.u = append(b.u, row[c]/b.sum[a])
		}
	}
	if b.convex {
		b.begins()
	}
	return b
}

// begins makes the model that all columns begin with.
func (b *Linear) begins() {
	k, dp := len(b.alive), kernel.Pad(b.d)
	b.first, b.mean, b.byX = newQuadratic(k), make([]float64, b.d), make([]float64, k*dp)
	for i := range b.mean {
		u := b.u[i*k : (i+1)*k]
		for _, v := range u {
			b.mean[i] += v / float64(k)
		}
		curvature := 1 / b.loss.Stiffness(max(b.mean[i], floorShare))
		b.first.Add(float64(curvature*b.mean[i]), curvature, u)
		for c, v := range u {
			b.byX[c*dp+i] = float64(curvature * v)
		}
	}
}

func (b *Linear) features() (u []float64, d, k int) { return b.u, b.d, len(b.alive) }

func (b *Linear) valued() bool { return !b.convex }

func (b *Linear) cells() func(t *tile, i, rows, np int) {
	return func(t *tile, i, rows, np int) {
		each, n := np, rows
		if np == t.wide { // the rows of x are one after another, too
			each, n = rows*np, 1
		}
		for r := range n {
			lo, hi := r*each, (r+1)*each
			value := t.group.loss[lo:hi]
			if b.convex {
				value = nil
			}
			b.loss.Differentiate(value, t.group.slope[lo:hi], t.group.curvature[lo:hi],
				t.group.expected[lo:hi],
				t.columns[(i+r)*t.wide:], t.group.w[lo:hi], floorShare)
		}
		if !b.convex { // all are cautious
			copy(t.group.curvature[:rows*np], t.group.expected)
			return
		}
		for r := range rows {
			curvature, expected := t.group.curvature[r*np:(r+1)*np], t.group.expected[r*np:(r+1)*np]
			for _, l := range t.cautious {
				curvature[l] = max(curvature[l], expected[l])
			}
		}
	}
}

func (b *Linear) searches() func() search {
	k := len(b.alive)
	shared := &shared{x: make([]float64, b.d), filled: make([]float64, kernel.Pad(b.d)),
		form: newQuadratic(k)}
	return func() search {
		room := make([]float64, 3*k)
		return &linear{Linear: b, shared: shared, v: room[:k:k], try: room[k : 2*k : 2*k], s: room[2*k:]}
	}
}

// shared is what the searches of a worker have together: the column that one begins with, and the model at
// the point of the one that goes on.
type shared struct {
	x      []float64 // of sum 1
	filled []float64 // Pad(d): the same, with the mean where a cell is missing
	holes  bool      // some are
	form   quadratic
}

// linear is the search of a column.
type linear struct {
	*Linear
	*shared
	unit           float64 // what the column summed to
	v, try, s      []float64
	loss           float64 // at v, where it is not convex
	promise, share float64 // a, and how much of s is in try
	scale          float64 // vᵀHv, where a is small beside it
	step           int
	stands         bool // try is v
}

func (p *linear) begin(_ int, column []float64) ([]float64, bool) {
	k := p.form.K
	copy(p.filled, column)
	p.unit, p.holes = kernel.Sum(p.filled), false
	if p.unit != p.unit {
		p.unit, p.holes = 0, true
		for _, x := range column {
			if x == x {
				p.unit += x
			}
		}
	}
	if !(p.unit > 0) || k == 0 {
		clear(p.v)
		return nil, false
	}
	units := p.filled[:p.d]
	for i := range units {
		units[i] = p.unit
	}
	kernel.Divide(p.x, column, units)
	for c := range p.try {
		p.v[c] = 1 / float64(k)
	}
	if p.convex && p.leap() {
		return nil, false
	}
	copy(p.try, p.v)
	p.step, p.stands = 0, true
	return p.x, true
}

// leap makes the first step, from v_c = 1/k. It has no column to wait for: the curvature is
// that of all, and missing cells are taken to be as the mean. It tells whether it came to the minimum;
// else no entry is 0 after it.
func (p *linear) leap() bool {
	copy(p.filled, p.x)
	if p.holes {
		seen := 0.0
		for i, x := range p.x {
			if x == x {
				seen += p.mean[i]
			}
		}
		for i, x := range p.x {
			if x != x {
				p.filled[i] = p.mean[i] / max(seen, floorShare)
			}
		}
	}
	kernel.Dots(p.form.G, p.byX, p.filled)
	for c, g := range p.form.G {
		p.form.G[c] = p.first.G[c] - g
	}
	copy(p.form.H, p.first.H)
	p.penalise(p.v)
	p.form.Bounded(p.v, ridge)
	for c, s := range p.form.S {
		p.v[c] += s
	}
	if p.Linear.loss == divergence.Frobenius && !p.holes {
		for c := range p.form.G { // once more, for what the ridge has cost
			p.form.G[c] += p.form.Times(c, p.form.S)
		}
		p.form.Bounded(p.v, ridge)
		for c, s := range p.form.S {
			p.v[c] += s
		}
		return true
	}
	for c, v := range p.v {
		p.v[c] = max(v, leastFirst/float64(p.form.K))
	}
	return false
}

func (p *linear) point() []float64  { return p.try }
func (p *linear) model() *quadratic { return &p.form }

func (p *linear) cautious() bool {
	step := p.step
	if !p.stands {
		step++
	}
	return step < expectedAt || !p.convex
}

// penalise adds the penalty at a point to the model there, and returns it. x was divided by its sum, which is
// the unit of the loss and of v, whose columns of U have sum 1.
func (p *linear) penalise(at []float64) (penalty float64) {
	if p.prior == (Prior{}) {
		return 0
	}
	k := p.form.K
	// of a very small unit both would be infinite
	stiffness := min(p.Linear.loss.Stiffness(p.unit), math.MaxFloat64)
	each := min(stiffness/p.unit, math.MaxFloat64)
	for c, v := range at {
		linear := min(float64(p.prior.L1*each)/p.sum[c], limit.Penalty)
		square := min(float64(p.prior.L2*stiffness)/p.sum[c]/p.sum[c], limit.Penalty)
		p.form.G[c] += linear + float64(square*v)
		p.form.H[c*k+c] += square
		penalty += float64((linear + float64(square/2*v)) * v)
	}
	return penalty
}

func (p *linear) next(loss float64) bool {
	loss += p.penalise(p.try)
	k, slope := p.form.K, dot(p.form.G, p.s)
	switch {
	case p.stands:
		p.stands = false
	case p.convex && slope <= p.promise:
		p.step++
	case !p.convex && loss <= p.loss-float64(1e-4*float64(p.share*p.promise)):
		if p.step >= expectedAt && p.loss-loss <= 1e-2*smallFall*p.loss {
			p.v, p.try = p.try, p.v
			return false
		}
		p.step++
	case p.share > smallest:
		p.shorten(slope)
		p.aim()
		return true
	case p.step < expectedAt && p.convex: // by Newton's curvature, then
		copy(p.try, p.v)
		p.step, p.stands = expectedAt, true
		return true
	default:
		return false
	}
	p.v, p.try = p.try, p.v
	p.loss = loss
	p.form.Bounded(p.v, ridge)
	copy(p.s, p.form.S)
	p.promise, p.share, p.scale = -dot(p.form.G, p.s), 1, 0
	most := 0.0 // k Σ v_c² H_cc, which vᵀHv is not above
	for c, v := range p.v {
		most += float64(float64(float64(k)*v*v) * p.form.H[c*k+c])
	}
	if p.promise <= p.settled*most {
		for c, v := range p.v {
			p.scale += float64(v * p.form.Times(c, p.v))
		}
	}
	if p.step == mostSteps || p.promise <= still*p.scale {
		return false
	}
	p.aim()
	if p.convex && p.promise <= p.settled*p.scale { // what is left after it is not worth a look
		p.v, p.try = p.try, p.v
		return false
	}
	return true
}

// shorten takes less of the step, at whose end the slope is that.
func (p *linear) shorten(slope float64) {
	switch {
	case !p.convex:
		p.share /= 2
	case p.share == 1 && slope > 10*p.promise:
		p.share = retreat
	default:
		p.share *= max((p.promise+slope)/(p.promise+2*slope), 0.1)
	}
}

// aim makes try of the share of the step.
func (p *linear) aim() {
	for c, s := range p.s {
		p.try[c] = max(p.v[c]+float64(p.share*s), 0)
	}
}

func (p *linear) end(v []float64) {
	clear(v)
	for a, c := range p.alive {
		v[c] = p.v[a] * (p.unit / p.sum[a])
	}
}
