package elem

// Double is an unevaluated sum hi+lo, |lo| <= ulp(hi)/2: about 32 digits, for
// the few places where two sums of weights nearly cancel.
type Double struct{ hi, lo float64 }

func twoSum(a, b float64) Double {
	s := a + b
	t := s - a
	return Double{s, (a - (s - t)) + (b - t)}
}

// twoProduct is the exact product, by splitting both factors (Dekker 1971):
// without a fused multiply-add, whose speed differs a thousandfold.
func twoProduct(a, b float64) Double {
	const split = 1<<27 + 1
	p := float64(a * b)
	t := float64(split * a)
	ah := t - (t - a)
	al := a - ah
	t = float64(split * b)
	bh := t - (t - b)
	bl := b - bh
	e := ((float64(ah*bh) - p) + float64(ah*bl) + float64(al*bh)) + float64(al*bl)
	return Double{p, e}
}

// Plus returns d + x.
func (d Double) Plus(x float64) Double {
	s := twoSum(d.hi, x)
	return twoSum(s.hi, s.lo+d.lo)
}

// Times returns d·e.
func (d Double) Times(e Double) Double {
	p := twoProduct(d.hi, e.hi)
	return twoSum(p.hi, p.lo+(float64(d.hi*e.lo)+float64(d.lo*e.hi)))
}

// Minus returns d - e, rounded once to a float64 where it is not tiny.
func (d Double) Minus(e Double) float64 {
	s := twoSum(d.hi, -e.hi)
	return s.hi + (s.lo + (d.lo - e.lo))
}

// Float64 returns d rounded.
func (d Double) Float64() float64 { return d.hi + d.lo }
