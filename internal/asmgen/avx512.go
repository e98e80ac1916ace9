package main

// AVX-512 (F, DQ and VL): 32 registers of eight lanes and mask registers. K1 to K6 are
// those of comparisons.

import "fmt"

var avx512 = amd64("Z", Arch{
	Name:     "AVX512",
	masked:   true,
	Requires: "AVX512F, AVX512DQ, AVX512VL",
	Lanes:    8,
	Vectors:  32,
	op:       [ops]string{opAnd: "VPANDQ", opAndInt: "VPANDQ", opXor: "VPXORQ"},

	compare: func(f *Func, to Mask, a Vec, cmp Cmp, b Operand) {
		f.line("VCMPPD $0x%02x, %s, Z%d, K%d", predicates[cmp], f.zmm(b), f.vec(a), to.k)
	},
	choose: func(f *Func, m Mask, dst Vec, yes Operand, no Vec) {
		if dst != no {
			f.copy(dst, no)
		}
		switch yes := yes.(type) {
		case Vec:
			f.line("VMOVAPD Z%d, K%d, Z%d", f.vec(yes), m.k, f.vec(dst))
		case Repeat:
			f.line("VBROADCASTSD %s, K%d, Z%d", f.amd64(yes), m.k, f.vec(dst))
		default:
			f.line("VMOVUPD %s, K%d, Z%d", f.amd64(yes), m.k, f.vec(dst))
		}
	},
	keep: func(f *Func, m Mask, dst Vec) { f.line("VMOVAPD.Z Z%d, K%d, Z%[1]d", f.vec(dst), m.k) },
	where: func(f *Func, m Mask, op Op, dst Vec, b Operand) {
		f.line("%s %s, Z%d, K%d, Z%[3]d", f.op[op], f.zmm(b), f.vec(dst), m.k)
	},
	reduce: func(f *Func, op Op, block []Vec, t Vec) {
		a, t4 := f.vec(block[0]), f.vec(t)
		f.line("VEXTRACTF64X4 $1, Z%d, Y%d", a, t4)
		f.line("%s Y%d, Y%d, Y%[2]d", f.op[op], t4, a)
		f.lowHalf("VEXTRACTF64X2", op, a, t4)
	},
	// Halves of a pair of blocks are joined first, then quarters of two pairs, then what is left of two
	// fours, whose sums come out alternating.
	reduceEach: func(f *Func, blocks, t Vec) {
		r := func(i int) int { return f.vec(blocks) + i }
		join := func(what string, lows, highs int, to, a, b int) {
			f.line("%s $0x%02x, Z%d, Z%d, Z%d", what, lows, b, a, f.vec(t))
			f.line("%s $0x%02x, Z%d, Z%d, Z%d", what, highs, b, a, f.vec(t)+1)
			f.line("VADDPD Z%d, Z%d, Z%d", f.vec(t)+1, f.vec(t), to)
		}
		for _, i := range []int{0, 4, 1, 5} {
			join("VSHUFF64X2", 0x44, 0xee, r(i), r(i), r(i+2))
		}
		join("VSHUFF64X2", 0x88, 0xdd, r(0), r(0), r(4))
		join("VSHUFF64X2", 0x88, 0xdd, r(1), r(1), r(5))
		f.line("VUNPCKLPD Z%d, Z%d, Z%d", r(1), r(0), f.vec(t))
		f.line("VUNPCKHPD Z%d, Z%d, Z%d", r(1), r(0), f.vec(t)+1)
		f.line("VADDPD Z%d, Z%d, Z%d", f.vec(t)+1, f.vec(t), r(0))
	},
	exponent: func(f *Func, dst, a Vec) { f.line("VGETEXPPD Z%d, Z%d", f.vec(a), f.vec(dst)) },
	mantissa: func(f *Func, dst, a Vec) { f.line("VGETMANTPD $0, Z%d, Z%d", f.vec(a), f.vec(dst)) },

	// The tables stay in registers 28 to 31.
	powers: oneAfterTheOther,
	powersReady: func(f *Func, at Reg) {
		for i := range 4 {
			f.load(Vec(28+i), mem(64*i, at))
		}
	},
	powersLookUp: func(f *Func, _ Reg, k, hi, lo, _, _ Vec) {
		f.copy(hi, k)
		f.copy(lo, k)
		f.line("VPERMI2PD Z29, Z28, Z%d", f.vec(hi))
		f.line("VPERMI2PD Z31, Z30, Z%d", f.vec(lo))
	},

	eachTail: func(f *Func, n Reg, body func(get get, put put)) {
		f.tailMask(n)
		body(f.maskedMoves())
	},
	blockTail: func(f *Func, n Reg, done Label, body func(h Vec, tail bool, get get, put put)) {
		f.tailMask(n)
		get, put := f.maskedMoves()
		body(0, true, get, put)
	},
	hold: func(f *Func, r Vec) { f.keep(Mask{k: 7}, r) },

	// K1 has the lanes below n, K2 lane n.
	below: func(f *Func, n Reg) {
		f.oneAt(n)
		f.line("KMOVB AX, K2")
		f.line("DECL AX")
		f.line("KMOVB AX, K1")
	},
	loadBelow: func(f *Func, n Reg, dst Vec, m Mem,
		h Vec) {
		f.line("VMOVUPD.Z %s, K1, Z%d", f.amd64(m), f.vec(dst))
	},
	addBelow: func(f *Func, h, dst, a, _ Vec) { f.where(Mask{k: 1}, opAdd, dst, a) },
	divideBelow: func(f *Func, n Reg, h, dst Vec, m Mem, t, u Vec) {
		f.loadBelow(n, t, m, h)
		f.line("VDIVPD.Z Z%d, Z%d, K1, Z%[2]d", f.vec(t), f.vec(dst))
	},
	mulBelow: func(f *Func, h, dst, a Vec, m Mem) {
		f.line("VMULPD.Z %s, Z%d, K1, Z%d", f.amd64(m), f.vec(a), f.vec(dst))
	},
	addAt: func(f *Func, h, dst, a, _, _ Vec) { f.where(Mask{k: 2}, opAdd, dst, a) },
})

// zmm is an operand, registers being of eight lanes.
func (f *Func) zmm(o Operand) string {
	if r, ok := o.(Vec); ok {
		return fmt.Sprint("Z", f.vec(r))
	}
	return f.amd64(o)
}

// prefetchNear asks for m to come into the first cache.
func (f *Func) prefetchNear(m Mem) { f.line("PREFETCHT0 %s", f.amd64(m)) }

// oneAt leaves 1<<n in AX; n is R2, as shifts want it.
func (f *Func) oneAt(n Reg) {
	f.line("MOVL $1, AX")
	f.line("SHLL %s, AX", f.regs[n])
}

// tailMask sets K7 to the lanes below n.
func (f *Func) tailMask(n Reg) {
	f.oneAt(n)
	f.line("DECL AX")
	f.line("KMOVB AX, K7")
}

// maskedMoves are get and put for the lanes of K7.
func (f *Func) maskedMoves() (get, put) {
	return func(to Vec, at Reg) { f.line("VMOVUPD.Z %s, K7, Z%d", f.amd64(mem(0, at)), f.vec(to)) },
		func(at Reg, from Vec) { f.line("VMOVUPD Z%d, K7, %s", f.vec(from), f.amd64(mem(0, at))) }
}
