// Package elem holds the elementary functions of quantmf: exp, log and the
// normal quantile, with the same bits on every platform.
//
// The functions of package math differ between platforms in the last place (on
// amd64 even between processors), and a compiler may fuse x*y+z. Here every
// product that meets a sum is written float64(x*y), which forbids fusing, and
// only +, -, *, / and conversions are used, which IEEE 754 fixes to the bit.
package elem

import "math"

// Underflow is the argument below which [Exp] returns 0: e^-708 is the edge of
// the normal numbers, and denormals slow every later product down.
const Underflow = -708

const (
	overflow = 709.782712893384
	shift    = 3 << 51 // 1.5·2^52: adding it rounds to an integer held in the low bits
	inv16    = 23.083120654223414
	ln2hi16  = 0.043321698780346196 // ln2/16 in 33 bits: k·ln2hi16 is exact for |k| < 2^20
	ln2lo16  = 4.650385693757748e-12
)

// Pow16[j] = bits of 2^(j/16). Loops in assembly have this table, too.
var Pow16 = [16]uint64{
	0x3ff0000000000000, 0x3ff0b5586cf9890f, 0x3ff172b83c7d517b, 0x3ff2387a6e756238,
	0x3ff306fe0a31b715, 0x3ff3dea64c123422, 0x3ff4bfdad5362a27, 0x3ff5ab07dd485429,
	0x3ff6a09e667f3bcd, 0x3ff7a11473eb0187, 0x3ff8ace5422aa0db, 0x3ff9c49182a3f090,
	0x3ffae89f995ad3ad, 0x3ffc199bdd85529c, 0x3ffd5818dcfba487, 0x3ffea4afa2a490da,
}

// Pow16Lo[j] = 2^(j/16) less the number that Pow16[j] is.
var Pow16Lo = [16]float64{
	0, 8.551889705537965e-17, -3.046782079812471e-17, 8.912812676025408e-17,
	3.982015231465646e-17, 4.658027591836937e-17, 2.5382502794888315e-17, 7.70094837980299e-17,
	-9.667293313452913e-17, -3.483994556892796e-17, 7.949834809697621e-17, 2.4707192569797888e-17,
	8.199010020581497e-17, 2.960140695448873e-17, 3.283107224245627e-17, -1.0619946056195963e-16,
}

// Exp returns e^x within 0.65 units in the last place; 0 below [Underflow], +Inf
// above 709.78, NaN for NaN.
//
// x = (16e+j) ln2/16 + r with |r| <= ln2/32, so e^x = 2^e · 2^(j/16) · e^r; the
// last factor is a minimax polynomial of degree 6 (error 1.2e-17).
//
// Exp never falls where x rises. For one (e, j) every operation is increasing,
// neighbouring r being much further apart than the rounding in what is added to
// them; at the seams between two j the tests try every pair where e^x moves by
// less than two units in the last place.
func Exp(x float64) float64 {
	if !(x >= Underflow) {
		if x != x {
			return x
		}
		return 0
	}
	if x > overflow {
		return math.Inf(1)
	}
	t := float64(x*inv16) + shift
	k := math.Float64bits(t)
	t -= shift
	r := x - float64(t*ln2hi16) - float64(t*ln2lo16)
	r2 := float64(r * r)
	p := 0.008333471951051991 + float64(r*0.001388912913898929)
	p = 0.041666666659647446 + float64(r*p)
	p = 0.16666666664416968 + float64(r*p)
	p = 0.5000000000000006 + float64(r*p)
	p = r + float64(r2*p)
	e := k >> 4
	s := math.Float64frombits(Pow16[k&15])
	v := s + (Pow16Lo[k&15] + float64(s*p))
	if x > 709 { // 2^e may not be representable: scale in two steps
		return float64(v*math.Float64frombits((e+1022)<<52)) * 2
	}
	return float64(v * math.Float64frombits((e+1023)<<52))
}

const (
	ln2   = 0.6931471805599453
	ln2hi = 0.6931471804855391 // ln2 in 33 bits
	ln2lo = 7.440617110012397e-11
	sqrt2 = 1.4142135623730951
)

// Log returns the natural logarithm within one unit in the last place; -Inf
// for 0, NaN below it.
//
// x = 2^k (1+f) with 1+f in [1/√2, √2), and with s = f/(2+f)
// log(1+f) = 2 atanh s = f - s(f - s²P(s²)), P a minimax polynomial (2.5e-18).
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	k := 0
	if x < 0x1p-1022 {
		x *= 0x1p54
		k = -54
	}
	b := math.Float64bits(x)
	k += int(b>>52) - 1023
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m >= sqrt2 {
		m /= 2
		k++
	}
	f := m - 1
	s := f / (2 + f)
	z := float64(s * s)
	p := 0.15313755572933932 + float64(z*0.1479906787553036)
	p = 0.18183575173301295 + float64(z*p)
	p = 0.22222198378313246 + float64(z*p)
	p = 0.2857142874414318 + float64(z*p)
	p = 0.39999999999407476 + float64(z*p)
	p = 0.6666666666666735 + float64(z*p)
	p = float64(z * p)
	hf := float64(0.5 * float64(f*f))
	kf := float64(k)
	return float64(kf*ln2hi) - ((hf - (float64(s*(hf+p)) + float64(kf*ln2lo))) - f)
}

const rootHalf = 0x3fe6a09e667f3bcd // bits of the root of a half

// RoughLog2 returns the binary logarithm of a normal number 0 < x < 2^1023 within 9e-15
// and two units in the last place, and within 1e-13 of its own size: for sums of many,
// at half the time of [Log] where there are vectors.
//
// x = 2^k m with m in [√½, √2), and with s = (m-1)/(m+1) log m = 2 atanh s = s P(s²),
// P a minimax polynomial (6.1e-15), here over log 2. Of 0 and subnormal numbers it is
// some number below -1000.
func RoughLog2(x float64) float64 {
	const bits = 1<<52 - 1
	t := math.Float64bits(x) + (1023<<52 - rootHalf)
	m := math.Float64frombits(t&bits + rootHalf)
	k, s := float64(int64(t>>52)-1023), (m-1)/(m+1)
	z := float64(s * s)
	z2 := float64(z * z)
	p := float64((float64(z*0.28371821126063973)+0.3198448046851114)*z2) +
		(float64(z*0.4122108204781891) + 0.5770779266462769)
	p = float64(p*z2) + (float64(z*0.9617966941545152) + 2.8853900817779268)
	return k + float64(s*p)
}

// Log1p returns log(1+x) for x > -1, accurate near 0.
func Log1p(x float64) float64 {
	u := 1 + x
	if u == 1 {
		return x
	}
	return Log(u) * (x / (u - 1)) // the rounding of u cancels to first order (Kahan)
}

// Middle returns (a+b)/2 without overflow.
func Middle(a, b float64) float64 { return float64(a*0.5) + float64(b*0.5) }

// ExpSlope returns (e^x-1)/x, 1 at 0, to a few units in the last place.
func ExpSlope(x float64) float64 {
	u := Exp(x)
	switch u {
	case 1:
		return 1
	case 0:
		return -1 / x
	}
	return (u - 1) / Log(u) // the rounding of u cancels to first order (Kahan)
}

// Logistic returns 1/(1+e^-x), in [0,1], non-decreasing at every pair of
// numbers as [Exp] is: each operation is.
func Logistic(x float64) float64 { return 1 / (1 + Exp(-x)) }

// Atan returns the arc tangent within one unit in the last place, non-decreasing
// at every pair of numbers that the tests could find.
//
// |x| is brought below tan(π/8) by atan x = π/4 + atan((x-1)/(x+1)) or
// π/2 - atan(1/x); there atan x = x + x³P(x²), P a minimax polynomial (3.4e-17).
func Atan(x float64) float64 {
	if x < 0 {
		return -Atan(-x)
	}
	if !(x > tan1) { // and NaN
		return atanSmall(x)
	}
	if x <= tan3 {
		return quarterPi + (atanSmall((x-1)/(x+1)) + quarterPiLo)
	}
	return 2*quarterPi - (atanSmall(1/x) - 2*quarterPiLo)
}

const (
	tan1        = 0.41421356237309503 // tan π/8
	tan3        = 2.414213562373095   // tan 3π/8
	quarterPi   = 0.7853981633974483
	quarterPiLo = 3.061616997868383e-17
)

func atanSmall(x float64) float64 {
	z := float64(x * x)
	p := -0.04360558663889517 + float64(z*0.02127684864954237)
	p = 0.05693073380464486 + float64(z*p)
	p = -0.06641228986285733 + float64(z*p)
	p = 0.07690081397779025 + float64(z*p)
	p = -0.09090783392456056 + float64(z*p)
	p = 0.1111110669785778 + float64(z*p)
	p = -0.142857141963922 + float64(z*p)
	p = 0.19999999999103113 + float64(z*p)
	p = -0.3333333333333021 + float64(z*p)
	return x + float64(x*float64(z*p))
}

// NormalQuantile returns the x at which the standard normal distribution
// function is p, 0 < p < 1, to a relative error of 1e-15 (Wichura 1988,
// algorithm AS 241); -Inf at 0, +Inf at 1.
func NormalQuantile(p float64) float64 {
	switch {
	case p <= 0:
		return math.Inf(-1)
	case p >= 1:
		return math.Inf(1)
	}
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * ratio(r, &central)
	}
	r := p
	if q > 0 {
		r = 1 - p
	}
	r = math.Sqrt(-Log(r))
	var x float64
	if r <= 5 {
		x = ratio(r-1.6, &middle)
	} else {
		x = ratio(r-5, &tail)
	}
	if q < 0 {
		return -x
	}
	return x
}

// Coefficients of numerator and denominator, lowest power first.
var (
	central = [2][8]float64{
		{3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
			1.3731693765509461125e+4,
			4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4,
			2.5090809287301226727e+3},
		{1, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
			2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
			5.2264952788528545610e+3},
	}
	middle = [2][8]float64{
		{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
			3.64784832476320460504e0,
			1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
			7.74545014278341407640e-4},
		{1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
			1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
			1.05075007164441684324e-9},
	}
	tail = [2][8]float64{
		{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
			2.96560571828504891230e-1,
			2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
			2.01033439929228813265e-7},
		{1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
			7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
			2.04426310338993978564e-15},
	}
)

func ratio(r float64, c *[2][8]float64) float64 {
	var v [2]float64
	for i := range c {
		s := c[i][7]
		for j := 6; j >= 0; j-- {
			s = float64(s*r) + c[i][j]
		}
		v[i] = s
	}
	return v[0] / v[1]
}
