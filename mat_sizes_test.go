package quantmf_test

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestMatTooLarge: a matrix whose size is no number, or more than memory, is a panic that says so, never a
// matrix without its numbers.
func TestMatTooLarge(t *testing.T) {
	for _, size := range [][2]int{{math.MaxInt/2 + 1, 4}, {math.MaxInt, math.MaxInt}, {math.MaxInt / 2, 2},
		{16, math.MaxInt / 8}} {
		func() {
			defer func() {
				said, _ := recover().(string)
				Has(t, said, "larger than any memory")
			}()
			m := NewMat(size[0], size[1])
			t.Errorf("%v: a matrix with %d numbers", size, len(m.Data))
		}()
	}
}
