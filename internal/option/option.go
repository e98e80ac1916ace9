// Package option declares the options: each by the function that makes it, its flag, the form of its values
// and their bound. Functions of package quantmf, flags of the commands, names in JavaScript and the words of
// errors come from these declarations; package settings makes options of texts by them. The help is the
// commands' own (internal/cli), so that a program that imports quantmf does not carry it. The table at the
// end of this file says which function takes which option.
//
// A call has the set G of kinds that were given, a [Function] the set F.Takes; a call is right only if
// G ⊂ F.Takes. A field of the configuration is meaningful if its kind is in G or the function has a default
// for it.
package option

import (
	"math"
	"strconv"
	"strings"
)

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
	Context
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
	Model
	Penalty
	Penalties
	FixedU
	SampleWeights
	CellWeights
	Shrinkage
	Line
	Loss
	Patience
	Restarts
	Validation
	Missing
	Checkpoint
	Resume
	Projection
	Updates
	Discrete

	Kinds // their number
)

// Form is the form of an option's values.
type Form uint8

const (
	Go      Form = iota // a function, factors, a state: nothing that a text can stand for
	Whole               // a whole number
	Decimal             // a number
	Numbers             // a list of numbers
	Switch              // no value
	Choice              // one of some constants
	Text                // a notation of its own
)

// declaration is what is said of an option, once.
type declaration struct {
	name  string // of its function, without With
	flag  string // of the commands; "" for none
	form  Form
	bound bound
	// of a Choice, by their values, without the name of their type, which is that of the option
	constants string
}

// bound is the range of a number.
type bound struct {
	low, high float64
	open      bool   // low is beyond the range
	zero      bool   // 0 is in the range as well
	of        string // what the number is called in an error, "" where that is clear
}

// unbounded is a high that asks for nothing but a finite number.
const unbounded = math.MaxFloat64

// heaviest is the most of what is multiplied into a loss, lest products of it overflow.
const heaviest = 1e30

var declarations = [Kinds]declaration{
	Epsilon: {name: "Epsilon", flag: "eps", form: Decimal,
		bound: bound{low: 1e-12, high: 1e12, zero: true}},
	Squash: {name: "Squash", form: Choice, constants: "Logistic None LogisticUnit Arctan"},
	Tolerance: {name: "Tolerance", flag: "tolerance", form: Decimal,
		bound: bound{high: unbounded, open: true}},
	MaxIterations: {name: "MaxIterations", form: Whole, bound: bound{low: 1, high: unbounded}},
	Strict:        {name: "Strict", flag: "strict", form: Switch},
	Weights:       {name: "Weights", form: Numbers},
	Targets:       {name: "Targets", form: Numbers},
	TargetWeights: {name: "TargetWeights", form: Numbers},
	Iterations:    {name: "Iterations", form: Whole, bound: bound{low: 1, high: unbounded}},
	Levels:        {name: "Levels", flag: "m", form: Whole, bound: bound{low: 1, high: unbounded}},
	MidpointRanks: {name: "MidpointRanks", form: Switch},
	Context:       {name: "Context"},
	Workers:       {name: "Workers", flag: "workers", form: Whole, bound: bound{high: unbounded}},
	Epochs:        {name: "Epochs", flag: "epochs", form: Whole, bound: bound{high: unbounded}},
	Seed:          {name: "Seed", flag: "seed", form: Text},
	Progress:      {name: "Progress"},
	LearningRate:  {name: "LearningRate", flag: "lr", form: Decimal, bound: bound{high: 100, open: true}},
	Schedule:      {name: "Schedule", flag: "schedule", form: Choice, constants: "Cosine Constant"},
	Batch:         {name: "Batch", flag: "batch", form: Whole, bound: bound{low: 1, high: unbounded}},
	Start:         {name: "Start", flag: "start", form: Choice, constants: "Auto Scores NMF Uniform SVD"},
	Ends:          {name: "Ends", flag: "ends", form: Choice, constants: "Free Pinned"},
	Init:          {name: "Init"},
	Model:         {name: "Model"},
	Penalty:       {name: "Penalty", flag: "penalty", form: Decimal, bound: bound{high: heaviest}},
	Penalties:     {name: "Penalties", flag: "penalties", form: Text, bound: bound{high: heaviest}},
	FixedU:        {name: "FixedU"},
	SampleWeights: {name: "SampleWeights", form: Numbers},
	CellWeights:   {name: "CellWeights"},
	Shrinkage:     {name: "Shrinkage", flag: "shrinkage", form: Decimal, bound: bound{high: heaviest}},
	Line:          {name: "Line", flag: "line", form: Decimal, bound: bound{high: 1}},
	Loss:          {name: "Loss", flag: "loss", form: Text, bound: bound{low: -2, high: 4, of: "β "}},
	Patience:      {name: "Patience", flag: "patience", form: Whole, bound: bound{low: 1, high: unbounded}},
	Restarts:      {name: "Restarts", flag: "restarts", form: Whole, bound: bound{low: 1, high: unbounded}},
	Validation: {name: "Validation", flag: "validation", form: Decimal,
		bound: bound{high: 0.5, open: true}},
	Missing:    {name: "MissingValues", flag: "missing", form: Switch},
	Checkpoint: {name: "Checkpoint", flag: "checkpoint"},
	Resume:     {name: "Resume", flag: "resume"},
	Projection: {name: "Projection", flag: "projection", form: Text},
	Updates:    {name: "Updates", flag: "updates", form: Choice, constants: "Newton Multiplicative"},
	Discrete:   {name: "Discrete", flag: "discrete", form: Numbers},
}

// String returns the name of the function that makes the option, such as WithEpsilon.
func (k Kind) String() string { return "With" + declarations[k].name }

// Flag returns the flag of the option in the commands, "" where it has none.
func (k Kind) Flag() string { return declarations[k].flag }

// Form returns the form of the option's values.
func (k Kind) Form() Form { return declarations[k].form }

// Check returns what v must be, "" where it is.
func (k Kind) Check(v float64) string {
	b := declarations[k].bound
	if v >= b.low && v <= b.high && !(b.open && v == b.low) || b.zero && v == 0 {
		return ""
	}
	text := func(v float64) string {
		return strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "e+", "e", 1)
	}
	low, high := text(b.low), text(b.high)
	switch {
	case b.open && b.high == unbounded:
		return "must be finite and above " + low
	case b.open:
		return "must be above " + low + " and at most " + high
	case b.high == unbounded:
		return "must be at least " + low
	case b.zero:
		return "must be 0, or from " + low + " to " + high
	}
	return b.of + "must be from " + low + " to " + high
}

// Constant returns the name of constant i of a Choice, such as StartSVD, or its number if it has none.
func (k Kind) Constant(i int) string {
	d := declarations[k]
	if names := strings.Fields(d.constants); i < len(names) {
		return d.name + names[i]
	}
	return strconv.Itoa(i)
}

// CheckConstant returns what constant i of a Choice must be, "" where it is.
func (k Kind) CheckConstant(i int) string {
	if i < len(k.Words()) {
		return ""
	}
	return "must be one of the " + declarations[k].name + " constants"
}

// Words returns the constants of a Choice, by their values, as flags and JavaScript spell them: svd,
// logisticUnit.
func (k Kind) Words() (words []string) {
	for _, name := range strings.Fields(declarations[k].constants) {
		if name != strings.ToUpper(name) {
			words = append(words, lower(name))
		} else {
			words = append(words, strings.ToLower(name))
		}
	}
	return words
}

// JavaScript returns the name of the option in JavaScript, such as learningRate.
func (k Kind) JavaScript() string { return lower(declarations[k].name) }

func lower(name string) string { return strings.ToLower(name[:1]) + name[1:] }

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

// Ranks tells whether the function returns ranks, or derivatives of ranks, and nothing else.
func (f Function) Ranks() bool { return f.Takes.Has(MidpointRanks) && f.Name != Solve.Name }

// What functions of a sort have in common.
var (
	transports = Of(Epsilon, Squash, Tolerance, MaxIterations, Strict, Workers)
	rows       = transports | Of(Weights, Targets, TargetWeights, Iterations, Levels, Context)
	fits       = Of(Workers, Epochs, Seed, Progress, Init, Loss, Patience, Restarts, Validation,
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
	SoftRankRows     = Function{"SoftRankRows", rows | Of(MidpointRanks), ""}
	SoftRankRowsVJP  = Function{"SoftRankRowsVJP", rows | Of(MidpointRanks), ""}
	SoftRankRowsJVP  = Function{"SoftRankRowsJVP", rows | Of(MidpointRanks), ""}
	SoftSortRows     = Function{"SoftSortRows", rows, ""}
	SoftSortRowsVJP  = Function{"SoftSortRowsVJP", rows, ""}
	SoftSortRowsJVP  = Function{"SoftSortRowsJVP", rows, ""}
	FitNMF           = Function{"FitNMF", fits | Of(Start, Updates, Model, Penalties, FixedU,
		SampleWeights, CellWeights), ""}
	FitQMF = Function{"FitQMF",
		transports | fits | Of(Levels, LearningRate, Schedule, Batch, Start, Ends, Shrinkage, Line, Model,
			Penalty, FixedU, SampleWeights, CellWeights),
		""}
	FitBQMF = Function{"FitBQMF",
		Of(Tolerance, Workers, Epochs, Seed, Loss, Missing, Validation, Progress, Checkpoint, Resume,
			Model, Discrete, SampleWeights, CellWeights), ""}
	FitQMFQ = Function{"FitQMFQ",
		transports | fits | Of(Levels, LearningRate, Schedule, Start, Ends, Shrinkage, Line, Projection,
			Model, SampleWeights, CellWeights), ""}
)

// UnmarshalModel takes what a model's methods need.
var UnmarshalModel = Function{"UnmarshalModel", Of(Workers), ""}

// Name returns the name of constant i of an enumeration, or its number if it has none.
func Name(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
}
