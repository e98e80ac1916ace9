package elem

import (
	"math"
	"math/big"
	"testing"
)

// bigExp is e^x from its Taylor series in 200 bits, the argument halved 20 times.
func bigExp(x float64) *big.Float {
	const prec = 200
	r := new(big.Float).SetPrec(prec).SetFloat64(x)
	r.SetMantExp(r, -20)
	sum := new(big.Float).SetPrec(prec).SetInt64(1)
	term := new(big.Float).SetPrec(prec).SetInt64(1)
	for i := int64(1); i < 30; i++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetPrec(prec).SetInt64(i))
		sum.Add(sum, term)
	}
	for range 20 {
		sum.Mul(sum, sum)
	}
	return sum
}

func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	_, e := math.Frexp(w)
	d := new(big.Float).SetPrec(200).Sub(new(big.Float).SetFloat64(got), want)
	d.SetMantExp(d, 53-e)
	f, _ := d.Float64()
	return math.Abs(f)
}

// each is how far numbers that are tried lie apart.
func each() int {
	if testing.Short() {
		return 7
	}
	return 1
}

func TestExp(t *testing.T) {
	worst := 0.0
	for i := 0; i < 20000; i += each() {
		x := -700 + 1400*float64(i)/19999
		if i%2 == 0 {
			x = -1 + 2*float64(i)/19999
		}
		worst = max(worst, ulps(Exp(x), bigExp(x)))
	}
	t.Logf("Exp: %.3f ulp", worst)
	if worst > 0.65 {
		t.Errorf("Exp: %.3f ulp, want at most 0.65", worst)
	}
	for _, c := range [][2]float64{{0, 1}, {-709, 0}, {math.Inf(-1), 0}, {710, math.Inf(1)},
		{math.Inf(1), math.Inf(1)}} {
		if got := Exp(c[0]); got != c[1] {
			t.Errorf("Exp(%v) = %v, want %v", c[0], got, c[1])
		}
	}
	if got := Exp(709.7); got != 1.6549840276802644e+308 {
		t.Errorf("Exp(709.7) = %v", got)
	}
	if !math.IsNaN(Exp(math.NaN())) {
		t.Error("Exp(NaN) is a number")
	}
}

// TestLog checks log by its inverse in high precision: e^log(x) against x,
// where one ulp of the logarithm is a relative error |log x|·2^-53.
func TestLog(t *testing.T) {
	worst := 0.0
	for i := 0; i < 20000; i += each() {
		x := math.Ldexp(1+float64(i)/20000, i%121-60)
		if i%3 == 0 {
			x = 0.5 + float64(i)/20000
		}
		l := Log(x)
		if l == 0 {
			continue
		}
		r := bigExp(l)
		r.Quo(r, new(big.Float).SetPrec(200).SetFloat64(x))
		r.Sub(r, big.NewFloat(1))
		d, _ := r.Float64()
		_, e := math.Frexp(l)
		worst = max(worst, math.Abs(d)/math.Ldexp(1, e-53))
	}
	if worst > 1 {
		t.Errorf("Log: %.3f ulp, want at most 1", worst)
	}
	if got := Log(5e-324); math.Abs(got+744.4400719213812) > 1e-12 {
		t.Errorf("Log(smallest) = %v", got)
	}
	if !math.IsInf(Log(0), -1) || !math.IsNaN(Log(-1)) || !math.IsInf(Log(math.Inf(1)), 1) {
		t.Error("Log at its edges")
	}
	if got := Log1p(1e-18); got != 1e-18 {
		t.Errorf("Log1p(1e-18) = %v", got)
	}
}

// Against Log, which is held to a unit in the last place above.
func TestRoughLog2(t *testing.T) {
	worst, relative := 0.0, 0.0
	see := func(x float64) {
		want := Log(x) / math.Ln2
		err := math.Abs(RoughLog2(x) - want)
		worst = max(worst, err-0x1p-51*math.Abs(want)) // less what sums of k ln2 round
		if want != 0 {
			relative = max(relative, err/math.Abs(want))
		} else if err != 0 {
			t.Errorf("RoughLog2(1) = %v", err)
		}
	}
	for i := range 1 << 18 {
		see(0.5 + 2*float64(i)/(1<<18))
		see(1 + (float64(i)-1<<17)*0x1p-52)
		see(math.Ldexp(1+float64(i)/(1<<18), i%2000-1000))
	}
	for e := 1.0; e > 1e-16; e /= 1.5 { // both sides of 1, from afar
		see(1 - 0.9*e)
		see(1 + e)
	}
	for d := range 9 { // the seam
		see(math.Float64frombits(rootHalf + uint64(d) - 4))
		see(math.Float64frombits(rootHalf + 1<<52 + uint64(d) - 4))
	}
	for _, x := range []float64{0, 5e-324, 0x1p-1023} {
		if got := RoughLog2(x); !(got < -1000 && got > -1100) {
			t.Errorf("RoughLog2(%v) = %v", x, got)
		}
	}
	t.Logf("RoughLog2: %.3g, %.3g of the logarithm", worst, relative)
	if worst > 9e-15 || relative > 1e-13 {
		t.Errorf("RoughLog2 errs by %v and %v of the logarithm, want at most 9e-15 and 1e-13", worst,
			relative)
	}
}

func TestNormalQuantile(t *testing.T) {
	// scipy 1.17.1 norm.ppf, 17 digits.
	for _, c := range [][2]float64{
		{0.5, 0}, {0.025, -1.9599639845400545}, {0.9, 1.2815515655446004}, {1e-3, -3.0902323061678132},
		{1e-10, -6.3613409024040557}, {1e-300, -37.047096299361201}, {0.31, -0.49585034734745331},
	} {
		if got := NormalQuantile(c[0]); math.Abs(got-c[1]) > 2e-15*(1+math.Abs(c[1])) {
			t.Errorf("NormalQuantile(%v) = %.17g, want %.17g", c[0], got, c[1])
		}
	}
}

// TestNormalQuantileSeams: 0 and 1 have no quantile, and each seam belongs to the inner of its two ratios,
// which differ there by a bit.
func TestNormalQuantileSeams(t *testing.T) {
	for p, want := range map[float64]float64{0: math.Inf(-1), 1: math.Inf(1), 0.075: -1.4395314709384557,
		1.3887943864964e-11: -6.6579046435011024} {
		if got := NormalQuantile(p); got != want {
			t.Errorf("NormalQuantile(%v) = %.17g, want %.17g", p, got, want)
		}
	}
}

// TestExpEnds: the last number whose exponential is one, and the first.
func TestExpEnds(t *testing.T) {
	if top := Exp(overflow); top > math.MaxFloat64 || top < 0.999*math.MaxFloat64 ||
		Exp(math.Nextafter(overflow, 999)) <= math.MaxFloat64 {
		t.Errorf("from %v to infinity", top)
	}
	if low := Exp(Underflow); low <= 0 || Exp(math.Nextafter(Underflow, -999)) != 0 {
		t.Errorf("from 0 to %v", low)
	}
}

func TestLog1p(t *testing.T) {
	for _, x := range []float64{0, 1e-300, 1e-17, -1e-16, 1e-9, -1e-9, 0.3, -0.3, 1, 1e9, -0.999} {
		if got, want := Log1p(x), math.Log1p(x); math.Abs(got-want) > 1e-15*math.Abs(want) {
			t.Errorf("Log1p(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestExpMonotone walks across every seam of the table with |x| < 4, 2000
// neighbours on either side. Beyond, one step of x moves e^x by more than Exp errs.
func TestExpMonotone(t *testing.T) {
	for k := -93; k <= 93; k++ {
		seam := (float64(k) + 0.5) * math.Ln2 / 16
		x := seam
		for range 2000 {
			x = math.Nextafter(x, -10)
		}
		last := Exp(x)
		for range 4000 {
			x = math.Nextafter(x, 10)
			e := Exp(x)
			if e < last {
				t.Fatalf("Exp(%v) = %v, below its left neighbour's %v", x, e, last)
			}
			last = e
		}
	}
}

// TestAtan compares with math.Atan, whose error is below two units in the last
// place, and walks across the seams.
func TestAtan(t *testing.T) {
	for i := range 100000 {
		x := math.Sinh(float64(i-50000) / 5000)
		got, want := Atan(x), math.Atan(x)
		if math.Abs(got-want) > 3*0x1p-53*math.Abs(want) {
			t.Fatalf("Atan(%v) = %v, want %v", x, got, want)
		}
	}
	for _, seam := range []float64{0.1, 0.3, tan1, 1, 1.7, tan3, 10, 1000} {
		x := seam
		for range 20000 {
			x = math.Nextafter(x, 0)
		}
		last := Atan(x)
		for range 40000 {
			x = math.Nextafter(x, 1e9)
			v := Atan(x)
			if v < last {
				t.Fatalf("Atan falls at %v: %v after %v", x, v, last)
			}
			last = v
		}
	}
	if Atan(math.Inf(1)) != math.Pi/2 || Atan(0) != 0 || !math.IsNaN(Atan(math.NaN())) {
		t.Error("Atan at its ends")
	}
}

func TestDouble(t *testing.T) {
	// Σ of 1e5 thirds against a third of 1e5, times one another, in 200 bits.
	d := Double{}
	want := new(big.Float).SetPrec(200)
	third := 1.0 / 3
	for i := range 100000 {
		x := float64(third * float64(1+i%7)) // not to be fused with a sum
		d = d.Plus(x)
		want.Add(want, big.NewFloat(x))
	}
	sq := d.Times(d)
	wantSq := new(big.Float).SetPrec(200).Mul(want, want)
	wantSq.Sub(wantSq, big.NewFloat(sq.hi))
	wantSq.Sub(wantSq, big.NewFloat(sq.lo))
	if e, _ := wantSq.Float64(); math.Abs(e) > 1e-29*sq.hi {
		t.Errorf("square off by %g of %g", e, sq.hi)
	}
	near := d.Plus(-1e-12)
	if got := d.Minus(near); math.Abs(got/1e-12-1) > 1e-9 {
		t.Errorf("difference %v, want 1e-12", got)
	}
	if math.Abs(d.Float64()-d.hi) > 1e-10 {
		t.Error("Float64")
	}
}

// TestExpSlope: (e^x-1)/x against its series and, far from 0, its definition.
func TestExpSlope(t *testing.T) {
	for _, size := range []float64{0, 5e-324, 1e-300, 1e-17, 1e-12, 1e-8, 1e-4, 0.01, 0.3, 1, 5, 40, 700} {
		for _, x := range []float64{size, -size} {
			want := 0.0
			if math.Abs(x) < 0.5 {
				for k := 20; k > 0; k-- {
					want = (1 + want*x) / float64(k)
				}
			} else {
				want = math.Expm1(x) / x
			}
			if got := ExpSlope(x); math.Abs(got-want) > 1e-15*want {
				t.Errorf("ExpSlope(%v) = %v, want %v", x, got, want)
			}
		}
	}
	if got := ExpSlope(-800); got != 1.0/800 {
		t.Errorf("ExpSlope(-800) = %v", got)
	}
}
