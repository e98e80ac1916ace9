package nmf

// This file holds Newton's method over thin rows (thin.go): with z = D/W and the curvature X/W² all that a
// step takes of a cell is 0 where X is. So an epoch visits the cells that are not 0 three times, for the step
// of V, for the half of U and for the next gradient of V.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// newtonThin are matrices beside v that lie sample by sample: in the half of V its direction, and the next y
// of V.
type newtonThin struct {
	other, next []float64
	three       [3][]float64 // what v, other and next are filled with
}

// newtonBand is a worker's further room.
type newtonBand struct {
	p, h     []float64    // rows of U: the direction; the curvature
	squares  []float64    // of rows of U
	inverses []float64    // 1/W of the cells of a band, which lie as those
	den      []float64    // np × kp: sums of a piece, as num
	beside   [2][]float64 // what belongs to the cells of a chunk, as w
	sums     [3][]float64 // what RunCells of these say of a step
	steps    [][3]float64 // of each row: what the step is taken of
	slopes   []float64    // of each row: along the direction
	most     []float64    // of each row: the longest step
	rest     [3][kernel.Lanes]float64
}

// takeThin makes room.
func (f *Newton) takeThin() {
	a, np, kp := f.Pool.Memory, f.NP, f.thin.kp
	f.thin.other, f.thin.next = a.Floats(np, kp), a.Floats(np, kp)
	for i := range f.thin.bands {
		b := &f.thin.bands[i]
		rows := b.rows
		b.p, b.h, b.squares = a.Floats(rows, kp), a.Floats(rows, kp), a.Floats(rows, kp)
		b.inverses, b.den = a.Floats(b.room), a.Floats(np, kp)
		b.steps, b.slopes, b.most = pool.Make[[3]float64](a, rows), a.Floats(rows), a.Floats(rows)
		for i := range b.beside {
			b.beside[i] = a.Floats(chunkRoom(min(f.thin.width, f.N)))
		}
		for i := range b.sums {
			b.sums[i] = a.Floats(kernel.RunCells)
		}
	}
}

// transposeThree is transposeV for three matrices in tiles; nil: none.
func (f *Newton) transposeThree(v, other, next []float64) {
	if !f.plain || !f.thin.some {
		return
	}
	f.thin.three = [3][]float64{v, other, next}
	f.run(opTransposeThree, f.tiles.count)
}

func (f *Newton) transposeThreeTile(tile int) {
	lo, hi := f.tile(tile)
	for i, to := range [3][]float64{f.thin.v, f.thin.other, f.thin.next} {
		if from := f.thin.three[i]; from != nil {
			f.transpose(to, from, lo, hi)
		}
	}
}

// searchThin is searchV.
func (f *Newton) searchThin(b *band, ex *newtonPart, i, rows int) {
	b.copyU(f.U[i*f.K:(i+rows)*f.K], rows, f.thin.kp)
	for _, c := range b.chunks {
		runs, n := b.in(c), c.cells[1]-c.cells[0]-kernel.RunsAfter
		w, d := b.w[:len(runs.X)], b.beside[0][:len(runs.X)]
		kernel.CombineRuns(w, b.u, f.thin.v, runs, f.thin.kp, f.K)
		kernel.CombineRuns(d, b.u, f.thin.other, runs, f.thin.kp, f.K)
		for from := kernel.RunsBefore; from < n; from += kernel.RunCells {
			to := min(from+kernel.RunCells, n)
			b.stretch(ex, runs.Cols[from:to], w[from:to], d[from:to], runs.X[from:to])
		}
	}
}

// stretch adds to what the step of V is taken of what cells of products w say, which the direction changes by
// d. Where x is 0, after the cells of a row, they say nothing.
func (b *band) stretch(ex *newtonPart, cols []uint32, w, d, x []float64) {
	n := len(cols)
	c2, c3, rho := b.sums[0][:n], b.sums[1][:n], b.sums[2][:n]
	clear(c2)
	clear(c3)
	clear(rho)
	kernel.Stretch(c2, c3, rho, w, d, x, divergence.LeastT)
	to2, to3, most := ex.c2, ex.c3[:len(ex.c2)], ex.rho[:len(ex.c2)]
	for p, x := range x[:n] {
		if x == 0 {
			continue
		}
		j := int(cols[p])
		to2[j] += c2[p]
		to3[j] += c3[p]
		if r := rho[p]; r > most[j] {
			most[j] = r
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
	for _, c := range b.chunks {
		runs, cells := b.in(c), c.cells[1]-c.cells[0]-kernel.RunsAfter
		inverse, ratio, q := b.inverses[c.cells[0]:c.cells[1]], b.beside[0][:cells], b.beside[1][:cells]
		kernel.CombineRuns(inverse, b.u, f.thin.v, runs, kp, k)
		kernel.Curve(ratio[kernel.RunsBefore:], q[kernel.RunsBefore:], inverse[kernel.RunsBefore:cells],
			runs.X[kernel.RunsBefore:cells], 0, 1, divergence.LeastT)
		for _, run := range b.runs[c.runs[0]:c.runs[1]] {
			from, to, row := run.at-c.cells[0], run.at-c.cells[0]+run.n, run.row*kp
			kernel.DotsSquaresAt(b.g[row:row+kp], b.h[row:row+kp], f.thin.v, ratio[from:to], q[from:to],
				runs.Cols[from:to])
		}
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
	for _, c := range b.chunks {
		d := b.w[:c.cells[1]-c.cells[0]]
		kernel.CombineRuns(d, b.p, f.thin.v, b.in(c), kp, k)
		for _, run := range b.runs[c.runs[0]:c.runs[1]] {
			at, end, whole := run.at, run.at+run.n, run.n&^(kernel.Lanes-1)
			v, d, x := b.inverses[at:end], d[at-c.cells[0]:end-c.cells[0]], b.x[at:end]
			b.raise(run.row, v[:whole], d[:whole], x[:whole])
			if whole < run.n {
				b.rest = [3][kernel.Lanes]float64{}
				copy(b.rest[0][:], v[whole:])
				copy(b.rest[1][:], d[whole:])
				copy(b.rest[2][:], x[whole:])
				b.raise(run.row, b.rest[0][:], b.rest[1][:], b.rest[2][:])
			}
		}
	}
	p := ws.p[:k]
	for r := range rows {
		s := &b.steps[r]
		if direction := b.p[r*kp : r*kp+k]; f.add.squareU > 0 {
			s[0] += float64(f.add.squareU * inner(direction, direction))
		}
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
	kernel.Multiply(b.squares[:rows*kp], b.u[:rows*kp], b.u[:rows*kp])
	clear(b.logs[:rows*kernel.Lanes])
	for _, c := range b.chunks {
		kernel.RatioAccumulateRuns(b.num, b.w, b.logs, b.u, f.thin.next, b.in(c), kp, divergence.LeastT, k)
		runs, cells := b.in(c), c.cells[1]-c.cells[0]-kernel.RunsAfter
		ratio, q := b.w[kernel.RunsBefore:cells], b.beside[0][:cells]
		kernel.Ratio(q[kernel.RunsBefore:], ratio, runs.X[kernel.RunsBefore:cells], divergence.LeastT) // 1/w
		kernel.Multiply(q[kernel.RunsBefore:], q[kernel.RunsBefore:], ratio)
		for _, run := range b.runs[c.runs[0]:c.runs[1]] {
			from, to := run.at-c.cells[0], run.at-c.cells[0]+run.n
			kernel.AccumulateAt(b.den, b.squares[run.row*kp:(run.row+1)*kp], q[from:to], runs.Cols[from:to])
		}
	}
	for r := range rows {
		pt.losses[0] += f.thinLoss(i+r, nu[r*k:(r+1)*k], f.sumV, b.logsOf(r))
	}
	f.curvatures(ws, piece, nu)
}
