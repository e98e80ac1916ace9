package quantmf

// This file tests the forward derivatives of ranks and sorted values: against differences of the whole
// operator and against the transposed ones. TestOperatorsOfRows has those of many rows.

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// forwards are the forward derivatives by the names of [operators].
var forwards = map[string]func(tr *Transport, p point, d Gradient) ([]float64, error){
	"T": func(tr *Transport, p point, d Gradient) ([]float64, error) { return tr.QuantileJVP(p.q, d) },
	"R": func(tr *Transport, _ point, d Gradient) ([]float64, error) { return tr.RankJVP(d) },
	"S": func(tr *Transport, _ point, d Gradient) ([]float64, error) { return tr.SortJVP(d) },
}

// randomDirection moves every argument of p; weights along the simplex, as they are given.
func randomDirection(p point, r *random.Source) Gradient {
	vec := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = Normal(r)
		}
		return v
	}
	n, m := len(p.x), len(p.y)
	d := Gradient{X: vec(n), A: vec(n), B: vec(m), Y: vec(m), Q: vec(m), Epsilon: Normal(r)}
	for _, w := range [][]float64{d.A, d.B} {
		mean := Mean(w)
		for i := range w {
			w[i] -= mean
		}
	}
	return d
}

// longer is 2^40 d.
func longer(d Gradient) Gradient {
	d.Epsilon *= 0x1p40
	for _, v := range []*[]float64{&d.X, &d.A, &d.B, &d.Y, &d.Q} {
		*v = slices.Clone(*v)
		for i := range *v {
			(*v)[i] *= 0x1p40
		}
	}
	return d
}

// TestForward: J d is the difference of the operator along d, in all arguments at once and in each alone, and
// <z, J d> is <Jᵀz, d>; it grows with d.
func TestForward(t *testing.T) {
	t.Parallel()
	worst := 0.0
	squashes := []Squash{SquashLogistic, SquashNone, SquashArctan, SquashLogisticUnit}
	for seed := range 20 {
		p := randomPoint(seed, seed%2 == 0, squashes[seed%4], []float64{0.3, 0.1, 0.03, 0.01}[seed/2%4])
		if seed%5 == 0 {
			p.extra = []Option{WithMidpointRanks()}
		}
		sumA, sumB := TotalOf(p.a), TotalOf(p.b)
		r := random.Split(8, seed)
		all := randomDirection(p, &r)
		for what, d := range map[string]Gradient{"all": all, "x": {X: all.X}, "a": {A: all.A},
			"b": {B: all.B}, "y": {Y: all.Y}, "ε": {Epsilon: all.Epsilon}, "q": {Q: all.Q}} {
			for _, op := range operators(t) {
				if op.name != "T" {
					d.Q = nil
				}
				got := Must(forwards[op.name](p.solve(t), p, d))(t)
				for i, v := range Must(forwards[op.name](p.solve(t), p, longer(d)))(t) {
					Near(t, v, 0x1p40*got[i], 0x1p40*1e-12*LargestOf(got),
						"seed %d, %s along 2^40 times %s: entry %d", seed, op.name, what, i)
				}
				z := make([]float64, len(got))
				for i := range z {
					z[i] = Normal(&r)
				}
				g := op.vjp(p, z)
				left, right, scale := Dot(z, got), g.Epsilon*d.Epsilon, math.Abs(g.Epsilon*d.Epsilon)
				for _, c := range [][2][]float64{{g.X, d.X}, {g.A, d.A}, {g.B, d.B}, {g.Y, d.Y}, {g.Q, d.Q}} {
					for i, v := range c[1] {
						if c[0] != nil {
							right += c[0][i] * v
							scale += math.Abs(c[0][i] * v)
						}
					}
				}
				Near(t, left, right, 1e-11*scale+1e-13*LargestOf(op.eval(p)),
					"seed %d, %s along %s: forward, by the way back", seed, op.name, what)
				// Weights are given before they are normalised: along d·sum they move by d.
				at := func(h float64) []float64 {
					move := func(v, d []float64, by float64) []float64 {
						v = slices.Clone(v)
						for i := range d {
							v[i] += h * by * d[i]
						}
						return v
					}
					q := p
					q.x, q.a, q.b = move(p.x, d.X, 1), move(p.a, d.A, sumA), move(p.b, d.B, sumB)
					q.y, q.q, q.eps = move(p.y, d.Y, 1), move(p.q, d.Q, 1), p.eps+h*d.Epsilon
					return op.eval(q)
				}
				h := 2e-4 * p.eps / (1 + LargestOf(all.A)*sumA + LargestOf(all.B)*sumB)
				f1, f0, f2, f3 := at(h), at(-h), at(2*h), at(-2*h)
				want := make([]float64, len(got))
				for i := range want {
					want[i] = (8*(f1[i]-f0[i]) - (f2[i] - f3[i])) / (12 * h)
				}
				top := LargestOf(got) + 1e-3*LargestOf(f1)
				worst = max(worst, largestDifference(got, want)/top)
				NearAll(t, got, want, 1e-6*top, "seed %v, differences of %s along %s", seed, op.name, what)
			}
		}
	}
	t.Log(worst)
}

// TestForwardErrors: what is no direction is a typed error; far numbers give finite ones.
func TestForwardErrors(t *testing.T) {
	t.Parallel()
	var shape *ShapeError
	var data *DataError
	for _, eps := range []float64{0.1, 0} {
		tr := Solved(t, []float64{3, 1, 2, 1e300}, WithLevels(3), WithEpsilon(eps))
		for name, f := range map[string]func(Gradient) ([]float64, error){"rank": tr.RankJVP,
			"sort": tr.SortJVP} {
			if _, err := f(Gradient{X: make([]float64, 3)}); !errors.As(err, &shape) {
				t.Errorf("%s along a short direction: %v", name, err)
			}
			if _, err := f(Gradient{B: []float64{0, math.NaN(), 0}}); !errors.As(err, &data) ||
				data.Col != 1 {
				t.Errorf("%s along NaN: %v", name, err)
			}
			if _, err := f(Gradient{Epsilon: math.Inf(1)}); !errors.As(err, &data) {
				t.Errorf("%s along an infinite ε: %v", name, err)
			}
			for _, far := range []float64{1e308, 1e-308} {
				got := Must(f(Gradient{X: []float64{far, -far, far, far}, A: []float64{far, 0, 0, -far},
					B: []float64{far, -far, far}, Y: []float64{far, 0, -far}, Epsilon: far}))(t)
				if j := notFinite(got); j >= 0 {
					t.Errorf("%s along %g: entry %d is %v", name, far, j, got[j])
				}
			}
		}
		if _, err := new(Transport).SortJVP(Gradient{}); !errors.As(err, &shape) {
			t.Errorf("the zero Transport: %v", err)
		}
	}
	x, bad := NewMat(2, 3), NewMat(2, 3)
	bad.Set(1, 2, math.NaN())
	for name, f := range map[string]func(x, dx Mat, opts ...Option) (Mat, error){"ranks": SoftRankRowsJVP,
		"sorted values": SoftSortRowsJVP} {
		if _, err := f(x, bad); !DataAt(err, 1, 2) {
			t.Errorf("%s along NaN: %v", name, err)
		}
		if _, err := f(bad, x); !errors.As(err, &data) {
			t.Errorf("%s of NaN: %v", name, err)
		}
		if _, err := f(x, NewMat(3, 2)); !errors.As(err, &shape) {
			t.Errorf("%s along another size: %v", name, err)
		}
	}
}

// TestOperatorsOfRowsAllocations: more rows cost no more allocations, forward or back.
func TestOperatorsOfRowsAllocations(t *testing.T) {
	if transport.Invariants {
		t.Skip("the checks allocate")
	}
	q := Must(MatOf([]float64{0, 1, 2, 3, 4, 5, 6, 7}))(t)
	for name, f := range map[string]func(x Mat) (Mat, error){
		"quantiles": func(x Mat) (Mat, error) { return SoftQuantileRows(x, q, WithWorkers(1)) },
		"quantiles back": func(x Mat) (Mat, error) {
			dx, _, _, err := SoftQuantileRowsVJP(x, q, x, WithWorkers(1))
			return dx, err
		},
		"ranks":         func(x Mat) (Mat, error) { return SoftRankRows(x, WithWorkers(1)) },
		"sorted":        func(x Mat) (Mat, error) { return SoftSortRows(x, WithWorkers(1)) },
		"ranks back":    func(x Mat) (Mat, error) { return SoftRankRowsVJP(x, x, WithWorkers(1)) },
		"sorted back":   func(x Mat) (Mat, error) { return SoftSortRowsVJP(x, x, WithWorkers(1)) },
		"ranks along":   func(x Mat) (Mat, error) { return SoftRankRowsJVP(x, x, WithWorkers(1)) },
		"sorted along":  func(x Mat) (Mat, error) { return SoftSortRowsJVP(x, x, WithWorkers(1)) },
		"chosen levels": func(x Mat) (Mat, error) { return SoftSortRowsJVP(x, x, WithWorkers(1)) },
	} {
		n := 24
		if name == "chosen levels" {
			n = 140
		}
		count := func(d int) float64 {
			x := NewMat(d, n)
			for i := range x.Data {
				x.Data[i] = float64(i * 7 % 101)
			}
			return allocations(2, func() { Must(f(x))(t) })
		}
		if a, b := count(2), count(40); b > a+20 { // one a row would be 38 more
			t.Errorf("%s: %v allocations for 2 rows, %v for 40", name, a, b)
		}
	}
}
