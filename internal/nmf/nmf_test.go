package nmf

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// problem is d × n, with factors and a share of the cells hidden; where that is below 0 the others are
// weighed.
func problem(t *testing.T, d, n, k int, loss divergence.Loss, hidden, penalty float64) *Problem {
	r := random.Split(9, 1)
	np := kernel.Pad(n)
	p := &Problem{D: d, N: n, K: k, NP: np, U: make([]float64, d*k), V: make([]float64, k*np),
		X: make([]float64, d*n), Stride: n, Rows: make([]int, d),
		Loss: loss, Penalties: Penalties{L1U: penalty / float64(k), L1V: penalty / float64(k)},
		Pool: Workers(t, 1),
		Held: func(divergence.Loss, []float64, int, float64, []float64) float64 { return 0 }}
	for i := range p.X {
		p.X[i] = math.Exp(Normal(&r))
		if i%5 == 0 && loss > 0 {
			p.X[i] = 0
		}
		if r.Float64() < math.Abs(hidden) {
			p.X[i], p.Partial = math.NaN(), true
			continue
		}
		p.Rows[i/n]++
		p.Visible++
	}
	weights := make([]float64, d*n)
	for i, x := range p.X {
		switch {
		case x == x && hidden < 0:
			weights[i] = 0.5 + r.Float64()
		case x == x:
			weights[i] = 1
		}
	}
	for i, total := 0, TotalOf(weights); i < d*n; i++ {
		weights[i] *= float64(p.Visible) / total
	}
	p.Read = func(x, omega []float64, i int) {
		copy(x, p.X[i*p.Stride:i*p.Stride+p.N])
		if !p.Partial {
			return
		}
		copy(omega, weights[i*n:(i+1)*n])
		for j, v := range x[:n] {
			if v != v {
				x[j] = 0
			}
		}
	}
	for i := range p.U {
		p.U[i] = 0.5 + r.Float64()
	}
	for c := range k {
		for j := range n {
			p.V[c*np+j] = 0.5 + r.Float64()
		}
	}
	return p
}

// objective is the weighted sum of the divergences, without the penalty, by the definition.
func (p *Problem) objective() float64 {
	sum, weights := 0.0, slices.Repeat([]float64{1}, p.N)
	for i := range p.D {
		if p.Partial {
			p.Read(make([]float64, p.N), weights, i)
		}
		for j, x := range p.X[i*p.Stride : i*p.Stride+p.N] {
			if x != x {
				continue
			}
			w := 0.0
			for c := range p.K {
				w += p.U[i*p.K+c] * p.V[c*p.NP+j]
			}
			switch {
			case p.Loss == divergence.Frobenius:
				sum += weights[j] * (x - w) * (x - w) / 2
			case x == 0:
				sum += weights[j] * w
			default:
				sum += weights[j] * (x*math.Log(x/w) - x + w)
			}
		}
	}
	return sum
}

// textbook returns a check that the factors are those after epochs of multiplicative updates as Lee and Seung
// print them, of V and then of U. Where an update has raised an entry the next epoch begins further up.
func (p *Problem) textbook(t *testing.T, epochs int) (check func()) {
	u, v, weights := slices.Clone(p.U), slices.Clone(p.V), slices.Repeat([]float64{1}, p.N)
	move := func(to []float64, at func(c, i, j int) (int, float64)) {
		num, den := make([]float64, len(to)), make([]float64, len(to))
		for i := range p.D {
			if p.Partial {
				p.Read(make([]float64, p.N), weights, i)
			}
			for j, x := range p.X[i*p.N : (i+1)*p.N] {
				w := 0.0
				for c := range p.K {
					w += u[i*p.K+c] * v[c*p.NP+j]
				}
				for c := range p.K {
					to, by := at(c, i, j)
					switch by *= weights[j]; {
					case x != x:
					case p.Loss == divergence.KL:
						num[to], den[to] = num[to]+by*x/w, den[to]+by
					default:
						num[to], den[to] = num[to]+by*x, den[to]+by*w
					}
				}
			}
		}
		for at, n := range num {
			to[at] *= n / max(den[at], 1e-300)
		}
	}
	zu, zv, tau := slices.Clone(u), slices.Clone(v), 1.0
	for range epochs {
		after := (1 + math.Sqrt(1+4*tau*tau)) / 2
		by := (tau - 1) / after
		tau = after
		move(v, func(c, i, j int) (int, float64) { return c*p.NP + j, u[i*p.K+c] })
		for _, f := range [][2][]float64{{v, zv}, {u, zu}} {
			for i, x := range f[0] {
				f[0][i] += by * max(x-f[1][i], 0)
				f[1][i] = x
			}
		}
		move(u, func(c, i, j int) (int, float64) { return i*p.K + c, v[c*p.NP+j] })
	}
	return func() {
		t.Helper()
		NearAll(t, p.U, u, 1e-11*LargestOf(u), "U")
		NearAll(t, p.V, v, 1e-11*LargestOf(v), "V")
	}
}

// TestUpdates: epochs of updates are those of the textbook.
func TestUpdates(t *testing.T) {
	for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius} {
		for _, hidden := range []float64{0, 0.2, -0.2} {
			p := problem(t, 37, 41, 3, loss, hidden, 0)
			f := NewUpdates(*p)
			Must(f.Begin())(t)
			check := p.textbook(t, 20)
			for e := range 20 {
				Must(f.Epoch(e))(t)
			}
			check()
		}
	}
}

// TestGuessLosses: the losses of guesses are a part of the penalty, those of visible cells are not.
func TestGuessLosses(t *testing.T) {
	const d, n, guess, weight = 9, 70, 2.5, 0.3
	for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius, 1.5} {
		p := problem(t, d, n, 3, loss, -0.2, 0)
		p.Guess = func(x, omega, g []float64, _ int) {
			for j, v := range omega[:n] {
				if g[j] = 0; v == 0 {
					x[j], g[j] = guess, weight
				}
			}
		}
		seen, guesses, omega := 0.0, 0.0, make([]float64, n)
		for i := range d {
			p.Read(make([]float64, n), omega, i)
			for j, x := range p.X[i*n : (i+1)*n] {
				w := 0.0
				for c := range p.K {
					w += p.U[i*p.K+c] * p.V[c*p.NP+j]
				}
				if x == x {
					seen += omega[j] * loss.Value(x, w, divergence.LeastT)
				} else {
					guesses += weight * loss.Value(guess, w, divergence.LeastT)
				}
			}
		}
		l := Must(NewUpdates(*p).Begin())(t)
		Near(t, l.Visible*float64(p.Visible), seen, 1e-12*seen, "visible")
		Near(t, l.Penalty*float64(p.Visible), guesses, 1e-12*guesses, "guesses")
	}
}

// TestNewtonGradient: gradient and curvature of the loss in V by differences.
func TestNewtonGradient(t *testing.T) {
	const d, n, k = 23, 19, 3
	for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius} {
		for _, hidden := range []float64{0, 0.2, -0.2} {
			p := problem(t, d, n, k, loss, hidden, 0.3)
			f := NewNewton(*p)
			f.take()
			f.open()
			total := func() float64 {
				sum := p.objective()
				for _, v := range p.U {
					sum += f.add.u * v
				}
				for _, v := range p.V {
					sum += f.add.v * v
				}
				return sum
			}
			for c := range k {
				for j := range n {
					at := -1
					for tile := range f.tiles.count {
						if lo, hi := f.tile(tile); j >= lo && j < hi {
							at = k*lo + c*(hi-lo) + j - lo
						}
					}
					g, h := f.add.v, 0.0
					if f.plain {
						for i := range f.pieces {
							g += f.pieces[i].sum[c]
						}
					}
					if f.exact { // the pieces have UᵀX and UᵀU, its lower half
						for i := range f.pieces {
							for b := range k {
								g += f.extra[i].h[max(b, c)*kernel.Pad(k)+min(b, c)] * p.V[b*p.NP+j]
							}
						}
					}
					for i := range f.pieces {
						g -= f.pieces[i].num[at]
						if !f.exact {
							h += f.pieces[i].den[at]
						}
					}
					const step = 1e-4
					v := &p.V[c*p.NP+j]
					old := *v
					middle := total()
					*v = old + step
					above := total()
					*v = old - step
					below := total()
					*v = old
					Close(t, g, (above-below)/(2*step), 1e-5, "loss %v: gradient at (%d, %d)", loss, c, j)
					if !f.exact {
						Close(t, h, (above+below-2*middle)/(step*step), 1e-3,
							"loss %v: curvature at (%d, %d)",
							loss, c, j)
					}
				}
			}
		}
	}
}

// TestDescent: the losses returned are those of the factors, which are not negative, and do not rise; another
// number of workers has the same bits, and so has a method that goes on from a state.
func TestDescent(t *testing.T) {
	const epochs = 9
	for name, method := range ways {
		for _, loss := range []divergence.Loss{divergence.KL, divergence.Frobenius} {
			for _, hidden := range []float64{0, 0.2, -0.2} {
				for _, penalty := range []float64{0, 0.1} {
					p := problem(t, 37, 41, 3, loss, hidden, penalty)
					m := method(p)
					check := func(l Losses, err error) float64 {
						t.Helper()
						if want := p.objective() / float64(p.Visible); err != nil ||
							!(math.Abs(l.Visible-want) <= 1e-12*want) {
							t.Fatalf("%s, loss %v: %v (%v), of the factors %v", name, loss, l.Visible, err,
								want)
						}
						for i, v := range slices.Concat(p.U, p.V) {
							if !(v >= 0) {
								t.Fatalf("%s, loss %v, hidden %v, penalty %v: number %d is %v", name, loss,
									hidden, penalty, i, v)
							}
						}
						return l.Visible + l.Penalty
					}
					last := check(m.Begin())
					var half *Problem
					var state [][]float64
					for e := range epochs {
						next := check(m.Epoch(e))
						if next > last*(1+1e-13) {
							t.Errorf("%s, loss %v, penalty %v: the loss rises from %v to %v", name, loss,
								penalty, last, next)
						}
						last = next
						if e == 4 {
							half = problem(t, 37, 41, 3, loss, hidden, penalty)
							half.Pool = Workers(t, 3)
							copy(half.U, p.U)
							copy(half.V, p.V)
							for _, part := range m.State() {
								state = append(state, slices.Clone(part.V))
							}
						}
					}
					again := method(half)
					again.Prepare(5)
					for i, part := range again.State() {
						copy(part.V, state[i])
					}
					again.Resume(5)
					for e := 5; e < epochs; e++ {
						Must(again.Epoch(e))(t)
					}
					Same(t, slices.Concat(half.U, half.V), slices.Concat(p.U, p.V),
						"%s, loss %v, hidden %v, penalty %v, resumed", name, loss, hidden, penalty)
				}
			}
		}
	}
}

// TestCloseFit: where the factors nearly have x, its loss under Frobenius is taken cell by cell.
func TestCloseFit(t *testing.T) {
	for name, method := range ways {
		p := problem(t, 37, 300, 3, divergence.Frobenius, 0, 0)
		for i := range p.X {
			p.X[i] = float64(i%7) * 1e-5
			for c := range p.K {
				p.X[i] += p.U[i/p.N*p.K+c] * p.V[c*p.NP+i%p.N]
			}
		}
		l, err := method(p).Begin()
		if want := p.objective() / float64(p.Visible); err != nil || !(math.Abs(l.Visible/want-1) <= 1e-10) {
			t.Errorf("%s: a loss of %v (%v), of the factors %v", name, l.Visible, err, want)
		}
	}
}

// TestEnds: after its context has ended a pool makes no epoch, and the factors stay.
func TestEnds(t *testing.T) {
	for _, method := range ways {
		p := problem(t, 37, 41, 3, divergence.KL, 0, 0)
		ctx, cancel := context.WithCancel(context.Background())
		p.Pool = Workers(t, 2)
		p.Pool.Bind(ctx)
		m := method(p)
		Must(m.Begin())(t)
		before := slices.Clone(p.V)
		cancel()
		if _, err := m.Epoch(0); err == nil {
			t.Error("an epoch after the end")
		}
		Same(t, p.V, before, "V after the end")
	}
}

// TestStepLength: up to the step and at it the slope under KL along any direction is
// not positive; where it is negative at 0 the step is not 0.
func TestStepLength(t *testing.T) {
	r := random.Split(3, 3)
	for trial := range 8000 {
		n := 1 + trial%9
		x, w, d := make([]float64, n), make([]float64, n), make([]float64, n)
		spread := float64(trial % 12)
		slope, c2, c3, rho := 0.0, 0.0, 0.0, 0.0
		for i := range x {
			x[i], w[i], d[i] = math.Exp(spread*Normal(&r)/4), math.Exp(spread*Normal(&r)/4),
				Normal(&r)*math.Exp(spread*Normal(&r)/4)
			if r.Float64() < 0.2 {
				x[i] = 0
			}
			d[i] = max(d[i], -w[i]) // as where w and w + d are products of what is not negative
			slope += d[i] * (1 - x[i]/w[i])
			z := d[i] / w[i]
			c2 += x[i] * z * z
			if z < 0 && x[i] > 0 {
				c3, rho = c3-x[i]*z*z*z, max(rho, -z)
			}
		}
		step := stepLength(slope, c2, c3, rho, 2)
		if slope >= 0 {
			if step != 0 {
				t.Fatalf("a step of %v where the slope is %v", step, slope)
			}
			continue
		}
		if !(step > 0 && step <= 2 && rho*step <= 1+1e-15) {
			t.Fatalf("a step of %v: slope %v, %v, %v, %v", step, slope, c2, c3, rho)
		}
		for _, share := range []float64{0.25, 0.5, 0.75, 1} {
			s, size := 0.0, 0.0
			for i := range x {
				data := 0.0
				if x[i] > 0 {
					data = d[i] * x[i] / math.Max(w[i]+share*step*d[i], 0)
				}
				s += d[i] - data
				size += math.Abs(d[i]) + math.Abs(data)
			}
			if s > 1e-12*size {
				t.Fatalf("slope %v after %v of a step of %v, at 0 %v; sizes %v", s, share, step, slope, size)
			}
		}
	}
}
