package quantmf

// This file holds the factorisation with quantiles on both sides (paper §3.5,
// Eq. (QMFQ)),
//
//	min over F, R, F', R' of  Σ_i Δ(X_i, T_i(Π_k(T'(X))_i)):
//
// every row is deflated by an increasing map T'_i, the matrix of the deflated
// rows is projected onto rank k, and every row is inflated again by T_i. The
// factors are no parameters but the projection of T'(X). internal/qmf has the fit.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// QMFQ is a fitted X ≈ T(Π_k(T'(X))). It is not changed by its methods and may be
// used by several goroutines at once.
type QMFQ struct {
	Factorisation // Π_k(T'(X)) = UV

	deflate    []*Map
	inflated   QMF    // T as a QMF of U and V
	from       [2]Mat // U and V where every projection started, for a fit that goes on
	projection projection.Choice
}

const (
	projectOften = 5   // updates of the default projection
	projectPaper = 100 // updates of the default projection under StartUniform
)

func qmfqDefaults() config {
	c := qmfDefaults()
	c.LearningRate, c.Epochs = 0.1, 100
	return c
}

// settleQMFQ sets the batch, and the default projection, which depends on the start.
func (c *config) settleQMFQ() {
	c.BatchRows = math.MaxInt32              // all rows are one step
	if c.Projection.Kind == projection.SVD { // UV may be negative
		c.Line = 0
	}
	if !c.given.Has(option.Projection) {
		c.Projection = projection.Choice{Kind: projection.KL, Updates: projectOften}
		if c.Start == qmf.StartUniform {
			c.Projection.Updates = projectPaper
		}
	}
}

// FitQMFQ fits x, d features × n samples, by T(Π_k(T'(X))) of rank k >= 1, two increasing
// maps a feature. The values of x, and their units, are those of [FitQMF]; under
// [SquashNone] T' transports x as it is, and x must be at most 1e12 in magnitude.
//
// A fit starts from a QMF of 20 epochs (100 where Adam steps its factors), whose own start and shrinkage the
// data choose as in [FitQMF]: T has the maps of this QMF, its line and its shrinkage, at most 20; every
// projection starts from its factors; and T' brings X to its UV. Under [StartUniform] the start is the
// paper's: factors exp of uniform numbers on [-1/2,1/2], equal quantile steps, and 100 updates a projection.
//
// Defaults: KL, ε 0.02, 8 levels, [SquashLogisticUnit], 100 epochs, Adam at 0.1 falling
// to 0 by cosine, free ends, [KLUpdates](5). All rows are one step. These defaults predicted unseen cells
// best (docs/measurements/qmfq.md); to fit the observed cells more closely, take no shrinkage.
//
// Hidden cells, missing or held out, take no part in the measures that T and T' transport
// nor in the projection. Under WithValidation the fit starts from the QMF at its best
// epoch on the held-out cells, since real data overfit within tens of epochs.
// [WithCheckpoint] saves from the first epoch of the fit itself on: a fit interrupted
// during its start begins anew.
//
// Errors are those of [FitQMF]; a [TruncatedSVD] with equal singular values k and k+1 is
// a [*DataError], with the model so far.
//
// Cost of an epoch: the projection, 28dnk flops an update forward and back, 42dnk where
// cells are hidden, and 2d transports with their backward. Memory: see [MemoryOf].
func FitQMFQ(ctx context.Context, x Rows, rank int, opts ...FitOption) (*QMFQ, error) {
	c := qmfqDefaults()
	t, err := open(ctx, section.QMFQ, option.FitQMFQ, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.checkQMF(t.Cells.D, t.Cells.N); err != nil {
		return nil, err
	}
	if c.Squash == transport.None {
		if err := checkPoints(t.Cells); err != nil {
			return nil, public(err)
		}
	}
	if c.Line > 0 && c.Projection.Kind == projection.SVD {
		return nil, &OptionError{Option: option.Line.String(), Value: ftoa(c.Line),
			Bound: "must be 0 with TruncatedSVD, whose UV may be negative"}
	}
	c.settleQMFQ()
	m, err := t.drive(ctx, t.Cells.D, new(QMFQ), func(run fit.Run) fit.Algorithm {
		return qmf.FitQMFQ(t.Cells, rank, &c.Settings, run)
	})
	q, _ := m.(*QMFQ)
	return q, err
}

func (*QMFQ) fitted(made any, s *qmf.Settings) fitted {
	of := made.(*qmf.QMFQ)
	q := &QMFQ{inflated: *new(QMF).fitted(of.Inflated, s).(*QMF), projection: s.Projection,
		from: [2]Mat{Mat(of.FromU), Mat(of.FromV)}}
	q.inflated.Warnings = notAllConverged(q.inflated.Warnings, of.Ends, s.Tolerance)
	q.Factorisation = q.inflated.Factorisation
	for i, at := range of.Solved {
		q.deflate = append(q.deflate, &Map{place.NewCurve(at, of.Quantiles.Row(i), nil, s.Epsilon)})
	}
	return q
}

// objective is the loss by which the best of several fits is chosen.
func (q *QMFQ) objective(*qmf.Settings) float64 { return q.judged() }

// checkPoints reports values that T' cannot transport as they are.
func checkPoints(x *fit.Cells) error {
	if err := x.CheckMagnitude(limit.Point, "x must be at most "+ftoa(limit.Point)+
		" in magnitude under SquashNone, which transports it as it is"); err != nil {
		return err
	}
	if x.Units.All != 0 {
		return &fit.DataError{Row: -1, Col: -1, Value: math.Ldexp(1, x.Units.All),
			Problem: "x is too small to be transported as it is by SquashNone"}
	}
	return nil
}

// toUserUnits brings a model of x' to the units of x.
func (q *QMFQ) toUserUnits(u *fit.Units) {
	q.inflated.toUserUnits(u)
	if u.Plain() {
		return
	}
	for i, m := range q.deflate {
		s, e := &m.of.Squash, u.All
		s.Ref, s.Shift, s.Std = math.Ldexp(s.Ref, e)+u.Offset(i), math.Ldexp(s.Shift, e), math.Ldexp(s.Std, e)
		for j := range m.of.Cut {
			if s.Kind == transport.None {
				m.of.Cut[j] += u.Offset(i)
			}
		}
	}
}

// Inflate returns T_i, from the scale of (UV)_i to that of feature i, 0 <= i < d; another
// i is a [*ShapeError].
func (q *QMFQ) Inflate(i int) (*Map, error) {
	if uint(i) >= uint(len(q.deflate)) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(len(q.deflate)-1)}
	}
	return q.inflated.mapOf(i), nil
}

// Deflate returns T'_i, from the scale of feature i to that of (UV)_i, 0 <= i < d;
// another i is a [*ShapeError].
func (q *QMFQ) Deflate(i int) (*Map, error) {
	if uint(i) >= uint(len(q.deflate)) {
		return nil, &ShapeError{What: "feature", Got: itoa(i), Want: "0 to " + itoa(len(q.deflate)-1)}
	}
	return q.deflate[i], nil
}

// Normalize returns T'(x), d × n', for new samples x, d × n', finite; a NaN cell is missing and stays NaN.
// Errors: [*ShapeError],
// [*DataError]. Cost: d n' maps.
func (q *QMFQ) Normalize(x Mat) (Mat, error) {
	if err := x.check("x"); err != nil {
		return Mat{}, err
	}
	if x.Rows != len(q.deflate) {
		return Mat{}, &ShapeError{What: "x", Got: x.size(), Want: itoa(len(q.deflate)) + " rows"}
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v-v != 0 && v == v {
				return Mat{}, &DataError{Row: i, Col: j, Value: v, Problem: "x must be finite"}
			}
		}
	}
	y := NewMat(x.Rows, x.Cols)
	for i, t := range q.deflate {
		for j, v := range x.Row(i) {
			y.Set(i, j, t.At(v))
		}
	}
	return y, nil
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n' matrix V'
// at which the divergence of x from T(U V') is least. It searches as [QMF.Transform]
// does, from one more start: the projection of T'(x) on U. Values, missing cells and
// errors are those of QMF.Transform.
//
// The projection by itself is not returned, because the coordinates of the fit are no
// such projections: a fit makes a number of updates of both factors, which stop short of
// the least divergence. At V' training columns have a loss a few hundredths below that of
// the fit (docs/measurements/qmfq.md).
//
// Under [TruncatedSVD] the two projections are the same, and V' is the least-squares
// projection of T'(x) on U, which needs every cell.
//
// Cost: that of [QMF.Transform], d n' maps of m exponentials and 2m divisions, and that of
// [NMF.Transform].
func (q *QMFQ) Transform(ctx context.Context, x Rows) (Mat, error) {
	t := q.inflated
	t.workers = q.workers
	if err := usable(q); err != nil {
		return Mat{}, err
	}
	rules := q.bounds()
	rules.Missing = q.projection.Kind != projection.SVD // which projects whole columns
	x, err := rules.checkColumns(x, q.U.Rows)
	if err != nil {
		if bad, is := err.(*DataError); is && bad.Row >= 0 && bad.Value != bad.Value {
			bad.Problem = "x must be finite: TruncatedSVD needs every cell"
		}
		return Mat{}, err
	}
	if q.projection.Kind == projection.SVD {
		return q.leastSquares(ctx, x)
	}
	deflated := func(block Mat, _ int) func([]float64, int) {
		return func(to []float64, j int) {
			for i, f := range q.deflate {
				to[i] = f.At(block.At(i, j))
			}
		}
	}
	loss := divergence.KL
	if q.projection.Kind == projection.Frobenius {
		loss = divergence.Frobenius
	}
	own, err := placed(ctx, x, nil, &q.Factorisation, place.NewLinear(loss, q.U.Rows, q.U.Cols, q.U.Row),
		deflated)
	if err != nil {
		return Mat{}, err
	}
	base, u, err := t.placer(ctx, x)
	if err != nil {
		return Mat{}, err
	}
	return placed(ctx, x, u, &q.Factorisation, base, func(block Mat, from int) func([]float64, int) {
		base.Own = func(to []float64, j int) { own.column(to, from+j) }
		return block.column
	})
}

// Score returns the mean divergence of the observed cells of x, d × n', from
// T(U V') where V' is Transform(x). For the columns of the training matrix it is
// at most what Loss is, as in [QMF.Score]. Cost and errors are those of Transform.
func (q *QMFQ) Score(ctx context.Context, x Rows) (float64, error) { return scoreOf(ctx, q, x) }

// Scores is that of [Model]. Cost: that of Score.
func (q *QMFQ) Scores(ctx context.Context, x Rows) ([]float64, error) { return scoresOf(ctx, q, x) }

// Predict is that of [Model]: T(U V'). Cost: that of Transform, and dn' maps.
func (q *QMFQ) Predict(ctx context.Context, x Rows) (Mat, error) { return predictionOf(ctx, q, x) }

func (q *QMFQ) at(v Mat) Model { return q.inflated.at(v) }

// leastSquares projects deflated columns y on U, whose columns are orthogonal:
// v = diag(UᵀU)⁻¹ Uᵀ y, with 0 for a component whose column of U is 0.
func (q *QMFQ) leastSquares(ctx context.Context, x Rows) (Mat, error) {
	norm := make([]float64, q.U.Cols)
	for i := range q.U.Rows {
		for c, w := range q.U.Row(i) {
			norm[c] += float64(w * w)
		}
	}
	_, n := x.Dims()
	v := NewMat(q.U.Cols, n)
	p := pool.New(q.workers, n)
	defer p.Close()
	err := inBlocks(ctx, x, nil, func(block Mat, from int) error {
		p.Do(block.Cols, func(_, j int) {
			if ctx.Err() != nil {
				return
			}
			for i, f := range q.deflate {
				y := f.At(block.At(i, j))
				for c, w := range q.U.Row(i) {
					v.Data[c*n+from+j] += float64(w * y)
				}
			}
			for c, norm := range norm {
				if norm > 0 {
					v.Data[c*n+from+j] /= norm
				}
			}
		})
		if err := ctx.Err(); err != nil {
			return &interrupted{err}
		}
		return nil
	})
	if err != nil {
		return Mat{}, err
	}
	return v, nil
}

// Reconstruct returns T(UV) = T(Π_k(T'(X))), d × n. Cost: that of [QMF.Reconstruct].
func (q *QMFQ) Reconstruct() Mat {
	fill, err := q.filler(context.Background())
	if err != nil {
		return Mat{}
	}
	return fill.matrix(q.Dims())
}

func (q *QMFQ) filler(context.Context) (filler, error) {
	if err := usable(q); err != nil {
		return nil, err
	}
	return q.inflated.rows(), nil
}

// least is the least number that a factor may have: those of a truncated SVD may be negative.
func (q *QMFQ) least() float64 {
	if q.projection.Kind == projection.SVD {
		return -math.MaxFloat64
	}
	return 0
}

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (q *QMFQ) MarshalBinary() ([]byte, error) {
	return fileOf(q)
}

func (q *QMFQ) encode() []byte {
	var quantiles, cuts, squashes []float64
	for _, m := range q.deflate {
		quantiles = append(quantiles, m.of.Q...)
		cuts = append(cuts, m.of.Cut...)
		at := m.of.Squash
		squashes = append(squashes, float64(at.Kind), at.Ref, at.Shift, at.Std)
	}
	return section.Encode(section.QMFQ, append(q.inflated.sections(),
		section.Floats("DEFQ", quantiles), section.Floats("DEFC", cuts), section.Floats("DEFR", squashes),
		section.Words("PROJ", uint64(q.projection.Kind), uint64(q.projection.Updates)),
		section.Floats("FROM", flat(q.from[0]), flat(q.from[1]))))
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMFQ) UnmarshalBinary(data []byte) error {
	f, err := decode(data, section.QMFQ)
	if err != nil {
		return err
	}
	p, err := f.words("PROJ", 2)
	if err != nil {
		return err
	}
	n := QMFQ{projection: projection.Choice{Kind: projection.Kind(p[0]), Updates: int(p[1] & 0x7fffffff)}}
	switch {
	case p[0] < uint64(projection.KL) || p[0] > uint64(projection.SVD):
		return f.failAt("PROJ", 0, "there is no such projection")
	case n.projection.Kind == projection.SVD && p[1] != 0 || p[1] > 0x7fffffff ||
		Projection{n.projection}.bound() != "":
		return f.failAt("PROJ", 1, "the projection has no such number of updates")
	}
	t, err := f.readQMF(n.least())
	if err != nil {
		return err
	}
	n.inflated = *t
	n.Factorisation = t.Factorisation
	curves, err := qmf.DecodeDeflation(f.File, f.d, f.m, t.mapOf(0).of.Rate)
	if err != nil {
		return formatError(err)
	}
	for _, of := range curves {
		n.deflate = append(n.deflate, &Map{of})
	}
	from, err := f.vectorIn("FROM", int64(f.d+f.n)*int64(f.k), 0, math.MaxFloat64)
	if err != nil {
		return err
	}
	n.from = [2]Mat{{Rows: f.d, Cols: f.k, Stride: f.k, Data: from[:f.d*f.k]},
		{Rows: f.k, Cols: f.n, Stride: f.n, Data: from[f.d*f.k:]}}
	if c, _ := (&Factorisation{U: n.from[0], V: n.from[1]}).overflow(); c >= 0 {
		return f.failAt("FROM", 0, "the product of the factors overflows")
	}
	*q = n
	sealFields(q)
	return nil
}

// Bend returns the bend of every T_i, as [QMF.Bend] defines it. T' does not count; see
// [QMFQ.Deflate] for its curves.
func (q *QMFQ) Bend() []float64 { return bendsOf(q) }

func (q *QMFQ) fields() (used, told []field) {
	return []field{{"U", q.U}, {"V", q.V}}, q.told()
}

func (q *QMFQ) readable() ([]byte, error) {
	file := q.encode()
	return file, new(QMFQ).UnmarshalBinary(file)
}
