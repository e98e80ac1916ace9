// This file draws the factors from which the published code of QMFQ starts all projections. That code
// draws them with TensorFlow's generator at seed 0: U, then V, uniform on [0.01, 1.01). Nothing else in
// a fit of QMFQ is random, so a fit from these factors can be compared with the published one.
package main

import "github.com/quantmf/quantmf"

// These are the seeds of the two draws, U and V. With seed 0 TensorFlow takes successive numbers of
// Python's random.Random(0).randint(0, 2³¹-1).
const publishedU, publishedV = 1654615998, 1806341205

// publishedFactors returns these factors for a d × n matrix at rank k.
func publishedFactors(d, n, k int) (u, v quantmf.Mat) {
	u, v = quantmf.NewMat(d, k), quantmf.NewMat(k, n)
	for _, m := range []struct {
		to   quantmf.Mat
		seed uint64
	}{{u, publishedU}, {v, publishedV}} {
		copy(m.to.Data, uniform(0, m.seed, len(m.to.Data)))
		for i := range m.to.Data {
			m.to.Data[i] += 0.01
		}
	}
	return u, v
}

// uniform returns n numbers on [0,1) as TensorFlow draws them in single precision. Each has 23 bits of
// a word of Philox, whose key is the seed of the program, and whose counter has the seed of the draw in its
// upper half.
func uniform(seed, draw uint64, n int) []float64 {
	var out []float64
	for block := uint64(0); len(out) < n; block++ {
		for _, word := range philox([4]uint32{uint32(block), uint32(block >> 32), uint32(draw),
			uint32(draw >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)}) {
			out = append(out, float64(word&(1<<23-1))/(1<<23))
		}
	}
	return out[:n]
}

// philox is Philox4×32 with ten rounds (Salmon, Moraes, Dror and Shaw 2011).
func philox(c [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		a, b := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ key[0], uint32(b), uint32(a>>32) ^ c[3] ^ key[1], uint32(a)}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return c
}
