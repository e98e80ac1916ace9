package main

import "iter"

// Loops over slices. A block of eight lanes is one register of AVX-512, two of AVX2 or
// four of NEON.

// pick returns a for sets of eight lanes (AVX-512), b for those of four (AVX2), and for
// those of two (NEON) b too or, where it is not the same, c: the registers that a text
// uses and how much it does side by side.
func pick[T any](f *Func, a, b T, c ...T) T {
	switch {
	case f.Lanes == 8:
		return a
	case f.Lanes == 2 && len(c) > 0:
		return c[0]
	}
	return b
}

// halved are n, n/2 and so on to 1: sizes of groups.
func halved(n int) (sizes []int) {
	for ; n > 0; n /= 2 {
		sizes = append(sizes, n)
	}
	return sizes
}

// h is the number of registers of a block.
func (f *Func) h() int { return 8 / f.Lanes }

// registers are those of n blocks that lie close, counted from the first on, with their byte offsets.
func (f *Func) registers(n int) iter.Seq2[Vec, int] {
	return func(yield func(Vec, int) bool) {
		for i := range n * f.h() {
			if !yield(Vec(i), 8*f.Lanes*i) {
				return
			}
		}
	}
}

// block is the first register of the i-th block of those from first on.
func (f *Func) block(first Vec, i int) Vec { return first + Vec(i*f.h()) }

// clearBlocks zeroes n blocks, from register first on.
func (f *Func) clearBlocks(first Vec, n int) {
	for i := range f.registers(n) {
		f.clear(first + i)
	}
}

// loadBlocks brings n blocks into the registers from first on.
func (f *Func) loadBlocks(first Vec, n int, from Mem) {
	for i, off := range f.registers(n) {
		f.load(first+i, from.plus(off))
	}
}

// storeBlocks is the way back.
func (f *Func) storeBlocks(to Mem, first Vec, n int) {
	for i, off := range f.registers(n) {
		f.store(to.plus(off), first+i)
	}
}

// addProducts adds products with by to n blocks, from register sums on. The other factors are blocks in
// memory or in registers, from the first of which, a Mem or Vec, says where. V1 is scratch.
func (f *Func) addProducts(sums Vec, n int, by Vec, from Operand) {
	for i, off := range f.registers(n) {
		b := from
		switch from := from.(type) {
		case Mem:
			b = from.plus(off)
		case Vec:
			b = from + i
		}
		f.addProduct(sums+i, by, b, V1)
	}
}

// after is the register after the block at r, which has room for two registers where it takes but one.
func (f *Func) after(r Vec) Vec { return r + Vec(max(2, f.h())) }

// groups writes text for as many of count (a register) as there are, in groups of
// the given sizes, largest first. The text moves on the pointers; count falls here.
func (f *Func) groups(count Reg, sizes []int, text func(size int)) {
	for _, size := range sizes {
		f.while(f.label("group"), f.label("next"), count, size, func() { text(size) })
	}
}

// while writes text for n of count, as long as there are as many; then it goes on at next.
func (f *Func) while(again, next Label, count Reg, n int, text func()) {
	f.at(again)
	f.branch(count, LT, Imm(n), next)
	text()
	f.subR(count, Imm(n))
	f.jump(again)
	f.at(next)
}

// wholeBlocks makes of the length of a row, a register, its blocks, and brings its bytes into another.
func (f *Func) wholeBlocks(length, bytes Reg) {
	f.moveR(bytes, length)
	f.shlR(bytes, Imm(3))
	f.shrR(length, Imm(3))
}

// repeat is loop for a count that may be 0.
func (f *Func) repeat(count Reg, text func()) {
	f.groups(count, []int{1}, func(int) { text() })
}

// loop repeats text count times, count > 0 a register that falls to 0.
func (f *Func) loop(count Reg, text func()) {
	l := f.label("inner")
	f.at(l)
	text()
	f.decR(count)
	f.jumpIf(NE, l)
}

// part is which numbers are at hand, a register of them: get and put move them from and to a slice, whose
// address is at. In a tail they leave alone what is not there, and get fills those lanes with 0.
type part struct {
	get  func(to Vec, at Reg)
	put  func(at Reg, from Vec)
	h    Vec  // of a block
	tail bool // of what is left after whole blocks
}

// whole is register i of the whole ones at hand.
func (f *Func) whole(i int) part {
	off := 8 * f.Lanes * i
	return part{
		get: func(to Vec, at Reg) { f.load(to, mem(off, at)) },
		put: func(at Reg, from Vec) { f.store(mem(off, at), from) },
		h:   Vec(i % f.h()),
	}
}

// each writes a loop over the numbers of slices whose addresses are in slices, as many as countR says, some
// registers at a time: one, or those of a block where sums in eight lanes ask for that. body is written for
// each of them, and for the tail. It uses the registers below own, but not register 15 where there are sums;
// instances of it are woven first if there are to be more than one.
func (f *Func) each(slices []Reg, some, own, instances int, body func(part)) {
	loop, tail, done := f.label("loop"), f.label("tail"), f.label("done")
	n := f.Lanes
	if instances > 1 {
		f.while(f.label("many"), f.label("few"), countR, instances*n, func() {
			f.weave(instances, own, func(u int) { body(f.whole(u)) })
			f.advance(8*n*instances, slices...)
		})
	}
	f.while(loop, tail, countR, some*n, func() {
		for i := range some {
			body(f.whole(i))
		}
		f.advance(8*n*some, slices...)
	})
	f.branch(countR, EQ, Imm(0), done)
	if some == 1 {
		f.eachTail(body)
	} else {
		f.blockTail(done, body)
	}
	f.at(done)
}
