package main

// The kernel of a step of V; see internal/kernel/columns.go for its loop in Go.

// descend keeps the step of the entry at hand in registers, and adds what it does to the gradients of the
// entries before, its own and those after in turn. The rows of A of the first two lie together; after them
// each is an entry's more apart.
func descend(f *Func) {
	s, a, rowBytes, count := f.base("s", R5), f.base("a", R4), f.value("n", R6), f.value("n", R2)
	const first, c, left, row, pair, inner, to, apart, sweeps = R3, R1, R9, R10, R11, R12, R0, R7, R8
	const wide = 8 * 32
	const x, g, h, inverse, low, high, entry = 0, wide, 2 * wide, 3 * wide, 4 * wide, 5 * wide, 6 * wide
	f.shlR(rowBytes, Imm(3))
	f.shrR(count, Imm(3))
	f.groups(count, halved(pick(f, 4, 2, 1)), func(n int) {
		const step = V4 // and on
		// add adds to the gradients of the entry at to.
		add := func(by Mem) {
			for i, off := range f.registers(n) {
				f.addProductTo(mem(g+off, to), step+i, by.plus(off), V0)
			}
		}
		// entries writes text, which makes the step of the entry at row, for all, and what follows from it.
		entries := func(diagonal Mem, text func()) {
			f.moveR(row, s)
			f.moveR(first, a)
			f.zeroR(c)
			f.value("k", left)
			next := f.label("entry")
			f.at(next)
			text()
			f.moveR(to, s)
			f.moveR(pair, first)
			own := f.label("own")
			f.moveR(inner, c)
			f.branch(inner, EQ, Imm(0), own)
			f.loop(inner, func() {
				add(mem(0, pair))
				f.addR(pair, rowBytes)
				f.advance(entry, to)
			})
			f.at(own)
			add(diagonal)
			f.addressR(first, mem(0, pair, rowBytes.times(1)))
			f.incR(c)
			f.moveR(apart, c)
			f.mulR(apart, rowBytes)
			last := f.label("last")
			f.moveR(inner, left)
			f.decR(inner)
			f.branch(inner, EQ, Imm(0), last)
			f.loop(inner, func() {
				f.addR(pair, apart)
				f.addR(apart, rowBytes)
				f.advance(entry, to)
				add(mem(0, pair))
			})
			f.at(last)
			f.advance(entry, row)
			f.subR(left, Imm(1))
			f.branch(left, NE, Imm(0), next)
		}
		entries(mem(0, pair), func() {
			for i, off := range f.registers(n) {
				f.load(V0, mem(h+off, row))
				f.load(V1, f.c("one", 1))
				f.div(V1, V1, V0)
				f.keepIf(V1, V0, greater, f.c("leastCurvature", 1e-250), V2)
				f.store(mem(inverse+off, row), V1)
				f.load(step+i, mem(x+off, row))
			}
		})
		again := f.label("sweep")
		f.value("sweeps", sweeps)
		f.at(again)
		entries(mem(h, row), func() {
			for i, off := range f.registers(n) {
				f.load(V0, mem(g+off, row))
				f.mul(V0, V0, mem(inverse+off, row))
				f.load(V1, mem(x+off, row))
				f.sub(V0, V1, V0)
				f.compare(f.mask(V2), V0, unordered, V0)
				f.choose(f.mask(V2), V0, V1, V0)
				f.max(V0, V0, mem(low+off, row))
				f.min(V0, V0, mem(high+off, row))
				f.store(mem(x+off, row), V0)
				f.sub(step+i, V0, V1)
			}
		})
		f.subR(sweeps, Imm(1))
		f.branch(sweeps, NE, Imm(0), again)
		f.advance(64*n, s, a)
	})
}
