package main

// The kernels over a plan; see internal/kernel/plan.go for their loops in Go.

// sumsOfLevels stores kinds sums over blocks of each level from to on, some levels at a time, count of them.
// text is what a register of a block, with its weights in V0, adds to the sums of n levels; begin comes
// before the first of their blocks, and at says where the block at hand is.
func (f *Func) sumsOfLevels(to, count, at Reg, first Vec, kinds int, sizes []int, begin func(n int),
	text func(n, off int, sum func(level, kind int) Vec)) {
	const vi, left = R2, R12
	f.groups(count, sizes, func(n int) {
		f.clearBlocks(first, kinds*n)
		begin(n)
		f.base("v", vi)
		f.length("v", left)
		f.shrR(left, Imm(3))
		f.loop(left, func() {
			for h, off := range f.registers(1) {
				f.load(V0, mem(off, vi))
				text(n, off, func(level, kind int) Vec { return f.block(first, kinds*level+kind) + h })
			}
			f.addR(at, planBlockR)
			f.advance(64, vi)
		})
		for i := range kinds * n {
			f.sumTo(mem(8*i, to), f.block(first, i))
		}
		f.advance(8*kinds*n, to)
	})
}

func moments(f *Func) {
	mu, levels, e := f.base("mu", R5), f.length("mu", R1), f.base("e", R4)
	const further, entry = R10, R6
	f.shrR(levels, Imm(1))
	f.planBlock(levels)
	f.sumsOfLevels(mu, levels, entry, V5, 2, halved(pick(f, 8, 2)), func(n int) {
		inside := f.label("inside")
		f.moveR(further, Imm(64*n)) // to the level after the group, or the last again
		f.branch(levels, NE, Imm(n), inside)
		f.moveR(further, Imm(64*(n-1)))
		f.at(inside)
		f.moveR(entry, e)
		f.advance(64*n, e)
	}, func(n, off int, sum func(level, kind int) Vec) {
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
	const entry = R6
	f.planBlock(levels)
	f.sumsOfLevels(c, levels, entry, V4, 1, halved(pick(f, 8, 4)), func(n int) {
		f.moveR(entry, e)
		f.advance(64*n, e)
	}, func(n, off int, sum func(level, kind int) Vec) {
		for g := range n {
			f.addProduct(sum(g, 0), V0, mem(64*g+off, entry), V1)
		}
	})
}

func gram(f *Func) {
	row, e, rowBytes := f.base("g", R5), f.base("e", R4), f.value("m", R1)
	const levelJ, upToJ, left, levelK, to, block = R0, R10, R6, R7, R8, R11
	f.planBlock(rowBytes)
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
	f.sumsOfLevels(to, left, block, V4, 1, halved(pick(f, 8, 4)), func(n int) {
		f.moveR(levelK, upToJ)
		f.subR(levelK, left)
		f.shlR(levelK, Imm(6))
		f.addR(levelK, e)
		f.zeroR(block) // from the first block to this one
	}, func(n, off int, sum func(level, kind int) Vec) {
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

// levelR is the address of the number of the level at hand, levelRowR has the bytes of a row of levels.
const levelR, levelRowR = R0, R9

// sumsOverLevels stores in to a sum over the m levels for each of the count levels of a slice, which lies at
// v, a block at a time; others are the addresses of what else has a number for each. text adds to the sums of
// a register, given those numbers of the slice and, in V3, that of the level at hand; begin and next come
// before the first level and after each.
func (f *Func) sumsOverLevels(to, v, count Reg, slice string, others []Reg, begin, next func(),
	text func(sums, own Vec, off int)) {
	const left = R1
	f.wholeBlocks(count, levelRowR)
	sums := f.after(V4)
	f.repeat(count, func() {
		for h, off := range f.registers(1) {
			f.load(V4+h, mem(off, v))
			f.clear(sums + h)
		}
		begin()
		f.base(slice, levelR)
		f.value("m", left)
		f.loop(left, func() {
			f.broadcast(V3, mem(0, levelR))
			for h, off := range f.registers(1) {
				text(sums+h, V4+h, off)
			}
			next()
		})
		f.storeBlocks(mem(0, to), sums, 1)
		f.advance(64, append(others, v, to)...)
	})
}

func hankel(f *Func) {
	g, c, mu, ratio, w, count := f.base("g", R5), f.base("c", R7), f.base("mu", R3), f.base("ratio", R4),
		f.base("w", R6), f.length("w", R2)
	const to, by, sum = R8, R10, R11
	f.sumsOverLevels(c, w, count, "w", []Reg{g, ratio, mu}, func() {
		f.moveR(to, g)
		f.moveR(by, ratio)
		f.moveR(sum, mu)
	}, func() {
		f.advance(8, levelR, sum)
		f.addR(by, levelRowR)
		f.addR(to, levelRowR)
	}, func(sums, wk Vec, off int) {
		f.load(V0, mem(off, sum))
		f.mul(V0, V0, mem(off, by))
		f.mul(V1, V3, wk)
		f.mul(V0, V0, V1)
		f.flush(V0, V1, V2)
		f.store(mem(off, to), V0)
		f.add(sums, sums, V0)
	})
}

func differences(f *Func) {
	out, count, g, v := f.base("out", R7), f.length("out", R2), f.base("g", R5), f.base("v", R6)
	const gj = R8
	f.sumsOverLevels(out, v, count, "v", []Reg{g}, func() { f.moveR(gj, g) }, func() {
		f.advance(8, levelR)
		f.addR(gj, levelRowR)
	}, func(sums, vj Vec, off int) {
		f.sub(V0, vj, V3)
		f.addProduct(sums, V0, mem(off, gj), V0)
	})
}

// flush zeroes r where its magnitude is below 1e-200; s, t are scratch.
func (f *Func) flush(r, s, t Vec) {
	f.magnitude(s, r)
	f.keepIf(r, s, notLess, f.c("decouple", 1e-200), t)
}
