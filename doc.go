// Package quantmf factorises matrices whose features live on scales that do not fit each other, and offers
// the differentiable rank, sort and quantile-normalisation operators that this takes.
//
// It follows "Supervised Quantile Normalization for Low-rank Matrix Approximation" (Cuturi, Teboul,
// Niles-Weed and Vert, ICML 2020), cited below as "the paper"; where the paper or its code errs, the file
// that differs says so.
//
// # The problem
//
// A matrix X of d features × n samples (genes × patients, terms × documents, metrics × hosts) is often
// approximated by a product UV of rank k. When one feature is a count, the next a percentage and the third
// a logarithm, the product cannot fit all three, and people first apply logarithms, tf-idf or z-scores,
// chosen by hand. Here every feature i has an increasing map T_i of its own, learnt together with the
// factors:
//
//	NMF   X ≈ UV                 [FitNMF]
//	QMF   X ≈ T(UV)              [FitQMF]   paper §3.4
//	QMFQ  X ≈ T(Π_k(T'(X)))      [FitQMFQ]  paper §3.5
//	BQMF  X ≈ T(UV), signed, with its uncertainty   [FitBQMF]
//
// NMF is non-negative matrix factorisation, QMF quantile matrix factorisation, BQMF a Bayesian form of it.
// U and V are not negative, but for BQMF. In QMFQ the rows are first brought to scales on which a
// projection Π_k onto rank k does well, and the result is brought back; the two maps of a row are learnt
// through the projection.
//
// # What a fit minimises
//
// A fit minimises the sum of a divergence Δ over the observed cells, the generalised one of Kullback and
// Leibler by default ([WithLoss]):
//
//	NMF   min over U, V >= 0        of  Σ_ij Δ(x_ij, (UV)_ij)
//	QMF   min over Ũ, Ṽ, F, q, s    of  Σ_i Δ(X_i, T_i((UV)_i)),   U = exp Ũ, V = exp Ṽ   Eq. (QMF)
//	QMFQ  min over F, q, s, F', q'  of  Σ_i Δ(X_i, T_i(Π_k(T'(X))_i))                     Eq. (QMFQ)
//	T_i(w) = s_i w + T_{ε,b_i,q_i}(w),   b_i = softmax F_i,   q_i non-decreasing           paper §3.3
//
// T_{ε,b,q} is the soft quantile map of the next section. A row's map of m levels is thus given by 2m+1
// numbers: the weights b_i of the levels, the quantile values q_i, and the slope s_i >= 0 of a line.
//
// The line is not in the paper. Without it T cannot be straight where a few samples lie far from the others,
// and a QMF then predicts hidden cells worse than an NMF; with it a QMF contains the NMF (internal/qmf).
// WithLine(0) and the paper's forms ([StartUniform], [EndsPinned]) have none. internal/qmf has the steps
// that an epoch makes. BQMF puts a prior on U and V and finds their distribution (bqmf.go).
//
// # The operator
//
// Let x be n samples of weights a, y m increasing targets of weights b, and P (paper §2.1) the plan that
// carries x to y at the least cost Σ P_ij (x_i-y_j)² plus an entropy of weight ε. Each sample is spread
// over the targets by the row M_i of M = diag(1/a) P. With ε → 0 the plan sorts; with ε > 0 it is smooth,
// and
//
//	R = n M cumsum(b)               are soft ranks          [SoftRank]
//	S = diag(1/c) Mᵀ diag(a) x      soft order statistics   [SoftSort],  c the plan's column sums
//	T = M q                         the soft quantile map   [SoftQuantile]
//
// T carries the distribution of x to the one with quantile values q at the levels cumsum(b): a
// differentiable quantile normalisation, increasing in x, within [q_1,q_m]. [Solve] does the work once for
// all three and for their derivatives; [Transport.Map] gives T at values other than the samples.
// [SoftQuantiles] gives single quantiles of x, such as its median.
//
// The derivatives are those of the solution itself, by the implicit function theorem (paper §2.4, Algorithm
// 2): one linear system of m unknowns takes the place of a way back through the iterations. implicit.go has
// the formulas.
//
// # Notation
//
// The same letters everywhere, in code and documentation:
//
//	d  features (rows)        x  a row of samples       ε  entropic regularisation
//	n  samples (columns)      a  its weights, sum 1     ℓ  iterations
//	k  rank                   y  targets, increasing    P  plan, n × m
//	m  levels (targets)       b  their weights, sum 1   M  diag(1/a) P, row-stochastic
//	q  quantile values        f, g  dual potentials     w  a row of UV in QMF
//
// # Matrices
//
// What is computed is a [Mat]. What is fitted or placed may be any [Rows], which is read a row at a time: a
// Mat, a [Mat32], a [*Sparse], a file that package rowfile opens, or a type of the caller's. The same numbers
// give the same bits, whatever holds them. Inputs are neither changed nor kept.
//
// # Choosing ε
//
// Rows are squashed onto [0,1] by a logistic function of their z-score, and targets are a regular grid on
// [0,1], so that ε has one meaning for every row and does not depend on n or on the units of x. The slope of
// the logistic is π/√3 in operators ([SquashLogistic]) and 1 in models ([SquashLogisticUnit]).
//
// With many levels a sample is spread over targets with a standard deviation of about √(ε/2): ranks and
// sorted values are blurred over a share s of the n samples for ε = 2s². With few levels a map is smooth from
// ε = 1/(2(m-1)²) on, 0.0022 for m = 16 and 0.010 for m = 8. Below a quarter of that it is a chain of steps.
// Models take 0.02 with m = 8.
//
// # Options
//
// The table says which function takes which option. A function returns an [*OptionError] for an option that
// it has no use for, for two options that contradict each other, and at ε = 0 for an option that concerns
// iterations. SoftRankRows, SoftSortRows and their derivatives take those of SoftRank and SoftSort.
//
//	                   Solve     SoftSort  SoftQuantile      SoftQuantiles  FitNMF  FitQMF  FitQMFQ  FitBQMF
//	                   SoftRank            SoftQuantileRows  SoftTopK
//	WithEpsilon        x         x         x                 x              -       x       x        -
//	WithSquash         x         x         x                 x              -       x       x        -
//	WithTolerance      x         x         x                 x              -       x       x        x
//	WithMaxIterations  x         x         x                 x              -       x       x        -
//	WithStrict         x         x         x                 x              -       x       x        -
//	WithWorkers        x         x         x                 x              x       x       x        x
//	WithContext        x         x         x                 x              -       -       -        -
//	WithWeights        x         x         x                 x              -       -       -        -
//	WithIterations     x         x         x                 x              -       -       -        -
//	WithTargets        x         x         x                 -              -       -       -        -
//	WithTargetWeights  x         x         x                 -              -       -       -        -
//	WithLevels         x         x         as len(q)         -              -       x       x        -
//	WithMidpointRanks  x         -         -                 -              -       -       -        -
//	WithEpochs         -         -         -                 -              x       x       x        x
//	WithSeed           -         -         -                 -              x       x       x        x
//	WithLoss           -         -         -                 -              x       x       x        x
//	WithPatience       -         -         -                 -              x       x       x        -
//	WithRestarts       -         -         -                 -              x       x       x        -
//	WithValidation     -         -         -                 -              x       x       x        x
//	WithMissingValues  -         -         -                 -              x       x       x        x
//	WithProgress       -         -         -                 -              x       x       x        x
//	WithCheckpoint     -         -         -                 -              x       x       x        x
//	WithResume         -         -         -                 -              x       x       x        x
//	WithInit           -         -         -                 -              x       x       x        -
//	WithModel          -         -         -                 -              x       x       x        x
//	WithStart          -         -         -                 -              x       x       x        -
//	WithPenalty        -         -         -                 -              -       x       -        -
//	WithPenalties      -         -         -                 -              x       -       -        -
//	WithFixedU         -         -         -                 -              x       x       -        -
//	WithSampleWeights  -         -         -                 -              x       x       x        x
//	WithCellWeights    -         -         -                 -              x       x       x        x
//	WithUpdates        -         -         -                 -              x       -       -        -
//	WithDiscrete       -         -         -                 -              -       -       -        x
//	WithLearningRate   -         -         -                 -              -       x       x        -
//	WithSchedule       -         -         -                 -              -       x       x        -
//	WithEnds           -         -         -                 -              -       x       x        -
//	WithBatch          -         -         -                 -              -       x       -        -
//	WithShrinkage      -         -         -                 -              -       x       x        -
//	WithLine           -         -         -                 -              -       x       x        -
//	WithProjection     -         -         -                 -              -       -       x        -
//
// # Defaults of models
//
//	                     FitNMF        FitQMF                FitQMFQ             FitBQMF
//	WithLoss             KL            KL                    KL                  KL
//	WithEpochs           20            4                     100                 60
//	WithUpdates          UpdatesNewton  -                    -                   -
//	WithLevels           -             8                     8                   -
//	WithEpsilon          -             0.02                  0.02                -
//	WithSquash           -             SquashLogisticUnit    SquashLogisticUnit  -
//	WithTolerance        -             1e-09                 1e-09               0.003
//	WithMaxIterations    -             200                   200                 -
//	WithLearningRate     -             0.2                   0.1                 -
//	WithSchedule         -             ScheduleCosine        ScheduleCosine      -
//	WithBatch            -             32                    all                 -
//	WithStart            StartAuto     StartAuto             StartAuto           -
//	WithEnds             -             EndsFree              EndsFree            -
//	WithShrinkage        -             by hidden cells       by hidden cells     -
//	WithLine             -             by hidden cells       by hidden cells     -
//	WithProjection       -             -                     KLUpdates(5)        -
//	WithPenalty          -             0                     -                   -
//	WithPenalties        none          -                     -                   -
//	WithSeed             1             1                     1                   1
//	WithRestarts         1             1                     1                   -
//
// Where Adam steps U and V of a QMF, the defaults are 20 epochs and a rate of 0.06 ([FitQMF]). FitNMF makes
// 10 epochs by default under KL where there are 8192 samples or more. FitBQMF takes Frobenius where x has
// negative values.
//
// Without options there is no validation share, no patience and no checkpoint, NaN is an
// error, and GOMAXPROCS goroutines work.
//
// # What holds everywhere
//
// Convergence. Rows are solved to a relative column error of 1e-9 by a Newton method that provably converges
// (internal/transport/dual.go). [Transport.Converged] tells whether a row converged, and Warnings of a model
// name the rows that did not. That is an error under [WithStrict] alone.
//
// Exactness. Ranks, sorted values and maps keep order and range without exception: equal samples get equal
// values, not merely up to rounding. The same input, options and seed give the same bits on every platform,
// for any number of workers, with assembly and without it (-tags purego).
//
// Numbers. A NaN or an infinity in the data is a [*DataError] that says where; [WithMissingValues] lets fits
// take NaN for a cell that was not observed, and methods of models take it so without. Magnitudes are bounded
// where a sum could overflow: 1e300 for samples and quantile values of operators, 1e60 for matrices to be
// fitted. A derivative too large for a float64 is returned as the largest float64 of its sign. No output is
// NaN for finite input.
//
// Concurrency. All functions may be called from several goroutines at once, and fitted models and transports
// are immutable. Goroutines live no longer than the call that starts them.
//
// What calls cost is measured in docs/measurements; [MemoryFor] tells what a fit takes. docs/architecture.md
// has the files and packages, the way of a row through them, and where to change what.
package quantmf
