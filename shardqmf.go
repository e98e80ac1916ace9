package quantmf

// This file holds a QMF whose rows are split (shards.go), all rows being one batch. The rounds are
//
//	start   q and F of every row at the start of U and V, and its losses
//	visit   an epoch: the visits of all rows; Reduce makes the step of V
//	judge   where cells are held out: the losses after the epoch
//	hand    what the model has of every row
//
// A step of a shard is that of a qmfFit which has its rows alone; its sums for V are those of its runs
// (internal/runs), joined as far as whole groups of runs go. Reduce is that of a qmfFit which has none. A part is
//
//	NUMS, DENS  f of each node: B and A of the model of V; where Adam steps V its gradient, and nothing
//	LOSS, HELD  f of each row: its losses
//	UFAC        f the rows of U, or of Ũ, before the step, where patience judges the penalty
//	FILE        in the round hand, a QMF of the shard's rows as a file
//
// The state of a shard is what a checkpoint has of its rows, in its order.

import (
	"context"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/runs"
	"github.com/quantmf/quantmf/internal/section"
)

// planQMF makes the start: the choice of start and shrinkage, and the factors.
func planQMF(ctx context.Context, t *task, p *shardPlan) (*shardStart, error) {
	f := newQMFFit(t.cells, p.k, &t.settings, t.pool, t.seed, newCourse(ctx, t.config, p.d))
	err := f.choose()
	if err == nil {
		err = f.startFactors()
	}
	if err != nil {
		return nil, stoppedAt(0, err)
	}
	f.startLogarithms()
	p.origin, p.lambda, p.scale = f.origin, f.lambda, f.scale
	first := &shardStart{v: f.matV(), shard: func(from, to int) ([]section.Part, []uint64) {
		rows := make([]int, to-from)
		part := &qmfFit{settings: f.settings, gauss: f.gauss, farthest: f.farthest, inflation: &inflation{
			factors: &factors{u: f.u[from*p.k : to*p.k]}, cells: &cells{held: f.held}, rowLosses: make([]float64, len(rows)), rowHeld: make([]float64, len(rows)),
			maps: newMaps(len(rows), p.levels, p.start == StartUniform, p.ends, f.spans)}}
		if f.gauss == nil {
			part.logU, part.momU = f.logU[from*p.k:to*p.k], newMoment(len(rows)*p.k)
		}
		if p.holds {
			part.best = part.newState()
		}
		return part.rowParts(), appendWarm(nil, part.warm)
	}}
	if f.gauss != nil {
		_, _, first.numbers = f.gauss.State()
	}
	m := &qmfFit{settings: f.settings, gauss: f.gauss, farthest: f.farthest, inflation: &inflation{factors: f.factors, cells: f.cells}, logV: f.logV, momV: f.momV}
	if p.holds {
		m.best = &qmfState{v: make([]float64, len(f.v))}
	}
	first.main = m.mainParts()
	return first, nil
}

// rowParts are the numbers of the rows of a fit in the state of a shard.
func (f *qmfFit) rowParts() []section.Part {
	p := []section.Part{section.Positive(f.u), section.Positive(f.rowLosses), section.Positive(f.rowHeld)}
	if f.gauss == nil {
		p = append(append(p, section.Within(f.logU, -f.farthest, f.farthest)), f.momU.parts()...)
	}
	p = append(p, f.maps.parts()...)
	if f.held != nil {
		p = append(append(p, section.Positive(f.best.u), section.Finite(f.best.f)), f.rising(f.best.inc)...)
	}
	return p
}

// mainParts are the numbers beside V that only Reduce goes on from.
func (f *qmfFit) mainParts() (p []section.Part) {
	if f.gauss == nil {
		p = append(append(p, section.Within(f.logV, -f.farthest, f.farthest)), f.momV.parts()...)
	}
	if f.best != nil {
		p = append(p, section.Positive(f.best.v))
	}
	return p
}

// judgesPenalty tells whether parts have the rows of U.
func (p *shardPlan) judgesPenalty() bool { return p.penalty > 0 && p.patience > 0 }

func (s *Sharded) stepQMF(ctx context.Context, r *shardRound, state *file, v Mat, rows *cells, shard int, workers *pool.Pool) (real []section.Part, index []uint64, part []section.Section, err error) {
	p := s.plan
	way := course{ctx: ctx, to: 1}
	f := newQMFPart(rows, p.k, &p.settings, workers, p.seed, way, p.cut(shard))
	f.lambda, f.scale = p.lambda, p.scale
	if p.holds {
		f.best = f.newState()
	}
	d := f.d
	words, err := state.restore(f.rowParts(), d)
	if err == nil {
		err = state.takeWarm(f.warm, words, 0)
	}
	if err != nil {
		return nil, nil, nil, &blobError{stateBlob(r.number, shard), err}
	}
	f.setV(v)
	if r.fresh {
		copy(f.best.u, f.u)
		copy(f.best.f, f.f)
		copy(f.best.inc, f.inc)
	}
	var us, num, den []float64
	var model []byte
	if p.judgesPenalty() {
		us = append(us, f.u...)
		if f.gauss == nil {
			us = append(us[:0], f.logU...)
		}
	}
	switch r.phase {
	case phaseStart:
		err = f.startMaps(&f.course)
	case phaseVisit:
		f.at = f.pace(r.done)
		if err = f.visitAll(); err != nil {
			break
		}
		if f.gauss == nil {
			num = joined(f.sumsV.Parts)
			break
		}
		a, b := f.gauss.Sums()
		num, den = joined(b.Parts), joined(a.Parts)
	case phaseJudge:
		f.evaluateAll(f.order)
	case phaseHand:
		if r.kept {
			copy(f.u, f.best.u)
			copy(f.f, f.best.f)
			copy(f.inc, f.best.inc)
		}
		q := f.hand(func() bool { return false })
		q.History = []float64{0}
		model, err = q.MarshalBinary()
	}
	return f.rowParts(), appendWarm(nil, f.warm), []section.Section{section.Floats("NUMS", num), section.Floats("DENS", den),
		section.Floats("LOSS", f.rowLosses), section.Floats("HELD", f.rowHeld), section.Floats("UFAC", us), {Tag: "FILE", Payload: model}}, err
}

func joined(parts [][]float64) (all []float64) {
	for _, v := range parts {
		all = append(all, v...)
	}
	return all
}

// reducer makes the fit without rows that a round is reduced with.
func (s *Sharded) reducer(r *shardRound, v Mat, workers *pool.Pool) (*qmfFit, error) {
	p := s.plan
	np := newFactors(0, p.n, p.k).np
	all := &factors{d: p.d, n: p.n, np: np, k: p.k, v: make([]float64, p.k*np)}
	f := &qmfFit{settings: &p.settings, farthest: factorBound(p.squash, p.k), cut: runs.All(p.d), stepsV: r.steps,
		inflation: &inflation{settings: &p.settings, cells: &cells{units: p.units, visible: p.visible, heldOut: p.heldOut}, factors: all, pool: workers,
			lambda: p.lambda, scale: p.scale, whole: true, at: p.pace(r.done), rowLosses: make([]float64, p.d), rowHeld: make([]float64, p.d)}}
	f.most = elem.Exp(f.farthest)
	f.least = 1 / f.most
	f.setV(v)
	if p.holds {
		f.best = &qmfState{v: make([]float64, len(f.v))}
	}
	if p.gaussian(p.k) {
		f.gauss, f.vees = gauss.NewWhole(f.cut, p.k, np, 1, p.batchRows, workers.Workers()), f.stepTileV
		_, _, numbers := f.gauss.State()
		if len(r.numbers) != len(numbers) {
			return nil, &blobError{roundBlob(r.number), formatError(&section.Error{Problem: "section NUMB: wrong length"})}
		}
		copy(numbers, r.numbers)
		r.numbers = numbers
	} else {
		f.vees, f.sumsV = f.stepRowV, runs.NewSums(f.cut, p.k*np)
		f.gradV = f.sumsV.Parts[0]
		f.logV, f.momV = make([]float64, len(f.v)), newMoment(len(f.v))
	}
	return f, s.readMain(r.number, f.mainParts())
}

// reduceQMF sums the parts of a round, makes the step of V after visits, and judges the losses.
func (s *Sharded) reduceQMF(r *shardRound, v Mat, workers *pool.Pool) (Mat, []section.Part, error) {
	p := s.plan
	f, err := s.reducer(r, v, workers)
	if err != nil {
		return Mat{}, nil, err
	}
	us := make([]float64, 0)
	if p.judgesPenalty() {
		us = make([]float64, p.d*p.k)
	}
	for shard := range p.shards {
		if err := s.sumQMF(f, us, r, shard); err != nil {
			return Mat{}, nil, err
		}
	}
	if f.u = us; f.gauss == nil {
		f.logU = us
	}
	now := losses{visible: f.meanLoss(), held: f.meanHeld(), penalty: f.regularity()}
	again, end := phaseVisit, phaseHand
	judged := true
	switch r.phase {
	case phaseVisit:
		f.stepV()
		r.steps = f.stepsV
		if judged = !p.holds; !judged {
			r.phase, r.fresh = phaseJudge, false
			break
		}
		now.of = r.done // the losses are those that the epoch started from
		r.done++
	case phaseJudge:
		r.done++
		now.of = r.done
	case phaseHand:
		r.phase, r.fresh, judged = phaseOver, false, false
		r.bestEpoch = r.exact(now.visible, now.held)
	}
	if judged {
		r.note(now, p.epochs, again, end)
	}
	if r.fresh {
		copy(f.best.v, f.v)
	}
	if r.phase == phaseHand && r.kept {
		copy(f.v, f.best.v)
	}
	return f.matV(), f.mainParts(), nil
}

// sumQMF takes what a shard adds in a round.
func (s *Sharded) sumQMF(f *qmfFit, us []float64, r *shardRound, shard int) error {
	p, cut := s.plan, s.plan.cut(shard)
	from, to := cut.Rows()
	part, err := s.readPart(r.number, shard, "NUMS", "DENS", "LOSS", "HELD", "UFAC", "FILE")
	if err != nil {
		return err
	}
	var num, den []section.Part
	nodes, entries := cut.Nodes(), p.k*f.np
	if r.phase == phaseVisit {
		for range nodes {
			num = append(num, section.Finite(make([]float64, entries)))
			if f.gauss != nil {
				den = append(den, section.Positive(make([]float64, entries*(p.k+1)/2)))
			}
		}
	}
	var u []section.Part
	if len(us) > 0 {
		u = append(u, section.Finite(us[from*p.k:to*p.k]))
	}
	for _, of := range []struct {
		tag   string
		parts []section.Part
	}{{"NUMS", num}, {"DENS", den}, {"LOSS", []section.Part{section.Positive(f.rowLosses[from:to])}}, {"HELD", []section.Part{section.Positive(f.rowHeld[from:to])}}, {"UFAC", u}} {
		if err := formatError(part.Fill(of.tag, of.parts)); err != nil {
			return damagedPart(r.number, shard, err)
		}
	}
	for i := range num {
		if f.gauss == nil {
			f.sumsV.Add(nodes[i], 0, num[i].V)
			continue
		}
		a, b := f.gauss.Sums()
		a.Add(nodes[i], 0, den[i].V)
		b.Add(nodes[i], 0, num[i].V)
	}
	if r.phase == phaseHand {
		_, err = p.handed(part, shard)
	}
	return damagedPart(r.number, shard, err)
}

// handed reads the model of the rows of a shard.
func (p *shardPlan) handed(part *file, shard int) (*QMF, error) {
	from, to := p.cut(shard).Rows()
	q := new(QMF)
	if err := q.UnmarshalBinary(part.Payload("FILE")); err != nil {
		return nil, err
	}
	if q.U.Rows != to-from || q.V.Cols != p.n || q.U.Cols != p.k || q.Quantiles.Cols != p.levels {
		return nil, part.fail("FILE", "the model is not of this shard")
	}
	return q, nil
}

// finishQMF joins the models of the rows of all shards.
func (s *Sharded) finishQMF(r *shardRound, v Mat) (fitted, error) {
	p := s.plan
	m := &QMF{Factorisation: Factorisation{U: NewMat(p.d, p.k), V: v, loss: p.loss, missing: p.missing, History: r.history, Validation: r.validation, Best: r.bestEpoch},
		Quantiles: NewMat(p.d, p.levels), Weights: NewMat(p.d, p.levels), potentials: NewMat(p.d, p.levels), Start: p.origin, Shrinkage: p.lambda, epsilon: p.epsilon}
	for shard := range p.shards {
		part, err := s.readPart(r.number-1, shard, "NUMS", "DENS", "LOSS", "HELD", "UFAC", "FILE")
		if err != nil {
			return nil, err
		}
		q, err := p.handed(part, shard)
		if err != nil {
			return nil, damagedPart(r.number-1, shard, err)
		}
		from, to := p.cut(shard).Rows()
		for i := from; i < to; i++ {
			copy(m.U.Row(i), q.U.Row(i-from))
			copy(m.Quantiles.Row(i), q.Quantiles.Row(i-from))
			copy(m.Weights.Row(i), q.Weights.Row(i-from))
			copy(m.potentials.Row(i), q.potentials.Row(i-from))
		}
		m.center, m.squash, m.marginal = append(m.center, q.center...), append(m.squash, q.squash...), append(m.marginal, q.marginal...)
		for _, w := range q.Warnings {
			if c, ok := w.(*ConvergenceError); ok {
				at := *c
				at.Row += from
				w = &at
			}
			m.Warnings = append(m.Warnings, w)
		}
	}
	return m, nil
}
