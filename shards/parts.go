package shards

// This file holds parts: what a shard adds in a round.
//
//	of an NMF
//	NUMS, DENS, LOSS  f of each run: numerators, denominators, the losses of its visible and its held-out
//	                  cells
//	UFAC              f the rows of U, where there are penalties: they are a part of the losses
//	                  In rounds of Newton's method NUMS has all sums of each run, losses too, and UFAC is at
//	                  the next y.
//
//	of a QMF
//	NUMS, DENS  f of each node of the tree of sums (internal/pool): B and A of the model of V; where Adam
//	            steps V its gradient, and nothing
//	LOSS, HELD  f of each row: its losses
//	UFAC        f the rows of U, or of Ũ, before the step, where patience judges the penalty
//	FILE        in the round phaseHand, a QMF of the shard's rows as a file

import (
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// sections are those of a part.
func sections(kind uint32, p *qmf.ShardPart) []section.Section {
	s := []section.Section{section.Floats("NUMS", p.Num), section.Floats("DENS", p.Den),
		section.Floats("LOSS", p.Losses)}
	if kind == section.QMF {
		s = append(s, section.Floats("HELD", p.Held))
	}
	s = append(s, section.Floats("UFAC", p.U))
	if kind == section.QMF {
		s = append(s, section.Section{Tag: "FILE", Payload: p.File})
	}
	return s
}

// part reads what a shard adds in a round.
func (f *Fit) part(round, shard int) (*blob, error) {
	tags := []string{"NUMS", "DENS", "LOSS", "UFAC"}
	if f.plan.Kind == section.QMF {
		tags = append(tags, "HELD", "FILE")
	}
	b, err := f.read(kindPart, round, shard, tags...)
	if err != nil {
		if damaged(err) {
			err = &StepError{round, shard, err}
		}
		return nil, err
	}
	b.made = &[2]int{round, shard}
	return b, nil
}
