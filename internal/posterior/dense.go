package posterior

// This file holds small dense matrices: inverse, Cholesky factor, eigenvectors.
// They are K × Pad(K), row by row, the padding 0.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/svd"
)

// least is what a pivot is not let fall below, relative to the diagonal.
const least = 1e-14

// invert replaces the symmetric positive matrix in a by its inverse and returns
// the logarithm of its determinant: Gauss and Jordan's elimination, four pivots at
// a time, which needs no exchange of rows where a matrix is positive.
func (s *scratch) invert(k int) (logDet float64) {
	kp := kernel.Pad(k)
	a := s.a[:k*kp]
	for p := 0; p < k; p += 4 {
		b := min(4, k-p)
		d := s.block[:b*b]
		for r := range b {
			copy(d[r*b:(r+1)*b], a[(p+r)*kp+p:])
		}
		logDet += elem.Log(invertSmall(d, b))
		// The columns of the block, by the rows: those already eliminated have turned signs.
		u := s.u[:b*k]
		for r := range b {
			row, to := a[(p+r)*kp:(p+r)*kp+k], u[r*k:(r+1)*k]
			copy(to[:p], row)
			clear(to[p : p+b])
			for c := p + b; c < k; c++ {
				to[c] = -row[c]
			}
		}
		if b == 4 {
			for c := range k {
				row := (*[4]float64)(a[c*kp+p:])
				row[0], row[1], row[2], row[3] = 0, 0, 0, 0
			}
		} else {
			for c := range k {
				clear(a[c*kp+p : c*kp+p+b])
			}
		}
		for r := range b {
			a[(p+r)*kp+p+r] = 1
		}
		rows, out := a[p*kp:(p+b)*kp], s.out[:b*kp]
		kernel.CombineRows(out, d, rows, b)
		kernel.AccumulateRows(a, u, out, b)
		copy(rows, out)
	}
	return logDet
}

// invertSmall replaces d, b × b, by its inverse and returns its determinant.
func invertSmall(d []float64, b int) float64 {
	det := 1.0
	for p := range b {
		pivot := d[p*b+p]
		if !(pivot > 1e-300) {
			pivot = 1e-300
		}
		det *= pivot
		inv := 1 / pivot
		for c := range b {
			d[p*b+c] *= inv
		}
		d[p*b+p] = inv
		for r := range b {
			if r == p {
				continue
			}
			t := d[r*b+p]
			d[r*b+p] = 0
			for c := range b {
				d[r*b+c] -= float64(t * d[p*b+c])
			}
		}
	}
	return det
}

// cholesky replaces a by its lower factor.
func cholesky(a []float64, k, kp int) {
	for r := range k {
		for c := range r + 1 {
			s := a[r*kp+c]
			for h := range c {
				s -= float64(a[r*kp+h] * a[c*kp+h])
			}
			if r == c {
				a[r*kp+r] = math.Sqrt(max(s, least*a[r*kp+r], 1e-300))
			} else {
				a[r*kp+c] = s / a[c*kp+c]
			}
		}
		clear(a[r*kp+r+1 : (r+1)*kp])
	}
}

// lowerInverse returns the inverse of a lower triangle.
func lowerInverse(low []float64, k, kp int) []float64 {
	inv := make([]float64, k*kp)
	for c := range k {
		inv[c*kp+c] = 1 / low[c*kp+c]
		for r := c + 1; r < k; r++ {
			s := 0.0
			for h := c; h < r; h++ {
				s += float64(low[r*kp+h] * inv[h*kp+c])
			}
			inv[r*kp+c] = -s / low[r*kp+r]
		}
	}
	return inv
}

func transposed(a []float64, k, kp int) []float64 {
	t := make([]float64, k*kp)
	for r := range k {
		for c := range k {
			t[c*kp+r] = a[r*kp+c]
		}
	}
	return t
}

// square returns a without its padding.
func square(a []float64, k, kp int) []float64 {
	t := make([]float64, k*k)
	for r := range k {
		copy(t[r*k:(r+1)*k], a[r*kp:])
	}
	return t
}

// eigen returns the eigenvalues of a positive symmetric k × k matrix, falling, and
// its vectors in the rows of a k × k matrix; nil for a matrix of zeros.
func eigen(a []float64, k int) (values, vectors []float64) {
	trace := 0.0
	for c := range k {
		trace += a[c*k+c]
	}
	if !(trace > 0) || trace-trace != 0 {
		return nil, nil
	}
	ridge := float64(1e-13 * trace)
	s := svd.New(k, k)
	for c := range k {
		col := s.Column(c)
		for r := range k {
			col[r] = (a[r*k+c] + a[c*k+r]) / 2
		}
		col[c] += ridge
	}
	s.Factor()
	values, vectors = make([]float64, k), make([]float64, k*k)
	for c := range k {
		values[c] = max(s.S[c]-ridge, 0)
		copy(vectors[c*k:(c+1)*k], s.Right[c*kernel.Pad(k):])
	}
	return values, vectors
}
