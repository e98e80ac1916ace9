package main

import (
	"io"
	"slices"
	"testing"
)

// TestDocuments: words of one matter are first words of one topic, and addresses that are near by their
// topics were given within a few years of each other, which the counts do not say.
func TestDocuments(t *testing.T) {
	r, err := run(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, matter := range [][]string{{"bank", "gold", "currency"}, {"jobs", "families", "working"},
		{"spain", "mexico", "treaty"}} {
		if !slices.ContainsFunc(r.words[:], func(words []string) bool {
			for _, w := range matter {
				if !slices.Contains(words, w) {
					return false
				}
			}
			return true
		}) {
			t.Errorf("no topic begins with %v: %v", matter, r.words)
		}
	}
	if r.apart > 5 || r.alone < 50 {
		t.Errorf("near addresses are %g years apart, others %g", r.apart, r.alone)
	}
}
