package quantmf

// Tests of where fits start: scores, given factors, and the choice by prediction, against
// formulas written down here once more.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestStartScores: before the first epoch the factors of a fit from scores are those
// of an NMF of the normal scores of the rows, ties averaged, lifted above 0 and
// multiplied by the row's mean; entries far below a factor's mean are raised. Of more rows than trials have
// they follow no trial.
func TestStartScores(t *testing.T) {
	const d, n, k = 513, 17, 2
	r := random.Split(6, 1)
	x, scores := NewMat(d, n), NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Set(i, j, math.Exp(float64(i%9))*float64(1+r.IntN(6)))
			if r.Float64() < 0.1 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	quantile := func(p float64) float64 { // Φ⁻¹ by halving
		lo, hi := -10.0, 10.0
		for range 200 {
			if mid := (lo + hi) / 2; math.Erfc(-mid/math.Sqrt2)/2 < p {
				lo = mid
			} else {
				hi = mid
			}
		}
		return lo
	}
	lift := max(3, 0.1-quantile(0.5/n))
	for i := range d {
		seen, mean := 0.0, 0.0
		for _, v := range x.Row(i) {
			if v == v {
				seen++
				mean += v
			}
		}
		mean /= seen
		for j, v := range x.Row(i) {
			below, equal := 0.0, 0.0
			for _, o := range x.Row(i) {
				if o < v {
					below++
				} else if o == v {
					equal++
				}
			}
			scores.Set(i, j, v)
			if v == v {
				scores.Set(i, j, mean*(quantile((below+equal/2)/seen)+lift))
			}
		}
	}
	opts := []FitOption{WithStart(StartScores), WithShrinkage(0), WithMissingValues(), WithEpochs(0)}
	q := Fitted(t, FitQMF, x, k, opts...)
	Fitted(t, FitQMF, x, k, append(opts, WithLine(0), WithProgress(func(p Progress) error {
		if p.Phase == PhaseChoice {
			return errors.New("told all, a fit makes a trial that it has no use for")
		}
		return nil
	}))...)
	want := Fitted(t, FitNMF, scores, k, WithMissingValues(), WithUpdates(UpdatesMultiplicative),
		WithEpochs(100)) // few cells are seen
	for _, m := range []Mat{want.U, want.V} {
		low := 1e-3 * Mean(m.Data)
		for i := range m.Data {
			m.Data[i] = max(m.Data[i], low)
		}
	}
	NearAll(t, q.U.Data, want.U.Data, 1e-9*LargestOf(want.U.Data), "U")
	NearAll(t, q.V.Data, want.V.Data, 1e-9*LargestOf(want.V.Data), "V")
}

// TestUniformInit: the paper's form of a fit starts from the factors that it is given. From
// those that it would draw, exp of uniform numbers on [-1/2,1/2], it has the bits of a fit that draws them.
func TestUniformInit(t *testing.T) {
	x := first(toy(4), 20)
	const k = 3
	src := random.Split(7, 0)
	draw := func() float64 { return elem.Exp(src.Float64() - 0.5) }
	u, v := Drawn(x.Rows, k, draw), Drawn(k, x.Cols, draw)
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		fit := func(o ...FitOption) Model {
			return Fitted(t, By(method), x, k,
				append(o, WithEpochs(4), WithStart(StartUniform))...)
		}
		saved := func(m Model) string { return string(FileOf(t, m)) }
		drawn := saved(fit(WithSeed(7)))
		if saved(fit(WithSeed(7), WithInit(u, v))) != drawn {
			t.Errorf("%v: from the factors that it draws the fit is another", method)
		}
		w := u.Clone()
		w.Data[5] *= 2
		if saved(fit(WithSeed(7), WithInit(w, v))) == drawn {
			t.Errorf("%v: the fit does not depend on the factors that it is given", method)
		}
	}
}

// TestChoice: a fit that chooses start and shrinkage has the bits of one that is
// told them; it takes scores and free maps where curves are all that is wrong with
// a product, and shrinks maps where there is nothing but a product and noise. There it makes no epochs,
// unless it is told how far to go.
func TestChoice(t *testing.T) {
	ctx := context.Background()
	noisy, k := noisyProduct()
	for _, c := range []struct {
		name string
		x    Mat
		k    int
		want func(m *QMF) bool
	}{
		{"curves", first(toy(1), 80), 8,
			func(m *QMF) bool { return m.Start == StartScores && m.Shrinkage == 0 }},
		{"noise", noisy, k, func(m *QMF) bool { return m.Shrinkage > 0 && len(m.History) == 1 }},
	} {
		m := Fitted(t, FitQMF, c.x, c.k)
		if !c.want(m) {
			t.Errorf("%s: took %v and %v", c.name, m.Start, m.Shrinkage)
		}
		told := Fitted(t, FitQMF, c.x, c.k, WithStart(m.Start), WithShrinkage(m.Shrinkage),
			WithLine(m.Line), WithEpochs(len(m.History)-1))
		a, _ := m.MarshalBinary()
		b, _ := told.MarshalBinary()
		EqualAll(t, a, b, "%s: told what was chosen, the fit is another", c.name)
		given, err := FitQMF(ctx, c.x, c.k, WithInit(m.U, m.V), WithEpochs(1))
		if err != nil || given.Start != StartAuto || given.Shrinkage != 0 {
			t.Errorf("%s: from given factors %v, %v, %v", c.name, given.Start, given.Shrinkage, err)
		}
	}
	for what, far := range map[string]FitOption{"epochs": WithEpochs(4), "patience": WithPatience(5),
		"validation": WithValidation(0.1)} {
		if m, err := FitQMF(ctx, noisy, k, far); err != nil || len(m.History) != 5 {
			t.Errorf("noise, told its %s: %v, %v", what, m.History, err)
		}
	}
}

// TestChoiceOfNothing: where there are too few cells to hide a tenth of them, a fit starts from scores with
// free maps, and says so.
func TestChoiceOfNothing(t *testing.T) {
	x := Must(MatOf([]float64{1, 2}, []float64{3, 5}))(t)
	for want, opts := range map[Start][]FitOption{StartScores: nil, StartNMF: {WithStart(StartNMF)},
		StartUniform: {WithStart(StartUniform)}} {
		if m, err := FitQMF(context.Background(), x, 1, append(opts, WithEpochs(1))...); err != nil ||
			m.Start != want || m.Shrinkage != 0 {
			t.Errorf("start %v: %v, %+v", want, err, m)
		}
	}
}

// TestNMFFromSome: half of the epochs of an NMF that begins with some of many samples end where all of them
// end from random factors. It has the same bits for any number of workers and over shards; where it is
// stopped before its first epoch it has factors. The progress of a start counts the epochs of both NMFs, and
// ends at 1. MemoryOf has the samples that are drawn.
func TestNMFFromSome(t *testing.T) {
	const d, n, k = 20, 320, 3
	samples := qmf.StartSamples
	defer func() { qmf.StartSamples = samples }()
	qmf.StartSamples = 80
	src := random.Split(8, 1)
	draw := func() float64 { return -elem.Log(src.Float64()) }
	x := Times(Drawn(d, k, draw), Drawn(k, n, draw))
	for i := range x.Data {
		x.Data[i] *= 0.5 + src.Float64()
	}
	fit := func(opts ...FitOption) *NMF {
		m := Fitted(t, FitNMF, x, k, opts...)
		return m
	}
	for _, of := range []struct {
		opts   []FitOption
		epochs int
	}{{nil, 10}, {[]FitOption{WithUpdates(UpdatesMultiplicative)}, 50}} {
		some, all := fit(of.opts...), fit(append(of.opts, WithStart(StartUniform))...)
		if len(some.History) != of.epochs+1 || len(all.History) != 2*of.epochs+1 ||
			some.History[of.epochs] > 1.0005*all.History[2*of.epochs] {
			t.Errorf("%v: loss %v after %d epochs, %v after %d from random factors", of.opts,
				some.History[len(some.History)-1], len(some.History)-1,
				all.History[len(all.History)-1], len(all.History)-1)
		}
		if len(fit(append(of.opts, WithEpochs(1))...).History) != 2 {
			t.Errorf("%v: a given number of epochs is another", of.opts)
		}
	}
	want := FileOf(t, fit(WithWorkers(1)))
	if !bytes.Equal(FileOf(t, fit(WithWorkers(3))), want) {
		t.Error("three workers make another model")
	}
	// of some, and three tenths as many of all
	for method, epochs := range map[Method]int{MethodNMF: 20, MethodQMF: 26} {
		var done []float64
		opts := []FitOption{WithEpochs(1), WithProgress(func(p Progress) error {
			if p.Phase == PhaseFactors {
				done = append(done, p.Done)
			}
			return nil
		})}
		if method == MethodQMF {
			opts = append(opts, WithStart(StartScores), WithShrinkage(0), WithLine(0))
		}
		Fitted(t, By(method), x, k, opts...)
		if len(done) != 1+epochs || !slices.IsSorted(done) || done[0] != 0 ||
			math.Abs(done[epochs]-1) > 1e-12 {
			t.Errorf("%v: progress %v", method, done)
		}
	}
	few, _ := MemoryOf(MethodNMF, d, n, k, WithEpochs(20))
	if none, err := MemoryOf(MethodNMF, d, n, k, WithEpochs(20), WithStart(StartUniform)); err != nil ||
		few.Fit < none.Fit {
		t.Errorf("memory of an NMF from some samples: %d bytes, from random factors %d, %v", few.Fit,
			none.Fit, err)
	}
	enough := errors.New("enough")
	m, err := FitNMF(t.Context(), x, k, WithProgress(func(p Progress) error {
		if p.Phase == PhaseFactors && p.Done > 0 {
			return enough
		}
		return nil
	}))
	if !errors.Is(err, enough) || slices.Min(m.U.Data) <= 0 || slices.Min(m.V.Data) <= 0 {
		t.Errorf("stopped at the start: %v, %v", m, err)
	}
}

// TestTrialSample: the cells that the choice looks at are those of x' in random rows and columns, which are
// in their order; there are as many columns as make up the number of visible cells; no row and no column
// is without a visible cell.
func TestTrialSample(t *testing.T) {
	Slow(t)
	r := random.Split(3, 3)
	x := NewMat(300, 700)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, float64(1000*i+j)-5000)
		}
	}
	holes := x.Clone()
	for i := range holes.Rows {
		for j := range holes.Cols {
			if r.Float64() < 0.9 || j%7 == 2 && i != 50 || i%9 == 4 && j > 0 {
				holes.Set(i, j, math.NaN())
			}
		}
		holes.Set(i, 0, 1)
	}
	for j := range holes.Cols {
		holes.Set(50, j, 2)
	}
	listed := NewMat(300, 700)
	for i := range listed.Rows {
		for j := (7 * i) % 5; j < listed.Cols; j += 5 {
			listed.Set(i, j, float64(1000*i+j))
		}
	}
	for _, of := range []struct {
		name             string
		x                Rows
		validation       float64
		rows, cells      int
		least, most      int // visible cells
		fewRows, fewCols bool
	}{
		{"all", x, 0, 300, 300 * 700, 300 * 700, 300 * 700, false, false},
		{"rows", x, 0, 100, 100 * 700, 100 * 700, 100 * 700, true, false},
		{"columns", x, 0, 300, 30000, 30000, 30000, false, true},
		{"rows and columns", x, 0, 100, 10001, 10100, 10100, true, true},
		{"read by rows", struct{ Rows }{x}, 0, 100, 10001, 10100, 10100, true, true},
		{"held out", x, 0.3, 100, 10000, 9000, 11000, true, true},
		{"missing", holes, 0, 100, 3000, 2000, 4000, true, true},
		{"missing, read by rows, held out", struct{ Rows }{holes}, 0.3, 100, 1500, 1000, 2000, true, true},
		{"listed", SparseOf[float64](t, listed), 0, 100, 10001, 10100, 10100, true, true},
		{"listed, rows", SparseOf[float32](t, listed), 0, 100, 100 * 700, 100 * 700, 100 * 700, true, false},
		{"listed, held out", SparseOf[float64](t, listed), 0.3, 100, 10000, 9000, 11000, true, true},
	} {
		c := qmfDefaults()
		c.Loss, c.Missing, c.Validation = divergence.Frobenius, true, of.validation
		visible := Must(newCells(of.x, &c.Settings))(t)
		visible.SetUnits(true)
		var before []float64
		for seed := range uint64(2) {
			p, src := pool.New(int(1+seed%3), visible.D), random.Split(seed, 3)
			source, _, rows := visible.Sample(of.rows, of.cells, &src, p)
			p.Close()
			sampled := source.Matrix()
			if ok := source.Sparse != nil; ok != (visible.NonZeros() != nil) ||
				ok != (of.name == "listed" || of.name == "listed, rows") {
				t.Errorf("%s: the sample is listed: %v", of.name, ok)
			}
			some := NewMat(sampled.Dims())
			for i := range some.Rows {
				OK(t, sampled.ReadRow(some.Row(i), i))
			}
			if len(rows) != some.Rows || some.Rows > of.rows || of.fewRows != (some.Rows < x.Rows) ||
				of.fewCols != (some.Cols < x.Cols) {
				t.Fatalf("%s: %s, %d rows", of.name, some.size(), len(rows))
			}
			if !slices.IsSorted(rows) {
				t.Errorf("%s: rows are not in their order", of.name)
			}
			count, inRow, inCol, room := 0, make([]int, some.Rows), make([]int, some.Cols),
				make([]float64, x.Cols)
			last := -1
			for j := range some.Cols { // each is found among the columns of x' after the one before
				same := func(at int) bool {
					for i, from := range rows {
						v, w := some.At(i, j), visible.Row(room, from)[at]
						if v != w && (v == v || w == w) {
							return false
						}
					}
					return true
				}
				for last++; last < x.Cols && !same(last); last++ {
				}
				for i := range rows {
					if v := some.At(i, j); v == v {
						count, inRow[i], inCol[j] = count+1, inRow[i]+1, inCol[j]+1
					}
				}
			}
			if last >= x.Cols {
				t.Errorf("%s: there is a column that x' has not, or out of order", of.name)
			}
			if slices.Contains(inRow, 0) || slices.Contains(inCol, 0) {
				t.Errorf("%s: a row or a column is empty", of.name)
			}
			if count < of.least || count > of.most {
				t.Errorf("%s: %d visible cells", of.name, count)
			}
			if of.fewCols && slices.Equal(some.Row(0), before) {
				t.Errorf("%s: another seed takes the same columns", of.name)
			}
			before = slices.Clone(some.Row(0))
		}
	}
}

// TestInitialFactors: they are taken as they are, or refused where the largest is; a small one among them is
// no matter.
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
	for method := range MethodBQMF {
		fit := func(u Mat) (Model, error) {
			return Fit(ctx, method, x, 2, append(quick(method), WithInit(u, fill(2, 6, 1)), WithEpochs(0))...)
		}
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
			m, err := fit(u)
			if v == 1e-40 || v == 1 || v == 1e20 {
				if err != nil {
					t.Errorf("%v, %v: %v", method, v, err)
					continue
				}
				allFinite(t, method.String(), m, x)
				if n, is := m.(*NMF); is && !slices.Equal(n.U.Data, u.Data) {
					t.Errorf("%v starts from %v, not %v", method, n.U, u)
				}
				if q, is := m.(*QMF); is && v != 1e20 { // the others are raised there
					NearAll(t, q.U.Data, u.Data, 1e-15*v, "U")
				}
				continue
			}
			var data *DataError
			if !errors.As(err, &data) || data.Row < 0 || data.Col < 0 {
				t.Errorf("%v takes an initial factor of %v: %v", method, v, err)
			}
			if v < 1 {
				u.Set(0, 0, 1)
				if m, err = fit(u); err != nil {
					t.Errorf("%v, %v beside 1: %v", method, v, err)
					continue
				}
				allFinite(t, method.String(), m, x)
			}
		}
	}
}

// TestScoresOfRows: the NMF of the scores of some rows, and the others placed by it, end near that of all of
// them, with the same bits for any number of workers, a sample without cells in the rows included, and where
// weights say which samples or cells are of another matrix. Memory does not grow as all scores do.
func TestScoresOfRows(t *testing.T) {
	few, placed := qmf.FewScores, qmf.RowsPlaced
	defer func() { qmf.FewScores, qmf.RowsPlaced = few, placed }()
	qmf.RowsPlaced = 128 // of 200
	clean, _ := Bent(200, 60, 2, 0.1, 3)
	other, _ := Bent(200, 60, 2, 0.1, 4)
	samples, cells, src := make([]float64, clean.Cols), NewMat(200, 60), rand.New(rand.NewPCG(1, 2))
	for j := range samples {
		samples[j] = 1
		if j%3 > 0 {
			samples[j] = 1e-4
		}
	}
	for i := range cells.Data {
		cells.Data[i] = 1
		if src.IntN(2) > 0 {
			cells.Data[i] = 1e-4
		}
	}
	for _, c := range []struct {
		name   string
		opts   []FitOption
		weight func(i, j int) float64
	}{
		{"the same weights", nil, func(int, int) float64 { return 1 }},
		{"samples", []FitOption{WithSampleWeights(samples)}, func(_, j int) float64 { return samples[j] }},
		{"cells", []FitOption{WithCellWeights(cells)}, cells.At},
	} {
		x := clean.Clone()
		for i := range x.Rows {
			for j := range x.Cols {
				if c.weight(i, j) < 1 {
					x.Set(i, j, other.At(i, j))
				}
			}
		}
		for i := 0; i < x.Rows; i += 2 { // the rows that are scored
			x.Set(i, 9, math.NaN())
			cells.Set(i, 9, 0)
		}
		opts := append(c.opts, WithStart(StartScores), WithShrinkage(0), WithLine(0), WithEpochs(0),
			WithMissingValues())
		of := func(cells, workers int) *QMF {
			qmf.FewScores = cells
			return Fitted(t, FitQMF, x, 2, append(opts, WithWorkers(workers))...)
		}
		all, some := of(1<<18, 2), of(100*60, 1)
		t.Logf("%s: loss %v from some rows, %v from all", c.name, some.History[0], all.History[0])
		if some.History[0] == all.History[0] || some.History[0] > 1.4*all.History[0] {
			t.Errorf("%s: loss %v from some rows, %v from all", c.name, some.History[0], all.History[0])
		}
		EqualAll(t, FileOf(t, some), Must(of(100*60, 7).MarshalBinary())(t),
			"%s: seven workers have other bits than one", c.name)
	}
	qmf.FewScores, qmf.RowsPlaced = few, placed
	told := func(start Start) int64 {
		return Must(MemoryOf(MethodQMF, 20000, 1000, 10, WithStart(start), WithWorkers(2)))(t).Fit
	}
	if scores, own := told(StartScores), told(StartNMF); scores > own+16<<20 {
		t.Errorf("scores take %d bytes, the NMF of x %d", scores, own)
	}
}
