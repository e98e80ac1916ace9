package place

// This file holds columns under Uv. The problem is convex for β from 1 to 2. A step s minimises the quadratic model
// g·s + sᵀHs/2 under v+s >= 0 exactly, by an active set in k unknowns, and is
// then halved until the loss falls by a share of g·s: every step is feasible and
// goes down, and zeros of v are found, not approached. H = Uᵀ diag(ω) U, ω = ∂²Δ/∂t²
// as in Newton's method; in the first steps ω is that curvature at x = t, which
// is what it is at a good fit and does not mistake a cell that is far off (x/t²
// instead of 1/t) for a stiff one. Columns of U are brought to sum 1 and so is x.

import (
	"context"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/quadratic"
)

const (
	expectedAt  = 3      // steps of NMF by the expected curvature
	farOff      = 1000   // x/t from which a cell always has the expected curvature: Newton's steps would only double t
	floorShare  = 1e-16  // of t in derivatives, x having sum 1
	leastColumn = 1e-230 // sum of a column of U below which its coordinates could overflow: it counts as 0
)

// Linear is U without its zero columns, each brought to sum 1.
type Linear struct {
	loss  divergence.Loss
	d, k  int
	full  func(i int) []float64 // row i of U as it was given
	u     []float64             // d × len(alive)
	alive []int                 // the columns of U that are left
	sum   []float64             // what each of them summed to
}

// NewLinear makes a Linear of the d rows of U, of k numbers each.
func NewLinear(loss divergence.Loss, d, k int, row func(i int) []float64) *Linear {
	b := &Linear{loss: loss, d: d, k: k, full: row}
	for c := range k {
		s := 0.0
		for i := range d {
			s += row(i)[c]
		}
		if s > leastColumn {
			b.alive, b.sum = append(b.alive, c), append(b.sum, s)
		}
	}
	for i := range d {
		row := row(i)
		for a, c := range b.alive {
			b.u = append(b.u, row[c]/b.sum[a])
		}
	}
	return b
}

type linear struct {
	*Linear
	quadratic.Form
	x      []float64 // the column, of sum 1
	v, try []float64
}

// Locator returns the locator of a worker.
func (b *Linear) Locator() Locator {
	k := len(b.alive)
	return &linear{Linear: b, Form: quadratic.New(k), x: make([]float64, b.d), v: make([]float64, k), try: make([]float64, k)}
}

func (p *linear) Locate(ctx context.Context, v, x []float64) float64 {
	clear(v)
	unit := 0.0
	for _, xi := range x {
		if xi == xi {
			unit += xi
		}
	}
	if unit > 0 && p.K > 0 {
		for i, xi := range x {
			p.x[i] = xi / unit
		}
		p.minimise(ctx)
		for a, c := range p.alive {
			v[c] = p.v[a] * (unit / p.sum[a])
		}
	}
	loss := 0.0
	for i, xi := range x {
		if xi == xi {
			loss += p.loss.Divergence(xi, dot(p.full(i), v))
		}
	}
	return loss
}

// minimise finds the v of the least loss for p.x, from equal v_c.
func (p *linear) minimise(ctx context.Context) {
	for c := range p.v {
		p.v[c] = 1 / float64(p.K)
	}
	f := p.value(p.v)
	for step := range mostSteps {
		if ctx.Err() != nil {
			return
		}
		p.Clear()
		noise := 0.0
		for i, x := range p.x {
			if x != x {
				continue
			}
			u := p.u[i*p.K : (i+1)*p.K]
			t := dot(u, p.v)
			_, slope, curvature, expected := p.loss.Differentiate(x, t, floorShare)
			noise += float64(float64(expected*t) * t)
			if step < expectedAt || x > farOff*t {
				curvature = expected
			}
			p.Add(slope, curvature, u)
		}
		p.Bounded(p.v, 1e-12)
		promise := -dot(p.G, p.S)
		if promise <= float64(1e-12*f)+float64(1e-16*noise) { // nothing is left but rounding
			return
		}
		next := f
		for share := 1.0; share > 1e-9; share /= 2 {
			for c, s := range p.S {
				p.try[c] = max(p.v[c]+float64(share*s), 0)
			}
			if next = p.value(p.try); next <= f-float64(1e-4*share*promise) {
				break
			}
			next = f
		}
		if next >= f {
			if step < expectedAt {
				continue
			}
			return
		}
		p.v, p.try = p.try, p.v
		small := f-next <= 1e-2*smallFall*f // the convergence is quadratic: a step later nothing is left
		f = next
		if small && step >= expectedAt {
			return
		}
	}
}

func (p *linear) value(v []float64) float64 {
	f := 0.0
	for i, x := range p.x {
		if x == x {
			f += p.loss.Value(x, dot(p.u[i*p.K:(i+1)*p.K], v), p.loss.Least())
		}
	}
	return f
}
