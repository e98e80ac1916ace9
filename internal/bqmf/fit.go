package bqmf

// This file holds variational Bayes of the model (bqmf.go). With B_i = u_i u_iᵀ + S_i and B_j = v_j v_jᵀ +
// C_j, the second moments, an epoch is
//
//	ρ_j = (n_j+60)/(Σ_i τ_i e_ij + 60), geometric mean 1, within [1/20, 20];
//	C_j = (I + ρ_j Σ_i τ_i B_i)⁻¹,        v_j = C_j ρ_j Σ_i τ_i Y_ij u_i;
//	a change of coordinates that makes Σ_j B_j/n the identity and Σ_i B_i diagonal;
//	S_i = (diag α + τ_i Σ_j ρ_j B_j)⁻¹,   u_i = S_i τ_i Σ_j ρ_j Y_ij v_j;
//	α_k = (d + 30)/(s_k + 30 Σ s/(dK)),   s = diag Σ_i B_i;
//	τ_i = (n_i+2)/(Σ_j ρ_j e_ij + 2/t),   t = Σ n_i/ΣΣ ρ_j e_ij,
//
// sums over the observed cells of a row or a column, e_ij = E (Y_ij - u_i·v_j)². Thirty pseudo-rows draw
// every 1/α_k to the mean of all: a component has a relevance of its own as far as the rows ask for it. The
// change of coordinates leaves the model as it is and gives α its meaning at once; it is made in the first
// epochs only.
//
// # Cost
//
// No number belongs to an observed cell: Σ_i τ_i B_i over the cells observed in column j is the sum over all
// rows less the one over the hidden ones, or the sum over the observed ones, whichever are fewer, and
//
//	Σ_i τ_i e_ij = Σ_i τ_i Y_ij² - 2 v_j·(Σ_i τ_i Y_ij u_i) + <Σ_i τ_i B_i, B_j>.
//
// So an epoch takes 4dnK flops, 2K² for each hidden cell, and d+n inverses of K × K, by their lower
// triangles, K³ each.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// Constants of the model. They were found by the error on hidden cells.
const (
	turns      = 6    // epochs with a change of coordinates
	noiseFrom  = 6    // the first epoch, from 0, that updates ρ
	pruneFrom  = 5    // the first epoch that drops components
	pruneAt    = 100  // ratio of α to the least at which a component is dropped
	rhoCells   = 60   // pseudo-cells that hold ρ_j at 1
	rhoMost    = 20   // ρ is within a factor of so much of 1
	alphaRows  = 30   // pseudo-rows that draw 1/α_k to the mean of all components
	tauCells   = 2    // pseudo-cells that hold τ_i at t
	tauMost    = 1e6  // noise below a thousandth of a row's deviation counts as so much
	leastSteps = 11   // epochs before a fit may end
	startRidge = 1e-6 // of α at the start
	// of the squares of Y, below which UV says nothing of any cell. One component of pure noise has more of
	// any table with fewer than 1e4 rows or columns
	leastShare = 1e-4
)

// State is what a fit of K components has learnt. A fit that is given the state of another one, of the same
// data, goes on as the other one does.
type State struct {
	K        int
	U        []float64 // D × K
	V        []float64 // K × Pad(N)
	BU, BV   []float64 // D and N × Packed(K): B_i and B_j
	Tau, Rho []float64 // D and N
	Alpha    []float64 // K
	Unit     float64   // the geometric mean that ρ was divided by
}

// Copy returns a copy of the state, in the room of another one that is no longer used, or nil.
func (s *State) Copy(room *State) *State {
	if room == nil {
		room = new(State)
	}
	again := func(to, from []float64) []float64 { return append(to[:0], from...) }
	*room = State{K: s.K, U: again(room.U, s.U), V: again(room.V, s.V), BU: again(room.BU, s.BU),
		BV: again(room.BV, s.BV), Tau: again(room.Tau, s.Tau), Rho: again(room.Rho, s.Rho),
		Alpha: again(room.Alpha, s.Alpha), Unit: s.Unit}
	return room
}

// Fit is a fit under way or done: its state, and what the epochs need beside it.
type Fit struct {
	State
	// After an epoch:
	Bound float64 // the negative lower bound of the evidence, in nats an observed cell
	Moved float64 // how far the epoch moved UV, relative to itself, see movement
	steps steps

	// Set once:
	begun    int // how many epochs the start stands for
	data     *Data
	pool     *pool.Pool
	np       int
	observed float64 // cells, by their weights, as are the samples
	samples  float64

	room room
}

// steps is what the steps of an epoch leave for its noise, its relevance and its bound.
type steps struct {
	resid      []float64 // D: Σ_j ρ_j e_ij
	logS, logC []float64 // log determinants
	sizes      []float64 // K: the diagonal of Σ_i B_i
}

// room is the room of an epoch with K components.
type room struct {
	kp, pp       int
	lastU, lastV []float64 // U and V as the epoch found them
	rhs          []float64 // K × Pad(N), or D × K
	scaled       []float64 // K × Pad(N)
	// D × Packed(K): the B_i of the epoch before, and where a step of U puts the new ones
	spare []float64
	// N × Packed(K): Σ_i τ_i B_i of what a column observes, then its new B_j, and after a step of V the old
	// ones
	grams      []float64
	sumU, sumV []float64   // packed
	parts      [][]float64 // of sums over lines, see pieces
	squares    []float64   // Pad(N)
	times      []float64   // N: ρ_j a_j
	tau, rho   weights
	work       []*scratch
}

// scratch is the room of one worker.
type scratch struct {
	system
	u, packed, line []float64
	panel, lines    []float64 // of the moments, see gather; where cells have weights a number for each line
}

func newScratch(a *pool.Arena, k, np int) *scratch {
	return &scratch{system: newSystem(a, k), u: a.Floats(4, k), packed: a.Floats(Packed(k)),
		line: a.Floats(np)}
}

// New returns a fit with room for k components. Start gives it a state, or Resize and the caller.
func New(x *Data, k int, p *pool.Pool) *Fit {
	a := p.Memory
	f := &Fit{data: x, pool: p, np: kernel.Pad(x.N), observed: x.Weight(), samples: x.Samples()}
	f.Tau, f.Rho, f.Unit = a.Floats(x.D), a.Floats(x.N), 1
	f.steps = steps{resid: a.Floats(x.D), logS: a.Floats(x.D), logC: a.Floats(x.N)}
	f.Resize(k)
	return f
}

// Resize gives the fit k components, their numbers to be filled in.
func (f *Fit) Resize(k int) {
	f.makeFactors(k)
	f.makeRoom()
	f.holdMoments()
}

// makeFactors makes U, V and α of k components.
func (f *Fit) makeFactors(k int) {
	a := f.pool.Memory
	f.K, f.U, f.V, f.Alpha = k, a.Floats(f.data.D, k), a.Floats(k, f.np), a.Floats(k)
}

// makeRoom makes the room for K components, but that of second moments.
func (f *Fit) makeRoom() {
	a, k, d, np := f.pool.Memory, f.K, f.data.D, f.np
	f.room = room{kp: kernel.Pad(k), pp: Packed(k), spare: f.room.spare, grams: f.room.grams}
	r := &f.room
	r.lastU, r.lastV = a.Floats(d, k), a.Floats(k, np)
	r.rhs, r.scaled, r.squares = a.Floats(k, max(np, d)), a.Floats(k, np), a.Floats(np)
	r.tau.cells, r.rho.cells, r.times = f.data.Across, f.data.Cells, f.Rho
	if f.data.Times != nil {
		r.times = a.Floats(f.data.N)
	}
	r.sumU, r.sumV = a.Floats(r.pp), a.Floats(r.pp)
	r.parts, r.work = make([][]float64, pieces(max(d, f.data.N))), make([]*scratch, f.pool.Workers())
	f.steps.sizes = a.Floats(k)
	for c := range r.parts {
		r.parts[c] = a.Floats(max(k*np+np, r.pp))
	}
	for w := range r.work {
		r.work[w] = newScratch(a, k, np)
		if f.data.Cells != nil {
			r.work[w].lines = a.Floats(max(d, np))
		}
	}
}

// holdMoments makes the room for second moments.
func (f *Fit) holdMoments() {
	a, d, n, pp := f.pool.Memory, f.data.D, f.data.N, f.room.pp
	most := max(d, f.data.Of)
	f.BU, f.room.spare = a.Floats(most, pp), a.Floats(most, pp)
	f.BV, f.room.grams = a.Floats(n, pp), a.Floats(n, pp)
	if !a.Dry() {
		f.BU, f.room.spare = f.BU[:d*pp], f.room.spare[:d*pp]
	}
}

// Set gives the fit a state.
func (f *Fit) Set(s *State) {
	if s.K != f.K {
		f.Resize(s.K)
	}
	s.Copy(&f.State)
}

// Start takes the first K singular vectors of Y, the hidden cells at 0, whose second moments have no spread
// yet. Where the pool's context has ended the state has no meaning.
func (f *Fit) Start(s *svd.Subspace) {
	x, k := f.data, f.K
	for j := range f.Rho {
		f.Rho[j] = 1
	}
	share := max(f.observed/(float64(x.D)*f.samples), 0.1)
	u, v := make([]float64, x.D), make([]float64, x.N)
	rootN := math.Sqrt(f.samples)
	for c := range min(k, s.L) {
		size := s.Vectors(u, v, c) / rootN / math.Sqrt(share)
		for i, t := range u {
			f.U[i*k+c] = t * size
		}
		row := f.V[c*f.np:]
		for j, t := range v {
			if a := x.Time(j); a > 0 {
				row[j] = t * rootN / math.Sqrt(a)
			}
		}
	}
	f.startNoise()
	for c := range k {
		s := 0.0
		for i := range x.D {
			s += squareOf(f.U[i*k+c])
		}
		f.Alpha[c] = float64(x.D) / (s + float64(startRidge*float64(x.D)))
	}
	f.pool.Do(x.D, func(_, i int) { packOuter(f.packU(i), f.rowU(i)) })
	column := make([]float64, k)
	for j := range x.N {
		for c := range column {
			column[c] = f.V[c*f.np+j]
		}
		packOuter(f.packV(j), column)
	}
}

func (f *Fit) rowU(i int) []float64 { return f.U[i*f.K : (i+1)*f.K] }
func (f *Fit) rowY(i int) []float64 { return f.data.Y[i*f.np : (i+1)*f.np] }

// heavyRow is rowY by the weights of cells.
func (f *Fit) heavyRow(i int) []float64 { return f.data.heavy[i*f.np : (i+1)*f.np] }
func (f *Fit) packU(i int) []float64    { return f.BU[i*f.room.pp : (i+1)*f.room.pp] }
func (f *Fit) packV(j int) []float64    { return f.BV[j*f.room.pp : (j+1)*f.room.pp] }
func (f *Fit) gram(j int) []float64     { return f.room.grams[j*f.room.pp : (j+1)*f.room.pp] }

// startNoise fills τ from the residuals of the start.
func (f *Fit) startNoise() {
	f.pool.Do(f.data.D, func(w, i int) {
		line := f.room.work[w].line[:f.np]
		kernel.Combine(line, f.rowU(i), f.V)
		e, yy, n := 0.0, 0.0, f.data.Rows[i].Weight
		y := f.rowY(i)
		f.data.Rows[i].Each(f.data.N, func(j int) {
			w := float64(f.data.Time(j) * f.data.Cell(i, j))
			e += float64(w * squareOf(y[j]-line[j]))
			yy += float64(w * squareOf(y[j]))
		})
		t := (tauCells + n) / (tauCells + e + float64(0.1*n))
		f.Tau[i] = min(t, 1/max(0.3*yy/n, 1/tauMost))
	})
}

// stopped tells whether the context that the pool is bound to has ended.
func (f *Fit) stopped() bool { return f.pool.Err() != nil }

// Epoch makes one epoch, the t-th from 0. When the pool's context ends it stops early, and the fit is as it
// was before.
func (f *Fit) Epoch(t int) {
	t += f.begun
	before, rho, alpha := *f, slices.Clone(f.Rho), slices.Clone(f.Alpha)
	copy(f.room.lastU, f.U)
	copy(f.room.lastV, f.V)
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
		copy(f.U, f.room.lastU)
		copy(f.V, f.room.lastV)
		copy(f.Rho, rho)
		copy(f.Alpha, alpha)
		return
	}
	f.relevance(f.steps.sizes)
	f.noiseU()
	f.Bound = f.bound(turned)
	f.Moved = f.movement()
	if t >= pruneFrom {
		f.prune()
	}
}

// Rests tells whether a fit that has made so many epochs has come to rest.
func (f *Fit) Rests(epochs int, tolerance float64) bool {
	return epochs+f.begun >= leastSteps && f.Moved < tolerance
}

// stepV updates ρ, V and C; the B_j before it go to grams. When the context ends BV is as it was.
func (f *Fit) stepV(t int) {
	np := f.np
	f.sumsV()
	if f.stopped() {
		return
	}
	f.room.tau.fill(f.Tau, f.room.pp)
	f.gather(f.room.grams, f.data.Cols, f.room.sumU, f.BU, &f.room.tau)
	if f.stopped() {
		return
	}
	if t >= noiseFrom {
		f.noiseV()
	}
	f.pool.Do(f.data.N, func(w, j int) {
		ws := f.room.work[w]
		ws.load(f.gram(j), f.Rho[j])
		v := ws.border()
		for c := range v {
			ws.a[c*ws.kp+c]++
			v[c] = f.room.rhs[c*np+j] * f.Rho[j]
		}
		f.steps.logC[j] = -ws.solve()
		for c, t := range v {
			f.V[c*np+j] = t
		}
		ws.pack(f.gram(j))
	})
	if !f.stopped() {
		f.BV, f.room.grams = f.room.grams, f.BV
	}
}

// sumsV fills rhs with Σ_i τ_i Y_ij u_i, and squares with Σ_i τ_i Y_ij².
func (f *Fit) sumsV() {
	k, np, d := f.K, f.np, f.data.D
	count := pieces(d)
	f.pool.Do(count, func(w, c int) {
		ws := f.room.work[w]
		part := f.room.parts[c][:k*np+np]
		clear(part)
		acc, squares := part[:k*np], part[k*np:]
		from, to := pool.Cut(d, count, c)
		for i := from; i < to && !f.stopped(); {
			rows := min(4, to-i)
			for r := range rows {
				kernel.Scale(ws.u[r*k:(r+1)*k], f.rowU(i+r), f.Tau[i+r])
				kernel.Multiply(ws.line[:np], f.rowY(i+r), f.heavyRow(i+r))
				kernel.Accumulate(squares, f.Tau[i+r:i+r+1], ws.line[:np])
			}
			kernel.AccumulateRows(acc, ws.u[:rows*k], f.data.heavy[i*np:(i+rows)*np], rows)
			i += rows
		}
	})
	if f.stopped() {
		return
	}
	rhs := f.room.rhs[:k*np]
	copy(rhs, f.room.parts[0][:k*np])
	copy(f.room.squares, f.room.parts[0][k*np:])
	for _, part := range f.room.parts[1:count] {
		add(rhs, part[:k*np])
		add(f.room.squares, part[k*np:k*np+np])
	}
}

// noiseV updates ρ by the Σ_i τ_i e_ij, given those of sumsV and the grams.
func (f *Fit) noiseV() {
	f.pool.Do(f.data.N, func(_, j int) {
		dot := 0.0
		for c := range f.K {
			dot += float64(f.V[c*f.np+j] * f.room.rhs[c*f.np+j])
		}
		off := max(f.room.squares[j]-2*dot+product(f.gram(j), f.packV(j)), 0)
		f.Rho[j] = (f.data.Cols[j].Weight + rhoCells) / (off + rhoCells)
	})
	f.unitRho()
}

// unitRho brings ρ to a geometric mean of 1, and then within [1/rhoMost, rhoMost].
func (f *Fit) unitRho() {
	mean := 0.0
	for j, r := range f.Rho {
		mean += float64(f.data.Time(j) * (elem.Log(r) / f.samples))
	}
	f.Unit = elem.Exp(mean)
	for j, r := range f.Rho {
		f.Rho[j] = min(max(r/f.Unit, 1.0/rhoMost), rhoMost)
	}
}

// turn changes the coordinates of V, so that Σ_j B_j/n is the identity and Σ_i B_i diagonal, and fills α; U
// follows in stepU, which takes nothing of the old one. It returns what that adds to each log det C_j.
func (f *Fit) turn() (change float64) {
	k, kp, d, n := f.K, f.room.kp, f.data.D, f.data.N
	shares := make([]float64, n)
	for j := range shares {
		shares[j] = f.data.Time(j) / f.samples
	}
	f.sum(f.room.sumV, f.BV, shares)
	f.sum(f.room.sumU, f.BU, slices.Repeat([]float64{1}, d))
	if f.stopped() {
		return 0
	}
	low, mid, m := make([]float64, k*kp), make([]float64, k*kp), make([]float64, k*kp)
	unpack(low, f.room.sumV, k)
	for c := range k {
		low[c*kp+c] += 1e-9
	}
	cholesky(low, k, kp)
	unpack(m, f.room.sumU, k)
	lowT := transposed(low, k, kp)
	kernel.CombineRows(mid, tight(m, k, kp), low, k)
	kernel.CombineRows(m, tight(lowT, k, kp), mid, k) // lowᵀ Σ_i B_i low
	s, q := eigen(tight(m, k, kp), k)
	if s == nil {
		return 0
	}
	f.relevance(s)
	r := make([]float64, k*kp)
	kernel.CombineRows(r, q, lowerInverse(low, k, kp), k)
	v := make([]float64, len(f.V))
	kernel.CombineRows(v, tight(r, k, kp), f.V, k)
	f.V = v
	f.rotate(f.BV, n, r)
	for c := range k {
		change -= 2 * elem.Log(low[c*kp+c])
	}
	return change
}

// rotate takes the second moments of lines from B to R B Rᵀ, of which the lower triangle is made.
func (f *Fit) rotate(moments []float64, lines int, r []float64) {
	k, kp, pp := f.K, f.room.kp, f.room.pp
	fours := (k + 3) &^ 3
	rt := append(transposed(r, k, kp), make([]float64, (fours-k)*kp)...)
	room := make([][]float64, f.pool.Workers())
	f.pool.Do(lines, func(w, l int) {
		if room[w] == nil {
			room[w] = make([]float64, (fours+k)*kp+k*k)
		}
		half, a, square := room[w][:fours*kp], room[w][fours*kp:(fours+k)*kp], room[w][(fours+k)*kp:]
		b := moments[l*pp : (l+1)*pp]
		unpack(a, b, k)
		for c := range k {
			copy(square[c*k:(c+1)*k], a[c*kp:])
		}
		kernel.CombineRows(half[:k*kp], square, rt[:k*kp], k) // B Rᵀ
		clear(a)
		for h := 0; h < fours; h += 4 {
			kernel.AccumulateLower(a, half[h*kp:(h+4)*kp], rt[h*kp:(h+4)*kp], 0, k)
		}
		pack(b, a, k)
	})
}

// stepU updates U and S, and fills resid, and sizes with the diagonal of Σ_i B_i; the B_i before it go to
// spare. When the context ends BU is as it was.
func (f *Fit) stepU() {
	k, np, pp, d, n := f.K, f.np, f.room.pp, f.data.D, f.data.N
	scaled, times := f.room.scaled, f.room.times
	if f.data.Times != nil {
		kernel.Multiply(times, f.Rho, f.data.Times)
	}
	for c := range k {
		kernel.Multiply(scaled[c*np:c*np+n], f.V[c*np:c*np+n], times)
	}
	f.room.rho.fill(times, pp)
	f.gather(f.room.spare, f.data.Rows, f.room.sumV, f.BV, &f.room.rho)
	if f.stopped() {
		return
	}
	f.pool.Do((d+3)/4, func(w, c int) {
		from, to := 4*c, min(4*c+4, d)
		kernel.DotsRows(f.room.rhs[from*k:to*k], scaled, f.data.heavy[from*np:to*np], to-from)
		for i := from; i < to; i++ {
			f.stepRow(f.room.work[w], i)
		}
	})
	if f.stopped() {
		return
	}
	f.BU, f.room.spare = f.room.spare, f.BU
	sizes := f.steps.sizes
	clear(sizes)
	for c := range pieces(d) {
		part := f.room.parts[c][:k]
		clear(part)
		from, to := pool.Cut(d, pieces(d), c)
		for i := from; i < to; i++ {
			for c := range part {
				part[c] += diagonal(f.packU(i), c)
			}
		}
		for c, b := range part {
			sizes[c] += b
		}
	}
}

// stepRow updates row i of U and S, given Σ_j ρ_j B_j of what the row observes, which B_i then takes the
// place of, and Σ_j ρ_j Y_ij v_j in rhs.
func (f *Fit) stepRow(ws *scratch, i int) {
	k, np, pp, n := f.K, f.np, f.room.pp, f.data.N
	g, rhs := f.room.spare[i*pp:(i+1)*pp], f.room.rhs[i*k:(i+1)*k]
	ws.load(g, f.Tau[i])
	u := ws.border()
	for c, a := range f.Alpha {
		ws.a[c*ws.kp+c] += a
		u[c] = rhs[c] * f.Tau[i]
	}
	f.steps.logS[i] = -ws.solve()
	copy(f.rowU(i), u)
	ws.pack(ws.packed)
	line := ws.line[:np]
	kernel.Multiply(line[:n], f.heavyRow(i)[:n], f.room.times)
	clear(line[n:])
	f.steps.resid[i] = max(product(line, f.rowY(i))-2*dot(u, rhs)+product(g, ws.packed), 0)
	copy(g, ws.packed)
}

// relevance fills α from the diagonal of Σ_i B_i.
func (f *Fit) relevance(s []float64) {
	all, d := 0.0, float64(f.data.D)
	for _, v := range s {
		all += v
	}
	common := float64(alphaRows * (all / (d * float64(f.K))))
	for c, v := range s {
		f.Alpha[c] = (d + alphaRows) / (max(v, 0) + 1e-12 + common)
	}
}

// noiseU fills τ.
func (f *Fit) noiseU() {
	total := 0.0
	for _, r := range f.steps.resid {
		total += r
	}
	own := tauCells * max(total/f.observed, 1/tauMost)
	for i, r := range f.steps.resid {
		f.Tau[i] = min((tauCells+f.data.Rows[i].Weight)/(own+r), tauMost)
	}
}

// bound returns the negative lower bound of the evidence given the noise and α, an observed cell. turned is
// what a change of coordinates added to each log det C_j.
func (f *Fit) bound(turned float64) float64 {
	b := 0.0
	for j, r := range f.Rho {
		b -= float64(f.data.Time(j) * float64(f.data.Cols[j].Weight*elem.Log(r)))
	}
	for i, t := range f.Tau {
		b += float64(t*f.steps.resid[i]) - float64(f.data.Rows[i].Weight*elem.Log(t))
		b -= f.steps.logS[i]
	}
	for j, l := range f.steps.logC {
		b -= float64(f.data.Time(j) * (l + turned))
	}
	for j := range f.data.N {
		for c := range f.K {
			b += float64(f.data.Time(j) * diagonal(f.packV(j), c))
		}
	}
	for c, a := range f.Alpha {
		b += float64(a*f.steps.sizes[c]) - float64(float64(f.data.D)*elem.Log(a))
	}
	b -= float64(float64(f.K) * (float64(f.data.D) + f.samples))
	return b/2/f.observed + logTwoPi/2
}

const logTwoPi = 1.8378770664093453

// Nothing returns what Bound is of independent standard normal cells.
func (f *Fit) Nothing() float64 {
	b := 0.0
	for i := range f.data.D {
		y := f.heavyRow(i)
		if f.data.Times != nil {
			y = slices.Clone(y)
			kernel.Multiply(y[:f.data.N], y, f.data.Times)
		}
		b += product(y, f.rowY(i))
	}
	return b/2/f.observed + logTwoPi/2
}

// movement returns |UV - last UV|/|UV|, by the Gram matrices of the factors. A UV that has less than
// leastShare of the table counts as so much: of one that fades there is nothing left to measure by.
func (f *Fit) movement() float64 {
	nn := f.inner(f.U, f.U, f.V, f.V)
	oo := f.inner(f.room.lastU, f.room.lastU, f.room.lastV, f.room.lastV)
	no := f.inner(f.U, f.room.lastU, f.V, f.room.lastV)
	return math.Sqrt(max(nn-2*no+oo, 0) / max(nn, f.leastSquares()))
}

// leastSquares is the sum of the squares of a UV that has leastShare of the table, whose rows have deviation
// 1.
func (f *Fit) leastSquares() float64 { return leastShare * float64(f.data.D) * f.samples }

// Found tells whether UV has more than leastShare of the table.
func (f *Fit) Found() bool { return f.inner(f.U, f.U, f.V, f.V) > f.leastSquares() }

// inner returns the inner product of the matrices uv and sw, products of factors, by the weights of samples.
func (f *Fit) inner(u, s, v, w []float64) float64 {
	k, kp := f.K, f.room.kp
	left, right := make([]float64, k*kp), make([]float64, k*k)
	padded := make([]float64, 4*kp)
	for i := 0; i < f.data.D; i += 4 {
		rows := min(4, f.data.D-i)
		for r := range rows {
			copy(padded[r*kp:], s[(i+r)*k:(i+r+1)*k])
		}
		kernel.AccumulateRows(left, u[i*k:(i+rows)*k], padded[:rows*kp], rows)
	}
	if a := f.data.Times; a != nil {
		w = slices.Clone(w)
		for c := range k {
			row := w[c*f.np:][:f.data.N]
			kernel.Multiply(row, row, a)
		}
	}
	kernel.DotsRows(right, w, v, k) // right_ch = v_c·w_h
	sum := 0.0
	for c := range k {
		for h := range k {
			sum += float64(left[c*kp+h] * right[c*k+h])
		}
	}
	return sum
}

// prune drops the components whose α is far above the least.
func (f *Fit) prune() {
	least, keep := slices.Min(f.Alpha), []int(nil)
	for c, a := range f.Alpha {
		if a < pruneAt*least {
			keep = append(keep, c)
		}
	}
	if len(keep) > 0 && len(keep) < f.K {
		f.keep(keep)
	}
}

// keep drops all components but the given ones.
func (f *Fit) keep(keep []int) {
	old, spare, grams, oldPP, d, n := f.State, f.room.spare, f.room.grams, f.room.pp, f.data.D, f.data.N
	k := len(keep)
	f.makeFactors(k)
	f.makeRoom()
	for h, c := range keep {
		f.Alpha[h] = old.Alpha[c]
		for i := range d {
			f.U[i*k+h] = old.U[i*old.K+c]
		}
		copy(f.V[h*f.np:(h+1)*f.np], old.V[c*f.np:])
	}
	pp := f.room.pp
	if max(d, f.data.Of)*pp < cap(old.BU)/2 {
		f.holdMoments()
	} else {
		f.BU, f.room.spare = spare[:d*pp], old.BU[:d*pp]
		f.BV, f.room.grams = grams[:n*pp], old.BV[:n*pp]
	}
	pick := newPicker(keep, nil)
	for i := range d {
		pick.fill(f.packU(i), old.BU[i*oldPP:(i+1)*oldPP])
	}
	for j := range n {
		pick.fill(f.packV(j), old.BV[j*oldPP:(j+1)*oldPP])
	}
}
