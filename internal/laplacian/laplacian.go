// Package laplacian solves L λ = r for the Laplacian L of a small weighted
// graph without a single subtraction in the factorisation (Grassmann, Taksar
// and Heyman 1985), so that every entry of the factor keeps a high relative
// accuracy however badly conditioned L is.
//
//	L_jk = -W_jk for j != k,  L_jj = Σ_{k!=j} W_jk,  W symmetric, W >= 0.
//
// The kernel of L is the constant vectors: r must sum to zero, and the λ that
// comes back is the one with λ_0 = 0 in the last eliminated place; any constant
// may be added. Cost: m³/6 multiply-adds for [Factor], m² for [Solve].
package laplacian

// Factor eliminates the vertices m-1, ..., 1 in turn. Of the m×m row-major w it
// reads the entries below the diagonal and replaces w_kj by w_kj/d_k; the
// pivots go to d. A pivot is never below floor[k] > 0: a vertex held by less
// is not determined in floating point, and the floor keeps the noise in its
// direction from being blown up.
func Factor(w, d, floor []float64) {
	m := len(d)
	for k := m - 1; k > 0; k-- {
		row := w[k*m : k*m+k]
		s := 0.0
		for _, v := range row {
			s += v
		}
		s = max(s, floor[k])
		d[k] = s
		for i := k - 1; i > 0; i-- {
			f := row[i] / s
			if f == 0 {
				continue
			}
			to := w[i*m : i*m+i]
			from := row[:len(to)]
			for j, v := range from {
				to[j] += float64(f * v)
			}
		}
		for j := range row {
			row[j] /= s
		}
	}
}

// Solve overwrites r, which sums to zero, with a solution, given what Factor
// left in w and d.
func Solve(w, d, r []float64) {
	m := len(d)
	for k := m - 1; k > 0; k-- {
		rk := r[k]
		for j, l := range w[k*m : k*m+k] {
			r[j] += float64(l * rk)
		}
	}
	r[0] = 0
	for k := 1; k < m; k++ {
		s := r[k] / d[k]
		for j, l := range w[k*m : k*m+k] {
			s += float64(l * r[j])
		}
		r[k] = s
	}
}
