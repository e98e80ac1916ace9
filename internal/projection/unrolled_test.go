package projection

import (
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// updated returns U and V after the updates, by the formulas of the package comment, entry by entry.
func (p *problem) updated(of method) (u, v []float64) {
	u, v = slices.Clone(p.start.U), slices.Clone(p.start.V)
	product := func(i, j int) (w float64) {
		for c := range p.k {
			w += u[i*p.k+c] * v[c*p.np+j]
		}
		return w
	}
	// ratio is the weighted sum of the numerator over that of the denominator in the cells of the update of
	// one of the factors, by is the other one there.
	ratio := func(count int, cell func(l int) (i, j int, by float64)) float64 {
		num, den := 0.0, 0.0
		for l := range count {
			i, j, by := cell(l)
			w, y := product(i, j), p.y[i*p.np+j]
			by *= p.omega[i*p.n+j]
			if of.kind == Frobenius {
				num, den = num+y*by, den+w*by
			} else {
				num, den = num+y/w*by, den+by
			}
		}
		return num / den
	}
	for range of.updates {
		next := slices.Clone(v)
		for c := range p.k {
			for j := range p.n {
				next[c*p.np+j] *= ratio(p.d, func(i int) (int, int, float64) { return i, j, u[i*p.k+c] })
			}
		}
		v, next = next, slices.Clone(u)
		for at := range next {
			i, c := at/p.k, at%p.k
			next[at] *= ratio(p.n, func(j int) (int, int, float64) { return i, j, v[c*p.np+j] })
		}
		u = next
	}
	return u, v
}

// TestCheckpoints holds the updates to their formulas, and the gradients of all spacings to one another's
// bits.
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
			u, v := p.updated(kind)
			var first []float64
			for c := updates; c > 0; c-- {
				by := newUnrolled(of, updates, c, p.size(), p.seen(), one)
				got := p.gradient(t, by)
				again := slices.Clone(got)
				by.Backward(p.wbar, again)
				if first == nil {
					first = got
					NearAll(t, by.Result().U, u, 1e-13*LargestOf(u), "%v, U", kind)
					NearAll(t, by.Result().V, v, 1e-13*LargestOf(v), "%v, V", kind)
				}
				if !slices.Equal(got, first) || !slices.Equal(again, first) {
					t.Errorf("%v: other bits at spacing %d", kind, c)
				}
			}
		}
	}
	for _, c := range [][3]int{{100, 1000, 100}, {1 << 23, 1, 1 << 23}, {100, 1 << 20, 10},
		{101, 1 << 20, 11}, {1, 1 << 30, 1}, {3, 1 << 30, 2}} {
		Equal(t, spacing(c[0], float64(c[1])), c[2], "spacing of %d updates of %d numbers", c[0], c[1])
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
				if p.omega[i*p.n+j] == 0 && got[i*p.np+j] != 0 {
					t.Errorf("%v: a hidden cell has gradient %v", kind, got[i*p.np+j])
				}
			}
		}
	}
}
