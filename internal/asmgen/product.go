package main

// The kernels of low-rank products; see internal/kernel/product.go for their loops in Go.

// The first three texts are for one row of U and of samples, or for four at a time, so that V is read once
// for them; narrow, two and two where registers are short. Each row has the bits of its own loop.

// fourth returns the place of row i of up to five that lie step bytes apart from base on, triple being three
// times that.
func fourth(i int, base, step, triple Reg) Mem {
	return mem(0, base, [][]Index{nil, {step.times(1)}, {step.times(2)}, {triple.times(1)},
		{step.times(4)}}[i]...)
}

// pickRows returns what is for one row, or for four.
func pickRows[T any](rows int, one, four T) T {
	if rows == 4 {
		return four
	}
	return one
}

// rowBytes makes of the length of some rows, padded samples, the blocks and the bytes of one, and three times
// these.
func (f *Func) rowBytes(rows int, count, row, triple Reg) {
	f.moveR(row, count)
	f.shlR(row, Imm(pickRows(rows, 3, 1)))
	f.triple(triple, row)
	f.shrR(count, Imm(pickRows(rows, 3, 5)))
}

// componentBytes makes of the length of some rows of components the number and the bytes of one, and three
// times these.
func (f *Func) componentBytes(rows int, k, row, triple Reg) {
	f.shrR(k, Imm(pickRows(rows, 0, 2)))
	f.moveR(row, k)
	f.shlR(row, Imm(3))
	f.triple(triple, row)
}

// Registers of a product of rows: where V and U have the component at hand, the bytes of a row of samples and
// of one of components, and three times these.
const vcR, ucR, samplesR, threeSamplesR, componentsR, threeComponentsR = R6, R7, R9, R0, R10, R11

// component adds the products with the component at hand to n blocks of each row, from register sums on, row
// after row; of four rows it can fill them, too. Then the next one is at hand. V0, V1 and, with four rows, n
// blocks from V2 on are scratch.
func (f *Func) component(rows, n int, sums Vec, fill bool) {
	samples := Operand(mem(0, vcR))
	if rows == 4 {
		f.loadBlocks(V2, n, mem(0, vcR))
		samples = V2
	}
	for r := range rows {
		f.broadcast(V0, fourth(r, ucR, componentsR, threeComponentsR))
		to := f.block(sums, r*n)
		if !fill {
			f.addProducts(to, n, V0, samples)
			continue
		}
		for i := range f.registers(n) {
			f.mul(to+i, V0, V2+i)
		}
	}
	f.addR(vcR, samplesR)
	f.advance(8, ucR)
}

func combines(rows int) func(f *Func) {
	return func(f *Func) {
		w, count, u, k, v := f.base("w", R5), f.length("w", R2), f.base("u", R3), f.length("u", R1),
			f.base("v", R4)
		const left = R8
		f.componentBytes(rows, k, componentsR, threeComponentsR)
		f.rowBytes(rows, count, samplesR, threeSamplesR)
		f.groups(count, pickRows(rows, halved(pick(f, 8, 4)),
			pick(f, []int{4, 1}, []int{1})), func(n int) {
			sums, none := pickRows(rows, V4, pick(f, V8, V6)), f.label("none")
			f.clearBlocks(sums, rows*n)
			f.moveR(vcR, v)
			f.moveR(ucR, u)
			f.moveR(left, k)
			f.branch(k, EQ, Imm(0), none)
			f.loop(left, func() { f.component(rows, n, sums, false) })
			f.at(none)
			for r := range rows {
				f.storeBlocks(fourth(r, w, samplesR, threeSamplesR), f.block(sums, r*n), n)
			}
			f.advance(64*n, w, v)
		})
	}
}

// Registers of rows of samples and of as long ones of components: where those of samples are, where the first
// and where the fifth of the others are, the bytes of a row and three times these.
const rowsR, firstR, fifthR, rowR, threeRowsR = R8, R6, R7, R9, R10

// componentRow is the place of one of up to eight rows of components.
func componentRow(g int) Mem { return fourth(g&3, []Reg{firstR, fifthR}[g/4], rowR, threeRowsR) }

// componentsFrom brings the rows of components from one on to hand.
func (f *Func) componentsFrom(row Reg) {
	f.moveR(firstR, row)
	f.addressR(fifthR, mem(0, row, rowR.times(4)))
}

// alongRows goes along left blocks of these rows. text is for a register of each, those of samples being in
// registers from V2 on.
func (f *Func) alongRows(rows int, left Reg, text func(h Vec, off int)) {
	f.loop(left, func() {
		for h, off := range f.registers(1) {
			for r := range rows {
				f.load(Vec(2+r), fourth(r, rowsR, rowR, threeRowsR).plus(off))
			}
			text(h, off)
		}
		f.advance(64, firstR, fifthR, rowsR)
	})
}

// componentSizes are how many components go together.
func (f *Func) componentSizes(rows int) []int {
	return pickRows(rows, halved(pick(f, 8, 4)), pick(f, []int{5, 4, 3, 2, 1}, []int{2, 1}))
}

func dots(rows int) func(f *Func) {
	return func(f *Func) {
		gAt, k, v, rAt, count := f.base("g", R5), f.length("g", R1), f.base("v", R4), f.base("r", R3),
			f.length("r", R2)
		const gRow, threeG, left = R11, R12, R0
		f.rowBytes(rows, count, rowR, threeRowsR)
		f.componentBytes(rows, k, gRow, threeG)
		f.groups(k, f.componentSizes(rows), func(n int) {
			some := pickRows(rows, 1, pick(f, 4, 2)) // rows at a time
			for first := 0; first < rows; first += some {
				sum := func(r, g int) Vec { return f.block(pickRows(rows, V4, pick(f, V8, V5)), r*n+g) }
				each := func(text func(r, g int)) {
					for g := range n {
						for r := range some {
							text(r, g)
						}
					}
				}
				each(func(r, g int) { f.clearBlocks(sum(r, g), 1) })
				f.componentsFrom(v)
				f.addressR(rowsR, fourth(first, rAt, rowR, threeRowsR))
				f.moveR(left, count)
				f.alongRows(some, left, func(h Vec, off int) {
					each(func(r, g int) {
						from := Operand(componentRow(g).plus(off))
						if some > 1 {
							if r == 0 {
								f.load(V0, from)
							}
							from = V0
						}
						f.addProduct(sum(r, g)+h, Vec(2+r), from, V1)
					})
				})
				each(func(r, g int) { f.sumTo(fourth(first+r, gAt, gRow, threeG).plus(8*g), sum(r, g)) })
			}
			f.advance(8*n, gAt)
			for range n {
				f.addR(v, rowR)
			}
		})
	}
}

// accumulates is for rows of samples of any length. Those of lower, four, end at the diagonal of acc: done
// counts its rows from first on, and no group of them crosses the border of a block.
func accumulates(rows int, lower bool) func(f *Func) {
	return func(f *Func) {
		acc, u, rAt, count := f.base("acc", R4), f.base("u", R5), f.base("r", R3), f.length("r", R2)
		const k, uRow, threeU, left, done = R1, R11, R12, R0, R2
		f.rowBytes(rows, count, rowR, threeRowsR)
		sizes := f.componentSizes(rows)
		if lower {
			f.value("rows", k)
			f.moveR(uRow, rowR)
			f.moveR(threeU, threeRowsR)
			f.value("first", done)
			sizes = halved(pick(f, 4, 2))
		} else {
			f.length("u", k)
			f.componentBytes(rows, k, uRow, threeU)
		}
		f.groups(k, sizes, func(n int) {
			by := func(r, g int) Vec { return Vec(2 + rows + r*n + g) }
			for r := range rows {
				for g := range n {
					f.broadcast(by(r, g), fourth(r, u, uRow, threeU).plus(8*g))
				}
			}
			f.componentsFrom(acc)
			f.moveR(rowsR, rAt)
			f.moveR(left, count)
			if lower {
				f.shrR(left, Imm(3))
				f.incR(left)
			}
			f.alongRows(rows, left, func(_ Vec, off int) {
				for g := range n {
					place := componentRow(g).plus(off)
					f.load(V0, place)
					for r := range rows {
						f.addProduct(V0, Vec(2+r), by(r, g), V1)
					}
					f.store(place, V0)
				}
			})
			f.advance(8*n, u)
			if lower {
				f.addR(done, Imm(n))
			}
			for range n {
				f.addR(acc, rowR)
			}
		})
	}
}

// sweep takes the blocks of a column one after another: what is added to them, x, stays in registers for all
// rows.
func sweep(f *Func) {
	diagonal, lines, minus, count := f.base("acc", R4), f.base("lines", R5), f.base("minus", R3),
		f.length("lines", R2)
	const row, threeRows, first, begin, at, uc, left, t = R9, R10, R1, R11, R6, R7, R8, R0
	f.rowBytes(4, count, row, threeRows) // of lines and of acc
	f.zeroR(first)                       // row of the block on the diagonal
	x := func(r int) Vec { return f.block(V8, r) }
	some := func() { // left rows from at on, their factors from uc on
		f.loop(left, func() {
			f.loadBlocks(V4, 1, mem(0, at))
			for r := range 4 {
				f.broadcast(V0, fourth(r, uc, row, threeRows))
				f.addProducts(V4, 1, V0, x(r))
			}
			f.storeBlocks(mem(0, at), V4, 1)
			f.addR(at, row)
			f.advance(8, uc)
		})
	}
	f.repeat(count, func() {
		f.clearBlocks(x(0), 4)
		for c := range 4 {
			f.loadBlocks(V2, 1, fourth(c, lines, row, threeRows))
			for r := range 4 {
				f.broadcast(V0, mem(8*(4*r+c), minus))
				f.addProducts(x(r), 1, V0, V2)
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
			for h, off := range f.registers(1) {
				f.negate(x(r)+h, x(r)+h)
				f.store(fourth(r, lines, row, threeRows).plus(off), x(r)+h)
			}
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
		f.loadBlocks(V4, n, mem(0, from))
		f.base("at", at)
		f.length("at", left)
		f.repeat(left, func() {
			f.wordR(line, mem(0, at))
			f.broadcast(V0, mem(0, w, line.times(8)))
			f.mulR(line, row)
			f.addProducts(V4, n, V0, mem(0, r, line.times(1)))
			f.advance(4, at)
		})
		f.storeBlocks(mem(0, to), V4, n)
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
	f.repeat(rows, func() {
		f.zeroR(at)
		f.moveR(left, done)
		f.shrR(left, Imm(3))
		f.incR(left)
		f.loop(left, func() {
			for _, off := range f.registers(1) {
				f.mul(V0, V2, mem(off, from, at.times(1)))
				f.store(mem(off, to, at.times(1)), V0)
			}
			f.advance(64, at)
		})
		f.incR(done)
		f.moveR(left, done)
		f.shlR(left, Imm(3))
		f.addR(from, left)
		f.addR(to, row)
	})
}
