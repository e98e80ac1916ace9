package option

import (
	"math"
	"strings"
	"testing"
)

// TestNames: every kind has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range Kinds {
		if name := k.String(); len(name) < 6 || name[:4] != "With" || seen[name] {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[k.String()] = true
	}
	if Kinds > 64 {
		t.Error("a Set has no bit for every kind")
	}
}

// TestFunctions: every kind is taken by some function, and those of one problem are taken alike.
func TestFunctions(t *testing.T) {
	all := Set(0)
	for _, f := range []Function{Solve, SoftRank, SoftSort, SoftQuantiles, SoftTopK, SoftQuantile,
		SoftQuantileRows, FitNMF, FitQMF, FitBQMF, FitQMFQ} {
		all |= f.Takes
		if f.Takes.Has(Workers) != true {
			t.Errorf("%s takes no number of workers", f.Name)
		}
		if f.Takes.Has(Iterations) && f.Takes.Has(Epochs) {
			t.Errorf("%s is an operator and a fit", f.Name)
		}
	}
	for k := range Kinds {
		if !all.Has(k) {
			t.Errorf("%v is taken by no function", k)
		}
	}
	if s := Of(Epsilon, Resume); !s.Has(Epsilon) || !s.Has(Resume) || s.Has(Updates) ||
		s&^Of(Resume) != Of(Epsilon) {
		t.Error("sets")
	}
}

// TestBounds: what is said of values at a bound, "" for those within it, and beyond it.
func TestBounds(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		kind   Kind
		within []float64
		beyond []float64
		says   string
	}{
		{Epsilon, []float64{0, 1e-12, 1e12}, []float64{-1, 9e-13, 2e12, math.NaN()},
			"must be 0, or from 1e-12 to 1e12"},
		{Tolerance, []float64{1e-300, 1e300}, []float64{0, -1, inf, math.NaN()},
			"must be finite and above 0"},
		{Levels, []float64{1, 1 << 31}, []float64{0, -5}, "must be at least 1"},
		{Workers, []float64{0}, []float64{-1}, "must be at least 0"},
		{LearningRate, []float64{1e-9, 100}, []float64{0, 100.1, math.NaN()},
			"must be above 0 and at most 100"},
		{Penalty, []float64{0, 1e30}, []float64{-1, 1.1e30, math.NaN()}, "must be from 0 to 1e30"},
		{Loss, []float64{-2, 4}, []float64{-2.1, 4.1, math.NaN()}, "β must be from -2 to 4"},
		{Validation, []float64{0.1, 0.5}, []float64{0, 0.51}, "must be above 0 and at most 0.5"},
	} {
		for _, v := range c.within {
			if got := c.kind.Check(v); got != "" {
				t.Errorf("%v(%v): %s", c.kind, v, got)
			}
		}
		for _, v := range c.beyond {
			if got := c.kind.Check(v); got != c.says {
				t.Errorf("%v(%v): %q, want %q", c.kind, v, got, c.says)
			}
		}
	}
}

// TestWords: the constants of an option in Go, in flags and in JavaScript.
func TestWords(t *testing.T) {
	if got := strings.Join(Start.Words(), " "); got != "auto scores nmf uniform svd" ||
		Start.Constant(4) != "StartSVD" ||
		Start.Constant(5) != "5" || Start.CheckConstant(4) != "" ||
		Start.CheckConstant(5) != "must be one of the Start constants" {
		t.Error(got)
	}
	if Squash.Words()[2] != "logisticUnit" || LearningRate.JavaScript() != "learningRate" {
		t.Error("names of JavaScript")
	}
	if Name(1, "a", "b") != "b" || Name(2, "a", "b") != "2" {
		t.Error("names of constants")
	}
}
