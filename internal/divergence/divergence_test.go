package divergence

import (
	"math"
	"math/big"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// Tests of the divergences against numbers of 1500 bits and against differences.

func exact(x float64) *big.Float { return new(big.Float).SetPrec(1500).SetFloat64(x) }

// exactLog returns log x: the root of order 2^64, then 2 atanh((r-1)/(r+1)).
func exactLog(x *big.Float) *big.Float {
	r := new(big.Float).Copy(x)
	for range 64 {
		r.Sqrt(r)
	}
	one := exact(1)
	z := new(big.Float).Quo(new(big.Float).Sub(r, one), new(big.Float).Add(r, one))
	z2, sum, power := new(big.Float).Mul(z, z), exact(0), new(big.Float).Copy(z)
	for k := 1; k < 41; k += 2 {
		sum.Add(sum, new(big.Float).Quo(power, exact(float64(k))))
		power.Mul(power, z2)
	}
	return sum.Mul(sum, new(big.Float).SetMantExp(one, 65))
}

// exactExp returns e^x, from the series at x/2^64.
func exactExp(x *big.Float) *big.Float {
	r := new(big.Float).SetMantExp(x, -64)
	sum, term := exact(1), exact(1)
	for k := 1; k < 40; k++ {
		term.Quo(term.Mul(term, r), exact(float64(k)))
		sum.Add(sum, term)
	}
	for range 64 {
		sum.Mul(sum, sum)
	}
	return sum
}

// exactPower returns x^(beta-less). It takes milliseconds, and pairs of few x and t ask for few: each is made
// once.
func exactPower(x, beta, less float64) *big.Float {
	of := [3]float64{x, beta, less}
	if powers[of] == nil {
		powers[of] = exactExp(new(big.Float).Mul(exactLog(exact(x)),
			new(big.Float).Sub(exact(beta), exact(less))))
	}
	return powers[of]
}

var powers = map[[3]float64]*big.Float{}

// exactDivergence is Δ_β(x,t) as the definition has it, and ∂Δ/∂t.
func exactDivergence(beta, x, t float64) (value, slope float64) {
	b, X, T := exact(beta), exact(x), exact(t)
	one := exact(1)
	bm1 := new(big.Float).Sub(b, one)
	v := exact(0)
	switch beta {
	case 0:
		r := new(big.Float).Quo(X, T)
		v.Sub(v.Sub(r, exactLog(r)), one)
	case 1:
		v.Mul(X, new(big.Float).Sub(exactLog(X), exactLog(T)))
		v.Add(v.Sub(v, X), T)
	default:
		tb := exactPower(t, beta, 1)
		v.Add(exactPower(x, beta, 0), new(big.Float).Mul(bm1, new(big.Float).Mul(tb, T)))
		v.Sub(v, new(big.Float).Mul(b, new(big.Float).Mul(X, tb)))
		v.Quo(v, new(big.Float).Mul(b, bm1))
	}
	value, _ = v.Float64()
	slope, _ = new(big.Float).Mul(exactPower(t, beta, 2), new(big.Float).Sub(T, X)).Float64()
	return value, slope
}

// TestBetaNearby: every divergence is what its definition says, and those about β = 0
// and 1 pass through Itakura's and Saito's, and Kullback's and Leibler's.
func TestBetaNearby(t *testing.T) {
	tenth := 0.0
	for range 10 {
		tenth += 0.1
	}
	betas := []float64{-2, -1, 0.5, 1.5, 3, 4, 0, 1, tenth}
	for _, d := range []float64{5e-324, 1e-300, 0x1p-53, 0x1p-40, 1e-9, 1e-5, 1e-3, 0.03, 0x1p-4 - 0x1p-50,
		0x1p-4, 0x1p-4 + 0x1p-50, 0.1} {
		betas = append(betas, d, -d, 1+d, 1-d)
	}
	for i, beta := range betas {
		if testing.Short() && i%7 > 0 {
			continue
		}
		l := Loss(beta)
		for _, x := range []float64{1e-20, 0.3, 1, 1.7, 40} {
			for _, at := range []float64{1e-12, 0.299, 1, 1.0001, 2.5, 1e9} {
				want, slope := exactDivergence(beta, x, at)
				got := l.Value(x, at, l.Least())
				// What cancels is of the size of its terms, in units of t^β.
				size := math.Pow(at, beta) * (1 + x/at*math.Max(1, math.Abs(math.Log(x/at)))) * 16
				if math.Abs(beta*(beta-1)) >= 1.0/17 {
					size += (math.Pow(x, beta) + math.Pow(at, beta)) * 64
				}
				Near(t, got, want, 1e-15*size+1e-13*want, "β %v, Δ(%v, %v)", beta, x, at)
				num, den := make([]float64, 1), make([]float64, 1)
				l.Terms(num, den, []float64{x}, []float64{at}, l.Least())
				Near(t, den[0]-num[0], slope, 1e-13*(num[0]+den[0]), "β %v, ∂Δ(%v, %v)", beta, x, at)
			}
		}
		if beta >= 1e-9 {
			want := math.Pow(2.5, beta) / beta
			Near(t, l.Value(0, 2.5, l.Least()), want, 1e-12*want, "β %v, Δ(0, 2.5)", beta)
		}
	}
}

// TestClose: where x is close to t a divergence has all its digits.
func TestClose(t *testing.T) {
	for _, beta := range []float64{-2, 1.5} {
		l := Loss(beta)
		for _, z := range []float64{0x1p-20, -0.06, 0.07} {
			const at = 3e6
			x := at * (1 + z)
			want, _ := exactDivergence(beta, x, at)
			if got := l.Value(x, at, l.Least()); !(math.Abs(got-want) <= 2e-14*want ||
				math.Abs(z) > closest && math.Abs(got-want) <= 1e-11*want) {
				t.Errorf("β %v, Δ(%v, %v) = %v, want %v", beta, x, at, got, want)
			}
		}
	}
}

// TestSteps: the steps' factors at num/den = 1/4, and the factors of units.
func TestSteps(t *testing.T) {
	for _, c := range []struct{ l, step, square, scale float64 }{
		{-1, -2. / 3, -1. / 2, -3}, {0, -1, -2. / 3, 0}, {0.5, -4. / 3, -4. / 5, 1.5}, {1, -2, -1, 3},
		{1.5, -2, -4. / 3, 4.5}, {2, -2, -2, 6}, {3, -1, -1, 9}, {4, -2. / 3, -2. / 3, 12},
	} {
		l := Loss(c.l)
		for _, den := range []float64{4, 0x1p-900} {
			Near(t, math.Log2(l.Step(den/4, den)), c.step, 1e-15, "Step")
			Near(t, math.Log2(l.StepSquare(den/4, den)), c.square, 1e-15, "StepSquare")
		}
		Near(t, math.Log2(l.Scale(8)), c.scale, 1e-14, "Scale")
		if a, b := l.Step(0, 1), l.StepSquare(0, 0); a != 0 || b != 0 {
			t.Errorf("β %v: steps of 0 are %v and %v", l, a, b)
		}
	}
	for num := 1e-60; num < 1e60; num *= 99 { // no power, which would round
		a, b, c := Frobenius.StepSquare(num, 7), Frobenius.Step(num, 7), KL.Step(num, 7)
		if a != b || b != c || c != num/7 {
			t.Errorf("%v/7 is %v, %v and %v", num, a, b, c)
		}
	}
}

// TestSums: sums over the observed cells and those of weights are those of their divergences.
func TestSums(t *testing.T) {
	const n, low = 200, 0.5
	x, fit, num, den, weight := make([]float64, n), make([]float64, n), make([]float64, n),
		make([]float64, n), make([]float64, n)
	observed := make([]bool, n)
	for j := range x {
		x[j], fit[j], weight[j], observed[j] = float64(j%7), float64(j%11), float64(j%3)/2, j%5 > 0
	}
	for _, l := range []Loss{KL, Frobenius, 0.5, 3} {
		l.Terms(num, den, x, fit, low)
		all, seen, weighted := 0.0, 0.0, 0.0
		for j := range x {
			v := l.Value(x[j], fit[j], low)
			byWeight := v
			switch {
			case l == KL && x[j] == 0: // without the floor, which a sum of no logarithm does not need
				v, byWeight = fit[j], fit[j]
			case l == KL: // whose floor is that of the logarithm alone
				byWeight += fit[j] - max(fit[j], low)
			}
			weighted += weight[j] * byWeight
			all += v
			if observed[j] {
				seen += v
			}
		}
		Near(t, l.Sum(x, fit, num, nil, low), all, 1e-13*all, "all")
		Near(t, l.Sum(x, fit, num, observed, low), seen, 1e-13*seen, "observed")
		Near(t, l.WeightedSum(x, fit, weight, low), weighted, 1e-13*weighted, "weighted")
	}
}

// TestUnits: a divergence is taken in a unit in which no power of it overflows.
func TestUnits(t *testing.T) {
	for _, l := range []Loss{-1, 0, 0.5, KL, Frobenius, 3} {
		for _, p := range [][2]float64{{3, 2}, {3, 0x1p-30}, {0, 2}} {
			for _, e := range []int{-300, 0, 300} {
				if p[0] == 0 && l <= 0 {
					continue
				}
				want := l.Value(p[0], p[1], l.Least()) * l.Unit(e)
				got := l.Divergence(math.Ldexp(p[0], e), math.Ldexp(p[1], e))
				if !(math.Abs(got-want) <= 1e-12*want) && !math.IsInf(want, 0) {
					t.Errorf("β %v, 2^%d: Δ(%v, %v) = %v, want %v", l, e, p[0], p[1], got, want)
				}
			}
		}
		if got := l.Divergence(0, 0); l > 0 && got != 0 {
			t.Errorf("β %v: Δ(0, 0) = %v", l, got)
		}
	}
}

// TestExponentOf: from the bound on, numbers are brought to [1,4) by a square.
func TestExponentOf(t *testing.T) {
	for top, want := range map[float64]int{0: 0, 3: 0, 0x1p-100: 0, 0x1p100: 0, 0x1.8p-101: -102,
		0x1.8p100: 100, 0x1p101: 100, 0x1p-300: -300, 5e-324: -1074, math.MaxFloat64: 1022} {
		Equal(t, ExponentOf(top), want, "of %v", top)
	}
}

// TestDifferentiate compares derivatives with central differences, and values with Value.
func TestDifferentiate(t *testing.T) {
	for _, l := range []Loss{KL, Frobenius, 1.5, 0, -1, 3} {
		var xs, ats []float64 // each three times: below, at and above
		for _, x := range []float64{0, 5e-324, 0.3, 2, 50} {
			for _, at := range []float64{0.1, 1, 2, 40} {
				if x > 1e-300 || l > 0 {
					xs, ats = append(xs, x, x, x), append(ats, at*(1-1e-4), at, at*(1+1e-4))
				}
			}
		}
		count := len(xs)
		n := (count + 7) &^ 7
		for len(xs) < n {
			xs, ats = append(xs, 1), append(ats, 1)
		}
		v := func() []float64 { return make([]float64, n) }
		value, slope, curvature, expected := v(), v(), v(), v()
		l.Differentiate(value, slope, curvature, expected, xs, ats, l.Least())
		s0, c0, e0 := v(), v(), v()
		l.Differentiate(nil, s0, c0, e0, xs, ats, l.Least())
		phi, psi := v(), v()
		l.Split(phi, psi, ats, l.Least())
		same, slopeSame := v(), v()
		l.Differentiate(same, slopeSame, v(), v(), ats, ats, l.Least())
		for i, x := range xs {
			Near(t, value[i], l.Value(x, ats[i], l.Least()), 1e-14*(x+ats[i])*(1+math.Abs(value[i])), "value")
			if s0[i] != slope[i] || c0[i] != curvature[i] || e0[i] != expected[i] {
				t.Errorf("β %v: derivatives without values are others", l)
			}
			Near(t, same[i], 0, 1e-13*(1+l.Scale(ats[i])), "value of equals")
		}
		for i := 1; i < count; i += 3 {
			x, at := xs[i], ats[i]
			h := 1e-4 * at
			scale := expected[i] * (1 + x/at)
			Near(t, slope[i], (value[i+1]-value[i-1])/(2*h), 1e-6*scale*at, "slope")
			Near(t, expected[i], math.Pow(at, float64(l)-2), 1e-12*expected[i], "expected")
			Near(t, curvature[i], (slope[i+1]-slope[i-1])/(2*h), 1e-6*scale, "curvature")
			split := psi[i+1] - psi[i-1] - x*(phi[i+1]-phi[i-1])
			Near(t, split/(2*h), slope[i], 1e-6*scale*at, "ψ - xφ")
		}
	}
}
