package main

// This file runs the program in this process, as tests do.

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
)

// run runs the program with a command line, whose words have no blanks, and returns its exit code; runWords
// runs it with words.
func run(line string, in io.Reader, out, errOut io.Writer) int {
	return runWords(strings.Fields(line), in, out, errOut)
}

func runWords(args []string, in io.Reader, out, errOut io.Writer) int {
	return program().Run(args, cli.Streams{In: in, Out: out, Err: errOut})
}

// decoded is what a text in JSON says.
func decoded[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
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
