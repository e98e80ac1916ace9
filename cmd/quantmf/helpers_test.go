package main

// This file runs the program in this process, as tests do.

import (
	"io"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
)

// run runs the program, and returns its exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	return program().Run(args, cli.Streams{In: in, Out: out, Err: errOut})
}

// must is the value of a call that succeeds: must(f())(t).
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

// ok is for a call that succeeds.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
