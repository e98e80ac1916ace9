package quantmf

// This file holds the factorisation with quantiles on both sides (paper §3.3,
// Eq. minPik),
//
//	min over F, R, F', R' of  Σ_i Δ(X_i, T_i(Π_k(T'(X))_i)):
//
// every row is deflated by an increasing map T'_i, the matrix of the deflated
// rows is projected onto rank k, and every row is inflated again by T_i. The
// factors are no parameters: they are what the projection makes of T'(X). An
// epoch is one pass forward and back:
//
//	Y_i = T'_i(X_i) → UV = Π_k(Y) → T_i, its loss, its steps on q_i and F_i (qmf.go) → w̄
//	→ the projection's adjoint (project.go) → Ȳ → gradients of F'_i and R'_i → Adam.
//
// q' = cumsum(exp R') is free, b' = softmax F'. X is a constant, so T' needs its
// gradients in b and q alone; its plans are not kept but their potentials, and
// one pass brings them back.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/adam"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// QMFQ is a fitted X ≈ T(Π_k(T'(X))). It is not changed by its methods and may be
// used by several goroutines at once.
type QMFQ struct {
	Factorisation // Π_k(T'(X)) = UV

	inflate, deflate []*Map
	inflated         QMF // T as a QMF of U and V
	projection       Projection
}

const (
	startEpochs   = 100 // of the QMF that a fit starts from
	projectOften  = 20  // updates of the default projection
	projectPaper  = 100 // and from the paper's start
	qmfqRate      = 0.1
	qmfqEpochs    = 100
	unitDeflation = 1e-12 // floor of the increments of q', in units of their sum

	// What R' is held to, beside the logarithm of x's scale: a rate beyond reason gives
	// a bad fit, and no overflow in a projection's squares.
	farthestDeflated = 60
)

// WithProjection sets Π_k. Default KLUpdates(20), KLUpdates(100) under
// [StartUniform].
func WithProjection(p Projection) FitOption {
	return fitOption(kProjection, p.String(), func(c *config) string {
		c.projection = p
		return p.bound()
	})
}

func qmfqDefaults() config {
	c := qmfDefaults()
	c.learningRate, c.epochs, c.shrinkage = qmfqRate, qmfqEpochs, 0
	return c
}

// settleQMFQ sets what depends on other options.
func (c *config) settleQMFQ() {
	c.batchRows = math.MaxInt32 // all rows are one step
	if !c.given.has(kProjection) {
		c.projection = KLUpdates(projectOften)
		if c.start == StartUniform {
			c.projection = KLUpdates(projectPaper)
		}
	}
}

// FitQMFQ fits x, d features × n samples, by T(Π_k(T'(X))) of rank k >= 1, two
// increasing maps a feature. The values of x, and their units, are those of [FitQMF];
// under [SquashNone] T' transports x as it is, at most 1e12 in magnitude.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 100 epochs, Adam at 0.1
// falling to 0 by cosine, free ends. The start is a QMF of 100 epochs without
// shrinkage, from the start that the data choose, whose factors every epoch's
// projection starts from and whose maps T starts from; T' is fitted to
// them. Under StartUniform it is the paper's: factors exp of uniform numbers on
// [-1/2,1/2], equal quantile steps, 100 updates. All rows are one step. Errors
// are those of [FitQMF]; a truncated SVD with two equal singular values k and
// k+1 is a [*DataError], with the model so far.
//
// Hidden cells, missing or held out, have no part in the measures that T and T'
// transport nor in the projection. Under WithValidation the QMF that a fit starts
// from is at its best epoch on the held-out cells: real data overfit in the first
// tens. A checkpoint is first due after an epoch of the fit itself: a start that
// is interrupted begins anew.
//
// Cost of an epoch: the projection, 28dnk flops an update forward and back, 42dnk
// where cells are hidden (see project.go for memory), and 2d transports with
// their backward.
func FitQMFQ(ctx context.Context, x Mat, rank int, opts ...FitOption) (*QMFQ, error) {
	c := qmfqDefaults()
	if err := parse(forQMFQ, &c, opts); err != nil {
		return nil, err
	}
	visible, err := checkFit(x, rank, &c)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(x.Rows, x.Cols); err != nil {
		return nil, err
	}
	if c.squash == SquashNone {
		if err := checkPlaces(x, &visible.units); err != nil {
			return nil, err
		}
	}
	c.settleQMFQ()
	p := pool.New(c.workers, x.Rows)
	defer p.Close()
	p.Bind(ctx)
	var best *QMFQ
	past, err := c.reopen(kindQMFQ, x, rank)
	if err != nil {
		return nil, err
	}
	if m := new(QMFQ); len(past.best) > 0 {
		if err := past.bestModel(m, kindQMFQ, &c, x, rank); err != nil {
			return nil, err
		}
		best = m
	}
	for restart := range c.restarts {
		if past.from != nil && restart < past.from.restart {
			continue
		}
		f := newQMFQFit(visible, rank, &c, p)
		f.restart, f.bestSoFar, f.data = restart, past.best, past.data
		f.course = newCourse(ctx, &c, x.Rows)
		if past.from != nil && restart == past.from.restart {
			if err := f.resumeFrom(past.state, past.from); err != nil {
				return nil, err
			}
		} else if err = f.start(); err != nil && best != nil {
			return best, err
		}
		if err == nil {
			err = f.run()
		}
		if err != nil && c.discard {
			return nil, err
		}
		m := f.model()
		if end := p.Err(); end != nil && err == nil {
			err = stoppedAt(f.done, end)
		}
		if best == nil || judged(m.History, m.Validation, m.Best) < judged(best.History, best.Validation, best.Best) {
			best = m
			if c.save != nil && c.restarts > 1 {
				past.best, _ = m.MarshalBinary()
			}
		}
		if err != nil {
			return best.outward(&visible.units), err
		}
	}
	best.outward(&visible.units)
	if c.strict && len(best.Warnings) > 0 {
		return best, best.Warnings[0]
	}
	return best, nil
}

// checkPlaces reports values that T' cannot transport as they are.
func checkPlaces(x Mat, u *units) error {
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if math.Abs(v) > maxPlace {
				return &DataError{Row: i, Col: j, Value: v, Problem: "x must be at most " + ftoa(maxPlace) + " in magnitude under SquashNone, which transports it as it is"}
			}
		}
	}
	for i := range x.Rows {
		if u.exponent(i) != 0 {
			return &DataError{Row: i, Col: -1, Value: math.Ldexp(1, u.exponent(i)), Problem: "the row is too small to be transported as it is by SquashNone"}
		}
	}
	return nil
}

// outward brings a model of x' to the units of x.
func (q *QMFQ) outward(u *units) *QMFQ {
	q.inflated.outward(u)
	if u.plain() {
		return q
	}
	for i, m := range q.deflate {
		s, e := &m.squash, u.exponent(i)
		s.ref, s.shift, s.std = math.Ldexp(s.ref, e)+u.offset(i), math.Ldexp(s.shift, e), math.Ldexp(s.std, e)
		for j := range m.cut {
			if s.kind == SquashNone {
				m.cut[j] += u.offset(i)
			}
		}
	}
	return q
}

// qmfqFit is a fit under way: T is the maps of the QMF fit within, whose factors
// are the projection's.
type qmfqFit struct {
	*qmfFit
	projector      projector
	from           *factors // where every projection starts
	y, ybar        []float64
	f1             []float64 // F'
	momF1          moment
	r1             []float64 // R'
	shortest1      float64   // its bounds
	longest1       float64
	momR1          moment
	h1             []float64 // potentials of T', d × m
	state1         []warm
	rel1           []outcome
	work1          []deflators
	whole          *factors    // those of the last projection that was not interrupted
	now            [][]float64 // what the model is made of: F, the increments of q, F', R', the potentials of T', U, V
	best, before   [][]float64 // the same at the best epoch on held-out cells, and before the last steps
	deflates, back func(worker, piece int)
	visits         func(worker, piece int)
}

// deflators are what a worker needs for T', for each of the rows that it works at
// abreast.
type deflators struct {
	each []deflator
	abreast
}

// deflator is what a row at work needs for T'.
type deflator struct {
	row      row
	x, t, z  []float64 // np
	q, g, e  []float64 // m
	mask     []bool
	observed []bool // of the row at hand; nil: all
}

func newQMFQFit(visible *cells, rank int, c *config, p *pool.Pool) *qmfqFit {
	f := &qmfqFit{qmfFit: newQMFFit(visible, rank, c, p)}
	d, n, np, m := f.d, f.n, f.np, f.m
	f.projector = newProjector(c.projection, visible, rank, p)
	f.from, f.whole = newFactors(d, n, rank), newFactors(d, n, rank)
	f.y, f.ybar = make([]float64, d*np), make([]float64, d*np)
	f.f1, f.momF1 = make([]float64, d*m), newMoment(d*m)
	f.r1, f.momR1 = make([]float64, d*m), newMoment(d*m)
	scale := elem.Log(max(slices.Max(f.average), tinyScale))
	f.shortest1, f.longest1 = min(0, scale)-farthestDeflated, max(0, scale)+farthestDeflated
	if c.squash == SquashNone { // what is transported next is about T'(X) itself
		f.longest1 = elem.Log(maxPlace / float64(m))
	}
	f.h1, f.rel1 = make([]float64, d*m), make([]outcome, d)
	f.state1 = make([]warm, d)
	for i := range f.state1 {
		f.state1[i] = newWarm(m)
	}
	f.work1 = make([]deflators, p.Workers())
	for w := range f.work1 {
		c := &f.work1[w]
		c.each, c.abreast = make([]deflator, len(f.work[w].visitors)), newAbreast(len(f.work[w].visitors), m)
		for i := range c.each {
			v := &c.each[i]
			v.row.resize(n, m)
			v.row.reserve()
			v.row.setTargets(nil)
			v.row.setWeights(nil, nil)
			v.x, v.t, v.z, v.mask = make([]float64, np), make([]float64, np), make([]float64, np), make([]bool, n)
			v.q, v.g, v.e = make([]float64, m), make([]float64, m), make([]float64, m)
		}
	}
	f.deflates, f.back, f.visits = f.deflate, f.deflateBack, f.visitRows
	f.batch.rows = f.order
	f.now = [][]float64{f.f, f.inc, f.f1, f.r1, f.h1, f.whole.u, f.whole.v}
	if f.held != nil {
		for _, v := range f.now {
			f.best, f.before = append(f.best, make([]float64, len(v))), append(f.before, make([]float64, len(v)))
		}
	}
	return f
}

func (f *qmfqFit) rowOf(v []float64, i int) []float64 { return v[i*f.m : (i+1)*f.m] }
func (f *qmfqFit) rowY(v []float64, i int) []float64  { return v[i*f.np : (i+1)*f.np] }

// quantiles fills q with q' = cumsum(exp R') of row i.
func (f *qmfqFit) quantiles(q []float64, i int) {
	s := 0.0
	for l, r := range f.rowOf(f.r1, i) {
		s += elem.Exp(r)
		q[l] = s
	}
}

// prepare loads row i of X into the deflator.
func (f *qmfqFit) prepare(v *deflator, i int) *warm {
	r, st := &v.row, &f.state1[i]
	v.observed = f.cells.load(v.x, v.mask, i)
	f.cells.measure(r, v.observed, i)
	softmax(r.b, f.rowOf(f.f1, i))
	r.setSamples(v.x[:f.n], f.squash)
	r.setEpsilon(f.epsilon)
	return st
}

// deflate fills the rows of a piece of Y with T'_i(X_i), 0 in hidden cells.
func (f *qmfqFit) deflate(worker, piece int) {
	c := &f.work1[worker]
	from, to := f.piece(piece)
	c.clear()
	for i := from; i < to; i++ {
		v := &c.each[i-from]
		c.take(&v.row, f.prepare(v, i))
		f.quantiles(v.q, i)
		v.row.ask(v.t, v.q)
	}
	c.solve(f.tolerance, f.maxIterations)
	for i := from; i < to; i++ {
		v := &c.each[i-from]
		f.rel1[i] = c.ends[i-from]
		copy(f.rowOf(f.h1, i), v.row.h)
		v.row.average(v.t, v.q)
		y := f.rowY(f.y, i)[:f.n]
		copy(y, v.t)
		for j, o := range v.observed {
			if !o {
				y[j] = 0
			}
		}
	}
}

// deflateBack makes the steps of F'_i and R'_i from Ȳ_i for the rows of a piece.
func (f *qmfqFit) deflateBack(worker, piece int) {
	c := &f.work1[worker]
	from, to := f.piece(piece)
	c.clear()
	for i := from; i < to; i++ {
		v := &c.each[i-from]
		c.take(&v.row, f.prepare(v, i))
		v.row.sweep(f.rowOf(f.h1, i), false)
	}
	c.hold()
	for i := from; i < to; i++ {
		v := &c.each[i-from]
		f.quantiles(v.q, i)
		clear(v.z)
		copy(v.z[:f.n], f.rowY(f.ybar, i))
		v.row.load(v.z, v.q)
	}
	c.adjoint()
	rate, step := f.batch.rate, f.batch.epoch
	for i := from; i < to; i++ {
		v := &c.each[i-from]
		r := &v.row
		// F̄' = b'∘(λ - Σb'λ); R̄'_l = e^{R'_l} Σ_{j>=l} q̄'_j.
		tangent(r.lam, r.b)
		for j, b := range r.b {
			v.g[j] = float64(b * r.lam[j])
		}
		lo, hi := i*f.m, (i+1)*f.m
		adam.Step(f.f1[lo:hi], v.g, f.momF1.mu[lo:hi], f.momF1.nu[lo:hi], rate, step)
		r.rowTotals(v.g, r.sums)
		tail := 0.0
		for l := f.m - 1; l >= 0; l-- {
			tail += v.g[l]
			v.e[l] = float64(tail * elem.Exp(f.r1[lo+l]))
		}
		adam.Step(f.r1[lo:hi], v.e, f.momR1.mu[lo:hi], f.momR1.nu[lo:hi], rate, step)
		confine(f.r1[lo:hi], f.shortest1, f.longest1)
	}
}

// visitRows makes the steps of T_i for the rows of a piece, and leaves the gradient at
// (UV)_i in units of the whole loss.
func (f *qmfqFit) visitRows(worker, piece int) {
	from, to := f.piece(piece)
	f.visitMaps(&f.work[worker], from, to)
	for i := from; i < to; i++ {
		part, wbar := f.part(i), f.rowWbar(i)
		for j := range wbar {
			wbar[j] *= part
		}
	}
}

// project deflates all rows and projects them. Where it is interrupted the factors stay
// as they were.
func (f *qmfqFit) project() error {
	f.pool.Do(f.pieces(f.d), f.deflates)
	if err := f.pool.Err(); err != nil {
		return err
	}
	err := f.projector.forward(f.y, f.from)
	if end := f.pool.Err(); end != nil {
		return end
	}
	r := f.projector.result()
	copy(f.whole.u, r.u)
	copy(f.whole.v, r.v)
	f.u, f.v = f.whole.u, f.whole.v
	return err
}

// run makes the epochs that are not done. A pass sees the loss of the state that
// its steps start from, so entry e of the histories is taken in epoch e+1.
func (f *qmfqFit) run() error {
	for e := f.done; e < f.epochs && !f.judge.over(e-1); e++ {
		if err := f.pool.Err(); err != nil {
			return stoppedAt(e, err)
		}
		f.batch.rate, f.batch.epoch = f.learningRate, e+1
		if f.schedule == ScheduleCosine {
			f.batch.rate *= cosine(float64(e) / float64(f.epochs))
		}
		if err := f.project(); err != nil {
			return stoppedAt(e, err)
		}
		copyAll(f.before, f.now)
		f.pool.Do(f.pieces(f.d), f.visits)
		f.projector.backward(f.wbar, f.ybar)
		f.pool.Do(f.pieces(f.d), f.back)
		if err := f.pool.Err(); err != nil {
			return stoppedAt(e, err)
		}
		if e > 0 {
			f.history = append(f.history, f.meanLoss())
		}
		stop := f.note(e)
		f.done = e + 1
		if err := f.course.epoch(e+1, f.epochs, f.history[len(f.history)-1]); err != nil {
			return stoppedAt(e+1, err)
		}
		if f.due(e+1, stop || e+1 == f.epochs) {
			if err := f.checkpoint(e + 1); err != nil {
				return stoppedAt(e+1, err)
			}
		}
	}
	return nil
}

// note takes the losses after an epoch, whose state is in before, and keeps it
// where it is the best on the held-out cells.
func (f *qmfqFit) note(epoch int) (stop bool) {
	better, stop := f.see(epoch, 0)
	if better {
		f.best, f.before = f.before, f.best
	}
	return stop
}

func copyAll(to, from [][]float64) {
	for i := range to {
		copy(to[i], from[i])
	}
}

// start fills the maps and the factors that projections start from.
func (f *qmfqFit) start() error {
	var err error
	if f.qmfFit.config.start == StartUniform && !f.given.has(kInit) {
		err = f.begin()
		f.keep = nil // of a fit without projection
		f.validationHistory = f.validationHistory[:0]
		copy(f.from.u, f.u)
		copy(f.from.v, f.v)
		for i := range f.r1 {
			f.r1[i] = -elem.Log(float64(f.n))
		}
	} else {
		err = f.startFromQMF()
	}
	copy(f.whole.u, f.from.u)
	copy(f.whole.v, f.from.v)
	f.u, f.v = f.whole.u, f.whole.v
	if err == nil {
		err = f.project()
	}
	if err == nil {
		f.evaluateAll()
		err = f.pool.Err()
	}
	if err != nil {
		return stoppedAt(0, err)
	}
	f.history = append(make([]float64, 0, min(f.epochs, 1000)+2), f.meanLoss())
	return nil
}

// startFromQMF takes maps and factors of a QMF fit, at its best epoch on held-out
// cells, and fits T'(X) to its UV.
func (f *qmfqFit) startFromQMF() error {
	c := *f.config
	c.epochs, c.save, c.patience, c.batchRows = startEpochs, nil, 0, qmfDefaults().batchRows
	c.learningRate, c.schedule = qmfDefaults().learningRate, ScheduleCosine
	q := newQMFFit(f.cells, f.k, &c, f.pool)
	q.restart = f.restart
	q.source = random.Split(c.seed+uint64(f.restart), 1)
	q.course = f.course
	err := q.begin()
	if err == nil {
		err = f.course.enter(PhaseQMF)
		q.course = f.course.within(0, 1)
	}
	for e := 0; err == nil && e < c.epochs; e++ {
		_, err = q.epoch(e)
	}
	if q.keep != nil {
		q.restore()
	}
	copy(f.f, q.f)
	copy(f.inc, q.inc)
	copy(f.from.u, q.u)
	copy(f.from.v, q.v)
	if err == nil {
		err = f.course.enter(PhaseMaps)
	}
	if err == nil {
		err = f.course.rows(f.pool, f.d, func(worker, i int) { f.calibrate(&f.work1[worker].each[0], i) })
	}
	return err
}

// calibrate fits the increments of q'_i to (UV)_i by EM steps at the plan of X_i
// onto even weights: T' ≈ UV.
func (f *qmfqFit) calibrate(v *deflator, i int) {
	r := &v.row
	r.solve(f.tolerance, f.maxIterations, f.prepare(v, i))
	goal := f.rowY(f.y, i) // not yet in use
	f.from.reconstruct(goal, i)
	sees := func(j int) bool { return v.observed == nil || v.observed[j] }
	lo, hi := math.Inf(1), math.Inf(-1)
	for j, w := range goal[:f.n] {
		if sees(j) {
			lo, hi = min(lo, w), max(hi, w)
		}
	}
	inc := v.g
	for l := range inc {
		inc[l] = (hi - lo) / float64(f.m)
	}
	inc[0] = max(lo, floorStart*hi)
	low := unitDeflation * hi
	for l := range inc {
		inc[l] = max(inc[l], low)
	}
	num, den := r.rho, v.e
	clear(r.gx)
	for j := range r.gx[:f.n] {
		if sees(j) {
			r.gx[j] = 1
		}
	}
	r.columns(den, r.gx)
	tail := 0.0
	for l := f.m - 1; l >= 0; l-- {
		tail += float64(den[l] * r.w[l])
		den[l] = tail
	}
	for range calibration {
		cumulate(v.q, inc)
		r.average(v.t, v.q)
		for j := range r.gx[:f.n] {
			if sees(j) {
				r.gx[j] = goal[j] / max(v.t[j], low)
			}
		}
		r.columns(num, r.gx)
		tail := 0.0
		for l := f.m - 1; l >= 0; l-- {
			tail += float64(num[l] * r.w[l])
			inc[l] = max(inc[l]*(tail/den[l]), low)
		}
	}
	for l, d := range inc {
		f.r1[i*f.m+l] = elem.Log(d)
	}
	clear(goal)
}

// model projects once more and hands the fit over. Where the context has ended, before
// that or while it does, that takes too long: UV is that of the last projection then, and
// under validation the state after the last epoch, which no projection has judged, is
// left out.
func (f *qmfqFit) model() *QMFQ {
	on := func() bool { return f.pool.Err() == nil }
	if on() {
		f.project()
	}
	f.history = f.history[:min(len(f.history), f.done)]
	if f.held != nil && on() {
		if f.evaluateAll(); on() {
			f.history = append(f.history, f.meanLoss())
			copyAll(f.before, f.now)
			f.note(f.done)
		}
	}
	judged := len(f.validationHistory) > 0
	if judged {
		if copyAll(f.now, f.best); on() {
			f.project()
		}
	}
	q := &QMFQ{inflate: make([]*Map, f.d), deflate: make([]*Map, f.d), projection: f.projection}
	t, held := f.maps()
	t.History, t.Validation = f.history, f.validationHistory
	if judged {
		t.Best = f.judge.bestEpoch
		t.History[t.Best] = f.meanLoss()
	} else {
		t.History, t.Best = append(t.History, f.meanLoss()), f.done
		if f.held != nil {
			t.Validation = append(t.Validation, held)
		}
	}
	q.Factorisation = t.Factorisation
	f.pool.Bind(nil)
	defer f.pool.Bind(f.course.ctx)
	f.pool.Do(f.d, func(worker, i int) {
		v := &f.work1[worker].each[0]
		f.prepare(v, i)
		f.quantiles(v.q, i)
		copy(v.row.h, f.rowOf(f.h1, i))
		q.deflate[i] = v.row.asMap(v.q)
		q.inflate[i] = t.mapOf(&v.row, i)
	})
	for i := range f.d {
		if o := f.rel1[i]; o.passes > 0 && !o.converged {
			q.Warnings = append(q.Warnings, o.err(i, f.config))
		}
	}
	t.Warnings = q.Warnings
	q.inflated = *t
	return q
}

// Inflate returns T_i, from the scale of (UV)_i to that of feature i.
func (q *QMFQ) Inflate(i int) (*Map, error) { return pick(q.inflate, i) }

// Deflate returns T'_i, from the scale of feature i to that of (UV)_i.
func (q *QMFQ) Deflate(i int) (*Map, error) { return pick(q.deflate, i) }

func pick(maps []*Map, i int) (*Map, error) {
	if uint(i) >= uint(len(maps)) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(len(maps)-1)}
	}
	return maps[i], nil
}

// Normalize returns T'(x) for new samples x, d × n', finite; after
// [WithMissingValues] a NaN cell is missing and stays so. Cost: d n' maps.
func (q *QMFQ) Normalize(x Mat) (Mat, error) {
	if err := x.check("x"); err != nil {
		return Mat{}, err
	}
	if x.Rows != len(q.deflate) {
		return Mat{}, &ShapeError{What: "x", Got: x.size(), Want: itoa(len(q.deflate)) + " rows"}
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v-v != 0 && !(v != v && q.inflated.missing) {
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

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' at which the divergence of x from T(U V') is least. A column is
// deflated and projected on U, and from there placed by T: as in
// [QMF.Transform], of whose starts the projection is one more. Values, missing
// cells and errors are as there.
//
// The projection is not the end of it, because it is not what the fit does: there
// a number of updates of both factors stops short of the least divergence, which
// a column projected by itself reaches. Placed by T, training columns score a few
// hundredths below their loss (docs/measurements/qmfq.md).
//
// Under TruncatedSVD the two projections are one, and there is no such step: the
// deflated column is projected on U by least squares.
//
// Cost: that of [QMF.Transform], d n' maps and that of [NMF.Transform].
func (q *QMFQ) Transform(ctx context.Context, x Mat) (Mat, error) {
	v, _, err := q.place(ctx, x)
	return v, err
}

// Score returns the mean divergence of the observed cells of x, d × n', from
// T(U V') where V' is Transform(x). For the columns of the training matrix it is
// at most what Loss is, as in [QMF.Score]. Cost and errors are those of Transform.
func (q *QMFQ) Score(ctx context.Context, x Mat) (float64, error) {
	_, score, err := q.place(ctx, x)
	return score, err
}

func (q *QMFQ) place(ctx context.Context, x Mat) (Mat, float64, error) {
	t := &q.inflated
	visible, err := q.bounds().checkColumns(x, q.U.Rows)
	if err != nil {
		return Mat{}, 0, err
	}
	if q.projection.kind == projectionSVD {
		norm := make([]float64, q.U.Cols)
		for i := range q.U.Rows {
			for c, w := range q.U.Row(i) {
				norm[c] += float64(w * w)
			}
		}
		return placeColumns(ctx, x, q.U.Cols, visible, func() placer { return &svdPlacer{q, norm} })
	}
	base, x, err := newQMFBase(ctx, t, x)
	if err != nil {
		return Mat{}, 0, err
	}
	loss := KL
	if q.projection.kind == projectionFrobenius {
		loss = Frobenius
	}
	projection := newNMFBase(&NMF{Factorisation{U: q.U, V: q.V, loss: loss}})
	return base.placeAll(ctx, x, visible, func() placer {
		p := &qmfqPlacer{qmfPlacer: newQMFPlacer(base), projection: newNMFPlacer(projection), deflate: q.deflate, y: make([]float64, x.Rows)}
		p.own = make([]float64, q.U.Cols)
		return p
	})
}

// qmfqPlacer places a column as a QMF does, from its projection too.
type qmfqPlacer struct {
	*qmfPlacer
	projection *nmfPlacer
	deflate    []*Map
	y          []float64 // the column, deflated
}

func (p *qmfqPlacer) place(ctx context.Context, v, x []float64) float64 {
	for i, f := range p.deflate {
		p.y[i] = f.At(math.Ldexp(x[i], p.exponent(i)))
	}
	p.projection.place(ctx, p.own, p.y)
	return p.qmfPlacer.place(ctx, v, x)
}

// svdPlacer projects a deflated column on U, whose columns are orthogonal, by
// least squares: v = diag(norm)⁻¹ Uᵀ y, 0 for a component without weight.
type svdPlacer struct {
	*QMFQ
	norm []float64 // of the columns of U, squared
}

func (p *svdPlacer) place(_ context.Context, v, x []float64) float64 {
	clear(v)
	for i, f := range p.deflate {
		y := f.At(x[i])
		for c, w := range p.U.Row(i) {
			v[c] += float64(w * y)
		}
	}
	for c, norm := range p.norm {
		if norm > 0 {
			v[c] /= norm
		}
	}
	loss := 0.0
	for i, f := range p.inflate {
		loss += p.inflated.loss.divergence(x[i], f.At(dot(p.U.Row(i), v)))
	}
	return loss
}

// Reconstruct returns T(UV) = T(Π_k(T'(X))), d × n.
func (q *QMFQ) Reconstruct() Mat { return q.inflated.Reconstruct() }

func (q *QMFQ) reconstruct(ctx context.Context) (Mat, error) { return q.inflated.reconstruct(ctx) }

// Loss returns the mean divergence of x, d × n, from Reconstruct(), under the
// loss that was fitted. Where the fit was WithMissingValues, NaN cells are left
// out.
func (q *QMFQ) Loss(x Mat) (float64, error) { return q.inflated.Loss(x) }
