// Package order sorts samples: it finds the permutation that puts numbers in
// increasing order, equal numbers by index.
//
// There are three ways, all with the same result. [Sorter.Sort] sorts from any order: runs
// of four by a network, then merges without branches, because a processor cannot predict
// branches on an unknown order. [Sorter.Buckets] first distributes the indices over n equal
// pieces of the range, which leaves evenly spread samples nearly in order, then calls Mend.
// [Sorter.Mend] sorts a permutation that is nearly in order by insertion, and merges where
// insertion would take too many moves.
//
// Cost: n log2 n steps of [Sorter.Sort]; about 4n steps of the others where the order is
// nearly right.
package order

import (
	"math"
	"math/bits"

	"github.com/quantmf/quantmf/internal/pool"
)

// fewMoves is the mean number of moves an entry above which merging is faster than
// insertion. bench/calibrate reads it.
const fewMoves = 8

// Sorter is the workspace of sorting. The zero value is ready for [Sorter.Resize].
type Sorter struct {
	keys []pair  // 2n: the runs, and what they are merged into
	bins []int32 // 2n: the piece of each sample, and how many samples each piece has
}

// Resize makes room for permutations of n numbers.
func (s *Sorter) Resize(a *pool.Arena, n int) {
	s.keys, s.bins = pool.Again(a, s.keys, 2*n), pool.Again(a, s.bins, 2*n)
}

// Sort fills perm with the indices of x in increasing order.
func (s *Sorter) Sort(perm []int32, x []float64) {
	for i := range perm {
		perm[i] = int32(i)
	}
	s.merge(perm, x)
}

// Mend sorts perm, which holds the indices of x in any order, by x. It is fast where perm is
// nearly in order.
func (s *Sorter) Mend(perm []int32, x []float64) {
	if !mend(perm, x) {
		s.merge(perm, x)
	}
}

// Buckets fills perm with the indices of x in increasing order. It distributes them by near,
// n numbers between the ends that increase with x and are spread about evenly.
func (s *Sorter) Buckets(perm []int32, x, near []float64, ends [2]float64) {
	bucket(perm, near, ends, s.bins)
	s.Mend(perm, x)
}

// merge sorts perm by merging.
func (s *Sorter) merge(perm []int32, x []float64) {
	n := len(perm)
	from, to := s.keys[:n], s.keys[n:2*n]
	for k, i := range perm {
		from[k] = newPair(x[i], i)
	}
	k := 0
	for ; k+4 <= n; k += 4 {
		network((*[4]pair)(from[k : k+4]))
	}
	for i := k + 1; i < n; i++ {
		for j := i; j > k; j-- {
			from[j-1], from[j] = inOrder(from[j-1], from[j])
		}
	}
	for width := 4; width < n; width *= 2 {
		for lo := 0; lo < n; lo += 2 * width {
			mid, hi := min(lo+width, n), min(lo+2*width, n)
			switch {
			case mid == hi || from[mid].less(from[mid-1]) == 0:
				copy(to[lo:hi], from[lo:hi])
			case hi-lo == 2*width:
				mergeEqual(to[lo:hi], from[lo:mid], from[mid:hi])
			default:
				merge(to[lo:hi], from[lo:mid], from[mid:hi])
			}
		}
		from, to = to, from
	}
	for k, p := range from {
		perm[k] = int32(p.i)
	}
}

// mend sorts perm by insertion; it returns false, with perm part sorted, where entries take
// more than a few moves in the mean.
func mend(perm []int32, x []float64) bool {
	if len(perm) == 0 {
		return true
	}
	moves, last := 0, x[perm[0]] // the largest so far
	for i, p := range perm {
		v := x[p]
		if v > last {
			last = v
			continue
		}
		k := i
		for k > 0 && (x[perm[k-1]] > v || x[perm[k-1]] == v && perm[k-1] > p) {
			perm[k] = perm[k-1]
			k--
		}
		perm[k] = p
		moves += i - k
		if moves > fewMoves*(i+9) && i < len(perm)-1 {
			return false
		}
	}
	return true
}

// bucket fills perm with the indices of x in nearly increasing order: by n equal
// pieces of the range between the ends, and by index in each. Squashed samples lie
// about evenly, so that insertion ends the work. bins is twice as long as perm.
func bucket(perm []int32, x []float64, ends [2]float64, bins []int32) {
	n := len(perm)
	lo, scale := ends[0], float64(n)/(ends[1]-ends[0])
	at, count, x := bins[:n], bins[n:2*n], x[:n]
	clear(count)
	for i, v := range x {
		p := uint32((v - lo) * scale)
		if p >= uint32(n) { // the last; or anything, where all are equal
			p = uint32(n) - 1
		}
		at[i] = int32(p)
		count[p]++
	}
	sum := int32(0)
	for p, c := range count {
		count[p] = sum
		sum += c
	}
	for i, p := range at {
		c := count[p]
		perm[c] = int32(i)
		count[p] = c + 1
	}
}

// pair is a sample, as a number that is ordered as it, with its index.
type pair struct{ key, i uint64 }

func newPair(x float64, i int32) pair {
	if x == 0 {
		x = 0 // and not -0
	}
	b := math.Float64bits(x)
	return pair{b ^ (uint64(int64(b)>>63) | 1<<63), uint64(i)}
}

// less returns 1 where p comes before q, else 0.
func (p pair) less(q pair) uint64 {
	_, c := bits.Sub64(p.i, q.i, 0)
	_, c = bits.Sub64(p.key, q.key, c)
	return c
}

// inOrder returns the first and the second of two.
func inOrder(p, q pair) (pair, pair) {
	m := -q.less(p)
	k, i := (p.key^q.key)&m, (p.i^q.i)&m
	return pair{p.key ^ k, p.i ^ i}, pair{q.key ^ k, q.i ^ i}
}

// network sorts four pairs.
func network(p *[4]pair) {
	a, b := inOrder(p[0], p[1])
	c, d := inOrder(p[2], p[3])
	a, c = inOrder(a, c)
	b, d = inOrder(b, d)
	b, c = inOrder(b, c)
	p[0], p[1], p[2], p[3] = a, b, c, d
}

// mergeEqual merges two runs of equal length from both ends at once, in as many steps as a
// run is long: no run is exhausted before, so no step checks for it.
func mergeEqual(to, a, b []pair) {
	h := len(a)
	b = b[:h]
	low, high := to[:h], to[h:2*h]
	i, j, p, q := 0, 0, h-1, h-1
	for k := range low {
		x, y := a[i], b[j]
		c := y.less(x)
		m := -c
		low[k] = pair{x.key ^ (x.key^y.key)&m, x.i ^ (x.i^y.i)&m}
		j += int(c)
		i += 1 - int(c)
		x, y = a[p], b[q]
		c = y.less(x)
		m = -c
		high[h-1-k] = pair{y.key ^ (x.key^y.key)&m, y.i ^ (x.i^y.i)&m}
		p -= int(c)
		q += int(c) - 1
	}
}

// merge merges two runs.
func merge(to, a, b []pair) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		c := y.less(x)
		m := -c
		to[i+j] = pair{x.key ^ (x.key^y.key)&m, x.i ^ (x.i^y.i)&m}
		j += int(c)
		i += 1 - int(c)
	}
	copy(to[i+j:], a[i:])
	copy(to[j+len(a):], b[j:])
}

// Room has room for the order of up to n numbers.
type Room struct {
	Perm   []int32 // nil before Resize
	sorter Sorter
}

// Resize makes room for n numbers.
func (r *Room) Resize(a *pool.Arena, n int) {
	r.Perm = pool.Make[int32](a, n)
	r.sorter.Resize(a, n)
}

// Sort returns the order of the values, until the next call.
func (r *Room) Sort(values []float64) []int32 {
	perm := r.Perm[:len(values)]
	r.sorter.Sort(perm, values)
	return perm
}
