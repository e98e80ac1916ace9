package quantmf

// This file holds the cells of a matrix as a fit sees them. A cell is observed, or missing (NaN).
// Some observed cells may be held out for validation; the others are visible. A cell that is not
// visible is hidden: a fit does not read it.
//
// A fit works on x', which is x in units of its own (internal/fit); the rows here are rows of x'.
// They are read from x whenever they are needed. Of the size of x a fit keeps only a bit for each cell
// where some are held out, and a copy of x where x is a Mat and x' is not x.

import (
	"context"
	"github.com/quantmf/quantmf/internal/fit"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/monotone"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/random"
)

// cells are the rows of x', with the cells that are hidden and the numbers of visible ones.
type cells struct {
	sizes
	source    Rows
	mat       Mat        // x' where source is a Mat, a copy where x' is not x; else empty
	into      *fit.Units // brings rows of source to x'; nil: they are rows of x'
	fault     *readFault // the first
	missing   bool       // NaN cells are unobserved
	partial   bool       // some cells are hidden: they are unobserved or held out
	visible   int        // the number of visible cells
	rows      []int      // the number of visible cells of each row
	held      []uint64   // for each row a bit a cell, 1 where it is held out; nil where none is
	heldOut   int        // the number of held-out cells
	fit.Units            // of x'
	extremes  []extremes // of each row, in the units of source
}

// sizes are d and n. They are a type of their own so that, in a struct that embeds both cells and
// factors, d and n are those of the factors.
type sizes struct{ d, n int }

// extremes are the least and the largest value of the observed cells of a row, and the least of
// the visible ones.
type extremes struct{ least, most, visible float64 }

// readFault is the first error of reading rows. Loops over rows go on after it with rows of 0; the
// context that withFault returns ends, and so the fit does.
type readFault struct {
	err atomic.Pointer[ReadError]
}

// withFault returns ctx, ended where there is a fault.
func (t *readFault) withFault(ctx context.Context) context.Context { return faulted{ctx, t} }

func (t *readFault) get() error {
	if e := t.err.Load(); e != nil {
		return e
	}
	return nil
}

type faulted struct {
	context.Context
	*readFault
}

func (t faulted) Err() error {
	if err := t.get(); err != nil {
		return err
	}
	return t.Context.Err()
}

// newCells hides the validation share of the observed cells, chosen by seed. A
// row or column keeps at least two visible cells, or what it has.
func newCells(x Rows, c *settings) (*cells, error) { return newCellsOf(x, c, nil) }

// newCellsOf is newCells where survey has returned each.
func newCellsOf(x Rows, c *settings, each []extremes) (*cells, error) {
	d, n := x.Dims()
	known := each != nil
	if !known {
		each = make([]extremes, d)
	}
	s := &cells{sizes: sizes{d, n}, source: x, fault: new(readFault), missing: c.missing,
		rows: make([]int, d), extremes: each}
	s.mat, _ = x.(Mat)
	from := newRowReader(x)
	cols, whole := make([]int, n), 0 // visible cells of columns in rows with missing cells; rows without
	for i := range d {
		ok := known && each[i].visible == each[i].visible
		var row []float64
		if !ok {
			var err error
			if row, err = from.row(i); err != nil {
				return nil, err
			}
			if each[i].least, each[i].most, ok = reach(row); ok {
				each[i].visible = each[i].least
			}
		}
		if ok {
			s.rows[i] = n
			s.visible += n
			whole++
			continue
		}
		e := extremes{least: math.Inf(1), most: math.Inf(-1)}
		for j, v := range row {
			if v < e.least { // not NaN
				e.least = v
			}
			if v > e.most {
				e.most = v
			}
			if v == v {
				s.rows[i]++
				cols[j]++
			}
		}
		e.visible = e.least
		s.extremes[i] = e
		s.visible += s.rows[i]
	}
	s.partial = s.visible < d*n
	for i, k := range s.rows {
		if k == 0 {
			return nil, &DataError{Row: i, Col: -1, Value: math.NaN(),
				Problem: "the row has no observed cell"}
		}
	}
	for j := range cols {
		if cols[j] += whole; cols[j] == 0 {
			return nil, &DataError{Row: -1, Col: j, Value: math.NaN(),
				Problem: "the column has no observed cell"}
		}
	}
	if c.validation == 0 {
		return s, nil
	}
	return s, s.holdOut(c, from, cols)
}

// holdOut hides the validation share of the observed cells, of which columns have the numbers cols.
func (s *cells) holdOut(c *settings, from *rowReader, cols []int) error {
	s.partial, s.held = true, make([]uint64, s.d*s.words())
	src := random.Split(c.seed, 2)
	for i := range s.d {
		row, err := from.row(i)
		if err != nil {
			return err
		}
		held, least := s.heldOf(i), math.Inf(1)
		for j, v := range row {
			if v == v && src.Float64() < c.validation && s.rows[i] > 2 && cols[j] > 2 {
				held[j/64] |= 1 << (j % 64)
				s.rows[i]--
				cols[j]--
				s.visible--
				s.heldOut++
			} else if v < least {
				least = v
			}
		}
		s.extremes[i].visible = least
	}
	if s.heldOut == 0 {
		return &OptionError{Option: option.Validation.String(), Value: ftoa(c.validation),
			Bound: "holds out no cell of this matrix; it is too small"}
	}
	return nil
}

// words is the number of words of held that a row has.
func (s *cells) words() int { return (s.n + 63) / 64 }

// heldOf returns the words of held of row i.
func (s *cells) heldOf(i int) []uint64 {
	if s.held == nil {
		return nil
	}
	return s.held[i*s.words() : (i+1)*s.words()]
}

// isHeld tells whether cell (i, j) is held out.
func (s *cells) isHeld(i, j int) bool {
	return s.held != nil && s.heldOf(i)[j/64]>>(j%64)&1 == 1
}

// observedRow returns row i of x' with its held-out cells, and NaN in cells that are not observed. The
// row is a view of x', or is written to room, n numbers; the caller must not write to it. A row that
// cannot be read is all 0, and the fault is noted.
func (s *cells) observedRow(room []float64, i int) []float64 {
	if s.mat.Rows > 0 {
		return s.mat.Row(i)
	}
	room = room[:s.n]
	s.fill(room, i)
	return room
}

// fill fills x, n numbers, with what observedRow returns.
func (s *cells) fill(x []float64, i int) {
	if s.mat.Rows > 0 {
		copy(x, s.mat.Row(i))
		return
	}
	if err := s.source.ReadRow(x, i); err != nil {
		s.fault.err.CompareAndSwap(nil, unread(i, err))
		clear(x)
	}
	if s.into != nil {
		s.into.Bring(x, i)
	}
}

// row is observedRow with NaN in every hidden cell.
func (s *cells) row(room []float64, i int) []float64 {
	if s.held == nil {
		return s.observedRow(room, i)
	}
	room = room[:s.n]
	s.fill(room, i)
	s.hide(room, i)
	return room
}

// nonZeros returns a function that returns the columns and the numbers that x lists of row i, as those of x'.
// It returns nil where x does not list them, a cell is hidden, or the zeros of x are not those of x'. The
// caller must not write to what the function returns: these are views of x, or of the given slices, which it
// overwrites from their start.
func (s *cells) nonZeros() func(i int, cols []uint32, values []float64) ([]uint32, []float64) {
	sparse, ok := s.source.(*Sparse)
	if !ok || s.partial || s.Signed {
		return nil
	}
	return func(i int, cols []uint32, values []float64) ([]uint32, []float64) {
		cols, listed := sparse.NonZeros(i, cols, values)
		if s.into != nil {
			listed = append(values[:0], listed...)
			s.into.Bring(listed, i)
		}
		return cols, listed
	}
}

// hide makes the held-out cells of row i NaN.
func (s *cells) hide(row []float64, i int) {
	for w, set := range s.heldOf(i) {
		for ; set != 0; set &= set - 1 {
			row[64*w+bits.TrailingZeros64(set)] = math.NaN()
		}
	}
}

// readRow fills x, n numbers, with row i of x', 0 in hidden cells, and fills observed. It returns
// observed, or nil where all cells of the matrix are visible.
func (s *cells) readRow(x []float64, observed []bool, i int) []bool {
	x = x[:s.n]
	s.fill(x, i)
	if !s.partial {
		return nil
	}
	observed = observed[:s.n]
	for j, v := range x {
		observed[j] = v == v
		if v != v {
			x[j] = 0
		}
	}
	for w, set := range s.heldOf(i) {
		for ; set != 0; set &= set - 1 {
			j := 64*w + bits.TrailingZeros64(set)
			x[j], observed[j] = 0, false
		}
	}
	return observed
}

// mark fills omega, n numbers, with 1 where a cell of row i is visible and 0 elsewhere.
func (s *cells) mark(omega []float64, i int) {
	for j, v := range s.row(omega, i) {
		omega[j] = 0
		if v == v {
			omega[j] = 1
		}
	}
}

// heldLoss returns the sum of divergences of t, the fitted row, from the held-out cells of row i; low
// is the floor of t. room has n numbers.
func (s *cells) heldLoss(l divergence.Loss, t []float64, i int, low float64, room []float64) float64 {
	if s.held == nil {
		return 0
	}
	sum := 0.0
	row := s.observedRow(room, i)
	for w, set := range s.heldOf(i) {
		for ; set != 0; set &= set - 1 {
			j := 64*w + bits.TrailingZeros64(set)
			sum += l.Value(row[j], t[j], low)
		}
	}
	return sum
}

// dense returns x', NaN where a cell is hidden: a view, or a copy.
func (s *cells) dense() Mat {
	if s.mat.Rows > 0 && s.held == nil {
		return s.mat
	}
	m := NewMat(s.d, s.n)
	for i := range s.d {
		copy(m.Row(i), s.row(m.Row(i), i))
	}
	return m
}

// checkFit returns the cells that a fit sees, or the error of its data.
func checkFit(x Rows, rank int, c *config) (*cells, error) {
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, n := x.Dims()
	if rank < 1 {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 1"}
	}
	if uint64(rank) > limit.Cells/uint64(d+n) {
		return nil, &OptionError{Option: "rank", Value: itoa(rank),
			Bound: "the factors of a " + sizeOf(d, n) + " matrix would need too much memory"}
	}
	each, err := c.survey(x)
	if err != nil {
		return nil, err
	}
	s, err := newCellsOf(x, &c.settings, each)
	if err != nil {
		return nil, err
	}
	if err := s.setUnits(c.mapped); err != nil {
		return nil, err
	}
	c.toFitUnits(&s.Units)
	if !c.given.Has(option.Init) {
		return s, nil
	}
	return s, c.checkInit(d, n, rank, s.Root())
}

// checkInit reports what is wrong with the initial factors of a d × n matrix, the unit of which is root².
// Only the largest entry of a factor has a lower bound: an NMF sets small entries to 0 (startFactors),
// and where there are maps they are raised (factors.raise).
func (c *config) checkInit(d, n, rank int, root float64) error {
	// The range of the largest entry of each factor, and the bound of the entries of UV.
	least, most, product := root*limit.LeastInit, root*limit.MostInit,
		min(limit.Value*root*root, limit.ProductInit)
	if c.mapped {
		most, product = elem.Exp(factorBound(c.squash, rank)), limit.ProductInit
		least = 1 / most
	}
	bound := float64(rank) // of the entries of UV, by the largest entries of U and V alone
	for _, f := range []struct {
		name       string
		m          Mat
		rows, cols int
	}{{"initial U", c.initU, d, rank}, {"initial V", c.initV, rank, n}} {
		if f.m.Rows != f.rows || f.m.Cols != f.cols {
			return &ShapeError{What: f.name, Got: f.m.size(), Want: itoa(f.rows) + "×" + itoa(f.cols)}
		}
		top, err := c.checkFactor(f.name, f.m, least, most)
		if err != nil {
			return err
		}
		bound *= top
	}
	if bound <= product {
		return nil
	}
	return c.checkProduct(product)
}

// checkFactor reports what is wrong with the entries of an initial factor. It returns a bound of them, which
// is +Inf where m is not one block of memory.
func (c *config) checkFactor(name string, m Mat, least, most float64) (bound float64, err error) {
	if err := m.check(name); err != nil {
		return 0, err
	}
	if all := m.Data; m.Stride == m.Cols && len(all) == m.Rows*m.Cols {
		if lowest, top, ok := reach(all); ok && lowest >= 0 && top <= most && (top == 0 || top >= least) {
			if c.mapped { // zeros alone are raised to 1
				top = max(top, 1)
			}
			return top, nil
		}
	}
	top := DataError{Problem: "the largest of " + name + " must be 0 or from " + ftoa(least) + " to " +
		ftoa(most)}
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			if v-v != 0 || v < 0 {
				return 0, &DataError{Row: i, Col: j, Value: v,
					Problem: name + " must be finite and not negative"}
			}
			if v > top.Value {
				top.Row, top.Col, top.Value = i, j, v
			}
		}
	}
	if top.Value != 0 && (top.Value < least || top.Value > most) {
		return 0, &top
	}
	return math.Inf(1), nil
}

// checkProduct reports initial factors whose product may have entries above most, by the largest entries of
// the columns of U and of the rows of V.
func (c *config) checkProduct(most float64) error {
	// raised returns what the fit raises small entries to, of count entries with the given sum.
	raised := func(sum, count float64) float64 {
		if !c.mapped {
			return 0
		}
		return monotone.LeastAtStart(sum / count)
	}
	sumU := 0.0
	for i := range c.initU.Rows {
		for _, v := range c.initU.Row(i) {
			sumU += v
		}
	}
	bound, lowU := 0.0, raised(sumU, float64(c.initU.Rows)*float64(c.initU.Cols))
	for l := range c.initU.Cols {
		topU, topV, sumV := lowU, 0.0, 0.0
		for i := range c.initU.Rows {
			topU = max(topU, c.initU.At(i, l))
		}
		for _, v := range c.initV.Row(l) {
			topV = max(topV, v)
			sumV += v
		}
		topV = max(topV, raised(sumV, float64(c.initV.Cols)))
		if bound += float64(topU * topV); !(bound <= most) {
			return &DataError{Row: -1, Col: l, Value: topU,
				Problem: "the product of the initial factors must be at most " +
					ftoa(most) + ": the largest of this column of U, by that of the row of V, is too much"}
		}
	}
	return nil
}

// checkCells reports the first value that a fit cannot have.
func (c *config) checkCells(x Rows) error {
	_, err := c.survey(x)
	return err
}

// survey is checkCells, and returns the extremes of every row. Of a row that it has read number by
// number, such as one with missing cells, visible is NaN and the others mean nothing.
func (c *config) survey(x Rows) ([]extremes, error) {
	top, from := 0.0, newRowReader(x)
	d, _ := x.Dims()
	each := make([]extremes, d)
	for i := range d {
		row, err := from.row(i)
		if err != nil {
			return nil, err
		}
		least, most, ok := c.takes(row)
		if each[i] = (extremes{least, most, least}); ok {
			top = max(top, most)
			continue
		}
		each[i].visible = math.NaN()
		for j, v := range row {
			if v >= 1/limit.Value && v <= limit.Value { // every fit takes it
				if v > top {
					top = v
				}
				continue
			}
			if err := c.checkCell(i, j, v); err != nil {
				return nil, err
			}
			if v = math.Abs(v); v > top { // not NaN
				top = v
			}
		}
	}
	for i := 0; i < d && c.loss < limit.LeastBeta; i++ {
		row, err := from.row(i)
		if err != nil {
			return nil, err
		}
		for j, v := range row {
			if v < top/limit.Ratio {
				return nil, &DataError{Row: i, Col: j, Value: v,
					Problem: "under this loss x must be within a factor of " +
						ftoa(limit.Ratio) + " of its largest value, " + ftoa(top)}
			}
		}
	}
	return each, nil
}

// reach returns the least and the largest number of a row. finite is true where the row has at least
// kernel.Lanes numbers and all are finite; otherwise the others mean nothing.
func reach(row []float64) (least, most float64, finite bool) {
	var size, block [2]float64
	if kernel.Spread(&size, row, 0); size[1]-size[1] != 0 || len(row) < kernel.Lanes {
		return 0, 0, false
	}
	kernel.Extent(&block, row[len(row)-kernel.Lanes:])
	least, most = block[0], block[1]
	if blocks := len(row) &^ (kernel.Lanes - 1); blocks < len(row) || blocks > kernel.Lanes {
		kernel.Extent(&block, row[:blocks])
		least, most = min(least, block[0]), max(most, block[1])
	}
	return least, most, true
}

// takes returns the least and the largest number of a row, and whether it is certain that checkCell has
// no error for any of them. It is a fast test: ok is false for some rows without an error too.
func (c *config) takes(row []float64) (least, most float64, ok bool) {
	least, most, ok = reach(row)
	ok = ok && most <= limit.Value && (least >= 1/limit.Value || least >= 0 && c.loss >= limit.LeastBeta)
	return least, most, ok
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

// brought returns m in the given units: m itself where they are its own, otherwise a copy.
func (m Mat) brought(u *fit.Units) Mat {
	if u.Plain() {
		return m
	}
	y := m.Clone()
	for i := range y.Rows {
		u.Bring(y.Row(i), i)
	}
	return y
}

// toFitUnits brings the options that are in the units of x to those of x'.
func (c *config) toFitUnits(u *fit.Units) {
	if u.All == 0 {
		return
	}
	unit := c.loss.Unit(u.All)
	if c.penalty > 0 { // by exponents: the unit of the loss itself may be 0 or infinite
		by := -float64(float64(c.loss) * float64(u.All))
		if !c.mapped { // the penalty of an NMF is linear in the factors, whose unit is the root of that of x
			by += float64(u.All / 2)
		}
		whole, frac := math.Modf(by)
		c.penalty = min(math.Ldexp(float64(c.penalty*elem.Exp(float64(frac*math.Ln2))), int(whole)),
			limit.Penalty)
	}
	if tell := c.progress; tell != nil {
		c.progress = func(p Progress) error {
			p.Loss *= unit
			return tell(p)
		}
	}
}

// setUnits chooses the units of the cells and brings the cells to them. mapped: the fit has maps, which may
// give every row a scale of its own, and where x is signed a shift. A row of it that is too small beside the
// largest is an error.
func (s *cells) setUnits(mapped bool) error {
	low, top := make([]float64, s.d), make([]float64, s.d)
	signed := false
	for i, e := range s.extremes {
		low[i] = e.visible
		signed = signed || low[i] < 0
	}
	for i, e := range s.extremes { // held-out cells too: none of them may overflow
		offset := 0.0
		if signed {
			offset = low[i]
		}
		top[i] = max(math.Abs(e.least-offset), math.Abs(e.most-offset))
	}
	most := slices.Max(top)
	for i, t := range top {
		if mapped && t > 0 && t < math.Ldexp(most, -divergence.Ordinary) {
			return &DataError{Row: i, Col: -1, Value: t,
				Problem: "the row is more than 2^100 smaller than row " +
					itoa(slices.Index(top, most)) + ", the largest: rescale the rows to similar sizes"}
		}
	}
	s.Units = fit.UnitsOf(most)
	if signed {
		s.Signed, s.Shift = true, low
	}
	if s.Plain() {
		return nil
	}
	if s.mat.Rows > 0 { // what is in memory is brought to x' once
		s.mat = s.mat.brought(&s.Units)
		return nil
	}
	s.into = &s.Units
	return nil
}

// factorBound returns the bound of |log u| and |log v| for the entries of factors.
func factorBound(s Squash, rank int) float64 {
	if s == SquashNone { // what is transported is UV itself
		return elem.Log(limit.Point/float64(rank)) / 2
	}
	return limit.LogFactor
}
