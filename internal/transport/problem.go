package transport

// This file holds the problem of one row: n samples of weight a_i, which are squashed and
// centred, and m targets y_j of weight b_j,
//
//	X_i = x̃_i - x̄,   Y_j = y_j - ȳ,   s_i = 2X_i/ε,
//
// x̄ and ȳ being the middles of their ranges, so that an offset of x costs no digits (recenter makes
// x̄ the median where samples lie very far apart). Vectors over samples are padded to whole blocks;
// padding has weight 0. Vectors over levels have a capacity of whole blocks.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/pool"
)

const unit = 0x1p-53 // u, the unit roundoff

// Problem is the problem of one row as it is given. Load reads all of it and keeps
// Observed and Done alone.
type Problem struct {
	X []float64 // n samples, finite
	// Observed marks the samples that count; nil: all. The others have weight 0, no part in
	// the moments of the squash, and gradient 0. It is read until the next Load.
	Observed []bool
	// A are n weights >= 0, brought to sum 1; nil: even over the observed samples. Those of samples that are
	// not observed must be 0.
	A []float64
	// Weighed says that A weighs the moments of the squash as well: the row is then one that has each sample
	// as often.
	Weighed bool
	Y       []float64 // m targets, increasing; nil: the regular grid on [0,1]
	B       []float64 // m weights > 0, brought to sum 1; nil: even
	Logits  []float64 // in place of B: b = softmax(Logits)
	Squash  Kind
	Epsilon float64 // ε > 0
	// Done, where it is not nil, ends what the row computes soon after it is closed: between tiles of samples
	// and between panels of the Laplacian. Nothing is of use then but another Load.
	Done <-chan struct{}
}

// problem is a row that is loaded.
type problem struct {
	memory *pool.Arena // of what it makes; nil: it is not counted
	samples
	targets
	eps float64
	s   []float64 // s_i, np
	// rooted says that the powers of s that a matrix keeps are those of this s and of these targets.
	rooted bool
	steep  float64 // max|s|
	reach  float64 // max|s| over the samples that may lie at a boundary between levels
	// anchor is the level whose potential is kept at 0; where it is -1 the middle of the range of
	// the potentials is. See recenter.
	anchor int
	done   <-chan struct{} // see Problem
}

// ended tells whether the work is to end.
func (r *problem) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// samples are x, its weights and its order.
type samples struct {
	n, np    int
	x        []float64  // as given, np
	xs       []float64  // x̃, np, padded with x̃_1
	a        []float64  // np, of sum 1, 0 in the padding
	even     bool       // a is 1/n for all samples
	observed []bool     // see Problem
	weighed  bool       // see Problem
	squash   Squash     // what made xs of x
	extent   [2]float64 // ends of xs
	xc       float64    // x̄
	cx       []float64  // X, np
	perm     []int32    // where ordered: the samples in the order of x
	ordered  bool
	sorter   order.Sorter
}

// targets are y and its weights.
type targets struct {
	m, mp   int       // mp: m padded, the stride of m × m matrices
	y       []float64 // as given, m
	yc      float64   // ȳ
	cy, dy  []float64 // Y, m; increments of y, m-1
	step    float64   // the mean of dy
	regular bool      // y is a grid of that step, to rounding
	grid    bool      // y is the regular grid on [0,1]
	edge    float64   // max|Y|
	b       []float64 // m, of sum 1
}

// load takes p.
func (r *problem) load(p *Problem) {
	r.done = p.Done
	r.setTargets(p.Y)
	r.setWeights(p.A, p.Observed)
	if p.Logits != nil {
		Softmax(r.b, p.Logits)
	} else {
		Normalise(r.b, p.B)
	}
	if r.weighed = p.Weighed; r.weighed {
		r.squash = WeightedSquash(p.Squash, p.X, r.a[:r.n])
	} else {
		r.squash = NewSquash(p.Squash, p.X, p.Observed, r.xs[:r.n])
	}
	r.setSamples(p.X)
	r.place(p.Epsilon)
}

// setTargets takes y and finds out whether it is regular.
func (r *targets) setTargets(y []float64) {
	if y == nil && r.grid {
		return
	}
	m := r.m
	r.grid = y == nil
	if r.grid {
		for j := range r.y {
			r.y[j] = Grid(j, m)
		}
	} else {
		copy(r.y, y)
	}
	lo, hi := r.y[0], r.y[m-1]
	r.yc = elem.Middle(lo, hi)
	r.step = 0
	if m > 1 {
		r.step = (hi - lo) / float64(m-1)
	}
	r.regular = true
	for j, v := range r.y {
		r.cy[j] = v - r.yc
		at := lo + float64(float64(j)*r.step)
		if math.Abs(v-at) > 8*unit*max(math.Abs(lo), math.Abs(hi)) {
			r.regular = false
		}
	}
	for j := 1; j < m; j++ {
		r.dy[j-1] = r.y[j] - r.y[j-1]
	}
	r.edge = max(math.Abs(r.cy[0]), math.Abs(r.cy[m-1]))
}

// Grid is target j of the default grid of m: j/(m-1), and 1/2 where m = 1.
func Grid(j, m int) float64 {
	if m == 1 {
		return 0.5
	}
	return float64(j) / float64(m-1)
}

// setWeights fills a, and takes the mask.
func (r *samples) setWeights(a []float64, observed []bool) {
	r.observed = observed
	switch {
	case observed != nil && a == nil:
		seen := 0
		for _, o := range observed {
			if o {
				seen++
			}
		}
		share := 1 / float64(seen)
		for j, o := range observed {
			r.a[j] = 0
			if o {
				r.a[j] = share
			}
		}
		r.even = false
	case a != nil:
		const noWeight = 1e-200 // a smaller share counts as none
		Normalise(r.a[:r.n], a)
		for i, v := range r.a {
			if v < noWeight {
				r.a[i] = 0
			}
		}
		r.even = false
	case !r.even:
		Normalise(r.a[:r.n], nil)
		r.even = true
	}
}

// setSamples takes x, squashes it by the squash that has been set, and centres it.
func (r *samples) setSamples(x []float64) {
	r.squashSamples(x)
	r.center(elem.Middle(r.extent[0], r.extent[1]))
}

// squashSamples takes x, and squashes it.
func (r *samples) squashSamples(x []float64) {
	n := r.n
	copy(r.x, x)
	r.squash.Apply(r.xs[:n], x)
	for i := n; i < r.np; i++ {
		r.x[i], r.xs[i] = r.x[0], r.xs[0]
	}
	kernel.Extent(&r.extent, r.xs)
	r.ordered = false
}

// center takes x̄, and fills X.
func (r *samples) center(at float64) {
	r.xc = at
	kernel.Shift(r.cx, r.xs, at)
}

// setEpsilon takes ε > 0, after X.
func (r *problem) setEpsilon(eps float64) {
	r.eps = eps
	r.steep, r.rooted = kernel.Slopes(r.s, r.cx, eps), false
	r.reach, r.anchor = r.steep, -1
}

// place takes ε > 0, and moves the centre of the samples where the middle of their range does not serve.
func (r *problem) place(eps float64) {
	r.setEpsilon(eps)
	if r.squash.Kind == None && r.rounding() > 1e-11 {
		r.recenter()
	}
}

// recenter moves the centre of samples that lie very far apart to their weighted median, and keeps the
// potential of the level of the median at 0. An outlier that wholly belongs to an end level then has no
// part in reach, nor in the rounding of the logits of other samples. The weights must have been set.
func (r *problem) recenter() {
	r.arrange()
	perm := r.perm[:r.n]
	below, median := 0.0, perm[r.n-1]
	for _, i := range perm {
		if below += r.a[i]; below >= 0.5 {
			median = i
			break
		}
	}
	r.center(r.xs[median])
	r.steep, r.rooted = kernel.Slopes(r.s, r.cx, r.eps), false
	below, r.anchor = 0, r.m-1
	for j, b := range r.b {
		if below += b; below >= 0.5 {
			r.anchor = j
			break
		}
	}
	const whole = 1 + 1e-10
	first, last, mass := 0, r.n-1, 0.0
	for ; first < last && mass+r.a[perm[first]] <= r.b[0]*whole; first++ {
		mass += r.a[perm[first]]
	}
	for mass = 0; last > first && mass+r.a[perm[last]] <= r.b[r.m-1]*whole; last-- {
		mass += r.a[perm[last]]
	}
	r.reach = max(math.Abs(r.s[perm[first]]), math.Abs(r.s[perm[last]]))
}

// rounding is the relative error of c that rounding in the logits leaves.
func (r *problem) rounding() float64 {
	return 8 * unit * (1 + float64(2*r.reach*r.edge))
}

// lostLogits tells whether rounding in the logits has left no digit of c.
func (r *problem) lostLogits() bool { return !(r.rounding() < 0.1) }

// roundingFloor is the error at which a plan is called converged whatever the
// tolerance: that of rounding, but never above 1e-6.
func (r *problem) roundingFloor() float64 { return min(r.rounding(), 1e-6) }

// ground shifts potentials, which are known up to a constant, so that the anchor's is 0, or the middle
// of their range where there is no anchor: a number near 0 has the most digits.
func (r *problem) ground(h []float64) {
	at := 0.0
	if r.anchor >= 0 {
		at = h[r.anchor]
	} else {
		lo, hi := bounds(h)
		at = elem.Middle(lo, hi)
	}
	for j := range h {
		h[j] -= at
	}
}

// arrange finds the order of the samples, where it is not known yet.
func (r *samples) arrange() {
	if n := r.n; !r.ordered {
		r.sorter.Buckets(r.perm[:n], r.x[:n], r.xs, r.extent)
		r.ordered = true
	}
}

// ends returns the smallest and the largest sample.
func (r *samples) ends() (low, high float64) {
	r.arrange()
	return r.x[r.perm[0]], r.x[r.perm[r.n-1]]
}

// Normalise fills to with weights brought to sum 1, even ones for nil.
func Normalise(to, weights []float64) {
	if weights == nil {
		v := 1 / float64(len(to))
		for i := range to {
			to[i] = v
		}
		return
	}
	top := 0.0
	for _, v := range weights {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range weights {
		sum += v / top
	}
	for i, v := range weights {
		to[i] = v / top / sum
	}
}

// LeastWeight bounds the share of a target, so that nothing divided by it overflows.
const LeastWeight = 1e-290

// Softmax fills b_j = exp f_j / Σ exp f, none of which is below [LeastWeight].
func Softmax(b, f []float64) {
	kernel.Shift(b, f, slices.Max(f))
	kernel.Exp(b, b)
	sum := 0.0
	for j, v := range b {
		b[j] = max(v, LeastWeight)
		sum += b[j]
	}
	for j := range b {
		b[j] /= sum
	}
}

// Tangent projects the gradient g onto the simplex tangent at the weights w:
// Σ w_i g_i = 0.
func Tangent(g, w []float64) {
	s := 0.0
	for i := range g {
		s += float64(w[i] * g[i])
	}
	for i := range g {
		g[i] -= s
	}
}

// bounds returns the least and the largest of v.
func bounds(v []float64) (lo, hi float64) {
	lo, hi = v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}
