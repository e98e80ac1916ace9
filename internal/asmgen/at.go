package main

// The loops of low-rank products at some samples only; see internal/kernel/at.go for the loops in Go. V lies
// sample by sample, of which two blocks are taken at a time.

// atRowR has the bytes of a row of components, atR the address of the rest of cols, atLeftR its length.
const atRowR, atR, atLeftR = R9, R7, R8

// sample brings the offset of the row of sample i of cols into a register.
func (f *Func) sample(i int) Reg {
	r := []Reg{R10, R11}[i&1]
	f.wordR(r, mem(4*i, atR))
	f.mulR(r, atRowR)
	return r
}

// samples calls text for every sample that cols names, some at a time: [Func.sample] is one of these n. AVX2
// and AVX-512 ask for what ahead names, given the offset of a sample's row, sixteen samples before its turn.
func (f *Func) samples(sizes []int, ahead func(at Reg), text func(n int)) {
	f.base("cols", atR)
	f.length("cols", atLeftR)
	f.groups(atLeftR, sizes, func(n int) {
		if n > 2 && f.Lanes > 2 && ahead != nil {
			near := f.label("near")
			f.branch(atLeftR, LT, Imm(16+n), near)
			for i := range n {
				ahead(f.sample(16 + i))
			}
			f.at(near)
		}
		text(n)
		f.advance(4*n, atR)
	})
}

// near asks for n blocks of a row of v.
func (f *Func) near(v Reg, n int) func(row Reg) {
	return func(row Reg) {
		for b := range n {
			f.prefetchNear(mem(64*b, v, row.times(1)))
		}
	}
}

// stride brings the bytes of a row into a register.
func (f *Func) stride(row Reg) {
	f.value("stride", row)
	f.shlR(row, Imm(3))
}

// products fills blocks from acc on with those of n blocks of u, from register by on, and some rows of v.
func (f *Func) products(acc, by Vec, n, rows int, v Reg) {
	for i := range rows {
		r, a := f.sample(i), f.block(acc, i)
		for b := range n {
			for h, off := range f.registers(1) {
				u, from := f.block(by, b)+h, mem(64*b+off, v, r.times(1))
				if b == 0 {
					f.mul(a+h, u, from)
				} else {
					f.addProduct(a+h, u, from, V1)
				}
			}
		}
	}
}

// combineAt adds the products of as many samples as there are lanes at once where their sums can be made
// together.
func combineAt(f *Func) {
	w, u, blocks, v := f.base("w", R5), f.base("u", R3), f.length("u", R1), f.base("v", R4)
	const acc, to = V8, R6
	f.wholeBlocks(blocks, atRowR)
	first := pick(f, V4, V4, 16)
	f.groups(blocks, []int{2, 1}, func(n int) {
		f.loadBlocks(first, n, mem(0, u))
		f.moveR(to, w)
		f.samples(pick(f, []int{8, 1}, []int{4, 1}, []int{1}), f.near(v, n), func(m int) {
			f.products(acc, first, n, m, v)
			if m > 1 {
				f.reduceEach(acc, V2)
				f.add(acc, acc, mem(0, to))
				f.store(mem(0, to), acc)
			} else {
				f.reduce(acc)
				f.loadFirst(V1, mem(0, to))
				f.firstOp(opAdd, acc, V1, acc)
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
		const r, q = R6, R2
		to, sizes := []Reg{g}, []int{2, 1}
		if squares {
			to, sizes = []Reg{g, f.base("h", h)}, pick(f, sizes, []int{1})
		}
		f.wholeBlocks(blocks, atRowR)
		f.groups(blocks, sizes, func(n int) {
			sum := func(chain, kind int) Vec { return f.block(V8, (len(to)*chain+kind)*n) }
			for h := range f.registers(1) {
				for i := range 2 * len(to) * n {
					f.clear(f.block(V8, i) + h)
				}
			}
			f.base("r", r)
			if squares {
				f.base("q", q)
			}
			f.samples([]int{4, 2, 1}, nil, func(m int) {
				for i := range m {
					j := f.sample(i)
					f.broadcast(V0, mem(8*i, r))
					if squares {
						f.broadcast(V1, mem(8*i, q))
					}
					for h, off := range f.registers(n) {
						f.load(V2, mem(off, v, j.times(1)))
						f.addProduct(sum(i%2, 0)+h, V2, V0, V3)
						if squares {
							f.mul(V2, V2, V2)
							f.addProduct(sum(i%2, 1)+h, V2, V1, V2)
						}
					}
				}
				f.advance(8*m, r, q)
			})
			for b := range n {
				for kind, to := range to {
					for h, off := range f.registers(1) {
						s, place := f.block(sum(0, kind), b)+h, mem(64*b+off, to)
						f.add(s, s, f.block(sum(1, kind), b)+h)
						f.add(s, s, place)
						f.store(place, s)
					}
				}
			}
			f.advance(64*n, append(to, v)...)
		})
	}
}

func accumulateAt(f *Func) {
	acc, u, blocks := f.base("acc", R4), f.base("u", R3), f.length("u", R1)
	const r = R6
	f.wholeBlocks(blocks, atRowR)
	f.groups(blocks, []int{2, 1}, func(n int) {
		f.loadBlocks(V8, n, mem(0, u))
		f.base("r", r)
		f.samples([]int{4, 1}, f.near(acc, n), func(m int) {
			for i := range m {
				j := f.sample(i)
				f.broadcast(V0, mem(8*i, r))
				for h, off := range f.registers(n) {
					f.addProductTo(mem(off, acc, j.times(1)), V0, V8+h, V1)
				}
			}
			f.advance(8*m, r)
		})
		f.advance(64*n, u, acc)
	})
}
