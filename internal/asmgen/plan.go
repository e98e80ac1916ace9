package main

// The kernels over a plan; see internal/kernel/plan.go for their loops in Go.

func build(f *Func) {
	e, s, count, h, y, yLen := f.base("e", R5), f.base("s", R4), f.length("s", R2), f.base("h", R3),
		f.base("y", R1), f.length("y", R10)
	const hj, yj, left, to, bytes = R6, R7, R8, R9, R0
	f.expReady()
	done := f.label("done")
	block := f.label("block")
	f.at(block)
	f.branch(count, LT, Imm(8), done)
	f.halves(func(_ Vec, off int) {
		// The largest exponent of each sample, in 8.
		f.load(V7, mem(off, s))
		f.moveR(hj, h)
		f.moveR(yj, y)
		f.moveR(left, yLen)
		f.load(V8, f.w("neginf", 0xfff0000000000000))
		value := func() {
			f.broadcast(V1, mem(0, yj))
			f.mul(V1, V7, V1)
			f.broadcast(V0, mem(0, hj))
			f.add(V0, V0, V1)
		}
		f.loop(left, func() {
			value()
			f.max(V8, V8, V0)
			f.advance(8, hj, yj)
		})
		f.moveR(hj, h)
		f.moveR(yj, y)
		f.moveR(left, yLen)
		f.addressR(to, mem(off, e))
		const own = 7
		shift, top := pick(f, Vec(27), 15, 27), pick(f, Vec(26), 14, 26)
		f.copy(shift, V7)
		f.copy(top, V8)
		f.groups(left, pick(f, []int{3, 1}, []int{2, 1}, []int{3, 1}), func(n int) {
			f.weave(n, own, func(u int) {
				f.broadcast(V1, mem(8*u, yj))
				f.mul(V1, shift, V1)
				f.broadcast(V0, mem(8*u, hj))
				f.add(V0, V0, V1)
				f.sub(V0, V0, top)
				f.exp(V1, V0, V2, V3, V4, V5, V6)
				f.chooseIf(V1, V0, less, f.c("flush", -300), f.c("zero", 0), V2)
				f.store(mem(64*u, to), V1)
			})
			f.advance(8*n, hj, yj)
			f.advance(64*n, to)
		})
	})
	f.moveR(bytes, yLen)
	f.shlR(bytes, Imm(6))
	f.addR(e, bytes)
	f.advance(64, s)
	f.subR(count, Imm(8))
	f.jump(block)
	f.at(done)
}

func lift(f *Func) {
	e, hAt, m, blocks := f.base("e", R5), f.base("h", R3), f.length("h", R1), f.value("n", R2)
	const entry, hj, left, eBlock, threeBlocks = R6, R7, R8, R10, R11
	f.shrR(blocks, Imm(3))
	f.moveR(eBlock, m)
	f.shlR(eBlock, Imm(6)) // a block of e
	f.addressR(threeBlocks, mem(0, eBlock, eBlock.times(2)))
	index := [][]Index{nil, {eBlock.times(1)}, {eBlock.times(2)}, {threeBlocks.times(1)}}
	f.groups(blocks, pick(f, []int{4, 1}, []int{1}), func(n int) {
		top := func(u int, h Vec) Vec { return 4 + 2*(Vec(u*f.h())+h) }
		each := func(text func(u int, h Vec, at Mem)) {
			f.moveR(entry, e)
			f.moveR(hj, hAt)
			f.moveR(left, m)
			f.loop(left, func() {
				f.broadcast(V0, mem(0, hj))
				for u := range n {
					f.halves(func(h Vec, off int) { text(u, h, mem(off, entry, index[u]...)) })
				}
				f.advance(64, entry)
				f.advance(8, hj)
			})
		}
		for u := range n {
			f.halves(func(h Vec, _ int) { f.clear(top(u, h)) })
		}
		each(func(u int, h Vec, at Mem) {
			f.mul(V1, V0, at)
			f.store(at, V1)
			f.max(top(u, h), top(u, h), V1)
		})
		f.load(V1, f.c("one", 1))
		for u := range n {
			f.halves(func(h Vec, _ int) {
				f.mul(top(u, h)+1, top(u, h), f.c("flushed", 5.148200222412013e-131))
				f.div(top(u, h), V1, top(u, h))
			})
		}
		each(func(u int, h Vec, at Mem) {
			f.load(V1, at)
			f.keepIf(V1, V1, notLess, top(u, h)+1, V2)
			f.mul(V1, V1, top(u, h))
			f.store(at, V1)
		})
		for range n {
			f.addR(e, eBlock)
		}
	})
}

func tops(f *Func) {
	t, count, sAt, hAt, y, m := f.base("t", R5), f.length("t", R2), f.base("s", R4), f.base("h", R3),
		f.base("y", R1), f.length("y", R10)
	const hj, yj, left = R6, R7, R8
	f.shrR(count, Imm(3))
	f.groups(count, pick(f, []int{4, 1}, []int{2, 1}), func(n int) {
		s := func(u int, h Vec) Vec { return 4 + 2*(Vec(u*f.h())+h) }
		for u := range n {
			f.halves(func(h Vec, off int) {
				f.load(s(u, h), mem(64*u+off, sAt))
				f.load(s(u, h)+1, f.w("neginf", 0xfff0000000000000))
			})
		}
		f.moveR(hj, hAt)
		f.moveR(yj, y)
		f.moveR(left, m)
		f.loop(left, func() {
			f.broadcast(V0, mem(0, hj))
			f.broadcast(V1, mem(0, yj))
			for u := range n {
				f.halves(func(h Vec, _ int) {
					f.mul(V2, s(u, h), V1)
					f.add(V2, V0, V2)
					f.max(s(u, h)+1, s(u, h)+1, V2)
				})
			}
			f.advance(8, hj, yj)
		})
		for u := range n {
			f.halves(func(h Vec, off int) { f.store(mem(64*u+off, t), s(u, h)+1) })
		}
		f.advance(64*n, t, sAt)
	})
}

func buildPower(f *Func) {
	e, s, count, m := f.base("e", R5), f.base("s", R4), f.length("s", R2), f.value("m", R1)
	const left = R8
	f.expReady()
	done, block := f.label("done"), f.label("block")
	f.at(block)
	f.branch(count, LT, Imm(8), done)
	f.halves(func(h Vec, off int) {
		f.weave(2, 7, func(u int) {
			f.load(V0, mem(off, s))
			f.broadcast(V1, f.arg([]string{"y0", "step"}[u]))
			f.mul(V0, V0, V1)
			f.exp(V1, V0, V2, V3, V4, V5, V6)
		})
		if int(h) < f.h()-1 { // kept from the next, which uses the first 14 registers
			f.copy(14+2*h, V1)
			f.copy(15+2*h, V8)
		}
	})
	p, r := []Vec{14, 16, 18, 20}, []Vec{15, 17, 19, 21}
	p[f.h()-1], r[f.h()-1] = 1, 8
	f.moveR(left, m)
	f.loop(left, func() {
		f.halves(func(h Vec, off int) {
			f.store(mem(off, e), p[h])
			f.mul(p[h], p[h], r[h])
		})
		f.advance(64, e)
	})
	f.advance(64, s)
	f.subR(count, Imm(8))
	f.jump(block)
	f.at(done)
}

func powersOf(f *Func) {
	e, base, count, rate, m := f.base("e", R5), f.base("base", R4), f.length("base", R2), f.base("rate", R3),
		f.value("m", R1)
	const left, eBlock, entry = R8, R9, R6
	f.shrR(count, Imm(3))
	f.moveR(eBlock, m)
	f.shlR(eBlock, Imm(6))
	f.groups(count, pick(f, []int{2, 1}, []int{1}), func(n int) {
		p := func(u int, h Vec) Vec { return f.nth(V0, 2*u, h) }
		r := func(u int, h Vec) Vec { return f.nth(V0, 2*u+1, h) }
		for u := range n {
			f.halves(func(h Vec, off int) {
				f.load(p(u, h), mem(64*u+off, base))
				f.load(r(u, h), mem(64*u+off, rate))
			})
		}
		f.moveR(entry, e)
		f.moveR(left, m)
		f.loop(left, func() {
			for u := range n {
				f.halves(func(h Vec, off int) {
					f.store(mem(off, entry, []Index{eBlock.times(1)}[:u]...), p(u, h))
					f.mul(p(u, h), p(u, h), r(u, h))
				})
			}
			f.advance(64, entry)
		})
		for range n {
			f.addR(e, eBlock)
		}
		f.advance(64*n, base, rate)
	})
}

func rowSums(f *Func) { f.rowSums("z", "w", nil, nil) }

func rowRatios(f *Func) {
	const z, x = R11, R12
	low := pick(f, Vec(30), 14, 26)
	f.base("z", z)
	f.base("x", x)
	f.broadcast(low, f.arg("low"))
	f.rowSums("u", "c", []Reg{z, x}, func(sum Vec, off int) {
		f.mul(V0, low, mem(off, z))
		f.max(sum, sum, V0)
		f.load(V1, mem(off, x))
		f.div(sum, V1, sum)
	})
}

// rowSums stores sums that begin with 0. Where there is last they begin with what is there, and what last
// makes of those of a register, off bytes from the addresses, is stored.
func (f *Func) rowSums(to, weights string, with []Reg, last func(sum Vec, off int)) {
	z, count, e, w, m := f.base(to, R5), f.length(to, R2), f.base("e", R4), f.base(weights, R3),
		f.length(weights, R1)
	const eBlock, threeBlocks, entry, wj, left = R9, R10, R8, R6, R7
	f.shrR(count, Imm(3))
	f.moveR(eBlock, m)
	f.shlR(eBlock, Imm(6))
	f.addressR(threeBlocks, mem(0, eBlock, eBlock.times(2)))
	f.addressR(w, mem(-8, w, m.times(8))) // the last weight
	index := [][]Index{nil, {eBlock.times(1)}, {eBlock.times(2)}, {threeBlocks.times(1)}}
	f.groups(count, pick(f, []int{4, 1}, []int{2, 1}), func(n int) {
		acc := func(u int, h Vec) Vec { return f.nth(V4, u, h) }
		for u := range n {
			f.halves(func(h Vec, off int) {
				if last == nil {
					f.clear(acc(u, h))
				} else {
					f.load(acc(u, h), mem(64*u+off, z))
				}
			})
		}
		f.addressR(entry, mem(-64, e, eBlock.times(1))) // the last level
		f.moveR(wj, w)
		f.moveR(left, m)
		f.loop(left, func() {
			f.broadcast(V0, mem(0, wj))
			for u := range n {
				f.halves(func(h Vec, off int) {
					f.mul(V1, V0, mem(off, entry, index[u]...))
					f.add(acc(u, h), acc(u, h), V1)
				})
			}
			f.subR(entry, Imm(64))
			f.subR(wj, Imm(8))
		})
		for u := range n {
			f.halves(func(h Vec, off int) {
				if last != nil {
					last(acc(u, h), 64*u+off)
				}
				f.store(mem(64*u+off, z), acc(u, h))
			})
			f.addR(e, eBlock)
		}
		f.advance(64*n, append(with, z)...)
	})
}

func moments(f *Func) {
	mu, levels, e, v, blocks := f.base("mu", R5), f.length("mu", R1), f.base("e", R4), f.base("v", R3),
		f.length("v", R2)
	const eBlock, next, entry, vi, left = R9, R10, R6, R7, R8
	f.shrR(levels, Imm(1)) // levels
	f.shrR(blocks, Imm(3)) // blocks
	f.moveR(eBlock, levels)
	f.shlR(eBlock, Imm(6))
	f.groups(levels, pick(f, []int{8, 4, 2, 1}, []int{2, 1}), func(n int) {
		acc := func(g, o int, h Vec) Vec { return f.nth(V5, 2*g+o, h) }
		for g := range n {
			for o := range 2 {
				f.halves(func(h Vec, _ int) { f.clear(acc(g, o, h)) })
			}
		}
		last := f.label("inside")
		f.moveR(next, Imm(64*n)) // to the level after the group, or the last again
		f.branch(levels, NE, Imm(n), last)
		f.moveR(next, Imm(64*(n-1)))
		f.at(last)
		f.moveR(entry, e)
		f.moveR(vi, v)
		f.moveR(left, blocks)
		f.loop(left, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, vi))
				a, b := V1, V2
				f.load(a, mem(off, entry))
				for g := range n {
					if g < n-1 {
						f.load(b, mem(64*(g+1)+off, entry))
					} else {
						f.load(b, mem(off, entry, next.times(1)))
					}
					f.mul(V3, V0, a)
					f.mul(V4, V3, a)
					f.add(acc(g, 0, h), acc(g, 0, h), V4)
					f.mul(V4, V3, b)
					f.add(acc(g, 1, h), acc(g, 1, h), V4)
					a, b = b, a
				}
			})
			f.addR(entry, eBlock)
			f.advance(64, vi)
		})
		for g := range n {
			for o := range 2 {
				f.sumTo(mem(16*g+8*o, mu), acc(g, o, 0))
			}
		}
		f.advance(64*n, e)
		f.advance(16*n, mu)
	})
	f.zeroAt(mem(-8, mu)) // the last neighbour was the last level itself
}

func gram(f *Func) {
	gAt, e, rowBytes := f.base("g", R5), f.base("e", R4), f.value("m", R1)
	const eBlock, levelJ, upToJ, left, levelK, to, block = R9, R0, R10, R6, R7, R8, R11
	f.moveR(eBlock, rowBytes)
	f.shlR(eBlock, Imm(6))   // a block of e
	f.addR(rowBytes, Imm(7)) // bytes of a row of g
	f.andR(rowBytes, Imm(-8))
	f.shlR(rowBytes, Imm(3))
	f.moveR(levelJ, e)
	f.moveR(upToJ, Imm(1))
	row, done := f.label("row"), f.label("done")
	f.at(row)
	f.branch(upToJ, GT, f.arg("m"), done)
	f.moveR(left, upToJ) // levels left
	f.moveR(levelK, e)   // level k
	f.moveR(to, gAt)     // g_jk of row j
	f.groups(left, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(g int, h Vec) Vec { return f.nth(V4, g, h) }
		for g := range n {
			f.halves(func(h Vec, _ int) { f.clear(acc(g, h)) })
		}
		f.zeroR(block) // from the first block to this one
		vi, blocks := f.base("v", R3), f.length("v", R2)
		f.shrR(blocks, Imm(3))
		f.loop(blocks, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, vi))
				f.mul(V0, V0, mem(off, levelJ, block.times(1)))
				for g := range n {
					f.mul(V1, V0, mem(64*g+off, levelK, block.times(1)))
					f.add(acc(g, h), acc(g, h), V1)
				}
			})
			f.addR(block, eBlock)
			f.advance(64, vi)
		})
		for g := range n {
			f.sumTo(mem(8*g, to), acc(g, 0))
		}
		f.advance(64*n, levelK)
		f.advance(8*n, to)
	})
	f.addR(gAt, rowBytes)
	f.advance(64, levelJ)
	f.incR(upToJ)
	f.jump(row)
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
				f.mul(V0, V0, mem(off, gj))
				f.add(sums+h, sums+h, V0)
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

func colSums(f *Func) {
	c, levels, e, v, blocks := f.base("c", R5), f.length("c", R1), f.base("e", R4), f.base("v", R3),
		f.length("v", R2)
	const eBlock, entry, vi, left = R9, R6, R7, R8
	f.shrR(blocks, Imm(3))
	f.moveR(eBlock, levels)
	f.shlR(eBlock, Imm(6))
	f.groups(levels, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(g int, h Vec) Vec { return f.nth(V4, g, h) }
		for g := range n {
			f.halves(func(h Vec, _ int) { f.clear(acc(g, h)) })
		}
		f.moveR(entry, e)
		f.moveR(vi, v)
		f.moveR(left, blocks)
		f.loop(left, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, vi))
				for g := range n {
					f.mul(V1, V0, mem(64*g+off, entry))
					f.add(acc(g, h), acc(g, h), V1)
				}
			})
			f.addR(entry, eBlock)
			f.advance(64, vi)
		})
		for g := range n {
			f.sumTo(mem(8*g, c), acc(g, 0))
		}
		f.advance(64*n, e)
		f.advance(8*n, c)
	})
}

func average(f *Func) {
	t, count, e, w, increments, z, d := f.base("t", R5), f.length("t", R2), f.base("e", R4), f.base("w", R3),
		f.length("w", R1), f.base("z", R6), f.base("d", R7)
	const last, eBlock, threeBlocks, entry, at = R9, R10, R11, R8, R0
	f.shrR(count, Imm(3))
	f.decR(increments) // increments
	f.moveR(last, increments)
	f.shlR(last, Imm(6))                           // from the first level to the last
	f.addressR(eBlock, mem(64, last))              // a block of e
	f.addressR(w, mem(0, w, increments.times(8)))  // the last weight
	f.addressR(d, mem(-8, d, increments.times(8))) // the last increment
	f.broadcast(V3, f.arg("first"))
	f.groups(count, pick(f, []int{4, 1}, []int{2, 1}), func(n int) {
		acc := func(u, o int, h Vec) Vec { return f.nth(V4, 2*u+o, h) }
		index := [][]Index{nil, {eBlock.times(1)}, {eBlock.times(2)}, {threeBlocks.times(1)}}
		f.addressR(threeBlocks, mem(0, eBlock, eBlock.times(2)))
		for u := range n {
			for o := range 2 {
				f.halves(func(h Vec, _ int) { f.clear(acc(u, o, h)) })
			}
		}
		none := f.label("none")
		f.addressR(entry, mem(0, e, last.times(1)))
		f.zeroR(at)
		f.length("w", increments)
		f.decR(increments)
		f.jumpIf(EQ, none)
		f.loop(increments, func() {
			f.broadcast(V0, mem(0, w, at.times(1)))
			f.broadcast(V1, mem(0, d, at.times(1)))
			for u := range n {
				f.halves(func(h Vec, off int) {
					f.mul(V2, V0, mem(off, entry, index[u]...))
					f.add(acc(u, 0, h), acc(u, 0, h), V2)
					f.mul(V2, V1, acc(u, 0, h))
					f.add(acc(u, 1, h), acc(u, 1, h), V2)
				})
			}
			f.subR(entry, Imm(64))
			f.subR(at, Imm(8))
		})
		f.at(none)
		f.broadcast(V0, mem(0, w, at.times(1)))
		for u := range n {
			f.halves(func(h Vec, off int) {
				f.mul(V2, V0, mem(off, entry, index[u]...))
				f.add(V1, acc(u, 0, h), V2)
				f.store(mem(64*u+off, z), V1)
				f.div(V2, acc(u, 1, h), V1)
				f.add(V2, V3, V2)
				f.store(mem(64*u+off, t), V2)
			})
			f.addR(e, eBlock)
		}
		f.advance(64*n, z, t)
	})
}

// covarianceLevels is what covariance and covarianceOwn are written in: n registers of samples side by side,
// each with twelve registers of its own, of which r gives one.
type covarianceLevels struct {
	n                 int
	out, z, v, lam, y Reg
	zeta, a           Reg
	r                 func(u int, k Vec) Vec
	at                func(u int, base Reg) Mem // the samples of register u in a list over samples
	// a register with the level's number in a list over levels
	number func(u int, list Reg, to Vec) Vec
	// over the levels, with the level's share of each sample in p
	each func(text func(u int))
}

// The registers that a walk over levels keeps: the share p, three that are free within a level, of which the
// last has the largest share while the level that has it is sought, and v, λ and y of that level. Differences
// from these are summed, so that no digits cancel.
const (
	levelP, levelV, levelLam, levelY Vec = 0, 1, 2, 3
	topV, topLam, topY               Vec = 4, 5, 6
	levelRegisters                       = 12
)

// overLevels finds the level of the largest share of each sample, and then writes text, for all samples.
func overLevels(f *Func, text func(c *covarianceLevels)) {
	out, e, w, zAt, vAt, lam, y := f.base("c.Out", R5), f.base("c.E", R4), f.base("c.W", R3),
		f.base("c.Z", R6), f.base("c.V", R7), f.base("c.Lam", R8), f.base("c.Y", R9)
	zeta, a, count, eBlock := f.base("c.Zeta", R10), f.base("c.A", R11), f.value("n", R2), f.value("m", R12)
	const row, level = R0, R1
	f.shrR(count, Imm(3))
	f.shlR(eBlock, Imm(6)) // bytes of a block of e
	// Several registers of samples go side by side: of AVX-512 two blocks, of NEON two of
	// the four registers of a block; of AVX2 one half of a block goes after the other.
	part := func(n, off int) {
		r := func(u int, k Vec) Vec { return Vec(levelRegisters*u) + k }
		at := func(u int, base Reg) Mem { return mem(off+pick(f, 64, 0, 16)*u, base) }
		// number is a register with that of the level in a list: to or, as NEON has no
		// operands of memory, one for all.
		number := func(u int, list Reg, to Vec) Vec {
			if !f.memoryOperands {
				to = map[Reg]Vec{w: 24, vAt: 25, lam: 26, y: 27}[list]
			}
			if f.memoryOperands || u == 0 {
				f.broadcast(to, mem(0, list, level.times(8)))
			}
			return to
		}
		each := func(text func(u int)) {
			f.addressR(row, mem(off, e))
			f.zeroR(level)
			l := f.label("level")
			f.at(l)
			for u := range n {
				f.mul(r(u, levelP), number(u, w, r(u, levelP)),
					pick(f, mem(0, row, []Index{eBlock.times(1)}[:min(u, 1)]...), mem(0, row),
						mem(16*u, row)))
				text(u)
			}
			f.advance(64, row)
			f.incR(level)
			f.branch(level, LT, f.arg("m"), l)
		}
		for u := range n {
			f.broadcast(r(u, topV), mem(0, vAt))
			f.broadcast(r(u, topLam), mem(0, lam))
			f.broadcast(r(u, topY), mem(0, y))
			f.clear(r(u, levelY))
		}
		each(func(u int) {
			top := Mask{1, r(u, levelLam)}
			f.compare(top, r(u, levelP), greater, r(u, levelY))
			f.max(r(u, levelY), r(u, levelY), r(u, levelP))
			for i, list := range []Reg{vAt, lam, y} {
				to := r(u, topV+Vec(i))
				if f.masked {
					f.choose(top, to, Repeat{mem(0, list, level.times(8))}, to)
				} else {
					f.choose(top, to, number(u, list, r(u, levelV)), to)
				}
			}
		})
		text(&covarianceLevels{n: n, out: out, z: zAt, v: vAt, lam: lam, y: y, zeta: zeta, a: a, r: r, at: at,
			number: number, each: each})
	}
	f.groups(count, pick(f, []int{2, 1}, []int{1}), func(n int) {
		if f.masked {
			part(n, 0)
		} else {
			part(pick(f, 0, 1, 2), 0)
			part(pick(f, 0, 1, 2), 32)
		}
		for range n {
			f.addR(e, eBlock)
		}
		f.advance(64*n, out, zAt, zeta, a)
	})
}

func covariance(f *Func) {
	const zl, al, mu, my, muy Vec = 7, 8, 9, 10, 11
	overLevels(f, func(c *covarianceLevels) {
		for u := range c.n {
			f.load(c.r(u, zl), c.at(u, c.zeta))
			f.load(c.r(u, al), c.at(u, c.a))
			f.clear(c.r(u, mu), c.r(u, my), c.r(u, muy))
		}
		c.each(func(u int) {
			p, du, dy, t := c.r(u, levelP), c.r(u, levelV), c.r(u, levelY), c.r(u, levelLam)
			f.sub(du, c.number(u, c.v, du), c.r(u, topV))
			f.mul(du, c.r(u, zl), du)
			f.sub(t, c.number(u, c.lam, t), c.r(u, topLam))
			f.mul(t, c.r(u, al), t)
			f.sub(du, du, t)
			f.sub(dy, c.number(u, c.y, dy), c.r(u, topY))
			f.mul(du, p, du)
			f.add(c.r(u, mu), c.r(u, mu), du)
			f.mul(p, p, dy)
			f.add(c.r(u, my), c.r(u, my), p)
			f.mul(du, du, dy)
			f.add(c.r(u, muy), c.r(u, muy), du)
		})
		for u := range c.n {
			mu, my, muy, z := c.r(u, mu), c.r(u, my), c.r(u, muy), c.r(u, levelP)
			f.load(z, c.at(u, c.z))
			f.div(muy, muy, z)
			f.div(mu, mu, z)
			f.div(my, my, z)
			f.mul(mu, mu, my)
			f.sub(muy, muy, mu)
			f.store(c.at(u, c.out), muy)
		}
	})
}

func covarianceOwn(f *Func) {
	const my, mv, mvy, ml, mly Vec = 7, 8, 9, 10, 11
	overLevels(f, func(c *covarianceLevels) {
		for u := range c.n {
			f.clear(c.r(u, my), c.r(u, mv), c.r(u, mvy), c.r(u, ml), c.r(u, mly))
		}
		c.each(func(u int) {
			p, dv, dl, dy := c.r(u, levelP), c.r(u, levelV), c.r(u, levelLam), c.r(u, levelY)
			f.sub(dv, c.number(u, c.v, dv), c.r(u, topV))
			f.sub(dl, c.number(u, c.lam, dl), c.r(u, topLam))
			f.sub(dy, c.number(u, c.y, dy), c.r(u, topY))
			for _, s := range [][3]Vec{{dv, mv, mvy}, {dl, ml, mly}} {
				f.mul(s[0], p, s[0])
				f.add(c.r(u, s[1]), c.r(u, s[1]), s[0])
				f.mul(s[0], s[0], dy)
				f.add(c.r(u, s[2]), c.r(u, s[2]), s[0])
			}
			f.mul(p, p, dy)
			f.add(c.r(u, my), c.r(u, my), p)
		})
		own := f.base("c.Own", R0) // as far on as out is
		f.addR(own, c.out)
		f.subR(own, f.base("c.Out", R1))
		for u := range c.n {
			inverse, my, mv, mvy, ml, mly, t := c.r(u, levelP), c.r(u, my), c.r(u, mv), c.r(u, mvy),
				c.r(u, ml), c.r(u, mly), c.r(u, levelV)
			f.load(inverse, f.c("one", 1))
			f.load(t, c.at(u, c.z))
			f.div(inverse, inverse, t)
			f.mul(my, my, inverse)
			for _, s := range [][2]Vec{{mv, mvy}, {ml, mly}} {
				f.mul(s[0], s[0], inverse)
				f.mul(s[1], s[1], inverse)
				f.mul(s[0], s[0], my)
				f.sub(s[1], s[1], s[0])
			}
			f.load(t, c.at(u, c.a))
			f.mul(mly, t, mly)
			f.mul(t, t, mvy)
			f.store(c.at(u, own), t)
			f.load(t, c.at(u, c.zeta))
			f.mul(mvy, t, mvy)
			f.sub(mvy, mvy, mly)
			f.store(c.at(u, c.out), mvy)
		}
	})
}

func covariances(f *Func) {
	eAt, w, vAt, lam, y, h := f.base("c.E", R4), f.base("c.W", R3), f.base("c.V", R7), f.base("c.Lam", R8),
		f.base("c.Y", R9), f.base("c.H", R6)
	eBlock := f.value("m", R11)
	f.shlR(eBlock, Imm(6)) // its bytes
	// One offset for all that runs over samples; list is one of their addresses.
	const at, level, sampleAt, list = R0, R1, R2, R10
	f.zeroR(sampleAt)
	// Two blocks go side by side in AVX-512, one register of a block after the other
	// elsewhere.
	const (
		p, du, dt, t, mu, my, muy, ml, mul, mlam Vec = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
		vt, lt0, yt, ht, zl, al                  Vec = 10, 11, 12, 13, 14, 15
		best                                         = my
		own                                          = 16
	)
	tops := []struct {
		list Reg
		r, t Vec // of the top, and scratch
	}{{vAt, vt, mu}, {lam, lt0, muy}, {y, yt, ml}, {h, ht, mul}}
	part := func(n, off int) {
		r := func(u int, k Vec) Vec { return Vec(own*u) + k }
		e := func(u int) Mem { return mem(0, at, []Index{eBlock.times(1)}[:u]...) }
		each := func(text func()) {
			f.addressR(at, mem(off, eAt))
			f.zeroR(level)
			l := f.label("level")
			f.at(l)
			text()
			f.advance(64, at)
			f.incR(level)
			f.branch(level, LT, f.arg("m"), l)
		}
		sample := func(name string, number Vec) {
			f.base(name, list)
			for u := range n {
				f.load(r(u, number), mem(off+64*u, list, sampleAt.times(8)))
			}
		}
		for u := range n {
			for _, l := range tops {
				f.broadcast(r(u, l.r), mem(0, l.list))
			}
			f.clear(r(u, best))
		}
		each(func() {
			f.broadcast(dt, mem(0, w, level.times(8)))
			if f.masked {
				for _, l := range tops {
					f.broadcast(l.t, mem(0, l.list, level.times(8)))
				}
			}
			for u := range n {
				f.mul(r(u, p), dt, e(u))
				top := Mask{1 + u, t}
				f.compare(top, r(u, p), greater, r(u, best))
				f.max(r(u, best), r(u, best), r(u, p))
				for _, l := range tops {
					if !f.masked {
						l.t = du
						f.broadcast(l.t, mem(0, l.list, level.times(8)))
					}
					f.choose(top, r(u, l.r), l.t, r(u, l.r))
				}
			}
		})
		sample("c.Zeta", zl)
		sample("c.A", al)
		f.base("c.S", list) // stays there
		for u := range n {
			for k := mu; k <= mlam; k++ {
				f.clear(r(u, k))
			}
		}
		each(func() {
			// number is top less that of the level.
			number := func(list Reg, top, to Vec) {
				at := mem(0, list, level.times(8))
				if f.masked {
					f.sub(to, top, Repeat{at})
					return
				}
				f.broadcast(to, at)
				f.sub(to, top, to)
			}
			for u := range n {
				p, du, dt, t := r(u, p), r(u, du), r(u, dt), r(u, t)
				f.broadcast(p, mem(0, w, level.times(8)))
				f.mul(p, p, e(u))
				number(vAt, r(u, vt), du)
				f.mul(du, r(u, zl), du)
				number(lam, r(u, lt0), t)
				f.mul(dt, p, t)
				f.add(r(u, mlam), r(u, mlam), dt)
				f.mul(t, r(u, al), t)
				f.sub(du, du, t)
				f.mul(du, p, du)
				f.add(r(u, mu), r(u, mu), du)
				number(y, r(u, yt), t)
				f.mul(dt, p, t)
				f.add(r(u, my), r(u, my), dt)
				f.mul(dt, du, t)
				f.add(r(u, muy), r(u, muy), dt)
				f.mul(t, t, mem(off+64*u, list, sampleAt.times(8)))
				number(h, r(u, ht), dt)
				f.add(dt, dt, t)
				f.mul(p, p, dt)
				f.add(r(u, ml), r(u, ml), p)
				f.mul(du, du, dt)
				f.add(r(u, mul), r(u, mul), du)
			}
		})
		sample("c.Z", p)
		for u := range n {
			for k := mu; k <= mlam; k++ {
				f.div(r(u, k), r(u, k), r(u, p))
			}
			f.sub(r(u, mlam), r(u, lt0), r(u, mlam))
			for _, k := range []Vec{my, ml} {
				f.mul(r(u, k), r(u, mu), r(u, k))
				f.sub(r(u, k+1), r(u, k+1), r(u, k))
			}
		}
		for _, to := range []struct {
			name   string
			number Vec
		}{{"c.Out", muy}, {"c.Logs", mul}, {"c.Mean", mlam}} {
			f.base(to.name, list)
			for u := range n {
				f.store(mem(off+64*u, list, sampleAt.times(8)), r(u, to.number))
			}
		}
	}
	for _, n := range pick(f, []int{2, 1}, []int{1}) {
		next, done := f.label("next"), f.label("done")
		f.at(next)
		f.addressR(at, mem(8*n-1, sampleAt))
		f.branch(at, GE, f.arg("n"), done)
		f.halves(func(_ Vec, off int) { part(n, off) })
		for range n {
			f.addR(eAt, eBlock)
		}
		f.addR(sampleAt, Imm(8*n))
		f.jump(next)
		f.at(done)
	}
}
