//go:build !purego

package bench

// These functions measure the price of equal bits. They compute the part of a multiplicative update
// of an NMF that adds up the sums for V over one row of X, acc_c += u_c x/(Σ_c u_c V_c): one with products
// that are rounded before they are added, as in the package, and one with fused products. v and acc are
// k rows of len(x) numbers, len(x) is a multiple of 64. Both need AVX-512.

//go:noescape
func updateRounded(acc, v, x, u []float64)

//go:noescape
func updateFused(acc, v, x, u []float64)
