package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// problem is a random kernel in both layouts.
type problem struct {
	n, np, m       int
	e, w, z, v     []float64
	dense          [][]float64 // E_ij W_j
	y, h, s, inc   []float64
	zeta, weights  []float64
	otherIncrement []float64
}

func newProblem(n, m int) *problem {
	r := random.Split(uint64(n), m)
	p := &problem{n: n, np: Pad(n), m: m}
	vec := func(n int, lo, hi float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = lo + (hi-lo)*r.Float64()
		}
		return x
	}
	p.s, p.h, p.w = vec(p.np, -40, 40), vec(m, -2, 2), vec(m, 0.1, 2)
	p.y = make([]float64, m)
	for j := range p.y {
		p.y[j] = (float64(j) - float64(m-1)/2) / 8
	}
	p.v, p.zeta, p.weights = vec(p.np, 0, 1), vec(p.np, -1, 1), vec(p.np, 0, 1)
	for i := n; i < p.np; i++ {
		p.v[i], p.zeta[i], p.weights[i] = 0, 0, 0
	}
	p.inc, p.otherIncrement = vec(m-1, 0, 1), vec(m-1, -1, 1)
	p.e, p.z = make([]float64, p.np*m), make([]float64, p.np)
	Build(p.e, p.s, p.h, p.y)
	for i := range p.np {
		row := make([]float64, m)
		for j := range row {
			row[j] = p.e[(i/8*m+j)*8+i%8] * p.w[j]
		}
		p.dense = append(p.dense, row)
	}
	RowSums(p.z, p.e, p.w)
	return p
}

func TestAgainstDefinitions(t *testing.T) {
	for n := 1; n <= 40; n += 3 {
		for _, m := range []int{1, 2, 3, 8, 17} {
			p := newProblem(n, m)
			c, mu, g := make([]float64, m), make([]float64, 2*m), make([]float64, m*Pad(m))
			ColSums(c, p.e, p.v)
			Moments(mu, p.e, p.v)
			Gram(g, p.e, p.v, m)
			for j := range m {
				sum := func(f func(i int) float64) (s float64) {
					for i := range n {
						s += f(i)
					}
					return s
				}
				e := func(i, j int) float64 { return p.e[(i/8*m+j)*8+i%8] }
				Near(t, c[j], sum(func(i int) float64 { return p.v[i] * e(i, j) }), 1e-13*float64(n),
					"column sum")
				Near(t, mu[2*j], sum(func(i int) float64 { return p.v[i] * e(i, j) * e(i, j) }),
					1e-13*float64(n), "diagonal")
				for k := range j + 1 {
					want := sum(func(i int) float64 { return p.v[i] * e(i, j) * e(i, k) })
					Near(t, g[j*Pad(m)+k], want, 1e-13*float64(n), "Gram")
					if k == j-1 {
						Near(t, mu[2*k+1], want, 1e-13*float64(n), "off-diagonal")
					}
				}
			}
			level := func(first float64, d []float64) []float64 {
				v := []float64{first}
				for _, x := range d {
					v = append(v, v[len(v)-1]+x)
				}
				return v
			}
			mean, cov, own := make([]float64, p.np), make([]float64, p.np), make([]float64, p.np)
			Average(mean, p.e, p.w, p.z, 3, p.inc)
			args := Cov{Out: cov, E: p.e, W: p.w, Z: p.z, Zeta: p.zeta, A: p.weights, V: level(3, p.inc),
				Lam: level(0, p.otherIncrement), Y: p.y}
			Covariance(&args)
			other := make([]float64, p.np)
			args.Out, args.Own = other, own
			CovarianceOwn(&args)
			q, l := level(3, p.inc), level(0, p.otherIncrement)
			for i := range n {
				mean1 := func(v []float64) (s float64) {
					for j := range v {
						s += p.dense[i][j] * v[j] / p.z[i]
					}
					return s
				}
				cov1 := func(u, v []float64) (s float64) {
					mu, mv := mean1(u), mean1(v)
					for j := range v {
						s += p.dense[i][j] * (u[j] - mu) * (v[j] - mv) / p.z[i]
					}
					return s
				}
				Near(t, mean[i], mean1(q), 2e-12, "mean")
				Near(t, cov[i], p.zeta[i]*cov1(q, p.y)-p.weights[i]*cov1(l, p.y), 2e-12, "covariance")
				Near(t, other[i], cov[i], 2e-12, "covariance, from two")
				Near(t, own[i], p.weights[i]*cov1(q, p.y), 2e-12, "covariance of its own")
			}
		}
	}
}

// TestPowerMean holds mean and covariance against sums over pairs of levels, to relative precision: the slope
// keeps its digits at both ends.
func TestPowerMean(t *testing.T) {
	r := random.Split(11, 11)
	for _, m := range []int{2, 3, 4, 8, 16, 33} {
		for _, reach := range []float64{1e-3, 1, 10, 100, 690} {
			const n = 48
			z, mean, slope, c := make([]float64, n), make([]float64, n), make([]float64, n),
				make([]float64, 2*m)
			q, last := make([]float64, m), 0.0
			for J := range q {
				if J > 0 {
					last += 0.5 + r.Float64()
				}
				q[J] = last
				a := math.Exp(4 * (r.Float64() - 0.5))
				c[2*J], c[2*J+1] = a, a*q[J]
			}
			for i := range z {
				z[i] = (2*float64(i)/(n-1) - 1) * reach
			}
			z[5] = 0
			PowerMean(mean, slope, z, c)
			for i, z := range z {
				p, sum := make([]float64, m), 0.0
				from := 0.0 // J from the end that has the most weight: no power overflows
				if z > 0 {
					from = float64(m - 1)
				}
				for J := range p {
					p[J] = c[2*J] * math.Exp(z*(float64(J)-from))
					sum += p[J]
				}
				want, cov := 0.0, 0.0
				for J := range p {
					want += p[J] / sum * q[J]
					for K := range J {
						cov += p[J] / sum * p[K] / sum * (q[J] - q[K]) * float64(J-K)
					}
				}
				Near(t, mean[i], want, 1e-13*want, "%d levels, z=%v: mean", m, z)
				Near(t, slope[i], cov, 1e-11*cov, "%d levels, z=%v: slope", m, z)
			}
		}
	}
}

func BenchmarkKernels(b *testing.B) {
	p := newProblem(256, 16)
	m := p.m
	c, mu := make([]float64, m), make([]float64, 2*m)
	t := make([]float64, p.np)
	u, v, powers, spare := make([]float64, m), make([]float64, m), make([]float64, 2*m), make([]float64, p.np)
	for i := range powers {
		powers[i] = float64(1 + i%3)
	}
	copy(u, p.inc)
	copy(v, p.otherIncrement)
	for name, f := range map[string]func(){
		"Build":      func() { Build(p.e, p.s, p.h, p.y) },
		"BuildPower": func() { BuildPower(p.e, p.s, p.y[0], 1./15, m) },
		"PowerMean":  func() { PowerMean(t, spare, p.s, powers) },
		"MappedKL": func() {
			MappedKL(t, spare, p.z, p.s, p.zeta, powers, powers[:2*m-3],
				&KLMap{Fall: -1, Center: 0.5, Step: 4, Most: 1e10})
		},
		"RowSums":       func() { RowSums(p.z, p.e, p.w) },
		"MultiplyLess":  func() { MultiplyLess(t, p.s, p.z, p.zeta) },
		"Fisher":        func() { copy(t, p.s); Fisher(t, p.z, 1.7, 1e-3) },
		"LogisticSlope": func() { copy(t, p.s); LogisticSlope(t, p.zeta, -1.7) },
		"Moments":       func() { Moments(mu, p.e, p.v) },
		"ColSums":       func() { ColSums(c, p.e, p.v) },
		"Average":       func() { Average(t, p.e, p.w, p.z, 0, p.inc) },
		"Covariance": func() {
			Covariance(&Cov{Out: t, E: p.e, W: p.w, Z: p.z, Zeta: p.zeta, A: p.weights, V: u, Lam: v, Y: p.y})
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				f()
			}
		})
	}
}

// Packed triangles against their definition; numbers beside the triangle are left as they are.
func TestPacked(t *testing.T) {
	for k := 1; k < 30; k++ {
		r := random.Split(uint64(k), 1)
		size, stride := k*(k+1)/2, Pad(k)+8*(k%2)
		a, z, b := make([]float64, k*stride), make([]float64, stride), make([]float64, Pad(size))
		for _, v := range [][]float64{a, z, b} {
			for i := range v {
				v[i] = r.Float64() - 0.5
			}
		}
		to, packed := make([]float64, len(a)), slices.Clone(b)
		Unpack(to, b, k, stride, 3)
		PackOuter(packed, a, z, k, stride, 2)
		at := 0
		for r := range k {
			for c := range stride {
				switch want := 3 * b[min(at, size-1)]; {
				case c > r:
					if c >= Pad(r+1) && to[r*stride+c] != 0 {
						t.Fatalf("k %d: row %d has entry %d", k, r, c)
					}
					continue
				case to[r*stride+c] != want:
					t.Fatalf("k %d: entry %d, %d is %v, want %v", k, r, c, to[r*stride+c], want)
				}
				if want := float64(float64(z[r]*z[c])-a[r*stride+c]) * 2; packed[at] != want {
					t.Fatalf("k %d: packed %d, %d is %v, want %v", k, r, c, packed[at], want)
				}
				at++
			}
		}
		EqualAll(t, packed[size:], b[size:], "k %d: the padding is written", k)
	}
}

// TestFisher: a_i² by/max(t_i, low), the floor taken where t is below it.
func TestFisher(t *testing.T) {
	for n := 1; n <= 2*Lanes+1; n++ {
		a, s, low := make([]float64, n), make([]float64, n), 0.25
		for i := range a {
			a[i], s[i] = float64(i+1), float64(i)/8 // below, at and above the floor
		}
		Fisher(a, s, 3, low)
		for i, got := range a {
			Near(t, got, float64(i+1)*float64(i+1)*3/max(float64(i)/8, low), 1e-9, "Fisher")
		}
	}
}
