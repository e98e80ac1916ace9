package pool

// This file holds sums over the rows of a matrix that are the same to the bit whoever makes which part
// of them. The rows are cut into runs by their number alone. Within a run rows are added in their order;
// eight runs are added in their order to a group, and the groups in their order to the whole:
//
//	Σ = (run 0 + ... + run 7) + (run 8 + ... + run 15) + ...
//
// Whoever has some of the runs makes a sum of each whole group among them, and one of each other run
// (Nodes). The whole is added up of these in their order. It takes three vectors: a run, a group, the whole.

import "slices"

const (
	radix = 8             // runs of a group
	most  = radix * radix // runs
	few   = 16            // rows that a run holds before there are that many runs
)

// RunBounds returns where the runs of d rows begin, and d. There are as few runs as have at most 16 rows
// each, but no more than 64. The sizes of two runs differ by one row at most: where there are several, each
// has 8 rows or more.
func RunBounds(d int) []int {
	count := min(most, (d+few-1)/few)
	bounds := make([]int, count+1)
	for i := range bounds {
		bounds[i], _ = Cut(d, count, i)
	}
	return bounds
}

// Node is a sum over the runs From, ..., To-1: one run, a group, or all of them.
type Node struct{ From, To int }

// Nodes returns the nodes of the runs from, ..., to-1 of so many.
func Nodes(count, from, to int) (nodes []Node) {
	if from == 0 && to == count {
		return []Node{{0, count}}
	}
	for from < to {
		end := from + 1
		if group := min((from/radix+1)*radix, count); from%radix == 0 && group <= to {
			end = group
		}
		nodes = append(nodes, Node{from, end})
		from = end
	}
	return nodes
}

// Runs is the runs that somebody has, From to To-1, of those that begin at Bounds.
type Runs struct {
	Bounds   []int
	From, To int
}

// AllRuns is all runs of d rows.
func AllRuns(d int) Runs {
	bounds := RunBounds(d)
	return Runs{bounds, 0, len(bounds) - 1}
}

// Rows returns the rows of the cut.
func (c Runs) Rows() (from, to int) { return c.Bounds[c.From], c.Bounds[c.To] }

// Nodes returns the nodes of the cut.
func (c Runs) Nodes() []Node { return Nodes(len(c.Bounds)-1, c.From, c.To) }

// Run returns the run of a row, and where it ends.
func (c Runs) Run(row int) (run, end int) {
	run, found := slices.BinarySearch(c.Bounds, row)
	if !found {
		run--
	}
	return run, c.Bounds[run+1]
}

// Sums is the sums of vectors over the runs of a cut. Entries are independent of each other: several
// goroutines may each see to some of them.
type Sums struct {
	Runs
	Parts      [][]float64 // of the nodes of the cut
	run, group []float64
	node       []int // of each run
}

// NewSums makes sums of as many entries as the product of some sizes.
func NewSums(a *Arena, cut Runs, sizes ...int) *Sums {
	s := &Sums{Runs: cut, run: a.Floats(sizes...), node: make([]int, len(cut.Bounds)-1)}
	for i, n := range cut.Nodes() {
		s.Parts = append(s.Parts, a.Floats(sizes...))
		for run := n.From; run < n.To; run++ {
			s.node[run] = i
		}
	}
	if s.all() {
		s.group = a.Floats(sizes...)
	}
	return s
}

func (s *Sums) all() bool { return s.From == 0 && s.To == len(s.Bounds)-1 }

// Open returns the entries lo to hi-1 of the run's sum, to which rows from the given one on are to be
// added. Close takes them, with the run and where the rows end.
func (s *Sums) Open(row, run, lo, hi int) []float64 {
	v := s.run[lo:hi]
	if row == s.Bounds[run] {
		clear(v)
	}
	return v
}

// Close ends what Open began.
func (s *Sums) Close(end, run, lo, hi int) {
	if end < s.Bounds[run+1] {
		return
	}
	v := s.run[lo:hi]
	if s.all() {
		s.Add(Node{run, run + 1}, lo, v)
		return
	}
	node := s.node[run]
	join(s.Parts[node][lo:hi], v, run == s.From || s.node[run-1] != node)
}

// Add adds the entries from lo on of a node to the whole. The nodes come in their order; the sums are of all
// runs.
func (s *Sums) Add(n Node, lo int, v []float64) {
	count, whole := len(s.Bounds)-1, s.Parts[0][lo:lo+len(v)]
	if n.From == 0 && n.To == count {
		copy(whole, v)
		return
	}
	first, end := n.From/radix*radix, min((n.From/radix+1)*radix, count)
	if n.From > first || n.To < end { // a run of a group
		g := s.group[lo : lo+len(v)]
		join(g, v, n.From == first)
		if n.To < end {
			return
		}
		v = g
	}
	join(whole, v, first == 0)
}

// join adds v to a sum, or begins it.
func join(sum, v []float64, begins bool) {
	if begins {
		copy(sum, v)
		return
	}
	for i, x := range v {
		sum[i] += x
	}
}
