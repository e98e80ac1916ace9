package quantmf

// This file holds every option with its default and bound, the table of which
// function takes which, and the checks, which all run before any work starts.

import "github.com/quantmf/quantmf/internal/transport"

// FitOption is an option of a fit: [FitNMF], [FitQMF] or [FitQMFQ].
type FitOption interface{ setting() *choice }

// Option is an option of an operator, such as [SoftRank]. Every one is also a
// [FitOption]; a function that has no use for it returns an [*OptionError].
type Option interface {
	FitOption
	operator()
}

// choice is the one implementation of FitOption; operatorSetting of Option.
type choice struct {
	kind  kind
	value string                 // for errors
	check func(c *config) string // "" or the bound that the value breaks
}

func (s *choice) setting() *choice { return s }

type operatorSetting struct{ choice }

func (*operatorSetting) operator() {}

// kind numbers the options; a set of them is a bit mask.
type kind uint

const (
	kEpsilon kind = iota
	kSquash
	kTolerance
	kMaxIterations
	kStrict
	kWeights
	kTargets
	kTargetWeights
	kIterations
	kLevels
	kMidpointRanks
	kWorkers
	kEpochs
	kSeed
	kProgress
	kLearningRate
	kSchedule
	kBatch
	kStart
	kEnds
	kInit
	kPenalty
	kShrinkage
	kLoss
	kPatience
	kRestarts
	kValidation
	kMissing
	kCheckpoint
	kResume
	kProjection
	kUpdates
	kinds
)

var kindNames = [kinds]string{
	"WithEpsilon", "WithSquash", "WithTolerance", "WithMaxIterations", "WithStrict", "WithWeights", "WithTargets",
	"WithTargetWeights", "WithIterations", "WithLevels", "WithMidpointRanks", "WithWorkers", "WithEpochs", "WithSeed",
	"WithProgress", "WithLearningRate", "WithSchedule", "WithBatch", "WithStart", "WithEnds", "WithInit", "WithPenalty",
	"WithShrinkage", "WithLoss", "WithPatience", "WithRestarts", "WithValidation", "WithMissingValues", "WithCheckpoint", "WithResume", "WithProjection", "WithUpdates",
}

func (k kind) String() string { return kindNames[k] }

type kindSet uint

func set(ks ...kind) (s kindSet) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

func (s kindSet) has(k kind) bool { return s>>k&1 == 1 }

// target is a function that takes options: its name and the ones it takes.
type target struct {
	name  string
	takes kindSet
	sizes string // the argument that gives m, where an argument does
}

// The table of options by function.
var (
	transportKinds = set(kEpsilon, kSquash, kTolerance, kMaxIterations, kStrict, kWorkers)
	rowKinds       = transportKinds | set(kWeights, kTargets, kTargetWeights, kIterations, kLevels)
	fitKinds       = set(kWorkers, kEpochs, kSeed, kProgress, kInit, kPenalty, kLoss, kPatience, kRestarts, kValidation, kMissing, kCheckpoint, kResume)

	forSolve        = target{"Solve", rowKinds | set(kMidpointRanks), ""}
	forRank         = target{"SoftRank", rowKinds | set(kMidpointRanks), ""}
	forSort         = target{"SoftSort", rowKinds, ""}
	forQuantiles    = target{"SoftQuantiles", rowKinds &^ set(kTargets, kTargetWeights, kLevels), "levels"}
	forTopK         = target{"SoftTopK", rowKinds &^ set(kTargets, kTargetWeights, kLevels), "k"}
	forQuantile     = target{"SoftQuantile", rowKinds, "q"}
	forQuantileRows = target{"SoftQuantileRows", rowKinds, "q"}
	forNMF          = target{"FitNMF", fitKinds | set(kStart, kUpdates), ""}
	forQMF          = target{"FitQMF", transportKinds | fitKinds | set(kLevels, kLearningRate, kSchedule, kBatch, kStart, kEnds, kShrinkage), ""}
	forQMFQ         = target{"FitQMFQ", (transportKinds | fitKinds | set(kLevels, kLearningRate, kSchedule, kStart, kEnds, kProjection)) &^ set(kPenalty), ""}
)

// config is what the options come to. A field is meaningful where given has its
// kind, or the function has filled in its default.
type config struct {
	given kindSet

	epsilon       float64
	squash        Squash
	tolerance     float64
	maxIterations int
	strict        bool
	weights       []float64
	targets       []float64
	targetWeights []float64
	iterations    int
	levels        int
	midpoint      bool
	workers       int
	discard       bool // no model is wanted of a fit that was stopped

	epochs       int
	seed         uint64
	progress     func(Progress) error
	learningRate float64
	schedule     Schedule
	batchRows    int
	start        Start
	ends         Ends
	initU, initV Mat
	penalty      float64
	shrinkage    float64
	loss         Loss
	patience     int
	restarts     int
	validation   float64
	missing      bool
	every        int
	save         func(state []byte) error
	resume       []byte
	projection   Projection
	updates      Updates

	maps bool // not an option: the model has maps, which take values of either sign under Frobenius
}

// parse reads opts over the defaults in c. The last of two settings of one
// option counts.
func parse[O FitOption](t target, c *config, opts []O) error {
	for _, o := range opts {
		var f FitOption = o
		if f == nil {
			return &OptionError{Option: t.name, Value: "nil", Bound: "an option must not be nil"}
		}
		s := f.setting()
		if !t.takes.has(s.kind) {
			return &OptionError{Option: s.kind.String(), Value: s.value, Bound: t.name + " has no use for it"}
		}
		if bound := s.check(c); bound != "" {
			return &OptionError{Option: s.kind.String(), Value: s.value, Bound: bound}
		}
		c.given |= set(s.kind)
	}
	return c.contradictions()
}

func (c *config) contradictions() error {
	against := func(a kind, value string, b kind) error {
		return &OptionError{Option: a.String(), Value: value, Bound: "contradicts " + b.String()}
	}
	if c.given.has(kIterations) {
		if c.given.has(kTolerance) {
			return against(kTolerance, ftoa(c.tolerance), kIterations)
		}
		if c.given.has(kMaxIterations) {
			return against(kMaxIterations, itoa(c.maxIterations), kIterations)
		}
	}
	if c.given.has(kEpsilon) && c.epsilon == 0 {
		for _, o := range [...]struct {
			kind
			value string
		}{{kIterations, itoa(c.iterations)}, {kTolerance, ftoa(c.tolerance)}, {kMaxIterations, itoa(c.maxIterations)}, {kStrict, ""}} {
			if c.given.has(o.kind) {
				return &OptionError{Option: o.kind.String(), Value: o.value, Bound: "there is nothing to iterate at epsilon 0"}
			}
		}
	}
	if c.given.has(kTargets) && c.given.has(kLevels) && c.levels != len(c.targets) {
		return &OptionError{Option: kLevels.String(), Value: itoa(c.levels), Bound: "WithTargets gives " + itoa(len(c.targets)) + " levels"}
	}
	if c.projection.kind == projectionSVD && (c.missing || c.validation > 0) {
		return &OptionError{Option: kProjection.String(), Value: c.projection.String(), Bound: "needs every cell: neither WithMissingValues nor WithValidation go with it"}
	}
	if c.given.has(kInit) && c.restarts > 1 {
		return against(kRestarts, itoa(c.restarts), kInit)
	}
	if c.given.has(kInit) && c.given.has(kStart) {
		return against(kStart, c.start.String(), kInit)
	}
	if c.start == StartSVD && c.restarts > 1 {
		return &OptionError{Option: kRestarts.String(), Value: itoa(c.restarts), Bound: "StartSVD is the same for every seed"}
	}
	return nil
}

func operatorOption(k kind, value string, check func(c *config) string) Option {
	return &operatorSetting{choice{k, value, check}}
}

func fitOption(k kind, value string, check func(c *config) string) FitOption {
	return &choice{k, value, check}
}

// upTo1e30 checks v and stores it.
func upTo1e30(v float64, to func(c *config) *float64) func(c *config) string {
	return func(c *config) string {
		if !(v >= 0 && v <= 1e30) {
			return "must be from 0 to 1e30"
		}
		*to(c) = v
		return ""
	}
}

func intAtLeast(v, low int, to func(c *config) *int) func(c *config) string {
	return func(c *config) string {
		if v < low {
			return "must be at least " + itoa(low)
		}
		*to(c) = v
		return ""
	}
}

// WithEpsilon sets ε, the entropic regularisation, in units of the squared
// distance between squashed samples and targets, both in [0,1] by default.
// ε >= 0; default 0.01, in models 0.02. Larger is smoother; see "Choosing ε" in the package
// documentation. 0 is the limit ε → 0: exact sort and ranks, ties averaged, and
// each sample mapped to the mean of q over the levels that its share of the mass
// covers. With as many values in q as samples that is the usual quantile
// normalisation, equal samples getting the mean of the targets of their places;
// with another number nothing is interpolated. There a gradient is that of the
// limit where it has one: X of a sort and Q are exact, X of ranks and quantiles
// is 0, and A, B, Y, Epsilon are 0 by convention. Nothing is iterated there, and an option
// of iterations is an error: [WithTolerance], [WithMaxIterations], [WithIterations],
// [WithStrict].
//
// Bounds: 0, or from 1e-12 to 1e12. Below about 1e-6 the rounding of the
// logits, in the order of 1e-16/ε, exceeds the default tolerance;
// [Transport.MarginalError] tells what was reached.
func WithEpsilon(eps float64) Option {
	return operatorOption(kEpsilon, ftoa(eps), func(c *config) string {
		if eps != 0 && !(eps >= 1e-12 && eps <= 1e12) {
			return "must be 0, or from 1e-12 to 1e12"
		}
		c.epsilon = eps
		return ""
	})
}

// WithSquash sets how a row is brought onto [0,1] before the transport. Default
// [SquashLogistic], in models [SquashLogisticUnit].
func WithSquash(s Squash) Option {
	return operatorOption(kSquash, s.String(), func(c *config) string {
		if int(s) >= len(squashNames) {
			return "must be one of the Squash constants"
		}
		c.squash = s
		return ""
	})
}

// WithTolerance sets ρ, the relative column error max_j |c_j-b_j|/b_j at which a
// transport has converged. ρ > 0; default 1e-9. An error below the rounding of
// the logits, 9e-16·(1+2 max|x-x̄|·max|y-ȳ|/ε), cannot be asked for: there the rounding
// counts. Samples that wholly belong to the first or the last target have no part in it.
func WithTolerance(rho float64) Option {
	return operatorOption(kTolerance, ftoa(rho), func(c *config) string {
		if !(rho > 0) || rho-rho != 0 {
			return "must be finite and above 0"
		}
		c.tolerance = rho
		return ""
	})
}

// WithMaxIterations bounds the passes over a row. n >= 1; default 3000, where 4
// or 5 are usual.
func WithMaxIterations(n int) Option {
	return operatorOption(kMaxIterations, itoa(n), intAtLeast(n, 1, func(c *config) *int { return &c.maxIterations }))
}

// WithStrict makes a transport that does not converge a [*ConvergenceError].
func WithStrict() Option {
	return operatorOption(kStrict, "", func(c *config) string { c.strict = true; return "" })
}

// WithWeights sets a, the weights of the n samples: finite, non-negative, of a
// positive sum, which is brought to 1. Default uniform. A sample of weight 0, or of less
// than 1e-200 of the sum, takes no part in the transport and is still mapped. In
// SoftQuantileRows every row has these weights.
func WithWeights(a []float64) Option {
	return operatorOption(kWeights, "len "+itoa(len(a)), func(c *config) string {
		if len(a) == 0 {
			return "must not be empty"
		}
		sum := 0.0
		for i, v := range a {
			if !(v >= 0) || v-v != 0 {
				return "weight " + itoa(i) + " is " + ftoa(v) + ", must be finite and at least 0"
			}
			sum += v
		}
		if !(sum > 0) || sum-sum != 0 {
			return "the sum must be finite and above 0"
		}
		c.weights = a
		return ""
	})
}

// maxPlace bounds what is transported and what to, so that no cost overflows.
const maxPlace = 1e12

// leastGap bounds how near each other targets may lie, so that no threshold overflows.
const leastGap = 1e-200

// WithTargets sets y, the m places that samples are transported to: of magnitude
// at most 1e12, increasing by at least 1e-200. Default a regular grid on [0,1].
func WithTargets(y []float64) Option {
	return operatorOption(kTargets, "len "+itoa(len(y)), func(c *config) string {
		if len(y) == 0 {
			return "must not be empty"
		}
		for j, v := range y {
			if !(v >= -maxPlace && v <= maxPlace) {
				return "target " + itoa(j) + " is " + ftoa(v) + ", must be of magnitude at most " + ftoa(maxPlace)
			}
		}
		for j := 1; j < len(y); j++ {
			if !(y[j]-y[j-1] >= leastGap) {
				return "target " + itoa(j) + " must be above the one before it, by at least " + ftoa(leastGap)
			}
		}
		c.targets = y
		return ""
	})
}

// leastWeight bounds the share of a target, so that nothing divided by it overflows.
const leastWeight = transport.LeastWeight

// WithTargetWeights sets b, the weights of the m targets: finite, each at least 1e-290 of
// their sum, which is finite and brought to 1. Default uniform. What is below 1e-120 of the
// sum is as a rule not transported to the tolerance; [Transport.Converged] tells.
func WithTargetWeights(b []float64) Option {
	return operatorOption(kTargetWeights, "len "+itoa(len(b)), func(c *config) string {
		if len(b) == 0 {
			return "must not be empty"
		}
		sum := 0.0
		for j, v := range b {
			if !(v > 0) || v-v != 0 {
				return "weight " + itoa(j) + " is " + ftoa(v) + ", must be finite and above 0"
			}
			sum += v
		}
		if sum-sum != 0 {
			return "the sum must be finite"
		}
		for j, v := range b {
			if v/sum < leastWeight {
				return "weight " + itoa(j) + " is " + ftoa(v) + ", must be at least " + ftoa(leastWeight) + " of the sum, " + ftoa(sum)
			}
		}
		c.targetWeights = b
		return ""
	})
}

// WithIterations asks for exactly l iterations of Algorithm 1 from zero
// potentials instead of a converged transport. l >= 1. Ranks and quantiles come
// from its row-exact plan, sorted values from the same plan divided by its own
// column sums, so all keep their order and range at any l. Gradients are the
// implicit formulas at that plan.
func WithIterations(l int) Option {
	return operatorOption(kIterations, itoa(l), intAtLeast(l, 1, func(c *config) *int { return &c.iterations }))
}

// WithLevels sets m, the number of targets, where nothing else gives it.
// m >= 1, in models m >= 2, and at most what 4m² + nm <= 2^31 allows (2^27 where addresses
// have 32 bits), wherever m comes from: beyond 16 GiB a call is an error. Default: n in
// SoftRank, SoftSort and Solve, whose time then grows with n³ and memory with n², and which
// is an error from n = 20725 on; 8 in models. At ε = 0 there is no such growth.
func WithLevels(m int) Option {
	return operatorOption(kLevels, itoa(m), intAtLeast(m, 1, func(c *config) *int { return &c.levels }))
}

// WithMidpointRanks makes ranks n M (cumsum(b) - b/2) + 1/2, of mean exactly
// (n+1)/2, instead of the paper's n M cumsum(b), which is too high by about
// n/(2m).
func WithMidpointRanks() Option {
	return operatorOption(kMidpointRanks, "", func(c *config) string { c.midpoint = true; return "" })
}

// WithWorkers sets how many goroutines work on rows at the same time. n >= 0; default
// 0, which is GOMAXPROCS. The result does not depend on it.
func WithWorkers(n int) Option {
	return operatorOption(kWorkers, itoa(n), intAtLeast(n, 0, func(c *config) *int { return &c.workers }))
}

// WithEpochs sets the number of epochs, each a visit of every row. n >= 0;
// default 20 in FitQMF, 100 in FitQMFQ, 20 in FitNMF, there 200 of [UpdatesMultiplicative].
func WithEpochs(n int) FitOption {
	return fitOption(kEpochs, itoa(n), intAtLeast(n, 0, func(c *config) *int { return &c.epochs }))
}

// WithSeed sets the seed of everything random in a fit. Default 1.
func WithSeed(s uint64) FitOption {
	return fitOption(kSeed, utoa(s), func(c *config) string { c.seed = s; return "" })
}

// WithLearningRate sets the step size of Adam on logarithms. 0 < lr <= 100, beyond 1
// of no use; default 0.06 in FitQMF, 0.1 in FitQMFQ, falling to 0 by [ScheduleCosine].
func WithLearningRate(lr float64) FitOption {
	return fitOption(kLearningRate, ftoa(lr), func(c *config) string {
		if !(lr > 0 && lr <= 100) {
			return "must be above 0 and at most 100"
		}
		c.learningRate = lr
		return ""
	})
}

// WithSchedule sets how the learning rate falls. Default [ScheduleCosine].
func WithSchedule(s Schedule) FitOption {
	return fitOption(kSchedule, s.String(), func(c *config) string {
		if int(s) >= len(scheduleNames) {
			return "must be one of the Schedule constants"
		}
		c.schedule = s
		return ""
	})
}

// WithBatch sets how many rows are visited between two steps of V. rows >= 1;
// default 32. From d on all rows are one batch.
func WithBatch(rows int) FitOption {
	return fitOption(kBatch, itoa(rows), intAtLeast(rows, 1, func(c *config) *int { return &c.batchRows }))
}

// WithUpdates sets how FitNMF goes down. Default [UpdatesNewton] under [KL] and
// [Frobenius], which are the losses that it takes, else [UpdatesMultiplicative].
func WithUpdates(u Updates) FitOption {
	return fitOption(kUpdates, u.String(), func(c *config) string {
		if int(u) >= len(updatesNames) {
			return "must be one of the Updates constants"
		}
		c.updates = u
		return ""
	})
}

// WithStart sets where a fit starts, one of QMFQ the QMF that it starts from.
// Default [StartAuto], in FitNMF [StartUniform].
func WithStart(s Start) FitOption {
	return fitOption(kStart, s.String(), func(c *config) string {
		if int(s) >= len(startNames) {
			return "must be one of the Start constants"
		}
		c.start = s
		return ""
	})
}

// WithEnds sets whether the lowest and highest quantile are learnt. Default
// [EndsFree].
func WithEnds(e Ends) FitOption {
	return fitOption(kEnds, e.String(), func(c *config) string {
		if int(e) >= len(endsNames) {
			return "must be one of the Ends constants"
		}
		c.ends = e
		return ""
	})
}

// WithInit starts from the given factors, u d × k and v k × n, finite and
// non-negative (in FitQMF an entry below 1e-3 of the factor's mean is raised to
// it, since factors are kept by their logarithms). They are copied. An entry other
// than 0 that a fit cannot hold is a [*DataError]: in FitNMF below 1e-50 or above 1e50
// (times the root of x's unit where that is beyond 2^±100), in FitQMF and FitQMFQ beyond
// e^±300, under [SquashNone], which transports UV as it is, beyond (1e12/k)^±½.
func WithInit(u, v Mat) FitOption {
	return fitOption(kInit, u.size()+", "+v.size(), func(c *config) string {
		c.initU, c.initV = u, v
		return ""
	})
}

// WithPenalty sets λ, the weight of the penalty: in FitQMF λ/2 (mean Ũ² + mean
// Ṽ²) of the log factors, in FitNMF λ (mean U + mean V), each added to the mean
// loss. 0 <= λ <= 1e30; default 0.
func WithPenalty(lambda float64) FitOption {
	return fitOption(kPenalty, ftoa(lambda), upTo1e30(lambda, func(c *config) *float64 { return &c.penalty }))
}

// WithShrinkage pulls the quantiles of each row of QMF towards an affine map of
// (UV)_i, with the weight of lambda further samples. 0 <= lambda <= 1e30; default: the one
// of 0, 20 and 100 that predicts a hidden tenth of the cells best (start.go), 0
// with [EndsPinned], [StartUniform] or [WithInit]. A positive one needs
// [EndsFree] and has no meaning under [StartUniform].
func WithShrinkage(lambda float64) FitOption {
	return fitOption(kShrinkage, ftoa(lambda), upTo1e30(lambda, func(c *config) *float64 { return &c.shrinkage }))
}

// WithLoss sets the divergence that is minimised. Default [KL]. x must not be negative
// but in FitQMF and FitQMFQ under [Frobenius], which take any finite x: log ratios,
// z-scores. See [Beta] for what β <= 0 asks of x.
func WithLoss(l Loss) FitOption {
	return fitOption(kLoss, ftoa(float64(l)), func(c *config) string {
		if !(l >= -2 && l <= 4) {
			return "β must be from -2 to 4"
		}
		c.loss = l
		return ""
	})
}

// WithPatience ends a fit when its loss, on the held-out cells under
// [WithValidation], has not fallen by a ten-thousandth of itself for the given
// number of epochs; a penalty counts where no cells are held out. epochs >= 1;
// default none.
func WithPatience(epochs int) FitOption {
	return fitOption(kPatience, itoa(epochs), intAtLeast(epochs, 1, func(c *config) *int { return &c.patience }))
}

// WithRestarts fits from n seeds, the given one and those that follow it, and
// returns the model of the lowest loss with its penalty, on the held-out cells under
// [WithValidation], which are the same for all. n >= 1; default 1.
func WithRestarts(n int) FitOption {
	return fitOption(kRestarts, itoa(n), intAtLeast(n, 1, func(c *config) *int { return &c.restarts }))
}

// WithValidation holds a share of the observed cells out of a fit, start
// included, chosen by the seed, and returns the epoch whose model predicts them
// best. 0 < share <= 1/2; default none. A row or column keeps two visible cells.
func WithValidation(share float64) FitOption {
	return fitOption(kValidation, ftoa(share), func(c *config) string {
		if !(share > 0 && share <= 0.5) {
			return "must be above 0 and at most 0.5"
		}
		c.validation = share
		return ""
	})
}

// WithMissingValues takes NaN cells of x as unobserved: they have no part in the
// loss, in updates or in a row's measure, and Reconstruct fills them. A row or a
// column without any observed cell is a [*DataError].
func WithMissingValues() FitOption {
	return fitOption(kMissing, "", func(c *config) string { c.missing = true; return "" })
}

// Squash says how a row is brought onto [0,1]: with z = (x - mean x)/std x, the population
// standard deviation, by an increasing function of z.
type Squash uint8

const (
	SquashLogistic Squash = Squash(transport.Logistic) // the logistic function with the slope of matched variance, π/√3: the authors' default
	SquashNone     Squash = Squash(transport.None)     // x itself; the targets must then fit its range
	// SquashLogisticUnit is the logistic function with slope 1: the default of ott-jax.
	SquashLogisticUnit Squash = Squash(transport.LogisticUnit)
	// SquashArctan is the arc tangent, the other choice of the authors' code. Its
	// values lie in (-π/2,π/2) while targets default to [0,1], as they do there.
	SquashArctan Squash = Squash(transport.Arctan)
)

var squashNames = []string{"SquashLogistic", "SquashNone", "SquashLogisticUnit", "SquashArctan"}

// String returns the name of the constant.
func (s Squash) String() string { return name(squashNames, int(s)) }

// Schedule says how the learning rate falls over the E epochs of a fit.
type Schedule uint8

const (
	ScheduleCosine   Schedule = iota // lr (1+cos(π e/E))/2 in epoch e = 0, ..., E-1
	ScheduleConstant                 // lr, as in the paper
)

var scheduleNames = []string{"ScheduleCosine", "ScheduleConstant"}

// String returns the name of the constant.
func (s Schedule) String() string { return name(scheduleNames, int(s)) }

// Updates says how FitNMF goes down.
type Updates uint8

const (
	// UpdatesNewton is Newton's method with bounds and momentum (newton.go), after three
	// multiplicative updates under KL: an epoch takes about twice the time of one of those, and
	// twenty of them go lower than hundreds. Entries of the factors may become 0, and
	// leave it again.
	UpdatesNewton Updates = iota
	// UpdatesMultiplicative is the multiplicative updates of Lee and Seung, and of Févotte
	// and Idier for other losses: the textbook's, and the paper's baseline.
	UpdatesMultiplicative
)

var updatesNames = []string{"UpdatesNewton", "UpdatesMultiplicative"}

// String returns the name of the constant.
func (u Updates) String() string { return name(updatesNames, int(u)) }

// Start says where a fit starts, one of QMFQ the QMF that it starts from.
type Start uint8

const (
	// StartAuto takes the one of the next two that predicts a hidden tenth of the
	// cells better (start.go).
	StartAuto Start = iota
	// StartScores takes U, V from 200 updates of an NMF of the row-wise normal
	// scores of x, each row times its mean, and calibrates every row's quantiles
	// to them.
	StartScores
	// StartNMF takes U, V from 200 updates of an NMF of x itself, calibrated alike.
	StartNMF
	// StartUniform is the paper's: log factors uniform on [-1/2,1/2], equal
	// quantile steps between each row's extremes; and the paper's step rule, Adam
	// on the logarithms of the quantile steps. Of FitNMF: factors uniform on
	// sqrt(mean x/k)·[1/2,3/2).
	StartUniform
	// StartSVD, of FitNMF alone, takes U, V from the non-negative parts of the first
	// k singular vectors of x, missing cells at the mean of their row (NNDSVD), no
	// entry below 0.3 of the mean of its column of U or row of V. It costs about
	// three epochs and is far ahead of StartUniform for the first tens of epochs, but
	// not at the end of 200. It is the same for every seed, unless k is above the
	// rank of x: the components beyond are those of StartUniform.
	StartSVD
)

var startNames = []string{"StartAuto", "StartScores", "StartNMF", "StartUniform", "StartSVD"}

// String returns the name of the constant.
func (s Start) String() string { return name(startNames, int(s)) }

// Ends says whether the lowest and highest quantile of a row are learnt.
type Ends uint8

const (
	EndsFree   Ends = iota // q is the cumulative sum of m positive increments
	EndsPinned             // q_1 and q_m are the row's minimum and maximum: the paper's Q(R,s,t)
)

var endsNames = []string{"EndsFree", "EndsPinned"}

// String returns the name of the constant.
func (e Ends) String() string { return name(endsNames, int(e)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return itoa(i)
}
