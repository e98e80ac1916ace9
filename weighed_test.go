package quantmf

// This file tests weights of samples and of cells against fits of matrices that say the same without them.

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/bqmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// repeated is x with column j as often as times says.
func repeated(x Mat, times []float64) Mat {
	var columns []int
	for j, v := range times {
		for range int(v) {
			columns = append(columns, j)
		}
	}
	m := NewMat(x.Rows, len(columns))
	for i := range x.Rows {
		for at, j := range columns {
			m.Set(i, at, x.At(i, j))
		}
	}
	return m
}

// unrepeated is the inverse of repeated, with 1 in columns that are not there.
func unrepeated(x Mat, times []float64) Mat {
	m, at := NewMat(x.Rows, len(times)), 0
	for j, n := range times {
		for i := range x.Rows {
			m.Set(i, j, 1)
			if n > 0 {
				m.Set(i, j, x.At(i, at))
			}
		}
		at += int(n)
	}
	return m
}

// TestSampleWeights: a fit with whole numbers as weights of samples is that of a matrix that has each sample
// as often: from the same factors it has the same losses, and the same U.
func TestSampleWeights(t *testing.T) {
	Slow(t)
	x, times := heavy()
	held := holed(x, 0.15)
	u, v := begun(x.Dims())
	for name, c := range map[string]struct {
		x    Mat
		opts []FitOption
	}{
		"KL":             {x, nil},
		"Frobenius":      {x, []FitOption{WithLoss(Frobenius)}},
		"updates":        {x, []FitOption{WithUpdates(UpdatesMultiplicative), WithEpochs(400)}},
		"updates, β":     {x, []FitOption{WithLoss(Beta(1.5)), WithEpochs(400)}},
		"updates, β = 0": {x, []FitOption{WithLoss(Beta(0)), WithEpochs(400)}},
		"updates, Frobenius": {x,
			[]FitOption{WithLoss(Frobenius), WithUpdates(UpdatesMultiplicative), WithEpochs(400)}},
		"missing":            {held, []FitOption{WithMissingValues()}},
		"missing, Frobenius": {held, []FitOption{WithLoss(Frobenius), WithMissingValues()}},
		"missing, updates": {held,
			[]FitOption{WithMissingValues(), WithUpdates(UpdatesMultiplicative), WithEpochs(400)}},
		"penalties": {x, []FitOption{WithPenalties(Penalties{L1U: 0.05, L2U: 0.01})}},
		"penalties, Frobenius": {x,
			[]FitOption{WithPenalties(Penalties{L1U: 0.05, L2U: 0.01}), WithLoss(Frobenius)}},
	} {
		scales := []float64{1, 0.125, 1e20}
		if strings.Contains(name, ", ") { // which meet the weights by the same steps as others
			scales = scales[2:]
		}
		for _, scale := range scales {
			t.Run(name+", "+ftoa(scale), func(t *testing.T) {
				weights := append([]float64(nil), times...)
				for j := range weights {
					weights[j] *= scale
				}
				x := c.x.Clone()
				many := repeated(x, times)
				for i := range x.Rows {
					x.Set(i, 2, 1e9) // of a sample without weight
				}
				opts := append([]FitOption{WithEpochs(1000)}, c.opts...)
				want := Fitted(t, FitNMF, many, 3,
					append(opts, WithInit(u, repeated(v, times)))...)
				first, u, v := want.History[0], u, v
				missing := strings.HasPrefix(name, "missing") // whose minima are slow to reach, and several
				if missing {
					first, u, v = want.History[len(want.History)-1], want.U, unrepeated(want.V, times)
				}
				got := Fitted(t, FitNMF, x, 3,
					append(opts, WithInit(u, v), WithSampleWeights(weights))...)
				Near(t, got.History[0], first, 1e-12*first, "the start has a loss of")
				last := len(got.History) - 1
				if a, b := got.History[last], want.History[last]; !(a <= b*(1+1e-5)) || !missing &&
					a < b*(1-1e-5) {
					t.Errorf("the end has a loss of %v, want %v", a, b)
				}
				if missing {
					return
				}
				a, b := got.Reconstruct(), want.Reconstruct()
				for i := range x.Rows {
					at := 0
					for j, n := range times {
						if n > 0 && !(math.Abs(a.At(i, j)-b.At(i, at)) <= 0.02*(1+b.At(i, at))) {
							t.Errorf("cell %d %d is %v, want %v", i, j, a.At(i, j), b.At(i, at))
						}
						at += int(n)
					}
				}
				placed := Answer(t, got.Transform, x)
				for c := range 3 {
					for _, j := range []int{2, 9} {
						if got.V.At(c, j) != placed.At(c, j) {
							t.Errorf("a sample without weight has %v, by Transform %v", got.V.At(c, j),
								placed.At(c, j))
						}
					}
				}
			})
		}
	}
}

// TestCellWeights: a fit with weights of cells is the slow form of the formula: its losses are the weighted
// mean, at its end no slope of that is left; cells of weight 0 are the missing ones, to the bit; and weights
// that are all the same are none.
func TestCellWeights(t *testing.T) {
	x := first(toy(0), 13).Clone()
	w, flat := x.Clone(), x.Clone()
	only, hidden := spotted(x, 11)
	for i := range w.Data {
		w.Data[i], flat.Data[i] = float64(i*7%11)/4, 3 // some of w are 0
	}
	for name, opts := range map[string][]FitOption{
		"KL":         {WithEpochs(600)},
		"Frobenius":  {WithLoss(Frobenius), WithEpochs(600)},
		"updates":    {WithUpdates(UpdatesMultiplicative), WithEpochs(50)},
		"updates, β": {WithLoss(Beta(0.5)), WithEpochs(50)},
		"penalties":  {WithPenalties(Penalties{L1U: 0.05, L1V: 0.1, L2U: 0.1}), WithEpochs(600)},
		"fixed U, Frobenius": {WithLoss(Frobenius), WithFixedU(Part(x, 0, 2)),
			WithEpochs(600)},
		"validation":           {WithValidation(0.1), WithEpochs(30)},
		"validation, updates":  {WithValidation(0.1), WithUpdates(UpdatesMultiplicative), WithEpochs(30)},
		"start, SVD, restarts": {WithStart(StartSVD), WithEpochs(30)},
	} {
		t.Run(name, func(t *testing.T) {
			var c config
			for _, o := range opts {
				o.setting().check(&c)
			}
			m := Fitted(t, FitNMF, x, 3, append(opts, WithCellWeights(w))...)
			fit, total, loss := m.Reconstruct(), 0.0, 0.0
			for i, v := range w.Data {
				total += v
				loss += v * m.loss.At(x.Data[i], fit.Data[i])
			}
			if c.Validation == 0 && !(math.Abs(loss/total-m.History[m.Best]) <= 1e-10*loss/total) {
				t.Errorf("the loss is %v, of the formula %v", m.History[m.Best], loss/total)
			}
			for e, l := range m.History {
				if e > 0 && !c.Penalties.Any() && l > m.History[e-1]*(1+1e-12) {
					t.Errorf("%v after %v", l, m.History[e-1])
				}
			}
			if c.Epochs == 600 && m.loss == Frobenius { // under KL entries are kept above 0
				optimalBy(t, x, w, m, m.loss, Penalties(c.Penalties), c.FixedU.Cols, 1e-3)
			}
			same := func(what string, x, w, y Mat, opts ...FitOption) {
				t.Helper()
				a := Fitted(t, FitNMF, x, 3, append(opts, WithCellWeights(w), WithEpochs(7))...)
				b := Fitted(t, FitNMF, y, 3, append(opts, WithMissingValues(), WithEpochs(7))...)
				for i, v := range b.U.Data {
					Close(t, a.U.Data[i], v, 1e-9, "%s: U %d", what, i)
				}
			}
			same("0", x, only, hidden, opts...)
			same("0 where x has NaN", hidden, only, hidden, opts...)
			if c.Validation > 0 || m.loss != KL && m.loss != Frobenius {
				same("3", x, flat, x, opts...)
			}
		})
	}
}

// TestBQMFSampleWeights: from the same U, a BQMF with whole numbers as weights of samples learns U, V, noise
// and bound of a matrix that has each sample as often. It judges itself without all copies of a sample, where
// the matrix has the other ones. A sample of weight 0 is as if it were not there, and gets what is said of a
// new one.
func TestBQMFSampleWeights(t *testing.T) {
	Slow(t)
	t.Parallel()
	x := Part(loadRows(t, "testdata/laml-exp.tsv.gz", 30), 0, 60)
	for i := 1; i < x.Rows; i += 2 { // which goes with the row before: the second stage has a share
		for j, v := range x.Row(i - 1) {
			x.Set(i, j, 0.8*v+0.2*x.At(i, j))
		}
	}
	times := make([]float64, x.Cols)
	for j := range times {
		times[j] = float64(3 * j % 4)
	}
	from := WithModel(Fitted(t, FitBQMF, x, 1, WithEpochs(3)))
	for name, x := range map[string]Mat{"whole": x, "holed": holed(x, 0.1)} {
		opts := []FitOption{WithMissingValues(), from, WithEpochs(3)}
		want := Fitted(t, FitBQMF, repeated(x, times), 1, opts...)
		got := Fitted(t, FitBQMF, x, 1, append(opts, WithSampleWeights(times))...)
		far := func(what string, a, b []float64, within float64) {
			t.Helper()
			for i, v := range b {
				Close(t, a[i], v, within, "%s: %s %d", name, what, i)
			}
		}
		far("U", got.U.Data, want.U.Data, 1e-9)
		far("noise of row", got.RowNoise, want.RowNoise, 1e-9)
		far("bound", got.History, want.History, 1e-9)
		if got.LeaveOneOut < want.LeaveOneOut {
			t.Errorf("%s: left out %v, in the table of twins %v", name, got.LeaveOneOut, want.LeaveOneOut)
		}
		if !slices.ContainsFunc(got.model.Stage.Rows, func(r bqmf.StageRow) bool { return r.Keep < 1 }) {
			t.Error(name + ": no row has a second stage")
		}
		all, at, placed := got.Reconstruct(), 0, Answer(t, got.Transform, x)
		means := Answer(t, got.Predict, x)
		low, high, err := got.Interval(0.9)
		OK(t, err)
		lo, hi, err := got.PredictInterval(t.Context(), x, 0.9)
		OK(t, err)
		for j, count := range times {
			for c := range got.V.Rows {
				v := placed.At(c, j)
				if count > 0 {
					v = want.V.At(c, at)
				}
				far("V", []float64{got.V.At(c, j)}, []float64{v}, 1e-9)
			}
			for i := 0; i < x.Rows && count == 0; i++ {
				far("new cell", []float64{all.At(i, j), low.At(i, j), high.At(i, j)},
					[]float64{means.At(i, j), lo.At(i, j), hi.At(i, j)}, 1e-9)
			}
			at += int(count)
		}
		read := new(BQMF)
		OK(t, read.UnmarshalBinary(FileOf(t, got)))
		far("cell of a file", read.Reconstruct().Data, all.Data, 1e-12)
		far("relevance of a file", read.Relevance, got.Relevance, 0)
		loadings, _ := got.Loadings()
		for j, count := range times {
			if count == 0 { // V of the first component
				read.model.V[j] = 1e6
			}
		}
		again, _ := read.Loadings()
		far("loading without V of samples of weight 0", again.Data, loadings.Data, 0)
	}
}

// TestBQMFCellWeights: cells of weight 0 are missing to the bit, weights that are the same are none, a weight
// near 0 is nearly none, and cells that are noise do less harm the less they weigh.
func TestBQMFCellWeights(t *testing.T) {
	Slow(t)
	t.Parallel()
	x := Part(loadRows(t, "testdata/laml-exp.tsv.gz", 30), 0, 60).Clone()
	spots, only, faint, flat, wrong := x.Clone(), x.Clone(), x.Clone(), x.Clone(), x.Clone()
	for i := range x.Data {
		flat.Data[i], only.Data[i], faint.Data[i] = 3, 3, 3
		if i*7%11 == 0 {
			spots.Data[i], only.Data[i], faint.Data[i] = math.NaN(), 0, 3e-9
			wrong.Data[i] = x.Data[(i*31+7)%len(x.Data)]
		}
	}
	fit := func(x Mat, opts ...FitOption) Mat {
		return Fitted(t, FitBQMF, x, 3, append(opts, WithMissingValues())...).Reconstruct()
	}
	few := WithEpochs(3)
	missing := fingerprint(fit(spots, few))
	for what, same := range map[string]bool{
		"all 3":             fingerprint(fit(x, few, WithCellWeights(flat))) == fingerprint(fit(x, few)),
		"0":                 fingerprint(fit(wrong, few, WithCellWeights(only))) == missing,
		"0 where x has NaN": fingerprint(fit(spots, few, WithCellWeights(only))) == missing,
	} {
		if !same {
			t.Error(what + ": other bits")
		}
	}
	off := func(m Mat) (sum float64) {
		for i, v := range x.Data {
			if i*7%11 == 0 {
				sum += math.Abs(m.Data[i] - v)
			}
		}
		return sum
	}
	a, b, c := off(fit(spots)), off(fit(wrong, WithCellWeights(faint))), off(fit(wrong))
	if !(b < 1.02*a && b < 0.8*c) {
		t.Errorf("cells that are noise are off by %v, missing %v, weighing all %v", b, a, c)
	}
}

// TestBQMFWeightsOfAnySize: a model is finite by weights of any size.
func TestBQMFWeightsOfAnySize(t *testing.T) {
	t.Parallel()
	x := Part(first(toy(0), 8), 0, 15)
	times, cells := make([]float64, x.Cols), x.Clone()
	for _, far := range []float64{1e-60, 1e60} {
		for j := range times {
			times[j] = 1
			for i := range x.Rows {
				cells.Set(i, j, 1)
				if (3*i+j)%4 == 1 {
					cells.Set(i, j, far)
				}
			}
			if j%3 == 1 {
				times[j] = far
			}
		}
		for _, opts := range [][]FitOption{{WithSampleWeights(times)}, {WithCellWeights(cells)},
			{WithSampleWeights(times), WithCellWeights(cells)}} {
			m := Fitted(t, FitBQMF, x, 3, opts...)
			lo, hi, err := m.Interval(0.9)
			OK(t, err)
			for _, of := range []Mat{m.U, m.V, m.Reconstruct(), lo, hi} {
				if notFinite(of.Data) >= 0 {
					t.Fatalf("%v: a model has %v", far, of)
				}
			}
			OK(t, new(BQMF).UnmarshalBinary(FileOf(t, m)))
		}
	}
}

// TestConsensusOfWeights: the fits of a consensus have the weights: cells of weight 0 are missing, and
// samples have those that are given.
func TestConsensusOfWeights(t *testing.T) {
	t.Parallel()
	x := first(toy(0), 13).Clone()
	only, holes := spotted(x, 11)
	times := make([]float64, x.Cols)
	for j := range times {
		times[j] = float64(1 + j%3)
	}
	of := func(x Mat, opts ...FitOption) *Consensus {
		return Must(FitConsensus(t.Context(), x, 2, 3, append(opts, WithEpochs(7))...))(t)
	}
	missing, plain := of(holes, WithMissingValues()), of(x)
	for s, l := range of(x, WithCellWeights(only)).Losses {
		Near(t, l, missing.Losses[s], 1e-9*l, "seed %d: the loss, by missing cells", s)
	}
	if l := of(x, WithSampleWeights(times)).Losses; l[0] == plain.Losses[0] {
		t.Error("samples weigh nothing")
	}
}
