package place

// This file holds columns under T(Uv). In z = log v the signs need no care: damped Gauss-Newton (Levenberg-Marquardt)
// with the Jacobian T_i'(w_i) U_ic v_c of T_i, w = Uv. A chain of m smooth steps
// has many local minima, so one start is not enough: from the mean of the
// training columns alone the columns of real training sets end up to 8 % above
// their own loss. The starts are that mean and the training columns whose fitted
// values are nearest to x; a few steps are made from every start, and more from the
// best. The loss of unseen columns is then within 1 % of the best of 28 nearest
// starts, each followed to its end, at a tenth of the cost; smoother maps at first (a
// larger ε) gain nothing more. A training column is among its own starts, so it ends
// at its own loss or below.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/quadratic"
)

const (
	nearStarts = 7  // training columns that QMF starts from, beside the mean
	shortSteps = 10 // of each start, before the best goes on
	longStride = 2  // largest step of a log v
	reach      = 23 // log v stays within a factor e^23 = 1e10 of what training had

	// The nearest training columns are sought by at most nearCells cells: where the
	// training matrix has more, by the features of the largest spread, nearRows at least.
	nearCells = 1 << 18
	nearRows  = 64
)

// Problem is what a fit has learnt: U, d × k, V, k × n, positive, and the d maps T_i.
type Problem struct {
	Loss       divergence.Loss
	D, N, K    int
	RowU, RowV func(i int) []float64
	// Map returns T_i(w) and its derivative. arg is scratch of Levels numbers, one call's.
	Map       func(i int, w float64, arg []float64) (t, slope float64)
	Levels    int
	Low, High func(i int) float64 // the range of T_i
	Constant  func(i int) bool    // T_i does not depend on w
	Weight    func(i int) float64 // of row i in the loss
	Floor     float64             // the share of High below which T does not fall in derivatives
}

// Mapped is a problem and what its columns are looked for by.
type Mapped struct {
	Problem
	rows      []int     // features whose map is not constant
	mean      []float64 // of each row of V
	low, high []float64 // bounds of log v
	near      []int     // features that the nearest columns are looked for on
	fitted    []float64 // of those, at the training columns, len(near) × n
}

// NewMapped makes a Mapped. Reconstruct fills row, n numbers, with row i of UV.
func NewMapped(ctx context.Context, of Problem, reconstruct func(row []float64, i int)) (*Mapped, error) {
	d, n, k := of.D, of.N, of.K
	b := &Mapped{Problem: of, mean: make([]float64, k), low: make([]float64, k), high: make([]float64, k)}
	tell := make([]float64, d)
	for i := range d {
		if lo, hi := b.Low(i), b.High(i); lo < hi && !b.Constant(i) {
			b.rows = append(b.rows, i)
			tell[i] = b.Weight(i) * b.Loss.Value(lo, hi, b.lowest(i))
		}
	}
	for c := range k {
		lo, hi := math.Inf(1), 0.0
		for _, v := range b.RowV(c) {
			v = max(v, divergence.Tiny)
			lo, hi = min(lo, v), max(hi, v)
			b.mean[c] += v / float64(n)
		}
		b.low[c], b.high[c] = elem.Log(lo)-reach, elem.Log(hi)+reach
	}
	b.near = append(b.near, b.rows...)
	if most := max(nearRows, nearCells/n); len(b.near) > most {
		slices.SortStableFunc(b.near, func(i, j int) int {
			switch {
			case tell[i] > tell[j]:
				return -1
			case tell[i] < tell[j]:
				return 1
			}
			return 0
		})
		b.near = b.near[:most]
		slices.Sort(b.near)
	}
	b.fitted = make([]float64, len(b.near)*n)
	p := pool.New(0, len(b.near))
	defer p.Close()
	args := make([]float64, p.Workers()*b.Levels)
	p.Do(len(b.near), func(worker, r int) {
		if ctx.Err() != nil {
			return
		}
		row, i := b.fitted[r*n:(r+1)*n], b.near[r]
		reconstruct(row, i)
		for j, w := range row {
			row[j], _ = b.Map(i, w, args[worker*b.Levels:(worker+1)*b.Levels])
		}
	})
	return b, ctx.Err()
}

// lowest is the least value of T_i where T is divided by. A T of negative values, under
// Frobenius, is never divided by.
func (b *Mapped) lowest(i int) float64 {
	if b.Loss == divergence.Frobenius && b.Low(i) < 0 {
		return math.Inf(-1)
	}
	return b.Loss.Least()
}

// MappedLocator is a [Locator].
type MappedLocator struct {
	*Mapped
	x        []float64
	at, next logPoint
	s, best  []float64
	Own      []float64 // one more start, which the caller fills before Locate; nil: none
	bestLoss float64
	arg      []float64 // m
	distance []float64 // n
}

// logPoint is a point z = log v of a search, with the loss and its quadratic model there.
type logPoint struct {
	z, v []float64
	loss float64
	quadratic.Form
}

func newLogPoint(k int) logPoint {
	return logPoint{z: make([]float64, k), v: make([]float64, k), Form: quadratic.New(k)}
}

// Locator returns the locator of a worker.
func (b *Mapped) Locator() *MappedLocator {
	k := b.K
	return &MappedLocator{Mapped: b, at: newLogPoint(k), next: newLogPoint(k), s: make([]float64, k), best: make([]float64, k),
		arg: make([]float64, b.Levels), distance: make([]float64, b.N)}
}

func (p *MappedLocator) Locate(ctx context.Context, v, x []float64) float64 {
	p.x, p.bestLoss = x, math.Inf(1)
	p.from(ctx, func(c int) float64 { return p.mean[c] })
	if p.Own != nil {
		p.from(ctx, func(c int) float64 { return p.Own[c] })
	}
	p.measure()
	for range min(nearStarts, len(p.distance)) {
		j := 0
		for i, d := range p.distance {
			if d < p.distance[j] {
				j = i
			}
		}
		p.distance[j] = math.Inf(1)
		p.from(ctx, func(c int) float64 { return p.RowV(c)[j] })
	}
	p.moveTo(p.best)
	p.minimise(ctx, mostSteps)
	for c := range v {
		v[c] = p.at.v[c]
	}
	// The loss of all rows; minimise leaves the constant ones out.
	loss := 0.0
	for i := range p.D {
		if x[i] != x[i] {
			continue
		}
		t, _ := p.Map(i, dot(p.RowU(i), v), p.arg)
		loss += float64(p.Weight(i) * p.Loss.Value(x[i], t, p.lowest(i)))
	}
	return loss
}

// measure fills distance with the divergences of x from the fitted values of the
// training columns.
func (p *MappedLocator) measure() {
	clear(p.distance)
	for r, i := range p.near {
		if x := p.x[i]; x == x {
			for j, t := range p.fitted[r*p.N : (r+1)*p.N] {
				p.distance[j] += float64(p.Weight(i) * p.Loss.Value(x, t, p.lowest(i)))
			}
		}
	}
}

// from makes the first steps of a search from v, and keeps their end if it is the best so far.
func (p *MappedLocator) from(ctx context.Context, v func(c int) float64) {
	for c := range p.s {
		p.s[c] = elem.Log(max(v(c), divergence.Tiny))
	}
	p.moveTo(p.s)
	p.minimise(ctx, shortSteps)
	if p.at.loss < p.bestLoss {
		p.bestLoss = p.at.loss
		copy(p.best, p.at.z)
	}
}

func (p *MappedLocator) moveTo(z []float64) {
	copy(p.at.z, z)
	p.evaluate(&p.at)
}

// evaluate fills v, the loss over the rows that are not constant, and the
// Gauss-Newton model at z.
func (p *MappedLocator) evaluate(at *logPoint) {
	k := at.K
	for c, z := range at.z {
		at.v[c] = elem.Exp(z)
	}
	at.Clear()
	at.loss = 0
	for _, i := range p.rows {
		if p.x[i] != p.x[i] {
			continue
		}
		u := p.RowU(i)
		t, s := p.Map(i, dot(u, at.v), p.arg)
		low := p.lowest(i)
		if low > 0 {
			low = max(p.Floor*p.High(i), low)
		}
		value, slope, _, expected := p.Loss.Differentiate(p.x[i], t, low)
		share := p.Weight(i)
		at.loss += float64(share * value)
		if s > 0 {
			at.Add(float64(float64(share*slope)*s), float64(float64(float64(share*expected)*s)*s), u)
		}
	}
	for c, v := range at.v { // from v to log v
		at.G[c] *= v
		for b := range c + 1 {
			at.H[c*k+b] *= float64(v * at.v[b])
		}
	}
}

// minimise takes at most the given number of damped Gauss-Newton steps from at,
// which has been evaluated. The loss never rises.
//
// The damping follows the agreement of model and loss (Nielsen 1999): it falls
// smoothly, to a third at best, where they agree, and rises ever faster while
// steps fail. Directions in which the model is flat are damped like those a
// million times less flat than the steepest.
func (p *MappedLocator) minimise(ctx context.Context, steps int) {
	lambda, raise, idle := 1e-3, 2.0, 0
	for range steps {
		at, next := &p.at, &p.next
		top := at.Top()
		if ctx.Err() != nil || !(top > 0) || top-top != 0 {
			return
		}
		next.loss = math.Inf(1)
		promise := 0.0
		if at.Factor(lambda, 1e-6*top) {
			longest := 0.0
			for c, g := range at.G {
				p.s[c] = -g
			}
			at.Solve(p.s)
			for _, s := range p.s {
				longest = max(longest, math.Abs(s))
			}
			share := min(1, longStride/longest)
			for c, s := range p.s {
				z := min(max(at.z[c]+float64(share*s), p.low[c]), p.high[c])
				p.s[c], next.z[c] = z-at.z[c], z
			}
			for c, s := range p.s {
				promise -= float64(s * (at.G[c] + float64(at.Times(c, p.s)/2)))
			}
			p.evaluate(next)
		}
		fall := at.loss - next.loss
		if !(fall > 0) {
			lambda *= raise
			raise *= 2
			if lambda > 1e10 {
				return
			}
			continue
		}
		agree := float64(2*fall/max(promise, divergence.Tiny)) - 1
		lambda = max(lambda*max(1.0/3, 1-float64(agree*agree*agree)), 1e-12)
		raise = 2
		idle++
		if fall > smallFall*at.loss {
			idle = 0
		}
		p.at, p.next = p.next, p.at
		if idle == 2 { // a single small step may be a cautious one
			return
		}
	}
}
