package quantmf

// Tests of the projections of QMFQ.

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

func TestProjectionValues(t *testing.T) {
	for _, c := range []struct {
		p     Projection
		name  string
		valid bool
	}{
		{KLUpdates(100), "KLUpdates(100)", true},
		{KLUpdates(0), "KLUpdates(0)", false},
		{FrobeniusUpdates(1), "FrobeniusUpdates(1)", true},
		{FrobeniusUpdates(-3), "FrobeniusUpdates(-3)", false},
		{TruncatedSVD(), "TruncatedSVD()", true},
		{Projection{}, "Projection{}", false},
	} {
		if c.p.String() != c.name || (c.p.bound() == "") != c.valid {
			t.Errorf("%v: %q", c.p, c.p.bound())
		}
	}
	if KLUpdates(3) != KLUpdates(3) || KLUpdates(3) == FrobeniusUpdates(3) {
		t.Error("equality")
	}
}

// projectionProblem is a positive y, a start, and the weights of a linear
// functional of UV; all padded rows.
type projectionProblem struct {
	d, n, np, k int
	y, wbar     []float64
	start       *factors
	visible     *cells
}

func newProjectionProblem(d, n, k int) *projectionProblem {
	p := &projectionProblem{d: d, n: n, np: kernel.Pad(n), k: k, start: newFactors(d, n, k)}
	p.hide(0)
	r := random.Split(uint64(d), 100*n+k)
	p.y, p.wbar = make([]float64, d*p.np), make([]float64, d*p.np)
	for i := range d {
		for j := range n {
			p.y[i*p.np+j] = 0.2 + float64(3*r.Float64())
			p.wbar[i*p.np+j] = r.Float64() - 0.5
		}
	}
	for i := range p.start.u {
		p.start.u[i] = 0.5 + r.Float64()
	}
	for c := range k {
		for j := range n {
			p.start.v[c*p.np+j] = 0.5 + r.Float64()
		}
	}
	return p
}

// hide hides about a share of the cells, none where share is 0.
func (p *projectionProblem) hide(share float64) {
	x := NewMat(p.d, p.n)
	p.visible = &cells{x: x, partial: share > 0}
	r := random.Split(uint64(p.n), p.d)
	for i := range p.d {
		for j := range p.n {
			if r.Float64() < share {
				x.Set(i, j, math.NaN())
				p.y[i*p.np+j] = 0
			}
		}
	}
}

// value is the functional at y.
func (p *projectionProblem) value(t testing.TB, by projector) float64 {
	t.Helper()
	if err := by.forward(p.y, p.start); err != nil {
		t.Fatal(err)
	}
	w, s := make([]float64, p.np), 0.0
	for i := range p.d {
		by.result().reconstruct(w, i)
		for j, v := range w {
			s += v * p.wbar[i*p.np+j]
		}
	}
	return s
}

func (p *projectionProblem) gradient(t testing.TB, by projector) []float64 {
	t.Helper()
	ybar := make([]float64, len(p.y))
	for i := range ybar {
		ybar[i] = math.NaN()
	}
	p.value(t, by)
	by.backward(p.wbar, ybar)
	for i := range p.d {
		for j := p.n; j < p.np; j++ {
			if ybar[i*p.np+j] != 0 {
				t.Fatalf("padding %v in row %d", ybar[i*p.np+j], i)
			}
		}
	}
	return ybar
}

func allProjections(updates ...int) (all []Projection) {
	for _, n := range updates {
		all = append(all, KLUpdates(n), FrobeniusUpdates(n))
	}
	return append(all, TruncatedSVD())
}

func TestProjectionGradients(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	for _, size := range [][4]int{{7, 10, 3, 0}, {11, 6, 2, 0}, {20, 5, 1, 0}, {3, 4, 6, 0}, {7, 10, 3, 25}, {12, 9, 2, 40}, {5, 6, 7, 10}} {
		for _, kind := range allProjections(1, 2, 7, 100) {
			if size[3] > 0 && kind == TruncatedSVD() {
				continue
			}
			t.Run(strconv.Itoa(size[0])+"×"+strconv.Itoa(size[1])+", "+strconv.Itoa(size[3])+" % hidden, "+kind.String(), func(t *testing.T) {
				p := newProjectionProblem(size[0], size[1], size[2])
				p.hide(float64(size[3]) / 100)
				by := newProjector(kind, p.visible, p.k, one)
				got := p.gradient(t, by)
				want := make([]float64, len(got))
				for i := range p.d {
					for j, x := range p.visible.x.Row(i) {
						if x != x {
							continue
						}
						y := &p.y[i*p.np+j]
						at, h := *y, 2e-5
						*y = at + h
						up := p.value(t, by)
						*y = at - h
						want[i*p.np+j] = (up - p.value(t, by)) / (2 * h)
						*y = at
					}
				}
				closeTo(t, "gradient", got, want, 1e-7*largest(want))
			})
		}
	}
}

// updateByUpdate is the reference: matrices throughout, every state stored, and
// the formulas at the head of project.go one by one.
func (p *projectionProblem) updateByUpdate(kind Projection) []float64 {
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
		for j, x := range p.visible.x.Row(i) {
			if x == x {
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
		if kind.kind == projectionFrobenius {
			return times(turn(u), each(product, seen(y), times(u, v)))
		}
		return times(turn(u), seen(y))
	}
	// One update of v for y ~ uv; that of u is the same for the transposes.
	update := func(y, u, v matrix) matrix {
		r := y
		if kind.kind != projectionFrobenius {
			r = each(over, y, times(u, v))
		}
		return each(func(x ...float64) float64 { return x[0] * x[1] / x[2] }, v, times(turn(u), each(product, seen(y), r)), below(y, u, v))
	}
	// Its reverse: from the gradient at the new v to those at y, u and v.
	reverse := func(y, u, v, next, bar matrix) (yb, ub, vb matrix) {
		w, den := times(u, v), below(y, u, v)
		nb := each(func(x ...float64) float64 { return x[0] * x[1] / x[2] }, bar, v, den)
		db := each(func(x ...float64) float64 { return -x[0] * x[1] / x[2] }, bar, next, den)
		vb = each(func(x ...float64) float64 { return x[0] * x[1] / x[2] }, bar, next, v)
		o := seen(y)
		if kind.kind == projectionFrobenius {
			yb = each(product, o, times(u, nb))
			wb := each(product, o, times(u, db))
			ub = each(plus, each(plus, times(each(product, o, y), turn(nb)), times(each(product, o, w), turn(db))), times(wb, turn(v)))
			vb = each(plus, vb, times(turn(u), wb))
			return yb, ub, vb
		}
		r, rb := each(over, y, w), each(product, o, times(u, nb))
		yb = each(over, rb, w)
		wb := each(func(x ...float64) float64 { return -x[0] * x[1] / x[2] }, rb, r, w)
		ub = each(plus, each(plus, times(each(product, o, r), turn(nb)), times(o, turn(db))), times(wb, turn(v)))
		vb = each(plus, vb, times(turn(u), wb))
		return yb, ub, vb
	}
	y, wbar, u, v := zeros(d, n), zeros(d, n), zeros(d, k), zeros(k, n)
	for i := range d {
		copy(y[i], p.y[i*p.np:])
		copy(wbar[i], p.wbar[i*p.np:])
		copy(u[i], p.start.u[i*k:])
	}
	for c := range k {
		copy(v[c], p.start.v[c*p.np:])
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
	one := pool.New(1, 1)
	defer one.Close()
	for _, make := range []func(int) Projection{KLUpdates, FrobeniusUpdates} {
		for _, updates := range []int{1, 2, 3, 7, 30, -1, -2, -7, -30} {
			p := newProjectionProblem(19, 13, 5)
			if updates < 0 {
				updates = -updates
				p.hide(0.2)
			}
			kind := make(updates)
			want := p.updateByUpdate(kind)
			var first []float64
			for c := updates; c > 0; c-- {
				by := newUnrolled(kind, p.visible, p.k, c, one)
				got := p.gradient(t, by)
				again := slices.Clone(got)
				by.backward(p.wbar, again)
				if first == nil {
					first = got
					closeTo(t, kind.String(), got, want, 1e-13*largest(want))
				}
				if !slices.Equal(got, first) || !slices.Equal(again, first) {
					t.Errorf("%v: other bits at spacing %d", kind, c)
				}
			}
		}
	}
	for _, c := range [][3]int{{100, 1000, 100}, {1 << 23, 1, 1 << 23}, {100, 1 << 20, 10}, {101, 1 << 20, 11}, {1, 1 << 30, 1}, {3, 1 << 30, 2}} {
		if got := spacing(c[0], c[1]); got != c[2] {
			t.Errorf("spacing of %d updates of %d numbers is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestHiddenNone: the formulas for hidden cells are the others where none is, and
// do not look at what a hidden cell holds.
func TestHiddenNone(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	for _, kind := range allProjections(10)[:2] {
		p := newProjectionProblem(23, 14, 4)
		by := newProjector(kind, p.visible, p.k, one)
		value, want := p.value(t, by), p.gradient(t, by)
		p.visible = &cells{x: p.visible.x, partial: true}
		by = newProjector(kind, p.visible, p.k, one)
		closeTo(t, "value", []float64{p.value(t, by)}, []float64{value}, 1e-12*math.Abs(value))
		closeTo(t, "gradient", p.gradient(t, by), want, 1e-12*largest(want))
		p.hide(0.3)
		got := p.gradient(t, newProjector(kind, p.visible, p.k, one))
		for i := range p.d {
			for j, x := range p.visible.x.Row(i) {
				if x != x && got[i*p.np+j] != 0 {
					t.Errorf("%v: a hidden cell has gradient %v", kind, got[i*p.np+j])
				}
			}
		}
	}
}

func TestProjectionBits(t *testing.T) {
	for _, kind := range allProjections(9, 8) {
		for _, size := range [][3]int{{40, 21, 5}, {18, 50, 4}, {3, 3, 2}, {5, 1, 1}, {1, 5, 1}} {
			p := newProjectionProblem(size[0], size[1], size[2])
			if kind.updates == 8 {
				p.hide(0.2)
			}
			var value float64
			var first []float64
			for _, workers := range []int{1, 2, 7} {
				w := pool.New(workers, 100)
				by := newProjector(kind, p.visible, p.k, w)
				v, g := p.value(t, by), p.gradient(t, by)
				if first == nil {
					value, first = v, g
				} else if v != value || !slices.Equal(g, first) {
					t.Errorf("%v %v: other bits with %d workers", kind, size, workers)
				}
				w.Close()
			}
		}
	}
}

func TestProjectionAllocations(t *testing.T) {
	w := pool.New(2, 2)
	defer w.Close()
	p := newProjectionProblem(40, 21, 5)
	ybar := make([]float64, len(p.y))
	for _, kind := range allProjections(9, 8) {
		p.hide(0)
		if kind.updates == 8 {
			p.hide(0.2)
		}
		by := newProjector(kind, p.visible, p.k, w)
		if n := testing.AllocsPerRun(5, func() {
			if err := by.forward(p.y, p.start); err != nil {
				t.Error(err)
			}
			by.backward(p.wbar, ybar)
		}); n != 0 {
			t.Errorf("%v: %v allocations", kind, n)
		}
	}
}

// TestProjectionZeros: rows and columns of zeros, and zeros in the start, give
// numbers throughout.
func TestProjectionZeros(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	for _, kind := range allProjections(1, 30, 29) {
		for _, scale := range []float64{1, 1e150, 1e-150} {
			p := newProjectionProblem(12, 9, 3)
			for i := range p.d {
				p.y[i*p.np+4] = 0
			}
			clear(p.y[2*p.np : 3*p.np])
			if kind.updates == 29 {
				p.hide(0.3)
			}
			for i := range p.y {
				p.y[i] *= scale
			}
			p.start.u[0], p.start.v[1] = 0, 0
			p.start.u[7*p.k], p.start.u[7*p.k+1], p.start.u[7*p.k+2] = 0, 0, 0
			for _, f := range [][]float64{p.start.u, p.start.v} {
				for i := range f {
					f[i] *= math.Sqrt(scale)
				}
			}
			g := p.gradient(t, newProjector(kind, p.visible, p.k, one))
			if i := notFinite(g); i >= 0 {
				t.Errorf("%v of zeros, scale %v: gradient %v", kind, scale, g[i])
			}
		}
	}
}

// TestProjectionConverges: many updates of an exact product come near it.
func TestProjectionConverges(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	p := newProjectionProblem(15, 12, 3)
	for i := range p.d {
		p.start.reconstruct(p.y[i*p.np:(i+1)*p.np], i)
	}
	for i := range p.start.u {
		p.start.u[i] += 0.3 * math.Sin(float64(i))
	}
	w := make([]float64, p.np)
	for kind, tol := range map[Projection]float64{KLUpdates(3000): 0.02, FrobeniusUpdates(3000): 0.02, TruncatedSVD(): 1e-13} {
		by := newProjector(kind, p.visible, p.k, one)
		if err := by.forward(p.y, p.start); err != nil {
			t.Fatal(err)
		}
		for i := range p.d {
			by.result().reconstruct(w, i)
			closeTo(t, kind.String(), w, p.y[i*p.np:(i+1)*p.np], tol*largest(p.y))
		}
	}
}

func TestTruncatedSVD(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	// set makes y = Σ s_c a_c b_cᵀ of orthonormal a, b: cosines.
	set := func(p *projectionProblem, s []float64) {
		cosine := func(n, c, i int) float64 {
			v := math.Cos(math.Pi * (float64(i) + 0.5) * float64(c) / float64(n))
			if c == 0 {
				return v / math.Sqrt(float64(n))
			}
			return v * math.Sqrt(2/float64(n))
		}
		clear(p.y)
		for c, v := range s {
			for i := range p.d {
				for j := range p.n {
					p.y[i*p.np+j] += v * cosine(p.d, c, i) * cosine(p.n, c, j)
				}
			}
		}
	}
	for _, size := range [][3]int{{12, 7, 3}, {7, 12, 3}, {9, 9, 9}, {4, 6, 9}, {1, 5, 1}, {5, 1, 1}, {6, 4, 4}} {
		p := newProjectionProblem(size[0], size[1], size[2])
		rank := min(p.d, p.n)
		s := make([]float64, rank)
		for c := range s {
			s[c] = 10 / float64(1+c)
		}
		set(p, s)
		by := newProjector(TruncatedSVD(), p.visible, p.k, one)
		g := p.gradient(t, by)
		f := by.result()
		for c := range p.k {
			norm := 0.0
			for i := range p.d {
				norm += f.u[i*p.k+c] * f.u[i*p.k+c]
			}
			want := 0.0
			if c < rank {
				want = s[c]
			}
			if math.Abs(math.Sqrt(norm)-want) > 1e-13*s[0] {
				t.Errorf("%v: component %d of length %v, want %v", size, c, math.Sqrt(norm), want)
			}
			if hi, lo := slices.Max(f.rowV(c)), slices.Min(f.rowV(c)); hi < -lo {
				t.Errorf("%v: component %d has entries from %v to %v", size, c, lo, hi)
			}
			for e := range p.k {
				sum, want := 0.0, 0.0
				for j, v := range f.rowV(c) {
					sum += v * f.rowV(e)[j]
				}
				if c == e && c < rank {
					want = 1
				}
				if math.Abs(sum-want) > 1e-13 {
					t.Errorf("%v: v_%d·v_%d = %v", size, c, e, sum)
				}
			}
		}
		full := slices.Clone(p.y)
		if p.k < rank {
			set(p, s[:p.k])
		}
		w := make([]float64, p.np)
		for i := range p.d {
			f.reconstruct(w, i)
			closeTo(t, "truncation", w, p.y[i*p.np:(i+1)*p.np], 1e-13*s[0])
		}
		if p.k >= rank {
			closeTo(t, "the gradient of the identity", g, p.wbar, 0)
		}
		copy(p.y, full)
	}
	// Equal singular values at the cut, all-zero data, and a rank below k.
	for name, s := range map[string][]float64{
		"equal": {5, 4, 3, 3, 1}, "nearly": {5, 4, 3, 3 - 1e-11, 1}, "below": {5, 4, 0, 0}, "zero": {},
	} {
		p := newProjectionProblem(8, 11, 3)
		set(p, s)
		err := newProjector(TruncatedSVD(), p.visible, p.k, one).forward(p.y, nil)
		var data *DataError
		if !errors.As(err, &data) || data.Row != -1 || data.Col != -1 || !strings.Contains(err.Error(), "singular values 3 and 4") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string][]float64{"a small gap": {5, 4, 3, 3 - 1e-6, 1}, "a small value": {5, 4, 1e-9}, "rank k": {5, 4, 3}} {
		p := newProjectionProblem(8, 11, 3)
		set(p, s)
		g := p.gradient(t, newProjector(TruncatedSVD(), p.visible, p.k, one))
		if i := notFinite(g); i >= 0 {
			t.Errorf("%s: gradient %v", name, g[i])
		}
	}
}

// TestTruncatedSVDWide: the gradient where singular values fall by powers of
// ten, against differences along directions of the matching size.
func TestTruncatedSVDWide(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	p := newProjectionProblem(14, 9, 4)
	by := newProjector(TruncatedSVD(), p.visible, p.k, one).(*truncated)
	p.value(t, by)
	// The same vectors, s_c = 10^-c.
	for i := range p.d {
		for j := range p.n {
			sum := 0.0
			for c := range p.n {
				sum += math.Pow(10, -float64(c)) * by.u(c)[i] * by.v(c)[j]
			}
			p.y[i*p.np+j] = sum
		}
	}
	y := slices.Clone(p.y)
	g := p.gradient(t, by)
	for _, at := range [][2]int{{3, 5}, {5, 3}, {2, 4}, {0, 8}, {3, 3}, {1, 2}, {6, 6}} {
		u, v := slices.Clone(by.u(at[0])), slices.Clone(by.v(at[1]))
		along := func(h float64) float64 {
			for i := range p.d {
				for j := range p.n {
					p.y[i*p.np+j] = y[i*p.np+j] + float64(h*u[i]*v[j])
				}
			}
			return p.value(t, by)
		}
		want, got := (along(1e-7)-along(-1e-7))/2e-7, 0.0
		for i := range p.d {
			for j := range p.n {
				got += g[i*p.np+j] * u[i] * v[j]
			}
		}
		if math.Abs(got-want) > 1e-7 {
			t.Errorf("along u_%d v_%dᵀ: derivative %v, want %v", at[0], at[1], got, want)
		}
		along(0)
		p.value(t, by)
	}
}

func BenchmarkProjection(b *testing.B) {
	one := pool.New(1, 1)
	defer one.Close()
	for _, size := range [][3]int{{160, 80, 8}, {500, 256, 10}} {
		p := newProjectionProblem(size[0], size[1], size[2])
		ybar := make([]float64, len(p.y))
		for _, kind := range allProjections(20, 100) {
			by := newProjector(kind, p.visible, p.k, one)
			name := strconv.Itoa(p.d) + "x" + strconv.Itoa(p.n) + "x" + strconv.Itoa(p.k) + "/" + kind.String()
			b.Run(name+"/forward", func(b *testing.B) {
				for b.Loop() {
					if err := by.forward(p.y, p.start); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/backward", func(b *testing.B) {
				p.value(b, by)
				for b.Loop() {
					by.backward(p.wbar, ybar)
				}
			})
		}
	}
}
