package option

import "testing"

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

// TestBounds: at and beyond them.
func TestBounds(t *testing.T) {
	nan := 0.0
	nan /= nan
	if AtLeast(2, 2) != "" || AtLeast(1, 2) == "" || Weight(0) != "" || Weight(1e30) != "" ||
		Weight(1.1e30) == "" || Weight(-1) == "" || Weight(nan) == "" {
		t.Error("a bound is elsewhere")
	}
	if Name(1, "a", "b") != "b" || Name(2, "a", "b") != "2" {
		t.Error("names of constants")
	}
}
