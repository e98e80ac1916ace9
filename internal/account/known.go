package account

// This file holds what is known of samples beside the matrix, such as their tissue, age or survival, and
// tests of the components against it: a test a component and a track,
//
//	groups    Kruskal and Wallis's test; the effect is ε², the share of rank differences between groups
//	numbers   Spearman's; the effect is the rank correlation ρ
//	survival  Cox's model of that component alone; the effect is the hazard ratio of a standard deviation
//
// with Benjamini and Hochberg's correction over all of them. Ranks do not depend on the scale of a component.

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/elem"
)

// Track is what is known of each sample: one of Of, Numbers, and Numbers with Event.
type Track struct {
	Name    string
	Groups  []string  // the names of groups
	Of      []int     // the group of each sample, -1 where it has none
	Numbers []float64 // NaN where it is not known; times, if there are events
	Event   []bool    // whether the time of the sample ended with the event, or before it
}

// Kind is "groups", "numbers" or "survival".
func (t *Track) Kind() string {
	switch {
	case t.Event != nil:
		return "survival"
	case t.Of != nil:
		return "groups"
	}
	return "numbers"
}

// Test is that of a component against a track.
type Test struct {
	Component int
	Track     *Track
	Samples   int     // of which the track is known
	Effect    float64 // ε², ρ or the hazard ratio
	Low, High float64 // the 95 % interval of a hazard ratio
	Most      string  // the group that has most of the component
	P, Q      float64 // NaN where nothing could be tested
	Why       string  // that is so
}

// Words say the size of the effect, or why there is no test.
func (t *Test) Words() string {
	number := func(v float64) string {
		return strings.Replace(strconv.FormatFloat(v, 'f', 2, 64), "-", "−", 1)
	}
	switch kind := t.Track.Kind(); {
	case t.Why != "":
		return "no test: " + t.Why
	case kind == "groups":
		return "ε² " + number(t.Effect) + ", most in " + t.Most
	case kind == "numbers":
		return "ρ " + number(t.Effect)
	}
	return "hazard × " + number(t.Effect) + " (" + number(t.Low) + " to " + number(t.High) + ")"
}

// Chance writes a p-value or a q-value.
func Chance(p float64) string {
	if p < 1e-300 {
		return "< 1e-300"
	}
	return strconv.FormatFloat(p, 'g', 2, 64)
}

// Against tests each row of v against each track.
func Against(v quantmf.Mat, tracks []Track) (tests []Test) {
	var p []float64
	for c := range v.Rows {
		for t := range tracks {
			tests = append(tests, tracks[t].against(v.Row(c)))
			tests[len(tests)-1].Component = c
			p = append(p, tests[len(tests)-1].P)
		}
	}
	for i, q := range BenjaminiHochberg(p) {
		tests[i].Q = q
	}
	return tests
}

// against tests a component.
func (t *Track) against(v []float64) Test {
	test := Test{Track: t, Effect: math.NaN(), P: math.NaN()}
	var x, y []float64
	var of []int
	var event []bool
	for j, a := range v {
		switch {
		case t.Of != nil && t.Of[j] >= 0:
			of = append(of, t.Of[j])
		case t.Of == nil && t.Numbers[j] == t.Numbers[j]:
			y = append(y, t.Numbers[j])
			if t.Event != nil {
				event = append(event, t.Event[j])
			}
		default:
			continue
		}
		x = append(x, a)
	}
	test.Samples = len(x)
	switch {
	case len(x) < 3:
		test.Why = "it is known of fewer than three samples"
	case slices.Min(x) == slices.Max(x):
		test.Why = "all samples have as much of the component"
	case t.Of != nil:
		var most int
		if test.Effect, test.P, most = KruskalWallis(x, of, len(t.Groups)); test.P == test.P {
			test.Most = t.Groups[most]
		} else {
			test.Why = "these samples are of one group"
		}
	case t.Event == nil:
		if test.Effect, test.P = Spearman(x, y); test.P != test.P {
			test.Why = "it is the same in all samples"
		}
	default:
		test.survival(y, event, x)
	}
	return test
}

// survival fits Cox's model of a component.
func (t *Test) survival(time []float64, event []bool, x []float64) {
	_, square := around(x)
	deviation := math.Sqrt(square / float64(len(x)-1))
	rows := make([][]float64, len(x))
	for j, a := range x {
		rows[j] = []float64{a}
	}
	m, err := FitCox(time, event, rows)
	switch {
	case err != nil:
		t.Why = err.Error()
	case !m.Converged:
		t.Why = "the likelihood has no maximum"
	default:
		const normal95 = 1.959963984540054
		of := func(z float64) float64 { return elem.Exp(deviation * (m.Coef[0] + float64(z*m.StdErr[0]))) }
		t.Effect, t.Low, t.High, t.P = of(0), of(-normal95), of(normal95), m.P[0]
	}
}
