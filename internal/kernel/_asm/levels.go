package main

import "fmt"

// The m × m system. A row of a matrix has a stride of whole blocks.

// below makes the mask of the lanes below CX (< 8) ready, and with it that of lane
// CX itself: K1, K2, or through AX and R13.
func (f *fn) below() {
	if f.wide {
		f.i("MOVL", "$1", "AX")
		f.i("SHLL", "CX", "AX")
		f.i("KMOVB", "AX", "K2")
		f.i("DECL", "AX")
		f.i("KMOVB", "AX", "K1")
		return
	}
	f.i("NEGQ", "CX")
	f.i("LEAQ", f.constant("window", window...)+"(SB)", "AX")
	f.i("LEAQ", "64(AX)(CX*8)", "AX")
	f.i("LEAQ", f.constant("single", single...)+"(SB)", "R13")
	f.i("LEAQ", "64(R13)(CX*8)", "R13")
	f.i("NEGQ", "CX")
}

func factor(f *fn) {
	// SI: row k, DX: k.
	f.load("w_base", "DI", "d_base", "BX", "d_len", "DX", "floor_base", "R8", "l_base", "R9", "stride", "R11")
	f.i("MOVQ", "$0x3ff0000000000000", "AX")
	f.i("MOVQ", "AX", "(BX)")
	next, done := f.label("next"), f.label("done")
	if f.wide {
		small, large := f.label("small"), f.label("large")
		f.i("CMPQ", "DX", "$2")
		f.i("JLT", done)
		f.i("CMPQ", "DX", "$16")
		f.i("JGT", large)
		f.i("CMPQ", "DX", "$8")
		f.i("JLE", small)
		f.factorInRegisters(16, done)
		f.at(small)
		f.factorInRegisters(8, done)
		f.at(large)
	}
	f.i("SHLQ", "$3", "R11")
	f.at(next)
	f.i("DECQ", "DX")
	f.i("CMPQ", "DX", "$1")
	f.i("JLT", done)
	f.i("MOVQ", "DX", "SI")
	f.i("IMULQ", "R11", "SI")
	f.i("ADDQ", "DI", "SI")
	// The pivot.
	f.halves(func(h, _ int) { f.clear(8 + h) })
	f.i("MOVQ", "SI", "R10")
	f.i("MOVQ", "DX", "R12")
	f.i("SHRQ", "$3", "R12")
	f.groups("R12", []int{1}, func(int) {
		f.halves(func(h, off int) { f.opm("VADDPD", 8+h, 8+h, mem(off, "R10")) })
		f.move(64, "R10")
	})
	whole := f.label("whole")
	f.i("MOVQ", "DX", "CX")
	f.i("ANDQ", "$7", "CX")
	f.i("JEQ", whole)
	f.below()
	f.halves(func(h, off int) {
		if f.wide {
			f.i("VMOVUPD.Z", mem(off, "R10"), "K1", f.v(0))
		} else {
			f.get(mem(off, "R10"), 0)
			f.opm("VANDPD", 0, 0, mem(off, "AX"))
		}
		f.add(8+h, 8+h, 0)
	})
	f.at(whole)
	f.reduce(f.block(8), 1)
	f.i("VMOVSD", "(R8)(DX*8)", x(1))
	f.i("VMAXSD", x(8), x(1), x(8))
	f.i("VMOVSD", x(8), "(BX)(DX*8)")
	f.i("VBROADCASTSD", x(8), f.v(8))
	// l = row/pivot.
	f.i("LEAQ", "7(DX)", "R12")
	f.i("SHRQ", "$3", "R12")
	f.i("XORQ", "R10", "R10")
	f.groups("R12", []int{1}, func(int) {
		f.halves(func(_, off int) {
			f.get(mem(off, "SI", "R10*1"), 0)
			f.div(0, 0, 8)
			f.put(0, mem(off, "R9", "R10*1"))
		})
		f.move(64, "R10")
	})
	// Rows i = k-1, ..., 8b+1 take l_i times block b of row k.
	f.i("XORQ", "R12", "R12") // 8b
	block, ready := f.label("block"), f.label("ready")
	f.at(block)
	f.i("CMPQ", "R12", "DX")
	f.i("JGE", ready)
	f.halves(func(h, off int) { f.get(mem(off, "SI", "R12*8"), 2+h) })
	f.i("LEAQ", "(SI)(R12*8)", "R10")
	f.i("MOVQ", "DX", "CX")
	row, rowsDone := f.label("row"), f.label("rows")
	f.at(row)
	f.i("DECQ", "CX")
	f.i("SUBQ", "R11", "R10")
	f.i("CMPQ", "CX", "R12")
	f.i("JLE", rowsDone)
	f.bcast("(R9)(CX*8)", 0)
	f.halves(func(h, off int) {
		f.mul(1, 0, 2+h)
		f.opm("VADDPD", 1, 1, mem(off, "R10"))
		f.put(1, mem(off, "R10"))
	})
	f.i("JMP", row)
	f.at(rowsDone)
	f.halves(func(h, off int) {
		f.get(mem(off, "R9", "R12*8"), 0)
		f.put(0, mem(off, "SI", "R12*8"))
	})
	f.i("ADDQ", "$8", "R12")
	f.i("JMP", block)
	f.at(ready)
	f.i("JMP", next)
	f.at(done)
}

func solve(f *fn) {
	// DI: w, SI: row k, DX: k, BX: r.
	f.load("w_base", "DI", "d_base", "R8", "d_len", "DX", "r_base", "BX", "stride", "R11")
	f.i("SHLQ", "$3", "R11")
	next, forward := f.label("next"), f.label("forward")
	f.i("MOVQ", "DX", "SI")
	f.i("IMULQ", "R11", "SI")
	f.i("ADDQ", "DI", "SI")
	f.at(next)
	f.i("DECQ", "DX")
	f.i("SUBQ", "R11", "SI")
	f.i("CMPQ", "DX", "$1")
	f.i("JLT", forward)
	f.bcast("(BX)(DX*8)", 4)
	f.i("MOVQ", "DX", "R12")
	f.i("SHRQ", "$3", "R12")
	f.i("XORQ", "R10", "R10")
	f.groups("R12", []int{1}, func(int) {
		f.halves(func(_, off int) {
			f.opm("VMULPD", 0, 4, mem(off, "SI", "R10*1"))
			f.opm("VADDPD", 0, 0, mem(off, "BX", "R10*1"))
			f.put(0, mem(off, "BX", "R10*1"))
		})
		f.move(64, "R10")
	})
	f.i("MOVQ", "DX", "CX")
	f.i("ANDQ", "$7", "CX")
	f.i("JEQ", next)
	f.below()
	f.halves(func(_, off int) {
		f.opm("VMULPD", 0, 4, mem(off, "SI", "R10*1"))
		f.get(mem(off, "BX", "R10*1"), 1)
		if f.wide {
			f.i("VADDPD", f.v(0), f.v(1), "K1", f.v(1))
		} else {
			f.add(0, 1, 0)
			f.get(mem(off, "AX"), 2)
			f.i("VBLENDVPD", f.v(2), f.v(0), f.v(1), f.v(1))
		}
		f.put(1, mem(off, "BX", "R10*1"))
	})
	f.i("JMP", next)

	// Forward, a block of unknowns at a time in registers b. SI: row k, DX: k, R12: 8b.
	f.at(forward)
	b := f.after(8)
	f.i("MOVQ", "$0", "(BX)")
	f.i("MOVQ", "DI", "SI")
	f.i("XORQ", "DX", "DX")
	f.i("XORQ", "R12", "R12")
	block, done := f.label("block"), f.label("done")
	f.at(block)
	f.i("MOVQ", f.arg("d_len"), "CX")
	f.i("SUBQ", "R12", "CX")
	f.i("JLE", done)
	full, divided := f.label("full"), f.label("divided")
	f.i("CMPQ", "CX", "$8")
	f.i("JGE", full)
	f.below()
	f.halves(func(h, off int) {
		f.get(mem(off, "BX", "R12*8"), b+h)
		if f.neon {
			f.getBelow(mem(off, "R8", "R12*8"), h, 0)
			f.get(mem(off, "AX"), 1)
			f.div(b+h, b+h, 0)
			f.op("VANDPD", b+h, b+h, 1)
		} else if f.wide {
			f.i("VMOVUPD.Z", mem(off, "R8", "R12*8"), "K1", f.v(0))
			f.i("VDIVPD.Z", f.v(0), f.v(b), "K1", f.v(b))
		} else {
			f.get(mem(off, "AX"), 1)
			f.i("VMASKMOVPD", mem(off, "R8", "R12*8"), f.v(1), f.v(0))
			f.div(b+h, b+h, 0)
			f.op("VANDPD", b+h, b+h, 1)
		}
	})
	f.i("JMP", divided)
	f.at(full)
	f.i("MOVQ", "$8", "CX")
	f.halves(func(h, off int) {
		f.get(mem(off, "BX", "R12*8"), b+h)
		f.opm("VDIVPD", b+h, b+h, mem(off, "R8", "R12*8"))
	})
	f.at(divided)
	f.i("MOVQ", "CX", "R9") // rows of this block
	f.i("XORQ", "CX", "CX") // lane
	row := f.label("row")
	f.at(row)
	f.halves(func(h, _ int) { f.clear(8 + h) })
	f.i("XORQ", "R10", "R10")
	before, own := f.label("before"), f.label("own")
	f.at(before)
	f.i("CMPQ", "R10", "R12")
	f.i("JGE", own)
	f.halves(func(h, off int) {
		f.get(mem(off, "BX", "R10*8"), 0)
		f.opm("VMULPD", 0, 0, mem(off, "SI", "R10*8"))
		f.add(8+h, 8+h, 0)
	})
	f.i("ADDQ", "$8", "R10")
	f.i("JMP", before)
	f.at(own)
	f.below()
	f.halves(func(h, off int) {
		if f.wide {
			f.i("VMULPD.Z", mem(off, "SI", "R12*8"), f.v(b), "K1", f.v(0))
		} else {
			f.opm("VMULPD", 0, b+h, mem(off, "SI", "R12*8"))
			f.opm("VANDPD", 0, 0, mem(off, "AX"))
		}
		f.add(8+h, 8+h, 0)
	})
	f.reduce(f.block(8), 1)
	f.i("VBROADCASTSD", x(8), f.v(8))
	f.halves(func(h, off int) {
		if f.wide {
			f.i("VADDPD", f.v(8), f.v(b), "K2", f.v(b))
		} else {
			f.add(0, b+h, 8)
			f.get(mem(off, "R13"), 1)
			f.i("VBLENDVPD", f.v(1), f.v(0), f.v(b+h), f.v(b+h))
		}
	})
	f.i("ADDQ", "R11", "SI")
	f.i("INCQ", "CX")
	f.i("CMPQ", "CX", "R9")
	f.i("JLT", row)
	f.halves(func(h, off int) { f.put(b+h, mem(off, "BX", "R12*8")) })
	f.i("ADDQ", "$8", "R12")
	f.i("JMP", block)
	f.at(done)
}

// factorInRegisters is factor for DX <= n vertices, n/8 blocks a row: all rows lie
// in registers, row i's first block in i, its second, from row 9 on, in 7+i. It
// jumps to done.
func (f *fn) factorInRegisters(n int, done string) {
	const pivot, l = 23, 24
	second := func(i int) int { return 7 + i }
	row := func(i int) string { return mem(8*n*i, "DI") }
	start := make([]string, n)
	for i := range start {
		start[i] = f.label("from")
	}
	for i := 1; i < 8; i++ { // K_i: the lanes below i
		f.i("MOVL", imm(1<<i-1), "AX")
		f.i("KMOVB", "AX", fmt.Sprintf("K%d", i))
	}
	for i := 1; i < n; i++ {
		f.get(row(i), i)
		if i > 8 {
			f.get(mem(8*n*i+64, "DI"), second(i))
		}
		if i < n-1 {
			f.i("CMPQ", "DX", imm(i+1))
			f.i("JEQ", start[i])
		}
	}
	for k := n - 1; k > 0; k-- {
		f.at(start[k])
		switch {
		case k < 8:
			f.i("VMOVAPD.Z", f.v(k), fmt.Sprintf("K%d", k), f.v(0))
		case k == 8:
			f.i("VMOVAPD", f.v(k), f.v(0))
		default:
			f.i("VMOVAPD.Z", f.v(second(k)), fmt.Sprintf("K%d", k-8), f.v(0))
			f.add(0, k, 0)
		}
		f.reduce([]int{0}, pivot)
		f.i("VMOVSD", mem(8*k, "R8"), x(pivot))
		f.i("VMAXSD", x(0), x(pivot), x(0))
		f.i("VMOVSD", x(0), mem(8*k, "BX"))
		f.i("VBROADCASTSD", x(0), f.v(pivot))
		f.div(l, k, pivot)
		f.put(l, row(k))
		if k > 8 {
			f.div(l, second(k), pivot)
			f.put(l, mem(8*n*k+64, "DI"))
		}
		t := 25
		update := func(i, to, from int) {
			f.i("VMULPD.BCST", mem(8*n*k+8*i, "DI"), f.v(from), f.v(t))
			f.add(to, to, t)
			if t++; t > 31 {
				t = 25
			}
		}
		for i := k - 1; i > 0; i-- {
			update(i, i, k)
			if i > 8 {
				update(i, second(i), second(k))
			}
		}
	}
	f.i("JMP", done)
}
