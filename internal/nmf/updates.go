package nmf

// This file holds multiplicative updates (Lee and Seung
// 2001; other divergences than KL: Févotte and Idier 2011), the baseline of the
// paper and the start of its models. With W = UV, entrywise powers, and the sums
// over visible cells,
//
//	V ← V ∘ (Uᵀ(X∘W^{β-2}) / UᵀW^{β-1})^γ,   then with the new V   U likewise;
//
// for KL, β = 1, the numerator is UᵀR with R = X/W and the denominator Uᵀ1.
//
// An update is made of a factor that is first taken a step ahead (Hien, Leplat and Gillis 2024, arXiv
// 2401.06646): with z what the last update made of the factor and z' what the one before it did,
//
//	z + by max(z - z', 0),   by = (τ-1)/τ⁺,   τ⁺ = (1+√(1+4τ²))/2,   τ = 1 at first,
//
// entry by entry: what grows goes on growing, and nothing comes near 0. Half the epochs lead to a loss, and
// fewer. Where an epoch ends above the loss before it, which is rare, it is made again without steps ahead,
// from z of both factors, and τ is 1: so the loss never rises.
//
// An epoch is one sweep over the rows of X, some rows at a time. Their update of
// U is made with the new V. Then their share of the next update of V and their
// loss are taken at once, so X is read once an epoch, and no d × n matrix is
// formed: 8dnk flops, 2dn divisions, dn logarithms (Frobenius: exact.go). W is made, divided
// by and compared with X in registers (kernel.QuotientRows): the rounding of W hardly
// changes X log(X/W) + W - X of a cell, but would change sums of it taken apart.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// split is into how many pieces the rows of a matrix are cut that has so many groups of them,
// and so many products UV.
func split(groups, products float64) float64 {
	return min(Pieces, groups, max(math.Floor(products/(1<<18)), Pieces/4))
}

// Runs returns where the pieces begin that the rows of a d × n matrix are cut into, and d.
func Runs(d, n, k int) []int {
	groups := (d + Group - 1) / Group
	bounds := make([]int, int(split(float64(groups), float64(d)*float64(n)*float64(k)))+1)
	for i := range bounds {
		bounds[i] = min(i*groups/(len(bounds)-1)*Group, d)
	}
	return bounds
}

// Updates is multiplicative updates under way.
type Updates struct {
	Problem
	plain   bool // KL of whole rows: the denominators are sums of factors
	exact   bool // Frobenius of whole rows: they are products of factors (exact.go)
	pieces  []part
	work    []scratch
	early   *pool.Arena // of what Newton's method gives up when it begins
	tiles   tiles       // in the plain and in the exact case
	thin    *thin       // rows of the plain and of the exact case
	updateU bool        // the next sweep finishes the update of U: false in the first
	add     weights     // what the penalties add to the denominators
	past    momentum    // of the steps ahead: z of U and of V; none where Newton's method begins by updates
	before  Losses      // of the last epoch

	gram, some []float64 // in the exact case: V Vᵀ, k rows, padded; of a tile, k × k

	op op                      // that is run
	do func(worker, piece int) // piece of this method or of Newton's, made once: no epoch allocates
}

// op is what workers do with a piece.
type op uint8

const (
	opSurvey         op = iota // tells which groups of the rows are thin
	opTranspose                // copies a tile of V for thin rows
	opSweep                    // of the rows, by multiplicative updates
	opUpdateV                  // of a component
	opTransposeThree           // copies a tile of up to three matrices for thin rows
	opDirect                   // makes the direction of some columns of V
	opSearch                   // sums over the rows what the step of V is taken of
	opMove                     // makes the step of some columns of V
	opHalf                     // makes the half of U of the rows, and the gradient of V after it
	opGradient                 // takes that gradient alone
	opResidual                 // takes the loss of the rows cell by cell
)

// run does an op with each of so many pieces.
func (f *Updates) run(o op, pieces int) {
	f.op = o
	f.Pool.Do(pieces, f.do)
}

// piece does the op with a piece.
func (f *Updates) piece(worker, piece int) {
	switch f.op {
	case opSurvey:
		f.survey(worker, piece)
	case opTranspose:
		f.transposeTile(piece)
	case opSweep:
		f.sweep(worker, piece)
	default:
		f.updateV(worker, piece)
	}
}

// tiles is what the plain and the exact case read V from: tiles of some samples, k rows of each.
type tiles struct {
	count int
	width int       // of the widest
	v     []float64 // V, tile by tile; its numerators lie alike
	denU  []float64 // in the plain case the denominators of U, sums over V, for as many rows as go together
}

// The losses of a piece are of its visible cells, of the held-out ones, and of guesses.
const lossParts = 3

// part is what a piece of the rows adds to the update of V and to the losses.
type part struct{ num, den, sum, losses []float64 }

// scratch has room for sweepRows rows; in the plain case for Group of x, and of
// a tile, and in the exact case for rowsTogether of x.
type scratch struct {
	x, w, num, den, g, h []float64
	omega                []float64 // the weights of their cells, 0 where hidden
	guess, weight        []float64 // those of guesses, nil for none, and those of all
}

// NewUpdates returns the multiplicative updates of a problem.
func NewUpdates(p Problem) *Updates {
	fit := new(Updates)
	fit.set(p, p.K <= min(max(p.D, p.Of), p.N), true) // above, products of factors take longer than cells
	a := p.Pool.Memory
	fit.past = momentum{tau: []float64{1}, zu: a.Floats(p.D, p.K), zv: a.Floats(p.K, p.NP)}
	return fit
}

// set makes fit the updates of a problem. Where gram is false, the loss of Frobenius is taken cell by cell.
// Where updating is false, no update is made: fit has room only for what Newton's method takes of it.
func (fit *Updates) set(p Problem, gram, updating bool) {
	k, np := p.K, p.NP
	if p.Runs == nil {
		p.Of, p.Runs = p.D, Runs(p.D, p.N, p.K)
	}
	a := p.Pool.Memory
	*fit = Updates{Problem: p, plain: p.Loss == divergence.KL && !p.Partial,
		exact: p.Loss == divergence.Frobenius && !p.Partial && gram, pieces: make([]part, len(p.Runs)-1),
		work: make([]scratch, p.Pool.Workers()), early: a.Part()}
	fit.do = fit.piece
	if fit.plain || fit.exact {
		fit.thin = fit.newThin()
	}
	count := int(tiling(float64(np), float64(k)))
	fit.tiles = tiles{count: count, width: (np/kernel.Lanes + count - 1) / count * kernel.Lanes,
		denU: a.Floats(Group, k)}
	for i := range fit.pieces {
		fit.pieces[i] = part{num: a.Floats(k, np), sum: a.Floats(k), losses: make([]float64, lossParts)}
		if fit.exact && updating {
			fit.pieces[i].den = fit.early.Floats(k, kernel.Pad(k)) // UᵀU
		} else if !fit.plain && updating {
			fit.pieces[i].den = fit.early.Floats(k, np)
		}
	}
	if fit.exact {
		fit.gram, fit.some = a.Floats(k, kernel.Pad(k)), a.Floats(k, k)
	}
	if (fit.plain || fit.exact) && updating {
		fit.tiles.v = fit.early.Floats(k, np)
	}
	for i := range fit.work {
		if updating {
			fit.work[i] = fit.newScratch()
		}
	}
	fit.add = p.weights()
}

// newScratch makes the room of a worker.
func (fit *Updates) newScratch() scratch {
	a, k, np := fit.early, fit.K, fit.NP
	if fit.plain {
		rows := fit.together(Group)
		return scratch{x: a.Floats(rows, np), num: a.Floats(rows, fit.tiles.width), g: a.Floats(rows, k),
			h: a.Floats(rows, k)}
	}
	if fit.exact {
		rows, few, kp := fit.together(fit.rowsTogether()), fit.together(Group), kernel.Pad(k)
		return scratch{x: a.Floats(np), w: a.Floats(rows, np), num: a.Floats(few, fit.tiles.width),
			den: a.Floats(few, kp), g: a.Floats(rows, k), h: a.Floats(rows, kp)}
	}
	rows := fit.together(sweepRows)
	ws := scratch{x: a.Floats(rows, np), w: a.Floats(rows, np), num: a.Floats(rows, np),
		den: a.Floats(rows, np), g: a.Floats(rows, k), h: a.Floats(rows, k), omega: a.Floats(rows, np)}
	ws.weight = ws.omega
	if fit.Guess != nil {
		ws.guess, ws.weight = a.Floats(rows, np), a.Floats(rows, np)
	}
	if !fit.Partial {
		for at := 0; at < len(ws.omega); at += np { // a dry arena has none
			for j := range fit.N {
				ws.omega[at+j] = 1
			}
		}
	}
	return ws
}

// tiling is into how many tiles the samples of a V of k rows are cut.
func tiling(np, k float64) float64 {
	return min(math.Ceil(float64(np*k)/tileNumbers), max(math.Floor(np/tileSamples), 1))
}

// shares fills num = x w^{β-2} and den = w^{β-1} of some rows, by their weights, both 0 where a cell is
// hidden and has no guess.
func (f *Updates) shares(ws *scratch, rows int) {
	for r := range rows {
		lo, hi := r*f.NP, (r+1)*f.NP
		num, den, weight := ws.num[lo:hi], ws.den[lo:hi], ws.weight[lo:hi]
		if f.Loss == divergence.KL {
			f.Loss.Terms(num, nil, ws.x[lo:hi], ws.w[lo:hi], f.Loss.Least())
			copy(den, weight)
		} else {
			f.Loss.Terms(num, den, ws.x[lo:hi], ws.w[lo:hi], f.Loss.Least())
			kernel.Multiply(den, den, weight)
		}
		kernel.Multiply(num, num, weight)
	}
}

// sweep finishes the update of U in a piece of the rows and sums its part of the
// next update of V.
func (f *Updates) sweep(worker, piece int) {
	ws, pt := &f.work[worker], &f.pieces[piece]
	clear(pt.sum)
	clear(pt.losses)
	k, np := f.K, f.NP
	if f.exact {
		clear(pt.den)
		for g := f.groups(worker, piece, f.rowsTogether(), pt); g.next(); {
			f.sweepExact(ws, pt, &g)
		}
		return
	}
	if f.plain {
		for g := f.groups(worker, piece, Group, pt); g.next(); {
			if g.thin {
				f.sweepThin(g.band, pt, g.i, g.rows)
			} else {
				f.sweepPlain(ws, pt, g.i, g.rows)
			}
		}
		return
	}
	for g := f.groups(worker, piece, sweepRows, pt); g.next(); {
		i, rows := g.i, g.rows
		u, w, num, den := f.U[i*k:(i+rows)*k], ws.w[:rows*np], ws.num[:rows*np], ws.den[:rows*np]
		for r := range rows {
			f.read(ws, r, i+r)
		}
		if f.updateU {
			f.past.stepU(u, i*k)
			kernel.CombineRows(w, u, f.V, rows)
			f.shares(ws, rows)
			g, h := ws.g[:rows*k], ws.h[:rows*k]
			kernel.DotsRows(g, f.V, num, rows)
			kernel.DotsRows(h, f.V, den, rows)
			for t := range g {
				g[t] = f.step(g[t], h[t]+f.add.u, u[t], f.add.squareU)
			}
			f.keepFixed(g)
			for t := range u {
				u[t] *= g[t]
			}
		}
		kernel.CombineRows(w, u, f.V, rows)
		f.shares(ws, rows)
		kernel.AccumulateRows(pt.num, u, num, rows)
		kernel.AccumulateRows(pt.den, u, den, rows)
		for r := range rows {
			lo, hi := r*np, r*np+f.N
			pt.losses[0] += f.Loss.WeightedSum(ws.x[lo:hi], w[lo:hi], ws.omega[lo:hi], f.Loss.Least())
			if f.Guess != nil {
				pt.losses[2] += f.Loss.WeightedSum(ws.x[lo:hi], w[lo:hi], ws.guess[lo:hi], f.Loss.Least())
			}
			pt.losses[1] += f.Held(f.Loss, w[lo:hi], i+r, f.Loss.Least(), num[lo:hi])
		}
	}
}

// read fills what the scratch has of row i, its r-th.
func (f *Updates) read(ws *scratch, r, i int) {
	lo, hi := r*f.NP, (r+1)*f.NP
	x, omega := ws.x[lo:hi], ws.omega[lo:hi]
	if f.Read(x, omega, i); f.Guess != nil {
		g, weight := ws.guess[lo:hi], ws.weight[lo:hi]
		f.Guess(x, omega, g, i)
		for j, v := range omega {
			weight[j] = v + g[j]
		}
	}
}

// step is the factor of an entry b in an update, square being the weight of b²/2.
func (f *Updates) step(num, den, b, square float64) float64 {
	if square == 0 {
		return f.Loss.Step(num, den)
	}
	return f.Loss.StepSquare(num, den+float64(square*b))
}

// ratios fills g with the factors of rows of U in an update of the plain case.
func (f *Updates) ratios(g, u, den []float64) {
	if f.add.squareU == 0 {
		kernel.Ratio(g, g, den, divergence.LeastSum)
	} else {
		for t := range g {
			g[t] = f.step(g[t], den[t], u[t], f.add.squareU)
		}
	}
	f.keepFixed(g)
}

// span returns the rows of a piece, whole groups.
func (f *Updates) span(piece int) (begin, end int) {
	return f.Runs[piece], f.Runs[piece+1]
}

// tile returns the samples of tile t.
func (f *Updates) tile(t int) (lo, hi int) {
	blocks := f.NP / kernel.Lanes
	return t * blocks / f.tiles.count * kernel.Lanes, (t + 1) * blocks / f.tiles.count * kernel.Lanes
}

// sweepPlain takes up to Group rows through a sweep in the plain case, tile by
// tile, so that a ratio never leaves the first cache and V comes to it once. X is read
// where it lies, but where its rows end within a block.
func (f *Updates) sweepPlain(ws *scratch, pt *part, i, rows int) {
	k, np := f.K, f.NP
	u := f.U[i*k : (i+rows)*k]
	x, stride := ws.x, np
	if f.blocks() {
		x, stride = f.X[i*f.Stride:], f.Stride
	} else {
		for r := range rows {
			f.Read(ws.x[r*np:(r+1)*np], nil, i+r)
		}
	}
	if f.updateU {
		f.past.stepU(u, i*k)
		g, h := ws.g[:rows*k], ws.h[:rows*k]
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			r, v := ws.num[:rows*(hi-lo)], f.tiles.v[k*lo:k*hi]
			kernel.QuotientRows(r, u, v, x[lo:], stride, rows, divergence.LeastT)
			if t == 0 {
				kernel.DotsRows(g, v, r, rows)
				continue
			}
			kernel.DotsRows(h, v, r, rows)
			for t := range g {
				g[t] += h[t]
			}
		}
		f.ratios(g, u, f.tiles.denU[:rows*k])
		for t := range u {
			u[t] *= g[t]
		}
	}
	loss := 0.0
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		r := ws.num[:rows*(hi-lo)]
		loss += kernel.QuotientRows(r, u, f.tiles.v[k*lo:k*hi], x[lo:], stride, rows, divergence.LeastT)
		loss += kernel.LogSumRows(r, x[lo:], stride, rows)
		kernel.AccumulateRows(pt.num[k*lo:k*hi], u, r, rows)
	}
	pt.losses[0] += max(loss, 0) // it is one; rounding may say otherwise of a perfect fit
	for ; len(u) > 0; u = u[k:] {
		for c := range pt.sum {
			pt.sum[c] += u[c]
		}
	}
}

// updateV joins the pieces and updates row c of V.
func (f *Updates) updateV(worker, c int) {
	if f.plain || f.exact {
		f.updateTiles(f.work[worker].num, c)
		return
	}
	lo, hi := c*f.NP, (c+1)*f.NP
	row, num, den := f.V[lo:hi], f.pieces[0].num[lo:hi], f.pieces[0].den[lo:hi]
	for i := range f.pieces[1:] {
		add(num, f.pieces[i+1].num[lo:hi])
		add(den, f.pieces[i+1].den[lo:hi])
	}
	for j := range row[:f.N] {
		row[j] *= f.step(num[j], den[j]+f.add.v, row[j], f.add.squareV)
	}
	f.past.stepV(row, lo)
}

// updateTiles is updateV where num and V have tiles. room is for the denominators of one.
func (f *Updates) updateTiles(room []float64, c int) {
	var products []float64 // of component c of U and all
	sum := f.add.v
	if f.exact {
		from, to := c*kernel.Pad(f.K), c*kernel.Pad(f.K)+f.K
		products = f.pieces[0].den[from:to]
		for i := range f.pieces[1:] {
			add(products, f.pieces[i+1].den[from:to])
		}
	} else {
		sum = 0
		for i := range f.pieces {
			sum += f.pieces[i].sum[c]
		}
		sum += f.add.v
	}
	row := f.V[c*f.NP : (c+1)*f.NP]
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		from, to := f.K*lo+c*(hi-lo), f.K*lo+(c+1)*(hi-lo)
		num, some, den := f.pieces[0].num[from:to], row[lo:hi], room[:hi-lo]
		if clear(den); f.exact {
			kernel.CombineRows(den, products, f.tiles.v[f.K*lo:f.K*hi], 1)
		}
		for j := range den {
			den[j] += sum
		}
		for i := range f.pieces[1:] {
			add(num, f.pieces[i+1].num[from:to])
		}
		if f.add.squareV == 0 {
			kernel.Ratio(num, num, den, divergence.LeastSum)
		} else {
			for j := range num {
				num[j] = f.step(num[j], den[j], some[j], f.add.squareV)
			}
		}
		for j, r := range num {
			some[j] *= r
		}
	}
	if f.past.stepV(row, c*f.NP); f.plain {
		f.layTiles(c)
	}
}

// layAll takes V over to where the plain and the exact case read it.
func (f *Updates) layAll() {
	if f.plain || f.exact {
		for c := range f.K {
			f.layTiles(c)
		}
	}
	if f.exact {
		f.products(f.tiles.v)
	}
}

// layTiles takes row c of V over to where it is read.
func (f *Updates) layTiles(c int) {
	row := f.V[c*f.NP : (c+1)*f.NP]
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		copy(f.tiles.v[f.K*lo+c*(hi-lo):f.K*lo+(c+1)*(hi-lo)], row[lo:hi])
	}
	if !f.plain {
		return
	}
	f.thin.sumV[c] = kernel.Sum(row)
	den := f.thin.sumV[c] + f.add.u
	for r := range Group {
		f.tiles.denU[r*f.K+c] = den
	}
}

// sweepAll makes a sweep.
func (f *Updates) sweepAll() {
	if f.thin != nil && f.thin.some {
		f.transposeV(f.tiles.v)
	}
	f.run(opSweep, len(f.pieces))
}

// Begin makes the first sweep over the factors of the start.
func (f *Updates) Begin() (Losses, error) {
	copy(f.past.zu, f.U)
	copy(f.past.zv, f.V)
	f.look()
	return f.before, f.Pool.Err()
}

// look makes the sums that the next update of V takes, and the losses, of the factors as they are.
func (f *Updates) look() {
	f.prepare()
	f.layAll()
	f.updateU = false
	f.sweepAll()
	f.before = f.losses(f.U, f.V)
}

// update makes an update of V and of U.
func (f *Updates) update() Losses {
	f.run(opUpdateV, f.K)
	if f.exact { // whose components are made of all those before
		f.layAll()
	}
	f.updateU = true
	f.sweepAll()
	return f.losses(f.U, f.V)
}

// Epoch is the updates of V and of U. It looks whether to go on before V moves: the
// factors are those of the last losses.
func (f *Updates) Epoch(int) (Losses, error) {
	if err := f.Pool.Err(); err != nil {
		return Losses{}, err
	}
	f.past.advance()
	l := f.update()
	if f.past.by > 0 && l.Above(f.before) && f.Pool.Err() == nil {
		copy(f.U, f.past.zu)
		copy(f.V, f.past.zv)
		f.past.tau[0], f.past.by = 1, 0
		f.layAll()
		f.sweepAll()
		l = f.losses(f.U, f.V)
	}
	f.before = l
	return l, f.Pool.Err()
}

// losses returns those of the factors u and v, whose order in v is free, summed by the
// last sweep.
func (f *Updates) losses(u, v []float64) (l Losses) {
	for i := range f.pieces {
		l.Visible += f.pieces[i].losses[0]
		l.Held += f.pieces[i].losses[1]
		l.Penalty += f.pieces[i].losses[2]
	}
	l.Visible /= float64(f.Visible)
	l.Held /= float64(max(f.HeldOut, 1))
	l.Penalty /= float64(f.Visible)
	if f.Penalties.Any() { // the padding of V is 0
		l.Penalty += f.Penalties.Of(u, v, f.Of, f.N)
	}
	return l
}

// Sums returns what a piece of the rows adds to the next update of V, the numerators, the denominators (in
// the plain case those of each component alone, in the exact case UᵀU, of which they are made) and the losses
// of its visible and its held-out cells and of guesses.
func (f *Updates) Sums(piece int) (num, den, losses []float64) {
	p := &f.pieces[piece]
	if f.plain {
		return p.num, p.sum, p.losses
	}
	return p.num, p.den, p.losses
}

// Sweep finishes the update of U for the V at hand, but where it is the first, and sums what the next update
// of V takes. by is of the step ahead, and z of U is the caller's: that before, then that of this epoch.
func (f *Updates) Sweep(first bool, z []float64, by float64) error {
	f.past.zu, f.past.by = z, by
	f.prepare()
	f.layAll()
	f.updateU = !first
	f.sweepAll()
	return f.Pool.Err()
}

// StepV makes the update of V of the sums of all pieces, which are no more afterwards, and its step ahead. z
// and tau are those of the epoch before, and become those of the next, which has by.
func (f *Updates) StepV(z []float64, tau *float64) (by float64) {
	f.past.zv, f.past.tau[0] = z, *tau
	f.past.advance()
	if f.exact {
		f.layAll()
	}
	f.run(opUpdateV, f.K)
	*tau = f.past.tau[0]
	return f.past.by
}

// Losses are those of the factors by the sums of all pieces.
func (f *Updates) Losses() Losses { return f.losses(f.U, f.V) }

// Prepare has nothing to do.
func (f *Updates) Prepare(int) {}

// State is z and τ.
func (f *Updates) State() []section.Part {
	return []section.Part{section.Positive(f.past.zu), section.Positive(f.past.zv),
		section.Within(f.past.tau, 1, math.MaxFloat64)}
}

// Reserve takes the room for thin rows.
func (f *Updates) Reserve(int) {
	if f.mayBeThin() {
		f.roomThin()
	}
}

// Resume makes the sums that the next update of V takes.
func (f *Updates) Resume(int) { f.look() }
