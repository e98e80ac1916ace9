package quantmf

// This file holds samples that a fit has not seen: their coordinates, how well a model predicts them, and
// what it predicts of every cell. What was learnt about the features stays, and a new column x of d values is
// projected on it (the idea of the paper's §3.5),
//
//	NMF   min over v >= 0 of  Σ_i Δ(x_i, (Uv)_i),   with the penalties of V, if the fit had them
//	QMF   min over v > 0  of  Σ_i Δ(x_i, T_i((Uv)_i)),   T_i as stored: no transport is solved.
//	BQMF  the posterior of v, all else as fitted.
//
// The searches are internal/place, and internal/bqmf. Columns are independent: the bits of one depend neither
// on those beside it nor on the number of workers.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
)

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' >= 0 at which the divergence of x from U V' is least.
//
// The divergence is the one that was fitted. Where the fit had penalties of V ([WithPenalties]), those of a
// sample are added: N/n (L1V Σ v + L2V/2 Σ v²) to the sum of its divergences, N being the cells that the fit
// saw, so that the samples of the fit get its V. Values of x are bound as in the fit; NaN cells are left out,
// whatever the fit took, and a column needs one that is not. A component of which U is zero has coordinates
// 0, as has a column of zeros. Where U has dependent columns, as for k > d, V' is one of many; under
// divergences that are not convex, β < 1 or β > 2, it is a local minimum. Columns are spread over the workers
// of the model ([WithWorkers]), and the result does not depend on them. Errors: [*ShapeError] for another
// number of rows, [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: under KL about 5 passes a column, most often below 20, of dk² + 5dk flops and d divisions, and some
// k³: .28 of the fit for its own columns at k = 10. One product under Frobenius without missing cells; for
// other β more passes, at most 200 steps, and powers. Memory 2dk + dk(k+1)/2 (no more than 2^18 of these) + k
// n' numbers, and 130d + 100k² a worker at most, for 64 columns at a time.
func (m *NMF) Transform(ctx context.Context, x Rows) (Mat, error) {
	if err := m.usable(); err != nil {
		return Mat{}, err
	}
	x, err := m.bounds().checkColumns(x, m.U.Rows)
	if err != nil {
		return Mat{}, err
	}
	by := place.NewLinear(m.divergence(), m.U.Rows, m.U.Cols, m.U.Row).WithPrior(m.prior)
	return placed(ctx, x, nil, &m.Factorisation, by, ownColumns)
}

// Score returns the mean divergence of the observed cells of x, d × n', from U V'
// where V' is Transform(x). For the columns of the training matrix it is at most
// what Loss is, wherever the divergence is convex. Cost and errors are those of
// Transform, and 2dkn' flops and dn' divergences.
func (m *NMF) Score(ctx context.Context, x Rows) (float64, error) { return scoreOf(ctx, m, x) }

// Scores is that of [Model]. Cost: that of Score.
func (m *NMF) Scores(ctx context.Context, x Rows) ([]float64, error) { return scoresOf(ctx, m, x) }

// Predict is that of [Model]: U V'. Cost: that of Transform, and 2dkn' flops.
func (m *NMF) Predict(ctx context.Context, x Rows) (Mat, error) { return predictionOf(ctx, m, x) }

func (m *NMF) at(v Mat) Model {
	of := *m
	of.V = v
	if m.seals != nil {
		sealFields(&of)
	}
	return &of
}

// Placed returns the model of other samples: with a copy of their coordinates v, k × n' and at least 0, as
// Transform returns them, in the place of V. History and Warnings stay those of the fit. Errors:
// [*ShapeError], [*DataError].
func (m *NMF) Placed(v Mat) (*NMF, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	if err := m.placeable(v, 0); err != nil {
		return nil, err
	}
	return m.at(v.Clone()).(*NMF), nil
}

// placeable reports coordinates that a model of these factors cannot have, where none may be below low.
func (m *Factorisation) placeable(v Mat, low float64) error {
	if err := v.within("v", low, math.MaxFloat64); err != nil {
		return err
	}
	if v.Rows != m.U.Cols {
		return &ShapeError{What: "v", Got: v.size(),
			Want: itoa(m.U.Cols) + " rows, the components of the model"}
	}
	of := Factorisation{U: m.U, V: v}
	if c, j := of.overflow(); c >= 0 {
		return &DataError{Row: c, Col: j, Value: v.At(c, j), Problem: "v is so large that UV may overflow"}
	}
	return nil
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' > 0 at which the divergence of x from T(U V') is least, with every
// T_i as it was fitted.
//
// The divergence is the one that was fitted, without penalty. Values of x are bound as in the fit; NaN cells
// are left out, whatever the fit took, and a column needs one that is not. The minimum is a local one, the
// best of several starts. Coordinates stay within a factor of 1e10 of the range of their component in V.
// Columns are spread over the workers of the model ([WithWorkers]), and the result does not depend on them.
// Errors: [*ShapeError] for another number of rows, [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: about 100 evaluations a column, at most 299, each of d maps of two exponentials, a logarithm and 8m
// flops (under KL with a logistic squash and ε above some .005, as by default; else more passes, down to m
// exponentials), and dk² + 6dk flops: about .4 of the fit, for the columns of a fit of 400 × 221. Before them
// 2 min(dn, 2^18) flops a column find the nearest training columns (128n for n > 4096), and, once a call, as
// many maps have their fitted values. Memory 12dm + dk + dk(k+1)/2 (no more than 2^18 of these) + k n'
// numbers and two for each of those cells, and 130d + mn + 10n + 300k² a worker at most, for 64 columns at a
// time.
func (q *QMF) Transform(ctx context.Context, x Rows) (Mat, error) {
	if err := usable(q); err != nil {
		return Mat{}, err
	}
	x, err := q.bounds().checkColumns(x, q.U.Rows)
	if err != nil {
		return Mat{}, err
	}
	b, u, err := q.placer(ctx, x)
	if err != nil {
		return Mat{}, err
	}
	return placed(ctx, x, u, &q.Factorisation, b, ownColumns)
}

// Score returns the mean divergence of the observed cells of x, d × n', from T(U V')
// where V' is Transform(x). For columns of a training matrix of up to 2^18 cells it is at
// most Loss, because a training column is found among the starts of its own search. In a
// larger matrix the nearest training columns are sought on a part of the features, and a
// column may miss itself; with a twentieth of the cells the score was still below the
// loss. Cost and errors are those of Transform, and dn' maps and divergences.
func (q *QMF) Score(ctx context.Context, x Rows) (float64, error) { return scoreOf(ctx, q, x) }

// Scores is that of [Model]. Cost: that of Score.
func (q *QMF) Scores(ctx context.Context, x Rows) ([]float64, error) { return scoresOf(ctx, q, x) }

// Predict is that of [Model]: T(U V'). Cost: that of Transform, and dn' maps.
func (q *QMF) Predict(ctx context.Context, x Rows) (Mat, error) { return predictionOf(ctx, q, x) }

// Placed returns the model of other samples: with a copy of their coordinates v, k × n' and above 0, as
// Transform returns them, in the place of V. History and Warnings stay those of the fit. Errors:
// [*ShapeError], [*DataError].
func (q *QMF) Placed(v Mat) (*QMF, error) {
	if err := usable(q); err != nil {
		return nil, err
	}
	if err := q.placeable(v, math.SmallestNonzeroFloat64); err != nil {
		return nil, err
	}
	return q.at(v.Clone()).(*QMF), nil
}

func (q *QMF) at(v Mat) Model {
	of := *q
	of.V = v
	sealFields(&of)
	return &of
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n' means
// of the posterior of V' with all else as it was fitted, values beyond those of a
// row's fit counting as the nearest. NaN cells are left out, whatever the fit took,
// and a column needs one that is not. Columns are spread over the workers of the model.
// Errors: [*ShapeError], [*DataError]; when ctx ends, one that wraps its error.
//
// Cost of a column: dk flops, k² for each missing cell and 6k³.
func (m *BQMF) Transform(ctx context.Context, x Rows) (Mat, error) {
	return m.newSamples(ctx, x, nothing, nil)
}

// Score returns the mean divergence of the observed cells of x, d × n', from what the model says of them
// after Transform, as Reconstruct says it of the samples of the fit. Errors are those of Transform. To the
// cost of Transform, k² flops a cell and 4096 k a column are added.
func (m *BQMF) Score(ctx context.Context, x Rows) (float64, error) {
	_, mean, err := m.scores(ctx, x)
	return mean, err
}

// Scores is that of [Model]. Cost: that of Score.
func (m *BQMF) Scores(ctx context.Context, x Rows) ([]float64, error) {
	each, _, err := m.scores(ctx, x)
	return each, err
}

func (m *BQMF) scores(ctx context.Context, x Rows) (each []float64, mean float64, err error) {
	var s sampleLosses
	loss := m.divergence()
	_, err = m.newSamples(ctx, x, expected, func(n int) func(*bqmf.Sample, []float64, int) {
		s = newSampleLosses(n)
		return func(of *bqmf.Sample, x []float64, j int) {
			of.Cells(func(t *bqmf.Table, i int, mean, dev float64) {
				if x[i] == x[i] {
					s.add(j, loss.Divergence(x[i], t.Conditional(mean, dev)))
				}
			})
		}
	})
	if err != nil {
		return nil, 0, err
	}
	each, mean = s.means()
	return each, mean, nil
}

// Predict is that of [Model]: the conditional mean of every cell, as Reconstruct has it of the samples of the
// fit. Cost: that of Score.
func (m *BQMF) Predict(ctx context.Context, x Rows) (Mat, error) {
	var out Mat
	_, err := m.newSamples(ctx, x, expected, func(n int) func(*bqmf.Sample, []float64, int) {
		out = NewMat(len(m.model.Curves), n)
		return func(of *bqmf.Sample, _ []float64, j int) {
			of.Cells(func(t *bqmf.Table, i int, mean, dev float64) {
				out.Set(i, j, t.Conditional(mean, dev))
			})
		}
	})
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// PredictInterval returns, for every cell of new samples x, d × n', missing ones included, the central
// interval that holds its value with probability p, 0 < p < 1, as Interval has it of the samples of the fit:
// two d × n' matrices. Errors: those of Transform, and an [*OptionError] for another p. Cost: that of Score.
func (m *BQMF) PredictInterval(ctx context.Context, x Rows, p float64) (lo, hi Mat, err error) {
	z, err := tailOf(p)
	if err != nil {
		return Mat{}, Mat{}, err
	}
	_, err = m.newSamples(ctx, x, quantiles, func(n int) func(*bqmf.Sample, []float64, int) {
		lo, hi = NewMat(len(m.model.Curves), n), NewMat(len(m.model.Curves), n)
		return func(of *bqmf.Sample, _ []float64, j int) {
			of.Cells(func(t *bqmf.Table, i int, mean, dev float64) {
				lo.Set(i, j, t.Quantile(mean, dev, -z))
				hi.Set(i, j, t.Quantile(mean, dev, z))
			})
		}
	})
	if err != nil {
		return Mat{}, Mat{}, err
	}
	return lo, hi, nil
}

// asked says what is asked of the cells of new samples: nothing, their means or their quantiles.
type asked uint8

const (
	nothing asked = iota
	expected
	quantiles
)

// newSamples returns the coordinates of new samples, k × n'. Where something is asked of their cells it calls
// begin, once x has been checked, with n', and what begin returns with every sample x: the j-th.
func (m *BQMF) newSamples(ctx context.Context, x Rows, ask asked,
	begin func(n int) func(of *bqmf.Sample, x []float64, j int)) (Mat, error) {
	if err := usable(m); err != nil {
		return Mat{}, err
	}
	x, err := m.bounds().checkColumns(x, len(m.model.Curves))
	if err != nil {
		return Mat{}, err
	}
	d, n := x.Dims()
	v := NewMat(m.model.K, n)
	var use func(of *bqmf.Sample, x []float64, j int)
	if ask != nothing {
		use = begin(n)
	}
	p := pool.New(m.workers, n)
	defer p.Close()
	p.Bind(ctx)
	type room struct {
		*bqmf.Sample
		x []float64
	}
	base, work := m.model.Sample(ask != nothing, ask == quantiles), make([]*room, p.Workers())
	err = inBlocks(ctx, x, nil, func(block Mat, from int) error {
		p.Do(block.Cols, func(w, j int) {
			if work[w] == nil {
				work[w] = &room{base.Share(), make([]float64, d)}
			}
			s := work[w]
			block.column(s.x, j)
			for h, t := range s.Place(s.x) {
				v.Set(h, from+j, t)
			}
			if use != nil {
				use(s.Sample, s.x, from+j)
			}
		})
		if err := p.Err(); err != nil {
			return &interrupted{err}
		}
		return nil
	})
	if err != nil {
		return Mat{}, err
	}
	return v, nil
}

// scoreOf is the Score of a model: the loss of the model at the coordinates of the samples.
func scoreOf(ctx context.Context, m movable, x Rows) (float64, error) {
	v, err := m.Transform(ctx, x)
	if err != nil {
		return 0, err
	}
	score, err := meanLoss(ctx, m.at(v), x)
	if end := ctx.Err(); end != nil {
		return 0, &interrupted{end}
	}
	return score, err
}

// scoresOf is the Scores of a model.
func scoresOf(ctx context.Context, m movable, x Rows) ([]float64, error) {
	v, err := m.Transform(ctx, x)
	if err != nil {
		return nil, err
	}
	fill, err := m.at(v).filler(ctx)
	if err != nil {
		return nil, err
	}
	d, n := x.Dims()
	loss, from, t := m.bounds().Loss, newRowReader(x), make([]float64, n)
	s := newSampleLosses(n)
	for i := range d {
		if err := ctx.Err(); err != nil {
			return nil, &interrupted{err}
		}
		row, err := from.row(i)
		if err != nil {
			return nil, err
		}
		fill(t, i)
		for j, v := range row {
			if v == v {
				s.add(j, loss.Divergence(v, t[j]))
			}
		}
	}
	scores, _ := s.means()
	return scores, nil
}

// predictionOf is the Predict of a model.
func predictionOf(ctx context.Context, m movable, x Rows) (Mat, error) {
	v, err := m.Transform(ctx, x)
	if err != nil {
		return Mat{}, err
	}
	fill, err := m.at(v).filler(ctx)
	if err != nil {
		return Mat{}, err
	}
	d, n := x.Dims()
	out := NewMat(d, n)
	for i := range d {
		if err := ctx.Err(); err != nil {
			return Mat{}, &interrupted{err}
		}
		fill(out.Row(i), i)
	}
	return out, nil
}

// sampleLosses are the divergences of new samples.
type sampleLosses struct{ sum, cells []float64 }

func newSampleLosses(n int) sampleLosses { return sampleLosses{make([]float64, n), make([]float64, n)} }

// add adds the divergence of an observed cell of sample j.
func (s *sampleLosses) add(j int, divergence float64) {
	s.sum[j] += divergence
	s.cells[j]++
}

// means returns the mean of each sample, and that of all cells. Every sample has a cell.
func (s *sampleLosses) means() (each []float64, all float64) {
	total, cells := 0.0, 0.0
	for j, sum := range s.sum {
		total += sum
		cells += s.cells[j]
		s.sum[j] = min(sum/s.cells[j], math.MaxFloat64)
	}
	return s.sum, min(total/cells, math.MaxFloat64)
}

// placer returns what the columns of new samples are located by, and the units that bring the samples
// to x'.
func (q *QMF) placer(ctx context.Context, x Rows) (*place.Mapped, *fit.Units, error) {
	d, m := q.U.Rows, q.Quantiles.Cols
	top, from := 0.0, newRowReader(x)
	for i := range d {
		row, err := from.row(i)
		if err != nil {
			return nil, nil, err
		}
		top = max(top, math.Abs(q.Quantiles.At(i, 0)), math.Abs(q.Quantiles.At(i, m-1)))
		for _, v := range row {
			if v == v {
				top = max(top, math.Abs(v))
			}
		}
	}
	u := fit.UnitsOf(top)
	if !u.Plain() {
		in := *q
		in.Quantiles, in.Slopes = Mat(fit.Dense(q.Quantiles).In(&u)), make([]float64, d)
		for i, s := range q.Slopes {
			in.Slopes[i] = math.Ldexp(s, -u.All)
		}
		q = &in
	}
	of := place.Problem{Loss: q.divergence(), Workers: q.workers, Floor: qmf.FloorT}
	for i := range d {
		of.U, of.Maps = append(of.U, q.U.Row(i)), append(of.Maps, q.mapOf(i).of.Sheet())
	}
	for c := range q.V.Rows {
		of.V = append(of.V, q.V.Row(c))
	}
	b, err := place.NewMapped(ctx, of)
	if err != nil {
		return nil, nil, &interrupted{err}
	}
	return b, &u, nil
}

// placed returns the coordinates of the columns of x, k × n', found by the method by, block of columns by
// block. of(block, from) returns the function that fills to with column j of a block as by takes it, from
// being the block's first column in x. u are the units that blocks are brought to, nil for those of x.
func placed(ctx context.Context, x Rows, u *fit.Units, m *Factorisation, by place.Method,
	of func(block Mat, from int) func(to []float64, j int)) (Mat, error) {
	d, n := x.Dims()
	var v Mat
	k := m.U.Cols
	err := inBlocks(ctx, x, u, func(block Mat, from int) error {
		sizes := place.Sizes{D: d, N: block.Cols, K: k, Workers: m.workers}
		some, err := place.Columns(ctx, by, sizes, of(block, from))
		if err != nil {
			return &interrupted{err}
		}
		if block.Cols == n {
			v = Mat{Rows: k, Cols: n, Data: some, Stride: n}
			return nil
		}
		if from == 0 {
			v = NewMat(k, n)
		}
		for c := range k {
			copy(v.Row(c)[from:], some[c*block.Cols:(c+1)*block.Cols])
		}
		return nil
	})
	if err != nil {
		return Mat{}, err
	}
	return v, nil
}

// blockNumbers is about how many numbers of a matrix that is no Mat are held at once where its columns
// are wanted, and blockColumns how many columns at least: for each block all rows are read.
var blockNumbers, blockColumns = 1 << 24, 64 // a test has fewer

// inBlocks calls do for blocks of columns of x, of x' where u are its units: all at once where x is a
// Mat. The block that begins with column from is not to be written to.
func inBlocks(ctx context.Context, x Rows, u *fit.Units, do func(block Mat, from int) error) error {
	if u != nil && u.Plain() {
		u = nil
	}
	if m, ok := x.(Mat); ok {
		if u != nil {
			m = Mat(fit.Dense(m).In(u))
		}
		return do(m, 0)
	}
	d, n := x.Dims()
	width := min(max(blockNumbers/d, blockColumns), n)
	block, row := NewMat(d, width), make([]float64, n)
	for from := 0; from < n; from += width {
		block.Cols = min(width, n-from)
		for i := range d {
			if err := ctx.Err(); err != nil {
				return &interrupted{err}
			}
			if err := x.ReadRow(row, i); err != nil {
				return unread(i, err)
			}
			if u != nil {
				u.Bring(row, i)
			}
			copy(block.Row(i), row[from:])
		}
		if err := do(block, from); err != nil {
			return err
		}
	}
	return nil
}

// ownColumns gives columns as they are.
func ownColumns(block Mat, _ int) func(to []float64, j int) { return block.column }

// column fills to with column j.
func (m Mat) column(to []float64, j int) {
	for i := range to {
		to[i] = m.Data[j]
		j += m.Stride
	}
}

// checkColumns reports what is wrong with new samples, and returns them as rows that are checked again when
// they are read again.
func (c *config) checkColumns(x Rows, d int) (Rows, error) {
	if err := checkRows(x); err != nil {
		return nil, err
	}
	if rows, _ := x.Dims(); rows != d {
		return nil, &ShapeError{What: "x", Got: itoa(rows) + " rows",
			Want: itoa(d) + ", the features of the model"}
	}
	checked, err := c.Rules().CheckSamples(sourceOf(x))
	if _, inMemory := x.(Mat); inMemory {
		checked = x
	}
	return checked, public(err)
}
