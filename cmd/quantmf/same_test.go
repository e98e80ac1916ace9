package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/samebits"
	"github.com/quantmf/quantmf/internal/table"
)

// TestSame: the command's models have the hashes of the package's, from files of several formats, on one
// machine and over shards. Without QUANTMF_LONG each fit is of one format.
func TestSame(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	for a, f := range samebits.Fits() {
		if testing.Short() && strings.HasSuffix(f.Name, "missing") {
			continue
		}
		check := func(how string) {
			data := must(os.ReadFile("model"))(t)
			f.CheckFile(t, how, data)
		}
		for i, name := range []string{"x.tsv", "x.npy", "x.mtx"} {
			if os.Getenv("QUANTMF_LONG") == "" && i != 2-a%2 {
				continue
			}
			file := must(os.Create(name))(t)
			d, n := f.X.Rows, f.X.Cols
			ok(t, table.Write(file, name, "feature", table.Numbered("f", d), table.Numbered("s", n),
				f.X))
			ok(t, file.Close())
			with := func(words []string, more ...string) []string {
				return append(append(words, more...), append(f.Flags, "-progress", "none")...)
			}
			quiet(t, 0, with([]string{"fit", name, "-compare", "none", "-o", "model"},
				f.OneMachineFlags...)...)
			check("quantmf fit " + name)
			if i == 0 {
				continue
			}
			shards, dir := []int{0, 2, 3}[i], fmt.Sprintf("%s-%d", f.Name, i)
			quiet(t, 0, with([]string{"shard", "plan", name, "-o", dir, "-shards", fmt.Sprint(shards)})...)
			for out := ""; out != "over\n"; {
				for shard := range shards {
					quiet(t, 0, "shard", "step", dir, "-shard", fmt.Sprint(shard))
				}
				out, _ = quiet(t, 0, "shard", "reduce", dir)
			}
			quiet(t, 0, "shard", "finish", "-o", "model", dir)
			check(fmt.Sprintf("quantmf shard of %s, %d shards", name, shards))
		}
	}
}
