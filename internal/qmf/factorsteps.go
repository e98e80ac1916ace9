package qmf

// This file holds the steps of U and V in the epochs of a QMF. Let w̄_i be the gradient at w_i = (UV)_i, in
// units of the row's loss. At each visit of a row U_i makes a step, and after each batch V: Gauss–Newton
// steps (internal/gauss) or, in the paper's form, steps of Adam on the logarithms,
//
//	Ũ̄_i = U_i∘(w̄_i Vᵀ),   Ṽ̄ = V∘Σ_i U_iᵀ w̄_i,   U = exp Ũ,  V = exp Ṽ.
//
// What all rows of one batch add to the step of V is summed in one fixed order (internal/pool).

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// factorSteps makes the steps of U and V of a QMF during its fit, within e^±maxLogFactor.
type factorSteps interface {
	// begin takes U and V as the start has left them. It raises their small entries unless exact is true.
	begin(exact bool)
	// beginEpoch takes V for the steps of U.
	beginEpoch()
	// curvature returns np numbers for the curvature in w of the row in a slot; nil: it is not wanted.
	curvature(slot int) []float64
	// stepRow makes the step of U_i of the row in a slot, whose map v has visited, and notes the row for the
	// step of V. skipRow notes a constant row, which adds nothing to it.
	stepRow(worker, slot int, v *rowSpace)
	skipRow(slot int)
	// tiles is the number of tiles of V, which are independent of each other.
	tiles() int
	// accumulate adds the rows of the batch to the sums over one batch of all rows for a tile of V.
	accumulate(worker, tile int)
	// endBatch ends a batch of so many rows, the last of its epoch or not, before the step of V.
	endBatch(rows int, last bool)
	// stepColumns makes the step of a tile of V.
	stepColumns(worker, tile int)
	// meanSquares returns mean log²U + mean log²V.
	meanSquares() float64
	// walkU and walkV show the arrays that a checkpoint has of the steps of U and of V.
	walkU(visit func(array section.Part, best []float64))
	walkV(visit func(array section.Part, best []float64))
}

// newFactorSteps makes the steps of a fit that visits so many rows at a time.
func newFactorSteps(f *qmfFit, slots int) factorSteps {
	if a := f.pool.Memory; !f.Gaussian(f.k) {
		s := &adamSteps{fit: f, logU: a.Floats(f.d, f.k), momU: newMoment(a, f.d, f.k),
			u: a.Floats(slots, f.k)}
		s.makeColumns()
		return s
	}
	if f.inflation.whole {
		return newGaussSteps(f, gauss.NewWhole(f.pool, f.cut, f.k, f.np, slots, f.BatchRows))
	}
	return newGaussSteps(f, gauss.NewSteps(f.pool, f.d, f.k, f.np, f.BatchRows))
}

// penaltyU is the weight of the penalty in the step of row i of U, in the units of the row's loss.
// penaltyV is that in the step of V after so many rows, in the units of the whole loss.
func (f *qmfFit) penaltyU(i int) float64 {
	return min(f.Penalty/float64(f.k)/f.heaviness(i), limit.Penalty)
}
func (f *qmfFit) penaltyV(rows float64) float64 {
	return min(f.Penalty*rows/float64(f.k*f.n)/f.scale, limit.Penalty)
}

// gaussSteps are Gauss–Newton steps.
type gaussSteps struct {
	fit       *qmfFit
	models    *gauss.Steps
	low, high float64 // the bounds of U and V
}

func newGaussSteps(f *qmfFit, models *gauss.Steps) *gaussSteps {
	high := elem.Exp(f.maxLogFactor)
	models.FixU(f.fixed)
	return &gaussSteps{fit: f, models: models, low: 1 / high, high: high}
}

func (s *gaussSteps) begin(exact bool) {
	if !exact {
		s.fit.factors.raise(s.fit.maxLogFactor)
		s.fit.hold()
	}
}

func (s *gaussSteps) beginEpoch()                  { s.models.ToTiles(s.fit.v, 0, s.fit.np) }
func (s *gaussSteps) curvature(slot int) []float64 { return s.models.Curvature(slot) }
func (s *gaussSteps) skipRow(slot int)             { s.models.Skip(slot) }
func (s *gaussSteps) tiles() int                   { return s.models.Tiles() }

func (s *gaussSteps) stepRow(worker, slot int, v *rowSpace) {
	f := s.fit
	i, wbar := f.batch[slot], f.rowWbar(slot)
	u := f.rowU(i)
	s.models.StepRow(worker, slot, u, wbar, f.penaltyU(i))
	kernel.Confine(u[f.fixed:], s.low, s.high)
	s.models.Put(slot, u, v.w, wbar, f.relativeUnit(i))
}

func (s *gaussSteps) accumulate(worker, tile int) {
	first, _ := s.fit.cut.Rows()
	s.models.Accumulate(worker, tile, first+s.fit.batch[0], len(s.fit.batch))
}

func (s *gaussSteps) endBatch(rows int, last bool) {
	if last {
		s.models.Judge(s.fit.meanLoss())
	}
	s.models.Mix(rows, s.fit.stepsV)
}

func (s *gaussSteps) stepColumns(worker, tile int) {
	f := s.fit
	s.models.StepTile(worker, tile, f.v, f.penaltyV(s.models.Weight()))
	from, to := s.models.Tile(tile)
	for c := range f.k {
		kernel.Confine(f.rowV(c)[from:min(to, f.n)], s.low, s.high)
	}
	s.models.ToTiles(f.v, from, to)
}

func (s *gaussSteps) meanSquares() float64 {
	f, squares := s.fit, 0.0
	for c := range f.k {
		squares += gauss.MeanLogSquare(f.rowV(c)) / float64(f.k)
	}
	return gauss.MeanLogSquare(f.u) + squares
}

func (s *gaussSteps) walkU(func(array section.Part, best []float64)) {}

func (s *gaussSteps) walkV(visit func(array section.Part, best []float64)) {
	a, b, numbers := s.models.State()
	visit(section.Positive(a), nil)
	visit(section.Finite(b), nil)
	visit(section.Positive(numbers), nil)
}

// adamSteps are steps of Adam on the logarithms of U and V. A tile of V is a row of V.
type adamSteps struct {
	fit        *qmfFit
	logU, logV []float64 // Ũ, Ṽ; U and V hold their exponentials
	momU, momV moment
	gradV      []float64  // k × np: the gradient at Ṽ
	u          []float64  // slots × k: rows of U before their steps, times relativeUnit
	sums       *pool.Sums // of gradV over one batch of all rows; nil where there are several batches
}

// makeColumns makes what the steps of V take.
func (s *adamSteps) makeColumns() {
	f, a := s.fit, s.fit.pool.Memory
	s.logV, s.momV = a.Floats(f.k, f.np), newMoment(a, f.k, f.np)
	if !f.inflation.whole {
		s.gradV = a.Floats(f.k, f.np)
	} else if s.sums = pool.NewSums(a, f.cut, f.k, f.np); len(s.sums.Parts) == 1 {
		s.gradV = s.sums.Parts[0]
	}
}

func (s *adamSteps) begin(exact bool) {
	f := s.fit
	logarithms(s.logU, f.u, exact, f.maxLogFactor)
	for i := range f.given.Rows {
		logs := s.logU[i*f.k : i*f.k+f.fixed]
		kernel.Log(logs, f.given.Row(i))
		kernel.Confine(logs, -f.maxLogFactor, f.maxLogFactor)
	}
	f.hold()
	for t := range f.k {
		logarithms(s.logV[t*f.np:t*f.np+f.n], f.rowV(t), exact, f.maxLogFactor)
	}
}

func (s *adamSteps) beginEpoch()             {}
func (s *adamSteps) curvature(int) []float64 { return nil }
func (s *adamSteps) skipRow(slot int)        { clear(s.rowU(slot)) }
func (s *adamSteps) tiles() int              { return s.fit.k }
func (s *adamSteps) endBatch(int, bool)      {}

func (s *adamSteps) rowU(slot int) []float64 { return s.u[slot*s.fit.k : (slot+1)*s.fit.k] }

func (s *adamSteps) stepRow(_, slot int, v *rowSpace) {
	f, grad := s.fit, v.gu
	i := f.batch[slot]
	u, before, unit := f.rowU(i), s.rowU(slot), f.relativeUnit(i)
	for t, x := range u {
		before[t] = x * unit
	}
	kernel.Dots(grad, f.v, f.rowWbar(slot))
	lo, hi := i*f.k, (i+1)*f.k
	pen := f.penaltyU(i)
	for t := range grad {
		grad[t] = float64(grad[t]*u[t]) + float64(pen*s.logU[lo+t])
	}
	clear(grad[:f.fixed])
	s.momU.Step(s.logU, grad, lo, hi, f.at)
	kernel.Confine(s.logU[lo:hi], -f.maxLogFactor, f.maxLogFactor)
	kernel.Exp(u[f.fixed:], s.logU[lo+f.fixed:hi])
}

// addRows adds U_iᵀw̄_i of the slots from, ..., to-1 to row t of the gradient at V.
func (s *adamSteps) addRows(grad []float64, t, from, to int) {
	for slot := from; slot < to; slot++ {
		kernel.Accumulate(grad, s.rowU(slot)[t:t+1], s.fit.rowWbar(slot))
	}
}

// accumulate adds the rows run by run.
func (s *adamSteps) accumulate(_, t int) {
	f := s.fit
	lo, hi := t*f.np, (t+1)*f.np
	first, _ := f.cut.Rows()
	first += f.batch[0]
	for slot := 0; slot < len(f.batch); {
		run, end := f.cut.Run(first + slot)
		till := min(end-first, len(f.batch))
		s.addRows(s.sums.Open(first+slot, run, lo, hi), t, slot, till)
		s.sums.Close(first+till, run, lo, hi)
		slot = till
	}
}

// stepColumns takes the gradient of several batches in the order of the rows of the batch; that of one batch
// of all rows has been accumulated.
func (s *adamSteps) stepColumns(_, t int) {
	f := s.fit
	lo, hi := t*f.np, (t+1)*f.np
	g, v, lv := s.gradV[lo:hi], f.v[lo:hi], s.logV[lo:hi]
	rows := f.cut.Bounds[len(f.cut.Bounds)-1]
	if s.sums == nil {
		rows = len(f.batch)
		clear(g)
		s.addRows(g, t, 0, rows)
	}
	pen := f.penaltyV(float64(rows))
	for j := range g[:f.n] {
		g[j] = float64(g[j]*v[j]) + float64(pen*lv[j])
	}
	s.momV.Step(s.logV, g[:f.n], lo, lo+f.n, pace{Rate: f.at.Rate, Count: f.stepsV})
	kernel.Confine(lv[:f.n], -f.maxLogFactor, f.maxLogFactor)
	kernel.Exp(v[:f.n], lv)
}

func (s *adamSteps) meanSquares() float64 {
	f := s.fit
	// The padding of Ṽ is 0.
	return meanSquare(s.logU) + float64(meanSquare(s.logV)*float64(f.np)/float64(f.n))
}

func meanSquare(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(x*x) / float64(len(v))
	}
	return s
}

func (s *adamSteps) walkU(visit func(array section.Part, best []float64)) {
	visit(section.Within(s.logU, -s.fit.maxLogFactor, s.fit.maxLogFactor), nil)
	walkMoments(visit, s.momU)
}

func (s *adamSteps) walkV(visit func(array section.Part, best []float64)) {
	visit(section.Within(s.logV, -s.fit.maxLogFactor, s.fit.maxLogFactor), nil)
	walkMoments(visit, s.momV)
}
