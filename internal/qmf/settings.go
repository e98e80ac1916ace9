// Package qmf fits X ≈ T(UV) (paper §3.4) and X ≈ T(Π_k(T'(X))) (§3.5), and X ≈ UV, with whose factors they
// start. Its fits are algorithms of package fit: they know how to begin, to make an epoch, and what a model
// is made of. The root package has the options, and the models.
//
// A row goes this way: an epoch (fit.go) visits it in the workspace of a worker (maprows.go), transports
// w = U_i V onto the levels, steps T_i (monotone.go) and takes the gradient back to w̄ (inflate.go, line.go);
// U_i makes its step at once, V once a batch (factorsteps.go). start.go has the starts, and what the data
// choose there, deflate.go and qmfq.go the maps T' of a QMFQ, nmf.go an NMF, shards.go fits whose rows are
// split.
package qmf

// This file holds what the numbers of a fit depend on beside its data.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/transport"
)

// Settings are what the numbers of a fit depend on beside its data. A running fit holds them; a fit within
// another fit has a copy with changes. A BQMF has the first of them, and the tolerance.
type Settings struct {
	Loss            divergence.Loss
	Epochs          int
	Patience        int
	Seed            uint64
	Validation      float64
	Missing, Mapped bool // NaN cells are unobserved; the model has maps, which take any x under Frobenius

	// where it starts
	Start   Start
	Init    bool // InitU (d × k) and InitV (k × n) are given
	InitU   fit.Dense
	InitV   fit.Dense
	Begun   *Given    // those of the model that the fit goes on from; nil: the fit makes its own
	FixedU  fit.Dense // d × r, the first columns of U, which stay; empty: none, or not at hand
	Fixed   int       // r
	Chosen  *Choice   // what MethodAuto shares between fits of QMF; nil: nothing
	MayRest bool      // whether the data may choose that a QMF makes no epochs
	Whole   bool      // the fit that this one judges misses no cell

	// of NMF
	Updates   Updates
	Penalties nmf.Penalties

	// of the maps
	Epsilon       float64
	Squash        transport.Kind
	Tolerance     float64
	MaxIterations int
	Levels        int
	Ends          Ends
	Shrinkage     float64 // below 0: the data choose
	Line          float64 // below 0: the data choose

	// of the steps
	BatchRows    int
	LearningRate float64
	Schedule     Schedule
	Penalty      float64
	Projection   projection.Choice
}

// Start, Ends, Schedule and Updates are those of the root package.
type (
	Start    uint8
	Ends     uint8
	Schedule uint8
	Updates  uint8
)

const (
	StartAuto Start = iota
	StartScores
	StartNMF
	StartUniform
	StartSVD

	EndsFree   Ends = 0
	EndsPinned Ends = 1

	ScheduleCosine   Schedule = 0
	ScheduleConstant Schedule = 1

	UpdatesNewton         Updates = 0
	UpdatesMultiplicative Updates = 1
)

// Given are the maps that a fit begins with, a row a feature.
type Given struct {
	Quantiles, Weights fit.Dense
	Slopes             []float64
	Deflation          *Given // of a QMFQ: T', which has no slopes
	Own                bool   // InitU and InitV of it are where the projections of the model started
}

// Prospect is what the data choose of a fit.
type Prospect struct {
	Start        Start
	Lambda, Line float64
	Rests        bool // it makes no epochs
}

// Choice is what the data have chosen of a fit of QMF.
type Choice struct {
	Prospect
	Made bool
}

// Defaults are those of a QMF where U and V make Gauss–Newton steps.
func Defaults() Settings {
	return Settings{Mapped: true, Epsilon: 0.02, Squash: transport.LogisticUnit, Tolerance: 1e-9,
		MaxIterations: 200, Levels: 8, Epochs: 4, Seed: 1, LearningRate: 0.2, BatchRows: 32,
		Loss: divergence.KL, Shrinkage: -1, Line: -1}
}

// AdamRate is the default learning rate where Adam steps U and V.
const AdamRate = 0.06

// Gaussian tells whether U and V of a QMF of rank k make Gauss–Newton steps.
// Adam steps them in four cases:
//   - under StartUniform, which is the paper's form;
//   - under SquashNone, where a change of w moves T through its potentials more than through the
//     slopes T'_j (inflation.curvature), so that steps by the slopes alone go far too far;
//   - for β < -1/2, where the curvature at x = T differs much from that at an x above T;
//   - above 32 components: Gauss–Newton steps cost 2k(k+1) flops a cell and
//     k(k+1)/2 numbers a sample, and from about 40 components on twenty epochs of Adam take less time.
func (s *Settings) Gaussian(k int) bool {
	return s.Start != StartUniform && s.Squash != transport.None && s.Loss >= -0.5 && k <= 32
}

// pace returns the pace of Adam in epoch e, counted from 0.
func (s *Settings) pace(e int) pace {
	rate := s.LearningRate
	if s.Schedule == ScheduleCosine {
		rate *= cosine(float64(e) / float64(s.Epochs))
	}
	return pace{Rate: rate, Count: e + 1}
}

// MayHaveLine tells whether maps may have a line.
func (s *Settings) MayHaveLine() bool { return s.Start != StartUniform && s.Ends != EndsPinned }

// Lagging tells whether an epoch of a QMF of d rows returns the losses of the state that it started
// from: it does where all rows are one batch and there is no validation.
func (s *Settings) Lagging(d int) bool { return s.BatchRows >= d && s.Validation == 0 }

// Rules are those by which the numbers of x are checked.
func (s *Settings) Rules() fit.Rules {
	return fit.Rules{Loss: s.Loss, Missing: s.Missing, Mapped: s.Mapped, Validation: s.Validation,
		Seed: s.Seed}
}

// FactorBound returns the bound of |log u| and |log v| for the entries of factors.
func (s *Settings) FactorBound(rank int) float64 {
	if s.Squash == transport.None { // what is transported is UV itself
		return elem.Log(limit.Point/float64(rank)) / 2
	}
	return limit.LogFactor
}

// prior is what the penalties add to the sum of the divergences of a sample, of n with so many visible cells.
func (s *Settings) prior(visible, n int) place.Prior {
	each := float64(visible) / float64(n)
	return place.Prior{L1: each * s.Penalties.L1V, L2: each * s.Penalties.L2V}
}
