package quantmf

// This file holds the operators of the paper's §2 on a solved row:
//
//	R = n M cumsum(b)          soft ranks           (Definition 2.2)
//	S = diag(1/c) Mᵀ diag(a) x soft sort
//	T = M q                    soft quantile map    (Eq. quan)
//
// M is row-stochastic by construction (each row is divided by its own sum) and
// c are the plan's own column sums, so that order and range hold at any number
// of iterations (Prop. 2.1). In floating point they are made exact by one code
// path for every sample, a clamp, and a running maximum along the sorted
// samples: each moves a value by a few units in the last place at most.

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Transport is the solved transport of n samples onto m targets. It is not
// changed by its methods and may be used by several goroutines at once. A method
// called after those of another Transport first makes one pass of nm exponentials or
// products and 8nm flops, to put a workspace where the solve left it.
type Transport struct {
	// F (n) and G (m) are the potentials: P_ij = exp((F_i+G_j-(x̃_i-y_j)²)/ε),
	// where x̃ is the squashed x and Σ b_j G_j = 0. A sample of weight 0 has its F
	// without the term ε log a_i.
	F, G []float64
	// Iterations is the number of passes over x; l under WithIterations(l), 0 at ε = 0.
	Iterations int
	// MarginalError is max_j |c_j-b_j|/b_j of the row-exact plan.
	MarginalError float64
	// Converged tells whether MarginalError reached the tolerance (or the
	// rounding of the logits, where that is larger). False under WithIterations
	// unless the plan happens to be there.
	Converged bool

	solution   solution
	lent       *row // where nothing is kept: the row that stands at the solution, for one method
	iterations int  // of WithIterations
	uniformB   bool // b was not given
	midpoint   bool
	hard       *hardPlan // at ε = 0, in place of the solution
}

// solution is what puts a row where a solve left it, bit for bit.
type solution struct {
	id       uint64
	n, m     int
	weighted bool
	kept     []float64 // b, y, h, href; x; where weighted, a
	eps, xc  float64
	squash   squashed
	power    bool
}

// rows are the workspaces of calls on transports. Each stands where its last call
// left it, which as a rule is where the next wants it.
var rows = sync.Pool{New: func() any { return new(row) }}

// solutions counts the solutions kept so far: their numbers.
var solutions atomic.Uint64

// levels returns those of the four vectors over levels.
func (s *solution) levels(which int) []float64 {
	return s.kept[which*s.m : (which+1)*s.m : (which+1)*s.m]
}

func (s *solution) samples() (x, a []float64) {
	x = s.kept[4*s.m:]
	return x[:s.n], x[s.n:]
}

// keep copies the solution where the row stands into t, and makes room for F and G.
func (r *row) keep(t *Transport, weighted bool) {
	n, m := r.n, r.m
	size := 2*n + 5*m
	if weighted {
		size += n
	}
	all := make([]float64, size)
	t.F, t.G, all = all[:n:n], all[n:n+m:n+m], all[n+m:]
	r.of = solutions.Add(1)
	s := &t.solution
	*s = solution{id: r.of, n: n, m: m, weighted: weighted, kept: all, eps: r.eps, xc: r.xc, squash: r.squash, power: r.power}
	for i, v := range [...][]float64{r.b, r.y, r.h, r.href} {
		copy(s.levels(i), v)
	}
	x, a := s.samples()
	copy(x, r.x)
	copy(a, r.a)
}

// row returns a workspace that stands at the solution; it goes back to rows.
func (t *Transport) row() *row {
	if t.lent != nil {
		return t.lent
	}
	r, s := rows.Get().(*row), &t.solution
	if r.of == s.id {
		return r
	}
	x, a := s.samples()
	r.resize(s.n, s.m)
	r.setTargets(s.levels(1))
	r.setWeights(nil, nil)
	copy(r.a, a)
	copy(r.b, s.levels(0))
	r.squash = s.squash
	r.place(x)
	r.setEpsilon(s.eps)
	copy(r.h, s.levels(2))
	copy(r.href, s.levels(3))
	r.power = s.power
	r.refer()
	r.aimed, r.built = true, false
	r.pass(r.h)
	r.of = s.id
	return r
}

// configs are what the options of calls are read into.
var configs = sync.Pool{New: func() any { return new(config) }}

// operatorDefaults are the defaults of all operators.
func operatorDefaults() config {
	return config{epsilon: 0.01, tolerance: 1e-9, maxIterations: 3000}
}

// Solve transports x onto the targets. Default: n targets; see [WithLevels].
//
// Errors: [*DataError] for a NaN or an infinity in x, [*ShapeError] for an empty
// x or weights of another length, [*OptionError], also for more levels than [WithLevels]
// allows, by the name of what gave their number; under [WithStrict] a
// [*ConvergenceError]. Cost: about 5 passes of 8nm flops and m³/3 each, 2 to 3 where n
// is at least 1024; memory 8(2n+5m) bytes, kept by the Transport, and a workspace of
// 8(15n+4m²) bytes and 8nm up to 4 MB, that the next call takes over.
func Solve(x []float64, opts ...Option) (*Transport, error) {
	return solve(forSolve, x, 0, nil, opts, true)
}

// SoftRank returns the n soft ranks of x, in [0,n] and ordered as x: the
// paper's formula, see [WithMidpointRanks] for the unbiased form. Default: n
// levels, time O(n³) and memory O(n²): 0.6 s for 1024 samples and 5 s for 2048 on one
// core, an error from 20725 on. [WithLevels](64) with WithMidpointRanks gives the midpoint
// ranks of n levels within n/3000 at the default ε, n/1000 at a tenth of it, and takes 0.3 ms
// there. Errors and cost are those of [Solve].
//
// The ranks of ott-jax, from 0 to n-1, are [Transport.Quantile] at q_j = j(n-1)/(m-1), j = 0,
// ..., m-1, under [SquashLogisticUnit] (see the example of Quantile): these less 1 where m = n
// and nowhere else.
func SoftRank(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(forRank, x, 0, nil, opts, false)
	if err != nil {
		return nil, err
	}
	return t.Rank(), nil
}

// SoftSort returns m soft order statistics of x, in the units of x: raw x is
// averaged under the plan, which alone sees the squash. They are non-decreasing
// and in [min x, max x]. Default: n levels, time O(n³) and memory O(n²), an error from
// n = 20725 on. Errors and cost are those of [Solve].
func SoftSort(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(forSort, x, 0, nil, opts, false)
	if err != nil {
		return nil, err
	}
	return t.Sort(), nil
}

// SoftQuantile maps x, n samples, onto the quantile values q, m = len(q)
// non-decreasing numbers: n values in [q_1,q_m], ordered as x. Errors and cost
// are those of [Solve]; an unsorted q is a [*DataError].
func SoftQuantile(x, q []float64, opts ...Option) ([]float64, error) {
	if err := checkLevels(q, -1); err != nil {
		return nil, err
	}
	t, err := solve(forQuantile, x, len(q), nil, opts, false)
	if err != nil {
		return nil, err
	}
	return t.Quantile(q)
}

// maxMagnitude bounds samples and quantile values, so that no difference or sum
// of them overflows.
const (
	maxMagnitude = 1e300
	bounded      = " must be finite and of magnitude at most 1e300"
)

// tooLarge returns the index of the first number out of these bounds, -1 for none.
func tooLarge(x []float64) int {
	for j, v := range x {
		if !(math.Abs(v) <= maxMagnitude) {
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
			return &DataError{Row: row, Col: j, Value: q[j], Problem: "q must not fall: the value before is " + ftoa(q[j-1])}
		}
	}
	return nil
}

// countLevels finds m: from the targets, the target weights, m0 (the length of q, 0
// where there is none), WithLevels, or n; all that are given must agree.
func (c *config) countLevels(n, m0 int) (int, error) {
	m := n
	if c.given.has(kLevels) {
		m = c.levels
	}
	if c.targets != nil {
		m = len(c.targets)
	} else if c.targetWeights != nil && !c.given.has(kLevels) && m0 == 0 {
		m = len(c.targetWeights)
	}
	if m0 > 0 {
		if c.given.has(kLevels) && c.levels != m0 {
			return 0, &OptionError{Option: kLevels.String(), Value: itoa(c.levels), Bound: "q has " + itoa(m0) + " values"}
		}
		if c.targets != nil && len(c.targets) != m0 {
			return 0, &ShapeError{What: "targets", Got: itoa(len(c.targets)), Want: "as many as q, " + itoa(m0)}
		}
		m = m0
	}
	if c.targetWeights != nil && len(c.targetWeights) != m {
		return 0, &ShapeError{What: "target weights", Got: itoa(len(c.targetWeights)), Want: itoa(m)}
	}
	return m, nil
}

// maxCells bounds the numbers that one problem of n samples and m levels takes, nm + 4m²:
// those of a plan and of the m × m systems. 2^31 are 16 GiB; where addresses have 32 bits
// 2^27 are 1 GiB.
const maxCells = 1 << (27 + 4*(^uint(0)>>63))

// tooManyCells tells whether n samples and m levels take more. It divides, since products
// could overflow.
func tooManyCells(n, m int) bool {
	return uint64(m) > maxCells || m > 0 && uint64(n)+4*uint64(m) > maxCells/uint64(m)
}

// mostLevels returns the largest m that n samples allow, 0 for none.
func mostLevels(n int) int {
	lo, hi := 0, maxCells/4
	for lo < hi {
		if mid := lo + (hi-lo+1)/2; tooManyCells(n, mid) {
			hi = mid - 1
		} else {
			lo = mid
		}
	}
	return lo
}

// checkSize reports a problem that takes too much memory, by what gave its m. At ε = 0 no
// system is solved, and n and m bound each other only where the plan can be asked for.
func (c *config) checkSize(t target, n, m int, plan bool) error {
	if c.epsilon == 0 && !plan && m <= maxCells/16 || !tooManyCells(n, m) {
		return nil
	}
	most := itoa(mostLevels(n))
	bound := "must be at most " + most + " levels for " + itoa(n) + " samples: more need too much memory"
	switch {
	case t.sizes == "k":
		return &OptionError{Option: t.sizes, Value: itoa(m), Bound: bound}
	case t.sizes != "":
		return &ShapeError{What: t.sizes, Got: itoa(m) + " levels", Want: "at most " + most + " for " + itoa(n) + " samples: more need too much memory"}
	case c.given.has(kTargets):
		return &OptionError{Option: kTargets.String(), Value: "len " + itoa(m), Bound: bound}
	case c.given.has(kTargetWeights):
		return &OptionError{Option: kTargetWeights.String(), Value: "len " + itoa(m), Bound: bound}
	case !c.given.has(kLevels):
		return &OptionError{Option: kLevels.String(), Value: itoa(m), Bound: "the default of one level a sample needs too much memory here: give at most " + most + ", of which a few hundred are plenty"}
	}
	return &OptionError{Option: kLevels.String(), Value: itoa(m), Bound: bound}
}

func (c *config) checkSamples(x []float64, row int) error {
	if len(x) == 0 {
		return &ShapeError{What: "x", Got: "no samples", Want: "at least one"}
	}
	top := largestOf(x)
	if !(top <= maxMagnitude) {
		i := tooLarge(x)
		return &DataError{Row: row, Col: i, Value: x[i], Problem: "x" + bounded}
	}
	if c.squash == SquashNone && top > maxPlace {
		for i, v := range x {
			if !(v >= -maxPlace && v <= maxPlace) {
				return &DataError{Row: row, Col: i, Value: v, Problem: "without a squash x must be of magnitude at most " + ftoa(maxPlace)}
			}
		}
	}
	if c.weights != nil && len(c.weights) != len(x) {
		return &ShapeError{What: "weights", Got: itoa(len(c.weights)), Want: "as many as samples, " + itoa(len(x))}
	}
	return nil
}

// solve is [Solve] for the function t, whose quantile values fix the number of
// levels to m0 (0: nothing does) or which has target weights b of its own. Where the
// solution is not kept, the Transport serves one method, once, and has no potentials.
func solve(t target, x []float64, m0 int, b []float64, opts []Option, keep bool) (*Transport, error) {
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
		tr.hard = newHardPlan(x, c, m)
		if keep {
			tr.F, tr.G = tr.hard.potentials()
		}
		tr.Converged = true
		return tr, nil
	}
	r := rows.Get().(*row)
	r.resize(len(x), m)
	out := c.run(r, x)
	tr.Iterations, tr.MarginalError, tr.Converged = out.passes, out.rel, out.converged
	if c.strict && !out.converged {
		rows.Put(r)
		return nil, out.err(-1, c)
	}
	if !keep {
		tr.lent = r
		return tr, nil
	}
	defer rows.Put(r)
	r.keep(tr, c.weights != nil)
	r.potentials(tr.F, tr.G, c.weights != nil)
	return tr, nil
}

func (o outcome) err(row int, c *config) error {
	return &ConvergenceError{Row: row, Iterations: o.passes, MarginalError: o.rel, Tolerance: c.tolerance}
}

// run sets the row up for x and solves it.
func (c *config) run(r *row, x []float64) outcome {
	c.set(r, x)
	if c.iterations > 0 {
		return c.iterated(r)
	}
	return c.polished(r, r.solve(c.tolerance, c.maxIterations, nil))
}

// runAll is run for rows abreast that are set up.
func (c *config) runAll(a *abreast) {
	if c.iterations == 0 {
		a.solve(c.tolerance, c.maxIterations)
	}
	for i, r := range a.rows {
		if c.iterations > 0 {
			a.ends[i] = c.iterated(r)
		} else {
			a.ends[i] = c.polished(r, a.ends[i])
		}
	}
}

func (c *config) iterated(r *row) outcome {
	out := r.iterate(c.iterations)
	out.converged = out.rel <= max(c.tolerance, r.roundingFloor())
	return out
}

// set sets the row up for x.
func (c *config) set(r *row, x []float64) {
	r.setTargets(c.targets)
	r.setWeights(c.weights, c.targetWeights)
	r.setSamples(x, c.squash)
	r.setEpsilon(c.epsilon)
}

// polished ends a solve of weakly coupled levels.
func (c *config) polished(r *row, out outcome) outcome {
	if out.converged && r.coupling() < weak {
		out = r.polish(c.weights, c.targetWeights, out, c.maxIterations)
	}
	return out
}

// potentials fills F and G from h: g_j = ε h_j + Y_j² - 2δY_j and
// f_i = ε(log a_i - log Z_i) + (X_i+δ)², with the gauge Σ b_j g_j = 0.
func (r *row) potentials(f, g []float64, weighted bool) {
	delta := r.xc - r.yc
	mean := 0.0
	for j, y := range r.cy {
		g[j] = float64(r.eps*r.h[j]) + float64(y*(y-2*delta))
		mean += float64(r.b[j] * g[j])
	}
	for j := range g {
		g[j] -= mean
	}
	// log Z_i is that of Σ_j exp(h_j+s_i Y_j): what e and w leave out is put back.
	rest := r.v
	if r.power {
		clear(rest)
	} else {
		kernel.Tops(rest, r.s, r.href, r.cy)
	}
	if weighted {
		kernel.Log(r.gx, r.a)
		for i, top := range rest {
			logA := r.gx[i]
			if r.a[i] == 0 {
				logA = 0
			}
			rest[i] = logA - top - r.mid
		}
	} else {
		logA := elem.Log(r.a[0])
		for i, top := range rest {
			rest[i] = logA - top - r.mid
		}
	}
	kernel.Log(f, r.z)
	kernel.Potential(f, rest, r.cx, r.eps, delta, mean)
}

// Plan returns the n × m plan P: rows sum to a, columns to b within
// MarginalError.
func (t *Transport) Plan() Mat {
	if t.hard != nil {
		return t.hard.plan()
	}
	r := t.row()
	defer rows.Put(r)
	p := NewMat(r.n, r.m)
	r.eachSample(func(i int, to []float64) {
		for j, v := range to {
			p.Set(i, j, float64(r.a[i]*v))
		}
	})
	return p
}

// eachSample calls f with every sample and its M_i, which is lost after it. It uses lam.
func (r *row) eachSample(f func(i int, plan []float64)) {
	const lanes = kernel.Lanes
	r.tiles(func(lo, hi int, e []float64) {
		for i := lo; i < min(hi, r.n); i++ {
			from := e[(i-lo)/lanes*lanes*r.m+i%lanes:]
			for j, w := range r.w {
				r.lam[j] = float64(from[j*lanes]*w) / r.z[i]
			}
			f(i, r.lam)
		}
	})
}

// Rank returns the n soft ranks.
func (t *Transport) Rank() []float64 {
	n, b := t.size()
	q := make([]float64, len(b))
	t.rankLevels(q, n, b)
	out := make([]float64, n)
	t.average(out, q)
	return out
}

func (t *Transport) size() (n int, b []float64) {
	if t.hard != nil {
		return len(t.hard.x), t.hard.b
	}
	if t.lent != nil {
		return t.lent.n, t.lent.b
	}
	return t.solution.n, t.solution.levels(0)
}

// rankLevels fills q = n cumsum(b), or n(cumsum(b)-b/2)+1/2, exactly where b is
// uniform.
func (t *Transport) rankLevels(q []float64, n int, b []float64) {
	sum := 0.0
	m := float64(len(b))
	for j, bj := range b {
		lo := sum
		sum += bj
		if t.uniformB {
			lo, sum = float64(j)/m, float64(j+1)/m
		}
		switch {
		case t.midpoint && t.uniformB:
			q[j] = float64(n)*float64(2*j+1)/(2*m) + 0.5
		case t.midpoint:
			q[j] = float64(float64(n)*middle(lo, sum)) + 0.5
		case t.uniformB:
			q[j] = float64(n) * float64(j+1) / m // as integers they may exceed 32 bits
		default:
			q[j] = min(float64(float64(n)*sum), float64(n))
		}
	}
}

// Sort returns the m soft order statistics, in the units of x.
func (t *Transport) Sort() []float64 {
	if t.hard != nil {
		return t.hard.sorted()
	}
	r := t.row()
	defer rows.Put(r)
	out := make([]float64, r.m)
	r.sorted(out)
	low, high := r.ends()
	run := low
	for j, s := range out {
		run = max(run, min(low+s, high))
		out[j] = run
	}
	return out
}

// Quantile returns T = M q for m non-decreasing values q: n values in [q_1,q_m], ordered
// as x.
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
	if err := checkLevels(q, -1); err != nil {
		return err
	}
	if _, b := t.size(); len(q) != len(b) {
		return &ShapeError{What: "q", Got: itoa(len(q)) + " values", Want: "as many as targets, " + itoa(len(b))}
	}
	return nil
}

func (t *Transport) average(out, q []float64) {
	if t.hard != nil {
		t.hard.average(out, q)
		return
	}
	r := t.row()
	defer rows.Put(r)
	r.quantile(r.gx, q)
	copy(out, r.gx)
}

// ask has the next solve take M q for t, which average is then to be called with, in
// its last sweep: E is read once less.
func (r *row) ask(t, q []float64) {
	r.goal, r.first = t, q[0]
	r.increments(q)
}

// increments fills inc with those of levels.
func (r *row) increments(v []float64) {
	for j := range v[1:] {
		r.inc[j] = v[j+1] - v[j]
	}
}

// average fills t (np numbers) with M q.
func (r *row) average(t, q []float64) {
	if !r.averaged {
		r.increments(q)
		r.tiles(func(lo, hi int, e []float64) { kernel.Average(t[lo:hi], e, r.w, r.z[lo:hi], q[0], r.inc) })
	}
	r.averaged = false
}

// quantile is average, in order and in range to the last bit.
func (r *row) quantile(t, q []float64) {
	r.average(t, q)
	r.arrange()
	run, top := q[0], q[len(q)-1]
	for _, i := range r.perm[:r.n] {
		switch v := t[i]; {
		case v < run:
			t[i] = run
		case v > top:
			t[i], run = top, top
		default:
			run = v
		}
	}
	if invariants {
		r.checkOrder(t, q)
	}
}

// ends returns the smallest and the largest sample.
func (r *row) ends() (low, high float64) {
	r.arrange()
	return r.x[r.perm[0]], r.x[r.perm[r.n-1]]
}

// sorted fills S_j - min x = Σ_i a_i M_ij (x_i - min x) / c_j: only positive
// numbers are added, and an offset of x costs no digits.
func (r *row) sorted(out []float64) {
	low, high := r.ends()
	unit := scaleOf([]float64{low, high})
	r.columns(r.lam, r.a)
	for i, a := range r.a {
		r.gx[i] = float64(a * (r.x[i]/unit - low/unit))
	}
	r.columns(r.rho, r.gx)
	for j := range out {
		if r.lam[j]*r.w[j] > 1e-100 {
			out[j] = r.rho[j] / r.lam[j] * unit
		} else {
			out[j] = r.farColumn(j, low)
		}
	}
}

// farColumn averages x-low over a column whose entries are all flushed: only
// their ratios count, taken in logarithms.
func (r *row) farColumn(j int, low float64) float64 {
	terms := make([]float64, r.m)
	logs := make([]float64, r.n)
	top := math.Inf(-1)
	for i := range logs {
		if r.a[i] == 0 {
			logs[i] = math.Inf(-1)
			continue
		}
		for k, y := range r.cy {
			terms[k] = r.h[k] + float64(r.s[i]*y)
		}
		logs[i] = terms[j] - logSum(terms) + elem.Log(r.a[i])
		top = max(top, logs[i])
	}
	sum, dot := 0.0, 0.0
	for i, l := range logs {
		w := elem.Exp(l - top)
		sum += w
		dot += float64(w * (r.x[i] - low))
	}
	return dot / sum
}
