package main

// AVX2: sixteen registers of four lanes. A mask is a register of ones and zeros.

var avx2 = amd64(Arch{
	Name:     "AVX2",
	Requires: "AVX2",
	Lanes:    4,
	Vectors:  16,
	letter:   "Y",
	op:       [ops]string{opAnd: "VANDPD", opAndInt: "VPAND", opOr: "VPOR", opXor: "VXORPD"},
	table:    avx2Table,
})

func avx2Table(f *Func) Table {
	table := amd64Table(f)
	maskless(f, &table)
	table.compare = func(to Mask, a Vec, cmp Cmp, b Operand) { f.x86("VCMPPD", predicates[cmp], b, a, to.v) }
	table.choose = func(m Mask, dst Vec, yes Operand, no Vec) { f.x86("VBLENDVPD", m.v, yes, no, dst) }
	table.reduceBy = func(op Op, r, t Vec) {
		f.vecOp(op, t, r, r+1)
		f.lowHalf("VEXTRACTF128", op, r, t)
	}
	// Block i is registers 2i and 2i+1.
	table.reduceEach = func(blocks, t Vec) {
		r := func(i int) Vec { return blocks + Vec(2*i) }
		for i := range 4 {
			f.add(r(i), r(i), r(i)+1)
		}
		for i := range 2 {
			f.x86("VPERM2F128", hex(0x20), r(i+2), r(i), t)
			f.x86("VPERM2F128", hex(0x31), r(i+2), r(i), t+1)
			f.add(r(i), t, t+1)
		}
		f.pairSums(r(0), r(1), t)
	}

	// Loads of pairs take less time than gathers. R12 is scratch.
	table.powersLookUp = func(at Reg, k, hi, lo, t, u Vec) {
		f.andInt(t, k, f.w("fifteen", 15))
		f.shl(t, t, 4)
		var in instruction
		pair := func(of, lane int, load string, to Vec) {
			in.add([]string{"VMOVQ X%d, %s", "VPEXTRQ $1, X%d, %s"}[lane], of, f.regs[R12])
			in.add(load, f.amd64(mem(0, at, R12.times(1))), f.vec(to))
		}
		for lane, to := range []Vec{hi, lo} {
			pair(f.vec(t), lane, "VMOVUPD %s, X%d", to)
		}
		in.add("VEXTRACTI128 $1, Y%d, X%d", f.vec(t), f.vec(t))
		for lane, to := range []Vec{hi, lo} {
			pair(f.vec(t), lane, "VINSERTF128 $1, %s, Y%d, Y%[2]d", to)
		}
		in.add("VUNPCKLPD Y%d, Y%d, Y%d", f.vec(lo), f.vec(hi), f.vec(u))
		in.add("VUNPCKHPD Y%d, Y%d, Y%d", f.vec(lo), f.vec(hi), f.vec(lo))
		in.add("VMOVAPD Y%d, Y%d", f.vec(u), f.vec(hi))
		f.emit(in)
	}

	table.eachTail = func(body func(part)) {
		f.tableR(R0, "window", window)
		f.negR(countR)
		f.load(V15, mem(64, R0, countR.times(8)))
		body(f.maskedPart(0))
	}
	table.blockTail = func(_ Label, body func(part)) {
		f.tableR(R0, "window", window)
		f.negR(countR)
		f.addressR(R0, mem(64, R0, countR.times(8)))
		for h, off := range f.registers(1) {
			f.load(V15, mem(off, R0))
			body(f.maskedPart(h))
		}
	}
	table.hold = func(r Vec) { f.and(r, r, V15) }
	table.divideBelow = func(h, dst Vec, m Mem, t, u Vec) {
		f.load(u, f.onesOf(R0, h))
		f.x86("VMASKMOVPD", m, u, t)
		f.div(dst, dst, t)
		f.and(dst, dst, u)
	}
	return table
}

// maskedPart is register h of a block, of whose lanes those are there that register 15 names.
func (f *Func) maskedPart(h Vec) part {
	off := 8 * f.Lanes * int(h)
	return part{
		get:  func(to Vec, at Reg) { f.x86("VMASKMOVPD", mem(off, at), V15, to) },
		put:  func(at Reg, from Vec) { f.x86("VMASKMOVPD", from, V15, mem(off, at)) },
		h:    h,
		tail: true,
	}
}
