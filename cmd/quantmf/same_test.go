package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/samebits"
)

// toEnd makes the steps of all shards of a plan, round after round.
func toEnd(t *testing.T, dir string, shards int) {
	t.Helper()
	for out := ""; out != "over\n"; out, _ = quiet(t, 0, "shard reduce "+dir) {
		for shard := range shards {
			quiet(t, 0, fmt.Sprintf("shard step %s -shard %d", dir, shard))
		}
	}
}

// TestSame: the command's models have the hashes of the package's, from files of several formats, on one
// machine and over shards. Without QUANTMF_LONG each fit is of one format.
func TestSame(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	for a, f := range samebits.Fits() {
		check := func(how string) { f.CheckFile(t, how, []byte(textOf(t, "model"))) }
		flags := " -progress none " + strings.Join(f.Flags, " ") + " "
		for i, name := range []string{"x.tsv", "x.npy", "x.mtx"} {
			if os.Getenv("QUANTMF_LONG") == "" && i != 2-a%2 {
				continue
			}
			writeTable(t, name, f.X)
			quiet(t, 0, "fit -compare none -o model "+name+flags+strings.Join(f.OneMachineFlags, " "))
			check("quantmf fit " + name)
			if i == 0 {
				continue
			}
			shards, dir := []int{0, 2, 3}[i], fmt.Sprintf("fit%d-%d", a, i)
			quiet(t, 0, fmt.Sprintf("shard plan %s -o %s -shards %d%s", name, dir, shards, flags))
			toEnd(t, dir, shards)
			quiet(t, 0, "shard finish -o model "+dir)
			check(fmt.Sprintf("quantmf shard of %s, %d shards", name, shards))
		}
	}
}
