package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// worked returns how many seconds the processor has worked for this process.
func worked() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// resident returns a line of /proc/self/status in bytes: VmRSS, or VmHWM, the peak since it was last cleared.
func resident(what string) (kib float64) {
	b, _ := os.ReadFile("/proc/self/status")
	_, line, _ := strings.Cut(string(b), what+":")
	fmt.Sscan(line, &kib)
	return 1024 * kib
}

func clearPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
