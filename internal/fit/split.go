package fit

// This file holds what passes between the root package, which has the equations of the models, and package
// shards, which splits the rows of a fit over machines. A fit there goes in rounds: each shard makes a step
// for its rows, and one reduce goes on from the sums of all steps. The rows are those of x'.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// Door is what the root package asks of a caller of its Split. No package outside this module can make one.
type Door struct{ _ [0]func() }

// Split is what every step of a fit whose rows are split knows.
type Split struct {
	// of the model (internal/section): an NMF, or a QMF with all rows in one batch
	Kind                   uint32
	D, N, K                int
	Visible, HeldOut       int  // cells
	Partial, Holds, Strict bool // cells are hidden, held out; what has not converged is an error
	Units
	Settings
}

// Settings are what the numbers of a fit depend on beside its data.
type Settings struct {
	Epsilon, Tolerance, LearningRate, Penalty, Validation float64
	Loss                                                  divergence.Loss
	Penalties                                             nmf.Penalties // of an NMF
	// columns of U that are given, and stay
	Fixed                                              int
	MaxIterations, Levels, Epochs, BatchRows, Patience int
	Seed                                               uint64
	Missing, Mapped                                    bool
	Choices
	// Of a QMF once its start is made: where it started, the shrinkage, the share of the line, and the unit
	// of the whole loss.
	Origin              uint64
	Lambda, Line, Scale float64
}

// Choices are settings that are one of a list, by the numbers of the root package's constants.
type Choices struct{ Squash, Schedule, Start, Ends, Updates uint64 }

// The last constant of each list, and the updates of Newton's method. The root package holds them against its
// own.
const (
	LastSquash   = 3
	LastSchedule = 1
	LastStart    = 4
	LastEnds     = 1
	LastUpdates  = 1
	ByNewton     = 0
)

// JudgesPenalty tells whether a reduce of a QMF needs the rows of U, for the penalty.
func (f *Split) JudgesPenalty() bool { return f.Penalty > 0 && f.Patience > 0 }

// SplitStart is what a fit begins with.
type SplitStart struct {
	// Row returns row i of x', NaN where nothing was observed, in room or where it lies.
	Row  func(room []float64, i int) []float64
	Held []uint64     // of each row a bit for each cell, 1 where it is held out; nil where none is
	Read func() error // the error of reading rows, if any
	U, V []float64    // d × k of an NMF; k × n
	// of an NMF by Newton's method where cells are hidden: the rows in which each column is seen
	Seen []float64
	// State returns the first state of some rows of a QMF: numbers, and whether each row has a warm start.
	State   func(from, to int) ([]section.Part, []uint64)
	Main    []section.Part // of a QMF: what a reduce goes on from beside V,
	Numbers []float64      // and the numbers that the steps of V go on from
}

// Shard is the rows of a shard.
type Shard struct {
	X       Rows      // NaN where nothing was observed
	Held    []uint64  // as in SplitStart
	Visible []int     // visible cells of each row
	Units   Units     // of these rows
	Cut     pool.Runs // the runs of the whole matrix that they are
}

// Pass is what a step of a QMF does with its rows.
type Pass int

const (
	PassStart  Pass = iota // makes q and F at the start of U and V, and the losses there
	PassEpoch              // makes the steps of an epoch, the losses being those before it
	PassLosses             // takes the losses
	PassModel              // makes the model
)

// ShardStep is a step of some rows of a QMF.
type ShardStep struct {
	Pass  Pass
	Epoch int
	// Fresh: the state is the best so far, and to be kept. Best: the model is that of the best state.
	Fresh, Best bool
	V           []float64 // k × n
	// Restore fills the numbers and the warm starts of the state, in the order in which Real and Index have
	// them after the step.
	Restore func(parts []section.Part, warm []transport.Warm) error
	Real    []section.Part
	Index   []uint64
	Made    ShardPart
}

// ShardPart is what a shard adds in a round.
type ShardPart struct {
	Num, Den     []float64 // sums for the step of V
	Losses, Held []float64 // of a QMF, of each row
	U            []float64 // the rows of U where the penalty is judged
	File         []byte    // of PassModel: a QMF of the rows, in the units of x
}

// Reduce is what a reduce of a QMF makes of the parts of all shards.
type Reduce struct {
	Epoch   int
	Steps   int       // that V has made
	V       []float64 // k × n
	Numbers []float64 // that the steps of V go on from
	StepV   bool      // make the step of V
	// Restore fills what a reduce goes on from beside V, in the order in which Main has it afterwards.
	Restore func(parts []section.Part) error
	Main    []section.Part
	Take    func(to *Total) error // adds up the parts
	Losses  Losses                // Of is not set
}

// Total is what the parts of a round of a QMF come to.
type Total struct {
	A, B         *pool.Sums // of the models of V, all runs; A nil: B is the gradient
	Losses, Held []float64  // of each row
	U            []float64  // d × k; nil: not asked for
}
