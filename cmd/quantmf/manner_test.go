package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
)

// manners are whole tables and the same with values missing in each manner.
func manners() map[string]struct {
	whole, given quantmf.Mat
	manner       manner
} {
	type table = struct {
		whole, given quantmf.Mat
		manner       manner
	}
	whole, _ := bent(40, 90, false)
	lacks := func(is func(i, j int) bool) quantmf.Mat {
		given := whole.Clone()
		for i := range whole.Rows {
			for j := range whole.Cols {
				if is(i, j) {
					given.Set(i, j, math.NaN())
				}
			}
		}
		return given
	}
	src := rand.New(rand.NewPCG(1, 2))
	bad := src.Perm(whole.Cols)
	return map[string]table{
		"nothing missing": {whole, whole.Clone(), atRandom},
		"at random":       {whole, lacks(func(i, j int) bool { return src.Float64() < 0.1 }), atRandom},
		"hardly any":      {whole, lacks(func(i, j int) bool { return i == j && i < 3 }), atRandom},
		"half of them":    {whole, lacks(func(i, j int) bool { return src.Float64() < 0.5 }), atRandom},
		"an assay":        {whole, lacks(func(i, j int) bool { return i < 8 && bad[j] < 27 }), together},
		"one of two assays": {whole,
			lacks(func(i, j int) bool { return (i < 10) == (bad[j] < 45) && i < 20 }), together},
		"bad samples": {whole, lacks(func(i, j int) bool { return bad[j] < 20 && src.Float64() < 0.5 }),
			together},
		"low values": {whole, lacks(func(i, j int) bool {
			below := 0
			for _, v := range whole.Row(i) {
				if v < whole.At(i, j) {
					below++
				}
			}
			return below < 15
		}), lowEnd},
	}
}

// TestManner: how values are missing is read off a table; known values are hidden the same way, others in
// each check and no more than may be; and the command says so and prints what comes of it.
func TestManner(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	for name, c := range manners() {
		m := must(quantmf.FitBQMF(t.Context(), c.given, 0, quantmf.WithMissingValues()))(t)
		if got := mannerOf(c.given, m.Warnings); got != c.manner {
			t.Errorf("%s: read as %v", name, got)
			continue
		}
		if c.manner == atRandom {
			continue // as before
		}
		hides(t, name, c.manner, c.given)
		if name == "bad samples" {
			continue
		}
		writeTable(t, "x.csv", c.given)
		out, said := quiet(t, 0, "impute", "x.csv", "-o", "full.csv", "-json", "-interval", "0.9", "-checks",
			"2")
		var o imputeObject
		ok(t, json.Unmarshal([]byte(out), &o))
		if o.Hidden != c.manner.String() || !strings.Contains(said, "did not see"+c.manner.words()+"\n") {
			t.Errorf("%s: hidden %q, %s", name, o.Hidden, said)
		}
		lo, hi := read(t, "full.lower.csv"), read(t, "full.upper.csv")
		held, count := 0.0, 0.0
		for i := range c.given.Rows {
			for j, v := range c.given.Row(i) {
				if v != v {
					count++
					if x := c.whole.At(i, j); x >= lo.X.At(i, j) && x <= hi.X.At(i, j) {
						held++
					}
				}
			}
		}
		// what it says of hidden values is what happens to the missing ones
		if far := *o.IntervalHeld - held/count; math.Abs(far) > 0.12 || c.manner == lowEnd &&
			held/count > 0.7 {
			t.Errorf("%s: 90 %% intervals hold %.3f of what is missing, %.3f of what was hidden", name,
				held/count, *o.IntervalHeld)
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

// TestOfMeans: of the ratio of sums over features, with its standard error (Cochran 1977, 2.39).
func TestOfMeans(t *testing.T) {
	for _, c := range []struct {
		own           []float64
		ratio, stdErr float64
	}{{[]float64{1, 3}, 1.25, 0.375}, {[]float64{4}, 0.5, 0}, {[]float64{0, 0}, 1, 0}} {
		features := make([]feature, len(c.own))
		for i, v := range c.own {
			features[i].own = v
		}
		ratio, stdErr := ofMeans(features, func(i int) float64 { return 2 + float64(i) })
		if ratio != c.ratio || stdErr != c.stdErr {
			t.Errorf("%v: %v ± %v, want %v ± %v", c.own, ratio, stdErr, c.ratio, c.stdErr)
		}
	}
}
