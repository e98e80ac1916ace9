package main

// This file tests that all that is read is bounded by -max-memory, what a command has written for itself
// included, and that nothing is waited for in its place.

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestReadBack: a file of 2 GB in the place of a state, a blob, a kept fit or a model is refused before it is
// read, and a pipe there is not waited for.
func TestReadBack(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "matrix.tsv", small())
	for _, dir := range []string{"plan", "begun", "over"} {
		quiet(t, 0, "shard plan -method nmf -k 2 -epochs 1 -progress none -o "+dir+
			" matrix.tsv")
	}
	quiet(t, 0, "shard step -shard 0 begun")
	for range 2 {
		quiet(t, 0, "shard step -shard 0 over")
		quiet(t, 0, "shard reduce over")
	}
	OK(t, os.Mkdir("done", 0o777))
	for _, c := range []struct{ file, args string }{
		{"state", "fit -method nmf -k 2 -epochs 2 -checkpoint state -resume matrix.tsv"},
		{"done/flags", "rank -method nmf -k 1 -checkpoint done -resume matrix.tsv"},
		{"plan/plan", "shard step -shard 0 plan"},
		{"plan/round-000000", "shard step -round 0 -shard 0 plan"},
		{"plan/rows-0000", "shard step -round 0 -shard 0 plan"},
		{"begun/round-000000", "shard reduce -round 0 begun"},
		{"begun/part-000000-0000", "shard reduce -round 0 begun"},
		{"over/names", "shard finish -o model over"},
	} {
		before, err := os.ReadFile(c.file)
		there := err == nil
		line := c.args + " -max-memory 100MB -progress none"
		refused := func(says string) {
			t.Helper()
			if _, said := quiet(t, cli.BadInput, line); !strings.Contains(said, filepath.Base(c.file)) ||
				!strings.Contains(said, says) {
				t.Errorf("%s: %s", line, said)
			}
		}
		writeText(t, c.file, "")
		OK(t, os.Truncate(c.file, 2e9))
		refused("-max-memory allows 95.4 MiB")
		os.Remove(c.file)
		OK(t, syscall.Mkfifo(c.file, 0o666))
		if c.file == "state" { // of which the command line is wrong
			quiet(t, cli.Usage, line)
		} else {
			refused("is no regular file")
		}
		os.Remove(c.file)
		if there {
			writeText(t, c.file, string(before))
		}
	}
}
