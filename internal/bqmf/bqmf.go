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
package bqmf

// Data is what is fitted: Y, d × Pad(n), 0 where a cell is hidden and in the padding, and the hidden cells.
type Data struct {
	D, N  int
	Of    int // rows of the whole matrix, for which Fit.Posterior has room; 0: no more than D
	Y     []float64
	Rows  []List // the hidden columns of every row
	Cols  []List // the hidden rows of every column
	Whole bool   // nothing is hidden
}

// List is the hidden places of a line, or its observed places where these are fewer.
type List struct {
	At       []uint32
	Observed bool // At has the observed places
	Count    int  // of observed places
}

// NewData lists what is hidden; observed tells of a cell.
func NewData(d, n int, y []float64, observed func(i, j int) bool) *Data {
	x := &Data{D: d, N: n, Y: y, Rows: make([]List, d), Cols: make([]List, n), Whole: true}
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
	if x.Whole {
		return x
	}
	for i := range x.Rows {
		x.Rows[i].Observed = 2*x.Rows[i].Count < n
	}
	for j := range x.Cols {
		x.Cols[j].Observed = 2*x.Cols[j].Count < d
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
