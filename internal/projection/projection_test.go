package projection

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// problem is a positive y, a start, and the weights of a linear
// functional of UV; all padded rows.
type problem struct {
	d, n, np, k int
	y, wbar     []float64
	start       Factors
	omega       []float64 // d × n
	partial     bool      // Ω is looked at
}

func newProblem(d, n, k int) *problem {
	p := &problem{d: d, n: n, np: kernel.Pad(n), k: k, omega: slices.Repeat([]float64{1}, d*n)}
	p.start = Factors{make([]float64, d*k), make([]float64, k*p.np)}
	r := random.Split(uint64(d), 100*n+k)
	p.y, p.wbar = make([]float64, d*p.np), make([]float64, d*p.np)
	for i := range d {
		for j := range n {
			p.y[i*p.np+j] = 0.2 + float64(3*r.Float64())
			p.wbar[i*p.np+j] = r.Float64() - 0.5
		}
	}
	for i := range p.start.U {
		p.start.U[i] = 0.5 + r.Float64()
	}
	for c := range k {
		for j := range n {
			p.start.V[c*p.np+j] = 0.5 + r.Float64()
		}
	}
	return p
}

// hide hides about a share of the cells and weighs the others; where share is 0 it does neither.
func (p *problem) hide(share float64) {
	p.partial = share > 0
	r := random.Split(uint64(p.n), p.d)
	for at := range p.omega {
		switch p.omega[at] = 1; {
		case r.Float64() < share:
			p.omega[at], p.y[at/p.n*p.np+at%p.n] = 0, 0
		case p.partial:
			p.omega[at] = 0.5 + r.Float64()
		}
	}
}

func (p *problem) size() Size { return Size{p.d, p.n, p.k} }

func (p *problem) seen() Seen {
	if !p.partial {
		return nil
	}
	return func(omega []float64, i int) { copy(omega, p.omega[i*p.n:]) }
}

// row fills w with row i of UV.
func (p *problem) row(w []float64, f Factors, i int) { kernel.Combine(w, f.U[i*p.k:(i+1)*p.k], f.V) }

func (p *problem) projector(m method, workers *pool.Pool) Projector {
	return New(Choice{m.kind, m.updates}, p.size(), p.seen(), workers)
}

// value is the functional at y.
func (p *problem) value(t testing.TB, by Projector) float64 {
	t.Helper()
	OK(t, by.Forward(p.y, p.start))
	w, s := make([]float64, p.np), 0.0
	for i := range p.d {
		p.row(w, by.Result(), i)
		for j, v := range w {
			s += v * p.wbar[i*p.np+j]
		}
	}
	return s
}

func (p *problem) gradient(t testing.TB, by Projector) []float64 {
	t.Helper()
	ybar := make([]float64, len(p.y))
	for i := range ybar {
		ybar[i] = math.NaN()
	}
	p.value(t, by)
	by.Backward(p.wbar, ybar)
	for i := range p.d {
		for j := p.n; j < p.np; j++ {
			if ybar[i*p.np+j] != 0 {
				t.Fatalf("padding %v in row %d", ybar[i*p.np+j], i)
			}
		}
	}
	return ybar
}

// method is a kind with its number of updates.
type method struct {
	kind    Kind
	updates int
}

var truncation = method{kind: SVD}

func (m method) String() string {
	return fmt.Sprintf("%s(%d)", map[Kind]string{KL: "KL", Frobenius: "Frobenius", SVD: "SVD"}[m.kind],
		m.updates)
}

func methods(updates ...int) (all []method) {
	for _, n := range updates {
		all = append(all, method{KL, n}, method{Frobenius, n})
	}
	return append(all, truncation)
}

func TestGradients(t *testing.T) {
	one := Workers(t, 1)
	for _, size := range [][4]int{{7, 10, 3, 0}, {11, 6, 2, 0}, {20, 5, 1, 0}, {3, 4, 6, 0}, {7, 10, 3, 25},
		{12, 9, 2, 40}, {5, 6, 7, 10}} {
		for _, kind := range methods(1, 2, 7, 100) {
			if size[3] > 0 && kind == truncation {
				continue
			}
			t.Run(fmt.Sprintf("%v, %v", size, kind), func(t *testing.T) { // of d, n, k and percent hidden
				p := newProblem(size[0], size[1], size[2])
				p.hide(float64(size[3]) / 100)
				by := p.projector(kind, one)
				got := p.gradient(t, by)
				want := make([]float64, len(got))
				for i := range p.d {
					for j := range p.n {
						if p.omega[i*p.n+j] == 0 {
							continue
						}
						want[i*p.np+j] = Derivative(&p.y[i*p.np+j], 2e-5, func() float64 {
							return p.value(t,
								by)
						})
					}
				}
				NearAll(t, got, want, 1e-7*LargestOf(want), "gradient")
			})
		}
	}
}

func TestBits(t *testing.T) {
	for _, kind := range methods(9, 8) {
		for _, size := range [][3]int{{40, 21, 5}, {18, 50, 4}, {3, 3, 2}, {5, 1, 1}, {1, 5, 1}} {
			p := newProblem(size[0], size[1], size[2])
			if kind.updates == 8 {
				p.hide(0.2)
			}
			var value float64
			var first []float64
			for _, workers := range []int{1, 2, 7} {
				w := pool.New(workers, 100)
				by := p.projector(kind, w)
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

func TestAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the lists that channels wait in
	w := pool.New(2, 2)
	defer w.Close()
	p := newProblem(40, 21, 5)
	ybar := make([]float64, len(p.y))
	for _, kind := range methods(9, 8) {
		p.hide(0)
		if kind.updates == 8 {
			p.hide(0.2)
		}
		by := p.projector(kind, w)
		if n := testing.AllocsPerRun(5, func() {
			if err := by.Forward(p.y, p.start); err != nil {
				t.Error(err)
			}
			by.Backward(p.wbar, ybar)
		}); n != 0 {
			t.Errorf("%v: %v allocations", kind, n)
		}
	}
}

// TestZeros: rows and columns of zeros, and zeros in the start, give
// numbers throughout.
func TestZeros(t *testing.T) {
	one := Workers(t, 1)
	for _, kind := range methods(1, 30, 29) {
		for _, scale := range []float64{1, 1e150, 1e-150} {
			p := newProblem(12, 9, 3)
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
			p.start.U[0], p.start.V[1] = 0, 0
			p.start.U[7*p.k], p.start.U[7*p.k+1], p.start.U[7*p.k+2] = 0, 0, 0
			for _, f := range [][]float64{p.start.U, p.start.V} {
				for i := range f {
					f[i] *= math.Sqrt(scale)
				}
			}
			g := p.gradient(t, p.projector(kind, one))
			if i := notFinite(g); i >= 0 {
				t.Errorf("%v of zeros, scale %v: gradient %v", kind, scale, g[i])
			}
		}
	}
}

// TestConverges: many updates of an exact product come near it.
func TestConverges(t *testing.T) {
	one := Workers(t, 1)
	p := newProblem(15, 12, 3)
	for i := range p.d {
		p.row(p.y[i*p.np:(i+1)*p.np], p.start, i)
	}
	for i := range p.start.U {
		p.start.U[i] += 0.3 * math.Sin(float64(i))
	}
	w := make([]float64, p.np)
	for kind, tol := range map[method]float64{{KL, 3000}: 0.02, {Frobenius, 3000}: 0.02, truncation: 1e-13} {
		by := p.projector(kind, one)
		OK(t, by.Forward(p.y, p.start))
		for i := range p.d {
			p.row(w, by.Result(), i)
			NearAll(t, w, p.y[i*p.np:(i+1)*p.np], tol*LargestOf(p.y), "%v", kind)
		}
	}
}

func BenchmarkProjection(b *testing.B) {
	one := Workers(b, 1)
	for _, size := range [][3]int{{160, 80, 8}, {500, 256, 10}} {
		p := newProblem(size[0], size[1], size[2])
		ybar := make([]float64, len(p.y))
		for _, kind := range methods(20, 100) {
			by := p.projector(kind, one)
			name := fmt.Sprintf("%dx%dx%d/%v", p.d, p.n, p.k, kind)
			b.Run(name+"/forward", func(b *testing.B) {
				for b.Loop() {
					OK(b, by.Forward(p.y, p.start))
				}
			})
			b.Run(name+"/backward", func(b *testing.B) {
				p.value(b, by)
				for b.Loop() {
					by.Backward(p.wbar, ybar)
				}
			})
		}
	}
}

func notFinite(x []float64) int { return slices.IndexFunc(x, func(v float64) bool { return v-v != 0 }) }
