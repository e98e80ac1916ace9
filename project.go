package quantmf

// This file holds the projection Π_k of QMFQ, X ≈ T(Π_k(T'(X))) (paper §3.3):
// the matrices UV of rank k near Y, and the transposed Jacobian that carries a
// gradient at UV back to Y. Each map stands next to its adjoint.
//
// # Multiplicative updates
//
// n updates from a given start, which counts as a constant. One of them is, with
// W = UV and R = Y/W entrywise, under the divergence of Kullback and Leibler
//
//	V ← V ∘ UᵀR/Uᵀ1,        then with the new V   U ← U ∘ RVᵀ/1Vᵀ
//
// and under the Frobenius norm (Lee and Seung 2001; the authors' code)
//
//	V ← V ∘ UᵀY/(UᵀU)V,     then with the new V   U ← U ∘ YVᵀ/U(VVᵀ).
//
// Write either as V' = V ∘ N/D, and V̄ for the gradient at V. Then
//
//	N̄ = V̄'∘V/D,   D̄ = -V̄'∘V'/D,   V̄ = V̄'∘V'/V + (what flows through N and D),
//
// and through N = UᵀR, D = Uᵀ1 of the first kind, s̄_c = Σ_j D̄_cj:
//
//	R̄ = UN̄,   Ȳ += R̄/W,   W̄ = -R̄∘R/W,   Ū += RN̄ᵀ + 1s̄ᵀ + W̄Vᵀ,   V̄ += UᵀW̄,
//
// of the second, H = UᵀU:
//
//	Ȳ += UN̄,   Ū += YN̄ᵀ + U(H̄+H̄ᵀ),   H̄ = D̄Vᵀ,   V̄ += HD̄.
//
// The update of U has the transposed formulas, and is a row's own affair. Where
// a denominator is at its floor the derivative takes it for a constant; a zero
// of a factor stays one, and what is derived with respect to it is not used.
//
// # Hidden cells
//
// Where cells are missing or held out, all sums run over the visible ones. With
// Ω 1 at those and 0 elsewhere, and R = Y/W, S = 1 of the first kind, R = Y,
// S = W of the second, either update is
//
//	V ← V ∘ Uᵀ(Ω∘R)/Uᵀ(Ω∘S),   then with the new V   U ← U ∘ (Ω∘R)Vᵀ/(Ω∘S)Vᵀ,
//
// and its way back, with R̄ = Ω∘UN̄ and S̄ = Ω∘UD̄,
//
//	Ū += (Ω∘R)N̄ᵀ + (Ω∘S)D̄ᵀ + W̄Vᵀ,   V̄ += UᵀW̄,
//
// where Ȳ += R̄/W, W̄ = -R̄∘R/W of the first kind, and Ȳ += R̄, W̄ = S̄ of the
// second. No denominator is a sum of factors any more.
//
// # One sweep an update
//
// State t is (U_t, V_t). Forward, a sweep over the rows makes U_t and at once
// the row's share of the numerator of V_t+1. Backward, it takes a row through
// the update of V_t+1 to Ū_t, which is then complete, and on through that of
// U_t: both meet V_t and the same V̄_t. No d × n matrix is formed but Y, Ȳ and
// W̄, and W is computed anew. Flops an update, forward and backward: 8dnk and
// 20dnk of the first kind, with 2dn divisions each; 4dnk and 8dnk of the second;
// 12dnk and 30dnk of either where cells are hidden.
//
// # Memory
//
// The way back needs all states. Every c-th is kept, and those of one stretch of
// c between: n/c + c states of (d+n)k numbers, (d+2n)k where cells are hidden.
// c = n, nothing computed twice, as
// long as that takes at most 2^23 numbers (64 MiB); else c = ⌈√n⌉, and the way
// back makes all stretches but the last once more, for another 8dnk (4dnk) flops
// an update.
//
// # Truncated singular value decomposition
//
// Π_k(Y) = Σ_{i<=k} s_i u_i v_iᵀ. Its differential is self-adjoint (Feppon and
// Lermusiaux 2018, Theorem 25). With α_ij = u_iᵀHv_j and β_ij = u_jᵀHv_i for
// i <= k < j the two sums over F± there join into
//
//	DΠ_k(Y)[H] = P H + H Q - P H Q + Σ_ij s_j/(s_i²-s_j²) [(s_jα_ij + s_iβ_ij) u_i v_jᵀ + (s_iα_ij + s_jβ_ij) u_j v_iᵀ]
//
// with P = Σ u_i u_iᵀ, Q = Σ v_i v_iᵀ over i <= k. Directions of s_j = 0, the
// whole null space among them, add nothing. So row i of the result is
//
//	U_i (A - (AVᵀ)V + C V₊) + (B_i + E_i U₊) V,    A = UᵀH,  B = HVᵀ,
//
// C and E the coefficients, V₊ and U₊ the vectors j > k: 8dnk flops, and
// 4k(d+n)(min(d,n)-k) for the small matrices. It ends where s_k = s_k+1.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// leastUV is what is not fallen below where a projection divides: by UV, and by the
// sums of its updates. Their ways back divide twice more, so that it is not leastT.
const leastUV = 1e-60

// Projection is the way in which a QMFQ projects a matrix onto those of rank k:
// [KLUpdates], [FrobeniusUpdates] or [TruncatedSVD]. Projections are equal when
// they are of one kind and number of updates. The zero value is none of them.
type Projection struct {
	kind    projectionKind
	updates int
}

type projectionKind uint8

const (
	projectionKL projectionKind = 1 + iota
	projectionFrobenius
	projectionSVD
)

// KLUpdates projects by n >= 1 multiplicative updates of V and U under the
// Kullback-Leibler divergence, the paper's choice.
func KLUpdates(n int) Projection { return Projection{projectionKL, n} }

// FrobeniusUpdates projects by n >= 1 multiplicative updates of V and U under
// the Frobenius norm, as the authors' code does; a third of the cost of
// [KLUpdates].
func FrobeniusUpdates(n int) Projection { return Projection{projectionFrobenius, n} }

// TruncatedSVD projects onto the first k singular vectors. Factors may be
// negative. It has no derivative where the singular values k and k+1 are equal,
// which ends a fit with a [*DataError]. It needs every cell: with
// [WithMissingValues] or [WithValidation] it is an [*OptionError].
func TruncatedSVD() Projection { return Projection{kind: projectionSVD} }

// String returns the call that makes the projection.
func (p Projection) String() string {
	switch p.kind {
	case projectionKL:
		return "KLUpdates(" + itoa(p.updates) + ")"
	case projectionFrobenius:
		return "FrobeniusUpdates(" + itoa(p.updates) + ")"
	case projectionSVD:
		return "TruncatedSVD()"
	}
	return "Projection{}"
}

// bound returns what is wrong with the projection, "" if nothing.
func (p Projection) bound() string {
	switch {
	case p.kind == 0:
		return "must be KLUpdates, FrobeniusUpdates or TruncatedSVD"
	case p.kind != projectionSVD && (p.updates < 1 || p.updates > 1<<20):
		return "must have from 1 to 1048576 updates"
	}
	return ""
}

// projector is Π_k for d × n matrices, with its workspace. Matrices are d rows
// of np = kernel.Pad(n) numbers, the padding zero.
type projector interface {
	// forward projects y, 0 in hidden cells, from the factors in start, which stay
	// as they are and which a truncated SVD does without. It keeps y, and needs it
	// unchanged until the last backward. An error says that Π_k has no derivative at y;
	// the factors are good nonetheless.
	forward(y []float64, start *factors) error
	// result returns U and V, to be read until the next forward.
	result() *factors
	// backward fills ybar, 0 in hidden cells, with the gradient at y for the
	// gradient wbar at UV.
	backward(wbar, ybar []float64)
}

// newProjector returns a projector of a valid kind for the visible cells. No call
// on it allocates.
func newProjector(kind Projection, visible *cells, k int, workers *pool.Pool) projector {
	d, n := visible.x.Rows, visible.x.Cols
	if kind.kind == projectionSVD {
		return newTruncated(d, n, k, workers)
	}
	size := (d + n) * k
	if visible.partial {
		size += n * k
	}
	return newUnrolled(kind, visible, k, spacing(kind.updates, size), workers)
}

// projectionChunks is the number of pieces that rows are cut into: each has
// partial sums of its own, added in order, so the bits do not depend on the
// workers.
const projectionChunks = 16

// unrolled is a number of multiplicative updates.
type unrolled struct {
	d, np, k       int
	updates        int // ≥ 1
	spacing        int // c
	frobenius      bool
	cells          *cells // nil: all are visible
	pool           *pool.Pool
	chunks         int
	y              []float64
	kept           []state // 0, c, 2c, ...
	stretch        []state // between two of them
	last           state
	held           int // the number of the stretch that is there
	final          factors
	parts          []unrolledPart
	work           []unrolledWork
	sweep          sweep
	wbar, ybar     []float64
	ubar           []float64 // d × k: what Ū is short of its share through V
	vbar, num, den []float64 // k × np: V̄; N̄ (forward: the numerator); D or D̄
	small          []float64 // s̄ of Uᵀ1, or H̄+H̄ᵀ
	forth, back    func(worker, chunk int)
	rowV, gramV    func(worker, c int)
	backV          func(worker, c int)
	backGram       func(worker, c int)
}

// state is U_t and V_t with the sums that their denominators are made of: Uᵀ1
// and V1, or UᵀU and VVᵀ. Where cells are hidden sumU is the denominator of
// V_t+1 itself, and a row makes its own of U.
type state struct{ u, v, sumU, sumV []float64 }

// sweep says what a sweep has to do at state t.
type sweep struct {
	t           int
	move, share bool // make U_t from U_t-1; take the share of V_t+1
}

type unrolledPart struct {
	acc   []float64 // k × np
	small []float64 // the sums that go with it, of U or back to V; or the denominator
}

type unrolledWork struct {
	w, r, g, p       []float64 // for as many rows as go together
	o, s, rbar, sbar []float64 // where cells are hidden: the row of Ω, Ω∘S, R̄, S̄
}

func newUnrolled(kind Projection, visible *cells, k, spacing int, workers *pool.Pool) *unrolled {
	d, n := visible.x.Rows, visible.x.Cols
	np := kernel.Pad(n)
	p := &unrolled{d: d, np: np, k: k, updates: kind.updates, spacing: spacing, frobenius: kind.kind == projectionFrobenius,
		pool: workers, chunks: min(projectionChunks, (d+sweepRows-1)/sweepRows), held: -1}
	sums, sumsV := k, k
	if p.frobenius {
		sums, sumsV = k*k, k*k
	}
	if visible.partial {
		p.cells, sums, sumsV = visible, k*np, 0
	}
	newState := func() state {
		return state{make([]float64, d*k), make([]float64, k*np), make([]float64, sums), make([]float64, sumsV)}
	}
	p.kept = make([]state, (p.updates+spacing-1)/spacing)
	for i := range p.kept {
		p.kept[i] = newState()
	}
	p.stretch = make([]state, spacing-1)
	for i := range p.stretch {
		p.stretch[i] = newState()
	}
	p.last = newState()
	p.final = factors{d: d, n: n, np: np, k: k, u: p.last.u, v: p.last.v}
	p.parts = make([]unrolledPart, p.chunks)
	for i := range p.parts {
		p.parts[i] = unrolledPart{make([]float64, k*np), make([]float64, sums)}
	}
	p.work = make([]unrolledWork, workers.Workers())
	rows := 1
	if !p.frobenius && !visible.partial {
		rows = sweepRows
	}
	for i := range p.work {
		ws := &p.work[i]
		ws.w, ws.r, ws.g, ws.p = make([]float64, rows*np), make([]float64, rows*np), make([]float64, rows*k), make([]float64, rows*k)
		if visible.partial {
			ws.o, ws.s, ws.rbar, ws.sbar = make([]float64, np), make([]float64, np), make([]float64, np), make([]float64, np)
		}
	}
	p.ubar = make([]float64, d*k)
	p.vbar, p.num, p.den = make([]float64, k*np), make([]float64, k*np), make([]float64, k*np)
	p.small = make([]float64, sums)
	p.rowV, p.gramV, p.backV, p.backGram = p.forwardV, p.forwardGram, p.backwardV, p.backwardGram
	switch {
	case visible.partial:
		p.forth, p.back = p.forwardHidden, p.backwardHidden
	case p.frobenius:
		p.forth, p.back = p.forwardFrobenius, p.backwardFrobenius
	default:
		p.forth, p.back = p.forwardKL, p.backwardKL
	}
	return p
}

// mostStates bounds the numbers of states that are all kept.
const mostStates = 1 << 23

// spacing returns how far kept states of the given size lie apart.
func spacing(updates, size int) int {
	if updates <= mostStates/size {
		return updates
	}
	c := int(math.Sqrt(float64(updates)))
	if c*c < updates {
		c++
	}
	return c
}

// at returns state t, which must be kept or in the stretch held.
func (p *unrolled) at(t int) *state {
	switch {
	case t == p.updates:
		return &p.last
	case t%p.spacing == 0:
		return &p.kept[t/p.spacing]
	}
	return &p.stretch[t%p.spacing-1]
}

func (p *unrolled) result() *factors { return &p.final }

func (p *unrolled) forward(y []float64, start *factors) error {
	p.y = y
	copy(p.kept[0].u, start.u)
	copy(p.kept[0].v, start.v)
	p.run(0, p.updates)
	p.sweep = sweep{t: p.updates, move: true}
	p.pool.Do(p.chunks, p.forth)
	p.held = (p.updates - 1) / p.spacing
	return nil
}

// run makes the states after from, up to V of to.
func (p *unrolled) run(from, to int) {
	for t := from; t < to; t++ {
		p.sweep = sweep{t: t, move: t > from, share: true}
		p.pool.Do(p.chunks, p.forth)
		p.stepV(t)
	}
}

// hold makes sure that states t and t-1 are there.
func (p *unrolled) hold(t int) {
	s := (t - 1) / p.spacing
	if s != p.held {
		p.run(s*p.spacing, min((s+1)*p.spacing, p.updates))
		p.held = s
	}
}

// joinRow adds row c of the parts of all chunks up in the first.
func (p *unrolled) joinRow(c int) []float64 {
	lo, hi := c*p.np, (c+1)*p.np
	for i := range p.parts[1:] {
		add(p.parts[0].acc[lo:hi], p.parts[i+1].acc[lo:hi])
	}
	if p.cells != nil {
		for i := range p.parts[1:] {
			add(p.parts[0].small[lo:hi], p.parts[i+1].small[lo:hi])
		}
	}
	return p.parts[0].acc[lo:hi]
}

// joinSmall does so with the sums that go with them; where cells are hidden joinRow has
// them.
func (p *unrolled) joinSmall() []float64 {
	if p.cells == nil {
		for i := range p.parts[1:] {
			add(p.parts[0].small, p.parts[i+1].small)
		}
	}
	return p.parts[0].small
}

// stepV makes V_t+1 of state t and its numerator, which lies in the parts.
func (p *unrolled) stepV(t int) {
	sums := p.joinSmall()
	if p.cells == nil {
		copy(p.at(t).sumU, sums)
	}
	p.pool.Do(p.k, p.rowV)
	if p.frobenius && p.cells == nil {
		p.pool.Do(p.k, p.gramV)
	}
}

// forwardV is row c of stepV.
func (p *unrolled) forwardV(_, c int) {
	lo, hi := c*p.np, (c+1)*p.np
	from, to := p.at(p.sweep.t), p.at(p.sweep.t+1)
	num := p.joinRow(c)
	v, next := from.v[lo:hi], to.v[lo:hi]
	switch {
	case p.cells != nil:
		den := from.sumU[lo:hi]
		copy(den, p.parts[0].small[lo:hi])
		for j := range next {
			next[j] = v[j] * (num[j] / max(den[j], leastUV))
		}
	case p.frobenius:
		den := p.denominator(from, c)
		for j := range next {
			next[j] = v[j] * (num[j] / max(den[j], leastUV))
		}
	default:
		s := 1 / max(from.sumU[c], leastUV)
		for j := range next {
			next[j] = v[j] * float64(num[j]*s)
		}
		to.sumV[c] = kernel.Sum(next)
	}
}

// forwardGram makes row c of VVᵀ of state t+1.
func (p *unrolled) forwardGram(_, c int) {
	to := p.at(p.sweep.t + 1)
	kernel.Dots(to.sumV[c*p.k:(c+1)*p.k], to.v, to.v[c*p.np:(c+1)*p.np])
}

// denominator fills row c of den with that of (UᵀU)V.
func (p *unrolled) denominator(s *state, c int) []float64 {
	den := p.den[c*p.np : (c+1)*p.np]
	kernel.Combine(den, s.sumU[c*p.k:(c+1)*p.k], s.v)
	return den
}

// stepBack takes V̄_t, which is what flowed through the denominators of U_t and the
// parts of the last sweep, through the update of V_t: N̄ to num, what it means
// for UᵀU or Uᵀ1 to small, and the share of V̄_t-1 that is no sum over rows to
// vbar.
func (p *unrolled) stepBack() {
	sums := p.joinSmall()
	if p.frobenius && p.cells == nil {
		symmetrise(sums, p.k)
	}
	p.pool.Do(p.k, p.backV)
	if p.frobenius && p.cells == nil {
		p.pool.Do(p.k, p.backGram)
		symmetrise(p.small, p.k)
	}
}

// backwardV is row c of stepBack.
func (p *unrolled) backwardV(_, c int) {
	k, lo, hi := p.k, c*p.np, (c+1)*p.np
	before, s := p.at(p.sweep.t-1), p.at(p.sweep.t)
	vbar, v, next := p.vbar[lo:hi], before.v[lo:hi], s.v[lo:hi]
	num, den, sums := p.num[lo:hi], p.den[lo:hi], p.parts[0].small
	acc := p.joinRow(c)
	if p.sweep.t == p.updates { // nothing is in vbar yet
		clear(vbar)
	}
	add(vbar, acc)
	switch {
	case p.cells != nil:
		sumU := before.sumU[lo:hi]
		for j, b := range vbar {
			num[j] = b * v[j] / max(sumU[j], leastUV)
			den[j] = 0
			if sumU[j] > leastUV {
				den[j] = -b * next[j] / sumU[j]
			}
			vbar[j] = float64(b * quotient(next[j], v[j]))
		}
	case p.frobenius:
		p.denominator(before, c)
		kernel.Combine(num, sums[c*k:(c+1)*k], s.v)
		for j, b := range vbar {
			b += num[j]
			over := 0.0
			if den[j] > leastUV {
				over = -b * next[j] / den[j]
			}
			num[j] = b * v[j] / max(den[j], leastUV)
			den[j] = over
			vbar[j] = float64(b * quotient(next[j], v[j]))
		}
	default:
		inverse := 1 / max(before.sumU[c], leastUV)
		for j, b := range vbar {
			b += sums[c]
			num[j] = float64(b*v[j]) * inverse
			den[j] = float64(b * next[j])
			vbar[j] = float64(b * quotient(next[j], v[j]))
		}
		p.small[c] = 0
		if before.sumU[c] > leastUV {
			p.small[c] = -kernel.Sum(den) * inverse
		}
	}
}

// backwardGram makes row c of H̄ = D̄Vᵀ, and adds that of HD̄ to V̄, H symmetric.
func (p *unrolled) backwardGram(_, c int) {
	k, np := p.k, p.np
	before := p.at(p.sweep.t - 1)
	kernel.Dots(p.small[c*k:(c+1)*k], before.v, p.den[c*np:(c+1)*np])
	for e := range k {
		kernel.Accumulate(p.vbar[c*np:(c+1)*np], before.sumU[e*k+c:e*k+c+1], p.den[e*np:(e+1)*np])
	}
}

// quotient returns the factor a/b of an update, 0 for a zero that stays one.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// symmetrise makes A + Aᵀ of the k × k matrix a.
func symmetrise(a []float64, k int) {
	for i := range k {
		for j := range i + 1 {
			s := a[i*k+j] + a[j*k+i]
			a[i*k+j], a[j*k+i] = s, s
		}
	}
}

func (p *unrolled) backward(wbar, ybar []float64) {
	p.wbar, p.ybar = wbar, ybar
	for t := p.updates; t >= 0; t-- {
		if t > 0 {
			p.hold(t)
		}
		p.sweep.t = t
		p.pool.Do(p.chunks, p.back)
		if t > 0 {
			p.stepBack()
		}
	}
	p.wbar, p.ybar = nil, nil
}

// rows returns the rows of a chunk, whole groups of those that go together, and clears
// its part.
func (p *unrolled) rows(chunk int) (from, to int, part *unrolledPart) {
	part = &p.parts[chunk]
	clear(part.acc)
	clear(part.small)
	groups := (p.d + sweepRows - 1) / sweepRows
	return chunk * groups / p.chunks * sweepRows, min((chunk+1)*groups/p.chunks*sweepRows, p.d), part
}

// forwardKL is a chunk of a sweep forward, sweepRows rows at a time.
func (p *unrolled) forwardKL(worker, chunk int) {
	k, np, s := p.k, p.np, p.at(p.sweep.t)
	ws := &p.work[worker]
	from, to, part := p.rows(chunk)
	for i := from; i < to; i += sweepRows {
		rows := min(sweepRows, to-i)
		y, u := p.y[i*np:(i+rows)*np], s.u[i*k:(i+rows)*k]
		r, g := ws.r[:rows*np], ws.g[:rows*k]
		if p.sweep.move {
			old := p.at(p.sweep.t - 1).u[i*k : (i+rows)*k]
			kernel.QuotientRows(r, old, s.v, y, np, rows, leastUV)
			kernel.DotsRows(g, s.v, r, rows)
			for at := 0; at < len(u); at += k {
				for c, sum := range s.sumV {
					u[at+c] = old[at+c] * (g[at+c] / max(sum, leastUV))
				}
			}
		}
		if p.sweep.share {
			kernel.QuotientRows(r, u, s.v, y, np, rows, leastUV)
			kernel.AccumulateRows(part.acc, u, r, rows)
			for at := 0; at < len(u); at += k {
				for c := range part.small {
					part.small[c] += u[at+c]
				}
			}
		}
	}
}

// backwardKL is a chunk of a sweep back: through the update of V_t+1, or from
// W̄ at the last state, to Ū_t and through the update of U_t.
func (p *unrolled) backwardKL(worker, chunk int) {
	k, np, t := p.k, p.np, p.sweep.t
	s := p.at(t)
	ws := &p.work[worker]
	from, to, part := p.rows(chunk)
	for i := from; i < to; i += sweepRows {
		rows := min(sweepRows, to-i)
		y, u := p.y[i*np:(i+rows)*np], s.u[i*k:(i+rows)*k]
		ybar, ubar := p.ybar[i*np:(i+rows)*np], p.ubar[i*k:(i+rows)*k]
		w, r, g, h := ws.w[:rows*np], ws.r[:rows*np], ws.g[:rows*k], ws.p[:rows*k]
		if t == p.updates {
			wbar := p.wbar[i*np : (i+rows)*np]
			clear(ybar)
			kernel.DotsRows(ubar, s.v, wbar, rows)
			kernel.AccumulateRows(part.acc, u, wbar, rows)
		} else {
			kernel.CombineRows(w, u, s.v, rows)
			kernel.CombineRows(r, u, p.num, rows)
			kernel.RatioBack(w, r, ybar, y, leastUV)
			if t == 0 { // the start is a constant
				continue
			}
			kernel.DotsRows(g, p.num, r, rows)
			kernel.DotsRows(h, s.v, w, rows)
			for at := 0; at < len(u); at += k {
				for c, sum := range p.small {
					ubar[at+c] += g[at+c] + h[at+c] + sum
				}
			}
			kernel.AccumulateRows(part.acc, u, w, rows)
		}
		old := p.at(t - 1).u[i*k : (i+rows)*k]
		for at := 0; at < len(u); at += k {
			for c, sum := range s.sumV {
				b, before := ubar[at+c], old[at+c]
				over := b / max(sum, leastUV)
				if sum > leastUV {
					part.small[c] -= float64(over * u[at+c])
				}
				g[at+c] = float64(over * before)
				ubar[at+c] = float64(b * quotient(u[at+c], before))
			}
		}
		kernel.CombineRows(w, old, s.v, rows)
		kernel.CombineRows(r, g, s.v, rows)
		kernel.RatioBack(w, r, ybar, y, leastUV)
		kernel.AccumulateRows(part.acc, g, r, rows)
		kernel.AccumulateRows(part.acc, old, w, rows)
		kernel.DotsRows(h, s.v, w, rows)
		for j, b := range h {
			ubar[j] += b
		}
	}
}

// forwardFrobenius is a chunk of a sweep forward.
func (p *unrolled) forwardFrobenius(worker, chunk int) {
	k, np, s := p.k, p.np, p.at(p.sweep.t)
	ws := &p.work[worker]
	from, to, part := p.rows(chunk)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		if p.sweep.move {
			old := p.at(p.sweep.t - 1).u[i*k : (i+1)*k]
			kernel.Dots(ws.g, s.v, y)
			kernel.Combine(ws.p, old, s.sumV)
			for c := range u {
				u[c] = old[c] * (ws.g[c] / max(ws.p[c], leastUV))
			}
		}
		if p.sweep.share {
			kernel.Accumulate(part.acc, u, y)
			kernel.Accumulate(part.small, u, u)
		}
	}
}

// backwardFrobenius is a chunk of a sweep back, as backwardKL.
func (p *unrolled) backwardFrobenius(worker, chunk int) {
	k, np, t := p.k, p.np, p.sweep.t
	s := p.at(t)
	ws := &p.work[worker]
	from, to, part := p.rows(chunk)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		ybar, ubar := p.ybar[i*np:(i+1)*np], p.ubar[i*k:(i+1)*k]
		if t == p.updates {
			wbar := p.wbar[i*np : (i+1)*np]
			clear(ybar)
			kernel.Dots(ubar, s.v, wbar)
			kernel.Accumulate(part.acc, u, wbar)
		} else {
			kernel.Combine(ws.w, u, p.num)
			add(ybar, ws.w)
			if t == 0 { // the start is a constant
				continue
			}
			kernel.Dots(ws.g, p.num, y)
			kernel.Combine(ws.p, u, p.small)
			for c := range ubar {
				ubar[c] += ws.g[c] + ws.p[c]
			}
		}
		// U' = U∘g/p, g = VY_i, p = U_i G with G = VVᵀ.
		old := p.at(t - 1).u[i*k : (i+1)*k]
		kernel.Combine(ws.p, old, s.sumV)
		for c, b := range ubar {
			over := b / max(ws.p[c], leastUV)
			ws.g[c] = float64(over * old[c])
			if ws.p[c] > leastUV {
				ws.p[c] = -float64(over * u[c])
			} else {
				ws.p[c] = 0
			}
			ubar[c] = float64(b * quotient(u[c], old[c]))
		}
		kernel.Combine(ws.w, ws.g, s.v)
		add(ybar, ws.w)
		kernel.Accumulate(part.acc, ws.g, y)
		for c, b := range ws.p {
			row := s.sumV[c*k : (c+1)*k]
			sums := part.small[c*k : (c+1)*k]
			for e := range row {
				ubar[e] += float64(b * row[e])
				sums[e] += float64(b * old[e])
			}
		}
	}
}

// sees fills ws.o with row i of Ω.
func (p *unrolled) sees(ws *unrolledWork, i int) {
	for j, x := range p.cells.x.Row(i) {
		ws.o[j] = 0
		if x == x {
			ws.o[j] = 1
		}
	}
}

// shares fills ws.r and ws.s with Ω∘R and Ω∘S of the row y and of W in ws.w.
func (p *unrolled) shares(ws *unrolledWork, y []float64) {
	if !p.frobenius {
		kernel.Ratio(ws.r, y, ws.w, leastUV)
		copy(ws.s, ws.o)
		return
	}
	copy(ws.r, y)
	for j, o := range ws.o {
		ws.s[j] = float64(o * ws.w[j])
	}
}

// throughShares takes R̄ and S̄ through R and S: it adds to ybar and leaves W̄ in
// ws.w.
func (p *unrolled) throughShares(ws *unrolledWork, ybar []float64) {
	for j, o := range ws.o {
		switch {
		case o == 0:
			ws.w[j] = 0
		case p.frobenius:
			ybar[j] += ws.rbar[j]
			ws.w[j] = ws.sbar[j]
		default:
			w := ws.w[j]
			over := ws.rbar[j] / max(w, leastUV)
			ybar[j] += over
			ws.w[j] = 0
			if w > leastUV {
				ws.w[j] = -float64(over * ws.r[j])
			}
		}
	}
}

// forwardHidden is a chunk of a sweep forward where cells are hidden.
func (p *unrolled) forwardHidden(worker, chunk int) {
	k, np, s := p.k, p.np, p.at(p.sweep.t)
	ws := &p.work[worker]
	from, to, part := p.rows(chunk)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		p.sees(ws, i)
		if p.sweep.move {
			old := p.at(p.sweep.t - 1).u[i*k : (i+1)*k]
			kernel.Combine(ws.w, old, s.v)
			p.shares(ws, y)
			kernel.Dots(ws.g, s.v, ws.r)
			kernel.Dots(ws.p, s.v, ws.s)
			for c := range u {
				u[c] = old[c] * (ws.g[c] / max(ws.p[c], leastUV))
			}
		}
		if p.sweep.share {
			kernel.Combine(ws.w, u, s.v)
			p.shares(ws, y)
			kernel.Accumulate(part.acc, u, ws.r)
			kernel.Accumulate(part.small, u, ws.s)
		}
	}
}

// backwardHidden is a chunk of a sweep back, as backwardKL.
func (p *unrolled) backwardHidden(worker, chunk int) {
	k, np, t := p.k, p.np, p.sweep.t
	s := p.at(t)
	ws := &p.work[worker]
	from, to, part := p.rows(chunk)
	for i := from; i < to; i++ {
		y, u := p.y[i*np:(i+1)*np], s.u[i*k:(i+1)*k]
		ybar, ubar := p.ybar[i*np:(i+1)*np], p.ubar[i*k:(i+1)*k]
		p.sees(ws, i)
		if t == p.updates {
			wbar := p.wbar[i*np : (i+1)*np]
			clear(ybar)
			kernel.Dots(ubar, s.v, wbar)
			kernel.Accumulate(part.acc, u, wbar)
		} else {
			kernel.Combine(ws.w, u, s.v)
			p.shares(ws, y)
			kernel.Dots(ws.g, p.num, ws.r)
			kernel.Dots(ws.p, p.den, ws.s)
			add(ubar, ws.g)
			add(ubar, ws.p)
			kernel.Combine(ws.rbar, u, p.num)
			kernel.Combine(ws.sbar, u, p.den)
			p.throughShares(ws, ybar)
			if t == 0 { // the start is a constant
				continue
			}
			kernel.Dots(ws.p, s.v, ws.w)
			add(ubar, ws.p)
			kernel.Accumulate(part.acc, u, ws.w)
		}
		old := p.at(t - 1).u[i*k : (i+1)*k]
		kernel.Combine(ws.w, old, s.v)
		p.shares(ws, y)
		kernel.Dots(ws.p, s.v, ws.s)
		for c, b := range ubar {
			over := b / max(ws.p[c], leastUV)
			ws.g[c] = float64(over * old[c])
			if ws.p[c] > leastUV {
				ws.p[c] = -float64(over * u[c])
			} else {
				ws.p[c] = 0
			}
			ubar[c] = float64(b * quotient(u[c], old[c]))
		}
		kernel.Accumulate(part.acc, ws.g, ws.r)
		kernel.Accumulate(part.acc, ws.p, ws.s)
		kernel.Combine(ws.rbar, ws.g, s.v)
		kernel.Combine(ws.sbar, ws.p, s.v)
		p.throughShares(ws, ybar)
		kernel.Accumulate(part.acc, old, ws.w)
		kernel.Dots(ws.p, s.v, ws.w)
		add(ubar, ws.p)
	}
}

// truncated is the truncated singular value decomposition.
type truncated struct {
	d, n, dp, np, k int
	rank            int // min(d,n)
	pool            *pool.Pool
	chunks          int
	svd             *svd.Decomposition
	tall            bool      // d >= n: the right vectors are V's
	left            []float64 // d × k: the first k left vectors
	final           factors
	wbar, ybar      []float64
	a               []float64   // k × np: A, then what U_i is combined with
	b               []float64   // k × dp: Bᵀ, then what V is combined with
	parts           [][]float64 // k × np each
	inner           []float64   // k × k: AVᵀ
	work            []truncatedWork

	vector, shares, component, row func(worker, piece int)
}

type truncatedWork struct{ w, g []float64 }

func newTruncated(d, n, k int, workers *pool.Pool) *truncated {
	p := &truncated{d: d, n: n, dp: kernel.Pad(d), np: kernel.Pad(n), k: k, rank: min(d, n), pool: workers, tall: d >= n, chunks: min(projectionChunks, d)}
	p.svd = svd.New(max(d, n), p.rank)
	p.svd.Stop = func() bool { return workers.Err() != nil }
	p.left = make([]float64, d*k)
	p.final = *newFactors(d, n, k)
	p.a, p.b = make([]float64, k*p.np), make([]float64, k*p.dp)
	p.inner = make([]float64, k*k)
	p.parts = make([][]float64, p.chunks)
	for i := range p.parts {
		p.parts[i] = make([]float64, k*p.np)
	}
	p.work = make([]truncatedWork, workers.Workers())
	for i := range p.work {
		p.work[i] = truncatedWork{make([]float64, p.np), make([]float64, k)}
	}
	p.vector = func(_, h int) { p.svd.Left(h) }
	p.shares, p.component, p.row = p.backShares, p.backComponent, p.backRow
	return p
}

func (p *truncated) result() *factors { return &p.final }

// u and v return the singular vectors c, padded.
func (p *truncated) u(c int) []float64 {
	if p.tall {
		return p.svd.Lefts()[c*p.dp : (c+1)*p.dp]
	}
	return p.svd.Right[c*p.dp : (c+1)*p.dp]
}

func (p *truncated) v(c int) []float64 {
	if p.tall {
		return p.svd.Right[c*p.np : (c+1)*p.np]
	}
	return p.svd.Lefts()[c*p.np : (c+1)*p.np]
}

// minGap is the least gap between the singular values k and k+1, relative to the
// first of them. The derivative grows as its inverse and loses as many digits:
// at the bound it has six left of the sixteen.
const minGap = 1e-10

// forward leaves U = (s_1 u_1, ...), V = (v_1, ...)ᵀ, the entry of each v_i that
// is largest in magnitude positive. Components of s_i = 0, those beyond min(d,n)
// among them, are zero.
func (p *truncated) forward(y []float64, _ *factors) error {
	for h := range p.rank {
		col := p.svd.Column(h)
		if p.tall {
			for i := range col {
				col[i] = y[i*p.np+h]
			}
		} else {
			copy(col, y[h*p.np:])
		}
	}
	if !p.svd.Factor() {
		return p.pool.Err()
	}
	p.pool.Do(p.rank, p.vector)
	s := p.svd.S
	clear(p.final.u)
	clear(p.final.v)
	clear(p.left)
	for c := range min(p.k, p.rank) {
		if s[c] == 0 {
			break
		}
		u, v := p.u(c), p.v(c)
		largest := 0.0
		for _, x := range v {
			if math.Abs(x) > math.Abs(largest) {
				largest = x
			}
		}
		if largest < 0 {
			for j := range v {
				v[j] = -v[j]
			}
			for i := range u {
				u[i] = -u[i]
			}
		}
		copy(p.final.v[c*p.np:], v)
		for i, x := range u[:p.d] {
			p.left[i*p.k+c] = x
			p.final.u[i*p.k+c] = x * s[c]
		}
	}
	if p.k >= p.rank {
		return nil // Π_k is the identity
	}
	k := p.k
	// Rounding alone sets values apart by max(d,n) units of the largest's last place.
	rounding := float64(0x1p-52 * float64(max(p.d, p.n)) * s[0])
	if s[k-1]-s[k] <= max(minGap*s[k-1], rounding) {
		return &DataError{Row: -1, Col: -1, Value: s[k-1], Problem: "the singular values " + itoa(k) + " and " + itoa(k+1) +
			" of the matrix to be projected are equal to rounding; the truncated SVD has no derivative there"}
	}
	return nil
}

func (p *truncated) backward(wbar, ybar []float64) {
	if p.k >= p.rank {
		copy(ybar, wbar[:p.d*p.np])
		return
	}
	p.wbar, p.ybar = wbar, ybar
	p.pool.Do(p.chunks, p.shares)
	copy(p.a, p.parts[0])
	for _, part := range p.parts[1:] {
		add(p.a, part)
	}
	for c := range p.k {
		kernel.Dots(p.inner[c*p.k:(c+1)*p.k], p.final.v, p.a[c*p.np:(c+1)*p.np])
	}
	p.pool.Do(p.k, p.component)
	p.pool.Do(p.chunks, p.row)
	p.wbar, p.ybar = nil, nil
}

// backShares takes a chunk's share of A = UᵀH and its rows of B = HVᵀ.
func (p *truncated) backShares(worker, chunk int) {
	g, acc := p.work[worker].g, p.parts[chunk]
	clear(acc)
	for i := chunk * p.d / p.chunks; i < (chunk+1)*p.d/p.chunks; i++ {
		h := p.wbar[i*p.np : (i+1)*p.np]
		kernel.Dots(g, p.final.v, h)
		for c, b := range g {
			p.b[c*p.dp+i] = b
		}
		kernel.Accumulate(acc, p.left[i*p.k:(i+1)*p.k], h)
	}
}

// backComponent makes rows c of A - (AVᵀ)V + C V₊ and (B + E U₊)ᵀ of those of A
// and Bᵀ.
func (p *truncated) backComponent(_, c int) {
	s := p.svd.S
	a, b := p.a[c*p.np:(c+1)*p.np], p.b[c*p.dp:(c+1)*p.dp]
	// All α and β come first, as they are of A and B themselves. They need no
	// memory: vectors are orthonormal, so what has been added along one of them
	// is not seen by the next.
	for j := p.k; j < p.rank && s[j] > 0; j++ {
		u, v := p.u(j), p.v(j)
		var alpha, beta [1]float64
		kernel.Dots(alpha[:], v, a)
		kernel.Dots(beta[:], u, b)
		// In units of s_i, so that no square leaves the range.
		q := s[j] / s[c]
		f := q / float64((1-q)*(1+q))
		along := float64(f * (float64(q*alpha[0]) + beta[0]))
		across := float64(f * (alpha[0] + float64(q*beta[0])))
		for i, x := range v {
			a[i] += float64(along * x)
		}
		for i, x := range u {
			b[i] += float64(across * x)
		}
	}
	for e, m := range p.inner[c*p.k : (c+1)*p.k] {
		for i, x := range p.final.v[e*p.np : (e+1)*p.np] {
			a[i] -= float64(m * x)
		}
	}
}

// backRow makes the rows of a chunk of Ȳ.
func (p *truncated) backRow(worker, chunk int) {
	ws := &p.work[worker]
	for i := chunk * p.d / p.chunks; i < (chunk+1)*p.d/p.chunks; i++ {
		ybar := p.ybar[i*p.np : (i+1)*p.np]
		for c := range ws.g {
			ws.g[c] = p.b[c*p.dp+i]
		}
		kernel.Combine(ybar, p.left[i*p.k:(i+1)*p.k], p.a)
		kernel.Combine(ws.w, ws.g, p.final.v)
		add(ybar, ws.w)
	}
}
