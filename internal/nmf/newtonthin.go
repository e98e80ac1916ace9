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
	beside   [2][]float64 // what belongs to the cells of a run, as w
	sums     [3][]float64 // what these say of a step
	steps    [][3]float64 // of each row: what the step is taken of
	slopes   []float64    // of each row: along the direction
	most     []float64    // of each row: the longest step
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
			b.beside[i] = a.Floats(runCells)
		}
		for i := range b.sums {
			b.sums[i] = a.Floats(runCells)
		}
	}
}

// transposeThree is transposeV for three matrices in tiles; nil: none.
func (f *Newton) transposeThree(v, other, next []float64) {
	if f.thin == nil || !f.thin.some {
		return
	}
	if f.exact {
		if v != nil {
			f.transposeV(v)
		}
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
	kp := f.thin.kp
	b.copyU(f.U[i*f.K:(i+rows)*f.K], rows, kp)
	for _, run := range b.runs {
		w, d := b.w[:run.end-run.at], b.beside[0][:run.end-run.at]
		u, cols := b.u[run.row*kp:(run.row+1)*kp], b.cols[run.at:run.end]
		kernel.CombineAt(w, u, f.thin.v, cols)
		kernel.CombineAt(d, u, f.thin.other, cols)
		b.stretch(ex, cols, w, d, b.x[run.at:run.end])
	}
}

// stretch adds to what the step of V is taken of what cells of products w say, which the direction changes by
// d.
func (b *band) stretch(ex *newtonPart, cols []uint32, w, d, x []float64) {
	n := len(cols)
	c2, c3, rho := b.sums[0][:n], b.sums[1][:n], b.sums[2][:n]
	clear(c2)
	clear(c3)
	clear(rho)
	kernel.Stretch(c2, c3, rho, w, d, x, divergence.LeastT)
	to2, to3, most := ex.c2, ex.c3[:len(ex.c2)], ex.rho[:len(ex.c2)]
	for p, j := range cols {
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
	for _, run := range b.runs {
		row, cells, cols := run.row*kp, run.end-run.at, b.cols[run.at:run.end]
		inverse, ratio, q := b.inverses[run.at:run.end], b.beside[0][:cells], b.beside[1][:cells]
		kernel.CombineAt(inverse, b.u[row:row+kp], f.thin.v, cols)
		kernel.Curve(ratio, q, inverse, b.x[run.at:run.end], 0, 1, divergence.LeastT)
		kernel.DotsSquaresAt(b.g[row:row+kp], b.h[row:row+kp], f.thin.v, ratio, q, cols)
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
		d := b.w[:run.end-run.at]
		kernel.CombineAt(d, b.p[run.row*kp:(run.row+1)*kp], f.thin.v, b.cols[run.at:run.end])
		var some [3]float64
		kernel.StretchRow(&some, b.inverses[run.at:run.end], d, b.x[run.at:run.end])
		s := &b.steps[run.row]
		s[0] += some[0]
		s[1] += some[1]
		s[2] = max(s[2], some[2])
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

// gradientThin takes the loss and the gradient of V at the next y.
func (f *Newton) gradientThin(ws *newtonScratch, b *band, piece, i, rows int) {
	k, kp, pt := f.K, f.thin.kp, &f.pieces[piece]
	nu := f.nu[i*k : (i+rows)*k]
	b.copyU(nu, rows, kp)
	kernel.Multiply(b.squares[:rows*kp], b.u[:rows*kp], b.u[:rows*kp])
	clear(b.logs[:rows])
	for _, run := range b.runs {
		u, q := b.u[run.row*kp:(run.row+1)*kp], b.beside[0][:run.end-run.at]
		ratio := b.ratio(run, u, f.thin.next)
		b.accumulate(run, ratio, u)
		kernel.Ratio(q, ratio, b.x[run.at:run.end], divergence.LeastT) // 1/w
		kernel.Multiply(q, q, ratio)
		kernel.AccumulateAt(b.den, b.squares[run.row*kp:(run.row+1)*kp], q, b.cols[run.at:run.end])
	}
	for r := range rows {
		pt.losses[0] += f.thinLoss(i+r, nu[r*k:(r+1)*k], f.sumV, b.logs[r])
	}
	f.curvatures(ws, piece, nu)
}
