//go:build linux

// Scale measures the time and memory of fits of many sizes, and writes the tables of docs/scale.md.
//
//	cd bench && go run ./scale          measures all sizes, which takes a quarter of an hour, and writes the page
//	cd bench && go run ./scale page     writes the page from earlier measurements
//
// The measurements are kept in docs/measurements/scale.tsv. Each fit runs in a process of its own on one
// thread. Its times are seconds of the processor, so that other programs disturb little. Its memory is the
// most that was resident during the fit less what was resident before it. The collector runs whenever the
// heap has grown by a tenth, so that little garbage is counted.
package main

import (
	"fmt"
	"os"
	"strings"
)

const (
	results = "../docs/measurements/scale.tsv"
	page    = "../docs/scale.md"
	plots   = "../docs/measurements/scale.svg"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch strings.Join(args, " ") {
	case "":
		if err := measureAll(); err != nil {
			return err
		}
		return writePage()
	case "page":
		return writePage()
	}
	if args[0] == "one" { // measureAll started this process
		return one(strings.Join(args[1:], " "))
	}
	return fmt.Errorf("what is %q?", strings.Join(args, " "))
}
