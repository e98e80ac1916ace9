package main

// AVX2: sixteen registers of four lanes. A mask is a register of ones and zeros.

import "fmt"

var avx2 = amd64("Y", Arch{
	Name:     "AVX2",
	Requires: "AVX2",
	Lanes:    4,
	Vectors:  16,
	op:       [ops]string{opAnd: "VANDPD", opAndInt: "VPAND", opOr: "VPOR", opXor: "VXORPD"},

	compare: func(f *Func, to Mask, a Vec, cmp Cmp, b Operand) {
		f.line("VCMPPD $0x%02x, %s, Y%d, Y%d", predicates[cmp], f.ymm(b), f.vec(a), f.vec(to.v))
	},
	choose: func(f *Func, m Mask, dst Vec, yes Operand, no Vec) {
		f.line("VBLENDVPD Y%d, %s, Y%d, Y%d", f.vec(m.v), f.ymm(yes), f.vec(no), f.vec(dst))
	},
	keep: func(f *Func, m Mask, dst Vec) { f.and(dst, dst, m.v) },
	reduce: func(f *Func, op Op, block []Vec, t Vec) {
		a, b := f.vec(block[0]), f.vec(block[1])
		f.line("%s Y%d, Y%d, Y%d", f.op[op], b, a, f.vec(t))
		f.lowHalf("VEXTRACTF128", op, a, f.vec(t))
	},
	// Block i is registers 2i and 2i+1.
	reduceEach: func(f *Func, blocks, t Vec) {
		for i := range Vec(4) {
			f.add(blocks+2*i, blocks+2*i, blocks+2*i+1)
		}
		f.reduceJoined(blocks, 2, t)
	},

	// Loads of pairs take less time than gathers. R12 is scratch.
	powers:      eachWithTheOther,
	powersReady: func(*Func, Reg) {},
	powersLookUp: func(f *Func, at Reg, k, hi, lo, t, u Vec) {
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
	},

	eachTail: func(f *Func, n Reg, body func(get get, put put)) {
		f.tableR(R0, "window", window)
		f.negR(n)
		f.load(V15, mem(64, R0, n.times(8)))
		body(f.maskMoves(0))
	},
	blockTail: func(f *Func, n Reg, done Label, body func(h Vec, tail bool, get get, put put)) {
		f.tableR(R0, "window", window)
		f.negR(n)
		f.addressR(R0, mem(64, R0, n.times(8)))
		f.halves(func(h Vec, off int) {
			f.load(V15, mem(off, R0))
			get, put := f.maskMoves(off)
			body(h, true, get, put)
		})
	},
	hold: func(f *Func, r Vec) { f.and(r, r, V15) },

	below:     belowInMemory,
	loadBelow: loadAndClear,
	addBelow:  addAndBlend,
	divideBelow: func(f *Func, n Reg, h, dst Vec, m Mem, t, u Vec) {
		f.load(u, f.onesOf(R0, h))
		f.line("VMASKMOVPD %s, Y%d, Y%d", f.amd64(m), f.vec(u), f.vec(t))
		f.div(dst, dst, t)
		f.and(dst, dst, u)
	},
	mulBelow: mulAndClear,
	addAt:    addAndBlendAt,
})

// reduceJoined ends reduceEach: block i is register step·i, in which both halves of it have been added up.
func (f *Func) reduceJoined(blocks, step, t Vec) {
	r := func(i int) Vec { return blocks + Vec(i)*step }
	for i := range 2 {
		f.line("VPERM2F128 $0x20, Y%d, Y%d, Y%d", f.vec(r(i+2)), f.vec(r(i)), f.vec(t))
		f.line("VPERM2F128 $0x31, Y%d, Y%d, Y%d", f.vec(r(i+2)), f.vec(r(i)), f.vec(t)+1)
		f.add(r(i), t, t+1)
	}
	f.line("VUNPCKLPD Y%d, Y%d, Y%d", f.vec(r(1)), f.vec(r(0)), f.vec(t))
	f.line("VUNPCKHPD Y%d, Y%d, Y%d", f.vec(r(1)), f.vec(r(0)), f.vec(t)+1)
	f.add(r(0), t, t+1)
}

// ymm is an operand, registers being of four lanes.
func (f *Func) ymm(o Operand) string {
	if r, ok := o.(Vec); ok {
		return fmt.Sprint("Y", f.vec(r))
	}
	return f.amd64(o)
}

// maskMoves are get and put for the lanes that register 15 names.
func (f *Func) maskMoves(off int) (get, put) {
	return func(to Vec, at Reg) { f.line("VMASKMOVPD %s, Y15, Y%d", f.amd64(mem(off, at)), f.vec(to)) },
		func(at Reg, from Vec) { f.line("VMASKMOVPD Y%d, Y15, %s", f.vec(from), f.amd64(mem(off, at))) }
}
