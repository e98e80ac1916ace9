package bqmf

// This file holds small dense matrices: inverse, Cholesky factor, eigenvectors.
// They are K × Pad(K), row by row, the padding 0. And products of vectors.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

func squareOf(t float64) float64 { return float64(t * t) }

// dot returns the sum of products of a few numbers, one after another.
func dot(v, w []float64) (sum float64) {
	for c, t := range v {
		sum += float64(t * w[c])
	}
	return sum
}

// product returns that of whole blocks, block by block.
func product(v, w []float64) float64 {
	var sum [1]float64
	kernel.Dots(sum[:], v, w)
	return sum[0]
}

// least is what a pivot is not let fall below, relative to the diagonal.
const least = 1e-14

// system is K equations A z = b, A symmetric and positive: the lower triangle of A, bordered by b as its last
// row. Sweeps take it to -A⁻¹ and z = A⁻¹b. What lies above the diagonal is anything.
type system struct {
	k, kp int
	a     []float64 // (K+1) × kp, kp = Pad(K+1)
	lines []float64 // 4 × kp: the rows of fewer than four pivots
}

func newSystem(a *pool.Arena, k int) system {
	kp := kernel.Pad(k + 1)
	return system{k: k, kp: kp, a: a.Floats(k+1, kp), lines: a.Floats(4, kp)}
}

// load fills A with a packed matrix times scale.
func (s *system) load(b []float64, scale float64) {
	kernel.Unpack(s.a, b, s.k, s.kp, scale/root2)
	for c := range s.k {
		s.a[c*s.kp+c] = diagonal(b, c) * scale
	}
}

// border returns the last row: b to be filled in, z after solve.
func (s *system) border() []float64 { return s.a[s.k*s.kp:][:s.k] }

// solve sweeps A, four pivots P at a time, and returns the logarithm of its determinant. With D = A_PP⁻¹ a
// sweep puts
//
//	A_RR - A_RP D A_PR,  A_RP D,  -D
//
// in place of A_RR, A_RP and A_PP. A positive matrix needs no exchange of rows. A sweep keeps the matrix
// symmetric, so the lower triangle is enough, and treats the border as it treats any row. What the rows of
// the pivots have above the diagonal is room: there A_PR is made whole. kernel.Sweep then makes all rows of
// these four and of -D. In columns P these four are set to -I first, and the rows after them to 0, so that
// A_RP D is added there and -D is what becomes of the four.
func (s *system) solve() (logDet float64) {
	k, kp, a := s.k, s.kp, s.a
	rows := k + 1
	det, power := 1.0, 0 // determinant = det 2^power
	var d [4][4]float64
	for p := 0; p < k; p += 4 {
		b := min(4, k-p)
		lines := a[p*kp:]
		if b < 4 { // the border follows: rows that are 0 take the place of pivots
			lines = s.lines
			clear(lines[copy(lines[:b*kp], a[p*kp:]):])
		}
		lines = lines[:4*kp]
		l0, l1, l2, l3 := lines[:rows], lines[kp:][:rows], lines[2*kp:][:rows], lines[3*kp:][:rows]
		for r := range b {
			row := (*[4]float64)(lines[r*kp+p:])
			for c := range r + 1 {
				d[r][c], d[c][r] = row[c], row[c]
			}
		}
		for r := b; r < 4; r++ {
			d[r] = [4]float64{}
			d[0][r], d[1][r], d[2][r] = 0, 0, 0
			d[r][r] = 1
		}
		m, e := math.Frexp(float64(det * invertSmall(&d)))
		det = m
		power += e
		minus := [16]float64{
			-d[0][0], -d[0][1], -d[0][2], -d[0][3],
			-d[1][0], -d[1][1], -d[1][2], -d[1][3],
			-d[2][0], -d[2][1], -d[2][2], -d[2][3],
			-d[3][0], -d[3][1], -d[3][2], -d[3][3],
		}
		for r := range b {
			row := (*[4]float64)(lines[r*kp+p:])
			*row = [4]float64{}
			row[r] = -1
		}
		if b == 4 {
			for c := p + 4; c < rows; c++ {
				col := (*[4]float64)(a[c*kp+p:])
				l0[c], l1[c], l2[c], l3[c] = col[0], col[1], col[2], col[3]
				*col = [4]float64{}
			}
		} else { // the border alone is left
			for r := range b {
				lines[r*kp+k] = a[k*kp+p+r]
				a[k*kp+p+r] = 0
			}
		}
		kernel.Sweep(a, lines, minus[:], p, p+b, rows)
		if b < 4 {
			copy(a[p*kp:], lines[:b*kp])
		}
	}
	return elem.Log(det) + float64(float64(power)*math.Ln2)
}

// pack fills b with zzᵀ + A⁻¹ after solve.
func (s *system) pack(b []float64) {
	z := s.a[s.k*s.kp:]
	kernel.PackOuter(b, s.a, z, s.k, s.kp, root2)
	for c, x := range z[:s.k] {
		b[c*(c+1)/2+c] = float64(x*x) - s.a[c*s.kp+c]
	}
}

// invertSmall replaces d by its inverse and returns its determinant.
func invertSmall(d *[4][4]float64) float64 {
	det := 1.0
	for p := range 4 {
		line := &d[p]
		pivot := line[p]
		if !(pivot > 1e-300) {
			pivot = 1e-300
		}
		det *= pivot
		inv := 1 / pivot
		line[0] *= inv
		line[1] *= inv
		line[2] *= inv
		line[3] *= inv
		line[p] = inv
		for r := range 4 {
			if r == p {
				continue
			}
			row := &d[r]
			t := row[p]
			row[p] = 0
			row[0] -= float64(t * line[0])
			row[1] -= float64(t * line[1])
			row[2] -= float64(t * line[2])
			row[3] -= float64(t * line[3])
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

// tight returns a without its padding.
func tight(a []float64, k, kp int) []float64 {
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
	s := svd.New(nil, k, k)
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
