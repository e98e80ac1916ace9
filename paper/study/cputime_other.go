//go:build !unix

package main

import "time"

var started = time.Now()

// cpuTime returns the time of the clock. It stands in for the processor time, which is not read on this
// system.
func cpuTime() time.Duration { return time.Since(started) }
