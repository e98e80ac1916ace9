package report

// This file holds the order in which rows and columns of a heatmap stand: the
// leaves of Ward's hierarchical clustering, turned at every merge so that the
// nearest ends meet.

import (
	"math"
	"slices"
)

// tree is a clustering of points. A cluster goes by one of its points.
type tree struct {
	leaves []int   // the points in the order in which they stand
	merges []merge // those within a cluster before its own
}

// merge puts b into a. height is the root of the distance by Ward, so that of two points is their own.
type merge struct {
	a, b   int
	height float64
}

// clustered returns the tree of the points, given as rows.
func clustered(points [][]float64) tree {
	n := len(points)
	var out tree
	between := distances(points)
	d := make([][]float64, n) // between clusters, known by one of their points
	size := make([]float64, n)
	leaves := make([][]int, n) // nil: merged into another
	for i := range d {
		d[i] = slices.Clone(between[i])
		size[i], leaves[i] = 1, []int{i}
	}
	// Nearest neighbours are followed until two are each other's. Ward's distance
	// of a merged pair to others is never below the pair's own, so the chain up to
	// the pair stays valid and all is done in n² steps.
	var chain []int
	for merges := 0; merges < n-1; {
		if len(chain) == 0 {
			chain = append(chain, slices.IndexFunc(leaves, func(l []int) bool { return l != nil }))
		}
		a := chain[len(chain)-1]
		b := -1
		if len(chain) > 1 {
			b = chain[len(chain)-2] // wins ties: else the chain might run in circles
		}
		for c := range n {
			if c != a && leaves[c] != nil && (b < 0 || d[a][c] < d[a][b]) {
				b = c
			}
		}
		if len(chain) < 2 || b != chain[len(chain)-2] {
			chain = append(chain, b)
			continue
		}
		chain = chain[:len(chain)-2]
		out.merges = append(out.merges, merge{a, b, math.Sqrt(max(d[a][b], 0))})
		for c := range n {
			if c == a || c == b || leaves[c] == nil {
				continue
			}
			v := ((size[a]+size[c])*d[a][c] + (size[b]+size[c])*d[b][c] - size[c]*d[a][b]) / (size[a] +
				size[b] + size[c])
			d[a][c], d[c][a] = v, v
		}
		size[a] += size[b]
		leaves[a], leaves[b] = joined(leaves[a], leaves[b], between), nil
		merges++
	}
	for _, l := range leaves {
		if l != nil {
			out.leaves = l
		}
	}
	return out
}

// joined puts b behind a, each turned or not, such that their ends are nearest.
func joined(a, b []int, between [][]float64) []int {
	firstA, lastA, firstB, lastB := a[0], a[len(a)-1], b[0], b[len(b)-1]
	nearest := min(between[lastA][firstB], between[lastA][lastB], between[firstA][firstB],
		between[firstA][lastB])
	switch nearest {
	case between[lastA][firstB]:
	case between[lastA][lastB]:
		slices.Reverse(b)
	case between[firstA][firstB]:
		slices.Reverse(a)
	default:
		slices.Reverse(a)
		slices.Reverse(b)
	}
	return append(a, b...)
}

// distances returns the squared distances between points.
func distances(points [][]float64) [][]float64 {
	d := make([][]float64, len(points))
	for i := range d {
		d[i] = make([]float64, len(points))
	}
	for i, p := range points {
		for j := range i {
			d[i][j] = apart(p, points[j])
			d[j][i] = d[i][j]
		}
	}
	return d
}

// apart is the squared distance of two points.
func apart(p, q []float64) (sum float64) {
	for t, v := range q {
		sum += float64((p[t] - v) * (p[t] - v))
	}
	return sum
}
