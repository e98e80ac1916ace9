// Package bqmf has the mathematics of Bayesian quantile matrix factorisation. It takes rows on scales of
// their own and knows nothing of options, units of losses or errors.
//
//	curve.go     g_i, which takes row i of x to its scale, and T_i, which takes what the model says back
//	fit.go       variational Bayes of UV on these scales: the equations of an epoch
//	goon.go      a start from what another fit has learnt of the rows
//	posterior.go what a posterior says of each cell; placing new columns
//	draw.go      joint draws of all cells; drawhidden.go those of hidden ones
//	leaveout.go  what it says of an observed cell had the cell not been observed
//	alike.go     correction by residuals of the same row at samples that are alike
//	stage.go     the second stage: regression of each row on others, how it is made; staged.go what it says
//	metric.go    its radial regressors: in which rows samples must be near each other
//	together.go  what hidden cells lose by being hidden together
//	tails.go     how g_i goes on beyond the values of its row
//	discrete.go  rows that take single values only: 0 and 1, ratings, counts
//	loadings.go  components turned to simple structure
//	learn.go     the maps T_i, learnt from leave-one-out predictions
//	missing.go   whether cells are missing because of their values
//	update.go    what new samples say of the rows, without those of the fit
//	file.go      posteriors and curves as numbers
//
// The model is
//
//	Y_ij ~ N(u_i·v_j, 1/(τ_i ρ_j)),   v_j ~ N(0, I),   u_i ~ N(0, diag(1/α)),
//
// with a factorised posterior N(u_i, S_i), N(v_j, C_j) over the cells of Y that are observed. A cell that is
// not, because it is missing or held out, is hidden.
//
// Where samples have weights a_j, each counts as a_j equal ones: sums over samples, of cells or of what v_j
// and C_j are in, have a factor a_j each, and v_j itself is what it is without. Where cells have weights
// w_ij, each counts as w_ij equal observations, and sums over cells have a factor w_ij. So a cell of weight 0
// is hidden, and a sample of weight 0 is not there.
package bqmf

import (
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
)

// Data is what is fitted: Y, d × Pad(n), 0 where a cell is hidden and in the padding, and the hidden cells.
type Data struct {
	D, N  int
	Of    int // rows of the whole matrix, for which Fit.Posterior has room; 0: no more than D
	Y     []float64
	Rows  []List // the hidden columns of every row
	Cols  []List // the hidden rows of every column
	Whole bool   // nothing is hidden
	// By Weigh, nil where all are 1: how often each sample counts; the weight of each cell, D × Pad(N), 0
	// where it is hidden, and of each column, N × Pad(D)
	Times, Cells, Across []float64
	heavy                []float64 // Y by the weights of cells
}

// List is the hidden places of a line, or its observed places where these are fewer.
type List struct {
	At       []uint32
	Observed bool    // At has the observed places
	Count    int     // of observed places
	Weight   float64 // and their weights: of a column those of cells alone
}

// NewData lists what is hidden; observed tells of a cell.
func NewData(d, n int, y []float64, observed func(i, j int) bool) *Data {
	x := &Data{D: d, N: n, Y: y, Rows: make([]List, d), Cols: make([]List, n), Whole: true, heavy: y}
	for i := range d {
		for j := range n {
			if observed(i, j) {
				x.Rows[i].Count++
				x.Cols[j].Count++
			} else {
				x.Whole = false
			}
		}
	}
	for i := range x.Rows {
		x.Rows[i].Observed, x.Rows[i].Weight = 2*x.Rows[i].Count < n, float64(x.Rows[i].Count)
	}
	for j := range x.Cols {
		x.Cols[j].Observed, x.Cols[j].Weight = 2*x.Cols[j].Count < d, float64(x.Cols[j].Count)
	}
	if x.Whole {
		return x
	}
	for i := range d {
		for j := range n {
			is := observed(i, j)
			if r := &x.Rows[i]; r.Observed == is {
				r.At = append(r.At, uint32(j))
			}
			if c := &x.Cols[j]; c.Observed == is {
				c.At = append(c.At, uint32(i))
			}
		}
	}
	return x
}

// Weigh gives samples and cells weights, nil where all are 1. Where cells have weights, sums over what a line
// observes share nothing with those of other lines.
func (x *Data) Weigh(times, cells []float64) {
	np, dp := kernel.Pad(x.N), kernel.Pad(x.D)
	if x.Times, x.Cells = times, cells; cells != nil {
		x.heavy, x.Across = slices.Clone(x.Y), make([]float64, x.N*dp)
		kernel.Multiply(x.heavy, x.heavy, cells)
		for j := range x.Cols {
			x.Cols[j].all(x.D)
			x.Cols[j].Weight = 0
		}
	}
	for i := range x.Rows {
		if l := &x.Rows[i]; times != nil || cells != nil {
			l.Weight = 0
			l.Each(x.N, func(j int) { l.Weight += float64(x.Time(j) * x.Cell(i, j)) })
		}
		if cells != nil {
			x.Rows[i].all(x.N)
			for j, w := range cells[i*np : i*np+x.N] {
				x.Across[j*dp+i] = w
				x.Cols[j].Weight += w
			}
		}
	}
}

// all makes the list one of observed places.
func (l *List) all(n int) {
	at := make([]uint32, 0, l.Count)
	l.Each(n, func(j int) { at = append(at, uint32(j)) })
	l.At, l.Observed = at, true
}

// Time is how often sample j counts.
func (x *Data) Time(j int) float64 {
	if x.Times == nil {
		return 1
	}
	return x.Times[j]
}

// absent tells of each sample whether it counts 0 times; nil: none does.
func (x *Data) absent() (is []bool) {
	for j := range x.Times {
		if x.Times[j] == 0 {
			is = slices.Grow(is, x.N)[:x.N]
			is[j] = true
		}
	}
	return is
}

// Cell is the weight of an observed cell, that of its sample apart.
func (x *Data) Cell(i, j int) float64 {
	if x.Cells == nil {
		return 1
	}
	return x.Cells[i*kernel.Pad(x.N)+j]
}

// Weight is the sum of the weights of the observed cells.
func (x *Data) Weight() (sum float64) {
	for _, l := range x.Rows {
		sum += l.Weight
	}
	return sum
}

// Samples is how many samples count.
func (x *Data) Samples() (sum float64) {
	if x.Times == nil {
		return float64(x.N)
	}
	for j := range x.N {
		sum += x.Time(j)
	}
	return sum
}

// Observed returns the number of observed cells.
func (x *Data) Observed() int {
	sum := 0
	for _, l := range x.Rows {
		sum += l.Count
	}
	return sum
}

// Each calls g for the observed places of a line of n, in their order.
func (l *List) Each(n int, g func(j int)) {
	if l.Observed {
		for _, j := range l.At {
			g(int(j))
		}
		return
	}
	at := l.At
	for j := range n {
		if len(at) > 0 && int(at[0]) == j {
			at = at[1:]
			continue
		}
		g(j)
	}
}
