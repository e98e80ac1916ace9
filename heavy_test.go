package quantmf

// This file tests weights of samples and of cells in models with maps, against fits of matrices that say the
// same without them. weighed_test.go has those of NMF.

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// heavy is a small matrix with whole numbers as weights of its samples, of which some are 0.
func heavy() (x Mat, times []float64) {
	x = first(toy(0), 13).Clone()
	x.Cols = 12
	return x.Clone(), []float64{1, 3, 0, 1, 2, 1, 1, 4, 1, 0, 2, 1}
}

// begun are factors of rank 3 to start from.
func begun(d, n int) (u, v Mat) {
	u, v = NewMat(d, 3), NewMat(3, n)
	for i := range u.Data {
		u.Data[i] = 1 + float64(i*7%11)/3
	}
	for i := range v.Data {
		v.Data[i] = 1 + float64(i*5%13)/4
	}
	return u, v
}

// spotted are weights of the cells of x, 3 but for 0 in one of so many, and x without what weighs nothing.
func spotted(x Mat, many int) (only, hidden Mat) {
	only, hidden = x.Clone(), x.Clone()
	for i := range x.Data {
		if only.Data[i] = 3; i*7%many == 0 {
			only.Data[i], hidden.Data[i] = 0, math.NaN()
		}
	}
	return only, hidden
}

// sameWay reports losses that differ: at the start by rounding, after it by what steps make of that.
func sameWay(t *testing.T, got, want []float64, start, rest float64) {
	t.Helper()
	for e, l := range want {
		off := rest
		if e == 0 {
			off = start
		}
		if len(got) != len(want) || !(math.Abs(got[e]-l) <= off*l) {
			t.Fatalf("epoch %d has a loss of %v, want %v", e, got[e], l)
		}
	}
}

// weightedLoss is the mean divergence of x from y by weights.
func weightedLoss(l Loss, x, y, w Mat) float64 {
	total, loss := 0.0, 0.0
	for i := range x.Rows {
		for j, w := range w.Row(i) {
			if w > 0 {
				total += w
				loss += w * l.At(x.At(i, j), y.At(i, j))
			}
		}
	}
	return loss / total
}

// methodOf is that of a case by its name, and how near its losses before the first epoch are: an own QMF of a
// QMFQ has made steps before.
func methodOf(name string) (method Method, start float64) {
	if strings.HasPrefix(name, "QMFQ") {
		return MethodQMFQ, 1e-5
	}
	return MethodQMF, 1e-12
}

// TestSampleWeightsOfQMF: a fit with whole numbers as weights of samples is that of a matrix that has each
// sample as often, epoch by epoch, by every loss, squash, step and start of maps, and of a QMFQ by every
// projection; in other units of the weights, too. A sample of weight 0 of a QMF gets the coordinates that
// Transform has for it.
func TestSampleWeightsOfQMF(t *testing.T) {
	Slow(t)
	x, times := heavy()
	u, v := begun(x.Dims())
	many := repeated(v, times)
	for c := range 3 {
		for _, j := range []int{2, 9} { // which begin with the mean of the others
			v.Set(c, j, elem.Mean(many.Row(c)))
		}
	}
	holes, signed := holed(x, 0.15), x.Clone()
	for i := range signed.Data {
		signed.Data[i] -= 20
	}
	for name, of := range map[string]struct {
		x    Mat
		opts []FitOption
	}{
		"KL":              {x, nil},
		"one batch":       {x, []FitOption{WithBatch(1000)}},
		"no squash":       {x, []FitOption{WithSquash(SquashNone), WithEpsilon(0.1)}},
		"arctangent":      {x, []FitOption{WithSquash(SquashArctan)}},
		"Frobenius":       {x, []FitOption{WithLoss(Frobenius), WithEnds(EndsPinned), WithLine(0)}},
		"signed":          {signed, []FitOption{WithLoss(Frobenius)}},
		"beta":            {x, []FitOption{WithLoss(Beta(1.5))}},
		"beta by Adam":    {x, []FitOption{WithLoss(Beta(-1))}},
		"paper":           {x, []FitOption{WithStart(StartUniform), WithLine(0)}},
		"missing":         {holes, []FitOption{WithMissingValues()}},
		"shrinkage":       {x, []FitOption{WithShrinkage(5)}},
		"QMFQ":            {x, []FitOption{WithProjection(KLUpdates(4))}},
		"QMFQ, Frobenius": {x, []FitOption{WithLoss(Frobenius), WithProjection(FrobeniusUpdates(4))}},
		"QMFQ, vectors":   {x, []FitOption{WithProjection(TruncatedSVD()), WithLine(0)}},
		"QMFQ, paper": {x, []FitOption{WithProjection(KLUpdates(4)), WithStart(StartUniform),
			WithLine(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := append([]FitOption{WithLevels(4), WithEpochs(6), WithTolerance(1e-14), WithShrinkage(0),
				WithLine(0.3)}, of.opts...)
			of2 := append(opts[:len(opts):len(opts)], WithInit(u, many))
			if name == "shrinkage" { // which counts samples of the mean weight of those that take part
				of2 = append(of2, WithShrinkage(5*17./10))
			}
			method, start := methodOf(name)
			want := Fitted(t, By(method), repeated(of.x, times), 3, of2...)
			for _, scale := range []float64{1, 1e20} {
				weights := append([]float64(nil), times...)
				for j := range weights {
					weights[j] *= scale
				}
				got := Fitted(t, By(method), of.x, 3,
					append(opts, WithInit(u, v), WithSampleWeights(weights))...)
				sameWay(t, Common(got).History, Common(want).History, start, 1e-5)
				fitted, scores := got.Reconstruct(), Answer(t, got.Scores, of.x)
				off := largestDifference(repeated(fitted, times).Data, want.Reconstruct().Data)
				if most := 1e-3 * LargestOf(fitted.Data); !(off <= most) {
					t.Errorf("cells are off by %v, want at most %v", off, most)
				}
				for _, j := range []int{2, 9} {
					only := NewMat(x.Dims())
					for i := range x.Rows {
						if v := of.x.At(i, j); v == v {
							only.Set(i, j, 1)
						}
					}
					loss := weightedLoss(Common(got).loss, of.x, fitted, only)
					if method == MethodQMF && !(loss <= scores[j]*1.01) {
						t.Errorf("a sample without weight has a loss of %v, placed anew %v", loss, scores[j])
					}
				}
			}
		})
	}
}

// TestCellWeightsOfQMF: with whole numbers as weights of features a fit is that of a matrix that has each
// feature as often, and cells of weight 0 are the missing ones; weights that are all the same are none, and
// the loss is the weighted mean. Of a QMFQ cells of weight 0 are the missing ones.
func TestCellWeightsOfQMF(t *testing.T) {
	x, _ := heavy()
	d, n := x.Dims()
	u, v := begun(d, n)
	times, rows, spots, hidden, flat := make([]float64, d), NewMat(d, n), NewMat(d, n), x.Clone(),
		NewMat(d, n)
	for i := range rows.Data {
		times[i/n] = float64(1 + i/n%3)
		rows.Data[i], flat.Data[i] = times[i/n], 1e-9
		if spots.Data[i] = float64(i * 7 % 5); spots.Data[i] == 0 {
			hidden.Data[i] = math.NaN()
		}
	}
	only := spots.Clone()
	for i, w := range only.Data {
		only.Data[i] = min(w, 1)
	}
	transposed := func(m Mat) Mat { return repeated(m.T(), times).T() }
	for name, opts := range map[string][]FitOption{
		"KL":                    nil,
		"Frobenius":             {WithLoss(Frobenius)},
		"beta, by Adam":         {WithLoss(Beta(-1))},
		"validation, shrinkage": {WithValidation(0.1), WithShrinkage(5)},
		"QMFQ":                  {WithProjection(KLUpdates(4))},
		"QMFQ, Frobenius":       {WithLoss(Frobenius), WithProjection(FrobeniusUpdates(4))},
		"QMFQ, paper":           {WithProjection(KLUpdates(4)), WithStart(StartUniform), WithLine(0)},
	} {
		t.Run(name, func(t *testing.T) {
			opts := append([]FitOption{WithLevels(4), WithEpochs(5), WithTolerance(1e-14), WithShrinkage(0),
				WithLine(0.3)}, opts...)
			method, start := methodOf(name)
			if method == MethodQMF {
				opts = append(opts, WithBatch(1000))
			}
			fit := func(x, u Mat, more ...FitOption) *Factorisation {
				return Common(Fitted(t, By(method), x, 3, append(append(opts, WithInit(u, v)), more...)...))
			}
			missing := fit(hidden, u, WithMissingValues()).History
			sameWay(t, fit(hidden, u, WithCellWeights(only)).History, missing, start, 1e-6)
			if method == MethodQMFQ {
				return
			}
			if name != "validation, shrinkage" { // whose cells are others, and which counts cells
				sameWay(t, fit(x, u, WithCellWeights(rows)).History,
					fit(transposed(x), transposed(u)).History, 1e-12,
					1e-6)
			}
			sameWay(t, fit(x, u, WithCellWeights(flat)).History, fit(x, u).History, 1e-12, 1e-6)
			m := Fitted(t, FitQMF, x, 3, append(opts, WithInit(u, v), WithCellWeights(spots))...)
			if got, want := m.History[m.Best],
				weightedLoss(m.loss, x, m.Reconstruct(), spots); name != "validation, shrinkage" &&
				!(math.Abs(got-want) <= 1e-12*want) {
				t.Errorf("the loss is %v, of the formula %v", got, want)
			}
		})
	}
}

// TestWeightsOfTrials: the first trial says what hidden cells weigh, also where it is the only one.
func TestWeightsOfTrials(t *testing.T) {
	x := Lognormal(6, 8)
	weights := Trial{Rank: 1, Options: []FitOption{WithEpochs(2),
		WithSampleWeights([]float64{1, 2, 3, 4, 5, 6, 7, 8})}}
	judge := func(trials ...Trial) []float64 {
		return Hidden(t, x, FitNMF, trials, Masks{Repeats: 2})[0].Losses
	}
	one, two := judge(weights), judge(weights, weights)
	if !slices.Equal(one, two) || slices.Equal(one, judge(Trial{1, weights.Options[:1]})) {
		t.Errorf("alone %v, with another %v", one, two)
	}
}

// TestWeightsOfHidden: hidden cells are judged by their weights, and those of weight 0 are not hidden,
// whatever x has there: by HeldOut as by MethodAuto, which finds them in the part of a large matrix, too.
func TestWeightsOfHidden(t *testing.T) {
	Slow(t)
	x, _ := heavy()
	only, hidden := spotted(x, 5)
	wrong := x.Clone()
	for i, w := range only.Data {
		if w == 0 {
			wrong.Data[i] = 1e9
		}
	}
	masks := Masks{Repeats: 2}
	judge := func(x Mat, opts ...FitOption) []Prediction {
		return Hidden(t, x, FitNMF, []Trial{{Rank: 2, Options: opts}}, masks)
	}
	want, got := judge(hidden)[0], judge(wrong, WithCellWeights(only))[0]
	for r, l := range want.Losses {
		for what, p := range map[string][2]float64{"Losses": {got.Losses[r], l},
			"Baseline": {got.Baseline[r], want.Baseline[r]},
			"Relative": {got.Relative[r], want.Relative[r]}} {
			Near(t, p[0], p[1], 1e-6*p[1], "%s %d", what, r)
		}
	}
	rows := NewMat(x.Dims()) // the first row alone counts
	for i := range rows.Data {
		if rows.Data[i] = 1e-9; i < x.Cols {
			rows.Data[i] = 5
		}
	}
	p := judge(x, WithCellWeights(rows))[0]
	if first := p.Rows[0]; !(first.Loss > 0) || !(p.Rows[1].Loss < 1e-3*first.Loss) {
		t.Errorf("the rows lose %v and %v", first.Loss, p.Rows[1].Loss)
	}
	epochs := WithEpochs(20) // of so few cells Auto hides more where more count as observed
	a := Fitted(t, By(MethodAuto), hidden, 3, WithMissingValues(), epochs)
	b := Fitted(t, By(MethodAuto), wrong, 3, WithCellWeights(only), epochs)
	u := a.Reconstruct()
	Near(t, u.At(3, 4), b.Reconstruct().At(3, 4), 1e-4*u.At(3, 4), "MethodAuto")
	large := NewMat(2100, 600)
	for i := range large.Data {
		large.Data[i] = float64(i % 1009)
	}
	c := config{cellWeights: large, sampleWeights: large.Row(5)}
	opts := Must(c.weightsOfPart(large.Dims()))(t)
	part, _, err := partOf(large)
	if err != nil || len(opts) != 2 {
		t.Fatal(err, len(opts))
	}
	var of config
	for _, o := range opts {
		o.setting().check(&of)
	}
	height, columns := part.Dims()
	for j := range columns {
		Equal(t, of.sampleWeights[j], large.At(5, j*600/columns), "sample %d weighs", j)
	}
	if of.cellWeights.(Mat).At(height-1, 7) != part.(Mat).At(height-1, 7) {
		t.Error("cells have other weights than those of the part")
	}
}

// TestMemoryOfWeights: memory is counted of weights of which some are 0, and is more than without.
func TestMemoryOfWeights(t *testing.T) {
	x, times := heavy()
	d, n := x.Dims()
	for method := range MethodBQMF + 1 {
		with := Must(MemoryOf(method, d, n, 3, WithSampleWeights(times), WithCellWeights(x)))(t)
		if without := Must(MemoryOf(method, d, n, 3))(t); with.Fit <= without.Fit {
			t.Errorf("%v: %d with weights, %d without", method, with.Fit, without.Fit)
		}
	}
}
