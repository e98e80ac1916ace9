package main

// The kernel of cells under a map; see internal/kernel/mapped.go for its loop in Go.

// mappedKL keeps the slope of the squash in the slice of slopes while the polynomials have the registers.
func mappedKL(f *Func) {
	loss, count, slope, curvature := f.base("loss", R5), f.length("loss", R2), f.base("slope", R4),
		f.base("curvature", R3)
	w, x, p := f.base("w", R1), f.base("x", R6), f.value("p", R8)
	const coefficient, left = R7, R9
	f.expReady()
	f.shrR(count, Imm(pick(f, 3, 2, 1))) // registers
	const (
		r, d, n, g Vec = 1, 2, 3, 4
		own            = 7
	)
	f.groups(count, pick(f, []int{4, 1}, []int{2, 1}, []int{2, 1}), func(many int) {
		each := func(text func(at func(base Reg) Mem)) {
			f.weave(many, own, func(u int) {
				text(func(base Reg) Mem { return mem(8*f.Lanes*u, base) })
			})
		}
		field := func(v Vec, name string) { f.broadcast(v, f.field(p, "p."+name)) }
		f.base("levels", coefficient)
		each(func(at func(Reg) Mem) {
			f.load(V0, at(w))
			field(V1, "Ref")
			f.sub(V0, V0, V1)
			field(V1, "Shift")
			f.sub(V0, V0, V1)
			field(V1, "Fall")
			f.mul(V0, V0, V1)
			f.min(V0, V0, f.c("farTail", 700))
			f.max(V0, V0, f.c("farStart", -700))
			f.exp(V1, V0, V2, V3, V4, V5, V6)
			f.load(V2, f.c("one", 1))
			f.add(V0, V2, V1)
			f.div(V0, V2, V0)
			f.mul(V1, V1, V0)
			f.mul(V1, V1, V0)
			f.store(at(slope), V1)
			field(V1, "Center")
			f.sub(V0, V0, V1)
			field(V1, "Step")
			f.mul(V0, V0, V1)
			f.exp(r, V0, V2, V3, V4, V5, V6)
			f.broadcast(d, mem(0, coefficient))
			f.broadcast(n, mem(8, coefficient))
		})
		f.length("levels", left)
		f.shrR(left, Imm(1))
		f.decR(left)
		f.loop(left, func() {
			f.advance(16, coefficient)
			each(func(func(Reg) Mem) {
				f.mul(d, d, r)
				f.broadcast(V5, mem(0, coefficient))
				f.add(d, d, V5)
				f.mul(n, n, r)
				f.broadcast(V6, mem(8, coefficient))
				f.add(n, n, V6)
			})
		})
		f.base("slopes", coefficient)
		each(func(func(Reg) Mem) { f.broadcast(g, mem(0, coefficient)) })
		f.length("slopes", left)
		f.decR(left)
		f.groups(left, []int{4, 1}, func(some int) {
			f.advance(8, coefficient)
			each(func(func(Reg) Mem) {
				for i := range some {
					f.mul(g, g, r)
					f.broadcast(V5, mem(8*i, coefficient))
					f.add(g, g, V5)
				}
			})
			f.advance(8*(some-1), coefficient)
		})
		each(func(at func(Reg) Mem) {
			f.load(V5, f.c("one", 1))
			f.div(V5, V5, d) // 1/d
			f.mul(g, g, r)
			f.mul(g, g, V5)
			f.mul(g, g, V5)
			f.mul(g, g, at(slope))
			field(V0, "Line")
			f.add(g, g, V0)
			f.mul(V0, V0, at(w))
			f.mul(V6, n, V5)
			f.add(V6, V6, V0) // t
			f.load(V0, f.c("one", 1))
			f.div(V0, V0, V6) // 1/t
			f.load(V1, at(x))
			f.mul(V2, V1, V0) // x/t
			f.sub(V6, V6, V1)
			field(V3, "Most")
			f.min(V0, V0, V3)
			f.mul(V1, V1, V0)
			f.load(V3, f.c("one", 1))
			f.sub(V1, V3, V1)
			f.mul(V1, V1, g)
			f.store(at(slope), V1)
			f.mul(g, g, g)
			f.mul(g, g, V0)
			f.store(at(curvature), g)
			f.min(V2, V2, f.c("mostRatio", 1e300))
			f.max(V2, V2, f.c("leastRatio", 1/1e300))
			f.roughLogBy(V0, 0, V2, V0, V1, V3, V4, V5)
			f.mul(V2, V2, f.c("ln2", 0x1.62e42fefa39efp-1))
			f.mul(V2, V2, at(x))
			f.add(V2, V2, V6)
			f.clear(V0)
			f.max(V2, V2, V0)
			f.load(V0, at(w))
			f.sub(V0, V0, V0)
			f.add(V2, V2, V0)
			f.store(at(loss), V2)
		})
		f.advance(8*f.Lanes*many, loss, slope, curvature, w, x)
	})
}
