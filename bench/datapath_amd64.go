//go:build !purego

package bench

// These loops measure how much a processor computes in a cycle with registers of 512 bits and of 256 bits.
// Each makes n turns of twelve instructions; the assembly says which. All but chain need AVX-512, those of
// 256 bits with its extension VL.

//go:noescape
func chain(n int)

//go:noescape
func pairs512(n int)

//go:noescape
func pairs256(n int)

//go:noescape
func fused512(n int)

//go:noescape
func fused256(n int)

//go:noescape
func divisions512(n int)

//go:noescape
func divisions256(n int)
