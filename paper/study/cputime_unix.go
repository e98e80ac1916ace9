//go:build unix

package main

// The time of processors that the process has used, for measurements on a machine that
// others load.

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
