package quantmf_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestDiscreteRows: medians, ends of intervals, draws and predictions of rows that take single values are
// values that the row can take; probabilities of these add up to 1, and draws follow them. Means are not
// rounded, and rows that were measured are not.
func TestDiscreteRows(t *testing.T) {
	Slow(t)
	t.Parallel()
	const d, n = 12, 60
	whole := func(least, most float64) func(v float64) bool {
		return func(v float64) bool { return v == math.Trunc(v) && v >= least && v <= most }
	}
	doses := []float64{0.3, 1.7, 12.1}
	kinds := []struct {
		name   string
		of     func(w float64) float64
		can    func(v float64) bool
		values []float64 // all of them, nil where they are many
	}{
		{"binary", func(w float64) float64 { return math.Round(1 / (1 + math.Exp(-5*w))) }, whole(0, 1),
			[]float64{0, 1}},
		{"ratings", func(w float64) float64 { return math.Min(math.Max(math.Round(3+1.5*w), 1), 5) },
			whole(1, 5), []float64{1, 2, 3, 4, 5}},
		{"counts", func(w float64) float64 { return math.Floor(math.Exp(1 + w)) }, whole(0, math.Inf(1)),
			nil},
		{"large counts", func(w float64) float64 { return math.Floor(math.Exp(7 + w)) },
			whole(0, math.Inf(1)), nil},
		{"doses", func(w float64) float64 { return doses[int(math.Min(math.Max(1.5+w, 0), 2.9))] },
			func(v float64) bool { return slices.Contains(doses, v) }, doses},
		{"measured", math.Exp, nil, nil},
	}
	next := normal(5)
	x := NewMat(d, n)
	for j := range n {
		v := next()
		for i := range d {
			w := v + 0.6*next()
			if x.Set(i, j, kinds[i%len(kinds)].of(w)); (i+2*j)%7 == 0 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	m := fitted(t, x)
	lo, hi, err := m.Interval(0.8)
	OK(t, err)
	newLo, newHi, err := m.PredictInterval(t.Context(), x, 0.8)
	OK(t, err)
	const draws = 40
	said := []Mat{m.Median(), lo, hi, newLo, newHi}
	for seed := range uint64(draws) {
		said = append(said, m.Sample(seed))
	}
	mean, off := m.Reconstruct(), make([]bool, len(kinds)) // of each kind, whether some number is no value
	for i := range d {
		kind := kinds[i%len(kinds)]
		for j := range n {
			if kind.can == nil {
				off[i%len(kinds)] = off[i%len(kinds)] || said[0].At(i, j) != math.Trunc(said[0].At(i, j))
				continue
			}
			for _, z := range said {
				if v := z.At(i, j); !kind.can(v) {
					t.Fatalf("%s: %v is said of cell %d, %d", kind.name, v, i, j)
				}
			}
			off[i%len(kinds)] = off[i%len(kinds)] || !kind.can(mean.At(i, j))
		}
	}
	if slices.Contains(off, false) {
		t.Errorf("means, or what was measured, are rounded: %v", off)
	}
	for k, kind := range kinds {
		sums, drawn, variance := NewMat(d, n), 0.0, 0.0
		for at, v := range kind.values {
			all := Mat{Rows: d, Cols: n, Stride: n, Data: slices.Repeat([]float64{v}, d*n)}
			below, upTo, err := m.Probability(all)
			OK(t, err)
			for i := k; i < d; i += len(kinds) {
				for j := range n {
					p := upTo.At(i, j) - below.At(i, j)
					sums.Set(i, j, sums.At(i, j)+p)
					if said[0].At(i, j) == v && !(below.At(i, j) <= 0.5 && upTo.At(i, j) >= 0.5) {
						t.Errorf("%s: %v is no median of cell %d, %d", kind.name, v, i, j)
					}
					if at == 0 {
						for _, z := range said[5:] {
							if z.At(i, j) == v {
								drawn++
							}
							drawn -= p
						}
						// draws of a cell are independent, cells go along
						variance += draws * draws * p * (1 - p)
					}
				}
			}
		}
		for i := k; i < d && kind.values != nil; i += len(kinds) {
			for j := range n {
				Near(t, sums.At(i, j), 1, 1e-9, "%s: probabilities of cell %d, %d add up to", kind.name, i, j)
			}
		}
		if math.Abs(drawn) > 3*math.Sqrt(variance) {
			t.Errorf("%s: %v more draws of the least value than its probabilities say", kind.name, drawn)
		}
	}
}

// TestWithDiscrete: the option overrules what the cells show, in either direction.
func TestWithDiscrete(t *testing.T) {
	t.Parallel()
	next := normal(8)
	x := NewMat(6, 40)
	for j := range 40 {
		v := next()
		for i := range 6 {
			x.Set(i, j, math.Exp(v/2+next()/4))
		}
		x.Set(0, j, math.Round(40+10*v+3*next())) // ages
		x.Set(1, j, math.NaN())
		if j < 8 {
			x.Set(1, j, []float64{0.3, 1.7, 12.1}[j%3]) // too few to show that they are doses
		}
	}
	off := func(opts ...FitOption) (ages, doses bool) {
		m := fitted(t, x, opts...)
		for j, dose := range m.Median().Row(1) {
			ages = ages || m.Median().At(0, j) != math.Trunc(m.Median().At(0, j))
			doses = doses || dose != 0.3 && dose != 1.7 && dose != 12.1
		}
		return ages, doses
	}
	if ages, doses := off(); ages || !doses {
		t.Errorf("found in the data: ages take any value %v, doses %v", ages, doses)
	}
	if ages, doses := off(WithDiscrete(1)); !ages || doses {
		t.Errorf("WithDiscrete(1): ages take any value %v, doses %v", ages, doses)
	}
	if ages, doses := off(WithDiscrete()); !ages || !doses {
		t.Errorf("WithDiscrete(): ages take any value %v, doses %v", ages, doses)
	}
	_, err := FitBQMF(t.Context(), x, 0, WithMissingValues(), WithDiscrete(6))
	if bad := new(OptionError); !errors.As(err, &bad) || bad.Value != "6" {
		t.Errorf("a row that x has not: %v", err)
	}
}
