package qmf

// This file holds the fit of a QMFQ, X ≈ T(Π_k(T'(X))) (paper §3.5), as the driver calls it. An epoch is one
// pass forward and back:
//
//	Y_i = T'_i(X_i) → UV = Π_k(Y) → T_i, its loss, its steps on q_i and F_i (inflate.go) → w̄
//	→ the projection's adjoint (internal/projection) → Ȳ → gradients of F'_i and R'_i → Adam.
//
// The quantile values q' = cumsum(exp R') have free ends; the weights are b' = softmax F'.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// QMFQ is what a fit has made, of x'.
type QMFQ struct {
	Inflated *QMF // T, of U and V
	// T': the quantiles, the potentials of the last solves, and how these ended
	Quantiles    fit.Dense
	Solved       []transport.Potentials
	Ends         []transport.Outcome
	FromU, FromV fit.Dense // where every projection started
}

const (
	startEpochs   = 20    // epochs of the QMF that a fit starts from
	startAdam     = 100   // the same where Adam steps the factors of that QMF
	mostShrinkage = 20    // bound of the shrinkage of T that the data choose: more leaves T' little to learn
	unitDeflation = 1e-12 // floor of the increments of q', in units of their sum

	// farthestDeflated bounds how far R' is from the logarithm of x's scale. With this bound a learning
	// rate that is far too large gives a bad fit, but no overflow in the squares of a projection.
	farthestDeflated = 60
)

// qmfqFit is a QMFQ during its fit.
type qmfqFit struct {
	*Settings
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

// FitQMFQ returns the fit of a QMFQ of the visible cells.
func FitQMFQ(visible *fit.Cells, rank int, s *Settings, run fit.Run) fit.Algorithm {
	return newQMFQFit(visible, rank, s, run)
}

func newQMFQFit(visible *fit.Cells, rank int, s *Settings, run fit.Run) *qmfqFit {
	d, n, p := visible.D, visible.N, run.Pool
	f := &qmfqFit{
		Settings: s, cells: visible, pool: p, projector: newProjector(s.Projection, visible, rank, p),
		from: newFactors(p.Memory, d, n, rank), projected: newFactors(p.Memory, d, n, rank),
		all: inOrder(p.Memory, d), seed: run.Seed, progress: run.Progress,
	}
	f.inflation, f.wbar = newInflation(s, visible, f.projected, p), p.Memory.Floats(d, f.projected.np)
	f.inflation.whole = true
	f.inflation.lambda = max(s.Shrinkage, 0) // until the data have chosen
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
func newProjector(by projection.Choice, visible *fit.Cells, k int, p *pool.Pool) projection.Projector {
	size, seen := projection.Size{D: visible.D, N: visible.N, K: k}, projection.Seen(nil)
	if visible.Partial {
		seen = visible.Mark
	}
	if visible.Weighted() && by.Kind == projection.SVD {
		return projection.NewWeighted(size, visible.SampleWeights(), p)
	}
	return projection.New(by, size, seen, p)
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
		return &fit.DataError{Row: -1, Col: -1, Value: equal.Value, Problem: equal.Error()}
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
	case f.Begun != nil:
		err = f.startFromModel()
	case f.Start == StartUniform:
		err = f.startUniform()
	default:
		err = f.startFromQMF()
	}
	f.projected.take(f.from)
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
		if f.Init {
			f.from.copyFrom(f.InitU, f.InitV)
			f.from.raise(f.FactorBound(f.from.k))
		} else {
			f.from.uniform(f.seed)
		}
		f.projected.take(f.from)
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
	a, m, t := f.pool.Memory, f.Levels, f.projected
	if f.Validation > 0 {
		a.Floats(5, t.d, m)
		a.Floats(t.d)
		newFactors(a, t.d, t.n, t.k)
	}
	if f.Start == StartUniform {
		return
	}
	defer f.pool.Part()()
	s := f.beginSettings()
	q := newQMFFit(f.cells, t.k, &s, f.first())
	q.reserve()
	if f.Validation > 0 { // its best epoch
		a.Floats(2, t.d, m)
		newFactors(a, t.d, t.n, t.k)
	}
}

// first is the run of the QMF that a fit starts from.
func (f *qmfqFit) first() fit.Run { return fit.Run{Pool: f.pool, Seed: f.seed, Progress: f.progress} }

// beginSettings are those of the QMF that a fit starts from.
func (f *qmfqFit) beginSettings() Settings {
	s := *f.Settings
	s.Patience, s.BatchRows, s.Schedule = 0, Defaults().BatchRows, ScheduleCosine
	s.Epochs, s.LearningRate = startEpochs, Defaults().LearningRate
	if !s.Gaussian(f.from.k) {
		s.Epochs, s.LearningRate = startAdam, AdamRate
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
	a := &fit.Attempt{Fit: q, Journal: fit.NewJournal(s.Patience, s.Epochs, f.cells.Held != nil)}
	err := a.Begin()
	if err == nil {
		err = f.progress.Enter(fit.PhaseQMF)
	}
	if err == nil {
		progress := f.progress.Within(0, 1)
		err = a.Advance(&progress, s.Epochs, nil)
	}
	a.Restore()
	f.inflation.lambda, f.inflation.line = q.lambda, q.line
	copy(f.inflation.F, q.F)
	copy(f.inflation.Inc, q.Inc)
	copy(f.inflation.S, q.S)
	f.from.take(q.factors)
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
	if t.Squash == transport.None || t.Constant(i) {
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
	f.from.copyFrom(f.InitU, f.InitV)
	if !f.Begun.Own {
		f.from.raise(f.FactorBound(f.from.k))
	}
	f.projected.take(f.from)
	if err == nil {
		err = f.inflation.startMaps(&f.progress)
	}
	t, of := f.deflation, f.Begun.Deflation
	for i := range f.all {
		last := 0.0
		for l, q := range of.Quantiles.Row(i) {
			t.R[i*t.M+l] = elem.Log(max(q-last, divergence.Tiny))
			t.Logits(i)[l] = elem.Log(of.Weights.Row(i)[l])
			last = q
		}
		t.FromR(i)
	}
	return err
}

// Made projects once more and returns the QMFQ. Where the fit is stopped before this
// projection is done, UV is that of the projection before, and under validation the state
// after the last epoch has no losses and cannot be the best. The error is that of the context.
func (f *qmfqFit) Made(a *fit.Attempt) (any, error) {
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
	q := &QMFQ{Inflated: f.inflation.buildModel(stopped), FromU: f.from.matU(), FromV: f.from.matV(),
		Quantiles: fit.NewDense(d, s.M), Solved: s.solved, Ends: s.ends}
	t := q.Inflated
	t.Best = j.Exact(f.inflation.meanLoss(), f.inflation.meanHeld())
	t.History, t.Validation = j.History, j.Validation
	f.pool.Do(d, func(worker, i int) {
		if s.solved[i].H == nil { // a resumed fit was stopped before its first projection
			v := &s.spaces[worker]
			s.load(v, i)
			s.solvedAt(v, i)
		}
		s.Maps.Quantiles(q.Quantiles.Row(i), i)
	})
	for i, o := range q.Ends { // a row without a pass has not been solved
		q.Ends[i].Converged = o.Converged || o.Passes == 0
	}
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
	t.Maps.Walk(visit, kept{F: before[0], Inc: before[1], S: before[7]})
	s.Maps.Walk(visit, kept{F: before[2], R: before[3]})
	visit(section.Finite(s.h), before[4])
	for i, p := range f.product(f.projected.u, f.projected.v) {
		visit(p, before[5+i])
	}
}

// Index returns which warm starts are valid, λ and τ.
func (f *qmfqFit) Index() []uint64 {
	t := f.inflation
	return append(appendWarm(appendWarm(nil, t.Warm), f.deflation.Warm),
		math.Float64bits(t.lambda), math.Float64bits(t.line))
}

// product returns U and V as parts of a checkpoint; under a truncated SVD they may have either sign.
func (f *qmfqFit) product(u, v []float64) []section.Part {
	if f.Projection.Kind == projection.SVD {
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
	if err := TakeWarm(c.File, f.inflation.Warm, index, 0); err != nil {
		return err
	}
	return TakeWarm(c.File, f.deflation.Warm, index, d)
}
