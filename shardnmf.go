package quantmf

// This file holds an NMF by multiplicative updates whose rows are split (shards.go). Round 0 is the first
// sweep over the rows, round e+1 that of epoch e: a step finishes the update of its rows of U for the V of the round, and
// sums what the next update of V takes. The sums of each run of rows are a piece of nmf.Updates of their own, and are
// added in the order of the pieces. A part is
//
//	NUMS, DENS, LOSS  f of each run: numerators, denominators, the losses of its visible and its held-out cells
//	UFAC              f the rows of U, where there is a penalty: it is a part of the losses
//
// The state of a shard is its rows of U and, where cells are held out, those at the best epoch.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// planNMF makes the start.
func planNMF(ctx context.Context, t *task, p *shardPlan) (*shardStart, error) {
	f := &nmfFit{factors: newFactors(p.d, p.n, p.k), cells: t.cells, loss: t.loss, course: newCourse(ctx, t.config, p.d)}
	if err := f.startFactors(t.config, t.pool, t.seed); err != nil {
		return nil, stoppedAt(0, err)
	}
	first := &shardStart{v: f.matV(), shard: func(from, to int) ([]section.Part, []uint64) {
		u := f.u[from*p.k : to*p.k]
		return p.statesU(u, make([]float64, len(u))), nil
	}}
	if p.holds {
		first.main = []section.Part{section.Positive(make([]float64, p.k*p.n))}
	}
	return first, nil
}

// statesU is U and the best U in the state of a shard of an NMF.
func (p *shardPlan) statesU(u, best []float64) []section.Part {
	parts := []section.Part{section.Positive(u)}
	if p.holds {
		parts = append(parts, section.Positive(best))
	}
	return parts
}

// problem is that of some runs of the rows.
func (p *shardPlan) problem(f *factors, c *cells, first, end int, workers *pool.Pool) nmf.Problem {
	bounds := make([]int, 0, end-first+1)
	for _, row := range p.runs[first : end+1] {
		bounds = append(bounds, row-p.runs[first])
	}
	m := newProblem(f, c, p.loss, p.penalty, workers)
	m.Of, m.Runs = p.d, bounds
	return m
}

// setV fills V.
func (f *factors) setV(v Mat) {
	for c := range f.k {
		copy(f.rowV(c), v.Row(c))
	}
}

// readStateNMF reads U and, where cells are held out, the best U.
func (s *Sharded) readStateNMF(of *file, name string, d int) (u, best []float64, err error) {
	u, best = make([]float64, d*s.plan.k), make([]float64, d*s.plan.k)
	if _, err := of.restore(s.plan.statesU(u, best), 0); err != nil {
		return nil, nil, &blobError{name, err}
	}
	return u, best, nil
}

func (s *Sharded) stepNMF(r *shardRound, state *file, v Mat, rows *cells, shard int, workers *pool.Pool) ([]section.Part, []section.Section, error) {
	p := s.plan
	f := newFactors(rows.d, p.n, p.k)
	u, best, err := s.readStateNMF(state, stateBlob(r.number, shard), f.d)
	if err != nil {
		return nil, nil, err
	}
	if r.fresh {
		copy(best, u)
	}
	copy(f.u, u)
	f.setV(v)
	cut := p.cut(shard)
	m := nmf.NewUpdates(p.problem(f, rows, cut.From, cut.To, workers))
	if err := m.Sweep(r.phase == phaseStart); err != nil {
		return nil, nil, err
	}
	var num, den, losses, us []float64
	for run := range cut.To - cut.From {
		a, b, c := m.Sums(run)
		num, den, losses = append(num, a...), append(den, b...), append(losses, c...)
	}
	if p.penalty > 0 {
		us = f.u
	}
	return p.statesU(f.u, best), []section.Section{section.Floats("NUMS", num), section.Floats("DENS", den), section.Floats("LOSS", losses), section.Floats("UFAC", us)}, nil
}

// reduceNMF sums the parts of a round, judges its factors, and makes the next V unless the fit is over.
func (s *Sharded) reduceNMF(r *shardRound, v Mat, workers *pool.Pool) (Mat, []section.Part, error) {
	p := s.plan
	f := newFactors(0, p.n, p.k)
	f.setV(v)
	if p.penalty > 0 {
		f.u = make([]float64, p.d*p.k)
	}
	var best []float64
	var main []section.Part
	if p.holds {
		best = make([]float64, p.k*p.n)
		main = []section.Part{section.Positive(best)}
	}
	if err := s.readMain(r.number, main); err != nil {
		return Mat{}, nil, err
	}
	problem := p.problem(f, &cells{partial: p.partial, visible: p.visible, heldOut: p.heldOut}, 0, len(p.runs)-1, workers)
	m := nmf.NewUpdates(problem)
	for shard := range p.shards {
		if err := s.sumNMF(m, f.u, r.number, shard); err != nil {
			return Mat{}, nil, err
		}
	}
	l := m.Losses()
	if r.phase == phaseVisit {
		r.done++
	}
	r.note(lossesOf(r.done, l), p.epochs, phaseVisit, phaseOver)
	if r.fresh {
		copy(best, flat(v))
	}
	if r.phase != phaseOver {
		m.StepV()
		v = f.matV()
	}
	return v, main, nil
}

// sumNMF takes the sums of a shard's runs into their pieces.
func (s *Sharded) sumNMF(m *nmf.Updates, u []float64, round, shard int) error {
	p, cut := s.plan, s.plan.cut(shard)
	part, err := s.readPart(round, shard, "NUMS", "DENS", "LOSS", "UFAC")
	if err != nil {
		return err
	}
	var num, den, losses []section.Part
	for run := cut.From; run < cut.To; run++ {
		a, b, c := m.Sums(run)
		num, den, losses = append(num, section.Positive(a)), append(den, section.Positive(b)), append(losses, section.Positive(c))
	}
	us := []section.Part{}
	if from, to := cut.Rows(); p.penalty > 0 {
		us = append(us, section.Positive(u[from*p.k:to*p.k]))
	}
	for _, sums := range []struct {
		tag   string
		parts []section.Part
	}{{"NUMS", num}, {"DENS", den}, {"LOSS", losses}, {"UFAC", us}} {
		if err := formatError(part.Fill(sums.tag, sums.parts)); err != nil {
			return damagedPart(round, shard, err)
		}
	}
	return nil
}

// finishNMF makes the model of the last states.
func (s *Sharded) finishNMF(r *shardRound, v Mat) (fitted, error) {
	p := s.plan
	f := newFactors(p.d, p.n, p.k)
	f.setV(v)
	if r.kept {
		best := NewMat(p.k, p.n)
		if err := s.readMain(r.number, []section.Part{section.Within(best.Data, 0, math.MaxFloat64)}); err != nil {
			return nil, err
		}
		f.setV(best)
	}
	for shard := range p.shards {
		from, to := p.cut(shard).Rows()
		name := stateBlob(r.number, shard)
		state, err := s.read(name, kindState, p.whom(r.number, shard), "REAL", "IDX0")
		if err != nil {
			if isDamaged(err) {
				err = &ShardError{r.number - 1, shard, err}
			}
			return nil, err
		}
		u, best, err := s.readStateNMF(state, name, to-from)
		if err != nil {
			return nil, &ShardError{r.number - 1, shard, err}
		}
		if r.kept && !r.fresh {
			u = best
		}
		copy(f.u[from*p.k:], u)
	}
	fit := &nmfFit{factors: f, cells: &cells{missing: p.missing}, loss: p.loss}
	if r.kept {
		fit.best = f
	}
	return fit.model(r.journal)
}
