// Package divergence has the β divergences that fits minimise, from observed values x to fitted
// values t (paper §3.1; Févotte and Idier 2011):
//
//	Δ_β(x,t) = (x^β + (β-1)t^β - βxt^{β-1}) / (β(β-1)),
//	Δ_2 = (x-t)²/2,   Δ_1 = x log(x/t) - x + t (0 log 0 = 0),   Δ_0 = x/t - log(x/t) - 1,
//	∂Δ/∂t = t^{β-2}(t-x).
//
// Near β = 1 and β = 0 the first form divides a difference that has lost its digits by
// β(β-1). With L = log(x/t) and g(z) = (e^z-1)/z the same number is, in full precision,
//
//	Δ_β = t^β (x/t L g((β-1)L) + 1 - x/t)/β = t^β (x/t - 1 - L g(βL))/(1-β).
//
// Where x is close to t all of these lose digits, and the binomial series of x^β has them all: with z = x/t -
// 1
//
//	Δ_β = t^β z²/2 (1 + (β-2)/3 z (1 + (β-3)/4 z (1 + (β-4)/5 z (1 + ...)))).
//
// For a model t = Σ_l c_l D_l of parts D >= 0, c >= 0, the multiplicative step
//
//	D_l ← D_l (Σ c_l x t^{β-2} / Σ c_l t^{β-1})^γ,   γ = 1/(2-β) for β < 1, 1 up to β = 2, 1/(β-1) beyond,
//
// never raises the sum of the divergences (Févotte and Idier 2011). It updates
// the factors of NMF and the quantiles of QMF alike.
package divergence

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Loss is a divergence, named by its β, from -2 to 4.
type Loss float64

const (
	KL        Loss = 1
	Frobenius Loss = 2
)

// Floors of divisors, in values and gradients: LeastT is that of t, LeastSum that of the sums of powers of
// t by which updates divide. They lie far below any x in the units in which fits work.
const (
	LeastT   = 1e-100
	LeastSum = 1e-300
)

// Least returns LeastT, or a higher floor for β < 0, where sums of t^{β-2} would overflow.
func (l Loss) Least() float64 {
	if l < 0 {
		return 1e-50
	}
	return LeastT
}

// power returns t^p for t > 0, and 0 of 0 for p > 0.
func power(t, p float64) float64 { return elem.Exp(float64(p * elem.Log(t))) }

// Terms fills num = x t^{β-2} and den = t^{β-1}, with t at least low: the terms that a
// multiplicative step sums. ∂Δ/∂t is den - num. Under KL den is 1, and may be nil.
func (l Loss) Terms(num, den, x, t []float64, low float64) {
	if l == KL {
		kernel.Ratio(num, x, t, low)
		for j := range den {
			den[j] = 1
		}
		return
	}
	x, t = x[:len(num)], t[:len(num)]
	den = den[:len(num)]
	copy(num, x)
	for j, v := range t {
		if v < low {
			v = low
		}
		den[j] = v
	}
	if l == Frobenius {
		return
	}
	kernel.Log(num, den) // num is v^{β-2} for a while, see power
	for j, v := range num {
		num[j] = float64((float64(l) - 2) * v)
	}
	kernel.Exp(num, num)
	for j, p := range num {
		num[j], den[j] = float64(x[j]*p), float64(den[j]*p)
	}
}

// Scale returns v^β: the factor of the loss where x and t are multiplied by v.
func (l Loss) Scale(v float64) float64 {
	switch l {
	case KL:
		return v
	case Frobenius:
		return v * v
	}
	return power(v, float64(l))
}

// Stiffness returns w^{2-β}: the inverse of the curvature of the divergence of w from itself.
func (l Loss) Stiffness(w float64) float64 {
	switch l {
	case KL:
		return w
	case Frobenius:
		return 1
	}
	return power(max(w, l.Least()), 2-float64(l))
}

// Step is the factor (num/den)^γ of a multiplicative step.
func (l Loss) Step(num, den float64) float64 {
	f, b := num/max(den, LeastSum), float64(l)
	gamma := 1 / max(2-b, 1, b-1)
	if gamma == 1 {
		return f
	}
	return power(f, gamma)
}

// StepSquare is Step where den holds the derivative of a multiple of t² too: never further, and without ever
// raising the sum with that (internal/nmf/penalty.go).
func (l Loss) StepSquare(num, den float64) float64 {
	f := num / max(den, LeastSum)
	switch {
	case l >= Frobenius:
		return l.Step(num, den)
	case l == KL:
		return math.Sqrt(f)
	}
	return power(f, 1/(3-float64(l)))
}

// Value returns Δ(x,t), with low in place of a smaller t, except under Frobenius, which takes any t.
func (l Loss) Value(x, t, low float64) float64 {
	if l != Frobenius {
		t = max(t, low)
	}
	var v float64
	switch b := float64(l); l {
	case KL:
		if x == 0 {
			return t
		}
		v = float64(x*elem.Log(max(x/t, Tiny))) + (t - x)
	case Frobenius:
		v = float64((x-t)*(x-t)) / 2
	case 0:
		r := x / t
		v = r - elem.Log(max(r, Tiny)) - 1
	default:
		if z := x - t; math.Abs(z) <= closest*t {
			v = float64(power(t, b) * series(b, z/t))
			break
		}
		if math.Abs(b) < nearby || math.Abs(b-1) < nearby {
			v = float64(power(t, b) * bridge(b, x/t))
			break
		}
		xb := 0.0
		if x > 0 {
			xb = power(x, b)
		}
		tb := power(t, b-1)
		v = (xb + float64((b-1)*float64(t*tb)) - float64(b*float64(x*tb))) / (b * (b - 1))
	}
	return max(v, 0) // a divergence is not negative; rounding may make that of a perfect fit so
}

// nearby is the distance of β from 0 or 1 within which [bridge] is used. At this distance the general
// form has lost one digit.
const nearby = 1.0 / 16

// bridge returns Δ_β(r,1) for β near 0 or near 1.
func bridge(b, r float64) float64 {
	if r == 0 {
		return 1 / b
	}
	log := elem.Log(max(r, Tiny))
	if b < 0.5 { // b lies by 0 or by 1, not here
		return (r - 1 - float64(log*elem.ExpSlope(float64(b*log)))) / (1 - b)
	}
	return (float64(r*float64(log*elem.ExpSlope(float64((b-1)*log)))) + (1 - r)) / b
}

// closest is the share of t within which x is for [series]. At this distance the general form has lost three
// digits.
const closest = 1.0 / 16

// inverses are 1/k.
var inverses = func() (inverses [18]float64) {
	for k := range inverses {
		inverses[k] = 1 / float64(k)
	}
	return
}()

// series returns Δ_β(1+z,1) for |z| up to closest, to a few units in the last place.
func series(b, z float64) float64 {
	s := 1.0
	for k := len(inverses) - 1; k > 2; k-- {
		s = 1 + float64(float64((b-float64(k-1))*inverses[k])*float64(z*s))
	}
	return float64(z*z) / 2 * s
}

// Sum returns Σ Δ(x_j,t_j) over the observed cells (nil: all). num is that of Terms: under
// KL the ratio x/t, whose logarithm is taken.
func (l Loss) Sum(x, t, num []float64, observed []bool, low float64) float64 {
	if l == KL && observed == nil {
		return max(kernel.LossKL(x, t, num, low), 0)
	}
	var lanes [kernel.Lanes]float64
	const chunk = 8 * kernel.Lanes
	var logs [chunk]float64
	for j, v := range x {
		s := &lanes[j%kernel.Lanes]
		if l == KL && j%chunk == 0 {
			some := logs[:min(chunk, len(x)-j)]
			for k := range some {
				some[k] = max(num[j+k], Tiny)
			}
			kernel.Log(some, some)
		}
		switch {
		case observed != nil && !observed[j]:
		case l != KL:
			*s += l.Value(v, t[j], low)
		case v > 0:
			*s += float64(v*logs[j%chunk]) + (max(t[j], low) - v)
		default:
			*s += t[j]
		}
	}
	// a divergence is not negative; rounding may make that of a perfect fit so
	return max(kernel.Reduce(&lanes), 0)
}

// WeightedSum returns Σ weight_j Δ(x_j,t_j) for weights >= 0. Under KL, where wΔ(x,t) = Δ(wx,wt), low is a
// floor of t in the logarithm alone.
func (l Loss) WeightedSum(x, t, weight []float64, low float64) (sum float64) {
	if l == KL || l == Frobenius {
		var a, b, c [64]float64
		for len(x) > 0 {
			n := min(len(x), len(a))
			sum += l.weightedSome(a[:n], b[:n], c[:n], x[:n], t[:n], weight[:n], low)
			x, t, weight = x[n:], t[n:], weight[n:]
		}
		return sum
	}
	var lanes [kernel.Lanes]float64
	for j, w := range weight[:len(x)] {
		if w > 0 {
			lanes[j%kernel.Lanes] += float64(w * l.Value(x[j], t[j], low))
		}
	}
	return kernel.Reduce(&lanes)
}

// weightedSome is WeightedSum of some cells under KL or Frobenius; a, b and c have room for as many.
func (l Loss) weightedSome(a, b, c, x, t, weight []float64, low float64) float64 {
	if l == KL {
		kernel.Multiply(a, x, weight)
		kernel.Multiply(b, t, weight)
		kernel.Ratio(c, x, t, low)
		return max(kernel.LossKL(a, b, c, 0), 0)
	}
	sum := 0.0
	for j, w := range weight {
		d := x[j] - t[j]
		sum += float64(w * float64(d*d))
	}
	return sum / 2
}

// Tiny is the least number of which a logarithm is taken.
const Tiny = 1e-300

// Divergence returns Δ(x,t) for x and t in any unit, with t at least Least() in that unit;
// under Frobenius t may be negative.
func (l Loss) Divergence(x, t float64) float64 {
	if l == Frobenius {
		return l.Value(x, t, math.Inf(-1))
	}
	top := max(x, t)
	if top == 0 && l > 0 {
		return 0
	}
	if !Distant(top) {
		return l.Value(x, t, l.Least())
	}
	e := ExponentOf(top)
	return l.Value(math.Ldexp(x, -e), math.Ldexp(t, -e), l.Least()) * l.Unit(e)
}

// Distant tells whether values up to top are too far from 1 to be taken as they are.
func Distant(top float64) bool { return top != 0 && !(top >= 0x1p-200 && top <= 0x1p200) }

// ExponentOf returns 0 for a top that is 0 or within 2^±Ordinary, else the even e with top 2^-e in [1,4).
func ExponentOf(top float64) int {
	if top == 0 || top >= 0x1p-100 && top <= 0x1p100 {
		return 0
	}
	_, e := math.Frexp(top)
	return (e - 1) &^ 1
}

// Unit returns 2^{βe}: the factor of the loss where x and t are multiplied by 2^e.
func (l Loss) Unit(e int) float64 {
	if p := float64(l) * float64(e); p == math.Trunc(p) {
		return math.Ldexp(1, int(p))
	}
	return elem.Exp(float64(float64(l)*float64(e)) * math.Ln2)
}

// Ordinary is the binary exponent up to which a largest value is left as it is, and by
// which the largest value of a row may lie below that of the matrix.
const Ordinary = 100

// Differentiate fills, number by number, value with Δ(x,t), unless value is nil; slope with ∂Δ/∂t;
// curvature with ∂²Δ/∂t²; and expected with the curvature at x = t, which is positive under any β.
// For slope, curvature and expected, low takes the place of a smaller t.
func (l Loss) Differentiate(value, slope, curvature, expected, x, t []float64, low float64) {
	n := len(slope)
	x, t, curvature, expected = x[:n], t[:n], curvature[:n], expected[:n]
	least := min(l.Least(), low)
	if l == KL {
		copy(expected, t)
		kernel.Curve(slope, curvature, expected, x, n, 1, low)
		kernel.Log(value, slope)
		for j, log := range value {
			t, y := t[j], x[j]
			v := float64(y*log) + (t - y)
			switch {
			case v > 0 && t >= low: // also where y is 0 and log is finite
			case y > 0 && t >= low: // x/t may be 0
				v = max(float64(y*max(log, lowest))+(t-y), 0)
			default:
				v = l.Value(y, t, least)
			}
			value[j] = v
		}
		kernel.Shift(slope, slope, 1)
		kernel.Scale(slope, slope, -1)
		return
	}
	for j := range value {
		value[j] = l.Value(x[j], t[j], least)
	}
	if l == Frobenius {
		for j, y := range x {
			slope[j], curvature[j], expected[j] = max(t[j], low)-y, 1, 1
		}
		return
	}
	b := float64(l)
	for j, y := range x {
		t := max(t[j], low)
		p := power(t, b-2)
		slope[j], expected[j] = float64(p*(t-y)), p
		curvature[j] = float64(p * ((b - 1) + float64((2-b)*(y/t))))
	}
}

// lowest is below the logarithm of any positive number.
const lowest = -1000

// Split fills phi and psi with φ(t) and ψ(t) of Δ(x,t) = ψ(t) - x φ(t) + terms of x alone, with low in
// place of a smaller t.
func (l Loss) Split(phi, psi, t []float64, low float64) {
	b := float64(l)
	for j, t := range t {
		if l == Frobenius {
			phi[j], psi[j] = t, float64(t*t)/2
			continue
		}
		t = max(t, low)
		switch l {
		case KL:
			phi[j], psi[j] = elem.Log(t), t
		case 0:
			phi[j], psi[j] = -1/t, elem.Log(t)
		default:
			p := power(t, b-1)
			phi[j], psi[j] = p/(b-1), float64(p*t)/b
		}
	}
}
