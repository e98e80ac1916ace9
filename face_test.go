package quantmf

// Tests of the face of the operators: what is refused before memory is asked for, maps at
// ε = 0 and at weights beyond the range of float64, and the recipes of the documentation.

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestMemoryBound: what would take 4m² + nm numbers beyond the bound is an error that names
// what gave m, before anything is allocated.
func TestMemoryBound(t *testing.T) {
	x := []float64{3, 1, 2}
	many := make([]float64, 46000)
	ones := make([]float64, len(many))
	for i := range many {
		many[i], ones[i] = float64(i), 1
	}
	var option *OptionError
	var shape *ShapeError
	for _, m := range []int{30000, 200000, 1 << 30, math.MaxInt / 4, math.MaxInt - 1, math.MaxInt} {
		for name, call := range map[string]func(o Option) error{
			"rank":  func(o Option) error { _, err := SoftRank(x, o); return err },
			"sort":  func(o Option) error { _, err := SoftSort(x, o); return err },
			"solve": func(o Option) error { _, err := Solve(x, o); return err },
		} {
			if err := call(WithLevels(m)); !errors.As(err, &option) || option.Option != "WithLevels" || option.Value != itoa(m) {
				t.Errorf("%s with %d levels: %v", name, m, err)
			}
		}
		if _, err := FitQMF(t.Context(), Mat{Rows: 1, Cols: 3, Data: x, Stride: 3}, 1, WithLevels(m)); !errors.As(err, &option) || option.Option != "WithLevels" {
			t.Errorf("FitQMF with %d levels: %v", m, err)
		}
	}
	wide := Mat{Rows: 1, Cols: len(many), Data: many, Stride: len(many)}
	for name, err := range map[string]error{
		"WithLevels":        func() error { _, err := SoftRank(many); return err }(),
		"WithTargets":       func() error { _, err := SoftSort(x, WithTargets(many)); return err }(),
		"WithTargetWeights": func() error { _, err := Solve(x, WithTargetWeights(ones)); return err }(),
		"k":                 func() error { _, err := TopKWeights(math.MaxInt, math.MaxInt-1); return err }(),
		"k ":                func() error { _, err := SoftTopK(many, len(many)); return err }(),
	} {
		if !errors.As(err, &option) || option.Option != strings.TrimSpace(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	levels := make([]float64, 20000)
	for i := range levels {
		levels[i] = float64(i) / float64(len(levels))
	}
	for name, err := range map[string]error{
		"q":      func() error { _, err := SoftQuantile(x, many); return err }(),
		"rows":   func() error { _, err := SoftQuantileRows(wide, wide); return err }(),
		"levels": func() error { _, err := SoftQuantiles(many, levels); return err }(),
	} {
		if !errors.As(err, &shape) || shape.What != name && name != "rows" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The bound that the error names is the largest that is taken.
	for _, n := range []int{1, 3, 1000, 46000, 1 << 28} {
		m := mostLevels(n)
		if m > 0 && tooManyCells(n, m) || !tooManyCells(n, m+1) {
			t.Errorf("n = %d: %d is not the most", n, m)
		}
	}
	if maxCells == 1<<31 && (tooManyCells(20724, 20724) || !tooManyCells(20725, 20725)) {
		t.Error("the documentation says that the default of n levels ends at 20724")
	}
}

// TestHardIsLinear: ε = 0 solves no system, and takes no memory for one.
func TestHardIsLinear(t *testing.T) {
	x := make([]float64, 1<<17)
	for i := range x {
		x[i] = float64((i * 4051) % len(x))
	}
	r, err := SoftRank(x, WithEpsilon(0))
	if err != nil {
		t.Fatal(err)
	}
	s, err := SoftSort(x, WithEpsilon(0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if r[i] != x[i]+1 || s[i] != float64(i) {
			t.Fatalf("sample %d, %v, has rank %v; place %d has %v", i, x[i], r[i], i, s[i])
		}
	}
	var option *OptionError
	if _, err := SoftRank(x[:3], WithEpsilon(0), WithLevels(1<<30)); !errors.As(err, &option) {
		t.Errorf("2^30 levels: %v", err)
	}
}

// TestUnrolledBound: so do the potentials of all iterations.
func TestUnrolledBound(t *testing.T) {
	tr, err := Solve([]float64{1, 2}, WithLevels(2), WithIterations(1), WithEpsilon(1))
	if err != nil {
		t.Fatal(err)
	}
	tr.iterations = math.MaxInt / 2 // as if they had been made
	var option *OptionError
	if _, err := tr.UnrolledQuantileVJP([]float64{0, 1}, []float64{1, 0}); !errors.As(err, &option) || option.Option != "WithIterations" {
		t.Errorf("%v", err)
	}
}

// TestHardMap: at ε = 0 a map takes the samples' own values at the samples, and rises from
// float to float around every sample and every cut, with ties, weights of 0 and all.
func TestHardMap(t *testing.T) {
	check := func(name string, x, q []float64, opts ...Option) {
		t.Helper()
		tr, err := Solve(x, append(opts, WithEpsilon(0), WithLevels(len(q)))...)
		if err != nil {
			t.Fatal(err)
		}
		f, err := tr.Map(q)
		if err != nil {
			t.Fatal(err)
		}
		T, _ := tr.Quantile(q)
		at := []float64{math.Inf(-1), -math.MaxFloat64, math.Inf(1), math.MaxFloat64}
		for _, v := range append(slices.Clone(x), f.cut...) {
			lo, hi := v, v
			at = append(at, v)
			for range 20 {
				lo, hi = math.Nextafter(lo, math.Inf(-1)), math.Nextafter(hi, math.Inf(1))
				at = append(at, lo, hi)
			}
		}
		slices.Sort(at)
		last := math.Inf(-1)
		for _, v := range at {
			y := f.At(v)
			if !(y >= last && y >= q[0] && y <= q[len(q)-1]) {
				t.Fatalf("%s: the map of %v onto %v falls at %v to %v from %v", name, x, q, v, y, last)
			}
			last = y
		}
		taken := map[float64]bool{}
		for _, v := range at {
			taken[f.At(v)] = true
		}
		for i, v := range x {
			if f.At(v) != T[i] {
				t.Errorf("%s: map %v at sample %v, quantile %v", name, f.At(v), v, T[i])
			}
		}
		low, high := f.At(math.Inf(-1)), f.At(math.Inf(1))
		if low == high {
			var data *DataError
			if _, err := f.Invert(low); !errors.As(err, &data) {
				t.Errorf("%s: a flat map is inverted: %v", name, err)
			}
			return
		}
		values := append(slices.Clone(q), T...)
		for i := 1; i < len(q); i++ {
			values = append(values, elem.Middle(q[i], q[i-1]))
		}
		for _, v := range values {
			back, err := f.Invert(v)
			if taken[v] {
				if err != nil || f.At(back) != v {
					t.Errorf("%s: %v is taken, and its inverse %v (%v) maps to %v", name, v, back, err, f.At(back))
				}
				continue
			}
			var data *DataError
			if !errors.As(err, &data) || data.Row != -1 || data.Col != -1 || data.Value != v {
				t.Errorf("%s: %v is not taken: %v, %v", name, v, back, err)
			} else if v > low && v < high && !(f.At(math.Nextafter(back, math.Inf(-1))) <= v && f.At(math.Nextafter(back, math.Inf(1))) >= v) {
				t.Errorf("%s: no jump over %v at %v", name, v, back)
			}
		}
	}
	check("ties", []float64{1, 1, 1, 2, 2, 2, 3, 3, 3}, []float64{0, 1, 2, 3, 4})
	check("constant", []float64{5, 5, 5}, []float64{0, 1, 2})
	check("constant, no squash", []float64{5, 5, 5}, []float64{0, 1, 2}, WithSquash(SquashNone))
	check("one sample", []float64{5}, []float64{0, 1, 2})
	check("constant to rounding", []float64{1, math.Nextafter(1, 2), 1}, []float64{0, 1, 2})
	check("one level", []float64{1, 2}, []float64{3})
	check("wide", []float64{-1e300, 0, 1e-300, 1e300}, []float64{0, 1, 1, 2})
	for seed := range 3000 {
		r := random.Split(71, seed)
		x, a := make([]float64, 1+r.IntN(9)), make([]float64, 0)
		for i := range x {
			x[i] = normal(&r)
			if seed%2 == 0 {
				x[i] = math.Round(2 * x[i])
			}
			a = append(a, float64(max(r.IntN(5)-1, 0)))
		}
		if total(a) == 0 {
			a[0] = 1
		}
		q := make([]float64, 1+r.IntN(7))
		for j := range q {
			q[j] = normal(&r)
			if seed%3 == 0 {
				q[j] = math.Round(q[j])
			}
		}
		slices.Sort(q)
		opts := []Option{WithSquash(Squash(r.IntN(len(squashNames))))}
		if r.IntN(2) == 0 {
			opts = append(opts, WithWeights(a))
		}
		check("seed "+itoa(seed), x, q, opts...)
		if t.Failed() {
			return
		}
	}
}

// TestHardMapValues has values by hand: means of q over the ties, steps between.
func TestHardMapValues(t *testing.T) {
	tr, _ := Solve([]float64{1, 1, 1, 2, 2, 2, 3, 3, 3}, WithLevels(5), WithEpsilon(0))
	f, _ := tr.Map([]float64{0, 1, 2, 3, 4})
	for _, c := range [][2]float64{{0.5, 0}, {1, 0.4}, {math.Nextafter(1, 2), 1}, {1.9, 1}, {2, 2}, {2.1, 3}, {math.Nextafter(3, 2), 3}, {3, 3.6}, {math.Nextafter(3, 4), 4}} {
		if v := f.At(c[0]); math.Abs(v-c[1]) > 1e-15 {
			t.Errorf("T(%v) = %v, want %v", c[0], v, c[1])
		}
	}
	if x, err := f.Invert(3.8); err == nil || x != 3 {
		t.Errorf("3.8 is jumped over at 3: %v, %v", x, err)
	}
	// A sample without weight moves no cut: the two others are apart at 1/2, by symmetry.
	x := []float64{0, 0.4, 0.6, 1}
	tr, err := Solve(x, WithLevels(2), WithWeights([]float64{1, 0, 0, 1}), WithEpsilon(0))
	if err != nil {
		t.Fatal(err)
	}
	T, _ := tr.Quantile([]float64{0, 1})
	closeTo(t, "T", T, []float64{0, 0, 1, 1}, 0)
	f, _ = tr.Map([]float64{0, 1})
	if f.At(0.49) != 0 || f.At(0.51) != 1 {
		t.Errorf("T(0.49) = %v, T(0.51) = %v", f.At(0.49), f.At(0.51))
	}
}

// TestMapTinyWeights: levels of weights down to 1e-300, which no ratio of neighbours can be
// clamped for: a map still agrees with Quantile at the samples, and with a plain softmax
// of logits elsewhere, and does not fall.
func TestMapTinyWeights(t *testing.T) {
	x := []float64{-1, 0, 0.3, 2, 2.5}
	for _, b := range [][]float64{{1, 1e-140, 1}, {1, 1e-200, 1}, {1, 1e-160, 1e-280, 1}, {1e-200, 1, 1e-200, 1, 1e-200}, {1, 1e-250, 1e-120, 1e-250, 1, 1}} {
		for _, eps := range []float64{1, 0.1, 0.01} {
			q := make([]float64, len(b))
			for j := range q {
				q[j] = float64(j*j) - 3
			}
			tr, err := Solve(x, WithTargetWeights(b), WithEpsilon(eps))
			if err != nil {
				t.Fatal(err)
			}
			f, _ := tr.Map(q)
			T, _ := tr.Quantile(q)
			for i, v := range x {
				if math.Abs(f.At(v)-T[i]) > 1e-10*largest(q) {
					t.Errorf("b %v, ε %v: map %v at %v, quantile %v", b, eps, f.At(v), v, T[i])
				}
			}
			last := math.Inf(-1)
			for v := -60.0; v < 60; v += 1.0 / 64 {
				s := f.squash.At(v)
				logits := make([]float64, len(b))
				for j := range logits { // up to what depends on s alone
					y := float64(j) / float64(len(b)-1)
					logits[j] = (tr.G[j] + float64(2*s*y) - float64(y*y)) / eps
				}
				norm, want := transport.LogSum(logits), 0.0
				for j, l := range logits {
					want += q[j] * math.Exp(l-norm)
				}
				got := f.At(v)
				if math.Abs(got-want) > 1e-9*largest(q) {
					t.Errorf("b %v, ε %v: map %v at %v, softmax %v", b, eps, got, v, want)
				}
				if got < last {
					t.Errorf("b %v, ε %v: the map falls at %v", b, eps, v)
				}
				last = got
				if t.Failed() {
					return
				}
			}
		}
	}
}

// TestWide: numbers of the wide range against float64 where both can be used, and order at
// the seams of the exponential.
func TestWide(t *testing.T) {
	r := random.Split(72, 0)
	for range 100000 {
		a, b := math.Exp(200*normal(&r)/3), math.Exp(200*normal(&r)/3)
		v, w := wide{a, 0}.normal(), wide{b, 0}.normal()
		if got, want := v.times(w).float(), a*b; got != want {
			t.Fatalf("%v·%v = %v, want %v", a, b, got, want)
		}
		if got, want := v.over(w).float(), a/b; got != want {
			t.Fatalf("%v/%v = %v, want %v", a, b, got, want)
		}
		if got, want := v.plus(w).float(), a+b; got != want {
			t.Fatalf("%v+%v = %v, want %v", a, b, got, want)
		}
	}
	less := func(v, w wide) bool { return v.e < w.e || v.e == w.e && v.f < w.f }
	for k := -20; k <= 20; k++ {
		v := 512 * float64(k)
		for range 50 {
			v = math.Nextafter(v, math.Inf(-1))
		}
		last := wideExp(v)
		for range 100 {
			v = math.Nextafter(v, math.Inf(1))
			w := wideExp(v)
			if less(w, last) {
				t.Fatalf("e^%v falls", v)
			}
			last = w
		}
	}
}

// TestHardOptions: what steers iterations has no use at ε = 0.
func TestHardOptions(t *testing.T) {
	x := []float64{1, 2}
	var option *OptionError
	for _, o := range []Option{WithTolerance(1e-6), WithMaxIterations(9), WithIterations(1), WithStrict()} {
		for _, opts := range [][]Option{{WithEpsilon(0), o}, {o, WithEpsilon(0)}} {
			_, solve := Solve(x, opts...)
			_, rank := SoftRank(x, opts...)
			_, sorted := SoftSort(x, opts...)
			_, quantile := SoftQuantile(x, x, opts...)
			m := Mat{Rows: 1, Cols: 2, Data: x, Stride: 2}
			_, rows := SoftQuantileRows(m, m, opts...)
			_, quantiles := SoftQuantiles(x, x[:1], opts...)
			_, top := SoftTopK(x, 1, opts...)
			for i, err := range []error{solve, rank, sorted, quantile, rows, quantiles, top} {
				if !errors.As(err, &option) || option.Option != o.setting().kind.String() {
					t.Errorf("call %d takes %v at ε = 0: %v", i, o.setting().kind, err)
				}
			}
		}
		if _, err := SoftRank(x, WithEpsilon(0), WithEpsilon(0.1), o); err != nil {
			t.Errorf("the last ε counts: %v", err)
		}
	}
}

// TestEmptyRows: rows without numbers make the empty matrix.
func TestEmptyRows(t *testing.T) {
	for _, rows := range [][][]float64{nil, {{}}, {{}, {}}, {nil, {}}} {
		if m, err := MatOf(rows...); err != nil || m.Rows != 0 || m.Cols != 0 {
			t.Errorf("%v: %v, %v", rows, m, err)
		}
	}
	var shape *ShapeError
	for _, rows := range [][][]float64{{{}, {1}}, {{1}, {}}} {
		if _, err := MatOf(rows...); !errors.As(err, &shape) {
			t.Errorf("%v: %v", rows, err)
		}
	}
}

// TestNegativeCount: an error where there can be one, else none.
func TestNegativeCount(t *testing.T) {
	x, _ := MatOf([]float64{1, 2, 3}, []float64{3, 1, 2}, []float64{1, 1, 4})
	var option *OptionError
	nmf, _ := FitNMF(t.Context(), x, 2, WithEpochs(1))
	qmf, _ := FitQMF(t.Context(), x, 2, WithEpochs(1))
	qmfq, _ := FitQMFQ(t.Context(), x, 2, WithEpochs(1))
	for _, m := range []Model{nmf, qmf, qmfq} {
		if top, err := m.TopFeatures(x, -3); !errors.As(err, &option) || top != nil {
			t.Errorf("%T: %v, %v", m, top, err)
		}
		if top, err := m.TopFeatures(x, 0); err != nil || len(top) != 2 || len(top[0]) != 0 {
			t.Errorf("%T: %v, %v", m, top, err)
		}
		if top := m.TopSamples(-3); len(top) != 2 || len(top[0]) != 0 {
			t.Errorf("%T: %v", m, top)
		}
	}
}

// TestQuantileWeightsSum: shares do not overlap, at the walls and for levels that differ by
// rounding.
func TestQuantileWeightsSum(t *testing.T) {
	third := 0.1 + 0.2
	for _, c := range []struct {
		levels []float64
		width  float64
		want   []float64
	}{
		{[]float64{0, 1}, 1, []float64{0.5, 0.5}},
		{[]float64{0.2, 0.9}, 1, []float64{0.5, 0.5}},
		{[]float64{1, 0}, 0.6, []float64{0.5, 0.5}},
		{[]float64{0.3, third, 0.8}, 0.2, []float64{0.2, 0.2, 0.3, 0.2, 0.1}},
		{[]float64{0, 5e-17, 1 - 0x1p-53, 1}, 0.25, []float64{0.25, 0.5, 0.25}},
	} {
		b, at, err := QuantileWeights(c.levels, c.width)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != len(c.want) {
			t.Errorf("levels %v, width %v: weights %v, want %v", c.levels, c.width, b, c.want)
			continue
		}
		closeTo(t, "weights", b, c.want, 1e-15)
		for i, j := range at {
			if l := min(max(c.levels[i], b[j]/2), 1-b[j]/2); math.Abs(total(b[:j])+b[j]/2-l) > 1e-6*c.width && len(b) > 2 {
				t.Errorf("levels %v, width %v: level %v is at %v", c.levels, c.width, c.levels[i], total(b[:j])+b[j]/2)
			}
		}
	}
	// The median of four is that of the usual rule, also where it is asked for twice.
	s, err := SoftQuantiles([]float64{4, 1, 3, 2}, []float64{0.5, 0.5 + 1e-15}, WithEpsilon(0))
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "medians", s, []float64{2.5, 2.5}, 1e-12)
}

// TestSlopeBothSides: the slope keeps its digits on either side of a step, however far. Of
// two levels it is Δq·rate/(4 cosh²(rate·(x-t)/2)).
func TestSlopeBothSides(t *testing.T) {
	tr, err := Solve([]float64{0, 1}, WithTargets([]float64{0, 1}), WithSquash(SquashNone), WithEpsilon(0.01))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := tr.Map([]float64{0, 3})
	for _, d := range []float64{0, 0.01, 0.1, 0.2, 0.5, 1, 1.7} {
		c := math.Cosh(100 * d)
		want := 3 * 200 / (4 * c * c)
		for _, x := range []float64{0.5 - d, 0.5 + d} {
			if got := f.Slope(x); math.Abs(got-want) > 1e-11*want {
				t.Errorf("slope %v at %v, want %v", got, x, want)
			}
		}
	}
}

// TestPeerRanks: the documented way to ott-jax's ranks, n P j(n-1)/(m-1) of a plan by plain
// Sinkhorn, with its squash, the logistic function of the z-score. SoftRank less 1 is that only
// where m = n.
func TestPeerRanks(t *testing.T) {
	for _, c := range []struct {
		x   []float64
		m   int
		eps float64
	}{{[]float64{3, 1, 2, 10}, 6, 0.01}, {[]float64{3, 1, 2, 10}, 4, 0.1}, {[]float64{0.3, -2, 5, 5, 1, 0.2, 0.1}, 7, 0.02}, {[]float64{1, 2, 4, 8, 16}, 9, 0.05}} {
		n := len(c.x)
		mean, dev := total(c.x)/float64(n), 0.0
		for _, v := range c.x {
			dev += (v - mean) * (v - mean) / float64(n)
		}
		kern, u, v := NewMat(n, c.m), make([]float64, n), make([]float64, c.m)
		for i, x := range c.x {
			u[i] = 1
			s := 1 / (1 + math.Exp(-(x-mean)/math.Sqrt(dev)))
			for j := range v {
				d := s - float64(j)/float64(c.m-1)
				kern.Set(i, j, math.Exp(-d*d/c.eps))
			}
		}
		for range 20000 {
			for j := range v {
				sum := 0.0
				for i := range u {
					sum += u[i] * kern.At(i, j)
				}
				v[j] = 1 / float64(c.m) / sum
			}
			for i := range u {
				sum := 0.0
				for j := range v {
					sum += kern.At(i, j) * v[j]
				}
				u[i] = 1 / float64(n) / sum
			}
		}
		want := make([]float64, n)
		for i := range want {
			for j := range v {
				want[i] += float64(n) * u[i] * kern.At(i, j) * v[j] * float64(j*(n-1)) / float64(c.m-1)
			}
		}
		tr, err := Solve(c.x, WithLevels(c.m), WithSquash(SquashLogisticUnit), WithEpsilon(c.eps))
		if err != nil {
			t.Fatal(err)
		}
		q := make([]float64, c.m)
		for j := range q {
			q[j] = float64(j*(n-1)) / float64(c.m-1)
		}
		got, _ := tr.Quantile(q)
		closeTo(t, "ranks", got, want, 1e-8)
		off := 0.0
		for i, r := range tr.Rank() {
			off = max(off, math.Abs(r-1-want[i]))
		}
		if same := off <= 1e-8; same != (c.m == n) {
			t.Errorf("%d samples, %d levels: SoftRank less 1 is off by %v", n, c.m, off)
		}
	}
}

// TestPeerQuantiles: Hazen's rule at ε = 0, and the documented way to the default of numpy and
// R, each against its formula on sorted x; and close to it at a small ε.
func TestPeerQuantiles(t *testing.T) {
	place := func(sorted []float64, at float64) float64 {
		at = min(max(at, 0), float64(len(sorted)-1))
		k := min(int(at), len(sorted)-1)
		return sorted[k] + (at-float64(k))*(sorted[min(k+1, len(sorted)-1)]-sorted[k])
	}
	for seed := range 300 {
		r := random.Split(73, seed)
		x := make([]float64, 1+r.IntN(40))
		for i := range x {
			x[i] = normal(&r)
		}
		sorted, n := slices.Clone(x), float64(len(x))
		slices.Sort(sorted)
		for _, p := range []float64{0, 0.05, 0.1, 0.25, 1.0 / 3, 0.5, 0.75, 0.9, 0.99, 1, r.Float64()} {
			hazen, err := SoftQuantiles(x, []float64{p}, WithEpsilon(0))
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, "Hazen", hazen, []float64{place(sorted, p*n-0.5)}, 1e-11)
			level := []float64{(p*(n-1) + 0.5) / n}
			numpy, _ := SoftQuantiles(x, level, WithEpsilon(0))
			closeTo(t, "numpy", numpy, []float64{place(sorted, p*(n-1))}, 1e-11)
			soft, _ := SoftQuantiles(x, level, WithEpsilon(1e-7))
			closeTo(t, "numpy, nearly", soft, numpy, 2e-3)
		}
	}
}

// TestSteps: from which ε on a map of few levels is smooth and below which a chain of steps, as
// "Choosing ε" has it: the least over the greatest slope of the middle half.
func TestSteps(t *testing.T) {
	x := make([]float64, 4000)
	for i := range x {
		x[i] = (float64(i) + 0.5) / float64(len(x))
	}
	for _, m := range []int{8, 16, 64} {
		for _, c := range []struct{ of, low, high float64 }{{1, 0.96, 1}, {0.5, 0.76, 0.85}, {0.25, 0.14, 0.25}, {0.125, 0, 0.01}} {
			q := make([]float64, m)
			for j := range q {
				q[j] = float64(j)
			}
			tr, err := Solve(x, WithLevels(m), WithSquash(SquashNone), WithEpsilon(c.of/float64((m-1)*(m-1))))
			if err != nil {
				t.Fatal(err)
			}
			f, _ := tr.Map(q)
			least, most := math.Inf(1), 0.0
			for _, v := range x[len(x)/4 : 3*len(x)/4] {
				least, most = min(least, f.Slope(v)), max(most, f.Slope(v))
			}
			if ratio := least / most; !(ratio >= c.low && ratio <= c.high) {
				t.Errorf("m = %d, ε = %v/(m-1)²: slopes from %v to %v, a ratio of %v", m, c.of, least, most, ratio)
			}
		}
	}
}

// TestMemoryOfAbsurd: what no fit could hold is counted, too.
func TestMemoryOfAbsurd(t *testing.T) {
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		small, err := MemoryOf(method, 10, 10, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []int{1 << 20, 1 << 29, math.MaxInt/2 + 1, math.MaxInt} {
			if got, err := MemoryOf(method, 10, 10, 2, WithLevels(m)); err != nil || got.Fit <= small.Fit {
				t.Errorf("%v of %d levels: %v, %v", method, m, got, err)
			}
			if got, err := MemoryOf(method, 10, m, 2); err != nil || got.Fit <= small.Fit {
				t.Errorf("%v of %d samples: %v, %v", method, m, got, err)
			}
		}
	}
}
