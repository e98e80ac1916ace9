//go:build unix

package main

// This file reads the processor time of the process, for measurements on a machine that has other
// work.

import (
	"syscall"
	"time"
)

func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
