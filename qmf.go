package quantmf

// This file holds quantile matrix factorisation (paper §3.4, Eq. (QMF)),
//
//	min over Ũ, Ṽ, F, q, s of  Σ_i Δ(X_i, T_i((UV)_i)),
//	U = exp Ũ,  V = exp Ṽ,  b_i = softmax F_i,  T_i(w) = s_i w + T_{ε,b_i,q_i}(w).
//
// The line s_i w is not in the paper (line.go); s = 0 is the paper's model. An epoch visits all rows in
// batches. Where all rows are one batch, 64 rows are visited at a time. A visit makes the steps of T_i
// (inflate.go) and of U_i; V makes a step once a batch (factorsteps.go).

import (
	"context"
	"github.com/quantmf/quantmf/internal/fit"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// QMF is a fitted X ≈ T(UV). It is not changed by its methods and may be used by
// several goroutines at once.
type QMF struct {
	Factorisation
	// Quantiles and Weights (d × m) hold q_i, non-decreasing, and b_i, of sum 1.
	Quantiles, Weights Mat
	Slopes             []float64 // s_i >= 0, d numbers: T_i(w) = s_i w + M_i(w) q_i
	Start              Start     // where the fit started; StartAuto after WithInit alone
	Shrinkage          float64   // λ of WithShrinkage: as given, or as chosen by the data
	Line               float64   // τ of WithLine: as given, or as chosen by the data

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
			line: -1,
		},
		restarts: 1,
	}
}

// adamRate is the default learning rate where Adam steps U and V.
const adamRate = 0.06

// gaussian tells whether U and V of a QMF of rank k make Gauss–Newton steps.
// Adam steps them in four cases:
//   - under StartUniform, which is the paper's form;
//   - under SquashNone, where a change of w moves T through its potentials more than through the
//     slopes T'_j (inflation.curvature), so that steps by the slopes alone go far too far;
//   - for β < -1/2, where the curvature at x = T differs much from that at an x above T;
//   - above 32 components: Gauss–Newton steps cost 2k(k+1) flops a cell and
//     k(k+1)/2 numbers a sample, and from about 40 components on twenty epochs of Adam take less time.
func (s *settings) gaussian(k int) bool {
	return s.start != StartUniform && s.squash != SquashNone && s.loss >= -0.5 && k <= 32
}

// pace returns the pace of Adam in epoch e, counted from 0.
func (s *settings) pace(e int) monotone.Pace {
	rate := s.learningRate
	if s.schedule == ScheduleCosine {
		rate *= monotone.Cosine(float64(e) / float64(s.epochs))
	}
	return monotone.Pace{Rate: rate, Count: e + 1}
}

// settleQMF sets the defaults of epochs and learning rate where Adam steps U and V. qmfDefaults has
// those for Gauss–Newton steps, of which the data may choose to make none.
func (c *config) settleQMF(rank int) {
	if c.gaussian(rank) {
		c.mayRest = !c.given.Has(option.Epochs) && c.validation == 0 && c.patience == 0
		return
	}
	if !c.given.Has(option.Epochs) {
		c.epochs = 20
	}
	if !c.given.Has(option.LearningRate) {
		c.learningRate = adamRate
	}
}

// FitQMF fits x, d features × n samples, by T(UV) of rank k >= 1, one increasing map T_i a feature: a line
// and a soft quantile map, see [WithLine]. x is finite, of magnitude at most 1e60, and non-negative; under
// [WithLoss]([Frobenius]) it may have any sign.
//
// x may be in any unit: beyond 2^±100 it is divided by a power of two, and the factors belong to the
// divided x. Quantiles and losses are always in the units of x. A constant added to a row
// of a signed x is added to the row's quantiles, and changes nothing else.
//
// In an epoch quantile values and slopes of lines make EM steps, the weights of the levels steps of Adam, and
// U and V Gauss–Newton steps. Adam steps all of them under [StartUniform], which is the paper's form, and U
// and V also under [SquashNone], for β < -1/2, and where k is above 32.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 4 epochs with Adam at 0.2 falling to 0 by cosine
// (where Adam steps U and V: 20 epochs, 0.06), batches of 32 rows, free ends, start, shrinkage and line
// chosen by the data (see [WithStart], [WithShrinkage], [WithLine]), no penalty, seed 1, no restarts, no
// patience, no validation. These defaults predicted unseen cells best over several kinds of data
// (docs/measurements/defaults.md); to fit the observed cells more closely, take 30 epochs, no shrinkage, a
// smaller ε.
//
// Where unseen cells are predicted best before the first of the 4 epochs, by the cells by which start,
// shrinkage or line are chosen, the fit makes none: in tables of few rows of which one or two rule the loss
// epochs overfit. [WithEpochs], [WithPatience] and [WithValidation] keep the epochs.
//
// The first and the last entry of History are exact. The others are exact where all rows are one batch and
// under WithValidation and WithPatience; otherwise they are means over the rows, each when it was visited.
//
// Errors: [*DataError], [*ShapeError], [*OptionError]; where a row cannot be read a [*ReadError],
// without a model; under [WithStrict] a [*ConvergenceError]; when ctx ends or a progress function
// fails, the model so far with an error that wraps it.
//
// Cost of an epoch: d transports with their backward, some 100nm flops each, and 2dnk(k+3) flops for U and V
// (by Adam 6dnk). The choice takes two NMFs and 6 epochs of up to 2^16 cells.
// [MemoryOf] tells what a fit takes; docs/measurements/cost.md has times.
func FitQMF(ctx context.Context, x Rows, rank int, opts ...FitOption) (*QMF, error) {
	c := qmfDefaults()
	t, err := open(ctx, section.QMF, option.FitQMF, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(t.Cells.D, t.Cells.N); err != nil {
		return nil, err
	}
	c.settleQMF(rank)
	m, err := t.drive(ctx, t.Cells.D, new(QMF), func(run fit.Run) fit.Algorithm {
		return newQMFFit(t.Cells, rank, &c.settings, run)
	})
	q, _ := m.(*QMF)
	return q, err
}

// toUserUnits brings a model of x' to the units of x.
func (q *QMF) toUserUnits(u *fit.Units) {
	if !u.Plain() {
		for i := range q.Quantiles.Rows {
			u.Outward(q.Quantiles.Row(i), i)
			q.Slopes[i] = math.Ldexp(q.Slopes[i], u.All)
		}
	}
	u.Losses(q.divergence(), q.History)
	u.Losses(q.divergence(), q.Validation)
}

// objective is the loss that restarts are compared by: that on held-out cells, otherwise
// that on the visible cells with the penalty.
func (q *QMF) objective(c *settings) float64 {
	loss, penalty := q.judged(), c.penalty
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
	if c.line > 0 && !c.mayHaveLine() {
		return &OptionError{Option: option.Line.String(), Value: ftoa(c.line),
			Bound: "must be 0 with StartUniform and with EndsPinned, whose maps are the paper's"}
	}
	return nil
}

// qmfFit is a QMF during its fit.
type qmfFit struct {
	*inflation
	steps    factorSteps
	progress fit.Progress

	// set once
	cut          pool.Runs // the runs of rows of one batch of all
	seed         uint64    // of everything random
	origin       Start     // where this fit starts
	startShare   float64   // of the epochs of its NMF; 0: hidden cells end it
	rests        bool      // it makes no epochs
	maxShrinkage float64   // the most shrinkage that the data may choose
	maxLogFactor float64   // the bound of |log U| and |log V|
	lossDelay    int       // 1 where the losses of an epoch are those of its start, else 0

	// each epoch
	order  []int // the rows in the order in which the next epoch visits them
	source random.Source
	stepsV int // how many steps V has made

	// each batch
	batch []int     // the rows that are visited next; an index into batch is called a slot
	wbar  []float64 // slots × np: the gradients at w, in units of the rows' losses
}

func newQMFFit(visible *fit.Cells, rank int, s *settings, run fit.Run) *qmfFit {
	return newQMFPart(visible, rank, s, run, pool.AllRuns(visible.D))
}

// newQMFPart makes a fit of the rows in the runs of a cut alone; they are all the rows of visible.
func newQMFPart(visible *fit.Cells, rank int, s *settings, run fit.Run, cut pool.Runs) *qmfFit {
	p, seed := run.Pool, run.Seed
	d, n := visible.D, visible.N
	whole, slots := s.batchRows >= d, min(s.batchRows, d)
	if whole {
		slots = min(slots, togetherRows)
	}
	f := &qmfFit{
		inflation: newInflation(s, visible, newFactors(p.Memory, d, n, rank), p), cut: cut,
		seed: seed, source: random.Split(seed, 1), origin: s.start, order: inOrder(p.Memory, d),
		startShare: 1, maxShrinkage: math.Inf(1), maxLogFactor: factorBound(s.squash, rank),
		progress: run.Progress,
	}
	f.given, f.fixed = s.fixedU, s.fixed
	f.few = !s.whole && !visible.Whole() && fewSeen(float64(visible.Visible), d, n, rank) &&
		!p.Memory.Dry() // Newton's method takes more
	if s.lagging(d) {
		f.lossDelay = 1
	}
	f.wbar, f.do = p.Memory.Floats(slots, f.np), f.piece
	f.inflation.whole, f.evaluated = whole, f.cells.Held != nil || f.lossDelay == 0 && s.patience > 0
	if s.gaussian(rank) {
		f.stepsQ = 3 // a visit, so that the maps keep up with the factors
	}
	f.steps = newFactorSteps(f, slots)
	return f
}

// part is the run of a part of the fit.
func (f *qmfFit) part(from, to float64) fit.Run {
	return fit.Run{Pool: f.pool, Seed: f.seed, Progress: f.progress.Within(from, to)}
}

// togetherRows is how many rows are visited together where all rows are one batch. The fit holds the
// gradients w̄ of that many rows.
const togetherRows = 64

// inOrder returns 0, 1, ..., d-1.
func inOrder(a *pool.Arena, d int) []int {
	order := pool.Make[int](a, d)
	for i := range order {
		order[i] = i
	}
	return order
}

// rowWbar is the gradient at w of the row in a slot.
func (f *qmfFit) rowWbar(slot int) []float64 { return f.wbar[slot*f.np : (slot+1)*f.np] }

// piece does a piece of the op that runs.
func (f *qmfFit) piece(worker, piece int) {
	switch f.op {
	case visitRows:
		f.visit(worker, piece)
	case evaluateRows:
		f.evaluate(&f.spaces[worker], piece)
	case accumulate:
		f.steps.accumulate(worker, piece)
	case stepColumns:
		f.steps.stepColumns(worker, piece)
	}
}

// visit makes the steps of T_i and U_i for the row in a slot.
func (f *qmfFit) visit(worker, slot int) {
	v, i := &f.spaces[worker], f.batch[slot]
	f.visitMap(v, i, f.rowWbar(slot), f.steps.curvature(slot))
	if f.Constant(i) {
		f.steps.skipRow(slot)
	} else {
		f.steps.stepRow(worker, slot, v)
	}
}

// Epoch visits every row once: several batches in a new random order, one batch of all rows in the
// order of their numbers.
func (f *qmfFit) Epoch(e int) (fit.Losses, error) {
	if err := f.pool.Err(); err != nil {
		return fit.Losses{}, err
	}
	f.at = f.pace(e)
	penalty, err := f.regularity(), error(nil)
	if f.inflation.whole {
		if err = f.visitAll(); err == nil {
			f.stepV(f.d, true)
			err = f.pool.Err()
		}
	} else {
		err = f.visitBatches()
	}
	if err != nil {
		return fit.Losses{}, err
	}
	// The losses are those recorded by the visits, unless validation or patience judge
	// the model: then they are evaluated after the epoch.
	if f.evaluated {
		f.run(evaluateRows, f.d)
		if err := f.pool.Err(); err != nil {
			return fit.Losses{}, err
		}
		penalty = f.regularity()
	}
	return fit.Losses{Of: e + 1 - f.lossDelay, Visible: f.meanLoss(), Held: f.meanHeld(),
		Penalty: penalty}, nil
}

// visitAll visits all rows as one batch, togetherRows at a time, and sums what they add to the step
// of V.
func (f *qmfFit) visitAll() error {
	f.steps.beginEpoch()
	for from := 0; from < f.d; from += togetherRows {
		f.batch = f.order[from:min(from+togetherRows, f.d)]
		f.run(visitRows, len(f.batch))
		f.run(accumulate, f.steps.tiles())
		if err := f.pool.Err(); err != nil {
			return err
		}
	}
	return nil
}

// stepV makes the step of V after a batch of so many rows, the last of its epoch or not.
func (f *qmfFit) stepV(rows int, last bool) {
	f.stepsV++
	f.steps.endBatch(rows, last)
	f.run(stepColumns, f.steps.tiles())
}

// visitBatches visits all rows in batches of a new random order, and makes a step of V after each.
func (f *qmfFit) visitBatches() error {
	f.steps.beginEpoch()
	f.source.Shuffle(f.order)
	size := min(f.batchRows, f.d)
	for from := 0; from < f.d; from += size {
		f.batch = f.order[from:min(from+size, f.d)]
		f.run(visitRows, len(f.batch))
		f.stepV(len(f.batch), from+size >= f.d)
		if err := f.pool.Err(); err != nil {
			return err
		}
	}
	return nil
}

// regularity is the penalty of the current factors. It is 0 without patience, the only reader of the
// penalty's value during a fit.
func (f *qmfFit) regularity() float64 {
	if f.penalty == 0 || f.patience == 0 {
		return 0
	}
	return float64(f.penalty / 2 * f.steps.meanSquares())
}

// Model returns the model at the best epoch on held-out cells, otherwise at the current
// state. Its error is that of the context, also where the context ended only while the model of a
// complete fit was made.
func (f *qmfFit) Model(t *fit.Attempt) (fit.Model, error) {
	t.Restore()
	j := t.Journal
	stopped, done := f.progress.Finish(f.pool)
	defer done()
	q := f.buildModel(stopped)
	q.Start, q.Best = f.origin, j.Exact(f.meanLoss(), f.meanHeld())
	q.History, q.Validation = j.History, j.Validation
	return q, f.progress.Ctx.Err()
}

// Index returns the order of the rows, which warm starts are valid, the start, λ, τ, the state of the random
// numbers and the number of steps of V.
func (f *qmfFit) Index() (index []uint64) {
	for _, i := range f.order {
		index = append(index, uint64(i))
	}
	return append(monotone.AppendWarm(index, f.Warm), uint64(f.origin), math.Float64bits(f.lambda),
		math.Float64bits(f.line), uint64(f.source), uint64(f.stepsV))
}

func (f *qmfFit) Walk(visit func(array section.Part, best []float64)) {
	f.walkRows(visit)
	visit(section.Positive(f.v), f.v)
	f.steps.walkV(visit)
}

// walkRows shows what walk does of the rows: the state of a shard.
func (f *qmfFit) walkRows(visit func(array section.Part, best []float64)) {
	visit(section.Positive(f.u), f.u)
	visit(section.Positive(f.rowLosses), nil)
	visit(section.Positive(f.rowHeld), nil)
	f.steps.walkU(visit)
	f.Maps.Walk(visit, monotone.Kept{F: f.F, Inc: f.Inc, S: f.S})
}

// Resume takes the state of a checkpoint.
func (f *qmfFit) Resume(t *fit.Attempt, c *fit.Checkpoint) error {
	index, err := c.Fill(t, 2*f.d+5)
	if err != nil {
		return err
	}
	seen := make([]bool, f.d)
	for k, i := range index[:f.d] {
		if i >= uint64(f.d) || seen[i] {
			return c.FailAt("IDX0", k, "an index is out of range")
		}
		if f.inflation.whole && i != uint64(k) {
			return c.FailAt("IDX0", k, "one batch of all rows has another order")
		}
		seen[i], f.order[k] = true, int(i)
	}
	if err := monotone.TakeWarm(c.File, f.Warm, index, f.d); err != nil {
		return err
	}
	origin := index[2*f.d]
	if origin > uint64(StartSVD) {
		return c.FailAt("IDX0", 2*f.d, "there is no such start")
	}
	if f.lambda, f.line, err = shrinkageOf(c, index, 2*f.d+1); err != nil {
		return err
	}
	size := min(f.batchRows, f.d)
	steps := c.Epoch * ((f.d + size - 1) / size)
	if index[2*f.d+4] != uint64(steps) {
		return c.FailAt("IDX0", 2*f.d+4, "the steps of V are not those of so many epochs")
	}
	f.origin = Start(origin)
	f.source, f.stepsV = random.Source(index[2*f.d+3]), steps
	return nil
}

// shrinkageOf returns λ and τ, the numbers at position at of section IDX0 of a checkpoint and after it.
func shrinkageOf(c *fit.Checkpoint, index []uint64, at int) (lambda, line float64, err error) {
	lambda, line = math.Float64frombits(index[at]), math.Float64frombits(index[at+1])
	if option.Shrinkage.Check(lambda) != "" {
		return 0, 0, c.FailAt("IDX0", at, "the shrinkage is "+ftoa(lambda))
	}
	if option.Line.Check(line) != "" {
		return 0, 0, c.FailAt("IDX0", at+1, "the share of the line is "+ftoa(line))
	}
	return lambda, line, nil
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
	if s := q.Slopes[i]; s > 0 {
		for j, x := range w {
			t[j] += float64(s * x)
		}
	}
}

// Reconstruct returns T(UV), d × n. Cost: 2dnk flops, and d rows of nm exponentials or products.
func (q *QMF) Reconstruct() Mat {
	fill, err := q.filler(context.Background())
	if err != nil {
		return Mat{}
	}
	return fill.matrix(q.Dims())
}

func (q *QMF) filler(context.Context) (filler, error) {
	if err := usable(q); err != nil {
		return nil, err
	}
	return q.rows(), nil
}

// rows fills rows of T(UV).
func (q *QMF) rows() filler {
	n := q.V.Cols
	var r transport.Row
	r.Resize(n, q.Quantiles.Cols)
	w, t := make([]float64, n), make([]float64, kernel.Pad(n))
	return func(row []float64, i int) {
		product(w, q.U.Row(i), q.V)
		q.fill(&r, t, w, i)
		copy(row, t)
	}
}

// Map returns T_i, from the scale of (UV)_i to that of feature i, 0 <= i < d; another i
// is a [*ShapeError].
func (q *QMF) Map(i int) (*Map, error) {
	if err := q.unchanged(nil); err != nil {
		return nil, err
	}
	if d := q.potentials.Rows; uint(i) >= uint(d) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(d-1)}
	}
	if err := q.seals[2].check(field{"Quantiles", q.Quantiles}, i, i+1); err != nil {
		return nil, err
	}
	if err := q.seals[4].check(q.slopes(), i, i+1); err != nil {
		return nil, err
	}
	return q.mapOf(i), nil
}

// mapOf returns T_i.
func (q *QMF) mapOf(i int) *Map {
	f := newMap(q.solved(i), q.Quantiles.Row(i), nil, q.epsilon)
	f.line = q.Slopes[i]
	return f
}

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (q *QMF) MarshalBinary() ([]byte, error) {
	return fileOf(q)
}

func (q *QMF) encode() []byte { return section.Encode(section.QMF, q.sections()) }

// leastQuantile is the least quantile that a file may have: only Frobenius takes an x below 0.
func (q *QMF) leastQuantile() float64 {
	if q.loss == Frobenius {
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

// rowNumbers is how many numbers section ROWS has of a row.
const rowNumbers = 7

func (q *QMF) sections() []section.Section {
	d, m := q.Quantiles.Dims()
	rows := make([]float64, 0, rowNumbers*d)
	for i, s := range q.squash {
		rows = append(rows, q.center[i], float64(s.Kind), s.Ref, s.Shift, s.Std, q.marginal[i], q.Slopes[i])
	}
	return append(q.Factorisation.sections(m, q.epsilon),
		section.Floats("QUAN", flat(q.Quantiles)), section.Floats("WGHT", flat(q.Weights)),
		section.Floats("POTN", flat(q.potentials)), section.Floats("ROWS", rows),
		section.Words("TOOK", uint64(q.Start), math.Float64bits(q.Shrinkage), math.Float64bits(q.Line)))
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, section.QMF)
	if err != nil {
		return err
	}
	n, err := f.readQMF(math.SmallestNonzeroFloat64)
	if err != nil {
		return err
	}
	*q = *n
	sealFields(q)
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
	if len(f.Payload("TOOK")) == 16 {
		return nil, f.fail("TOOK", "an earlier version wrote the file, whose maps had no line: fit again")
	}
	took, err := f.words("TOOK", 3)
	if err != nil {
		return nil, err
	}
	n.Start = Start(took[0] & 255)
	n.Shrinkage, n.Line = math.Float64frombits(took[1]), math.Float64frombits(took[2])
	if took[0] > uint64(StartSVD) {
		return nil, f.failAt("TOOK", 0, "there is no such start")
	}
	if option.Shrinkage.Check(n.Shrinkage) != "" {
		return nil, f.failAt("TOOK", 1, "the shrinkage is "+ftoa(n.Shrinkage))
	}
	if option.Line.Check(n.Line) != "" {
		return nil, f.failAt("TOOK", 2, "the share of the line is "+ftoa(n.Line))
	}
	rows, err := f.matrixIn("ROWS", f.d, rowNumbers, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return nil, err
	}
	for i := range f.d {
		r := rows.Row(i)
		if !(math.Abs(r[0]) <= limit.Map) {
			return nil, f.failAt("ROWS", rowNumbers*i, "the centre of row "+itoa(i)+" is "+ftoa(r[0]))
		}
		if r[5] < 0 {
			return nil, f.failAt("ROWS", rowNumbers*i+5,
				"the marginal error of row "+itoa(i)+" is "+ftoa(r[5]))
		}
		if r[6] < 0 {
			return nil, f.failAt("ROWS", rowNumbers*i+6, "the slope of row "+itoa(i)+" is "+ftoa(r[6]))
		}
		s, err := f.squash("ROWS", rowNumbers*i+1, r[1:5])
		if err != nil {
			return nil, err
		}
		n.center = append(n.center, r[0])
		n.squash = append(n.squash, s)
		n.marginal = append(n.marginal, r[5])
		n.Slopes = append(n.Slopes, r[6])
		if sum, ok := n.sumsTo1(i); !ok {
			return nil, f.failAt("WGHT", i*f.m, "the weights of row "+itoa(i)+" sum to "+ftoa(sum))
		}
		if err := f.rising("QUAN", n.Quantiles, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Bend returns, for each of the d features, how far T_i is from a straight line over the samples: 1-R² of the
// best straight line through the fitted values as a function of (UV)_i, in [0,1]. Samples whose (UV)_i is far
// from that of at least 49 in 50 others do not count: they would make a curve of any line that they do not
// lie on. 0: the scale of the feature was kept up to a shift and a factor, or the fitted row is constant.
// Near 1: no straight line comes close. Cost: that of Reconstruct.
func (q *QMF) Bend() []float64 {
	return bendsOf(q)
}

// bendsOf is the Bend of a model.
func bendsOf(m interface {
	Model
	sealed
}) []float64 {
	fill, err := m.filler(context.Background())
	if err != nil {
		return nil
	}
	return bends(fill, m.common().U, m.common().V)
}

// bends returns 1-R² of the best straight line through each row of a fitted matrix as a function of
// the same row of UV.
func bends(fill filler, u, v Mat) []float64 {
	out := make([]float64, u.Rows)
	w, t := make([]float64, v.Cols), make([]float64, v.Cols)
	for i := range out {
		fill(t, i)
		product(w, u.Row(i), v)
		low, high := order.Bulk(w)
		bulk := 0
		for j := range w {
			if w[j] >= low && w[j] <= high {
				w[bulk], t[bulk] = w[j], t[j]
				bulk++
			}
		}
		out[i] = bend(w[:bulk], t[:bulk])
	}
	return out
}

// bend returns 1-R² of the best straight line through t as a function of w, 0 where either is constant.
func bend(w, t []float64) float64 {
	n := float64(len(w))
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
		return min(max(1-float64(wt/ww*(wt/tt)), 0), 1)
	}
	return 0
}

// MarginalErrors returns, for each feature, the relative column error of its
// transport when the fit ended.
func (q *QMF) MarginalErrors() []float64 { return append([]float64(nil), q.marginal...) }

// newQMF makes room for d maps of m levels.
func newQMF(a *pool.Arena, d, m int) *QMF {
	mat := func() Mat { return Mat{Rows: d, Cols: m, Data: a.Floats(d, m), Stride: m} }
	return &QMF{Quantiles: mat(), Weights: mat(), potentials: mat(), Slopes: a.Floats(d), center: a.Floats(d),
		squash: pool.Make[transport.Squash](a, d), marginal: a.Floats(d)}
}

// buildModel solves every row once more and returns the model as it stands, without its
// histories. Row losses are exact then. A row that has no map yet gets its mean as T_i.
//
// Once stopped returns true, the losses are those of T as the solve leaves it, the same but for
// rounding: M is not made anew from the potentials and samples are not brought into order, which
// saves more than half of the time.
func (f *inflation) buildModel(stopped func() bool) *QMF {
	d := f.d
	q := newQMF(f.pool.Memory, d, f.M)
	q.Factorisation = Factorisation{U: f.matU(), V: f.matV(), loss: lossOf(f.loss), missing: f.cells.Missing,
		mapped: true}
	q.Shrinkage, q.Line, q.epsilon = f.lambda, f.line, f.epsilon
	ends := make([]transport.Outcome, d)
	f.pool.Do(d, func(worker, i int) { ends[i] = f.buildRow(q, &f.spaces[worker], i, stopped()) })
	for i, o := range ends {
		if !o.Converged && !f.Constant(i) {
			q.Warnings = append(q.Warnings, notConverged(o, i, f.tolerance))
		}
	}
	return q
}

// buildRow fills what q has of row i, and returns how its solve ended. stopped is what buildModel's stopped
// has returned.
func (f *inflation) buildRow(q *QMF, v *rowSpace, i int, stopped bool) transport.Outcome {
	if !slices.ContainsFunc(f.Increments(i), func(d float64) bool { return d != 0 }) {
		f.buildMeanRow(q, v, i, stopped)
		return transport.Outcome{Converged: true}
	}
	row := q.Quantiles.Row(i)
	f.Quantiles(row, i)
	q.Slopes[i] = f.Slope(i)
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
	q.setTransport(v, i, end.Error)
	if stopped {
		f.addLine(v, i)
	} else {
		q.fill(v.row, v.t, v.w[:f.n], i)
	}
	f.noteModelLosses(v, i)
	return end
}

// buildMeanRow fills what q has of row i with a map that is its mean everywhere: for a row that is constant
// or has no map yet.
func (f *inflation) buildMeanRow(q *QMF, v *rowSpace, i int, stopped bool) {
	at := f.Average[i]
	if f.Constant(i) {
		at = f.Low[i]
	}
	f.Increments(i)[0] = at
	f.Quantiles(q.Quantiles.Row(i), i)
	if stopped { // the squash as if all samples were equal: the map is constant either progress
		f.read(v, i)
		transport.Softmax(q.Weights.Row(i), f.Logits(i))
		q.squash[i].Kind = transport.Kind(f.squash)
		q.center[i] = q.squash[i].At(0)
	} else {
		f.load(v, i)
		q.setTransport(v, i, 0)
	}
	for j := range v.t {
		v.t[j] = at
	}
	f.noteModelLosses(v, i)
}

// setTransport fills what the model has of the transport of row i, which the workspace holds, but for its
// potentials.
func (q *QMF) setTransport(v *rowSpace, i int, marginal float64) {
	_, b := v.row.Weights()
	at := v.row.Potentials()
	copy(q.Weights.Row(i), b)
	q.center[i], q.squash[i], q.marginal[i] = at.Center, at.Squash, marginal
}

// noteModelLosses computes the losses of row i from T_i in v.t as [QMF.Loss] does, whose floor is not above
// that of a fit.
func (f *inflation) noteModelLosses(v *rowSpace, i int) {
	low := min(f.loss.Least(), f.lowest(i))
	if v.weights != nil {
		f.rowLosses[i] = f.loss.WeightedSum(v.x[:f.n], v.t, v.weights, low)
	} else {
		f.loss.Terms(v.g[:f.n], v.s[:f.n], v.x, v.t, low)
		f.rowLosses[i] = f.loss.Sum(v.x[:f.n], v.t, v.g, v.observed, low)
	}
	f.rowHeld[i] = f.cells.HeldLoss(f.loss, v.t, i, low, v.about)
}

func (q *QMF) fields() (used, told []field) {
	return []field{{"U", q.U}, {"V", q.V}, {"Quantiles", q.Quantiles}, {"Weights", q.Weights},
			q.slopes()},
		append(q.told(), listed("Start", float64(q.Start)), listed("Shrinkage", q.Shrinkage),
			listed("Line", q.Line))
}

// slopes is the field Slopes, a row each.
func (q *QMF) slopes() field {
	return field{"Slopes", Mat{Rows: len(q.Slopes), Cols: 1, Stride: 1, Data: q.Slopes}}
}

func (q *QMF) readable() ([]byte, error) {
	file := q.encode()
	return file, new(QMF).UnmarshalBinary(file)
}
