package main

// The kernels of an NMF by Newton's method; see internal/kernel/newton.go for their loops in Go.

// bounded has the sums over components at even places and at odd ones in registers of their own: each
// waits for the one before.
func bounded(f *Func) {
	x, low, q := f.base("x", R5), f.base("low", R4), f.base("q", R7)
	const c, inverse, row, at, xb, inner, outer, sweep, count = R3, R1, R6, R8, R9, R10, R11, R12, R2
	f.value("n", count)
	f.wholeBlocks(count, row)
	f.groups(count, halved(pick(f, 4, 2, 1)), func(n int) {
		sum := func(odd int) Vec { return f.block(V4, odd*n) }
		f.value("sweeps", sweep)
		f.loop(sweep, func() {
			f.base("c", c)
			f.base("inverse", inverse)
			f.zeroR(at)
			f.length("inverse", outer)
			f.loop(outer, func() {
				for h, off := range f.registers(n) {
					f.load(sum(0)+h, mem(off, q, at.times(1)))
					f.clear(sum(1) + h)
				}
				f.moveR(xb, x)
				f.length("inverse", inner)
				f.groups(inner, []int{2, 1}, func(m int) {
					for odd := range m {
						f.broadcast(V0, mem(8*odd, c))
						f.addProducts(sum(odd), n, V0, mem(0, xb))
						f.addR(xb, row)
					}
					f.advance(8*m, c)
				})
				f.broadcast(V0, mem(0, inverse))
				for h, off := range f.registers(n) {
					s, place := sum(0)+h, mem(off, x, at.times(1))
					f.add(s, s, sum(1)+h)
					f.mul(V1, V0, s)
					f.load(V2, place)
					f.sub(V1, V2, V1)
					f.max(V1, V1, mem(off, low, at.times(1)))
					f.store(place, V1)
				}
				f.addR(at, row)
				f.advance(8, inverse)
			})
		})
		f.advance(64*n, x, low, q)
	})
}
