package quantmf

// This file holds the divergences that fits minimise.
//
//	Δ_β(x,t) = (x^β + (β-1)t^β - βxt^{β-1}) / (β(β-1)),
//	Δ_2 = (x-t)²/2,   Δ_1 = x log(x/t) - x + t (0 log 0 = 0),   Δ_0 = x/t - log(x/t) - 1,
//	∂Δ/∂t = t^{β-2}(t-x).
//
// Near β = 1 and β = 0 the first form would divide what is left of a cancellation by
// β(β-1). With L = log(x/t) and g(z) = (e^z-1)/z it is, in full precision,
//
//	Δ_β = t^β (x/t L g((β-1)L) + 1 - x/t)/β = t^β (x/t - 1 - L g(βL))/(1-β).
//
// For a model t = Σ_l c_l D_l of parts D >= 0, c >= 0, the multiplicative step
//
//	D_l ← D_l (Σ c_l x t^{β-2} / Σ c_l t^{β-1})^γ,   γ = 1/(2-β) for β < 1, 1 up to β = 2, 1/(β-1) beyond,
//
// never raises the sum of the divergences (Févotte and Idier 2011). It updates
// the factors of NMF and the quantiles of QMF alike.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Loss is a β divergence Δ(x,t) of a fitted value t from an observed one x, named by its
// β.
type Loss float64

const (
	KL        Loss = 1 // generalised Kullback-Leibler, x log(x/t) - x + t: the default
	Frobenius Loss = 2 // (x-t)²/2
)

// Beta returns the divergence of the given β, from -2 to 4: 2 is [Frobenius], 1 is [KL],
// 0 that of Itakura and Saito. It is continuous in β. For β < 1e-9 x must be positive,
// since the divergence from 0 grows as 1/β; for β <= 0 x must be at least 1e-60, and
// within a factor of 1e30 of its largest value.
func Beta(beta float64) Loss { return Loss(beta) }

// Floors of divisors, in value and gradient alike: leastT of t, and leastSum of the sums that
// updates divide by, which are sums of powers of t. They lie far below any x in the units
// of a fit (cells.go).
const (
	leastT   = 1e-100
	leastSum = 1e-300
)

// least is leastT, higher where t^{β-2} would be more than can be summed.
func (l Loss) least() float64 {
	if l < 0 {
		return 1e-50
	}
	return leastT
}

// power returns t^p for t > 0.
func power(t, p float64) float64 { return elem.Exp(float64(p * elem.Log(t))) }

// terms fills num = x t^{β-2} and den = t^{β-1}, with t at least low: the terms that a
// multiplicative step sums. ∂Δ/∂t is den - num. Under KL den is 1, and may be nil.
func (l Loss) terms(num, den, x, t []float64, low float64) {
	if l == KL {
		kernel.Ratio(num, x, t, low)
		for j := range den {
			den[j] = 1
		}
		return
	}
	x, t = x[:len(num)], t[:len(num)]
	den = den[:len(num)]
	for j := range num {
		num[j], den[j] = x[j], max(t[j], low)
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

// scale returns v^β: how the loss grows with the unit of x.
func (l Loss) scale(v float64) float64 {
	switch l {
	case KL:
		return v
	case Frobenius:
		return v * v
	}
	return power(v, float64(l))
}

// gamma is the exponent of the multiplicative step.
func (l Loss) gamma() float64 {
	switch b := float64(l); {
	case b < 1:
		return 1 / (2 - b)
	case b > 2:
		return 1 / (b - 1)
	}
	return 1
}

// step is the factor (num/den)^γ of a multiplicative step.
func (l Loss) step(num, den float64) float64 {
	f := num / max(den, leastSum)
	if l >= 1 && l <= 2 || f == 0 {
		return f
	}
	return power(f, l.gamma())
}

// value returns Δ(x,t); t is not let fall below low, but for Frobenius, which takes any.
func (l Loss) value(x, t, low float64) float64 {
	if l != Frobenius {
		t = max(t, low)
	}
	var v float64
	switch b := float64(l); l {
	case KL:
		if x == 0 {
			return t
		}
		v = float64(x*elem.Log(max(x/t, tinyScale))) + (t - x)
	case Frobenius:
		v = float64((x-t)*(x-t)) / 2
	case 0:
		r := x / t
		v = r - elem.Log(max(r, tinyScale)) - 1
	default:
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

// nearby is how close to 0 or 1 β is where [bridge] holds. At its edge the general
// form has lost one digit.
const nearby = 1.0 / 16

// bridge returns Δ_β(r,1) for β near 0 or near 1.
func bridge(b, r float64) float64 {
	if r == 0 {
		return 1 / b
	}
	log := elem.Log(max(r, tinyScale))
	if b < 0.5 {
		return (r - 1 - float64(log*elem.ExpSlope(float64(b*log)))) / (1 - b)
	}
	return (float64(r*float64(log*elem.ExpSlope(float64((b-1)*log)))) + (1 - r)) / b
}

// sum returns Σ Δ(x_j,t_j) over the observed cells (nil: all). num is that of terms: under
// KL the ratio x/t, whose logarithm is taken.
func (l Loss) sum(x, t, num []float64, observed []bool, low float64) float64 {
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
				some[k] = max(num[j+k], tinyScale)
			}
			kernel.Log(some, some)
		}
		switch {
		case observed != nil && !observed[j]:
		case l != KL:
			*s += l.value(v, t[j], low)
		case v > 0:
			*s += float64(v*logs[j%chunk]) + (max(t[j], low) - v)
		default:
			*s += t[j]
		}
	}
	return max(kernel.Reduce(&lanes), 0) // a divergence is not negative; rounding may make that of a perfect fit so
}

const tinyScale = 1e-300

// divergence returns Δ(x,t) for x and t in any unit, with t at least least() in that unit;
// under Frobenius t may be negative.
func (l Loss) divergence(x, t float64) float64 {
	if l == Frobenius {
		return l.value(x, t, math.Inf(-1))
	}
	top := max(x, t)
	if top == 0 && l > 0 {
		return 0
	}
	if !distant(top) {
		return l.value(x, t, l.least())
	}
	e := exponentOf(top)
	return l.value(math.Ldexp(x, -e), math.Ldexp(t, -e), l.least()) * l.unit(e)
}

// distant tells whether values up to top are too far from 1 to be taken as they are.
func distant(top float64) bool { return top != 0 && !(top >= 0x1p-200 && top <= 0x1p200) }

// exponentOf returns 0 for 0 and for what is within 2^±ordinary, else the even e that
// brings top 2^-e to [1,4).
func exponentOf(top float64) int {
	if top == 0 || top >= 0x1p-100 && top <= 0x1p100 {
		return 0
	}
	_, e := math.Frexp(top)
	return (e - 1) &^ 1
}

// unit returns 2^{βe}: how the loss grows where x and t do by 2^e.
func (l Loss) unit(e int) float64 {
	if p := float64(l) * float64(e); p == math.Trunc(p) {
		return math.Ldexp(1, int(p))
	}
	return elem.Exp(float64(float64(l)*float64(e)) * math.Ln2)
}

// ordinary is the binary exponent up to which a largest value is left as it is, and by
// which the largest value of a row may lie below that of the matrix.
const ordinary = 100
