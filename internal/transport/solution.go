package transport

// This file holds the solution that a solve leaves behind when its workspace goes on to other
// rows: a copy of the problem and its potentials, small beside E. From it a row is restored, bit
// for bit, in one pass.

import "sync/atomic"

// Solution is the state in which a solve left a row. It is not changed after [Row.Keep].
type Solution struct {
	id       uint64 // equal to Row.of of a row that still has this state
	n, m     int
	weighted bool      // a is kept; otherwise it is even
	kept     []float64 // b, y, h, href; x; where weighted, a
	eps      float64
	squash   Squash
	form     form
}

// kept counts the solutions so far. Its value is the id of the last.
var kept atomic.Uint64

// Room returns how many numbers Keep takes.
func (r *Row) Room(weighted bool) int {
	if weighted {
		return 2*r.n + 4*r.m
	}
	return r.n + 4*r.m
}

// Keep returns the state of the row after a solve. It keeps room, which has Room numbers. weighted says
// that a was given.
func (r *Row) Keep(room []float64, weighted bool) Solution {
	r.need(solved)
	r.of = kept.Add(1)
	s := Solution{id: r.of, n: r.n, m: r.m, weighted: weighted, kept: room, eps: r.eps, squash: r.squash,
		form: r.form}
	for i, v := range [...][]float64{r.b, r.y, r.h, r.href} {
		copy(s.levels(i), v)
	}
	x, a := s.samples()
	copy(x, r.x)
	copy(a, r.a)
	return s
}

// Size returns n and m.
func (s *Solution) Size() (n, m int) { return s.n, s.m }

// Weights returns b: to be read.
func (s *Solution) Weights() []float64 { return s.levels(0) }

// levels returns one of the four vectors over levels: b, y, h or href.
func (s *Solution) levels(which int) []float64 {
	return s.kept[which*s.m : (which+1)*s.m : (which+1)*s.m]
}

func (s *Solution) samples() (x, a []float64) {
	x = s.kept[4*s.m:]
	return x[:s.n], x[s.n:]
}

// Restore brings the row to the state of the solution. It does nothing where the row still has it.
func (r *Row) Restore(s *Solution) {
	if r.of == s.id {
		return
	}
	x, a := s.samples()
	r.Resize(s.n, s.m)
	r.done = nil
	r.setTargets(s.levels(1))
	r.setWeights(nil, nil)
	if s.weighted {
		copy(r.a, a)
		r.even = false
	}
	copy(r.b, s.levels(0))
	r.squash = s.squash
	r.setSamples(x)
	r.place(s.eps)
	copy(r.h, s.levels(2))
	copy(r.href, s.levels(3))
	r.form = s.form
	r.refer()
	r.pass(r.h)
	r.phase, r.of = solved, s.id
}
