package main

// The kernels of an NMF by Newton's method; see internal/kernel/newton.go for their loops in Go.

func curve(f *Func) {
	r, count, q, w, x := f.base("r", R5), f.length("r", R2), f.base("q", R4), f.base("w", R3), f.base("x", R1)
	f.shrR(count, Imm(3))
	low, one, total := pick(f, Vec(30), 14, 26), pick(f, Vec(29), 13, 25), pick(f, Vec(24), 8, 20)
	f.broadcast(low, f.arg("low"))
	f.load(one, f.c("one", 1))
	f.halves(func(h Vec, _ int) { f.clear(total + h) })
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, off int) {
			f.load(V0, mem(off, w))
			f.load(V1, mem(off, x))
			f.sub(V2, V0, V1)
			f.add(total+h, total+h, V2)
			f.max(V0, low, V0)
			f.div(V0, one, V0)
			f.store(mem(off, w), V0)
			f.mul(V1, V1, V0)
			f.store(mem(off, r), V1)
			f.mul(V1, V1, V0)
			f.store(mem(off, q), V1)
		})
		f.advance(64, r, q, w, x)
	})
	f.sumTo(f.result(), total)
}

// stretched takes z in V0 and x in V2 and fills V1 with x z², then V3 with x z² |z| and V0
// with |z|, both 0 where z is not below 0, V0 also where x is not above. V4 and V5 are scratch.
func (f *Func) stretched(take func(third bool)) {
	f.mul(V1, V2, V0)
	f.mul(V1, V1, V0)
	take(false)
	f.negate(V0, V0)
	f.clear(V4)
	f.max(V0, V0, V4)
	f.mul(V3, V1, V0)
	f.keepIf(V0, V2, greater, V4, V5)
	take(true)
}

func stretch(f *Func) {
	c2, count, c3, rho := f.base("c2", R5), f.length("c2", R2), f.base("c3", R4), f.base("rho", R3)
	w, d, x := f.base("w", R1), f.base("d", R6), f.base("x", R7)
	f.shrR(count, Imm(3))
	low := pick(f, Vec(30), 14, 26)
	f.broadcast(low, f.arg("low"))
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, off int) {
			f.load(V0, mem(off, w))
			f.max(V0, low, V0)
			f.load(V1, mem(off, d))
			f.div(V0, V1, V0)
			f.load(V2, mem(off, x))
			f.stretched(func(third bool) {
				if !third {
					f.load(V6, mem(off, c2))
					f.add(V6, V6, V1)
					f.store(mem(off, c2), V6)
					return
				}
				f.load(V6, mem(off, c3))
				f.add(V6, V6, V3)
				f.store(mem(off, c3), V6)
				f.load(V6, mem(off, rho))
				f.max(V6, V6, V0)
				f.store(mem(off, rho), V6)
			})
		})
		f.advance(64, c2, c3, rho, w, d, x)
	})
}

func stretchRow(f *Func) {
	to, v, count, d, x := f.base("to", R5), f.base("v", R4), f.length("v", R2), f.base("d", R3),
		f.base("x", R1)
	f.shrR(count, Imm(3))
	a := pick(f, Vec(8), 8, 8)
	b := f.after(a)
	c := f.after(b)
	f.halves(func(h Vec, _ int) { f.clear(a+h, b+h, c+h) })
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, off int) {
			f.load(V0, mem(off, d))
			f.mul(V0, V0, mem(off, v))
			f.load(V2, mem(off, x))
			f.stretched(func(third bool) {
				if !third {
					f.add(a+h, a+h, V1)
					return
				}
				f.add(b+h, b+h, V3)
				f.max(c+h, c+h, V0)
			})
		})
		f.advance(64, v, d, x)
	})
	f.sumTo(mem(0, to), a)
	f.sumTo(mem(8, to), b)
	f.reduceMax(f.block(c), V1)
	f.storeFirst(mem(16, to), c)
}

// bounded has the sums over components at even places and at odd ones in registers of their own: each
// waits for the one before.
func bounded(f *Func) {
	x, low, q := f.base("x", R5), f.base("low", R4), f.base("q", R7)
	const c, inverse, row, at, xb, inner, outer, sweep, count = R3, R1, R6, R8, R9, R10, R11, R12, R2
	f.moveR(count, f.arg("n"))
	f.moveR(row, count)
	f.shlR(row, Imm(3)) // bytes of a row of x, low and q
	f.shrR(count, Imm(3))
	f.groups(count, pick(f, []int{4, 2, 1}, []int{2, 1}, []int{1}), func(n int) {
		sum := func(odd, b int, h Vec) Vec { return f.nth(V4, odd*n+b, h) }
		f.moveR(sweep, f.arg("sweeps"))
		f.loop(sweep, func() {
			f.base("c", c)
			f.base("inverse", inverse)
			f.zeroR(at)
			f.length("inverse", outer)
			f.loop(outer, func() {
				for b := range n {
					f.halves(func(h Vec, off int) {
						f.load(sum(0, b, h), mem(64*b+off, q, at.times(1)))
						f.clear(sum(1, b, h))
					})
				}
				f.moveR(xb, x)
				f.length("inverse", inner)
				f.groups(inner, []int{2, 1}, func(m int) {
					for odd := range m {
						f.broadcast(V0, mem(8*odd, c))
						for b := range n {
							f.halves(func(h Vec, off int) {
								f.mul(V1, V0, mem(64*b+off, xb))
								f.add(sum(odd, b, h), sum(odd, b, h), V1)
							})
						}
						f.addR(xb, row)
					}
					f.advance(8*m, c)
				})
				f.broadcast(V0, mem(0, inverse))
				for b := range n {
					f.halves(func(h Vec, off int) {
						f.add(sum(0, b, h), sum(0, b, h), sum(1, b, h))
						f.mul(V1, V0, sum(0, b, h))
						f.load(V2, mem(64*b+off, x, at.times(1)))
						f.sub(V1, V2, V1)
						f.max(V1, V1, mem(64*b+off, low, at.times(1)))
						f.store(mem(64*b+off, x, at.times(1)), V1)
					})
				}
				f.addR(at, row)
				f.advance(8, inverse)
			})
		})
		f.advance(64*n, x, low, q)
	})
}

func direction(f *Func) {
	p, b, g, root := f.base("p", R5), f.base("b", R4), f.base("g", R3), f.base("root", R1)
	slope, most, count := f.base("slope", R6), f.base("most", R7), f.length("slope", R2)
	const row, left, pa, ba, ga, ra = R9, R8, R10, R11, R12, R0
	f.moveR(row, count)
	f.shlR(row, Imm(3))
	f.shrR(count, Imm(3))
	sum := pick(f, Vec(8), 8, 8)
	limit := f.after(sum)
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, _ int) {
			f.clear(sum + h)
			f.broadcast(limit+h, f.arg("longest"))
		})
		for _, r := range [][2]Reg{{pa, p}, {ba, b}, {ga, g}, {ra, root}} {
			f.moveR(r[0], r[1])
		}
		f.moveR(left, f.arg("k"))
		f.loop(left, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, pa))
				f.load(V1, mem(off, ba))
				f.load(V2, mem(off, ra))
				f.negate(V4, V1)
				f.mul(V3, V4, V2)
				f.compare(f.mask(V6), V0, greater, V3)
				f.div(V3, V0, V2)
				f.choose(f.mask(V6), V4, V3, V4)
				f.clear(V5)
				f.store(mem(off, pa), V4)
				f.mul(V3, V4, mem(off, ga))
				f.add(sum+h, sum+h, V3)
				f.negate(V4, V4)
				f.div(V2, V1, V4)
				f.copy(V3, limit+h)
				f.compare(f.mask(V6), V4, greater, V5)
				f.choose(f.mask(V6), V3, V2, V3)
				f.min(limit+h, limit+h, V3)
			})
			for _, r := range []Reg{pa, ba, ga, ra} {
				f.addR(r, row)
			}
		})
		f.halves(func(h Vec, off int) {
			f.store(mem(off, slope), sum+h)
			f.store(mem(off, most), limit+h)
		})
		f.advance(64, p, b, g, root, slope, most)
	})
}
