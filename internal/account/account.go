// Package account has what a model says of the matrix to which it was fitted, and what a model file of the
// command, or of the page in a browser, says beside the model. A report draws both (internal/report). In a
// browser one module of WebAssembly has the models and gathers, and another, which has no model, draws. This
// package therefore imports little: no fmt, and nothing that draws or reads tables.
package account

// This file holds the account of a model: all that a report draws of it.

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/order"
)

// TopShown is how many features or samples of a component are named.
const TopShown = 8

// Steps is how many equal steps a curve has.
const Steps = 120

// Account is what a model of d features, n samples and k components says.
type Account struct {
	Method string // "QMF", "QMFQ", "NMF" or "BQMF", whose Loss is the negative bound of the evidence
	U, V   quantmf.Mat
	Fitted quantmf.Mat // T(UV), or UV; d × n
	Loss   []float64   // after each epoch up to the one that was kept, entry 0 before the first
	Epochs int         // that the fit took; of a BQMF all, of others up to the one that was kept

	// Predicted is the share of the differences between samples that is predicted in values which the model
	// has not seen, where the mean of the feature's other values predicts 0; NaN where that is not known.
	Predicted float64

	Goodness    []quantmf.Goodness // of each feature
	Shares      quantmf.Mat        // d × k
	TopFeatures [][]quantmf.Top    // of each component
	TopSamples  [][]quantmf.Top

	// Not of NMF.
	// d × (Steps+1): T_i at equal steps from one end of Span((UV)_i) to the other; without rows where there
	// is no T
	Curves     quantmf.Mat
	Bend       []float64   // 0 where the map of a feature is a line, towards 1 the farther it is from any
	Normalized quantmf.Mat // T'(X) of a QMFQ, without rows elsewhere

	// Of QMF alone.
	Levels int
	Began  string // Begun
}

// Of returns the account of a model and of x, the matrix that was fitted. goodness is that of the model on x,
// which takes a pass over x, or nil where nobody has asked for it yet. Errors are those of Goodness.
func Of(model quantmf.Model, x quantmf.Mat, goodness []quantmf.Goodness) (Account, error) {
	a := Account{Fitted: model.Reconstruct(), Shares: model.Shares(), TopSamples: model.TopSamples(TopShown),
		Goodness: goodness}
	var of *quantmf.Factorisation
	var scale func(i int) (scale, error)
	var err error
	switch m := model.(type) {
	case *quantmf.NMF:
		a.Method, of = "NMF", &m.Factorisation
	case *quantmf.QMF:
		a.Method, of, a.Bend, scale = "QMF", &m.Factorisation, m.Bend(), scaleOf(m.Map)
		a.Levels, a.Began = m.Quantiles.Cols, Begun(m)
	case *quantmf.QMFQ:
		a.Method, of, a.Bend, scale = "QMFQ", &m.Factorisation, m.Bend(), scaleOf(m.Inflate)
	case *quantmf.BQMF:
		a.Method, of, a.Bend, scale = "BQMF", &m.Factorisation, m.Bend(), scaleOf(m.Map)
	}
	a.U, a.V, a.Loss, a.Epochs = of.U, of.V, of.History[:of.Best+1], of.Best
	if a.Method == "BQMF" {
		a.Epochs = len(of.History) - 1
	}
	if goodness == nil {
		if a.Goodness, err = model.Goodness(x); err != nil {
			return a, err
		}
	}
	a.TopFeatures = TopFeatures(a.Shares, a.Goodness)
	a.Predicted = math.NaN()
	if b, is := model.(*quantmf.BQMF); is {
		a.Predicted = predicted(b.LeaveOneOut, Visible(x), a.Goodness)
	}
	if q, is := model.(*quantmf.QMFQ); is {
		if a.Normalized, err = q.Normalize(x); err != nil {
			return a, err
		}
	}
	if scale != nil {
		a.Curves, err = curves(a.U, a.V, scale)
	}
	return a, err
}

// TopFeatures is that of a model whose shares and goodness are known: its own takes one more pass over x.
func TopFeatures(shares quantmf.Mat, goodness []quantmf.Goodness) [][]quantmf.Top {
	top, weights := make([][]quantmf.Top, shares.Cols), make([]float64, shares.Rows)
	for c := range top {
		for i, g := range goodness {
			weights[i] = shares.At(i, c) * max(g.Explained, 0)
		}
		for _, i := range Largest(weights, TopShown) {
			top[c] = append(top[c], quantmf.Top{Index: i, Value: weights[i]})
		}
	}
	return top
}

// Largest returns the indices of the count largest of v, the largest first.
func Largest(v []float64, count int) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	return order[:min(count, len(order))]
}

// predicted is the share of the differences between samples that a mean divergence leaves of values that were
// each predicted without themselves. A value among n is n/(n-1) times as far from the mean of the others as
// from the mean of all; the divergence grows with the square of that, under KL nearly.
// visible are the numbers of values of the features.
func predicted(leaveOneOut float64, visible []float64, goodness []quantmf.Goodness) float64 {
	cells, spread := 0.0, 0.0
	for i, g := range goodness {
		n := visible[i]
		cells += n
		if n > 1 {
			spread += float64(n * g.Spread * (n / (n - 1)) * (n / (n - 1)))
		}
	}
	if spread == 0 {
		return math.NaN()
	}
	return 1 - leaveOneOut*cells/spread
}

// scale is the map of a feature.
type scale interface{ At(w float64) float64 }

func scaleOf[M scale](maps func(i int) (M, error)) func(i int) (scale, error) {
	return func(i int) (scale, error) { return maps(i) }
}

// curves returns the maps of the features at equal steps along their mixtures.
func curves(u, v quantmf.Mat, scale func(i int) (scale, error)) (quantmf.Mat, error) {
	out, w := quantmf.NewMat(u.Rows, Steps+1), make([]float64, v.Cols)
	for i := range out.Rows {
		t, err := scale(i)
		if err != nil {
			return out, err
		}
		Mixture(w, u, v, i)
		from, to := Span(w)
		row := out.Row(i)
		for s := range row {
			row[s] = t.At(from + (to-from)*float64(s)/Steps)
		}
	}
	return out, nil
}

// Mixture fills w with row i of UV.
func Mixture(w []float64, u, v quantmf.Mat, i int) {
	clear(w)
	for c, a := range u.Row(i) {
		for j, b := range v.Row(c) {
			w[j] += float64(a * b)
		}
	}
}

// Span returns the lowest and the highest of w, but for far ones (order.Bulk), apart.
func Span(w []float64) (from, to float64) {
	from, to = order.Bulk(w)
	if from == to {
		to = from + max(math.Abs(from), 1)
	}
	return from, to
}

// fewSamples is the number of samples below which much of what a fit explains is noise: at ten components 77
// % of the differences between 30 samples of noise alone, 52 % of those between 100.
const fewSamples = 40

// Remarks returns warnings that follow from the size of a model: that k components can repeat any matrix of
// this size, so that a fit says nothing of what the matrix holds, or that there are few samples. A BQMF
// leaves out what it does not need.
func Remarks(model quantmf.Model) []string {
	d, n := model.Dims()
	k := model.Rank()
	_, leavesOut := model.(*quantmf.BQMF)
	switch {
	case leavesOut, k < min(d, n) && n >= fewSamples:
		return nil
	case k < min(d, n):
		return []string{"there are " + strconv.Itoa(n) + " samples: of fewer than " +
			strconv.Itoa(fewSamples) + " a fit explains much that is noise, so see how it predicts values " +
			"that it has not seen"}
	}
	if min(d, n) < 3 {
		return []string{"a " + strconv.Itoa(d) + " × " + strconv.Itoa(n) +
			" matrix is too small for components to say something: any can be repeated as it is"}
	}
	return []string{"k = " + strconv.Itoa(k) + " can repeat any " + strconv.Itoa(d) + " × " +
		strconv.Itoa(n) + " matrix as it is: take a k far below " + strconv.Itoa(min(d, n))}
}

// Begun says where a fit started and how much its maps were shrunk.
func Begun(q *quantmf.QMF) string {
	var from string
	switch q.Start {
	case quantmf.StartAuto:
		from = "from given factors"
	case quantmf.StartScores:
		from = "from an NMF of each feature's ranks (as normal scores)"
	case quantmf.StartNMF:
		from = "from an NMF of the matrix"
	case quantmf.StartUniform:
		from = "at random"
	}
	if q.Line > 0 {
		from += "; a straight line is " + strconv.FormatFloat(100*q.Line, 'g', 4, 64) + " % of every map"
	}
	if q.Shrinkage == 0 {
		return from + "; maps bend freely"
	}
	return from + "; maps are pulled towards straight lines, as if " +
		strconv.FormatFloat(q.Shrinkage, 'g', -1, 64) + " more samples lay on them"
}
