package say

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// TestSprintf compares with package fmt.
func TestSprintf(t *testing.T) {
	numbers := []any{0.0, math.Copysign(0, -1), 1.0, -2.5, 1e6, 1e20, 1e21, 1e22, 123456789.0, 0.0001, 0.00001, 1e-300, math.NaN(), math.Inf(-1), math.MaxFloat64, 0.12345678901234567, 99.95, 1023.5}
	for format, values := range map[string][]any{
		"a %s b":  {"", "x", "%d", "ü\x00\xff", errors.New("an error")},
		"%v":      {"x", errors.New("an error"), 3, []int{}, []int{3}, []int{3, -4}, 2.5},
		"%q":      {"", "x\"\n\u00fc\u200b\xff", byte('|'), byte('\''), byte(0), byte(0xe4)},
		"%d%%":    {0, -3, math.MaxInt32, int64(math.MaxInt64), int64(math.MinInt64), uint32(math.MaxUint32), uint64(math.MaxUint64), byte(200)},
		"#%02x":   {0, 9, 16, 255, byte(10), uint32(0x8e)},
		"%c":      {byte('f'), byte(0xe4)},
		"%g":      numbers,
		"%.3g":    numbers,
		"%.2g":    numbers,
		"%.0f %%": numbers,
		"%.2f×":   numbers,
		"%.1f":    numbers,
	} {
		for _, v := range values {
			if got, want := Sprintf(format, v), fmt.Sprintf(format, v); got != want {
				t.Errorf("%q of %v: %q, want %q", format, v, got, want)
			}
		}
	}
	if got := Sprintf("%s has %d of %.1f %%", "x", 3, 2.25); got != "x has 3 of 2.2 %" {
		t.Errorf("got %q", got)
	}
	if got := Sprintf(""); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestMistakes: a value too many, too few or of another type does not go by in silence, nor does it end the program.
func TestMistakes(t *testing.T) {
	for want, got := range map[string]string{
		"1%!(EXTRA)":      Sprintf("%d", []any{1, 2}...),
		"1 %!d(MISSING).": Sprintf("%d %d.", []any{1}...),
		"%!v(?)":          Sprintf("%v", struct{}{}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
