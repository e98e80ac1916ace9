package nmf

// This file holds Newton's method over thin rows (thin.go): with z = D/W and the curvature X/W² all that a step takes of
// a cell is 0 where X is. So an epoch visits the cells that are not 0 three times, for the step of V, for the half of U and for
// the next gradient of V.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
)

// newtonThin are matrices beside v that lie sample by sample: in the half of V its direction, in that of U the squares
// of the new V; and the next y of V.
type newtonThin struct {
	other, next []float64
	three       [3][]float64 // what v, other and next are filled with
	turns       func(worker, tile int)
}

// newtonBand is a worker's further room.
type newtonBand struct {
	p, h     []float64    // rows of U: the direction; the curvature
	squares  []float64    // of a row
	inverses []float64    // 1/W of the cells of a band, which lie as those
	den      []float64    // np × kp: sums of a piece, as num
	ones     []float64    // of a run
	run      [6][]float64 // what belongs to its cells
	steps    [][3]float64 // of each row: what the step is taken of
	slopes   []float64    // of each row: along the direction
	most     []float64    // of each row: the longest step
	rest     [3][kernel.Lanes]float64
}

// takeThin makes room.
func (f *Newton) takeThin() {
	v := func(n int) []float64 { return make([]float64, n) }
	size := f.NP * f.thin.kp
	f.thin.other, f.thin.next, f.thin.turns = v(size), v(size), f.turnTile
	for i := range f.thin.bands {
		b := &f.thin.bands[i]
		rows := b.rows
		b.p, b.h, b.squares = v(rows*f.thin.kp), v(rows*f.thin.kp), v(f.thin.kp)
		b.inverses, b.den, b.ones = v(len(b.x)), v(size), v(kernel.RunCells)
		b.steps, b.slopes, b.most = make([][3]float64, rows), v(rows), v(rows)
		for i := range b.ones {
			b.ones[i] = 1
		}
		for i := range b.run {
			b.run[i] = v(kernel.RunCells)
		}
	}
}

// uprights takes three matrices, which lie in tiles, over to where thin rows read them sample by sample; nil: none.
func (f *Newton) uprights(v, other, next []float64) {
	if !f.plain || !f.thin.some {
		return
	}
	f.thin.three = [3][]float64{v, other, next}
	f.Pool.Do(f.tiles.count, f.thin.turns)
}

func (f *Newton) turnTile(_, tile int) {
	lo, hi := f.tile(tile)
	for i, to := range [3][]float64{f.thin.v, f.thin.other, f.thin.next} {
		if from := f.thin.three[i]; from != nil {
			f.turn(to, from, lo, hi)
		}
	}
}

// searchThin is searchV.
func (f *Newton) searchThin(b *band, ex *newtonPart, i, rows int) {
	kp := f.thin.kp
	b.copyU(f.U[i*f.K:(i+rows)*f.K], rows, kp)
	for _, run := range b.runs {
		r, at := run.row, run.at
		cols, x := b.cols[at:at+run.n], b.x[at:at+run.n]
		n, u := kernel.Pad(len(cols)), b.u[r*kp:(r+1)*kp]
		w, d, c2, c3, rho, y := b.run[0][:n], b.run[1][:n], b.run[2][:n], b.run[3][:n], b.run[4][:n], b.run[5][:n]
		kernel.CombineAt(w, u, f.thin.v, cols)
		kernel.CombineAt(d, u, f.thin.other, cols)
		for _, v := range [][]float64{c2, c3, rho, w[len(cols):], d[len(cols):], y[copy(y, x):]} {
			clear(v)
		}
		kernel.Stretch(c2, c3, rho, w, d, y, divergence.LeastT)
		for p, j := range cols {
			ex.c2[j] += c2[p]
			ex.c3[j] += c3[p]
			ex.rho[j] = max(ex.rho[j], rho[p])
		}
	}
}

// halfThin is halfU.
func (f *Newton) halfThin(ws *newtonScratch, b *band, piece, i, rows int) {
	k, kp := f.K, f.thin.kp
	for r := range rows {
		for c, s := range f.scale {
			b.u[r*kp+c] = float64(f.U[(i+r)*k+c] * s)
		}
	}
	clear(b.g[:rows*kp])
	clear(b.h[:rows*kp])
	for _, run := range b.runs {
		r, at := run.row, run.at
		cols, x := b.cols[at:at+run.n], b.x[at:at+run.n]
		n := len(cols)
		w, inverse, ratio := b.run[0][:n], b.inverses[at:at+n], b.run[1][:n]
		kernel.CombineAt(w, b.u[r*kp:(r+1)*kp], f.thin.v, cols)
		kernel.Ratio(inverse, b.ones[:n], w, divergence.LeastT)
		kernel.Multiply(ratio, x, inverse)
		kernel.DotsAt(b.g[r*kp:(r+1)*kp], f.thin.v, ratio, cols)
		kernel.Multiply(ratio, ratio, inverse)
		kernel.DotsAt(b.h[r*kp:(r+1)*kp], f.thin.other, ratio, cols)
	}
	for first := 0; first < rows; first += Group {
		some := min(Group, rows-first)
		for r := range some {
			from, to := (first+r)*kp, r*k
			copy(ws.u[to:to+k], b.u[from:])
			copy(ws.g[to:to+k], b.g[from:])
			copy(ws.h[to:to+k], b.h[from:])
		}
		f.solveU(ws, i+first, some)
		for r := range some {
			copy(b.p[(first+r)*kp:(first+r)*kp+k], ws.p[r*k:(r+1)*k])
		}
		copy(b.slopes[first:first+some], ws.strip.slope)
		copy(b.most[first:first+some], ws.strip.limits)
	}
	clear(b.steps[:rows])
	for _, run := range b.runs {
		r, at := run.row, run.at
		cols, x := b.cols[at:at+run.n], b.x[at:at+run.n]
		n := len(cols)
		d, v, whole := b.run[0][:n], b.inverses[at:at+n], n&^(kernel.Lanes-1)
		kernel.CombineAt(d, b.p[r*kp:(r+1)*kp], f.thin.v, cols)
		b.raise(r, v[:whole], d, x)
		if whole < n {
			b.rest = [3][kernel.Lanes]float64{}
			copy(b.rest[0][:], v[whole:])
			copy(b.rest[1][:], d[whole:])
			copy(b.rest[2][:], x[whole:])
			b.raise(r, b.rest[0][:], b.rest[1][:], b.rest[2][:])
		}
	}
	p := ws.p[:k]
	for r := range rows {
		s := &b.steps[r]
		t := stepLength(b.slopes[r], s[0], s[1], s[2], b.most[r])
		for c := range p {
			p[c] = stepped(b.u[r*kp+c], float64(t*b.p[r*kp+c]))
		}
		f.aheadU(i+r, p)
	}
	f.gradientThin(ws, b, piece, i, rows)
}

// raise adds cells to what the step of row r is taken of.
func (b *band) raise(r int, v, d, x []float64) {
	var some [3]float64
	kernel.StretchRow(&some, v, d, x)
	s := &b.steps[r]
	s[0] += some[0]
	s[1] += some[1]
	s[2] = max(s[2], some[2])
}

// gradientThin takes the loss and the gradient of V at the next y.
func (f *Newton) gradientThin(ws *newtonScratch, b *band, piece, i, rows int) {
	k, kp, pt := f.K, f.thin.kp, &f.pieces[piece]
	nu := f.nu[i*k : (i+rows)*k]
	b.copyU(nu, rows, kp)
	clear(b.logs[:rows*kernel.Lanes])
	for _, c := range b.chunks {
		kernel.RatioAccumulateRuns(b.num, b.w, b.logs, b.u, f.thin.next, b.in(c), kp, divergence.LeastT, k)
		for _, run := range b.runs[c.runs[0]:c.runs[1]] {
			at := run.at
			cols, x := b.cols[at:at+run.n], b.x[at:at+run.n]
			u, ratio, q := b.u[run.row*kp:(run.row+1)*kp], b.w[at-c.cells[0]:][:run.n], b.run[1][:run.n]
			kernel.Ratio(q, ratio, x, divergence.LeastT) // 1/w
			kernel.Multiply(q, q, ratio)
			kernel.Multiply(b.squares, u, u)
			kernel.AccumulateAt(b.den, b.squares, q, cols)
		}
	}
	for r := range rows {
		pt.losses[0] += f.thinLoss(i+r, nu[r*k:(r+1)*k], f.sumV, b.logsOf(r))
	}
	f.curvatures(ws, piece, nu)
}
