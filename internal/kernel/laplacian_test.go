package kernel

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// exactSolution solves L λ = r with λ_0 = 0 by Gaussian elimination over the rationals.
func exactSolution(w []float64, stride int, r []float64) []float64 {
	m := len(r)
	a := make([][]*big.Rat, m-1)
	for i := 1; i < m; i++ {
		a[i-1] = make([]*big.Rat, m)
		for j := 1; j < m; j++ {
			v := new(big.Rat)
			if i != j {
				v.Neg(new(big.Rat).SetFloat64(w[max(i, j)*stride+min(i, j)]))
			} else {
				for k := range m {
					if k != i {
						v.Add(v, new(big.Rat).SetFloat64(w[max(i, k)*stride+min(i, k)]))
					}
				}
			}
			a[i-1][j-1] = v
		}
		a[i-1][m-1] = new(big.Rat).SetFloat64(r[i])
	}
	for k := range a {
		for i := range a {
			if i == k {
				continue
			}
			f := new(big.Rat).Quo(a[i][k], a[k][k])
			for j := k; j < m; j++ {
				a[i][j].Sub(a[i][j], new(big.Rat).Mul(f, a[k][j]))
			}
		}
	}
	x := make([]float64, m)
	for i := range a {
		x[i+1], _ = new(big.Rat).Quo(a[i][m-1], a[i][i]).Float64()
	}
	return x
}

// TestSolveLaplacian couples neighbours by weights down to 1e-18: the condition number
// passes 1e18 where LU and Cholesky return noise, and the answer keeps its digits.
func TestSolveLaplacian(t *testing.T) {
	for _, weak := range []float64{1, 1e-4, 1e-9, 1e-18} {
		const m, stride = 6, 8
		w := make([]float64, m*stride)
		for i := range m {
			for j := range i {
				w[i*stride+j] = 1 / float64(1+i*i+3*j)
				if i >= 3 && j < 3 {
					w[i*stride+j] *= weak
				}
			}
		}
		r := []float64{1, -0.5, 0.25, -0.125, 0.375, -1}
		want := exactSolution(w, stride, r)
		d, floor := make([]float64, m), make([]float64, m)
		f := slices.Clone(w)
		FactorLaplacian(f, d, floor, make([]float64, LaplacianRoom(m)), nil)
		got := append(make([]float64, 0, stride), r...)
		SolveLaplacian(f, d, got)
		NearAll(t, got, want, 1e-14*LargestOf(want), "coupling %g: λ", weak)
	}
}

// TestPanels asks the elimination by panels for the bits of that by single vertices, with NaN where nothing
// may be read from, floors above some pivots, and sizes that leave every rest of groups and panels.
func TestPanels(t *testing.T) {
	for m := panelled; m < panelled+2*panel; m += 3 {
		r := random.Split(12, m)
		stride := LaplacianStride(m)
		w, floor := make([]float64, m*stride), make([]float64, m)
		for i := range w {
			w[i] = math.NaN()
		}
		for i := range m {
			floor[i] = 1e-15
			if r.Float64() < 0.1 {
				floor[i] = float64(m)
			}
			for j := range i {
				w[i*stride+j] = math.Ldexp(r.Float64(), -int(60*r.Float64()))
			}
		}
		want, wants := slices.Clone(w), make([]float64, m)
		factor_g(want, wants, floor, make([]float64, Pad(m)), stride)
		d, work := make([]float64, m), make([]float64, LaplacianRoom(m))
		for i := range work {
			work[i] = math.NaN()
		}
		FactorLaplacian(w, d, floor, work, nil)
		Same(t, d, wants, "m = %d: pivots", m)
		for i := range m {
			Same(t, w[i*stride:][:i], want[i*stride:][:i], "m = %d: row %d of the factor", m, i)
		}
	}
}
