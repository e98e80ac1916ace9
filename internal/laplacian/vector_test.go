//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package laplacian

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/cpu"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
)

// TestVector compares assembly with the loops in Go bit for bit; what is on and
// above the diagonal, and in the padding, is NaN, which must not get through.
func TestVector(t *testing.T) {
	defer func(l int) { level = l }(level)
	for l := cpu.Portable + 1; l <= cpu.Level; l++ {
		for m := 1; m <= 71; m++ {
			m := m
			if m == 71 { // rows that are further apart
				m = 128
			}
			r := random.Split(11, m)
			p, stride := kernel.Pad(m), Stride(m)
			w, floor, rhs := make([]float64, m*stride), make([]float64, m), make([]float64, m, p)
			for i := range w {
				w[i] = math.NaN()
			}
			for i := range m {
				for j := range i {
					w[i*stride+j] = math.Ldexp(r.Float64(), -int(60*r.Float64()))
					if r.Float64() < 0.2 {
						w[i*stride+j] = 0
					}
				}
				floor[i], rhs[i] = 1e-15, r.Float64()-0.5
			}
			for i := m; i < p; i++ {
				rhs[:p][i] = math.NaN()
			}
			run := func(l int) (f, d, x []float64) {
				level = l
				f, d, x = append([]float64{}, w...), make([]float64, m), append([]float64{}, rhs[:p]...)[:m]
				room := Room(m)
				work := make([]float64, room+2)
				work[room], work[room+1] = 3, 4
				Factor(f, d, floor, work[:room])
				Solve(f, d, x)
				if work[room] != 3 || work[room+1] != 4 {
					t.Fatal("written beyond the scratch")
				}
				return f, d, x
			}
			f0, d0, x0 := run(cpu.Portable)
			f1, d1, x1 := run(l)
			same := func(what string, a, b float64) {
				if math.Float64bits(a) != math.Float64bits(b) || a != a {
					t.Fatalf("level %d, m = %d: %s is %v, want %v", l, m, what, b, a)
				}
			}
			for i := range m {
				same("d", d0[i], d1[i])
				same("x", x0[i], x1[i])
				for j := range i {
					same("l", f0[i*stride+j], f1[i*stride+j])
				}
			}
		}
	}
}

// TestLanes asks every lane for the bits of its system alone, with poison in what
// lanes do not use and around it all.
func TestLanes(t *testing.T) {
	const n = kernel.Lanes
	defer func(l int) { level = l }(level)
	for l := cpu.Portable; l <= cpu.Level; l++ {
		for m := 1; m <= 70; m++ {
			for lanes := 1; lanes <= n; lanes++ {
				if m > 20 && (m+lanes)%5 > 0 { // a few of these are enough
					continue
				}
				r := random.Split(13, 100*m+lanes)
				p := kernel.Pad(m)
				poisoned := func(k int) (v []float64) { // with a poisoned fence
					v = make([]float64, k+16)
					for i := range v {
						v[i] = math.Float64frombits(0x7ff8dead00000000)
					}
					return v[8 : 8+k]
				}
				w, d, floor, rhs, work := poisoned(m*(m-1)/2*n), poisoned(m*n), poisoned(m*n), poisoned(m*n),
					poisoned(m*n)
				type system struct{ w, d, floor, r []float64 }
				alone := make([]system, lanes)
				for lane := range alone {
					s := system{make([]float64, m*p), make([]float64, m), make([]float64, m),
						make([]float64, m, p)}
					for k := range m {
						for j := range k {
							v := math.Ldexp(r.Float64(), -int(60*r.Float64()))
							if r.Float64() < 0.2 {
								v = 0
							}
							s.w[k*p+j], w[(k*(k-1)/2+j)*n+lane] = v, v
						}
						s.floor[k], s.r[k] = 1e-15, r.Float64()-0.5
						floor[k*n+lane], rhs[k*n+lane] = s.floor[k], s.r[k]
					}
					level = cpu.Portable
					Factor(s.w, s.d, s.floor, make([]float64, p))
					Solve(s.w, s.d, s.r)
					alone[lane] = s
				}
				level = l
				FactorLanes(w, d, floor, work, lanes)
				SolveLanes(w, d, rhs, lanes)
				same := func(what string, got, want float64) {
					if math.Float64bits(got) != math.Float64bits(want) {
						t.Fatalf("%s, m = %d, %d lanes: %s is %v, want %v", cpu.Names[l], m, lanes, what, got,
							want)
					}
				}
				for lane, s := range alone {
					for k := range m {
						same("d", d[k*n+lane], s.d[k])
						same("x", rhs[k*n+lane], s.r[k])
						for j := range k {
							same("l", w[(k*(k-1)/2+j)*n+lane], s.w[k*p+j])
						}
					}
				}
				for _, v := range [][]float64{w, d, floor, rhs, work} {
					k := len(v)
					all := v[:k+8]
					for _, beyond := range all[k:] {
						if math.Float64bits(beyond) != 0x7ff8dead00000000 {
							t.Fatalf("%s, m = %d, %d lanes: written beyond a slice", cpu.Names[l], m, lanes)
						}
					}
				}
			}
		}
	}
}

func BenchmarkSolve(b *testing.B) {
	defer func(l int) { level = l }(level)
	const m = 16
	w, floor, r := make([]float64, m*m), make([]float64, m), make([]float64, m)
	for i := range w {
		w[i] = 1 / float64(1+i%m)
	}
	f, d, work := make([]float64, m*m), make([]float64, m), make([]float64, m)
	for l := cpu.Portable; l <= cpu.Level; l++ {
		level = l
		b.Run(cpu.Names[l], func(b *testing.B) {
			for range b.N {
				copy(f, w)
				Factor(f, d, floor, work)
				r[0], r[1] = 1, -1
				Solve(f, d, r)
			}
		})
		b.Run(cpu.Names[l]+"/8abreast", func(b *testing.B) {
			const n = kernel.Lanes
			w, floor, r := make([]float64, m*(m-1)/2*n), make([]float64, m*n), make([]float64, m*n)
			for i := range w {
				w[i] = 1 / float64(1+i%m)
			}
			f, d, work := make([]float64, len(w)), make([]float64, m*n), make([]float64, m*n)
			for k := 0; k < b.N; k += n {
				copy(f, w)
				FactorLanes(f, d, floor, work, n)
				clear(r)
				r[0], r[n] = 1, -1
				SolveLanes(f, d, r, n)
			}
		})
	}
}
