//go:build !unix

package main

import "time"

// worked returns the time since the process began, multiplied by the number of cores. It stands in for the
// processor time, which is not read on this system.
func worked() time.Duration { return time.Since(started) * time.Duration(cores()) }
