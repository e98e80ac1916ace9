package svd

// This file holds non-negative factors from singular vectors (NNDSVD; Boutsidis
// and Gallopoulos 2008). In X ≈ Σ_c s_c u_c v_cᵀ split every vector into its
// positive and negative part. The non-negative matrix of rank one nearest to
// s u vᵀ is s u⁺v⁺ᵀ or s u⁻v⁻ᵀ, of the larger |u±||v±|, and
//
//	U_·c = √(s|u±||v±|) u±/|u±|,   V_c· = √(s|u±||v±|) v±/|v±|.
//
// Multiplicative updates never leave a zero, so no entry is left below a share of
// the mean of its column of U or row of V.

import "math"

const (
	// More is how many directions beyond k let [NewSubspace] find k vectors well enough for non-negative
	// factors.
	More  = 8
	noise = 1e-10 // singular values below this share of the first are rounding

	// Fill is the least entry, in units of the mean of its column of U or row of V.
	Fill = 0.3
)

// NonNegative fills u, d numbers, and v, n numbers, with column c of U and row c of V, and returns whether
// the rank of X is above c. Where it is not, u and v mean nothing.
func (s *Subspace) NonNegative(u, v []float64, c int) bool {
	if c >= s.L {
		return false
	}
	size := s.Vectors(u, v, c)
	if !(size > noise*s.Values()[0]) {
		return false
	}
	up, un := parts(u)
	vp, vn := parts(v)
	sign, nu, nv := 1.0, math.Sqrt(up), math.Sqrt(vp)
	if float64(un*vn) > float64(up*vp) {
		sign, nu, nv = -1, math.Sqrt(un), math.Sqrt(vn)
	}
	scale := math.Sqrt(size) * math.Sqrt(float64(nu*nv))
	for i, x := range u {
		u[i] = scale * max(sign*x/nu, 0)
	}
	for j, x := range v {
		v[j] = scale * max(sign*x/nv, 0)
	}
	fill(u)
	fill(v)
	return true
}

// parts returns the squared norms of the positive and of the negative part of v.
func parts(v []float64) (positive, negative float64) {
	for _, x := range v {
		p, n := max(x, 0), min(x, 0)
		positive += float64(p * p)
		negative += float64(n * n)
	}
	return positive, negative
}

// fill raises entries below Fill times their mean to that.
func fill(v []float64) {
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	low := Fill * mean
	for i, x := range v {
		v[i] = max(x, low)
	}
}
