package quantmf

// This file holds the model of quantile matrix factorisation (paper §3.4, Eq. (QMF)),
//
//	min over Ũ, Ṽ, F, q, s of  Σ_i Δ(X_i, T_i((UV)_i)),
//	U = exp Ũ,  V = exp Ṽ,  b_i = softmax F_i,  T_i(w) = s_i w + T_{ε,b_i,q_i}(w).
//
// The line s_i w is not in the paper (internal/qmf/line.go); s = 0 is the paper's model. internal/qmf has the
// fit.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/gauss"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// QMF is a fitted X ≈ T(UV). It is not changed by its methods and may be used by
// several goroutines at once.
type QMF struct {
	Factorisation
	// Quantiles and Weights (d × m) hold q_i, non-decreasing, and b_i, of sum 1.
	Quantiles, Weights Mat
	Slopes             []float64 // s_i >= 0, d numbers: T_i(w) = s_i w + M_i(w) q_i
	Start              Start     // where the fit started; StartAuto after WithInit alone
	Shrinkage          float64   // λ of WithShrinkage: as given, or as chosen by the data
	Line               float64   // τ of WithLine: as given, or as chosen by the data

	potentials Mat // h_i of the last solve, about center
	center     []float64
	squash     []transport.Squash
	marginal   []float64
	epsilon    float64
}

func qmfDefaults() config {
	return config{Settings: qmf.Defaults(), running: running{restarts: 1}}
}

// settleQMF sets the defaults of epochs and learning rate where Adam steps U and V. qmfDefaults has
// those for Gauss–Newton steps, of which the data may choose to make none.
func (c *config) settleQMF(rank int) {
	if c.Gaussian(rank) {
		c.MayRest = !c.given.Has(option.Epochs) && c.Validation == 0 && c.Patience == 0
		return
	}
	if !c.given.Has(option.Epochs) {
		c.Epochs = 20
	}
	if !c.given.Has(option.LearningRate) {
		c.LearningRate = qmf.AdamRate
	}
}

// FitQMF fits x, d features × n samples, by T(UV) of rank k >= 1, one increasing map T_i a feature: a line
// and a soft quantile map, see [WithLine]. x is finite, of magnitude at most 1e60, and non-negative; under
// [WithLoss]([Frobenius]) it may have any sign.
//
// x may be in any unit: beyond 2^±100 it is divided by a power of two, and the factors belong to the
// divided x. Quantiles and losses are always in the units of x. A constant added to a row
// of a signed x is added to the row's quantiles, and changes nothing else.
//
// In an epoch quantile values and slopes of lines make EM steps, the weights of the levels steps of Adam, and
// U and V Gauss–Newton steps. Adam steps all of them under [StartUniform], which is the paper's form, and U
// and V also under [SquashNone], for β < -1/2, and where k is above 32.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 4 epochs with Adam at 0.2 falling to 0 by cosine
// (where Adam steps U and V: 20 epochs, 0.06), batches of 32 rows, free ends, start, shrinkage and line
// chosen by the data (see [WithStart], [WithShrinkage], [WithLine]), no penalty, seed 1, no restarts, no
// patience, no validation. These defaults predicted unseen cells best over several kinds of data
// (docs/measurements/defaults.md); to fit the observed cells more closely, take 30 epochs, no shrinkage, a
// smaller ε.
//
// Where unseen cells are predicted best before the first of the 4 epochs, by the cells by which start,
// shrinkage or line are chosen, the fit makes none: in tables of few rows of which one or two rule the loss
// epochs overfit. [WithEpochs], [WithPatience] and [WithValidation] keep the epochs.
//
// The first and the last entry of History are exact. The others are exact where all rows are one batch and
// under WithValidation and WithPatience; otherwise they are means over the rows, each when it was visited.
//
// Errors: [*DataError], [*ShapeError], [*OptionError]; where a row cannot be read a [*ReadError],
// without a model; under [WithStrict] a [*ConvergenceError]; when ctx ends or a progress function
// fails, the model so far with an error that wraps it.
//
// Cost of an epoch: d transports with their backward, some 100nm flops each, and 2dnk(k+3) flops for U and V
// (by Adam 6dnk). The choice takes two NMFs, of few cells five, and 6 epochs of up to 2^16 cells.
// [MemoryOf] tells what a fit takes; docs/measurements/cost.md has times.
func FitQMF(ctx context.Context, x Rows, rank int, opts ...FitOption) (*QMF, error) {
	c := qmfDefaults()
	t, err := open(ctx, section.QMF, option.FitQMF, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(t.Cells.D, t.Cells.N); err != nil {
		return nil, err
	}
	c.settleQMF(rank)
	m, err := t.drive(ctx, t.Cells.D, new(QMF), func(run fit.Run) fit.Algorithm {
		return qmf.FitQMF(t.Cells, rank, &c.Settings, run)
	})
	q, _ := m.(*QMF)
	return q, err
}

func (*QMF) fitted(made any, s *qmf.Settings) fitted {
	of := made.(*qmf.QMF)
	q := newQMF(factorisationOf(&of.Fitted, s), of, s.Epsilon)
	q.mapped = true
	q.Warnings = notAllConverged(q.Warnings, of.Ends, s.Tolerance)
	return q
}

// newQMF returns the model of factors and maps.
func newQMF(of Factorisation, maps *qmf.QMF, epsilon float64) *QMF {
	return &QMF{Factorisation: of, Quantiles: Mat(maps.Quantiles), Weights: Mat(maps.Weights),
		Slopes: maps.Slopes, Start: Start(maps.Start), Shrinkage: maps.Lambda, Line: maps.Line,
		potentials: Mat(maps.Potentials), center: maps.Center, squash: maps.Squash, marginal: maps.Marginal,
		epsilon: epsilon}
}

// notAllConverged adds a warning for each row whose transport has not converged.
func notAllConverged(warnings []error, ends []transport.Outcome, tolerance float64) []error {
	for i, o := range ends {
		if !o.Converged {
			warnings = append(warnings, notConverged(o, i, tolerance))
		}
	}
	return warnings
}

// toUserUnits brings a model of x' to the units of x.
func (q *QMF) toUserUnits(u *fit.Units) {
	if !u.Plain() {
		for i := range q.Quantiles.Rows {
			u.Outward(q.Quantiles.Row(i), i)
			q.Slopes[i] = math.Ldexp(q.Slopes[i], u.All)
		}
	}
	u.Losses(q.divergence(), q.History)
	u.Losses(q.divergence(), q.Validation)
}

// objective is the loss that restarts are compared by: that on held-out cells, otherwise
// that on the visible cells with the penalty.
func (q *QMF) objective(c *qmf.Settings) float64 {
	loss, penalty := q.judged(), c.Penalty
	if q.Validation == nil && penalty > 0 {
		for _, f := range []Mat{q.U, q.V} {
			loss += float64(penalty / 2 * gauss.MeanLogSquare(f.Data))
		}
	}
	return loss
}

// checkQMF reports options with which a d × n matrix has no model.
func (c *config) checkQMF(d, n int) error {
	if limit.TooMany(max(d, n), c.Levels) {
		return &OptionError{Option: option.Levels.String(), Value: itoa(c.Levels),
			Bound: "the maps of a " + itoa(d) + "×" + itoa(n) + " matrix would need too much memory"}
	}
	if c.Levels < 2 {
		return &OptionError{Option: option.Levels.String(), Value: itoa(c.Levels),
			Bound: "a model needs at least 2"}
	}
	if !(c.Epsilon > 0) {
		return &OptionError{Option: option.Epsilon.String(), Value: ftoa(c.Epsilon),
			Bound: "a model needs a positive one: at 0 nothing has a gradient"}
	}
	if c.Start == qmf.StartSVD {
		return &OptionError{Option: option.Start.String(), Value: Start(c.Start).String(),
			Bound: "only FitNMF starts from it"}
	}
	if c.given.Has(option.Shrinkage) && c.Shrinkage > 0 {
		if c.Ends == qmf.EndsPinned {
			return &OptionError{Option: option.Shrinkage.String(), Value: ftoa(c.Shrinkage),
				Bound: "needs EndsFree"}
		}
		if c.Start == qmf.StartUniform {
			return &OptionError{Option: option.Shrinkage.String(), Value: ftoa(c.Shrinkage),
				Bound: "StartUniform has no EM step to shrink"}
		}
	}
	if c.Line > 0 && !c.MayHaveLine() {
		return &OptionError{Option: option.Line.String(), Value: ftoa(c.Line),
			Bound: "must be 0 with StartUniform and with EndsPinned, whose maps are the paper's"}
	}
	return nil
}

// solved returns the potentials of the solved transport of T_i.
func (q *QMF) solved(i int) transport.Potentials {
	return transport.Potentials{H: q.potentials.Row(i), Center: q.center[i], Squash: q.squash[i]}
}

// fill fills t, padded, with T_i of w = (UV)_i from the stored potentials.
func (q *QMF) fill(r *transport.Row, t, w []float64, i int) {
	qmf.Fill(r, t, w, q.Quantiles.Row(i), q.Slopes[i], q.solved(i), q.epsilon)
}

// Reconstruct returns T(UV), d × n. Cost: 2dnk flops, and d rows of nm exponentials or products.
func (q *QMF) Reconstruct() Mat {
	fill, err := q.filler(context.Background())
	if err != nil {
		return Mat{}
	}
	return fill.matrix(q.Dims())
}

func (q *QMF) filler(context.Context) (filler, error) {
	if err := usable(q); err != nil {
		return nil, err
	}
	return q.rows(), nil
}

// rows fills rows of T(UV).
func (q *QMF) rows() filler {
	n := q.V.Cols
	var r transport.Row
	r.Resize(n, q.Quantiles.Cols)
	w, t := make([]float64, n), make([]float64, kernel.Pad(n))
	return func(row []float64, i int) {
		product(w, q.U.Row(i), q.V)
		q.fill(&r, t, w, i)
		copy(row, t)
	}
}

// Map returns T_i, from the scale of (UV)_i to that of feature i, 0 <= i < d; another i
// is a [*ShapeError].
func (q *QMF) Map(i int) (*Map, error) {
	if err := q.unchanged(nil); err != nil {
		return nil, err
	}
	if d := q.potentials.Rows; uint(i) >= uint(d) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(d-1)}
	}
	if err := q.seals[2].check(field{"Quantiles", q.Quantiles}, i, i+1); err != nil {
		return nil, err
	}
	if err := q.seals[4].check(q.slopes(), i, i+1); err != nil {
		return nil, err
	}
	return q.mapOf(i), nil
}

// mapOf returns T_i.
func (q *QMF) mapOf(i int) *Map {
	f := place.NewCurve(q.solved(i), q.Quantiles.Row(i), nil, q.epsilon)
	f.Line = q.Slopes[i]
	return &Map{f}
}

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (q *QMF) MarshalBinary() ([]byte, error) {
	return fileOf(q)
}

func (q *QMF) encode() []byte { return section.Encode(section.QMF, q.sections()) }

func (q *QMF) sections() []section.Section {
	maps := qmf.QMF{Quantiles: fit.Dense(q.Quantiles), Weights: fit.Dense(q.Weights), Slopes: q.Slopes,
		Start: qmf.Start(q.Start), Lambda: q.Shrinkage, Line: q.Line, Potentials: fit.Dense(q.potentials),
		Center: q.center, Squash: q.squash, Marginal: q.marginal}
	return append(q.Factorisation.sections(q.Quantiles.Cols, q.epsilon), maps.Sections()...)
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, section.QMF)
	if err != nil {
		return err
	}
	n, err := f.readQMF(math.SmallestNonzeroFloat64)
	if err != nil {
		return err
	}
	*q = *n
	sealFields(q)
	return nil
}

// readQMF reads the sections of a QMF, whose factors are not below low.
func (f *file) readQMF(low float64) (*QMF, error) {
	of := Factorisation{}
	if err := f.common(&of, low); err != nil {
		return nil, err
	}
	maps, err := qmf.Decode(f.File, f.d, f.m, f.loss == divergence.Frobenius)
	if err != nil {
		return nil, formatError(err)
	}
	return newQMF(of, maps, f.epsilon), nil
}

// Bend returns, for each of the d features, how far T_i is from a straight line over the samples: 1-R² of the
// best straight line through the fitted values as a function of (UV)_i, in [0,1]. Samples whose (UV)_i is far
// from that of at least 49 in 50 others do not count: they would make a curve of any line that they do not
// lie on. 0: the scale of the feature was kept up to a shift and a factor, or the fitted row is constant.
// Near 1: no straight line comes close. Cost: that of Reconstruct.
func (q *QMF) Bend() []float64 {
	return bendsOf(q)
}

// bendsOf is the Bend of a model.
func bendsOf(m fitted) []float64 {
	fill, err := m.filler(context.Background())
	if err != nil {
		return nil
	}
	return bends(fill, m.common().U, m.common().V)
}

// bends returns 1-R² of the best straight line through each row of a fitted matrix as a function of
// the same row of UV.
func bends(fill filler, u, v Mat) []float64 {
	out := make([]float64, u.Rows)
	w, t := make([]float64, v.Cols), make([]float64, v.Cols)
	for i := range out {
		fill(t, i)
		product(w, u.Row(i), v)
		out[i] = order.Bend(w, t)
	}
	return out
}

// MarginalErrors returns, for each feature, the relative column error of its
// transport when the fit ended.
func (q *QMF) MarginalErrors() []float64 { return append([]float64(nil), q.marginal...) }

func (q *QMF) fields() (used, told []field) {
	return []field{{"U", q.U}, {"V", q.V}, {"Quantiles", q.Quantiles}, {"Weights", q.Weights},
			q.slopes()},
		append(q.told(), listed("Start", float64(q.Start)), listed("Shrinkage", q.Shrinkage),
			listed("Line", q.Line))
}

// slopes is the field Slopes, a row each.
func (q *QMF) slopes() field {
	return field{"Slopes", Mat{Rows: len(q.Slopes), Cols: 1, Stride: 1, Data: q.Slopes}}
}

func (q *QMF) readable() ([]byte, error) {
	file := q.encode()
	return file, new(QMF).UnmarshalBinary(file)
}
