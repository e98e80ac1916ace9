package bqmf

// This file holds second moments, E u uᵀ, as they are kept: packed, the lower triangle row after row, entries
// off the diagonal times √2, so that an inner product of matrices is one of vectors; and sums of them over
// what a line observes.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const root2 = math.Sqrt2

// Packed is the length of a packed K × K matrix, whole blocks.
func Packed(k int) int { return kernel.Pad(k * (k + 1) / 2) }

// diagonal returns entry c of the diagonal of b.
func diagonal(b []float64, c int) float64 { return b[c*(c+1)/2+c] }

// packOuter fills a packed uuᵀ.
func packOuter(b, u []float64) {
	at := 0
	for r, x := range u {
		x2 := x * root2
		for c, y := range u[:r] {
			b[at+c] = x2 * y
		}
		at += r
		b[at] = x * x
		at++
	}
}

// unpack fills a, K × Pad(K), with the square matrix of b.
func unpack(a, b []float64, k int) {
	kp := kernel.Pad(k)
	const off = 1 / float64(root2) // of the float64, whose inverse has other bits than that of √2
	kernel.Unpack(a, b, k, kp, off)
	for r := range k {
		a[r*kp+r] = diagonal(b, r)
		for c := range r {
			a[c*kp+r] = a[r*kp+c]
		}
		clear(a[r*kp+k : (r+1)*kp])
	}
}

// pack fills b with the lower triangle of a, K × Pad(K).
func pack(b, a []float64, k int) {
	kp, at := kernel.Pad(k), 0
	for r := range k {
		row := a[r*kp : r*kp+r+1]
		for c, y := range row[:r] {
			b[at+c] = root2 * y
		}
		at += r
		b[at] = row[r]
		at++
	}
}

// picker takes some rows, and the same columns, of a packed matrix in a given order, with signs turned where
// told.
type picker struct {
	from []int32
	sign []float64
}

func newPicker(order []int, flip []bool) (p picker) {
	for r, a := range order {
		for c, b := range order[:r+1] {
			hi, lo := max(a, b), min(a, b)
			sign := 1.0
			if flip != nil && flip[r] != flip[c] {
				sign = -1
			}
			// the diagonal stays the diagonal
			p.from, p.sign = append(p.from, int32(hi*(hi+1)/2+lo)), append(p.sign, sign)
		}
	}
	return p
}

// fill fills a packed matrix from another one, and its padding with 0.
func (p picker) fill(to, from []float64) {
	sign := p.sign[:len(p.from)]
	for at, b := range p.from {
		to[at] = sign[at] * from[b]
	}
	clear(to[len(p.from):])
}

// weights are the weights of lines, as sums over them need them.
type weights struct {
	plus, minus []float64 // a weight for each line, and less that
	zeros       []float64 // as many as a packed matrix has numbers
	index       []uint32  // 0, 1, ... for each line
	cells       []float64 // of each list the weights of its cells, whole blocks; nil: all are 1
}

// fill takes the weights w of lines whose matrices have pp numbers.
func (s *weights) fill(w []float64, pp int) {
	if len(s.minus) != len(w) {
		s.minus, s.index = make([]float64, len(w)), make([]uint32, len(w))
		for l := range s.index {
			s.index[l] = uint32(l)
		}
	}
	if len(s.zeros) < pp {
		s.zeros = make([]float64, pp)
	}
	s.plus = w
	kernel.Scale(s.minus, w, -1)
}

// observed fills b with the sum of w_l B_l over the lines that list i observes; sum is the sum over all
// lines. From one B_l to the next there are stride numbers; b and sum may be a part of a matrix, the same
// part that moments begins with. Where cells have weights, room has a number for each line.
func (s *weights) observed(b []float64, l *List, i int, sum, moments []float64, stride int, room []float64) {
	w := s.minus
	if s.cells != nil {
		w, sum = room[:len(s.plus)], s.zeros
		kernel.Multiply(w, s.plus, s.cells[i*kernel.Pad(len(w)):][:len(w)])
	} else if l.Observed {
		w, sum = s.plus, s.zeros
	}
	kernel.AccumulateFrom(b, sum, w, moments, l.At, stride)
}

const (
	panelWidth = 32      // the least width of a panel: how many numbers of each line it has
	panelCache = 1 << 14 // the most numbers of a panel that is wider than panelWidth
	panelLeast = 2       // how often each line must be read, on average, for a panel to be worth its copy
	mostPieces = 16      // the most pieces of the rows, whose sums are added in order
	pieceLines = 64      // lines that are worth a piece
)

// pieces is into how many pieces sums over lines are cut.
func pieces(lines int) int { return min(max(lines/pieceLines, 1), mostPieces) }

// gather, given the weights of lines and the cells of each list, fills sum with Σ w_l B_l over all lines, in
// the pieces of [Fit.sum], and to with the sums over what each of the lists observes. It takes a panel of the
// moments, some numbers of each line, at a time, which stays in the cache from one list to the next.
func (f *Fit) gather(to []float64, lists []List, sum, moments []float64, s *weights) {
	pp, lines := f.room.pp, len(s.plus)
	reads := 0
	for i := range lists {
		reads += len(lists[i].At)
	}
	width := max(panelCache/lines&^(panelWidth-1), panelWidth)
	if reads < panelLeast*lines || width >= pp {
		f.sum(sum, moments, s.plus)
		count := pieces(len(lists))
		f.pool.Do(count, func(w, c int) {
			from, end := pool.Cut(len(lists), count, c)
			for i := from; i < end && !f.stopped(); i++ {
				s.observed(to[i*pp:(i+1)*pp], &lists[i], i, sum, moments, pp, f.room.work[w].lines)
			}
		})
		return
	}
	panels, count := (pp+width-1)/width, pieces(lines)
	cuts := (f.pool.Workers() + panels - 1) / panels // of the lists, where panels are few
	f.pool.Do(panels*cuts, func(w, piece int) {
		from := piece / cuts * width
		n := min(width, pp-from)
		panel := &f.room.work[w].panel
		*panel = slices.Grow((*panel)[:0], (lines+2)*n)[:(lines+2)*n]
		all, part, copied := (*panel)[:n], (*panel)[n:2*n], (*panel)[2*n:]
		for l := range lines {
			copy(copied[l*n:(l+1)*n], moments[l*pp+from:])
		}
		clear(all)
		for c := range count {
			first, last := pool.Cut(lines, count, c)
			kernel.AccumulateFrom(part, s.zeros[:n], s.plus, copied, s.index[first:last], n)
			add(all, part)
		}
		if piece%cuts == 0 {
			copy(sum[from:], all)
		}
		first, last := pool.Cut(len(lists), cuts, piece%cuts)
		for i := first; i < last && !f.stopped(); i++ {
			s.observed(to[i*pp+from:][:n], &lists[i], i, all, copied, n, f.room.work[w].lines)
		}
	})
}

// sum fills to with Σ w_l B_l over all lines.
func (f *Fit) sum(to, moments, weights []float64) {
	lines, pp := len(weights), f.room.pp
	count := pieces(lines)
	f.pool.Do(count, func(_, c int) {
		part := f.room.parts[c][:pp]
		clear(part)
		from, end := pool.Cut(lines, count, c)
		for l := from; l < end && !f.stopped(); {
			n := min(4, end-l)
			kernel.AccumulateRows(part, weights[l:l+n], moments[l*pp:(l+n)*pp], n)
			l += n
		}
	})
	clear(to)
	for _, part := range f.room.parts[:count] {
		add(to, part[:pp])
	}
}

// add adds numbers to others.
func add(to, from []float64) {
	one := [1]float64{1}
	kernel.Accumulate(to, one[:], from)
}
