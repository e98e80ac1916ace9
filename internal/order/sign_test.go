package order_test

import (
	"testing"

	"github.com/quantmf/quantmf/internal/order"
)

// TestMoreAbove: of 100 signs two standard errors are 20: 61 above and 40 below are more than chance, 60 not.
func TestMoreAbove(t *testing.T) {
	for above, want := range map[int]bool{50: false, 60: false, 61: true, 100: true, 30: false} {
		got := order.MoreAbove(100, func(i int) int {
			if i < above {
				return 1
			}
			return -1
		})
		if got != want {
			t.Errorf("%d of 100 above: %v", above, got)
		}
	}
}
