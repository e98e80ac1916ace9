package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestManner: how values are missing is read off a table, and known values are hidden the same way, others in
// each check and no more than may be.
func TestManner(t *testing.T) {
	whole, _ := bent(40, 90)
	src := rand.New(rand.NewPCG(1, 2))
	bad := src.Perm(whole.Cols)
	for name, c := range map[string]struct {
		manner manner
		lacks  func(i, j int) bool
	}{
		"nothing missing":   {atRandom, func(i, j int) bool { return false }},
		"at random":         {atRandom, func(i, j int) bool { return src.Float64() < 0.1 }},
		"hardly any":        {atRandom, func(i, j int) bool { return i == j && i < 3 }},
		"half of them":      {atRandom, func(i, j int) bool { return src.Float64() < 0.5 }},
		"an assay":          {together, func(i, j int) bool { return i < 8 && bad[j] < 27 }},
		"one of two assays": {together, func(i, j int) bool { return (i < 10) == (bad[j] < 45) && i < 20 }},
		"bad samples":       {together, func(i, j int) bool { return bad[j] < 20 && src.Float64() < 0.5 }},
	} {
		given := lacking(whole, c.lacks)
		if got := mannerOf(given, nil); got != c.manner {
			t.Errorf("%s: read as %v", name, got)
		} else if got == together {
			hides(t, name, together, given)
		}
	}
	low := lacking(whole, lowest(whole))
	hides(t, "low values", lowEnd, low)
}

// lowest tells whether a value is among the lowest sixth of its feature.
func lowest(x quantmf.Mat) func(i, j int) bool {
	return func(i, j int) bool {
		below := 0
		for _, v := range x.Row(i) {
			if v < x.At(i, j) {
				below++
			}
		}
		return below < x.Cols/6
	}
}

// TestMannerSaid: the command says how it hid values, by the fit's warning where they lie at an end, and what
// it says of hidden values is what happens to the missing ones.
func TestMannerSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	whole, _ := bent(30, 60)
	for manner, lacks := range map[manner]func(i, j int) bool{
		together: func(i, j int) bool { return i < 8 && j%3 == 0 },
		lowEnd:   lowest(whole),
	} {
		given := lacking(whole, lacks)
		writeTable(t, "x.csv", given)
		out, said := quiet(t, 0, "impute x.csv -o full.csv -json -interval 0.9 -checks 1")
		o := decoded[imputeObject](t, out)
		if o.Hidden != manner.String() || !strings.Contains(said, "did not see"+manner.words()+"\n") {
			t.Errorf("%v: hidden %q, %s", manner, o.Hidden, said)
		}
		held, _ := heldIn(whole, given, read(t, "full.lower.csv").X, read(t, "full.upper.csv").X)
		if math.Abs(*o.IntervalHeld-held) > 0.12 || manner == lowEnd && held > 0.7 {
			t.Errorf("%v: 90 %% intervals hold %.3f of what is missing, %.3f of what was hidden", manner,
				held, *o.IntervalHeld)
		}
	}
}

// hides checks what a manner hides of x.
func hides(t *testing.T, name string, m manner, x quantmf.Mat) {
	t.Helper()
	var last quantmf.Mat
	for check := range 4 {
		given, count := m.hide(x, rand.New(rand.NewPCG(1, uint64(check))), 0.1)
		if again, _ := m.hide(x, rand.New(rand.NewPCG(1, uint64(check))), 0.1); !same(given, again) {
			t.Errorf("%s: two calls differ", name)
		}
		if check > 0 && same(given, last) {
			t.Errorf("%s: two checks are alike", name)
		}
		last = given
		known, hidden := 0, 0
		left := make([]int, x.Cols)
		for i := range x.Rows {
			before, after := 0, 0
			for j, v := range x.Row(i) {
				if v == v {
					before++
				}
				if w := given.At(i, j); w == w {
					after++
					left[j]++
					if w != v {
						t.Fatalf("%s: a value has changed", name)
					}
				}
			}
			known, hidden = known+before, hidden+before-after
			if 2*after < before {
				t.Errorf("%s: feature %d keeps %d of %d", name, i, after, before)
			}
			if m == together && before == x.Cols && after != before {
				t.Errorf("%s: values of a feature are hidden of which none is missing", name)
			}
		}
		for j, n := range left {
			if n < 2 {
				t.Errorf("%s: sample %d keeps %d values", name, j, n)
			}
		}
		if hidden != count || count < fewHidden || m == together && count > known/10+x.Rows {
			t.Errorf("%s: %d hidden of %d, %d said", name, hidden, known, count)
		}
	}
}

// TestOverall: of the ratio of sums over features, with its standard error (Cochran 1977, 2.39).
func TestOverall(t *testing.T) {
	for _, c := range []struct {
		own           []float64
		share, stdErr float64
	}{{[]float64{1, 3}, -0.25, 0.375}, {[]float64{4}, 0.5, 0}, {[]float64{0, 0}, 0, 0}} {
		features := make([]feature, len(c.own))
		for i, own := range c.own {
			features[i] = feature{loss: 2 + float64(i), own: own}
		}
		if share, stdErr := overall(features, false); share != c.share || stdErr != c.stdErr {
			t.Errorf("%v: %v ± %v, want %v ± %v", c.own, share, stdErr, c.share, c.stdErr)
		}
	}
}
