package main

// This file runs the program in this process, as tests do.

import (
	"io"

	"github.com/quantmf/quantmf/internal/cli"
)

// run runs the program, and returns its exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	return program().Run(args, cli.Streams{In: in, Out: out, Err: errOut})
}
