package quantmf

// Tests of the divergences against numbers of 1500 bits.

import (
	"context"
	"math"
	"math/big"
	"testing"
)

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

// exactDivergence is Δ_β(x,t) as the definition has it, and ∂Δ/∂t.
func exactDivergence(beta, x, t float64) (value, slope float64) {
	b, X, T := exact(beta), exact(x), exact(t)
	log := exactLog(T)
	power := func(base *big.Float, p *big.Float) *big.Float {
		return exactExp(new(big.Float).Mul(exactLog(base), p))
	}
	one := exact(1)
	bm1 := new(big.Float).Sub(b, one)
	v := exact(0)
	switch beta {
	case 0:
		r := new(big.Float).Quo(X, T)
		v.Sub(v.Sub(r, exactLog(r)), one)
	case 1:
		v.Mul(X, new(big.Float).Sub(exactLog(X), log))
		v.Add(v.Sub(v, X), T)
	default:
		tb := power(T, bm1)
		v.Add(power(X, b), new(big.Float).Mul(bm1, new(big.Float).Mul(tb, T)))
		v.Sub(v, new(big.Float).Mul(b, new(big.Float).Mul(X, tb)))
		v.Quo(v, new(big.Float).Mul(b, bm1))
	}
	value, _ = v.Float64()
	s := power(T, new(big.Float).Sub(bm1, one))
	slope, _ = s.Mul(s, new(big.Float).Sub(T, X)).Float64()
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
	for _, d := range []float64{5e-324, 1e-300, 0x1p-53, 0x1p-40, 1e-9, 1e-5, 1e-3, 0.03, 0x1p-4 - 0x1p-50, 0x1p-4, 0x1p-4 + 0x1p-50, 0.1} {
		betas = append(betas, d, -d, 1+d, 1-d)
	}
	for _, beta := range betas {
		l := Beta(beta)
		for _, x := range []float64{1e-20, 0.3, 1, 1.7, 40} {
			for _, at := range []float64{1e-12, 0.299, 1, 1.0001, 2.5, 1e9} {
				want, slope := exactDivergence(beta, x, at)
				got := l.value(x, at, l.least())
				// What cancels is of the size of its terms, in units of t^β.
				size := math.Pow(at, beta) * (1 + x/at*math.Max(1, math.Abs(math.Log(x/at)))) * 16
				if math.Abs(beta*(beta-1)) >= 1.0/17 {
					size += (math.Pow(x, beta) + math.Pow(at, beta)) * 64
				}
				if math.Abs(got-want) > 1e-15*size+1e-13*want {
					t.Errorf("β %v, Δ(%v, %v) = %v, want %v", beta, x, at, got, want)
				}
				num, den := make([]float64, 1), make([]float64, 1)
				l.parts(num, den, []float64{x}, []float64{at}, l.least())
				if d := den[0] - num[0]; math.Abs(d-slope) > 1e-13*(num[0]+den[0]) {
					t.Errorf("β %v, ∂Δ(%v, %v) = %v, want %v", beta, x, at, d, slope)
				}
			}
		}
		if beta > leastBeta {
			if got, want := l.value(0, 2.5, l.least()), math.Pow(2.5, beta)/beta; math.Abs(got-want) > 1e-12*want {
				t.Errorf("β %v, Δ(0, 2.5) = %v, want %v", beta, got, want)
			}
		}
	}
}

// TestFitsOfBetaNearby: a fit is continuous in β where it passes 0 and 1.
func TestFitsOfBetaNearby(t *testing.T) {
	ctx := context.Background()
	x := near1(9, 10, 16)
	tenth := 0.0
	for range 10 {
		tenth += 0.1
	}
	for name, fit := range fits(ctx, 2) {
		for _, c := range []struct{ beta, near float64 }{{1, tenth}, {1, 1 + 0x1p-52}, {1, 1 + 1e-12}, {0, 1e-12}, {0, -5e-324}, {0, -1e-14}} {
			opts := func(beta float64) []FitOption {
				o := []FitOption{WithLoss(Beta(beta)), WithEpochs(15)}
				if name == "NMF" { // Newton's method takes β = 1 itself alone
					o = append(o, WithUpdates(UpdatesMultiplicative))
				}
				return o
			}
			a, err1 := fit(x, opts(c.beta)...)
			b, err2 := fit(x, opts(c.near)...)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			allFinite(t, name, b, x)
			want, _ := a.Loss(x)
			got, _ := b.Loss(x)
			if math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s: at β %v %v, at %v %v", name, c.near, got, c.beta, want)
			}
			if d := largestDifference(a.Reconstruct().Data, b.Reconstruct().Data); d > 1e-4 {
				t.Errorf("%s: at β %v another fit than at %v, by %v", name, c.near, c.beta, d)
			}
			if n, is := b.(*NMF); is {
				for e := 1; e < len(n.History); e++ {
					if n.History[e] > n.History[e-1]*(1+1e-12) {
						t.Errorf("β %v: the loss rises from %v to %v", c.near, n.History[e-1], n.History[e])
					}
				}
			}
		}
	}
}
