package main

// Exponential and logarithm, operation for operation those of internal/elem.

import (
	"fmt"

	"github.com/quantmf/quantmf/internal/elem"
)

// eachWithTheOther has pairs of both parts of a table, so that one load brings them.
func eachWithTheOther(hi, lo []uint64) (words []uint64) {
	for i := range hi {
		words = append(words, hi[i], lo[i])
	}
	return words
}

// expReady brings what exp looks up into registers, the address of its table into R11. R12 is scratch of
// AVX2.
func (f *Func) expReady() {
	lo := make([]uint64, len(elem.Pow16Lo))
	for i, v := range elem.Pow16Lo {
		lo[i] = bits(v)
	}
	f.tableR(R11, pick(f, "pow16", "pow16pairs", "pow16"), f.powers(elem.Pow16[:], lo))
	if f.powersReady != nil {
		f.powersReady(R11)
	}
}

// polynomial fills out with that of x with the coefficients, the lowest first, whose constants have the name
// and numbers from first on.
func (f *Func) polynomial(out, x Vec, name string, first int, coefficients ...float64) {
	constant := func(i int) Const { return f.c(fmt.Sprint(name, first+i), coefficients[i]) }
	highest := len(coefficients) - 1
	from := Operand(constant(highest))
	for i := highest - 1; i >= 0; i-- {
		f.mul(out, x, from)
		f.add(out, out, constant(i))
		from = out
	}
}

// exp fills out with e^x for -708 <= x <= 709.78, and with anything elsewhere. x
// stays; a to e are scratch.
//
// The last step of elem.Exp, a product with 2^e, is a sum in the exponent's bits:
// the result is a normal number there.
func (f *Func) exp(out, x, a, b, c, d, e Vec) {
	f.mul(a, x, f.c("inv16", 23.083120654223414))
	f.add(a, a, f.c("shift", 3<<51)) // a: 16e+j in the low bits
	f.sub(b, a, f.c("shift", 3<<51))
	f.mul(out, b, f.c("ln2hi16", 0.043321698780346196))
	f.sub(c, x, out)
	f.mul(out, b, f.c("ln2lo16", 4.650385693757748e-12))
	f.sub(c, c, out) // c: r
	f.mul(b, c, c)
	f.polynomial(out, c, "exp", 2, 0.5000000000000006, 0.16666666664416968, 0.041666666659647446,
		0.008333471951051991, 0.001388912913898929)
	f.mul(out, b, out)
	f.add(out, c, out)                 // p
	f.powersLookUp(R11, a, b, c, d, e) // b, c: 2^(j/16)
	f.mul(out, b, out)
	f.add(out, c, out)
	f.add(out, b, out)
	f.shr(a, a, 4)
	f.shl(a, a, 52)
	f.addInt(out, out, a)
}

// expAll is exp for every x.
func (f *Func) expAll(out, x, a, b, c, d, e Vec) {
	f.exp(out, x, a, b, c, d, e)
	f.chooseIf(out, x, less, f.c("underflow", -708), f.c("zero", 0), a)
	f.chooseIf(out, x, greater, f.c("overflow", 709.782712893384), f.w("inf", 0x7ff0000000000000), a)
	f.chooseIf(out, x, unordered, x, x, a)
}

// log fills out with the logarithm of x > 0; x stays, a to e are scratch.
func (f *Func) log(out, x, a, b, c, d, e Vec) {
	// x = 2^a b with b from √½ on.
	if f.mantissa != nil {
		f.exponent(a, x)
		f.mantissa(b, x)
		f.compare(f.mask(c), b, atLeast, f.c("sqrt2", 1.4142135623730951))
		f.where(f.mask(c), opMul, b, f.c("half", 0.5))
		f.where(f.mask(c), opAdd, a, f.c("one", 1))
	} else {
		f.compare(f.mask(c), x, less, f.c("smallest", 0x1p-1022))
		f.mul(b, x, f.c("lift", 0x1p54))
		f.choose(f.mask(c), b, b, x)
		f.exponent(a, b)
		f.and(c, c, f.c("fiftyfour", 54))
		f.sub(a, a, c)
		f.andInt(b, b, f.w("mantissa", 1<<52-1))
		f.or(b, b, f.c("one", 1))
		f.compare(f.mask(c), b, atLeast, f.c("sqrt2", 1.4142135623730951))
		f.mul(d, b, f.c("half", 0.5))
		f.choose(f.mask(c), b, d, b)
		f.and(c, c, f.c("one", 1))
		f.add(a, a, c)
	}
	f.sub(b, b, f.c("one", 1)) // f
	f.add(c, b, f.c("two", 2))
	f.div(c, b, c) // s
	f.mul(d, c, c) // z
	f.polynomial(out, d, "log", 1, 0.6666666666666735, 0.39999999999407476, 0.2857142874414318,
		0.22222198378313246, 0.18183575173301295, 0.15313755572933932, 0.1479906787553036)
	f.mul(out, d, out)
	f.mul(e, b, b)
	f.mul(e, e, f.c("half", 0.5)) // hf
	f.add(out, e, out)
	f.mul(out, c, out)
	f.mul(d, a, f.c("ln2lo", 7.440617110012397e-11))
	f.add(out, out, d)
	f.sub(out, e, out)
	f.sub(out, out, b)
	f.mul(d, a, f.c("ln2hi", 0.6931471804855391))
	f.sub(out, d, out)
}

// logAll is log for every x.
func (f *Func) logAll(out, x, a, b, c, d, e Vec) {
	f.log(out, x, a, b, c, d, e)
	f.chooseIf(out, x, less, f.c("zero", 0), f.w("nan", 0x7ff8000000000001), a)
	f.chooseIf(out, x, equal, f.c("zero", 0), f.w("neginf", 0xfff0000000000000), a)
	f.logTop(out, x, a)
}

// logAbove is log for every x but those up to 0.
func (f *Func) logAbove(out, x, a, b, c, d, e Vec) {
	f.log(out, x, a, b, c, d, e)
	f.logTop(out, x, a)
}

// logTop sets out to x where x is NaN or +Inf; t is scratch.
func (f *Func) logTop(out, x, t Vec) {
	f.chooseIf(out, x, notAtMost, f.w("largest", 0x7fefffffffffffff), x, t)
}
