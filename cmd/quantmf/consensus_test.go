package main

import (
	"math"
	"strings"
	"testing"
)

// A consensus prints a line for each number of components, and keeps the last, whose file says how stable
// each component is, and how well such a fit predicts unseen values: first of all on the page.
func TestConsensus(t *testing.T) {
	_, code, out, said := runWith(t, small(),
		"consensus -k 2,3 -seeds 4 -o m.nmf -report r.html -plot p.svg -")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "2\t") || !strings.HasPrefix(lines[2], "3\t") {
		t.Errorf("printed %q", out)
	}
	has(t, said, "values that the model has not seen are predicted")
	for name, wants := range map[string][]string{
		"r.html": {"stability ", "<b>0 %</b><span>predicted there by the mean"},
		"p.svg":  {"stability", "predicted"}, "m.nmf": {"stability\t", "unseen\t"}} {
		has(t, textOf(t, name), wants...)
	}
	_, code, out, said = runWith(t, small(), "consensus -k 2 -seeds 3 -json -")
	got := decoded[[]agreement](t, out)
	if code != 0 || len(got) != 1 {
		t.Fatalf("exit %d: %s %s", code, out, said)
	}
	if a := got[0]; a.K != 2 || len(a.EachOf) != 2 || len(a.LossesOfAll) != 3 || a.Of != 6 || a.Loss <= 0 ||
		a.Predicted == nil ||
		math.Abs(a.Least-min(a.EachOf[0], a.EachOf[1])) > 0 {
		t.Errorf("the object is %+v", a)
	}
}

func TestConsensusErrors(t *testing.T) {
	for want, args := range map[string]string{
		"-seeds 1":                "-seeds 1 -",
		"not whole numbers":       "-k 2-4 -",
		"standard output":         "-k 2 -o - -",
		"-q":                      "-k 2 -q q.tsv -",
		"must be from 2":          "-k 2 -seeds 2000 -",
		"allow more":              "-k 2 -max-memory 1MB -",
		"or seeds, or allow more": "-k 6 -seeds 900 -max-memory 200MB -",
		"no such file":            "-k 2 nothing.tsv",
	} {
		if _, code, _, said := runWith(t, small(), "consensus "+args); code == 0 ||
			!strings.Contains(said, want) {
			t.Errorf("%s: exit %d, %s", want, code, said)
		}
	}
}
