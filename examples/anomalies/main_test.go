package main

import (
	"io"
	"testing"
)

// TestAnomalies: the six faulty hosts have the six largest scores, and the metric with the largest share of
// each is the one at fault, but where two metrics alone say how large a host is and either may be wrong. By
// the largest z-score of a metric no more than one of them is among the first six.
func TestAnomalies(t *testing.T) {
	byModel, byMetric, err := run(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	found, named := 0, 0
	for k := range len(faults) {
		o := byModel[k]
		metric, is := faults[o.host]
		if !is {
			t.Errorf("place %d: host %d, which is in order, for its %s (%.2g)", k+1, o.host,
				metrics[o.metric], o.score)
		}
		if metric == metrics[o.metric] {
			named++
		}
		if _, is := faults[byMetric[k]]; is {
			found++
		}
	}
	if named < len(faults)-1 || found > 1 {
		t.Errorf("%d of %d metrics are named; single metrics find %d hosts", named, len(faults), found)
	}
}
