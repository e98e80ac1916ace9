package shards

// This file holds the plan: what all steps of a fit know, and who has which rows.

import (
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// plan is what all steps of a fit know.
type plan struct {
	qmf.Plan
	ID     uint64 // the fit's fingerprint
	Shards int
	runs   []int // where runs of rows begin, and d
}

func (p *plan) whom(kind uint32, round, shard int) whom { return whom{kind, p.ID, round, shard} }

// count returns the number of runs that the rows are summed in, the most shards that there can be.
func (p *plan) count() int { return len(p.runs) - 1 }

// setRuns cuts the rows, by kind and sizes.
func (p *plan) setRuns() {
	p.runs = pool.RunBounds(p.D)
	if p.Kind == section.NMF {
		p.runs = nmf.Runs(p.D, p.N, p.K)
	}
}

// cut returns the runs of a shard.
func (p *plan) cut(shard int) pool.Runs {
	count := p.count()
	return pool.Runs{Bounds: p.runs, From: shard * count / p.Shards, To: (shard + 1) * count / p.Shards}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// exponents are added to those of units, which may be negative.
const exponents = 1 << 12

// number is an integer of a plan.
type number struct {
	at   any // a pointer to a number, to a bool or to a constant of internal/qmf
	most uint64
}

// numbers are the integers of a plan, in the order of section WORD.
func (p *plan) numbers() []number {
	const size, any = 1<<31 - 1, math.MaxUint64
	return []number{{&p.Kind, uint64(section.QMF)}, {&p.ID, any}, {&p.D, size}, {&p.N, size}, {&p.K, size},
		{&p.Shards, size}, {&p.Visible, 1 << 62}, {&p.HeldOut, 1 << 62}, {&p.Partial, 1}, {&p.Holds, 1},
		{&p.Strict, 1}, {&p.Signed, 1}, {&p.All, 2 * exponents}, {&p.Origin, uint64(qmf.StartSVD)},
		{&p.MaxIterations, size}, {&p.Levels, size}, {&p.Epochs, size}, {&p.Seed, any}, {&p.BatchRows, size},
		{&p.Patience, size}, {&p.Squash, uint64(transport.Kinds - 1)},
		{&p.Schedule, uint64(qmf.ScheduleConstant)}, {&p.Start, uint64(qmf.StartSVD)},
		{&p.Ends, uint64(qmf.EndsPinned)}, {&p.Updates, uint64(qmf.UpdatesMultiplicative)}, {&p.Missing, 1},
		{&p.Mapped, 1}, {&p.Fixed, size}}
}

func (p *plan) reals() []section.Part {
	return []section.Part{section.Within([]float64{p.Epsilon}, 0, 1e12),
		section.Positive([]float64{p.Tolerance, p.LearningRate, p.Penalty, p.Shrinkage, p.Scale,
			p.Penalties.L1U, p.Penalties.L1V, p.Penalties.L2U, p.Penalties.L2V}),
		section.Within([]float64{float64(p.Loss)}, -2, 4),
		section.Within([]float64{p.Validation, p.Line}, 0, 1)}
}

func (p *plan) encode() []byte {
	raised := *p
	raised.All += exponents
	var words []uint64
	for _, n := range raised.numbers() {
		switch v := n.at.(type) {
		case *int:
			words = append(words, uint64(*v))
		case *uint32:
			words = append(words, uint64(*v))
		case *uint64:
			words = append(words, *v)
		case *bool:
			words = append(words, bit(*v))
		case *transport.Kind:
			words = append(words, uint64(*v))
		case *qmf.Start:
			words = append(words, uint64(*v))
		case *qmf.Ends:
			words = append(words, uint64(*v))
		case *qmf.Schedule:
			words = append(words, uint64(*v))
		case *qmf.Updates:
			words = append(words, uint64(*v))
		}
	}
	return p.whom(kindPlan, 0, 0).encode(section.Words("WORD", words...), section.Parts("REAL", p.reals()),
		section.Floats("UNIT", p.Shift))
}

// readPlan reads the plan of a store.
func readPlan(store Store) (*plan, error) {
	b, err := read(store, whom{kind: kindPlan}, "WORD", "REAL", "UNIT")
	if err != nil {
		return nil, err
	}
	p, err := decodePlan(b.File)
	return p, b.fault(err)
}

func decodePlan(f *section.File) (*plan, error) {
	p := new(plan)
	numbers := p.numbers()
	w, err := f.Words("WORD", len(numbers))
	if err != nil {
		return nil, err
	}
	for i, n := range numbers {
		if w[i] > n.most || i < 6 && i != 1 && w[i] < 1 {
			return nil, f.FailAt("WORD", i, "a number is out of range")
		}
		switch v := n.at.(type) {
		case *int:
			*v = int(w[i])
		case *uint32:
			*v = uint32(w[i])
		case *uint64:
			*v = w[i]
		case *bool:
			*v = w[i] == 1
		case *transport.Kind:
			*v = transport.Kind(w[i])
		case *qmf.Start:
			*v = qmf.Start(w[i])
		case *qmf.Ends:
			*v = qmf.Ends(w[i])
		case *qmf.Schedule:
			*v = qmf.Schedule(w[i])
		case *qmf.Updates:
			*v = qmf.Updates(w[i])
		}
	}
	p.All -= exponents
	if limit.TooMany(max(p.D, p.N), max(p.Levels, 2)) || uint64(p.K) > limit.Cells/uint64(p.D+p.N) {
		return nil, f.FailAt("WORD", 4, "the model would need too much memory")
	}
	if p.Kind == section.QMF && (p.Levels < 2 || p.BatchRows < p.D) {
		return nil, f.FailAt("WORD", 15, "a number is out of range")
	}
	parts := p.reals()
	if err := f.Fill("REAL", parts); err != nil {
		return nil, err
	}
	v := parts[1].V
	p.Epsilon, p.Tolerance, p.LearningRate, p.Penalty, p.Shrinkage, p.Scale = parts[0].V[0], v[0], v[1], v[2],
		v[3], v[4]
	p.Penalties = nmf.Penalties{L1U: v[5], L1V: v[6], L2U: v[7], L2V: v[8]}
	if p.Fixed > p.K {
		return nil, f.FailAt("WORD", 27, "a number is out of range")
	}
	p.Loss, p.Validation, p.Line = divergence.Loss(parts[2].V[0]), parts[3].V[0], parts[3].V[1]
	if p.Kind == section.QMF && !(p.Epsilon >= 1e-12) || p.Kind == section.NMF && p.Epsilon != 0 {
		return nil, f.FailAt("REAL", 0, "ε is "+strconv.FormatFloat(p.Epsilon, 'g', -1, 64))
	}
	rows := 0
	if p.Signed {
		rows = p.D
	}
	if p.Shift, err = f.Floats("UNIT", int64(rows), -math.MaxFloat64, math.MaxFloat64); err != nil {
		return nil, err
	}
	if !p.Signed {
		p.Shift = nil
	}
	p.setRuns()
	if p.Shards > p.count() {
		return nil, f.FailAt("WORD", 5, "there are more shards than runs of rows")
	}
	return p, nil
}
