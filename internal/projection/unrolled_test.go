package projection

import (
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// updateByUpdate is the reference: matrices throughout, every state stored, and
// the formulas of the package comment one by one.
func (p *problem) updateByUpdate(kind method) []float64 {
	d, n, k := p.d, p.n, p.k
	type matrix = [][]float64
	zeros := func(r, c int) matrix {
		m := make(matrix, r)
		for i := range m {
			m[i] = make([]float64, c)
		}
		return m
	}
	times := func(a, b matrix) matrix {
		c := zeros(len(a), len(b[0]))
		for i := range a {
			for l, v := range a[i] {
				for j := range b[l] {
					c[i][j] += v * b[l][j]
				}
			}
		}
		return c
	}
	turn := func(a matrix) matrix {
		c := zeros(len(a[0]), len(a))
		for i := range a {
			for j, v := range a[i] {
				c[j][i] = v
			}
		}
		return c
	}
	each := func(f func(x ...float64) float64, of ...matrix) matrix {
		c := zeros(len(of[0]), len(of[0][0]))
		x := make([]float64, len(of))
		for i := range c {
			for j := range c[i] {
				for l := range of {
					x[l] = of[l][i][j]
				}
				c[i][j] = f(x...)
			}
		}
		return c
	}
	plus := func(x ...float64) float64 { return x[0] + x[1] }
	over := func(x ...float64) float64 { return x[0] / x[1] }

	product := func(x ...float64) float64 { return x[0] * x[1] }
	omega := zeros(d, n)
	for i := range d {
		for j := range p.n {
			if !p.hidden[i*p.n+j] {
				omega[i][j] = 1
			}
		}
	}
	// Ω as it lies for y: turned with it.
	seen := func(y matrix) matrix {
		if len(y) == d {
			return omega
		}
		return turn(omega)
	}
	// The denominator of the update of v.
	below := func(y, u, v matrix) matrix {
		if kind.kind == Frobenius {
			return times(turn(u), each(product, seen(y), times(u, v)))
		}
		return times(turn(u), seen(y))
	}
	// One update of v for y ~ uv; that of u is the same for the transposes.
	update := func(y, u, v matrix) matrix {
		r := y
		if kind.kind != Frobenius {
			r = each(over, y, times(u, v))
		}
		return each(func(x ...float64) float64 { return x[0] * x[1] / x[2] }, v,
			times(turn(u), each(product, seen(y), r)), below(y, u, v))
	}
	// Its reverse: from the gradient at the new v to those at y, u and v.
	reverse := func(y, u, v, next, bar matrix) (yb, ub, vb matrix) {
		w, den := times(u, v), below(y, u, v)
		nb := each(func(x ...float64) float64 { return x[0] * x[1] / x[2] }, bar, v, den)
		db := each(func(x ...float64) float64 { return -x[0] * x[1] / x[2] }, bar, next, den)
		vb = each(func(x ...float64) float64 { return x[0] * x[1] / x[2] }, bar, next, v)
		o := seen(y)
		if kind.kind == Frobenius {
			yb = each(product, o, times(u, nb))
			wb := each(product, o, times(u, db))
			ub = each(plus, each(plus, times(each(product, o, y), turn(nb)),
				times(each(product, o, w), turn(db))), times(wb, turn(v)))
			vb = each(plus, vb, times(turn(u), wb))
			return yb, ub, vb
		}
		r, rb := each(over, y, w), each(product, o, times(u, nb))
		yb = each(over, rb, w)
		wb := each(func(x ...float64) float64 { return -x[0] * x[1] / x[2] }, rb, r, w)
		ub = each(plus, each(plus, times(each(product, o, r), turn(nb)), times(o, turn(db))),
			times(wb, turn(v)))
		vb = each(plus, vb, times(turn(u), wb))
		return yb, ub, vb
	}
	y, wbar, u, v := zeros(d, n), zeros(d, n), zeros(d, k), zeros(k, n)
	for i := range d {
		copy(y[i], p.y[i*p.np:])
		copy(wbar[i], p.wbar[i*p.np:])
		copy(u[i], p.start.U[i*k:])
	}
	for c := range k {
		copy(v[c], p.start.V[c*p.np:])
	}
	us, vs := []matrix{u}, []matrix{v}
	for t := range kind.updates {
		vs = append(vs, update(y, us[t], vs[t]))
		us = append(us, turn(update(turn(y), turn(vs[t+1]), turn(us[t]))))
	}
	last := kind.updates
	ub, vb, ybar := times(wbar, turn(vs[last])), times(turn(us[last]), wbar), zeros(d, n)
	for t := last; t > 0; t-- {
		yt, vt, ut := reverse(turn(y), turn(vs[t]), turn(us[t-1]), turn(us[t]), turn(ub))
		ybar, vb, ub = each(plus, ybar, turn(yt)), each(plus, vb, turn(vt)), turn(ut)
		yb, u2, v2 := reverse(y, us[t-1], vs[t-1], vs[t], vb)
		ybar, ub, vb = each(plus, ybar, yb), each(plus, ub, u2), v2
	}
	flat := make([]float64, len(p.y))
	for i := range d {
		copy(flat[i*p.np:], ybar[i])
	}
	return flat
}

// TestCheckpoints holds every spacing to the reference and to one another's bits.
func TestCheckpoints(t *testing.T) {
	one := Workers(t, 1)
	for _, of := range []Kind{KL, Frobenius} {
		for _, updates := range []int{1, 2, 3, 7, 30, -1, -2, -7, -30} {
			p := newProblem(19, 13, 5)
			if updates < 0 {
				updates = -updates
				p.hide(0.2)
			}
			kind := method{of, updates}
			want := p.updateByUpdate(kind)
			var first []float64
			for c := updates; c > 0; c-- {
				by := newUnrolled(of, updates, c, p.size(), p.seen(), one)
				got := p.gradient(t, by)
				again := slices.Clone(got)
				by.Backward(p.wbar, again)
				if first == nil {
					first = got
					NearAll(t, got, want, 1e-13*LargestOf(want), "%v", kind)
				}
				if !slices.Equal(got, first) || !slices.Equal(again, first) {
					t.Errorf("%v: other bits at spacing %d", kind, c)
				}
			}
		}
	}
	for _, c := range [][3]int{{100, 1000, 100}, {1 << 23, 1, 1 << 23}, {100, 1 << 20, 10},
		{101, 1 << 20, 11}, {1, 1 << 30, 1}, {3, 1 << 30, 2}} {
		if got := spacing(c[0], float64(c[1])); got != c[2] {
			t.Errorf("spacing of %d updates of %d numbers is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestHiddenNone: the formulas for hidden cells are the others where none is, and
// do not look at what a hidden cell holds.
func TestHiddenNone(t *testing.T) {
	one := Workers(t, 1)
	for _, kind := range methods(10)[:2] {
		p := newProblem(23, 14, 4)
		by := p.projector(kind, one)
		value, want := p.value(t, by), p.gradient(t, by)
		p.partial = true
		by = p.projector(kind, one)
		NearAll(t, []float64{p.value(t, by)}, []float64{value}, 1e-12*math.Abs(value), "value")
		NearAll(t, p.gradient(t, by), want, 1e-12*LargestOf(want), "gradient")
		p.hide(0.3)
		got := p.gradient(t, p.projector(kind, one))
		for i := range p.d {
			for j := range p.n {
				if p.hidden[i*p.n+j] && got[i*p.np+j] != 0 {
					t.Errorf("%v: a hidden cell has gradient %v", kind, got[i*p.np+j])
				}
			}
		}
	}
}
