package quantmf_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// samplesOf are normal samples, or their exponentials, or where skew is negative those of Cauchy.
func samplesOf(n int, skew float64) []float64 {
	source := rand.New(rand.NewPCG(uint64(n), 7))
	x := make([]float64, n)
	for i := range x {
		x[i] = source.NormFloat64()
		switch {
		case skew > 0:
			x[i] = math.Exp(skew * x[i])
		case skew < 0:
			x[i] /= source.NormFloat64()
		}
	}
	return x
}

// TestChosenLevels: by default ranks are within 2e-4 of n of those by n levels, 1e-3 where tails are as heavy
// as those of Cauchy, without bias and from 1 to n; sorted values are within 2e-4 of the range where no tail
// is heavy; both keep the order of the samples.
func TestChosenLevels(t *testing.T) {
	Slow(t)
	t.Parallel()
	for _, c := range []struct {
		n         int
		skew, eps float64
	}{{61, 0, 0.01}, {129, 0, 0.01}, {300, 0, 0.1}, {400, 3, 0.01}, {500, 1, 0.001}, {500, 1, 1e-4},
		{300, 2, 0.1}, {45, 1, 0.01}, {600, -1, 0.01}, {100, 1, 1}, {200, 3, 1}, {100, 1, 5}} {
		x := samplesOf(c.n, c.skew)
		low, high := slices.Min(x), slices.Max(x)
		eps := WithEpsilon(c.eps)
		whole := Solved(t, x, eps, WithLevels(c.n))
		ranks, sorted := Must(SoftRank(x, eps))(t), Must(SoftSort(x, eps))(t)
		if len(sorted) != c.n {
			t.Fatal(len(sorted))
		}
		order := make([]int, c.n)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
		most, mean, before := 0.0, 0.0, 0.0
		for i, want := range whole.Rank() {
			most = max(most, math.Abs(ranks[i]-want)/float64(c.n))
			mean += ranks[i] / float64(c.n)
		}
		for _, i := range order {
			if r := ranks[i]; r < before || r < 1-1e-9 || r > float64(c.n)+1e-9 {
				t.Errorf("%v: rank %v after %v", c, r, before)
			}
			before = ranks[i]
		}
		heavy := c.skew > 1 || c.skew < 0
		if most > either(heavy, 1e-3, 2e-4) ||
			math.Abs(mean-float64(c.n+1)/2) > 1e-6*float64(c.n) {
			t.Errorf("%v: ranks are off by %v of n, their mean is %v", c, most, mean)
		}
		if c.n <= 45 && most > 0 {
			t.Errorf("%v: %d samples have other ranks than by as many levels, by %v", c, c.n, most)
		}
		most = 0
		for k, want := range whole.Sort() {
			most = max(most, math.Abs(sorted[k]-want)/(high-low))
			if k > 0 && sorted[k] < sorted[k-1] || sorted[k] < low || sorted[k] > high {
				t.Fatalf("%v: sorted value %d is %v after %v", c, k, sorted[k], sorted[k-1])
			}
		}
		if most > either(heavy, 0.02, 2e-4) {
			t.Errorf("%v: sorted values are off by %v of the range", c, most)
		}
	}
}

// TestLinearLevels: twenty thousand samples, whose n levels hardly any memory holds, have as many levels as
// five thousand; at ε = 0 there are n.
func TestLinearLevels(t *testing.T) {
	Slow(t)
	t.Parallel()
	for _, c := range []struct {
		n    int
		eps  float64
		want int
	}{{5000, 0.01, 60}, {20000, 0.01, 60}, {5000, 1e-4, 600}} {
		tr, err := Solve(samplesOf(c.n, 0), WithEpsilon(c.eps))
		if err != nil || len(tr.G) != c.want || !tr.Converged {
			t.Fatalf("%v: %d levels, %v", c, len(tr.G), err)
		}
	}
	if s, err := SoftSort(samplesOf(5000, 0), WithEpsilon(0)); err != nil || len(s) != 5000 {
		t.Errorf("ε = 0: %d values, %v", len(s), err)
	}
	if s, err := SoftSort(samplesOf(500, 0), WithLevels(9)); err != nil || len(s) != 9 {
		t.Errorf("nine levels: %d values, %v", len(s), err)
	}
}

// TestChosenRanksAlongWeights: chosen levels have the ranks of their places, whatever their weights, so that
// the derivative along these is that of the map onto these ranks, forward and back.
func TestChosenRanksAlongWeights(t *testing.T) {
	t.Parallel()
	const n = 100
	tr := Solved(t, samplesOf(n, 0))
	m := len(tr.G)
	q, along, z := make([]float64, m), make([]float64, m), make([]float64, n)
	for j := range q {
		q[j], along[j] = 1+(n-1)*float64(j)/float64(m-1), math.Sin(float64(j))
	}
	for i := range z {
		z[i] = math.Cos(float64(i))
	}
	forward, want := Must(tr.RankJVP(Gradient{B: along}))(t), Must(tr.QuantileJVP(q, Gradient{B: along}))(t)
	back, wantBack := Must(tr.RankVJP(z))(t).B, Must(tr.QuantileVJP(q, z))(t).B
	NearAll(t, forward, want, 1e-9*n, "sample")
	NearAll(t, back, wantBack, 1e-9*n*n, "level")
}

// TestChosenExtremes: with chosen levels, too, nothing that numbers near the largest give is infinite, and
// the gradient of sorts grows with its cotangent.
func TestChosenExtremes(t *testing.T) {
	t.Parallel()
	const n = 100
	x, z := NewMat(1, n), NewMat(1, n)
	copy(x.Data, samplesOf(n, 0))
	for i := range z.Data {
		z.Data[i] = math.Copysign(1.7e308, float64(i)-60)
	}
	far, large := NewMat(1, n), NewMat(1, n)
	for i, v := range x.Data {
		far.Data[i], large.Data[i] = math.Copysign(1e300, v), 0x1p900*v
	}
	small, grown := Must(SoftSortRowsVJP(x, x))(t), Must(SoftSortRowsVJP(x, large))(t)
	for i, v := range small.Data {
		Near(t, grown.Data[i]/0x1p900, v, 1e-12, "sample %d of a large cotangent", i)
	}
	for name, of := range map[string]func() (Mat, error){
		"sort, back":    func() (Mat, error) { return SoftSortRowsVJP(x, z) },
		"sort, forward": func() (Mat, error) { return SoftSortRowsJVP(x, z) },
		"rank, back":    func() (Mat, error) { return SoftRankRowsVJP(x, z) },
		"sort":          func() (Mat, error) { return SoftSortRows(far) },
	} {
		if v := Must(of())(t).Data; NotFinite(v) >= 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// TestOperatorsOfRows: a row has the numbers and the forward derivative that it has alone, for any number of
// workers, by default, where levels are chosen, and with levels or weights given; forward and back agree, and
// the derivative is that of differences.
func TestOperatorsOfRows(t *testing.T) {
	t.Parallel()
	const d, n = 3, 140
	x, dx := NewMat(d, n), NewMat(d, n)
	for i := range d {
		copy(x.Row(i), samplesOf(n+i, float64(i)))
		for j := range n {
			dx.Set(i, j, math.Cos(float64(i+3*j)))
		}
	}
	for name, opts := range map[string][]Option{"default": nil, "levels": {WithLevels(7)},
		"weights":   {WithTargetWeights([]float64{1, 2, 3, 4, 5})},
		"exact":     {WithEpsilon(0)},
		"iterated":  {WithIterations(30), WithLevels(6)},
		"smoothest": {WithEpsilon(1)}} {
		by := func(workers int) []Option { return append(slices.Clone(opts), WithWorkers(workers)) }
		for what, f := range map[string]struct {
			alone         func(x []float64, opts ...Option) ([]float64, error)
			rows          func(x Mat, opts ...Option) (Mat, error)
			forward, back func(x, z Mat, opts ...Option) (Mat, error)
			along         func(tr *Transport, dir Gradient) ([]float64, error)
		}{"rank": {SoftRank, SoftRankRows, SoftRankRowsJVP, SoftRankRowsVJP, (*Transport).RankJVP},
			"sort": {SoftSort, SoftSortRows, SoftSortRowsJVP, SoftSortRowsVJP, (*Transport).SortJVP}} {
			values, along := Must(f.rows(x, by(2)...))(t), Must(f.forward(x, dx, by(3)...))(t)
			z := with(values, func(i, k int, _ float64) float64 { return math.Sin(float64(2*i + 3*k)) })
			back := Must(f.back(x, z, by(1)...))(t)
			for i := range d {
				EqualAll(t, Must(f.alone(x.Row(i), opts...))(t), values.Row(i),
					"%s, %s: row %d has other numbers alone", name, what, i)
				left, right, scale := Dot(z.Row(i), along.Row(i)), Dot(back.Row(i), dx.Row(i)), 0.0
				for j, g := range back.Row(i) {
					scale += math.Abs(g * dx.At(i, j))
				}
				Near(t, left, right, 1e-10*scale, "%s, %s of row %d: forward, by the way back", name, what, i)
				// Solve has the values at chosen levels, the rows those at all places
				if name != "default" && name != "smoothest" {
					got := Must(f.along(Solved(t, x.Row(i), opts...), Gradient{X: dx.Row(i)}))(t)
					EqualAll(t, got, along.Row(i), "%s, %s: row %d has other derivatives alone", name, what,
						i)
				}
				if name == "exact" || name == "iterated" { // there the formula is not that of differences
					continue
				}
				const h = 1e-5
				moved := func(by float64) float64 {
					at := slices.Clone(x.Row(i))
					for j := range at {
						at[j] += by * dx.At(i, j)
					}
					return Dot(z.Row(i), Must(f.alone(at, opts...))(t))
				}
				want := (moved(h) - moved(-h)) / (2 * h)
				Close(t, left, want, 1e-4, "%s, %s of row %d: forward, by differences", name, what, i)
			}
		}
	}
}

// TestOperatorsOfRowsErrors: what no operator takes is a typed error that names its row.
func TestOperatorsOfRowsErrors(t *testing.T) {
	t.Parallel()
	good := NewMat(2, 3)
	bad := good.Clone()
	bad.Set(1, 2, math.NaN())
	ended, stop := context.WithCancel(context.Background())
	stop()
	for name, f := range map[string]func(x, z Mat, opts ...Option) error{
		"rank": func(x, _ Mat, opts ...Option) error { return ErrorOf(SoftRankRows(x, opts...)) },
		"sort": func(x, _ Mat, opts ...Option) error { return ErrorOf(SoftSortRows(x, opts...)) },
		"back from ranks": func(x, z Mat, opts ...Option) error {
			return ErrorOf(SoftRankRowsVJP(x, z, opts...))
		},
		"back from sorted values": func(x, z Mat, opts ...Option) error {
			return ErrorOf(SoftSortRowsVJP(x, z, opts...))
		},
	} {
		if err := f(bad, good); !DataAt(err, 1, 2) {
			t.Errorf("%s of NaN: %v", name, err)
		}
		if err := f(Mat{}, good); !Typed(err) {
			t.Errorf("%s of nothing: %v", name, err)
		}
		if err := f(good, good, WithContext(ended)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after its context: %v", name, err)
		}
		if err := f(good, good, WithContext(context.Context(nil))); !Typed(err) {
			t.Errorf("%s without a context: %v", name, err)
		}
		if err := f(good, good, WithEpsilon(-1)); !Typed(err) {
			t.Errorf("%s at ε = -1: %v", name, err)
		}
		if name[:4] == "back" {
			for _, z := range []Mat{bad, NewMat(2, 2), {}} {
				if err := f(good, z); !Typed(err) {
					t.Errorf("%s of z %d × %d: %v", name, z.Rows, z.Cols, err)
				}
			}
		}
	}
	if _, err := SoftRank([]float64{1, 2}, WithContext(ended)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("SoftRank after its context: %v", err)
	}
}
