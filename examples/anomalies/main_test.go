package main

import (
	"io"
	"testing"
)

// TestAnomalies: the six faulty hosts have the six largest scores, each for the metric that is at fault. By
// the largest z-score of a metric no more than one of them is among the first six.
func TestAnomalies(t *testing.T) {
	byModel, byMetric, err := run(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for k := range len(faults) {
		o := byModel[k]
		if metric, is := faults[o.host]; !is || metric != metrics[o.metric] {
			t.Errorf("place %d: host %d for its %s (%.2g), at fault is %q", k+1, o.host, metrics[o.metric],
				o.score,
				metric)
		}
		if _, is := faults[byMetric[k]]; is {
			found++
		}
	}
	if found > 1 {
		t.Errorf("single metrics find %d of them", found)
	}
}
