package main

// The loops of low-rank products at some samples only; see internal/kernel/at.go for the loops in Go. V lies
// sample by sample, a row of whole blocks each, two blocks of which are taken at a time.

// samples calls text for every sample that cols names, count of them, some at a time: at(i) brings
// the offset of the row of sample i of these into a register, row being the bytes of a row.
func (f *Func) samples(cols, count, row Reg, sizes []int, text func(n int, at func(i int) Reg)) {
	f.groups(count, sizes, func(n int) {
		text(n, func(i int) Reg {
			r := []Reg{R10, R11}[i%2]
			f.wordR(r, mem(4*i, cols))
			f.mulR(r, row)
			return r
		})
		f.advance(4*n, cols)
	})
}

// combineAt adds the products of as many samples as there are lanes at once where their sums can be made
// together.
func combineAt(f *Func) {
	w, u, blocks, v := f.base("w", R5), f.base("u", R3), f.length("u", R1), f.base("v", R4)
	const row, to, cols, left = R9, R6, R7, R8
	f.moveR(row, blocks)
	f.shlR(row, Imm(3))
	f.shrR(blocks, Imm(3))
	const acc = V8
	first := pick(f, V4, V4, 16)
	f.groups(blocks, []int{2, 1}, func(n int) {
		by := func(b int, h Vec) Vec { return f.nth(first, b, h) }
		for b := range n {
			f.halves(func(h Vec, off int) { f.load(by(b, h), mem(64*b+off, u)) })
		}
		f.moveR(to, w)
		f.base("cols", cols)
		f.length("cols", left)
		f.samples(cols, left, row, pick(f, []int{8, 1}, []int{4, 1}, []int{1}), func(m int, at func(int) Reg) {
			for i := range m {
				r := at(i)
				for b := range n {
					f.halves(func(h Vec, off int) {
						a, from := f.nth(acc, i, h), mem(64*b+off, v, r.times(1))
						if b == 0 {
							f.mul(a, by(b, h), from)
							return
						}
						f.mul(V1, by(b, h), from)
						f.add(a, a, V1)
					})
				}
			}
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

func dotsAt(f *Func) {
	g, blocks, v := f.base("g", R5), f.length("g", R1), f.base("v", R4)
	const row, r, cols, left = R9, R6, R7, R8
	f.moveR(row, blocks)
	f.shlR(row, Imm(3))
	f.shrR(blocks, Imm(3))
	f.groups(blocks, []int{2, 1}, func(n int) {
		sum := func(chain, b int, h Vec) Vec { return f.nth(V8, chain*n+b, h) }
		for chain := range 2 {
			for b := range n {
				f.halves(func(h Vec, _ int) { f.clear(sum(chain, b, h)) })
			}
		}
		f.base("r", r)
		f.base("cols", cols)
		f.length("cols", left)
		f.samples(cols, left, row, []int{4, 2, 1}, func(m int, at func(int) Reg) {
			for i := range m {
				j := at(i)
				f.broadcast(V0, mem(8*i, r))
				for b := range n {
					f.halves(func(h Vec, off int) {
						s := sum(i%2, b, h)
						f.mul(V1, V0, mem(64*b+off, v, j.times(1)))
						f.add(s, s, V1)
					})
				}
			}
			f.advance(8*m, r)
		})
		for b := range n {
			f.halves(func(h Vec, off int) {
				s := sum(0, b, h)
				f.add(s, s, sum(1, b, h))
				f.add(s, s, mem(64*b+off, g))
				f.store(mem(64*b+off, g), s)
			})
		}
		f.advance(64*n, g, v)
	})
}

func accumulateAt(f *Func) {
	acc, u, blocks := f.base("acc", R4), f.base("u", R3), f.length("u", R1)
	const row, r, cols, left = R9, R6, R7, R8
	f.moveR(row, blocks)
	f.shlR(row, Imm(3))
	f.shrR(blocks, Imm(3))
	f.groups(blocks, []int{2, 1}, func(n int) {
		by := func(b int, h Vec) Vec { return f.nth(V8, b, h) }
		for b := range n {
			f.halves(func(h Vec, off int) { f.load(by(b, h), mem(64*b+off, u)) })
		}
		f.base("r", r)
		f.base("cols", cols)
		f.length("cols", left)
		f.samples(cols, left, row, []int{4, 1}, func(m int, at func(int) Reg) {
			for i := range m {
				j := at(i)
				f.broadcast(V0, mem(8*i, r))
				for b := range n {
					f.halves(func(h Vec, off int) {
						place := mem(64*b+off, acc, j.times(1))
						f.mul(V1, V0, by(b, h))
						f.add(V1, V1, place)
						f.store(place, V1)
					})
				}
			}
			f.advance(8*m, r)
		})
		f.advance(64*n, u, acc)
	})
}
