package account_test

// This file tests the tests of components: each against R (testdata/known.R, which testdata/known.py checks
// by scipy), and what is said of tracks and sets whose truth is known.

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestAgreesWithR: effects and p-values are those of R, to a relative 1e-9.
func TestAgreesWithR(t *testing.T) {
	t.Parallel()
	var r struct {
		Cases []struct {
			X, Y, Time                               []float64
			Of                                       []int
			Event                                    []bool
			Groups                                   int
			Kruskal, Spearman, Wilcoxon, Cox, Hazard []float64
			Both                                     []float64
		}
		P, Q []float64
	}
	OK(t, json.Unmarshal(Must(os.ReadFile("testdata/known.json"))(t), &r))
	near := func(what string, got []float64, want []float64) {
		t.Helper()
		for i, w := range want {
			if !(math.Abs(got[i]-w) <= 1e-9*math.Abs(w)+1e-14) {
				t.Errorf("%s: %v, R has %v", what, got, want)
			}
		}
	}
	for _, c := range r.Cases {
		x := quantmf.Mat{Rows: 1, Cols: len(c.X), Stride: len(c.X), Data: c.X}
		tests := account.Against(x, []account.Track{
			{Name: "g", Groups: slices.Repeat([]string{"g"}, c.Groups), Of: c.Of},
			{Name: "y", Numbers: c.Y}, {Name: "s", Numbers: c.Time, Event: c.Event}})
		near("Kruskal-Wallis", []float64{tests[0].Effect, tests[0].P}, c.Kruskal)
		near("Spearman", []float64{tests[1].Effect, tests[1].P}, c.Spearman)
		var members []int
		for j, g := range c.Of {
			if g == 0 {
				members = append(members, j)
			}
		}
		above, p := account.MannWhitney(account.RanksOf(c.X), members)
		near("Mann-Whitney", []float64{above, p}, c.Wilcoxon)
		if len(c.Both) == 0 { // six samples, whose coefficients may be infinite
			continue
		}
		near("hazard", []float64{tests[2].Effect, tests[2].Low, tests[2].High}, c.Hazard)
		var one, two [][]float64
		for j, v := range c.X {
			one, two = append(one, []float64{v}), append(two, []float64{v, c.Y[j]})
		}
		m := Must(account.FitCox(c.Time, c.Event, one))(t)
		near("Cox", []float64{m.Coef[0], m.StdErr[0], m.P[0], m.LR}, c.Cox)
		m = Must(account.FitCox(c.Time, c.Event, two))(t)
		near("Cox of two", append(append(slices.Clone(m.Coef), m.P...), m.LR), c.Both)
	}
	near("Benjamini-Hochberg", account.BenjaminiHochberg(r.P), r.Q)
	if len(r.Cases) < 30 {
		t.Errorf("%d cases", len(r.Cases))
	}
}

// TestCoxHasNone: what has no likelihood with a single maximum.
func TestCoxHasNone(t *testing.T) {
	t.Parallel()
	time, event := []float64{1, 2, 3, 4, 5, 6}, []bool{true, true, true, true, true, true}
	of := func(columns ...[]float64) (x [][]float64) {
		for j := range time {
			var row []float64
			for _, c := range columns {
				row = append(row, c[j])
			}
			x = append(x, row)
		}
		return x
	}
	some := []float64{3, 1, 4, 1, 5, 9}
	for what, x := range map[string][][]float64{
		"the same twice": of(some, some), "constant": of(make([]float64, 6)),
		"of another number": of(some)[1:],
	} {
		if m, err := account.FitCox(time, event, x); err == nil {
			t.Errorf("%s: %v", what, m)
		}
	}
	if _, err := account.FitCox(time, make([]bool, 6), of(some)); err == nil {
		t.Error("without an event")
	}
	if m, err := account.FitCox(time, event, of([]float64{6, 5, 4, 3, 2, 1})); err != nil || m.Converged {
		t.Errorf("a coefficient that is infinite: %v, %v", m, err)
	}
}

// TestAgainst: a component that is a group, a number or a hazard is found so, and what cannot be tested says
// why and does not count among the tests.
func TestAgainst(t *testing.T) {
	t.Parallel()
	const n = 40
	v := quantmf.NewMat(2, n) // the second is the same in all
	age, time, blank := make([]float64, n), make([]float64, n), slices.Repeat([]float64{math.NaN()}, n)
	event, of, one := make([]bool, n), make([]int, n), make([]int, n)
	for j := range n {
		v.Set(0, j, float64(j%20)+0.25)
		v.Set(1, j, 7)
		age[j], time[j], event[j] = -float64(j%20), float64(30-j%20+3*(j%7)), j%3 > 0
		of[j], one[j] = 1-j%20/10, 2*(j%2)-1
		if j < 4 {
			of[j], age[j] = -1, math.NaN()
		}
	}
	for _, o := range one {
		one[0] = max(one[0], o)
	}
	tracks := []account.Track{{Name: "site", Groups: []string{"high", "low"}, Of: of},
		{Name: "age", Numbers: age}, {Name: "os", Numbers: time, Event: event},
		{Name: "one", Groups: []string{"a", "b"}, Of: one}, {Name: "unknown", Numbers: blank}}
	tests := account.Against(v, tracks)
	if len(tests) != 10 {
		t.Fatalf("%d tests", len(tests))
	}
	site, years, hazard := tests[0], tests[1], tests[2]
	if site.Most != "high" || site.Samples != 36 || site.Effect < 0.7 || site.Q != 1.5*site.P {
		t.Errorf("groups: %+v", site)
	}
	if years.Effect != -1 || years.Samples != 36 || years.P != 0 {
		t.Errorf("numbers: %+v", years)
	}
	if !(hazard.Low > 1 && hazard.Effect > hazard.Low && hazard.High > hazard.Effect) ||
		hazard.Samples != 40 {
		t.Errorf("survival: %+v", hazard)
	}
	for i, test := range tests[3:] {
		if test.Why == "" || test.P == test.P || test.Q == test.Q || i >= 2 != (test.Component == 1) {
			t.Errorf("%s of component %d: %+v", test.Track.Name, test.Component, test)
		}
	}
	kinds := ""
	for _, track := range tracks {
		kinds += track.Kind() + " "
	}
	if kinds != "groups numbers survival groups numbers " {
		t.Error(kinds)
	}
}

// TestSets: the set of the features that a component stands for is above the others, and lines of a GMT file
// are read as they are or refused.
func TestSets(t *testing.T) {
	t.Parallel()
	const d = 40
	u, shares, goodness := quantmf.NewMat(d, 2), quantmf.NewMat(d, 2), make([]quantmf.Goodness, d)
	names := make([]string, d)
	for i := range d {
		c := i % 2
		u.Set(i, c, 1-2*float64(i/20))
		shares.Set(i, c, 1)
		goodness[i].Explained = 0.9 - float64(i)/100
		names[i] = "g" + string(rune('A'+i))
	}
	goodness[0].Explained = math.NaN()
	line := func(name string, from, to, step int) string {
		text := name + "\thttps://sets"
		for i := from; i < to; i += step {
			text += "\t" + names[i]
		}
		return text + "\r\n"
	}
	text := "\ufeff" + line("even", 0, 20, 2) + "\n" + line("odd", 1, 20, 2) + line("falling", 20, 40, 2) +
		line("four", 0, 4, 1) + line("all", 0, 40, 1) + strings.TrimSpace(line("spread", 3, 38, 5)) +
		"\tgA\tnone"
	sets, few, err := account.ReadSets(text, names)
	if err != nil || few != 2 || len(sets) != 4 || len(sets[3].Members) != 8 {
		t.Fatalf("%v, %d too few, %v", sets, few, err)
	}
	for _, test := range account.AgainstSets(u, shares, goodness, sets) {
		want := map[string]float64{"even0": 0.95, "even1": 0.5, "odd1": 1, "falling0": 0}
		above, told := want[test.Set.Name+string(rune('0'+test.Component))]
		if told && math.Abs(test.Above-above) > 0.051 || told && (test.Q < 0.05) != (above != 0.5) {
			t.Errorf("%s: %+v", test.Set.Name, test)
		}
	}
	for what, text := range map[string]string{"too few": line("four", 0, 4, 1), "no members": "a\tb\n",
		"not a table": "a b c d\n", "": ""} {
		if _, _, err := account.ReadSets(text, names); err == nil {
			t.Errorf("%q is taken", what)
		}
	}
}
