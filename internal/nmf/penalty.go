package nmf

// This file holds the penalties of the factors,
//
//	(L1U Σ U + L2U/2 Σ U²)/d + (L1V Σ V + L2V/2 Σ V²)/n,
//
// which are added to the mean divergence: the objective of scikit-learn's NMF, divided by dn. Both methods
// minimise the sum of the divergences, so weights of the penalties there have the number of visible cells as
// a factor.
//
// A multiplicative update has λ₁ beside the denominator, which keeps it from raising the loss (the term is
// below its tangent power, as all others are). With λ₂ as well the least of the bound is where
//
//	(den + λ₁ + λ₂ b) r = num r^{β-2},   b ← b r,
//
// since a power of r below the second is at most r²/2 and a constant, with the same slope at 1: the exponent
// of the update is 1/(3-β) up to β = 2, and beyond as it was. In Newton's method λ₂ is a part of the gradient
// and of the Hessian, and exact in the bound that the step is taken of.

import "math"

// Penalties are the weights of the penalties, each at least 0.
type Penalties struct{ L1U, L1V, L2U, L2V float64 }

// Any tells whether there is a penalty.
func (p Penalties) Any() bool { return p != Penalties{} }

// Of returns what the penalties add to the mean divergence for the entries of factors of so many rows and
// samples.
func (p Penalties) Of(u, v []float64, d, n int) float64 {
	return p.of(u, p.L1U, p.L2U, d) + p.of(v, p.L1V, p.L2V, n)
}

func (Penalties) of(factor []float64, l1, l2 float64, count int) float64 {
	if l1 == 0 && l2 == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range factor {
		sum += float64((l1 + float64(l2/2*x)) / float64(count) * x)
	}
	return sum
}

// weights are the penalties where the sum of the divergences is minimised.
type weights struct{ u, v, squareU, squareV float64 }

func (p *Problem) weights() weights {
	by := func(weight float64, count int) float64 { return weight * float64(p.Visible) / float64(count) }
	w := p.Penalties
	return weights{by(w.L1U, p.Of), by(w.L1V, p.N), by(w.L2U, p.Of), by(w.L2V, p.N)}
}

// balanced returns the factor of a column of U, its row of V being divided by it, under which the penalties
// are least, given Σu, Σv, Σu² and Σv²: the root s of
//
//	λ₁Σu s + λ₂Σu² s² = λ₁'Σv/s + λ₂'Σv²/s²,
//
// and 1 where a side is 0. Without penalties it makes Σu and Σv equal.
func (w *weights) balanced(u, v, squaresU, squaresV float64) float64 {
	if *w == (weights{}) {
		w = &weights{u: 1, v: 1}
	}
	up, up2, down, down2 := float64(w.u*u), float64(w.squareU*squaresU), float64(w.v*v),
		float64(w.squareV*squaresV)
	if !(up+up2 > 0 && down+down2 > 0) {
		return 1
	}
	if up2 == 0 && down2 == 0 {
		return math.Sqrt(down / up)
	}
	low, high := 0x1p-100, 0x1p100
	for range 64 {
		s := math.Sqrt(low * high)
		if float64(up*s)+float64(up2*s*s) < down/s+down2/s/s {
			low = s
		} else {
			high = s
		}
	}
	return math.Sqrt(low * high)
}

// keepFixed makes 1 of the factors of those entries of rows of U that are given.
func (p *Problem) keepFixed(factors []float64) {
	for ; len(factors) > 0; factors = factors[p.K:] {
		for c := range p.Fixed {
			factors[c] = 1
		}
	}
}
