package quantmf

// This file holds the operators of the paper's §2 on a solved row:
//
//	R = n M cumsum(b)          soft ranks           (§2.1)
//	S = diag(1/c) Mᵀ diag(a) x soft sort            (§2.1)
//	T = M q                    soft quantile map    (§2.2, Definition 2.1)
//
// M is row-stochastic by construction (each row is divided by its own sum) and
// c are the plan's own column sums, so that order and range hold at any number
// of iterations (Prop. 2.1). In floating point three things make order and range
// exact: one code path for every sample, a clamp, and a running maximum along the
// sorted samples. They move a value by a few units in the last place at most.

import (
	"math"
	"sync"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// Transport is the solved transport of n samples onto m targets. It is not changed by its
// methods and may be used by several goroutines at once. The zero value has no samples: its
// methods return nothing, or an error. Where a method follows one of
// another Transport, it first recomputes the plan, at the cost of nm exponentials or
// products and 8nm flops.
type Transport struct {
	// F (n) and G (m) are the potentials: P_ij = exp((F_i+G_j-(x̃_i-y_j)²)/ε),
	// where x̃ is the squashed x and Σ b_j G_j = 0. The F of a sample of weight 0 lacks
	// its term ε log a_i, which is infinite.
	F, G []float64
	// Iterations is the number of passes over x: l under WithIterations(l), 0 at ε = 0.
	Iterations int
	// MarginalError is max_j |c_j-b_j|/b_j of the row-exact plan.
	MarginalError float64
	// Converged tells whether MarginalError reached the tolerance (or the
	// rounding of the logits, where that is larger). Under WithIterations it is
	// false unless l iterations happened to reach it.
	Converged bool

	solution   transport.Solution
	lent       *transport.Row // after solve without keep: the row that holds the plan, for one method
	iterations int            // of WithIterations
	uniformB   bool           // b was not given
	midpoint   bool
	hard       *transport.Hard // at ε = 0, in place of the solution
}

// unsolved reports the zero Transport.
func (t *Transport) unsolved() error {
	if _, b := t.size(); len(b) > 0 {
		return nil
	}
	return &ShapeError{What: "the transport", Got: "one of no samples", Want: "one that Solve returned"}
}

// workspaces are reused from call to call. A call on the same transport as the one before
// usually gets the workspace that still holds its plan.
var workspaces = sync.Pool{New: func() any { return new(transport.Row) }}

// row returns a workspace that holds the plan of the solution. The caller puts it back
// into workspaces.
func (t *Transport) row() *transport.Row {
	if t.lent != nil {
		return t.lent
	}
	r := workspaces.Get().(*transport.Row)
	r.Restore(&t.solution)
	return r
}

// configs are reused for the options of calls.
var configs = sync.Pool{New: func() any { return new(config) }}

// operatorDefaults are the defaults of all operators.
func operatorDefaults() config {
	return config{settings: settings{epsilon: 0.01, tolerance: 1e-9, maxIterations: 3000}}
}

// Solve transports the samples x onto m targets, for [Transport.Rank], [Transport.Sort],
// [Transport.Quantile] and their derivatives. Default: m = n; see [WithLevels].
//
// Errors: [*DataError] for a NaN, an infinity or a magnitude above 1e300 in x,
// [*ShapeError] for an empty x or weights of another length, [*OptionError], which names
// the option that gave m where there are more levels than [WithLevels] allows; under
// [WithStrict] a [*ConvergenceError].
//
// Cost: about 5 passes of 8nm flops and m³/3 each, 2 to 3 where n is at least 1024.
// Memory: 8(2n+5m) bytes in the Transport, and a workspace of 8(15n+4m²) bytes and 8nm up
// to 4 MB that later calls reuse.
func Solve(x []float64, opts ...Option) (*Transport, error) {
	return solve(option.Solve, x, 0, nil, opts, true)
}

// SoftRank returns the n soft ranks of x, in [0,n] and ordered as x: R = n M cumsum(b),
// the paper's formula; see [WithMidpointRanks] for the unbiased form. Errors and cost are
// those of [Solve].
//
// Default: n levels. They take time O(n³), two to five passes of n³/3 flops, and memory O(n²), 32n² bytes:
// with AVX2 on one core 0.02 s for 512 samples, 0.2 s for 1024, and 1.3 s for 2048, whose matrices exceed the
// caches. From 20725 samples on they are an error. [WithLevels](64) with WithMidpointRanks takes 0.3 ms for
// 1024 samples and differs from the midpoint ranks of n levels by at most n/3000 at the default ε, n/1000 at
// a tenth of it.
//
// The ranks of ott-jax, from 0 to n-1, are [Transport.Quantile] at q_j = j(n-1)/(m-1), j
// = 0, ..., m-1, under [SquashLogisticUnit] (see the example of Quantile). They equal
// SoftRank less 1 only where m = n.
func SoftRank(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(option.SoftRank, x, 0, nil, opts, false)
	if err != nil {
		return nil, err
	}
	return t.Rank(), nil
}

// SoftSort returns m soft order statistics of x: S = diag(1/c) Mᵀ diag(a) x,
// non-decreasing, in [min x, max x] and in the units of x. The squash affects the plan
// alone; the values averaged are those of x. Default: n levels, time O(n³) and memory
// O(n²), an error from n = 20725 on. Errors and cost are those of [Solve].
func SoftSort(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(option.SoftSort, x, 0, nil, opts, false)
	if err != nil {
		return nil, err
	}
	return t.Sort(), nil
}

// SoftQuantile maps samples onto given quantile values: it returns T = M q, one value for
// each of the n samples x, in [q_1,q_m] and ordered as x. The values of the result are
// distributed as q says: of the samples a share b_j (1/m by default) is brought near q_j.
// q holds m = len(q) non-decreasing numbers, in any unit; the result is in that unit. To
// read quantiles of x instead, see [SoftQuantiles].
//
// Errors and cost are those of [Solve]; an unsorted q is a [*DataError].
func SoftQuantile(x, q []float64, opts ...Option) ([]float64, error) {
	if err := checkLevels(q, -1); err != nil {
		return nil, err
	}
	t, err := solve(option.SoftQuantile, x, len(q), nil, opts, false)
	if err != nil {
		return nil, err
	}
	return t.Quantile(q)
}

// bounded is what samples and quantile values must be.
const bounded = " must be finite and of magnitude at most 1e300"

// tooLarge returns the index of the first number that is not, -1 for none.
func tooLarge(x []float64) int {
	for j, v := range x {
		if !(math.Abs(v) <= limit.Magnitude) {
			return j
		}
	}
	return -1
}

// checkLevels reports quantile values that are empty, not finite or falling.
// row is where they stand, for the error.
func checkLevels(q []float64, row int) error {
	if len(q) == 0 {
		return &ShapeError{What: "q", Got: "no values", Want: "at least one"}
	}
	if j := tooLarge(q); j >= 0 {
		return &DataError{Row: row, Col: j, Value: q[j], Problem: "q" + bounded}
	}
	for j := 1; j < len(q); j++ {
		if q[j] < q[j-1] {
			return &DataError{Row: row, Col: j, Value: q[j],
				Problem: "q must not fall: the value before is " + ftoa(q[j-1])}
		}
	}
	return nil
}

// countLevels returns m: the number of targets or target weights, m0 (the length of q, 0
// where there is none) or WithLevels, which must agree where given; otherwise n.
func (c *config) countLevels(n, m0 int) (int, error) {
	m := n
	if c.given.Has(option.Levels) {
		m = c.levels
	}
	if c.targets != nil {
		m = len(c.targets)
	} else if c.targetWeights != nil && !c.given.Has(option.Levels) && m0 == 0 {
		m = len(c.targetWeights)
	}
	if m0 > 0 {
		if c.given.Has(option.Levels) && c.levels != m0 {
			return 0, &OptionError{Option: option.Levels.String(), Value: itoa(c.levels),
				Bound: "q has " + itoa(m0) + " values"}
		}
		if c.targets != nil && len(c.targets) != m0 {
			return 0, &ShapeError{What: "targets", Got: itoa(len(c.targets)),
				Want: "as many as q, " + itoa(m0)}
		}
		m = m0
	}
	if c.targetWeights != nil && len(c.targetWeights) != m {
		return 0, &ShapeError{What: "target weights", Got: itoa(len(c.targetWeights)), Want: itoa(m)}
	}
	return m, nil
}

// mostLevels returns the largest m that n samples allow, 0 for none.
func mostLevels(n int) int {
	lo, hi := 0, limit.Cells/4
	for lo < hi {
		if mid := lo + (hi-lo+1)/2; limit.TooMany(n, mid) {
			hi = mid - 1
		} else {
			lo = mid
		}
	}
	return lo
}

// checkSize reports a problem that takes too much memory; the error names what gave m. At
// ε = 0 no system is solved, and only the plan, where it can be asked for, takes nm numbers.
func (c *config) checkSize(t option.Function, n, m int, plan bool) error {
	if c.epsilon == 0 && !plan && m <= limit.Cells/16 || !limit.TooMany(n, m) {
		return nil
	}
	most := itoa(mostLevels(n))
	bound := "must be at most " + most + " levels for " + itoa(n) + " samples: more need too much memory"
	switch {
	case t.Sizes == "k":
		return &OptionError{Option: t.Sizes, Value: itoa(m), Bound: bound}
	case t.Sizes != "":
		return &ShapeError{What: t.Sizes, Got: itoa(m) + " levels",
			Want: "at most " + most + " for " + itoa(n) + " samples: more need too much memory"}
	case c.given.Has(option.Targets):
		return &OptionError{Option: option.Targets.String(), Value: "len " + itoa(m), Bound: bound}
	case c.given.Has(option.TargetWeights):
		return &OptionError{Option: option.TargetWeights.String(), Value: "len " + itoa(m), Bound: bound}
	case !c.given.Has(option.Levels):
		return &OptionError{Option: option.Levels.String(), Value: itoa(m),
			Bound: "the default of one level a sample needs too much memory here: give at most " + most +
				", of which a few hundred are plenty"}
	}
	return &OptionError{Option: option.Levels.String(), Value: itoa(m), Bound: bound}
}

func (c *config) checkSamples(x []float64, row int) error {
	if len(x) == 0 {
		return &ShapeError{What: "x", Got: "no samples", Want: "at least one"}
	}
	top := transport.Largest(x)
	if !(top <= limit.Magnitude) {
		i := tooLarge(x)
		return &DataError{Row: row, Col: i, Value: x[i], Problem: "x" + bounded}
	}
	if c.squash == SquashNone && top > limit.Point {
		for i, v := range x {
			if !(v >= -limit.Point && v <= limit.Point) {
				return &DataError{Row: row, Col: i, Value: v,
					Problem: "without a squash x must be of magnitude at most " + ftoa(limit.Point)}
			}
		}
	}
	if c.weights != nil && len(c.weights) != len(x) {
		return &ShapeError{What: "weights", Got: itoa(len(c.weights)),
			Want: "as many as samples, " + itoa(len(x))}
	}
	return nil
}

// solve is [Solve] on behalf of the function t, which has m0 quantile values (0: none) or target
// weights b of its own. Where keep is false the Transport serves one call of one method, and has
// no potentials.
func solve(t option.Function, x []float64, m0 int, b []float64, opts []Option, keep bool) (*Transport,
	error) {
	c := configs.Get().(*config)
	defer func() {
		*c = config{}
		configs.Put(c)
	}()
	*c = operatorDefaults()
	c.targetWeights = b
	if err := parse(t, c, opts); err != nil {
		return nil, err
	}
	if err := c.checkSamples(x, -1); err != nil {
		return nil, err
	}
	m, err := c.countLevels(len(x), m0)
	if err != nil {
		return nil, err
	}
	if err := c.checkSize(t, len(x), m, keep); err != nil {
		return nil, err
	}
	tr := &Transport{uniformB: c.targetWeights == nil, midpoint: c.midpoint, iterations: c.iterations}
	if c.epsilon == 0 {
		tr.hard = c.hardPlan(x, m)
		if keep {
			tr.F, tr.G = tr.hard.Potentials()
		}
		tr.Converged = true
		return tr, nil
	}
	r := workspaces.Get().(*transport.Row)
	r.Resize(len(x), m)
	r.Load(c.problem(x))
	out := c.solve(r)
	tr.Iterations, tr.MarginalError, tr.Converged = out.Passes, out.Error, out.Converged
	if c.strict && !out.Converged {
		workspaces.Put(r)
		return nil, notConverged(out, -1, c.tolerance)
	}
	if !keep {
		tr.lent = r
		return tr, nil
	}
	defer workspaces.Put(r)
	n, weighted := len(x), c.weights != nil
	all := make([]float64, n+m+r.Room(weighted))
	tr.F, tr.G = all[:n:n], all[n:n+m:n+m]
	tr.solution = r.Keep(all[n+m:], weighted)
	r.Duals(tr.F, tr.G, weighted)
	return tr, nil
}

// notConverged is the error of a row with the outcome o.
func notConverged(o transport.Outcome, row int, tolerance float64) error {
	return &ConvergenceError{Row: row, Iterations: o.Passes, MarginalError: o.Error, Tolerance: tolerance}
}

// problem is the transport of the samples x.
func (c *config) problem(x []float64) transport.Problem {
	return transport.Problem{X: x, A: c.weights, Y: c.targets, B: c.targetWeights,
		Squash: transport.Kind(c.squash), Epsilon: c.epsilon}
}

// solve solves the problem loaded in r.
func (c *config) solve(r *transport.Row) transport.Outcome {
	if c.iterations > 0 {
		return c.iterate(r)
	}
	return c.polish(r, r.Solve(c.tolerance, c.maxIterations, nil))
}

// polish finds the last digits of a solve whose levels are weakly coupled.
func (c *config) polish(r *transport.Row, out transport.Outcome) transport.Outcome {
	return r.Polish(c.weights, c.targetWeights, out, c.maxIterations)
}

// hardPlan returns the plan of x at ε = 0.
func (c *config) hardPlan(x []float64, m int) *transport.Hard {
	return transport.NewHard(c.problem(x), m)
}

// Plan returns the n × m plan P: rows sum to a, columns to b within
// MarginalError. Cost: 2nm flops.
func (t *Transport) Plan() Mat {
	if t.unsolved() != nil {
		return Mat{}
	}
	if t.hard != nil {
		p := NewMat(len(t.hard.A), len(t.hard.B))
		for i, a := range t.hard.A {
			t.hard.EachShare(i, func(j int, s float64) { p.Set(i, j, float64(a*s)) })
		}
		return p
	}
	r := t.row()
	defer workspaces.Put(r)
	a, b := r.Weights()
	p := NewMat(len(a), len(b))
	r.EachSample(func(i int, to []float64) {
		for j, v := range to {
			p.Set(i, j, float64(a[i]*v))
		}
	})
	return p
}

// Rank returns the n soft ranks; see [SoftRank]. Cost: 4nm flops, and the order of the samples.
func (t *Transport) Rank() []float64 {
	if t.unsolved() != nil {
		return nil
	}
	n, b := t.size()
	q := make([]float64, len(b))
	t.rankLevels(q, n, b)
	out := make([]float64, n)
	t.average(out, q)
	return out
}

func (t *Transport) size() (n int, b []float64) {
	if t.hard != nil {
		return len(t.hard.X), t.hard.B
	}
	if t.lent != nil {
		a, b := t.lent.Weights()
		return len(a), b
	}
	n, _ = t.solution.Size()
	return n, t.solution.Weights()
}

// rankLevels fills q = n cumsum(b), or n(cumsum(b)-b/2)+1/2, exactly where b is
// uniform.
func (t *Transport) rankLevels(q []float64, n int, b []float64) {
	sum := 0.0
	m := float64(len(b))
	for j, bj := range b {
		lo := sum
		sum += bj
		switch {
		case t.midpoint && t.uniformB:
			q[j] = float64(n)*float64(2*j+1)/(2*m) + 0.5
		case t.midpoint:
			q[j] = float64(float64(n)*elem.Middle(lo, sum)) + 0.5
		case t.uniformB:
			q[j] = float64(n) * float64(j+1) / m // as integers they may exceed 32 bits
		default:
			q[j] = min(float64(float64(n)*sum), float64(n))
		}
	}
}

// Sort returns the m soft order statistics, in the units of x; see [SoftSort]. Cost: 4nm flops.
func (t *Transport) Sort() []float64 {
	if t.unsolved() != nil {
		return nil
	}
	if t.hard != nil {
		return t.hard.Sorted()
	}
	r := t.row()
	defer workspaces.Put(r)
	_, b := r.Weights()
	out := make([]float64, len(b))
	r.Sort(out)
	return out
}

// Quantile returns T = M q for m non-decreasing values q: n values in [q_1,q_m], ordered
// as x. Errors: a [*ShapeError] for another number of values, a [*DataError] for a q that
// falls, is not finite or exceeds 1e300 in magnitude. Cost: 4nm flops, and the order of the
// samples.
func (t *Transport) Quantile(q []float64) ([]float64, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	n, _ := t.size()
	out := make([]float64, n)
	t.average(out, q)
	return out, nil
}

func (t *Transport) checkQ(q []float64) error {
	if err := t.unsolved(); err != nil {
		return err
	}
	if err := checkLevels(q, -1); err != nil {
		return err
	}
	if _, b := t.size(); len(q) != len(b) {
		return &ShapeError{What: "q", Got: itoa(len(q)) + " values",
			Want: "as many as targets, " + itoa(len(b))}
	}
	return nil
}

func (t *Transport) average(out, q []float64) {
	if t.hard != nil {
		t.hard.Average(out, q)
		return
	}
	r := t.row()
	defer workspaces.Put(r)
	r.Quantile(out, q)
}

// SoftQuantileRows maps each row of x (d × n) onto the quantile values in the same row of
// q (d × m), or in its only row (1 × m), as [SoftQuantile] does; the result is d × n.
// Errors are those of SoftQuantile, with the row; under [WithStrict] a
// [*ConvergenceError] of the first row that did not converge. Cost: d times that of
// SoftQuantile, spread over [WithWorkers]. Memory: the result, and a workspace of [Solve] a
// worker, which later calls reuse.
func SoftQuantileRows(x, q Mat, opts ...Option) (Mat, error) {
	b, err := newRowBatch(x, q, opts)
	if err != nil {
		return Mat{}, err
	}
	out := NewMat(x.Rows, x.Cols)
	err = b.do(true, func(r *transport.Row, t []float64, i int) {
		r.Order(t, b.q(i))
		copy(out.Row(i), t)
	}, func(h *transport.Hard, i int) { h.Average(out.Row(i), b.q(i)) })
	if err != nil {
		return Mat{}, err
	}
	return out, nil
}

// SoftQuantileRowsVJP returns the transposed Jacobians of [SoftQuantileRows] applied to z
// (d × n). dx is d × n. dq has the shape of q; for a 1 × m q the gradients of all rows are
// summed. db (d × m) has each row's gradient in the target weights, on the simplex:
// Σ_j b_j db_ij = 0. Errors are those of SoftQuantileRows, and a [*ShapeError] or
// [*DataError] for z. Cost: the forward and, a row, 25nm flops and m³/3.
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

// rowBatch is a call of [SoftQuantileRows] or its VJP whose arguments have been checked.
type rowBatch struct {
	config
	x, levels Mat
}

func newRowBatch(x, q Mat, opts []Option) (*rowBatch, error) {
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
	for i := range x.Rows {
		if err := b.checkSamples(x.Row(i), i); err != nil {
			return nil, err
		}
	}
	m, err := b.countLevels(x.Cols, q.Cols)
	if err != nil {
		return nil, err
	}
	return b, b.checkSize(option.SoftQuantileRows, x.Cols, m, false)
}

// shared returns the index of the row of q that row i of x is mapped onto.
func (b *rowBatch) shared(i int) int {
	if b.levels.Rows == 1 {
		return 0
	}
	return i
}

func (b *rowBatch) q(i int) []float64 { return b.levels.Row(b.shared(i)) }

// do solves every row i and calls soft with it and with np numbers: T where average is true,
// otherwise scratch. At ε = 0 it calls sorted with the plan instead.
func (b *rowBatch) do(average bool, soft func(r *transport.Row, t []float64, i int),
	sorted func(h *transport.Hard, i int)) error {
	n, m := b.x.Cols, b.levels.Cols
	p := pool.New(b.workers, b.x.Rows)
	defer p.Close()
	type space struct {
		row *transport.Row
		t   []float64
		bad *ConvergenceError // the first row of this worker that did not converge
	}
	work := make([]space, p.Workers())
	p.Do(b.x.Rows, func(worker, i int) {
		if b.epsilon == 0 {
			sorted(b.hardPlan(b.x.Row(i), m), i)
			return
		}
		ws := &work[worker]
		if ws.row == nil {
			ws.row, ws.t = workspaces.Get().(*transport.Row), make([]float64, kernel.Pad(n))
			ws.row.Resize(n, m)
		}
		r := ws.row
		r.Load(b.problem(b.x.Row(i)))
		if average {
			r.Want(ws.t, b.q(i))
		}
		if out := b.solve(r); !out.Converged && (ws.bad == nil || i < ws.bad.Row) {
			ws.bad = &ConvergenceError{Row: i, Iterations: out.Passes, MarginalError: out.Error,
				Tolerance: b.tolerance}
		}
		soft(r, ws.t, i)
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
	if b.strict && first != nil {
		return first
	}
	return nil
}

// # Few levels
//
// Single quantiles and the k largest values take few targets. A target whose weight is that of
// the wanted samples collects them; other targets collect the samples between, and their values
// are not returned. So the cost is that of two or three targets, not of n. The method is in the
// weights: with WithTargetWeights they give the same values through [Solve] and [Transport.Sort],
// and their gradients through [Transport.SortVJP].

// QuantileWeights returns target weights b with which [SoftSort] gives quantiles of a
// row: the quantile at levels[i] is SoftSort(x, WithTargetWeights(b))[at[i]]. Levels are
// in [0,1], in any order. Each quantile is the average over a share width of the samples,
// 0 < width <= 1, centred on its level and kept within [0,1]; where these shares would
// overlap, width is narrowed for all of them until they do not. Levels nearer to each
// other than a millionth of width count as the lowest of them.
//
// Errors: [*ShapeError] for no levels, [*OptionError] for the width, [*DataError] for a
// level.
func QuantileWeights(levels []float64, width float64) (b []float64, at []int, err error) {
	if len(levels) == 0 {
		return nil, nil, &ShapeError{What: "levels", Got: "none", Want: "at least one"}
	}
	if !(width > 0 && width <= 1) {
		return nil, nil, &OptionError{Option: "width", Value: ftoa(width),
			Bound: "must be above 0 and at most 1"}
	}
	for i, l := range levels {
		if !(l >= 0 && l <= 1) {
			return nil, nil, &DataError{Row: -1, Col: i, Value: l, Problem: "a level must be in [0,1]"}
		}
	}
	perm := make([]int32, len(levels))
	var sorter order.Sorter
	sorter.Resize(len(levels))
	sorter.Sort(perm, levels)
	// The centres, equal levels once.
	var centers []float64
	slot, near := make([]int, len(levels)), 1e-6*width
	for _, i := range perm {
		if k := len(centers); k == 0 || levels[i]-centers[k-1] > near {
			if k > 0 {
				width = min(width, levels[i]-centers[k-1])
			}
			centers = append(centers, levels[i])
		}
		slot[i] = len(centers) - 1
	}
	if k := len(centers); k > 1 { // the outer shares may have been moved inwards by half a width
		low, high := centers[0] < width/2, 1-centers[k-1] < width/2
		if low {
			width = min(width, centers[1]/1.5)
		}
		if high {
			width = min(width, (1-centers[k-2])/1.5)
		}
		if k == 2 && low && high { // both shares are moved inwards, towards each other
			width = min(width, 0.5)
		}
	}
	end, index := 0.0, make([]int, len(centers))
	for c, l := range centers {
		from := min(max(l-float64(width*0.5), end), 1-width)
		if from-end > transport.Snap { // the samples between
			b = append(b, from-end)
		} else {
			from = end
		}
		index[c] = len(b)
		b = append(b, width)
		end = from + width
	}
	if 1-end > transport.Snap {
		b = append(b, 1-end)
	}
	at = make([]int, len(levels))
	for i := range at {
		at[i] = index[slot[i]]
	}
	return b, at, nil
}

// SoftQuantiles reads quantiles off x: it returns one value for each of the given levels,
// in their order and in the units of x. Levels are in [0,1], 0.5 for the median, in any
// order. To map samples onto given quantile values instead, see [SoftQuantile].
//
// The quantile at a level is the average of x over a share 1/n of the samples about the
// level; see [QuantileWeights] for another share. At ε = 0 it is sorted x at the position
// pn - 1/2 for the level p, counted from 0 and linearly interpolated between neighbours
// (Hazen's rule), so the median is the usual one. For the rule that is the default of
// numpy and R, the position p(n-1), ask for the level (p(n-1) + 1/2)/n. Where levels are
// nearer to each other than 1/n all shares are narrowed until none overlap; to avoid
// that, ask for such levels in separate calls.
//
// Errors are those of [SoftSort], and a [*DataError] for a level outside [0,1]; cost that
// of 2p+1 targets for p levels.
func SoftQuantiles(x, levels []float64, opts ...Option) ([]float64, error) {
	b, at, err := QuantileWeights(levels, 1/float64(max(len(x), 1)))
	if err != nil {
		return nil, err
	}
	tr, err := solve(option.SoftQuantiles, x, 0, b, opts, false)
	if err != nil {
		return nil, err
	}
	s := tr.Sort()
	out := make([]float64, len(at))
	for i, j := range at {
		out[i] = s[j]
	}
	return out, nil
}

// TopKWeights returns the target weights that separate the k largest of n samples from
// the rest: n-k for the rest, then k ones (k ones alone where k = n). Any other k than 1
// <= k <= n is an [*OptionError].
func TopKWeights(n, k int) ([]float64, error) {
	if k < 1 || k > n {
		return nil, &OptionError{Option: "k", Value: itoa(k),
			Bound: "must be from 1 to the number of samples, " + itoa(n)}
	}
	if uint64(k) > limit.Cells {
		return nil, &OptionError{Option: "k", Value: itoa(k), Bound: "as many targets need too much memory"}
	}
	var b []float64
	if n > k {
		b = append(b, float64(n-k))
	}
	for range k {
		b = append(b, 1)
	}
	return b, nil
}

// SoftTopK returns soft versions of the k largest values of x, k numbers, the largest
// first, in the units of x; 1 <= k <= n. A soft mask of the samples they come from, n
// values in [0,1] of sum k, is SoftQuantile(x, {0, 1}, WithTargetWeights({n-k, k})).
// Errors are those of [SoftSort] and [TopKWeights]; cost that of k+1 targets.
func SoftTopK(x []float64, k int, opts ...Option) ([]float64, error) {
	b, err := TopKWeights(len(x), k)
	if err != nil {
		return nil, err
	}
	tr, err := solve(option.SoftTopK, x, 0, b, opts, false)
	if err != nil {
		return nil, err
	}
	s := tr.Sort()
	out := make([]float64, k)
	for i := range out {
		out[i] = s[len(s)-1-i]
	}
	return out, nil
}
