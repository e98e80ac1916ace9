package advice

import "testing"

func TestOneMachine(t *testing.T) {
	if got, want := OneMachine("nmf", 2000, 1000, "-k", "5"),
		"2000 × 1000 cells are few: one machine is sooner (quantmf fit -method nmf -k 5)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, size := range [][2]int{{20000, 1000}, {1 << 30, 1 << 30}} {
		if got := OneMachine("qmf", size[0], size[1]); got != "" {
			t.Errorf("%v: %q", size, got)
		}
	}
}
