package quantmf

// Tests of the bits of fits: the same on every platform and for any number of workers.

import (
	"context"
	"encoding/binary"
	"flag"
	"hash/fnv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// TestGolden: the same bits on every platform. The golden is made on amd64.
func TestGolden(t *testing.T) {
	const path = "testdata/golden.txt"
	x, err := MatOf(goldenRows()...)
	if err != nil {
		t.Fatal(err)
	}
	got := "fits " + strconv.FormatUint(fitHash(t, x), 16) + "\nhidden " +
		strconv.FormatUint(hiddenHash(t, x), 16) + "\n" +
		"bqmf " + strconv.FormatUint(bqmfHash(t, x, "counts"), 16) + " " +
		strconv.FormatUint(bqmfHash(t, goldenProduct(40, 36), "hidden", "counts"), 16) + " " +
		strconv.FormatUint(bqmfHash(t, goldenProduct(66, 64), "hidden", "whole"), 16) + "\nnewton " +
		strconv.FormatUint(newtonHash(t, x), 16) + "\n" +
		"kin " + strconv.FormatUint(kinHash(t), 16) + "\nmany " + strconv.FormatUint(manyHash(t), 16) + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got %swant %s", got, want)
	}
}

// fitHash fits both models in several ways and hashes all that comes out.
func fitHash(t *testing.T, x Mat, more ...FitOption) uint64 {
	t.Helper()
	h := fnv.New64a()
	put := func(v []float64) {
		var b [8]byte
		for _, f := range v {
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(f))
			h.Write(b[:])
		}
	}
	for _, o := range [][]FitOption{
		{WithEpochs(4), WithLevels(8)},
		{WithEpochs(3), WithStart(StartNMF), WithBatch(1000), WithShrinkage(10), WithPenalty(0.1),
			WithEpsilon(0.001)},
		{WithEpochs(3), WithStart(StartUniform), WithEnds(EndsPinned), WithSchedule(ScheduleConstant),
			WithLevels(5)},
		{WithEpochs(2), WithEnds(EndsPinned), WithSeed(9)},
		{WithEpochs(3), WithValidation(0.1), WithShrinkage(5), WithPatience(2)},
		{WithEpochs(2), WithLoss(Frobenius)},
		{WithEpochs(2), WithLoss(Beta(0.5)), WithRestarts(2), WithEnds(EndsPinned)},
	} {
		m, err := FitQMF(context.Background(), x, 5, append(o, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range [][]float64{m.U.Data, m.V.Data, m.Quantiles.Data, m.Weights.Data, m.History,
			m.Reconstruct().Data} {
			if i := notFinite(v); i >= 0 {
				t.Fatalf("%v in the model", v[i])
			}
			put(v)
		}
	}
	m, err := FitNMF(context.Background(), x, 5,
		append([]FitOption{WithUpdates(UpdatesMultiplicative), WithEpochs(20), WithPenalty(0.01)},
			more...)...)
	if err != nil {
		t.Fatal(err)
	}
	put(m.U.Data)
	put(m.V.Data)
	put(m.History)
	holes := holed(x, 0.1)
	q, err := FitQMF(context.Background(), holes, 4,
		append([]FitOption{WithEpochs(3), WithMissingValues()}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	put(q.Reconstruct().Data)
	m, err = FitNMF(context.Background(), holes, 4,
		append([]FitOption{WithEpochs(5), WithMissingValues(), WithLoss(Beta(2.5))}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	put(m.Reconstruct().Data)
	for _, p := range []Projection{KLUpdates(4), FrobeniusUpdates(4), TruncatedSVD()} {
		q, err := FitQMFQ(context.Background(), x, 4,
			append([]FitOption{WithEpochs(2), WithLevels(5), WithProjection(p)}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		put(q.Reconstruct().Data)
		put(q.History)
	}
	return h.Sum64()
}

// newtonHash is fitHash of NMFs by Newton's method.
func newtonHash(t *testing.T, x Mat, more ...FitOption) uint64 {
	t.Helper()
	h := fnv.New64a()
	var b [8]byte
	holes := holed(x, 0.1)
	for _, c := range []struct {
		x    Mat
		opts []FitOption
	}{
		{x, []FitOption{WithPenalty(0.01)}}, {x, []FitOption{WithLoss(Frobenius)}},
		{holes, []FitOption{WithMissingValues()}},
		{holes, []FitOption{WithMissingValues(), WithLoss(Frobenius), WithPenalty(0.01)}},
	} {
		m, err := FitNMF(context.Background(), c.x, 5,
			append(append(c.opts, WithUpdates(UpdatesNewton), WithEpochs(12)), more...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range [][]float64{m.U.Data, m.V.Data, m.History} {
			for _, v := range v {
				binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
				h.Write(b[:])
			}
		}
	}
	return h.Sum64()
}

// manyHash is fitHash of rows of so many samples that points stand for them, in several batches and in one,
// and that an NMF begins with some of the samples.
func manyHash(t *testing.T) uint64 {
	t.Helper()
	h := fnv.New64a()
	put := func(m Mat) {
		var b [8]byte
		for _, v := range m.Data {
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
			h.Write(b[:])
		}
	}
	x := goldenProduct(12, 4100)
	for i := range x.Rows / 2 {
		for j, v := range x.Row(i) {
			if (5*i+j)%4 > 0 {
				v = 0 // most counts
			}
			x.Set(i, j, v)
		}
	}
	u, v := NewMat(12, 3), NewMat(3, 4100)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = float64(1 + i*7%11)
		}
	}
	for _, o := range [][]FitOption{{WithBatch(5)}, {WithBatch(12)},
		{WithBatch(6), WithLevels(5), WithMissingValues()}} {
		y := x
		if len(o) > 2 {
			y = holed(x, 0.1)
		}
		m, err := FitQMF(context.Background(), y, 3, append(o, WithInit(u, v), WithEpochs(2))...)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Mat{m.U, m.V, m.Quantiles, m.Weights, m.Reconstruct()} {
			put(p)
		}
	}
	m, err := FitNMF(context.Background(), goldenProduct(6, 8200), 3, WithEpochs(2))
	if err != nil {
		t.Fatal(err)
	}
	put(m.U)
	put(m.V)
	return h.Sum64()
}

// hiddenHash is fitHash of what that leaves out: hidden cells in QMFQ, new
// samples, and the start of an NMF from singular vectors.
func hiddenHash(t *testing.T, x Mat) uint64 {
	t.Helper()
	ctx := context.Background()
	h := fnv.New64a()
	put := func(m Mat, err error) {
		if err != nil {
			t.Fatal(err)
		}
		var b [8]byte
		for _, v := range m.Data {
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
			h.Write(b[:])
		}
	}
	holes := holed(x, 0.1)
	for _, o := range [][]FitOption{{WithProjection(KLUpdates(4))},
		{WithProjection(FrobeniusUpdates(4)), WithValidation(0.1)}} {
		q, err := FitQMFQ(ctx, holes, 4, append(o, WithEpochs(2), WithLevels(5), WithMissingValues())...)
		if err != nil {
			t.Fatal(err)
		}
		put(q.Reconstruct(), nil)
		put(q.Transform(ctx, holes))
	}
	for _, x := range []Mat{x, holes} {
		m, err := FitNMF(ctx, x, 4, WithEpochs(2), WithUpdates(UpdatesMultiplicative), WithStart(StartSVD),
			WithMissingValues())
		if err != nil {
			t.Fatal(err)
		}
		put(m.Reconstruct(), nil)
		put(m.Transform(ctx, x))
	}
	return h.Sum64()
}

// goldenRows are made of integers and powers of two alone, so that nothing but
// the package can differ between platforms.
func goldenRows() [][]float64 {
	r := random.Split(8, 8)
	rows := make([][]float64, 45)
	for i := range rows {
		rows[i] = make([]float64, 39)
		for j := range rows[i] {
			rows[i][j] = math.Ldexp(float64(r.IntN(1000)), r.IntN(6)-i%9)
		}
	}
	clear(rows[3])
	for j := range rows[4] {
		rows[4][j] = 7
	}
	return rows
}

// goldenProduct is of such numbers as well, and of three components and noise: those of a BQMF of goldenRows
// have no relevance.
func goldenProduct(d, n int) Mat {
	r := random.Split(9, 9)
	u, v, x := NewMat(d, 3), NewMat(3, n), NewMat(d, n)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = float64(r.IntN(8) * r.IntN(8))
		}
	}
	for i := range x.Rows {
		row := x.Row(i)
		for j := range row {
			sum := 64 + 8*r.IntN(16)
			for k := range v.Rows {
				sum += int(u.At(i, k)) * int(v.At(k, j))
			}
			row[j] = math.Ldexp(float64(sum), i%5-4)
		}
	}
	return x
}

// goldenKin is of such numbers: rows in pairs of common noise, which a BQMF finds to be neighbours, and every
// third row bent along the samples, so that it has a prediction from samples that are alike.
func goldenKin(d, n int) Mat {
	r := random.Split(10, 10)
	at, x, common := make([]int, n), NewMat(d, n), make([]int, n)
	for j := range at {
		at[j] = r.IntN(64)
	}
	for i := range d {
		slope, middle := 1+r.IntN(5), 16+r.IntN(32)
		for j, a := range at {
			if i%2 == 0 {
				common[j] = r.IntN(256)
			}
			v := 200 + 8*slope*a + common[j] + r.IntN(64)
			if i%3 == 0 {
				v = 200 + 2*(a-middle)*(a-middle) + r.IntN(64)
			}
			x.Set(i, j, math.Ldexp(float64(v), i%5-4))
		}
	}
	return x
}

// bqmfHash covers fits of a BQMF and what they say. The kinds are x with hidden cells, whole, and in whole
// numbers, so that values have mass. They are few because an emulator of a foreign processor takes minutes
// for a second of fits.
func bqmfHash(t *testing.T, x Mat, kinds ...string) uint64 {
	var parts []Mat
	for _, kind := range kinds {
		y := x.Clone()
		for i := range y.Data {
			switch {
			case kind == "hidden" && i%7 == 3:
				y.Data[i] = math.NaN()
			case kind == "counts":
				y.Data[i] = math.Floor(y.Data[i])
			}
		}
		m := fitBQMF(t, y, 0, WithMissingValues())
		lo, hi, err := m.Interval(0.8)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.Transform(context.Background(), y)
		if err != nil {
			t.Fatal(err)
		}
		b := bqmfFile(t, m)
		file := NewMat(1, len(b))
		for i, c := range b {
			file.Data[i] = float64(c)
		}
		parts = append(parts, m.U, m.V, m.Reconstruct(), m.Median(), m.Deviation(), lo, hi, v, file)
	}
	return fingerprint(parts...)
}

// kinHash covers a BQMF that has neighbours and samples that are alike, and what it says of its own samples
// and of new ones.
func kinHash(t *testing.T) uint64 {
	x := goldenKin(30, 110)
	for i := range x.Data {
		if i%7 == 3 {
			x.Data[i] = math.NaN()
		}
	}
	m := fitBQMF(t, x, 0, WithMissingValues())
	if m.model.Near == nil || m.model.Alike == nil {
		t.Fatal("the model has no neighbours, or no samples that are alike")
	}
	score, err := m.Score(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	return fingerprint(m.U, m.V, m.Reconstruct(), m.Median(), m.Deviation(),
		Mat{Rows: 1, Cols: 2, Stride: 2, Data: []float64{score, m.LeaveOneOut}})
}
