package quantmf

// This file holds which cells of a matrix a fit may look at: all, those that were
// observed, or those of them that are not held out for validation.
//
// # Units
//
// Sums of powers of x overflow or underflow where the unit of x is far from 1, so a fit
// works on
//
//	x'_ij = (x_ij - shift_i) 2^{-e_i},
//
// and converts its model to the units of x at the end. Multiplication by 2^{-e_i} is
// exact, and e_i is even, so that 2^{e_i/2} is exact, too. Where the largest |x| lies
// within 2^±100 and x is not negative, x' is x itself.
//
// # Scale
//
// Every e_i is the exponent e that brings the largest |x| to [1,4); the loss of x is
// then 2^{βe} times that of x'. An NMF has no other exponent. The maps of QMF and QMFQ
// are free to give every row a scale of its own, so a row that lies more than 2^100
// below the largest gets a smaller e_i, which brings it to 2^-100 of the largest, and
// its loss in x' is weighted by 2^{β(e_i-e)}.
//
// # Shift
//
// Under Frobenius those maps are free to give every row an offset, too. Where x has a
// negative value the shift of a row is its lowest visible value: x' is not negative,
// starts and floors are relative to the range of the row, and q_1 alone may be of either
// sign (maps.go).

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
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
	units   // of x and full, which are copies where the units are not the caller's
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
		return nil, &OptionError{Option: option.Validation.String(), Value: ftoa(c.validation), Bound: "holds out no cell of this matrix; it is too small"}
	}
	return s, nil
}

// readRow copies row i into x, with 0 in hidden cells, and fills observed. It returns
// observed, or nil where all cells of the matrix are visible.
func (s *cells) readRow(x []float64, observed []bool, i int) []bool {
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

// mark fills omega, n numbers, with 1 where a cell of row i is visible and 0 elsewhere.
func (s *cells) mark(omega []float64, i int) {
	for j, v := range s.x.Row(i) {
		omega[j] = 0
		if v == v {
			omega[j] = 1
		}
	}
}

// heldLoss returns the sum of divergences of t from the held-out cells of row i.
func (s *cells) heldLoss(l divergence.Loss, t []float64, i int, low float64) float64 {
	if s.held == nil {
		return 0
	}
	sum := 0.0
	row := s.full.Row(i)
	for j, h := range s.held[i*s.full.Cols : (i+1)*s.full.Cols] {
		if h {
			sum += l.Value(row[j], t[j], low)
		}
	}
	return sum
}

// checkFit returns the cells that a fit sees, or the error of its data.
func checkFit(x Mat, rank int, c *config) (*cells, error) {
	if err := x.check("x"); err != nil {
		return nil, err
	}
	if rank < 1 {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 1"}
	}
	if uint64(rank) > limit.Cells/uint64(x.Rows+x.Cols) {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "the factors of a " + x.size() + " matrix would need too much memory"}
	}
	if err := c.checkCells(x); err != nil {
		return nil, err
	}
	s, err := newCells(x, &c.settings)
	if err != nil {
		return nil, err
	}
	s.setUnits(c.loss, c.mapped)
	c.inward(&s.units)
	if !c.given.Has(option.Init) {
		return s, nil
	}
	least, most := c.initBounds(rank, s.root())
	for _, f := range []struct {
		name       string
		m          Mat
		rows, cols int
	}{{"initial U", c.initU, x.Rows, rank}, {"initial V", c.initV, rank, x.Cols}} {
		if f.m.Rows != f.rows || f.m.Cols != f.cols {
			return nil, &ShapeError{What: f.name, Got: f.m.size(), Want: itoa(f.rows) + "×" + itoa(f.cols)}
		}
		if err := f.m.check(f.name); err != nil {
			return nil, err
		}
		for i := range f.m.Rows {
			for j, v := range f.m.Row(i) {
				if v-v != 0 || v < 0 {
					return nil, &DataError{Row: i, Col: j, Value: v, Problem: f.name + " must be finite and not negative"}
				}
				if v != 0 && (v < least || v > most) {
					return nil, &DataError{Row: i, Col: j, Value: v, Problem: f.name + " must be 0 or from " + ftoa(least) + " to " + ftoa(most)}
				}
			}
		}
	}
	bound, most := 0.0, limit.Value // of U V, in the units of x, and for an NMF in those of x' too
	if !c.mapped {
		most *= min(s.root()*s.root(), 1)
	}
	for l := range rank {
		topU, topV := 0.0, 0.0
		for i := range x.Rows {
			topU = max(topU, c.initU.At(i, l))
		}
		for _, v := range c.initV.Row(l) {
			topV = max(topV, v)
		}
		if bound += float64(topU * topV); !(bound <= most) {
			return nil, &DataError{Row: -1, Col: l, Value: topU, Problem: "the product of the initial factors must be at most " + ftoa(most) + ": the largest of this column of U, by that of the row of V, is too much"}
		}
	}
	return s, nil
}

// initBounds returns the least and the largest entry other than 0 that initial factors may
// have, so that neither they nor sums over them overflow or underflow.
func (c *config) initBounds(rank int, root float64) (least, most float64) {
	if c.mapped {
		most = elem.Exp(factorBound(c.squash, rank))
		return 1 / most, most
	}
	return root * limit.LeastInit, root * limit.MostInit
}

// checkCells reports the first value that a fit cannot have.
func (c *config) checkCells(x Mat) error {
	top := 0.0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v >= 1/limit.Value && v <= limit.Value { // which every fit takes
				if v > top {
					top = v
				}
				continue
			}
			if err := c.checkCell(i, j, v); err != nil {
				return err
			}
			if v = math.Abs(v); v > top { // not NaN
				top = v
			}
		}
	}
	for i := 0; i < x.Rows && c.loss < limit.LeastBeta; i++ {
		for j, v := range x.Row(i) {
			if v < top/limit.Ratio {
				return &DataError{Row: i, Col: j, Value: v, Problem: "under this loss x must be within a factor of " + ftoa(limit.Ratio) + " of its largest value, " + ftoa(top)}
			}
		}
	}
	return nil
}

// checkCell reports a value that a fit cannot have at (i, j).
func (c *config) checkCell(i, j int, v float64) error {
	problem := ""
	switch {
	case v != v && !c.missing:
		problem = "x must be finite; WithMissingValues takes NaN as missing"
	case v-v != 0 && v == v:
		problem = "x must be finite"
	case v < 0 && !c.mapped:
		problem = "x must not be negative in an NMF; FitQMF and FitQMFQ take any finite x WithLoss(Frobenius)"
	case v < 0 && c.loss != divergence.Frobenius:
		problem = "x must not be negative under this loss; WithLoss(Frobenius) takes any finite x"
	case v == 0 && c.loss < limit.LeastBeta:
		problem = "x must be positive under this loss"
	case v < 1/limit.Value && c.loss < limit.LeastBeta:
		problem = "x must be at least " + ftoa(1/limit.Value) + " under this loss, lest sums overflow"
	case math.Abs(v) > limit.Value:
		problem = "x must be at most " + ftoa(limit.Value) + " in magnitude, lest sums overflow"
	default:
		return nil
	}
	return &DataError{Row: i, Col: j, Value: v, Problem: problem}
}

// units are the units of one matrix. shift is nil where all are 0, each and weight where all
// rows have the exponent all.
type units struct {
	signed bool      // rows are taken about their lowest value
	shift  []float64 // of each row
	all    int       // e
	each   []int     // e_i
	weight []float64 // 2^{β(e_i-e)}
}

// unitsOf returns the units for rows of the given largest values, without a shift.
func unitsOf(l divergence.Loss, top []float64, byRow bool) (u units) {
	whole := slices.Max(top)
	u.all = divergence.ExponentOf(whole)
	if !byRow {
		return u
	}
	_, floor := math.Frexp(math.Ldexp(whole, -u.all))
	floor = (floor-1)&^1 - divergence.Ordinary
	for i, t := range top {
		_, e := math.Frexp(math.Ldexp(t, -u.all))
		e = (e - 1) &^ 1
		if t == 0 || e >= floor {
			continue
		}
		if u.each == nil {
			u.each, u.weight = make([]int, len(top)), make([]float64, len(top))
			for h := range u.each {
				u.each[h], u.weight[h] = u.all, 1
			}
		}
		u.each[i] = u.all + e - floor
		u.weight[i] = l.Unit(e - floor)
	}
	return u
}

// plain tells whether x' is x.
func (u *units) plain() bool { return !u.signed && u.all == 0 && u.each == nil }

// exponent returns e_i, and offset the shift of row i.
func (u *units) exponent(i int) int {
	if u.each == nil {
		return u.all
	}
	return u.each[i]
}

func (u *units) offset(i int) float64 {
	if u.shift == nil {
		return 0
	}
	return u.shift[i]
}

// lossWeight returns the weight of the loss of row i of x' in that of the matrix.
func (u *units) lossWeight(i int) float64 {
	if u.weight == nil {
		return 1
	}
	return u.weight[i]
}

// inward returns x', a copy where it is not x itself.
func (u *units) inward(x Mat) Mat {
	if u.plain() {
		return x
	}
	y := NewMat(x.Rows, x.Cols)
	for i := range y.Rows {
		row, e, offset := y.Row(i), u.exponent(i), u.offset(i)
		for j, v := range x.Row(i) {
			row[j] = math.Ldexp(v-offset, -e)
		}
	}
	return y
}

// outward brings rows of values of x' to the units of x.
func (u *units) outward(m Mat) {
	if u.plain() {
		return
	}
	for i := range m.Rows {
		row, e, offset := m.Row(i), u.exponent(i), u.offset(i)
		for j, v := range row {
			row[j] = math.Ldexp(v, e) + offset
		}
	}
}

// root returns 2^{e/2}, the unit of the factors of an NMF.
func (u *units) root() float64 { return math.Ldexp(1, u.all/2) }

// inward brings the options that are in the units of x to those of x'.
func (c *config) inward(u *units) {
	if u.all == 0 {
		return
	}
	unit := c.loss.Unit(u.all)
	if c.penalty > 0 { // by exponents: the unit of the loss itself may be 0 or infinite
		by := -float64(float64(c.loss) * float64(u.all))
		if !c.mapped { // it grows with the factors
			by += float64(u.all / 2)
		}
		whole, frac := math.Modf(by)
		c.penalty = min(math.Ldexp(float64(c.penalty*elem.Exp(float64(frac*math.Ln2))), int(whole)), limit.Penalty)
	}
	if tell := c.progress; tell != nil {
		c.progress = func(p Progress) error {
			p.Loss *= unit
			return tell(p)
		}
	}
}

// losses brings losses of x' to those of x.
func (u *units) losses(l divergence.Loss, v []float64) {
	if u.all == 0 {
		return
	}
	unit := l.Unit(u.all)
	for i := range v {
		v[i] *= unit
	}
}

// pick returns the units of some of the rows.
func (u *units) pick(rows []int) units {
	p := units{signed: u.signed, all: u.all}
	for _, i := range rows {
		if u.shift != nil {
			p.shift = append(p.shift, u.shift[i])
		}
		if u.each != nil {
			p.each, p.weight = append(p.each, u.each[i]), append(p.weight, u.weight[i])
		}
	}
	return p
}

// setUnits chooses the units of the cells and brings the cells to them. mapped: the fit
// has maps, which may give every row a scale of its own, and where x is signed a shift.
func (s *cells) setUnits(l divergence.Loss, mapped bool) {
	low, top := make([]float64, s.x.Rows), make([]float64, s.x.Rows)
	signed := false
	for i := range low {
		least := math.Inf(1)
		for _, v := range s.x.Row(i) {
			if v < least { // not NaN
				least = v
			}
		}
		low[i] = least
		signed = signed || least < 0
	}
	for i := range top { // held-out cells too: none of them may overflow
		offset, most := 0.0, 0.0
		if signed {
			offset = low[i]
		}
		for _, v := range s.full.Row(i) {
			if v = math.Abs(v - offset); v > most {
				most = v
			}
		}
		top[i] = most
	}
	s.units = unitsOf(l, top, mapped)
	if signed {
		s.signed, s.shift = true, low
	}
	same := s.held == nil
	s.x = s.units.inward(s.x)
	if s.full = s.units.inward(s.full); same {
		s.full = s.x
	}
}

// factorBound returns the bound of the logarithms of factors.
func factorBound(s Squash, rank int) float64 {
	if s == SquashNone { // what is transported is UV itself
		return elem.Log(limit.Point/float64(rank)) / 2
	}
	return limit.LogFactor
}
