package bqmf

// This file holds joint draws of all cells. Cells of a row share what is not known of u_i, and cells of a
// sample what is not known of v_j: a mean over many hidden cells is less sure than independent draws would
// have it. With δu_i ~ N(0, S_i), δv_j ~ N(0, C_j) and ε standard normal,
//
//	e_ij = u_i·δv_j + δu_i·v_j + √(tr S_i C_j + 1/(τ_i ρ_j)) ε_ij + √l_i ε_i,
//	l_i = 1/(τ_i R_i) + (Σ_j ρ_j u_i·v_j/R_i - Σ_j u_i·v_j/n)²,  R_i = Σ_j ρ_j,
//
// ρ_j summed over the observed cells of the row. The first three terms have all covariances of u_i·v_j and
// the noise, and are normal: the product δu_i·δv_j, of variance tr S_i C_j, goes along with no other cell.
// l_i is the variance of the level of the row. Its scale has mean 0 over the observed cells, and is off by
// their noise, and by as much as u_i·v_j is higher at observed cells than at all.
//
// A cell is drawn at the normal quantile e_ij/√Var e_ij of its distribution, as posterior.go and curve.go
// have it, with corrections, tails and levels. So each cell by itself is drawn from the distribution that its
// quantiles are of, and together cells have the correlations of e.
//
// Cost: that of Each, 4k flops a cell and k³/3 for each row and each sample.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// normals are independent standard normal numbers.
type normals struct{ random.Source }

func (s *normals) next() float64 {
	// the middles of 2^53 equal steps of probability
	return elem.NormalQuantile(s.Float64() + 0x1p-54)
}

// drawer draws deviations from the mean of a normal vector of k numbers, for one worker.
type drawer struct {
	k  int
	a  []float64 // k × Pad(k): the covariance, and then its Cholesky factor
	to []float64 // the last draw
	// of the row under way, each Pad(N)
	byColumn, byRow []float64
}

func newDrawer(k, np int) *drawer {
	return &drawer{k: k, a: make([]float64, k*kernel.Pad(k)), to: make([]float64, k),
		byColumn: make([]float64, np), byRow: make([]float64, np)}
}

// leastPivot is the share of a variance below which what is left of it counts as rounding, and as none.
const leastPivot = 1e-9

// draw returns a draw of N(0, b - mean meanᵀ), b being packed second moments.
func (w *drawer) draw(b, mean []float64, from *normals) []float64 {
	k, kp := w.k, kernel.Pad(w.k)
	unpack(w.a, b, k)
	clear(w.to)
	for c := range k {
		variance := w.a[c*kp+c] - float64(mean[c]*mean[c])
		pivot := variance
		for _, l := range w.a[c*kp : c*kp+c] {
			pivot -= float64(l * l)
		}
		root, normal := 0.0, from.next()
		if pivot > leastPivot*variance {
			root = math.Sqrt(pivot)
		}
		w.a[c*kp+c] = root
		for r := c + 1; r < k; r++ {
			l := 0.0
			if root > 0 {
				l = w.a[r*kp+c] - float64(mean[r]*mean[c])
				for h := range c {
					l -= float64(w.a[r*kp+h] * w.a[c*kp+h])
				}
				l /= root
			}
			w.a[r*kp+c] = l
		}
		for r := c; r < k; r++ {
			w.to[r] += float64(w.a[r*kp+c] * normal)
		}
	}
	return w.to
}

// Draw calls g for every cell with what Each says of it, with mass, and with the normal quantile at which the
// cell is drawn.
func (m *Model) Draw(p *pool.Pool, seed uint64, g func(t *Table, i, j int, mean, deviation, z float64)) {
	if len(m.Curves) == 0 { // the zero value
		return
	}
	k, np, pp := m.K, kernel.Pad(m.N), Packed(m.K)
	work := make([]*drawer, p.Workers())
	room := func(w int) *drawer {
		if work[w] == nil {
			work[w] = newDrawer(k, np)
		}
		return work[w]
	}
	offV := make([]float64, k*np) // δv
	p.Do(m.N, func(w, j int) {
		from, v := normals{random.Split(seed, m.D+j)}, make([]float64, k)
		m.column(v, j)
		for c, t := range room(w).draw(m.BV[j*pp:(j+1)*pp], v, &from) {
			offV[c*np+j] = t
		}
	})
	m.eachRow(p, true, func(c *rowCells, i int) {
		if c.deviations == nil {
			for j := range m.N {
				g(&c.table, i, j, 0, 0, 0)
			}
			return
		}
		w, from := room(c.worker), normals{random.Split(seed, i)}
		u := m.U[i*k : (i+1)*k]
		kernel.Combine(w.byColumn, u, offV)
		kernel.Combine(w.byRow, w.draw(m.BU[i*pp:(i+1)*pp], u, &from), m.V)
		level := m.level(i, c.cells.cells.mean[c.r*np:])
		of := float64(from.next() * math.Sqrt(level))
		own, variance := c.cells.cells.own[c.r*np:], c.cells.cells.variance[c.r*np:]
		for j := range m.N {
			alone := max(variance[j]-own[j], 0) + 1/float64(m.Tau[i]*m.Rho[j])
			e := w.byColumn[j] + w.byRow[j] + float64(math.Sqrt(alone)*from.next()) + of
			mean, deviation := c.cell(i, j)
			g(&c.table, i, j, mean, deviation, e/math.Sqrt(own[j]+alone+level))
		}
	})
}

// level returns the variance of the level of row i, of which w is u_i·v_j.
func (m *Model) level(i int, w []float64) float64 {
	weight, observed, all := 0.0, 0.0, 0.0
	for j, r := range m.Rho {
		if m.Stage.sees(i, j) {
			weight += r
			observed += float64(r * w[j])
		}
		all += w[j] / float64(m.N)
	}
	if weight == 0 {
		return 0
	}
	off := observed/weight - all
	return 1/float64(m.Tau[i]*weight) + float64(off*off)
}
