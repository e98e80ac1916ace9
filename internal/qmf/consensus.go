package qmf

// This file holds what NMFs from many seeds agree on (Kotliar et al., eLife 8:e43803, 2019). The columns of U
// of s fits, each brought to length 1, are s k points y_p. Points that few others come near are left out, and
// k-means finds k clusters of the others.
//
//	|y_p - y_q|² = 2 - 2 y_p·y_q
//	silhouette of p = (b - a) / max(a, b): a, the mean distance to the others of its cluster, b, that to the
//	nearest other cluster

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// MostSeeds bounds the number of fits: the seeds of the starts of k-means follow theirs.
const MostSeeds = 1000

const (
	// A point is left out where the mean distance to its nearest others, a share of the seeds, is larger.
	// Both are those of the reference.
	nearShare, farthest = 0.3, 0.5
	clusterStarts       = 10
)

// Agreed is what fits agree on: the median of each cluster, the largest first, with its mean silhouette and
// the number of its points; the mean of all silhouettes; and how many points were left out.
type Agreed struct {
	U         fit.Dense // d × k
	Stability []float64
	Overall   float64
	Members   []int
	Left      int
}

// NewPoints makes room for the components of so many fits of k components.
func NewPoints(d, k, seeds int) *Points {
	return &Points{y: fit.NewDense(seeds*k, d), sizes: make([]float64, seeds*k), seeds: seeds}
}

// Agree finds what the fits agree on.
func (p *Points) Agree(k int, seed uint64, workers *pool.Pool) (a Agreed) {
	p.measure(workers)
	p.leaveOut(k)
	p.join(k, seed)
	a.Left = len(p.sizes) - len(p.kept)
	a.Stability, a.Overall, a.Members = p.silhouettes(k)
	a.U = p.medians(k)
	return a
}

// Points are the components of all fits, and their clusters.
type Points struct {
	// of the fits
	y     fit.Dense // a point a row, of length 1; of length 0 a component that has died
	sizes []float64 // the sum of the component's part of UV
	seeds int

	far  fit.Dense // the distances
	kept []int     // the points that were not left out
	of   []int     // the cluster of each of them
}

// Take takes in the components of the s-th fit.
func (p *Points) Take(s int, u, v fit.Dense) {
	k := u.Cols
	for c := range k {
		y := p.y.Row(s*k + c)
		most, sum, squares, usage := 0.0, 0.0, 0.0, 0.0
		for i := range y {
			y[i] = u.Row(i)[c]
			most = max(most, y[i])
		}
		for i := range y {
			if most > 0 {
				y[i] /= most // whose square has a number
			}
			sum += y[i]
			squares += float64(y[i] * y[i])
		}
		for i := range y {
			if squares > 0 {
				y[i] /= math.Sqrt(squares)
			}
		}
		for _, v := range v.Row(c) {
			usage += v
		}
		p.sizes[s*k+c] = most * sum * usage
	}
}

// measure finds the distances.
func (p *Points) measure(workers *pool.Pool) {
	n := p.y.Rows
	p.far = fit.NewDense(n, n)
	workers.Do(n, func(_, i int) {
		for j := range i {
			p.far.Row(i)[j] = math.Sqrt(max(0, 2-2*dot(p.y.Row(i), p.y.Row(j))))
		}
	})
	for i := range n {
		for j := range i {
			p.far.Row(j)[i] = p.far.Row(i)[j]
		}
	}
}

// leaveOut keeps the points that are near others, or all where fewer than k are.
func (p *Points) leaveOut(k int) {
	near := max(1, int(nearShare*float64(p.seeds)))
	row := make([]float64, p.y.Rows)
	for i := range row {
		copy(row, p.far.Row(i))
		slices.Sort(row) // of which the first is that to itself
		if sumOf(row[:near+1]) <= farthest*float64(near) {
			p.kept = append(p.kept, i)
		}
	}
	if len(p.kept) < k {
		p.kept = make([]int, p.y.Rows)
		for i := range p.kept {
			p.kept[i] = i
		}
	}
}

// join finds k clusters of the points that were kept: of several starts the one with the least squared
// distances to the means. The larger component of the fits comes first.
func (p *Points) join(k int, seed uint64) {
	least := math.Inf(1)
	for start := range clusterStarts {
		r := random.Split(seed, MostSeeds+start)
		of, squares := p.means(k, &r)
		if squares < least {
			least, p.of = squares, of
		}
	}
	size, order, place := make([]float64, k), make([]int, k), make([]int, k)
	for at, c := range p.of {
		size[c] += p.sizes[p.kept[at]]
	}
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size[b], size[a]) })
	for at, c := range order {
		place[c] = at
	}
	for at, c := range p.of {
		p.of[at] = place[c]
	}
}

// means is k-means from means that are points far from one another (k-means++), until no point moves. It
// returns the cluster of each kept point, none of them empty, and the squared distances to the means.
func (p *Points) means(k int, r *random.Source) (of []int, squares float64) {
	n := len(p.kept)
	of = make([]int, n)
	nearest := make([]float64, n) // squared
	for c := range k {
		next := r.IntN(n)
		if all := sumOf(nearest); c > 0 && all > 0 {
			at := r.Float64() * all
			for next = 0; next < n-1 && at >= nearest[next]; next++ {
				at -= nearest[next]
			}
		}
		for at, i := range p.kept {
			d := p.far.Row(i)[p.kept[next]]
			if square := float64(d * d); c == 0 || square < nearest[at] {
				nearest[at], of[at] = square, c
			}
		}
	}
	const rounds = 300
	for range rounds {
		moved := false
		squares = 0
		to := p.sums(of, k, true)
		for at, c := range of {
			best, least := c, math.Inf(1)
			for other := range k {
				if d := to.Row(at)[other]; d < least {
					best, least = other, d
				}
			}
			moved = moved || best != c
			of[at] = best
			squares += least
		}
		if !moved {
			break
		}
	}
	p.fill(of, k)
	return of, squares
}

// sums returns for each kept point and cluster the sum of its distances to the points of the cluster; or,
// squared, the squared distance to its mean, +Inf where it has none:
//
//	|y - ȳ|² = Σ_i |y - y_i|² / c - Σ_ij |y_i - y_j|² / 2c²   for ȳ of c points
func (p *Points) sums(of []int, k int, squared bool) fit.Dense {
	to, counts, within := fit.NewDense(len(of), k), make([]float64, k), make([]float64, k)
	for at, c := range of {
		counts[c]++
		row, far := to.Row(at), p.far.Row(p.kept[at])
		for other, c := range of {
			d := far[p.kept[other]]
			if squared {
				d *= d
			}
			row[c] += d
		}
		within[c] += row[c]
	}
	if !squared {
		return to
	}
	for at := range of {
		row := to.Row(at)
		for c, count := range counts {
			if count == 0 {
				row[c] = math.Inf(1)
				continue
			}
			row[c] = row[c]/count - float64(within[c]/(2*count*count))
		}
	}
	return to
}

// fill gives each empty cluster the point that is farthest from the others of its own, of which there are
// some: points are no fewer than clusters.
func (p *Points) fill(of []int, k int) {
	counts := make([]int, k)
	for _, c := range of {
		counts[c]++
	}
	for c := range k {
		if counts[c] > 0 {
			continue
		}
		to, far, most := p.sums(of, k, false), 0, -1.0
		for at, own := range of {
			if d := to.Row(at)[own]; counts[own] > 1 && d > most {
				far, most = at, d
			}
		}
		counts[of[far]]--
		of[far], counts[c] = c, 1
	}
}

// silhouettes returns the mean silhouette of each cluster and of all kept points, and how many each has. That
// of a point alone is 0, as usual, and of one cluster 1.
func (p *Points) silhouettes(k int) (each []float64, overall float64, members []int) {
	each, members = make([]float64, k), make([]int, k)
	for _, c := range p.of {
		members[c]++
	}
	to := p.sums(p.of, k, false)
	for at, c := range p.of {
		s := 1.0
		if k > 1 {
			a, b := to.Row(at)[c]/float64(max(members[c]-1, 1)), math.Inf(1)
			for other := range k {
				if other != c {
					b = min(b, to.Row(at)[other]/float64(members[other]))
				}
			}
			if s = 0; members[c] > 1 && max(a, b) > 0 {
				s = (b - a) / max(a, b)
			}
		}
		each[c] += s
		overall += s / float64(len(p.of))
	}
	for c := range each {
		each[c] /= float64(members[c])
	}
	return each, overall, members
}

// medians returns the median of each cluster with a sum of 1. A feature whose medians are all 0, which no
// component would predict, has means in their place, and so has a component whose medians are all 0.
func (p *Points) medians(k int) fit.Dense {
	u, means := fit.NewDense(p.y.Cols, k), fit.NewDense(p.y.Cols, k)
	for c := range k {
		var members []int
		for at, of := range p.of {
			if of == c {
				members = append(members, p.kept[at])
			}
		}
		values := make([]float64, len(members))
		for i := range u.Rows {
			for at, of := range members {
				values[at] = p.y.Row(of)[i]
			}
			u.Row(i)[c] = medianOf(values)
			means.Row(i)[c] = elem.Mean(values)
		}
	}
	for i := range u.Rows {
		if sumOf(u.Row(i)) == 0 {
			copy(u.Row(i), means.Row(i))
		}
	}
	for c := range k {
		sum, from := 0.0, u
		for i := range u.Rows {
			sum += u.Row(i)[c]
		}
		if sum == 0 {
			from = means
			for i := range means.Rows {
				sum += means.Row(i)[c]
			}
		}
		for i := range u.Rows {
			if sum > 0 {
				u.Row(i)[c] = from.Row(i)[c] / sum
			}
		}
	}
	return u
}

// medianOf returns the median of values, which it sorts.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}

func sumOf(values []float64) float64 {
	s := 0.0
	for _, v := range values {
		s += v
	}
	return s
}

func dot(a, b []float64) float64 {
	s := 0.0
	for c, v := range a {
		s += float64(v * b[c])
	}
	return s
}
