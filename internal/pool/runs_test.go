package pool

import (
	"math"
	"testing"
)

// textbook adds rows up as the package comment says.
func textbook(d int, row func(i int) float64) float64 {
	var groups []float64
	bounds := RunBounds(d)
	for run := range len(bounds) - 1 {
		sum := 0.0
		for i := bounds[run]; i < bounds[run+1]; i++ {
			sum += row(i)
		}
		if run%8 == 0 {
			groups = append(groups, sum)
		} else {
			groups[run/8] += sum
		}
	}
	whole := groups[0]
	for _, g := range groups[1:] {
		whole += g
	}
	return whole
}

// TestSums: whoever has which runs, and however rows come, the whole has the bits of the textbook loop.
func TestSums(t *testing.T) {
	row := func(i int) float64 { return math.Sin(float64(3*i+1)) * math.Exp(float64(i%37)) }
	for _, d := range []int{1, 15, 16, 17, 40, 128, 143, 144, 1000, 1024, 5000} {
		want := textbook(d, row)
		for _, shards := range []int{1, 2, 3, 5, 8, 13} {
			count := len(RunBounds(d)) - 1
			if shards > count {
				continue
			}
			total := NewSums(nil, AllRuns(d), 3)
			for shard := range shards {
				cut := Runs{RunBounds(d), shard * count / shards, (shard + 1) * count / shards}
				s := NewSums(nil, cut, 3)
				from, to := cut.Rows()
				for first := from; first < to; first += 50 {
					for at := first; at < min(first+50, to); {
						run, end := cut.Run(at)
						end = min(end, first+50, to)
						v := s.Open(at, run, 1, 3)
						for i := at; i < end; i++ {
							v[0] += row(i)
							v[1] -= row(i)
						}
						s.Close(end, run, 1, 3)
						at = end
					}
				}
				for i, n := range cut.Nodes() {
					total.Add(n, 1, s.Parts[i][1:])
				}
			}
			if got := total.Parts[0]; got[1] != want || got[2] != -want || got[0] != 0 {
				t.Errorf("%d rows, %d shards: %v, want %v", d, shards, got, want)
			}
		}
	}
}

// TestNodes: the nodes of a cut are its runs, each once, and whole groups are one node.
func TestNodes(t *testing.T) {
	for count := 1; count <= most; count++ {
		for from := range count {
			for to := from + 1; to <= count; to++ {
				at, groups := from, 0
				for _, n := range Nodes(count, from, to) {
					if n.From != at || n.To <= at {
						t.Fatalf("%d: %d to %d: node %v at %d", count, from, to, n, at)
					}
					if n.To-n.From > 1 {
						groups++
					}
					at = n.To
				}
				if at != to {
					t.Fatalf("%d: %d to %d: ends at %d", count, from, to, at)
				}
				want := to/radix - (from+radix-1)/radix
				if from == 0 && to == count {
					want = min(count-1, 1)
				}
				if to == count && count%radix > 1 && from <= count/radix*radix && !(from == 0) {
					want++
				}
				if groups != max(want, 0) {
					t.Fatalf("%d: %d to %d: %d groups, want %d", count, from, to, groups, want)
				}
			}
		}
	}
}
