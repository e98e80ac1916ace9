//go:build !purego

package bench

// What a processor does of 512 bits at a time, beside 256: n turns of twelve instructions, see the assembly. All but
// chain need AVX-512 (256 bits VL).

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
