package quantmf

// This file holds the solver of several rows abreast. Each makes its own sweeps over
// its samples; the m × m systems between them, whose elimination waits for one pivot
// after the other, go a lane each through the vector units. The bits are those of each
// row alone, so it does not matter which rows meet.

import (
	"github.com/quantmf/quantmf/internal/cpu"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/laplacian"
)

const (
	// fewest is the number of rows that are worth it: two are as fast one by one.
	fewest = 3
	// together is the number of entries of E that are held for rows abreast, a quarter
	// of a megabyte: what is left in the cache from one sweep to the next.
	together = 1 << 15
	// widest is the number of levels up to which lanes are faster than one system after
	// the other: those of larger ones leave the cache, and keep vectors busy alone.
	widest = 64
)

// rowsAbreast is how many rows of n samples and m levels are solved abreast: one
// where there are no vectors, or where they would not stay in the cache.
func rowsAbreast(n, m int) int {
	rows := min(kernel.Lanes, together/kernel.Pad(n)/m) // not by a product, which could overflow
	if rows < fewest || m > widest || cpu.Level == cpu.Portable {
		return 1
	}
	return rows
}

// abreast is the systems of some rows. Entry i of a vector of lane l lies at
// i·Lanes + l; of matrices there is what lies below the diagonal, row after row.
type abreast struct {
	rows   []*row // in their lanes
	states []*warm
	ends   []outcome // of solve
	steps  [kernel.Lanes]descent
	on     [kernel.Lanes]int // the rows that go on

	mu, w, ratio, g, c, d, floor, rhs, work []float64
}

// newAbreast makes room for some rows of m levels.
func newAbreast(rows, m int) abreast {
	const n = kernel.Lanes
	if rows < fewest {
		return abreast{rows: make([]*row, 0, rows), states: make([]*warm, 0, rows), ends: make([]outcome, rows)}
	}
	size := m * (m - 1) / 2
	all := make([]float64, (2*m-1+6*m+2*size)*n)
	take := func(k int) (v []float64) { v, all = all[:k*n:k*n], all[k*n:]; return v }
	return abreast{
		rows: make([]*row, 0, n), states: make([]*warm, 0, n), ends: make([]outcome, n),
		mu: take(2*m - 1), w: take(m), c: take(m), d: take(m), floor: take(m), rhs: take(m), work: take(m), ratio: take(size), g: take(size),
	}
}

// clear takes all rows away; take adds one.
func (a *abreast) clear()                { a.rows, a.states = a.rows[:0], a.states[:0] }
func (a *abreast) take(r *row, ws *warm) { a.rows, a.states = append(a.rows, r), append(a.states, ws) }

// solve is row.solve for every row.
func (a *abreast) solve(tol float64, maxPasses int) {
	for i, r := range a.rows {
		a.steps[i], a.on[i] = r.begin(tol, maxPasses, a.states[i]), i
	}
	var lanes [kernel.Lanes]*row
	on := a.on[:len(a.rows)]
	for len(on) >= fewest {
		for lane, i := range on {
			lanes[lane] = a.rows[i]
		}
		a.expand(lanes[:len(on)])
		left := 0
		for lane, i := range on {
			if r := lanes[lane]; a.steps[i].ahead(r) {
				a.put(a.rhs, lane, r.dir)
				on[left] = i
				left++
			} else {
				lanes[lane] = nil
			}
		}
		if left == 0 {
			on = on[:0]
			break
		}
		rows := lanes[:len(on)]
		a.factor(rows)
		laplacian.SolveLanes(a.g, a.d, a.rhs, len(rows))
		on = on[:left]
		k := 0
		for lane, r := range rows {
			if r != nil {
				a.get(r.dir, a.rhs, lane)
				a.steps[on[k]].move(r)
				k++
			}
		}
	}
	for _, i := range on {
		a.steps[i].run(a.rows[i])
	}
	for i, r := range a.rows {
		a.ends[i] = r.finish(a.steps[i], a.states[i])
	}
}

// hold factors the Laplacians of the rows as they stand, for adjoint.
func (a *abreast) hold() {
	if len(a.rows) >= fewest {
		a.expand(a.rows)
		a.factor(a.rows)
		return
	}
	for _, r := range a.rows {
		r.expand()
	}
}

// adjoint ends weightAdjoint for every row: it makes λ of ρ, after hold.
func (a *abreast) adjoint() {
	if len(a.rows) < fewest {
		for _, r := range a.rows {
			r.newton(r.lam)
		}
	} else {
		for lane, r := range a.rows {
			a.put(a.rhs, lane, r.lam)
		}
		laplacian.SolveLanes(a.g, a.d, a.rhs, len(a.rows))
		for lane, r := range a.rows {
			a.get(r.lam, a.rhs, lane)
		}
	}
	for _, r := range a.rows {
		r.gauge()
	}
}

// put and get move a vector of levels to and from its lane.
func (a *abreast) put(to []float64, lane int, v []float64) {
	to = to[lane:]
	for j, x := range v {
		to[j*kernel.Lanes] = x
	}
}

func (a *abreast) get(v, from []float64, lane int) {
	from = from[lane:]
	for j := range v {
		v[j] = from[j*kernel.Lanes]
	}
}

// expand makes the column sums of the last sweeps, and what lies below the diagonals
// of the Gram matrices.
func (a *abreast) expand(rows []*row) {
	flat := true
	for lane, r := range rows {
		a.put(a.mu, lane, r.mu[:2*r.m-1])
		a.put(a.w, lane, r.w)
		flat = flat && r.flat
	}
	ratio := a.ratio
	if flat {
		ratio = nil
	} else {
		for lane, r := range rows {
			a.triangle(ratio, lane, r.ratio, r.mp)
		}
	}
	kernel.HankelLanes(a.g, a.c, a.mu, ratio, a.w, len(rows))
	for lane, r := range rows {
		if !r.summed {
			a.get(r.c, a.c, lane)
			r.summed = true
			r.settle()
		}
	}
}

// triangle moves what lies below the diagonal of an m × mp matrix to its lane.
func (a *abreast) triangle(to []float64, lane int, from []float64, mp int) {
	to = to[lane:]
	for j := 1; j*mp < len(from); j++ {
		for _, v := range from[j*mp : j*mp+j] {
			to[0] = v
			to = to[min(kernel.Lanes, len(to)):]
		}
	}
}

// factor eliminates what expand made; lanes without a row may hold anything. Gram
// matrices that a row made by itself since are taken from there.
func (a *abreast) factor(rows []*row) {
	for lane, r := range rows {
		if r == nil {
			continue
		}
		if r.expanded {
			a.triangle(a.g, lane, r.gram, r.mp)
		}
		r.setFloor()
		a.put(a.floor, lane, r.floor)
	}
	laplacian.FactorLanes(a.g, a.d, a.floor, a.work, len(rows))
}
