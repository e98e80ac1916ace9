package quantmf_test

import (
	"math"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf"
)

// TestMatTooLarge: a matrix whose size is no number, or more than memory, is a panic that says so, never a
// matrix without its numbers.
func TestMatTooLarge(t *testing.T) {
	for _, size := range [][2]int{{math.MaxInt/2 + 1, 4}, {math.MaxInt, math.MaxInt}, {math.MaxInt / 2, 2},
		{16, math.MaxInt / 8}} {
		func() {
			defer func() {
				said, _ := recover().(string)
				if !strings.Contains(said, "larger than any memory") {
					t.Errorf("%v: %q", size, said)
				}
			}()
			m := NewMat(size[0], size[1])
			t.Errorf("%v: a matrix with %d numbers", size, len(m.Data))
		}()
	}
}
