//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package kernel

// Assembly against the loops in Go: the same bits, and nothing touched beyond a slice.

import (
	"math"
	"os"
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

// vectors are the slices that a call takes.
type vectors = [][]float64

// of2, of3 and of4 make calls as compare takes them.
func of2(f func(a, b []float64)) func(v vectors) { return func(v vectors) { f(v[0], v[1]) } }

func of3(f func(a, b, c []float64)) func(v vectors) { return func(v vectors) { f(v[0], v[1], v[2]) } }

func of4(f func(a, b, c, d []float64)) func(v vectors) {
	return func(v vectors) { f(v[0], v[1], v[2], v[3]) }
}

// compare calls f once with the loops in Go and once with assembly, on copies of
// the slices, and compares all of them.
func compare(t *testing.T, what string, f func(v vectors), slices ...[]float64) {
	t.Helper()
	plain := make([][]float64, len(slices))
	for i, s := range slices {
		plain[i] = append([]float64{}, s...)
	}
	now := level
	level = Portable
	f(plain)
	level = now
	guarded, given := make([]fenced, len(slices)), make([][]float64, len(slices))
	for i, s := range slices {
		guarded[i] = newFenced(s, (i+len(s))%8)
		given[i] = guarded[i].v
	}
	f(given)
	for i := range slices {
		Same(t, given[i], plain[i], "%s", what)
		guarded[i].check(t, what)
	}
}

// compareNumber is compare of what returns a number.
func compareNumber(t *testing.T, what string, f func(v vectors) float64, slices ...[]float64) {
	t.Helper()
	result := len(slices)
	compare(t, what, func(v vectors) { v[result][0] = f(v) }, append(slices, make([]float64, 1))...)
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
					compare(t, "moments", of3(Moments), pos(2*m), pos(np*m), any(np))
					compare(t, "gram", func(v vectors) { Gram(v[0], v[1], v[2], m) },
						make([]float64, m*Pad(m)), pos(np*m), any(np))
					compare(t, "colSums", of3(ColSums), pos(m), pos(np*m), any(np))
				}
				compare(t, "rowSums", of3(RowSums), pos(np), pos(np*m), pos(m))
				compare(t, "rowRatios", func(v vectors) {
					RowRatios(v[0], v[1], v[2], v[3], v[4],
						0.3)
				},
					pos(np), pos(np*m), pos(m), steep(pos(np)), pos(np))
				compare(t, "average", func(v vectors) { Average(v[0], v[1], v[2], v[3], 0.3, v[4]) },
					pos(np), pos(np*m), pos(m), pos(np), any(m-1))
				for at, f := range []func(*Cov){Covariance, CovarianceOwn, Covariances} {
					compare(t, []string{"covariance", "covarianceOwn", "covariances"}[at],
						func(v vectors) {
							f(&Cov{Out: v[0], E: v[1], W: v[2], Z: v[3], Zeta: v[4], A: v[5], V: v[6],
								Lam: v[7], Y: v[8], Own: v[9], Mean: v[10], Logs: v[11], S: v[12], H: v[13]})
						}, pos(np), pos(np*m), pos(m), pos(np), any(np), pos(np), any(m), any(m), any(m),
						any(np), pos(np), pos(np), any(np), any(m))
				}
				compare(t, "powersOf", func(v vectors) { PowersOf(v[0], v[1], v[2], m) }, pos(np*m),
					pos(np), pos(np))
				whole, apart, x := make([]float64, np*m), make([]float64, np*m), any(np)
				base, rate := make([]float64, np), make([]float64, np)
				BuildPower(whole, x, -0.5, 0.1, m)
				Powers(base, rate, x, -0.5, 0.1)
				PowersOf(apart, base, rate, m)
				Same(t, apart, whole, "powers of what was kept")
				compare(t, "lift", func(v vectors) { Lift(v[0], v[1], np) },
					steep(pos(np*m)), steep(pos(m)))
				compare(t, "tops", of4(Tops), pos(np), any(np), any(m), any(m))
				compare(t, "build", of4(Build), pos(np*m), any(np), any(m), any(m))
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
					compare(t, "mappedKL", func(v vectors) {
						MappedKL(v[0], v[1], v[2], v[3], v[4], v[5], v[6],
							&KLMap{Ref: 0.3, Shift: 0.01, Fall: -1.7, Center: 0.4, Step: 9, Most: 20,
								Line: 0.2})
					}, pos(np), pos(np), pos(np), points, pos(np), above(pos(2*m)), above(pos(2*m-3)))
				}
				compare(t, "build, flushed", of4(Build), pos(np*m), wide,
					any(m), any(m))
				compare(t, "buildPower",
					func(v vectors) { BuildPower(v[0], v[1], -0.5, 1/float64(m), m) },
					pos(np*m), wide)
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
				compare(t, "binMoments", func(v vectors) { BinMoments(v[0], v[1], &b) },
					numbers(&r, 4*bins, false), at)
				w, finite := numbers(&r, n, true), slices.Clone(at)
				for i := range w {
					if at[i]-at[i] != 0 { // BinWeights takes 0 times a place
						finite[i] = 0
					}
					if i%7 > 0 && i > 9 {
						w[i] = 0
					}
				}
				compare(t, "binWeights", func(v vectors) { BinWeights(v[0], v[1], v[2], &b) },
					numbers(&r, 4*bins, false), finite, w)
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
			compare(t, "hankel", func(v vectors) {
				Hankel(v[0], v[1], v[2], v[3], v[4], m)
				for j := range m { // the padding is free
					for k := m; k < p; k++ {
						if v[0][j*p+k] != 0 || v[1][k] != 0 {
							t.Fatal("something in the padding")
						}
						v[0][j*p+k], v[1][k] = 0, 0
					}
				}
				for j := range m {
					for k := range j {
						if v[0][j*p+k] != v[0][k*p+j] {
							t.Fatal("not symmetric")
						}
					}
				}
			}, make([]float64, m*p), make([]float64, p), mu, ratio, w)
			v := numbers(&r, p, false)
			clear(v[m:])
			compare(t, "differences",
				func(v vectors) { Differences(v[0], v[1], v[2], m); clear(v[0][m:]) },
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
					(k > 10 && k%9 != 0 || np > 48 && np != 136) {
					continue
				}
				r := random.Split(uint64(np), k)
				any := func(n int) []float64 { return numbers(&r, n, false) }
				compare(t, "combine", of3(Combine), any(np), any(k), any(k*np))
				compare(t, "accumulate", of3(Accumulate), any(k*np), any(k),
					any(np))
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
							compare(t, "accumulateFrom",
								func(v vectors) { AccumulateFrom(v[0], v[1], v[2], v[3], at, stride) },
								any(np), any(np), w, r)
						}
					}
				}
				if k > 0 && k <= np {
					size := k * (k + 1) / 2
					compare(t, "unpack", func(v vectors) { Unpack(v[0], v[1], k, np, 0.7) }, any(k*np),
						any(Pad(size)))
					for first := 0; first+4 <= k; first += 4 {
						compare(t, "sweep", func(v vectors) {
							Sweep(v[0], v[1], v[2], first, first+3,
								k)
						}, any(k*np), any(4*np), any(16))
						compare(t, "sweep in place",
							func(v vectors) {
								Sweep(v[0], v[0][first*np:][:4*np], v[1], first, first+4,
									k)
							}, any(k*np), any(16))
					}
					for first := 0; first <= k; first += 4 {
						compare(t, "accumulateLower",
							func(v vectors) { AccumulateLower(v[0], v[1], v[2], first, k) }, any(k*np),
							any(4*np), any(4*np))
					}
				}
				compare(t, "dots", of3(Dots), any(k),
					any(k*np), any(np))
				for rows := range 10 {
					if k == 0 || rows == 0 || rows > 5 && np > 40 {
						continue
					}
					compare(t, "combineRows", func(v vectors) { CombineRows(v[0], v[1], v[2], rows) },
						any(rows*np), any(rows*k), any(k*np))
					compare(t, "dotsRows", func(v vectors) { DotsRows(v[0], v[1], v[2], rows) },
						any(rows*k), any(k*np), any(rows*np))
					compare(t, "accumulateRows",
						func(v vectors) { AccumulateRows(v[0], v[1], v[2], rows) },
						any(k*np), any(rows*k), any(rows*np))
				}
				for rows := 1; rows < 10 && k > 0 && np <= 40; rows++ {
					stride := np + rows%3
					x := numbers(&r, rows*stride, true)
					for _, sign := range []bool{true, false} { // products below low too
						u, v := numbers(&r, rows*k, sign), numbers(&r, k*np, true)
						compareNumber(t, "quotientRows", func(v vectors) float64 {
							return QuotientRows(v[0], v[1], v[2], v[3], stride, rows, 1e-3)
						}, any(rows*np), u, v, x)
						compareNumber(t, "logSumRows", func(v vectors) float64 {
							QuotientRows(v[0], v[1], v[2], v[3], stride, rows, 1e-3)
							return LogSumRows(v[0], v[3], stride, rows)
						}, any(rows*np), u, v, x)
					}
				}
				compareNumber(t, "sum", func(v vectors) float64 { return Sum(v[0]) }, any(np))
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
			compare(t, "adamStep", func(v vectors) { AdamStep(v[0], v[1], v[2], v[3], 0.1, 0.3) }, y, x,
				y, pos)
			compare(t, "exp", of2(Exp), y, x)
			compare(t, "log", of2(Log), y, x)
			compare(t, "exp in place", func(v vectors) { Exp(v[0], v[0]) }, x)
			compare(t, "log in place", func(v vectors) { Log(v[0], v[0]) }, x)
			compare(t, "logistic", func(v vectors) {
				Logistic(v[0], v[1], score,
					1.8)
			}, pos, x)
			compare(t, "logistic in place",
				func(v vectors) { Logistic(v[0], v[0], score, 1.8) }, y)
			compare(t, "divide", of3(Divide), pos, y,
				x)
			compare(t, "rotate", func(v vectors) { Rotate(v[0], v[1], 0.8, -0.6) }, y,
				x)
			compare(t, "weigh", of3(Weigh), pos, y, x)
			compare(t, "scale", func(v vectors) { Scale(v[0], v[1], -0.3) }, y, x)
			compare(t, "scale in place", func(v vectors) { Scale(v[0], v[0], -0.3) }, y)
			compare(t, "multiply", of3(Multiply), pos,
				y, x)
			compare(t, "multiplyLess", of4(MultiplyLess), pos, y, x, numbers(&r, n, false))
			compare(t, "divide in place", func(v vectors) { Divide(v[0], v[0], v[1]) },
				y, pos)
			compare(t, "ratio", func(v vectors) { Ratio(v[0], v[1], v[2], 1e-3) }, y,
				pos, x)
			compare(t, "shift", func(v vectors) { Shift(v[0], v[1], 0.3) }, y, x)
			compare(t, "shift in place", func(v vectors) { Shift(v[0], v[0], 0.3) }, y)
			compareNumber(t, "slopes", func(v vectors) float64 { return Slopes(v[0], v[1], 0.3) }, pos, y)
			two, three := make([]float64, 2), make([]float64, 3)
			compare(t, "spread", func(v vectors) { Spread((*[2]float64)(v[0]), v[1], -3) }, two, y)
			compare(t, "spread, not finite", func(v vectors) {
				Spread((*[2]float64)(v[0]), v[1], -3)
				v[0][0] = 0 // anything
			}, two, x)
			compareNumber(t, "logSum", func(v vectors) float64 { return LogSum(v[0], v[1]) },
				numbers(&r, n, true), pos)
			compareNumber(t, "curve",
				func(v vectors) float64 { return Curve(v[0], v[1], v[2], v[3], n, 1, 0.2) }, y, y, pos, pos)
			compare(t, "stretchRow",
				func(v vectors) { StretchRow((*[3]float64)(v[0]), v[1], v[2], v[3]) }, three, pos, y, pos)
			compareNumber(t, "deviation", func(v vectors) float64 { return Deviation(v[0], -3, 7) }, y)
			compareNumber(t, "squares", func(v vectors) float64 { return Squares(v[0], -3, 7, 0.1) }, y)
			compare(t, "logisticBack",
				func(v vectors) { LogisticBack((*[2]float64)(v[0]), v[1], v[2], v[3], score, 1.8) },
				two, y, pos, numbers(&r, n, false))
			compare(t, "scoreBack", func(v vectors) {
				ScoreBack(v[0], v[1], score,
					0.1, -0.2)
			}, y, pos)
			if n >= 8 {
				compare(t, "extent", func(v vectors) { Extent((*[2]float64)(v[0]), v[1]) }, two, y[:n&^7])
			}
			compare(t, "fisher", func(v vectors) { Fisher(v[0], v[1], 1.7, 1e-3) }, y, pos)
			compare(t, "logisticSlope", func(v vectors) { LogisticSlope(v[0], v[1], -1.7) }, y, x)
			compare(t, "ratioBack", func(v vectors) { RatioBack(v[0], v[1], v[2], v[3], 1e-3) }, x, y,
				numbers(&r, n, false), pos)
			fit := numbers(&r, n, true)
			counts := slices.Clone(pos) // most are 0
			for i := range counts {
				if i%9 > 0 || i > 30 {
					counts[i] = 0
				}
			}
			for _, x := range [][]float64{pos, counts} {
				compareNumber(t, "lossKL", func(v vectors) float64 {
					Ratio(v[2], v[0], v[1], 1e-30)
					return LossKL(v[0], v[1], v[2], 1e-30)
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
			compareNumber(t, "curve of rows",
				func(v vectors) float64 { return Curve(v[0], v[1], v[2], v[3], np+3, 3, 0.2) },
				pos(3*np), pos(3*np), pos(3*np), pos(3*np+6))
			for _, k := range []int{1, 2, 7, 10} {
				for rows := 1; rows <= 9; rows += 2 {
					compareNumber(t, "curveRows", func(v vectors) float64 {
						return CurveRows(v[0], v[1], v[2], v[3], v[4], v[5], np+3, rows, 0.2)
					}, pos(rows*np), pos(rows*np), pos(rows*np), pos(rows*k), pos(k*np),
						pos((rows-1)*(np+3)+np))
				}
			}
			compare(t, "stretch", func(v vectors) { Stretch(v[0], v[1], v[2], v[3], v[4], v[5], 0.2) },
				pos(np), pos(np), pos(np), pos(np), any(np), pos(np))
			for _, k := range []int{1, 2, 3, 5, 8, 13} {
				c, inverse := any(k*k), pos(k)
				for a := range k {
					for b := range a {
						c[a*k+b] = c[b*k+a]
					}
				}
				compare(t, "direction", func(v vectors) {
					Direction(v[0], v[1], v[2], v[3], v[4], v[5],
						2)
				},
					pos(k*np), any(np), any(np), pos(k*np), any(k*np), steep(k*np))
				for sweeps := 1; sweeps <= 4; sweeps += 3 {
					compare(t, "bounded", func(v vectors) {
						Bounded(v[0], v[1], v[2], v[3], v[4],
							sweeps)
					},
						any(k*np), any(k*np), any(k*np), c, inverse)
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
					compare(t, "descend", func(v vectors) { descend(v[0], v[1], k, n, sweeps) }, s, a)
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
				compare(t, "combineAt", func(v vectors) { CombineAt(v[0], v[1], v[2], cols) },
					any(count), any(k), any(n*k))
				compare(t, "dotsAt", func(v vectors) { DotsAt(v[0], v[1], v[2], cols) }, any(k),
					any(n*k), any(count))
				compare(t, "dotsSquaresAt",
					func(v vectors) { DotsSquaresAt(v[0], v[1], v[2], v[3], v[4], cols) },
					any(k), any(k), any(n*k), any(count), any(count))
				compare(t, "accumulateAt", func(v vectors) { AccumulateAt(v[0], v[1], v[2], cols) },
					any(n*k),
					any(k), any(count))
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
			compare(t, "laplacian", func(v vectors) {
				w, d, x, work := v[0], v[1], v[2], v[3]
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
