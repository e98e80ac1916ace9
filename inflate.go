package quantmf

// This file holds the inflating maps T while they are fitted to X ≈ T(UV): of a QMF,
// whose U and V take steps themselves, and of a QMFQ, whose U and V a projection makes.
// A visit of a row is
//
//	w = U_i V → T_i(w), its loss → the step on q_i → ∂Δ/∂T → w̄, and the step of F_i,
//
// one call forward and one back (internal/transport), for some rows abreast. qmf.go and
// qmfq.go take w̄ on to their factors.

import (
	"math"

	"github.com/quantmf/quantmf/internal/adam"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// inflation is the maps T_i during a fit.
type inflation struct {
	*settings
	*cells
	*factors // whose product is inflated
	*monotone.Spans
	monotone.Maps
	pool   *pool.Pool
	lambda float64   // the shrinkage
	scale  float64   // the weighted mean of unit(i): the unit of the whole loss
	batch  []int     // the rows that are visited next; an index into batch is called a slot
	whole  bool      // all rows are one batch, of which some rows are visited at a time
	at     adam.Pace // the rate and the number of Adam's next step
	stepsQ int       // how many EM steps a visit makes on q
	// A visit records the loss of a row before its steps where all rows are one batch,
	// otherwise after the step on q. evaluated says that the losses of an epoch are those of
	// evaluateAll: visits of several batches then record none.
	evaluated          bool
	rowLosses, rowHeld []float64 // of each row, as last visited or evaluated
	// batch × np: the gradients at w, in units of the rows' losses
	wbar      []float64
	work      []crew                  // one a worker
	evaluates func(worker, piece int) // evaluate, made once
	// room for what curvature fills, np numbers; nil: it is not wanted
	curvatures func(slot int) []float64
}

// crew is the workspace of one worker: a visitor for each row of a group.
type crew struct {
	visitors []visitor
	slots    []int // the slot of the row that each visitor holds
	group    *transport.Group
	back     []transport.Cotangent // ∂Δ/∂T of the rows that the visitors hold
}

// visitor is the workspace of one row.
type visitor struct {
	row         *transport.Row // of the crew's group
	x, w, t, g  []float64      // np
	s           []float64      // np, T^{β-1}, which ratios fills; under KL newCrew and read fill it
	about, z    []float64      // scratch, np
	q, num, den []float64      // m
	shares      []float64      // m
	d0          []float64      // increments of the affine map, m
	observed    []bool         // of the row at hand; nil: all
	mask        []bool
	gu          []float64 // k
}

// newInflation makes maps for the visible cells, up to batch rows of which are visited at a time.
// Its factors may be replaced by others of the same size.
func newInflation(s *settings, visible *cells, f *factors, p *pool.Pool, batch int) *inflation {
	d, room := visible.d, make([]float64, visible.n)
	of := monotone.NewSpans(d, visible.rows, visible.Signed)
	for i := range d {
		of.Read(visible.row(room, i), i)
	}
	t := &inflation{
		settings: s, cells: visible, factors: f, Spans: of, pool: p,
		Maps:   monotone.New(d, s.levels, s.start == StartUniform, s.ends == EndsPinned, of),
		lambda: s.shrinkage, stepsQ: 1, rowLosses: make([]float64, d), rowHeld: make([]float64, d),
	}
	for i := range d {
		t.scale += float64(t.LossWeight(i)*t.unit(i)) / float64(d)
	}
	batch = min(batch, d)
	t.wbar = make([]float64, batch*t.np)
	t.work = make([]crew, p.Workers())
	share := (batch + p.Workers() - 1) / p.Workers() // rows of a batch for each worker
	for w := range t.work {
		t.work[w] = t.newCrew(transport.Abreast(t.n, t.M, share))
	}
	t.evaluates = t.evaluate
	return t
}

func (f *inflation) newCrew(abreast int) crew {
	rows := transport.NewRows(abreast, f.n, f.M)
	c := crew{
		visitors: make([]visitor, len(rows)), slots: make([]int, 0, len(rows)),
		group: transport.NewGroup(rows), back: make([]transport.Cotangent, len(rows)),
	}
	for i := range c.visitors {
		v := &c.visitors[i]
		v.row = rows[i]
		for _, s := range []*[]float64{&v.x, &v.w, &v.t, &v.g, &v.s, &v.about, &v.z} {
			*s = make([]float64, f.np)
		}
		for _, s := range []*[]float64{&v.q, &v.num, &v.den, &v.shares, &v.d0} {
			*s = make([]float64, f.M)
		}
		for j := range v.s[:f.n] {
			v.s[j] = 1
		}
		v.gu, v.mask = make([]float64, f.k), make([]bool, f.n)
	}
	return c
}

// pieces returns the number of pieces that a batch of so many rows is cut into.
func (f *inflation) pieces(rows int) int { return f.pool.Pieces(rows, len(f.work[0].visitors)) }

// piece returns the slots from, ..., to-1 of a piece of the batch.
func (f *inflation) piece(p int) (from, to int) {
	rows := len(f.batch)
	return pool.Cut(rows, f.pieces(rows), p)
}

// solveRow solves the transport of row i by itself, in the visitor.
func (f *inflation) solveRow(v *visitor, i int) {
	v.row.Load(f.problem(v, i))
	v.row.Solve(f.tolerance, f.maxIterations, &f.Warm[i])
}

// read fills v.x with row i, and v.observed. Under KL it fills v.s with 1 in visible cells and 0 in
// hidden ones; where no cell is hidden v.s is 1 from newCrew on.
func (f *inflation) read(v *visitor, i int) {
	v.observed = f.cells.readRow(v.x, v.mask, i)
	if f.loss == divergence.KL {
		for j, o := range v.observed {
			one := uint64(0) // the compiler makes no branch of this, which would often be predicted wrongly
			if o {
				one = 0x3ff << 52
			}
			v.s[j] = math.Float64frombits(one)
		}
	}
}

// problem is the transport of row i: of w = U_i V, its hidden cells left out, onto b_i.
func (f *inflation) problem(v *visitor, i int) transport.Problem {
	f.read(v, i)
	kernel.Combine(v.w, f.rowU(i), f.v)
	return transport.Problem{
		X: v.w[:f.n], Observed: v.observed, Logits: f.Logits(i),
		Squash: transport.Kind(f.squash), Epsilon: f.epsilon,
	}
}

// solveRows solves the transports of the rows in the slots from, ..., to-1 side by side, to a
// tolerance, except those of constant rows. It fills v.q of each visitor with q_i and, where fill is
// true, v.t with T_i.
func (f *inflation) solveRows(c *crew, from, to int, tolerance float64, fill bool) {
	c.group.Clear()
	c.slots = c.slots[:0]
	for slot := from; slot < to; slot++ {
		if i := f.batch[slot]; !f.Constant(i) {
			v := &c.visitors[len(c.slots)]
			f.Quantiles(v.q, i)
			t := v.t
			if !fill {
				t = nil
			}
			v.row = c.group.Add(f.problem(v, i), &f.Warm[i], t, v.q)
			c.slots = append(c.slots, slot)
		}
	}
	c.group.Solve(tolerance, f.maxIterations)
}

// fitted fills v.t with T_i(w) = M q_i at the solved transport.
func (f *inflation) fitted(v *visitor, i int) {
	f.Quantiles(v.q, i)
	if f.Constant(i) {
		for j := range v.t {
			v.t[j] = f.Low[i]
		}
		return
	}
	v.row.Average(v.t, v.q)
}

// lowest is the floor of T_i as a divisor. T_i of signed data may be negative and has no floor:
// under Frobenius, which alone takes signed data, nothing is divided by T_i.
func (f *inflation) lowest(i int) float64 {
	if f.Spans.Signed {
		return math.Inf(-1)
	}
	return max(monotone.FloorT*f.Average[i], f.loss.Least())
}

// ratios fills v.g with x T^{β-2} and v.s with T^{β-1}, both 0 in hidden cells, where x is 0. Under KL
// read has filled v.s.
func (f *inflation) ratios(v *visitor, i int) {
	den, hidden := v.s[:f.n], v.observed
	if f.loss == divergence.KL {
		den, hidden = nil, nil
	}
	f.loss.Terms(v.g[:f.n], den, v.x, v.t, f.lowest(i))
	for j, o := range hidden {
		if !o {
			v.g[j], v.s[j] = 0, 0
		}
	}
}

// rowLoss fills the ratios and returns the sum of divergences of the row.
func (f *inflation) rowLoss(v *visitor, i int) float64 {
	f.ratios(v, i)
	return f.ratiosLoss(v, i)
}

// ratiosLoss returns the sum of divergences of the row from the ratios that are in v.g.
func (f *inflation) ratiosLoss(v *visitor, i int) float64 {
	t, observed := v.t, v.observed
	if f.loss == divergence.KL && observed != nil { // T of hidden cells, where x is 0 too, adds 0
		t, observed = v.z, nil
		kernel.Multiply(t, v.t, v.s)
	}
	return f.loss.Sum(v.x[:f.n], t, v.g, observed, f.lowest(i))
}

// prior fills d0 with the increments of the map that shrinkage pulls q_i towards. This map is α+βw, β >= 0,
// by least squares of x on w, averaged over each level under the plan. Where the data are not signed it is at
// least 0. den holds the column sums of M over the visible cells.
func (f *inflation) prior(v *visitor, i int, d0, den []float64) {
	at := v.row.Squash()
	if at.Kind == transport.None { // it has no moments, which are what is needed here
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
		kernel.Shift(x, v.x, f.Average[i])
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
		q := f.Average[i] + float64(beta*at)
		if l > 0 || !f.Spans.Signed {
			q = max(q, last)
		}
		d0[l], last = q-last, q
	}
}

// stepQ makes EM steps on q_i (internal/monotone) at the solved transport. Sums that do not depend on
// q are taken once: under KL all but those of the ratios x/T.
func (f *inflation) stepQ(v *visitor, i, steps int) {
	kl := f.loss == divergence.KL
	s := monotone.Sums{Num: v.num, Den: v.den, Shares: v.den, Prior: v.d0}
	if kl {
		v.row.ObservedColumns(s.Den, v.s, f.cells.rows[i])
	} else if f.lambda > 0 || f.Spans.Signed {
		s.Shares = v.shares
		clear(v.z)
		for j := range v.z[:f.n] {
			if v.observed == nil || v.observed[j] {
				v.z[j] = 1
			}
		}
		v.row.Columns(s.Shares, v.z)
	}
	if f.lambda > 0 {
		f.prior(v, i, s.Prior, s.Shares)
	}
	if f.Spans.Signed {
		v.row.Tails(s.Shares)
	}
	if kl {
		v.row.Tails(s.Den)
		v.row.Gather(v.x)
	}
	for range steps {
		if kl {
			f.Quantiles(v.q, i)
			v.row.RatioColumns(s.Num, v.q, f.lowest(i))
		} else {
			f.fitted(v, i)
			f.ratios(v, i)
			v.row.Columns(s.Num, v.g)
			v.row.Columns(s.Den, v.s)
			v.row.Tails(s.Den)
		}
		v.row.Tails(s.Num)
		f.EM(i, s, f.loss, f.lambda)
	}
}

// rowWbar is the gradient at w of the row in a slot.
func (f *inflation) rowWbar(slot int) []float64 { return f.wbar[slot*f.np : (slot+1)*f.np] }

// unit is the size of the loss of row i: (mean x_i)^β. relativeUnit is unit times the weight of the
// row in the loss of the matrix, divided by the mean of this product over all rows.
func (f *inflation) unit(i int) float64 {
	return max(f.loss.Scale(max(f.Average[i], divergence.Tiny)), divergence.Tiny)
}
func (f *inflation) relativeUnit(i int) float64 { return f.LossWeight(i) * f.unit(i) / f.scale }

// visitMaps makes the steps on q and F for the rows in the slots from, ..., to-1, and fills their w̄
// with the gradient at w = (UV)_i, in units of the row's loss. For constant rows w̄ is 0
// and nothing is stepped.
func (f *inflation) visitMaps(c *crew, from, to int) {
	for slot := from; slot < to; slot++ {
		if i := f.batch[slot]; f.Constant(i) {
			f.rowLosses[i] = 0
			clear(f.rowWbar(slot))
		}
	}
	// Where rows come in several batches a step needs no exact loss. A transport with the error √ρ is one
	// sweep short of ρ, and its T and its gradients have errors of the order of √ρ.
	tolerance := f.tolerance
	if !f.whole {
		tolerance = max(tolerance, math.Sqrt(tolerance))
	}
	f.solveRows(c, from, to, tolerance, f.whole || f.R != nil)
	for k, slot := range c.slots {
		v := &c.visitors[k]
		c.back[k] = f.fitMap(v, f.batch[slot])
	}
	c.group.Adjoint(c.back[:len(c.slots)])
	for k, slot := range c.slots {
		f.gradient(&c.visitors[k], slot, c.back[k].Z == nil)
		f.stepMap(&c.visitors[k], f.batch[slot])
	}
}

// gradient fills w̄ of the row in a slot after the adjoint and, where it is wanted, the curvature. byPoints
// says that T_i after the steps on q is not known yet.
func (f *inflation) gradient(v *visitor, slot int, byPoints bool) {
	i, wbar, curvature := f.batch[slot], f.rowWbar(slot), v.about
	if f.curvatures != nil {
		curvature = f.curvatures(slot)
	}
	switch {
	case byPoints:
		v.row.GradKL(wbar, &transport.KL{X: v.x, T: v.t, Ratio: v.g, Curvature: curvature,
			By: f.curvatureUnit(i)})
		clear(curvature[f.n:])
		f.visited(v, i)
	case f.curvatures == nil:
		v.row.GradX(wbar[:f.n])
	default:
		v.row.GradXSlopes(wbar[:f.n], curvature)
		f.curvature(curvature, v, i)
	}
	clear(wbar[f.n:])
}

// visited records the loss of row i at T_i after the step on q, whose ratios are in v.g, where it is that of
// the visit.
func (f *inflation) visited(v *visitor, i int) {
	if !f.whole && !f.evaluated {
		f.rowLosses[i] = f.ratiosLoss(v, i)
	}
}

// fitMap makes the EM steps on q_i. Where all rows are one batch, and where Adam steps q, v.t holds T_i
// before the steps. fitMap returns the gradient ∂Δ/∂T at T_i after the steps and the q_i that the adjoint
// takes, both in the units of the adjoint. Where the points of a row have solved it, and q takes EM steps
// under KL, the gradient is residuals alone, which need no T of the samples yet.
func (f *inflation) fitMap(v *visitor, i int) transport.Cotangent {
	// Where all rows are one batch the loss before the steps is that of the model.
	if f.whole {
		f.rowLosses[i] = f.rowLoss(v, i)
		f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i), v.about)
	}
	gathered := f.loss == divergence.KL && f.R == nil // by stepQ
	byPoints := gathered && v.row.ByPoints()
	if f.R == nil {
		f.stepQ(v, i, f.stepsQ)
	}
	if byPoints {
		f.Quantiles(v.q, i)
	} else {
		if f.R == nil {
			f.fitted(v, i)
		}
		f.ratios(v, i)
		f.visited(v, i)
	}
	// ∂Δ/∂T of the row's mean divergence, in units of f.unit(i); Ṽ̄ is in units of the
	// whole loss (relativeUnit). So Adam's constant of 1e-8 means the same at every scale of x.
	unit := f.cellUnit(i)
	for l := range v.q {
		v.q[l] *= unit
	}
	perCell := 1 / (f.unit(i) * unit) / float64(f.cells.rows[i])
	back := transport.Cotangent{Q: v.q}
	if gathered {
		back.Residuals = transport.Residuals{By: perCell, Unit: unit, Low: float64(f.lowest(i) * unit),
			Count: f.cells.rows[i]}
	}
	if !byPoints {
		kernel.Residual(v.g, v.s, f.np, 1)
		kernel.Scale(v.g, v.g, perCell)
		back.Z = v.g
	}
	return back
}

// cellUnit is the factor that brings q_i to units of the mean of x_i for the adjoint.
func (f *inflation) cellUnit(i int) float64 { return 1 / max(f.Average[i], divergence.Tiny) }

// stepMap makes the steps of F_i and, where q is stepped by Adam, of R_i.
func (f *inflation) stepMap(v *visitor, i int) {
	if f.R != nil {
		v.row.GradQ(v.den)
		f.StepR(i, v.den, f.cellUnit(i), f.at)
	}
	v.row.GradLogits(v.num)
	f.StepF(i, v.num, f.at)
}

// evaluateAll computes the losses of the given rows at the current parameters.
func (f *inflation) evaluateAll(all []int) {
	f.batch = all
	f.pool.Do(f.pieces(len(all)), f.evaluates)
}

// evaluate computes the losses of the rows of a piece of the batch.
func (f *inflation) evaluate(worker, piece int) {
	c := &f.work[worker]
	from, to := f.piece(piece)
	f.solveRows(c, from, to, f.tolerance, true)
	for k, slot := range c.slots {
		f.judgeRow(&c.visitors[k], f.batch[slot])
	}
	for _, i := range f.batch[from:to] {
		if f.Constant(i) {
			v := &c.visitors[0]
			f.read(v, i)
			f.fitted(v, i)
			f.judgeRow(v, i)
		}
	}
}

// judgeRow computes the losses of row i from T_i in v.t.
func (f *inflation) judgeRow(v *visitor, i int) {
	f.rowLosses[i] = f.rowLoss(v, i)
	f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i), v.about)
}

// curvatureUnit is n_i in the units in which curvature has the slopes and w̄.
func (f *inflation) curvatureUnit(i int) float64 {
	unit := f.cellUnit(i)
	return float64(f.cells.rows[i]) / (f.unit(i) * unit) / unit
}

func (f *inflation) meanHeld() float64 {
	total := 0.0
	for i, l := range f.rowHeld {
		total += float64(f.LossWeight(i) * l)
	}
	return total / float64(max(f.heldOut, 1))
}

func (f *inflation) meanLoss() float64 {
	total := 0.0
	for i, l := range f.rowLosses {
		total += float64(f.LossWeight(i) * l)
	}
	return total / float64(f.visible)
}

// curvature fills a with the curvature in w of the divergence of row i, in the units of w̄. With
// the potentials of the row's transport and the moments of its squash held fixed, each T_ij depends on
// its own w_ij alone, with the slope
//
//	s_j = (2/ε) Cov_{M_j}(q,y) dx̃_j/dw_j,
//
// and where x = T the divergence has the second derivative T^{β-2} in T. So with n_i visible
// cells in the row
//
//	a_j = T_j^{β-2} s_j²/n_i.
//
// That is Fisher's scoring; the second derivative at x itself, x T^{-2} under KL, makes steps too
// short where x is far above T. Before this call a holds s_j/n_i in units
// of the row's mean, and v.s is T^{β-1}. Both are 0 in hidden cells.
func (f *inflation) curvature(a []float64, v *visitor, i int) {
	low, by := f.lowest(i), f.curvatureUnit(i)
	if f.loss == divergence.KL {
		kernel.Fisher(a[:f.n], v.t, by, low)
		clear(a[f.n:])
		return
	}
	for j, s := range a[:f.n] {
		weight := by
		if f.loss != divergence.Frobenius {
			weight = by * (v.s[j] / max(v.t[j], low))
		}
		a[j] = float64(weight*s) * s
	}
	clear(a[f.n:])
}
