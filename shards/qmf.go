package shards

// This file holds a QMF whose rows are split. The root package computes; here are the rounds:
//
//	phaseStart  q and F of every row at the start of U and V, and the losses there
//	phaseVisit  an epoch: the visits of all rows; the reduce makes the step of V
//	phaseJudge  the losses after the epoch, where cells are held out
//	phaseHand   the rows of the model: U, T_i, losses
//
// What a reduce goes on from beside V is what the root package needs, and, where cells are held out, the best
// V.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// stepQMF makes the step of a shard.
func (f *Fit) stepQMF(ctx context.Context, r *stage, state *blob, v []float64, rows *qmf.Shard,
	workers *pool.Pool) (*made, error) {
	s := &qmf.ShardStep{
		Pass: map[phase]qmf.Pass{phaseVisit: qmf.PassEpoch, phaseJudge: qmf.PassLosses,
			phaseHand: qmf.PassModel}[r.Phase],
		Epoch: r.Done, Fresh: r.Fresh, Best: r.Kept, V: v,
		Restore: func(parts []section.Part, warm []transport.Warm) error {
			words, err := state.restore(parts, len(warm))
			if err == nil {
				err = state.fault(qmf.TakeWarm(state.File, warm, words, 0))
			}
			return err
		},
	}
	err := f.of.StepQMF(ctx, s, rows, workers)
	return &made{s.Real, s.Index, s.Made}, err
}

// reduceQMF sums the parts of a round, makes the step of V after a round of visits, and enters the losses
// into the journal, which decides on the phase of the next round.
func (f *Fit) reduceQMF(r *stage, v []float64, workers *pool.Pool) ([]float64, []section.Part, error) {
	p := f.plan
	var best []float64
	now := &qmf.Reduce{Epoch: r.Done, Steps: r.Steps, V: v, Numbers: r.Numbers,
		StepV: r.Phase == phaseVisit,
		Restore: func(parts []section.Part) error {
			if p.Holds {
				best = make([]float64, p.K*p.N)
				parts = append(slices.Clip(parts), section.Positive(best))
			}
			return f.main(r.Number, parts)
		},
		Take: func(to *qmf.Total) error { return f.takeQMF(r, to) }}
	if err := f.of.ReduceQMF(now, workers); err != nil {
		if format, is := err.(*section.Error); is {
			err = r.fault(format)
		}
		return nil, nil, err
	}
	r.Steps, r.Numbers, v = now.Steps, now.Numbers, now.V
	judged := true
	switch r.Phase {
	case phaseVisit:
		if judged = !p.Holds; !judged {
			r.Phase, r.Fresh = phaseJudge, false
			break
		}
		now.Losses.Of = r.Done // the losses are those that the epoch started from
		r.Done++
	case phaseJudge:
		r.Done++
		now.Losses.Of = r.Done
	case phaseHand:
		r.Phase, r.Fresh, judged = phaseOver, false, false
		r.BestEpoch = r.Exact(now.Losses.Visible, now.Losses.Held)
	}
	if judged {
		r.enter(now.Losses, p.Epochs, phaseVisit, phaseHand)
	}
	if r.Fresh {
		copy(best, v)
	}
	if r.Phase == phaseHand && r.Kept {
		v = best
	}
	if p.Holds {
		now.Main = append(now.Main, section.Positive(best))
	}
	return v, now.Main, nil
}

// takeQMF adds up what the shards have put into a round.
func (f *Fit) takeQMF(r *stage, to *qmf.Total) error {
	for shard := range f.plan.Shards {
		b, err := f.takePart(r, shard, to)
		if err == nil && r.Phase == phaseHand {
			_, err = f.modelOf(b, shard)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takePart adds the part of a shard, and returns it.
func (f *Fit) takePart(r *stage, shard int, to *qmf.Total) (*blob, error) {
	p, cut := f.plan, f.plan.cut(shard)
	from, end := cut.Rows()
	b, err := f.part(r.Number, shard)
	if err != nil {
		return nil, err
	}
	nodes := cut.Nodes()
	if r.Phase != phaseVisit {
		nodes = nil
	}
	numbers := func(s *pool.Sums, as func([]float64) section.Part) (parts []section.Part) {
		if s != nil {
			for range nodes {
				parts = append(parts, as(make([]float64, len(s.Parts[0]))))
			}
		}
		return parts
	}
	num, den := numbers(to.B, section.Finite), numbers(to.A, section.Positive)
	var u []section.Part
	if len(to.U) > 0 {
		u = append(u, section.Finite(to.U[from*p.K:end*p.K]))
	}
	if err := b.fault(cmp.Or(b.Fill("NUMS", num), b.Fill("DENS", den),
		b.Fill("LOSS", []section.Part{section.Positive(to.Losses[from:end])}),
		b.Fill("HELD", []section.Part{section.Positive(to.Held[from:end])}),
		b.Fill("UFAC", u))); err != nil {
		return nil, err
	}
	for i, node := range nodes {
		if to.A != nil {
			to.A.Add(node, 0, den[i].V)
		}
		to.B.Add(node, 0, num[i].V)
	}
	return b, nil
}

// modelOf reads the model of the rows of a shard from its part of the last round but one.
func (f *Fit) modelOf(part *blob, shard int) (*section.File, error) {
	p := f.plan
	from, to := p.cut(shard).Rows()
	data, q := part.Payload("FILE"), new(quantmf.QMF)
	err := q.UnmarshalBinary(data)
	if format, is := err.(*quantmf.FormatError); is {
		err = (*section.Error)(format)
	}
	if err == nil && (q.U.Rows != to-from || q.V.Cols != p.N || q.U.Cols != p.K ||
		q.Quantiles.Cols != p.Levels) {
		err = part.Fail("FILE", "the model is not of this shard")
	}
	if err != nil {
		return nil, part.fault(err)
	}
	return section.Decode(data, section.QMF, section.KindName, section.RequiredTags(section.QMF),
		append(section.OptionalTags(section.QMF), "CONV", "WARN"))
}

// finishQMF joins the models of the rows of all shards: the sections of a model of all rows are theirs, one
// after another, but for V, the losses, and the rows that warnings name.
func (f *Fit) finishQMF(r *stage) (*quantmf.QMF, error) {
	p := f.plan
	v, err := f.readV(r.Number)
	if err != nil {
		return nil, err
	}
	p.Losses(p.Loss, r.History)
	p.Losses(p.Loss, r.Validation)
	byRow := []string{"UFAC", "QUAN", "WGHT", "POTN", "ROWS"}
	all := make([][]byte, len(byRow))
	var warnings []float64
	var sizes, took []uint64
	for shard := range p.Shards {
		part, err := f.part(r.Number-1, shard)
		if err != nil {
			return nil, err
		}
		m, err := f.modelOf(part, shard)
		if err != nil {
			return nil, err
		}
		for i, tag := range byRow {
			all[i] = append(all[i], m.Payload(tag)...)
		}
		some, err := m.Floats("CONV", -1, 0, math.MaxFloat64)
		if err != nil {
			return nil, err
		}
		from, _ := p.cut(shard).Rows()
		for k := 0; k < len(some); k += 4 {
			some[k] += float64(from)
		}
		warnings = append(warnings, some...)
		if sizes, err = m.Words("DIMS", 8); err != nil {
			return nil, err
		}
		if took, err = m.Words("TOOK", 3); err != nil {
			return nil, err
		}
	}
	sizes[0], sizes[4] = uint64(p.D), uint64(r.BestEpoch)
	file := []section.Section{section.Words("DIMS", sizes...), section.Words("TOOK", took...),
		section.Floats("VFAC", v), section.Floats("HIST", r.History), section.Floats("VALI", r.Validation),
		section.Floats("CONV", warnings).AsOptional()}
	for i, tag := range byRow {
		file = append(file, section.Section{Tag: tag, Payload: all[i]})
	}
	m := new(quantmf.QMF)
	return m, m.UnmarshalBinary(section.Encode(section.QMF, file))
}
