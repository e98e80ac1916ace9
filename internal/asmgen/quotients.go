package main

// The ratio of x to a low-rank product W = UV, which never leaves the registers, and their
// difference; see the end of internal/kernel/product.go for the loops in Go.

// roughCoefficients are those of elem.RoughLog2, from the lowest on.
var roughCoefficients = []float64{2.8853900817779268, 0.9617966941545152, 0.5770779266462769,
	0.4122108204781891, 0.3198448046851114, 0.28371821126063973}

// roughEdge has the bits of the root of a half.
const roughEdge = 0x3fe6a09e667f3bcd

// roughLog fills a with elem.RoughLog2 of it; b to g are scratch.
func (f *Func) roughLog(a, b, c, d, e, g Vec) {
	one, mantissa := f.c("one", 1), f.w("mantissa", 1<<52-1)
	shift, edge := f.w("roughShift", 1023<<52-roughEdge), f.w("roughEdge", roughEdge)
	coefficient := func(i int) Const { return f.c("rough"+string(rune('0'+i)), roughCoefficients[i]) }
	f.addInt(a, a, shift)
	f.andInt(b, a, mantissa)
	f.addInt(b, b, edge)
	f.add(c, b, one)
	f.sub(b, b, one)
	f.div(b, b, c) // s
	f.exponent(a, a)
	f.mul(c, b, b) // s²
	f.mul(d, c, coefficient(5))
	f.mul(e, c, coefficient(3))
	f.mul(g, c, c)
	f.add(d, d, coefficient(4))
	f.add(e, e, coefficient(2))
	f.mul(d, d, g)
	f.mul(c, c, coefficient(1))
	f.add(d, d, e)
	f.mul(d, d, g)
	f.add(c, c, coefficient(0))
	f.add(d, d, c)
	f.mul(b, b, d)
	f.add(a, a, b)
}

// quotients is the text for four rows. With curve it has 1/W and X/W² of them, too.
func quotients(curve bool) func(f *Func) {
	return func(f *Func) {
		to, count, v, x := f.base("r", R5), f.length("r", R2), f.base("v", R4), f.base("x", R12)
		const q, w, left = R1, R3, R8
		outputs := []Reg{to}
		if curve {
			outputs = []Reg{to, f.base("q", q), f.base("w", w)}
		}
		f.rowBytes(4, count, samplesR, threeSamplesR)
		f.componentBytes(4, f.length("u", left), componentsR, threeComponentsR)
		low, total, one := pick(f, Vec(22), 14, 22), pick(f, Vec(23), 4, 23), pick(f, Vec(21), 15, 27)
		f.broadcast(low, f.arg("low"))
		if curve {
			f.load(one, f.c("one", 1))
		}
		f.clearBlocks(total, 1)
		f.groups(count, halved(pick(f, 2, 1)), func(n int) {
			f.moveR(vcR, v)
			f.base("u", ucR)
			f.length("u", left)
			f.shrR(left, Imm(2))
			f.component(4, n, V6, true)
			whole := f.label("whole")
			f.decR(left)
			f.jumpIf(EQ, whole)
			f.loop(left, func() { f.component(4, n, V6, false) })
			f.at(whole)
			const stride, threeStrides = vcR, ucR
			f.stride(stride)
			f.triple(threeStrides, stride)
			for b := range n {
				for r := range 4 {
					for h, off := range f.registers(1) {
						w, diff := f.block(V6, r*n+b)+h, 2+h
						store := func(to Reg, from Vec) {
							f.store(fourth(r, to, samplesR, threeSamplesR).plus(64*b+off), from)
						}
						f.load(V0, fourth(r, x, stride, threeStrides).plus(64*b+off))
						if r == 0 {
							f.sub(diff, w, V0)
						} else {
							f.sub(V1, w, V0)
							f.add(diff, diff, V1)
						}
						f.max(w, low, w)
						if !curve {
							f.div(w, V0, w)
							store(to, w)
							continue
						}
						f.div(w, one, w)
						store(outputs[2], w)
						f.mul(V0, V0, w)
						store(to, V0)
						f.mul(V0, V0, w)
						store(outputs[1], V0)
					}
				}
				for h := range f.registers(1) {
					f.add(total+h, total+h, 2+h)
				}
			}
			f.advance(64*n, append(outputs, v, x)...)
		})
		f.sumTo(f.result(), total)
	}
}
