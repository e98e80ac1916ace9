package main

// The loops of low-rank products at some samples only; see internal/kernel/at.go for the loops in Go. V lies
// sample by sample, stride numbers apart, of which two blocks are taken at a time.

// sample brings the offset of the row of sample i of cols into a register, row being the bytes of a row.
func (f *Func) sample(i int, cols, row Reg) Reg {
	r := []Reg{R10, R11}[i&1]
	f.wordR(r, mem(4*i, cols))
	f.mulR(r, row)
	return r
}

// samples calls text for every sample that cols names, count of them, some at a time: at(i) brings the offset
// of the row of sample i of these into a register. AVX2 and AVX-512 ask for what ahead names, given the
// offset of a sample's row, sixteen samples before its turn.
func (f *Func) samples(cols, count, row Reg, sizes []int, ahead func(at Reg),
	text func(n int, at func(i int) Reg)) {
	f.groups(count, sizes, func(n int) {
		if n > 2 && f.Lanes > 2 && ahead != nil {
			near := f.label("near")
			f.branch(count, LT, Imm(16+n), near)
			for i := range n {
				ahead(f.sample(16+i, cols, row))
			}
			f.at(near)
		}
		text(n, func(i int) Reg { return f.sample(i, cols, row) })
		f.advance(4*n, cols)
	})
}

// stride brings the bytes of a row into a register.
func (f *Func) stride(row Reg) {
	f.value("stride", row)
	f.shlR(row, Imm(3))
}

// products fills blocks from acc on with those of n blocks of u, from register by on, and some rows of v.
func (f *Func) products(acc, by Vec, n, rows int, v Reg, at func(i int) Reg) {
	for i := range rows {
		r := at(i)
		f.units(n, func(b int, h Vec, off int) {
			a, from := f.nth(acc, i, h), mem(64*b+off, v, r.times(1))
			if b == 0 {
				f.mul(a, f.nth(by, b, h), from)
				return
			}
			f.addProduct(a, f.nth(by, b, h), from, V1)
		})
	}
}

// combineAt adds the products of as many samples as there are lanes at once where their sums can be made
// together.
func combineAt(f *Func) {
	w, u, blocks, v := f.base("w", R5), f.base("u", R3), f.length("u", R1), f.base("v", R4)
	const row, to, cols, left = R9, R6, R7, R8
	f.stride(row)
	f.shrR(blocks, Imm(3))
	const acc = V8
	first := pick(f, V4, V4, 16)
	f.groups(blocks, []int{2, 1}, func(n int) {
		f.units(n, func(b int, h Vec, off int) { f.load(f.nth(first, b, h), mem(64*b+off, u)) })
		f.moveR(to, w)
		f.base("cols", cols)
		f.length("cols", left)
		f.samples(cols, left, row, pick(f, []int{8, 1}, []int{4, 1}, []int{1}), func(at Reg) {
			for b := range n {
				f.prefetchNear(mem(64*b, v, at.times(1)))
			}
		}, func(m int, at func(int) Reg) {
			f.products(acc, first, n, m, v, at)
			if m > 1 {
				f.reduceEach(acc, V2)
				f.add(acc, acc, mem(0, to))
				f.store(mem(0, to), acc)
			} else {
				f.reduce(f.block(acc), V1)
				f.loadFirst(V1, mem(0, to))
				f.addFirst(acc, V1, acc)
				f.storeFirst(mem(0, to), acc)
			}
			f.advance(8*m, to)
		})
		f.advance(64*n, u, v)
	})
}

// sumsAt adds up products with v, and those of its squares if there are any, over samples at even and at odd
// places: with both in as many registers as are there.
func sumsAt(squares bool) func(f *Func) {
	return func(f *Func) {
		g, blocks, h, v := f.base("g", R5), f.length("g", R1), R3, f.base("v", R4)
		const row, r, q, cols, left = R9, R6, R2, R7, R8
		to, sizes := []Reg{g}, []int{2, 1}
		if squares {
			to, sizes = []Reg{g, f.base("h", h)}, pick(f, sizes, []int{1})
		}
		f.stride(row)
		f.shrR(blocks, Imm(3))
		f.groups(blocks, sizes, func(n int) {
			sum := func(chain, kind, b int, h Vec) Vec { return f.nth(V8, (len(to)*chain+kind)*n+b, h) }
			f.halves(func(h Vec, _ int) {
				for i := range 2 * len(to) * n {
					f.clear(f.nth(V8, i, h))
				}
			})
			f.base("r", r)
			if squares {
				f.base("q", q)
			}
			f.base("cols", cols)
			f.length("cols", left)
			f.samples(cols, left, row, []int{4, 2, 1}, pick(f, func(Reg) {}, nil),
				func(m int, at func(int) Reg) {
					for i := range m {
						j := at(i)
						f.broadcast(V0, mem(8*i, r))
						if squares {
							f.broadcast(V1, mem(8*i, q))
						}
						f.units(n, func(b int, h Vec, off int) {
							f.load(V2, mem(64*b+off, v, j.times(1)))
							f.addProduct(sum(i%2, 0, b, h), V2, V0, V3)
							if squares {
								f.mul(V2, V2, V2)
								f.addProduct(sum(i%2, 1, b, h), V2, V1, V2)
							}
						})
					}
					f.advance(8*m, r, q)
				})
			for b := range n {
				for kind, to := range to {
					f.halves(func(h Vec, off int) {
						s := sum(0, kind, b, h)
						f.add(s, s, sum(1, kind, b, h))
						f.add(s, s, mem(64*b+off, to))
						f.store(mem(64*b+off, to), s)
					})
				}
			}
			f.advance(64*n, append(to, v)...)
		})
	}
}

func accumulateAt(f *Func) {
	acc, u, blocks := f.base("acc", R4), f.base("u", R3), f.length("u", R1)
	const row, r, cols, left = R9, R6, R7, R8
	f.stride(row)
	f.shrR(blocks, Imm(3))
	f.groups(blocks, []int{2, 1}, func(n int) {
		by := func(b int, h Vec) Vec { return f.nth(V8, b, h) }
		f.units(n, func(b int, h Vec, off int) { f.load(by(b, h), mem(64*b+off, u)) })
		f.base("r", r)
		f.base("cols", cols)
		f.length("cols", left)
		f.samples(cols, left, row, []int{4, 1}, func(at Reg) {
			for b := range n {
				f.prefetchNear(mem(64*b, acc, at.times(1)))
			}
		}, func(m int, at func(int) Reg) {
			for i := range m {
				j := at(i)
				f.broadcast(V0, mem(8*i, r))
				f.units(n, func(b int, h Vec, off int) {
					place := mem(64*b+off, acc, j.times(1))
					f.mul(V1, V0, by(b, h))
					f.add(V1, V1, place)
					f.store(place, V1)
				})
			}
			f.advance(8*m, r)
		})
		f.advance(64*n, u, acc)
	})
}

// widths writes body for each number n of registers that two blocks of components may have below k, from both
// blocks whole to one. The kernel runs the body for its k, which it takes into a register at first.
func (f *Func) widths(k Reg, body func(n int)) {
	block := f.h()
	end := f.label("end")
	for n := 2 * block; n >= block; n-- {
		fewer := f.label("parts")
		if n > block {
			f.value("k", k)
			f.branch(k, LE, Imm(f.Lanes*(n-1)), fewer)
		}
		body(n)
		if n > block {
			f.jump(end)
			f.at(fewer)
		}
	}
	f.at(end)
}

// ratiosOfRuns is what the two kernels below begin with, for registers of four lanes or eight. Of the two
// blocks of components it takes as many registers, n, as have components below k. It goes over eight cells of
// all rows at a time: while the products of eight are made, those eight before are divided by, and with the
// eight before these the kernel does what it is for. So nothing waits for a chain of sums and divisions, and
// a row begins while the last one ends.
//
// own(n, at) takes up the row of u at that place, whose register h u(n, h) is then. sample(n, i, at) is
// written for each of eight cells whose ratios lie 128 bytes before r, at being the place of their rows in
// the matrices, and rest() after them. next(n, offset) takes up a row for these, the first one, too, and
// close(n, offset) ends it. V0 to V5 are scratch, and V8 to V15 with registers of eight lanes; sample may not
// use them, rest may.
func (f *Func) ratiosOfRuns(v, r Reg, near []Reg, own func(n int, at Reg), u func(n, h int) Operand,
	sample func(n, i int, at Reg), rest func(), next, close func(n int, offset Reg)) {
	const k, uRow, mine, left, x, cols, row, theirs, leftThere = R1, R3, R1, R2, R6, R7, R9, R12, R0
	block, wide := f.h(), 8*f.Lanes // the registers of a block, the bytes of a register
	products := pick(f, V8, V0)
	f.stride(row)
	f.widths(k, func(n int) {
		f.base("x", x)
		f.advance(128, x)
		f.base("cols", cols)
		f.advance(64, cols)
		f.base("r", r)
		f.advance(128, r)
		take := func() { // a row of u
			f.wordR(uRow, mem(0, mine))
			f.mulR(uRow, row)
			f.addR(uRow, f.arg("u_base"))
			f.wordR(left, mem(4, mine))
			f.advance(8, mine)
			own(n, uRow)
		}
		f.base("runs", mine)
		f.moveR(theirs, mine)
		take()
		f.wordR(leftThere, mem(4, theirs))
		f.advance(2, leftThere)
		offset := func() Reg {
			f.wordR(R10, mem(0, theirs))
			return R10
		}
		next(n, offset())
		loop, same, done := f.label("loop"), f.label("same"), f.label("done")
		f.at(loop)
		for half := range block {
			for i := range f.Lanes {
				cell := f.Lanes*half + i
				j := f.sample(16+cell, cols, row)
				for _, at := range near {
					for line := range (n + block - 1) / block {
						f.prefetchNear(mem(64*line, at, j.times(1)))
					}
				}
				sample(n, cell, f.sample(cell-16, cols, row))
				j = f.sample(cell, cols, row)
				f.productsOf(n, products+Vec(i), v, j, func(h int) Operand { return u(n, h) })
			}
			f.sumOf(products)
			f.add(V0, products, mem(wide*half, r))
			f.store(mem(wide*half, r), V0)
			f.broadcast(V1, f.arg("low"))
			f.max(V0, V1, mem(wide*half-64, r))
			f.load(V1, mem(wide*half-64, x))
			f.div(V0, V1, V0)
			f.store(mem(wide*half-64, r), V0)
		}
		rest()
		f.advance(64, x, r)
		f.advance(32, cols)
		f.decR(left)
		f.jumpIf(NE, same)
		take()
		f.at(same)
		f.decR(leftThere)
		f.jumpIf(NE, loop)
		close(n, offset())
		f.wordR(leftThere, mem(12, theirs))
		f.branch(leftThere, EQ, Imm(0), done)
		f.advance(8, theirs)
		next(n, offset())
		f.jump(loop)
		f.at(done)
	})
}

// combineRuns goes over eight cells of all rows at a time, as ratiosOfRuns does.
func combineRuns(f *Func) {
	const k, v, r, uRow, runs, left, cols, row = R1, R4, R8, R3, R1, R2, R7, R9
	f.base("v", v)
	f.stride(row)
	block, wide := f.h(), 8*f.Lanes
	products, u := pick(f, V8, V0), pick(f, Vec(16), V6)
	f.widths(k, func(n int) {
		f.base("cols", cols)
		f.advance(64, cols)
		f.base("r", r)
		f.advance(128, r)
		f.base("runs", runs)
		again, loop := f.label("again"), f.label("loop")
		f.at(again)
		f.wordR(uRow, mem(0, runs))
		f.mulR(uRow, row)
		f.addR(uRow, f.arg("u_base"))
		for h := range n {
			f.load(u+Vec(h), mem(wide*h, uRow))
		}
		f.wordR(left, mem(4, runs))
		f.advance(8, runs)
		f.at(loop)
		for half := range block {
			for i := range f.Lanes {
				cell := f.Lanes*half + i
				j := f.sample(16+cell, cols, row)
				for line := range (n + block - 1) / block {
					f.prefetchNear(mem(64*line, v, j.times(1)))
				}
				j = f.sample(cell, cols, row)
				f.productsOf(n, products+Vec(i), v, j, func(h int) Operand { return u + Vec(h) })
			}
			f.sumOf(products)
			f.add(V0, products, mem(wide*half, r))
			f.store(mem(wide*half, r), V0)
		}
		f.advance(64, r)
		f.advance(32, cols)
		f.decR(left)
		f.jumpIf(NE, loop)
		f.wordR(left, mem(4, runs))
		f.branch(left, NE, Imm(0), again)
	})
}

// productsOf fills to with the products of a row of u, of n registers, and the row of v at a place, added up
// over blocks. V4 and V5 are scratch.
func (f *Func) productsOf(n int, to Vec, v, at Reg, u func(h int) Operand) {
	block, wide := f.h(), 8*f.Lanes
	sum := []Vec{to, V4} // of the registers of both blocks
	for h := range n {
		to, from := V5, mem(wide*h, v, at.times(1))
		if h < block {
			to = sum[h]
		}
		if by, ok := u(h).(Vec); ok {
			f.mul(to, by, from)
		} else {
			f.load(to, from)
			f.mul(to, to, u(h))
		}
		if h >= block {
			f.add(sum[h-block], sum[h-block], to)
		}
	}
	if block == 2 {
		f.add(sum[0], sum[0], sum[1])
	}
}

// sumOf sums what productsOf has filled for as many samples as there are lanes, into the first of these
// registers.
func (f *Func) sumOf(products Vec) {
	if f.h() == 2 {
		f.reduceJoined(products, 1, V4)
	} else {
		f.reduceEach(products, V2)
	}
}

func ratioDotsRuns(f *Func) {
	g, v, r := f.base("g", R5), f.base("v", R4), R8
	wide := 8 * f.Lanes
	first, held, by, t := pick(f, Vec(16), 6), pick(f, Vec(20), 12), pick(f, V6, V14), pick(f, V7, V15)
	sum := func(n, i, h int) Vec { return first + Vec(i%2*n+h) }
	// registers of u, as many as there is room for
	holds := func(n int) int { return min(n, f.Vectors-8-2*n) }
	f.ratiosOfRuns(v, r, []Reg{v}, func(n int, at Reg) {
		for h := range holds(n) {
			f.load(held+Vec(h), mem(wide*h, at))
		}
	}, func(n, h int) Operand {
		if h < holds(n) {
			return held + Vec(h)
		}
		return mem(wide*h, R3)
	}, func(n, i int, at Reg) {
		f.broadcast(by, mem(8*i-128, r))
		for h := range n {
			f.addProduct(sum(n, i, h), by, mem(wide*h, v, at.times(1)), t)
		}
	}, func() {}, func(n int, _ Reg) {
		for i := range 2 * n {
			f.clear(first + Vec(i))
		}
	}, func(n int, offset Reg) {
		f.mulR(offset, R9)
		for h := range n {
			f.add(V0, sum(n, 0, h), sum(n, 1, h))
			f.add(V0, V0, mem(wide*h, g, offset.times(1)))
			f.store(mem(wide*h, g, offset.times(1)), V0)
		}
	})
}

func ratioAccumulateRuns(f *Func) {
	acc, v, r := f.base("acc", R5), f.base("v", R4), R8
	const room, x = 6, R6 // registers for two rows of u
	wide := 8 * f.Lanes
	total, u, by, t := pick(f, Vec(22), 6), pick(f, Vec(16), 8), pick(f, V6, V14), pick(f, V7, V15)
	constants, held := f.roughHeld()
	if f.Vectors == 16 {
		held = 0
	} else {
		f.roughReady()
	}
	f.ratiosOfRuns(v, r, []Reg{v, acc}, func(n int, at Reg) {
		for h := range min(n, room-n) {
			f.load(u+Vec(n+h), mem(wide*h, at))
		}
	}, func(n, h int) Operand {
		if h < room-n {
			return u + Vec(n+h)
		}
		return mem(wide*h, R3)
	}, func(n, i int, at Reg) {
		f.broadcast(by, mem(8*i-128, r))
		for h := range n {
			place := mem(wide*h, acc, at.times(1))
			f.mul(t, by, u+Vec(h))
			f.add(t, t, place)
			f.store(place, t)
		}
	}, func() {
		f.halves(func(h Vec, off int) {
			f.load(V0, mem(off-128, r))
			f.roughLogBy(constants, held, V0, V1, V2, V3, V4, V5)
			f.addProduct(total+h, V0, mem(off-128, x), V0)
		})
	}, func(n int, row Reg) {
		f.moveR(R11, row)
		f.shlR(R11, Imm(6))
		f.addR(R11, f.arg("logs_base"))
		f.halves(func(h Vec, off int) { f.load(total+h, mem(off, R11)) })
		f.mulR(row, R9)
		f.addR(row, f.arg("u_base"))
		for h := range n {
			f.load(u+Vec(h), mem(wide*h, row))
		}
	}, func(n int, row Reg) {
		f.shlR(row, Imm(6))
		f.addR(row, f.arg("logs_base"))
		f.halves(func(h Vec, off int) { f.store(mem(off, row), total+h) })
	})
}
