// Package random is the generator behind every seed of quantmf: one 64-bit
// word of state, so that a checkpoint holds it whole.
//
// It is SplitMix64 (Steele, Lea and Flood 2014): a counter stepped by the odd
// constant nearest 2^64/φ, its value mixed by two multiplications.
package random

import "math/bits"

// Source is the generator; its value is its whole state and a seed.
type Source uint64

// Uint64 returns the next 64 bits.
func (s *Source) Uint64() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float64 returns a uniform number in [0,1), a multiple of 2^-53.
func (s *Source) Float64() float64 { return float64(float64(s.Uint64()>>11) * 0x1p-53) }

// IntN returns a uniform integer in [0,n), n > 0, with a bias below n/2^64.
func (s *Source) IntN(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// Shuffle permutes p uniformly.
func (s *Source) Shuffle(p []int) {
	for i := len(p) - 1; i > 0; i-- {
		j := s.IntN(i + 1)
		p[i], p[j] = p[j], p[i]
	}
}

// Split returns a source of its own for stream i: the state after mixing, so
// that neighbouring seeds and streams share nothing.
func Split(seed uint64, i int) Source {
	s := Source(seed)
	a := s.Uint64()
	s = Source(a ^ uint64(i)*0xd1342543de82ef95)
	return Source(s.Uint64())
}
