package quantmf

// Tests of what a model says of itself: top features and samples, shares, goodness, bend,
// and dead components.

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// planted is a matrix of four groups of 40 features, each group led by a
// component of its own, and 40 features of noise; every feature is on a scale and
// a power of its own. group is -1 for noise.
func planted(seed int, noise float64) (x Mat, group []int) {
	const groups, size, n = 4, 40, 60
	r := random.Split(900, seed)
	v := Drawn(groups, n, func() float64 { return math.Exp(Normal(&r)) })
	x, group = NewMat((groups+1)*size, n), make([]int, (groups+1)*size)
	for i := range group {
		group[i] = i % (groups + 1)
		if group[i] == groups {
			group[i] = -1
		}
		unit, power := math.Exp(2*Normal(&r)), 0.5+1.5*r.Float64()
		u := make([]float64, groups)
		for c := range u {
			u[c] = 0.4 * r.Float64()
			if c == group[i] {
				u[c] = 1
			}
		}
		for j := range n {
			w := 0.0
			for c, a := range u {
				w += a * v.At(c, j)
			}
			if group[i] < 0 {
				w = math.Exp(Normal(&r))
			}
			x.Set(i, j, unit*math.Pow(w, power)*math.Exp(noise*Normal(&r)))
		}
	}
	return x, group
}

// purity is the part of the top features that belong to their component's
// commonest group.
func purity(tops [][]Top, group []int) float64 {
	hit, all := 0, 0
	for _, top := range tops {
		count := make([]int, 4)
		for _, p := range top {
			if g := group[p.Index]; g >= 0 {
				count[g]++
			}
			all++
		}
		hit += slices.Max(count)
	}
	return float64(hit) / float64(all)
}

// topsBy are the twenty rows with the largest entries in each column.
func topsBy(m Mat) (tops [][]Top) {
	for c := range m.Cols {
		tops = append(tops, ranked(m.Rows, 20, func(i int) float64 { return m.At(i, c) }))
	}
	return tops
}

// TestTopFeaturesFindGroups: with the measure of the package the top features of a
// component are those of a planted group; with the entries of U or with shares
// alone far fewer are.
func TestTopFeaturesFindGroups(t *testing.T) {
	Slow(t)
	seeds, noises := Draws(3, 1, 1), []float64{0.1}
	if Long {
		noises = []float64{0.1, 0.3}
	}
	sums := map[string][3]float64{}
	for seed := range seeds {
		for _, noise := range noises {
			x, group := planted(seed, noise)
			for name, m := range threeModels(t, x, 4) {
				tops := Must(m.TopFeatures(x, 20))(t)
				u, _ := m.Factors()
				by := sums[name]
				for i, tops := range [][][]Top{tops, topsBy(m.Shares()), topsBy(u)} {
					by[i] += purity(tops, group) / float64(seeds*len(noises))
				}
				sums[name] = by
			}
		}
	}
	for name, by := range sums {
		t.Logf("%s: %.2f by TopFeatures, %.2f by shares alone, %.2f by U", name, by[0], by[1], by[2])
		if by[0] < 0.8 || by[0] < by[1]+0.1 || by[0] < by[2]+0.1 {
			t.Errorf("%s: %.2f of the top features are of one group, %.2f by shares alone, %.2f by U", name,
				by[0], by[1], by[2])
		}
	}
}

// TestOneComponent: it has all of every feature, so what is explained ranks alone.
func TestOneComponent(t *testing.T) {
	x := first(toy(4), 30)
	for name, m := range threeModels(t, x, 1) {
		g, _ := m.Goodness(x)
		tops, err := m.TopFeatures(x, 100)
		if err != nil || len(tops) != 1 || len(tops[0]) != 30 {
			t.Fatalf("%s: %v, %v", name, tops, err)
		}
		for r, p := range tops[0] {
			if p.Value != max(g[p.Index].Explained, 0) || r > 0 && p.Value > tops[0][r-1].Value {
				t.Errorf("%s: place %d: %v of %v", name, r, p, g[p.Index])
			}
		}
		_, v := m.Factors()
		samples := m.TopSamples(3)[0]
		if len(samples) != 3 || v.At(0, samples[0].Index) != slices.Max(v.Row(0)) ||
			math.Abs(samples[0].Value*Mean(v.Row(0))-slices.Max(v.Row(0))) > 1e-12*slices.Max(v.Row(0)) {
			t.Errorf("%s: samples %v", name, samples)
		}
	}
}

// TestShares: they add up to 1, signs and the scales of features, samples and
// components make no difference, and equal values stand in their order.
func TestShares(t *testing.T) {
	u, _ := MatOf([]float64{1, -1}, []float64{0, 0}, []float64{1e-200, 3e-200}, []float64{5, 0},
		[]float64{7, 0}, []float64{1e300, 1e300})
	v, _ := MatOf([]float64{1, 2, 3}, []float64{-4, 4, 4})
	m := &NMF{Factorisation{U: u, V: v}}
	s := m.Shares()
	NearAll(t, s.Data, []float64{1. / 3, 2. / 3, 0, 0, 1. / 7, 6. / 7, 1, 0, 1, 0, 1. / 3, 2. / 3}, 1e-15,
		"shares")
	for c, by := range []float64{1e9, 0x1p-900} {
		for i := range u.Rows {
			u.Set(i, c, u.At(i, c)/by)
		}
		for j := range v.Cols {
			v.Set(c, j, v.At(c, j)*by)
		}
	}
	u.Set(5, 1, 0x1p900) // what it was is beyond the largest number
	u.Set(5, 0, 1/1e9)
	NearAll(t, m.Shares().Data[:10], s.Data[:10], 1e-15, "rescaled")
	g := make([]Goodness, 6)
	for i := range g {
		g[i].Explained = 0.5
	}
	g[0].Explained = -3
	var at []int
	for _, p := range topFeatures(s, g, 6)[0] {
		at = append(at, p.Index)
	}
	EqualAll(t, at, []int{3, 4, 5, 2, 0, 1}, "order")
	if got := topFeatures(s, g, -1); len(got) != 2 || len(got[0]) != 0 {
		t.Errorf("count -1: %v", got)
	}
	if got := (&Factorisation{U: NewMat(1, 2), V: NewMat(2, 3)}).TopSamples(2); got[1][0] != (Top{0, 0}) ||
		got[1][1] != (Top{1, 0}) {
		t.Errorf("samples of nothing: %v", got)
	}
	got := (&Factorisation{U: u, V: v}).TopSamples(1)
	if got[1][0] != (Top{1, 1}) || got[0][0] != (Top{2, 1.5}) {
		t.Errorf("samples %v", got)
	}
}

// TestBendOfAnyUnit: the bend of a curve does not depend on the units of either side, and is 0 of a line and
// of what does not vary.
func TestBendOfAnyUnit(t *testing.T) {
	w := []float64{0, 1, 2, 3, 4}
	curve := []float64{0, 1, 4, 9, 16} // 4w - 2 leaves 2, -1, -2, -1, 2: 14 of 174
	for _, a := range []float64{1, 1e-9, 1e120} {
		for _, b := range []float64{1, 1e-9, -1e120} {
			u, v := NewMat(3, 1), NewMat(1, len(w))
			for j := range w {
				v.Set(0, j, a*w[j])
			}
			copy(u.Data, []float64{1, 0, 0.5})
			got := bends(func(to []float64, i int) {
				for j, t := range curve {
					if to[j] = b * t; i == 2 {
						to[j] = b * (3*w[j] - 1)
					}
				}
			}, u, v)
			NearAll(t, got, []float64{14.0 / 174, 0, 0}, 1e-12, "bends")
		}
	}
	Equal(t, (bends(func(to []float64, _ int) { clear(to) },
		Mat{Rows: 1, Cols: 1, Stride: 1, Data: []float64{1}},
		Mat{Rows: 1, Cols: 3, Stride: 3, Data: w[:3]}))[0], 0, "the bend of nothing")
}

// TestBend holds it against 1-ρ² of the maps at UV, of the two models that have
// maps; features planted on bent scales are more bent than those on straight ones.
func TestBend(t *testing.T) {
	r := random.Split(903, 0)
	x, v := NewMat(30, 60), Drawn(2, 60, r.Float64)
	for i := range x.Rows {
		a := r.Float64()
		for j := range x.Cols {
			w := a*v.At(0, j) + (1-a)*v.At(1, j)
			if i%2 == 1 {
				w = 1 / (1 + math.Exp(-20*(w-0.5)))
			}
			x.Set(i, j, w)
		}
	}
	for j := range x.Cols {
		x.Set(28, j, 4)
	}
	q := Fitted(t, FitQMF, x, 2, WithShrinkage(5))
	qq := Fitted(t, FitQMFQ, x, 2)
	for name, m := range map[string]interface {
		Model
		Bend() []float64
	}{"QMF": q, "QMFQ": qq} {
		bend := m.Bend()
		uv, fit := Times(m.Factors()), m.Reconstruct() // which are the maps at UV, as TestAnswers says
		straight, bent := 0.0, 0.0
		for i, b := range bend {
			if i == 28 {
				if b != 0 {
					t.Errorf("%s: bend %v of a constant feature", name, b)
				}
				continue
			}
			rho := correlation(uv.Row(i), fit.Row(i))
			want := 1 - rho*rho
			Near(t, b, want, 1e-7, "%s: feature %d: bend", name, i)
			if i%2 == 1 {
				bent += b / 15
			} else {
				straight += b / 14
			}
		}
		t.Logf("%s: mean bend %.3f of straight scales, %.3f of bent ones", name, straight, bent)
		if bent < 2*straight {
			t.Errorf("%s: mean bend %.3f of straight scales, %.3f of bent ones", name, straight, bent)
		}
	}
}

// TestTopFeaturesOfAnother: by a matrix that the model was not fitted to, features that
// it explains worse than their mean does have the value 0, and the others their share
// times what is explained of the cells that are there.
func TestTopFeaturesOfAnother(t *testing.T) {
	const d, k = 12, 2
	x := first(toy(2), d)
	y := NewMat(d, x.Cols)
	for i := range d { // every other row turned round
		for j := range x.Cols {
			from := j
			if i%2 == 1 {
				from = x.Cols - 1 - j
			}
			y.Set(i, j, x.At(i, from)+0.01)
		}
		y.Set(i, 3*i, math.NaN())
	}
	for name, m := range threeModels(t, x, k) {
		fit := m.Reconstruct()
		u, v := m.Factors()
		worse := 0
		explained, share := make([]float64, d), NewMat(d, k)
		for i := range d {
			row := func(k, j int) bool { return k == i && y.At(k, j) == y.At(k, j) }
			explained[i] = 1 - MeanOver(1, y, fit, row)/MeanOver(1, y, RowMeans(y), row)
			if explained[i] < 0 {
				worse++
			}
			sum := 0.0
			for c := range k {
				share.Set(i, c, u.At(i, c)*TotalOf(v.Row(c)))
				sum += share.At(i, c)
			}
			for c := range k {
				share.Set(i, c, share.At(i, c)/sum)
			}
		}
		if worse == 0 || worse == d {
			t.Errorf("%s: explained %v: nothing is tested", name, explained)
		}
		tops := Must(m.TopFeatures(y, d))(t)
		for c, top := range tops {
			if len(top) != d {
				t.Fatalf("%s: %d features", name, len(top))
			}
			for at, p := range top {
				Near(t, p.Value, share.At(p.Index, c)*max(explained[p.Index], 0), 1e-9,
					"%s, component %d: feature %d", name, c, p.Index)
				if at > 0 && (p.Value > top[at-1].Value || p.Value == top[at-1].Value &&
					p.Index < top[at-1].Index) {
					t.Errorf("%s, component %d: %v after %v", name, c, p, top[at-1])
				}
			}
		}
	}
}

// TestNegativeCount: an error where there can be one, else none.
func TestNegativeCount(t *testing.T) {
	x, _ := MatOf([]float64{1, 2, 3}, []float64{3, 1, 2}, []float64{1, 1, 4})
	var option *OptionError
	for method := range MethodBQMF + 1 {
		m := Fitted(t, By(method), x, 2, WithEpochs(1))
		k := m.Shares().Cols
		if top, err := m.TopFeatures(x, -3); !errors.As(err, &option) || top != nil {
			t.Errorf("%T: %v, %v", m, top, err)
		}
		if top, err := m.TopFeatures(x, 0); err != nil || len(top) != k || k > 0 && len(top[0]) != 0 {
			t.Errorf("%T: %v, %v", m, top, err)
		}
		if top, err := m.TopFeatures(x, 5); err != nil || len(top) != k || k > 0 && len(top[0]) != 3 {
			t.Errorf("%T: %v, %v", m, top, err)
		}
		if top := m.TopSamples(-3); len(top) != k || k > 0 && len(top[0]) != 0 {
			t.Errorf("%T: %v", m, top)
		}
	}
}
