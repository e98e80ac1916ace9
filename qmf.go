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
	"github.com/quantmf/quantmf/internal/transport"
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
	squash     []transport.Squash
	marginal   []float64
	epsilon    float64
}

func qmfDefaults() config {
	return config{settings: settings{maps: true, epsilon: 0.02, squash: SquashLogisticUnit, tolerance: 1e-9, maxIterations: 3000, levels: 8, epochs: 20, seed: 1, learningRate: 0.06, batchRows: 32, loss: KL, shrinkage: -1}, restarts: 1}
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
// 5(dk + kn + dm) numbers, up to eight rows at work a worker, n(m+21) each, and the
// model; while it starts 18kn, and dn for normal scores; under WithValidation a copy
// of x, its mask and one of the best epoch; where x is signed or beyond 2^±100 another
// copy of it. The choice of start and shrinkage takes two NMFs and 36 epochs of up to
// 512 rows, and the memory of two fits of so many; told both, a fit has none of it.
func FitQMF(ctx context.Context, x Mat, rank int, opts ...FitOption) (*QMF, error) {
	c := qmfDefaults()
	t, err := open(kindQMF, forQMF, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(x.Rows, x.Cols); err != nil {
		return nil, err
	}
	m, err := t.drive(ctx, x.Rows, new(QMF), func(seed uint64, way course) algorithm {
		return newQMFFit(t.cells, rank, &c, t.pool, seed, way)
	})
	q, _ := m.(*QMF)
	return q, err
}

func (q *QMF) common() *Factorisation { return &q.Factorisation }

// outward brings a model of x' to the units of x.
func (q *QMF) outward(u *units) {
	u.outward(q.Quantiles)
	u.losses(q.loss, q.History)
	u.losses(q.loss, q.Validation)
}

// objective is what a fit is chosen by: its loss on held-out cells, else that on
// the visible ones with the penalty.
func (q *QMF) objective(penalty float64) float64 {
	loss := q.judged()
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
	warm               []transport.Warm
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
	seed               uint64  // of all that is random
	origin             Start   // where this fit starts
	lambda             float64 // the shrinkage
	farthest           float64 // bound of log factors
	lag                int     // epochs by which the losses of a visit are behind the fit
	exact              bool    // every epoch ends with all losses of the model as it stands
	best               *qmfState
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

func newQMFFit(visible *cells, rank int, c *config, p *pool.Pool, seed uint64, way course) *qmfFit {
	d, n, m := visible.x.Rows, visible.x.Cols, c.levels
	f := &qmfFit{config: c, cells: visible, m: m, pool: p, factors: newFactors(d, n, rank), seed: seed, source: random.Split(seed, 1), origin: c.start, lambda: c.shrinkage, course: way}
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
	f.warm = make([]transport.Warm, d)
	for i := range f.warm {
		f.warm[i] = transport.NewWarm(m)
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
	rows := transport.NewRows(transport.Abreast(f.n, f.m, share), f.n, f.m)
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
func (f *qmfFit) place(v *visitor, i int) transport.Outcome {
	v.row.Load(f.problem(v, i))
	return v.row.Solve(f.tolerance, f.maxIterations, &f.warm[i])
}

// problem is that of row i, w = U_i V onto b_i: hidden cells have no part in the measure.
func (f *qmfFit) problem(v *visitor, i int) transport.Problem {
	v.observed = f.cells.load(v.x, v.mask, i)
	kernel.Combine(v.w, f.rowU(i), f.v)
	return transport.Problem{X: v.w[:f.n], Observed: v.observed, Logits: f.rowF(i), Squash: transport.Kind(f.squash), Epsilon: f.epsilon}
}

// placeAll is place for the rows of the slots, but for constant ones; it fills their v.q and
// v.t as well, as fitted does.
func (f *qmfFit) placeAll(c *crew, from, to int) {
	c.group.Clear()
	c.slots = c.slots[:0]
	for slot := from; slot < to; slot++ {
		if i := f.batch.rows[slot]; !f.constant(i) {
			v := &c.visitors[len(c.slots)]
			cumulate(v.q, f.rowInc(i))
			v.row = c.group.Add(f.problem(v, i), &f.warm[i], v.t, v.q)
			c.slots = append(c.slots, slot)
		}
	}
	c.group.Solve(f.tolerance, f.maxIterations)
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
	v.row.Average(v.t, v.q)
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
// each level's mean of w under the plan. den holds the columns of the visible cells.
func (f *qmfFit) prior(v *visitor, i int, d0, den []float64) {
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
		if l > 0 || !f.signed {
			q = max(q, last)
		}
		d0[l], last = q-last, q
	}
}

// em makes one multiplicative step on the increments of row i; v.g and v.s are
// those of rowLoss at them.
func (f *qmfFit) em(v *visitor, i int) {
	m, inc, d0, shares := f.m, f.rowInc(i), v.d0, v.den
	v.row.Columns(v.den, v.s)
	if f.lambda > 0 || f.signed {
		if f.loss != KL {
			shares = v.q
			clear(v.z)
			for j := range v.z[:f.n] {
				if v.observed == nil || v.observed[j] {
					v.z[j] = 1
				}
			}
			v.row.Columns(shares, v.z)
		}
		if f.lambda > 0 {
			f.prior(v, i, d0, shares)
		}
	}
	v.row.Columns(v.num, v.g)
	v.row.Tails(v.num)
	v.row.Tails(v.den)
	seen, first := float64(f.cells.rows[i]), 0
	if f.signed && f.ends == EndsFree {
		first = 1
		c := min(inc[0], f.low[i])
		v.row.Tails(shares)
		for l, tail := range shares {
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
	for k, slot := range c.slots {
		v := &c.visitors[k]
		f.fitMap(v, f.batch.rows[slot])
		c.back[k] = transport.Cotangent{Z: v.g, Q: v.q}
	}
	c.group.Adjoint(c.back[:len(c.slots)])
	for k, slot := range c.slots {
		v, wbar := &c.visitors[k], f.rowWbar(slot)
		v.row.GradX(wbar[:f.n])
		clear(wbar[f.n:])
		f.stepMap(v, f.batch.rows[slot])
	}
}

// fitMap makes the EM step on q of row i, whose T is there, and fills v.g with ∂Δ/∂T and
// v.q with the q that it belongs to.
func (f *qmfFit) fitMap(v *visitor, i int) {
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
	if f.r != nil {
		f.stepR(v, i, f.cellUnit(i))
	}
	v.row.GradLogits(v.num)
	lo, hi := i*f.m, (i+1)*f.m
	adam.Step(f.f[lo:hi], v.num, f.momF.mu[lo:hi], f.momF.nu[lo:hi], f.batch.rate, f.batch.epoch)
}

// stepR makes the paper's step on q: Adam on R, the logarithms of the increments (of
// signed data R_1 is q_1 over the row's mean; pinned: of their shares of the row's range, by softmax).
func (f *qmfFit) stepR(v *visitor, i int, unit float64) {
	m := f.m
	rate, step := f.batch.rate, f.batch.epoch
	v.row.GradQ(v.den)
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
	transport.Softmax(inc[1:], r[1:])
	for l := 1; l < m; l++ {
		inc[l] *= f.high[i] - f.low[i]
	}
	inc[0] = f.low[i]
}

// epoch visits every row once, in a new random order.
func (f *qmfFit) epoch(e int) (losses, error) {
	if err := f.pool.Err(); err != nil {
		return losses{}, err
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
			return losses{}, err
		}
	}
	// As visited: of this epoch with batches; where all rows are one batch, of
	// the steps of the epoch before, whose loss it is exactly. What is judged, by
	// held-out cells or for patience, is evaluated.
	if f.exact {
		f.evaluateAll()
		if err := f.pool.Err(); err != nil {
			return losses{}, err
		}
		penalty = f.regularity()
	}
	return losses{of: e + 1 - f.lag, visible: f.meanLoss(), held: f.meanHeld(), penalty: penalty}, nil
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

// regularity is what the penalty adds to the loss of the factors as they stand,
// where it is judged.
func (f *qmfFit) regularity() float64 {
	if f.penalty == 0 || f.patience == 0 {
		return 0
	}
	// The padding of Ṽ is 0.
	return float64(f.penalty / 2 * (meanSquare(f.logU) + float64(meanSquare(f.logV)*float64(f.np)/float64(f.n))))
}

// keep copies what the model is made of.
func (f *qmfFit) keep() {
	if f.best == nil {
		f.best = f.newState()
	}
	copy(f.best.u, f.u)
	copy(f.best.v, f.v)
	copy(f.best.f, f.f)
	copy(f.best.inc, f.inc)
}

// restore goes back to the state that was kept.
func (f *qmfFit) restore() {
	copy(f.u, f.best.u)
	copy(f.v, f.best.v)
	copy(f.f, f.best.f)
	copy(f.inc, f.best.inc)
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
			f.fitted(v, i)
			f.judgeRow(v, i)
		}
	}
}

// judgeRow takes the losses of row i, whose T is in v.
func (f *qmfFit) judgeRow(v *visitor, i int) {
	f.rowLosses[i] = f.rowLoss(v, i)
	f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, f.lowest(i))
}

// model hands the fit over, where it stands or at the best epoch on held-out cells.
func (f *qmfFit) model(j *journal) (fitted, error) {
	if f.best != nil {
		f.restore()
	}
	q, held := f.maps()
	q.Best = j.exact(f.meanLoss(), held)
	q.History, q.Validation = j.history, j.validation
	if f.discard {
		return q, f.pool.Err()
	}
	return q, nil
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
	q := &QMF{Factorisation: Factorisation{U: f.matU(), V: f.matV(), loss: f.loss, missing: f.cells.missing}, Quantiles: NewMat(d, m), Weights: NewMat(d, m), potentials: NewMat(d, m),
		center: make([]float64, d), squash: make([]transport.Squash, d), marginal: make([]float64, d), epsilon: f.epsilon, Start: f.origin, Shrinkage: f.lambda}
	ends := make([]transport.Outcome, d)
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
			v.row.Load(f.problem(v, i))
			ends[i].Converged = true
		} else {
			ends[i] = f.place(v, i)
			copy(q.potentials.Row(i), v.row.Potentials().H)
		}
		_, b := v.row.Weights()
		at := v.row.Potentials()
		copy(q.Weights.Row(i), b)
		q.center[i], q.squash[i], q.marginal[i] = at.Center, at.Squash, ends[i].Error
		if none {
			for j := range v.t {
				v.t[j] = f.rowInc(i)[0]
			}
		} else {
			q.fill(v.row, v.t, v.w[:f.n], i)
		}
		low := min(f.loss.least(), f.lowest(i))
		f.loss.parts(v.g[:f.n], v.s[:f.n], v.x, v.t, low)
		f.rowLosses[i] = f.loss.sum(v.x[:f.n], v.t, v.g, v.observed, low)
		if f.best == nil {
			f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, low)
		}
	})
	for i, o := range ends {
		if !o.Converged && !f.constant(i) {
			q.Warnings = append(q.Warnings, notConverged(o, i, f.config))
		}
	}
	return q, f.meanHeld()
}

// snapshot is what the rest of the fit depends on.
func (f *qmfFit) snapshot() snapshot {
	s := snapshot{real: f.parts(), source: uint64(f.source), steps: f.stepsV}
	for _, i := range f.order {
		s.index = append(s.index, uint64(i))
	}
	s.index = append(appendWarm(s.index, f.warm), uint64(f.origin), math.Float64bits(f.lambda))
	return s
}

// parts are the numbers of a QMF under way.
func (f *qmfFit) parts() []part {
	log := func(v []float64) part { return part{v, -f.farthest, f.farthest} }
	p := []part{positive(f.u), positive(f.v), log(f.logU), log(f.logV), finite(f.f), positive(f.rowLosses), positive(f.rowHeld)}
	for _, m := range []moment{f.momU, f.momV, f.momF} {
		p = append(p, m.parts()...)
	}
	p = append(p, f.increments(f.inc)...)
	if f.r != nil {
		p = append(append(p, part{f.r, shortest, longest}), f.momR.parts()...)
	}
	if f.held != nil {
		p = append(append(p, positive(f.best.u), positive(f.best.v), finite(f.best.f)), f.increments(f.best.inc)...)
	}
	return appendOffsets(p, f.warm)
}

// increments are parts: but for the first of a row, q_1, none is negative.
func (f *qmfFit) increments(inc []float64) (p []part) {
	for i := range f.d {
		row := inc[i*f.m : (i+1)*f.m]
		p = append(p, finite(row[:1]), positive(row[1:]))
	}
	return p
}

func appendOffsets(p []part, states []transport.Warm) []part {
	for i := range states {
		p = append(p, finite(states[i].Offset))
	}
	return p
}

// resume takes the state of a checkpoint.
func (f *qmfFit) resume(file *file, s *saved) error {
	if f.held != nil {
		f.best = f.newState()
	}
	index, err := file.restore(f.parts(), 2*f.d+2)
	if err != nil {
		return err
	}
	seen := make([]bool, f.d)
	for k, i := range index[:f.d] {
		if i >= uint64(f.d) || seen[i] {
			return file.failAt("IDX0", k, "an index is out of range")
		}
		seen[i], f.order[k] = true, int(i)
	}
	if err := file.takeWarm(f.warm, index, f.d); err != nil {
		return err
	}
	origin, lambda := index[2*f.d], math.Float64frombits(index[2*f.d+1])
	if origin >= uint64(len(startNames)) {
		return file.failAt("IDX0", 2*f.d, "there is no such start")
	}
	if !(lambda >= 0 && lambda <= 1e30) {
		return file.failAt("IDX0", 2*f.d+1, "the shrinkage is "+ftoa(lambda))
	}
	size := min(f.batchRows, f.d)
	if s.steps != s.epoch*((f.d+size-1)/size) {
		return file.failAt("STAT", 3, "the steps of V are not those of so many epochs")
	}
	f.origin, f.lambda = Start(origin), lambda
	f.source, f.stepsV = random.Source(s.source), s.steps
	return nil
}

func (f *qmfFit) meanHeld() float64 {
	total := 0.0
	for i, l := range f.rowHeld {
		total += float64(f.share(i) * l)
	}
	return total / float64(max(f.heldOut, 1))
}

func (f *qmfFit) meanLoss() float64 {
	total := 0.0
	for i, l := range f.rowLosses {
		total += float64(f.share(i) * l)
	}
	return total / float64(f.visible)
}

// solved are the potentials of T_i.
func (q *QMF) solved(i int) transport.Potentials {
	return transport.Potentials{H: q.potentials.Row(i), Center: q.center[i], Squash: q.squash[i]}
}

// fill fills t, padded, with T_i of w = (UV)_i from the stored potentials.
func (q *QMF) fill(r *transport.Row, t, w []float64, i int) {
	r.Evaluate(w, q.solved(i), q.epsilon)
	r.Average(t, q.Quantiles.Row(i))
	r.Order(t, q.Quantiles.Row(i))
}

// Reconstruct returns T(UV), d × n. Cost: d rows of nm exponentials or products.
func (q *QMF) Reconstruct() Mat {
	out, _ := q.reconstruct(context.Background())
	return out
}

func (q *QMF) reconstruct(ctx context.Context) (Mat, error) {
	n := q.V.Cols
	out := NewMat(q.U.Rows, n)
	var r transport.Row
	r.Resize(n, q.Quantiles.Cols)
	w, t := make([]float64, n), make([]float64, kernel.Pad(n))
	for i := range out.Rows {
		if err := ctx.Err(); err != nil {
			return Mat{}, stoppedAt(0, err)
		}
		product(w, q.U.Row(i), q.V)
		q.fill(&r, t, w, i)
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
	return q.mapOf(i), nil
}

// mapOf returns T_i.
func (q *QMF) mapOf(i int) *Map {
	return newMap(q.solved(i), q.Quantiles.Row(i), nil, q.epsilon)
}
