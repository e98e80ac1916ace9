package pool

import "testing"

// TestArena: a dry arena counts what another one makes, and a part that is released counts no more.
func TestArena(t *testing.T) {
	use := func(a *Arena) (floats []float64, bools []bool) {
		floats = a.Floats(100, 200)
		part := a.Part()
		Make[int](part, 1<<10)
		inner := part.Part()
		bools = Make[bool](inner, 3)
		part.Release()
		a.Floats(10)
		return floats, bools
	}
	wet, dry := NewArena(), DryArena()
	floats, bools := use(wet)
	if len(floats) != 20000 || len(bools) != 3 {
		t.Errorf("%d numbers, %d bools", len(floats), len(bools))
	}
	if floats, bools := use(dry); floats != nil || bools != nil {
		t.Error("a dry arena makes slices")
	}
	if floats, _ := use(nil); len(floats) != 20000 {
		t.Error("no arena makes no slice")
	}
	least := 8.0 * (20000 + 1024)
	if got := dry.Most(); got != wet.Most() || got < least || got > 1.1*least {
		t.Errorf("dry %v, wet %v, at least %v", got, wet.Most(), least)
	}
	for bytes, want := range map[float64]float64{8: 9, 32768: 36864, 32769: 40960, 81920: 81920} {
		if got := rounded(bytes); got != want {
			t.Errorf("%v bytes take %v, want %v", bytes, got, want)
		}
	}
	if dry.Floats(1<<30, 1<<30, 1<<30); dry.Most() < 1<<92 {
		t.Errorf("beyond reason: %v", dry.Most())
	}
}
