package quantmf

// This file holds every option with its default and bound, and the checks, which all run
// before any work starts. The table of internal/option says which function takes which option.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/qmf"
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
	kind  option.Kind
	value string                 // for errors
	check func(c *config) string // "" or the bound that the value breaks
}

func (s *choice) setting() *choice { return s }

type operatorSetting struct{ *choice }

func (operatorSetting) operator() {}

// config is what the options of a call set. A field has a meaning where given has its
// kind, or where the function has filled in its default.
type config struct {
	given option.Set
	qmf.Settings
	sampleWeights []float64 // n; nil: all are 1
	cellWeights   Rows      // d × n; nil: all are 1
	discrete      []int     // of WithDiscrete
	guess         float64   // no option: what the guess of a missing cell counts, see chooseEnd
	from          settler   // of WithModel

	running
	operating
}

// operating are the options of operators alone.
type operating struct {
	weights       []float64
	targets       []float64
	targetWeights []float64
	grid          []float64 // room for targets and their weights
	iterations    int
	ranks         ranking
	ctx           context.Context // of operators for rows; nil: none
}

// running are the options that do not change the numbers of one fit.
type running struct {
	workers     int
	strict      bool
	restarts    int
	progress    func(Progress) error
	every       int // epochs from one save to the next
	save        func(state []byte) error
	resume      []byte
	checkpoints fit.Checkpoints // nil where there is neither save nor resume
	discard     bool            // no model is wanted of a fit that was stopped
	hash        bool            // a fingerprint of x is wanted
}

// parse reads opts over the defaults in c. The last of two settings of one
// option counts.
func parse[O FitOption](t option.Function, c *config, opts []O) error {
	standard := c.Loss
	for _, o := range opts {
		var f FitOption = o
		if f == nil {
			return &OptionError{Option: t.Name, Value: "nil", Bound: "an option must not be nil"}
		}
		s := f.setting()
		if !t.Takes.Has(s.kind) {
			return &OptionError{Option: s.kind.String(), Value: s.value, Bound: t.Name + " has no use for it"}
		}
		if bound := s.check(c); bound != "" {
			return &OptionError{Option: s.kind.String(), Value: s.value, Bound: bound}
		}
		c.given |= option.Of(s.kind)
	}
	if c.Loss == lossOfFit {
		c.Loss = standard
		c.given &^= option.Of(option.Loss)
	}
	return c.contradictions()
}

// contradictions reports two options that contradict each other.
func (c *config) contradictions() error {
	against := func(a option.Kind, value string, b option.Kind) error {
		return &OptionError{Option: a.String(), Value: value, Bound: "contradicts " + b.String()}
	}
	if c.given.Has(option.Iterations) {
		if c.given.Has(option.Tolerance) {
			return against(option.Tolerance, ftoa(c.Tolerance), option.Iterations)
		}
		if c.given.Has(option.MaxIterations) {
			return against(option.MaxIterations, itoa(c.MaxIterations), option.Iterations)
		}
	}
	if c.given.Has(option.Epsilon) && c.Epsilon == 0 {
		for _, o := range [...]struct {
			kind  option.Kind
			value string
		}{
			{option.Iterations, itoa(c.iterations)},
			{option.Tolerance, ftoa(c.Tolerance)},
			{option.MaxIterations, itoa(c.MaxIterations)},
			{option.Strict, ""},
		} {
			if c.given.Has(o.kind) {
				return &OptionError{Option: o.kind.String(), Value: o.value,
					Bound: "there is nothing to iterate at epsilon 0"}
			}
		}
	}
	if c.given.Has(option.Targets) && c.given.Has(option.Levels) && c.Levels != len(c.targets) {
		return &OptionError{Option: option.Levels.String(), Value: itoa(c.Levels),
			Bound: "WithTargets gives " + itoa(len(c.targets)) + " levels"}
	}
	if c.Projection.Kind == projection.SVD && (c.Missing || c.Validation > 0) {
		return &OptionError{Option: option.Projection.String(), Value: Projection{c.Projection}.String(),
			Bound: "needs every cell: neither WithMissingValues nor WithValidation go with it"}
	}
	if c.Projection.Kind == projection.SVD && c.cellWeights != nil {
		return &OptionError{Option: option.Projection.String(), Value: Projection{c.Projection}.String(),
			Bound: "needs the same weights in all features, WithSampleWeights: by others no singular " +
				"vectors are nearest, so WithCellWeights does not go with it"}
	}
	if c.given.Has(option.Model) {
		for _, k := range [...]option.Kind{option.Init, option.Start} {
			if c.given.Has(k) {
				return against(option.Model, "", k)
			}
		}
		if c.restarts > 1 {
			return against(option.Restarts, itoa(c.restarts), option.Model)
		}
	}
	if c.given.Has(option.Init) && c.restarts > 1 {
		return against(option.Restarts, itoa(c.restarts), option.Init)
	}
	if c.given.Has(option.Init) && c.given.Has(option.Start) && !(c.Mapped && c.Start == qmf.StartUniform) {
		return against(option.Start, Start(c.Start).String(), option.Init)
	}
	if c.Start == qmf.StartSVD && c.restarts > 1 {
		return &OptionError{Option: option.Restarts.String(), Value: itoa(c.restarts),
			Bound: "StartSVD is the same for every seed"}
	}
	return nil
}

func operatorOption(k option.Kind, value string, check func(c *config) string) Option {
	return operatorSetting{&choice{k, value, check}}
}

func fitOption(k option.Kind, value string, check func(c *config) string) FitOption {
	return &choice{k, value, check}
}

// number, whole and constant make options whose bound is declared (internal/option). They call set with a
// value within it.
func number(k option.Kind, v float64, set func(c *config)) *choice {
	return declared(k, ftoa(v), k.Check(v), set)
}

func whole(k option.Kind, n int, set func(c *config)) *choice {
	return declared(k, itoa(n), k.Check(float64(n)), set)
}

func constant(k option.Kind, i int, set func(c *config)) *choice {
	return declared(k, k.Constant(i), k.CheckConstant(i), set)
}

func declared(k option.Kind, value, broken string, set func(c *config)) *choice {
	return &choice{k, value, func(c *config) string {
		if broken == "" {
			set(c)
		}
		return broken
	}}
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
	return operatorSetting{number(option.Epsilon, eps, func(c *config) { c.Epsilon = eps })}
}

// WithSquash sets how the samples of a row are brought onto [0,1] before the transport.
// Default [SquashLogistic], in models [SquashLogisticUnit].
func WithSquash(s Squash) Option {
	return operatorSetting{constant(option.Squash, int(s), func(c *config) { c.Squash = transport.Kind(s) })}
}

// WithTolerance sets ρ, the relative column error max_j |c_j-b_j|/b_j at which a
// transport has converged. ρ > 0; default 1e-9. Where the rounding of the logits,
// 9e-16·(1+2 max|x-x̄|·max|y-ȳ|/ε), is larger, it takes the place of ρ; this maximum leaves out
// samples that belong wholly to the first or the last target. Where rows of a FitQMF come in several
// batches, its steps solve transports to √ρ.
//
// In FitBQMF ρ is the largest share of UV by which the last epoch may move UV; default 3e-3.
func WithTolerance(rho float64) Option {
	return operatorSetting{number(option.Tolerance, rho, func(c *config) { c.Tolerance = rho })}
}

// WithMaxIterations bounds the passes over a row. n >= 1; default 3000, in models 200,
// where 4 or 5 are usual. A row of a model that would take more keeps the potentials that it has
// reached, and the model a warning.
func WithMaxIterations(n int) Option {
	return operatorSetting{whole(option.MaxIterations, n, func(c *config) { c.MaxIterations = n })}
}

// WithStrict makes a transport that does not converge an error, a [*ConvergenceError]. A
// fit returns its model with that error.
func WithStrict() Option {
	return operatorOption(option.Strict, "", func(c *config) string { c.strict = true; return "" })
}

// WithWeights sets a, the weights of the n samples: finite, non-negative, with a positive
// sum; they are divided by it. Default uniform. A sample of weight 0, or of less than
// 1e-200 of the sum, takes no part in the transport but still gets a value. The mean and
// the deviation of a squash ([Squash]) are those of all samples, whatever their weights. In
// SoftQuantileRows every row has these weights.
func WithWeights(a []float64) Option {
	return operatorOption(option.Weights, "len "+itoa(len(a)), func(c *config) string {
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

// WithTargets sets y, the m targets that samples are transported to, on the scale of the
// squashed samples: of magnitude at most 1e12, increasing by at least 1e-200. Default a
// regular grid on [0,1].
func WithTargets(y []float64) Option {
	return operatorOption(option.Targets, "len "+itoa(len(y)), func(c *config) string {
		if len(y) == 0 {
			return "must not be empty"
		}
		for j, v := range y {
			if !(v >= -limit.Point && v <= limit.Point) {
				return "target " + itoa(j) + " is " + ftoa(v) + ", must be of magnitude at most " +
					ftoa(limit.Point)
			}
		}
		for j := 1; j < len(y); j++ {
			if !(y[j]-y[j-1] >= limit.Gap) {
				return "target " + itoa(j) + " must be above the one before it, by at least " +
					ftoa(limit.Gap)
			}
		}
		c.targets = y
		return ""
	})
}

// WithTargetWeights sets b, the weights of the m targets: with a finite sum, each at
// least 1e-290 of it; they are divided by it. Default uniform. To a target of less than
// 1e-120 of the sum a transport rarely converges within the tolerance;
// Transport.Converged tells.
func WithTargetWeights(b []float64) Option {
	return operatorOption(option.TargetWeights, "len "+itoa(len(b)), func(c *config) string {
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
			if v/sum < transport.LeastWeight {
				return "weight " + itoa(j) + " is " + ftoa(v) + ", must be at least " +
					ftoa(transport.LeastWeight) + " of the sum, " + ftoa(sum)
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
	return operatorSetting{whole(option.Iterations, l, func(c *config) { c.iterations = l })}
}

// WithLevels sets m, the number of targets, where no argument and no other option gives it. m >= 1, in models
// m >= 2. Default: 8 in models. In SoftRank, SoftSort and Solve and in their rows n, but at most as many as ε
// can tell apart: 6/√ε, 4.5/√ε where ranks alone are asked for, and n at ε = 0. These stand for n levels: a
// regular grid of [0,1] whose weights give the sums of n levels, and ranks are those of its places.
//
// Time grows with nm and m³, memory with n and m². Wherever m comes from, an m with 4m² + nm > 2^31 (16 GiB;
// 2^27 where addresses have 32 bits) is an error.
func WithLevels(m int) Option {
	return operatorSetting{whole(option.Levels, m, func(c *config) { c.Levels = m })}
}

// WithMidpointRanks makes ranks where levels are given n M (cumsum(b) - b/2) + 1/2, whose mean is exactly
// (n+1)/2, instead of the paper's n M cumsum(b), whose mean is n(1+Σb²)/2: too high by
// (n/m-1)/2 under even b, and right where m = n.
func WithMidpointRanks() Option {
	return operatorOption(option.MidpointRanks, "", func(c *config) string {
		c.ranks.midpoint = true
		return ""
	})
}

// WithContext ends an operator soon after ctx has ended: before its next row and, within a row of many
// levels, between pieces of a few milliseconds. The error wraps that of ctx. Methods of a [Transport] that
// [Solve] has returned do not end. It is an option because the arguments of operators are those of the
// mathematics.
func WithContext(ctx context.Context) Option {
	return operatorOption(option.Context, "", func(c *config) string {
		if ctx == nil {
			return "must not be nil"
		}
		c.ctx = ctx
		return ""
	})
}

// WithWorkers sets how many goroutines work on rows at the same time: in the call, and in the methods of a
// model that a fit or [UnmarshalModel] returns, such as Transform, Predict and Scores. n >= 0; default 0,
// which stands for GOMAXPROCS. The result does not depend on it.
func WithWorkers(n int) Option {
	return operatorSetting{whole(option.Workers, n, func(c *config) { c.workers = n })}
}

// WithEpochs sets the number of epochs, each over every row. n >= 0. Default: 4 in FitQMF, or none (see
// there), 20 where Adam steps its U and V; 100 in FitQMFQ; at most 60 in FitBQMF; 20 in FitNMF, 100 with
// [UpdatesMultiplicative].
func WithEpochs(n int) FitOption {
	return whole(option.Epochs, n, func(c *config) { c.Epochs = n })
}

// WithSeed sets the seed of everything random in a fit, any number. Default 1.
func WithSeed(s uint64) FitOption {
	return fitOption(option.Seed, utoa(s), func(c *config) string { c.Seed = s; return "" })
}

// WithLearningRate sets the step size of Adam, which works on logarithms. 0 < lr <= 100,
// where more than 1 is of no use. Default: 0.2 in FitQMF, where Adam steps the weights of the levels
// alone, and 0.06 where it steps U and V too; 0.1 in FitQMFQ. [WithSchedule] says how it falls.
func WithLearningRate(lr float64) FitOption {
	return number(option.LearningRate, lr, func(c *config) { c.LearningRate = lr })
}

// WithSchedule sets how the learning rate changes over the epochs. Default
// [ScheduleCosine].
func WithSchedule(s Schedule) FitOption {
	return constant(option.Schedule, int(s), func(c *config) { c.Schedule = qmf.Schedule(s) })
}

// WithBatch sets how many rows are visited between two steps of V. rows >= 1; default 32.
// With rows >= d all rows are one batch.
func WithBatch(rows int) FitOption {
	return whole(option.Batch, rows, func(c *config) { c.BatchRows = rows })
}

// WithUpdates sets how FitNMF lowers the loss. Default [UpdatesNewton] under [KL] and [Frobenius] up to rank
// d+n, but for few cells of which some are missing, see [FitNMF]; else [UpdatesMultiplicative], which alone
// takes other losses.
func WithUpdates(u Updates) FitOption {
	return constant(option.Updates, int(u), func(c *config) { c.Updates = qmf.Updates(u) })
}

// WithStart sets where a fit starts. A FitQMFQ starts from a QMF, and the option sets where that QMF
// starts. Default [StartAuto]. FitNMF takes StartAuto, [StartUniform] and [StartSVD] alone, and no other fit
// takes StartSVD.
func WithStart(s Start) FitOption {
	return constant(option.Start, int(s), func(c *config) { c.Start = qmf.Start(s) })
}

// WithEnds sets whether the lowest and highest quantile are learnt. Default
// [EndsFree].
func WithEnds(e Ends) FitOption {
	return constant(option.Ends, int(e), func(c *config) { c.Ends = qmf.Ends(e) })
}

// WithInit starts a fit from the given factors, u d × k and v k × n, finite and
// non-negative, which are copied: those of an NMF or a QMF, for example.
//
// FitNMF sets an entry below 1e-50 to 0. FitQMF and FitQMFQ need positive factors: they raise an entry of
// U below 1e-3 of the mean of U, and an entry of V below 1e-3 of the mean of its row, to that bound, and
// any entry to at least the lower bound of the next paragraph.
//
// The largest entry of U, and that of V, must be 0 or within the bounds of the fit, else it is a
// [*DataError]. The bounds are 1e-50 to 1e50 in FitNMF; e^-300 to e^300 in FitQMF and FitQMFQ; and there,
// under [SquashNone], which transports UV as it is, (1e12/k)^-½ to (1e12/k)^½. No entry of UV may exceed
// 1e60 in FitNMF and 1e70 in the others, by the entries after they have been raised. Where the largest x
// is beyond 2^±100, FitNMF's bounds of U and V are in units of the root of that x, and its bound of UV is
// in units of that x, but at most 1e70.
//
// Of the starts of [WithStart] only [StartUniform] of FitQMF and FitQMFQ goes with WithInit: it makes the
// fit the paper's, from these factors.
func WithInit(u, v Mat) FitOption {
	return fitOption(option.Init, u.size()+", "+v.size(), func(c *config) string {
		c.Init, c.InitU, c.InitV = true, fit.Dense(u), fit.Dense(v)
		return ""
	})
}

// WithPenalty sets λ, the weight of the penalty of a FitQMF: λ/2 (mean Ũ² + mean
// Ṽ²) of the log factors, added to the mean loss. 0 <= λ <= 1e30; default 0. FitNMF has [WithPenalties].
func WithPenalty(lambda float64) FitOption {
	return number(option.Penalty, lambda, func(c *config) { c.Penalty = lambda })
}

// WithPenalties sets the penalties of a FitNMF. Default none.
func WithPenalties(p Penalties) FitOption {
	return fitOption(option.Penalties, p.String(), func(c *config) string {
		for i, v := range [...]float64{p.L1U, p.L1V, p.L2U, p.L2V} {
			if bound := option.Penalties.Check(v); bound != "" {
				return [...]string{"L1U ", "L1V ", "L2U ", "L2V "}[i] + bound
			}
		}
		c.Penalties = nmf.Penalties(p)
		return ""
	})
}

// Penalties are the weights of what a FitNMF adds to the mean loss of a d × n matrix,
//
//	(L1U Σ U + L2U/2 Σ U²)/d + (L1V Σ V + L2V/2 Σ V²)/n,
//
// each from 0 to 1e30. L1 makes entries 0, L2 keeps them small. That is the objective of scikit-learn's NMF,
// divided by dn: with samples in its rows alpha_W l1_ratio is L1V, alpha_W (1-l1_ratio) is L2V, and alpha_H
// the same of U. Penalties of one factor alone only move the scale of the components to the other, unless
// [WithFixedU] holds it. As in scikit-learn, Transform of new samples has the penalties of V.
//
// A QMF and a QMFQ have none: T_i undoes any scale of row i of UV, so the least of such a penalty would be 0,
// at factors of 0. [WithPenalty] is that of a QMF.
type Penalties struct{ L1U, L1V, L2U, L2V float64 }

// String returns the four weights.
func (p Penalties) String() string {
	return "L1U " + ftoa(p.L1U) + ", L1V " + ftoa(p.L1V) + ", L2U " + ftoa(p.L2U) + ", L2V " + ftoa(p.L2V)
}

// WithFixedU gives the first r columns of U, d × r with 1 <= r <= k, finite and non-negative: a fit learns V
// and the other columns, and leaves these as they are. They are known signatures, or spectra, and V says how
// much of each a sample has; columns beyond r take what they do not explain. The bounds are those of
// [WithInit]; FitQMF, whose factors are positive, raises entries to its lower bound. Its maps T_i undo the
// scale that row i of U has. Where [WithInit] or [WithModel] gives U as well, these columns take the place of
// its first.
func WithFixedU(columns Mat) FitOption {
	return fitOption(option.FixedU, columns.size(), func(c *config) string {
		if columns.Rows < 1 || columns.Cols < 1 {
			return "must not be empty"
		}
		c.FixedU = fit.Dense(columns)
		return ""
	})
}

// WithSampleWeights gives the samples weights, n of them, finite, at least 0 and not all 0: a fit minimises
// the mean Σ w Δ / Σ w over the visible cells, and History and Validation are such means. A weight of 2
// counts as the sample twice. A sample of weight 0 takes no part, as if it were not there, and gets the
// coordinates that Transform has for it. Loss and Score weigh all cells the same. Cost: that of missing
// values, and another multiplication a cell.
//
// Where there are maps the weights are those of the operators as well: T_i transports samples of these
// weights, and its squash has their mean and deviation. [WithShrinkage] counts samples of the mean weight;
// penalties count entries of factors, whatever they weigh. Projections of a QMFQ weigh cells likewise; a
// [TruncatedSVD] takes weights of samples alone. Fits in shards take none.
//
// A [FitBQMF] knows how much it has seen, so a factor of all weights counts there: it has what it would learn
// of the rows (U, noise, scales, History) from a table with each sample so often, and V of each. What it
// leaves out of a sample to judge itself (LeaveOneOut, maps, intervals) are all of its copies; of twins in a
// table the other one would be seen. Divide weights that are no counts by their mean.
func WithSampleWeights(w []float64) FitOption {
	return fitOption(option.SampleWeights, "len "+itoa(len(w)), func(c *config) string {
		bound := weightsBound(w)
		if bound == "" {
			c.sampleWeights = w
		}
		return bound
	})
}

// weightsBound returns what weights must be, "" where they are.
func weightsBound(w []float64) string {
	if len(w) == 0 {
		return "must not be empty"
	}
	sum := 0.0
	for i, v := range w {
		if !(v >= 0 && v <= limit.Value) {
			return "weight " + itoa(i) + " is " + ftoa(v) + ", must be at least 0 and at most " +
				ftoa(limit.Value)
		}
		sum += v
	}
	if sum == 0 {
		return "not all may be zero"
	}
	return ""
}

// WithCellWeights gives every cell of x a weight, d × n, finite and at least 0, such as the inverse of the
// variance of its noise: a fit minimises the mean Σ w Δ / Σ w, as with [WithSampleWeights], by whose weights
// these are multiplied where both are given. A cell of weight 0 is one that was not observed, whatever x
// has there; a row or a column of nothing else is a [*DataError], as is a weight that is none. The rows of w
// are read whenever those of x are.
//
// In a [FitBQMF] a weight is a factor of the precision of the cell, over a unit by which all of them count as
// (Σ w)²/Σ w² cells; predictions are of cells of weight 1 in that unit.
func WithCellWeights(w Rows) FitOption {
	return fitOption(option.CellWeights, "Rows", func(c *config) string {
		if w == nil {
			return "must not be nil"
		}
		c.cellWeights = w
		return ""
	})
}

// WithShrinkage pulls the quantiles of each row of a QMF, and those of T of a QMFQ, towards an affine map
// of (UV)_i, with the weight of lambda further samples. 0 <= lambda <= 1e30. Default: whichever of
// 0, 20 and 100 predicts a hidden tenth of the cells best in short fits (internal/qmf), but at most 20 in
// FitQMFQ; 0 with [EndsPinned], [StartUniform] or [WithInit]. A lambda above 0 is an error with EndsPinned
// or StartUniform.
func WithShrinkage(lambda float64) FitOption {
	return number(option.Shrinkage, lambda, func(c *config) { c.Shrinkage = lambda })
}

// WithLine sets τ, the share of the line s_i w in the maps T_i(w) = s_i w + M_i(w) q_i that a QMF starts
// from, and that shrinkage pulls to; the data then move it a little. 0 is no line: T_i is the paper's,
// bounded by q. Near 1 a QMF is near an NMF. 0 <= tau <= 1. Default: whichever of 0, 0.5 and 0.9 predicts a
// hidden tenth of the cells best in short fits (internal/qmf); 0.5 with [WithInit]. With [EndsPinned],
// [StartUniform] and [TruncatedSVD] there is no line, and a tau above 0 is an error.
func WithLine(tau float64) FitOption {
	return number(option.Line, tau, func(c *config) { c.Line = tau })
}

// WithLoss sets the divergence that is minimised. Default [KL], in FitBQMF [Frobenius] where x has negative
// values. x must not be negative, except that FitQMF, FitQMFQ and FitBQMF under Frobenius take any finite x:
// log ratios, z-scores. FitBQMF takes KL and Frobenius alone. See [Beta] for what β < 1e-9 asks of x.
func WithLoss(l Loss) FitOption {
	if l == 0 { // for a field of a caller's struct that was left alone
		return fitOption(option.Loss, l.String(), func(c *config) string { c.Loss = lossOfFit; return "" })
	}
	beta := l.of(divergence.KL)
	return number(option.Loss, float64(beta), func(c *config) { c.Loss = beta })
}

// lossOfFit stands for the default of the fit while options are parsed.
var lossOfFit = divergence.Loss(math.Inf(1))

// Loss is a β divergence Δ(x,t) of a fitted value t from an observed one x, named by its
// β. The zero Loss stands for the default of a fit. With Δ_1 and Δ_0 as limits it is
//
//	Δ_β(x,t) = (x^β + (β-1)t^β - βxt^{β-1}) / (β(β-1)).
type Loss float64

const (
	KL        Loss = 1 // generalised Kullback-Leibler, x log(x/t) - x + t: the default
	Frobenius Loss = 2 // (x-t)²/2

	itakuraSaito Loss = math.SmallestNonzeroFloat64 // β = 0; the zero Loss is the default of the fit
)

// Beta returns the divergence of the given β, from -2 to 4: 2 is [Frobenius], 1 is [KL],
// 0 that of Itakura and Saito. It is continuous in β. Beta(0) is not the zero Loss, which stands for the
// default of the fit. For β < 1e-9 x must be at least 1e-60,
// and within a factor of 1e30 of its largest value, since the divergence from 0 grows as 1/β.
func Beta(beta float64) Loss {
	if beta == 0 {
		return itakuraSaito
	}
	return Loss(beta)
}

// lossOf is a loss as users have it.
func lossOf(l divergence.Loss) Loss { return Beta(float64(l)) }

// of is a loss as fits have it, and the given one for the zero Loss.
func (l Loss) of(fallback divergence.Loss) divergence.Loss {
	switch l {
	case 0:
		return fallback
	case itakuraSaito:
		return 0
	}
	return divergence.Loss(l)
}

// At returns Δ(x,t), the divergence of one cell of value x from the fitted value t, both at least 0, except
// under [Frobenius]; under the zero Loss that of [KL].
func (l Loss) At(x, t float64) float64 { return l.of(divergence.KL).Divergence(x, t) }

// String returns KL, Frobenius, Beta(β), or default for the zero Loss.
func (l Loss) String() string {
	switch l {
	case 0:
		return "default"
	case KL:
		return "KL"
	case Frobenius:
		return "Frobenius"
	}
	return "Beta(" + ftoa(float64(l.of(0))) + ")"
}

// WithPatience ends a fit when its loss has not fallen by 1e-7 of itself within the given
// number of epochs. The loss is that on the held-out cells under [WithValidation],
// otherwise that on the visible cells with the penalty. epochs >= 1; default none.
func WithPatience(epochs int) FitOption {
	return whole(option.Patience, epochs, func(c *config) { c.Patience = epochs })
}

// WithRestarts makes n fits, with the seeds s, s+1, ..., s+n-1, s being that of [WithSeed], and
// returns the model of the lowest loss. The loss is that on the held-out cells under
// [WithValidation], which are the same for all n fits, otherwise that on the visible cells with
// the penalty. n >= 1; default 1. Cost: n fits.
func WithRestarts(n int) FitOption {
	return whole(option.Restarts, n, func(c *config) { c.restarts = n })
}

// WithValidation hides a share of the observed cells, chosen by the seed, from a fit and
// its start, and returns the model of the epoch that predicts them best. 0 < share <=
// 1/2; default none. Every row and column keeps at least two visible cells.
func WithValidation(share float64) FitOption {
	return number(option.Validation, share, func(c *config) { c.Validation = share })
}

// WithMissingValues takes NaN cells of x as unobserved: they take no part in the loss, in the steps or in the
// measure that a row's map transports, and Reconstruct fills them. A row or a column without any observed
// cell is a [*DataError]. The methods of a model take NaN cells without it.
func WithMissingValues() FitOption {
	return fitOption(option.Missing, "", func(c *config) string { c.Missing = true; return "" })
}

// WithDiscrete names the rows that take single values only, as sexes, ratings and counts do: their medians,
// the ends of their intervals and their draws are numbers on the lattice of their observed values or, where
// there is no lattice, observed values. All other rows take any value; without rows, all rows do. Default:
// the data show which rows these are, by ten observed cells at least.
func WithDiscrete(rows ...int) FitOption {
	return fitOption(option.Discrete, rowsInWords(rows), func(c *config) string {
		c.discrete = rows
		return ""
	})
}

func rowsInWords(rows []int) string {
	words := "no rows"
	for k, i := range rows {
		if words += ", " + itoa(i); k == 0 {
			words = itoa(i)
		}
	}
	return words
}

// WithProjection sets Π_k, the projection onto rank k. Default [KLUpdates](5),
// KLUpdates(100) under [StartUniform].
func WithProjection(p Projection) FitOption {
	return fitOption(option.Projection, p.String(), func(c *config) string {
		c.Projection = p.of
		return p.bound()
	})
}

// Squash says which increasing function of z = (x - mean x)/std x brings a row onto [0,1]; std is the
// population standard deviation. So the unit of x does not matter. A row whose deviation is below 1e-290,
// or whose values differ by four units in the last place at most, counts as constant: all its samples go
// to the middle, and their ranks are equal.
type Squash uint8

const (
	// SquashLogistic is the logistic function of slope π/√3 in z, the slope at which the logistic
	// distribution has variance 1: the authors' default.
	SquashLogistic Squash = Squash(transport.Logistic)
	SquashNone     Squash = Squash(transport.None) // x itself; the targets must then fit its range
	// SquashLogisticUnit is the logistic function with slope 1: the default of ott-jax.
	SquashLogisticUnit Squash = Squash(transport.LogisticUnit)
	// SquashArctan is the arc tangent, the other choice of the authors' code. Its
	// values lie in (-π/2,π/2) while targets default to [0,1], as they do there.
	SquashArctan Squash = Squash(transport.Arctan)
)

// String returns the name of the constant.
func (s Squash) String() string { return option.Squash.Constant(int(s)) }

// Schedule says how the learning rate lr changes over the E epochs of a fit.
type Schedule uint8

const (
	ScheduleCosine   Schedule = Schedule(qmf.ScheduleCosine)   // lr (1+cos(π e/E))/2 in epoch e = 0, ..., E-1
	ScheduleConstant Schedule = Schedule(qmf.ScheduleConstant) // lr, as in the paper
)

// String returns the name of the constant.
func (s Schedule) String() string { return option.Schedule.Constant(int(s)) }

// Updates says how FitNMF lowers the loss.
type Updates uint8

const (
	// UpdatesNewton is Newton's method with bounds and momentum (internal/nmf), under KL after three
	// multiplicative updates. Its epoch takes two to three times as long as a multiplicative update, over
	// sparse rows three to four times, and twenty epochs reach a lower loss than hundreds of updates. Entries
	// of the factors may become 0, and positive again.
	//
	// It takes KL and Frobenius: under other losses its models predicted unseen cells worse.
	UpdatesNewton Updates = Updates(qmf.UpdatesNewton)
	// UpdatesMultiplicative is the multiplicative updates of Lee and Seung, and of Févotte
	// and Idier for other losses, the paper's baseline, with steps ahead (Hien, Leplat and Gillis
	// 2024): half as many lead to a loss. Fits of one epoch, one from the other, are the textbook's.
	UpdatesMultiplicative Updates = Updates(qmf.UpdatesMultiplicative)
)

// String returns the name of the constant.
func (u Updates) String() string { return option.Updates.Constant(int(u)) }

// Start says where a fit starts; in FitQMFQ, where the QMF starts from which the fit starts.
type Start uint8

const (
	// StartAuto takes StartScores or StartNMF, whichever predicts a hidden tenth of the
	// cells better in short fits (internal/qmf). In FitNMF it is StartUniform, but under KL from 8192
	// samples on an NMF of some of them.
	StartAuto Start = Start(qmf.StartAuto)
	// StartScores takes U, V from an NMF of the row-wise normal scores of x, each row
	// times its mean, as FitNMF makes it by default under KL, and calibrates every row's
	// quantiles to them. Under KL the NMF of 8192 samples or more, here and under StartNMF, begins
	// with that of 2048 of them, drawn by [WithSeed], as StartAuto of FitNMF does.
	StartScores Start = Start(qmf.StartScores)
	// StartNMF takes U, V from an NMF of x itself, as FitNMF makes it where cells are missing, for as many
	// epochs as predict a hidden tenth of the cells best, and calibrates every row's quantiles to them. Of
	// up to 512 rows, it and that of StartScores begin with the U of the NMF that hid these cells.
	StartNMF Start = Start(qmf.StartNMF)
	// StartUniform is the paper's start: log factors uniform on [-1/2,1/2], and equal
	// quantile steps between each row's extremes. Adam then makes all steps, as in the
	// paper, on the logarithms of factors and quantile steps. The factors are those of
	// WithInit where they are given; in FitQMFQ all projections start from them. In FitNMF
	// StartUniform stands for factors uniform on sqrt(mean x/k)·[1/2,3/2).
	StartUniform Start = Start(qmf.StartUniform)
	// StartSVD, of FitNMF alone, takes U and V from the non-negative parts of the first
	// k singular vectors of x (NNDSVD), in which missing cells have the mean of their
	// row. No entry is below 0.3 of the mean of its column of U or row of V. StartSVD
	// costs about three epochs. Its loss is far below that of StartUniform for the first tens of
	// epochs, but not after 100. It is the same for every seed, unless k is above the
	// rank of x: the components above that rank are those of StartUniform.
	StartSVD Start = Start(qmf.StartSVD)
)

// String returns the name of the constant.
func (s Start) String() string { return option.Start.Constant(int(s)) }

// Ends says whether the lowest and highest quantile of a row are learnt.
type Ends uint8

const (
	EndsFree Ends = Ends(qmf.EndsFree) // q is the cumulative sum of m positive increments
	// EndsPinned makes q_1 and q_m the row's minimum and maximum: the paper's Q(R,s,t).
	EndsPinned Ends = Ends(qmf.EndsPinned)
)

// String returns the name of the constant.
func (e Ends) String() string { return option.Ends.Constant(int(e)) }

// Projection is the way in which a QMFQ projects a matrix onto those of rank k:
// [KLUpdates], [FrobeniusUpdates] or [TruncatedSVD]. Projections are equal when
// they are of one kind and number of updates. The zero value is none of them.
type Projection struct {
	of projection.Choice
}

// KLUpdates projects by n >= 1 multiplicative updates of V and U under the
// Kullback-Leibler divergence, the paper's choice.
func KLUpdates(n int) Projection {
	return Projection{projection.Choice{Kind: projection.KL, Updates: n}}
}

// FrobeniusUpdates projects by n >= 1 multiplicative updates of V and U under
// the Frobenius norm, as the authors' code does; a third of the cost of
// [KLUpdates].
func FrobeniusUpdates(n int) Projection {
	return Projection{projection.Choice{Kind: projection.Frobenius, Updates: n}}
}

// TruncatedSVD projects onto the first k singular vectors. Factors may be
// negative. It has no derivative where the singular values k and k+1 are equal,
// which ends a fit with a [*DataError]. It needs every cell: with
// [WithMissingValues] or [WithValidation] it is an [*OptionError]. Cost: all min(d,n)
// singular vectors of a d × n matrix, whatever k is: time O(dn min(d,n)).
func TruncatedSVD() Projection { return Projection{projection.Choice{Kind: projection.SVD}} }

// String returns the call that makes the projection.
func (p Projection) String() string {
	switch p.of.Kind {
	case projection.KL:
		return "KLUpdates(" + itoa(p.of.Updates) + ")"
	case projection.Frobenius:
		return "FrobeniusUpdates(" + itoa(p.of.Updates) + ")"
	case projection.SVD:
		return "TruncatedSVD()"
	}
	return "Projection{}"
}

// bound returns the bound that the projection breaks, "" if none.
func (p Projection) bound() string {
	switch {
	case p.of.Kind == 0:
		return "must be KLUpdates, FrobeniusUpdates or TruncatedSVD"
	case p.of.Kind != projection.SVD && (p.of.Updates < 1 || p.of.Updates > 1<<20):
		return "must have from 1 to 1048576 updates"
	}
	return ""
}

// Phase is the part of a fit that is under way.
type Phase uint8

const (
	// PhaseChoice makes short fits of some rows, which choose start, shrinkage and line, where they are
	// left to the data, end the NMF of StartNMF and begin that of a start; in FitNMF they choose its epochs
	// and guesses, where cells are missing. FitBQMF has none.
	PhaseChoice Phase = iota
	// PhaseFactors makes the factors that a fit starts from: by an NMF of 20 epochs, by 100
	// multiplicative updates, or from singular vectors. In FitBQMF it first makes the scales of the rows,
	// on which the singular vectors are taken.
	PhaseFactors
	// PhaseMaps fits the first maps of all rows to those factors. FitNMF and FitBQMF have
	// none, FitQMFQ two: T at the start of the QMF that it starts from, T' after it.
	PhaseMaps
	// PhaseQMF is the epochs of the QMF that a FitQMFQ starts from.
	PhaseQMF
	// PhaseEpochs is the epochs of the fit itself.
	PhaseEpochs
)

// String returns the name of the constant.
func (p Phase) String() string {
	return option.Name(int(p), "PhaseChoice", "PhaseFactors", "PhaseMaps", "PhaseQMF", "PhaseEpochs")
}

// Progress is what a fit reports while it works. Phases come in the order of the
// constants, for every restart anew; a fit has those that its start needs. Within a phase
// Done rises from 0 to 1. Reports come several times in every phase before [PhaseEpochs],
// the first when options and data have been checked, and after every epoch in
// PhaseEpochs.
type Progress struct {
	Phase Phase
	// the share of the phase that is done, from 0 to 1; Epoch/Epochs in PhaseEpochs, 1 when no epoch follows
	Done   float64
	Epoch  int // epochs done, 0 before PhaseEpochs
	Epochs int // epochs in all
	Rows   int // rows visited in an epoch
	// Loss is the newest entry of History that is known; in FitQMF it may be the mean over rows, each at its
	// visit. It is 0 before PhaseEpochs.
	Loss float64
}

// WithProgress calls f while a fit works, on the goroutine of the caller: in every phase
// of its start, and after every epoch. An error of f stops the fit and comes back
// wrapped, with the model so far.
//
// Where f or the context stops a fit before its first epoch, the model so far is the best
// model of the restarts before. In the first of the restarts it is the unfinished start:
// factors that need not fit x, and the mean of row i as T_i where T_i has not been fitted yet. A context that
// had ended before the call leaves no model.
func WithProgress(f func(Progress) error) FitOption {
	return fitOption(option.Progress, "func", func(c *config) string {
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
// no checkpoints. Nothing is saved during the start, which in FitQMFQ includes a QMF.
// [WithResume] takes the state.
func WithCheckpoint(every int, save func(state []byte) error) FitOption {
	return fitOption(option.Checkpoint, itoa(every), func(c *config) string {
		if every < 1 {
			return "must be at least 1"
		}
		if save == nil {
			return "save must not be nil"
		}
		c.every, c.save, c.checkpoints = every, save, fit.Files{}
		return ""
	})
}

// WithResume continues a fit from a state that [WithCheckpoint] saved, with the same x
// and the same options; workers, progress and checkpoints may differ. The model has the
// bits of a fit that was never stopped. In FitNMF, FitBQMF and under [ScheduleConstant], where no
// epoch depends on the number of epochs, [WithEpochs] may be another number than before, from
// the number of epochs done on, also for a fit that was complete; but not from the second of
// several restarts on. Another option or initial factor is an [*OptionError] that names it,
// another x a [*DataError], a damaged state a [*FormatError].
func WithResume(state []byte) FitOption {
	return fitOption(option.Resume, itoa(len(state))+" bytes", func(c *config) string {
		if len(state) == 0 {
			return "must not be empty"
		}
		c.resume, c.checkpoints = state, fit.Files{}
		return ""
	})
}
