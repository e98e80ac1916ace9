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
	f.groups(count, halved(pick(f, 4, 2, 1)), func(n int) {
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
