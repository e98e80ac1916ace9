package transport

// This file holds the solver of several rows side by side (abreast). Each row makes its own
// sweeps over its samples. The m × m systems between the sweeps, in whose elimination one pivot
// waits for another, are solved together, each in a lane of the vector units. The bits are those
// of each row alone, so they do not depend on which rows form a group.

import (
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/laplacian"
)

// Abreast returns how many rows of n samples and m levels are best solved side by side, of the given
// number of rows. It is one where the processor has no vector units that are used, where the rows would
// not stay in the cache, or where there are too few rows to be worth it.
func Abreast(n, m, rows int) int {
	rows = min(rows, kernel.Lanes, groupEntries/kernel.Pad(n)/m) // not by a product, which could overflow
	if rows < fewestRows || m > widestGroup || !kernel.Vectors() {
		return 1
	}
	return rows
}

// Group is the workspace of one worker: rows that are loaded, solved and differentiated
// together. Clear, Add for each row, Solve; then averages of each row; then Adjoint, and
// the Grad methods of each row.
type Group struct {
	Rows   []*Row // those that were added, in their order
	spaces []*Row
	states []*Warm   // nil: none
	ends   []Outcome // of Solve
	steps  []descent
	on     []int // the rows that have not converged yet
	lanes  lanes
}

// NewGroup makes a group of the given workspaces, at most kernel.Lanes, all resized to the
// same size.
func NewGroup(spaces []*Row) *Group {
	k := len(spaces)
	g := &Group{
		Rows: make([]*Row, 0, k), spaces: spaces, states: make([]*Warm, 0, k),
		ends: make([]Outcome, k), steps: make([]descent, k), on: make([]int, k),
	}
	if k >= fewestRows {
		g.lanes = newLanes(spaces[0].m)
	}
	return g
}

// NewRows makes count workspaces of one size, with all the memory that they will need.
func NewRows(count, n, m int) []*Row {
	rows := make([]*Row, count)
	for i := range rows {
		rows[i] = new(Row)
		rows[i].Resize(n, m)
		rows[i].form = powers
		rows[i].reserve() // otherwise the first solve does
	}
	return rows
}

// Clear takes all rows out.
func (g *Group) Clear() { g.Rows, g.states = g.Rows[:0], g.states[:0] }

// Add loads p into the next workspace and returns it. Solve starts from the state, which
// may be nil, and leaves it there; where t is not nil it fills t, whole blocks of numbers,
// with T = M q. t, q and state are used until the group is cleared.
func (g *Group) Add(p Problem, state *Warm, t, q []float64) *Row {
	r := g.spaces[len(g.Rows)]
	r.Load(p)
	r.want = want{t: t, q: q}
	g.Rows, g.states = append(g.Rows, r), append(g.states, state)
	return r
}

// End returns how the solve of row i ended.
func (g *Group) End(i int) Outcome { return g.ends[i] }

// Solve is [Row.Solve] for every row.
func (g *Group) Solve(tol float64, maxPasses int) {
	for i, r := range g.Rows {
		r.need(loaded)
		g.steps[i], g.on[i] = r.begin(tol, maxPasses, g.states[i]), i
	}
	var rows [kernel.Lanes]*Row
	on := g.on[:len(g.Rows)]
	for len(on) >= fewestRows {
		for lane, i := range on {
			rows[lane] = g.Rows[i]
		}
		now := rows[:len(on)]
		g.lanes.expand(now)
		left := 0
		for lane, i := range on {
			if r := now[lane]; g.steps[i].ahead(&r.dual) {
				put(g.lanes.rhs, lane, r.dir)
				on[left] = i
				left++
			} else {
				now[lane] = nil
			}
		}
		on = on[:left]
		if left == 0 {
			break
		}
		g.lanes.factor(now)
		g.lanes.solve(len(now))
		k := 0
		for lane, r := range now {
			if r != nil {
				get(r.dir, g.lanes.rhs, lane)
				g.steps[on[k]].move(&r.dual)
				k++
			}
		}
	}
	for _, i := range on {
		g.steps[i].run(&g.Rows[i].dual)
	}
	for i, r := range g.Rows {
		g.ends[i] = r.finish(g.steps[i], g.states[i])
		r.phase = solved
	}
}

// Adjoint is [Row.Adjoint] for every row, back[i] that of row i.
func (g *Group) Adjoint(back []Cotangent) {
	rows := g.Rows
	if len(rows) < fewestRows {
		for i, r := range rows {
			r.Adjoint(back[i])
		}
		return
	}
	for _, r := range rows {
		r.need(solved)
	}
	g.lanes.expand(rows)
	g.lanes.factor(rows)
	for lane, r := range rows {
		r.pull(back[lane])
		put(g.lanes.rhs, lane, r.lam)
	}
	g.lanes.solve(len(rows))
	for lane, r := range rows {
		get(r.lam, g.lanes.rhs, lane)
		r.gauge()
		r.phase = pulled
	}
}

// lanes holds the systems of some rows. Entry i of a vector of lane l lies at
// i·Lanes + l. Of a matrix it holds the entries below the diagonal, row after row.
type lanes struct {
	mu, w, ratio []float64 // of HankelLanes
	g, c         []float64 // Gram matrices, then their factors; column sums
	d, floor     []float64 // pivots
	rhs, work    []float64
}

// newLanes makes room for systems of m levels.
func newLanes(m int) lanes {
	const n = kernel.Lanes
	size := m * (m - 1) / 2
	free := slab(make([]float64, (2*m-1+6*m+2*size)*n))
	return lanes{mu: free.take((2*m - 1) * n), w: free.take(m * n), c: free.take(m * n), d: free.take(m * n),
		floor: free.take(m * n),
		rhs:   free.take(m * n), work: free.take(m * n), ratio: free.take(size * n), g: free.take(size * n)}
}

// put and get move a vector of levels to and from its lane.
func put(to []float64, lane int, v []float64) {
	to = to[lane:]
	for j, x := range v {
		to[j*kernel.Lanes] = x
	}
}

func get(v, from []float64, lane int) {
	from = from[lane:]
	for j := range v {
		v[j] = from[j*kernel.Lanes]
	}
}

// putTriangle moves what lies below the diagonal of an m × mp matrix to its lane.
func putTriangle(to []float64, lane int, from []float64, mp int) {
	to = to[lane:]
	for j := 1; j*mp < len(from); j++ {
		for _, v := range from[j*mp : j*mp+j] {
			to[0] = v
			to = to[min(kernel.Lanes, len(to)):]
		}
	}
}

// expand makes the column sums of the last sweeps, and what lies below the diagonals
// of the Gram matrices.
func (a *lanes) expand(rows []*Row) {
	flat := true
	for lane, r := range rows {
		put(a.mu, lane, r.mu[:2*r.m-1])
		put(a.w, lane, r.w)
		flat = flat && r.flat
	}
	ratio := a.ratio
	if flat {
		ratio = nil
	} else {
		for lane, r := range rows {
			putTriangle(ratio, lane, r.ratio, r.mp)
		}
	}
	kernel.HankelLanes(a.g, a.c, a.mu, ratio, a.w, len(rows))
	for lane, r := range rows {
		if r.knows < summed {
			get(r.c, a.c, lane)
			r.knows = summed
			r.settle()
		}
	}
}

// factor eliminates the matrices that expand made; lanes without a row may hold anything. A Gram
// matrix that a row has made by itself since (settle) is taken from the row.
func (a *lanes) factor(rows []*Row) {
	for lane, r := range rows {
		if r == nil {
			continue
		}
		if r.knows >= expanded {
			putTriangle(a.g, lane, r.g, r.mp)
		}
		r.setFloor()
		put(a.floor, lane, r.floor)
	}
	laplacian.FactorLanes(a.g, a.d, a.floor, a.work, len(rows))
}

// solve overwrites the right sides with the solutions of the systems that factor has eliminated.
func (a *lanes) solve(rows int) { laplacian.SolveLanes(a.g, a.d, a.rhs, rows) }
