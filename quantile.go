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
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/qmf"
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
	ranks      ranking
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
	return config{Settings: qmf.Settings{Epsilon: 0.01, Tolerance: 1e-9, MaxIterations: 3000}}
}

// Solve transports the samples x onto m targets, for [Transport.Rank], [Transport.Sort],
// [Transport.Quantile] and their derivatives. Default: as many levels as ε can tell apart; see [WithLevels].
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

// SoftRank returns the n soft ranks of x, from 1 to n and ordered as x. Errors and cost are those of [Solve].
//
// Default: as many levels as ε can tell apart ([WithLevels]), and ranks without bias, of mean (n+1)/2: within
// 1e-3 of n, most often 1e-4, of R = n M cumsum(b) with n levels. Time and memory grow with n, not faster.
// Where levels, targets or their weights are given, ranks are the paper's formula, in [0,n]; see
// [WithMidpointRanks] for the unbiased form.
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

// SoftSort returns soft order statistics of x: S = diag(1/c) Mᵀ diag(a) x, non-decreasing, in [min x, max x]
// and in the units of x. The squash affects the plan alone; the values averaged are those of x. Errors and
// cost are those of [Solve].
//
// Default: n values, one a place. Where these are more than ε can tell apart ([WithLevels]), they are cubics
// between as many as it can: within 1e-3 of the range of x of those by n levels, but for the few largest of
// heavy tails and those beside a jump, as between two clusters (1e-2). With levels, targets or their
// weights given, m values, one a level.
func SoftSort(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(option.SoftSort, x, 0, nil, opts, false)
	if err != nil {
		return nil, err
	}
	s := t.Sort()
	if !t.ranks.chosen {
		return s, nil
	}
	out := make([]float64, len(x))
	transport.SortedPlaces(out, s, x)
	return out, nil
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

// chooseLevels chooses levels where nothing gives them and n are more than ε resolves.
func (c *config) chooseLevels(t option.Function, n, m0 int) {
	c.ranks.uniform = c.targetWeights == nil
	if c.given.Has(option.Levels) || c.targets != nil || c.targetWeights != nil || m0 > 0 || c.Epsilon == 0 {
		return
	}
	m := transport.FewLevels(n, c.Epsilon, t.Ranks())
	if m == n {
		return
	}
	c.ranks.chosen = true
	if cap(c.grid) < 2*m {
		c.grid = make([]float64, 2*m)
	}
	c.targets, c.targetWeights = c.grid[:m:m], c.grid[m:2*m]
	transport.FewTargets(c.targets, c.targetWeights, n)
}

// countLevels returns m: the number of targets or target weights, m0 (the length of q, 0
// where there is none) or WithLevels, which must agree where given; otherwise n.
func (c *config) countLevels(n, m0 int) (int, error) {
	m := n
	if c.given.Has(option.Levels) {
		m = c.Levels
	}
	if c.targets != nil {
		m = len(c.targets)
	} else if c.targetWeights != nil && !c.given.Has(option.Levels) && m0 == 0 {
		m = len(c.targetWeights)
	}
	if m0 > 0 {
		if c.given.Has(option.Levels) && c.Levels != m0 {
			return 0, &OptionError{Option: option.Levels.String(), Value: itoa(c.Levels),
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
	if c.Epsilon == 0 && !plan && m <= limit.Cells/16 || !limit.TooMany(n, m) {
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
			Bound: "as many levels as ε tells apart need too much memory here: give at most " + most +
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
	if c.Squash == transport.None && top > limit.Point {
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
		*c = config{operating: operating{grid: c.grid}}
		configs.Put(c)
	}()
	grid := c.grid
	*c = operatorDefaults()
	c.targetWeights, c.grid = b, grid
	if err := parse(t, c, opts); err != nil {
		return nil, err
	}
	if err := c.checkSamples(x, -1); err != nil {
		return nil, err
	}
	c.chooseLevels(t, len(x), m0)
	m, err := c.countLevels(len(x), m0)
	if err != nil {
		return nil, err
	}
	if err := c.checkSize(t, len(x), m, keep); err != nil {
		return nil, err
	}
	if c.ctx != nil && c.ctx.Err() != nil {
		return nil, &interrupted{c.ctx.Err()}
	}
	tr := &Transport{ranks: c.ranks, iterations: c.iterations}
	if c.Epsilon == 0 {
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
	if c.ctx != nil && c.ctx.Err() != nil {
		workspaces.Put(r)
		return nil, &interrupted{c.ctx.Err()}
	}
	tr.Iterations, tr.MarginalError, tr.Converged = out.Passes, out.Error, out.Converged
	if c.strict && !out.Converged {
		workspaces.Put(r)
		return nil, notConverged(out, -1, c.Tolerance)
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
	r.Duals(tr.F, tr.G)
	return tr, nil
}

// notConverged is the error of a row with the outcome o.
func notConverged(o transport.Outcome, row int, tolerance float64) error {
	return &ConvergenceError{Row: row, Iterations: o.Passes, MarginalError: o.Error, Tolerance: tolerance}
}

// problem is the transport of the samples x.
func (c *config) problem(x []float64) transport.Problem {
	p := transport.Problem{X: x, A: c.weights, Y: c.targets, B: c.targetWeights,
		Squash: c.Squash, Epsilon: c.Epsilon}
	if c.ctx != nil {
		p.Done = c.ctx.Done()
	}
	return p
}

// solve solves the problem loaded in r.
func (c *config) solve(r *transport.Row) transport.Outcome {
	if c.iterations > 0 {
		return c.iterate(r)
	}
	return c.polish(r, r.Solve(c.Tolerance, c.MaxIterations, nil)) // each ends by itself where ctx does
}

// polish finds the last digits of a solve whose levels are weakly coupled.
func (c *config) polish(r *transport.Row, out transport.Outcome) transport.Outcome {
	return r.Polish(c.weights, c.targetWeights, out, c.MaxIterations)
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
	t.ranks.levels(q, n, b)
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

// ranking is what ranks levels have.
type ranking struct {
	chosen   bool // the levels are those of chooseLevels
	midpoint bool // of WithMidpointRanks
	uniform  bool // b was not given
}

// levels fills q = n cumsum(b), or n(cumsum(b)-b/2)+1/2 for midpoints, exactly where b is uniform. Chosen
// levels have the ranks of their places, from 1 to n, whatever b is.
func (r ranking) levels(q []float64, n int, b []float64) {
	sum := 0.0
	m := float64(len(b))
	for j, bj := range b {
		lo := sum
		sum += bj
		switch {
		case r.chosen:
			q[j] = 1 + float64(n-1)*float64(j)/(m-1)
		case r.midpoint && r.uniform:
			q[j] = float64(n)*float64(2*j+1)/(2*m) + 0.5
		case r.midpoint:
			q[j] = float64(float64(n)*elem.Middle(lo, sum)) + 0.5
		case r.uniform:
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
	b, at = transport.QuantileWeights(levels, width)
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
