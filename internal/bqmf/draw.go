package bqmf

// This file holds joint draws of all cells. Cells of a row share what is not known of u_i, and cells of a
// sample what is not known of v_j: a mean over many hidden cells is less sure than independent draws would
// have it. With δu_i ~ N(0, S_i), δv_j ~ N(0, C_j) and ε standard normal,
//
//	e_ij = u_i·δv_j + δu_i·v_j + l_i + √a_ij ε_ij,
//	l_i = ε_i/√(τ_i R_i) + (Σ_j ρ_j u_i·v_j/R_i - Σ_j u_i·v_j/n) ε,  R_i = Σ_j ρ_j,
//
// ρ_j summed over the observed cells of the row. l_i is the level of the row: its scale has mean 0 over the
// observed cells, and is off by their noise, and by as much as u_i·v_j is higher at them than at all. Then
// come the noise and the product δu_i·δv_j, which goes along with no other cell:
//
//	a_ij = s_i² (Var u_i·v_j + 1/(τ_i ρ_j)) - u_iᵀC_j u_i - v_jᵀS_i v_j,  at least half of it for s_i = 1,
//
// s_i being how much wider the residuals of the row are than the model has them (Levels of curve.go).
//
// A cell is drawn at the normal quantile e_ij/√Var e_ij of its distribution, as posterior.go and curve.go
// have it, with corrections, tails and levels. So each cell by itself is drawn from the distribution that its
// quantiles are of, and together cells have the correlations of e. Where other rows tell of a row, hidden
// cells of a sample have an e of their own (drawhidden.go).
//
// Cost: that of Each, 4k flops a cell and k³/3 for each row and each sample.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// normal returns a standard normal number: the quantiles of the middles of 2^53 equal steps of probability.
func normal(s *random.Source) float64 { return elem.NormalQuantile(s.Float64() + 0x1p-54) }

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

// load takes the distribution N(0, b - mean meanᵀ), b being packed second moments.
func (w *drawer) load(b, mean []float64) {
	k, kp := w.k, kernel.Pad(w.k)
	unpack(w.a, b, k)
	for c := range k {
		variance := w.a[c*kp+c] - squareOf(mean[c])
		pivot, root := variance, 0.0
		for _, l := range w.a[c*kp : c*kp+c] {
			pivot -= float64(l * l)
		}
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
	}
}

// draw returns a draw of the distribution that was loaded.
func (w *drawer) draw(from *random.Source) []float64 {
	clear(w.to)
	for c := range w.k {
		by := normal(from)
		for r := c; r < w.k; r++ {
			w.to[r] += float64(w.a[r*kernel.Pad(w.k)+c] * by)
		}
	}
	return w.to
}

// drawing is a draw under way.
type drawing struct {
	m    *Model
	pool *pool.Pool
	seed uint64
	work []*drawer
	// by factors:
	offU, offV []float64 // δu, D × K, and δv, K × Pad(N)
	levels     []float64 // l_i of each row
	variances  []float64 // of l_i
	// by row: the hidden cells of each
	hidden [][]hiddenCell
}

// Draw calls g for every cell with what Each says of it, with mass, and with the normal quantile at which the
// cell is drawn.
func (m *Model) Draw(p *pool.Pool, seed uint64, g func(t *Table, i, j int, mean, deviation, z float64)) {
	if len(m.Curves) == 0 { // the zero value
		return
	}
	d := &drawing{m: m, pool: p, seed: seed, work: make([]*drawer, p.Workers()),
		offU: make([]float64, m.D*m.K), offV: make([]float64, m.K*kernel.Pad(m.N)),
		levels: make([]float64, m.D), variances: make([]float64, m.D), hidden: make([][]hiddenCell, m.D)}
	d.factors()
	m.eachRow(p, true, func(c *rowCells, i int) { d.row(c, i, g) })

	d.columns()
	p.Do(m.D, func(_, i int) {
		if len(d.hidden[i]) == 0 {
			return
		}
		var t Table
		t.Load(&m.Curves[i], true)
		for _, c := range d.hidden[i] {
			g(&t, i, int(c.j), c.mean, c.deviation, c.z)
		}
	})
}

// stream returns the random numbers of line l, of those of a kind from 0 to 7.
func (d *drawing) stream(kind, l int) random.Source { return random.Split(d.seed, 8*l+kind) }

func (d *drawing) room(worker int) *drawer {
	if d.work[worker] == nil {
		d.work[worker] = newDrawer(d.m.K, kernel.Pad(d.m.N))
	}
	return d.work[worker]
}

// factors draws δu, δv and the levels.
func (d *drawing) factors() {
	m, np := d.m, kernel.Pad(d.m.N)
	all := d.stream(0, 0)
	common := normal(&all)
	d.pool.Do(m.N, func(w, j int) {
		from, v := d.stream(1, j), make([]float64, m.K)
		m.column(v, j)
		d.room(w).load(m.packV(j), v)
		for c, t := range d.room(w).draw(&from) {
			d.offV[c*np+j] = t
		}
	})
	d.pool.Do(m.D, func(w, i int) {
		from, u := d.stream(2, i), m.rowU(i)
		r := d.room(w)
		r.load(m.packU(i), u)
		copy(d.offU[i*m.K:], r.draw(&from))
		kernel.Combine(r.byRow, u, m.V)
		noise, off := m.level(i, r.byRow)
		d.variances[i] = float64(noise*noise) + float64(off*off)
		d.levels[i] = float64(noise*normal(&from)) + float64(off*common)
	})
}

// row draws the observed cells of a row, and takes down the hidden ones.
func (d *drawing) row(c *rowCells, i int, g func(t *Table, i, j int, mean, deviation, z float64)) {
	m := d.m
	if c.deviations == nil {
		for j := range m.N {
			g(&c.table, i, j, 0, 0, 0)
		}
		return
	}
	w, from := d.room(c.worker), d.stream(3, i)
	kernel.Combine(w.byColumn, m.rowU(i), d.offV)
	kernel.Combine(w.byRow, d.offU[i*m.K:(i+1)*m.K], m.V)
	at := c.r * c.cells.np
	own, byRow, variance := c.cells.cells.own[at:], c.cells.cells.byRow[at:], c.cells.cells.variance[at:]
	real := (c.table.C.bend(1) - c.table.C.bend(-1)) / 2 // s_i
	for j := range m.N {
		alone := max(variance[j]-own[j], 0) + 1/m.precision(i, j)
		alone = max(float64(real*real*(own[j]+alone))-own[j], alone/2)
		mean, deviation := c.cell(i, j)
		if !m.Stage.sees(i, j) {
			d.hidden[i] = append(d.hidden[i], hiddenCell{i: int32(i), j: int32(j), mean: mean,
				deviation: deviation, byColumn: max(own[j]-byRow[j], 0), alone: alone,
				byRow: max(byRow[j], 0) + d.variances[i]})
			continue
		}
		e := w.byColumn[j] + w.byRow[j] + d.levels[i] + float64(math.Sqrt(alone)*normal(&from))
		g(&c.table, i, j, mean, deviation, e/math.Sqrt(own[j]+alone+d.variances[i]))
	}
}

// level returns the deviations of the two parts of the level of row i, of which w is u_i·v_j.
func (m *Model) level(i int, w []float64) (noise, off float64) {
	weight, observed, all := 0.0, 0.0, 0.0
	for j, r := range m.Rho {
		if m.Stage.sees(i, j) && !m.absent(j) {
			weight += r
			observed += float64(r * w[j])
		}
		all += w[j] / float64(m.N)
	}
	if weight == 0 || m.Tau[i] == 0 {
		return 0, 0
	}
	return 1 / math.Sqrt(m.Tau[i]*weight), observed/weight - all
}
