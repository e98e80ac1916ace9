package shards

// This file holds the plan: what all steps of a fit know, and who has which rows.

import (
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/section"
)

// plan is what all steps of a fit know.
type plan struct {
	fit.Split
	ID     uint64 // the fit's fingerprint
	Shards int
	runs   []int // where runs of rows begin, and d
}

func (p *plan) whom(round, shard int) whom { return whom{p.ID, round, shard} }

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

// planWords are the integers of a plan.
const planWords = 28

// exponents are added to those of units, which may be negative.
const exponents = 1 << 12

func (p *plan) words() []uint64 {
	return []uint64{uint64(p.Kind), p.ID, uint64(p.D), uint64(p.N), uint64(p.K), uint64(p.Shards),
		uint64(p.Visible), uint64(p.HeldOut),
		bit(p.Partial), bit(p.Holds), bit(p.Strict), bit(p.Signed), uint64(int64(p.All) + exponents),
		p.Origin,
		uint64(p.MaxIterations), uint64(p.Levels), uint64(p.Epochs), p.Seed, uint64(p.BatchRows),
		uint64(p.Patience),
		p.Squash, p.Schedule, p.Start, p.Ends, p.Updates, bit(p.Missing), bit(p.Mapped),
		uint64(p.Fixed)}
}

// bounds are what each of the words may at most be.
func bounds() [planWords]uint64 {
	const size, any = 1<<31 - 1, math.MaxUint64
	return [planWords]uint64{uint64(section.QMF), any, size, size, size, size, 1 << 62, 1 << 62, 1, 1, 1, 1,
		2 * exponents, fit.LastStart, size, size, size, any, size, size, fit.LastSquash,
		fit.LastSchedule, fit.LastStart, fit.LastEnds, fit.LastUpdates, 1, 1, size}
}

func (p *plan) reals() []section.Part {
	return []section.Part{section.Within([]float64{p.Epsilon}, 0, 1e12),
		section.Positive([]float64{p.Tolerance, p.LearningRate, p.Penalty, p.Lambda, p.Scale,
			p.Penalties.L1U, p.Penalties.L1V, p.Penalties.L2U, p.Penalties.L2V}),
		section.Within([]float64{float64(p.Loss)}, -2, 4),
		section.Within([]float64{p.Validation, p.Line}, 0, 1)}
}

func (p *plan) encode() []byte {
	return p.whom(0, 0).encode(kindPlan, section.Words("WORD", p.words()...),
		section.Parts("REAL", p.reals()),
		section.Floats("UNIT", p.Shift))
}

// readPlan reads the plan of a store.
func readPlan(store Store) (*plan, error) {
	b, err := read(store, planName, kindPlan, nil, []string{"WORD", "REAL", "UNIT"})
	if err != nil {
		return nil, err
	}
	p, err := decodePlan(b.File)
	return p, b.fault(err)
}

func decodePlan(f *section.File) (*plan, error) {
	w, err := f.Words("WORD", planWords)
	if err != nil {
		return nil, err
	}
	for i, most := range bounds() {
		if w[i] > most || i < 6 && i != 1 && w[i] < 1 {
			return nil, f.FailAt("WORD", i, "a number is out of range")
		}
	}
	p := &plan{ID: w[1], Shards: int(w[5]), Split: fit.Split{Kind: uint32(w[0]), D: int(w[2]), N: int(w[3]),
		K: int(w[4]), Visible: int(w[6]), HeldOut: int(w[7]), Partial: w[8] == 1, Holds: w[9] == 1,
		Strict: w[10] == 1, Units: fit.Units{Signed: w[11] == 1, All: int(w[12]) - exponents},
		Settings: fit.Settings{Origin: w[13], MaxIterations: int(w[14]), Levels: int(w[15]),
			Epochs: int(w[16]), Seed: w[17], BatchRows: int(w[18]), Patience: int(w[19]),
			Choices: fit.Choices{Squash: w[20], Schedule: w[21], Start: w[22], Ends: w[23],
				Updates: w[24]},
			Missing: w[25] == 1, Mapped: w[26] == 1, Fixed: int(w[27])}}}
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
	p.Epsilon, p.Tolerance, p.LearningRate, p.Penalty, p.Lambda, p.Scale = parts[0].V[0], v[0], v[1], v[2],
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
