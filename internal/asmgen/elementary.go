package main

// Exponential and logarithm, operation for operation those of internal/elem, and the
// kernels that go number by number; see internal/kernel/elementary.go for their loops in
// Go.

import "slices"

// pow16 and pow16lo are 2^(j/16), rounded and the rest.
var pow16 = []uint64{
	0x3ff0000000000000, 0x3ff0b5586cf9890f, 0x3ff172b83c7d517b, 0x3ff2387a6e756238,
	0x3ff306fe0a31b715, 0x3ff3dea64c123422, 0x3ff4bfdad5362a27, 0x3ff5ab07dd485429,
	0x3ff6a09e667f3bcd, 0x3ff7a11473eb0187, 0x3ff8ace5422aa0db, 0x3ff9c49182a3f090,
	0x3ffae89f995ad3ad, 0x3ffc199bdd85529c, 0x3ffd5818dcfba487, 0x3ffea4afa2a490da,
}

var pow16lo = []float64{
	0, 8.551889705537965e-17, -3.046782079812471e-17, 8.912812676025408e-17,
	3.982015231465646e-17, 4.658027591836937e-17, 2.5382502794888315e-17, 7.70094837980299e-17,
	-9.667293313452913e-17, -3.483994556892796e-17, 7.949834809697621e-17, 2.4707192569797888e-17,
	8.199010020581497e-17, 2.960140695448873e-17, 3.283107224245627e-17, -1.0619946056195963e-16,
}

// expReady brings what exp looks up into registers, the address of its table into R11. R12 is scratch of
// AVX2.
func (f *Func) expReady() {
	lo := make([]uint64, len(pow16lo))
	for i, v := range pow16lo {
		lo[i] = bits(v)
	}
	f.tableR(R11, pick(f, "pow16", "pow16pairs", "pow16"), f.powers(pow16, lo))
	f.Arch.powersReady(f, R11)
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
	f.mul(out, c, f.c("exp6", 0.001388912913898929))
	f.add(out, out, f.c("exp5", 0.008333471951051991))
	f.mul(out, c, out)
	f.add(out, out, f.c("exp4", 0.041666666659647446))
	f.mul(out, c, out)
	f.add(out, out, f.c("exp3", 0.16666666664416968))
	f.mul(out, c, out)
	f.add(out, out, f.c("exp2", 0.5000000000000006))
	f.mul(out, b, out)
	f.add(out, c, out)                         // p
	f.Arch.powersLookUp(f, R11, a, b, c, d, e) // b, c: 2^(j/16)
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
	if f.Arch.exponent != nil {
		f.exponent(a, x)
		f.mantissa(b, x)
		f.compare(f.mask(c), b, atLeast, f.c("sqrt2", 1.4142135623730951))
		f.where(f.mask(c), opMul, b, f.c("half", 0.5))
		f.where(f.mask(c), opAdd, a, f.c("one", 1))
	} else {
		f.compare(f.mask(c), x, less, f.c("smallest", 0x1p-1022))
		f.mul(b, x, f.c("lift", 0x1p54))
		f.choose(f.mask(c), b, b, x)
		f.shr(a, b, 52)
		f.or(a, a, f.c("two52", 0x1p52))
		f.sub(a, a, f.c("bias", 0x1p52+1023))
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
	f.mul(out, d, f.c("log7", 0.1479906787553036))
	f.add(out, out, f.c("log6", 0.15313755572933932))
	for _, k := range []struct {
		name string
		v    float64
	}{{"log5", 0.18183575173301295}, {"log4", 0.22222198378313246}, {"log3", 0.2857142874414318},
		{"log2", 0.39999999999407476}, {"log1", 0.6666666666666735}} {
		f.mul(out, d, out)
		f.add(out, out, f.c(k.name, k.v))
	}
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

// logTop sets out to x where x is NaN or +Inf; t is scratch.
func (f *Func) logTop(out, x, t Vec) {
	f.chooseIf(out, x, notAtMost, f.w("largest", 0x7fefffffffffffff), x, t)
}

func exp(f *Func) {
	to, x, count := f.base("to", R5), f.base("x", R4), f.length("to", R2)
	f.expReady()
	f.eachWoven([]Reg{to, x}, count, 7, pick(f, 28, 14, 28), func(get get, put put) {
		get(V0, x)
		f.expAll(V1, V0, V2, V3, V4, V5, V6)
		put(to, V1)
	})
}

func log(f *Func) {
	to, x, count := f.base("to", R5), f.base("x", R4), f.length("to", R2)
	f.eachWoven([]Reg{to, x}, count, 7, pick(f, 28, 14, 28), func(get get, put put) {
		get(V0, x)
		f.logAll(V1, V0, V2, V3, V4, V5, V6)
		put(to, V1)
	})
}

func logistic(f *Func) {
	to, x, z, count := f.base("to", R5), f.base("x", R4), f.value("z", R3), f.length("to", R2)
	f.expReady()
	f.eachWoven([]Reg{to, x}, count, 7, pick(f, 28, 14, 28), func(get get, put put) {
		get(V0, x)
		f.broadcast(V1, f.field(z, "z.Ref"))
		f.sub(V0, V0, V1)
		f.broadcast(V1, f.field(z, "z.Shift"))
		f.sub(V0, V0, V1)
		f.broadcast(V1, f.field(z, "z.Std"))
		f.div(V0, V0, V1)
		f.broadcast(V1, f.arg("rate"))
		f.mul(V0, V0, V1)
		f.negate(V0, V0)
		f.expAll(V1, V0, V2, V3, V4, V5, V6)
		f.load(V2, f.c("one", 1))
		f.add(V1, V2, V1)
		f.div(V1, V2, V1)
		put(to, V1)
	})
}

func divide(f *Func) {
	to, a, z, count := f.base("to", R5), f.base("a", R4), f.base("z", R3), f.length("to", R2)
	f.each([]Reg{to, a, z}, count, func(get get, put put) {
		get(V0, a)
		get(V1, z)
		f.div(V0, V0, V1)
		put(to, V0)
	})
}

func scale(f *Func) {
	to, x, count := f.base("to", R5), f.base("x", R4), f.length("to", R2)
	f.broadcast(f.common(V8), f.arg("c"))
	f.each([]Reg{to, x}, count, func(get get, put put) {
		get(V0, x)
		f.mul(V0, V0, f.common(V8))
		put(to, V0)
	})
}

func multiply(f *Func) {
	to, a, b, count := f.base("to", R5), f.base("a", R4), f.base("b", R3), f.length("to", R2)
	f.each([]Reg{to, a, b}, count, func(get get, put put) {
		get(V0, a)
		get(V1, b)
		f.mul(V0, V0, V1)
		put(to, V0)
	})
}

func multiplyLess(f *Func) {
	to, a, b, c, count := f.base("to", R5), f.base("a", R4), f.base("b", R3), f.base("c", R1),
		f.length("to", R2)
	f.each([]Reg{to, a, b, c}, count, func(get get, put put) {
		get(V0, a)
		get(V1, b)
		f.mul(V0, V0, V1)
		get(V1, c)
		f.sub(V0, V0, V1)
		put(to, V0)
	})
}

func rotate(f *Func) {
	p, count, q := f.base("p", R5), f.length("p", R2), f.base("q", R4)
	cos, sin := f.common(V8), f.common(V9)
	f.broadcast(cos, f.arg("cos"))
	f.broadcast(sin, f.arg("sin"))
	f.each([]Reg{p, q}, count, func(get get, put put) {
		get(V0, p)
		get(V1, q)
		f.mul(V2, V0, cos)
		f.mul(V3, V1, sin)
		f.sub(V2, V2, V3)
		put(p, V2)
		f.mul(V0, V0, sin)
		f.mul(V1, V1, cos)
		f.add(V0, V0, V1)
		put(q, V0)
	})
}

func weigh(f *Func) {
	to, a, z, count := f.base("to", R5), f.base("a", R4), f.base("z", R3), f.length("to", R2)
	f.each([]Reg{to, a, z}, count, func(get get, put put) {
		get(V0, a)
		get(V1, z)
		f.mul(V1, V1, V1)
		f.div(V0, V0, V1)
		put(to, V0)
	})
}

func ratio(f *Func) {
	num, x, t, count := f.base("num", R5), f.base("x", R4), f.base("t", R3), f.length("num", R2)
	f.broadcast(f.common(V8), f.arg("low"))
	f.each([]Reg{num, x, t}, count, func(get get, put put) {
		get(V0, x)
		get(V1, t)
		f.max(V1, f.common(V8), V1)
		f.div(V0, V0, V1)
		put(num, V0)
	})
}

func fisher(f *Func) {
	a, t, count := f.base("a", R5), f.base("t", R4), f.length("a", R2)
	by, low := f.common(V8), f.common(V9)
	f.broadcast(by, f.arg("by"))
	f.broadcast(low, f.arg("low"))
	f.each([]Reg{a, t}, count, func(get get, put put) {
		get(V0, t)
		f.max(V0, low, V0)
		f.div(V0, by, V0)
		get(V1, a)
		f.mul(V0, V0, V1)
		f.mul(V0, V0, V1)
		put(a, V0)
	})
}

func logisticSlope(f *Func) {
	g, s, count := f.base("g", R5), f.base("s", R4), f.length("g", R2)
	c, one := f.common(V8), f.common(V9)
	f.broadcast(c, f.arg("c"))
	f.load(one, f.c("one", 1))
	f.each([]Reg{g, s}, count, func(get get, put put) {
		get(V0, s)
		f.sub(V1, one, V0)
		f.mul(V0, V0, V1)
		f.mul(V0, V0, c)
		get(V1, g)
		f.mul(V0, V1, V0)
		put(g, V0)
	})
}

func ratioBack(f *Func) {
	w, r, ybar, y, count := f.base("w", R5), f.base("r", R4), f.base("ybar", R3), f.base("y", R1),
		f.length("w", R2)
	low, one := f.common(V8), f.common(V9)
	f.broadcast(low, f.arg("low"))
	f.load(one, f.c("one", 1))
	f.each([]Reg{w, r, ybar, y}, count, func(get get, put put) {
		get(V0, w)
		f.max(V1, low, V0)
		f.div(V1, one, V1) // 1/w
		get(V2, r)
		f.mul(V2, V2, V1) // the gradient at y
		get(V3, ybar)
		f.add(V3, V3, V2)
		put(ybar, V3)
		get(V3, y)
		f.mul(V3, V3, V1) // R
		put(r, V3)
		f.mul(V2, V2, V3)
		f.negate(V2, V2)
		f.keepIf(V2, V0, greater, low, V1)
		put(w, V2)
	})
}

func lossKL(f *Func) {
	x, t, r, count := f.base("x", R5), f.base("t", R4), f.base("r", R3), f.length("x", R2)
	low, acc := pick(f, Vec(31), 8, 16), pick(f, Vec(30), 9, 17)
	f.broadcast(low, f.arg("low"))
	f.halves(func(h Vec, _ int) { f.clear(acc + h) })
	// x log(max(r,1e-300)) + (max(t,low)-x), or t where x is not above 0. Registers 0 to 6 and out. AVX2,
	// which weaves no terms, takes no logarithms where no x of a register is above 0, as of most counts.
	term := func(h, out Vec, get get) {
		var zeros, done Label
		if f.Lanes == 4 {
			zeros, done = f.label("zeros"), f.label("term")
			get(V0, x)
			f.compare(f.mask(V1), V0, greater, f.c("zero", 0))
			f.line("VMOVMSKPD Y%d, %s", f.vec(V1), f.regs[R12])
			f.branch(R12, EQ, Imm(0), zeros)
		}
		get(V1, r)
		f.load(V2, f.c("tiny", 1e-300))
		f.max(V1, V2, V1)
		f.log(out, V1, V2, V3, V4, V5, V6)
		f.logTop(out, V1, V2)
		get(V0, x)
		f.mul(out, V0, out)
		get(V1, t)
		f.max(V2, low, V1)
		f.sub(V2, V2, V0)
		f.add(out, out, V2)
		f.chooseIf(V1, V0, greater, f.c("zero", 0), out, V2)
		if f.Lanes == 4 {
			f.jump(done)
			f.at(zeros)
			get(V1, t)
			f.at(done)
		}
		f.add(acc+h, acc+h, V1)
	}
	if f.masked {
		many, few := f.label("many"), f.label("few")
		f.at(many)
		f.branch(count, LT, Imm(24), few)
		f.weave(3, 8, func(u int) {
			get, _ := f.whole(64 * u)
			term(0, 7, get)
		})
		f.advance(192, x, t, r)
		f.subR(count, Imm(24))
		f.jump(many)
		f.at(few)
	}
	if f.Lanes == 2 {
		many, few := f.label("many"), f.label("few")
		f.at(many)
		f.branch(count, LT, Imm(8), few)
		for _, h := range []int{0, 2} {
			f.weave(2, 8, func(u int) {
				get, _ := f.whole(16 * (h + u))
				term(Vec(h+u), 7, get)
			})
		}
		f.advance(64, x, t, r)
		f.subR(count, Imm(8))
		f.jump(many)
		f.at(few)
	}
	f.blocks([]Reg{x, t, r}, count, func(h Vec, _ bool, get get, _ put) {
		term(h, pick(f, V7, V11, V7), get)
	})
	f.sumTo(f.result(), acc)
}

// adamStep is the step of Adam, with β1 = 0.9 and β2 = 0.999.
func adamStep(f *Func) {
	x, g, mu, nu, count := f.base("x", R5), f.base("g", R4), f.base("mu", R3), f.base("nu", R1),
		f.length("x", R2)
	f.broadcast(f.common(V8), f.arg("rate"))
	f.broadcast(f.common(V9), f.arg("c2"))
	f.each([]Reg{x, g, mu, nu}, count, func(get get, put put) {
		get(V0, g)
		get(V1, mu)
		get(V2, nu)
		f.mul(V1, V1, f.c("beta1", 0.9))
		f.mul(V3, V0, f.c("rest1", 1-0.9))
		f.add(V1, V1, V3)
		put(mu, V1)
		f.mul(V2, V2, f.c("beta2", 0.999))
		f.mul(V0, V0, V0)
		f.mul(V3, V0, f.c("rest2", 1-0.999))
		f.add(V2, V2, V3)
		put(nu, V2)
		f.div(V2, V2, f.common(V9))
		f.sqrt(V2, V2)
		f.add(V2, V2, f.c("eps", 1e-8))
		f.mul(V1, f.common(V8), V1)
		f.div(V1, V1, V2)
		get(V0, x)
		f.sub(V0, V0, V1)
		put(x, V0)
	})
}

func extent(f *Func) {
	to, x, count := f.base("to", R5), f.base("x", R4), f.length("x", R2)
	f.shrR(count, Imm(3))
	lo := V2
	hi := f.after(lo)
	f.halves(func(h Vec, off int) {
		f.load(lo+h, mem(off, x))
		f.load(hi+h, mem(off, x))
	})
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, off int) {
			f.load(V0, mem(off, x))
			f.min(lo+h, lo+h, V0)
			f.max(hi+h, hi+h, V0)
		})
		f.advance(64, x)
	})
	f.reduceMin(f.block(lo), V1)
	f.reduceMax(f.block(hi), V1)
	f.storeFirst(mem(0, to), lo)
	f.storeFirst(mem(8, to), hi)
}

func shift(f *Func) {
	to, x, count := f.base("to", R5), f.base("x", R4), f.length("to", R2)
	c := f.common(V8)
	f.broadcast(c, f.arg("c"))
	f.each([]Reg{to, x}, count, func(get get, put put) {
		get(V0, x)
		f.sub(V0, V0, c)
		put(to, V0)
	})
}

func slopes(f *Func) {
	s, x, count := f.base("s", R5), f.base("x", R4), f.length("s", R2)
	f.broadcast(V8, f.arg("eps"))
	f.clear(f.block(V9)...)
	f.blocks([]Reg{s, x}, count, func(h Vec, _ bool, get get, put put) {
		get(V0, x)
		f.add(V0, V0, V0)
		f.div(V0, V0, V8)
		put(s, V0)
		f.magnitude(V0, V0)
		f.max(9+h, 9+h, V0)
	})
	f.reduceMax(f.block(V9), V1)
	f.storeFirst(f.result(), V9)
}

func spread(f *Func) {
	to, x, count := f.base("to", R5), f.base("x", R4), f.length("x", R2)
	f.broadcast(V8, f.arg("ref"))
	second, nan := f.after(V9), f.after(f.after(V9))
	f.clear(slices.Concat(f.block(V9), f.block(second), f.block(nan))...)
	f.blocks([]Reg{x}, count, func(h Vec, tail bool, get get, _ put) {
		get(V0, x)
		f.sub(V1, V0, V0)
		f.add(nan+h, nan+h, V1)
		f.sub(V1, V0, V8)
		f.hold(V1, tail)
		f.magnitude(V0, V0)
		f.magnitude(V1, V1)
		f.max(9+h, 9+h, V1)
		f.max(second+h, second+h, V0)
	})
	f.reduceMax(f.block(V9), V1)
	f.reduceMax(f.block(second), V1)
	f.reduce(f.block(nan), V1)
	f.addFirst(second, second, nan)
	f.storeFirst(mem(0, to), V9)
	f.storeFirst(mem(8, to), second)
}

func deviation(f *Func) {
	x, count := f.base("x", R4), f.length("x", R2)
	f.broadcast(V8, f.arg("ref"))
	f.broadcast(V7, f.arg("scale"))
	f.clear(f.block(V9)...)
	f.blocks([]Reg{x}, count, func(h Vec, tail bool, get get, _ put) {
		get(V0, x)
		f.sub(V0, V0, V8)
		f.div(V0, V0, V7)
		f.hold(V0, tail)
		f.add(9+h, 9+h, V0)
	})
	f.sumTo(f.result(), V9)
}

func squares(f *Func) {
	x, count := f.base("x", R4), f.length("x", R2)
	f.broadcast(V8, f.arg("ref"))
	f.broadcast(V7, f.arg("scale"))
	f.broadcast(V6, f.arg("mean"))
	f.clear(f.block(V9)...)
	f.blocks([]Reg{x}, count, func(h Vec, tail bool, get get, _ put) {
		get(V0, x)
		f.sub(V0, V0, V8)
		f.div(V0, V0, V7)
		f.sub(V0, V0, V6)
		f.mul(V0, V0, V0)
		f.hold(V0, tail)
		f.add(9+h, 9+h, V0)
	})
	f.sumTo(f.result(), V9)
}

func logisticBack(f *Func) {
	to, g, s, x, z, count := f.base("to", R1), f.base("g", R5), f.base("s", R3), f.base("x", R4),
		f.value("z", R6), f.length("g", R2)
	f.broadcast(V3, f.field(z, "z.Ref"))
	f.broadcast(V4, f.field(z, "z.Shift"))
	f.broadcast(V5, f.field(z, "z.Std"))
	f.broadcast(V6, f.arg("rate"))
	second := f.after(V9)
	f.clear(append(f.block(V9), f.block(second)...)...)
	f.blocks([]Reg{g, s, x}, count, func(h Vec, tail bool, get get, put put) {
		get(V0, s)
		f.load(V1, f.c("one", 1))
		f.sub(V1, V1, V0)
		f.mul(V0, V0, V1)
		f.mul(V0, V0, V6)
		get(V1, g)
		f.mul(V0, V1, V0) // w
		put(g, V0)
		f.add(9+h, 9+h, V0)
		get(V1, x)
		f.sub(V1, V1, V3)
		f.sub(V1, V1, V4)
		f.div(V1, V1, V5)
		f.mul(V0, V0, V1)
		f.hold(V0, tail)
		f.add(second+h, second+h, V0)
	})
	f.sumTo(mem(0, to), V9)
	f.sumTo(mem(8, to), second)
}

func scoreBack(f *Func) {
	g, x, z, count := f.base("g", R5), f.base("x", R4), f.value("z", R6), f.length("g", R2)
	ref, shift, std, mean, dot := f.common(V3), f.common(V4), f.common(V5), f.common(V6), f.common(V7)
	f.broadcast(ref, f.field(z, "z.Ref"))
	f.broadcast(shift, f.field(z, "z.Shift"))
	f.broadcast(std, f.field(z, "z.Std"))
	f.broadcast(mean, f.arg("mean"))
	f.broadcast(dot, f.arg("dot"))
	f.each([]Reg{g, x}, count, func(get get, put put) {
		get(V0, x)
		f.sub(V0, V0, ref)
		f.sub(V0, V0, shift)
		f.div(V0, V0, std)
		f.mul(V0, V0, dot)
		get(V1, g)
		f.sub(V1, V1, mean)
		f.sub(V1, V1, V0)
		f.div(V1, V1, std)
		put(g, V1)
	})
}
