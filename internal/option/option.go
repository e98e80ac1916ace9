// Package option has the options of the functions by kind, and the table of which function
// takes which. It knows nothing of the values: the package above reads and checks those.
//
// A kind K is made by the exported function K.String(), such as WithEpsilon. A call has the set
// G of kinds that were given, a [Function] the set F.Takes; a call is right only if G ⊂ F.Takes.
// A field of the configuration is meaningful if its kind is in G or the function has a default
// for it.
package option

import "strconv"

// Kind numbers the options.
type Kind uint

const (
	Epsilon Kind = iota
	Squash
	Tolerance
	MaxIterations
	Strict
	Weights
	Targets
	TargetWeights
	Iterations
	Levels
	MidpointRanks
	Workers
	Epochs
	Seed
	Progress
	LearningRate
	Schedule
	Batch
	Start
	Ends
	Init
	Penalty
	Shrinkage
	Loss
	Patience
	Restarts
	Validation
	Missing
	Checkpoint
	Resume
	Projection
	Updates

	Kinds // their number
)

var names = [Kinds]string{
	Epsilon:       "WithEpsilon",
	Squash:        "WithSquash",
	Tolerance:     "WithTolerance",
	MaxIterations: "WithMaxIterations",
	Strict:        "WithStrict",
	Weights:       "WithWeights",
	Targets:       "WithTargets",
	TargetWeights: "WithTargetWeights",
	Iterations:    "WithIterations",
	Levels:        "WithLevels",
	MidpointRanks: "WithMidpointRanks",
	Workers:       "WithWorkers",
	Epochs:        "WithEpochs",
	Seed:          "WithSeed",
	Progress:      "WithProgress",
	LearningRate:  "WithLearningRate",
	Schedule:      "WithSchedule",
	Batch:         "WithBatch",
	Start:         "WithStart",
	Ends:          "WithEnds",
	Init:          "WithInit",
	Penalty:       "WithPenalty",
	Shrinkage:     "WithShrinkage",
	Loss:          "WithLoss",
	Patience:      "WithPatience",
	Restarts:      "WithRestarts",
	Validation:    "WithValidation",
	Missing:       "WithMissingValues",
	Checkpoint:    "WithCheckpoint",
	Resume:        "WithResume",
	Projection:    "WithProjection",
	Updates:       "WithUpdates",
}

// String returns the name of the function that makes the option.
func (k Kind) String() string { return names[k] }

// Set is a set of kinds, a bit each. An int has 32 bits on some platforms, and there are about
// as many kinds.
type Set uint64

// Of returns the set of the kinds.
func Of(kinds ...Kind) (s Set) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has tells whether k is in s.
func (s Set) Has(k Kind) bool { return s>>k&1 == 1 }

// Function is a function that takes options.
type Function struct {
	Name  string
	Takes Set
	Sizes string // the argument that gives the number of targets, "" where none does
}

// What functions of a sort have in common.
var (
	transports = Of(Epsilon, Squash, Tolerance, MaxIterations, Strict, Workers)
	rows       = transports | Of(Weights, Targets, TargetWeights, Iterations, Levels)
	fits       = Of(Workers, Epochs, Seed, Progress, Init, Penalty, Loss, Patience, Restarts, Validation,
		Missing, Checkpoint, Resume)
)

// The table of options by function.
var (
	Solve            = Function{"Solve", rows | Of(MidpointRanks), ""}
	SoftRank         = Function{"SoftRank", rows | Of(MidpointRanks), ""}
	SoftSort         = Function{"SoftSort", rows, ""}
	SoftQuantiles    = Function{"SoftQuantiles", rows &^ Of(Targets, TargetWeights, Levels), "levels"}
	SoftTopK         = Function{"SoftTopK", rows &^ Of(Targets, TargetWeights, Levels), "k"}
	SoftQuantile     = Function{"SoftQuantile", rows, "q"}
	SoftQuantileRows = Function{"SoftQuantileRows", rows, "q"}
	FitNMF           = Function{"FitNMF", fits | Of(Start, Updates), ""}
	FitQMF           = Function{"FitQMF",
		transports | fits | Of(Levels, LearningRate, Schedule, Batch, Start, Ends, Shrinkage), ""}
	FitBQMF = Function{"FitBQMF",
		Of(Tolerance, Workers, Epochs, Seed, Loss, Missing, Validation, Progress, Checkpoint, Resume), ""}
	FitQMFQ = Function{"FitQMFQ",
		(transports | fits | Of(Levels, LearningRate, Schedule, Start, Ends, Shrinkage,
			Projection)) &^ Of(Penalty), ""}
)

// The bounds that values of many options share. Each returns what a value must be, "" where it
// is.

// AtLeast is for counts.
func AtLeast(v, low int) string {
	if v < low {
		return "must be at least " + strconv.Itoa(low)
	}
	return ""
}

// Weight is for what is multiplied into a loss: at most 1e30, lest products of it overflow.
func Weight(v float64) string {
	if !(v >= 0 && v <= 1e30) {
		return "must be from 0 to 1e30"
	}
	return ""
}

// Name returns the name of constant i of an enumeration, or its number if it has none.
func Name(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
}
