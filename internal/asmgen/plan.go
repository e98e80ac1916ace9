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
	f.sumsOfLevels(mu, levels, V5, 2, pick(f, []int{8, 4, 2, 1}, []int{2, 1}), func(n int) {
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
	f.sumsOfLevels(c, levels, V4, 1, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
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
	f.sumsOfLevels(to, left, V4, 1, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
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

// levelWalk is what the covariances are written in: n registers of samples side by side, each with as many
// registers of its own, of which r gives one.
type levelWalk struct {
	f           *Func
	n, off, own int // off is the offset in a block of the first register
}

// The registers of a walk over levels: the share of the level in each sample, and three that are free within
// a level.
const levelP, levelD, levelT, levelS Vec = 0, 1, 2, 3

// Addresses: of e at the level, the level's number, the samples' and, of lists over samples, one at a time.
const entryAt, levelAt, sampleAt, listAt = R0, R1, R2, R10

// levelList is a list over levels, where it lies, and the register with its number at the level that has the
// largest share of a sample. Differences from these are summed, so that no digits cancel.
type levelList struct {
	name string
	at   Reg
	top  Vec
}

func (c *levelWalk) r(u int, k Vec) Vec { return Vec(c.own*u) + k }

// at is the place of register u in the list over samples at listAt.
func (c *levelWalk) at(u int) Mem {
	return mem(c.off+pick(c.f, 64, 0, 16)*u, listAt, sampleAt.times(8))
}

// load brings numbers of samples into a register, store brings them out.
func (c *levelWalk) load(name string, k Vec) {
	c.f.base(name, listAt)
	for u := range c.n {
		c.f.load(c.r(u, k), c.at(u))
	}
}

func (c *levelWalk) store(name string, k Vec) {
	c.f.base(name, listAt)
	for u := range c.n {
		c.f.store(c.at(u), c.r(u, k))
	}
}

// clear clears the registers from first to last.
func (c *levelWalk) clear(first, last Vec) {
	for u := range c.n {
		for k := first; k <= last; k++ {
			c.f.clear(c.r(u, k))
		}
	}
}

// each writes text for the samples of each register at every level, with their shares in levelP.
func (c *levelWalk) each(text func(u int)) {
	f := c.f
	f.addressR(entryAt, mem(c.off, R4))
	f.zeroR(levelAt)
	l := f.label("level")
	f.at(l)
	for u := range c.n {
		p := c.r(u, levelP)
		f.broadcast(p, mem(0, R3, levelAt.times(8)))
		f.mul(p, p, pick(f, mem(0, entryAt, []Index{R11.times(1)}[:u]...), mem(0, entryAt),
			mem(16*u, entryAt)))
		text(u)
	}
	f.advance(64, entryAt)
	f.incR(levelAt)
	f.branch(levelAt, LT, f.arg("m"), l)
}

// less fills to with the top of a list less its number at the level.
func (c *levelWalk) less(u int, l levelList, to Vec) {
	at := mem(0, l.at, levelAt.times(8))
	if c.f.masked {
		c.f.sub(to, c.r(u, l.top), Repeat{at})
		return
	}
	c.f.broadcast(to, at)
	c.f.sub(to, c.r(u, l.top), to)
}

// findTops brings the numbers of the lists at the level of the largest share into their registers. Registers
// from 4 on are scratch.
func (c *levelWalk) findTops(lists []levelList) {
	const best Vec = 4
	f := c.f
	for u := range c.n {
		for _, l := range lists {
			f.broadcast(c.r(u, l.top), mem(0, l.at))
		}
		f.clear(c.r(u, best))
	}
	c.each(func(u int) {
		top := Mask{1 + u, c.r(u, levelS)}
		f.compare(top, c.r(u, levelP), greater, c.r(u, best))
		f.max(c.r(u, best), c.r(u, best), c.r(u, levelP))
		for _, l := range lists {
			at, to := mem(0, l.at, levelAt.times(8)), c.r(u, l.top)
			if f.masked {
				f.choose(top, to, Repeat{at}, to)
			} else {
				f.broadcast(c.r(u, levelD), at)
				f.choose(top, to, c.r(u, levelD), to)
			}
		}
	})
}

// overLevels finds the level of the largest share of each sample, and then writes text, for all samples. Each
// register of them has own registers: AVX-512 takes two blocks side by side, NEON two of the four registers
// of a block, where there are enough, and AVX2 one half of a block after the other.
func overLevels(f *Func, own int, lists []levelList, text func(c *levelWalk)) {
	const e, w, eBlock = R4, R3, R11
	f.base("c.E", e)
	f.base("c.W", w)
	for _, l := range lists {
		f.base(l.name, l.at)
	}
	f.value("m", eBlock)
	f.shlR(eBlock, Imm(6)) // its bytes
	f.zeroR(sampleAt)
	part := func(n, off int) {
		c := &levelWalk{f, n, off, own}
		c.findTops(lists)
		text(c)
	}
	for _, n := range pick(f, []int{2, 1}, []int{1}) {
		next, done := f.label("next"), f.label("done")
		f.at(next)
		f.addressR(entryAt, mem(8*n-1, sampleAt))
		f.branch(entryAt, GE, f.arg("n"), done)
		side := pick(f, n, 1, f.Vectors/own)
		for off := 0; off < 64; off += pick(f, 64, 32, 16*side) {
			part(side, off)
		}
		for range n {
			f.addR(e, eBlock)
		}
		f.addR(sampleAt, Imm(8*n))
		f.jump(next)
		f.at(done)
	}
}

// listsOfLevels are those of v, λ and y, and of log M at a slope of 0, with tops in registers from one on.
func listsOfLevels(first Vec) []levelList {
	return []levelList{{"c.V", R7, first}, {"c.Lam", R8, first + 1}, {"c.Y", R9, first + 2},
		{"c.H", R6, first + 3}}
}

func covariance(f *Func) {
	const mu, my, muy, zl, al Vec = 4, 5, 6, 10, 11
	lists := listsOfLevels(7)[:3]
	v, lam, y := lists[0], lists[1], lists[2]
	overLevels(f, 12, lists, func(c *levelWalk) {
		c.load("c.Zeta", zl)
		c.load("c.A", al)
		c.clear(mu, muy)
		c.each(func(u int) {
			p, du, dy, t := c.r(u, levelP), c.r(u, levelD), c.r(u, levelT), c.r(u, levelS)
			c.less(u, v, du)
			f.mul(du, c.r(u, zl), du)
			c.less(u, lam, t)
			f.mul(t, c.r(u, al), t)
			f.sub(du, du, t)
			c.less(u, y, dy)
			f.mul(du, p, du)
			f.add(c.r(u, mu), c.r(u, mu), du)
			f.mul(p, p, dy)
			f.add(c.r(u, my), c.r(u, my), p)
			f.mul(du, du, dy)
			f.add(c.r(u, muy), c.r(u, muy), du)
		})
		c.load("c.Z", levelP)
		for u := range c.n {
			mu, my, muy, z := c.r(u, mu), c.r(u, my), c.r(u, muy), c.r(u, levelP)
			f.div(muy, muy, z)
			f.div(mu, mu, z)
			f.div(my, my, z)
			f.mul(mu, mu, my)
			f.sub(muy, muy, mu)
		}
		c.store("c.Out", muy)
	})
}

func covarianceOwn(f *Func) {
	const my, mv, mvy, ml, mly Vec = 4, 5, 6, 7, 8
	lists := listsOfLevels(9)[:3]
	v, lam, y := lists[0], lists[1], lists[2]
	overLevels(f, 12, lists, func(c *levelWalk) {
		c.clear(my, mly)
		c.each(func(u int) {
			p, dv, dl, dy := c.r(u, levelP), c.r(u, levelD), c.r(u, levelT), c.r(u, levelS)
			c.less(u, v, dv)
			c.less(u, lam, dl)
			c.less(u, y, dy)
			for _, s := range [][3]Vec{{dv, mv, mvy}, {dl, ml, mly}} {
				f.mul(s[0], p, s[0])
				f.add(c.r(u, s[1]), c.r(u, s[1]), s[0])
				f.mul(s[0], s[0], dy)
				f.add(c.r(u, s[2]), c.r(u, s[2]), s[0])
			}
			f.mul(p, p, dy)
			f.add(c.r(u, my), c.r(u, my), p)
		})
		c.load("c.Z", levelD)
		for u := range c.n {
			inverse, my := c.r(u, levelP), c.r(u, my)
			f.load(inverse, f.c("one", 1))
			f.div(inverse, inverse, c.r(u, levelD))
			f.mul(my, my, inverse)
			for _, s := range [][2]Vec{{mv, mvy}, {ml, mly}} {
				m, my2 := c.r(u, s[0]), c.r(u, s[1])
				f.mul(m, m, inverse)
				f.mul(my2, my2, inverse)
				f.mul(m, m, my)
				f.sub(my2, my2, m)
			}
		}
		c.load("c.A", levelD)
		c.load("c.Zeta", levelT)
		for u := range c.n {
			mvy, mly, a, zeta := c.r(u, mvy), c.r(u, mly), c.r(u, levelD), c.r(u, levelT)
			f.mul(mly, a, mly)
			f.mul(a, a, mvy)
			f.mul(mvy, zeta, mvy)
			f.sub(mvy, mvy, mly)
		}
		c.store("c.Own", levelD)
		c.store("c.Out", mvy)
	})
}

func covariances(f *Func) {
	const mu, my, muy, ml, mul, mlam, zl, al Vec = 4, 5, 6, 7, 8, 9, 14, 15
	lists := listsOfLevels(10)
	v, lam, y, h := lists[0], lists[1], lists[2], lists[3]
	overLevels(f, 16, lists, func(c *levelWalk) {
		c.load("c.Zeta", zl)
		c.load("c.A", al)
		f.base("c.S", listAt) // stays there
		c.clear(mu, mlam)
		c.each(func(u int) {
			p, du, dt, t := c.r(u, levelP), c.r(u, levelD), c.r(u, levelT), c.r(u, levelS)
			c.less(u, v, du)
			f.mul(du, c.r(u, zl), du)
			c.less(u, lam, t)
			f.addProduct(c.r(u, mlam), p, t, dt)
			f.mul(t, c.r(u, al), t)
			f.sub(du, du, t)
			f.mul(du, p, du)
			f.add(c.r(u, mu), c.r(u, mu), du)
			c.less(u, y, t)
			f.addProduct(c.r(u, my), p, t, dt)
			f.addProduct(c.r(u, muy), du, t, dt)
			f.mul(t, t, c.at(u))
			c.less(u, h, dt)
			f.add(dt, dt, t)
			f.mul(p, p, dt)
			f.add(c.r(u, ml), c.r(u, ml), p)
			f.mul(du, du, dt)
			f.add(c.r(u, mul), c.r(u, mul), du)
		})
		c.load("c.Z", levelP)
		for u := range c.n {
			for k := mu; k <= mlam; k++ {
				f.div(c.r(u, k), c.r(u, k), c.r(u, levelP))
			}
			f.sub(c.r(u, mlam), c.r(u, lam.top), c.r(u, mlam))
			for _, k := range []Vec{my, ml} {
				f.mul(c.r(u, k), c.r(u, mu), c.r(u, k))
				f.sub(c.r(u, k+1), c.r(u, k+1), c.r(u, k))
			}
		}
		c.store("c.Out", muy)
		c.store("c.Logs", mul)
		c.store("c.Mean", mlam)
	})
}
