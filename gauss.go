package quantmf

// This file holds the steps of U and V of a QMF by the method of Gauss and Newton: four epochs
// do what twenty of Adam's do. The problems in k unknowns that they come to, and how they are
// solved, are in internal/gauss.
//
// The visit of a row (inflate.go) gives w̄, the gradient of the row's mean divergence at w = (UV)_i.
// With the potentials of the row's transport and the moments of its squash held, each T_ij depends
// on its own w_ij alone, with the slope
//
//	s_j = (2/ε) Cov_{M_j}(q,y) dx̃_j/dw_j,
//
// and where x = T the divergence has the second derivative T^{β-2} in T. So the curvature in w is
//
//	a_j = T_j^{β-2} s_j²/n_i,
//
// n_i the visible cells of the row. That is Fisher's scoring; the second derivative at x itself,
// x T^{-2} under KL, makes steps too short where x is far above T. w̄ and a make a quadratic model of
// the row in w. U_i goes towards its least, and the models of the rows of one epoch, which
// fade as new ones come, are what V takes a step of once a batch. w̄ is exact at every visit.
//
// A visit makes three EM steps on q, so that the maps keep up with the factors; F takes Adam's
// steps. U and V take Adam's, too (qmf.go), in four cases: under StartUniform, which is the
// paper's form; under SquashNone, where T follows w by its potentials more than by s, and steps
// by s alone go far too far; for β < -1/2, where the curvature at x = T says little of that at x
// above T; and with more than mostGauss components.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/option"
)

// mostGauss is the largest rank of these steps. They cost 2k(k+1) flops a cell, and memory for
// k(k+1)/2 numbers a sample: from about 40 components on twenty epochs of Adam take less time.
const mostGauss = 32

// Of the defaults, what depends on the steps: epochs and learning rate under Gauss and
// Newton's and under Adam's.
const (
	gaussEpochs, gaussRate = 4, 0.2
	adamEpochs, adamRate   = 20, 0.06
	gaussStepsQ            = 3 // EM steps on q a visit
)

// The steps of a row of U and of a column of V.
var (
	stepU = gauss.Step{Sweeps: 4, Damp: 0.1, Low: 0.1, High: 4, Rise: 0.05, Share: 0.7}
	stepV = gauss.Step{Sweeps: 4, Damp: 0.1, Low: 0.3, High: 3, Rise: 0.02, Share: 0.7}
)

// wholeBatch is the least batch after which V goes the whole share of its step. After fewer rows it
// goes less far, as it does so more often.
const wholeBatch = 32

// gaussian tells whether U and V of a QMF of rank k take steps of Gauss and Newton's method.
func (s *settings) gaussian(k int) bool {
	return s.start != StartUniform && s.squash != SquashNone && s.loss >= -0.5 && k <= mostGauss
}

// settleQMF sets the defaults that depend on the steps.
func (c *config) settleQMF(rank int) {
	epochs, rate := gaussEpochs, gaussRate
	if !c.gaussian(rank) {
		epochs, rate = adamEpochs, adamRate
	}
	if !c.given.Has(option.Epochs) {
		c.epochs = epochs
	}
	if !c.given.Has(option.LearningRate) {
		c.learningRate = rate
	}
}

// gaussFit is what a fit by these steps has beside the factors.
type gaussFit struct {
	columns *gauss.Columns
	batch   gauss.Batch
	weight  []float64 // one number: of the rows in columns, each 1 when it comes
	rows    []*gauss.Row
	rooms   []*gauss.Room
	stepV   gauss.Step // of this batch
}

// takeGauss makes the fit take these steps.
func (f *qmfFit) takeGauss() {
	workers, batch := f.pool.Workers(), min(f.batchRows, f.d)
	g := &gaussFit{columns: gauss.NewColumns(f.k, f.np), batch: gauss.NewBatch(batch, f.k, f.np), weight: make([]float64, 1),
		rows: make([]*gauss.Row, workers), rooms: make([]*gauss.Room, workers)}
	for w := range workers {
		g.rows[w], g.rooms[w] = gauss.NewRow(f.k, f.np), gauss.NewRoom(f.k, batch)
	}
	f.gauss, f.stepsQ, f.vees = g, gaussStepsQ, f.stepTileV
}

// curvature fills a with the curvature in w of the divergence of row i, in the units of w̄. The
// row has taken its adjoint: v.q is in units of the row's mean, and v.s is T^{β-1}, 0 in hidden
// cells.
func (f *qmfFit) curvature(a []float64, v *visitor, i int) {
	v.row.Slopes(a, v.q) // s_j/n_i
	seen, low, unit := float64(f.cells.rows[i]), f.lowest(i), f.cellUnit(i)
	by := seen / (f.unit(i) * unit) / unit
	for j, s := range a[:f.n] {
		weight := by
		if f.loss != divergence.Frobenius {
			weight = by * (v.s[j] / max(v.t[j], low))
		}
		a[j] = float64(weight*s) * s
	}
	clear(a[f.n:])
}

// stepRowsU makes the steps of U for the rows that a visit has solved, and puts their models into
// the batch.
func (f *qmfFit) stepRowsU(worker, from, to int) {
	c, g := &f.work[worker], f.gauss
	for slot := from; slot < to; slot++ {
		if f.constant(f.batch[slot]) {
			g.batch.Skip(slot)
		}
	}
	row := g.rows[worker]
	for k, slot := range c.slots {
		v, i := &c.visitors[k], f.batch[slot]
		u, wbar, a := f.rowU(i), f.rowWbar(slot), g.batch.Curvature(slot)
		f.curvature(a, v, i)
		row.Model(f.v, wbar, a)
		if f.penalty > 0 {
			row.Penalise(u, f.penaltyU(i))
		}
		row.Step(u, stepU)
		confine(u, f.least, f.most)
		g.batch.Put(slot, u, v.w, wbar, f.relativeUnit(i))
	}
}

// mixBatch says what the model of V is to make of the batch: it keeps of the rows before what makes
// an epoch of them. While it has not seen all rows, V is held back by the share that is missing.
func (f *qmfFit) mixBatch() {
	g, d, rows := f.gauss, float64(f.d), float64(len(f.batch))
	g.batch.Rows, g.batch.Keep = len(f.batch), 1-rows/d
	g.weight[0] = float64(g.weight[0]*g.batch.Keep) + rows
	seen := min(float64(f.stepsV)*float64(min(f.batchRows, f.d))/d, 1)
	g.stepV = stepV
	g.stepV.Damp += (1 - seen) / seen
	g.stepV.Share *= min(float64(f.batchRows)/wholeBatch, 1)
}

// stepTileV adds the models of the batch to that of a tile of V, and makes the step of V there.
func (f *qmfFit) stepTileV(worker, t int) {
	g := f.gauss
	g.columns.Take(t, &g.batch, g.rooms[worker])
	g.columns.Step(t, f.v, f.penaltyV(g.weight[0]), g.stepV, g.rooms[worker])
	from, to := g.columns.Tile(t)
	for c := range f.k {
		confine(f.rowV(c)[from:min(to, f.n)], f.least, f.most)
	}
}

// logSquares returns the mean of the squared logarithms of v.
func logSquares(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		l := elem.Log(x)
		s += float64(l*l) / float64(len(v))
	}
	return s
}
