//go:build goexperiment.simd && amd64 && go1.27

package kernel

// A loop of low-rank products for four rows of U in the instructions of AVX2, as package simd/archsimd of
// Go has them, with the bits and beside the time of the assembly. Until that package is stable nothing is
// made of it but this test; .ci/night next runs it.

import (
	"math"
	"simd/archsimd"
	"slices"
	"testing"
	"unsafe"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func load(x *[4]float64) archsimd.Float64x4 { return archsimd.LoadFloat64x4Array(x) }

// at returns four numbers of x from index i on, unchecked: with slices the loops took two to five times as
// long.
func at(x []float64, i int) *[4]float64 {
	return (*[4]float64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(x)), 8*i))
}

// accumulate4Simd clears the upper halves of registers at its end: what follows would wait for them.
func accumulate4Simd(acc, u, r []float64) {
	k, np := len(u)/4, len(r)/4
	for c := range k {
		u0, u1 := archsimd.BroadcastFloat64x4(u[c]), archsimd.BroadcastFloat64x4(u[k+c])
		u2, u3 := archsimd.BroadcastFloat64x4(u[2*k+c]), archsimd.BroadcastFloat64x4(u[3*k+c])
		for j := 0; j < np; j += 4 {
			a := at(acc, c*np+j)
			s := load(a).Add(u0.Mul(load(at(r, j)))).Add(u1.Mul(load(at(r, np+j))))
			s.Add(u2.Mul(load(at(r, 2*np+j)))).Add(u3.Mul(load(at(r, 3*np+j)))).StoreArray(a)
		}
	}
	archsimd.ClearAVXUpperBits()
}

// numbersOf are numbers of all signs and many sizes: sums of k rows, U of four rows, and those rows.
func numbersOf(k, np int) (acc, u, rows []float64) {
	r := random.Split(uint64(k), np)
	any := func(n int) (of []float64) {
		for range n {
			of = append(of, math.Exp(9*r.Float64())*(r.Float64()-0.5))
		}
		return of
	}
	return any(k * np), any(4 * k), any(4 * np)
}

// TestArchsimd: the loop of package simd/archsimd has the bits of that in Go.
func TestArchsimd(t *testing.T) {
	if !archsimd.X86.AVX2() {
		t.Skip("no AVX2")
	}
	for k := range 12 {
		for np := Lanes; np <= 5*Lanes; np += Lanes {
			got, u, rows := numbersOf(k, np)
			want := slices.Clone(got)
			accumulate4Simd(got, u, rows)
			accumulate4_g(want, u, rows)
			Same(t, got, want, "%d × %d", k, np)
		}
	}
}

func BenchmarkArchsimd(b *testing.B) {
	acc, u, rows := numbersOf(20, 152)
	for name, f := range map[string]func(x, y, z []float64){"archsimd": accumulate4Simd,
		"assembly": accumulate4} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f(acc, u, rows)
			}
		})
	}
}
