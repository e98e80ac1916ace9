package main

// The kernels of an NMF by Newton's method; see internal/kernel/newton.go for their loops in Go.

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
				f.units(n, func(b int, h Vec, off int) {
					f.load(sum(0, b, h), mem(64*b+off, q, at.times(1)))
					f.clear(sum(1, b, h))
				})
				f.moveR(xb, x)
				f.length("inverse", inner)
				f.groups(inner, []int{2, 1}, func(m int) {
					for odd := range m {
						f.broadcast(V0, mem(8*odd, c))
						f.units(n, func(b int, h Vec, off int) {
							f.addProduct(sum(odd, b, h), V0, mem(64*b+off, xb), V1)
						})
						f.addR(xb, row)
					}
					f.advance(8*m, c)
				})
				f.broadcast(V0, mem(0, inverse))
				f.units(n, func(b int, h Vec, off int) {
					f.add(sum(0, b, h), sum(0, b, h), sum(1, b, h))
					f.mul(V1, V0, sum(0, b, h))
					f.load(V2, mem(64*b+off, x, at.times(1)))
					f.sub(V1, V2, V1)
					f.max(V1, V1, mem(64*b+off, low, at.times(1)))
					f.store(mem(64*b+off, x, at.times(1)), V1)
				})
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
				f.addProduct(sum+h, V4, mem(off, ga), V3)
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
