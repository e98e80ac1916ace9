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

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Transport is the solved transport of n samples onto m targets. It is not
// changed by its methods and may be used by several goroutines at once.
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

	row        *row
	iterations int  // of WithIterations
	uniformB   bool // b was not given
	midpoint   bool
	hard       *hardPlan // at ε = 0, in place of the solved row
}

// operatorDefaults are the defaults of all operators.
func operatorDefaults() config {
	return config{epsilon: 0.01, tolerance: 1e-9, maxIterations: 3000}
}

// Solve transports x onto the targets. Default: n targets; see [WithLevels].
//
// Errors: [*DataError] for a NaN or an infinity in x, [*ShapeError] for an empty
// x or weights of another length, [*OptionError]; under [WithStrict] a
// [*ConvergenceError]. Cost: 4 to 5 passes of 8nm flops and m³/3 each; memory
// 8nm bytes, kept by the Transport.
func Solve(x []float64, opts ...Option) (*Transport, error) {
	return solve(forSolve, x, 0, nil, opts)
}

// SoftRank returns the n soft ranks of x, in [0,n] and ordered as x: the
// paper's formula, see [WithMidpointRanks] for the unbiased form. Default: n
// levels, time and memory O(n²); at the default ε a few dozen levels give the
// same within a fraction of a rank. Errors and cost are those of [Solve].
func SoftRank(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(forRank, x, 0, nil, opts)
	if err != nil {
		return nil, err
	}
	return t.Rank(), nil
}

// SoftSort returns m soft order statistics of x, in the units of x: raw x is
// averaged under the plan, which alone sees the squash. They are non-decreasing
// and in [min x, max x]. Default: n levels, time and memory O(n²). Errors and
// cost are those of [Solve].
func SoftSort(x []float64, opts ...Option) ([]float64, error) {
	t, err := solve(forSort, x, 0, nil, opts)
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
	t, err := solve(forQuantile, x, len(q), nil, opts)
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
		if !(v >= -maxMagnitude && v <= maxMagnitude) {
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

// levels finds m: from the targets, the target weights, m0 (the length of q, 0
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

// maxCells bounds n·m of one plan: 2^31 numbers are 16 GiB.
const maxCells = 1 << 31

func (c *config) checkSamples(x []float64, row int) error {
	if len(x) == 0 {
		return &ShapeError{What: "x", Got: "no samples", Want: "at least one"}
	}
	if i := tooLarge(x); i >= 0 {
		return &DataError{Row: row, Col: i, Value: x[i], Problem: "x" + bounded}
	}
	if c.squash == SquashNone {
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
// levels to m0 (0: nothing does) or which has target weights b of its own.
func solve(t target, x []float64, m0 int, b []float64, opts []Option) (*Transport, error) {
	c := operatorDefaults()
	c.targetWeights = b
	if err := parse(t, &c, opts); err != nil {
		return nil, err
	}
	if err := c.checkSamples(x, -1); err != nil {
		return nil, err
	}
	m, err := c.countLevels(len(x), m0)
	if err != nil {
		return nil, err
	}
	if uint64(len(x))*uint64(m) > maxCells {
		return nil, &OptionError{Option: kLevels.String(), Value: itoa(m), Bound: "a plan of " + itoa(len(x)) + "×" + itoa(m) + " needs too much memory; ask for fewer levels"}
	}
	tr := &Transport{uniformB: c.targetWeights == nil, midpoint: c.midpoint, iterations: c.iterations}
	if c.epsilon == 0 {
		tr.hard = newHardPlan(x, &c, m)
		tr.F, tr.G = tr.hard.potentials()
		tr.Converged = true
		return tr, nil
	}
	r := new(row)
	r.resize(len(x), m)
	tr.row = r
	out := c.run(r, x)
	tr.Iterations, tr.MarginalError, tr.Converged = out.passes, out.rel, out.converged
	if c.strict && !out.converged {
		return nil, out.err(-1, &c)
	}
	tr.potentials()
	return tr, nil
}

func (o outcome) err(row int, c *config) error {
	return &ConvergenceError{Row: row, Iterations: o.passes, MarginalError: o.rel, Tolerance: c.tolerance}
}

// run sets the row up for x and solves it.
func (c *config) run(r *row, x []float64) outcome {
	r.setTargets(c.targets)
	r.setWeights(c.weights, c.targetWeights)
	r.setSamples(x, c.squash, false)
	r.setEpsilon(c.epsilon)
	if c.iterations > 0 {
		out := r.iterate(c.iterations)
		out.converged = out.rel <= max(c.tolerance, r.roundingFloor())
		return out
	}
	out := r.solve(c.tolerance, c.maxIterations, nil)
	if out.converged && r.coupling() < weak {
		out = r.polish(c.weights, c.targetWeights, out, c.maxIterations)
	}
	return out
}

// potentials fills F and G from h: g_j = ε h_j + Y_j² - 2δY_j and
// f_i = ε(log a_i - log Z_i) + (X_i+δ)², with the gauge Σ b_j g_j = 0.
func (t *Transport) potentials() {
	r := t.row
	delta := r.xc - r.yc
	t.F, t.G = make([]float64, r.n), make([]float64, r.m)
	mean := 0.0
	for j, y := range r.cy {
		g := float64(r.eps*r.h[j]) + float64(y*(y-2*delta))
		t.G[j] = g
		mean += float64(r.b[j] * g)
	}
	for j := range t.G {
		t.G[j] -= mean
	}
	logA := make([]float64, r.n)
	kernel.Log(t.F, r.z)
	kernel.Log(logA, r.a)
	for i := range t.F {
		// log Σ_j exp(h_j+s_i Y_j): what e and w leave out of Z is put back.
		l := -t.F[i] - r.mid
		if !r.power {
			top := math.Inf(-1)
			for j, y := range r.cy {
				top = max(top, r.href[j]+float64(r.s[i]*y))
			}
			l -= top
		}
		if r.a[i] > 0 {
			l += logA[i]
		}
		d := r.cx[i] + delta
		t.F[i] = float64(r.eps*l) + float64(d*d) + mean
	}
}

// Plan returns the n × m plan P: rows sum to a, columns to b within
// MarginalError.
func (t *Transport) Plan() Mat {
	if t.hard != nil {
		return t.hard.plan()
	}
	r := t.row
	p := NewMat(r.n, r.m)
	for i := range r.n {
		for j := range r.m {
			p.Set(i, j, float64(r.a[i]*r.plan(i, j)))
		}
	}
	return p
}

// plan returns M_ij.
func (r *row) plan(i, j int) float64 {
	return float64(r.e[(i/kernel.Lanes*r.m+j)*kernel.Lanes+i%kernel.Lanes]*r.w[j]) / r.z[i]
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
	return t.row.n, t.row.b
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
			q[j] = float64(n*(2*j+1))/float64(2*m) + 0.5
		case t.midpoint:
			q[j] = float64(float64(n)*middle(lo, sum)) + 0.5
		case t.uniformB:
			q[j] = float64(n*(j+1)) / m
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
	out := make([]float64, t.row.m)
	r := t.row.fork()
	r.sorted(out)
	low, high := r.ends()
	run := low
	for j, s := range out {
		run = max(run, min(low+s, high))
		out[j] = run
	}
	return out
}

// Quantile returns T = M q for m non-decreasing values q.
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
	r := t.row.fork()
	r.quantile(r.gx, q)
	copy(out, r.gx)
}

// quantile fills t (np numbers) with M q, in order and in range.
func (r *row) quantile(t, q []float64) {
	for j := range q[1:] {
		r.inc[j] = q[j+1] - q[j]
	}
	kernel.Average(t, r.e, r.w, r.z, q[0], r.inc)
	run, top := q[0], q[len(q)-1]
	for _, i := range r.perm[:r.n] {
		if v := t[i]; v > run {
			run = v
			if v > top {
				run = top
			}
		}
		t[i] = run
	}
	if invariants {
		r.checkOrder(t, q)
	}
}

// ends returns the smallest and the largest sample.
func (r *row) ends() (low, high float64) { return r.x[r.perm[0]], r.x[r.perm[r.n-1]] }

// sorted fills S_j - min x = Σ_i a_i M_ij (x_i - min x) / c_j: only positive
// numbers are added, and an offset of x costs no digits.
func (r *row) sorted(out []float64) {
	low, high := r.ends()
	unit := scaleOf([]float64{low, high})
	kernel.Divide(r.v, r.a, r.z)
	kernel.ColSums(r.lam, r.e, r.v)
	for i := range r.v {
		r.v[i] *= r.x[i]/unit - low/unit
	}
	kernel.ColSums(r.rho, r.e, r.v)
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

// fork returns a row that shares the solution with r and has scratch of its own.
func (r *row) fork() *row {
	f := *r
	m := r.m
	buf := make([]float64, 2*r.np+11*r.mp+m+2*m*r.mp)
	take := func(k int) (v []float64) { v, buf = buf[:k:k], buf[k:]; return v }
	f.v, f.gx = take(r.np), take(r.np)
	for _, p := range []*[]float64{&f.piv, &f.floor, &f.lam, &f.rho, &f.inc, &f.dir, &f.cum, &f.total, &f.work} {
		*p = take(r.mp)[:m]
	}
	f.mu = take(m + r.mp)
	f.fac, f.sums = take(m*r.mp), take(m*r.mp)
	return &f
}
