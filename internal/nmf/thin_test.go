package nmf

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// counts are d × n of which a share is not 0: rows of different means, every seventh denser than others, one
// row and one column all zero, and the rows from dense on without a zero.
func counts(r *random.Source, d, n int, share float64, dense int) []float64 {
	x := make([]float64, d*n)
	for i := range d {
		p := share
		if i%7 == 0 {
			p = min(4*share, 1)
		}
		for j := range n {
			if r.Float64() < p || i >= dense {
				x[i*n+j] = 1 + math.Floor(6*math.Pow(r.Float64(), float64(2+i%4)))
			}
		}
	}
	if d > 2 {
		clear(x[2*n : 3*n])
	}
	if n > 3 && dense >= d {
		for i := range d {
			x[i*n+3] = 0
		}
	}
	return x
}

// sparse returns the problem with its rows in NonZeros, each cell that stored picks there as a zero; views
// are of what is held, else they are appended to what is given.
func sparse(p *Problem, views bool, stored func(i, j int) bool) *Problem {
	cols, vals := make([][]uint32, p.D), make([][]float64, p.D)
	for i := range p.D {
		for j, x := range p.X[i*p.N : (i+1)*p.N] {
			if x != 0 || stored(i, j) {
				cols[i], vals[i] = append(cols[i], uint32(j)), append(vals[i], x)
			}
		}
	}
	s := *p
	s.X, s.Stride = nil, 0
	s.NonZeros = func(i int, c []uint32, v []float64) ([]uint32, []float64) {
		if views {
			return cols[i], vals[i]
		}
		return append(c, cols[i]...), append(v, vals[i]...)
	}
	return &s
}

// reads returns the problem with rows that are read alone.
func reads(p *Problem) *Problem {
	s := *p
	s.X, s.Stride = nil, 0
	return &s
}

// again returns a problem with factors of its own.
func again(p *Problem, workers int, t testing.TB) *Problem {
	c := *p
	c.U, c.V = slices.Clone(p.U), slices.Clone(p.V)
	c.Pool = Workers(t, workers)
	return &c
}

// thinProblem is d × n of counts.
func thinProblem(t *testing.T, d, n, k int, share float64, dense int, penalty float64) *Problem {
	p := problem(t, d, n, k, divergence.KL, 0, penalty)
	r := random.Split(uint64(d), n)
	p.X = counts(&r, d, n, share, dense)
	return p
}

var long = os.Getenv("QUANTMF_LONG") != ""

// ways are the methods by their names.
var ways = map[string]func(*Problem) Method{
	"updates": func(p *Problem) Method { return NewUpdates(*p) },
	"newton":  func(p *Problem) Method { return NewNewton(*p) },
}

// TestThin: under either loss rows that are held sparse have the bits of the same rows held dense, whatever
// else the holder stores, and by three workers those by one; the losses are those of the factors, by the
// definition. V of a thousand columns and more lies in several tiles, and a tile of rows of 1700 has more
// cells than a run; of those it takes fewer ways to hold the rows, but with QUANTMF_LONG.
func TestThin(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	none := func(i, j int) bool { return false }
	for name, method := range ways {
		for i, c := range []struct {
			d, n, k int
			share   float64
			dense   int
			penalty float64
		}{
			{70, 61, 3, 0.05, 70, 0}, {70, 64, 8, 0.1, 70, 0.1}, {33, 1, 1, 0.2, 33, 0},
			{1, 90, 2, 0.1, 1, 0}, {5, 7, 9, 0.1, 5, 0},
			{130, 203, 10, 0.04, 96, 0}, {130, 200, 17, 0.1, 64, 0.2}, {150, 170, 5, 0.22, 150, 0},
			{48, 1700, 33, 0.05, 48, 0}, {24, 1000, 70, 0.02, 16, 0},
			{900, 30, 2, 0.02, 900, 0}, {90, 67, 4, 0, 90, 0}, {48, 50, 3, 0.9, 48, 0},
		} {
			t.Run(fmt.Sprint(name, c), func(t *testing.T) {
				p := thinProblem(t, c.d, c.n, c.k, c.share, c.dense, c.penalty)
				if i%2 == 1 {
					p.Loss = divergence.Frobenius
				}
				run := func(p *Problem, workers int) (bits []float64) {
					p = again(p, workers, t)
					m := method(p)
					l, err := m.Begin()
					for e := 0; e < 6; e++ {
						OK(t, err)
						if p.X != nil && workers == 1 {
							want := p.objective() / float64(p.Visible)
							Near(t, l.Visible, want, 4e-12*want+1e-16, "epoch %d: the loss", e)
						}
						bits = append(append(bits, l.Visible, l.Penalty), append(p.U, p.V...)...)
						l, err = m.Epoch(e)
					}
					return bits
				}
				want := run(p, 1)
				for what, s := range map[string]*Problem{
					"dense": p, "read": reads(p), "sparse": sparse(p, true, none),
					"appended":   sparse(p, false, none),
					"with zeros": sparse(p, true, func(i, j int) bool { return (i+j)%3 == 0 }),
					"full":       sparse(p, false, func(i, j int) bool { return true }),
				} {
					if c.n >= 1000 && (what == "read" || what == "appended" || what == "full") && !long {
						continue
					}
					Same(t, run(s, 3), want, "%s, three workers", what)
				}
			})
		}
	}
}

// TestThinGroups: the groups that are thin are those with enough zeros, and one step on U and V over them is
// that of the textbook.
func TestThinGroups(t *testing.T) {
	const d, n, k = 80, 150, 4
	p := thinProblem(t, d, n, k, 0.06, 48, 0)
	for j := range n { // the third group has one cell more than a quarter, the first as many
		for i := range Group {
			p.X[i*n+j], p.X[(2*Group+i)*n+j] = 0, 0
			if (i*n+j)%4 == 0 {
				p.X[i*n+j], p.X[(2*Group+i)*n+j] = 2, 1
			}
		}
	}
	p.X[2*Group*n+1] = 1
	f := NewUpdates(*p)
	Must(f.Begin())(t)
	EqualAll(t, f.thin.groups, []bool{true, true, false, false, false}, "thin")
	check := p.textbook(t, 1)
	Must(f.Epoch(0))(t)
	check()
}

// forget has all cells visited.
func (t *thin) forget() {
	t.some = false
	clear(t.groups)
}

// TestThinSums: what an epoch of Newton's method sums over thin rows is what it sums over all of their cells.
func TestThinSums(t *testing.T) {
	for _, c := range []struct{ d, n, k, dense int }{{70, 61, 3, 48}, {64, 1700, 33, 64}, {33, 203, 16, 33}} {
		p := thinProblem(t, c.d, c.n, c.k, 0.04, c.dense, 0.05)
		var all [2]*Newton
		for i := range all {
			f := NewNewton(*again(p, 1, t))
			Must(f.Begin())(t)
			if i == 1 {
				f.thin.forget()
			}
			for e := range warmEpochs {
				Must(f.Epoch(e))(t)
			}
			f.take()
			f.open()
			copy(f.zu, f.U)
			copy(f.zv, f.y)
			f.last = f.losses(f.nu, f.nv)
			f.halfV()
			all[i] = f
		}
		same := func(what string, got, want []float64, by float64) {
			t.Helper()
			top := LargestOf(want)
			for i, v := range want {
				Near(t, got[i], v, by*(math.Abs(v)+1e-3*top), "%v: number %d of %s", c, i, what)
			}
		}
		f, g := all[0], all[1]
		if !f.thin.some {
			t.Fatal("no row is thin")
		}
		same("the losses", []float64{f.last.Visible}, []float64{g.last.Visible}, 1e-13)
		for i := range f.pieces {
			same("the gradient", f.pieces[i].num, g.pieces[i].num, 1e-12)
			same("the curvature", f.pieces[i].den, g.pieces[i].den, 1e-12)
			same("c2", f.extra[i].c2, g.extra[i].c2, 1e-9)
			same("c3", f.extra[i].c3, g.extra[i].c3, 1e-9)
			same("ρ", f.extra[i].rho, g.extra[i].rho, 1e-9)
		}
		same("V", f.z, g.z, 1e-9)
		for _, f := range all {
			f.between()
			f.transposeThree(f.z, f.z2, f.nv)
			f.run(opHalf, len(f.pieces))
		}
		same("U", f.zu, g.zu, 1e-9)
		same("the losses", []float64{f.losses(f.nu, f.nv).Visible}, []float64{g.losses(g.nu, g.nv).Visible},
			1e-11)
	}
}

// TestInside has columns on both sides of the end at every place of a run: kernels that are given one beyond
// it write where they may not.
func TestInside(t *testing.T) {
	panics := func(cols []uint32, n int) (it bool) {
		defer func() { it = recover() != nil }()
		inside(cols, n)
		return false
	}
	for length := range 70 {
		cols := make([]uint32, length)
		for p := range cols {
			cols[p] = 6
			for n, beyond := range map[int][]uint32{7: {7, 8, 1<<31 + 6, 1<<31 + 7, 1<<32 - 1},
				math.MaxInt32: {math.MaxInt32, 1 << 31, 1<<32 - 1}} {
				if panics(cols, n) {
					t.Fatalf("%v is said to be beyond %d", cols, n)
				}
				for _, j := range beyond {
					cols[p] = j
					if !panics(cols, n) {
						t.Fatalf("%v is said to be below %d", cols, n)
					}
				}
				cols[p] = 6
			}
		}
	}
}
