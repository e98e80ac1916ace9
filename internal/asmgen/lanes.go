package main

// The m × m systems of several rows at once, a lane each; their loops in Go are in
// internal/laplacian, but for hankelLanes in internal/kernel/plan.go. One register of
// lanes runs through a whole system before the next does; element i of a vector lies
// 64 i bytes on, and row k of a lower triangle has k elements, after those of the rows
// before.

// part is the offset of the register of lanes that a text is for.
const part = R12

// parts writes text once, in a loop over the registers that the lanes in use take.
func (f *Func) parts(text func()) {
	again, next := f.label("part"), f.label("next")
	f.zeroR(part)
	f.at(again)
	text()
	f.at(next)
	f.advance(8*f.Lanes, part)
	lanes := f.value("lanes", R0)
	f.shlR(lanes, Imm(3))
	f.branch(part, LT, lanes, again)
}

// onPart moves addresses on to the part.
func (f *Func) onPart(regs ...Reg) {
	for _, r := range regs {
		f.addR(r, part)
	}
}

// size leaves m in R3, from the length of a vector of lanes, and in R4 the end of the
// triangle at w; it returns both.
func (f *Func) size(vector string, w Reg) (m, end Reg) {
	m, end = f.length(vector, R3), R4
	f.shrR(m, Imm(3))
	f.addressR(end, mem(-1, m))
	f.mulR(end, m)
	f.shlR(end, Imm(5))
	f.addR(end, w)
	return m, end
}

// eighths adds term(p, off) to register p of eight for the n elements at the addresses,
// in the order of blocks, and leaves the sum, joined as kernel.Reduce joins, in 0. It
// uses R10 and R2.
func (f *Func) eighths(n Reg, term func(p Vec, off int), addresses ...Reg) {
	const blocks, rest = R10, R2
	f.clear(V0, V1, V2, V3, V4, V5, V6, V7)
	f.moveR(blocks, n)
	f.shrR(blocks, Imm(3))
	f.groups(blocks, []int{1}, func(int) {
		for p := range V8 {
			term(p, 64*int(p))
		}
		f.advance(512, addresses...)
	})
	whole := f.label("whole")
	f.moveR(rest, n)
	f.andR(rest, Imm(7))
	for p := range V7 {
		f.branch(rest, LT, Imm(p+1), whole)
		term(p, 64*int(p))
	}
	f.at(whole)
	for _, pair := range [][2]Vec{{0, 4}, {2, 6}, {1, 5}, {3, 7}, {0, 2}, {1, 3}, {0, 1}} {
		f.add(pair[0], pair[0], pair[1])
	}
}

func factorLanes(f *Func) {
	f.parts(func() {
		w, d, floor, l := f.base("w", R5), f.base("d", R1), f.base("floor", R6), f.base("l", R7)
		f.onPart(w, d, floor, l)
		k, rowK := f.size("d", w)
		const count, from, at, to, li = R2, R8, R9, R10, R11
		next, done := f.label("pivot"), f.label("done")
		f.at(next) // k falls
		f.decR(k)
		f.branch(k, LT, Imm(1), done)
		f.moveR(at, k)
		f.shlR(at, Imm(6))
		f.subR(rowK, at)
		f.moveR(from, rowK)
		f.eighths(k, func(p Vec, off int) { f.add(p, p, mem(off, from)) }, from)
		f.max(V0, V0, mem(0, floor, at.times(1)))
		f.store(mem(0, d, at.times(1)), V0)
		// l = row/pivot.
		f.moveR(from, rowK)
		f.moveR(to, l)
		f.moveR(count, k)
		f.groups(count, []int{4, 2, 1}, func(n int) {
			for b := range n {
				q := Vec(1 + b)
				f.load(q, mem(64*b, from))
				f.div(q, q, V0)
				f.store(mem(64*b, to), q)
			}
			f.advance(64*n, from, to)
		})
		// Rows i = 1, ..., k-1, now from to, take l_i times row k.
		const i = at
		row, taken := f.label("row"), f.label("taken")
		f.moveR(from, w)
		f.addressR(li, mem(64, l))
		f.moveR(i, Imm(1))
		f.at(row)
		f.branch(i, GE, k, taken)
		f.load(V0, mem(0, li))
		f.moveR(to, rowK)
		f.moveR(count, i)
		f.groups(count, []int{4, 2, 1}, func(n int) {
			for b := range n {
				q := Vec(1 + b)
				f.mul(q, V0, mem(64*b, to))
				f.add(q, q, mem(64*b, from))
				f.store(mem(64*b, from), q)
			}
			f.advance(64*n, from, to)
		})
		f.advance(64, li)
		f.incR(i)
		f.jump(row)
		f.at(taken)
		f.moveR(from, rowK)
		f.moveR(to, l)
		f.moveR(count, k)
		f.groups(count, []int{4, 2, 1}, func(n int) {
			for b := range n {
				f.load(Vec(b), mem(64*b, to))
				f.store(mem(64*b, from), Vec(b))
			}
			f.advance(64*n, from, to)
		})
		f.jump(next)
		f.at(done)
		f.load(V0, f.c("one", 1))
		f.store(mem(0, d), V0)
	})
}

func solveLanes(f *Func) {
	f.parts(func() {
		w, d, r := f.base("w", R5), f.base("d", R6), f.base("r", R1)
		f.onPart(w, d, r)
		k, rowK := f.size("d", w)
		const count, from, at, to = R2, R8, R9, R11
		back, forward, done := f.label("back"), f.label("forward"), f.label("done")
		f.at(back) // k falls
		f.decR(k)
		f.branch(k, LT, Imm(1), forward)
		f.moveR(at, k)
		f.shlR(at, Imm(6))
		f.subR(rowK, at)
		f.load(V0, mem(0, r, at.times(1)))
		f.moveR(from, rowK)
		f.moveR(to, r)
		f.moveR(count, k)
		f.groups(count, []int{4, 2, 1}, func(n int) {
			for b := range n {
				q := Vec(1 + b)
				f.mul(q, V0, mem(64*b, from))
				f.add(q, q, mem(64*b, to))
				f.store(mem(64*b, to), q)
			}
			f.advance(64*n, from, to)
		})
		f.jump(back)
		f.at(forward)
		f.clear(V0)
		f.store(mem(0, r), V0)
		f.moveR(rowK, w)
		f.moveR(k, Imm(1))
		row := f.label("row")
		f.at(row) // k rises
		m := f.length("d", count)
		f.shrR(m, Imm(3))
		f.branch(k, GE, m, done)
		f.moveR(from, rowK)
		f.moveR(to, r)
		f.eighths(k, func(p Vec, off int) {
			f.load(V8, mem(off, from))
			f.mul(V8, V8, mem(off, to))
			f.add(p, p, V8)
		}, from, to)
		f.moveR(at, k)
		f.shlR(at, Imm(6))
		f.addR(rowK, at)
		f.load(V8, mem(0, r, at.times(1)))
		f.div(V8, V8, mem(0, d, at.times(1)))
		f.add(V0, V8, V0)
		f.store(mem(0, r, at.times(1)), V0)
		f.incR(k)
		f.jump(row)
		f.at(done)
	})
}

// hankelLanes is the lower triangle of hankel, and its sums over both. Without ratio
// that is 1; on the diagonal it is.
func hankelLanes(f *Func) {
	f.parts(func() {
		// These move on with j: g and ratio to its row, mu and wj to its own.
		g, c, mu, ratio, w := f.base("g", R5), f.base("c", R9), f.base("mu", R6), f.base("ratio", R4),
			f.base("w", R7)
		f.onPart(g, c, mu, ratio, w)
		const wj, count, j, muK, wk, ck = R1, R2, R3, R8, R10, R11
		f.moveR(wj, w)
		f.zeroR(j)
		row, done := f.label("row"), f.label("done")
		f.at(row)
		m := f.length("w", count)
		f.shrR(m, Imm(3))
		f.branch(j, GE, m, done)
		f.load(V2, mem(0, wj))
		f.clear(V3)
		f.moveR(muK, mu)
		f.moveR(wk, w)
		f.moveR(ck, c)
		entry := func(scaled bool) {
			f.load(V0, mem(0, muK))
			if scaled {
				f.mul(V0, V0, mem(0, ratio))
			}
			f.mul(V1, V2, mem(0, wk))
			f.mul(V0, V0, V1)
			f.flush(V0, V1, V4)
			f.add(V3, V3, V0)
		}
		below := func(scaled bool) {
			f.moveR(count, j)
			f.groups(count, []int{1}, func(int) {
				entry(scaled)
				f.store(mem(0, g), V0)
				f.add(V0, V0, mem(0, ck))
				f.store(mem(0, ck), V0)
				f.advance(64, muK, wk, ck, g)
				if scaled {
					f.advance(64, ratio)
				}
			})
		}
		flat, diagonal := f.label("flat"), f.label("diagonal")
		f.length("ratio", count)
		f.branch(count, EQ, Imm(0), flat)
		below(true)
		f.jump(diagonal)
		f.at(flat)
		below(false)
		f.at(diagonal)
		entry(false)
		f.store(mem(0, ck), V3)
		f.advance(64, mu, wj)
		f.incR(j)
		f.jump(row)
		f.at(done)
	})
}
