package quantmf

// This file holds the coordinates of samples that a fit has not seen: what was
// learnt about the features stays, and a new column x of d values is projected on
// it (the idea of the paper's §3.3),
//
//	NMF   min over v >= 0 of  Σ_i Δ(x_i, (Uv)_i)
//	QMF   min over v > 0  of  Σ_i Δ(x_i, T_i((Uv)_i)),   T_i as stored: no transport is solved.
//
// The searches are internal/place. Columns are independent: the bits of one depend neither
// on those beside it nor on the number of workers.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/place"
)

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' >= 0 at which the divergence of x from U V' is least.
//
// The divergence is the one that was fitted, without penalty. Values of x are
// bound as in the fit; after [WithMissingValues] NaN cells are left out, and a
// column needs one that is not. A component of which U is zero has coordinates 0,
// as has a column of zeros. Where U has dependent columns, as for k > d, V' is
// one of many; under divergences that are not convex, β < 1 or β > 2, it is a
// local minimum. There are no options; columns are spread over GOMAXPROCS
// workers, and the result does not depend on them. Errors: [*ShapeError] for
// another number of rows, [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: under KL about 6 passes a column, most often below 20, of dk² + 5dk flops and d
// divisions, and some k³: .4 of the fit for its own columns at k = 10, .6 at 20. One product under Frobenius
// without missing cells; for other β more passes, at most 200 steps, and powers. Memory
// 2dk + k n' numbers, and 256d + 300k² a worker at most, for 64 columns at a time.
func (m *NMF) Transform(ctx context.Context, x Mat) (Mat, error) {
	return m.coordinates(ctx, x)
}

// Score returns the mean divergence of the observed cells of x, d × n', from U V'
// where V' is Transform(x). For the columns of the training matrix it is at most
// what Loss is, wherever the divergence is convex. Cost and errors are those of
// Transform, and 2dkn' flops and dn' numbers.
func (m *NMF) Score(ctx context.Context, x Mat) (float64, error) {
	v, err := m.coordinates(ctx, x)
	if err != nil {
		return 0, err
	}
	at := *m
	at.V = v
	return at.Loss(x)
}

func (m *NMF) coordinates(ctx context.Context, x Mat) (Mat, error) {
	if _, err := m.bounds().checkColumns(x, m.U.Rows); err != nil {
		return Mat{}, err
	}
	return placed(ctx, x, m.U.Cols, place.NewLinear(m.loss, m.U.Rows, m.U.Cols, m.U.Row), x.column)
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' > 0 at which the divergence of x from T(U V') is least, with every
// T_i as it was fitted.
//
// The divergence is the one that was fitted, without penalty. Values of x are
// bound as in the fit; after [WithMissingValues] NaN cells are left out, and a
// column needs one that is not. The minimum is a local one, the best of several starts. Coordinates
// stay within a factor of 1e10 of the range of their component in V. There are no
// options; columns are spread over GOMAXPROCS workers, and the result does not
// depend on them. Errors: [*ShapeError] for another number of rows,
// [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: about 100 evaluations a column, at most 299, each of d maps of m
// exponentials and 25m flops, and dk² + 6dk flops: about half of the fit, for the columns of a fit. Before
// them 2 min(dn, 2^18) flops a column find the nearest training columns (128n for n > 4096),
// and, once a call, as many maps have their fitted values. Memory 6dm + dk + k n'
// numbers and two for each of those cells, and 192d + 130n + mn + 300k² a worker at most, for 64
// columns at a time.
func (q *QMF) Transform(ctx context.Context, x Mat) (Mat, error) {
	return q.coordinates(ctx, x)
}

// Score returns the mean divergence of the observed cells of x, d × n', from T(U V')
// where V' is Transform(x). For columns of a training matrix of up to 2^18 cells it is at
// most Loss, because a training column is found among the starts of its own search. In a
// larger matrix the nearest training columns are sought on a part of the features, and a
// column may miss itself; with a twentieth of the cells the score was still below the
// loss. Cost and errors are those of Transform, and dn' maps and dn' numbers.
func (q *QMF) Score(ctx context.Context, x Mat) (float64, error) {
	v, err := q.coordinates(ctx, x)
	if err != nil {
		return 0, err
	}
	return q.scoreAt(ctx, x, v)
}

// scoreAt is the loss of x, samples of their own, at the coordinates v.
func (q *QMF) scoreAt(ctx context.Context, x, v Mat) (float64, error) {
	at := *q
	at.V = v
	fill, err := at.filler(ctx)
	if err != nil {
		return 0, err
	}
	score, err := q.bounds().meanLoss(ctx, x, q.U.Rows, v.Cols, fill)
	if end := ctx.Err(); end != nil {
		return 0, &interrupted{end}
	}
	return score, err
}

func (q *QMF) coordinates(ctx context.Context, x Mat) (Mat, error) {
	if _, err := q.bounds().checkColumns(x, q.U.Rows); err != nil {
		return Mat{}, err
	}
	b, _, x, err := q.placer(ctx, x)
	if err != nil {
		return Mat{}, err
	}
	return placed(ctx, x, q.U.Cols, b, x.column)
}

// placer returns what the columns of new samples are located by, and those samples as x' in units
// of their own and the model's.
func (q *QMF) placer(ctx context.Context, x Mat) (*place.Mapped, *units, Mat, error) {
	d, m := q.U.Rows, q.Quantiles.Cols
	top := make([]float64, d)
	for i := range top {
		top[i] = max(math.Abs(q.Quantiles.At(i, 0)), math.Abs(q.Quantiles.At(i, m-1)))
		for _, v := range x.Row(i) {
			if v == v {
				top[i] = max(top[i], math.Abs(v))
			}
		}
	}
	u := unitsOf(q.loss, top, true)
	if x = u.inward(x); !u.plain() {
		in := *q
		in.Quantiles = u.inward(q.Quantiles)
		q = &in
	}
	maps := make([]place.Sheet, d)
	for i := range maps {
		maps[i] = q.mapOf(i).sheet()
	}
	b, err := place.NewMapped(ctx, place.Problem{Loss: q.loss, D: d, N: q.V.Cols, K: q.U.Cols, RowU: q.U.Row, RowV: q.V.Row,
		Maps: func() func(i int, t, slope, w []float64) {
			r := place.NewSheetRoom(max(place.Widest, q.V.Cols), m)
			return func(i int, t, slope, w []float64) { maps[i].At(t, slope, w, r) }
		},
		Low:      func(i int) float64 { return maps[i].Low() },
		High:     func(i int) float64 { return maps[i].High() },
		Constant: func(i int) bool { return maps[i].Constant() },
		Weight:   u.lossWeight, Floor: floorT,
	}, func(row []float64, i int) { product(row, q.U.Row(i), q.V) })
	if err != nil {
		return nil, nil, Mat{}, &interrupted{err}
	}
	return b, &u, x, nil
}

// placed returns the coordinates of the columns of x, k × n'. column fills to with one of them,
// as by wants it.
func placed(ctx context.Context, x Mat, k int, by place.Method, column func(to []float64, j int)) (Mat, error) {
	v, err := place.Columns(ctx, by, x.Rows, x.Cols, k, column)
	if err != nil {
		return Mat{}, &interrupted{err}
	}
	return Mat{Rows: k, Cols: x.Cols, Data: v, Stride: x.Cols}, nil
}

// column fills to with column j.
func (m Mat) column(to []float64, j int) {
	for i := range to {
		to[i] = m.Data[j]
		j += m.Stride
	}
}

// checkColumns reports what is wrong with new samples, and counts the observed
// cells.
func (c *config) checkColumns(x Mat, d int) (visible int, err error) {
	if err := x.check("x"); err != nil {
		return 0, err
	}
	if x.Rows != d {
		return 0, &ShapeError{What: "x", Got: itoa(x.Rows) + " rows", Want: itoa(d) + ", the features of the model"}
	}
	seen := make([]bool, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if err := c.checkCell(i, j, v); err != nil {
				return 0, err
			}
			if v == v {
				seen[j] = true
				visible++
			}
		}
	}
	if j := slices.Index(seen, false); j >= 0 {
		return 0, &DataError{Row: -1, Col: j, Value: math.NaN(), Problem: "the column has no observed cell"}
	}
	return visible, nil
}

// interrupted wraps what ended the search for the coordinates of new samples.
type interrupted struct{ err error }

func (e *interrupted) Error() string { return "quantmf: new samples: " + e.err.Error() }
func (e *interrupted) Unwrap() error { return e.err }
