package qmf

// This file holds the fit of a QMF, X ≈ T(UV), as the driver calls it. An epoch visits all rows in
// batches. Where all rows are one batch, 64 rows are visited at a time. A visit makes the steps of T_i
// (inflate.go) and of U_i; V makes a step once a batch (factorsteps.go).

import (
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

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

// FitQMF returns the fit of a QMF of the visible cells.
func FitQMF(visible *fit.Cells, rank int, s *Settings, run fit.Run) fit.Algorithm {
	return newQMFFit(visible, rank, s, run)
}

func newQMFFit(visible *fit.Cells, rank int, s *Settings, run fit.Run) *qmfFit {
	return newQMFPart(visible, rank, s, run, pool.AllRuns(visible.D))
}

// newQMFPart makes a fit of the rows in the runs of a cut alone; they are all the rows of visible.
func newQMFPart(visible *fit.Cells, rank int, s *Settings, run fit.Run, cut pool.Runs) *qmfFit {
	p, seed := run.Pool, run.Seed
	d, n := visible.D, visible.N
	whole, slots := s.BatchRows >= d, min(s.BatchRows, d)
	if whole {
		slots = min(slots, togetherRows)
	}
	f := &qmfFit{
		inflation: newInflation(s, visible, newFactors(p.Memory, d, n, rank), p), cut: cut,
		seed: seed, source: random.Split(seed, 1), origin: s.Start, order: inOrder(p.Memory, d),
		startShare: 1, maxShrinkage: math.Inf(1), maxLogFactor: s.FactorBound(rank),
		progress: run.Progress,
	}
	f.given, f.fixed = s.FixedU, s.Fixed
	f.few = !s.Whole && !visible.Whole() && FewSeen(float64(visible.Visible), d, n, rank) &&
		!p.Memory.Dry() // Newton's method takes more
	if s.Lagging(d) {
		f.lossDelay = 1
	}
	f.wbar, f.do = p.Memory.Floats(slots, f.np), f.piece
	f.inflation.whole, f.evaluated = whole, f.cells.Held != nil || f.lossDelay == 0 && s.Patience > 0
	if s.Gaussian(rank) {
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
	size := min(f.BatchRows, f.d)
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
	if f.Penalty == 0 || f.Patience == 0 {
		return 0
	}
	return float64(f.Penalty / 2 * f.steps.meanSquares())
}

// Made returns the QMF at the best epoch on held-out cells, otherwise at the current
// state. Its error is that of the context, also where the context ended only while the model of a
// complete fit was made.
func (f *qmfFit) Made(t *fit.Attempt) (any, error) {
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
	return append(appendWarm(index, f.Warm), uint64(f.origin), math.Float64bits(f.lambda),
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
	f.Maps.Walk(visit, kept{F: f.F, Inc: f.Inc, S: f.S})
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
	if err := TakeWarm(c.File, f.Warm, index, f.d); err != nil {
		return err
	}
	origin := index[2*f.d]
	if origin > uint64(StartSVD) {
		return c.FailAt("IDX0", 2*f.d, "there is no such start")
	}
	if f.lambda, f.line, err = shrinkageOf(c, index, 2*f.d+1); err != nil {
		return err
	}
	size := min(f.BatchRows, f.d)
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
		return 0, 0, c.FailAt("IDX0", at, "the shrinkage is "+text(lambda))
	}
	if option.Line.Check(line) != "" {
		return 0, 0, c.FailAt("IDX0", at+1, "the share of the line is "+text(line))
	}
	return lambda, line, nil
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// QMF is what a fit has made, of x'.
type QMF struct {
	Fitted
	Quantiles, Weights fit.Dense
	Slopes             []float64
	Start              Start
	Lambda, Line       float64

	Potentials fit.Dense // of the last solves, about Center
	Center     []float64
	Squash     []transport.Squash
	Marginal   []float64           // errors of the columns
	Ends       []transport.Outcome // how the last solves ended
}

// NewQMF makes room for d maps of m levels.
func NewQMF(a *pool.Arena, d, m int) *QMF {
	mat := func() fit.Dense { return fit.Dense{Rows: d, Cols: m, Data: a.Floats(d, m), Stride: m} }
	return &QMF{Quantiles: mat(), Weights: mat(), Potentials: mat(), Slopes: a.Floats(d), Center: a.Floats(d),
		Squash: pool.Make[transport.Squash](a, d), Marginal: a.Floats(d)}
}

// solved returns the potentials of the solved transport of T_i.
func (q *QMF) solved(i int) transport.Potentials {
	return transport.Potentials{H: q.Potentials.Row(i), Center: q.Center[i], Squash: q.Squash[i]}
}

// Fill fills t, padded, with T_i(w) of a map with quantiles q and slope s, from the potentials of its solved
// transport.
func Fill(r *transport.Row, t, w, q []float64, s float64, solved transport.Potentials, epsilon float64) {
	r.Evaluate(w, solved, epsilon)
	r.Average(t, q)
	r.Order(t, q)
	if s > 0 {
		for j, x := range w {
			t[j] += float64(s * x)
		}
	}
}

// buildModel solves every row once more and returns the model as it stands, without its
// histories. Row losses are exact then. A row that has no map yet gets its mean as T_i.
//
// Once stopped returns true, the losses are those of T as the solve leaves it, the same but for
// rounding: M is not made anew from the potentials and samples are not brought into order, which
// saves more than half of the time.
func (f *inflation) buildModel(stopped func() bool) *QMF {
	d := f.d
	q := NewQMF(f.pool.Memory, d, f.M)
	q.U, q.V, q.Lambda, q.Line, q.Ends = f.matU(), f.matV(), f.lambda, f.line, make([]transport.Outcome, d)
	f.pool.Do(d, func(worker, i int) { q.Ends[i] = f.buildRow(q, &f.spaces[worker], i, stopped()) })
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
	end := v.row.Solve(f.Tolerance, f.MaxIterations, &f.Warm[i])
	copy(q.Potentials.Row(i), v.row.Potentials().H)
	q.setTransport(v, i, end.Error)
	if stopped {
		f.addLine(v, i)
	} else {
		Fill(v.row, v.t, v.w[:f.n], row, q.Slopes[i], q.solved(i), f.Epsilon)
	}
	f.noteModelLosses(v, i)
	end.Converged = end.Converged || f.Constant(i)
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
		q.Squash[i].Kind = f.Squash
		q.Center[i] = q.Squash[i].At(0)
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
	q.Center[i], q.Squash[i], q.Marginal[i] = at.Center, at.Squash, marginal
}

// noteModelLosses computes the losses of row i from T_i in v.t as the model does, whose floor is not above
// that of a fit.
func (f *inflation) noteModelLosses(v *rowSpace, i int) {
	low := min(f.Loss.Least(), f.lowest(i))
	if v.weights != nil {
		f.rowLosses[i] = f.Loss.WeightedSum(v.x[:f.n], v.t, v.weights, low)
	} else {
		f.Loss.Terms(v.g[:f.n], v.s[:f.n], v.x, v.t, low)
		f.rowLosses[i] = f.Loss.Sum(v.x[:f.n], v.t, v.g, v.observed, low)
	}
	f.rowHeld[i] = f.cells.HeldLoss(f.Loss, v.t, i, low, v.about)
}
