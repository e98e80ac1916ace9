package quantmf

// This file holds the factorisation with quantiles on both sides (paper §3.5,
// Eq. (QMFQ)),
//
//	min over F, R, F', R' of  Σ_i Δ(X_i, T_i(Π_k(T'(X))_i)):
//
// every row is deflated by an increasing map T'_i, the matrix of the deflated
// rows is projected onto rank k, and every row is inflated again by T_i. The
// factors are no parameters but the projection of T'(X). An epoch is one pass
// forward and back:
//
//	Y_i = T'_i(X_i) → UV = Π_k(Y) → T_i, its loss, its steps on q_i and F_i (inflate.go) → w̄
//	→ the projection's adjoint (internal/projection) → Ȳ → gradients of F'_i and R'_i → Adam.
//
// The quantile values q' = cumsum(exp R') have free ends; the weights are b' = softmax F'.

import (
	"context"
	"github.com/quantmf/quantmf/internal/fit"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// QMFQ is a fitted X ≈ T(Π_k(T'(X))). It is not changed by its methods and may be
// used by several goroutines at once.
type QMFQ struct {
	Factorisation // Π_k(T'(X)) = UV

	deflate    []*Map
	inflated   QMF    // T as a QMF of U and V
	from       [2]Mat // U and V where every projection started, for a fit that goes on
	projection Projection
}

const (
	startEpochs   = 20    // epochs of the QMF that a fit starts from
	startAdam     = 100   // the same where Adam steps the factors of that QMF
	projectOften  = 5     // updates of the default projection
	projectPaper  = 100   // updates of the default projection under StartUniform
	mostShrinkage = 20    // bound of the shrinkage of T that the data choose: more leaves T' little to learn
	unitDeflation = 1e-12 // floor of the increments of q', in units of their sum

	// farthestDeflated bounds how far R' is from the logarithm of x's scale. With this bound a learning
	// rate that is far too large gives a bad fit, but no overflow in the squares of a projection.
	farthestDeflated = 60
)

func qmfqDefaults() config {
	c := qmfDefaults()
	c.learningRate, c.epochs = 0.1, 100
	return c
}

// settleQMFQ sets the batch, and the default projection, which depends on the start.
func (c *config) settleQMFQ() {
	c.batchRows = math.MaxInt32              // all rows are one step
	if c.projection.kind == projection.SVD { // UV may be negative
		c.line = 0
	}
	if !c.given.Has(option.Projection) {
		c.projection = KLUpdates(projectOften)
		if c.start == StartUniform {
			c.projection = KLUpdates(projectPaper)
		}
	}
}

// FitQMFQ fits x, d features × n samples, by T(Π_k(T'(X))) of rank k >= 1, two increasing
// maps a feature. The values of x, and their units, are those of [FitQMF]; under
// [SquashNone] T' transports x as it is, and x must be at most 1e12 in magnitude.
//
// A fit starts from a QMF of 20 epochs (100 where Adam steps its factors), whose own start and shrinkage the
// data choose as in [FitQMF]: T has the maps of this QMF, its line and its shrinkage, at most 20; every
// projection starts from its factors; and T' brings X to its UV. Under [StartUniform] the start is the
// paper's: factors exp of uniform numbers on [-1/2,1/2], equal quantile steps, and 100 updates a projection.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 100 epochs, Adam at 0.1 falling
// to 0 by cosine, free ends, [KLUpdates](5). All rows are one step. These defaults predicted unseen cells
// best (docs/measurements/qmfq.md); to fit the observed cells more closely, take no shrinkage.
//
// Hidden cells, missing or held out, take no part in the measures that T and T' transport
// nor in the projection. Under WithValidation the fit starts from the QMF at its best
// epoch on the held-out cells, since real data overfit within tens of epochs.
// [WithCheckpoint] saves from the first epoch of the fit itself on: a fit interrupted
// during its start begins anew.
//
// Errors are those of [FitQMF]; a [TruncatedSVD] with equal singular values k and k+1 is
// a [*DataError], with the model so far.
//
// Cost of an epoch: the projection, 28dnk flops an update forward and back, 42dnk where
// cells are hidden, and 2d transports with their backward. Memory: see [MemoryOf].
func FitQMFQ(ctx context.Context, x Rows, rank int, opts ...FitOption) (*QMFQ, error) {
	c := qmfqDefaults()
	t, err := open(ctx, section.QMFQ, option.FitQMFQ, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(t.Cells.D, t.Cells.N); err != nil {
		return nil, err
	}
	if c.squash == SquashNone {
		if err := checkPoints(t.Cells); err != nil {
			return nil, public(err)
		}
	}
	if c.line > 0 && c.projection.kind == projection.SVD {
		return nil, &OptionError{Option: option.Line.String(), Value: ftoa(c.line),
			Bound: "must be 0 with TruncatedSVD, whose UV may be negative"}
	}
	c.settleQMFQ()
	m, err := t.drive(ctx, t.Cells.D, new(QMFQ), func(run fit.Run) fit.Algorithm {
		return newQMFQFit(t.Cells, rank, &c.settings, run)
	})
	q, _ := m.(*QMFQ)
	return q, err
}

// objective is the loss by which the best of several fits is chosen.
func (q *QMFQ) objective(*settings) float64 { return q.judged() }

// checkPoints reports values that T' cannot transport as they are.
func checkPoints(x *fit.Cells) error {
	if err := x.CheckMagnitude(limit.Point, "x must be at most "+ftoa(limit.Point)+
		" in magnitude under SquashNone, which transports it as it is"); err != nil {
		return err
	}
	if x.Units.All != 0 {
		return &fit.DataError{Row: -1, Col: -1, Value: math.Ldexp(1, x.Units.All),
			Problem: "x is too small to be transported as it is by SquashNone"}
	}
	return nil
}

// toUserUnits brings a model of x' to the units of x.
func (q *QMFQ) toUserUnits(u *fit.Units) {
	q.inflated.toUserUnits(u)
	if u.Plain() {
		return
	}
	for i, m := range q.deflate {
		s, e := &m.squash, u.All
		s.Ref, s.Shift, s.Std = math.Ldexp(s.Ref, e)+u.Offset(i), math.Ldexp(s.Shift, e), math.Ldexp(s.Std, e)
		for j := range m.cut {
			if s.Kind == transport.None {
				m.cut[j] += u.Offset(i)
			}
		}
	}
}

// qmfqFit is a QMFQ during its fit.
type qmfqFit struct {
	*settings
	cells     *fit.Cells
	pool      *pool.Pool
	inflation *inflation // T
	deflation *deflation // T'
	projector projection.Projector
	from      *factors // where every projection starts
	projected *factors // UV: the last projection that was not interrupted
	all       []int    // the rows
	seed      uint64
	progress  fit.Progress
	now       [][]float64 // what the model is made of: F, D, F', R', the potentials of T', U, V, s
	before    [][]float64 // now before the last steps
	wbar      []float64   // d × np: the gradients at UV, in units of the whole loss
}

func newQMFQFit(visible *fit.Cells, rank int, s *settings, run fit.Run) *qmfqFit {
	d, n, p := visible.D, visible.N, run.Pool
	f := &qmfqFit{
		settings: s, cells: visible, pool: p, projector: newProjector(s.projection, visible, rank, p),
		from: newFactors(p.Memory, d, n, rank), projected: newFactors(p.Memory, d, n, rank),
		all: inOrder(p.Memory, d), seed: run.Seed, progress: run.Progress,
	}
	f.inflation, f.wbar = newInflation(s, visible, f.projected, p), p.Memory.Floats(d, f.projected.np)
	f.inflation.whole = true
	f.inflation.lambda = max(s.shrinkage, 0) // until the data have chosen
	f.deflation = newDeflation(f.inflation)
	f.inflation.do = f.piece
	f.now = [][]float64{f.inflation.F, f.inflation.Inc, f.deflation.F, f.deflation.R, f.deflation.h,
		f.projected.u, f.projected.v, f.inflation.S}
	if f.cells.Held != nil {
		for _, v := range f.now {
			f.before = append(f.before, make([]float64, len(v)))
		}
	}
	return f
}

// newProjector returns Π_k for the visible cells, by their weights.
func newProjector(kind Projection, visible *fit.Cells, k int, p *pool.Pool) projection.Projector {
	size, seen := projection.Size{D: visible.D, N: visible.N, K: k}, projection.Seen(nil)
	if visible.Partial {
		seen = visible.Mark
	}
	if visible.Weighted() && kind.kind == projection.SVD {
		return projection.NewWeighted(size, visible.SampleWeights(), p)
	}
	return projection.New(kind.kind, kind.updates, size, seen, p)
}

// run does an op for every row.
func (f *qmfqFit) run(op op) { f.inflation.run(op, len(f.all)) }

// piece does the op that runs for row i.
func (f *qmfqFit) piece(worker, i int) {
	v := &f.inflation.spaces[worker]
	switch f.inflation.op {
	case visitRows:
		f.visit(v, i)
	case evaluateRows:
		f.inflation.evaluate(v, i)
	case deflateRows:
		f.deflation.deflate(v, i)
	case deflateBack:
		f.deflation.back(v, i)
	}
}

// visit makes the steps of T_i, and fills wbar with the gradient at (UV)_i in units of the whole loss.
func (f *qmfqFit) visit(v *rowSpace, i int) {
	t, np := f.inflation, f.projected.np
	unit, wbar := t.relativeUnit(i), f.wbar[i*np:(i+1)*np]
	t.visitMap(v, i, wbar, nil)
	for j := range wbar {
		wbar[j] *= unit
	}
}

// project deflates all rows and projects the matrix that they make. Where it is interrupted UV stays
// as it was.
func (f *qmfqFit) project() error {
	f.run(deflateRows)
	if err := f.pool.Err(); err != nil {
		return err
	}
	err := f.projector.Forward(f.deflation.y, projection.Factors{U: f.from.u, V: f.from.v})
	if end := f.pool.Err(); end != nil {
		return end
	}
	r := f.projector.Result()
	copy(f.projected.u, r.U)
	copy(f.projected.v, r.V)
	if equal, ok := err.(*projection.EqualError); ok {
		return &DataError{Row: -1, Col: -1, Value: equal.Value, Problem: equal.Error()}
	}
	return err
}

// Epoch makes epoch e, one pass forward and back. It returns the losses of the state that its steps
// start from, which is the state after epoch e-1.
func (f *qmfqFit) Epoch(e int) (fit.Losses, error) {
	if err := f.pool.Err(); err != nil {
		return fit.Losses{}, err
	}
	f.inflation.at, f.deflation.at = f.pace(e), f.pace(e)
	if err := f.project(); err != nil {
		return fit.Losses{}, err
	}
	copyAll(f.before, f.now)
	f.run(visitRows)
	f.projector.Backward(f.wbar, f.deflation.ybar)
	f.run(deflateBack)
	return f.losses(e), f.pool.Err()
}

// losses returns the losses of the last visit or evaluation.
func (f *qmfqFit) losses(of int) fit.Losses {
	return fit.Losses{Of: of, Visible: f.inflation.meanLoss(), Held: f.inflation.meanHeld()}
}

func copyAll(to, from [][]float64) {
	for i := range to {
		copy(to[i], from[i])
	}
}

// restore goes back to the best state.
func (f *qmfqFit) restore(t *fit.Attempt) {
	t.Restore()
	for i := range f.all {
		f.deflation.FromR(i)
	}
}

// Begin fills the maps and the factors that projections start from, and returns the losses.
func (f *qmfqFit) Begin() (fit.Losses, error) {
	var err error
	switch {
	case f.maps != nil:
		err = f.startFromModel()
	case f.start == StartUniform:
		err = f.startUniform()
	default:
		err = f.startFromQMF()
	}
	copy(f.projected.u, f.from.u)
	copy(f.projected.v, f.from.v)
	if err == nil {
		err = f.project()
	}
	if err == nil {
		f.run(evaluateRows)
		copyAll(f.before, f.now)
		err = f.pool.Err()
	}
	return f.losses(0), err
}

// startUniform makes the paper's start: uniform log factors, equal quantile steps and R' = -log n.
func (f *qmfqFit) startUniform() error {
	f.inflation.lambda = 0
	err := f.progress.Enter(fit.PhaseFactors)
	if err == nil {
		if f.init {
			f.from.copyFrom(f.initU, f.initV)
			f.from.raise(factorBound(f.squash, f.from.k))
		} else {
			f.from.uniform(f.seed)
		}
		copy(f.projected.u, f.from.u)
		copy(f.projected.v, f.from.v)
		err = f.inflation.startMaps(&f.progress)
	}
	for i := range f.deflation.R {
		f.deflation.R[i] = -elem.Log(float64(f.cells.N))
	}
	for i := range f.all {
		f.deflation.FromR(i)
	}
	return err
}

// reserve takes what Begin takes beside the fit, and what is kept of the state before the last steps.
func (f *qmfqFit) reserve() {
	a, m, t := f.pool.Memory, f.levels, f.projected
	if f.validation > 0 {
		a.Floats(5, t.d, m)
		a.Floats(t.d)
		newFactors(a, t.d, t.n, t.k)
	}
	if f.start == StartUniform {
		return
	}
	defer f.pool.Part()()
	s := f.beginSettings()
	q := newQMFFit(f.cells, t.k, &s, f.first())
	q.reserve()
	if f.validation > 0 { // its best epoch
		a.Floats(2, t.d, m)
		newFactors(a, t.d, t.n, t.k)
	}
}

// first is the run of the QMF that a fit starts from.
func (f *qmfqFit) first() fit.Run { return fit.Run{Pool: f.pool, Seed: f.seed, Progress: f.progress} }

// beginSettings are those of the QMF that a fit starts from.
func (f *qmfqFit) beginSettings() settings {
	s := *f.settings
	s.patience, s.batchRows, s.schedule = 0, qmfDefaults().batchRows, ScheduleCosine
	s.epochs, s.learningRate = startEpochs, qmfDefaults().learningRate
	if !s.gaussian(f.from.k) {
		s.epochs, s.learningRate = startAdam, adamRate
	}
	return s
}

// startFromQMF fits a QMF, takes its maps as T and its factors, each row of U brought to the mean of x, as
// the start of projections, at the best epoch on held-out cells, and fits T'(X) to its UV.
func (f *qmfqFit) startFromQMF() error {
	if err := f.pool.Err(); err != nil {
		return err
	}
	s := f.beginSettings()
	q := newQMFFit(f.cells, f.from.k, &s, f.first())
	q.maxShrinkage = mostShrinkage
	a := &fit.Attempt{Fit: q, Journal: fit.NewJournal(s.patience, s.epochs, f.cells.Held != nil)}
	err := a.Begin()
	if err == nil {
		err = f.progress.Enter(fit.PhaseQMF)
	}
	if err == nil {
		progress := f.progress.Within(0, 1)
		err = a.Advance(&progress, s.epochs, nil)
	}
	a.Restore()
	f.inflation.lambda, f.inflation.line = q.lambda, q.line
	copy(f.inflation.F, q.F)
	copy(f.inflation.Inc, q.Inc)
	copy(f.inflation.S, q.S)
	copy(f.from.u, q.u)
	copy(f.from.v, q.v)
	if err == nil {
		err = f.progress.Enter(fit.PhaseMaps)
	}
	if err == nil {
		t := f.deflation
		err = f.progress.Rows(f.pool, len(f.all),
			func(worker, i int) {
				f.bringToMean(&t.spaces[worker], i)
				t.calibrate(&t.spaces[worker], i, f.from)
			})
	}
	return err
}

// bringToMean scales row i of U so that the mean of its product is that of x, and the line of T_i by the
// inverse: T_i stays the same, since its squash has no unit. So rows weigh in a projection as they do in x.
// The QMF may leave U of a row that is mostly 0 at 10^5 times the others, where T_i is flat: the projection
// would fit such a row alone, and a rounding of x would come back 10^10 times as large.
func (f *qmfqFit) bringToMean(v *rowSpace, i int) {
	t := f.inflation
	if t.squash == SquashNone || t.Constant(i) {
		return
	}
	t.read(v, i)
	f.from.reconstruct(v.w, i)
	c := t.Average[i] * t.Mass[i] / blockDot(v.w, t.visibleCells(v))
	if !(c > 0x1p-100 && c < 0x1p100) { // a mean that has few digits, or none
		return
	}
	kernel.Scale(f.from.rowU(i), f.from.rowU(i), c)
	if t.S != nil {
		t.S[i] /= c
	}
}

// startFromModel takes the maps and the factors of a model.
func (f *qmfqFit) startFromModel() error {
	err := f.progress.Enter(fit.PhaseFactors)
	f.from.copyFrom(f.initU, f.initV)
	if !f.maps.own {
		f.from.raise(factorBound(f.squash, f.from.k))
	}
	copy(f.projected.u, f.from.u)
	copy(f.projected.v, f.from.v)
	if err == nil {
		err = f.inflation.startMaps(&f.progress)
	}
	t, of := f.deflation, f.maps.deflation
	for i := range f.all {
		last := 0.0
		for l, q := range of.quantiles.Row(i) {
			t.R[i*t.M+l] = elem.Log(max(q-last, divergence.Tiny))
			t.Logits(i)[l] = elem.Log(of.weights.Row(i)[l])
			last = q
		}
		t.FromR(i)
	}
	return err
}

// Model projects once more and returns the model. Where the fit is stopped before this
// projection is done, UV is that of the projection before, and under validation the state
// after the last epoch has no losses and cannot be the best. The error is that of the context.
func (f *qmfqFit) Model(a *fit.Attempt) (fit.Model, error) {
	on, j := func() bool { return f.pool.Err() == nil }, a.Journal
	if on() {
		f.project()
	}
	if f.cells.Held != nil && on() {
		if f.run(evaluateRows); on() {
			copyAll(f.before, f.now)
			a.Note(f.losses(j.Done))
		}
	}
	if j.Kept {
		if f.restore(a); on() {
			f.project()
		}
	}
	stopped, done := f.progress.Finish(f.pool)
	defer done()
	d, s := len(f.all), f.deflation
	q := &QMFQ{deflate: make([]*Map, d), projection: f.projection, from: [2]Mat{f.from.matU(), f.from.matV()}}
	t := f.inflation.buildModel(stopped)
	t.Best = j.Exact(f.inflation.meanLoss(), f.inflation.meanHeld())
	t.History, t.Validation = j.History, j.Validation
	q.Factorisation = t.Factorisation
	f.pool.Do(d, func(worker, i int) {
		v := &s.spaces[worker]
		if s.solved[i].H == nil { // a resumed fit was stopped before its first projection
			s.load(v, i)
			s.solvedAt(v, i)
		}
		s.Quantiles(v.q, i)
		q.deflate[i] = newMap(s.solved[i], v.q, nil, f.epsilon)
	})
	for i, o := range s.ends {
		if o.Passes > 0 && !o.Converged {
			q.Warnings = append(q.Warnings, notConverged(o, i, f.tolerance))
		}
	}
	t.Warnings = q.Warnings
	q.inflated = *t
	return q, f.progress.Ctx.Err()
}

// Walk shows the last projection too, which is the model of a resumed fit that is stopped before the next
// projection.
func (f *qmfqFit) Walk(visit func(array section.Part, best []float64)) {
	t, s := f.inflation, f.deflation
	before := f.before
	if before == nil {
		before = make([][]float64, len(f.now))
	}
	visit(section.Positive(f.from.u), nil)
	visit(section.Positive(f.from.v), nil)
	visit(section.Positive(t.rowLosses), nil)
	visit(section.Positive(t.rowHeld), nil)
	t.Maps.Walk(visit, monotone.Kept{F: before[0], Inc: before[1], S: before[7]})
	s.Maps.Walk(visit, monotone.Kept{F: before[2], R: before[3]})
	visit(section.Finite(s.h), before[4])
	for i, p := range f.product(f.projected.u, f.projected.v) {
		visit(p, before[5+i])
	}
}

// Index returns which warm starts are valid, λ and τ.
func (f *qmfqFit) Index() []uint64 {
	t := f.inflation
	return append(monotone.AppendWarm(monotone.AppendWarm(nil, t.Warm), f.deflation.Warm),
		math.Float64bits(t.lambda), math.Float64bits(t.line))
}

// product returns U and V as parts of a checkpoint; under a truncated SVD they may have either sign.
func (f *qmfqFit) product(u, v []float64) []section.Part {
	if f.projection.kind == projection.SVD {
		return []section.Part{section.Finite(u), section.Finite(v)}
	}
	return []section.Part{section.Positive(u), section.Positive(v)}
}

// Resume takes the state of a checkpoint.
func (f *qmfqFit) Resume(t *fit.Attempt, c *fit.Checkpoint) error {
	d := len(f.all)
	index, err := c.Fill(t, 2*d+2)
	if err != nil {
		return err
	}
	if f.inflation.lambda, f.inflation.line, err = shrinkageOf(c, index, 2*d); err != nil {
		return err
	}
	if err := monotone.TakeWarm(c.File, f.inflation.Warm, index, 0); err != nil {
		return err
	}
	return monotone.TakeWarm(c.File, f.deflation.Warm, index, d)
}

// Inflate returns T_i, from the scale of (UV)_i to that of feature i, 0 <= i < d; another
// i is a [*ShapeError].
func (q *QMFQ) Inflate(i int) (*Map, error) {
	if uint(i) >= uint(len(q.deflate)) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(len(q.deflate)-1)}
	}
	return q.inflated.mapOf(i), nil
}

// Deflate returns T'_i, from the scale of feature i to that of (UV)_i, 0 <= i < d;
// another i is a [*ShapeError].
func (q *QMFQ) Deflate(i int) (*Map, error) {
	if uint(i) >= uint(len(q.deflate)) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(len(q.deflate)-1)}
	}
	return q.deflate[i], nil
}

// Normalize returns T'(x), d × n', for new samples x, d × n', finite; a NaN cell is missing and stays NaN.
// Errors: [*ShapeError],
// [*DataError]. Cost: d n' maps.
func (q *QMFQ) Normalize(x Mat) (Mat, error) {
	if err := x.check("x"); err != nil {
		return Mat{}, err
	}
	if x.Rows != len(q.deflate) {
		return Mat{}, &ShapeError{What: "x", Got: x.size(), Want: itoa(len(q.deflate)) + " rows"}
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v-v != 0 && v == v {
				return Mat{}, &DataError{Row: i, Col: j, Value: v, Problem: "x must be finite"}
			}
		}
	}
	y := NewMat(x.Rows, x.Cols)
	for i, t := range q.deflate {
		for j, v := range x.Row(i) {
			y.Set(i, j, t.At(v))
		}
	}
	return y, nil
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n' matrix V'
// at which the divergence of x from T(U V') is least. It searches as [QMF.Transform]
// does, from one more start: the projection of T'(x) on U. Values, missing cells and
// errors are those of QMF.Transform.
//
// The projection by itself is not returned, because the coordinates of the fit are no
// such projections: a fit makes a number of updates of both factors, which stop short of
// the least divergence. At V' training columns have a loss a few hundredths below that of
// the fit (docs/measurements/qmfq.md).
//
// Under [TruncatedSVD] the two projections are the same, and V' is the least-squares
// projection of T'(x) on U, which needs every cell.
//
// Cost: that of [QMF.Transform], d n' maps of m exponentials and 2m divisions, and that of
// [NMF.Transform].
func (q *QMFQ) Transform(ctx context.Context, x Rows) (Mat, error) {
	t := q.inflated
	t.workers = q.workers
	if err := usable(q); err != nil {
		return Mat{}, err
	}
	rules := q.bounds()
	rules.missing = q.projection.kind != projection.SVD // which projects whole columns
	x, err := rules.checkColumns(x, q.U.Rows)
	if err != nil {
		if bad, is := err.(*DataError); is && bad.Row >= 0 && bad.Value != bad.Value {
			bad.Problem = "x must be finite: TruncatedSVD needs every cell"
		}
		return Mat{}, err
	}
	if q.projection.kind == projection.SVD {
		return q.leastSquares(ctx, x)
	}
	deflated := func(block Mat, _ int) func([]float64, int) {
		return func(to []float64, j int) {
			for i, f := range q.deflate {
				to[i] = f.At(block.At(i, j))
			}
		}
	}
	loss := divergence.KL
	if q.projection.kind == projection.Frobenius {
		loss = divergence.Frobenius
	}
	own, err := placed(ctx, x, nil, &q.Factorisation, place.NewLinear(loss, q.U.Rows, q.U.Cols, q.U.Row),
		deflated)
	if err != nil {
		return Mat{}, err
	}
	base, u, err := t.placer(ctx, x)
	if err != nil {
		return Mat{}, err
	}
	return placed(ctx, x, u, &q.Factorisation, base, func(block Mat, from int) func([]float64, int) {
		base.Own = func(to []float64, j int) { own.column(to, from+j) }
		return block.column
	})
}

// Score returns the mean divergence of the observed cells of x, d × n', from
// T(U V') where V' is Transform(x). For the columns of the training matrix it is
// at most what Loss is, as in [QMF.Score]. Cost and errors are those of Transform.
func (q *QMFQ) Score(ctx context.Context, x Rows) (float64, error) { return scoreOf(ctx, q, x) }

// Scores is that of [Model]. Cost: that of Score.
func (q *QMFQ) Scores(ctx context.Context, x Rows) ([]float64, error) { return scoresOf(ctx, q, x) }

// Predict is that of [Model]: T(U V'). Cost: that of Transform, and dn' maps.
func (q *QMFQ) Predict(ctx context.Context, x Rows) (Mat, error) { return predictionOf(ctx, q, x) }

func (q *QMFQ) at(v Mat) Model { return q.inflated.at(v) }

// leastSquares projects deflated columns y on U, whose columns are orthogonal:
// v = diag(UᵀU)⁻¹ Uᵀ y, with 0 for a component whose column of U is 0.
func (q *QMFQ) leastSquares(ctx context.Context, x Rows) (Mat, error) {
	norm := make([]float64, q.U.Cols)
	for i := range q.U.Rows {
		for c, w := range q.U.Row(i) {
			norm[c] += float64(w * w)
		}
	}
	_, n := x.Dims()
	v := NewMat(q.U.Cols, n)
	p := pool.New(q.workers, n)
	defer p.Close()
	err := inBlocks(ctx, x, nil, func(block Mat, from int) error {
		p.Do(block.Cols, func(_, j int) {
			if ctx.Err() != nil {
				return
			}
			for i, f := range q.deflate {
				y := f.At(block.At(i, j))
				for c, w := range q.U.Row(i) {
					v.Data[c*n+from+j] += float64(w * y)
				}
			}
			for c, norm := range norm {
				if norm > 0 {
					v.Data[c*n+from+j] /= norm
				}
			}
		})
		if err := ctx.Err(); err != nil {
			return &interrupted{err}
		}
		return nil
	})
	if err != nil {
		return Mat{}, err
	}
	return v, nil
}

// Reconstruct returns T(UV) = T(Π_k(T'(X))), d × n. Cost: that of [QMF.Reconstruct].
func (q *QMFQ) Reconstruct() Mat {
	fill, err := q.filler(context.Background())
	if err != nil {
		return Mat{}
	}
	return fill.matrix(q.Dims())
}

func (q *QMFQ) filler(context.Context) (filler, error) {
	if err := usable(q); err != nil {
		return nil, err
	}
	return q.inflated.rows(), nil
}

// least is the least number that a factor may have: those of a truncated SVD may be negative.
func (q *QMFQ) least() float64 {
	if q.projection.kind == projection.SVD {
		return -math.MaxFloat64
	}
	return 0
}

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (q *QMFQ) MarshalBinary() ([]byte, error) {
	return fileOf(q)
}

func (q *QMFQ) encode() []byte {
	var quantiles, cuts, squashes []float64
	for _, m := range q.deflate {
		quantiles = append(quantiles, m.q...)
		cuts = append(cuts, m.cut...)
		squashes = append(squashes, float64(m.squash.Kind), m.squash.Ref, m.squash.Shift, m.squash.Std)
	}
	return section.Encode(section.QMFQ, append(q.inflated.sections(),
		section.Floats("DEFQ", quantiles), section.Floats("DEFC", cuts), section.Floats("DEFR", squashes),
		section.Words("PROJ", uint64(q.projection.kind), uint64(q.projection.updates)),
		section.Floats("FROM", flat(q.from[0]), flat(q.from[1]))))
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMFQ) UnmarshalBinary(data []byte) error {
	f, err := decode(data, section.QMFQ)
	if err != nil {
		return err
	}
	p, err := f.words("PROJ", 2)
	if err != nil {
		return err
	}
	n := QMFQ{projection: Projection{projection.Kind(p[0]), int(p[1] & 0x7fffffff)}}
	switch {
	case p[0] < uint64(projection.KL) || p[0] > uint64(projection.SVD):
		return f.failAt("PROJ", 0, "there is no such projection")
	case n.projection.kind == projection.SVD && p[1] != 0 || p[1] > 0x7fffffff || n.projection.bound() != "":
		return f.failAt("PROJ", 1, "the projection has no such number of updates")
	}
	t, err := f.readQMF(n.least())
	if err != nil {
		return err
	}
	n.inflated = *t
	n.Factorisation = t.Factorisation
	quantiles, err := f.matrixIn("DEFQ", f.d, f.m, 0, limit.Map)
	if err != nil {
		return err
	}
	cuts, err := f.matrixIn("DEFC", f.d, f.m-1, -limit.Map, limit.Map)
	if err != nil {
		return err
	}
	squashes, err := f.matrixIn("DEFR", f.d, 4, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return err
	}
	for i := range f.d {
		inflate := t.mapOf(i)
		deflate := &Map{q: quantiles.Row(i), cut: cuts.Row(i), rate: inflate.rate}
		if deflate.squash, err = f.squash("DEFR", 4*i, squashes.Row(i)); err != nil {
			return err
		}
		if err := f.rising("DEFQ", quantiles, i); err != nil {
			return err
		}
		n.deflate = append(n.deflate, deflate)
	}
	from, err := f.vectorIn("FROM", int64(f.d+f.n)*int64(f.k), 0, math.MaxFloat64)
	if err != nil {
		return err
	}
	n.from = [2]Mat{{Rows: f.d, Cols: f.k, Stride: f.k, Data: from[:f.d*f.k]},
		{Rows: f.k, Cols: f.n, Stride: f.n, Data: from[f.d*f.k:]}}
	if c, _ := (&Factorisation{U: n.from[0], V: n.from[1]}).overflow(); c >= 0 {
		return f.failAt("FROM", 0, "the product of the factors overflows")
	}
	*q = n
	sealFields(q)
	return nil
}

// Bend returns the bend of every T_i, as [QMF.Bend] defines it. T' does not count; see
// [QMFQ.Deflate] for its curves.
func (q *QMFQ) Bend() []float64 { return bendsOf(q) }

func (q *QMFQ) fields() (used, told []field) {
	return []field{{"U", q.U}, {"V", q.V}}, q.told()
}

func (q *QMFQ) readable() ([]byte, error) {
	file := q.encode()
	return file, new(QMFQ).UnmarshalBinary(file)
}
