//go:build unix

package report

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of the process, for measurements on a machine that has other work.
func CPUTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
