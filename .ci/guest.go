//go:build ignore

// Guest is the only process of the machine that .ci/avx512 emulates: its /init. It says which instructions
// the assembly may use there, runs the programs of /tests, one after the other, on the serial line, and says
// at last how many of them failed. The host then ends the machine.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quantmf/quantmf/internal/cpu"
)

func main() {
	for kind, at := range map[string]string{"proc": "/proc", "devtmpfs": "/dev"} {
		if err := syscall.Mount(kind, at, kind, 0, ""); err != nil {
			panic(err)
		}
	}
	line, err := os.OpenFile("/dev/ttyS0", os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	pattern, err := os.ReadFile("/pattern")
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(line, "guest: level", cpu.Names[cpu.Level])
	failed := 0
	tests, _ := filepath.Glob("/tests/*")
	for _, name := range tests {
		begun := time.Now()
		test := exec.Command(name, "-test.short", "-test.v", "-test.run", string(pattern))
		test.Stdout, test.Stderr = line, line
		if err := test.Run(); err != nil {
			fmt.Fprintln(line, err)
			failed++
		}
		fmt.Fprintf(line, "guest: %s took %.1f s of the machine's\n", name, time.Since(begun).Seconds())
	}
	fmt.Fprintf(line, "guest: %d of %d failed\n", failed, len(tests))
	for {
		time.Sleep(time.Hour)
	}
}
