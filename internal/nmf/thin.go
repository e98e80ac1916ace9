package nmf

// This file holds rows that are mostly zero, where no cell is hidden. Under Frobenius' loss a cell x = 0 adds
// nothing to products with X, which are all that is taken of it (exact.go). Under the divergence of Kullback
// and Leibler it adds nothing to the sums of X/W and X/W² that updates take, and W alone to the loss, which
// for a row i of products u_i V is
//
//	Σ_j x log(x/w) - x + w = Σ_{x>0} x log(x/w) - Σ_j x + Σ_c u_ic Σ_j V_cj.
//
// So an epoch visits the cells that are not 0 and costs k times their number, beside sums over the factors.
//
// # Thin groups
//
// A group of Group rows is thin if at most a quarter of its cells are other than 0. Its loss is the right
// side above, that of others the left side, cell by cell: that is more exact where a fit is nearly perfect.
// Which groups are thin depends on the numbers alone, and all holders of rows go the same way, so a fit has
// the same bits over each: rows of a thin group that are held in full are searched for what is not 0, and
// sparse rows of another are expanded, to at most four times their cells.
//
// # Layout
//
// The samples of a row's cells lie anywhere, so V and the sums of its update are taken from where they lie
// sample by sample, k numbers padded to whole blocks each (kernel.CombineAt and its neighbours). As many
// thin rows as have eight cells a sample, a band, go over V together, tile by tile of samples, so that a tile
// comes to the second cache once for all of them. Before that the cells of a band are copied to where they
// lie in this order, tile by tile and row by row, so that memory is read in order. Kernels take a run of
// cells at a time, whose rows of V stay in the first cache from one kernel to the next. At the end of a piece
// its sums are transposed, to lie as those of other rows (join).

import (
	"math"
	"sync/atomic"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	thinRows   = 16      // of a matrix of fewer no group is: V sample by sample takes more than they spare
	thinShare  = 4       // a group is thin if no more than one cell in so many is other than 0
	bandRows   = 512     // at most, in a band
	bandCells  = 8       // of a band, by the number of samples
	tileHeld   = 1 << 16 // numbers of V in a tile of samples
	tileOfRows = 64      // samples a tile has at least
	runCells   = 256     // of a run, at most
)

// thin is what thin groups are visited with.
type thin struct {
	groups []bool      // which groups are
	some   bool        // one is
	zeros  atomic.Bool // NonZeros has stored some
	sums   []float64   // d: Σ_j x_ij of thin rows, in the exact case Σ_j x_ij²/2
	kp     int         // k padded to whole blocks
	tiles  int         // of samples
	width  int         // of the widest
	ends   []int32     // d × tiles, of thin rows: how many cells come before the end of the tile
	v      []float64   // np × kp: V sample by sample
	from   []float64   // what v is filled with, which lies in tiles
	newtonThin
	sumV  []float64 // k: Σ_j V_cj
	bands []band    // by worker
}

// band is some thin rows, and a worker's room for them.
type band struct {
	rows   int      // there is room for
	room   int      // cells there is room for
	cols   []uint32 // cells, tile by tile and row by row
	x      []float64
	from   []int // of each row and tile, where its cells begin
	runs   []run
	u, g   []float64
	logs   []float64 // Σ x log2 r of each row
	w      []float64 // of a run
	num    []float64 // np × kp: sums of a piece, 0 before and after it
	places []uint32  // room for cells of a row
	cells  []float64
	row    []float64 // n: of a row whose holder has all of it
	newtonBand
}

// run is the cells from at to before end of a row of a band.
type run struct{ row, at, end int }

// newThin returns what the groups of a problem are looked at with.
func (f *Updates) newThin() *thin {
	kp := kernel.Pad(f.K)
	width := thinWidth(kp)
	tiles, a := (f.N+width-1)/width, f.Pool.Memory
	t := &thin{groups: pool.Make[bool](a, (f.D+Group-1)/Group), sums: a.Floats(f.D), kp: kp,
		tiles: tiles, width: width, ends: pool.Make[int32](a, f.D, tiles), sumV: a.Floats(f.K),
		bands: make([]band, f.Pool.Workers())}
	for i := range t.bands {
		b := &t.bands[i]
		b.places, b.cells = pool.Make[uint32](a, f.N), a.Floats(f.N) // for one row
		if f.NonZeros == nil && f.X == nil {
			b.row = a.Floats(f.N)
		}
	}
	return t
}

// thinWidth is how many samples are a tile, for a k of so many numbers once it is padded.
func thinWidth(kp int) int { return max(tileHeld/kp, tileOfRows) }

// mayBeThin tells whether there may be thin groups.
func (f *Updates) mayBeThin() bool { return f.thin != nil && !f.Full && f.Of >= thinRows }

// MostOfThin is how many cells a group of so many rows of n samples has at most that are other than 0, if it
// is thin.
func MostOfThin(rows, n int) int { return rows * n / thinShare }

// prepare finds the thin groups and makes room for them.
func (f *Updates) prepare() {
	if !f.mayBeThin() || f.thin.some {
		return
	}
	f.run(opSurvey, len(f.pieces))
	for _, is := range f.thin.groups {
		f.thin.some = f.thin.some || is
	}
	if f.thin.some {
		f.roomThin()
	}
}

// roomThin makes room for thin rows.
func (f *Updates) roomThin() {
	a, kp := f.Pool.Memory, f.thin.kp
	f.thin.v = a.Floats(f.NP, kp)
	rows := min(bandRows, f.D)
	room := (min(bandCells, (f.D+thinShare-1)/thinShare) + 1) * f.N // a thin group has a quarter of its cells
	for i := range f.thin.bands {
		b := &f.thin.bands[i]
		b.rows, b.room = rows, room
		b.cols, b.x, b.from = pool.Make[uint32](a, room), a.Floats(room),
			pool.Make[int](a, rows, f.thin.tiles)
		b.runs = pool.Make[run](a, rows*f.thin.tiles+room/runCells)[:0]
		b.u, b.g, b.logs = a.Floats(rows, kp), a.Floats(rows, kp), a.Floats(rows)
		b.w, b.num = a.Floats(runCells), a.Floats(f.NP, kp)
	}
}

// survey tells which groups of a piece of the rows are thin.
func (f *Updates) survey(worker, piece int) {
	b := &f.thin.bands[worker]
	begin, end := f.span(piece)
	for i := begin; i < end; i += Group {
		if f.Pool.Err() != nil {
			return
		}
		rows := min(Group, end-i)
		left := MostOfThin(rows, f.N)
		for r := i; r < i+rows && left >= 0; r++ {
			cols, vals := f.cells(b, r, b.places, b.cells)
			f.thin.sums[r] = 0
			at, tile := int32(0), 0
			inside(cols, f.N)
			ends := f.thin.ends[r*f.thin.tiles : (r+1)*f.thin.tiles]
			for p, x := range vals {
				if x == 0 {
					f.thin.zeros.Store(true)
					continue
				}
				if f.exact {
					f.thin.sums[r] += float64(x * x / 2)
				} else {
					f.thin.sums[r] += x
				}
				left--
				for ; int(cols[p]) >= (tile+1)*f.thin.width; tile++ {
					ends[tile] = at
				}
				at++
			}
			for ; tile < len(ends); tile++ {
				ends[tile] = at
			}
		}
		f.thin.groups[i/Group] = left >= 0
	}
}

// cells returns the cells of row i that are not 0, where they are held or in the room given, which has as
// many as there are samples at least.
func (f *Updates) cells(b *band, i int, places []uint32, cells []float64) ([]uint32, []float64) {
	if f.NonZeros == nil {
		row := b.row
		if f.X != nil {
			row = f.X[i*f.Stride : i*f.Stride+f.N]
		} else {
			f.Read(row, nil, i)
		}
		n := kernel.Compress(places, cells, row)
		return places[:n], cells[:n]
	}
	cols, vals := f.NonZeros(i, places[:0], cells[:0])
	vals = vals[:len(cols)]
	if !f.thin.zeros.Load() {
		return cols, vals
	}
	n := 0
	for p, x := range vals {
		if x != 0 {
			places[n], cells[n] = cols[p], x
			n++
		}
	}
	return places[:n], cells[:n]
}

// transposeV copies V, which lies in tiles of k rows each, to where thin rows read it sample by sample.
func (f *Updates) transposeV(v []float64) {
	f.thin.from = v
	f.run(opTranspose, f.tiles.count)
}

// transposeTile is transposeV for a tile.
func (f *Updates) transposeTile(tile int) {
	lo, hi := f.tile(tile)
	f.transpose(f.thin.v, f.thin.from, lo, hi)
}

// transpose copies the samples lo to hi-1, a tile, from a matrix in tiles to one that lies sample by sample.
func (f *Updates) transpose(to, from []float64, lo, hi int) {
	n, kp := hi-lo, f.thin.kp
	to, from = to[lo*kp:hi*kp], from[f.K*lo:f.K*hi]
	for j := 0; j < n; j += kernel.Lanes {
		some := to[j*kp : (j+kernel.Lanes)*kp]
		for c := range f.K {
			for l, x := range from[c*n+j : c*n+j+kernel.Lanes] {
				some[l*kp+c] = x
			}
		}
	}
}

// join is the way back from transpose for the sums of thin rows: it copies them, which lie sample by sample,
// to those of a piece in tiles, or adds them where has says that the piece has some, and leaves 0 for the
// next.
func (f *Updates) join(to, from []float64, has bool) {
	kp := f.thin.kp
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		n, to, from := hi-lo, to[f.K*lo:f.K*hi], from[lo*kp:hi*kp]
		for j := 0; j < n; j += kernel.Lanes {
			some := from[j*kp : (j+kernel.Lanes)*kp]
			for c := range f.K {
				row := to[c*n+j : c*n+j+kernel.Lanes]
				if !has {
					for l := range row {
						row[l] = some[l*kp+c]
					}
					continue
				}
				for l := range row {
					row[l] += some[l*kp+c]
				}
			}
			clear(some)
		}
	}
}

// rowGroups goes over the rows of a piece, group by group: thin rows as many as go over V together, and
// others as many as were asked for.
type rowGroups struct {
	f          *Updates
	band       *band // a worker's room for thin rows
	into       *part // the sums that groups add to, those of thin rows in the band; nil: none
	size       int   // of a group of other rows
	i, rows    int   // the group
	end        int   // of the piece
	thin       bool  // the group is of thin rows, which the band has the cells of
	thins, has bool  // there was a thin group; into has sums
}

// groups begins before the first group.
func (f *Updates) groups(worker, piece, size int, into *part) rowGroups {
	g := rowGroups{f: f, into: into, size: size}
	if f.thin != nil {
		g.band = &f.thin.bands[worker]
	}
	g.i, g.end = f.span(piece)
	return g
}

// next goes to the next group. After the last, or where the pool has stopped, it is false, and into has the
// sums of all groups, and nothing of what it had before.
func (g *rowGroups) next() bool {
	g.i += g.rows
	if g.i >= g.end || g.f.Pool.Err() != nil {
		g.join()
		return false
	}
	g.rows, g.thin = 0, false
	if g.band != nil {
		g.rows = g.f.fetch(g.band, g.i, g.end)
		g.thin = g.rows > 0
	}
	g.thins = g.thins || g.thin
	if !g.thin {
		g.rows = min(g.size, g.end-g.i)
		g.open()
	}
	return true
}

// open clears into before the first group that adds to it.
func (g *rowGroups) open() {
	if g.into != nil && !g.has {
		clear(g.into.num)
		if !g.f.exact { // else they are of thin rows too
			clear(g.into.den)
		}
		g.has = true
	}
}

// join adds the sums of thin rows to into.
func (g *rowGroups) join() {
	if g.into == nil || !g.thins {
		return
	}
	g.f.join(g.into.num, g.band.num, g.has)
	if len(g.band.den) > 0 {
		g.f.join(g.into.den, g.band.den, g.has)
	}
}

// fetch takes the cells of thin rows from row i on over to where they lie tile by tile, and returns how many
// rows those are: at most as many as go over V together.
func (f *Updates) fetch(b *band, i, end int) (rows int) {
	tiles := f.thin.tiles
	for used := 0; i+rows < end && rows < b.rows && f.thin.groups[(i+rows)/Group] &&
		used <= bandCells*f.N; rows++ {
		used += int(f.thin.ends[(i+rows+1)*tiles-1])
	}
	b.lay(f.thin.ends[i*tiles:(i+rows)*tiles], tiles)
	for r := range rows {
		cols, vals := f.cells(b, i+r, b.places, b.cells)
		inside(cols, f.N)
		from := int32(0)
		for t, to := range f.thin.ends[(i+r)*tiles : (i+r+1)*tiles] {
			to = min(to, int32(len(cols))) // a row that could not be read has none; the fit ends with that
			if from == to {
				continue
			}
			at := b.from[r*tiles+t]
			copy(b.cols[at:], cols[from:to])
			copy(b.x[at:], vals[from:to])
			from = to
		}
	}
	return rows
}

// lay decides where the cells of a band lie, of whose rows so many come before the end of each tile.
func (b *band) lay(ends []int32, tiles int) {
	b.runs = b.runs[:0]
	at := 0
	for t := range tiles {
		for p := t; p < len(ends); p += tiles {
			end := at + int(ends[p])
			if t > 0 {
				end -= int(ends[p-1])
			}
			for b.from[p] = at; at < end; at = b.runs[len(b.runs)-1].end {
				b.runs = append(b.runs, run{p / tiles, at, min(at+runCells, end)})
			}
		}
	}
}

// ratio returns x/w of the cells of a run, w being the products of u and V. They last until the next call.
func (b *band) ratio(r run, u, v []float64) []float64 {
	w := b.w[:r.end-r.at]
	kernel.CombineAt(w, u, v, b.cols[r.at:r.end])
	kernel.Ratio(w, b.x[r.at:r.end], w, divergence.LeastT)
	return w
}

// accumulate adds what ratios of a run say to the logarithms of its row and to the sums of V's update.
func (b *band) accumulate(r run, ratio, u []float64) {
	b.logs[r.row] += kernel.LogSum(ratio, b.x[r.at:r.end])
	kernel.AccumulateAt(b.num, u, ratio, b.cols[r.at:r.end])
}

// inside panics where a column is not below n: kernels do not look.
func inside(cols []uint32, n int) {
	last, beyond := int64(n-1), int64(0) // below 0 once a column is beyond the last
	for _, j := range cols {
		beyond |= last - int64(j)
	}
	if beyond < 0 {
		panic("nmf: a cell beyond the matrix")
	}
}

// copyU takes rows of u over to where each has whole blocks.
func (b *band) copyU(u []float64, rows, kp int) {
	k := len(u) / rows
	for r := range rows {
		copy(b.u[r*kp:(r+1)*kp], u[r*k:(r+1)*k])
	}
}

// sweepThin takes a band of thin rows through a sweep.
func (f *Updates) sweepThin(b *band, pt *part, i, rows int) {
	k, kp := f.K, f.thin.kp
	u := f.U[i*k : (i+rows)*k]
	if f.updateU {
		f.past.stepU(u, i*k)
	}
	b.copyU(u, rows, kp)
	if f.updateU {
		clear(b.g[:rows*kp])
		for _, run := range b.runs {
			row := run.row * kp
			ratio := b.ratio(run, b.u[row:row+kp], f.thin.v)
			kernel.DotsAt(b.g[row:row+kp], f.thin.v, ratio, b.cols[run.at:run.end])
		}
		for r := range rows {
			g := b.g[r*kp : r*kp+k]
			f.ratios(g, u[r*k:(r+1)*k], f.tiles.denU[:k])
			for c, by := range g {
				u[r*k+c] *= by
			}
		}
		b.copyU(u, rows, kp)
	}
	clear(b.logs[:rows])
	for _, run := range b.runs {
		u := b.u[run.row*kp : (run.row+1)*kp]
		b.accumulate(run, b.ratio(run, u, f.thin.v), u)
	}
	for r := range rows {
		u := u[r*k : (r+1)*k]
		pt.losses[0] += f.thinLoss(i+r, u, f.thin.sumV, b.logs[r])
		for c, v := range u {
			pt.sum[c] += v
		}
	}
}

// thinLoss is the loss of row i, given the sums over V and of its binary logarithms.
func (f *Updates) thinLoss(i int, u, sumV []float64, logs float64) float64 {
	// rounding may say otherwise of a perfect fit
	return max(inner(u, sumV)-f.thin.sums[i]+float64(logs*math.Ln2), 0)
}
