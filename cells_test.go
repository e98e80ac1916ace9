package quantmf

// Tests of which cells a fit looks at and in which units: hidden cells, units of the matrix
// and of a row, values of either sign.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
)

// TestMissing: hidden cells have no part in a fit (what they held makes no
// difference, nor does a column of weight nothing), and are filled well.
func TestMissing(t *testing.T) {
	ctx := context.Background()
	x := first(toy(5), some([]int{160, 40}, 1)[0])
	y := holed(x, 0.1)
	if _, err := FitQMF(ctx, y, 5); err == nil {
		t.Error("NaN was taken without being told so")
	}
	n, err := FitNMF(ctx, y, 5, WithMissingValues())
	if err != nil {
		t.Fatal(err)
	}
	for e := 1; e < len(n.History); e++ {
		if n.History[e] > n.History[e-1]*(1+1e-12) {
			t.Fatalf("the loss rises in epoch %d", e)
		}
	}
	q, err := FitQMF(ctx, y, 5, WithMissingValues(), WithEpochs(60), WithLevels(8))
	if err != nil {
		t.Fatal(err)
	}
	for name, fit := range map[string]Mat{"NMF": n.Reconstruct(), "QMF": q.Reconstruct()} {
		if i := notFinite(fit.Data); i >= 0 {
			t.Fatalf("%s fills with %v", name, fit.Data[i])
		}
		// Against the mean of the row's visible cells.
		ours, means := 0.0, 0.0
		for i := range y.Rows {
			mean, k := 0.0, 0.0
			for _, v := range y.Row(i) {
				if v == v {
					mean += v
					k++
				}
			}
			mean /= k
			for j, v := range y.Row(i) {
				if v != v {
					ours += divergence.KL.Value(x.At(i, j), fit.At(i, j), 1e-9)
					means += divergence.KL.Value(x.At(i, j), mean, 1e-9)
				}
			}
		}
		t.Logf("%s: hidden cells %.3g of the divergence from row means", name, ours/means)
		if ours > 0.6*means {
			t.Errorf("%s predicts hidden cells at %v of the row means", name, ours/means)
		}
	}
	if l, err := q.Loss(y); err != nil || math.Abs(l-q.History[q.Best]) > 1e-9*l {
		t.Errorf("Loss %v, %v; History %v", l, err, q.History[q.Best])
	}
	// A full matrix gives the same model with and without the option, to rounding.
	a, _ := FitNMF(ctx, x, 5, WithEpochs(20))
	b, _ := FitNMF(ctx, x, 5, WithEpochs(20), WithMissingValues())
	closeTo(t, "V", a.V.Data, b.V.Data, 1e-10*largest(a.V.Data))
	var data *DataError
	row, col := x.Clone(), x.Clone()
	for j := range x.Cols {
		row.Set(7, j, math.NaN())
	}
	for i := range x.Rows {
		col.Set(i, 9, math.NaN())
	}
	if _, err := FitQMF(ctx, row, 2, WithMissingValues()); !errors.As(err, &data) || data.Row != 7 {
		t.Errorf("an empty row: %v", err)
	}
	if _, err := FitNMF(ctx, col, 2, WithMissingValues()); !errors.As(err, &data) || data.Col != 9 {
		t.Errorf("an empty column: %v", err)
	}
}

// TestQMFQMissing: what a hidden cell holds is not asked for, and it is filled
// better than by the mean of its row.
func TestQMFQMissing(t *testing.T) {
	ctx := context.Background()
	x := first(toy(5), 50)
	y := holed(x, 0.1)
	if _, err := FitQMFQ(ctx, y, 5); err == nil {
		t.Error("NaN was taken without being told so")
	}
	epochs := draws(30, 15, 8)
	for _, o := range some([][]FitOption{nil, {WithProjection(FrobeniusUpdates(30))},
		{WithStart(StartUniform)}}, 0, 1) {
		q, err := FitQMFQ(ctx, y, 5, append(o, WithMissingValues(), WithEpochs(epochs), WithLevels(8))...)
		if err != nil {
			t.Fatal(err)
		}
		fit := q.Reconstruct()
		for _, v := range [][]float64{fit.Data, q.U.Data, q.V.Data, q.History} {
			if i := notFinite(v); i >= 0 {
				t.Fatalf("%v in the model", v[i])
			}
		}
		ours, means := 0.0, 0.0
		for i := range y.Rows {
			mean, k := 0.0, 0.0
			for _, v := range y.Row(i) {
				if v == v {
					mean += v
					k++
				}
			}
			for j, v := range y.Row(i) {
				if v != v {
					ours += divergence.KL.Value(x.At(i, j), fit.At(i, j), 1e-9)
					means += divergence.KL.Value(x.At(i, j), mean/k, 1e-9)
				}
			}
		}
		t.Logf("%v: loss %.3g, hidden cells %.3g of the divergence from row means", q.projection,
			q.History[q.Best], ours/means)
		if len(o) == 0 && ours > 0.6*means {
			t.Errorf("hidden cells at %v of the row means", ours/means)
		}
		if l, err := q.Loss(y); err != nil || math.Abs(l-q.History[q.Best]) > 1e-9*l {
			t.Errorf("Loss %v, %v; History %v", l, err, q.History[q.Best])
		}
		n, err := q.Normalize(y)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range y.Data {
			if (v != v) != (n.Data[i] != n.Data[i]) {
				t.Fatalf("cell %d, %v, is normalised to %v", i, v, n.Data[i])
			}
		}
		if v, err := q.Transform(ctx, y); err != nil || notFinite(v.Data) >= 0 {
			t.Errorf("new samples with missing cells: %v", err)
		}
	}
	// A full matrix gives the same model with and without the option, to rounding.
	a, err := FitQMFQ(ctx, x, 5, WithEpochs(3))
	if err != nil {
		t.Fatal(err)
	}
	b, err := FitQMFQ(ctx, x, 5, WithEpochs(3), WithMissingValues())
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "V", a.V.Data, b.V.Data, 0)
	var data *DataError
	var option *OptionError
	row, col := x.Clone(), x.Clone()
	for j := range x.Cols {
		row.Set(7, j, math.NaN())
	}
	for i := range x.Rows {
		col.Set(i, 9, math.NaN())
	}
	if _, err := FitQMFQ(ctx, row, 2, WithMissingValues()); !errors.As(err, &data) || data.Row != 7 {
		t.Errorf("an empty row: %v", err)
	}
	if _, err := FitQMFQ(ctx, col, 2, WithMissingValues()); !errors.As(err, &data) || data.Col != 9 {
		t.Errorf("an empty column: %v", err)
	}
	for _, o := range []FitOption{WithMissingValues(), WithValidation(0.1)} {
		if _, err := FitQMFQ(ctx, x, 2, WithProjection(TruncatedSVD()), o); !errors.As(err, &option) ||
			option.Option != "WithProjection" {
			t.Errorf("a truncated SVD with hidden cells: %v", err)
		}
	}
}

// TestValidationOfConstants: a row that is constant but for hidden cells counts
// among the held-out cells before the first epoch as after it.
func TestValidationOfConstants(t *testing.T) {
	x := toy(4)
	for i := range 20 {
		clear(x.Row(i))
		x.Set(i, i, 3)
	}
	m, err := FitQMF(context.Background(), x, 4, WithValidation(0.3), WithEpochs(0))
	if err != nil {
		t.Fatal(err)
	}
	c := qmfDefaults()
	c.validation = 0.3
	hidden, err := newCells(x, &c.settings)
	if err != nil {
		t.Fatal(err)
	}
	want, alone := 0.0, 0
	fit := m.Reconstruct()
	for i := range x.Rows {
		want += hidden.HeldLoss(divergence.KL, fit.Row(i), i, divergence.LeastT, nil)
		if i < 20 && hidden.IsHeld(i, i) {
			alone++
		}
	}
	if want /= float64(hidden.HeldOut); alone == 0 || math.Abs(m.Validation[0]-want) > 1e-9*want {
		t.Errorf("%d such rows; Validation %v, the model's own loss %v", alone, m.Validation[0], want)
	}
}

func timesPower(x Mat, e int) Mat {
	y := x.Clone()
	for i, v := range y.Data {
		y.Data[i] = math.Ldexp(v, e)
	}
	return y
}

// TestUnits: x in another unit, a power of 4, gives the same fit in that unit.
func TestUnits(t *testing.T) {
	x := toy(3)
	x.Rows, x.Cols = 20, 15
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			x.Set(i, j, v+0.01) // zeros have no place under all losses
		}
	}
	ctx := context.Background()
	for turn, beta := range some([]float64{-2, -1, 0, 0.5, 1, 1.5, 2, 3, 4}, 0, 5) {
		units := []int{-150, 190}
		if long {
			units = []int{-150, -40, 40, 190}
		} else if !testing.Short() {
			units = units[turn%2:][:1]
		}
		opts := []FitOption{WithLoss(Beta(beta)), WithEpochs(8), WithValidation(0.1)}
		n, err := FitNMF(ctx, x, 4, opts...)
		if err != nil {
			t.Fatal(err)
		}
		q, err := FitQMF(ctx, x, 4, opts...)
		if err != nil {
			t.Fatal(err)
		}
		two, err := FitQMFQ(ctx, x, 4, append(opts, WithProjection(KLUpdates(5)), WithEpochs(3))...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range units {
			unit := math.Ldexp(1, e)
			y := x.Clone()
			for i := range y.Data {
				y.Data[i] *= unit
			}
			for _, m := range []struct {
				name string
				want Model
				fit  func() (Model, error)
			}{
				{"NMF", n, func() (Model, error) { return FitNMF(ctx, y, 4, opts...) }},
				{"QMF", q, func() (Model, error) { return FitQMF(ctx, y, 4, opts...) }},
				{"QMFQ", two, func() (Model, error) {
					return FitQMFQ(ctx, y, 4, append(opts, WithProjection(KLUpdates(5)), WithEpochs(3))...)
				}},
			} {
				got, err := m.fit()
				if err != nil {
					t.Errorf("%s, β %v, 2^%d: %v", m.name, beta, e, err)
					continue
				}
				compare := func(what string, of func(Model, Mat) (float64, error)) {
					a, err1 := of(m.want, x)
					b, err2 := of(got, y)
					if b /= math.Pow(unit, beta); err1 != nil || err2 != nil || !(math.Abs(b-a) <= 1e-6*a) {
						t.Errorf("%s, β %v, 2^%d: %s %v, want %v; %v %v", m.name, beta, e, what, b, a, err1,
							err2)
					}
				}
				compare("loss", func(m Model, x Mat) (float64, error) { return m.Loss(x) })
				compare("score", func(m Model, x Mat) (float64, error) { return m.Score(ctx, x) })
			}
		}
	}
}

// TestFarUnits: what is fitted in units of 2^e is what is fitted in those of the matrix,
// to the bit where nothing leaves the range of numbers, and new samples are placed alike.
func TestFarUnits(t *testing.T) {
	x := near1(3, 12, 17)
	ctx := context.Background()
	for turn, l := range some([]Loss{KL, Frobenius, 0.5, 1.5, 4}, 0, 4) {
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
			for at, e := range some([]int{-960, -560, -466, -266, 180}, 0, 4) {
				// each loss in two or three of the units
				if !long && !testing.Short() && (turn+at)%2 > 0 && (turn+at)%5 > 0 {
					continue
				}
				y := timesPower(x, e)
				got, err := fit(y, opts...)
				if err != nil {
					t.Errorf("β %v, %s, 2^%d: %v", l, name, e, err)
					continue
				}
				allFinite(t, name, got, y)
				if back := timesPower(got.Reconstruct(), -e); !slices.Equal(back.Data,
					want.Reconstruct().Data) &&
					largestDifference(back.Data, want.Reconstruct().Data) > 1e-13 {
					t.Errorf("β %v, %s, 2^%d: another fit", l, name, e)
				}
				type holder interface{ common() *Factorisation }
				a, b, unit := want.(holder).common(), got.(holder).common(), math.Exp2(float64(l)*float64(e))
				for k, v := range append(slices.Clone(a.History), a.Validation...) {
					if there := append(slices.Clone(b.History),
						b.Validation...); len(b.Validation) != len(a.Validation) ||
						math.Abs(there[k]-v*unit) > 1e-9*v*unit+5e-324 {
						t.Errorf("β %v, %s, 2^%d: losses %v, want %v times %v", l, name, e, there, v, unit)
						break
					}
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
				o := []FitOption{WithLoss(l), WithEpochs(5),
					WithProgress(func(p Progress) error { told = p.Loss; return nil })}
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
			if d := largestDifference(timesPower(got.Reconstruct(), -e).Data,
				want.Reconstruct().Data); d > 1e-6 {
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
			if end := history[len(history)-1]; math.Abs(end-loss) > 1e-9*loss ||
				math.Abs(history[0]) > 1e3*loss {
				t.Errorf("β %v, %s: History %v, Loss %v", l, name, history, loss)
			}
		}
	}
}

// TestRowsApart: maps take a row up to 2^100 below the largest, and say of a smaller one that it should be
// rescaled; an NMF takes any.
func TestRowsApart(t *testing.T) {
	x := near1(5, 14, 40)
	largest := slices.Max(x.Data)
	for _, below := range []float64{0x1p-99, 0x1p-101, 0x1p-700} {
		y := x.Clone()
		by := below * largest / slices.Max(x.Row(3))
		for j, v := range y.Row(3) {
			y.Set(3, j, v*by)
		}
		for name, fit := range fits(t.Context(), 3) {
			t.Run(name+" "+ftoa(below), func(t *testing.T) {
				m, err := fit(y, WithEpochs(3))
				if name == "NMF" || below > 0x1p-100 {
					if err != nil {
						t.Fatal(err)
					}
					allFinite(t, name, m, y)
					return
				}
				var bad *DataError
				if !errors.As(err, &bad) || bad.Row != 3 || !strings.Contains(bad.Problem, "rescale") {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// TestSignedShift: a constant added to every row is added to what is fitted, and
// nothing else changes.
func TestSignedShift(t *testing.T) {
	ctx := context.Background()
	x := scores(2, 18, 30)
	y := x.Clone()
	shift := make([]float64, x.Rows)
	for i := range shift {
		// A multiple of what rounds off in x, so that x + shift is exact.
		for j, v := range x.Row(i) {
			x.Set(i, j, math.Round(v*1024)/1024)
		}
		shift[i] = float64(3*i%7-3) * 4
		for j, v := range x.Row(i) {
			y.Set(i, j, v+shift[i])
		}
	}
	for name, fit := range signedFits(ctx, 2) {
		epochs := WithEpochs(some([]int{6, 2}, 1)[0])
		a, err1 := fit(x, epochs)
		b, err2 := fit(y, epochs)
		if err1 != nil || err2 != nil {
			t.Fatal(name, err1, err2)
		}
		want, got := a.Reconstruct(), b.Reconstruct()
		for i := range want.Rows {
			for j, v := range want.Row(i) {
				if d := got.At(i, j) - v - shift[i]; math.Abs(d) > 1e-12 {
					t.Fatalf("%s: (%d, %d) is off by %v", name, i, j, d)
				}
			}
		}
		la, _ := a.Loss(x)
		lb, _ := b.Loss(y)
		if math.Abs(la-lb) > 1e-12*la {
			t.Errorf("%s: losses %v, %v", name, la, lb)
		}
		va, err1 := a.Transform(ctx, x)
		vb, err2 := b.Transform(ctx, y)
		if err1 != nil || err2 != nil {
			t.Fatal(name, err1, err2)
		}
		if d := largestDifference(va.Data, vb.Data); d > 1e-3*largest(va.Data) {
			// Where a loss is flat V is not determined, and the two are as good.
			sa, err1 := a.Score(ctx, x)
			sb, err2 := b.Score(ctx, y)
			if err1 != nil || err2 != nil || math.Abs(sa-sb) > 1e-5*sa {
				t.Errorf("%s: new samples differ by %v, their losses are %v, %v: %v, %v", name, d, sa, sb,
					err1, err2)
			}
		}
	}
}

// TestSignedErrors: who does not take a negative value says who does.
func TestSignedErrors(t *testing.T) {
	ctx := context.Background()
	x := scores(5, 5, 6)
	for _, c := range []struct {
		name string
		fit  func() error
		says string
	}{
		{"NMF", func() error { _, err := FitNMF(ctx, x, 2); return err }, "WithLoss(Frobenius)"},
		{"NMF, Frobenius", func() error { _, err := FitNMF(ctx, x, 2, WithLoss(Frobenius)); return err },
			"FitQMF"},
		{"QMF", func() error { _, err := FitQMF(ctx, x, 2); return err }, "WithLoss(Frobenius)"},
		{"QMF, 1.5", func() error { _, err := FitQMF(ctx, x, 2, WithLoss(1.5)); return err },
			"WithLoss(Frobenius)"},
		{"QMFQ", func() error { _, err := FitQMFQ(ctx, x, 2); return err }, "WithLoss(Frobenius)"},
		{"HeldOut", func() error {
			_, err := HeldOut(ctx, x, FitNMF, []Trial{{Rank: 1}}, Masks{Repeats: 1, Share: 0.2, Seed: 1})
			return err
		}, "WithLoss(Frobenius)"},
	} {
		var data *DataError
		if err := c.fit(); !errors.As(err, &data) || data.Row < 0 || data.Col < 0 ||
			!strings.Contains(data.Problem, c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestRatioBesideMissing: a missing cell does not lift the bound on ratios under β <= 0.
func TestRatioBesideMissing(t *testing.T) {
	x := NewMat(4, 5)
	for i := range x.Data {
		x.Data[i] = float64(1 + i)
	}
	x.Set(1, 2, 1e-40)
	for _, hole := range []int{0, 19} { // before the largest and after it
		y := x.Clone()
		y.Data[hole] = math.NaN()
		_, err := FitNMF(t.Context(), y, 2, WithLoss(Beta(0)), WithMissingValues())
		var bad *DataError
		if !errors.As(err, &bad) || bad.Row != 1 || bad.Col != 2 {
			t.Errorf("a missing cell at %d: %v", hole, err)
		}
	}
}

// TestNearlyZero: under a β a little above 0 a value that vanishes beside the others is refused as
// 0 is: its divergence would be 1/β.
func TestNearlyZero(t *testing.T) {
	for _, v := range []float64{0, 5e-324, 1e-61, 1e-40} {
		x, _ := MatOf([]float64{1, 1, v, 1}, []float64{1, 1, 1, 24})
		for _, beta := range []float64{6.9e-322, 1e-300, 1e-10} {
			var data *DataError
			if m, err := FitNMF(t.Context(), x, 1, WithLoss(Beta(beta)), WithEpochs(3)); !errors.As(err,
				&data) || data.Row != 0 || data.Col != 2 {
				t.Errorf("%g under β = %g: %v, %+v", v, beta, err, m)
			}
		}
	}
}

// TestSubnormalSpan: the visible values of a row may differ by less than numbers have digits for.
func TestSubnormalSpan(t *testing.T) {
	for _, beta := range []float64{1, 2, 3, 4} {
		x := NewMat(3, 7)
		x.Data[0], x.Data[1] = 1, 5e-324
		for seed := range uint64(4) {
			m, err := FitQMF(t.Context(), x, 1, WithLoss(Beta(beta)), WithEpochs(3), WithValidation(.3),
				WithEnds(EndsPinned), WithLevels(2), WithSeed(seed))
			if err != nil {
				t.Fatal(err)
			}
			allFinite(t, "β = "+ftoa(beta), m, x)
		}
	}
}
