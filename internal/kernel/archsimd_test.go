//go:build goexperiment.simd && amd64 && go1.27

package kernel

// The loops of low-rank products for four rows of U in the instructions of AVX2, as package simd/archsimd of
// Go has them, with the bits and beside the time of the assembly. Until that package is stable nothing is
// made of them but this test; .ci/night next runs it.

import (
	"fmt"
	"math"
	"simd/archsimd"
	"testing"
	"unsafe"

	"github.com/quantmf/quantmf/internal/random"
)

func load(x *[4]float64) archsimd.Float64x4 { return archsimd.LoadFloat64x4Array(x) }

// at returns four numbers of x from index i on, unchecked: with slices the loops took two to five times as
// long.
func at(x []float64, i int) *[4]float64 {
	return (*[4]float64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(x)), 8*i))
}

// The upper halves of registers are cleared before numbers are added one by one: that would wait for them.
func dots4Simd(g, v, r []float64) {
	k, np := len(g)/4, len(r)/4
	for c := range k {
		var l0, h0, l1, h1, l2, h2, l3, h3 archsimd.Float64x4
		for j := 0; j < np; j += Lanes {
			low, high := load(at(v, c*np+j)), load(at(v, c*np+j+4))
			l0, h0 = l0.Add(low.Mul(load(at(r, j)))), h0.Add(high.Mul(load(at(r, j+4))))
			l1, h1 = l1.Add(low.Mul(load(at(r, np+j)))), h1.Add(high.Mul(load(at(r, np+j+4))))
			l2, h2 = l2.Add(low.Mul(load(at(r, 2*np+j)))), h2.Add(high.Mul(load(at(r, 2*np+j+4))))
			l3, h3 = l3.Add(low.Mul(load(at(r, 3*np+j)))), h3.Add(high.Mul(load(at(r, 3*np+j+4))))
		}
		var s [16]float64
		l0.Add(h0).Store(s[:])
		l1.Add(h1).Store(s[4:])
		l2.Add(h2).Store(s[8:])
		l3.Add(h3).Store(s[12:])
		archsimd.ClearAVXUpperBits()
		for r := range 4 {
			g[r*k+c] = (s[4*r] + s[4*r+2]) + (s[4*r+1] + s[4*r+3])
		}
	}
}

func combine4Simd(w, u, v []float64) {
	k, np := len(u)/4, len(w)/4
	for j := 0; j < np; j += Lanes {
		var l0, h0, l1, h1, l2, h2, l3, h3 archsimd.Float64x4
		for c := range k {
			low, high := load(at(v, c*np+j)), load(at(v, c*np+j+4))
			by := archsimd.BroadcastFloat64x4(u[c])
			l0, h0 = l0.Add(by.Mul(low)), h0.Add(by.Mul(high))
			by = archsimd.BroadcastFloat64x4(u[k+c])
			l1, h1 = l1.Add(by.Mul(low)), h1.Add(by.Mul(high))
			by = archsimd.BroadcastFloat64x4(u[2*k+c])
			l2, h2 = l2.Add(by.Mul(low)), h2.Add(by.Mul(high))
			by = archsimd.BroadcastFloat64x4(u[3*k+c])
			l3, h3 = l3.Add(by.Mul(low)), h3.Add(by.Mul(high))
		}
		l0.StoreArray(at(w, j))
		h0.StoreArray(at(w, j+4))
		l1.StoreArray(at(w, np+j))
		h1.StoreArray(at(w, np+j+4))
		l2.StoreArray(at(w, 2*np+j))
		h2.StoreArray(at(w, 2*np+j+4))
		l3.StoreArray(at(w, 3*np+j))
		h3.StoreArray(at(w, 3*np+j+4))
	}
	archsimd.ClearAVXUpperBits()
}

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

// The arguments of each are what it fills, then what it reads.
var simd = []struct {
	name               string
	simd, kernel, loop func(a, b, c []float64)
	sizes              func(k, np int) [3]int
}{
	{"dots4", dots4Simd, dots4, dots4_g, func(k, np int) [3]int { return [3]int{4 * k, k * np, 4 * np} }},
	{"combine4", combine4Simd, combine4, combine4_g,
		func(k, np int) [3]int { return [3]int{4 * np, 4 * k, k * np} }},
	{"accumulate4", accumulate4Simd, accumulate4, accumulate4_g,
		func(k, np int) [3]int { return [3]int{k * np, 4 * k, 4 * np} }},
}

// numbersOf are numbers of all signs and many sizes.
func numbersOf(sizes [3]int) (of [3][]float64) {
	r := random.Split(uint64(sizes[0]), sizes[1])
	for i, n := range sizes {
		for range n {
			of[i] = append(of[i], math.Exp(9*r.Float64())*(r.Float64()-0.5))
		}
	}
	return of
}

// TestArchsimd: the loops of package simd/archsimd have the bits of those in Go.
func TestArchsimd(t *testing.T) {
	if !archsimd.X86.AVX2() {
		t.Skip("no AVX2")
	}
	for _, s := range simd {
		for k := range 12 {
			for np := Lanes; np <= 5*Lanes; np += Lanes {
				got, want := numbersOf(s.sizes(k, np)), numbersOf(s.sizes(k, np))
				s.simd(got[0], got[1], got[2])
				s.loop(want[0], want[1], want[2])
				for i, x := range want[0] {
					if math.Float64bits(got[0][i]) != math.Float64bits(x) {
						t.Fatalf("%s of %d × %d: number %d is %v, want %v", s.name, k, np, i, got[0][i], x)
					}
				}
			}
		}
	}
}

func BenchmarkArchsimd(b *testing.B) {
	for _, s := range simd {
		of := numbersOf(s.sizes(20, 152))
		for i, f := range []func(x, y, z []float64){s.simd, s.kernel} {
			b.Run(fmt.Sprint(s.name, "/", []string{"archsimd", "assembly"}[i]), func(b *testing.B) {
				for b.Loop() {
					f(of[0], of[1], of[2])
				}
			})
		}
	}
}
