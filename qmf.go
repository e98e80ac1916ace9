package quantmf

// This file holds quantile matrix factorisation (paper §3.2, Eq. minUV),
//
//	min over Ũ, Ṽ, F, q of  Σ_i Δ(X_i, T_i((UV)_i)),
//	U = exp Ũ,  V = exp Ṽ,  b_i = softmax F_i,  T_i = T_{ε,b_i,q_i},
//
// and the visit of a row, which is all that an epoch does:
//
//	w = U_i V; squash; b; solve, warm; a step on q; T = M q; loss and dΔ/dT;
//	backward to w, b; Adam on Ũ_i and F_i. Once a batch: Ṽ from the batch's w̄.
//
// # The step on q
//
// With the plan fixed the model of a row is linear in the increments D of q:
// T_j = Σ_l tail_jl D_l, tail_jl = Σ_{l'>=l} M_jl' >= 0. So the EM (or MM) step
//
//	D_l ← (D_l num_l + c_l D⁰_l)/(den_l + c_l + μ),  num_l = Σ_j tail_jl x_j/T_j,  den_l = Σ_j tail_jl
//
// lowers the divergence at once and takes the place of gradient steps on q.
// Free ends: l = 0, ..., m-1 with D_0 = q_1 and μ = 0. Pinned ends: D_0 = min x
// stays, and μ keeps Σ_{l>0} D_l = max x - min x. c_l = λ den_l/n is the
// shrinkage towards the increments D⁰ of an affine map of w (WithShrinkage).
// Under StartUniform q takes Adam steps on the logarithms instead, as in the
// paper.
//
// Of signed data, which only the Frobenius norm takes, a row is seen about its lowest
// value (units.go), and q_1 is free in sign. With c = min(q_1, min x) all of x - c,
// T - c and D_l, l > 0, are non-negative, so the step on these is the one above of
// x - c and T - c; then q_1 goes where the squares are least, to the mean of
// x_j - Σ_{l>0} tail_jl D_l, with shrinkage to the mean of this and of λ/n of the affine
// map's. Neither raises the loss without shrinkage, and nothing depends on where the
// row lies. Among Adam's steps that of q_1 is on q_1 itself.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/adam"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// QMF is a fitted X ≈ T(UV). It is not changed by its methods and may be used by
// several goroutines at once.
type QMF struct {
	Factorisation
	// Quantiles and Weights (d × m) hold q_i, non-decreasing, and b_i, of sum 1.
	Quantiles, Weights Mat
	Start              Start   // where the fit started, StartAuto after WithInit
	Shrinkage          float64 // what it was told, or what it chose (start.go)

	potentials Mat // h_i of the last solve, about center
	center     []float64
	squash     []squashed
	marginal   []float64
	epsilon    float64
}

func qmfDefaults() config {
	return config{maps: true, epsilon: 0.02, squash: SquashLogisticUnit, tolerance: 1e-9, maxIterations: 3000, levels: 8, epochs: 20, seed: 1, learningRate: 0.06, batchRows: 32, loss: KL, restarts: 1, shrinkage: -1}
}

// FitQMF fits x, d features × n samples, by T(UV) of rank k >= 1, one increasing
// map T_i a feature. x is finite, of magnitude at most 1e60, and non-negative; under
// [WithLoss]([Frobenius]) it may have any sign.
//
// x may be in any unit: where its largest value is beyond 2^±100 it is fitted in units
// of a power of two, to which factors then belong, and a row that lies more than 2^100
// below the largest in one of its own. A constant added to a row of a signed x is added to
// its quantiles, and changes no more.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 20 epochs, Adam at 0.06
// falling to 0 by cosine, batches of 32 rows, free ends, start and shrinkage chosen
// by the data (start.go), no penalty, seed 1, one start, no patience, no
// validation. The first and last entries of History are exact, and all are where
// the batch is the whole matrix or under WithValidation and WithPatience; the others
// are means over rows as they were visited. They are what predicted unseen cells best over several kinds of
// data (docs/measurements/defaults.md); to fit what is seen more closely, take more epochs, no
// shrinkage, a smaller ε. Errors: [*DataError], [*ShapeError], [*OptionError]; under
// [WithStrict] a [*ConvergenceError]; when ctx ends or a progress function fails,
// the model so far with an error that wraps it.
//
// Cost of an epoch: d solves of about 4 passes (8nm flops and m³/3 each), their
// backward (40nm), and 6dnk flops, half as much again under WithValidation and
// WithPatience, which evaluate the model after every epoch. Memory beside x:
// 5(dk + kn + dm) numbers, up to eight rows at work a worker, n(m+20) each, and the
// model; while it starts 18kn, and dn for normal scores; under WithValidation a copy
// of x, its mask and one of the best epoch; where x is signed or beyond 2^±100 another
// copy of it. The choice of start and shrinkage takes two NMFs and 36 epochs of up to
// 512 rows, and the memory of two fits of so many; told both, a fit has none of it.
func FitQMF(ctx context.Context, x Mat, rank int, opts ...FitOption) (*QMF, error) {
	c := qmfDefaults()
	if err := parse(forQMF, &c, opts); err != nil {
		return nil, err
	}
	visible, err := checkFit(x, rank, &c)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(x.Rows, x.Cols); err != nil {
		return nil, err
	}
	p := pool.New(c.workers, x.Rows)
	defer p.Close()
	p.Bind(ctx)
	var best *QMF
	past, err := c.reopen(kindQMF, x, rank)
	if err != nil {
		return nil, err
	}
	if m := new(QMF); len(past.best) > 0 {
		if err := past.bestModel(m, kindQMF, &c, x, rank); err != nil {
			return nil, err
		}
		best = m
	}
	for restart := range c.restarts {
		if past.from != nil && restart < past.from.restart {
			continue
		}
		f := newQMFFit(visible, rank, &c, p)
		f.restart, f.bestSoFar, f.data = restart, past.best, past.data
		f.course = newCourse(ctx, &c, x.Rows)
		f.source = random.Split(c.seed+uint64(restart), 1)
		stop := false
		if past.from != nil && restart == past.from.restart {
			if err := f.resumeFrom(past.state, past.from); err != nil {
				return nil, err
			}
			stop = f.judge.over(f.done - f.lag)
		} else if err = f.begin(); err != nil && best != nil {
			return best, err
		}
		for epoch := f.done; epoch < c.epochs && !stop && err == nil; epoch++ {
			stop, err = f.epoch(epoch)
		}
		if err != nil && c.discard {
			return nil, err
		}
		m := f.model()
		if end := p.Err(); end != nil && c.discard {
			return nil, stoppedAt(f.done, end)
		}
		if best == nil || m.objective(c.penalty) < best.objective(c.penalty) {
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

// outward brings a model of x' to the units of x.
func (q *QMF) outward(u *units) *QMF {
	u.outward(q.Quantiles)
	u.losses(q.loss, q.History)
	u.losses(q.loss, q.Validation)
	return q
}

// objective is what a fit is chosen by: its loss on held-out cells, else that on
// the visible ones with the penalty.
func (q *QMF) objective(penalty float64) float64 {
	loss := judged(q.History, q.Validation, q.Best)
	if q.Validation == nil && penalty > 0 {
		for _, f := range []Mat{q.U, q.V} {
			logs := make([]float64, len(f.Data))
			kernel.Log(logs, f.Data)
			loss += float64(penalty / 2 * meanSquare(logs))
		}
	}
	return loss
}

func meanSquare(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(x*x) / float64(len(v))
	}
	return s
}

// checkQMF reports options that make no model of d × n.
func (c *config) checkQMF(d, n int) error {
	if tooManyCells(max(d, n), c.levels) {
		return &OptionError{Option: kLevels.String(), Value: itoa(c.levels), Bound: "the maps of a " + itoa(d) + "×" + itoa(n) + " matrix would need too much memory"}
	}
	if c.levels < 2 {
		return &OptionError{Option: kLevels.String(), Value: itoa(c.levels), Bound: "a model needs at least 2"}
	}
	if !(c.epsilon > 0) {
		return &OptionError{Option: kEpsilon.String(), Value: ftoa(c.epsilon), Bound: "a model needs a positive one: at 0 nothing has a gradient"}
	}
	if c.start == StartSVD {
		return &OptionError{Option: kStart.String(), Value: c.start.String(), Bound: "only FitNMF starts from it"}
	}
	if c.given.has(kShrinkage) && c.shrinkage > 0 {
		if c.ends == EndsPinned {
			return &OptionError{Option: kShrinkage.String(), Value: ftoa(c.shrinkage), Bound: "needs EndsFree"}
		}
		if c.start == StartUniform {
			return &OptionError{Option: kShrinkage.String(), Value: ftoa(c.shrinkage), Bound: "StartUniform has no EM step to shrink"}
		}
	}
	return nil
}

// qmfFit is a fit under way.
type qmfFit struct {
	*config
	*cells
	m    int
	pool *pool.Pool
	*factors
	logU, logV         []float64 // Ũ, Ṽ; u and v hold their exponentials
	momU, momV         moment
	f                  []float64 // d × m, b = softmax
	momF               moment
	inc                []float64 // d × m increments of q, the first q_1
	r                  []float64 // their logarithms, under Adam
	momR               moment
	state              []warm
	low, high, average []float64 // of each row of x
	scale              float64   // the mean of average^β: the unit of the whole loss
	batch              batch
	stepsV             int
	source             random.Source
	order              []int
	wbar               []float64 // batch × np: the gradients at w of the batch
	ubatch             []float64 // batch × k: U as those rows saw it, times row mean over mean
	rowLosses, rowHeld []float64 // of each row, at its last visit
	work               []crew
	history            []float64
	validationHistory  []float64
	restart            int
	origin             Start     // where this fit starts
	lambda             float64   // the shrinkage
	bestSoFar          []byte    // a file of the best of the restarts before
	data               [2]uint64 // fingerprints of x and given factors
	judge              watch
	farthest           float64 // bound of log factors
	lag                int     // epochs by which the histories are behind the fit
	exact              bool    // every epoch ends with all losses of the model as it stands
	keep               *qmfState
	done               int // epochs
	course             course
	gradV              []float64 // k × np: the gradient at Ṽ
}

// batch is what the pieces of a batch need to know; the two functions are made
// once, so that an epoch allocates nothing.
type batch struct {
	rows         []int // of x
	rate         float64
	epoch        int // this one counted
	visit, stepV func(worker, piece int)
	evaluate     func(worker, piece int)
}

// moment holds Adam's two moments.
type moment struct{ mu, nu []float64 }

func newMoment(n int) moment { return moment{make([]float64, n), make([]float64, n)} }

// crew is the workspace of one worker: a visitor for each of the rows that it works
// at abreast.
type crew struct {
	visitors []visitor
	slots    []int // in the batch, of the rows at hand
	abreast
}

// visitor is the workspace of one row at work.
type visitor struct {
	row         row
	x, w, t, g  []float64 // np
	s, about    []float64 // np; s is 1 as it is made, for ratios
	q, num, den []float64 // m
	observed    []bool    // of the row at hand; nil: all
	mask        []bool
	gu          []float64 // k
}

func newQMFFit(visible *cells, rank int, c *config, p *pool.Pool) *qmfFit {
	d, n, m := visible.x.Rows, visible.x.Cols, c.levels
	f := &qmfFit{config: c, cells: visible, m: m, pool: p, factors: newFactors(d, n, rank), judge: watch{patience: c.patience}, origin: c.start, lambda: c.shrinkage,
		course: newCourse(context.Background(), c, d)}
	size := min(c.batchRows, d)
	if c.lagging(d) {
		f.lag = 1
	}
	f.farthest = farthest(c.squash, rank)
	f.exact = f.held != nil || f.lag == 0 && c.patience > 0
	f.logU, f.momU = make([]float64, d*rank), newMoment(d*rank)
	f.logV, f.momV = make([]float64, rank*f.np), newMoment(rank*f.np)
	f.f, f.momF = make([]float64, d*m), newMoment(d*m)
	f.inc = make([]float64, d*m)
	if c.start == StartUniform {
		f.r, f.momR = make([]float64, d*m), newMoment(d*m)
	}
	f.state = make([]warm, d)
	for i := range f.state {
		f.state[i] = newWarm(m)
	}
	f.low, f.high, f.average = make([]float64, d), make([]float64, d), make([]float64, d)
	for i := range d {
		lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
		for _, v := range visible.x.Row(i) {
			if v == v {
				lo, hi = min(lo, v), max(hi, v)
				sum += v / float64(visible.rows[i])
			}
		}
		f.low[i], f.high[i], f.average[i] = lo, hi, sum
		f.scale += f.share(i) * f.unit(i) / float64(d)
	}
	f.order = make([]int, d)
	for i := range f.order {
		f.order[i] = i
	}
	f.wbar, f.ubatch, f.rowLosses = make([]float64, size*f.np), make([]float64, size*rank), make([]float64, d)
	f.rowHeld = make([]float64, d)
	if f.held != nil {
		f.validationHistory = make([]float64, 0, min(f.epochs, 1000)+2)
	}
	f.gradV = make([]float64, rank*f.np)
	f.work = make([]crew, p.Workers())
	for w := range f.work {
		f.work[w] = f.newCrew()
	}
	f.batch.visit, f.batch.stepV, f.batch.evaluate = f.visit, f.stepRowV, f.evaluate
	return f
}

// farthest bounds the logarithms of factors.
func farthest(s Squash, rank int) float64 {
	if s == SquashNone { // what is transported is UV itself
		return elem.Log(maxPlace/float64(rank)) / 2
	}
	return farthestFactor
}

func (f *qmfFit) newCrew() crew {
	// As many as a batch has for each worker; it may be less than are worth it.
	share := (min(f.batchRows, f.d) + f.pool.Workers() - 1) / f.pool.Workers()
	rows := min(rowsAbreast(f.n, f.m), share)
	if rows < fewest {
		rows = 1
	}
	c := crew{visitors: make([]visitor, rows), slots: make([]int, 0, rows), abreast: newAbreast(rows, f.m)}
	for i := range c.visitors {
		v := &c.visitors[i]
		v.row.resize(f.n, f.m)
		v.row.reserve()
		v.row.setTargets(nil)
		v.row.setWeights(nil, nil)
		for _, s := range []*[]float64{&v.x, &v.w, &v.t, &v.g, &v.s, &v.about} {
			*s = make([]float64, f.np)
		}
		for _, s := range []*[]float64{&v.q, &v.num, &v.den} {
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
func (f *qmfFit) pieces(rows int) int { return f.pool.Pieces(rows, len(f.work[0].visitors)) }

// piece returns the slots of a piece of the batch.
func (f *qmfFit) piece(p int) (from, to int) {
	rows := len(f.batch.rows)
	return pool.Cut(rows, f.pieces(rows), p)
}

func (f *qmfFit) rowF(i int) []float64   { return f.f[i*f.m : (i+1)*f.m] }
func (f *qmfFit) rowInc(i int) []float64 { return f.inc[i*f.m : (i+1)*f.m] }
func (f *qmfFit) constant(i int) bool    { return f.low[i] == f.high[i] }

// floors: of T in x/T, and of the increments, in units of the row. Those of signed data
// also have a ceiling: where a level has hardly a share of the row left, no length of
// its increment is too long for the squares.
const (
	floorT         = 1e-12
	floorIncrement = 1e-12
	floorStart     = 1e-3
	mostIncrement  = 1e12
)

// place loads row i into the visitor, and solves its transport.
func (f *qmfFit) place(v *visitor, i int) outcome {
	f.load(v, i)
	return v.row.solve(f.tolerance, f.maxIterations, &f.state[i])
}

// load loads row i into the visitor: w = U_i V, and b.
func (f *qmfFit) load(v *visitor, i int) {
	v.observed = f.cells.load(v.x, v.mask, i)
	kernel.Combine(v.w, f.rowU(i), f.v)
	r := &v.row
	f.cells.measure(r, v.observed, i)
	softmax(r.b, f.rowF(i))
	r.setSamples(v.w[:f.n], f.squash)
	r.setEpsilon(f.epsilon)
}

// placeAll is place for the rows of the slots, but for constant ones.
func (f *qmfFit) placeAll(c *crew, from, to int) {
	c.clear()
	c.slots = c.slots[:0]
	for slot := from; slot < to; slot++ {
		if i := f.batch.rows[slot]; !f.constant(i) {
			v := &c.visitors[len(c.slots)]
			f.load(v, i)
			cumulate(v.q, f.rowInc(i))
			v.row.ask(v.t, v.q)
			c.take(&v.row, &f.state[i])
			c.slots = append(c.slots, slot)
		}
	}
	c.solve(f.tolerance, f.maxIterations)
}

// measure gives row i its weights: hidden cells have no part in the measure.
func (s *cells) measure(r *row, observed []bool, i int) {
	r.squash.observed = observed
	for j, o := range observed {
		r.a[j] = 0
		if o {
			r.a[j] = 1 / float64(s.rows[i])
		}
	}
}

func softmax(b, f []float64) {
	top := f[0]
	for _, v := range f {
		top = max(top, v)
	}
	kernel.Shift(b, f, top)
	kernel.Exp(b, b)
	sum := 0.0
	for j, v := range b {
		b[j] = max(v, 1e-300)
		sum += b[j]
	}
	for j := range b {
		b[j] /= sum
	}
}

// fitted fills v.t with T = M q for the increments of row i.
func (f *qmfFit) fitted(v *visitor, i int) {
	cumulate(v.q, f.rowInc(i))
	if f.constant(i) {
		for j := range v.t {
			v.t[j] = f.low[i]
		}
		return
	}
	v.row.average(v.t, v.q)
}

func cumulate(q, inc []float64) {
	s := 0.0
	for j, d := range inc {
		s += d
		q[j] = s
	}
}

// lowest is what T of row i does not fall below where it divides: of signed data, under
// the Frobenius norm, nothing is divided by it.
func (f *qmfFit) lowest(i int) float64 {
	if f.signed {
		return math.Inf(-1)
	}
	return max(floorT*f.average[i], f.loss.least())
}

// ratios fills v.g and v.s with x T^{β-2} and T^{β-1}, 0 where a cell is hidden. Where
// v.s is 1 for every row it stays as it was made.
func (f *qmfFit) ratios(v *visitor, i int) {
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
func (f *qmfFit) rowLoss(v *visitor, i int) float64 {
	f.ratios(v, i)
	return f.ratiosLoss(v, i)
}

// ratiosLoss is the row's sum of divergences after ratios.
func (f *qmfFit) ratiosLoss(v *visitor, i int) float64 {
	return f.loss.sum(v.x[:f.n], v.t, v.g, v.observed, f.lowest(i))
}

// prior fills d0 with the increments of the affine map of w that shrinkage
// pulls towards: T ≈ max(α+βw, 0), of signed data α+βw, β >= 0, by least squares of x on w, taken at
// each level's mean of w under the plan. den holds Σ_j E_jl/Z_j of the visible cells.
func (f *qmfFit) prior(v *visitor, i int, d0, den []float64) {
	r := &v.row
	at := r.squash
	if at.kind == SquashNone {
		at.moments(v.w[:f.n], r.v)
	}
	clear(d0)
	beta := 0.0
	if at.std > 0 {
		// z-scores of w, which no magnitude of w can overflow, and x about its mean.
		z, x := r.gx, v.about
		kernel.Shift(x, v.w, at.ref)
		kernel.Shift(x, x, at.shift)
		clear(x[f.n:])
		for j, o := range v.observed {
			if !o {
				x[j] = 0
			}
		}
		kernel.Combine(z, []float64{1 / at.std}, x)
		kernel.Shift(x, v.x, f.average[i])
		var cov, vw [1]float64
		kernel.Dots(cov[:], z, x)
		kernel.Dots(vw[:], z, z)
		beta = max(cov[0]/vw[0], 0)
		r.columns(d0, z)
	}
	last := 0.0
	for l := range d0 {
		at := 0.0
		if den[l] > 0 {
			at = d0[l] / den[l]
		}
		q := f.average[i] + float64(beta*at)
		if l > 0 || !f.signed {
			q = max(q, last)
		}
		d0[l], last = q-last, q
	}
}

// em makes one multiplicative step on the increments of row i; v.g and v.s are
// those of rowLoss at them.
func (f *qmfFit) em(v *visitor, i int) {
	r, m := &v.row, f.m
	inc := f.rowInc(i)
	r.columns(v.den, v.s)
	d0, shares := r.rho, v.den
	if f.lambda > 0 || f.signed {
		if f.loss != KL {
			shares = v.q
			clear(r.gx)
			for j := range r.gx[:f.n] {
				if v.observed == nil || v.observed[j] {
					r.gx[j] = 1
				}
			}
			r.columns(shares, r.gx)
		}
		if f.lambda > 0 {
			f.prior(v, i, d0, shares)
		}
	}
	r.columns(v.num, v.g)
	num, den := 0.0, 0.0
	for l := m - 1; l >= 0; l-- {
		num += float64(v.num[l] * r.w[l])
		den += float64(v.den[l] * r.w[l])
		v.num[l], v.den[l] = num, den
	}
	seen, first := float64(f.cells.rows[i]), 0
	if f.signed && f.ends == EndsFree {
		first = 1
		c := min(inc[0], f.low[i])
		tail := 0.0
		for l := m - 1; l >= 0; l-- {
			tail += float64(shares[l] * r.w[l])
			shares[l] = tail
			v.num[l], v.den[l] = max(v.num[l]-float64(c*tail), 0), max(v.den[l]-float64(c*tail), 0)
		}
	}
	low := floorIncrement * max(f.high[i]-f.low[i], f.average[i]*1e-3)
	if f.ends == EndsFree {
		for l := first; l < m; l++ {
			if f.lambda == 0 {
				inc[l] = max(inc[l]*f.loss.step(v.num[l], v.den[l]), low)
				continue
			}
			c := f.lambda * v.den[l] / seen
			inc[l] = max((float64(inc[l]*v.num[l])+float64(c*d0[l]))/max(v.den[l]+c, leastSum), low)
		}
		if first == 1 {
			q, high := f.average[i], mostIncrement*(f.high[i]-f.low[i])
			for l := 1; l < m; l++ {
				inc[l] = min(inc[l], high)
				q -= float64(inc[l] * (shares[l] / seen))
			}
			if f.lambda > 0 {
				more := f.lambda / seen
				q = (q + float64(more*d0[0])) / (1 + more)
			}
			inc[0] = q
		}
		return
	}
	span := f.high[i] - f.low[i]
	pinned(inc[1:], v.num[1:], v.den[1:], span, low)
}

// pinned makes the step D ← D num/(den+μ) with μ such that ΣD = span. With
// ν = μ + min den the sum falls in ν from +Inf at 0 to below span at Σ D num/span,
// so the root is unique; ν, not μ, is what keeps its digits where the root lies
// close to its end.
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
			next = middle(a, z)
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

// visit works a piece of the batch through.
func (f *qmfFit) visit(worker, piece int) {
	c := &f.work[worker]
	from, to := f.piece(piece)
	for slot := from; slot < to; slot++ {
		i := f.batch.rows[slot]
		part := f.part(i)
		for t, v := range f.rowU(i) {
			f.ubatch[slot*f.k+t] = v * part
		}
	}
	f.visitMaps(c, from, to)
	rate, step := f.batch.rate, f.batch.epoch
	for k, slot := range c.slots {
		// Ũ̄ = U∘(w̄Vᵀ).
		i, gu := f.batch.rows[slot], c.visitors[k].gu
		u := f.rowU(i)
		kernel.Dots(gu, f.v, f.rowWbar(slot))
		lo, hi := i*f.k, (i+1)*f.k
		pen := min(f.penalty/float64(f.k)/f.unit(i)/max(f.share(i), tinyScale), mostPenalty)
		for t := range gu {
			gu[t] = float64(gu[t]*u[t]) + float64(pen*f.logU[lo+t])
		}
		adam.Step(f.logU[lo:hi], gu, f.momU.mu[lo:hi], f.momU.nu[lo:hi], rate, step)
		confine(f.logU[lo:hi], -f.farthest, f.farthest)
		kernel.Exp(u, f.logU[lo:hi])
	}
}

func (f *qmfFit) rowWbar(slot int) []float64 { return f.wbar[slot*f.np : (slot+1)*f.np] }

// unit is what the loss of row i grows with; part is its share of the whole.
func (f *qmfFit) unit(i int) float64 {
	return max(f.loss.scale(max(f.average[i], tinyScale)), tinyScale)
}
func (f *qmfFit) part(i int) float64 { return f.share(i) * f.unit(i) / f.scale }

// visitMaps makes the steps of the rows of some slots on q and F, and fills their w̄
// with the gradient at w = (UV)_i, in units of the row's loss. Constant rows have none.
func (f *qmfFit) visitMaps(c *crew, from, to int) {
	for slot := from; slot < to; slot++ {
		if i := f.batch.rows[slot]; f.constant(i) {
			f.rowLosses[i] = 0
			clear(f.rowWbar(slot))
		}
	}
	f.placeAll(c, from, to)
	c.hold()
	for k, slot := range c.slots {
		v := &c.visitors[k]
		f.fitMap(v, f.batch.rows[slot])
		v.row.load(v.g, v.q)
	}
	c.adjoint()
	for k, slot := range c.slots {
		v, wbar := &c.visitors[k], f.rowWbar(slot)
		v.row.sampleAdjoint(v.g, v.q)
		f.stepMap(v, f.batch.rows[slot])
		clear(wbar[f.n:])
		copy(wbar[:f.n], v.row.gx)
		v.row.squash.backward(wbar[:f.n], v.row.xs, v.w)
	}
}

// fitMap takes T of row i, makes the EM step on q, and fills v.g with ∂Δ/∂T and v.q
// with the q that it belongs to.
func (f *qmfFit) fitMap(v *visitor, i int) {
	f.fitted(v, i)
	f.ratios(v, i)
	// Where all rows are one batch the loss before the steps is that of the model.
	whole := len(f.batch.rows) == f.d
	if whole {
		f.rowLosses[i] = f.ratiosLoss(v, i)
		f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i))
	}
	if f.r == nil {
		f.em(v, i)
		f.fitted(v, i)
		f.ratios(v, i)
	}
	if !whole && !f.exact {
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
func (f *qmfFit) cellUnit(i int) float64 { return 1 / max(f.average[i], tinyScale) }

// stepMap makes the steps of F_i, and of R_i.
func (f *qmfFit) stepMap(v *visitor, i int) {
	r := &v.row
	if f.r != nil {
		f.stepR(v, i, f.cellUnit(i))
	}
	// F̄ = b∘(λ - Σbλ).
	tangent(r.lam, r.b)
	for j, b := range r.b {
		v.num[j] = float64(b * r.lam[j])
	}
	lo, hi := i*f.m, (i+1)*f.m
	adam.Step(f.f[lo:hi], v.num, f.momF.mu[lo:hi], f.momF.nu[lo:hi], f.batch.rate, f.batch.epoch)
}

// stepR makes the paper's step on q: Adam on R, the logarithms of the increments (of
// signed data R_1 is q_1 over the row's mean; pinned: of their shares of the row's range, by softmax). r.sums holds N.
func (f *qmfFit) stepR(v *visitor, i int, unit float64) {
	r, m := &v.row, f.m
	rate, step := f.batch.rate, f.batch.epoch
	r.rowTotals(v.den, r.sums) // ∂q
	tail := 0.0
	for l := m - 1; l >= 0; l-- { // backward of the cumulative sum
		tail += v.den[l]
		v.den[l] = tail
	}
	inc := f.rowInc(i)
	lo, hi := i*m, (i+1)*m
	if f.ends == EndsFree {
		for l := range inc {
			d := inc[l]
			if l == 0 && f.signed {
				d = f.average[i]
			}
			v.den[l] *= d * unit
		}
		adam.Step(f.r[lo:hi], v.den, f.momR.mu[lo:hi], f.momR.nu[lo:hi], rate, step)
	} else {
		span := f.high[i] - f.low[i]
		mean := 0.0
		for l := 1; l < m; l++ {
			mean += float64(inc[l] / span * v.den[l])
		}
		v.den[0] = 0
		for l := 1; l < m; l++ {
			v.den[l] = float64(inc[l] * unit * (v.den[l] - mean))
		}
		adam.Step(f.r[lo:hi], v.den, f.momR.mu[lo:hi], f.momR.nu[lo:hi], rate, step)
	}
	confine(f.r[lo:hi], shortest, longest)
	f.incrementsFromR(i)
}

// What logarithms are held to, so that a rate beyond reason gives a bad fit and no
// overflow: those of increments of quantiles, and of factors.
// mostPenalty is the weight of a penalty, in units of the loss, beyond which nothing
// else counts and squares of it overflow.
const (
	shortest, longest = -690, 138
	farthestFactor    = 300
	mostPenalty       = 1e120
)

// lagging tells whether all rows are one batch and nothing else asks for the losses
// after an epoch: then they are those that the next one starts from.
func (c *config) lagging(d int) bool { return c.batchRows >= d && c.validation == 0 }

// confine holds l within bounds.
func confine(l []float64, low, high float64) {
	for i, v := range l {
		l[i] = min(max(v, low), high)
	}
}

func (f *qmfFit) incrementsFromR(i int) {
	inc, m := f.rowInc(i), f.m
	r := f.r[i*m : (i+1)*m]
	if f.ends == EndsFree {
		kernel.Exp(inc, r)
		if f.signed {
			inc[0] = r[0] * f.average[i]
		}
		return
	}
	softmax(inc[1:], r[1:])
	for l := 1; l < m; l++ {
		inc[l] *= f.high[i] - f.low[i]
	}
	inc[0] = f.low[i]
}

// epoch visits every row once, in a new random order.
func (f *qmfFit) epoch(e int) (stop bool, err error) {
	if err := f.pool.Err(); err != nil {
		return true, stoppedAt(e, err)
	}
	b := &f.batch
	b.rate, b.epoch = f.learningRate, e+1
	if f.schedule == ScheduleCosine {
		b.rate *= cosine(float64(e) / float64(f.epochs))
	}
	f.source.Shuffle(f.order)
	size := min(f.batchRows, f.d)
	penalty := f.regularity()
	for from := 0; from < f.d; from += size {
		b.rows = f.order[from:min(from+size, f.d)]
		f.pool.Do(f.pieces(len(b.rows)), b.visit)
		f.stepsV++
		f.pool.Do(f.k, b.stepV)
		if err := f.pool.Err(); err != nil {
			return true, stoppedAt(e, err)
		}
	}
	// As visited: of this epoch with batches; where all rows are one batch, of
	// the steps of the epoch before, whose loss it is exactly. What is judged, by
	// held-out cells or for patience, is evaluated.
	if f.exact {
		f.evaluateAll()
		if err := f.pool.Err(); err != nil {
			return true, stoppedAt(e, err)
		}
		penalty = f.regularity()
	}
	mean := f.meanLoss()
	f.done = e + 1
	if e >= f.lag {
		f.history = append(f.history, mean)
		stop = f.note(e+1-f.lag, penalty)
	}
	if err := f.course.epoch(e+1, f.epochs, mean); err != nil {
		return true, stoppedAt(e+1, err)
	}
	if f.due(e+1, stop || e+1 == f.epochs) {
		if err := f.checkpoint(e + 1); err != nil {
			return true, stoppedAt(e+1, err)
		}
	}
	return stop, nil
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

// stepRowV makes the batch's step of row t of Ṽ: Ṽ̄ = V∘Σ_i U_iᵀw̄_i, the rows of
// x in their order.
func (f *qmfFit) stepRowV(_, t int) {
	rows := len(f.batch.rows)
	pen := min(f.penalty*float64(rows)/float64(f.k*f.n)/f.scale, mostPenalty)
	lo, hi := t*f.np, (t+1)*f.np
	g, v, lv := f.gradV[lo:hi], f.v[lo:hi], f.logV[lo:hi]
	clear(g)
	for s := range rows {
		kernel.Accumulate(g, f.ubatch[s*f.k+t:s*f.k+t+1], f.wbar[s*f.np:(s+1)*f.np])
	}
	for j := range g[:f.n] {
		g[j] = float64(g[j]*v[j]) + float64(pen*lv[j])
	}
	adam.Step(lv[:f.n], g[:f.n], f.momV.mu[lo:hi], f.momV.nu[lo:hi], f.batch.rate, f.stepsV)
	confine(lv[:f.n], -f.farthest, f.farthest)
	kernel.Exp(v[:f.n], lv)
}

// qmfState is what a model is made of, kept of the best epoch.
type qmfState struct{ u, v, f, inc []float64 }

func (f *qmfFit) newState() *qmfState {
	return &qmfState{make([]float64, len(f.u)), make([]float64, len(f.v)), make([]float64, len(f.f)), make([]float64, len(f.inc))}
}

// see takes the losses after an epoch; it tells whether they are the best so far
// and whether patience has run out.
func (f *qmfFit) see(epoch int, penalty float64) (better, stop bool) {
	loss := f.history[len(f.history)-1] + penalty
	if f.held != nil {
		loss = f.meanHeld()
		f.validationHistory = append(f.validationHistory, loss)
	}
	return f.judge.see(epoch, loss)
}

// regularity is what the penalty adds to the loss of the factors as they stand,
// where it is judged.
func (f *qmfFit) regularity() float64 {
	if f.penalty == 0 || f.patience == 0 {
		return 0
	}
	// The padding of Ṽ is 0.
	return float64(f.penalty / 2 * (meanSquare(f.logU) + float64(meanSquare(f.logV)*float64(f.np)/float64(f.n))))
}

// note is see, and keeps the state where it is the best on the held-out cells.
func (f *qmfFit) note(epoch int, penalty float64) (stop bool) {
	better, stop := f.see(epoch, penalty)
	if better && f.held != nil {
		if f.keep == nil {
			f.keep = f.newState()
		}
		copy(f.keep.u, f.u)
		copy(f.keep.v, f.v)
		copy(f.keep.f, f.f)
		copy(f.keep.inc, f.inc)
	}
	return stop
}

// restore goes back to the state that was kept.
func (f *qmfFit) restore() {
	copy(f.u, f.keep.u)
	copy(f.v, f.keep.v)
	copy(f.f, f.keep.f)
	copy(f.inc, f.keep.inc)
}

// evaluateAll takes the losses of all rows as the model stands.
func (f *qmfFit) evaluateAll() {
	f.batch.rows = f.order
	f.pool.Do(f.pieces(f.d), f.batch.evaluate)
}

// evaluate takes the losses of a piece of the batch.
func (f *qmfFit) evaluate(worker, piece int) {
	c := &f.work[worker]
	from, to := f.piece(piece)
	f.placeAll(c, from, to)
	for k, slot := range c.slots {
		f.judgeRow(&c.visitors[k], f.batch.rows[slot])
	}
	for _, i := range f.batch.rows[from:to] {
		if f.constant(i) {
			v := &c.visitors[0]
			v.observed = f.cells.load(v.x, v.mask, i)
			f.judgeRow(v, i)
		}
	}
}

// judgeRow takes the losses of the row that v holds.
func (f *qmfFit) judgeRow(v *visitor, i int) {
	f.fitted(v, i)
	f.rowLosses[i] = f.rowLoss(v, i)
	f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i))
}

// model hands the fit over, where it stands or at the best epoch on held-out cells.
func (f *qmfFit) model() *QMF {
	if f.keep != nil {
		f.restore()
	}
	q, held := f.maps()
	loss := f.meanLoss()
	// The entry of the model returned is exact.
	q.History, q.Validation = f.history, f.validationHistory
	if f.keep != nil {
		q.Best = f.judge.bestEpoch
		q.History[q.Best] = loss
		return q
	}
	if f.held != nil { // stopped before its first epoch
		q.Validation = append(q.Validation, held)
	}
	q.History = append(f.history[:min(len(f.history), f.done)], loss)
	q.Best = len(q.History) - 1
	return q
}

// maps solves every row once more and returns the model as it stands, without its
// histories, and the mean divergence of the held-out cells. Row losses are exact then.
// No end of the context keeps it from that, unless nobody wants the model then. A row
// without a map yet gets its mean.
func (f *qmfFit) maps() (*QMF, float64) {
	if !f.discard {
		f.pool.Bind(nil)
		defer f.pool.Bind(f.course.ctx)
	}
	d, m := f.d, f.m
	q := &QMF{Factorisation: Factorisation{U: f.matU(), V: f.matV(), loss: f.loss, missing: f.missing}, Quantiles: NewMat(d, m), Weights: NewMat(d, m), potentials: NewMat(d, m),
		center: make([]float64, d), squash: make([]squashed, d), marginal: make([]float64, d), epsilon: f.epsilon, Start: f.origin, Shrinkage: f.lambda}
	ends := make([]outcome, d)
	f.pool.Do(d, func(worker, i int) {
		v := &f.work[worker].visitors[0]
		none := !slices.ContainsFunc(f.rowInc(i), func(d float64) bool { return d != 0 })
		if none {
			f.rowInc(i)[0] = f.average[i]
			if f.constant(i) {
				f.rowInc(i)[0] = f.low[i]
			}
		}
		cumulate(q.Quantiles.Row(i), f.rowInc(i))
		if f.ends == EndsPinned && !none {
			row := q.Quantiles.Row(i) // the last is not left to the sum
			row[m-1] = f.high[i]
			for l := range row {
				row[l] = min(row[l], f.high[i])
			}
		}
		if none {
			f.load(v, i)
			clear(v.row.h)
			ends[i].converged = true
		} else {
			ends[i] = f.place(v, i)
		}
		copy(q.Weights.Row(i), v.row.b)
		copy(q.potentials.Row(i), v.row.h)
		q.center[i], q.squash[i], q.marginal[i] = v.row.xc, v.row.squash, ends[i].rel
		q.squash[i].observed = nil
		if none {
			for j := range v.t {
				v.t[j] = f.rowInc(i)[0]
			}
		} else {
			q.fill(&v.row, v.t, v.w[:f.n], i)
		}
		low := min(f.loss.least(), f.lowest(i))
		f.loss.parts(v.g[:f.n], v.s[:f.n], v.x, v.t, low)
		f.rowLosses[i] = f.loss.sum(v.x[:f.n], v.t, v.g, v.observed, low)
		if f.keep == nil {
			f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, low)
		}
	})
	for i, o := range ends {
		if !o.converged && !f.constant(i) {
			q.Warnings = append(q.Warnings, o.err(i, f.config))
		}
	}
	return q, f.meanHeld()
}

func (f *qmfFit) meanHeld() float64 {
	total := 0.0
	for i, l := range f.rowHeld {
		total += f.share(i) * l
	}
	return total / float64(max(f.heldOut, 1))
}

func (f *qmfFit) meanLoss() float64 {
	total := 0.0
	for i, l := range f.rowLosses {
		total += f.share(i) * l
	}
	return total / float64(f.visible)
}

// row fills t, padded, with T_i((UV)_i) from the stored potentials.
func (q *QMF) row(r *row, t []float64, i int) {
	w := r.gx[:q.V.Cols]
	product(w, q.U.Row(i), q.V)
	q.fill(r, t, w, i)
}

// fill is row where w = (UV)_i is known.
func (q *QMF) fill(r *row, t, w []float64, i int) {
	n := len(w)
	copy(r.x, w)
	r.squash = q.squash[i]
	r.squash.map1(r.xs[:n], w)
	for j := n; j < r.np; j++ {
		r.x[j], r.xs[j] = r.x[0], r.xs[0]
	}
	kernel.Extent(&r.extent, r.xs)
	kernel.Shift(r.cx, r.xs, q.center[i])
	r.ordered = false
	r.setEpsilon(q.epsilon)
	r.evaluate(q.potentials.Row(i))
	r.quantile(t, q.Quantiles.Row(i))
}

// Reconstruct returns T(UV), d × n. Cost: d rows of nm exponentials or products.
func (q *QMF) Reconstruct() Mat {
	out, _ := q.reconstruct(context.Background())
	return out
}

func (q *QMF) reconstruct(ctx context.Context) (Mat, error) {
	out := NewMat(q.U.Rows, q.V.Cols)
	var r row
	r.resize(q.V.Cols, q.Quantiles.Cols)
	r.setTargets(nil)
	t := make([]float64, r.np)
	for i := range out.Rows {
		if err := ctx.Err(); err != nil {
			return Mat{}, stoppedAt(0, err)
		}
		q.row(&r, t, i)
		copy(out.Row(i), t)
	}
	return out, nil
}

// Loss returns the mean divergence of x, d × n, from Reconstruct(), under the
// loss that was fitted. Where the fit was WithMissingValues, NaN cells are left
// out.
func (q *QMF) Loss(x Mat) (float64, error) { return q.bounds().meanLoss(x, q.Reconstruct()) }

// Map returns T_i, from the scale of (UV)_i to that of feature i.
func (q *QMF) Map(i int) (*Map, error) {
	if uint(i) >= uint(q.U.Rows) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(q.U.Rows-1)}
	}
	var r row
	r.resize(1, q.Quantiles.Cols)
	r.setTargets(nil)
	return q.mapOf(&r, i), nil
}

// mapOf returns T_i, by way of a row that has the levels and targets of the model.
func (q *QMF) mapOf(r *row, i int) *Map {
	r.squash, r.xc, r.eps = q.squash[i], q.center[i], q.epsilon
	copy(r.h, q.potentials.Row(i))
	return r.asMap(q.Quantiles.Row(i))
}
