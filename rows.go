package quantmf

// This file holds the soft quantile map of many rows at once, and its transposed
// Jacobian: rows in parallel, and on each worker abreast.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// SoftQuantileRows maps each row of x (d × n) onto the quantile values in the
// same row of q (d × m), or in its one row (1 × m), as [SoftQuantile] does. It
// allocates its result; workers take up to eight workspaces each, that of [Solve], over
// from earlier calls. Errors are those of SoftQuantile with the row; under [WithStrict] a
// [*ConvergenceError] of the first row that did not converge.
func SoftQuantileRows(x, q Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(x, q, opts)
	if err != nil {
		return Mat{}, err
	}
	out := NewMat(x.Rows, x.Cols)
	err = b.do(func(r *row, t []float64, i int) { r.ask(t, b.q(i)) }, func(r *row, t []float64, i int) {
		r.quantile(t, b.q(i))
		copy(out.Row(i), t)
	}, func(h *hardPlan, i int) { h.average(out.Row(i), b.q(i)) })
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// SoftQuantileRowsVJP returns the transposed Jacobians of [SoftQuantileRows]
// applied to z (d × n): dx (d × n), dq in the shape of q (a shared row's
// gradients are summed), and db (d × m), each row's gradient in the target
// weights, on the simplex. Cost: the forward and, a row, 25nm flops and m³/3.
func SoftQuantileRowsVJP(x, q, z Mat, opts ...Option) (dx, dq, db Mat, err error) {
	b, err := newRowBatch(x, q, opts)
	if err != nil {
		return Mat{}, Mat{}, Mat{}, err
	}
	if z.Rows != x.Rows || z.Cols != x.Cols {
		return Mat{}, Mat{}, Mat{}, &ShapeError{What: "z", Got: z.size(), Want: x.size()}
	}
	if err := z.check("z"); err != nil {
		return Mat{}, Mat{}, Mat{}, err
	}
	if err := z.checkFinite("z"); err != nil {
		return Mat{}, Mat{}, Mat{}, err
	}
	dx, db = NewMat(x.Rows, x.Cols), NewMat(x.Rows, q.Cols)
	each := NewMat(x.Rows, q.Cols)
	err = b.do(func(*row, []float64, int) {}, func(r *row, zeta []float64, i int) {
		sz, sq := scaleOf(z.Row(i)), scaleOf(b.q(i))
		clear(zeta)
		for s, v := range z.Row(i) {
			zeta[s] = v / sz
		}
		levels := r.cum
		for j, v := range b.q(i) {
			levels[j] = v / sq
		}
		r.adjoint(zeta, levels)
		g := Gradient{X: dx.Row(i), B: db.Row(i), Q: each.Row(i)}
		r.rowTotals(g.Q, r.sums)
		copy(g.B, r.lam)
		tangent(g.B, r.b)
		copy(g.X, r.gx)
		r.squash.backward(g.X, r.xs, r.x)
		g.scale(sz, sq)
	}, func(h *hardPlan, i int) {
		g := Gradient{Q: each.Row(i)}
		sz := scaleOf(z.Row(i))
		for s, v := range z.Row(i) {
			h.shares(s, func(j int, share float64) { g.Q[j] += float64(v / sz * share) })
		}
		g.scale(sz, 1)
	})
	if err != nil {
		return Mat{}, Mat{}, Mat{}, err
	}
	if q.Rows == x.Rows {
		return dx, each, db, nil
	}
	dq = NewMat(1, q.Cols)
	for i := range each.Rows {
		add(dq.Data, each.Row(i))
	}
	for j, v := range dq.Data {
		dq.Data[j] = saturate(v)
	}
	return dx, dq, db, nil
}

// rowBatch is a checked call on many rows.
type rowBatch struct {
	config
	x, levels Mat
}

func (b *rowBatch) q(i int) []float64 {
	if b.levels.Rows == 1 {
		i = 0
	}
	return b.levels.Row(i)
}

func newRowBatch(x, q Mat, opts []Option) (*rowBatch, error) {
	b := &rowBatch{config: operatorDefaults(), x: x, levels: q}
	if err := parse(forQuantileRows, &b.config, opts); err != nil {
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
	for i := range x.Rows {
		if err := b.checkSamples(x.Row(i), i); err != nil {
			return nil, err
		}
	}
	m, err := b.countLevels(x.Cols, q.Cols)
	if err != nil {
		return nil, err
	}
	return b, b.checkSize(forQuantileRows, x.Cols, m, false)
}

// do solves every row, between calls of before and soft with it and np numbers of
// scratch; at ε = 0 it calls hard with its plan.
func (b *rowBatch) do(before, soft func(r *row, t []float64, i int), hard func(h *hardPlan, i int)) error {
	n, m, size := b.x.Cols, b.levels.Cols, 1
	if b.epsilon > 0 {
		size = min(rowsAbreast(n, m), b.x.Rows)
	}
	p := pool.New(b.workers, b.x.Rows)
	defer p.Close()
	pieces := p.Pieces(b.x.Rows, size)
	type space struct {
		rows []*row
		t    []float64
		abreast
		bad *ConvergenceError // the first row of this worker that did not converge
	}
	work := make([]space, p.Workers())
	p.Do(pieces, func(worker, piece int) {
		from, to := pool.Cut(b.x.Rows, pieces, piece)
		if b.epsilon == 0 {
			for i := from; i < to; i++ {
				hard(newHardPlan(b.x.Row(i), &b.config, m), i)
			}
			return
		}
		ws, np := &work[worker], kernel.Pad(n)
		if ws.t == nil {
			ws.t, ws.abreast = make([]float64, size*np), newAbreast(size, m)
		}
		ws.clear()
		for k := range to - from {
			if k == len(ws.rows) {
				ws.rows = append(ws.rows, rows.Get().(*row))
				ws.rows[k].resize(n, m)
			}
			r := ws.rows[k]
			b.set(r, b.x.Row(from+k))
			before(r, ws.t[k*np:(k+1)*np], from+k)
			ws.take(r, nil)
		}
		b.runAll(&ws.abreast)
		for k, r := range ws.abreast.rows {
			i, out := from+k, ws.ends[k]
			if !out.converged && (ws.bad == nil || i < ws.bad.Row) {
				ws.bad = &ConvergenceError{Row: i, Iterations: out.passes, MarginalError: out.rel, Tolerance: b.tolerance}
			}
			soft(r, ws.t[k*np:(k+1)*np], i)
		}
	})
	for i := range work {
		for _, r := range work[i].rows {
			rows.Put(r)
		}
	}
	if !b.strict {
		return nil
	}
	var first *ConvergenceError
	for i := range work {
		if bad := work[i].bad; bad != nil && (first == nil || bad.Row < first.Row) {
			first = bad
		}
	}
	if first != nil {
		return first
	}
	return nil
}
