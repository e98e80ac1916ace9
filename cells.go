package quantmf

// This file holds the checks of what a fit is given: the cells of x, read once by internal/fit, and initial
// factors.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/qmf"
)

// sourceOf returns x as internal/fit reads it.
func sourceOf(x Rows) fit.Source {
	switch m := x.(type) {
	case Mat:
		return fit.Source{Dense: fit.Dense(m)}
	case *Sparse:
		return fit.Source{Sparse: &m.of}
	case Mat32:
		return fit.Source{Rows: x, InMemory: true}
	}
	return fit.Source{Rows: x}
}

// weightsOf returns the weights of a d × n matrix, nil for none, or what is wrong with them.
func (c *config) weightsOf(d, n int) (*fit.Weights, error) {
	if c.sampleWeights == nil && c.cellWeights == nil {
		return nil, nil
	}
	if k := len(c.sampleWeights); k != n && k > 0 {
		return nil, &ShapeError{What: "sample weights", Got: itoa(k), Want: itoa(n)}
	}
	w := &fit.Weights{Samples: c.sampleWeights}
	if c.cellWeights == nil {
		return w, nil
	}
	if err := checkRows(c.cellWeights); err != nil {
		return nil, err
	}
	if rows, cols := c.cellWeights.Dims(); rows != d || cols != n {
		return nil, &ShapeError{What: "cell weights", Got: sizeOf(rows, cols), Want: sizeOf(d, n)}
	}
	w.Cells = c.cellWeights
	return w, nil
}

func readCells(x Rows, rules fit.Rules) (*fit.Cells, error) {
	cells, err := fit.Read(sourceOf(x), rules)
	return cells, public(err)
}

// checkInit reports what is wrong with the initial factors of a d × n matrix, the unit of which is root².
// Only the largest entry of a factor has a lower bound: an NMF sets small entries to 0 (startFactors),
// and where there are maps they are raised (factors.raise).
func (c *config) checkInit(d, n, rank int, root float64) error {
	// The range of the largest entry of each factor, and the bound of the entries of UV.
	least, most, product := root*limit.LeastInit, root*limit.MostInit,
		min(limit.Value*root*root, limit.ProductInit)
	if c.Mapped {
		most, product = elem.Exp(c.FactorBound(rank)), limit.ProductInit
		least = 1 / most
	}
	bound := float64(rank) // of the entries of UV, by the largest entries of U and V alone
	for _, f := range []struct {
		name       string
		m          Mat
		rows, cols int
	}{{"initial U", Mat(c.InitU), d, rank}, {"initial V", Mat(c.InitV), rank, n}} {
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

// checkFixed reports what is wrong with the columns of U that are given, and takes them over in the unit of
// the fit, root² being that of x.
func (c *config) checkFixed(d, rank int, root float64) error {
	m := Mat(c.FixedU)
	if m.Rows != d || m.Cols > rank {
		return &ShapeError{What: "fixed U", Got: m.size(), Want: itoa(d) + "×" + itoa(rank) + " at most"}
	}
	least, most := root*limit.LeastInit, root*limit.MostInit
	if c.Mapped {
		most = elem.Exp(c.FactorBound(rank))
		root, least = 1, 1/most
	}
	if _, err := c.checkFactor("fixed U", m, least, most); err != nil {
		return err
	}
	if c.Fixed = m.Cols; root == 1 && !c.Mapped {
		return nil
	}
	c.FixedU = fit.Dense(m.Clone())
	for i, v := range c.FixedU.Data {
		if c.FixedU.Data[i] = v / root; c.Mapped {
			c.FixedU.Data[i] = max(v, least)
		}
	}
	return nil
}

// checkFactor reports what is wrong with the entries of an initial factor. It returns a bound of them, which
// is +Inf where m is not one block of memory.
func (c *config) checkFactor(name string, m Mat, least, most float64) (bound float64, err error) {
	if err := m.check(name); err != nil {
		return 0, err
	}
	if all := m.Data; m.Stride == m.Cols && len(all) == m.Rows*m.Cols {
		if lowest, top, ok := fit.Reach(all); ok && lowest >= 0 && top <= most && (top == 0 || top >= least) {
			if c.Mapped { // zeros alone are raised to 1
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
		if !c.Mapped {
			return 0
		}
		return qmf.LeastAtStart(sum / count)
	}
	u, sumU := Mat(c.InitU), 0.0
	for i := range u.Rows {
		for _, v := range u.Row(i) {
			sumU += v
		}
	}
	bound, lowU := 0.0, raised(sumU, float64(u.Rows)*float64(u.Cols))
	for l := range u.Cols {
		topU, topV, sumV := lowU, 0.0, 0.0
		for i := range u.Rows {
			topU = max(topU, u.At(i, l))
		}
		for _, v := range c.InitV.Row(l) {
			topV = max(topV, v)
			sumV += v
		}
		topV = max(topV, raised(sumV, float64(c.InitV.Cols)))
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
	rules, err := c.Rules(), error(nil)
	rules.Validation = 0
	if rules.Weights, err = c.weightsOf(x.Dims()); err != nil {
		return err
	}
	return public(rules.CheckAll(sourceOf(x)))
}

// checkCell reports a value that a fit cannot have at (i, j).
func (c *config) checkCell(i, j int, v float64) error {
	rules := c.Rules()
	return public(rules.Check(i, j, v))
}

// toFitUnits brings the options that are in the units of x to those of x'.
func (c *config) toFitUnits(u *fit.Units) {
	if u.All == 0 {
		return
	}
	p := &c.Penalties
	c.Penalty = penaltyIn(u.All, c.Penalty, c.Loss, 0)
	p.L1U, p.L1V = penaltyIn(u.All, p.L1U, c.Loss, 1), penaltyIn(u.All, p.L1V, c.Loss, 1)
	p.L2U, p.L2V = penaltyIn(u.All, p.L2U, c.Loss, 2), penaltyIn(u.All, p.L2V, c.Loss, 2)
}

// penaltyIn brings the weight of a penalty that is a power of a factor, whose unit is the root of that of x,
// to an x that is divided by 2^e.
func penaltyIn(e int, weight float64, loss divergence.Loss, power int) float64 {
	if weight == 0 {
		return 0
	}
	// by exponents: the unit of the loss itself may be 0 or infinite
	whole, frac := math.Modf(float64(power*(e/2)) - float64(float64(loss)*float64(e)))
	return min(math.Ldexp(float64(weight*elem.Exp(float64(frac*math.Ln2))), int(whole)), limit.Penalty)
}
