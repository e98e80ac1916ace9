package quantmf

// This file holds which cells of a matrix a fit may look at: all, those that were
// observed, or those of them that are not held out for validation.

import (
	"math"

	"github.com/quantmf/quantmf/internal/random"
)

// cells is what a fit may look at: x with NaN where a cell is missing or held
// out, the number of visible cells in all, and the cells held out for validation.
type cells struct {
	x       Mat  // a copy where cells are hidden, else the caller's
	full    Mat  // the caller's
	missing bool // NaN cells of full are unobserved
	partial bool // some are hidden
	visible int
	rows    []int  // visible cells of each row
	held    []bool // d × n, nil where nothing is held out
	heldOut int
	units   // those of x and full, which are not the caller's then
}

// newCells hides the validation share of the observed cells, chosen by seed. A
// row or column keeps at least two visible cells, or what it has.
func newCells(x Mat, c *settings) (*cells, error) {
	d, n := x.Rows, x.Cols
	s := &cells{x: x, full: x, missing: c.missing, rows: make([]int, d)}
	cols := make([]int, n)
	for i := range d {
		for j, v := range x.Row(i) {
			if v == v {
				s.rows[i]++
				cols[j]++
				s.visible++
			}
		}
	}
	s.partial = s.visible < d*n
	for i, k := range s.rows {
		if k == 0 {
			return nil, &DataError{Row: i, Col: -1, Value: math.NaN(), Problem: "the row has no observed cell"}
		}
	}
	for j, k := range cols {
		if k == 0 {
			return nil, &DataError{Row: -1, Col: j, Value: math.NaN(), Problem: "the column has no observed cell"}
		}
	}
	if c.validation == 0 {
		return s, nil
	}
	s.partial, s.x, s.held = true, x.Clone(), make([]bool, d*n)
	src := random.Split(c.seed, 2)
	for i := range d {
		row := s.x.Row(i)
		for j, v := range row {
			if v == v && src.Float64() < c.validation && s.rows[i] > 2 && cols[j] > 2 {
				row[j] = math.NaN()
				s.held[i*n+j] = true
				s.rows[i]--
				cols[j]--
				s.visible--
				s.heldOut++
			}
		}
	}
	if s.heldOut == 0 {
		return nil, &OptionError{Option: kValidation.String(), Value: ftoa(c.validation), Bound: "holds out no cell of this matrix; it is too small"}
	}
	return s, nil
}

// load copies row i into x, with 0 where it is hidden, and fills observed; it
// returns nil for observed where all cells are visible.
func (s *cells) load(x []float64, observed []bool, i int) []bool {
	copy(x, s.x.Row(i))
	if !s.partial {
		return nil
	}
	for j, v := range x[:s.x.Cols] {
		observed[j] = v == v
		if v != v {
			x[j] = 0
		}
	}
	return observed[:s.x.Cols]
}

// heldLoss returns the sum of divergences of t from the held-out cells of row i.
func (s *cells) heldLoss(l Loss, t []float64, i int, low float64) float64 {
	if s.held == nil {
		return 0
	}
	sum := 0.0
	row := s.full.Row(i)
	for j, h := range s.held[i*s.full.Cols : (i+1)*s.full.Cols] {
		if h {
			sum += l.value(row[j], t[j], low)
		}
	}
	return sum
}
