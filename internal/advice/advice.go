// Package advice holds what the commands say of a fit over shards before it begins. docs/scale.md has the
// measurements.
package advice

import (
	"fmt"
	"strings"
)

// oneMachineCells is the number of cells below which one machine is sooner: an epoch of a QMF takes two
// seconds of one core there, and its start, which is not split, longer than its epochs.
const oneMachineCells = 2e7

// OneMachine says that a fit of d × n by a method, nmf or qmf, is made sooner on one machine; "" where it
// need not be. flags are those of the fit over shards that "quantmf fit" has as well, and they may be none.
func OneMachine(method string, d, n int, flags ...string) string {
	if float64(d)*float64(n) >= oneMachineCells {
		return ""
	}
	words := append([]string{"quantmf fit -method", method}, flags...)
	return fmt.Sprintf("%d × %d cells are few: one machine is sooner (%s)", d, n, strings.Join(words, " "))
}
