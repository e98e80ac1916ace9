package quantmf_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// normal returns independent standard normal numbers.
func normal(seed uint64) func() float64 {
	s := random.Split(seed, 5)
	return func() float64 { return Normal(&s) }
}

// assays is a table of one component and noise, all features rising with it, and what a fit sees of it: of
// features from the first hidden on, a third of the samples have none.
func assays(d, n, hidden int, noise float64, seed uint64) (x, seen Mat) {
	next := normal(seed)
	x = NewMat(d, n)
	v := make([]float64, n)
	for j := range v {
		v[j] = next()
	}
	for i := range d {
		u := 1 + 0.3*next()
		for j := range n {
			x.Set(i, j, u*v[j]+noise*next())
		}
	}
	seen = x.Clone()
	for i := hidden; i < d; i++ {
		for j := range n / 3 {
			seen.Set(i, (7*j)%n, math.NaN())
		}
	}
	return x, seen
}

// chain is a table whose noise goes along from a feature to the next, and what a fit sees of it: of some
// features side by side a third of the samples have none.
func chain(d, n int, seed uint64) (x, seen Mat) {
	next := normal(seed)
	x, _ = assays(d, n, d, 0.1, seed+1000)
	for j := range n {
		e := next()
		for i := range d {
			e = 0.9*e + math.Sqrt(1-0.81)*next()
			x.Set(i, j, 0.3*x.At(i, j)+e)
		}
	}
	seen = x.Clone()
	for i := range d / 5 {
		for j := range n / 3 {
			seen.Set(int(seed)%(d/2)+i, (7*j)%n, math.NaN())
		}
	}
	return x, seen
}

func fitted(t *testing.T, x Mat, opts ...FitOption) *BQMF {
	t.Helper()
	m := Fitted(t, FitBQMF, x, 0, append(opts, WithMissingValues())...)
	return m
}

// TestSampleMarginals: each cell is drawn from the distribution of which Interval has the quantiles, be it
// hidden or observed, continuous or of counts.
func TestSampleMarginals(t *testing.T) {
	Slow(t)
	t.Parallel()
	const draws = 150
	_, seen := assays(12, 40, 5, 1, 1)
	counts := seen.Clone()
	for k, v := range counts.Data {
		counts.Data[k] = math.Floor(math.Exp(0.7*v + 1))
	}
	for name, x := range map[string]Mat{"real": seen, "counts": counts} {
		m := fitted(t, x)
		drawn := make([]Mat, draws)
		for seed := range drawn {
			drawn[seed] = m.Sample(uint64(seed))
		}
		for _, p := range []float64{0.5, 0.9} {
			lo, hi, err := m.Interval(p)
			OK(t, err)
			within := make([]float64, len(x.Data))
			for _, z := range drawn {
				for k, v := range z.Data {
					if v >= lo.Data[k] && v <= hi.Data[k] {
						within[k] += 1.0 / draws
					}
				}
			}
			mean := 0.0
			for k, share := range within {
				mean += share / float64(len(within))
				// a value with mass at an end of an interval lies within it
				if share < p-5*math.Sqrt(p*(1-p)/draws) || name == "real" &&
					share > p+5*math.Sqrt(p*(1-p)/draws) {
					t.Errorf("%s: %v of the draws of cell %d lie in its %v interval", name, share, k, p)
				}
			}
			if name == "real" && math.Abs(mean-p) > 0.01 {
				t.Errorf("%v of all draws lie in their %v intervals", mean, p)
			}
		}
	}
}

// TestSampleMeans: means over hidden cells of a feature, and of a sample, vary over draws as much as they are
// off. Draws that take each cell by itself have squares of three to five times as much for samples. Without
// what goes on from hidden cells to others those of chains have three times as much.
func TestSampleMeans(t *testing.T) {
	Slow(t)
	t.Parallel()
	for _, kind := range []struct {
		name string
		make func(seed uint64) (x, seen Mat)
		most float64
	}{
		{"assays", func(seed uint64) (x, seen Mat) { return assays(24, 48, 4, 0.8, seed) }, 1.5},
		// where the intervals of single cells are narrow, too
		{"chains", func(seed uint64) (x, seen Mat) { return chain(40, 60, seed) }, 2.2},
	} {
		var squares, count [2]float64
		for seed := range uint64(5) {
			x, seen := kind.make(seed)
			meansOff(fitted(t, seen), x, seen, &squares, &count)
		}
		for k, what := range []string{"features", "samples"} {
			if mean := squares[k] / count[k]; !(mean > 0.75 && mean < kind.most) {
				t.Errorf("%s: squares of what means over %s are off by, over their variance: mean %.3f",
					kind.name, what, mean)
			}
		}
	}
}

// meansOff adds the squares of what means over the hidden cells of each feature (0) and sample (1) are off
// by, over the variance that draws have of them.
func meansOff(m *BQMF, x, seen Mat, squares, count *[2]float64) {
	const draws = 24
	off := [2][][draws]float64{make([][draws]float64, x.Rows), make([][draws]float64, x.Cols)}
	for s := range draws {
		z := m.Sample(uint64(s))
		for i := range z.Rows {
			for j, v := range seen.Row(i) {
				if v != v {
					e := z.At(i, j) - x.At(i, j)
					off[0][i][s] += e
					off[1][j][s] += e
				}
			}
		}
	}
	for k := range off {
		for _, sums := range off[k] {
			mean, variance := 0.0, 0.0
			for _, e := range sums {
				mean += e / draws
			}
			for _, e := range sums {
				variance += (e - mean) * (e - mean) / (draws - 1)
			}
			if variance > 0 { // something is hidden; t² has the mean (draws-1)/(draws-3)
				squares[k] += mean * mean / variance * draws / (draws + 1) * (draws - 3) / (draws - 1)
				count[k]++
			}
		}
	}
}

// TestSampleSeeds: a seed has the same bits for every number of workers (TestGolden: and on every platform);
// another one is another draw. Models that are not as they were made have none.
func TestSampleSeeds(t *testing.T) {
	Slow(t)
	t.Parallel()
	x := kin(16, 60)
	one := fitted(t, x, WithWorkers(1))
	three := fitted(t, x, WithWorkers(3))
	if !slices.Equal(one.Sample(3).Data, three.Sample(3).Data) {
		t.Error("the draw depends on the number of workers")
	}
	if slices.Equal(one.Sample(3).Data, one.Sample(4).Data) {
		t.Error("two seeds have one draw")
	}
	read := new(BQMF)
	OK(t, read.UnmarshalBinary(FileOf(t, one)))
	if !slices.Equal(one.Sample(3).Data, read.Sample(3).Data) {
		t.Error("a model that was read draws otherwise")
	}
	one.U.Set(0, 0, 99)
	if z := one.Sample(3); z.Rows != 0 || new(BQMF).Sample(1).Rows != 0 {
		t.Error("a changed model, or none, has a draw")
	}
	stopped, err := FitBQMF(t.Context(), x, 0, WithMissingValues(),
		WithProgress(func(Progress) error { return errors.New("no further") }))
	if err == nil {
		t.Fatal("no error")
	}
	if v := stopped.Sample(1).Data; NotFinite(v) >= 0 { // of a model that knows nothing
		t.Errorf("a draw of %v", v)
	}
}

// line returns the slope of the second feature on the first, by least squares, and its variance.
func line(x Mat) (slope, variance float64) {
	n := float64(x.Cols)
	var mx, my, xx, xy, rest float64
	for j := range x.Cols {
		mx += x.At(0, j) / n
		my += x.At(1, j) / n
	}
	for j := range x.Cols {
		xx += (x.At(0, j) - mx) * (x.At(0, j) - mx)
		xy += (x.At(0, j) - mx) * (x.At(1, j) - my)
	}
	slope = xy / xx
	for j := range x.Cols {
		off := x.At(1, j) - my - slope*(x.At(0, j)-mx)
		rest += off * off
	}
	return slope, rest / (n - 2) / xx
}

// TestRubin: the slope of y on x, of which values are missing where y is large, by Rubin's rules from draws:
// with q and u the means of what line returns of M draws, and b the variance of the slopes among them, the
// variance of q is u + (1 + 1/M) b. Its 95 % intervals hold the true slope as often as they say. Those of a
// matrix that is filled with means do not, nor do those of the samples that have both values.
func TestRubin(t *testing.T) {
	Slow(t)
	t.Parallel()
	const n, draws = 150, 10
	tables := Draws(50, 18, 0)
	held := map[string]float64{}
	hold := func(what string, slope, variance float64) {
		if math.Abs(slope-1) < 2*math.Sqrt(variance) {
			held[what] += 1 / float64(tables)
		}
	}
	for seed := range uint64(tables) {
		next := normal(seed + 77)
		x := NewMat(6, n)
		var pairs []float64 // of the samples that have both
		for j := range n {
			f := next()
			a := 0.8*f + 0.6*next()
			y := a + next()
			x.Set(0, j, a)
			x.Set(1, j, y)
			for i := 2; i < 6; i++ {
				x.Set(i, j, 0.7*f+0.3*a+0.7*next())
			}
			if y > 1.2*next() { // as likely as not
				x.Set(0, j, math.NaN())
				continue
			}
			pairs = append(pairs, a, y)
		}
		m := fitted(t, x)
		fill := func(z Mat) Mat {
			for k, v := range x.Data {
				if v == v {
					z.Data[k] = v
				}
			}
			return z
		}
		var q, u, b float64
		slopes := make([]float64, draws)
		for s := range slopes {
			slope, variance := line(fill(m.Sample(uint64(s))))
			slopes[s] = slope
			q += slope / draws
			u += variance / draws
		}
		for _, slope := range slopes {
			b += (slope - q) * (slope - q) / (draws - 1)
		}
		hold("draws", q, u+(1+1.0/draws)*b)
		slope, variance := line(fill(m.Reconstruct()))
		hold("means", slope, variance)
		whole := Mat{Rows: len(pairs) / 2, Cols: 2, Stride: 2, Data: pairs}.T()
		slope, variance = line(whole)
		hold("samples with both", slope, variance)
	}
	t.Log(held)
	if share := held["draws"]; share < 0.88 {
		t.Errorf("the intervals from draws hold %.2f of the slopes", share)
	}
	for _, what := range []string{"means", "samples with both"} {
		if share := held[what]; share > 0.85 {
			t.Errorf("%s: intervals hold %.2f of the slopes: this table says nothing of draws", what, share)
		}
	}
}
