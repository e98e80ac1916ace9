package svd

import (
	"fmt"
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// orthonormal returns c random orthonormal vectors of length r, by Gram-Schmidt
// done twice.
func orthonormal(source *random.Source, r, c int) [][]float64 {
	q := make([][]float64, c)
	for h := range q {
		q[h] = make([]float64, r)
		for i := range q[h] {
			q[h][i] = source.Float64() - 0.5
		}
		for range 2 {
			for _, p := range q[:h] {
				s := 0.0
				for i := range p {
					s += p[i] * q[h][i]
				}
				for i := range p {
					q[h][i] -= s * p[i]
				}
			}
		}
		s := 0.0
		for _, v := range q[h] {
			s += v * v
		}
		for i := range q[h] {
			q[h][i] /= math.Sqrt(s)
		}
	}
	return q
}

// checkSVD decomposes a (columns) and holds it to reconstruction, order,
// orthonormal vectors.
func checkSVD(t *testing.T, s *Decomposition, a [][]float64) {
	t.Helper()
	for h := range a {
		copy(s.Column(h), a[h])
	}
	s.Factor()
	for h := range a {
		s.Left(h)
	}
	at := func(v []float64, n, h int) []float64 { return v[h*n : (h+1)*n] }
	top := s.S[0]
	for h := range a {
		if h > 0 && s.S[h] > s.S[h-1] {
			t.Errorf("S[%d] = %v after %v", h, s.S[h], s.S[h-1])
		}
		for i := range s.r {
			sum := 0.0
			for q, v := range s.S {
				sum += v * at(s.left, s.rp, q)[i] * at(s.Right, s.cp, q)[h]
			}
			Near(t, sum, a[h][i], 1e-14*math.Sqrt(float64(s.r))*top, "A[%d,%d]", i, h)
		}
		for q := range h + 1 {
			want := 0.0
			if q == h {
				want = 1
			}
			Near(t, dot(at(s.left, s.rp, h), at(s.left, s.rp, q)), want, 1e-13, "left vectors")
			if s.S[h] == 0 {
				want = 0
			}
			Near(t, dot(at(s.Right, s.cp, h), at(s.Right, s.cp, q)), want, 1e-13, "right vectors")
		}
	}
}

func TestSVD(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 1}, {2, 2}, {9, 8}, {30, 17}, {64, 64}, {150, 33}} {
		r, c := size[0], size[1]
		s := New(nil, r, c)
		for name, values := range map[string]func(h int) float64{
			"even":     func(h int) float64 { return float64(c - h) },
			"graded":   func(h int) float64 { return math.Pow(10, -float64(h)/2) },
			"twins":    func(h int) float64 { return 1 + float64((c-h)/2) },
			"near":     func(h int) float64 { return 1 + 1e-13*float64(c-h) },
			"rank 3":   func(h int) float64 { return float64(max(3-h, 0)) },
			"large":    func(h int) float64 { return 1e150 / float64(1+h) },
			"tiny":     func(h int) float64 { return 1e-200 / float64(1+h) },
			"all zero": func(h int) float64 { return 0 },
		} {
			t.Run(fmt.Sprint(size, name), func(t *testing.T) {
				source := random.Split(uint64(r), c)
				u, v := orthonormal(&source, r, c), orthonormal(&source, c, c)
				a := make([][]float64, c)
				for h := range a {
					a[h] = make([]float64, r)
					for q := range c {
						for i := range a[h] {
							a[h][i] += values(q) * u[q][i] * v[q][h]
						}
					}
				}
				checkSVD(t, s, a)
				for h := range c {
					got, want := s.S[h], values(h)
					Near(t, got, want, 1e-14*math.Sqrt(float64(r))*values(0), "S[%d]", h)
				}
			})
		}
	}
}

// TestPivots: of what is left of the columns the longest comes first.
func TestPivots(t *testing.T) {
	s := New(nil, 4, 4)
	for h, size := range []float64{1, 4, 3, 2} {
		s.Column(h)[h] = size
	}
	s.triangle()
	for h, want := range []int{1, 2, 3, 0} {
		Equal(t, s.perm[h], want, "pivot %d", h)
	}
}

// TestSVDTies: vectors of equal values come in the order of the columns.
func TestSVDTies(t *testing.T) {
	s := New(nil, 4, 3)
	for h := range 3 {
		s.Column(h)[h] = 2
	}
	s.Factor()
	for h := range 3 {
		if math.Abs(s.Right[h*s.cp+h]) != 1 {
			t.Errorf("vector %d is %v", h, s.Right[h*s.cp:(h+1)*s.cp])
		}
	}
}

// TestSVDSmall: a matrix with columns of very different sizes has its small
// singular values right to their own last digits.
func TestSVDSmall(t *testing.T) {
	const r, c = 40, 12
	source := random.Source(1)
	u := orthonormal(&source, r, c)
	s := New(nil, r, c)
	for h := range c {
		for i := range s.Column(h) {
			s.Column(h)[i] = u[h][i] * math.Pow(10, -float64(h*7%c)*10)
		}
	}
	s.Factor()
	for h, got := range s.S {
		want := math.Pow(10, -float64(h)*10)
		Near(t, got, want, 1e-13*want, "S[%d]", h)
	}
}

// TestStop: a decomposition asks before every column whether to end, those of each sweep
// of rotations too, and ends there.
func TestStop(t *testing.T) {
	const r, c = 40, 12
	fill := func() *Decomposition {
		s := New(nil, r, c)
		for h := range c {
			for i, col := 0, s.Column(h); i < r; i++ {
				col[i] = float64((i*i+7*h*i+h)%23) - 11
			}
		}
		return s
	}
	asked := 0
	s := fill()
	s.Stop = func() bool { asked++; return false }
	if !s.Factor() || asked < 3*c {
		t.Fatalf("asked %d times", asked)
	}
	for at := 1; at <= asked; at++ {
		s, count := fill(), 0
		s.Stop = func() bool { count++; return count == at }
		if s.Factor() || count != at {
			t.Fatalf("told to end at question %d: asked %d times", at, count)
		}
	}
}

// TestFarColumns: a column of squares that underflow beside one of ordinary numbers leaves a
// decomposition that is finite and gives the matrix back.
func TestFarColumns(t *testing.T) {
	for _, far := range []float64{1e-140, 1e-150, 1e-160, 1e-170, 1e-300} {
		rows := [4][3]float64{{1, 1, far}, {1, 2, 0}, {1, 3, 0}, {1, 5, 2 * far}}
		s := New(nil, 4, 3)
		for h := range 3 {
			for i := range rows {
				s.Column(h)[i] = rows[i][h]
			}
		}
		if !s.Factor() {
			t.Fatal("stopped")
		}
		for i := range rows {
			for c, want := range rows[i] {
				got := 0.0
				for h := range 3 {
					got += s.S[h] * s.Left(h)[i] * s.Right[h*s.cp+c]
				}
				Near(t, got, want, 1e-13, "%g: entry %d, %d", far, i, c)
			}
		}
	}
}
