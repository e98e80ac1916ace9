package quantmf

// This file holds coordinates of samples whose distances mean something. Rows of V of a BQMF have unit
// variance however weak their component is, so distances between columns of V do not. With UᵀU = L Lᵀ
//
//	|U(v_j - v_l)| = |Lᵀ(v_j - v_l)|,
//
// so Lᵀ V has the distances of the columns of UV in as many rows as components are alive.

import "math"

// Embedding returns the samples in r × n coordinates, r being the number of components that are alive:
// distances between its columns are those between columns of UV. It is what to cluster or to draw; V is not.
// The zero value, and a model whose fields have been changed, have none. Cost: (d+n)k² flops.
func (m *BQMF) Embedding() Mat {
	u, v := m.factors()
	if u.Rows == 0 {
		return Mat{}
	}
	k, trace := u.Cols, 0.0
	a := NewMat(k, k) // UᵀU, then L
	for i := range u.Rows {
		row := u.Row(i)
		for c, x := range row {
			for b := range c + 1 {
				a.Data[c*k+b] += float64(x * row[b])
			}
		}
	}
	for c := range k {
		trace += a.At(c, c)
	}
	var alive []int
	for c := range k { // a column of L each; where U depends on the columns before, it is 0
		pivot := a.At(c, c)
		for _, b := range alive {
			pivot -= float64(a.At(c, b) * a.At(c, b))
		}
		if !(pivot > 1e-14*trace) {
			continue
		}
		root := math.Sqrt(pivot)
		a.Set(c, c, root)
		for r := c + 1; r < k; r++ {
			s := a.At(r, c)
			for _, b := range alive {
				s -= float64(a.At(r, b) * a.At(c, b))
			}
			a.Set(r, c, s/root)
		}
		alive = append(alive, c)
	}
	out := NewMat(len(alive), v.Cols)
	for at, c := range alive {
		to := out.Row(at)
		for r := c; r < k; r++ {
			l := a.At(r, c)
			for j, x := range v.Row(r) {
				to[j] += float64(l * x)
			}
		}
	}
	return out
}
