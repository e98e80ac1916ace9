package gauss

// This file holds the step of a row u of U: with V held fixed, on the model of the row in u',
//
//	g·(u'-u) + (u'-u) H (u'-u)ᵀ/2,   g = V w̄,   H = V diag(a) Vᵀ.

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// row is the problem of one row of U, and the room for it.
type row struct {
	part                  []float64 // k: sums of a tile
	room                  []float64 // for the sums of the Hessian
	hessian, gradient, to []float64 // k × k, k, k
	fixed                 int       // the first so many entries of u stay
}

// Where V has more numbers than nearWhole, the sums of a row go over V in tiles of about nearTile numbers, so
// that all sums of a tile find it in the nearest cache.
const (
	nearTile  = 3 << 10
	nearWhole = 1 << 16
)

// near is the number of samples of which V, k rows, and a have about nearTile numbers.
func near(k int) int { return max(nearTile/(k+1)&^(width-1), width) }

// tiles is V, k × np, as the sums of rows read it: tile after tile, each k rows of as many numbers as it has
// samples.
type tiles struct {
	v              []float64 // where one tile has all samples, V itself, once ToTiles took all of it
	k, np, samples int       // samples of a tile
}

// newTiles makes room for V.
func newTiles(a *pool.Arena, k, np int) *tiles {
	if k*np <= nearWhole {
		return &tiles{k: k, np: np, samples: np}
	}
	return &tiles{v: a.Floats(k, np), k: k, np: np, samples: near(k)}
}

// ToTiles takes the columns from to to-1 of V: it copies them, or holds V where one tile has all samples and
// all are taken. Parts of V may be taken at the same time.
func (l *tiles) ToTiles(v []float64, from, to int) {
	if l.samples == l.np {
		if to-from == l.np {
			l.v = v
		}
		return
	}
	for from < to {
		first := from / l.samples * l.samples
		last := min(first+l.samples, l.np)
		tile, end := l.tile(first, last), min(last, to)
		for c := range l.k {
			copy(tile[c*(last-first)+from-first:], v[c*l.np+from:c*l.np+end])
		}
		from = end
	}
}

// tile returns the tile of the samples from to to-1.
func (l *tiles) tile(from, to int) []float64 { return l.v[l.k*from : l.k*to] }

// newRow makes room for rows of k entries.
func newRow(a *pool.Arena, l *tiles) *row {
	k := l.k
	return &row{
		part: a.Floats(k), room: a.Floats(l.samples + k),
		hessian: a.Floats(k, k), gradient: a.Floats(k), to: a.Floats(k),
	}
}

// Model computes gradient and Hessian from V, w̄ and a, whole blocks of numbers, 0 in the padding.
func (r *row) Model(v *tiles, wbar, a []float64) {
	k, h := len(r.gradient), r.hessian
	clear(r.gradient)
	clear(h)
	for from := 0; from < v.np; from += v.samples {
		to := min(from+v.samples, v.np)
		r.add(v.tile(from, to), wbar[from:to], a[from:to])
	}
	for c := range k {
		for b := range c {
			h[b*k+c] = h[c*k+b]
		}
	}
}

// add adds the samples of a tile to the gradient and to the lower triangle of the Hessian.
func (r *row) add(v, wbar, a []float64) {
	kernel.Dots(r.part, v, wbar)
	for c, s := range r.part {
		r.gradient[c] += s
	}
	kernel.WeightedGram(r.hessian, v, a, r.room, len(r.gradient))
}

// Penalise adds weight/2 Σ log²u to the model.
func (r *row) Penalise(u []float64, weight float64) {
	for c, x := range u {
		gradient, curvature := barrier(weight, x, elem.Log(x))
		r.gradient[c] += gradient
		r.hessian[c*len(u)+c] += curvature
	}
}

// Step makes the step of the model from u, in place.
func (r *row) Step(u []float64, s step) {
	k, h, g, x := len(u), r.hessian, r.gradient, r.to
	mean := 0.0
	for c, v := range u {
		mean += v / float64(k)
		h[c*k+c] += float64(h[c*k+c] * s.Damp)
	}
	copy(x, u)
	for range s.Sweeps {
		for c := r.fixed; c < k; c++ {
			row := h[c*k : (c+1)*k]
			to := s.to(x[c], g[c], row[c], u[c], mean)
			step := to - x[c]
			x[c] = to
			g := g[:len(row)]
			for b, v := range row {
				g[b] += float64(v * step)
			}
		}
	}
	for c := r.fixed; c < k; c++ {
		u[c] += float64(s.Share * (x[c] - u[c]))
	}
}
