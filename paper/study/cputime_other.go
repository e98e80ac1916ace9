//go:build !unix

package main

import "time"

var started = time.Now()

// cpuTime is the clock's where the system is not asked.
func cpuTime() time.Duration { return time.Since(started) }
