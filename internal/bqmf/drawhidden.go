package bqmf

// This file holds the draws (draw.go) of cells that are hidden. Where row i has a second stage (staged.go)
// its cell is told by other cells of the sample, as far as these are observed. Those that are hidden as well
// are uncertain themselves, and what they are off by goes on to cell i, weight by weight:
//
//	e_ij = Keep u_i·δv_j + Shrink (δu_i·v_j + l_i) + √a'_ij ε_ij + Σ_l Weights_l e_lj,
//
// l over the hidden cells of sample j, and Keep and Shrink 1 for a row without a stage. a' is what is left of
// Shrink² (u_iᵀC_j u_i + a_ij). Rows that are missing together, as those of an assay, so are off together.
//
// This is solved by hiddenPasses passes from Σ = 0. The variance of e_ij then follows from no formula that
// costs less than drawing it, and is that of hiddenReplicas more draws. e_ij over its root has Student's t
// distribution, and is taken to the normal one.
//
// Cost of a hidden cell: 33 normal numbers, 66k flops and 530 for each hidden cell that tells of it. Memory:
// 9 numbers for each hidden cell.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
)

const (
	hiddenReplicas = 32
	hiddenPasses   = 8
	hiddenLanes    = 1 + hiddenReplicas // the draw, and the replicas
	leastAlone     = 0.1                // of the noise of a row with a stage, that its cells have alone
)

// hiddenCell is a cell that was not observed: where it is, the distribution of its value on the scale of its
// row, and the variances of the parts of e.
type hiddenCell struct {
	i, j                   int32
	mean, deviation        float64
	byColumn, byRow, alone float64 // of u_i·δv_j; of δu_i·v_j and the level; of all else
	z                      float64
}

// together is the room of a worker for the hidden cells of a sample.
type together struct {
	at         []int32   // of each row its place among them, -1 where the row is observed
	v          []float64 // v_j
	offV       []float64 // δv_j of each lane
	r, e, next []float64 // of each cell its lanes: e without the sum, e, and that of the next pass
}

// columns draws z of the hidden cells.
func (d *drawing) columns() {
	m := d.m
	columns := make([][]*hiddenCell, m.N)
	for i := range d.hidden {
		for h := range d.hidden[i] {
			c := &d.hidden[i][h]
			columns[c.j] = append(columns[c.j], c)
		}
	}
	rooms := make([]*together, d.pool.Workers())
	d.pool.Do(m.N, func(w, j int) {
		if len(columns[j]) == 0 {
			return
		}
		if rooms[w] == nil {
			rooms[w] = &together{at: slices.Repeat([]int32{-1}, m.D), v: make([]float64, m.K),
				offV: make([]float64, hiddenLanes*m.K)}
		}
		d.column(rooms[w], d.room(w), columns[j], j)
	})
}

// column draws z of the hidden cells of sample j.
func (d *drawing) column(s *together, w *drawer, cells []*hiddenCell, j int) {
	m, np := d.m, kernel.Pad(d.m.N)
	for _, line := range []*[]float64{&s.r, &s.e, &s.next} {
		*line = slices.Grow((*line)[:0], len(cells)*hiddenLanes)[:len(cells)*hiddenLanes]
	}
	from := d.stream(4, j)
	m.column(s.v, j)
	w.load(m.packV(j), s.v)
	for c := range m.K {
		s.offV[c] = d.offV[c*np+j]
	}
	for lane := 1; lane < hiddenLanes; lane++ {
		copy(s.offV[lane*m.K:], w.draw(&from))
	}
	for h, c := range cells {
		s.at[c.i] = int32(h)
		d.begin(s.r[h*hiddenLanes:(h+1)*hiddenLanes], s, c, &from)
	}
	copy(s.e, s.r)
	if m.Stage != nil {
		for range hiddenPasses {
			s.pass(m.Stage, cells)
		}
	}
	for h, c := range cells {
		lanes := s.e[h*hiddenLanes : (h+1)*hiddenLanes]
		variance := 0.0
		for _, t := range lanes[1:] {
			variance += float64(t * t)
		}
		c.z = normalOf(lanes[0]/math.Sqrt(variance/hiddenReplicas), hiddenReplicas)
		s.at[c.i] = -1
	}
}

// begin fills the lanes of a cell with e but for the sum.
func (d *drawing) begin(lanes []float64, s *together, c *hiddenCell, from *random.Source) {
	m, i := d.m, int(c.i)
	row := StageRow{Keep: 1, Shrink: 1}
	alone := c.alone
	if m.Stage != nil && m.Stage.part[i] != nil {
		row = m.Stage.Rows[i]
		kept, shrunk := squareOf(row.Keep), squareOf(row.Shrink)
		alone = max(float64(shrunk*(c.byColumn+c.alone))-float64(kept*c.byColumn), leastAlone*shrunk*c.alone)
	}
	u, offU := m.rowU(i), d.offU[i*m.K:(i+1)*m.K]
	byRow := d.levels[i]
	for k, t := range offU {
		byRow += float64(t * s.v[k])
	}
	lanes[0] = float64(row.Shrink*byRow) + float64(math.Sqrt(alone)*normal(from))
	rest := math.Sqrt(float64(row.Shrink*row.Shrink*c.byRow) + alone)
	for lane := 1; lane < hiddenLanes; lane++ {
		lanes[lane] = float64(rest * normal(from))
	}
	for lane := range lanes {
		lanes[lane] += float64(row.Keep * dot(u, s.offV[lane*m.K:]))
	}
}

// pass makes e once more of e.
func (s *together) pass(stage *Stage, cells []*hiddenCell) {
	copy(s.next, s.r)
	for h, c := range cells {
		row, to := &stage.Rows[c.i], s.next[h*hiddenLanes:(h+1)*hiddenLanes]
		for g, l := range row.Of {
			at := int(s.at[l])
			if at < 0 {
				continue
			}
			for lane, t := range s.e[at*hiddenLanes : (at+1)*hiddenLanes] {
				to[lane] += float64(row.Weights[g] * t)
			}
		}
	}
	s.e, s.next = s.next, s.e
}

// normalOf takes a value of Student's t distribution of so many degrees of freedom to the value of the normal
// distribution at the same probability (Wallace 1959), to 1e-3.
func normalOf(t, freedom float64) float64 {
	scale := (float64(8*freedom) + 1) / (float64(8*freedom) + 3)
	z := float64(math.Sqrt(float64(freedom*elem.Log(1+float64(t*t)/freedom))) * scale)
	if t < 0 {
		return -z
	}
	return z
}
