package section

// This file holds the kinds of files that the package writes, models and states of fits (checkpoints), and
// the sections that each has. section.go has their layout. A state is of the kind of its model plus
// [State]; checkpoint.go has its sections. Those of a model, uint64 as u, float64 as f:
//
//	DIMS  u d, n, k, m (0 in an NMF); u best; u 1 where NaN cells are missing; f loss β; f ε
//	UFAC  f d×k       VFAC  f k×n       HIST  f one an epoch       VALI  f likewise
//	PENV  f L1, L2: what the penalties of a fit add to the divergences of a sample (NMF only, optional)
//	QUAN  f d×m       WGHT  f d×m       POTN  f d×m, h about the centre
//	TOOK  u start, f shrinkage, share of the line (QMF and QMFQ)
//	ROWS  f d×7: centre, squash kind, its reference, shift and deviation, marginal error, slope of the line
//	DEFQ  f d×m, quantiles of T' (QMFQ only)      DEFC  f d×(m-1), its thresholds, squashed
//	DEFR  f d×4, its squash: kind, reference, shift, deviation
//	PROJ  u kind of projection, u updates         FROM  f d×k and k×n, where projections start
//	BQMF only, packed matrices of k(k+1)/2 as in internal/bqmf, factors signed:
//	MOMU  f d×k(k+1)/2, E u uᵀ      MOMV  f n×k(k+1)/2, E v vᵀ
//	NOIS  f d: τ; n: ρ; the mean that ρ was divided by; leave-one-out loss
//	CURV  u d×3: knots of g_i, of g_i⁻¹ with mass (0: the same), steps of T_i
//	CURR  f d×22: least and largest observed value, spread, floor, mean of x, mean of leave-one-out p,
//	      slope, 15 levels
//	KNOT  f of each row: y of its knots, x of them; those with mass; places of its steps, their values
//	STGW  u of each row: 0, or 1, how many rows its second stage takes, which, and how many samples;
//	      then a bit for each observed cell; nothing where no row has a second stage
//	STGF  f of each row with a second stage the share of the factors, a
//	      constant, what it leaves of the deviation, weights, and n: its part in each cell; and of
//	      each row its place at those samples
//	ALIK  u the rows that have something of samples that are alike (not there where none has)
//	ALIZ  f of each of them: what that leaves of the deviation, and z of every ⌈n/2048⌉th sample
//	TOGE  f by how much more cells are off that are hidden together; d: the variance of UV in a cell
//	      that is hidden alone (not there where no cell was hidden)
//	ABSE  u the samples that took no part in the fit (not there where all did)
//	CONV  f w×4, a warning each: row, passes, marginal error, tolerance of a transport that
//	      did not converge (QMF and QMFQ, optional)
//	WARN  texts of warnings, each u length and bytes (optional)
//
// A section whose tag is in lower case is of the program that wrote the file.

import (
	"math"
)

// Models.
const (
	NMF uint32 = 1 + iota
	QMF
	QMFQ
	BQMF
)

// State is added to the kind of a model for that of a state of its fit.
const State = 16

// ModelKind returns the kind of the model in a file, by its header: where that is none of them any, for whose
// reader to say what is wrong. The state of a fit is an error.
func ModelKind(data []byte) (uint32, error) {
	kind, err := Kind(data)
	switch {
	case err != nil:
		return 0, err
	case kind >= State+NMF && kind <= State+BQMF:
		return 0, &Error{Offset: 12, Problem: "this is a checkpoint of a fit, not a model"}
	case kind < NMF || kind > BQMF:
		return QMF, nil
	}
	return kind, nil
}

// KindName says what a file of the kind is.
func KindName(kind uint32) string {
	names := map[uint32]string{NMF: "NMF", QMF: "QMF", QMFQ: "QMFQ", BQMF: "BQMF"}
	if name, known := names[kind]; known {
		return "a model of " + name
	}
	if name, known := names[kind-State]; known {
		return "a state of a fit of " + name
	}
	return "of unknown kind"
}

// RequiredTags returns the tags of the sections that a model of the kind must have. Those of OptionalTags,
// CONV and WARN are the only other ones that this version knows.
func RequiredTags(kind uint32) []string {
	tags := []string{"DIMS", "UFAC", "VFAC", "HIST", "VALI"}
	if kind == BQMF {
		return append(tags, "MOMU", "MOMV", "NOIS", "CURV", "CURR", "KNOT", "STGW", "STGF")
	}
	if kind != NMF {
		tags = append(tags, "QUAN", "WGHT", "POTN", "ROWS", "TOOK")
	}
	if kind == QMFQ {
		tags = append(tags, "DEFQ", "DEFC", "DEFR", "PROJ", "FROM")
	}
	return tags
}

// OptionalTags returns the tags that only some models of the kind have.
func OptionalTags(kind uint32) []string {
	switch kind {
	case BQMF:
		return []string{"ALIK", "ALIZ", "TOGE", "ABSE"}
	case NMF:
		return []string{"PENV"}
	}
	return nil
}

// Mapped tells whether models of the kind have maps of m levels.
func Mapped(kind uint32) bool { return kind == QMF || kind == QMFQ }

// LeastHistory is the least that an entry of a history may be: losses are not negative, bounds of the
// evidence may be.
func LeastHistory(kind uint32) float64 {
	if kind == BQMF {
		return -math.MaxFloat64
	}
	return 0
}
