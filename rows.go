package quantmf

// This file holds the operators of the paper's §2 for the rows of a matrix, in parallel: the map T, the ranks
// R and the sorted values S, with the derivatives that a training loop needs, forward and transposed. R is T
// at the levels of ranks, which do not depend on x, so its Jacobian is that of T. Nothing is allocated but
// the results, and a workspace for each worker.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// SoftRankRows returns the soft ranks of each row of x (d × n) among the row, d × n, as [SoftRank] does.
// Errors are those of SoftRank, with the row. Cost: d times that of SoftRank, spread over [WithWorkers].
// Memory: the result, and a workspace of [Solve] a worker, which later calls reuse.
func SoftRankRows(x Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(option.SoftRankRows, x, opts)
	if err != nil {
		return Mat{}, err
	}
	return b.average()
}

// SoftRankRowsVJP returns the transposed Jacobian of [SoftRankRows] applied to z (d × n): the gradient in x,
// d × n. Errors are those of SoftRankRows, and a [*ShapeError] or [*DataError] for z. Cost: the forward and,
// a row, 25nm flops and m³/3. At ε = 0 it is 0.
func SoftRankRowsVJP(x, z Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(option.SoftRankRowsVJP, x, opts)
	if err == nil {
		err = checkRowsLike("z", z, x.Rows, x.Cols)
	}
	if err != nil {
		return Mat{}, err
	}
	dx := NewMat(x.Rows, x.Cols)
	err = b.do(false, func(ws *operatorSpace, i int) {
		sz, sq := ws.adjoint(z.Row(i), b.q(ws, i))
		g := transport.Gradient{X: dx.Row(i)}
		ws.row.GradX(g.X)
		g.Rescale(sz, sq)
	}, func(*transport.Hard, int) {})
	if err != nil {
		return Mat{}, err
	}
	return dx, nil
}

// SoftRankRowsJVP returns the derivative of [SoftRankRows] along dx (d × n), d × n. Errors are those of
// SoftRankRows, and a [*ShapeError] or [*DataError] for dx. Cost: the forward and, a row, 30nm flops and m³.
// At ε = 0 it is 0.
func SoftRankRowsJVP(x, dx Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(option.SoftRankRowsJVP, x, opts)
	if err == nil {
		err = checkRowsLike("dx", dx, x.Rows, x.Cols)
	}
	if err != nil {
		return Mat{}, err
	}
	out := NewMat(x.Rows, x.Cols)
	err = b.do(false, func(ws *operatorSpace, i int) {
		ws.row.QuantileForward(ws.t[:x.Cols], b.q(ws, i), &transport.Gradient{X: dx.Row(i)})
		copy(out.Row(i), ws.t)
	}, func(*transport.Hard, int) {})
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// SoftSortRows returns the soft order statistics of each row of x (d × n), d × n by default, d × m with
// levels given, as [SoftSort] does. Errors, cost and memory are those of [SoftRankRows].
func SoftSortRows(x Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(option.SoftSortRows, x, opts)
	if err != nil {
		return Mat{}, err
	}
	out := NewMat(x.Rows, b.places())
	err = b.do(false, func(ws *operatorSpace, i int) {
		if !b.ranks.chosen {
			ws.row.Sort(out.Row(i))
			return
		}
		ws.row.Sort(ws.q)
		transport.SortedPlaces(out.Row(i), ws.q, x.Row(i))
	}, func(h *transport.Hard, i int) { copy(out.Row(i), h.Sorted()) })
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// SoftSortRowsVJP returns the transposed Jacobian of [SoftSortRows] applied to z, of the size of its result:
// the gradient in x, d × n. Errors are those of SoftSortRows, and a [*ShapeError] or [*DataError] for z.
// Cost: the forward and, a row, 50nm flops and m³/3.
func SoftSortRowsVJP(x, z Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(option.SoftSortRowsVJP, x, opts)
	if err == nil {
		err = checkRowsLike("z", z, x.Rows, b.places())
	}
	if err != nil {
		return Mat{}, err
	}
	dx := NewMat(x.Rows, x.Cols)
	err = b.do(false, func(ws *operatorSpace, i int) {
		from, sz := z.Row(i), 1.0
		if b.ranks.chosen {
			sz = transport.ScaleOf(from) // several places add to a level
			clear(ws.q)
			for k, v := range from {
				transport.AddLevels(ws.q, k, x.Cols, v/sz)
			}
			from = ws.q
		}
		if ws.gradient.X == nil {
			ws.gradient = transport.NewGradient(x.Cols, b.m)
			ws.gradient.Q = nil
		}
		ws.row.SortAdjoint(&ws.gradient, from)
		ws.gradient.Rescale(sz, 1)
		copy(dx.Row(i), ws.gradient.X)
	}, func(h *transport.Hard, i int) {
		g := transport.Gradient{X: dx.Row(i)}
		sortShares(&g, h, z.Row(i))
	})
	if err != nil {
		return Mat{}, err
	}
	return dx, nil
}

// SoftSortRowsJVP returns the derivative of [SoftSortRows] along dx (d × n), of the size of its result.
// Errors are those of SoftSortRows, and a [*ShapeError] or [*DataError] for dx. Cost: the forward and, a row,
// 50nm flops and m³.
func SoftSortRowsJVP(x, dx Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(option.SoftSortRowsJVP, x, opts)
	if err == nil {
		err = checkRowsLike("dx", dx, x.Rows, x.Cols)
	}
	if err != nil {
		return Mat{}, err
	}
	out := NewMat(x.Rows, b.places())
	err = b.do(false, func(ws *operatorSpace, i int) {
		ws.row.SortForward(ws.q, &transport.Gradient{X: dx.Row(i)})
		if !b.ranks.chosen {
			copy(out.Row(i), ws.q)
			return
		}
		transport.ToPlaces(out.Row(i), ws.q)
	}, func(h *transport.Hard, i int) { sortAlong(out.Row(i), h, dx.Row(i)) })
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// sortShares adds to X the transposed Jacobian of the sorted values of a plan at ε = 0, P z/b.
func sortShares(g *transport.Gradient, h *transport.Hard, z []float64) {
	sz := transport.ScaleOf(z)
	for i, a := range h.A {
		h.EachShare(i, func(j int, s float64) { g.X[i] += float64(float64(a*s) * (z[j] / sz / h.B[j])) })
	}
	g.Rescale(sz, 1)
}

// checkRowsLike reports a cotangent or a direction that is not d × n finite numbers.
func checkRowsLike(name string, z Mat, d, n int) error {
	if z.Rows != d || z.Cols != n {
		return &ShapeError{What: name, Got: z.size(), Want: sizeOf(d, n)}
	}
	if err := z.check(name); err != nil {
		return err
	}
	return z.checkFinite(name)
}

// SoftQuantileRows maps each row of x (d × n) onto the quantile values in the same row of
// q (d × m), or in its only row (1 × m), as [SoftQuantile] does; the result is d × n.
// Errors are those of SoftQuantile, with the row; under [WithStrict] a
// [*ConvergenceError] of the first row that did not converge. Cost: d times that of
// SoftQuantile, spread over [WithWorkers]. Memory: the result, and a workspace of [Solve] a
// worker, which later calls reuse.
func SoftQuantileRows(x, q Mat, opts ...Option) (Mat, error) {
	b, err := newMapBatch(x, q, opts)
	if err != nil {
		return Mat{}, err
	}
	return b.average()
}

// SoftQuantileRowsVJP returns the transposed Jacobians of [SoftQuantileRows] applied to z
// (d × n). dx is d × n. dq has the shape of q; for a 1 × m q the gradients of all rows are
// summed. db (d × m) has each row's gradient in the target weights, on the simplex:
// Σ_j b_j db_ij = 0. Errors are those of SoftQuantileRows, and a [*ShapeError] or
// [*DataError] for z. Cost: the forward and, a row, 25nm flops and m³/3.
func SoftQuantileRowsVJP(x, q, z Mat, opts ...Option) (dx, dq, db Mat, err error) {
	b, err := newMapBatch(x, q, opts)
	if err == nil {
		err = checkRowsLike("z", z, x.Rows, x.Cols)
	}
	if err != nil {
		return Mat{}, Mat{}, Mat{}, err
	}
	dx, db = NewMat(x.Rows, x.Cols), NewMat(x.Rows, q.Cols)
	each := NewMat(x.Rows, q.Cols)
	err = b.do(false, func(ws *operatorSpace, i int) {
		sz, sq := ws.adjoint(z.Row(i), b.q(ws, i))
		g := transport.Gradient{X: dx.Row(i), B: db.Row(i), Q: each.Row(i)}
		ws.row.GradQ(g.Q)
		ws.row.GradB(g.B)
		ws.row.GradX(g.X)
		g.Rescale(sz, sq)
	}, func(h *transport.Hard, i int) {
		g := transport.Gradient{Q: each.Row(i)}
		sz := transport.ScaleOf(z.Row(i))
		for s, v := range z.Row(i) {
			h.EachShare(s, func(j int, share float64) { g.Q[j] += float64(v / sz * share) })
		}
		g.Rescale(sz, 1)
	})
	if err != nil {
		return Mat{}, Mat{}, Mat{}, err
	}
	if q.Rows == x.Rows {
		return dx, each, db, nil
	}
	dq = NewMat(1, q.Cols)
	for i := range each.Rows {
		kernel.Accumulate(dq.Data, []float64{1}, each.Row(i))
	}
	for j, v := range dq.Data {
		dq.Data[j] = transport.Saturate(v)
	}
	return dx, dq, db, nil
}

// rowBatch is a call of an operator for rows whose arguments have been checked.
type rowBatch struct {
	config
	x      Mat
	levels Mat // q of [SoftQuantileRows]; ranks and sorted values have none
	m      int
}

// newRowBatch checks the arguments of ranks and sorted values.
func newRowBatch(t option.Function, x Mat, opts []Option) (*rowBatch, error) {
	b := &rowBatch{config: operatorDefaults(), x: x}
	if err := parse(t, &b.config, opts); err != nil {
		return nil, err
	}
	if err := x.check("x"); err != nil {
		return nil, err
	}
	return b, b.settle(t, 0)
}

// newMapBatch checks the arguments of [SoftQuantileRows].
func newMapBatch(x, q Mat, opts []Option) (*rowBatch, error) {
	b := &rowBatch{config: operatorDefaults(), x: x, levels: q}
	if err := parse(option.SoftQuantileRows, &b.config, opts); err != nil {
		return nil, err
	}
	if err := x.check("x"); err != nil {
		return nil, err
	}
	if err := q.check("q"); err != nil {
		return nil, err
	}
	if q.Rows != 1 && q.Rows != x.Rows {
		return nil, &ShapeError{What: "q", Got: itoa(q.Rows) + " rows", Want: "1 or " + itoa(x.Rows)}
	}
	for i := range q.Rows {
		if err := checkLevels(q.Row(i), i); err != nil {
			return nil, err
		}
	}
	return b, b.settle(option.SoftQuantileRows, q.Cols)
}

// settle checks the samples and finds the number of levels; m0 is that of q.
func (b *rowBatch) settle(t option.Function, m0 int) (err error) {
	for i := range b.x.Rows {
		if err := b.checkSamples(b.x.Row(i), i); err != nil {
			return err
		}
	}
	b.chooseLevels(t, b.x.Cols, m0)
	if b.m, err = b.countLevels(b.x.Cols, m0); err != nil {
		return err
	}
	return b.checkSize(t, b.x.Cols, b.m, false)
}

// places is how many sorted values a row has.
func (b *rowBatch) places() int {
	if b.ranks.chosen {
		return b.x.Cols
	}
	return b.m
}

// q returns the values of the levels that row i is mapped onto: those given, or ranks.
func (b *rowBatch) q(ws *operatorSpace, i int) []float64 {
	switch b.levels.Rows {
	case 0:
		_, weights := ws.row.Weights()
		b.ranks.levels(ws.q, b.x.Cols, weights)
		return ws.q
	case 1:
		i = 0
	}
	return b.levels.Row(i)
}

// average returns T = M q of every row.
func (b *rowBatch) average() (Mat, error) {
	out := NewMat(b.x.Rows, b.x.Cols)
	err := b.do(true, func(ws *operatorSpace, i int) {
		ws.row.Order(ws.t, b.q(ws, i))
		copy(out.Row(i), ws.t)
	}, func(h *transport.Hard, i int) {
		if b.levels.Rows > 0 {
			h.Average(out.Row(i), b.q(nil, i))
			return
		}
		q := make([]float64, b.m)
		b.ranks.levels(q, b.x.Cols, h.B)
		h.Average(out.Row(i), q)
	})
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// operatorSpace is the room of a worker.
type operatorSpace struct {
	row      *transport.Row
	t        []float64 // T, or a cotangent
	q, unit  []float64 // m: values of levels, and the same in units of a power of two
	gradient transport.Gradient
	bad      *ConvergenceError // the first row of this worker that did not converge
}

// adjoint takes z, a cotangent of T = M q, back through the row, and returns the units of z and of q.
func (ws *operatorSpace) adjoint(z, q []float64) (sz, sq float64) {
	sz, sq = transport.ScaleOf(z), transport.ScaleOf(q)
	clear(ws.t)
	for s, v := range z {
		ws.t[s] = v / sz
	}
	for j, v := range q {
		ws.unit[j] = v / sq
	}
	ws.row.Adjoint(transport.Cotangent{Z: ws.t, Q: ws.unit})
	return sz, sq
}

// do solves every row i and calls soft with it in its workspace, whose t is T where average is true. At ε = 0
// it calls sorted with the plan instead.
func (b *rowBatch) do(average bool, soft func(ws *operatorSpace, i int),
	sorted func(h *transport.Hard, i int)) error {
	n, m := b.x.Cols, b.m
	p := pool.New(b.workers, b.x.Rows)
	defer p.Close()
	if b.ctx != nil {
		p.Bind(b.ctx)
	}
	work := make([]operatorSpace, p.Workers())
	p.Do(b.x.Rows, func(worker, i int) {
		if b.Epsilon == 0 {
			sorted(b.hardPlan(b.x.Row(i), m), i)
			return
		}
		ws := &work[worker]
		if ws.row == nil {
			ws.row, ws.t = workspaces.Get().(*transport.Row), make([]float64, kernel.Pad(n))
			ws.q, ws.unit = make([]float64, m), make([]float64, m)
			ws.row.Resize(n, m)
		}
		r := ws.row
		r.Load(b.problem(b.x.Row(i)))
		if average {
			r.Want(ws.t, b.q(ws, i))
		}
		if out := b.solve(r); !out.Converged && (ws.bad == nil || i < ws.bad.Row) {
			ws.bad = &ConvergenceError{Row: i, Iterations: out.Passes, MarginalError: out.Error,
				Tolerance: b.Tolerance}
		}
		soft(ws, i)
	})
	var first *ConvergenceError
	for i := range work {
		if r := work[i].row; r != nil {
			workspaces.Put(r)
		}
		if bad := work[i].bad; bad != nil && (first == nil || bad.Row < first.Row) {
			first = bad
		}
	}
	if err := p.Err(); err != nil {
		return &interrupted{err}
	}
	if b.strict && first != nil {
		return first
	}
	return nil
}
