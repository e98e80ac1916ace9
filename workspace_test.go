package quantmf

// Tests of what a Transport keeps: a shared workspace put back where the solve left
// it, rows too long for their kernel to be kept, and the bound of memory.

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestWorkspaces: a call gives the same bits where the workspace still stands at the
// transport, where it must be put there after others, and from several goroutines.
func TestWorkspaces(t *testing.T) {
	Slow(t)
	type problem struct {
		tr   *Transport
		q, z []float64
		want [][]float64
	}
	calls := func(p *problem) [][]float64 {
		all, err := results(t, p.tr, nil, p.q, p.z, p.q)
		if err != nil {
			t.Error(err)
		}
		return all
	}
	same := func(k int, got, want [][]float64) {
		for i := range want {
			for j, v := range want[i] {
				if math.Float64bits(got[i][j]) != math.Float64bits(v) {
					t.Errorf("problem %d, result %d: entry %d is %v, was %v", k, i, j, got[i][j], v)
					return
				}
			}
		}
	}
	problems := make([]problem, 24)
	for k := range problems {
		r := random.Split(71, k)
		n, m := []int{30, 30, 75, 33000}[k%4], []int{6, 6, 9, 16}[k%4]
		if k%4 == 3 && k > 4 {
			n = 30
		}
		x, w, q, z := benchRow(n, m)
		y := make([]float64, m)
		for j := range y {
			y[j] = float64(j)/float64(m) + 0.5*r.Float64()/float64(m)
		}
		opts := []Option{WithEpsilon([]float64{1e-1, 1e-2, 1e-3, 1e-5, 1e-3}[k%5]), WithTargetWeights(w),
			WithSquash(Squash(k % 3))}
		if k%2 == 0 {
			opts = append(opts, WithTargets(y))
		}
		if k%3 == 0 {
			opts = append(opts, WithWeights(append([]float64{0}, x[1:]...)))
		}
		if k%7 == 0 {
			opts = append(opts, WithIterations(3))
		}
		tr := Solved(t, x, opts...)
		p := &problems[k]
		*p = problem{tr: tr, q: q, z: z}
		p.want = calls(p)
	}
	for k := range problems {
		same(k, calls(&problems[k]), problems[k].want)
	}
	var group sync.WaitGroup
	for g := range 2 {
		group.Go(func() {
			for k := range problems {
				k = (k + 7*g) % len(problems)
				same(k, calls(&problems[k]), problems[k].want)
			}
		})
	}
	group.Wait()
}

// TestLongRow: a row whose kernel is built tile by tile has the map that its potentials
// say, marginals that are met, and forward and reverse derivatives that agree.
func TestLongRow(t *testing.T) {
	Slow(t)
	for _, c := range []struct {
		n, m    int
		eps     float64
		regular bool
	}{{44000, 12, 1e-2, true}, {44000, 12, 1e-3, true}, {44000, 12, 1e-2, false}, {44000, 12, 1e-4, true},
		{21001, 7, 1, true}, {21001, 7, 1e-2, true}} { // also of fewer, where entries are powers
		n, m := c.n, c.m
		x, w, q, z := benchRow(n, m)
		y := make([]float64, m)
		for j := range y {
			y[j] = transport.Grid(j, m)
		}
		opts := []Option{WithEpsilon(c.eps), WithTargetWeights(w), WithSquash(SquashNone)}
		if !c.regular {
			y[3] += 0.02
			opts = append(opts, WithTargets(y))
		}
		tr := Solved(t, x, opts...)
		if !tr.Converged {
			t.Fatalf("%+v: not converged: %v", c, tr.MarginalError)
		}
		got := Must(tr.Quantile(q))(t)
		sum := make([]float64, m)
		plan := tr.Plan()
		for i := range n {
			mean := 0.0
			for j, p := range plan.Row(i) {
				d := x[i] - y[j]
				if want := math.Exp((tr.F[i] + tr.G[j] - d*d) / c.eps); math.Abs(p-want) > 1e-10/float64(n) {
					t.Fatalf("%+v: P[%d,%d] = %v, the potentials say %v", c, i, j, p, want)
				}
				sum[j] += p
				mean += p * float64(n) * q[j]
			}
			if math.Abs(got[i]-mean) > 1e-12*q[m-1] {
				t.Fatalf("%+v: T of sample %d is %v, the plan says %v", c, i, got[i], mean)
			}
		}
		b := make([]float64, m)
		transport.Normalise(b, w)
		NearAll(t, sum, b, 1e-9, "column sums")
		src := random.Split(72, 0)
		d := Gradient{X: make([]float64, n), Y: make([]float64, m), Q: make([]float64, m),
			Epsilon: 0.3 * c.eps}
		for i := range d.X {
			d.X[i] = Normal(&src)
		}
		for j := range d.Y {
			d.Y[j], d.Q[j] = Normal(&src), Normal(&src)
		}
		jd := Must(tr.QuantileJVP(q, d))(t)
		g := Must(tr.QuantileVJP(q, z))(t)
		left, right, scale := 0.0, g.Epsilon*d.Epsilon, 0.0
		for i := range z {
			left += z[i] * jd[i]
		}
		for _, p := range [][2][]float64{{g.X, d.X}, {g.Y, d.Y}, {g.Q, d.Q}} {
			for i := range p[0] {
				right += p[0][i] * p[1][i]
				scale += math.Abs(p[0][i] * p[1][i])
			}
		}
		if math.Abs(left-right) > 1e-11*scale {
			t.Errorf("%+v: %v forward, %v backward", c, left, right)
		}
	}
}

// TestMemory: what calls on a long row allocate grows as n, not as nm.
func TestMemory(t *testing.T) {
	if transport.Invariants {
		t.Skip("the checks allocate")
	}
	const n, m = 60000, 64
	x, w, q, z := benchRow(n, m)
	var tr *Transport
	for _, c := range []struct {
		name string
		call func() (err error)
	}{
		{"Solve", func() (err error) { tr, err = Solve(x, WithTargetWeights(w)); return err }},
		{"Quantile", func() error { return ErrorOf(tr.Quantile(q)) }},
		{"QuantileVJP", func() error { return ErrorOf(tr.QuantileVJP(q, z)) }},
	} {
		got := allocated(func() { OK(t, c.call()) })
		// A workspace has 11 numbers and the sort's 44 bytes a sample, where it is not there
		// from the last call; 2 numbers are kept or handed out; 2 MB do not depend on n.
		if got > 156*n+2<<20 {
			t.Errorf("%s: %d bytes for %d×%d", c.name, got, n, m)
		}
	}
}

// TestMemoryBound: what would take 4m² + nm numbers beyond the bound is an error that names
// what gave m, before anything is allocated.
func TestMemoryBound(t *testing.T) {
	x := []float64{3, 1, 2}
	many := make([]float64, 46000)
	ones := make([]float64, len(many))
	for i := range many {
		many[i], ones[i] = float64(i), 1
	}
	var option *OptionError
	var shape *ShapeError
	for _, m := range []int{30000, 200000, 1 << 30, math.MaxInt / 4, math.MaxInt - 1, math.MaxInt} {
		for name, call := range map[string]func(o Option) error{
			"rank":  func(o Option) error { return ErrorOf(SoftRank(x, o)) },
			"sort":  func(o Option) error { return ErrorOf(SoftSort(x, o)) },
			"solve": func(o Option) error { return ErrorOf(Solve(x, o)) },
		} {
			if err := call(WithLevels(m)); !errors.As(err, &option) || option.Option != "WithLevels" ||
				option.Value != itoa(m) {
				t.Errorf("%s with %d levels: %v", name, m, err)
			}
		}
		if _, err := FitQMF(t.Context(), Must(MatOf(x))(t), 1,
			WithLevels(m)); OptionOf(err) != "WithLevels" {
			t.Errorf("FitQMF with %d levels: %v", m, err)
		}
	}
	wide := Must(MatOf(many))(t)
	for name, err := range map[string]error{
		"WithLevels":        ErrorOf(SoftRank(many, WithEpsilon(1e-12))),
		"WithTargets":       ErrorOf(SoftSort(x, WithTargets(many))),
		"WithTargetWeights": ErrorOf(Solve(x, WithTargetWeights(ones))),
		"k":                 ErrorOf(TopKWeights(math.MaxInt, math.MaxInt-1)),
		"k ":                ErrorOf(SoftTopK(many, len(many))),
	} {
		if OptionOf(err) != strings.TrimSpace(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	levels := make([]float64, 20000)
	for i := range levels {
		levels[i] = float64(i) / float64(len(levels))
	}
	for name, err := range map[string]error{
		"q":      ErrorOf(SoftQuantile(x, many)),
		"rows":   ErrorOf(SoftQuantileRows(wide, wide)),
		"levels": ErrorOf(SoftQuantiles(many, levels)),
	} {
		if !errors.As(err, &shape) || shape.What != name && name != "rows" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The bound that the error names is the largest that is taken.
	for _, n := range []int{1, 3, 1000, 46000, 1 << 28} {
		m := mostLevels(n)
		if m > 0 && limit.TooMany(n, m) || !limit.TooMany(n, m+1) {
			t.Errorf("n = %d: %d is not the most", n, m)
		}
	}
	if limit.Cells == 1<<31 && (limit.TooMany(20724, 20724) || !limit.TooMany(20725, 20725)) {
		t.Error("the documentation says that the default of n levels ends at 20724")
	}
}
