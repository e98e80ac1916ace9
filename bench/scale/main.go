//go:build linux

// Scale measures what fits of many sizes take in time and memory, and writes what docs/scale.md has of it.
//
//	cd bench && go run ./scale          measures all, which takes a quarter of an hour, and writes the page
//	cd bench && go run ./scale page     writes the page of what was measured before
//
// What was measured is kept in docs/measurements/scale.tsv. Each fit runs in a process of its own on one thread. Its times are seconds
// of the processor, so that other programs disturb little; its memory is the most that was resident beyond what was before
// the fit, while the collector runs at each tenth by which the heap grows.
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
	if args[0] == "one" { // a process of measureAll
		return one(strings.Join(args[1:], " "))
	}
	return fmt.Errorf("what is %q?", strings.Join(args, " "))
}
