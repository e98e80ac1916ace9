package nmf

// This file holds an epoch of Newton's method (newton.go) in rounds, for a matrix whose rows are split
// (package shards). In a round all rows are passed over, by methods that have some of them, and their sums
// are joined by one that has none:
//
//	join   the half of V as far as its direction    Descend   (under an exact metric all of it, and Turn)
//	pass   what the step along it is taken of       Search
//	join   the step of V; the next y                Turn
//	pass   the half of U, and the gradient of V     Half
//	join   the losses there                         Ahead
//
// and where those are above the last ones, or few digits of them are left, once more Gradient and Ahead. A
// pass leaves its sums in pieces, as an epoch on one machine does, and a join adds up the same pieces in the
// same order: the bits are those of Epoch. Matrices of V's size come and go as k × n numbers.

import "github.com/quantmf/quantmf/internal/kernel"

// NewRounds returns the method once its multiplicative updates are over, for some rows of a matrix, or for
// none.
func NewRounds(p Problem) *Newton {
	f := NewNewton(p)
	if f.D > 0 {
		f.prepare()
	}
	f.take()
	return f
}

// toMatrix copies k × n numbers to a matrix that lies in tiles, as V does.
func (f *Newton) toMatrix(to, v []float64) {
	for c := range f.K {
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			copy(to[f.K*lo+c*(hi-lo):], v[c*f.N+lo:c*f.N+min(hi, f.N)])
		}
	}
}

// fromMatrix is the inverse of toMatrix.
func (f *Newton) fromMatrix(v []float64) []float64 {
	to := make([]float64, f.K*f.N)
	for c := range f.K {
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			copy(to[c*f.N+lo:c*f.N+min(hi, f.N)], v[f.K*lo+c*(hi-lo):])
		}
	}
	return to
}

// Points returns U at y, at z and at the next y, d × k each: a pass reads them, and writes what it makes of
// them there.
func (f *Newton) Points() (y, z, next []float64) { return f.U, f.zu, f.nu }

// Gradient passes over the rows for the loss at the next y of U and of V, and for the gradient of V there.
// Where the metric is exact and byCells is true, the loss is taken cell by cell.
func (f *Newton) Gradient(next []float64, byCells bool) error {
	f.toMatrix(f.nv, next)
	f.refresh()
	if byCells && f.exact {
		f.run(opResidual, len(f.pieces))
	}
	return f.Pool.Err()
}

// Search passes over the rows for what the step of V is taken of, from y along a direction.
func (f *Newton) Search(y, direction []float64) error {
	f.toMatrix(f.y, y)
	f.toMatrix(f.nv, direction)
	f.transposeThree(f.y, f.nv, nil)
	f.run(opSearch, len(f.pieces))
	return f.Pool.Err()
}

// Half makes the half of U for the new V, z, in a pass that takes the gradient at its next y too. numbers are
// those of Turn.
func (f *Newton) Half(z, next, numbers []float64) error {
	f.toMatrix(f.z, z)
	f.toMatrix(f.nv, next)
	at := 0
	for _, to := range f.turned() {
		at += copy(to, numbers[at:])
	}
	f.by, f.metric.total = numbers[at], numbers[at+1]
	f.sums(f.sumV, f.nv)
	if f.exact {
		f.products(f.nv)
	} else {
		kernel.Multiply(f.z2, f.z, f.z)
	}
	f.transposeThree(f.z, nil, f.nv)
	f.run(opHalf, len(f.pieces))
	return f.Pool.Err()
}

// turned are the numbers that the half of U needs of both factors, beside two.
func (f *Newton) turned() [][]float64 {
	m := &f.metric
	return [][]float64{f.scale, f.sumZ, m.floor, m.diag, m.inverse, m.c}
}

// Turned is how many numbers Turn returns for k components.
func Turned(k int) int { return k*k + 5*k + 2 }

// Searched returns what a piece of the rows adds to the sums in Search.
func (f *Newton) Searched(piece int) [][]float64 {
	e := &f.extra[piece]
	return [][]float64{e.c2, e.c3, e.rho}
}

// Passed returns what a piece of the rows adds to the sums in Gradient and in Half, the losses last.
func (f *Newton) Passed(piece int) [][]float64 {
	p, e := &f.pieces[piece], &f.extra[piece]
	return [][]float64{p.num, p.den, p.sum, e.h, e.size[:], p.losses}
}

// Ahead returns the losses at the next y by the sums of a pass. U is given where there are penalties. byCells
// tells that the pass took the loss cell by cell; again, that another pass must.
func (f *Newton) Ahead(u, next []float64, byCells bool) (l Losses, again bool) {
	f.nu = u
	f.toMatrix(f.nv, next)
	if !f.exact || byCells {
		return f.losses(f.nu, f.nv), false
	}
	return f.summed()
}

// Descent is where the half of V goes, at most as far as 1: from y along Direction. Under an exact metric
// Direction is the new V, and there is no more.
type Descent struct {
	Direction    []float64 // k × n
	Slopes, Most []float64 // n
	SumU         []float64 // k
}

// Descend makes the direction of V at y of the sums there. seen is in how many rows each column was observed,
// nil for all.
func (f *Newton) Descend(y []float64, seen []float64) *Descent {
	f.toMatrix(f.y, y)
	for j, rows := range seen {
		f.shareV[j] = rows / float64(f.Of)
	}
	f.sums(f.sumV, f.y)
	f.descend()
	d := &Descent{Slopes: f.slopes[:f.N], Most: f.most[:f.N], SumU: f.sumU}
	if f.exact {
		d.Direction = f.fromMatrix(f.z)
	} else {
		d.Direction = f.fromMatrix(f.nv)
	}
	return d
}

// Turn makes the step of V, of the sums of Search but under an exact metric. It returns the new V, which is
// z, and the next y that follows from z before, the next τ, and what Half needs beside them.
func (f *Newton) Turn(y, before []float64, tau float64, d *Descent) (z, next []float64, nextTau float64,
	numbers []float64) {
	f.tau[0] = tau
	f.toMatrix(f.zv, before)
	copy(f.sumU, d.SumU)
	if f.exact {
		f.toMatrix(f.z, d.Direction)
	} else {
		f.toMatrix(f.y, y)
		f.toMatrix(f.nv, d.Direction)
		copy(f.slopes, d.Slopes)
		copy(f.most, d.Most)
		f.run(opMove, f.cols)
	}
	f.between()
	for _, v := range f.turned() {
		numbers = append(numbers, v...)
	}
	return f.fromMatrix(f.z), f.fromMatrix(f.nv), f.tau[0], append(numbers, f.by, f.metric.total)
}

// Exact tells whether the half of V needs no search.
func (f *Newton) Exact() bool { return f.exact }

// Above tells whether losses are above others, which keep the factors that they are of.
func (l Losses) Above(last Losses) bool { return !(l.Visible+l.Penalty <= last.Visible+last.Penalty) }
