package quantmf

// Tests of the divergences against numbers of 1500 bits and against differences, and of
// the multiplicative updates that lower them against the textbook's.

import (
	"context"
	"math"
	"math/big"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
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
	for i, beta := range betas {
		if testing.Short() && i%7 > 0 {
			continue
		}
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
				l.terms(num, den, []float64{x}, []float64{at}, l.least())
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
		for _, c := range some([]struct{ beta, near float64 }{{1, tenth}, {1, 1 + 0x1p-52}, {1, 1 + 1e-12}, {0, 1e-12}, {0, -5e-324}, {0, -1e-14}}, 0, 4) {
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

// TestDifferentiate compares derivatives with central differences.
func TestDifferentiate(t *testing.T) {
	for _, l := range []Loss{KL, Frobenius, Beta(1.5), Beta(0), Beta(-1), Beta(3)} {
		for _, x := range []float64{0, 0.3, 2, 50} {
			if x == 0 && l <= 0 {
				continue
			}
			for _, at := range []float64{0.1, 1, 2, 40} {
				h := 1e-4 * at
				up, slopeUp, _, _ := differentiate(l, x, at+h, l.least())
				down, slopeDown, _, _ := differentiate(l, x, at-h, l.least())
				_, slope, curvature, expected := differentiate(l, x, at, l.least())
				_, up0, _, _ := differentiate(l, at, at+h, l.least())
				_, down0, _, _ := differentiate(l, at, at-h, l.least())
				scale := expected * (1 + x/at)
				closeTo(t, "slope", []float64{slope}, []float64{(up - down) / (2 * h)}, 1e-6*scale*at)
				closeTo(t, "expected", []float64{expected}, []float64{(up0 - down0) / (2 * h)}, 1e-6*scale)
				if l >= 1 && l <= 2 {
					closeTo(t, "curvature", []float64{curvature}, []float64{(slopeUp - slopeDown) / (2 * h)}, 1e-6*scale)
				}
			}
		}
	}
}

// TestLosses: updates never raise any divergence, and each is what its formula says.
func TestLosses(t *testing.T) {
	x := first(toy(5), 30)
	for i := range x.Data {
		x.Data[i] += 0.01
	}
	for _, l := range some([]Loss{KL, Frobenius, 0, -1, 0.5, 1.5, 3}, 0, 1, 2, 5) {
		n, err := FitNMF(context.Background(), x, 5, WithLoss(l), WithEpochs(60))
		if err != nil {
			t.Fatal(err)
		}
		for e := 1; e < len(n.History); e++ {
			if n.History[e] > n.History[e-1]*(1+1e-12) {
				t.Fatalf("β=%g: the loss rises from %v to %v in epoch %d", l, n.History[e-1], n.History[e], e)
			}
		}
		want := 0.0
		fit := n.Reconstruct()
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				w, b := fit.At(i, j), float64(l)
				switch l {
				case KL:
					want += v*math.Log(v/w) - v + w
				case 0:
					want += v/w - math.Log(v/w) - 1
				default:
					want += (math.Pow(v, b) + (b-1)*math.Pow(w, b) - b*v*math.Pow(w, b-1)) / (b * (b - 1))
				}
			}
		}
		want /= float64(x.Rows * x.Cols)
		if got, err := n.Loss(x); err != nil || math.Abs(got-want) > 1e-9*want || math.Abs(n.History[60]-want) > 1e-9*want {
			t.Errorf("β=%g: Loss %v, History %v, the formula %v", l, got, n.History[60], want)
		}
		for _, ends := range []Ends{EndsFree, EndsPinned} {
			if testing.Short() && (ends == EndsPinned) != (l == Frobenius || l == 1.5) {
				continue
			}
			q, err := FitQMF(context.Background(), x, 5, WithLoss(l), WithEpochs(60), WithEnds(ends), WithShrinkage(0))
			if err != nil {
				t.Fatal(err)
			}
			if q.History[60] > n.History[60] || len(q.Warnings) > 0 {
				t.Errorf("β=%g, %v: QMF %v, NMF %v", l, ends, q.History[60], n.History[60])
			}
			if got, err := q.Loss(x); err != nil || math.Abs(got-q.History[60]) > 1e-9*got {
				t.Errorf("β=%g: Loss %v, %v, History %v", l, got, err, q.History[60])
			}
		}
	}
	if _, err := FitNMF(context.Background(), toyWithZero(), 2, WithLoss(0)); err == nil {
		t.Error("a zero was taken by the divergence of Itakura and Saito")
	}
}

func toyWithZero() Mat {
	x := toy(5)
	x.Set(3, 3, 0)
	return x
}

// TestNMFTextbook compares with the update as Lee and Seung print it, V first.
func TestNMFTextbook(t *testing.T) {
	r := random.Split(4, 4)
	const d, n, k = 37, 29, 5
	x, u, v := NewMat(d, n), NewMat(d, k), NewMat(k, n)
	for _, m := range []Mat{x, u, v} {
		for i := range m.Data {
			m.Data[i] = math.Exp(2 * normal(&r))
			if i%7 == 0 && &m.Data[0] == &x.Data[0] {
				m.Data[i] = 0
			}
		}
	}
	const epochs = 50
	got, err := FitNMF(context.Background(), x, k, WithInit(u, v), WithUpdates(UpdatesMultiplicative), WithEpochs(epochs), WithWorkers(3))
	if err != nil {
		t.Fatal(err)
	}
	uu, vv := u.Clone(), v.Clone()
	ratio := func() Mat {
		w := NewMat(d, n)
		for i := range d {
			product(w.Row(i), uu.Row(i), vv)
			for j := range n {
				w.Set(i, j, x.At(i, j)/w.At(i, j))
			}
		}
		return w
	}
	for range epochs {
		w := ratio()
		next := vv.Clone()
		for c := range k {
			for j := range n {
				num, den := 0.0, 0.0
				for i := range d {
					num += uu.At(i, c) * w.At(i, j)
					den += uu.At(i, c)
				}
				next.Set(c, j, vv.At(c, j)*num/den)
			}
		}
		vv = next
		w = ratio()
		nextU := uu.Clone()
		for i := range d {
			for c := range k {
				num, den := 0.0, 0.0
				for j := range n {
					num += vv.At(c, j) * w.At(i, j)
					den += vv.At(c, j)
				}
				nextU.Set(i, c, uu.At(i, c)*num/den)
			}
		}
		uu = nextU
	}
	closeTo(t, "U", got.U.Data, uu.Data, 1e-9*largest(uu.Data))
	closeTo(t, "V", got.V.Data, vv.Data, 1e-9*largest(vv.Data))
	for e := 1; e <= epochs; e++ {
		if got.History[e] > got.History[e-1]*(1+1e-13) {
			t.Errorf("the loss rises from %v to %v in epoch %d", got.History[e-1], got.History[e], e)
		}
	}
	if l, err := got.Loss(x); err != nil || math.Abs(l-got.History[epochs]) > 1e-12*l {
		t.Errorf("Loss %v, %v; History ends at %v", l, err, got.History[epochs])
	}
}
