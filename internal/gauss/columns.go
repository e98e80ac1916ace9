package gauss

// This file holds the model of V,
//
//	vᵀA_j v/2 - B_j·v,   A_j = Σ_i a_ij U_iᵀU_i,   B_j = Σ_i b_ij U_iᵀ,
//
// and the step of V, in tiles of columns.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// width is the number of columns of a tile: few enough that A of a tile stays in the cache while it is
// read and written.
const width = kernel.Wide

// batch holds the rows that the model of V takes together, one in each slot.
type batch struct {
	Rows  int     // how many slots are in use
	Keep  float64 // the factor by which the model multiplies the weights of earlier rows
	k, np int
	a, b  []float64 // slots × np
	u     []float64 // slots × k: U_i times the weight of the row
	pairs []float64 // slots × k(k+1)/2: the same times U_i, entries (c,b), b <= c
}

// pairsOf is the number of entries of a symmetric k × k matrix.
func pairsOf(k int) int { return k * (k + 1) / 2 }

// newBatch makes a batch of so many slots.
func newBatch(a *pool.Arena, slots, k, np int) batch {
	return batch{
		k: k, np: np, a: a.Floats(slots, np), b: a.Floats(slots, np),
		u: a.Floats(slots, k), pairs: a.Floats(slots, pairsOf(k)),
	}
}

// Curvature returns a of a slot, np numbers, which the caller fills.
func (b *batch) Curvature(slot int) []float64 { return b.a[slot*b.np : (slot+1)*b.np] }

// Put makes the model of the row in a slot, whose a has been filled: from w = U_i V with the U_i before
// its step, the gradient w̄ at this w, u, the U_i after its step, and the weight of the row.
func (b *batch) Put(slot int, u, w, wbar []float64, weight float64) {
	a, to := b.Curvature(slot), b.b[slot*b.np:(slot+1)*b.np]
	kernel.MultiplyLess(to, a, w, wbar)
	n := pairsOf(b.k)
	weighted, pairs := b.u[slot*b.k:(slot+1)*b.k], b.pairs[slot*n:(slot+1)*n]
	at := 0
	for c, x := range u {
		x *= weight
		weighted[c] = x
		for d, y := range u[:c+1] {
			pairs[at+d] = x * y
		}
		at += c + 1
	}
}

// Skip leaves the row of a slot out of the model.
func (b *batch) Skip(slot int) {
	n := pairsOf(b.k)
	clear(b.Curvature(slot))
	clear(b.b[slot*b.np : (slot+1)*b.np])
	clear(b.u[slot*b.k : (slot+1)*b.k])
	clear(b.pairs[slot*n : (slot+1)*n])
}

// columns is the model of the k × np matrix V. A tile holds A as k(k+1)/2 rows of as many
// numbers as it has columns, one for each pair (c,b), b <= c, and B as k rows.
type columns struct {
	A, B  []float64
	k, np int
}

// newColumns makes the model before the first row.
func newColumns(a *pool.Arena, k, np int) *columns {
	return &columns{A: a.Floats(pairsOf(k), np), B: a.Floats(k, np), k: k, np: np}
}

// Tiles returns the number of tiles, which are independent of each other.
func (m *columns) Tiles() int { return (m.np + width - 1) / width }

// Tile returns the columns of a tile.
func (m *columns) Tile(t int) (from, to int) { return t * width, min((t+1)*width, m.np) }

// room is a worker's scratch for a tile.
type room struct {
	rows       []float64 // of the batch
	columns    []float64 // the entries of V in the tile, as kernel.StepColumns has them
	mean, logs []float64
}

// newRoom makes room for batches of so many slots.
func newRoom(a *pool.Arena, k, slots int) *room {
	return &room{
		rows: a.Floats(slots, width), columns: a.Floats(kernel.ColumnsRoom(k)),
		mean: a.Floats(width), logs: a.Floats(width),
	}
}

// take adds a batch to a tile of the model, after it has multiplied the tile by the batch's Keep.
func (m *columns) take(t int, batch *batch, room *room) {
	from, to := m.Tile(t)
	a, b := m.A[pairsOf(m.k)*from:pairsOf(m.k)*to], m.B[m.k*from:m.k*to]
	m.add(a, b, batch.Keep, t, batch, 0, batch.Rows, room)
}

// takeRuns adds the rows in the slots to a tile of a and b, the sums over one batch of all rows. The slots
// have successive rows, of which row is the first.
func (m *columns) takeRuns(t, row int, a, b *pool.Sums, batch *batch, room *room) {
	from, to := m.Tile(t)
	pairs := pairsOf(m.k)
	for slot := 0; slot < batch.Rows; {
		run, end := a.Run(row + slot)
		till := min(end-row, batch.Rows)
		m.add(a.Open(row+slot, run, pairs*from, pairs*to), b.Open(row+slot, run, m.k*from, m.k*to), 1, t,
			batch, slot, till, room)
		a.Close(row+till, run, pairs*from, pairs*to)
		b.Close(row+till, run, m.k*from, m.k*to)
		slot = till
	}
}

// add multiplies a tile of A and of B by keep, and adds the slots first to end-1 of a batch.
func (m *columns) add(a, b []float64, keep float64, t int, batch *batch, first, end int, room *room) {
	from, to := m.Tile(t)
	n, count := to-from, end-first
	rows := room.rows[:count*n]
	take := func(sums, cells, by []float64, each int) {
		for i := range count {
			copy(rows[i*n:(i+1)*n], cells[(first+i)*m.np+from:])
		}
		kernel.Scale(sums, sums, keep)
		kernel.AccumulateRows(sums, by[first*each:end*each], rows, count)
	}
	take(a, batch.a, batch.pairs, pairsOf(m.k))
	take(b, batch.b, batch.u, m.k)
}

// step makes the step of a tile of V, in place. Where penalty is positive it adds penalty/2 Σ log²v to
// the model. Where V is 0, in the padding, it stays 0.
func (m *columns) step(t int, v []float64, penalty float64, s step, room *room) {
	from, to := m.Tile(t)
	n, k := to-from, m.k
	a, b := m.A[pairsOf(k)*from:pairsOf(k)*to], m.B[k*from:k*to]
	mean, v := room.mean[:n], v[from:]
	kernel.BeginColumns(room.columns, a, b, v, mean, k, n, m.np)
	if penalty > 0 { // 0 would add 0
		for c := range k {
			penalise(kernel.ColumnOf(room.columns, c, n), room.logs[:n], penalty)
		}
	}
	kernel.StepColumns(room.columns, a, v, mean, k, n, m.np, kernel.ColumnStep(s))
}

// penalise adds weight/2 Σ log²x to gradients and curvatures.
func penalise(c kernel.Column, logs []float64, weight float64) {
	kernel.Log(logs, c.X)
	for j, x := range c.X {
		if x > 0 {
			gradient, curvature := barrier(weight, x, logs[j])
			c.G[j] += gradient
			c.H[j] += curvature
		}
	}
}
