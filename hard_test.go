package quantmf

// Tests of the limit ε → 0: ranks, sorted values, quantiles and maps against values by hand
// and against soft operators near the limit, their cost, and the options that have no use.

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestHardLimit checks ε = 0 on small rows by hand.
func TestHardLimit(t *testing.T) {
	x := []float64{3, 1, 2, 3, 5}
	hard := WithEpsilon(0)
	r := Must(SoftRank(x, hard))(t)
	NearAll(t, r, []float64{3.5, 1, 2, 3.5, 5}, 0, "rank")
	r, _ = SoftRank([]float64{0, 1, 1, 1, 1, 5, 6}, hard)
	NearAll(t, r, []float64{1, 3.5, 3.5, 3.5, 3.5, 6, 7}, 0, "rank of four ties")
	s, _ := SoftSort(x, hard)
	NearAll(t, s, []float64{1, 2, 3, 3, 5}, 0, "sort")
	q, _ := SoftQuantile(x, []float64{10, 20, 30, 40, 50}, hard)
	NearAll(t, q, []float64{35, 10, 20, 35, 50}, 0, "quantile")
	q, _ = SoftQuantile(x, []float64{0, 1}, hard)
	NearAll(t, q, []float64{0.75, 0, 0, 0.75, 1}, 1e-15, "two levels")
	tr, _ := Solve(x, hard)
	if !tr.Converged || tr.Iterations != 0 || tr.MarginalError != 0 {
		t.Errorf("converged %v, %d iterations, error %v", tr.Converged, tr.Iterations, tr.MarginalError)
	}
	g := Must(tr.SortVJP([]float64{1, 2, 3, 4, 5}))(t)
	NearAll(t, g.X, []float64{3.5, 1, 2, 3.5, 5}, 1e-14, "sort gradient")
	// Close to the limit the soft operators agree with it.
	for seed := range 30 {
		p := randomPoint(seed, true, SquashLogistic, 1e-6)
		soft := p.solve(t)
		p.eps = 0
		lim := p.solve(t)
		a, _ := soft.Quantile(p.q)
		b, _ := lim.Quantile(p.q)
		NearAll(t, a, b, 1e-6*LargestOf(b), "T")
		NearAll(t, soft.Rank(), lim.Rank(), 1e-6*float64(len(p.x)), "R")
		NearAll(t, soft.Sort(), lim.Sort(), 1e-6, "S")
		NearAll(t, soft.Plan().Data, lim.Plan().Data, 1e-7, "P")
		NearAll(t, soft.G, lim.G, 1e-4, "G")
		NearAll(t, soft.F, lim.F, 1e-4, "F")
	}
}

// TestHardIsLinear: ε = 0 solves no system, and takes no memory for one.
func TestHardIsLinear(t *testing.T) {
	Slow(t)
	x := make([]float64, 1<<15)
	for i := range x {
		x[i] = float64((i * 4051) % len(x))
	}
	r := Must(SoftRank(x, WithEpsilon(0)))(t)
	s := Must(SoftSort(x, WithEpsilon(0)))(t)
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

// TestHardMap: at ε = 0 a map takes the samples' own values at the samples, and rises from
// float to float around every sample and every cut, with ties, weights of 0 and all.
func TestHardMap(t *testing.T) {
	Slow(t)
	check := func(name string, x, q []float64, opts ...Option) {
		t.Helper()
		tr := Solved(t, x, append(opts, WithEpsilon(0), WithLevels(len(q)))...)
		f := Must(tr.Map(q))(t)
		T, _ := tr.Quantile(q)
		at := []float64{math.Inf(-1), -math.MaxFloat64, math.Inf(1), math.MaxFloat64}
		for _, v := range append(slices.Clone(x), f.of.Cut...) {
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
					t.Errorf("%s: %v is taken, and its inverse %v (%v) maps to %v", name, v, back, err,
						f.At(back))
				}
				continue
			}
			var data *DataError
			if !errors.As(err, &data) || data.Row != -1 || data.Col != -1 || data.Value != v {
				t.Errorf("%s: %v is not taken: %v, %v", name, v, back, err)
			} else if v > low && v < high &&
				!(f.At(math.Nextafter(back, math.Inf(-1))) <= v &&
					f.At(math.Nextafter(back, math.Inf(1))) >= v) {
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
	for seed := range Draws(3000, 600, 600) {
		r := random.Split(71, seed)
		x, a := make([]float64, 1+r.IntN(9)), make([]float64, 0)
		for i := range x {
			x[i] = Normal(&r)
			if seed%2 == 0 {
				x[i] = math.Round(2 * x[i])
			}
			a = append(a, float64(max(r.IntN(5)-1, 0)))
		}
		if TotalOf(a) == 0 {
			a[0] = 1
		}
		q := make([]float64, 1+r.IntN(7))
		for j := range q {
			q[j] = Normal(&r)
			if seed%3 == 0 {
				q[j] = math.Round(q[j])
			}
		}
		slices.Sort(q)
		opts := []Option{WithSquash(Squash(r.IntN(int(SquashArctan) + 1)))}
		if r.IntN(2) == 0 {
			opts = append(opts, WithWeights(a))
		}
		check("seed "+itoa(seed), x, q, opts...)
		if t.Failed() {
			return
		}
	}
}

// TestHardMapValues has values by hand: means of q over the ties, and steps half way between the samples that
// a boundary divides. A sample without weight moves no boundary.
func TestHardMapValues(t *testing.T) {
	for _, c := range []struct {
		x, q   []float64
		opts   []Option
		values [][2]float64
	}{
		{[]float64{1, 1, 1, 2, 2, 2, 3, 3, 3}, []float64{0, 1, 2, 3, 4}, nil, [][2]float64{{0.5, 0}, {1, 0.4},
			{math.Nextafter(1, 2), 1}, {1.9, 1}, {2, 2}, {2.1, 3}, {math.Nextafter(3, 2), 3}, {3, 3.6},
			{math.Nextafter(3, 4), 4}}},
		{[]float64{0, 0.4, 0.6, 1}, []float64{0, 1}, []Option{WithWeights([]float64{1, 0, 0, 1})},
			[][2]float64{{0, 0}, {0.4, 0}, {0.49, 0}, {0.51, 1}, {0.6, 1}, {1, 1}}},
		{[]float64{5, 0, 1, 3}, []float64{10, 20}, []Option{WithSquash(SquashNone)},
			[][2]float64{{-1, 10}, {0.5, 10}, {1.99, 10}, {2.01, 20}, {4, 20}, {9, 20}}},
	} {
		tr := Solved(t, c.x, append(c.opts, WithLevels(len(c.q)), WithEpsilon(0))...)
		f, T := Must(tr.Map(c.q))(t), Must(tr.Quantile(c.q))(t)
		for _, at := range c.values {
			Near(t, f.At(at[0]), at[1], 1e-15, "T(%v)", at[0])
			if i := slices.Index(c.x, at[0]); i >= 0 && math.Abs(T[i]-at[1]) > 1e-15 {
				t.Errorf("sample %d has %v, want %v", i, T[i], at[1])
			}
		}
		if x, err := f.Invert(3.8); len(c.q) == 5 && (err == nil || x != 3) {
			t.Errorf("3.8 is jumped over at 3: %v, %v", x, err)
		}
	}
}

// TestHardOptions: what steers iterations has no use at ε = 0.
func TestHardOptions(t *testing.T) {
	x := []float64{1, 2}
	for _, o := range []Option{WithTolerance(1e-6), WithMaxIterations(9), WithIterations(1), WithStrict()} {
		for _, opts := range [][]Option{{WithEpsilon(0), o}, {o, WithEpsilon(0)}} {
			m := Must(MatOf(x))(t)
			for i, err := range []error{ErrorOf(Solve(x, opts...)), ErrorOf(SoftRank(x, opts...)),
				ErrorOf(SoftSort(x, opts...)), ErrorOf(SoftQuantile(x, x, opts...)),
				ErrorOf(SoftQuantileRows(m, m, opts...)), ErrorOf(SoftQuantiles(x, x[:1], opts...)),
				ErrorOf(SoftTopK(x, 1, opts...))} {
				if OptionOf(err) != o.setting().kind.String() {
					t.Errorf("call %d takes %v at ε = 0: %v", i, o.setting().kind, err)
				}
			}
		}
		if _, err := SoftRank(x, WithEpsilon(0), WithEpsilon(0.1), o); err != nil {
			t.Errorf("the last ε counts: %v", err)
		}
	}
}
