package main

// The kernels over a plan; see internal/kernel/plan.go for their loops in Go.

// sumsOfLevels stores kinds sums over blocks of each level from to on, some levels at a time, count of them.
// text is what a register of a block, with its weights in V0, adds to the sums of n levels; begin and next
// come before and after the blocks of these levels, next within a block.
func (f *Func) sumsOfLevels(to, count Reg, first Vec, kinds int, sizes []int, begin func(n int), next func(),
	text func(n int, h Vec, off int, sum func(level, kind int) Vec)) {
	const vi, left = R2, R12
	f.groups(count, sizes, func(n int) {
		f.units(kinds*n, func(i int, h Vec, _ int) { f.clear(f.nth(first, i, h)) })
		begin(n)
		f.base("v", vi)
		f.length("v", left)
		f.shrR(left, Imm(3))
		f.loop(left, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, vi))
				text(n, h, off, func(level, kind int) Vec { return f.nth(first, kinds*level+kind, h) })
			})
			next()
			f.advance(64, vi)
		})
		for i := range kinds * n {
			f.sumTo(mem(8*i, to), f.nth(first, i, 0))
		}
		f.advance(8*kinds*n, to)
	})
}

func moments(f *Func) {
	mu, levels, e := f.base("mu", R5), f.length("mu", R1), f.base("e", R4)
	const eBlock, further, entry = R9, R10, R6
	f.shrR(levels, Imm(1))
	f.moveR(eBlock, levels)
	f.shlR(eBlock, Imm(6))
	f.sumsOfLevels(mu, levels, V5, 2, halved(pick(f, 8, 2)), func(n int) {
		inside := f.label("inside")
		f.moveR(further, Imm(64*n)) // to the level after the group, or the last again
		f.branch(levels, NE, Imm(n), inside)
		f.moveR(further, Imm(64*(n-1)))
		f.at(inside)
		f.moveR(entry, e)
		f.advance(64*n, e)
	}, func() { f.addR(entry, eBlock) }, func(n int, h Vec, off int, sum func(level, kind int) Vec) {
		a, b := V1, V2
		f.load(a, mem(off, entry))
		for g := range n {
			if g < n-1 {
				f.load(b, mem(64*(g+1)+off, entry))
			} else {
				f.load(b, mem(off, entry, further.times(1)))
			}
			f.mul(V3, V0, a)
			f.addProduct(sum(g, 0), V3, a, V4)
			f.addProduct(sum(g, 1), V3, b, V4)
			a, b = b, a
		}
	})
	f.zeroAt(mem(-8, mu)) // the last neighbour was the last level itself
}

func colSums(f *Func) {
	c, levels, e := f.base("c", R5), f.length("c", R1), f.base("e", R4)
	const eBlock, entry = R9, R6
	f.moveR(eBlock, levels)
	f.shlR(eBlock, Imm(6))
	f.sumsOfLevels(c, levels, V4, 1, halved(pick(f, 8, 4)), func(n int) {
		f.moveR(entry, e)
		f.advance(64*n, e)
	}, func() { f.addR(entry, eBlock) }, func(n int, h Vec, off int, sum func(level, kind int) Vec) {
		for g := range n {
			f.addProduct(sum(g, 0), V0, mem(64*g+off, entry), V1)
		}
	})
}

func gram(f *Func) {
	row, e, rowBytes := f.base("g", R5), f.base("e", R4), f.value("m", R1)
	const eBlock, levelJ, upToJ, left, levelK, to, block = R9, R0, R10, R6, R7, R8, R11
	f.moveR(eBlock, rowBytes)
	f.shlR(eBlock, Imm(6))   // a block of e
	f.addR(rowBytes, Imm(7)) // bytes of a row of g
	f.andR(rowBytes, Imm(-8))
	f.shlR(rowBytes, Imm(3))
	f.moveR(levelJ, e)
	f.moveR(upToJ, Imm(1))
	next, done := f.label("row"), f.label("done")
	f.at(next)
	f.branch(upToJ, GT, f.arg("m"), done)
	f.moveR(left, upToJ) // levels left
	f.moveR(to, row)     // g_jk of row j
	f.sumsOfLevels(to, left, V4, 1, halved(pick(f, 8, 4)), func(n int) {
		f.moveR(levelK, upToJ)
		f.subR(levelK, left)
		f.shlR(levelK, Imm(6))
		f.addR(levelK, e)
		f.zeroR(block) // from the first block to this one
	}, func() { f.addR(block, eBlock) }, func(n int, h Vec, off int, sum func(level, kind int) Vec) {
		f.mul(V0, V0, mem(off, levelJ, block.times(1)))
		for g := range n {
			f.addProduct(sum(g, 0), V0, mem(64*g+off, levelK, block.times(1)), V1)
		}
	})
	f.addR(row, rowBytes)
	f.advance(64, levelJ)
	f.incR(upToJ)
	f.jump(next)
	f.at(done)
}

func hankel(f *Func) {
	g, c, mu, ratio, w, count := f.base("g", R5), f.base("c", R7), f.base("mu", R3), f.base("ratio", R4),
		f.base("w", R6), f.length("w", R2)
	const rowBytes, to, by, sum, wj, left = R9, R8, R10, R11, R0, R1
	f.moveR(rowBytes, count)
	f.shlR(rowBytes, Imm(3)) // bytes of a row
	f.shrR(count, Imm(3))
	sums := f.after(V4)
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, off int) {
			f.load(4+h, mem(off, w))
			f.clear(sums + h)
		})
		f.moveR(to, g)
		f.moveR(by, ratio)
		f.moveR(sum, mu)
		f.base("w", wj)
		f.value("m", left)
		f.loop(left, func() {
			f.broadcast(V3, mem(0, wj))
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, sum))
				f.mul(V0, V0, mem(off, by))
				f.mul(V1, V3, 4+h)
				f.mul(V0, V0, V1)
				f.flush(V0, V1, V2)
				f.store(mem(off, to), V0)
				f.add(sums+h, sums+h, V0)
			})
			f.advance(8, wj, sum)
			f.addR(by, rowBytes)
			f.addR(to, rowBytes)
		})
		f.halves(func(h Vec, off int) { f.store(mem(off, c), sums+h) })
		f.advance(64, g, ratio, mu, w, c)
	})
}

func differences(f *Func) {
	out, count, g, v := f.base("out", R7), f.length("out", R2), f.base("g", R5), f.base("v", R6)
	const rowBytes, gj, vk, left = R9, R8, R0, R1
	f.moveR(rowBytes, count)
	f.shlR(rowBytes, Imm(3)) // bytes of a row
	f.shrR(count, Imm(3))
	sums := f.after(V4)
	f.groups(count, []int{1}, func(int) {
		f.halves(func(h Vec, off int) {
			f.load(4+h, mem(off, v))
			f.clear(sums + h)
		})
		f.moveR(gj, g)
		f.base("v", vk)
		f.value("m", left)
		f.loop(left, func() {
			f.broadcast(V3, mem(0, vk))
			f.halves(func(h Vec, off int) {
				f.sub(V0, 4+h, V3)
				f.addProduct(sums+h, V0, mem(off, gj), V0)
			})
			f.advance(8, vk)
			f.addR(gj, rowBytes)
		})
		f.halves(func(h Vec, off int) { f.store(mem(off, out), sums+h) })
		f.advance(64, g, v, out)
	})
}

// flush zeroes r where its magnitude is below 1e-200; s, t are scratch.
func (f *Func) flush(r, s, t Vec) {
	f.magnitude(s, r)
	f.keepIf(r, s, notLess, f.c("decouple", 1e-200), t)
}
