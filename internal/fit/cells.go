package fit

// This file holds the cells of a matrix as a fit sees them. A cell is observed, or missing (NaN).
// Some observed cells may be held out for validation; the others are visible. A cell that is not
// visible is hidden: a fit does not read it.
//
// A fit works on x', which is x in units of its own (units.go); the rows here are rows of x'. They are read
// from x whenever they are needed. Of the size of x a fit keeps only a bit for each cell where some are held
// out, and a copy of x where x is dense and in memory and x' is not x.
//
// # Rows that cannot be read
//
// A matrix is checked as a whole before a fit (reading.go). A row of a caller's own type is checked again
// whenever it is read: its numbers must have the range, and the number of observed cells, that they had
// then. A row that cannot be read, or is another row than before, is the error of the pool, which ends the
// fit: its loops begin no further piece. The piece under way goes on with a row of 0.

import (
	"math"
	"math/bits"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/pool"
)

// Cells are the rows of x', with the cells that are hidden and the numbers of visible ones.
type Cells struct {
	D, N int

	// what is read
	X      Dense      // x' where it lies in memory, a copy where x' is not x; else empty
	Sparse *Sparse    // x where its numbers are listed
	rows   Rows       // x where X is empty
	into   *Units     // brings rows of x to x'; nil: they are rows of x'
	checks *Rules     // of rows when they are read again; nil: they cannot change
	Pool   *pool.Pool // whose error a row is that cannot be read

	// what is seen
	Missing bool     // NaN cells are unobserved
	Partial bool     // some cells are hidden: they are unobserved or held out
	Visible int      // the number of visible cells
	InRow   []int    // the number of visible cells of each row
	Held    []uint64 // for each row a bit a cell, 1 where it is held out; nil where none is
	HeldOut int      // the number of held-out cells

	// what it weighs
	weights              *Weights  // nil: all cells weigh the same
	weightSums           []float64 // of each row
	importance           []float64 // of each row: see Importance
	weightUnit, heldUnit float64   // bring the weights of visible and of held-out cells to a mean of 1
	allUnit              float64   // and those of both
	Guess                float64   // what the guess of a hidden cell counts, of a visible one (Guesses)
	WeightHash           Hash      // of cell weights, if a fingerprint was asked for

	About About // of cells that are not read

	// what reading has found
	Units       Units    // of x'
	extents     []extent // of each row, in the units of x
	lowest      []float64
	Fingerprint Hash // of x, if it was asked for
}

// NewCells returns cells of rows that are not read before: those of x' themselves, in memory. Of what is
// seen the caller sets the fields.
func NewCells(x Source) *Cells {
	c := new(Cells)
	c.X, c.Sparse, c.rows = x.Dense, x.Sparse, x.Matrix()
	c.D, c.N = c.rows.Dims()
	return c
}

// words is the number of words of Held that a row has.
func (c *Cells) words() int { return (c.N + 63) / 64 }

// heldOf returns the words of Held of row i.
func (c *Cells) heldOf(i int) []uint64 {
	if c.Held == nil {
		return nil
	}
	return c.Held[i*c.words() : (i+1)*c.words()]
}

// IsHeld tells whether cell (i, j) is held out.
func (c *Cells) IsHeld(i, j int) bool {
	return c.Held != nil && c.heldOf(i)[j/64]>>(j%64)&1 == 1
}

// Observed returns row i of x' with its held-out cells, and NaN in cells that are not observed. The
// row is a view of x', or is written to room, N numbers; the caller must not write to it. A row that
// cannot be read is all 0, and ends the fit.
func (c *Cells) Observed(room []float64, i int) []float64 {
	if c.X.Rows > 0 {
		return c.X.Row(i)
	}
	room = room[:c.N]
	c.fill(room, i)
	return room
}

// ObservedRow is Observed outside a pool: a row that cannot be read is the error.
func (c *Cells) ObservedRow(room []float64, i int) ([]float64, error) {
	if c.X.Rows > 0 {
		return c.X.Row(i), nil
	}
	room = room[:c.N]
	if err := c.readAgain(room, i); err != nil {
		return nil, err
	}
	if c.into != nil {
		c.into.Bring(room, i)
	}
	return room, nil
}

// fill fills x, N numbers, with what Observed returns.
func (c *Cells) fill(x []float64, i int) {
	if c.X.Rows > 0 {
		copy(x, c.X.Row(i))
		return
	}
	if _, err := c.ObservedRow(x, i); err != nil {
		c.Pool.Fail(err)
		clear(x)
	}
}

// readAgain fills x with row i in the units of x, and checks that it is the row that was read before.
func (c *Cells) readAgain(x []float64, i int) error {
	if err := c.rows.ReadRow(x, i); err != nil {
		return readError(i, err)
	}
	if c.checks == nil {
		return nil
	}
	e, err := c.checks.measure(x, i)
	if err == nil && e != c.extents[i] {
		err = &DataError{Row: i, Col: -1, Value: math.NaN(),
			Problem: "the row has other numbers than when it was first read: " +
				"a matrix must give the same numbers at every call"}
	}
	return err
}

// Row is Observed with NaN in every hidden cell.
func (c *Cells) Row(room []float64, i int) []float64 {
	if c.Held == nil {
		return c.Observed(room, i)
	}
	room = room[:c.N]
	c.fill(room, i)
	c.Hide(room, i)
	return room
}

// NonZeros returns a function that returns the columns and the numbers that x lists of row i, as those of x'.
// It returns nil where x does not list them, a cell is hidden, or the zeros of x are not those of x'. The
// caller must not write to what the function returns: these are views of x, or of the given slices, which it
// overwrites from their start.
func (c *Cells) NonZeros() func(i int, cols []uint32, values []float64) ([]uint32, []float64) {
	if c.Sparse == nil || c.Partial || c.Units.Signed {
		return nil
	}
	return func(i int, cols []uint32, values []float64) ([]uint32, []float64) {
		cols, listed := c.Sparse.NonZeros(i, cols, values)
		if c.into != nil {
			listed = append(values[:0], listed...)
			c.into.Bring(listed, i)
		}
		return cols, listed
	}
}

// Hide makes the held-out cells of row i NaN.
func (c *Cells) Hide(row []float64, i int) {
	for w, set := range c.heldOf(i) {
		for ; set != 0; set &= set - 1 {
			row[64*w+bits.TrailingZeros64(set)] = math.NaN()
		}
	}
}

// ReadRow fills x, N numbers, with row i of x', 0 in hidden cells, and fills observed. It returns
// observed, or nil where all cells of the matrix are visible.
func (c *Cells) ReadRow(x []float64, observed []bool, i int) []bool {
	x = x[:c.N]
	c.fill(x, i)
	if !c.Partial {
		return nil
	}
	observed = observed[:c.N]
	for j, v := range x {
		observed[j] = v == v
		if v != v {
			x[j] = 0
		}
	}
	for w, set := range c.heldOf(i) {
		for ; set != 0; set &= set - 1 {
			j := 64*w + bits.TrailingZeros64(set)
			x[j], observed[j] = 0, false
		}
	}
	return observed
}

// ReadMarked fills x, N numbers, with row i of x', 0 in hidden cells, and where some are hidden or weighed,
// omega as Mark does.
func (c *Cells) ReadMarked(x, omega []float64, i int) {
	x = x[:c.N]
	c.fill(x, i)
	if !c.Partial {
		return
	}
	c.Hide(x, i)
	omega = omega[:c.N]
	one := math.Float64bits(1)
	for j, v := range x { // by bits: branches on random cells take half as long again
		number, mark := math.Float64bits(v), one
		if v != v {
			number, mark = 0, 0
		}
		x[j], omega[j] = math.Float64frombits(number), math.Float64frombits(mark)
	}
	if c.weights != nil {
		c.weighMarks(omega, i)
	}
}

// ReadFilled is ReadRow, but sets hidden cells to the mean of the row's visible cells.
func (c *Cells) ReadFilled(x []float64, observed []bool, i int) {
	seen := c.ReadRow(x, observed, i)
	if seen == nil {
		return
	}
	mean := 0.0
	for _, v := range x[:c.N] {
		mean += v / float64(c.InRow[i])
	}
	for j, o := range seen {
		if !o {
			x[j] = mean
		}
	}
}

// Mark fills omega, N numbers, with 1 where a cell of row i is visible, or its weight, and 0 elsewhere.
func (c *Cells) Mark(omega []float64, i int) {
	if c.weights != nil {
		defer c.weighMarks(omega, i)
	}
	for j, v := range c.Row(omega, i) {
		omega[j] = 0
		if v == v {
			omega[j] = 1
		}
	}
}

// HeldLoss returns the sum of divergences of t, the fitted row, from the held-out cells of row i; low
// is the floor of t. room has N numbers.
func (c *Cells) HeldLoss(l divergence.Loss, t []float64, i int, low float64, room []float64) float64 {
	if c.Held == nil {
		return 0
	}
	row, unit := c.Observed(room, i), 1.0
	own := []float64(nil)
	if c.weights != nil {
		of := c.weights.room(c.N)
		defer c.weights.rooms.Put(of)
		own, unit = *of, c.heldUnit
		c.takeWeights(own, i)
	}
	var some [3][64]float64 // x, t and the weights of up to 64 cells
	sum, count := 0.0, 0
	add := func() {
		sum += l.WeightedSum(some[0][:count], some[1][:count], some[2][:count], low)
		count = 0
	}
	for w, set := range c.heldOf(i) {
		if count+bits.OnesCount64(set) > len(some[0]) {
			add()
		}
		for ; set != 0; set &= set - 1 {
			j := 64*w + bits.TrailingZeros64(set)
			some[0][count], some[1][count], some[2][count] = row[j], t[j], unit
			if own != nil {
				some[2][count] *= own[j]
			}
			count++
		}
	}
	add()
	return sum
}

// Matrix returns x', NaN where a cell is hidden: a view, or a copy.
func (c *Cells) Matrix() Dense {
	if c.X.Rows > 0 && c.Held == nil {
		return c.X
	}
	m := NewDense(c.D, c.N)
	for i := range c.D {
		copy(m.Row(i), c.Row(m.Row(i), i))
	}
	return m
}
