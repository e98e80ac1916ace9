package main

import "slices"

// Exponential and logarithm, operation for operation those of internal/elem,
// and what is made of them number by number.

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

// expSetup makes the tables ready: in Z28 to Z31, or at R13.
func (f *fn) expSetup() {
	words := append([]uint64(nil), pow16...)
	for i, v := range pow16lo {
		if f.neon { // in pairs
			words = slices.Insert(words, 2*i+1, bits(v))
		} else {
			words = append(words, bits(v))
		}
	}
	f.i("LEAQ", f.constant("pow16", words...)+"(SB)", "R13")
	if f.wide {
		for i := range 4 {
			f.get(mem(64*i, "R13"), 28+i)
		}
	}
}

// exp fills out with e^x for -708 <= x <= 709.78, and with anything elsewhere. x
// stays; a to e are scratch.
//
// The last step of elem.Exp, a product with 2^e, is a sum in the exponent's bits:
// the result is a normal number there.
func (f *fn) exp(out, x, a, b, c, d, e int) {
	f.opm("VMULPD", a, x, f.c("inv16", 23.083120654223414))
	f.opm("VADDPD", a, a, f.c("shift", 3<<51)) // a: 16e+j in the low bits
	f.opm("VSUBPD", b, a, f.c("shift", 3<<51))
	f.opm("VMULPD", out, b, f.c("ln2hi16", 0.043321698780346196))
	f.sub(c, x, out)
	f.opm("VMULPD", out, b, f.c("ln2lo16", 4.650385693757748e-12))
	f.sub(c, c, out) // c: r
	f.mul(b, c, c)
	f.opm("VMULPD", out, c, f.c("exp6", 0.001388912913898929))
	f.opm("VADDPD", out, out, f.c("exp5", 0.008333471951051991))
	f.mul(out, c, out)
	f.opm("VADDPD", out, out, f.c("exp4", 0.041666666659647446))
	f.mul(out, c, out)
	f.opm("VADDPD", out, out, f.c("exp3", 0.16666666664416968))
	f.mul(out, c, out)
	f.opm("VADDPD", out, out, f.c("exp2", 0.5000000000000006))
	f.mul(out, b, out)
	f.add(out, c, out) // p
	if f.neon {
		f.gatherPairs("R13", 15, a, b, c)
	} else if f.wide {
		f.i("VMOVAPD", f.v(a), f.v(b))
		f.i("VMOVAPD", f.v(a), f.v(c))
		f.i("VPERMI2PD", f.v(29), f.v(28), f.v(b))
		f.i("VPERMI2PD", f.v(31), f.v(30), f.v(c))
	} else {
		f.opm("VPAND", d, a, f.w("fifteen", 15))
		f.op("VPCMPEQQ", e, e, e)
		f.i("VGATHERQPD", f.v(e), "(R13)("+f.v(d)+"*8)", f.v(b))
		f.op("VPCMPEQQ", e, e, e)
		f.i("VGATHERQPD", f.v(e), "128(R13)("+f.v(d)+"*8)", f.v(c))
	}
	f.mul(out, b, out)
	f.add(out, c, out)
	f.add(out, b, out)
	f.i("VPSRLQ", "$4", f.v(a), f.v(a))
	f.i("VPSLLQ", "$52", f.v(a), f.v(a))
	f.op("VPADDQ", out, out, a)
}

// expAll is exp for every x.
func (f *fn) expAll(out, x, a, b, c, d, e int) {
	f.exp(out, x, a, b, c, d, e)
	f.choose(out, x, lt, f.c("underflow", -708), f.c("zero", 0), a)
	f.choose(out, x, gt, f.c("overflow", 709.782712893384), f.w("inf", 0x7ff0000000000000), a)
	f.chooseReg(out, x, un, x, x, a)
}

// log fills out with the logarithm of x > 0; x stays, a to e are scratch.
func (f *fn) log(out, x, a, b, c, d, e int) {
	if f.wide {
		f.i("VGETEXPPD", f.v(x), f.v(a))
		f.i("VGETMANTPD", "$0", f.v(x), f.v(b))
		f.i("VCMPPD", ge, f.c("sqrt2", 1.4142135623730951), f.v(b), f.k())
		f.i("VMULPD", f.c("half", 0.5), f.v(b), f.k(), f.v(b))
		f.i("VADDPD", f.c("one", 1), f.v(a), f.k(), f.v(a))
	} else {
		f.i("VCMPPD", lt, f.c("smallest", 0x1p-1022), f.v(x), f.v(c))
		f.opm("VMULPD", b, x, f.c("lift", 0x1p54))
		f.i("VBLENDVPD", f.v(c), f.v(b), f.v(x), f.v(b))
		f.i("VPSRLQ", "$52", f.v(b), f.v(a))
		f.opm("VPOR", a, a, f.c("two52", 0x1p52))
		f.opm("VSUBPD", a, a, f.c("bias", 0x1p52+1023))
		f.opm("VANDPD", c, c, f.c("fiftyfour", 54))
		f.sub(a, a, c)
		f.opm("VPAND", b, b, f.w("mantissa", 1<<52-1))
		f.opm("VPOR", b, b, f.c("one", 1))
		f.i("VCMPPD", ge, f.c("sqrt2", 1.4142135623730951), f.v(b), f.v(c))
		f.opm("VMULPD", d, b, f.c("half", 0.5))
		f.i("VBLENDVPD", f.v(c), f.v(d), f.v(b), f.v(b))
		f.opm("VANDPD", c, c, f.c("one", 1))
		f.add(a, a, c)
	}
	f.opm("VSUBPD", b, b, f.c("one", 1)) // f
	f.opm("VADDPD", c, b, f.c("two", 2))
	f.div(c, b, c) // s
	f.mul(d, c, c) // z
	f.opm("VMULPD", out, d, f.c("log7", 0.1479906787553036))
	f.opm("VADDPD", out, out, f.c("log6", 0.15313755572933932))
	for _, k := range []struct {
		name string
		v    float64
	}{{"log5", 0.18183575173301295}, {"log4", 0.22222198378313246}, {"log3", 0.2857142874414318}, {"log2", 0.39999999999407476}, {"log1", 0.6666666666666735}} {
		f.mul(out, d, out)
		f.opm("VADDPD", out, out, f.c(k.name, k.v))
	}
	f.mul(out, d, out)
	f.mul(e, b, b)
	f.opm("VMULPD", e, e, f.c("half", 0.5)) // hf
	f.add(out, e, out)
	f.mul(out, c, out)
	f.opm("VMULPD", d, a, f.c("ln2lo", 7.440617110012397e-11))
	f.add(out, out, d)
	f.sub(out, e, out)
	f.sub(out, out, b)
	f.opm("VMULPD", d, a, f.c("ln2hi", 0.6931471804855391))
	f.sub(out, d, out)
}

// logAll is log for every x.
func (f *fn) logAll(out, x, a, b, c, d, e int) {
	f.log(out, x, a, b, c, d, e)
	f.choose(out, x, lt, f.c("zero", 0), f.w("nan", 0x7ff8000000000001), a)
	f.choose(out, x, eq, f.c("zero", 0), f.w("neginf", 0xfff0000000000000), a)
	f.logTop(out, x, a)
}

// logTop sets out to x where x is NaN or +Inf.
func (f *fn) logTop(out, x, t int) {
	if f.wide {
		f.i("VCMPPD", notAtMost, f.w("largest", 0x7fefffffffffffff), f.v(x), f.k())
		f.i("VMOVAPD", f.v(x), f.k(), f.v(out))
		return
	}
	f.i("VCMPPD", notAtMost, f.w("largest", 0x7fefffffffffffff), f.v(x), f.v(t))
	f.i("VBLENDVPD", f.v(t), f.v(x), f.v(out), f.v(out))
}

func exp(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "to_len", "CX")
	f.expSetup()
	f.eachWoven([]string{"DI", "SI"}, 7, pick(f, 28, 14, 28), func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		f.expAll(1, 0, 2, 3, 4, 5, 6)
		put(1, "DI")
	})
}

func log(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "to_len", "CX")
	f.eachWoven([]string{"DI", "SI"}, 7, pick(f, 28, 14, 28), func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		f.logAll(1, 0, 2, 3, 4, 5, 6)
		put(1, "DI")
	})
}

func logistic(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "to_len", "CX")
	f.expSetup()
	f.eachWoven([]string{"DI", "SI"}, 7, pick(f, 28, 14, 28), func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		for i, name := range []string{"ref", "shift", "std", "rate"} {
			f.bcast(f.arg(name), 1)
			f.op([]string{"VSUBPD", "VSUBPD", "VDIVPD", "VMULPD"}[i], 0, 0, 1)
		}
		f.opm(pick(f, "VPXORQ", "VXORPD"), 0, 0, f.w("sign", 1<<63))
		f.expAll(1, 0, 2, 3, 4, 5, 6)
		f.get(f.c("one", 1), 2)
		f.add(1, 2, 1)
		f.div(1, 2, 1)
		put(1, "DI")
	})
}

func divide(f *fn) {
	f.load("to_base", "DI", "a_base", "SI", "z_base", "DX", "to_len", "CX")
	f.each([]string{"DI", "SI", "DX"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		get("DX", 1)
		f.div(0, 0, 1)
		put(0, "DI")
	})
}

func scale(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "to_len", "CX")
	f.bcast(f.arg("c"), f.shared(8))
	f.each([]string{"DI", "SI"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		f.mul(0, 0, f.shared(8))
		put(0, "DI")
	})
}

func multiply(f *fn) {
	f.load("to_base", "DI", "a_base", "SI", "b_base", "DX", "to_len", "CX")
	f.each([]string{"DI", "SI", "DX"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		get("DX", 1)
		f.mul(0, 0, 1)
		put(0, "DI")
	})
}

func weigh(f *fn) {
	f.load("to_base", "DI", "a_base", "SI", "z_base", "DX", "to_len", "CX")
	f.each([]string{"DI", "SI", "DX"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		get("DX", 1)
		f.mul(1, 1, 1)
		f.div(0, 0, 1)
		put(0, "DI")
	})
}

func ratio(f *fn) {
	f.load("num_base", "DI", "x_base", "SI", "t_base", "DX", "num_len", "CX")
	f.bcast(f.arg("low"), f.shared(8))
	f.each([]string{"DI", "SI", "DX"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		get("DX", 1)
		f.op("VMAXPD", 1, f.shared(8), 1)
		f.div(0, 0, 1)
		put(0, "DI")
	})
}

func ratioBack(f *fn) {
	f.load("w_base", "DI", "r_base", "SI", "ybar_base", "DX", "y_base", "BX", "w_len", "CX")
	low, one := f.shared(8), f.shared(9)
	f.bcast(f.arg("low"), low)
	f.get(f.c("one", 1), one)
	f.each([]string{"DI", "SI", "DX", "BX"}, func(get func(string, int), put func(int, string)) {
		get("DI", 0)
		f.op("VMAXPD", 1, low, 0)
		f.div(1, one, 1) // 1/w
		get("SI", 2)
		f.mul(2, 2, 1) // the gradient at y
		get("DX", 3)
		f.add(3, 3, 2)
		put(3, "DX")
		get("BX", 3)
		f.mul(3, 3, 1) // R
		put(3, "SI")
		f.mul(2, 2, 3)
		f.opm(pick(f, "VPXORQ", "VXORPD"), 2, 2, f.w("sign", 1<<63))
		f.keep(2, 0, gt, f.v(low), 1)
		put(2, "DI")
	})
}

func lossKL(f *fn) {
	f.load("x_base", "DI", "t_base", "SI", "r_base", "DX", "x_len", "CX")
	low, acc := pick(f, 31, 8, 16), pick(f, 30, 9, 17)
	f.bcast(f.arg("low"), low)
	for h := range f.h() {
		f.clear(acc + h)
	}
	// x log(max(r,1e-300)) + (max(t,low)-x), or t where x is not above 0. Registers
	// 0 to 6 and out.
	term := func(h, out int, get func(string, int)) {
		get("DX", 1)
		f.get(f.c("tiny", 1e-300), 2)
		f.op("VMAXPD", 1, 2, 1)
		f.log(out, 1, 2, 3, 4, 5, 6)
		f.logTop(out, 1, 2)
		get("DI", 0)
		f.mul(out, 0, out)
		get("SI", 1)
		f.op("VMAXPD", 2, low, 1)
		f.sub(2, 2, 0)
		f.add(out, out, 2)
		f.choose0(1, 0, out, 2)
		f.add(acc+h, acc+h, 1)
	}
	if f.wide {
		many, few := f.label("many"), f.label("few")
		f.at(many)
		f.i("CMPQ", "CX", "$24")
		f.i("JLT", few)
		f.weave(3, 8, func(u int) { term(0, 7, func(reg string, to int) { f.get(mem(64*u, reg), to) }) })
		f.move(192, "DI", "SI", "DX")
		f.i("SUBQ", "$24", "CX")
		f.i("JMP", many)
		f.at(few)
	}
	if f.neon {
		many, few := f.label("many"), f.label("few")
		f.at(many)
		f.i("CMPQ", "CX", "$8")
		f.i("JLT", few)
		for _, h := range []int{0, 2} {
			f.weave(2, 8, func(u int) { term(h+u, 7, func(reg string, to int) { f.get(mem(16*(h+u), reg), to) }) })
		}
		f.move(64, "DI", "SI", "DX")
		f.i("SUBQ", "$8", "CX")
		f.i("JMP", many)
		f.at(few)
	}
	f.blocks([]string{"DI", "SI", "DX"}, func(h int, _ bool, get func(string, int), _ func(int, string)) {
		term(h, pick(f, 7, 11, 7), get)
	})
	if f.wide {
		f.i("VMOVAPD", f.v(acc), f.v(9))
		acc = 9
	}
	f.reduce(f.block(acc), 0)
	f.i("VMOVSD", x(acc), f.arg("ret"))
}

// choose0 sets dst to b where a > 0; t is scratch.
func (f *fn) choose0(dst, a, b, t int) {
	if f.wide {
		f.i("VCMPPD", gt, f.c("zero", 0), f.v(a), f.k())
		f.i("VMOVAPD", f.v(b), f.k(), f.v(dst))
		return
	}
	f.i("VCMPPD", gt, f.c("zero", 0), f.v(a), f.v(t))
	f.i("VBLENDVPD", f.v(t), f.v(b), f.v(dst), f.v(dst))
}

// step is that of Adam, with β1 = 0.9 and β2 = 0.999.
func step(f *fn) {
	f.load("x_base", "DI", "g_base", "SI", "mu_base", "DX", "nu_base", "BX", "x_len", "CX")
	f.bcast(f.arg("rate"), f.shared(8))
	f.bcast(f.arg("c2"), f.shared(9))
	f.each([]string{"DI", "SI", "DX", "BX"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		get("DX", 1)
		get("BX", 2)
		f.opm("VMULPD", 1, 1, f.c("beta1", 0.9))
		f.opm("VMULPD", 3, 0, f.c("rest1", 1-0.9))
		f.add(1, 1, 3)
		put(1, "DX")
		f.opm("VMULPD", 2, 2, f.c("beta2", 0.999))
		f.mul(0, 0, 0)
		f.opm("VMULPD", 3, 0, f.c("rest2", 1-0.999))
		f.add(2, 2, 3)
		put(2, "BX")
		f.div(2, 2, f.shared(9))
		f.i("VSQRTPD", f.v(2), f.v(2))
		f.opm("VADDPD", 2, 2, f.c("eps", 1e-8))
		f.mul(1, f.shared(8), 1)
		f.div(1, 1, 2)
		get("DI", 0)
		f.sub(0, 0, 1)
		put(0, "DI")
	})
}

func extent(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "x_len", "CX")
	f.i("SHRQ", "$3", "CX")
	lo := 2
	hi := f.after(lo)
	f.halves(func(h, off int) {
		f.get(mem(off, "SI"), lo+h)
		f.get(mem(off, "SI"), hi+h)
	})
	f.groups("CX", []int{1}, func(int) {
		f.halves(func(h, off int) {
			f.get(mem(off, "SI"), 0)
			f.op("VMINPD", lo+h, lo+h, 0)
			f.op("VMAXPD", hi+h, hi+h, 0)
		})
		f.move(64, "SI")
	})
	f.reduceWith("VMINPD", "VMINSD", f.block(lo), 0)
	f.reduceWith("VMAXPD", "VMAXSD", f.block(hi), 0)
	f.i("VMOVSD", x(lo), "(DI)")
	f.i("VMOVSD", x(hi), "8(DI)")
}

func shift(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "to_len", "CX")
	f.bcast(f.arg("c"), f.shared(8))
	f.each([]string{"DI", "SI"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		f.sub(0, 0, f.shared(8))
		put(0, "DI")
	})
}

func slopes(f *fn) {
	f.load("s_base", "DI", "x_base", "SI", "s_len", "CX")
	f.bcast(f.arg("eps"), 8)
	f.clear(f.block(9)...)
	f.blocks([]string{"DI", "SI"}, func(h int, _ bool, get func(string, int), put func(int, string)) {
		get("SI", 0)
		f.add(0, 0, 0)
		f.div(0, 0, 8)
		put(0, "DI")
		f.magnitude(0, 0)
		f.op("VMAXPD", 9+h, 9+h, 0)
	})
	f.reduceWith("VMAXPD", "VMAXSD", f.block(9), 0)
	f.i("VMOVSD", x(9), f.arg("ret"))
}

func spread(f *fn) {
	f.load("to_base", "DI", "x_base", "SI", "x_len", "CX")
	f.bcast(f.arg("ref"), 8)
	second, nan := f.after(9), f.after(f.after(9))
	f.clear(slices.Concat(f.block(9), f.block(second), f.block(nan))...)
	f.blocks([]string{"SI"}, func(h int, tail bool, get func(reg string, to int), _ func(int, string)) {
		get("SI", 0)
		f.sub(1, 0, 0)
		f.add(nan+h, nan+h, 1)
		f.sub(1, 0, 8)
		f.hold(1, tail)
		f.magnitude(0, 0)
		f.magnitude(1, 1)
		f.op("VMAXPD", 9+h, 9+h, 1)
		f.op("VMAXPD", second+h, second+h, 0)
	})
	f.reduceWith("VMAXPD", "VMAXSD", f.block(9), 0)
	f.reduceWith("VMAXPD", "VMAXSD", f.block(second), 0)
	f.reduce(f.block(nan), 0)
	f.i("VADDSD", x(nan), x(second), x(second))
	f.i("VMOVSD", x(9), "(DI)")
	f.i("VMOVSD", x(second), "8(DI)")
}

func deviation(f *fn) {
	f.load("x_base", "SI", "x_len", "CX")
	f.bcast(f.arg("ref"), 8)
	f.bcast(f.arg("scale"), 7)
	f.clear(f.block(9)...)
	f.blocks([]string{"SI"}, func(h int, tail bool, get func(string, int), _ func(int, string)) {
		get("SI", 0)
		f.sub(0, 0, 8)
		f.div(0, 0, 7)
		f.hold(0, tail)
		f.add(9+h, 9+h, 0)
	})
	f.reduce(f.block(9), 0)
	f.i("VMOVSD", x(9), f.arg("ret"))
}

func squares(f *fn) {
	f.load("x_base", "SI", "x_len", "CX")
	f.bcast(f.arg("ref"), 8)
	f.bcast(f.arg("scale"), 7)
	f.bcast(f.arg("mean"), 6)
	f.clear(f.block(9)...)
	f.blocks([]string{"SI"}, func(h int, tail bool, get func(string, int), _ func(int, string)) {
		get("SI", 0)
		f.sub(0, 0, 8)
		f.div(0, 0, 7)
		f.sub(0, 0, 6)
		f.mul(0, 0, 0)
		f.hold(0, tail)
		f.add(9+h, 9+h, 0)
	})
	f.reduce(f.block(9), 0)
	f.i("VMOVSD", x(9), f.arg("ret"))
}

func potential(f *fn) {
	f.load("l_base", "DI", "u_base", "SI", "x_base", "DX", "l_len", "CX")
	for i, name := range []string{"eps", "delta", "mean"} {
		f.bcast(f.arg(name), f.shared(3+i))
	}
	f.each([]string{"DI", "SI", "DX"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		get("DI", 1)
		f.sub(0, 0, 1)
		f.mul(0, f.shared(3), 0)
		get("DX", 1)
		f.add(1, 1, f.shared(4))
		f.mul(1, 1, 1)
		f.add(0, 0, 1)
		f.add(0, 0, f.shared(5))
		put(0, "DI")
	})
}

func logisticBack(f *fn) {
	f.load("to_base", "BX", "g_base", "DI", "s_base", "DX", "x_base", "SI", "g_len", "CX")
	for i, name := range []string{"ref", "shift", "std", "rate"} {
		f.bcast(f.arg(name), 3+i)
	}
	second := f.after(9)
	f.clear(append(f.block(9), f.block(second)...)...)
	f.blocks([]string{"DI", "DX", "SI"}, func(h int, tail bool, get func(string, int), put func(int, string)) {
		get("DX", 0)
		f.get(f.c("one", 1), 1)
		f.sub(1, 1, 0)
		f.mul(0, 0, 1)
		f.mul(0, 0, 6)
		get("DI", 1)
		f.mul(0, 1, 0) // w
		put(0, "DI")
		f.add(9+h, 9+h, 0)
		get("SI", 1)
		f.sub(1, 1, 3)
		f.sub(1, 1, 4)
		f.div(1, 1, 5)
		f.mul(0, 0, 1)
		f.hold(0, tail)
		f.add(second+h, second+h, 0)
	})
	f.reduce(f.block(9), 0)
	f.reduce(f.block(second), 0)
	f.i("VMOVSD", x(9), "(BX)")
	f.i("VMOVSD", x(second), "8(BX)")
}

func scoreBack(f *fn) {
	f.load("g_base", "DI", "x_base", "SI", "g_len", "CX")
	for i, name := range []string{"ref", "shift", "std", "mean", "dot"} {
		f.bcast(f.arg(name), f.shared(3+i))
	}
	f.each([]string{"DI", "SI"}, func(get func(string, int), put func(int, string)) {
		get("SI", 0)
		f.sub(0, 0, f.shared(3))
		f.sub(0, 0, f.shared(4))
		f.div(0, 0, f.shared(5))
		f.mul(0, 0, f.shared(7))
		get("DI", 1)
		f.sub(1, 1, f.shared(6))
		f.sub(1, 1, 0)
		f.div(1, 1, f.shared(5))
		put(1, "DI")
	})
}
