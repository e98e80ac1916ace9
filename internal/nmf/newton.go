package nmf

// This file holds X ≈ UV with U, V >= 0 by Newton's method with bounds, half by half and with momentum: some
// twenty epochs where multiplicative updates (updates.go) take hundreds. The loss is that of Kullback and
// Leibler, or Frobenius'. Here are the course of an epoch and its momentum. metric.go has the problem of one
// column, newtonv.go and newtonu.go the two halves, newtonthin.go rows that are mostly zero.
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
// sweeps themselves lower it: exact.go.
//
// # Hidden cells
//
// Where W is 0 the fit says that a cell is 0. If the cell is not, it costs any amount of loss, and a fit that
// has not seen the cell does not feel that. Newton's method brings entries to exactly 0 within ten epochs;
// after a hundred multiplicative updates they are still far from 0. So under KL, where cells are hidden, no
// entry falls below a hundredth of its component's mean. Hidden cells are then predicted better than by
// multiplicative updates stopped at their best epoch (docs/measurements/nmf.md). Where no cell is hidden,
// entries may be 0.
//
// # Momentum
//
// The halves start at y and lead to z, no worse than y. The next y is max(z + (τ-1)/τ' (z - z before), z/10),
// τ' = (1+√(1+4τ²))/2 (Nesterov 1983; under Frobenius' loss without hidden cells not below 0 is enough).
// Where its loss is above that of the y before, y is z and τ = 1 again: the losses at y, those returned,
// never rise. Between the halves the components are brought to Σ_i U_ia = Σ_j V_aj, with penalties to where
// these are least, so that momentum does not run along their scale. Columns of U that are given stay.
//
// # An epoch
//
// X is read twice: for the step of V, and for the half of U and with the U and V that follow the
// loss and the next gradient of V. Nothing of its size is kept: 18dnk flops, 3dn divisions
// and dn logarithms. For Frobenius without hidden cells
// XVᵀ and UᵀX are all that is taken of X, in one reading: 4dnk, and 24k²(d+n) for the sweeps.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/section"
)

const (
	warmEpochs   = 3 // multiplicative updates before Newton's method: it finds poor optima from afar
	newtonSweeps = 4 // of coordinate descent
	// of the shared Hessian's diagonal, below which h does not fall; and of z, below which y does not
	leastShare  = 0.1
	ridge       = 1e-6
	longestStep = 2
	leastEntry  = 0.01 // of the mean of its component, where cells are hidden
)

// Newton is an NMF by Newton's method under way. It begins as an Updates, whose
// factors stay the state that the last losses are of: y above. What it has of V lies in
// tiles, as the sums of the pieces do.
type Newton struct {
	Updates
	cols int // pieces of the columns

	progress
	momentum
	points
	balance
	metric         metric
	shareU, shareV []float64 // the visible share of a row, of a column

	slopes, most []float64 // np: of the direction of V
	extra        []newtonPart
	room         []newtonScratch
}

// progress is how far the method has come.
type progress struct {
	taken bool // the multiplicative updates are over
	sized bool // the pieces have the size of X
	still bool // neither y nor z was lower: nothing moves any more
	last  Losses
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

// stepU moves rows of U, of which the first number has index at, ahead of z, and z on to where they were;
// where there is no z, nothing.
func (m *momentum) stepU(u []float64, at int) {
	if m.zu != nil {
		m.grow(u, m.zu[at:])
	}
}

// stepV is stepU of a row of V.
func (m *momentum) stepV(v []float64, at int) {
	if m.zv != nil {
		m.grow(v, m.zv[at:])
	}
}

// grow moves the entries of f that are above those of z ahead, and z on to where they all were.
func (m *momentum) grow(f, z []float64) {
	for i, now := range f {
		if before := z[i]; now > before {
			f[i] = now + float64(m.by*(now-before))
		}
		z[i] = now
	}
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
	omega                  []float64 // the weights of the cells of the rows of x, 0 where hidden
	u, squares, p, g, h, t []float64 // rows of U, and what belongs to them
	over, wide             []float64 // of the shared Hessian: rows of U by their weights, and padded
	laid                   []float64 // rows of X, see toTiles
	strip                  strip
}

// NewNewton returns Newton's method for a problem.
func NewNewton(p Problem) *Newton {
	n := &Newton{momentum: momentum{tau: []float64{1}}}
	n.set(p, true, First(p.Loss, p.Partial, p.Penalties) > 0)
	n.do = n.piece
	return n
}

// first is the number of multiplicative updates that a fit begins with: none where the
// halves are exact, unless a penalty may then end both factors at 0 at once.
func (f *Newton) first() int { return First(f.Loss, f.Partial, f.Penalties) }

// First is the same for a problem of this kind.
func First(loss divergence.Loss, partial bool, penalties Penalties) int {
	if loss == divergence.Frobenius && !partial && !penalties.Any() {
		return 0
	}
	return warmEpochs
}

// Begin takes the losses of the start.
func (f *Newton) Begin() (Losses, error) {
	if f.first() > 0 {
		return f.Updates.Begin()
	}
	f.prepare()
	f.start()
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
	f.taken = true
	if f.plain {
		f.thin.from = nil
		if f.thin.some {
			f.takeThin()
		}
	}
	f.makeRoom()
	f.observedShares()
}

// Reserve takes the room of multiplicative updates, if there are any, and then that of Newton's method, if
// there are more epochs.
func (f *Newton) Reserve(epochs int) {
	f.Updates.Reserve(epochs)
	if f.first() > 0 && epochs <= f.first() {
		return
	}
	if f.plain && f.mayBeThin() {
		f.takeThin()
	}
	f.makeRoom()
}

// makeRoom makes room, in place of that which multiplicative updates alone need.
func (f *Newton) makeRoom() {
	a, d, k, np := f.Pool.Memory, f.D, f.K, f.NP
	f.work, f.tiles.v = nil, nil
	f.early.Release()
	if f.Partial {
		f.tiles.count, f.tiles.width = 1, np
	}
	f.y, f.zv, f.nv, f.z = a.Floats(k, np), a.Floats(k, np), a.Floats(k, np), a.Floats(k, np)
	f.zu, f.nu = a.Floats(d, k), a.Floats(d, k)
	f.scale, f.sumU, f.sumV, f.sumZ = a.Floats(k), a.Floats(k), a.Floats(k), a.Floats(k)
	f.metric = metric{floor: a.Floats(k), c: a.Floats(k, k), diag: a.Floats(k), inverse: a.Floats(k)}
	f.slopes, f.most, f.shareV = a.Floats(np), a.Floats(np), a.Floats(np)
	f.extra, f.room = make([]newtonPart, len(f.pieces)), make([]newtonScratch, f.Pool.Workers())
	f.cols = min(Pieces, np/kernel.Lanes)
	for i := range f.extra {
		e := &f.extra[i]
		e.h, f.pieces[i].den = a.Floats(k, kernel.Pad(k)), nil
		if !f.exact {
			e.c2, e.c3, e.rho = a.Floats(np), a.Floats(np), a.Floats(np)
			f.pieces[i].den = a.Floats(k, np)
		}
	}
	if !f.exact {
		f.z2, f.shareU = a.Floats(k, np), a.Floats(d)
	}
	for i := range f.room {
		f.room[i] = f.newScratch()
	}
}

// newScratch makes the room of a worker.
func (f *Newton) newScratch() newtonScratch {
	a, k, np := f.Pool.Memory, f.K, f.NP
	few := f.together(Group)
	rows, wide := few, stripColumns
	if f.exact {
		rows = f.together(f.rowsTogether())
		wide = max(wide, kernel.Pad(rows))
	}
	strips := func() []float64 { return a.Floats(k, wide) }
	ws := newtonScratch{r: a.Floats(few, f.tiles.width), g: a.Floats(rows, k), t: a.Floats(rows, k),
		wide: a.Floats(few, kernel.Pad(k)),
		strip: strip{b: strips(), g: strips(), h: strips(), p: strips(), low: strips(), r: strips(),
			root: strips(), weight: a.Floats(stripColumns), slope: a.Floats(stripColumns),
			limits: a.Floats(stripColumns)}}
	if f.exact {
		ws.x, ws.w, ws.laid = a.Floats(np), a.Floats(few, f.tiles.width), a.Floats(rows, np)
		return ws
	}
	ws.x, ws.w = a.Floats(few, np), a.Floats(few, np)
	ws.q, ws.d = a.Floats(few, f.tiles.width), a.Floats(few, f.tiles.width)
	ws.u, ws.squares, ws.p = a.Floats(rows, k), a.Floats(rows, k), a.Floats(rows, k)
	ws.h, ws.over = a.Floats(rows, k), a.Floats(rows, k)
	if f.Partial {
		ws.product, ws.omega = a.Floats(np), a.Floats(few, np)
	}
	return ws
}

// observedShares fills shareU and shareV.
func (f *Newton) observedShares() {
	for i := range f.shareU {
		f.shareU[i] = float64(f.Rows[i]) / float64(f.N)
	}
	for j := range f.shareV {
		f.shareV[j] = 1
	}
	if !f.Partial || f.D != f.Of {
		return
	}
	clear(f.shareV)
	ws := &f.room[0]
	for i := range f.D {
		f.Read(ws.x, ws.omega, i)
		sum := 0.0
		for j, v := range ws.omega[:f.N] {
			sum += v
			f.shareV[j] += v
		}
		f.shareU[i] = sum / float64(f.N)
	}
	for j := range f.shareV {
		f.shareV[j] /= float64(f.D)
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
		f.products(f.nv)
	}
	f.transposeThree(nil, nil, f.nv)
	f.run(opGradient, len(f.pieces))
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
	if err := f.Pool.Err(); err != nil {
		return Losses{}, err
	}
	if e < f.first() {
		return f.update(), f.Pool.Err()
	}
	if !f.taken {
		f.start()
	}
	if !f.still {
		f.halfV()
		l := f.onward()
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
	f.transposeThree(f.z, nil, f.nv)
	f.run(opHalf, len(f.pieces))
	return f.lossesNext()
}

// rises tells whether losses are above the last ones.
func (f *Newton) rises(l Losses) bool { return l.Above(f.last) }

// piece does the op with a piece.
func (f *Newton) piece(worker, piece int) {
	switch f.op {
	case opTransposeThree:
		f.transposeThreeTile(piece)
	case opDirect:
		f.direct(worker, piece)
	case opSearch:
		f.searchV(worker, piece)
	case opMove:
		f.moveV(piece)
	case opHalf:
		f.halfU(worker, piece)
	case opGradient:
		f.gradient(worker, piece)
	case opResidual:
		f.residualNext(worker, piece)
	default:
		f.Updates.piece(worker, piece)
	}
}

// load returns rows of x, whole blocks that lie stride apart, with 0 where a cell is hidden, and fills omega.
// Under KL x is multiplied by that, as W will be: w Δ(x,W) = Δ(wx,wW).
func (f *Newton) load(ws *newtonScratch, i, rows int) (x []float64, stride int) {
	if f.blocks() && !f.Partial {
		return f.X[i*f.Stride:], f.Stride
	}
	for r := range rows {
		to := ws.x[r*f.NP : (r+1)*f.NP]
		switch {
		case f.Partial:
			omega := ws.omega[r*f.NP : (r+1)*f.NP]
			f.Read(to, omega, i+r)
			if f.Loss == divergence.KL {
				kernel.Multiply(to, to, omega)
			}
		case len(f.X) > 0:
			copy(to, f.X[(i+r)*f.Stride:(i+r)*f.Stride+f.N])
		default:
			f.Read(to, nil, i+r)
		}
	}
	return ws.x, f.NP
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
	return []section.Part{section.Positive(f.zu), section.Positive(f.zv),
		section.Within(f.tau, 1, math.MaxFloat64)}
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
