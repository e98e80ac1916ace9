package account_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// table is positive, d × n, and every row goes up and down.
func table(d, n int) quantmf.Mat {
	x := quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Set(i, j, 2+math.Sin(float64(i+j*(1+i%3)))+float64(i%2)*math.Exp(float64(j%5)))
		}
	}
	return x
}

// TestOf: the account of a model of each kind says what the model says when it is asked, and its curves are
// the maps.
func TestOf(t *testing.T) {
	t.Parallel()
	ctx, x := context.Background(), table(9, 14)
	nmf := Must(quantmf.FitNMF(ctx, x, 2, quantmf.WithEpochs(4)))(t)
	qmf := Must(quantmf.FitQMF(ctx, x, 2, quantmf.WithEpochs(3)))(t)
	qmfq := Must(quantmf.FitQMFQ(ctx, x, 2, quantmf.WithEpochs(2)))(t)
	bqmf := Must(quantmf.FitBQMF(ctx, x, 2))(t)
	nmf.Best-- // the best epoch is not the last
	bqmf.Best--
	for _, c := range []struct {
		method string
		model  quantmf.Model
		of     *quantmf.Factorisation
		epochs int
		levels int
		at     func(i int, w float64) (float64, error) // nil without maps
	}{
		{"NMF", nmf, &nmf.Factorisation, nmf.Best, 0, nil},
		{"QMF", qmf, &qmf.Factorisation, qmf.Best, qmf.Quantiles.Cols,
			func(i int, w float64) (float64, error) { m, err := qmf.Map(i); return m.At(w), err }},
		{"QMFQ", qmfq, &qmfq.Factorisation, qmfq.Best, 0,
			func(i int, w float64) (float64, error) { m, err := qmfq.Inflate(i); return m.At(w), err }},
		{"BQMF", bqmf, &bqmf.Factorisation, len(bqmf.History) - 1, 0,
			func(i int, w float64) (float64, error) { m, err := bqmf.Map(i); return m.At(w), err }},
	} {
		a := Must(account.Of(c.model, x, nil))(t)
		if a.Method != c.method || a.Epochs != c.epochs || a.Levels != c.levels ||
			(a.Began == "") != (c.method != "QMF") {
			t.Errorf("%s: %q of %d epochs, %d levels, begun %q", c.method, a.Method, a.Epochs, a.Levels,
				a.Began)
		}
		if len(a.Loss) != c.of.Best+1 || a.Loss[c.of.Best] != c.of.History[c.of.Best] {
			t.Errorf("%s: %d losses of %d", c.method, len(a.Loss), c.of.Best+1)
		}
		if (a.Normalized.Rows > 0) != (c.method == "QMFQ") || (len(a.Bend) > 0) != (c.at != nil) ||
			(a.Curves.Rows > 0) != (c.at != nil) {
			t.Errorf("%s: %d rows of T'(X), %d bends, %d curves", c.method, a.Normalized.Rows, len(a.Bend),
				a.Curves.Rows)
		}
		goodness, top := Must(c.model.Goodness(x))(t), Must(c.model.TopFeatures(x, account.TopShown))(t)
		if !slices.Equal(a.Goodness, goodness) || !slices.EqualFunc(a.TopFeatures, top, slices.Equal) ||
			len(a.TopSamples) != a.V.Rows || len(a.TopSamples[0]) != account.TopShown {
			t.Errorf("%s: goodness %v, top features %v, top samples of %d components", c.method, a.Goodness,
				a.TopFeatures, len(a.TopSamples))
		}
		clear(goodness) // which is taken as it is
		if a := Must(account.Of(c.model, x, goodness))(t); a.Goodness[0] != goodness[0] ||
			a.TopFeatures[0][0].Value != 0 {
			t.Errorf("%s: goodness %v of zeros", c.method, a.Goodness)
		}
		for i := range a.Curves.Rows {
			low, high := math.Inf(1), math.Inf(-1)
			for j := range x.Cols {
				w := 0.0
				for k := range a.V.Rows {
					w += float64(a.U.At(i, k) * a.V.At(k, j))
				}
				low, high = min(low, w), max(high, w)
			}
			for s, w := range map[int]float64{0: low, account.Steps / 2: low + (high-low)/2,
				account.Steps: high} {
				want := Must(c.at(i, w))(t)
				if got := a.Curves.At(i, s); !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
					t.Errorf("%s: feature %d, step %d: %v, the map has %v at %v", c.method, i, s, got, want,
						w)
				}
			}
		}
	}
}

// TestOfAnotherMatrix: the error of a matrix of another shape is the one of Goodness.
func TestOfAnotherMatrix(t *testing.T) {
	t.Parallel()
	m := Must(quantmf.FitNMF(context.Background(), table(9, 14), 2, quantmf.WithEpochs(1)))(t)
	var shape *quantmf.ShapeError
	if _, err := account.Of(m, table(8, 14), nil); !errors.As(err, &shape) {
		t.Errorf("%v", err)
	}
}

// TestBegun: where a fit started, and how much its maps were shrunk.
func TestBegun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		start           quantmf.Start
		shrinkage, line float64
		want            string
	}{
		{quantmf.StartAuto, 0, 0, "from given factors; maps bend freely"},
		{quantmf.StartScores, 0.5, 0,
			"from an NMF of each feature's ranks (as normal scores); maps are pulled towards straight " +
				"lines, as if 0.5 more samples lay on them"},
		{quantmf.StartNMF, 20, 0.9, "from an NMF of the matrix; a straight line is 90 % of every map; maps " +
			"are pulled towards straight lines, as if 20 more samples lay on them"},
		{quantmf.StartUniform, 0, 0, "at random; maps bend freely"},
	} {
		if got := account.Begun(&quantmf.QMF{Start: c.start, Shrinkage: c.shrinkage,
			Line: c.line}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w        []float64
		from, to float64
	}{{[]float64{3, -1, 2}, -1, 3}, {[]float64{5, 5}, 5, 10}, {[]float64{-4}, -4, 0},
		{[]float64{0, 0}, 0, 1}, {[]float64{0, 1, 2, 3, 99}, 0, 3}} {
		if from, to := account.Span(c.w); from != c.from || to != c.to {
			t.Errorf("%v: from %v to %v", c.w, from, to)
		}
	}
}

// TestRemarks: few samples and many components are told of, and neither of a BQMF.
func TestRemarks(t *testing.T) {
	t.Parallel()
	of := func(d, n, k int) quantmf.Factorisation {
		return quantmf.Factorisation{U: quantmf.NewMat(d, k), V: quantmf.NewMat(k, n)}
	}
	for _, c := range []struct {
		model quantmf.Model
		want  string // how the only warning begins, "" for none
	}{
		{&quantmf.NMF{Factorisation: of(50, 40, 10)}, ""},
		{&quantmf.QMF{Factorisation: of(50, 39, 10)},
			"there are 39 samples: of fewer than 40 a fit explains "},
		{&quantmf.QMFQ{Factorisation: of(4, 3, 3)}, "k = 3 can repeat any 4 × 3 matrix as it is"},
		{&quantmf.NMF{Factorisation: of(30, 40, 100)},
			"k = 100 can repeat any 30 × 40 matrix as it is: take a k far below 30"},
		{&quantmf.BQMF{Factorisation: of(4, 3, 3)}, ""},
	} {
		got := account.Remarks(c.model)
		if c.want == "" && len(got) > 0 || c.want != "" &&
			(len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestPredicted: what a BQMF says it predicts of unseen values is what it predicts of values that were
// hidden; of other models that is not known.
func TestPredicted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	const d, n = 80, 20
	for _, structure := range []float64{0, 1} {
		r := rand.New(rand.NewPCG(3, 4))
		x, holes, v := quantmf.NewMat(d, n), quantmf.NewMat(d, n), make([]float64, n)
		for j := range v {
			v[j] = r.NormFloat64()
		}
		for i := range d {
			u := structure * r.NormFloat64()
			for j := range n {
				x.Set(i, j, 5+u*v[j]+r.NormFloat64())
			}
		}
		copy(holes.Data, x.Data)
		for k := range holes.Data {
			if r.IntN(8) == 0 {
				holes.Data[k] = math.NaN()
			}
		}
		m := Must(quantmf.FitBQMF(t.Context(), holes, 0, quantmf.WithLoss(quantmf.Frobenius),
			quantmf.WithMissingValues()))(t)
		a := Must(account.Of(m, holes, nil))(t)
		left, spread := 0.0, 0.0
		for i := range d {
			mean, seen := 0.0, 0.0
			for _, w := range holes.Row(i) {
				if w == w {
					seen++
					mean += (w - mean) / seen
				}
			}
			for j, w := range holes.Row(i) {
				if w != w {
					left += math.Pow(x.At(i, j)-a.Fitted.At(i, j), 2)
					spread += math.Pow(x.At(i, j)-mean, 2)
				}
			}
		}
		hidden, told := 1-left/spread, a.Predicted
		if math.Abs(told-hidden) > 0.08 || structure == 0 && told > 0.01 || structure == 1 && told < 0.2 {
			t.Errorf("structure %v: predicted %.3f of hidden values, told %.3f", structure, hidden, told)
		}
	}
	nmf := Must(quantmf.FitNMF(t.Context(), table(9, 14), 2, quantmf.WithEpochs(2)))(t)
	if a, err := account.Of(nmf, table(9, 14), nil); err != nil || a.Predicted == a.Predicted {
		t.Errorf("of an NMF: %v, %v", a.Predicted, err)
	}
}
