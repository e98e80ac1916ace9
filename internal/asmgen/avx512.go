package main

// AVX-512 (F, DQ and VL): 32 registers of eight lanes and mask registers. K1 to K6 are
// those of comparisons.

import (
	"fmt"
	"slices"
)

var avx512 = amd64(Arch{
	Name:     "AVX512",
	masked:   true,
	Requires: "AVX512F, AVX512DQ, AVX512VL",
	Lanes:    8,
	Vectors:  32,
	letter:   "Z",
	op:       [ops]string{opAnd: "VPANDQ", opAndInt: "VPANDQ", opXor: "VPXORQ"},
	table:    avx512Table,
})

func avx512Table(f *Func) Table {
	table := amd64Table(f)
	table.compare = func(to Mask, a Vec, cmp Cmp, b Operand) {
		f.x86("VCMPPD", predicates[cmp], b, a, to.register())
	}
	table.choose = func(m Mask, dst Vec, yes Operand, _ Vec) {
		mnemonic := "VMOVUPD"
		switch yes.(type) {
		case Vec:
			mnemonic = "VMOVAPD"
		case Repeat:
			mnemonic = "VBROADCASTSD"
		}
		f.x86(mnemonic, yes, m.register(), dst)
	}
	table.keep = func(m Mask, dst Vec) { f.x86("VMOVAPD.Z", dst, m.register(), dst) }
	table.where = func(m Mask, op Op, dst Vec, b Operand) { f.x86(f.op[op], b, dst, m.register(), dst) }
	table.reduceBy = func(op Op, r, t Vec) {
		f.x86("VEXTRACTF64X4", Imm(1), r, f.y(t))
		f.x86(f.op[op], f.y(t), f.y(r), f.y(t))
		f.lowHalf("VEXTRACTF64X2", op, r, t)
	}
	// Halves of a pair of blocks are joined first, then quarters of two pairs, then what is left of two
	// fours, whose sums come out alternating.
	table.reduceEach = func(blocks, t Vec) {
		join := func(lows, highs int, to, a, b Vec) {
			f.x86("VSHUFF64X2", hex(lows), b, a, t)
			f.x86("VSHUFF64X2", hex(highs), b, a, t+1)
			f.add(to, t, t+1)
		}
		for _, i := range []Vec{0, 4, 1, 5} {
			join(0x44, 0xee, blocks+i, blocks+i, blocks+i+2)
		}
		join(0x88, 0xdd, blocks, blocks, blocks+4)
		join(0x88, 0xdd, blocks+1, blocks+1, blocks+5)
		f.pairSums(blocks, blocks+1, t)
	}
	table.exponent = func(dst, a Vec) { f.x86("VGETEXPPD", a, dst) }
	table.mantissa = func(dst, a Vec) { f.x86("VGETMANTPD", Imm(0), a, dst) }

	// The tables, one after the other, stay in registers 28 to 31.
	table.powers = func(hi, lo []uint64) []uint64 { return slices.Concat(hi, lo) }
	table.powersReady = func(at Reg) {
		for i := range 4 {
			f.load(Vec(28+i), mem(64*i, at))
		}
	}
	table.powersLookUp = func(_ Reg, k, hi, lo, _, _ Vec) {
		f.copy(hi, k)
		f.copy(lo, k)
		f.x86("VPERMI2PD", Vec(29), Vec(28), hi)
		f.x86("VPERMI2PD", Vec(31), Vec(30), lo)
	}

	table.eachTail = func(body func(part)) {
		there := Mask{k: 7}.register()
		f.oneAt()
		f.x86("DECL", R0)
		f.x86("KMOVB", R0, there)
		body(part{
			get:  func(to Vec, at Reg) { f.x86("VMOVUPD.Z", mem(0, at), there, to) },
			put:  func(at Reg, from Vec) { f.x86("VMOVUPD", from, there, mem(0, at)) },
			tail: true,
		})
	}
	table.hold = func(r Vec) { f.keep(Mask{k: 7}, r) }

	// Of the n in countR, K1 has the lanes below n, K2 lane n.
	below, there := Mask{k: 1}, Mask{k: 2}
	table.below = func() {
		f.oneAt()
		f.x86("KMOVB", R0, there.register())
		f.x86("DECL", R0)
		f.x86("KMOVB", R0, below.register())
	}
	table.loadBelow = func(_, dst Vec, m Mem) { f.x86("VMOVUPD.Z", m, below.register(), dst) }
	table.addBelow = func(h, dst, a, _ Vec) { f.where(below, opAdd, dst, a) }
	table.divideBelow = func(h, dst Vec, m Mem, t, u Vec) {
		f.loadBelow(h, t, m)
		f.x86("VDIVPD.Z", t, dst, below.register(), dst)
	}
	table.mulBelow = func(h, dst, a Vec, m Mem) { f.x86("VMULPD.Z", m, a, below.register(), dst) }
	table.addAt = func(h, dst, a, _, _ Vec) { f.where(there, opAdd, dst, a) }
	return table
}

// register is the mask register.
func (m Mask) register() named { return named(fmt.Sprint("K", m.k)) }

// prefetchNear asks for m to come into the first cache.
func (f *Func) prefetchNear(m Mem) { f.x86("PREFETCHT0", m) }

// oneAt leaves 1<<n in R0, n being in countR, as shifts want it.
func (f *Func) oneAt() {
	f.x86("MOVL", Imm(1), R0)
	f.x86("SHLL", countR, R0)
}
