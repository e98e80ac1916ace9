package quantmf

// Projections that were tried in the place of multiplicative updates, and their measurement beside those
// (docs/measurements/qmfq.md): sweeps of coordinate descent, differentiated exactly, and a fixed point of
// the projection, differentiated by the implicit function theorem. All cells are visible.

import (
	"context"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/random"
)

// plain is what both share: the size, Y of the last Forward, and dense products. Factors are U, d × k, and V,
// k × np; Uᵀ is k × d.
type plain struct {
	projection.Size
	np int
	y  []float64
}

// left is UᵀY.
func (p *plain) left(u, y []float64) []float64 {
	to := make([]float64, p.K*p.np)
	kernel.AccumulateRows(to, u, y, p.D)
	return to
}

// right is YVᵀ.
func (p *plain) right(v, y []float64) []float64 {
	to := make([]float64, p.D*p.K)
	kernel.DotsRows(to, v, y, p.D)
	return to
}

// times is UV.
func (p *plain) times(u, v []float64) []float64 {
	to := make([]float64, p.D*p.np)
	kernel.CombineRows(to, u, v, p.D)
	return to
}

func flip(a []float64, rows, cols int) []float64 {
	to := make([]float64, rows*cols)
	for i := range rows {
		for j := range cols {
			to[j*rows+i] = a[i*cols+j]
		}
	}
	return to
}

// gram is BBᵀ for k rows of B.
func gram(b []float64, k int) []float64 {
	g, n := make([]float64, k*k), len(b)/k
	for a := range k {
		for c := range k {
			for j := range n {
				g[a*k+c] += b[a*n+j] * b[c*n+j]
			}
		}
	}
	return g
}

// sweep is a sweep of coordinate descent, row after row, towards the least of |Y - AB|² over B >= 0, given N
// = AᵀY and H = AᵀA: B_c ← max(0, N_c - Σ_{b≠c} H_cb B_b)/H_cc.
func sweep(b, num, h []float64, k int) []float64 {
	b, n := slices.Clone(b), len(b)/k
	for c := range k {
		if !(h[c*k+c] > 0) {
			continue
		}
		for j := range n {
			s := num[c*n+j]
			for e := range k {
				if e != c {
					s -= h[c*k+e] * b[e*n+j]
				}
			}
			b[c*n+j] = max(s/h[c*k+c], 0)
		}
	}
	return b
}

// sweepBack takes the gradient bar at what sweep made of b, after, back to b, and adds those at N and H.
func sweepBack(bar, after, b, h, numbar, hbar []float64, k int) {
	n := len(b) / k
	now := slices.Clone(after)
	for c := k - 1; c >= 0; c-- {
		if !(h[c*k+c] > 0) {
			continue
		}
		copy(now[c*n:(c+1)*n], b[c*n:(c+1)*n])
		for j := range n {
			g := 0.0
			if after[c*n+j] > 0 {
				g = bar[c*n+j] / h[c*k+c]
			}
			bar[c*n+j] = 0
			numbar[c*n+j] += g
			hbar[c*k+c] -= g * after[c*n+j]
			for e := range k {
				if e != c {
					hbar[c*k+e] -= g * now[e*n+j]
					bar[e*n+j] -= g * h[c*k+e]
				}
			}
		}
	}
}

// swept is Π_k as rounds of some sweeps of V and as many of U (HALS).
type swept struct {
	plain
	rounds, sweeps int
	u, v           [][]float64 // Uᵀ and V after each sweep, the start first
}

func (p *swept) Forward(y []float64, start projection.Factors) error {
	p.y = y
	p.u, p.v = [][]float64{flip(start.U, p.D, p.K)}, [][]float64{slices.Clone(start.V)}
	for range p.rounds {
		last := p.u[len(p.u)-1]
		num, h := p.left(flip(last, p.K, p.D), y), gram(last, p.K)
		for range p.sweeps {
			p.v = append(p.v, sweep(p.v[len(p.v)-1], num, h, p.K))
		}
		v := p.v[len(p.v)-1]
		num, h = flip(p.right(v, y), p.D, p.K), gram(v, p.K)
		for range p.sweeps {
			p.u = append(p.u, sweep(p.u[len(p.u)-1], num, h, p.K))
		}
	}
	return nil
}

func (p *swept) Result() projection.Factors {
	return projection.Factors{U: flip(p.u[len(p.u)-1], p.K, p.D), V: p.v[len(p.v)-1]}
}

func (p *swept) Backward(wbar, ybar []float64) {
	clear(ybar)
	end := p.Result()
	ubar, vbar := flip(p.right(end.V, wbar), p.D, p.K), p.left(end.U, wbar)
	// half takes the sweeps of b before round t back, and what their N = AᵀY and H = AᵀA give to A's
	// gradient, abar; it returns N̄.
	half := func(bar, abar []float64, states [][]float64, t int, a []float64) []float64 {
		h, numbar, hbar := gram(a, p.K), make([]float64, len(bar)), make([]float64, p.K*p.K)
		for s := p.sweeps; s > 0; s-- {
			at := t*p.sweeps + s
			sweepBack(bar, states[at], states[at-1], h, numbar, hbar, p.K)
		}
		n := len(a) / p.K
		for c := range p.K {
			for e := range p.K {
				for j := range n {
					abar[c*n+j] += (hbar[c*p.K+e] + hbar[e*p.K+c]) * a[e*n+j]
				}
			}
		}
		return numbar
	}
	for t := p.rounds - 1; t >= 0; t-- {
		v, ut := p.v[(t+1)*p.sweeps], p.u[t*p.sweeps]
		numbar := flip(half(ubar, vbar, p.u, t, v), p.K, p.D)
		for j, g := range p.left(numbar, p.y) {
			vbar[j] += g
		}
		for j, g := range p.times(numbar, v) {
			ybar[j] += g
		}
		numbar = half(vbar, ubar, p.v, t, ut)
		for j, g := range flip(p.right(numbar, p.y), p.D, p.K) {
			ubar[j] += g
		}
		for j, g := range p.times(flip(ut, p.K, p.D), numbar) {
			ybar[j] += g
		}
	}
}

// fixed is Π_k as a stationary point of the divergence, Kullback and Leibler's or Frobenius', which every
// Forward goes on to from the factors of the one before, by a number of epochs of Newton's method
// (internal/nmf) or as many rounds of four sweeps. There the free entries θ of the factors solve ∂L/∂θ = 0,
// so that Ȳ = -(∂²L/∂Y∂θ)ᵀλ with (∂²L/∂θ²) λ the gradient at θ, by conjugate gradients preconditioned by the
// blocks of each row of U and each column of V. near leaves out of ∂²L/∂θ² what the residual gives to it
// (Gauss and Newton).
type fixed struct {
	plain
	loss            divergence.Loss
	epochs, descent int // of Newton's method, of conjugate gradients
	near            bool
	u, v            []float64 // nil: from the start
	pool            *pool.Pool
	error           float64 // of the last system, in units of its right side
}

func (p *fixed) Result() projection.Factors { return projection.Factors{U: p.u, V: p.v} }

func (p *fixed) Forward(y []float64, start projection.Factors) error {
	p.y = y
	epochs := p.epochs
	if p.u == nil {
		p.u, p.v = slices.Clone(start.U), slices.Clone(start.V)
		epochs = 10 * p.epochs
	}
	if p.loss == divergence.Frobenius {
		s := &swept{plain: p.plain, rounds: epochs, sweeps: 4}
		if err := s.Forward(y, p.Result()); err != nil {
			return err
		}
		p.u, p.v = s.Result().U, s.Result().V
		return nil
	}
	rows := make([]int, p.D)
	for i := range rows {
		rows[i] = p.N
	}
	f := nmf.NewNewton(nmf.Problem{D: p.D, N: p.N, K: p.K, NP: p.np, U: p.u, V: p.v, X: y, Stride: p.np,
		Rows: rows, Visible: p.D * p.N, Loss: p.loss, Pool: p.pool,
		Read: func(x []float64, _ []bool, i int) []bool { copy(x, y[i*p.np:i*p.np+p.N]); return nil },
		Held: func(divergence.Loss, []float64, int, float64, []float64) float64 { return 0 }})
	if _, err := f.Begin(); err != nil {
		return err
	}
	for e := range 3 + epochs { // Newton's method begins with three multiplicative updates
		if _, err := f.Epoch(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *fixed) Backward(wbar, ybar []float64) {
	nu := len(p.u)
	join := func(u, v []float64) []float64 { return append(u, v...) }
	top := slices.Max(p.u)
	theta := join(slices.Clone(p.u), p.v)
	free := make([]bool, len(theta))
	for i, x := range theta {
		free[i] = x > 1e-9*top
	}
	mask := func(v []float64) []float64 {
		for i := range v {
			if !free[i] {
				v[i] = 0
			}
		}
		return v
	}
	w := p.times(p.u, p.v)
	g, q := make([]float64, len(w)), make([]float64, len(w)) // ∂L/∂W and ∂²L/∂W²
	for i := range w {
		g[i], q[i] = w[i]-p.y[i], 1
		if p.loss == divergence.KL {
			low := max(w[i], 1e-60)
			g[i], q[i] = 1-p.y[i]/low, p.y[i]/low/low
		}
	}
	apart := func(s []float64) []float64 { // how W changes along s
		to := p.times(s[:nu], p.v)
		for j, v := range p.times(p.u, s[nu:]) {
			to[j] += v
		}
		return to
	}
	hessian := func(s []float64) []float64 {
		c := apart(s)
		for j := range c {
			c[j] *= q[j]
		}
		to := join(p.right(p.v, c), p.left(p.u, c))
		if !p.near {
			for j, v := range join(p.right(s[nu:], g), p.left(s[:nu], g)) {
				to[j] += v
			}
		}
		return mask(to)
	}
	blocks := p.blocks(q, free)
	r := mask(join(p.right(p.v, wbar), p.left(p.u, wbar)))
	dot := func(a, b []float64) (s float64) {
		for i, x := range a {
			s += x * b[i]
		}
		return s
	}
	z := blocks(r)
	s, lambda, rz := slices.Clone(z), make([]float64, len(r)), dot(r, z)
	first := rz
	for i := 0; i < p.descent && rz > 1e-24*first; i++ {
		h := hessian(s)
		curvature := dot(s, h)
		if !(curvature > 0) {
			break
		}
		for j := range lambda {
			lambda[j] += rz / curvature * s[j]
			r[j] -= rz / curvature * h[j]
		}
		z = blocks(r)
		before := rz
		rz = dot(r, z)
		for j := range s {
			s[j] = z[j] + rz/before*s[j]
		}
	}
	p.error = math.Sqrt(rz / max(first, 1e-300))
	copy(ybar, apart(lambda))
	for i := range p.D {
		for j := range p.np {
			at := i*p.np + j
			switch {
			case j >= p.N:
				ybar[at] = 0
			case p.loss == divergence.KL:
				ybar[at] /= max(w[at], 1e-60)
			}
		}
	}
}

// blocks returns the solution with the diagonal blocks of ∂²L/∂θ², one a row of U and one a column of V.
func (p *fixed) blocks(q []float64, free []bool) func(r []float64) []float64 {
	k, nu := p.K, len(p.u)
	type block struct {
		at, stride int
		l          []float64
	}
	var all []block
	add := func(at, stride, n int, entry func(a, b, j int) float64) {
		l := make([]float64, k*k)
		for a := range k {
			for b := range a + 1 {
				if free[at+a*stride] && free[at+b*stride] {
					for j := range n {
						l[a*k+b] += entry(a, b, j)
					}
				}
			}
			if l[a*k+a] == 0 {
				l[a*k+a] = 1
			}
			l[a*k+a] *= 1 + 1e-8
			for b := range a + 1 {
				for c := range b {
					l[a*k+b] -= l[a*k+c] * l[b*k+c]
				}
				if a == b {
					l[a*k+a] = math.Sqrt(max(l[a*k+a], 1e-300))
				} else {
					l[a*k+b] /= l[b*k+b]
				}
			}
		}
		all = append(all, block{at, stride, l})
	}
	for i := range p.D {
		add(i*k, 1, p.N, func(a, b, j int) float64 { return p.v[a*p.np+j] * p.v[b*p.np+j] * q[i*p.np+j] })
	}
	for j := range p.N {
		add(nu+j, p.np, p.D, func(a, b, i int) float64 { return p.u[i*k+a] * p.u[i*k+b] * q[i*p.np+j] })
	}
	return func(r []float64) []float64 {
		x := slices.Clone(r)
		for _, b := range all {
			for i := range k {
				s := x[b.at+i*b.stride]
				for c := range i {
					s -= b.l[i*k+c] * x[b.at+c*b.stride]
				}
				x[b.at+i*b.stride] = s / b.l[i*k+i]
			}
			for i := k - 1; i >= 0; i-- {
				s := x[b.at+i*b.stride]
				for c := i + 1; c < k; c++ {
					s -= b.l[c*k+i] * x[b.at+c*b.stride]
				}
				x[b.at+i*b.stride] = s / b.l[i*k+i]
			}
		}
		for i := range x {
			if !free[i] {
				x[i] = 0
			}
		}
		return x
	}
}

// TestOtherProjections compares the adjoints with central differences; that of a fixed point is exact where
// the point is one and the system is solved, and short of that as far off as the test says.
func TestOtherProjections(t *testing.T) {
	size := projection.Size{D: 12, N: 11, K: 3}
	share := plain{Size: size, np: kernel.Pad(size.N)}
	one := pool.New(1, 1)
	defer one.Close()
	src := random.Split(9, 9)
	draw := func(rows int) []float64 {
		v := make([]float64, rows*share.np)
		for i := range rows {
			for j := range size.N {
				v[i*share.np+j] = src.Float64()
			}
		}
		return v
	}
	y, bar, start := draw(size.D), draw(size.D),
		projection.Factors{U: make([]float64, size.D*size.K), V: draw(size.K)}
	for i := range start.U {
		start.U[i] = src.Float64()
	}
	for i := range y {
		y[i] *= 3 * y[i]
		if bar[i] != 0 {
			bar[i] -= 0.5
		}
	}
	at := func(loss divergence.Loss, descent int, near bool) *fixed {
		epochs := 300
		if loss == divergence.KL {
			epochs = 1500
		}
		return &fixed{plain: share, loss: loss, epochs: epochs, descent: descent, near: near, pool: one}
	}
	for _, c := range []struct {
		name        string
		p           projection.Projector
		times       int
		least, most float64 // of the error, in units of the largest derivative
	}{
		{"a sweep each", &swept{plain: share, rounds: 1, sweeps: 1}, 1, 0, 1e-8},
		{"three rounds of two sweeps", &swept{plain: share, rounds: 3, sweeps: 2}, 1, 0, 1e-8},
		{"fixed point, KL", at(divergence.KL, 1000, false), 40, 0, 1e-6},
		{"fixed point, Frobenius", at(divergence.Frobenius, 1000, false), 3, 0, 1e-6},
		{"fixed point, KL, five steps", at(divergence.KL, 5, false), 3, 1e-3, 1},
		{"fixed point, KL, near", at(divergence.KL, 1000, true), 3, 1e-3, 2},
	} {
		value := func(y []float64) (s float64) {
			// a fixed point goes on from where it is, and Newton's method stops where a step does not lower
			// the loss
			for range c.times {
				if err := c.p.Forward(y, start); err != nil {
					t.Fatal(err)
				}
			}
			f := c.p.Result()
			for i, w := range share.times(f.U, f.V) {
				s += w * bar[i]
			}
			return s
		}
		value(y)
		got := make([]float64, len(y))
		c.p.Backward(bar, got)
		worst, top, h := 0.0, 0.0, 1e-4
		if _, is := c.p.(*fixed); is {
			h = 5e-4 // a point is where the loss falls no further, and known to half its digits
		}
		for i := 0; i < len(y); i += draws(7, 19, 19) {
			if i%share.np >= size.N {
				continue
			}
			want := derivative(func(d float64) float64 {
				z := slices.Clone(y)
				z[i] += d
				return value(z)
			}, h)
			worst, top = max(worst, math.Abs(got[i]-want)), max(top, math.Abs(want))
		}
		t.Logf("%s: error %.2g", c.name, worst/top)
		if !(worst <= c.most*top && worst >= c.least*top) {
			t.Errorf("%s: the gradient is off by %v of %v", c.name, worst, top)
		}
	}
}

// TestProjectionsCompared writes the loss of what is fitted and the processor's seconds of the epochs, for
// the projections of the package and those above, on the toy and on 300 rows of AML expression, without
// shrinkage and from the same start.
func TestProjectionsCompared(t *testing.T) {
	if !long {
		t.Skip("a minute; QUANTMF_LONG=1")
	}
	exp := load(t, "testdata/laml-exp.tsv.gz")
	some := NewMat(300, exp.Cols)
	for i := range some.Rows {
		copy(some.Row(i), exp.Row(i*exp.Rows/some.Rows))
	}
	type problem struct {
		name string
		x    Mat
		k    int
	}
	sets := []problem{{"toy", toy(1), 8}, {"laml-exp", some, 10}}
	for _, name := range []string{"toy-std1", "toy-std2"} { // where they are
		if path := "../shared/data/toy/" + name + ".tsv.gz"; exists(path) {
			sets = append(sets, problem{name, load(t, path), 8})
		}
	}
	for _, set := range sets {
		t.Run(set.name, func(t *testing.T) { compareProjections(t, set.x, set.k) })
	}
}

func compareProjections(t *testing.T, x Mat, k int) {
	one := pool.New(1, 1)
	defer one.Close()
	type rival struct {
		name    string
		kind    Projection
		carried bool // a projection starts from the result of the one before
		own     func(plain) projection.Projector
	}
	rounds := func(rounds, sweeps int) func(plain) projection.Projector {
		return func(p plain) projection.Projector { return &swept{plain: p, rounds: rounds, sweeps: sweeps} }
	}
	point := func(loss divergence.Loss, descent int, near bool) func(plain) projection.Projector {
		return func(p plain) projection.Projector {
			return &fixed{plain: p, loss: loss, epochs: 4, descent: descent, near: near, pool: one}
		}
	}
	var start *qmfqFit
	for _, r := range []rival{
		{"KLUpdates(20)", KLUpdates(20), false, nil}, {"KLUpdates(5)", KLUpdates(5), false, nil},
		{"KLUpdates(2)", KLUpdates(2), false, nil},
		{"FrobeniusUpdates(20)", FrobeniusUpdates(20), false, nil},
		{"FrobeniusUpdates(5)", FrobeniusUpdates(5), false, nil},
		{"KLUpdates(5), carried", KLUpdates(5), true, nil},
		{"FrobeniusUpdates(5), carried", FrobeniusUpdates(5), true, nil},
		{"1 round of 1 sweep", KLUpdates(1), false, rounds(1, 1)},
		{"1 round of 4", KLUpdates(1), false, rounds(1, 4)},
		{"3 rounds of 2", KLUpdates(1), false, rounds(3, 2)},
		{"8 rounds of 2", KLUpdates(1), false, rounds(8, 2)},
		{"1 round of 1, carried", KLUpdates(1), true, rounds(1, 1)},
		{"3 rounds of 2, carried", KLUpdates(1), true, rounds(3, 2)},
		{"fixed point, KL, 20 steps", KLUpdates(1), false, point(divergence.KL, 20, false)},
		{"fixed point, KL, near, 20 steps", KLUpdates(1), false, point(divergence.KL, 20, true)},
		{"fixed point, KL, near, 5 steps", KLUpdates(1), false, point(divergence.KL, 5, true)},
		{"fixed point, Frobenius, 20 steps", KLUpdates(1), false, point(divergence.Frobenius, 20, false)},
		{"fixed point, Frobenius, near, 20 steps", KLUpdates(1), false,
			point(divergence.Frobenius, 20, true)},
	} {
		line := "| " + r.name + " |"
		for _, epochs := range []int{30, 100} {
			c := qmfqDefaults()
			c.projection, c.batchRows, c.shrinkage, c.epochs = r.kind, math.MaxInt32, 0, epochs
			visible, err := newCells(x, &c.settings)
			if err != nil {
				t.Fatal(err)
			}
			f := newQMFQFit(visible, k, &c.settings, one, c.seed,
				fit.Silent(context.Background()))
			if start == nil {
				if err := f.startFromQMF(); err != nil {
					t.Fatal(err)
				}
				start = newQMFQFit(visible, k, &c.settings, one, c.seed, f.progress)
				begun(start, f)
			}
			begun(f, start)
			if r.own != nil {
				f.projector = r.own(plain{Size: projection.Size{D: x.Rows, N: x.Cols, K: k},
					np: kernel.Pad(x.Cols)})
			}
			before, spent := cpuTime(), 0.0
			for e := range epochs {
				if _, err := f.Epoch(e + 1); err != nil {
					t.Fatal(err)
				}
				if r.carried {
					copy(f.from.u, f.projected.u)
					copy(f.from.v, f.projected.v)
				}
			}
			spent = (cpuTime() - before).Seconds()
			if err := f.project(); err != nil {
				t.Fatal(err)
			}
			f.run(evaluateRows)
			line += " " + strconv.FormatFloat(f.inflation.meanLoss(), 'g', 4, 64) + " | " +
				strconv.FormatFloat(spent, 'f', 2, 64) + " |"
			if p, is := f.projector.(*fixed); is && epochs == 100 {
				line += " left of the system " + strconv.FormatFloat(p.error, 'g', 2, 64) + " |"
			}
		}
		t.Log(line)
	}
}

// begun gives a fit the start of another.
func begun(to, from *qmfqFit) {
	for i, v := range from.starts() {
		copy(to.starts()[i], v)
	}
	copy(to.projected.u, from.from.u)
	copy(to.projected.v, from.from.v)
}

// starts is what a start fills.
func (f *qmfqFit) starts() [][]float64 {
	return [][]float64{f.inflation.F, f.inflation.Inc, f.deflation.F, f.deflation.Inc, f.deflation.R,
		f.from.u, f.from.v}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
