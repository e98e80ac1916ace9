package random

import (
	"math"
	"testing"
)

// TestReference compares with the first outputs of the authors' C code for the
// state 1234567.
func TestReference(t *testing.T) {
	s := Source(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423,
		4593380528125082431, 16408922859458223821} {
		if got := s.Uint64(); got != want {
			t.Errorf("output %d = %d, want %d", i, got, want)
		}
	}
}

func TestUniform(t *testing.T) {
	s := Split(1, 2)
	const n = 100000
	sum, sq := 0.0, 0.0
	for range n {
		f := s.Float64()
		if f < 0 || f >= 1 {
			t.Fatalf("Float64 = %v", f)
		}
		sum += f
		sq += f * f
	}
	if m := sum / n; math.Abs(m-0.5) > 0.005 {
		t.Errorf("mean %v", m)
	}
	if v := sq/n - 0.25; math.Abs(v-1./12) > 0.005 {
		t.Errorf("variance %v", v)
	}
	var places [5][5]int
	for range n {
		p := []int{0, 1, 2, 3, 4}
		s.Shuffle(p)
		for place, i := range p {
			places[place][i]++
		}
	}
	for place, counts := range places {
		for i, c := range counts {
			if math.Abs(float64(c)-n/5) > 1000 {
				t.Errorf("%d comes to place %d %d times of %d", i, place, c, n)
			}
		}
	}
}
