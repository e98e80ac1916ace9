package fit

// This file holds the reading of a matrix before a fit: one pass over its rows that checks every number,
// counts what is observed, chooses the cells that are held out, and finds the unit in which the matrix is
// fitted.

import (
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// Rules say which numbers a fit takes, and which cells are held out from it.
type Rules struct {
	Loss       divergence.Loss
	Missing    bool // NaN cells are unobserved
	Mapped     bool // the model has maps: under Frobenius they take numbers of either sign
	Validation float64
	Seed       uint64
	Hash       bool     // the numbers are wanted as a Hash
	Weights    *Weights // of the cells; nil: all are 1
}

// extent is the range of the observed cells of a row, and their number.
type extent struct {
	least, most float64
	observed    int
}

// measure checks the cells of row i, and returns their extent.
func (r *Rules) measure(row []float64, i int) (extent, error) {
	if least, most, finite := Reach(row); finite && r.between(least, most) {
		return extent{least, most, len(row)}, nil
	}
	e := extent{least: math.Inf(1), most: math.Inf(-1)}
	for j, v := range row {
		if !(v >= 1/limit.Value && v <= limit.Value) { // which every fit takes
			if err := r.Check(i, j, v); err != nil {
				return e, err
			}
			if v != v {
				continue
			}
		}
		e.observed++
		if v < e.least {
			e.least = v
		}
		if v > e.most {
			e.most = v
		}
	}
	return e, nil
}

// between tells whether it is certain that every number from least to most can be fitted.
func (r *Rules) between(least, most float64) bool {
	switch {
	case !(most <= limit.Value):
		return false
	case least >= 1/limit.Value || least >= 0 && r.Loss >= limit.LeastBeta:
		return true
	}
	return r.Mapped && r.Loss == divergence.Frobenius && least >= -limit.Value
}

// Check reports a value that a fit cannot have at (i, j).
func (r *Rules) Check(i, j int, v float64) error {
	problem := ""
	switch {
	case v != v && !r.Missing:
		problem = "x must be finite; WithMissingValues takes NaN as missing"
	case v-v != 0 && v == v:
		problem = "x must be finite"
	case v < 0 && !r.Mapped:
		problem = "x must not be negative in an NMF; FitQMF and FitQMFQ take any finite x WithLoss(Frobenius)"
	case v < 0 && r.Loss != divergence.Frobenius:
		problem = "x must not be negative under this loss; WithLoss(Frobenius) takes any finite x"
	case v == 0 && r.Loss < limit.LeastBeta:
		problem = "x must be positive under this loss"
	case v < 1/limit.Value && r.Loss < limit.LeastBeta:
		problem = "x must be at least " + ftoa(1/limit.Value) + " under this loss, lest sums overflow"
	case math.Abs(v) > limit.Value:
		problem = "x must be at most " + ftoa(limit.Value) + " in magnitude, lest sums overflow"
	default:
		return nil
	}
	return &DataError{Row: i, Col: j, Value: v, Problem: problem}
}

// CheckAll reports the first number of x that a fit cannot have.
func (r Rules) CheckAll(x Source) error {
	r.Validation, r.Hash = 0, false
	if r.Weights != nil {
		x = r.weighted(x)
	}
	t := newReading(x, r)
	if err := t.rowsOf(); err != nil {
		return err
	}
	return t.ratios()
}

// CheckSamples reports what is wrong with new samples of a model, of which each needs an observed cell. It
// returns their rows, which are checked again when they are read again.
func (r Rules) CheckSamples(x Source) (Rows, error) {
	r.Validation, r.Hash = 0, false
	t := newReading(x, r)
	if err := t.rowsOf(); err != nil {
		return nil, err
	}
	if j := slices.Index(t.cols, 0); j >= 0 && t.whole == 0 {
		return nil, &DataError{Row: -1, Col: j, Value: math.NaN(), Problem: "the column has no observed cell"}
	}
	t.checkAgain(x)
	return again{t.Cells}, nil
}

// again are rows that were read before.
type again struct{ of *Cells }

func (a again) Dims() (rows, cols int)           { return a.of.D, a.of.N }
func (a again) ReadRow(x []float64, i int) error { return a.of.readAgain(x, i) }

// checkAgain makes rows that may change be checked again whenever they are read.
func (t *reading) checkAgain(x Source) {
	if x.Rows != nil && !x.InMemory {
		rules := t.rules
		rules.Missing = rules.Missing || rules.Weights != nil
		t.checks = &rules
	}
}

// Reach returns the least and the largest number of a row. finite is true where the row has at least
// kernel.Lanes numbers and all are finite; otherwise the others mean nothing.
func Reach(row []float64) (least, most float64, finite bool) {
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

// reading is a matrix while it is read.
type reading struct {
	*Cells
	rules Rules
	cols  []int // observed cells of each column, but for rows without missing cells
	whole int   // the number of these rows
	draws random.Source
}

// Read reads x, which has rows and columns, and returns its cells. Which of them are held out is chosen by
// the seed: the validation share of the observed ones, but a row or column keeps at least two visible cells,
// or what it has.
func Read(x Source, rules Rules) (*Cells, error) {
	if rules.Weights != nil {
		x = rules.weighted(x)
	}
	t := newReading(x, rules)
	if rules.Validation > 0 {
		t.Partial, t.Held, t.lowest = true, make([]uint64, t.D*t.words()), make([]float64, t.D)
	}
	if rules.Hash {
		t.Fingerprint = NewHash(t.D, t.N)
	}
	if err := t.rowsOf(); err != nil {
		return nil, err
	}
	t.checkAgain(x)
	if err := t.ratios(); err != nil {
		return nil, err
	}
	if err := t.end(); err != nil {
		return nil, err
	}
	if rules.Weights == nil {
		return t.Cells, nil
	}
	t.Partial = true
	return t.Cells, t.weightsOf(rules)
}

// About is what memory depends on in a matrix beside its sizes. Of a matrix of which only these are known it
// is the zero About, which stands for what takes most, but for a copy in another unit.
type About struct {
	Visible float64 // the least share of the cells of some rows that is observed, where some may be missing
	Listed  float64 // of a Sparse the share of cells that is listed; 0: it may be none
	Nonzero float64 // the share of cells that is not 0; 0: all may be other values
	Full    bool    // in no group of rows most cells are 0, as internal/nmf looks at them
	Plain   bool    // no value is negative
	Rescale bool    // x' is in another unit than x
}

// NotRead returns the cells of a d × n matrix that is not read: they have its sizes and what else is known of
// it. A dry arena counts what the cells of such a matrix hold.
func NotRead(a *pool.Arena, d, n int, of About, rules Rules) *Cells {
	c := &Cells{D: d, N: n, Partial: rules.Missing || rules.Validation > 0, About: of}
	pool.Make[extent](a, d)
	pool.Make[int](a, d)
	if rules.Validation > 0 {
		pool.Make[uint64](a, d, c.words())
		a.Floats(d)
	}
	if c.weights = rules.Weights; c.weights != nil {
		c.Partial = true
		a.Floats(2, d)
		a.Floats(3, n)
	}
	return c
}

func newReading(x Source, rules Rules) *reading {
	c := NewCells(x)
	c.Missing, c.InRow, c.extents = rules.Missing, make([]int, c.D), make([]extent, c.D)
	return &reading{Cells: c, rules: rules, cols: make([]int, c.N), draws: random.Split(rules.Seed, 2)}
}

// rowsOf takes all rows.
func (t *reading) rowsOf() error {
	room := make([]float64, t.N)
	for i := range t.D {
		row := room
		if t.X.Rows > 0 {
			row = t.X.Row(i)
		} else if err := t.rows.ReadRow(row, i); err != nil {
			return readError(i, err)
		}
		if err := t.take(row, i); err != nil {
			return err
		}
	}
	return nil
}

// take takes row i.
func (t *reading) take(row []float64, i int) (err error) {
	rules, err := t.rules.observe(row, i)
	if err != nil {
		return err
	}
	e, err := rules.measure(row, i)
	if err != nil {
		return err
	}
	t.extents[i], t.InRow[i] = e, e.observed
	t.Visible += e.observed
	if e.observed == t.N {
		t.whole++
	} else {
		for j, v := range row {
			if v == v {
				t.cols[j]++
			}
		}
	}
	if t.Held != nil {
		t.draw(row, i)
	}
	if t.rules.Hash {
		t.Fingerprint.Put(row)
	}
	return nil
}

// draw draws the cells of row i that are held out if row and column have enough others, and the least of
// those that are not.
func (t *reading) draw(row []float64, i int) {
	held, least := t.heldOf(i), math.Inf(1)
	for j, v := range row {
		if v == v && t.draws.Float64() < t.rules.Validation {
			held[j/64] |= 1 << (j % 64)
		} else if v < least {
			least = v
		}
	}
	t.lowest[i] = least
}

// ratios reports a number that is too small beside the largest for a divergence of ratios.
func (t *reading) ratios() error {
	if t.rules.Loss >= limit.LeastBeta {
		return nil
	}
	top := 0.0
	for _, e := range t.extents {
		if e.observed > 0 {
			top = max(top, e.most) // nothing is negative
		}
	}
	least := top / limit.Ratio
	i := slices.IndexFunc(t.extents, func(e extent) bool { return e.least < least })
	if i < 0 {
		return nil
	}
	return t.first(i, func(v float64) bool { return v < least },
		"under this loss x must be within a factor of "+ftoa(limit.Ratio)+" of its largest value, "+ftoa(top))
}

// first returns the error of the first number of row i that is wrong.
func (c *Cells) first(i int, wrong func(v float64) bool, problem string) error {
	row := make([]float64, c.N)
	if err := c.rows.ReadRow(row, i); err != nil {
		return readError(i, err)
	}
	e := &DataError{Row: i, Col: slices.IndexFunc(row, wrong), Value: math.NaN(), Problem: problem}
	if e.Col >= 0 {
		e.Value = row[e.Col]
	}
	return e
}

// end counts what is visible, and gives cells that were drawn back to rows and columns that have too few.
func (t *reading) end() error {
	t.Partial = t.Partial || t.Visible < t.D*t.N
	for i, k := range t.InRow {
		if k == 0 {
			return &DataError{Row: i, Col: -1, Value: math.NaN(), Problem: "the row has no observed cell"}
		}
	}
	for j := range t.cols {
		if t.cols[j] += t.whole; t.cols[j] == 0 && !t.rules.Weights.leavesOut(j) {
			return &DataError{Row: -1, Col: j, Value: math.NaN(), Problem: "the column has no observed cell"}
		}
	}
	if t.Held == nil {
		return nil
	}
	for i := range t.D {
		if err := t.holdOut(i); err != nil {
			return err
		}
	}
	if t.HeldOut == 0 {
		return &OptionError{Option: option.Validation.String(), Value: ftoa(t.rules.Validation),
			Bound: "holds out no cell of this matrix; it is too small"}
	}
	return nil
}

// holdOut holds out the cells of row i that were drawn, one after the other while its row and its column have
// more than two visible ones.
func (t *reading) holdOut(i int) error {
	held, back := t.heldOf(i), false
	for w, set := range held {
		for ; set != 0; set &= set - 1 {
			j := 64*w + bits.TrailingZeros64(set)
			if t.InRow[i] <= 2 || t.cols[j] <= 2 {
				held[w] &^= 1 << (j % 64)
				back = true
				continue
			}
			t.InRow[i]--
			t.cols[j]--
			t.Visible--
			t.HeldOut++
		}
	}
	if !back {
		return nil
	}
	row := make([]float64, t.N)
	if err := t.readAgain(row, i); err != nil {
		return err
	}
	t.Hide(row, i)
	t.lowest[i] = math.Inf(1)
	for _, v := range row {
		if v < t.lowest[i] {
			t.lowest[i] = v
		}
	}
	return nil
}

// Signed tells whether x has a negative value.
func (c *Cells) Signed() bool {
	return slices.ContainsFunc(c.extents, func(e extent) bool { return e.least < 0 })
}

// Scale returns the unit of x, without a shift, in which losses of x can be compared where those in the unit
// of x itself have no number.
func (c *Cells) Scale() Units {
	top := 0.0
	for _, e := range c.extents {
		top = max(top, math.Abs(e.least), math.Abs(e.most))
	}
	return UnitsOf(top)
}

// SetUnits chooses the units of the cells and brings the cells to them. mapped: the fit has maps, which may
// give every row a scale of its own, and where a visible cell is negative a shift. A row of it that is too
// small beside the largest is an error.
func (c *Cells) SetUnits(mapped bool) error {
	low, top := make([]float64, c.D), make([]float64, c.D)
	signed := false
	for i, e := range c.extents {
		low[i] = e.least
		if c.lowest != nil {
			low[i] = c.lowest[i]
		}
		signed = signed || low[i] < 0
	}
	for i, e := range c.extents { // held-out cells too: none of them may overflow
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
					strconv.Itoa(slices.Index(top, most)) +
					", the largest: rescale the rows to similar sizes"}
		}
	}
	c.Units, c.lowest = UnitsOf(most), nil
	if signed {
		c.Units.Signed, c.Units.Shift = true, low
	}
	switch {
	case c.Units.Plain():
	case c.X.Rows > 0: // what is in memory is brought to x' once
		c.X = c.X.In(&c.Units)
	default:
		c.into = &c.Units
	}
	return nil
}

// In returns a copy of m in the given units.
func (m Dense) In(u *Units) Dense {
	y := NewDense(m.Rows, m.Cols)
	for i := range y.Rows {
		copy(y.Row(i), m.Row(i))
		u.Bring(y.Row(i), i)
	}
	return y
}

// CheckMagnitude reports the first cell of x above the bound in magnitude, where problem says what is wrong
// with it.
func (c *Cells) CheckMagnitude(bound float64, problem string) error {
	for i, e := range c.extents {
		if max(math.Abs(e.least), math.Abs(e.most)) > bound {
			return c.first(i, func(v float64) bool { return math.Abs(v) > bound }, problem)
		}
	}
	return nil
}

// Hash is a fingerprint of numbers (FNV-1a). All NaN count as one number, and -0 as 0.
type Hash uint64

// NewHash begins with whole numbers, such as the sizes of a matrix.
func NewHash(sizes ...int) Hash {
	h := Hash(14695981039346656037)
	h.Sizes(sizes...)
	return h
}

// Sizes adds whole numbers.
func (h *Hash) Sizes(sizes ...int) {
	for _, n := range sizes {
		h.word(uint64(n))
	}
}

func (h *Hash) word(v uint64) {
	for range 8 {
		*h = (*h ^ Hash(v&255)) * 1099511628211
		v >>= 8
	}
}

// Put adds numbers.
func (h *Hash) Put(row []float64) {
	for _, v := range row {
		if v != v {
			v = math.NaN()
		}
		h.word(math.Float64bits(v + 0))
	}
}
