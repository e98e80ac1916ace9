package main

// The kernels of low-rank products; see internal/kernel/product.go for their loops in Go.

func combine(f *Func) {
	w, count, uAt, k, v := f.base("w", R5), f.length("w", R2), f.base("u", R3), f.length("u", R1),
		f.base("v", R4)
	const row, vc, uc, left = R9, R6, R7, R8
	f.moveR(row, count)
	f.shlR(row, Imm(3)) // bytes of a row
	f.shrR(count, Imm(3))
	f.groups(count, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(u int, h Vec) Vec { return f.nth(V4, u, h) }
		for u := range n {
			f.halves(func(h Vec, _ int) { f.clear(acc(u, h)) })
		}
		none := f.label("none")
		f.moveR(vc, v)
		f.moveR(uc, uAt)
		f.moveR(left, k)
		f.branch(k, EQ, Imm(0), none)
		f.loop(left, func() {
			f.broadcast(V0, mem(0, uc))
			for u := range n {
				f.halves(func(h Vec, off int) {
					f.mul(V1, V0, mem(64*u+off, vc))
					f.add(acc(u, h), acc(u, h), V1)
				})
			}
			f.addR(vc, row)
			f.advance(8, uc)
		})
		f.at(none)
		for u := range n {
			f.halves(func(h Vec, off int) { f.store(mem(64*u+off, w), acc(u, h)) })
		}
		f.advance(64*n, w, v)
	})
}

// rows are the places of up to eight rows R9 bytes apart, from R6 and R7 = R6 + 4 R9
// with R10 = 3 R9.
func rows(g, off int) Mem {
	base := R6
	if g > 3 {
		base = R7
	}
	return mem(off, base, [][]Index{nil, {R9.times(1)}, {R9.times(2)}, {R10.times(1)}}[g&3]...)
}

func dots(f *Func) {
	gAt, gLen, v, r, count := f.base("g", R5), f.length("g", R1), f.base("v", R4), f.base("r", R3),
		f.length("r", R2)
	const ri, left = R8, R0
	f.moveR(R9, count)
	f.shlR(R9, Imm(3))
	f.addressR(R10, mem(0, R9, R9.times(2)))
	f.shrR(count, Imm(3))
	f.groups(gLen, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(g int, h Vec) Vec { return f.nth(V4, g, h) }
		for g := range n {
			f.halves(func(h Vec, _ int) { f.clear(acc(g, h)) })
		}
		f.moveR(R6, v)
		f.addressR(R7, mem(0, v, R9.times(4)))
		f.moveR(ri, r)
		f.moveR(left, count)
		f.loop(left, func() {
			f.halves(func(h Vec, off int) {
				f.load(V0, mem(off, ri))
				for g := range n {
					f.mul(V1, V0, rows(g, off))
					f.add(acc(g, h), acc(g, h), V1)
				}
			})
			f.advance(64, R6, R7, ri)
		})
		for g := range n {
			f.sumTo(mem(8*g, gAt), acc(g, 0))
		}
		f.advance(8*n, gAt)
		for range n {
			f.addR(v, R9)
		}
	})
}

func accumulate(f *Func) {
	acc, u, uLen, r, count := f.base("acc", R4), f.base("u", R5), f.length("u", R1), f.base("r", R3),
		f.length("r", R2)
	const ri, left = R8, R0
	f.moveR(R9, count)
	f.shlR(R9, Imm(3))
	f.addressR(R10, mem(0, R9, R9.times(2)))
	f.shrR(count, Imm(3))
	f.groups(uLen, pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		for g := range n {
			f.broadcast(Vec(4+g), mem(8*g, u))
		}
		f.moveR(R6, acc)
		f.addressR(R7, mem(0, acc, R9.times(4)))
		f.moveR(ri, r)
		f.moveR(left, count)
		f.loop(left, func() {
			f.halves(func(_ Vec, off int) {
				f.load(V0, mem(off, ri))
				for g := range n {
					f.mul(V1, V0, Vec(4+g))
					f.add(V1, V1, rows(g, off))
					f.store(rows(g, off), V1)
				}
			})
			f.advance(64, R6, R7, ri)
		})
		f.advance(8*n, u)
		for range n {
			f.addR(acc, R9)
		}
	})
}

// Four rows at a time of the three loops above, so that V is read once for them;
// narrow, two and two where registers are short. Each row has the bits of its own loop.

// fourth returns the place off bytes after base of row i of up to five that lie step bytes apart,
// triple three times that.
func fourth(i, off int, base, step, triple Reg) Mem {
	return mem(off, base, [][]Index{nil, {step.times(1)}, {step.times(2)}, {triple.times(1)},
		{step.times(4)}}[i]...)
}

func combine4(f *Func) {
	w, count, u, k, v := f.base("w", R5), f.length("w", R2), f.base("u", R3), f.length("u", R1),
		f.base("v", R4)
	const uRow, threeU, row, threeRows, vc, uc, left = R10, R11, R9, R0, R6, R7, R8
	f.shrR(k, Imm(2)) // k
	f.moveR(uRow, k)
	f.shlR(uRow, Imm(3)) // bytes of a row of u
	f.addressR(threeU, mem(0, uRow, uRow.times(2)))
	f.moveR(row, count)
	f.shlR(row, Imm(1)) // bytes of a row of w and v
	f.addressR(threeRows, mem(0, row, row.times(2)))
	f.shrR(count, Imm(5))
	f.groups(count, pick(f, []int{4, 1}, []int{1}), func(n int) {
		acc := func(r, b int, h Vec) Vec { return h + Vec(pick(f, 8+r*n+b, 6+2*r, 6+4*r)) }
		for r := range 4 {
			for b := range n {
				f.halves(func(h Vec, _ int) { f.clear(acc(r, b, h)) })
			}
		}
		f.moveR(vc, v)
		f.moveR(uc, u)
		f.moveR(left, k)
		f.loop(left, func() {
			for b := range n {
				f.halves(func(h Vec, off int) { f.load(Vec(2+b)+h, mem(64*b+off, vc)) })
			}
			for r := range 4 {
				f.broadcast(V0, fourth(r, 0, uc, uRow, threeU))
				for b := range n {
					f.halves(func(h Vec, _ int) {
						f.mul(V1, V0, Vec(2+b)+h)
						f.add(acc(r, b, h), acc(r, b, h), V1)
					})
				}
			}
			f.addR(vc, row)
			f.advance(8, uc)
		})
		for r := range 4 {
			for b := range n {
				f.halves(func(h Vec, off int) {
					f.store(fourth(r, 64*b+off, w, row, threeRows),
						acc(r, b, h))
				})
			}
		}
		f.advance(64*n, w, v)
	})
}

func dots4(f *Func) {
	gAt, k, v, rAt, count := f.base("g", R5), f.length("g", R1), f.base("v", R4), f.base("r", R3),
		f.length("r", R2)
	const row, threeRows, gRow, threeG, vc, ri, left = R9, R10, R11, R7, R6, R8, R0
	f.moveR(row, count)
	f.shlR(row, Imm(1)) // bytes of a row of r and v
	f.addressR(threeRows, mem(0, row, row.times(2)))
	f.shrR(count, Imm(5))
	f.moveR(gRow, k)
	f.shlR(gRow, Imm(1)) // bytes of a row of g
	f.shrR(k, Imm(2))
	f.groups(k, pick(f, []int{5, 4, 3, 2, 1}, []int{2, 1}), func(n int) {
		some := pick(f, 4, 2) // rows at a time
		for first := 0; first < 4; first += some {
			acc := func(r, g int, h Vec) Vec { return h + Vec(pick(f, 8+r*n+g, 5+(r*n+g)*2, 5+(r*n+g)*4)) }
			for r := range some {
				for g := range n {
					f.halves(func(h Vec, _ int) { f.clear(acc(r, g, h)) })
				}
			}
			f.moveR(vc, v)
			f.addressR(ri, fourth(first, 0, rAt, row, threeRows))
			f.moveR(left, count)
			f.loop(left, func() {
				f.halves(func(h Vec, off int) {
					for r := range some {
						f.load(Vec(2+r), fourth(r, off, ri, row, threeRows))
					}
					for g := range n {
						f.load(V0, fourth(g, off, vc, row, threeRows))
						for r := range some {
							f.mul(V1, V0, Vec(2+r))
							f.add(acc(r, g, h), acc(r, g, h), V1)
						}
					}
				})
				f.advance(64, vc, ri)
			})
			f.addressR(threeG, mem(0, gRow, gRow.times(2)))
			for r := range some {
				for g := range n {
					f.sumTo(fourth(first+r, 8*g, gAt, gRow, threeG), acc(r, g, 0))
				}
			}
		}
		f.advance(8*n, gAt)
		for range n {
			f.addR(v, row)
		}
	})
}

func accumulate4(f *Func) {
	acc, u, k, rAt, count := f.base("acc", R4), f.base("u", R5), f.length("u", R1), f.base("r", R3),
		f.length("r", R2)
	const uRow, row, threeRows, threeU, vc, ri, left = R11, R9, R10, R7, R6, R8, R0
	f.shrR(k, Imm(2)) // k
	f.moveR(uRow, k)
	f.shlR(uRow, Imm(3)) // bytes of a row of u
	f.moveR(row, count)
	f.shlR(row, Imm(1)) // bytes of a row of r and acc
	f.addressR(threeRows, mem(0, row, row.times(2)))
	f.shrR(count, Imm(5))
	f.groups(k, pick(f, []int{5, 4, 3, 2, 1}, []int{2, 1}), func(n int) {
		by := func(r, g int) Vec { return Vec(6 + r*n + g) }
		f.addressR(threeU, mem(0, uRow, uRow.times(2)))
		for r := range 4 {
			for g := range n {
				f.broadcast(by(r, g), fourth(r, 8*g, u, uRow, threeU))
			}
		}
		f.moveR(vc, acc)
		f.moveR(ri, rAt)
		f.moveR(left, count)
		f.loop(left, func() {
			f.halves(func(_ Vec, off int) {
				for r := range 4 {
					f.load(Vec(2+r), fourth(r, off, ri, row, threeRows))
				}
				for g := range n {
					f.load(V0, fourth(g, off, vc, row, threeRows))
					for r := range 4 {
						f.mul(V1, Vec(2+r), by(r, g))
						f.add(V0, V0, V1)
					}
					f.store(fourth(g, off, vc, row, threeRows), V0)
				}
			})
			f.advance(64, vc, ri)
		})
		f.advance(8*n, u)
		for range n {
			f.addR(acc, row)
		}
	})
}

// accumulateLower is accumulate4 for blocks up to the diagonal. done counts the rows from first on; no group
// of them crosses the border of a block.
func accumulateLower(f *Func) {
	acc, u, k, rAt, count := f.base("acc", R4), f.base("u", R5), f.value("rows", R1), f.base("r", R3),
		f.length("r", R2)
	const row, threeRows, vc, ri, left, done = R9, R10, R6, R8, R0, R2
	f.moveR(row, count)
	f.shlR(row, Imm(1)) // bytes of a row of r, u and acc
	f.addressR(threeRows, mem(0, row, row.times(2)))
	f.value("first", done)
	f.groups(k, pick(f, []int{4, 2, 1}, []int{2, 1}), func(n int) {
		by := func(r, g int) Vec { return Vec(6 + r*n + g) }
		for r := range 4 {
			for g := range n {
				f.broadcast(by(r, g), fourth(r, 8*g, u, row, threeRows))
			}
		}
		f.moveR(vc, acc)
		f.moveR(ri, rAt)
		f.moveR(left, done)
		f.shrR(left, Imm(3))
		f.incR(left)
		f.loop(left, func() {
			f.halves(func(_ Vec, off int) {
				for r := range 4 {
					f.load(Vec(2+r), fourth(r, off, ri, row, threeRows))
				}
				for g := range n {
					f.load(V0, fourth(g, off, vc, row, threeRows))
					for r := range 4 {
						f.mul(V1, Vec(2+r), by(r, g))
						f.add(V0, V0, V1)
					}
					f.store(fourth(g, off, vc, row, threeRows), V0)
				}
			})
			f.advance(64, vc, ri)
		})
		f.advance(8*n, u)
		f.addR(done, Imm(n))
		for range n {
			f.addR(acc, row)
		}
	})
}

// sweep takes the blocks of a column one after another: what is added to them, x, stays in registers for all
// rows.
func sweep(f *Func) {
	diagonal, lines, minus, count := f.base("acc", R4), f.base("lines", R5), f.base("minus", R3),
		f.length("lines", R2)
	const row, threeRows, first, begin, at, uc, left, t = R9, R10, R1, R11, R6, R7, R8, R0
	f.moveR(row, count)
	f.shlR(row, Imm(1)) // bytes of a row of lines and acc
	f.addressR(threeRows, mem(0, row, row.times(2)))
	f.shrR(count, Imm(5))
	f.zeroR(first) // row of the block on the diagonal
	x := func(r int, h Vec) Vec { return f.nth(V8, r, h) }
	some := func() { // left rows from at on, their factors from uc on
		f.loop(left, func() {
			f.halves(func(h Vec, off int) { f.load(V4+h, mem(off, at)) })
			for r := range 4 {
				f.broadcast(V0, fourth(r, 0, uc, row, threeRows))
				f.halves(func(h Vec, _ int) {
					f.mul(V1, V0, x(r, h))
					f.add(V4+h, V4+h, V1)
				})
			}
			f.halves(func(h Vec, off int) { f.store(mem(off, at), V4+h) })
			f.addR(at, row)
			f.advance(8, uc)
		})
	}
	f.groups(count, []int{1}, func(int) {
		for r := range 4 {
			f.halves(func(h Vec, _ int) { f.clear(x(r, h)) })
		}
		for c := range 4 {
			f.halves(func(h Vec, off int) { f.load(V2+h, fourth(c, off, lines, row, threeRows)) })
			for r := range 4 {
				f.broadcast(V0, mem(8*(4*r+c), minus))
				f.halves(func(h Vec, _ int) {
					f.mul(V1, V0, V2+h)
					f.add(x(r, h), x(r, h), V1)
				})
			}
		}
		noneBefore, below, noneAfter := f.label("none"), f.label("below"), f.label("none")
		f.value("before", left)
		f.subR(left, first)
		f.branch(left, LT, Imm(1), noneBefore)
		f.moveR(at, diagonal)
		f.moveR(uc, lines)
		some()
		f.at(noneBefore)
		f.moveR(begin, first) // the larger of first and after
		f.value("after", t)
		f.branch(t, LT, begin, below)
		f.moveR(begin, t)
		f.at(below)
		f.value("rows", left)
		f.subR(left, begin)
		f.branch(left, LT, Imm(1), noneAfter)
		f.subR(begin, first)
		f.addressR(uc, mem(0, lines, begin.times(8)))
		f.mulR(begin, row)
		f.addressR(at, mem(0, diagonal, begin.times(1)))
		some()
		f.at(noneAfter)
		for r := range 4 {
			f.halves(func(h Vec, off int) {
				f.negate(x(r, h), x(r, h))
				f.store(fourth(r, off, lines, row, threeRows), x(r, h))
			})
		}
		f.addressR(diagonal, mem(64, diagonal, row.times(8)))
		f.advance(64, lines)
		f.advance(8, first)
	})
}

// accumulateFrom keeps some blocks of sums in registers from the first line to the last.
func accumulateFrom(f *Func) {
	to, blocks, from, w, r := f.base("to", R5), f.length("to", R1), f.base("from", R8), f.base("w", R3),
		f.base("r", R4)
	const row, at, left, line = R9, R6, R7, R10
	f.stride(row)
	f.shrR(blocks, Imm(3))
	f.groups(blocks, pick(f, []int{8, 4, 1}, []int{4, 1}), func(n int) {
		sum := func(b int, h Vec) Vec { return f.nth(V4, b, h) }
		for b := range n {
			f.halves(func(h Vec, off int) { f.load(sum(b, h), mem(64*b+off, from)) })
		}
		f.base("at", at)
		f.length("at", left)
		f.groups(left, []int{1}, func(int) {
			f.wordR(line, mem(0, at))
			f.broadcast(V0, mem(0, w, line.times(8)))
			f.mulR(line, row)
			for b := range n {
				f.halves(func(h Vec, off int) {
					f.mul(V1, V0, mem(64*b+off, r, line.times(1)))
					f.add(sum(b, h), sum(b, h), V1)
				})
			}
			f.advance(4, at)
		})
		for b := range n {
			f.halves(func(h Vec, off int) { f.store(mem(64*b+off, to), sum(b, h)) })
		}
		f.advance(64*n, to, from, r)
	})
}

// unpack goes row by row, over the blocks up to the diagonal: done counts the rows.
func unpack(f *Func) {
	to, from, rows := f.base("to", R5), f.base("from", R4), f.value("rows", R1)
	const row, done, at, left = R9, R2, R6, R8
	f.broadcast(V2, f.arg("c"))
	f.stride(row)
	f.zeroR(done)
	f.groups(rows, []int{1}, func(int) {
		f.zeroR(at)
		f.moveR(left, done)
		f.shrR(left, Imm(3))
		f.incR(left)
		f.loop(left, func() {
			f.halves(func(_ Vec, off int) {
				f.mul(V0, V2, mem(off, from, at.times(1)))
				f.store(mem(off, to, at.times(1)), V0)
			})
			f.advance(64, at)
		})
		f.incR(done)
		f.moveR(left, done)
		f.shlR(left, Imm(3))
		f.addR(from, left)
		f.addR(to, row)
	})
}
