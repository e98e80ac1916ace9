package quantmf

// This file holds the row problem: the workspace that travels through a solve,
// its derivatives and an epoch, how a row is loaded into it, and the order of
// its samples.

import (
	"math"
	"math/bits"

	"github.com/quantmf/quantmf/internal/kernel"
)

const unit = 0x1p-53 // u, the unit roundoff

// row is one transport problem with the workspace of its solver, allocated once
// by resize and used for many rows. Vectors over samples are padded to whole
// blocks; padding has weight 0.
type row struct {
	of uint64 // the Transport whose solution this is; 0: none

	n, np, m int
	size     int // samples in a tile
	room     int // entries of E that are held: all, or a tile's
	mp       int // m padded: the stride of m × m matrices
	eps      float64

	x      []float64 // the samples as given, np
	xs     []float64 // squashed, np
	squash squashed
	a, b   []float64 // weights, np and m
	xc     float64   // centre of xs
	cx     []float64 // X, np
	s      []float64 // 2X/ε, np
	steep  float64   // max|s|
	reach  float64   // the same of the samples that may lie at a boundary between levels
	anchor int       // the level whose potential is kept at 0; -1: the middle of them is; see recenter

	y       []float64 // targets as given
	yc      float64
	cy, dy  []float64 // Y, m; increments, m-1
	step    float64   // of the grid where regular
	regular bool
	edge    float64 // max|Y|

	extent  [2]float64 // ends of xs
	perm    []int32    // order of the samples by x, after arrange
	ordered bool

	h, href  []float64 // potentials now, and those in e
	aimed    bool      // href belongs to this row
	built    bool      // and all of e is there
	power    bool      // built by BuildPower, href = 0
	lifted   bool      // by BuildPower and Lift
	boost    []float64 // exp href, about its middle
	e        []float64 // kernel, np×m, or a tile of it; see tiles
	w, z     []float64 // level weights, row sums
	v        []float64 // row weights of a sum, np
	mid      float64   // log of what w is divided by
	mu       []float64 // the 2m-1 sums that hold a Gram matrix on a regular grid, m+mp
	nu       []float64 // the same of another sum
	part     []float64 // the same of a tile, 2m
	ratio    []float64 // exp(href_j+href_k-href_mid...) of the Hankel expansion, m×mp, symmetric
	flat     bool      // ratio is all ones
	gram     []float64 // Mᵀ diag(a) M, m×mp, symmetric
	c        []float64 // column sums
	expanded bool      // gram is that of the last sweep
	summed   bool      // and c
	lost     bool      // a column was flushed to 0: no Hankel form
	goal     []float64 // where the next solve leaves T in passing; see ask
	first    float64   // its first level
	averaged bool      // that is done

	fac, piv, floor, dir, try, logs, best []float64
	tau, cum                              []float64
	keys                                  []pair    // 2n, of the sort
	bins                                  []int32   // 2n, likewise
	sums                                  []float64 // m×mp, of the backward
	lam, rho, inc, total, work            []float64
	gx, zeta                              []float64 // np

	mass            []float64 // of the bins of a histogram
	samples, levels []float64 // what the vectors are cut from
	few             *row      // of group means; see coarse
}

// resize makes room for n samples and m targets. Vectors over levels have a
// capacity of whole blocks, with zeros there.
func (r *row) resize(n, m int) {
	r.of, r.aimed, r.ordered, r.goal, r.averaged = 0, false, false, nil, false
	np, mp := kernel.Pad(n), kernel.Pad(m)
	var from []float64
	take := func(k int) (v []float64) { v, from = from[:k:k], from[k:]; return v }
	if n != r.n {
		if cap(r.samples) < 9*np {
			r.samples = make([]float64, 9*np)
		}
		if cap(r.bins) < 2*n {
			r.bins, r.keys = make([]int32, 2*n), make([]pair, 2*n)
		}
		if cap(r.perm) < n {
			r.perm = make([]int32, n)
		}
		from = r.samples[:9*np]
		for _, p := range []*[]float64{&r.x, &r.xs, &r.a, &r.cx, &r.s, &r.z, &r.v, &r.gx, &r.zeta} {
			*p = take(np)
		}
		r.bins, r.keys, r.perm = r.bins[:2*n], r.keys[:2*n], r.perm[:n]
	}
	if m != r.m {
		size := 28*mp + 4*m*mp
		if cap(r.levels) < size {
			r.levels = make([]float64, size)
		}
		from = r.levels[:size]
		clear(from)
		for _, p := range []*[]float64{&r.b, &r.y, &r.cy, &r.dy, &r.h, &r.href, &r.w, &r.c, &r.piv, &r.floor,
			&r.dir, &r.try, &r.logs, &r.best, &r.tau, &r.cum, &r.lam, &r.rho, &r.inc, &r.total, &r.work, &r.boost} {
			*p = take(mp)[:m]
		}
		r.mu, r.nu, r.part = take(m+mp), take(m+mp), take(2*mp)
		r.ratio, r.gram, r.fac, r.sums = take(m*mp), take(m*mp), take(m*mp), take(m*mp)
		r.flat = false
	}
	r.n, r.np, r.m, r.mp = n, np, m, mp
	r.setTiles()
	r.setBins()
}

// setTargets takes y (nil: the regular grid on [0,1]) and finds out whether it
// is regular.
func (r *row) setTargets(y []float64) {
	m := r.m
	if y == nil {
		for j := range r.y {
			r.y[j] = gridPoint(j, m)
		}
	} else {
		copy(r.y, y)
	}
	lo, hi := r.y[0], r.y[m-1]
	r.yc = middle(lo, hi)
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

// gridPoint is target j of the default grid of m: j/(m-1), and 1/2 where m = 1.
func gridPoint(j, m int) float64 {
	if m == 1 {
		return 0.5
	}
	return float64(j) / float64(m-1)
}

// noWeight is the share below which a sample counts as one without weight.
const noWeight = 1e-200

// setWeights fills a and b, nil standing for uniform, and brings them to sum 1.
func (r *row) setWeights(a, b []float64) {
	normalise(r.a[:r.n], a)
	clear(r.a[r.n:])
	if a != nil {
		for i, v := range r.a {
			if v < noWeight {
				r.a[i] = 0
			}
		}
	}
	normalise(r.b, b)
}

func normalise(to, from []float64) {
	if from == nil {
		v := 1 / float64(len(to))
		for i := range to {
			to[i] = v
		}
		return
	}
	top := 0.0
	for _, v := range from {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range from {
		sum += v / top
	}
	for i, v := range from {
		to[i] = v / top / sum
	}
}

// setSamples takes x, squashes and centres it.
func (r *row) setSamples(x []float64, s Squash) {
	r.squash = squashed{kind: s, observed: r.squash.observed}
	if s != SquashNone {
		r.squash.moments(x, r.xs[:r.n])
	}
	r.place(x)
}

// arrange finds the order of the samples, where it is not known yet.
func (r *row) arrange() {
	if n := r.n; !r.ordered {
		bucket(r.perm[:n], r.xs, r.extent, r.bins)
		order(r.perm[:n], r.x[:n], r.keys[:2*n], true)
		r.ordered = true
	}
}

// place takes x, squashed by the mean and deviation that are there.
func (r *row) place(x []float64) {
	n := r.n
	copy(r.x, x)
	r.squash.map1(r.xs[:n], x)
	for i := n; i < r.np; i++ {
		r.x[i], r.xs[i] = r.x[0], r.xs[0]
	}
	r.center()
}

// center fills X.
func (r *row) center() {
	kernel.Extent(&r.extent, r.xs)
	r.xc = middle(r.extent[0], r.extent[1])
	kernel.Shift(r.cx, r.xs, r.xc)
	r.aimed, r.ordered = false, false
}

// setEpsilon takes ε > 0; it comes after setSamples.
func (r *row) setEpsilon(eps float64) {
	r.eps = eps
	r.steep = kernel.Slopes(r.s, r.cx, eps)
	r.reach, r.anchor, r.aimed = r.steep, -1, false
	if r.squash.kind == SquashNone && r.rounding() > 1e-11 {
		r.recenter()
	}
}

// recenter moves the centre of far-flung samples to where the mass is, the median, and
// the potentials about that of the level there: an outlier that wholly belongs to an end level
// then has no part in the rounding of the logits of the others, nor in reach. It comes
// after the weights.
func (r *row) recenter() {
	r.arrange()
	perm := r.perm[:r.n]
	below, median := 0.0, perm[r.n-1]
	for _, i := range perm {
		if below += r.a[i]; below >= 0.5 {
			median = i
			break
		}
	}
	r.xc = r.xs[median]
	kernel.Shift(r.cx, r.xs, r.xc)
	r.steep = kernel.Slopes(r.s, r.cx, r.eps)
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

// order fills perm with the indices of x in increasing order, equal values by
// index. With keep, perm may be nearly right and is mended by insertion. Where that
// would move much, it is sorted: runs of four by a network, then merged,
// without branches, for where the order is not known there is nothing that a
// processor could foresee. work has twice the length of perm.
func order(perm []int32, x []float64, work []pair, keep bool) {
	n := len(perm)
	if keep {
		if mend(perm, x, 8) { // more moves of an entry than that, and merging is faster
			return
		}
	} else {
		for i := range perm {
			perm[i] = int32(i)
		}
	}
	from, to := work[:n], work[n:2*n]
	for k, i := range perm {
		from[k] = newPair(x[i], i)
	}
	k := 0
	for ; k+4 <= n; k += 4 {
		network((*[4]pair)(from[k : k+4]))
	}
	for i := k + 1; i < n; i++ {
		for j := i; j > k; j-- {
			from[j-1], from[j] = inOrder(from[j-1], from[j])
		}
	}
	for width := 4; width < n; width *= 2 {
		for lo := 0; lo < n; lo += 2 * width {
			mid, hi := min(lo+width, n), min(lo+2*width, n)
			switch {
			case mid == hi || from[mid].less(from[mid-1]) == 0:
				copy(to[lo:hi], from[lo:hi])
			case hi-lo == 2*width:
				mergeEqual(to[lo:hi], from[lo:mid], from[mid:hi])
			default:
				merge(to[lo:hi], from[lo:mid], from[mid:hi])
			}
		}
		from, to = to, from
	}
	for k, p := range from {
		perm[k] = int32(p.i)
	}
}

// mend sorts perm by insertion, or gives up where it moves more than so many
// entries for each.
func mend(perm []int32, x []float64, allowed int) bool {
	if len(perm) == 0 {
		return true
	}
	moves, last := 0, x[perm[0]] // the largest so far
	for i, p := range perm {
		v := x[p]
		if v > last {
			last = v
			continue
		}
		k := i
		for k > 0 && (x[perm[k-1]] > v || x[perm[k-1]] == v && perm[k-1] > p) {
			perm[k] = perm[k-1]
			k--
		}
		perm[k] = p
		moves += i - k
		if moves > allowed*(i+9) && i < len(perm)-1 {
			return false
		}
	}
	return true
}

// bucket fills perm with the indices of x in nearly increasing order: by n equal
// pieces of the range between the ends, and by index in each. Squashed samples lie
// about evenly, so that insertion ends the work. bins is twice as long as perm.
func bucket(perm []int32, x []float64, ends [2]float64, bins []int32) {
	n := len(perm)
	lo, scale := ends[0], float64(n)/(ends[1]-ends[0])
	at, count, x := bins[:n], bins[n:2*n], x[:n]
	clear(count)
	for i, v := range x {
		p := uint32((v - lo) * scale)
		if p >= uint32(n) { // the last; or anything, where all are equal
			p = uint32(n) - 1
		}
		at[i] = int32(p)
		count[p]++
	}
	sum := int32(0)
	for p, c := range count {
		count[p] = sum
		sum += c
	}
	for i, p := range at {
		c := count[p]
		perm[c] = int32(i)
		count[p] = c + 1
	}
}

// pair is a sample, as a number that is ordered as it, with its index.
type pair struct{ key, i uint64 }

func newPair(x float64, i int32) pair {
	if x == 0 {
		x = 0 // and not -0
	}
	b := math.Float64bits(x)
	return pair{b ^ (uint64(int64(b)>>63) | 1<<63), uint64(i)}
}

// less returns 1 where p comes before q, else 0.
func (p pair) less(q pair) uint64 {
	_, c := bits.Sub64(p.i, q.i, 0)
	_, c = bits.Sub64(p.key, q.key, c)
	return c
}

// inOrder returns the first and the second of two.
func inOrder(p, q pair) (pair, pair) {
	m := -q.less(p)
	k, i := (p.key^q.key)&m, (p.i^q.i)&m
	return pair{p.key ^ k, p.i ^ i}, pair{q.key ^ k, q.i ^ i}
}

// network sorts four pairs.
func network(p *[4]pair) {
	a, b := inOrder(p[0], p[1])
	c, d := inOrder(p[2], p[3])
	a, c = inOrder(a, c)
	b, d = inOrder(b, d)
	b, c = inOrder(b, c)
	p[0], p[1], p[2], p[3] = a, b, c, d
}

// mergeEqual merges two runs of equal length from both ends at once: as many steps
// as a run is long, in which neither can end.
func mergeEqual(to, a, b []pair) {
	h := len(a)
	b = b[:h]
	low, high := to[:h], to[h:2*h]
	i, j, p, q := 0, 0, h-1, h-1
	for k := range low {
		x, y := a[i], b[j]
		c := y.less(x)
		m := -c
		low[k] = pair{x.key ^ (x.key^y.key)&m, x.i ^ (x.i^y.i)&m}
		j += int(c)
		i += 1 - int(c)
		x, y = a[p], b[q]
		c = y.less(x)
		m = -c
		high[h-1-k] = pair{y.key ^ (x.key^y.key)&m, y.i ^ (x.i^y.i)&m}
		p -= int(c)
		q += int(c) - 1
	}
}

// merge merges two runs.
func merge(to, a, b []pair) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		c := y.less(x)
		m := -c
		to[i+j] = pair{x.key ^ (x.key^y.key)&m, x.i ^ (x.i^y.i)&m}
		j += int(c)
		i += 1 - int(c)
	}
	copy(to[i+j:], a[i:])
	copy(to[j+len(a):], b[j:])
}
