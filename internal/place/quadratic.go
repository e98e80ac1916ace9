package place

// This file holds the problem that a step in few unknowns leads to: the least value of g·s + sᵀHs/2, free, or
// with v+s >= 0.

import "math"

// quadratic is g·s + sᵀHs/2 in k unknowns, with the room to minimise it.
type quadratic struct {
	K       int
	G, H    []float64 // k, and k × k row by row, both triangles
	S       []float64 // k: the last minimum, see Bounded
	l       []float64 // the Cholesky factor, see Factor: rows of k numbers
	inverse []float64 // 1 over its diagonal
	free    []int     // the unknowns that it has
	r, x    []float64 // k: a step of Bounded; room of Solve
	fixed   []bool    // k: unknowns that stay at their bound; none but within Bounded
}

// newQuadratic returns the form that is 0 everywhere, in k unknowns.
func newQuadratic(k int) quadratic {
	room := make([]float64, k*(2*k+5))
	v := func(n int) []float64 {
		some := room[:n:n]
		room = room[n:]
		return some
	}
	return quadratic{K: k, G: v(k), H: v(k * k), S: v(k), l: v(k * k), inverse: v(k), r: v(k), x: v(k),
		free: make([]int, 0, k), fixed: make([]bool, k)}
}

// Add adds slope·u to g and curvature·uuᵀ to H.
func (p *quadratic) Add(slope, curvature float64, u []float64) {
	for c, uc := range u {
		p.G[c] += float64(slope * uc)
		wu := curvature * uc
		for b, ub := range u[:c+1] {
			p.H[c*p.K+b] += float64(wu * ub)
			p.H[b*p.K+c] = p.H[c*p.K+b]
		}
	}
}

// Times returns entry c of Hs.
func (p *quadratic) Times(c int, s []float64) float64 {
	sum := 0.0
	row := p.H[c*p.K : (c+1)*p.K]
	s = s[:len(row)]
	for b, h := range row {
		sum += float64(h * s[b])
	}
	return sum
}

// Top returns the largest diagonal entry of H.
func (p *quadratic) Top() float64 {
	top := 0.0
	for c := range p.K {
		top = max(top, p.H[c*p.K+c])
	}
	return top
}

// Factor fills l with the Cholesky factor of H + λ diag(max(H_cc, floor)) in the unknowns that are not
// fixed; false where a pivot is lost to rounding.
func (p *quadratic) Factor(lambda, floor float64) bool {
	k, l := p.K, p.l
	p.free = p.free[:0]
	for c, fixed := range p.fixed {
		if !fixed {
			p.free = append(p.free, c)
		}
	}
	for i, c := range p.free {
		row, of := l[i*k:i*k+i+1], p.H[c*k:(c+1)*k]
		for j, b := range p.free[:i+1] {
			row[j] = of[b]
		}
		row[i] += float64(lambda * max(row[i], floor))
		least := 1e-15 * row[i]
		for j := range i {
			s, above := row[j], l[j*k:j*k+j]
			to := row[:len(above)]
			for c, v := range above {
				s -= float64(to[c] * v)
			}
			row[j] = s * p.inverse[j]
		}
		s := row[i]
		for _, v := range row[:i] {
			s -= float64(v * v)
		}
		if !(s > least) { // nor is an infinite one
			return false
		}
		row[i] = math.Sqrt(s)
		p.inverse[i] = 1 / row[i]
	}
	return true
}

// Solve overwrites b with the solution for the factored matrix; what is fixed stays.
func (p *quadratic) Solve(b []float64) {
	k, l, x := p.K, p.l, p.x[:len(p.free)]
	for i, c := range p.free {
		s, to := b[c], x[:i]
		for j, v := range l[i*k : i*k+i] {
			s -= float64(v * to[j])
		}
		x[i] = s * p.inverse[i]
	}
	for i := len(x) - 1; i >= 0; i-- {
		s := x[i] * p.inverse[i]
		for j, v := range l[i*k : i*k+i] {
			x[j] -= float64(v * s)
		}
		b[p.free[i]] = s
	}
}

// Bounded fills S with the minimum under v+s >= 0, by a primal active set: the model falls with every pivot,
// so s goes down wherever the loop may end. Before it come the set that v has already, and sweeps of
// coordinate descent, which find most of the set. ridge is a small multiple of the diagonal that dependent
// columns need.
func (p *quadratic) Bounded(v []float64, ridge float64) {
	k := p.K
	floor := p.Top()
	tiny := 0.0
	for c := range k {
		tiny = max(tiny, math.Abs(p.G[c]))
	}
	tiny *= 1e-12
	if p.stays(v, ridge, 1e-3*floor) {
		return
	}
	p.descend(v)
	for c, x := range v {
		p.fixed[c] = x+p.S[c] == 0
	}
	for range 4*k + 10 {
		for !p.Factor(ridge, 1e-3*floor) {
			if ridge = max(10*ridge, 1e-15); !(ridge < 1e6) {
				return
			}
		}
		for c := range k {
			p.r[c] = 0
			if !p.fixed[c] {
				p.r[c] = -p.G[c] - p.Times(c, p.S) // the target is s + H⁻¹(-g-Hs) on the free ones
			}
		}
		p.Solve(p.r)
		share, hit := 1.0, -1
		for c, step := range p.r {
			if room := v[c] + p.S[c]; !p.fixed[c] && room+step < 0 {
				if a := room / -step; a < share {
					share, hit = a, c
				}
			}
		}
		for c, step := range p.r {
			p.S[c] = max(p.S[c]+float64(share*step), -v[c])
		}
		if hit >= 0 {
			p.S[hit], p.fixed[hit] = -v[hit], true
			continue
		}
		worst, free := -tiny, -1
		for c := range k {
			if p.fixed[c] {
				if y := p.G[c] + p.Times(c, p.S); y < worst {
					worst, free = y, c
				}
			}
		}
		if free < 0 {
			return
		}
		p.fixed[free] = false
	}
}

// stays tries the set of those v at their bound that g holds there, if there are some, and tells whether it
// is that of the minimum, which is in S then. It does not try where the others are curved so differently that
// the ridge would shorten their steps, which the sweeps do not feel.
func (p *quadratic) stays(v []float64, ridge, floor float64) bool {
	some := false
	for c, x := range v {
		p.fixed[c] = x == 0 && p.G[c] > 0
		if p.S[c] = -p.G[c]; p.fixed[c] {
			p.S[c], some = 0, true
		} else if p.H[c*p.K+c] < floor { // the ridge would count
			return false
		}
	}
	if !some || !p.Factor(ridge, floor) {
		return false
	}
	p.Solve(p.S)
	for c, x := range v {
		if !p.fixed[c] {
			if !(x+p.S[c] >= 0) {
				return false
			}
			continue
		}
		y, size := p.G[c], p.G[c]
		for b, h := range p.H[c*p.K : c*p.K+p.K] {
			part := float64(h * p.S[b])
			y += part
			size += math.Abs(part)
		}
		if !(y >= -1e-12*size) {
			return false
		}
	}
	return true
}

// sweeps is the number of those that Bounded makes.
const sweeps = 3

// descend fills S by sweeps of coordinate descent from 0 under v+s >= 0.
func (p *quadratic) descend(v []float64) {
	k := p.K
	clear(p.S)
	copy(p.r, p.G)
	for range sweeps {
		for c, x := range v {
			row := p.H[c*k : c*k+k]
			if !(row[c] > 0) {
				continue
			}
			to := max(p.S[c]-p.r[c]/row[c], -x)
			step := to - p.S[c]
			if step == 0 || step-step != 0 {
				continue
			}
			p.S[c] = to
			for b, h := range row {
				p.r[b] += float64(h * step)
			}
		}
	}
}
