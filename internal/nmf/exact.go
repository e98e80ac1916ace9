package nmf

// This file holds both methods where every column has the same Hessian: under Frobenius' loss,
// where no cell is hidden. A row u of U with V held has the loss
//
//	u H uᵀ/2 - x Vᵀ uᵀ + xxᵀ/2,   H = V Vᵀ,
//
// so X is read for the products X Vᵀ and Uᵀ X alone. In Newton's method neither directions nor steps are
// needed: sweeps of coordinate descent lower the loss as they are (HALS, Cichocki and Phan 2009). In a
// multiplicative update the denominator of u is uH.

import (
	"iter"
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

const (
	exactSweeps = 12 // of coordinate descent, a half
	// of U that go through the sweeps together at most: as many as hide what a sum waits
	exactRows    = 64
	exactNumbers = 1 << 14 // of X that these rows have at most, so that they stay in the second cache
	closeFit     = 1e-3    // of Σ X²/2: a loss below is taken cell by cell
)

// sweepExact takes rows through a sweep of multiplicative updates.
func (f *Updates) sweepExact(ws *scratch, pt *part, of *rowGroups) {
	x, all := f.cellsExact(ws.w, ws.x, of), f.U[of.i*f.K:(of.i+of.rows)*f.K]
	if f.updateU {
		f.past.stepU(all, of.i*f.K)
	}
	f.dotsThin(of)
	for from, rows := range of.parts() {
		pt.losses[0] += f.updateExact(ws, of, x, from, rows)
	}
	f.sumExact(pt, pt.den, ws.den, all, x, of)
}

// updateExact updates some of the rows of a group and returns their loss, which is that above, u being new.
func (f *Updates) updateExact(ws *scratch, of *rowGroups, x []float64, from, rows int) float64 {
	i, k, kp, v := of.i+from, f.K, kernel.Pad(f.K), f.tiles.v
	u, g, h := f.U[i*k:(i+rows)*k], ws.g[:rows*k], ws.h[:rows*kp]
	f.dotsExact(g, h[:rows*k], v, x, of, from)
	if f.updateU {
		kernel.CombineRows(h, u, f.gram, rows)
		for r := range rows {
			step, u, h := ws.den[:k], u[r*k:(r+1)*k], h[r*kp:r*kp+k]
			for c := range step {
				step[c] = f.step(g[r*k+c], h[c]+f.add.u, u[c], f.add.squareU)
			}
			f.keepFixed(step)
			kernel.Multiply(u, u, step)
		}
	}
	kernel.CombineRows(h, u, f.gram, rows)
	size := f.size(x, of, from, rows)
	loss := size - inner(g, u)
	for r := range rows {
		loss += float64(inner(h[r*kp:r*kp+k], u[r*k:(r+1)*k]) / 2)
	}
	if !(loss >= float64(closeFit*size)) {
		if of.thin {
			x = f.toTiles(ws.w, ws.x, i, rows)
		}
		loss = f.residual(ws.num, u, v, x, rows)
	}
	return loss
}

// parts goes over the first rows and the numbers of parts of a group that go through the sweeps together.
func (g *rowGroups) parts() iter.Seq2[int, int] {
	return func(yield func(from, rows int) bool) {
		most := g.f.rowsTogether()
		for from := 0; from < g.rows && yield(from, min(most, g.rows-from)); from += most {
		}
	}
}

// cellsExact returns the rows of a group tile by tile, nil where they are thin.
func (f *Updates) cellsExact(laid, row []float64, of *rowGroups) []float64 {
	if of.thin {
		return nil
	}
	return f.toTiles(laid, row, of.i, of.rows)
}

// dotsThin makes the products of thin rows and V for dotsExact.
func (f *Updates) dotsThin(of *rowGroups) {
	if !of.thin {
		return
	}
	b, kp := of.band, f.thin.kp
	clear(b.g[:of.rows*kp])
	for _, run := range b.runs {
		kernel.DotsAt(b.g[run.row*kp:(run.row+1)*kp], f.thin.v, b.x[run.at:run.end], b.cols[run.at:run.end])
	}
}

// rowsTogether is how many rows of U go through the sweeps together, whole groups.
func (f *Updates) rowsTogether() int {
	return int(rowsTogether(float64(f.NP)))
}

func rowsTogether(np float64) float64 {
	return min(exactRows, max(math.Floor(exactNumbers/np/Group), 1)*Group)
}

// sweep fills p with where the sweeps lead from b.
func (m *metric) sweep(s *strip) {
	copy(s.p, s.b)
	kernel.Bounded(s.p, s.low, s.g, m.c, m.inverse, exactSweeps)
}

// products fills gram with those of v, in tiles.
func (f *Updates) products(v []float64) {
	clear(f.gram)
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		v := v[f.K*lo : f.K*hi]
		kernel.DotsRows(f.some, v, v, f.K)
		for a := range f.K {
			add(f.gram[a*kernel.Pad(f.K):], f.some[a*f.K:(a+1)*f.K])
		}
	}
}

// lossesExact are those at the next y:
//
//	Σ (X-W)²/2 = Σ X²/2 - <UᵀX, V> + <UᵀU, VVᵀ>/2,
//
// products that the halves need anyway; where little of the first is left, of which the others take the rest,
// a further pass takes them cell by cell.
func (f *Newton) lossesExact() Losses {
	l, again := f.summed()
	f.sized = true
	if again {
		f.run(opResidual, len(f.pieces))
		l = f.losses(f.nu, f.nv)
	}
	return l
}

// summed are the losses by the sums of the pieces; again says that they are to be taken cell by cell.
func (f *Newton) summed() (l Losses, again bool) {
	l = f.losses(f.nu, f.nv)
	size := 0.0
	for i := range f.extra {
		size += f.extra[i].size[0]
	}
	return l, !(float64(l.Visible*float64(f.Visible)) >= float64(closeFit*size))
}

// toTiles returns some rows of X tile by tile, the rows of each one after another. Behind the last sample
// they are 0. There is room for them, and for one row.
func (f *Updates) toTiles(laid, row []float64, i, rows int) []float64 {
	n, count := f.N, f.tiles.count
	if f.blocks() && count == 1 && f.Stride == n {
		return f.X[i*n : (i+rows)*n]
	}
	for r := range rows {
		x := f.row(row, i+r)
		if count == 1 {
			copy(laid[r*f.NP:], x)
			continue
		}
		for t := range count {
			lo, hi := f.tile(t)
			to := laid[rows*lo+r*(hi-lo) : rows*lo+(r+1)*(hi-lo)]
			clear(to[copy(to, x[lo:]):])
		}
	}
	return laid[:rows*f.NP]
}

// row returns row i of X where it lies, or read.
func (f *Updates) row(room []float64, i int) []float64 {
	if len(f.X) > 0 {
		return f.X[i*f.Stride : i*f.Stride+f.N]
	}
	f.Read(room, nil, i)
	return room[:f.N]
}

// halfExact makes z of U in a piece of the rows, and the next y of it, and takes the gradient of V there.
func (f *Newton) halfExact(worker, piece int) {
	ws := &f.room[worker]
	f.clear(piece)
	for g := f.groups(worker, piece, f.rowsTogether(), &f.pieces[piece]); g.next(); {
		x := f.cellsExact(ws.laid, ws.x, &g)
		f.dotsThin(&g)
		for from, rows := range g.parts() {
			f.dotsExact(ws.g[:rows*f.K], ws.t[:rows*f.K], f.z, x, &g, from)
			f.sweepU(ws, g.i+from, rows)
		}
		f.sumNext(ws, piece, x, &g)
	}
	f.whole(piece)
}

// gradientExact takes the loss and the gradient of V at the next y, in a piece of the rows.
func (f *Newton) gradientExact(worker, piece int) {
	ws := &f.room[worker]
	f.clear(piece)
	for g := f.groups(worker, piece, f.rowsTogether(), &f.pieces[piece]); g.next(); {
		f.sumNext(ws, piece, f.cellsExact(ws.laid, ws.x, &g), &g)
	}
	f.whole(piece)
}

// sweepU makes z of rows of U by the sweeps, and the next y. Their products are in g.
func (f *Newton) sweepU(ws *newtonScratch, i, rows int) {
	k, s, g := f.K, &ws.strip, ws.g
	n := kernel.Pad(rows) // columns from rows on go through the sweeps unread
	s.cut(k, n)
	u := f.U[i*k : (i+rows)*k]
	for c, scale := range f.scale {
		b, q := s.b[c*n:(c+1)*n], s.g[c*n:(c+1)*n]
		at := c
		for r := range b[:rows] {
			b[r], q[r] = float64(u[at]*scale), f.add.u-g[at]
			at += k
		}
	}
	for j := range s.b[:f.Fixed*n] {
		s.low[j], s.g[j] = s.b[j], held
	}
	f.metric.sweep(s)
	clear(s.low[:f.Fixed*n])
	// The next y is z + (τ-1)/τ' (z - z before), 0 where that has a minus.
	zu, nu, by := f.zu[i*k:(i+rows)*k], f.nu[i*k:(i+rows)*k], f.by
	for c := range k {
		at := c
		for _, z := range s.p[c*n : c*n+rows] {
			y := math.Float64bits(z + float64(by*(z-zu[at])))
			nu[at] = math.Float64frombits(y &^ uint64(int64(y)>>63))
			zu[at] = z
			at += k
		}
	}
}

// dotsExact fills g with the products of v, in tiles, and rows of a group from one on. There is room for as
// many.
func (f *Updates) dotsExact(g, room, v, x []float64, of *rowGroups, from int) {
	rows := len(g) / f.K
	if of.thin {
		for r := range rows {
			copy(g[r*f.K:(r+1)*f.K], of.band.g[(from+r)*f.thin.kp:])
		}
		return
	}
	for tile := range f.tiles.count {
		lo, hi := f.tile(tile)
		if tile == 0 {
			kernel.DotsRows(g, v[:f.K*hi], x[:rows*hi], rows)
			continue
		}
		kernel.DotsRows(room, v[f.K*lo:f.K*hi], x[rows*lo:rows*hi], rows)
		add(g, room)
	}
}

// sumNext is sumExact at the next y, and sums, once, the size of X.
func (f *Newton) sumNext(ws *newtonScratch, piece int, x []float64, of *rowGroups) {
	ex := &f.extra[piece]
	f.sumExact(&f.pieces[piece], ex.h, ws.wide, f.nu[of.i*f.K:(of.i+of.rows)*f.K], x, of)
	if !f.sized {
		ex.size[0] += f.size(x, of, 0, of.rows)
	}
}

// sumExact adds what a group of rows, of u, says to the gradient of V and to the sums and products of U, h.
// There is room for Group rows, padded.
func (f *Updates) sumExact(pt *part, h, room, u, x []float64, of *rowGroups) {
	k, kp, rows := f.K, kernel.Pad(f.K), of.rows
	if b := of.band; of.thin {
		b.copyU(u, rows, kp)
		for _, run := range b.runs {
			kernel.AccumulateAt(b.num, b.u[run.row*kp:(run.row+1)*kp], b.x[run.at:run.end],
				b.cols[run.at:run.end])
		}
	} else {
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			kernel.AccumulateRows(pt.num[k*lo:k*hi], u, x[rows*lo:rows*hi], rows)
		}
	}
	for from := 0; from < rows; from += Group {
		some := min(Group, rows-from)
		u, wide := u[from*k:(from+some)*k], room[:some*kp]
		for r := range some {
			wide := wide[r*kp : r*kp+k]
			for a, v := range u[r*k : (r+1)*k] {
				wide[a] = v
				pt.sum[a] += v
			}
		}
		kernel.AccumulateRows(h, u, wide, some)
	}
}

// size is Σ X²/2 of some rows of a group, all where they are not thin.
func (f *Updates) size(x []float64, of *rowGroups, from, rows int) (size float64) {
	for r := range rows {
		if of.thin {
			size += f.thin.sums[of.i+from+r]
			continue
		}
		sum := 0.0
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			x := x[rows*lo+r*(hi-lo) : rows*lo+(r+1)*(hi-lo)]
			var s [1]float64
			kernel.Dots(s[:], x, x)
			sum += s[0]
		}
		size += float64(sum / 2)
	}
	return size
}

// whole ends the sums of a piece: its loss, see [Newton.lossesExact].
func (f *Newton) whole(piece int) {
	var s [1]float64
	p, ex, k := &f.pieces[piece], &f.extra[piece], f.K
	kernel.Dots(s[:], p.num, f.nv)
	both := 0.0
	for a := range k {
		h, g := ex.h[a*kernel.Pad(k):], f.gram[a*kernel.Pad(k):]
		both += float64(2*inner(g[:a], h)) + float64(g[a]*h[a])
	}
	p.losses[0] = ex.size[0] - s[0] + float64(both/2)
}

// residualNext takes the loss at the next y cell by cell, in a piece of the rows.
func (f *Newton) residualNext(worker, piece int) {
	ws, k, loss := &f.room[worker], f.K, 0.0
	begin, end := f.span(piece)
	for i := begin; i < end && f.Pool.Err() == nil; i += f.rowsTogether() {
		rows := min(f.rowsTogether(), end-i)
		loss += f.residual(ws.w, f.nu[i*k:(i+rows)*k], f.nv, f.toTiles(ws.laid, ws.x, i, rows), rows)
	}
	f.pieces[piece].losses[0] = loss
}

// residual is the loss of rows of X, cell by cell. There is room for a group of them, of a tile.
func (f *Updates) residual(room, u, v, x []float64, rows int) (loss float64) {
	k := f.K
	for from := 0; from < rows; from += Group {
		some := min(Group, rows-from)
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			w := room[:some*(hi-lo)]
			kernel.CombineRows(w, u[from*k:(from+some)*k], v[k*lo:k*hi], some)
			kernel.Residual(w, x[rows*lo+from*(hi-lo):], hi-lo, some)
			var s [1]float64
			kernel.Dots(s[:], w, w)
			loss += float64(s[0] / 2)
		}
	}
	return loss
}
