//go:build !unix

package report

import "time"

var started = time.Now()

// CPUTime returns the time of the clock. It stands in for the processor time, which is not read on this
// system.
func CPUTime() time.Duration { return time.Since(started) }
