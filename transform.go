package quantmf

// This file holds the coordinates of samples that a fit has not seen: what was
// learnt about the features stays, and a new column x of d values is projected on
// it (the idea of the paper's §3.5),
//
//	NMF   min over v >= 0 of  Σ_i Δ(x_i, (Uv)_i)
//	QMF   min over v > 0  of  Σ_i Δ(x_i, T_i((Uv)_i)),   T_i as stored: no transport is solved.
//
// The searches are internal/place. Columns are independent: the bits of one depend neither
// on those beside it nor on the number of workers.

import (
	"context"
	"github.com/quantmf/quantmf/internal/fit"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/place"
)

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' >= 0 at which the divergence of x from U V' is least.
//
// The divergence is the one that was fitted, without penalty. Values of x are
// bound as in the fit; NaN cells are left out, whatever the fit took, and a
// column needs one that is not. A component of which U is zero has coordinates 0,
// as has a column of zeros. Where U has dependent columns, as for k > d, V' is
// one of many; under divergences that are not convex, β < 1 or β > 2, it is a
// local minimum. There are no options; columns are spread over GOMAXPROCS
// workers, and the result does not depend on them. Errors: [*ShapeError] for
// another number of rows, [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: under KL about 5 passes a column, most often below 20, of dk² + 5dk flops and d divisions, and some
// k³: .28 of the fit for its own columns at k = 10. One product under Frobenius without missing cells; for
// other β more passes, at most 200 steps, and powers. Memory 2dk + dk(k+1)/2 (no more than 2^18 of these) + k
// n' numbers, and 130d + 100k² a worker at most, for 64 columns at a time.
func (m *NMF) Transform(ctx context.Context, x Rows) (Mat, error) {
	if err := m.usable(); err != nil {
		return Mat{}, err
	}
	if _, err := m.bounds().checkColumns(x, m.U.Rows); err != nil {
		return Mat{}, err
	}
	by := place.NewLinear(m.divergence(), m.U.Rows, m.U.Cols, m.U.Row)
	return placed(ctx, x, nil, m.U.Cols, by, ownColumns)
}

// Score returns the mean divergence of the observed cells of x, d × n', from U V'
// where V' is Transform(x). For the columns of the training matrix it is at most
// what Loss is, wherever the divergence is convex. Cost and errors are those of
// Transform, and 2dkn' flops and dn' numbers.
func (m *NMF) Score(ctx context.Context, x Rows) (float64, error) { return scoreOf(ctx, m, x) }

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
// The divergence is the one that was fitted, without penalty. Values of x are
// bound as in the fit; NaN cells are left out, whatever the fit took, and a
// column needs one that is not. The minimum is a local one, the best of several starts. Coordinates
// stay within a factor of 1e10 of the range of their component in V. There are no
// options; columns are spread over GOMAXPROCS workers, and the result does not
// depend on them. Errors: [*ShapeError] for another number of rows,
// [*DataError]; when ctx ends, one that wraps its error.
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
	if _, err := q.bounds().checkColumns(x, q.U.Rows); err != nil {
		return Mat{}, err
	}
	b, u, err := q.placer(ctx, x)
	if err != nil {
		return Mat{}, err
	}
	return placed(ctx, x, u, q.U.Cols, b, ownColumns)
}

// Score returns the mean divergence of the observed cells of x, d × n', from T(U V')
// where V' is Transform(x). For columns of a training matrix of up to 2^18 cells it is at
// most Loss, because a training column is found among the starts of its own search. In a
// larger matrix the nearest training columns are sought on a part of the features, and a
// column may miss itself; with a twentieth of the cells the score was still below the
// loss. Cost and errors are those of Transform, and dn' maps and dn' numbers.
func (q *QMF) Score(ctx context.Context, x Rows) (float64, error) { return scoreOf(ctx, q, x) }

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

// scoreOf is the Score of a model that can be moved to other samples.
func scoreOf(ctx context.Context, m interface {
	Model
	at(v Mat) Model
}, x Rows) (float64, error) {
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
	of := place.Problem{Loss: q.divergence(), Floor: monotone.FloorT}
	for i := range d {
		of.U, of.Maps = append(of.U, q.U.Row(i)), append(of.Maps, q.mapOf(i).sheet())
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
func placed(ctx context.Context, x Rows, u *fit.Units, k int, by place.Method,
	of func(block Mat, from int) func(to []float64, j int)) (Mat, error) {
	d, n := x.Dims()
	var v Mat
	err := inBlocks(ctx, x, u, func(block Mat, from int) error {
		some, err := place.Columns(ctx, by, d, block.Cols, k, of(block, from))
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

// checkColumns reports what is wrong with new samples, and counts the observed
// cells.
func (c *config) checkColumns(x Rows, d int) (visible int, err error) {
	if err := checkRows(x); err != nil {
		return 0, err
	}
	rows, n := x.Dims()
	if rows != d {
		return 0, &ShapeError{What: "x", Got: itoa(rows) + " rows",
			Want: itoa(d) + ", the features of the model"}
	}
	seen, from, rules := make([]bool, n), newRowReader(x), c.rules()
	whole := false // a row has no missing cell
	for i := range d {
		row, err := from.row(i)
		if err != nil {
			return 0, err
		}
		if rules.Takes(row) {
			whole = true
			visible += n
			continue
		}
		for j, v := range row {
			if err := c.checkCell(i, j, v); err != nil {
				return 0, err
			}
			if v == v {
				seen[j] = true
				visible++
			}
		}
	}
	if j := slices.Index(seen, false); j >= 0 && !whole {
		return 0, &DataError{Row: -1, Col: j, Value: math.NaN(), Problem: "the column has no observed cell"}
	}
	return visible, nil
}

// interrupted wraps what ended the search for the coordinates of new samples.
type interrupted struct{ err error }

func (e *interrupted) Error() string { return "quantmf: new samples: " + e.err.Error() }
func (e *interrupted) Unwrap() error { return e.err }
