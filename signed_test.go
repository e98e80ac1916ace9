package quantmf

// Tests of data of any sign, which QMF and QMFQ take under the Frobenius norm.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// scores returns d × n log ratios of mixed sign: two hidden factors, bent row by row,
// offsets of their own, noise; the last row is constant.
func scores(seed uint64, d, n int) Mat {
	r := random.Split(seed, 78)
	f := [2][]float64{make([]float64, n), make([]float64, n)}
	for c := range f {
		for j := range f[c] {
			f[c][j] = normal(&r)
		}
	}
	x := NewMat(d, n)
	for i := range d {
		a, b, bend, offset := normal(&r), normal(&r), r.Float64(), 2*normal(&r)
		for j := range n {
			w := a*f[0][j] + b*f[1][j]
			x.Set(i, j, w+bend*w*math.Abs(w)+offset+0.2*normal(&r))
			if i == d-1 {
				x.Set(i, j, -3)
			}
		}
	}
	return x
}

// signedFits are ways to fit signed data.
func signedFits(ctx context.Context, rank int) map[string]func(Mat, ...FitOption) (Model, error) {
	qmf := func(more ...FitOption) func(Mat, ...FitOption) (Model, error) {
		return func(x Mat, o ...FitOption) (Model, error) {
			return FitQMF(ctx, x, rank, append(append([]FitOption{WithLoss(Frobenius)}, more...), o...)...)
		}
	}
	qmfq := func(more ...FitOption) func(Mat, ...FitOption) (Model, error) {
		return func(x Mat, o ...FitOption) (Model, error) {
			return FitQMFQ(ctx, x, rank, append(append([]FitOption{WithLoss(Frobenius)}, more...), o...)...)
		}
	}
	return map[string]func(Mat, ...FitOption) (Model, error){
		"QMF": qmf(), "QMF, scores, shrunk": qmf(WithStart(StartScores), WithShrinkage(20)), "QMF, NMF": qmf(WithStart(StartNMF), WithShrinkage(0)),
		"QMF, uniform": qmf(WithStart(StartUniform)), "QMF, pinned": qmf(WithEnds(EndsPinned)), "QMF, validation": qmf(WithValidation(0.1)),
		"QMF, raw": qmf(WithSquash(SquashNone)), "QMF, all rows": qmf(WithBatch(1000)),
		"QMFQ": qmfq(), "QMFQ, SVD": qmfq(WithProjection(TruncatedSVD())), "QMFQ, Frobenius": qmfq(WithProjection(FrobeniusUpdates(5))),
		"QMFQ, uniform": qmfq(WithStart(StartUniform), WithProjection(KLUpdates(5))), "QMFQ, raw": qmfq(WithSquash(SquashNone)),
		"QMFQ, validation": qmfq(WithValidation(0.1)),
	}
}

// TestSigned: the loss falls, maps rise, new samples are placed at least as well as the
// fit, files come back, and the row of a map is known by its quantiles.
func TestSigned(t *testing.T) {
	ctx := context.Background()
	x := scores(1, 20, 40)
	before := x.Clone()
	for name, fit := range signedFits(ctx, 4) {
		m, err := fit(x, WithEpochs(25))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(x.Data, before.Data) {
			t.Fatalf("%s changed x", name)
		}
		allFinite(t, name, m, x)
		var history []float64
		var maps func(i int) (*Map, error)
		best := 0
		switch m := m.(type) {
		case *QMF:
			history, maps, best = m.History, m.Map, m.Best
			least := 0.0
			for i := range x.Rows {
				least = min(least, m.Quantiles.At(i, 0))
			}
			if !(least < 0) {
				t.Errorf("%s: no negative quantile", name)
			}
		case *QMFQ:
			history, maps, best = m.History, m.Inflate, m.Best
		}
		// Of what rows spread, the loss of the rows' means: Σ (x-mean)²/2.
		spread := 0.0
		for i := range x.Rows {
			mean := total(x.Row(i)) / float64(x.Cols)
			for _, v := range x.Row(i) {
				spread += (v - mean) * (v - mean) / 2 / float64(len(x.Data))
			}
		}
		loss, err := m.Loss(x)
		if err != nil || !strings.Contains(name, "validation") && math.Abs(loss-history[best]) > 1e-10*loss {
			t.Errorf("%s: Loss %v (%v), History %v", name, loss, err, history[best])
		}
		if loss > 0.5*spread && !strings.Contains(name, "uniform") || !(strings.Contains(name, "SVD") || strings.Contains(name, "raw")) && loss > history[0]*1.01 {
			t.Errorf("%s: from %v to %v, the means have %v", name, history[0], loss, spread)
		}
		if score, err := m.Score(ctx, x); err != nil || score > loss*1.01 && !strings.Contains(name, "SVD") {
			t.Errorf("%s: score %v (%v), loss %v", name, score, err, loss)
		}
		fitted := m.Reconstruct()
		want := 0.0
		for i, v := range x.Data {
			want += (v - fitted.Data[i]) * (v - fitted.Data[i]) / 2 / float64(len(x.Data))
		}
		if math.Abs(loss-want) > 1e-12*want {
			t.Errorf("%s: Loss %v, the formula %v", name, loss, want)
		}
		g, err := m.Goodness(x)
		if err != nil || g[19].Divergence > 1e-20 {
			t.Errorf("%s: %v, %v", name, g, err)
		}
		for i := range x.Rows {
			f, err := maps(i)
			if err != nil {
				t.Fatal(err)
			}
			last := math.Inf(-1)
			for w := -3.0; w < 8; w += 0.01 {
				v := f.At(w)
				if v < last || f.Slope(w) < 0 {
					t.Fatalf("%s: map %d falls", name, i)
				}
				last = v
			}
		}
		b, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		again, err := UnmarshalModel(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v, err := again.Score(ctx, x); err != nil {
			t.Errorf("%s: from the file: %v, %v", name, v, err)
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
		a, err1 := fit(x, WithEpochs(6))
		b, err2 := fit(y, WithEpochs(6))
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
		if err1 != nil || err2 != nil || largestDifference(va.Data, vb.Data) > 1e-3*largest(va.Data) {
			t.Errorf("%s: new samples differ by %v: %v, %v", name, largestDifference(va.Data, vb.Data), err1, err2)
		}
	}
}

// TestSignedStep: with the plan fixed no step on q raises the squares, they end at the
// least that increments D >= 0 can reach, and q_1 is free in sign. The least is found
// apart, by coordinates in turn.
func TestSignedStep(t *testing.T) {
	x := scores(3, 4, 25)
	for _, hidden := range []float64{0, 0.2} {
		c := qmfDefaults()
		c.levels, c.epsilon, c.loss, c.start, c.shrinkage = 5, 0.1, Frobenius, StartScores, 0
		y := x
		if hidden > 0 {
			y, c.missing = holed(x, hidden), true
			for j := range y.Cols {
				y.Set(3, j, x.At(3, j))
			}
		}
		p := pool.New(1, 1)
		defer p.Close()
		visible, err := newCells(y, &c.settings)
		if err != nil {
			t.Fatal(err)
		}
		visible.enter(Frobenius, true)
		f := newQMFFit(visible, 2, &c.settings, p, c.seed, newCourse(context.Background(), &c, visible.x.Rows))
		if _, err := f.begin(); err != nil {
			t.Fatal(err)
		}
		negative := false
		for i := range 3 { // the last is constant
			v := &f.work[0].visitors[0]
			f.place(v, i)
			f.fitted(v, i)
			last := f.rowLoss(v, i)
			for range 20000 {
				f.stepQ(v, i)
				f.fitted(v, i)
				loss := f.rowLoss(v, i)
				if loss > last*(1+1e-12) {
					t.Fatalf("row %d: the loss rises from %v to %v", i, last, loss)
				}
				last = loss
			}
			negative = negative || f.increments(i)[0] < 0
			// tail_jl, from the map at unit increments.
			m := f.m
			tail := make([][]float64, m)
			for l := range tail {
				q := make([]float64, m)
				for k := l; k < m; k++ {
					q[k] = 1
				}
				tail[l] = make([]float64, f.np)
				v.row.Average(tail[l], q)
			}
			d := make([]float64, m)
			rest := append([]float64(nil), v.x[:f.n]...)
			for range 20000 {
				for l := range d {
					num, den := 0.0, 0.0
					for j := range rest {
						if v.observed == nil || v.observed[j] {
							num += tail[l][j] * rest[j]
							den += tail[l][j] * tail[l][j]
						}
					}
					step := num / den
					if l > 0 {
						step = max(step, -d[l])
					}
					d[l] += step
					for j := range rest {
						rest[j] -= step * tail[l][j]
					}
				}
			}
			want := 0.0
			for j, r := range rest {
				if v.observed == nil || v.observed[j] {
					want += r * r / 2
				}
			}
			if last > want*(1+1e-4) || last < want*(1-1e-9) {
				t.Errorf("row %d: steps end at %v, the least is %v", i, last, want)
			}
		}
		if !negative {
			t.Error("no q_1 below the least of its row")
		}
	}
}

// TestSignedPrior: under an endless shrinkage the map is the least-squares line of x on
// (UV)_i, taken at the levels' means.
func TestSignedPrior(t *testing.T) {
	x := scores(4, 3, 30)
	c := qmfDefaults()
	c.levels, c.loss, c.start, c.shrinkage, c.epsilon = 6, Frobenius, StartScores, 1e30, 0.05
	p := pool.New(1, 1)
	defer p.Close()
	visible, err := newCells(x, &c.settings)
	if err != nil {
		t.Fatal(err)
	}
	visible.enter(Frobenius, true)
	f := newQMFFit(visible, 2, &c.settings, p, c.seed, newCourse(context.Background(), &c, visible.x.Rows))
	if _, err := f.begin(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		v := &f.work[0].visitors[0]
		f.place(v, i)
		f.fitted(v, i)
		f.ratios(v, i)
		f.stepQ(v, i)
		w, n := v.w[:f.n], float64(f.n)
		mw, mx := total(w)/n, total(x.Row(i))/n
		cov, vw := 0.0, 0.0
		for j, wj := range w {
			cov += (wj - mw) * (x.At(i, j) - mx)
			vw += (wj - mw) * (wj - mw)
		}
		beta := max(cov/vw, 0)
		q := make([]float64, f.m)
		cumulate(q, f.increments(i))
		for l := range q {
			// The mean of w in level l under the plan: the average of an indicator.
			one, mass, sum := make([]float64, f.m), 0.0, 0.0
			one[l] = 1
			shares := make([]float64, f.np)
			v.row.Average(shares, one)
			for j := range w {
				mass += shares[j]
				sum += shares[j] * w[j]
			}
			want := mx + beta*(sum/mass-mw) - visible.offset(i)
			if math.Abs(q[l]-want) > 1e-9 {
				t.Errorf("row %d, level %d: %v, the line has %v", i, l, q[l], want)
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
		{"NMF, Frobenius", func() error { _, err := FitNMF(ctx, x, 2, WithLoss(Frobenius)); return err }, "FitQMF"},
		{"QMF", func() error { _, err := FitQMF(ctx, x, 2); return err }, "WithLoss(Frobenius)"},
		{"QMF, 1.5", func() error { _, err := FitQMF(ctx, x, 2, WithLoss(1.5)); return err }, "WithLoss(Frobenius)"},
		{"QMFQ", func() error { _, err := FitQMFQ(ctx, x, 2); return err }, "WithLoss(Frobenius)"},
		{"HeldOut", func() error {
			_, err := HeldOut(ctx, x, FitNMF, []Trial{{Rank: 1}}, Masks{Repeats: 1, Share: 0.2, Seed: 1})
			return err
		}, "WithLoss(Frobenius)"},
	} {
		var data *DataError
		if err := c.fit(); !errors.As(err, &data) || data.Row < 0 || data.Col < 0 || !strings.Contains(data.Problem, c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSignedFiles: a file with a negative quantile is read under the Frobenius norm, and
// under no other loss.
func TestSignedFiles(t *testing.T) {
	m, err := FitQMF(context.Background(), scores(6, 5, 8), 2, WithLoss(Frobenius), WithEpochs(2))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := m.MarshalBinary()
	if err := new(QMF).UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	m.loss = KL
	b, _ = m.MarshalBinary()
	var format *FormatError
	if err := new(QMF).UnmarshalBinary(b); !errors.As(err, &format) {
		t.Errorf("negative quantiles of KL: %v", err)
	}
}

// TestSignedUnseenCells: on protein arrays and log ratios hidden cells are predicted
// better than by the means of their rows.
func TestSignedUnseenCells(t *testing.T) {
	for _, path := range []string{"../shared/data/tcga-kirc/rppa.tsv.gz", "../shared/data/tcga-ov/rppa.tsv.gz", "../shared/data/tcga-brca/exp.tsv.gz"} {
		t.Run(path, func(t *testing.T) {
			x := load(t, path)
			x.Rows, x.Cols = min(x.Rows, 120), min(x.Cols, 120)
			// The standardised rows: none counts for more than another.
			for i := range x.Rows {
				row := x.Row(i)
				mean := total(row) / float64(len(row))
				sd := 0.0
				for _, v := range row {
					sd += (v - mean) * (v - mean) / float64(len(row))
				}
				for j, v := range row {
					row[j] = (v - mean) / math.Sqrt(sd)
				}
			}
			ctx := context.Background()
			trials := []Trial{{Rank: 5, Options: []FitOption{WithLoss(Frobenius)}}}
			p, err := HeldOut(ctx, x, FitQMF, trials, Masks{Repeats: 1, Share: 0.1, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			// The same cells by the means of what is visible of their rows.
			mask, err := newCells(x, &settings{validation: 0.1, seed: uint64(random.Split(1, 0)), missing: true})
			if err != nil {
				t.Fatal(err)
			}
			means := 0.0
			for i := range x.Rows {
				mean := 0.0
				for _, v := range mask.x.Row(i) {
					if v == v {
						mean += v / float64(mask.rows[i])
					}
				}
				for j, v := range x.Row(i) {
					if mask.held[i*x.Cols+j] {
						means += (v - mean) * (v - mean) / 2 / float64(mask.heldOut)
					}
				}
			}
			t.Logf("held-out squares/2: QMF %.3f, means of rows %.3f", p[0].Mean, means)
			if p[0].Mean > 0.9*means {
				t.Errorf("%v is hardly better than the means of the rows, %v", p[0].Mean, means)
			}
		})
	}
}
