package quantmf

// This file is the door of package shards, whose fits split the rows over machines: it checks their options,
// and makes models of what internal/qmf computes. Package shards has the rounds and the store.

import (
	"context"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// Split is for package shards of this module, and nobody else can call it: it takes a value of an internal
// type. Options and models are of this package alone.
func Split(qmf.Door) splitting { return splitting{} }

// splitting is what Split opens.
type splitting struct{}

// inShards reports options of a fit of d rows that a fit whose rows are split does not take.
func (c *config) inShards(kind uint32, d int) error {
	if kind == section.QMF && c.BatchRows < d {
		return &OptionError{Option: option.Batch.String(), Value: itoa(c.BatchRows),
			Bound: "a fit in shards has one batch of all " + itoa(d) + " rows"}
	}
	for _, o := range []struct {
		given bool
		kind  option.Kind
		value string
	}{
		{c.restarts > 1, option.Restarts, itoa(c.restarts)},
		{c.save != nil, option.Checkpoint, itoa(c.every)},
		{c.resume != nil, option.Resume, ""},
		{c.sampleWeights != nil, option.SampleWeights, "len " + itoa(len(c.sampleWeights))},
		{c.cellWeights != nil, option.CellWeights, "Rows"},
	} {
		if o.given {
			return &OptionError{Option: o.kind.String(), Value: o.value,
				Bound: "a fit in shards has no use for it"}
		}
	}
	return nil
}

// Plan checks the options and the data of a fit, and returns it and a hash of all that it depends on.
func (splitting) Plan(kind uint32, x Rows, rank int, opts []FitOption) (*splitFit, uint64, error) {
	c, function := nmfDefaults(), option.FitNMF
	if c.Updates = qmf.UpdatesMultiplicative; kind == section.QMF {
		c, function = qmfDefaults(), option.FitQMF
	}
	c.hash = true
	function.Takes &^= option.Of(option.Model)
	t, err := open(context.Background(), kind, function, &c, x, rank, opts)
	if err != nil {
		return nil, 0, err
	}
	of := t.Cells
	d, n := of.D, of.N
	if kind == section.NMF {
		err = c.settleNMF(d, n, rank)
	} else if err = c.checkQMF(d, n); err == nil {
		c.settleQMF(rank)
		if !c.given.Has(option.Batch) {
			c.BatchRows = d
		}
	}
	if err == nil {
		err = c.inShards(kind, d)
	}
	if err != nil {
		return nil, 0, err
	}
	t.settle()
	t.Pieces = d
	f := &splitFit{&qmf.Split{Task: &t.Task, Plan: qmf.Plan{
		Kind: kind, Strict: c.strict, D: d, N: n, K: rank, Visible: of.Visible, HeldOut: of.HeldOut,
		Partial: of.Partial, Holds: of.Held != nil, Units: of.Units, Settings: c.Settings,
	}}}
	f.of.BatchRows = int(min(uint64(c.BatchRows), 1<<31-1)) // which a plan has room for
	hash := of.Fingerprint
	hashMat(&hash, c.InitU)
	hashMat(&hash, c.InitV)
	h := uint64(hash)
	put := func(text string) {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
		h *= 1099511628211
	}
	put(itoa(int(kind)))
	for _, o := range c.described(rank, of.WeightHash) {
		put(o[0])
		put(o[1])
	}
	return f, h, nil
}

// Open returns the fit of a plan.
func (splitting) Open(p *qmf.Plan) *splitFit { return &splitFit{&qmf.Split{Plan: *p}} }

// splitFit is a fit whose rows are split.
type splitFit struct{ of *qmf.Split }

// Of returns what every step knows. Start adds to it what the start has chosen.
func (s *splitFit) Of() *qmf.Plan { return &s.of.Plan }

// Start makes the start of the fit.
func (s *splitFit) Start(ctx context.Context) (*qmf.SplitStart, error) {
	first, err := s.of.Begin(ctx)
	if err != nil {
		return nil, public(err)
	}
	first.Read = func() error { return public(s.of.Task.Pool.Failed()) }
	return first, nil
}

// Problem returns the problem of the rows of a shard of an NMF, but for the runs.
func (s *splitFit) Problem(r *qmf.Shard, workers *pool.Pool) nmf.Problem {
	return s.of.Problem(r, sourceOf(r.X), workers)
}

// NMF returns the model of these factors and of a fit's journal.
func (s *splitFit) NMF(u, v []float64, j *fit.Journal) (Model, error) {
	made, err := s.of.NMF(u, v, j)
	m := new(NMF).fitted(made, &s.of.Settings)
	m.toUserUnits(&s.of.Units)
	sealFields(m)
	return m, err
}

// StepQMF makes a step of the rows of a shard.
func (s *splitFit) StepQMF(ctx context.Context, step *qmf.ShardStep, r *qmf.Shard,
	workers *pool.Pool) error {
	made, err := s.of.StepQMF(ctx, step, r, sourceOf(r.X), workers)
	if made != nil {
		q := new(QMF).fitted(made, &s.of.Settings)
		q.toUserUnits(&r.Units)
		step.Made.File, err = q.readable()
	}
	return err
}

// ReduceQMF sums the parts of a round, and makes the step of V where the round was an epoch.
func (s *splitFit) ReduceQMF(r *qmf.Reduce, workers *pool.Pool) error {
	return s.of.ReduceQMF(r, workers)
}
