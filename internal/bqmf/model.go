package bqmf

// This file holds what a model says of the cells that it was fitted to, and of new samples.

import (
	"math"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// Model is a posterior and the map of each row.
type Model struct {
	*Posterior
	Curves []Curve
}

// Dims returns the sizes of the matrix that was fitted, 0 for the zero value.
func (m *Model) Dims() (d, n int) {
	if m.Posterior == nil {
		return 0, 0
	}
	return m.D, m.N
}

// Conditional returns the conditional mean of every cell.
func (m *Model) Conditional(p *pool.Pool) fit.Dense {
	out := fit.NewDense(m.Dims())
	m.Each(p, false, func(t *Table, i, j int, mean, dev float64) { out.Row(i)[j] = t.Conditional(mean, dev) })
	return out
}

// Each calls g for every cell, with the table of its row and the normal distribution of the cell on the scale
// of the row: that of a constant row, whose table has one value, is at 0. With mass the table has the masses
// of values that come more than once.
func (m *Model) Each(p *pool.Pool, mass bool, g func(t *Table, i, j int, mean, deviation float64)) {
	m.eachRow(p, mass, func(c *rowCells, i int) {
		for j := range m.N {
			mean, deviation := c.cell(i, j)
			g(&c.table, i, j, mean, deviation)
		}
	})
}

// rowCells is what a model says of the cells of a row, in the room of a worker.
type rowCells struct {
	worker     int
	cells      *reader
	r          int // the row among those of the last load
	table      Table
	deviations []float64 // nil for a constant row
	room       []float64
}

// eachRow calls g for every row.
func (m *Model) eachRow(p *pool.Pool, mass bool, g func(c *rowCells, i int)) {
	d := len(m.Curves)
	if d == 0 { // the zero value
		return
	}
	work := make([]*rowCells, p.Workers())
	base := m.reader(p, nil)
	p.Do((d+RowsPerPass-1)/RowsPerPass, func(w, piece int) {
		if work[w] == nil {
			work[w] = &rowCells{worker: w, cells: base.share(), room: make([]float64, m.N)}
		}
		c := work[w]
		from := piece * RowsPerPass
		rows := min(RowsPerPass, d-from)
		c.cells.load(from, rows)
		for c.r = range rows {
			i := from + c.r
			c.table.Load(&m.Curves[i], mass)
			c.deviations = nil
			if len(m.Curves[i].X) > 1 {
				c.deviations = c.room
				m.deviations(c.deviations, c.cells.cells.variance[c.r*c.cells.np:], i)
			}
			g(c, i)
		}
	})
}

// cell returns the mean and the deviation of a cell of row i, zeros for a constant row.
func (c *rowCells) cell(i, j int) (mean, deviation float64) {
	if c.deviations == nil {
		return 0, 0
	}
	return c.cells.mean(c.r, i, j), c.deviations[j]
}

// Sample is a new sample, and the room of a worker for it: Place finds its coordinates, and Cells follows.
type Sample struct {
	m      *Model
	tables []Table // of all rows, for Cells
	placer *Placer
	finder *Finder // made by Cells, where rows are predicted by samples that are alike

	v   []float64 // the coordinates
	rho float64
	// on the scales of the rows: x_i; the mean by the factors; and A (stage.go)
	y, w, filled []float64
}

// Sample returns a place for new samples, for one worker; with cells also for Cells, whose tables have the
// masses of values that come more than once where mass is true.
func (m *Model) Sample(cells, mass bool) *Sample {
	s := &Sample{m: m, placer: m.Placer()}
	if cells {
		s.tables = make([]Table, m.D)
		for i := range s.tables {
			s.tables[i].Load(&m.Curves[i], mass)
		}
	}
	return s
}

// Share returns another for another worker.
func (s *Sample) Share() *Sample {
	line := func() []float64 { return make([]float64, s.m.D) }
	return &Sample{m: s.m, tables: s.tables, placer: s.placer.Share(), y: line(), w: line(), filled: line()}
}

// Place returns the coordinates of the sample x, NaN where it is not observed.
func (s *Sample) Place(x []float64) (v []float64) {
	for i, t := range x {
		s.y[i] = t
		if t == t {
			s.y[i] = s.m.Curves[i].forward(t)
		}
	}
	s.v, s.rho = s.placer.Place(s.y)
	return s.v
}

// Place gives samples of the fit that took no part in it what the model says of new ones; column fills x with
// the h-th of them.
func (m *Model) Place(samples []int, column func(x []float64, h int), workers *pool.Pool) {
	s, x, np := m.Sample(false, false).Share(), make([]float64, m.D), kernel.Pad(m.N)
	for h, j := range samples {
		column(x, h)
		for c, t := range s.Place(x) {
			m.V[c*np+j] = t
		}
		copy(m.packV(j), s.placer.back)
		m.Rho[j] = s.rho
		s.means()
		for i := 0; i < m.D && m.Stage != nil; i++ {
			if x[i] == x[i] {
				m.Stage.see(i, j)
			}
			if m.Stage.part[i] != nil {
				m.Stage.part[i][j], _ = m.Stage.predict(i, 0, s.filled, s.y)
			}
		}
	}
	m.Alike = m.Posterior.placed(m.Alike, workers)
}

// Cells calls g for every row with its table and the normal distribution of the cell of the sample that Place
// took, on the scale of the row: that of a constant row is at 0. An observed cell is in the coordinates, and
// not in the corrections of its own mean.
func (s *Sample) Cells(g func(t *Table, i int, mean, deviation float64)) {
	m := s.m
	s.means()
	for i, tau := range m.Tau {
		if !(tau > 0) {
			g(&s.tables[i], i, 0, 0)
			continue
		}
		mean, shrink := m.Stage.predict(i, s.w[i], s.filled, s.y)
		g(&s.tables[i], i, mean, m.deviation(i, s.placer.spread(i), s.rho, shrink))
	}
}

// means fills w and filled for the sample that Place took.
func (s *Sample) means() {
	m := s.m
	var alike []float64
	if m.Alike != nil {
		if s.finder == nil {
			s.finder = m.Alike.Finder()
		}
		alike = s.finder.Find(s.v, -1)
	}
	for i, y := range s.y {
		s.w[i], s.filled[i] = dot(m.rowU(i), s.v), y
		if m.Alike.predicts(i) {
			s.w[i] += s.finder.residualPrediction(i, alike) / math.Sqrt(m.Tau[i]*s.rho)
		}
		if y != y {
			s.filled[i] = s.w[i]
		}
	}
}
