//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package kernel

// Assembly against the loops in Go: the same bits, and nothing touched beyond a slice.

import (
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// highest is the level of this processor.
var highest = level

// levels runs f at each level that this processor has, and restores it.
func levels(t *testing.T, f func(t *testing.T)) {
	defer func(l int) { level = l }(level)
	for l := Portable + 1; l < len(levelNames); l++ {
		t.Run(levelNames[l], func(t *testing.T) {
			if highest < l {
				t.Skip("this processor has none")
			}
			level = l
			f(t)
		})
	}
}

const (
	fence  = 24
	poison = 0x7ff8dead00000000 // a NaN: what reads beyond a slice shows it
)

// fenced is a slice with poison around it and in it, at an odd place in memory.
type fenced struct {
	all, v []float64
	at     int // of v in all
}

func newFenced(from []float64, shift int) fenced {
	f := fenced{all: make([]float64, len(from)+2*fence), at: fence - shift}
	for i := range f.all {
		f.all[i] = math.Float64frombits(poison)
	}
	f.v = f.all[f.at : f.at+len(from)]
	copy(f.v, from)
	return f
}

func (f fenced) check(t *testing.T, what string) {
	t.Helper()
	for i, v := range f.all {
		if (i < f.at || i >= f.at+len(f.v)) && math.Float64bits(v) != poison {
			t.Fatalf("%s: written %d places from a slice of %d", what, i-f.at, len(f.v))
		}
	}
}

// again is the argument of this number once more: the same memory.
type again int

// compare calls f once with the loops in Go and once with assembly, on copies of the slices among its
// arguments, and compares all of them, and what f returns. Numbers are converted to what f takes.
func compare(t *testing.T, f any, args ...any) {
	t.Helper()
	of := reflect.ValueOf(f)
	what := runtime.FuncForPC(of.Pointer()).Name()
	call := func(copied func(x []float64) []float64) (numbers [][]float64) {
		in := make([]reflect.Value, len(args))
		for i, a := range args {
			switch a := a.(type) {
			case again:
				in[i] = in[a]
				continue
			case []float64:
				x := copied(a)
				numbers, in[i] = append(numbers, x), reflect.ValueOf(x)
			default:
				in[i] = reflect.ValueOf(a)
			}
			if takes := of.Type(); !takes.IsVariadic() && in[i].Type() != takes.In(i) {
				in[i] = in[i].Convert(takes.In(i))
			}
		}
		for _, v := range of.Call(in) {
			numbers = append(numbers, []float64{v.Float()})
		}
		return numbers
	}
	now := level
	level = Portable
	want := call(slices.Clone[[]float64])
	level = now
	var guarded []fenced
	got := call(func(x []float64) []float64 {
		guarded = append(guarded, newFenced(x, (len(guarded)+len(x))%8))
		return guarded[len(guarded)-1].v
	})
	for i := range got {
		Same(t, got[i], want[i], "%s", what)
	}
	for _, g := range guarded {
		g.check(t, what)
	}
}

// numbers are n of magnitudes around one and both signs, or positive ones.
func numbers(r *random.Source, n int, positive bool) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Ldexp(0.5+r.Float64(), int(8*r.Float64())-4)
		if !positive && r.Float64() < 0.5 {
			v[i] = -v[i]
		}
		if r.Float64() < 0.05 {
			v[i] = 0
		}
	}
	return v
}

func TestVectorPlan(t *testing.T) {
	levels(t, func(t *testing.T) {
		for _, m := range []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33} {
			for np := 0; np <= 104; np += 8 {
				if testing.Short() && np > 40 && np != 104 {
					continue
				}
				r := random.Split(uint64(np), m)
				pos := func(n int) []float64 { return numbers(&r, n, true) }
				any := func(n int) []float64 { return numbers(&r, n, false) }
				steep := func(v []float64) []float64 { // some will be flushed, none is 0
					for i := range v {
						v[i] = math.Ldexp(v[i]+0x1p-9, -int(500*r.Float64()))
					}
					return v
				}
				if np > 0 {
					compare(t, Moments, pos(2*m), pos(np*m), any(np))
					compare(t, Gram, make([]float64, m*Pad(m)), pos(np*m), any(np), m)
					compare(t, ColSums, pos(m), pos(np*m), any(np))
				}
				compare(t, RowSums, pos(np), pos(np*m), pos(m))
				compare(t, RowRatios, pos(np), pos(np*m), pos(m), steep(pos(np)), pos(np), 0.3)
				compare(t, Average, pos(np), pos(np*m), pos(m), pos(np), 0.3, any(m-1))
				for _, f := range []func(*Cov){Covariance, CovarianceOwn, Covariances} {
					compare(t, func(v ...[]float64) {
						f(&Cov{Out: v[0], E: v[1], W: v[2], Z: v[3], Zeta: v[4], A: v[5], V: v[6],
							Lam: v[7], Y: v[8], Own: v[9], Mean: v[10], Logs: v[11], S: v[12], H: v[13]})
					}, pos(np), pos(np*m), pos(m), pos(np), any(np), pos(np), any(m), any(m), any(m), any(np),
						pos(np), pos(np), any(np), any(m))
				}
				compare(t, PowersOf, pos(np*m), pos(np), pos(np), m)
				whole, apart, x := make([]float64, np*m), make([]float64, np*m), any(np)
				base, rate := make([]float64, np), make([]float64, np)
				BuildPower(whole, x, -0.5, 0.1, m)
				Powers(base, rate, x, -0.5, 0.1)
				PowersOf(apart, base, rate, m)
				Same(t, apart, whole, "powers of what was kept")
				compare(t, Lift, steep(pos(np*m)), steep(pos(m)), np)
				compare(t, Tops, pos(np), any(np), any(m), any(m))
				compare(t, Build, pos(np*m), any(np), any(m), any(m))
				wide := any(np)
				for i := range wide {
					wide[i] *= 40
				}
				if m > 1 {
					points := any(np)
					for i := range points {
						points[i] *= []float64{1e-3, 1, 1, 30, 1e4, 1e300}[i%6]
					}
					above := func(v []float64) []float64 { // 0
						for i := range v {
							v[i] += 0x1p-9
						}
						return v
					}
					compare(t, MappedKL, pos(np), pos(np), pos(np), points, pos(np), above(pos(2*m)),
						above(pos(2*m-3)), &KLMap{Ref: 0.3, Shift: 0.01, Fall: -1.7, Center: 0.4, Step: 9,
							Most: 20,
							Line: 0.2})
				}
				compare(t, Build, pos(np*m), wide, any(m), any(m))
				compare(t, BuildPower, pos(np*m), wide, -0.5, 1/float64(m), m)
			}
		}
	})
}

// Samples lie in all bins, at their edges, before the first and beyond the last; some are no numbers.
func TestVectorBins(t *testing.T) {
	levels(t, func(t *testing.T) {
		for _, bins := range []int{1, 2, 13} {
			for n := range 70 {
				r := random.Split(uint64(n), bins)
				b := Bins{First: -1.3, Scale: 2.5, Last: float64(bins - 1)}
				at := make([]float64, n)
				for i := range at {
					at[i] = b.First + (r.Float64()*(float64(bins)+2)-1)/b.Scale
					switch i % 7 {
					case 3:
						at[i] = b.First + float64(r.IntN(bins+1))/b.Scale
					case 5:
						at[i] = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300,
							math.Copysign(0, -1)}[r.IntN(5)]
					}
				}
				compare(t, BinMoments, numbers(&r, 4*bins, false), at, &b)
				w, finite := numbers(&r, n, true), slices.Clone(at)
				for i := range w {
					if at[i]-at[i] != 0 { // BinWeights takes 0 times a place
						finite[i] = 0
					}
					if i%7 > 0 && i > 9 {
						w[i] = 0
					}
				}
				compare(t, BinWeights, numbers(&r, 4*bins, false), finite, w, &b)
			}
		}
	})
}

func TestVectorHankel(t *testing.T) {
	levels(t, func(t *testing.T) {
		for m := 1; m <= 40; m++ {
			r := random.Split(7, m)
			p := Pad(m)
			mu, ratio, w := numbers(&r, m+p, m%2 == 0), make([]float64, m*p), numbers(&r, p, true)
			clear(mu[2*m-1:])
			clear(w[m:])
			for j := range m {
				for k := range j + 1 {
					v := r.Float64()
					if r.Float64() < 0.1 {
						v = 1e-200
					}
					ratio[j*p+k], ratio[k*p+j] = v, v
				}
			}
			compare(t, func(to, diagonal, mu, ratio, w []float64) {
				Hankel(to, diagonal, mu, ratio, w, m)
				for j := range m { // the padding is free
					for k := m; k < p; k++ {
						if to[j*p+k] != 0 || diagonal[k] != 0 {
							t.Fatal("something in the padding")
						}
						to[j*p+k], diagonal[k] = 0, 0
					}
				}
				for j := range m {
					for k := range j {
						if to[j*p+k] != to[k*p+j] {
							t.Fatal("not symmetric")
						}
					}
				}
			}, make([]float64, m*p), make([]float64, p), mu, ratio, w)
			v := numbers(&r, p, false)
			clear(v[m:])
			compare(t, func(to, ratio, v []float64) { Differences(to, ratio, v, m); clear(to[m:]) },
				make([]float64, p), ratio, v)
		}
	})
}

func TestVectorProduct(t *testing.T) {
	levels(t, func(t *testing.T) {
		for k := 0; k <= 70; k++ {
			for np := 0; np <= 136; np++ {
				if k > 20 && np > 40 || np > 16 && np%8 != 0 {
					continue
				}
				if k > 30 && k%4 > 1 && os.Getenv("QUANTMF_LONG") == "" || testing.Short() &&
					(k > 10 && k%27 != 0 || np > 48 && np != 136) {
					continue
				}
				r := random.Split(uint64(np), k)
				any := func(n int) []float64 { return numbers(&r, n, false) }
				compare(t, Combine, any(np), any(k), any(k*np))
				compare(t, Accumulate, any(k*np), any(k), any(np))
				if np < 8 || np%8 != 0 {
					continue
				}
				if k > 0 {
					at := make([]uint32, k) // lines in another order, one of them twice
					for l := range at {
						at[l] = uint32((7*l + 3) % k)
					}
					at[k/2] = at[0]
					for stride := np; stride < np+10; stride += 9 {
						w, r := any(k), any(k*stride)
						for _, at := range [][]uint32{at[:k/2], at} {
							compare(t, AccumulateFrom, any(np), any(np), w, r, at, stride)
						}
					}
				}
				if k > 0 && k <= np {
					size := k * (k + 1) / 2
					compare(t, Unpack, any(k*np), any(Pad(size)), k, np, 0.7)
					for first := 0; first+4 <= k; first += 4 {
						compare(t, Sweep, any(k*np), any(4*np), any(16), first, first+3, k)
						compare(t, func(z, c []float64) {
							Sweep(z, z[first*np:][:4*np], c, first, first+4,
								k)
						},
							any(k*np), any(16))
					}
					for first := 0; first <= k; first += 4 {
						compare(t, AccumulateLower, any(k*np), any(4*np), any(4*np), first, k)
					}
				}
				compare(t, Dots, any(k), any(k*np), any(np))
				for rows := range 10 {
					if k == 0 || rows == 0 || rows > 5 && np > 40 {
						continue
					}
					compare(t, CombineRows, any(rows*np), any(rows*k), any(k*np), rows)
					compare(t, DotsRows, any(rows*k), any(k*np), any(rows*np), rows)
					compare(t, AccumulateRows, any(k*np), any(rows*k), any(rows*np), rows)
				}
				for rows := 1; rows < 10 && k > 0 && np <= 40; rows++ {
					stride := np + rows%3
					x := numbers(&r, rows*stride, true)
					for _, sign := range []bool{true, false} { // products below low too
						u, v := numbers(&r, rows*k, sign), numbers(&r, k*np, true)
						compare(t, QuotientRows, any(rows*np), u, v, x, stride, rows, 1e-3)
						compare(t, func(to, u, v, x []float64) float64 {
							QuotientRows(to, u, v, x, stride, rows, 1e-3)
							return LogSumRows(to, x, stride, rows)
						}, any(rows*np), u, v, x)
					}
				}
				compare(t, Sum, any(np))
			}
		}
	})
}

// awkward are numbers at the edges of exp and log.
var awkward = []float64{
	0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(),
	math.Float64frombits(0x7ff4000000000001), 5e-324, -5e-324, 0x1p-1022, 0x1p-1023,
	math.Nextafter(0x1p-1022, 0), math.MaxFloat64, -math.MaxFloat64, -708, math.Nextafter(-708, 0),
	math.Nextafter(-708, -709), -708.5, -709, -745, -1000,
	709, math.Nextafter(709, 710), 709.7, 709.782712893384, math.Nextafter(709.782712893384, 710),
	math.Nextafter(709.782712893384, 0), 710, 1e300, -1e300,
	math.Sqrt2, math.Nextafter(math.Sqrt2, 0), math.Nextafter(math.Sqrt2, 2), 1 - 0x1p-53, 1 + 0x1p-52, 0.5,
	2, 1e-300, 1e-310, math.Ln2, -math.Ln2, math.Ln2 / 32,
}

func TestVectorElementary(t *testing.T) {
	levels(t, func(t *testing.T) {
		r, score := random.Split(3, 3), &Score{0.3, -1, 2.5}
		for n := 0; n <= 99; n++ {
			x := make([]float64, n)
			for i := range x {
				x[i] = awkward[int(r.Float64()*float64(len(awkward)))]
			}
			pos, y := numbers(&r, n, true), numbers(&r, n, false)
			compare(t, AdamStep, y, x, y, pos, 0.1, 0.3)
			compare(t, Exp, y, x)
			compare(t, Log, y, x)
			compare(t, Exp, x, again(0))
			compare(t, Log, x, again(0))
			compare(t, Logistic, pos, x, score, 1.8)
			compare(t, Logistic, y, again(0), score, 1.8)
			compare(t, Divide, pos, y, x)
			compare(t, Rotate, y, x, 0.8, -0.6)
			compare(t, Weigh, pos, y, x)
			compare(t, Scale, y, x, -0.3)
			compare(t, Scale, y, again(0), -0.3)
			compare(t, Multiply, pos, y, x)
			compare(t, MultiplyLess, pos, y, x, numbers(&r, n, false))
			compare(t, Divide, y, again(0), pos)
			compare(t, Ratio, y, pos, x, 1e-3)
			compare(t, Shift, y, x, 0.3)
			compare(t, Shift, y, again(0), 0.3)
			compare(t, Slopes, pos, y, 0.3)
			two, three := make([]float64, 2), make([]float64, 3)
			compare(t, Spread, two, y, -3)
			compare(t, func(to *[2]float64, x []float64) { // not finite
				Spread(to, x, -3)
				to[0] = 0 // anything
			}, two, x)
			compare(t, LogSum, numbers(&r, n, true), pos)
			compare(t, Curve, y, y, pos, pos, n, 1, 0.2)
			compare(t, StretchRow, three, pos, y, pos)
			compare(t, Deviation, y, -3, 7)
			compare(t, Squares, y, -3, 7, 0.1)
			compare(t, LogisticBack, two, y, pos, numbers(&r, n, false), score, 1.8)
			compare(t, ScoreBack, y, pos, score, 0.1, -0.2)
			if n >= 8 {
				compare(t, Extent, two, y[:n&^7])
			}
			compare(t, Fisher, y, pos, 1.7, 1e-3)
			compare(t, LogisticSlope, y, x, -1.7)
			compare(t, RatioBack, x, y, numbers(&r, n, false), pos, 1e-3)
			fit := numbers(&r, n, true)
			counts := slices.Clone(pos) // most are 0
			for i := range counts {
				if i%9 > 0 || i > 30 {
					counts[i] = 0
				}
			}
			for _, x := range [][]float64{pos, counts} {
				compare(t, func(x, w, ratio []float64) float64 {
					Ratio(ratio, x, w, 1e-30)
					return LossKL(x, w, ratio, 1e-30)
				}, x, fit, make([]float64, n))
			}
		}
		// Every kind of bits: uniform bits, and uniform exponents about one.
		n := 1 << 18
		if os.Getenv("QUANTMF_LONG") != "" {
			n = 1 << 21
		}
		x, got, want := make([]float64, 1024), make([]float64, 1024), make([]float64, 1024)
		check := func(x []float64) {
			for _, f := range []struct {
				name   string
				kernel func(to, x []float64)
				one    func(x float64) float64
			}{{"exp", Exp, elem.Exp}, {"log", Log, elem.Log}} {
				f.kernel(got[:len(x)], x)
				for i, v := range x {
					want[i] = f.one(v)
				}
				Same(t, got[:len(x)], want[:len(x)], "%s of %v", f.name, x)
			}
		}
		for range n / len(x) {
			for i := range x {
				switch u := r.Uint64(); i % 4 {
				case 0:
					x[i] = math.Float64frombits(u)
				case 1:
					x[i] = (r.Float64() - 0.5) * 1500
				case 2:
					x[i] = math.Float64frombits(u>>12 | uint64(1023-40+u%80)<<52)
				default:
					x[i] = (r.Float64() - 0.5) * 4
				}
			}
			check(x)
		}
		check(awkward)
	})
}

func TestVectorNewton(t *testing.T) {
	levels(t, func(t *testing.T) {
		for np := 8; np <= 104; np += 8 {
			r := random.Split(19, np)
			pos := func(n int) []float64 { return numbers(&r, n, true) }
			any := func(n int) []float64 { return numbers(&r, n, false) }
			steep := func(n int) []float64 { // none is 0
				v := pos(n)
				for i := range v {
					v[i] += 0.01
				}
				return v
			}
			compare(t, Curve, pos(3*np), pos(3*np), pos(3*np), pos(3*np+6), np+3, 3, 0.2)
			for _, k := range []int{1, 2, 7, 10} {
				for rows := 1; rows <= 9; rows += 2 {
					compare(t, CurveRows, pos(rows*np), pos(rows*np), pos(rows*np), pos(rows*k), pos(k*np),
						pos((rows-1)*(np+3)+np), np+3, rows, 0.2)
				}
			}
			compare(t, Stretch, pos(np), pos(np), pos(np), pos(np), any(np), pos(np), 0.2)
			for _, k := range []int{1, 2, 3, 5, 8, 13} {
				c, inverse := any(k*k), pos(k)
				for a := range k {
					for b := range a {
						c[a*k+b] = c[b*k+a]
					}
				}
				compare(t, Direction, pos(k*np), any(np), any(np), pos(k*np), any(k*np), steep(k*np), 2)
				for sweeps := 1; sweeps <= 4; sweeps += 3 {
					compare(t, Bounded, any(k*np), any(k*np), any(k*np), c, inverse, sweeps)
				}
			}
		}
	})
}

func TestVectorColumns(t *testing.T) {
	levels(t, func(t *testing.T) {
		for n := 8; n <= Wide; n += 8 {
			for _, k := range []int{1, 2, 3, 5, 10, 13} {
				for sweeps := 1; sweeps <= 4; sweeps += 3 {
					r := random.Split(uint64(n), k)
					s, a := numbers(&r, k*columnNumbers, false), numbers(&r, k*(k+1)/2*n, true)
					for c := range k {
						column := ColumnOf(s, c, n)
						for j, v := range column.X {
							column.Low[j], column.High[j] = v-0.3*r.Float64(), v+0.4*r.Float64()
							column.H[j] = max(column.H[j], 0) // some of 0
							switch {
							case r.Float64() < 0.03:
								column.G[j] = math.NaN()
							case r.Float64() < 0.03:
								column.H[j] = 1e-251
							}
						}
					}
					compare(t, descend, s, a, k, n, sweeps)
				}
			}
		}
	})
}

// someOf are count different numbers below n in their order.
func someOf(r *random.Source, n, count int) []uint32 {
	var all []uint32
	for j := range n {
		if left := n - j; r.IntN(left) < count-len(all) {
			all = append(all, uint32(j))
		}
	}
	return all
}

func TestVectorAt(t *testing.T) {
	levels(t, func(t *testing.T) {
		for k := Lanes; k <= 5*Lanes; k += Lanes {
			for count := range 45 { // rows are asked for from the fourth block on
				r := random.Split(uint64(count), k)
				n := count + 5
				cols := someOf(&r, n, count)
				any := func(n int) []float64 { return numbers(&r, n, false) }
				compare(t, CombineAt, any(count), any(k), any(n*k), cols)
				compare(t, DotsAt, any(k), any(n*k), any(count), cols)
				compare(t, DotsSquaresAt, any(k), any(k), any(n*k), any(count), any(count), cols)
				compare(t, AccumulateAt, any(n*k), any(k), any(count), cols)
			}
		}
	})
}

// TestVectorLaplacian compares assembly with the loops in Go bit for bit; what is on and
// above the diagonal, and in the padding, is NaN, which must not get through.
func TestVectorLaplacian(t *testing.T) {
	levels(t, func(t *testing.T) {
		for m := 1; m <= 71; m++ {
			m := m
			if m == 71 { // rows that are further apart
				m = 128
			}
			r := random.Split(11, m)
			p, stride, room := Pad(m), LaplacianStride(m), LaplacianRoom(m)
			w, floor, rhs := make([]float64, m*stride), make([]float64, m), make([]float64, p)
			for i := range w {
				w[i] = math.NaN()
			}
			for i := range rhs {
				rhs[i] = math.NaN()
			}
			for i := range m {
				for j := range i {
					w[i*stride+j] = math.Ldexp(r.Float64(), -int(60*r.Float64()))
					if r.Float64() < 0.2 {
						w[i*stride+j] = 0
					}
				}
				floor[i], rhs[i] = 1e-15, r.Float64()-0.5
			}
			compare(t, func(w, d, x, work []float64) {
				FactorLaplacian(w, d, floor, work, nil)
				SolveLaplacian(w, d, x[:m])
				clear(work) // what is free
				clear(x[m:])
				for i := range m {
					clear(w[i*stride+i : (i+1)*stride])
				}
				for i, v := range slices.Concat(w, d, x) {
					if v != v {
						t.Fatalf("m = %d: number %d is none", m, i)
					}
				}
			}, w, make([]float64, m), rhs, make([]float64, room))
		}
	})
}
