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
	f.groups(count, pick(f, []int{4, 2, 1}, []int{2, 1}, []int{1}), func(n int) {
		step := func(b int, part Vec) Vec { return f.nth(V4, b, part) }
		each := func(text func(step Vec, off int)) {
			for b := range n {
				f.halves(func(part Vec, off int) { text(step(b, part), 64*b+off) })
			}
		}
		// add adds to the gradients of the entry at to.
		add := func(by func(off int) Mem) {
			each(func(step Vec, off int) {
				f.mul(V0, step, by(off))
				f.add(V0, V0, mem(g+off, to))
				f.store(mem(g+off, to), V0)
			})
		}
		off := func(off int) Mem { return mem(off, pair) }
		// entries writes text, which makes the step of the entry at row, for all, and what follows from it.
		entries := func(diagonal func(off int) Mem, text func()) {
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
				add(off)
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
				add(off)
			})
			f.at(last)
			f.advance(entry, row)
			f.subR(left, Imm(1))
			f.branch(left, NE, Imm(0), next)
		}
		entries(off, func() {
			each(func(step Vec, off int) {
				f.load(V0, mem(h+off, row))
				f.load(V1, f.c("one", 1))
				f.div(V1, V1, V0)
				f.keepIf(V1, V0, greater, f.c("leastCurvature", 1e-250), V2)
				f.store(mem(inverse+off, row), V1)
				f.load(step, mem(x+off, row))
			})
		})
		again := f.label("sweep")
		f.moveR(sweeps, f.arg("sweeps"))
		f.at(again)
		entries(func(off int) Mem { return mem(h+off, row) }, func() {
			each(func(step Vec, off int) {
				f.load(V0, mem(g+off, row))
				f.mul(V0, V0, mem(inverse+off, row))
				f.load(V1, mem(x+off, row))
				f.sub(V0, V1, V0)
				f.compare(f.mask(V2), V0, unordered, V0)
				f.choose(f.mask(V2), V0, V1, V0)
				f.max(V0, V0, mem(low+off, row))
				f.min(V0, V0, mem(high+off, row))
				f.store(mem(x+off, row), V0)
				f.sub(step, V0, V1)
			})
		})
		f.subR(sweeps, Imm(1))
		f.branch(sweeps, NE, Imm(0), again)
		f.advance(64*n, s, a)
	})
}

// beginColumns and stepColumns are what Go makes of smaller kernels, with the rows in registers.

func beginColumns(f *Func) {
	s, a, b, mean := f.base("s", R5), f.base("a", R4), f.base("b", R3), f.base("mean", R6)
	const row, stride, count, to, pair, apart, left, g, vc = R9, R10, R2, R7, R8, R11, R0, R12, R1
	const wide = 8 * 32
	f.value("n", row)
	f.moveR(count, row)
	f.shlR(row, Imm(3))
	f.shrR(count, Imm(3))
	f.value("stride", stride)
	f.shlR(stride, Imm(3))
	f.broadcast(V3, f.arg("share"))
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, _ int) { f.clear(V4 + h) })
		f.moveR(to, s)
		f.moveR(pair, a)
		f.moveR(g, b)
		f.base("v", vc)
		f.addR(vc, s)
		f.base("s", left)
		f.subR(vc, left)
		f.moveR(apart, row)
		f.value("k", left)
		f.loop(left, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, vc))
				f.store(mem(off, to), V0)
				f.mul(V0, V0, V3)
				f.add(V4+h, V4+h, V0)
				f.load(V1, mem(off, g))
				f.negate(V1, V1)
				f.store(mem(wide+off, to), V1)
				f.load(V2, mem(off, pair))
				f.store(mem(2*wide+off, to), V2)
			})
			f.addR(vc, stride)
			f.addR(g, row)
			f.addR(apart, row)
			f.addR(pair, apart)
			f.advance(6*wide, to)
		})
		f.halves(func(h Vec, off int) { f.store(mem(off, mean), V4+h) })
		f.advance(64, s, a, b, mean)
	})
}

// stepColumns keeps the gradients of an entry in registers while all that the steps of others do to them is
// added up, in the order of the steps, and leaves out what comes after the last step of an entry. The steps
// of the entries lie after their rows.
func stepColumns(f *Func) {
	s, a, count, row := f.base("s", R5), f.base("a", R4), f.value("n", R2), f.value("n", R6)
	const to, e, sweeps, v, mean, pair, inner, apart, at, steps, first = R0, R1, R3, R3, R3, R7, R8, R9, R10,
		R11, R12
	const wide = 8 * 32
	const x, g, h, inverse, low, high, entry = 0, wide, 2 * wide, 3 * wide, 4 * wide, 5 * wide, 6 * wide
	f.shlR(row, Imm(3))
	f.shrR(count, Imm(3))
	f.groups(count, []int{4, 2, 1}, func(n int) {
		each := func(text func(sum Vec, off int)) {
			for b := range n {
				f.halves(func(part Vec, off int) { text(f.nth(V4, b, part), 64*b+off) })
			}
		}
		add := func() {
			each(func(sum Vec, off int) {
				f.load(V0, mem(off, to))
				f.mul(V0, V0, mem(off, pair))
				f.add(sum, sum, V0)
			})
		}
		// before adds what the entries before do: their rows begin at to, each so many bytes after the one
		// before. The count is in inner.
		before := func(bytes int) {
			none := f.label("before")
			f.branch(inner, EQ, Imm(0), none)
			f.loop(inner, func() {
				add()
				f.addR(pair, row)
				f.advance(bytes, to)
			})
			f.at(none)
		}
		// after adds what the entries after do. pair is at the curvature along the entry.
		after := func(bytes int) {
			none := f.label("after")
			f.value("k", inner)
			f.subR(inner, e)
			f.decR(inner)
			f.branch(inner, EQ, Imm(0), none)
			f.moveR(apart, e)
			f.incR(apart)
			f.mulR(apart, row)
			f.loop(inner, func() {
				f.addR(pair, apart)
				f.addR(apart, row)
				add()
				f.advance(bytes, to)
			})
			f.at(none)
		}
		entries := func(text func()) {
			f.moveR(at, s)
			f.moveR(first, a)
			f.zeroR(e)
			next := f.label("entry")
			f.at(next)
			text()
			f.advance(entry, at)
			f.incR(e)
			f.moveR(apart, e)
			f.mulR(apart, row)
			f.addR(first, apart)
			f.value("k", inner)
			f.branch(e, LT, inner, next)
		}

		f.base("mean", mean)
		f.addR(mean, s)
		f.base("s", inner)
		f.subR(mean, inner)
		f.base("by", inner)
		for i := range Vec(4) {
			f.broadcast(V12+i, mem(8*int(i), inner))
		}
		entries(func() {
			each(func(sum Vec, off int) {
				f.mul(V0, V12, mem(h+off, at))
				f.store(mem(h+off, at), V0)
				f.load(V1, f.c("one", 1))
				f.div(V1, V1, V0)
				f.keepIf(V1, V0, greater, f.c("leastCurvature", 1e-250), V2)
				f.store(mem(inverse+off, at), V1)
				f.load(V0, mem(x+off, at))
				f.mul(V1, V0, V13)
				f.store(mem(low+off, at), V1)
				f.mul(V1, V0, V14)
				f.mul(V2, V15, mem(off, mean))
				f.add(V1, V1, V2)
				f.store(mem(high+off, at), V1)
				f.load(sum, mem(g+off, at))
			})
			f.moveR(to, s)
			f.moveR(pair, first)
			f.moveR(inner, e)
			f.incR(inner)
			before(entry)
			f.subR(pair, row)
			after(entry)
			each(func(sum Vec, off int) { f.store(mem(g+off, at), sum) })
		})

		f.value("k", steps)
		f.moveR(apart, steps)
		f.shlR(steps, Imm(10)) // 4 of the 6 rows of each entry
		f.shlR(apart, Imm(9))  // 2
		f.addR(steps, apart)
		f.addR(steps, s)
		f.value("sweeps", sweeps)
		again := f.label("sweep")
		f.at(again)
		entries(func() {
			each(func(sum Vec, off int) { f.load(sum, mem(g+off, at)) })
			begins := f.label("begins")
			f.branch(sweeps, EQ, f.arg("sweeps"), begins)
			f.moveR(pair, e)
			f.mulR(pair, row)
			f.addR(pair, first)
			f.moveR(to, e)
			f.incR(to)
			f.shlR(to, Imm(8))
			f.addR(to, steps)
			after(wide)
			f.at(begins)
			f.moveR(to, steps)
			f.moveR(pair, first)
			f.moveR(inner, e)
			before(wide)
			// to is at the step of the entry now.
			each(func(sum Vec, off int) {
				f.mul(V0, sum, mem(inverse+off, at))
				f.load(V1, mem(x+off, at))
				f.sub(V0, V1, V0)
				f.compare(f.mask(V2), V0, unordered, V0)
				f.choose(f.mask(V2), V0, V1, V0)
				f.max(V0, V0, mem(low+off, at))
				f.min(V0, V0, mem(high+off, at))
				f.store(mem(x+off, at), V0)
				f.sub(V0, V0, V1)
				f.store(mem(off, to), V0)
				f.mul(V0, V0, mem(h+off, at))
				f.add(V0, V0, sum)
				f.store(mem(g+off, at), V0)
			})
		})
		f.subR(sweeps, Imm(1))
		f.branch(sweeps, NE, Imm(0), again)

		f.base("v", v)
		f.addR(v, s)
		f.base("s", inner)
		f.subR(v, inner)
		f.base("by", inner)
		f.broadcast(V12, mem(8*4, inner))
		f.value("stride", apart)
		f.shlR(apart, Imm(3))
		f.moveR(at, s)
		f.value("k", inner)
		f.loop(inner, func() {
			each(func(_ Vec, off int) {
				f.load(V0, mem(off, v))
				f.sub(V1, V0, mem(x+off, at))
				f.mul(V1, V1, V12)
				f.add(V0, V0, V1)
				f.store(mem(off, v), V0)
			})
			f.addR(v, apart)
			f.advance(entry, at)
		})
		f.advance(64*n, s, a)
	})
}
