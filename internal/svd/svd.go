// Package svd holds the singular value decomposition of a matrix in memory, by Jacobi
// rotations (svd.go), and the first singular vectors of a matrix that is read row by row
// (subspace.go).
package svd

// This file holds the decomposition of a matrix in memory.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// Decomposition is the workspace and the result for a matrix A of r
// rows and c <= r columns, A = Σ_h S_h Left_h Right_hᵀ with S falling. Vectors
// are rows of padded numbers, one after another.
//
// A = QR by Householder reflectors with column pivoting, then one-sided Jacobi
// on the rows of R (Drmač and Veselić 2008): rotations of pairs of rows until
// all are orthogonal give JᵀR = diag(S) Right, and Left = QJ. The pivoting
// leaves R graded, so that Jacobi takes only 5 to 7 sweeps. Small
// singular values are as exact relative to themselves as R determines them,
// and vectors are orthogonal whatever the gaps.
//
// Cost: 3rc² flops for QR, 7c³ a sweep, 4rc² for all of Left.
type Decomposition struct {
	r, c, rp, cp int
	S            []float64   // c
	Right        []float64   // c × Pad(c); a row of zeros where S is zero
	Stop         func() bool // asked before each column whether to end; nil: never
	left         []float64   // c × Pad(r)
	a            []float64   // c × Pad(r): the columns of A, then the reflectors
	x, j         []float64   // c × Pad(c): the rows of R and of Jᵀ
	tau, norm    []float64
	perm         []int
}

func (s *Decomposition) stopped() bool { return s.Stop != nil && s.Stop() }

// New returns a workspace for matrices of r rows and c columns, r >= c >= 1.
func New(a *pool.Arena, r, c int) *Decomposition {
	rp, cp := kernel.Pad(r), kernel.Pad(c)
	return &Decomposition{r: r, c: c, rp: rp, cp: cp, S: a.Floats(c), Right: a.Floats(c, cp),
		left: a.Floats(c, rp), a: a.Floats(c, rp), x: a.Floats(c, cp), j: a.Floats(c, cp),
		tau: a.Floats(c), norm: a.Floats(c), perm: pool.Make[int](a, c)}
}

// Column returns column h of A, to be filled before [Decomposition.Factor], which
// overwrites it.
func (s *Decomposition) Column(h int) []float64 { return s.a[h*s.rp : h*s.rp+s.r] }

// Factor decomposes the matrix in the columns. A must be finite. It returns false, with no
// result, where Stop returned true.
func (s *Decomposition) Factor() bool {
	for h := range s.c {
		clear(s.a[h*s.rp+s.r : (h+1)*s.rp])
	}
	// A power of two brings the largest entry to [1/2,1): no square overflows,
	// and nothing is rounded.
	top := 0.0
	for _, v := range s.a {
		top = max(top, math.Abs(v))
	}
	_, exponent := math.Frexp(top)
	for i, v := range s.a {
		s.a[i] = math.Ldexp(v, -exponent)
	}
	if !s.triangle() || !s.rotate() {
		return false
	}
	// Rows in falling order of their norms, equal ones as they stand.
	for h := range s.c {
		row := s.x[h*s.cp : (h+1)*s.cp]
		s.norm[h], s.perm[h] = math.Sqrt(dot(row, row)), h
	}
	slices.SortStableFunc(s.perm, func(a, b int) int { return cmp.Compare(s.norm[b], s.norm[a]) })
	for h, from := range s.perm {
		norm := s.norm[from]
		s.S[h] = math.Ldexp(norm, exponent)
		to := s.Right[h*s.cp : (h+1)*s.cp]
		clear(to)
		for i, v := range s.x[from*s.cp : (from+1)*s.cp] {
			if norm > 0 {
				to[i] = v / norm
			}
		}
	}
	return true
}

// leastSquare is the squared norm below which what is left of a column counts as 0. The largest entry
// of A is in [1/2,1) here; below this the τ of a reflector would overflow.
const leastSquare = 1e-290

// triangle makes A = QR: R goes to x with its columns in the order of A's, the
// reflectors I - τvvᵀ stay in a, each zero above its diagonal.
func (s *Decomposition) triangle() bool {
	clear(s.x)
	for h := range s.c {
		col := s.a[h*s.rp : (h+1)*s.rp]
		s.norm[h] = dot(col, col) // of what is left of the column, squared
		s.perm[h] = h
	}
	for h := range s.c {
		if s.stopped() {
			return false
		}
		pivot := h
		for q := h + 1; q < s.c; q++ {
			if s.norm[q] > s.norm[pivot] {
				pivot = q
			}
		}
		v := s.a[h*s.rp : (h+1)*s.rp]
		if pivot != h {
			for q := range h {
				row := s.x[q*s.cp:]
				row[h], row[pivot] = row[pivot], row[h]
			}
			w := s.a[pivot*s.rp : (pivot+1)*s.rp]
			for i, t := range v {
				v[i], w[i] = w[i], t
			}
			s.perm[h], s.perm[pivot] = s.perm[pivot], s.perm[h]
			s.norm[h], s.norm[pivot] = s.norm[pivot], s.norm[h]
		}
		from := h &^ (kernel.Lanes - 1)
		v = v[from:]
		row := s.x[h*s.cp : (h+1)*s.cp]
		norm := math.Sqrt(s.norm[h])
		if s.norm[h] < leastSquare {
			norm = 0
		}
		first := v[h-from]
		s.tau[h] = 0
		if norm > 0 {
			s.tau[h] = 1 / float64(norm*(norm+math.Abs(first)))
			row[h] = -math.Copysign(norm, first)
			v[h-from] = first - row[h]
		}
		for q := h + 1; q < s.c; q++ {
			w := s.a[q*s.rp+from : (q+1)*s.rp]
			if norm > 0 {
				axpy(w, v, -float64(s.tau[h]*dot(v, w)))
			}
			row[q] = w[h-from]
			w[h-from] = 0
			s.norm[q] = dot(w, w)
		}
	}
	// Columns back in their places; norm is free to hold a row.
	for h := range s.c {
		row := s.x[h*s.cp : h*s.cp+s.c]
		copy(s.norm, row)
		for q, at := range s.perm {
			row[at] = s.norm[q]
		}
	}
	return true
}

// sweeps bounds the sweeps of Jacobi. It converges quadratically, in fewer than
// ten; what is left after thirty would be rounding.
const sweeps = 30

// rotate makes the rows of x orthogonal; j holds the rotations.
func (s *Decomposition) rotate() bool {
	clear(s.j)
	for h := range s.c {
		s.j[h*s.cp+h] = 1
	}
	least := 0x1p-52 * math.Sqrt(float64(s.c)) // the cosine that rounding leaves
	for range sweeps {
		done := true
		for h := range s.c {
			row := s.x[h*s.cp : (h+1)*s.cp]
			s.norm[h] = dot(row, row)
		}
		for p := range s.c {
			if s.stopped() {
				return false
			}
			xp, jp := s.x[p*s.cp:(p+1)*s.cp], s.j[p*s.cp:(p+1)*s.cp]
			for q := p + 1; q < s.c; q++ {
				xq, jq := s.x[q*s.cp:(q+1)*s.cp], s.j[q*s.cp:(q+1)*s.cp]
				g := dot(xp, xq)
				a, b := s.norm[p], s.norm[q]
				// Roots apart: the product of two squares may underflow.
				if math.Abs(g) <= float64(least*float64(math.Sqrt(a)*math.Sqrt(b))) {
					continue
				}
				done = false
				cos, sin, t := angle(a, b, g)
				kernel.Rotate(xp, xq, cos, sin)
				kernel.Rotate(jp, jq, cos, sin)
				move := float64(t * g)
				s.norm[p], s.norm[q] = a-move, b+move
				// Where most of a norm went, its difference has lost digits.
				if s.norm[p] < a/8 {
					s.norm[p] = dot(xp, xp)
				}
				if s.norm[q] < b/8 {
					s.norm[q] = dot(xq, xq)
				}
			}
		}
		if done {
			break
		}
	}
	return true
}

// Left fills and returns the left vector h, Pad(r) numbers. Calls for different
// h may overlap.
func (s *Decomposition) Left(h int) []float64 {
	row := s.left[h*s.rp : (h+1)*s.rp]
	clear(row)
	copy(row[:s.c], s.j[s.perm[h]*s.cp:])
	for q := s.c - 1; q >= 0; q-- {
		if s.tau[q] != 0 {
			from := q &^ (kernel.Lanes - 1)
			v, w := s.a[q*s.rp+from:(q+1)*s.rp], row[from:]
			axpy(w, v, -float64(s.tau[q]*dot(v, w)))
		}
	}
	return row
}

// Lefts returns the c left vectors, as far as they have been filled.
func (s *Decomposition) Lefts() []float64 { return s.left }

// dot returns Σ a_i b_i over whole blocks, at least one.
func dot(a, b []float64) float64 {
	var g [1]float64
	kernel.Dots(g[:], a, b)
	return g[0]
}

// axpy adds f x to y, of whole blocks.
func axpy(y, x []float64, f float64) {
	by := [1]float64{f}
	kernel.Accumulate(y, by[:], x)
}

// angle returns cosine, sine and tangent of the angle by which Jacobi's method turns a pair of squares a and
// b and product g, not 0: that product is then 0, and the squares are a - g tan and b + g tan.
func angle(a, b, g float64) (cos, sin, tan float64) {
	z := (b - a) / (2 * g)
	tan = 1 / (math.Abs(z) + math.Sqrt(1+float64(z*z)))
	if z < 0 {
		tan = -tan
	}
	cos = 1 / math.Sqrt(1+float64(tan*tan))
	return cos, float64(cos * tan), tan
}

// Sign is that of the entry of v that is largest in magnitude, the first of several; 1 where all are 0.
func Sign(v []float64) float64 {
	top := 0.0
	for _, x := range v {
		if math.Abs(x) > math.Abs(top) {
			top = x
		}
	}
	return math.Copysign(1, top)
}
