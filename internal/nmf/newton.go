package nmf

// This file holds X ≈ UV with U, V >= 0 by Newton's method with bounds, half by half and
// with momentum: some twenty epochs where multiplicative updates (updates.go) take hundreds.
// The loss is that of Kullback and Leibler, or Frobenius', and may be any other β divergence
// of β <= 2.
//
// # A half
//
// With A held, X ≈ AB, every column of B is a convex problem in k unknowns (for U the same,
// transposed). With W = AB, its gradient and the diagonal of its Hessian are
//
//	g_a = Σ_i A_ia (1 - X_i/W_i),   h_a = Σ_i A_ia² X_i/W_i²      (Frobenius: W_i - X_i, and 1).
//
// Off the diagonal all columns share the correlations of one matrix: H = S C S, where S² is
// the diagonal and C what is left of Σ_i A_ia A_ib/w_i when it is scaled to ones, w_i
// being Σ_j W_ij. That is the Hessian for X = W of rank one; it is known without a pass. h_a
// is not let fall below a tenth of what that Hessian has there. Four sweeps of coordinate
// descent from B_j go towards the least of g·s + sᵀHs/2 with B_j + s >= 0.
//
// # A step
//
// Along the direction s, with D = As and z_i = D_i/W_i, the slope of the loss is at most
//
//	g·s + t Σ X_i z_i² + t²/(1-ρt) Σ_{z_i<0} X_i |z_i|³,   ρ = max |z_i| over z_i < 0, X_i > 0,
//
// for 0 <= t < 1/ρ: this is X_i z_i/(1+t z_i) = X_i z_i - t X_i z_i² + t² X_i z_i³/(1+t z_i), of
// which the last is positive for z_i > 0. Up to the root of the bound, a quadratic
// equation, the slope is not positive, so the convex loss falls: no value of it is needed, and one
// pass over X gives the step of all columns. t is that root, at most 2, and B stays
// non-negative. Under Frobenius' loss the last sum is 0 and the bound exact.
//
// Where no cell is hidden Frobenius' loss has the same Hessian AᵀA for every column, and the
// sweeps themselves lower it: exact.go. There the first epoch may begin with some of the rows: lead.go.
//
// # Other β
//
// With r_i = W_i^{β-2} (X_i - W_i) for the gradient, -Σ A_ia r_i, the curvature of a cell is
//
//	q_i = max(β-1,0) W_i^{β-2} + (2-β) X_i W_i^{β-3},
//
// h_a = Σ A_ia² q_i, w_i^{β-2} takes the place of 1/w_i in C, and with z_i = max(1,2-β) D_i/W_i the
// slope is at most
//
//	g·s + t Σ q_i D_i² + t²/(1-ρt) Σ_{z_i<0} q_i D_i² |z_i|,   ρ = max |z_i| over z_i < 0, q_i > 0.
//
// For D_i < 0 and u = t|D_i|/W_i this is (1-u)^{β-1} >= 1 - (β-1)u/(1-u) and (1-u)^{β-2} <= 1 + (2-β)u/(1-u) for β
// from 1 to 2; (1-u)^{β-1} >= 1 and (1-u)^{2-β} >= 1 - (2-β)u for β < 1. For D_i > 0 it is what the
// tangents of (1+u)^{β-1} and (1+u)^{β-2} at 0 say, of the former for β > 1 alone. Below β = 1 the loss is not convex, but
// its slope is not positive up to the step, so it falls there, too. Where such a loss meets
// zeros of X the bound keeps steps short: multiplicative updates end lower.
//
// # Hidden cells
//
// Where W is 0 a cell cannot be other than 0, and one that is costs a fit that has not seen it
// any amount. Newton's method reaches entries of 0 within ten epochs, of which a hundred
// multiplicative updates are far. So for β <= 1, where cells are
// hidden, an entry does not fall below a hundredth of its component's mean: cells that were
// not seen are predicted better for it than by multiplicative updates at their best
// (docs/measurements/nmf.md). Where none is hidden entries may be 0.
//
// # Momentum
//
// The halves start at y and lead to z, no worse than y. The next y is
// max(z + (τ-1)/τ' (z - z before), z/10), τ' = (1+√(1+4τ²))/2 (Nesterov 1983; under
// Frobenius' loss not below 0 is enough). Where its loss is above that of the y before, y is z and
// τ = 1 again: the losses at y, those returned, never rise. Between the halves the
// components are brought to Σ_i U_ia = Σ_j V_aj, with a penalty to where it is least,
// so that momentum does not run along their scale.
//
// # An epoch
//
// X is read twice: for the step of V, and for the half of U and with the U and V that follow the
// loss and the next gradient of V. Nothing of its size is kept: 18dnk flops, 3dn divisions
// and dn logarithms; five powers of every cell for other β. For Frobenius without hidden cells
// XVᵀ and UᵀX are all that is taken of X, in one reading: 4dnk, and 24k²(d+n) for the sweeps.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/section"
)

const (
	warmEpochs   = 3   // multiplicative updates before Newton's method: it finds poor optima from afar
	newtonSweeps = 4   // of coordinate descent
	leastShare   = 0.1 // of the shared Hessian's diagonal, below which h does not fall; and of z, below which y does not
	ridge        = 1e-6
	longestStep  = 2
	leastEntry   = 0.01 // of the mean of its component, where cells are hidden
)

// Newton is an NMF by Newton's method under way. It begins as an Updates, whose
// factors stay the state that the last losses are of: y above. What it has of V lies in
// tiles, as the sums of the pieces do.
type Newton struct {
	Updates
	exact bool // Frobenius, no cell hidden
	sized bool // the pieces have the size
	apart bool // cells are looked at one by one: some are hidden, or the loss has powers
	taken bool // the multiplicative updates are over
	still bool // neither y nor z was lower: nothing moves any more
	fresh bool // the next epoch may begin with the rows that lead
	last  Losses
	momentum
	points
	balance
	metric         metric
	gram, some     []float64 // k × k, where the metric is exact: V Vᵀ of the next y, and of a tile
	slopes, most   []float64 // np: of the direction of V
	shareU, shareV []float64 // the visible share of a row, of a column
	sizes          []float64 // Σ_j X_ij² of each row, where the metric is exact
	extra          []newtonPart
	room           []newtonScratch
	cols           int // pieces of the columns

	directs, searches, moves, halves, gradients, residuals func(worker, piece int)
}

// momentum is what an epoch takes over from the one before: z, and τ, which is 1 where there is
// nothing to go on from.
type momentum struct {
	tau    []float64 // one number
	by     float64   // (τ-1)/τ' of this epoch
	zu, zv []float64 // d × k and tiles: z, in a half that of the epoch before
}

// advance goes from τ to τ'.
func (m *momentum) advance() {
	tau := (1 + math.Sqrt(1+float64(4*float64(m.tau[0]*m.tau[0])))) / 2
	m.by, m.tau[0] = (m.tau[0]-1)/tau, tau
}

// ahead returns the entry of y that lies beyond z, coming from before, and not below least of z or floor,
// whichever is more, nor above z on that account.
func (m *momentum) ahead(z, before, floor, least float64) float64 {
	if floor > z {
		floor = z
	}
	if low := float64(least * z); low > floor {
		floor = low
	}
	if y := z + float64(m.by*(z-before)); y > floor {
		return y
	}
	return floor
}

// points are the factors of an epoch beside those of the fit, which are y. V lies in tiles.
type points struct {
	y      []float64 // V at y
	nu, nv []float64 // the next y, once both halves are done; in between nv is the direction of V
	z, z2  []float64 // the new V and its squares, for the half of U
}

// balance is the sums of components, and what brings those of U and V to each other.
type balance struct {
	scale      []float64 // k: of U
	sumU       []float64 // k: Σ_i U_ia, of the U that the half of V, then of U, starts at
	sumV, sumZ []float64 // k: Σ_j V_aj where the next gradient is taken, and of z
}

// metric is the Hessian that the columns of a half share: C, ones on its diagonal, where
// each has a diagonal of its own, or all of it.
type metric struct {
	c, diag, inverse []float64 // k × k; k: the diagonal before C was scaled; k: 1/C_aa
	floor            []float64 // k: what entries are not let fall below
	total            float64   // Σ W
}

// newtonPart is what a piece of the rows adds to the half of V, beside part: num is
// the sum of the gradient, den of h.
type newtonPart struct {
	h           []float64  // k rows, padded: the shared Hessian
	size        [1]float64 // Σ X²/2, where the metric is exact
	c2, c3, rho []float64  // np, see kernel.Stretch
}

// newtonScratch is a worker's room: Group rows of samples, and strips of columns
// of B, k rows each.
type newtonScratch struct {
	x, w, r, q, d          []float64
	product                []float64 // n: of one row
	u, squares, p, g, h, t []float64 // rows of U, and what belongs to them
	over, wide             []float64 // of the shared Hessian: rows of U by their weights, and padded
	laid                   []float64 // rows of X, see lay
	strip                  strip
	observed               []bool
	seen                   [Group][]bool
}

// strip is some columns of B, k rows of n numbers: B itself, the gradient (where the metric is exact less
// that of the metric), the diagonal of
// the Hessian and, of solve, the direction; how low the sweeps may go; the mean of W in each column by that in all
// of them, the slope along the direction and the longest step.
type strip struct {
	n                     int
	b, g, h, p            []float64
	low, r, root          []float64
	weight, slope, limits []float64
}

// stripColumns is how many columns of V go through the sweeps together.
const stripColumns = 32

func (s *strip) cut(k, n int) {
	s.n = n
	for _, v := range []*[]float64{&s.b, &s.g, &s.h, &s.p, &s.low, &s.r, &s.root} {
		*v = (*v)[:k*n]
	}
}

// NewNewton returns Newton's method for a problem.
func NewNewton(p Problem) *Newton {
	n := &Newton{exact: p.Loss == divergence.Frobenius && !p.Partial, momentum: momentum{tau: []float64{1}}}
	n.set(p, First(p.Loss, p.Partial, p.Penalty) > 0)
	n.apart = p.Partial || n.powers()
	n.directs, n.searches, n.moves, n.halves, n.gradients = n.direct, n.searchV, n.moveV, n.halfU, n.gradient
	if n.exact {
		n.halves, n.gradients, n.residuals = n.halfExact, n.gradientExact, n.residual
	}
	return n
}

// first is the number of multiplicative updates that a fit begins with: none where the
// halves are exact, unless a penalty may then end both factors at 0 at once.
func (f *Newton) first() int { return First(f.Loss, f.Partial, f.Penalty) }

// First is the same for a problem of this kind.
func First(loss divergence.Loss, partial bool, penalty float64) int {
	if loss == divergence.Frobenius && !partial && penalty == 0 {
		return 0
	}
	return warmEpochs
}

// Begin takes the losses of the start.
func (f *Newton) Begin() (Losses, error) {
	if f.first() > 0 {
		return f.Updates.Begin()
	}
	f.start()
	f.fresh = true
	return f.last, f.Pool.Err()
}

// start goes on from the factors as they are, without momentum.
func (f *Newton) start() {
	f.take()
	f.open()
	copy(f.zu, f.U)
	copy(f.zv, f.y)
	f.last = f.lossesNext()
}

// take goes over from multiplicative updates.
func (f *Newton) take() {
	d, k, np := f.D, f.K, f.NP
	v := func(n int) []float64 { return make([]float64, n) }
	if f.apart {
		f.tiles.count, f.tiles.width = 1, np
	}
	f.taken, f.work, f.tiles.v = true, nil, nil
	if f.plain && f.thin.some {
		f.takeThin()
	}
	f.y, f.zv, f.nv, f.z = v(k*np), v(k*np), v(k*np), v(k*np)
	f.zu, f.nu = v(d*k), v(d*k)
	f.scale, f.sumU, f.sumV, f.sumZ = v(k), v(k), v(k), v(k)
	f.metric = metric{floor: v(k), c: v(k * k), diag: v(k), inverse: v(k)}
	f.slopes, f.most, f.shareV = v(np), v(np), v(np)
	f.extra, f.room = make([]newtonPart, len(f.pieces)), make([]newtonScratch, f.Pool.Workers())
	f.cols = min(Chunks, np/kernel.Lanes)
	for i := range f.pieces {
		f.extra[i].h, f.pieces[i].sum = v(k*kernel.Pad(k)), v(k)
		if f.exact {
			f.pieces[i].den = nil
			continue
		}
		f.extra[i].c2, f.extra[i].c3, f.extra[i].rho = v(np), v(np), v(np)
		if f.pieces[i].den == nil {
			f.pieces[i].den = v(k * np)
		}
	}
	group, wide := Group, k*stripColumns
	if f.exact {
		f.gram, f.some, f.sizes = v(k*k), v(k*k), v(d)
		group = f.rowsTogether()
		wide = max(wide, k*group)
	} else {
		f.z2, f.shareU = v(k*np), v(d)
	}
	rows, tile := group*k, Group*f.tiles.width
	for i := range f.room {
		ws := &f.room[i]
		ws.r, ws.g, ws.t, ws.wide = v(tile), v(rows), v(rows), v(Group*kernel.Pad(k))
		ws.strip = strip{b: v(wide), g: v(wide), h: v(wide), p: v(wide), low: v(wide), r: v(wide), root: v(wide),
			weight: v(stripColumns), slope: v(stripColumns), limits: v(stripColumns)}
		if f.exact {
			ws.x, ws.w, ws.laid = v(np), v(tile), v(group*np)
			continue
		}
		ws.x, ws.w, ws.q, ws.d = v(Group*np), v(Group*np), v(tile), v(tile)
		ws.u, ws.squares, ws.p, ws.h, ws.over = v(rows), v(rows), v(rows), v(rows), v(rows)
		if f.apart {
			ws.product, ws.observed = v(np), make([]bool, Group*f.N)
		}
	}
	for i := range f.shareU {
		f.shareU[i] = float64(f.Rows[i]) / float64(f.N)
	}
	for j := range f.shareV {
		f.shareV[j] = 1
	}
	if f.Partial && f.D == f.Of {
		clear(f.shareV)
		for i := range d {
			for j, o := range f.Read(f.room[0].x, f.room[0].observed, i) {
				if o {
					f.shareV[j] += 1 / float64(d)
				}
			}
		}
	}
}

// open makes y of the factors, and takes its gradient.
func (f *Newton) open() {
	f.inTiles(f.y, f.V)
	copy(f.nu, f.U)
	copy(f.nv, f.y)
	f.refresh()
}

// inTiles takes V, rows of np numbers, over to where it lies in tiles.
func (f *Newton) inTiles(to, v []float64) {
	for c := range f.K {
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			copy(to[f.K*lo+c*(hi-lo):f.K*lo+(c+1)*(hi-lo)], v[c*f.NP+lo:c*f.NP+hi])
		}
	}
}

// accept makes the next y the state, and the factors.
func (f *Newton) accept(l Losses) {
	copy(f.U, f.nu)
	f.y, f.nv = f.nv, f.y
	for c := range f.K {
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			copy(f.V[c*f.NP+lo:c*f.NP+hi], f.y[f.K*lo+c*(hi-lo):f.K*lo+(c+1)*(hi-lo)])
		}
	}
	f.last = l
}

// refresh makes a pass for the loss at the next y and the gradient of V there.
func (f *Newton) refresh() {
	f.sums(f.sumV, f.nv)
	if f.exact {
		f.products()
	}
	f.uprights(nil, nil, f.nv)
	f.Pool.Do(len(f.pieces), f.gradients)
}

// lossesNext are those at the next y.
func (f *Newton) lossesNext() Losses {
	if f.exact {
		return f.lossesExact()
	}
	return f.losses(f.nu, f.nv)
}

// sums fills s with the sums over the rows of v, in tiles.
func (f *Newton) sums(s, v []float64) {
	clear(s)
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		for c := range s {
			s[c] += kernel.Sum(v[f.K*lo+c*(hi-lo) : f.K*lo+(c+1)*(hi-lo)])
		}
	}
}

// Epoch is the halves of V and of U and the momentum. It leaves the factors alone until
// the next y is known to be no worse: they are always those of the last losses.
func (f *Newton) Epoch(e int) (Losses, error) {
	if e < f.first() {
		return f.Updates.Epoch(e)
	}
	if err := f.Pool.Err(); err != nil {
		return Losses{}, err
	}
	if !f.taken {
		f.start()
	}
	if !f.still {
		led := f.fresh && f.lead()
		f.fresh = false
		if !led {
			f.halfV()
		}
		l := f.onward()
		if led && f.rises(l) {
			f.back()
			f.halfV()
			l = f.onward()
		}
		if f.rises(l) {
			f.tau[0] = 1
			copy(f.nu, f.zu)
			copy(f.nv, f.z)
			f.refresh()
			l = f.lossesNext()
		}
		if err := f.Pool.Err(); err != nil {
			return Losses{}, err
		}
		f.zv, f.z = f.z, f.zv
		if f.still = f.rises(l); !f.still {
			f.accept(l)
		}
	}
	return f.last, nil
}

// onward makes the half of U for the new V, and the next y, and returns the losses there.
func (f *Newton) onward() Losses {
	f.between()
	f.uprights(f.z, f.z2, f.nv)
	f.Pool.Do(len(f.pieces), f.halves)
	return f.lossesNext()
}

// rises tells whether losses are above the last ones.
func (f *Newton) rises(l Losses) bool { return l.Above(f.last) }

// share fills the metric from its lower triangle in h, which the sums of the factors make
// one of the total given.
func (m *metric) share(exact bool, total float64) {
	k := len(m.diag)
	m.total = total
	for a := range k {
		m.diag[a] = m.c[a*k+a]
	}
	for a := range k {
		for b := range a {
			v := m.c[a*k+b]
			if !exact {
				v /= float64(math.Sqrt(max(m.diag[a], divergence.LeastSum)) * math.Sqrt(max(m.diag[b], divergence.LeastSum)))
			}
			m.c[a*k+b], m.c[b*k+a] = v, v
		}
		if !exact {
			m.c[a*k+a] = 1 + ridge
		}
		m.inverse[a] = 1 / max(m.c[a*k+a], divergence.LeastSum) // where the other factor is 0, 0 if there is a penalty
	}
}

// solve fills p with the direction of every column, and the slope along it and the longest step.
func (m *metric) solve(s *strip) {
	n := s.n
	for a, low := range m.floor {
		if low == 0 {
			continue
		}
		row := s.b[a*n : (a+1)*n]
		for j, b := range row {
			row[j] = stepped(b, -low)
		}
	}
	for a, d := range m.diag {
		row, weight := s.h[a*n:(a+1)*n], s.weight[:n]
		low := float64(leastShare * d)
		for j, w := range weight {
			if least := float64(low * w); row[j] < least {
				row[j] = least
			}
		}
	}
	kernel.Metric(s.low, s.r, s.root, s.b, s.g, s.h, divergence.LeastSum)
	clear(s.p)
	kernel.Bounded(s.p, s.low, s.r, m.c, m.inverse, newtonSweeps)
	kernel.Direction(s.p, s.slope[:n], s.limits[:n], s.b, s.g, s.root, longestStep)
}

// weigh returns what the shared Hessian is multiplied by in a column whose W sums to sum,
// a share of its cells being visible, one of count columns.
func (m *metric) weigh(loss divergence.Loss, sum, share float64, count int) float64 {
	sum = max(sum, float64(m.total*1e-12)/float64(count), divergence.LeastSum)
	switch loss {
	case divergence.Frobenius:
		return share
	case divergence.KL:
		return share * (m.total / sum)
	}
	return share / loss.Stiffness(sum/max(m.total, divergence.LeastSum))
}

// stepLength is the step along a direction of that slope, see the bound above.
func stepLength(slope, c2, c3, rho, most float64) float64 {
	if !(slope < 0) {
		return 0
	}
	// (c3 - ρ c2) t² + b t + slope = 0
	b := c2 - float64(slope*rho)
	if !(b > 0) {
		return most
	}
	over := float64((c3-float64(rho*c2))/b) * (slope / b)
	t := 2 * (-slope / b) / (1 + math.Sqrt(max(1-float64(4*over), 0)))
	if !(t < most) {
		t = most
	}
	if t-t != 0 {
		return 0
	}
	return t
}

// stepped is an entry b after a step, 0 where nothing but rounding is left of it: that would
// bound the steps of the next epochs.
func stepped(b, by float64) float64 {
	if to := b + by; to > float64(1e-12*b) {
		return to
	}
	return 0
}

// halfV makes z of V: the half of V at y.
func (f *Newton) halfV() {
	f.descend()
	if !f.exact {
		f.uprights(f.y, f.nv, nil)
		f.Pool.Do(len(f.pieces), f.searches)
		f.Pool.Do(f.cols, f.moves)
	}
}

// descend makes the direction of V, or under an exact metric z.
func (f *Newton) descend() {
	m := &f.metric
	clear(m.c)
	for i := range f.pieces {
		for c := range f.K {
			at := c * kernel.Pad(f.K)
			add(m.c[c*f.K:], f.extra[i].h[at:at+c+1])
		}
	}
	f.sumsU()
	f.lowest(f.sumV, f.N)
	m.share(f.exact, inner(f.sumU, f.sumV))
	f.Pool.Do(f.cols, f.directs)
}

// sumsU adds up the sums over U of the pieces.
func (f *Newton) sumsU() {
	clear(f.sumU)
	for i := range f.pieces {
		for c, v := range f.pieces[i].sum {
			f.sumU[c] += v
		}
	}
}

// inner is Σ a b.
func inner(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += float64(v * b[i])
	}
	return s
}

// columns calls g for the parts of tiles that a piece of the columns has, at most most
// columns at a time: they are lo to hi, in the tile that goes from to its width on.
func (f *Newton) columns(piece, most int, g func(lo, hi, from, width int)) {
	blocks := f.NP / kernel.Lanes
	begin, end := piece*blocks/f.cols*kernel.Lanes, (piece+1)*blocks/f.cols*kernel.Lanes
	for t := range f.tiles.count {
		from, to := f.tile(t)
		for lo := max(from, begin); lo < min(to, end); lo += most {
			g(lo, min(lo+most, to, end), from, to-from)
		}
	}
}

// direct makes the direction of some columns of V, of the gradient that the pieces of the
// rows have.
func (f *Newton) direct(worker, piece int) {
	s := &f.room[worker].strip
	f.columns(piece, stripColumns, func(lo, hi, from, width int) {
		n := hi - lo
		s.cut(f.K, n)
		clear(s.weight[:n])
		for c := range f.K {
			at := f.K*from + c*width + lo - from
			b, g, h := s.b[c*n:(c+1)*n], s.g[c*n:(c+1)*n], s.h[c*n:(c+1)*n]
			copy(b, f.y[at:at+n])
			clear(g)
			for i := range f.pieces {
				add(g, f.pieces[i].num[at:at+n])
			}
			base := f.addV
			if f.plain {
				base += f.sumU[c]
			}
			for j, v := range g {
				g[j] = base - v
				s.weight[j] += float64(f.sumU[c] * b[j])
			}
			if f.exact {
				continue
			}
			clear(h)
			for i := range f.pieces {
				add(h, f.pieces[i].den[at:at+n])
			}
		}
		for j := range n {
			s.weight[j] = f.metric.weigh(f.Loss, s.weight[j], f.shareV[lo+j], f.N)
		}
		to := f.nv
		if f.exact {
			f.metric.sweep(s)
			to = f.z
		} else {
			f.metric.solve(s)
		}
		for c := range f.K {
			at := f.K*from + c*width + lo - from
			copy(to[at:at+n], s.p[c*n:(c+1)*n])
		}
		copy(f.slopes[lo:hi], s.slope)
		copy(f.most[lo:hi], s.limits)
	})
}

// searchV sums what the step of V is taken of, over a piece of the rows.
func (f *Newton) searchV(worker, piece int) {
	ws, ex := &f.room[worker], &f.extra[piece]
	clear(ex.c2)
	clear(ex.c3)
	clear(ex.rho)
	f.over(worker, piece, func(b *band, i, rows int) { f.searchThin(b, ex, i, rows) }, func(i, rows int) {
		x, stride := f.load(ws, i, rows)
		u := f.U[i*f.K : (i+rows)*f.K]
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			n := hi - lo
			w, d := ws.w[:rows*n], ws.d[:rows*n]
			kernel.CombineRows(d, u, f.nv[f.K*lo:f.K*hi], rows)
			if f.Loss == divergence.KL {
				kernel.CombineRows(w, u, f.y[f.K*lo:f.K*hi], rows)
			}
			if f.powers() { // in one tile
				q := ws.q[:rows*n]
				f.curve(ws, ws.r[:rows*n], q, w, u, f.y, x, stride, rows)
				for j := range q {
					c2, c3, rho := f.stretch(q[j], w[j], d[j])
					ex.c2[j%n] += c2
					ex.c3[j%n] += c3
					ex.rho[j%n] = max(ex.rho[j%n], rho)
				}
				return
			}
			for r := range rows {
				d := d[r*n : (r+1)*n]
				if f.Loss == divergence.KL {
					kernel.Stretch(ex.c2[lo:hi], ex.c3[lo:hi], ex.rho[lo:hi], w[r*n:(r+1)*n], d, x[r*stride+lo:r*stride+hi], divergence.LeastT)
					continue
				}
				for j, o := range ws.seen[r] {
					if o {
						ex.c2[j] += float64(d[j] * d[j])
					}
				}
			}
		}
	})
}

// over calls others for the rows of a piece, Group at a time, and bands for those that are thin, see [Updates.visit].
func (f *Newton) over(worker, piece int, bands func(b *band, i, rows int), others func(i, rows int)) {
	if f.plain {
		f.visit(worker, piece, bands, others)
		return
	}
	begin, end := f.span(piece)
	for i := begin; i < end && f.Pool.Err() == nil; i += Group {
		others(i, min(Group, end-i))
	}
}

// powers tells whether the loss takes powers of W.
func (f *Newton) powers() bool {
	return f.Loss != divergence.KL && f.Loss != divergence.Frobenius
}

// stretch is what a cell adds to the sums that a step is taken of, and its |z|, see above: q
// is its curvature, w its W and d its D.
func (f *Newton) stretch(q, w, d float64) (c2, c3, rho float64) {
	c2 = float64(float64(q*d) * d)
	if d < 0 && q > 0 {
		rho = -d / max(w, f.Loss.Least()) * max(1, 2-float64(f.Loss))
		c3 = float64(c2 * rho)
	}
	return c2, c3, rho
}

// load returns rows of x, whole blocks that lie stride apart, with 0 where a cell is
// hidden, and fills seen.
func (f *Newton) load(ws *newtonScratch, i, rows int) (x []float64, stride int) {
	if f.blocks() && !f.apart {
		return f.X[i*f.Stride:], f.Stride
	}
	for r := range rows {
		to := ws.x[r*f.NP : (r+1)*f.NP]
		switch {
		case f.apart:
			ws.seen[r] = f.Read(to, ws.observed[r*f.N:(r+1)*f.N], i+r)
		case len(f.X) > 0:
			copy(to, f.X[(i+r)*f.Stride:(i+r)*f.Stride+f.N])
		default:
			f.Read(to, nil, i+r)
		}
	}
	return ws.x, f.NP
}

// moveV makes the step of some columns of V.
func (f *Newton) moveV(worker, piece int) {
	f.columns(piece, f.NP, func(lo, hi, from, width int) {
		for j := lo; j < hi; j++ {
			var c2, c3, rho float64
			for i := range f.extra {
				c2 += f.extra[i].c2[j]
				c3 += f.extra[i].c3[j]
				rho = max(rho, f.extra[i].rho[j])
			}
			t := stepLength(f.slopes[j], c2, c3, rho, f.most[j])
			for c := range f.K {
				at := f.K*from + c*width + j - from
				f.z[at] = stepped(f.y[at], float64(t*f.nv[at]))
			}
		}
	})
}

// between balances the components, extrapolates V, and makes the metric of the half of U.
func (f *Newton) between() {
	f.sums(f.sumZ, f.z)
	weightU, weightV := 1.0, 1.0
	if f.Penalty > 0 {
		weightU, weightV = f.addU, f.addV
	}
	for c := range f.K {
		f.scale[c] = 1
		if u, v := float64(weightU*f.sumU[c]), float64(weightV*f.sumZ[c]); u > 0 && v > 0 {
			f.scale[c] = math.Sqrt(v / u)
		}
		f.sumU[c] *= f.scale[c]
		f.sumZ[c] /= f.scale[c]
	}
	f.advance()
	f.lowest(f.sumZ, f.N)
	m := &f.metric
	clear(m.c)
	row := f.room[0].r
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		n := hi - lo
		weight := f.room[0].w[:n] // not x, whose padding is 0
		clear(weight)
		for c := range f.K {
			from, to := f.K*lo+c*n, f.K*lo+(c+1)*n
			over := 1 / f.scale[c]
			for j, v := range f.z[from:to] {
				f.z[from+j] = float64(v * over)
			}
			next, floor, least := f.nv[from:to], m.floor[c], f.leastAhead()
			for j, v := range f.z[from:to] {
				next[j] = f.ahead(v, f.zv[from+j], floor, least)
			}
			kernel.Accumulate(weight, f.sumU[c:c+1], f.z[from:to])
		}
		for j := range weight {
			weight[j] = f.Loss.Stiffness(weight[j])
		}
		for c := range f.K {
			z := f.z[f.K*lo+c*n : f.K*lo+(c+1)*n]
			r := row[:n]
			if f.Loss == divergence.Frobenius {
				copy(r, z)
			} else {
				kernel.Ratio(r, z, weight, divergence.LeastSum)
			}
			g := f.room[0].g[:c+1]
			kernel.Dots(g, f.z[f.K*lo:f.K*lo+(c+1)*n], r)
			add(m.c[c*f.K:c*f.K+c+1], g)
		}
	}
	if !f.exact {
		kernel.Multiply(f.z2, f.z, f.z)
	}
	f.sums(f.sumV, f.nv)
	if f.exact {
		f.products()
	}
	f.lowest(f.sumU, f.Of)
	m.share(f.exact, inner(f.sumU, f.sumZ))
}

// lowest sets what the entries of components with these sums over count are not let fall
// below.
func (f *Newton) lowest(sums []float64, count int) {
	for c, v := range sums {
		f.metric.floor[c] = 0
		if f.Loss <= divergence.KL && f.Partial {
			f.metric.floor[c] = float64(leastEntry*v) / float64(count)
		}
	}
}

// leastAhead is the share of z below which the next y does not fall.
func (f *Newton) leastAhead() float64 {
	if f.exact {
		return 0
	}
	return leastShare
}

// halfU makes z of U in a piece of the rows: their half at y and the new V. With the next
// y of them it takes the gradient of V there.
func (f *Newton) halfU(worker, piece int) {
	ws := &f.room[worker]
	f.clear(piece)
	k := f.K
	f.over(worker, piece, func(b *band, i, rows int) { f.halfThin(ws, b, piece, i, rows) }, func(i, rows int) {
		x, stride := f.load(ws, i, rows)
		u, p := ws.u[:rows*k], ws.p[:rows*k]
		for r := range rows {
			for c, s := range f.scale {
				u[r*k+c] = float64(f.U[(i+r)*k+c] * s)
			}
		}
		f.directU(ws, i, rows, x, stride)
		f.searchU(ws, rows, x, stride)
		for r := range rows {
			f.aheadU(i+r, p[r*k:(r+1)*k])
		}
		f.gradientRows(ws, piece, i, rows, x, stride)
	})
}

// aheadU makes row i of U's z of the one before, and the next y.
func (f *Newton) aheadU(i int, z []float64) {
	zu, nu, floors, least := f.zu[i*f.K:(i+1)*f.K], f.nu[i*f.K:(i+1)*f.K], f.metric.floor, f.leastAhead()
	for c, v := range z {
		nu[c] = f.ahead(v, zu[c], floors[c], least)
		zu[c] = v
	}
}

// directU fills p with the direction of rows of U, and g with the slope and the longest
// step of each; where the metric is exact p is the new rows.
func (f *Newton) directU(ws *newtonScratch, i, rows int, x []float64, stride int) {
	k := f.K
	u, g, h := ws.u[:rows*k], ws.g[:rows*k], ws.h[:rows*k]
	clear(g)
	clear(h)
	t := ws.t[:rows*k]
	for tile := range f.tiles.count {
		lo, hi := f.tile(tile)
		z := f.z[k*lo : k*hi]
		n := rows * (hi - lo)
		w, r, q := ws.w[rows*lo:rows*hi], ws.r[:n], ws.q[:n]
		f.curve(ws, r, q, w, u, z, x[lo:], stride, rows)
		kernel.DotsRows(t, z, r, rows)
		add(g, t)
		kernel.DotsRows(t, f.z2[k*lo:k*hi], q, rows)
		add(h, t)
	}
	f.solveU(ws, i, rows)
}

// solveU makes the direction of rows of U of the sums g and h.
func (f *Newton) solveU(ws *newtonScratch, i, rows int) {
	k, s := f.K, &ws.strip
	u, g, h := ws.u[:rows*k], ws.g[:rows*k], ws.h[:rows*k]
	n := kernel.Pad(rows)
	s.cut(k, n)
	if rows < n {
		clear(s.b)
		clear(s.g)
		clear(s.h)
	}
	for r := range n {
		s.weight[r] = 0
		if r < rows {
			s.weight[r] = f.metric.weigh(f.Loss, inner(u[r*k:(r+1)*k], f.sumZ), f.shareU[i+r], f.Of)
		}
	}
	for c := range k {
		b, g0, h0 := s.b[c*n:c*n+rows], s.g[c*n:c*n+rows], s.h[c*n:c*n+rows]
		base := f.addU
		if f.plain {
			base += f.sumZ[c]
		}
		at := c
		for r := range b {
			b[r], g0[r] = u[at], base-g[at]
			at += k
		}
		at = c
		for r := range h0 {
			h0[r] = h[at]
			at += k
		}
	}
	f.metric.solve(s)
	p := ws.p[:rows*k]
	for c := range k {
		at := c
		for _, v := range s.p[c*n : c*n+rows] {
			p[at] = v
			at += k
		}
	}
}

// searchU makes the step of rows of U along p, and leaves the new ones there.
func (f *Newton) searchU(ws *newtonScratch, rows int, x []float64, stride int) {
	k := f.K
	var sums [Group][3]float64
	for tile := range f.tiles.count {
		lo, hi := f.tile(tile)
		n := hi - lo
		d := ws.d[:rows*n]
		kernel.CombineRows(d, ws.p[:rows*k], f.z[k*lo:k*hi], rows)
		for r := range rows {
			d := d[r*n : (r+1)*n]
			if f.powers() {
				for j, v := range d {
					c2, c3, rho := f.stretch(ws.q[r*n+j], ws.w[r*n+j], v)
					sums[r][0] += c2
					sums[r][1] += c3
					sums[r][2] = max(sums[r][2], rho)
				}
				continue
			}
			if f.Loss == divergence.KL {
				var some [3]float64
				kernel.StretchRow(&some, ws.w[rows*lo+r*n:rows*lo+(r+1)*n], d, x[r*stride+lo:r*stride+hi])
				sums[r][0] += some[0]
				sums[r][1] += some[1]
				sums[r][2] = max(sums[r][2], some[2])
				continue
			}
			for j, o := range ws.seen[r] {
				if o {
					sums[r][0] += float64(d[j] * d[j])
				}
			}
		}
	}
	for r := range rows {
		t := stepLength(ws.strip.slope[r], sums[r][0], sums[r][1], sums[r][2], ws.strip.limits[r])
		u, p := ws.u[r*k:(r+1)*k], ws.p[r*k:(r+1)*k]
		for c, v := range u {
			p[c] = stepped(v, float64(t*p[c]))
		}
	}
}

// curve fills r with what the gradient of the factor that moves sums against the one that is
// held, but for its sign and for the sums of that under KL without hidden cells, and q with
// the curvature: X/W - 1 and X/W² or X - W and 1, 0 where a cell is hidden; without, X/W and
// X/W², W = uv, which w has already where v is nil. w is W afterwards, under KL 1/W. Other β: see above.
func (f *Newton) curve(ws *newtonScratch, r, q, w, u, v, x []float64, stride, rows int) (difference float64) {
	n := len(r) / rows
	switch {
	case f.Loss == divergence.KL && v != nil:
		difference = kernel.CurveRows(r, q, w, u, v, x, stride, rows, divergence.LeastT)
	case f.Loss == divergence.KL:
		kernel.Curve(r, q, w, x, stride, rows, divergence.LeastT)
	case v != nil:
		kernel.CombineRows(w, u, v, rows)
	}
	if !f.apart {
		return difference
	}
	least, linear, square := f.Loss.Least(), max(float64(f.Loss)-1, 0), 2-float64(f.Loss)
	for i := range rows {
		r, q, w, x := r[i*n:(i+1)*n], q[i*n:(i+1)*n], w[i*n:(i+1)*n], x[i*stride:]
		if f.powers() {
			f.Loss.Terms(r, q, x[:n], w, least)
		}
		for j := range r {
			switch {
			case j >= f.N || ws.seen[i] != nil && !ws.seen[i][j]:
				r[j], q[j] = 0, 0
			case f.Loss == divergence.KL:
				r[j]--
			case f.Loss == divergence.Frobenius:
				r[j], q[j] = x[j]-w[j], 1
			default:
				r[j], q[j] = r[j]-q[j], (float64(linear*q[j])+float64(square*r[j]))/max(w[j], least)
			}
		}
	}
	return difference
}

// clear readies a piece of the rows for sums at the next y.
func (f *Newton) clear(piece int) {
	p := &f.pieces[piece]
	clear(p.num)
	clear(p.den)
	clear(p.sum)
	clear(p.losses)
	clear(f.extra[piece].h)
}

// gradient takes the loss and the gradient of V at the next y, in a piece of the rows.
func (f *Newton) gradient(worker, piece int) {
	ws := &f.room[worker]
	f.clear(piece)
	f.over(worker, piece, func(b *band, i, rows int) { f.gradientThin(ws, b, piece, i, rows) }, func(i, rows int) {
		x, stride := f.load(ws, i, rows)
		f.gradientRows(ws, piece, i, rows, x, stride)
	})
}

func (f *Newton) gradientRows(ws *newtonScratch, piece, i, rows int, x []float64, stride int) {
	k, pt := f.K, &f.pieces[piece]
	u, squares := f.nu[i*k:(i+rows)*k], ws.squares[:rows*k]
	kernel.Multiply(squares, u, u)
	loss := 0.0
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		n := hi - lo
		num := pt.num[k*lo : k*hi]
		w, r, q := ws.w[:rows*n], ws.r[:rows*n], ws.q[:rows*n]
		v := f.nv[k*lo : k*hi]
		if f.apart {
			kernel.CombineRows(w, u, v, rows)
			f.lossRows(ws, pt, i, rows, x, w)
			v = nil
		}
		difference := f.curve(ws, r, q, w, u, v, x[lo:], stride, rows)
		if !f.apart {
			loss += difference
			loss += kernel.LogSumRows(r, x[lo:], stride, rows)
		}
		kernel.AccumulateRows(num, u, r, rows)
		kernel.AccumulateRows(pt.den[k*lo:k*hi], squares, q, rows)
	}
	pt.losses[0] += max(loss, 0) // it is one; rounding may say otherwise of a perfect fit
	f.curvatures(ws, piece, u)
}

// curvatures adds what rows of U add to their sums and to the shared Hessian of V.
func (f *Newton) curvatures(ws *newtonScratch, piece int, u []float64) {
	k, kp, pt := f.K, kernel.Pad(f.K), &f.pieces[piece]
	for len(u) > 0 {
		rows := min(Group, len(u)/k)
		over, wide := ws.over[:rows*k], ws.wide[:rows*kp]
		for r := range rows {
			u := u[r*k : (r+1)*k]
			copy(wide[r*kp:], u)
			for a, v := range u {
				pt.sum[a] += v
			}
			weight := f.Loss.Stiffness(inner(u, f.sumV))
			over := over[r*k : (r+1)*k]
			clear(over)
			if weight > 0 {
				for a, v := range u {
					over[a] = v / weight
				}
			}
		}
		kernel.AccumulateRows(f.extra[piece].h, over, wide, rows)
		u = u[rows*k:]
	}
}

// lossRows adds the losses of rows some of whose cells are hidden.
func (f *Newton) lossRows(ws *newtonScratch, pt *part, i, rows int, x, w []float64) {
	for r := range rows {
		lo, hi := r*f.NP, r*f.NP+f.N
		x, w := x[lo:hi], w[lo:hi]
		if f.Loss == divergence.KL {
			kernel.Ratio(ws.product[:f.N], x, w, divergence.LeastT)
		}
		pt.losses[0] += f.Loss.Sum(x, w, ws.product[:f.N], ws.seen[r], f.Loss.Least())
		pt.losses[1] += f.Held(f.Loss, w, i+r, f.Loss.Least(), ws.product[:f.N])
	}
}

// Prepare makes room for a state saved after e epochs.
func (f *Newton) Prepare(e int) {
	if e > f.first() {
		f.prepare() // thin rows stay so: others have other bits
		f.take()
	}
}

// State is z and τ, once the multiplicative updates are over.
func (f *Newton) State() []section.Part {
	if !f.taken {
		return nil
	}
	return []section.Part{section.Positive(f.zu), section.Positive(f.zv), section.Within(f.tau, 1, math.MaxFloat64)}
}

// Resume takes the gradient at the factors that were read.
func (f *Newton) Resume(e int) {
	if e <= f.first() {
		f.Updates.Resume(e)
		return
	}
	f.open()
	f.last = f.lossesNext()
}
