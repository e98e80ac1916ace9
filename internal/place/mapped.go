package place

// This file holds columns under T(Uv). In z = log v the signs need no care: damped Gauss-Newton
// (Levenberg-Marquardt) with the Jacobian T_i'(w_i) U_ic v_c of T_i, w = Uv. A chain of m smooth steps has
// many local minima, so one start is not enough: from the mean of the training columns alone the columns of
// real training sets end up to 8 % above their own loss. The starts are that mean and the training columns
// whose fitted values are nearest to x; a few steps are made from every start, and more from the best. The
// loss of unseen columns is then within 1 % of the best of 28 nearest starts, each followed to its end, at a
// tenth of the cost; smoother maps at first (a larger ε) gain nothing more. A training column is among its
// own starts, so it ends at its own loss or below.
//
// The starts are not left sooner: where all go on for 4 steps, 4 for 6 more and one to its end, 28 of 901
// unseen columns of nine tables ended more than 1 % higher than where all make 10 steps (the worst 17 %);
// where those are left that have twice the least loss after 5 steps, 2 of them, for 5 % fewer evaluations.
//
// Divergences from the fitted values t of all training columns are one product: Δ(x,t) is ψ(t) - xφ(t)
// and what depends on x alone.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	nearStarts = 7  // training columns that a search starts from, beside the mean
	shortSteps = 10 // of each start, before the best goes on
	longStride = 2  // largest step of a log v
	reach      = 23 // log v stays within a factor e^23 = 1e10 of what training had

	// The nearest training columns are sought by at most nearCells cells: where the
	// training matrix has more, by the features of the largest spread, nearRows at least.
	nearCells = 1 << 18
	nearRows  = 64
)

// Problem is what a fit has learnt.
type Problem struct {
	Loss  divergence.Loss
	U, V  [][]float64 // the d rows of U, k numbers each, and the k rows of V, n positive numbers each
	Maps  []Sheet     // T_i
	Floor float64     // the share of a map's High below which T does not fall in derivatives

	Workers int // of NewMapped, 0 for GOMAXPROCS
}

// Mapped is a problem and what its columns are looked for by.
type Mapped struct {
	Problem
	k, n      int       // the rows and the columns of V
	rows      []int     // features whose map is not constant
	ratios    []*Ratio  // of those, nil for one that is no ratio
	u         []float64 // of those, len(rows) × k
	mean      []float64 // of each row of V
	low, high []float64 // bounds of log v
	near      []int     // features that the nearest columns are looked for on
	// Of those, at the fitted values of the training columns, len(near) × Pad(n): a divergence is
	// ψ - xφ and what depends on x alone, see [divergence.Loss.Split].
	phi, psi []float64
	all      []float64 // Pad(n): Σ ψ
	// Own, if not nil, fills v with one more start of column j.
	Own func(v []float64, j int)
}

// NewMapped makes a Mapped.
func NewMapped(ctx context.Context, of Problem) (*Mapped, error) {
	d, k := len(of.U), len(of.V)
	b := &Mapped{Problem: of, mean: make([]float64, k), low: make([]float64, k), high: make([]float64, k)}
	b.k, b.n = k, len(of.V[0])
	tell := make([]float64, d)
	for i := range d {
		t := &b.Maps[i]
		if lo, hi := t.Low(), t.High(); lo < hi && !t.Constant() {
			b.rows = append(b.rows, i)
			b.u = append(b.u, b.U[i]...)
			tell[i] = b.Loss.Value(lo, hi, b.lowest(i))
			var ratio *Ratio
			if b.Loss == divergence.KL {
				ratio = t.Ratio(b.floor(i))
			}
			b.ratios = append(b.ratios, ratio)
		}
	}
	for c := range k {
		lo, hi := math.Inf(1), 0.0
		for _, v := range b.V[c] {
			v = max(v, divergence.Tiny)
			lo, hi = min(lo, v), max(hi, v)
			b.mean[c] += v / float64(b.n)
		}
		b.low[c], b.high[c] = elem.Log(lo)-reach, elem.Log(hi)+reach
	}
	b.telling(tell)
	if err := b.train(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// telling fills near with the features that tell most, in their order.
func (b *Mapped) telling(tell []float64) {
	b.near = append(b.near, b.rows...)
	most := max(nearRows, nearCells/b.n)
	if len(b.near) <= most {
		return
	}
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

// train fills phi, psi and all with what the fitted values of the training columns make of them.
func (b *Mapped) train(ctx context.Context) error {
	n, np := b.n, kernel.Pad(b.n)
	b.phi, b.psi, b.all = make([]float64, len(b.near)*np), make([]float64, len(b.near)*np),
		make([]float64, np)
	p := pool.New(b.Workers, len(b.near))
	defer p.Close()
	type room struct {
		maps     *SheetRoom
		t, w, to []float64
	}
	work := make([]room, p.Workers())
	p.Do(len(b.near), func(worker, r int) {
		if ctx.Err() != nil {
			return
		}
		ws, i := &work[worker], b.near[r]
		if ws.maps == nil {
			*ws = room{NewSheetRoom(n, b.levels()), make([]float64, np), make([]float64, np),
				make([]float64, np)}
		}
		clear(ws.w)
		for c, u := range b.U[i] {
			for j, v := range b.V[c] {
				ws.w[j] += float64(u * v)
			}
		}
		for j := n; j < np; j++ {
			ws.w[j] = ws.w[0]
		}
		b.Maps[i].At(ws.t, ws.to, ws.w, ws.maps)
		phi, psi := b.phi[r*np:(r+1)*np], b.psi[r*np:(r+1)*np]
		b.Loss.Split(phi, psi, ws.t, b.lowest(i))
		kernel.Scale(phi, phi, -1)
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	ones := make([]float64, len(b.near))
	for r := range ones {
		ones[r] = 1
	}
	kernel.Combine(b.all, ones, b.psi)
	return nil
}

// levels returns the number of levels of a map.
func (b *Problem) levels() int { return len(b.Maps[0].q) }

// lowest is the least value of T_i where T is divided by. A T of negative values, under
// Frobenius, is never divided by.
func (b *Problem) lowest(i int) float64 {
	if b.Loss == divergence.Frobenius && b.Maps[i].Low() < 0 {
		return math.Inf(-1)
	}
	return b.Loss.Least()
}

// floor is what T_i is divided by where it is less, in derivatives.
func (b *Problem) floor(i int) float64 {
	low := b.lowest(i)
	if low > 0 {
		low = max(b.Floor*b.Maps[i].High(), low)
	}
	return low
}

func (b *Mapped) features() (u []float64, d, k int) { return b.u, len(b.rows), b.k }

func (b *Mapped) valued() bool { return true }

func (b *Mapped) cells() func(t *tile, i, rows, np int) {
	room := NewSheetRoom(Widest, b.levels())
	values, slopes := make([]float64, together), make([]float64, together)
	return func(t *tile, i, rows, np int) {
		for r := range rows {
			lo, hi := r*np, (r+1)*np
			row := b.rows[i+r]
			x := t.columns[(i+r)*t.wide:]
			loss, first, second, expected := t.group.loss[lo:hi], t.group.slope[lo:hi],
				t.group.curvature[lo:hi],
				t.group.expected[lo:hi]
			if of := b.ratios[i+r]; of != nil {
				kernel.MappedKL(loss, first, second, t.group.w[lo:hi], x, of.levels, of.slopes, &of.row)
				continue
			}
			value, slope := values[:np], slopes[:np]
			b.Maps[row].At(value, slope, t.group.w[lo:hi], room)
			b.Loss.Differentiate(loss, first, second, expected, x, value, b.floor(row))
			kernel.Multiply(first, first, slope)
			kernel.Multiply(second, expected, slope)
			kernel.Multiply(second, second, slope)
		}
	}
}

// mapped is the search of a column: short ones from all starts, and a long one from the best end.
type mapped struct {
	*Mapped
	*nearest
	starts                 []start  // the best one last, in the end
	now                    int      // of starts: where the search that is on began
	at, there              logPoint // where it is, and where it looks
	steps                  int      // that it has left
	stands                 bool     // there is its first point
	lambda, raise, promise float64
	idle                   int
	s                      []float64
}

// start is where a search begins, and then where it ended.
type start struct {
	z    []float64
	loss float64
}

// logPoint is a point z = log v of a search, with the loss and its quadratic model there.
type logPoint struct {
	z, v []float64
	loss float64
	quadratic
}

func newLogPoint(k int) logPoint {
	return logPoint{z: make([]float64, k), v: make([]float64, k), quadratic: newQuadratic(k)}
}

func (b *Mapped) searches() func() search {
	k, np := b.k, kernel.Pad(b.n)
	v := func(n int) []float64 { return make([]float64, n) }
	room := &nearest{x: v(len(b.rows)), weights: v(len(b.near)), distance: v(np), base: v(np)}
	return func() search {
		p := &mapped{Mapped: b, nearest: room, at: newLogPoint(k), there: newLogPoint(k), s: v(k)}
		for range nearStarts + 2 {
			p.starts = append(p.starts, start{z: v(k)})
		}
		return p
	}
}

// nearest is room for the column that a search begins with, and for what lies near it.
type nearest struct {
	x              []float64 // in the rows that matter
	weights        []float64 // of near
	distance, base []float64 // Pad(n)
}

func (p *mapped) begin(j int, column []float64) ([]float64, bool) {
	for r, i := range p.rows {
		p.x[r] = column[i]
	}
	if len(p.rows) == 0 {
		copy(p.at.v, p.mean)
		return nil, false
	}
	p.starts = p.starts[:0]
	p.from(func(c int) float64 { return p.mean[c] })
	if p.Own != nil {
		p.Own(p.s, j)
		p.from(func(c int) float64 { return p.s[c] })
	}
	p.measure(column)
	d := p.distance[:p.n]
	for range min(nearStarts, p.n) {
		j := 0
		for i, v := range d {
			if v < d[j] {
				j = i
			}
		}
		d[j] = math.Inf(1)
		p.from(func(c int) float64 { return p.V[c][j] })
	}
	p.now = 0
	p.visit(shortSteps)
	return p.x, true
}

// from adds a start.
func (p *mapped) from(v func(c int) float64) {
	p.starts = p.starts[:len(p.starts)+1]
	s := &p.starts[len(p.starts)-1]
	for c := range s.z {
		s.z[c] = elem.Log(max(v(c), divergence.Tiny))
	}
}

// measure fills distance with the divergences of a column from the fitted values of the
// training columns, but for what depends on the column alone.
func (p *mapped) measure(column []float64) {
	holes := false
	for r, i := range p.near {
		p.weights[r] = column[i]
		if column[i] != column[i] {
			p.weights[r], holes = 0, true
		}
	}
	kernel.Combine(p.distance, p.weights, p.phi)
	base := p.all
	if holes {
		for r, i := range p.near {
			p.weights[r] = 1
			if column[i] != column[i] {
				p.weights[r] = 0
			}
		}
		base = p.base
		kernel.Combine(base, p.weights, p.psi)
	}
	for j, v := range base {
		p.distance[j] += v
	}
}

// visit begins a search of so many steps.
func (p *mapped) visit(steps int) {
	copy(p.there.z, p.starts[p.now].z)
	p.look()
	p.stands, p.steps = true, steps
	p.lambda, p.raise, p.idle = 1e-3, 2, 0
}

// look makes v of the point to look at.
func (p *mapped) look() {
	for c, z := range p.there.z {
		p.there.v[c] = elem.Exp(z)
	}
}

func (p *mapped) point() []float64  { return p.there.v }
func (p *mapped) model() *quadratic { return &p.there.quadratic }
func (p *mapped) cautious() bool    { return false }
func (p *mapped) end(v []float64)   { copy(v, p.at.v) }

func (p *mapped) next(loss float64) bool {
	p.there.loss = loss
	k := p.k
	for c, v := range p.there.v { // from v to log v
		p.there.G[c] *= v
		for b, w := range p.there.v[:c+1] {
			h := p.there.H[c*k+b] * float64(v*w)
			p.there.H[c*k+b], p.there.H[b*k+c] = h, h
		}
	}
	if p.stands {
		p.stands = false
		p.at, p.there = p.there, p.at
	} else if p.judge() {
		return p.done()
	}
	for p.steps > 0 {
		p.steps--
		if p.at.Factor(p.lambda, 1e-6*p.at.Top()) { // not where that is 0 or no number
			p.propose()
			return true
		}
		if p.refuse() {
			break
		}
	}
	return p.done()
}

// refuse damps more, and tells whether that is beyond reason.
func (p *mapped) refuse() bool {
	p.lambda *= p.raise
	p.raise *= 2
	return p.lambda > 1e10
}

// propose makes the damped step, and looks there.
func (p *mapped) propose() {
	at, next := &p.at, &p.there
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
	p.promise = 0
	for c, s := range p.s {
		p.promise -= float64(s * (at.G[c] + float64(at.Times(c, p.s)/2)))
	}
	p.look()
}

// judge takes the step, if the loss fell, and tells whether the search has ended.
//
// The damping follows the agreement of model and loss (Nielsen 1999): it falls
// smoothly, to a third at best, where they agree, and rises ever faster while
// steps fail. Directions in which the model is flat are damped like those a
// million times less flat than the steepest.
func (p *mapped) judge() bool {
	fall := p.at.loss - p.there.loss
	if !(fall > 0) {
		return p.refuse()
	}
	agree := float64(2*fall/max(p.promise, divergence.Tiny)) - 1
	p.lambda = max(p.lambda*max(1.0/3, 1-float64(agree*agree*agree)), 1e-12)
	p.raise = 2
	p.idle++
	if fall > smallFall*p.at.loss {
		p.idle = 0
	}
	p.at, p.there = p.there, p.at
	return p.idle == 2 // a single small step may be a cautious one
}

// done ends the search that is on, and begins the next one, unless it was the long one.
func (p *mapped) done() bool {
	if p.now == len(p.starts) {
		return false
	}
	s := &p.starts[p.now]
	s.loss = p.at.loss
	copy(s.z, p.at.z)
	if p.now++; p.now < len(p.starts) {
		p.visit(shortSteps)
		return true
	}
	p.now = 0
	for i, s := range p.starts {
		if s.loss < p.starts[p.now].loss {
			p.now = i
		}
	}
	p.visit(mostSteps)
	p.now = len(p.starts)
	return true
}
