package fit

// This file holds the weights of cells. Cell (i, j) has the weight w_ij a_j, of a weight of its own and that
// of its sample, and the loss of a fit is the mean
//
//	Σ w_ij a_j Δ(x_ij, t_ij) / Σ w_ij a_j   over the visible cells.
//
// A cell of weight 0 is one that was not observed: a matrix with weights is read with NaN there, so all else
// that a fit knows of hidden cells holds. The weights of the others are brought to a mean of 1, so that sums
// over them have the size that they have without weights, and losses are divided by the numbers of cells.

import (
	"math"
	"sync"

	"github.com/quantmf/quantmf/internal/limit"
)

// Weights are those of the cells of a d × n matrix. At least one of Cells and Samples is set.
type Weights struct {
	Cells   Rows      // d × n
	Samples []float64 // n
	rooms   sync.Pool
}

// room returns a row of n numbers, which goes back by give.
func (w *Weights) room(n int) *[]float64 {
	if r, is := w.rooms.Get().(*[]float64); is && len(*r) == n {
		return r
	}
	r := make([]float64, n)
	return &r
}

// read fills to with the weights of row i.
func (w *Weights) read(to []float64, i int) error {
	if w.Cells == nil {
		copy(to, w.Samples)
		return nil
	}
	if err := w.Cells.ReadRow(to, i); err != nil {
		return &ReadError{i, err}
	}
	for j, v := range to {
		if !(v >= 0 && v <= limit.Value) {
			return &DataError{Row: i, Col: j, Value: v,
				Problem: "a cell weight must be at least 0 and at most " + ftoa(limit.Value)}
		}
		if w.Samples != nil {
			to[j] = v * w.Samples[j]
		}
	}
	return nil
}

// weighted is a matrix with NaN where a weight is 0.
type weighted struct {
	of      Rows
	weights *Weights
}

func (x *weighted) Dims() (rows, cols int) { return x.of.Dims() }

func (x *weighted) ReadRow(row []float64, i int) error {
	if err := x.of.ReadRow(row, i); err != nil {
		return err
	}
	room := x.weights.room(len(row))
	defer x.weights.rooms.Put(room)
	if err := x.weights.read(*room, i); err != nil {
		return err
	}
	for j, w := range *room {
		if w == 0 {
			row[j] = math.NaN()
		}
	}
	return nil
}

// weighted returns a matrix as it is read with weights.
func (r Rules) weighted(x Source) Source {
	return Source{Rows: &weighted{x.Matrix(), r.Weights}, InMemory: x.InMemory || x.Rows == nil}
}

// observe reports NaN in cells of a row with weights that are not 0, where the rules take none, and returns
// the rules by which the row is measured.
func (r Rules) observe(row []float64, i int) (Rules, error) {
	if r.Weights == nil || r.Missing {
		return r, nil
	}
	room := r.Weights.room(len(row))
	defer r.Weights.rooms.Put(room)
	if err := r.Weights.read(*room, i); err != nil {
		return r, err
	}
	for j, v := range row {
		if v != v && (*room)[j] > 0 {
			return r, r.Check(i, j, v)
		}
	}
	r.Missing = true
	return r, nil
}

// leavesOut tells whether sample j takes no part in the fit.
func (w *Weights) leavesOut(j int) bool { return w != nil && w.Samples != nil && w.Samples[j] == 0 }

// SampleWeights returns the weights of the samples as they were given, nil for none.
func (c *Cells) SampleWeights() []float64 { return c.weights.Samples }

// CellWeights returns a function that fills w with the weights of the cells of row i alone, as they were
// given; nil where they have none.
func (c *Cells) CellWeights() func(w []float64, i int) {
	if c.weights.Cells == nil {
		return nil
	}
	return func(w []float64, i int) {
		c.takeWeights(w, i)
		for j, a := range c.weights.Samples {
			if a > 0 {
				w[j] /= a
			}
		}
	}
}

// LeftOut returns the samples of weight 0.
func (c *Cells) LeftOut() (samples []int) {
	if c.weights == nil {
		return nil
	}
	for j, v := range c.weights.Samples {
		if v == 0 {
			samples = append(samples, j)
		}
	}
	return samples
}

// weightsOf fills the sums of the weights of rows and the factors that bring those of visible and of held-out
// cells to a mean of 1, by one more pass over x.
func (c *Cells) weightsOf(rules Rules) error {
	w := rules.Weights
	c.weights, c.weightSums, c.WeightHash = w, make([]float64, c.D), NewHash()
	c.importance = make([]float64, c.D)
	x, own, samples := make([]float64, c.N), make([]float64, c.N), w.Samples
	visible, held, counted := 0.0, 0.0, 0.0
	for i := range c.importance {
		c.importance[i] = 1
	}
	for i := range c.D {
		row, err := c.ObservedRow(x, i)
		if err == nil {
			err = w.read(own, i)
		}
		if err != nil {
			return err
		}
		c.weightSums[i] = sum(own)
		if rules.Hash && w.Cells != nil {
			c.WeightHash.Put(own)
		}
		before, count := visible, 0.0
		for j, v := range row {
			switch {
			case v != v:
			case c.IsHeld(i, j):
				held += own[j]
			default:
				visible += own[j]
				if samples == nil {
					count++
				} else {
					count += samples[j]
				}
			}
		}
		if counted += count; w.Cells != nil {
			c.importance[i] = (visible - before) / count
		}
	}
	c.weightUnit, c.heldUnit = float64(c.Visible)/visible, 1
	c.allUnit = float64(c.Visible+c.HeldOut) / (visible + held)
	for i := range c.importance {
		if w.Cells != nil {
			c.importance[i] *= counted / visible
		}
	}
	if held > 0 {
		c.heldUnit = float64(c.HeldOut) / held
	}
	return nil
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// Whole tells whether no cell is hidden of a sample that takes part.
func (c *Cells) Whole() bool { return c.Visible == c.D*(c.N-len(c.LeftOut())) }

// Importance is the mean of the weights of the visible cells of row i, sample by sample, over that of all
// rows: 1 where cells have none of their own.
func (c *Cells) Importance(i int) float64 {
	if !c.EachWeighed() {
		return 1
	}
	return c.importance[i]
}

// weighMarks multiplies marks of row i by the weights of the cells.
func (c *Cells) weighMarks(omega []float64, i int) {
	room := c.weights.room(c.N)
	defer c.weights.rooms.Put(room)
	for j, w := range c.Weights(*room, i) {
		omega[j] *= w
	}
}

// Beside returns cells of another matrix, of which the same are seen with the same weights.
func (c *Cells) Beside(x Source) *Cells {
	of := NewCells(x)
	of.Pool = c.Pool
	of.Partial, of.Visible, of.InRow = c.Partial, c.Visible, c.InRow
	of.weights, of.weightSums, of.weightUnit = c.weights, c.weightSums, c.weightUnit
	of.importance = c.importance
	return of
}

// Weights returns the weights of row i, in w, of mean 1 over the visible cells of the matrix; nil where cells
// have none. Those of hidden cells mean nothing.
func (c *Cells) Weights(w []float64, i int) []float64 {
	if c.weights == nil {
		return nil
	}
	c.Weigh(w, nil, i)
	return w
}

// AllWeights fills w, N numbers, with the weights of row i, of mean 1 over all observed cells of the matrix,
// whichever are held out; 1 where cells have none.
func (c *Cells) AllWeights(w []float64, i int) error {
	if c.weights == nil {
		for j := range w {
			w[j] = 1
		}
		return nil
	}
	err := c.readWeights(w, i)
	for j := range w {
		w[j] *= c.allUnit
	}
	return err
}

// Guesses fills hidden cells of x with guesses, the mean of the visible cells of row i, and g, N numbers,
// with what they weigh: Guess times the weight of a visible cell of the row and sample, 0 in visible cells. x
// and omega are what ReadMarked has given; a row without a visible cell has no guesses.
func (c *Cells) Guesses(x, omega, g []float64, i int) {
	mean := 0.0
	for _, v := range x[:c.N] {
		mean += v / float64(max(c.InRow[i], 1))
	}
	for j, w := range omega[:c.N] {
		g[j] = 0
		if w == 0 {
			x[j], g[j] = mean, c.weightOfGuess(i, j)
		}
	}
}

// weightOfGuess is the weight of the guess of cell (i, j). Where cells have weights of their own it is the
// same in all samples that take part.
func (c *Cells) weightOfGuess(i, j int) float64 {
	switch {
	case c.weights.leavesOut(j) || c.InRow[i] == 0:
		return 0
	case c.EachWeighed():
		return c.Guess * c.importance[i]
	case c.weights != nil:
		return c.Guess * float64(c.weights.Samples[j]*c.weightUnit)
	}
	return c.Guess
}

// Weighted tells whether cells have weights.
func (c *Cells) Weighted() bool { return c.weights != nil }

// EachWeighed tells whether cells have weights of their own, beside those of their samples.
func (c *Cells) EachWeighed() bool { return c.weights != nil && c.weights.Cells != nil }

// WeightsAbove0 is Weights, those of hidden cells, too, between a small one and the largest that a visible
// cell may have.
func (c *Cells) WeightsAbove0(w []float64, i int) []float64 {
	const least = 1e-6
	if w = c.Weights(w, i); w != nil {
		for j, v := range w {
			w[j] = min(max(v, least), float64(c.Visible))
		}
	}
	return w
}

// WeightsOf returns WeightsAbove0 of some rows, nil where cells have none. A cell of weight 0 that is given a
// value all the same, for its sample has no other in these rows, has next to no weight.
func (c *Cells) WeightsOf(rows []int) *Weights {
	if c.weights == nil {
		return nil
	}
	return &Weights{Cells: &someWeights{c, rows}}
}

// someWeights are the weights of some rows of cells.
type someWeights struct {
	of   *Cells
	rows []int
}

func (s *someWeights) Dims() (rows, cols int) { return len(s.rows), s.of.N }

func (s *someWeights) ReadRow(w []float64, r int) error {
	s.of.WeightsAbove0(w, s.rows[r])
	return nil
}

// readWeights fills w, N numbers, with the weights of row i as they were given. Other weights than when they
// were first read are an error.
func (c *Cells) readWeights(w []float64, i int) error {
	err := c.weights.read(w, i)
	if err == nil && sum(w) != c.weightSums[i] {
		err = &DataError{Row: i, Col: -1, Value: math.NaN(),
			Problem: "the row has other weights than when it was first read: " +
				"a matrix must give the same numbers at every call"}
	}
	return err
}

// takeWeights is readWeights in a fit, which an error ends; the weights are 0 then.
func (c *Cells) takeWeights(w []float64, i int) {
	if err := c.readWeights(w, i); err != nil {
		c.Pool.Fail(err)
		clear(w)
	}
}

// Weigh fills w, N numbers, with the weights of row i, of mean 1 over the visible cells of the matrix, and 0
// where observed, as ReadRow returns it, is false; nil leaves all.
func (c *Cells) Weigh(w []float64, observed []bool, i int) {
	w = w[:c.N]
	c.takeWeights(w, i)
	for j := range w {
		w[j] *= c.weightUnit
	}
	for j, o := range observed {
		if !o {
			w[j] = 0
		}
	}
}
