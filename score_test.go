package quantmf

// Tests of Score: of samples seen and unseen, under every divergence, with missing cells.

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
)

// scorer is what NMF and QMF have in common for new samples.
type scorer interface {
	Loss(x Rows) (float64, error)
	Transform(ctx context.Context, x Rows) (Mat, error)
	Score(ctx context.Context, x Rows) (float64, error)
}

// meanDivergence is the mean divergence of the observed cells of x from a fitted matrix.
func meanDivergence(l divergence.Loss, x, fit Mat) float64 {
	sum, count := 0.0, 0.0
	for i, v := range x.Data {
		if v == v {
			sum += l.Divergence(v, fit.Data[i])
			count++
		}
	}
	return sum / count
}

// bothModels fits NMF and QMF to x.
func bothModels(t *testing.T, x Mat, k int, opts ...FitOption) map[string]scorer {
	t.Helper()
	nmf, err := FitNMF(context.Background(), x, k)
	if err != nil {
		t.Fatal(err)
	}
	qmf, err := FitQMF(context.Background(), x, k, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]scorer{"NMF": nmf, "QMF": qmf}
}

// allPlacing is bothModels and a QMFQ under TruncatedSVD, which has a search of
// its own.
func allPlacing(t *testing.T, x Mat, k int, opts ...FitOption) map[string]scorer {
	t.Helper()
	models := bothModels(t, x, k, opts...)
	svd, err := FitQMFQ(context.Background(), x, k, append(opts, WithProjection(TruncatedSVD()))...)
	if err != nil {
		t.Fatal(err)
	}
	models["TruncatedSVD"] = svd
	return models
}

// TestScoreSeen places the training columns: no worse than where training left
// them.
func TestScoreSeen(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		x    Mat
		k    int
		opts []FitOption
	}{
		{"toy", first(toy(1), 50), 8, []FitOption{WithLevels(8), WithEpochs(40)}},
		{"laml", loadRows(t, "testdata/laml-exp.tsv.gz", 30), 5, []FitOption{WithEpochs(40)}},
		{"counts", counts(60, 50), 4, []FitOption{WithLevels(8)}},
		{"rough", counts(60, 50), 4, []FitOption{WithEpsilon(1e-4), WithEpochs(10)}},
		{"pinned", counts(60, 50), 4, []FitOption{WithEpochs(10), WithEnds(EndsPinned)}},
		{"bare", first(toy(2), 60), 3,
			[]FitOption{WithSquash(SquashNone), WithEpochs(10), WithStart(StartUniform)}},
	} {
		if testing.Short() && c.name != "laml" && c.name != "bare" {
			continue
		}
		for name, m := range bothModels(t, c.x, c.k, c.opts...) {
			loss, err := m.Loss(c.x)
			if err != nil {
				t.Fatal(err)
			}
			score, err := m.Score(ctx, c.x)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s, k=%d: loss %.6g, score %.4f of it", name, c.name, c.k, loss, score/loss)
			if !(score <= loss*(1+1e-9)) {
				t.Errorf("%s %s: score %v, loss %v", name, c.name, score, loss)
			}
		}
	}
}

// TestScoreUnseen places a quarter of the columns by what the others have taught.
func TestScoreUnseen(t *testing.T) {
	const path = "../shared/data/tcga-brca/mirna.tsv.gz"
	if _, err := os.Stat(path); err != nil {
		t.Skip(path + " is not here")
	}
	x := loadRows(t, path, 60)
	seen := columnsOf(x, func(j int) bool { return j%4 != 3 })
	unseen := columnsOf(x, func(j int) bool { return j%4 == 3 })
	for name, m := range bothModels(t, seen, 5, WithEpochs(some([]int{40, 10}, 1)[0])) {
		loss, err := m.Loss(seen)
		if err != nil {
			t.Fatal(err)
		}
		score, err := m.Score(context.Background(), unseen)
		t.Logf("%s: seen %.4g, unseen %.4g", name, loss, score)
		if err != nil || !(score <= 2*loss) {
			t.Errorf("%s: score %v of unseen columns (%v), loss %v of seen ones", name, score, err, loss)
		}
	}
}

// TestScoreIsLoss compares Score with the divergence from U V', and from T(U V')
// by the maps.
func TestScoreIsLoss(t *testing.T) {
	x := counts(40, 30)
	for name, m := range bothModels(t, x, 3, WithEpochs(20)) {
		v, err := m.Transform(context.Background(), x)
		if err != nil {
			t.Fatal(err)
		}
		fit := NewMat(x.Rows, x.Cols)
		u := Mat{}
		if n, ok := m.(*NMF); ok {
			u = n.U
		} else {
			u = m.(*QMF).U
		}
		for i := range fit.Rows {
			product(fit.Row(i), u.Row(i), v)
			if q, ok := m.(*QMF); ok {
				f, err := q.Map(i)
				if err != nil {
					t.Fatal(err)
				}
				for j, w := range fit.Row(i) {
					fit.Set(i, j, f.At(w))
				}
			}
		}
		want := meanDivergence(divergence.KL, x, fit)
		if got, err := m.Score(context.Background(), x); err != nil || !(math.Abs(got-want) <= 1e-11*want) {
			t.Errorf("%s: score %v (%v), want %v", name, got, err, want)
		}
	}
}

// TestScoreLosses places training columns under other divergences, and with
// missing cells, whose values do not matter.
func TestScoreLosses(t *testing.T) {
	ctx := context.Background()
	x := first(toy(6), 20)
	holes := x.Clone()
	r := random.Split(9, 9)
	for i := range holes.Data {
		if r.Float64() < 0.2 {
			holes.Data[i] = math.NaN()
		}
	}
	for turn, l := range some([]Loss{KL, Frobenius, Beta(1.5), Beta(0.5), Beta(0), Beta(3)}, 0, 2, 4) {
		for at, x := range some([]Mat{x, holes}, 1) {
			if !long && !testing.Short() && turn > 0 && (turn+at)%2 > 0 { // the others of one of the two
				continue
			}
			opts := []FitOption{WithLoss(l), WithEpochs(8), WithMissingValues()}
			nmf, err := FitNMF(ctx, x, 4, opts...)
			if err != nil {
				t.Fatal(err)
			}
			qmf, err := FitQMF(ctx, x, 4, opts...)
			if err != nil {
				t.Fatal(err)
			}
			for name, m := range map[string]scorer{"NMF": nmf, "QMF": qmf} {
				loss, err := m.Loss(x)
				if err != nil {
					t.Fatal(err)
				}
				score, err := m.Score(ctx, x)
				if err != nil || !(score <= loss*(1+1e-9)) {
					t.Errorf("%s, β=%v: score %v (%v), loss %v", name, float64(l), score, err, loss)
				}
				t.Logf("%s, β=%v: loss %.5g, score %.4f of it", name, float64(l), loss, score/loss)
			}
		}
	}
	m, err := FitNMF(ctx, holes, 4, WithEpochs(5), WithMissingValues())
	if err != nil {
		t.Fatal(err)
	}
	none := NewMat(x.Rows, 3)
	for i := range none.Rows {
		none.Set(i, 1, math.NaN())
	}
	var e *DataError
	if _, err := m.Transform(ctx, none); !errors.As(err, &e) || e.Row != -1 || e.Col != 1 {
		t.Errorf("a column without a cell gives %v", err)
	}
}

// TestScoreOfSome: Score is the mean over the observed cells alone.
func TestScoreOfSome(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	for i := range x.Data {
		x.Data[i] += 0.1
	}
	few := columnsOf(holed(x, 0.3), func(j int) bool { return j < 6 })
	for name, m := range threeModels(t, holed(x, 0.1), 2, WithMissingValues()) {
		v, err := m.Transform(ctx, few)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := factorsOf(m)
		fit := NewMat(few.Rows, few.Cols)
		for i := range fit.Rows {
			at := func(w float64) float64 { return w }
			switch m := m.(type) {
			case *QMF:
				f, err := m.Map(i)
				if err != nil {
					t.Fatal(err)
				}
				at = f.At
			case *QMFQ:
				f, err := m.Inflate(i)
				if err != nil {
					t.Fatal(err)
				}
				at = f.At
			}
			for j := range fit.Cols {
				w := 0.0
				for c := range u.Cols {
					w += u.At(i, c) * v.At(c, j)
				}
				fit.Set(i, j, at(w))
			}
		}
		want := meanOver(1, few, fit, func(i, j int) bool { return few.At(i, j) == few.At(i, j) })
		if got, err := m.Score(ctx, few); err != nil || !(math.Abs(got-want) <= 1e-9*want) {
			t.Errorf("%s: Score %v, %v; over the observed cells %v", name, got, err, want)
		}
	}
}
