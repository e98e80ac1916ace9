//go:build !purego

package bench

// The price of the same bits: the half of a multiplicative update of an NMF that
// prepares V's, acc_c += u_c x/(Σ_c u_c V_c), of one row of samples, once with
// products rounded before they are added, as the package has it, and once fused.
// v and acc are k rows of len(x) numbers, len(x) a multiple of 64. They need AVX-512.

//go:noescape
func updateRounded(acc, v, x, u []float64)

//go:noescape
func updateFused(acc, v, x, u []float64)
