package quantmf

// This file holds the inflating maps T while they are fitted to X ≈ T(UV): of a QMF,
// whose U and V take steps themselves, and of a QMFQ, whose U and V a projection makes.
// A visit of a row is
//
//	w = U_i V → T_i(w), its loss → the step on q_i → ∂Δ/∂T → w̄, and the step of F_i,
//
// one call forward and one back (internal/transport), for some rows abreast. What w̄ is
// for is the caller's affair.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// inflation is T under way.
type inflation struct {
	*settings
	*cells
	*factors // whose product is inflated
	*spans
	maps
	pool   *pool.Pool
	lambda float64 // the shrinkage
	scale  float64 // the mean of average^β: the unit of the whole loss
	batch  []int   // the rows that are visited next, their places the slots of wbar
	at     pace    // of Adam's steps
	// Losses of a visit are those before its steps where all rows are one batch, after
	// them otherwise, and are not taken at all where they are evaluated anyway.
	evaluated          bool
	rowLosses, rowHeld []float64 // of each row, as last visited or evaluated
	wbar               []float64 // batch × np: the gradients at w, in units of the rows' losses
	work               []crew
	evaluates          func(worker, piece int)
}

// crew is the workspace of one worker: a visitor for each of the rows that it works
// at abreast.
type crew struct {
	visitors []visitor
	slots    []int // in the batch, of the rows at hand
	group    *transport.Group
	back     []transport.Cotangent // dΔ/dT of the rows at hand
}

// visitor is the workspace of one row at work.
type visitor struct {
	row         *transport.Row // of the crew's group
	x, w, t, g  []float64      // np
	s           []float64      // np; 1 as it is made, for ratios
	about, z    []float64      // scratch, np
	q, num, den []float64      // m
	d0          []float64      // increments of the affine map, m
	observed    []bool         // of the row at hand; nil: all
	mask        []bool
	gu          []float64 // k
}

// newInflation makes maps for the visible cells, visited in batches of at most so many
// rows. The factors may be replaced by others of their size.
func newInflation(s *settings, visible *cells, f *factors, p *pool.Pool, batch int) *inflation {
	d, of := visible.x.Rows, newSpans(visible)
	t := &inflation{settings: s, cells: visible, factors: f, spans: of, maps: newMaps(d, s.levels, s.start == StartUniform, s.ends, of), pool: p,
		lambda: s.shrinkage, rowLosses: make([]float64, d), rowHeld: make([]float64, d)}
	for i := range d {
		t.scale += float64(t.share(i)*t.unit(i)) / float64(d)
	}
	batch = min(batch, d)
	t.wbar = make([]float64, batch*t.np)
	t.work = make([]crew, p.Workers())
	share := (batch + p.Workers() - 1) / p.Workers() // as many as a batch has for each worker; it may be less than are worth it
	for w := range t.work {
		t.work[w] = t.newCrew(transport.Abreast(t.n, t.m, share))
	}
	t.evaluates = t.evaluate
	return t
}

func (f *inflation) newCrew(abreast int) crew {
	rows := transport.NewRows(abreast, f.n, f.m)
	c := crew{visitors: make([]visitor, len(rows)), slots: make([]int, 0, len(rows)), group: transport.NewGroup(rows), back: make([]transport.Cotangent, len(rows))}
	for i := range c.visitors {
		v := &c.visitors[i]
		v.row = rows[i]
		for _, s := range []*[]float64{&v.x, &v.w, &v.t, &v.g, &v.s, &v.about, &v.z} {
			*s = make([]float64, f.np)
		}
		for _, s := range []*[]float64{&v.q, &v.num, &v.den, &v.d0} {
			*s = make([]float64, f.m)
		}
		for j := range v.s[:f.n] {
			v.s[j] = 1
		}
		v.gu, v.mask = make([]float64, f.k), make([]bool, f.n)
	}
	return c
}

// pieces is into how many pieces a batch of so many rows is cut.
func (f *inflation) pieces(rows int) int { return f.pool.Pieces(rows, len(f.work[0].visitors)) }

// piece returns the slots of a piece of the batch.
func (f *inflation) piece(p int) (from, to int) {
	rows := len(f.batch)
	return pool.Cut(rows, f.pieces(rows), p)
}

// place loads row i into the visitor, and solves its transport.
func (f *inflation) place(v *visitor, i int) transport.Outcome {
	v.row.Load(f.problem(v, i))
	return v.row.Solve(f.tolerance, f.maxIterations, &f.warm[i])
}

// problem is that of row i, w = U_i V onto b_i: hidden cells have no part in the measure.
func (f *inflation) problem(v *visitor, i int) transport.Problem {
	v.observed = f.cells.load(v.x, v.mask, i)
	kernel.Combine(v.w, f.rowU(i), f.v)
	return transport.Problem{X: v.w[:f.n], Observed: v.observed, Logits: f.logits(i), Squash: transport.Kind(f.squash), Epsilon: f.epsilon}
}

// placeAll is place for the rows of the slots, but for constant ones; it fills their v.q and
// v.t as well, as fitted does.
func (f *inflation) placeAll(c *crew, from, to int) {
	c.group.Clear()
	c.slots = c.slots[:0]
	for slot := from; slot < to; slot++ {
		if i := f.batch[slot]; !f.constant(i) {
			v := &c.visitors[len(c.slots)]
			f.quantiles(v.q, i)
			v.row = c.group.Add(f.problem(v, i), &f.warm[i], v.t, v.q)
			c.slots = append(c.slots, slot)
		}
	}
	c.group.Solve(f.tolerance, f.maxIterations)
}

// fitted fills v.t with T = M q for the increments of row i.
func (f *inflation) fitted(v *visitor, i int) {
	f.quantiles(v.q, i)
	if f.constant(i) {
		for j := range v.t {
			v.t[j] = f.low[i]
		}
		return
	}
	v.row.Average(v.t, v.q)
}

// lowest is what T of row i does not fall below where it divides: of signed data, under
// the Frobenius norm, nothing is divided by it.
func (f *inflation) lowest(i int) float64 {
	if f.spans.signed {
		return math.Inf(-1)
	}
	return max(floorT*f.average[i], f.loss.least())
}

// ratios fills v.g and v.s with x T^{β-2} and T^{β-1}, 0 where a cell is hidden. Where
// v.s is 1 for every row it stays as it was made.
func (f *inflation) ratios(v *visitor, i int) {
	den := v.s[:f.n]
	if f.loss == KL && v.observed == nil {
		den = nil
	}
	f.loss.parts(v.g[:f.n], den, v.x, v.t, f.lowest(i))
	for j, o := range v.observed {
		if !o {
			v.g[j], v.s[j] = 0, 0
		}
	}
}

// rowLoss is ratios, and returns the row's sum of divergences.
func (f *inflation) rowLoss(v *visitor, i int) float64 {
	f.ratios(v, i)
	return f.ratiosLoss(v, i)
}

// ratiosLoss is the row's sum of divergences after ratios.
func (f *inflation) ratiosLoss(v *visitor, i int) float64 {
	return f.loss.sum(v.x[:f.n], v.t, v.g, v.observed, f.lowest(i))
}

// prior fills d0 with the increments of the affine map of w that shrinkage
// pulls towards: T ≈ max(α+βw, 0), of signed data α+βw, β >= 0, by least squares of x on w, taken at
// each level's mean of w under the plan. den holds the columns of the visible cells.
func (f *inflation) prior(v *visitor, i int, d0, den []float64) {
	at := v.row.Squash()
	if at.Kind == transport.None { // the moments alone are wanted
		at = transport.NewSquash(transport.LogisticUnit, v.w[:f.n], v.observed, v.z)
	}
	clear(d0)
	beta := 0.0
	if at.Std > 0 {
		// z-scores of w, which no magnitude of w can overflow, and x about its mean.
		z, x := v.z, v.about
		kernel.Shift(x, v.w, at.Ref)
		kernel.Shift(x, x, at.Shift)
		clear(x[f.n:])
		for j, o := range v.observed {
			if !o {
				x[j] = 0
			}
		}
		kernel.Combine(z, []float64{1 / at.Std}, x)
		kernel.Shift(x, v.x, f.average[i])
		var cov, vw [1]float64
		kernel.Dots(cov[:], z, x)
		kernel.Dots(vw[:], z, z)
		beta = max(cov[0]/vw[0], 0)
		v.row.Columns(d0, z)
	}
	last := 0.0
	for l := range d0 {
		at := 0.0
		if den[l] > 0 {
			at = d0[l] / den[l]
		}
		q := f.average[i] + float64(beta*at)
		if l > 0 || !f.spans.signed {
			q = max(q, last)
		}
		d0[l], last = q-last, q
	}
}

// stepQ makes the EM step on q of row i; v.g and v.s are those of ratios at it.
func (f *inflation) stepQ(v *visitor, i int) {
	s := sums{num: v.num, den: v.den, shares: v.den, prior: v.d0}
	v.row.Columns(s.den, v.s)
	if f.lambda > 0 || f.spans.signed {
		if f.loss != KL {
			s.shares = v.q
			clear(v.z)
			for j := range v.z[:f.n] {
				if v.observed == nil || v.observed[j] {
					v.z[j] = 1
				}
			}
			v.row.Columns(s.shares, v.z)
		}
		if f.lambda > 0 {
			f.prior(v, i, s.prior, s.shares)
		}
	}
	v.row.Columns(s.num, v.g)
	v.row.Tails(s.num)
	v.row.Tails(s.den)
	if f.spans.signed {
		v.row.Tails(s.shares)
	}
	f.em(i, s, f.loss, f.lambda)
}

// rowWbar is the gradient at w of the row in a slot.
func (f *inflation) rowWbar(slot int) []float64 { return f.wbar[slot*f.np : (slot+1)*f.np] }

// unit is what the loss of row i grows with; part is its share of the whole.
func (f *inflation) unit(i int) float64 {
	return max(f.loss.scale(max(f.average[i], tinyScale)), tinyScale)
}
func (f *inflation) part(i int) float64 { return f.share(i) * f.unit(i) / f.scale }

// visitMaps makes the steps of the rows of some slots on q and F, and fills their w̄
// with the gradient at w = (UV)_i, in units of the row's loss. Constant rows have none.
func (f *inflation) visitMaps(c *crew, from, to int) {
	for slot := from; slot < to; slot++ {
		if i := f.batch[slot]; f.constant(i) {
			f.rowLosses[i] = 0
			clear(f.rowWbar(slot))
		}
	}
	f.placeAll(c, from, to)
	for k, slot := range c.slots {
		v := &c.visitors[k]
		f.fitMap(v, f.batch[slot])
		c.back[k] = transport.Cotangent{Z: v.g, Q: v.q}
	}
	c.group.Adjoint(c.back[:len(c.slots)])
	for k, slot := range c.slots {
		v, wbar := &c.visitors[k], f.rowWbar(slot)
		v.row.GradX(wbar[:f.n])
		clear(wbar[f.n:])
		f.stepMap(v, f.batch[slot])
	}
}

// fitMap makes the EM step on q of row i, whose T is there, and fills v.g with ∂Δ/∂T and
// v.q with the q that it belongs to.
func (f *inflation) fitMap(v *visitor, i int) {
	f.ratios(v, i)
	// Where all rows are one batch the loss before the steps is that of the model.
	whole := len(f.batch) == f.d
	if whole {
		f.rowLosses[i] = f.ratiosLoss(v, i)
		f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i))
	}
	if f.r == nil {
		f.stepQ(v, i)
		f.fitted(v, i)
		f.ratios(v, i)
	}
	if !whole && !f.evaluated {
		f.rowLosses[i] = f.ratiosLoss(v, i)
	}
	// ∂Δ/∂T, a mean over the row, in units of what the row's loss grows with; the
	// row's part in Ṽ̄ is in units of the whole loss. So Adam's 1e-8 means the same
	// for every scale.
	unit := f.cellUnit(i)
	for l := range v.q {
		v.q[l] *= unit
	}
	perCell := 1 / (f.unit(i) * unit) / float64(f.cells.rows[i])
	for j := range v.g {
		v.g[j] = (v.s[j] - v.g[j]) * perCell
	}
}

// cellUnit is what q of row i is multiplied by while gradients are taken.
func (f *inflation) cellUnit(i int) float64 { return 1 / max(f.average[i], tinyScale) }

// stepMap makes the steps of F_i, and of R_i.
func (f *inflation) stepMap(v *visitor, i int) {
	if f.r != nil {
		v.row.GradQ(v.den)
		f.stepR(i, v.den, f.cellUnit(i), f.at)
	}
	v.row.GradLogits(v.num)
	f.stepF(i, v.num, f.at)
}

// evaluateAll takes the losses of all rows, in any order, as the model stands.
func (f *inflation) evaluateAll(all []int) {
	f.batch = all
	f.pool.Do(f.pieces(len(all)), f.evaluates)
}

// evaluate takes the losses of a piece of the batch.
func (f *inflation) evaluate(worker, piece int) {
	c := &f.work[worker]
	from, to := f.piece(piece)
	f.placeAll(c, from, to)
	for k, slot := range c.slots {
		f.judgeRow(&c.visitors[k], f.batch[slot])
	}
	for _, i := range f.batch[from:to] {
		if f.constant(i) {
			v := &c.visitors[0]
			v.observed = f.cells.load(v.x, v.mask, i)
			f.fitted(v, i)
			f.judgeRow(v, i)
		}
	}
}

// judgeRow takes the losses of row i, whose T is in v.
func (f *inflation) judgeRow(v *visitor, i int) {
	f.rowLosses[i] = f.rowLoss(v, i)
	f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i))
}

func (f *inflation) meanHeld() float64 {
	total := 0.0
	for i, l := range f.rowHeld {
		total += float64(f.share(i) * l)
	}
	return total / float64(max(f.heldOut, 1))
}

func (f *inflation) meanLoss() float64 {
	total := 0.0
	for i, l := range f.rowLosses {
		total += float64(f.share(i) * l)
	}
	return total / float64(f.visible)
}
