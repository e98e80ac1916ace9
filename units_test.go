package quantmf

// Tests of the units in which fits see x: far out, apart from row to row, signed.

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// near1 returns rank-two data with noise, whose largest value lies in [1,4): so the
// units of x are those that a fit chooses for it elsewhere.
func near1(seed uint64, d, n int) Mat {
	r := random.Split(seed, 77)
	y := NewMat(d, n)
	for i := range d {
		a := r.Float64()
		for j := range n {
			s := float64(j) / float64(n)
			y.Set(i, j, 0.1+a*s+(1-a)*4*s*(1-s)+0.2*r.Float64())
		}
	}
	_, e := math.Frexp(slices.Max(y.Data))
	return timesPower(y, -((e - 1) &^ 1))
}

func timesPower(x Mat, e int) Mat {
	y := x.Clone()
	for i, v := range y.Data {
		y.Data[i] = math.Ldexp(v, e)
	}
	return y
}

// fits returns the fits of the three models, QMFQ by its quickest projection.
func fits(ctx context.Context, rank int) map[string]func(x Mat, opts ...FitOption) (Model, error) {
	return map[string]func(x Mat, opts ...FitOption) (Model, error){
		"NMF": func(x Mat, opts ...FitOption) (Model, error) { return FitNMF(ctx, x, rank, opts...) },
		"QMF": func(x Mat, opts ...FitOption) (Model, error) { return FitQMF(ctx, x, rank, opts...) },
		"QMFQ": func(x Mat, opts ...FitOption) (Model, error) {
			return FitQMFQ(ctx, x, rank, append(opts, WithProjection(KLUpdates(3)))...)
		},
	}
}

// numbers returns all that a model says of itself and of new samples like x.
func numbers(t testing.TB, m Model, x Mat) [][]float64 {
	t.Helper()
	out := [][]float64{m.Reconstruct().Data, m.Shares().Data}
	history := func(u, v Mat, h, val []float64) { out = append(out, u.Data, v.Data, h, val) }
	switch m := m.(type) {
	case *NMF:
		history(m.U, m.V, m.History, m.Validation)
	case *QMF:
		history(m.U, m.V, m.History, m.Validation)
		out = append(out, m.Quantiles.Data, m.Weights.Data, m.Bend(), m.MarginalErrors())
	case *QMFQ:
		history(m.U, m.V, m.History, m.Validation)
		y, err := m.Normalize(x)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, y.Data, m.Bend())
	}
	ctx := context.Background()
	v, err1 := m.Transform(ctx, x)
	score, err2 := m.Score(ctx, x)
	loss, err3 := m.Loss(x)
	g, err4 := m.Goodness(x)
	b, err5 := m.MarshalBinary()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	out = append(out, v.Data, []float64{score, loss})
	for _, g := range g {
		out = append(out, []float64{g.Divergence, g.Spread, g.Explained})
	}
	if _, err := UnmarshalModel(b); err != nil {
		t.Fatalf("the file cannot be read: %v", err)
	}
	return out
}

func allFinite(t testing.TB, name string, m Model, x Mat) {
	t.Helper()
	for i, v := range numbers(t, m, x) {
		if j := notFinite(v); j >= 0 {
			t.Fatalf("%s: numbers %d: entry %d is %v", name, i, j, v[j])
		}
	}
}

// TestFarUnits: what is fitted in units of 2^e is what is fitted in those of the matrix,
// to the bit where nothing leaves the range of numbers, and new samples are placed alike.
func TestFarUnits(t *testing.T) {
	x := near1(3, 12, 17)
	ctx := context.Background()
	for _, l := range []Loss{KL, Frobenius, 0.5, 1.5, 4} {
		for name, fit := range fits(ctx, 3) {
			opts := []FitOption{WithLoss(l), WithEpochs(4), WithValidation(0.1)}
			want, err := fit(x, opts...)
			if err != nil {
				t.Fatal(err)
			}
			vWant, err := want.Transform(ctx, x)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range []int{-960, -560, -466, -266, 180} {
				y := timesPower(x, e)
				got, err := fit(y, opts...)
				if err != nil {
					t.Errorf("β %v, %s, 2^%d: %v", l, name, e, err)
					continue
				}
				allFinite(t, name, got, y)
				if back := timesPower(got.Reconstruct(), -e); !slices.Equal(back.Data, want.Reconstruct().Data) && largestDifference(back.Data, want.Reconstruct().Data) > 1e-13 {
					t.Errorf("β %v, %s, 2^%d: another fit", l, name, e)
				}
				v, err := got.Transform(ctx, y)
				if name == "NMF" {
					v = timesPower(v, -e/2)
				}
				if err != nil || largestDifference(v.Data, vWant.Data) > 1e-6*largest(vWant.Data) {
					t.Errorf("β %v, %s, 2^%d: new samples elsewhere: %v", l, name, e, err)
				}
			}
		}
	}
}

// TestFarLosses: what a fit tells of its loss and takes as a penalty is in the units of x.
func TestFarLosses(t *testing.T) {
	x := near1(4, 10, 15)
	const e = -266
	y := timesPower(x, e)
	for _, l := range []Loss{KL, Frobenius, 0.5, 3} {
		unit := math.Exp2(float64(l) * e)
		for name, fit := range fits(context.Background(), 2) {
			told := 0.0
			opts := func(lambda float64) []FitOption {
				o := []FitOption{WithLoss(l), WithEpochs(5), WithProgress(func(p Progress) error { told = p.Loss; return nil })}
				if name != "QMFQ" {
					o = append(o, WithPenalty(lambda))
				}
				return o
			}
			want, err := fit(x, opts(0.5)...)
			if err != nil {
				t.Fatal(err)
			}
			before, lambda := told, 0.5*unit
			if name == "NMF" { // of the factors themselves, whose unit is the root
				lambda *= math.Ldexp(1, -e/2)
			}
			got, err := fit(y, opts(lambda)...)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(told-before*unit) > 1e-9*told {
				t.Errorf("β %v, %s: progress tells of %v, want %v", l, name, told, before*unit)
			}
			if d := largestDifference(timesPower(got.Reconstruct(), -e).Data, want.Reconstruct().Data); d > 1e-6 {
				t.Errorf("β %v, %s: the penalty has another weight: the fit differs by %v", l, name, d)
			}
			loss, _ := got.Loss(y)
			var history []float64
			switch m := got.(type) {
			case *NMF:
				history = m.History
			case *QMF:
				history = m.History
			case *QMFQ:
				history = m.History
			}
			if end := history[len(history)-1]; math.Abs(end-loss) > 1e-9*loss || math.Abs(history[0]) > 1e3*loss {
				t.Errorf("β %v, %s: History %v, Loss %v", l, name, history, loss)
			}
		}
	}
}

func largestDifference(a, b []float64) float64 {
	top := 0.0
	for i := range a {
		if d := math.Abs(a[i] - b[i]); !(d <= top) {
			top = d
		}
	}
	return top
}

// TestRowsApart: a row far below the others has a map of its own, which fits it as well
// as if it were not, and takes no part in what the others are fitted by.
func TestRowsApart(t *testing.T) {
	ctx := context.Background()
	x := near1(5, 14, 40)
	for _, c := range []struct {
		l Loss
		e int
	}{{KL, -560}, {Frobenius, -560}, {Beta(4), -266}, {Beta(1.5), -700}} {
		y := x.Clone()
		for j, v := range y.Row(3) {
			y.Set(3, j, math.Ldexp(v, c.e))
		}
		for name, fit := range fits(ctx, 3) {
			m, err := fit(y, WithLoss(c.l), WithEpochs(8))
			if err != nil {
				t.Fatal(err)
			}
			allFinite(t, name, m, y)
			if name == "NMF" {
				continue // has no scale for a row
			}
			near, err := fit(x, WithLoss(c.l), WithEpochs(8))
			if err != nil {
				t.Fatal(err)
			}
			g, _ := m.Goodness(y)
			h, _ := near.Goodness(x)
			if g[3].Explained < h[3].Explained-0.3 {
				t.Errorf("β %v, %s: the small row is explained to %v, among its like to %v", c.l, name, g[3].Explained, h[3].Explained)
			}
			rest := Mat{Rows: 3, Cols: y.Cols, Stride: y.Stride, Data: y.Data}
			if _, err := HeldOut(ctx, rest, FitQMF, []Trial{{Rank: 2, Options: []FitOption{WithLoss(c.l), WithEpochs(2)}}}, Masks{Repeats: 1, Share: 0.1, Seed: 1}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHeldOutIsFinite: HeldOut has a number or an error.
func TestHeldOutIsFinite(t *testing.T) {
	ctx := context.Background()
	for _, l := range []Loss{KL, Frobenius, 1.5, 4} {
		for _, x := range []Mat{NewMat(6, 9), timesPower(near1(2, 6, 9), -560)} {
			trials := []Trial{{Rank: 2, Options: []FitOption{WithLoss(l), WithEpochs(3)}}}
			for name, held := range map[string]func() ([]Prediction, error){
				"NMF": func() ([]Prediction, error) {
					return HeldOut(ctx, x, FitNMF, trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				},
				"QMF": func() ([]Prediction, error) {
					return HeldOut(ctx, x, FitQMF, trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				},
				"QMFQ": func() ([]Prediction, error) {
					return HeldOut(ctx, x, FitQMFQ, trials, Masks{Repeats: 2, Share: 0.2, Seed: 1})
				},
			} {
				p, err := held()
				if err != nil || p[0].Mean-p[0].Mean != 0 || notFinite(p[0].Losses) >= 0 {
					t.Errorf("β %v, %s: %v, %v", l, name, p, err)
				}
			}
		}
	}
}

// TestInitialFactors: they are taken as they are, or refused where they are.
func TestInitialFactors(t *testing.T) {
	ctx := context.Background()
	x := near1(7, 5, 6)
	fill := func(rows, cols int, v float64) Mat {
		m := NewMat(rows, cols)
		for i := range m.Data {
			m.Data[i] = v * (1 + float64(i%3)/8)
		}
		return m
	}
	for name, fit := range fits(ctx, 2) {
		for _, v := range []float64{1e-310, 1e-200, 1e-140, 1e-40, 1, 1e20, 1e140} {
			u := fill(5, 2, 1)
			u.Set(2, 1, v)
			for c := range 2 {
				for i := range 5 {
					if v < 1 {
						u.Set(i, c, v)
					}
				}
			}
			m, err := fit(x, WithInit(u, fill(2, 6, 1)), WithEpochs(0))
			if v == 1e-40 || v == 1 || v == 1e20 {
				if err != nil {
					t.Errorf("%s, %v: %v", name, v, err)
					continue
				}
				allFinite(t, name, m, x)
				if n, is := m.(*NMF); is && !slices.Equal(n.U.Data, u.Data) {
					t.Errorf("%s starts from %v, not %v", name, n.U, u)
				}
				if q, is := m.(*QMF); is && v != 1e20 { // the others are raised there
					closeTo(t, "U", q.U.Data, u.Data, 1e-15*v)
				}
				continue
			}
			var data *DataError
			if !errors.As(err, &data) || data.Row < 0 || data.Col < 0 {
				t.Errorf("%s takes an initial factor of %v: %v", name, v, err)
			}
		}
	}
}

// TestRawPlaces: what SquashNone transports as it is must be in reach.
func TestRawPlaces(t *testing.T) {
	ctx := context.Background()
	for _, v := range []float64{1e40, 1e13, 1e-170} {
		x := near1(8, 6, 7)
		x.Set(4, 5, v)
		for j := range x.Cols {
			if v < 1 {
				x.Set(4, j, v*float64(j+1))
			}
		}
		_, err := FitQMFQ(ctx, x, 2, WithSquash(SquashNone), WithEpochs(3))
		var data *DataError
		if !errors.As(err, &data) || data.Row != 4 {
			t.Errorf("x of %v: %v", v, err)
		}
	}
	x := near1(8, 6, 7)
	x.Set(4, 5, 1e11)
	m, err := FitQMFQ(ctx, x, 2, WithSquash(SquashNone), WithEpochs(3))
	if err != nil {
		t.Fatal(err)
	}
	allFinite(t, "QMFQ", m, x)
}
