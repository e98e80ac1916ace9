// Package posterior holds variational Bayes of a signed low-rank model,
//
//	Y_ij ~ N(u_i·v_j, 1/(τ_i ρ_j)),   v_j ~ N(0, I),   u_i ~ N(0, diag(1/α)),
//
// with a factorised posterior N(u_i, S_i), N(v_j, C_j) over the cells of Y that
// are seen. It knows nothing of maps or of the units of the data.
//
// With B_i = u_i u_iᵀ + S_i and B_j = v_j v_jᵀ + C_j, the second moments, an epoch is
//
//	ρ_j = (n_j+60)/(Σ_i τ_i e_ij + 60), geometric mean 1, within [1/20, 20];
//	C_j = (I + ρ_j Σ_i τ_i B_i)⁻¹,        v_j = C_j ρ_j Σ_i τ_i Y_ij u_i;
//	a change of coordinates that makes Σ_j B_j/n the identity and Σ_i B_i diagonal;
//	S_i = (diag α + τ_i Σ_j ρ_j B_j)⁻¹,   u_i = S_i τ_i Σ_j ρ_j Y_ij v_j;
//	α_k = (d + a)/(s_k + a Σ s/(dK)),  s = diag Σ_i B_i,  a = 30 (1/γ - 1);
//	τ_i = (n_i+2)/(Σ_j ρ_j e_ij + 2/t),  t = Σ n_i/ΣΣ ρ_j e_ij,
//
// sums over the seen cells of a row or a column, e_ij = E (Y_ij - u_i·v_j)². The strength γ says how far each
// component has a relevance of its own: the a pseudo-rows hold every 1/α_k at the mean of all. At γ = 1 there
// are none. The change of coordinates leaves the model as it is and gives α its meaning at once; it is made
// in the first epochs only. Where most cells are seen, epochs on the completed matrix (completed.go) take the
// place of these first epochs.
//
// # Cost
//
// No number belongs to a seen cell: Σ_i τ_i B_i over the cells seen in column j
// is the sum over all rows less the one over the hidden ones, or the sum over the
// seen ones, whichever are fewer, and
//
//	Σ_i τ_i e_ij = Σ_i τ_i Y_ij² - 2 v_j·(Σ_i τ_i Y_ij u_i) + <Σ_i τ_i B_i, B_j>.
//
// So an epoch takes 4dnK flops, 2K² for each hidden cell, and d+n inverses of
// K × K, by their lower triangles, K³ each.
//
// Second moments are kept packed: the lower triangle row after row, entries off
// the diagonal times √2, so that an inner product of matrices is one of vectors.
package posterior

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// Constants of the model. They were found by the error on unseen cells.
const (
	turns      = 6    // epochs with a change of coordinates
	noiseFrom  = 6    // the first epoch, from 0, that updates ρ
	pruneFrom  = 5    // the first epoch that drops components
	pruneAt    = 100  // ratio of α to the least at which a component is dropped
	rhoCells   = 60   // pseudo-cells that hold ρ_j at 1
	rhoMost    = 20   // ρ is within a factor of so much of 1
	alphaRows  = 30   // pseudo-rows that hold 1/α_k at the mean of all components where γ is 1/2
	tauCells   = 2    // pseudo-cells that hold τ_i at t
	tauMost    = 1e6  // noise below a thousandth of a row's deviation counts as so much
	leastSteps = 10   // epochs before a fit may end
	mostPieces = 16   // the most pieces of the rows, whose sums are added in order
	pieceLines = 64   // lines that are worth a piece
	startRidge = 1e-6 // of α at the start
	root2      = math.Sqrt2
)

// Data is what is fitted: Y, d × Pad(n), 0 where a cell is hidden and in the
// padding, and the hidden cells.
type Data struct {
	D, N  int
	Of    int // rows of the whole matrix, for which Lend has room; 0: no more than D
	Y     []float64
	Rows  []List // the hidden columns of every row
	Cols  []List // the hidden rows of every column
	Whole bool   // nothing is hidden
}

// List is the hidden places of a line, or its seen places where these are fewer.
type List struct {
	At    []uint32
	Seen  bool // At has the seen places
	Count int  // of seen places
}

// NewData lists what is hidden; seen tells of a cell.
func NewData(d, n int, y []float64, seen func(i, j int) bool) *Data {
	x := &Data{D: d, N: n, Y: y, Rows: make([]List, d), Cols: make([]List, n), Whole: true}
	for i := range d {
		for j := range n {
			if seen(i, j) {
				x.Rows[i].Count++
				x.Cols[j].Count++
			} else {
				x.Whole = false
			}
		}
	}
	if x.Whole {
		return x
	}
	for i := range x.Rows {
		x.Rows[i].Seen = 2*x.Rows[i].Count < n
	}
	for j := range x.Cols {
		x.Cols[j].Seen = 2*x.Cols[j].Count < d
	}
	for i := range d {
		for j := range n {
			s := seen(i, j)
			if r := &x.Rows[i]; r.Seen == s {
				r.At = append(r.At, uint32(j))
			}
			if c := &x.Cols[j]; c.Seen == s {
				c.At = append(c.At, uint32(i))
			}
		}
	}
	return x
}

// Cells returns the number of seen cells.
func (x *Data) Cells() int {
	sum := 0
	for _, l := range x.Rows {
		sum += l.Count
	}
	return sum
}

// Packed is the length of a packed K × K matrix, whole blocks.
func Packed(k int) int { return kernel.Pad(k * (k + 1) / 2) }

// Fit is a posterior and the noise, under way or done. U, V, BU, BV, Tau, Rho, Alpha, Unit and K are its
// state: a fit made by the same call of New, and given the state of another one, goes on as the other one
// does.
type Fit struct {
	*Data
	K     int
	Gamma float64
	U     []float64 // D × K
	V     []float64 // K × Pad(N)
	BU    []float64 // D × Packed(K): B_i
	BV    []float64 // N × Packed(K): B_j
	Tau   []float64 // D
	Rho   []float64 // N
	Alpha []float64 // K
	Unit  float64   // the geometric mean that ρ was divided by
	Bound float64   // the negative lower bound of the evidence, in nats a seen cell
	Moved float64   // how far the last epoch moved UV, relative to itself
	Ahead int       // how many of the first epochs those on the completed matrix stand for

	np, kp, pp int
	seen       float64
	lastU      []float64 // U and V as the epoch found them
	lastV      []float64
	resid      []float64 // D: Σ_j ρ_j e_ij
	logS, logC []float64 // log determinants
	rhs        []float64 // K × Pad(N), or D × K
	scaled     []float64 // K × Pad(N)
	// D × Packed(K): the B_i of the epoch before, and where a step of U puts the new ones
	spare []float64
	// N × Packed(K): Σ_i τ_i B_i of what a column sees, then its new B_j, and after a step of V the old ones
	grams      []float64
	parts      [][]float64
	sumU, sumV []float64 // packed
	sizes      []float64 // K: the diagonal of Σ_i B_i
	squares    []float64 // Pad(N)
	work       []*scratch
	tau, rho   weights
	pool       *pool.Pool
	ctx        context.Context
}

// scratch is the room of one worker.
type scratch struct {
	system
	u, packed, line []float64
	panel           []float64 // of the moments, see gather
}

func newScratch(k, np int) *scratch {
	return &scratch{system: newSystem(k), u: make([]float64, 4*k), packed: make([]float64, Packed(k)),
		line: make([]float64, np)}
}

// New returns a fit of rank k at its start: the first k singular vectors of Y, the hidden cells at 0. Begin
// or Complete makes its second moments, or Resize room for those of another fit. It has no meaning where the
// context has ended.
func New(ctx context.Context, x *Data, k int, gamma float64, s *svd.Subspace, p *pool.Pool) *Fit {
	f := &Fit{Data: x, K: k, Gamma: gamma, Unit: 1, pool: p, ctx: ctx, np: kernel.Pad(x.N)}
	f.size()
	for _, c := range x.Rows {
		f.seen += float64(c.Count)
	}
	if f.completes() {
		f.Ahead = turns
	}
	f.Tau, f.Rho, f.Alpha = make([]float64, x.D), make([]float64, x.N), make([]float64, k)
	f.resid, f.logS, f.logC = make([]float64, x.D), make([]float64, x.D), make([]float64, x.N)
	f.squares = make([]float64, f.np)
	for j := range f.Rho {
		f.Rho[j] = 1
	}
	share := max(f.seen/(float64(x.D)*float64(x.N)), 0.1)
	u, v := make([]float64, x.D), make([]float64, x.N)
	rootN := math.Sqrt(float64(x.N))
	for c := range min(k, s.L) {
		size := s.Vectors(u, v, c) / rootN / math.Sqrt(share)
		for i, t := range u {
			f.U[i*k+c] = t * size
		}
		row := f.V[c*f.np:]
		for j, t := range v {
			row[j] = t * rootN
		}
	}
	if f.stopped() {
		return f
	}
	f.startNoise()
	for c := range k {
		s := 0.0
		for i := range x.D {
			s += float64(f.U[i*k+c] * f.U[i*k+c])
		}
		f.Alpha[c] = float64(x.D) / (s + float64(startRidge*float64(x.D)))
	}
	return f
}

// Begin fills the second moments of the start, which have no spread yet. When the context ends the fit has no
// meaning.
func (f *Fit) Begin() {
	f.hold()
	f.pool.Do((f.D+pieceLines-1)/pieceLines, func(_, c int) {
		for i := c * pieceLines; i < min((c+1)*pieceLines, f.D) && !f.stopped(); i++ {
			f.moments(f.packU(i), f.rowU(i))
		}
	})
	column := make([]float64, f.K)
	for j := range f.N {
		for c := range column {
			column[c] = f.V[c*f.np+j]
		}
		f.moments(f.packV(j), column)
	}
}

// size makes the room for K components, but that of the second moments.
func (f *Fit) size() {
	k := f.K
	f.kp, f.pp = kernel.Pad(k), Packed(k)
	f.U, f.V = make([]float64, f.D*k), make([]float64, k*f.np)
	f.room()
}

// hold makes the room for second moments.
func (f *Fit) hold() {
	most := max(f.D, f.Of) * f.pp
	f.BU, f.spare = make([]float64, f.D*f.pp, most), make([]float64, f.D*f.pp, most)
	f.BV, f.grams = make([]float64, f.N*f.pp), make([]float64, f.N*f.pp)
}

func (f *Fit) room() {
	k := f.K
	f.lastU, f.lastV = make([]float64, f.D*k), make([]float64, k*f.np)
	f.rhs, f.scaled = make([]float64, max(k*f.np, f.D*k)), make([]float64, k*f.np)
	f.sumU, f.sumV, f.sizes = make([]float64, f.pp), make([]float64, f.pp), make([]float64, k)
	f.parts = make([][]float64, pieces(max(f.D, f.N)))
	for c := range f.parts {
		f.parts[c] = make([]float64, max(k*f.np+f.np, f.pp))
	}
	f.work = make([]*scratch, f.pool.Workers())
	for w := range f.work {
		f.work[w] = newScratch(k, f.np)
	}
}

func (f *Fit) rowU(i int) []float64  { return f.U[i*f.K : (i+1)*f.K] }
func (f *Fit) rowY(i int) []float64  { return f.Y[i*f.np : (i+1)*f.np] }
func (f *Fit) packU(i int) []float64 { return f.BU[i*f.pp : (i+1)*f.pp] }
func (f *Fit) packV(j int) []float64 { return f.BV[j*f.pp : (j+1)*f.pp] }
func (f *Fit) gram(j int) []float64  { return f.grams[j*f.pp : (j+1)*f.pp] }

// moments fills a packed uuᵀ.
func (f *Fit) moments(b, u []float64) {
	at := 0
	for r, x := range u {
		x2 := x * root2
		for c, y := range u[:r] {
			b[at+c] = x2 * y
		}
		at += r
		b[at] = x * x
		at++
	}
}

// startNoise fills τ from the residuals of the start.
func (f *Fit) startNoise() {
	f.pool.Do(f.D, func(w, i int) {
		line := f.work[w].line[:f.np]
		kernel.Combine(line, f.rowU(i), f.V)
		e, yy, n := 0.0, 0.0, float64(f.Rows[i].Count)
		y := f.rowY(i)
		f.eachSeen(i, func(j int) {
			e += float64((y[j] - line[j]) * (y[j] - line[j]))
			yy += float64(y[j] * y[j])
		})
		t := (tauCells + n) / (tauCells + e + float64(0.1*n))
		f.Tau[i] = min(t, 1/max(0.3*yy/n, 1/tauMost))
	})
}

// eachSeen calls g for the seen columns of row i.
func (f *Fit) eachSeen(i int, g func(j int)) { f.Rows[i].Each(f.N, g) }

// Each calls g for the seen places of a line of n, in their order.
func (l *List) Each(n int, g func(j int)) {
	if l.Seen {
		for _, j := range l.At {
			g(int(j))
		}
		return
	}
	at := l.At
	for j := range n {
		if len(at) > 0 && int(at[0]) == j {
			at = at[1:]
			continue
		}
		g(j)
	}
}

// stopped tells whether the caller wants to end.
func (f *Fit) stopped() bool { return f.ctx.Err() != nil }

// Epoch makes one epoch, the t-th from 0 after the first Ahead, and tells whether the fit has come to
// rest at the tolerance. When the context ends it stops early, and the fit is as it was before.
func (f *Fit) Epoch(t int, tolerance float64) (done bool) {
	t += f.Ahead
	before, rho, alpha := *f, slices.Clone(f.Rho), slices.Clone(f.Alpha)
	copy(f.lastU, f.U)
	copy(f.lastV, f.V)
	f.stepV(t)
	turned := 0.0
	if t < turns && !f.stopped() {
		turned = f.turn()
	}
	if !f.stopped() {
		f.stepU()
	}
	if f.stopped() { // the old second moments are where they were
		*f = before
		copy(f.U, f.lastU)
		copy(f.V, f.lastV)
		copy(f.Rho, rho)
		copy(f.Alpha, alpha)
		return false
	}
	f.relevant(f.sizes)
	f.noise()
	f.Bound = f.bound(turned)
	f.Moved = f.movement()
	if t >= pruneFrom {
		f.prune()
	}
	return t >= leastSteps && f.Moved < tolerance
}

// weights are what sums over lines need beside the lines.
type weights struct {
	plain, minus []float64 // a weight for each line, and less that
	none         []float64 // as many zeros as a packed matrix has numbers
	all          []uint32  // 0, 1, ... for each line
}

// fill takes the weights w of lines whose matrices have pp numbers.
func (s *weights) fill(w []float64, pp int) {
	if len(s.minus) != len(w) {
		s.minus, s.all = make([]float64, len(w)), make([]uint32, len(w))
		for l := range s.all {
			s.all[l] = uint32(l)
		}
	}
	if len(s.none) < pp {
		s.none = make([]float64, pp)
	}
	s.plain = w
	kernel.Scale(s.minus, w, -1)
}

// gather fills b with the sum of w_l B_l over the lines that a list sees; sum is the sum over all lines. From
// one B_l to the next there are stride numbers; b and sum may be a part of a matrix, the same part that
// moments begins with.
func (s *weights) gather(b []float64, l *List, sum, moments []float64, stride int) {
	w := s.minus
	if l.Seen {
		w, sum = s.plain, s.none
	}
	kernel.AccumulateFrom(b, sum, w, moments, l.At, stride)
}

const (
	panelWidth = 32      // the least width of a panel: how many numbers of each line it has
	panelCache = 1 << 14 // the most numbers of a panel that is wider than panelWidth
	panelLeast = 2       // how often each line must be read, on average, for a panel to be worth its copy
)

// gather fills sum with Σ w_l B_l over all lines, in the pieces of [Fit.sum], and to with the sums over what
// each of the lists sees. It takes a panel of the moments, some numbers of each line, at a time, which stays
// in the cache from one list to the next.
func (f *Fit) gather(to []float64, lists []List, sum, moments []float64, s *weights) {
	pp, lines := f.pp, len(s.plain)
	reads := 0
	for i := range lists {
		reads += len(lists[i].At)
	}
	width := max(panelCache/lines&^(panelWidth-1), panelWidth)
	if reads < panelLeast*lines || width >= pp {
		clear(sum)
		f.sum(sum, moments, lines, func(l int) float64 { return s.plain[l] })
		count := pieces(len(lists))
		f.pool.Do(count, func(_, c int) {
			from, end := pool.Cut(len(lists), count, c)
			for i := from; i < end && !f.stopped(); i++ {
				s.gather(to[i*pp:(i+1)*pp], &lists[i], sum, moments, pp)
			}
		})
		return
	}
	panels, count := (pp+width-1)/width, pieces(lines)
	cuts := (f.pool.Workers() + panels - 1) / panels // of the lists, where panels are few
	f.pool.Do(panels*cuts, func(w, piece int) {
		if f.stopped() {
			return
		}
		from := piece / cuts * width
		n := min(width, pp-from)
		room := slices.Grow(f.work[w].panel[:0], (lines+2)*n)[:(lines+2)*n]
		f.work[w].panel = room
		all, part, panel := room[:n], room[n:2*n], room[2*n:]
		for l := range lines {
			copy(panel[l*n:(l+1)*n], moments[l*pp+from:])
		}
		clear(all)
		for c := range count {
			first, last := pool.Cut(lines, count, c)
			kernel.AccumulateFrom(part, s.none[:n], s.plain, panel, s.all[first:last], n)
			add(all, part)
		}
		if piece%cuts == 0 {
			copy(sum[from:], all)
		}
		first, last := pool.Cut(len(lists), cuts, piece%cuts)
		for i := first; i < last && !f.stopped(); i++ {
			s.gather(to[i*pp+from:][:n], &lists[i], all, panel, n)
		}
	})
}

// stepV updates ρ, V and C; the B_j before it go to grams. When the context ends BV is as it was.
func (f *Fit) stepV(t int) {
	np := f.np
	f.sumsV()
	if f.stopped() {
		return
	}
	f.tau.fill(f.Tau, f.pp)
	f.gather(f.grams, f.Cols, f.sumU, f.BU, &f.tau)
	if f.stopped() {
		return
	}
	if t >= noiseFrom {
		f.noiseV()
	}
	f.pool.Do(f.N, func(w, j int) {
		if f.stopped() {
			return
		}
		ws := f.work[w]
		ws.load(f.gram(j), f.Rho[j])
		v := ws.border()
		for c := range v {
			ws.a[c*ws.kp+c]++
			v[c] = f.rhs[c*np+j] * f.Rho[j]
		}
		f.logC[j] = -ws.solve()
		for c, t := range v {
			f.V[c*np+j] = t
		}
		ws.pack(f.gram(j))
	})
	if !f.stopped() {
		f.BV, f.grams = f.grams, f.BV
	}
}

// sumsV fills rhs with Σ_i τ_i Y_ij u_i, and squares with Σ_i τ_i Y_ij².
func (f *Fit) sumsV() {
	k, np, count := f.K, f.np, pieces(f.D)
	f.pool.Do(count, func(w, c int) {
		ws := f.work[w]
		part := f.parts[c][:k*np+np]
		clear(part)
		acc, squares := part[:k*np], part[k*np:]
		from, to := pool.Cut(f.D, count, c)
		var one [1]float64
		for i := from; i < to && !f.stopped(); {
			rows := min(4, to-i)
			for r := range rows {
				for h, v := range f.rowU(i + r) {
					ws.u[r*k+h] = v * f.Tau[i+r]
				}
				one[0] = f.Tau[i+r]
				kernel.Multiply(ws.line[:np], f.rowY(i+r), f.rowY(i+r))
				kernel.Accumulate(squares, one[:], ws.line[:np])
			}
			kernel.AccumulateRows(acc, ws.u[:rows*k], f.Y[i*np:(i+rows)*np], rows)
			i += rows
		}
	})
	if f.stopped() {
		return
	}
	rhs := f.rhs[:k*np]
	copy(rhs, f.parts[0][:k*np])
	copy(f.squares, f.parts[0][k*np:])
	for _, part := range f.parts[1:count] {
		add(rhs, part[:k*np])
		add(f.squares, part[k*np:k*np+np])
	}
}

// noiseV updates ρ by the Σ_i τ_i e_ij, given those of sumsV and the grams.
func (f *Fit) noiseV() {
	f.pool.Do(f.N, func(_, j int) {
		var e [1]float64
		kernel.Dots(e[:], f.gram(j), f.packV(j))
		dot := 0.0
		for c := range f.K {
			dot += float64(f.V[c*f.np+j] * f.rhs[c*f.np+j])
		}
		f.Rho[j] = (float64(f.Cols[j].Count) + rhoCells) / (max(f.squares[j]-2*dot+e[0], 0) + rhoCells)
	})
	f.unitRho()
}

// unitRho brings ρ to a geometric mean of 1, and then within [1/rhoMost, rhoMost].
func (f *Fit) unitRho() {
	mean := 0.0
	for _, r := range f.Rho {
		mean += elem.Log(r) / float64(f.N)
	}
	f.Unit = elem.Exp(mean)
	for j, r := range f.Rho {
		f.Rho[j] = min(max(r/f.Unit, 1.0/rhoMost), rhoMost)
	}
}

// stepU updates U and S, and fills resid, and sizes with the diagonal of Σ_i B_i; the B_i before it go to
// spare. When the context ends BU is as it was.
func (f *Fit) stepU() {
	k, np, pp := f.K, f.np, f.pp
	for c := range k {
		kernel.Multiply(f.scaled[c*np:c*np+f.N], f.V[c*np:c*np+f.N], f.Rho)
	}
	f.rho.fill(f.Rho, pp)
	f.gather(f.spare, f.Rows, f.sumV, f.BV, &f.rho)
	if f.stopped() {
		return
	}
	f.pool.Do((f.D+3)/4, func(w, c int) {
		if f.stopped() {
			return
		}
		ws := f.work[w]
		from, to := 4*c, min(4*c+4, f.D)
		kernel.DotsRows(f.rhs[from*k:to*k], f.scaled, f.Y[from*np:to*np], to-from)
		for i := from; i < to; i++ {
			g, rhs := f.spare[i*pp:(i+1)*pp], f.rhs[i*k:(i+1)*k]
			ws.load(g, f.Tau[i])
			u := ws.border()
			for c, a := range f.Alpha {
				ws.a[c*ws.kp+c] += a
				u[c] = rhs[c] * f.Tau[i]
			}
			f.logS[i] = -ws.solve()
			copy(f.rowU(i), u)
			ws.pack(ws.packed)
			line := ws.line[:np]
			kernel.Multiply(line[:f.N], f.rowY(i)[:f.N], f.Rho)
			clear(line[f.N:])
			var yy, bb [1]float64
			kernel.Dots(yy[:], line, f.rowY(i))
			kernel.Dots(bb[:], g, ws.packed)
			copy(g, ws.packed)
			dot := 0.0
			for c, u := range f.rowU(i) {
				dot += float64(u * rhs[c])
			}
			f.resid[i] = max(yy[0]-2*dot+bb[0], 0)
			for c := range rhs { // what was there has been used
				rhs[c] = diagonal(ws.packed, c)
			}
		}
	})
	if f.stopped() {
		return
	}
	f.BU, f.spare = f.spare, f.BU
	clear(f.sizes)
	for c := range pieces(f.D) {
		part := f.parts[c][:k]
		clear(part)
		from, to := pool.Cut(f.D, pieces(f.D), c)
		for i := from; i < to; i++ {
			for c, b := range f.rhs[i*k : (i+1)*k] {
				part[c] += b
			}
		}
		for c, b := range part {
			f.sizes[c] += b
		}
	}
}

// pieces is into how many sums over lines are cut.
func pieces(lines int) int { return min(max(lines/pieceLines, 1), mostPieces) }

// sum adds w_l B_l over all lines.
func (f *Fit) sum(to, moments []float64, lines int, weight func(l int) float64) {
	count := pieces(lines)
	f.pool.Do(count, func(_, c int) {
		part := f.parts[c][:f.pp]
		clear(part)
		from, end := pool.Cut(lines, count, c)
		var w [4]float64
		for l := from; l < end && !f.stopped(); {
			n := min(len(w), end-l)
			for r := range n {
				w[r] = weight(l + r)
			}
			kernel.AccumulateRows(part, w[:n], moments[l*f.pp:(l+n)*f.pp], n)
			l += n
		}
	})
	for _, part := range f.parts[:count] {
		add(to, part[:f.pp])
	}
}

func add(to, from []float64) {
	one := [1]float64{1}
	kernel.Accumulate(to, one[:], from)
}

// unpack fills the square matrix of b, K × Pad(K).
func (f *Fit) unpack(a, b []float64) {
	const off = 1 / float64(root2) // of the float64, whose inverse has other bits than that of √2
	kp, at := f.kp, 0
	for r := range f.K {
		row := a[r*kp : r*kp+r]
		for c := range row {
			v := b[at+c] * off
			row[c] = v
			a[c*kp+r] = v
		}
		at += r
		a[r*kp+r] = b[at]
		at++
	}
	for r := range f.K {
		clear(a[r*kp+f.K : (r+1)*kp])
	}
}

// pack fills b with the lower triangle of a.
func (f *Fit) pack(b, a []float64) {
	at := 0
	for r := range f.K {
		row := a[r*f.kp : r*f.kp+r+1]
		for c, y := range row[:r] {
			b[at+c] = root2 * y
		}
		at += r
		b[at] = row[r]
		at++
	}
}

// diagonal returns entry c of the diagonal of b.
func diagonal(b []float64, c int) float64 { return b[c*(c+1)/2+c] }

// relevant fills α from the diagonal of Σ_i B_i.
func (f *Fit) relevant(s []float64) {
	all, d := 0.0, float64(f.D)
	for _, v := range s {
		all += v
	}
	held := float64(alphaRows * (1/f.Gamma - 1))
	common := float64(held * (all / (d * float64(f.K))))
	for c, v := range s {
		f.Alpha[c] = (d + held) / (max(v, 0) + 1e-12 + common)
	}
}

// noise fills τ.
func (f *Fit) noise() {
	total := 0.0
	for _, r := range f.resid {
		total += r
	}
	own := tauCells * max(total/f.seen, 1/tauMost)
	for i, r := range f.resid {
		f.Tau[i] = min((tauCells+float64(f.Rows[i].Count))/(own+r), tauMost)
	}
}

// bound returns the negative lower bound of the evidence given the noise and α, a
// seen cell. turned is what a change of coordinates added to each log det C_j.
func (f *Fit) bound(turned float64) float64 {
	b := 0.0
	logs := make([]float64, f.N)
	for j, r := range f.Rho {
		logs[j] = elem.Log(r)
		b -= float64(float64(f.Cols[j].Count) * logs[j])
	}
	for i, t := range f.Tau {
		b += float64(t*f.resid[i]) - float64(float64(f.Rows[i].Count)*elem.Log(t))
		b -= f.logS[i]
	}
	for _, l := range f.logC {
		b -= l + turned
	}
	for j := range f.N {
		for c := range f.K {
			b += diagonal(f.packV(j), c)
		}
	}
	for c, a := range f.Alpha {
		b += float64(a*f.sizes[c]) - float64(float64(f.D)*elem.Log(a))
	}
	b -= float64(float64(f.K) * float64(f.D+f.N))
	return b/2/f.seen + logTwoPi/2
}

const logTwoPi = 1.8378770664093453

// Nothing returns what Bound is of independent standard normal cells.
func (f *Fit) Nothing() float64 {
	b := 0.0
	for i := range f.D {
		var e [1]float64
		kernel.Dots(e[:], f.rowY(i), f.rowY(i))
		b += e[0]
	}
	return b/2/f.seen + logTwoPi/2
}

// Resize gives the fit k components, their numbers to be filled in.
func (f *Fit) Resize(k int) {
	f.K = k
	f.size()
	f.hold()
	f.Alpha = make([]float64, k)
}

// movement returns |UV - last UV|/|UV|, by the Gram matrices of the factors.
func (f *Fit) movement() float64 {
	nn := f.inner(f.U, f.U, f.V, f.V)
	oo := f.inner(f.lastU, f.lastU, f.lastV, f.lastV)
	no := f.inner(f.U, f.lastU, f.V, f.lastV)
	if !(nn > 0) {
		return 0
	}
	return math.Sqrt(max(nn-2*no+oo, 0) / nn)
}

// inner returns the inner product of the matrices uv and sw, products of factors.
func (f *Fit) inner(u, s, v, w []float64) float64 {
	k := f.K
	left, right := make([]float64, k*f.kp), make([]float64, k*k)
	padded := make([]float64, 4*f.kp)
	for i := 0; i < f.D; i += 4 {
		rows := min(4, f.D-i)
		for r := range rows {
			copy(padded[r*f.kp:], s[(i+r)*k:(i+r+1)*k])
		}
		kernel.AccumulateRows(left, u[i*k:(i+rows)*k], padded[:rows*f.kp], rows)
	}
	kernel.DotsRows(right, w, v, k) // right_ch = v_c·w_h
	sum := 0.0
	for c := range k {
		for h := range k {
			sum += float64(left[c*f.kp+h] * right[c*k+h])
		}
	}
	return sum
}

// prune drops the components whose α is far above the least.
func (f *Fit) prune() {
	if keep := f.kept(); len(keep) > 0 && len(keep) < f.K {
		f.keep(keep)
	}
}

// kept returns the components whose α is not far above the least.
func (f *Fit) kept() (keep []int) {
	least := math.Inf(1)
	for _, a := range f.Alpha {
		least = min(least, a)
	}
	for c, a := range f.Alpha {
		if a < pruneAt*least {
			keep = append(keep, c)
		}
	}
	return keep
}

// keep drops all components but the given ones.
func (f *Fit) keep(keep []int) {
	old := *f
	k := len(keep)
	f.K, f.kp, f.pp = k, kernel.Pad(k), Packed(k)
	f.U, f.V, f.Alpha = make([]float64, f.D*k), make([]float64, k*f.np), make([]float64, k)
	f.room()
	for h, c := range keep {
		f.Alpha[h] = old.Alpha[c]
		for i := range f.D {
			f.U[i*k+h] = old.U[i*old.K+c]
		}
		copy(f.V[h*f.np:(h+1)*f.np], old.V[c*f.np:])
	}
	if old.BU == nil { // epochs on the completed matrix
		return
	}
	if max(f.D, f.Of)*f.pp < cap(old.BU)/2 {
		f.hold()
	} else {
		f.BU, f.spare = old.spare[:f.D*f.pp], old.BU[:f.D*f.pp]
		f.BV, f.grams = old.grams[:f.N*f.pp], old.BV[:f.N*f.pp]
	}
	pick := newPicker(keep, nil)
	for i := range f.D {
		pick.fill(f.packU(i), old.packU(i))
	}
	for j := range f.N {
		pick.fill(f.packV(j), old.packV(j))
	}
}

// turn changes the coordinates of V, so that Σ_j B_j/n is the identity and Σ_i B_i
// diagonal, and fills α; U follows in stepU, which takes nothing of the old one. It
// returns what that adds to each log det C_j.
func (f *Fit) turn() (change float64) {
	k, kp := f.K, f.kp
	clear(f.sumV)
	clear(f.sumU)
	f.sum(f.sumV, f.BV, f.N, func(int) float64 { return 1 / float64(f.N) })
	f.sum(f.sumU, f.BU, f.D, func(int) float64 { return 1 })
	if f.stopped() {
		return 0
	}
	low, mid, m := make([]float64, k*kp), make([]float64, k*kp), make([]float64, k*kp)
	f.unpack(low, f.sumV)
	for c := range k {
		low[c*kp+c] += 1e-9
	}
	cholesky(low, k, kp)
	f.unpack(m, f.sumU)
	lowT := transposed(low, k, kp)
	kernel.CombineRows(mid, square(m, k, kp), low, k)
	kernel.CombineRows(m, square(lowT, k, kp), mid, k) // lowᵀ Σ_i B_i low
	s, q := eigen(square(m, k, kp), k)
	if s == nil {
		return 0
	}
	f.relevant(s)
	r := make([]float64, k*kp)
	kernel.CombineRows(r, q, lowerInverse(low, k, kp), k)
	v := make([]float64, len(f.V))
	kernel.CombineRows(v, square(r, k, kp), f.V, k)
	f.V = v
	f.rotate(f.BV, f.N, r)
	for c := range k {
		change -= 2 * elem.Log(low[c*kp+c])
	}
	return change
}

// rotate takes the second moments of lines from B to R B Rᵀ, of which the lower triangle is made.
func (f *Fit) rotate(moments []float64, lines int, r []float64) {
	k, kp := f.K, f.kp
	fours := (k + 3) &^ 3
	rt := append(transposed(r, k, kp), make([]float64, (fours-k)*kp)...)
	room := make([][]float64, len(f.work))
	f.pool.Do(lines, func(w, l int) {
		if f.stopped() {
			return
		}
		if room[w] == nil {
			room[w] = make([]float64, (fours+k)*kp+k*k)
		}
		half, a, tight := room[w][:fours*kp], room[w][fours*kp:(fours+k)*kp], room[w][(fours+k)*kp:]
		b := moments[l*f.pp : (l+1)*f.pp]
		f.unpack(a, b)
		for c := range k {
			copy(tight[c*k:(c+1)*k], a[c*kp:])
		}
		kernel.CombineRows(half[:k*kp], tight, rt[:k*kp], k) // B Rᵀ
		clear(a)
		for h := 0; h < fours; h += 4 {
			kernel.AccumulateLower(a, half[h*kp:(h+4)*kp], rt[h*kp:(h+4)*kp], 0, k)
		}
		f.pack(b, a)
	})
}
