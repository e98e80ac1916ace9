package projection

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestTruncatedSVD(t *testing.T) {
	one := Workers(t, 1)
	// set makes y = Σ s_c a_c b_cᵀ of orthonormal a, b: cosines.
	set := func(p *problem, s []float64) {
		cosine := func(n, c, i int) float64 {
			v := math.Cos(math.Pi * (float64(i) + 0.5) * float64(c) / float64(n))
			if c == 0 {
				return v / math.Sqrt(float64(n))
			}
			return v * math.Sqrt(2/float64(n))
		}
		clear(p.y)
		for c, v := range s {
			for i := range p.d {
				for j := range p.n {
					p.y[i*p.np+j] += v * cosine(p.d, c, i) * cosine(p.n, c, j)
				}
			}
		}
	}
	for _, size := range [][3]int{{12, 7, 3}, {7, 12, 3}, {9, 9, 9}, {4, 6, 9}, {1, 5, 1}, {5, 1, 1},
		{6, 4, 4}} {
		p := newProblem(size[0], size[1], size[2])
		rank := min(p.d, p.n)
		s := make([]float64, rank)
		for c := range s {
			s[c] = 10 / float64(1+c)
		}
		set(p, s)
		by := p.projector(truncation, one)
		g := p.gradient(t, by)
		f := by.Result()
		row := func(c int) []float64 { return f.V[c*p.np : c*p.np+p.n] }
		for c := range p.k {
			norm := 0.0
			for i := range p.d {
				norm += f.U[i*p.k+c] * f.U[i*p.k+c]
			}
			want := 0.0
			if c < rank {
				want = s[c]
			}
			Near(t, math.Sqrt(norm), want, 1e-13*s[0], "%v: component %d of length", size, c)
			if hi, lo := slices.Max(row(c)), slices.Min(row(c)); hi < -lo {
				t.Errorf("%v: component %d has entries from %v to %v", size, c, lo, hi)
			}
			for e := range p.k {
				sum, want := 0.0, 0.0
				for j, v := range row(c) {
					sum += v * row(e)[j]
				}
				if c == e && c < rank {
					want = 1
				}
				Near(t, sum, want, 1e-13, "%v: v_%d·v_%d", size, c, e)
			}
		}
		if p.k < rank {
			set(p, s[:p.k])
		}
		w := make([]float64, p.np)
		for i := range p.d {
			p.row(w, f, i)
			NearAll(t, w, p.y[i*p.np:(i+1)*p.np], 1e-13*s[0], "truncation")
		}
		if p.k >= rank {
			NearAll(t, g, p.wbar, 0, "the gradient of the identity")
		}
	}
	// Equal singular values at the cut, all-zero data, and a rank below k.
	for name, s := range map[string][]float64{
		"equal": {5, 4, 3, 3, 1}, "nearly": {5, 4, 3, 3 - 1e-11, 1}, "below": {5, 4, 0, 0}, "zero": {},
	} {
		p := newProblem(8, 11, 3)
		set(p, s)
		err := p.projector(truncation, one).Forward(p.y, Factors{})
		var equal *EqualError
		if !errors.As(err, &equal) || equal.K != 3 ||
			!strings.Contains(err.Error(), "singular values 3 and 4") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string][]float64{"a small gap": {5, 4, 3, 3 - 1e-6, 1},
		"a small value": {5, 4, 1e-9}, "rank k": {5, 4, 3}} {
		p := newProblem(8, 11, 3)
		set(p, s)
		g := p.gradient(t, p.projector(truncation, one))
		if i := notFinite(g); i >= 0 {
			t.Errorf("%s: gradient %v", name, g[i])
		}
	}
}

// TestTruncatedSVDSmall: of entries of one magnitude the first is positive, and singular values that only
// rounding sets apart are equal, at the scale of the longer side.
func TestTruncatedSVDSmall(t *testing.T) {
	one := Workers(t, 1)
	p := newProblem(2, 2, 1)
	clear(p.y)
	p.y[0], p.y[1] = -3, 3
	by := p.projector(truncation, one)
	if err := by.Forward(p.y, Factors{}); err != nil || by.Result().V[0] <= 0 || by.Result().U[0] >= 0 {
		t.Error(by.Result(), err)
	}
	for n, equal := range map[int]bool{3: false, 300: true} {
		p := newProblem(3, n, 2)
		clear(p.y)
		p.y[0], p.y[p.np+1] = 1, 1e-14
		if err := p.projector(truncation, one).Forward(p.y, Factors{}); (err != nil) != equal {
			t.Errorf("%d samples: %v", n, err)
		}
	}
}

// TestWeighted: the decomposition by weights of columns is that of the columns times their roots, divided by
// them.
func TestWeighted(t *testing.T) {
	one := Workers(t, 1)
	p := newProblem(5, 6, 2)
	roots := []float64{2, 1, 4, 0, 1, 2}
	weights := make([]float64, len(roots))
	for j, r := range roots {
		weights[j] = 3 * r * r
	}
	by, plain := NewWeighted(p.size(), weights, one), p.projector(truncation, one)
	OK(t, by.Forward(p.y, Factors{}))
	for i := range p.y {
		p.y[i] *= append(roots, make([]float64, p.np)...)[i%p.np] / 4
	}
	OK(t, plain.Forward(p.y, Factors{}))
	NearAll(t, by.Result().U, plain.Result().U, 1e-15, "U")
	for c := range p.k {
		for j, r := range roots {
			want := 0.0
			if r > 0 {
				want = plain.Result().V[c*p.np+j] * 4 / r
			}
			Near(t, by.Result().V[c*p.np+j], want, 1e-15, "V[%d][%d]", c, j)
		}
	}
}

// TestTruncatedSVDWide: the gradient where singular values fall by powers of
// ten, against differences along directions of the matching size.
func TestTruncatedSVDWide(t *testing.T) {
	one := Workers(t, 1)
	p := newProblem(14, 9, 4)
	by := p.projector(truncation, one).(*truncated)
	p.value(t, by)
	// The same vectors, s_c = 10^-c.
	for i := range p.d {
		for j := range p.n {
			sum := 0.0
			for c := range p.n {
				sum += math.Pow(10, -float64(c)) * by.vectors.u(c)[i] * by.vectors.v(c)[j]
			}
			p.y[i*p.np+j] = sum
		}
	}
	y := slices.Clone(p.y)
	g := p.gradient(t, by)
	for _, at := range [][2]int{{3, 5}, {5, 3}, {2, 4}, {0, 8}, {3, 3}, {1, 2}, {6, 6}} {
		u, v := slices.Clone(by.vectors.u(at[0])), slices.Clone(by.vectors.v(at[1]))
		h := 0.0
		along := func() float64 {
			for i := range p.d {
				for j := range p.n {
					p.y[i*p.np+j] = y[i*p.np+j] + float64(h*u[i]*v[j])
				}
			}
			return p.value(t, by)
		}
		want, got := Derivative(&h, 1e-7, along), 0.0
		for i := range p.d {
			for j := range p.n {
				got += g[i*p.np+j] * u[i] * v[j]
			}
		}
		Near(t, got, want, 1e-7, "along u_%d v_%dᵀ: derivative", at[0], at[1])
		along()
	}
}
