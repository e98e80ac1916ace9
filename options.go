package quantmf

// This file holds every option with its default and bound, the table of which
// function takes which, and the checks, which all run before any work starts.

import (
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/transport"
)

// FitOption is an option of a fit: [FitNMF], [FitQMF], [FitQMFQ] or [FitBQMF]. A function
// that has no use for it returns an [*OptionError]; the package documentation has the table.
type FitOption interface{ setting() *choice }

// Option is an option of an operator, such as [SoftRank]. Every Option is a [FitOption],
// too. A function that has no use for it returns an [*OptionError]; the package
// documentation has the table.
type Option interface {
	FitOption
	operator()
}

// choice is the one implementation of FitOption; operatorSetting of Option.
type choice struct {
	kind  optionKind
	value string                 // for errors
	check func(c *config) string // "" or the bound that the value breaks
}

func (s *choice) setting() *choice { return s }

type operatorSetting struct{ choice }

func (*operatorSetting) operator() {}

// optionKind numbers the options; a set of them is a bit mask.
type optionKind uint

const (
	kEpsilon optionKind = iota
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
	optionKinds
)

var optionNames = [optionKinds]string{
	"WithEpsilon", "WithSquash", "WithTolerance", "WithMaxIterations", "WithStrict", "WithWeights", "WithTargets",
	"WithTargetWeights", "WithIterations", "WithLevels", "WithMidpointRanks", "WithWorkers", "WithEpochs", "WithSeed",
	"WithProgress", "WithLearningRate", "WithSchedule", "WithBatch", "WithStart", "WithEnds", "WithInit", "WithPenalty",
	"WithShrinkage", "WithLoss", "WithPatience", "WithRestarts", "WithValidation", "WithMissingValues", "WithCheckpoint", "WithResume", "WithProjection", "WithUpdates",
}

func (k optionKind) String() string { return optionNames[k] }

type optionSet uint64 // int has 32 bits elsewhere, and there are about as many options

func set(ks ...optionKind) (s optionSet) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

func (s optionSet) has(k optionKind) bool { return s>>k&1 == 1 }

// target is a function that takes options: its name and the ones it takes.
type target struct {
	name  string
	takes optionSet
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
	forBQMF         = target{"FitBQMF", set(kTolerance, kWorkers, kEpochs, kSeed, kLoss, kMissing, kValidation, kProgress, kCheckpoint, kResume), ""}
	forQMFQ         = target{"FitQMFQ", (transportKinds | fitKinds | set(kLevels, kLearningRate, kSchedule, kStart, kEnds, kProjection)) &^ set(kPenalty), ""}
)

// config is what the options come to. A field is meaningful where given has its
// kind, or the function has filled in its default.
type config struct {
	given optionSet
	settings

	// Of operators alone.
	weights       []float64
	targets       []float64
	targetWeights []float64
	iterations    int
	midpoint      bool

	// How a call goes, which no number depends on.
	workers  int
	strict   bool
	restarts int
	progress func(Progress) error
	every    int
	save     func(state []byte) error
	resume   []byte
	discard  bool // no model is wanted of a fit that was stopped
}

// settings are what the numbers of a fit depend on beside the data: a running fit has
// them, and a fit within another has a copy with changes.
type settings struct {
	epsilon       float64
	squash        Squash
	tolerance     float64
	maxIterations int
	levels        int
	epochs        int
	seed          uint64
	learningRate  float64
	schedule      Schedule
	batchRows     int
	start         Start
	ends          Ends
	init          bool // initU and initV are given
	initU, initV  Mat
	penalty       float64
	shrinkage     float64
	loss          Loss
	patience      int
	validation    float64
	missing       bool
	projection    Projection
	updates       Updates
	mapped        bool // not an option: the model has maps, which take values of either sign under Frobenius
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
	against := func(a optionKind, value string, b optionKind) error {
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
			kind  optionKind
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
	if c.projection.kind == projection.SVD && (c.missing || c.validation > 0) {
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

func operatorOption(k optionKind, value string, check func(c *config) string) Option {
	return &operatorSetting{choice{k, value, check}}
}

func fitOption(k optionKind, value string, check func(c *config) string) FitOption {
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

// WithEpsilon sets ε, the entropic regularisation, in units of the squared distance
// between squashed samples and targets, both in [0,1] by default. ε is 0 or from 1e-12 to
// 1e12; default 0.01, in models 0.02. Larger is smoother; see "Choosing ε" in the package
// documentation. Below about 1e-6 the rounding of the logits, in the order of 1e-16/ε,
// exceeds the default tolerance; Transport.MarginalError tells what was reached.
//
// At ε = 0 operators take the limit ε → 0: exact sort and ranks, ties averaged, and each
// sample mapped to the mean of q over the levels that its share of the mass covers. With
// as many values in q as samples that is the usual quantile normalisation, where equal
// samples get the mean of the values in q at their ranks; with another number of values
// nothing is interpolated. Gradients at ε = 0 are those of the limit where it has them: X
// of a sort and Q are exact, X of ranks and quantiles is 0; A, B, Y and Epsilon are 0 by
// convention. Nothing is iterated, so WithTolerance, WithMaxIterations, WithIterations
// and WithStrict are an error. Models take no ε of 0.
func WithEpsilon(eps float64) Option {
	return operatorOption(kEpsilon, ftoa(eps), func(c *config) string {
		if eps != 0 && !(eps >= 1e-12 && eps <= 1e12) {
			return "must be 0, or from 1e-12 to 1e12"
		}
		c.epsilon = eps
		return ""
	})
}

// WithSquash sets how the samples of a row are brought onto [0,1] before the transport.
// Default [SquashLogistic], in models [SquashLogisticUnit].
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
// transport has converged. ρ > 0; default 1e-9. Where the rounding of the logits,
// 9e-16·(1+2 max|x-x̄|·max|y-ȳ|/ε), is larger, it takes the place of ρ. Samples that
// belong wholly to the first or the last target do not count in it.
// Of FitBQMF it is the largest share of UV by which its last epoch may move UV; default 3e-3.
func WithTolerance(rho float64) Option {
	return operatorOption(kTolerance, ftoa(rho), func(c *config) string {
		if !(rho > 0) || rho-rho != 0 {
			return "must be finite and above 0"
		}
		c.tolerance = rho
		return ""
	})
}

// WithMaxIterations bounds the passes over a row. n >= 1; default 3000, in models 200,
// where 4 or 5 are usual. A row of a model that takes more is left as near as it is, with a
// warning.
func WithMaxIterations(n int) Option {
	return operatorOption(kMaxIterations, itoa(n), intAtLeast(n, 1, func(c *config) *int { return &c.maxIterations }))
}

// WithStrict makes a transport that does not converge an error, a [*ConvergenceError]. A
// fit returns its model with that error.
func WithStrict() Option {
	return operatorOption(kStrict, "", func(c *config) string { c.strict = true; return "" })
}

// WithWeights sets a, the weights of the n samples: finite, non-negative, with a positive
// sum; they are divided by it. Default uniform. A sample of weight 0, or of less than
// 1e-200 of the sum, takes no part in the transport but still gets a value. In
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

// maxPoint bounds what is transported and what to, so that no cost overflows.
const maxPoint = 1e12

// leastGap is the least distance between neighbouring targets, so that no threshold overflows.
const leastGap = 1e-200

// WithTargets sets y, the m targets that samples are transported to, on the scale of the
// squashed samples: of magnitude at most 1e12, increasing by at least 1e-200. Default a
// regular grid on [0,1].
func WithTargets(y []float64) Option {
	return operatorOption(kTargets, "len "+itoa(len(y)), func(c *config) string {
		if len(y) == 0 {
			return "must not be empty"
		}
		for j, v := range y {
			if !(v >= -maxPoint && v <= maxPoint) {
				return "target " + itoa(j) + " is " + ftoa(v) + ", must be of magnitude at most " + ftoa(maxPoint)
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

// WithTargetWeights sets b, the weights of the m targets: with a finite sum, each at
// least 1e-290 of it; they are divided by it. Default uniform. To a target of less than
// 1e-120 of the sum a transport rarely converges within the tolerance;
// Transport.Converged tells.
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

// WithIterations asks for exactly l iterations of Algorithm 1 of the paper, started from
// zero potentials, instead of a converged transport. l >= 1. Ranks and quantiles are
// those of its row-exact plan, sorted values those of the same plan divided by its own
// column sums, so all keep order and range at any l. Gradients are the implicit formulas,
// evaluated at that plan.
func WithIterations(l int) Option {
	return operatorOption(kIterations, itoa(l), intAtLeast(l, 1, func(c *config) *int { return &c.iterations }))
}

// WithLevels sets m, the number of targets, where no argument and no other option gives
// it. m >= 1, in models m >= 2. Default: 8 in models; n in SoftRank, SoftSort and Solve,
// whose time then grows with n³ and memory with n². At ε = 0 there is no such growth.
// Wherever m comes from, more than 4m² + nm <= 2^31 allows (16 GiB; 2^27 where addresses
// have 32 bits) is an error: from n = 20725 on the default m = n is one.
func WithLevels(m int) Option {
	return operatorOption(kLevels, itoa(m), intAtLeast(m, 1, func(c *config) *int { return &c.levels }))
}

// WithMidpointRanks makes ranks n M (cumsum(b) - b/2) + 1/2, whose mean is exactly
// (n+1)/2, instead of the paper's n M cumsum(b), which is too high by about n/(2m).
func WithMidpointRanks() Option {
	return operatorOption(kMidpointRanks, "", func(c *config) string { c.midpoint = true; return "" })
}

// WithWorkers sets how many goroutines work on rows at the same time. n >= 0; default 0,
// which stands for GOMAXPROCS. The result does not depend on it.
func WithWorkers(n int) Option {
	return operatorOption(kWorkers, itoa(n), intAtLeast(n, 0, func(c *config) *int { return &c.workers }))
}

// WithEpochs sets the number of epochs, each a visit of every row. n >= 0;
// default 20 in FitQMF, 100 in FitQMFQ, 60 in FitBQMF, where it is the most for each of two
// strengths, and 20 in FitNMF, of [UpdatesMultiplicative] 200.
func WithEpochs(n int) FitOption {
	return fitOption(kEpochs, itoa(n), intAtLeast(n, 0, func(c *config) *int { return &c.epochs }))
}

// WithSeed sets the seed of everything random in a fit, any number. Default 1.
func WithSeed(s uint64) FitOption {
	return fitOption(kSeed, utoa(s), func(c *config) string { c.seed = s; return "" })
}

// WithLearningRate sets the step size of Adam, which works on logarithms. 0 < lr <= 100,
// where more than 1 is of no use; default 0.06 in FitQMF, 0.1 in FitQMFQ. [WithSchedule]
// says how it falls.
func WithLearningRate(lr float64) FitOption {
	return fitOption(kLearningRate, ftoa(lr), func(c *config) string {
		if !(lr > 0 && lr <= 100) {
			return "must be above 0 and at most 100"
		}
		c.learningRate = lr
		return ""
	})
}

// WithSchedule sets how the learning rate changes over the epochs. Default
// [ScheduleCosine].
func WithSchedule(s Schedule) FitOption {
	return fitOption(kSchedule, s.String(), func(c *config) string {
		if int(s) >= len(scheduleNames) {
			return "must be one of the Schedule constants"
		}
		c.schedule = s
		return ""
	})
}

// WithBatch sets how many rows are visited between two steps of V. rows >= 1; default 32.
// With rows >= d all rows are one batch.
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

// WithStart sets where a fit starts; in FitQMFQ, where the QMF starts that the fit starts
// from. Default [StartAuto], in FitNMF [StartUniform]. FitNMF takes StartUniform and
// [StartSVD] alone, and no other fit takes StartSVD.
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

// WithInit starts a fit from the given factors, u d × k and v k × n, finite and
// non-negative, which are copied. FitQMF and FitQMFQ keep logarithms of factors, so they
// raise an entry below 1e-3 of the factor's mean to that. An entry other than 0 that a
// fit cannot hold is a [*DataError]: in FitNMF below 1e-50 or above 1e50 (times the root
// of x's unit where that is beyond 2^±100); in FitQMF and FitQMFQ beyond e^±300, and
// under [SquashNone], which transports UV as it is, beyond (1e12/k)^±½.
func WithInit(u, v Mat) FitOption {
	return fitOption(kInit, u.size()+", "+v.size(), func(c *config) string {
		c.init, c.initU, c.initV = true, u, v
		return ""
	})
}

// WithPenalty sets λ, the weight of the penalty: in FitQMF λ/2 (mean Ũ² + mean
// Ṽ²) of the log factors, in FitNMF λ (mean U + mean V), each added to the mean
// loss. 0 <= λ <= 1e30; default 0.
func WithPenalty(lambda float64) FitOption {
	return fitOption(kPenalty, ftoa(lambda), upTo1e30(lambda, func(c *config) *float64 { return &c.penalty }))
}

// WithShrinkage pulls the quantiles of each row of a QMF towards an affine map of (UV)_i,
// with the weight of lambda further samples. 0 <= lambda <= 1e30. Default: whichever of
// 0, 20 and 100 predicts a hidden tenth of the cells best in short fits (start.go); 0
// with [EndsPinned], [StartUniform] or [WithInit]. A lambda above 0 is an error with
// EndsPinned or StartUniform.
func WithShrinkage(lambda float64) FitOption {
	return fitOption(kShrinkage, ftoa(lambda), upTo1e30(lambda, func(c *config) *float64 { return &c.shrinkage }))
}

// WithLoss sets the divergence that is minimised. Default [KL]. x must not be negative,
// except that FitQMF and FitQMFQ under [Frobenius] take any finite x: log ratios,
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

// WithPatience ends a fit when its loss has not fallen by 1e-4 of itself within the given
// number of epochs. The loss is that on the held-out cells under [WithValidation],
// otherwise that on the visible cells with the penalty. epochs >= 1; default none.
func WithPatience(epochs int) FitOption {
	return fitOption(kPatience, itoa(epochs), intAtLeast(epochs, 1, func(c *config) *int { return &c.patience }))
}

// WithRestarts makes n fits, with the seeds s, s+1, ..., s+n-1 from the one of
// [WithSeed], and returns the model of the lowest loss: that on the held-out cells under
// [WithValidation], which are the same for all, otherwise that on the visible cells with
// the penalty. n >= 1; default 1. Cost: n fits.
func WithRestarts(n int) FitOption {
	return fitOption(kRestarts, itoa(n), intAtLeast(n, 1, func(c *config) *int { return &c.restarts }))
}

// WithValidation hides a share of the observed cells, chosen by the seed, from a fit and
// its start, and returns the model of the epoch that predicts them best. 0 < share <=
// 1/2; default none. Every row and column keeps at least two visible cells.
func WithValidation(share float64) FitOption {
	return fitOption(kValidation, ftoa(share), func(c *config) string {
		if !(share > 0 && share <= 0.5) {
			return "must be above 0 and at most 0.5"
		}
		c.validation = share
		return ""
	})
}

// WithMissingValues takes NaN cells of x as unobserved: they take no part in the loss, in
// the steps or in the measure that a row's map transports, and Reconstruct fills them. A
// row or a column without any observed cell is a [*DataError].
func WithMissingValues() FitOption {
	return fitOption(kMissing, "", func(c *config) string { c.missing = true; return "" })
}

// WithProjection sets Π_k, the projection onto rank k. Default [KLUpdates](20),
// KLUpdates(100) under [StartUniform].
func WithProjection(p Projection) FitOption {
	return fitOption(kProjection, p.String(), func(c *config) string {
		c.projection = p
		return p.bound()
	})
}

// Squash says how a row is brought onto [0,1]: with z = (x - mean x)/std x, the population
// standard deviation, by an increasing function of z. A row whose deviation is below 1e-290,
// or whose values differ by four units in the last place at most, is constant: all of it goes
// to the middle, and its ranks are equal. Otherwise the unit of x does not matter.
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

// Schedule says how the learning rate lr changes over the E epochs of a fit.
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

// Start says where a fit starts; in FitQMFQ, where the QMF starts that the fit starts
// from.
type Start uint8

const (
	// StartAuto takes StartScores or StartNMF, whichever predicts a hidden tenth of the
	// cells better in short fits (start.go).
	StartAuto Start = iota
	// StartScores takes U, V from 200 updates of an NMF of the row-wise normal
	// scores of x, each row times its mean, and calibrates every row's quantiles
	// to them.
	StartScores
	// StartNMF takes U, V from 200 updates of an NMF of x itself, and calibrates every
	// row's quantiles to them.
	StartNMF
	// StartUniform is the paper's start: log factors uniform on [-1/2,1/2], and equal
	// quantile steps between each row's extremes. The fit then steps quantiles as the
	// paper does, by Adam on the logarithms of the quantile steps. In FitNMF: factors
	// uniform on sqrt(mean x/k)·[1/2,3/2).
	StartUniform
	// StartSVD, of FitNMF alone, takes U, V from the non-negative parts of the first
	// k singular vectors of x, missing cells at the mean of their row (NNDSVD), no
	// entry below 0.3 of the mean of its column of U or row of V. It costs about
	// three epochs. Its loss is far below that of StartUniform for the first tens of
	// epochs, but not after 200. It is the same for every seed, unless k is above the
	// rank of x: the components above that rank are those of StartUniform.
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

// Projection is the way in which a QMFQ projects a matrix onto those of rank k:
// [KLUpdates], [FrobeniusUpdates] or [TruncatedSVD]. Projections are equal when
// they are of one kind and number of updates. The zero value is none of them.
type Projection struct {
	kind    projection.Kind
	updates int
}

// KLUpdates projects by n >= 1 multiplicative updates of V and U under the
// Kullback-Leibler divergence, the paper's choice.
func KLUpdates(n int) Projection { return Projection{projection.KL, n} }

// FrobeniusUpdates projects by n >= 1 multiplicative updates of V and U under
// the Frobenius norm, as the authors' code does; a third of the cost of
// [KLUpdates].
func FrobeniusUpdates(n int) Projection { return Projection{projection.Frobenius, n} }

// TruncatedSVD projects onto the first k singular vectors. Factors may be
// negative. It has no derivative where the singular values k and k+1 are equal,
// which ends a fit with a [*DataError]. It needs every cell: with
// [WithMissingValues] or [WithValidation] it is an [*OptionError].
func TruncatedSVD() Projection { return Projection{kind: projection.SVD} }

// String returns the call that makes the projection.
func (p Projection) String() string {
	switch p.kind {
	case projection.KL:
		return "KLUpdates(" + itoa(p.updates) + ")"
	case projection.Frobenius:
		return "FrobeniusUpdates(" + itoa(p.updates) + ")"
	case projection.SVD:
		return "TruncatedSVD()"
	}
	return "Projection{}"
}

// bound returns what is wrong with the projection, "" if nothing.
func (p Projection) bound() string {
	switch {
	case p.kind == 0:
		return "must be KLUpdates, FrobeniusUpdates or TruncatedSVD"
	case p.kind != projection.SVD && (p.updates < 1 || p.updates > 1<<20):
		return "must have from 1 to 1048576 updates"
	}
	return ""
}

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return itoa(i)
}

// Phase is the part of a fit that is under way.
type Phase uint8

const (
	// PhaseChoice is the choice of start and shrinkage by short fits of some rows, where
	// they are left to the data. FitNMF has none.
	PhaseChoice Phase = iota
	// PhaseFactors makes the factors that a fit starts from: an NMF of up to 200 updates,
	// or singular vectors.
	PhaseFactors
	// PhaseMaps fits the first maps of all rows to those factors. FitNMF has none, FitQMFQ
	// two: T at the start of the QMF that it starts from, T' after it.
	PhaseMaps
	// PhaseQMF is the epochs of the QMF that a FitQMFQ starts from.
	PhaseQMF
	// PhaseEpochs is the epochs of the fit itself.
	PhaseEpochs
)

var phaseNames = []string{"PhaseChoice", "PhaseFactors", "PhaseMaps", "PhaseQMF", "PhaseEpochs"}

// String returns the name of the constant.
func (p Phase) String() string { return name(phaseNames, int(p)) }

// Progress is what a fit reports while it works. Phases come in the order of the
// constants, for every restart anew; a fit has those that its start needs. Within a phase
// Done rises from 0 to 1. Reports come several times in every phase before [PhaseEpochs],
// the first when options and data have been checked, and after every epoch in
// PhaseEpochs.
type Progress struct {
	Phase  Phase
	Done   float64 // the share of the phase that is done, from 0 to 1; Epoch/Epochs in PhaseEpochs
	Epoch  int     // epochs done, 0 before PhaseEpochs
	Epochs int     // epochs in all
	Rows   int     // rows visited in an epoch
	Loss   float64 // the newest entry of History; 0 before PhaseEpochs
}

// WithProgress calls f while a fit works, on the goroutine of the caller: in every phase
// of its start, and after every epoch. An error of f stops the fit and comes back
// wrapped, with the model so far.
//
// The model so far of a fit that f or its context stopped before its first epoch is the
// best model of the restarts before. In the first of the restarts it is what the start
// had come to: factors that need not fit x, and T_i the mean of row i where T_i has not
// been fitted yet.
func WithProgress(f func(Progress) error) FitOption {
	return fitOption(kProgress, "func", func(c *config) string {
		if f == nil {
			return "must not be nil"
		}
		c.progress = f
		return ""
	})
}

// WithCheckpoint calls save with the state of the fit after every so many epochs, and
// after the last, on the goroutine of the caller. save may keep the bytes. An error of
// save stops the fit and comes back wrapped, with the model so far. every >= 1; default
// no checkpoints. Nothing is saved during the start, which in FitQMFQ includes a QMF of
// 100 epochs. [WithResume] takes the state.
func WithCheckpoint(every int, save func(state []byte) error) FitOption {
	return fitOption(kCheckpoint, itoa(every), func(c *config) string {
		if every < 1 {
			return "must be at least 1"
		}
		if save == nil {
			return "save must not be nil"
		}
		c.every, c.save = every, save
		return ""
	})
}

// WithResume continues a fit from a state that [WithCheckpoint] saved, with the same x
// and the same options; workers, progress and checkpoints may differ. The model has the
// bits of a fit that was never stopped. [WithEpochs] may be more than it was, also for a
// fit that was done, where no epoch before depends on it: in FitNMF and under
// [ScheduleConstant], in the last of restarts never. Another option or initial factor is an
// [*OptionError] that names it, another x a [*DataError], a damaged state a
// [*FormatError].
func WithResume(state []byte) FitOption {
	return fitOption(kResume, itoa(len(state))+" bytes", func(c *config) string {
		if len(state) == 0 {
			return "must not be empty"
		}
		c.resume = state
		return ""
	})
}

// maxCells bounds the numbers that one problem of n samples and m levels takes, nm + 4m²:
// those of a plan and of the m × m systems. 2^31 are 16 GiB; where addresses have 32 bits
// 2^27 are 1 GiB.
const maxCells = 1 << (27 + 4*(^uint(0)>>63))

// tooManyCells tells whether n samples and m levels take more. It divides, since products
// could overflow.
func tooManyCells(n, m int) bool {
	return uint64(m) > maxCells || m > 0 && uint64(n)+4*uint64(m) > maxCells/uint64(m)
}
