package transport

// This file holds the kernel matrix of a problem at reference potentials,
//
//	E_ij = exp(href_j + s_i Y_j - max_j(...)),
//
// in one of three forms. On a regular grid whose max|s Y| is small E_ij = exp(s_i Y_j) is
// built by multiplication, with href = 0 and nothing taken from it. Where max|s Y| is
// larger the same powers are lifted: each level is multiplied by exp href_j, and each row
// divided by its largest entry. Otherwise every entry is an exponential.
//
// Loops over E go tile by tile: a tile of samples is built, or read, once and goes through
// all sums of a sweep while it is in the cache.

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// form is how E is built.
type form uint8

const (
	exact  form = iota // an exponential an entry
	powers             // exp(s_i Y_j) by multiplication: href = 0
	lifted             // powers, lifted to href
)

// standing says which parts of a matrix are valid for the problem. Each state includes those before
// it. Loading a problem, or another change of samples, targets or ε, brings it back to stale, and so
// does aiming at potentials that lie too far from href.
type standing uint8

const (
	stale standing = iota // nothing
	aimed                 // form, href, boost and ratio
	built                 // and all of e
)

// matrix is E.
type matrix struct {
	problem
	stands standing
	form   form
	size   int       // samples in a tile
	e      []float64 // all of E where it is held from sweep to sweep, otherwise a tile of it
	bases  []float64 // exp(s_i Y_1), then exp(s_i (Y_2-Y_1)), on a regular grid where E is not held
	href   []float64 // the reference potentials
	boost  []float64 // exp href about its middle, where lifted
	// ratio_jk is exp(href_j+href_k-...), E_j E_k over the square, or the product of
	// neighbours, in the middle between j and k: m × mp, symmetric, on a regular grid.
	ratio []float64
	flat  bool // ratio is all ones
}

// setTiles finds how many samples are in a tile.
func (r *matrix) setTiles() {
	r.size = min(max(tileEntries/r.m&^(kernel.Lanes-1), kernel.Lanes), r.np)
}

// holds tells whether E is held from sweep to sweep. Of powers fewer entries are held than of
// exponentials: multiplying them anew costs less.
func (r *matrix) holds() bool {
	all := float64(r.np) * float64(r.m)
	return r.size == r.np || all <= keptPowers || r.form == exact && all <= keptEntries
}

// reserve makes the room for E.
func (r *matrix) reserve() {
	samples := r.np
	if !r.holds() {
		samples = r.size
		if r.form != exact && cap(r.bases) < 2*r.np {
			r.bases = r.memory.Floats(2, r.np)
		}
	}
	if cap(r.e) < samples*r.m {
		r.e = r.memory.Floats(samples, r.m)
	}
}

// tiles calls f with the bounds of each tile of samples and its part of E.
func (r *matrix) tiles(f func(lo, hi int, e []float64)) {
	m, keep := r.m, r.holds()
	r.reserve()
	for lo := 0; lo < r.np; lo += r.size {
		if r.ended() {
			return
		}
		hi := min(lo+r.size, r.np)
		e := r.e[:(hi-lo)*m]
		if keep {
			e = r.e[lo*m : hi*m]
		}
		if r.stands != built {
			r.build(e, lo, hi)
		}
		f(lo, hi, e)
	}
	if keep {
		r.stands = built
	}
}

// reference decides on the form of E and on href for the potentials h.
func (r *matrix) reference(h []float64) {
	r.form = exact
	if r.regular {
		lo, hi := bounds(h)
		if r.steep*r.edge <= maxPower && hi-lo <= maxRange {
			r.form = powers
		}
	}
	if r.form == powers {
		clear(r.href)
	} else {
		copy(r.href, h)
	}
	r.refer()
}

// refer computes what depends on href, in any form: boost and ratio. The matrix is aimed after it.
func (r *matrix) refer() {
	if r.form != powers && r.regular {
		r.form = exact
		lo, hi := bounds(r.href)
		if float64(r.steep*max(r.edge, r.step))+float64((hi-lo)*0.5) <= maxLift {
			r.form = lifted
			mid := elem.Middle(lo, hi)
			for j, h := range r.href {
				r.boost[j] = h - mid
			}
			kernel.Exp(r.boost, r.boost)
		}
	}
	r.expansion()
	r.stands = aimed
}

// build fills e with a tile of E.
func (r *matrix) build(e []float64, lo, hi int) {
	if r.form == exact {
		kernel.Build(e, r.s[lo:hi], r.href, r.cy)
		return
	}
	if r.holds() {
		kernel.BuildPower(e, r.s[lo:hi], r.cy[0], r.step, r.m)
	} else {
		base, rate := r.bases[lo:hi], r.bases[r.np+lo:r.np+hi]
		if !r.rooted {
			kernel.Powers(base, rate, r.s[lo:hi], r.cy[0], r.step)
			r.rooted = hi == r.np // tiles come in their order
		}
		kernel.PowersOf(e, base, rate, r.m)
	}
	if r.form == lifted {
		kernel.Lift(e, r.boost, hi-lo)
	}
}

// expansion fills ratio.
func (r *matrix) expansion() {
	m, mp := r.m, r.mp
	if !r.regular || r.form == powers && r.flat {
		return
	}
	clear(r.ratio)
	if r.form != powers {
		for j := range m {
			for k := range j - 1 {
				mid := (j + k) / 2
				up := (j + k + 1) / 2
				r.ratio[j*mp+k] = min((r.href[j]-r.href[up])+(r.href[k]-r.href[mid]), 700)
			}
		}
	}
	kernel.Exp(r.ratio, r.ratio)
	for j := range m {
		for k, v := range r.ratio[j*mp : j*mp+j] {
			r.ratio[k*mp+j] = v
		}
	}
	r.flat = r.form == powers
}
