//go:build unix

package main

import (
	"syscall"
	"time"
)

// worked returns the processor time of this process.
func worked() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return time.Since(started) * time.Duration(cores())
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
