package quantmf

// This file holds quantile matrix factorisation (paper §3.4, Eq. (QMF)),
//
//	min over Ũ, Ṽ, F, q of  Σ_i Δ(X_i, T_i((UV)_i)),
//	U = exp Ũ,  V = exp Ṽ,  b_i = softmax F_i,  T_i = T_{ε,b_i,q_i}.
//
// An epoch visits all rows in batches. Where all rows are one batch, 64 rows are visited at a time,
// and what they add to the step of V is summed in one fixed order (internal/runs). A visit
// (inflate.go) makes the steps of T_i and gives w̄, the gradient at w = (UV)_i. U_i at each visit, and
// V once a batch, take steps by the method of Gauss and Newton (internal/gauss) or, in the paper's
// form, by Adam:
//
//	Ũ̄_i = U_i∘(w̄Vᵀ),   Adam on Ũ_i;   once a batch   Ṽ̄ = V∘Σ_i U_iᵀw̄_i,   Adam on Ṽ.

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/adam"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/journal"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/kinds"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/runs"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
	"github.com/quantmf/quantmf/internal/unit"
)

// QMF is a fitted X ≈ T(UV). It is not changed by its methods and may be used by
// several goroutines at once.
type QMF struct {
	Factorisation
	// Quantiles and Weights (d × m) hold q_i, non-decreasing, and b_i, of sum 1.
	Quantiles, Weights Mat
	Start              Start   // where the fit started; StartAuto after WithInit alone
	Shrinkage          float64 // λ of WithShrinkage: as given, or as chosen by the data

	potentials Mat // h_i of the last solve, about center
	center     []float64
	squash     []transport.Squash
	marginal   []float64
	epsilon    float64
}

func qmfDefaults() config {
	return config{
		settings: settings{
			mapped: true, epsilon: 0.02, squash: SquashLogisticUnit, tolerance: 1e-9, maxIterations: 200,
			levels: 8,
			epochs: 4, seed: 1, learningRate: 0.2, batchRows: 32, loss: divergence.KL, shrinkage: -1,
		},
		restarts: 1,
	}
}

// adamRate is the default learning rate where Adam steps U and V.
const adamRate = 0.06

// gaussian tells whether U and V of a QMF of rank k take steps of Gauss and Newton's method.
// Adam steps them in four cases:
//   - under StartUniform, which is the paper's form;
//   - under SquashNone, where a change of w moves T through its potentials more than through the
//     slopes s_ij (inflation.curvature), so that steps by the slopes alone go far too far;
//   - for β < -1/2, where the curvature at x = T differs much from that at an x above T;
//   - above 32 components: steps of Gauss and Newton's method cost 2k(k+1) flops a cell and
//     k(k+1)/2 numbers a sample, and from about 40 components on twenty epochs of Adam take less time.
func (s *settings) gaussian(k int) bool {
	return s.start != StartUniform && s.squash != SquashNone && s.loss >= -0.5 && k <= 32
}

// pace returns the pace of Adam in epoch e, counted from 0.
func (s *settings) pace(e int) adam.Pace {
	rate := s.learningRate
	if s.schedule == ScheduleCosine {
		rate *= adam.Cosine(float64(e) / float64(s.epochs))
	}
	return adam.Pace{Rate: rate, Count: e + 1}
}

// settleQMF sets the defaults of epochs and learning rate where Adam steps U and V. qmfDefaults has
// those for steps of Gauss and Newton's method.
func (c *config) settleQMF(rank int) {
	if c.gaussian(rank) {
		return
	}
	if !c.given.Has(option.Epochs) {
		c.epochs = 20
	}
	if !c.given.Has(option.LearningRate) {
		c.learningRate = adamRate
	}
}

// FitQMF fits x, d features × n samples, by T(UV) of rank k >= 1, one increasing map T_i
// a feature. x is finite, of magnitude at most 1e60, and non-negative; under
// [WithLoss]([Frobenius]) it may have any sign.
//
// x may be in any unit. Where its largest value is beyond 2^±100, x is divided by a power
// of two before it is fitted, and the factors belong to the divided x; a row whose
// largest value is more than 2^100 times smaller than that of x is divided by a power of
// its own. Quantiles and losses are always in the units of x. A constant added to a row
// of a signed x is added to the row's quantiles, and changes nothing else.
//
// U and V take steps of the method of Gauss and Newton, quantile values EM steps, and the weights of
// the levels steps of Adam. Under [StartUniform] Adam steps all of them, as in the paper. It steps U and
// V also under [SquashNone], for β < -1/2, and where k is above 32.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 4 epochs with Adam at 0.2 falling
// to 0 by cosine (where Adam steps U and V: 20 epochs, 0.06), batches of 32 rows, free ends, start
// and shrinkage chosen by the data (see [WithStart], [WithShrinkage]), no penalty, seed 1, no
// restarts, no patience, no validation. These defaults predicted unseen cells best over several
// kinds of data (docs/measurements/defaults.md); to fit the seen cells more closely, take
// 30 epochs, no shrinkage, a smaller ε.
//
// The first and the last entry of History are exact; the others are exact where the batch
// is the whole matrix and under WithValidation and WithPatience, and otherwise means over
// the rows, each at its visit.
//
// Errors: [*DataError], [*ShapeError], [*OptionError]; where a row cannot be read a [*ReadError],
// without a model; under [WithStrict] a [*ConvergenceError]; when ctx ends or a progress function
// fails, the model so far with an error that wraps it.
//
// Where rows come in several batches, a visit solves the row's transport to √ρ, ρ being the tolerance
// ([WithTolerance]). For exact losses and for the model, transports are solved to ρ.
//
// From 4096 samples on a solve goes over at most 1024 points that stand for the samples of a row, if by a
// bound sums over the points have relative errors below 1e-4; with the default ε the errors are some 1e-9.
// Transports that are solved to ρ end with passes over all samples, unless the bound is below ρ, too: with
// the default ρ from an ε of some 0.2 on. Visits of rows in several batches take the sums over the points if
// the bound is below √ρ, and then T and its derivatives by cubics between the edges of 512 bins, to the same
// accuracy. The steps on q under KL take the sums in either case.
//
// Cost of an epoch: d solves of about 3 passes (8nm flops and m³/3 each; 4 passes where all rows are one
// batch), their backward (40nm), six averages for the steps on q (2nm each) and 2dnk(k+3) flops for U and
// V (by Adam 6dnk); half as much again under WithValidation and WithPatience, which evaluate the model
// after every epoch. The choice of start and shrinkage takes two NMFs and 12 epochs of up to 512 rows
// and of as many random samples as make up 2^19 observed cells, and the memory of three fits of as many
// cells; a fit with WithStart and WithShrinkage makes no such choice.
//
// Memory beside x, in numbers of 8 bytes:
//   - dk + nk(k+7)/2 + 5dm + 24d, by Adam 4dk + 5kn + 5dm + 24d;
//   - n(m+21) for each of up to eight rows a worker, from 4096 samples on 2048(m+15) more;
//   - 32(3n + k²/2) for a batch of 32 rows; 64(3n + k²/2) + nk(k+3) for a batch of all rows, however many;
//   - the model;
//   - during the start 40kn + 4dk, and dn for normal scores (at most 2^26 where x is no [Mat]);
//   - under WithValidation a bit for each cell and the parameters at the best epoch;
//   - where x is a Mat that is signed or beyond 2^±100 a copy of it.
//
// [MemoryOf] adds it up.
func FitQMF(ctx context.Context, x Rows, rank int, opts ...FitOption) (*QMF, error) {
	c := qmfDefaults()
	t, err := open(kinds.QMF, option.FitQMF, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(t.cells.d, t.cells.n); err != nil {
		return nil, err
	}
	c.settleQMF(rank)
	m, err := t.drive(ctx, t.cells.d, new(QMF), func(seed uint64, progress progress) algorithm {
		return newQMFFit(t.cells, rank, &c.settings, t.pool, seed, progress)
	})
	q, _ := m.(*QMF)
	return q, err
}

func (q *QMF) common() *Factorisation { return &q.Factorisation }

// toUserUnits brings a model of x' to the units of x.
func (q *QMF) toUserUnits(u *unit.Units) {
	if !u.Plain() {
		for i := range q.Quantiles.Rows {
			u.Outward(q.Quantiles.Row(i), i)
		}
	}
	u.Losses(q.loss, q.History)
	u.Losses(q.loss, q.Validation)
}

// objective is the loss that restarts are compared by: that on held-out cells, otherwise
// that on the visible cells with the penalty.
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

// checkQMF reports options with which a d × n matrix has no model.
func (c *config) checkQMF(d, n int) error {
	if limit.TooMany(max(d, n), c.levels) {
		return &OptionError{Option: option.Levels.String(), Value: itoa(c.levels),
			Bound: "the maps of a " + itoa(d) + "×" + itoa(n) + " matrix would need too much memory"}
	}
	if c.levels < 2 {
		return &OptionError{Option: option.Levels.String(), Value: itoa(c.levels),
			Bound: "a model needs at least 2"}
	}
	if !(c.epsilon > 0) {
		return &OptionError{Option: option.Epsilon.String(), Value: ftoa(c.epsilon),
			Bound: "a model needs a positive one: at 0 nothing has a gradient"}
	}
	if c.start == StartSVD {
		return &OptionError{Option: option.Start.String(), Value: c.start.String(),
			Bound: "only FitNMF starts from it"}
	}
	if c.given.Has(option.Shrinkage) && c.shrinkage > 0 {
		if c.ends == EndsPinned {
			return &OptionError{Option: option.Shrinkage.String(), Value: ftoa(c.shrinkage),
				Bound: "needs EndsFree"}
		}
		if c.start == StartUniform {
			return &OptionError{Option: option.Shrinkage.String(), Value: ftoa(c.shrinkage),
				Bound: "StartUniform has no EM step to shrink"}
		}
	}
	return nil
}

// qmfFit is a QMF during its fit.
type qmfFit struct {
	*settings
	*inflation
	logU, logV  []float64 // Ũ, Ṽ; u and v hold their exponentials
	momU, momV  adam.Moment
	gradV       []float64  // k × np: the gradient at Ṽ
	ubatch      []float64  // batch × k: rows of U before their steps, times relativeUnit
	sumsV       *runs.Sums // of gradV over one batch of all rows, where Adam steps V
	cut         runs.Cut   // the runs of rows of one batch of all
	order       []int      // the rows in the order in which the next epoch visits them
	batch       []int      // the rows that are visited next; an index into batch is called a slot
	wbar        []float64  // slots × np: the gradients at w, in units of the rows' losses
	source      random.Source
	stepsV      int       // how many steps V has made
	seed        uint64    // of everything random
	origin      Start     // where this fit starts
	heaviest    float64   // the most shrinkage that the data may choose
	farthest    float64   // the bound of |log U| and |log V|
	least, most float64   // the bounds of U and V: e^±farthest
	lag         int       // 1 where the losses of an epoch are those of its start, else 0
	best        *qmfState // of a shard
	progress    progress
	gauss       *gauss.Steps // nil: Adam steps U and V
	op          op
	piece       func(worker, piece int) // of op: doPiece, made once, so that no loop allocates
}

func newQMFFit(visible *cells, rank int, s *settings, p *pool.Pool, seed uint64, progress progress) *qmfFit {
	return newQMFPart(visible, rank, s, p, seed, progress, runs.All(visible.d))
}

// newQMFPart makes a fit of the rows in the runs of a cut alone; they are all the rows of visible.
func newQMFPart(visible *cells, rank int, s *settings, p *pool.Pool, seed uint64, progress progress,
	cut runs.Cut) *qmfFit {
	d, n := visible.d, visible.n
	whole, slots := s.batchRows >= d, min(s.batchRows, d)
	if whole {
		slots = min(slots, togetherRows)
	}
	f := &qmfFit{
		settings: s, inflation: newInflation(s, visible, newFactors(d, n, rank), p), cut: cut,
		seed: seed, source: random.Split(seed, 1), origin: s.start,
		heaviest: math.Inf(1), farthest: factorBound(s.squash, rank), progress: progress,
	}
	f.most = elem.Exp(f.farthest)
	f.least = 1 / f.most
	if s.lagging(d) {
		f.lag = 1
	}
	f.evaluated = f.held != nil || f.lag == 0 && s.patience > 0
	f.order, f.wbar = inOrder(d), make([]float64, slots*f.np)
	f.inflation.whole = whole
	f.piece = f.doPiece
	if s.gaussian(rank) {
		// Three EM steps on q a visit, so that the maps keep up with the factors.
		f.stepsQ = 3
		if whole {
			f.gauss = gauss.NewWhole(cut, rank, f.np, slots, s.batchRows, p.Workers())
		} else {
			f.gauss = gauss.NewSteps(d, rank, f.np, s.batchRows, p.Workers())
		}
		return f
	}
	f.logU, f.momU = make([]float64, d*rank), adam.NewMoment(d*rank)
	f.logV, f.momV = make([]float64, rank*f.np), adam.NewMoment(rank*f.np)
	f.ubatch = make([]float64, slots*rank)
	if !whole {
		f.gradV = make([]float64, rank*f.np)
	} else if f.sumsV = runs.NewSums(cut, rank*f.np); len(f.sumsV.Parts) == 1 {
		f.gradV = f.sumsV.Parts[0]
	}
	return f
}

// togetherRows is how many rows are visited together where all rows are one batch. The fit holds the
// gradients w̄ of that many rows.
const togetherRows = 64

// inOrder returns 0, 1, ..., d-1.
func inOrder(d int) []int {
	order := make([]int, d)
	for i := range order {
		order[i] = i
	}
	return order
}

// run does so many pieces of an op.
func (f *qmfFit) run(op op, pieces int) {
	f.op = op
	f.pool.Do(pieces, f.piece)
}

func (f *qmfFit) doPiece(worker, piece int) {
	switch f.op {
	case visitRows:
		f.visit(worker, piece)
	case evaluateRows:
		f.evaluate(&f.spaces[worker], piece)
	case accumulate:
		if f.gauss != nil {
			f.takeTileV(worker, piece)
		} else {
			f.takeRowV(worker, piece)
		}
	case stepColumns:
		if f.gauss != nil {
			f.stepTileV(worker, piece)
		} else {
			f.stepRowV(worker, piece)
		}
	}
}

// rowWbar is the gradient at w of the row in a slot.
func (f *qmfFit) rowWbar(slot int) []float64 { return f.wbar[slot*f.np : (slot+1)*f.np] }

// visit makes the steps of T_i and U_i for the row in a slot.
func (f *qmfFit) visit(worker, slot int) {
	v, i, wbar := &f.spaces[worker], f.batch[slot], f.rowWbar(slot)
	u := f.rowU(i)
	if f.gauss != nil {
		f.visitMap(v, i, wbar, f.gauss.Curvature(slot))
		if f.Constant(i) {
			f.gauss.Skip(slot)
			return
		}
		f.gauss.StepRow(worker, slot, u, wbar, f.penaltyU(i))
		kernel.Confine(u, f.least, f.most)
		f.gauss.Put(slot, u, v.w, wbar, f.relativeUnit(i))
		return
	}
	unit := f.relativeUnit(i)
	for t, x := range u {
		f.ubatch[slot*f.k+t] = x * unit
	}
	f.visitMap(v, i, wbar, nil)
	if f.Constant(i) {
		return
	}
	// Ũ̄ = U∘(w̄Vᵀ).
	gu := v.gu
	kernel.Dots(gu, f.v, wbar)
	lo, hi := i*f.k, (i+1)*f.k
	pen := f.penaltyU(i)
	for t := range gu {
		gu[t] = float64(gu[t]*u[t]) + float64(pen*f.logU[lo+t])
	}
	f.momU.Step(f.logU, gu, lo, hi, f.at)
	kernel.Confine(f.logU[lo:hi], -f.farthest, f.farthest)
	kernel.Exp(u, f.logU[lo:hi])
}

// epoch visits every row once: several batches in a new random order, one batch of all rows in the
// order of their numbers.
func (f *qmfFit) epoch(e int) (journal.Losses, error) {
	if err := f.pool.Err(); err != nil {
		return journal.Losses{}, err
	}
	f.at = f.pace(e)
	penalty, err := f.regularity(), error(nil)
	if f.inflation.whole {
		if err = f.visitAll(); err == nil {
			f.stepV()
			err = f.pool.Err()
		}
	} else {
		err = f.visitBatches()
	}
	if err != nil {
		return journal.Losses{}, err
	}
	// The losses are those recorded by the visits, unless validation or patience judge
	// the model: then they are evaluated after the epoch.
	if f.evaluated {
		f.run(evaluateRows, f.d)
		if err := f.pool.Err(); err != nil {
			return journal.Losses{}, err
		}
		penalty = f.regularity()
	}
	return journal.Losses{Of: e + 1 - f.lag, Visible: f.meanLoss(), Held: f.meanHeld(), Penalty: penalty}, nil
}

// visitAll visits all rows as one batch, togetherRows at a time, and sums what they add to the step
// of V.
func (f *qmfFit) visitAll() error {
	f.layV()
	for from := 0; from < f.d; from += togetherRows {
		f.batch = f.order[from:min(from+togetherRows, f.d)]
		f.run(visitRows, len(f.batch))
		f.run(accumulate, f.piecesV())
		if err := f.pool.Err(); err != nil {
			return err
		}
	}
	return nil
}

// layV takes all of V for the steps of U. Within an epoch each step of a tile of V does.
func (f *qmfFit) layV() {
	if f.gauss != nil {
		f.gauss.Lay(f.v, 0, f.np)
	}
}

// piecesV is the number of pieces that the steps of V are cut into.
func (f *qmfFit) piecesV() int {
	if f.gauss != nil {
		return f.gauss.Tiles()
	}
	return f.k
}

// stepV makes the step of V after one batch of all rows, from the sums that visitAll has left.
func (f *qmfFit) stepV() {
	f.stepsV++
	if f.gauss != nil {
		f.gauss.Judge(f.meanLoss())
		f.gauss.Mix(f.d, f.stepsV)
	}
	f.run(stepColumns, f.piecesV())
}

// takeTileV adds the rows of the batch to the sums of a tile of V.
func (f *qmfFit) takeTileV(worker, t int) {
	first, _ := f.cut.Rows()
	f.gauss.TakeTile(worker, t, first+f.batch[0], len(f.batch))
}

// visitBatches visits all rows in batches of a new random order, and makes a step of V after each.
func (f *qmfFit) visitBatches() error {
	f.layV()
	f.source.Shuffle(f.order)
	size := min(f.batchRows, f.d)
	for from := 0; from < f.d; from += size {
		f.batch = f.order[from:min(from+size, f.d)]
		f.run(visitRows, len(f.batch))
		f.stepsV++
		if f.gauss != nil {
			if from+size >= f.d {
				f.gauss.Judge(f.meanLoss())
			}
			f.gauss.Mix(len(f.batch), f.stepsV)
		}
		f.run(stepColumns, f.piecesV())
		if err := f.pool.Err(); err != nil {
			return err
		}
	}
	return nil
}

// stepRowV makes Adam's step of row t of Ṽ after a batch. The gradient is Ṽ̄ = V∘Σ_i U_iᵀw̄_i, here
// summed in the order of the batch; for one batch of all rows visitAll has summed it.
func (f *qmfFit) stepRowV(_, t int) {
	lo, hi := t*f.np, (t+1)*f.np
	g, v, lv := f.gradV[lo:hi], f.v[lo:hi], f.logV[lo:hi]
	rows := f.cut.Bounds[len(f.cut.Bounds)-1]
	if !f.inflation.whole {
		rows = len(f.batch)
		clear(g)
		f.gradRowV(g, t, 0, rows)
	}
	pen := f.penaltyV(float64(rows))
	for j := range g[:f.n] {
		g[j] = float64(g[j]*v[j]) + float64(pen*lv[j])
	}
	adam.Step(lv[:f.n], g[:f.n], f.momV.Mu[lo:hi], f.momV.Nu[lo:hi], f.at.Rate, f.stepsV)
	kernel.Confine(lv[:f.n], -f.farthest, f.farthest)
	kernel.Exp(v[:f.n], lv)
}

// gradRowV adds U_iᵀw̄_i of the slots from, ..., to-1 to row t of the gradient at V.
func (f *qmfFit) gradRowV(g []float64, t, from, to int) {
	for s := from; s < to; s++ {
		kernel.Accumulate(g, f.ubatch[s*f.k+t:s*f.k+t+1], f.wbar[s*f.np:(s+1)*f.np])
	}
}

// takeRowV adds the rows of the batch to the sums of row t of the gradient at V, run by run.
func (f *qmfFit) takeRowV(_, t int) {
	lo, hi := t*f.np, (t+1)*f.np
	first, _ := f.cut.Rows()
	first += f.batch[0]
	for slot := 0; slot < len(f.batch); {
		run, end := f.cut.Run(first + slot)
		till := min(end-first, len(f.batch))
		f.gradRowV(f.sumsV.Open(first+slot, run, lo, hi), t, slot, till)
		f.sumsV.Close(first+till, run, lo, hi)
		slot = till
	}
}

// stepTileV makes the batch's step of a tile of V by the method of Gauss and Newton.
func (f *qmfFit) stepTileV(worker, t int) {
	f.gauss.StepTile(worker, t, f.v, f.penaltyV(f.gauss.Weight()))
	from, to := f.gauss.Tile(t)
	for c := range f.k {
		kernel.Confine(f.rowV(c)[from:min(to, f.n)], f.least, f.most)
	}
	f.gauss.Lay(f.v, from, to)
}

// penaltyU is the weight of the penalty in the step of row i of U, in the units of the row's loss.
// penaltyV is that in the step of V after so many rows, in the units of the whole loss.
func (f *qmfFit) penaltyU(i int) float64 {
	return min(f.penalty/float64(f.k)/f.unit(i)/max(f.LossWeight(i), divergence.Tiny), limit.Penalty)
}
func (f *qmfFit) penaltyV(rows float64) float64 {
	return min(f.penalty*rows/float64(f.k*f.n)/f.scale, limit.Penalty)
}

// qmfState is the parameters of a shard's rows that a model is made of, at the best epoch.
type qmfState struct{ u, v, f, inc []float64 }

func (f *qmfFit) newState() *qmfState {
	return &qmfState{make([]float64, len(f.u)), make([]float64, len(f.v)), make([]float64, len(f.F)),
		make([]float64, len(f.Inc))}
}

// regularity is the penalty of the current factors. It is 0 without patience, the only reader of the
// penalty's value during a fit.
func (f *qmfFit) regularity() float64 {
	if f.penalty == 0 || f.patience == 0 {
		return 0
	}
	if f.gauss != nil {
		squares := 0.0
		for c := range f.k {
			squares += gauss.MeanLogSquare(f.rowV(c)) / float64(f.k)
		}
		return float64(f.penalty / 2 * (gauss.MeanLogSquare(f.u) + squares))
	}
	// The padding of Ṽ is 0.
	return float64(f.penalty / 2 * (meanSquare(f.logU) +
		float64(meanSquare(f.logV)*float64(f.np)/float64(f.n))))
}

// model returns the model at the best epoch on held-out cells, otherwise at the current
// state. Its error is that of the context, also where the context ended only while the model of a
// complete fit was made.
func (f *qmfFit) model(t *attempt) (fitted, error) {
	if t.best != nil {
		t.restore()
	}
	j := t.journal
	stopped, done := f.progress.finish(f.pool)
	defer done()
	q := f.hand(stopped)
	q.Start, q.Best = f.origin, j.Exact(f.meanLoss(), f.meanHeld())
	q.History, q.Validation = j.History, j.Validation
	return q, f.progress.ctx.Err()
}

// index returns the order of the rows, which warm starts are valid, the start, λ, the state of the random
// numbers and the number of steps of V.
func (f *qmfFit) index() (index []uint64) {
	for _, i := range f.order {
		index = append(index, uint64(i))
	}
	return append(monotone.AppendWarm(index, f.Warm), uint64(f.origin), math.Float64bits(f.lambda),
		uint64(f.source), uint64(f.stepsV))
}

func (f *qmfFit) walk(visit func(array section.Part, best []float64)) {
	visit(section.Positive(f.u), f.u)
	visit(section.Positive(f.v), f.v)
	visit(section.Positive(f.rowLosses), nil)
	visit(section.Positive(f.rowHeld), nil)
	if f.gauss != nil {
		a, b, numbers := f.gauss.State()
		visit(section.Positive(a), nil)
		visit(section.Finite(b), nil)
		visit(section.Positive(numbers), nil)
	} else {
		visit(section.Within(f.logU, -f.farthest, f.farthest), nil)
		visit(section.Within(f.logV, -f.farthest, f.farthest), nil)
		monotone.WalkMoments(visit, f.momU)
		monotone.WalkMoments(visit, f.momV)
	}
	f.Maps.Walk(visit, monotone.Kept{F: f.F, Inc: f.Inc})
}

// resume takes the state of a checkpoint.
func (f *qmfFit) resume(t *attempt, c *checkpoint) error {
	from := c.file
	index, err := c.fill(t, 2*f.d+4)
	if err != nil {
		return err
	}
	seen := make([]bool, f.d)
	for k, i := range index[:f.d] {
		if i >= uint64(f.d) || seen[i] {
			return from.failAt("IDX0", k, "an index is out of range")
		}
		if f.inflation.whole && i != uint64(k) {
			return from.failAt("IDX0", k, "one batch of all rows has another order")
		}
		seen[i], f.order[k] = true, int(i)
	}
	if err := formatError(monotone.TakeWarm(from.File, f.Warm, index, f.d)); err != nil {
		return err
	}
	origin := index[2*f.d]
	if origin > uint64(StartSVD) {
		return from.failAt("IDX0", 2*f.d, "there is no such start")
	}
	lambda, err := from.shrinkage(index, 2*f.d+1)
	if err != nil {
		return err
	}
	size := min(f.batchRows, f.d)
	steps := c.epoch * ((f.d + size - 1) / size)
	if index[2*f.d+3] != uint64(steps) {
		return from.failAt("IDX0", 2*f.d+3, "the steps of V are not those of so many epochs")
	}
	f.origin, f.lambda = Start(origin), lambda
	f.source, f.stepsV = random.Source(index[2*f.d+2]), steps
	return nil
}

// shrinkage returns λ, the number at position at of section IDX0 of a checkpoint.
func (f *file) shrinkage(index []uint64, at int) (float64, error) {
	lambda := math.Float64frombits(index[at])
	if !(lambda >= 0 && lambda <= 1e30) {
		return 0, f.failAt("IDX0", at, "the shrinkage is "+ftoa(lambda))
	}
	return lambda, nil
}

// solved returns the potentials of the solved transport of T_i.
func (q *QMF) solved(i int) transport.Potentials {
	return transport.Potentials{H: q.potentials.Row(i), Center: q.center[i], Squash: q.squash[i]}
}

// fill fills t, padded, with T_i of w = (UV)_i from the stored potentials.
func (q *QMF) fill(r *transport.Row, t, w []float64, i int) {
	r.Evaluate(w, q.solved(i), q.epsilon)
	r.Average(t, q.Quantiles.Row(i))
	r.Order(t, q.Quantiles.Row(i))
}

// Reconstruct returns T(UV), d × n. Cost: 2dnk flops, and d rows of nm exponentials or products.
func (q *QMF) Reconstruct() Mat {
	fill, _ := q.filler(context.Background())
	return fill.matrix(q.U.Rows, q.V.Cols)
}

func (q *QMF) filler(context.Context) (filler, error) {
	n := q.V.Cols
	var r transport.Row
	if n > 0 { // else it is the zero value
		r.Resize(n, q.Quantiles.Cols)
	}
	w, t := make([]float64, n), make([]float64, kernel.Pad(n))
	return func(row []float64, i int) {
		product(w, q.U.Row(i), q.V)
		q.fill(&r, t, w, i)
		copy(row, t)
	}, nil
}

// Loss returns the mean divergence of x, d × n, from Reconstruct(), under the
// loss that was fitted. Where the fit was WithMissingValues, NaN cells are left
// out. Errors and cost are those of [NMF.Loss].
func (q *QMF) Loss(x Rows) (float64, error) { return lossOf(q, x) }

// Map returns T_i, from the scale of (UV)_i to that of feature i, 0 <= i < d; another i
// is a [*ShapeError].
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

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (q *QMF) MarshalBinary() ([]byte, error) {
	if err := q.writable(kinds.QMF, math.SmallestNonzeroFloat64); err != nil {
		return nil, err
	}
	return section.Encode(kinds.QMF, q.sections()), nil
}

// leastQuantile is the least quantile that a file may have: only Frobenius takes an x below 0.
func (q *QMF) leastQuantile() float64 {
	if q.loss == divergence.Frobenius {
		return -limit.Map
	}
	return 0
}

// sumsTo1 returns the sum of the weights of row i, and whether it is 1 to rounding.
func (q *QMF) sumsTo1(i int) (sum float64, ok bool) {
	for _, w := range q.Weights.Row(i) {
		sum += w
	}
	return sum, math.Abs(sum-1) <= 1e-9
}

// writable reports the first exported field that has what no reader of a file of the kind would take.
func (q *QMF) writable(kind uint32, low float64) error {
	if err := q.Factorisation.writable(kind, low, math.MaxFloat64); err != nil {
		return err
	}
	for _, m := range [...]struct {
		name      string
		m         Mat
		low, high float64
	}{
		{"Quantiles", q.Quantiles, q.leastQuantile(), limit.Map},
		{"Weights", q.Weights, math.SmallestNonzeroFloat64, 1},
	} {
		if err := m.m.within(m.name, m.low, m.high); err != nil {
			return err
		}
		if p := &q.potentials; m.m.Rows != p.Rows || m.m.Cols != p.Cols {
			return &ShapeError{What: m.name, Got: m.m.size(), Want: p.size() + ", as fitted"}
		}
	}
	if d := q.potentials.Rows; q.U.Rows != d {
		return &ShapeError{What: "U", Got: q.U.size(), Want: itoa(d) + " rows, as fitted"}
	}
	for i := range q.Weights.Rows {
		if l := q.Quantiles.falls(i); l > 0 {
			return &DataError{Row: i, Col: l, Value: q.Quantiles.At(i, l),
				Problem: "Quantiles must not fall within a row"}
		}
		if sum, ok := q.sumsTo1(i); !ok {
			return &DataError{Row: i, Col: -1, Value: sum, Problem: "Weights of a row must have the sum 1"}
		}
	}
	if q.Start > StartSVD {
		return &DataError{Row: -1, Col: -1, Value: float64(q.Start),
			Problem: "Start must be one of the Start constants"}
	}
	if problem := option.Shrinkage.Check(q.Shrinkage); problem != "" {
		return &DataError{Row: -1, Col: -1, Value: q.Shrinkage, Problem: "Shrinkage " + problem}
	}
	return nil
}

func (q *QMF) sections() []section.Section {
	d, m := q.Quantiles.Dims()
	rows := make([]float64, 0, 6*d)
	for i, s := range q.squash {
		rows = append(rows, q.center[i], float64(s.Kind), s.Ref, s.Shift, s.Std, q.marginal[i])
	}
	return append(q.Factorisation.sections(m, q.epsilon),
		section.Floats("QUAN", flat(q.Quantiles)), section.Floats("WGHT", flat(q.Weights)),
		section.Floats("POTN", flat(q.potentials)), section.Floats("ROWS", rows),
		section.Words("TOOK", uint64(q.Start), math.Float64bits(q.Shrinkage)))
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kinds.QMF)
	if err != nil {
		return err
	}
	n, err := f.readQMF(math.SmallestNonzeroFloat64)
	if err != nil {
		return err
	}
	*q = *n
	return nil
}

// readQMF reads the sections of a QMF, whose factors are not below low.
func (f *file) readQMF(low float64) (*QMF, error) {
	n := &QMF{epsilon: f.epsilon}
	err := f.common(&n.Factorisation, low)
	if err != nil {
		return nil, err
	}
	for _, sec := range []struct {
		tag       string
		to        *Mat
		low, high float64
	}{
		{"QUAN", &n.Quantiles, n.leastQuantile(), limit.Map},
		{"WGHT", &n.Weights, math.SmallestNonzeroFloat64, 1},
		{"POTN", &n.potentials, -limit.Map, limit.Map},
	} {
		if *sec.to, err = f.matrixIn(sec.tag, f.d, f.m, sec.low, sec.high); err != nil {
			return nil, err
		}
	}
	took, err := f.words("TOOK", 2)
	if err != nil {
		return nil, err
	}
	n.Start, n.Shrinkage = Start(took[0]&255), math.Float64frombits(took[1])
	if took[0] > uint64(StartSVD) {
		return nil, f.failAt("TOOK", 0, "there is no such start")
	}
	if !(n.Shrinkage >= 0 && n.Shrinkage <= 1e30) {
		return nil, f.failAt("TOOK", 1, "the shrinkage is "+ftoa(n.Shrinkage))
	}
	rows, err := f.matrixIn("ROWS", f.d, 6, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return nil, err
	}
	for i := range f.d {
		r := rows.Row(i)
		if !(math.Abs(r[0]) <= limit.Map) {
			return nil, f.failAt("ROWS", 6*i, "the centre of row "+itoa(i)+" is "+ftoa(r[0]))
		}
		if r[5] < 0 {
			return nil, f.failAt("ROWS", 6*i+5, "the marginal error of row "+itoa(i)+" is "+ftoa(r[5]))
		}
		s, err := f.squash("ROWS", 6*i+1, r[1:5])
		if err != nil {
			return nil, err
		}
		n.center = append(n.center, r[0])
		n.squash = append(n.squash, s)
		n.marginal = append(n.marginal, r[5])
		if sum, ok := n.sumsTo1(i); !ok {
			return nil, f.failAt("WGHT", i*f.m, "the weights of row "+itoa(i)+" sum to "+ftoa(sum))
		}
		if err := f.rising("QUAN", n.Quantiles, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// WriteTo writes the model as a file. Errors: those of MarshalBinary, and of w.
func (q *QMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, q.MarshalBinary) }

// ReadFrom reads a model until the end of r. Errors: those of UnmarshalBinary, and of r.
func (q *QMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, q.UnmarshalBinary) }

func (q *QMF) bounds() *config {
	return &config{settings: settings{loss: q.loss, missing: q.missing, mapped: true}}
}

// Goodness is that of [NMF.Goodness].
func (q *QMF) Goodness(x Rows) ([]Goodness, error) { return goodnessOf(q, x) }

// TopFeatures is that of [NMF.TopFeatures].
func (q *QMF) TopFeatures(x Rows, count int) ([][]Top, error) { return featuresOf(q, x, count) }

// Bend returns, for each of the d features, how far T_i is from a straight line over the
// samples: 1-R² of the best straight line through the fitted values as a function of
// (UV)_i, in [0,1]. 0: the scale of the feature was kept up to a shift and a factor, or
// the fitted row is constant. Near 1: no straight line comes close. Cost: that of
// Reconstruct.
func (q *QMF) Bend() []float64 {
	fill, _ := q.filler(context.Background())
	return bends(fill, q.U, q.V)
}

// bends returns 1-R² of the best straight line through each row of a fitted matrix as a function of
// the same row of UV.
func bends(fill filler, u, v Mat) []float64 {
	out := make([]float64, u.Rows)
	w, t := make([]float64, v.Cols), make([]float64, v.Cols)
	n := float64(len(w))
	for i := range out {
		fill(t, i)
		product(w, u.Row(i), v)
		var mw, mt float64
		for j := range w {
			mw += w[j] / n
			mt += t[j] / n
		}
		var ww, wt, tt, scale float64
		for j := range w {
			scale = max(scale, math.Abs(t[j]-mt))
		}
		for j := range w {
			dw, dt := w[j]-mw, (t[j]-mt)/scale
			ww += float64(dw * dw)
			wt += float64(dw * dt)
			tt += float64(dt * dt)
		}
		if ww > 0 && tt > 0 && slices.Min(t) < slices.Max(t) {
			out[i] = min(max(1-float64(wt/ww*(wt/tt)), 0), 1)
		}
	}
	return out
}

// MarginalErrors returns, for each feature, the relative column error of its
// transport when the fit ended.
func (q *QMF) MarginalErrors() []float64 { return append([]float64(nil), q.marginal...) }

// hand solves every row once more and returns the model as it stands, without its
// histories. Row losses are exact then. A row that has no map yet gets its mean as T_i.
//
// Once stopped returns true, the losses are those of T as the solve leaves it, the same but for
// rounding: M is not made anew from the potentials and samples are not brought into order, which
// saves more than half of the time.
func (f *inflation) hand(stopped func() bool) *QMF {
	d, m := f.d, f.M
	q := &QMF{
		Factorisation: Factorisation{U: f.matU(), V: f.matV(), loss: f.loss, missing: f.cells.missing},
		Quantiles:     NewMat(d, m), Weights: NewMat(d, m), Shrinkage: f.lambda,
		potentials: NewMat(d, m), center: make([]float64, d), squash: make([]transport.Squash, d),
		marginal: make([]float64, d), epsilon: f.epsilon,
	}
	ends := make([]transport.Outcome, d)
	f.pool.Do(d, func(worker, i int) { ends[i] = f.handRow(q, &f.spaces[worker], i, stopped()) })
	for i, o := range ends {
		if !o.Converged && !f.Constant(i) {
			q.Warnings = append(q.Warnings, notConverged(o, i, f.tolerance))
		}
	}
	return q
}

// handRow fills what q has of row i, and returns how its solve ended. stopped is what hand's stopped has
// returned.
func (f *inflation) handRow(q *QMF, v *rowSpace, i int, stopped bool) transport.Outcome {
	if !slices.ContainsFunc(f.Increments(i), func(d float64) bool { return d != 0 }) {
		f.handMean(q, v, i, stopped)
		return transport.Outcome{Converged: true}
	}
	row := q.Quantiles.Row(i)
	f.Quantiles(row, i)
	if f.Pinned { // the last is not left to the sum
		row[f.M-1] = f.High[i]
		for l := range row {
			row[l] = min(row[l], f.High[i])
		}
	}
	f.load(v, i)
	if stopped {
		v.row.Want(v.t, row)
	}
	end := v.row.Solve(f.tolerance, f.maxIterations, &f.Warm[i])
	copy(q.potentials.Row(i), v.row.Potentials().H)
	q.take(v, i, end.Error)
	if !stopped {
		q.fill(v.row, v.t, v.w[:f.n], i)
	}
	f.judgeModel(v, i)
	return end
}

// handMean fills what q has of row i with a map that is its mean everywhere: for a row that is constant or
// has no map yet.
func (f *inflation) handMean(q *QMF, v *rowSpace, i int, stopped bool) {
	at := f.Average[i]
	if f.Constant(i) {
		at = f.Low[i]
	}
	f.Increments(i)[0] = at
	f.Quantiles(q.Quantiles.Row(i), i)
	if stopped { // the squash as if all samples were equal: the map is constant either progress
		v.observed = f.cells.readRow(v.x, v.mask, i)
		transport.Softmax(q.Weights.Row(i), f.Logits(i))
		q.squash[i].Kind = transport.Kind(f.squash)
		q.center[i] = q.squash[i].At(0)
	} else {
		f.load(v, i)
		q.take(v, i, 0)
	}
	for j := range v.t {
		v.t[j] = at
	}
	f.judgeModel(v, i)
}

// take fills what the model has of the transport of row i, which the workspace holds, but for its potentials.
func (q *QMF) take(v *rowSpace, i int, marginal float64) {
	_, b := v.row.Weights()
	at := v.row.Potentials()
	copy(q.Weights.Row(i), b)
	q.center[i], q.squash[i], q.marginal[i] = at.Center, at.Squash, marginal
}

// judgeModel computes the losses of row i from T_i in v.t as [QMF.Loss] does, whose floor is not above that
// of a fit.
func (f *inflation) judgeModel(v *rowSpace, i int) {
	low := min(f.loss.Least(), f.lowest(i))
	f.loss.Terms(v.g[:f.n], v.s[:f.n], v.x, v.t, low)
	f.rowLosses[i] = f.loss.Sum(v.x[:f.n], v.t, v.g, v.observed, low)
	f.rowHeld[i] = f.heldLoss(f.loss, v.t, i, low, v.about)
}
