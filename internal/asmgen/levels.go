package main

// The m × m Laplacian system of internal/kernel/laplacian.go: its factors, and what they solve. A row of a
// matrix has a stride of whole blocks.

import (
	"math"
	"slices"
)

// window has eight words of ones and eight of zeros: loaded n words before the middle,
// a block of it has ones in the lanes below n.
var window = slices.Concat(slices.Repeat([]uint64{math.MaxUint64}, 8), make([]uint64, 8))

// single has one word of ones: loaded n words before it, a block has that in lane n.
var single = []uint64{0, 0, 0, 0, 0, 0, 0, 0, math.MaxUint64, 0, 0, 0, 0, 0, 0, 0}

// maskless has what sets without mask registers share. Its masks are vector registers; those of lanes lie in
// memory: R0 points to a block of ones in the lanes below n, R11 to one in lane n.
func maskless(f *Func, table *Table) {
	table.keep = func(m Mask, dst Vec) { f.and(dst, dst, m.v) }
	table.powers = eachWithTheOther
	table.exponent = func(dst, a Vec) { // of a normal number
		f.shr(dst, a, 52)
		f.or(dst, dst, f.c("two52", 0x1p52))
		f.sub(dst, dst, f.c("bias", 0x1p52+1023))
	}
	table.below = func() {
		f.negR(countR)
		f.tableR(R0, "window", window)
		f.addressR(R0, mem(64, R0, countR.times(8)))
		f.tableR(R11, "single", single)
		f.addressR(R11, mem(64, R11, countR.times(8)))
		f.negR(countR)
	}
	table.loadBelow = func(h, dst Vec, m Mem) {
		f.load(dst, m)
		f.and(dst, dst, f.onesOf(R0, h))
	}
	table.mulBelow = func(h, dst, a Vec, m Mem) {
		f.mul(dst, a, m)
		f.and(dst, dst, f.onesOf(R0, h))
	}
	table.addBelow = func(h, dst, a, t Vec) {
		f.add(a, dst, a)
		f.load(t, f.onesOf(R0, h))
		f.choose(Mask{v: t}, dst, a, dst)
	}
	table.addAt = func(h, dst, a, t, u Vec) {
		f.add(t, dst, a)
		f.load(u, f.onesOf(R11, h))
		f.choose(Mask{v: u}, dst, t, dst)
	}
}

// onesOf is register h of the block at r.
func (f *Func) onesOf(r Reg, h Vec) Mem { return mem(8*f.Lanes*int(h), r) }

func factor(f *Func) {
	w, d, k, floor, l, stride := f.base("w", R5), f.base("d", R1), f.length("d", R3), f.base("floor", R6),
		f.base("l", R7), f.value("stride", R9)
	const n, rowK, at, blocks = countR, R4, R8, R10
	f.load(V0, f.c("one", 1))
	f.storeFirst(mem(0, d), V0)
	next, done := f.label("next"), f.label("done")
	f.shlR(stride, Imm(3))
	f.at(next) // k falls
	f.decR(k)
	f.branch(k, LT, Imm(1), done)
	f.moveR(rowK, k)
	f.mulR(rowK, stride)
	f.addR(rowK, w)
	// The pivot.
	f.clearBlocks(V8, 1)
	f.moveR(at, rowK)
	f.moveR(blocks, k)
	f.shrR(blocks, Imm(3))
	f.repeat(blocks, func() {
		for h, off := range f.registers(1) {
			f.add(8+h, 8+h, mem(off, at))
		}
		f.advance(64, at)
	})
	whole := f.label("whole")
	f.moveR(n, k)
	f.andR(n, Imm(7))
	f.jumpIf(EQ, whole)
	f.below()
	for h, off := range f.registers(1) {
		f.loadBelow(h, V0, mem(off, at))
		f.add(8+h, 8+h, V0)
	}
	f.at(whole)
	f.reduce(V8)
	f.loadFirst(V1, mem(0, floor, k.times(8)))
	f.firstOp(opMax, V8, V1, V8)
	f.storeFirst(mem(0, d, k.times(8)), V8)
	f.broadcast(V8, V8)
	// l = row/pivot.
	f.addressR(blocks, mem(7, k))
	f.shrR(blocks, Imm(3))
	f.zeroR(at)
	f.repeat(blocks, func() {
		for _, off := range f.registers(1) {
			f.load(V0, mem(off, rowK, at.times(1)))
			f.div(V0, V0, V8)
			f.store(mem(off, l, at.times(1)), V0)
		}
		f.advance(64, at)
	})
	// Rows i = k-1, ..., 8b+1 take l_i times block b of row k.
	f.zeroR(blocks) // 8b
	block, ready := f.label("block"), f.label("ready")
	f.at(block)
	f.branch(blocks, GE, k, ready)
	f.loadBlocks(V2, 1, mem(0, rowK, blocks.times(8)))
	f.addressR(at, mem(0, rowK, blocks.times(8)))
	f.moveR(n, k)
	row, rowsDone := f.label("row"), f.label("rows")
	f.at(row)
	f.decR(n)
	f.subR(at, stride)
	f.branch(n, LE, blocks, rowsDone)
	f.broadcast(V0, mem(0, l, n.times(8)))
	for h, off := range f.registers(1) {
		f.addProductTo(mem(off, at), V0, 2+h, V1)
	}
	f.jump(row)
	f.at(rowsDone)
	for _, off := range f.registers(1) {
		f.load(V0, mem(off, l, blocks.times(8)))
		f.store(mem(off, rowK, blocks.times(8)), V0)
	}
	f.addR(blocks, Imm(8))
	f.jump(block)
	f.at(ready)
	f.jump(next)
	f.at(done)
}

func solve(f *Func) {
	w, d, k, r, stride := f.base("w", R5), f.base("d", R6), f.length("d", R3), f.base("r", R1),
		f.value("stride", R9)
	const n, rowK, at, blocks = countR, R4, R8, R10
	f.shlR(stride, Imm(3))
	next, forward := f.label("next"), f.label("forward")
	f.moveR(rowK, k)
	f.mulR(rowK, stride)
	f.addR(rowK, w)
	f.at(next)
	f.decR(k)
	f.subR(rowK, stride)
	f.branch(k, LT, Imm(1), forward)
	f.broadcast(V4, mem(0, r, k.times(8)))
	f.moveR(blocks, k)
	f.shrR(blocks, Imm(3))
	f.zeroR(at)
	f.repeat(blocks, func() {
		for _, off := range f.registers(1) {
			f.addProductTo(mem(off, r, at.times(1)), V4, mem(off, rowK, at.times(1)), V0)
		}
		f.advance(64, at)
	})
	f.moveR(n, k)
	f.andR(n, Imm(7))
	f.jumpIf(EQ, next)
	f.below()
	for h, off := range f.registers(1) {
		f.mul(V0, V4, mem(off, rowK, at.times(1)))
		f.load(V1, mem(off, r, at.times(1)))
		f.addBelow(h, V1, V0, V2)
		f.store(mem(off, r, at.times(1)), V1)
	}
	f.jump(next)

	// Forward, a block of unknowns at a time in registers b; blocks is 8b.
	f.at(forward)
	b := f.after(V8)
	f.zeroAt(mem(0, r))
	f.moveR(rowK, w)
	f.zeroR(k)
	f.zeroR(blocks)
	block, done := f.label("block"), f.label("done")
	f.at(block)
	f.length("d", n)
	f.subR(n, blocks)
	f.jumpIf(LE, done)
	full, divided := f.label("full"), f.label("divided")
	f.branch(n, GE, Imm(8), full)
	f.below()
	for h, off := range f.registers(1) {
		f.load(b+h, mem(off, r, blocks.times(8)))
		f.divideBelow(h, b+h, mem(off, d, blocks.times(8)), V0, V1)
	}
	f.jump(divided)
	f.at(full)
	f.moveR(n, Imm(8))
	for h, off := range f.registers(1) {
		f.load(b+h, mem(off, r, blocks.times(8)))
		f.div(b+h, b+h, mem(off, d, blocks.times(8)))
	}
	f.at(divided)
	f.moveR(R7, n) // rows of this block
	f.zeroR(n)     // lane
	row := f.label("row")
	f.at(row)
	f.clearBlocks(V8, 1)
	f.zeroR(at)
	before, own := f.label("before"), f.label("own")
	f.at(before)
	f.branch(at, GE, blocks, own)
	for h, off := range f.registers(1) {
		f.load(V0, mem(off, r, at.times(8)))
		f.addProduct(8+h, V0, mem(off, rowK, at.times(8)), V0)
	}
	f.addR(at, Imm(8))
	f.jump(before)
	f.at(own)
	f.below()
	for h, off := range f.registers(1) {
		f.mulBelow(h, V0, b+h, mem(off, rowK, blocks.times(8)))
		f.add(8+h, 8+h, V0)
	}
	f.reduce(V8)
	f.broadcast(V8, V8)
	for h := range f.registers(1) {
		f.addAt(h, b+h, V8, V0, V1)
	}
	f.addR(rowK, stride)
	f.incR(n)
	f.branch(n, LT, R7, row)
	f.storeBlocks(mem(0, r, blocks.times(8)), b, 1)
	f.addR(blocks, Imm(8))
	f.jump(block)
	f.at(done)
}
