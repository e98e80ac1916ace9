package pool

// This file holds the memory of a fit. An arena gives it out and counts it. A dry one only counts: what is
// said of the memory of a fit that is not made is what its own constructors ask for.

import (
	"math"
	"unsafe"
)

// Arena is where slices come from. A nil Arena makes them and counts nothing.
type Arena struct {
	outer     *Arena
	dry       bool
	now, most float64 // bytes in use, and the most that were; they may be more than any memory has
}

// DryArena returns an arena that makes no slice: [Make] returns nil.
func DryArena() *Arena { return &Arena{dry: true} }

// NewArena returns an arena that makes slices.
func NewArena() *Arena { return new(Arena) }

// Dry tells whether a makes no slices.
func (a *Arena) Dry() bool { return a != nil && a.dry }

// Most returns the largest number of bytes that were in use at once.
func (a *Arena) Most() float64 { return a.most }

// Part returns an arena within a, for slices that are given up together, by Release.
func (a *Arena) Part() *Arena {
	if a == nil {
		return nil
	}
	return &Arena{outer: a, dry: a.dry}
}

// Release takes what a part has given out off the count. The caller drops the slices.
func (a *Arena) Release() {
	if a != nil {
		a.Count(-a.now)
	}
}

// Count counts bytes that were not made here.
func (a *Arena) Count(bytes float64) {
	for ; a != nil; a = a.outer {
		a.now += bytes
		a.most = max(a.most, a.now)
	}
}

// Make returns a slice of the product of some sizes, all 0, or nil where a is dry.
func Make[T any](a *Arena, sizes ...int) []T {
	if a == nil {
		return make([]T, product(sizes))
	}
	var one T
	bytes := float64(unsafe.Sizeof(one))
	for _, n := range sizes {
		bytes = float64(bytes * float64(n))
	}
	a.Count(rounded(bytes))
	if a.dry {
		return nil
	}
	return make([]T, product(sizes))
}

// Floats is Make of numbers.
func (a *Arena) Floats(sizes ...int) []float64 { return Make[float64](a, sizes...) }

// Again returns k numbers in the room of v, which is made anew where it is too small.
func Again[T any](a *Arena, v []T, k int) []T {
	if cap(v) >= k {
		return v[:k]
	}
	return Make[T](a, k)
}

// rounded is the size that an allocation of so many bytes takes: whole pages where it is large, and else the
// next of some sizes, which are at most an eighth apart.
func rounded(bytes float64) float64 {
	const page, small = 8192, 4 * 8192
	if bytes > small {
		return float64(math.Ceil(bytes/page) * page)
	}
	return float64(bytes * 1.125) // no division, which the compiler would fuse with a sum
}

// Beyond is as good as any larger size of a matrix that is not made: its products with some thousands are
// ints.
const Beyond = 1 << (24 + 16*(^uint(0)>>63))

// BeyondSquare is the same of the size of a square matrix.
const BeyondSquare = 1 << (13 + 15*(^uint(0)>>63))

// Idle returns a pool whose workers do nothing, and whose memory is a dry arena: it is for constructors, as
// New(want, most) would be.
func Idle(want, most int) *Pool { return &Pool{workers: Count(want, most), Memory: DryArena()} }

// Part begins a part of the memory, from which what works on the pool takes its own until done releases it.
func (p *Pool) Part() (done func()) {
	whole := p.Memory
	p.Memory = whole.Part()
	return func() {
		p.Memory.Release()
		p.Memory = whole
	}
}

func product(sizes []int) int {
	p := 1
	for _, n := range sizes {
		p *= n
	}
	return p
}
