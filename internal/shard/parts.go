package shard

// This file holds parts: what a shard adds in a round.
//
//	of an NMF
//	NUMS, DENS, LOSS  f of each run: numerators, denominators, the losses of its visible and its held-out cells
//	UFAC              f the rows of U, where there is a penalty: it is a part of the losses
//	                  In rounds of Newton's method NUMS has all sums of each run, losses too, and UFAC is at the next y.
//	                  Where rows may lead DENS is the Σ_j X_ij² of each in the round PhaseOpen; in the round PhaseLead
//	                  NUMS and DENS are those of X and of U that do
//
//	of a QMF
//	NUMS, DENS  f of each node of the tree of sums (internal/runs): B and A of the model of V; where Adam steps V its
//	            gradient, and nothing
//	LOSS, HELD  f of each row: its losses
//	UFAC        f the rows of U, or of Ũ, before the step, where patience judges the penalty
//	FILE        in the round PhaseHand, a QMF of the shard's rows as a file

import (
	"slices"

	"github.com/quantmf/quantmf/internal/runs"
	"github.com/quantmf/quantmf/internal/section"
)

// Part is what a shard adds in a round.
type Part struct {
	Num, Den     []float64
	Losses, Held []float64
	U            []float64
	File         []byte
}

func (p *Part) sections(kind uint32) []section.Section {
	s := []section.Section{section.Floats("NUMS", p.Num), section.Floats("DENS", p.Den),
		section.Floats("LOSS", p.Losses)}
	if kind == QMF {
		s = append(s, section.Floats("HELD", p.Held))
	}
	s = append(s, section.Floats("UFAC", p.U))
	if kind == QMF {
		s = append(s, section.Section{Tag: "FILE", Payload: p.File})
	}
	return s
}

// partTags are the sections of parts; an NMF has the first four.
var partTags = []string{"NUMS", "DENS", "LOSS", "UFAC", "HELD", "FILE"}

// part reads what a shard adds in a round.
func (f *Fit) part(round, shard int) (*Blob, error) {
	tags := partTags
	if f.Plan.Kind == NMF {
		tags = tags[:4]
	}
	b, err := f.read(partName(round, shard), kindPart, f.Plan.whom(round, shard), tags...)
	if err != nil {
		if damaged(err) {
			err = &StepError{round, shard, err}
		}
		return nil, err
	}
	b.made = &[2]int{round, shard}
	return b, nil
}

// sums are the numbers of a section.
type sums struct {
	tag   string
	parts []section.Part
}

func (b *Blob) fill(all ...sums) error {
	for _, s := range all {
		if err := b.Fill(s.tag, s.parts); err != nil {
			return b.Fault(err)
		}
	}
	return nil
}

// MadeQMF is what a step of a QMF makes.
func MadeQMF(real []section.Part, index []uint64, of Part) *Made {
	return &Made{real, index, of.sections(QMF)}
}

// Total is what the parts of a round of a QMF come to.
type Total struct {
	A, B         *runs.Sums // of the models of V, all runs; A nil: B is the gradient
	Losses, Held []float64  // of each row
	U            []float64  // d × k; nil: not asked for
}

// Joined is the sums of a cut as a part has them.
func Joined(s *runs.Sums) []float64 { return slices.Concat(s.Parts...) }

// TakeQMF takes what a shard adds in a round, and returns its part.
func (f *Fit) TakeQMF(r *Round, shard int, to *Total) (*Blob, error) {
	p, cut := f.Plan, f.Plan.Cut(shard)
	from, end := cut.Rows()
	b, err := f.part(r.Number, shard)
	if err != nil {
		return nil, err
	}
	nodes := cut.Nodes()
	if r.Phase != PhaseVisit {
		nodes = nil
	}
	numbers := func(s *runs.Sums, as func([]float64) section.Part) (parts []section.Part) {
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
	if err := b.fill(sums{"NUMS", num}, sums{"DENS", den},
		sums{"LOSS", []section.Part{section.Positive(to.Losses[from:end])}},
		sums{"HELD", []section.Part{section.Positive(to.Held[from:end])}}, sums{"UFAC", u}); err != nil {
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

// Handed reads the part of a shard in the last round but one of a QMF that is over: its File is a model of
// the shard's rows.
func (f *Fit) Handed(r *Round, shard int) (*Blob, error) { return f.part(r.Number-1, shard) }
