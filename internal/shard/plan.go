package shard

// This file holds the plan: what all steps of a fit know, and who has which rows.

import (
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kinds"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/runs"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/unit"
)

// The kinds of fits, those of their models: X ≈ UV, and X ≈ T(UV) with all rows in one batch.
const (
	NMF = kinds.NMF
	QMF = kinds.QMF
)

// Plan is what all steps of a fit know.
type Plan struct {
	Kind                   uint32
	ID                     uint64 // the fit's fingerprint
	D, N, K, Shards        int
	Visible, HeldOut       int  // cells
	Partial, Holds, Strict bool // cells are hidden, held out; what has not converged is an error
	unit.Units
	Settings
	runs []int // where runs of rows begin, and d
}

// Settings are what the numbers of a fit depend on beside its data.
type Settings struct {
	Epsilon, Tolerance, LearningRate, Penalty, Validation float64
	Loss                                                  divergence.Loss
	MaxIterations, Levels, Epochs, BatchRows, Patience    int
	Seed                                                  uint64
	Missing, Mapped                                       bool
	Choices
	// Of a QMF: where it started, the shrinkage, and the unit of the whole loss.
	Origin        uint64
	Lambda, Scale float64
}

// Choices are settings that are one of a list, by their numbers, which are the caller's but for [Newton].
type Choices struct{ Squash, Schedule, Start, Ends, Updates uint64 }

func (p *Plan) whom(round, shard int) whom { return whom{p.ID, round, shard} }

// Runs returns the number of runs that the rows are summed in, the most shards that there can be.
func (p *Plan) Runs() int { return len(p.runs) - 1 }

// SetRuns cuts the rows, by kind and sizes.
func (p *Plan) SetRuns() {
	p.runs = runs.Of(p.D)
	if p.Kind == NMF {
		p.runs = nmf.Runs(p.D, p.N, p.K)
	}
}

// Cut returns the runs of a shard.
func (p *Plan) Cut(shard int) runs.Cut {
	count := p.Runs()
	return runs.Cut{Bounds: p.runs, From: shard * count / p.Shards, To: (shard + 1) * count / p.Shards}
}

// JudgesPenalty tells whether parts of a QMF have the rows of U, for the penalty.
func (p *Plan) JudgesPenalty() bool { return p.Penalty > 0 && p.Patience > 0 }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// planWords are the integers of a plan.
const planWords = 27

// exponents are added to those of units, which may be negative.
const exponents = 1 << 12

func (p *Plan) words() []uint64 {
	return []uint64{uint64(p.Kind), p.ID, uint64(p.D), uint64(p.N), uint64(p.K), uint64(p.Shards),
		uint64(p.Visible), uint64(p.HeldOut),
		bit(p.Partial), bit(p.Holds), bit(p.Strict), bit(p.Signed), uint64(int64(p.All) + exponents),
		p.Origin,
		uint64(p.MaxIterations), uint64(p.Levels), uint64(p.Epochs), p.Seed, uint64(p.BatchRows),
		uint64(p.Patience),
		p.Squash, p.Schedule, p.Start, p.Ends, p.Updates, bit(p.Missing), bit(p.Mapped)}
}

// bounds are what each of the words may at most be.
func (c Choices) bounds() [planWords]uint64 {
	const size, any = 1<<31 - 1, math.MaxUint64
	return [planWords]uint64{uint64(QMF), any, size, size, size, size, 1 << 62, 1 << 62, 1, 1, 1, 1,
		2 * exponents, c.Start,
		size, size, size, any, size, size, c.Squash, c.Schedule, c.Start, c.Ends, c.Updates, 1, 1}
}

func (s *Settings) reals() []section.Part {
	return []section.Part{section.Within([]float64{s.Epsilon}, 0, 1e12),
		section.Positive([]float64{s.Tolerance, s.LearningRate, s.Penalty, s.Lambda, s.Scale}),
		section.Within([]float64{float64(s.Loss)}, -2, 4), section.Within([]float64{s.Validation}, 0, 1)}
}

func (p *Plan) encode() []byte {
	var each []uint64
	for _, e := range p.Each {
		each = append(each, uint64(int64(e)+exponents))
	}
	return p.whom(0, 0).encode(kindPlan, section.Words("WORD", p.words()...),
		section.Parts("REAL", p.reals()),
		section.Floats("UNIT", p.Shift), section.Words("EACH", each...), section.Floats("WGHT", p.Weight))
}

// readPlan reads the plan of a store. most has the largest number of each choice.
func readPlan(store Store, most Choices) (*Plan, error) {
	b, err := read(store, PlanName, kindPlan, nil, []string{"WORD", "REAL", "UNIT", "EACH", "WGHT"})
	if err != nil {
		return nil, err
	}
	p, err := decodePlan(b.File, most)
	return p, b.Fault(err)
}

func decodePlan(f *section.File, largest Choices) (*Plan, error) {
	w, err := f.Words("WORD", planWords)
	if err != nil {
		return nil, err
	}
	for i, most := range largest.bounds() {
		if w[i] > most || i < 6 && i != 1 && w[i] < 1 {
			return nil, f.FailAt("WORD", i, "a number is out of range")
		}
	}
	p := &Plan{Kind: uint32(w[0]), ID: w[1], D: int(w[2]), N: int(w[3]), K: int(w[4]), Shards: int(w[5]),
		Visible: int(w[6]), HeldOut: int(w[7]),
		Partial: w[8] == 1, Holds: w[9] == 1, Strict: w[10] == 1,
		Units: unit.Units{Signed: w[11] == 1, All: int(w[12]) - exponents},
		Settings: Settings{Origin: w[13], MaxIterations: int(w[14]), Levels: int(w[15]), Epochs: int(w[16]),
			Seed: w[17], BatchRows: int(w[18]), Patience: int(w[19]),
			Choices: Choices{Squash: w[20], Schedule: w[21], Start: w[22], Ends: w[23], Updates: w[24]},
			Missing: w[25] == 1, Mapped: w[26] == 1}}
	if limit.TooMany(max(p.D, p.N), max(p.Levels, 2)) || uint64(p.K) > limit.Cells/uint64(p.D+p.N) {
		return nil, f.FailAt("WORD", 4, "the model would need too much memory")
	}
	if p.Kind == QMF && (p.Levels < 2 || p.BatchRows < p.D) {
		return nil, f.FailAt("WORD", 15, "a number is out of range")
	}
	parts := p.reals()
	if err := f.Fill("REAL", parts); err != nil {
		return nil, err
	}
	v := parts[1].V
	p.Epsilon, p.Tolerance, p.LearningRate, p.Penalty, p.Lambda, p.Scale = parts[0].V[0], v[0], v[1], v[2],
		v[3], v[4]
	p.Loss, p.Validation = divergence.Loss(parts[2].V[0]), parts[3].V[0]
	if p.Kind == QMF && !(p.Epsilon >= 1e-12) || p.Kind == NMF && p.Epsilon != 0 {
		return nil, f.FailAt("REAL", 0, "ε is "+strconv.FormatFloat(p.Epsilon, 'g', -1, 64))
	}
	perRow := func(tag string) int {
		if len(f.Payload(tag)) == 0 {
			return 0
		}
		return p.D
	}
	if p.Shift, err = f.Floats("UNIT", int64(perRow("UNIT")), -math.MaxFloat64, math.MaxFloat64); err != nil {
		return nil, err
	}
	if p.Weight, err = f.Floats("WGHT", int64(perRow("WGHT")), 0, math.MaxFloat64); err != nil {
		return nil, err
	}
	each, err := f.Words("EACH", perRow("EACH"))
	if err != nil {
		return nil, err
	}
	for i, e := range each {
		if e > 2*exponents {
			return nil, f.FailAt("EACH", i, "a number is out of range")
		}
		p.Each = append(p.Each, int(e)-exponents)
	}
	if p.Signed != (len(p.Shift) > 0) || (len(p.Each) > 0) != (len(p.Weight) > 0) {
		return nil, f.Fail("UNIT", "wrong length")
	}
	if len(p.Shift) == 0 {
		p.Shift = nil
	}
	if len(p.Weight) == 0 {
		p.Weight = nil
	}
	p.SetRuns()
	if p.Shards > p.Runs() {
		return nil, f.FailAt("WORD", 5, "there are more shards than runs of rows")
	}
	return p, nil
}
