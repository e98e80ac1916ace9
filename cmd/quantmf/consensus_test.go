package main

import (
	"math"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// A consensus prints a line for each number of components, and keeps the last, whose file says how stable
// each component is, and how well such a fit predicts unseen values: first of all on the page.
func TestConsensus(t *testing.T) {
	t.Chdir(t.TempDir())
	out, said := fed(t, 0, small(), "consensus -k 2,3 -seeds 4 -o m.nmf -report r.html -plot p.svg -")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "2\t") || !strings.HasPrefix(lines[2], "3\t") {
		t.Errorf("printed %q", out)
	}
	Has(t, said, "values that the model has not seen are predicted")
	for name, wants := range map[string][]string{
		"r.html": {"stability ", "<b>0 %</b><span>predicted there by the mean"},
		"p.svg":  {"stability", "predicted"}, "m.nmf": {"stability\t", "unseen\t"}} {
		Has(t, textOf(t, name), wants...)
	}
	out, _ = fed(t, 0, small(), "consensus -k 2 -seeds 3 -json -")
	got := decoded[[]agreement](t, out)
	if len(got) != 1 {
		t.Fatal(out)
	}
	if a := got[0]; a.K != 2 || len(a.EachOf) != 2 || len(a.LossesOfAll) != 3 || a.Of != 6 || a.Loss <= 0 ||
		a.Predicted == nil ||
		math.Abs(a.Least-min(a.EachOf[0], a.EachOf[1])) > 0 {
		t.Errorf("the object is %+v", a)
	}
}

func TestConsensusErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []saying{
		{"-seeds 1 -", cli.Usage, "-seeds 1"},
		{"-k 2-4 -", cli.Usage, "not whole numbers"},
		{"-k 2 -o - -", cli.Usage, "standard output"},
		{"-k 2 -q q.tsv -", cli.Usage, "-q"},
		{"-k 2 -seeds 2000 -", cli.Usage, "must be from 2"},
		{"-k 2 -max-memory 1MB -", cli.BadInput, "allow more"},
		{"-k 6 -seeds 900 -max-memory 200MB -", cli.BadInput, "or seeds, or allow more"},
		{"-k 2 nothing.tsv", cli.BadInput, "no such file"},
	} {
		_, said := fed(t, c.code, small(), "consensus "+c.args)
		Has(t, said, c.says)
	}
}
