package quantmf

// This file holds the soft quantile map of many rows at once, and its transposed
// Jacobian: rows in parallel, and on each worker abreast.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
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
	err = b.do(true, func(r *transport.Row, t []float64, i int) {
		r.Order(t, b.q(i))
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
	levels, scales := NewMat(q.Rows, q.Cols), make([]float64, q.Rows) // q in units of powers of two
	for i := range scales {
		scales[i] = transport.ScaleOf(q.Row(i))
		for j, v := range q.Row(i) {
			levels.Set(i, j, v/scales[i])
		}
	}
	err = b.do(false, func(r *transport.Row, zeta []float64, i int) {
		sz, k := transport.ScaleOf(z.Row(i)), b.shared(i)
		clear(zeta)
		for s, v := range z.Row(i) {
			zeta[s] = v / sz
		}
		r.Adjoint(transport.Cotangent{Z: zeta, Q: levels.Row(k)})
		g := transport.Gradient{X: dx.Row(i), B: db.Row(i), Q: each.Row(i)}
		r.GradQ(g.Q)
		r.GradB(g.B)
		r.GradX(g.X)
		g.Rescale(sz, scales[k])
	}, func(h *hardPlan, i int) {
		g := transport.Gradient{Q: each.Row(i)}
		sz := transport.ScaleOf(z.Row(i))
		for s, v := range z.Row(i) {
			h.shares(s, func(j int, share float64) { g.Q[j] += float64(v / sz * share) })
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
		add(dq.Data, each.Row(i))
	}
	for j, v := range dq.Data {
		dq.Data[j] = transport.Saturate(v)
	}
	return dx, dq, db, nil
}

// rowBatch is a checked call on many rows.
type rowBatch struct {
	config
	x, levels Mat
}

// shared is the row of q that row i of x is mapped onto.
func (b *rowBatch) shared(i int) int {
	if b.levels.Rows == 1 {
		return 0
	}
	return i
}

func (b *rowBatch) q(i int) []float64 { return b.levels.Row(b.shared(i)) }

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

// do solves every row and calls soft with it and np numbers, T where average says so, else
// scratch; at ε = 0 it calls hard with its plan.
func (b *rowBatch) do(average bool, soft func(r *transport.Row, t []float64, i int), hard func(h *hardPlan, i int)) error {
	n, m, size := b.x.Cols, b.levels.Cols, 1
	if b.epsilon > 0 {
		size = transport.Abreast(n, m, b.x.Rows)
	}
	p := pool.New(b.workers, b.x.Rows)
	defer p.Close()
	pieces := p.Pieces(b.x.Rows, size)
	type space struct {
		rows  []*transport.Row
		group *transport.Group
		t     []float64
		bad   *ConvergenceError // the first row of this worker that did not converge
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
		if ws.group == nil {
			ws.rows = make([]*transport.Row, size)
			for k := range ws.rows {
				ws.rows[k] = rows.Get().(*transport.Row)
				ws.rows[k].Resize(n, m)
			}
			ws.group, ws.t = transport.NewGroup(ws.rows), make([]float64, size*np)
		}
		g := ws.group
		g.Clear()
		for i := from; i < to; i++ {
			k := i - from
			if average {
				g.Add(b.problem(b.x.Row(i)), nil, ws.t[k*np:(k+1)*np], b.q(i))
			} else {
				g.Add(b.problem(b.x.Row(i)), nil, nil, nil)
			}
		}
		if b.iterations == 0 {
			g.Solve(b.tolerance, b.maxIterations)
		}
		for k, r := range g.Rows {
			i, out := from+k, g.End(k)
			if b.iterations > 0 {
				out = b.iterate(r)
			} else {
				out = b.polish(r, out)
			}
			if !out.Converged && (ws.bad == nil || i < ws.bad.Row) {
				ws.bad = &ConvergenceError{Row: i, Iterations: out.Passes, MarginalError: out.Error, Tolerance: b.tolerance}
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
