package place

// This file holds the tile: columns side by side, as the lanes of the loops in
// internal/kernel, each with a search of its own. A pass goes once through the rows of U
// and gives every lane the loss of its column at the point where its search looks, and
// what goes into a quadratic model there,
//
//	Σ_i Δ_i,   g = Σ_i s_i U_i,   H = Σ_i c_i U_i U_iᵀ,
//
// with slopes s and curvatures c in w_i = U_i v. A lane whose search has ended takes the
// next column, so that no lane waits for another; where none is left, the last lane moves into the
// gap. Each sum of a lane runs in the order of the rows, whatever the lanes beside
// it hold: the coordinates of a column depend on that column alone.

import (
	"context"

	"github.com/quantmf/quantmf/internal/kernel"
)

const (
	Widest   = 8 * kernel.Lanes  // columns of a tile
	together = 32 * kernel.Lanes // cells of rows of U that go through all sums before the next do
	kept     = 1 << 18           // products U_ic U_ib that are kept from one pass to the next, at most
)

// search is the way of a column to its coordinates.
type search interface {
	// begin takes a column, NaN where a cell is missing. It returns its cells in the rows that
	// tiles have, in the units of the search, and false if there is nothing to look for.
	begin(j int, column []float64) (x []float64, more bool)
	// point is where to look.
	point() []float64
	// model is where the g and H are wanted that belong to the point.
	model() *quadratic
	// cautious tells whether a curvature is to be at least the one expected at the point.
	cautious() bool
	// next takes the loss at the point, and the model, and finds the next one, or is at its end.
	next(loss float64) (more bool)
	// end fills v with the coordinates.
	end(v []float64)
}

// Method is what differs between [Linear] and [Mapped]: rows of U, and what a cell is to a search.
type Method interface {
	// features returns U, d × k, in the rows that matter.
	features() (u []float64, d, k int)
	// valued tells whether searches ask for losses.
	valued() bool
	// searches returns one worker's: it returns one search after another, for as many lanes. They begin one
	// at a time.
	searches() func() search
	// cells returns one worker's: for rows of t from i on, np lanes each, it fills slopes and
	// curvatures in w, and losses, if searches ask for them.
	cells() func(t *tile, i, rows, np int)
}

// tile is one worker's.
type tile struct {
	u       []float64 // d × k
	d, k    int
	wide    int       // lanes there is room for
	columns []float64 // d × wide: the columns, 0 where a cell is missing
	all     []float64 // the products of all rows of U, as group has them, which workers share, or nil
	ones    []float64
	valued  bool // there are losses
	cells   func(t *tile, i, rows, np int)

	// with each column
	lanes []lane    // of which the first busy have columns
	busy  int       // lanes that have columns
	seen  []float64 // d × wide: 1, 0 where a cell is missing; nil before a column has such a cell
	left  int       // lanes that have a column with missing cells; in the others seen is 1

	// in each pass
	cautious []int // lanes of cautious searches
	group    group
	sums     sums
}

// group is room for a group of rows, np cells each.
type group struct {
	w, loss, slope, curvature, expected []float64
	pairs                               []float64 // U_ic U_ib, b <= c, of each row
}

// sums are where the lanes look, and what a pass sums there, np numbers a row.
type sums struct{ v, loss, slope, curvature []float64 }

type lane struct {
	search
	column int
	holes  bool // some cells are missing
}

// newTile makes a tile; all is that of the others on m, or nil.
func newTile(m Method, wide int, all []float64) *tile {
	u, d, k := m.features()
	wide = min(kernel.Pad(wide), Widest)
	v := func(n int) []float64 { return make([]float64, n) }
	size, pairs := max(together, wide), k*(k+1)/2
	t := &tile{u: u, d: d, k: k, wide: wide, columns: v(d * wide), lanes: make([]lane, wide),
		all: all, valued: m.valued(), ones: v(size / kernel.Lanes), cells: m.cells(),
		cautious: make([]int, 0, wide),
		group:    group{w: v(size), loss: v(size), slope: v(size), curvature: v(size), expected: v(size)},
		sums:     sums{v: v(k * wide), loss: v(wide), slope: v(k * wide), curvature: v(pairs * wide)}}
	if all == nil {
		t.group.pairs = v(size / kernel.Lanes * pairs)
	}
	search := m.searches()
	for l := range t.lanes {
		t.lanes[l].search = search()
	}
	fill(t.ones)
	return t
}

func fill(ones []float64) {
	for i := range ones {
		ones[i] = 1
	}
}

// allPairs returns the products of all rows, nil where they are too many to be kept.
func allPairs(m Method) []float64 {
	u, d, k := m.features()
	if d*k*(k+1)/2 > kept {
		return nil
	}
	pairs := make([]float64, d*k*(k+1)/2)
	multiply(pairs, u, k)
	return pairs
}

// multiply fills pairs with the products of some rows of U.
func multiply(pairs, u []float64, k int) {
	for ; len(u) > 0; u = u[k:] {
		for c, x := range u[:k] {
			u := u[:c+1]
			to := pairs[:len(u)]
			for b, v := range u {
				to[b] = x * v
			}
			pairs = pairs[len(to):]
		}
	}
}

// locate takes columns, as long as take has one and ctx has not ended, and gives put the
// coordinates of each.
func (t *tile) locate(ctx context.Context, take func(column []float64) (j int, more bool),
	put func(j int, v []float64), column, v []float64) {
	for more := true; ctx.Err() == nil; {
		for more && t.busy < t.wide {
			var loaded bool
			if loaded, more = t.load(t.busy, take, put, column, v); loaded {
				t.busy++
			}
		}
		if t.busy == 0 {
			return
		}
		if !t.pass(ctx) {
			return
		}
		np := kernel.Pad(t.busy)
		for l := t.busy - 1; l >= 0; l-- {
			s := &t.lanes[l]
			t.gather(s.model(), l, np)
			if s.next(t.sums.loss[l]) {
				continue
			}
			s.end(v)
			put(s.column, v)
			t.leave(l)
			loaded := false
			for more && !loaded {
				loaded, more = t.load(l, take, put, column, v)
			}
			if !loaded {
				t.busy--
				t.move(l, t.busy)
			}
		}
	}
}

// load gives lane l, an idle one, the next column, if there is one and it is to be looked for.
func (t *tile) load(l int, take func(column []float64) (int, bool), put func(j int, v []float64), column,
	v []float64) (loaded, more bool) {
	s := &t.lanes[l]
	j, more := take(column)
	if !more {
		return false, false
	}
	x, search := s.begin(j, column)
	if !search {
		s.end(v)
		put(j, v)
		return false, true
	}
	s.column = j
	for i, x := range x {
		if x != x {
			t.hide(i, l)
			x = 0
		}
		t.columns[i*t.wide+l] = x
	}
	return true, true
}

// hide says that cell i of lane l is missing.
func (t *tile) hide(i, l int) {
	if t.seen == nil {
		t.seen = make([]float64, t.d*t.wide)
		fill(t.seen)
	}
	if s := &t.lanes[l]; !s.holes {
		s.holes = true
		t.left++
	}
	t.seen[i*t.wide+l] = 0
}

// leave takes the column from lane l.
func (t *tile) leave(l int) {
	if s := &t.lanes[l]; s.holes {
		s.holes = false
		t.left--
		for at := l; at < len(t.seen); at += t.wide {
			t.seen[at] = 1
		}
	}
}

// move gives lane l, an idle one, what lane from has, the last one.
func (t *tile) move(l, from int) {
	if l == from {
		return
	}
	for at := 0; at < len(t.columns); at += t.wide {
		t.columns[at+l] = t.columns[at+from]
	}
	to, last := &t.lanes[l], &t.lanes[from]
	*to, *last = *last, *to
	if to.holes {
		for at := 0; at < len(t.seen); at += t.wide {
			t.seen[at+l], t.seen[at+from] = t.seen[at+from], 1
		}
	}
}

// pass fills the sums of all busy lanes; false if ctx ends.
func (t *tile) pass(ctx context.Context) bool {
	k, np := t.k, kernel.Pad(t.busy)
	v, g, h, sum := t.sums.v[:k*np], t.sums.slope[:k*np], t.sums.curvature[:k*(k+1)/2*np], t.sums.loss[:np]
	t.cautious = t.cautious[:0]
	for l := range np {
		s := &t.lanes[min(l, t.busy-1)]
		if l < t.busy && s.cautious() {
			t.cautious = append(t.cautious, l)
		}
		for c, x := range s.point() {
			v[c*np+l] = x
		}
	}
	clear(g)
	clear(h)
	clear(sum)
	of, many := &t.group, together/np
	for i := 0; i < t.d; i += many {
		if ctx.Err() != nil {
			return false
		}
		rows := min(many, t.d-i)
		u, n := t.u[i*k:(i+rows)*k], rows*np
		kernel.CombineRows(of.w[:n], u, v, rows)
		t.cells(t, i, rows, np)
		if t.left > 0 {
			for r := range rows {
				seen := t.seen[(i+r)*t.wide:]
				for _, v := range [...][]float64{of.loss, of.slope, of.curvature} {
					kernel.Multiply(v[r*np:(r+1)*np], v[r*np:(r+1)*np], seen)
				}
			}
		}
		pairs := of.pairs
		if all := k * (k + 1) / 2; t.all == nil {
			pairs = pairs[:rows*all]
			multiply(pairs, u, k)
		} else {
			pairs = t.all[i*all : (i+rows)*all]
		}
		if t.valued {
			kernel.AccumulateRows(sum, t.ones[:rows], of.loss[:n], rows)
		}
		kernel.AccumulateRows(g, u, of.slope[:n], rows)
		kernel.AccumulateRows(h, pairs, of.curvature[:n], rows)
	}
	return true
}

// gather fills f with the model of lane l of np.
func (t *tile) gather(f *quadratic, l, np int) {
	pair := 0
	for c := range t.k {
		f.G[c] = t.sums.slope[c*np+l]
		for b := range c + 1 {
			x := t.sums.curvature[pair*np+l]
			f.H[c*t.k+b], f.H[b*t.k+c] = x, x
			pair++
		}
	}
}
