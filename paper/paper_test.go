package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/paper/internal/data"
	"github.com/quantmf/quantmf/paper/internal/drawn"
)

// folder has the real data, if they are there.
const folder = data.Folder("../../shared/data")

func needData(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(string(folder)); err != nil {
		t.Skip("no data here")
	}
}

// The counts of factors with p < 0.05 by the rule of the authors' notebook, for NMF and QMF, are those that
// R computes from the same factors.
func TestCountsOnAuthorsFactors(t *testing.T) {
	needData(t)
	remain := 0 // factors after Bonferroni's correction, of both models and runs
	for cancer, want := range map[string][2]int{"aml": {0, 0}, "breast": {0, 2}, "colon": {0, 0},
		"gbm": {0, 0}, "kidney": {0, 0}, "liver": {2, 0}} {
		p := Must(authorsFactors(folder, cancer))(t)
		if got := [2]int{p.Merged["NMF"], p.Merged["QMF"]}; got != want {
			t.Errorf("%s: %v, R has %v", cancer, got, want)
		}
		var r struct {
			Merged map[string][]float64 `json:"notebook_merged_p"`
		}
		OK(t, folder.JSON("tcga-qmf-authors/"+cancer+"/coxph.json", &r))
		for _, model := range survivalModels {
			for _, n := range p.Bonferroni[model] {
				remain += n
			}
			for i, v := range r.Merged[model] {
				Near(t, p.P[model][i], v, 1e-5*v, "%s %s: p, by R", cancer,
					model) // results keep six digits, factors eight
			}
		}
	}
	Equal(t, remain, 1, "factors remain after the correction")
}

// Every file of the list that is there has the expected hash, and every set has files.
func TestData(t *testing.T) {
	listed := 0
	for _, p := range data.List {
		listed += len(p.Files())
		if len(p.Files()) == 0 {
			t.Errorf("%s has no files", p.Set)
		}
	}
	if listed != len(data.Sums) {
		t.Errorf("%d files have sums, %d belong to a set", len(data.Sums), listed)
	}
	needData(t)
	for name := range data.Sums {
		Equal(t, folder.Check(name), "right", "%s", name)
	}
	if _, err := data.Folder(t.TempDir()).Table("toy/toy-std1"); !errors.Is(err, data.ErrMissing) {
		t.Errorf("an absent set: %v", err)
	}
	other := t.TempDir()
	OK(t, os.MkdirAll(other+"/toy", 0o755))
	OK(t, os.WriteFile(other+"/toy/toy-std1.tsv", []byte("feature\ts1\nf1\t1\n"), 0o644))
	if _, err := data.Folder(other).Table("toy/toy-std1"); err == nil || errors.Is(err, data.ErrMissing) {
		t.Errorf("another file under the name of a set: %v", err)
	}
}

// The errors of the timing experiment are right on a problem whose truth is known.
func TestDistance(t *testing.T) {
	if d := distance([]float64{3, 4}, []float64{3, 4}); d != 0 {
		t.Errorf("%v", d)
	}
	if d := distance([]float64{3, 4.05}, []float64{3, 4}); d != 0.01 {
		t.Errorf("%v", d)
	}
}

// The trace of a fit has the losses of History at its marks, and seconds that increase.
func TestTrace(t *testing.T) {
	s := newSession(context.Background(), "test", false, false, "")
	x := drawn.New(20, 30, 3, 1, 0, 1).X
	for _, w := range []way{
		{"NMF", quantmf.MethodNMF, 40,
			[]quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}},
		{"QMF", quantmf.MethodQMF, 12, paperQMF()},
		{"QMFQ", quantmf.MethodQMFQ, 12, paperQMFQ(4, quantmf.KLUpdates(5))},
	} {
		m, tr, err := w.fit(s, x, 3, 1)
		OK(t, err)
		loss := Must(m.Loss(x))(t)
		last := len(tr.Epoch) - 1
		if tr.Epoch[0] != 0 || tr.Epoch[last] != w.Epochs {
			t.Errorf("%s: epochs %v", w.Name, tr.Epoch)
		}
		Near(t, tr.Loss[last], loss, 1e-4*loss, "%s: the last loss, by the model", w.Name)
		if !slices.IsSorted(tr.Seconds) {
			t.Errorf("%s: seconds %v", w.Name, tr.Seconds)
		}
	}
}

// Philox gives its published answers (Random123, kat_vectors), and the first numbers that TensorFlow
// draws with its seeds of 1234 and 42.
func TestUniform(t *testing.T) {
	const all = 1<<32 - 1
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("%x, not %x", got, c.want)
		}
	}
	for _, c := range []struct {
		seed, draw uint64
		want       []float64
	}{
		{1234, 1892932127, []float64{0.5380393}},
		{42, 478163327, []float64{0.6645621, 0.44100678, 0.3528825}},
	} {
		for i, v := range uniform(c.seed, c.draw, len(c.want)) {
			Near(t, v, c.want[i], 1e-7, "seed %d, number %d", c.seed, i)
		}
	}
	u, v := publishedFactors(3, 5, 2)
	if u.Rows != 3 || v.Cols != 5 || slices.Min(append(u.Data, v.Data...)) < 0.01 ||
		slices.Max(append(u.Data, v.Data...)) >= 1.01 {
		t.Errorf("%v %v", u, v)
	}
}

// A fit in the cache is not made again but with -again, and other keys have fits of their own.
func TestCached(t *testing.T) {
	t.Chdir(t.TempDir())
	made := 0
	for i, c := range []struct {
		again bool
		key   string
		made  int
	}{{false, "a", 1}, {false, "a", 1}, {true, "a", 2}, {false, "b", 3}, {false, "b", 3}} {
		s := newSession(context.Background(), "test", false, c.again, "")
		v, err := cached(s, c.key, func() ([]float64, error) {
			made++
			return []float64{1, 2}, nil
		})
		if err != nil || !slices.Equal(v, []float64{1, 2}) {
			t.Fatalf("%v %v", v, err)
		}
		Equal(t, made, c.made, "call %d: made", i)
	}
}

// The gradients through the iterations are those of differences, and after many iterations the implicit ones.
func TestUnrolled(t *testing.T) {
	p := drawRow(20, 5, 0.1)
	value := func(x, b, q []float64) (sum float64) {
		o := Must(quantmf.Solve(x, quantmf.WithTargetWeights(b), quantmf.WithEpsilon(p.eps),
			quantmf.WithSquash(quantmf.SquashNone), quantmf.WithIterations(3)))(t)
		y := Must(o.Quantile(q))(t)
		for i, z := range p.z {
			sum += z * y[i]
		}
		return sum
	}
	b := []float64{0.2, 0.2, 0.2, 0.2, 0.2}
	const step = 1e-5
	got := p.unrolled(3)
	for name, c := range map[string]struct{ at, gradient []float64 }{"x": {p.x, got.X}, "q": {p.q, got.Q}} {
		for i := range c.at {
			v := c.at[i]
			c.at[i] = v + step
			above := value(p.x, b, p.q)
			c.at[i] = v - step
			want := (above - value(p.x, b, p.q)) / (2 * step)
			c.at[i] = v
			Near(t, c.gradient[i], want, 1e-6, "in %s_%d", name, i)
		}
	}
	implicit := Must(p.implicit(quantmf.WithTolerance(1e-13)))(t)
	got = p.unrolled(500)
	if x, b, q := distance(got.X, implicit.X), distance(got.B, implicit.B),
		distance(got.Q, implicit.Q); x > 1e-6 ||
		b > 1e-6 || q > 1e-6 {
		t.Errorf("after 500 iterations %v, %v and %v from the implicit gradients", x, b, q)
	}
}

// The fewest iterations to a tolerance are enough, and one fewer are not.
func TestReach(t *testing.T) {
	p := drawRow(100, 10, 0.01)
	l, err := p.reach(1e-2)
	if err != nil || l < 2 {
		t.Fatal(l, err)
	}
	for i, within := range map[int]bool{l: true, l - 1: false} {
		o, err := p.solve(quantmf.WithIterations(i))
		if err != nil || o.MarginalError <= 1e-2 != within {
			t.Errorf("after %d iterations %v, %v", i, o.MarginalError, err)
		}
	}
}
