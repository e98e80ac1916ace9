package limit

import (
	"math"
	"testing"
)

// TestRanges: what the package comment says of sums and products.
func TestRanges(t *testing.T) {
	terms := math.Ldexp(1, 31)
	for name, c := range map[string]struct{ got, want float64 }{
		"squares of data":             {terms * Value * Value, 2e129},
		"products of initial factors": {terms * MostInit * MostInit, 2e109},
		"a loss under β 4":            {ProductInit * ProductInit * ProductInit * ProductInit, 1e280},
		"numbers of a map":            {Map * Map, 1e300},
		"numbers on the scale of UV":  {Moment * Moment * Moment, 1e90}, "costs": {Point * Point, 1e24},
	} {
		if !(c.got <= 1.1*c.want && c.got >= c.want/2) {
			t.Errorf("%s: %v, said to be %v", name, c.got, c.want)
		}
	}
	if !(LeastInit*MostInit == 1) || !(ProductInit > Value) || math.IsInf(2*Magnitude, 0) ||
		Product*Ratio*1e-30 > math.MaxFloat64 || math.Exp(2*LogFactor) > 1e270 {
		t.Error("a range is too wide")
	}
}

// TestTooMany: the bound is nm + 4m² > Cells, in whole numbers.
func TestTooMany(t *testing.T) {
	for _, n := range []int{1, 7, 1000, 1 << 20, math.MaxInt32} {
		lo, hi := 0, math.MaxInt32
		for lo < hi { // the most levels that are not too many
			if mid := lo + (hi-lo+1)/2; TooMany(n, mid) {
				hi = mid - 1
			} else {
				lo = mid
			}
		}
		size := func(m int) float64 { return float64(n)*float64(m) + 4*float64(m)*float64(m) }
		if size(lo) > Cells || size(lo+1) <= Cells {
			t.Errorf("n = %d: the most levels are %d, of %v numbers; one more has %v", n, lo, size(lo),
				size(lo+1))
		}
	}
}
